//! The results of a pack's examples.

use serde::Serialize;
use std::sync::Arc;
use switchback_engine::translate::example;
use switchback_plan::Pack;

/// The results of a pack's examples.
#[derive(Debug)]
pub(super) struct CheckedExamples {
    /// Number of examples.
    pub(super) examples: usize,
    pub(super) failed: Vec<FailedExample>,
}

impl CheckedExamples {
    /// Runs the examples of a pack with all its routes, as a reload does.
    pub(super) fn run(pack: &Arc<Pack>) -> CheckedExamples {
        let report = example::run_all(pack);
        let failed = report.outcomes.iter().filter_map(|outcome| {
            let line = outcome.problems.first()?.origin.to_string();
            let what: Vec<String> = outcome.problems.iter().map(ToString::to_string).collect();
            Some(FailedExample { line, what: what.join("\n") })
        });
        CheckedExamples { examples: report.outcomes.len(), failed: failed.collect() }
    }
}

/// An example of the pack that does not hold.
#[derive(Clone, Debug, Serialize)]
pub struct FailedExample {
    /// Its place, as `file:line`.
    pub line: String,
    /// What differs.
    pub what: String,
}
