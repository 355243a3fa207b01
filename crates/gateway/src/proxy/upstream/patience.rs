//! How long a call waits for the head of its answer: until a fixed moment, or, of a forwarded call, as long as bytes pass.

use crate::body::LastByte;
use std::pin::pin;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// The wait for the head of an answer.
pub(super) struct Patience {
    until: Instant,
    last_byte: Option<Arc<LastByte>>,
}

/// The head did not come in time.
pub(super) struct Late;

impl Patience {
    /// Waits until this moment, and beyond it while bytes of a forwarded call pass.
    pub(super) fn new(until: Instant, last_byte: Option<Arc<LastByte>>) -> Patience {
        Patience { until, last_byte }
    }

    /// When the wait is over, as far as is known at its beginning.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// When it is over after all, where bytes have passed meanwhile.
    pub(super) fn extension(&self) -> Option<Instant> {
        self.last_byte.as_ref()?.deadline()
    }

    /// Waits for `head`.
    pub(super) async fn wait<F: Future>(&self, head: F) -> Result<F::Output, Late> {
        let (mut head, mut until) = (pin!(head), self.until);
        loop {
            match timeout_at(until, head.as_mut()).await {
                Ok(outcome) => return Ok(outcome),
                Err(_) => until = self.extension().ok_or(Late)?,
            }
        }
    }
}
