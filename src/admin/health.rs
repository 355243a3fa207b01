//! Health and metrics. *Live* says that the process answers, and depends on nothing else; *ready* says that it should be
//! given traffic: a pack is loaded and the listeners are open, which they are once anything answers here, and the process is
//! not about to stop. A store that is down, a client that is not connected and a grant that has ended are metrics and alerts:
//! taking the gateway out of rotation would mend none of them, and would take from everyone what still works.

use super::Parts;
use super::answer::Answer;
use http::StatusCode;
use serde_json::json;
use switchback_gateway::telemetry::metrics;

pub(super) fn live() -> Answer {
    Answer::json(StatusCode::OK, &json!({ "live": true }))
}

pub(super) fn ready(parts: &Parts) -> Answer {
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
    Answer::json(status, &facts)
}

pub(super) fn metrics(parts: &Parts) -> Answer {
    metrics::store_up(parts.tokens.health().store);
    Answer::text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", parts.metrics.render())
}
