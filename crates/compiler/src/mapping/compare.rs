//! `compare:` of `pack.yaml`: what is declared of types, checked against the contracts and brought down to the places where
//! each operation's answer has values of those types. What may be shown of values is brought down in `disclosures`.

use super::ast::{CompareType, Manifest, Place, Spanned};
use super::disclosures::Declared as Shown;
use super::{disclosures, faults, origin};
use crate::contract::{Additional, Contract, Operation, StatusPattern, Type, TypeIn, TypeKind};
use crate::diagnostic::{Findings, Sources};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use switchback_plan::{CompareKind, CompareRule, Disclosures};

/// How often a type may lie within itself before it is followed no further.
const REPEATS_MAX: usize = 2;

/// Declarations, checked.
pub(super) struct Comparisons<'a> {
    contracts: &'a [Contract; 2],
    sources: &'a Sources,
    /// By side and name of the type.
    types: [HashMap<&'a str, Declared<'a>>; 2],
    /// Lower case.
    pub headers: Vec<String>,
}

struct Declared<'a> {
    written: &'a CompareType,
    /// What is declared of showing its values.
    shown: Shown,
    /// Whether an answer, or any message, has a value of the type in it.
    is_answered: Cell<bool>,
    is_used: Cell<bool>,
}

/// Checks the declarations of a pack.
pub(super) fn check<'a>(
    manifest: &'a Manifest,
    contracts: &'a [Contract; 2],
    sources: &'a Sources,
    findings: &mut Findings,
) -> Comparisons<'a> {
    let mut types = [HashMap::new(), HashMap::new()];
    for written in &manifest.compare.types {
        let side = written.side.side;
        let contract = &contracts[side];
        let Some(named) = contract.types.get(&written.name.value) else {
            let known = contract.types.iter().map(|named| &*named.name).collect();
            findings.push(faults::compared_type(&written.name, &contract.name, known));
            continue;
        };
        check_members(written, contract.types.at(&named.ty), findings);
        let places = |places: &'a [Spanned<Place>]| places.iter().map(|place| &place.value);
        let declared = Declared {
            written,
            shown: Shown::of(places(&written.secret), places(&written.harmless)),
            is_answered: Cell::new(false),
            is_used: Cell::new(false),
        };
        types[side].insert(written.name.value.as_str(), declared);
    }
    let headers = headers(manifest, findings);
    Comparisons { contracts, sources, types, headers }
}

fn headers(manifest: &Manifest, findings: &mut Findings) -> Vec<String> {
    let carries_token = |name: &str| {
        manifest.credentials.iter().flatten().any(|credential| {
            let mut known = credential.read.iter().chain(&credential.send);
            known.any(|known| known.value.eq_ignore_ascii_case(name))
        })
    };
    let mut names = Vec::new();
    for header in &manifest.compare.headers {
        match http::HeaderName::from_bytes(header.value.as_bytes()) {
            Ok(name) if carries_token(name.as_str()) => findings.push(faults::compared_credential(header)),
            Ok(name) => names.push(name.as_str().to_owned()),
            Err(_) => findings.push(faults::header_name(header)),
        }
    }
    names
}

fn check_members(written: &CompareType, ty: TypeIn<'_>, findings: &mut Findings) {
    if let Some(key) = &written.key
        && let Some(found) = member(ty, key, &written.name.value, findings)
        && !(key.value.0.len() == 1 && is_scalar(found))
    {
        findings.push(faults::compared_key(key.span, &found.ty.to_string()));
    }
    for place in &written.unordered {
        if let Some(found) = member(ty, place, &written.name.value, findings)
            && !matches!(found.types.resolve(found.ty).kind, TypeKind::Array(_) | TypeKind::Any)
        {
            findings.push(faults::compared_order(place.span, &found.ty.to_string()));
        }
    }
    for place in written.noise.iter().chain(&written.secret).chain(&written.harmless) {
        member(ty, place, &written.name.value, findings);
    }
    for place in &written.harmless {
        if let Some(secret) = written.secret.iter().find(|secret| place.value.0.starts_with(&secret.value.0))
        {
            findings.push(faults::harmless_secret(place.span, secret.span));
        }
    }
}

fn is_scalar(ty: TypeIn<'_>) -> bool {
    match ty.types.resolve(ty.ty).kind {
        TypeKind::Scalar(_) => true,
        TypeKind::OneOf(alternatives) => alternatives.iter().all(|one| is_scalar(ty.types.at(one))),
        _ => false,
    }
}

/// The type of a member; none after a finding, or where the contract does not show it.
fn member<'t>(
    ty: TypeIn<'t>,
    place: &Spanned<Place>,
    name: &str,
    findings: &mut Findings,
) -> Option<TypeIn<'t>> {
    let mut found = ty;
    for step in &place.value.0 {
        let TypeKind::Object(object) = found.types.resolve(found.ty).kind else {
            if !matches!(found.types.resolve(found.ty).kind, TypeKind::Any) {
                findings.push(faults::compared_member(place.span, step, name, Vec::new()));
            }
            return None;
        };
        let Some(field) = object.field(step) else {
            let known = object.fields.iter().map(|field| field.name.as_str()).collect();
            findings.push(faults::compared_member(place.span, step, name, known));
            return None;
        };
        found = found.types.at(&field.ty);
    }
    Some(found)
}

impl Comparisons<'_> {
    /// The rules for successful answers of an operation of a side.
    pub(super) fn of_operation(&self, side: usize, operation: &Operation) -> Vec<CompareRule> {
        let is_success = |status: StatusPattern| match status {
            StatusPattern::Exact(status) => status < 300,
            StatusPattern::Class(class) => class == 2,
            StatusPattern::Default => false,
        };
        let mut rules = Vec::new();
        let successes = operation.responses.iter().filter(|response| is_success(response.status));
        for body in successes.filter_map(|response| response.body.as_ref()) {
            self.walk(side, body, &mut Walk::default(), &mut rules);
        }
        rules.dedup();
        rules
    }

    /// The rules for a body that is of the named type of a side.
    pub(super) fn of_type(&self, side: usize, name: &str) -> Vec<CompareRule> {
        let mut rules = Vec::new();
        if let Some(named) = self.contracts[side].types.get(name) {
            self.named(side, &named.name, &named.ty, &mut Walk::default(), &mut rules);
        }
        rules
    }

    /// What may be shown of the messages of each side.
    pub(super) fn disclosures(&self) -> [Disclosures; 2] {
        [0, 1].map(|side| disclosures::of_side(self, side))
    }

    pub(super) fn contract(&self, side: usize) -> &Contract {
        &self.contracts[side]
    }

    /// What is declared of showing values of a type that some message has.
    pub(super) fn declared(&self, side: usize, name: &str) -> Option<&Shown> {
        let declared = self.types[side].get(name)?;
        declared.is_used.set(true);
        Some(&declared.shown)
    }

    /// Reports declarations of types that no message has, whatever the routes make of the operations; of those that are about
    /// comparing, those that no answer has. To be asked after [`Comparisons::disclosures`].
    pub(super) fn unused(&self, findings: &mut Findings) {
        for (side, contract) in
            self.contracts.iter().enumerate().filter(|(side, _)| !self.types[*side].is_empty())
        {
            contract.operations.iter().for_each(|operation| drop(self.of_operation(side, operation)));
        }
        let mut declared: Vec<_> = self.types.iter().flat_map(HashMap::values).collect();
        declared.sort_by_key(|one| one.written.name.span);
        for one in declared {
            let compares = one.written.key.iter().chain(&one.written.noise).chain(&one.written.unordered);
            match compares.into_iter().next() {
                _ if !one.is_used.get() && !one.is_answered.get() => {
                    findings.push(faults::compared_unused(&one.written.name));
                }
                Some(place) if !one.is_answered.get() => {
                    findings.push(faults::compared_unanswered(place.span, &one.written.name.value));
                }
                _ => {}
            }
        }
    }

    fn named(&self, side: usize, name: &str, ty: &Type, walk: &mut Walk, rules: &mut Vec<CompareRule>) {
        if walk.within.iter().filter(|known| **known == *name).count() >= REPEATS_MAX {
            return;
        }
        if let Some(declared) = self.types[side].get(name) {
            declared.is_answered.set(true);
            self.declare(declared.written, &walk.at, rules);
        }
        walk.within.push(name.to_owned());
        self.walk(side, ty, walk, rules);
        walk.within.pop();
    }

    fn walk(&self, side: usize, ty: &Type, walk: &mut Walk, rules: &mut Vec<CompareRule>) {
        let types = &self.contracts[side].types;
        match &ty.kind {
            TypeKind::Named(reference) => {
                self.named(side, &reference.name, &types.by_id(reference.id).ty, walk, rules);
            }
            TypeKind::Array(array) => walk.step("*", |walk| self.walk(side, &array.items, walk, rules)),
            TypeKind::Object(object) => {
                for field in &object.fields {
                    walk.step(&field.name, |walk| self.walk(side, &field.ty, walk, rules));
                }
                if let Additional::Of(value) = &object.additional {
                    // Names that nobody knows beforehand have no place; what is declared of their values does not apply.
                    self.walk(side, value, &mut Walk { at: Vec::new(), ..walk.clone() }, &mut Vec::new());
                }
            }
            TypeKind::OneOf(alternatives) => {
                alternatives.iter().for_each(|one| self.walk(side, one, walk, rules));
            }
            TypeKind::Any | TypeKind::Null | TypeKind::Scalar(_) => {}
        }
    }

    fn declare(&self, written: &CompareType, at: &[Arc<str>], rules: &mut Vec<CompareRule>) {
        let mut add = |at: Vec<Arc<str>>, kind: CompareKind, span| {
            rules.push(CompareRule { at, kind, origin: origin(self.sources, span) });
        };
        let below = |place: &Spanned<Place>| -> Vec<Arc<str>> {
            at.iter().cloned().chain(place.value.0.iter().map(|name| name.as_str().into())).collect()
        };
        // Only elements of a list are matched by a key.
        if let (Some(key), Some((last, list))) = (&written.key, at.split_last())
            && &**last == "*"
            && let [name] = key.value.0.as_slice()
        {
            add(list.to_vec(), CompareKind::Key(name.as_str().into()), key.span);
        }
        written.noise.iter().for_each(|place| add(below(place), CompareKind::Noise, place.span));
        written.unordered.iter().for_each(|place| add(below(place), CompareKind::Unordered, place.span));
    }
}

/// The way down into a type.
#[derive(Clone, Default)]
struct Walk {
    at: Vec<Arc<str>>,
    /// Named types around the place.
    within: Vec<String>,
}

impl Walk {
    fn step(&mut self, name: &str, inside: impl FnOnce(&mut Walk)) {
        self.at.push(name.into());
        inside(self);
        self.at.pop();
    }
}
