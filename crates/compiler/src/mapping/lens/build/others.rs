//! `'*'`: the members that no line names and no contract declares.
//!
//! They pass through where both types permit additional members, because a mapping does not touch
//! members that it does not name. Otherwise they are listed as a loss.

use super::{LensBuilder, yields_nothing};
use crate::contract::{Additional, Narrowing, TypeKind, compare, unread};
use crate::diagnostic::Span;
use crate::mapping::ast::{ConversionUse, FieldPlace, Fill, ShapeUse};
use crate::mapping::lens::faults;
use crate::mapping::lens::fields::{OTHERS, SpannedPlace, field_at, is_others};
use crate::mapping::lens::line::{LineKind, ShapeLine, ShapeLines};
use std::collections::BTreeSet;
use switchback_plan::{Others, ValueOp};

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
            self.findings.push(faults::others_left_out(places[self.way.from].span));
        }
        self.object.others = Some(match op {
            ValueOp::Keep => Others::Keep,
            op => Others::Each(op),
        });
    }

    /// Handles `'*'` on the source side only.
    pub(super) fn leave_others(&mut self, span: Span, at: &SpannedPlace, fill: &Fill) {
        self.object.others = match fill {
            Fill::Refuse(reason) => {
                let Some(reason) = self.way.world.names.reason(reason, self.findings) else { return };
                self.lens.refuses.push(reason);
                Some(Others::Refuse(reason))
            }
            _ => {
                self.losses.lose(&at.value, span);
                Some(Others::Drop)
            }
        };
    }

    /// Determines the treatment of undeclared members without a line, and of those in flattened
    /// objects.
    pub(super) fn add_others(&mut self, lines: &ShapeLines<'_>) {
        self.unnamed_within(lines);
        if let (Some(from), Some(to)) = (self.types[self.way.from].object(), self.types[self.way.to].object())
        {
            let found: Vec<Narrowing> =
                unread(&from.unread, &to.unread).into_iter().map(Narrowing::of_both_messages).collect();
            let value = FieldPlace(Vec::new());
            self.losses.narrow(&found, &value, &value, lines.span);
        }
        if self.object.others.is_none() {
            self.object.others = Some(self.unsaid(lines));
        }
        // An undeclared member must not collide with a declared member of the target.
        if matches!(self.object.others, Some(Others::Keep | Others::Each(_))) {
            let origin = self.origin(lines.span);
            let built = self.types[self.way.to];
            let mut shadowed = Vec::new();
            for field in built.object().map(|object| &object.fields[..]).unwrap_or_default() {
                if self.object.shadow(&field.name, &origin) {
                    shadowed.push(format!("`{}`", field.name));
                }
            }
            if !shadowed.is_empty() && self.promises_others(lines) {
                let values = format!("members named {}", shadowed.join(", "));
                let lost = Narrowing { path: "$".to_owned(), values, only_in: None, is_of_target: false };
                let place = FieldPlace(vec![OTHERS.to_owned()]);
                self.losses.narrow(&[lost], &place, &place, lines.span);
            }
        }
    }

    /// Returns whether undeclared members are part of the contract: the source's contract has a
    /// type for them, or a line passes them. A contract that merely leaves an object open
    /// guarantees its fields only.
    fn promises_others(&self, lines: &ShapeLines<'_>) -> bool {
        let read = self.types[self.way.from];
        let has_type = read.object().is_some_and(|object| matches!(object.additional, Additional::Of(_)));
        let is_kept = |line: &ShapeLine<'_>| matches!(&line.what, LineKind::Both { places, .. } if is_others(&places[self.way.from].value, read));
        has_type || lines.lines.iter().any(is_kept)
    }

    fn unsaid(&mut self, lines: &ShapeLines<'_>) -> Others {
        let (read, built) = (self.types[self.way.from], self.types[self.way.to]);
        let (Some(from), Some(to)) = (read.object(), built.object()) else { return Others::Drop };
        let place = FieldPlace(vec![OTHERS.to_owned()]);
        let taken =
            |line: &ShapeLine<'_>| line.places(self.way.to).iter().any(|at| is_others(&at.value, built));
        match (&from.additional, &to.additional) {
            (Additional::Closed, _) => Others::Drop,
            (_, Additional::Closed) => {
                self.losses.lose(&place, lines.span);
                Others::Drop
            }
            // The line covers additional members of the target, which have another origin.
            _ if lines.lines.iter().any(taken) => {
                self.losses.lose(&place, lines.span);
                Others::Drop
            }
            (Additional::Of(from), Additional::Of(to)) => {
                match compare(read.types.at(from), built.types.at(to), self.message()) {
                    Ok(narrowings) => self.losses.narrow(&narrowings, &place, &place, lines.span),
                    Err(why) => {
                        self.findings.push(faults::others_unaccounted(lines.span, &why, self.way));
                    }
                }
                Others::Keep
            }
            // The contract does not restrict the source's members, so some of them may not fit.
            (Additional::Open, Additional::Of(to)) => {
                let found = Narrowing::of_both_messages(format!("members that are no {to}"));
                self.losses.narrow(&[found], &place, &place, lines.span);
                Others::Keep
            }
            _ => Others::Keep,
        }
    }

    /// Records the undeclared members of flattened objects as lost.
    fn unnamed_within(&mut self, lines: &ShapeLines<'_>) {
        let read = self.types[self.way.from];
        let from = self.way.from;
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
                let has_others = match found.ty.kind() {
                    TypeKind::Object(object) => object.additional != Additional::Closed,
                    kind => *kind == TypeKind::Any,
                };
                if has_others {
                    let others = around.iter().cloned().chain([OTHERS.to_owned()]).collect();
                    self.losses.lose(&FieldPlace(others), *span);
                }
            }
        }
    }
}
