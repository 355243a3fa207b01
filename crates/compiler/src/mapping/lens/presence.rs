//! Whether something is there. Objects that are taken apart into places of the other side, or put together out of such, tell
//! of themselves only by what is in them; so an empty one, or one that lacks what it must have, may come back absent.

use super::build::Builder;
use super::{loss, object};
use crate::contract::TypeIn;
use crate::diagnostic::Span;
use crate::mapping::ast::Place;
use std::collections::BTreeSet;

/// A value that goes from a place to a place.
pub(super) struct MappedValue {
    pub source: Place,
    pub target: Place,
    pub span: Span,
    /// Whether the other side tells a value that is there from none.
    pub tells: bool,
    /// Whether something is written where there is none.
    pub is_made: bool,
    /// Whether values that are there may be left out.
    pub is_left_out: bool,
}

impl Builder<'_, '_> {
    /// Lists what is lost of whether something is there. Call when all lines were built.
    pub(super) fn lose_presence(&mut self) {
        let mapped = std::mem::take(&mut self.mapped);
        let mut lost: Vec<(&[String], Span)> = self.untold(&mapped);
        lost.extend(self.left_out(&mapped));
        for (place, span) in lost {
            self.lose_partly(loss::path(&Place(place.to_vec())), span);
        }
    }

    /// Objects around places that are read of which the other side does not tell whether they were there.
    fn untold<'c>(&self, mapped: &'c [MappedValue]) -> Vec<(&'c [String], Span)> {
        let read = self.types[self.from];
        let (mut seen, mut untold) = (BTreeSet::new(), Vec::new());
        for one in mapped {
            for end in 1..one.source.0.len() {
                let around = &one.source.0[..end];
                if !seen.insert(around) {
                    continue;
                }
                let tells = |other: &MappedValue| {
                    other.tells
                        && other.source.0.starts_with(around)
                        && is_sure(read, &other.source.0, end, true)
                };
                let is_told = is_sure(read, around, end - 1, true) || mapped.iter().any(tells);
                if may_be_null(read, around) || !is_told {
                    untold.push((around, one.span));
                }
            }
        }
        untold
    }

    /// Places that are read and go into an object which is not written where another one is absent that it must have.
    fn left_out<'c>(&self, mapped: &'c [MappedValue]) -> Vec<(&'c [String], Span)> {
        let (read, built) = (self.types[self.from], self.types[self.to]);
        let is_at_risk = |one: &MappedValue| {
            (1..one.target.0.len()).any(|end| {
                let into = &one.target.0[..end];
                mapped.iter().any(|other| {
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
}

/// Whether a place must be there wherever its first `from` names lead to an object; with `or_null` unless one of the
/// objects on the way may be null.
fn is_sure(ty: TypeIn<'_>, place: &[String], from: usize, or_null: bool) -> bool {
    let mut holder = ty;
    for (at, name) in place.iter().enumerate() {
        let Some(field) = object(holder).and_then(|object| object.field(name)) else { return false };
        let inner = ty.types.at(&field.ty);
        let is_last = at + 1 == place.len();
        let may_be_null = or_null && !is_last && inner.types.resolve(inner.ty).nullable;
        if at >= from && (!field.required || may_be_null) {
            return false;
        }
        holder = inner;
    }
    true
}

fn may_be_null(ty: TypeIn<'_>, place: &[String]) -> bool {
    let found = super::account::field_at(ty, &Place(place.to_vec()));
    found.is_ok_and(|found| found.ty.types.resolve(found.ty.ty).nullable)
}
