//! Inputs and outputs of a run: replies, the next call, and the end. Data only; `run` contains the
//! logic.

use bytes::Bytes;
use http::{HeaderMap, Method};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use switchback_plan::{ArchiveId, Effect, HostId, Refusal};

/// The result of the last step.
#[derive(Clone, Debug)]
pub enum Event {
    /// The first event of every run.
    Start,
    /// The reply to the call, with any status.
    Reply(Reply),
    /// The call got no usable reply.
    Failed(Failed),
    /// The archive entries for the keys of a [`Lookup`], in the same order.
    Recalled(Vec<Option<Entry>>),
    /// The entries were stored.
    Kept,
    /// The pause of a [`Wait`] is over.
    Waited {
        /// Start of the step's polling by the caller's clock, to be passed to its next [`Wait`].
        since: Duration,
    },
    /// No time is left for another pause.
    Late,
}

/// An archive entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Seconds since the entry was stored.
    pub age: u64,
    /// JSON text. `None` if the entry consists of its key only.
    pub value: Option<Bytes>,
}

/// A reply of the other side.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body after decoding of content codings; empty if missing.
    pub body: Bytes,
}

/// A call without a usable reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The kind of failure.
    pub kind: FailKind,
    /// A text for the log; may be empty.
    pub detail: String,
}

impl Failed {
    /// Returns the failure for a reply that cannot be used.
    pub fn broken(detail: impl Into<String>) -> Failed {
        Failed { kind: FailKind::Broken, detail: detail.into() }
    }
}

/// The reason why a call got no usable reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailKind {
    /// The connection failed. The service did not receive the call.
    Unreachable,
    /// The reply timed out. The service may have acted.
    Timeout,
    /// The connection was closed before the end of the reply.
    Closed,
    /// The reply is too large, is not HTTP, or violates the contract.
    Broken,
}

impl From<FailKind> for Event {
    fn from(kind: FailKind) -> Event {
        Event::Failed(Failed { kind, detail: String::new() })
    }
}

/// The next step of a run.
#[derive(Clone, Debug)]
pub enum Next {
    /// Make this call, then continue with [`Event::Reply`] or [`Event::Failed`].
    Call(Call),
    /// The run is over, with this answer for the client.
    Answer(Answer),
    /// The run is over; the client's request is refused.
    Refuse(Refused),
    /// Look up entries, then continue with [`Event::Recalled`].
    Recall(Lookup),
    /// Store entries, then continue with [`Event::Kept`]. The run must not continue before they are
    /// stored.
    Keep(Entries),
    /// Pause before the last call is repeated, then continue with [`Event::Waited`] or
    /// [`Event::Late`].
    Wait(Wait),
}

/// A pause between two calls of a polling step. The caller owns the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Length of the pause.
    pub pause: Duration,
    /// Start of the step's polling. `None`: now.
    pub since: Option<Duration>,
    /// Maximum duration of the polling.
    pub within: Duration,
}

impl Wait {
    /// Returns the end of a pause that starts at `now`, or `None` if it exceeds the maximum
    /// duration.
    pub fn ends(&self, now: Duration) -> Option<Duration> {
        let end = now.saturating_add(self.pause);
        (end <= self.since.unwrap_or(now).saturating_add(self.within)).then_some(end)
    }

    /// Returns the event after a pause that started at `now`.
    pub fn finish_at(&self, now: Duration) -> Event {
        Event::Waited { since: self.since.unwrap_or(now) }
    }

    /// Returns the next event under a simulated clock, which it advances.
    pub fn simulate(&self, now: &mut Duration) -> Event {
        let Some(end) = self.ends(*now) else { return Event::Late };
        let waited = self.finish_at(*now);
        *now = end;
        waited
    }
}

/// Archive entries to look up.
#[derive(Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The archive.
    pub archive: ArchiveId,
    /// The keys; at least one.
    pub keys: Vec<String>,
}

impl Lookup {
    /// Returns the event for an empty archive.
    pub fn nothing(&self) -> Event {
        Event::Recalled(vec![None; self.keys.len()])
    }
}

/// Archive entries to store.
#[derive(Clone, PartialEq, Eq)]
pub struct Entries {
    /// The archive.
    pub archive: ArchiveId,
    /// Keys with the JSON text of their values (`None` for entries without a value); at least one.
    pub entries: Vec<(String, Option<Vec<u8>>)>,
}

/// Omits keys and values, because they are client data.
impl fmt::Debug for Lookup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Lookup({}, {} keys)", self.archive.0, self.keys.len())
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Entries({}, {})", self.archive.0, self.entries.len())
    }
}

/// A call to the other side.
#[derive(Clone, Debug)]
pub struct Call {
    /// Number of preceding calls in this run.
    pub step: u32,
    /// Key of the operation in the other side's contract.
    pub operation: Arc<str>,
    /// The host of the other side.
    pub host: HostId,
    /// The method.
    pub method: Method,
    /// Encoded path and query, relative to the upstream's base URL.
    pub target: String,
    /// Header fields that the mapping sets. The caller adds content type, language and credentials.
    pub headers: HeaderMap,
    /// The encoded body.
    pub body: Option<Bytes>,
    /// The effect of the call on the service.
    pub effect: Effect,
    /// Whether the call may be repeated safely.
    pub repeatable: bool,
    /// Whether the plan uses the reply for more than its success.
    pub is_read: bool,
    /// If set, a 2xx reply must be remembered under this key and the client, and a remembered reply
    /// must be passed to [`super::Run::next`] instead of making the call. It may be forgotten when
    /// the run ends with a 2xx answer or with [`Answer::is_over`].
    pub resume_key: Option<Vec<u8>>,
}

/// The answer for the client.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Header fields that the mapping sets, and the content type if there is a body.
    pub headers: HeaderMap,
    /// The encoded body.
    pub body: Option<Bytes>,
    /// For the log: describes an error outside the other side's contract, whose text the gateway
    /// supplied.
    pub cause: Option<String>,
    /// The status of the original error, if the served side answers errors with another HTTP
    /// status.
    pub error: Option<u16>,
    /// Whether the polled operation has completed, successfully or not. A repeated request starts
    /// anew.
    pub is_over: bool,
    /// Whether the client's own service should answer instead, as long as it exists.
    pub forward: bool,
}

/// A refusal, because the route does not support the request.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The status, and whether the legacy service may answer instead.
    pub refusal: Refusal,
    /// The reason in the client's language.
    pub text: String,
    /// Whether a writing call preceded. The request must then not be forwarded.
    pub wrote: bool,
}
