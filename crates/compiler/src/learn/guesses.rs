//! Weighs the guesses of a draft: whether the traffic supports or contradicts them.

use super::model::{Learned, LearnedLine};
use crate::init::Decision;

/// The traffic about a guess of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuessWitness {
    /// Id of the decision.
    pub id: String,
    /// The guess: the operation or member of the old side, and that of the new side.
    pub guess: [String; 2],
    /// Whether the traffic supports it; `None` if it shows neither.
    pub holds: Option<bool>,
    /// The evidence.
    pub why: String,
}

/// Returns the evidence for each guess among the decisions of a draft.
pub fn weigh_guesses(decisions: &[Decision], learned: &Learned) -> Vec<GuessWitness> {
    let guesses = decisions.iter().filter(|decision| decision.proposal.is_some());
    guesses.filter_map(|decision| weigh(decision, learned)).collect()
}

fn weigh(decision: &Decision, learned: &Learned) -> Option<GuessWitness> {
    // The text names the counterpart first.
    let new = decision.text.split('`').nth(1)?;
    let (holds, why) = match decision.operation.split_once(": ") {
        Some((ty, place)) => weigh_rename(ty, place, new, learned),
        None => weigh_pair(&decision.operation, new, learned),
    };
    let guess = [decision.operation.clone(), new.to_owned()];
    Some(GuessWitness { id: decision.id.clone(), guess, holds, why })
}

fn weigh_pair(old: &str, new: &str, learned: &Learned) -> (Option<bool>, String) {
    match learned.links.iter().find(|link| link.operations[0] == old) {
        None => (None, "no resource was seen in answers of both".to_owned()),
        Some(link) => {
            let is_it = link.operations[1] == new;
            let other = if is_it { String::new() } else { format!(" with `{}` instead", link.operations[1]) };
            let percent = link.agreement * 100.0;
            let why = format!("{percent:.0} % of the values of {} resources agree{other}", link.objects);
            (Some(is_it), why)
        }
    }
}

fn weigh_rename(ty: &str, old: &str, new: &str, learned: &Learned) -> (Option<bool>, String) {
    let is_about = |line: &&LearnedLine| line.types[0] == ty && line.places[0] == old;
    match learned.lines.iter().find(is_about) {
        Some(line) if line.places[1] == new => {
            let LearnedLine { supports, distinct, against, .. } = line;
            (Some(true), format!("{supports} values agree, {distinct} different ones; {against} contradict"))
        }
        Some(line) => (Some(false), format!("{} values agree with `{}`", line.supports, line.places[1])),
        None => (None, "too few values were seen, or they are not related".to_owned()),
    }
}
