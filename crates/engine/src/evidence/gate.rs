//! The gate: decides by evidence alone whether an operation is promoted to its next phase, stays,
//! or is rolled back.
//!
//! It is disabled by default. It guarantees, for any number of evaluations:
//!
//! - While the true rate of different or unsettled answers is at or above `mismatch_max`, or the
//!   rate of unsettled ones alone is at or above `unsettled_max`, the probability that a period in
//!   a phase ever leads to a promotion is at most `1 - confidence`.
//! - While the true rate of differences is at or below `mismatch_max` and that of unsettled ones at
//!   or below `unsettled_max`, the probability that a period ever leads to a rollback is at most
//!   `1 - confidence`.
//!
//! [`super::bound`] lists the assumptions about the calls. Evidence is counted from the start of
//! the phase; a promotion carries no evidence over.
//!
//! An unsettled difference is either a wrong answer that did not repeat or an unnoticed change of
//! the data. Because it may be wrong, promotions count it as a difference. Because it may be
//! correct, rollbacks use a separate bound for it.
//!
//! For writes, only plans and samples of effects are known ([`Counted`]). Neither proves how the
//! other side would have answered, so the gate never promotes a write. It rolls a write back if too
//! many of its plans or effects are wrong.
//!
//! If a latency is demanded, a promotion also waits until the measured times prove it. Latency
//! alone never causes a rollback, because the answers are correct.
//!
//! A read can be rolled back for differences or for unsettled answers, a write for plans or for
//! effects. These are two tests of one operation, so each gets half of the error probability.

use super::bound::{Interval, Sequence};
use super::latency::{LatencyMax, LatencyProof, Timed};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The phases that the gate moves operations between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The legacy service answers.
    Legacy,
    /// The legacy service answers; the other side is called for comparison.
    Shadow,
    /// The gateway answers a share of the clients.
    Canary,
    /// The gateway answers all clients.
    Translated,
}

impl Stage {
    /// Returns the name of the phase in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Legacy => "legacy",
            Stage::Shadow => "shadow",
            Stage::Canary => "canary",
            Stage::Translated => "translated",
        }
    }

    /// Returns the phase after a promotion. `translated` is the last one. No promotion leaves
    /// `legacy`, where no calls are compared: an operator starts the first comparison.
    fn next(self) -> Option<Stage> {
        match self {
            Stage::Shadow => Some(Stage::Canary),
            Stage::Canary => Some(Stage::Translated),
            Stage::Legacy | Stage::Translated => None,
        }
    }

    /// Returns the phase after a rollback: the legacy service answers and the comparison continues.
    fn back(self) -> Option<Stage> {
        match self {
            Stage::Canary | Stage::Translated => Some(Stage::Shadow),
            Stage::Legacy | Stage::Shadow => None,
        }
    }
}

/// The requirements for a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Tolerated rate of differences, between 0 and 1.
    pub mismatch_max: f64,
    /// Tolerated rate of differences that did not repeat, between 0 and 1.
    pub unsettled_max: f64,
    /// Confidence of the decisions, between 0 and 1.
    pub confidence: f64,
    /// Minimum number of comparisons in a phase before a promotion.
    pub samples_min: u64,
    /// Minimum time in a phase before a promotion, in milliseconds.
    pub duration_min_ms: u64,
    /// Maximum ratio of the candidate's latency to the reference's, for a promotion.
    pub latency_max: LatencyMax,
    /// Number of differences in a phase that causes an immediate rollback, regardless of the rate.
    /// `None`: only the rate decides.
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
    /// Different or unsettled answers, for promotions.
    wrong: Sequence,
    /// Unsettled answers, for promotions.
    unsettled: Sequence,
    /// All evidence except unsettled answers, for rollbacks.
    against: Sequence,
    /// Unsettled answers, for rollbacks.
    against_unsettled: Sequence,
}

/// The kind of evidence that a decision is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Answers of both sides.
    Answers,
    /// Answers whose difference did not repeat.
    Unsettled,
    /// Planned calls of writes, validated against the contract without sending them.
    Plans,
    /// Effects of writes, read on both sides.
    Effects,
}

/// The number of comparisons that count as evidence, and the number of differences among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Number of differences.
    pub different: u64,
    /// Number of comparisons, including the differences.
    pub compared: u64,
}

/// All evidence about an operation in one period, by source. Reads have answers; writes have plans
/// and effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Answers of both sides. `compared` includes the unsettled ones. They count for and against an
    /// operation.
    pub answers: Observed,
    /// Answers that differed once without an explanation: either a wrong answer that did not
    /// repeat, or an unnoticed change of the data. They count against a promotion like differences,
    /// and have a bound of their own.
    pub unsettled: u64,
    /// The latency of both sides compared with the demanded factor. It can only prevent a
    /// promotion.
    pub latency: LatencyProof,
    /// Planned calls of writes, validated against the contract. A wrong plan counts against the
    /// operation; a correct one does not count for it, because the answer is unknown.
    pub plans: Observed,
    /// Effects of writes, read on both sides. They also count only against the operation.
    pub effects: Observed,
    /// Writes whose effect was not read back. They are no evidence.
    pub unexamined: u64,
}

/// A decision of the gate, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The transition to perform.
    pub transition: Transition,
    /// The kind of evidence that the decision is based on.
    pub basis: Basis,
    /// Number of comparisons of that kind in this phase.
    pub compared: u64,
    /// Number of differences among them.
    pub different: u64,
    /// Number of answers whose difference did not repeat. With [`Basis::Answers`], part of
    /// `compared`.
    pub unsettled: u64,
    /// The rates that the evidence does not exclude. With [`Basis::Answers`], the rate of different
    /// or unsettled answers; otherwise the rate of the basis alone.
    pub interval: Interval,
    /// Time since the operation entered its phase, in milliseconds.
    pub in_phase_ms: u64,
}

/// A change of the phase, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transition {
    /// The operation stays in its phase, for this reason.
    None(Waiting),
    /// The operation enters the next phase.
    Promote {
        /// The phase to enter.
        to: Stage,
    },
    /// The operation is rolled back.
    RollBack {
        /// The phase to enter.
        to: Stage,
    },
}

/// The reason why an operation stays in its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// There is no further phase.
    Nowhere,
    /// Too few comparisons.
    Samples,
    /// Too little time in the phase.
    Time,
    /// The true rate of differences may still be too high.
    Proof,
    /// The true rate may still be too high because of differences that did not repeat.
    Unsettled,
    /// The candidate's latency is not yet proved low enough.
    Latency,
    /// The candidate's latency is proved too high.
    Slow,
    /// Writes are promoted by an operator only, because no evidence covers their answers.
    Person,
    /// The true rate is too high, but there is no phase to roll back to.
    TooDifferent,
}

impl Gate {
    /// Creates a gate. Its sequences are computed once, here.
    pub fn new(policy: Policy) -> Gate {
        // The probability of either of two errors is at most the sum of both (Bonferroni).
        let half = 1.0 - (1.0 - policy.confidence) / 2.0;
        // Promotions need a proof of both rates, so their error probabilities do not add up. A
        // rollback needs only one of two, so each test gets half.
        Gate {
            policy,
            wrong: Sequence::new(policy.confidence, policy.mismatch_max),
            unsettled: Sequence::new(policy.confidence, policy.unsettled_max),
            against: Sequence::new(half, policy.mismatch_max),
            against_unsettled: Sequence::new(half, policy.unsettled_max),
        }
    }

    /// Decides about an operation that entered `stage` `in_phase_ms` ago, from the evidence since
    /// then.
    pub fn decide(&self, stage: Stage, counted: Counted, in_phase_ms: u64) -> Decision {
        let basis = self.basis(counted);
        let Observed { different, compared } = counted.observations(basis);
        let (unsettled, interval) = (counted.unsettled, self.interval(basis, counted));
        let transition = self.step(stage, counted, in_phase_ms);
        Decision { transition, basis, compared, different, unsettled, interval, in_phase_ms }
    }

    /// Returns the rates that the evidence of one kind does not rule out. Unsettled answers count as
    /// different.
    pub fn interval(&self, basis: Basis, counted: Counted) -> Interval {
        let Observed { different, compared } = counted.observations(basis);
        match basis {
            Basis::Answers => self.wrong.interval(different + counted.unsettled, compared),
            Basis::Unsettled => self.unsettled.interval(different, compared),
            Basis::Plans | Basis::Effects => self.against.interval(different, compared),
        }
    }

    /// Returns only the transition, for callers that evaluate often.
    pub fn step(&self, stage: Stage, counted: Counted, in_phase_ms: u64) -> Transition {
        let policy = &self.policy;
        let is_broken = Basis::ALL.iter().any(|basis| self.speaks_against(counted, *basis))
            // A limit of 0 would roll back every operation.
            || policy.rollback_after.is_some_and(|limit| counted.different() >= limit.max(1));
        let compared = counted.answers.compared;
        match (is_broken, stage.back(), stage.next()) {
            // First: differences that are proved must not wait for the minimum of samples or time.
            (true, Some(to), _) => Transition::RollBack { to },
            // The legacy service answers already, so there is no phase to return to.
            (true, None, _) => Transition::None(Waiting::TooDifferent),
            (false, _, None) => Transition::None(Waiting::Nowhere),
            (false, _, Some(_)) if compared == 0 && counted.is_write() => Transition::None(Waiting::Person),
            (false, _, Some(_)) if compared < policy.samples_min => Transition::None(Waiting::Samples),
            // Comparisons arrive with the traffic. A burst can fill the samples within minutes and
            // still miss effects that only a longer time shows.
            (false, _, Some(_)) if in_phase_ms < policy.duration_min_ms => Transition::None(Waiting::Time),
            (false, _, Some(to)) => match self.missing_proof(counted) {
                None => Transition::Promote { to },
                Some(why) => Transition::None(why),
            },
        }
    }

    /// Returns the proof that a promotion still lacks.
    fn missing_proof(&self, counted: Counted) -> Option<Waiting> {
        let Observed { different, compared } = counted.answers;
        let (mismatch_max, unsettled_max) = (self.policy.mismatch_max, self.policy.unsettled_max);
        // Test the certain differences alone first, in order to report the reason for waiting.
        if !self.wrong.proves_below(mismatch_max, different, compared) {
            return Some(Waiting::Proof);
        }
        // Unsettled answers are part of the worst case here, and limited on their own by the second
        // test: otherwise a high tolerance for differences would also hide an unstable mapping.
        let is_proved = self.wrong.proves_below(mismatch_max, different + counted.unsettled, compared)
            && self.unsettled.proves_below(unsettled_max, counted.unsettled, compared);
        match (is_proved, counted.latency) {
            (false, _) => Some(Waiting::Unsettled),
            (true, LatencyProof::Above) => Some(Waiting::Slow),
            (true, LatencyProof::NotEnough) => Some(Waiting::Latency),
            (true, LatencyProof::Within) => None,
        }
    }

    /// Evaluates the measured times against the demanded latency, for [`Counted::latency`].
    pub fn latency(&self, timed: &Timed) -> LatencyProof {
        timed.proof(&self.policy.latency_max, self.policy.confidence)
    }

    fn speaks_against(&self, counted: Counted, basis: Basis) -> bool {
        let Observed { different, compared } = counted.observations(basis);
        let (sequence, rate) = match basis {
            Basis::Unsettled => (&self.against_unsettled, self.policy.unsettled_max),
            Basis::Answers | Basis::Plans | Basis::Effects => (&self.against, self.policy.mismatch_max),
        };
        sequence.proves_above(rate, different, compared)
    }

    /// Returns the kind of evidence against the operation, or its regular kind if there is none.
    fn basis(&self, counted: Counted) -> Basis {
        // Evidence against the operation takes precedence, because it explains a rollback.
        let against = Basis::ALL.into_iter().find(|basis| self.speaks_against(counted, *basis));
        against.unwrap_or(if counted.is_write() { Basis::Plans } else { Basis::Answers })
    }
}

impl Basis {
    /// All kinds.
    pub const ALL: [Basis; 4] = [Basis::Answers, Basis::Unsettled, Basis::Plans, Basis::Effects];
}

impl Counted {
    /// Returns the observations of one kind.
    pub fn observations(&self, basis: Basis) -> Observed {
        match basis {
            Basis::Answers => self.answers,
            Basis::Unsettled => Observed { different: self.unsettled, compared: self.answers.compared },
            Basis::Plans => self.plans,
            Basis::Effects => self.effects,
        }
    }

    /// Returns the number of certain differences of all kinds.
    pub fn different(&self) -> u64 {
        // Without the unsettled ones: `rollback_after` is a hard limit, and they may be correct
        // answers.
        self.answers.different + self.plans.different + self.effects.different
    }

    fn is_write(&self) -> bool {
        // Writes without any evidence are recognized by their unexamined effects.
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
        write!(out, ": {}", self.evidence())
    }
}

impl Decision {
    /// Returns the evidence as a clause, without the transition.
    pub fn evidence(&self) -> String {
        let (different, compared, unsettled) = (self.different, self.compared, self.unsettled);
        let counts = match self.basis {
            Basis::Answers if unsettled == 0 => format!("{different} of {compared} differed"),
            Basis::Answers => format!("{different} of {compared} differed and {unsettled} are unsettled"),
            Basis::Unsettled => format!("{different} of {compared} differed once and are unsettled"),
            Basis::Plans => format!("{different} of {compared} plans were wrong"),
            Basis::Effects => format!("{different} of {compared} effects that were read back differed"),
        };
        let Interval { lower, upper } = self.interval;
        format!("{counts}, the true rate is between {:.3} % and {:.3} %", lower * 100.0, upper * 100.0)
    }
}

impl Waiting {
    /// Returns the reason in words.
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
            // Far below the tolerated rate, but at the operator's absolute limit.
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
        // The counts of a candidate with one wrong answer in a hundred.
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
        // Seven wrong plans are significant on their own, but not among thousands of correct ones.
        assert_eq!(decided(planned(7, 0)).transition, Transition::RollBack { to: Stage::Shadow });
        let said = decided(planned(7, 2768));
        assert_eq!(said.transition, Transition::None(Waiting::Person));
        assert!(said.to_string().contains("7 of 2775 plans were wrong"), "{said}");
        assert_eq!(decided(planned(0, 1_000_000)).transition, Transition::None(Waiting::Person));
        // Correct plans do not hide different effects.
        let effects = Observed { different: 30, compared: 40 };
        let said = decided(Counted { effects, ..planned(0, 100_000) });
        assert_eq!(said.transition, Transition::RollBack { to: Stage::Shadow });
        assert!(said.to_string().contains("30 of 40 effects that were read back differed"), "{said}");
    }

    /// The result of a rollout: the final stage, the numbers of transitions, and the calls before
    /// the first promotion.
    struct Rollout {
        end: Stage,
        promotions: u32,
        rollbacks: u32,
        first_promotion: Option<u64>,
    }

    /// Simulates a rollout of `calls` calls, one per minute, with the true rate of differences
    /// `rate(stage)` and a decision after every call.
    fn roll_out(gate: &Gate, seed: u64, calls: u64, rate: impl Fn(Stage) -> f64) -> Rollout {
        roll_out_observed(gate, seed, calls, |random, stage| Some(random.f64() < rate(stage)))
    }

    /// Like [`roll_out`]; `observe` returns whether a call differs, or `None` if it is no evidence.
    fn roll_out_observed(
        gate: &Gate,
        seed: u64,
        calls: u64,
        observe: impl Fn(&mut fastrand::Rng, Stage) -> Option<bool>,
    ) -> Rollout {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut stage, mut seen, mut entered) = (Stage::Shadow, Counted::default(), 0);
        let mut rollout = Rollout { end: stage, promotions: 0, rollbacks: 0, first_promotion: None };
        for call in 1..=calls {
            if let Some(differs) = observe(&mut random, stage) {
                seen.answers.compared += 1;
                seen.answers.different += u64::from(differs);
            }
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
            // Five per cent, plus four standard deviations of 400 trials.
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
        // Correct in the shadow, wrong for the canary's clients.
        let breaks = |stage| if stage == Stage::Canary { 0.05 } else { 0.0 };
        for seed in 0..runs {
            let rollout = roll_out(&gate, seed, 3000, breaks);
            assert!(rollout.rollbacks > 0 && rollout.end != Stage::Translated, "seed {seed}");
        }
        let wrong = (0..runs).filter(|seed| roll_out(&gate, *seed, 4000, |_| 0.002).rollbacks > 0).count();
        assert!(wrong <= 10 + 13, "{wrong} of {runs} good operations were rolled back");
    }

    /// Two kinds of evidence, evaluated after each of a thousand writes: the probability of a wrong
    /// decision over both is within the guarantee.
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

    /// A rollout over services that reset one call in twenty. A reset call is repeated once; after
    /// a second reset it is no evidence. With a defect, a share of the calls differs.
    fn roll_out_under_resets(gate: &Gate, seed: u64, calls: u64, defect: f64) -> Rollout {
        roll_out_observed(gate, seed, calls, |random, stage| {
            let mut is_lost = || random.f64() < 0.05 && random.f64() < 0.05;
            if is_lost() || is_lost() {
                return None;
            }
            // The defect affects the canary's clients only; otherwise the operation would stay in
            // the shadow.
            Some(stage != Stage::Shadow && random.f64() < defect)
        })
    }

    #[test]
    fn under_resets_equal_sides_are_promoted_in_the_time_of_theory_and_defects_always_rolled_back() {
        let policy = Policy::default();
        let gate = Gate::new(policy);
        let proving = (1..).find(|n| gate.wrong.proves_below(policy.mismatch_max, 0, *n));
        let needed = proving.expect("enough equal comparisons prove any rate").max(policy.samples_min);
        // One call in two hundred is no evidence; allow five standard deviations of that.
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
