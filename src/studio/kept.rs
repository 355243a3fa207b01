//! Forms that were not taken: what somebody wrote is kept, and can be sent once more.

use super::Visit;
use super::fields::Fields;
use super::layout::Page;
use super::words::moment;
use http::StatusCode;
use maud::{Markup, html};

/// What every form of ours carries; of no use in another session.
pub(super) const FORM_TOKEN: &str = "form_token";

/// The fields of a form as somebody wrote them, ready to be looked at and sent again. `changed` takes the place of fields of
/// these names.
pub(super) fn fields(form: &Fields, changed: &[(&str, String)]) -> Markup {
    let is_ours = |name: &str| name == FORM_TOKEN || changed.iter().any(|(one, _)| *one == name);
    html! {
        @for (name, value) in changed { input type="hidden" name=(name) value=(value); }
        @for (name, value) in form.all().filter(|(name, _)| !is_ours(name)) {
            @if value.is_empty() || value.len() > 60 || value.contains('\n') {
                @if value.is_empty() { input type="hidden" name=(name) value=""; } @else {
                    label { (name) textarea name=(name) rows="4" { (value) } }
                }
            } @else {
                label { (name) input type="text" name=(name) value=(value); }
            }
        }
    }
}

/// The page for a form that needs a store that does not answer.
pub(super) fn away(visit: &Visit<'_>, since: i64, form: &Fields) -> Page {
    let words = html! {
        p role="alert" {
            "This change is written into the store, which stopped answering " (moment(since, visit.now_ms))
            ". What you wrote is kept here: send it once more when the store is back."
        }
        form.stack method="post" action=(visit.path) {
            (visit.form_token())
            (fields(form, &[]))
            div.actions {
                button.primary type="submit" { "Send it again" }
                a.button href="/" { "Leave it" }
            }
        }
    };
    Page::notice(StatusCode::SERVICE_UNAVAILABLE, "Nothing was changed", words)
}
