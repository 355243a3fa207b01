//! A bounded copy of a body for the shadow, taken while the body is read. The copy is charged to the
//! shadow's memory budget. If the budget is exhausted, the copy is discarded and the body itself is
//! not affected.

use crate::body::{BodyEnd, BodyWatcher};
use crate::memory::{Memory, MemoryShare};
use bytes::Bytes;
use switchback_engine::diff::{BufferedAnswer, Buffering, SkipReason};

/// The finished copy, or why there is no copy.
pub(super) type BodyCopy = Result<(BufferedAnswer, MemoryShare), SkipReason>;

/// A body watcher that copies the body and calls `done` once, when the body completes, fails or is
/// dropped.
pub(super) struct Tee<F: FnOnce(BodyCopy) + Send> {
    /// `None` after the memory budget was exhausted.
    holding: Option<Buffering>,
    share: MemoryShare,
    body_bytes: u64,
    /// The skip reason if the body fails.
    failed: SkipReason,
    done: Option<F>,
}

impl<F: FnOnce(BodyCopy) + Send> Tee<F> {
    /// Buffers the first `body_bytes` bytes and a digest of the rest. `done` must not block, because it
    /// runs on the task that reads the body.
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
        // Bytes beyond `body_bytes` are only hashed, so they need no reservation.
        let left = self.body_bytes.saturating_sub(self.share.bytes());
        if self.share.grow(left.min(bytes.len() as u64)).is_ok() {
            holding.push(bytes);
        } else {
            // Releases the buffer now rather than with the body, because memory is scarce at this
            // moment.
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
