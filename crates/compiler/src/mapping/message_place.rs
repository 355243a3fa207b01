//! Places in a message as `pack.yaml` writes them where nothing is selected: `$.body.name.name`, `$.headers.name`.

use crate::contract::{Additional, Type, TypeKind, Types};
use std::collections::BTreeSet;

/// The part of a message that a place lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Body,
    Headers,
}

/// The part and the names that lead to the place, of header fields in one piece; none where the text is no such place.
pub(super) fn parse(text: &str) -> Option<(Part, Vec<&str>)> {
    let (part, names) = text.strip_prefix("$.")?.split_once('.')?;
    let is_name = |name: &&str| !name.is_empty() && !name.contains(['[', ']', '*', '?', '\'', '"']);
    let (part, names): (Part, Vec<&str>) = match part {
        "body" => (Part::Body, names.split('.').collect()),
        "headers" => (Part::Headers, vec![names]),
        _ => return None,
    };
    names.iter().all(is_name).then_some((part, names))
}

/// What was found on the way to a place that there is none of.
#[derive(Debug, Default)]
pub(super) struct Missed {
    /// The first name that there is none of.
    pub name: String,
    /// The names in its place.
    pub known: BTreeSet<String>,
}

/// The types that a value of a type can have at a place, one member within the other; none where it cannot be there.
pub(super) fn walk<'t>(ty: &'t Type, names: &[&str], types: &'t Types, missed: &mut Missed) -> Vec<&'t Type> {
    let Some((name, rest)) = names.split_first() else { return vec![ty] };
    let all = |alternatives: &'t [Type], missed: &mut Missed| {
        alternatives.iter().flat_map(|one| walk(one, names, types, missed)).collect()
    };
    match types.resolve(ty).kind {
        TypeKind::Any => vec![ty],
        TypeKind::Object(object) => match object.field(name) {
            Some(field) => walk(&field.ty, rest, types, missed),
            // An object that names no member of its own can have any, where others are allowed.
            None if object.fields.is_empty() && !matches!(object.additional, Additional::Closed) => vec![ty],
            None => {
                (*name).clone_into(&mut missed.name);
                missed.known.extend(object.fields.iter().map(|field| field.name.clone()));
                Vec::new()
            }
        },
        TypeKind::OneOf(alternatives) => all(alternatives, missed),
        TypeKind::Choice(choice) => all(&choice.alternatives, missed),
        _ => {
            (*name).clone_into(&mut missed.name);
            Vec::new()
        }
    }
}
