//! Checks that the lines of a shape cover every field of both types exactly once.

use super::fields::{FoundField, SpannedPlace, field_at, is_others, unclaimed_fields};
use super::line::{LineKind, ShapeLine, ShapeLines};
use super::{LensEnv, faults};
use crate::contract::TypeIn;
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::{FieldPlace, Fill};
use crate::mapping::references::ResolvedKind;

/// Reports places that their type lacks, places that two lines claim, and fields that no line
/// names. `shape` is the span of the declaration.
pub(super) fn check(
    world: &LensEnv<'_>,
    lines: &ShapeLines<'_>,
    types: [TypeIn<'_>; 2],
    shape: Span,
    findings: &mut Findings,
) {
    record(world, lines, types);
    check_others(world, lines, types, findings);
    for side in [0, 1] {
        let places: Vec<&SpannedPlace> = lines.lines.iter().flat_map(|line| line.places(side)).collect();
        let mut known = Vec::new();
        for at in places {
            if field_at(types[side], &at.value).is_err_and(|at_name| {
                findings.push(faults::unknown_field(at, at_name, types[side], world.side(side)));
                true
            }) {
                continue;
            }
            // A line for an object covers its fields, so a line for one of these would write them
            // twice.
            match known.iter().find(|other: &&&SpannedPlace| overlap(&other.value, &at.value)) {
                Some(other) => findings.push(faults::claimed_twice(at, other.span, world.side(side))),
                None => known.push(at),
            }
        }
        // A copy does not claim its source, which has a line of its own. The source must exist all
        // the same.
        for (at, from_side) in lines.lines.iter().filter_map(copied_place) {
            if from_side == side
                && let Err(name) = field_at(types[side], &at.value)
            {
                findings.push(faults::unknown_field(at, name, types[side], world.side(side)));
            }
        }
        let claimed: Vec<&FieldPlace> = known.iter().map(|at| &at.value).collect();
        let missing = unclaimed_fields(types[side], &claimed);
        match lines.rest[side] {
            Some(rest) if missing.is_empty() => {
                findings.push(faults::empty_rest(rest.span, world.side(side)))
            }
            Some(_) => {}
            None => {
                for place in missing {
                    findings.push(faults::unclaimed_field(&place, types, shape, world, side));
                }
            }
        }
    }
}

/// Records the fields of each line. The description of a field includes its counterpart.
fn record(world: &LensEnv<'_>, lines: &ShapeLines<'_>, types: [TypeIn<'_>; 2]) {
    for line in &lines.lines {
        let own = [0, 1].into_iter().flat_map(|side| line.places(side).into_iter().map(move |at| (at, side)));
        let fields: Vec<_> = own
            .chain(copied_place(line))
            .filter_map(|(at, side)| Some((at, side, field_at(types[side], &at.value).ok()?)))
            .collect();
        let about = |(at, side, found): &(&SpannedPlace, usize, FoundField<'_>)| {
            let presence = if found.required { "required" } else { "optional" };
            let default = found.default.map(|value| format!(", default `{value}`")).unwrap_or_default();
            let (side, place) = (world.side(*side), at.value.0.join("."));
            format!("`{side}` {place}: `{}`, {presence}{default}", found.ty.ty)
        };
        for (at, _, found) in &fields {
            let about = || fields.iter().map(about).collect::<Vec<_>>().join("\n\n");
            world.names.references.add(at.span, ResolvedKind::Field, found.ty.ty.span, about);
        }
    }
}

/// Returns the source of a copy and its side.
fn copied_place<'l>(line: &'l ShapeLine<'_>) -> Option<(&'l SpannedPlace, usize)> {
    match &line.what {
        LineKind::Copy { to, from, .. } => Some((from, 1 - to)),
        _ => None,
    }
}

/// Returns whether one place equals or contains the other.
fn overlap(a: &FieldPlace, b: &FieldPlace) -> bool {
    a.0.iter().zip(&b.0).all(|(a, b)| a == b)
}

/// Reports lines for `'*'` that are only valid for a single member.
fn check_others(
    world: &LensEnv<'_>,
    lines: &ShapeLines<'_>,
    types: [TypeIn<'_>; 2],
    findings: &mut Findings,
) {
    for line in &lines.lines {
        let others = |at: &SpannedPlace, side: usize| is_others(&at.value, types[side]);
        let of_line: Vec<&SpannedPlace> = [0, 1]
            .into_iter()
            .flat_map(|side| line.places(side).into_iter().filter(move |at| others(at, side)))
            .collect();
        let Some(at) = of_line.first() else { continue };
        let is_right = match &line.what {
            LineKind::Both { places, defaults, .. } => {
                places.iter().enumerate().all(|(side, at)| others(at, side))
                    && defaults.iter().all(Option::is_none)
            }
            LineKind::Only { fill, .. } => matches!(fill, Fill::Absent | Fill::Nothing | Fill::Refuse(_)),
            LineKind::Copy { .. } | LineKind::Constant { .. } | LineKind::ByKind { .. } => false,
        };
        if !is_right {
            let [old, new] = world.sides();
            findings.push(faults::others_form(at.span, old, new));
        }
    }
}
