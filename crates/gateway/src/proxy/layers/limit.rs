//! Limits concurrent requests, in total and per client. A request above a limit is rejected at
//! once: a queue would only add latency for all clients.

use super::middleware::{Before, Middleware};
use crate::error::GatewayError;
use crate::permit::Permit;
use crate::proxy::Response;
use crate::proxy::concurrency::{ConcurrencyLimit, PerClientLimit, limit_error};
use crate::proxy::request::Authenticated;
use std::ops::ControlFlow;

/// A source of permits for requests.
pub(crate) trait PermitSource<R>: Clone {
    /// The limit's name in the metrics.
    const NAME: &'static str;

    /// Returns a permit, or `None` if all are in use.
    fn permit(&self, request: &R) -> Option<Permit>;
}

impl<R> PermitSource<R> for ConcurrencyLimit {
    const NAME: &'static str = "in_flight";

    fn permit(&self, _request: &R) -> Option<Permit> {
        self.take()
    }
}

impl PermitSource<Authenticated> for PerClientLimit {
    const NAME: &'static str = "client_in_flight";

    fn permit(&self, request: &Authenticated) -> Option<Permit> {
        let (.., client) = request.parts();
        // Unknown clients share one limit, so inventing tokens does not raise it.
        self.take(client.map_or("", |client| &client.id))
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
    /// starve the others.
    pub(crate) fn per_client(client_in_flight_max: usize) -> LimitLayer<PerClientLimit> {
        LimitLayer { source: PerClientLimit::new(client_in_flight_max) }
    }
}

impl<R, T: PermitSource<R>> Middleware<R> for LimitLayer<T> {
    type Inward = R;
    /// Released when the response body ends.
    type Kept = Permit;
    type Fault = GatewayError;

    fn before(&self, request: R) -> Before<Self, R> {
        match self.source.permit(&request) {
            None => ControlFlow::Break(Err(limit_error(T::NAME))),
            Some(permit) => ControlFlow::Continue((request, permit)),
        }
    }

    fn after(permit: Permit, response: &mut Response) {
        // The response still occupies memory and an upstream connection while the client reads it.
        response.body_mut().hold(permit);
    }
}
