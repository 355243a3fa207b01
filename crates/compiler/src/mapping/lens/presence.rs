//! Analyzes whether the presence of a value survives translation. An object that is flattened, or
//! assembled from parts, is represented only by its members. An empty one, or one without a
//! required member, may therefore become absent.

use super::fields::field_at;
use crate::contract::TypeIn;
use crate::diagnostic::Span;
use crate::mapping::ast::FieldPlace;
use std::collections::BTreeSet;

/// A value that moves from one place to another.
pub(super) struct MappedValue {
    pub source: FieldPlace,
    pub target: FieldPlace,
    pub span: Span,
    /// Whether the target distinguishes a present value from an absent one.
    pub tells: bool,
    /// Whether an absent value is replaced.
    pub is_made: bool,
    /// Whether a present value may be omitted.
    pub is_left_out: bool,
}

/// Returns the source places that lose their presence. `read` and `built` are the types of both
/// sides.
pub(super) fn lost<'c>(
    mapped: &'c [MappedValue],
    read: TypeIn<'_>,
    built: TypeIn<'_>,
) -> Vec<(&'c [String], Span)> {
    let mut lost = unrevealed(mapped, read);
    lost.extend(left_out(mapped, read, built));
    lost
}

/// Returns the objects around source places that the target cannot reveal as present.
fn unrevealed<'c>(mapped: &'c [MappedValue], read: TypeIn<'_>) -> Vec<(&'c [String], Span)> {
    // Several lines may read from the same object.
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for one in mapped {
        for end in 1..one.source.0.len() {
            let around = &one.source.0[..end];
            if !seen.insert(around) {
                continue;
            }
            let tells = |other: &MappedValue| {
                other.tells && other.source.0.starts_with(around) && is_sure(read, &other.source.0, end, true)
            };
            // A required object needs no trace on the other side: it is always present.
            let is_told = is_sure(read, around, end - 1, true) || mapped.iter().any(tells);
            if may_be_null(read, around) || !is_told {
                found.push((around, one.span));
            }
        }
    }
    found
}

/// Returns the source places within a target object that is omitted if another required member
/// is absent.
fn left_out<'c>(mapped: &'c [MappedValue], read: TypeIn<'_>, built: TypeIn<'_>) -> Vec<(&'c [String], Span)> {
    let is_at_risk = |one: &MappedValue| {
        (1..one.target.0.len()).any(|end| {
            let into = &one.target.0[..end];
            mapped.iter().any(|other| {
                // Below their common ancestor, the other source may be absent while this one is present.
                let common = one.source.0.iter().zip(&other.source.0).take_while(|(a, b)| a == b).count();
                other.target.0 != one.target.0
                    && other.target.0.starts_with(into)
                    && is_sure(built, &other.target.0, end, false)
                    && !other.is_made
                    && (other.is_left_out || !is_sure(read, &other.source.0, common, true))
            })
        })
    };
    mapped.iter().filter(|one| is_at_risk(one)).map(|one| (one.source.0.as_slice(), one.span)).collect()
}

/// Returns whether a place is present whenever its first `from` names lead to an object. With
/// `or_null`, an intermediate object that may be null counts as absent.
fn is_sure(ty: TypeIn<'_>, place: &[String], from: usize, or_null: bool) -> bool {
    let mut holder = ty;
    for (at, name) in place.iter().enumerate() {
        let Some(field) = holder.object().and_then(|object| object.field(name)) else { return false };
        let inner = ty.types.at(&field.ty);
        let is_last = at + 1 == place.len();
        let may_be_null = or_null && !is_last && inner.is_nullable();
        if at >= from && (!field.required || may_be_null) {
            return false;
        }
        holder = inner;
    }
    true
}

fn may_be_null(ty: TypeIn<'_>, place: &[String]) -> bool {
    let found = field_at(ty, &FieldPlace(place.to_vec()));
    found.is_ok_and(|found| found.ty.is_nullable())
}
