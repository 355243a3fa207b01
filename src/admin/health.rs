//! Health and metrics. `live` reports that the process answers, independent of all else. `ready`
//! reports that it should receive traffic: pack and listeners are up before this port answers, so
//! it only turns false during shutdown.
//!
//! A failing store, an unconnected client or an expired grant shows in metrics and alerts, not in
//! readiness: taking the gateway out of rotation would not repair them and would interrupt all
//! other calls.

use super::AdminParts;
use super::answer::AdminResponse;
use http::StatusCode;
use serde_json::json;
use switchback_gateway::telemetry::metrics;

pub(super) fn live() -> AdminResponse {
    AdminResponse::json(StatusCode::OK, &json!({ "live": true }))
}

pub(super) fn ready(parts: &AdminParts) -> AdminResponse {
    let health = parts.tokens.health();
    let clients = parts.tokens.clients().all();
    let usable = clients.iter().filter(|client| client.can_call()).count();
    let is_ready = !parts.drain.is_leaving();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let facts = json!({
        "ready": is_ready,
        "draining": !is_ready,
        "store": health.store,
        "unpersisted_grants": health.unpersisted,
        "pack": parts.board.load().pack.name,
        "clients": clients.len(),
        "clients_with_usable_credential": usable,
    });
    AdminResponse::json(status, &facts)
}

pub(super) fn metrics(parts: &AdminParts) -> AdminResponse {
    metrics::store_up(parts.tokens.health().store);
    AdminResponse::text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", parts.metrics.render())
}
