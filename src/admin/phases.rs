//! Phases in the admin API: list operations with their phases, and change them at run time.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::parse_body;
use crate::operate::{Refusal, operation_name};
use http::Request;
use schemars::JsonSchema;
use serde::Deserialize;
use switchback_gateway::body::Body;
use switchback_gateway::shadow::{PHASES, Phase, PhaseChange, Share};

/// Most transitions in one list.
const TRANSITIONS_MAX: u32 = 200;

pub(super) fn list(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.phases.list())
}

pub(super) async fn transitions(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.phases.transitions(TRANSITIONS_MAX).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetPhase {
    /// Needed only if several spoken sides have the operation.
    side: Option<String>,
    operation: String,
    #[schemars(extend("enum" = PHASES))]
    phase: String,
    #[schemars(range(min = 0.0, max = 1.0))]
    share: Option<f64>,
    #[serde(default)]
    reason: String,
    /// Overrides contrary evidence. Needs a reason.
    #[serde(default)]
    force: bool,
}

pub(super) async fn set(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let asked: SetPhase = parse_body(request).await?;
    let wrong = |share| Refusal::invalid(format!("a share is a number from 0 to 1, not {share}"));
    let share = asked.share.map(|share| Share::new(share).ok_or_else(|| wrong(share))).transpose()?;
    let phase = Phase::parse(&asked.phase, share)?;
    let word = PhaseChange { who: by, reason: asked.reason.trim(), seen: None, force: asked.force };
    let (side, operation) = operation_name(asked.side.as_deref(), &asked.operation);
    AdminResponse::ok(&parts.phases.set_by_word(side, operation, Some(phase), word).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResetPhase {
    side: Option<String>,
    operation: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    force: bool,
}

pub(super) async fn reset(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let asked: ResetPhase = parse_body(request).await?;
    let word = PhaseChange { who: by, reason: asked.reason.trim(), seen: None, force: asked.force };
    let (side, operation) = operation_name(asked.side.as_deref(), &asked.operation);
    AdminResponse::ok(&parts.phases.set_by_word(side, operation, None, word).await?)
}
