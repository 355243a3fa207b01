//! The future of a layer that decides before its inner service and touches up after it, without boxing either: most layers
//! are of this kind.

use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pin_project! {
    /// Resolves to an outcome that was clear at once, or to `then(state, output)` of the inner future. Dropping it drops
    /// `state`, by which a layer learns that the client went away.
    #[project = AfterProjection]
    pub enum After<F, T, O>
    where
        F: Future,
    {
        Early { outcome: Option<O> },
        Wait {
            #[pin]
            inner: F,
            state: Option<T>,
            then: fn(T, F::Output) -> O,
        },
    }
}

impl<F: Future, T, O> After<F, T, O> {
    /// The layer has decided: the inner service is not asked.
    pub fn early(outcome: O) -> After<F, T, O> {
        After::Early { outcome: Some(outcome) }
    }

    /// The inner service answers, and `then` has the last word.
    pub fn wait(inner: F, state: T, then: fn(T, F::Output) -> O) -> After<F, T, O> {
        After::Wait { inner, state: Some(state), then }
    }
}

impl<F: Future, T, O> Future for After<F, T, O> {
    type Output = O;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<O> {
        match self.project() {
            AfterProjection::Early { outcome } => {
                Poll::Ready(outcome.take().expect("a future is not polled after it is ready"))
            }
            AfterProjection::Wait { inner, state, then } => {
                let output = ready!(inner.poll(cx));
                let state = state.take().expect("a future is not polled after it is ready");
                Poll::Ready(then(state, output))
            }
        }
    }
}
