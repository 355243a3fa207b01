//! Observes the end of a response for the reporting layers, and derives the outcome from it.

use crate::body::BodyEnd;
use crate::error::{ErrorSide, GatewayError};
use crate::outcome::Outcome;
use crate::proxy::Response;
use crate::proxy::context::RequestContext;
use crate::proxy::error_form::ErrorStatus;
use http::StatusCode;

/// The end of one response, as observed by one layer.
#[derive(Debug, Default)]
pub(super) struct ResponseEnd {
    /// `None`: the client disconnected before there was a response. If a side answers errors with a
    /// success status, this is the status of the error.
    status: Option<StatusCode>,
    end: Option<BodyEnd>,
    /// The side at fault for a truncated body.
    broke: Option<ErrorSide>,
}

impl ResponseEnd {
    /// Records the status.
    pub(super) fn on_response(&mut self, response: &Response) {
        let error = response.extensions().get::<ErrorStatus>();
        self.status = Some(error.map_or(response.status(), |error| error.0));
    }

    /// Records the side of the error that truncated the body.
    pub(super) fn on_error(&mut self, error: &GatewayError) {
        self.broke = Some(error.side());
    }

    /// Records how the body ended.
    pub(super) fn on_end(&mut self, end: BodyEnd) {
        self.end = Some(end);
    }

    pub(super) fn end(&self) -> Option<BodyEnd> {
        self.end
    }

    /// Returns the status to report, or `None` without a response.
    pub(super) fn status(&self) -> Option<u16> {
        self.status.map(|status| status.as_u16())
    }

    /// Returns the outcome of the request.
    pub(super) fn outcome(&self, context: &RequestContext) -> Outcome {
        let Some(status) = self.status else { return Outcome::Cancelled };
        match self.end {
            // A truncated body outweighs the status, which was sent before the error occurred.
            Some(BodyEnd::Complete) => {}
            Some(BodyEnd::Failed) if self.broke == Some(ErrorSide::Gateway) => return Outcome::GatewayError,
            Some(BodyEnd::Failed) => return Outcome::UpstreamError,
            Some(BodyEnd::Abandoned) | None => return Outcome::Cancelled,
        }
        match context.fault() {
            Some(fault) => fault.outcome,
            None if status.is_server_error() => Outcome::UpstreamError,
            None if context.is_forwarded() => Outcome::Forwarded,
            None => Outcome::Translated,
        }
    }
}
