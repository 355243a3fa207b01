//! Undelivered events in the admin API: list, retry, drop. Responses never include the content of
//! an event.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::api::parse_body;
use http::Request;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use switchback_gateway::body::Body;
use switchback_gateway::store::EventChoice;

/// Most events in one list.
const LISTED_MAX: usize = 1_000;

/// Returns the number of queued events per receiver, and the oldest of them.
pub(super) async fn list(parts: &AdminParts) -> Answer {
    let receivers = parts.store.event_counts().await?;
    let events = parts.store.events(None, false, LISTED_MAX).await?;
    AdminResponse::ok(&json!({ "receivers": receivers, "events": events }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventSelection {
    receiver: Option<String>,
    /// Empty: all dead events.
    #[serde(default)]
    ids: Vec<String>,
}

impl EventSelection {
    async fn parse(request: Request<Body>) -> Result<EventChoice, AdminResponse> {
        let EventSelection { receiver, ids } = parse_body(request).await?;
        Ok(EventChoice { receiver, ids })
    }
}

pub(super) async fn retry(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let choice = EventSelection::parse(request).await?;
    AdminResponse::ok(&json!({ "retried": parts.store.by(by).events_retry(&choice).await? }))
}

pub(super) async fn drop(parts: &AdminParts, by: &str, request: Request<Body>) -> Answer {
    let choice = EventSelection::parse(request).await?;
    AdminResponse::ok(&json!({ "dropped": parts.store.by(by).events_drop(&choice).await? }))
}
