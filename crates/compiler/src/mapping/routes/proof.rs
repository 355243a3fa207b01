//! What is known of a request before it is used. The served contract says what a client should send; a client may send
//! anything. Two uses cannot take that: what is read of a request after a write (the other side would turn away half of
//! what was asked for), and what is made a text of (anything would become one). Both want a check before them.
//!
//! A place is known by `conforms`; or by `kind` or `one_of`, where these say as much as its type, together with `present`
//! where the contract requires it. Parameters of the path and the query are typed by the gateway itself.

use super::faults;
use super::route::RouteCheck;
use crate::contract::{Additional, Body, JsonKind, Object, Operation, ScalarKind, Type, TypeKind, Types};
use crate::diagnostic::Span;
use crate::mapping::form;
use jsonpath_rust::parser::model::{Segment as Selected, Selector};
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_plan::{self as plan, Form, Location, Path, Segment, ValueOp};

/// How a place of the request's body is used.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need<'w> {
    /// Sent, or made something of, after this call has written.
    After(&'w str),
    /// It becomes such a text: `a line of a text`.
    Text(&'w str),
    /// A table decides by it, or a selection looks for it.
    Decides,
}

/// What checks have made sure of.
#[derive(Clone, Debug, Default)]
pub(super) struct Proofs {
    body: Option<(Type, bool)>,
    places: BTreeMap<String, Proof>,
    /// By the name of a step or an element, and one of its members: the places of the request that are in it.
    derived: Vec<(String, Option<String>, Vec<String>)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Proof {
    /// There, and not null.
    there: bool,
    /// Of its type, if it is there.
    typed: bool,
    conforms: bool,
}

/// Something that a check has made sure of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    There,
    Typed,
    Conforms,
}

impl Proofs {
    pub(super) fn of_request(operation: &Operation) -> Proofs {
        let body = operation.body.as_ref().map(|body| (body.ty.clone(), body.required));
        Proofs { body, ..Proofs::default() }
    }

    pub(super) fn learn(&mut self, names: &[&str], known: Known) {
        let proof = self.places.entry(names.join(".")).or_default();
        match known {
            Known::There => proof.there = true,
            Known::Typed => proof.typed = true,
            Known::Conforms => proof.conforms = true,
        }
    }

    /// What the result of a step is made of.
    pub(super) fn derive(&mut self, name: &str, made: Vec<(Option<String>, Vec<String>)>) {
        self.derived.retain(|(known, ..)| known != name);
        let made = made.into_iter().filter(|(_, places)| !places.is_empty());
        self.derived.extend(made.map(|(member, places)| (name.to_owned(), member, places)));
    }

    /// The places of the request's body that a place of the context leads to.
    pub(super) fn behind(&self, location: &Location) -> Vec<String> {
        let names = names_of(location);
        match names.as_slice() {
            [root, part, ..] if root == "request" => match part == "body" {
                true => vec![names.join(".")],
                false => Vec::new(),
            },
            [root, rest @ ..] => {
                let member = rest.first();
                let meets = |known: &Option<String>| match (known, member) {
                    (Some(known), Some(member)) => known == member,
                    _ => true,
                };
                let of_root = self
                    .derived
                    .iter()
                    .filter(|(known, known_member, _)| known == root && meets(known_member));
                of_root.flat_map(|(.., places)| places.clone()).collect()
            }
            [] => Vec::new(),
        }
    }

    /// The first of these places that no check has made sure of.
    pub(super) fn unknown<'p>(&self, places: &'p [String], types: &Types) -> Vec<&'p str> {
        let names = |place: &'p String| place.split('.').collect::<Vec<_>>();
        let unknown = places.iter().filter(|place| !self.is_known(&names(place), types));
        unknown.map(String::as_str).collect()
    }

    fn is_known(&self, names: &[&str], types: &Types) -> bool {
        let at = |upto: usize| self.places.get(&names[..upto].join(".")).copied().unwrap_or_default();
        if (2..=names.len()).any(|upto| at(upto).conforms) {
            return true;
        }
        let Some((body, mut required)) = self.body.clone() else { return true };
        let mut ty = &body;
        for upto in 2..=names.len() {
            if upto > 2 {
                let Some(object) = object_of(ty, types) else { return false };
                let Some(field) = object.field(names[upto - 1]) else {
                    return matches!(&object.additional, Additional::Open if object.fields.is_empty())
                        || matches!(&object.additional, Additional::Of(ty) if is_any(ty, types));
                };
                (ty, required) = (&field.ty, field.required);
            }
            let proof = at(upto);
            if proof.typed && (proof.there || !required) {
                return true;
            }
        }
        is_any(ty, types) && !required
    }

    /// Whether a check has made sure that there is an object at this place.
    pub(super) fn is_object(&self, place: &str) -> bool {
        let below = format!("{place}.");
        self.places.iter().any(|(known, proof)| {
            (proof.conforms && (known == place || known.starts_with(&below)))
                || (proof.there && known.starts_with(&below))
        })
    }
}

impl RouteCheck<'_, '_> {
    /// Places of the request's body are known where they are needed.
    pub(super) fn needs(&mut self, places: &[String], need: Need<'_>, span: Span) {
        let types = self.ground.types(self.serves);
        let mut unknown = self.context.proofs.unknown(places, types);
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            self.findings.push(faults::unchecked(&unknown, need, span));
        }
    }

    /// The same for what stands at a place.
    pub(super) fn needs_place(&mut self, location: &Location, need: Need<'_>, span: Span) {
        let places = self.context.proofs.behind(location);
        self.needs(&places, need, span);
    }

    /// After a write, what is read at a place is known.
    pub(super) fn read_late(&mut self, location: &Location, span: Span) {
        if let Some(write) = self.wrote.clone() {
            self.needs_place(location, Need::After(&write), span);
        }
    }

    /// After a write, what a shape reads of the request is known: the members that it takes, and that they are in an object.
    pub(super) fn shaped_late(&mut self, location: &Location, op: &ValueOp, span: Span) {
        let Some(write) = self.wrote.clone() else { return };
        let names = names_of(location);
        let Some(members) = members_read(op) else { return self.read_late(location, span) };
        let member = |name: &String| {
            let names: Vec<&str> = names.iter().chain([name]).map(String::as_str).collect();
            self.context.proofs.behind(&super::paths::location(&names))
        };
        let mut places: Vec<String> = members.iter().flat_map(member).collect();
        if names.first().is_some_and(|root| root == "request") {
            // What the contract does not declare can be anything, and no check speaks of it.
            let is_declared = |place: &String| {
                let names: Vec<&str> = place.split('.').skip(2).collect();
                self.form_of(&names).is_some()
            };
            let (declared, undeclared): (Vec<_>, Vec<_>) = places.into_iter().partition(is_declared);
            if !undeclared.is_empty() {
                self.findings.push(faults::undeclared_late(&undeclared, &write, span));
            }
            places = declared;
            let whole = names.join(".");
            let types = self.ground.types(self.serves);
            let proofs = &self.context.proofs;
            if proofs.unknown(&places, types).is_empty() && !proofs.is_object(&whole) {
                places.push(whole);
            }
        }
        self.needs(&places, Need::After(&write), span);
    }

    /// What becomes a text is of the type that it is taken for. What an earlier conversion takes is judged by that.
    pub(super) fn becomes_text(&mut self, expr: &plan::Expr, what: &str, span: Span) {
        let mut places = Vec::new();
        verbatim(expr, &mut |location| places.extend(self.context.proofs.behind(location)));
        self.needs(&places, Need::Text(what), span);
    }

    /// Remembers what a step's result is made of.
    pub(super) fn derived_by(&mut self, name: &str, action: &plan::StepAction) {
        match action {
            plan::StepAction::Make(expr) => self.derived(name, expr),
            plan::StepAction::Select(selection) => {
                let behind = |choice: &plan::Choice| self.context.proofs.behind(&choice.from);
                let places = selection.choices.iter().flat_map(behind).collect();
                self.context.proofs.derive(name, vec![(None, places)]);
            }
            // What replies and archives show was not sent with this request.
            plan::StepAction::Call(_) | plan::StepAction::Recall(_) | plan::StepAction::Keep(_) => {}
        }
    }

    /// The same of a value that is in the context under a name.
    pub(super) fn derived(&mut self, name: &str, expr: &plan::Expr) {
        let proofs = &self.context.proofs;
        let of = |expr: &plan::Expr| {
            let mut places = Vec::new();
            all(expr, &mut |location| places.extend(proofs.behind(location)));
            places
        };
        let made = match expr {
            plan::Expr::Object(members) => {
                members.iter().map(|(key, expr)| (Some(key.text.to_string()), of(expr))).collect()
            }
            expr => vec![(None, of(expr))],
        };
        self.context.proofs.derive(name, made);
    }

    /// The form of a place of the request's body, and whether the contract requires it.
    pub(super) fn form_of(&self, names: &[&str]) -> Option<(Arc<Form>, bool)> {
        let Body { ty, required, .. } = self.operation.body.as_ref()?;
        let types = self.ground.types(self.serves);
        let (mut ty, mut required) = (ty, *required);
        for name in names {
            let field = object_of(ty, types)?.field(name)?;
            (ty, required) = (&field.ty, required && field.required);
        }
        Some((form::of(ty, types), required))
    }
}

/// The object that a type is, or may be.
fn object_of<'t>(ty: &'t Type, types: &'t Types) -> Option<&'t Object> {
    match types.resolve(ty).kind {
        TypeKind::Object(object) => Some(object),
        TypeKind::OneOf(alternatives) => alternatives.iter().find_map(|one| match types.resolve(one).kind {
            TypeKind::Object(object) => Some(object),
            _ => None,
        }),
        _ => None,
    }
}

fn is_any(ty: &Type, types: &Types) -> bool {
    matches!(types.resolve(ty).kind, TypeKind::Any)
}

/// Whether a value of these kinds is all that a type asks for.
pub(super) fn is_told_by_kind(ty: &Type, kinds: &[JsonKind], types: &Types) -> bool {
    let plain = |ty: &Type| match types.resolve(ty).kind {
        TypeKind::Scalar(scalar) => {
            scalar.kind != ScalarKind::Integer && scalar.values.as_ref().is_none_or(|values| values.open)
        }
        TypeKind::Object(Object { fields, additional, .. }) => {
            fields.is_empty()
                && match additional {
                    Additional::Open => true,
                    Additional::Of(ty) => is_any(ty, types),
                    Additional::Closed => false,
                }
        }
        TypeKind::Array(array) => {
            is_any(&array.items, types) && array.min_items == 0 && array.max_items.is_none()
        }
        TypeKind::Any => true,
        TypeKind::Null | TypeKind::Named(_) | TypeKind::OneOf(_) | TypeKind::Choice(_) => false,
    };
    let declared = types.json_kinds(ty);
    let all_plain = match types.resolve(ty).kind {
        TypeKind::OneOf(alternatives) => alternatives.iter().all(plain),
        _ => plain(ty),
    };
    all_plain && kinds.iter().all(|kind| declared.contains(kind))
}

/// The names that a path begins with.
pub(super) fn names_of(location: &Location) -> Vec<String> {
    match &location.path {
        Path::Singular(steps) => steps
            .iter()
            .map_while(|step| match step {
                Segment::Member(key) => Some(key.text.to_string()),
                Segment::Index(_) => None,
            })
            .collect(),
        Path::Query(query) => query
            .segments
            .iter()
            .map_while(|segment| match segment {
                Selected::Selector(Selector::Name(name)) => Some(crate::mapping::syntax::unquoted(name)),
                _ => None,
            })
            .collect(),
    }
}

/// The members of its source that an op takes something of; none where it takes the whole. What is copied whatever it is does
/// not count: nothing can be wrong with it.
fn members_read(op: &ValueOp) -> Option<Vec<String>> {
    if let ValueOp::Attempt(attempt) = op {
        return members_read(&attempt.op);
    }
    let ValueOp::Object(object) = op else { return None };
    if matches!(object.others, plan::Others::Each(_) | plan::Others::Refuse(_)) {
        return None;
    }
    let read = object.members.iter().filter(|member| {
        member.capture.is_some()
            || !matches!(member.action, plan::MemberAction::Drop | plan::MemberAction::Shadowed)
    });
    Some(read.map(|member| member.name.text.to_string()).collect())
}

/// Every place that a value is made of.
fn all(expr: &plan::Expr, see: &mut dyn FnMut(&Location)) {
    use plan::Expr;
    let mut each = |exprs: &[Expr]| exprs.iter().for_each(|expr| all(expr, &mut *see));
    match expr {
        Expr::Constant(_) => {}
        Expr::At(location) => see(location),
        Expr::Convert { from, .. } | Expr::Aggregate { list: from, .. } => all(from, see),
        Expr::Lookup { value, list, .. } => {
            all(value, see);
            see(list);
        }
        Expr::Object(members) => members.iter().for_each(|(_, expr)| all(expr, &mut *see)),
        Expr::Array(items) | Expr::FirstOf(items) | Expr::Present(items) => each(items),
        Expr::Text { with, .. } => with.iter().for_each(|(_, expr)| all(expr, &mut *see)),
        Expr::Shape { from, with, over, .. } => {
            each(with);
            all(from, see);
            over.iter().for_each(|over| all(&over.base, &mut *see));
        }
        Expr::Each { list, give, .. } => {
            all(list, see);
            all(give, see);
        }
        Expr::If { then, otherwise, .. } => {
            all(then, see);
            otherwise.iter().for_each(|expr| all(expr, &mut *see));
        }
        Expr::Lines { plain, numbered } => {
            each(plain);
            each(numbered);
        }
    }
}

/// The places whose values are in a value as they stand. A conversion that turns away what it does not take is a check.
fn verbatim(expr: &plan::Expr, see: &mut dyn FnMut(&Location)) {
    use plan::Expr;
    use plan::convert::Otherwise;
    match expr {
        Expr::Convert { conversion, .. } if matches!(conversion.otherwise, Otherwise::Error) => {}
        Expr::Convert { from, .. } => verbatim(from, see),
        Expr::FirstOf(items) | Expr::Present(items) | Expr::Array(items) => {
            items.iter().for_each(|expr| verbatim(expr, &mut *see));
        }
        Expr::If { then, otherwise, .. } => {
            verbatim(then, see);
            otherwise.iter().for_each(|expr| verbatim(expr, &mut *see));
        }
        // Lines and texts are judged where they are made.
        Expr::Lines { .. } | Expr::Text { .. } | Expr::Constant(_) => {}
        // What is looked up decides which element it is, and is not in it.
        Expr::Lookup { list, .. } => see(list),
        // A number, or an error.
        Expr::Aggregate { .. } => {}
        Expr::At(_) | Expr::Object(_) | Expr::Shape { .. } | Expr::Each { .. } => all(expr, see),
    }
}
