//! Health and metrics. *Live* says that the process answers, and depends on nothing else; *ready* says that it should be
//! given traffic: a pack is loaded, the store answers, and if there are clients, at least one of them can be served.

use super::Parts;
use super::answer::Answer;
use http::StatusCode;
use serde_json::json;

pub(super) fn live() -> Answer {
    Answer::json(StatusCode::OK, &json!({ "live": true }))
}

pub(super) fn ready(parts: &Parts) -> Answer {
    let health = parts.tokens.health();
    let clients = parts.tokens.clients().all();
    let usable = clients.iter().filter(|client| client.can_call()).count();
    let is_ready = health.is_ready() && (clients.is_empty() || usable > 0);
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let facts = json!({
        "ready": is_ready,
        "store": health.store,
        "unpersisted_grants": health.unpersisted,
        "pack": parts.board.load().pack.name,
        "clients": clients.len(),
        "clients_with_usable_credential": usable,
    });
    Answer::json(status, &facts)
}

pub(super) fn metrics(parts: &Parts) -> Answer {
    Answer::text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", parts.metrics.render())
}
