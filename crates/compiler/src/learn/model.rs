//! Recorded calls, and what they show.

use crate::init::{OperationUse, slug};
use switchback_json::Value;
use switchback_plan::SideId;

/// A recorded call to one of the versions, with its answer.
#[derive(Debug, Clone)]
pub struct TrafficCall {
    /// The version.
    pub side: SideId,
    /// The method, in upper case.
    pub method: http::Method,
    /// Path and query below the base path of the version.
    pub target: String,
    /// The body of the request as JSON; of a form, its fields.
    pub sent: Option<Value>,
    /// Whether the body of the request is a form.
    pub is_form: bool,
    /// The status of the answer.
    pub status: u16,
    /// The body of the answer, if it is JSON.
    pub answer: Option<Value>,
    /// The client; `None` for a call of the gateway, which no client counts for.
    pub client: Option<String>,
    /// Number of the recorded exchange, which the calls of the gateway for it share.
    pub exchange: Option<u64>,
}

impl LearnedLine {
    /// Returns whether the members have the same name and equal values, so that no line is necessary.
    pub(super) fn is_same(&self) -> bool {
        self.places[0] == self.places[1]
            && self.conversion.is_none()
            && self.defaults.iter().all(Option::is_none)
            && self.against == 0
    }
}

impl TrafficCall {
    /// Returns the path and the query.
    pub(super) fn parts(&self) -> (&str, &str) {
        self.target.split_once('?').unwrap_or((&self.target, ""))
    }
}

/// The strength of the evidence for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Enough distinct values agree, none contradicts, and no other member explains them as well.
    Sure,
    /// The values agree, but they are few, or another member explains them as well.
    Likely,
}

/// A line of a shape that the traffic supports.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedLine {
    /// Id for acceptance.
    pub id: String,
    /// Names of the types in the contracts, or the operation and place of one without a name.
    pub types: [String; 2],
    /// Places of the members in these types.
    pub places: [String; 2],
    /// The conversion, as written after `as:`.
    pub conversion: Option<String>,
    /// By side, JSON text of the value that it has where the other side has none.
    pub defaults: [Option<String>; 2],
    /// Whether the old member repeats a place that another one already has.
    pub is_copy: bool,
    /// Observations that agree.
    pub supports: usize,
    /// Observations that contradict.
    pub against: usize,
    /// Distinct values that agree.
    pub distinct: usize,
    /// Information of the agreement in bits.
    pub bits: f64,
    /// Other explanations of the same values.
    pub rivals: Vec<String>,
    /// For members of requests, the types of the answers that repeat their values.
    pub through: Option<[String; 2]>,
    /// Strength of the evidence.
    pub confidence: Confidence,
}

/// A member of the old side that another answer of the new side contains.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedJoin {
    /// The type of the old side.
    pub ty: String,
    /// Place of the member.
    pub place: String,
    /// Place in the new object of the id of the other resource.
    pub via: String,
    /// The operation that reads the other resource, and the place of its objects in the answer.
    pub operation: String,
    /// Place of the value in the other resource.
    pub found: String,
    /// The conversion, as written after `as:`.
    pub conversion: Option<String>,
    /// Observations that agree.
    pub supports: usize,
    /// Distinct values that agree.
    pub distinct: usize,
}

/// Two operations whose answers describe the same resources.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationLink {
    /// Keys of the operations, old side first.
    pub operations: [String; 2],
    /// Members with equal values; `{}` is the last variable of the path.
    pub keys: [String; 2],
    /// Number of objects that both answers contain.
    pub objects: usize,
    /// Share of the informative values that agree.
    pub agreement: f64,
}

/// Members with the same name and unrelated values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameConflict {
    /// Names of the types.
    pub types: [String; 2],
    /// The place on both sides.
    pub place: String,
    /// Number of objects in which both are present.
    pub objects: usize,
}

/// The findings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learned {
    /// Names of the sides.
    pub sides: [String; 2],
    /// Number of calls by side.
    pub calls: [u64; 2],
    /// Operations of the old side, most called first.
    pub operations: Vec<OperationUse>,
    /// Calls that match no operation of their side's contract.
    pub unknown: u64,
    /// The best counterpart of each operation of the old side with linked objects.
    pub links: Vec<OperationLink>,
    /// Lines that the traffic supports, sure ones first.
    pub lines: Vec<LearnedLine>,
    /// Members of another answer.
    pub joins: Vec<LearnedJoin>,
    /// Members with the same name and equal values.
    pub same: Vec<LearnedLine>,
    /// Members with the same name and unrelated values.
    pub conflicts: Vec<NameConflict>,
}

/// Types and places of a line.
pub(super) type LineKey = ([String; 2], [String; 2]);

/// Returns the id of a line, for acceptance.
pub(super) fn line_id(types: &[String; 2], places: &[String; 2]) -> String {
    slug(&format!("{} {} is {} {}", types[0], places[0], types[1], places[1]))
}
