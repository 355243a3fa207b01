//! What a comparison says.

use crate::redact::Sample;
use serde::{Deserialize, Serialize};
use std::fmt;
use switchback_plan::Origin;

/// One way in which two answers differ. Equal differences in several elements of a list are one finding with a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Where, the first time: `status`, `header location`, `answer`, or a place of the body such as `$[3].name`. Indices
    /// count in the reference; for [`FindingKind::Extra`], in the candidate.
    pub place: String,
    /// The place with every index as `*`: `$[*].name`. What findings are counted by.
    pub pattern: String,
    /// How the two differ there.
    pub kind: FindingKind,
    /// What is behind it, as far as the plan tells.
    pub cause: Cause,
    /// In how many places of this pair of answers.
    pub times: u32,
    /// What the reference has there, redacted; none when it has nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Sample>,
    /// What the candidate has there, redacted; none when it has nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Sample>,
    /// What was wrong, in words, where no values tell it: why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nothing = "nothing".to_owned();
        let shown =
            |sample: &Option<Sample>| sample.as_ref().map_or_else(|| nothing.clone(), Sample::to_string);
        write!(out, "{}: {}, ", self.place, self.kind.word())?;
        match &self.detail {
            Some(detail) => out.write_str(detail)?,
            None => write!(out, "{} became {}", shown(&self.reference), shown(&self.candidate))?,
        }
        match self.cause.line() {
            Some(line) if !line.starts_with(':') => write!(out, " ({line})"),
            _ => Ok(()),
        }
    }
}

/// In which way two answers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The reference has it, the candidate does not. Null counts as having.
    Missing,
    /// The candidate has it, the reference does not.
    Extra,
    /// Both have it, as values of different JSON kinds.
    Type,
    /// Both have it, with different values.
    Value,
    /// Both have the same number, written differently.
    Spelling,
    /// Both have a text for people, in different languages.
    Language,
    /// The same elements in another order.
    Order,
    /// Both answered, with different statuses.
    Status,
    /// A compared header field is there on one side only, or has another value.
    Header,
    /// The candidate did not answer in time.
    Late,
    /// The candidate gave no answer that a client could have read.
    Unanswered,
}

impl FindingKind {
    /// All of them, in the order of reports.
    pub const ALL: [FindingKind; 11] = [
        FindingKind::Missing,
        FindingKind::Extra,
        FindingKind::Type,
        FindingKind::Value,
        FindingKind::Spelling,
        FindingKind::Language,
        FindingKind::Order,
        FindingKind::Status,
        FindingKind::Header,
        FindingKind::Late,
        FindingKind::Unanswered,
    ];

    /// The kind in a word, as it is stored and as metrics are labelled.
    pub fn word(self) -> &'static str {
        match self {
            FindingKind::Missing => "missing",
            FindingKind::Extra => "extra",
            FindingKind::Type => "type",
            FindingKind::Value => "value",
            FindingKind::Spelling => "spelling",
            FindingKind::Language => "language",
            FindingKind::Order => "order",
            FindingKind::Status => "status",
            FindingKind::Header => "header",
            FindingKind::Late => "late",
            FindingKind::Unanswered => "unanswered",
        }
    }
}

/// What is behind a difference. A line is `file:line` of the mapping.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Cause {
    /// This line makes the value out of something else: the line is wrong, or what it reads is.
    Made {
        /// `file:line` of the mapping.
        line: String,
    },
    /// This line copies the value as it is: the two services disagree, or the line names the wrong place.
    Copied {
        /// `file:line` of the mapping.
        line: String,
    },
    /// No line makes this member; the nearest is the one that makes what is around it. The old service has something that
    /// its contract does not show, or the mapping forgets it.
    Unmapped {
        /// `file:line` of the mapping.
        line: String,
    },
    /// The other service: it did not answer, or not so that a client could have read it.
    Upstream,
    /// The gateway ended the call itself.
    Gateway,
}

impl Cause {
    pub(super) fn made(origin: &Origin) -> Cause {
        Cause::Made { line: line(origin) }
    }

    pub(super) fn copied(origin: &Origin) -> Cause {
        Cause::Copied { line: line(origin) }
    }

    pub(super) fn unmapped(origin: &Origin) -> Cause {
        Cause::Unmapped { line: line(origin) }
    }

    /// The line to look at, if the mapping has to do with it.
    pub fn line(&self) -> Option<&str> {
        match self {
            Cause::Made { line } | Cause::Copied { line } | Cause::Unmapped { line } => Some(line),
            Cause::Upstream | Cause::Gateway => None,
        }
    }
}

fn line(origin: &Origin) -> String {
    format!("{}:{}", origin.file, origin.line)
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Made { line } => write!(out, "made by {line}"),
            Cause::Copied { line } => write!(out, "copied by {line}"),
            Cause::Unmapped { line } => write!(out, "made by no line; nearest is {line}"),
            Cause::Upstream => out.write_str("the other service"),
            Cause::Gateway => out.write_str("the gateway"),
        }
    }
}

/// What came of comparing two answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// In the order of the answer; no two of one pattern, kind and cause.
    pub findings: Vec<Finding>,
    /// Findings beyond the most that are kept.
    #[serde(default)]
    pub more: u32,
    /// Whether all of the bodies was looked at.
    pub coverage: Coverage,
    /// Differences that are no findings.
    #[serde(default)]
    pub excused: Excused,
}

/// How much of the bodies was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All of both.
    #[default]
    Whole,
    /// The beginning only: the rest may differ or not.
    Sample,
}

/// Differences that are no findings, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excused {
    /// Listed by the pack's report as lost.
    pub expected: u32,
    /// Declared as noise by the pack.
    pub declared: u32,
    /// Differ as well when one side is asked twice.
    pub learnt: u32,
}

/// A comparison in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No difference, and all was looked at.
    Equal,
    /// At least one finding.
    Different,
    /// No difference in what was looked at, which was not all.
    EqualSoFar,
}

impl Comparison {
    /// The comparison in a word: different as soon as anything was found.
    pub fn verdict(&self) -> Verdict {
        match (self.findings.is_empty() && self.more == 0, self.coverage) {
            (false, _) => Verdict::Different,
            (true, Coverage::Whole) => Verdict::Equal,
            (true, Coverage::Sample) => Verdict::EqualSoFar,
        }
    }

    /// The part of it that a later comparison of the same two sides finds too, at places where one side did not contradict
    /// itself meanwhile (`moved`: two answers of it).
    pub fn lasting(&self, later: &Comparison, moved: &Comparison) -> Comparison {
        let is_of = |finding: &Finding, other: &Finding| {
            finding.pattern == other.pattern && finding.kind == other.kind && finding.cause == other.cause
        };
        let mut lasting = self.apart_from(moved);
        lasting.findings.retain(|finding| later.findings.iter().any(|other| is_of(finding, other)));
        lasting
    }

    /// The part of it at places where one side did not contradict itself (`moved`: two answers of it).
    pub fn apart_from(&self, moved: &Comparison) -> Comparison {
        let mut apart = self.clone();
        let is_moved =
            |finding: &Finding| moved.findings.iter().any(|other| overlap(&finding.pattern, &other.pattern));
        apart.findings.retain(|finding| !is_moved(finding));
        // Findings that were only counted cannot be looked up in another comparison.
        apart.more = 0;
        apart
    }
}

/// Whether one of two places is within the other.
fn overlap(one: &str, other: &str) -> bool {
    let is_within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    is_within(one, other) || is_within(other, one)
}
