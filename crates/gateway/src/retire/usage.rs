//! Usage counts: calls by side, client, operation and outcome. Each core counts separately; every
//! few seconds the counts are added to the store, so that they survive restarts and are summed over
//! gateways.
//!
//! A flush empties the counts, so memory is bounded by the distinct calls between two flushes, and
//! by [`COUNTS_MAX`] while the store is unavailable.

use crate::clock::{Clock, rfc3339};
use crate::outcome::Outcome;
use crate::shard;
use crate::store::{Store, StoreError, UsageRow, repeat};
use foldhash::fast::RandomState;
use serde::Serialize;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval between flushes to the store.
pub const USAGE_FLUSH: Duration = Duration::from_secs(5);
/// Different counts in memory while the store takes none. Beyond them calls of all clients and
/// operations are one count, see [`UsageInfo::is_overflow`].
const COUNTS_MAX: usize = 50_000;
/// Maximum number of unknown calls in the store; the newest remain.
pub const UNKNOWN_USAGE_MAX: u32 = 2_000;
/// Retention time of a count after its last call.
pub const USAGE_KEEP: Duration = Duration::from_secs(400 * 24 * 3600);
const OTHERS: &str = "other";

/// Identifier for calls counted by an earlier release with an outcome outside the list.
pub const UNRECORDED: &str = "unrecorded";

/// A usage count, for people and API clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UsageInfo {
    /// The name of the side that clients use, such as `v2`.
    pub side: String,
    /// The client's registered name; empty for an unknown client and for an overflow count.
    pub client: String,
    /// The operation, or method and path of an unknown call as in the access log.
    pub operation: String,
    /// Whether the calls match no operation of the contract.
    pub unknown: bool,
    /// The identifier of an [`Outcome`], or [`UNRECORDED`].
    pub outcome: &'static str,
    /// Calls since the first.
    pub calls: i64,
    /// Time of the first call, RFC 3339, UTC.
    pub first: String,
    /// Time of the last call, RFC 3339, UTC.
    pub last: String,
}

/// The counts of a gateway. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// `None` if counting is disabled.
    shared: Option<Arc<UsageInner>>,
}

#[derive(Debug)]
struct UsageInner {
    store: Store,
    clock: Clock,
    shards: Box<[Shard]>,
    /// Serializes flushes, so that no reader counts the values that a failed flush restores.
    flushing: tokio::sync::Mutex<()>,
}

/// Aligned to its own cache lines, because each core writes its shard constantly.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Counts>);

/// Nested maps by client and operation, so that a lookup needs no allocated key.
type ByName<T> = HashMap<String, T, RandomState>;

#[derive(Debug, Default)]
struct Counts {
    by_client: ByName<ByName<Vec<UsageCount>>>,
    len: usize,
}

#[derive(Debug)]
struct UsageCount {
    side: String,
    outcome: Outcome,
    is_unknown: bool,
    calls: i64,
    first_ms: i64,
    last_ms: i64,
}

impl Usage {
    /// Creates counts that are flushed to a store.
    pub fn new(store: Store) -> Usage {
        let shards = (0..shard::count()).map(|_| Shard::default()).collect();
        let clock = store.clock().clone();
        Usage {
            shared: Some(Arc::new(UsageInner {
                store,
                clock,
                shards,
                flushing: tokio::sync::Mutex::default(),
            })),
        }
    }

    /// Creates a counter that ignores all calls.
    pub fn off() -> Usage {
        Usage::default()
    }

    /// Counts one call of an operation on this core.
    pub(crate) fn count(&self, side: &str, client: &str, operation: &str, outcome: Outcome) {
        self.add(side, client, operation, (outcome, false));
    }

    /// Counts one call on this core that matches no operation; `called` is its method and path as
    /// in logs.
    pub(crate) fn count_unknown(&self, side: &str, client: &str, called: &str, outcome: Outcome) {
        self.add(side, client, called, (outcome, true));
    }

    fn add(&self, side: &str, client: &str, operation: &str, ended: (Outcome, bool)) {
        let Some(shared) = &self.shared else { return };
        let now_ms = shared.clock.unix_ms();
        let shard = &shared.shards[shard::current() % shared.shards.len()];
        let mut counts = shard.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.add(side, client, operation, ended, 1, (now_ms, now_ms));
    }

    /// Adds the counts to the store. On failure they are restored in memory.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let _alone = shared.flushing.lock().await;
        let mut all = Counts::default();
        for shard in &shared.shards {
            all.join(mem::take(&mut *shard.0.lock().unwrap_or_else(PoisonError::into_inner)));
        }
        if all.len == 0 {
            return Ok(());
        }
        let forget_ms =
            shared.clock.unix_ms().saturating_sub(USAGE_KEEP.as_millis().try_into().unwrap_or(i64::MAX));
        let written = shared.store.add_usage(&all.rows(), UNKNOWN_USAGE_MAX, forget_ms).await;
        if written.is_err() {
            shared.shards[0].0.lock().unwrap_or_else(PoisonError::into_inner).join(all);
        }
        written
    }

    /// Flushes counts periodically until dropped.
    pub async fn run(self) {
        let Some(shared) = self.shared.clone() else { return };
        repeat(
            &shared.clock,
            USAGE_FLUSH,
            "who calls what cannot be stored; it is held in memory until it can be",
            || self.flush(),
        )
        .await;
    }

    /// Returns all counts of every gateway of the store, including this one's latest calls.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn list(&self) -> Result<Vec<UsageInfo>, StoreError> {
        let Some(shared) = &self.shared else { return Ok(Vec::new()) };
        self.flush().await?;
        Ok(shared.store.usage().await?.into_iter().map(UsageInfo::from).collect())
    }
}

impl UsageInfo {
    /// Returns whether this count combines several clients and operations, because there was no
    /// room to count them separately.
    pub fn is_overflow(&self) -> bool {
        self.client.is_empty() && self.operation == OTHERS
    }
}

impl From<UsageRow> for UsageInfo {
    fn from(row: UsageRow) -> UsageInfo {
        let UsageRow { side, client, operation, outcome, is_unknown, calls, first_ms, last_ms } = row;
        // A gateway of an earlier release on the same store writes the word `unknown` here.
        let unknown = is_unknown || outcome == "unknown";
        let outcome = match Outcome::parse(&outcome) {
            Some(outcome) => outcome.as_str(),
            None => UNRECORDED,
        };
        let (first, last) = (rfc3339(first_ms), rfc3339(last_ms));
        UsageInfo { side, client, operation, unknown, outcome, calls, first, last }
    }
}

impl Counts {
    /// Adds calls; `at_ms` are the times of the first and the last.
    fn add(
        &mut self,
        side: &str,
        client: &str,
        operation: &str,
        ended: (Outcome, bool),
        calls: i64,
        at_ms: (i64, i64),
    ) {
        let known = self.by_client.get_mut(client).and_then(|operations| operations.get_mut(operation));
        let count = known.and_then(|counts| {
            counts.iter_mut().find(|one| (one.outcome, one.is_unknown) == ended && one.side == side)
        });
        if let Some(count) = count {
            count.calls += calls;
            count.first_ms = count.first_ms.min(at_ms.0);
            count.last_ms = count.last_ms.max(at_ms.1);
            return;
        }
        if self.len >= COUNTS_MAX && operation != OTHERS {
            return self.add(side, "", OTHERS, ended, calls, at_ms);
        }
        self.len += 1;
        let (outcome, is_unknown) = ended;
        let (first_ms, last_ms) = at_ms;
        let count = UsageCount { side: side.to_owned(), outcome, is_unknown, calls, first_ms, last_ms };
        let operations = self.by_client.entry(client.to_owned()).or_default();
        operations.entry(operation.to_owned()).or_default().push(count);
    }

    fn join(&mut self, other: Counts) {
        for (client, operations) in other.by_client {
            for (operation, counts) in operations {
                for count in counts {
                    let at_ms = (count.first_ms, count.last_ms);
                    let ended = (count.outcome, count.is_unknown);
                    self.add(&count.side, &client, &operation, ended, count.calls, at_ms);
                }
            }
        }
    }

    fn rows(&self) -> Vec<UsageRow> {
        let mut rows = Vec::with_capacity(self.len);
        for (client, operations) in &self.by_client {
            for (operation, counts) in operations {
                rows.extend(counts.iter().map(|count| UsageRow {
                    side: count.side.clone(),
                    client: client.clone(),
                    operation: operation.clone(),
                    outcome: count.outcome.as_str().to_owned(),
                    is_unknown: count.is_unknown,
                    calls: count.calls,
                    first_ms: count.first_ms,
                    last_ms: count.last_ms,
                }));
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MissingStore;
    use crate::store::seal::{KeyRing, SealingKey};

    async fn store(folder: &tempfile::TempDir, ring: &KeyRing, clock: &Clock) -> Store {
        let url = format!("sqlite:{}", folder.path().join("switchback.db").display());
        Store::open(&url, ring.clone(), clock.clone(), MissingStore::Create).await.expect("it opens")
    }

    fn shown(all: &[UsageInfo]) -> Vec<String> {
        let line = |one: &UsageInfo| {
            format!(
                "{} {} {} {} {} {}",
                one.side, one.client, one.operation, one.outcome, one.calls, one.last
            )
        };
        all.iter().map(line).collect()
    }

    #[tokio::test]
    async fn calls_of_two_gateways_are_summed_and_outlive_both() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let clock = Clock::paused_at(1_000_000_000_000);
        let (one, other) = (
            Usage::new(store(&folder, &ring, &clock).await),
            Usage::new(store(&folder, &ring, &clock).await),
        );
        one.count("old", "x", "GET /a", Outcome::Translated);
        one.count("old", "x", "GET /a", Outcome::Refused);
        clock.advance(Duration::from_secs(60));
        other.count("old", "x", "GET /a", Outcome::Translated);
        other.count("new", "x", "GET /a", Outcome::Translated);
        other.flush().await.expect("it is written");
        one.flush().await.expect("it is written");
        drop((one, other));
        let later = Usage::new(store(&folder, &ring, &clock).await);
        assert_eq!(
            shown(&later.list().await.expect("a list")),
            [
                "new x GET /a translated 1 2001-09-09T01:47:40Z",
                "old x GET /a refused 1 2001-09-09T01:46:40Z",
                "old x GET /a translated 2 2001-09-09T01:47:40Z",
            ]
        );
    }

    #[tokio::test]
    async fn what_the_store_does_not_take_is_counted_once_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        let ring = KeyRing::parse(&[SealingKey::generate()]).expect("a ring");
        let clock = Clock::paused_at(0);
        let broken = store(&folder, &ring, &clock).await;
        let usage = Usage::new(broken.clone());
        usage.count("old", "x", "GET /a", Outcome::Translated);
        broken.close().await;
        assert!(usage.flush().await.is_err());
        usage.count("old", "x", "GET /a", Outcome::Translated);
        let shared = usage.shared.as_ref().expect("it counts");
        let mut all = Counts::default();
        for shard in &shared.shards {
            all.join(mem::take(&mut *shard.0.lock().unwrap()));
        }
        assert_eq!(all.rows().iter().map(|row| row.calls).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn the_memory_of_counts_is_bounded() {
        let mut counts = Counts::default();
        for n in 0..COUNTS_MAX + 1000 {
            counts.add("old", "", &format!("GET /{n}"), (Outcome::Forwarded, true), 1, (0, 0));
        }
        assert_eq!(counts.len, COUNTS_MAX + 1);
        let rows = counts.rows();
        let others: Vec<i64> =
            rows.iter().filter(|row| row.operation == OTHERS).map(|row| row.calls).collect();
        assert_eq!(others, [1000]);
    }
}
