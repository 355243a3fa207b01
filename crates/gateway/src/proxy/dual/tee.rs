//! A bounded copy of a body for the shadow, taken while the body goes to its reader. Its memory counts against the shadow's
//! room: when there is none, the copy is given up, and the reader gets its bytes all the same.

use crate::body::{End, Watch};
use crate::shadow::{Dropped, Kept, Room};
use bytes::Bytes;
use switchback_engine::diff::{Held, Holding};

/// What became of the copy.
pub type Copy = Result<(Held, Kept), Dropped>;

/// Copies a body; then `done` is told once. Given to [`crate::body::Body::watched`].
pub struct Tee<F: FnOnce(Copy) + Send> {
    /// None once there was no room.
    holding: Option<Holding>,
    kept: Kept,
    body_bytes: u64,
    /// What it means when the body breaks off.
    failed: Dropped,
    done: Option<F>,
}

impl<F: FnOnce(Copy) + Send> Tee<F> {
    /// Keeps the first `body_bytes` bytes and a digest of the rest. `done` must not block: it is called where the body is
    /// read.
    pub fn new(room: &Room, body_bytes: usize, failed: Dropped, done: F) -> Tee<F> {
        Tee {
            holding: Some(Holding::new(body_bytes)),
            kept: room.take(),
            body_bytes: body_bytes as u64,
            failed,
            done: Some(done),
        }
    }
}

impl<F: FnOnce(Copy) + Send> Watch for Tee<F> {
    fn chunk(&mut self, bytes: &Bytes) {
        let Some(holding) = &mut self.holding else { return };
        let room = self.body_bytes.saturating_sub(self.kept.bytes());
        if self.kept.grow(room.min(bytes.len() as u64)) {
            holding.push(bytes);
        } else {
            self.holding = None;
        }
    }

    fn end(&mut self, end: End) {
        let Some(done) = self.done.take() else { return };
        let room = self.kept.room().clone();
        let kept = std::mem::replace(&mut self.kept, room.take());
        done(match (end, self.holding.take()) {
            (End::Abandoned, _) => Err(Dropped::ClientGone),
            (End::Failed, _) => Err(self.failed),
            (End::Complete, None) => Err(Dropped::Memory),
            (End::Complete, Some(holding)) => Ok((holding.finish(), kept)),
        });
    }
}
