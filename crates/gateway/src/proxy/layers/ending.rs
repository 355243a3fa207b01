//! Observes the end of a response for the reporting layers, and derives the outcome from it.

use crate::body::BodyEnd;
use crate::error::{ErrorSide, GatewayError};
use crate::outcome::Outcome;
use crate::proxy::Response;
use crate::proxy::error_form::ErrorStatus;
use crate::proxy::facts::RequestFacts;
use http::StatusCode;
use std::time::Duration;

/// The end of one response, as observed by one layer.
#[derive(Debug, Default)]
pub(super) struct ResponseEnd {
    /// The status as sent. `None`: the client disconnected before there was a response.
    sent: Option<StatusCode>,
    /// If a side answers errors with a success status, the status of the error; otherwise the one
    /// sent.
    status: Option<StatusCode>,
    end: Option<BodyEnd>,
    /// The side at fault for a truncated body, and the error.
    broke: Option<(ErrorSide, String)>,
}

impl ResponseEnd {
    /// Records the status.
    pub(super) fn on_response(&mut self, response: &Response) {
        let error = response.extensions().get::<ErrorStatus>();
        self.sent = Some(response.status());
        self.status = Some(error.map_or(response.status(), |error| error.0));
    }

    /// Records the error that truncated the body.
    pub(super) fn on_error(&mut self, error: &GatewayError) {
        self.broke = Some((error.side(), error.detail()));
    }

    /// Records how the body ended.
    pub(super) fn on_end(&mut self, end: BodyEnd) {
        self.end = Some(end);
    }

    pub(super) fn end(&self) -> Option<BodyEnd> {
        self.end
    }

    /// Returns the detail of the error that truncated the body.
    pub(super) fn broke(&self) -> Option<&str> {
        self.broke.as_ref().map(|(_, detail)| detail.as_str())
    }

    /// Returns the status as sent, or `None` without a response.
    pub(super) fn sent(&self) -> Option<u16> {
        self.sent.map(|status| status.as_u16())
    }

    /// Returns the status to report, or `None` without a response.
    pub(super) fn status(&self) -> Option<u16> {
        self.status.map(|status| status.as_u16())
    }

    /// Returns the outcome of the request.
    pub(super) fn outcome(&self, facts: &RequestFacts<'_>) -> Outcome {
        let Some(status) = self.status else { return Outcome::Cancelled };
        match self.end {
            // A truncated body outweighs the status, which was sent before the error occurred.
            Some(BodyEnd::Complete) => {}
            Some(BodyEnd::Failed) => {
                return match &self.broke {
                    Some((ErrorSide::Gateway, _)) => Outcome::GatewayError,
                    _ => Outcome::UpstreamError,
                };
            }
            Some(BodyEnd::Abandoned) | None => return Outcome::Cancelled,
        }
        match &facts.error {
            Some(error) => error.outcome,
            None if status.is_server_error() => Outcome::UpstreamError,
            None if facts.context.record.is_forwarded() => Outcome::Forwarded,
            None => Outcome::Translated,
        }
    }
}

/// A request whose response has ended.
pub(super) struct EndedRequest<'c> {
    pub facts: RequestFacts<'c>,
    pub ending: &'c ResponseEnd,
    /// Bytes of the response body that were passed to the connection.
    pub body_bytes: u64,
    /// Time from arrival to the end of the response.
    pub took: Duration,
    /// Set for tunnels and event streams. Their duration depends on when a peer disconnects, so it
    /// is not measured.
    pub is_open_ended: bool,
    /// Time from arrival to the response head; `None` without one.
    pub head: Option<Duration>,
    /// Time spent in the gateway until the response head, without waiting for peers.
    pub own_time: Option<Duration>,
}
