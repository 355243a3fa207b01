//! Limits the time from arrival to the response head, independently of the timeouts of single
//! calls. Limits of the body apply after the head. Requests that are forwarded unchanged are
//! exempt: their bodies may be long, and their responses may be long polls. `upstream` limits only
//! the idle time of their connections.

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
use tower::Service;

#[derive(Clone)]
pub(crate) struct Timeout<S> {
    pub inner: S,
    /// The limit of requests that wait before their front is known.
    pub total: Duration,
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
    /// Resolves to the inner outcome, or to a timeout error.
    pub struct InTime<F> {
        #[pin]
        inner: F,
        // Created on the first `Pending`: many responses are ready at once.
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
        // Checked on every poll: the decision to forward is made further in.
        if this.context.record.is_forwarded() {
            return Poll::Pending;
        }
        if this.timer.is_none() {
            // The layers below have found the front by now, before they first wait.
            let total = this.context.facts().limits().map_or(*this.total, |limits| limits.total_timeout);
            this.timer.set(Some(tokio::time::sleep(total)));
        }
        let timer = this.timer.as_pin_mut().expect("set just above");
        timer.poll(cx).map(|()| {
            Err(GatewayError::new(ErrorKind::UpstreamTimeout, "the budget of the whole request is spent")
                .into())
        })
    }
}
