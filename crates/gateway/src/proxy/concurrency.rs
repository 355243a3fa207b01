//! Concurrency limits, in total and per client. A request above a limit fails at once: a queue
//! would only add latency for all clients.

use crate::body::{BodyEnd, BodyWatcher};
use crate::error::{ErrorKind, GatewayError};
use crate::permit::Permit;
use crate::telemetry::metrics;
use arc_swap::ArcSwap;
use bytes::Bytes;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The `Retry-After` of a rejection.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A limit on concurrent operations. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ConcurrencyLimit {
    taken: Arc<AtomicUsize>,
    max: usize,
}

impl ConcurrencyLimit {
    pub(crate) fn new(max: usize) -> ConcurrencyLimit {
        ConcurrencyLimit { taken: Arc::default(), max }
    }

    /// Returns a permit, or `None` if all are in use.
    pub(crate) fn take(&self) -> Option<Permit> {
        Permit::take(&self.taken, self.max)
    }

    /// Returns the number of permits in use.
    pub(crate) fn in_use(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

/// A limit on concurrent operations that no client can exhaust: the permits of a client do not
/// exceed those still free. If n clients take all they can, 1 / (n + 1) of the permits stays free
/// if they grow evenly, and about 1 / 2^n if they come one after another.
#[derive(Clone)]
pub(crate) struct FairConcurrencyLimit {
    all: ConcurrencyLimit,
    by_client: PerClientLimit,
}

impl FairConcurrencyLimit {
    /// Allows `max` concurrent operations, and `client_max` per client.
    pub(crate) fn new(max: usize, client_max: usize) -> FairConcurrencyLimit {
        FairConcurrencyLimit { all: ConcurrencyLimit::new(max), by_client: PerClientLimit::new(client_max) }
    }

    /// Returns a permit for a client. The error is the name of the exhausted limit.
    pub(crate) fn take(&self, client: &str) -> Result<FairPermit, &'static str> {
        let own = self.by_client.permits(client);
        let permit = self.all.take().ok_or("upstream_in_flight")?;
        let free = self.all.max.saturating_sub(self.all.in_use());
        if own.in_use() > free {
            return Err("client_upstream_in_flight");
        }
        Ok(FairPermit { _own: own.take().ok_or("client_upstream_in_flight")?, _permit: permit })
    }
}

/// A permit of a [`FairConcurrencyLimit`], released on drop.
#[derive(Debug)]
pub(crate) struct FairPermit {
    _permit: Permit,
    _own: Permit,
}

impl BodyWatcher for FairPermit {
    fn chunk(&mut self, _bytes: &Bytes) {}
    fn end(&mut self, _end: BodyEnd) {}
}

/// Counts a rejection and returns its error. `limit` is the label of the limit in the metrics.
pub(crate) fn limit_error(limit: &'static str) -> GatewayError {
    metrics::count_limited(limit);
    GatewayError::new(
        ErrorKind::Overloaded { retry_after: RETRY_AFTER },
        format!("the limit `{limit}` is reached"),
    )
}

/// A [`ConcurrencyLimit`] for each client that has called since the start.
#[derive(Clone)]
pub(crate) struct PerClientLimit {
    by_client: Arc<ArcSwap<HashMap<String, ConcurrencyLimit, RandomState>>>,
    max: usize,
}

impl PerClientLimit {
    pub(crate) fn new(client_in_flight_max: usize) -> PerClientLimit {
        PerClientLimit { by_client: Arc::default(), max: client_in_flight_max }
    }

    pub(crate) fn take(&self, client: &str) -> Option<Permit> {
        self.permits(client).take()
    }

    fn permits(&self, client: &str) -> ConcurrencyLimit {
        if let Some(permits) = self.by_client.load().get(client) {
            return permits.clone();
        }
        // The table is copied only once per client. If two requests race, the first entry is used
        // by both.
        let own = ConcurrencyLimit::new(self.max);
        self.by_client.rcu(|table| {
            let mut table = HashMap::clone(table);
            table.entry(client.to_owned()).or_insert_with(|| own.clone());
            table
        });
        self.by_client.load().get(client).cloned().unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_its_holder_is_gone() {
        let permits = ConcurrencyLimit::new(2);
        let (first, second) = (permits.take().unwrap(), permits.take().unwrap());
        assert!(permits.take().is_none());
        assert_eq!(permits.in_use(), 2);
        drop(first);
        assert!(permits.take().is_some());
        drop(second);
        assert_eq!(permits.in_use(), 0);
    }

    #[test]
    fn clients_have_shares_of_their_own() {
        let shares = PerClientLimit::new(1);
        let first = shares.take("a").unwrap();
        assert!(shares.take("a").is_none());
        let other = shares.take("b").unwrap();
        drop(first);
        assert!(shares.take("a").is_some());
        drop(other);
    }

    #[test]
    fn clients_that_take_all_they_can_leave_slots_to_others() {
        let permits = FairConcurrencyLimit::new(1024, 1024);
        let take_all = |client: &str| std::iter::from_fn(|| permits.take(client).ok()).collect::<Vec<_>>();
        let (first, second) = (take_all("a"), take_all("b"));
        assert_eq!(first.len(), 512);
        assert_eq!(second.len(), 256);
        assert_eq!(permits.take("a").unwrap_err(), "client_upstream_in_flight");
        let other = permits.take("c");
        assert!(other.is_ok());
        drop((first, second, other));
        assert_eq!((permits.all.in_use(), permits.by_client.permits("a").in_use()), (0, 0));
    }

    #[test]
    fn the_only_slot_is_for_whoever_comes_first() {
        let permits = FairConcurrencyLimit::new(1, 1);
        let taken = permits.take("a").unwrap();
        assert_eq!(permits.take("b").unwrap_err(), "upstream_in_flight");
        drop(taken);
        assert!(permits.take("b").is_ok());
        assert_eq!(permits.all.in_use(), 0, "what was refused or dropped is given back");
    }
}
