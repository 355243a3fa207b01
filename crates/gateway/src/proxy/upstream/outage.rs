//! Tracks since when a service is unreachable: it refuses connections, its responses are late, or a
//! proxy in front reports it as down. During an outage, calls that only this service can answer
//! fail at once; from time to time one call probes whether the service is back.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Minimum time between two probes.
const TRY_INTERVAL: Duration = Duration::from_secs(5);

/// Reachability of a service. Times are milliseconds since `began`, plus one, so that zero can
/// represent "never".
#[derive(Debug)]
pub(super) struct Outage {
    began: Instant,
    /// Time of the first failure since the last success, or 0.
    since: AtomicU64,
    /// Time of the last probe, or 0.
    tried: AtomicU64,
}

impl Outage {
    /// Returns a tracker without any failure.
    pub(super) fn new() -> Outage {
        Outage { began: Instant::now(), since: AtomicU64::new(0), tried: AtomicU64::new(0) }
    }

    /// Records a call that did not reach the service.
    pub(super) fn miss(&self) {
        // Later failures do not move the start of the outage.
        let _ = self.since.compare_exchange(0, self.now(), Relaxed, Relaxed);
    }

    /// Records that the service answered.
    pub(super) fn reach(&self) {
        // Read before writing: success is the common case, and a store would invalidate the cache
        // line on every core.
        if self.since.load(Relaxed) != 0 {
            self.since.store(0, Relaxed);
        }
    }

    /// Returns whether the outage has lasted for at least `after`.
    pub(super) fn is_longer_than(&self, after: Duration) -> bool {
        let since = self.since.load(Relaxed);
        since != 0 && u128::from(self.now().saturating_sub(since)) >= after.as_millis()
    }

    /// Returns whether the caller should probe the service now. At most one caller per interval
    /// receives `true`.
    pub(super) fn is_to_be_tried(&self) -> bool {
        let (now, tried) = (self.now(), self.tried.load(Relaxed));
        let is_due = tried == 0 || u128::from(now.saturating_sub(tried)) >= TRY_INTERVAL.as_millis();
        // The exchange elects one caller; all others fail at once instead of waiting for the same
        // timeout.
        is_due && self.tried.compare_exchange(tried, now, Relaxed, Relaxed).is_ok()
    }

    fn now(&self) -> u64 {
        // Plus one, so that a failure in the first millisecond is not stored as 0, which means
        // "never".
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_gone_from_its_first_miss_until_it_is_reached() {
        let outage = Outage::new();
        assert!(!outage.is_longer_than(Duration::ZERO), "nothing is known yet");
        outage.miss();
        outage.miss();
        assert!(outage.is_longer_than(Duration::ZERO) && !outage.is_longer_than(Duration::from_secs(60)));
        assert!(outage.is_to_be_tried());
        assert!(!outage.is_to_be_tried(), "one call at a time tries it");
        outage.reach();
        assert!(!outage.is_longer_than(Duration::ZERO));
    }
}
