//! `compare:` of `pack.yaml`: checks the declarations of types against the contracts, and lowers
//! them to the places of each operation's responses that contain values of those types.
//! `disclosures` lowers the rules for displaying values, after this module.

use super::ast::{CompareType, FieldPlace, Manifest, Spanned};
use super::{faults, origin};
use crate::contract::{
    Additional, Contract, Contracts, Operation, Reference, Type, TypeId, TypeIn, TypeKind, Types,
};
use crate::diagnostic::{Findings, Sources};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use switchback_plan::{CompareKind, CompareRule};

/// Maximum number of times that a type is entered within itself.
const REPEATS_MAX: usize = 2;
/// Maximum number of places of one response that are searched for declared types, nearest first.
/// Mutually recursive types have exponentially many places.
const PLACES_MAX: usize = 20_000;

/// The declarations, checked.
pub(super) struct Comparisons<'a> {
    contracts: &'a Contracts,
    sources: &'a Sources,
    /// By side and type name.
    types: [HashMap<&'a str, TypeDisclosure<'a>>; 2],
    /// By side and type id: whether the type is a declared one or contains one.
    reaches: [Vec<bool>; 2],
    /// In lower case.
    pub headers: Vec<String>,
}

struct TypeDisclosure<'a> {
    written: &'a CompareType,
    /// The declared rules for displaying values.
    shown: DeclaredPlaces,
    /// `is_answered`: whether a response or event contains a value of the type. `is_used`: whether
    /// any message does.
    is_answered: Cell<bool>,
    is_used: Cell<bool>,
}

/// Declarations for a type and for places within it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct DeclaredPlaces {
    pub(super) is_secret: bool,
    pub(super) is_harmless: bool,
    pub(super) members: BTreeMap<String, DeclaredPlaces>,
}

impl DeclaredPlaces {
    fn new<'p>(
        secret: impl IntoIterator<Item = &'p FieldPlace>,
        harmless: impl IntoIterator<Item = &'p FieldPlace>,
    ) -> DeclaredPlaces {
        let mut declared = DeclaredPlaces::default();
        secret.into_iter().for_each(|place| declared.at(place).is_secret = true);
        harmless.into_iter().for_each(|place| declared.at(place).is_harmless = true);
        declared
    }

    fn at(&mut self, place: &FieldPlace) -> &mut DeclaredPlaces {
        place.0.iter().fold(self, |declared, name| declared.members.entry(name.clone()).or_default())
    }

    /// Returns the union of two sets of declarations.
    pub(super) fn and(&self, other: &DeclaredPlaces) -> DeclaredPlaces {
        let mut both = self.clone();
        both.is_secret |= other.is_secret;
        both.is_harmless |= other.is_harmless;
        for (name, declared) in &other.members {
            let member = both.members.entry(name.clone()).or_default();
            *member = member.and(declared);
        }
        both
    }
}

/// Checks the declarations of a pack.
pub(super) fn check<'a>(
    manifest: &'a Manifest,
    contracts: &'a Contracts,
    sources: &'a Sources,
    findings: &mut Findings,
) -> Comparisons<'a> {
    let mut types = [HashMap::new(), HashMap::new()];
    let by_side = manifest.compare.types.iter();
    for (side, written) in by_side.flat_map(|(side, types)| types.iter().map(|written| (side.side, written)))
    {
        let contract = &contracts[side];
        let Some(named) = contract.types.get(&written.name.value) else {
            let known = contract.types.iter().map(|named| &*named.name).collect();
            findings.push(faults::compared_type(&written.name, &contract.name, known));
            continue;
        };
        check_members(written, contract.types.at(&named.ty), findings);
        let places = |places: &'a [Spanned<FieldPlace>]| places.iter().map(|place| &place.value);
        let declared = TypeDisclosure {
            written,
            shown: DeclaredPlaces::new(places(&written.secret), places(&written.harmless)),
            is_answered: Cell::new(false),
            is_used: Cell::new(false),
        };
        types[side].insert(written.name.value.as_str(), declared);
    }
    let headers = headers(manifest, findings);
    let reaches = [0, 1].map(|side| reaches(&contracts[side].types, &types[side]));
    Comparisons { contracts, sources, types, reaches, headers }
}

/// Returns which named types lead to a declared one. Searches backwards from the declared types, so
/// each type is visited once.
fn reaches(types: &Types, declared: &HashMap<&str, TypeDisclosure<'_>>) -> Vec<bool> {
    let all: Vec<_> = types.iter().collect();
    let mut reaches = vec![false; all.len()];
    if declared.is_empty() {
        return reaches;
    }
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (at, named) in all.iter().enumerate() {
        each_reference(&named.ty, &mut |id| users[id.index()].push(at));
    }
    let is_declared = |at: &usize| declared.contains_key(&*all[*at].name);
    let mut open: Vec<usize> = (0..all.len()).filter(is_declared).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reaches[at], true) {
            open.append(&mut users[at]);
        }
    }
    reaches
}

/// Calls `found` for each named type that a type refers to directly.
fn each_reference(ty: &Type, found: &mut dyn FnMut(TypeId)) {
    match &ty.kind {
        TypeKind::Named(reference) => found(reference.id),
        TypeKind::Array(array) => each_reference(&array.items, found),
        TypeKind::Object(object) => {
            object.fields.iter().for_each(|field| each_reference(&field.ty, found));
            if let Additional::Of(value) = &object.additional {
                each_reference(value, found);
            }
        }
        TypeKind::OneOf(_) | TypeKind::Choice(_) => {
            ty.kind.alternatives().iter().for_each(|one| each_reference(one, found));
        }
        TypeKind::Any | TypeKind::Null | TypeKind::Scalar(_) => {}
    }
}

fn headers(manifest: &Manifest, findings: &mut Findings) -> Vec<String> {
    let carries_token = |name: &str| {
        manifest.credentials.iter().flatten().any(|credential| {
            credential.headers_of_tokens().any(|known| known.value.eq_ignore_ascii_case(name))
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
            && !matches!(found.kind(), TypeKind::Array(_) | TypeKind::Any)
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
    match ty.kind() {
        TypeKind::Scalar(_) => true,
        TypeKind::OneOf(alternatives) => alternatives.iter().all(|one| is_scalar(ty.types.at(one))),
        _ => false,
    }
}

/// Returns the type of a member, or `None` if it does not exist (reported) or the contract leaves
/// it open.
fn member<'t>(
    ty: TypeIn<'t>,
    place: &Spanned<FieldPlace>,
    name: &str,
    findings: &mut Findings,
) -> Option<TypeIn<'t>> {
    let mut found = ty;
    for step in &place.value.0 {
        let TypeKind::Object(object) = found.kind() else {
            // An untyped value may have the member.
            if !matches!(found.kind(), TypeKind::Any) {
                findings.push(faults::compared_member(place, step, name, Vec::new()));
            }
            return None;
        };
        let Some(field) = object.field(step) else {
            let known = object.fields.iter().map(|field| field.name.as_str()).collect();
            findings.push(faults::compared_member(place, step, name, known));
            return None;
        };
        found = found.types.at(&field.ty);
    }
    Some(found)
}

impl Comparisons<'_> {
    /// Returns the rules for successful responses of an operation.
    pub(super) fn of_operation(&self, side: usize, operation: &Operation) -> Vec<CompareRule> {
        let mut rules = Vec::new();
        for body in operation.success_bodies() {
            self.walk(side, body, &mut rules);
        }
        rules.dedup();
        rules
    }

    /// Returns the rules for the body of an event.
    pub(super) fn of_event(&self, side: usize, name: &str) -> Vec<CompareRule> {
        let mut rules = Vec::new();
        if let Some(body) = self.contracts[side].webhook(name).and_then(|webhook| webhook.body.as_ref()) {
            self.walk(side, &body.ty, &mut rules);
        }
        rules.dedup();
        rules
    }

    /// Returns the rules for a body of the named type.
    pub(super) fn of_type(&self, side: usize, name: &str) -> Vec<CompareRule> {
        let mut rules = Vec::new();
        let types = &self.contracts[side].types;
        if let (Some(id), Some(named)) = (types.id(name), types.get(name)) {
            let reference = Reference { id, name: named.name.clone() };
            let ty = Type { kind: TypeKind::Named(reference), nullable: false, span: named.span };
            self.walk(side, &ty, &mut rules);
        }
        rules
    }

    /// Returns whether a type contains a declared type or refers to one.
    pub(super) fn holds_declared(&self, side: usize, ty: &Type) -> bool {
        let mut holds = false;
        each_reference(ty, &mut |id| holds |= self.reaches[side][id.index()]);
        holds
    }

    pub(super) fn contract(&self, side: usize) -> &Contract {
        &self.contracts[side]
    }

    /// Returns the display rules of a declared type, and marks it as used.
    pub(super) fn disclosure(&self, side: usize, name: &str) -> Option<&DeclaredPlaces> {
        let declared = self.types[side].get(name)?;
        declared.is_used.set(true);
        Some(&declared.shown)
    }

    /// Reports declarations of types that no message contains, and comparison rules for types that
    /// no response contains, independently of the routes. Call it after
    /// `disclosures::of_side`, which marks used types.
    pub(super) fn report_unused(&self, findings: &mut Findings) {
        for (side, contract) in
            self.contracts.iter().enumerate().filter(|(side, _)| !self.types[*side].is_empty())
        {
            self.mark_used(side, contract);
        }
        let mut declared: Vec<_> = self.types.iter().flat_map(HashMap::values).collect();
        // The map has no order. Report in the order of the file.
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

    /// Marks the declared types that successful responses and events contain. Visits each type
    /// once.
    fn mark_used(&self, side: usize, contract: &Contract) {
        let all: Vec<_> = contract.types.iter().collect();
        let mut seen = vec![false; all.len()];
        let mut open = Vec::new();
        let events = contract.webhooks.iter().filter_map(|webhook| Some(&webhook.body.as_ref()?.ty));
        for body in contract.operations.iter().flat_map(Operation::success_bodies).chain(events) {
            each_reference(body, &mut |id| open.push(id.index()));
        }
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            if let Some(declared) = self.types[side].get(&*all[at].name) {
                declared.is_answered.set(true);
            }
            each_reference(&all[at].ty, &mut |id| open.push(id.index()));
        }
    }

    /// Collects the rules for all places within a type, nearest first. Enters only types that lead
    /// to a declared one.
    fn walk(&self, side: usize, ty: &Type, rules: &mut Vec<CompareRule>) {
        let types = &self.contracts[side].types;
        if self.types[side].is_empty() {
            return;
        }
        // A breadth-first search, so that the limit cuts off the deepest places. The queue is never
        // drained, because its entries are the parents of later ones.
        let mut places = vec![TypeStep { parent: None, name: None, within: None, ty }];
        let mut at = 0;
        while at < places.len() && places.len() <= PLACES_MAX {
            let ty = places[at].ty;
            let mut below = |name: Option<Arc<str>>, within: Option<TypeId>, ty| {
                places.push(TypeStep { parent: Some(at), name, within, ty });
            };
            match &ty.kind {
                // A recursive type is entered a limited number of times, because every level adds
                // places.
                TypeKind::Named(reference) if self.reaches[side][reference.id.index()] => {
                    let around = |id| ancestors(&places, at).filter(|step| step.within == Some(id)).count();
                    if around(reference.id) < REPEATS_MAX {
                        if let Some(declared) = self.types[side].get(&*reference.name) {
                            declared.is_answered.set(true);
                            self.declare(declared.written, &path(&places, at), rules);
                        }
                        let inner = &types.by_id(reference.id).ty;
                        let within = Some(reference.id);
                        places.push(TypeStep { parent: Some(at), name: None, within, ty: inner });
                    }
                }
                TypeKind::Array(array) => below(Some("*".into()), None, &array.items),
                // Keys of maps are unknown at compile time, so rules about their values have no
                // place to apply to.
                TypeKind::Object(object) => {
                    for field in &object.fields {
                        below(Some(field.name.as_str().into()), None, &field.ty);
                    }
                }
                TypeKind::OneOf(_) | TypeKind::Choice(_) => {
                    ty.kind.alternatives().iter().for_each(|one| below(None, None, one));
                }
                // Other named types lead to no declared one, so their places need no rules.
                TypeKind::Any | TypeKind::Null | TypeKind::Scalar(_) | TypeKind::Named(_) => {}
            }
            at += 1;
        }
    }

    fn declare(&self, written: &CompareType, at: &[Arc<str>], rules: &mut Vec<CompareRule>) {
        let mut add = |at: Vec<Arc<str>>, kind: CompareKind, span| {
            rules.push(CompareRule { at, kind, origin: origin(self.sources, span) });
        };
        let below = |place: &Spanned<FieldPlace>| -> Vec<Arc<str>> {
            at.iter().cloned().chain(place.value.0.iter().map(|name| name.as_str().into())).collect()
        };
        // Keys only match elements of lists.
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

/// One place on a path into a type.
struct TypeStep<'t> {
    parent: Option<usize>,
    /// The member that leads here; `None` if the place equals that of its parent.
    name: Option<Arc<str>>,
    /// The named type that is entered here.
    within: Option<TypeId>,
    ty: &'t Type,
}

/// Returns a place and its ancestors, innermost first.
fn ancestors<'s, 't>(places: &'s [TypeStep<'t>], at: usize) -> impl Iterator<Item = &'s TypeStep<'t>> {
    std::iter::successors(Some(&places[at]), |step| step.parent.map(|parent| &places[parent]))
}

fn path(places: &[TypeStep<'_>], at: usize) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = ancestors(places, at).filter_map(|step| step.name.clone()).collect();
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Documents, parse_contract};
    use crate::diagnostic::Span;

    /// Returns a contract of `count` types that all refer to one another, and an operation that
    /// reads the first.
    fn mutual(count: usize) -> String {
        let mut text = String::from(
            "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths:\n  /a:\n    get: {responses: {200: {description: a, content: {application/json: {schema: {$ref: '#/components/schemas/T0'}}}}}}\ncomponents:\n  schemas:\n",
        );
        for i in 0..count {
            let fields: Vec<String> =
                (0..count).map(|j| format!("f{j}: {{$ref: '#/components/schemas/T{j}'}}")).collect();
            text.push_str(&format!("    T{i}: {{type: object, properties: {{{}}}}}\n", fields.join(", ")));
        }
        text
    }

    #[test]
    fn types_that_refer_to_one_another_are_looked_through_to_a_bound() {
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let contracts = [0, 1].map(|_| {
            let documents = Documents::single(&mut sources, "a", mutual(12).as_bytes(), &mut findings);
            Arc::new(parse_contract("a", &documents.expect("it is YAML"), &mut findings))
        });
        let span = Span::default();
        let name = |text: &str| Spanned { value: text.to_owned(), span };
        let written = CompareType {
            name: name("T11"),
            key: None,
            noise: vec![Spanned { value: FieldPlace(vec!["f0".to_owned()]), span }],
            unordered: Vec::new(),
            secret: Vec::new(),
            harmless: Vec::new(),
        };
        let declared = TypeDisclosure {
            written: &written,
            shown: DeclaredPlaces::new([], []),
            is_answered: Cell::new(false),
            is_used: Cell::new(false),
        };
        let types = [HashMap::from([("T11", declared)]), HashMap::new()];
        let reaches = [0, 1].map(|side| reaches(&contracts[side].types, &types[side]));
        let comparisons =
            Comparisons { contracts: &contracts, sources: &sources, types, reaches, headers: Vec::new() };
        let rules = comparisons.of_operation(0, &contracts[0].operations[0]);
        let place = |rule: &CompareRule| rule.at.join(".");
        assert_eq!(rules.first().map(place).as_deref(), Some("f11.f0"), "the nearest place comes first");
        assert!(rules.len() > 100 && rules.len() < PLACES_MAX, "{}", rules.len());
        comparisons.report_unused(&mut findings);
        assert!(findings.is_empty());
    }
}
