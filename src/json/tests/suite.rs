//! JSONTestSuite, which lies outside the project: found through `SWITCHBACK_JSONTESTSUITE`, else in
//! `../shared/data/JSONTestSuite` beside the project. Without it the test says so and passes.

use super::super::{ErrorKind, Limits, Value};
use super::verdict;
use std::path::PathBuf;

/// Valid by the grammar and refused here: a member named twice has no one meaning.
const REFUSED_Y: [&str; 2] = ["y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"];

/// The cases that RFC 8259 leaves open and that we take; every other `i_` case is refused. Numbers
/// are text to us, so none is out of range.
const ACCEPTED_I: [&str; 10] = [
    "i_number_double_huge_neg_exp.json",
    "i_number_huge_exp.json",
    "i_number_neg_int_huge_exp.json",
    "i_number_pos_double_huge_exp.json",
    "i_number_real_neg_overflow.json",
    "i_number_real_pos_overflow.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
];

/// The files of one folder of the suite with their content, ordered by name; `None` when absent.
fn files(folder: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/JSONTestSuite");
    let suite =
        std::env::var_os("SWITCHBACK_JSONTESTSUITE").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(suite.join(folder)) else {
        println!("skipped: no JSONTestSuite; set SWITCHBACK_JSONTESTSUITE to its folder");
        return None;
    };
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read"))
        .map(|entry| {
            let content = std::fs::read(entry.path()).expect("the suite's files can be read");
            (entry.file_name().to_string_lossy().into_owned(), content)
        })
        .collect();
    files.sort();
    Some(files)
}

#[test]
fn the_suite_gets_one_verdict_everywhere() {
    let Some(files) = files("test_parsing") else { return };
    let mut counts = [0; 3];
    for (name, text) in &files {
        let found = verdict(text, Limits::DOCUMENT);
        let class = ["n_", "y_", "i_"].iter().position(|class| name.starts_with(class));
        let class = class.expect("the suite names its files by class");
        counts[class] += 1;
        let accepted = match class {
            0 => false,
            1 => !REFUSED_Y.contains(&name.as_str()),
            _ => ACCEPTED_I.contains(&name.as_str()),
        };
        assert_eq!(found.is_ok(), accepted, "{name}: {found:?}");
        if accepted {
            let value = Value::parse(text, &Limits::DOCUMENT).expect("accepted above");
            let again = Value::parse(&value.to_vec(), &Limits::DOCUMENT).expect("we wrote it");
            assert!(again == value && again.same_text(&value), "{name}");
        }
        if REFUSED_Y.contains(&name.as_str()) {
            assert_eq!(found.map_err(|error| error.kind), Err(ErrorKind::DuplicateMember), "{name}");
        }
    }
    assert_eq!(counts, [188, 95, 35]);
}

#[test]
fn numbers_of_the_suite_keep_their_text() {
    let Some(files) = files("test_transform") else { return };
    for (name, text) in files.iter().filter(|(name, _)| name.starts_with("number_")) {
        let value = Value::parse(text, &Limits::DOCUMENT).expect("the suite's numbers are grammatical");
        let compact: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        assert_eq!(value.to_vec(), compact, "{name}");
    }
}
