//! Shapes: checks that each is a lens between its two types, and builds its op in each direction.
//!
//! Coverage is checked once per shape: every field of both types has exactly one line. Types are
//! checked once per direction, when a route first needs it. A shape that is only used in one
//! direction need not be valid in the other.

mod account;
mod build;
mod choice;
mod convert;
mod facts;
mod faults;
mod fields;
mod line;
mod loss;
mod presence;

pub(super) use convert::{
    Lost, ParsedConversion as ReadConversion, ReadyConversion, SINGLE_IN_ARRAY, check as check_conversion,
    exceeding, is_partial, kind as build_conversion, otherwise, parse_conversion as read_conversion,
};

pub(super) use facts::{facts_of, kinds_of};
pub(super) use fields::field_type;
pub(super) use loss::lost;

use super::ast::{ExprDecl, ProgramDecl, ShapeUse, Spanned};
use super::literal;
use super::names::PackNames;
use super::references::ResolvedKind;
use crate::contract::{Array, Contracts, Field, TypeIn, TypeKind, assignable_but_for_null};
use crate::diagnostic::{Findings, Sources, Span};
use crate::yaml::Node;
use line::ShapeLines;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use switchback_plan::convert::Otherwise;
use switchback_plan::{
    Again, AttemptOp, Class, Key, Loss, Message, Note, ObjectOp, Origin, Others, Raw, ReasonId, SideId,
    ValueOp,
};

/// All shapes of a program.
pub(crate) struct Lenses<'p> {
    pub(super) world: LensEnv<'p>,
    named: HashMap<&'p str, NamedShape<'p>>,
    /// Names in the order of the program.
    order: Vec<&'p Spanned<String>>,
    built: RefCell<HashMap<BuiltKey, Result<Lens, Findings>>>,
    /// Shapes under construction, innermost last. A shape that refers to one of them refers back to
    /// it.
    building: RefCell<Vec<(BuiltKey, Again)>>,
    /// Shapes that are complete except for a reference to an enclosing shape under construction.
    /// They are valid only while that shape is being built, because the losses of the enclosing
    /// shape are not known yet.
    partial: RefCell<Vec<(BuiltKey, Again, Lens)>>,
    /// By complete shape: the shapes that are mutually recursive with it.
    circles: RefCell<HashMap<BuiltKey, HashSet<BuiltKey>>>,
    /// Conversions in use that reject valid values.
    partials: RefCell<Vec<Partial>>,
    /// By span of a shape's `else:`: the name of the shape, and whether it rejects any valid value.
    elses: RefCell<HashMap<Span, (String, bool)>>,
}

/// A conversion that rejects valid values and has no fallback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partial {
    pub name: String,
    pub span: Span,
    /// Names of the sides.
    pub from: String,
    pub to: String,
    /// The source type, for messages.
    pub ty: String,
    /// An earlier write of the route.
    pub wrote: Option<String>,
    /// Whether it is a function.
    pub is_function: bool,
}

/// Describes a type of a contract with its fields.
fn describe_type(side: &str, ty: &TypeIn<'_>, name: &str) -> String {
    let fields = ty.object().map(|object| object.fields.as_slice()).unwrap_or_default();
    let line = |field: &Field| {
        let presence = if field.required { "required" } else { "optional" };
        format!("\n- {}: `{}`, {presence}", field.name, field.ty)
    };
    format!("type `{name}` of `{side}`\n{}", fields.iter().map(line).collect::<String>())
}

/// Maximum nesting depth of shapes under construction. Each level needs stack space, both in the
/// compiler and at run time.
const DEPTH_MAX: usize = 48;

/// Name of a shape, and the side that it builds.
type BuiltKey = (String, SideId);

/// Context of shape checks.
#[derive(Clone, Copy)]
pub(crate) struct LensEnv<'p> {
    pub program: &'p ProgramDecl,
    pub contracts: &'p Contracts,
    pub names: &'p PackNames,
    pub sources: &'p Sources,
    /// Whether the result is needed no longer. Checks may then end early, with any result.
    pub is_stopped: &'p dyn Fn() -> bool,
}

impl<'p> LensEnv<'p> {
    /// Returns the name of a side.
    fn side(&self, side: usize) -> &'p str {
        &self.program.manifest.sides[side].value
    }

    fn origin(&self, span: Span) -> Origin {
        super::origin(self.sources, span)
    }

    /// Returns the names of the sides.
    pub(crate) fn sides(&self) -> [&'p str; 2] {
        [self.side(0), self.side(1)]
    }

    /// Returns the kind of message for which bodies of a side are built, or `None` if both occur.
    pub(super) fn message(&self, to: SideId) -> Option<Message> {
        let is_answer = match self.program.manifest.serves {
            // Events are translated like responses, in a direction that does not depend on the
            // served side.
            _ if !self.program.events.is_empty() => return None,
            [true, true] => return None,
            serves => serves[to.place()],
        };
        Some(if is_answer { Message::Answer } else { Message::Request })
    }
}

/// A direction between the sides of a pack.
#[derive(Clone, Copy)]
struct Direction<'p> {
    world: &'p LensEnv<'p>,
    from: usize,
    to: usize,
}

impl<'p> Direction<'p> {
    fn new(world: &'p LensEnv<'p>, to: SideId) -> Direction<'p> {
        Direction { world, from: to.other().place(), to: to.place() }
    }

    /// Returns the name of the side that is read.
    fn from(&self) -> &'p str {
        self.world.side(self.from)
    }

    /// Returns the name of the side that is built.
    fn to(&self) -> &'p str {
        self.world.side(self.to)
    }
}

struct NamedShape<'p> {
    shape: &'p super::ast::ShapeDecl,
    lines: ShapeLines<'p>,
    types: Option<[TypeIn<'p>; 2]>,
    used: Cell<bool>,
}

/// What a shape computes of the value that it reads.
#[derive(Debug, Default)]
pub(crate) struct Computed<'p> {
    pub named: Vec<&'p (Spanned<String>, ExprDecl)>,
    pub members: Vec<&'p (Spanned<String>, ExprDecl)>,
}

/// Inputs of a shape that a route provides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Supply {
    /// Names of the fields under `with:`.
    pub with: Vec<Spanned<String>>,
    /// Whether the result is laid over an existing value of the target, which provides the fields
    /// that the shape lacks.
    pub over: bool,
    /// By side: places that describe other pages. The gateway reads and writes them itself.
    pub paged: [Vec<Vec<String>>; 2],
}

/// A shape in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Lens {
    pub op: ValueOp,
    pub class: Class,
    /// The reason for the class.
    pub because: String,
    /// Places relative to the value, starting with `$`.
    pub losses: Vec<Loss>,
    /// Fields that the route must supply, in the order of [`switchback_plan::CloseFrom::Supplied`].
    pub supplied: Vec<Key>,
    /// Members of the target's type, for [`switchback_plan::Overlay`].
    pub fields: Vec<Key>,
    /// Intended violations of types.
    pub notes: Vec<Note>,
    /// Reasons that may refuse a value.
    pub refuses: Vec<ReasonId>,
    /// Conversions that reject valid values.
    pub partials: Vec<Partial>,
    /// Whether the shape rejects a valid value, by a declared `else: error` or by default.
    turns_away: bool,
    /// Enclosing shapes under construction that this shape refers to.
    around: BTreeSet<BuiltKey>,
}

impl<'p> Lenses<'p> {
    /// Checks all named shapes: names, coverage of both types, and arguments of conversions.
    pub(crate) fn check(world: LensEnv<'p>, findings: &mut Findings) -> Lenses<'p> {
        let mut lenses = Lenses {
            world,
            named: HashMap::new(),
            order: Vec::new(),
            built: RefCell::default(),
            building: RefCell::default(),
            partial: RefCell::default(),
            circles: RefCell::default(),
            partials: RefCell::default(),
            elses: RefCell::default(),
        };
        for shape in &world.program.shapes {
            let Some(name) = &shape.name else { continue };
            let first = lenses.named.get(name.value.as_str()).and_then(|first| first.shape.name.as_ref());
            if let Some(first) = first {
                findings.push(faults::declared_twice(name, first.span));
                continue;
            }
            lenses.order.push(name);
            let lines = line::lines(&world, shape, findings);
            let types = lenses.types_of(shape, findings);
            lenses.named.insert(&name.value, NamedShape { shape, lines, types, used: Cell::new(false) });
            lenses.record(name);
        }
        // A second pass, because shapes may refer to later ones.
        for shape in world.program.shapes.iter().filter(|shape| shape.like.is_some()) {
            lenses.mark_like(shape);
        }
        for name in lenses.order.iter().take_while(|_| !(world.is_stopped)()) {
            let named = &lenses.named[name.value.as_str()];
            if !named.shape.alternatives.is_empty() {
                lenses.check_alternatives(named, findings);
            } else if let Some(types) = named.types {
                account::check(&world, &named.lines, types, name.span, findings);
            }
        }
        lenses
    }

    /// Resolves the types in `of:`.
    fn types_of(&self, shape: &'p super::ast::ShapeDecl, findings: &mut Findings) -> Option<[TypeIn<'p>; 2]> {
        let of = shape.of.as_ref()?;
        let mut types = [None, None];
        for (side, name) in of.iter().enumerate() {
            let all = &self.world.contracts[side].types;
            let known = all.get(&name.value);
            if let Some(named) = known {
                let about = || describe_type(self.world.side(side), &all.at(&named.ty), &name.value);
                self.world.names.references.add(name.span, ResolvedKind::Type, named.span, about);
            }
            match known {
                None => findings.push(faults::unknown_type(name, &self.world, side)),
                Some(named) if choice::takes(shape, all.at(&named.ty), &named.ty) => {
                    types[side] = Some(all.at(&named.ty));
                }
                Some(named) if matches!(all.resolve(&named.ty).kind, TypeKind::Choice(_)) => {
                    findings.push(faults::needs_alternatives(name, &named.ty));
                }
                Some(named) => findings.push(faults::not_an_object(name, &named.ty)),
            }
        }
        let [old, new] = types;
        Some([old?, new?])
    }

    /// Checks a shape with alternatives: it has no lines, at least one of its types is one of
    /// several objects, and the named shapes have lines.
    fn check_alternatives(&self, named: &NamedShape<'p>, findings: &mut Findings) {
        let (shape, lines) = (named.shape, &named.lines);
        if !lines.lines.is_empty() || shape.like.is_some() || lines.rest.iter().any(Option::is_some) {
            findings.push(faults::alternatives_and_lines(shape.span));
        }
        if named.types.is_some_and(|types| !types.into_iter().any(choice::is_choice)) {
            findings.push(faults::no_alternatives(shape.span));
        }
        for name in &shape.alternatives {
            if let Some(one) = self.find(name, findings)
                && !one.shape.alternatives.is_empty()
            {
                findings.push(faults::alternative_of_alternatives(name));
            }
        }
    }

    /// Records the name of a shape, if there is such a shape.
    pub(crate) fn record(&self, name: &Spanned<String>) {
        let Some(named) = self.named.get(name.value.as_str()) else { return };
        self.world.names.references.add(name.span, ResolvedKind::Shape, named.shape.span, || {
            let of = named.shape.of.iter().flat_map(|of| of.iter().zip(self.world.sides()));
            let types: Vec<String> = of.map(|(ty, side)| format!("`{side}` {}", ty.value)).collect();
            format!("shape `{}`: {}", name.value, types.join(", "))
        });
    }

    /// Marks the shape that another one inherits from as used.
    fn mark_like(&self, shape: &super::ast::ShapeDecl) {
        shape.like.iter().for_each(|like| self.record(like));
        let like = shape.like.as_ref().and_then(|like| self.named.get(like.value.as_str()));
        like.inspect(|named| named.used.set(true));
    }

    /// Returns the op that builds side `to` of a body. `types` are the types of the body in both
    /// contracts.
    ///
    /// Returns `None` if it reports an error.
    pub(crate) fn body(
        &self,
        used: &ShapeUse,
        types: [TypeIn<'_>; 2],
        to: SideId,
        with: &Supply,
        findings: &mut Findings,
    ) -> Option<Lens> {
        let named = self.find(&used.name, findings)?;
        let of = named.types?;
        let types = self.elements(used, types, findings)?;
        let is_inner = used.each || used.each_value;
        if is_inner && used.otherwise.is_none() {
            self.check_null(&used.name, types, to, findings);
        }
        // The body must be valid for the shape, and the result of the shape for the body of the other
        // side.
        for side in [0, 1] {
            let (from, into) =
                if side == to.place() { (of[side], types[side]) } else { (types[side], of[side]) };
            if let Err(why) = assignable_but_for_null(from, into) {
                findings.push(faults::other_type(&used.name, self.world.side(side), types[side].ty, &why));
                return None;
            }
        }
        let lens = self.lens(&used.name.value, to, with, findings)?;
        let lens = match &used.otherwise {
            None => lens,
            Some(otherwise) => self.attempt(lens, used, otherwise, types[to.place()], to, findings),
        };
        Some(if used.each { lens.each() } else { lens })
    }

    /// Reports values that may be null where the other side does not take null. A shape passes null on.
    fn check_null(
        &self,
        name: &Spanned<String>,
        types: [TypeIn<'_>; 2],
        to: SideId,
        findings: &mut Findings,
    ) {
        let [from, into] = [to.other(), to].map(|side| types[side.place()]);
        if from.is_nullable() && !into.is_nullable() {
            let sides = [to.other(), to].map(|side| self.world.side(side.place()));
            findings.push(faults::null_through_shape(name, sides, into.ty));
        }
    }

    /// Adds the fallback in `else:` to a lens. `built` is the type of its result.
    fn attempt(
        &self,
        lens: Lens,
        used: &ShapeUse,
        otherwise: &Node,
        built: TypeIn<'_>,
        to: SideId,
        findings: &mut Findings,
    ) -> Lens {
        let Some(said) = convert::for_side(otherwise, to.place(), &self.world) else { return lens };
        let instead = match convert::otherwise(said) {
            // A declared error is a decision, so the partial conversions need no warning.
            Otherwise::Error => return Lens { partials: Vec::new(), ..lens },
            Otherwise::Drop => None,
            Otherwise::Value(value) if literal::check(said, built).is_ok() => Some(value),
            Otherwise::Keep | Otherwise::Value(_) => {
                let side = self.world.side(to.place());
                findings.push(faults::shape_else(&used.name, said, built, side));
                return Lens { partials: Vec::new(), ..lens };
            }
        };
        let mut elses = self.elses.borrow_mut();
        let known = elses.entry(otherwise.span).or_insert_with(|| (used.name.value.clone(), false));
        known.1 |= lens.turns_away;
        // A shape that accepts every value needs no attempt, which would buffer the value until its
        // last member.
        if lens.turns_away {
            let is_any = matches!(built.kind(), TypeKind::Any);
            // Null passes through a shape, so it only counts as rejected if the target does not
            // accept it.
            let null = is_any || kinds_of(built).null;
            let from = self.world.side(to.other().place());
            lens.attempt(instead, null, self.world.origin(said.span), from)
        } else {
            lens
        }
    }

    /// Returns the op of an inline shape.
    pub(crate) fn inline(
        &self,
        shape: &'p super::ast::ShapeDecl,
        types: [TypeIn<'p>; 2],
        to: SideId,
        with: &Supply,
        findings: &mut Findings,
    ) -> Option<Lens> {
        for (side, ty) in types.iter().enumerate() {
            if ty.object().is_none() {
                findings.push(faults::inline_not_an_object(shape.span, self.world.side(side), ty.ty));
                return None;
            }
        }
        let mark = findings.len();
        let lines = line::lines(&self.world, shape, findings);
        account::check(&self.world, &lines, types, shape.span, findings);
        if findings.errors_since(mark) {
            return None;
        }
        build::build(self, "in place", &lines, types, to, with, findings)
    }

    /// Records the use of a conversion that rejects valid values; `wrote` is an earlier write of
    /// the route.
    pub(crate) fn use_partial(&self, partial: &Partial, wrote: Option<&str>) {
        let partial = Partial { wrote: wrote.map(str::to_owned), ..partial.clone() };
        self.partials.borrow_mut().push(partial);
    }

    /// Reports each recorded conversion once per built side, with the worst of its uses. Call it
    /// after all routes are compiled.
    pub(crate) fn report_partials(&self, findings: &mut Findings) {
        let partials = self.partials.borrow();
        let mut seen = HashSet::new();
        // Uses after a write are errors and come first, so that each conversion is reported with
        // its worst use.
        let (after, before): (Vec<&Partial>, Vec<&Partial>) =
            partials.iter().partition(|partial| partial.wrote.is_some());
        for partial in after.into_iter().chain(before) {
            if seen.insert((partial.span, partial.to.as_str())) {
                findings.push(faults::partial(partial));
            }
        }
    }

    /// Reports `else:` of shapes that accept every value in each direction in use. Call it after
    /// all routes are compiled.
    pub(crate) fn report_elses(&self, findings: &mut Findings) {
        for (span, (shape, _)) in self.elses.borrow().iter().filter(|(_, (_, turns_away))| !turns_away) {
            findings.push(faults::nothing_turned_away(shape, *span));
        }
    }

    /// Reports unused shapes. Call it after all routes are compiled.
    pub(crate) fn report_unused(&self, findings: &mut Findings) {
        for name in self.order.iter().filter(|name| !self.named[name.value.as_str()].used.get()) {
            findings.push(faults::unused_shape(name));
        }
    }

    /// Returns the members that a shape computes where it builds side `to`, and the values that it
    /// names for them; inherited ones first.
    pub(crate) fn computed(&self, name: &str, to: SideId) -> Computed<'p> {
        let Some(named) = self.named.get(name) else { return Computed::default() };
        let mut shapes = vec![named.shape];
        while let Some(like) = shapes.last().and_then(|shape| shape.like.as_ref())
            && let Some(other) = self.named.get(like.value.as_str())
            // A cycle of `like:` is reported where its lines are read.
            && shapes.len() <= self.named.len()
        {
            shapes.push(other.shape);
        }
        // A line of the shape's own replaces an inherited member.
        let is_line =
            |member: &Spanned<String>| named.lines.lines.iter().any(|line| line.span == member.span);
        let members = shapes.iter().rev().flat_map(|shape| &shape.computed[to]);
        Computed {
            named: shapes.iter().rev().flat_map(|shape| &shape.named[to]).collect(),
            members: members.filter(|(member, _)| is_line(member)).collect(),
        }
    }

    /// Returns the types that a named shape relates.
    pub(crate) fn types(&self, name: &str) -> Option<[TypeIn<'p>; 2]> {
        self.named.get(name).and_then(|named| named.types)
    }

    fn find(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<&NamedShape<'p>> {
        let found = self.named.get(name.value.as_str());
        match found {
            Some(named) => {
                named.used.set(true);
                self.record(name);
            }
            None => {
                let names = self.order.iter().map(|name| name.value.as_str()).collect();
                findings.push(faults::unknown_shape(name, names));
            }
        }
        found
    }

    /// Returns a named shape in one direction. Without a supply it is built once and cached.
    pub(crate) fn lens(
        &self,
        name: &str,
        to: SideId,
        with: &Supply,
        findings: &mut Findings,
    ) -> Option<Lens> {
        let plain = with.with.is_empty() && !with.over && with.paged.iter().all(Vec::is_empty);
        let key = (name.to_owned(), to);
        if let Some(built) = self.built.borrow().get(&key).filter(|_| plain && !self.is_around(&key)) {
            // The first caller may have discarded the findings. Duplicates are removed later.
            return built.as_ref().map_err(|why| findings.append(why.clone())).ok().cloned();
        }
        let named = self.named.get(name)?;
        let types = named.types?;
        let build = |findings: &mut Findings| match named.shape.alternatives.is_empty() {
            true => build::build(self, name, &named.lines, types, to, with, findings),
            false => choice::build(self, named.shape, types, to, with, findings),
        };
        if !plain {
            let mark = findings.len();
            let lens = build(findings);
            // Members of lines with errors are missing from the result.
            return lens.filter(|_| !findings.errors_since(mark));
        }
        // Recursion: emit a reference, which is tied to the op once the enclosing shape is
        // complete.
        if let Some((_, again)) = self.building.borrow().iter().find(|(open, _)| *open == key) {
            return Some(Lens::recursive(again, BTreeSet::from([key])));
        }
        if let Some((_, again, lens)) = self.partial.borrow().iter().find(|(known, ..)| *known == key) {
            let (class, refuses) = (lens.class, lens.refuses.clone());
            return Some(Lens { refuses, class, ..Lens::recursive(again, lens.around.clone()) });
        }
        if self.building.borrow().len() >= DEPTH_MAX {
            findings.push(faults::too_deep(name, named.lines.span, DEPTH_MAX));
            return None;
        }
        let (again, mark) = (Again::default(), self.partial.borrow().len());
        self.building.borrow_mut().push((key.clone(), again.clone()));
        let mut own = Findings::new();
        let mut lens = build(&mut own).filter(|_| !own.has_errors());
        // Findings are collected separately, so that a failure is cached with its reasons.
        findings.append(own.clone());
        self.building.borrow_mut().pop();
        if let Some(lens) = &mut lens {
            again.tie(&lens.op);
            lens.around.remove(&key);
        }
        match &lens {
            Some(lens) if !lens.around.is_empty() => {
                self.partial.borrow_mut().push((key, again, lens.clone()));
            }
            _ => {
                // The outermost shape of a cycle is complete. Its partial shapes are discarded,
                // because they refer to this op.
                let circle = self.partial.borrow_mut().split_off(mark);
                let circle: HashSet<BuiltKey> = circle.into_iter().map(|(key, ..)| key).collect();
                if !circle.is_empty() {
                    self.circles.borrow_mut().insert(key.clone(), circle);
                }
                self.built.borrow_mut().insert(key, lens.clone().ok_or(own));
            }
        }
        lens
    }

    /// Returns whether a cached shape contains one that is under construction. Its op contains a
    /// copy of that shape. Using it would double the op at each level, so the shape is built again
    /// as a reference.
    fn is_around(&self, key: &BuiltKey) -> bool {
        let circles = self.circles.borrow();
        let Some(circle) = circles.get(key) else { return false };
        self.building.borrow().iter().any(|(open, _)| circle.contains(open))
    }

    /// Returns the types that a shape applies to: `types` themselves, or the element types of
    /// lists.
    fn elements<'t>(
        &self,
        used: &ShapeUse,
        types: [TypeIn<'t>; 2],
        findings: &mut Findings,
    ) -> Option<[TypeIn<'t>; 2]> {
        if !used.each {
            return Some(types);
        }
        let mut elements = types;
        for (side, ty) in types.iter().enumerate() {
            match ty.kind() {
                TypeKind::Array(Array { items, .. }) => elements[side] = ty.types.at(items),
                TypeKind::Any => {}
                _ => {
                    findings.push(faults::not_a_list(&used.name, self.world.side(side), ty.ty));
                    return None;
                }
            }
        }
        Some(elements)
    }
}

impl Lens {
    /// Returns a lens that copies a value.
    fn keep() -> Lens {
        Lens {
            op: ValueOp::Keep,
            class: Class::Pass,
            because: "it goes over as it is".to_owned(),
            losses: Vec::new(),
            supplied: Vec::new(),
            fields: Vec::new(),
            notes: Vec::new(),
            refuses: Vec::new(),
            partials: Vec::new(),
            turns_away: false,
            around: BTreeSet::new(),
        }
    }

    /// Adds the properties of a lens for a part of the value, except its class and its losses.
    fn add_part(&mut self, part: &Lens) {
        self.notes.extend(part.notes.iter().cloned());
        self.refuses.extend(part.refuses.iter().copied());
        self.partials.extend(part.partials.iter().cloned());
        self.turns_away |= part.turns_away;
        self.around.extend(part.around.iter().cloned());
    }

    /// Returns a lens that refers back to an enclosing shape, which accounts for the losses.
    fn recursive(again: &Again, around: BTreeSet<BuiltKey>) -> Lens {
        let because = "a shape within itself goes as deep as the body".to_owned();
        Lens {
            op: ValueOp::Again(again.clone()),
            class: Class::Tokens,
            because,
            around,
            // Whether the enclosing shape rejects values is not known yet. Assume that it does.
            turns_away: true,
            ..Lens::keep()
        }
    }

    /// Applies the lens to each value of a map, under an unchanged key.
    #[must_use]
    fn each_value(self, name: &str) -> Lens {
        let losses =
            self.losses.into_iter().map(|loss| Loss { place: format!("$.*{}", &loss.place[1..]), ..loss });
        let notes = self.notes.into_iter().map(|note| note.below(".*"));
        let op = ObjectOp {
            name: name.into(),
            members: Vec::new(),
            others: Others::Each(self.op),
            close: Vec::new(),
            captures: 0,
            supplied: 0,
        };
        Lens { op: ValueOp::Object(op.into()), losses: losses.collect(), notes: notes.collect(), ..self }
    }

    /// Adds a fallback for values of side `from` that the lens rejects: `instead`, or omission.
    #[must_use]
    fn attempt(self, instead: Option<Raw>, null: bool, origin: Origin, from: &str) -> Lens {
        let lost = Loss {
            side: from.to_owned(),
            place: "$".to_owned(),
            instead: None,
            unless_found: false,
            partly: true,
            narrow: None,
            origin: origin.clone(),
        };
        let class = self.class.max(Class::Element);
        let because = match self.class < class {
            true => "whether a value is taken may show at its last member".to_owned(),
            false => self.because,
        };
        Lens {
            op: ValueOp::Attempt(AttemptOp { op: self.op, instead, null, origin }.into()),
            class,
            because,
            losses: std::iter::once(lost).chain(self.losses).collect(),
            partials: Vec::new(),
            turns_away: false,
            ..self
        }
    }

    /// Applies the lens to each element of a list.
    #[must_use]
    pub(crate) fn each(self) -> Lens {
        let losses =
            self.losses.into_iter().map(|loss| Loss { place: format!("$[*]{}", &loss.place[1..]), ..loss });
        let notes = self.notes.into_iter().map(|note| note.below("[*]"));
        Lens {
            op: ValueOp::Array(Box::new(self.op)),
            losses: losses.collect(),
            notes: notes.collect(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
