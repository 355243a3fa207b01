//! What a run is told and what it says: the reply to a call, the next call, the end. Data only; the run itself is `run`.

use bytes::Bytes;
use http::{HeaderMap, Method};
use std::fmt;
use std::sync::Arc;
use switchback_plan::{ArchiveId, Effect, Refusal};

/// What happened to the last call.
#[derive(Clone, Debug)]
pub enum Event {
    /// Nothing yet: the first event of every run.
    Start,
    Reply(Reply),
    /// The call got no reply, or none that can be used.
    Failed(Failed),
    /// What an archive has under the keys of a [`Lookup`], in their order.
    Recalled(Vec<Option<Entry>>),
    /// The entries are kept.
    Kept,
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
    pub status: u16,
    pub headers: HeaderMap,
    /// Decoded of content codings; empty = none.
    pub body: Bytes,
}

/// A call that got no reply, or none that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub kind: FailKind,
    /// For the log; may be empty.
    pub detail: String,
}

/// Why a call got no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailKind {
    Unreachable,
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
    Call(Call),
    Answer(Answer),
    Refuse(Refused),
    /// Look entries up; [`Event::Recalled`] follows.
    Recall(Lookup),
    /// Keep entries; [`Event::Kept`] follows once they are, and nothing else goes on before.
    Keep(Entries),
}

/// Entries of an archive that are wanted.
#[derive(Clone, PartialEq, Eq)]
pub struct Lookup {
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
    pub method: Method,
    /// Path and query, encoded, below the upstream's base address.
    pub target: String,
    /// Only what the mapping asks for; content type, language and credentials are the caller's to add.
    pub headers: HeaderMap,
    /// JSON text.
    pub body: Option<Bytes>,
    pub effect: Effect,
    /// Whether a repeat is harmless.
    pub repeatable: bool,
    /// Whether anything of its reply is used, but whether it succeeded.
    pub is_read: bool,
    /// When given: a 2xx reply to this call is to be remembered under this key (and the client), and one remembered is to
    /// be fed to [`super::Run::next`] instead of making the call. May be forgotten when the run ends in a 2xx answer.
    pub resume_key: Option<Vec<u8>>,
}

/// What the client gets.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    /// What the mapping asks for, and the content type when there is a body.
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    /// For the log: an error of the other side that its contract does not know, which this answers in words of ours.
    pub cause: Option<String>,
    /// The status of the error that this tells, where the side answers its errors with another one.
    pub error: Option<u16>,
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
