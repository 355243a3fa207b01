//! Reasons why a comparison did not take place, and why the effect of a write was not read back.

use serde::{Deserialize, Serialize};

/// The reason why a request selected for comparison was not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The queue of pending pairs is full.
    Queue,
    /// The memory budget has no room for another body.
    Memory,
    /// The shadow's own rate limit is reached.
    Budget,
    /// The client disconnected before it had its answer.
    ClientGone,
    /// The side that answers the client failed.
    PrimaryFailed,
    /// The reference did not answer, or answered with a failure of its own.
    ReferenceFailed,
    /// The candidate did not answer, or not in time. That is no evidence about the mapping.
    CandidateFailed,
    /// The other side has no valid credential. The shadow never refreshes one.
    Credential,
    /// The pack refuses the call, or the call contains a cursor that only one side understands.
    Refused,
    /// The answering side rejected the write, so its plan and effect are no evidence.
    NotAccepted,
    /// Neither the request nor the answer identifies the resource to read back.
    Unaddressed,
    /// The service rejected the request that reads back the effect.
    Unreadable,
    /// The reference changed during the comparison.
    Moved,
    /// The request's body exceeds the buffered part.
    TooLarge,
    /// The comparison exceeded its time limit.
    Time,
    /// The comparison panicked.
    Panicked,
    /// The gateway is shutting down.
    Stopping,
    /// The active pack changed after the first of the two calls was translated.
    Replaced,
}

impl SkipReason {
    /// All reasons, in the order of reports.
    pub const ALL: [SkipReason; 18] = [
        SkipReason::Queue,
        SkipReason::Memory,
        SkipReason::Budget,
        SkipReason::ClientGone,
        SkipReason::PrimaryFailed,
        SkipReason::ReferenceFailed,
        SkipReason::CandidateFailed,
        SkipReason::Credential,
        SkipReason::Refused,
        SkipReason::NotAccepted,
        SkipReason::Unaddressed,
        SkipReason::Unreadable,
        SkipReason::Moved,
        SkipReason::TooLarge,
        SkipReason::Time,
        SkipReason::Panicked,
        SkipReason::Stopping,
        SkipReason::Replaced,
    ];

    /// Returns the metric label.
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Queue => "queue",
            SkipReason::Memory => "memory",
            SkipReason::Budget => "budget",
            SkipReason::ClientGone => "client_gone",
            SkipReason::PrimaryFailed => "primary_failed",
            SkipReason::ReferenceFailed => "reference_failed",
            SkipReason::CandidateFailed => "candidate_failed",
            SkipReason::Credential => "credential",
            SkipReason::Refused => "refused",
            SkipReason::NotAccepted => "not_accepted",
            SkipReason::Unaddressed => "unaddressed",
            SkipReason::Unreadable => "unreadable",
            SkipReason::Moved => "moved",
            SkipReason::TooLarge => "too_large",
            SkipReason::Time => "time",
            SkipReason::Panicked => "panicked",
            SkipReason::Stopping => "stopping",
            SkipReason::Replaced => "replaced",
        }
    }

    /// Returns the reason in words, for reports and pages.
    pub fn words(self) -> &'static str {
        match self {
            SkipReason::Queue => "the queue was full",
            SkipReason::Memory => "no memory for the body",
            SkipReason::Budget => "the shadow's limit of calls was reached",
            SkipReason::ClientGone => "the client left",
            SkipReason::PrimaryFailed => "the answering side failed",
            SkipReason::ReferenceFailed => "the reference did not answer",
            SkipReason::CandidateFailed => "the candidate did not answer",
            SkipReason::Credential => "no valid credential for the other side",
            SkipReason::Refused => "refused by the pack, or a cursor of one side",
            SkipReason::NotAccepted => "the answering side did not accept the write",
            SkipReason::Unaddressed => "no address to read back",
            SkipReason::Unreadable => "the reading after the write was refused",
            SkipReason::Moved => "the data changed during the comparison",
            SkipReason::TooLarge => "the body is too large",
            SkipReason::Time => "no time left",
            SkipReason::Panicked => "a defect of the comparison",
            SkipReason::Stopping => "the gateway was stopping",
            SkipReason::Replaced => "another pack was loaded",
        }
    }
}

/// The reason why the effect of a successful write was not read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotReadBack {
    /// The configuration disables reading back.
    Off,
    /// The pack declares no operation that reads back the write.
    Undeclared,
    /// The write is not part of the sample.
    NotSampled,
}

impl NotReadBack {
    /// Returns the reason in words, for reports and pages.
    pub fn words(self) -> &'static str {
        match self {
            NotReadBack::Off => "`shadow.read_back` is 0",
            NotReadBack::Undeclared => "the pack declares no reading for it in `compare.read_back`",
            NotReadBack::NotSampled => "not in the sample of `shadow.read_back`",
        }
    }
}
