//! The trace span of one call to an upstream, from sending the call to the last byte of the response.
//! It exists only if the request's span is recorded. In the URL, every segment that is no literal of
//! the contract is `*`, because path values may be personal data or tokens.

use super::call::Call;
use crate::body::{BodyEnd, BodyWatcher};
use crate::error::GatewayError;
use crate::proxy::Response;
use crate::proxy::context::RequestContext;
use crate::proxy::side_upstreams::SideUpstreams;
use crate::telemetry::otlp::{EndedSpan, KeyValue};
use crate::telemetry::trace::{TRACEPARENT, TraceParent};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;

/// An open span. Dropping it records it.
pub(super) struct CallSpan {
    context: Arc<RequestContext>,
    place: TraceParent,
    started: Instant,
    /// Time at which the response body completed, failed or was dropped.
    ended: Option<Instant>,
    name: String,
    attributes: Vec<KeyValue>,
    status: Option<u16>,
    /// The `error.type`. Initially `abandoned`, so that a cancelled call is recorded as such.
    error: Option<&'static str>,
}

/// Starts the span of a call and sets its `traceparent` header. Returns `None` if the request is not
/// sampled.
pub(super) fn begin(call: &mut Call) -> Option<Box<CallSpan>> {
    let place = call.context.span.as_ref()?.call();
    call.headers.insert(TRACEPARENT, place.header_value());
    let context = Arc::clone(&call.context);
    let (upstream, method) = (&call.upstream, call.method.as_str());
    let template = template(call);
    let mut attributes = vec![
        KeyValue::new("http.request.method", method.to_owned()),
        KeyValue::new("server.address", upstream.authority().host().to_owned()),
        KeyValue::new("url.full", format!("{}{template}", upstream.url())),
        KeyValue::new("url.template", template.clone()),
        KeyValue::new("switchback.upstream", upstream.name().to_string()),
        KeyValue::new("switchback.role", upstream.role().name()),
    ];
    attributes.extend(upstream.port().map(|port| KeyValue::new("server.port", i64::from(port))));
    if call.delivery.sent > 0 {
        attributes.push(KeyValue::new("http.request.resend_count", i64::from(call.delivery.sent)));
    }
    let name = format!("{method} {template}");
    let (started, ended, status, error) = (Instant::now(), None, None, Some("abandoned"));
    Some(Box::new(CallSpan { context, place, started, ended, name, attributes, status, error }))
}

/// Returns the path of a call with `*` for each segment that is no literal of the contract of the side
/// that it is sent to.
fn template(call: &Call) -> String {
    let path = call.target.split('?').next().unwrap_or_default();
    let facts = call.context.facts();
    let Some(front) = &facts.front else { return String::new() };
    let is = |service: &SideUpstreams| service.has(&call.upstream);
    let is_own =
        front.own.as_ref().is_some_and(is) || front.beside.iter().flat_map(|beside| &beside.own).any(is);
    let side = if is_own { front.serves } else { front.serves.other() };
    call.context.program.pack().disclosures[side].outline(path)
}

/// Finishes the span of a call: immediately on an error, otherwise when the response body is
/// dropped.
pub(super) fn end(
    span: Option<Box<CallSpan>>,
    outcome: Result<Response, GatewayError>,
) -> Result<Response, GatewayError> {
    let Some(mut span) = span else { return outcome };
    match outcome {
        Err(error) => {
            span.error = Some(error.kind().name());
            Err(error)
        }
        Ok(response) => {
            span.status = Some(response.status().as_u16());
            Ok(response.map(|body| body.with_watcher(span)))
        }
    }
}

impl BodyWatcher for CallSpan {
    fn chunk(&mut self, _bytes: &Bytes) {}

    fn on_error(&mut self, error: &GatewayError) {
        self.error = Some(error.kind().name());
    }

    fn end(&mut self, end: BodyEnd) {
        self.ended = Some(Instant::now());
        if end == BodyEnd::Complete {
            self.error = None;
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        let Some(span) = &self.context.span else { return };
        let mut attributes = std::mem::take(&mut self.attributes);
        let mut is_failed = self.error.is_some_and(|error| error != "abandoned");
        if let Some(status) = self.status {
            attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
            if status >= 400 && self.error.is_none() {
                is_failed = true;
                attributes.push(KeyValue::new("error.type", status.to_string()));
            }
        }
        if let Some(error) = self.error {
            attributes.push(KeyValue::new("error.type", error));
        }
        let (name, started) = (std::mem::take(&mut self.name), self.started);
        let ended = self.ended.unwrap_or_else(Instant::now);
        span.record_call(self.place, EndedSpan { name, started, ended, attributes, is_failed });
    }
}
