//! The record of a request: the facts that its log line, its metrics and its span report. Layers
//! write it as they find them out, so that a request that is cancelled midway is reported with what
//! was known by then. No layer reads another layer's facts here; those are handed on by type
//! ([`super::request`]).

use super::program::Front;
use crate::capture::Recording;
use crate::error::GatewayError;
use crate::outcome::Outcome;
use crate::retire::Notice;
use crate::token::Client;
use http::Method;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use switchback_plan::{RouteId, SideId};

/// The error that `rescue` answered.
pub(crate) struct RescuedError {
    /// [`crate::error::Kind::name`].
    pub kind: &'static str,
    pub outcome: Outcome,
    /// For the log only.
    pub detail: String,
}

/// A call to an upstream, as the sample of recent requests needs it.
pub(crate) struct CallTrace {
    /// The side that a plan called; `None` if the request was forwarded.
    pub side: Option<SideId>,
    pub method: Method,
    /// Path and query below the upstream's base, without an account prefix.
    pub target: String,
    /// The first attempt and the end of the last one; `None` if the call was never sent.
    pub times: Option<(Instant, Instant)>,
    pub attempts: u32,
    /// The status, or the kind of the error.
    pub outcome: Result<u16, &'static str>,
}

/// Maximum number of traced calls of one request.
const TRACES_MAX: usize = 32;

/// Facts about a request, as far as it got.
#[derive(Default)]
pub(crate) struct Facts {
    pub front: Option<Arc<Front>>,
    pub(super) operation: Option<RouteId>,
    /// Whether the path names an account.
    pub(super) has_account: bool,
    pub client: Option<Arc<Client>>,
    /// The name of the operation's phase on arrival; empty if it was not determined.
    pub phase: &'static str,
    /// Deprecation fields for this client.
    pub notice: Option<Notice>,
    /// The recording of the request, while a capture is open.
    pub recording: Option<Arc<Recording>>,
    /// The calls that have ended, while requests are sampled.
    pub calls: Vec<CallTrace>,
    pub error: Option<RescuedError>,
    /// The upstream error behind a response that is not an error. For the log only.
    pub cause: Option<String>,
}

/// The record of one request.
#[derive(Default)]
pub(crate) struct RequestRecord {
    pub(super) facts: Mutex<Facts>,
    is_forwarded: AtomicBool,
    is_unanswered: AtomicBool,
    has_left: AtomicBool,
    is_traced: AtomicBool,
    is_sampled: AtomicBool,
    calls: AtomicU32,
    /// Total time in microseconds that calls waited for response heads.
    waited: AtomicU64,
    /// Total time in microseconds of waiting for bodies and of pauses in the plan, before the
    /// response head.
    paused: AtomicU64,
}

impl Facts {
    /// Records the error that is answered.
    pub(crate) fn set_error(&mut self, error: &GatewayError, outcome: Outcome) {
        self.error = Some(RescuedError { kind: error.kind().name(), outcome, detail: error.detail() });
    }
}

impl Facts {
    /// Records a call that has ended, up to [`TRACES_MAX`].
    pub(crate) fn add_call(&mut self, call: CallTrace) {
        if self.calls.len() >= TRACES_MAX {
            return;
        }
        if self.calls.is_empty() {
            // Most requests make one call; `push` would make room for four.
            self.calls.reserve_exact(1);
        }
        self.calls.push(call);
    }
}

impl RequestRecord {
    /// Marks that the response of the front's own service is forwarded unchanged.
    pub(crate) fn set_forwarded(&self) {
        self.is_forwarded.store(true, Relaxed);
    }

    pub(crate) fn is_forwarded(&self) -> bool {
        self.is_forwarded.load(Relaxed)
    }

    /// Marks that a call got no response. The response to the client is then attributed to the
    /// gateway, however the plan continued.
    pub(crate) fn set_unanswered(&self) {
        self.is_unanswered.store(true, Relaxed);
    }

    /// Returns whether a call got no response.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.is_unanswered.load(Relaxed)
    }

    /// Marks that the client disconnected or got a timeout response.
    pub(crate) fn set_left(&self) {
        self.has_left.store(true, Relaxed);
    }

    /// Returns whether the client no longer waits for the response.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Relaxed)
    }

    /// Makes calls leave a trace, for the sample of recent requests.
    pub(crate) fn set_traced(&self) {
        self.is_traced.store(true, Relaxed);
    }

    pub(crate) fn is_traced(&self) -> bool {
        self.is_traced.load(Relaxed)
    }

    /// Marks that the request is sampled, whatever its end.
    pub(crate) fn set_sampled(&self) {
        self.is_sampled.store(true, Relaxed);
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.is_sampled.load(Relaxed)
    }

    /// Counts a call to an upstream.
    pub(crate) fn count_call(&self) {
        self.calls.fetch_add(1, Relaxed);
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }

    /// Adds the time that a call waited for its response head.
    pub(crate) fn add_waited(&self, time: Duration) {
        add(&self.waited, time);
    }

    /// Returns the total time that calls waited for response heads.
    pub(crate) fn upstream_wait(&self) -> Duration {
        Duration::from_micros(self.waited.load(Relaxed))
    }

    /// Adds time spent waiting for something other than a response head.
    pub(crate) fn add_pause(&self, time: Duration) {
        add(&self.paused, time);
    }

    /// Returns the total time of waiting for bodies and of pauses, before the response head.
    pub(crate) fn pauses(&self) -> Duration {
        Duration::from_micros(self.paused.load(Relaxed))
    }

    /// Returns the total time spent waiting before the response head.
    pub(crate) fn awaited(&self) -> Duration {
        self.upstream_wait() + self.pauses()
    }
}

fn add(sum: &AtomicU64, time: Duration) {
    sum.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
}
