//! Rollouts as operators see them: as JSON for programs, and as text.

use crate::figures::span;
use serde_json::{Value, json};
use switchback_gateway::clock::rfc3339;
use switchback_gateway::shadow::{GateView, PhaseView, RolloutView, RolloutWait};

/// Returns the rollouts of all operations that have one, for the command line and the admin API.
pub(crate) fn rollouts_json(views: &[GateView]) -> Vec<Value> {
    views.iter().filter_map(|view| Some(rollout_json(view, view.rollout.as_ref()?))).collect()
}

fn rollout_json(view: &GateView, rollout: &RolloutView) -> Value {
    let steps = rollout.plan.iter().flat_map(|plan| &plan.steps);
    let steps: Vec<Value> = steps
        .map(|step| {
            let mut value = json!(PhaseView::from(step.phase));
            if let Some(period) = step.period {
                value["seconds"] = json!(period.as_secs_f64());
            }
            value
        })
        .collect();
    let waits = rollout.waits.iter().map(|wait| {
        let mut value = json!(wait);
        value["text"] = json!(wait_text(wait));
        value
    });
    json!({
        "side": view.side,
        "operation": view.operation,
        "plan": rollout.name,
        "state": rollout.state,
        "now": PhaseView::from(rollout.phase),
        "step": rollout.step.map(|at| at + 1),
        "steps": steps,
        "seconds_in_step": rollout.in_step_ms / 1000,
        "waits": waits.collect::<Vec<_>>(),
        "window": rollout.plan.as_ref().and_then(|plan| plan.window.as_ref()).map(ToString::to_string),
        "evidence": view.decision.evidence(),
        "who": rollout.who,
        "reason": rollout.reason,
        "started": rfc3339(rollout.started_ms),
        "updated": rfc3339(rollout.updated_ms),
    })
}

/// Returns a rollout in one line: its plan, state and step, and its conditions.
pub(crate) fn rollout_line(rollout: &RolloutView) -> String {
    let mut line = format!("rollout {}, {}", rollout.name, rollout.state.name());
    if let (Some(at), Some(plan)) = (rollout.step, &rollout.plan) {
        line += &format!(", step {} of {}", at + 1, plan.steps.len());
    }
    let waits: Vec<String> = rollout.waits.iter().map(wait_text).collect();
    if !waits.is_empty() {
        line += &format!("; waits for {}", waits.join("; "));
    }
    line
}

/// Returns a condition of a rollout as a noun with its reason.
pub(crate) fn wait_text(wait: &RolloutWait) -> String {
    match wait {
        RolloutWait::Resume => "an operator: it is paused".to_owned(),
        RolloutWait::Release => "an operator: the operation is held".to_owned(),
        RolloutWait::Gate => "an operator: the policy of `gate` is `never`".to_owned(),
        RolloutWait::Plan => "its plan, which the configuration no longer has".to_owned(),
        RolloutWait::Time { seconds } => format!("time: {} left", span(*seconds)),
        RolloutWait::Evidence { reason } => format!("evidence: {}", reason.words()),
        RolloutWait::Window { opens_ms: Some(at) } => format!("time of day: from {}", rfc3339(*at)),
        RolloutWait::Window { opens_ms: None } => "time of day".to_owned(),
    }
}
