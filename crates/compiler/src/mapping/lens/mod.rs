//! Shapes: whether each is a lens between its two types, and the op that it is in each direction.
//!
//! Checked once per shape: that every field of both types is accounted for, exactly once. Checked once per direction, when
//! a route first needs it: that what is built fits the type it is built for. A shape that only ever builds one side need
//! not be able to build the other.

mod account;
mod build;
mod by_kind;
mod choice;
mod close;
mod convert;
mod facts;
mod faults;
mod line;
mod loss;
mod others;
mod presence;

pub(super) use convert::{
    Lost, Read as ReadConversion, Ready, SINGLE_IN_ARRAY, check as check_conversion, exceeding, is_partial,
    kinds_of, read as read_conversion,
};

pub(super) use account::field_type;
pub(super) use build::lost;

use super::ast::{Program, ShapeUse, Spanned};
use super::literal;
use super::names::Names;
use crate::contract::{Array, Contract, Object, TypeIn, TypeKind, Why, assignable_but_for_null};
use crate::diagnostic::{Findings, Sources, Span};
use crate::yaml::Node;
use line::Lines;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use switchback_plan::convert::Otherwise;
use switchback_plan::{
    Again, AttemptOp, Class, Key, Loss, Message, Note, ObjectOp, Origin, Others, Raw, ReasonId, SideId,
    ValueOp,
};

/// All shapes of a program.
pub(crate) struct Lenses<'p> {
    pub(super) world: World<'p>,
    named: HashMap<&'p str, Named<'p>>,
    /// Names in the order of the program.
    order: Vec<&'p Spanned<String>>,
    built: RefCell<HashMap<BuiltKey, Result<Lens, Findings>>>,
    /// Shapes being built, innermost last: one that meets itself leads back there.
    building: RefCell<Vec<(BuiltKey, Again)>>,
    /// Shapes that are built but for what they lead back to, which still is. They are good as long as that is, since what is
    /// lost by what they lead back to is not known yet.
    partial: RefCell<Vec<(BuiltKey, Again, Lens)>>,
    /// By a shape that is built: the shapes that lead back to it, and it to them.
    circles: RefCell<HashMap<BuiltKey, HashSet<BuiltKey>>>,
    /// Conversions in use that turn away values which may come.
    partials: RefCell<Vec<Partial>>,
    /// By the place of an `else:` of a shape: the name of the shape, and whether it turns away anything that may come.
    elses: RefCell<HashMap<Span, (String, bool)>>,
}

/// A conversion that does not take every value which may come, where nothing says what follows then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partial {
    pub name: String,
    pub span: Span,
    /// Names of the sides.
    pub from: String,
    pub to: String,
    /// The type that it reads, for messages.
    pub ty: String,
    /// The call that writes and was made before.
    pub wrote: Option<String>,
}

/// Shapes being built within one another: each wants stack, here and where they run.
const DEPTH_MAX: usize = 48;

/// A named shape and the side that it builds.
type BuiltKey = (String, SideId);

/// What every check of a shape looks at.
#[derive(Clone, Copy)]
pub(crate) struct World<'p> {
    pub program: &'p Program,
    pub contracts: &'p [Contract; 2],
    pub names: &'p Names,
    pub sources: &'p Sources,
}

impl World<'_> {
    /// The message whose bodies are built for a side; none where they may be of both.
    pub(super) fn message(&self, to: SideId) -> Option<Message> {
        let is_answer = match self.program.manifest.serves {
            // Events go the way of answers, whichever side is served.
            _ if !self.program.events.is_empty() => return None,
            [true, true] => return None,
            serves => serves[to.place()],
        };
        Some(if is_answer { Message::Answer } else { Message::Request })
    }
}

struct Named<'p> {
    shape: &'p super::ast::Shape,
    lines: Lines<'p>,
    types: Option<[TypeIn<'p>; 2]>,
    used: Cell<bool>,
}

/// What a route gives to a shape besides the value it reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Supply {
    /// Names of fields given under `with:`.
    pub with: Vec<Spanned<String>>,
    /// Whether the result is laid over an old value of the target, which then has whatever the shape cannot make up.
    pub over: bool,
    /// By side: places that say something of other pages. The gateway reads and writes them itself.
    pub paged: [Vec<Vec<String>>; 2],
}

/// A shape in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Lens {
    pub op: ValueOp,
    pub class: Class,
    /// Why the class is not a cheaper one.
    pub because: String,
    /// Places relative to the value, starting with `$`.
    pub losses: Vec<Loss>,
    /// Fields the route must supply, in the order of [`switchback_plan::CloseFrom::Supplied`].
    pub supplied: Vec<Key>,
    /// Members of the target's type, for [`switchback_plan::Overlay`].
    pub fields: Vec<Key>,
    /// Types broken on purpose.
    pub notes: Vec<Note>,
    /// Reasons with which a value may be refused.
    pub refuses: Vec<ReasonId>,
    /// Conversions in it that turn away values which may come.
    pub partials: Vec<Partial>,
    /// Whether it turns away a value which may come, whoever said that this is an error.
    turns_away: bool,
    /// Shapes being built that this one leads back to.
    around: BTreeSet<BuiltKey>,
}

impl World<'_> {
    /// Names of the sides.
    pub(crate) fn sides(&self) -> [&str; 2] {
        self.program.manifest.sides.each_ref().map(|side| side.value.as_str())
    }
}

impl<'p> Lenses<'p> {
    /// Checks all named shapes: names, accounts of both types, conversions' arguments.
    pub(crate) fn check(world: World<'p>, findings: &mut Findings) -> Lenses<'p> {
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
            if let Some(first) = lenses.order.iter().find(|first| first.value == name.value) {
                findings.push(faults::declared_twice(name, first.span));
                continue;
            }
            lenses.order.push(name);
            let lines = line::lines(&world, shape, findings);
            let types = lenses.types_of(shape, findings);
            lenses.named.insert(&name.value, Named { shape, lines, types, used: Cell::new(false) });
        }
        for shape in world.program.shapes.iter().filter(|shape| shape.like.is_some()) {
            lenses.mark_like(shape);
        }
        for name in &lenses.order {
            let named = &lenses.named[name.value.as_str()];
            if !named.shape.alternatives.is_empty() {
                lenses.check_alternatives(named, findings);
            } else if let Some(types) = named.types {
                account::check(&world, &named.lines, types, name.span, findings);
            }
        }
        lenses
    }

    /// The types that `of:` names.
    fn types_of(&self, shape: &'p super::ast::Shape, findings: &mut Findings) -> Option<[TypeIn<'p>; 2]> {
        let of = shape.of.as_ref()?;
        let mut types = [None, None];
        for (side, name) in of.iter().enumerate() {
            let all = &self.world.contracts[side].types;
            match all.get(&name.value) {
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

    /// A shape with alternatives has no lines, and its types are one of several objects, on one side at least. Those that it
    /// names have lines.
    fn check_alternatives(&self, named: &Named<'p>, findings: &mut Findings) {
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

    /// A shape that another one is like is used.
    fn mark_like(&self, shape: &super::ast::Shape) {
        let like = shape.like.as_ref().and_then(|like| self.named.get(like.value.as_str()));
        like.inspect(|named| named.used.set(true));
    }

    /// The op that builds side `to` of a body. `types` are the contracts' types of the body on both sides.
    ///
    /// None after a finding.
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
        for side in [0, 1] {
            let (from, into) =
                if side == to.place() { (of[side], types[side]) } else { (types[side], of[side]) };
            if let Err(why) = goes_but_for_null(from, into) {
                findings.push(faults::other_type(&used.name, &self.world, side, types[side].ty, &why));
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

    /// The same with what `else:` says of a value that the shape does not take. `built` is the type that it would have made.
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
            // An error is meant, so that nothing is left unsaid.
            Otherwise::Error => return Lens { partials: Vec::new(), ..lens },
            Otherwise::Drop => None,
            Otherwise::Value(value) if literal::check(said, built).is_ok() => Some(value),
            Otherwise::Keep | Otherwise::Value(_) => {
                let side = self.world.sides()[to.place()];
                findings.push(faults::shape_else(&used.name, said, built, side));
                return Lens { partials: Vec::new(), ..lens };
            }
        };
        let mut elses = self.elses.borrow_mut();
        let known = elses.entry(otherwise.span).or_insert_with(|| (used.name.value.clone(), false));
        known.1 |= lens.turns_away;
        if lens.turns_away {
            let is_any = matches!(built.types.resolve(built.ty).kind, TypeKind::Any);
            let null = is_any || kinds_of(built).null;
            lens.attempt(instead, null, self.origin(said.span), self.side(to.other()))
        } else {
            lens
        }
    }

    fn side(&self, side: SideId) -> String {
        self.world.sides()[side.place()].to_owned()
    }

    fn origin(&self, span: Span) -> Origin {
        super::origin(self.world.sources, span)
    }

    /// The op of a shape written in place.
    pub(crate) fn inline(
        &self,
        shape: &'p super::ast::Shape,
        types: [TypeIn<'p>; 2],
        to: SideId,
        with: &Supply,
        findings: &mut Findings,
    ) -> Option<Lens> {
        for (side, ty) in types.iter().enumerate() {
            if object(*ty).is_none() {
                findings.push(faults::inline_not_an_object(shape.span, &self.world, side, ty.ty));
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

    /// A conversion that turns away values which may come is in use, after this call that writes.
    pub(crate) fn use_partial(&self, partial: &Partial, wrote: Option<&str>) {
        let partial = Partial { wrote: wrote.map(str::to_owned), ..partial.clone() };
        self.partials.borrow_mut().push(partial);
    }

    /// Reports each such conversion once for each side that it builds, by the worst of its uses. Call after all routes were
    /// compiled.
    pub(crate) fn report_partials(&self, findings: &mut Findings) {
        let partials = self.partials.borrow();
        let mut seen = HashSet::new();
        let (after, before): (Vec<&Partial>, Vec<&Partial>) =
            partials.iter().partition(|partial| partial.wrote.is_some());
        for partial in after.into_iter().chain(before) {
            if seen.insert((partial.span, partial.to.as_str())) {
                findings.push(faults::partial(partial));
            }
        }
    }

    /// Reports `else:` of shapes that turn nothing away in any direction in which they are used. Call after all routes were
    /// compiled.
    pub(crate) fn report_elses(&self, findings: &mut Findings) {
        for (span, (shape, _)) in self.elses.borrow().iter().filter(|(_, (_, turns_away))| !turns_away) {
            findings.push(faults::nothing_turned_away(shape, *span));
        }
    }

    /// Reports shapes that nothing uses. Call after all routes were compiled.
    pub(crate) fn unused(&self, findings: &mut Findings) {
        for name in self.order.iter().filter(|name| !self.named[name.value.as_str()].used.get()) {
            findings.push(faults::unused(name));
        }
    }

    /// The types that a named shape relates.
    pub(crate) fn types(&self, name: &str) -> Option<[TypeIn<'p>; 2]> {
        self.named.get(name).and_then(|named| named.types)
    }

    fn find(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<&Named<'p>> {
        let found = self.named.get(name.value.as_str());
        match found {
            Some(named) => named.used.set(true),
            None => {
                let names = self.order.iter().map(|name| name.value.as_str()).collect();
                findings.push(faults::unknown_shape(name, names));
            }
        }
        found
    }

    /// A named shape in one direction. Without a supply it is built once.
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
            // Who asked first may have thrown the findings away. Equal ones are shown once.
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
            // A member whose line is wrong is not in what was built.
            return lens.filter(|_| !findings.errors_since(mark));
        }
        if let Some((_, again)) = self.building.borrow().iter().find(|(open, _)| *open == key) {
            return Some(Lens::again(again, BTreeSet::from([key])));
        }
        if let Some((_, again, lens)) = self.partial.borrow().iter().find(|(known, ..)| *known == key) {
            let (class, refuses) = (lens.class, lens.refuses.clone());
            return Some(Lens { refuses, class, ..Lens::again(again, lens.around.clone()) });
        }
        if self.building.borrow().len() >= DEPTH_MAX {
            findings.push(faults::too_deep(name, named.lines.span, DEPTH_MAX));
            return None;
        }
        let (again, mark) = (Again::default(), self.partial.borrow().len());
        self.building.borrow_mut().push((key.clone(), again.clone()));
        let mut own = Findings::new();
        let mut lens = build(&mut own).filter(|_| !own.has_errors());
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

    /// Whether a shape that is built holds one that is being built. Its op has that one within it, and so would this one have
    /// it twice, and the next one four times: it is built anew, and leads back.
    fn is_around(&self, key: &BuiltKey) -> bool {
        let circles = self.circles.borrow();
        let Some(circle) = circles.get(key) else { return false };
        self.building.borrow().iter().any(|(open, _)| circle.contains(open))
    }

    /// The types of the values that a shape is used on: themselves, or the items of lists.
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
            match ty.types.resolve(ty.ty).kind {
                TypeKind::Array(Array { items, .. }) => elements[side] = ty.types.at(items),
                TypeKind::Any => {}
                _ => {
                    findings.push(faults::not_a_list(&used.name, &self.world, side, ty.ty));
                    return None;
                }
            }
        }
        Some(elements)
    }
}

impl Lens {
    /// What is copied as it stands.
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

    /// What leads back to a shape around it, which accounts for what is lost.
    fn again(again: &Again, around: BTreeSet<BuiltKey>) -> Lens {
        let because = "a shape within itself goes as deep as the body".to_owned();
        Lens {
            op: ValueOp::Again(again.clone()),
            class: Class::Tokens,
            because,
            around,
            turns_away: true,
            ..Lens::keep()
        }
    }

    /// The same for each value of a map, under the name that it has.
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

    /// The same, with `instead` (or nothing) for a value of the side `from` that it does not take.
    #[must_use]
    fn attempt(self, instead: Option<Raw>, null: bool, origin: Origin, from: String) -> Lens {
        let lost = Loss {
            side: from,
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

    /// The same for each element of a list.
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

/// The object that a type is, if it is one.
fn object(ty: TypeIn<'_>) -> Option<&Object> {
    match ty.types.resolve(ty.ty).kind {
        TypeKind::Object(object) => Some(object),
        _ => None,
    }
}

/// Whether values of one type go into another, null aside: null passes through a shape, and whether it may stand at a
/// place is asked there.
fn goes_but_for_null(from: TypeIn<'_>, to: TypeIn<'_>) -> Result<(), Why> {
    assignable_but_for_null(from, to)
}

#[cfg(test)]
mod tests;
