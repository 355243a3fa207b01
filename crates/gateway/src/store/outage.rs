//! Knowing that the database is away without asking it. Whoever asks a database that does not answer waits for seconds, and
//! requests of clients would each wait in turn. So while it is away one caller at a time tries, and all others learn at once
//! that it is.

use super::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long after a failure the next caller may try.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one caller may be at it before the next may try as well.
const TRY: Duration = Duration::from_secs(15);

/// Whether the database is away. Machine time, since it is about a machine.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// When the next caller may try; none while the database answers.
    next_try: Mutex<Option<Instant>>,
}

impl Outage {
    /// Asks the database, unless it is known to be away, and takes note of how it went.
    pub(super) async fn guard<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.admit()?;
        let outcome = work.await;
        self.note(&outcome);
        outcome
    }

    /// Takes note of an answer.
    pub(super) fn note<T>(&self, outcome: &Result<T, StoreError>) {
        let mut next_try = self.next_try();
        match outcome {
            Err(StoreError::Unavailable(_)) => *next_try = Some(Instant::now() + PAUSE),
            // Other errors are answers too.
            _ if next_try.is_some() => *next_try = None,
            _ => {}
        }
    }

    fn admit(&self) -> Result<(), StoreError> {
        let mut next_try = self.next_try();
        let now = Instant::now();
        match *next_try {
            Some(at) if now < at => {
                Err(StoreError::Unavailable("the database did not answer a moment ago".to_owned()))
            }
            Some(_) => {
                *next_try = Some(now + TRY);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn next_try(&self) -> MutexGuard<'_, Option<Instant>> {
        self.next_try.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Result<(), StoreError> {
        Err(StoreError::Unavailable("connection refused".to_owned()))
    }

    #[tokio::test]
    async fn while_the_database_is_away_one_caller_at_a_time_tries() {
        let outage = Outage::default();
        assert!(outage.guard(async { away() }).await.is_err());
        let untried = async { panic!("nobody is to be kept waiting") };
        assert!(outage.guard::<()>(untried).await.is_err());
        // The pause is over.
        *outage.next_try() = Some(Instant::now());
        let trying = outage.guard(async {
            let untried = async { panic!("one is at it already") };
            assert!(outage.guard::<()>(untried).await.is_err());
            Ok(())
        });
        trying.await.expect("it is back");
        outage.guard(async { Ok(()) }).await.expect("for all");
    }

    #[tokio::test]
    async fn an_error_that_the_database_answers_is_no_outage() {
        let outage = Outage::default();
        let refused = outage.guard::<()>(async { Err(StoreError::NameTaken("acme".to_owned())) }).await;
        assert!(refused.is_err());
        outage.guard(async { Ok(()) }).await.expect("asked as ever");
    }
}
