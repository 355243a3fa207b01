//! Collects the objects of recorded answers, in bounded memory, and compares those that describe the
//! same resources.

use super::evidence::{Comparison, SupportedPair, compare};
use super::join::joins;
use super::link::{LinkedSets, ObjectSet, link, score};
use super::model::{
    Confidence, Learned, LearnedLine, NameConflict, OperationLink, OperationUse, TrafficCall, slug,
};
use super::records::{PairedPlace, RECORDS_MAX, Record, cells, objects};
use super::relation::{Relation, candidates};
use crate::contract::{Contract, Segment, Type, TypeKind, Types};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Maximum number of different clients that are counted per operation.
const CLIENTS_MAX: usize = 10_000;
/// Maximum number of places with objects per operation.
const PLACES_MAX: usize = 16;
/// Maximum number of linked objects that are compared per pair of types.
const PAIRS_MAX: usize = 1_000;

/// Collects the evidence of calls, by the contracts of both versions.
pub struct Witness<'c> {
    contracts: [&'c Contract; 2],
    calls: [u64; 2],
    unknown: u64,
    /// By operation of the old side, the calls and clients.
    uses: BTreeMap<usize, (u64, BTreeSet<String>)>,
    sets: [Vec<ObjectSet>; 2],
    /// Side, set and hash of the objects.
    seen: HashSet<(usize, usize, u64)>,
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
            sets: [Vec::new(), Vec::new()],
            seen: HashSet::new(),
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
            if clients.len() < CLIENTS_MAX {
                clients.insert(client.clone());
            }
        }
        let body =
            call.answer.as_ref().filter(|_| call.method == http::Method::GET && call.status / 100 == 2);
        let Some(body) = body else { return };
        let segments = operation.key.path.segments().iter().zip(path.trim_start_matches('/').split('/'));
        let variables: Vec<String> = segments
            .filter(|(segment, _)| !matches!(segment, Segment::Literal(_)))
            .map(|(_, text)| text.to_owned())
            .collect();
        let declared = operation.response(call.status).and_then(|response| response.body.as_ref());
        for (place, objects) in objects(body).into_iter().take(PLACES_MAX) {
            let ty = declared.and_then(|ty| type_name(&contract.types, ty, &place));
            let sets = &mut self.sets[side];
            let known = sets.iter().position(|set| set.operation == at && set.place == place);
            let known = known.unwrap_or_else(|| {
                sets.push(ObjectSet { operation: at, place: place.clone(), ty, records: Vec::new() });
                sets.len() - 1
            });
            let length = objects.len();
            for (position, object) in objects.into_iter().enumerate() {
                if sets[known].records.len() >= RECORDS_MAX {
                    break;
                }
                let cells = cells(object, &mut self.names);
                let pair = call.pair.map(|request| PairedPlace { request, position, length });
                let record = Record { cells, variables: variables.clone(), pair };
                // A resource that is read again without a change is no new evidence.
                let hash = record.hash(place.ends_with("[*]"));
                if self.seen.insert((side, known, hash)) {
                    sets[known].records.push(record);
                }
            }
        }
    }

    /// Returns what the calls show. `progress` is called with the name of each type.
    pub fn finish(&self, progress: &mut dyn FnMut(&str)) -> Learned {
        let sides = self.contracts.map(|contract| contract.name.clone());
        let names = sides.each_ref().map(String::as_str);
        let candidates = candidates(names);
        let linked = link([&self.sets[0], &self.sets[1]]);
        let mut by_types: BTreeMap<[String; 2], Vec<&LinkedSets<'_>>> = BTreeMap::new();
        for linked in &linked {
            by_types.entry([0, 1].map(|side| self.label(side, linked.sets[side]))).or_default().push(linked);
        }
        // Each type of the old side has one counterpart. Shapes relate types with names, so an object
        // that wraps the type is no better one.
        let rank = |types: &[String; 2], all: &[&LinkedSets<'_>]| {
            let score = all.iter().map(|linked| score(linked)).sum::<f64>();
            (self.contracts[1].types.get(&types[1]).is_some(), score)
        };
        let mut best: BTreeMap<&String, ((bool, f64), &[String; 2])> = BTreeMap::new();
        for (types, all) in &by_types {
            let rank = rank(types, all);
            if best.get(&types[0]).is_none_or(|(most, _)| rank > *most) {
                best.insert(&types[0], (rank, types));
            }
        }
        let mut learned = Learned { sides: sides.clone(), calls: self.calls, ..Learned::default() };
        learned.unknown = self.unknown;
        learned.operations = self.rank();
        let mut lines: BTreeMap<([String; 2], [String; 2]), LearnedLine> = BTreeMap::new();
        for (_, types) in best.values() {
            progress(&types[0]);
            let all = &by_types[*types];
            let mut pairs: Vec<[&Record; 2]> = all.iter().flat_map(|linked| linked.pairs.clone()).collect();
            pairs.truncate(PAIRS_MAX);
            let Comparison { pairs: supported, same, conflicts, open } = compare(&pairs, &candidates, names);
            let joined = joins(&types[0], &pairs, &open, (&self.sets[1], self.contracts), &candidates);
            // A table of ids and names is data of the service that grows, not a part of the mapping.
            let is_data = |pair: &SupportedPair| {
                pair.evidence.is_table() && joined.iter().any(|join| join.place == pair.places[0])
            };
            let supported: Vec<SupportedPair> = supported.into_iter().filter(|pair| !is_data(pair)).collect();
            learned.joins.extend(joined);
            let inner = |places: [&str; 2]| self.innermost(types, places);
            for pair in &supported {
                let line = line(pair, inner([&pair.places[0], &pair.places[1]]));
                add(&mut lines, line);
            }
            // An object is the same if its members are, by a shape of their own types.
            let all = supported.iter().map(|pair| &pair.places);
            let outer = all.filter_map(|[old, new]| Some([old.split_once('.')?.0, new.split_once('.')?.0]));
            let outer = outer.filter(|[old, new]| old == new).map(|[old, _]| old);
            let nested = same.iter().filter_map(|place| Some(place.split_once('.')?.0));
            for place in outer.chain(nested) {
                learned.same.insert(((*types).clone(), place.trim_end_matches("[*]").to_owned()));
            }
            learned.same.extend(same.iter().map(|place| {
                let (types, [place, _]) = inner([place, place]);
                (types, place)
            }));
            learned.conflicts.extend(conflicts.into_iter().map(|(place, objects)| {
                let (types, [place, _]) = inner([&place, &place]);
                NameConflict { types, place, objects }
            }));
        }
        learned.links = self.link_operations(&linked);
        learned.lines = lines.into_values().collect();
        learned
            .lines
            .sort_by(|a, b| (a.confidence, &a.types, &a.places).cmp(&(b.confidence, &b.types, &b.places)));
        learned
    }

    /// Returns the name of the type of a set's objects, or the operation and place of one without a
    /// name.
    fn label(&self, side: usize, set: usize) -> String {
        let set = &self.sets[side][set];
        let operation = || format!("{} {}", self.contracts[side].operations[set.operation].key, set.place);
        set.ty.clone().unwrap_or_else(operation)
    }

    /// Moves a pair of places from two types to the types of the innermost objects that contain both.
    fn innermost(&self, types: &[String; 2], places: [&str; 2]) -> ([String; 2], [String; 2]) {
        let (mut types, mut places) = (types.clone(), places);
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
            let (calls, clients) =
                self.uses.get(&at).map_or((0, 0), |(calls, clients)| (*calls, clients.len()));
            OperationUse { operation: operation.key.to_string(), calls, clients }
        });
        let mut all: Vec<OperationUse> = all.collect();
        all.sort_by(|a, b| {
            (b.calls, b.clients).cmp(&(a.calls, a.clients)).then(a.operation.cmp(&b.operation))
        });
        all
    }

    /// Returns the operation of the new side with the most common objects for each of the old side;
    /// the one with the same path if several have as many.
    fn link_operations(&self, linked: &[LinkedSets<'_>]) -> Vec<OperationLink> {
        let mut best: BTreeMap<String, OperationLink> = BTreeMap::new();
        for one in linked {
            let operations = [0, 1].map(|side: usize| {
                let set = &self.sets[side][one.sets[side]];
                self.contracts[side].operations[set.operation].key.to_string()
            });
            let found = OperationLink {
                operations: operations.clone(),
                keys: one.keys.clone(),
                objects: one.pairs.len(),
                agreement: one.agreement,
            };
            let rank = |link: &OperationLink| {
                let same = link.operations[0] == link.operations[1];
                (link.agreement * link.objects as f64, same)
            };
            let known = best.entry(operations[0].clone()).or_insert_with(|| found.clone());
            if rank(&found) > rank(known) {
                *known = found;
            }
        }
        best.into_values().collect()
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

/// Returns the line of a pair of members.
fn line(pair: &SupportedPair, (types, places): ([String; 2], [String; 2])) -> LearnedLine {
    let evidence = &pair.evidence;
    let conversion = evidence.relation.written();
    let conversion = conversion.or_else(|| evidence.null_is_absent.then(|| "null_is_absent".to_owned()));
    let mut rivals: Vec<String> = pair.rivals.iter().map(|[old, new]| format!("{old} and {new}")).collect();
    if let Relation::Convert(_, others) = &evidence.relation {
        rivals.extend(others.iter().map(|other| format!("as {other}")));
    }
    let is_sure = evidence.is_sure() && rivals.is_empty() && !pair.is_copy;
    LearnedLine {
        id: slug(&format!("{} {} is {} {}", types[0], places[0], types[1], places[1])),
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

/// Adds a line. The same line may follow from several types that contain one; contradictions of any
/// of them count.
fn add(lines: &mut BTreeMap<([String; 2], [String; 2]), LearnedLine>, line: LearnedLine) {
    let key = (line.types.clone(), line.places.clone());
    let Some(known) = lines.get_mut(&key) else {
        lines.insert(key, line);
        return;
    };
    let is_other = known.conversion != line.conversion;
    let is_doubtful = is_other || known.against + line.against > 0;
    let confidence = if is_doubtful { Confidence::Likely } else { known.confidence.max(line.confidence) };
    let (supports, against) = (known.supports + line.supports, known.against + line.against);
    if line.bits > known.bits {
        *known = line;
    }
    (known.supports, known.against, known.confidence) = (supports, against, confidence);
}
