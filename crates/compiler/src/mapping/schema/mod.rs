//! JSON Schema (2020-12) of a pack's files, for editors: the keys, their descriptions, and the
//! words and forms of values.
//!
//! The keys are those of the reader's tables, so schema and reader cannot diverge. The schema
//! checks form only; the checker decides whether names exist and types fit.

mod defs;
mod manifest;
#[cfg(test)]
mod tests;
mod values;

use super::syntax::keys;
use crate::yaml::Keys;
use serde_json::{Map, Value, json};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Names of a pack's sides, old side first, if known. Maps by side then accept these keys only.
pub type Sides<'a> = Option<[&'a str; 2]>;

/// Returns the schema of mapping files (`*.map.yaml`).
pub fn mapping(sides: Sides<'_>) -> Value {
    let mut schema = object(
        &keys::FILE,
        &[
            ("mapping", "Version of the language.", json!({"const": 1})),
            (
                "shapes",
                "Lenses between a type of the old side and a type of the new one, by name; each works in both directions.",
                map_of(&reference("shape")),
            ),
            (
                "routes",
                "How each operation of either side is answered.",
                list_of(&json!({"anyOf": [reference("pair"), reference("serve")]})),
            ),
            (
                "reasons",
                "Texts for people, by name and language; `{name}` is a placeholder.",
                map_of(&map_of(&text())),
            ),
            ("archives", "What the gateway keeps of its own, by name.", map_of(&reference("archive"))),
            (
                "harvests",
                "How archives are filled while a side lives, by name.",
                map_of(&reference("harvest")),
            ),
            ("events", "What becomes of each event of the side that sends.", list_of(&reference("event"))),
            (
                "examples",
                "What must come of what: the tests of the pack.",
                list_of(
                    &json!({"anyOf": [reference("routeExample"), reference("shapeExample"), reference("harvestExample")]}),
                ),
            ),
        ],
    );
    schema["$schema"] = DIALECT.into();
    schema["title"] = "Switchback mapping file".into();
    schema["$defs"] = defs::defs(sides);
    schema
}

/// Returns the schema of `pack.yaml`.
pub fn pack(sides: Sides<'_>) -> Value {
    let mut schema = manifest::manifest(sides);
    schema["$schema"] = DIALECT.into();
    schema["title"] = "Switchback pack".into();
    schema["$defs"] = json!({"status": defs::status(), "policy": defs::policy()});
    schema
}

/// A key: its name, description and value schema.
type KeyDoc<'a> = (&'a str, &'a str, Value);

/// Returns a map with the keys of a table. Keys and lines correspond one to one, which a test
/// checks.
fn object(keys: &Keys, lines: &[KeyDoc<'_>]) -> Value {
    let named = |name: &str| lines.iter().find(|(line, ..)| *line == name);
    let all = keys.required.iter().chain(keys.optional);
    let properties =
        all.map(|name| ((*name).to_owned(), named(name).map_or(Value::Bool(true), describe_line)));
    let properties: Map<String, Value> = properties.collect();
    debug_assert!(
        lines.iter().all(|(name, ..)| properties.contains_key(*name)),
        "{}: a line without a key",
        keys.what
    );
    let mut object = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !keys.required.is_empty() {
        object["required"] = json!(keys.required);
    }
    object
}

/// Returns the schema of a line with its description. Siblings of `$ref` are valid since draft
/// 2019-09.
fn describe_line((_, about, schema): &KeyDoc<'_>) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.insert("description".to_owned(), (*about).into());
        return schema;
    }
    json!({"description": about})
}

/// Returns a map with one entry per side, of which `needed` are required.
fn by_side(sides: Sides<'_>, needed: usize, value: &Value) -> Value {
    match sides {
        Some(sides) => {
            let properties: Map<String, Value> =
                sides.map(|side| (side.to_owned(), value.clone())).into_iter().collect();
            json!({"type": "object", "additionalProperties": false, "properties": properties, "minProperties": needed})
        }
        None => {
            json!({"type": "object", "additionalProperties": value, "minProperties": needed, "maxProperties": 2})
        }
    }
}

/// Returns a map with arbitrary keys.
fn map_of(value: &Value) -> Value {
    json!({"type": "object", "additionalProperties": value})
}

fn list_of(value: &Value) -> Value {
    json!({"type": "array", "items": value})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn words(words: &[&str]) -> Value {
    json!({"enum": words})
}

fn anything() -> Value {
    json!({})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}
