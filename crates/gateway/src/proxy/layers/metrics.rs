//! Counts and times requests by client, operation and outcome. Outside `rescue`, so that errors made by the gateway count
//! as what the client saw. The handles of the recorder are kept per thread, so that cores share no lock on the way.

use super::middleware::Middleware;
use crate::body::{End, Watch};
use crate::proxy::context::RequestContext;
use crate::proxy::error_form::ErrorStatus;
use crate::proxy::{Request, Response};
use crate::telemetry::metrics::{Outcome, RequestMeter, requests_in_flight};
use bytes::Bytes;
use http::StatusCode;
use metrics::Gauge;
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct Metrics {
    in_flight: Gauge,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics { in_flight: requests_in_flight() }
    }
}

impl Middleware<Request> for Metrics {
    type Inward = Request;
    type Kept = Sample;
    type Fault = Infallible;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, Infallible>, (Request, Sample)> {
        self.in_flight.increment(1.0);
        let context = Arc::clone(&request.context);
        let sample = Sample { context, in_flight: self.in_flight.clone(), status: None, end: None };
        ControlFlow::Continue((request, sample))
    }

    fn after(mut sample: Sample, response: &mut Response) {
        // An error counts as one, also where its side answers errors with a success.
        let told = response.extensions().get::<ErrorStatus>();
        sample.status = Some(told.map_or(response.status(), |told| told.0));
        response.body_mut().watch(Box::new(sample));
    }
}

/// One request being measured; counted when it is dropped.
pub(crate) struct Sample {
    context: Arc<RequestContext>,
    in_flight: Gauge,
    status: Option<StatusCode>,
    end: Option<End>,
}

impl Sample {
    fn outcome(&self) -> Outcome {
        let Some(status) = self.status else { return Outcome::Cancelled };
        match self.end {
            Some(End::Complete) => {}
            Some(End::Failed) => return Outcome::UpstreamError,
            Some(End::Abandoned) | None => return Outcome::Cancelled,
        }
        if let Some(fault) = self.context.fault() {
            return fault.outcome;
        }
        match status.as_u16() {
            100..=399 => Outcome::Ok,
            400..=499 => Outcome::ClientError,
            _ => Outcome::UpstreamError,
        }
    }
}

impl Watch for Sample {
    fn chunk(&mut self, _bytes: &Bytes) {}

    fn end(&mut self, end: End) {
        self.end = Some(end);
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        self.in_flight.decrement(1.0);
        let seconds = self.context.took().as_secs_f64();
        let outcome = self.outcome();
        let status = self.status.map(|status| status.as_u16());
        let side = self.context.front().map_or("", |front| &self.context.program.side(front.serves).name);
        with_meter(self.context.client(), self.context.operation(), side, |meter| {
            meter.record(outcome, status, seconds);
        });
    }
}

/// Things by what operators and contracts call them.
type ByName<T> = HashMap<String, T, foldhash::fast::RandomState>;

thread_local! {
    /// By client, then operation, then in a list of at most a few sides: all sets are bounded by enrolment and contract.
    static METERS: RefCell<ByName<ByName<Vec<RequestMeter>>>> = RefCell::new(ByName::default());
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
