//! Times of day at which a rollout may advance. Plain values.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::fmt;
use switchback_plan::convert::{ArgumentError, time_zone};

/// A part of the day, on some days of the week, in a time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeWindow {
    from: DayTime,
    until: DayTime,
    /// Monday first. A window over midnight belongs to the day on which it opens.
    days: [bool; 7],
    zone: TimeZone,
    /// The name of the zone.
    zone_name: String,
}

/// A time of day in minutes since midnight, at most 24:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DayTime(u16);

impl DayTime {
    /// Returns the time of an hour and a minute, up to 24:00. Returns `None` for others.
    pub fn new(hour: u16, minute: u16) -> Option<DayTime> {
        let time = DayTime(hour.checked_mul(60)?.checked_add(minute)?);
        (minute < 60 && time.0 <= 24 * 60).then_some(time)
    }
}

impl fmt::Display for DayTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl TimeWindow {
    /// Creates the window of these times on these days, Monday first. With `until` before `from`,
    /// it extends over midnight.
    ///
    /// # Errors
    ///
    /// The zone is neither an offset nor in the IANA time zone database.
    pub fn new(
        from: DayTime,
        until: DayTime,
        days: [bool; 7],
        zone: &str,
    ) -> Result<TimeWindow, ArgumentError> {
        Ok(TimeWindow { from, until, days, zone: time_zone(zone)?, zone_name: zone.to_owned() })
    }

    /// Returns whether the window is open at a wall time in milliseconds since 1970.
    pub fn is_open(&self, now_ms: i64) -> bool {
        let Some(local) = self.local(now_ms) else { return false };
        let (day, now) = (self.day(local), minute_of_day(local));
        if self.from < self.until {
            return self.days[day] && self.from <= now && now < self.until;
        }
        let is_yesterdays = self.days[(day + 6) % 7] && now < self.until;
        is_yesterdays || (self.days[day] && now >= self.from)
    }

    /// Returns the wall time of the next opening in milliseconds since 1970: `now_ms` if the window
    /// is open. On a day on which the clocks skip the time of opening, the result is later by up to
    /// the skipped time; [`TimeWindow::is_open`] is exact.
    pub fn next_opening(&self, now_ms: i64) -> Option<i64> {
        if self.is_open(now_ms) {
            return Some(now_ms);
        }
        let mut date = self.local(now_ms)?.date();
        // A day of the week recurs after seven days, and today may be over.
        for _ in 0..=7 {
            let (hour, minute) = (i8::try_from(self.from.0 / 60).ok()?, i8::try_from(self.from.0 % 60).ok()?);
            let local = date.at(hour.min(23), minute, 0, 0);
            let opens = self.zone.to_timestamp(local).ok()?.as_millisecond();
            if self.days[self.day(local)] && opens > now_ms {
                return Some(opens);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn local(&self, now_ms: i64) -> Option<DateTime> {
        Some(self.zone.to_datetime(Timestamp::from_millisecond(now_ms).ok()?))
    }

    fn day(&self, local: DateTime) -> usize {
        usize::try_from(local.weekday().to_monday_zero_offset()).unwrap_or_default()
    }
}

fn minute_of_day(local: DateTime) -> DayTime {
    let part = |part: i8| u16::try_from(part).unwrap_or_default();
    DayTime(part(local.hour()) * 60 + part(local.minute()))
}

/// The names of the days, Monday first.
pub const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl fmt::Display for TimeWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} {}", self.from, self.until, self.zone_name)?;
        if self.days.contains(&false) {
            let days = DAYS.iter().zip(self.days).filter_map(|(name, is_in)| is_in.then_some(*name));
            write!(f, " on {}", days.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEKDAYS: [bool; 7] = [true, true, true, true, true, false, false];

    fn window(from: (u16, u16), until: (u16, u16), days: [bool; 7], zone: &str) -> TimeWindow {
        let time = |(hour, minute)| DayTime::new(hour, minute).expect("a time of day");
        TimeWindow::new(time(from), time(until), days, zone).expect("a zone")
    }

    fn at(text: &str) -> i64 {
        crate::clock::unix_ms(text).expect("a time")
    }

    /// Checks for each moment whether the window is open, and its next opening.
    fn check(window: &TimeWindow, cases: &[(&str, &str)]) {
        for (now, opens) in cases {
            assert_eq!(window.is_open(at(now)), now == opens, "{now}");
            assert_eq!(window.next_opening(at(now)), Some(at(opens)), "{now}");
        }
    }

    #[test]
    fn office_hours_follow_the_clocks_of_their_zone() {
        let hours = window((9, 0), (17, 0), WEEKDAYS, "Europe/Berlin");
        assert_eq!(hours.to_string(), "09:00-17:00 Europe/Berlin on mon, tue, wed, thu, fri");
        check(
            &hours,
            &[
                // Friday; Berlin is one hour ahead in winter.
                ("2026-03-27T07:59:59Z", "2026-03-27T08:00:00Z"),
                ("2026-03-27T08:00:00Z", "2026-03-27T08:00:00Z"),
                ("2026-03-27T15:59:59Z", "2026-03-27T15:59:59Z"),
                // Over the weekend the clocks are set forward: two hours ahead on Monday.
                ("2026-03-27T16:00:00Z", "2026-03-30T07:00:00Z"),
                ("2026-03-29T12:00:00Z", "2026-03-30T07:00:00Z"),
                ("2026-03-30T14:59:59Z", "2026-03-30T14:59:59Z"),
                ("2026-03-30T15:00:00Z", "2026-03-31T07:00:00Z"),
                // And back in autumn.
                ("2026-10-23T15:00:00Z", "2026-10-26T08:00:00Z"),
            ],
        );
    }

    #[test]
    fn a_window_is_open_after_a_skipped_hour_and_twice_in_a_repeated_one() {
        let night = window((2, 30), (4, 0), [true; 7], "Europe/Berlin");
        check(
            &night,
            &[
                // 02:00 to 03:00 does not exist on this day.
                ("2026-03-29T00:59:00Z", "2026-03-29T01:30:00Z"),
                ("2026-03-29T01:30:00Z", "2026-03-29T01:30:00Z"),
                ("2026-03-29T02:00:00Z", "2026-03-30T00:30:00Z"),
                // 02:00 to 03:00 exists twice.
                ("2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z"),
                ("2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z"),
            ],
        );
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_on_which_it_opens() {
        let friday = [false, false, false, false, true, false, false];
        let night = window((22, 0), (4, 0), friday, "UTC");
        check(
            &night,
            &[
                ("2026-01-02T03:00:00Z", "2026-01-02T22:00:00Z"),
                ("2026-01-02T22:00:00Z", "2026-01-02T22:00:00Z"),
                ("2026-01-03T03:59:00Z", "2026-01-03T03:59:00Z"),
                ("2026-01-03T04:00:00Z", "2026-01-09T22:00:00Z"),
            ],
        );
        check(
            &window((18, 0), (24, 0), [true; 7], "+02:00"),
            &[("2026-01-01T21:59:00Z", "2026-01-01T21:59:00Z")],
        );
        assert_eq!((DayTime::new(24, 1), DayTime::new(9, 60)), (None, None));
    }
}
