//! Writes one access log line per request, when the response has ended or the client has
//! disconnected. The layer sits outside `rescue`, so it sees error responses too.
//!
//! The logged status is that of the metrics: if a side answers errors with a success status, the
//! line has the error's own status. At level `debug`, a second line under the target
//! `switchback::target` has the masked path and query.

use super::ending::ResponseEnd;
use super::middleware::Middleware;
use crate::body::{BodyEnd, BodyWatcher};
use crate::error::GatewayError;
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use crate::telemetry::access::AccessRecord;
use crate::telemetry::escape::Escaped;
use crate::telemetry::metrics::CLIENT_GONE;
use bytes::Bytes;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use switchback_engine::redact::{Redactor, Salt};

#[derive(Clone, Copy, Default)]
pub(crate) struct AccessLog;

impl Middleware<Request> for AccessLog {
    type Inward = Request;
    type Kept = Option<PendingRecord>;
    type Fault = Infallible;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, Infallible>, (Request, Self::Kept)> {
        let is_wanted = tracing::enabled!(target: "switchback::access", tracing::Level::INFO);
        let line = is_wanted.then(|| PendingRecord {
            context: Arc::clone(&request.context),
            body_bytes: 0,
            ending: ResponseEnd::default(),
            broke: None,
        });
        ControlFlow::Continue((request, line))
    }

    fn after(line: Option<PendingRecord>, response: &mut Response) {
        if let Some(mut line) = line {
            line.ending.on_response(response);
            response.body_mut().watch(Box::new(line));
        }
    }
}

/// A log line under construction. `Drop` writes it, so each request gets exactly one line, however
/// it ends.
pub(crate) struct PendingRecord {
    context: Arc<RequestContext>,
    body_bytes: u64,
    ending: ResponseEnd,
    /// The error that truncated the response body.
    broke: Option<String>,
}

impl BodyWatcher for PendingRecord {
    fn chunk(&mut self, bytes: &Bytes) {
        self.body_bytes += bytes.len() as u64;
    }

    fn on_error(&mut self, error: &GatewayError) {
        self.ending.on_error(error);
        self.broke = Some(format!("the answer broke off: {}", error.detail()));
    }

    fn end(&mut self, end: BodyEnd) {
        self.ending.on_end(end);
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        let cause = match (self.context.fault(), self.ending.end()) {
            (Some(fault), _) => fault.detail.as_str(),
            (None, Some(BodyEnd::Complete)) => self.context.cause().unwrap_or_default(),
            (None, Some(BodyEnd::Failed)) => self.broke.as_deref().unwrap_or("the answer broke off"),
            (None, Some(BodyEnd::Abandoned) | None) => "the client went away",
        };
        if tracing::enabled!(target: "switchback::target", tracing::Level::DEBUG) {
            let target = self.context.masked_target(redactor());
            tracing::debug!(target: "switchback::target", request_id = %self.context.id, target = %Escaped(&target));
        }
        let path = self.context.shown_path();
        let (id, trace_id) = (self.context.id.digits(), self.context.trace.trace_digits());
        AccessRecord {
            request_id: as_text(&id),
            client_request_id: self.context.client_request_id(),
            trace_id: as_text(&trace_id),
            method: self.context.method.as_str(),
            path: &path,
            operation: self.context.operation(),
            client: self.context.client(),
            address: self.context.address,
            phase: self.context.phase(),
            answered_by: self.context.answered_by(),
            outcome: self.ending.outcome(&self.context).as_str(),
            status: self.ending.status().unwrap_or(CLIENT_GONE),
            body_bytes: self.body_bytes,
            upstream_calls: self.context.calls(),
            upstream: self.context.upstream_wait(),
            elapsed: self.context.took(),
            cause,
        }
        .emit();
    }
}

/// Returns the redactor for debug lines. Equal values have equal masks for the lifetime of the
/// process.
fn redactor() -> &'static Redactor {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
        let mut salt = [0; 32];
        // Without a random salt, the hash of a guessable value reveals the value.
        getrandom::fill(&mut salt).expect("the system gives random bytes, or nothing could be sealed");
        Redactor::new(Salt::new(salt))
    });
    &REDACTOR
}

fn as_text(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}
