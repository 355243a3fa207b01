//! Requests that complete even if their client disconnects. The request runs in the connection's
//! task while the client is connected, and moves to its own task only when the client leaves.

use crate::error::GatewayError;
use crate::proxy::Response;
use crate::proxy::request::KnownRequest;
use futures_util::future::BoxFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

type FinishResult = Result<Response, GatewayError>;

/// Future that completes its work even when it is dropped.
pub(super) struct Finishing {
    /// `None` after completion.
    work: Option<BoxFuture<'static, FinishResult>>,
    has_begun: bool,
    request: Arc<KnownRequest>,
    /// Delays shutdown until the work completes.
    token: TaskTrackerToken,
}

impl Finishing {
    /// Wraps `work`. Shutdown waits for the tasks of `detached`.
    pub(super) fn new(
        work: BoxFuture<'static, FinishResult>,
        request: Arc<KnownRequest>,
        detached: &TaskTracker,
    ) -> Finishing {
        Finishing { work: Some(work), has_begun: false, request, token: detached.token() }
    }
}

impl Future for Finishing {
    type Output = FinishResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<FinishResult> {
        self.has_begun = true;
        let work = self.work.as_mut().expect("a future is not polled after it is ready");
        let polled = work.as_mut().poll(cx);
        if polled.is_ready() {
            // A completed future must not be polled again by the detached task.
            self.work = None;
        }
        polled
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        // Work that panicked must not be polled again, and a runtime that is shutting down accepts
        // no tasks. Work that was never polled has had no effect and may be dropped.
        if !self.has_begun || std::thread::panicking() || Handle::try_current().is_err() {
            return;
        }
        if let Some(work) = self.work.take() {
            // Set before the spawn: a plan that is waiting checks this flag with its next poll.
            self.request.context.record.set_left();
            tokio::spawn(alone(work, Arc::clone(&self.request), self.token.clone()));
        }
    }
}

async fn alone(work: BoxFuture<'static, FinishResult>, request: Arc<KnownRequest>, _token: TaskTrackerToken) {
    let outcome = work.await;
    let (id, operation) = (request.context.id, &**request.operation_key());
    match outcome {
        Ok(response) => {
            let status = response.status().as_u16();
            tracing::info!(request_id = %id, operation, status, "a request whose client disconnected has finished");
        }
        Err(error) => {
            tracing::warn!(request_id = %id, operation, ?error, "a request whose client disconnected has failed");
        }
    }
}
