//! Some services answer failures with a success and say in the body what went wrong. Where the pack knows how they say it
//! (`errors: {failures: …}`), the answer is read as one with the status that the pack gives: whatever stands above (renewal of
//! tokens, captures, half-done work, plans) needs to know nothing of it. Such an answer is short: of a long body nothing but
//! the beginning is held, and it is passed on as it comes.

use super::call::{Call, Caller};
use crate::body::{Body, BodyStart};
use crate::error::GatewayError;
use crate::proxy::Response;
use http::{HeaderMap, StatusCode, header};
use switchback_engine::translate::{failure_status, is_foreign_type};
use switchback_plan::FailureRule;

/// A longer body tells no failure.
pub(in crate::proxy) const FAILURE_BYTES_MAX: u64 = 64 * 1024;

/// The layer: what it sends goes by `inner`.
#[derive(Debug)]
pub(super) struct ReadFailure<S> {
    inner: S,
}

impl<S> ReadFailure<S> {
    pub(super) fn new(inner: S) -> ReadFailure<S> {
        ReadFailure { inner }
    }
}

impl<S: Caller> Caller for ReadFailure<S> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        let outcome = self.inner.call(call).await;
        let Some(side) = call.side else { return outcome };
        let rules = &call.context.program.pack().failures[side];
        match outcome {
            // Boxed: few packs have such rules, and the usual call need not carry its size.
            Ok(response) if !rules.is_empty() && may_tell(response.status(), response.headers()) => {
                Box::pin(apply_rules(response, rules)).await
            }
            outcome => outcome,
        }
    }
}

/// Whether an answer can be one that tells a failure: upstreams are asked for bodies without a coding.
fn may_tell(status: StatusCode, headers: &HeaderMap) -> bool {
    status.is_success() && !headers.contains_key(header::CONTENT_ENCODING) && !is_foreign_type(headers)
}

async fn apply_rules(response: Response, rules: &[FailureRule]) -> Result<Response, GatewayError> {
    let (mut parts, body) = response.into_parts();
    let body = match body.beginning(FAILURE_BYTES_MAX).await? {
        BodyStart::Longer(body) => body,
        BodyStart::Whole(bytes) => {
            if let Some(Ok(status)) = failure_status(rules, &parts.headers, &bytes).map(StatusCode::from_u16)
            {
                tracing::debug!(status = status.as_u16(), "a success is read as a failure");
                parts.status = status;
            }
            Body::full(bytes)
        }
    };
    Ok(Response::from_parts(parts, body))
}
