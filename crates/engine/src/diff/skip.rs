//! Why a comparison did not take place, and why the effect of a write was not read back.

use serde::{Deserialize, Serialize};

/// The reason why a request that was to be compared was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Too many pairs wait already.
    Queue,
    /// There is no room for another body.
    Memory,
    /// The shadow's own limit of calls.
    Budget,
    /// The client left before it had its answer.
    ClientGone,
    /// The side that answers the client did not.
    PrimaryFailed,
    /// The side that clients know did not answer, or with a failure of its own: there is nothing to compare with.
    ReferenceFailed,
    /// The other side did not answer, or not in time: that proves nothing of the mapping.
    CandidateFailed,
    /// There is no valid credential for the other side; the shadow renews none.
    Credential,
    /// The pack refuses the call, or the call continues at a cursor that only one side can read.
    Refused,
    /// The side that answers did not accept the write: its plan and its effect prove nothing.
    NotAccepted,
    /// Neither request nor answer name the reading that shows the effect.
    Unaddressed,
    /// The service refused the reading after a write, so the effect is unknown.
    Unreadable,
    /// The reference changed while it was read.
    Moved,
    /// The request's body is larger than the part of it that is buffered.
    TooLarge,
    /// The work on it did not end in time.
    Time,
    /// The work on it has a defect.
    Panicked,
    /// The gateway stops.
    Stopping,
    /// Another pack serves than the one by which the first of the two was translated.
    Replaced,
}

impl SkipReason {
    /// All of them, in the order of reports.
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

    /// The label value of metrics.
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

    /// The reason in words, for reports and pages.
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

/// The reason why the effect of a write was not read back although the write was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotReadBack {
    /// The configuration reads no write back.
    Off,
    /// The pack declares no reading for the write.
    Undeclared,
    /// The sample did not take this write.
    NotSampled,
}

impl NotReadBack {
    /// The reason in words, for reports and pages.
    pub fn words(self) -> &'static str {
        match self {
            NotReadBack::Off => "`shadow.read_back` is 0",
            NotReadBack::Undeclared => "the pack declares no reading for it in `compare.read_back`",
            NotReadBack::NotSampled => "not in the sample of `shadow.read_back`",
        }
    }
}
