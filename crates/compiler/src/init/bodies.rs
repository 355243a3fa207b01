//! The lines of a drafted route for parameters and bodies. Only certain lines are drafted: for
//! counterparts that [`fields`] finds, with compatible values or a conversion. Otherwise the route
//! is not drafted, and the reason is reported for a person.

mod conversions;
mod heads;
mod spelled;
mod whys;

use self::conversions::{
    anonymous_objects, conversion, counterpart, fits, map_values, named_type, unknown_values,
};
pub(super) use self::spelled::quote;
use self::spelled::{one_line, path, place, word};
use self::whys::{DraftObstacle, Whys};
use super::descriptions::Descriptions;
use super::fields::{self, Both, FieldContext, FieldPath, Guess};
use crate::contract::{
    Access, Additional, Choice, Field, Object, Operation, Type, TypeIn, TypeKind, assignable,
};
use crate::contract::{Contract, Media};
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
}

/// Input other than the contracts.
pub(super) struct DraftContext<'g> {
    /// Ids of accepted proposals.
    pub accepted: &'g BTreeSet<String>,
    pub descriptions: &'g Descriptions<'g>,
    /// Names of header fields with credentials, in lower case.
    pub credentials: &'g [String],
    /// Types of the old side with preserved wrappers, because lines without them did not compile.
    pub wrapped: &'g BTreeSet<String>,
}

/// A guess about a field, with its type.
#[derive(Debug, Clone)]
pub(super) struct Proposal {
    /// The type on the old side.
    pub ty: String,
    pub guess: Guess,
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
    /// Shapes by name.
    shapes: BTreeMap<String, ShapeDraft>,
    by_types: HashMap<ShapeKey, String>,
    /// Stack of the shapes being drafted, with their names. A recursive use refers to the name.
    open: Vec<(ShapeKey, String)>,
    /// Completed shapes in the order of completion. If a shape fails, those that refer to it fail
    /// too.
    drafted: Vec<ShapeKey>,
    failed: HashMap<ShapeKey, String>,
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
    /// Whether the new side has fields that the old one lacks.
    rest: bool,
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
            shapes: BTreeMap::new(),
            by_types: HashMap::new(),
            open: Vec::new(),
            drafted: Vec::new(),
            failed: HashMap::new(),
        }
    }

    /// Returns the lines of a pair, or the reason why it is not drafted.
    pub(super) fn route(&mut self, old: &Operation, new: &Operation) -> Drafted<RouteDraft> {
        let mut route = RouteDraft::default();
        self.path(old, new, &mut route)?;
        self.query(old, new, &mut route)?;
        self.headers(old, new, &mut route)?;
        self.request(old, new, &mut route)?;
        self.answer(old, new, &mut route)?;
        self.statuses(old, new, &mut route)?;
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
        if fits(types, way) {
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

    /// Adds the remarks and refusals of a shape to the route.
    fn use_shape(&self, shape: &ShapeDraft, route: &mut RouteDraft) {
        route.remarks.extend(shape.remarks.iter().cloned());
        route.refuses |= !shape.refused.is_empty();
        let refused = shape.refused.iter().map(|name| format!("a client that sends `{name}` is refused"));
        route.looks.extend(refused);
        route.unwraps.extend(shape.unwraps.clone());
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
        while self.shapes.contains_key(&name) || self.open.iter().any(|(_, open)| *open == name) {
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
            fits: &|types| fits(types, way),
        };
        let pairing = fields::pair([old, new], types.map(|ty| ty.types), &known);
        self.taken.extend(pairing.taken);
        if pairing.both.iter().any(|both| both.around.iter().any(Option::is_some)) {
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
            let proposal = Proposal { ty: name.to_owned(), guess: guess.clone() };
            self.proposals.insert(guess.id.clone(), proposal);
        }
        let mut whys = Whys::default();
        let likely = |side: usize, place: &FieldPath| {
            let guess = pairing.guesses.iter().find(|guess| guess.places[side] == *place);
            guess.map_or_else(String::new, |guess| {
                format!(" (likely `{}`, {:.2}: `{}`)", path(&guess.places[1 - side]), guess.score, guess.id)
            })
        };
        for (place, field) in &pairing.only[0] {
            if let Err(why) = one_sided(place, field, way, &mut shape) {
                whys.own(why + &likely(0, place));
            }
        }
        for (place, field) in &pairing.only[1] {
            // A read-only field is never part of a request, even if it is required.
            if way == Message::Request && field.required && field.access != Access::ReadOnly {
                whys.own(format!(
                    "`{}` is required by the new side, and the old one has no such field{}",
                    path(place),
                    likely(1, place)
                ));
            }
            shape.rest = true;
        }
        for both in &pairing.both {
            if let Err(why) = self.field(both, types, way, &mut shape) {
                whys.add(why);
            }
        }
        if let (Additional::Of(a), Additional::Of(b)) = (&old.additional, &new.additional) {
            let inner = [types[0].types.at(a), types[1].types.at(b)];
            if !fits(inner, way) {
                match self.value(inner, [false, false], way, &mut shape, "*") {
                    Ok(how) => shape.rename.push(format!("'*': {{{}: '*', {how}}}", quote(self.names[1]))),
                    Err(why) => whys.add(DraftObstacle { text: why, own: false }),
                }
            }
        }
        whys.none()?;
        Ok(shape)
    }

    fn field(
        &mut self,
        both: &Both<'_>,
        types: [TypeIn<'_>; 2],
        way: Message,
        shape: &mut ShapeDraft,
    ) -> Result<(), DraftObstacle> {
        let [old, new] = both.fields;
        let own = |text: String| DraftObstacle { text, own: true };
        let inner = [types[0].types.at(&old.ty), types[1].types.at(&new.ty)];
        let (read, built) = sort(way, [old, new]);
        let around = sort(way, both.around).0;
        let places = [place(&both.places[0]).map_err(own)?, place(&both.places[1]).map_err(own)?];
        // The enclosing object must be required too.
        if built.required && !(read.required && around.is_none_or(|around| around.required)) {
            return Err(own(format!(
                "`{}` is always there on one side, and may be absent on the other",
                path(&both.places[0])
            )));
        }
        let [from, to] = &places;
        if fits(inner, way) {
            let said = if both.is_said { "   # both documents say the same of it" } else { "" };
            // `same` lists names; nested places need `rename`.
            match both.places[0] == both.places[1] && both.places[0].len() == 1 {
                true => shape.same.push(from.clone()),
                false => shape.rename.push(format!("{from}: {to}{said}")),
            }
            return Ok(());
        }
        if let Some(objects) = anonymous_objects(inner).filter(|_| both.places[0].len() < PLACES_MAX) {
            return self.draft_nested(both, objects, types, way, shape);
        }
        let required = [old.required, new.required];
        let how = self.value(inner, required, way, shape, &old.name);
        let how = how.map_err(|text| DraftObstacle { text, own: false })?;
        let side = quote(self.names[1]);
        shape.rename.push(format!("{from}: {{{side}: {to}, {how}}}"));
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
    ) -> Result<(), DraftObstacle> {
        let own = |text: String| DraftObstacle { text, own: true };
        let place = |side: usize, inner: &FieldPath| [outer.places[side].clone(), inner.clone()].concat();
        let mut pairing = fields::same([old, new]);
        for (inner, field) in &pairing.only[0] {
            let at = place(0, inner);
            match way {
                // Only members of the body itself can refuse a call.
                Message::Request if field.access != Access::ReadOnly => {
                    return Err(own(format!("`{}` has no counterpart on the new side", path(&at))));
                }
                _ => one_sided(&at, field, way, shape).map_err(own)?,
            }
        }
        for (inner, field) in &pairing.only[1] {
            if way == Message::Request && field.required && field.access != Access::ReadOnly {
                let at = path(&place(1, inner));
                return Err(own(format!(
                    "`{at}` is required by the new side, and the old one has no such field"
                )));
            }
            shape.rest = true;
        }
        for both in &mut pairing.both {
            both.places = [0, 1].map(|side| place(side, &both.places[side]));
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
        if let Some(how) = conversion(types, required, way) {
            return Ok(how.to_owned());
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
        if !shape.only_old.is_empty() {
            all.push(format!("only: {{{a}: {{{}}}}}", shape.only_old.join(", ")));
        }
        if shape.rest {
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

/// Drafts the line of a field that only the old side has.
fn one_sided(at: &FieldPath, field: &Field, way: Message, shape: &mut ShapeDraft) -> Drafted<()> {
    match way {
        Message::Answer if field.required => {
            Err(format!("`{}` is always there on the old side, and the new one has no such field", path(at)))
        }
        Message::Answer => {
            shape.only_old.push(format!("{}: absent", place(at)?));
            Ok(())
        }
        // Clients must not send it, and the old service ignored it.
        Message::Request if field.access == Access::ReadOnly => {
            shape.only_old.push(format!("{}: absent", place(at)?));
            Ok(())
        }
        Message::Request if field.required => {
            Err(format!("`{}` has no counterpart on the new side", path(at)))
        }
        Message::Request => {
            shape.only_old.push(format!("{}: {{refuse: todo}}", place(at)?));
            shape.refused.push(one_line(&path(at)));
            Ok(())
        }
    }
}
