//! Limits concurrent reads of event messages. Any sender can reach a receiver's path, and the
//! signature can only be verified once the message is complete, so a slow sender must not block
//! others. If all slots are taken, a new message evicts the one that has been read for the longest
//! time. Real services deliver within milliseconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Slots for messages being read. Clones share them.
#[derive(Clone, Debug)]
pub struct Readers(Arc<ReadersInner>);

#[derive(Debug)]
struct ReadersInner {
    places: usize,
    reading: Mutex<ReaderState>,
}

#[derive(Debug, Default)]
struct ReaderState {
    next: u64,
    /// In the order of their start. Dropping the sender cancels the read.
    open: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The slot of a message, released on drop.
#[derive(Debug)]
pub(super) struct ReaderPermit {
    shared: Arc<ReadersInner>,
    number: u64,
    ends: oneshot::Receiver<()>,
}

impl Readers {
    /// Creates `places` slots, at least one.
    pub fn new(places: usize) -> Readers {
        Readers(Arc::new(ReadersInner { places: places.max(1), reading: Mutex::default() }))
    }

    /// Acquires a slot for a new message, evicting the oldest reads if necessary.
    pub(super) fn enter(&self) -> ReaderPermit {
        let (end, ends) = oneshot::channel();
        let mut reading = self.0.reading();
        while reading.open.len() >= self.0.places {
            reading.open.pop_first();
        }
        let number = reading.next;
        reading.next += 1;
        reading.open.insert(number, end);
        drop(reading);
        ReaderPermit { shared: Arc::clone(&self.0), number, ends }
    }
}

impl ReadersInner {
    fn reading(&self) -> MutexGuard<'_, ReaderState> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReaderPermit {
    /// Reads a message while it has its slot. Returns `None` if another message evicts it.
    pub(super) async fn wait_for<T>(&mut self, message: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            read = message => Some(read),
            // The sender never sends; it is only dropped.
            _ = &mut self.ends => None,
        }
    }
}

impl Drop for ReaderPermit {
    fn drop(&mut self) {
        self.shared.reading().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn the_oldest_gives_way_and_places_are_given_back() {
        let readers = Readers::new(2);
        let (mut first, mut second) = (readers.enter(), readers.enter());
        let mut third = readers.enter();
        assert_eq!(first.wait_for(pending::<()>()).await, None);
        assert_eq!(second.wait_for(ready(2)).await, Some(2));
        drop((first, second));
        let _fourth = readers.enter();
        assert_eq!(third.wait_for(ready(3)).await, Some(3), "there was a place");
        assert_eq!(readers.0.reading().open.len(), 2);
    }
}
