//! The gate: whether an operation moves to its next phase, stays, or goes back, decided on evidence alone.
//!
//! Off by default. Where an operator opens it for an operation, its promise is this: while the true rate of differences is
//! at or above `mismatch_max`, the chance that one stay in a phase ever ends in a promotion is at most `1 - confidence`; and
//! while it is at or below `mismatch_max`, the chance that a stay ever ends in a rollback is at most `1 - confidence`,
//! however often the gate looks. (What is assumed of the calls is said in [`super::bound`].) Evidence is counted from the
//! moment the phase was entered; a promotion carries nothing over.

use super::bound::{Interval, Observed, Sequence};
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
    pub fn decide(&self, stage: Stage, observed: Observed, in_phase_ms: u64) -> Decision {
        let Observed { different, compared } = observed;
        let step = self.step(stage, different, compared, in_phase_ms);
        Decision {
            step,
            compared,
            different,
            interval: self.sequence.interval(different, compared),
            in_phase_ms,
        }
    }

    fn step(&self, stage: Stage, different: u64, compared: u64, in_phase_ms: u64) -> Move {
        let policy = &self.policy;
        let is_broken = self.sequence.proves_above(policy.mismatch_max, different, compared)
            || policy.rollback_after.is_some_and(|limit| different >= limit.max(1));
        match (is_broken, stage.back(), stage.next()) {
            (true, Some(to), _) => Move::RollBack { to },
            (true, None, _) => Move::Stay(Waiting::TooDifferent),
            (false, _, None) => Move::Stay(Waiting::Nowhere),
            (false, _, Some(_)) if compared < policy.samples_min => Move::Stay(Waiting::Samples),
            (false, _, Some(_)) if in_phase_ms < policy.duration_min_ms => Move::Stay(Waiting::Time),
            (false, _, Some(to)) if self.sequence.proves_below(policy.mismatch_max, different, compared) => {
                Move::Promote { to }
            }
            (false, _, Some(_)) => Move::Stay(Waiting::Proof),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(different: u64, equal: u64) -> Observed {
        Observed { different, compared: different + equal }
    }

    #[test]
    fn an_operation_stays_until_everything_is_there() {
        let gate = Gate::new(Policy { samples_min: 500, duration_min_ms: 1000, ..Policy::default() });
        let decided = |different, equal, ms| gate.decide(Stage::Shadow, seen(different, equal), ms).step;
        assert_eq!(decided(0, 0, 5000), Move::Stay(Waiting::Samples));
        assert_eq!(decided(0, 499, 5000), Move::Stay(Waiting::Samples));
        assert_eq!(decided(0, 1000, 999), Move::Stay(Waiting::Time));
        assert_eq!(decided(5, 800, 5000), Move::Stay(Waiting::Proof));
        assert_eq!(decided(0, 1000, 1000), Move::Promote { to: Stage::Canary });
        assert_eq!(decided(100, 900, 5000), Move::Stay(Waiting::TooDifferent));
    }

    #[test]
    fn a_broken_bound_leads_back_to_the_shadow() {
        let gate = Gate::new(Policy { duration_min_ms: 0, rollback_after: Some(20), ..Policy::default() });
        for stage in [Stage::Canary, Stage::Translated] {
            assert_eq!(gate.decide(stage, seen(30, 300), 0).step, Move::RollBack { to: Stage::Shadow });
            // Far below the rate, but as many as the operator will stand.
            assert_eq!(gate.decide(stage, seen(20, 1_000_000), 0).step, Move::RollBack { to: Stage::Shadow });
        }
        assert_eq!(gate.decide(Stage::Translated, seen(0, 5000), 0).step, Move::Stay(Waiting::Nowhere));
        assert_eq!(gate.decide(Stage::Legacy, seen(0, 5000), 0).step, Move::Stay(Waiting::Nowhere));
    }

    #[test]
    fn a_decision_is_logged_with_its_evidence() {
        let gate = Gate::new(Policy { duration_min_ms: 0, ..Policy::default() });
        let said = gate.decide(Stage::Canary, seen(1, 2999), 60_000).to_string();
        assert!(
            said.starts_with("promoted to translated: 1 of 3000 differed, the true rate is between"),
            "{said}"
        );
    }

    /// What came of a rollout: where it ended, whether it was ever promoted out of a phase, comparisons it took.
    struct Rollout {
        end: Stage,
        promotions: u32,
        rollbacks: u32,
        first_promotion: Option<u64>,
    }

    /// A rollout of `calls` calls whose true rate of differences in each phase is `rate(stage)`, the gate asked after
    /// every single one. Each comparison is a minute.
    fn roll_out(gate: &Gate, seed: u64, calls: u64, rate: impl Fn(Stage) -> f64) -> Rollout {
        let mut dice = fastrand::Rng::with_seed(seed);
        let (mut stage, mut seen, mut entered) = (Stage::Shadow, Observed::default(), 0);
        let mut rollout = Rollout { end: stage, promotions: 0, rollbacks: 0, first_promotion: None };
        for call in 1..=calls {
            seen.compared += 1;
            seen.different += u64::from(dice.f64() < rate(stage));
            let step = gate.step(stage, seen.different, seen.compared, (call - entered) * 60_000);
            let to = match step {
                Move::Stay(_) => continue,
                Move::Promote { to } => {
                    rollout.promotions += 1;
                    rollout.first_promotion.get_or_insert(call);
                    to
                }
                Move::RollBack { to } => {
                    rollout.rollbacks += 1;
                    to
                }
            };
            (stage, seen, entered) = (to, Observed::default(), call);
        }
        rollout.end = stage;
        rollout
    }

    #[test]
    fn operations_at_the_tolerated_rate_are_promoted_as_seldom_as_promised() {
        let gate = Gate::new(Policy::default());
        let runs = 400;
        for rate in [0.01, 0.012, 0.02] {
            let promoted =
                (0..runs).filter(|seed| roll_out(&gate, *seed, 1500, |_| rate).promotions > 0).count();
            // Five per cent, and four standard deviations of 400 throws.
            assert!(promoted <= 20 + 18, "at a rate of {rate}, {promoted} of {runs} rollouts were promoted");
        }
    }

    #[test]
    fn good_operations_arrive_in_reasonable_time() {
        let gate = Gate::new(Policy::default());
        let runs = 200;
        for (rate, within) in [(0.0, 600), (0.001, 1500)] {
            let mut taken: Vec<u64> = (0..runs)
                .map(|seed| roll_out(&gate, seed, 6000, |_| rate))
                .map(|rollout| match rollout.end {
                    Stage::Translated => rollout.first_promotion.unwrap_or(u64::MAX),
                    _ => u64::MAX,
                })
                .collect();
            taken.sort_unstable();
            let median = taken[taken.len() / 2];
            assert!(
                median <= within,
                "at a rate of {rate} half of them took {median} calls for the first step"
            );
            let arrived = taken.iter().filter(|calls| **calls < u64::MAX).count();
            assert!(arrived * 100 >= taken.len() * 98, "at a rate of {rate} only {arrived} arrived");
        }
    }

    #[test]
    fn operations_that_break_later_are_rolled_back_and_good_ones_are_not() {
        let gate = Gate::new(Policy::default());
        let runs = 200;
        // Good in the shadow, bad with the canary's clients.
        let breaks = |stage| if stage == Stage::Canary { 0.05 } else { 0.0 };
        for seed in 0..runs {
            let rollout = roll_out(&gate, seed, 3000, breaks);
            assert!(rollout.rollbacks > 0 && rollout.end != Stage::Translated, "seed {seed}");
        }
        let wrong = (0..runs).filter(|seed| roll_out(&gate, *seed, 4000, |_| 0.002).rollbacks > 0).count();
        assert!(wrong <= 10 + 13, "{wrong} of {runs} good operations were rolled back");
    }
}
