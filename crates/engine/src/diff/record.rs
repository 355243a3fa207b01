//! What is kept of comparisons: one [`Record`] per pair of answers, one [`Summary`] per operation. The store writes and reads
//! them; a report is made of summaries.

use super::counts::Counts;
use super::finding::{Cause, Comparison, Finding, FindingKind};
use crate::evidence::Timed;
use serde::{Deserialize, Serialize};

/// One comparison as it is kept: redacted, with what is needed to find the call again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// As the contract of the served side writes it, such as `GET /things/{id}`.
    pub operation: String,
    /// Name of the served side.
    pub side: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// Name of the enrolled client.
    pub client: Option<String>,
    /// Path and query, redacted.
    pub target: String,
    /// The gateway's identifier of the request, as logs have it.
    pub request_id: Option<String>,
    /// The hash of the pack by which it was translated: lines of the mapping are lines of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
    /// The reading by which the effect of a write was looked at; none where the answers themselves were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<String>,
    /// What came of comparing the two answers.
    pub comparison: Comparison,
}

/// What is known of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// As the contract of the served side writes it, such as `GET /things/{id}`.
    pub operation: String,
    /// Name of the served side.
    pub side: String,
    /// The phase in which it was counted, in a word; empty where that is not known.
    #[serde(default)]
    pub phase: String,
    /// The phase that the operation is in now, where all of this was counted in an earlier period or under another pack.
    #[serde(skip)]
    pub present_phase: Option<String>,
    /// Since when it has been counted, milliseconds since 1970.
    pub since_ms: i64,
    /// What came of its comparisons.
    pub counts: Counts,
    /// Times of both sides.
    #[serde(default)]
    pub timed: Timed,
    /// Most frequent first.
    pub tallies: Vec<Tally>,
}

/// How often one difference was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Place of the findings, with `*` for every index.
    pub pattern: String,
    /// How they differ there.
    pub kind: FindingKind,
    /// What is behind them.
    pub cause: Cause,
    /// The reading in which it was seen, where that was made after a write to look at its effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<String>,
    /// Whether it was seen once and did not repeat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unsettled: bool,
    /// Calls in which it was seen.
    pub calls: u64,
    /// When it was seen last, milliseconds since 1970.
    pub last_ms: i64,
    /// The last one, with its redacted samples.
    pub example: Finding,
}

/// Differences by the line of the mapping that is behind them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blamed {
    /// `file:line`, or who else it is.
    pub cause: String,
    /// Calls with a finding of this cause.
    pub calls: u64,
}

/// Most tallies kept of one operation; the rarest give way.
pub(super) const TALLIES_MAX: usize = 200;

impl Summary {
    /// The summary of an operation of which nothing has been seen.
    pub fn new(side: &str, operation: &str, since_ms: i64) -> Summary {
        Summary { operation: operation.to_owned(), side: side.to_owned(), since_ms, ..Summary::default() }
    }

    /// Takes in one more comparison.
    pub fn add(&mut self, at_ms: i64, comparison: &Comparison) {
        self.counts.add(comparison.verdict(), &comparison.findings, comparison.excused);
        self.tally(at_ms, comparison, None, false);
    }

    /// Takes in a comparison with a difference that did not repeat.
    pub fn add_unsettled(&mut self, at_ms: i64, comparison: &Comparison) {
        self.counts.add_unsettled(&comparison.findings, comparison.excused);
        self.tally(at_ms, comparison, None, true);
    }

    /// Takes in the plan of a write.
    pub fn add_planned(&mut self, at_ms: i64, comparison: &Comparison) {
        self.counts.add_planned(&comparison.findings);
        self.tally(at_ms, comparison, None, false);
    }

    /// Takes in how the effect of a write looked when it was read back.
    pub fn add_read_back(&mut self, at_ms: i64, record: &Record) {
        self.counts.add_read_back(record.comparison.verdict(), &record.comparison.findings);
        self.tally(at_ms, &record.comparison, record.read_back.as_deref(), false);
    }

    /// Takes in an event that only one side sent; `is_missing` says that it was the one that clients know.
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
        self.tallies.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.pattern.cmp(&b.pattern)));
        self.tallies.truncate(TALLIES_MAX);
    }

    /// The causes of differences, most frequent first.
    pub fn blamed(&self) -> Vec<Blamed> {
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
    /// Whether a finding is one of these.
    pub fn is_of(&self, finding: &Finding) -> bool {
        self.kind == finding.kind && self.pattern == finding.pattern && self.cause == finding.cause
    }
}
