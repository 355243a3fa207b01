//! The open connections of one listener, watched together: one timer looks at all their deadlines now and then, because a
//! timer per connection would be touched whenever the connection is. A connection enters when it is accepted and leaves
//! when its task ends; between the two nothing of the registry is on its way.

use super::ServerOptions;
use super::activity::{Activity, Overdue, ShutdownSignal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who is connected. Locked when connections come and go and when deadlines are looked at, never while requests are
/// answered.
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
    /// Watches a connection until the entry is dropped.
    pub(super) fn enter(self: &Arc<ConnectionRegistry>, activity: Arc<Activity>) -> RegistryEntry {
        let mut open = self.open();
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, activity);
        drop(open);
        RegistryEntry { registry: Arc::clone(self), number }
    }

    /// Tells all connections the same.
    pub(super) fn give(&self, order: ShutdownSignal) {
        for activity in self.open().by_number.values() {
            activity.give(order);
        }
    }

    /// Each answer is the last one of its connection from here on.
    pub(super) fn leave(&self) {
        for activity in self.open().by_number.values() {
            activity.leave();
        }
    }

    /// Cuts the oldest connection on which nobody has shown who they are, to make room for another.
    pub(super) fn evict(&self) -> bool {
        let open = self.open();
        let strangers = open
            .by_number
            .iter()
            .filter(|(_, activity)| !activity.is_trusted() && activity.order() != ShutdownSignal::Cut);
        let oldest = strangers.min_by_key(|(number, _)| **number);
        if let Some((_, activity)) = oldest {
            activity.give(ShutdownSignal::Cut);
        }
        oldest.is_some()
    }

    /// Cuts the connections that have not said anything yet.
    pub(super) fn cut_silent(&self) {
        for activity in self.open().by_number.values().filter(|activity| activity.is_silent()) {
            activity.give(ShutdownSignal::Cut);
        }
    }

    /// Looks at all deadlines; those who missed one are told to end.
    pub(super) fn sweep(&self, options: &ServerOptions) {
        for activity in self.open().by_number.values() {
            match activity.overdue(options) {
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

/// A connection's place in the registry.
pub(super) struct RegistryEntry {
    registry: Arc<ConnectionRegistry>,
    number: u64,
}

impl Drop for RegistryEntry {
    fn drop(&mut self) {
        self.registry.open().by_number.remove(&self.number);
    }
}

/// How often deadlines are looked at: often enough that none is missed by more than half of the shortest.
pub(super) fn tick(options: &ServerOptions) -> Duration {
    let shortest = options.header_timeout.min(options.idle_timeout).min(options.write_timeout);
    (shortest / 2).max(Duration::from_millis(10))
}
