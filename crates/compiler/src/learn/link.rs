//! Finds the objects of both versions that describe the same resource: by members or path variables
//! with equal, unique values, else by their position in two answers to one request.

use super::records::{Cell, PairedPlace, Record};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The objects at one place of the answers of an operation.
#[derive(Debug, Default)]
pub(super) struct ObjectSet {
    /// Index of the operation in its contract.
    pub operation: usize,
    /// Place in the body, such as `$[*]`.
    pub place: String,
    /// Name of the type in the contract, if it has one.
    pub ty: Option<String>,
    pub records: Vec<Record>,
}

/// Objects of two sets that describe the same resources.
#[derive(Debug)]
pub(super) struct LinkedSets<'r> {
    pub sets: [usize; 2],
    pub pairs: Vec<[&'r Record; 2]>,
    /// Members with equal values; empty if the objects are linked by their position.
    pub keys: [String; 2],
    /// Share of the informative values of the old side that the new side has as well, from 0 to 1.
    pub agreement: f64,
    /// Share of the informative values of the new side that the old side has as well.
    pub coverage: f64,
}

/// Place of the last variable of the path.
pub(super) const VARIABLE: &str = "{}";
/// Minimum agreement of linked objects. Below it, equal ids belong to different resources.
const AGREEMENT_MIN: f64 = 0.3;
/// Pairs of objects from which the agreement is computed.
const SAMPLED: usize = 20;
/// Combinations of keys that are compared per pair of sets.
const KEYS_TRIED: usize = 3;

/// A member whose values identify objects.
type KeyColumn<'r> = (&'r str, HashMap<&'r str, usize>);

/// Returns the links between sets of both sides.
pub(super) fn link<'r>(sets: [&'r [ObjectSet]; 2]) -> Vec<LinkedSets<'r>> {
    let columns: [Vec<Vec<KeyColumn<'r>>>; 2] = sets.map(|sets| sets.iter().map(key_columns).collect());
    // By value, the sets and columns of the new side that contain it.
    let mut index: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    for (set, all) in columns[1].iter().enumerate() {
        for (column, (_, values)) in all.iter().enumerate() {
            values.keys().for_each(|value| index.entry(value).or_default().push((set, column)));
        }
    }
    let mut found = Vec::new();
    for (old, all) in columns[0].iter().enumerate() {
        let mut shared: BTreeMap<usize, Vec<(usize, usize, usize)>> = BTreeMap::new();
        for (column, (_, values)) in all.iter().enumerate() {
            let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for at in values.keys().filter_map(|value| index.get(value)).flatten() {
                *counts.entry(*at).or_default() += 1;
            }
            for ((new, other), count) in counts {
                shared.entry(new).or_default().push((count, column, other));
            }
        }
        for new in 0..sets[1].len() {
            let mut keys = shared.remove(&new).unwrap_or_default();
            keys.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
            let by_key = keys.into_iter().take(KEYS_TRIED).map(|(_, a, b)| {
                let (a, b) = (&columns[0][old][a], &columns[1][new][b]);
                let both = a.1.iter().filter_map(|(value, old)| Some((*old, *b.1.get(value)?)));
                let mut both: Vec<(usize, usize)> = both.collect();
                both.sort_unstable();
                let pairs =
                    both.into_iter().map(|(a, b)| [&sets[0][old].records[a], &sets[1][new].records[b]]);
                (pairs.collect::<Vec<_>>(), [a.0.to_owned(), b.0.to_owned()])
            });
            let by_place = (by_position([&sets[0][old], &sets[1][new]]), [String::new(), String::new()]);
            let all = by_key.chain([by_place]).filter(|(pairs, _)| !pairs.is_empty());
            let all = all.map(|(pairs, keys)| {
                let (agreement, coverage) = (agreement(&pairs, &keys, 0), agreement(&pairs, &keys, 1));
                LinkedSets { sets: [old, new], pairs, keys, agreement, coverage }
            });
            let best = all.max_by(|a, b| score(a).total_cmp(&score(b)));
            found.extend(best.filter(|linked| linked.agreement >= AGREEMENT_MIN));
        }
    }
    found
}

/// Returns the number of linked objects, weighted by their agreement. Of two objects with the same
/// values, the one with fewer others is the better counterpart.
pub(super) fn score(linked: &LinkedSets<'_>) -> f64 {
    linked.agreement * (1.0 + linked.coverage / 10.0) * linked.pairs.len() as f64
}

/// Returns the value of a key of an object.
fn key_value<'r>(record: &'r Record, place: &str) -> Option<&'r str> {
    match place {
        VARIABLE => record.variables.last().map(String::as_str),
        place => record.bare(place),
    }
    .filter(|value| !value.is_empty() && !matches!(*value, "true" | "false"))
}

/// Returns the members with many different values. If a resource was read again after a change, the
/// last object applies.
pub(super) fn key_columns(set: &ObjectSet) -> Vec<KeyColumn<'_>> {
    let places: BTreeSet<&str> =
        set.records.iter().flat_map(|record| record.cells.keys().map(|place| &**place)).collect();
    let columns = places.into_iter().chain([VARIABLE]).filter_map(|place| {
        let mut values = HashMap::new();
        let mut present = 0;
        for (at, record) in set.records.iter().enumerate() {
            if let Some(value) = key_value(record, place) {
                values.insert(value, at);
                present += 1;
            }
        }
        let is_key = present * 10 >= set.records.len() * 9 && values.len() * 2 >= present;
        (is_key && !values.is_empty()).then_some((place, values))
    });
    columns.collect()
}

/// Links the elements of two answers to the same request if both lists have the same length.
fn by_position([old, new]: [&ObjectSet; 2]) -> Vec<[&Record; 2]> {
    let by_place: BTreeMap<PairedPlace, &Record> =
        new.records.iter().filter_map(|record| Some((record.pair?, record))).collect();
    old.records.iter().filter_map(|record| Some([record, *by_place.get(&record.pair?)?])).collect()
}

/// Returns the share of informative values of the objects of a side that their counterparts contain,
/// without those of the keys.
fn agreement(pairs: &[[&Record; 2]], keys: &[String; 2], side: usize) -> f64 {
    let (mut all, mut shared) = (0, 0);
    let step = pairs.len().div_ceil(SAMPLED).max(1);
    for pair in pairs.iter().step_by(step) {
        let key = key_value(pair[side], &keys[side]);
        let has = texts(pair[1 - side]);
        for text in own_texts(pair[side]).into_iter().filter(|text| Some(*text) != key) {
            all += 1;
            shared += usize::from(has.contains(text));
        }
    }
    if all == 0 { 0.0 } else { f64::from(shared as u32) / f64::from(all as u32) }
}

/// Returns the scalars of an object, without those that many members have by chance.
fn texts(record: &Record) -> BTreeSet<&str> {
    record.cells.values().flat_map(scalars).collect()
}

/// Returns the scalars of an object outside of the objects in it, which are compared by themselves;
/// all scalars if it only wraps others.
fn own_texts(record: &Record) -> BTreeSet<&str> {
    let own = record.cells.iter().filter(|(place, _)| !place.contains('.'));
    let own: BTreeSet<&str> = own.flat_map(|(_, cell)| scalars(cell)).collect();
    if own.is_empty() { texts(record) } else { own }
}

fn scalars(cell: &Cell) -> Vec<&str> {
    let all = match cell {
        Cell::One(text) => vec![&**text],
        Cell::Many(texts) => texts.iter().flatten().map(|text| &**text).collect(),
    };
    let bare =
        all.into_iter().filter(|text| !text.starts_with(['{', '['])).map(|text| text.trim_matches('"'));
    bare.filter(|text| !matches!(*text, "" | "null" | "true" | "false" | "0" | "1")).collect()
}
