//! Collects the objects of recorded messages, in bounded memory, and compares those that describe the
//! same resources.

use super::evidence::{Comparison, NULL_IS_ABSENT, SupportedPair, compare, is_at_or_below};
use super::join::joins;
use super::link::{LinkedSets, ObjectSet, link, score};
use super::model::{
    Confidence, Learned, LearnedLine, LineKey, NameConflict, OperationLink, TrafficCall, line_id,
};
use super::records::{PairedPlace, RECORDS_MAX, Record, cells, objects};
use super::relation::{Candidate, Relation, candidates};
use super::sent::{compose, echoes};
use crate::contract::{Contract, Segment, Type, TypeKind, Types};
use crate::init::OperationUse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use switchback_json::Value;

/// Maximum number of different clients that are counted.
const CLIENTS_MAX: usize = 100_000;
/// Maximum number of places with objects per operation.
const PLACES_MAX: usize = 16;
/// Maximum number of linked objects that are compared per pair of types.
const PAIRS_MAX: usize = 1_000;

/// The linked objects of two types.
#[derive(Default)]
struct LinkedTypes<'r> {
    pairs: Vec<[&'r Record; 2]>,
    /// Whether each is the best counterpart of the other in some pair of operations.
    is_mutual: bool,
}

/// The objects of a side's answers, or of its requests.
#[derive(Default)]
struct SideSets {
    sets: Vec<ObjectSet>,
    /// Set and hash of the objects.
    seen: HashSet<(usize, u64)>,
}

/// The call that contains objects.
struct ObjectSource {
    operation: usize,
    is_read: bool,
    /// Values of the variables of the path.
    variables: Vec<String>,
    exchange: Option<u64>,
}

/// Collects the evidence of calls, by the contracts of both versions.
pub struct Witness<'c> {
    contracts: [&'c Contract; 2],
    calls: [u64; 2],
    unknown: u64,
    /// By operation of the old side, the calls and clients.
    uses: BTreeMap<usize, (u64, BTreeSet<usize>)>,
    clients: HashMap<String, usize>,
    answered: [SideSets; 2],
    sent: [SideSets; 2],
    names: BTreeMap<String, Arc<str>>,
}

impl<'c> Witness<'c> {
    /// Returns a collector without evidence.
    pub fn new(contracts: [&'c Contract; 2]) -> Witness<'c> {
        Witness {
            contracts,
            calls: [0, 0],
            unknown: 0,
            uses: BTreeMap::new(),
            clients: HashMap::new(),
            answered: Default::default(),
            sent: Default::default(),
            names: BTreeMap::new(),
        }
    }

    /// Adds a call.
    pub fn add(&mut self, call: &TrafficCall) {
        let side = usize::from(call.side.0);
        let contract = self.contracts[side];
        self.calls[side] += 1;
        let path = call.parts().0;
        let Some(operation) = contract.find_path(&call.method, path) else {
            self.unknown += 1;
            return;
        };
        let at = contract.operations.iter().position(|one| std::ptr::eq(one, operation)).unwrap_or_default();
        if let (0, Some(client)) = (side, &call.client) {
            let (calls, clients) = self.uses.entry(at).or_default();
            *calls += 1;
            let next = self.clients.len();
            if next < CLIENTS_MAX || self.clients.contains_key(client) {
                clients.insert(*self.clients.entry(client.clone()).or_insert(next));
            }
        }
        // A request that was rejected says nothing about a resource, and neither does its answer.
        if call.status / 100 != 2 {
            return;
        }
        let segments = operation.key.path.segments().iter().zip(path.trim_start_matches('/').split('/'));
        let variables: Vec<String> = segments
            .filter(|(segment, _)| !matches!(segment, Segment::Literal(_)))
            .map(|(_, text)| text.to_owned())
            .collect();
        let is_read = call.method.is_safe();
        let source = ObjectSource { operation: at, is_read, variables, exchange: call.exchange };
        let (known, names) = (&contract.types, &mut self.names);
        if let Some(sent) = call.sent.as_ref().filter(|sent| sent.as_object().is_some()) {
            let declared = operation.body.as_ref().map(|body| &body.ty);
            let ty = declared.and_then(|ty| type_name(known, ty, "$"));
            let label = || format!("{} request", operation.key);
            self.sent[side].add(&source, ("$".to_owned(), vec![sent]), (ty, &label), names);
        }
        let declared = operation.response(call.status).and_then(|response| response.body.as_ref());
        for (inner, objects) in call.answer.iter().flat_map(objects).take(PLACES_MAX) {
            let ty = declared.and_then(|ty| type_name(known, ty, &inner));
            let label = || format!("{} {inner}", operation.key);
            self.answered[side].add(&source, (inner.clone(), objects), (ty, &label), names);
        }
    }

    /// Returns what the calls show. `progress` is called with the name of each type.
    pub fn finish(&self, progress: &mut dyn FnMut(&str)) -> Learned {
        let sides = self.contracts.map(|contract| contract.name.clone());
        let candidates = candidates(sides.each_ref().map(String::as_str));
        let linked = link([&self.answered[0].sets, &self.answered[1].sets], false);
        let mut learned = Learned { sides, calls: self.calls, unknown: self.unknown, ..Learned::default() };
        learned.operations = self.rank();
        learned.links = self.link_operations(&linked);
        let mut lines = BTreeMap::new();
        for (types, all) in &self.counterparts(&linked) {
            progress(&types[0]);
            self.compare_types(types, all, &candidates, &mut learned, &mut lines);
        }
        let echoes = |sent: usize, answered: usize| {
            let sets = [&*self.sent[sent].sets, &*self.answered[answered].sets];
            echoes(&link(sets, true), sets)
        };
        let method = |side: usize, at: usize| &self.contracts[side].operations[at].key.method;
        let is_alike = |at: [usize; 2]| method(0, at[0]) == method(1, at[1]);
        let composed = compose([echoes(0, 0), echoes(0, 1), echoes(1, 1)], &lines, is_alike);
        lines.extend(composed);
        let lines = without_superseded(lines.into_values().collect());
        let (same, mut lines): (Vec<_>, Vec<_>) = lines.into_iter().partition(LearnedLine::is_same);
        lines.sort_by(|a, b| (a.confidence, &a.types, &a.places).cmp(&(b.confidence, &b.types, &b.places)));
        (learned.same, learned.lines) = (same, lines);
        learned
    }

    /// Returns the objects of each pair of types: the best counterparts of each place of an operation,
    /// on either side.
    fn counterparts<'r>(&self, linked: &[LinkedSets<'r>]) -> BTreeMap<[String; 2], LinkedTypes<'r>> {
        let mut best: [BTreeMap<usize, &LinkedSets<'_>>; 2] = Default::default();
        for one in linked {
            for side in [0, 1] {
                let known = best[side].entry(one.sets[side]).or_insert(one);
                if self.fitness(one, side) > self.fitness(known, side) {
                    *known = one;
                }
            }
        }
        let mut found: BTreeMap<[String; 2], LinkedTypes<'r>> = BTreeMap::new();
        for one in linked {
            let is_best = [0, 1].map(|side: usize| std::ptr::eq(best[side][&one.sets[side]], one));
            let sets = [0, 1].map(|side: usize| self.set(side, one));
            // Only a shape of two types can relate objects that are not each other's best counterpart.
            let is_usable = sets.iter().all(|set| set.is_named) || is_best == [true, true];
            if is_best == [false, false] || !is_usable {
                continue;
            }
            let known = found.entry(sets.map(|set| set.label.clone())).or_default();
            known.pairs.extend(&one.pairs);
            known.is_mutual |= is_best == [true, true];
        }
        found.values_mut().for_each(|known| known.pairs.truncate(PAIRS_MAX));
        found
    }

    /// Adds the members of objects that are equal as a whole: each is equal, by a shape of their types.
    fn add_members(
        &self,
        outer: &LearnedLine,
        pairs: &[[&Record; 2]],
        SupportedPair { places, evidence, .. }: &SupportedPair,
        lines: &mut BTreeMap<LineKey, LearnedLine>,
    ) {
        let is_whole = matches!(evidence.relation, Relation::Equal) && outer.against == 0;
        let inner = [0, 1].map(|side: usize| {
            let known = &self.contracts[side].types;
            type_name(known, &known.get(&outer.types[side])?.ty, &format!("$.{}", outer.places[side]))
        });
        let ([Some(old), Some(new)], true) = (inner, is_whole) else { return };
        let prefix = format!("{}.", places[0]);
        let members = pairs.iter().flat_map(|[old, _]| old.cells.keys());
        let members: BTreeSet<&str> = members.filter_map(|place| place.strip_prefix(&prefix)).collect();
        for member in members.into_iter().filter(|member| !member.contains(['.', '['])) {
            let (types, places) = ([old.clone(), new.clone()], [member, member].map(str::to_owned));
            let (id, conversion, defaults) = (line_id(&types, &places), None, [None, None]);
            add(lines, LearnedLine { id, types, places, conversion, defaults, ..outer.clone() });
        }
    }

    fn set(&self, side: usize, linked: &LinkedSets<'_>) -> &ObjectSet {
        &self.answered[side].sets[linked.sets[side]]
    }

    /// Returns how good a counterpart of a side's set the other one is: by their objects, and by what a
    /// route could relate. A list is answered by a list, and a shape relates types with names.
    fn fitness(&self, linked: &LinkedSets<'_>, side: usize) -> f64 {
        let [old, new] = [0, 1].map(|side| self.set(side, linked));
        let key = |side: usize, set: &ObjectSet| &self.contracts[side].operations[set.operation].key;
        let half = |is_so: bool| if is_so { 0.5 } else { 1.0 };
        let is_inner = |set: &ObjectSet| set.place.contains('.');
        let is_list = |set: &ObjectSet| set.place.ends_with("[*]");
        let is_other_form = !is_inner(old) && !is_inner(new) && is_list(old) != is_list(new);
        let is_same = key(0, old).to_string() == key(1, new).to_string();
        score(linked, side)
            * half(is_other_form)
            * half(!old.is_named || !new.is_named)
            * half(!old.is_read || !new.is_read)
            * if is_same { 1.2 } else { 1.0 }
    }

    /// Adds what the objects of two types show.
    fn compare_types(
        &self,
        types: &[String; 2],
        LinkedTypes { pairs, is_mutual }: &LinkedTypes<'_>,
        candidates: &[Candidate],
        learned: &mut Learned,
        lines: &mut BTreeMap<LineKey, LearnedLine>,
    ) {
        let names = self.contracts.map(|contract| contract.name.as_str());
        let Comparison { pairs: supported, same, conflicts, open } = compare(pairs, candidates, names);
        let joined = match is_mutual {
            true => joins(&types[0], pairs, &open, (&self.answered[1].sets, self.contracts), candidates),
            false => Vec::new(),
        };
        // A table of ids and names is data of the service that grows, not a part of the mapping.
        let is_data = |pair: &SupportedPair| {
            pair.evidence.is_table() && joined.iter().any(|join| join.place == pair.places[0])
        };
        for pair in supported.iter().chain(&same).filter(|pair| !is_data(pair)) {
            let found = line(pair, self.innermost(types, pair.places.each_ref()), *is_mutual);
            self.add_members(&found, pairs, pair, lines);
            // An object is the same if its members are, by a shape of their own types.
            if let [Some((old, _)), Some((new, _))] =
                pair.places.each_ref().map(|place| place.split_once('.'))
                && old == new
            {
                let outer = old.trim_end_matches("[*]").to_owned();
                let places = [outer.clone(), outer];
                let id = line_id(types, &places);
                let (conversion, defaults) = (None, [None, None]);
                let types = types.clone();
                add(lines, LearnedLine { id, types, places, conversion, defaults, ..found.clone() });
            }
            add(lines, found);
        }
        if *is_mutual {
            learned.conflicts.extend(conflicts.into_iter().map(|(place, objects)| {
                let (types, [place, _]) = self.innermost(types, [&place, &place]);
                NameConflict { types, place, objects }
            }));
        }
        learned.joins.extend(joined);
    }

    /// Moves a pair of places from two types to the types of the innermost objects that contain both.
    fn innermost(&self, types: &[String; 2], places: [&String; 2]) -> ([String; 2], [String; 2]) {
        let (mut types, mut places) = (types.clone(), places.map(String::as_str));
        loop {
            let inner: [Option<(String, &str)>; 2] = [0, 1].map(|side: usize| {
                let (first, rest) = places[side].split_once('.')?;
                let known = &self.contracts[side].types;
                let ty = &known.get(&types[side])?.ty;
                Some((type_name(known, ty, &format!("$.{first}"))?, rest))
            });
            let is_list =
                places.map(|place| place.split('.').next().is_some_and(|name| name.ends_with("[*]")));
            match inner {
                [Some((old, a)), Some((new, b))] if is_list[0] == is_list[1] => {
                    (types, places) = ([old, new], [a, b]);
                }
                _ => return (types, places.map(str::to_owned)),
            }
        }
    }

    /// Returns the operations of the old side by their calls.
    fn rank(&self) -> Vec<OperationUse> {
        let all = self.contracts[0].operations.iter().enumerate().map(|(at, operation)| {
            let (calls, clients) = self.uses.get(&at).cloned().unwrap_or_default();
            OperationUse { operation: operation.key.to_string(), calls, clients }
        });
        let mut all: Vec<OperationUse> = all.collect();
        all.sort_by(|a, b| {
            let rank = |one: &OperationUse| (one.calls, one.clients.len());
            rank(b).cmp(&rank(a)).then_with(|| a.operation.cmp(&b.operation))
        });
        all
    }

    /// Returns the best counterpart of each operation of the old side.
    fn link_operations(&self, linked: &[LinkedSets<'_>]) -> Vec<OperationLink> {
        let mut best: BTreeMap<usize, &LinkedSets<'_>> = BTreeMap::new();
        for one in linked {
            let known = best.entry(self.set(0, one).operation).or_insert(one);
            if self.fitness(one, 0) > self.fitness(known, 0) {
                *known = one;
            }
        }
        let key = |side: usize, one: &LinkedSets<'_>| {
            self.contracts[side].operations[self.set(side, one).operation].key.to_string()
        };
        let link = |one: &LinkedSets<'_>| OperationLink {
            operations: [key(0, one), key(1, one)],
            keys: one.keys.clone(),
            objects: one.pairs.len(),
            agreement: one.shares[0],
        };
        best.into_values().map(link).collect()
    }
}

impl SideSets {
    /// Adds the objects at a place of a message. `ty` is the name of the type, and the label of one
    /// without a name.
    fn add(
        &mut self,
        source: &ObjectSource,
        (place, objects): (String, Vec<&Value>),
        (ty, label): (Option<String>, &dyn Fn() -> String),
        names: &mut BTreeMap<String, Arc<str>>,
    ) {
        let ObjectSource { operation, is_read, .. } = *source;
        let known = self.sets.iter().position(|set| set.operation == operation && set.place == place);
        let known = known.unwrap_or_else(|| {
            let (is_named, records) = (ty.is_some(), Vec::new());
            let label = ty.unwrap_or_else(label);
            self.sets.push(ObjectSet { operation, place, label, is_named, is_read, records });
            self.sets.len() - 1
        });
        let set = &mut self.sets[known];
        let length = objects.len();
        for (position, object) in objects.into_iter().enumerate() {
            if set.records.len() >= RECORDS_MAX {
                break;
            }
            let pair = source.exchange.map(|exchange| PairedPlace { exchange, position, length });
            let record = Record { cells: cells(object, names), variables: source.variables.clone(), pair };
            // A resource that is read again without a change is no new evidence.
            if self.seen.insert((known, record.hash(set.place.ends_with("[*]")))) {
                set.records.push(record);
            }
        }
    }
}

/// Returns the name of the type at a place, such as `$.data[*]`, below a type.
fn type_name(types: &Types, ty: &Type, place: &str) -> Option<String> {
    let mut ty = ty;
    for (at, part) in place.split('.').enumerate() {
        let (name, is_list) = part.strip_suffix("[*]").map_or((part, false), |name| (name, true));
        if at > 0 {
            ty = &types.at(ty).object()?.field(name)?.ty;
        }
        if is_list {
            let TypeKind::Array(array) = types.resolve(ty).kind else { return None };
            ty = &array.items;
        }
    }
    match &ty.kind {
        TypeKind::Named(reference) => Some(reference.name.to_string()),
        _ => None,
    }
}

/// Returns the line of a pair of members. `is_mutual`: their types are each other's counterpart.
fn line(pair: &SupportedPair, (types, places): LineKey, is_mutual: bool) -> LearnedLine {
    let evidence = &pair.evidence;
    let conversion = evidence.relation.written();
    let conversion = conversion.or_else(|| evidence.null_is_absent.then(|| NULL_IS_ABSENT.to_owned()));
    let mut rivals: Vec<String> = pair.rivals.iter().map(|[old, new]| format!("{old} and {new}")).collect();
    if let Relation::Convert(_, others) = &evidence.relation {
        rivals.extend(others.iter().map(|other| format!("as {other}")));
    }
    let is_sure = is_mutual && evidence.is_sure() && rivals.is_empty() && !pair.is_copy;
    LearnedLine {
        id: line_id(&types, &places),
        through: None,
        types,
        places,
        conversion,
        defaults: evidence.defaults.clone(),
        is_copy: pair.is_copy,
        supports: evidence.supports,
        against: evidence.against,
        distinct: evidence.distinct,
        bits: evidence.bits,
        rivals,
        confidence: if is_sure { Confidence::Sure } else { Confidence::Likely },
    }
}

/// Removes likely lines about a member, or a part of it, that a sure line of the same types relates to
/// another one. Copies repeat a member on purpose.
pub(super) fn without_superseded(lines: Vec<LearnedLine>) -> Vec<LearnedLine> {
    let is_sure = |line: &&LearnedLine| line.confidence == Confidence::Sure && !line.is_copy;
    let mut sure: HashMap<[String; 2], Vec<[String; 2]>> = HashMap::new();
    for line in lines.iter().filter(is_sure) {
        sure.entry(line.types.clone()).or_default().push(line.places.clone());
    }
    let is_superseded = |line: &LearnedLine| {
        let known = sure.get(&line.types).map_or(&[][..], Vec::as_slice);
        let is_part =
            |other: &[String; 2]| (0..2).any(|side| is_at_or_below(&line.places[side], &other[side]));
        line.confidence == Confidence::Likely && !line.is_copy && known.iter().any(is_part)
    };
    lines.into_iter().filter(|line| !is_superseded(line)).collect()
}

/// Adds a line. The same line may follow from several types that contain one. The evidence of one of
/// them is enough; contradictions of any of them count.
fn add(lines: &mut BTreeMap<LineKey, LearnedLine>, line: LearnedLine) {
    let key = (line.types.clone(), line.places.clone());
    let Some(known) = lines.get_mut(&key) else {
        lines.insert(key, line);
        return;
    };
    let is_doubtful = known.conversion != line.conversion || known.against + line.against > 0;
    let confidence = if is_doubtful { Confidence::Likely } else { known.confidence.min(line.confidence) };
    let against = known.against + line.against;
    // The same values may be a part of both, so the observations are not added up.
    if (line.conversion.is_some(), line.bits) > (known.conversion.is_some(), known.bits) {
        *known = line;
    }
    (known.against, known.confidence) = (against, confidence);
}
