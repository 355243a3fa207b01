//! Work that the data path hands to the shadow: the request concerned, and a future that calls the
//! other side when polled. The data path decides how to call and with which credential; this module
//! names the results.

use super::knowledge::Knowledge;
use super::phase::Phase;
use super::subject::{JobSubject, PlannedCall};
use crate::memory::MemoryShare;
use crate::secret::Secret;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::diff::{Candidate, Comparison, NotReadBack, SkipReason, View};
use switchback_json::Value;
use switchback_plan::{RouteId, SideId};

/// The request that two responses or a plan belong to, or an event.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Name of the served side.
    pub side: Arc<str>,
    pub serves: SideId,
    pub about: JobSubject,
    pub operation: Arc<str>,
    /// The phase of the operation at that time, and the period within it.
    pub phase: Phase,
    pub period: i64,
    /// The client's registered name.
    pub client: Arc<str>,
    /// Path and query as received. They are redacted before they are stored.
    pub target: String,
    pub request_id: String,
    /// Rules and contracts of the serving pack.
    pub knowledge: Arc<Knowledge>,
}

/// A request whose other side is to be called.
pub(crate) struct Job {
    pub subject: Subject,
    /// Calls the other side. Lazy: it starts when polled.
    pub work: BoxFuture<'static, Done>,
    /// The memory reservation for the data of `work`.
    pub share: MemoryShare,
}

/// The result of a job.
pub(crate) struct Done {
    pub outcomes: Vec<JobResult>,
    /// Credentials of the request and the calls, to be masked wherever they appear.
    pub secrets: Vec<Secret<String>>,
}

/// One result of a job.
pub(crate) enum JobResult {
    /// A comparison of the responses a client would see, made while both sides could still be
    /// called again.
    Compared(Comparison),
    /// A difference that did not repeat and that no change of the reference explains.
    Unsettled(Comparison),
    /// Two responses of one side to the same request: their differences are noise.
    Twice {
        first: View,
        second: View,
    },
    /// The plan of an effect that was not duplicated, with the status of the side that answered.
    Planned {
        planned: Planned,
        reference_status: u16,
    },
    /// Response times of the same read on both sides.
    Timed {
        reference: Duration,
        candidate: Duration,
    },
    /// An effect of a write, read back from both sides.
    ReadBack(ReadBack),
    /// A completed write whose effect was not read back.
    NotReadBack(NotReadBack),
    /// An event that only one side sent. `is_missing`: the reference side sent it.
    Unpaired {
        is_missing: bool,
        why: String,
    },
    Skipped(SkipReason),
}

/// The calls that the other side would have received for a request with effects.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Calls with an effect, in order. They were not sent.
    pub calls: Vec<PlannedCall>,
    /// Number of reads that the plan needed. They were made, after the effect on the side that
    /// answered.
    pub readings: u32,
    pub end: PlanEnd,
}

/// The point at which a plan stopped.
#[derive(Clone, Debug)]
pub(crate) enum PlanEnd {
    /// The plan is complete: no further call with an effect can follow. `status` is that of the
    /// planned response, if the plan reached one.
    Whole { status: Option<u16> },
    /// The continuation depends on the response to the last call, which was not made.
    Open,
    /// A read that the continuation depends on failed.
    Unread { why: String },
    /// The request cannot be translated to a call.
    Impossible { why: String },
}

/// A read of the same resource on both sides after a write.
#[derive(Clone, Debug)]
pub(crate) struct ReadBack {
    /// The read, a route of the served side.
    pub route: RouteId,
    pub reference: View,
    pub candidate: Candidate,
    /// A second read of the reference, after the candidate. If it differs from the first, another
    /// client wrote in between.
    pub again: View,
    /// Members of the request that the read should contain, if the candidate side performed the
    /// write.
    pub wanted: Option<Value>,
}
