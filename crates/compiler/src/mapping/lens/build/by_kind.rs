//! `by_kind`: one place of the old side, and several of the new side by the kind of the value.

use super::LensBuilder;
use super::object::MemberClosing;
use crate::contract::{TypeIn, TypeKind, assignable_but_for_null};
use crate::diagnostic::Span;
use crate::mapping::lens::facts::kinds_of;
use crate::mapping::lens::fields::{SpannedPlace, field_at};
use crate::mapping::lens::presence::MappedValue;
use crate::mapping::lens::{faults, loss};
use crate::mapping::literal;
use crate::yaml::Node;
use switchback_json::raw::Kind;
use switchback_plan::{Absent, Captured, CloseFrom, Key, Kinds, Origin, ValueOp};

impl LensBuilder<'_, '_> {
    pub(super) fn by_kind(
        &mut self,
        span: Span,
        old: &SpannedPlace,
        new: &[(&str, &SpannedPlace)],
        default: Option<&Node>,
    ) {
        let origin = self.origin(span);
        self.lose_by_kind(span, old, new, default.is_some());
        if self.way.to == 1 {
            for (kind, place) in new {
                let captured = self.of_kind(old, kind, old, &origin);
                let from = CloseFrom::Captured { alternatives: vec![captured], absent: Absent::Omit };
                self.write(place, from, &origin);
            }
            self.check_new(old, new);
            return;
        }
        let alternatives = new.iter().map(|(kind, place)| self.of_kind(place, kind, old, &origin)).collect();
        let absent = default.map_or(Absent::Omit, |value| Absent::Value(literal::json(value)));
        self.write(old, CloseFrom::Captured { alternatives, absent }, &origin);
        self.check_old(old, new, default);
    }

    /// Records the losses: towards the old side, all but the first of several present places; in
    /// either direction, the absence of a value or null where a default replaces it.
    fn lose_by_kind(
        &mut self,
        span: Span,
        old: &SpannedPlace,
        new: &[(&str, &SpannedPlace)],
        has_default: bool,
    ) {
        let of_side = |place: &SpannedPlace| field_at(self.types[self.way.from], &place.value).ok();
        let may_lack = |place: &SpannedPlace| {
            of_side(place).is_none_or(|found| !found.required || found.ty.is_nullable())
        };
        let lost: Vec<&SpannedPlace> = match self.way.to {
            1 if may_lack(old) => vec![old],
            1 => Vec::new(),
            _ if has_default || new.len() > 1 => new.iter().map(|(_, place)| *place).collect(),
            _ => new.iter().map(|(_, place)| *place).filter(|place| may_lack(place)).collect(),
        };
        for place in &lost {
            self.losses.lose_partly(loss::path(&place.value), span);
        }
        for (_, place) in new {
            let (source, target) = if self.way.to == 1 { (old, *place) } else { (*place, old) };
            let (source, target) = (source.value.clone(), target.value.clone());
            let is_made = self.way.to == 0 && has_default;
            self.mapped.push(MappedValue { source, target, span, tells: false, is_made, is_left_out: false });
        }
    }

    /// Captures the value at `source` if it is of this kind.
    fn of_kind(
        &mut self,
        source: &SpannedPlace,
        kind: &str,
        old: &SpannedPlace,
        origin: &Origin,
    ) -> Captured {
        let why = || format!("the kind of `{}` decides", old.value.0.join("."));
        let slot = self.capture(&source.value.0[0], origin, why);
        let path = source.value.0[1..].iter().map(|name| Key::new(name)).collect();
        Captured { slot, path, only: Some(kinds(&[kind])), op: ValueOp::Keep }
    }

    fn write(&mut self, place: &SpannedPlace, from: CloseFrom, origin: &Origin) {
        self.object.close(&place.value.0, MemberClosing::From(from), origin.clone());
    }

    /// Checks that each kind of the old place has a place on the new side that accepts it and may
    /// be absent.
    fn check_new(&mut self, old: &SpannedPlace, new: &[(&str, &SpannedPlace)]) {
        let (types, way) = (self.types, self.way);
        let Ok(read) = field_at(types[0], &old.value) else { return };
        let covered = kinds(&new.iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
        let missing = beyond(kinds_of(read.ty), covered);
        if !missing.is_empty() {
            self.findings.push(faults::by_kind_gap(old, &missing));
        }
        for (kind, place) in new {
            let Ok(built) = field_at(types[1], &place.value) else { continue };
            let of_kind = |one: &TypeIn<'_>| beyond(kinds_of(*one), kinds(&[kind])).is_empty();
            let wrong = alternatives(read.ty).into_iter().filter(of_kind).find_map(|one| {
                let why = assignable_but_for_null(one, built.ty).err()?;
                Some(faults::types(old, &why, way, one, built.ty))
            });
            let others = beyond(kinds_of(read.ty), kinds(&[kind]));
            let may_lack = !read.required || (missing.is_empty() && !others.is_empty());
            // A required place would lack a value whenever the old one is of another kind.
            let chosen = (built.required && may_lack && !self.with.over)
                .then(|| faults::by_kind_chosen(place, way.to()));
            self.findings.extend(wrong.into_iter().chain(chosen));
        }
    }

    /// Checks that the value at each new place is of its kind and fits the old place, and that a
    /// required old place always gets a value.
    fn check_old(&mut self, old: &SpannedPlace, new: &[(&str, &SpannedPlace)], default: Option<&Node>) {
        let (types, way) = (self.types, self.way);
        let Ok(built) = field_at(types[0], &old.value) else { return };
        for (kind, place) in new {
            let Ok(read) = field_at(types[1], &place.value) else { continue };
            let other = beyond(kinds_of(read.ty), kinds(&[kind]));
            if !other.is_empty() {
                self.findings.push(faults::by_kind_other(place, kind, &other));
            } else if let Err(why) = assignable_but_for_null(read.ty, built.ty) {
                self.findings.push(faults::types(place, &why, way, read.ty, built.ty));
            }
        }
        if let Some(value) = default.filter(|value| literal::check(value, built.ty).is_err()) {
            self.findings.push(faults::literal(value.span, &old.value, built.ty, way.to()));
        }
        if built.required && default.is_none() && !self.with.over {
            self.findings.push(faults::by_kind_silent(old, way));
        }
    }
}

/// Returns the alternatives of a type, or the type itself.
fn alternatives(ty: TypeIn<'_>) -> Vec<TypeIn<'_>> {
    match ty.kind() {
        TypeKind::OneOf(alternatives) => alternatives.iter().map(|one| ty.types.at(one)).collect(),
        _ => vec![ty],
    }
}

/// Returns the kinds for words of `by_kind`. `integer` and `number` are the same kind.
fn kinds(words: &[&str]) -> Kinds {
    let kind =
        |word: &&str| WORDS.iter().find(|(known, _)| known == word).map_or(Kind::Number, |(_, kind)| *kind);
    Kinds::from_kinds(&words.iter().map(kind).collect::<Vec<_>>())
}

/// Returns the names of the kinds in `have` that `covered` lacks. Null is ignored, because it
/// passes through.
fn beyond(have: Kinds, covered: Kinds) -> Vec<&'static str> {
    let is_beyond = |(_, kind): &&(&str, Kind)| have.contains(*kind) && !covered.contains(*kind);
    WORDS.iter().filter(is_beyond).map(|(word, _)| *word).collect()
}

const WORDS: [(&str, Kind); 5] = [
    ("boolean", Kind::Bool),
    ("number", Kind::Number),
    ("string", Kind::String),
    ("array", Kind::Array),
    ("object", Kind::Object),
];
