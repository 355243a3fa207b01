//! Batched writes: a transport that delays its writes until every ready task of the core has been
//! polled. The writes of many connections then follow one another, instead of alternating with
//! other work. A peer on the same machine wakes once for all of them rather than once per write
//! (waking costs more than writing), and each stage's code stays in the instruction cache.
//!
//! A task that runs alone pays one extra poll. No timer is involved.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Schedules another poll of a transport's task, behind the tasks that are ready now.
pub(crate) trait Requeue {
    fn requeue(&self, cx: &Context<'_>);
}

/// A [`Requeue`] for transports that are polled with the waker of their own task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnTask;

impl Requeue for OwnTask {
    fn requeue(&self, cx: &Context<'_>) {
        cx.waker().wake_by_ref();
    }
}

/// A transport that delays its first write after each flush by one scheduler turn.
#[derive(Debug)]
pub(crate) struct Batched<T, R> {
    transport: T,
    task: R,
    has_waited: bool,
}

impl<T, R: Requeue> Batched<T, R> {
    pub(crate) fn new(transport: T, task: R) -> Batched<T, R> {
        Batched { transport, task, has_waited: false }
    }

    /// Returns whether a write may run now. Otherwise schedules another poll of the task.
    fn turn(&mut self, cx: &Context<'_>) -> bool {
        if !self.has_waited {
            self.has_waited = true;
            self.task.requeue(cx);
            return false;
        }
        true
    }
}

impl<T: AsyncRead + Unpin, R: Unpin> AsyncRead for Batched<T, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin, R: Requeue + Unpin> AsyncWrite for Batched<T, R> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if !self.turn(cx) {
            return Poll::Pending;
        }
        Pin::new(&mut self.transport).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.turn(cx) {
            return Poll::Pending;
        }
        Pin::new(&mut self.transport).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.has_waited = false;
        Pin::new(&mut self.transport).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tokio::io::AsyncWriteExt as _;

    /// Notes what is written, among what else is noted.
    struct Noted(&'static str, Arc<Mutex<Vec<String>>>);

    impl AsyncWrite for Noted {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            self.1.lock().unwrap().push(format!("{} writes", self.0));
            Poll::Ready(Ok(buf.len().min(2)))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn writes_come_after_the_work_of_all_that_is_ready_and_wait_once_per_flush() {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let tasks = ["a", "b"].map(|name| {
            let notes = Arc::clone(&notes);
            tokio::spawn(async move {
                let mut transport = Batched::new(Noted(name, Arc::clone(&notes)), OwnTask);
                for _ in 0..2 {
                    notes.lock().unwrap().push(format!("{name} works"));
                    transport.write_all(b"four").await.unwrap();
                    transport.flush().await.unwrap();
                }
            })
        });
        for task in tasks {
            task.await.unwrap();
        }
        // The four bytes take two writes, of which only the first waits; then each goes on with its
        // next work.
        assert_eq!(
            *notes.lock().unwrap(),
            [
                "a works", "b works", "a writes", "a writes", "a works", "b writes", "b writes", "b works",
                "a writes", "a writes", "b writes", "b writes",
            ]
        );
    }
}
