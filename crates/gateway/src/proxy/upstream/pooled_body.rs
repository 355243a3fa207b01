//! Body of an HTTP/1.1 response, together with its connection. The connection returns to the pool
//! when the body ends.

use super::connection::Connection;
use super::ready::ReadyConnections;
use crate::body::{self, Body};
use crate::error::{ErrorSide, GatewayError};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::{Body as _, Incoming};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

/// Wraps the body of a response received on `connection`. `pool` retains the connection for `kept`
/// when it becomes free. Buffered bytes are read at once, because most bodies are complete by then
/// and release their connection immediately.
pub(super) fn pooled_body(
    incoming: Incoming,
    connection: Box<Connection>,
    is_last: bool,
    kept: Duration,
    pool: &Arc<ReadyConnections>,
) -> Body {
    let mut rest = PooledBody {
        incoming,
        connection: Some(connection),
        is_last,
        kept,
        ready: None,
        pool: Arc::clone(pool),
    };
    if rest.incoming.is_end_stream() {
        rest.release();
        return Body::empty();
    }
    // A no-op waker is enough: the consumer registers its own waker with the next poll.
    match rest.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(None) => return Body::empty(),
        Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
            // The connection was released with this frame, so the body is complete and needs no
            // stream.
            Ok(bytes) if rest.connection.is_none() => return Body::full(bytes),
            Ok(bytes) => rest.ready = Some(Ok(Frame::data(bytes))),
            Err(trailers) => rest.ready = Some(Ok(trailers)),
        },
        Poll::Ready(Some(Err(error))) => rest.ready = Some(Err(error)),
        Poll::Pending => {}
    }
    Body::stream(rest, ErrorSide::Upstream)
}

/// The unread part of a response body and its connection. Dropping the body early closes the
/// connection, because the remaining bytes would precede the next response.
struct PooledBody {
    incoming: Incoming,
    connection: Option<Box<Connection>>,
    /// The connection may not be reusable: the upstream closes it, or the request body is still
    /// being sent.
    is_last: bool,
    /// How long the pool retains the free connection.
    kept: Duration,
    /// A frame read together with the head, not yet returned.
    ready: Option<Result<Frame<Bytes>, GatewayError>>,
    pool: Arc<ReadyConnections>,
}

impl PooledBody {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        let incoming = &mut self.incoming;
        Poll::Ready(match ready!(connection.drive(cx, |cx| Pin::new(&mut *incoming).poll_frame(cx))) {
            Some(Ok(frame)) => {
                // Release with the last data frame rather than with the following poll: a consumer
                // that knows the length does not poll again.
                if frame.is_data() && incoming.is_end_stream() {
                    self.release();
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                // The position in the byte stream is unknown after an error, so the connection is
                // closed.
                self.connection = None;
                Some(Err(body::broke_off(body::BROKE_OFF, error)))
            }
            None => {
                self.release();
                None
            }
        })
    }

    /// Returns the connection to the pool after the body has been read. Only a doubtful connection
    /// is checked here. Others are checked on their next use; the response has been dropped by
    /// then, so hyper can reuse its read buffer instead of allocating.
    fn release(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && (!self.is_last || connection.poll_ready())
        {
            // The task of this call may finish or wait for something else; events of the idle
            // connection must not wake it.
            connection.park();
            self.pool.put(connection, self.kept);
        }
    }
}

impl http_body::Body for PooledBody {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let this = self.get_mut();
        if let Some(ready) = this.ready.take() {
            return Poll::Ready(Some(ready));
        }
        this.poll_next(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none() && self.connection.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.incoming.size_hint();
        match (&self.ready, rest.exact()) {
            (Some(Ok(ready)), Some(rest)) => {
                SizeHint::with_exact(rest + ready.data_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            _ => rest,
        }
    }
}
