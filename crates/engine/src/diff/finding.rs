//! Result types of a comparison.

use crate::redact::Sample;
use serde::{Deserialize, Serialize};
use std::fmt;
use switchback_plan::Origin;

/// One difference between two answers. Equal differences in several elements of a list are one
/// finding with a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// First place of the difference: `status`, `header location`, `answer`, or a path in the body
    /// such as `$[3].name`. Indices refer to the reference, or for [`FindingKind::Extra`] to the
    /// candidate.
    pub place: String,
    /// The place with every index replaced by `*`, such as `$[*].name`. Findings are counted by
    /// pattern.
    pub pattern: String,
    /// How the answers differ there.
    pub kind: FindingKind,
    /// The probable cause, as far as the plan reveals it.
    pub cause: Cause,
    /// Number of places with this difference in this pair of answers.
    pub times: u32,
    /// The redacted value of the reference, or `None` if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Sample>,
    /// The redacted value of the candidate, or `None` if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Sample>,
    /// Description of the difference where no two values show it, such as the reason for a missing
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Finding {
    /// Creates a finding at a single place, without values.
    pub fn new(place: &str, kind: FindingKind, cause: Cause) -> Finding {
        Finding {
            place: place.to_owned(),
            pattern: place.to_owned(),
            kind,
            cause,
            times: 1,
            reference: None,
            candidate: None,
            detail: None,
        }
    }
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
            // An unknown origin has an empty file name.
            Some(line) if !line.starts_with(':') => write!(out, " ({line})"),
            _ => Ok(()),
        }
    }
}

/// The way in which two answers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Present in the reference only. A null counts as present.
    Missing,
    /// Present in the candidate only.
    Extra,
    /// Values of different JSON types.
    Type,
    /// Different values.
    Value,
    /// The same number, spelled differently.
    Spelling,
    /// Human-readable texts in different languages.
    Language,
    /// The same elements in a different order.
    Order,
    /// Different statuses.
    Status,
    /// A compared header field is present on one side only, or its values differ.
    Header,
    /// The candidate did not answer in time.
    Late,
    /// The candidate sent no answer that a client could have read.
    Unanswered,
}

impl FindingKind {
    /// All kinds, in the order of reports.
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

    /// Returns the word for this kind in the store and in metric labels.
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

/// The probable cause of a difference. A line is `file:line` of the mapping.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Cause {
    /// This line computes the value. Either the line or its input is wrong.
    Made {
        /// `file:line` of the mapping.
        line: String,
    },
    /// This line copies the value unchanged. Either the services disagree, or the line names the
    /// wrong place.
    Copied {
        /// `file:line` of the mapping.
        line: String,
    },
    /// No line produces this member; the given one produces its parent. Either the legacy service
    /// returns a member that its contract does not declare, or the mapping lacks it.
    Unmapped {
        /// `file:line` of the mapping.
        line: String,
    },
    /// The other service did not answer, or sent an answer that a client could not have read.
    Upstream,
    /// The gateway itself ended the call.
    Gateway,
}

impl Cause {
    pub(super) fn from_value(origin: &Origin) -> Cause {
        Cause::Made { line: origin.to_string() }
    }

    pub(super) fn from_copy(origin: &Origin) -> Cause {
        Cause::Copied { line: origin.to_string() }
    }

    pub(super) fn no_line(origin: &Origin) -> Cause {
        Cause::Unmapped { line: origin.to_string() }
    }

    /// Returns the responsible line, if the mapping is involved.
    pub fn line(&self) -> Option<&str> {
        match self {
            Cause::Made { line } | Cause::Copied { line } | Cause::Unmapped { line } => Some(line),
            Cause::Upstream | Cause::Gateway => None,
        }
    }
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

/// The result of comparing two answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// Findings in the order of the answer. Each combination of pattern, kind and cause is unique.
    pub findings: Vec<Finding>,
    /// Number of findings beyond the limit.
    #[serde(default)]
    pub more: u32,
    /// Whether the bodies were compared completely.
    pub coverage: Coverage,
    /// Differences that are not findings.
    #[serde(default)]
    pub excused: Excused,
}

/// How much of the bodies was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Both bodies, completely.
    #[default]
    Whole,
    /// Only the start. The rest may or may not differ.
    Sample,
}

/// Number of differences that are not findings, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excused {
    /// The pack's report lists the value as lost.
    pub expected: u32,
    /// The pack declares noise.
    pub declared: u32,
    /// Two readings of one side differ there as well.
    pub learnt: u32,
}

/// The summary of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A full comparison without differences.
    Equal,
    /// At least one finding.
    Different,
    /// A comparison by sample without differences.
    EqualSoFar,
}

impl Comparison {
    /// Returns the verdict. Any finding makes it [`Verdict::Different`].
    pub fn verdict(&self) -> Verdict {
        match (self.findings.is_empty() && self.more == 0, self.coverage) {
            (false, _) => Verdict::Different,
            (true, Coverage::Whole) => Verdict::Equal,
            (true, Coverage::Sample) => Verdict::EqualSoFar,
        }
    }

    /// Returns the findings that `later`, another comparison of the two sides, repeats. Places at
    /// which `moved`, a comparison of two answers of one side, differs are excluded.
    pub fn lasting(&self, later: &Comparison, moved: &Comparison) -> Comparison {
        let is_of = |finding: &Finding, other: &Finding| {
            finding.pattern == other.pattern && finding.kind == other.kind && finding.cause == other.cause
        };
        let mut lasting = self.apart_from(moved);
        lasting.findings.retain(|finding| later.findings.iter().any(|other| is_of(finding, other)));
        lasting
    }

    /// Returns the findings outside the places at which `moved`, a comparison of two answers of one
    /// side, differs.
    pub fn apart_from(&self, moved: &Comparison) -> Comparison {
        let mut apart = self.clone();
        let is_moved =
            |finding: &Finding| moved.findings.iter().any(|other| overlap(&finding.pattern, &other.pattern));
        apart.findings.retain(|finding| !is_moved(finding));
        // Findings that were only counted cannot be matched with those of another comparison.
        apart.more = 0;
        apart
    }
}

/// Returns whether one of two places contains the other.
fn overlap(one: &str, other: &str) -> bool {
    let is_within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    is_within(one, other) || is_within(other, one)
}
