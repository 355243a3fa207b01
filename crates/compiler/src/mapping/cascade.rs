//! Removes consequential findings, so that each mistake is reported once.
//!
//! A line with an error has no effect: its field seems unmapped, its shape unused, its operation
//! unrouted, and its value fits no type. Such consequences are suppressed while their cause is
//! reported. They disappear with the cause or are reported after it is fixed.
//!
//! Causes and consequences are related by names and by blocks. A block is the text below one key of
//! a top-level section, such as a shape, a route, a reason or a setting. Findings that judge a
//! block as a unit are suppressed if part of it could not be read, and so are findings elsewhere
//! about items that such a block mentions.

use super::corrections::suggestion_of;
use crate::diagnostic::{
    Aspect, Code, FileId, Finding, Findings, Help, NamedUses, Severity, Sources, Span, suggest,
};
use std::collections::HashMap;

/// Scope in which a cause explains a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CauseScope {
    /// Anywhere in the pack, if the block of the cause mentions the missing item.
    Pack,
    /// Anywhere in the pack, if the block of the cause declares the missing item.
    Declared,
    /// The block of the finding, if the cause mentions the missing item.
    Fields,
    /// The block of the finding.
    Block,
    /// The line of the finding.
    Line,
    /// The value that the finding is about.
    Value,
    /// The same block, or any shape.
    Verdict,
}

/// Codes that may be mere consequences of an unread line, with the scopes of possible causes.
const FOLLOWING: &[(Code, &[CauseScope])] = &[
    (Code::Unused, &[CauseScope::Pack]),
    (Code::Unanswered, &[CauseScope::Pack]),
    (Code::EventUnanswered, &[CauseScope::Pack]),
    (Code::NoSource, &[CauseScope::Pack, CauseScope::Block]),
    (Code::ExampleForm, &[CauseScope::Declared, CauseScope::Block]),
    (Code::VerdictSaid, &[CauseScope::Verdict]),
    (Code::Unaccounted, &[CauseScope::Fields]),
    (Code::MissingField, &[CauseScope::Value, CauseScope::Block]),
    (Code::Unread, &[CauseScope::Block]),
    (Code::BodyMissing, &[CauseScope::Block]),
    (Code::BodyUnexpected, &[CauseScope::Block]),
    (Code::AnsweredTwice, &[CauseScope::Block]),
    (Code::StatusUncovered, &[CauseScope::Block]),
    (Code::BlockEnd, &[CauseScope::Block]),
    (Code::RowLength, &[CauseScope::Block]),
    (Code::TableGap, &[CauseScope::Block]),
    (Code::OnFail, &[CauseScope::Block]),
    (Code::Unchecked, &[CauseScope::Block]),
    (Code::Lookup, &[CauseScope::Block]),
    (Code::MediaLine, &[CauseScope::Block]),
    (Code::MayBeAbsent, &[CauseScope::Block]),
    (Code::PagedKind, &[CauseScope::Block]),
    (Code::PagedTold, &[CauseScope::Block]),
    (Code::PagedMember, &[CauseScope::Line]),
    (Code::MissingText, &[CauseScope::Block]),
    (Code::Archive, &[CauseScope::Pack]),
    (Code::OneOfKeys, &[CauseScope::Line]),
    (Code::MissingSide, &[CauseScope::Line]),
    (Code::MissingKey, &[CauseScope::Line]),
];

/// Like [`FOLLOWING`], but only for findings that judge a block as a unit.
const FOLLOWING_AS_WHOLE: &[(Code, &[CauseScope])] = &[
    (Code::Outcome, &[CauseScope::Block]),
    (Code::ShapePlace, &[CauseScope::Block]),
    (Code::QueryParameter, &[CauseScope::Fields]),
    (Code::BusinessError, &[CauseScope::Block]),
    (Code::ValueType, &[CauseScope::Block]),
];

/// Codes about values. They are unreliable if another part of their line could not be read.
const OF_VALUES: &[Code] = &[
    Code::MayBeAbsent,
    Code::Types,
    Code::ConversionTypes,
    Code::LiteralType,
    Code::ValueType,
    Code::PartialConversion,
];

/// Codes after which no content of a file is available.
const OF_FILES: &[Code] = &[Code::YamlSyntax, Code::NotUtf8, Code::EmptyFile, Code::TooLarge];

/// Codes that report the absence of something from the entire pack.
const OF_ABSENCE: &[Code] = &[Code::Unused, Code::Unanswered, Code::EventUnanswered];

/// Merges findings that are about the same mistake.
pub(super) fn join(findings: &mut Findings, sources: &Sources) {
    // Names on an unreadable line seem undeclared or unused. Remove those findings first, or they
    // would be paired as misspellings of each other.
    leave_out(findings, sources, |cause| cause.is_form, |finding| finding.name.is_some());
    let mut all: Vec<Finding> = findings.in_order().into_iter().cloned().collect();
    join_names(&mut all);
    say_once(&mut all);
    join_made(&mut all);
    *findings = Findings::new();
    findings.extend(all);
}

/// Removes findings that only follow from others.
pub(super) fn prune(findings: &mut Findings, sources: &Sources) {
    leave_out(findings, sources, |_| true, |_| true);
}

/// Removes the findings selected by `which` that follow from causes selected by `of`.
fn leave_out(
    findings: &mut Findings,
    sources: &Sources,
    of: impl Fn(&RootCause<'_>) -> bool,
    which: impl Fn(&Finding) -> bool,
) {
    let all: Vec<Finding> = findings.in_order().into_iter().cloned().collect();
    // Documents are long, and have many findings, so each file is divided once.
    let mut blocks: HashMap<FileId, FileBlocks<'_>> = HashMap::new();
    let mut locate = |span: Span| {
        let blocks = blocks.entry(span.file).or_insert_with(|| FileBlocks::divide(sources.text(span.file)));
        FindingPlace::locate(span, sources, blocks)
    };
    let places: Vec<FindingPlace> = all.iter().map(|finding| locate(finding.span)).collect();
    // A mistake in a fragment is one in each block that uses the fragment.
    let uses = all.iter().flat_map(|finding| finding.uses().map(move |span| (finding, span)));
    let uses: Vec<_> = uses.map(|(finding, span)| (finding, span, locate(span))).collect();
    let own = all.iter().zip(&places).map(|(finding, place)| (finding, finding.span, place));
    let causes: Vec<RootCause> = own
        .chain(uses.iter().map(|(finding, span, place)| (*finding, *span, place)))
        // A line with a warning is read, so it is no cause of other findings.
        .filter(|(finding, ..)| finding.severity == Severity::Error && is_cause(finding))
        .map(|(finding, span, place)| RootCause::from_finding(finding, span, place))
        .filter(of)
        .collect();
    let follows = |(finding, place): (&Finding, &FindingPlace)| {
        which(finding)
            && causes.iter().any(|cause| cause.finding != finding && cause.explains(finding, place))
    };
    let followed: Vec<bool> = all.iter().zip(&places).map(follows).collect();
    // The causes borrow from `all`, which is consumed below.
    drop(causes);
    drop(uses);
    let kept = all.into_iter().zip(followed).filter(|(_, follows)| !follows).map(|(finding, _)| finding);
    *findings = Findings::new();
    findings.extend(kept);
}

/// Merges a name that is declared but not used with a similar one that is used but not declared.
///
/// The use is reported. If there are several uses, the declaration is reported instead. The other
/// location becomes a related span.
fn join_names(all: &mut Vec<Finding>) {
    let mut at = 0;
    while at < all.len() {
        let here = &all[at];
        let Some(NamedUses { kind, name: declared }) = here.name.clone().filter(|_| !is_undeclared(here))
        else {
            at += 1;
            continue;
        };
        let wanted = |finding: &Finding| {
            let named = finding.name.as_ref().filter(|named| is_undeclared(finding) && named.kind == kind);
            named.is_some_and(|named| suggest(&named.name, [declared.as_str()]).is_some())
        };
        let uses: Vec<usize> = (0..all.len()).filter(|at| wanted(&all[*at])).collect();
        match uses.as_slice() {
            [] => at += 1,
            // A warning about the declaration must not replace the error of its use.
            [first, others @ ..] if others.is_empty() || here.severity != Severity::Error => {
                let (first, span) = (*first, here.span);
                let words = format!("`{declared}` is declared here, and nothing uses it");
                all[first].related.push((span, words));
                all.remove(at);
            }
            several => {
                let used = &all[several[0]];
                let name = used.name.as_ref().map_or_else(String::new, |named| named.name.clone());
                let related = (used.span, format!("`{name}` is used here, and is not declared"));
                let several = several.to_vec();
                all[at].related.push(related);
                all[at] = all[at].clone().suggest(name);
                // Marks the finding as a cause: no other line of its block can explain it.
                if matches!(all[at].aspect, Aspect::Plain | Aspect::Whole) {
                    all[at].aspect = Aspect::Joined;
                }
                // Removing earlier uses moves the declaration towards the front.
                let before = several.iter().filter(|index| **index < at).count();
                for index in several.into_iter().rev() {
                    all.remove(index);
                }
                at = at - before + 1;
            }
        }
    }
}

fn is_undeclared(finding: &Finding) -> bool {
    finding.aspect == Aspect::Undeclared
}

/// Merges findings about reads of a misspelled step result: if no line reads the result under its
/// own name, all reads of the misspelled name are one mistake. If one does, each misspelled read is
/// reported.
fn join_made(all: &mut Vec<Finding>) {
    let unread: Vec<Span> =
        all.iter().filter(|finding| finding.code == Code::Unread).map(|finding| finding.span).collect();
    let mut joined: Vec<(Span, String)> = Vec::new();
    all.retain(|finding| {
        let (Code::PathUnknown, [(made, _)], Some(name)) =
            (finding.code, finding.related.as_slice(), first_name(finding))
        else {
            return true;
        };
        let key = (*made, name.to_owned());
        let is_first = !joined.contains(&key);
        if is_first && unread.contains(made) {
            joined.push(key);
        }
        is_first
    });
}

/// Removes duplicate errors about the same name at the same span.
fn say_once(all: &mut Vec<Finding>) {
    all.dedup_by(|next, first| {
        next.severity == Severity::Error
            && next.code == first.code
            && next.span == first.span
            && (first_name(next) == first_name(first)
                || suggestion_of(first).is_some() && suggestion_of(next) == suggestion_of(first))
    });
}

/// Returns whether a finding may be a cause: at most the line that contains it can explain it.
fn is_cause(finding: &Finding) -> bool {
    matches!(scope(finding), [] | [CauseScope::Line])
}

fn scope(finding: &Finding) -> &'static [CauseScope] {
    // A joined finding reports a misspelling, which is a cause.
    if finding.aspect == Aspect::Joined {
        return &[];
    }
    let wholes = FOLLOWING_AS_WHOLE.iter().filter(|_| finding.aspect == Aspect::Whole);
    let of_code = FOLLOWING.iter().chain(wholes).find(|(following, _)| *following == finding.code);
    of_code.map_or(&[], |(_, within)| *within)
}

/// Location of a finding.
struct FindingPlace<'s> {
    line: u32,
    /// Text of the line.
    text: &'s str,
    /// The enclosing block, and the key that introduces it.
    block: &'s str,
    block_start: usize,
    head: &'s str,
    is_shape: bool,
    is_route: bool,
}

impl<'s> FindingPlace<'s> {
    fn locate(span: Span, sources: &'s Sources, blocks: &FileBlocks<'s>) -> FindingPlace<'s> {
        let file = sources.text(span.file);
        let at = (span.start as usize).min(file.len());
        let start = file[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = file[at..].find('\n').map_or(file.len(), |end| at + end);
        let (section, block) = blocks.around(start);
        let text = &file[block.clone()];
        let head = text.trim_start_matches([' ', '-', '\'', '"']);
        FindingPlace {
            line: sources.start(span).line,
            text: &file[start..end],
            block: text,
            block_start: block.start,
            head: head.split([':', '\'', '"']).next().unwrap_or_default(),
            is_shape: section.starts_with("shapes"),
            is_route: section.starts_with("routes"),
        }
    }
}

/// The blocks of a file.
struct FileBlocks<'s> {
    file: &'s str,
    /// The start of each block, with the line of the top-level key above it.
    starts: Vec<(usize, &'s str)>,
}

impl<'s> FileBlocks<'s> {
    fn divide(file: &'s str) -> FileBlocks<'s> {
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let mut starts = Vec::new();
        let mut section = "";
        let mut below: Option<usize> = None;
        let mut at = 0;
        for line in file.split_inclusive('\n') {
            let start = at;
            at += line.len();
            // Blank lines and comments neither open nor close a block, whatever their indentation.
            if !is_said(line) {
                continue;
            }
            if indent(line) == 0 && !line.starts_with('-') {
                (section, below) = (line, None);
                starts.push((start, section));
            } else if indent(line) == *below.get_or_insert(indent(line)) {
                starts.push((start, section));
            }
        }
        FileBlocks { file, starts }
    }

    /// Returns the top-level key above a line, and the range of the block that contains the line.
    fn around(&self, line_start: usize) -> (&'s str, std::ops::Range<usize>) {
        let next = self.starts.partition_point(|(start, _)| *start <= line_start);
        let end = self.starts.get(next).map_or(self.file.len(), |(start, _)| *start);
        let (start, section) = next.checked_sub(1).map_or((0, ""), |at| self.starts[at]);
        (section, start..end)
    }
}

/// A finding that is wrong in its own right.
struct RootCause<'f> {
    finding: &'f Finding,
    /// The span of the finding, or of a use of the fragment that it is in.
    span: Span,
    place: &'f FindingPlace<'f>,
    /// Whether an item could not be read or resolved, so that its meaning is unknown.
    is_unread: bool,
    /// Whether a key or an entire value was not read.
    is_form: bool,
}

impl<'f> RootCause<'f> {
    fn from_finding(finding: &'f Finding, span: Span, place: &'f FindingPlace<'f>) -> RootCause<'f> {
        let number = finding.code.number();
        // Number ranges: `Y0xx` are errors in YAML and keys, `M00x` and `M01x` in the form of
        // mapping files, and `M02x` in names.
        let is_form = number.starts_with('Y') || number.starts_with("M00") || number.starts_with("M01");
        let is_unread = is_form
            || number.starts_with("M02")
            || matches!(
                finding.code,
                Code::UnknownConversion
                    | Code::ConversionArguments
                    | Code::UnknownOperation
                    | Code::OperationForm
                    | Code::PathUnknown
                    | Code::UnknownStatus
                    | Code::CellValue
                    | Code::Outcome
                    | Code::Unread
                    | Code::Language
                    | Code::PollForm
                    | Code::PollWrite
                    | Code::PollTime
                    | Code::PollBlind
                    | Code::PollSettled
                    | Code::PollForgotten
                    | Code::EventForm
                    | Code::EventCorrelation
                    | Code::UnknownEvent
                    | Code::BusinessError
                    | Code::QueryParameter
                    | Code::PagedMember
            );
        RootCause { finding, span, place, is_unread, is_form }
    }

    /// Returns whether `finding` is a consequence of this cause.
    fn explains(&self, finding: &Finding, place: &FindingPlace<'_>) -> bool {
        #[cfg(test)]
        crate::diagnostic::work::count();
        // Declarations, uses and routes in the unread rest of the file are unknown.
        let is_of_absence = OF_ABSENCE.contains(&finding.code) || finding.name.is_some();
        if OF_FILES.contains(&self.finding.code) && is_of_absence {
            return true;
        }
        let same_file = finding.span.file == self.span.file;
        let same_line = same_file && place.line == self.place.line;
        let same_block = same_file && place.block_start == self.place.block_start;
        // The texts of a cause often contain the correct name as a suggestion.
        let said = [&self.finding.message, advice(self.finding)];
        let follows = |within: &CauseScope| match within {
            CauseScope::Pack => {
                let is_named = |name| has_word(self.place.block, name) || is_nearly_in(self.place.text, name);
                let elsewhere = !(same_file && place.block_start == self.place.block_start);
                // The first name is the subject of a message; others may be suggestions.
                let mut names = names(&finding.message).take(1);
                (elsewhere || same_line)
                    && names.any(|name| has_word(self.place.text, name) || (self.is_unread && is_named(name)))
            }
            CauseScope::Declared => {
                self.is_unread && names(&finding.message).any(|name| name == self.place.head)
            }
            CauseScope::Fields => {
                let is_named = |name| {
                    has_word(self.place.text, name)
                        || is_nearly_in(self.place.text, name)
                        || said.iter().any(|said| has_word(said, name))
                };
                let is_below = |name| self.is_form && has_word(below(self.place), name);
                // An invalid `like:` or `rest:` would have covered every field.
                let is_all = self.is_form && (self.names_key("like") || self.names_key("rest"))
                    || self.finding.code == Code::UnknownShape && self.place.text.contains("like:");
                // A shape with `like:` inherits lines, so a cause in the parent's block may explain
                // it.
                self.is_unread
                    && (same_block || place.block.contains("like:"))
                    && (is_all
                        || names(&finding.message).take(1).any(|name| is_named(name) || is_below(name)))
            }
            CauseScope::Block => {
                let is_named =
                    |name| has_word(self.place.text, name) || said.iter().any(|said| has_word(said, name));
                same_block && (self.is_unread || names(&finding.message).any(is_named))
            }
            CauseScope::Line => {
                same_line
                    && matches!(
                        self.finding.code,
                        Code::UnknownKey | Code::WrongKind | Code::UnknownWord | Code::UnknownFragment
                    )
            }
            CauseScope::Value => {
                finding.span.contains(self.span)
                    && names(&finding.message)
                        .any(|name| has_word(self.place.text, name) || said.iter().any(|s| has_word(s, name)))
            }
            CauseScope::Verdict => self.is_unread && (same_block || self.place.is_shape),
        };
        // A route without an operation key might serve any operation.
        let may_answer = self.finding.code == Code::MissingKey && self.place.is_route;
        if scope(finding).iter().any(follows) || (finding.code == Code::Unanswered && may_answer) {
            return true;
        }
        // If a step of the block was not read, the names that it defines are unknown.
        if is_undeclared(finding) && !is_undeclared(self.finding) {
            let name = first_name(finding).unwrap_or_default();
            // A step defines no fragment, though its use looks like a key.
            let is_of_step = self.is_of_step() && finding.code != Code::UnknownFragment;
            let is_below = same_block && self.is_unread && is_of_step && declares(self.place.block, name);
            return is_below
                || (self.is_unread
                    && (name == self.place.head || suggest(name, [self.place.head]).is_some()));
        }
        // A cell with a misspelt word is read as that word, which its column may never hold.
        if finding.code == Code::CellValue && self.finding.code == Code::FillForm {
            return finding.span == self.span;
        }
        // The types of a response that the contract does not define are unknown.
        let is_of_answer = same_block && self.finding.code == Code::UnknownStatus;
        OF_VALUES.contains(&finding.code)
            && self.is_unread
            && (same_line || is_of_answer)
            && finding.span != self.span
    }

    /// Returns whether the cause prevents a step from being read. A step with an invalid path is
    /// read, but its type is unknown.
    fn is_of_step(&self) -> bool {
        self.finding.code != Code::PathUnknown
    }

    /// Returns whether the cause is about `key` or a misspelling of it.
    fn names_key(&self, key: &str) -> bool {
        has_word(advice(self.finding), key)
    }
}

/// Returns the text of a finding's advice, or an empty text.
fn advice(finding: &Finding) -> &str {
    finding.help.as_ref().map_or("", Help::text)
}

/// Returns the lines of a block below the place's line that are indented further.
fn below<'s>(place: &FindingPlace<'s>) -> &'s str {
    let Some(at) = place.block.find(place.text) else { return "" };
    let rest = &place.block[at + place.text.len()..];
    let indent = |line: &str| line.len() - line.trim_start().len();
    let belongs = |line: &&str| line.trim().is_empty() || indent(line) > indent(place.text);
    let length: usize = rest.split_inclusive('\n').take_while(belongs).map(str::len).sum();
    &rest[..length]
}

/// Returns whether a block assigns `name` to an item, as opposed to reading it.
fn declares(block: &str, name: &str) -> bool {
    !name.is_empty()
        && block.match_indices(name).any(|(at, _)| {
            let before = block[..at].chars().next_back().unwrap_or(' ');
            let after = block[at + name.len()..].chars().next().unwrap_or(' ');
            matches!(before, ' ' | '{' | '[' | '\'' | '"') && matches!(after, ':' | '\'' | '"' | '}' | ',')
        })
}

/// Returns the names in backticks in a message.
fn names(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches(':'))
}

fn first_name(finding: &Finding) -> Option<&str> {
    names(&finding.message).next()
}

/// Returns whether a text contains `name` as a separate word.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

/// Returns whether a text contains every word of `name`, or a similar one.
fn is_nearly_in(text: &str, name: &str) -> bool {
    let words = |text| str::split(text, |letter: char| !letter.is_alphanumeric() && letter != '_');
    let have: Vec<&str> = words(text).collect();
    let is_there = |word: &str| have.contains(&word) || suggest(word, have.iter().copied()).is_some();
    let mut wanted = words(name).filter(|word| !word.is_empty()).peekable();
    wanted.peek().is_some() && wanted.all(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_words() {
        assert_eq!(
            names("no line for `labels` (v1), and `request:`").collect::<Vec<_>>(),
            ["labels", "request"]
        );
        assert!(has_word("labels: {v2: x}", "labels"));
        assert!(has_word("$.labels", "labels"));
        assert!(!has_word("old_labels: x", "labels"));
        assert!(is_nearly_in("pair: {v1: GT /things/{id}}", "GET /things/{id}"));
        assert!(!is_nearly_in("pair: {v1: GET /things}", "GET /things/{id}"));
    }

    #[test]
    fn a_block_is_what_stands_below_a_key() {
        let file = "mapping: 1\nshapes:\n  A:\n    same: [x]\n\n  # of B\n  B: {of: x}\nroutes:\n- pair: x\n  query: y\n- pair: z\n";
        let block = |word: &str| {
            let at = file.find(word).expect("it is there");
            let start = file[..at].rfind('\n').map_or(0, |at| at + 1);
            let (section, block) = FileBlocks::divide(file).around(start);
            (section.trim(), &file[block])
        };
        assert_eq!(block("same"), ("shapes:", "  A:\n    same: [x]\n\n  # of B\n"));
        assert_eq!(block("B: {"), ("shapes:", "  B: {of: x}\n"));
        assert_eq!(block("query"), ("routes:", "- pair: x\n  query: y\n"));
        assert_eq!(block("pair: z"), ("routes:", "- pair: z\n"));
        assert_eq!(block("mapping"), ("mapping: 1", "mapping: 1\n"));
    }
}
