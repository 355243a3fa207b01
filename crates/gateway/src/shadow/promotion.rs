//! Automatic promotion and rollback: periodically checks the evidence of each operation with a
//! rollout or a policy of the gate, lets [`switchback_engine::evidence::Gate`] judge it, and
//! executes the decision of [`super::rollout::next_change`], with the evidence as the reason. A
//! policy without a rollout implies the plan of shadow, canary and translated. Disabled by default.
//!
//! Gateways on one store all check. The store accepts a change only from the state that it is based
//! on, so one of them acts.

use super::gate_settings::{GatePolicy, GateSettings};
use super::phase::Phase;
use super::phases::{CurrentPhase, Phases, PhasesError};
use super::record::Archive;
use super::rollout::{
    NextChange, RolloutFacts, RolloutPlan, RolloutSettings, RolloutState, RolloutWait, next_change,
};
use super::rollouts::step_text;
use crate::store::{ROLLOUT_ABORTED, ROLLOUT_COMPLETED, RolloutRow, RolloutWrite, StoreError};
use std::time::Duration;
use switchback_engine::diff::Summary;
use switchback_engine::evidence::{Basis, Counted, Decision, Gate, Interval, Policy, Stage, Timed};

/// Interval between checks. The gate's guarantee does not depend on it.
const EVERY: Duration = Duration::from_secs(10);

/// Promotes and rolls back operations until dropped.
pub async fn keep_gate(phases: Phases, archive: Archive) {
    loop {
        phases.clock().sleep(EVERY).await;
        // Without evidence no operation is moved, not even back: a store that fails is no evidence
        // against a mapping.
        if let Err(error) = look(&phases, &archive).await {
            tracing::warn!(%error, "the gate cannot read the evidence; no phase is changed");
        }
    }
}

/// The gate's decision about an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct GateView {
    /// The name of the side that clients use, such as `v2`.
    pub side: String,
    /// Method and path template, such as `GET /things/{id}`.
    pub operation: String,
    /// The requirements for this operation.
    pub policy: GatePolicy,
    /// Whether the operation is moved automatically: by a policy, or by an active rollout.
    pub is_open: bool,
    /// Evidence of the current period.
    pub counted: Counted,
    /// Rates that the evidence does not exclude, for each kind of evidence that exists.
    pub rates: Vec<(Basis, Interval)>,
    /// Whether the operation would be moved now, and the evidence still missing.
    pub decision: Decision,
    /// The rollout of the operation, if it has one.
    pub rollout: Option<RolloutView>,
    current: CurrentPhase,
    next: NextChange,
}

/// A rollout of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutView {
    /// The name of the plan.
    pub name: String,
    /// `None` if the configuration no longer has it.
    pub plan: Option<RolloutPlan>,
    /// The state.
    pub state: RolloutState,
    /// The index of the current step.
    pub step: Option<usize>,
    /// The phase of the operation.
    pub phase: Phase,
    /// Time in the step, in milliseconds.
    pub in_step_ms: u64,
    /// The conditions for the next step. Empty if it is next, or if the rollout is over.
    pub waits: Vec<RolloutWait>,
    /// The author of the state.
    pub who: String,
    /// The reason of the state, or empty.
    pub reason: String,
    /// Wall time of the start in milliseconds since 1970.
    pub started_ms: i64,
    /// Wall time of the last change in milliseconds since 1970.
    pub updated_ms: i64,
}

async fn look(phases: &Phases, archive: &Archive) -> Result<(), StoreError> {
    let (_, plans) = phases.policies();
    // Without plans, the operations need not be listed.
    let all = if plans.plans.is_empty() { Vec::new() } else { phases.current() };
    for current in all {
        let plan = plans.configured(&current.side, &current.operation);
        if let Some(plan) = plan.filter(|_| current.rollout.is_none() && !current.is_set) {
            accept(phases.start_configured(&current, plan).await, &current.operation)?;
        }
    }
    for view in gate_views(phases, archive).await? {
        // A held operation is still evaluated, so that its decision is displayed.
        if !view.current.is_held {
            accept(execute(phases, &view).await, &view.operation)?;
        }
    }
    Ok(())
}

/// Accepts that another process was faster: the next check reads the new state.
fn accept(outcome: Result<(), PhasesError>, operation: &str) -> Result<(), StoreError> {
    match outcome {
        Ok(()) | Err(PhasesError::Moved) => Ok(()),
        Err(PhasesError::Store(error)) => Err(error),
        Err(error) => {
            tracing::warn!(%error, operation, "the gate cannot change the phase of an operation");
            Ok(())
        }
    }
}

/// Executes the next change of an operation.
async fn execute(phases: &Phases, view: &GateView) -> Result<(), PhasesError> {
    let (current, evidence) = (&view.current, view.decision.evidence());
    let stored = current.rollout.as_ref();
    let seen = stored.map(|row| row.change);
    let row = |state: RolloutState, reason: &str| {
        let (who, updated_ms) = (phases.store().author().to_owned(), phases.clock().unix_ms());
        let (state, reason) = (state.name().to_owned(), reason.to_owned());
        stored.map(|row| RolloutRow { state, who, reason, updated_ms, ..row.clone() })
    };
    match &view.next {
        NextChange::Wait(_) => {}
        NextChange::Complete => {
            if let Some(row) = row(RolloutState::Completed, "") {
                phases.put(&row, seen, ROLLOUT_COMPLETED).await?;
            }
        }
        NextChange::Advance(to) => {
            let reason = format!("promoted to {}: {evidence}", to.name());
            let (reason, row) = match &view.rollout {
                Some(RolloutView { name, plan: Some(plan), .. }) => {
                    (step_text(name, plan, *to, &reason), row(RolloutState::Running, ""))
                }
                _ => (reason, None),
            };
            let write = match &row {
                Some(row) => RolloutWrite::Put { row, seen, entry: None },
                None => RolloutWrite::Keep { seen },
            };
            phases.move_by_gate(current, *to, &reason, write).await?;
        }
        NextChange::RollBack(to) => {
            let reason = format!("rolled back to {}: {evidence}", to.name());
            let is_aborted = view.rollout.as_ref().is_some_and(|one| one.state == RolloutState::Aborted);
            let row = row(RolloutState::Aborted, &reason).filter(|_| !is_aborted);
            let write = match &row {
                Some(row) => RolloutWrite::Put { row, seen, entry: Some(ROLLOUT_ABORTED) },
                None => RolloutWrite::Keep { seen },
            };
            let reason = match &row {
                Some(row) => format!("{reason} (rollout `{}` aborted)", row.plan),
                None => reason,
            };
            phases.move_by_gate(current, *to, &reason, write).await?;
        }
    }
    Ok(())
}

/// Returns the decisions about all operations with a rollout or a policy of the gate, ignoring
/// holds.
///
/// # Errors
///
/// The database does not answer or fails.
pub async fn gate_views(phases: &Phases, archive: &Archive) -> Result<Vec<GateView>, StoreError> {
    let (gate, plans) = phases.policies();
    let is_governed = |current: &CurrentPhase| {
        current.rollout.is_some() || gate.policy_for(&current.side, &current.operation).is_some()
    };
    let governed: Vec<CurrentPhase> = phases.current().into_iter().filter(is_governed).collect();
    if governed.is_empty() {
        return Ok(Vec::new());
    }
    let evidence = archive.evidence().await?;
    let now_ms = phases.clock().unix_ms();
    let view = |current: CurrentPhase| {
        let found = evidence.iter().find(|evidence| current.has(evidence));
        view(current, found.map(|evidence| &evidence.summary), &gate, &plans, now_ms)
    };
    Ok(governed.into_iter().map(view).collect())
}

fn view(
    current: CurrentPhase,
    summary: Option<&Summary>,
    settings: &GateSettings,
    plans: &RolloutSettings,
    now_ms: i64,
) -> GateView {
    let (side, operation) = (current.side.clone(), current.operation.clone());
    let policy = settings.policy_for(&side, &operation);
    let rollout = current.rollout.as_ref();
    let effective = policy.unwrap_or_default();
    // A pack loaded after the phase started restarts the period too.
    // The evidence restarts with the pack, so time under the previous pack must not count
    // either.
    let since_ms = summary.map(|summary| summary.since_ms).max(current.since_ms);
    let since_ms = since_ms.max(rollout.map(|row| row.started_ms));
    let in_phase_ms = now_ms.saturating_sub(since_ms.unwrap_or(now_ms));
    let in_phase_ms = u64::try_from(in_phase_ms).unwrap_or(0);
    // The steps of a rollout have their own times.
    let duration_min_ms = if rollout.is_some() { 0 } else { effective.policy.duration_min_ms };
    // The operation's own policy may differ from the general one, so there is a gate per
    // operation.
    let gate = Gate::new(Policy { duration_min_ms, ..effective.policy });
    let counted = summary.map(|summary| summary.counts.evidence()).unwrap_or_default();
    let nothing = Timed::default();
    let timed = summary.map_or(&nothing, |summary| &summary.timed);
    let counted = Counted { latency: gate.latency(timed), ..counted };
    let decision = gate.decide(stage(current.phase), counted, in_phase_ms);
    let is_known = |basis: &Basis| *basis == decision.basis || counted.observations(*basis).compared > 0;
    let rates = Basis::ALL.into_iter().filter(is_known);
    let rates = rates.map(|basis| (basis, gate.interval(basis, counted))).collect();

    let state = rollout.map_or(RolloutState::Running, |row| RolloutState::parse(&row.state));
    let implied = RolloutPlan::of_gate(&effective);
    let plan = rollout.map_or(Some(&implied), |row| plans.plans.get(&row.plan));
    let facts = RolloutFacts {
        phase: current.phase,
        state,
        plan,
        policy: &effective,
        decision: &decision,
        in_step_ms: in_phase_ms,
        now_ms,
    };
    let mut next = next_change(&facts);
    let is_open = policy.is_some() || (state.is_active() && !settings.is_never(&side, &operation));
    if !is_open {
        // With `never`, an operator promotes each step.
        let wait = state.is_active().then_some(RolloutWait::Gate);
        next = NextChange::Wait(wait.into_iter().collect());
    }
    let rollout = rollout.map(|row| {
        let mut waits = if let NextChange::Wait(waits) = &next { waits.clone() } else { Vec::new() };
        if current.is_held && state.is_active() {
            waits.push(RolloutWait::Release);
        }
        RolloutView {
            name: row.plan.clone(),
            plan: plan.cloned(),
            state,
            step: plan.and_then(|plan| plan.position(current.phase)),
            phase: current.phase,
            in_step_ms: in_phase_ms,
            waits,
            who: row.who.clone(),
            reason: row.reason.clone(),
            started_ms: row.started_ms,
            updated_ms: row.updated_ms,
        }
    });
    GateView { side, operation, policy: effective, is_open, counted, rates, decision, rollout, current, next }
}

fn stage(phase: Phase) -> Stage {
    match phase {
        Phase::Legacy => Stage::Legacy,
        Phase::Shadow => Stage::Shadow,
        Phase::Canary(_) => Stage::Canary,
        Phase::Translated { .. } => Stage::Translated,
    }
}
