//! Phases in the admin API: list operations with their phases, and change them at run time.

use super::AdminParts;
use super::answer::AdminResponse;
use super::api::parse_body;
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::json;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_gateway::body::Body;
use switchback_gateway::shadow::{Phase, PhaseChange, PhaseInfo, PhasesError, Share};

/// Most transitions in one list.
const TRANSITIONS_MAX: u32 = 200;

pub(super) fn list(parts: &AdminParts) -> AdminResponse {
    AdminResponse::json(StatusCode::OK, &parts.phases.list())
}

pub(super) async fn transitions(parts: &AdminParts) -> AdminResponse {
    match parts.phases.transitions(TRANSITIONS_MAX).await {
        Ok(transitions) => AdminResponse::json(StatusCode::OK, &transitions),
        Err(error) => error_answer(&PhasesError::Store(error)),
    }
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

pub(super) async fn set(parts: &AdminParts, by: &str, request: Request<Body>) -> AdminResponse {
    let asked: Set = match parse_body(request).await {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let share = match asked.share.map(|share| Share::new(share).ok_or(share)).transpose() {
        Ok(share) => share,
        Err(share) => {
            return AdminResponse::error(
                StatusCode::BAD_REQUEST,
                format!("a share is a number from 0 to 1, not {share}"),
            );
        }
    };
    let phase = match Phase::parse(&asked.phase, share) {
        Ok(phase) => phase,
        Err(fault) => return AdminResponse::error(StatusCode::BAD_REQUEST, fault.to_string()),
    };
    let side = asked.side.as_deref();
    let word = PhaseChange { who: by, reason: asked.reason.trim(), seen: None, force: asked.force };
    respond(parts.phases.set_by_word(side, &asked.operation, Some(phase), word).await)
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

pub(super) async fn reset(parts: &AdminParts, by: &str, request: Request<Body>) -> AdminResponse {
    let asked: Reset = match parse_body(request).await {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let word = PhaseChange { who: by, reason: asked.reason.trim(), seen: None, force: asked.force };
    respond(parts.phases.set_by_word(asked.side.as_deref(), &asked.operation, None, word).await)
}

fn respond(outcome: Result<PhaseInfo, PhasesError>) -> AdminResponse {
    match outcome {
        Ok(info) => AdminResponse::json(StatusCode::OK, &json!(info)),
        Err(error) => error_answer(&error),
    }
}

/// Describes why a phase was not set, with a suggestion for a misspelt operation.
pub fn error_text(error: &PhasesError) -> String {
    let hint = match error {
        PhasesError::NoSuchOperation { operation, known } => did_you_mean(operation, known),
        _ => None,
    };
    [Some(error.to_string()), hint].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn error_answer(error: &PhasesError) -> AdminResponse {
    let status = match error {
        PhasesError::NoSuchOperation { .. } | PhasesError::NoSuchSide(..) => StatusCode::NOT_FOUND,
        PhasesError::WhichSide(..) | PhasesError::NoReason(_) => StatusCode::BAD_REQUEST,
        PhasesError::NoUpstream { .. } | PhasesError::Moved | PhasesError::AgainstEvidence(_) => {
            StatusCode::CONFLICT
        }
        PhasesError::Store(error) => {
            tracing::error!(%error, "a request of the admin API failed in the store");
            return AdminResponse::error(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store did not do it; the log says why",
            );
        }
    };
    AdminResponse::error(status, error_text(error))
}
