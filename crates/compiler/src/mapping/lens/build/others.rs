//! `'*'`: the members that no line names and no contract declares.
//!
//! They pass through where both types permit additional members, because a mapping does not touch
//! what it does not name. Otherwise they are listed as a loss.

use super::account::field_at;
use super::build::{LensBuilder, yields_nothing};
use super::line::{LineKind, ShapeLine, ShapeLines, SpannedPlace};
use super::{LensEnv, faults, object};
use crate::contract::{Additional, Narrowing, TypeIn, TypeKind, compare, unread};
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::{ConversionUse, FieldPlace, Fill, ShapeUse};
use std::collections::BTreeSet;
use switchback_plan::{Others, ValueOp};

const NAME: &str = "*";

/// Returns whether a place denotes undeclared members. A type may declare a member that is really
/// named `*`.
pub(super) fn is_others(place: &FieldPlace, ty: TypeIn<'_>) -> bool {
    matches!(place.0.as_slice(), [name] if name == NAME)
        && object(ty).is_none_or(|object| object.field(NAME).is_none())
}

/// Reports lines for `'*'` that are only valid for a single member.
pub(super) fn check_form(
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
            let [old, new] = [0, 1].map(|side| world.program.manifest.sides[side].value.as_str());
            findings.push(faults::others_form(at.span, old, new));
        }
    }
}

impl LensBuilder<'_, '_> {
    /// Handles `'*'` on both sides: passes the members, each through the shape or conversion of the
    /// line.
    pub(super) fn both_others(
        &mut self,
        span: Span,
        places: &[SpannedPlace; 2],
        shape: Option<&ShapeUse>,
        conversion: Option<&ConversionUse>,
    ) {
        let Some((_, op, _)) = self.way(span, places, shape, conversion) else { return };
        if yields_nothing(&op) {
            self.findings.push(faults::others_left_out(places[self.from].span));
        }
        self.others = Some(match op {
            ValueOp::Keep => Others::Keep,
            op => Others::Each(op),
        });
    }

    /// Handles `'*'` on the source side only.
    pub(super) fn leave_others(&mut self, span: Span, at: &SpannedPlace, fill: &Fill) {
        self.others = match fill {
            Fill::Refuse(reason) => {
                let Some(reason) = self.lenses.world.names.reason(reason, self.findings) else { return };
                self.refuses.push(reason);
                Some(Others::Refuse(reason))
            }
            _ => {
                self.lose(&at.value, span);
                Some(Others::Drop)
            }
        };
    }

    /// Determines the treatment of undeclared members without a line, and of those in objects that
    /// are taken apart.
    pub(super) fn add_others(&mut self, lines: &ShapeLines<'_>) {
        self.unnamed_within(lines);
        if let (Some(from), Some(to)) = (object(self.types[self.from]), object(self.types[self.to])) {
            let found: Vec<Narrowing> =
                unread(&from.unread, &to.unread).into_iter().map(Narrowing::of_both_messages).collect();
            self.lose_narrower_others(&found, &FieldPlace(Vec::new()), lines.span);
        }
        if self.others.is_none() {
            self.others = Some(self.unsaid(lines));
        }
        // An undeclared member must not collide with a declared member of the target.
        if matches!(self.others, Some(Others::Keep | Others::Each(_))) {
            let origin = self.origin(lines.span);
            let built = self.types[self.to];
            let mut shadowed = Vec::new();
            for field in object(built).map(|object| &object.fields[..]).unwrap_or_default() {
                if self.shadow(&field.name, &origin) {
                    shadowed.push(format!("`{}`", field.name));
                }
            }
            if !shadowed.is_empty() && self.promises_others(lines) {
                let values = format!("members named {}", shadowed.join(", "));
                let lost = Narrowing { path: "$".to_owned(), values, only_in: None, is_of_target: false };
                self.lose_narrower_others(&[lost], &FieldPlace(vec![NAME.to_owned()]), lines.span);
            }
        }
    }

    /// Returns whether undeclared members are part of the contract: the source's contract has a
    /// type for them, or a line passes them. A contract that merely leaves an object open
    /// guarantees its fields only.
    fn promises_others(&self, lines: &ShapeLines<'_>) -> bool {
        let read = self.types[self.from];
        let has_type = object(read).is_some_and(|object| matches!(object.additional, Additional::Of(_)));
        let is_kept = |line: &ShapeLine<'_>| matches!(&line.what, LineKind::Both { places, .. } if is_others(&places[self.from].value, read));
        has_type || lines.lines.iter().any(is_kept)
    }

    fn unsaid(&mut self, lines: &ShapeLines<'_>) -> Others {
        let (read, built) = (self.types[self.from], self.types[self.to]);
        let (Some(from), Some(to)) = (object(read), object(built)) else { return Others::Drop };
        let place = FieldPlace(vec![NAME.to_owned()]);
        let taken = |line: &ShapeLine<'_>| line.places(self.to).iter().any(|at| is_others(&at.value, built));
        match (&from.additional, &to.additional) {
            (Additional::Closed, _) => Others::Drop,
            (_, Additional::Closed) => {
                self.lose(&place, lines.span);
                Others::Drop
            }
            // The line covers additional members of the target, which have another origin.
            _ if lines.lines.iter().any(taken) => {
                self.lose(&place, lines.span);
                Others::Drop
            }
            (Additional::Of(from), Additional::Of(to)) => {
                match compare(read.types.at(from), built.types.at(to), self.message()) {
                    Ok(narrowings) => self.lose_narrower_others(&narrowings, &place, lines.span),
                    Err(why) => {
                        let way =
                            faults::Direction { world: &self.lenses.world, from: self.from, to: self.to };
                        self.findings.push(faults::others_unaccounted(lines.span, &why, &way));
                    }
                }
                Others::Keep
            }
            // The contract does not restrict the source's members, so some of them may not fit.
            (Additional::Open, Additional::Of(to)) => {
                let found = Narrowing::of_both_messages(format!("members that are no {to}"));
                self.lose_narrower_others(&[found], &place, lines.span);
                Others::Keep
            }
            _ => Others::Keep,
        }
    }

    /// Records the undeclared members of objects that are taken apart as lost.
    fn unnamed_within(&mut self, lines: &ShapeLines<'_>) {
        let read = self.types[self.from];
        let from = self.from;
        let places: Vec<(&FieldPlace, Span)> = lines
            .lines
            .iter()
            .flat_map(|line| line.places(from).into_iter().map(move |at| (&at.value, line.span)))
            .collect();
        let whole: BTreeSet<&[String]> = places.iter().map(|(place, _)| place.0.as_slice()).collect();
        let mut seen = BTreeSet::new();
        for (place, span) in &places {
            for len in 1..place.0.len() {
                let around = &place.0[..len];
                if whole.contains(around) || !seen.insert(around) {
                    continue;
                }
                let Ok(found) = field_at(read, &FieldPlace(around.to_vec())) else { continue };
                // Members of a closed object are all declared, so each is covered by a line or
                // reported.
                let has_others = match found.ty.types.resolve(found.ty.ty).kind {
                    TypeKind::Object(object) => object.additional != Additional::Closed,
                    kind => *kind == TypeKind::Any,
                };
                if has_others {
                    let others = around.iter().cloned().chain([NAME.to_owned()]).collect();
                    self.lose(&FieldPlace(others), *span);
                }
            }
        }
    }
}
