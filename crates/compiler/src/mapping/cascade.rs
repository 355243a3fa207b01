//! One cause, one finding. A line that cannot be read says nothing, so that its field seems to have no line, its shape no
//! use, its operation no route; and a value that is wrongly written fits nowhere. Such findings are left out while their
//! cause stands: they would be gone with it, or come up then.
//!
//! Names tell what belongs together: what only follows from something that is missing names it, and the cause stands on a
//! line with that name, or, within one shape or route, names it as what was meant.

use crate::diagnostic::{Code, Finding, Findings, Severity, Sources, Span};

/// How far a cause may be from what follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Anywhere in the pack.
    Pack,
    /// In the shape or route whose first line the finding is on.
    Block,
    /// In the value that the finding is about.
    Value,
}

/// Findings that may say nothing but that something else was not read, and where that stands.
const FOLLOWING: &[(Code, Within)] = &[
    (Code::Unused, Within::Pack),
    (Code::Unanswered, Within::Pack),
    (Code::Unread, Within::Pack),
    (Code::Unaccounted, Within::Block),
    (Code::BodyMissing, Within::Block),
    (Code::MissingField, Within::Value),
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

/// Leaves out what only follows from other findings.
pub(super) fn prune(findings: &mut Findings, sources: &Sources) {
    let causes: Vec<Cause> = findings
        .sorted()
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error && within(finding.code).is_none())
        .map(|finding| Cause::of(finding, sources))
        .collect();
    findings.retain(|finding| !causes.iter().any(|cause| cause.explains(finding, sources)));
}

fn within(code: Code) -> Option<Within> {
    FOLLOWING.iter().find(|(following, _)| *following == code).map(|(_, within)| *within)
}

/// Something that is wrong by itself.
struct Cause {
    span: Span,
    line: u32,
    /// Whether something could not be read or found, so that nothing is known of what it stands for.
    is_unread: bool,
    /// The line that it stands on, and what is said about it.
    text: String,
    /// How much of the text is the line.
    line_length: usize,
}

impl Cause {
    fn of(finding: &Finding, sources: &Sources) -> Cause {
        let span = finding.span;
        let text = sources.text(span.file);
        let start = text[..span.start as usize].rfind('\n').map_or(0, |at| at + 1);
        let end = text[span.start as usize..].find('\n').map_or(text.len(), |at| at + span.start as usize);
        let help = finding.help.as_deref().unwrap_or_default();
        let number = finding.code.number();
        Cause {
            span,
            line: sources.start(span).line,
            is_unread: number.starts_with('Y')
                || number.starts_with("M00")
                || number.starts_with("M01")
                || number.starts_with("M02")
                || matches!(
                    finding.code,
                    Code::UnknownConversion | Code::ConversionArguments | Code::UnknownOperation
                ),
            text: format!("{}\n{}\n{help}", &text[start..end], finding.message),
            line_length: end - start,
        }
    }

    /// Whether a finding only follows from this.
    fn explains(&self, finding: &Finding, sources: &Sources) -> bool {
        let same_file = finding.span.file == self.span.file;
        if let Some(within) = within(finding.code) {
            let near = match within {
                Within::Pack => true,
                Within::Block => same_file && self.is_in_block(finding.span, sources),
                Within::Value => {
                    same_file && finding.span.start <= self.span.start && self.span.end <= finding.span.end
                }
            };
            // Of a name that is declared and one that is used either may be the slip, so both places are shown.
            let text: &str = if within == Within::Pack { &self.text[..self.line_length] } else { &self.text };
            return near && names(&finding.message).any(|name| has_word(text, name));
        }
        let is_same = same_file && finding.span == self.span;
        OF_VALUES.contains(&finding.code)
            && self.is_unread
            && same_file
            && !is_same
            && sources.start(finding.span).line == self.line
    }

    /// Whether it stands in the block that begins on the line of a span: on that line, or on those that follow and stand
    /// further right.
    fn is_in_block(&self, head: Span, sources: &Sources) -> bool {
        let text = sources.text(head.file);
        let start = text[..head.start as usize].rfind('\n').map_or(0, |at| at + 1);
        let indent = |line: &str| line.len() - line.trim_start().len();
        let mut lines = text[start..].split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        let belongs = |line: &&str| line.trim().is_empty() || indent(line) > indent(first);
        let length: usize = first.len() + lines.take_while(belongs).map(str::len).sum::<usize>();
        (start..start + length).contains(&(self.span.start as usize))
    }
}

/// What a message names in backticks.
fn names(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches(':'))
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
    }
}
