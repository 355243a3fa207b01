//! Findings about a document that somebody else wrote: one for each construct, with how often it occurs and where first. A
//! document says the same thing in a thousand places, and a thousand findings say less than one.

use crate::diagnostic::{Finding, Findings, Group, Severity, Span};
use std::collections::{HashMap, HashSet};

/// Places of a group that are told.
const PLACES_TOLD: usize = 3;
/// Kinds of findings of one document that are told; the rest is one line.
const KINDS_MAX: usize = 36;

/// Findings of one document, in the order in which their constructs were first met.
#[derive(Default)]
pub(super) struct Grouped {
    kinds: Vec<(Finding, Group)>,
    by_key: HashMap<String, usize>,
    /// A place is counted once, however often it is read.
    seen: HashSet<(usize, Span)>,
}

impl Grouped {
    /// One more place of the construct `key`. The finding is only made for the first.
    pub(super) fn add(&mut self, key: &str, span: Span, finding: impl FnOnce() -> Finding) {
        let at = match self.by_key.get(key) {
            Some(at) => *at,
            None => {
                self.by_key.insert(key.to_owned(), self.kinds.len());
                self.kinds.push((finding(), Group { count: 0, first: Vec::new() }));
                self.kinds.len() - 1
            }
        };
        if !self.seen.insert((at, span)) {
            return;
        }
        let group = &mut self.kinds[at].1;
        group.count += 1;
        if group.first.len() < PLACES_TOLD {
            group.first.push(span);
        }
    }

    /// Moves everything to the findings of the run, worst first where there are too many.
    pub(super) fn finish(mut self, document: Span, findings: &mut Findings) {
        self.kinds.sort_by_key(|(finding, _)| finding.severity);
        let more = self.kinds.len().saturating_sub(KINDS_MAX);
        for (finding, group) in self.kinds.drain(..).take(KINDS_MAX) {
            let group = (group.count > 1 || finding.severity != Severity::Error).then_some(group);
            findings.push(Finding { group, ..finding });
        }
        if more > 0 {
            // It has a group, so that it takes one line as the others do.
            let group = Some(Group { count: 1, first: vec![document] });
            findings.push(Finding { group, ..super::faults::more_findings(document, more) });
        }
    }
}
