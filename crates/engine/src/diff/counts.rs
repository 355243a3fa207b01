//! Counts of comparisons of one operation.

use super::finding::{Excused, Finding, FindingKind, Verdict};
use super::skip::{NotReadBack, SkipReason};
use crate::evidence::{Counted, LatencyProof, Observed};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How comparisons came out. Only those that looked at everything, or found something, say anything about equality: a
/// comparison by sample that found nothing is counted apart and proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Compared whole, nothing found.
    pub equal: u64,
    /// Compared, and at least one difference found.
    pub different: u64,
    /// Compared, and at least one difference found that did not repeat, and that no change of the reference explains. Either
    /// answer may have been wrong, or somebody wrote in between.
    #[serde(default)]
    pub unsettled: u64,
    /// Compared by sample, nothing found.
    pub equal_so_far: u64,
    /// Calls that were to be compared and were not, for any reason but a missing answer.
    pub dropped: u64,
    /// The same by reason.
    #[serde(default)]
    pub skipped: BTreeMap<SkipReason, u64>,
    /// Calls to which the side that clients know gave no answer. They prove nothing of the other one.
    #[serde(default)]
    pub reference_unanswered: u64,
    /// Calls to which the other side gave no answer, or none in time. They prove nothing of the mapping.
    #[serde(default)]
    pub candidate_unanswered: u64,
    /// Calls with findings of each kind, by its word.
    pub by_kind: BTreeMap<FindingKind, u64>,
    /// Calls with a difference that the pack's report lists as lost.
    pub expected: u64,
    /// Calls with a difference that the pack declares as noise.
    pub declared_noise: u64,
    /// Calls with a difference that one side shows by itself when it is asked twice.
    pub learnt_noise: u64,
    /// Writes whose calls were planned as far as they can be known without making them, right and wrong ones together. They are
    /// not among the comparisons above: a right plan does not prove what the other side would have answered.
    #[serde(default)]
    pub planned: u64,
    /// Of these, those that are against the contract of the other side, or lead to no call at all.
    #[serde(default)]
    pub planned_wrong: u64,
    /// Writes whose effect was read on both sides. They are not among the comparisons above: that an effect is seen alike does
    /// not prove that both sides would have made it.
    #[serde(default)]
    pub read_back: u64,
    /// Of these, those whose effect was not seen alike.
    #[serde(default)]
    pub read_back_different: u64,
    /// Writes that were done and whose effect was not read back, by reason.
    #[serde(default)]
    pub not_read_back: BTreeMap<NotReadBack, u64>,
    /// Events that the side that clients know sent, and the other one did not. They are not among the comparisons above: there
    /// is nothing to compare with.
    #[serde(default)]
    pub events_missing: u64,
    /// Events that only the other side sent.
    #[serde(default)]
    pub events_extra: u64,
}

impl Counts {
    /// Comparisons that prove something.
    pub fn compared(&self) -> u64 {
        self.equal + self.different + self.unsettled
    }

    /// Takes in a call that was to be compared and was not.
    pub fn skip(&mut self, why: SkipReason) {
        match why {
            SkipReason::ReferenceFailed => self.reference_unanswered += 1,
            SkipReason::CandidateFailed => self.candidate_unanswered += 1,
            _ => {
                self.dropped += 1;
                *self.skipped.entry(why).or_default() += 1;
            }
        }
    }

    /// Takes in a difference that did not repeat.
    pub fn add_unsettled(&mut self, findings: &[Finding], excused: Excused) {
        self.unsettled += 1;
        self.add_kinds(findings);
        self.add_excused(excused);
    }

    /// Events that only one side sent.
    pub fn unpaired(&self) -> u64 {
        self.events_missing + self.events_extra
    }

    /// Takes in an event that only one side sent.
    pub fn add_unpaired(&mut self, is_missing: bool, findings: &[Finding]) {
        self.events_missing += u64::from(is_missing);
        self.events_extra += u64::from(!is_missing);
        self.add_kinds(findings);
    }

    /// What the gate goes by.
    pub fn counted(&self) -> Counted {
        let of = |different, compared| Observed { different, compared };
        Counted {
            // To receivers, an event that one side alone sends is as different as one that says something else.
            answers: of(self.different + self.unpaired(), self.compared() + self.unpaired()),
            unsettled: self.unsettled,
            latency: LatencyProof::default(),
            plans: of(self.planned_wrong, self.planned),
            effects: of(self.read_back_different, self.read_back),
            unexamined: self.unexamined(),
        }
    }

    /// Writes that were done and whose effect was not read back.
    pub fn unexamined(&self) -> u64 {
        self.not_read_back.values().sum()
    }

    /// Takes in a comparison.
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

    /// Takes in the plan of a write.
    pub fn add_planned(&mut self, findings: &[Finding]) {
        self.planned += 1;
        self.planned_wrong += u64::from(!findings.is_empty());
        self.add_kinds(findings);
    }

    /// Takes in how the effect of a write looked when it was read back.
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

    /// Takes in what was counted elsewhere.
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
