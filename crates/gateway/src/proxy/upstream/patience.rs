//! Deadline for a response head. It is fixed for translated calls and moves with every byte of a
//! forwarded call.

use crate::body::LastByte;
use std::pin::pin;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Deadline for a response head.
pub(super) struct HeadDeadline {
    until: Instant,
    last_byte: Option<Arc<LastByte>>,
}

/// The response head did not arrive in time.
pub(super) struct HeadTimeout;

impl HeadDeadline {
    /// Creates a deadline at `until`, which moves while bytes of a forwarded call pass.
    pub(super) fn new(until: Instant, last_byte: Option<Arc<LastByte>>) -> HeadDeadline {
        HeadDeadline { until, last_byte }
    }

    /// Returns the initial deadline.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Returns the later deadline, if bytes have passed since the last one was set.
    pub(super) fn extension(&self) -> Option<Instant> {
        self.last_byte.as_ref()?.deadline()
    }

    /// Waits for `head` until the deadline.
    pub(super) async fn wait<F: Future>(&self, head: F) -> Result<F::Output, HeadTimeout> {
        let (mut head, mut until) = (pin!(head), self.until);
        loop {
            match timeout_at(until, head.as_mut()).await {
                Ok(outcome) => return Ok(outcome),
                // The deadline is read only when the timer fires; checking it per byte would cost
                // more.
                Err(_) => until = self.extension().ok_or(HeadTimeout)?,
            }
        }
    }
}
