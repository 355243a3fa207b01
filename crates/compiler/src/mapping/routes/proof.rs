//! Tracks which parts of a request have been validated before use.
//!
//! Clients may send values that the served contract does not permit. Two uses cannot accept them:
//! values used after a write, where a rejection by the other side leaves the request half done, and
//! values converted to text, because any value can become text. Both require a preceding check.
//!
//! A place is validated by `conforms`, or by `kind` or `one_of` where these are as strict as its
//! type, together with `present` if the contract requires the place. The gateway itself validates
//! path and query parameters.

use crate::contract::{
    Additional, JsonKind, Object, Operation, RequestBody, ScalarKind, Type, TypeKind, Types,
};
use crate::mapping::form;
use jsonpath_rust::parser::model::{Segment as Selected, Selector};
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_plan::{self as plan, Form, Location, Path, Segment};

/// Use of a place of the request's body that requires a check.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlaceUse<'w> {
    /// Used after this write.
    After(&'w str),
    /// Converted to text; describes the target, such as `a line of a text`.
    Text(&'w str),
    /// Decides a row of a table, or selects elements.
    Decides,
}

/// Properties that checks have established.
#[derive(Clone, Debug, Default)]
pub(super) struct Proofs {
    body: Option<(Type, bool)>,
    places: BTreeMap<String, RequestProof>,
    /// Of steps and elements: the places of the request.
    derived: Origins,
}

/// The places that named results and their members are derived from.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    all: Vec<(String, Option<String>, Vec<String>)>,
}

impl Origins {
    pub(super) fn put(&mut self, name: &str, member: Option<&str>, places: Vec<String>) {
        self.all.push((name.to_owned(), member.map(str::to_owned), places));
    }

    /// Returns the places behind a result or one of its members.
    pub(super) fn behind<'o>(
        &'o self,
        name: &'o str,
        member: Option<&'o str>,
    ) -> impl Iterator<Item = &'o String> {
        let meets = move |known: &Option<String>| match (known.as_deref(), member) {
            (Some(known), Some(member)) => known == member,
            // If either side names no member, the origin is uncertain. Assume derivation.
            _ => true,
        };
        let of_name = self.all.iter().filter(move |(other, known, _)| other == name && meets(known));
        of_name.flat_map(|(.., places)| places)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct RequestProof {
    /// Present and not null.
    there: bool,
    /// Of its type, if present.
    typed: bool,
    conforms: bool,
}

/// A property that a check establishes for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProvenFact {
    There,
    Typed,
    Conforms,
}

impl Proofs {
    pub(super) fn of_request(operation: &Operation) -> Proofs {
        let body = operation.body.as_ref().map(|body| (body.ty.clone(), body.required));
        Proofs { body, ..Proofs::default() }
    }

    pub(super) fn learn(&mut self, names: &[&str], known: ProvenFact) {
        let proof = self.places.entry(names.join(".")).or_default();
        match known {
            ProvenFact::There => proof.there = true,
            ProvenFact::Typed => proof.typed = true,
            ProvenFact::Conforms => proof.conforms = true,
        }
    }

    /// Records the places that a step's result is derived from.
    pub(super) fn derive_result(&mut self, name: &str, action: &plan::StepAction) {
        match action {
            plan::StepAction::Make(expr) => self.derive_value(name, expr),
            plan::StepAction::Select(selection) => {
                let places = selection.choices.iter().flat_map(|choice| self.behind(&choice.from)).collect();
                self.derive(name, vec![(None, places)]);
            }
            // Replies and archives do not contain values of this request.
            plan::StepAction::Call(_) | plan::StepAction::Recall(_) | plan::StepAction::Keep(_) => {}
        }
    }

    /// Records the places that a named value is derived from.
    pub(super) fn derive_value(&mut self, name: &str, expr: &plan::Expr) {
        let of = |expr: &plan::Expr| {
            let mut places = Vec::new();
            all(expr, &mut |location| places.extend(self.behind(location)));
            places
        };
        let made = match expr {
            plan::Expr::Object(members) => {
                members.iter().map(|(key, expr)| (Some(key.text.to_string()), of(expr))).collect()
            }
            expr => vec![(None, of(expr))],
        };
        self.derive(name, made);
    }

    /// Records the places that the current element of a list is derived from.
    pub(super) fn derive_element(&mut self, name: &str, list: &Location) {
        let places = self.behind(list);
        self.derive(name, vec![(None, places)]);
    }

    fn derive(&mut self, name: &str, made: Vec<(Option<String>, Vec<String>)>) {
        self.derived.all.retain(|(known, ..)| known != name);
        let made = made.into_iter().filter(|(_, places)| !places.is_empty());
        self.derived.all.extend(made.map(|(member, places)| (name.to_owned(), member, places)));
    }

    /// Returns the places of the request's body that a place of the context is derived from.
    pub(super) fn behind(&self, location: &Location) -> Vec<String> {
        let names = names_of(location);
        match names.as_slice() {
            [root, part, ..] if root == "request" => match part == "body" {
                true => vec![names.join(".")],
                false => Vec::new(),
            },
            [root, rest @ ..] => {
                self.derived.behind(root, rest.first().map(String::as_str)).cloned().collect()
            }
            [] => Vec::new(),
        }
    }

    /// Returns the places that no check has validated.
    pub(super) fn unknown<'p>(&self, places: &'p [String], types: &Types) -> Vec<&'p str> {
        let names = |place: &'p String| place.split('.').collect::<Vec<_>>();
        let unknown = places.iter().filter(|place| !self.is_known(&names(place), types));
        unknown.map(String::as_str).collect()
    }

    fn is_known(&self, names: &[&str], types: &Types) -> bool {
        let at = |upto: usize| self.places.get(&names[..upto].join(".")).copied().unwrap_or_default();
        // A conforming object conforms in all of its members.
        if (2..=names.len()).any(|upto| at(upto).conforms) {
            return true;
        }
        // Without a body there are no places in it.
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
        // Any value is valid at an untyped place. Only its absence could violate the contract.
        is_any(ty, types) && !required
    }

    /// Returns whether a check has established that a place is an object.
    pub(super) fn is_object(&self, place: &str) -> bool {
        let below = format!("{place}.");
        self.places.iter().any(|(known, proof)| {
            (proof.conforms && (known == place || known.starts_with(&below)))
                || (proof.there && known.starts_with(&below))
        })
    }
}

/// Returns the form of a place of the request's body, and whether the contract requires the place.
pub(super) fn form_of(operation: &Operation, types: &Types, names: &[&str]) -> Option<(Arc<Form>, bool)> {
    let RequestBody { ty, required, .. } = operation.body.as_ref()?;
    let (mut ty, mut required) = (ty, *required);
    for name in names {
        let field = object_of(ty, types)?.field(name)?;
        (ty, required) = (&field.ty, required && field.required);
    }
    Some((form::form_of(ty, types), required))
}

/// Returns the object that a type is, or that one of its alternatives is.
pub(super) fn object_of<'t>(ty: &'t Type, types: &'t Types) -> Option<&'t Object> {
    match types.resolve(ty).kind {
        TypeKind::Object(object) => Some(object),
        TypeKind::OneOf(alternatives) => alternatives.iter().find_map(|one| match types.resolve(one).kind {
            TypeKind::Object(object) => Some(object),
            _ => None,
        }),
        _ => None,
    }
}

pub(super) fn is_any(ty: &Type, types: &Types) -> bool {
    matches!(types.resolve(ty).kind, TypeKind::Any)
}

/// Returns whether a check of the kind is as strict as the type.
pub(super) fn is_told_by_kind(ty: &Type, kinds: &[JsonKind], types: &Types) -> bool {
    let plain = |ty: &Type| match types.resolve(ty).kind {
        TypeKind::Scalar(scalar) => {
            // JSON has one kind for all numbers, so a check of the kind would accept fractions.
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

/// Returns the leading names of a path.
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
                Selected::Selector(Selector::Name(name)) => Some(crate::mapping::language::unquote(name)),
                _ => None,
            })
            .collect(),
    }
}

/// Visits every place that a value is derived from.
pub(super) fn all(expr: &plan::Expr, see: &mut dyn FnMut(&Location)) {
    if let plan::Expr::At(location) | plan::Expr::Lookup { list: location, .. } = expr {
        see(location);
    }
    children(expr).into_iter().for_each(|expr| all(expr, &mut *see));
}

/// Returns the parts of a value.
pub(super) fn children(expr: &plan::Expr) -> Vec<&plan::Expr> {
    use plan::Expr;
    match expr {
        Expr::Constant(_) | Expr::At(_) => Vec::new(),
        Expr::Convert { from, .. }
        | Expr::Apply { from, .. }
        | Expr::Aggregate { list: from, .. }
        | Expr::Lookup { value: from, .. } => vec![from],
        Expr::Object(members) => members.iter().map(|(_, expr)| expr).collect(),
        Expr::Text { with, .. } => with.iter().map(|(_, expr)| expr).collect(),
        Expr::Array(items) | Expr::FirstOf(items) | Expr::Present(items) => items.iter().collect(),
        Expr::Shape { from, with, over, .. } => {
            with.iter().chain([&**from]).chain(over.iter().map(|over| &over.base)).collect()
        }
        Expr::Each { list, give, .. } => vec![list, give],
        Expr::If { then, otherwise, .. } => [then].into_iter().chain(otherwise).map(|expr| &**expr).collect(),
        Expr::Lines { plain, numbered } => plain.iter().chain(numbered).collect(),
    }
}
