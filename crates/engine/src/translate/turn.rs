//! What a run is told and what it says: the reply to a call, the next call, the end. Data only; the run itself is `run`.

use bytes::Bytes;
use http::{HeaderMap, Method};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use switchback_plan::{ArchiveId, Effect, HostId, Refusal};

/// What happened to the last call.
#[derive(Clone, Debug)]
pub enum Event {
    /// Nothing yet: the first event of every run.
    Start,
    /// The call got this reply, whatever its status.
    Reply(Reply),
    /// The call got no reply, or none that can be used.
    Failed(Failed),
    /// What an archive has under the keys of a [`Lookup`], in their order.
    Recalled(Vec<Option<Entry>>),
    /// The entries are kept.
    Kept,
    /// The time of a [`Wait`] has passed.
    Waited {
        /// When the waiting of its step began, by the caller's clock: for its next [`Wait`].
        since: Duration,
    },
    /// There is no time left to wait.
    Late,
}

/// An entry of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Whole seconds since it was kept.
    pub age: u64,
    /// JSON text; none where an entry is its key alone.
    pub value: Option<Bytes>,
}

/// A reply of the other side.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// As the service gave it.
    pub status: u16,
    /// Names in lower case.
    pub headers: HeaderMap,
    /// Decoded of content codings; empty = none.
    pub body: Bytes,
}

/// A call that got no reply, or none that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What happened instead of a reply.
    pub kind: FailKind,
    /// For the log; may be empty.
    pub detail: String,
}

/// Why a call got no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailKind {
    /// No connection could be made: the service has seen nothing of the call.
    Unreachable,
    /// No reply came in time: the service may have acted.
    Timeout,
    /// The connection was lost before the reply, or within it.
    Closed,
    /// The reply was too large, no HTTP, or nothing that the contract knows.
    Broken,
}

impl From<FailKind> for Event {
    fn from(kind: FailKind) -> Event {
        Event::Failed(Failed { kind, detail: String::new() })
    }
}

/// What to do next.
#[derive(Clone, Debug)]
pub enum Next {
    /// Make this call; [`Event::Reply`] or [`Event::Failed`] follows.
    Call(Call),
    /// The run is over: this is what the client gets.
    Answer(Answer),
    /// The run is over: the client is refused.
    Refuse(Refused),
    /// Look entries up; [`Event::Recalled`] follows.
    Recall(Lookup),
    /// Keep entries; [`Event::Kept`] follows once they are, and nothing else goes on before.
    Keep(Entries),
    /// Let time pass before the last call is made again; [`Event::Waited`] or [`Event::Late`] follows.
    Wait(Wait),
}

/// A pause between two calls of a step that waits for something to end. The caller has the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// How long.
    pub pause: Duration,
    /// When the waiting of this step began; none where it begins now.
    pub since: Option<Duration>,
    /// How long it may take from then on.
    pub within: Duration,
}

impl Wait {
    /// When the pause ends by a clock that says `now`; none where that is too late.
    pub fn ends(&self, now: Duration) -> Option<Duration> {
        let end = now.saturating_add(self.pause);
        (end <= self.since.unwrap_or(now).saturating_add(self.within)).then_some(end)
    }

    /// What follows a pause that began at `now`.
    pub fn waited(&self, now: Duration) -> Event {
        Event::Waited { since: self.since.unwrap_or(now) }
    }

    /// What follows by a clock that only waiting moves.
    pub fn simulated(&self, now: &mut Duration) -> Event {
        let Some(end) = self.ends(*now) else { return Event::Late };
        let waited = self.waited(*now);
        *now = end;
        waited
    }
}

/// Entries of an archive that are wanted.
#[derive(Clone, PartialEq, Eq)]
pub struct Lookup {
    /// Which one.
    pub archive: ArchiveId,
    /// At least one.
    pub keys: Vec<String>,
}

impl Lookup {
    /// What follows where there is no archive to look into.
    pub fn nothing(&self) -> Event {
        Event::Recalled(vec![None; self.keys.len()])
    }
}

/// Entries for an archive.
#[derive(Clone, PartialEq, Eq)]
pub struct Entries {
    /// Which one.
    pub archive: ArchiveId,
    /// Keys, and JSON texts of values; none where an entry is its key alone. At least one.
    pub entries: Vec<(String, Option<Vec<u8>>)>,
}

/// Keys and values are somebody's data.
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
    /// Calls of this run before this one.
    pub step: u32,
    /// As the other side's contract writes it.
    pub operation: Arc<str>,
    /// The host of the other side that answers it.
    pub host: HostId,
    /// The method to be used.
    pub method: Method,
    /// Path and query, encoded, below the upstream's base address.
    pub target: String,
    /// Only what the mapping asks for; content type, language and credentials are the caller's to add.
    pub headers: HeaderMap,
    /// JSON text.
    pub body: Option<Bytes>,
    /// What the call does to the service.
    pub effect: Effect,
    /// Whether a repeat is harmless.
    pub repeatable: bool,
    /// Whether anything of its reply is used, but whether it succeeded.
    pub is_read: bool,
    /// When given: a 2xx reply to this call is to be remembered under this key (and the client), and one remembered is to
    /// be fed to [`super::Run::next`] instead of making the call. May be forgotten when the run ends in a 2xx answer, or in one
    /// that is over.
    pub resume_key: Option<Vec<u8>>,
}

/// What the client gets.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status that the client gets.
    pub status: u16,
    /// What the mapping asks for, and the content type when there is a body.
    pub headers: HeaderMap,
    /// JSON text, or none.
    pub body: Option<Bytes>,
    /// For the log: an error of the other side that its contract does not know, which this answers in words of ours.
    pub cause: Option<String>,
    /// The status of the error that this tells, where the side answers its errors with another one.
    pub error: Option<u16>,
    /// Whether what the route waited for has come to its end, well or not: a repeated request begins anew.
    pub is_over: bool,
    /// Whether the client's own service answers instead, while there is one.
    pub forward: bool,
}

/// The route cannot do what is asked for.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which status when, and whether the old service may answer instead.
    pub refusal: Refusal,
    /// In the client's language.
    pub text: String,
    /// Whether a call with an effect was made before; the request must then not be forwarded.
    pub wrote: bool,
}
