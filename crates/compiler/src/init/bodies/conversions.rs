//! Conversions of a value between two types.

use super::sort;
use super::spelled::quote;
use crate::contract::{
    Additional, Choice, Object, Reference, Scalar, ScalarKind, Test, TypeIn, TypeKind, assignable,
};
use switchback_plan::Message;

pub(super) fn fits(types: [TypeIn<'_>; 2], way: Message) -> bool {
    let (from, to) = sort(way, types);
    assignable(from, to, Some(way)).is_ok()
}

/// Returns the name and kind of a named type that can have a shape.
pub(super) fn named_type<'t>(ty: TypeIn<'t>) -> Option<(&'t Reference, &'t TypeKind)> {
    let TypeKind::Named(reference) = &ty.ty.kind else { return None };
    let kind = ty.kind();
    matches!(kind, TypeKind::Object(_) | TypeKind::Choice(_)).then_some((reference, kind))
}

/// Returns two objects of which at least one has no name. Neither may be null.
pub(super) fn anonymous_objects<'t>(types: [TypeIn<'t>; 2]) -> Option<[&'t Object; 2]> {
    let object = |ty: TypeIn<'t>| ty.object().filter(|object| !object.fields.is_empty() && !ty.is_nullable());
    let [Some(old), Some(new)] = types.map(object) else { return None };
    types.into_iter().any(|ty| named_type(ty).is_none()).then_some([old, new])
}

/// Returns the value types of two maps without declared members.
pub(super) fn map_values<'t>(types: [TypeIn<'t>; 2]) -> Option<[TypeIn<'t>; 2]> {
    let of = |ty: TypeIn<'t>| match ty.object()? {
        Object { fields, additional: Additional::Of(value), .. } if fields.is_empty() => {
            Some(ty.types.at(value))
        }
        _ => None,
    };
    let [old, new] = types.map(of);
    Some([old?, new?])
}

/// Returns the alternative of the other side with the same constant, the same own field, or the
/// same name.
pub(super) fn counterpart<'t>(
    one: TypeIn<'_>,
    at: usize,
    read: &Choice,
    to: TypeIn<'t>,
    built: &'t Choice,
) -> Option<TypeIn<'t>> {
    let by_test = match (&read.test, &built.test) {
        (Test::Constant { values, .. }, Test::Constant { values: known, .. }) => {
            let meant = values.iter().filter(|(_, of)| *of == at).map(|(value, _)| value);
            let mut targets = meant.map(|value| known.iter().find(|(known, _)| known == value));
            targets.next().flatten().map(|(_, target)| *target)
        }
        (Test::OwnField(fields), Test::OwnField(known)) => {
            known.iter().position(|known| *known == fields[at])
        }
        _ => None,
    };
    let name = |ty: TypeIn<'_>| named_type(ty).map(|(reference, _)| reference.name.to_string());
    let by_name = || built.alternatives.iter().position(|other| name(to.types.at(other)) == name(one));
    by_test.or_else(by_name).map(|target| to.types.at(&built.alternatives[target]))
}

/// Returns a conversion with an exact inverse, in the form of a line.
pub(super) fn conversion(types: [TypeIn<'_>; 2], required: [bool; 2], way: Message) -> Option<&'static str> {
    let scalar = |ty: TypeIn<'_>| match ty.kind() {
        TypeKind::Scalar(Scalar { kind, values: None, .. }) => Some(*kind),
        _ => None,
    };
    let nullable = types.map(|ty| ty.is_nullable());
    match (scalar(types[0]), scalar(types[1])) {
        (Some(ScalarKind::Integer), Some(ScalarKind::String)) if way == Message::Request && !nullable[0] => {
            Some("as: integer_to_string")
        }
        (Some(ScalarKind::String), Some(ScalarKind::Integer)) if way == Message::Answer && !nullable[1] => {
            Some("as: string_to_integer")
        }
        // Absent on the old side, null on the new one.
        _ if way == Message::Answer && nullable[1] && !nullable[0] && !required[0] => {
            let from = types[1].types.resolve(types[1].ty);
            let bare = crate::contract::Type { kind: from.kind.clone(), nullable: false, span: from.span };
            assignable(types[1].types.at(&bare), types[0], Some(way)).is_ok().then_some("as: null_is_absent")
        }
        _ => None,
    }
}

/// Returns a table of the common values for an enumeration of which the target lacks some values.
/// The other values are copied. The second result lists them.
pub(super) fn unknown_values(from: TypeIn<'_>, to: TypeIn<'_>, way: Message) -> Option<(String, String)> {
    let listed = |ty: TypeIn<'_>| match ty.kind() {
        TypeKind::Scalar(Scalar { kind: ScalarKind::String, values: Some(values), .. }) if !values.open => {
            Some(values.values.iter().map(ToString::to_string).collect::<Vec<_>>())
        }
        _ => None,
    };
    // The new side would reject an unknown value in a request.
    if from.is_nullable() && !to.is_nullable() || way == Message::Request {
        return None;
    }
    let (source, target) = (listed(from)?, listed(to)?);
    let unknown: Vec<String> = source.iter().filter(|value| !target.contains(value)).cloned().collect();
    let both: Vec<String> = source
        .iter()
        .filter(|value| target.contains(value))
        .map(|value| format!("{0}: {0}", quote(value)))
        .collect();
    if both.is_empty() {
        return None;
    }
    let shown: Vec<&str> = unknown.iter().take(5).map(String::as_str).collect();
    let more = if unknown.len() > shown.len() { ", …" } else { "" };
    Some((format!("as: {{table: {{{}}}}}, else: keep", both.join(", ")), shown.join(", ") + more))
}
