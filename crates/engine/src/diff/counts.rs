//! Counts of comparisons of one operation.

use super::finding::{Excused, Finding, FindingKind, Verdict};
use crate::evidence::Observed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How comparisons came out. Only those that looked at everything, or found something, say anything about equality: a
/// comparison by sample that found nothing is counted apart and proves nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub equal: u64,
    pub different: u64,
    /// Compared by sample, nothing found.
    pub equal_so_far: u64,
    /// Calls that were to be compared and were not: the queue was full, the budget spent.
    pub dropped: u64,
    /// Calls with findings of each kind, by its word.
    pub by_kind: BTreeMap<FindingKind, u64>,
    pub expected: u64,
    pub declared_noise: u64,
    pub learnt_noise: u64,
    /// Writes whose effect was read on both sides. They are not among the comparisons above: that an effect is seen alike does
    /// not prove that both sides would have made it.
    #[serde(default)]
    pub read_back: u64,
    /// Of these, those whose effect was not seen alike.
    #[serde(default)]
    pub read_back_different: u64,
}

impl Counts {
    /// Comparisons that prove something.
    pub fn compared(&self) -> u64 {
        self.equal + self.different
    }

    /// What bounds and the gate go by.
    pub fn observed(&self) -> Observed {
        Observed { different: self.different, compared: self.compared() }
    }

    /// Takes in a comparison.
    pub fn add(&mut self, verdict: Verdict, findings: &[Finding], excused: Excused) {
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Different => self.different += 1,
            Verdict::EqualSoFar => self.equal_so_far += 1,
        }
        self.add_kinds(findings);
        self.expected += u64::from(excused.expected > 0);
        self.declared_noise += u64::from(excused.declared > 0);
        self.learnt_noise += u64::from(excused.learnt > 0);
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
        self.equal_so_far += other.equal_so_far;
        self.dropped += other.dropped;
        for (kind, calls) in &other.by_kind {
            *self.by_kind.entry(*kind).or_default() += calls;
        }
        self.expected += other.expected;
        self.declared_noise += other.declared_noise;
        self.learnt_noise += other.learnt_noise;
        self.read_back += other.read_back;
        self.read_back_different += other.read_back_different;
    }
}
