//! The names in mapping files with their meanings, for editors. The checks that resolve a name
//! record it, so an editor shows what the compiler understood and not a second interpretation.

use crate::diagnostic::{Sources, Span};
use std::cell::RefCell;

/// A name at a place of a mapping file, and its declaration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResolvedName {
    /// Place of the name.
    pub span: Span,
    /// Kind of the name.
    pub kind: ResolvedKind,
    /// Place of the declaration, in a mapping file, the manifest or a contract.
    pub declared: Span,
    /// Description for people, in Markdown.
    pub about: String,
}

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResolvedKind {
    /// A shape, where it is declared or used.
    Shape,
    /// A type of a contract.
    Type,
    /// An operation of a contract.
    Operation,
    /// A reason.
    Reason,
    /// A setting.
    Setting,
    /// A field of a contract, or a member that the mapping makes.
    Field,
}

/// Collects references. Most compilations do not need them.
#[derive(Debug, Default)]
pub(crate) struct NameLog(Option<RefCell<Vec<ResolvedName>>>);

impl NameLog {
    /// Creates a log that collects references if `is_on`.
    pub(crate) fn new(is_on: bool) -> NameLog {
        NameLog(is_on.then(RefCell::default))
    }

    /// Adds a reference. `about` is only called if the log is on.
    pub(crate) fn add(&self, span: Span, kind: ResolvedKind, declared: Span, about: impl FnOnce() -> String) {
        if let Some(all) = &self.0 {
            all.borrow_mut().push(ResolvedName { span, kind, declared, about: about() });
        }
    }

    /// Returns the references in the order of the text, each once. A name in a block with several
    /// uses may have several meanings.
    pub(crate) fn into_sorted(self, sources: &Sources) -> Vec<ResolvedName> {
        let mut all = self.0.map(RefCell::into_inner).unwrap_or_default();
        for one in &mut all {
            (one.span, one.declared) = (sources.written(one.span), sources.written(one.declared));
        }
        all.sort();
        all.dedup();
        all
    }
}
