//! Who is woken for a connection that is driven by the task of the call that uses it. The connection's transport and hyper
//! notify its waker; that wakes the task, except while the task drives the connection: then it looks again by itself. Without
//! it the connection's own hand-overs, which happen while it is driven, would schedule the task once more for nothing.
//!
//! What it stands on comes from `super::sync`, so that `tests/waker.rs` can put the same file under loom.

use super::sync::{AtomicBool, AtomicWaker, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// How often a connection is driven on in one go before other tasks get their turn.
const TURNS_MAX: usize = 16;

/// Whom to wake for a connection, and whether it was notified.
pub(super) struct ConnectionWaker {
    is_notified: AtomicBool,
    is_driving: AtomicBool,
    /// Whether the connection wants to be polled again, but not while it is being driven: its write waits for other tasks.
    /// Only the thread that drives it looks at this.
    is_requeued: AtomicBool,
    task: AtomicWaker,
}

impl ConnectionWaker {
    /// Of a new connection, which wants to be polled.
    pub(super) fn new() -> Arc<ConnectionWaker> {
        Arc::new(ConnectionWaker {
            is_notified: AtomicBool::new(true),
            is_driving: AtomicBool::new(false),
            is_requeued: AtomicBool::new(false),
            task: AtomicWaker::new(),
        })
    }

    /// Polls `ready` and the connection (`advance`) in turns, until `ready` has something or neither can go on. The
    /// connection is only polled when it asked for it. `cx` is the task's own; `waker` notifies the connection.
    pub(super) fn drive<T>(
        &self,
        cx: &mut Context<'_>,
        waker: &Waker,
        mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
        mut advance: impl FnMut(),
    ) -> Poll<T> {
        self.task.register(cx.waker());
        self.is_driving.store(true, Ordering::Relaxed);
        let mut polled = Poll::Pending;
        for _ in 0..TURNS_MAX {
            // Assigned only where there is something: what is polled for may be large.
            if let ready @ Poll::Ready(_) = ready(&mut Context::from_waker(waker)) {
                polled = ready;
                break;
            }
            if !self.take_notified() {
                break;
            }
            advance();
        }
        self.is_driving.store(false, Ordering::Release);
        if self.is_requeued.load(Ordering::Relaxed) {
            self.is_requeued.store(false, Ordering::Relaxed);
            // A store would hide a notification that another thread made before, and what that thread did before it.
            self.is_notified.fetch_or(true, Ordering::AcqRel);
        }
        // Wants its turn after others, was notified by another thread a moment ago, or there were too many turns: someone has
        // to come back. Whoever notifies exchanges the same flag and then looks at `is_driving`. Of two exchanges one is the
        // second: if it is this one, it sees the notification; if the other, that one sees that nobody drives. A load here
        // could miss the former while the other misses the latter.
        if polled.is_pending() && self.is_notified.fetch_or(false, Ordering::AcqRel) {
            cx.waker().wake_by_ref();
        }
        polled
    }

    /// Whether it was notified since the last time.
    pub(super) fn take_notified(&self) -> bool {
        // Mostly it was not, and to look costs less than to exchange.
        self.is_notified.load(Ordering::Relaxed) && self.is_notified.swap(false, Ordering::AcqRel)
    }

    /// Wakes no task until the connection is driven again.
    pub(super) fn park(&self) {
        self.task.take();
    }

    /// Has the connection polled once more, after the tasks that are ready now.
    pub(super) fn requeue(&self) {
        self.is_requeued.store(true, Ordering::Relaxed);
    }
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_notified.swap(true, Ordering::AcqRel);
        if !self.is_driving.load(Ordering::Acquire) {
            self.task.wake();
        }
    }
}
