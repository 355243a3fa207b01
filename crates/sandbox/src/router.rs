//! From method and path to an endpoint, over tables that read like the document's.

use super::call::Call;
use super::reasons::Reason;
use super::reply::{Failure, Outcome};
use super::state::State;
use http::{Method, StatusCode};

/// What an endpoint does.
#[derive(Clone, Copy)]
pub enum Act {
    Read(fn(&State, &Call<'_>) -> Outcome),
    Write(fn(&mut State, &Call<'_>) -> Outcome),
}

/// A line of a table.
pub struct Endpoint {
    pub method: Method,
    /// Path below the version, with `{…}` for parameters.
    pub path: &'static str,
    pub act: Act,
}

/// A `GET`, which reads.
pub const fn get(path: &'static str, act: fn(&State, &Call<'_>) -> Outcome) -> Endpoint {
    Endpoint { method: Method::GET, path, act: Act::Read(act) }
}

/// Anything else, which writes.
pub const fn write(
    method: Method,
    path: &'static str,
    act: fn(&mut State, &Call<'_>) -> Outcome,
) -> Endpoint {
    Endpoint { method, path, act: Act::Write(act) }
}

/// Finds the endpoint. Where a literal path and one with parameters both fit, the one that stands first in the table wins.
pub fn find<S: AsRef<str>>(
    table: &'static [Endpoint],
    method: &Method,
    segments: &[S],
) -> Result<&'static Endpoint, Failure> {
    let mut fitting = table.iter().filter(|endpoint| fits(endpoint.path, segments)).peekable();
    let Some(first) = fitting.peek() else {
        return Err(Failure::new(StatusCode::NOT_FOUND, Reason::UnknownPath));
    };
    // `/agents/status` and `/agents/{id}` are two addresses, of which the first hides the second. `/chats/{id}` and
    // `/chats/{channel}` are one address, since nothing tells them apart.
    let literal = !first.path.contains('{');
    let address = first.path;
    let same = fitting.filter(|endpoint| !literal || endpoint.path == address);
    let mut allow = Vec::new();
    for endpoint in same {
        if endpoint.method == *method {
            return Ok(endpoint);
        }
        allow.push(endpoint.method.clone());
    }
    Err(Failure { status: StatusCode::NOT_IMPLEMENTED, reason: Reason::WrongMethod, allow })
}

fn fits<S: AsRef<str>>(path: &str, segments: &[S]) -> bool {
    let mut segments = segments.iter();
    let all = path[1..]
        .split('/')
        .all(|part| segments.next().is_some_and(|segment| part.starts_with('{') || part == segment.as_ref()));
    all && segments.next().is_none()
}
