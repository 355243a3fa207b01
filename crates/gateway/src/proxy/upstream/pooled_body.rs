//! The body of an answer over HTTP/1.1, and the connection that it comes on, which is ready for another call when the
//! body has ended.

use super::connection::Connection;
use super::ready::ReadyConnections;
use crate::body::{self, Body};
use crate::error::{GatewayError, Side};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::{Body as _, Incoming};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

/// The body of an answer that comes on `connection`, which `pool` keeps for `kept` when it is free. What of the body is here
/// already is read at once: most answers come whole, and their connection is free again.
pub(super) fn pooled(
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
    // Whoever reads on says whom to wake.
    match rest.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(None) => return Body::empty(),
        Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
            Ok(bytes) if rest.connection.is_none() => return Body::full(bytes),
            Ok(bytes) => rest.ready = Some(Ok(Frame::data(bytes))),
            Err(trailers) => rest.ready = Some(Ok(trailers)),
        },
        Poll::Ready(Some(Err(error))) => rest.ready = Some(Err(error)),
        Poll::Pending => {}
    }
    Body::stream(rest, Side::Upstream)
}

/// The rest of an answer's body, and the connection that it comes on. The connection is free when the body has ended; a body
/// that is dropped before ends its connection, as nothing else would.
struct PooledBody {
    incoming: Incoming,
    connection: Option<Box<Connection>>,
    /// Whether this may have been the last call on the connection: the upstream closes it, or the call is still being read
    /// from elsewhere.
    is_last: bool,
    /// How long the connection is kept when it is free.
    kept: Duration,
    /// Was here already when the head came.
    ready: Option<Result<Frame<Bytes>, GatewayError>>,
    pool: Arc<ReadyConnections>,
}

impl PooledBody {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        let incoming = &mut self.incoming;
        Poll::Ready(match ready!(connection.drive(cx, |cx| Pin::new(&mut *incoming).poll_frame(cx))) {
            Some(Ok(frame)) => {
                if frame.is_data() && incoming.is_end_stream() {
                    self.release();
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                self.connection = None;
                Some(Err(body::broke_off(body::BROKE_OFF, error)))
            }
            None => {
                self.release();
                None
            }
        })
    }

    /// The answer is read. A connection that may not be used again is looked at now, any other when it is wanted: by then
    /// nobody holds the answer any more, and the connection can use its memory again instead of asking for more.
    fn release(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && (!self.is_last || connection.poll_ready())
        {
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
