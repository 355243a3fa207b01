//! A sample of the recent requests of this process, for the admin site: each with its upstream
//! calls and times, masked like a capture. The sample is bounded in bytes and by rates, so that
//! its cost does not grow with the traffic. `proxy::layers::sample` fills it.
//!
//! Decisions to know before editing:
//!
//! - Each core has a shard of its own. A request that is not sampled only counts in its shard,
//!   without a lock; the lock of a shard is taken for samples and by readers.
//! - Successful requests are selected on arrival, so that their messages are recorded. Failed ones
//!   can also be selected at their end, without messages. They have a rate and a share of the bytes
//!   of their own, so that successes do not displace them.
//! - Messages are stored apart from the samples, in at most half of the bytes, so that the list
//!   reaches further back than they do.

mod messages;
mod ring;
mod sample;

pub use messages::{SampleMessage, SampleMessages, SampledCall};
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
    /// Running recordings.
    recordings: AtomicUsize,
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

/// Maximum number of running recordings. Further selected requests are sampled without messages.
const RECORDINGS_MAX: usize = 64;

/// The permission to record the messages of one selected request.
pub(crate) struct RecordingSlot {
    /// `None` if too many recordings are running.
    recent: Option<RecentRequests>,
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
            recordings: AtomicUsize::new(0),
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

    /// Selects a request that arrives if a sample of a successful one is due.
    #[inline]
    pub(crate) fn admit(&self, arrived: Instant) -> Option<RecordingSlot> {
        if !self.is_on() {
            return None;
        }
        let is_due = self.shard().take_turn(false, self.0.since_start_ms(arrived), self.0.interval_ms);
        is_due.then(|| self.slot())
    }

    #[cold]
    fn slot(&self) -> RecordingSlot {
        let has_room = self.0.recordings.fetch_add(1, Relaxed) < RECORDINGS_MAX;
        if !has_room {
            self.0.recordings.fetch_sub(1, Relaxed);
        }
        RecordingSlot { recent: has_room.then(|| self.clone()) }
    }

    /// Counts a request that ended at `ended`. Returns a permit if it was selected on its arrival,
    /// or if it failed and a sample of a failed one is due.
    #[inline]
    pub(crate) fn count(
        &self,
        ended: Instant,
        is_failure: bool,
        is_selected: bool,
    ) -> Option<SamplePermit<'_>> {
        if !self.is_on() {
            return None;
        }
        let now_ms = self.0.since_start_ms(ended);
        let shard = self.shard();
        let minute = now_ms / MINUTE_MS;
        shard.count(minute);
        let is_due = is_selected || (is_failure && shard.take_turn(true, now_ms, self.0.interval_ms));
        is_due.then_some(SamplePermit { recent: &self.0, shard, is_failure, minute })
    }

    /// Returns the messages of the request with this id. `None` if they were not recorded, or gave way
    /// to newer ones. A request may end on another core than its messages, so all are searched.
    pub fn messages(&self, id: &str) -> Option<Arc<SampleMessages>> {
        self.0.shards.iter().find_map(|shard| shard.ring().messages(id))
    }

    fn shard(&self) -> &SampleShard {
        &self.0.shards[shard::current() % self.0.shards.len()]
    }

    fn shard_bytes_max(&self) -> usize {
        self.bytes_max() / self.0.shards.len()
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

impl RecordingSlot {
    pub(crate) fn salt(&self) -> Salt {
        self.recent.as_ref().map_or_else(|| Salt::new(random()), RecentRequests::salt)
    }

    /// Returns whether the messages may be recorded.
    pub(crate) fn has_room(&self) -> bool {
        self.recent.is_some()
    }

    /// Adds the messages of the request with this id.
    pub(crate) fn add(&self, id: &str, messages: SampleMessages) {
        if let Some(recent) = &self.recent {
            recent.shard().ring().add_messages(id, Arc::new(messages), recent.shard_bytes_max());
        }
    }
}

impl Drop for RecordingSlot {
    fn drop(&mut self) {
        if let Some(recent) = &self.recent {
            recent.0.recordings.fetch_sub(1, Relaxed);
        }
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
            assert!(recent.admit(start).is_some(), "all of a burst are selected");
            recent.count(start, false, true).expect("it is selected").add(sample(id, id as i64));
        }
        assert!(recent.admit(start).is_none(), "successes have used up their burst");
        assert!(recent.count(start, false, false).is_none());
        assert!(recent.count(start, true, false).is_some(), "failures have a rate of their own");
        let second = 1_000 / recent.0.interval_ms;
        let later = start + Duration::from_secs(1);
        let arrive = |_: &u64| {
            recent.count(later, false, false);
            recent.admit(later).is_some()
        };
        let taken = (0..5_000_u64).filter(arrive).count();
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
        recent.count(now, true, false).expect("it is due").add(sample(1, 0));
        recent.admit(now).expect("it is due").add("1", SampleMessages::default());
        assert!(recent.messages("1").is_some());
        recent.set_bytes_max(0);
        assert!(recent.count(now, true, true).is_none() && recent.admit(now).is_none());
        assert!(recent.last(5).samples.is_empty() && recent.messages("1").is_none());
        assert!(RecentRequests::default().count(now, true, false).is_none());
    }

    #[test]
    fn few_requests_are_recorded_at_the_same_time() {
        let recent = RecentRequests::new(1 << 20, Clock::machine());
        let slots: Vec<RecordingSlot> = (0..RECORDINGS_MAX).map(|_| recent.slot()).collect();
        assert!(slots.iter().all(RecordingSlot::has_room) && !recent.slot().has_room());
        drop(slots);
        assert!(recent.slot().has_room());
    }
}
