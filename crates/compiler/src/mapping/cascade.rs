//! One cause, one finding. A line that cannot be read says nothing, so that its field seems to have no line, its shape no
//! use, its operation no route; and a value that is wrongly written fits nowhere. Such findings are left out while their
//! cause stands: they would be gone with it, or come up then.
//!
//! What belongs together is told by names and by blocks. A block is a shape, a route, a reason, a setting: what stands below
//! one of the keys of a file. Of a block that could not be read whole nothing is said that is a judgement on the whole; and
//! what another place misses of it is not missed while it names it.

use crate::diagnostic::{Aspect, Code, Finding, Findings, Named, Severity, Sources, Span, suggest};

/// How far a cause may be from what follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Anywhere in the pack: the block of the cause names what is missed.
    Pack,
    /// Anywhere in the pack: the block of the cause is what is missed.
    Declared,
    /// In the block of the finding, which has to name what is missed.
    Fields,
    /// In the block of the finding.
    Block,
    /// On the line of the finding.
    Line,
    /// In the value that the finding is about.
    Value,
    /// Anywhere in the same block, or in a shape.
    Verdict,
}

/// Findings that may say nothing but that something else was not read, and where that stands.
const FOLLOWING: &[(Code, &[Within])] = &[
    (Code::Unused, &[Within::Pack]),
    (Code::Unanswered, &[Within::Pack]),
    (Code::EventUnanswered, &[Within::Pack]),
    (Code::NoSource, &[Within::Pack, Within::Block]),
    (Code::ExampleForm, &[Within::Declared, Within::Block]),
    (Code::VerdictSaid, &[Within::Verdict]),
    (Code::Unaccounted, &[Within::Fields]),
    (Code::MissingField, &[Within::Value, Within::Block]),
    (Code::Unread, &[Within::Block]),
    (Code::BodyMissing, &[Within::Block]),
    (Code::BodyUnexpected, &[Within::Block]),
    (Code::AnsweredTwice, &[Within::Block]),
    (Code::StatusUncovered, &[Within::Block]),
    (Code::BlockEnd, &[Within::Block]),
    (Code::RowLength, &[Within::Block]),
    (Code::TableGap, &[Within::Block]),
    (Code::OnFail, &[Within::Block]),
    (Code::Unchecked, &[Within::Block]),
    (Code::Lookup, &[Within::Block]),
    (Code::MediaLine, &[Within::Block]),
    (Code::MayBeAbsent, &[Within::Block]),
    (Code::PagedKind, &[Within::Block]),
    (Code::PagedTold, &[Within::Block]),
    (Code::PagedMember, &[Within::Line]),
    (Code::MissingText, &[Within::Block]),
    (Code::Archive, &[Within::Pack]),
    (Code::OneOfKeys, &[Within::Line]),
    (Code::MissingSide, &[Within::Line]),
    (Code::MissingKey, &[Within::Line]),
];

/// The same, of codes of which only those that judge a whole block follow.
const FOLLOWING_AS_WHOLE: &[(Code, &[Within])] = &[
    (Code::Outcome, &[Within::Block]),
    (Code::ShapePlace, &[Within::Block]),
    (Code::QueryParameter, &[Within::Fields]),
    (Code::BusinessError, &[Within::Block]),
    (Code::ValueType, &[Within::Block]),
];

/// Findings about values, which say nothing where something on their line could not be read.
const OF_VALUES: &[Code] = &[
    Code::MayBeAbsent,
    Code::Types,
    Code::ConversionTypes,
    Code::LiteralType,
    Code::ValueType,
    Code::PartialConversion,
];

/// Faults that leave nothing of a file.
const OF_FILES: &[Code] = &[Code::YamlSyntax, Code::NotUtf8, Code::EmptyFile, Code::TooLarge];

/// Findings that say no more than that nothing was seen of something, wherever it might stand.
const OF_ABSENCE: &[Code] = &[Code::Unused, Code::Unanswered, Code::EventUnanswered];

/// Makes one finding of those that are about one mistake.
pub(super) fn join(findings: &mut Findings, sources: &Sources) {
    // Names of a line that could not be read seem to be declared nowhere, or used nowhere: no slips of one another.
    leave_out(findings, sources, |cause| cause.is_form, |finding| finding.name.is_some());
    let mut all: Vec<Finding> = findings.sorted().into_iter().cloned().collect();
    join_names(&mut all);
    say_once(&mut all);
    join_made(&mut all);
    *findings = Findings::new();
    findings.extend(all);
}

/// Leaves out what only follows from other findings.
pub(super) fn prune(findings: &mut Findings, sources: &Sources) {
    leave_out(findings, sources, |_| true, |_| true);
}

/// Leaves out those of the findings that follow from some of the causes.
fn leave_out(
    findings: &mut Findings,
    sources: &Sources,
    of: impl Fn(&Cause<'_>) -> bool,
    which: impl Fn(&Finding) -> bool,
) {
    let all: Vec<Finding> = findings.sorted().into_iter().cloned().collect();
    let places: Vec<Place> = all.iter().map(|finding| Place::of(finding.span, sources)).collect();
    let causes: Vec<Cause> = all
        .iter()
        .zip(&places)
        .filter(|(finding, _)| finding.severity == Severity::Error && is_cause(finding))
        .map(|(finding, place)| Cause::of(finding, place))
        .filter(of)
        .collect();
    let follows = |(finding, place): (&Finding, &Place)| {
        which(finding)
            && causes.iter().any(|cause| cause.finding != finding && cause.explains(finding, place))
    };
    let followed: Vec<bool> = all.iter().zip(&places).map(follows).collect();
    drop(causes);
    let kept = all.into_iter().zip(followed).filter(|(_, follows)| !follows).map(|(finding, _)| finding);
    *findings = Findings::new();
    findings.extend(kept);
}

/// A name that is declared and not used, and one near to it that is used and not declared, are one mistake: what is used is
/// reported, or, where that is so in several places, what is declared; the other place is shown beside it.
fn join_names(all: &mut Vec<Finding>) {
    let mut at = 0;
    while at < all.len() {
        let here = &all[at];
        let Some(Named { kind, name: declared }) = here.name.clone().filter(|_| !is_undeclared(here)) else {
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
            // What is only warned of takes no error's place.
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
                all[at].help = Some(format!("did you mean `{name}`?"));
                // Another line of its block does not change it any more.
                if matches!(all[at].aspect, Aspect::Plain | Aspect::Whole) {
                    all[at].aspect = Aspect::Joined;
                }
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

/// What a step makes under one name and later lines read under another, nearly the same, is one mistake, however often it is
/// read: nothing reads what is made. Where something does, each reading is a mistake of its own.
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

/// What a finding asks for.
fn meant(finding: &Finding) -> Option<String> {
    super::corrections::meant(finding).map(str::to_owned)
}

/// One name that is wrong in the same place for two reasons is wrong once.
fn say_once(all: &mut Vec<Finding>) {
    all.dedup_by(|next, first| {
        next.severity == Severity::Error
            && next.code == first.code
            && next.span == first.span
            && (first_name(next) == first_name(first)
                || meant(first).is_some() && meant(next) == meant(first))
    });
}

/// Whether a finding may be what others follow from: what follows itself from nothing but the line that it stands on.
fn is_cause(finding: &Finding) -> bool {
    matches!(within(finding), [] | [Within::Line])
}

fn within(finding: &Finding) -> &'static [Within] {
    // What is declared under one name and used under another was joined: it is a cause itself.
    if finding.aspect == Aspect::Joined {
        return &[];
    }
    let wholes = FOLLOWING_AS_WHOLE.iter().filter(|_| finding.aspect == Aspect::Whole);
    let of_code = FOLLOWING.iter().chain(wholes).find(|(following, _)| *following == finding.code);
    of_code.map_or(&[], |(_, within)| *within)
}

/// Where a finding stands.
struct Place<'s> {
    line: u32,
    /// The line's text.
    text: &'s str,
    /// The block around it, and what it is called.
    block: &'s str,
    block_start: usize,
    head: &'s str,
    is_shape: bool,
    is_route: bool,
}

impl<'s> Place<'s> {
    fn of(span: Span, sources: &'s Sources) -> Place<'s> {
        let file = sources.text(span.file);
        let at = (span.start as usize).min(file.len());
        let start = file[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = file[at..].find('\n').map_or(file.len(), |end| at + end);
        let (section, block) = block_around(file, start);
        let text = &file[block.clone()];
        let head = text.trim_start_matches([' ', '-', '\'', '"']);
        Place {
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

/// The top key around a line, and the block below it that the line belongs to.
fn block_around(file: &str, line_start: usize) -> (&str, std::ops::Range<usize>) {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut section = "";
    let mut below: Option<usize> = None;
    let mut block = 0;
    let mut at = 0;
    for line in file.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if !is_said(line) {
            continue;
        }
        let is_top = indent(line) == 0 && !line.starts_with('-');
        let is_item = below.is_none_or(|below| indent(line) == below);
        if start > line_start && (is_top || is_item) {
            return (section, block..start);
        }
        if is_top {
            (section, below, block) = (line, None, start);
        } else {
            below.get_or_insert(indent(line));
            block = if is_item { start } else { block };
        }
    }
    (section, block..file.len())
}

/// Something that is wrong by itself.
struct Cause<'f> {
    finding: &'f Finding,
    place: &'f Place<'f>,
    /// Whether something could not be read or found, so that nothing is known of what it stands for.
    is_unread: bool,
    /// Whether a key or a whole value was not read.
    is_form: bool,
}

impl<'f> Cause<'f> {
    fn of(finding: &'f Finding, place: &'f Place<'f>) -> Cause<'f> {
        let number = finding.code.number();
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
        Cause { finding, place, is_unread, is_form }
    }

    /// Whether a finding only follows from this.
    fn explains(&self, finding: &Finding, place: &Place<'_>) -> bool {
        // What the rest of such a file declares, uses and answers is not known.
        let is_of_absence = OF_ABSENCE.contains(&finding.code) || finding.name.is_some();
        if OF_FILES.contains(&self.finding.code) && is_of_absence {
            return true;
        }
        let same_file = finding.span.file == self.finding.span.file;
        let same_line = same_file && place.line == self.place.line;
        let same_block = same_file && place.block_start == self.place.block_start;
        let said = [&self.finding.message, self.finding.help.as_deref().unwrap_or_default()];
        let follows = |within: &Within| match within {
            Within::Pack => {
                let is_named = |name| has_word(self.place.block, name) || is_nearly_in(self.place.text, name);
                let elsewhere = !(same_file && place.block_start == self.place.block_start);
                let mut names = names(&finding.message).take(1);
                (elsewhere || same_line)
                    && names.any(|name| has_word(self.place.text, name) || (self.is_unread && is_named(name)))
            }
            Within::Declared => self.is_unread && names(&finding.message).any(|name| name == self.place.head),
            Within::Fields => {
                let is_named = |name| {
                    has_word(self.place.text, name)
                        || is_nearly_in(self.place.text, name)
                        || said.iter().any(|said| has_word(said, name))
                };
                let is_below = |name| self.is_form && has_word(below(self.place), name);
                let is_all = self.is_form && (self.names_key("like") || self.names_key("rest"))
                    || self.finding.code == Code::UnknownShape && self.place.text.contains("like:");
                // A shape that is like another has its lines.
                self.is_unread
                    && (same_block || place.block.contains("like:"))
                    && (is_all
                        || names(&finding.message).take(1).any(|name| is_named(name) || is_below(name)))
            }
            Within::Block => {
                let is_named =
                    |name| has_word(self.place.text, name) || said.iter().any(|said| has_word(said, name));
                same_block && (self.is_unread || names(&finding.message).any(is_named))
            }
            Within::Line => {
                same_line
                    && matches!(self.finding.code, Code::UnknownKey | Code::WrongKind | Code::UnknownWord)
            }
            Within::Value => {
                finding.span.contains(self.finding.span)
                    && names(&finding.message)
                        .any(|name| has_word(self.place.text, name) || said.iter().any(|s| has_word(s, name)))
            }
            Within::Verdict => self.is_unread && (same_block || self.place.is_shape),
        };
        // A route that does not say which operation it answers may be for any.
        let may_answer = self.finding.code == Code::MissingKey && self.place.is_route;
        if within(finding).iter().any(follows) || (finding.code == Code::Unanswered && may_answer) {
            return true;
        }
        // What a step gives is not known where the block was not read whole.
        if is_undeclared(finding) && !is_undeclared(self.finding) {
            let name = first_name(finding).unwrap_or_default();
            let is_below =
                same_block && self.is_unread && self.is_of_step() && declares(self.place.block, name);
            return is_below
                || (self.is_unread
                    && (name == self.place.head || suggest(name, [self.place.head]).is_some()));
        }
        // Nothing is known of the values of an answer that the contract does not have.
        let is_of_answer = same_block && self.finding.code == Code::UnknownStatus;
        OF_VALUES.contains(&finding.code)
            && self.is_unread
            && (same_line || is_of_answer)
            && finding.span != self.finding.span
    }

    /// Whether it keeps a step from being read. One with a path that leads nowhere is read, and what it gives is not known.
    fn is_of_step(&self) -> bool {
        self.finding.code != Code::PathUnknown
    }

    /// Whether it is about this key, or one that was meant to be.
    fn names_key(&self, key: &str) -> bool {
        self.finding.help.as_deref().is_some_and(|help| has_word(help, key))
    }
}

/// The lines of a block that stand below the place's line and further right.
fn below<'s>(place: &Place<'s>) -> &'s str {
    let Some(at) = place.block.find(place.text) else { return "" };
    let rest = &place.block[at + place.text.len()..];
    let indent = |line: &str| line.len() - line.trim_start().len();
    let belongs = |line: &&str| line.trim().is_empty() || indent(line) > indent(place.text);
    let length: usize = rest.split_inclusive('\n').take_while(belongs).map(str::len).sum();
    &rest[..length]
}

/// Whether a block gives this name to something, rather than reading it.
fn declares(block: &str, name: &str) -> bool {
    !name.is_empty()
        && block.match_indices(name).any(|(at, _)| {
            let before = block[..at].chars().next_back().unwrap_or(' ');
            let after = block[at + name.len()..].chars().next().unwrap_or(' ');
            matches!(before, ' ' | '{' | '[' | '\'' | '"') && matches!(after, ':' | '\'' | '"' | '}' | ',')
        })
}

/// What a message names in backticks.
fn names(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches(':'))
}

fn first_name(finding: &Finding) -> Option<&str> {
    names(&finding.message).next()
}

/// Whether a text has a name as a word of its own.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + name.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

/// Whether a text has every word of a name, or one that is nearly it.
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
            let (section, block) = block_around(file, start);
            (section.trim(), &file[block])
        };
        assert_eq!(block("same"), ("shapes:", "  A:\n    same: [x]\n\n  # of B\n"));
        assert_eq!(block("B: {"), ("shapes:", "  B: {of: x}\n"));
        assert_eq!(block("query"), ("routes:", "- pair: x\n  query: y\n"));
        assert_eq!(block("pair: z"), ("routes:", "- pair: z\n"));
        assert_eq!(block("mapping"), ("mapping: 1", "mapping: 1\n"));
    }
}
