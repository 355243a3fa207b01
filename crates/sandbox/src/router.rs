//! Routes methods and paths to endpoints, by tables in the order of the document.

use super::call::Call;
use super::reasons::Reason;
use super::reply::{Failure, Outcome};
use super::state::State;
use http::{Method, StatusCode};

/// The handler of an endpoint.
#[derive(Clone, Copy)]
pub enum Act {
    Read(fn(&State, &Call<'_>) -> Outcome),
    Write(fn(&mut State, &Call<'_>) -> Outcome),
}

/// A row of a table.
pub struct Endpoint {
    pub method: Method,
    /// Path below the version, with `{…}` for parameters.
    pub path: &'static str,
    pub act: Act,
}

/// Creates a reading endpoint with the method `GET`.
pub const fn get(path: &'static str, act: fn(&State, &Call<'_>) -> Outcome) -> Endpoint {
    Endpoint { method: Method::GET, path, act: Act::Read(act) }
}

/// Creates a writing endpoint.
pub const fn write(
    method: Method,
    path: &'static str,
    act: fn(&mut State, &Call<'_>) -> Outcome,
) -> Endpoint {
    Endpoint { method, path, act: Act::Write(act) }
}

/// Finds the endpoint. If a literal path and one with parameters both match, the first one in the
/// table wins.
pub fn find<S: AsRef<str>>(
    table: &'static [Endpoint],
    method: &Method,
    segments: &[S],
) -> Result<&'static Endpoint, Failure> {
    let mut fitting = table.iter().filter(|endpoint| fits(endpoint.path, segments)).peekable();
    let Some(first) = fitting.peek() else {
        return Err(Failure::new(StatusCode::NOT_FOUND, Reason::UnknownPath));
    };
    // `/agents/status` and `/agents/{id}` are different paths, of which the first takes precedence.
    // `/chats/{id}` and `/chats/{channel}` are the same path, because they cannot be distinguished.
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
