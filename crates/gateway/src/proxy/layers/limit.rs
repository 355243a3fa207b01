//! Limits concurrent requests, in total and per client. A request above a limit is rejected at
//! once: a queue would only add latency for all clients.

use super::middleware::Middleware;
use crate::error::GatewayError;
use crate::proxy::concurrency::{ConcurrencyLimit, PerClientLimit, Permit, limit_error};
use crate::proxy::{Request, Response};
use std::ops::ControlFlow;

/// A source of permits for requests.
pub(crate) trait PermitSource: Clone {
    /// The limit's name in the metrics.
    const NAME: &'static str;

    /// Returns a permit, or `None` if all are in use.
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
        // Unknown clients share one limit, so inventing tokens does not raise it.
        self.take(request.context.known_client().map_or("", |client| &client.id))
    }
}

/// Rejects requests while all permits are in use.
#[derive(Clone)]
pub(crate) struct LimitLayer<T> {
    source: T,
}

impl LimitLayer<ConcurrencyLimit> {
    /// Allows at most `in_flight_max` concurrent requests.
    pub(crate) fn new(in_flight_max: usize) -> LimitLayer<ConcurrencyLimit> {
        LimitLayer { source: ConcurrencyLimit::new(in_flight_max) }
    }
}

impl LimitLayer<PerClientLimit> {
    /// Allows at most `client_in_flight_max` concurrent requests per client, so one client cannot
    /// starve the others. Requires `authenticate` outside of it.
    pub(crate) fn per_client(client_in_flight_max: usize) -> LimitLayer<PerClientLimit> {
        LimitLayer { source: PerClientLimit::new(client_in_flight_max) }
    }
}

impl<T: PermitSource> Middleware<Request> for LimitLayer<T> {
    type Inward = Request;
    /// Released when the response body ends.
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
