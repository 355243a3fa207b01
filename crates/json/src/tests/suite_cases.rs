//! The cases of JSONTestSuite, in the folder that the variable `SWITCHBACK_JSONTESTSUITE` names. Without
//! it the tests print that they are skipped. The tests of this crate and of `switchback-engine` include
//! this file, since a test module cannot be imported.

use std::path::PathBuf;

/// Valid by the grammar and refused here: a member named twice has no one meaning.
pub(crate) const REFUSED_Y: [&str; 2] =
    ["y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"];

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
pub(crate) fn files(folder: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let Some(suite) = std::env::var_os("SWITCHBACK_JSONTESTSUITE") else {
        println!("skipped: SWITCHBACK_JSONTESTSUITE does not name the folder of JSONTestSuite");
        return None;
    };
    let entries = std::fs::read_dir(PathBuf::from(suite).join(folder)).expect("the suite is in that folder");
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

/// What RFC 8259 says of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    NotJson,
    Json,
    Undefined,
}

/// A text of the suite, with the verdict that every strict reading gives.
pub(crate) struct Case {
    pub name: String,
    pub class: Class,
    pub accepted: bool,
    pub text: Vec<u8>,
}

/// All cases; `None` when the suite is absent.
pub(crate) fn cases() -> Option<Vec<Case>> {
    let case = |(name, text): (String, Vec<u8>)| {
        let (class, accepted) = match &name[..2] {
            "n_" => (Class::NotJson, false),
            "y_" => (Class::Json, !REFUSED_Y.contains(&name.as_str())),
            "i_" => (Class::Undefined, ACCEPTED_I.contains(&name.as_str())),
            _ => panic!("{name}: the suite names its files by class"),
        };
        Case { name, class, accepted, text }
    };
    Some(files("test_parsing")?.into_iter().map(case).collect())
}
