//! Findings about routes: the expectation, and how to fix the error.

mod archives;
mod functions;
mod headers;
mod paging;
mod paths;
mod poll;
mod routes;
mod steps;
mod tables;
mod values;

pub(super) use archives::*;
pub(super) use functions::*;
pub(super) use headers::*;
pub(super) use paging::*;
pub(super) use paths::*;
pub(super) use poll::*;
pub(super) use routes::*;
pub(super) use steps::*;
pub(super) use tables::*;
pub(super) use values::*;

/// Maximum number of words in a list. Longer lists end with an ellipsis.
const LISTED_MAX: usize = 24;

pub(super) fn list<S: AsRef<str>>(words: &[S]) -> String {
    let shown: Vec<String> =
        words.iter().take(LISTED_MAX).map(|word| format!("`{}`", word.as_ref())).collect();
    let more = if words.len() > LISTED_MAX { ", …" } else { "" };
    shown.join(", ") + more
}
