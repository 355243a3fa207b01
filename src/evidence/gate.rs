//! The gate: whether an operation moves to its next phase, stays, or goes back, decided on evidence alone.
//!
//! Off by default. Where an operator opens it for an operation, its promise is this: while the true rate of differences is
//! at or above `mismatch_max`, the chance that one stay in a phase ever ends in a promotion is at most `1 - confidence`; and
//! while it is at or below `mismatch_max`, the chance that a stay ever ends in a rollback is at most `1 - confidence`,
//! however often the gate looks. (What is assumed of the calls is said in [`super::bound`].) Evidence is counted from the
//! moment the phase was entered; a promotion carries nothing over.

use super::bound::{Interval, Sequence};
use super::counts::Counts;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The phases the gate moves between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Legacy,
    Shadow,
    Canary,
    Translated,
}

impl Stage {
    /// The stage in a word, as phases are configured.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Legacy => "legacy",
            Stage::Shadow => "shadow",
            Stage::Canary => "canary",
            Stage::Translated => "translated",
        }
    }

    /// Where a promotion leads; none from the end, and none from `legacy`, where nothing is compared: an operator enters
    /// the first phase.
    fn next(self) -> Option<Stage> {
        match self {
            Stage::Shadow => Some(Stage::Canary),
            Stage::Canary => Some(Stage::Translated),
            Stage::Legacy | Stage::Translated => None,
        }
    }

    /// Where a rollback leads: to where the old service answers and the new one is still compared.
    fn back(self) -> Option<Stage> {
        match self {
            Stage::Canary | Stage::Translated => Some(Stage::Shadow),
            Stage::Legacy | Stage::Shadow => None,
        }
    }
}

/// What an operator demands before an operation moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The rate of differences that is tolerated, between 0 and 1.
    pub mismatch_max: f64,
    /// How sure the gate must be, between 0 and 1.
    pub confidence: f64,
    /// Least comparisons in a phase before a promotion.
    pub samples_min: u64,
    /// Least time in a phase before a promotion, milliseconds.
    pub duration_min_ms: u64,
    /// Differences in a phase after which it is rolled back at once, whatever the rate; none = by the rate alone.
    pub rollback_after: Option<u64>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            mismatch_max: 0.01,
            confidence: 0.95,
            samples_min: 500,
            duration_min_ms: 60 * 60 * 1000,
            rollback_after: None,
        }
    }
}

/// The gate under one policy.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    policy: Policy,
    sequence: Sequence,
}

/// What the gate says, with what it knew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    #[serde(rename = "move")]
    pub step: Move,
    /// Comparisons in this phase that prove something, and how many of them differed.
    pub compared: u64,
    pub different: u64,
    /// The rates that are not ruled out.
    pub interval: Interval,
    pub in_phase_ms: u64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    Stay(Waiting),
    Promote { to: Stage },
    RollBack { to: Stage },
}

/// Why an operation stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// There is nowhere to go.
    Nowhere,
    /// Not enough comparisons yet.
    Samples,
    /// Not long enough yet.
    Time,
    /// The true rate may still be too high.
    Proof,
    /// The true rate is too high, and there is nowhere to go back to.
    TooDifferent,
}

impl Gate {
    pub fn new(policy: Policy) -> Gate {
        Gate { policy, sequence: Sequence::new(policy.confidence, policy.mismatch_max) }
    }

    /// What to do with an operation that entered `stage` `in_phase_ms` ago and has been counted since.
    pub fn decide(&self, stage: Stage, counts: &Counts, in_phase_ms: u64) -> Decision {
        let (different, compared) = (counts.different, counts.compared());
        let interval = self.sequence.interval(different, compared);
        let is_broken = interval.lower > self.policy.mismatch_max
            || self.policy.rollback_after.is_some_and(|limit| different >= limit.max(1));
        let step = match (is_broken, stage.back(), stage.next()) {
            (true, Some(to), _) => Move::RollBack { to },
            (true, None, _) => Move::Stay(Waiting::TooDifferent),
            (false, _, None) => Move::Stay(Waiting::Nowhere),
            (false, _, Some(_)) if compared < self.policy.samples_min => Move::Stay(Waiting::Samples),
            (false, _, Some(_)) if in_phase_ms < self.policy.duration_min_ms => Move::Stay(Waiting::Time),
            (false, _, Some(to)) if interval.upper <= self.policy.mismatch_max => Move::Promote { to },
            (false, _, Some(_)) => Move::Stay(Waiting::Proof),
        };
        Decision { step, compared, different, interval, in_phase_ms }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Move::Stay(why) => write!(out, "stays ({})", why.words())?,
            Move::Promote { to } => write!(out, "promoted to {}", to.word())?,
            Move::RollBack { to } => write!(out, "rolled back to {}", to.word())?,
        }
        let Interval { lower, upper } = self.interval;
        write!(
            out,
            ": {} of {} differed, the true rate is between {:.3} % and {:.3} %",
            self.different,
            self.compared,
            lower * 100.0,
            upper * 100.0
        )
    }
}

impl Waiting {
    /// Why, in words.
    pub fn words(self) -> &'static str {
        match self {
            Waiting::Nowhere => "there is no further phase",
            Waiting::Samples => "too few comparisons",
            Waiting::Time => "not long enough in this phase",
            Waiting::Proof => "the rate of differences is not yet proved low enough",
            Waiting::TooDifferent => "too much differs",
        }
    }
}
