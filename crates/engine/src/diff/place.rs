//! Formats places in a body as text: `$[3].name`, or with every index as `*`.

use crate::redact::{Redactor, is_active};
use switchback_plan::Disclosed;

/// One step down into a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Member(String),
    Element(usize),
}

/// Returns the place and its pattern. Names that look like secrets or that are data are replaced by
/// their hash. `root` states which parts of the body may be disclosed.
pub(super) fn texts(steps: &[Step], redactor: &Redactor, root: Disclosed<'_>) -> (String, String) {
    let (mut place, mut pattern) = ("$".to_owned(), "$".to_owned());
    let mut around = root;
    for step in steps {
        match step {
            Step::Element(at) => {
                place.push_str(&format!("[{at}]"));
                pattern.push_str("[*]");
                around = around.element();
            }
            Step::Member(name) => {
                let shown = member(name, redactor, around);
                place.push_str(&shown);
                pattern.push_str(&shown);
                around = around.member(name);
            }
        }
    }
    (place, pattern)
}

/// Returns the disclosure that applies at a place.
pub(super) fn disclosure_at<'d>(steps: &[Step], root: Disclosed<'d>) -> Disclosed<'d> {
    steps.iter().fold(root, |around, step| match step {
        Step::Element(_) => around.element(),
        Step::Member(name) => around.member(name),
    })
}

fn member(name: &str, redactor: &Redactor, around: Disclosed<'_>) -> String {
    if redactor.masks_name(name) || around.is_data_name(name) {
        // The hash discloses no name, but equal names remain comparable.
        return format!("['#{}']", redactor.hash(name.as_bytes()));
    }
    member_path(name)
}

/// Formats a step to a member: `.name`, or `['na me']` if the name is not an identifier.
pub(super) fn member_path(name: &str) -> String {
    let is_plain = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain {
        return format!(".{name}");
    }
    let mut shown: String = name.chars().take(NAME_CHARS_MAX).flat_map(escape).collect();
    if name.chars().count() > NAME_CHARS_MAX {
        shown.push('…');
    }
    format!("['{shown}']")
}

/// Parses a place in the compiler's notation into names, with `*` for every index. Returns `None`
/// if the text is not a place.
pub(super) fn names(place: &str) -> Option<Vec<String>> {
    let mut rest = place.strip_prefix('$')?;
    let mut names = Vec::new();
    while !rest.is_empty() {
        if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            names.push(name[..end].to_owned());
            rest = &name[end..];
        } else if let Some(quoted) = rest.strip_prefix("['") {
            let end = quoted.find("']")?;
            names.push(quoted[..end].replace("\\'", "'"));
            rest = &quoted[end + 2..];
        } else {
            let (_, after) = rest.strip_prefix('[')?.split_once(']')?;
            names.push("*".to_owned());
            rest = after;
        }
    }
    Some(names)
}

/// Maximum number of characters of a member name in a place.
const NAME_CHARS_MAX: usize = 64;

fn escape(c: char) -> impl Iterator<Item = char> {
    let text = match c {
        '\'' | '\\' => format!("\\{c}"),
        c if is_active(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().collect::<Vec<_>>().into_iter()
}
