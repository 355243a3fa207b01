//! Members of request bodies. Answers about the same resource repeat their values, so members of both
//! versions correspond if the members of these answers do.

use super::evidence::{BITS_MIN, DISTINCT_MIN, SUPPORT_MIN, information, is_at_or_below};
use super::link::{LinkedSets, ObjectSet};
use super::model::{Confidence, LearnedLine, LineKey, line_id};
use super::records::{Cell, Record};
use std::collections::BTreeMap;

/// A member of a request whose values an answer repeats.
#[derive(Debug)]
pub(super) struct Echo {
    /// Index of the operation.
    pub operation: usize,
    /// The type of the request, and the place in it.
    pub sent: [String; 2],
    /// The type of the answer, and the place in it.
    pub answered: [String; 2],
    supports: usize,
    against: usize,
    distinct: usize,
    bits: f64,
    /// Whether no other member of the answer has the same values.
    is_only: bool,
}

/// Returns the members of requests that answers about the same resources repeat.
pub(super) fn echoes(linked: &[LinkedSets<'_>], sets: [&[ObjectSet]; 2]) -> Vec<Echo> {
    let mut all = Vec::new();
    for linked in linked {
        let (sent, answered) = (&sets[0][linked.sets[0]], &sets[1][linked.sets[1]]);
        let mut places: Vec<&str> =
            linked.pairs.iter().flat_map(|[body, _]| body.cells.keys().map(|place| &**place)).collect();
        places.sort_unstable();
        places.dedup();
        for place in places.into_iter().filter(|place| !place.contains(['.', '['])) {
            all.extend(echo(place, &linked.pairs).map(|(found, echo)| Echo {
                operation: sent.operation,
                sent: [sent.label.clone(), place.to_owned()],
                answered: [answered.label.clone(), found],
                ..echo
            }));
        }
    }
    all
}

/// Returns the member of the answers that repeats one of the requests. A member that a request omits
/// keeps its value, which is no contradiction.
fn echo(place: &str, pairs: &[[&Record; 2]]) -> Option<(String, Echo)> {
    let present: Vec<(&str, &Record)> =
        pairs.iter().filter_map(|[body, answer]| Some((value(body, place)?, *answer))).collect();
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (text, answer) in &present {
        let equal = answer.cells.keys().filter(|other| value(answer, other) == Some(*text));
        equal.for_each(|other| *counts.entry(other).or_default().entry(text).or_default() += 1);
    }
    let supports = |values: &BTreeMap<&str, usize>| values.values().sum::<usize>();
    counts.retain(|_, values| {
        let supports = supports(values);
        supports >= SUPPORT_MIN && supports * 10 >= present.len() * 9
    });
    let most = counts.values().map(&supports).max()?;
    let is_best = |other: &&str| supports(&counts[*other]) == most;
    let depth = |other: &&str| other.matches('.').count();
    let best: Vec<&str> = counts.keys().copied().filter(is_best).collect();
    let found = best.iter().copied().find(|other| *other == place);
    let found = found.or_else(|| best.iter().copied().min_by_key(depth))?;
    let is_other = |other: &&&str| !is_at_or_below(other, found) && !is_at_or_below(found, other);
    let values = &counts[found];
    let echo = Echo {
        operation: 0,
        sent: Default::default(),
        answered: Default::default(),
        supports: most,
        against: present.len() - most,
        distinct: values.len(),
        bits: information(values.values()),
        is_only: found == place || !best.iter().any(|other| is_other(&other)),
    };
    Some((found.to_owned(), echo))
}

/// Returns the value at a place, if it can identify a member.
fn value<'r>(record: &'r Record, place: &str) -> Option<&'r str> {
    match record.cells.get(place)? {
        Cell::One(text) if !matches!(&**text, "null" | "\"\"" | "[]" | "{}") => Some(text),
        _ => None,
    }
}

impl Echo {
    fn is_sure(&self) -> bool {
        self.against == 0 && self.is_only && self.distinct >= DISTINCT_MIN && self.bits >= BITS_MIN
    }
}

/// Returns the lines of members of requests: through two answers that correspond, or through the
/// answers of the new side alone, which show the writes of both. `echoes`: of old requests in answers
/// of the old side and of the new side, and of new requests in those of the new side. `is_alike` says
/// whether two operations have the same method.
pub(super) fn compose(
    [old, crossed, new]: [Vec<Echo>; 3],
    known: &BTreeMap<LineKey, LearnedLine>,
    is_alike: impl Fn([usize; 2]) -> bool,
) -> BTreeMap<LineKey, LearnedLine> {
    let mut found: BTreeMap<LineKey, LearnedLine> = BTreeMap::new();
    let mut add = |line: LearnedLine| {
        let key = (line.types.clone(), line.places.clone());
        let rank = |line: &LearnedLine| (line.confidence == Confidence::Sure, line.supports);
        if !known.contains_key(&key) && found.get(&key).is_none_or(|other| rank(&line) > rank(other)) {
            found.insert(key, line);
        }
    };
    for (a, b) in old.iter().flat_map(|a| new.iter().map(move |b| (a, b))) {
        let pair = |at: usize| [a.answered[at].clone(), b.answered[at].clone()];
        let Some(between) = known.get(&(pair(0), pair(1))).filter(|line| !line.is_copy) else { continue };
        let is_sure = between.confidence == Confidence::Sure && is_alike([a.operation, b.operation]);
        let line = b.limit(a.limit(between.clone()));
        let line = LearnedLine { through: Some(pair(0)), defaults: [None, None], ..line };
        add(line.between(&a.sent, &b.sent, is_sure && a.is_sure() && b.is_sure()));
    }
    for a in &crossed {
        let through = Some([a.answered[0].clone(), a.answered[0].clone()]);
        let line = LearnedLine { through, ..a.limit(LearnedLine::equal()) };
        // A shape of a request and an answer is no part of a pair, so it is not sure.
        add(line.clone().between(&a.sent, &a.answered, false));
        for b in new.iter().filter(|b| b.answered == a.answered) {
            let is_sure = is_alike([a.operation, b.operation]) && a.is_sure() && b.is_sure();
            add(b.limit(line.clone()).between(&a.sent, &b.sent, is_sure));
        }
    }
    found
}

impl Echo {
    /// Returns the line with the evidence that this step of the chain leaves.
    fn limit(&self, line: LearnedLine) -> LearnedLine {
        LearnedLine {
            supports: line.supports.min(self.supports),
            against: line.against + self.against,
            distinct: line.distinct.min(self.distinct),
            bits: line.bits.min(self.bits),
            ..line
        }
    }
}

impl LearnedLine {
    /// Returns a line of equal values, without evidence yet.
    fn equal() -> LearnedLine {
        LearnedLine {
            id: String::new(),
            types: Default::default(),
            places: Default::default(),
            conversion: None,
            defaults: [None, None],
            is_copy: false,
            supports: usize::MAX,
            against: 0,
            distinct: usize::MAX,
            bits: f64::MAX,
            rivals: Vec::new(),
            through: None,
            confidence: Confidence::Likely,
        }
    }

    /// Returns the line for members given by type and place.
    fn between(self, old: &[String; 2], new: &[String; 2], is_sure: bool) -> LearnedLine {
        let [types, places] = [0, 1].map(|at: usize| [old[at].clone(), new[at].clone()]);
        let confidence = if is_sure { Confidence::Sure } else { Confidence::Likely };
        LearnedLine { id: line_id(&types, &places), types, places, confidence, ..self }
    }
}
