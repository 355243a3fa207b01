//! The end of an answer, as the layers that report it see it, and the outcome that follows from it.

use crate::body::BodyEnd;
use crate::error::{ErrorSide, GatewayError};
use crate::outcome::Outcome;
use crate::proxy::Response;
use crate::proxy::context::RequestContext;
use crate::proxy::error_form::ErrorStatus;
use http::StatusCode;

/// What one layer has seen of the end of an answer.
#[derive(Debug, Default)]
pub(super) struct ResponseEnd {
    /// `None`: the client went away before there was an answer. An error counts as one, also where its side answers errors
    /// with a success.
    status: Option<StatusCode>,
    end: Option<BodyEnd>,
    /// Whose error ended the body before its end.
    broke: Option<ErrorSide>,
}

impl ResponseEnd {
    /// Notes the head of the answer.
    pub(super) fn on_response(&mut self, response: &Response) {
        let error = response.extensions().get::<ErrorStatus>();
        self.status = Some(error.map_or(response.status(), |error| error.0));
    }

    /// Notes the error that ended the body.
    pub(super) fn on_error(&mut self, error: &GatewayError) {
        self.broke = Some(error.side());
    }

    /// Notes how the body ended.
    pub(super) fn on_end(&mut self, end: BodyEnd) {
        self.end = Some(end);
    }

    pub(super) fn end(&self) -> Option<BodyEnd> {
        self.end
    }

    /// The status that counts, once there was an answer.
    pub(super) fn status(&self) -> Option<u16> {
        self.status.map(|status| status.as_u16())
    }

    /// What became of the request.
    pub(super) fn outcome(&self, context: &RequestContext) -> Outcome {
        let Some(status) = self.status else { return Outcome::Cancelled };
        match self.end {
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
