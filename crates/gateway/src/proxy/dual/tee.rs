//! A bounded copy of a body for the shadow, taken while the body goes to its reader. Its memory counts against the shadow's
//! budget: when there is none left, the copy is given up, and the reader gets its bytes all the same.

use crate::body::{BodyEnd, BodyWatcher};
use crate::memory::{Memory, MemoryShare};
use bytes::Bytes;
use switchback_engine::diff::{BufferedAnswer, Buffering, SkipReason};

/// What became of the copy.
pub(super) type BodyCopy = Result<(BufferedAnswer, MemoryShare), SkipReason>;

/// Copies a body; then `done` is told once. Given to [`crate::body::Body::watched`].
pub(super) struct Tee<F: FnOnce(BodyCopy) + Send> {
    /// None once there was no memory for it.
    holding: Option<Buffering>,
    share: MemoryShare,
    body_bytes: u64,
    /// What it means when the body breaks off.
    failed: SkipReason,
    done: Option<F>,
}

impl<F: FnOnce(BodyCopy) + Send> Tee<F> {
    /// Keeps the first `body_bytes` bytes and a digest of the rest. `done` must not block: it is called where the body is
    /// read.
    pub(super) fn new(memory: &Memory, body_bytes: usize, failed: SkipReason, done: F) -> Tee<F> {
        Tee {
            holding: Some(Buffering::new(body_bytes)),
            share: memory.share(),
            body_bytes: body_bytes as u64,
            failed,
            done: Some(done),
        }
    }
}

impl<F: FnOnce(BodyCopy) + Send> BodyWatcher for Tee<F> {
    fn chunk(&mut self, bytes: &Bytes) {
        let Some(holding) = &mut self.holding else { return };
        let left = self.body_bytes.saturating_sub(self.share.bytes());
        if self.share.grow(left.min(bytes.len() as u64)).is_ok() {
            holding.push(bytes);
        } else {
            self.holding = None;
        }
    }

    fn end(&mut self, end: BodyEnd) {
        let Some(done) = self.done.take() else { return };
        let nothing = self.share.empty_share();
        let share = std::mem::replace(&mut self.share, nothing);
        done(match (end, self.holding.take()) {
            (BodyEnd::Abandoned, _) => Err(SkipReason::ClientGone),
            (BodyEnd::Failed, _) => Err(self.failed),
            (BodyEnd::Complete, None) => Err(SkipReason::Memory),
            (BodyEnd::Complete, Some(holding)) => Ok((holding.finish(), share)),
        });
    }
}
