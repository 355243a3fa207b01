//! How many requests are answered at once, over all clients and for each. Beyond the limit a request is refused at once:
//! a queue would only make everyone late.

use super::after::{After, Finish};
use crate::error::GatewayError;
use crate::proxy::slots::{Shares, Slot, Slots, refused};
use crate::proxy::{Request, Response};
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Where the slot of a request comes from.
pub trait Source: Clone {
    /// The limit's name in the metrics.
    const NAME: &'static str;

    /// A slot for this request; none when all are taken.
    fn slot(&self, request: &Request) -> Option<Slot>;
}

impl Source for Slots {
    const NAME: &'static str = "in_flight";

    fn slot(&self, _request: &Request) -> Option<Slot> {
        self.take()
    }
}

impl Source for Shares {
    const NAME: &'static str = "client_in_flight";

    fn slot(&self, request: &Request) -> Option<Slot> {
        // Clients that nobody enrolled have one share together: whoever makes tokens up has no more of it for that.
        self.take(request.facts.known_client().map_or("", |client| &client.id))
    }
}

/// Turns requests away while all slots are taken.
#[derive(Clone)]
pub struct LimitLayer<T> {
    source: T,
}

impl LimitLayer<Slots> {
    /// At most `in_flight_max` requests at one time.
    pub fn new(in_flight_max: usize) -> LimitLayer<Slots> {
        LimitLayer { source: Slots::new(in_flight_max) }
    }
}

impl LimitLayer<Shares> {
    /// At most `client_in_flight_max` requests of each client at one time, so that one that floods does not starve the
    /// others. Sits behind `authenticate`.
    pub fn per_client(client_in_flight_max: usize) -> LimitLayer<Shares> {
        LimitLayer { source: Shares::new(client_in_flight_max) }
    }
}

impl<S, T: Source> Layer<S> for LimitLayer<T> {
    type Service = Limit<S, T>;

    fn layer(&self, inner: S) -> Limit<S, T> {
        Limit { inner, source: self.source.clone() }
    }
}

#[derive(Clone)]
pub struct Limit<S, T> {
    inner: S,
    source: T,
}

impl<S, T: Source> Service<Request> for Limit<S, T>
where
    S: Service<Request, Response = Response, Error = GatewayError>,
{
    type Response = Response;
    type Error = GatewayError;
    type Future = After<S::Future, Slot>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.source.slot(&request) {
            None => After::early(Err(refused(T::NAME))),
            Some(slot) => After::wait(self.inner.call(request), slot),
        }
    }
}

/// Taken until the answer's body has ended.
impl Finish<Result<Response, GatewayError>> for Slot {
    fn finish(self, outcome: &mut Result<Response, GatewayError>) {
        if let Ok(response) = outcome {
            response.body_mut().watch(Box::new(self));
        }
    }
}
