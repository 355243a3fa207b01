//! Counts each request when its response has ended: in the metrics, by client, operation and
//! outcome, with its duration; and in the persistent usage counters. The layer sits outside
//! `rescue`, so errors count with the status that the client received.
//!
//! Metric handles are cached per thread, so cores share no lock on this path.

use super::ending::ResponseEnd;
use super::middleware::Middleware;
use crate::body::{BodyEnd, BodyWatcher};
use crate::error::{ErrorKind, GatewayError};
use crate::outcome::Outcome;
use crate::proxy::context::RequestContext;
use crate::proxy::unknown_calls::{called_path, label, method};
use crate::proxy::{Request, Response};
use crate::retire::Usage;
use crate::telemetry::metrics::{RequestMeter, requests_in_flight};
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use metrics::Gauge;
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct CountLayer {
    in_flight: Gauge,
    usage: Usage,
}

impl CountLayer {
    pub(crate) fn new(usage: Usage) -> CountLayer {
        CountLayer { in_flight: requests_in_flight(), usage }
    }
}

impl Middleware<Request> for CountLayer {
    type Inward = Request;
    type Kept = RequestSample;
    type Fault = Infallible;

    fn before(
        &self,
        request: Request,
    ) -> ControlFlow<Result<Response, Infallible>, (Request, RequestSample)> {
        self.in_flight.increment(1.0);
        let context = Arc::clone(&request.context);
        let (in_flight, usage) = (self.in_flight.clone(), self.usage.clone());
        let sample = RequestSample {
            context,
            in_flight,
            usage,
            ending: ResponseEnd::default(),
            is_open_ended: false,
            own: None,
        };
        ControlFlow::Continue((request, sample))
    }

    fn after(mut sample: RequestSample, response: &mut Response) {
        sample.ending.on_response(response);
        sample.is_open_ended = is_open_ended(response);
        sample.own = sample.context.own_time().filter(|_| !sample.is_open_ended);
        response.body_mut().watch(Box::new(sample));
    }
}

/// A measurement of one request. `Drop` records it.
pub(crate) struct RequestSample {
    context: Arc<RequestContext>,
    in_flight: Gauge,
    usage: Usage,
    ending: ResponseEnd,
    /// Set for tunnels and event streams. Their duration depends on when a peer disconnects, so it
    /// is not recorded.
    is_open_ended: bool,
    /// Time spent in the gateway until the response head, without waiting for peers.
    own: Option<Duration>,
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

impl BodyWatcher for RequestSample {
    fn chunk(&mut self, _bytes: &Bytes) {}

    fn on_error(&mut self, error: &GatewayError) {
        self.ending.on_error(error);
    }

    fn end(&mut self, end: BodyEnd) {
        self.ending.on_end(end);
    }
}

impl Drop for RequestSample {
    fn drop(&mut self) {
        self.in_flight.decrement(1.0);
        let context = &*self.context;
        let outcome = self.ending.outcome(context);
        let side = context.front().map_or("", |front| &context.program.side(front.serves).name);
        with_meter(context.client(), context.operation(), side, |meter| {
            let took = (!self.is_open_ended).then(|| context.took());
            meter.record(outcome, self.ending.status(), took, self.own);
        });
        count_usage(&self.usage, context, side, outcome, self.ending.status());
    }
}

fn count_usage(usage: &Usage, context: &RequestContext, side: &str, outcome: Outcome, status: Option<u16>) {
    // Requests outside all fronts belong to no API, and the sender of an unknown token may be
    // anybody. Both are counted in the metrics only.
    let Some(front) = context.front() else { return };
    if context.fault().is_some_and(|fault| fault.kind == ErrorKind::UnknownToken.name()) {
        return;
    }
    match context.operation() {
        "" => {
            // Only a status from the front's own service confirms that the path exists.
            let status = status.filter(|_| outcome == Outcome::Forwarded);
            let path = called_path(context, status.and_then(|status| StatusCode::from_u16(status).ok()));
            let called = format!("{} {}", method(&context.method), label(front, &path));
            usage.count_unknown(side, context.client(), &called, outcome);
        }
        operation => usage.count(side, context.client(), operation, outcome),
    }
}

/// Handles by client or operation name.
type HandlesByName<T> = HashMap<String, T, foldhash::fast::RandomState>;

thread_local! {
    /// By client, then operation, then a short list of sides. Enrolment and the contracts bound all
    /// three.
    static METERS: RefCell<HandlesByName<HandlesByName<Vec<RequestMeter>>>> = RefCell::new(HandlesByName::default());
}

fn with_meter(client: &str, operation: &str, side: &str, record: impl FnOnce(&RequestMeter)) {
    let of_side = |meters: &Vec<RequestMeter>| meters.iter().position(|meter| meter.side() == side);
    METERS.with_borrow_mut(|meters| {
        if let Some(known) = meters.get(client).and_then(|operations| operations.get(operation))
            && let Some(at) = of_side(known)
        {
            return record(&known[at]);
        }
        let meter = RequestMeter::new(client, operation, side);
        record(&meter);
        meters.entry(client.to_owned()).or_default().entry(operation.to_owned()).or_default().push(meter);
    });
}
