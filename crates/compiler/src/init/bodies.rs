//! The lines of a drafted route for parameters and bodies. A line is certain if [`fields`] finds a
//! counterpart with compatible values or a conversion. Any other difference of two bodies is an
//! [`Obstacle`], and the draft continues past it. A difference without lines fails the route.

mod answers;
mod conversions;
mod heads;
mod obstacles;
mod spelled;

use self::conversions::{
    anonymous_objects, conversion, counterpart, fits, map_values, midnight, named_type, nearest_values,
    spelled_values, unknown_values,
};
pub(super) use self::obstacles::Obstacle;
use self::obstacles::{DraftChoice, OneSided, literal, literal_of};
pub(super) use self::spelled::quote;
use self::spelled::{one_line, path, place, word};
use super::descriptions::Descriptions;
use super::fields::{self, Both, FieldContext, FieldPath, Guess};
use crate::contract::{
    Access, Additional, Choice, Field, Object, Operation, Proven, Type, TypeIn, TypeKind, assignable,
    compare_once,
};
use crate::contract::{Contract, Media};
use crate::diagnostic::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use switchback_plan::{Message, media_in_range};

/// The lines of a route except for its operations.
#[derive(Debug, Clone, Default)]
pub(super) struct RouteDraft {
    pub lines: Vec<String>,
    /// Names of the shapes that it uses, directly or indirectly.
    pub shapes: Vec<String>,
    /// Differences for clients, which the report contains too.
    pub remarks: Vec<String>,
    /// Other points to review.
    pub looks: Vec<String>,
    /// Types of the old side with removed wrappers.
    pub unwraps: Vec<String>,
    /// Whether clients may be refused for a part of their request.
    pub refuses: bool,
    /// Whether a line carries more than a body that is forwarded unchanged: a member of another name,
    /// or a value in another spelling.
    pub improves: bool,
    /// Differences that need a person.
    pub obstacles: Vec<Obstacle>,
}

/// Input other than the contracts.
pub(super) struct DraftContext<'g> {
    /// Ids of accepted proposals, and `ID: LINE` for obstacles that a person has resolved.
    pub accepted: &'g BTreeSet<String>,
    pub descriptions: &'g Descriptions<'g>,
    /// Names of header fields with credentials, in lower case.
    pub credentials: &'g [String],
    /// Types of the old side with preserved wrappers, because lines without them did not compile.
    pub wrapped: &'g BTreeSet<String>,
    /// Names of handwritten shapes.
    pub reserved: &'g BTreeSet<String>,
    /// Names that members of several types have changed alike, once a person has accepted one.
    pub siblings: &'g BTreeSet<[String; 2]>,
}

impl DraftContext<'_> {
    /// Returns the line that a person has chosen for an obstacle.
    fn answer(&self, id: &str) -> Option<&str> {
        let prefix = format!("{id}: ");
        self.accepted.range(prefix.clone()..).next()?.strip_prefix(&prefix)
    }
}

/// A guess about a field, with its type.
#[derive(Debug, Clone)]
pub(super) struct Proposal {
    /// The type on the old side.
    pub ty: String,
    pub guess: Guess,
    /// Places in the documents, by side.
    pub spans: [Option<Span>; 2],
    /// The line of a shape; `None` if a shape cannot name the places.
    pub line: Option<String>,
}

pub(super) struct Bodies<'c> {
    old: &'c Contract,
    new: &'c Contract,
    names: [&'c str; 2],
    given: &'c DraftContext<'c>,
    /// Guesses about fields, by id.
    pub proposals: BTreeMap<String, Proposal>,
    /// Ids of the accepted guesses.
    pub taken: BTreeSet<String>,
    /// The names that accepted guesses have related.
    pub renamed: BTreeSet<[String; 2]>,
    /// Shapes by name.
    shapes: BTreeMap<String, ShapeDraft>,
    by_types: HashMap<ShapeKey, String>,
    /// Stack of the shapes being drafted, with their names. A recursive use refers to the name.
    open: Vec<(ShapeKey, String)>,
    /// Completed shapes in the order of completion. If a shape fails, those that refer to it fail
    /// too.
    drafted: Vec<ShapeKey>,
    failed: HashMap<ShapeKey, String>,
    proven: Proven,
    /// Whether lines for two types are better than none, by address. The contracts do not move.
    improving: HashMap<([*const TypeKind; 2], Message), bool>,
}

/// The names of both sides' types, and the direction.
type ShapeKey = (String, String, Message);

#[derive(Debug, Clone, Default)]
struct ShapeDraft {
    text: String,
    /// Shapes that it uses.
    shapes: Vec<String>,
    remarks: Vec<String>,
    /// Fields for which a client is refused.
    refused: Vec<String>,
    /// The type of the old side, if a wrapper object was removed on either side.
    unwraps: Option<String>,
    same: Vec<String>,
    rename: Vec<String>,
    only_old: Vec<String>,
    only_new: Vec<String>,
    renames: bool,
    obstacles: Vec<Obstacle>,
    /// Members of the new side without a line, as they are named in lines; empty if they cannot be.
    rest: Vec<String>,
    /// Shapes of alternatives, in place of lines.
    alternatives: Vec<String>,
    /// Guesses about one-sided fields.
    comments: Vec<String>,
}

type Drafted<T> = Result<T, String>;

/// Maximum depth of nested drafts. The types of large documents all refer to each other, and each
/// level uses stack.
const DEPTH_MAX: usize = 24;
/// Maximum number of names in a place.
const PLACES_MAX: usize = 4;
/// Maximum number of drafted alternatives of one type. If each alternative contains the type again,
/// the cost of compiling them is cubic.
const ALTERNATIVES_MAX: usize = 32;

impl<'c> Bodies<'c> {
    pub(super) fn new(
        contracts: [&'c Contract; 2],
        names: [&'c str; 2],
        given: &'c DraftContext<'c>,
    ) -> Bodies<'c> {
        Bodies {
            old: contracts[0],
            new: contracts[1],
            names,
            given,
            proposals: BTreeMap::new(),
            taken: BTreeSet::new(),
            renamed: BTreeSet::new(),
            shapes: BTreeMap::new(),
            by_types: HashMap::new(),
            open: Vec::new(),
            drafted: Vec::new(),
            failed: HashMap::new(),
            proven: Proven::default(),
            improving: HashMap::new(),
        }
    }

    /// Returns the lines of a pair, or all reasons why it is not drafted.
    pub(super) fn route(&mut self, old: &Operation, new: &Operation) -> Result<RouteDraft, Vec<String>> {
        let mut route = RouteDraft::default();
        let parts = [
            self.path(old, new, &mut route),
            self.query(old, new, &mut route),
            self.headers(old, new),
            self.request(old, new, &mut route),
            self.answer(old, new, &mut route),
            self.statuses(old, new, &mut route),
        ];
        let failed: Vec<String> = parts.into_iter().filter_map(Result::err).collect();
        if !failed.is_empty() {
            return Err(failed);
        }
        self.business_errors(new, &mut route);
        let mut differs: Vec<String> = route.remarks.clone();
        differs.dedup();
        match differs.as_slice() {
            [] => {}
            [only] => route.lines.push(format!("differs: {}", quote(only))),
            several => {
                let all: Vec<String> = several.iter().map(|text| quote(text)).collect();
                route.lines.push(format!("differs: [{}]", all.join(", ")));
            }
        }
        if route.refuses {
            route.lines.push("verdict: partly".to_owned());
        } else if !differs.is_empty() {
            route.lines.push("verdict: different".to_owned());
        }
        Ok(route)
    }

    fn request(&mut self, old: &Operation, new: &Operation, route: &mut RouteDraft) -> Drafted<()> {
        match (&old.body, &new.body) {
            (None, None) => Ok(()),
            // An optional body may be omitted.
            (None, Some(body)) if !body.required => Ok(()),
            (None, Some(_)) => Err("the new side requires a body, and the old one has none".to_owned()),
            (Some(_), None) => Err("the new side takes no body".to_owned()),
            (Some(from), Some(to)) => {
                let types = [self.old.types.at(&from.ty), self.new.types.at(&to.ty)];
                if to.required && !from.required {
                    return Err("the body is required on the new side and not on the old one".to_owned());
                }
                // Opaque bodies, and two compatible forms, need no lines.
                if let Some(keep) = draft_opaque([&from.media, &to.media], types, Message::Request) {
                    route.lines.push(format!("request: {}", keep?));
                    return Ok(());
                }
                self.body(old, types, Message::Request, route)
            }
        }
    }

    fn answer(&mut self, old: &Operation, new: &Operation, route: &mut RouteDraft) -> Drafted<()> {
        let success = |operation: &'_ Operation| -> Option<(Type, Media)> {
            let successes = operation.responses.iter().filter(|answer| answer.is_success());
            // A body that is not JSON takes precedence: either it is forwarded unchanged, or the
            // route is not drafted.
            let with_body = successes.filter_map(|answer| Some((answer.body.clone()?, answer.media.clone())));
            with_body.min_by_key(|(_, media)| media.is_json())
        };
        match (success(old), success(new)) {
            (None, None) => Ok(()),
            (None, Some(_)) => {
                route.lines.push("response: empty".to_owned());
                Ok(())
            }
            (Some(_), None) => Err("the new side answers without a body".to_owned()),
            (Some((to, built)), Some((from, read))) => {
                let types = [self.old.types.at(&to), self.new.types.at(&from)];
                if let Some(keep) = draft_opaque([&built, &read], types, Message::Answer) {
                    route.lines.push(format!("response: {}", keep?));
                    return Ok(());
                }
                self.body(old, types, Message::Answer, route)
            }
        }
    }

    /// Drafts the line `request:` or `response:`.
    fn body(
        &mut self,
        operation: &Operation,
        types: [TypeIn<'_>; 2],
        way: Message,
        route: &mut RouteDraft,
    ) -> Drafted<()> {
        let word = if way == Message::Request { "request" } else { "response" };
        if fits(types, way) && !self.improves(types, way) {
            route.lines.push(format!("{word}: keep"));
            return Ok(());
        }
        let shape = match (types.map(TypeIn::object), types.map(named_type)) {
            // An unnamed type has its lines inline.
            ([Some(old), Some(new)], [None, _] | [_, None]) => {
                let name = format!("{} {word}", operation.key);
                let shape = self.shape(&name, old, new, types, way)?;
                route.lines.push(format!("{word}:"));
                route.lines.extend(self.lines(&shape).into_iter().map(|line| format!("  {line}")));
                self.use_shape(&shape, route);
                shape.shapes
            }
            _ => {
                let (name, each) = self.shape_of(types, way)?;
                let used = if each { format!("[{}]", quote(&name)) } else { quote(&name) };
                route.lines.push(format!("{word}: {used}"));
                vec![name]
            }
        };
        for name in self.with_inner(shape.iter()) {
            let shape = self.shapes[&name].clone();
            self.use_shape(&shape, route);
            route.shapes.push(name);
        }
        Ok(())
    }

    /// Returns whether lines carry members that a value that is copied as it is loses.
    fn improves(&mut self, types: [TypeIn<'_>; 2], way: Message) -> bool {
        let kinds = types.map(|ty| std::ptr::from_ref(ty.kind()));
        if let Some(known) = self.improving.get(&(kinds, way)) {
            return *known;
        }
        // A recursive use does not decide.
        self.improving.insert((kinds, way), false);
        let improves = self.has_better_lines(types, way);
        self.improving.insert((kinds, way), improves);
        improves
    }

    fn has_better_lines(&mut self, types: [TypeIn<'_>; 2], way: Message) -> bool {
        let (from, to) = sort(way, types);
        let compared = compare_once(from, to, way, &mut self.proven);
        if compared.is_ok_and(|narrowings| narrowings.is_empty()) {
            return false;
        }
        if let Some(objects) = anonymous_objects(types) {
            return fields::same(objects).both.iter().any(|both| both.places[0] != both.places[1]);
        }
        let Ok((name, _)) = self.shape_of(types, way) else { return false };
        let reached = self.with_inner([&name].into_iter());
        let shapes = || reached.iter().filter_map(|name| self.shapes.get(name));
        shapes().any(|shape| shape.renames) && shapes().all(|shape| shape.obstacles.is_empty())
    }

    /// Adds the remarks and refusals of a shape to the route.
    fn use_shape(&self, shape: &ShapeDraft, route: &mut RouteDraft) {
        route.remarks.extend(shape.remarks.iter().cloned());
        route.refuses |= !shape.refused.is_empty();
        let refused = shape.refused.iter().map(|name| format!("a client that sends `{name}` is refused"));
        route.looks.extend(refused);
        route.unwraps.extend(shape.unwraps.clone());
        route.improves |= shape.renames;
        for obstacle in &shape.obstacles {
            // A type may have a shape for requests and one for answers.
            if !route.obstacles.contains(obstacle) {
                route.obstacles.push(obstacle.clone());
            }
        }
    }

    /// Returns the shape between two types, drafting it if necessary, and whether it applies to
    /// list elements.
    fn shape_of(&mut self, types: [TypeIn<'_>; 2], way: Message) -> Drafted<(String, bool)> {
        let why = || {
            let (from, to) = sort(way, types);
            let why = assignable(from, to, Some(way)).err().map(|why| why.to_string()).unwrap_or_default();
            let word = if way == Message::Request { "request" } else { "answer" };
            format!("the {word} does not fit: {why}")
        };
        let mut inner = types;
        let mut each = false;
        for side in [0, 1] {
            if let Some(items) = types[side].items() {
                inner[side] = items;
                each = true;
            }
        }
        let (Some(old), Some(new)) = (named_type(inner[0]), named_type(inner[1])) else {
            return Err(why());
        };
        if each && types.iter().any(|ty| ty.items().is_none()) {
            return Err(why());
        }
        let key = (old.0.name.to_string(), new.0.name.to_string(), way);
        if let Some(known) = self.by_types.get(&key) {
            return Ok((known.clone(), each));
        }
        // A type that is being drafted contains itself; the name is sufficient.
        if let Some((_, name)) = self.open.iter().find(|(open, _)| *open == key) {
            return Ok((name.clone(), each));
        }
        if let Some(why) = self.failed.get(&key) {
            return Err(why.clone());
        }
        let mut name = format!("{}{}", word(&key.0), if way == Message::Request { "Sent" } else { "" });
        // Types of both directions, and types with names that differ in punctuation, may share a
        // name.
        let is_taken = |name: &String| {
            self.given.reserved.contains(name)
                || self.shapes.contains_key(name)
                || self.open.iter().any(|(_, open)| open == name)
        };
        while is_taken(&name) {
            name.push('2');
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(format!(
                "`{}` lies in more than {DEPTH_MAX} types that do not fit as they are",
                key.0
            ));
        }
        let mark = self.drafted.len();
        self.open.push((key.clone(), name.clone()));
        let drafted = match (old.1, new.1) {
            (TypeKind::Object(old), TypeKind::Object(new)) => self.shape(&key.0, old, new, inner, way),
            (TypeKind::Choice(old), TypeKind::Choice(new)) => self.choice([old, new], inner, way),
            _ => Err(why()),
        };
        self.open.pop();
        match drafted {
            Ok(mut shape) => {
                shape.text = self.render_shape(&name, &key, &shape);
                self.shapes.insert(name.clone(), shape);
                self.by_types.insert(key.clone(), name.clone());
                self.drafted.push(key);
                Ok((name, each))
            }
            Err(why) => {
                self.fail(&name, mark, &why);
                self.failed.insert(key, why.clone());
                Err(why)
            }
        }
    }

    /// Marks a shape as failed, along with the shapes completed since `mark` that refer to it. Each
    /// is drafted only once.
    fn fail(&mut self, name: &str, mark: usize, why: &str) {
        for key in self.drafted.split_off(mark) {
            let leads_back = |own: &String| {
                let reached = self.with_inner([own].into_iter());
                reached.iter().any(|one| self.shapes[one].shapes.iter().any(|inner| inner == name))
            };
            if self.by_types.get(&key).is_some_and(leads_back) {
                self.failed.insert(key, why.to_owned());
            } else {
                self.drafted.push(key);
            }
        }
        let failed = &self.failed;
        let (names, shapes) = (&mut self.by_types, &mut self.shapes);
        names.retain(|key, name| {
            let stays = !failed.contains_key(key);
            if !stays {
                shapes.remove(name);
            }
            stays
        });
    }

    /// Drafts a shape for each alternative of the source that is not compatible as it is.
    fn choice(
        &mut self,
        [old, new]: [&Choice; 2],
        types: [TypeIn<'_>; 2],
        way: Message,
    ) -> Drafted<ShapeDraft> {
        let mut shape = ShapeDraft::default();
        let (read, built) = sort(way, [old, new]);
        let (from, to) = sort(way, types);
        for (at, one) in read.alternatives.iter().enumerate() {
            let one = from.types.at(one);
            // A compatible alternative needs no shape.
            if assignable(one, to, Some(way)).is_ok() {
                continue;
            }
            let other = counterpart(one, at, read, to, built)
                .ok_or_else(|| format!("`{}` is no alternative of the other side", one.ty))?;
            let pair = if way == Message::Request { [one, other] } else { [other, one] };
            if shape.alternatives.len() == ALTERNATIVES_MAX {
                return Err(format!(
                    "more than {ALTERNATIVES_MAX} alternatives of `{}` do not fit as they are",
                    from.ty
                ));
            }
            let (name, _) = self.shape_of(pair, way).map_err(|why| format!("`{}`: {why}", one.ty))?;
            shape.shapes.push(name.clone());
            shape.alternatives.push(quote(&name));
        }
        Ok(shape)
    }

    /// Returns these shapes and all shapes that they use.
    pub(super) fn with_inner<'n>(&self, names: impl Iterator<Item = &'n String>) -> BTreeSet<String> {
        let mut open: Vec<&str> = names.map(String::as_str).collect::<Vec<_>>();
        let mut reached = BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some((name, shape)) = self.shapes.get_key_value(name) else { continue };
            if reached.insert(name.clone()) {
                open.extend(shape.shapes.iter().map(String::as_str));
            }
        }
        reached
    }

    fn shape(
        &mut self,
        name: &str,
        old: &Object,
        new: &Object,
        types: [TypeIn<'_>; 2],
        way: Message,
    ) -> Drafted<ShapeDraft> {
        let mut shape = ShapeDraft::default();
        let known = FieldContext {
            name,
            accepted: self.given.accepted,
            descriptions: self.given.descriptions,
            unwraps: !self.given.wrapped.contains(name),
            siblings: self.given.siblings,
            fits: &|types| fits(types, way),
        };
        let pairing = fields::pair([old, new], types.map(|ty| ty.types), &known);
        self.taken.extend(pairing.taken);
        self.renamed.extend(pairing.renamed);
        // An accepted guess may still relate a nested member. A type whose wrappers were preserved must not
        // be named again, or the attempts would not end.
        if known.unwraps && pairing.both.iter().any(|both| both.around.iter().any(Option::is_some)) {
            shape.unwraps = Some(name.to_owned());
        }
        for guess in &pairing.guesses {
            shape.comments.push(format!(
                "# likely ({:.2}): `{}` has become `{}`: {}; --accept {}",
                guess.score,
                one_line(&path(&guess.places[0])),
                one_line(&path(&guess.places[1])),
                guess.why,
                guess.id
            ));
            let span = |side: usize, object: &Object| {
                object.field(guess.places[side].first()?).map(|field| field.span)
            };
            let spans = [span(0, old), span(1, new)];
            let line = place(&guess.places[0]).and_then(|from| Ok((from, place(&guess.places[1])?)));
            let line = line.ok().map(|(from, to)| format!("rename: {{{from}: {to}}}"));
            let proposal = Proposal { ty: name.to_owned(), guess: guess.clone(), spans, line };
            self.proposals.insert(guess.id.clone(), proposal);
        }
        let likely = |side: usize, place: &FieldPath| {
            let guess = pairing.guesses.iter().find(|guess| guess.places[side] == *place);
            guess.map_or_else(String::new, |guess| {
                format!(" (likely `{}`, {:.2}: `{}`)", path(&guess.places[1 - side]), guess.score, guess.id)
            })
        };
        shape.renames = pairing.both.iter().any(|both| both.places[0] != both.places[1]);
        self.one_sided(&pairing.only, types, way, &likely, &mut shape)?;
        for both in &pairing.both {
            self.field(both, types, way, &mut shape)?;
        }
        if let (Additional::Of(a), Additional::Of(b)) = (&old.additional, &new.additional) {
            let inner = [types[0].types.at(a), types[1].types.at(b)];
            if !fits(inner, way) {
                match self.value(inner, [false, false], way, &mut shape, "*") {
                    Ok(how) => shape.rename.push(format!("'*': {{{}: '*', {how}}}", quote(self.names[1]))),
                    Err(text) => {
                        let read = if way == Message::Request { 0 } else { 1 };
                        let line = format!("only: {{{}: {{'*': none}}}}", quote(self.names[read]));
                        let only = if read == 0 { &mut shape.only_old } else { &mut shape.only_new };
                        only.push("'*': none".to_owned());
                        let choices = vec![DraftChoice::new("leave them out", line)];
                        shape.obstacles.push(Obstacle {
                            id: String::new(),
                            text,
                            spans: [Some(a.span), Some(b.span)],
                            choices,
                        });
                    }
                }
            }
        }
        let key = if way == Message::Request { format!("{name} sent") } else { name.to_owned() };
        shape.answer(&key, self.names, |id| self.given.answer(id));
        Ok(shape)
    }

    /// Drafts the lines of members that only one side has.
    fn one_sided(
        &self,
        only: &[Vec<(FieldPath, &Field)>; 2],
        types: [TypeIn<'_>; 2],
        way: Message,
        likely: &dyn Fn(usize, &FieldPath) -> String,
        shape: &mut ShapeDraft,
    ) -> Drafted<()> {
        for (at, field) in &only[0] {
            let name = place(at)?;
            let one =
                OneSided { at, field, types: types[0].types, others: &only[1], other_types: types[1].types };
            let spans = [field.span, types[1].types.resolve(types[1].ty).span].map(Some);
            match way {
                Message::Answer if field.required && field.access != Access::WriteOnly => {
                    let choices = one.built(0, self.names)?;
                    shape.only_old.push(format!("{name}: {}", literal(one.types, field)));
                    let text = format!(
                        "`{}` is always there on the old side, and the new one has no such field{}",
                        path(at),
                        likely(0, at)
                    );
                    shape.obstacles.push(Obstacle { id: String::new(), text, spans, choices });
                }
                // Clients must not send a read-only member, and the old service ignored it.
                Message::Answer => shape.only_old.push(format!("{name}: absent")),
                Message::Request if field.access == Access::ReadOnly => {
                    shape.only_old.push(format!("{name}: absent"));
                }
                // Only an optional member of the body itself can refuse a call on its own.
                Message::Request if field.required || at.len() > 1 => {
                    let mut choices = one.sent(self.names)?;
                    if at.len() > 1 {
                        choices.remove(0);
                        shape.only_old.push(format!("{name}: none"));
                    } else {
                        shape.only_old.push(format!("{name}: {{refuse: todo}}"));
                        shape.refused.push(one_line(&path(at)));
                    }
                    let text = format!("`{}` has no counterpart on the new side{}", path(at), likely(0, at));
                    shape.obstacles.push(Obstacle { id: String::new(), text, spans, choices });
                }
                Message::Request => {
                    shape.only_old.push(format!("{name}: {{refuse: todo}}"));
                    shape.refused.push(one_line(&path(at)));
                }
            }
        }
        for (at, field) in &only[1] {
            // A read-only field is never part of a request, even if it is required.
            if way == Message::Answer || !field.required || field.access == Access::ReadOnly {
                shape.rest.push(place(at).unwrap_or_default());
                continue;
            }
            let one =
                OneSided { at, field, types: types[1].types, others: &only[0], other_types: types[0].types };
            let choices = one.built(1, self.names)?;
            shape.only_new.push(format!("{}: {}", place(at)?, literal(one.types, field)));
            let text = format!(
                "`{}` is required by the new side, and the old one has no such field{}",
                path(at),
                likely(1, at)
            );
            let spans = [types[0].types.resolve(types[0].ty).span, field.span].map(Some);
            shape.obstacles.push(Obstacle { id: String::new(), text, spans, choices });
        }
        Ok(())
    }

    fn field(
        &mut self,
        both: &Both<'_>,
        types: [TypeIn<'_>; 2],
        way: Message,
        shape: &mut ShapeDraft,
    ) -> Drafted<()> {
        let [old, new] = both.fields;
        let inner = [types[0].types.at(&old.ty), types[1].types.at(&new.ty)];
        let (read, built) = sort(way, [old, new]);
        let around = sort(way, both.around).0;
        let [from, to] = [place(&both.places[0])?, place(&both.places[1])?];
        // The enclosing object must be required too.
        if built.required && !(read.required && around.is_none_or(|around| around.required)) {
            let text = format!(
                "`{}` is always there on one side, and may be absent on the other",
                path(&both.places[0])
            );
            if !fits(inner, way) {
                return self.part(both, inner, way, shape, text);
            }
            let side = if way == Message::Request { 1 } else { 0 };
            let line = format!(
                "{from}: {{{}: {to}, default: {{{}: {}}}}}",
                quote(self.names[1]),
                quote(self.names[side]),
                literal_of(inner[side])
            );
            shape.rename.push(line.clone());
            let choices =
                vec![DraftChoice::new("this value where there is none", format!("rename: {{{line}}}"))];
            let spans = [Some(old.span), Some(new.span)];
            shape.obstacles.push(Obstacle { id: String::new(), text, spans, choices });
            return Ok(());
        }
        if fits(inner, way) && !self.improves(inner, way) {
            let said = if both.is_said { "   # both documents say the same of it" } else { "" };
            // `same` lists names; nested places need `rename`.
            match both.places[0] == both.places[1] && both.places[0].len() == 1 {
                true => shape.same.push(from),
                false => shape.rename.push(format!("{from}: {to}{said}")),
            }
            return Ok(());
        }
        if let Some(objects) = anonymous_objects(inner).filter(|_| both.places[0].len() < PLACES_MAX) {
            return self.draft_nested(both, objects, types, way, shape);
        }
        match self.value(inner, [old.required, new.required], way, shape, &old.name) {
            Ok(how) => {
                shape.rename.push(format!("{from}: {{{}: {to}, {how}}}", quote(self.names[1])));
                Ok(())
            }
            Err(text) => self.part(both, inner, way, shape, text),
        }
    }

    /// Drafts two members whose values do not go over, as if each side had its own. A person may
    /// know a conversion.
    fn part(
        &self,
        both: &Both<'_>,
        inner: [TypeIn<'_>; 2],
        way: Message,
        shape: &mut ShapeDraft,
        text: String,
    ) -> Drafted<()> {
        let [old, new] = both.fields;
        let [from, to] = [place(&both.places[0])?, place(&both.places[1])?];
        let [a, b] = self.names.map(quote);
        let mut choices = Vec::new();
        match way {
            Message::Answer => {
                let value = if old.required { literal_of(inner[0]) } else { "absent".to_owned() };
                let label = if old.required { "always this value" } else { "leave it out" };
                choices.push(DraftChoice::new(label, format!("only: {{{a}: {{{from}: {value}}}}}")));
                shape.only_old.push(format!("{from}: {value}"));
                shape.rest.push(to.clone());
            }
            Message::Request => {
                let is_top = both.places[0].len() == 1;
                let (label, value) = if is_top {
                    ("refuse calls that send it", "{refuse: todo}")
                } else {
                    ("leave it out", "none")
                };
                choices.push(DraftChoice::new(label, format!("only: {{{a}: {{{from}: {value}}}}}")));
                shape.only_old.push(format!("{from}: {value}"));
                if is_top {
                    shape.refused.push(one_line(&path(&both.places[0])));
                }
                match new.required && new.access != Access::ReadOnly {
                    true => shape.only_new.push(format!("{to}: {}", literal_of(inner[1]))),
                    false => shape.rest.push(to.clone()),
                }
            }
        }
        let table = nearest_values(inner, way, self.names);
        for [label, how] in table.into_iter().chain(midnight(inner, way, self.names)) {
            let line = format!("rename: {{{from}: {{{b}: {to}, {how}}}}}");
            choices.push(DraftChoice::new(label, line));
        }
        let spans = [Some(old.span), Some(new.span)];
        shape.obstacles.push(Obstacle { id: String::new(), text, spans, choices });
        Ok(())
    }

    /// Drafts the members of an object that has no name on at least one side. No shape can refer to
    /// such an object, so its members are named by place.
    fn draft_nested(
        &mut self,
        outer: &Both<'_>,
        [old, new]: [&Object; 2],
        types: [TypeIn<'_>; 2],
        way: Message,
        shape: &mut ShapeDraft,
    ) -> Drafted<()> {
        let mut pairing = fields::same([old, new]);
        for side in [0, 1] {
            let place = |inner: &FieldPath| [outer.places[side].clone(), inner.clone()].concat();
            pairing.only[side].iter_mut().for_each(|(inner, _)| *inner = place(inner));
            pairing.both.iter_mut().for_each(|both| both.places[side] = place(&both.places[side]));
        }
        self.one_sided(&pairing.only, types, way, &|_, _| String::new(), shape)?;
        for both in &pairing.both {
            self.field(both, types, way, shape)?;
        }
        Ok(())
    }

    /// Returns the conversion for an incompatible value, in the form of a `rename` line.
    fn value(
        &mut self,
        types: [TypeIn<'_>; 2],
        required: [bool; 2],
        way: Message,
        shape: &mut ShapeDraft,
        name: &str,
    ) -> Drafted<String> {
        let (from, to) = sort(way, types);
        if let Some(how) = conversion(types, required, way, self.names) {
            return Ok(how);
        }
        if let Some(table) = spelled_values(types, way) {
            return Ok(table);
        }
        if let Some(table) = unknown_values(from, to, way) {
            shape
                .remarks
                .push(format!("`{name}` may hold values that the other side does not list: {}", table.1));
            return Ok(table.0);
        }
        if let Some(values) = map_values(types) {
            if from.is_nullable() && !to.is_nullable() {
                return Err(format!("`{name}`: the map may be null on one side, and not on the other"));
            }
            let (found, each) = self.shape_of(values, way).map_err(|why| format!("`{name}`: {why}"))?;
            // `each_value` cannot apply a shape to the elements of a list.
            if !each {
                shape.shapes.push(found.clone());
                return Ok(format!("each_value: {}", quote(&found)));
            }
            return Err(format!("`{name}`: the values of the map are lists, which do not fit as they are"));
        }
        let (found, each) = self.shape_of(types, way).map_err(|why| format!("`{name}`: {why}"))?;
        let used = if each { format!("[{}]", quote(&found)) } else { quote(&found) };
        shape.shapes.push(found);
        Ok(format!("shape: {used}"))
    }

    fn render_shape(&self, name: &str, (old, new, _): &ShapeKey, shape: &ShapeDraft) -> String {
        let [a, b] = self.names.map(quote);
        let mut text = format!("  {}:\n    of: {{{a}: {}, {b}: {}}}\n", quote(name), quote(old), quote(new));
        self.lines(shape).iter().for_each(|line| text.push_str(&format!("    {line}\n")));
        text
    }

    /// Renders the lines of a shape, without indentation.
    fn lines(&self, shape: &ShapeDraft) -> Vec<String> {
        let [a, b] = self.names.map(quote);
        let mut all = Vec::new();
        if !shape.alternatives.is_empty() {
            all.push(format!("alternatives: [{}]", shape.alternatives.join(", ")));
        }
        if !shape.same.is_empty() {
            all.push(format!("same: [{}]", shape.same.join(", ")));
        }
        if !shape.rename.is_empty() {
            all.push("rename:".to_owned());
            all.extend(shape.rename.iter().map(|line| format!("  {line}")));
        }
        all.extend(shape.comments.iter().cloned());
        let only: Vec<String> = [(&a, &shape.only_old), (&b, &shape.only_new)]
            .into_iter()
            .filter(|(_, lines)| !lines.is_empty())
            .map(|(side, lines)| format!("{side}: {{{}}}", lines.join(", ")))
            .collect();
        if !only.is_empty() {
            all.push(format!("only: {{{}}}", only.join(", ")));
        }
        if !shape.rest.is_empty() {
            all.push(format!("rest: {{{b}: lost}}"));
        }
        all
    }

    /// Removes the shapes that these do not use.
    pub(super) fn forget_unused<'s>(&mut self, used: impl Iterator<Item = &'s String>) {
        let used = self.with_inner(used);
        self.shapes.retain(|name, _| used.contains(name));
    }

    /// Renders the section of a mapping file with all shapes; empty without shapes.
    pub(super) fn all_text(&self) -> String {
        self.text_of(self.shapes.keys())
    }

    /// Renders the section of a mapping file with these shapes; empty without shapes.
    pub(super) fn text_of<'s>(&self, names: impl Iterator<Item = &'s String>) -> String {
        let text: String = names.map(|name| self.shapes[name].text.as_str()).collect();
        if text.is_empty() { text } else { format!("shapes:\n{text}") }
    }
}

/// Returns the source and the target of a message. The old side is served.
fn sort<T>(way: Message, [old, new]: [T; 2]) -> (T, T) {
    match way {
        Message::Request => (old, new),
        Message::Answer => (new, old),
    }
}

/// Returns the line for a body that is opaque, or a form on both sides: `keep`, or the reason
/// against it. Returns `None` if the body needs lines.
fn draft_opaque(media: [&Media; 2], types: [TypeIn<'_>; 2], way: Message) -> Option<Drafted<&'static str>> {
    let (from, to) = sort(way, types);
    let other = match media.into_iter().find(|media| !media.is_read()) {
        Some(other) => other,
        // Lines are drafted for two incompatible forms, as for JSON.
        None if media.iter().any(|media| media.is_json()) => return None,
        // Documents of different layouts need lines, although their types are equal.
        None if media[0].is_laid_out_unlike(media[1]) => return None,
        None => return assignable(from, to, Some(way)).is_ok().then_some(Ok("keep")),
    };
    let [old, new] = media.map(Media::ranges);
    let meet = |a: &str, b: &str| media_in_range(a, b) || media_in_range(b, a);
    if !old.iter().any(|a| new.iter().any(|b| meet(a, b))) {
        return Some(Err(format!("a body of `{}` is not mapped", other.name())));
    }
    Some(match assignable(from, to, Some(way)) {
        Ok(()) => Ok("keep"),
        Err(why) => {
            Err(format!("a body of `{}` is not mapped, and does not fit as it is: {why}", other.name()))
        }
    })
}
