//! An HTTP/1.1 connection to an upstream. The task of the current call drives it: that task writes
//! the request, reads the response head, and reads the body as its consumer polls for it. Without a
//! connection task there are no hand-overs or wake-ups between tasks, and a client that does not
//! read applies backpressure to the upstream directly.
//!
//! `connect` opens connections and `pool` selects one for each call.

use super::connect::UpstreamStream;
use super::patience::HeadDeadline;
use super::waker::ConnectionWaker;
use crate::batch::{Batched, Requeue};
use crate::body::Body;
use crate::error::GatewayError;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection as HyperConnection, SendRequest};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::time::{Instant, Sleep};

/// hyper's default limit of header fields. Any other limit makes hyper allocate the field table for
/// each response.
const HYPER_FIELDS_MAX: usize = 100;

/// An HTTP/1.1 connection to an upstream.
pub(super) struct Connection {
    sender: SendRequest<Outgoing>,
    driven: Driven,
    waker_state: Arc<ConnectionWaker>,
    /// Waker passed to hyper; notifies `waker_state`.
    waker: Waker,
    /// Deadline for the response head. One timer serves all calls: moving its deadline later does
    /// not touch the runtime's timer wheel.
    timer: Pin<Box<Sleep>>,
}

/// hyper's connection future, which reads and writes the socket.
struct Driven {
    hyper: HyperConnection<TokioIo<Batched<UpstreamStream, Arc<ConnectionWaker>>>, Outgoing>,
    is_open: bool,
}

/// Reason why a call has no response.
pub(super) enum CallFailure {
    /// The connection closed before any byte of the request was written.
    Unsent(Box<http::Request<Outgoing>>, hyper::Error),
    Broken(hyper::Error),
    /// The response head did not arrive before the deadline.
    Late,
}

impl Connection {
    /// Performs the HTTP/1.1 handshake. A response head is limited to `head_bytes_max` bytes and
    /// `fields_max` fields. hyper may reserve a buffer of that size per connection, so budget it
    /// once per call in flight.
    ///
    /// # Errors
    ///
    /// Returns hyper's error if the handshake fails.
    pub(super) async fn new(
        stream: UpstreamStream,
        head_bytes_max: usize,
        fields_max: usize,
    ) -> Result<Box<Connection>, hyper::Error> {
        let mut builder = Builder::new();
        builder.max_buf_size(head_bytes_max);
        if fields_max != HYPER_FIELDS_MAX {
            builder.max_headers(fields_max);
        }
        let waker_state = ConnectionWaker::new();
        let io = TokioIo::new(Batched::new(stream, Arc::clone(&waker_state)));
        let (sender, hyper) = builder.handshake(io).await?;
        let waker = Waker::from(Arc::clone(&waker_state));
        // The deadline is set with each call; a timer is registered with the runtime only when
        // polled.
        let timer = Box::pin(tokio::time::sleep_until(Instant::now()));
        Ok(Box::new(Connection {
            sender,
            driven: Driven { hyper, is_open: true },
            waker_state,
            waker,
            timer,
        }))
    }

    /// Sends a request and waits for the response head for as long as `patience` allows.
    ///
    /// # Errors
    ///
    /// Returns [`Failed::Unsent`] with the request if nothing was written, [`Failed::Late`] if the
    /// head did not arrive in time, and [`Failed::Broken`] otherwise.
    pub(super) async fn send(
        &mut self,
        request: Box<http::Request<Outgoing>>,
        patience: &HeadDeadline,
    ) -> Result<http::Response<Incoming>, CallFailure> {
        // Also discards the deadline of the previous call on this connection.
        self.timer.as_mut().reset(patience.until());
        // Boxed: this future contains the request, which would enlarge every enclosing future.
        let mut answering = Box::pin(self.sender.try_send_request(*request));
        let outcome = poll_fn(|cx| match self.drive(cx, |cx| answering.as_mut().poll(cx)) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            // The timer is polled after the connection, so a response that arrives together with
            // the deadline is still returned.
            Poll::Pending => loop {
                ready!(self.timer.as_mut().poll(cx));
                // The timer keeps its first deadline while bytes pass. It is moved only when it
                // fires, which is cheaper than a reset per frame.
                match patience.extension() {
                    Some(until) => self.timer.as_mut().reset(until),
                    None => break Poll::Ready(None),
                }
            },
        });
        match outcome.await {
            Some(Ok(response)) => Ok(response),
            Some(Err(mut error)) => Err(match error.take_message() {
                Some(request) => CallFailure::Unsent(Box::new(request), error.into_error()),
                None => CallFailure::Broken(error.into_error()),
            }),
            None => Err(CallFailure::Late),
        }
    }

    /// Polls `ready` and the connection alternately until `ready` completes or both are pending.
    /// The connection is polled only after its waker was notified.
    pub(super) fn drive<T>(
        &mut self,
        cx: &mut Context<'_>,
        ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Connection { driven, waker_state, waker, .. } = self;
        waker_state.drive(cx, waker, ready, || driven.advance(waker))
    }

    /// Detaches the connection from its task: events wake no task until the next use.
    pub(super) fn park(&mut self) {
        self.waker_state.park();
    }

    /// Returns whether the connection accepts another call, as far as is known. Drop a connection
    /// that returns `false`: the upstream closed it or still expects bytes of the last request.
    pub(super) fn poll_ready(&mut self) -> bool {
        self.park();
        // A close by the upstream only notifies the waker. Process it here, so that a dead idle
        // connection is discarded before a request is written to it.
        if self.waker_state.take_notified() {
            self.driven.advance(&self.waker);
        }
        self.driven.is_open && self.sender.is_ready()
    }
}

impl Driven {
    fn advance(&mut self, waker: &Waker) {
        if self.is_open {
            let mut inner = Context::from_waker(waker);
            // hyper also reports the error to the call in progress. Without a call, the closed
            // connection is just discarded.
            self.is_open = Pin::new(&mut self.hyper).poll(&mut inner).is_pending();
        }
    }
}

/// Body of a request to an upstream. Boxed because hyper reserves room for dozens of requests per
/// connection and most requests have no body.
#[derive(Default)]
pub(super) struct Outgoing(Option<Box<Body>>);

impl Outgoing {
    /// Returns the wrapped body.
    pub(super) fn into_body(self) -> Body {
        self.0.map_or_else(Body::empty, |body| *body)
    }

    /// Returns whether the complete body is already in memory.
    pub(super) fn is_whole(&self) -> bool {
        self.0.as_ref().is_none_or(|body| body.is_whole())
    }
}

impl From<Body> for Outgoing {
    fn from(body: Body) -> Outgoing {
        // No allocation for the many requests without a body.
        Outgoing(if body.is_empty() { None } else { Some(Box::new(body)) })
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        self.0.as_mut().map_or(Poll::Ready(None), |body| Pin::new(&mut **body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), |body| body.size_hint())
    }
}

impl Requeue for Arc<ConnectionWaker> {
    fn requeue(&self, _: &Context<'_>) {
        ConnectionWaker::requeue(self);
    }
}
