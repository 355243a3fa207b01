//! The flow of a route: the values in scope at a point, the facts that checks and decisions have
//! established about them, and the writes before it.
//!
//! A check receives the flow, and returns it changed or works on a copy. Facts that hold in one
//! branch therefore never reach another one.

use super::context::{ContextValue, field, headers, object, scalar};
use super::proof::{Proofs, ProvenFact};
use super::provenance::Provenance;
use crate::contract::{
    Additional, Contracts, Enum, JsonKind, Literal, Object, Operation, Parameter, ScalarKind, Type, TypeKind,
    Types,
};
use crate::diagnostic::Span;
use crate::mapping::ast::{ExprDecl, ExprKind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use switchback_plan::SideId;

/// The state of a route at one point.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// The members of the context, in the order of their definition.
    members: Vec<(String, ContextValue)>,
    /// Names within a shape, later ones first in their scope.
    named: Vec<(String, NamedValue)>,
    /// Results of later steps, with their spans.
    pub later: Vec<(String, Span)>,
    /// Properties that checks have established.
    pub proofs: Proofs,
    /// Facts about places behind an index, by the steps of the place. Types cannot express them,
    /// because the elements of a list share one type.
    indexed: Vec<(Vec<String>, Fact)>,
    /// Origins of step results.
    pub provenance: Provenance,
    /// Optional settings that are known to have a value, by dotted name.
    set: BTreeSet<String>,
    /// By result of a call: the statuses, as literals, with which its reply is certain to have a
    /// body.
    pub with_body: Vec<(String, Vec<String>)>,
    /// Members of unknown type because of an error. Reading one reports no further error.
    pub faulty: BTreeSet<String>,
    /// Names of the steps with results from replies.
    pub called_as: Vec<String>,
    /// The first write.
    pub wrote: Option<Write>,
    /// The first write that is neither remembered nor safe to repeat.
    pub unremembered: Option<Arc<str>>,
    /// Names of the approximations that apply.
    pub approximations: Vec<Arc<str>>,
}

/// The meaning of a name within a shape.
#[derive(Clone, Debug)]
enum NamedValue {
    /// A place, by its path in the context.
    Place(Arc<str>),
    Computed(Arc<ExprDecl>),
}

/// The first write of a route.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub name: Arc<str>,
    /// Whether it is a `keep` step instead of a call.
    pub is_keep: bool,
    /// Whether a decision table has examined replies since.
    pub is_judged: bool,
}

impl Write {
    pub(super) fn of_call(operation: &str) -> Write {
        Write { name: operation.into(), is_keep: false, is_judged: false }
    }
}

/// Places that paths have read. It belongs to the route, not to its flow: a read in any branch
/// counts.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// With up to three names: `request.body.name`.
    pub places: BTreeSet<String>,
    /// Number of reads of members of unknown type because of an error.
    pub faulty: usize,
}

impl Reads {
    /// Returns whether a path has read this place, a place below it, or one that contains it.
    pub(super) fn has(&self, place: &str) -> bool {
        self.places.iter().any(|read| read == place || is_below(read, place) || is_below(place, read))
    }

    /// Returns whether a path has read this member of the context or a place below it.
    pub(super) fn has_root(&self, name: &str) -> bool {
        self.places.iter().any(|read| read == name || is_below(read, name))
    }
}

/// A fact about a place, from a check that held or a row that matched.
#[derive(Clone, Debug)]
pub(super) enum Fact {
    /// Present and not null.
    Present,
    /// Not null, if present.
    NotNull,
    /// One of these values, if present and not null.
    OneOf(Vec<Literal>),
    /// Of one of these kinds, if present and not null.
    Kinds(Vec<JsonKind>),
    /// Never absent, because the route fills it.
    Filled,
    /// A property that a check has established. It does not narrow the type.
    Known(ProvenFact),
}

impl Flow {
    /// Returns the state before the first step.
    pub(super) fn of_request(operation: &Operation, side: SideId) -> Flow {
        let span = operation.span;
        let members = |parameters: &[Parameter], always: bool| {
            // A request without a path variable would not match the operation.
            let member = |p: &Parameter| field(&p.name, p.ty.clone(), always || p.required, p.span);
            object(parameters.iter().map(member).collect(), Additional::Closed, span)
        };
        let mut fields = vec![
            field("path", members(&operation.path_params, true), true, span),
            field("query", members(&operation.query, false), true, span),
            field("headers", headers(span), true, span),
        ];
        let body = operation.body.as_ref();
        fields.extend(body.map(|body| field("body", body.ty.clone(), body.required, body.span)));
        // Validation is tracked separately from types: types state the values that the contract permits,
        // not those that were checked.
        let mut flow = Flow { proofs: Proofs::of_request(operation), ..Flow::default() };
        flow.set("request", ContextValue::present(object(fields, Additional::Closed, span), side));
        flow
    }

    /// Adds the time and the id of the request, which the gateway knows.
    pub(super) fn add_arrival(&mut self) {
        let request = self.members.iter_mut().find(|(name, _)| name == "request");
        let Some((_, ContextValue { ty: Type { kind: TypeKind::Object(object), span, .. }, .. })) = request
        else {
            return;
        };
        let mut received = scalar(ScalarKind::String, *span);
        if let TypeKind::Scalar(scalar) = &mut received.kind {
            scalar.format = Some("date-time".into());
        }
        object.fields.push(field("received", received, true, *span));
        object.fields.push(field("id", scalar(ScalarKind::String, *span), true, *span));
    }

    pub(super) fn set(&mut self, name: &str, held: ContextValue) {
        self.members.retain(|(known, _)| known != name);
        self.members.push((name.to_owned(), held));
    }

    /// Makes a name stand for a place, by its path in the context.
    pub(super) fn stand_for(&mut self, name: &str, path: &str) {
        self.named.push((name.to_owned(), NamedValue::Place(path.into())));
    }

    /// Gives a value a name: another spelling of a place, or an expression.
    pub(super) fn name_value(&mut self, name: &str, value: &ExprDecl) {
        let value = match &value.kind {
            ExprKind::Path(path) if self.named_value(path).is_none() => {
                NamedValue::Place(self.written_out(path).into())
            }
            _ => NamedValue::Computed(Arc::new(value.clone())),
        };
        self.named.push((name.to_owned(), value));
    }

    /// Returns the expression that a path names, and the flow for it: with the names before it.
    pub(super) fn named_value(&self, path: &str) -> Option<(Arc<ExprDecl>, Flow)> {
        let name = path.strip_prefix("$.")?;
        let at = self.named.iter().rposition(|(known, _)| known == name)?;
        let NamedValue::Computed(value) = &self.named[at].1 else { return None };
        Some((value.clone(), Flow { named: self.named[..at].to_vec(), ..self.clone() }))
    }

    /// Returns whether a name is that of an expression.
    pub(super) fn is_named_value(&self, name: &str) -> bool {
        self.named.iter().any(|(known, value)| known == name && matches!(value, NamedValue::Computed(_)))
    }

    /// Returns a path with places in place of their names.
    pub(super) fn written_out<'t>(&self, path: &'t str) -> Cow<'t, str> {
        if self.named.is_empty() {
            return Cow::Borrowed(path);
        }
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        let (mut written, mut rest) = (String::new(), path);
        while let Some(at) = rest.find("$.") {
            let name = &rest[at + 2..];
            let name = &name[..name.find(|letter| !is_part(letter)).unwrap_or(name.len())];
            let known = self.named.iter().rev().find(|(known, _)| known == name);
            written.push_str(&rest[..at]);
            match known {
                Some((_, NamedValue::Place(place))) => written.push_str(place),
                _ => written.extend(["$.", name]),
            }
            rest = &rest[at + 2 + name.len()..];
        }
        written.push_str(rest);
        Cow::Owned(written)
    }

    /// Returns the flow with a further member.
    pub(super) fn with(&self, name: &str, held: ContextValue) -> Flow {
        let mut flow = self.clone();
        flow.set(name, held);
        flow
    }

    /// Returns the flow where a condition holds.
    pub(super) fn where_holds(&self, facts: &[(Vec<String>, Fact)], contracts: &Contracts) -> Flow {
        let mut flow = self.clone();
        flow.learn_all(facts, contracts);
        flow
    }

    /// Applies all facts of a condition.
    pub(super) fn learn_all(&mut self, facts: &[(Vec<String>, Fact)], contracts: &Contracts) {
        for (names, fact) in facts {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            self.learn(&names, fact, contracts);
        }
        // The status of a reply determines whether the contract guarantees a body.
        for (names, fact) in facts {
            let ([step, status], Fact::OneOf(values)) = (names.as_slice(), fact) else { continue };
            let is_there = |(other, fact): &(Vec<String>, Fact)| {
                other == names && matches!(fact, Fact::Present | Fact::Filled)
            };
            let Some((_, promised)) = self.with_body.iter().find(|(name, _)| name == step) else { continue };
            let has_body =
                |value: &Literal| matches!(value, Literal::Number(text) if promised.contains(text));
            if status == "status" && facts.iter().any(is_there) && values.iter().all(has_body) {
                self.learn(&[step, "body"], &Fact::Filled, contracts);
            }
        }
    }

    /// Adds the names of approximations.
    pub(super) fn approximate(&mut self, names: Vec<Arc<str>>) {
        for name in names {
            if !self.approximations.contains(&name) {
                self.approximations.push(name);
            }
        }
    }

    /// Returns the name of the first write.
    pub(super) fn write_name(&self) -> Option<&str> {
        self.wrote.as_ref().map(|write| &*write.name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&ContextValue> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, held)| held)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| name.as_str())
    }

    /// Returns whether an optional setting is known to have a value.
    pub(super) fn is_set(&self, setting: &str) -> bool {
        self.set.contains(setting)
    }

    /// Applies a fact to the place that `names` lead to from the root of the context.
    pub(super) fn learn(&mut self, names: &[&str], fact: &Fact, contracts: &Contracts) {
        if let Fact::Known(known) = fact {
            self.proofs.learn(names, *known);
            return;
        }
        if let Some(at) = names.iter().position(|name| is_index(name)) {
            self.indexed.push((names.iter().map(|name| (*name).to_owned()).collect(), fact.clone()));
            // A list with an element is present.
            if matches!(fact, Fact::Present) {
                self.learn(&names[..at], fact, contracts);
            }
            return;
        }
        let [root, names @ ..] = names else { return };
        // Settings are not members of the context. Only their presence is narrowed, because their
        // type is known.
        if *root == "config" {
            if matches!(fact, Fact::Present) {
                self.set.insert(names.join("."));
            }
            return;
        }
        let Some((_, held)) = self.members.iter_mut().find(|(known, _)| known == root) else { return };
        let types = &contracts[held.side].types;
        let mut required = !held.absent;
        learn(&mut held.ty, &mut required, names, fact, types);
        held.absent = !required;
    }

    /// Applies the known facts about a place behind an index to its value.
    pub(super) fn narrow(
        &self,
        steps: &[String],
        mut held: ContextValue,
        contracts: &Contracts,
    ) -> ContextValue {
        for (place, fact) in self.indexed.iter().filter(|(place, _)| place.starts_with(steps)) {
            // A fact about a nested place implies only that this place is present.
            let is_here = place.len() == steps.len();
            if is_here || (matches!(fact, Fact::Present) && steps.iter().any(|step| is_index(step))) {
                let mut required = !held.absent;
                learn(&mut held.ty, &mut required, &[], fact, &contracts[held.side].types);
                held.absent = !required;
            }
        }
        held
    }
}

/// Returns whether a step of a place is an index.
fn is_index(step: &str) -> bool {
    step.strip_prefix('[').and_then(|step| step.strip_suffix(']')).is_some_and(|at| at.parse::<i64>().is_ok())
}

fn is_below(place: &str, above: &str) -> bool {
    place.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

/// Narrows a type by a fact about a place below it. Named types on the path are expanded, because
/// the fact holds for this use only.
fn learn(ty: &mut Type, required: &mut bool, names: &[&str], fact: &Fact, types: &Types) {
    let Some((name, rest)) = names.split_first() else {
        match fact {
            Fact::Present => {
                *required = true;
                write_out(ty, types);
                ty.nullable = matches!(ty.kind, TypeKind::Any);
            }
            Fact::NotNull => {
                write_out(ty, types);
                ty.nullable = matches!(ty.kind, TypeKind::Any);
            }
            Fact::Filled => *required = true,
            Fact::OneOf(values) => list_values(ty, values, types),
            Fact::Kinds(kinds) => keep_kinds(ty, kinds, types),
            Fact::Known(_) => {}
        }
        return;
    };
    if matches!(fact, Fact::Present) {
        *required = true;
    }
    write_out(ty, types);
    if matches!(fact, Fact::Present) && !matches!(ty.kind, TypeKind::Any) {
        // A value with a member is an object.
        keep_kinds(ty, &[JsonKind::Object], types);
        write_out(ty, types);
        ty.nullable = false;
    }
    if let Some(object) = object_of(ty, types)
        && let Some(field) = object.fields.iter_mut().find(|field| field.name == *name)
    {
        learn(&mut field.ty, &mut field.required, rest, fact, types);
    }
}

/// Returns the object that a type is, or that one of its alternatives is.
fn object_of<'t>(ty: &'t mut Type, types: &Types) -> Option<&'t mut Object> {
    match &mut ty.kind {
        TypeKind::Object(object) => Some(object),
        // Alternatives differ by JSON kind, so at most one of them is an object.
        TypeKind::OneOf(alternatives) => {
            let is_object = |one: &&mut Type| matches!(types.resolve(one).kind, TypeKind::Object(_));
            let one = alternatives.iter_mut().find(is_object)?;
            write_out(one, types);
            let TypeKind::Object(object) = &mut one.kind else { return None };
            Some(object)
        }
        _ => None,
    }
}

/// Replaces a reference by its target.
fn write_out(ty: &mut Type, types: &Types) {
    if let TypeKind::Named(_) = ty.kind {
        let resolved = types.resolve(ty);
        *ty = Type { kind: resolved.kind.clone(), nullable: resolved.nullable, span: resolved.span };
    }
}

fn list_values(ty: &mut Type, values: &[Literal], types: &Types) {
    write_out(ty, types);
    if let TypeKind::Scalar(scalar) = &mut ty.kind {
        scalar.values = Some(Box::new(Enum { values: values.to_vec(), open: false }));
    }
}

fn keep_kinds(ty: &mut Type, kinds: &[JsonKind], types: &Types) {
    write_out(ty, types);
    if let TypeKind::OneOf(alternatives) = &mut ty.kind {
        let fits = |one: &Type| types.json_kinds(one).iter().any(|kind| kinds.contains(kind));
        alternatives.retain(fits);
        if let [one] = alternatives.as_slice() {
            // Kinds exclude null, so a narrower choice of kinds is as nullable as before.
            let nullable = ty.nullable;
            *ty = one.clone();
            ty.nullable |= nullable;
        }
    }
}
