//! Waker of a connection that is driven by the task of its current call. The transport and hyper
//! notify it, which wakes the task unless the task is driving the connection at that moment:
//! `drive` then polls again by itself. Without this, internal hand-overs of the connection would
//! schedule the task once more without need.
//!
//! The primitives are imported from `super::sync`, so that `tests/waker.rs` can run this file under
//! loom.

use super::sync::{AtomicBool, AtomicWaker, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Maximum polls of the connection in one call of `drive`, so that other tasks of the thread are
/// not starved.
const TURNS_MAX: usize = 16;

/// Notification state of one connection and the task to wake.
pub(super) struct ConnectionWaker {
    is_notified: AtomicBool,
    is_driving: AtomicBool,
    /// The connection wants another poll after the other ready tasks, because its write was
    /// postponed. Accessed only by the thread that drives the connection.
    is_requeued: AtomicBool,
    task: AtomicWaker,
}

impl ConnectionWaker {
    /// Creates the waker of a new connection, which needs a first poll.
    pub(super) fn new() -> Arc<ConnectionWaker> {
        Arc::new(ConnectionWaker {
            is_notified: AtomicBool::new(true),
            is_driving: AtomicBool::new(false),
            is_requeued: AtomicBool::new(false),
            task: AtomicWaker::new(),
        })
    }

    /// Polls `ready` and the connection (`advance`) alternately until `ready` completes or both are
    /// pending. The connection is polled only after a notification. `cx` is the context of the
    /// task; `waker` notifies the connection.
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
            // Assigned only when ready, because the polled value may be large.
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
            // A plain store would overwrite a concurrent notification and lose its happens-before
            // edge.
            self.is_notified.fetch_or(true, Ordering::AcqRel);
        }
        // The task must run again if the connection was requeued, another thread has just notified,
        // or the turns are used up. A notifying thread swaps `is_notified` and then loads
        // `is_driving`. The two read-modify-write operations on `is_notified` are ordered: if this
        // one is second, it sees the notification; if the other is second, that thread sees
        // `is_driving == false` and wakes the task. With a plain load here, both could miss each
        // other.
        if polled.is_pending() && self.is_notified.fetch_or(false, Ordering::AcqRel) {
            cx.waker().wake_by_ref();
        }
        polled
    }

    /// Returns whether the connection was notified since the last call, and clears the flag.
    pub(super) fn take_notified(&self) -> bool {
        // Usually not notified, and a load is cheaper than a swap.
        self.is_notified.load(Ordering::Relaxed) && self.is_notified.swap(false, Ordering::AcqRel)
    }

    /// Drops the registered task, so that notifications wake no task until the next `drive`.
    pub(super) fn park(&self) {
        self.task.take();
    }

    /// Requests another poll after the tasks that are ready now.
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
