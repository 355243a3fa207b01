//! What pages know of the store: the last reading of each thing, taken anew while somebody looks. A page waits for a reading
//! as long as nobody notices, and no longer; then it shows what was read last and says how old that is. So a store that is
//! slow or gone makes no page slow, and nobody reads a store that nobody looks at.
//!
//! Every page begins with a small reading that tells whether the store answers at all. Where it does not, the page waits for no
//! further one: a page that needs five readings is not five times as late.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use switchback_gateway::clock::Clock;
use tokio::sync::watch;

/// A reading as young as this is as good as a new one.
const FRESH_MS: i64 = 1_000;
/// A reading as young as this is shown at once, and taken anew for the next page.
const RECENT_MS: i64 = 5_000;
/// How long a page waits for a reading of a store that answers.
pub(crate) const PATIENCE: Duration = Duration::from_millis(150);

/// Readings of one thing. Clones share them.
pub(crate) struct Readings<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    clock: Clock,
    state: Mutex<State<T>>,
    /// Told whenever a reading has ended.
    ended: watch::Sender<u64>,
}

struct State<T> {
    last: Option<(Arc<T>, i64)>,
    failing_since: Option<i64>,
    /// When the reading under way began.
    reading_since: Option<Instant>,
    /// What was read before something was changed here is not shown as if it were new.
    is_outdated: bool,
}

/// What a page gets.
pub(crate) struct Seen<T> {
    /// None where nothing was ever read.
    pub(crate) value: Option<Arc<T>>,
    /// Set where the value is not of now: since when nothing could be read.
    pub(crate) failing_since: Option<i64>,
    /// When it was read.
    pub(crate) at: i64,
}

impl<T: Send + Sync + 'static> Readings<T> {
    pub(crate) fn new(clock: Clock) -> Readings<T> {
        let state = State { last: None, failing_since: None, reading_since: None, is_outdated: false };
        Readings {
            shared: Arc::new(Shared { clock, state: Mutex::new(state), ended: watch::Sender::new(0) }),
        }
    }

    /// What is known, read anew where that is not young enough; a new reading is waited for with this patience.
    pub(crate) async fn look<E: std::fmt::Display + 'static>(
        &self,
        patience: Duration,
        read: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Seen<T> {
        let mut ended = self.shared.ended.subscribe();
        ended.borrow_and_update();
        let now = self.shared.clock.unix_ms();
        let (age, patience) = {
            let mut state = self.shared.state();
            let age = state.last.as_ref().filter(|_| !state.is_outdated).map(|(_, at)| now - at);
            if age.is_none_or(|age| age > FRESH_MS) && state.reading_since.is_none() {
                state.reading_since = Some(Instant::now());
                state.is_outdated = false;
                tokio::spawn(Arc::clone(&self.shared).read(read));
            }
            // A reading that another page has waited for in vain is not waited for again.
            let waited = state.reading_since.map_or(Duration::ZERO, |since| since.elapsed());
            (age, patience.saturating_sub(waited))
        };
        if age.is_none_or(|age| age > RECENT_MS) && !patience.is_zero() {
            // An error is time that is over, which the state shows.
            let _ = tokio::time::timeout(patience, ended.changed()).await;
        }
        let state = self.shared.state();
        let (value, at) = state.last.clone().map_or((None, now), |(value, at)| (Some(value), at));
        // Since when it is waited for, not since somebody last looked.
        let waited = state.reading_since.map_or(Duration::ZERO, |since| since.elapsed());
        let is_late = state.reading_since.is_some() && now - at > RECENT_MS;
        let late_since = now - i64::try_from(waited.as_millis()).unwrap_or(i64::MAX);
        let failing_since = state.failing_since.or((value.is_none() || is_late).then_some(late_since));
        Seen { value, failing_since, at }
    }

    /// Something was changed here: the next page waits for a new reading.
    pub(crate) fn outdate(&self) {
        self.shared.state().is_outdated = true;
    }
}

impl<T> Shared<T> {
    async fn read<E: std::fmt::Display>(self: Arc<Self>, read: impl Future<Output = Result<T, E>>) {
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

    fn state(&self) -> MutexGuard<'_, State<T>> {
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
        let readings = Readings::new(clock.clone());
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
            "it is too old to be shown"
        );
    }

    #[tokio::test]
    async fn a_store_that_is_gone_leaves_what_was_read_last_and_says_so() {
        let clock = Clock::paused_at(0);
        let readings = Readings::<u32>::new(clock.clone());
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
        let readings = Readings::new(clock.clone());
        readings.look(PATIENCE, async { Ok::<_, String>(1) }).await;
        clock.advance(Duration::from_millis(HOUR_MS as u64));
        let seen = readings.look(PATIENCE, pending::<Result<u32, String>>()).await;
        assert_eq!((seen.value.as_deref(), seen.at), (Some(&1), 0));
        let since = seen.failing_since.expect("it is late");
        assert!((HOUR_MS - 60_000..=HOUR_MS).contains(&since), "since {since}");
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_not_waited_for() {
        let readings = Readings::<u32>::new(Clock::paused_at(0));
        let seen = readings.look(PATIENCE, pending::<Result<u32, String>>()).await;
        assert!(seen.value.is_none() && seen.failing_since.is_some());
        // Every further page would be late by the same reading.
        readings.shared.state().reading_since = Instant::now().checked_sub(PATIENCE);
        let seen = readings.look(PATIENCE, pending::<Result<u32, String>>()).now_or_never();
        assert!(seen.expect("nothing is waited for").failing_since.is_some());
    }
}
