//! `switchback schema`, as an editor's user runs it.

use crate::support::packs;
use serde_json::{Value, json};
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_switchback");
    Command::new(program).arg("schema").args(args).output().expect("the program starts")
}

fn schema(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a schema is JSON")
}

#[test]
fn every_kind_of_file_has_a_schema_of_2020_12() {
    for args in [&[][..], &["mapping"], &["pack"], &["config"]] {
        let schema = schema(args);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{args:?}");
        assert!(schema["title"].is_string(), "{args:?}");
        assert!(jsonschema::draft202012::meta::is_valid(&schema), "{args:?}");
        let nothing_like_it = json!({"zzzz": 1});
        assert!(
            !jsonschema::draft202012::new(&schema).expect("it is one").is_valid(&nothing_like_it),
            "{args:?}"
        );
    }
    assert_eq!(schema(&[]), schema(&["mapping"]));
}

#[test]
fn with_a_pack_the_names_of_its_sides_are_keys() {
    let folder = packs::messaging_folder();
    let schema = schema(&["mapping", "--pack", folder.to_str().expect("a path of text")]);
    let schema = jsonschema::draft202012::new(&schema).expect("it is one");
    let shape = |old: &str| json!({"mapping": 1, "shapes": {"S": {"of": {old: "Message", "v3": "Message"}, "same": ["id"]}}});
    assert!(schema.is_valid(&shape("v2")));
    assert!(!schema.is_valid(&shape("v1")));
}

#[test]
fn a_folder_that_is_no_pack_is_said_to_be_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = run(&["pack", "--pack", folder.path().to_str().expect("a path of text")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the sides cannot be read"));
}
