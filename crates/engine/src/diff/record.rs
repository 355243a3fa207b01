//! Stored results of comparisons: one [`Record`] per pair of answers and one [`Summary`] per
//! operation. The store persists both; reports are built from summaries.

use super::counts::Counts;
use super::finding::{Cause, Comparison, Finding, FindingKind};
use crate::evidence::Timed;
use serde::{Deserialize, Serialize};

/// One stored comparison, redacted, with the data needed to find the call again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Key of the operation in the contract of the served side, such as `GET /things/{id}`.
    pub operation: String,
    /// Name of the served side.
    pub side: String,
    /// Milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Name of the enrolled client.
    pub client: Option<String>,
    /// Path and query, redacted.
    pub target: String,
    /// The gateway's request identifier, as in the logs.
    pub request_id: Option<String>,
    /// Hash of the pack that translated the call. Line numbers in the findings refer to that pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
    /// The operation that read back the effect of a write, or `None` if the answers were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<String>,
    /// The comparison of the two answers.
    pub comparison: Comparison,
}

/// The accumulated results of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Key of the operation in the contract of the served side, such as `GET /things/{id}`.
    pub operation: String,
    /// Name of the served side.
    pub side: String,
    /// The phase in which the results were counted; empty if unknown.
    #[serde(default)]
    pub phase: String,
    /// The current phase of the operation, if the results belong to an earlier period or to another
    /// pack.
    #[serde(skip)]
    pub present_phase: Option<String>,
    /// Start of the counting, milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// The comparisons by outcome.
    pub counts: Counts,
    /// Response times of both sides.
    #[serde(default)]
    pub timed: Timed,
    /// The differences, most frequent first.
    pub tallies: Vec<Tally>,
}

/// The frequency of one difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Place of the findings, with `*` for every index.
    pub pattern: String,
    /// How they differ there.
    pub kind: FindingKind,
    /// Their probable cause.
    pub cause: Cause,
    /// The operation that read back the effect of a write, if the difference was found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<String>,
    /// Whether the difference occurred once and did not repeat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unsettled: bool,
    /// Number of calls with this difference.
    pub calls: u64,
    /// Time of the last occurrence, milliseconds since the Unix epoch.
    pub last_ms: i64,
    /// The last occurrence, with its redacted samples.
    pub example: Finding,
}

/// Number of differences caused by one line of the mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blamed {
    /// `file:line` of the mapping, or another [`Cause`] as text.
    pub cause: String,
    /// Number of calls with a finding of this cause.
    pub calls: u64,
}

/// Maximum number of tallies per operation. The rarest are discarded.
pub const TALLIES_MAX: usize = 200;

impl Summary {
    /// Creates an empty summary of an operation.
    pub fn new(side: &str, operation: &str, since_ms: i64) -> Summary {
        Summary { operation: operation.to_owned(), side: side.to_owned(), since_ms, ..Summary::default() }
    }

    /// Adds a comparison.
    pub fn add(&mut self, at_ms: i64, comparison: &Comparison) {
        self.counts.add(comparison.verdict(), &comparison.findings, comparison.excused);
        self.tally(at_ms, comparison, None, false);
    }

    /// Adds a comparison with a difference that did not repeat.
    pub fn add_unsettled(&mut self, at_ms: i64, comparison: &Comparison) {
        self.counts.add_unsettled(&comparison.findings, comparison.excused);
        self.tally(at_ms, comparison, None, true);
    }

    /// Adds the plan of a write.
    pub fn add_planned(&mut self, at_ms: i64, comparison: &Comparison) {
        self.counts.add_planned(&comparison.findings);
        self.tally(at_ms, comparison, None, false);
    }

    /// Adds the comparison of a write's effect.
    pub fn add_read_back(&mut self, at_ms: i64, record: &Record) {
        self.counts.add_read_back(record.comparison.verdict(), &record.comparison.findings);
        self.tally(at_ms, &record.comparison, record.read_back.as_deref(), false);
    }

    /// Adds an event that only one side sent. `is_missing` is set if that side is the reference.
    pub fn add_unpaired(&mut self, at_ms: i64, is_missing: bool, comparison: &Comparison) {
        self.counts.add_unpaired(is_missing, &comparison.findings);
        self.tally(at_ms, comparison, None, false);
    }

    fn tally(&mut self, at_ms: i64, comparison: &Comparison, read_back: Option<&str>, is_unsettled: bool) {
        for finding in &comparison.findings {
            let is_known = |tally: &&mut Tally| {
                tally.is_of(finding)
                    && tally.read_back.as_deref() == read_back
                    && tally.is_unsettled == is_unsettled
            };
            match self.tallies.iter_mut().find(is_known) {
                Some(tally) => {
                    tally.calls += 1;
                    tally.last_ms = at_ms;
                    tally.example = finding.clone();
                }
                None => self.tallies.push(Tally {
                    pattern: finding.pattern.clone(),
                    kind: finding.kind,
                    cause: finding.cause.clone(),
                    read_back: read_back.map(str::to_owned),
                    is_unsettled,
                    calls: 1,
                    last_ms: at_ms,
                    example: finding.clone(),
                }),
            }
        }
        // Sort before truncating, so that the rarest tallies are discarded.
        self.tallies.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.pattern.cmp(&b.pattern)));
        self.tallies.truncate(TALLIES_MAX);
    }

    /// Returns the causes of differences, most frequent first.
    pub fn causes(&self) -> Vec<Blamed> {
        let mut blamed: Vec<Blamed> = Vec::new();
        for tally in &self.tallies {
            let cause = tally.cause.to_string();
            match blamed.iter_mut().find(|known| known.cause == cause) {
                Some(known) => known.calls += tally.calls,
                None => blamed.push(Blamed { cause, calls: tally.calls }),
            }
        }
        blamed.sort_by_key(|blamed| std::cmp::Reverse(blamed.calls));
        blamed
    }
}

impl Tally {
    /// Returns whether a finding belongs to this tally.
    pub fn is_of(&self, finding: &Finding) -> bool {
        self.kind == finding.kind && self.pattern == finding.pattern && self.cause == finding.cause
    }
}
