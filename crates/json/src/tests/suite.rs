//! JSONTestSuite through the document and the push reader.

#[path = "suite_cases.rs"]
mod cases;

use super::super::{ErrorKind, Limits, Value};
use super::grammar_alone::accepts;
use super::verdict;
use cases::{Case, Class, REFUSED_Y, cases, files};

#[test]
fn the_suite_gets_one_verdict_everywhere() {
    let Some(cases) = cases() else { return };
    let count = |class| cases.iter().filter(|case| case.class == class).count();
    assert_eq!([Class::NotJson, Class::Json, Class::Undefined].map(count), [188, 95, 35]);
    for Case { name, accepted, text, .. } in &cases {
        let found = verdict(text, Limits::DOCUMENT);
        assert_eq!(found.is_ok(), *accepted, "{name}: {found:?}");
        // The grammar alone says nothing of UTF-8, of halves of surrogate pairs and of names.
        let beyond = [ErrorKind::InvalidUtf8, ErrorKind::LoneSurrogate, ErrorKind::DuplicateMember];
        if !found.is_err_and(|error| beyond.contains(&error.kind)) {
            assert_eq!(accepts(text, Limits::DOCUMENT.depth), *accepted, "{name}");
        }
        if *accepted {
            let value = Value::parse(text, &Limits::DOCUMENT).expect("accepted above");
            let again = Value::parse(&value.to_vec(), &Limits::DOCUMENT).expect("we wrote it");
            assert!(again == value && again.same_text(&value), "{name}");
        }
        if REFUSED_Y.contains(&name.as_str()) {
            assert_eq!(found.map_err(|error| error.kind), Err(ErrorKind::DuplicateMember), "{name}");
        }
    }
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
