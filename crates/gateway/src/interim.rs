//! Interim responses (1xx) of an upstream on their way to the client. They arrive while the task
//! that awaits the final response polls it; that task collects them here and writes them first.
//!
//! The queue is per thread rather than per request, because an interim response arrives within the
//! very poll that drives its request. A request whose upstream connection is read by another task,
//! as behind TLS, receives none.

use http::{HeaderMap, StatusCode};
use std::cell::RefCell;

/// An interim response.
#[derive(Clone, Debug)]
pub(crate) struct Interim {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

thread_local! {
    /// `None` while no response is being polled on this thread.
    static HEARD: RefCell<Option<Vec<Interim>>> = const { RefCell::new(None) };
}

/// Polls a response and returns the interim responses that arrived during the poll.
pub(crate) fn heard<T>(poll: impl FnOnce() -> T) -> (T, Vec<Interim>) {
    HEARD.set(Some(Vec::new()));
    let polled = poll();
    (polled, HEARD.take().unwrap_or_default())
}

/// Queues an interim response for the request that is being polled on this thread, if there is one.
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
