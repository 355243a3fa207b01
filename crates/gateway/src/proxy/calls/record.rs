//! Records calls for a capture, and their times for the sample of recent requests. The layer is
//! above the credential layer, so recorded calls contain no credential. While no capture is open,
//! the recording costs one read of the facts.

use super::call::{Call, Caller, Payload};
use crate::body::Copier;
use crate::capture::{CallRecord, Recording};
use crate::error::GatewayError;
use crate::proxy::Response;
use crate::proxy::record::CallTrace;
use std::sync::Arc;
use std::time::Instant;

/// A layer that records translated calls and their responses.
pub(super) struct RecordCall<C> {
    pub inner: C,
}

impl<C: Caller> Caller for RecordCall<C> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        let recording = is_translated(call).then(|| call.context.recording()).flatten();
        let numbered = recording.map(|recording| {
            let number = recording.call(record(call));
            (recording, number)
        });
        let outcome = self.inner.call(call).await;
        if call.context.record.is_traced() {
            trace(call, &outcome);
        }
        match numbered {
            Some((recording, number)) => outcome.map(|response| record_response(recording, number, response)),
            None => outcome,
        }
    }
}

/// Returns whether a plan made the call. Forwarded requests are not recorded as calls of the other
/// side.
fn is_translated(call: &Call) -> bool {
    call.side.is_some()
}

/// Adds an ended call to the facts. Moves its target there, which no layer above reads.
fn trace(call: &mut Call, outcome: &Result<Response, GatewayError>) {
    let mut target = std::mem::take(&mut call.target);
    target.drain(..call.scope_bytes);
    let trace = CallTrace {
        side: call.side,
        method: call.method.clone(),
        target,
        times: call.delivery.times,
        attempts: call.delivery.sent,
        outcome: match outcome {
            Ok(response) => Ok(response.status().as_u16()),
            Err(error) => Err(error.kind().name()),
        },
    };
    call.context.facts().add_call(trace);
}

fn record(call: &Call) -> CallRecord {
    CallRecord {
        method: call.method.clone(),
        target: call.target.get(call.scope_bytes..).unwrap_or(&call.target).to_owned(),
        headers: call.headers.clone(),
        body: match &call.payload {
            Payload::Whole(bytes) => Some(bytes.clone()),
            Payload::Stream(_) | Payload::Sent => None,
        },
        started: Instant::now(),
        head: None,
        answer: None,
    }
}

fn record_response(recording: Arc<Recording>, number: usize, response: Response) -> Response {
    recording.call_head(number, response.status().as_u16(), response.headers());
    let bytes_max = recording.body_bytes_max();
    let copier = Copier::new(bytes_max, move |copied| recording.call_body(number, copied));
    response.map(|body| body.with_watcher(Box::new(copier)))
}
