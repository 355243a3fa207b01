//! Rollout plans: the phases that an operation goes through, the least time in each, and the times
//! of day at which it may advance. Plain values: `promotion` reads evidence and clock and executes
//! the decisions of [`next_change`].
//!
//! The current step of a rollout is not stored. It follows from the operation's phase, since the
//! phases of a plan only grow: a plan whose steps are edited while it runs continues from there.

use super::gate_settings::GatePolicy;
use super::operations::PerOperation;
use super::phase::Phase;
use super::window::TimeWindow;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use switchback_engine::evidence::{Decision, Transition, Waiting};

/// The steps of a rollout. Their phases grow strictly ([`Phase::rank`]).
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutPlan {
    /// At least one.
    pub steps: Vec<RolloutStep>,
    /// Times at which an operation may advance. `None`: at any time.
    pub window: Option<TimeWindow>,
}

/// A step of a rollout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RolloutStep {
    /// The phase of the operation.
    pub phase: Phase,
    /// Least time in the phase. `None`: that of the gate's policy; for the last step, none.
    pub period: Option<Duration>,
}

/// The plans of the configuration, and the operations that they are started for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutSettings {
    /// By name.
    pub plans: BTreeMap<String, RolloutPlan>,
    /// The name of the plan. `None` for operations with a configured phase.
    pub operations: PerOperation<Option<String>>,
}

impl RolloutSettings {
    /// Returns the plan that the configuration starts for an operation.
    pub(super) fn configured(&self, side: &str, operation: &str) -> Option<&str> {
        self.operations.get(side, operation)?.as_deref()
    }
}

impl RolloutPlan {
    /// Returns the plan that a policy of the gate implies.
    pub(super) fn of_gate(policy: &GatePolicy) -> RolloutPlan {
        let phases = [Phase::Shadow, Phase::Canary(policy.share), Phase::Translated { check: policy.check }];
        let steps = phases.into_iter().map(|phase| RolloutStep { phase, period: None }).collect();
        RolloutPlan { steps, window: None }
    }

    /// Returns the index of the last step that is not ahead of a phase.
    pub fn position(&self, phase: Phase) -> Option<usize> {
        self.steps.iter().rposition(|step| step.phase.rank() <= phase.rank())
    }

    /// Returns the phase of the first step ahead of a phase.
    pub fn next(&self, phase: Phase) -> Option<Phase> {
        self.steps.iter().map(|step| step.phase).find(|step| step.rank() > phase.rank())
    }

    /// Returns the least time in a phase, in milliseconds.
    pub(super) fn period_ms(&self, phase: Phase, policy: &GatePolicy) -> u64 {
        let step = self.position(phase).map(|at| &self.steps[at]);
        match step.and_then(|step| step.period) {
            Some(period) => u64::try_from(period.as_millis()).unwrap_or(u64::MAX),
            None if self.next(phase).is_none() => 0,
            None => policy.policy.duration_min_ms,
        }
    }
}

/// The state of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RolloutState {
    /// It advances by evidence.
    Running,
    /// An operator has paused it. It does not advance, and can still be rolled back.
    Paused,
    /// An operator or a rollback has ended it. The gate does not promote the operation.
    Aborted,
    /// It has left its last step.
    Completed,
}

impl RolloutState {
    /// Returns the name in the store and the admin API.
    pub fn name(self) -> &'static str {
        match self {
            RolloutState::Running => "running",
            RolloutState::Paused => "paused",
            RolloutState::Aborted => "aborted",
            RolloutState::Completed => "completed",
        }
    }

    /// Parses a stored name. That of a later version of this program does not advance either.
    pub(super) fn parse(name: &str) -> RolloutState {
        let all = [RolloutState::Running, RolloutState::Paused, RolloutState::Completed];
        all.into_iter().find(|state| state.name() == name).unwrap_or(RolloutState::Aborted)
    }

    /// Returns whether the rollout can still advance.
    pub fn is_active(self) -> bool {
        matches!(self, RolloutState::Running | RolloutState::Paused)
    }
}

/// An error that prevents an action on a rollout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RolloutError {
    /// The operation has no rollout.
    #[error("the operation has no rollout")]
    NoRollout,
    /// The configuration has no plan of this name.
    #[error("the configuration has no rollout plan `{name}`")]
    NoSuchPlan {
        /// The name.
        name: String,
        /// The names of the plans.
        known: Vec<String>,
    },
    /// No plan is named, and there is not exactly one.
    #[error("name the plan; {}", list_plans(.0))]
    WhichPlan(Vec<String>),
    /// The state of the rollout does not permit the action.
    #[error("the rollout `{plan}` of the operation is {}", .state.name())]
    State {
        /// The name of the plan.
        plan: String,
        /// The state.
        state: RolloutState,
    },
    /// The operation is in the last phase of the plan or beyond it.
    #[error("the operation has reached the last phase of the plan `{0}`; set an earlier phase first")]
    AtEnd(String),
}

fn list_plans(names: &[String]) -> String {
    match names {
        [] => "the configuration has none (`rollout`)".to_owned(),
        names => format!("the configuration has {}", names.join(", ")),
    }
}

/// A condition that a rollout waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum RolloutWait {
    /// An operator resumes the rollout.
    Resume,
    /// An operator releases the hold on the operation.
    Release,
    /// The configuration has the plan again.
    Plan,
    /// The gate is open: its policy for the operation is `never`, so an operator promotes it.
    Gate,
    /// The least time of the step passes.
    Time {
        /// Seconds until then.
        seconds: u64,
    },
    /// The evidence suffices.
    Evidence {
        /// The evidence that is missing.
        reason: Waiting,
    },
    /// The window of the plan opens.
    Window {
        /// Wall time in milliseconds since 1970; `None` if it never opens.
        opens_ms: Option<i64>,
    },
}

/// The next automatic change of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NextChange {
    /// None until these conditions hold. None at all if there are no conditions.
    Wait(Vec<RolloutWait>),
    /// It advances to this phase.
    Advance(Phase),
    /// The rollout is completed, without a change of the phase.
    Complete,
    /// It is rolled back to this phase.
    RollBack(Phase),
}

/// The facts that decide about the next change.
pub(super) struct RolloutFacts<'s> {
    pub(super) phase: Phase,
    pub(super) state: RolloutState,
    /// `None` if the configuration no longer has it.
    pub(super) plan: Option<&'s RolloutPlan>,
    pub(super) policy: &'s GatePolicy,
    /// The gate's decision, regardless of the time in the phase.
    pub(super) decision: &'s Decision,
    pub(super) in_step_ms: u64,
    pub(super) now_ms: i64,
}

/// Decides about the next change of an operation.
pub(super) fn next_change(facts: &RolloutFacts<'_>) -> NextChange {
    let RolloutFacts { phase, state, policy, .. } = *facts;
    // First: a pause must not keep wrong answers in place.
    if let Transition::RollBack { .. } = facts.decision.transition {
        return NextChange::RollBack(Phase::Shadow);
    }
    if !state.is_active() {
        return NextChange::Wait(Vec::new());
    }
    let Some(plan) = facts.plan else { return NextChange::Wait(vec![RolloutWait::Plan]) };
    let mut waits = Vec::new();
    if state == RolloutState::Paused {
        waits.push(RolloutWait::Resume);
    }
    let missing_ms = plan.period_ms(phase, policy).saturating_sub(facts.in_step_ms);
    if missing_ms > 0 {
        waits.push(RolloutWait::Time { seconds: missing_ms.div_ceil(1000) });
    }
    let next = plan.next(phase);
    if next.is_some() {
        if let Transition::None(reason) = facts.decision.transition {
            waits.push(RolloutWait::Evidence { reason });
        }
        if let Some(window) = plan.window.as_ref().filter(|window| !window.is_open(facts.now_ms)) {
            waits.push(RolloutWait::Window { opens_ms: window.next_opening(facts.now_ms) });
        }
    }
    match next {
        _ if !waits.is_empty() => NextChange::Wait(waits),
        Some(phase) => NextChange::Advance(policy.with_check(phase)),
        None => NextChange::Complete,
    }
}

#[cfg(test)]
mod tests {
    use super::super::phase::Share;
    use super::super::window::DayTime;
    use super::*;
    use switchback_engine::evidence::{Counted, Gate, Observed, Policy, Stage};

    const HOUR_MS: u64 = 3_600_000;
    /// A Thursday, 00:00.
    const NOW_MS: i64 = 1_767_225_600_000;

    fn canary(part: f64) -> Phase {
        Phase::Canary(Share::new(part).expect("a share"))
    }

    fn plan() -> RolloutPlan {
        let step = |phase, hours: u64| RolloutStep { phase, period: Some(Duration::from_secs(hours * 3600)) };
        let last = RolloutStep { phase: Phase::default(), period: None };
        RolloutPlan {
            steps: vec![step(Phase::Shadow, 2), step(canary(0.01), 1), step(canary(0.5), 0), last],
            window: None,
        }
    }

    fn decision(stage: Stage, different: u64, compared: u64) -> Decision {
        let answers = Observed { different, compared };
        let gate = Gate::new(Policy { duration_min_ms: 0, ..Policy::default() });
        gate.decide(stage, Counted { answers, ..Counted::default() }, 0)
    }

    /// Returns the next change of a plan in a phase, after this many hours with this evidence.
    fn next(
        plan: &RolloutPlan,
        state: RolloutState,
        phase: Phase,
        hours: u64,
        evidence: (u64, u64),
    ) -> NextChange {
        let stage = if phase == Phase::Shadow { Stage::Shadow } else { Stage::Canary };
        let decision = decision(stage, evidence.0, evidence.1);
        let policy = GatePolicy::default();
        let (plan, in_step_ms) = (Some(plan), hours * HOUR_MS);
        next_change(&RolloutFacts {
            phase,
            state,
            plan,
            policy: &policy,
            decision: &decision,
            in_step_ms,
            now_ms: NOW_MS,
        })
    }

    #[test]
    fn a_step_is_left_with_time_and_evidence_for_the_next_one() {
        let (plan, running) = (plan(), RolloutState::Running);
        let [time, evidence] =
            [RolloutWait::Time { seconds: 3600 }, RolloutWait::Evidence { reason: Waiting::Samples }];
        for (phase, hours, evidence, expected) in [
            (Phase::Shadow, 1, (0, 10), NextChange::Wait(vec![time, evidence])),
            (Phase::Shadow, 1, (0, 1000), NextChange::Wait(vec![time])),
            (Phase::Shadow, 2, (0, 1000), NextChange::Advance(canary(0.01))),
            (canary(0.01), 1, (0, 1000), NextChange::Advance(canary(0.5))),
            // Between two steps, after an edit of the plan: the earlier one applies.
            (canary(0.1), 0, (0, 1000), NextChange::Wait(vec![time])),
            (canary(0.1), 1, (0, 1000), NextChange::Advance(canary(0.5))),
            // `check` of the policy, since the step has none.
            (
                canary(0.5),
                0,
                (0, 1000),
                NextChange::Advance(Phase::Translated { check: GatePolicy::default().check }),
            ),
            (Phase::default(), 0, (0, 0), NextChange::Complete),
            (canary(0.5), 0, (300, 1000), NextChange::RollBack(Phase::Shadow)),
            // There is no phase to roll back to.
            (
                Phase::Shadow,
                2,
                (300, 1000),
                NextChange::Wait(vec![RolloutWait::Evidence { reason: Waiting::TooDifferent }]),
            ),
        ] {
            assert_eq!(
                next(&plan, running, phase, hours, evidence),
                expected,
                "{phase} {hours} {evidence:?}"
            );
        }
    }

    #[test]
    fn a_pause_stops_advancing_and_no_rollback_and_the_end_stops_both() {
        let plan = plan();
        let wait = |waits: &[RolloutWait]| NextChange::Wait(waits.to_vec());
        assert_eq!(
            next(&plan, RolloutState::Paused, canary(0.5), 9, (0, 1000)),
            wait(&[RolloutWait::Resume])
        );
        let back = NextChange::RollBack(Phase::Shadow);
        assert_eq!(next(&plan, RolloutState::Paused, canary(0.5), 9, (300, 1000)), back);
        for over in [RolloutState::Aborted, RolloutState::Completed] {
            assert_eq!(next(&plan, over, canary(0.5), 9, (0, 1000)), wait(&[]));
        }
    }

    #[test]
    fn outside_its_window_a_rollout_waits_for_the_opening() {
        let time = |hour| DayTime::new(hour, 0).expect("a time");
        let window = TimeWindow::new(time(9), time(17), [true; 7], "UTC").expect("a zone");
        let plan = RolloutPlan { window: Some(window), ..plan() };
        let opens_ms = Some(NOW_MS + 9 * 3_600_000);
        let closed = NextChange::Wait(vec![RolloutWait::Window { opens_ms }]);
        assert_eq!(next(&plan, RolloutState::Running, canary(0.5), 9, (0, 1000)), closed);
        // The end of a rollout is no change of the phase.
        assert_eq!(next(&plan, RolloutState::Running, Phase::default(), 0, (0, 0)), NextChange::Complete);
    }

    #[test]
    fn a_policy_of_the_gate_is_a_plan_of_three_steps() {
        let policy = GatePolicy::default();
        let plan = RolloutPlan::of_gate(&policy);
        assert_eq!(plan.next(Phase::Shadow), Some(Phase::Canary(policy.share)));
        assert_eq!(plan.next(canary(0.3)), Some(Phase::Translated { check: policy.check }));
        assert_eq!(plan.period_ms(Phase::Shadow, &policy), policy.policy.duration_min_ms);
        assert_eq!((plan.position(Phase::Legacy), plan.next(Phase::default())), (None, None));
    }
}
