//! Sends a call once more when that is harmless and likely to help: the call may be repeated (inbound method, outbound
//! method and plan agree), or nothing of it reached the upstream; the connection broke before an answer began, as a pooled
//! connection does that the upstream closed a moment ago; and the budget of retries is not spent. Never twice. A call that the
//! upstream did not take is sent again whatever it does, a few times: on the next connection, and from then on each time on one
//! of its own. What counts as not taken is judged where the connection is known: `proxy/upstream/judge.rs`.

use super::call::{Call, Caller};
use crate::error::{ErrorKind, GatewayError, RetrySafety as Again};
use crate::proxy::Response;
use crate::telemetry::metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// How often a call is sent again that the upstream did not take. More than once, since connections that end one after another
/// may each turn it away; not for ever, since one that turns all away has had enough.
const UNTAKEN_MAX: usize = 3;

/// How many retries there may be: a share of all calls, with a reserve for quiet times. It keeps a struggling upstream from
/// getting twice the load.
#[derive(Clone, Debug)]
pub struct Budget {
    /// In hundredths of a retry.
    balance: Arc<AtomicI64>,
    reserve: i64,
    percent: i64,
}

impl Budget {
    /// `percent` of calls, and `reserve` retries saved up at most.
    pub fn new(percent: u8, reserve: u16) -> Budget {
        let reserve = i64::from(reserve) * 100;
        Budget { balance: Arc::new(AtomicI64::new(reserve)), reserve, percent: i64::from(percent) }
    }

    fn earn(&self) {
        if self.balance.load(Relaxed) < self.reserve {
            self.balance.fetch_add(self.percent, Relaxed);
        }
    }

    fn spend(&self) -> bool {
        self.balance.fetch_update(Relaxed, Relaxed, |balance| (balance >= 100).then(|| balance - 100)).is_ok()
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(10, 50)
    }
}

/// The layer: what it sends goes by `inner`.
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
        self.budget.earn();
        let mut outcome = self.inner.call(call).await;
        for again in 0..UNTAKEN_MAX {
            match &outcome {
                // Boxed, as below.
                Err(error) if is_untaken(error) && call.payload.is_whole() => {
                    count(call, "unprocessed");
                    // All calls that were turned away meet on the next connection, and it may take no more of them than the
                    // last did: an upstream that ends connections after few calls would turn some away time and again.
                    call.is_alone = again > 0;
                    outcome = Box::pin(self.inner.call(call)).await;
                }
                _ => break,
            }
        }
        let can_repeat = call.is_repeatable && call.payload.is_whole();
        let is_repeated = match &outcome {
            Err(error) => can_repeat && is_worth_it(error) && self.budget.spend(),
            Ok(_) => false,
        };
        if !is_repeated {
            return outcome;
        }
        count(call, "broken");
        tracing::debug!(error = ?outcome.err(), "a call is sent once more");
        // Boxed: it is rare, and the usual call need not carry its size.
        Box::pin(self.inner.call(call)).await
    }
}

fn count(call: &Call, why: &'static str) {
    metrics::count_retry(call.upstream.name(), call.upstream.role().name(), why);
}

/// A call of which the upstream did nothing, as HTTP/2 can say, or which met a connection that had ended.
fn is_untaken(error: &GatewayError) -> bool {
    *error.kind() == ErrorKind::UpstreamClosed && error.retry() == Again::Safe
}

/// A broken exchange is worth a second try; a refused connection or a slow answer would only be so again.
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
