//! The admin API: the state of the gateway as JSON, and the bodies of requests.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use bytes::Bytes;
use http::{Request, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::sync::Arc;
use switchback_gateway::body::Body;
use switchback_gateway::error::ErrorSide;
use switchback_gateway::memory::Memory;
use switchback_gateway::proxy::compose::buffered::buffer;

/// Largest request body.
const BODY_BYTES_MAX: u64 = 64 << 10;

pub(super) fn config(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.board.load().config)
}

pub(super) fn pack(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.board.load().pack)
}

/// Returns the finished requests by operation and outcome since start.
pub(super) fn operations(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.metrics.requests_by_operation())
}

/// Returns calls to unknown operations and by unknown clients, newest first.
pub(super) fn unknown(parts: &AdminParts) -> Answer {
    AdminResponse::ok(&parts.unknown.newest())
}

pub(super) fn reload(parts: &Arc<AdminParts>, by: &str) -> Answer {
    parts.ask_for_reload(by);
    let value = json!({ "reload": "asked for; /api/pack says how it went" });
    Ok(AdminResponse::json(StatusCode::ACCEPTED, &value))
}

/// The body of a call without members.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoMembers {}

/// Reads a JSON body. An empty body counts as an empty object, since some calls have no required
/// members.
pub(super) async fn parse_body<T: DeserializeOwned>(request: Request<Body>) -> Result<T, AdminResponse> {
    read_up_to(request, BODY_BYTES_MAX).await
}

/// Reads a JSON body of at most `bytes_max` bytes.
pub(super) async fn read_up_to<T: DeserializeOwned>(
    request: Request<Body>,
    bytes_max: u64,
) -> Result<T, AdminResponse> {
    let body = read_bytes(request, bytes_max).await?;
    let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
    // The parser's message may quote a wrong value, which can be a secret. Return only the
    // position.
    serde_json::from_slice(body).map_err(|error| {
        let what = if error.is_data() { "is not what this call takes" } else { "is not JSON" };
        let (line, column) = (error.line(), error.column());
        AdminResponse::error(
            StatusCode::BAD_REQUEST,
            format!("the body {what} (line {line}, column {column})"),
        )
    })
}

/// Reads a body of at most `bytes_max` bytes.
pub(crate) async fn read_bytes(request: Request<Body>, bytes_max: u64) -> Result<Bytes, AdminResponse> {
    // A growing buffer is copied, so allow for more than twice the body.
    let memory = Memory::new(4 * bytes_max);
    let body = buffer(request.into_body(), ErrorSide::Client, bytes_max, memory.share()).await;
    let body = body.map_err(|_| {
        AdminResponse::error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large, or broke off")
    })?;
    Ok(body.bytes)
}
