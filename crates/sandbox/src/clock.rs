//! The two clocks of the sandbox. Timestamps in the data use a logical clock that starts at a fixed
//! instant and advances one second per write, so that equal calls produce equal bytes. Token
//! lifetimes use the wall clock, because `expires_in` is in real seconds. The clock control
//! advances both.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Start of the logical clock: 2026-03-02 09:00:00.
pub const START: i64 = 1_772_442_000;

/// The wall clock in milliseconds, with an offset set by control.
#[derive(Default)]
pub struct Wall {
    moved_ms: AtomicI64,
}

impl Wall {
    /// Returns milliseconds since the Unix epoch, including the offset.
    pub fn now_ms(&self) -> i64 {
        // A clock set before 1970 counts as its start. The sandbox has no use for an error here.
        let real = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        real.saturating_add(self.moved_ms.load(Ordering::Relaxed))
    }

    /// Advances the clock by this number of seconds, which may be negative.
    pub fn advance(&self, seconds: i64) {
        self.moved_ms.fetch_add(seconds.saturating_mul(1000), Ordering::Relaxed);
    }

    /// Resets the offset to zero.
    pub fn reset(&self) {
        self.moved_ms.store(0, Ordering::Relaxed);
    }
}

/// A second of the logical clock, formatted as `YYYY-MM-DD HH:MM:SS`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stamp(pub i64);

impl Stamp {
    /// Formats the timestamp as in contact timelines, `DD/MM/YYYY HH:MM:SS`.
    pub fn day_first(self) -> String {
        let text = self.text();
        let text = as_str(&text);
        format!("{}/{}/{} {}", &text[8..10], &text[5..7], &text[0..4], &text[11..])
    }

    fn text(self) -> [u8; 19] {
        let (days, second) = (self.0.div_euclid(86_400), self.0.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let mut out = *b"0000-00-00 00:00:00";
        // The format has four digits for the year.
        put(&mut out[0..4], year.clamp(0, 9999) as u64);
        put(&mut out[5..7], month);
        put(&mut out[8..10], day);
        put(&mut out[11..13], second as u64 / 3600);
        put(&mut out[14..16], second as u64 / 60 % 60);
        put(&mut out[17..19], second as u64 % 60);
        out
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(as_str(&self.text()))
    }
}

impl serde::Serialize for Stamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(as_str(&self.text()))
    }
}

fn as_str(digits: &[u8; 19]) -> &str {
    std::str::from_utf8(digits).expect("only ASCII digits and separators are written")
}

fn put(into: &mut [u8], mut value: u64) {
    for place in into.iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Converts days since 1970-01-01 to (year, month, day) of the Gregorian calendar, by Howard
/// Hinnant's `civil_from_days`.
pub fn civil(days: i64) -> (i64, u64, u64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u64;
    let month = if mp < 10 { mp + 3 } else { mp - 9 } as u64;
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_have_both_documented_forms() {
        assert_eq!(Stamp(START).to_string(), "2026-03-02 09:00:00");
        assert_eq!(Stamp(START).day_first(), "02/03/2026 09:00:00");
        assert_eq!(Stamp(951_782_399).to_string(), "2000-02-28 23:59:59");
        assert_eq!(Stamp(951_782_400).to_string(), "2000-02-29 00:00:00");
        assert_eq!(Stamp(-1).to_string(), "1969-12-31 23:59:59");
    }
}
