//! Some services answer failures with a success and say in the body what went wrong. Where the pack knows how they say it
//! (`errors: {failures: …}`), the answer is read as one with the status that the pack gives: whatever stands above (renewal of
//! tokens, captures, half-done work, plans) needs to know nothing of it. Such an answer is short: of a long body nothing but
//! the beginning is held, and it is passed on as it comes.

use super::call::{Call, Caller};
use crate::body::Body;
use crate::error::{GatewayError, Side};
use crate::proxy::Response;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::Frame;
use std::pin::Pin;
use std::task::{Context, Poll};
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
        let response = self.inner.call(call).await?;
        let Some(side) = call.side else { return Ok(response) };
        let rules = &call.facts.program.pack().failures[side];
        if rules.is_empty() || !may_tell(response.status(), response.headers()) {
            return Ok(response);
        }
        // Boxed: few packs have such rules, and the usual call need not carry its size.
        Box::pin(read(response, rules)).await
    }
}

/// Whether an answer can be one that tells a failure: upstreams are asked for bodies without a coding.
fn may_tell(status: StatusCode, headers: &HeaderMap) -> bool {
    status.is_success() && !headers.contains_key(header::CONTENT_ENCODING) && !is_foreign_type(headers)
}

async fn read(response: Response, rules: &[FailureRule]) -> Result<Response, GatewayError> {
    let (mut parts, mut body) = response.into_parts();
    if body.length().is_some_and(|length| length > FAILURE_BYTES_MAX) {
        return Ok(Response::from_parts(parts, body));
    }
    let mut start = BytesMut::new();
    while let Some(chunk) = body.chunk().await.transpose()? {
        start.extend_from_slice(&chunk);
        if start.len() as u64 > FAILURE_BYTES_MAX {
            let joined = Joined { start: Some(start.freeze()), rest: body };
            return Ok(Response::from_parts(parts, Body::stream(joined, Side::Upstream)));
        }
    }
    if let Some(Ok(status)) = failure_status(rules, &parts.headers, &start).map(StatusCode::from_u16) {
        tracing::debug!(status = status.as_u16(), "a success is read as a failure");
        parts.status = status;
    }
    Ok(Response::from_parts(parts, Body::full(start.freeze())))
}

/// A body whose beginning was read already.
struct Joined {
    start: Option<Bytes>,
    rest: Body,
}

impl http_body::Body for Joined {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        match self.start.take() {
            Some(start) => Poll::Ready(Some(Ok(Frame::data(start)))),
            None => http_body::Body::poll_frame(Pin::new(&mut self.rest), cx),
        }
    }
}
