//! The shadow's queue, oldest first: bounded and lock-free, since every core adds to it. On a
//! machine without an idle core the shadow may not run for a long time, and each queued job holds a
//! reference to the program that was current on arrival. A reload therefore drops expired jobs.

use crossbeam_queue::ArrayQueue;
use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Longest time in the queue. Other clients write meanwhile, so a later comparison says little
/// about the mapping.
pub(super) const AGE_MAX: Duration = Duration::from_secs(60);

/// A queue with any number of writers and one reader.
#[derive(Debug)]
pub(super) struct BoundedQueue<T> {
    queue: ArrayQueue<(Instant, T)>,
    reader: AtomicWaker,
    is_closed: AtomicBool,
}

/// A rejected item and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueueError<T> {
    Full(T),
    Closed(T),
}

impl<T> BoundedQueue<T> {
    /// Creates a queue with a capacity of `max`, but at least 1.
    pub(super) fn new(max: usize) -> BoundedQueue<T> {
        let queue = ArrayQueue::new(max.max(1));
        BoundedQueue { queue, reader: AtomicWaker::new(), is_closed: AtomicBool::new(false) }
    }

    /// Adds an item that arrived at `now`.
    ///
    /// # Errors
    ///
    /// The queue is full or closed.
    pub(super) fn put(&self, now: Instant, one: T) -> Result<(), QueueError<T>> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(QueueError::Closed(one));
        }
        self.queue.push((now, one)).map_err(|(_, one)| QueueError::Full(one))?;
        self.reader.wake();
        Ok(())
    }

    /// Removes the oldest item and its arrival time, waiting for one if necessary.
    pub(super) async fn next(&self) -> (Instant, T) {
        poll_fn(|context| {
            if let Some(next) = self.queue.pop() {
                return Poll::Ready(next);
            }
            self.reader.register(context.waker());
            // An item added before the waker was registered has woken no task, so check again.
            self.queue.pop().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Closes the queue and returns its items.
    pub(super) fn close(&self) -> Vec<T> {
        self.is_closed.store(true, Ordering::Release);
        std::iter::from_fn(|| self.queue.pop()).map(|(_, one)| one).collect()
    }

    /// Removes and returns expired items, and any younger item that finds the queue full when it is
    /// put back. The order of the rest may change.
    pub(super) fn take_expired(&self, now: Instant) -> Vec<T> {
        let mut gone = Vec::new();
        // Bound the iterations by the current length: items that other threads add meanwhile are
        // young.
        for _ in 0..self.queue.len() {
            let Some((came, one)) = self.queue.pop() else { break };
            if is_late(came, now) {
                gone.push(one);
            } else if let Err((_, one)) = self.queue.push((came, one)) {
                gone.push(one);
            }
        }
        self.reader.wake();
        gone
    }
}

/// Returns whether an item that arrived at `came` has expired by `now`.
pub(super) fn is_late(came: Instant, now: Instant) -> bool {
    now.saturating_duration_since(came) > AGE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn the_oldest_comes_first_and_whoever_waits_for_one_is_told() {
        let waiting = Arc::new(BoundedQueue::new(2));
        let reader = Arc::clone(&waiting);
        let read = tokio::spawn(async move { [reader.next().await.1, reader.next().await.1] });
        tokio::task::yield_now().await;
        for one in [1, 2] {
            assert_eq!(waiting.put(Instant::now(), one), Ok(()));
        }
        assert_eq!(read.await.expect("no panic"), [1, 2]);
    }

    #[test]
    fn there_is_a_bound_and_an_end() {
        let (waiting, now) = (BoundedQueue::new(1), Instant::now());
        assert_eq!(waiting.put(now, 1), Ok(()));
        assert_eq!(waiting.put(now, 2), Err(QueueError::Full(2)));
        assert_eq!((waiting.len(), waiting.close()), (1, vec![1]));
        assert_eq!(waiting.put(now, 3), Err(QueueError::Closed(3)));
        assert_eq!(waiting.len(), 0);
    }

    /// Without a reader, as on a machine without an idle core: of 100 consecutive programs, only a
    /// few are retained.
    #[test]
    fn what_nobody_works_on_does_not_hold_on_to_what_it_came_with() {
        let (waiting, start) = (BoundedQueue::new(256), Instant::now());
        let programs: Vec<Arc<u32>> = (0..100).map(Arc::new).collect();
        for (program, minute) in programs.iter().zip(0..) {
            let now = start + 60 * Duration::from_secs(1) * minute;
            // A reload a minute.
            assert_eq!(waiting.take_expired(now).len(), usize::from(minute > 1));
            assert_eq!(waiting.put(now, Arc::clone(program)), Ok(()));
        }
        let held = programs.iter().filter(|program| Arc::strong_count(program) > 1).count();
        assert_eq!((held, waiting.len()), (2, 2));
    }
}
