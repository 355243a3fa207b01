//! Phases in the admin API: list operations with their phases, and change them at run time.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::parse_body;
use crate::operate::{Refusal, operation_name};
use http::Request;
use serde::Deserialize;
use switchback_gateway::body::Body;
use switchback_gateway::shadow::{Phase, PhaseChange, Share};

/// Most transitions in one list.
const TRANSITIONS_MAX: u32 = 200;

pub(super) fn list(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.phases.list())
}

pub(super) async fn transitions(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.phases.transitions(TRANSITIONS_MAX).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    /// Needed only if several spoken sides have the operation.
    side: Option<String>,
    operation: String,
    phase: String,
    share: Option<f64>,
    #[serde(default)]
    reason: String,
    /// Overrides contrary evidence. Needs a reason.
    #[serde(default)]
    force: bool,
}

pub(super) async fn set(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let asked: Set = parse_body(request).await?;
    let wrong = |share| Refusal::invalid(format!("a share is a number from 0 to 1, not {share}"));
    let share = asked.share.map(|share| Share::new(share).ok_or_else(|| wrong(share))).transpose()?;
    let phase = Phase::parse(&asked.phase, share)?;
    let word = PhaseChange { who: by, reason: asked.reason.trim(), seen: None, force: asked.force };
    let (side, operation) = operation_name(asked.side.as_deref(), &asked.operation);
    AdminResponse::ok(&parts.phases.set_by_word(side, operation, Some(phase), word).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    side: Option<String>,
    operation: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    force: bool,
}

pub(super) async fn reset(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let asked: Reset = parse_body(request).await?;
    let word = PhaseChange { who: by, reason: asked.reason.trim(), seen: None, force: asked.force };
    let (side, operation) = operation_name(asked.side.as_deref(), &asked.operation);
    AdminResponse::ok(&parts.phases.set_by_word(side, operation, None, word).await?)
}
