//! The notation of places, words and texts in a mapping file.

use super::Drafted;
use crate::init::fields::FieldPath;

/// Formats a place for a message: `details.name`.
pub(super) fn path(place: &FieldPath) -> String {
    place.join(".")
}

/// Formats a place for a line of a shape.
pub(super) fn place(place: &FieldPath) -> Drafted<String> {
    match place.as_slice() {
        [name] if !name.starts_with('$') => Ok(quote(name)),
        [_, ..] if place.iter().all(|name| is_word(name)) => Ok(format!("$.{}", place.join("."))),
        _ => Err(format!("`{}` cannot be named in a shape", path(place))),
    }
}

pub(super) fn is_word(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Converts a name to one for a shape: letters and digits only.
pub(super) fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

pub(super) fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Formats a text as a scalar that is valid in both YAML and JSON flow notation.
pub(in crate::init) fn quote(text: &str) -> String {
    let plain = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        // Words that YAML 1.1 reads as booleans or null.
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "yes" | "no" | "on" | "off" | "y" | "n" | "true" | "false" | "null"
        );
    if plain { text.to_owned() } else { format!("'{}'", one_line(text).replace('\'', "''")) }
}
