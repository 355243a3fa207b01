//! The silence of a forwarded call, which is measured over both of its bodies: an upload may take its time, and so may a stream
//! of events, as long as bytes pass in either direction.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use tokio::time::Instant;

/// When the last byte of a forwarded call passed. Shared by its request, its answer and the wait between them.
#[derive(Debug)]
pub(crate) struct LastByte {
    began: Instant,
    /// Milliseconds since then.
    passed: AtomicU64,
    /// Longest silence.
    idle: Duration,
    is_answered: AtomicBool,
}

impl LastByte {
    /// A call that begins now and may be silent for `idle`.
    pub(crate) fn new(idle: Duration) -> Arc<LastByte> {
        let (passed, is_answered) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(LastByte { began: Instant::now(), passed, idle, is_answered })
    }

    /// Notes that bytes pass.
    pub(crate) fn pass(&self) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.passed.store(passed, Relaxed);
    }

    /// Notes that the head of the answer has come.
    pub(crate) fn answer(&self) {
        self.pass();
        self.is_answered.store(true, Relaxed);
    }

    /// Whether the head of the answer has come: from then on, a client may be silent for as long as the service.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Relaxed)
    }

    /// Longest silence.
    pub(crate) fn idle(&self) -> Duration {
        self.idle
    }

    /// The end of the longest silence that began with the last byte; none when it is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let deadline = self.began + Duration::from_millis(self.passed.load(Relaxed)) + self.idle;
        (deadline > Instant::now()).then_some(deadline)
    }
}
