//! What came of running an exchange again.

use std::fmt;
use switchback_engine::diff::{Coverage, Finding};

/// One exchange, run again.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Side and operation, such as `v1 GET /things/{id}`; none where nothing matched.
    pub operation: Option<String>,
    /// The calls that the plan made, in their order, as `GET /things/7`.
    pub calls: Vec<String>,
    pub verdict: Verdict,
}

/// What it says of the pack.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Neither the calls nor the answer changed.
    Same,
    /// The calls are the same. One of them is a write that was planned and not sent, so that there is no answer to compare.
    SameCalls,
    Changed(Vec<Change>),
    /// Nothing can be said of the answer; what is said of the calls holds.
    Unknown(Unknown),
}

/// Why nothing can be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Not a call of the API.
    Foreign,
    /// The request's body was not recorded, or was cut.
    NoRequestBody,
    /// The reply to the plan's last call was not recorded.
    NoReply,
    /// The answer, or its body, was not recorded.
    NoAnswer,
    /// The old service answered it when it was recorded, and nobody asked the other side.
    Forwarded,
    /// The gateway answered it by itself when it was recorded, before or instead of its calls; with the outcome.
    Unanswered(String),
    /// A call got no answer when it was recorded.
    CallUnanswered,
    /// The shadow came to no answer when it was recorded; with the reason.
    ShadowDropped(String),
    /// The plan read something that the gateway keeps, which the recording does not hold.
    Recalled,
    /// The request asks for a page by a cursor that the gateway sealed, which a replay cannot open.
    Cursor,
    /// The gateway read the page from a position that it remembered, which the recording does not hold.
    Position,
    /// It has effects, and those were not allowed.
    Effects,
    /// The service could not be asked.
    Unreachable(String),
    /// Only a part of the answer was compared, and that part is the same.
    Sampled,
}

/// One thing that changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The client would see another answer.
    Answer(Finding),
    /// The plan asks for a call that was not made when the exchange was recorded.
    NewCall { number: usize, call: String },
    /// A call that was made is not made any more.
    LostCall { call: String },
    /// A call is made with another body.
    CallBody { number: usize, call: String, finding: Finding },
    /// The plan cannot answer at all; the client gets an error of the gateway's.
    Fault { detail: String },
}

impl Verdict {
    /// What a comparison that found nothing says.
    pub(super) fn of_equal(coverage: Coverage) -> Verdict {
        match coverage {
            Coverage::Whole => Verdict::Same,
            Coverage::Sample => Verdict::Unknown(Unknown::Sampled),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            Unknown::Foreign => "not a call of the API",
            Unknown::NoRequestBody => "the body of the request was not recorded",
            Unknown::NoReply => "no reply to the last call was recorded",
            Unknown::Unanswered(outcome) => {
                return write!(out, "the gateway answered it itself: {}", outcome.replace('_', " "));
            }
            Unknown::CallUnanswered => "a call got no answer when it was recorded",
            Unknown::ShadowDropped(why) => {
                return write!(out, "the shadow came to no answer: {}", why.replace('_', " "));
            }
            Unknown::Recalled => "its plan read something that the gateway keeps",
            Unknown::Cursor => "it asks for a page by a cursor that the gateway sealed",
            Unknown::Position => "its page was read from a position that the gateway remembered",
            Unknown::NoAnswer => "the answer was not recorded",
            Unknown::Forwarded => "the old service answered it, and nobody asked the other side",
            Unknown::Effects => "it has effects, and only reads are sent",
            Unknown::Unreachable(why) => return write!(out, "the service could not be asked: {why}"),
            Unknown::Sampled => "only a part of the answer was compared, and that part is the same",
        };
        out.write_str(said)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Answer(finding) => write!(out, "answer: {finding}"),
            Change::NewCall { number, call } => write!(out, "call {number} is new: {call}"),
            Change::LostCall { call } => write!(out, "no longer called: {call}"),
            Change::CallBody { number, call, finding } => write!(out, "call {number}, {call}: {finding}"),
            Change::Fault { detail } => write!(out, "cannot be answered: {detail}"),
        }
    }
}
