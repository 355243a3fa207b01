//! The promotion gate: periodically checks the evidence of each operation for which an operator has
//! enabled it, lets [`switchback_engine::evidence::Gate`] decide, and changes the phase through
//! [`Phases::set`] with the evidence as the reason. Disabled by default.

use super::gate_settings::{GatePolicy, GateSettings};
use super::phase::Phase;
use super::phases::{Actor, CurrentPhase, Phases, PhasesError};
use super::record::Archive;
use crate::clock::Clock;
use crate::store::StoreError;
use std::time::Duration;
use switchback_engine::evidence::{Basis, Counted, Decision, Gate, Interval, Stage, Timed, Transition};

/// Interval between checks. The gate's guarantee does not depend on it.
const EVERY: Duration = Duration::from_secs(10);

/// Runs the gate until dropped. Returns at once if it is closed for all operations.
pub async fn keep_gate(phases: Phases, archive: Archive, clock: Clock, settings: GateSettings) {
    if !settings.is_open() {
        return;
    }
    loop {
        clock.sleep(EVERY).await;
        // Without evidence no operation is moved, not even back: a store that fails is no evidence
        // against a mapping.
        if let Err(error) = look(&phases, &archive, &clock, &settings).await {
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
    /// Evidence of the current period.
    pub counted: Counted,
    /// Rates that the evidence does not exclude, for each kind of evidence that exists.
    pub rates: Vec<(Basis, Interval)>,
    /// Whether the operation would be moved now, and the evidence still missing.
    pub decision: Decision,
    current: CurrentPhase,
}

async fn look(
    phases: &Phases,
    archive: &Archive,
    clock: &Clock,
    settings: &GateSettings,
) -> Result<(), StoreError> {
    for view in gate_views(phases, archive, clock, settings).await? {
        // A held operation is still evaluated, so that its decision is displayed.
        let to = target(&view.decision, &view.policy).filter(|_| !view.current.is_held);
        if let Some(to) = to {
            make(phases, &view.current, to, &view.decision).await?;
        }
    }
    Ok(())
}

/// Returns the gate's decisions about all operations for which it is open, ignoring holds.
///
/// # Errors
///
/// The database does not answer or fails.
pub async fn gate_views(
    phases: &Phases,
    archive: &Archive,
    clock: &Clock,
    settings: &GateSettings,
) -> Result<Vec<GateView>, StoreError> {
    if !settings.is_open() {
        return Ok(Vec::new());
    }
    let evidence = archive.evidence().await?;
    let of = |current: &CurrentPhase| evidence.iter().find(|evidence| current.has(evidence));
    let mut views = Vec::new();
    for current in phases.current() {
        let Some(policy) = settings.policy_for(&current.side, &current.operation) else { continue };
        let summary = of(&current).map(|evidence| &evidence.summary);
        // A pack loaded after the phase started restarts the period too.
        // The evidence restarts with the pack, so time under the previous pack must not count
        // either.
        let since_ms = summary.map(|summary| summary.since_ms).max(current.since_ms);
        let now_ms = clock.unix_ms();
        let in_phase_ms = now_ms.saturating_sub(since_ms.unwrap_or(now_ms));
        let counted = summary.map(|summary| summary.counts.evidence()).unwrap_or_default();
        let in_phase_ms = u64::try_from(in_phase_ms).unwrap_or(0);
        // The operation's own policy may differ from the general one, so there is a gate per
        // operation.
        let gate = Gate::new(policy.policy);
        let nothing = Timed::default();
        let timed = summary.map_or(&nothing, |summary| &summary.timed);
        let counted = Counted { latency: gate.latency(timed), ..counted };
        let decision = gate.decide(stage(current.phase), counted, in_phase_ms);
        let is_known = |basis: &Basis| *basis == decision.basis || counted.observations(*basis).compared > 0;
        let rates = Basis::ALL.into_iter().filter(is_known);
        let rates = rates.map(|basis| (basis, gate.interval(basis, counted))).collect();
        let (side, operation) = (current.side.clone(), current.operation.clone());
        views.push(GateView { side, operation, policy, counted, rates, decision, current });
    }
    Ok(views)
}

async fn make(
    phases: &Phases,
    current: &CurrentPhase,
    to: Phase,
    decision: &Decision,
) -> Result<(), StoreError> {
    let (side, operation) = (Some(current.side.as_str()), current.operation.as_str());
    let evidence = decision.to_string();
    // `expected` is the phase that the evidence belongs to. If an operator has moved the operation
    // since the evidence was read, the change fails.
    match phases.set(side, operation, to, Actor::Gate, Some(current.phase), &evidence).await {
        // Another process changed the operation first. The next check reads the new state.
        Ok(_) | Err(PhasesError::Moved) => Ok(()),
        Err(PhasesError::Store(error)) => Err(error),
        Err(error) => {
            tracing::warn!(%error, operation, "the gate cannot change the phase of an operation");
            Ok(())
        }
    }
}

fn stage(phase: Phase) -> Stage {
    match phase {
        Phase::Legacy => Stage::Legacy,
        Phase::Shadow => Stage::Shadow,
        Phase::Canary(_) => Stage::Canary,
        Phase::Translated { .. } => Stage::Translated,
    }
}

fn target(decision: &Decision, policy: &GatePolicy) -> Option<Phase> {
    let to = match decision.transition {
        Transition::None(_) => return None,
        Transition::Promote { to } | Transition::RollBack { to } => to,
    };
    Some(match to {
        Stage::Legacy => Phase::Legacy,
        Stage::Shadow => Phase::Shadow,
        Stage::Canary => Phase::Canary(policy.share),
        Stage::Translated => Phase::Translated { check: policy.check },
    })
}
