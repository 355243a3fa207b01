//! `plus`: a date or an RFC 3339 timestamp and a duration (ISO 8601), or a number of units from the
//! message. Days and months are those of the calendar: 31 January plus `P1M` is the last day of
//! February.

use super::{Function, FunctionArguments, FunctionSpec, LIST, SCALARS, TEXT, Takes, example};
use crate::convert::{ArgumentError, Facts, Given, Zone, add_span};
use jiff::Span;
use jiff::tz::TimeZone;
use std::sync::Arc;
use switchback_json::Value;

pub(super) const SPEC: FunctionSpec = FunctionSpec {
    name: "plus",
    about: "A date or an RFC 3339 timestamp, and a duration after it.",
    arguments: Some(FunctionArguments {
        such_as: "{plus: P30D}",
        schema: r#"{"anyOf": [
            {"enum": ["seconds", "minutes", "hours", "days"], "description": "The value is a list: a date, and how many of these."},
            {"type": "string", "pattern": "^-?P", "description": "An ISO 8601 duration, such as `P30D`, `-PT15M` or `P1M`."},
            {"type": "object", "additionalProperties": false, "required": ["duration", "zone"], "properties": {
                "duration": {"type": "string", "description": "A duration or a unit."},
                "zone": {"type": "string", "description": "The offset or time zone of the result, in which days are counted, such as `Europe/Berlin`."}}}]}"#,
    }),
    build,
    examples: &[
        example("\"P30D\"", "\"2024-03-09\"", Some("\"2024-04-08\"")),
        example("\"P1M\"", "\"2024-01-31\"", Some("\"2024-02-29\"")),
        example("\"-PT90M\"", "\"2024-03-09T01:00:00+02:00\"", Some("\"2024-03-08T23:30:00+02:00\"")),
        example("\"seconds\"", "[\"2024-03-09T12:00:00Z\",3600]", Some("\"2024-03-09T13:00:00Z\"")),
        // The clocks go forward in between, so the day has 23 hours.
        example(
            r#"{"duration": "P1D", "zone": "Europe/Berlin"}"#,
            "\"2024-03-30T12:00:00+01:00\"",
            Some("\"2024-03-31T12:00:00+02:00\""),
        ),
        example(
            r#"{"duration": "PT1H", "zone": "+02:00"}"#,
            "\"2024-03-09T12:00:00Z\"",
            Some("\"2024-03-09T15:00:00+02:00\""),
        ),
        example("\"PT1H\"", "\"2024-03-09\"", None),
        example("\"days\"", "[\"2024-03-09\",1.5]", None),
        example("\"P1D\"", "\"9999-12-31\"", None),
        example("\"P1D\"", "\"soon\"", None),
    ],
};

#[derive(Debug)]
struct Plus {
    amount: Amount,
    zone: Option<TimeZone>,
}

#[derive(Clone, Copy, Debug)]
enum Amount {
    /// This duration.
    Fixed(Span),
    /// A number from the message.
    Of(Unit),
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Seconds,
    Minutes,
    Hours,
    Days,
}

fn build(given: &Given<'_>) -> Result<Arc<dyn Function>, ArgumentError> {
    const FORM: &str = "it takes a duration such as `P30D`, or one of `seconds`, `minutes`, `hours`, `days`";
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(|text| text.into_owned());
    let (amount, zone) = match given.arguments.as_object() {
        None => (text(Some(given.arguments)), None),
        Some(map) if map.len() == 2 => (text(map.get("duration")), Some(text(map.get("zone")).ok_or(FORM)?)),
        Some(_) => return Err("it takes a `duration` and a `zone`".into()),
    };
    let amount = match amount.as_deref().ok_or(FORM)? {
        "seconds" => Amount::Of(Unit::Seconds),
        "minutes" => Amount::Of(Unit::Minutes),
        "hours" => Amount::Of(Unit::Hours),
        "days" => Amount::Of(Unit::Days),
        // Without the first letter, `jiff` would also accept English words.
        text if text.trim_start_matches('-').starts_with('P') => {
            Amount::Fixed(text.parse().map_err(|_| ArgumentError::from(FORM))?)
        }
        _ => return Err(FORM.into()),
    };
    let zone = zone.map(|zone| Zone::parse(&zone)).transpose()?;
    Ok(Arc::new(Plus { amount, zone: zone.and_then(|zone| zone.to_time_zone()) }))
}

impl Function for Plus {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn takes(&self) -> Takes {
        let kinds = if matches!(self.amount, Amount::Of(_)) { LIST } else { TEXT };
        Takes { kinds, elements: SCALARS }
    }

    /// The year of the result may exceed four digits.
    fn takes_all(&self, _facts: &Facts) -> bool {
        false
    }

    fn domain_text(&self) -> &'static str {
        match self.amount {
            Amount::Fixed(_) => "a date or an RFC 3339 timestamp with a result before the year 10000",
            Amount::Of(_) => "a date or an RFC 3339 timestamp and an integer",
        }
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let shift = |date: &Value, span: Span| {
            let text = date.as_str()?;
            Some(Value::string(&add_span(&text, span, self.zone.as_ref())?))
        };
        match self.amount {
            Amount::Fixed(span) => shift(&value, span),
            Amount::Of(unit) => {
                let list: &[Value] = value.as_array()?;
                let [date, count] = list else { return None };
                let count = count.as_i64()?;
                let span = match unit {
                    Unit::Seconds => Span::new().try_seconds(count),
                    Unit::Minutes => Span::new().try_minutes(count),
                    Unit::Hours => Span::new().try_hours(count),
                    Unit::Days => Span::new().try_days(count),
                };
                shift(date, span.ok()?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::build;

    #[test]
    fn arguments_are_checked() {
        for wrong in [
            "7",
            r#""30 days""#,
            r#""P""#,
            r#""weeks""#,
            r#"{"duration": "P1D"}"#,
            r#"{"duration": "P1D", "zone": "Mars/Base"}"#,
            r#"{"duration": "P1D", "zone": 7}"#,
        ] {
            assert!(build("plus", wrong).is_err(), "{wrong}");
        }
    }
}
