//! Findings, and the collection of all findings of a run.

use super::suggest::nearest;
use super::{Code, FileId, Sources, Span};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The words of a related place that uses the text of a finding.
const USED: &str = "used here";

/// Maximum number of findings of one kind in a file. Findings beyond it have one line together.
const PER_KIND_MAX: usize = 100;

/// Number of places of that line that are listed.
const FURTHER_LISTED: usize = 3;

/// Maximum number of related places of a finding in a text with several uses.
const USES_SHOWN: usize = 4;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Prevents the build.
    Error,
    /// Does not prevent the build, but is probably a mistake.
    Warning,
    /// Information.
    Note,
}

impl Severity {
    /// Returns the word for renderings.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A word that an editor writes in place of an unfinished name. A finding about it lists all names
/// that are possible in its place, so that the rules of every kind of name serve completion as well.
pub const UNFINISHED: &str = "unfinished0name0";

/// A finding in a source text, with its place and a suggestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub code: Code,
    /// Severity.
    pub severity: Severity,
    /// The problem, in one sentence without a full stop. Names from the text are in backticks.
    pub message: String,
    /// Place.
    pub span: Span,
    /// A short label for the underlined place.
    pub label: Option<String>,
    /// Advice for a correction.
    pub help: Option<Help>,
    /// Related places, each with a short description.
    pub related: Vec<(Span, String)>,
    /// Set if the finding represents several places with the same problem.
    pub group: Option<GroupedPlaces>,
    /// The names that are possible in place of an [`UNFINISHED`] one; empty for any other name.
    pub candidates: Vec<String>,
    /// The subject, if the code does not determine it.
    pub(crate) aspect: Aspect,
    /// The name that is undeclared or unused.
    pub(crate) name: Option<NamedUses>,
}

/// Advice for a correction of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Help {
    /// A sentence for people.
    Text(String),
    /// A replacement that a program can apply too.
    Suggestion(Suggestion),
}

/// The probable meaning of a misspelt key or value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The place of the key or value.
    pub span: Span,
    /// The text of the key or value that the author probably intended.
    pub replacement: String,
    /// Whether no other text is as near to what is written.
    pub is_sure: bool,
}

impl Help {
    /// Returns the sentence, or the replacement of a suggestion.
    pub(crate) fn text(&self) -> &str {
        match self {
            Help::Text(text) => text,
            Help::Suggestion(suggestion) => &suggestion.replacement,
        }
    }

    /// Returns [`Help::text`] for changes, such as to remove confidential text from it.
    pub fn text_mut(&mut self) -> &mut String {
        match self {
            Help::Text(text) => text,
            Help::Suggestion(suggestion) => &mut suggestion.replacement,
        }
    }
}

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Help::Text(text) => f.write_str(text),
            Help::Suggestion(suggestion) => write!(f, "did you mean `{}`?", suggestion.replacement),
        }
    }
}

/// A name with its kind. Names of different kinds are unrelated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedUses {
    pub kind: NameKind,
    pub name: String,
}

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Archive,
    Fragment,
    Outcome,
    Reason,
    Setting,
    Shape,
    /// A member of a route's context: the result of a step, or an element of a list.
    Result,
}

/// The subject of a finding, for codes of which only some findings cause, or result from, others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Aspect {
    #[default]
    Plain,
    /// A name is used but not declared.
    Undeclared,
    /// A problem of a complete block, which a change of another line may fix.
    Whole,
    /// Only the method of an operation is unknown: its contract has the path.
    Method,
    /// A name is unused, and a similar name is undeclared.
    Joined,
    /// Represents the findings of its kind beyond the maximum of a file.
    Further,
}

/// The places of a finding that represents several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupedPlaces {
    /// Number of places.
    pub count: usize,
    /// The first few places.
    pub first: Vec<Span>,
}

impl Finding {
    /// Returns a finding that prevents the build.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Error, code, span, message.into())
    }

    /// Returns a finding about a probable mistake.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Warning, code, span, message.into())
    }

    /// Returns an informational finding.
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
            candidates: Vec::new(),
            aspect: Aspect::Plain,
            name: None,
        }
    }

    /// Sets the label of the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Finding {
        self.label = Some(label.into());
        self
    }

    /// Sets the advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Finding {
        self.maybe_help(Some(help.into()))
    }

    /// Sets the advice, if there is any.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Finding {
        // Without a new help, an earlier one remains.
        self.help = help.map(Help::Text).or(self.help);
        self
    }

    /// Replaces the advice by the candidate nearest to `word`, if there is one. `word` is the text
    /// at the place of the finding.
    #[must_use]
    pub fn did_you_mean<'c, I, S>(mut self, word: &str, candidates: I) -> Finding
    where
        I: IntoIterator<Item = &'c S>,
        S: AsRef<str> + ?Sized + 'c,
    {
        if word.contains(UNFINISHED) {
            self.candidates = candidates.into_iter().map(|name| name.as_ref().to_owned()).collect();
            return self;
        }
        match nearest(word, candidates) {
            Some((near, is_sure)) => self.suggest_maybe(near, is_sure),
            None => self,
        }
    }

    /// Like [`Finding::did_you_mean`] for names that are declared at places: the place of the nearest one
    /// becomes a related place.
    #[must_use]
    pub(crate) fn did_you_mean_declared(self, word: &str, declared: &[(&str, Span)]) -> Finding {
        let names = || declared.iter().map(|(name, _)| *name);
        let near =
            nearest(word, names()).and_then(|(near, _)| declared.iter().find(|(name, _)| *name == near));
        let finding = self.did_you_mean(word, names());
        match near {
            Some((near, span)) => finding.with_related(*span, format!("`{near}` is declared here")),
            None => finding,
        }
    }

    /// Like [`Finding::did_you_mean`], if `word` is only a part of the text at the place of the
    /// finding: the advice is a sentence, because the candidate does not replace the entire text.
    #[must_use]
    pub(crate) fn did_you_mean_within<'c>(
        self,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Finding {
        let found = self.clone().did_you_mean(word, candidates);
        match &found.help {
            Some(help @ Help::Suggestion(_)) => self.help(help.to_string()),
            _ => found,
        }
    }

    /// Replaces the advice by a text for the place of the finding.
    #[must_use]
    pub(crate) fn suggest(self, replacement: impl Into<String>) -> Finding {
        self.suggest_maybe(replacement, true)
    }

    fn suggest_maybe(mut self, replacement: impl Into<String>, is_sure: bool) -> Finding {
        let suggestion = Suggestion { span: self.span, replacement: replacement.into(), is_sure };
        self.help = Some(Help::Suggestion(suggestion));
        self
    }

    /// Marks the finding as a use of an undeclared name.
    #[must_use]
    pub(crate) fn with_declarations(self, kind: NameKind, name: &str) -> Finding {
        Finding { aspect: Aspect::Undeclared, ..self.with_uses(kind, name) }
    }

    /// Marks the finding as a declaration of an unused name.
    #[must_use]
    pub(crate) fn with_uses(self, kind: NameKind, name: &str) -> Finding {
        Finding { name: Some(NamedUses { kind, name: name.to_owned() }), ..self }
    }

    /// If `is_it`, marks the finding as an operation of which only the method is unknown.
    #[must_use]
    pub(crate) fn of_method(self, is_it: bool) -> Finding {
        if is_it { Finding { aspect: Aspect::Method, ..self } } else { self }
    }

    /// Marks the finding as a problem of a complete block.
    #[must_use]
    pub(crate) fn of_whole(self) -> Finding {
        Finding { aspect: Aspect::Whole, ..self }
    }

    /// Returns the places that use the text of the finding.
    pub(crate) fn uses(&self) -> impl Iterator<Item = Span> {
        self.related.iter().filter(|(_, words)| words == USED).map(|(span, _)| *span)
    }

    /// Adds a place that uses the text of the finding.
    pub(crate) fn add_use(&mut self, place: Span) {
        self.related.push((place, USED.to_owned()));
    }

    /// Adds a related place.
    #[must_use]
    pub fn with_related(mut self, span: Span, words: impl Into<String>) -> Finding {
        self.related.push((span, words.into()));
        self
    }
}

/// All findings of a run. Readers continue after a finding, so that one run reports every mistake.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    all: Vec<Finding>,
}

impl Findings {
    /// Returns an empty collection.
    pub fn new() -> Findings {
        Findings::default()
    }

    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.all.push(finding);
    }

    /// Returns whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.all.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Returns the number of findings with this severity, including those that are only counted.
    pub fn count(&self, severity: Severity) -> usize {
        let further = |finding: &Finding| finding.group.as_ref().map_or(1, |group| group.count);
        let number = |finding| if is_count(finding) { further(finding) } else { 1 };
        self.all.iter().filter(|finding| finding.severity == severity).map(number).sum()
    }

    /// Returns whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the number of findings, as a mark for [`Findings::errors_since`] and
    /// [`Findings::truncate`].
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether an error was added since the mark.
    pub fn errors_since(&self, mark: usize) -> bool {
        self.all.iter().skip(mark).any(|finding| finding.severity == Severity::Error)
    }

    /// Returns the findings added since the mark, for changes.
    pub(crate) fn since_mut(&mut self, mark: usize) -> &mut [Finding] {
        &mut self.all[mark..]
    }

    /// Removes all findings added since the mark.
    pub fn truncate(&mut self, mark: usize) {
        self.all.truncate(mark);
    }

    /// Adds the findings of another collection.
    pub fn append(&mut self, other: Findings) {
        self.all.extend(other.all);
    }

    /// Changes each finding, such as to remove confidential text from it.
    pub fn for_each(&mut self, change: impl FnMut(&mut Finding)) {
        self.all.iter_mut().for_each(change);
    }

    /// Removes the findings that do not satisfy the predicate.
    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.all.retain(keep);
    }

    /// Returns whether there is a finding within this place.
    pub fn any_within(&self, place: Span) -> bool {
        let is_within =
            |span: Span| span.file == place.file && span.start >= place.start && span.end <= place.end;
        self.all.iter().any(|finding| is_within(finding.span))
    }

    /// Replaces places in copies of files by those in the text, with the uses of the text as related
    /// places. A finding that several uses have in common becomes one.
    pub(crate) fn locate(&mut self, sources: &Sources) {
        let mut known: HashMap<(Span, Code, String), usize> = HashMap::new();
        for mut finding in std::mem::take(&mut self.all) {
            let uses = finding.uses().flat_map(|place| [vec![place], sources.uses(place)].concat());
            let uses = [sources.uses(finding.span), uses.collect()].concat();
            finding.related.retain(|(_, words)| words != USED);
            let suggested = finding.help.iter_mut().filter_map(|help| match help {
                Help::Suggestion(suggestion) => Some(&mut suggestion.span),
                Help::Text(_) => None,
            });
            let grouped = finding.group.iter_mut().flat_map(|group| &mut group.first);
            let related = finding.related.iter_mut().map(|(span, _)| span);
            for span in suggested.chain(grouped).chain(related).chain([&mut finding.span]) {
                *span = sources.written(*span);
            }
            let related = uses.into_iter().map(|place| (sources.written(place), USED.to_owned()));
            if related.len() == 0 {
                self.all.push(finding);
                continue;
            }
            let key = (finding.span, finding.code, finding.message.clone());
            let at = *known.entry(key).or_insert(self.all.len());
            if at == self.all.len() {
                self.all.push(finding);
            }
            let shown = &mut self.all[at].related;
            for place in related {
                if shown.len() < USES_SHOWN && !shown.contains(&place) {
                    shown.push(place);
                }
            }
        }
    }

    /// Leaves at most [`PER_KIND_MAX`] findings of each kind in each file, the first ones, and one that
    /// counts the others. Returns whether there are others.
    ///
    /// A thousand equal mistakes have one cause, and relating findings to each other takes time that
    /// is quadratic in their number.
    pub(crate) fn cap(&mut self) -> bool {
        let sorted: Vec<Finding> = self.in_order().into_iter().cloned().collect();
        let mut kinds: HashMap<(FileId, Code, Severity), (usize, GroupedPlaces)> = HashMap::new();
        self.all.clear();
        for finding in sorted {
            let kind = (finding.span.file, finding.code, finding.severity);
            let (listed, further) = kinds.entry(kind).or_default();
            if is_count(&finding) {
                let group = finding.group.unwrap_or_default();
                further.count += group.count;
                further.first.extend(group.first);
            } else if *listed < PER_KIND_MAX {
                *listed += 1;
                self.all.push(finding);
            } else {
                further.count += 1;
                if further.first.len() < FURTHER_LISTED {
                    further.first.push(finding.span);
                }
            }
        }
        kinds.retain(|_, (_, further)| further.count > 0);
        let is_capped = !kinds.is_empty();
        for ((_, code, severity), (_, mut further)) in kinds {
            further.first.sort();
            further.first.truncate(FURTHER_LISTED);
            let finding = Finding::new(
                severity,
                code,
                further.first[0],
                "more findings of this kind in this file".to_owned(),
            );
            self.all.push(Finding { group: Some(further), aspect: Aspect::Further, ..finding });
        }
        is_capped
    }

    /// Removes the counts of further findings of kinds that have no other finding in the file.
    pub(crate) fn retain_counts(&mut self) {
        let kind = |finding: &Finding| (finding.span.file, finding.code);
        let has_one: HashSet<_> = self.all.iter().filter(|finding| !is_count(finding)).map(kind).collect();
        self.all.retain(|finding| !is_count(finding) || has_one.contains(&kind(finding)));
    }

    /// Returns all findings by file, position and number, without duplicates. The order depends
    /// only on the text, not on the order of the checks.
    pub fn in_order(&self) -> Vec<&Finding> {
        let mut sorted: Vec<&Finding> = self.all.iter().collect();
        // Ordered by place, since passes report in their own order, which users should not notice. A type
        // that is reached on several paths is reported once.
        sorted.sort_by(|a, b| key(a).cmp(&key(b)));
        sorted.dedup();
        sorted
    }
}

/// Returns whether a finding counts the others of its kind.
fn is_count(finding: &Finding) -> bool {
    finding.aspect == Aspect::Further
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
        let messages: Vec<_> = findings.in_order().into_iter().map(|f| f.message.as_str()).collect();
        assert_eq!(messages, ["first", "second", "third"]);
        assert!(findings.has_errors());
        assert_eq!(findings.count(Severity::Warning), 1);
    }

    #[test]
    fn equal_mistakes_beyond_the_maximum_are_counted() {
        let mut sources = Sources::new();
        let (a, b) = (sources.add("a", "x"), sources.add("b", "y"));
        let mut findings = Findings::new();
        let many = PER_KIND_MAX as u32 + 50;
        findings.extend((0..many).map(|at| Finding::error(Code::UnknownKey, Span::new(a, at, at + 1), "a")));
        findings.push(Finding::error(Code::UnknownKey, Span::new(b, 0, 1), "b"));
        assert!(findings.cap());
        let count = |findings: &Findings| {
            findings.in_order().iter().find_map(|finding| finding.group.as_ref().map(|group| group.count))
        };
        assert_eq!((findings.len(), count(&findings)), (PER_KIND_MAX + 2, Some(50)));
        // Findings of a later pass are added to the count.
        findings.push(Finding::error(Code::UnknownKey, Span::new(a, many, many + 1), "a"));
        assert!(findings.cap());
        assert_eq!((findings.len(), count(&findings)), (PER_KIND_MAX + 2, Some(51)));
        assert_eq!(findings.count(Severity::Error), PER_KIND_MAX + 52);
        findings.retain(|finding| finding.aspect == Aspect::Further);
        findings.retain_counts();
        assert!(findings.is_empty(), "a count needs one of its findings");
    }
}
