//! Builds the op of a shape in one direction, and the list of its losses.

mod by_kind;
mod object;
mod others;
mod rest;

use super::convert::{self, Lost, ParsedConversion, ReadyConversion};
use super::facts::closed_values;
use super::fields::{self, FoundField, SpannedPlace, field_at, is_others};
use super::line::{LineKind, ShapeLine, ShapeLines};
use super::loss::{self, Losses};
use super::presence::{self, MappedValue};
use super::{Direction, Lens, Lenses, Partial, Supply, faults};
use crate::contract::{
    Access, Additional, Narrowing, TypeIn, TypeKind, assignable, compare, defaults as defaults_differ,
};
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::{ConversionUse, FieldPlace, Fill, ShapeUse};
use crate::mapping::literal;
use crate::yaml::Node;
use object::{MemberClosing, ObjectDraft};
use switchback_plan::convert::{Conversion, Otherwise};
use switchback_plan::{
    Absent, Captured, Class, CloseFrom, Emit, Key, Loss, MemberAction, Message, Note, NoteKind, Origin, Raw,
    SettingKind, SideId, ValueOp,
};

/// Builds the op of `lines` towards side `to`. Returns `None` if it reports an error.
#[allow(clippy::too_many_arguments)]
pub(super) fn build(
    lenses: &Lenses<'_>,
    name: &str,
    lines: &ShapeLines<'_>,
    types: [TypeIn<'_>; 2],
    to: SideId,
    with: &Supply,
    findings: &mut Findings,
) -> Option<Lens> {
    let mark = findings.len();
    let way = Direction::new(&lenses.world, to);
    let mut builder = LensBuilder {
        lenses,
        name,
        types,
        way,
        with,
        findings,
        object: ObjectDraft::default(),
        losses: Losses::new(way),
        mapped: Vec::new(),
        lens: Lens {
            class: Class::Tokens,
            because: "it renames, drops and fills members where they stand".to_owned(),
            ..Lens::keep()
        },
    };
    builder.add_supplied(lines);
    // The order matters: lines claim members before `rest` collects the others, and presence is
    // judged on all mapped values.
    for line in &lines.lines {
        builder.line(line);
    }
    builder.rest(lines);
    // Requires all lines, because several may move parts of the same object.
    for (place, span) in presence::lost(&builder.mapped, types[way.from], types[way.to]) {
        builder.losses.lose_partly(loss::path(&FieldPlace(place.to_vec())), span);
    }
    builder.add_others(lines);
    let lens = builder.finish();
    (!findings.errors_since(mark)).then_some(lens)
}

struct LensBuilder<'b, 'p> {
    lenses: &'b Lenses<'p>,
    name: &'b str,
    /// By side.
    types: [TypeIn<'b>; 2],
    way: Direction<'b>,
    with: &'b Supply,
    findings: &'b mut Findings,
    object: ObjectDraft,
    losses: Losses<'b>,
    /// The moved values, for the analysis of presence.
    mapped: Vec<MappedValue>,
    /// The result, without its op and losses.
    lens: Lens,
}

impl<'b> LensBuilder<'b, '_> {
    fn origin(&self, span: Span) -> Origin {
        self.way.world.origin(span)
    }

    fn line(&mut self, line: &ShapeLine<'_>) {
        match &line.what {
            LineKind::Both { places, shape, conversion, .. }
                if is_others(&places[self.way.from].value, self.types[self.way.from]) =>
            {
                self.both_others(line.span, places, *shape, *conversion);
            }
            LineKind::Both { places, shape, conversion, defaults } => {
                self.both(line.span, places, *shape, *conversion, *defaults);
            }
            LineKind::Copy { to, name, from } => self.copy(line.span, *to, name, from),
            LineKind::Constant { name, values } => self.constant(line.span, name, values),
            LineKind::ByKind { old, new, default } => {
                let new: Vec<_> = new.iter().map(|(kind, place)| (kind.value.as_str(), place)).collect();
                self.by_kind(line.span, old, &new, *default);
            }
            LineKind::Only { side, place, fill } if is_others(&place.value, self.types[*side]) => {
                if *side == self.way.from {
                    self.leave_others(line.span, place, fill);
                }
            }
            LineKind::Only { side, place, fill } if *side == self.way.to => self.fill(line.span, place, fill),
            LineKind::Only { place, fill, .. } => self.leave(line.span, place, fill),
        }
    }

    fn find(&self, side: usize, place: &FieldPlace) -> Option<FoundField<'b>> {
        // `account::check` has reported missing places.
        field_at(self.types[side], place).ok()
    }

    fn both(
        &mut self,
        span: Span,
        places: &[SpannedPlace; 2],
        shape: Option<&ShapeUse>,
        conversion: Option<&ConversionUse>,
        defaults: [Option<&Node>; 2],
    ) {
        let Some(([read, built], op, absent)) = self.way(span, places, shape, conversion) else { return };
        let (source, target) = (&places[self.way.from], &places[self.way.to]);
        if !read.required
            && conversion.is_none()
            && defaults[self.way.to].is_none()
            && let Some(found) = defaults_differ(read.default, built.default)
        {
            self.losses.narrow(&[found], &source.value, &target.value, source.span);
        }
        self.lose_one_way(read, built, (source, &target.value));
        if defaults[self.way.to].is_some() && !read.required {
            // The default value of an absent source is not distinguishable on the way back.
            self.losses.lose_partly(loss::path(&source.value), span);
        }
        self.mapped.push(MappedValue {
            source: source.value.clone(),
            target: target.value.clone(),
            span,
            tells: !yields_nothing(&op) && defaults.iter().all(Option::is_none),
            is_made: defaults[self.way.to].is_some() || absent.is_some(),
            is_left_out: yields_nothing(&op),
        });
        let default = defaults[self.way.to].map(|node| {
            if literal::check(node, built.ty).is_err() {
                self.findings.push(faults::literal(node.span, &target.value, built.ty, self.way.to()));
            }
            literal::json(node)
        });
        let absent = default.or(absent);
        let may_be_absent = !read.required || yields_nothing(&op);
        // An overlay falls back to the old value, so only a plain build needs a default.
        if may_be_absent && built.required && absent.is_none() && !self.with.over {
            self.findings.push(faults::may_be_absent(source, target, self.way, read.required));
        }
        self.connect(span, &source.value, &target.value, op, absent);
    }

    /// Moves a value from one place to another: in its position if both are members of the
    /// outermost object, otherwise when the object closes.
    fn connect(
        &mut self,
        span: Span,
        source: &FieldPlace,
        target: &FieldPlace,
        op: ValueOp,
        absent: Option<Raw>,
    ) {
        let origin = self.origin(span);
        // The common case needs no buffer: the value is streamed under its new name.
        if let ([source], [target]) = (source.0.as_slice(), target.0.as_slice()) {
            let emit = MemberAction::Emit(Emit { name: Key::new(target), op });
            self.object.member(source, origin.clone()).action = emit;
            if let Some(value) = absent {
                let what = MemberClosing::Unless { member: source.clone(), value };
                self.object.close(std::slice::from_ref(target), what, origin);
            }
            return;
        }
        let slot = self
            .capture(&source.0[0], &origin, || format!("`{}` comes from another level", target.0.join(".")));
        let path = source.0[1..].iter().map(|name| Key::new(name)).collect();
        let captured = Captured { slot, path, only: None, op };
        let absent = absent.map_or(Absent::Omit, Absent::Value);
        let what = MemberClosing::From(CloseFrom::Captured { alternatives: vec![captured], absent });
        self.object.close(&target.0, what, origin);
    }

    /// Captures a member of the source, and returns its slot. `why` explains the class.
    fn capture(&mut self, name: &str, origin: &Origin, why: impl FnOnce() -> String) -> u16 {
        self.raise(Class::Captures, why);
        self.object.capture(name, origin)
    }

    fn raise(&mut self, class: Class, why: impl FnOnce() -> String) {
        // The highest class determines how much is buffered, so its reason is the one to report.
        if class > self.lens.class {
            self.lens.class = class;
            self.lens.because = why();
        }
    }

    /// Returns the resolved source and target of a line, the op for its value, and the value that
    /// is written if the source is absent.
    fn way(
        &mut self,
        span: Span,
        places: &[SpannedPlace; 2],
        shape: Option<&ShapeUse>,
        conversion: Option<&ConversionUse>,
    ) -> Option<([FoundField<'b>; 2], ValueOp, Option<Raw>)> {
        let (source, target) = (&places[self.way.from], &places[self.way.to]);
        // `account::check` has reported missing places.
        let read = field_at(self.types[self.way.from], &source.value).ok()?;
        let built = field_at(self.types[self.way.to], &target.value).ok()?;
        let (op, absent) = self.op(span, [read, built], (source, &target.value), shape, conversion)?;
        Some(([read, built], op, absent))
    }

    /// Returns the op for a value, and the value that is written if the source is absent.
    fn op(
        &mut self,
        span: Span,
        found: [FoundField<'_>; 2],
        way: (&SpannedPlace, &FieldPlace),
        shape: Option<&ShapeUse>,
        conversion: Option<&ConversionUse>,
    ) -> Option<(ValueOp, Option<Raw>)> {
        let ([read, built], source) = (found, way.0);
        let by_side = |a, b| if self.way.from == 0 { [a, b] } else { [b, a] };
        let known = by_side(Some(read.ty), Some(built.ty));
        let conversion = match conversion {
            Some(used) => {
                Some((used, convert::parse_conversion(used, known, self.way.world, self.findings)?))
            }
            None => None,
        };
        match conversion {
            None => Some((self.value(read.ty, built.ty, way, shape)?, None)),
            Some((used, ParsedConversion::SingleInArray(elses))) => {
                let (wrapped, array) =
                    if self.way.to == 1 { (read.ty, built.ty) } else { (built.ty, read.ty) };
                let Some(item) = array.items() else {
                    self.findings.push(faults::conversion(&used.name, "the new side must be a list"));
                    return None;
                };
                let (from, to) = if self.way.to == 1 { (wrapped, item) } else { (item, wrapped) };
                if self.way.to == 0 && convert::is_not_single(array) {
                    self.lens.turns_away = true;
                    if elses.0[0].is_said && !matches!(elses.0[0].otherwise, Otherwise::Error) {
                        self.findings.push(faults::single_else(&used.name));
                    }
                    if !elses.0[0].is_said {
                        self.partial(used, array);
                    }
                }
                let mark = self.losses.all.len();
                let inner = Box::new(self.value(from, to, way, shape)?);
                self.losses.move_into_list(mark, if self.way.to == 1 { way.1 } else { &source.value });
                Some((if self.way.to == 1 { ValueOp::Wrap(inner) } else { ValueOp::Unwrap(inner) }, None))
            }
            Some((used, ParsedConversion::Convert(ready))) => {
                if let Some(shape) = shape {
                    self.findings.push(faults::shape_and_conversion(&shape.name, &used.name));
                    return None;
                }
                self.convert(span, used, ready, [read.ty, built.ty], way)
            }
        }
    }

    /// Returns the op of a conversion, and the value that is written if the source is absent.
    fn convert(
        &mut self,
        span: Span,
        used: &ConversionUse,
        ready: ReadyConversion,
        [read, built]: [TypeIn<'_>; 2],
        (source, target): (&SpannedPlace, &FieldPlace),
    ) -> Option<(ValueOp, Option<Raw>)> {
        let way = self.way;
        let both = [read, built].map(|ty| match ready.each {
            None => Some(ty),
            Some(_) => ty.items(),
        });
        let [Some(read), Some(built)] = both else {
            self.findings.push(faults::conversion(&used.name, "`each` is for a list on both sides"));
            return None;
        };
        let said = &ready.elses.0[self.way.to];
        let conversion =
            Conversion { kind: ready.kind, forward: self.way.to == 1, otherwise: said.otherwise.clone() };
        let place = match ready.each {
            None => loss::path(&source.value),
            Some(_) => format!("{}[*]", loss::path(&source.value)),
        };
        match convert::check(&conversion, read, built) {
            Err(why) => {
                let finding = faults::conversion_types(&used.name, &why.to_string(), way, read, built);
                self.findings.push(match convert::mirror(&conversion, read, built) {
                    Some(mirror) => finding.suggest(mirror),
                    None => finding,
                });
                return None;
            }
            Ok(Lost::Spelling) => {
                self.losses.lose_partly(place.clone(), span);
            }
            Ok(Lost::Besides) => {
                for name in convert::passed_over(&conversion.kind, read) {
                    self.losses.lose_at(format!("{place}[*].{name}"), span);
                }
            }
            Ok(Lost::Nothing) => {}
        }
        let each = if ready.each.is_some() { "[*]" } else { "" };
        // Bounds of the target apply to results, so compare the values as converted.
        let mut exceeding = convert::exceeding(&conversion, read, built, self.message());
        exceeding.iter_mut().for_each(|found| found.path.insert_str(1, each));
        self.losses.narrow(&exceeding, &source.value, target, source.span);
        if convert::is_partial(&conversion.kind, conversion.from(), read) {
            // A fallback is only checked if it can occur.
            let misfit = said.literal.as_ref().filter(|literal| literal::check(literal, built).is_err());
            let finding = match (&said.otherwise, misfit) {
                (_, Some(literal)) => Some(faults::literal(literal.span, target, built, self.way.to())),
                (Otherwise::Keep, _) if !convert::may_stay(&conversion, read, built) => {
                    Some(faults::else_keeps(&used.name, way, built))
                }
                _ => None,
            };
            self.findings.extend(finding);
            self.lens.turns_away |= matches!(said.otherwise, Otherwise::Error);
            match &said.otherwise {
                Otherwise::Error if said.is_said => {}
                Otherwise::Error => self.partial(used, read),
                Otherwise::Keep | Otherwise::Drop | Otherwise::Value(_) => {
                    self.losses.lose_partly(place, span);
                }
            }
        }
        if conversion.kind.is_structural() {
            let name = used.name.value.clone();
            self.raise(Class::Captures, || format!("`{name}` looks at a whole value"));
        }
        let absent = conversion.absent();
        let op = ValueOp::Convert(conversion);
        Some((if ready.each.is_some() { ValueOp::Array(Box::new(op)) } else { op }, absent))
    }

    /// Records a conversion that rejects valid values and has no fallback.
    fn partial(&mut self, used: &ConversionUse, read: TypeIn<'_>) {
        self.lens.partials.push(Partial {
            name: used.name.value.clone(),
            span: used.name.span,
            from: self.way.from().to_owned(),
            to: self.way.to().to_owned(),
            ty: read.ty.to_string(),
            wrote: None,
            is_function: false,
        });
    }

    /// Returns the op that copies a value or applies a shape to it.
    fn value(
        &mut self,
        from: TypeIn<'_>,
        to: TypeIn<'_>,
        (source, target): (&SpannedPlace, &FieldPlace),
        shape: Option<&ShapeUse>,
    ) -> Option<ValueOp> {
        let way = self.way;
        let Some(shape) = shape else {
            match compare(from, to, self.message()) {
                Ok(narrowings) => self.losses.narrow(&narrowings, &source.value, target, source.span),
                Err(why) => self.findings.push(faults::types(source, &why, way, from, to)),
            }
            return Some(ValueOp::Keep);
        };
        if from.is_nullable() && !to.is_nullable() {
            self.findings.push(faults::null_through_shape(&shape.name, [way.from(), way.to()], to.ty));
        }
        let types = if self.way.from == 0 { [from, to] } else { [to, from] };
        let types = match shape.each_value {
            false => types,
            true => self.values_of(shape, types)?,
        };
        let lens =
            self.lenses.body(shape, types, SideId(self.way.to as u8), &Supply::default(), self.findings)?;
        let lens = if shape.each_value { lens.each_value(&shape.name.value) } else { lens };
        for inner in &lens.losses {
            // Losses are relative to the inner value. Prefix them with the source, or with the
            // target if a replacement is written there.
            let outer = if inner.instead.is_none() { &source.value } else { target };
            let place = format!("{}{}", loss::path(outer), &inner.place[1..]);
            self.losses.all.push(Loss { place, ..inner.clone() });
        }
        self.lens.add_part(&lens);
        let (class, because) = (lens.class, format!("within `{}`: {}", shape.name.value, lens.because));
        self.raise(class, || because);
        Some(lens.op)
    }

    /// Returns the value types of two maps. Reports objects with declared members.
    fn values_of<'t>(&mut self, shape: &ShapeUse, maps: [TypeIn<'t>; 2]) -> Option<[TypeIn<'t>; 2]> {
        let of = |map: TypeIn<'t>| match map.kind() {
            TypeKind::Object(object) if object.fields.is_empty() => match &object.additional {
                Additional::Of(value) => Some(map.types.at(value)),
                Additional::Open | Additional::Closed => None,
            },
            _ => None,
        };
        let values = maps.map(of);
        for side in [0, 1].into_iter().filter(|side: &usize| values[*side].is_none()) {
            self.findings.push(faults::not_a_map(&shape.name, self.way.world.side(side), maps[side].ty));
        }
        Some([values[0]?, values[1]?])
    }

    /// Adds a copy: written when `to` is built, dropped in the other direction.
    fn copy(&mut self, span: Span, to: usize, name: &SpannedPlace, from: &SpannedPlace) {
        let origin = self.origin(span);
        // Towards the side of the original the copy is redundant. Claim it, or it would pass as an
        // undeclared member.
        if to != self.way.to {
            self.object.member(&name.value.0[0], origin);
            self.losses.lose(&name.value, span);
            return;
        }
        let (Some(read), Some(built)) =
            (self.find(self.way.from, &from.value), self.find(self.way.to, &name.value))
        else {
            return;
        };
        let way = self.way;
        let wrong = assignable(read.ty, built.ty, self.message())
            .err()
            .map(|why| faults::types(from, &why, way, read.ty, built.ty));
        let null = built.ty.is_nullable();
        let missing = (built.required && !null && !read.required)
            .then(|| faults::may_be_absent(from, name, way, false));
        self.findings.extend(wrong.into_iter().chain(missing));
        let slot = self.capture(&from.value.0[0], &origin, || {
            format!("`{}` is shown a second time", name.value.0.join("."))
        });
        let path = from.value.0[1..].iter().map(|name| Key::new(name)).collect();
        let captured = Captured { slot, path, only: None, op: ValueOp::Keep };
        let absent = if null { Absent::Value(Raw::from(&b"null"[..])) } else { Absent::Omit };
        let what = MemberClosing::From(CloseFrom::Captured { alternatives: vec![captured], absent });
        self.object.close(&name.value.0, what, origin);
    }

    fn constant(&mut self, span: Span, name: &SpannedPlace, values: &[Node; 2]) {
        let (origin, value) = (self.origin(span), &values[self.way.to]);
        let is_always = |found: FoundField<'_>| {
            let read = literal::json(&values[self.way.from]);
            let listed = closed_values(found.ty);
            found.required && !found.ty.is_nullable() && listed.is_some_and(|all| *all == [read.to_vec()])
        };
        if !self.find(self.way.from, &name.value).is_some_and(is_always) {
            // Any other value is replaced by the constant on the round trip.
            self.losses.lose_partly(loss::path(&name.value), span);
        }
        // Claim the member, or the source's value would pass as an undeclared one.
        self.object.member(&name.value.0[0], origin.clone());
        let misfit = self
            .find(self.way.to, &name.value)
            .filter(|found| literal::check(value, found.ty).is_err())
            .map(|found| faults::literal(value.span, &name.value, found.ty, self.way.to()));
        self.findings.extend(misfit);
        let what = MemberClosing::From(CloseFrom::Constant(literal::json(value)));
        self.object.close(&name.value.0, what, origin);
    }

    /// Adds a field that only the built side has.
    fn fill(&mut self, span: Span, at: &SpannedPlace, fill: &Fill) {
        if self.is_supplied(&at.value) {
            return;
        }
        let types = self.types;
        let Ok(found) = field_at(types[self.way.to], &at.value) else { return };
        let (world, to, origin) = (self.way.world, self.way.to, self.origin(span));
        let close = match fill {
            Fill::Value { value, despite_type } => {
                match (literal::check(value, found.ty).is_ok(), despite_type) {
                    (false, None) => {
                        self.findings.push(faults::literal(value.span, &at.value, found.ty, self.way.to()))
                    }
                    (true, Some(despite)) => {
                        self.findings.push(faults::despite_nothing(*despite, &at.value, found.ty))
                    }
                    (false, Some(_)) => {
                        let place = at.value.0.join(".");
                        self.note_despite(&place, &literal::json(value), &found.ty.ty.to_string(), span);
                    }
                    (true, None) => {}
                }
                let value = literal::json(value);
                self.losses.always(&at.value, &value, span);
                CloseFrom::Constant(value)
            }
            Fill::Setting(name) => {
                let Some(setting) = world.names.setting(name, self.findings) else { return };
                if setting.kind.is_some_and(|kind| !setting_fits(kind, found.ty)) {
                    self.findings.push(faults::setting_type(name, found.ty));
                } else if setting.optional {
                    self.findings.push(faults::setting_optional(name));
                }
                CloseFrom::Setting(setting.index)
            }
            Fill::Computed => {
                self.findings.push(faults::computed_elsewhere(self.name, at, self.way.to()));
                return;
            }
            Fill::Absent | Fill::Refuse(_) if found.required && !self.with.over => {
                self.findings.push(faults::absent_but_required(at, self.way.to()));
                return;
            }
            // The gateway overwrites this placeholder when it completes the response. It ensures
            // that the enclosing object is built.
            Fill::Nothing if self.is_paged(to, &at.value) => CloseFrom::Constant(Raw::from(&b"null"[..])),
            Fill::Nothing if found.required && !self.with.over => {
                self.findings.push(faults::no_source(self.name, at, self.way.to()));
                return;
            }
            Fill::Absent | Fill::Refuse(_) | Fill::Nothing => return,
        };
        self.object.close(&at.value.0, MemberClosing::From(close), origin);
    }

    /// Notes a value that intentionally violates the type of its place.
    fn note_despite(&mut self, place: &str, value: &Raw, ty: &str, span: Span) {
        let text = format!("`{place}` is {}, not {ty}", String::from_utf8_lossy(value));
        let origin = self.origin(span);
        self.lens.notes.push(Note { kind: NoteKind::Despite, name: None, text, origin });
    }

    /// Drops a field that only the source has, or refuses the call.
    fn leave(&mut self, span: Span, at: &SpannedPlace, fill: &Fill) {
        let origin = self.origin(span);
        if self.is_paged(self.way.from, &at.value) {
            if at.value.0.len() == 1 {
                self.object.member(&at.value.0[0], origin);
            }
            return;
        }
        let Fill::Refuse(reason) = fill else {
            if at.value.0.len() == 1 {
                self.object.member(&at.value.0[0], origin);
            }
            self.losses.lose(&at.value, span);
            return;
        };
        let Some(reason) = self.way.world.names.reason(reason, self.findings) else { return };
        if at.value.0.len() > 1 {
            self.findings.push(faults::refuse_within(at));
            return;
        }
        self.lens.refuses.push(reason);
        self.object.member(&at.value.0[0], origin).action = MemberAction::Refuse(reason);
    }

    /// Returns whether the gateway reads and writes a place for paging.
    fn is_paged(&self, side: usize, place: &FieldPlace) -> bool {
        self.with.paged[side].contains(&place.0)
    }

    fn is_supplied(&self, place: &FieldPlace) -> bool {
        place.0.len() == 1 && self.with.with.iter().any(|name| name.value == place.0[0])
    }

    /// Adds the fields that the route supplies under `with:`.
    fn add_supplied(&mut self, lines: &ShapeLines<'_>) {
        let to = self.way.to;
        for (index, name) in self.with.with.iter().enumerate() {
            let place = FieldPlace(vec![name.value.clone()]);
            let at = SpannedPlace { value: place, span: name.span };
            if field_at(self.types[to], &at.value).is_err() {
                self.findings.push(faults::unknown_field(&at, 0, self.types[to], self.way.to()));
                continue;
            }
            // A supplied value replaces the fill of a one-sided field, but conflicts with any other
            // source.
            let claimed = lines.lines.iter().find(|line| {
                !matches!(line.what, LineKind::Only { .. })
                    && line.places(to).iter().any(|other| other.value.0[0] == at.value.0[0])
            });
            if let Some(line) = claimed {
                self.findings.push(faults::supplied_twice(name, line.span));
                continue;
            }
            let what = MemberClosing::From(CloseFrom::Supplied(index as u16));
            let origin = self.origin(name.span);
            self.object.close(&at.value.0, what, origin);
        }
    }

    /// Returns the kind of message that is built.
    fn message(&self) -> Option<Message> {
        self.way.world.message(SideId(self.way.to as u8))
    }

    /// Records a field that one side has only in requests or only in responses, and the other in
    /// both. An enclosing object that requires the field is left out with it, so it is recorded
    /// instead.
    fn lose_one_way(
        &mut self,
        read: FoundField<'_>,
        built: FoundField<'_>,
        (source, target): (&SpannedPlace, &FieldPlace),
    ) {
        let narrowing = |values: &str, only_in, is_of_target| Narrowing {
            path: "$".to_owned(),
            values: values.to_owned(),
            only_in: Some(only_in),
            is_of_target,
        };
        let depth = self.left_out_with(target);
        let (found, depth) = match (read.access, built.access) {
            (Access::Both | Access::WriteOnly, Access::ReadOnly) => {
                (narrowing("read-only on the other side", Message::Request, false), 0)
            }
            (Access::WriteOnly, Access::Both) => {
                (narrowing("never in answers of the other side", Message::Answer, true), depth)
            }
            (Access::ReadOnly, Access::Both | Access::WriteOnly) if built.required || depth > 0 => (
                narrowing("never in requests, where the other side requires it", Message::Request, false),
                depth,
            ),
            _ => return,
        };
        let outer = |place: &FieldPlace| {
            let kept = place.0.len().saturating_sub(depth).max(1);
            FieldPlace(place.0[..kept.min(place.0.len())].to_vec())
        };
        self.losses.narrow(&[found], &outer(&source.value), &outer(target), source.span);
    }

    /// Returns the number of objects around a place that are left out if its value is: each one
    /// requires what is within it.
    fn left_out_with(&self, place: &FieldPlace) -> usize {
        let is_needed =
            |end: usize| fields::is_needed(self.types[self.way.to], &place.0[..end]) == [true, false];
        (2..=place.0.len()).rev().take_while(|end| is_needed(*end)).count()
    }

    fn finish(self) -> Lens {
        let built = self.types[self.way.to];
        let fields = built.object().map(|object| &object.fields[..]).unwrap_or_default();
        Lens {
            op: ValueOp::Object(self.object.finish(self.name, built, self.with.with.len()).into()),
            losses: self.losses.all,
            supplied: self.with.with.iter().map(|name| Key::new(&name.value)).collect(),
            fields: fields.iter().map(|field| Key::new(&field.name)).collect(),
            ..self.lens
        }
    }
}

/// Returns whether an op may omit a value.
fn yields_nothing(op: &ValueOp) -> bool {
    use switchback_plan::convert::ConversionKind;
    match op {
        ValueOp::Convert(Conversion { otherwise: Otherwise::Drop, .. }) => true,
        ValueOp::Attempt(attempt) => attempt.instead.is_none(),
        ValueOp::Convert(Conversion { kind: ConversionKind::AbsentToNull, forward, .. }) => !forward,
        _ => false,
    }
}

fn setting_fits(kind: SettingKind, ty: TypeIn<'_>) -> bool {
    use crate::contract::ScalarKind;
    match ty.kind() {
        TypeKind::Any => true,
        TypeKind::Scalar(scalar) => match kind {
            SettingKind::Boolean => scalar.kind == ScalarKind::Boolean,
            SettingKind::Integer => matches!(scalar.kind, ScalarKind::Integer | ScalarKind::Number),
            SettingKind::String | SettingKind::Date => scalar.kind == ScalarKind::String,
        },
        _ => false,
    }
}
