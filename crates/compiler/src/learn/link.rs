//! Finds the objects of both versions that describe the same resource: by members or path variables
//! with equal, unique values, else by their position in two messages of one exchange.

use super::records::{Cell, PairedPlace, Record};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The objects at one place of the answers of an operation.
#[derive(Debug, Default)]
pub(super) struct ObjectSet {
    /// Index of the operation in its contract.
    pub operation: usize,
    /// Place in the body, such as `$[*]`.
    pub place: String,
    /// Name of the type in the contract, if it has one, or the operation and the place.
    pub label: String,
    /// Whether `label` is the name of a type, so that a shape can relate it.
    pub is_named: bool,
    /// Whether the operation only reads. The answer of a write may be out of date.
    pub is_read: bool,
    pub records: Vec<Record>,
}

/// Objects of two sets that describe the same resources.
#[derive(Debug)]
pub(super) struct LinkedSets<'r> {
    pub sets: [usize; 2],
    pub pairs: Vec<[&'r Record; 2]>,
    /// Members with equal values; empty if the objects are linked by their position.
    pub keys: [String; 2],
    /// By side, the share of its informative values that the other side has as well, from 0 to 1.
    pub shares: [f64; 2],
}

/// Place of the last variable of the path.
pub(super) const VARIABLE: &str = "{}";
/// Minimum share of one side's values that agree. Below it, equal ids belong to different resources.
const SHARE_MIN: f64 = 0.3;
/// Pairs of objects from which the agreement is computed.
const SAMPLED: usize = 20;
/// Combinations of keys that are compared per pair of sets.
const KEYS_TRIED: usize = 3;

/// A member whose values identify objects.
type KeyColumn<'r> = (&'r str, HashMap<&'r str, usize>);

/// Returns the links between sets of both sides, or between the requests and the answers of one. A
/// request may have no other value than a text that an answer repeats: `is_sent` counts such keys.
pub(super) fn link<'r>(sets: [&'r [ObjectSet]; 2], is_sent: bool) -> Vec<LinkedSets<'r>> {
    let columns: [Vec<Vec<KeyColumn<'r>>>; 2] = sets.map(|sets| sets.iter().map(key_columns).collect());
    // By value, the sets and columns of the new side that contain it.
    let mut index: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    for (set, all) in columns[1].iter().enumerate() {
        for (column, (_, values)) in all.iter().enumerate() {
            values.keys().for_each(|value| index.entry(value).or_default().push((set, column)));
        }
    }
    let mut positions: HashMap<PairedPlace, Vec<(usize, &Record)>> = HashMap::new();
    for (set, records) in sets[1].iter().map(|set| &set.records).enumerate() {
        for record in records {
            record.pair.into_iter().for_each(|place| positions.entry(place).or_default().push((set, record)));
        }
    }
    let mut found = Vec::new();
    for (old, all) in columns[0].iter().enumerate() {
        let mut by_position: BTreeMap<usize, Vec<[&Record; 2]>> = BTreeMap::new();
        for record in &sets[0][old].records {
            for (new, other) in record.pair.and_then(|place| positions.get(&place)).into_iter().flatten() {
                by_position.entry(*new).or_default().push([record, other]);
            }
        }
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
        let both: BTreeSet<usize> = shared.keys().chain(by_position.keys()).copied().collect();
        for new in both {
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
            // Elements of two lists of the same length correspond by their position.
            let by_place = by_position.remove(&new).map(|pairs| (pairs, [String::new(), String::new()]));
            let all = by_key.chain(by_place).filter(|(pairs, _)| !pairs.is_empty());
            let all = all.map(|(pairs, keys)| {
                let shares = [0, 1].map(|side: usize| agreement(&pairs, &keys[side], side, is_sent));
                LinkedSets { sets: [old, new], pairs, keys, shares }
            });
            let most = |linked: &LinkedSets<'_>| score(linked, 0).max(score(linked, 1));
            let best = all.max_by(|a, b| most(a).total_cmp(&most(b)));
            found.extend(best.filter(|linked| linked.shares.iter().any(|share| *share >= SHARE_MIN)));
        }
    }
    found
}

/// Returns the number of linked objects, weighted by the share of a side's values that agree. Of two
/// counterparts with the same values, the one with fewer others is the better one.
pub(super) fn score(linked: &LinkedSets<'_>, side: usize) -> f64 {
    linked.shares[side] * (1.0 + linked.shares[1 - side] / 10.0) * linked.pairs.len() as f64
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

/// Returns the share of informative values of the objects of a side that their counterparts contain,
/// without those of the key. Numbers of different resources are often equal; `counts_texts` includes
/// a key that is no number.
fn agreement(pairs: &[[&Record; 2]], key: &str, side: usize, counts_texts: bool) -> f64 {
    let (mut all, mut shared) = (0, 0);
    let step = pairs.len().div_ceil(SAMPLED).max(1);
    for pair in pairs.iter().step_by(step) {
        let key = key_value(pair[side], key);
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let key = key.filter(|text| !counts_texts || is_number(text));
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
