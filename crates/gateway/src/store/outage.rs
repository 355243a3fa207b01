//! Detects an unavailable database without querying it. A query to a database that does not answer
//! takes seconds, and client requests would each wait in turn. During an outage, one caller at a
//! time therefore tries, and all others fail at once.

use super::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time after a failure until the next caller may try.
const PAUSE: Duration = Duration::from_millis(500);
/// Time after which another caller may try while the first still waits. It doubles with each
/// attempt without a response.
const TRY: Duration = Duration::from_millis(500);
/// Longest time between two attempts, and therefore until a recovery is noticed.
const TRY_MAX: Duration = Duration::from_secs(4);

/// The availability of the database. It uses machine time, since it concerns a machine.
#[derive(Debug, Default)]
pub(super) struct StoreOutage {
    state: Mutex<OutageState>,
}

#[derive(Debug, Default)]
struct OutageState {
    /// `None` while the database answers.
    away: Option<Away>,
    /// Time of the first response after the last outage.
    back: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Away {
    next_try: Instant,
    /// Attempts since the last response.
    tries: u32,
}

impl StoreOutage {
    /// Runs a query unless the database is known to be unavailable, and records the outcome.
    pub(super) async fn guard<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.admit()?;
        let began = Instant::now();
        let outcome = work.await;
        self.note_since(began, &outcome);
        outcome
    }

    /// Returns whether the database failed to answer the last query.
    pub(super) fn is_away(&self) -> bool {
        self.state().away.is_some()
    }

    /// Records the outcome of a query.
    pub(super) fn note<T>(&self, outcome: &Result<T, StoreError>) {
        self.note_since(Instant::now(), outcome);
    }

    fn note_since<T>(&self, began: Instant, outcome: &Result<T, StoreError>) {
        // Other errors are responses too.
        let is_answer = !matches!(outcome, Err(StoreError::Unavailable(_)));
        self.state().note(began, Instant::now(), is_answer);
    }

    fn admit(&self) -> Result<(), StoreError> {
        match self.state().admits(Instant::now()) {
            true => Ok(()),
            false => Err(StoreError::Unavailable("the database did not answer a moment ago".to_owned())),
        }
    }

    fn state(&self) -> MutexGuard<'_, OutageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutageState {
    /// Returns whether a caller may query now. During an outage this counts as an attempt.
    fn admits(&mut self, now: Instant) -> bool {
        let Some(away) = &mut self.away else { return true };
        if now < away.next_try {
            return false;
        }
        away.next_try = now + TRY.saturating_mul(1 << away.tries.min(8)).min(TRY_MAX);
        away.tries += 1;
        true
    }

    /// Records the outcome of a query that started at `began`. A failure of a query that started
    /// before the recovery concerns its connection, not the database.
    fn note(&mut self, began: Instant, now: Instant, is_answer: bool) {
        if is_answer {
            if self.away.take().is_some() {
                self.back = Some(now);
            }
        } else if self.back.is_none_or(|back| began >= back) {
            let tries = self.away.map_or(0, |away| away.tries);
            self.away = Some(Away { next_try: now + PAUSE, tries });
        }
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
        let outage = StoreOutage::default();
        assert!(outage.guard(async { away() }).await.is_err());
        let untried = async { panic!("nobody is to be kept waiting") };
        assert!(outage.guard::<()>(untried).await.is_err());
        // The pause is over.
        outage.state().away.as_mut().expect("it is away").next_try = Instant::now();
        let trying = outage.guard(async {
            let untried = async { panic!("one is at it already") };
            assert!(outage.guard::<()>(untried).await.is_err());
            Ok(())
        });
        trying.await.expect("it is back");
        outage.guard(async { Ok(()) }).await.expect("for all");
    }

    #[test]
    fn a_database_that_is_back_is_noticed_soon_though_every_try_hangs() {
        let (mut state, begin) = (OutageState::default(), Instant::now());
        state.note(begin, begin, false);
        // Connections to a host that is gone return neither a response nor an error.
        let mut now = begin;
        for wait in [PAUSE, TRY, 2 * TRY, 4 * TRY, TRY_MAX, TRY_MAX] {
            assert!(!state.admits(now + wait - Duration::from_millis(1)), "{wait:?}");
            now += wait;
            assert!(state.admits(now), "{wait:?}");
        }
        // It answers, and the call that was pending since before fails afterwards.
        now += TRY_MAX;
        assert!(state.admits(now));
        state.note(now, now, true);
        state.note(begin, now + TRY, false);
        assert!(state.admits(now + TRY), "a failure of before is none of now");
        state.note(now + TRY, now + 2 * TRY, false);
        assert!(!state.admits(now + 2 * TRY), "it is away again");
    }

    #[tokio::test]
    async fn an_error_that_the_database_answers_is_no_outage() {
        let outage = StoreOutage::default();
        let refused = outage.guard::<()>(async { Err(StoreError::NameTaken("acme".to_owned())) }).await;
        assert!(refused.is_err());
        outage.guard(async { Ok(()) }).await.expect("asked as ever");
    }
}
