//! Edited mapping files in the forms of the playground and of the editor. Each form repeats all of
//! them, so that they move with the user from page to page, and no other user sees them.

use super::PageContext;
use super::fields::FormFields;
use crate::playground::{Edits, FileEdit};
use maud::{Markup, html};

/// Prefixes of the fields with a text, and with the digest of the text that was opened.
const TEXT: &str = "text:";
const OPENED: &str = "opened:";

/// Reads the files of a form whose texts differ from the served ones.
pub(super) fn parse(visit: &PageContext<'_>, form: &FormFields) -> Edits {
    let mut edits = Edits::new();
    for (name, text) in form.all().filter_map(|(field, text)| Some((field.strip_prefix(TEXT)?, text))) {
        let served = visit.parts.workbench.open(name);
        // Browsers send line ends as CRLF, while most files have LF.
        let mut text = text.replace("\r\n", "\n");
        if served.as_ref().is_some_and(|served| served.text.contains("\r\n")) {
            text = text.replace('\n', "\r\n");
        }
        let edit = FileEdit { text, opened: form.get(&format!("{OPENED}{name}")).to_owned() };
        // An unknown file stays, and is refused where it is used.
        if served.is_none_or(|served| served.text != edit.text) {
            edits.insert(name.to_owned(), edit);
        }
    }
    edits
}

/// Returns the fields with the texts of all files but `except`, which has a field of its own.
pub(super) fn hidden(edits: &Edits, except: &str) -> Markup {
    html! {
        @for (name, edit) in edits.iter().filter(|(name, _)| *name != except) {
            input type="hidden" name=(text_field(name)) value=(edit.text);
            (opened(name, edit))
        }
    }
}

/// Returns the field with the digest of the text that was opened.
pub(super) fn opened(name: &str, edit: &FileEdit) -> Markup {
    html! { input type="hidden" name={ (OPENED) (name) } value=(edit.opened); }
}

/// Returns the name of the field with the text of a file.
pub(super) fn text_field(name: &str) -> String {
    format!("{TEXT}{name}")
}

/// Lists the edited files.
pub(super) fn names(edits: &Edits) -> Markup {
    html! {
        @for (at, name) in edits.keys().enumerate() { @if at > 0 { ", " } code { (name) } }
    }
}
