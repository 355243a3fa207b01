//! The memory that the shadow may use for bodies: one bound for all of them, taken piece by piece and given back when dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The memory that all kept bodies share.
#[derive(Clone, Debug)]
pub struct Room {
    used: Arc<AtomicU64>,
    bytes_max: u64,
}

/// What one pair uses of it.
#[derive(Debug)]
pub struct Kept {
    room: Room,
    bytes: u64,
}

impl Room {
    pub fn new(bytes_max: u64) -> Room {
        Room { used: Arc::default(), bytes_max }
    }

    /// Nothing yet.
    pub fn take(&self) -> Kept {
        Kept { room: self.clone(), bytes: 0 }
    }

    /// Bytes in use now.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }
}

impl Kept {
    /// Takes so many bytes more; `false`, and nothing taken, when there is no room for them.
    #[must_use]
    pub fn grow(&mut self, bytes: u64) -> bool {
        let before = self.room.used.fetch_add(bytes, Relaxed);
        if before.saturating_add(bytes) > self.room.bytes_max {
            self.room.used.fetch_sub(bytes, Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }

    /// Bytes taken so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn room(&self) -> &Room {
        &self.room
    }

    /// The memory of both, given back together.
    pub fn join(&mut self, mut other: Kept) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_not_taken_and_everything_is_given_back() {
        let room = Room::new(10);
        let mut first = room.take();
        let mut second = room.take();
        assert!(first.grow(6) && second.grow(4) && !second.grow(1));
        assert_eq!(room.used(), 10);
        first.join(second);
        assert_eq!(room.used(), 10);
        drop(first);
        assert_eq!(room.used(), 0);
    }
}
