//! Reads misspelled texts as their probable correction, so that one pass reports further mistakes
//! behind a slip and no consequences of it. Corrections are the suggestions of findings about a key
//! or a text value.
//!
//! The findings remain errors, so a corrected pack is never served.

use crate::diagnostic::{Code, Finding, Findings, Help, Severity, Sources, Span, Suggestion, suggest};
use crate::yaml::{Kind, Node};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of corrected passes. A correction may reveal another slip.
pub(super) const PASSES_MAX: usize = 3;

/// Replacement texts, by span.
#[derive(Debug, Default)]
pub(super) struct Corrections {
    meant: BTreeMap<Span, Meant>,
}

#[derive(Clone, Debug)]
struct Meant {
    text: String,
    /// Whether the text is an operation key. The method must then match.
    is_operation: bool,
}

impl Meant {
    /// Returns whether the correction may replace `written`: the texts are similar, and operations
    /// have the same method.
    fn is_for(&self, written: &str) -> bool {
        let method = |text: &str| text.split(' ').next().map(str::to_owned);
        suggest(written, [self.text.as_str()]).is_some()
            && (!self.is_operation || method(written) == method(&self.text))
    }
}

impl Corrections {
    /// Learns the corrections that findings suggest, and returns whether any of them is new.
    pub(super) fn learn(&mut self, findings: &Findings) -> bool {
        let before = self.meant.len();
        for finding in findings.in_order() {
            if let Some(Suggestion { span, replacement, .. }) = suggestion_of(finding) {
                let is_operation = finding.code == Code::UnknownOperation;
                let meant = Meant { text: replacement.clone(), is_operation };
                // All uses of an unknown fragment are one finding.
                let uses = finding.uses().filter(|_| finding.code == Code::UnknownFragment);
                self.meant.extend(uses.map(|span| (span, meant.clone())));
                // The first suggestion wins. Later passes see the corrected text, so their
                // suggestions for this span refer to it.
                self.meant.entry(*span).or_insert(meant);
            }
        }
        self.meant.len() > before
    }

    /// Returns whether there are no corrections.
    pub(super) fn is_empty(&self) -> bool {
        self.meant.is_empty()
    }

    /// Applies the corrections to a tree and returns the corrected spans.
    pub(super) fn put_in(&self, node: &mut Node, sources: &Sources) -> Vec<Span> {
        let mut done = Vec::new();
        // The contents of other files stay shared with the cached trees.
        let file = sources.written(node.span).file;
        if self.meant.keys().any(|span| span.file == file) {
            self.walk(node, sources, &mut done);
        }
        done
    }

    fn walk(&self, node: &mut Node, sources: &Sources, done: &mut Vec<Span>) {
        match &mut node.kind {
            Kind::Map(entries) => {
                let entries = Arc::make_mut(entries);
                for at in 0..entries.len() {
                    let key = &entries[at].0;
                    let span = sources.written(key.span);
                    // Never create a duplicate key: the reader would report it as a second mistake.
                    if let Some(meant) = self.meant.get(&span).filter(|meant| meant.is_for(&key.name))
                        && entries.iter().all(|(key, _)| key.name != meant.text)
                    {
                        done.push(span);
                        entries[at].0.name.clone_from(&meant.text);
                    }
                    self.walk(&mut entries[at].1, sources, done);
                }
            }
            Kind::Seq(items) => {
                Arc::make_mut(items).iter_mut().for_each(|item| self.walk(item, sources, done))
            }
            Kind::String(text, _) => {
                // The suggestion for an entire text would discard an embedded place.
                let fits =
                    |meant: &&Meant| meant.is_for(text) && (!text.contains('$') || meant.text.contains('$'));
                let span = sources.written(node.span);
                if let Some(meant) = self.meant.get(&span).filter(fits) {
                    text.clone_from(&meant.text);
                    done.push(span);
                }
            }
            _ => {}
        }
    }
}

/// Returns the suggestion of a finding, if compilation can go on with it.
pub(super) fn suggestion_of(finding: &Finding) -> Option<&Suggestion> {
    match &finding.help {
        // A different contract would change every other finding.
        Some(Help::Suggestion(suggestion))
            if finding.severity == Severity::Error && finding.code != Code::NoContract =>
        {
            Some(suggestion)
        }
        _ => None,
    }
}
