//! One HTTP/1.1 connection to an upstream, used by one call at a time and driven by whoever uses it: the task of the
//! request writes the call, reads the head of the answer and, as the answer is read, its body. There is no task behind it,
//! so nothing is handed over or woken between tasks, and a client that does not read holds the upstream up by itself.
//!
//! Whether the bytes go over TLS or not is `connect`'s business, and which connection a call gets is `pool`'s.

use super::connect::Stream;
use super::patience::Patience;
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

/// hyper's own limit of header fields. When another one is said, hyper takes memory for the fields of every answer.
const HYPER_FIELDS_MAX: usize = 100;

/// A connection to an upstream.
pub(super) struct Connection {
    sender: SendRequest<Outgoing>,
    driven: Driven,
    waker_state: Arc<ConnectionWaker>,
    /// Notifies the connection.
    waker: Waker,
    /// For the head of an answer. One for all calls: each call only puts it off, which touches no list of timers.
    timer: Pin<Box<Sleep>>,
}

/// What reads and writes.
struct Driven {
    hyper: HyperConnection<TokioIo<Batched<Stream, Arc<ConnectionWaker>>>, Outgoing>,
    is_open: bool,
}

/// Why a call has no answer.
pub(super) enum Failed {
    /// Nothing of it was written: the connection had ended before.
    Unsent(Box<http::Request<Outgoing>>, hyper::Error),
    Broken(hyper::Error),
    /// The head did not come in time.
    Late,
}

impl Connection {
    /// Begins to speak HTTP/1.1 on a connection. The head of an answer has at most `head_bytes_max` bytes and `fields_max`
    /// fields. A connection that waits for an answer may have room for such a head already, so what is allowed here may be
    /// taken by every call in flight.
    pub(super) async fn new(
        stream: Stream,
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
        let timer = Box::pin(tokio::time::sleep_until(Instant::now()));
        Ok(Box::new(Connection {
            sender,
            driven: Driven { hyper, is_open: true },
            waker_state,
            waker,
            timer,
        }))
    }

    /// Sends a call and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        request: Box<http::Request<Outgoing>>,
        patience: &Patience,
    ) -> Result<http::Response<Incoming>, Failed> {
        self.timer.as_mut().reset(patience.until());
        // Apart: it has room for the call, which would make every future around it larger by that.
        let mut answering = Box::pin(self.sender.try_send_request(*request));
        let outcome = poll_fn(|cx| match self.drive(cx, |cx| answering.as_mut().poll(cx)) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => loop {
                ready!(self.timer.as_mut().poll(cx));
                match patience.extension() {
                    Some(until) => self.timer.as_mut().reset(until),
                    None => break Poll::Ready(None),
                }
            },
        });
        match outcome.await {
            Some(Ok(response)) => Ok(response),
            Some(Err(mut error)) => Err(match error.take_message() {
                Some(request) => Failed::Unsent(Box::new(request), error.into_error()),
                None => Failed::Broken(error.into_error()),
            }),
            None => Err(Failed::Late),
        }
    }

    /// Polls `ready` and the connection in turns, until `ready` has something or neither can go on. The connection is
    /// only polled when it asked for it.
    pub(super) fn drive<T>(
        &mut self,
        cx: &mut Context<'_>,
        ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Connection { driven, waker_state, waker, .. } = self;
        waker_state.drive(cx, waker, ready, || driven.advance(waker))
    }

    /// Parks the connection: no task is woken for it until it is used again.
    pub(super) fn park(&mut self) {
        self.waker_state.park();
    }

    /// Whether another call can be sent, as far as is known. A connection that cannot be used (the upstream has closed it, or
    /// still wants bytes of the last call) is to be dropped.
    pub(super) fn poll_ready(&mut self) -> bool {
        self.park();
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
            // How a connection ended is told to the call that was on it.
            self.is_open = Pin::new(&mut self.hyper).poll(&mut inner).is_pending();
        }
    }
}

/// The body of a call on its way to a connection. hyper keeps room for some dozens of calls with every connection, so they
/// had better be small: most have no body.
#[derive(Default)]
pub(super) struct Outgoing(Option<Box<Body>>);

impl Outgoing {
    /// The body itself.
    pub(super) fn into_body(self) -> Body {
        self.0.map_or_else(Body::empty, |body| *body)
    }

    /// Whether all of it is here.
    pub(super) fn is_whole(&self) -> bool {
        self.0.as_ref().is_none_or(|body| body.is_whole())
    }
}

impl From<Body> for Outgoing {
    fn from(body: Body) -> Outgoing {
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
