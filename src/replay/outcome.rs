//! Results of a replay.

use std::fmt;
use switchback_engine::diff::{Coverage, Finding};

/// The result of one replayed exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOutcome {
    /// Side and operation, such as `v1 GET /things/{id}`; `None` without a match.
    pub operation: Option<String>,
    /// The calls of the plan in order, as `GET /things/7`.
    pub calls: Vec<String>,
    pub verdict: ReplayVerdict,
    /// Whether masked values of the answer were compared by their kind alone.
    pub is_by_kind: bool,
}

/// The conclusion about the pack.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayVerdict {
    /// Calls and answer are equal.
    Same,
    /// The calls are equal. One of them is a write that was planned and not sent, so there is no
    /// answer to compare.
    SameCalls,
    Changed(Vec<ReplayChange>),
    /// The answer cannot be judged.
    Unknown(UnknownReason),
}

/// Why an answer cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownReason {
    /// The exchange is no call of the API.
    Foreign,
    /// The request's body was not recorded or is truncated.
    NoRequestBody,
    /// The reply to the plan's last call was not recorded.
    NoReply,
    /// The answer or its body was not recorded.
    NoAnswer,
    /// The old service answered, and the other side was not called.
    Forwarded,
    /// The gateway answered by itself, before or instead of its calls; with the outcome.
    Unanswered(String),
    /// A recorded call failed.
    CallUnanswered,
    /// The shadow reached no answer; with the reason.
    ShadowDropped(String),
    /// The plan read an archive of the gateway, which the recording does not include.
    Recalled,
    /// The request has a sealed cursor, which a replay cannot open.
    Cursor,
    /// The gateway resumed from a cached page position, which the recording does not include.
    Position,
    /// The exchange has effects, which are not permitted.
    Effects,
    /// The service could not be called.
    Unreachable(String),
    /// Only a part of the answer was compared. That part is equal.
    Sampled,
}

/// A difference.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayChange {
    /// The client would receive another answer.
    Answer(Finding),
    /// The plan makes a call that was not recorded.
    NewCall { number: usize, call: String },
    /// The plan no longer makes a recorded call.
    LostCall { call: String },
    /// A call has another body.
    CallBody { number: usize, call: String, finding: Finding },
    /// The plan fails; the client would receive an error of the gateway.
    Fault { detail: String },
}

impl ReplayVerdict {
    /// Returns the verdict on a comparison without differences.
    pub(super) fn of_equal(coverage: Coverage) -> ReplayVerdict {
        match coverage {
            Coverage::Whole => ReplayVerdict::Same,
            Coverage::Sample => ReplayVerdict::Unknown(UnknownReason::Sampled),
        }
    }
}

impl fmt::Display for UnknownReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            UnknownReason::Foreign => "not a call of the API",
            UnknownReason::NoRequestBody => "the body of the request was not recorded",
            UnknownReason::NoReply => "no reply to the last call was recorded",
            UnknownReason::Unanswered(outcome) => {
                return write!(out, "the gateway answered it itself: {}", outcome.replace('_', " "));
            }
            UnknownReason::CallUnanswered => "a call got no answer when it was recorded",
            UnknownReason::ShadowDropped(why) => {
                return write!(out, "the shadow came to no answer: {}", why.replace('_', " "));
            }
            UnknownReason::Recalled => "its plan read something that the gateway keeps",
            UnknownReason::Cursor => "it asks for a page by a cursor that the gateway sealed",
            UnknownReason::Position => "its page was read from a position that the gateway remembered",
            UnknownReason::NoAnswer => "the answer was not recorded",
            UnknownReason::Forwarded => "the old service answered it, and nobody asked the other side",
            UnknownReason::Effects => "it has effects, and only reads are sent",
            UnknownReason::Unreachable(why) => return write!(out, "the service could not be asked: {why}"),
            UnknownReason::Sampled => "only a part of the answer was compared, and that part is the same",
        };
        out.write_str(said)
    }
}

impl fmt::Display for ReplayChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayChange::Answer(finding) => write!(out, "answer: {finding}"),
            ReplayChange::NewCall { number, call } => write!(out, "call {number} is new: {call}"),
            ReplayChange::LostCall { call } => write!(out, "no longer called: {call}"),
            ReplayChange::CallBody { number, call, finding } => {
                write!(out, "call {number}, {call}: {finding}")
            }
            ReplayChange::Fault { detail } => write!(out, "cannot be answered: {detail}"),
        }
    }
}
