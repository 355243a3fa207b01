//! A sample of the recent requests of this process, for the admin site: each with its upstream
//! calls and times, masked like a capture. The sample is bounded in bytes and by rates, so that
//! its cost does not grow with the traffic. `proxy::layers::sample` fills it.
//!
//! Decision to know before editing: each core has a shard of its own. A request that is not
//! sampled only counts in its shard, without a lock; the lock of a shard is taken for samples and
//! by readers. Failed requests have a rate and a share of the bytes of their own, so that successes
//! do not displace them.

mod ring;
mod sample;

pub use sample::{CallSample, RequestSample, SampleEnd, SampleTimes};

use crate::clock::Clock;
use crate::shard;
use crate::store::seal::random;
use ring::Ring;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use switchback_engine::redact::Salt;

/// Minutes for which requests are counted and samples are listed.
pub const RECENT_MINUTES: u64 = 24 * 60;

/// Samples per second of successful requests, and as many of failed ones, over all cores.
const SAMPLES_PER_SECOND: u64 = 10;

/// Samples that one core may take at once after a quiet period, of each kind.
const BURST: u64 = 50;

const MINUTE_MS: u64 = 60_000;

/// The sampled requests of a process. Clones share them.
#[derive(Clone)]
pub struct RecentRequests(Arc<RecentShards>);

struct RecentShards {
    started: Instant,
    clock: Clock,
    /// Keys the replacements of masked texts.
    salt: Salt,
    /// For all shards; 0 disables the sample.
    bytes_max: AtomicUsize,
    /// Time between two samples of a kind on one core.
    interval_ms: u64,
    shards: Box<[SampleShard]>,
}

/// Aligned to its own cache lines, because each core writes its shard constantly.
#[repr(align(128))]
struct SampleShard {
    /// When the next sample is due, of successful and of failed requests: milliseconds since the
    /// start, minus the allowance for bursts.
    due_ms: [AtomicU64; 2],
    /// Ended requests by minute, in a circle: the number of the minute in the upper half, the count
    /// in the lower.
    minutes: Box<[AtomicU64]>,
    ring: Mutex<Ring>,
}

/// The permission to add one sample to a shard.
pub(crate) struct SamplePermit<'r> {
    recent: &'r RecentShards,
    shard: &'r SampleShard,
    is_failure: bool,
    minute: u64,
}

/// The samples of a period, and the number of its requests.
#[derive(Clone, Debug, Default)]
pub struct SampledPeriod {
    /// Newest first.
    pub samples: Vec<Arc<RequestSample>>,
    /// All requests that ended in the period, sampled or not.
    pub requests: u64,
    /// Start of the period, as Unix time in milliseconds: the start of a minute, or of the process.
    pub since_ms: i64,
}

impl RecentRequests {
    /// Creates an empty sample of at most `bytes_max` bytes; 0 disables it. `clock` provides the
    /// displayed times.
    pub fn new(bytes_max: usize, clock: Clock) -> RecentRequests {
        let shard = || SampleShard {
            due_ms: [AtomicU64::new(0), AtomicU64::new(0)],
            minutes: (0..RECENT_MINUTES).map(|_| AtomicU64::new(0)).collect(),
            ring: Mutex::default(),
        };
        let shards: Box<[SampleShard]> = (0..shard::count()).map(|_| shard()).collect();
        RecentRequests(Arc::new(RecentShards {
            started: Instant::now(),
            clock,
            salt: Salt::new(random()),
            bytes_max: AtomicUsize::new(bytes_max),
            interval_ms: 1_000 * shards.len() as u64 / SAMPLES_PER_SECOND,
            shards,
        }))
    }

    /// Replaces the limit in bytes. Surplus samples are dropped with the next one of their shard,
    /// and all of them at once if the limit is 0.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.0.bytes_max.store(bytes_max, Relaxed);
        if bytes_max == 0 {
            for shard in &self.0.shards {
                *shard.ring() = Ring::default();
            }
        }
    }

    /// Returns whether requests are sampled.
    pub fn is_on(&self) -> bool {
        self.0.bytes_max.load(Relaxed) > 0
    }

    /// Returns the limit in bytes.
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max.load(Relaxed)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.0.clock.unix_ms()
    }

    pub(crate) fn salt(&self) -> Salt {
        self.0.salt.clone()
    }

    /// Counts a request that ended at `ended`. Returns a permit if a sample of it is due.
    #[inline]
    pub(crate) fn count(&self, ended: Instant, is_failure: bool) -> Option<SamplePermit<'_>> {
        if !self.is_on() {
            return None;
        }
        let now_ms = self.0.since_start_ms(ended);
        let shard = &self.0.shards[shard::current() % self.0.shards.len()];
        let minute = now_ms / MINUTE_MS;
        shard.count(minute);
        let is_due = shard.take_turn(is_failure, now_ms, self.0.interval_ms);
        is_due.then_some(SamplePermit { recent: &self.0, shard, is_failure, minute })
    }

    /// Returns the samples of the last `minutes` minutes since the start, of which the current one is
    /// not over.
    pub fn last(&self, minutes: u64) -> SampledPeriod {
        let now_ms = self.0.since_start_ms(Instant::now());
        let current = now_ms / MINUTE_MS;
        let first = (current + 1).saturating_sub(minutes.clamp(1, RECENT_MINUTES));
        let age_ms = i64::try_from(now_ms - first * MINUTE_MS).unwrap_or(i64::MAX);
        let since_ms = self.now_ms().saturating_sub(age_ms);
        let mut period = SampledPeriod { since_ms, ..SampledPeriod::default() };
        for shard in &self.0.shards {
            period.requests += shard.counted_since(first);
            shard.ring().copy_since(first, &mut period.samples);
        }
        period.samples.sort_by(|one, other| (other.at_ms, &other.id).cmp(&(one.at_ms, &one.id)));
        period
    }
}

impl RecentShards {
    fn since_start_ms(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.started);
        since.as_secs() * 1_000 + u64::from(since.subsec_millis())
    }
}

impl SampleShard {
    fn count(&self, minute: u64) {
        let slot = &self.minutes[(minute % RECENT_MINUTES) as usize];
        let counted = slot.load(Relaxed);
        if counted >> 32 == minute {
            slot.fetch_add(1, Relaxed);
        } else {
            self.count_first(slot, minute, counted);
        }
    }

    /// Counts the first request of a minute. Another thread of the same shard may be first.
    #[cold]
    fn count_first(&self, slot: &AtomicU64, minute: u64, counted: u64) {
        if slot.compare_exchange(counted, minute << 32 | 1, Relaxed, Relaxed).is_err() {
            slot.fetch_add(1, Relaxed);
        }
    }

    /// Returns the number of requests counted in `first` and later minutes.
    fn counted_since(&self, first: u64) -> u64 {
        let counts = self.minutes.iter().map(|slot| slot.load(Relaxed));
        counts.filter(|counted| counted >> 32 >= first).map(|counted| counted & u64::from(u32::MAX)).sum()
    }

    /// Takes the next turn of its kind if it is due: one per interval, and [`BURST`] after a pause.
    fn take_turn(&self, is_failure: bool, now_ms: u64, interval_ms: u64) -> bool {
        let due = &self.due_ms[usize::from(is_failure)];
        let next_ms = due.load(Relaxed);
        if next_ms > now_ms + (BURST - 1) * interval_ms {
            return false;
        }
        // Not one step with the load: threads that share a shard may take one more sample.
        due.store(next_ms.max(now_ms) + interval_ms, Relaxed);
        true
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SamplePermit<'_> {
    /// Adds the sample, in place of older ones if there is no room.
    pub(crate) fn add(self, sample: RequestSample) {
        let bytes_max = self.recent.bytes_max.load(Relaxed) / self.recent.shards.len();
        self.shard.ring().add(Arc::new(sample), self.is_failure, self.minute, bytes_max);
    }
}

impl Default for RecentRequests {
    /// Creates a sample that is disabled.
    fn default() -> RecentRequests {
        RecentRequests::new(0, Clock::machine())
    }
}

impl std::fmt::Debug for RecentRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecentRequests").field("bytes_max", &self.bytes_max()).finish_non_exhaustive()
    }
}

/// Converts a duration to whole microseconds.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(id: u64, at_ms: i64) -> RequestSample {
        RequestSample { id: format!("{id:016x}"), at_ms, ..RequestSample::default() }
    }

    #[test]
    fn a_quiet_gateway_samples_every_request_and_a_busy_one_a_few() {
        let recent = RecentRequests::new(1 << 20, Clock::machine());
        let start = recent.0.started;
        for id in 0..BURST {
            recent.count(start, false).expect("all of a burst are sampled").add(sample(id, id as i64));
        }
        assert!(recent.count(start, false).is_none(), "successes have used up their burst");
        assert!(recent.count(start, true).is_some(), "failures have a rate of their own");
        let second = 1_000 / recent.0.interval_ms;
        let later = start + Duration::from_secs(1);
        let taken = (0..5_000).filter(|_| recent.count(later, false).is_some()).count();
        assert_eq!(taken as u64, second, "then as many as a second has turns");
        let period = recent.last(5);
        assert_eq!(period.samples.len() as u64, BURST);
        assert_eq!(period.requests, BURST + 1 + 1 + 5_000, "all are counted");
        assert_eq!(period.samples[0].at_ms, BURST as i64 - 1, "newest first");
    }

    #[test]
    fn a_period_leaves_out_earlier_minutes_and_their_requests() {
        let recent = RecentRequests::new(1 << 20, Clock::machine());
        let shard = &recent.0.shards[0];
        for minute in [0, 0, 3, 3 + RECENT_MINUTES] {
            shard.count(minute);
        }
        assert_eq!(
            [0, 1, 4].map(|first| shard.counted_since(first)),
            [3, 1, 1],
            "a day later the slot is reused"
        );
    }

    #[test]
    fn a_disabled_sample_takes_nothing_and_forgets_what_it_had() {
        let recent = RecentRequests::new(1 << 20, Clock::machine());
        let now = Instant::now();
        recent.count(now, true).expect("it is due").add(sample(1, 0));
        recent.set_bytes_max(0);
        assert!(recent.count(now, true).is_none());
        assert!(recent.last(5).samples.is_empty());
        assert!(RecentRequests::default().count(now, true).is_none());
    }
}
