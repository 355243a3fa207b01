//! Retirement in the admin API: usage by client, brownouts, and client sunsets.

use super::AdminParts;
use super::answer::AdminResponse;
use super::api::parse_body;
use crate::after_sunset::{AfterSunset, after_sunset};
use crate::config::DateOrTime;
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::json;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_gateway::body::Body;
use switchback_gateway::retire::{NewBrownout, RetireError, UsageInfo};
use switchback_gateway::store::StoreError;

/// Returns the calls by side, client, operation and outcome, summed over all gateways of the store.
/// With `after_sunset` in the query, returns the losses of each client once the old service is
/// gone.
pub(super) async fn usage(parts: &AdminParts, query: &str) -> AdminResponse {
    let usage = match parts.usage.list().await {
        Ok(usage) => usage,
        Err(error) => return error_answer(&error.into()),
    };
    let names: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    match names.as_slice() {
        [""] => AdminResponse::json(StatusCode::OK, &usage),
        ["after_sunset"] => AdminResponse::json(StatusCode::OK, &after_sunset_rows(parts, &usage)),
        _ => AdminResponse::error(
            StatusCode::BAD_REQUEST,
            "the only parameter of this address is `after_sunset`",
        ),
    }
}

/// Returns the losses of each client once the old service is gone, under the served pack and
/// settings.
pub(crate) fn after_sunset_rows(parts: &AdminParts, usage: &[UsageInfo]) -> Vec<AfterSunset> {
    let (board, program) = (parts.board.load(), parts.program.load_full());
    let (pack, settings) = (program.pack(), program.settings());
    let is_on = |name: &str| {
        pack.settings.iter().zip(0..).any(|(setting, at)| setting.name == name && settings.is_on(at))
    };
    match &board.shown {
        Some(shown) => after_sunset(usage, &shown.report, is_on),
        None => after_sunset(usage, &switchback_plan::report(pack), is_on),
    }
}

/// Returns the brownouts, earliest first, including those that ended within the last month.
pub(super) async fn brownouts(parts: &AdminParts) -> AdminResponse {
    match parts.retirement.sync().await {
        Ok(()) => AdminResponse::json(StatusCode::OK, &parts.retirement.brownouts()),
        Err(error) => error_answer(&error.into()),
    }
}

/// Returns the sunsets of clients.
pub(super) async fn sunsets(parts: &AdminParts) -> AdminResponse {
    match parts.retirement.sync().await {
        Ok(()) => AdminResponse::json(StatusCode::OK, &parts.retirement.sunsets()),
        Err(error) => error_answer(&error.into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddBrownout {
    /// Needed only if clients speak several sides.
    side: Option<String>,
    #[serde(default)]
    operations: Vec<String>,
    #[serde(default)]
    clients: Vec<String>,
    /// Confirms a window that names neither operations nor clients.
    #[serde(default)]
    everything: bool,
    /// A day or a moment (RFC 3339); `None`: now.
    from: Option<String>,
    until: String,
    #[serde(default)]
    reason: String,
}

pub(super) async fn add(parts: &AdminParts, by: &str, request: Request<Body>) -> AdminResponse {
    let asked: AddBrownout = match parse_body(request).await {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let from = asked.from.as_deref().map(|text| moment("from", text)).transpose();
    let (from, until) = match (from, moment("until", &asked.until)) {
        (Ok(from), Ok(until)) => (from, until),
        (Err(answer), _) | (_, Err(answer)) => return answer,
    };
    let new = NewBrownout {
        side: asked.side,
        operations: asked.operations,
        clients: asked.clients,
        everything: asked.everything,
        from_ms: from.map_or_else(|| parts.clock.unix_ms(), DateOrTime::unix_ms),
        until_ms: until.unix_ms(),
        reason: asked.reason,
        seen: None,
    };
    match parts.retirement.by(by).add(new).await {
        Ok(added) => AdminResponse::json(StatusCode::CREATED, &added),
        Err(error) => error_answer(&error),
    }
}

pub(super) async fn remove(parts: &AdminParts, by: &str, id: &str) -> AdminResponse {
    match parts.retirement.by(by).remove(id).await {
        Ok(()) => AdminResponse::json(StatusCode::OK, &json!({ "removed": id })),
        Err(error) => error_answer(&error),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetSunset {
    /// Needed only if clients speak several sides.
    side: Option<String>,
    /// A day or a moment (RFC 3339). Null: never, which overrides the configuration.
    at: Option<String>,
    deprecated: Option<String>,
    #[serde(default = "default_announce")]
    announce: bool,
}

fn default_announce() -> bool {
    true
}

pub(super) async fn set_sunset(
    parts: &AdminParts,
    by: &str,
    name: &str,
    request: Request<Body>,
) -> AdminResponse {
    let asked: SetSunset = match parse_body(request).await {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let at = asked.at.as_deref().map(|text| moment("at", text)).transpose();
    let deprecated = asked.deprecated.as_deref().map(|text| moment("deprecated", text)).transpose();
    let (at, deprecated) = match (at, deprecated) {
        (Ok(at), Ok(deprecated)) => (at.map(DateOrTime::unix_ms), deprecated.map(DateOrTime::unix_ms)),
        (Err(answer), _) | (_, Err(answer)) => return answer,
    };
    let (retirement, side) = (parts.retirement.by(by), asked.side.as_deref());
    let set = retirement.set_sunset(name, side, at, deprecated, asked.announce, None).await;
    match set {
        Ok(set) => AdminResponse::json(StatusCode::OK, &set),
        Err(error) => error_answer(&error),
    }
}

fn moment(name: &str, text: &str) -> Result<DateOrTime, AdminResponse> {
    text.parse().map_err(|what| AdminResponse::error(StatusCode::BAD_REQUEST, format!("{name}: {what}")))
}

/// Describes why a change was rejected, with a suggestion for a misspelt operation.
pub fn error_text(error: &RetireError) -> String {
    let hint = match error {
        RetireError::NoSuchOperation { operation, known } => did_you_mean(operation, known),
        _ => None,
    };
    [Some(error.to_string()), hint].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn error_answer(error: &RetireError) -> AdminResponse {
    let status = match error {
        RetireError::NoSuchOperation { .. }
        | RetireError::NoSuchSide(..)
        | RetireError::NoSuchBrownout(_)
        | RetireError::Store(StoreError::NoSuchClient(_)) => StatusCode::NOT_FOUND,
        RetireError::WhichSide(_)
        | RetireError::Window(_)
        | RetireError::NoScope
        | RetireError::TwoScopes => StatusCode::BAD_REQUEST,
        RetireError::TooMany | RetireError::Changed => StatusCode::CONFLICT,
        RetireError::Store(error) => {
            tracing::error!(%error, "a request of the admin API failed in the store");
            return AdminResponse::error(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store did not do it; the log says why",
            );
        }
    };
    AdminResponse::error(status, error_text(error))
}
