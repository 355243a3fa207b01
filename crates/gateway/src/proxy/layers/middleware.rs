//! An adapter for layers that act on the request before the inner service and on the response after
//! it. Most layers are of this kind. The adapter implements the `tower` contract once for all of
//! them, without boxing futures.

use crate::proxy::Response;
use pin_project_lite::pin_project;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tower::layer::layer_fn;
use tower::{Layer, Service};

/// The behaviour of a layer for a request of type `R`.
pub(crate) trait Middleware<R> {
    /// The request type of the inner service.
    type Inward;
    /// State between `before` and `after`. If it is dropped without a call of `after`, the inner
    /// service failed or the client disconnected.
    type Kept;
    /// The error type; `Infallible` if the layer cannot fail.
    type Fault;

    /// Returns the request for the inner service with the state, or breaks with an outcome. In that
    /// case the inner service is not called.
    fn before(&self, request: R) -> Before<Self, R>;

    /// Modifies a response in place. Responses are large and there are many layers, so moving them
    /// would cost.
    fn after(_kept: Self::Kept, _response: &mut Response) {}
}

/// The result of [`Middleware::before`].
pub(crate) type Before<M, R> = ControlFlow<
    Result<Response, <M as Middleware<R>>::Fault>,
    (<M as Middleware<R>>::Inward, <M as Middleware<R>>::Kept),
>;

/// Wraps a middleware as a `tower` layer.
pub(crate) fn layer<S, M: Clone>(middleware: M) -> impl Layer<S, Service = MiddlewareService<S, M>> {
    layer_fn(move |inner| MiddlewareService { inner, middleware: middleware.clone() })
}

/// An inner service with a middleware around it.
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
    /// Resolves to an early outcome, or to that of the inner future.
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
