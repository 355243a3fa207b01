//! Time sources: wall time for records and display, monotonic time for waits and expiry. A
//! [`Clock`] reads either the machine's time or a value that a test controls.
//!
//! Wall time may jump (an operator, NTP, a restored snapshot), and no loop or arithmetic may depend
//! on its order. Deadlines therefore use monotonic time. Wall time only carries a deadline across a
//! restart.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;

/// A cheap handle to a time source. Clones share their time.
#[derive(Clone, Debug)]
pub struct Clock(ClockSource);

#[derive(Clone, Debug)]
enum ClockSource {
    Machine { start: Instant },
    Set(Arc<watch::Sender<ClockReading>>),
}

#[derive(Clone, Copy, Debug)]
struct ClockReading {
    unix_ms: i64,
    elapsed: Duration,
}

impl Clock {
    /// Returns the machine's clock.
    pub fn machine() -> Self {
        Clock(ClockSource::Machine { start: Instant::now() })
    }

    /// Returns a clock that is paused at `unix_ms` (milliseconds since 1970 UTC) until it is
    /// advanced.
    pub fn paused_at(unix_ms: i64) -> Self {
        Clock(ClockSource::Set(Arc::new(watch::Sender::new(ClockReading {
            unix_ms,
            elapsed: Duration::ZERO,
        }))))
    }

    /// Returns wall time in milliseconds since 1970 UTC. It may go backwards.
    pub fn unix_ms(&self) -> i64 {
        match &self.0 {
            ClockSource::Machine { .. } => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
                Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
            },
            ClockSource::Set(reading) => reading.borrow().unix_ms,
        }
    }

    /// Returns the monotonic time since this clock was created. It never goes backwards.
    pub fn elapsed(&self) -> Duration {
        match &self.0 {
            ClockSource::Machine { start } => start.elapsed(),
            ClockSource::Set(reading) => reading.borrow().elapsed,
        }
    }

    /// Waits until `for_how_long` of monotonic time has passed.
    pub async fn sleep(&self, for_how_long: Duration) {
        self.sleep_until(self.elapsed().saturating_add(for_how_long)).await;
    }

    /// Waits until [`Clock::elapsed`] reaches `deadline`. Returns at once if it already has.
    pub async fn sleep_until(&self, deadline: Duration) {
        match &self.0 {
            ClockSource::Machine { start } => match start.checked_add(deadline) {
                Some(instant) => tokio::time::sleep_until(instant.into()).await,
                None => std::future::pending().await,
            },
            ClockSource::Set(reading) => {
                let mut moved = reading.subscribe();
                // `self` holds the sender, so the wait can only finish by reaching the deadline.
                let _ = moved.wait_for(|now| now.elapsed >= deadline).await;
            }
        }
    }

    /// Advances wall and monotonic time of a paused clock and wakes its waiters. Has no effect on
    /// the machine's clock.
    pub fn advance(&self, by: Duration) {
        if let ClockSource::Set(reading) = &self.0 {
            reading.send_modify(|now| {
                now.elapsed = now.elapsed.saturating_add(by);
                now.unix_ms = now.unix_ms.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
            });
        }
    }

    /// Sets the wall time of a paused clock, as an operator or NTP would. Monotonic time is
    /// unaffected.
    pub fn set_wall(&self, unix_ms: i64) {
        if let ClockSource::Set(reading) = &self.0 {
            reading.send_modify(|now| now.unix_ms = unix_ms);
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::machine()
    }
}

/// Formats wall time as RFC 3339, to the second. Times outside the range of RFC 3339 are rendered
/// in milliseconds.
pub fn rfc3339(unix_ms: i64) -> String {
    let moment = OffsetDateTime::from_unix_timestamp(unix_ms.div_euclid(1000)).ok();
    moment.and_then(|moment| moment.format(&Rfc3339).ok()).unwrap_or_else(|| format!("{unix_ms} ms"))
}

/// Parses RFC 3339 text to milliseconds since 1970. Returns `None` if the text is invalid.
pub fn unix_ms(text: &str) -> Option<i64> {
    let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_a_paused_clock_passes_its_deadline() {
        let clock = Clock::paused_at(1_000);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep(Duration::from_secs(60)).await;
                clock.unix_ms()
            }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        assert_eq!(sleeper.await.expect("the sleeper does not panic"), 61_000);
    }

    #[test]
    fn a_jump_of_the_wall_leaves_monotonic_time_alone() {
        let clock = Clock::paused_at(0);
        clock.advance(Duration::from_secs(5));
        clock.set_wall(-40 * 86_400_000);
        assert_eq!((clock.unix_ms(), clock.elapsed()), (-40 * 86_400_000, Duration::from_secs(5)));
    }

    #[tokio::test]
    async fn a_deadline_beyond_all_time_neither_panics_nor_returns() {
        let clock = Clock::machine();
        let forever = clock.sleep(Duration::MAX);
        assert!(futures_util::FutureExt::now_or_never(forever).is_none());
    }
}
