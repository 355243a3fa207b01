//! One cause, one finding. A line that cannot be read says nothing, so that its field seems to have no line, its shape no
//! use, its operation no route; and a value that is wrongly written fits nowhere. Such findings are left out while their
//! cause stands: they would be gone with it, or come up then.
//!
//! What belongs together is told by names and by blocks. A block is a shape, a route, a reason, a setting: what stands below
//! one of the keys of a file. Of a block that could not be read whole nothing is said that is a judgement on the whole; and
//! what another place misses of it is not missed while it names it.

use crate::diagnostic::{Code, Finding, Findings, Severity, Sources, Span, suggest};

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
    (Code::QueryParameter, &[Within::Fields]),
    (Code::AnsweredTwice, &[Within::Block]),
    (Code::StatusUncovered, &[Within::Block]),
    (Code::BlockEnd, &[Within::Block]),
    (Code::RowLength, &[Within::Block]),
    (Code::TableGap, &[Within::Block]),
    (Code::OnFail, &[Within::Block]),
    (Code::Unchecked, &[Within::Block]),
    (Code::Lookup, &[Within::Block]),
    (Code::MediaLine, &[Within::Block]),
    (Code::ShapePlace, &[Within::Block]),
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

/// Findings about values, which say nothing where something on their line could not be read.
const OF_VALUES: &[Code] = &[
    Code::MayBeAbsent,
    Code::Types,
    Code::ConversionTypes,
    Code::LiteralType,
    Code::ValueType,
    Code::PartialConversion,
];

/// Names that are used and not declared.
const UNDECLARED: &[Code] =
    &[Code::UnknownSetting, Code::UnknownReason, Code::UnknownShape, Code::PathUnknown, Code::Outcome];

/// Names that are declared and not used.
const UNUSED: &[Code] = &[Code::Unused, Code::Unread, Code::Outcome];

/// Makes one finding of those that are about one mistake.
pub(super) fn join(findings: &mut Findings, sources: &Sources) {
    let mut all: Vec<Finding> = findings.sorted().into_iter().cloned().collect();
    join_names(&mut all);
    say_once(&mut all);
    join_places(&mut all, sources);
    *findings = Findings::new();
    findings.extend(all);
}

/// Leaves out what only follows from other findings.
pub(super) fn prune(findings: &mut Findings, sources: &Sources) {
    let all: Vec<Finding> = findings.sorted().into_iter().cloned().collect();
    let places: Vec<Place> = all.iter().map(|finding| Place::of(finding.span, sources)).collect();
    let causes: Vec<Cause> = all
        .iter()
        .zip(&places)
        .filter(|(finding, _)| finding.severity == Severity::Error && is_cause(finding))
        .map(|(finding, place)| Cause::of(finding, place))
        .collect();
    let follows = |(finding, place): (&Finding, &Place)| {
        causes.iter().any(|cause| cause.finding != finding && cause.explains(finding, place))
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
    let is_unused = |finding: &Finding| UNUSED.contains(&finding.code) && !is_undeclared(finding);
    let mut at = 0;
    while at < all.len() {
        let (here, declared) = (&all[at], first_name(&all[at]));
        let Some(declared) = declared.filter(|_| is_unused(here)).map(str::to_owned) else {
            at += 1;
            continue;
        };
        let wanted = |finding: &Finding| {
            let name = first_name(finding).filter(|_| is_undeclared(finding));
            name.is_some_and(|name| suggest(name, [declared.as_str()]).is_some())
        };
        let uses: Vec<usize> = (0..all.len()).filter(|at| wanted(&all[*at])).collect();
        match uses.as_slice() {
            [] => at += 1,
            [only] => {
                let (only, span) = (*only, all[at].span);
                let words = format!("`{declared}` is declared here, and nothing uses it");
                all[only].related.push((span, words));
                all.remove(at);
            }
            several => {
                let used = &all[several[0]];
                let name = first_name(used).unwrap_or_default().to_owned();
                let related = (used.span, format!("`{name}` is used here, and is not declared"));
                let several = several.to_vec();
                all[at].related.push(related);
                all[at].help = Some(format!("did you mean `{name}`?"));
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
    UNDECLARED.contains(&finding.code) && finding.message.contains("there is no")
        || finding.code == Code::UnknownSetting
}

fn is_joined(finding: &Finding) -> bool {
    UNUSED.contains(&finding.code)
        && finding.help.as_deref().is_some_and(|help| help.starts_with("did you mean"))
}

/// What a block makes under one name and reads under another, nearly the same, is one mistake, however often it is read.
fn join_places(all: &mut Vec<Finding>, sources: &Sources) {
    let mut first: Vec<(usize, String)> = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let finding = &all[at];
        let (Code::PathUnknown, Some(name), Some(meant)) =
            (finding.code, first_name(finding), meant(finding))
        else {
            at += 1;
            continue;
        };
        let place = Place::of(finding.span, sources);
        let is_read = place.block.contains(&format!(".{meant}"));
        let made = made_by_a_step(&place, name, &meant);
        let Some(made) = made.filter(|_| !is_read && finding.related.is_empty()) else {
            at += 1;
            continue;
        };
        let start = (place.block_start + made) as u32;
        let span = Span::new(finding.span.file, start, start + meant.len() as u32);
        let (key, words) = ((place.block_start, name.to_owned()), format!("`{meant}` is made here"));
        if first.contains(&key) {
            all.remove(at);
        } else {
            first.push(key);
            all[at].related.push((span, words));
            at += 1;
        }
    }
}

/// Where a step makes what is read nearly so, as a place in the block: `$.step.nmae` of `step: {make: {name: …}}`.
fn made_by_a_step(place: &Place<'_>, read: &str, meant: &str) -> Option<usize> {
    let before = &place.text[..place.text.find(&format!(".{read}"))?];
    let step = before.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
    let at = place.block.find(&format!("- {step}:"))?;
    let making = place.block[at..].find("make:")? + at;
    let between = place.block[at..making].trim_start_matches("- ").trim_start_matches(step);
    let is_its_own = between.chars().all(|letter| letter.is_whitespace() || matches!(letter, ':' | '{'));
    let made = place.block[making..].find(&format!("{meant}:"))? + making;
    is_its_own.then_some(made)
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
    let of_code = FOLLOWING.iter().find(|(following, _)| *following == finding.code);
    match finding.code {
        Code::Outcome if finding.message.starts_with("no row") => &[Within::Block],
        Code::ShapePlace if !finding.message.contains("the contract knows") => &[],
        // What is declared under one name and used under another was joined.
        Code::Unused | Code::Unread if is_joined(finding) => &[],
        Code::QueryParameter if !finding.message.contains("goes nowhere") => &[],
        Code::BusinessError if finding.message.contains("for itself") => &[Within::Block],
        Code::ValueType if finding.message.contains("may be null") => &[Within::Block],
        _ => of_code.map_or(&[], |(_, within)| *within),
    }
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
                    | Code::EventForm
                    | Code::UnknownEvent
                    | Code::BusinessError
                    | Code::QueryParameter
            );
        Cause { finding, place, is_unread, is_form }
    }

    /// Whether a finding only follows from this.
    fn explains(&self, finding: &Finding, place: &Place<'_>) -> bool {
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
                (same_block || place.block.contains("like:"))
                    && self.is_unread
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
            let is_below = same_block && self.is_unread && declares(self.place.block, name);
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
