//! Small facts about places, kinds and conversions that the account of losses needs.

use crate::mapping::ast::Place;
use switchback_plan::Kinds;

/// A place as a path from the value: `$.a.b`.
pub(super) fn path(place: &Place) -> String {
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

/// The kind that a word of `by_kind` stands for.
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

/// The kinds in `have` that `covered` lacks, in words; null aside, which is passed over.
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
