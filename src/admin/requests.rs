//! The sample of recent requests in the admin API.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use super::route::QueryParameter;
use crate::operate::{Refusal, RefusalKind};
use crate::requests::{FoundRequest, ReplicaShare, RequestsFilter, RequestsFilterError};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use switchback_gateway::recent::{RequestSample, SampleMessages};

/// Listed requests by default, and at most.
const LISTED: usize = 100;
const LISTED_MAX: usize = 1_000;

/// The query of `/api/requests`.
pub(super) const PARAMETERS: [QueryParameter; 9] = [
    parameter("minutes", "Length of the period", r#"{"enum": [5, 15, 60, 1440]}"#),
    parameter("client", "`(none)`: unknown clients", r#"{"type": "string"}"#),
    parameter("operation", "`(none)`: unknown operations", r#"{"type": "string"}"#),
    parameter(
        "status",
        "A status, a class such as `5xx`, or `(none)`",
        r#"{"type": "string", "pattern": "^([1-5]xx|[1-5][0-9][0-9]|\\(none\\))?$"}"#,
    ),
    parameter("outcome", "An outcome of the access log, such as `translated`", r#"{"type": "string"}"#),
    parameter(
        "phase",
        "The phase of the operation",
        r#"{"enum": ["legacy", "shadow", "canary", "translated", "(none)", ""]}"#,
    ),
    parameter("id", "A part of the request id", r#"{"type": "string"}"#),
    parameter("page", "Page of the list", r#"{"type": "integer", "minimum": 1}"#),
    parameter("limit", "Requests in the list", r#"{"type": "integer", "minimum": 1, "maximum": 1000}"#),
];

const fn parameter(name: &'static str, about: &'static str, schema: &'static str) -> QueryParameter {
    QueryParameter { name, about, schema }
}

/// The response of `/api/requests`.
#[derive(Serialize)]
struct RequestList<'f> {
    /// Length of the period.
    minutes: u64,
    /// Requests of the period that are in the sample, and all requests of the period.
    sampled: u64,
    requests: u64,
    /// The extent of the sample of each replica.
    replicas: &'f [ReplicaShare],
    /// Sampled requests that match the filter.
    matching: usize,
    /// The newest of them.
    samples: Vec<ListedRequest<'f>>,
}

#[derive(Serialize)]
struct ListedRequest<'f> {
    replica: &'f str,
    #[serde(flatten)]
    sample: &'f RequestSample,
}

impl ListedRequest<'_> {
    fn new(found: &FoundRequest) -> ListedRequest<'_> {
        ListedRequest { replica: &found.replica, sample: &found.sample }
    }
}

/// Returns sampled requests that match the query, newest first, with the extent of the sample.
pub(super) fn list(parts: &AdminParts, query: &str) -> Answer {
    let pairs = decode_pairs(query);
    let pairs = || pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let filter = RequestsFilter::parse(pairs()).map_err(|error| Refusal::invalid(error.to_string()))?;
    let number = |name: &str, default: usize, max: usize, error: RequestsFilterError| {
        let value = pairs().find(|(found, value)| *found == name && !value.is_empty());
        let Some((_, value)) = value else { return Ok(default) };
        let number = value.parse().ok().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| Refusal::invalid(error.to_string()))
    };
    let limit = number("limit", LISTED, LISTED_MAX, RequestsFilterError::Limit)?;
    let page = number("page", 1, usize::MAX, RequestsFilterError::Page)?;
    let found = parts.requests.find(&filter, parts.clock.unix_ms());
    let (sampled, requests) = found.share();
    let samples = found.matching.iter().skip((page - 1).saturating_mul(limit)).take(limit);
    AdminResponse::ok(&RequestList {
        minutes: filter.minutes,
        sampled,
        requests,
        replicas: &found.replicas,
        matching: found.matching.len(),
        samples: samples.map(ListedRequest::new).collect(),
    })
}

/// The response of `/api/requests/{id}`.
#[derive(Serialize)]
struct OneRequest<'f> {
    #[serde(flatten)]
    listed: ListedRequest<'f>,
    /// Null if the messages were not recorded, or gave way to newer ones.
    messages: Option<&'f SampleMessages>,
}

/// Returns one sampled request with its messages.
pub(super) fn one(parts: &AdminParts, id: &str) -> Answer {
    match parts.requests.one(id, parts.clock.unix_ms()) {
        Some(found) => {
            let messages = parts.requests.messages(id);
            AdminResponse::ok(&OneRequest {
                listed: ListedRequest::new(&found),
                messages: messages.as_deref(),
            })
        }
        None => {
            let text = "no sampled request of the last day has this id";
            Err(Refusal::Request(RefusalKind::NotFound, text.to_owned()).into())
        }
    }
}

fn decode_pairs(query: &str) -> Vec<(String, String)> {
    let text = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}
