//! What clients call that nobody here knows, for the operator: it is the to-do list of a migration.
//! Counted by method and path as logs show it, and the newest kept, each with how often it came,
//! from whom, and when.
//!
//! Decision to know: paths are those of the access log, with what no contract names masked, because
//! clients write tokens into paths. Only of a path that the front's own service answers with a
//! success, the first and the third segment are shown where they are plain words: they name
//! collections. All of it is bounded, whatever is called; none of it is on the way of calls of
//! which all is known.

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

/// Unknown calls that are listed, the newest.
pub const UNKNOWN_CALLS_MAX: usize = 50;
/// Different calls that are counted apart.
const COUNTED_MAX: usize = 200;
/// Segments of a path below its front that calls are counted by.
const SEGMENTS_MAX: usize = 3;
/// Maximum length in bytes of a listed parameter name. A longer name may be a token.
const NAME_BYTES_MAX: usize = 24;
/// What all others are counted as.
const OTHERS: &str = "other";

/// The unknown calls of a gateway. Clones are one list.
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

/// Calls that look alike.
#[derive(Clone, Debug, Serialize)]
pub struct UnknownCall {
    /// The name of the side that the front speaks, such as `v2`.
    pub side: String,
    /// The method; `other` where it is none of HTTP's usual ones.
    pub method: &'static str,
    /// As the access log shows it, with the name of a collection that the front's own service answers.
    pub path: String,
    /// The client's enrolled name; empty where nobody enrolled it.
    pub client: String,
    /// What is not known of them: `path`, `method`, `spelling`, `media_type`, `client` or
    /// `parameter`: the operation declares no query parameter of that name, which stands after the
    /// path.
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
    /// Counts nothing yet. `clock` says when calls came.
    pub fn new(clock: Clock) -> UnknownCalls {
        UnknownCalls { clock, seen: Arc::default() }
    }

    /// The newest, newest first.
    pub fn newest(&self) -> Vec<UnknownCall> {
        self.lock_seen().newest.iter().rev().cloned().collect()
    }

    /// Notes a request of which something is not known, once the front's own service has answered
    /// it with `status`, or not at all.
    pub(crate) fn note(&self, context: &RequestContext, unknown: Unknown, status: Option<StatusCode>) {
        let facts = context.facts();
        let path = called_path(&facts, status);
        self.note_call(&facts, unknown.name(), &path, path.clone());
    }

    /// Notes a query parameter that a known operation does not declare: a plan drops it, so that
    /// its client may be answered something else than it asks for.
    pub(crate) fn note_parameter(&self, context: &RequestContext, name: &str, has_value: bool) {
        // Clients write tokens anywhere; these have digits, or are long. What has no value may be one itself.
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
        let label = if seen.counted.contains(&counted) {
            counted.1
        } else if seen.counted.len() < COUNTED_MAX {
            seen.counted.insert(counted.clone());
            counted.1
        } else {
            OTHERS.to_owned()
        };
        drop(seen);
        unknown_call(method, label, unknown);
    }

    fn lock_seen(&self) -> MutexGuard<'_, SeenCalls> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path by which a call of no operation is listed: with the names of collections where the
/// front's own service has answered.
pub(super) fn called_path(facts: &RequestFacts<'_>, status: Option<StatusCode>) -> String {
    let is_answered = status.is_some_and(|status| status.is_success() || status.is_redirection());
    if is_answered { facts.answered_path() } else { facts.shown_path() }
}

/// The beginning of a shown path that calls are counted by.
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
