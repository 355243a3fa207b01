//! Checks that the lines of a shape cover every field of both types exactly once.

use super::line::{ShapeLines, SpannedPlace};
use super::others::{self, is_others};
use super::{LensEnv, faults, object};
use crate::contract::{Access, Additional, Field, Object, Type, TypeIn, TypeKind};
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::FieldPlace;
use std::sync::LazyLock;

/// Reports places that their type lacks, places that two lines claim, and fields that no line
/// names. `shape` is the span of the declaration.
pub(super) fn check(
    world: &LensEnv<'_>,
    lines: &ShapeLines<'_>,
    types: [TypeIn<'_>; 2],
    shape: Span,
    findings: &mut Findings,
) {
    others::check_form(world, lines, types, findings);
    for side in [0, 1] {
        let places: Vec<&SpannedPlace> = lines.lines.iter().flat_map(|line| line.places(side)).collect();
        let mut known = Vec::new();
        for at in places {
            if field_at(types[side], &at.value).is_err_and(|at_name| {
                findings.push(faults::unknown_field(at, at_name, types[side], world, side));
                true
            }) {
                continue;
            }
            // A line for an object covers its fields, so a line for one of these would write them
            // twice.
            match known.iter().find(|other: &&&SpannedPlace| overlap(&other.value, &at.value)) {
                Some(other) => findings.push(faults::claimed_twice(at, other.span, world, side)),
                None => known.push(at),
            }
        }
        // A copy does not claim its source, which has a line of its own. The source must exist all
        // the same.
        for (at, from_side) in lines.lines.iter().filter_map(super::account::copied_place) {
            if from_side == side
                && let Err(name) = field_at(types[side], &at.value)
            {
                findings.push(faults::unknown_field(at, name, types[side], world, side));
            }
        }
        let claimed: Vec<&FieldPlace> = known.iter().map(|at| &at.value).collect();
        let missing = unclaimed_fields(types[side], &claimed);
        match lines.rest[side] {
            Some(rest) if missing.is_empty() => findings.push(faults::empty_rest(rest.span, world, side)),
            Some(_) => {}
            None => {
                for place in missing {
                    findings.push(faults::unclaimed_field(&place, types, shape, world, side));
                }
            }
        }
    }
}

/// Returns the source of a copy and its side.
fn copied_place<'l>(line: &'l super::line::ShapeLine<'_>) -> Option<(&'l SpannedPlace, usize)> {
    match &line.what {
        super::line::LineKind::Copy { to, from, .. } => Some((from, 1 - to)),
        _ => None,
    }
}

/// Returns whether one place equals or contains the other.
fn overlap(a: &FieldPlace, b: &FieldPlace) -> bool {
    a.0.iter().zip(&b.0).all(|(a, b)| a == b)
}

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
        let inside: Option<&Field> = object(found.ty).and_then(|object| object.field(name));
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
    let value = match &object(ty)?.additional {
        Additional::Closed => return None,
        Additional::Open => &*ANY,
        Additional::Of(value) => value,
    };
    Some(FoundField { ty: ty.types.at(value), required: false, default: None, access: Access::Both })
}

/// Returns the fields that no place names, in the order of the type.
pub(super) fn unclaimed_fields(ty: TypeIn<'_>, claimed: &[&FieldPlace]) -> Vec<FieldPlace> {
    let mut missing = Vec::new();
    if let Some(object) = object(ty) {
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
        match object(ty.types.at(&field.ty)) {
            _ if whole => {}
            Some(inner) if within => walk(ty, inner, at, claimed, missing),
            // The members of an untyped value are unknown, so they are never reported as missing.
            None if within => {}
            _ => missing.push(FieldPlace(at.clone())),
        }
        at.pop();
    }
}
