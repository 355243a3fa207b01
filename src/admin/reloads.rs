//! Requests to the task that reloads.

use crate::operate::{Refusal, RefusalKind};
use tokio::sync::{mpsc, oneshot};

/// A request to the task that reloads.
#[derive(Debug)]
pub enum ReloadRequest {
    /// Load what is on disk. Ends the restoration of a pack.
    Reload { author: String },
    /// Serve a recorded pack instead of the one on disk.
    Restore {
        /// The id, or the beginning of it.
        id: String,
        author: String,
        answer: oneshot::Sender<Result<(), Refusal>>,
    },
    /// The restored pack in the store is another one.
    Follow,
}

/// Most queued requests.
const QUEUED_MAX: usize = 8;

/// Sends requests to the task that reloads. Clones send to the same.
#[derive(Clone, Debug)]
pub struct ReloadRequests(mpsc::Sender<ReloadRequest>);

impl ReloadRequests {
    pub fn new() -> (ReloadRequests, mpsc::Receiver<ReloadRequest>) {
        let (sender, requests) = mpsc::channel(QUEUED_MAX);
        (ReloadRequests(sender), requests)
    }

    /// Requests a reload on behalf of `author`. While the queue is full, reloads are under way anyway.
    pub fn ask(&self, author: &str) {
        let _ = self.0.try_send(ReloadRequest::Reload { author: author.to_owned() });
    }

    /// Restores a recorded pack. Returns once it serves here.
    pub(crate) async fn restore(&self, id: &str, author: &str) -> Result<(), Refusal> {
        let (answer, answered) = oneshot::channel();
        let request = ReloadRequest::Restore { id: id.to_owned(), author: author.to_owned(), answer };
        let stopping = || Refusal::Request(RefusalKind::Failed, "the gateway is about to stop".to_owned());
        self.0.send(request).await.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }

    /// Reports another restored pack. Returns whether the task will see it.
    pub(crate) fn follow(&self) -> bool {
        self.0.try_send(ReloadRequest::Follow).is_ok()
    }
}
