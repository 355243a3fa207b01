//! Helpers for the list of losses: paths and kinds.

use crate::mapping::ast::FieldPlace;
use switchback_plan::Kinds;

/// Returns a place as a path from the value, such as `$.a.b`.
pub(super) fn path(place: &FieldPlace) -> String {
    place.0.iter().fold("$".to_owned(), |path, name| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        if plain || name == "*" {
            format!("{path}.{name}")
        } else {
            format!("{path}['{}']", name.replace('\'', "\\'"))
        }
    })
}

/// Returns the kind for a word of `by_kind`.
pub(super) fn kind(word: &str) -> Kinds {
    let mut kinds = Kinds::default();
    match word {
        "boolean" => kinds.boolean = true,
        "string" => kinds.string = true,
        "object" => kinds.object = true,
        "array" => kinds.array = true,
        _ => kinds.number = true,
    }
    kinds
}

pub(super) fn union(a: Kinds, b: Kinds) -> Kinds {
    Kinds {
        null: a.null || b.null,
        boolean: a.boolean || b.boolean,
        number: a.number || b.number,
        string: a.string || b.string,
        array: a.array || b.array,
        object: a.object || b.object,
    }
}

/// Returns the names of the kinds in `have` that `covered` lacks. Null is ignored, because it
/// passes through.
pub(super) fn words_beyond(have: Kinds, covered: Kinds) -> Vec<&'static str> {
    let pairs = [
        (have.boolean, covered.boolean, "boolean"),
        (have.number, covered.number, "number"),
        (have.string, covered.string, "string"),
        (have.array, covered.array, "array"),
        (have.object, covered.object, "object"),
    ];
    pairs.iter().filter(|(have, covered, _)| *have && !*covered).map(|(_, _, word)| *word).collect()
}
