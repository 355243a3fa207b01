//! Draws values out of raw schemas: boundaries of both documents first, each value checked by the
//! judge before use.

use super::draw::PATTERNS;
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Scalars that lie on or beside the bounds of a pair of documents.
pub struct Pool {
    numbers: Vec<Value>,
    texts: Vec<String>,
    lengths: Vec<usize>,
}

/// Texts of no format: the last two are lists where a style joins elements.
const TEXTS: [&str; 14] = [
    "a",
    "abc",
    "dcba",
    "A1",
    "long enough",
    "7",
    "99",
    "2024-02-29",
    "2024-02-29T10:20:30Z",
    "7d444840-9dc0-11d1-b245-5ffdce74fad2",
    "é",
    "zzzzzz",
    "a,b",
    "7,8",
];

impl Pool {
    pub fn of(documents: &[Value; 2]) -> Pool {
        let mut pool = Pool {
            numbers: [0, 1, -1, 2, 3, 6, 7].map(|n| json!(n)).to_vec(),
            texts: TEXTS.map(str::to_owned).to_vec(),
            lengths: vec![0, 1, 2, 3],
        };
        for (_, samples, others) in PATTERNS {
            pool.texts.extend(samples.iter().chain(others).map(|text| (*text).to_owned()));
        }
        documents.iter().for_each(|document| pool.read(document));
        for wide in [2_147_483_647_i64, 2_147_483_648, -2_147_483_648, -2_147_483_649, 9_007_199_254_740_993]
        {
            pool.numbers.push(json!(wide));
        }
        pool
    }

    fn read(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.read(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("minLength" | "maxLength" | "minItems" | "maxItems", Value::Number(bound)) => {
                            let bound = bound.as_u64().unwrap_or(0) as usize;
                            self.lengths.extend([bound.saturating_sub(1), bound, bound + 1]);
                        }
                        (
                            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum",
                            Value::Number(bound),
                        ) => {
                            let bound = bound.as_i64().unwrap_or(0);
                            self.numbers.extend([bound - 1, bound, bound + 1].map(|n| json!(n)));
                        }
                        ("enum", Value::Array(values)) => {
                            self.texts.extend(values.iter().filter_map(|v| v.as_str().map(str::to_owned)));
                            self.numbers.extend(values.iter().filter(|v| v.is_number()).cloned());
                        }
                        _ => self.read(member),
                    }
                }
            }
            _ => {}
        }
    }

    /// A value that is probably one of the schema, which is lowered; the caller checks it. With an
    /// aim, the steps to a place within, it has that place wherever the schema declares it.
    pub fn value(&self, rng: &mut Rng, schema: &Value, aim: Option<&[String]>) -> Value {
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[rng.usize(..values.len())].clone();
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(all) = schema[keyword].as_array() {
                let one = &all[rng.usize(..all.len())];
                return self.value(rng, one, aim);
            }
        }
        if let Some(all) = schema["allOf"].as_array() {
            let mut merged = schema.as_object().cloned().unwrap_or_default();
            merged.remove("allOf");
            for part in all.iter().filter_map(Value::as_object) {
                merged.extend(part.clone());
            }
            return self.value(rng, &Value::Object(merged), aim);
        }
        let leads_on = aim.is_some_and(|aim| !aim.is_empty());
        let of = match &schema["type"] {
            Value::Array(types) if leads_on => types[0].as_str().unwrap_or("null"),
            Value::Array(types) => types[rng.usize(..types.len())].as_str().unwrap_or("null"),
            Value::String(of) => of.as_str(),
            _ => "string",
        };
        match of {
            "object" => self.object(rng, schema, aim),
            "array" => {
                let least = usize::from(leads_on);
                let length = self.lengths[rng.usize(..self.lengths.len())].clamp(least, 6);
                let further = aim.and_then(|aim| further(aim, "[*]"));
                let mut items: Vec<Value> =
                    (0..length).map(|_| self.value(rng, &schema["items"], further)).collect();
                if length > 1 && rng.u8(..4) == 0 {
                    items[1] = items[0].clone();
                }
                Value::Array(items)
            }
            "integer" => self.numbers[rng.usize(..self.numbers.len())].clone(),
            "number" if rng.u8(..4) == 0 => json!([0.5, 1.5, 10.5][rng.usize(..3)]),
            "number" => self.numbers[rng.usize(..self.numbers.len())].clone(),
            "boolean" => json!(rng.bool()),
            "null" => Value::Null,
            _ => json!(self.text(rng, schema)),
        }
    }

    fn text(&self, rng: &mut Rng, schema: &Value) -> String {
        let pattern = PATTERNS.iter().find(|(pattern, ..)| schema["pattern"] == *pattern);
        if let Some((_, samples, _)) = pattern {
            return samples[rng.usize(..samples.len())].to_owned();
        }
        match schema["format"].as_str() {
            Some("date") => ["2024-02-29", "1999-12-31"][rng.usize(..2)].to_owned(),
            Some("date-time") => {
                ["2024-02-29T10:20:30Z", "1999-12-31T23:59:59.5-03:00"][rng.usize(..2)].to_owned()
            }
            Some("uuid") => "7d444840-9dc0-11d1-b245-5ffdce74fad2".to_owned(),
            _ if rng.bool() => {
                "qwertyuiop".chars().cycle().take(self.lengths[rng.usize(..self.lengths.len())]).collect()
            }
            _ => self.texts[rng.usize(..self.texts.len())].clone(),
        }
    }

    fn object(&self, rng: &mut Rng, schema: &Value, aim: Option<&[String]>) -> Value {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut members = Map::new();
        let share = [2, 5, 9][rng.usize(..3)];
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            let is_possible = *of != Value::Bool(false);
            let aim = aim.and_then(|aim| further(aim, name));
            if is_possible && (required.contains(&name.as_str()) || aim.is_some() || rng.u8(..10) < share) {
                members.insert(name.clone(), self.value(rng, of, aim));
            }
        }
        let aim = aim.and_then(|aim| further(aim, "*"));
        let further = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(of) if of.is_object() => (aim.is_some() || rng.bool()).then_some(of),
            _ => (aim.is_some() || rng.u8(..4) == 0).then_some(&Value::Null),
        };
        if let Some(of) = further {
            let wanted = 1 + rng.usize(..2);
            for name in ["zz", "yy"].iter().take(wanted) {
                let value = if of.is_null() { json!("undeclared") } else { self.value(rng, of, aim) };
                members.insert((*name).to_owned(), value);
            }
        }
        for name in required {
            if !members.contains_key(name) && schema["properties"].get(name).is_none() {
                members.insert(name.to_owned(), json!(1));
            }
        }
        Value::Object(members)
    }
}

/// The steps that an aim leaves after this one; none where it leads elsewhere.
fn further<'a>(aim: &'a [String], step: &str) -> Option<&'a [String]> {
    let (first, rest) = aim.split_first()?;
    (first == step).then_some(rest)
}

/// A value of a simple schema, for defaults.
pub fn any(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match (schema["type"].as_str(), schema["format"].as_str(), schema["pattern"].as_str()) {
        (_, Some("date"), _) => json!("2024-02-29"),
        (_, Some("date-time"), _) => json!("2024-02-29T10:20:30Z"),
        (_, Some("uuid"), _) => json!("7d444840-9dc0-11d1-b245-5ffdce74fad2"),
        (_, _, Some(pattern)) => {
            let sample = PATTERNS.iter().find(|(known, ..)| *known == pattern);
            json!(sample.map_or("a", |(_, samples, _)| samples[0]))
        }
        (Some("integer" | "number"), ..) => json!(7),
        (Some("boolean"), ..) => json!(true),
        _ => json!("abc"),
    }
}
