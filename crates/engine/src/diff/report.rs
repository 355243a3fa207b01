//! The report of a dual run. For each operation: the number of comparisons, the rate of differences
//! with its confidence bound, the most frequent differences with their causes, and the next step.
//! Rendered as text, Markdown and JSON.

use super::counts::Counts;
use super::percent::{at_most, bound, exact, percent};
use super::record::{Summary, TALLIES_MAX, Tally};
use super::skip::NotReadBack;
use crate::evidence::{Observed, Stage, TimedQuantile, exact_upper};
use serde::Serialize;
use std::fmt::Write as _;

/// The limits that an operation must meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Threshold {
    /// Tolerated rate of differences, between 0 and 1.
    pub mismatch_max: f64,
    /// Confidence of the bounds, between 0 and 1.
    pub confidence: f64,
    /// Maximum number of tallies per operation.
    #[serde(skip)]
    pub top: usize,
}

impl Default for Threshold {
    fn default() -> Threshold {
        Threshold { mismatch_max: 0.01, confidence: 0.95, top: 5 }
    }
}

/// The report of all operations.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The limits that the operations are measured against.
    pub threshold: Threshold,
    /// The worst verdict of all operations, or [`Proof::NotEnough`] without operations. Results of
    /// an earlier period also count as not enough.
    pub verdict: Proof,
    /// The operations, those that need attention first.
    pub operations: Vec<OperationReport>,
}

/// The verdict on one or all operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The bound is within the threshold.
    Within,
    /// Too few comparisons for a verdict.
    NotEnough,
    /// The observed rate exceeds the threshold.
    Above,
}

/// The report of one operation.
#[derive(Clone, Debug, Serialize)]
pub struct OperationReport {
    /// Key of the operation in the contract of the served side, such as `GET /things/{id}`.
    pub operation: String,
    /// Name of the served side.
    pub side: String,
    /// The phase in which the results were counted; empty if unknown.
    pub phase: String,
    /// The current phase of the operation, if the results belong to an earlier period or to another
    /// pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present_phase: Option<String>,
    /// Start of the counting, milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// The comparisons by outcome.
    pub counts: Counts,
    /// Share of equal comparisons, or `None` without comparisons.
    pub equal_rate: Option<f64>,
    /// Upper bound (Clopper and Pearson) on the true rate of different or unsettled answers, at the
    /// confidence of the threshold.
    pub mismatch_bound: f64,
    /// The same bound for unsettled answers alone.
    pub unsettled_bound: f64,
    /// Number of pairs of readings that were timed under the same conditions.
    pub timed: u64,
    /// Bounds on the latency quantiles, at the confidence of the threshold; empty without timed
    /// readings.
    pub latency: Vec<TimedQuantile>,
    /// The threshold that the results are compared with.
    #[serde(skip)]
    pub threshold: Threshold,
    /// The verdict on this operation.
    pub proof: Proof,
    /// The most frequent differences, at most [`Threshold::top`].
    pub top: Vec<Tally>,
    /// Number of further differences.
    pub others: usize,
    /// Whether rarer differences may have been dropped, so that a number of calls may be too low.
    #[serde(skip)]
    pub is_full: bool,
    /// The next step, as a sentence.
    pub next: String,
}

/// Builds the report of these operations.
pub fn report(summaries: &[Summary], threshold: Threshold) -> Report {
    let mut operations: Vec<OperationReport> =
        summaries.iter().map(|summary| report_one(summary, threshold)).collect();
    operations.sort_by(|a, b| b.proof.cmp(&a.proof).then_with(|| a.operation.cmp(&b.operation)));
    let present = |operation: &OperationReport| match operation.present_phase {
        None => operation.proof,
        // Results of an earlier period are no evidence for the current one.
        Some(_) => Proof::NotEnough,
    };
    let verdict = operations.iter().map(present).max().unwrap_or(Proof::NotEnough);
    Report { threshold, verdict, operations }
}

/// Builds the report of one operation.
pub fn report_one(summary: &Summary, threshold: Threshold) -> OperationReport {
    let counts = &summary.counts;
    let Observed { different, compared } = counts.evidence().answers;
    let different = different + counts.unsettled;
    let mismatch_bound = exact_upper(different, compared, threshold.confidence);
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let rate = share(different, compared);
    let is_above = |rate: Option<f64>| rate.is_some_and(|rate| rate > threshold.mismatch_max);
    let proof = match rate {
        // Different effects and wrong plans count against an operation; correct ones do not count
        // for it.
        _ if is_above(share(counts.read_back_different, counts.read_back)) => Proof::Above,
        _ if is_above(share(counts.planned_wrong, counts.planned)) => Proof::Above,
        _ if mismatch_bound <= threshold.mismatch_max => Proof::Within,
        rate if is_above(rate) => Proof::Above,
        _ => Proof::NotEnough,
    };
    OperationReport {
        operation: summary.operation.clone(),
        side: summary.side.clone(),
        phase: summary.phase.clone(),
        present_phase: summary.present_phase.clone(),
        since_ms: summary.since_ms,
        counts: counts.clone(),
        equal_rate: rate.map(|rate| 1.0 - rate),
        mismatch_bound,
        timed: summary.timed.pairs(),
        latency: match summary.timed.pairs() {
            0 => Vec::new(),
            _ => summary.timed.quantiles(threshold.confidence),
        },
        unsettled_bound: exact_upper(counts.unsettled, compared, threshold.confidence),
        threshold,
        proof,
        top: summary.tallies.iter().take(threshold.top).cloned().collect(),
        others: summary.tallies.len().saturating_sub(threshold.top),
        is_full: summary.tallies.len() >= TALLIES_MAX,
        next: next(summary, proof, &threshold),
    }
}

/// Returns the next step, as a sentence.
fn next(summary: &Summary, proof: Proof, threshold: &Threshold) -> String {
    if let Some(phase) = &summary.present_phase {
        return format!("No evidence of the present period in {phase}: all of this is of an earlier one.");
    }
    let has_next_phase = summary.phase != Stage::Translated.word();
    match (proof, summary.tallies.first()) {
        (Proof::Within, None) if !has_next_phase => "Nothing differs.".to_owned(),
        (Proof::Within, Some(_)) if !has_next_phase => {
            "Within the threshold: look at what differs.".to_owned()
        }
        (Proof::Within, None) => "Nothing differs: move it to the next phase.".to_owned(),
        (Proof::Within, Some(_)) => "Within the threshold: look at what differs, then move it on.".to_owned(),
        (Proof::NotEnough, None) if summary.counts.planned > 0 && summary.counts.compared_count() == 0 => {
            "No plan is wrong, which proves nothing of the answers: try it with a few clients.".to_owned()
        }
        (Proof::NotEnough, None) if is_unexamined(&summary.counts) => {
            let help = match summary.counts.not_read_back.contains_key(&NotReadBack::Undeclared) {
                true => "declare a reading for it in `compare.read_back` of the pack",
                false => "raise `shadow.read_back`",
            };
            format!("No write was examined: {help}.")
        }
        (Proof::NotEnough, _) => {
            let Observed { different, compared } = summary.counts.evidence().answers;
            let more = enough(different + summary.counts.unsettled, threshold).saturating_sub(compared);
            let calls = if more == 1 { "call" } else { "calls" };
            format!("Compare about {more} more {calls} without another difference.")
        }
        (Proof::Above, Some(tally)) if tally.is_unsettled => {
            format!("Look at the other service: `{}` differed and did not repeat.", tally.pattern)
        }
        (Proof::Above, Some(tally)) => match tally.cause.line() {
            Some(line) => {
                format!("Look at {line}: it is behind `{}` ({}).", tally.pattern, tally.kind.word())
            }
            None => format!("Look at the other service: `{}` ({}).", tally.pattern, tally.kind.word()),
        },
        (Proof::Above, None) => "Look at the log: what differed is no longer kept.".to_owned(),
    }
}

/// Returns whether writes succeeded without any kind of evidence about them.
fn is_unexamined(counts: &Counts) -> bool {
    counts.unexamined_count() > 0 && counts.compared_count() + counts.planned + counts.read_back == 0
}

/// Returns the number of comparisons that prove the threshold if at most `different` of them
/// differ.
fn enough(different: u64, threshold: &Threshold) -> u64 {
    let proves =
        |compared: u64| exact_upper(different, compared, threshold.confidence) <= threshold.mismatch_max;
    // Double the number until it proves the threshold, then bisect. The upper limit stops the
    // search for a threshold that cannot be proved.
    let mut high = (different + 1).max(16);
    while !proves(high) && high < 1 << 40 {
        high *= 2;
    }
    let mut low = different;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if proves(middle) { high = middle } else { low = middle }
    }
    high
}

impl Report {
    /// Renders the report for a terminal.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for operation in &self.operations {
            let _ = writeln!(out, "{}  {}", self.name(operation), operation.headline());
            for tally in &operation.top {
                let _ = writeln!(out, "    {}", tally.line());
                let _ = writeln!(out, "        {}", tally.example_line());
            }
            if let Some(rest) = operation.rest() {
                let _ = writeln!(out, "    {rest}");
            }
            let _ = writeln!(out, "    → {}", operation.next);
        }
        let _ = writeln!(out, "{}", self.last_line());
        out
    }

    /// Renders the report as Markdown.
    pub fn markdown(&self) -> String {
        let mut out = "# What differs\n\n".to_owned();
        out.push_str(
            "| Operation | Phase | Compared | Equal | Bound on differences | |\n|---|---|---|---|---|---|\n",
        );
        for operation in &self.operations {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} | {} | {} |",
                self.name(operation),
                operation.period(),
                operation.counts.compared_count(),
                operation.equal(),
                bound(operation.mismatch_bound),
                operation.proof.word()
            );
        }
        for operation in &self.operations {
            let _ = writeln!(out, "\n## `{}`\n\n{}\n", self.name(operation), operation.next);
            let facts = [
                operation.sampled(),
                operation.unsettled_text(),
                operation.planned_text(),
                operation.read_back(),
                operation.unanswered_text(),
                operation.unpaired_text(),
                operation.timed_text(),
                operation.skipped_text(),
            ];
            for words in facts.iter().filter(|words| !words.is_empty()) {
                // The facts are formatted as continuations of the headline.
                let words = words.trim_start_matches(", ");
                let _ = writeln!(out, "{}{}.\n", words[..1].to_uppercase(), &words[1..]);
            }
            for tally in &operation.top {
                let _ = writeln!(
                    out,
                    "- {} {}{} in {}, {}. Last: {}",
                    tally.kind.word(),
                    code(&tally.pattern),
                    tally.reading(),
                    calls(tally.calls),
                    tally.cause,
                    code(&tally.example_line())
                );
            }
            if let Some(rest) = operation.rest() {
                let _ = writeln!(out, "- {rest}");
            }
        }
        let _ = writeln!(out, "\n{}", self.last_line());
        out
    }

    /// Returns the operation, after its side where the report has both sides: each may have an
    /// operation of this name.
    fn name(&self, operation: &OperationReport) -> String {
        match self.operations.iter().any(|other| other.side != operation.side) {
            true => format!("{} {}", operation.side, operation.operation),
            false => operation.operation.clone(),
        }
    }

    fn last_line(&self) -> String {
        format!(
            "{}: at most {} may differ, with a confidence of {}",
            self.verdict.word(),
            exact(self.threshold.mismatch_max),
            exact(self.threshold.confidence)
        )
    }
}

impl OperationReport {
    fn headline(&self) -> String {
        format!(
            "{}  compared {}, equal {}, differences {}{}{}{}{}{}{}{}{}  {}",
            self.period(),
            self.counts.compared_count(),
            self.equal(),
            at_most(self.mismatch_bound),
            self.sampled(),
            self.unsettled_text(),
            self.planned_text(),
            self.read_back(),
            self.unanswered_text(),
            self.unpaired_text(),
            self.timed_text(),
            self.skipped_text(),
            self.proof.word()
        )
    }

    /// Returns the phase in which the results were counted, with the current phase if the period is
    /// over.
    pub fn period(&self) -> String {
        match &self.present_phase {
            None => self.phase.clone(),
            Some(present) => format!("{} (an earlier period; now in {present})", self.phase),
        }
    }

    /// Returns a line about the differences that are not listed.
    fn rest(&self) -> Option<String> {
        let listed = self.top.len() + self.others;
        let full =
            format!("Only the {TALLIES_MAX} most frequent are stored, and their counts may be too low.");
        match (self.others, self.is_full) {
            (0, false) => None,
            (0, true) => Some(full),
            (1, false) => Some(format!("and 1 further difference (--top {listed})")),
            (others, false) => Some(format!("and {others} further differences (--top {listed})")),
            (others, true) => Some(format!("and {others} further differences (--top {listed}). {full}")),
        }
    }

    /// Returns the number of answers that are equal as far as they were compared. They are no
    /// evidence.
    fn sampled(&self) -> String {
        match self.counts.equal_so_far {
            0 => String::new(),
            answers => format!(", compared in part {answers} (without a difference)"),
        }
    }

    /// Formats the differences that did not repeat, or an empty text.
    fn unsettled_text(&self) -> String {
        match self.counts.unsettled {
            0 => String::new(),
            calls => format!(", unsettled {calls} ({})", at_most(self.unsettled_bound)),
        }
    }

    /// Formats the latency of both sides; empty without timed readings.
    fn timed_text(&self) -> String {
        let of = |quantile: &TimedQuantile| {
            format!(
                "{} {} of the reference, {} of the candidate",
                quantile.name, quantile.reference, quantile.candidate
            )
        };
        match self.timed {
            0 => String::new(),
            pairs => {
                let quantiles: Vec<String> = self.latency.iter().map(of).collect();
                format!(", timed {pairs} ({})", quantiles.join("; "))
            }
        }
    }

    /// Formats the calls that were not compared, with the reasons, or an empty text.
    fn skipped_text(&self) -> String {
        let reasons: Vec<String> =
            self.counts.skipped.iter().map(|(why, calls)| format!("{calls}: {}", why.words())).collect();
        match (self.counts.dropped, reasons.join("; ")) {
            (0, _) => String::new(),
            (calls, reasons) if reasons.is_empty() => format!(", not compared {calls}"),
            (calls, reasons) => format!(", not compared {calls} ({reasons})"),
        }
    }

    /// Formats the events that only one side sent, or an empty text.
    fn unpaired_text(&self) -> String {
        match (self.counts.events_missing, self.counts.events_extra) {
            (0, 0) => String::new(),
            (missing, extra) => {
                format!(", sent by one side alone {missing} of the reference and {extra} of the candidate")
            }
        }
    }

    /// Formats the planned writes, or an empty text.
    fn planned_text(&self) -> String {
        match (self.counts.planned, self.counts.planned_wrong) {
            (0, _) => String::new(),
            (all, wrong) => format!(", planned {all}, of these wrong {wrong}"),
        }
    }

    /// Formats the unanswered calls, or an empty text.
    fn unanswered_text(&self) -> String {
        match (self.counts.reference_unanswered, self.counts.candidate_unanswered) {
            (0, 0) => String::new(),
            (reference, candidate) => {
                format!(", without an answer {reference} of the reference and {candidate} of the candidate")
            }
        }
    }

    /// Formats the writes that were read back, and the reasons why others were not.
    fn read_back(&self) -> String {
        let reasons: Vec<String> = self
            .counts
            .not_read_back
            .iter()
            .map(|(why, writes)| format!("{writes}: {}", why.words()))
            .collect();
        let reasons = reasons.join("; ");
        match (self.counts.read_back, self.counts.read_back_different, self.counts.unexamined_count()) {
            (0, _, 0) => String::new(),
            (0, _, writes) => format!(", no effect read back of {writes} writes ({reasons})"),
            (all, different, 0) => format!(", read back {all}, of these different {different}"),
            (all, different, writes) => {
                format!(
                    ", read back {all}, of these different {different}, not read back {writes} ({reasons})"
                )
            }
        }
    }

    fn equal(&self) -> String {
        self.equal_rate.map_or_else(|| "–".to_owned(), percent)
    }
}

impl Tally {
    fn line(&self) -> String {
        let Tally { pattern, cause, .. } = self;
        format!("{} {pattern}{} in {}, {cause}", self.kind.word(), self.reading(), calls(self.calls))
    }

    /// Returns a suffix with a leading space: the operation that read back the effect, or a note
    /// that the difference did not repeat. Otherwise empty.
    pub fn reading(&self) -> String {
        let read_back = self.read_back.as_ref().map(|reading| format!(" (read back by {reading})"));
        let unsettled = if self.is_unsettled { " (unsettled)" } else { "" };
        read_back.unwrap_or_default() + unsettled
    }

    fn example_line(&self) -> String {
        let finding = &self.example;
        if let Some(detail) = &finding.detail {
            return detail.clone();
        }
        let shown = |sample: &Option<crate::redact::Sample>| {
            sample.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string)
        };
        format!("{}: {} became {}", finding.place, shown(&finding.reference), shown(&finding.candidate))
    }
}

impl Proof {
    /// Returns the verdict in words.
    pub fn word(self) -> &'static str {
        match self {
            Proof::Within => "within the threshold",
            Proof::NotEnough => "not enough evidence",
            Proof::Above => "above the threshold",
        }
    }
}

fn calls(count: u64) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

/// Formats text from a message as inline code, so that Markdown does not interpret it.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}
