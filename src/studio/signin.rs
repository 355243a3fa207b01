//! Signing in and out. If a session expires before a form is submitted, the form's fields are
//! preserved across the sign-in and submitted again by the user: signing in must not execute a
//! change.

use super::Studio;
use super::fields::{FormFields, own_path};
use super::kept::{self, FORM_TOKEN};
use super::layout::{Theme, outside};
use crate::admin::{AdminResponse, SignIn};
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use std::net::IpAddr;

/// The prefix of preserved fields in the sign-in form.
const KEPT: &str = "kept.";

/// Renders the sign-in page. `kept` are the fields of a form to submit to `to` afterwards.
pub(super) fn page(
    status: StatusCode,
    theme: Theme,
    to: &str,
    kept: &FormFields,
    trouble: Option<&str>,
) -> AdminResponse {
    // The CSRF token of the old session is invalid in the new one.
    let kept: Vec<_> = kept.all().filter(|(name, _)| *name != FORM_TOKEN).collect();
    let body = html! {
        h1 { "Sign in" }
        @if !kept.is_empty() {
            p.notice.warn { "Your session has ended. Your input is preserved: sign in, check it and submit it again." }
        }
        @if let Some(trouble) = trouble { p.notice.bad role="alert" { (trouble) } }
        form.stack method="post" action="/login" {
            input type="hidden" name="to" value=(to);
            @for (name, value) in &kept { input type="hidden" name={ (KEPT) (name) } value=(value); }
            label { "Token"
                input type="password" name="token" required autofocus autocomplete="current-password" spellcheck="false";
            }
            p.hint { "The value of " code { "admin.token" } " to make changes, or of " code { "admin.read_token" } " to look." }
            label { "Your name " span.hint { "(optional)" }
                input type="text" name="name" maxlength="60" autocomplete="name";
            }
            p.hint { "Recorded in the history with your changes." }
            button.primary type="submit" { "Sign in" }
        }
    };
    AdminResponse::html(status, outside("Sign in", theme, &body))
}

/// Checks a token and starts a session.
pub(super) async fn sign_in(
    studio: &Studio,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
    theme: Theme,
    form: &FormFields,
) -> AdminResponse {
    let to = own_path(form.get("to"));
    let kept: FormFields =
        form.all().filter_map(|(name, value)| Some((name.strip_prefix(KEPT)?, value))).collect();
    let again = |status, words: &str| page(status, theme, to, &kept, Some(words));
    match studio.guard.sign_in(peer, form.get("token"), form.get("name")).await {
        SignIn::Wrong => again(StatusCode::UNAUTHORIZED, "Invalid token."),
        SignIn::Wait => again(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many wrong tokens came from your address. Wait a minute.",
        ),
        SignIn::As(session) => {
            tracing::info!(
                role = session.role.name(),
                name = session.name,
                "somebody signed in to the studio"
            );
            let cookie = studio.guard.session_cookie(&session, headers);
            let answer = if kept.all().next().is_none() {
                AdminResponse::see(to)
            } else {
                let token = studio.guard.form_token(&session);
                AdminResponse::html(
                    StatusCode::OK,
                    outside("Submit again", theme, &resume(to, &kept, &token)),
                )
            };
            answer.cookie(&cookie)
        }
    }
}

/// Renders the preserved form, ready to be submitted.
fn resume(to: &str, kept: &FormFields, token: &str) -> Markup {
    html! {
        h1 { "You are signed in again" }
        p { "Your input is below. It was not applied." }
        form.stack method="post" action=(to) {
            input type="hidden" name=(FORM_TOKEN) value=(token);
            (kept::fields(kept, &[]))
            button.primary type="submit" { "Send it" }
            a.button href="/" { "Cancel" }
        }
    }
}
