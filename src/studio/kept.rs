//! Rejected forms: their content is preserved and can be submitted again.

use super::PageContext;
use super::fields::FormFields;
use super::layout::{Page, Tab};
use super::words::{moment, moment_text};
use crate::admin::AdminResponse;
use http::StatusCode;
use maud::{Markup, html};
use switchback_gateway::clock::rfc3339;

/// The field with the CSRF token. It is valid only in its session.
pub(super) const FORM_TOKEN: &str = "form_token";

/// Renders the fields of a submitted form for review. `changed` replaces fields of the same names.
pub(super) fn fields(form: &FormFields, changed: &[(&str, String)]) -> Markup {
    // The token of the old session is invalid, and a changed field must not be sent twice.
    let is_ours = |name: &str| name == FORM_TOKEN || changed.iter().any(|(one, _)| *one == name);
    html! {
        @for (name, value) in changed { input type="hidden" name=(name) value=(value); }
        @for (name, value) in form.all().filter(|(name, _)| !is_ours(name)) {
            @if ["seen", "version"].contains(&name) {
                input type="hidden" name=(name) value=(value);
            } @else if ["announce", "never"].contains(&name) {
                label.check { input type="checkbox" name=(name) value=(value) checked; span { (label(name)) } }
            } @else if value.is_empty() || value.len() > 60 || value.contains('\n') {
                @if value.is_empty() { input type="hidden" name=(name) value=""; } @else {
                    label { (label(name)) textarea name=(name) rows="4" { (value) } }
                }
            } @else {
                label { (label(name)) input type="text" name=(name) value=(value); }
            }
        }
    }
}

fn label(name: &str) -> &str {
    match name {
        "at" => "Rejected with 410 from (UTC)",
        "announce" => "Announce it in answers until then",
        "never" => "Remove the sunset date",
        "from" => "From (UTC)",
        "minutes" => "Minutes",
        "reason" => "Reason",
        "operation" => "Operation",
        "client" => "Client",
        "confirm" => "Confirmation",
        "side" => "Side",
        "of" => "Back to the page of",
        "phase" => "Phase",
        "share" => "Share",
        other => other,
    }
}

/// Renders a submitted form, ready to be submitted again.
pub(super) fn resubmit_form(
    visit: &PageContext<'_>,
    form: &FormFields,
    changed: &[(&str, String)],
) -> Markup {
    html! {
        form.stack #kept method="post" action=(visit.path) {
            (visit.form_token())
            (fields(form, changed))
            div.actions {
                button.primary type="submit" { "Submit again" }
                a.button href="/" { "Cancel" }
            }
        }
    }
}

/// Responds to a form that was rendered before another change: that change, the current state, and
/// the form again. `subjects` are the kinds and subjects of such changes in the history; `changed`
/// are the fields with the current version.
pub(super) async fn second(
    visit: &PageContext<'_>,
    tab: Tab,
    subjects: &[&str],
    now: &Markup,
    form: &FormFields,
    changed: &[(&str, String)],
) -> AdminResponse {
    visit.studio.outdate();
    let notes = visit.notes().await;
    let last = notes.value.as_deref().and_then(|notes| {
        notes
            .iter()
            .find(|note| subjects.contains(&note.kind.as_str()) || subjects.contains(&note.subject.as_str()))
    });
    let done = html! {
        @match last {
            Some(last) => {
                strong { @if last.who.is_empty() { "somebody" } @else { (last.who) } } " did this: " (last.kind)
                @if !last.subject.is_empty() { ", " (last.subject) } @if !last.scope.is_empty() { ", " (last.scope) } " " (moment_text(&rfc3339(last.at_ms), visit.now_ms))
                @if !last.detail.is_empty() { " (" (last.detail) ")" } "."
            },
            None => "it was changed.",
        }
    };
    let now = html! { (now) " To apply yours, submit it again." };
    someone_was_faster(
        visit,
        tab,
        &done,
        &now,
        &html! { section.panel { (resubmit_form(visit, form, changed)) } },
    )
}

/// Renders the page about a conflicting change, with the form below.
pub(super) fn someone_was_faster(
    visit: &PageContext<'_>,
    tab: Tab,
    done: &Markup,
    now: &Markup,
    form: &Markup,
) -> AdminResponse {
    let body = html! {
        div.page-head { h1 { "Changed by another user" } }
        div.notice.warn role="alert" {
            p { "Your change was not applied. In the meantime, " (done) }
            p { (now) }
        }
        (form)
    };
    visit.page(Page::still(tab, "Changed by another user", body).status(StatusCode::CONFLICT))
}

/// Renders the page for a form of another session: the user has signed in again in another tab.
pub(super) fn of_another_session(visit: &PageContext<'_>, form: &FormFields) -> Page {
    let words = html! {
        p role="alert" {
            "This form belongs to another session. Your input is preserved: check it and submit it again."
        }
        (resubmit_form(visit, form, &[]))
    };
    Page::notice(StatusCode::FORBIDDEN, "Nothing was changed", words)
}

/// Renders the page for a form that needs the store while it does not answer.
pub(super) fn away(visit: &PageContext<'_>, since: i64, form: &FormFields) -> Page {
    let words = html! {
        p role="alert" {
            "Changes need the store, which stopped answering " (moment(since, visit.now_ms))
            ". Your input is preserved: submit it again when the store is back."
        }
        (resubmit_form(visit, form, &[]))
    };
    Page::notice(StatusCode::SERVICE_UNAVAILABLE, "Nothing was changed", words)
}
