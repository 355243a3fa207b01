//! How much may be in flight at once, over all clients and for each. Beyond the limit it is refused at once: a queue would
//! only make everyone late.

use crate::body::{BodyEnd, BodyWatcher};
use crate::error::{ErrorKind, GatewayError};
use crate::telemetry::metrics;
use arc_swap::ArcSwap;
use bytes::Bytes;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What a refused client is told to wait.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A bounded count of what is in flight.
#[derive(Clone, Debug)]
pub(crate) struct ConcurrencyLimit {
    taken: Arc<AtomicUsize>,
    max: usize,
}

impl ConcurrencyLimit {
    pub(crate) fn new(max: usize) -> ConcurrencyLimit {
        ConcurrencyLimit { taken: Arc::default(), max }
    }

    /// Takes a permit, unless all are taken.
    pub(crate) fn take(&self) -> Option<Permit> {
        let permit = Permit { taken: Arc::clone(&self.taken) };
        // Over the limit the permit is given back at once by its drop.
        (self.taken.fetch_add(1, Relaxed) < self.max).then_some(permit)
    }

    /// How many are taken.
    pub(crate) fn in_use(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

/// A bounded count of what is in flight, of which no client has more than others have left: n clients that take all they can
/// leave one part in n + 1 to the others.
#[derive(Clone)]
pub(crate) struct FairConcurrencyLimit {
    all: ConcurrencyLimit,
    by_client: PerClientLimit,
}

impl FairConcurrencyLimit {
    /// At most `max` at one time, and at most `client_max` for one client.
    pub(crate) fn new(max: usize, client_max: usize) -> FairConcurrencyLimit {
        FairConcurrencyLimit { all: ConcurrencyLimit::new(max), by_client: PerClientLimit::new(client_max) }
    }

    /// Takes a permit for a client; the error names the limit that is reached.
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

/// One of them, given back like a [`Permit`].
#[derive(Debug)]
pub(crate) struct FairPermit {
    _permit: Permit,
    _own: Permit,
}

impl BodyWatcher for FairPermit {
    fn chunk(&mut self, _bytes: &Bytes) {}
    fn end(&mut self, _end: BodyEnd) {}
}

/// One taken permit, given back when dropped; as a watcher of a body it is given back when the body ends.
#[derive(Debug)]
pub(crate) struct Permit {
    taken: Arc<AtomicUsize>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Relaxed);
    }
}

impl BodyWatcher for Permit {
    fn chunk(&mut self, _bytes: &Bytes) {}
    fn end(&mut self, _end: BodyEnd) {}
}

/// The error of a limit that is reached; `limit` is its name in the metrics.
pub(crate) fn limit_error(limit: &'static str) -> GatewayError {
    metrics::count_limited(limit);
    GatewayError::new(
        ErrorKind::Overloaded { retry_after: RETRY_AFTER },
        format!("the limit `{limit}` is reached"),
    )
}

/// One [`ConcurrencyLimit`] per client that has called since the start.
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
        // Once per client: the table is copied with the newcomer in it. Of two that come at once the first one stays.
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
