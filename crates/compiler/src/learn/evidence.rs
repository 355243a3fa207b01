//! Compares the members of linked objects and selects the pairs of members that the values support.

use super::records::{Cell, Record};
use super::relation::{Candidate, Relation, relate};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of distinct values that support a sure line.
pub const DISTINCT_MIN: usize = 5;
/// Minimum information of the agreement in bits: unrelated members with the same values in random
/// order agree with a probability of one in two to the power of it.
pub const BITS_MIN: f64 = 30.0;
/// Minimum number of observations of any proposal.
pub(super) const SUPPORT_MIN: usize = 3;
/// Observations per row of a table for a sure line.
const ROW_SUPPORT_MIN: usize = 3;
/// Maximum number of places of a side that are compared with one another.
const PLACES_MAX: usize = 200;

/// The evidence for one pair of members.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    pub relation: Relation,
    pub supports: usize,
    /// Observations that the relation does not explain.
    pub against: usize,
    pub distinct: usize,
    pub bits: f64,
    /// The old side omits the member where the new side has null.
    pub null_is_absent: bool,
    /// By side, the value that it has where the other side has none.
    pub defaults: [Option<String>; 2],
    is_dense: bool,
}

/// A pair of members that the values support.
#[derive(Debug)]
pub(super) struct SupportedPair {
    pub places: [String; 2],
    pub evidence: Evidence,
    /// Other pairs with one of these members that explain the values as well.
    pub rivals: Vec<[String; 2]>,
    /// Whether another member of the old side is the counterpart of the new member.
    pub is_copy: bool,
}

/// The result of comparing the members of two types.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub pairs: Vec<SupportedPair>,
    /// Members with the same name, and equal values throughout.
    pub same: Vec<SupportedPair>,
    /// Members with the same name whose values are not related, with the number of objects.
    pub conflicts: Vec<(String, usize)>,
    /// Members of the old side with informative values that have no counterpart, or a table.
    pub open: Vec<String>,
}

impl Evidence {
    /// Returns whether the values alone are proof enough.
    pub(super) fn is_sure(&self) -> bool {
        let is_ambiguous = matches!(&self.relation, Relation::Convert(_, others) if !others.is_empty());
        let is_dense = self.is_dense && (self.is_table() || self.distinct >= DISTINCT_MIN);
        self.against == 0 && !is_ambiguous && is_dense && self.bits >= BITS_MIN
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.relation, Relation::Table(_))
    }

    /// Returns whether few observations contradict.
    fn explains(&self) -> bool {
        self.against * 10 <= self.supports + self.against && self.distinct >= 2
    }
}

/// The values at one place of linked objects.
pub(super) type Column<'r> = Vec<Option<&'r Cell>>;

/// The values of two members of one object; `None` if absent.
type Observation<'r> = (Option<&'r str>, Option<&'r str>);

/// Returns the values of each object, or of each element of its lists. Lists of different lengths
/// are compared as one value, which only one side has.
fn observations<'r>([old, new]: [&Column<'r>; 2]) -> Vec<Observation<'r>> {
    let mut all = Vec::new();
    for (old, new) in old.iter().zip(new) {
        match (*old, *new) {
            (Some(Cell::Many(old)), Some(Cell::Many(new))) if old.len() == new.len() => {
                all.extend(old.iter().zip(new).map(|(old, new)| (old.as_deref(), new.as_deref())));
            }
            (Some(Cell::Many(_)), _) => all.push((Some(LIST), None)),
            (_, Some(Cell::Many(_))) => all.push((None, Some(LIST))),
            (old, new) => all.push((old.and_then(single), new.and_then(single))),
        }
    }
    all
}

/// The conversion of a member that one side omits where the other one has null.
pub(super) const NULL_IS_ABSENT: &str = "null_is_absent";
/// Replaces lists that cannot be compared by element.
const LIST: &str = "[…]";
const NULL: &str = "null";

fn single(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::One(text) => Some(text),
        Cell::Many(_) => None,
    }
}

/// Returns the evidence for two members, or `None` if there are too few values, or no relation
/// explains them.
pub(super) fn evaluate(
    columns: [&Column<'_>; 2],
    candidates: &[Candidate],
    sides: [&str; 2],
) -> Option<Evidence> {
    let all = observations(columns);
    let is_value = |value: &Option<&str>| value.is_some_and(|text| text != NULL);
    let both: Vec<(&str, &str)> = all
        .iter()
        .filter(|(old, new)| is_value(old) && is_value(new))
        .filter_map(|(old, new)| Some(((*old)?, (*new)?)))
        .collect();
    if both.len() < SUPPORT_MIN {
        return None;
    }
    // Some conversions have a counterpart for null, such as an empty list.
    let with_null: Vec<(&str, &str)> = all
        .iter()
        .filter_map(|(old, new)| Some(((*old)?, (*new)?)))
        .filter(|(old, new)| *old != NULL || *new != NULL)
        .collect();
    let explains_all = |relation: &Relation| {
        with_null.iter().all(|(old, new)| relation.holds(old, new)) && relation.rank() < 3
    };
    let handles_null = (with_null.len() > both.len()).then(|| relate(&with_null, candidates, sides));
    let relation = match handles_null.flatten().filter(explains_all) {
        Some(relation) => relation,
        None => relate(&both, candidates, sides)?,
    };
    let pairs = if explains_all(&relation) { &with_null } else { &both };
    let held: Vec<(&str, &str)> =
        pairs.iter().copied().filter(|(old, new)| relation.holds(old, new)).collect();
    let count = |old: Option<&str>, new: Option<&str>| all.iter().filter(|one| **one == (old, new)).count();
    let [absent_null, null_absent, absent] =
        [count(None, Some(NULL)), count(Some(NULL), None), count(None, None)];
    let mut against = pairs.len() - held.len();
    let mut defaults = [None, None];
    for side in [0, 1] {
        let ordered = all.iter().map(|(old, new)| if side == 0 { (*old, *new) } else { (*new, *old) });
        let is_alone = |(value, other): &Observation<'_>| {
            is_value(value) && !is_value(other) && !(explains_all(&relation) && other.is_some())
        };
        let alone: Vec<Observation<'_>> = ordered.filter(is_alone).collect();
        let values: BTreeSet<&str> = alone.iter().filter_map(|(value, _)| *value).collect();
        let is_empty = |value: &&str| matches!(*value, "\"\"" | "0" | "false" | "[]");
        // One side writes an empty value where the other side omits the member.
        let is_default = values.len() == 1 && values.iter().all(is_empty) && absent == 0;
        if is_default && alone.iter().all(|(_, other)| other.is_none()) {
            defaults[side] = values.first().map(|value| (*value).to_owned());
        } else {
            against += alone.len();
        }
    }
    let is_plain = matches!(relation, Relation::Equal);
    let null_is_absent = absent_null > 0 && is_plain;
    if null_absent > 0 && absent == 0 && defaults[0].is_none() {
        defaults[0] = Some(NULL.to_owned());
    }
    if absent_null > 0 && !is_plain && absent == 0 && defaults[1].is_none() {
        defaults[1] = Some(NULL.to_owned());
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (old, _) in held.iter().filter(|(old, _)| !matches!(*old, "\"\"" | "[]" | "{}")) {
        *counts.entry(old).or_default() += 1;
    }
    let rows_min = counts.values().min().copied().unwrap_or(0);
    let is_dense = !matches!(relation, Relation::Table(_)) || rows_min >= ROW_SUPPORT_MIN;
    let (supports, distinct, bits) = (held.len(), counts.len(), information(counts.values()));
    Some(Evidence { relation, supports, against, distinct, bits, null_is_absent, defaults, is_dense })
}

/// Returns the information of an agreement in bits: the logarithm of the number of different orders of the
/// values.
pub(super) fn information<'c>(counts: impl Iterator<Item = &'c usize>) -> f64 {
    let orders = |count: usize| (1..=count).map(|n| (n as f64).log2()).sum::<f64>();
    let (all, within) = counts.fold((0, 0.0), |(all, within), count| (all + count, within + orders(*count)));
    orders(all) - within
}

/// Compares the members of linked objects.
pub(super) fn compare(pairs: &[[&Record; 2]], candidates: &[Candidate], sides: [&str; 2]) -> Comparison {
    let places: [Vec<&str>; 2] = [0, 1].map(|side: usize| {
        let all: BTreeSet<&str> =
            pairs.iter().flat_map(|pair| pair[side].cells.keys().map(|place| &**place)).collect();
        all.into_iter().take(PLACES_MAX).collect()
    });
    let columns: [BTreeMap<&str, Column<'_>>; 2] = [0, 1].map(|side: usize| {
        let column = |place: &str| pairs.iter().map(|pair| pair[side].cells.get(place)).collect();
        places[side].iter().map(|place| (*place, column(place))).collect()
    });
    let test = |old: &str, new: &str| evaluate([&columns[0][old], &columns[1][new]], candidates, sides);
    let mut comparison = Comparison::default();
    // Members below an equal object need no lines.
    let mut explained: [BTreeSet<&str>; 2] = Default::default();
    let mut found: Vec<([&str; 2], Evidence)> = Vec::new();
    for place in places[0].iter().filter(|place| columns[1].contains_key(*place)) {
        if is_within(place, &explained[0]) {
            continue;
        }
        match test(place, place) {
            Some(evidence) if evidence.against == 0 && is_same(&evidence) => {
                explained.iter_mut().for_each(|explained| _ = explained.insert(place));
                let places = [place, place].map(|place| (*place).to_owned());
                comparison.same.push(SupportedPair { places, evidence, rivals: Vec::new(), is_copy: false });
            }
            Some(evidence) if evidence.explains() => found.push(([place, place], evidence)),
            // An object with other members is described by them.
            _ if is_object(&columns[0][place]) => {}
            _ => {
                let both = columns[0][place].iter().zip(&columns[1][place]);
                let both = both.filter(|(old, new)| old.is_some() && new.is_some()).count();
                if both >= SUPPORT_MIN && informative(&columns[0][place]) > 0 {
                    comparison.conflicts.push(((*place).to_owned(), both));
                }
            }
        }
    }
    let named: BTreeSet<&str> =
        found.iter().map(|(places, _)| places[0]).chain(explained[0].clone()).collect();
    for old in places[0].iter().filter(|place| !named.contains(*place) && !is_within(place, &explained[0])) {
        for new in places[1].iter().filter(|new| *new != old) {
            found.extend(test(old, new).filter(Evidence::explains).map(|evidence| ([*old, *new], evidence)));
        }
    }
    select(found, &named, &mut comparison);
    let is_open = |place: &&&str| {
        !named.contains(**place)
            && !is_within(place, &explained[0])
            && !comparison
                .pairs
                .iter()
                .any(|pair| !pair.evidence.is_table() && is_at_or_below(place, &pair.places[0]))
            && informative(&columns[0][**place]) >= DISTINCT_MIN
    };
    comparison.open = places[0].iter().filter(is_open).map(|place| (*place).to_owned()).collect();
    comparison
}

/// Returns whether a member with the same name needs no line.
fn is_same(evidence: &Evidence) -> bool {
    let is_plain = matches!(evidence.relation, Relation::Equal) && !evidence.null_is_absent;
    is_plain && evidence.defaults.iter().all(Option::is_none)
}

fn is_object(column: &Column<'_>) -> bool {
    column.iter().flatten().any(|cell| matches!(cell, Cell::One(text) if text.starts_with('{')))
}

/// Returns the number of distinct values that are neither null nor empty.
fn informative(column: &Column<'_>) -> usize {
    let texts = column.iter().flatten().flat_map(|cell| match cell {
        Cell::One(text) => vec![&**text],
        Cell::Many(texts) => texts.iter().flatten().map(|text| &**text).collect(),
    });
    texts.filter(|text| !matches!(*text, NULL | "\"\"" | "[]" | "{}")).collect::<BTreeSet<_>>().len()
}

/// Chooses the best pair for each member: conversions before tables, then the fewest contradictions,
/// the most information, and the most similar names.
fn select(mut found: Vec<([&str; 2], Evidence)>, named: &BTreeSet<&str>, comparison: &mut Comparison) {
    let likeness = |[old, new]: &[&str; 2]| strsim::jaro_winkler(&old.to_lowercase(), &new.to_lowercase());
    let depth = |[old, new]: &[&str; 2]| old.matches('.').count() + new.matches('.').count();
    found.sort_by(|(a, x), (b, y)| {
        let rank = |places: &[&str; 2], one: &Evidence| {
            let is_renamed = places[0] != places[1];
            (is_renamed, is_renamed && is_within(places[1], named), one.relation.rank(), one.against)
        };
        rank(a, x)
            .cmp(&rank(b, y))
            .then(y.bits.total_cmp(&x.bits))
            .then(depth(a).cmp(&depth(b)))
            .then(likeness(b).total_cmp(&likeness(a)))
            .then(a.cmp(b))
    });
    let mut chosen: Vec<usize> = Vec::new();
    for (at, (places, evidence)) in found.iter().enumerate() {
        let takes = |side: usize| chosen.iter().any(|at| found[*at].0[side] == places[side]);
        // Members of an object that moved as a whole move with it.
        let is_moved = chosen.iter().any(|at| is_at_or_below(places[0], found[*at].0[0]));
        if is_moved {
            continue;
        }
        let is_copy = takes(1) || (places[0] != places[1] && is_within(places[1], named));
        let is_as_good = |(others, other): &&([&str; 2], Evidence)| {
            let shares = others != places && (others[0] == places[0] || others[1] == places[1]);
            let is_related = [0, 1].iter().any(|side| {
                others[*side] != places[*side]
                    && (is_at_or_below(others[*side], places[*side])
                        || is_at_or_below(places[*side], others[*side]))
            });
            shares
                && !is_related
                && other.against <= evidence.against
                && other.relation.rank() <= evidence.relation.rank()
                && other.bits >= 0.8 * evidence.bits
        };
        // A copy has no conversion, and few values may be equal by chance.
        let is_copied = is_same(evidence) && evidence.against == 0 && evidence.bits >= BITS_MIN;
        if is_copy && !is_copied {
            continue;
        }
        let rivals = found.iter().filter(is_as_good).map(|(others, _)| others.map(str::to_owned)).collect();
        let (places, evidence) = (places.map(str::to_owned), evidence.clone());
        comparison.pairs.push(SupportedPair { places, evidence, rivals, is_copy });
        chosen.push(at);
    }
}

pub(super) fn is_at_or_below(place: &str, outer: &str) -> bool {
    place.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn is_within(place: &str, outer: &BTreeSet<&str>) -> bool {
    outer.iter().any(|outer| is_at_or_below(place, outer))
}
