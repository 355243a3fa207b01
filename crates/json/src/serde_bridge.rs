//! Conversion from and to `serde_json::Value`, for reports and diagnostics only: that type rounds
//! numbers, so a message in transit must never be converted.

use super::value::{Array, Number, Object, Str, Value};
use serde_json::Value as Serde;

/// Maximum depth. Deeper values become strings with their text, because `serde_json::Value` recurses.
const DEPTH_MAX: usize = 128;

impl Value {
    /// Converts a value for a report. Integers that fit 64 bits are exact; other numbers are rounded to
    /// `f64`, or become strings with their text if they exceed it. Values nested more
    /// than 128 deep become strings with their JSON text.
    pub fn to_serde(&self) -> Serde {
        to_serde(self, 0)
    }
}

fn to_serde(value: &Value, depth: usize) -> Serde {
    match value {
        Value::Null => Serde::Null,
        Value::Bool(value) => Serde::Bool(*value),
        Value::Number(number) => number_to_serde(number),
        Value::String(text) => Serde::String(text.decode().into_owned()),
        _ if depth == DEPTH_MAX => Serde::String(value.to_string()),
        Value::Array(values) => values.iter().map(|value| to_serde(value, depth + 1)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.decode().into_owned(), to_serde(value, depth + 1)))
            .collect(),
    }
}

fn number_to_serde(number: &Number) -> Serde {
    let text = number.text();
    let integer = text.parse::<i64>().map(Serde::from).or_else(|_| text.parse::<u64>().map(Serde::from));
    integer
        .ok()
        .or_else(|| text.parse().ok().and_then(serde_json::Number::from_f64).map(Serde::Number))
        .unwrap_or_else(|| Serde::from(text))
}

/// Exact: numbers have the text that `serde_json` writes.
impl From<&Serde> for Value {
    fn from(value: &Serde) -> Value {
        match value {
            Serde::Null => Value::Null,
            Serde::Bool(value) => Value::Bool(*value),
            Serde::Number(number) => match Number::from_text(&number.to_string()) {
                Some(number) => Value::Number(number),
                // serde_json has only finite numbers and writes them as JSON.
                None => Value::Null,
            },
            Serde::String(text) => Value::string(text),
            Serde::Array(values) => Value::Array(values.iter().map(Value::from).collect::<Array>()),
            Serde::Object(members) => {
                let members = members.iter().map(|(key, value)| (Str::new(key), Value::from(value)));
                Value::Object(members.collect::<Object>())
            }
        }
    }
}
