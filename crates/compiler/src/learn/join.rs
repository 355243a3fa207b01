//! Joins: members of the old side that the new side shows in the answer of another operation, found
//! by an id in the object.

use super::evidence::{Column, DISTINCT_MIN, evaluate};
use super::link::{ObjectSet, VARIABLE, key_columns};
use super::model::LearnedJoin;
use super::records::Record;
use super::relation::Candidate;
use crate::contract::Contract;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the joins that supply `open` members of the old objects.
pub(super) fn joins(
    ty: &str,
    pairs: &[[&Record; 2]],
    open: &[String],
    (sets, contracts): (&[ObjectSet], [&Contract; 2]),
    candidates: &[Candidate],
) -> Vec<LearnedJoin> {
    let mut best: BTreeMap<&String, (f64, LearnedJoin)> = BTreeMap::new();
    let sides = contracts.map(|contract| contract.name.as_str());
    let ids: BTreeSet<&str> =
        pairs.iter().flat_map(|[_, new]| new.cells.keys().map(|place| &**place)).collect();
    for set in sets.iter().filter(|_| !open.is_empty()) {
        for (key, values) in key_columns(set) {
            // The objects themselves are no other answer.
            let is_own = |id: &str| pairs.iter().all(|[_, new]| new.bare(key) == new.bare(id));
            for id in ids.iter().filter(|id| key == VARIABLE || !is_own(id)) {
                let joined = pairs.iter().map(|[_, new]| {
                    let at = values.get(new.bare(id)?)?;
                    Some(&set.records[*at])
                });
                let joined: Vec<Option<&Record>> = joined.collect();
                let present = pairs.iter().filter(|[_, new]| new.bare(id).is_some()).count();
                let found: BTreeSet<_> =
                    joined.iter().flatten().map(|record| std::ptr::from_ref(*record)).collect();
                if found.len() < DISTINCT_MIN || joined.iter().flatten().count() * 10 < present * 9 {
                    continue;
                }
                let operation = &contracts[1].operations[set.operation].key;
                let places: BTreeSet<&str> = joined
                    .iter()
                    .flatten()
                    .flat_map(|record| record.cells.keys().map(|place| &**place))
                    .collect();
                for place in open {
                    let old: Column<'_> =
                        pairs.iter().map(|[old, _]| old.cells.get(place.as_str())).collect();
                    for other in &places {
                        let new: Column<'_> = joined
                            .iter()
                            .map(|record| record.and_then(|record| record.cells.get(*other)))
                            .collect();
                        let Some(evidence) = evaluate([&old, &new], candidates, sides) else { continue };
                        let is_best = best.get(place).is_none_or(|(bits, _)| evidence.bits > *bits);
                        if evidence.is_sure() && evidence.relation.rank() <= 1 && is_best {
                            let join = LearnedJoin {
                                ty: ty.to_owned(),
                                place: place.clone(),
                                via: (*id).to_owned(),
                                operation: format!("{operation} {}", set.place),
                                found: (*other).to_owned(),
                                conversion: evidence.relation.written(),
                                supports: evidence.supports,
                                distinct: evidence.distinct,
                            };
                            best.insert(place, (evidence.bits, join));
                        }
                    }
                }
            }
        }
    }
    best.into_values().map(|(_, join)| join).collect()
}
