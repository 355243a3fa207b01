//! Counts requests when their answers have ended: for the metrics, by client, operation and outcome, with the time taken; and
//! for the usage, which outlives the process. Outside `rescue`, so that errors made by the gateway count as what the client
//! saw. The handles of the recorder are cached per thread, so that cores share no lock on the way.

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

/// One request being measured; counted when it is dropped.
pub(crate) struct RequestSample {
    context: Arc<RequestContext>,
    in_flight: Gauge,
    usage: Usage,
    ending: ResponseEnd,
    /// Whether the answer ends when one of both sides leaves: how long it takes says nothing of either.
    is_open_ended: bool,
    /// What the gateway itself took until the head of the answer.
    own: Option<Duration>,
}

/// Whether an answer is a tunnel or an event stream.
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
    // A path below no front is no API's, and whoever sends a wrong token may be anybody: both are in the metrics alone.
    let Some(front) = context.front() else { return };
    if context.fault().is_some_and(|fault| fault.kind == ErrorKind::UnknownToken.name()) {
        return;
    }
    match context.operation() {
        "" => {
            // What the gateway itself answers says nothing of the address.
            let status = status.filter(|_| outcome == Outcome::Forwarded);
            let path = called_path(context, status.and_then(|status| StatusCode::from_u16(status).ok()));
            let called = format!("{} {}", method(&context.method), label(front, &path));
            usage.count_unknown(side, context.client(), &called, outcome);
        }
        operation => usage.count(side, context.client(), operation, outcome),
    }
}

/// Things by what operators and contracts call them.
type HandlesByName<T> = HashMap<String, T, foldhash::fast::RandomState>;

thread_local! {
    /// By client, then operation, then in a list of at most a few sides: all sets are bounded by enrolment and contract.
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
