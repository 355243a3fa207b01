//! How many requests are answered at once, over all clients and for each. Beyond the limit a request is refused at once:
//! a queue would only make everyone late.

use super::middleware::Middleware;
use crate::error::GatewayError;
use crate::proxy::concurrency::{ConcurrencyLimit, PerClientLimit, Permit, limit_error};
use crate::proxy::{Request, Response};
use std::ops::ControlFlow;

/// Where the permit of a request comes from.
pub(crate) trait PermitSource: Clone {
    /// The limit's name in the metrics.
    const NAME: &'static str;

    /// A permit for this request; none when all are taken.
    fn permit(&self, request: &Request) -> Option<Permit>;
}

impl PermitSource for ConcurrencyLimit {
    const NAME: &'static str = "in_flight";

    fn permit(&self, _request: &Request) -> Option<Permit> {
        self.take()
    }
}

impl PermitSource for PerClientLimit {
    const NAME: &'static str = "client_in_flight";

    fn permit(&self, request: &Request) -> Option<Permit> {
        // Clients that nobody enrolled have one share together: whoever makes tokens up has no more of it for that.
        self.take(request.context.known_client().map_or("", |client| &client.id))
    }
}

/// Turns requests away while all permits are taken.
#[derive(Clone)]
pub(crate) struct LimitLayer<T> {
    source: T,
}

impl LimitLayer<ConcurrencyLimit> {
    /// At most `in_flight_max` requests at one time.
    pub(crate) fn new(in_flight_max: usize) -> LimitLayer<ConcurrencyLimit> {
        LimitLayer { source: ConcurrencyLimit::new(in_flight_max) }
    }
}

impl LimitLayer<PerClientLimit> {
    /// At most `client_in_flight_max` requests of each client at one time, so that one that floods does not starve the
    /// others. Sits behind `authenticate`.
    pub(crate) fn per_client(client_in_flight_max: usize) -> LimitLayer<PerClientLimit> {
        LimitLayer { source: PerClientLimit::new(client_in_flight_max) }
    }
}

impl<T: PermitSource> Middleware<Request> for LimitLayer<T> {
    type Inward = Request;
    /// Taken until the answer's body has ended.
    type Kept = Permit;
    type Fault = GatewayError;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, GatewayError>, (Request, Permit)> {
        match self.source.permit(&request) {
            None => ControlFlow::Break(Err(limit_error(T::NAME))),
            Some(permit) => ControlFlow::Continue((request, permit)),
        }
    }

    fn after(permit: Permit, response: &mut Response) {
        response.body_mut().watch(Box::new(permit));
    }
}
