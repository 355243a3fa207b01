//! The judge of drafts finds each class of mistake that its own tests plant, and none in a clean
//! pair that this program drafts and serves.

use crate::support::python;

#[test]
fn the_judge_of_drafts_finds_planted_mistakes_and_nothing_else() {
    let Some(python) = python::python() else { return };
    let program = env!("CARGO_BIN_EXE_switchback");
    if let Err(failures) = python::run(&python, "tests/survey/judge_test.py", &[program], "") {
        panic!("{failures}");
    }
}
