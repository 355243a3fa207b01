//! `date`: a date or time in the form of each side. A form is a strftime pattern or a name
//! (`rfc3339`, `epoch_second`, `epoch_millis`). A side may list several forms: all of them are
//! read, and the first is written.
//!
//! All forms must have the same parts, so a conversion never invents one. Details that only one
//! side has (fractions of a second, the zone offset, the choice of form) are lost towards the other
//! side. A text that is not a date of the calendar is outside the domain, and so is a local time that
//! the clocks of a named zone skip. Of a local time that they show twice, the first is meant.

mod calendar;
mod form;
mod shift;
mod zone;

use super::{
    ArgumentError, Arguments, ConversionKind, Convert, Domain, Example, Facts, Given, Holds, Law, Spec, Yield,
};
use crate::{Kinds, SideId};
use calendar::Moment;
use form::Form;
pub(crate) use shift::add_span;
use std::sync::{Arc, LazyLock};
use switchback_json::raw::Kind;
use switchback_json::{Value, text};
pub(crate) use zone::Zone;
pub use zone::time_zone;

const DATE: Domain = Domain {
    kinds: Kinds::from_kinds(&[Kind::String, Kind::Number]),
    integer: true,
    absent: false,
    total: false,
};

pub(super) const SPEC: Spec = Spec {
    name: "date",
    about: "a date in one form on the old side, in another on the new one: a pattern of `%Y %m %d %H %M %S %f %z %a %b %s`, \
            `rfc3339`, `epoch_second`, `epoch_millis`, or a list of which the first is written",
    arguments: Arguments::Own {
        such_as: "{date: {OLD: '%d/%m/%Y', NEW: '%Y-%m-%d'}}",
        schema: r#"{"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}, "properties": {"zone": {"type": "string", "description": "Offset or zone of times without one, such as `Z`, `+02:00` or `Europe/Berlin`."}}, "minProperties": 2, "maxProperties": 3}"#,
        read: parse,
    },
    old: DATE,
    new: DATE,
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[
        days("\"09/03/2024\"", "\"2024-03-09\""),
        days("\"29/02/2024\"", "\"2024-02-29\""),
        days("null", "null"),
        Example {
            written: "{date: {v1: epoch_second, v2: rfc3339}}",
            kind: || conversion(&["epoch_second"], &["rfc3339"], None),
            old: Some("1709985600"),
            new: Some("\"2024-03-09T12:00:00Z\""),
            holds: Holds::Both,
        },
        Example {
            written: "{date: {v1: epoch_millis, v2: rfc3339}}",
            kind: || conversion(&["epoch_millis"], &["rfc3339"], None),
            old: Some("1709978400250"),
            new: Some("\"2024-03-09T12:00:00.25+02:00\""),
            holds: Holds::Backward,
        },
        Example {
            written: "{date: {v1: '%a, %d %b %Y %H:%M:%S GMT', v2: rfc3339, zone: Z}}",
            kind: || conversion(&["%a, %d %b %Y %H:%M:%S GMT"], &["rfc3339"], Some("Z")),
            old: Some("\"Sat, 09 Mar 2024 12:00:00 GMT\""),
            new: Some("\"2024-03-09T12:00:00Z\""),
            holds: Holds::Both,
        },
        Example {
            written: "{date: {v1: '%d.%m.%Y %H:%M:%S', v2: rfc3339, zone: Europe/Berlin}}",
            kind: || conversion(&["%d.%m.%Y %H:%M:%S"], &["rfc3339"], Some("Europe/Berlin")),
            old: Some("\"01.07.2024 14:00:00\""),
            new: Some("\"2024-07-01T14:00:00+02:00\""),
            holds: Holds::Both,
        },
        Example {
            written: "{date: {v1: '%d.%m.%Y %H:%M:%S', v2: rfc3339, zone: Europe/Berlin}}",
            kind: || conversion(&["%d.%m.%Y %H:%M:%S"], &["rfc3339"], Some("Europe/Berlin")),
            old: Some("\"27.10.2024 02:30:00\""),
            new: Some("\"2024-10-27T01:30:00Z\""),
            holds: Holds::Backward,
        },
        Example {
            written: "{date: {v1: ['%d/%m/%Y', '%Y-%m-%d'], v2: '%Y%m%d'}}",
            kind: || conversion(&["%d/%m/%Y", "%Y-%m-%d"], &["%Y%m%d"], None),
            old: Some("\"2024-03-09\""),
            new: Some("\"20240309\""),
            holds: Holds::Forward,
        },
    ],
};

const fn days(old: &'static str, new: &'static str) -> Example {
    Example {
        written: "{date: {v1: '%d/%m/%Y', v2: '%Y-%m-%d'}}",
        kind: || conversion(&["%d/%m/%Y"], &["%Y-%m-%d"], None),
        old: Some(old),
        new: Some(new),
        holds: Holds::Both,
    }
}

fn conversion(old: &[&str], new: &[&str], zone: Option<&str>) -> ConversionKind {
    let zone = zone.and_then(|zone| Zone::parse(zone).ok());
    let forms = |forms: &[&str]| forms.iter().filter_map(|form| Form::parse(form).ok()).collect();
    ConversionKind::Own(Arc::new(Date { sides: [forms(old), forms(new)], zone }))
}

/// A date in the forms of both sides. The first form of a side is the one that is written.
#[derive(Debug)]
struct Date {
    sides: [Vec<Form>; 2],
    /// The zone of local times, if the forms of one side have an offset and others have none.
    zone: Option<Zone>,
}

fn parse(given: &Given<'_>) -> Result<ConversionKind, ArgumentError> {
    const ZONE: &str = "zone";
    let Some(sides) = given.by_side(&[ZONE])? else {
        return Err("it takes a form for each side".into());
    };
    let mut forms = [Vec::new(), Vec::new()];
    for (forms, written) in forms.iter_mut().zip(sides) {
        // A side has one form or a list of forms.
        let written = written.as_array().map_or_else(|| vec![written], |list| list.iter().collect());
        for form in written {
            let Some(text) = form.as_str() else { return Err("a form is a text".into()) };
            forms.push(Form::parse(&text)?);
        }
    }
    let zone = match given.arguments.get(ZONE) {
        None => None,
        Some(zone) => Some(Zone::parse(&zone.as_str().ok_or("`zone` is an offset or the name of a zone")?)?),
    };
    let date = Date { sides: forms, zone };
    date.check()?;
    Ok(ConversionKind::Own(Arc::new(date)))
}

impl Date {
    /// Checks that every form of a side can be written in the forms of the other side.
    fn check(&self) -> Result<(), ArgumentError> {
        let all = || self.sides.iter().flatten();
        let Some(first) = all().next() else { return Err("a side has no form".into()) };
        if self.sides.iter().any(Vec::is_empty) {
            return Err("a side has no form".into());
        }
        for form in all() {
            // Compare in both directions: no form may have a part that another one lacks.
            if let Some(part) = form.parts.missing(first.parts).or_else(|| first.parts.missing(form.parts)) {
                return Err(format!("`%{part}` is in one of the forms only").into());
            }
        }
        // Between a local time and a moment, the offset must be given. Guessing UTC would shift all dates
        // of a service in another zone by hours.
        let differs = all().any(|form| form.zoned) && all().any(|form| !form.zoned);
        match (differs, &self.zone) {
            (true, None) => {
                Err("one of the forms has an offset and one has none: add `zone: Z`, `zone: Europe/Berlin` or another".into())
            }
            (false, Some(_)) => Err("`zone` is for forms of which one has an offset and one has none".into()),
            _ => Ok(()),
        }
    }

    fn forms(&self, side: SideId) -> &[Form] {
        &self.sides[usize::from(side.0)]
    }

    /// Formats a moment, after adjusting its offset to the form.
    fn write(&self, moment: &Moment, form: &Form) -> Option<String> {
        let has_offset = moment.offset.is_some();
        // A local time gains the configured offset; a moment is shifted to it before the offset is
        // dropped.
        let moment = match (has_offset, form.zoned) {
            (true, false) => self.zone.as_ref().unwrap_or(&Zone::Fixed(0)).to_local(moment)?,
            (false, true) => self.zone.as_ref().unwrap_or(&Zone::Fixed(0)).add_offset(moment)?,
            _ => moment.clone(),
        };
        form.write(&moment)
    }

    /// Returns whether a side carries details that the other does not preserve.
    fn loses(&self, side: SideId) -> bool {
        // Only the first form of the other side is written, so only its precision matters.
        let (own, other) = (self.forms(side), &self.forms(side.other())[0]);
        // An hour that clocks show twice in a named zone is one local time.
        let merges_hours = self.zone.as_ref().is_some_and(Zone::is_named)
            && own.iter().any(|form| form.zoned)
            && !other.zoned;
        own.len() > 1
            || merges_hours
            || own.iter().any(|form| {
                form.is_spelt_freely || (form.has_offset && !other.has_offset) || form.places > other.places
            })
    }
}

impl Convert for Date {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        let [from, to] = if forward { [0, 1] } else { [1, 0] }.map(|at: usize| &self.sides[at]);
        let to = to.first()?;
        // Forms are tried in their order, and the first that reads the complete value applies.
        // `01/02/2024` fits both orders of day and month, so the order in the mapping decides.
        let written = match json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\"")) {
            Some(raw) => {
                let date = text::decode(std::str::from_utf8(raw).ok()?);
                let read = |form: &Form| form.read_text(&date).and_then(|moment| self.write(&moment, to));
                from.iter().find_map(read)?
            }
            // Not a string: the seconds or milliseconds of an epoch form.
            None => {
                let number: i64 = std::str::from_utf8(json).ok()?.parse().ok()?;
                let read = |form: &Form| form.read_number(number).and_then(|moment| self.write(&moment, to));
                from.iter().find_map(read)?
            }
        };
        if to.number {
            out.extend_from_slice(written.as_bytes());
        } else {
            out.push(b'"');
            out.extend_from_slice(text::escape(&written).as_bytes());
            out.push(b'"');
        }
        Some(Yield::Written)
    }

    fn domain_text(&self, from: SideId) -> &'static str {
        match self.forms(from) {
            [Form { number: true, .. }] => "the seconds or milliseconds of a moment",
            [_] => "a date in the form of its side",
            _ => "a date in one of the forms of its side",
        }
    }

    fn kinds(&self, side: SideId) -> Kinds {
        let forms = self.forms(side);
        Kinds {
            number: forms.iter().any(|form| form.number),
            string: forms.iter().any(|form| !form.number),
            ..Kinds::default()
        }
    }

    fn is_integer(&self, side: SideId) -> bool {
        self.forms(side).iter().any(|form| form.number)
    }

    /// Returns whether the domain contains all values: the contract's `format` must name a form,
    /// and numbers must be bounded to the range of a form.
    fn takes_all(&self, from: SideId, facts: &Facts) -> bool {
        // Clocks of a named zone skip hours.
        let skips =
            self.zone.as_ref().is_some_and(Zone::is_named) && self.forms(from).iter().any(|form| !form.zoned);
        // The contract must declare a `format` that one of the forms has.
        let texts = || {
            self.forms(from)
                .iter()
                .any(|form| form.format.is_some() && form.format == facts.format.as_deref())
        };
        // Seconds outside the years 0 to 9999 have no date with a year of four digits.
        let numbers = || {
            self.forms(from).iter().any(|form| {
                form.number && {
                    let [least, most] = form.range();
                    facts.is_between(least, most)
                }
            })
        };
        !facts.any && !skips && (!facts.kinds.string || texts()) && (!facts.kinds.number || numbers())
    }

    fn law(&self) -> Law {
        match (self.loses(SideId::OLD), self.loses(SideId::NEW)) {
            (false, false) => Law::Iso,
            (false, true) => Law::Lens,
            (true, false) => Law::OldLens,
            (true, true) => Law::Fold,
        }
    }

    fn sample(&self, side: SideId, seed: u64) -> String {
        let form = &self.forms(side)[0];
        let moment = match &self.zone {
            // Noon of a day since 1970, which no clock skips or shows twice.
            Some(Zone::Named(_)) => Moment::of_epoch((seed % 36_500) as i64 * 86_400 + 43_200, 0),
            // A whole second within the 200 years from 1900, which every form can represent.
            _ => Moment::of_epoch((seed % 6_311_433_600) as i64 - 2_208_988_800, 0),
        };
        let shown = match &self.zone {
            // The offset of the zone survives, others become it.
            Some(zone @ Zone::Named(_)) => {
                let local = zone.to_local(&moment);
                if form.zoned { local.and_then(|local| zone.add_offset(&local)) } else { local }
            }
            _ if form.zoned => Some(moment),
            _ => moment.at(0),
        };
        let text = shown.and_then(|moment| form.write(&moment)).unwrap_or_default();
        if form.number { text } else { Value::string(&text).to_string() }
    }
}

/// Parses an RFC 3339 timestamp. Returns the seconds since 1970 and the nanoseconds.
pub fn instant(text: &str) -> Option<(i64, u32)> {
    let moment = RFC3339.as_ref()?.read_text(text)?;
    Some((moment.epoch()?, moment.nanos))
}

/// Formats milliseconds since 1970 as an RFC 3339 timestamp in UTC. Years are clamped to 0 to 9999.
pub fn timestamp(unix_ms: i64) -> String {
    let nanos = unix_ms.rem_euclid(1000) as u32 * 1_000_000;
    let moment = Moment::of_epoch(unix_ms.div_euclid(1000), nanos);
    RFC3339.as_ref().and_then(|form| form.write(&moment)).unwrap_or_default()
}

/// Parsed once, because conditions on dates use it for every message.
static RFC3339: LazyLock<Option<Form>> = LazyLock::new(|| Form::parse("rfc3339").ok());

/// Checks whether two forms make a conversion.
#[cfg(test)]
pub(super) fn check_patterns(old: &str, new: &str) -> Result<(), ArgumentError> {
    Date { sides: [vec![Form::parse(old)?], vec![Form::parse(new)?]], zone: None }.check()
}

#[cfg(test)]
mod tests;
