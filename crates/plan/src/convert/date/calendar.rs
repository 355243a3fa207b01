//! Moments: the parts of a date and time, the offset of their zone, and seconds since 1970. The
//! calendar is the proleptic Gregorian one, as in RFC 3339.

use time::{Date, Month, OffsetDateTime};

/// Year, month, day, hour, minute, second; `None` for a part that the form does not have.
pub(super) type Fields = [Option<u16>; 6];

pub(super) const FIRST: i64 = -62_167_219_200; // 0000-01-01T00:00:00Z
pub(super) const LAST: i64 = 253_402_300_799; // 9999-12-31T23:59:59Z

#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub fields: Fields,
    pub nanos: u32,
    /// Minutes east of UTC, if the form has an offset.
    pub offset: Option<i32>,
}

impl Moment {
    /// Returns the UTC moment this many seconds after the start of 1970, clamped to the years 0 to
    /// 9999.
    pub(super) fn of_epoch(seconds: i64, nanos: u32) -> Moment {
        Moment { nanos, ..Moment::local(seconds, Some(0)) }
    }

    fn local(seconds: i64, offset: Option<i32>) -> Moment {
        let shown = OffsetDateTime::from_unix_timestamp(seconds.clamp(FIRST, LAST))
            .expect("the years 0 to 9999 are in the range of `time`");
        let (year, month, day) = shown.to_calendar_date();
        let parts = [u8::from(month), day, shown.hour(), shown.minute(), shown.second()].map(u16::from);
        let [month, day, hour, minute, second] = parts.map(Some);
        Moment { fields: [u16::try_from(year).ok(), month, day, hour, minute, second], nanos: 0, offset }
    }

    fn date(&self) -> Option<Date> {
        let [Some(year), Some(month), Some(day), ..] = self.fields else { return None };
        Date::from_calendar_date(i32::from(year), month_of(month)?, u8::try_from(day).ok()?).ok()
    }

    /// Returns the local time in seconds since 1970, ignoring the offset. Returns `None` if a part
    /// is missing.
    fn clock(&self) -> Option<i64> {
        let [.., Some(hour), Some(minute), Some(second)] = self.fields else { return None };
        let midnight = self.date()?.midnight().assume_utc().unix_timestamp();
        // A leap second becomes the first second of the next minute, because Unix time does not number it.
        Some(midnight + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second))
    }

    /// Returns the seconds since 1970 in UTC; a moment without an offset counts as UTC.
    pub(super) fn epoch(&self) -> Option<i64> {
        Some(self.clock()? - i64::from(self.offset.unwrap_or(0)) * 60)
    }

    /// Returns the same moment as local time so many seconds east of UTC, without an offset. Returns
    /// `None` if its year is outside 0 to 9999. A moment with missing parts is returned unchanged.
    pub(super) fn at(&self, offset: i32) -> Option<Moment> {
        // A form without a complete date and time has no zone to convert.
        let Some(epoch) = self.epoch() else { return Some(self.clone()) };
        let shown = epoch + i64::from(offset);
        let is_shown = (FIRST..=LAST).contains(&shown);
        // A shift by the zone can lead to the year -1 or 10000, which no form of four digits can express.
        is_shown.then(|| Moment { nanos: self.nanos, ..Moment::local(shown, None) })
    }

    /// Returns the same local time with the offset of this zone.
    pub(super) fn in_zone(&self, zone: i32) -> Moment {
        Moment { offset: Some(zone), ..self.clone() }
    }

    /// Returns the day of the week; Sunday is 0. Returns `None` if the date is incomplete.
    pub(super) fn weekday(&self) -> Option<usize> {
        Some(usize::from(self.date()?.weekday().number_days_from_sunday()))
    }

    /// Returns whether the parts form a valid date and time. Second 60 is a leap second.
    pub(super) fn is_possible(&self) -> bool {
        let [year, month, day, hour, minute, second] = self.fields;
        let within =
            |part: Option<u16>, least, most| part.is_none_or(|value| (least..=most).contains(&value));
        // Without a year, 29 February is accepted: 2000 is a leap year.
        let days = month.and_then(month_of).map_or(31, |month| month.length(year.unwrap_or(2000).into()));
        within(month, 1, 12)
            && within(day, 1, days.into())
            && within(hour, 0, 23)
            && within(minute, 0, 59)
            && within(second, 0, 60)
    }
}

/// Parses an offset at the start of a text (`Z`, `+02:00`, `-0330`). Returns it in minutes with the
/// remaining text.
pub(super) fn offset(text: &str) -> Option<(i32, &str)> {
    // RFC 3339, section 5.6, allows a lower-case `z`.
    if let Some(rest) = text.strip_prefix(['Z', 'z']) {
        return Some((0, rest));
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, rest) = two(rest)?;
    let (minutes, rest) = two(rest.strip_prefix(':').unwrap_or(rest))?;
    // RFC 3339 limits the hours to 23 and the minutes to 59.
    (hours < 24 && minutes < 60).then_some((sign * (hours * 60 + minutes), rest))
}

fn two(text: &str) -> Option<(i32, &str)> {
    let digits = text.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    Some((digits.parse().ok()?, &text[2..]))
}

fn month_of(number: u16) -> Option<Month> {
    Month::try_from(u8::try_from(number).ok()?).ok()
}
