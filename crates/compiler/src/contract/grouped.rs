//! Grouped findings about a document: one per construct, with the number of its occurrences and its
//! first places. A document repeats a construct in thousands of places, and a finding for each
//! would be unreadable.

use crate::diagnostic::{Finding, Findings, GroupedPlaces, Severity, Span};
use std::collections::{HashMap, HashSet};

/// Maximum number of places to report per group.
const PLACES_TOLD: usize = 3;
/// Maximum number of constructs to report per document. One line summarizes the others.
const KINDS_MAX: usize = 36;

/// Findings of one document, in the order of their first occurrence.
#[derive(Default)]
pub(super) struct Grouped {
    kinds: Vec<(Finding, GroupedPlaces)>,
    by_key: HashMap<String, usize>,
    /// Counts a place once, even if it is visited repeatedly.
    seen: HashSet<(usize, Span)>,
}

impl Grouped {
    /// Counts one place of the construct `key`. `finding` is called only for the first.
    pub(super) fn add(&mut self, key: &str, span: Span, finding: impl FnOnce() -> Finding) {
        let at = match self.by_key.get(key) {
            Some(at) => *at,
            None => {
                self.by_key.insert(key.to_owned(), self.kinds.len());
                self.kinds.push((finding(), GroupedPlaces { count: 0, first: Vec::new() }));
                self.kinds.len() - 1
            }
        };
        // A schema may be visited several times.
        if !self.seen.insert((at, span)) {
            return;
        }
        let group = &mut self.kinds[at].1;
        group.count += 1;
        if group.first.len() < PLACES_TOLD {
            group.first.push(span);
        }
    }

    /// Adds the findings to those of the run, most severe first, up to [`KINDS_MAX`].
    pub(super) fn finish(mut self, document: Span, findings: &mut Findings) {
        // The sort is stable, so findings of equal severity keep their order.
        self.kinds.sort_by_key(|(finding, _)| finding.severity);
        let more = self.kinds.len().saturating_sub(KINDS_MAX);
        for (finding, group) in self.kinds.drain(..).take(KINDS_MAX) {
            // An error with a single place has no group, and is rendered with an excerpt.
            let group = (group.count > 1 || finding.severity != Severity::Error).then_some(group);
            findings.push(Finding { group, ..finding });
        }
        if more > 0 {
            // With a group, the renderer uses the one-line format.
            let group = Some(GroupedPlaces { count: 1, first: vec![document] });
            findings.push(Finding { group, ..super::faults::more_findings(document, more) });
        }
    }
}
