//! Which clients write, so that a comparison can tell whether its client wrote between the two readings. Only writes through
//! this gateway are seen, by the client's name: another client of the same account, another gateway and other programs may
//! write too, and a difference that comes of it stays unsettled.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Clients that share a place here count as one: a comparison is then repeated without need.
const PLACES: usize = 1024;

/// The writes of all clients. Clones share them.
#[derive(Clone)]
pub(crate) struct Writes(Arc<[WriteSlot]>);

#[derive(Default)]
struct WriteSlot {
    begun: AtomicU64,
    in_flight: AtomicU32,
}

/// What was known of a client's writes at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteMark {
    begun: u64,
    is_busy: bool,
}

/// A write in flight. It ends when this is dropped.
pub(crate) struct Writing {
    writes: Writes,
    place: usize,
    /// Of the moment at which it began: other writes than this one.
    pub(crate) mark: WriteMark,
}

impl Writes {
    pub(crate) fn new() -> Writes {
        Writes((0..PLACES).map(|_| WriteSlot::default()).collect())
    }

    /// Begins a write of a client.
    pub(crate) fn begin(&self, client: &str) -> Writing {
        let place = place(client);
        let is_busy = self.0[place].in_flight.fetch_add(1, SeqCst) > 0;
        let begun = self.0[place].begun.fetch_add(1, SeqCst) + 1;
        Writing { writes: self.clone(), place, mark: WriteMark { begun, is_busy } }
    }

    /// What is known of a client's writes now.
    pub(crate) fn mark(&self, client: &str) -> WriteMark {
        let place = &self.0[place(client)];
        WriteMark { begun: place.begun.load(SeqCst), is_busy: place.in_flight.load(SeqCst) > 0 }
    }

    /// Whether the client has written since, or was writing then.
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
