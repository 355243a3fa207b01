//! What is done with the store again and again, whatever becomes of it in between.

use super::StoreError;
use crate::clock::Clock;
use std::time::Duration;

/// Does `work` each time that `every` has passed, for ever. The first failure after a success is logged; the message of the log
/// is `trouble`, which says what cannot be done and what holds meanwhile.
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
