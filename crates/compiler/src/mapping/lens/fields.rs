//! Finds the fields of a type by their places. A place may also denote the members that the type
//! does not declare.

use crate::contract::{Access, Additional, Field, Object, Type, TypeIn, TypeKind};
use crate::mapping::ast::{FieldPlace, Spanned};
use std::sync::LazyLock;

/// A place and its span.
pub(super) type SpannedPlace = Spanned<FieldPlace>;

/// Name of the place that denotes undeclared members.
pub(super) const OTHERS: &str = "*";

/// A resolved field.
#[derive(Clone, Copy)]
pub(super) struct FoundField<'t> {
    pub(super) ty: TypeIn<'t>,
    /// Whether the field is always present: it and all enclosing objects are required, and the
    /// latter are not nullable.
    pub(super) required: bool,
    /// The value that a service assumes if the field is omitted.
    pub(super) default: Option<&'t str>,
    /// The messages that contain the field, according to the first field on the path that is
    /// restricted to requests or responses.
    pub(super) access: Access,
}

/// Returns the type at a place, and whether the place is always present.
pub(in crate::mapping) fn field_type<'t>(ty: TypeIn<'t>, place: &FieldPlace) -> Option<(TypeIn<'t>, bool)> {
    field_at(ty, place).ok().map(|found| (found.ty, found.required))
}

/// Resolves the field at a place. The error is the index of the first name that does not exist.
pub(super) fn field_at<'t>(ty: TypeIn<'t>, place: &FieldPlace) -> Result<FoundField<'t>, usize> {
    let mut found = FoundField { ty, required: true, default: None, access: Access::Both };
    for (index, name) in place.0.iter().enumerate() {
        if matches!(ty.types.resolve(found.ty.ty).kind, TypeKind::Any) {
            // An untyped value may contain any member.
            return Ok(FoundField { ty: found.ty, required: false, default: None, access: found.access });
        }
        let inside: Option<&Field> = found.ty.object().and_then(|object| object.field(name));
        if inside.is_none() && index == 0 && is_others(place, ty) {
            return others(ty).ok_or(index);
        }
        let field = inside.ok_or(index)?;
        // The root is excluded: its own shape handles null before any line applies.
        let around_is_null = index > 0 && ty.types.resolve(found.ty.ty).nullable;
        found = FoundField {
            ty: ty.types.at(&field.ty),
            required: found.required && field.required && !around_is_null,
            default: field.default.as_deref(),
            access: if found.access == Access::Both { field.access } else { found.access },
        };
    }
    Ok(found)
}

/// Returns the type of undeclared members, or `None` if the object is closed.
fn others(ty: TypeIn<'_>) -> Option<FoundField<'_>> {
    static ANY: LazyLock<Type> = LazyLock::new(Type::default);
    let value = match &ty.object()?.additional {
        Additional::Closed => return None,
        Additional::Open => &*ANY,
        Additional::Of(value) => value,
    };
    Some(FoundField { ty: ty.types.at(value), required: false, default: None, access: Access::Both })
}

/// Returns the fields that no place names, in the order of the type.
pub(super) fn unclaimed_fields(ty: TypeIn<'_>, claimed: &[&FieldPlace]) -> Vec<FieldPlace> {
    let mut missing = Vec::new();
    if let Some(object) = ty.object() {
        walk(ty, object, &mut Vec::new(), claimed, &mut missing);
    }
    missing
}

fn walk(
    ty: TypeIn<'_>,
    object_: &Object,
    at: &mut Vec<String>,
    claimed: &[&FieldPlace],
    missing: &mut Vec<FieldPlace>,
) {
    for field in &object_.fields {
        at.push(field.name.clone());
        let whole = claimed.iter().any(|place| place.0 == *at);
        let within = claimed.iter().any(|place| place.0.len() > at.len() && place.0.starts_with(at));
        match ty.types.at(&field.ty).object() {
            _ if whole => {}
            Some(inner) if within => walk(ty, inner, at, claimed, missing),
            // The members of an untyped value are unknown, so they are never reported as missing.
            None if within => {}
            _ => missing.push(FieldPlace(at.clone())),
        }
        at.pop();
    }
}

/// Returns whether a place denotes undeclared members. A type may declare a member that is really
/// named `*`.
pub(super) fn is_others(place: &FieldPlace, ty: TypeIn<'_>) -> bool {
    matches!(place.0.as_slice(), [name] if name == OTHERS)
        && ty.object().is_none_or(|object| object.field(OTHERS).is_none())
}

/// Returns whether the enclosing object requires the place, and whether the place is nullable.
pub(super) fn is_needed(built: TypeIn<'_>, place: &[String]) -> [bool; 2] {
    let Some((name, around)) = place.split_last() else { return [false; 2] };
    let around = field_at(built, &FieldPlace(around.to_vec()));
    let holder = around.ok().and_then(|around| around.ty.object());
    let field = holder.and_then(|holder| holder.field(name));
    field.map_or([false; 2], |field| [field.required, built.types.resolve(&field.ty).nullable])
}
