//! Evidence of an operation, as values.

use serde::Serialize;
use std::fmt;
use switchback_engine::diff::Summary;

/// Evidence of one period of an operation in a phase, under one pack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeriodEvidence {
    /// The period, identified by the store's write number at its start; 0 for the configured phase.
    pub period: i64,
    /// The hash of the pack that translated all of it.
    pub pack: String,
    /// The counts of that period.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The reason against promoting an operation: too many comparisons of its current period differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The counts that exceed the threshold, such as `7 of 7 compared answers differ`.
    pub verdict: String,
    /// The most frequent differences, each with its place and mapping line.
    pub causes: Vec<String>,
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.verdict)?;
        if !self.causes.is_empty() {
            write!(f, " ({})", self.causes.join("; "))?;
        }
        Ok(())
    }
}
