//! The open connections of one listener. One timer checks all their deadlines periodically, because
//! a timer per connection would need a reset on each activity. A connection is registered from
//! accept until its task ends; the registry is not on the path of its requests.

use super::ConnectionTimeouts;
use super::activity::{Activity, Overdue, ShutdownSignal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The set of open connections. Locked when connections open and close and when deadlines are
/// checked, never while requests are answered.
#[derive(Default)]
pub(super) struct ConnectionRegistry {
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    by_number: HashMap<u64, Arc<Activity>>,
}

impl ConnectionRegistry {
    /// Registers a connection until the entry is dropped.
    pub(super) fn enter(self: &Arc<ConnectionRegistry>, activity: Arc<Activity>) -> RegistryEntry {
        let mut open = self.open();
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, activity);
        drop(open);
        RegistryEntry { registry: Arc::clone(self), number }
    }

    /// Sends a shutdown signal to all connections.
    pub(super) fn give(&self, order: ShutdownSignal) {
        for activity in self.open().by_number.values() {
            activity.give(order);
        }
    }

    /// Makes each connection close after its next response.
    pub(super) fn leave(&self) {
        for activity in self.open().by_number.values() {
            activity.leave();
        }
    }

    /// Cuts the oldest connection that is not trusted. Returns whether there was one.
    pub(super) fn evict(&self) -> bool {
        let open = self.open();
        let strangers = open
            .by_number
            .iter()
            .filter(|(_, activity)| !activity.is_trusted() && activity.order() != ShutdownSignal::Cut);
        // Numbers grow with time, so the lowest one is the oldest. An attacker's idle connections
        // are evicted before the new ones of clients.
        let oldest = strangers.min_by_key(|(number, _)| **number);
        if let Some((_, activity)) = oldest {
            activity.give(ShutdownSignal::Cut);
        }
        oldest.is_some()
    }

    /// Checks all deadlines and closes the connections that missed one.
    pub(super) fn sweep(&self, timeouts: &ConnectionTimeouts) {
        for activity in self.open().by_number.values() {
            match activity.overdue(timeouts) {
                None => {}
                Some(Overdue::Idle) => activity.close_gracefully(),
                Some(overdue @ (Overdue::Head | Overdue::Write | Overdue::CloseTimeout)) => {
                    tracing::debug!(?overdue, "a connection is cut");
                    activity.give(ShutdownSignal::Cut);
                }
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registration of a connection; removed on drop.
pub(super) struct RegistryEntry {
    registry: Arc<ConnectionRegistry>,
    number: u64,
}

impl Drop for RegistryEntry {
    fn drop(&mut self) {
        self.registry.open().by_number.remove(&self.number);
    }
}

/// Returns the interval of deadline checks: half of the shortest deadline, at least 10 ms.
pub(super) fn tick(timeouts: &ConnectionTimeouts) -> Duration {
    let shortest = timeouts.header.min(timeouts.idle).min(timeouts.write);
    (shortest / 2).max(Duration::from_millis(10))
}
