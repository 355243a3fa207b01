//! Messages that are being read. Anyone can send to the path of a receiver, and a message shows who sent it only when all of it
//! is here: so nobody keeps a place by being slow. Where all places are taken, the message that has been read for longest gives
//! way to the one that comes. Services deliver within milliseconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Places for messages being read. Clones share them.
#[derive(Clone, Debug)]
pub struct Readers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: usize,
    reading: Mutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    next: u64,
    /// By the order in which they began. What is dropped here ends the reading.
    open: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The place of a message, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    shared: Arc<Shared>,
    number: u64,
    ends: oneshot::Receiver<()>,
}

impl Readers {
    /// So many places, at least one.
    pub fn new(places: usize) -> Readers {
        Readers(Arc::new(Shared { places: places.max(1), reading: Mutex::default() }))
    }

    /// A place for a message that begins to be read.
    pub(super) fn enter(&self) -> Place {
        let (end, ends) = oneshot::channel();
        let mut reading = self.0.reading();
        while reading.open.len() >= self.0.places {
            reading.open.pop_first();
        }
        let number = reading.next;
        reading.next += 1;
        reading.open.insert(number, end);
        drop(reading);
        Place { shared: Arc::clone(&self.0), number, ends }
    }
}

impl Shared {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Reads a message as long as it has its place; none when another message has taken it.
    pub(super) async fn read<T>(&mut self, message: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            read = message => Some(read),
            // Nothing is ever sent.
            _ = &mut self.ends => None,
        }
    }
}

impl Drop for Place {
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
        assert_eq!(first.read(pending::<()>()).await, None);
        assert_eq!(second.read(ready(2)).await, Some(2));
        drop((first, second));
        let _fourth = readers.enter();
        assert_eq!(third.read(ready(3)).await, Some(3), "there was a place");
        assert_eq!(readers.0.reading().open.len(), 2);
    }
}
