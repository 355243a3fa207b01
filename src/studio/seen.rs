//! Caches the pages' reads of the store. Data is refreshed only while a page is requested. A page
//! waits for a refresh only for a short time, then displays the last value with its age. A slow or
//! absent store therefore never slows down pages.
//!
//! Every page starts with a small read that detects whether the store answers. If not, the page
//! waits for no other read, so that the delays of several reads do not add up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use switchback_gateway::clock::Clock;
use tokio::sync::watch;

/// Age up to which a value counts as current.
const FRESH_MS: i64 = 1_000;
/// Age up to which a value is displayed without waiting, while it is refreshed in the background.
const RECENT_MS: i64 = 5_000;
/// Time that a page waits for a read.
pub(crate) const PATIENCE: Duration = Duration::from_millis(150);

/// The cached reads of one kind of data. Clones share them.
pub(crate) struct SnapshotCache<T> {
    shared: Arc<SharedSnapshot<T>>,
}

struct SharedSnapshot<T> {
    clock: Clock,
    state: Mutex<SnapshotState<T>>,
    /// Notified after every read.
    ended: watch::Sender<u64>,
}

struct SnapshotState<T> {
    last: Option<(Arc<T>, i64)>,
    failing_since: Option<i64>,
    /// Start of the running read.
    reading_since: Option<Instant>,
    /// Whether the value precedes a local change, so that it must not be displayed as current.
    is_outdated: bool,
}

/// The data for a page.
pub(crate) struct Snapshot<T> {
    /// `None` before the first successful read.
    pub(crate) value: Option<Arc<T>>,
    /// Since when reads have failed or been late; `None` if the value is current.
    pub(crate) failing_since: Option<i64>,
    /// Time of the read, as Unix time in milliseconds.
    pub(crate) at: i64,
}

impl<T> Snapshot<Vec<T>> {
    /// Returns the rows that were read; empty before the first read.
    pub(crate) fn rows(&self) -> &[T] {
        self.value.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl<T: Send + Sync + 'static> SnapshotCache<T> {
    pub(crate) fn new(clock: Clock) -> SnapshotCache<T> {
        let state =
            SnapshotState { last: None, failing_since: None, reading_since: None, is_outdated: false };
        SnapshotCache {
            shared: Arc::new(SharedSnapshot {
                clock,
                state: Mutex::new(state),
                ended: watch::Sender::new(0),
            }),
        }
    }

    /// Returns the cached value. Starts a read if the value is older than [`FRESH_MS`], and waits
    /// for it up to `patience` if it is older than [`RECENT_MS`].
    pub(crate) async fn look<E: std::fmt::Display + 'static>(
        &self,
        patience: Duration,
        read: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Snapshot<T> {
        // Subscribe before the read is spawned, so that its notification cannot be missed.
        let mut ended = self.shared.ended.subscribe();
        ended.borrow_and_update();
        let now = self.shared.clock.unix_ms();
        let (age, patience) = {
            let mut state = self.shared.state();
            let age = state.last.as_ref().filter(|_| !state.is_outdated).map(|(_, at)| now - at);
            if age.is_none_or(|age| age > FRESH_MS) && state.reading_since.is_none() {
                state.reading_since = Some(Instant::now());
                // Before the read: a change during it marks the result as outdated again.
                state.is_outdated = false;
                tokio::spawn(Arc::clone(&self.shared).refresh(read));
            }
            // Deduct the time that earlier pages have waited for this read.
            let waited = state.reading_since.map_or(Duration::ZERO, |since| since.elapsed());
            (age, patience.saturating_sub(waited))
        };
        if age.is_none_or(|age| age > RECENT_MS) && !patience.is_zero() {
            // A timeout needs no handling: the state still has the running read.
            let _ = tokio::time::timeout(patience, ended.changed()).await;
        }
        let state = self.shared.state();
        let (value, at) = state.last.clone().map_or((None, now), |(value, at)| (Some(value), at));
        // Measured from the start of the read, not from the previous page.
        let waited = state.reading_since.map_or(Duration::ZERO, |since| since.elapsed());
        let is_late = state.reading_since.is_some() && now - at > RECENT_MS;
        let late_since = now - i64::try_from(waited.as_millis()).unwrap_or(i64::MAX);
        let failing_since = state.failing_since.or((value.is_none() || is_late).then_some(late_since));
        Snapshot { value, failing_since, at }
    }

    /// Marks the value as outdated after a local change, so that the next page waits for a new
    /// read.
    pub(crate) fn outdate(&self) {
        self.shared.state().is_outdated = true;
    }
}

impl<T> SharedSnapshot<T> {
    async fn refresh<E: std::fmt::Display>(self: Arc<Self>, read: impl Future<Output = Result<T, E>>) {
        let outcome = read.await;
        let now = self.clock.unix_ms();
        {
            let mut state = self.state();
            state.reading_since = None;
            match outcome {
                Ok(value) => {
                    state.last = Some((Arc::new(value), now));
                    state.failing_since = None;
                }
                Err(error) => {
                    if state.failing_since.is_none() {
                        tracing::warn!(%error, "the studio cannot read the store; its pages say so");
                        state.failing_since = Some(now);
                    }
                }
            }
        }
        self.ended.send_modify(|ended| *ended += 1);
    }

    fn state(&self) -> MutexGuard<'_, SnapshotState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::future::pending;

    #[tokio::test]
    async fn a_page_gets_what_was_read_and_reads_anew_when_that_is_old() {
        let clock = Clock::paused_at(0);
        let readings = SnapshotCache::new(clock.clone());
        let read = |value: u32| async move { Ok::<_, String>(value) };
        assert_eq!(readings.look(PATIENCE, read(1)).await.value.as_deref(), Some(&1));
        assert_eq!(readings.look(PATIENCE, read(2)).await.value.as_deref(), Some(&1), "it is fresh");
        readings.outdate();
        assert_eq!(
            readings.look(PATIENCE, read(3)).await.value.as_deref(),
            Some(&3),
            "something was changed"
        );
        clock.advance(Duration::from_secs(10));
        assert_eq!(
            readings.look(PATIENCE, read(4)).await.value.as_deref(),
            Some(&4),
            "it is too old to be displayed"
        );
    }

    #[tokio::test]
    async fn a_store_that_is_gone_leaves_what_was_read_last_and_says_so() {
        let clock = Clock::paused_at(0);
        let readings = SnapshotCache::<u32>::new(clock.clone());
        let seen = readings.look(PATIENCE, async { Err("gone") }).await;
        assert!(seen.value.is_none() && seen.failing_since.is_some());
        readings.look(PATIENCE, async { Ok::<_, String>(1) }).await;
        clock.advance(Duration::from_secs(10));
        let seen = readings.look(PATIENCE, async { Err("gone") }).await;
        assert_eq!((seen.value.as_deref(), seen.failing_since, seen.at), (Some(&1), Some(10_000), 0));
        let seen = readings.look(PATIENCE, async { Ok::<_, String>(2) }).await;
        assert_eq!((seen.value.as_deref(), seen.failing_since), (Some(&2), None));
    }

    #[tokio::test]
    async fn a_slow_store_that_nobody_looked_at_has_not_failed_all_the_while() {
        const HOUR_MS: i64 = 3_600_000;
        let clock = Clock::paused_at(0);
        let readings = SnapshotCache::new(clock.clone());
        readings.look(PATIENCE, async { Ok::<_, String>(1) }).await;
        clock.advance(Duration::from_millis(HOUR_MS as u64));
        let seen = readings.look(PATIENCE, pending::<Result<u32, String>>()).await;
        assert_eq!((seen.value.as_deref(), seen.at), (Some(&1), 0));
        let since = seen.failing_since.expect("it is late");
        assert!((HOUR_MS - 60_000..=HOUR_MS).contains(&since), "since {since}");
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_not_waited_for() {
        let readings = SnapshotCache::<u32>::new(Clock::paused_at(0));
        let seen = readings.look(PATIENCE, pending::<Result<u32, String>>()).await;
        assert!(seen.value.is_none() && seen.failing_since.is_some());
        // Otherwise every further page would wait for the same read.
        readings.shared.state().reading_since = Instant::now().checked_sub(PATIENCE);
        let seen = readings.look(PATIENCE, pending::<Result<u32, String>>()).now_or_never();
        assert!(seen.expect("nothing is waited for").failing_since.is_some());
    }
}
