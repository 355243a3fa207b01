//! A date or an RFC 3339 timestamp plus a duration.

use super::RFC3339;
use super::calendar::Moment;
use super::form::Form;
use super::zone::to_civil;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use std::sync::LazyLock;

static DAY: LazyLock<Option<Form>> = LazyLock::new(|| Form::parse("%Y-%m-%d").ok());

/// Adds a duration to a date (`2024-03-09`) or a timestamp, and writes the same form. A day that the
/// month does not have becomes its last one. A timestamp keeps its offset, or gets that of the zone,
/// in which days and months are then counted. Returns `None` for other texts, a time that is added
/// to a date, and years outside 0 to 9999.
pub(crate) fn add_span(text: &str, span: Span, zone: Option<&TimeZone>) -> Option<String> {
    let (day, timestamp) = (DAY.as_ref()?, RFC3339.as_ref()?);
    if let Some(moment) = day.read_text(text) {
        let [Some(year), Some(month), Some(date), ..] = moment.fields else { return None };
        let date =
            Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(date).ok()?).ok()?;
        let has_time = [
            span.get_hours().into(),
            span.get_minutes(),
            span.get_seconds(),
            span.get_milliseconds(),
            span.get_microseconds(),
            span.get_nanoseconds(),
        ];
        if has_time.into_iter().any(|part: i64| part != 0) {
            return None;
        }
        let later = date.checked_add(span).ok()?.to_datetime(Time::midnight());
        return day.write(&from_civil(later, None)?);
    }
    let moment = timestamp.read_text(text)?;
    let later = match zone {
        None => from_civil(to_civil(&moment)?.checked_add(span).ok()?, moment.offset)?,
        Some(zone) => {
            let instant = Timestamp::new(moment.epoch()?, i32::try_from(moment.nanos).ok()?).ok()?;
            let zoned = instant.to_zoned(zone.clone()).checked_add(span).ok()?;
            let offset = zoned.offset().seconds();
            // RFC 3339 has no seconds in offsets.
            (offset % 60 == 0).then_some(())?;
            from_civil(zoned.datetime(), Some(offset / 60))?
        }
    };
    timestamp.write(&later)
}

fn from_civil(time: DateTime, offset: Option<i32>) -> Option<Moment> {
    let year = u16::try_from(time.year()).ok()?;
    let small = |part: i8| u16::try_from(part).ok();
    let fields = [
        Some(year),
        small(time.month()),
        small(time.day()),
        small(time.hour()),
        small(time.minute()),
        small(time.second()),
    ];
    Some(Moment { fields, nanos: u32::try_from(time.subsec_nanosecond()).ok()?, offset })
}
