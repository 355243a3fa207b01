//! Since when a service cannot be reached: there is no connection to it, it answers too late, or a proxy before it says so. What only it can answer is not worth waiting for then, and clients are told so
//! instead; now and then a call tries whether it is back.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How often a service that is gone is tried.
const TRY_INTERVAL: Duration = Duration::from_secs(5);

/// What is known of whether a service can be reached. Moments are milliseconds since `began`, plus one.
#[derive(Debug)]
pub(super) struct Outage {
    began: Instant,
    /// When it was first found unreachable, if it has not been reached since; else 0.
    since: AtomicU64,
    /// When it was last tried.
    tried: AtomicU64,
}

impl Outage {
    /// Nothing is known of the service yet.
    pub(super) fn new() -> Outage {
        Outage { began: Instant::now(), since: AtomicU64::new(0), tried: AtomicU64::new(0) }
    }

    /// Notes a call that did not reach it.
    pub(super) fn miss(&self) {
        // Only the first one counts.
        let _ = self.since.compare_exchange(0, self.now(), Relaxed, Relaxed);
    }

    /// Notes that it was reached.
    pub(super) fn reach(&self) {
        // Mostly nothing changes, and all cores read it.
        if self.since.load(Relaxed) != 0 {
            self.since.store(0, Relaxed);
        }
    }

    /// Whether it has not been reached for as long as this.
    pub(super) fn is_longer_than(&self, after: Duration) -> bool {
        let since = self.since.load(Relaxed);
        since != 0 && u128::from(self.now().saturating_sub(since)) >= after.as_millis()
    }

    /// Whether the caller is the one to try it now.
    pub(super) fn is_to_be_tried(&self) -> bool {
        let (now, tried) = (self.now(), self.tried.load(Relaxed));
        let is_due = tried == 0 || u128::from(now.saturating_sub(tried)) >= TRY_INTERVAL.as_millis();
        is_due && self.tried.compare_exchange(tried, now, Relaxed, Relaxed).is_ok()
    }

    fn now(&self) -> u64 {
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
