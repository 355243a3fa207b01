//! The reference by keyword, `docs/manual/reference.md`, is generated from the declarations of the
//! language. `UPDATE_EXPECT=1` writes it.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use switchback_compiler::mapping::schema;
use switchback_plan::convert::SPECS;

/// By keyword, the descriptions, each with the places that have it.
type Keywords = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Names of definitions as readers know them. Several definitions are variants of one map.
const NAMES: &[(&str, &str)] = &[
    ("action", "step"),
    ("exampleAnswer", "answer of an example"),
    ("exampleCall", "call of an example"),
    ("harvestExample", "example"),
    ("onFail", "on_fail"),
    ("predicate", "check"),
    ("routeExample", "example"),
    ("shapeExample", "example"),
    ("shapeInPlace", "shape"),
    ("shapeUse", "shape"),
];

#[test]
fn the_reference_has_every_keyword_of_the_language() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/manual/reference.md");
    let expected = page();
    assert!(expected.contains("| `on_fail` |") && expected.contains("| `csv` |"), "{expected}");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &expected).expect("the page is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/manual/reference.md is outdated; UPDATE_EXPECT=1 writes it");
}

fn page() -> String {
    let mut page = "# Reference by keyword\n\nThis page is generated from the declarations of the language. \
                    *In* names the map that has the keyword.\n"
        .to_owned();
    for (title, schema, root) in [
        ("Mapping files", schema::mapping(None), "a mapping file"),
        ("`pack.yaml`", schema::pack(None), "`pack.yaml`"),
    ] {
        _ = write!(page, "\n## {title}\n\n| Keyword | In | Meaning |\n|---|---|---|\n");
        for (keyword, meanings) in keywords(&schema, root) {
            for (meaning, places) in meanings {
                let places: Vec<&str> = places.iter().map(String::as_str).collect();
                _ = writeln!(page, "| `{keyword}` | {} | {} |", places.join(", "), cell(&meaning));
            }
        }
    }
    page.push_str("\n## Conversions\n\n| Conversion | Meaning | Old side | New side |\n|---|---|---|---|\n");
    for spec in SPECS {
        let example = spec.examples.first();
        let value = |text: Option<&str>| {
            text.map_or_else(|| "(absent)".to_owned(), |text| format!("`{}`", cell(text)))
        };
        let [old, new] = [example.and_then(|one| one.old), example.and_then(|one| one.new)].map(value);
        _ = writeln!(page, "| `{}` | {} | {old} | {new} |", spec.name, cell(spec.about));
    }
    page
}

/// Escapes a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn keywords(schema: &Value, root: &str) -> Keywords {
    let mut found = Keywords::new();
    collect(schema, root, &mut found);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        let known = NAMES.iter().find(|(definition, _)| definition == name);
        collect(definition, &format!("`{}`", known.map_or(name.as_str(), |(_, name)| name)), &mut found);
    }
    found
}

/// Adds the keys of a schema and of the maps inside it. `place` is the map that a reader sees.
fn collect(schema: &Value, place: &str, found: &mut Keywords) {
    let empty = Map::new();
    for (key, value) in schema["properties"].as_object().unwrap_or(&empty) {
        // Every map and list may be given by a fragment.
        let place = if key == "$use" { "any map or list" } else { place };
        let meaning = value["description"].as_str().unwrap_or_default();
        found.entry(key.clone()).or_default().entry(meaning.to_owned()).or_default().insert(place.to_owned());
        collect(value, &format!("`{key}`"), found);
    }
    for key in ["additionalProperties", "items"] {
        collect_if_map(&schema[key], place, found);
    }
    for key in ["anyOf", "allOf", "oneOf"] {
        for form in schema[key].as_array().into_iter().flatten() {
            collect_if_map(form, place, found);
        }
    }
}

fn collect_if_map(schema: &Value, place: &str, found: &mut Keywords) {
    if schema.is_object() {
        collect(schema, place, found);
    }
}
