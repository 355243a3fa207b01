//! The transport layer: a connection that can be reset on demand, and a body that can misbehave.

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

/// Set this flag to reset the connection instead of closing it.
pub type ResetFlag = Arc<AtomicBool>;

/// A TCP connection that is reset on drop if its flag is set.
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
            // Closing a socket with a linger time of zero sends RST and discards unsent data. If
            // setting the option fails, the peer has already disconnected.
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
        // A graceful shutdown would send FIN before the RST.
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

/// The way in which a body is sent.
#[derive(Clone, Copy)]
pub enum Manner {
    Whole,
    /// Sends only this number of bytes of the announced length, then closes the connection.
    Truncated(usize),
    /// The state of `Truncated` after its last byte.
    Cut,
    /// Sends chunks of this size, with a pause before each.
    Dripping(usize, Duration),
    /// Sends the body, followed by spaces without end.
    Endless,
}

/// A response body.
pub struct Body {
    rest: Bytes,
    manner: Manner,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// Time for a truncated body to be sent before the connection is closed.
const BEFORE_CUT: Duration = Duration::from_millis(20);

/// The chunk that an endless body repeats.
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
                // At least one byte must be missing, or the body would be complete.
                let end = bytes.min(self.rest.len().saturating_sub(1));
                self.manner = Manner::Cut;
                Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(end)))))
            }
            Manner::Cut => {
                // Delay the error until the preceding data has been sent; the error then closes the
                // connection.
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
            // Without a length, the body is sent in chunks.
            Manner::Endless => SizeHint::new(),
            _ => SizeHint::with_exact(self.rest.len() as u64),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.manner, Manner::Whole | Manner::Dripping(..)) && self.rest.is_empty()
    }
}
