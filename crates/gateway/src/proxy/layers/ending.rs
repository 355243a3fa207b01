//! The end of an answer, as the layers that report it see it, and the outcome that follows from it.

use crate::body::End;
use crate::error::{GatewayError, Side};
use crate::outcome::Outcome;
use crate::proxy::Response;
use crate::proxy::context::RequestContext;
use crate::proxy::error_form::ErrorStatus;
use http::StatusCode;

/// What one layer has seen of the end of an answer.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// `None`: the client went away before there was an answer. An error counts as one, also where its side answers errors
    /// with a success.
    status: Option<StatusCode>,
    end: Option<End>,
    /// Whose error ended the body before its end.
    broke: Option<Side>,
}

impl Ending {
    /// Notes the head of the answer.
    pub(super) fn answered(&mut self, response: &Response) {
        let error = response.extensions().get::<ErrorStatus>();
        self.status = Some(error.map_or(response.status(), |error| error.0));
    }

    /// Notes the error that ended the body.
    pub(super) fn failed(&mut self, error: &GatewayError) {
        self.broke = Some(error.side());
    }

    /// Notes how the body ended.
    pub(super) fn ended(&mut self, end: End) {
        self.end = Some(end);
    }

    pub(super) fn end(&self) -> Option<End> {
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
            Some(End::Complete) => {}
            Some(End::Failed) if self.broke == Some(Side::Gateway) => return Outcome::GatewayError,
            Some(End::Failed) => return Outcome::UpstreamError,
            Some(End::Abandoned) | None => return Outcome::Cancelled,
        }
        match context.fault() {
            Some(fault) => fault.outcome,
            None if status.is_server_error() => Outcome::UpstreamError,
            None if context.is_forwarded() => Outcome::Forwarded,
            None => Outcome::Translated,
        }
    }
}
