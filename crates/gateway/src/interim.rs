//! Interim answers (1xx) of an upstream on their way to the client. They come while an answer is waited for, and by the task that
//! waits for it: whoever polls that answer hears them here, and writes them before it.
//!
//! Decision to know: a queue per thread, not per request, because an interim answer comes within the very poll that its request is
//! given. A request whose upstream is read by another task, which is so behind TLS, has none.

use http::{HeaderMap, StatusCode};
use std::cell::RefCell;

/// An interim answer.
#[derive(Clone, Debug)]
pub(crate) struct Interim {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

thread_local! {
    /// None while no answer is polled on this thread.
    static HEARD: RefCell<Option<Vec<Interim>>> = const { RefCell::new(None) };
}

/// Polls an answer, and gives what was said before it meanwhile.
pub(crate) fn heard<T>(poll: impl FnOnce() -> T) -> (T, Vec<Interim>) {
    HEARD.set(Some(Vec::new()));
    let polled = poll();
    (polled, HEARD.take().unwrap_or_default())
}

/// An upstream has said this before its answer.
pub(crate) fn say(status: StatusCode, headers: HeaderMap) {
    HEARD.with_borrow_mut(|heard| {
        heard.iter_mut().for_each(|heard| {
            heard.push(Interim { status, headers: headers.clone() });
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_by_whoever_polls_and_by_nobody_else() {
        let early = || say(StatusCode::EARLY_HINTS, HeaderMap::new());
        early();
        let ((), heard_first) = heard(|| (0..2).for_each(|_| early()));
        early();
        let ((), heard_next) = heard(|| ());
        assert_eq!((heard_first.len(), heard_next.len()), (2, 0));
    }
}
