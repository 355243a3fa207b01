//! Fields that no line of a shape names.

use super::LensBuilder;
use super::object::MemberClosing;
use crate::diagnostic::Span;
use crate::mapping::ast::{FieldPlace, RestFill};
use crate::mapping::lens::faults;
use crate::mapping::lens::fields::{field_at, unclaimed_fields};
use crate::mapping::lens::line::ShapeLines;
use crate::mapping::literal;
use switchback_plan::CloseFrom;

impl LensBuilder<'_, '_> {
    /// Applies `rest`. Towards the other side, the fields are dropped. Towards their own side, each
    /// field gets the literal of `rest`; with `lost`, only optional fields may be absent.
    pub(super) fn rest(&mut self, lines: &ShapeLines<'_>) {
        let types = self.types;
        for side in [0, 1] {
            let Some(rest) = lines.rest[side] else { continue };
            let claimed: Vec<&FieldPlace> =
                lines.lines.iter().flat_map(|line| line.places(side)).map(|at| &at.value).collect();
            let missing = unclaimed_fields(types[side], &claimed);
            if side == self.way.from {
                let origin = self.origin(rest.span);
                for place in &missing {
                    if let [name] = place.0.as_slice() {
                        // Claim the name, or the member would pass as an undeclared one.
                        self.object.member(name, origin.clone());
                    }
                    self.losses.lose(place, rest.span);
                }
                continue;
            }
            if let Some(fill) = &rest.fill {
                self.fill_rest(rest.span, fill, missing);
                continue;
            }
            let needed = |place: &&FieldPlace| {
                !self.is_supplied(place) && field_at(types[side], place).is_ok_and(|found| found.required)
            };
            let needed: Vec<_> = missing.iter().filter(needed).map(|place| place.0.join(".")).collect();
            if !needed.is_empty() && !self.with.over {
                let side = self.way.to();
                self.findings.push(faults::rest_has_no_source(self.name, rest.span, &needed, side));
            }
        }
    }

    /// Adds one literal for each field that no line names.
    fn fill_rest(&mut self, span: Span, fill: &RestFill, missing: Vec<FieldPlace>) {
        let (types, to) = (self.types, self.way.to);
        let (value, origin) = (literal::json(&fill.value), self.origin(span));
        let mut misfits = Vec::new();
        for place in missing {
            if self.is_supplied(&place) {
                continue;
            }
            let Ok(found) = field_at(types[to], &place) else { continue };
            if literal::check(&fill.value, found.ty).is_err() {
                // Prefer omitting an optional field to violating its type.
                if !found.required {
                    continue;
                }
                misfits.push((place.0.join("."), found.ty.ty.to_string()));
            }
            self.losses.always(&place, &value, span);
            let what = MemberClosing::From(CloseFrom::Constant(value.clone()));
            self.object.close(&place.0, what, origin.clone());
        }
        match (misfits.is_empty(), fill.despite_type) {
            (false, None) => {
                let names: Vec<String> = misfits.into_iter().map(|(place, _)| place).collect();
                self.findings.push(faults::rest_misfits(fill.value.span, &names, self.way.to()));
            }
            (true, Some(despite)) => self.findings.push(faults::rest_fits(despite)),
            (false, Some(_)) => {
                for (place, ty) in misfits {
                    self.note_despite(&place, &value, &ty, span);
                }
            }
            (true, None) => {}
        }
    }
}
