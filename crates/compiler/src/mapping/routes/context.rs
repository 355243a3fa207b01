//! Types of a route's context document: the possible values at each place, narrowed by checks and
//! decisions.
//!
//! The types are owned copies of the contracts' types, because a route narrows them: after
//! `all_present: [name]`, the request's `name` is present and not null. Named types in a
//! [`ContextValue`] belong to the contract of its side.

use super::proof::{Proofs, ProvenFact};
use super::provenance::Provenance;
use crate::contract::{
    Access, Additional, Array, Contract, Enum, Field, JsonKind, Limits, Literal, Object, Operation, Scalar,
    ScalarKind, Type, TypeIn, TypeKind, Types, Unread,
};
use crate::diagnostic::Span;
use std::collections::BTreeSet;
use switchback_plan::{Kinds, SideId};

/// Type of a value in the context.
#[derive(Clone, Debug)]
pub(super) struct ContextValue {
    pub ty: Type,
    pub side: SideId,
    /// Whether the value may be absent.
    pub absent: bool,
}

impl ContextValue {
    pub(super) fn present(ty: Type, side: SideId) -> ContextValue {
        ContextValue { ty, side, absent: false }
    }

    pub(super) fn any(side: SideId, span: Span) -> ContextValue {
        ContextValue { ty: Type::any(span), side, absent: true }
    }

    /// Limits the length of a list.
    pub(super) fn with_most(mut self, items: Option<u64>) -> ContextValue {
        if let TypeKind::Array(array) = &mut self.ty.kind {
            array.max_items = items;
        }
        self
    }

    /// Returns the maximum length of a list.
    pub(super) fn most(&self) -> Option<u64> {
        let TypeKind::Array(array) = &self.ty.kind else { return None };
        array.max_items
    }

    pub(super) fn in_types<'a>(&'a self, contracts: &'a [Contract; 2]) -> TypeIn<'a> {
        TypeIn { types: &contracts[self.side].types, ty: &self.ty }
    }
}

/// The members of the context, in the order of their definition.
#[derive(Clone, Debug, Default)]
pub(super) struct StepContext {
    members: Vec<(String, ContextValue)>,
    /// Results of later steps, with their spans.
    pub later: Vec<(String, Span)>,
    /// Places that paths have read, with up to three names: `request.body.name`.
    pub read: BTreeSet<String>,
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
    /// Members whose type is unknown because of an error. Reading one reports no further error.
    pub faulty: BTreeSet<String>,
    /// Number of reads of such members.
    pub faults_met: usize,
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

impl StepContext {
    /// Returns the context of a request to an operation.
    pub(super) fn of_request(operation: &Operation, side: SideId) -> StepContext {
        let span = operation.span;
        let members = |parameters: &[crate::contract::Parameter], always: bool| {
            let field = |p: &crate::contract::Parameter| Field {
                name: p.name.clone(),
                ty: p.ty.clone(),
                // A request without a path variable would not match the operation.
                required: always || p.required,
                access: Access::Both,
                default: None,
                span: p.span,
            };
            parameters.iter().map(field).collect::<Vec<_>>()
        };
        let mut fields = vec![
            field("path", object(members(&operation.path_params, true), Additional::Closed, span)),
            field("query", object(members(&operation.query, false), Additional::Closed, span)),
            field("headers", headers(span)),
        ];
        if let Some(body) = &operation.body {
            fields.push(Field {
                name: "body".to_owned(),
                ty: body.ty.clone(),
                required: body.required,
                access: Access::Both,
                default: None,
                span: body.span,
            });
        }
        // Validation is tracked apart from types, because types state what the contract permits and
        // not what has been checked.
        let mut context = StepContext { proofs: Proofs::of_request(operation), ..StepContext::default() };
        context.set("request", ContextValue::present(object(fields, Additional::Closed, span), side));
        context
    }

    pub(super) fn set(&mut self, name: &str, held: ContextValue) {
        self.members.retain(|(known, _)| known != name);
        self.members.push((name.to_owned(), held));
    }

    /// Returns whether a path has read this member of the context or a place below it.
    pub(super) fn is_root_read(&self, name: &str) -> bool {
        self.read.iter().any(|read| read == name || is_below(read, name))
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.members.retain(|(known, _)| known != name);
    }

    /// Applies all facts of a condition.
    pub(super) fn learn_all(&mut self, facts: &[(Vec<String>, Fact)], contracts: &[Contract; 2]) {
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

    /// Returns whether a path has read this place, a place below it, or one that contains it.
    pub(super) fn is_read(&self, place: &str) -> bool {
        self.read.iter().any(|read| read == place || is_below(read, place) || is_below(place, read))
    }

    /// Applies a fact to the place that `names` lead to from the root of the context.
    pub(super) fn learn(&mut self, names: &[&str], fact: &Fact, contracts: &[Contract; 2]) {
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
}

impl StepContext {
    /// Applies the known facts about a place behind an index to its value.
    pub(super) fn narrow(
        &self,
        steps: &[String],
        mut held: ContextValue,
        contracts: &[Contract; 2],
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
            let nullable = ty.nullable;
            *ty = one.clone();
            ty.nullable |= nullable;
        }
    }
}

/// Returns the type of a call's result.
pub(super) fn reply(body: Option<Type>, body_required: bool, span: Span) -> Type {
    let mut fields =
        vec![field("status", scalar(ScalarKind::Integer, span)), field("headers", headers(span))];
    if let Some(ty) = body {
        fields.push(Field {
            name: "body".to_owned(),
            ty,
            required: body_required,
            access: Access::Both,
            default: None,
            span,
        });
    }
    object(fields, Additional::Closed, span)
}

/// Returns the type of a fanned-out call's result: a list of the elements, each with its reply if
/// there is one.
pub(super) fn fan_out(name: &str, element: ContextValue, mut reply: Type, span: Span) -> ContextValue {
    if let TypeKind::Object(object) = &mut reply.kind {
        // Elements beyond the bound, and failed calls, have no reply.
        object.fields.iter_mut().for_each(|field| field.required = false);
        object.fields.push(Field {
            name: name.to_owned(),
            ty: element.ty,
            required: true,
            access: Access::Both,
            default: None,
            span,
        });
    }
    ContextValue::present(list(reply, span), element.side)
}

/// Returns the type of headers: text values with arbitrary names.
fn headers(span: Span) -> Type {
    object(Vec::new(), Additional::Of(Box::new(scalar(ScalarKind::String, span))), span)
}

fn field(name: &str, ty: Type) -> Field {
    Field { name: name.to_owned(), span: ty.span, ty, required: true, access: Access::Both, default: None }
}

pub(super) fn object(fields: Vec<Field>, additional: Additional, span: Span) -> Type {
    Type {
        kind: TypeKind::Object(Object { fields, additional, unread: Unread::default() }),
        nullable: false,
        span,
    }
}

/// Returns a scalar type without bounds.
pub(super) fn scalar(kind: ScalarKind, span: Span) -> Type {
    let scalar = Scalar { kind, values: None, format: None, limits: Limits::default() };
    Type { kind: TypeKind::Scalar(scalar), nullable: false, span }
}

/// Returns a list type without bounds.
pub(super) fn list(items: Type, span: Span) -> Type {
    let array = Array {
        items: Box::new(items),
        min_items: 0,
        max_items: None,
        unique: false,
        unread: Unread::default(),
    };
    Type { kind: TypeKind::Array(array), nullable: false, span }
}

/// Converts the kinds to their form in plans.
pub(super) fn kinds_of(of: &[JsonKind]) -> Kinds {
    use switchback_json::raw::Kind;
    let kind = |kind: &JsonKind| match kind {
        JsonKind::Boolean => Kind::Bool,
        JsonKind::Number => Kind::Number,
        JsonKind::String => Kind::String,
        JsonKind::Array => Kind::Array,
        JsonKind::Object => Kind::Object,
    };
    Kinds::from_kinds(&of.iter().map(kind).collect::<Vec<_>>())
}
