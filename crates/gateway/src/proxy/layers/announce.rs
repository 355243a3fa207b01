//! Tells clients of a side that is going away so, in every answer: `Deprecation`, `Sunset` and `Link`, as configured for
//! the front. Outside `rescue`, so that errors say it too.

use super::after::{After, Finish};
use crate::proxy::context::Facts;
use crate::proxy::{Request, Response};
use crate::telemetry::metrics::deprecated_request;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

#[derive(Clone, Copy, Debug, Default)]
pub struct AnnounceLayer;

impl<S> Layer<S> for AnnounceLayer {
    type Service = Announce<S>;

    fn layer(&self, inner: S) -> Announce<S> {
        Announce { inner }
    }
}

#[derive(Clone)]
pub struct Announce<S> {
    inner: S,
}

impl<S> Service<Request> for Announce<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = After<S::Future, Announcing>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let facts = Arc::clone(&request.facts);
        After::wait(self.inner.call(request), Announcing(facts))
    }
}

/// A request whose front may have something to announce.
pub struct Announcing(Arc<Facts>);

impl Finish<Result<Response, Infallible>> for Announcing {
    fn finish(self, outcome: &mut Result<Response, Infallible>) {
        let Announcing(facts) = self;
        if let Ok(response) = outcome
            && let Some(front) = facts.front().filter(|front| !front.announcements.is_empty())
        {
            let side = &facts.program.side(front.serves).name;
            deprecated_request(facts.client(), side, facts.operation());
            for (name, value) in &front.announcements {
                response.headers_mut().append(name, value.clone());
            }
        }
    }
}
