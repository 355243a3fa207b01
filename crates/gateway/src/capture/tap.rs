//! The connection between the data path and a capture.

use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use switchback_engine::har::Exchange;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of concurrent recordings.
const RECORDINGS_MAX: usize = 64;
/// Maximum number of queued exchanges.
const QUEUE_MAX: usize = 256;
/// Maximum total size of queued bodies, in bytes.
const QUEUE_BYTES_MAX: usize = 32 << 20;

/// Opens captures and tells the data path whether one is open. Clones share it. The check costs one
/// read of memory that is rarely written.
#[derive(Clone, Debug, Default)]
pub struct Tap(Arc<ArcSwapOption<OpenCapture>>);

/// The filter of a capture.
#[derive(Clone, Debug)]
pub struct CaptureFilter {
    /// The operation as named in the contract; `None` for all.
    pub operation: Option<String>,
    /// The client's registered name; `None` for all.
    pub client: Option<String>,
    /// Share of requests to record, between 0 and 1.
    pub share: f64,
    /// Recorded bytes per body; a longer body is marked as missing.
    pub body_bytes_max: usize,
}

/// An open capture, for the data path.
#[derive(Debug)]
pub struct OpenCapture {
    wanted: CaptureFilter,
    at_work: AtomicUsize,
    queued_bytes: AtomicUsize,
    left_out: AtomicU64,
    exchanges: mpsc::Sender<Exchange>,
    /// Cancelled to finish the capture.
    ending: CancellationToken,
    /// Notified when a recording has finished.
    released: Notify,
}

/// An open capture, for its reader. Dropping it closes the capture.
#[derive(Debug)]
pub struct Captured {
    tap: Tap,
    capture: Arc<OpenCapture>,
    pub(super) exchanges: mpsc::Receiver<Exchange>,
    /// Deadline for running recordings, set once the capture is finishing.
    until: Option<Instant>,
}

/// Time to wait for requests in flight when a capture finishes.
const LAST_WAIT: Duration = Duration::from_secs(1);

impl Tap {
    /// Opens a capture. Returns `None` if another is open.
    pub fn open(&self, wanted: CaptureFilter) -> Option<Captured> {
        let (sender, exchanges) = mpsc::channel(QUEUE_MAX);
        let capture = Arc::new(OpenCapture {
            wanted,
            at_work: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
            left_out: AtomicU64::new(0),
            exchanges: sender,
            ending: CancellationToken::new(),
            released: Notify::new(),
        });
        let none: Option<Arc<OpenCapture>> = None;
        let before = self.0.compare_and_swap(&none, Some(Arc::clone(&capture)));
        before.is_none().then(|| Captured { tap: self.clone(), capture, exchanges, until: None })
    }

    /// Finishes the open capture: no further request is recorded, but running recordings are still
    /// returned. Returns whether one was open.
    pub fn end(&self) -> bool {
        let capture = self.0.swap(None);
        capture.is_some_and(|capture| {
            capture.ending.cancel();
            true
        })
    }

    /// Returns the open capture if it records this request. `sample_roll` is between 0 and 1.
    pub fn take(&self, sample_roll: impl FnOnce() -> f64) -> Option<Arc<OpenCapture>> {
        let capture = self.0.load();
        let capture = capture.as_ref()?;
        if sample_roll() >= capture.wanted.share {
            return None;
        }
        if capture.at_work.fetch_add(1, Relaxed) >= RECORDINGS_MAX {
            capture.release();
            capture.left_out.fetch_add(1, Relaxed);
            return None;
        }
        Some(Arc::clone(capture))
    }
}

impl OpenCapture {
    /// Returns the maximum number of recorded bytes per body.
    pub fn body_bytes_max(&self) -> usize {
        self.wanted.body_bytes_max
    }

    /// Returns whether an exchange matches the filter.
    pub fn wants(&self, operation: &str, client: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        fits(&self.wanted.operation, operation) && fits(&self.wanted.client, client)
    }

    /// Releases the slot of a recording permitted by [`Tap::take`].
    pub(super) fn release(&self) {
        self.at_work.fetch_sub(1, Relaxed);
        self.released.notify_one();
    }

    /// Queues an exchange, or counts it as left out if the queue is full.
    pub(super) fn offer(&self, exchange: Exchange) {
        let size = exchange.body_bytes();
        let has_room = self.queued_bytes.fetch_add(size, Relaxed) + size <= QUEUE_BYTES_MAX;
        if !has_room || self.exchanges.try_send(exchange).is_err() {
            self.queued_bytes.fetch_sub(size, Relaxed);
            self.left_out.fetch_add(1, Relaxed);
        }
    }
}

impl Captured {
    /// Waits for the next exchange. Returns `None` once the capture is finishing and no exchange is
    /// left.
    pub async fn next(&mut self) -> Option<Exchange> {
        let ending = self.capture.ending.clone();
        let exchange = tokio::select! {
            biased;
            exchange = self.exchanges.recv() => exchange?,
            () = ending.cancelled() => self.last().await?,
        };
        self.capture.queued_bytes.fetch_sub(exchange.body_bytes(), Relaxed);
        Some(exchange)
    }

    /// Returns remaining exchanges of requests that were in flight when the capture was asked to
    /// finish.
    async fn last(&mut self) -> Option<Exchange> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + LAST_WAIT);
        loop {
            // Check this before the queue: a recording queues its exchange first and releases its
            // slot afterwards.
            let is_done = self.capture.at_work.load(Relaxed) == 0;
            match self.exchanges.try_recv() {
                Ok(exchange) => return Some(exchange),
                Err(_) if is_done => return None,
                Err(_) => {}
            }
            let released = self.capture.released.notified();
            if tokio::time::timeout_at(until, released).await.is_err() {
                return self.exchanges.try_recv().ok();
            }
        }
    }

    /// Returns the number of requests left out for lack of room.
    pub fn left_out(&self) -> u64 {
        self.capture.left_out.load(Relaxed)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // Another capture may have been opened since this one was cancelled.
        self.tap.0.compare_and_swap(&Some(Arc::clone(&self.capture)), None);
    }
}
