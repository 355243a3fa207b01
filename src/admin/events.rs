//! Undelivered events in the admin API: list, retry, drop. Responses never include the content of
//! an event.

use super::answer::AdminResponse;
use super::{AdminParts, api};
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::json;
use switchback_gateway::body::Body;
use switchback_gateway::store::{EventChoice, StoreError};

/// Most events in one list.
const LISTED_MAX: usize = 1_000;

/// Returns the number of queued events per receiver, and the oldest of them.
pub(super) async fn list(parts: &AdminParts) -> AdminResponse {
    let counts = parts.store.event_counts().await;
    let events = parts.store.events(None, false, LISTED_MAX).await;
    match (counts, events) {
        (Ok(receivers), Ok(events)) => {
            AdminResponse::json(StatusCode::OK, &json!({ "receivers": receivers, "events": events }))
        }
        (Err(error), _) | (_, Err(error)) => store_error(&error),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventSelection {
    receiver: Option<String>,
    /// Empty: all dead events.
    #[serde(default)]
    ids: Vec<String>,
}

pub(super) async fn retry(parts: &AdminParts, by: &str, request: Request<Body>) -> AdminResponse {
    let choice = match api::parse_body::<EventSelection>(request).await {
        Ok(EventSelection { receiver, ids }) => EventChoice { receiver, ids },
        Err(answer) => return answer,
    };
    match parts.store.by(by).events_retry(&choice).await {
        Ok(retried) => AdminResponse::json(StatusCode::OK, &json!({ "retried": retried })),
        Err(error) => store_error(&error),
    }
}

pub(super) async fn drop(parts: &AdminParts, by: &str, request: Request<Body>) -> AdminResponse {
    let choice = match api::parse_body::<EventSelection>(request).await {
        Ok(EventSelection { receiver, ids }) => EventChoice { receiver, ids },
        Err(answer) => return answer,
    };
    match parts.store.by(by).events_drop(&choice).await {
        Ok(dropped) => AdminResponse::json(StatusCode::OK, &json!({ "dropped": dropped })),
        Err(error) => store_error(&error),
    }
}

fn store_error(error: &StoreError) -> AdminResponse {
    tracing::error!(%error, "a request of the admin API failed in the store");
    AdminResponse::error(StatusCode::SERVICE_UNAVAILABLE, "the store did not do it; the log says why")
}
