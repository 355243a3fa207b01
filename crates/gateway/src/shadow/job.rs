//! What the data path hands over: about which request, and work that asks the other side once it is polled. How it asks, and
//! with which credential, stays with the data path; what comes of it is named here.

use super::knowledge::Knowledge;
use super::phase::Phase;
use crate::memory::Share;
use crate::secret::Secret;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Method;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::diff::{Candidate, Comparison, NotReadBack, SkipReason, View};
use switchback_json::Value;
use switchback_plan::{RouteId, SideId};

/// What is compared: the answers to an operation, or an event of the pack, by its place among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Route(RouteId),
    Event(usize),
}

/// The request that two answers, or a plan, belong to; or an event.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Name of the served side.
    pub side: Arc<str>,
    pub serves: SideId,
    pub about: About,
    pub operation: Arc<str>,
    /// The phase that the operation was in, and which period in it that was.
    pub phase: Phase,
    pub period: i64,
    /// The enrolled client's name.
    pub client: Arc<str>,
    /// Path and query as they came. Redacted before anyone keeps them.
    pub target: String,
    pub request_id: String,
    /// What is known of the pack that serves.
    pub knowledge: Arc<Knowledge>,
}

/// A request whose other side is to be asked.
pub(crate) struct Job {
    pub subject: Subject,
    /// Asks; nothing happens before it is polled.
    pub work: BoxFuture<'static, Done>,
    /// The memory of what `work` holds.
    pub share: Share,
}

/// What came of asking.
pub(crate) struct Done {
    pub outcomes: Vec<Outcome>,
    /// What must not be shown, whoever repeats it: the credentials of the request and of the calls.
    pub secrets: Vec<Secret<String>>,
}

/// One thing that came of it.
pub(crate) enum Outcome {
    /// What the client would have seen of either side, compared while both could still be asked once more.
    Compared(Comparison),
    /// A difference that did not repeat, and that no change of the reference explains.
    Unsettled(Comparison),
    /// Two answers of one side to the same request: what differs between them is noise.
    Twice {
        first: View,
        second: View,
    },
    /// An effect that was not made twice: what would have been sent.
    /// With the status that the side that answered gave.
    Planned {
        planned: Planned,
        reference_status: u16,
    },
    /// How long the shadow waited for the same reading of either side.
    Timed {
        reference: Duration,
        candidate: Duration,
    },
    /// What a client would see of an effect on either side.
    ReadBack(ReadBack),
    /// A write was done, and its effect was not read back.
    NotReadBack(NotReadBack),
    /// An event that one side alone sent: `is_missing` where it was the one that receivers know.
    Unpaired {
        is_missing: bool,
        why: String,
    },
    Skipped(SkipReason),
}

/// What the other side would have been sent for a request with effects.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Calls with an effect, in their order. None of them was made.
    pub calls: Vec<PlannedCall>,
    /// Readings that the plan needed, which were made: after the effect on the side that answered.
    pub readings: u32,
    pub end: PlanEnd,
}

/// How far a plan was followed.
#[derive(Clone, Debug)]
pub(crate) enum PlanEnd {
    /// No further call with an effect can follow. With the status of the answer, where the plan came to one.
    Whole { status: Option<u16> },
    /// What follows depends on the answer to the last call, which nobody gave.
    Open,
    /// A reading that what follows depends on brought nothing.
    Unread { why: String },
    /// No call can be made of what was asked for.
    Impossible { why: String },
}

/// The same thing, read on both sides after it was written.
#[derive(Clone, Debug)]
pub(crate) struct ReadBack {
    /// The reading, a route of the served side.
    pub route: RouteId,
    pub reference: View,
    pub candidate: Candidate,
    /// The reference once more, after the candidate: where it is another one by then, somebody else wrote as well.
    pub again: View,
    /// Members of the request that the reading should show, where the candidate's side did the write.
    pub wanted: Option<Value>,
}

/// A call that was not made.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCall {
    /// As the contract of the called side writes it.
    pub operation: Arc<str>,
    pub method: Method,
    /// Path and query below the upstream's base.
    pub target: String,
    pub body: Option<Bytes>,
}
