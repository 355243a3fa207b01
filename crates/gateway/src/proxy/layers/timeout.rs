//! The budget of a whole request, from its arrival to the head of its answer, whatever the hops below allow themselves.
//! What follows the head is watched by the body's own limits. A request that is forwarded as it comes has no such budget: its
//! body may be long, and its answer may be one that waits for something to happen. Only its silence is bounded (`upstream`).

use crate::error::{ErrorKind, GatewayError};
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;
use tower::{Layer, Service};

#[derive(Clone)]
pub(crate) struct TimeoutLayer {
    total: Duration,
}

impl TimeoutLayer {
    pub(crate) fn new(total: Duration) -> TimeoutLayer {
        TimeoutLayer { total }
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout { inner, total: self.total }
    }
}

#[derive(Clone)]
pub(crate) struct Timeout<S> {
    inner: S,
    total: Duration,
}

impl<S> Service<Request> for Timeout<S>
where
    S: Service<Request, Response = Response, Error: From<GatewayError>>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = InTime<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let context = Arc::clone(&request.context);
        InTime { inner: self.inner.call(request), timer: None, total: self.total, context }
    }
}

pin_project! {
    /// An answer that comes in time or not at all.
    pub struct InTime<F> {
        #[pin]
        inner: F,
        // Made when the first wait begins: many answers never wait.
        #[pin]
        timer: Option<Sleep>,
        total: Duration,
        context: Arc<RequestContext>,
    }
}

impl<F, E> Future for InTime<F>
where
    F: Future<Output = Result<Response, E>>,
    E: From<GatewayError>,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(outcome) = this.inner.poll(cx) {
            return Poll::Ready(outcome);
        }
        if this.context.is_forwarded() {
            return Poll::Pending;
        }
        if this.timer.is_none() {
            this.timer.set(Some(tokio::time::sleep(*this.total)));
        }
        let timer = this.timer.as_pin_mut().expect("set just above");
        timer.poll(cx).map(|()| {
            Err(GatewayError::new(ErrorKind::UpstreamTimeout, "the budget of the whole request is spent")
                .into())
        })
    }
}
