//! The waker of upstream connections in every order that threads and memory allow, run by loom. The
//! file under test is the gateway's own, compiled here a second time upon loom's atomics: nothing
//! else of the crate has to know of loom.

#[path = "../src/proxy/upstream/waker.rs"]
mod waker;

/// What `waker` stands on.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    use std::task::Waker;

    /// loom's, by the names of the one of futures-util.
    pub(super) struct AtomicWaker(loom::future::AtomicWaker);

    impl AtomicWaker {
        pub(super) fn new() -> AtomicWaker {
            AtomicWaker(loom::future::AtomicWaker::new())
        }

        pub(super) fn register(&self, waker: &Waker) {
            self.0.register_by_ref(waker);
        }

        pub(super) fn wake(&self) {
            self.0.wake();
        }

        pub(super) fn take(&self) -> Option<Waker> {
            self.0.take_waker()
        }
    }
}

use self::waker::ConnectionWaker;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Runs `scenario` in every order in which no thread is interrupted more than twice, other than by
/// waiting: that finds what is lost between two steps of either side, in seconds rather than hours.
fn in_every_order(scenario: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(scenario);
}

/// A call, driven by its task as `Connection` drives one: `pieces` have to arrive from other
/// threads, each of which notifies the connection afterwards. loom reports a deadlock if the task
/// sleeps while a piece is there.
fn a_call_ends_when_all_pieces_came(pieces: usize) {
    in_every_order(move || {
        let state = ConnectionWaker::new();
        let waker = Waker::from(Arc::clone(&state));
        let arrived = Arc::new(AtomicUsize::new(0));
        let senders: Vec<_> = (0..pieces)
            .map(|_| {
                let (arrived, waker) = (Arc::clone(&arrived), waker.clone());
                thread::spawn(move || {
                    arrived.fetch_add(1, Relaxed);
                    waker.wake();
                })
            })
            .collect();
        // What the connection has read; the call only looks at this.
        let read = std::cell::Cell::new(0);
        loom::future::block_on(poll_fn(|cx| {
            state.drive(
                cx,
                &waker,
                |_| if read.get() == pieces { Poll::Ready(()) } else { Poll::Pending },
                || read.set(arrived.load(Relaxed)),
            )
        }));
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn no_notification_is_lost_while_a_call_is_driven() {
    a_call_ends_when_all_pieces_came(1);
    a_call_ends_when_all_pieces_came(2);
}

#[test]
fn a_write_that_waits_for_its_turn_gets_it() {
    in_every_order(|| {
        let state = ConnectionWaker::new();
        let waker = Waker::from(Arc::clone(&state));
        let arrived = Arc::new(AtomicUsize::new(0));
        let sender = {
            let (arrived, waker) = (Arc::clone(&arrived), waker.clone());
            thread::spawn(move || {
                arrived.store(1, Relaxed);
                waker.wake_by_ref();
            })
        };
        let (mut polled, read) = (0, std::cell::Cell::new(0));
        loom::future::block_on(poll_fn(|cx: &mut Context<'_>| {
            // It wants one more turn each time, as a write does that others go before.
            let turns = std::cell::Cell::new(polled);
            let outcome = state.drive(
                cx,
                &waker,
                // It has its turns, and what came meanwhile is seen.
                |_| if turns.get() >= 2 && read.get() == 1 { Poll::Ready(()) } else { Poll::Pending },
                || {
                    read.set(arrived.load(Relaxed));
                    turns.set(turns.get() + 1);
                    if turns.get() < 2 {
                        state.requeue();
                    }
                },
            );
            polled = turns.get();
            outcome
        }));
        sender.join().unwrap();
    });
}

#[test]
fn a_notification_of_a_parked_connection_is_seen_when_it_is_used_again() {
    in_every_order(|| {
        let state = ConnectionWaker::new();
        let waker = Waker::from(Arc::clone(&state));
        assert!(state.take_notified(), "a new connection wants to be polled");
        state.park();
        let closed = Arc::new(AtomicUsize::new(0));
        let upstream = {
            let (closed, waker) = (Arc::clone(&closed), waker.clone());
            thread::spawn(move || {
                closed.store(1, Relaxed);
                waker.wake();
            })
        };
        let seen_early = state.take_notified();
        assert!(!seen_early || closed.load(Relaxed) == 1, "what was done before the notification is seen");
        upstream.join().unwrap();
        assert!(seen_early || state.take_notified());
    });
}
