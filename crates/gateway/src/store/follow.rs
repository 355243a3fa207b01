//! Periodic work on the store that continues after failures.

use super::StoreError;
use crate::clock::Clock;
use std::time::Duration;

/// Runs `work` after every interval of `every`, until dropped. Logs the first failure after a
/// success with the message `trouble`, which describes the failure and its consequence.
pub(crate) async fn repeat<F: Future<Output = Result<(), StoreError>>>(
    clock: &Clock,
    every: Duration,
    trouble: &'static str,
    work: impl Fn() -> F,
) {
    let mut is_failing = false;
    loop {
        clock.sleep(every).await;
        let outcome = work().await;
        if let Err(error) = &outcome
            && !is_failing
        {
            tracing::warn!(%error, "{trouble}");
        }
        is_failing = outcome.is_err();
    }
}
