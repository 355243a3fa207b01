//! One finding, and the collection of all findings of a run.

use super::{Code, Span};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is built while it stands.
    Error,
    /// It is built, and probably not what was meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The word that renderings use.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// One thing found in a source text, with its place and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop. Names from the text stand in backticks.
    pub message: String,
    /// Where.
    pub span: Span,
    /// A few words shown beside the underlined place.
    pub label: Option<String>,
    /// What to do.
    pub help: Option<String>,
    /// Other places that belong to it, each with a few words.
    pub related: Vec<(Span, String)>,
    /// There when one finding stands for the same thing in several places.
    pub group: Option<Group>,
    /// What it is about, as far as its code does not say so.
    pub(crate) aspect: Aspect,
    /// The name that it is about, where nothing declares or nothing uses it.
    pub(crate) name: Option<Named>,
}

/// A name that is declared in one place and used in others, and what it is the name of: a name of another kind is another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub kind: NameKind,
    pub name: String,
}

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Archive,
    Outcome,
    Reason,
    Setting,
    Shape,
    /// A member of the context of a route: what a step makes, or an element of a list.
    Result,
}

/// What findings of one code are told apart by, where others follow from some of them only, or they from others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Aspect {
    #[default]
    Plain,
    /// A name is used that nothing declares.
    Undeclared,
    /// A judgement on a whole block, which another line of it could change.
    Whole,
    /// No more is wrong with an operation than its method: its contract has the path.
    Method,
    /// A name that nothing uses, joined with one near to it that nothing declares.
    Joined,
}

/// The places of a finding that stands for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// How many places there are.
    pub count: usize,
    /// The first few of them.
    pub first: Vec<Span>,
}

impl Finding {
    /// A finding that keeps anything from being built.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Error, code, span, message.into())
    }

    /// A finding that only says what is probably not meant.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Warning, code, span, message.into())
    }

    /// A finding that is only worth knowing.
    pub fn note(code: Code, span: Span, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, code, span, message.into())
    }

    fn new(severity: Severity, code: Code, span: Span, message: String) -> Finding {
        Finding {
            code,
            severity,
            message,
            span,
            label: None,
            help: None,
            related: Vec::new(),
            group: None,
            aspect: Aspect::Plain,
            name: None,
        }
    }

    /// Adds the words beside the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Finding {
        self.label = Some(label.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Finding {
        self.maybe_help(Some(help.into()))
    }

    /// Adds what to do, where something is known.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Finding {
        self.help = help;
        self
    }

    /// Says that a name is used which nothing declares.
    #[must_use]
    pub(crate) fn undeclared(self, kind: NameKind, name: &str) -> Finding {
        Finding { aspect: Aspect::Undeclared, ..self.unused(kind, name) }
    }

    /// Says that a name is declared which nothing uses.
    #[must_use]
    pub(crate) fn unused(self, kind: NameKind, name: &str) -> Finding {
        Finding { name: Some(Named { kind, name: name.to_owned() }), ..self }
    }

    /// Says that no more is wrong with an operation than its method, where that is so.
    #[must_use]
    pub(crate) fn of_method(self, is_it: bool) -> Finding {
        if is_it { Finding { aspect: Aspect::Method, ..self } } else { self }
    }

    /// Says that another line of the block could change it.
    #[must_use]
    pub(crate) fn of_whole(self) -> Finding {
        Finding { aspect: Aspect::Whole, ..self }
    }

    /// Adds another place that belongs to it.
    #[must_use]
    pub fn related(mut self, span: Span, words: impl Into<String>) -> Finding {
        self.related.push((span, words.into()));
        self
    }
}

/// All findings of a run. Readers push and go on, so that one run shows every mistake.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    all: Vec<Finding>,
}

impl Findings {
    /// None yet.
    pub fn new() -> Findings {
        Findings::default()
    }

    /// Adds one.
    pub fn push(&mut self, finding: Finding) {
        self.all.push(finding);
    }

    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.all.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// How many there are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.all.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether there are none at all.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many there are; with [`Findings::errors_since`], a mark to return to.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether an error was added after [`Findings::len`] was `mark`.
    pub fn errors_since(&self, mark: usize) -> bool {
        self.all.iter().skip(mark).any(|finding| finding.severity == Severity::Error)
    }

    /// Forgets all findings after [`Findings::len`] was `mark`.
    pub fn truncate(&mut self, mark: usize) {
        self.all.truncate(mark);
    }

    /// Takes over the findings of another collection.
    pub fn append(&mut self, other: Findings) {
        self.all.extend(other.all);
    }

    /// Changes each of them, for front ends whose texts hold what must not be repeated.
    pub fn for_each(&mut self, change: impl FnMut(&mut Finding)) {
        self.all.iter_mut().for_each(change);
    }

    /// Keeps those for which this is so.
    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.all.retain(keep);
    }

    /// Whether something is found within this place already.
    pub fn any_within(&self, place: Span) -> bool {
        let is_within =
            |span: Span| span.file == place.file && span.start >= place.start && span.end <= place.end;
        self.all.iter().any(|finding| is_within(finding.span))
    }

    /// All of them by file, position and number: the same for the same text, whatever the order of the
    /// checks that found them. Findings that are equal in all parts are one.
    pub fn sorted(&self) -> Vec<&Finding> {
        let mut sorted: Vec<&Finding> = self.all.iter().collect();
        sorted.sort_by(|a, b| key(a).cmp(&key(b)));
        sorted.dedup();
        sorted
    }
}

fn key(finding: &Finding) -> (Span, Code, Severity, &str) {
    (finding.span, finding.code, finding.severity, &finding.message)
}

impl Extend<Finding> for Findings {
    fn extend<T: IntoIterator<Item = Finding>>(&mut self, findings: T) {
        self.all.extend(findings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Sources;

    #[test]
    fn findings_come_in_the_order_of_the_text_and_equal_ones_once() {
        let mut sources = Sources::new();
        let (a, b) = (sources.add("a", "x"), sources.add("b", "y"));
        let mut findings = Findings::new();
        findings.push(Finding::error(Code::UnknownKey, Span::new(b, 0, 1), "third"));
        findings.push(Finding::warning(Code::UnknownKey, Span::new(a, 3, 4), "second"));
        findings.push(Finding::note(Code::DuplicateKey, Span::new(a, 1, 2), "first"));
        findings.push(Finding::note(Code::DuplicateKey, Span::new(a, 1, 2), "first"));
        let messages: Vec<_> = findings.sorted().into_iter().map(|f| f.message.as_str()).collect();
        assert_eq!(messages, ["first", "second", "third"]);
        assert!(findings.has_errors());
        assert_eq!(findings.count(Severity::Warning), 1);
    }
}
