//! Pairs each operation of the old side with its successor on the new side. The tiers by certainty:
//! the same key; the same `operationId`; the same path except for spelling; and guesses based on
//! the form of paths or on words. A guess has evidence for and against it, and is not served until
//! a person accepts it: a wrong guess sends a client's write to another resource.

use super::evidence::GuessEvidence;
use crate::contract::{
    Contract, Difference, Narrowing, Operation, Proven, Segment, assignable, compare_once,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use switchback_plan::Message;

/// The certainty of a pairing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Same,
    Id,
    Spelling,
    /// Refused until a person accepts it.
    Guess,
}

pub(super) struct PairCandidate<'c> {
    pub old: &'c Operation,
    pub new: &'c Operation,
    pub tier: Tier,
    /// Reason, for people.
    pub why: String,
    /// Evidence of a guess.
    pub evidence: GuessEvidence,
    /// Whether the operation is forwarded unchanged without lines.
    pub is_kept: bool,
}

impl PairCandidate<'_> {
    /// Returns the id of a guess for `--accept`. It contains both operations, so accepting one
    /// guess accepts no other.
    pub(super) fn id(&self) -> String {
        super::decision::slug(&format!("{} becomes {}", self.old.key, self.new.key))
    }
}

/// Maximum number of competing renames in the evidence.
const RIVALS_SHOWN: usize = 3;
/// Maximum number of comparisons of operations; there are no guesses above it.
const COMPARED_MAX: usize = 2_000_000;
/// Minimum number of operations that indicate a renamed resource.
const STORIES_MIN: usize = 2;

/// Returns a candidate for each operation of the old side that cannot be forwarded unchanged, if
/// one is found, and for those that can, but not with all members of their bodies.
pub(super) fn candidates<'c>(
    old: &'c Contract,
    new: &'c Contract,
    unfit: &HashMap<String, String>,
) -> Vec<PairCandidate<'c>> {
    let mut found = unfit_candidates(old, new, unfit);
    let mut proven = Proven::default();
    let fit = old.operations.iter().filter(|operation| !unfit.contains_key(&operation.key.to_string()));
    found.extend(fit.filter_map(|operation| {
        let same = new.find_shape(&operation.key.method, &operation.key.path.shape())?;
        is_narrower([operation, same], [old, new], &mut proven).then(|| PairCandidate {
            old: operation,
            new: same,
            tier: Tier::Same,
            why: "the same operation".to_owned(),
            evidence: GuessEvidence::default(),
            is_kept: true,
        })
    }));
    found
}

/// Returns whether a part of the bodies does not go over as it is.
fn is_narrower(operations: [&Operation; 2], contracts: [&Contract; 2], proven: &mut Proven) -> bool {
    let [old, new] = contracts;
    let is_whole =
        |compared: Result<Vec<Narrowing>, Difference>| compared.is_ok_and(|found| found.is_empty());
    let request = operations.map(|operation| operation.body.as_ref());
    let answers = operations.map(|operation| operation.success_bodies().next());
    let request = match request {
        [Some(from), Some(to)] => {
            compare_once(old.types.at(&from.ty), new.types.at(&to.ty), Message::Request, proven)
        }
        _ => Ok(Vec::new()),
    };
    let answer = match answers {
        [Some(to), Some(from)] => compare_once(new.types.at(from), old.types.at(to), Message::Answer, proven),
        _ => Ok(Vec::new()),
    };
    let [served, called] = operations;
    let is_spelled_otherwise = served.query.iter().any(|own| {
        let other = called.query.iter().find(|other| other.name == own.name);
        other.is_some_and(|other| {
            let [from, to] = [old.types.at(&own.ty), new.types.at(&other.ty)];
            assignable(from, to, Some(Message::Request)).is_err()
        })
    });
    !(is_whole(request) && is_whole(answer)) || is_spelled_otherwise
}

fn unfit_candidates<'c>(
    old: &'c Contract,
    new: &'c Contract,
    unfit: &HashMap<String, String>,
) -> Vec<PairCandidate<'c>> {
    let open: Vec<&Operation> =
        old.operations.iter().filter(|operation| unfit.contains_key(&operation.key.to_string())).collect();
    let by_id = [by_id(old), by_id(new)];
    let mut by_spelling: HashMap<String, Vec<&Operation>> = HashMap::new();
    for operation in &new.operations {
        by_spelling.entry(spelling(operation)).or_default().push(operation);
    }
    let old_shapes: HashSet<(String, String)> = old.operations.iter().map(shape).collect();
    // An operation that exists on both sides under the same key is the successor of no other
    // operation.
    let is_free = |operation: &Operation| !old_shapes.contains(&shape(operation));
    let mut found: Vec<PairCandidate<'c>> = Vec::new();
    let mut left: Vec<&Operation> = Vec::new();
    for operation in open {
        let same = new.find_shape(&operation.key.method, &operation.key.path.shape());
        // Only an id that is unique on both sides identifies an operation.
        let id = operation.id.as_deref().and_then(|id| match by_id.each_ref().map(|all| all.get(id)) {
            [Some(one), Some(other)] => match (one.as_slice(), other.as_slice()) {
                ([_], [new]) => Some(*new),
                _ => None,
            },
            _ => None,
        });
        let id = id.filter(|new| is_free(new) && new.key.method == operation.key.method);
        let spelt = by_spelling.get(&spelling(operation)).filter(|all| all.len() == 1).map(|all| all[0]);
        let spelt = spelt.filter(|new| is_free(new));
        let mut add = |new: &'c Operation, tier: Tier, why: &str| {
            let evidence = GuessEvidence::default();
            found.push(PairCandidate {
                old: operation,
                new,
                tier,
                why: why.to_owned(),
                evidence,
                is_kept: false,
            });
        };
        match (same, id, spelt) {
            (Some(new), ..) => add(new, Tier::Same, "the same operation"),
            (_, Some(new), _) => add(new, Tier::Id, "the same `operationId`"),
            (_, _, Some(new)) => add(new, Tier::Spelling, "the same path but for spelling"),
            _ => left.push(operation),
        }
    }
    found.extend(pair_renamed(&left, new, &is_free));
    let taken: HashSet<String> = found.iter().map(|one| one.old.key.to_string()).collect();
    left.retain(|operation| !taken.contains(&operation.key.to_string()));
    found.extend(likely(&left, new, &is_free));
    for guess in found.iter_mut().filter(|candidate| candidate.tier == Tier::Guess) {
        guess.evidence.add_documents([guess.old, guess.new], [old, new]);
    }
    found
}

/// Groups the operations by `operationId`; some documents use an id several times.
fn by_id(contract: &Contract) -> HashMap<&str, Vec<&Operation>> {
    let mut by_id: HashMap<&str, Vec<&Operation>> = HashMap::new();
    for operation in &contract.operations {
        if let Some(id) = &operation.id {
            by_id.entry(id).or_default().push(operation);
        }
    }
    by_id
}

fn shape(operation: &Operation) -> (String, String) {
    (operation.key.method.to_string(), operation.key.path.shape())
}

/// Returns the method and the normalized path: without separators, case and version segments.
fn spelling(operation: &Operation) -> String {
    let segments = operation.key.path.segments().iter().map(|segment| match segment {
        Segment::Literal(text) => {
            text.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
        }
        _ => "{}".to_owned(),
    });
    let segments: Vec<String> =
        segments.filter(|text: &String| !text.is_empty() && !is_version(text)).collect();
    format!("{} {}", operation.key.method, segments.join("/"))
}

/// Returns whether a normalized segment is a version: `v3`, `2`, `202603`.
fn is_version(word: &str) -> bool {
    let rest = word.strip_prefix('v').unwrap_or(word);
    !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

/// Returns the fixed segments of a path; `None` for segments with variables.
fn words(operation: &Operation) -> Vec<Option<&str>> {
    operation
        .key
        .path
        .segments()
        .iter()
        .map(|segment| match segment {
            Segment::Literal(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Guesses pairs that differ in one segment, if several operations differ in the same one.
fn pair_renamed<'c>(
    left: &[&'c Operation],
    new: &'c Contract,
    is_free: &dyn Fn(&Operation) -> bool,
) -> Vec<PairCandidate<'c>> {
    let mut by_form: HashMap<(String, usize), Vec<&'c Operation>> = HashMap::new();
    for operation in new.operations.iter().filter(|operation| is_free(operation)) {
        let form = (operation.key.method.to_string(), operation.key.path.segments().len());
        by_form.entry(form).or_default().push(operation);
    }
    let mut stories: BTreeMap<(String, String), Vec<(&'c Operation, &'c Operation)>> = BTreeMap::new();
    let mut compared = 0;
    for operation in left {
        let form = (operation.key.method.to_string(), operation.key.path.segments().len());
        let others = by_form.get(&form).map(Vec::as_slice).unwrap_or_default();
        // Thousands of unpaired operations tell no story.
        compared += others.len();
        if compared > COMPARED_MAX {
            return Vec::new();
        }
        for other in others {
            let pairs = words(operation).into_iter().zip(words(other));
            let differ: Vec<_> = pairs.filter(|(a, b)| a != b).collect();
            // Exactly one fixed segment differs.
            if let [(Some(a), Some(b))] = differ.as_slice() {
                stories.entry(((*a).to_owned(), (*b).to_owned())).or_default().push((operation, other));
            }
        }
    }
    let mut all: Vec<_> = stories.into_iter().filter(|(_, pairs)| pairs.len() >= STORIES_MIN).collect();
    // The rename with the most operations claims its operations first.
    all.sort_by_key(|(_, pairs)| std::cmp::Reverse(pairs.len()));
    let names: Vec<(String, String)> = all.iter().map(|(names, _)| names.clone()).collect();
    let (mut from, mut to) = (HashSet::new(), HashSet::new());
    let mut found = Vec::new();
    for ((a, b), pairs) in all {
        let mut evidence = GuessEvidence::default();
        evidence.supports.push(format!("{} operations differ by this segment alone", pairs.len()));
        let lost = left.iter().filter(|one| words(one).contains(&Some(&a))).count() - pairs.len();
        if lost > 0 {
            evidence.contradicts.push(format!("{lost} other operations of `{a}` have no counterpart there"));
        }
        let rivals: Vec<String> = names
            .iter()
            .filter(|(x, y)| (*x == a) != (*y == b))
            .map(|(x, y)| format!("`{x}` and `{y}`"))
            .take(RIVALS_SHOWN)
            .collect();
        if !rivals.is_empty() {
            evidence.contradicts.push(format!("the same holds of {}", rivals.join(", ")));
        }
        for (old, new) in pairs {
            if from.contains(&old.key.to_string()) || to.contains(&new.key.to_string()) {
                continue;
            }
            from.insert(old.key.to_string());
            to.insert(new.key.to_string());
            let why = format!("it may have become `{}`: `{a}` may be called `{b}` now", new.key);
            found.push(PairCandidate {
                old,
                new,
                tier: Tier::Guess,
                why,
                evidence: evidence.clone(),
                is_kept: false,
            });
        }
    }
    found
}

/// Returns the words that describe an operation.
fn operation_words(operation: &Operation) -> HashSet<String> {
    let texts = [operation.id.as_deref(), operation.summary.as_deref()];
    let mut words: HashSet<String> = HashSet::new();
    let fixed = words_of_path(operation);
    for text in texts.into_iter().flatten().chain(fixed.iter().map(String::as_str)) {
        let mut word = String::new();
        for c in text.chars() {
            // Split at separators, and before capital letters.
            if !c.is_alphanumeric()
                || (c.is_uppercase() && word.chars().last().is_some_and(char::is_lowercase))
            {
                words.insert(std::mem::take(&mut word));
            }
            if c.is_alphanumeric() {
                word.extend(c.to_lowercase());
            }
        }
        words.insert(word);
    }
    // Short words, such as prepositions, are not specific.
    words.retain(|word| word.len() > 2);
    words
}

fn words_of_path(operation: &Operation) -> Vec<String> {
    words(operation).into_iter().flatten().map(str::to_owned).collect()
}

/// Guesses the pairs with the best agreement of words, on both sides and with a margin.
fn likely<'c>(
    left: &[&'c Operation],
    new: &'c Contract,
    is_free: &dyn Fn(&Operation) -> bool,
) -> Vec<PairCandidate<'c>> {
    const NEAR: f64 = 0.5;
    const MARGIN: f64 = 0.1;
    let free: Vec<&Operation> = new.operations.iter().filter(|operation| is_free(operation)).collect();
    if left.len() * free.len() > COMPARED_MAX {
        return Vec::new();
    }
    let (a, b): (Vec<_>, Vec<_>) = (
        left.iter().map(|one| operation_words(one)).collect(),
        free.iter().map(|one| operation_words(one)).collect(),
    );
    let score = |i: usize, j: usize| {
        // A successor has the same method.
        if left[i].key.method != free[j].key.method {
            return 0.0;
        }
        let both = a[i].intersection(&b[j]).count() as f64;
        both / (a[i].len() + b[j].len()).max(1) as f64 * 2.0
    };
    let best = |scores: Vec<f64>| {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|x, y| scores[*y].total_cmp(&scores[*x]));
        let first = *order.first()?;
        let second = order.get(1).map_or(0.0, |at| scores[*at]);
        (scores[first] >= NEAR && scores[first] - second >= MARGIN).then_some((first, scores[first]))
    };
    let mut found = Vec::new();
    for i in 0..left.len() {
        let Some((j, near)) = best((0..free.len()).map(|j| score(i, j)).collect()) else { continue };
        if best((0..left.len()).map(|i| score(i, j)).collect()).is_some_and(|(back, _)| back == i) {
            let why = format!("it may have become `{}`", free[j].key);
            let supports = vec![format!("their words agree by {:.0} %", near * 100.0)];
            let evidence = GuessEvidence { supports, ..GuessEvidence::default() };
            found.push(PairCandidate {
                old: left[i],
                new: free[j],
                tier: Tier::Guess,
                why,
                evidence,
                is_kept: false,
            });
        }
    }
    found
}

/// Returns the file for an operation's route, named by the first fixed segment of its path.
pub(super) fn resource(operation: &Operation) -> String {
    let fixed = words_of_path(operation);
    let word = fixed.iter().find(|word| !is_version(word) && *word != "api").map_or("root", String::as_str);
    let word: String = word.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let word = word.trim_matches('-').to_ascii_lowercase();
    // These are the names of other drafted files.
    if word.is_empty() || matches!(word.as_str(), "shapes" | "reasons") { "routes".to_owned() } else { word }
}
