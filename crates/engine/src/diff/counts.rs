//! Counts of the comparisons of one operation.

use super::finding::{Excused, Finding, FindingKind, Verdict};
use super::skip::{NotReadBack, SkipReason};
use crate::evidence::{Counted, LatencyProof, Observed};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Comparisons by outcome. A comparison by sample without findings proves no equality, so it is
/// counted separately in `equal_so_far`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Full comparisons without findings.
    pub equal: u64,
    /// Comparisons with at least one difference.
    pub different: u64,
    /// Comparisons with at least one difference that did not repeat and that no change of the
    /// reference explains. Either an answer was wrong, or the data changed in between.
    #[serde(default)]
    pub unsettled: u64,
    /// Comparisons by sample without findings.
    pub equal_so_far: u64,
    /// Calls that were selected for comparison but not compared, for any reason except a missing
    /// answer.
    pub dropped: u64,
    /// `dropped`, by reason.
    #[serde(default)]
    pub skipped: BTreeMap<SkipReason, u64>,
    /// Calls that the reference did not answer. They are no evidence about the candidate.
    #[serde(default)]
    pub reference_unanswered: u64,
    /// Calls that the candidate did not answer, or not in time. They are no evidence about the
    /// mapping.
    #[serde(default)]
    pub candidate_unanswered: u64,
    /// Calls with at least one finding of a kind.
    pub by_kind: BTreeMap<FindingKind, u64>,
    /// Calls with a difference that the pack's report lists as lost.
    pub expected: u64,
    /// Calls with a difference that the pack declares as noise.
    pub declared_noise: u64,
    /// Calls with a difference that also occurs between two readings of one side.
    pub learnt_noise: u64,
    /// Writes with upstream calls that were planned without sending them, both correct and wrong plans.
    /// Not part of the comparisons above: a correct plan does not prove how the candidate would
    /// have answered.
    #[serde(default)]
    pub planned: u64,
    /// Planned writes that violate the contract of the other side or result in no call.
    #[serde(default)]
    pub planned_wrong: u64,
    /// Writes whose effect was read on both sides. Not part of the comparisons above: an equal
    /// effect does not prove that both sides would have produced it.
    #[serde(default)]
    pub read_back: u64,
    /// Writes of `read_back` whose effect differs.
    #[serde(default)]
    pub read_back_different: u64,
    /// Writes that succeeded and whose effect was not read back, by reason.
    #[serde(default)]
    pub not_read_back: BTreeMap<NotReadBack, u64>,
    /// Events that only the reference sent. Not part of the comparisons above, because there is no
    /// counterpart.
    #[serde(default)]
    pub events_missing: u64,
    /// Events that only the candidate sent.
    #[serde(default)]
    pub events_extra: u64,
}

impl Counts {
    /// Returns the number of comparisons that count as evidence.
    pub fn compared_count(&self) -> u64 {
        self.equal + self.different + self.unsettled
    }

    /// Counts a call that was selected for comparison but not compared.
    pub fn skip(&mut self, why: SkipReason) {
        match why {
            // Missing answers are counted by side instead of by reason.
            SkipReason::ReferenceFailed => self.reference_unanswered += 1,
            SkipReason::CandidateFailed => self.candidate_unanswered += 1,
            _ => {
                self.dropped += 1;
                *self.skipped.entry(why).or_default() += 1;
            }
        }
    }

    /// Counts a comparison with a difference that did not repeat.
    pub fn add_unsettled(&mut self, findings: &[Finding], excused: Excused) {
        self.unsettled += 1;
        self.add_kinds(findings);
        self.add_excused(excused);
    }

    /// Returns the number of events that only one side sent.
    pub fn unpaired_count(&self) -> u64 {
        self.events_missing + self.events_extra
    }

    /// Counts an event that only one side sent.
    pub fn add_unpaired(&mut self, is_missing: bool, findings: &[Finding]) {
        self.events_missing += u64::from(is_missing);
        self.events_extra += u64::from(!is_missing);
        self.add_kinds(findings);
    }

    /// Returns the evidence for the gate. The latency is left at its default.
    pub fn evidence(&self) -> Counted {
        let of = |different, compared| Observed { different, compared };
        Counted {
            // A receiver notices a missing event as much as one with different content.
            answers: of(
                self.different + self.unpaired_count(),
                self.compared_count() + self.unpaired_count(),
            ),
            unsettled: self.unsettled,
            latency: LatencyProof::default(),
            plans: of(self.planned_wrong, self.planned),
            effects: of(self.read_back_different, self.read_back),
            unexamined: self.unexamined_count(),
        }
    }

    /// Returns the number of successful writes whose effect was not read back.
    pub fn unexamined_count(&self) -> u64 {
        self.not_read_back.values().sum()
    }

    /// Counts a comparison.
    pub fn add(&mut self, verdict: Verdict, findings: &[Finding], excused: Excused) {
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Different => self.different += 1,
            Verdict::EqualSoFar => self.equal_so_far += 1,
        }
        self.add_kinds(findings);
        self.add_excused(excused);
    }

    fn add_excused(&mut self, excused: Excused) {
        self.expected += u64::from(excused.expected > 0);
        self.declared_noise += u64::from(excused.declared > 0);
        self.learnt_noise += u64::from(excused.learnt > 0);
    }

    /// Counts the plan of a write.
    pub fn add_planned(&mut self, findings: &[Finding]) {
        self.planned += 1;
        self.planned_wrong += u64::from(!findings.is_empty());
        self.add_kinds(findings);
    }

    /// Counts the comparison of a write's effect.
    pub fn add_read_back(&mut self, verdict: Verdict, findings: &[Finding]) {
        self.read_back += 1;
        self.read_back_different += u64::from(verdict == Verdict::Different);
        self.add_kinds(findings);
    }

    fn add_kinds(&mut self, findings: &[Finding]) {
        let kinds: BTreeSet<FindingKind> = findings.iter().map(|finding| finding.kind).collect();
        for kind in kinds {
            *self.by_kind.entry(kind).or_default() += 1;
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Counts) {
        self.equal += other.equal;
        self.different += other.different;
        self.unsettled += other.unsettled;
        self.equal_so_far += other.equal_so_far;
        self.dropped += other.dropped;
        for (why, calls) in &other.skipped {
            *self.skipped.entry(*why).or_default() += calls;
        }
        self.reference_unanswered += other.reference_unanswered;
        self.candidate_unanswered += other.candidate_unanswered;
        for (kind, calls) in &other.by_kind {
            *self.by_kind.entry(*kind).or_default() += calls;
        }
        self.expected += other.expected;
        self.declared_noise += other.declared_noise;
        self.learnt_noise += other.learnt_noise;
        self.planned += other.planned;
        self.planned_wrong += other.planned_wrong;
        self.read_back += other.read_back;
        for (why, writes) in &other.not_read_back {
            *self.not_read_back.entry(*why).or_default() += writes;
        }
        self.read_back_different += other.read_back_different;
        self.events_missing += other.events_missing;
        self.events_extra += other.events_extra;
    }
}
