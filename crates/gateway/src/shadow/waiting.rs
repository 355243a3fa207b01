//! What waits for the shadow, oldest first: bounded in number, without a lock, since every core adds to it. Where the machine
//! has no core to spare the shadow gets none, for as long as that lasts, and each that waits holds on to the program that was
//! current when it came; so a reload lets go of what has waited too long.

use crossbeam_queue::ArrayQueue;
use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long anything is worth waiting for. Others write in between, so answers further apart say little of a mapping.
pub(super) const AGE_MAX: Duration = Duration::from_secs(60);

/// A queue that any thread adds to and one task reads.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    queue: ArrayQueue<(Instant, T)>,
    reader: AtomicWaker,
    is_closed: AtomicBool,
}

/// Why something was not taken, which comes back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused<T> {
    Full(T),
    Closed(T),
}

impl<T> Waiting<T> {
    /// For `max` at most, one at least.
    pub(super) fn new(max: usize) -> Waiting<T> {
        let queue = ArrayQueue::new(max.max(1));
        Waiting { queue, reader: AtomicWaker::new(), is_closed: AtomicBool::new(false) }
    }

    /// Takes what has come `now`.
    ///
    /// # Errors
    ///
    /// There are too many, or no more are taken.
    pub(super) fn put(&self, now: Instant, one: T) -> Result<(), Refused<T>> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Refused::Closed(one));
        }
        self.queue.push((now, one)).map_err(|(_, one)| Refused::Full(one))?;
        self.reader.wake();
        Ok(())
    }

    /// The oldest, once there is one, with the time at which it came.
    pub(super) async fn next(&self) -> (Instant, T) {
        poll_fn(|context| {
            if let Some(next) = self.queue.pop() {
                return Poll::Ready(next);
            }
            self.reader.register(context.waker());
            // What came before the waker was there has woken nobody.
            self.queue.pop().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Takes no more, and gives what waits.
    pub(super) fn close(&self) -> Vec<T> {
        self.is_closed.store(true, Ordering::Release);
        std::iter::from_fn(|| self.queue.pop()).map(|(_, one)| one).collect()
    }

    /// Gives what has waited too long by `now`, and where something younger finds no place any more, that too. What is left may be
    /// in another order.
    pub(super) fn expired(&self, now: Instant) -> Vec<T> {
        let mut gone = Vec::new();
        // No more turns than there are places: what others add meanwhile is young.
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

/// Whether what came then has waited too long by `now`.
pub(super) fn is_late(came: Instant, now: Instant) -> bool {
    now.saturating_duration_since(came) > AGE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn the_oldest_comes_first_and_whoever_waits_for_one_is_told() {
        let waiting = Arc::new(Waiting::new(2));
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
        let (waiting, now) = (Waiting::new(1), Instant::now());
        assert_eq!(waiting.put(now, 1), Ok(()));
        assert_eq!(waiting.put(now, 2), Err(Refused::Full(2)));
        assert_eq!((waiting.len(), waiting.close()), (1, vec![1]));
        assert_eq!(waiting.put(now, 3), Err(Refused::Closed(3)));
        assert_eq!(waiting.len(), 0);
    }

    /// Nobody reads, as on a machine without a core to spare: of 100 programs that came one after the other few are held.
    #[test]
    fn what_nobody_works_on_does_not_hold_on_to_what_it_came_with() {
        let (waiting, start) = (Waiting::new(256), Instant::now());
        let programs: Vec<Arc<u32>> = (0..100).map(Arc::new).collect();
        for (program, minute) in programs.iter().zip(0..) {
            let now = start + 60 * Duration::from_secs(1) * minute;
            // A reload a minute.
            assert_eq!(waiting.expired(now).len(), usize::from(minute > 1));
            assert_eq!(waiting.put(now, Arc::clone(program)), Ok(()));
        }
        let held = programs.iter().filter(|program| Arc::strong_count(program) > 1).count();
        assert_eq!((held, waiting.len()), (2, 2));
    }
}
