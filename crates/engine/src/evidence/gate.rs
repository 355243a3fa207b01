//! The gate: whether an operation moves to its next phase, stays, or goes back, decided on evidence alone.
//!
//! Off by default. Its promise for an operation that an operator opens it for, however often it looks:
//!
//! - While the true rate of answers that are different or unsettled is at or above `mismatch_max`, or the rate of unsettled ones
//!   alone at or above `unsettled_max`, the chance that one period in a phase ever ends in a promotion is at most
//!   `1 - confidence`.
//! - While the true rate of differences is at or below `mismatch_max` and that of unsettled ones at or below `unsettled_max`,
//!   the chance that a period ever ends in a rollback is at most `1 - confidence`.
//!
//! ([`super::bound`] lists the assumptions about the calls.) Evidence is counted from the moment the phase was entered; a
//! promotion carries nothing over.
//!
//! An unsettled difference is a wrong answer that did not repeat, or a change of the data that nobody saw. The promotion counts
//! it as wrong, since it may be; the rollback has a bound of its own for it, since it may not be.
//!
//! Of a write only its plans are known, and now and then its effect ([`Counted`]). Neither proves what the other side would
//! have answered, so the gate promotes no write; it rolls one back when too many of its plans, or of its effects, are wrong.
//!
//! Where a latency is demanded, a promotion also waits until the times of both sides prove it. Slowness alone rolls nothing back:
//! the answers are right.
//!
//! A read can be rolled back for its differences or for its unsettled answers, a write for its plans or for its effects. These
//! are two ways to be wrong about one operation, so each gets half of the chance of an error.

use super::bound::{Counted, Interval, Observed, Sequence};
use super::latency::{LatencyMax, LatencyProof, Timed};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The phases the gate moves between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The old service answers.
    Legacy,
    /// The old service answers, and the other side is asked for comparison.
    Shadow,
    /// The gateway answers a share of the clients.
    Canary,
    /// The gateway answers all clients.
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
    /// The rate of differences that did not repeat which is tolerated, between 0 and 1.
    pub unsettled_max: f64,
    /// How sure the gate must be, between 0 and 1.
    pub confidence: f64,
    /// Least comparisons in a phase before a promotion.
    pub samples_min: u64,
    /// Least time in a phase before a promotion, milliseconds.
    pub duration_min_ms: u64,
    /// How many times longer the candidate may take than the reference before a promotion.
    pub latency_max: LatencyMax,
    /// Differences in a phase after which it is rolled back at once, whatever the rate; none = by the rate alone.
    pub rollback_after: Option<u64>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            mismatch_max: 0.01,
            unsettled_max: 0.01,
            confidence: 0.95,
            samples_min: 500,
            duration_min_ms: 60 * 60 * 1000,
            latency_max: LatencyMax::default(),
            rollback_after: None,
        }
    }
}

/// The gate under one policy.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    policy: Policy,
    /// Of answers that are different or unsettled, for promotions.
    wrong: Sequence,
    /// Of unsettled answers, for promotions.
    unsettled: Sequence,
    /// Of each kind of evidence but the unsettled answers, for rollbacks.
    against: Sequence,
    /// Of unsettled answers, for rollbacks.
    against_unsettled: Sequence,
}

/// What kind of evidence a decision goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Answers of both sides, compared.
    Answers,
    /// Answers of both sides whose difference did not repeat.
    Unsettled,
    /// Calls of writes that were planned and not made, held against the contract.
    Plans,
    /// Effects of writes, read on both sides.
    Effects,
}

/// What the gate says, with what it knew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What is to be done.
    pub transition: Transition,
    /// The kind of evidence it goes by.
    pub basis: Basis,
    /// Comparisons of that kind in this phase that prove something, and how many of them differed.
    pub compared: u64,
    /// How many of these differed.
    pub different: u64,
    /// Answers whose difference did not repeat; part of the compared ones where the basis is answers.
    pub unsettled: u64,
    /// The rates that are not ruled out: of answers that are different or unsettled, of unsettled ones alone where these are the
    /// basis, of wrong plans, of wrong effects.
    pub interval: Interval,
    /// Milliseconds since the operation entered its phase.
    pub in_phase_ms: u64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transition {
    /// The operation keeps its phase, and why.
    None(Waiting),
    /// The operation goes on to the next phase.
    Promote {
        /// The phase to enter.
        to: Stage,
    },
    /// The operation goes back.
    RollBack {
        /// The phase to enter.
        to: Stage,
    },
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
    /// It may still be too high because of differences that did not repeat.
    Unsettled,
    /// The candidate is not proved to be fast enough.
    Latency,
    /// The candidate is proved to be slower than is tolerated.
    Slow,
    /// It is a write: nothing proves its answers, and a person moves it on.
    Person,
    /// The true rate is too high, and there is nowhere to go back to.
    TooDifferent,
}

impl Gate {
    /// A gate by this policy. Its sequences are worked out once, here.
    pub fn new(policy: Policy) -> Gate {
        let half = 1.0 - (1.0 - policy.confidence) / 2.0;
        Gate {
            policy,
            wrong: Sequence::new(policy.confidence, policy.mismatch_max),
            unsettled: Sequence::new(policy.confidence, policy.unsettled_max),
            against: Sequence::new(half, policy.mismatch_max),
            against_unsettled: Sequence::new(half, policy.unsettled_max),
        }
    }

    /// What to do with an operation that entered `stage` `in_phase_ms` ago and has been counted since.
    pub fn decide(&self, stage: Stage, counted: Counted, in_phase_ms: u64) -> Decision {
        let basis = self.basis(counted);
        let Observed { different, compared } = counted.of(basis);
        let unsettled = counted.unsettled;
        let interval = match basis {
            Basis::Answers => self.wrong.interval(different + unsettled, compared),
            Basis::Unsettled => self.unsettled.interval(different, compared),
            Basis::Plans | Basis::Effects => self.against.interval(different, compared),
        };
        let transition = self.step(stage, counted, in_phase_ms);
        Decision { transition, basis, compared, different, unsettled, interval, in_phase_ms }
    }

    /// The transition alone, for callers that look often.
    pub fn step(&self, stage: Stage, counted: Counted, in_phase_ms: u64) -> Transition {
        let policy = &self.policy;
        let is_broken = Basis::ALL.iter().any(|basis| self.speaks_against(counted, *basis))
            || policy.rollback_after.is_some_and(|limit| counted.different() >= limit.max(1));
        let compared = counted.answers.compared;
        match (is_broken, stage.back(), stage.next()) {
            (true, Some(to), _) => Transition::RollBack { to },
            (true, None, _) => Transition::None(Waiting::TooDifferent),
            (false, _, None) => Transition::None(Waiting::Nowhere),
            (false, _, Some(_)) if compared == 0 && counted.is_write() => Transition::None(Waiting::Person),
            (false, _, Some(_)) if compared < policy.samples_min => Transition::None(Waiting::Samples),
            (false, _, Some(_)) if in_phase_ms < policy.duration_min_ms => Transition::None(Waiting::Time),
            (false, _, Some(to)) => match self.unproved(counted) {
                None => Transition::Promote { to },
                Some(why) => Transition::None(why),
            },
        }
    }

    /// The proof that a promotion still lacks.
    fn unproved(&self, counted: Counted) -> Option<Waiting> {
        let Observed { different, compared } = counted.answers;
        let (mismatch_max, unsettled_max) = (self.policy.mismatch_max, self.policy.unsettled_max);
        if !self.wrong.proves_below(mismatch_max, different, compared) {
            return Some(Waiting::Proof);
        }
        let is_proved = self.wrong.proves_below(mismatch_max, different + counted.unsettled, compared)
            && self.unsettled.proves_below(unsettled_max, counted.unsettled, compared);
        match (is_proved, counted.latency) {
            (false, _) => Some(Waiting::Unsettled),
            (true, LatencyProof::Above) => Some(Waiting::Slow),
            (true, LatencyProof::NotEnough) => Some(Waiting::Latency),
            (true, LatencyProof::Within) => None,
        }
    }

    /// What the times of both sides prove about the demand on them, for [`Counted::latency`].
    pub fn latency(&self, timed: &Timed) -> LatencyProof {
        timed.proof(&self.policy.latency_max, self.policy.confidence)
    }

    fn speaks_against(&self, counted: Counted, basis: Basis) -> bool {
        let Observed { different, compared } = counted.of(basis);
        let (sequence, rate) = match basis {
            Basis::Unsettled => (&self.against_unsettled, self.policy.unsettled_max),
            Basis::Answers | Basis::Plans | Basis::Effects => (&self.against, self.policy.mismatch_max),
        };
        sequence.proves_above(rate, different, compared)
    }

    /// What speaks against an operation; else what there is of it.
    fn basis(&self, counted: Counted) -> Basis {
        let against = Basis::ALL.into_iter().find(|basis| self.speaks_against(counted, *basis));
        against.unwrap_or(if counted.is_write() { Basis::Plans } else { Basis::Answers })
    }
}

impl Basis {
    const ALL: [Basis; 4] = [Basis::Answers, Basis::Unsettled, Basis::Plans, Basis::Effects];
}

impl Counted {
    /// The observations of one kind.
    fn of(&self, basis: Basis) -> Observed {
        match basis {
            Basis::Answers => self.answers,
            Basis::Unsettled => Observed { different: self.unsettled, compared: self.answers.compared },
            Basis::Plans => self.plans,
            Basis::Effects => self.effects,
        }
    }

    /// All that differed for sure, whatever it was.
    fn different(&self) -> u64 {
        self.answers.different + self.plans.different + self.effects.different
    }

    fn is_write(&self) -> bool {
        self.plans.compared + self.effects.compared + self.unexamined > 0
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transition {
            Transition::None(why) => write!(out, "stays ({})", why.words())?,
            Transition::Promote { to } => write!(out, "promoted to {}", to.word())?,
            Transition::RollBack { to } => write!(out, "rolled back to {}", to.word())?,
        }
        let (different, compared) = (self.different, self.compared);
        match self.basis {
            Basis::Answers if self.unsettled == 0 => write!(out, ": {different} of {compared} differed")?,
            Basis::Answers => {
                write!(out, ": {different} of {compared} differed and {} are unsettled", self.unsettled)?
            }
            Basis::Unsettled => write!(out, ": {different} of {compared} differed once and are unsettled")?,
            Basis::Plans => write!(out, ": {different} of {compared} plans were wrong")?,
            Basis::Effects => {
                write!(out, ": {different} of {compared} effects that were read back differed")?
            }
        }
        let Interval { lower, upper } = self.interval;
        write!(out, ", the true rate is between {:.3} % and {:.3} %", lower * 100.0, upper * 100.0)
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
            Waiting::Unsettled => "the rate of unsettled differences is not yet proved low enough",
            Waiting::Latency => "too little was timed to prove the new version fast enough",
            Waiting::Slow => "the new version is slower than is tolerated",
            Waiting::Person => "plans of a write do not prove its answers, a person moves it on",
            Waiting::TooDifferent => "too much differs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(different: u64, equal: u64) -> Counted {
        let answers = Observed { different, compared: different + equal };
        Counted { answers, ..Counted::default() }
    }

    fn planned(wrong: u64, right: u64) -> Counted {
        Counted { plans: Observed { different: wrong, compared: wrong + right }, ..Counted::default() }
    }

    #[test]
    fn an_operation_stays_until_everything_is_there() {
        let gate = Gate::new(Policy { samples_min: 500, duration_min_ms: 1000, ..Policy::default() });
        let decided =
            |different, equal, ms| gate.decide(Stage::Shadow, seen(different, equal), ms).transition;
        assert_eq!(decided(0, 0, 5000), Transition::None(Waiting::Samples));
        assert_eq!(decided(0, 499, 5000), Transition::None(Waiting::Samples));
        assert_eq!(decided(0, 1000, 999), Transition::None(Waiting::Time));
        assert_eq!(decided(5, 800, 5000), Transition::None(Waiting::Proof));
        assert_eq!(decided(0, 1000, 1000), Transition::Promote { to: Stage::Canary });
        assert_eq!(decided(100, 900, 5000), Transition::None(Waiting::TooDifferent));
    }

    #[test]
    fn a_broken_bound_leads_back_to_the_shadow() {
        let gate = Gate::new(Policy { duration_min_ms: 0, rollback_after: Some(20), ..Policy::default() });
        for stage in [Stage::Canary, Stage::Translated] {
            assert_eq!(
                gate.decide(stage, seen(30, 300), 0).transition,
                Transition::RollBack { to: Stage::Shadow }
            );
            // Far below the rate, but as many as the operator will stand.
            assert_eq!(
                gate.decide(stage, seen(20, 1_000_000), 0).transition,
                Transition::RollBack { to: Stage::Shadow }
            );
        }
        assert_eq!(
            gate.decide(Stage::Translated, seen(0, 5000), 0).transition,
            Transition::None(Waiting::Nowhere)
        );
        assert_eq!(
            gate.decide(Stage::Legacy, seen(0, 5000), 0).transition,
            Transition::None(Waiting::Nowhere)
        );
    }

    #[test]
    fn unsettled_answers_are_against_a_promotion_and_have_a_bound_of_their_own() {
        let gate = Gate::new(Policy { duration_min_ms: 0, unsettled_max: 0.05, ..Policy::default() });
        let decided = |unsettled, different, compared| {
            let answers = Observed { different, compared };
            gate.decide(Stage::Canary, Counted { answers, unsettled, ..Counted::default() }, 1000)
        };
        // The figures of a candidate that was wrong once in a hundred times.
        let said = decided(13, 0, 1260);
        assert_eq!(said.transition, Transition::None(Waiting::Unsettled));
        assert!(said.to_string().contains("0 of 1260 differed and 13 are unsettled"), "{said}");
        assert!(said.interval.lower < 0.01 && 0.01 < said.interval.upper, "{said}");
        assert_eq!(decided(0, 0, 1260).transition, Transition::Promote { to: Stage::Translated });
        assert_eq!(decided(2, 0, 3000).transition, Transition::Promote { to: Stage::Translated });
        let said = decided(150, 0, 1260);
        assert_eq!(said.transition, Transition::RollBack { to: Stage::Shadow });
        assert!(said.to_string().contains("150 of 1260 differed once and are unsettled"), "{said}");
        // A bound that is tighter than that of differences.
        let strict = Gate::new(Policy { duration_min_ms: 0, unsettled_max: 0.0001, ..Policy::default() });
        let answers = Observed { different: 0, compared: 3000 };
        let decision = strict.decide(Stage::Canary, Counted { answers, ..Counted::default() }, 1000);
        assert_eq!(decision.transition, Transition::None(Waiting::Unsettled));
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

    #[test]
    fn a_write_is_rolled_back_by_the_share_of_its_wrong_plans_and_promoted_by_a_person() {
        let gate = Gate::new(Policy { duration_min_ms: 0, ..Policy::default() });
        let decided = |counted| gate.decide(Stage::Canary, counted, 1000);
        // Seven wrong ones prove something where they are all there are, and nothing among thousands of right ones.
        assert_eq!(decided(planned(7, 0)).transition, Transition::RollBack { to: Stage::Shadow });
        let said = decided(planned(7, 2768));
        assert_eq!(said.transition, Transition::None(Waiting::Person));
        assert!(said.to_string().contains("7 of 2775 plans were wrong"), "{said}");
        assert_eq!(decided(planned(0, 1_000_000)).transition, Transition::None(Waiting::Person));
        // Right plans do not hide effects that are seen otherwise.
        let effects = Observed { different: 30, compared: 40 };
        let said = decided(Counted { effects, ..planned(0, 100_000) });
        assert_eq!(said.transition, Transition::RollBack { to: Stage::Shadow });
        assert!(said.to_string().contains("30 of 40 effects that were read back differed"), "{said}");
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
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut stage, mut seen, mut entered) = (Stage::Shadow, Counted::default(), 0);
        let mut rollout = Rollout { end: stage, promotions: 0, rollbacks: 0, first_promotion: None };
        for call in 1..=calls {
            seen.answers.compared += 1;
            seen.answers.different += u64::from(random.f64() < rate(stage));
            let step = gate.step(stage, seen, (call - entered) * 60_000);
            let to = match step {
                Transition::None(_) => continue,
                Transition::Promote { to } => {
                    rollout.promotions += 1;
                    rollout.first_promotion.get_or_insert(call);
                    to
                }
                Transition::RollBack { to } => {
                    rollout.rollbacks += 1;
                    to
                }
            };
            (stage, seen, entered) = (to, Counted::default(), call);
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

    /// Two kinds of evidence, looked at after every write of a thousand: both together are wrong as seldom as promised.
    #[test]
    fn writes_that_are_as_right_as_is_tolerated_are_rolled_back_as_seldom_as_promised() {
        let gate = Gate::new(Policy::default());
        let runs = 400;
        let rolled_back = |seed: &u64| {
            let mut random = fastrand::Rng::with_seed(*seed);
            let mut counted = Counted::default();
            (0..1000).any(|_| {
                counted.plans.compared += 1;
                counted.plans.different += u64::from(random.f64() < 0.01);
                if random.f64() < 0.5 {
                    counted.effects.compared += 1;
                    counted.effects.different += u64::from(random.f64() < 0.01);
                }
                matches!(gate.step(Stage::Canary, counted, u64::MAX), Transition::RollBack { .. })
            })
        };
        let wrong = (0..runs).filter(rolled_back).count();
        assert!(wrong <= 20 + 18, "{wrong} of {runs} writes were rolled back");
    }

    /// Services of which each breaks off one call in twenty, as a rollout meets them: a call that is broken off is repeated
    /// once, and then it is no evidence. With a defect, a share of the calls differs.
    fn roll_out_under_resets(gate: &Gate, seed: u64, calls: u64, defect: f64) -> Rollout {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut stage, mut seen, mut entered) = (Stage::Shadow, Counted::default(), 0);
        let mut rollout = Rollout { end: stage, promotions: 0, rollbacks: 0, first_promotion: None };
        for call in 1..=calls {
            let mut is_lost = || random.f64() < 0.05 && random.f64() < 0.05;
            if !is_lost() && !is_lost() {
                seen.answers.compared += 1;
                // The defect comes with the canary's clients, or the operation would never have left the shadow.
                let is_defect = stage != Stage::Shadow && random.f64() < defect;
                seen.answers.different += u64::from(is_defect);
            }
            let to = match gate.step(stage, seen, (call - entered) * 60_000) {
                Transition::None(_) => continue,
                Transition::Promote { to } => {
                    rollout.promotions += 1;
                    rollout.first_promotion.get_or_insert(call);
                    to
                }
                Transition::RollBack { to } => {
                    rollout.rollbacks += 1;
                    to
                }
            };
            (stage, seen, entered) = (to, Counted::default(), call);
        }
        rollout.end = stage;
        rollout
    }

    #[test]
    fn under_resets_equal_sides_are_promoted_in_the_time_of_theory_and_defects_always_rolled_back() {
        let policy = Policy::default();
        let gate = Gate::new(policy);
        let proving = (1..).find(|n| gate.wrong.proves_below(policy.mismatch_max, 0, *n));
        let needed = proving.expect("enough equal comparisons prove any rate").max(policy.samples_min);
        // One call in two hundred is no evidence; five standard deviations of that.
        let within = needed + needed / 200 + 5 * 2;
        for seed in 0..200 {
            let equal = roll_out_under_resets(&gate, seed, 4 * needed, 0.0);
            assert_eq!((equal.end, equal.rollbacks), (Stage::Translated, 0), "seed {seed}");
            let first = equal.first_promotion.expect("it arrived");
            assert!((needed..=within).contains(&first), "seed {seed}: {first} calls, theory says {needed}");
            let broken = roll_out_under_resets(&gate, seed, 4 * needed, 0.05);
            assert!(broken.rollbacks > 0 && broken.end != Stage::Translated, "seed {seed}");
        }
    }
}
