//! Simple places in messages, without selectors: `$.body.name.name` and `$.headers.name`.

use crate::contract::{Additional, Type, TypeKind, Types};
use std::collections::BTreeSet;

/// The part of a message that contains a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessagePart {
    Body,
    Headers,
}

/// Parses a place into its part and the names that lead to it, or returns `None` if the text is not
/// a simple place. The name of a header is one piece, even with dots.
pub(super) fn parse(text: &str) -> Option<(MessagePart, Vec<&str>)> {
    let (part, names) = text.strip_prefix("$.")?.split_once('.')?;
    let is_name = |name: &&str| !name.is_empty() && !name.contains(['[', ']', '*', '?', '\'', '"']);
    let (part, names): (MessagePart, Vec<&str>) = match part {
        "body" => (MessagePart::Body, names.split('.').collect()),
        "headers" => (MessagePart::Headers, vec![names]),
        _ => return None,
    };
    names.iter().all(is_name).then_some((part, names))
}

/// Details of a place that does not exist, for suggestions.
#[derive(Debug, Default)]
pub(super) struct Missed {
    /// The first name that does not exist.
    pub name: String,
    /// The names that exist in its place.
    pub known: BTreeSet<String>,
}

/// Returns the types that a value can have at a place within `ty`, or an empty list if the place
/// cannot exist.
pub(super) fn walk<'t>(ty: &'t Type, names: &[&str], types: &'t Types, missed: &mut Missed) -> Vec<&'t Type> {
    let Some((name, rest)) = names.split_first() else { return vec![ty] };
    let all = |alternatives: &'t [Type], missed: &mut Missed| {
        alternatives.iter().flat_map(|one| walk(one, names, types, missed)).collect()
    };
    match types.resolve(ty).kind {
        TypeKind::Any => vec![ty],
        TypeKind::Object(object) => match object.field(name) {
            Some(field) => walk(&field.ty, rest, types, missed),
            // An open object without declared members accepts any member.
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
