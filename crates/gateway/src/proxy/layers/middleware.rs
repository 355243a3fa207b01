//! A layer that decides before its inner service and touches up after it, without boxing either: most layers are of this kind.
//! Each of them says what it does; that it is a layer, asks for readiness and passes it on is said here, once.

use crate::proxy::Response;
use pin_project_lite::pin_project;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tower::{Layer, Service};

/// What a layer does about a request of type `R`.
pub(crate) trait Middleware<R> {
    /// What goes inwards.
    type Inward;
    /// What it keeps while the layers below answer. Dropped without `after`, it has learnt that they failed or that the client
    /// went away.
    type Kept;
    /// What it fails with: `GatewayError`, or nothing at all.
    type Fault;

    /// Sends a request on inwards, or has its outcome at once: then the inner service is not asked.
    #[expect(clippy::type_complexity, reason = "an alias would hide what a layer chooses between")]
    fn before(&self, request: R) -> ControlFlow<Result<Response, Self::Fault>, (Self::Inward, Self::Kept)>;

    /// Has the last word on an answer, in place: answers are large, and there are many layers.
    fn after(_kept: Self::Kept, _response: &mut Response) {}
}

/// The layer that does this.
pub(crate) fn layer<M>(middleware: M) -> MiddlewareLayer<M> {
    MiddlewareLayer(middleware)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MiddlewareLayer<M>(M);

impl<S, M: Clone> Layer<S> for MiddlewareLayer<M> {
    type Service = MiddlewareService<S, M>;

    fn layer(&self, inner: S) -> MiddlewareService<S, M> {
        MiddlewareService { inner, middleware: self.0.clone() }
    }
}

/// A service and what is done around it.
#[derive(Clone)]
pub(crate) struct MiddlewareService<S, M> {
    inner: S,
    middleware: M,
}

impl<S, M, R> Service<R> for MiddlewareService<S, M>
where
    M: Middleware<R>,
    S: Service<M::Inward, Response = Response, Error: From<M::Fault>>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = MiddlewareFuture<S::Future, M, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        match self.middleware.before(request) {
            ControlFlow::Break(outcome) => MiddlewareFuture::Early { outcome: Some(outcome) },
            ControlFlow::Continue((inward, kept)) => {
                MiddlewareFuture::Wait { inner: self.inner.call(inward), kept: Some(kept) }
            }
        }
    }
}

pin_project! {
    /// Resolves to an outcome that was clear at once, or to the inner future's.
    #[project = AnsweringProjection]
    pub enum MiddlewareFuture<F, M, R>
    where
        M: Middleware<R>,
    {
        Early { outcome: Option<Result<Response, M::Fault>> },
        Wait {
            #[pin]
            inner: F,
            kept: Option<M::Kept>,
        },
    }
}

impl<F, M, R, E> Future for MiddlewareFuture<F, M, R>
where
    M: Middleware<R>,
    F: Future<Output = Result<Response, E>>,
    E: From<M::Fault>,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            AnsweringProjection::Early { outcome } => {
                let outcome = outcome.take().expect("a future is not polled after it is ready");
                Poll::Ready(outcome.map_err(E::from))
            }
            AnsweringProjection::Wait { inner, kept } => {
                let mut outcome = ready!(inner.poll(cx));
                let kept = kept.take().expect("a future is not polled after it is ready");
                if let Ok(response) = &mut outcome {
                    M::after(kept, response);
                }
                Poll::Ready(outcome)
            }
        }
    }
}
