//! The parts of a comparison that need no knowledge of the pack.

use bytes::Bytes;
use http::Method;
use std::sync::Arc;
use switchback_plan::RouteId;

/// The subject of a comparison: an operation's responses, or an event of the pack, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobSubject {
    Route(RouteId),
    Event(usize),
}

/// A planned call that was not sent.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCall {
    /// The operation as named in the contract of the called side.
    pub operation: Arc<str>,
    pub method: Method,
    /// Path and query below the upstream's base.
    pub target: String,
    pub body: Option<Bytes>,
}
