//! Writes one access log line per request.
//!
//! The logged status is that of the metrics: if a side answers errors with a success status, the
//! line has the error's own status. At level `debug`, a second line under the target
//! `switchback::target` has the masked path and query.

use super::ending::EndedRequest;
use crate::body::BodyEnd;
use crate::telemetry::access_line::AccessRecord;
use crate::telemetry::escape::Escaped;
use crate::telemetry::metrics::CLIENT_GONE;
use std::borrow::Cow;
use std::sync::LazyLock;
use switchback_engine::redact::{Redactor, Salt};

/// Writes the line of a request, if the log takes it.
pub(super) fn write(ended: &EndedRequest<'_>) {
    if !tracing::enabled!(target: "switchback::access", tracing::Level::INFO) {
        return;
    }
    let EndedRequest { facts, ending, .. } = ended;
    let context = facts.context;
    let cause: Cow<'_, str> = match (&facts.error, ending.end()) {
        (Some(error), _) => error.detail.as_str().into(),
        (None, Some(BodyEnd::Complete)) => facts.cause.as_deref().unwrap_or_default().into(),
        (None, Some(BodyEnd::Failed)) => match ending.broke() {
            Some(detail) => format!("the answer broke off: {detail}").into(),
            None => "the answer broke off".into(),
        },
        (None, Some(BodyEnd::Abandoned) | None) => "the client went away".into(),
    };
    if tracing::enabled!(target: "switchback::target", tracing::Level::DEBUG) {
        let target = facts.masked_target(redactor());
        tracing::debug!(target: "switchback::target", request_id = %context.id, target = %Escaped(&target));
    }
    let path = facts.shown_path();
    let (id, trace_id) = (context.id.digits(), context.trace.trace_digits());
    AccessRecord {
        request_id: as_text(&id),
        client_request_id: context.client_request_id(),
        trace_id: as_text(&trace_id),
        method: context.method.as_str(),
        path: &path,
        operation: facts.operation(),
        client: facts.client(),
        address: context.sender.address,
        phase: facts.phase,
        answered_by: facts.answered_by(),
        outcome: ending.outcome(facts).as_str(),
        status: ending.status().unwrap_or(CLIENT_GONE),
        body_bytes: ended.body_bytes,
        upstream_calls: context.record.calls(),
        upstream: context.record.upstream_wait(),
        elapsed: ended.took,
        cause: &cause,
    }
    .emit();
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
