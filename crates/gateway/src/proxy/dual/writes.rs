//! Tracks writes per client, so that a comparison detects a write between its two reads. Only writes
//! of the same client through this gateway are visible. Writes by another client of the account, or
//! past this gateway, remain undetected, and a resulting difference remains unsettled.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Number of slots. Clients are hashed to slots; a collision only makes an unrelated write count.
const PLACES: usize = 1024;

/// The write activity of all clients. Clones share it.
#[derive(Clone)]
pub(crate) struct Writes(Arc<[WriteSlot]>);

#[derive(Default)]
struct WriteSlot {
    begun: AtomicU64,
    in_flight: AtomicU32,
}

/// A snapshot of a client's write activity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteMark {
    begun: u64,
    is_busy: bool,
}

/// A guard for a write in flight. Dropping it finishes the write.
pub(crate) struct Writing {
    writes: Writes,
    place: usize,
    /// Snapshot at the start of this write, excluding the write itself.
    pub(crate) mark: WriteMark,
}

impl Writes {
    pub(crate) fn new() -> Writes {
        Writes((0..PLACES).map(|_| WriteSlot::default()).collect())
    }

    /// Registers a write of a client.
    pub(crate) fn begin(&self, client: &str) -> Writing {
        let place = place(client);
        // Sequentially consistent: a reader that sees neither the flight nor the start of a write
        // would treat its effect as a difference of the mapping. Writes are rare enough for the
        // cost.
        let is_busy = self.0[place].in_flight.fetch_add(1, SeqCst) > 0;
        let begun = self.0[place].begun.fetch_add(1, SeqCst) + 1;
        Writing { writes: self.clone(), place, mark: WriteMark { begun, is_busy } }
    }

    /// Returns a snapshot of a client's write activity.
    pub(crate) fn mark(&self, client: &str) -> WriteMark {
        let place = &self.0[place(client)];
        WriteMark { begun: place.begun.load(SeqCst), is_busy: place.in_flight.load(SeqCst) > 0 }
    }

    /// Returns whether a write of the client started after `mark` or was in flight at that time.
    pub(crate) fn has_written_since(&self, client: &str, mark: WriteMark) -> bool {
        mark.is_busy || self.mark(client).begun != mark.begun
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.writes.0[self.place].in_flight.fetch_sub(1, SeqCst);
    }
}

fn place(client: &str) -> usize {
    // Unkeyed: a collision only marks a comparison as possibly disturbed by a write.
    let mut hasher = DefaultHasher::new();
    client.hash(&mut hasher);
    hasher.finish() as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_seen_by_comparisons_that_it_overlaps_and_by_no_others() {
        let writes = Writes::new();
        let before = writes.mark("a");
        assert!(!writes.has_written_since("a", before));
        let writing = writes.begin("a");
        let own = writing.mark;
        let during = writes.mark("a");
        drop(writing);
        let after = writes.mark("a");
        assert!(writes.has_written_since("a", before) && writes.has_written_since("a", during));
        assert!(!writes.has_written_since("a", after) && !writes.has_written_since("a", own));
        drop(writes.begin("a"));
        assert!(writes.has_written_since("a", own), "another one came after it");
    }
}
