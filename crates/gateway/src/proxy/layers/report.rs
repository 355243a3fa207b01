//! Reports each request when its response has ended or its client has disconnected: to the metrics
//! and usage counters, in the access log, as a span, and to the sample of recent requests. The layer
//! sits outside `rescue`, so error responses are reported with the status that the client received.

use super::ending::{EndedRequest, ResponseEnd};
use super::middleware::{Before, Middleware};
use super::{access_log, count, sample, trace};
use crate::body::{BodyEnd, BodyWatcher};
use crate::error::GatewayError;
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use crate::recent::RecentRequests;
use crate::retire::Usage;
use crate::telemetry::metrics::requests_in_flight;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use metrics::Gauge;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct ReportLayer {
    in_flight: Gauge,
    reporters: Reporters,
}

/// The receivers of reports, other than logs and metrics.
#[derive(Clone)]
struct Reporters {
    usage: Usage,
    recent: RecentRequests,
}

impl ReportLayer {
    pub(crate) fn new(usage: Usage, recent: RecentRequests) -> ReportLayer {
        ReportLayer { in_flight: requests_in_flight(), reporters: Reporters { usage, recent } }
    }
}

impl Middleware<Request> for ReportLayer {
    type Inward = Request;
    type Kept = PendingReport;
    type Fault = Infallible;

    fn before(&self, request: Request) -> Before<Self, Request> {
        self.in_flight.increment(1.0);
        if self.reporters.recent.is_on() {
            request.context.record.set_traced();
        }
        let report = PendingReport {
            context: Arc::clone(&request.context),
            in_flight: self.in_flight.clone(),
            reporters: self.reporters.clone(),
            ending: ResponseEnd::default(),
            is_open_ended: false,
            head: None,
            own_time: None,
            body_bytes: 0,
        };
        ControlFlow::Continue((request, report))
    }

    fn after(mut report: PendingReport, response: &mut Response) {
        report.ending.on_response(response);
        // Tunnels and event streams last as long as the client wants; their duration is no measure
        // of the gateway.
        report.is_open_ended = is_open_ended(response);
        let head = report.context.arrived.elapsed();
        report.head = Some(head);
        report.own_time = report.context.own_time(head).filter(|_| !report.is_open_ended);
        response.body_mut().watch(Box::new(report));
    }
}

/// A report under construction. `Drop` delivers it, so each request is reported exactly once,
/// however it ends.
pub(crate) struct PendingReport {
    context: Arc<RequestContext>,
    in_flight: Gauge,
    reporters: Reporters,
    ending: ResponseEnd,
    is_open_ended: bool,
    /// Time from arrival to the head of the response.
    head: Option<Duration>,
    own_time: Option<Duration>,
    body_bytes: u64,
}

/// Returns whether a response is a tunnel or an event stream.
fn is_open_ended(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    let is_stream =
        kind.get(..EVENT_STREAM.len()).is_some_and(|start| start.eq_ignore_ascii_case(EVENT_STREAM));
    is_stream || response.status() == StatusCode::SWITCHING_PROTOCOLS
}

/// The media type of server-sent events.
const EVENT_STREAM: &[u8] = b"text/event-stream";

impl BodyWatcher for PendingReport {
    fn chunk(&mut self, bytes: &Bytes) {
        self.body_bytes += bytes.len() as u64;
    }

    fn on_error(&mut self, error: &GatewayError) {
        self.ending.on_error(error);
    }

    fn end(&mut self, end: BodyEnd) {
        self.ending.on_end(end);
    }
}

impl Drop for PendingReport {
    fn drop(&mut self) {
        self.in_flight.decrement(1.0);
        let ended = EndedRequest {
            facts: self.context.facts(),
            ending: &self.ending,
            body_bytes: self.body_bytes,
            took: self.context.arrived.elapsed(),
            is_open_ended: self.is_open_ended,
            head: self.head,
            own_time: self.own_time,
        };
        count::count(&ended, &self.reporters.usage);
        access_log::write(&ended);
        trace::record(&ended);
        sample::record(&ended, &self.reporters.recent);
    }
}
