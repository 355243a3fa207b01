//! What is misspelt is read on as what was meant: a finding that asks "did you mean", about a key or about a whole text, says
//! what to read there instead. Then nothing follows from the slip, and what is wrong behind it is found as well.
//!
//! Nothing is ever served that was read so: the finding stands.

use crate::diagnostic::{Code, Finding, Findings, Severity, Span, suggest};
use crate::yaml::{Kind, Node};
use std::collections::BTreeMap;

/// How often a pack is read anew: behind a slip there may be another one.
pub(super) const PASSES_MAX: usize = 3;

/// Texts to be read in place of others.
#[derive(Debug, Default)]
pub(super) struct Corrections {
    meant: BTreeMap<Span, Meant>,
}

#[derive(Clone, Debug)]
struct Meant {
    text: String,
    /// Whether it is an operation: of another method it would be another one.
    is_operation: bool,
}

impl Meant {
    /// Whether it may stand for what is written: that is nearly it, rather than a part of it.
    fn is_for(&self, written: &str) -> bool {
        let method = |text: &str| text.split(' ').next().map(str::to_owned);
        suggest(written, [self.text.as_str()]).is_some()
            && (!self.is_operation || method(written) == method(&self.text))
    }
}

impl Corrections {
    /// Takes over what findings say was meant; whether any of it is new.
    pub(super) fn learn(&mut self, findings: &Findings) -> bool {
        let before = self.meant.len();
        for finding in findings.sorted() {
            if let Some(meant) = meant(finding) {
                let is_operation = finding.code == Code::UnknownOperation;
                let meant = Meant { text: meant.to_owned(), is_operation };
                self.meant.entry(finding.span).or_insert(meant);
            }
        }
        self.meant.len() > before
    }

    /// Whether nothing is to be read as anything else.
    pub(super) fn is_empty(&self) -> bool {
        self.meant.is_empty()
    }

    /// Puts in what was meant; returns the places where that was done.
    pub(super) fn put_in(&self, node: &mut Node) -> Vec<Span> {
        let mut done = Vec::new();
        if !self.is_empty() {
            self.walk(node, &mut done);
        }
        done
    }

    fn walk(&self, node: &mut Node, done: &mut Vec<Span>) {
        match &mut node.kind {
            Kind::Map(entries) => {
                for at in 0..entries.len() {
                    let key = &entries[at].0;
                    if let Some(meant) = self.meant.get(&key.span).filter(|meant| meant.is_for(&key.name))
                        && entries.iter().all(|(key, _)| key.name != meant.text)
                    {
                        done.push(key.span);
                        entries[at].0.name.clone_from(&meant.text);
                    }
                    self.walk(&mut entries[at].1, done);
                }
            }
            Kind::Seq(items) => items.iter_mut().for_each(|item| self.walk(item, done)),
            Kind::String(text, _) => {
                // A place within a text is the writer's: what is suggested for the whole text does not have it.
                let fits =
                    |meant: &&Meant| meant.is_for(text) && (!text.contains('$') || meant.text.contains('$'));
                if let Some(meant) = self.meant.get(&node.span).filter(fits) {
                    text.clone_from(&meant.text);
                    done.push(node.span);
                }
            }
            _ => {}
        }
    }
}

/// What a finding says was meant in its place.
pub(super) fn meant(finding: &Finding) -> Option<&str> {
    // With another contract all would be different.
    if finding.severity != Severity::Error || finding.code == Code::NoContract {
        return None;
    }
    let help = finding.help.as_deref()?;
    let meant = help.strip_prefix("did you mean `")?.strip_suffix("`?")?;
    (!meant.contains('`')).then_some(meant)
}
