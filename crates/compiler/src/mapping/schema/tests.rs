//! Compares schema and reader: the files of packs are valid, unknown keys are not, and every key is
//! described.

use super::*;
use crate::diagnostic::{Findings, Sources};
use crate::mapping::ast::ProgramDecl;
use crate::mapping::fragments::Fragments;
use crate::mapping::load::{MANIFEST, MAPPING_SUFFIX, PackSource};
use crate::mapping::{language, literal, manual_pages};
use crate::yaml;
use jsonschema::Validator;
use std::collections::BTreeSet;
use std::path::Path;

/// Returns every pack under `mappings/`, and those in the manual.
fn packs() -> Vec<PackSource> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings");
    let entries = std::fs::read_dir(folder).expect("the packs lie beside the sources");
    let folders = entries.map(|entry| entry.expect("a folder that can be listed").path());
    let packs = folders.filter(|path| path.join(MANIFEST).is_file());
    packs
        .map(|folder| PackSource::from_dir(&folder).expect("a pack can be read"))
        .chain(manual_pages::packs())
        .collect()
}

/// Returns a file as JSON.
fn as_json(name: &str, bytes: &[u8]) -> Value {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let node = yaml::parse(&mut sources, name, bytes, &mut findings).expect("files of packs are YAML");
    serde_json::from_slice(&literal::json(&node)).expect("what is written is JSON")
}

/// Returns the files of a pack that have a schema, and the names of its sides.
fn files(source: &PackSource) -> (Vec<(String, Value)>, [String; 2]) {
    let with_schema = |name: &str| name == MANIFEST || name.ends_with(MAPPING_SUFFIX);
    let files = source.files().iter().filter(|(name, _)| with_schema(name));
    let files: Vec<_> = files.map(|(name, bytes)| (name.clone(), as_json(name, bytes))).collect();
    (files, crate::mapping::load::sides(source).expect("a pack names its sides"))
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).expect("the schema is one")
}

fn schema_of(name: &str, sides: Sides<'_>) -> Validator {
    validator(&if name == MANIFEST { pack(sides) } else { mapping(sides) })
}

#[test]
fn every_file_of_every_pack_is_valid_with_and_without_the_names_of_its_sides() {
    let mut seen = 0;
    for source in packs() {
        let (files, [old, new]) = files(&source);
        for sides in [None, Some([old.as_str(), new.as_str()])] {
            let schemas = [schema_of(MANIFEST, sides), schema_of("", sides)];
            for (name, file) in &files {
                let errors: Vec<String> = schemas[usize::from(name != MANIFEST)]
                    .iter_errors(file)
                    .map(|error| format!("{}: {error}", error.instance_path()))
                    .collect();
                assert!(errors.is_empty(), "{name}: {errors:#?}");
                seen += 1;
            }
        }
    }
    assert!(seen > 30, "{seen} files");
}

/// A pack that compiles has no error by the schema with its names.
#[test]
fn every_pack_is_valid_by_the_schema_of_its_names() {
    for source in packs() {
        let schema = validator(&crate::mapping::named_schema(&crate::mapping::compile(&source)));
        let (files, _) = files(&source);
        for (name, file) in files.iter().filter(|(name, _)| name != MANIFEST) {
            let errors: Vec<String> =
                schema.iter_errors(file).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(errors.is_empty(), "{name}: {errors:#?}");
        }
    }
}

/// Returns the fragments of all files, as one file.
fn fragments(files: &[(String, Value)]) -> Value {
    let all = files.iter().filter_map(|(_, file)| file.get("fragments")?.as_object());
    json!({"fragments": all.flatten().map(|(name, decl)| (name.clone(), decl.clone())).collect::<Map<_, _>>()})
}

/// Returns whether the reader accepts the form of a file.
fn is_read(name: &str, file: &Value, manifest: &Value, fragments: &Value) -> bool {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let mut node = |name: &str, file: &Value, findings: &mut Findings| {
        yaml::parse(&mut sources, name, file.to_string().as_bytes(), findings).expect("JSON is YAML")
    };
    let root = node(MANIFEST, if name == MANIFEST { file } else { manifest }, &mut findings);
    let Some(manifest) = language::manifest(&root, &mut findings) else { return false };
    if name != MANIFEST {
        let declared = language::fragments(&node("fragments", fragments, &mut findings), &manifest);
        let mut root = node(name, file, &mut findings);
        Fragments::collect(declared, &mut findings).expand(&mut root, &mut sources, &mut findings);
        language::file(&root, &mut ProgramDecl::new(manifest), &mut findings);
    }
    !findings.has_errors()
}

/// Keys of values with any keys: messages, the blocks of fragments and their arguments.
const UNREAD: [&str; 3] = ["reply", "gives", "$use"];

/// Returns pointers to the maps of a file, one for each distinct path of keys, regardless of list
/// positions.
fn maps(file: &Value) -> Vec<String> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut open = vec![(String::new(), String::new(), file)];
    while let Some((pointer, way, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                // Elements of a list with different keys are different forms.
                let keys = members.keys().map(String::as_str).collect::<Vec<_>>().join(",");
                if seen.insert(format!("{way}{{{keys}}}")) {
                    found.push(pointer.clone());
                }
                for (key, value) in members.iter().filter(|(key, _)| !UNREAD.contains(&key.as_str())) {
                    let step = key.replace('~', "~0").replace('/', "~1");
                    open.push((format!("{pointer}/{step}"), format!("{way}/{key}"), value));
                }
            }
            Value::Array(items) => {
                let inside = items.iter().enumerate();
                open.extend(inside.map(|(at, item)| (format!("{pointer}/{at}"), format!("{way}/*"), item)));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn a_key_that_the_reader_does_not_know_is_not_valid_at_any_level() {
    let mut refused = 0;
    for source in packs() {
        let (files, [old, new]) = files(&source);
        let sides = Some([old.as_str(), new.as_str()]);
        let schemas = [schema_of(MANIFEST, sides), schema_of("", sides)];
        let manifest = &files.iter().find(|(name, _)| name == MANIFEST).expect("a pack has one").1;
        let fragments = fragments(&files);
        for (name, file) in files.iter().filter(|(name, _)| name != "messages.examples.map.yaml") {
            assert!(is_read(name, file, manifest, &fragments), "{name} is read when written as JSON");
            for pointer in maps(file) {
                let mut more = file.clone();
                let map = more.pointer_mut(&pointer).and_then(Value::as_object_mut).expect("it was there");
                map.insert("zzzz".to_owned(), "x".into());
                if !is_read(name, &more, manifest, &fragments) {
                    let is_valid = schemas[usize::from(name != MANIFEST)].is_valid(&more);
                    assert!(!is_valid, "{name}: `zzzz` at {pointer} is valid, and the reader refuses it");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 200, "{refused} maps with a key too many");
}

#[test]
fn every_key_has_a_sentence() {
    for schema in [mapping(None), pack(None), mapping(Some(["a", "b"])), pack(Some(["a", "b"]))] {
        let mut open = vec![(String::new(), &schema)];
        while let Some((at, value)) = open.pop() {
            if let Some(properties) = value.get("properties").and_then(Value::as_object) {
                for (name, line) in properties.iter().filter(|(name, _)| !["a", "b"].contains(&name.as_str()))
                {
                    let about = line.get("description").and_then(Value::as_str).unwrap_or_default();
                    assert!(about.len() > 3, "{at}/{name} says nothing");
                }
            }
            match value {
                Value::Object(members) => {
                    open.extend(members.iter().map(|(name, value)| (format!("{at}/{name}"), value)));
                }
                Value::Array(items) => open.extend(items.iter().map(|item| (at.clone(), item))),
                _ => {}
            }
        }
    }
}
