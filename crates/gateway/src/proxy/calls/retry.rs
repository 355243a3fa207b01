//! Retries calls whose connection broke. Two cases are distinct:
//!
//! - The upstream did not process the call (HTTP/2 `REFUSED_STREAM`, or a pooled connection that was
//!   already closed). Any call with a buffered body is retried up to `UNTAKEN_MAX` times, outside
//!   the budget. `proxy/upstream/judge.rs` decides whether a call was processed.
//! - The connection broke before a response, and the call may have been processed. Only a repeatable
//!   call is retried, once, and only within the retry budget.

use super::call::{Call, Caller};
use crate::error::{ErrorKind, GatewayError, RetrySafety as Again};
use crate::proxy::Response;
use crate::telemetry::metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Maximum number of retries of an unprocessed call. Several connections may close one after
/// another, so one retry is not enough; an upstream that rejects every call is overloaded.
const UNTAKEN_MAX: usize = 3;

/// A retry budget: a percentage of all calls, plus a reserve for periods of low traffic. It prevents
/// retries from doubling the load of a failing upstream. Clones share the balance.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Available retries, in hundredths.
    balance: Arc<AtomicI64>,
    reserve: i64,
    percent: i64,
}

impl Budget {
    /// Returns a budget of `percent` of all calls that accumulates at most `reserve` retries. It
    /// starts with the reserve.
    pub fn new(percent: u8, reserve: u16) -> Budget {
        let reserve = i64::from(reserve) * 100;
        Budget { balance: Arc::new(AtomicI64::new(reserve)), reserve, percent: i64::from(percent) }
    }

    fn earn(&self) {
        // Load and add are not atomic: each concurrent call may exceed the reserve by `percent`.
        if self.balance.load(Relaxed) < self.reserve {
            self.balance.fetch_add(self.percent, Relaxed);
        }
    }

    fn spend(&self) -> bool {
        // Unlike earning, spending is exact: many calls fail at the same moment when an upstream
        // restarts, and each of them would otherwise see the last retry.
        self.balance.fetch_update(Relaxed, Relaxed, |balance| (balance >= 100).then(|| balance - 100)).is_ok()
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(10, 50)
    }
}

/// A layer that retries calls.
#[derive(Debug)]
pub(crate) struct Retry<S> {
    inner: S,
    budget: Budget,
}

impl<S> Retry<S> {
    pub(crate) fn new(inner: S, budget: Budget) -> Retry<S> {
        Retry { inner, budget }
    }
}

impl<S: Caller> Caller for Retry<S> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        // Every call earns, even one that fails: the budget is a share of the traffic.
        self.budget.earn();
        let mut outcome = self.inner.call(call).await;
        for again in 0..UNTAKEN_MAX {
            match &outcome {
                // Boxed because retries are rare: the common future stays small.
                // A streamed body has been partly consumed by the failed attempt and cannot be sent
                // again.
                Err(error) if is_untaken(error) && call.payload.is_whole() => {
                    count(call, "unprocessed");
                    // All rejected calls meet on the next pooled connection. An upstream that closes
                    // connections after a few calls would reject some of them again and again, so
                    // the second retry uses a connection of its own.
                    call.delivery.is_alone = again > 0;
                    outcome = Box::pin(self.inner.call(call)).await;
                }
                _ => break,
            }
        }
        let can_repeat = call.delivery.is_repeatable && call.payload.is_whole();
        let is_repeated = match &outcome {
            // The budget is charged last, so that calls that are not retried anyway do not use it
            // up.
            Err(error) => can_repeat && is_worth_it(error) && self.budget.spend(),
            Ok(_) => false,
        };
        if !is_repeated {
            return outcome;
        }
        count(call, "broken");
        tracing::debug!(error = ?outcome.err(), "a call is sent once more");
        // Boxed because retries are rare: the common future stays small.
        Box::pin(self.inner.call(call)).await
    }
}

fn count(call: &Call, why: &'static str) {
    metrics::count_retry(call.upstream.name(), call.upstream.role().name(), why);
}

/// Returns whether the upstream did not process the call: HTTP/2 reported that, or the connection was
/// already closed.
fn is_untaken(error: &GatewayError) -> bool {
    *error.kind() == ErrorKind::UpstreamClosed && error.retry() == Again::Safe
}

/// Returns whether a retry is likely to succeed: the connection broke during the exchange. A refused
/// connection or a timeout would probably recur.
fn is_worth_it(error: &GatewayError) -> bool {
    matches!(error.kind(), ErrorKind::UpstreamClosed | ErrorKind::UpstreamBroken)
        && error.retry() == Again::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_share_of_calls_once_the_reserve_is_spent() {
        let budget = Budget::new(10, 2);
        assert!(budget.spend() && budget.spend() && !budget.spend());
        for _ in 0..9 {
            budget.earn();
        }
        assert!(!budget.spend());
        budget.earn();
        assert!(budget.spend() && !budget.spend());
    }
}
