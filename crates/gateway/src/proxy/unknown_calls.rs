//! Counts calls that match no operation, client or parameter of the pack: the operator's to-do list
//! of a migration. They are counted by method and by path as logged. The most recent ones are
//! listed with their clients, counts and times.
//!
//! Decision to know: paths are logged as in the access log, with segments that no contract names
//! masked, because clients write tokens into paths. If the front's own service answers a path with
//! success, its first and third segments are shown where they are plain words, since they name
//! collections. Memory is bounded for any traffic, and known calls do not pass through here.

use super::context::RequestContext;
use super::facts::RequestFacts;
use super::program::Front;
use super::request::Unknown;
use crate::clock::{Clock, rfc3339};
use crate::telemetry::metrics::unknown_call;
use http::{Method, StatusCode};
use serde::Serialize;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of listed calls; older ones are dropped.
pub const UNKNOWN_CALLS_MAX: usize = 50;
/// Maximum number of separate labels; it bounds the cardinality of the metric.
const COUNTED_MAX: usize = 200;
/// Path segments below the front that a label contains.
const SEGMENTS_MAX: usize = 3;
/// Maximum length in bytes of a listed parameter name. A longer name may be a token.
const NAME_BYTES_MAX: usize = 24;
/// Label of all further calls.
const OTHERS: &str = "other";

/// The unknown calls of a gateway. Clones share one list.
#[derive(Clone, Debug)]
pub struct UnknownCalls {
    clock: Clock,
    seen: Arc<Mutex<SeenCalls>>,
}

#[derive(Debug, Default)]
struct SeenCalls {
    /// Newest last.
    newest: Vec<UnknownCall>,
    counted: HashSet<(&'static str, String)>,
}

/// Calls with the same client, method, path and side.
#[derive(Clone, Debug, Serialize)]
pub struct UnknownCall {
    /// The name of the side that the front serves, such as `v2`.
    pub side: String,
    /// The method, or `other` if it is not a registered one.
    pub method: &'static str,
    /// The path as the access log shows it, including names of collections that the front's own
    /// service answers.
    pub path: String,
    /// The name of the client, or empty if it is not enrolled.
    pub client: String,
    /// The unknown part: `path`, `method`, `spelling`, `media_type`, `client` or `parameter`. For
    /// `parameter` the operation declares no query parameter of that name, and `path` contains it.
    pub unknown: &'static str,
    /// Calls since `first`.
    pub count: u64,
    /// When the call was first listed, RFC 3339, UTC. A call that newer ones displaced from the
    /// list is counted from zero.
    pub first: String,
    /// RFC 3339, UTC.
    pub last: String,
}

impl UnknownCalls {
    /// Creates an empty list. `clock` provides the times of calls.
    pub fn new(clock: Clock) -> UnknownCalls {
        UnknownCalls { clock, seen: Arc::default() }
    }

    /// Returns the listed calls, newest first.
    pub fn newest(&self) -> Vec<UnknownCall> {
        self.lock_seen().newest.iter().rev().cloned().collect()
    }

    /// Records a request with an unknown part after the front's own service answered it with
    /// `status`. `None`: it did not answer.
    pub(crate) fn note(&self, context: &RequestContext, unknown: Unknown, status: Option<StatusCode>) {
        let facts = context.facts();
        let path = called_path(&facts, status);
        self.note_call(&facts, unknown.name(), &path, path.clone());
    }

    /// Records a query parameter that a known operation does not declare. A plan drops it, so the
    /// response may differ from the one that the client expects.
    pub(crate) fn note_parameter(&self, context: &RequestContext, name: &str, has_value: bool) {
        // Clients write tokens anywhere. Names with digits and long names may be tokens, and so may
        // a name without a value.
        let is_plain = |c: char| c.is_ascii_alphabetic() || "_-.[]".contains(c);
        let is_shown = has_value && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain);
        let name = if is_shown { name } else { "*" };
        let facts = context.facts();
        let path = facts.shown_path();
        self.note_call(&facts, "parameter", &path, format!("{path}?{name}"));
    }

    fn note_call(&self, facts: &RequestFacts<'_>, unknown: &'static str, counted_path: &str, path: String) {
        let Some(front) = &facts.front else { return };
        let method = method(&facts.context.method);
        let (side, client) = (facts.side(), facts.client());
        let label = label(front, counted_path).to_owned();
        let now = rfc3339(self.clock.unix_ms());
        let mut seen = self.lock_seen();
        let is_same = |call: &UnknownCall| {
            (call.method, &*call.path, &*call.client, call.unknown, &*call.side)
                == (method, &*path, client, unknown, side)
        };
        // Removed and pushed again below, which keeps the list ordered by the time of the last
        // call.
        let known = seen.newest.iter().position(is_same).map(|at| seen.newest.remove(at));
        let (count, first) = known.map_or((0, now.clone()), |known| (known.count, known.first));
        let (side, client) = (side.to_owned(), client.to_owned());
        seen.newest.push(UnknownCall {
            side,
            method,
            path,
            client,
            unknown,
            count: count + 1,
            first,
            last: now,
        });
        if seen.newest.len() > UNKNOWN_CALLS_MAX {
            seen.newest.remove(0);
        }
        let counted = (method, label);
        // A label is never removed, because its metric series is not removed either. Otherwise a
        // client that varies its paths could create series without bound.
        let label = if seen.counted.contains(&counted) {
            counted.1
        } else if seen.counted.len() < COUNTED_MAX {
            seen.counted.insert(counted.clone());
            counted.1
        } else {
            OTHERS.to_owned()
        };
        // Other calls need not wait for the list while the metric is updated.
        drop(seen);
        unknown_call(method, label, unknown);
    }

    fn lock_seen(&self) -> MutexGuard<'_, SeenCalls> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the path under which a call without an operation is listed. It includes names of
/// collections if the front's own service answered.
pub(super) fn called_path(facts: &RequestFacts<'_>, status: Option<StatusCode>) -> String {
    let is_answered = status.is_some_and(|status| status.is_success() || status.is_redirection());
    if is_answered { facts.answered_path() } else { facts.shown_path() }
}

/// Returns the start of a path that serves as a label.
pub(super) fn label<'p>(front: &Front, path: &'p str) -> &'p str {
    let segments = front.prefix.matches('/').count() + SEGMENTS_MAX;
    path.match_indices('/').nth(segments).map_or(path, |(end, _)| &path[..end])
}

/// Returns the method for lists and labels.
pub(super) fn method(method: &Method) -> &'static str {
    registered_method(method).unwrap_or(OTHERS)
}

/// Returns the name of a registered method; any other may be arbitrary text.
pub(super) fn registered_method(method: &Method) -> Option<&'static str> {
    const REGISTERED: [&str; 9] =
        ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    REGISTERED.into_iter().find(|known| *known == method.as_str())
}
