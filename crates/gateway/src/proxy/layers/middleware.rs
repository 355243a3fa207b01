//! The future of a layer that decides before its inner service and touches up after it, without boxing either: most layers
//! are of this kind.

use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What a layer keeps while the layers below it answer. Dropped without `finish`, it has learnt that the client went away.
pub trait Finish<O> {
    /// Has the last word on an outcome, in place: outcomes are large, and there are many layers.
    fn finish(self, outcome: &mut O);
}

/// A layer that decides beforehand and has nothing to say afterwards.
impl<O> Finish<O> for () {
    fn finish(self, _outcome: &mut O) {}
}

pin_project! {
    /// Resolves to an outcome that was clear at once, or to the inner future's, finished by `state`.
    #[project = AfterProjection]
    pub enum After<F, T>
    where
        F: Future,
    {
        Early { outcome: Option<F::Output> },
        Wait {
            #[pin]
            inner: F,
            state: Option<T>,
        },
    }
}

impl<F: Future, T: Finish<F::Output>> After<F, T> {
    /// The layer has decided: the inner service is not asked.
    pub fn early(outcome: F::Output) -> After<F, T> {
        After::Early { outcome: Some(outcome) }
    }

    /// The inner service answers, and `state` has the last word.
    pub fn wait(inner: F, state: T) -> After<F, T> {
        After::Wait { inner, state: Some(state) }
    }
}

impl<F: Future, T: Finish<F::Output>> Future for After<F, T> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project() {
            AfterProjection::Early { outcome } => {
                Poll::Ready(outcome.take().expect("a future is not polled after it is ready"))
            }
            AfterProjection::Wait { inner, state } => {
                let mut polled = inner.poll(cx);
                if let Poll::Ready(outcome) = &mut polled {
                    let state = state.take().expect("a future is not polled after it is ready");
                    state.finish(outcome);
                }
                polled
            }
        }
    }
}
