//! Undelivered events in the admin API: list, retry, drop. Responses never include the content of
//! an event.

use super::answer::Answer;
use super::{Parts, api};
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::json;
use switchback_gateway::body::Body;
use switchback_gateway::store::{EventChoice, StoreError};

/// Most events in one list.
const LISTED_MAX: usize = 1_000;

/// Returns the number of queued events per receiver, and the oldest of them.
pub(super) async fn list(parts: &Parts) -> Answer {
    let counts = parts.store.event_counts().await;
    let events = parts.store.events(None, false, LISTED_MAX).await;
    match (counts, events) {
        (Ok(receivers), Ok(events)) => {
            Answer::json(StatusCode::OK, &json!({ "receivers": receivers, "events": events }))
        }
        (Err(error), _) | (_, Err(error)) => refused(&error),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    receiver: Option<String>,
    /// Empty: all dead events.
    #[serde(default)]
    ids: Vec<String>,
}

pub(super) async fn retry(parts: &Parts, by: &str, request: Request<Body>) -> Answer {
    let choice = match api::read::<Choice>(request).await {
        Ok(Choice { receiver, ids }) => EventChoice { receiver, ids },
        Err(answer) => return answer,
    };
    match parts.store.by(by).events_retry(&choice).await {
        Ok(retried) => Answer::json(StatusCode::OK, &json!({ "retried": retried })),
        Err(error) => refused(&error),
    }
}

pub(super) async fn drop(parts: &Parts, by: &str, request: Request<Body>) -> Answer {
    let choice = match api::read::<Choice>(request).await {
        Ok(Choice { receiver, ids }) => EventChoice { receiver, ids },
        Err(answer) => return answer,
    };
    match parts.store.by(by).events_drop(&choice).await {
        Ok(dropped) => Answer::json(StatusCode::OK, &json!({ "dropped": dropped })),
        Err(error) => refused(&error),
    }
}

fn refused(error: &StoreError) -> Answer {
    tracing::error!(%error, "a request of the admin API failed in the store");
    Answer::error(StatusCode::SERVICE_UNAVAILABLE, "the store did not do it; the log says why")
}
