//! Moments: the parts of a date and time, the offset of their zone, and seconds since 1970. The
//! calendar is the proleptic Gregorian one, as in RFC 3339.

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
        let seconds = seconds.clamp(FIRST, LAST);
        // Euclidean division, because seconds before 1970 are negative.
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let parts = [year, month, day, rest / 3600, rest / 60 % 60, rest % 60];
        Moment { fields: parts.map(|part| Some(part as u16)), nanos: 0, offset }
    }

    /// Returns the local time in seconds since 1970, ignoring the offset. Returns `None` if a part
    /// is missing.
    fn clock(&self) -> Option<i64> {
        let [Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)] = self.fields else {
            return None;
        };
        let days = days(i64::from(year), i64::from(month), i64::from(day));
        Some(days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second))
    }

    /// Returns the seconds since 1970 in UTC; a moment without an offset counts as UTC.
    pub(super) fn epoch(&self) -> Option<i64> {
        Some(self.clock()? - i64::from(self.offset.unwrap_or(0)) * 60)
    }

    /// Returns the same moment as local time of another zone, without an offset. Returns `None` if
    /// its year is outside 0 to 9999. A moment with missing parts is returned unchanged.
    pub(super) fn at(&self, zone: i32) -> Option<Moment> {
        // A form without a complete date and time has no zone to convert.
        let Some(epoch) = self.epoch() else { return Some(self.clone()) };
        let shown = epoch + i64::from(zone) * 60;
        let is_shown = (FIRST..=LAST).contains(&shown);
        is_shown.then(|| Moment { nanos: self.nanos, ..Moment::local(shown, None) })
    }

    /// Returns the same local time with the offset of this zone.
    pub(super) fn in_zone(&self, zone: i32) -> Moment {
        Moment { offset: Some(zone), ..self.clone() }
    }

    /// Returns the day of the week; Sunday is 0. Returns `None` if the date is incomplete.
    pub(super) fn weekday(&self) -> Option<usize> {
        let [Some(year), Some(month), Some(day), ..] = self.fields else { return None };
        // 1 January 1970 was a Thursday.
        Some((days(i64::from(year), i64::from(month), i64::from(day)) + 4).rem_euclid(7) as usize)
    }

    /// Returns whether the parts form a valid date and time. Second 60 is a leap second.
    pub(super) fn is_possible(&self) -> bool {
        let [year, month, day, hour, minute, second] = self.fields;
        let within =
            |part: Option<u16>, least, most| part.is_none_or(|value| (least..=most).contains(&value));
        // Without a year, 29 February is accepted.
        let leap = year.is_none_or(|y| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0);
        let days = match month {
            Some(2) => 28 + u16::from(leap),
            Some(4 | 6 | 9 | 11) => 30,
            _ => 31,
        };
        within(month, 1, 12)
            && within(day, 1, days)
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

/// Returns the number of days since 1970 of a calendar day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March here, so that the leap day is the last day of the year.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    // `(153 * m + 2) / 5` is the number of days before month `m`, counted from March.
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the calendar day this many days after the start of 1970. Inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    // Subtract the leap days within the era of 400 years.
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
