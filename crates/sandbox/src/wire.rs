//! The lowest layer: a connection that can be reset on demand, and a body that can misbehave.

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use socket2::SockRef;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Set to have the connection reset instead of closed when it ends.
pub type ResetFlag = Arc<AtomicBool>;

/// A TCP connection that ends in RST where its flag is set.
pub struct Wire {
    stream: TcpStream,
    reset: ResetFlag,
}

impl Wire {
    pub fn new(stream: TcpStream) -> (Wire, ResetFlag) {
        let reset = ResetFlag::default();
        (Wire { stream, reset: reset.clone() }, reset)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            // Closing a socket that lingers for no time sends RST and throws away what was not sent. If the option cannot be
            // set, the peer is gone already.
            SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).ok();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A reset connection must not say goodbye first.
        if self.reset.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}

/// How a body is sent.
#[derive(Clone, Copy)]
pub enum Manner {
    Whole,
    /// Only so many bytes, although all were announced; then the connection ends.
    Truncated(usize),
    /// What `Truncated` becomes: nothing more comes.
    Cut,
    /// In pieces of so many bytes, with a pause before each.
    Dripping(usize, Duration),
    /// Followed by blanks for ever.
    Endless,
}

/// A response body.
pub struct Body {
    rest: Bytes,
    manner: Manner,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// Time for a truncated body to leave before the connection ends.
const BEFORE_CUT: Duration = Duration::from_millis(20);

/// What an endless body repeats.
const BLANKS: [u8; 1024] = [b' '; 1024];

impl Body {
    pub fn new(bytes: Vec<u8>, manner: Manner) -> Body {
        Body { rest: bytes.into(), manner, sleep: None }
    }

    fn poll_pause(&mut self, cx: &mut Context<'_>, pause: Duration) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        std::task::ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        Poll::Ready(())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.manner {
            Manner::Whole if self.rest.is_empty() => Poll::Ready(None),
            Manner::Whole => Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest))))),
            Manner::Truncated(bytes) => {
                let end = bytes.min(self.rest.len().saturating_sub(1));
                self.manner = Manner::Cut;
                Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(end)))))
            }
            Manner::Cut => {
                // What was given goes out while the body is slow, and only then does the error end the connection.
                std::task::ready!(self.poll_pause(cx, BEFORE_CUT));
                Poll::Ready(Some(Err(io::Error::other("truncated as a fault rule wants it"))))
            }
            Manner::Dripping(..) if self.rest.is_empty() => Poll::Ready(None),
            Manner::Dripping(bytes, pause) => {
                std::task::ready!(self.poll_pause(cx, pause));
                let end = bytes.min(self.rest.len());
                Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(end)))))
            }
            Manner::Endless if !self.rest.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest)))))
            }
            Manner::Endless => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&BLANKS))))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.manner {
            Manner::Endless => SizeHint::new(),
            _ => SizeHint::with_exact(self.rest.len() as u64),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.manner, Manner::Whole | Manner::Dripping(..)) && self.rest.is_empty()
    }
}
