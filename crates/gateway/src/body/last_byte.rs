//! Idle time of a forwarded call, measured across both of its bodies. A long upload or an event
//! stream may continue as long as bytes pass in either direction.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use tokio::time::Instant;

/// Time of the last byte of a forwarded call. Shared by the request body, the response body and the
/// wait between them.
#[derive(Debug)]
pub(crate) struct LastByte {
    began: Instant,
    /// Time of the last byte, in milliseconds since `began`.
    passed: AtomicU64,
    /// Longest idle time.
    idle: Duration,
    is_answered: AtomicBool,
}

impl LastByte {
    /// Starts measuring a call that may be idle for at most `idle`.
    pub(crate) fn new(idle: Duration) -> Arc<LastByte> {
        let (passed, is_answered) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(LastByte { began: Instant::now(), passed, idle, is_answered })
    }

    /// Records that bytes have passed.
    pub(crate) fn pass(&self) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.passed.store(passed, Relaxed);
    }

    /// Records that the response head has arrived.
    pub(crate) fn answer(&self) {
        self.pass();
        self.is_answered.store(true, Relaxed);
    }

    /// Returns whether the response head has arrived. From then on, the client may be idle for as
    /// long as the service.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Relaxed)
    }

    /// Returns the longest idle time.
    pub(crate) fn idle(&self) -> Duration {
        self.idle
    }

    /// Returns the time at which the current idle period exceeds its limit, or `None` if it already
    /// has.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let deadline = self.began + Duration::from_millis(self.passed.load(Relaxed)) + self.idle;
        (deadline > Instant::now()).then_some(deadline)
    }
}
