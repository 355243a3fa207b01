//! The switch between the data path and whoever captures.

use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use switchback_engine::har::{Body, Exchange};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Requests recorded at one time.
const RECORDINGS_MAX: usize = 64;
/// Finished exchanges that wait to be taken.
const QUEUE_MAX: usize = 256;
/// Bytes of bodies in the exchanges that wait.
const QUEUE_BYTES_MAX: usize = 32 << 20;

/// Where captures are opened, and where the data path sees whether one is. Clones share it. Seeing that none is open costs
/// one read of memory that is not written meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Tap(Arc<ArcSwapOption<Capture>>);

/// What is to be recorded.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// As the contract writes it; none = all.
    pub operation: Option<String>,
    /// By enrolled name; none = all.
    pub client: Option<String>,
    /// Of the requests that fit, between 0 and 1.
    pub share: f64,
    /// Bytes kept of each body; of a longer one the archive says that it is missing.
    pub body_bytes_max: usize,
}

/// An open capture, as the data path sees it.
#[derive(Debug)]
pub struct Capture {
    wanted: Wanted,
    at_work: AtomicUsize,
    queued_bytes: AtomicUsize,
    left_out: AtomicU64,
    exchanges: mpsc::Sender<Exchange>,
    /// Somebody asked it to end.
    ending: CancellationToken,
    /// A recording has ended.
    released: Notify,
}

/// An open capture, as its reader sees it. Dropping it closes the capture.
#[derive(Debug)]
pub struct Captured {
    tap: Tap,
    capture: Arc<Capture>,
    pub(super) exchanges: mpsc::Receiver<Exchange>,
    /// Until when recordings at work are waited for, once it is ending.
    until: Option<Instant>,
}

/// How long requests that are being answered are waited for when a capture is asked to end.
const LAST_WAIT: Duration = Duration::from_secs(1);

impl Tap {
    /// Opens a capture; none while another is open.
    pub fn open(&self, wanted: Wanted) -> Option<Captured> {
        let (sender, exchanges) = mpsc::channel(QUEUE_MAX);
        let capture = Arc::new(Capture {
            wanted,
            at_work: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
            left_out: AtomicU64::new(0),
            exchanges: sender,
            ending: CancellationToken::new(),
            released: Notify::new(),
        });
        let none: Option<Arc<Capture>> = None;
        let before = self.0.compare_and_swap(&none, Some(Arc::clone(&capture)));
        before.is_none().then(|| Captured { tap: self.clone(), capture, exchanges, until: None })
    }

    /// Asks the open capture to end: nothing further is recorded, and what is being recorded is still handed over. Says
    /// whether one was open.
    pub fn end(&self) -> bool {
        let capture = self.0.swap(None);
        capture.is_some_and(|capture| {
            capture.ending.cancel();
            true
        })
    }

    /// The open capture, when it takes this request. `sample_roll` is between 0 and 1.
    pub fn take(&self, sample_roll: impl FnOnce() -> f64) -> Option<Arc<Capture>> {
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

impl Capture {
    /// Bytes to be kept of each body.
    pub fn body_bytes_max(&self) -> usize {
        self.wanted.body_bytes_max
    }

    /// Whether an exchange is of the kind that is wanted.
    pub fn wants(&self, operation: &str, client: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        fits(&self.wanted.operation, operation) && fits(&self.wanted.client, client)
    }

    /// A recording that [`Tap::take`] allowed has ended.
    pub(super) fn release(&self) {
        self.at_work.fetch_sub(1, Relaxed);
        self.released.notify_one();
    }

    /// Hands an exchange over, or counts it where there is no room.
    pub(super) fn offer(&self, exchange: Exchange) {
        let size = bytes(&exchange);
        let has_room = self.queued_bytes.fetch_add(size, Relaxed) + size <= QUEUE_BYTES_MAX;
        if !has_room || self.exchanges.try_send(exchange).is_err() {
            self.queued_bytes.fetch_sub(size, Relaxed);
            self.left_out.fetch_add(1, Relaxed);
        }
    }
}

impl Captured {
    /// The next exchange; waits for one. None when the capture was asked to end and nothing is left.
    pub async fn next(&mut self) -> Option<Exchange> {
        let ending = self.capture.ending.clone();
        let exchange = tokio::select! {
            biased;
            exchange = self.exchanges.recv() => exchange?,
            () = ending.cancelled() => self.last().await?,
        };
        self.capture.queued_bytes.fetch_sub(bytes(&exchange), Relaxed);
        Some(exchange)
    }

    /// What is still handed over by requests that were being answered when the capture was asked to end.
    async fn last(&mut self) -> Option<Exchange> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + LAST_WAIT);
        loop {
            // Looked at before the queue is: a recording hands over first and ends then.
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

    /// Requests that there was no room for.
    pub fn left_out(&self) -> u64 {
        self.capture.left_out.load(Relaxed)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // Another one may have been opened since this one was asked to end.
        self.tap.0.compare_and_swap(&Some(Arc::clone(&self.capture)), None);
    }
}

/// Bytes of the bodies of an exchange.
fn bytes(exchange: &Exchange) -> usize {
    let body = |body: &Body| body.known().map_or(0, |bytes| bytes.len());
    let answer = exchange.response.as_ref().map_or(0, |response| body(&response.body));
    let calls = exchange.gateway.iter().flat_map(|known| &known.calls).map(bytes).sum::<usize>();
    body(&exchange.request.body) + answer + calls
}
