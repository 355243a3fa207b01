//! Detects failures that a service reports with a 2xx status and an error in the body. The pack's
//! `errors: {failures: …}` rules recognize them, and the response gets the status that the rule
//! names. The layers above (token refresh, captures, plans) then see an ordinary error.
//!
//! Only bodies up to `FAILURE_BYTES_MAX` are checked. A longer body is streamed on unchanged.

use super::call::{Call, Caller};
use crate::body::{Body, BodyStart};
use crate::error::GatewayError;
use crate::proxy::Response;
use http::{StatusCode, header};
use std::sync::Arc;
use switchback_engine::translate::{failure_status, is_foreign_type};
use switchback_plan::FailureRule;

/// Longest body in bytes that is checked for a failure.
pub(in crate::proxy) const FAILURE_BYTES_MAX: u64 = 64 * 1024;

/// A layer that sets the status of a failure reported as a success.
#[derive(Debug)]
pub(super) struct ReadFailure<S> {
    pub inner: S,
}

impl<S: Caller> Caller for ReadFailure<S> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        let outcome = self.inner.call(call).await;
        let Some(side) = call.side else { return outcome };
        let pack = call.context.program.pack();
        let rules = &pack.failures[side];
        match outcome {
            // Boxed because few packs have such rules: the common future stays small.
            Ok(response) if !rules.is_empty() && may_tell(&response, &pack.json_types) => {
                Box::pin(apply_rules(response, rules)).await
            }
            outcome => outcome,
        }
    }
}

/// Returns whether a response may contain a reported failure. Encoded bodies are excluded:
/// translated calls request unencoded ones.
fn may_tell(response: &Response, json_types: &[Arc<str>]) -> bool {
    let headers = response.headers();
    response.status().is_success()
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !is_foreign_type(headers, json_types)
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
