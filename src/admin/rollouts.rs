//! Rollouts in the admin API.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::parse_body;
use crate::operate::{operation_name, rollouts_json};
use http::Request;
use schemars::JsonSchema;
use serde::Deserialize;
use switchback_gateway::body::Body;
use switchback_gateway::shadow::{PhaseChange, RolloutAction, gate_views};

pub(super) async fn list(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&rollouts_json(&gate_views(&parts.phases, &parts.archive).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RolloutRequest {
    /// Needed only if several spoken sides have the operation.
    side: Option<String>,
    operation: String,
    /// For `start`.
    plan: Option<String>,
    #[serde(default)]
    reason: String,
    /// For `start` and `promote`: overrides contrary evidence. Needs a reason.
    #[serde(default)]
    force: bool,
    /// For `abort`: returns to the phase before the rollout.
    #[serde(default)]
    back: bool,
}

pub(super) async fn change(parts: &AdminParts, by: &str, action: &str, request: Request<Body>) -> Answer {
    let body: RolloutRequest = parse_body(request).await?;
    let action = match action {
        "start" => RolloutAction::Start { plan: body.plan.as_deref() },
        "pause" => RolloutAction::Pause,
        "resume" => RolloutAction::Resume,
        "promote" => RolloutAction::Promote,
        _ => RolloutAction::Abort { back: body.back },
    };
    let word = PhaseChange { who: by, reason: body.reason.trim(), seen: None, force: body.force };
    let (side, operation) = operation_name(body.side.as_deref(), &body.operation);
    let info = parts.phases.change_rollout(side, operation, action, word).await?;
    let mut views = gate_views(&parts.phases, &parts.archive).await?;
    views.retain(|view| view.side == info.side && view.operation == info.operation);
    AdminResponse::ok(&rollouts_json(&views).pop())
}
