//! Fields of the forms and lists about clients.

use crate::operate::{self, Refusal};
use crate::studio::PageContext;
use crate::studio::fields::{FormFields, own_path, percent_encode};
use maud::{Markup, html};

/// Clients per page of the list.
pub(super) const OF_PAGE: usize = 100;

/// Most clients in a drop-down list; beyond that, a text field is used.
pub(super) const LISTED_MAX: usize = 200;

/// Renders a field for a client's name: a drop-down list, or a text field if there are too many.
pub(in crate::studio) fn client_field(
    visit: &PageContext<'_>,
    words: &str,
    name: &str,
    none: &str,
    chosen: &str,
) -> Markup {
    let clients = visit.parts.tokens.clients().all();
    html! {
        label { (words)
            @if clients.len() > LISTED_MAX {
                input type="text" name=(name) value=(chosen) placeholder=(none) spellcheck="false" autocomplete="off";
            } @else {
                select name=(name) {
                    option value="" { (none) }
                    @for client in &clients { option selected[*client.name == *chosen] { (client.name) } }
                }
            }
        }
    }
}

/// Returns the page that a form was sent from: the page that it names, the client's page, or the
/// list.
pub(super) fn form_back(form: &FormFields) -> String {
    match (form.get("to"), form.get("of")) {
        ("", "") => "/clients".to_owned(),
        ("", name) => format!("/clients/{}", percent_encode(name)),
        (path, _) => own_path(path).to_owned(),
    }
}

pub(super) fn side(form: &FormFields) -> Option<String> {
    Some(form.get("side").to_owned()).filter(|side| !side.is_empty())
}

/// Parses the value of a date field (`2026-12-31`, or with a time in UTC), or an RFC 3339 moment.
pub(super) fn read_moment(name: &str, text: &str) -> Result<i64, Refusal> {
    let text = if text.len() == 16 { format!("{text}:00Z") } else { text.to_owned() };
    operate::moment(name, &text)
}
