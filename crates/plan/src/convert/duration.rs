//! `duration`: a number of seconds or of another unit on one side, an ISO 8601 duration on the
//! other. A day has 24 hours and a week 7 days; years and months have no fixed length, so a duration
//! with one is outside the domain.
//!
//! The arithmetic is decimal and exact. A number gives one spelling: hours, minutes and seconds
//! (`PT1H30M`), after days for `days` and `weeks` (`P30D`). Other spellings (`PT90M`) are lost
//! towards the number.

use super::{
    ArgumentError, Arguments, ConversionKind, Convert, Domain, Example, Facts, Given, Holds, Law, Spec, Yield,
};
use crate::decimal::{Decimal, Rounding};
use crate::{Kinds, SideId};
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{Value, text};

const DURATION: Domain = Domain {
    kinds: Kinds::from_kinds(&[Kind::String, Kind::Number]),
    integer: false,
    absent: false,
    total: false,
};

pub(super) const SPEC: Spec = Spec {
    name: "duration",
    about: "a number of `weeks`, `days`, `hours`, `minutes`, `seconds` or `milliseconds` on one side, \
            the `iso8601` duration on the other",
    arguments: Arguments::Own {
        such_as: "{duration: {OLD: seconds, NEW: iso8601}}",
        schema: r#"{"type": "object", "additionalProperties": {"enum": ["iso8601", "weeks", "days", "hours", "minutes", "seconds", "milliseconds"]}, "minProperties": 2, "maxProperties": 2}"#,
        read: parse,
    },
    old: DURATION,
    new: DURATION,
    null_passes: true,
    structural: false,
    law: Law::Lens,
    examples: &[
        example(|| to_iso("seconds"), SECONDS, "5400", "\"PT1H30M\"", Holds::Both),
        example(|| to_iso("seconds"), SECONDS, "0", "\"PT0S\"", Holds::Both),
        example(|| to_iso("seconds"), SECONDS, "-0.25", "\"-PT0.25S\"", Holds::Both),
        example(|| to_iso("seconds"), SECONDS, "90061", "\"P1DT1H1M1S\"", Holds::Backward),
        example(|| to_iso("days"), "{duration: {v1: days, v2: iso8601}}", "30", "\"P30D\"", Holds::Both),
        example(|| to_iso("days"), "{duration: {v1: days, v2: iso8601}}", "1.5", "\"P1DT12H\"", Holds::Both),
        example(
            || ConversionKind::Own(Arc::new(IsoDuration::new(SideId::OLD, unit("milliseconds")))),
            "{duration: {v1: iso8601, v2: milliseconds}}",
            "\"PT1.5S\"",
            "1500",
            Holds::Both,
        ),
    ],
};

const SECONDS: &str = "{duration: {v1: seconds, v2: iso8601}}";

const fn example(
    kind: fn() -> ConversionKind,
    written: &'static str,
    old: &'static str,
    new: &'static str,
    holds: Holds,
) -> Example {
    Example { written, kind, old: Some(old), new: Some(new), holds }
}

fn to_iso(name: &str) -> ConversionKind {
    ConversionKind::Own(Arc::new(IsoDuration::new(SideId::NEW, unit(name))))
}

/// The word for the side with texts.
const ISO: &str = "iso8601";

/// A unit of numbers.
#[derive(Debug)]
struct Unit {
    name: &'static str,
    milliseconds: i64,
}

const UNITS: [Unit; 6] = [
    Unit { name: "weeks", milliseconds: WEEK * 1000 },
    Unit { name: "days", milliseconds: DAY * 1000 },
    Unit { name: "hours", milliseconds: HOUR * 1000 },
    Unit { name: "minutes", milliseconds: MINUTE * 1000 },
    Unit { name: "seconds", milliseconds: 1000 },
    Unit { name: "milliseconds", milliseconds: 1 },
];

/// Seconds of the units.
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;

/// The designators of a date and of a time, in their order, with their seconds. Years and months have
/// no fixed length.
const OF_DATE: &[(char, Option<i64>)] = &[('Y', None), ('M', None), ('W', Some(WEEK)), ('D', Some(DAY))];
const OF_TIME: &[(char, Option<i64>)] = &[('H', Some(HOUR)), ('M', Some(MINUTE)), ('S', Some(1))];

fn unit(name: &str) -> &'static Unit {
    UNITS.iter().find(|unit| unit.name == name).unwrap_or(&UNITS[4])
}

#[derive(Debug)]
struct IsoDuration {
    /// The side with texts.
    iso: SideId,
    /// The unit of the numbers of the other side.
    unit: &'static Unit,
    /// Whether the place of the numbers accepts only integers.
    is_integer: bool,
}

fn parse(given: &Given<'_>) -> Result<ConversionKind, ArgumentError> {
    const FORM: &str = "it takes a unit for one side and `iso8601` for the other";
    let sides = given.by_side(&[])?.ok_or(FORM)?;
    let words = sides.map(|side| side.as_str());
    let (iso, word) = match [words[0].as_deref(), words[1].as_deref()] {
        [Some(ISO), Some(ISO)] => return Err("both sides have the same form".into()),
        [Some(word), Some(ISO)] => (SideId::NEW, word),
        [Some(ISO), Some(word)] => (SideId::OLD, word),
        [Some(old), Some(new)] => {
            let known = || UNITS.iter().map(|unit| unit.name).chain([ISO]);
            return Err(match [old, new].into_iter().find(|word| !known().any(|name| name == *word)) {
                Some(word) => ArgumentError::unknown(format!("`{word}` is no unit"), word, known()),
                None => "for numbers of two units, take `scale`".into(),
            });
        }
        _ => return Err(FORM.into()),
    };
    let Some(unit) = UNITS.iter().find(|unit| unit.name == word) else {
        let known = UNITS.iter().map(|unit| unit.name);
        return Err(ArgumentError::unknown(format!("`{word}` is no unit"), word, known));
    };
    let facts = given.facts[usize::from(iso.other().0)];
    let is_integer = facts.is_some_and(|facts| !facts.any && facts.integers);
    Ok(ConversionKind::Own(Arc::new(IsoDuration { is_integer, ..IsoDuration::new(iso, unit) })))
}

impl IsoDuration {
    fn new(iso: SideId, unit: &'static Unit) -> IsoDuration {
        IsoDuration { iso, unit, is_integer: false }
    }

    /// Returns the number of seconds in a unit.
    fn factor(&self) -> Option<Decimal> {
        Decimal::from(self.unit.milliseconds).times(Decimal::power_of_ten(-3))
    }

    /// Formats a number of the unit. Returns `None` if it is too long.
    fn write(&self, number: Decimal) -> Option<String> {
        let zero = Decimal::from(0);
        let is_negative = !number.is_zero() && !number.is_positive();
        let mut rest = number.times(self.factor()?)?;
        if is_negative {
            rest = zero.minus(rest)?;
        }
        let mut out = String::from(if is_negative { "-P" } else { "P" });
        let mut take = |out: &mut String, seconds: i64, letter: char| {
            let whole = rest.quotient(Decimal::from(seconds), 0, Rounding::Down)?;
            rest = rest.minus(whole.times(Decimal::from(seconds))?)?;
            if !whole.is_zero() {
                out.push_str(&whole.text()?);
                out.push(letter);
            }
            Some(())
        };
        if self.unit.milliseconds == WEEK * 1000 && number.is_integer() {
            // A week has no other part beside it (ISO 8601, section 4.4.3.2).
            take(&mut out, WEEK, 'W')?;
        } else if self.unit.milliseconds >= DAY * 1000 {
            take(&mut out, DAY, 'D')?;
        }
        let mut time = String::new();
        take(&mut time, HOUR, 'H')?;
        take(&mut time, MINUTE, 'M')?;
        if !rest.is_zero() {
            time.push_str(&rest.text()?);
            time.push('S');
        }
        if number.is_zero() {
            time.push_str("0S");
        }
        if !time.is_empty() {
            out.push('T');
            out.push_str(&time);
        }
        Some(out)
    }

    /// Parses a duration as a number of the unit. Returns `None` if the number is infinite or too
    /// long.
    fn read(&self, text: &str) -> Option<Decimal> {
        seconds(text)?.over(self.factor()?)
    }
}

/// Parses an ISO 8601 duration in seconds. Accepts a sign (ISO 8601-2) and a fraction of the last
/// part. Returns `None` for other texts, and if years or months are not zero.
fn seconds(text: &str) -> Option<Decimal> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let rest = rest.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None if rest.is_empty() => return None,
        None => (rest, ""),
    };
    let (mut sum, mut has_fraction) = (Decimal::from(0), false);
    for (mut part, designators) in [(date, OF_DATE), (time, OF_TIME)] {
        // The iterator goes on after each designator, so they have an order and occur once.
        let mut designators = designators.iter();
        while !part.is_empty() {
            if has_fraction {
                return None;
            }
            let end = part.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | ','))?;
            let (number, after) = part.split_at(end);
            let letter = after.chars().next()?;
            let (_, seconds) = designators.find(|(designator, _)| *designator == letter)?;
            has_fraction = number.contains(['.', ',']);
            if number.ends_with(['.', ',']) {
                return None;
            }
            let number = Decimal::parse(number.replace(',', ".").as_bytes())?;
            match seconds {
                Some(seconds) => sum = sum.plus(number.times(Decimal::from(*seconds))?)?,
                None if number.is_zero() => {}
                None => return None,
            }
            part = &after[1..];
        }
    }
    if is_negative { Decimal::from(0).minus(sum) } else { Some(sum) }
}

impl Convert for IsoDuration {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        let from = if forward { SideId::OLD } else { SideId::NEW };
        let fits = |number: Decimal| !self.is_integer || number.is_integer();
        if from == self.iso {
            let raw = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
            let number = self.read(&text::decode(std::str::from_utf8(raw).ok()?)).filter(|&one| fits(one))?;
            out.extend_from_slice(number.text()?.as_bytes());
        } else {
            let number = Decimal::parse(json).filter(|&one| fits(one))?;
            out.extend_from_slice(Value::string(&self.write(number)?).to_string().as_bytes());
        }
        Some(Yield::Written)
    }

    fn domain_text(&self, from: SideId) -> &'static str {
        match (from == self.iso, self.is_integer) {
            (true, false) => "an ISO 8601 duration without years and months",
            (true, true) => "an ISO 8601 duration without years and months that gives an integer",
            (false, false) => "a number of at most 30 digits",
            (false, true) => "an integer of at most 30 digits",
        }
    }

    fn kinds(&self, side: SideId) -> Kinds {
        Kinds::from_kinds(&[if side == self.iso { Kind::String } else { Kind::Number }])
    }

    fn is_integer(&self, side: SideId) -> bool {
        side != self.iso && self.is_integer
    }

    /// No contract excludes months from a text, but one can bound a number.
    fn takes_all(&self, from: SideId, facts: &Facts) -> bool {
        from != self.iso && facts.is_between(i64::MIN, i64::MAX)
    }

    fn law(&self) -> Law {
        if self.iso == SideId::NEW { Law::Lens } else { Law::OldLens }
    }

    fn sample(&self, side: SideId, seed: u64) -> String {
        let number = Decimal::from((seed % 1_000_000) as i64 - 500_000);
        match side == self.iso {
            true => Value::string(&self.write(number).unwrap_or_default()).to_string(),
            false => number.text().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(of: &str, is_integer: bool, text: &str) -> Option<String> {
        let duration = IsoDuration { is_integer, ..IsoDuration::new(SideId::NEW, unit(of)) };
        let mut out = Vec::new();
        duration.convert(Value::string(text).to_string().as_bytes(), false, &mut out)?;
        Some(String::from_utf8(out).expect("digits"))
    }

    #[test]
    fn spellings_of_a_duration_are_one_number() {
        for (text, seconds) in [
            ("PT90M", "5400"),
            ("P1DT12H", "129600"),
            ("P2W", "1209600"),
            ("P0Y0M1D", "86400"),
            ("PT0,5H", "1800"),
            ("+PT0005.50S", "5.5"),
            ("-P1D", "-86400"),
            ("-PT0S", "0"),
        ] {
            assert_eq!(number("seconds", false, text).as_deref(), Some(seconds), "{text}");
        }
    }

    #[test]
    fn other_texts_are_outside_the_domain() {
        for text in [
            "", "P", "PT", "P1DT", "T1H", "1H", "P1H", "PT1D", "PT1M1H", "PT1S1S", "P1M", "P1Y", "PT1.5M1S",
            "PT1.S", "PT.5S", "PT1..5S", "--PT1S", "pt1s", "PT1s", "PT 1S", "PT1é", "PT1E3S",
        ] {
            assert_eq!(number("seconds", false, text), None, "{text}");
        }
        assert_eq!(number("seconds", true, "PT0.5S"), None, "no integer");
        assert_eq!(number("hours", false, "PT1M"), None, "a sixtieth never ends");
        assert_eq!(number("hours", false, "PT3M").as_deref(), Some("0.05"));
        assert_eq!(number("seconds", false, &format!("PT{}S", "9".repeat(31))), None);
    }

    proptest! {
        #[test]
        fn numbers_come_back(whole in -1_000_000_000_000i64..1_000_000_000_000, places in "[0-9]{0,6}", unit in 0..6usize) {
            let duration = IsoDuration::new(SideId::NEW, &UNITS[unit]);
            let number = Decimal::parse(format!("{whole}.{places}1").as_bytes()).expect("a number");
            let text = duration.write(number).expect("a duration");
            prop_assert_eq!(duration.read(&text), Some(number), "{}", text);
        }
    }
}
