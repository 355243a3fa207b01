//! JSON Schema (2020-12) of a pack's files, for editors: the keys, their descriptions, and the
//! words and forms of values.
//!
//! The schema follows from the declarations of the language, so schema and reader cannot diverge.
//! It checks form only; the checker decides whether names exist and types fit.

mod describe;
#[cfg(test)]
mod tests;

pub use describe::SchemaPlace;

use super::fragments::PLAIN_SECTIONS;
use super::language;
use crate::yaml::described;
use serde_json::{Map, Value, json};
use std::mem;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Names of a pack's sides, old side first, if known. Maps by side then accept these keys only.
pub type Sides<'a> = Option<[&'a str; 2]>;

/// Returns the schema of mapping files (`*.map.yaml`).
pub fn mapping(sides: Sides<'_>) -> Value {
    with_uses(without_uses(sides), sides)
}

/// Returns the schema of a mapping file that uses no fragments.
pub(super) fn without_uses(sides: Sides<'_>) -> Value {
    let mut schema = language::file_schema(sides);
    schema["$schema"] = DIALECT.into();
    schema["title"] = "Switchback mapping file".into();
    schema["$defs"] = language::definitions(sides);
    schema
}

/// Adds the uses of fragments to the schema of a mapping file.
pub(super) fn with_uses(mut schema: Value, sides: Sides<'_>) -> Value {
    let sections = schema["properties"].as_object_mut().into_iter().flatten();
    for (_, section) in sections.filter(|(name, _)| !PLAIN_SECTIONS.contains(&name.as_str())) {
        allow_uses(section);
    }
    let definitions = schema["$defs"].as_object_mut().into_iter().flatten();
    for (_, definition) in
        definitions.filter(|(name, _)| !name.ends_with("xample") && !name.starts_with("example"))
    {
        allow_uses(definition);
    }
    schema["$defs"]["fragment"] = language::FragmentDecl::definition(sides);
    schema["$defs"]["use"] = language::use_schema();
    schema
}

/// Adds to the maps and lists of a schema that a fragment may give them, or keys of them.
fn allow_uses(schema: &mut Value) {
    let Value::Object(rules) = schema else { return };
    for key in ["properties", "additionalProperties", "items", "anyOf"] {
        match rules.get_mut(key) {
            Some(Value::Object(schemas)) if key == "properties" => schemas.values_mut().for_each(allow_uses),
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(allow_uses),
            Some(schema) => allow_uses(schema),
            None => {}
        }
    }
    let used = || described(reference("use"), &["The block of a fragment, or keys of it."]);
    match rules.get("type").and_then(Value::as_str) {
        Some("object") if rules.contains_key("properties") => {
            // The fragment may give what is required, too.
            let of_all = ["required", "oneOf", "not", "minProperties"];
            let needed: Map<String, Value> =
                of_all.iter().filter_map(|key| rules.remove_entry(*key)).collect();
            rules["properties"][language::USE] = used();
            if !needed.is_empty() {
                rules.insert("anyOf".to_owned(), json!([{"required": [language::USE]}, needed]));
            }
        }
        Some("array") => {
            let mut list = mem::take(rules);
            rules.extend(list.remove_entry("description"));
            let properties = json!({language::USE: used()});
            let used = json!({"type": "object", "additionalProperties": false, "properties": properties});
            rules.insert("anyOf".to_owned(), json!([list, used]));
        }
        _ => {}
    }
}

/// Returns the schema of `pack.yaml`.
pub fn pack(sides: Sides<'_>) -> Value {
    let mut schema = language::Manifest::definition(sides);
    schema["$schema"] = DIALECT.into();
    schema["title"] = "Switchback pack".into();
    schema["$defs"] = json!({"status": status(), "policy": language::RefusePolicyDecl::definition(sides)});
    schema
}

/// Returns a map with one entry per side, of which `needed` are required.
pub(super) fn by_side(sides: Sides<'_>, needed: usize, value: &Value) -> Value {
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
pub(super) fn map_of(value: &Value) -> Value {
    json!({"type": "object", "additionalProperties": value})
}

pub(super) fn list_of(value: &Value) -> Value {
    json!({"type": "array", "items": value})
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn words(words: &[&str]) -> Value {
    json!({"enum": words})
}

pub(super) fn anything() -> Value {
    json!({})
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

pub(super) fn status() -> Value {
    json!({"type": "integer", "minimum": 200, "maximum": 599})
}

pub(super) fn place() -> Value {
    json!({"type": "string", "description": "A member name, or a JSONPath of names such as `$.body.text`."})
}

pub(super) fn side_name(sides: Sides<'_>) -> Value {
    sides.map_or_else(text, |sides| words(&sides))
}
