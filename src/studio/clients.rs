//! The pages of clients: grants and their repair, calls by client, brownouts, and the sunset of
//! each client.

mod brownouts;
mod fields;
mod list;
mod losses;
mod one;
mod status;
mod usage;

pub(super) use self::fields::client_field;
pub(super) use self::usage::{COUNTED_SINCE, callers};

use self::brownouts::{add_brownout, asked_for_brownout, second_brownout};
use self::fields::{form_back, side};
use self::list::list;
use self::losses::losses;
use self::one::{
    link_cookie, new_token, no_token, one, second_of_client, second_sunset, still_valid, sunset,
};
use super::PageContext;
use super::fields::{FormFields, percent_encode};
use super::kept;
use crate::admin::AdminResponse;
use crate::operate::{self, Refusal};
use maud::{Markup, html};
use switchback_gateway::retire::RetireError;
use switchback_gateway::token::NewToken;

pub(super) async fn look(visit: &PageContext<'_>, rest: &[&str]) -> AdminResponse {
    match rest {
        [] if visit.query.get("show") == "after-sunset" => losses(visit).await,
        [] => list(visit, None).await,
        ["brownouts", "new"] => asked_for_brownout(visit).await,
        [name] => one(visit, name, None).await,
        _ => visit.not_found(),
    }
}

pub(super) async fn form(visit: &PageContext<'_>, rest: &[&str], form: &FormFields) -> AdminResponse {
    let parts = visit.parts;
    let (registry, retirement) = (&parts.registry.by(visit.who()), &parts.retirement.by(visit.who()));
    // A form of an outdated page must not undo the change of another operator.
    if let [name, "connect" | "rotate" | "retry" | "restore" | "revoke"] = rest
        && let Ok(seen) = form.get("seen").parse::<i64>()
        && let Ok(client) = registry.get(name).await
        && client.version != seen
    {
        return second_of_client(visit, &client, form).await;
    }
    let outcome: Result<Option<Markup>, Refusal> = match rest {
        ["brownouts"] => match add_brownout(visit, form).await {
            Err(refusal) if refusal.is_outdated() => return second_brownout(visit, form).await,
            outcome => outcome.map(|()| None),
        },
        ["brownouts", id, "remove"] => match retirement.remove(id).await {
            Err(RetireError::NoSuchBrownout(_)) if form.has("seen") => {
                return second_brownout(visit, form).await;
            }
            outcome => outcome.map(|()| None).map_err(Refusal::from),
        },
        [name, "sunset"] => match sunset(visit, name, form).await {
            Err(refusal) if refusal.is_outdated() => return second_sunset(visit, name, form).await,
            outcome => outcome.map(|()| None),
        },
        [name, "connect"] => match registry.connect(name, None).await {
            Ok(link) => {
                visit.studio.outdate();
                // Redirect: the client's page displays the link and keeps updating.
                return AdminResponse::see(&format!("/clients/{}", percent_encode(name)))
                    .cookie(&link_cookie(visit, &link));
            }
            Err(error) => Err(error.into()),
        },
        [name, "rotate"] => {
            let rotated = registry.rotate(name, NewToken { side: side(form), token: None }, None).await;
            rotated.map(|added| added.token.map(|token| new_token(token.expose()))).map_err(Refusal::from)
        }
        [name, "restore"] => registry.restore(name).await.map(|_| None).map_err(Refusal::from),
        [name, "retry"] => {
            let outcome = operate::retry_grant(registry, &parts.tokens, name).await;
            outcome.map(|outcome| outcome.err().map(|error| no_token(&error))).map_err(Refusal::from)
        }
        [name, "revoke"] => {
            let revoked = registry.revoke(name).await;
            revoked.map(|revoked| still_valid(&revoked.at_server)).map_err(Refusal::from)
        }
        _ => return visit.not_found(),
    };
    // Also after a refusal, which may be caused by a change of another process.
    visit.studio.outdate();
    operate::apply_clients(&parts.tokens).await;
    let is_of_client = !matches!(rest, ["brownouts", ..]);
    let told = match outcome {
        Ok(None) => {
            return AdminResponse::see(&match rest {
                ["brownouts", ..] => form_back(form),
                [name, ..] => format!("/clients/{}", percent_encode(name)),
                [] => "/clients".to_owned(),
            });
        }
        Ok(Some(told)) => told,
        Err(error) => {
            let is_written = matches!(rest, ["brownouts"] | [_, "sunset"]);
            html! {
                div.notice.bad #refused role="alert" { p { strong { "Nothing was changed." } " " (error) } }
                @if is_written { section.panel { (kept::resubmit_form(visit, form, &[])) } }
            }
        }
    };
    match rest {
        [name, ..] if is_of_client => one(visit, name, Some(told)).await,
        _ => list(visit, Some(told)).await,
    }
}
