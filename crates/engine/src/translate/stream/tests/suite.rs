//! JSONTestSuite through the transcoder, in every class, at several cuts and at every level; see
//! [`switchback_json`]'s tests for its location. Every class gives the verdict of the document reader
//! on each text that the strict reader accepts. A verdict does not depend on the cut.

#[path = "../../../../../json/src/tests/suite_cases.rs"]
mod cases;

use super::super::{Bounds, Program, Values};
use super::plans::{array, captured, close, conversion, emit, first_of, keep, object, place};
use super::{Outcome, reference, run};
use cases::Class;
use std::sync::Arc;
use switchback_json::scan::Level;
use switchback_json::{Limits, validate};
use switchback_plan::convert::{ConversionKind, Otherwise};
use switchback_plan::{Absent, Others, ValueOp};

/// One plan for each class of plans that streams. The plans rewrite objects wherever they are, and take
/// other values as they come.
fn classes() -> Vec<(&'static str, ValueOp)> {
    let tokens = |members| object(members, Others::Keep, vec![]);
    let moved = object(
        vec![captured(keep("a"), 0)],
        Others::Keep,
        vec![close("copy of a", first_of(vec![place(0, &[])], Absent::Omit))],
    );
    vec![
        ("pass", ValueOp::Keep),
        ("tokens", tokens(vec![emit("a", "renamed", ValueOp::Keep)])),
        ("tokens, a list", array(tokens(vec![emit("a", "renamed", ValueOp::Keep)]))),
        ("captures", moved.clone()),
        ("captures, a list", array(moved)),
        ("element", array(conversion(ConversionKind::AbsentToNull, Otherwise::Keep))),
        ("element, whole", conversion(ConversionKind::AbsentToNull, Otherwise::Keep)),
    ]
}

/// What becomes of a text, which must not depend on the cuts or the level.
fn outcome(class: &str, op: &ValueOp, name: &str, text: &[u8]) -> Outcome {
    let (program, values) = (Arc::new(Program::compile(op)), Arc::new(Values::default()));
    let one = |level, size| run(&program, &values, Bounds::default(), level, text.chunks(size));
    let whole = one(Level::Portable, text.len().max(1));
    for level in Level::ALL {
        for size in [1, 2, 3, 7, 64, 1000, text.len().max(1)] {
            let found = one(level, size);
            let same = match (&found, &whole) {
                (Ok(found), Ok(whole)) => found == whole,
                (Err(_), Err(_)) => true,
                _ => false,
            };
            assert!(same, "{class}, {name}: {level:?} in chunks of {size}: {found:?}, not {whole:?}");
        }
    }
    whole
}

#[test]
fn every_class_gives_the_verdict_of_the_document_on_the_suite() {
    let Some(cases) = cases::cases() else { return };
    let values = Values::default();
    for (class, op) in classes() {
        let mut undefined = 0;
        for case in &cases {
            let document = reference(&op, &values, &case.text).map_err(drop);
            // A plan can reject JSON whose kind it does not accept.
            assert!(case.accepted || document.is_err(), "{class}: {}", case.name);
            if class.starts_with("pass") || class.ends_with("whole") {
                assert_eq!(document.is_ok(), case.accepted, "{class}: {}", case.name);
            }
            // The grammar accepts lone surrogates, and duplicate names where the plan reads no names.
            let streamed = outcome(class, &op, &case.name, &case.text).map_err(drop);
            assert!(case.class != Class::NotJson || streamed.is_err(), "{class}: {}", case.name);
            if validate(&case.text, &Limits::STREAM).is_ok() {
                assert_eq!(streamed, document, "{class}: {}", case.name);
            }
            undefined += usize::from(case.class == Class::Undefined);
        }
        assert_eq!(undefined, 35, "{class}");
    }
}
