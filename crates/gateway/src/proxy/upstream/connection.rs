//! One HTTP/1.1 connection to an upstream, used by one call at a time and driven by whoever uses it: the task of the
//! request writes the call, reads the head of the answer and, as the answer is read, its body. There is no task behind it,
//! so nothing is handed over or woken between tasks, and a client that does not read holds the upstream up by itself.
//!
//! Which connection a call gets is decided in `pool`.

use crate::batch::{Batched, Requeue};
use crate::body::Body;
use crate::error::GatewayError;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection as HyperConnection, SendRequest};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// hyper's own limit of header fields. When another one is said, hyper takes memory for the fields of every answer.
const HYPER_FIELDS_MAX: usize = 100;
/// How often a connection is driven on in one go before other tasks get their turn.
const TURNS_MAX: usize = 16;

/// A connection to an upstream.
pub(super) struct Connection {
    sender: SendRequest<Outgoing>,
    hyper: HyperConnection<TokioIo<Batched<TcpStream, Arc<ConnectionWaker>>>, Outgoing>,
    is_open: bool,
    waker_state: Arc<ConnectionWaker>,
    /// Notifies the connection.
    waker: Waker,
    /// For the head of an answer. One for all calls: each call only puts it off, which touches no list of timers.
    timer: Pin<Box<Sleep>>,
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
        io: TokioIo<TcpStream>,
        head_bytes_max: usize,
        fields_max: usize,
    ) -> Result<Box<Connection>, hyper::Error> {
        let mut builder = Builder::new();
        builder.max_buf_size(head_bytes_max);
        if fields_max != HYPER_FIELDS_MAX {
            builder.max_headers(fields_max);
        }
        let waker_state = Arc::new(ConnectionWaker {
            is_notified: AtomicBool::new(true),
            is_driving: AtomicBool::new(false),
            is_requeued: AtomicBool::new(false),
            task: AtomicWaker::new(),
        });
        let io = TokioIo::new(Batched::new(io.into_inner(), Arc::clone(&waker_state)));
        let (sender, hyper) = builder.handshake(io).await?;
        let waker = Waker::from(Arc::clone(&waker_state));
        let timer = Box::pin(tokio::time::sleep_until(Instant::now()));
        Ok(Box::new(Connection { sender, hyper, is_open: true, waker_state, waker, timer }))
    }

    /// Sends a call and waits for the head of its answer until `deadline`.
    pub(super) async fn send(
        &mut self,
        request: Box<http::Request<Outgoing>>,
        deadline: Instant,
    ) -> Result<http::Response<Incoming>, Failed> {
        self.timer.as_mut().reset(deadline);
        // Apart: it has room for the call, which would make every future around it larger by that.
        let mut answering = Box::pin(self.sender.try_send_request(*request));
        let outcome = poll_fn(|cx| match self.drive(cx, |cx| answering.as_mut().poll(cx)) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => self.timer.as_mut().poll(cx).map(|()| None),
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
        mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.waker_state.task.register(cx.waker());
        self.waker_state.is_driving.store(true, Relaxed);
        let mut polled = Poll::Pending;
        for _ in 0..TURNS_MAX {
            let mut inner = Context::from_waker(&self.waker);
            polled = ready(&mut inner);
            if polled.is_ready() || !self.waker_state.take_notified() {
                break;
            }
            self.advance();
        }
        self.waker_state.is_driving.store(false, SeqCst);
        if self.waker_state.is_requeued.load(Relaxed) {
            self.waker_state.is_requeued.store(false, Relaxed);
            self.waker_state.is_notified.store(true, SeqCst);
        }
        // Wants its turn after others, was notified by another thread a moment ago, or there were too many turns: someone has
        // to come back.
        if polled.is_pending() && self.waker_state.is_notified.load(SeqCst) {
            cx.waker().wake_by_ref();
        }
        polled
    }

    /// Parks the connection: no task is woken for it until it is used again.
    pub(super) fn park(&mut self) {
        self.waker_state.task.take();
    }

    /// Whether another call can be sent, as far as is known. A connection that cannot be used (the upstream has closed it, or
    /// still wants bytes of the last call) is to be dropped.
    pub(super) fn poll_ready(&mut self) -> bool {
        self.park();
        if self.waker_state.take_notified() {
            self.advance();
        }
        self.is_open && self.sender.is_ready()
    }

    fn advance(&mut self) {
        if self.is_open {
            let mut inner = Context::from_waker(&self.waker);
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

/// Wakes the task that drives a connection, except while it drives: then it looks again by itself. Without it the
/// connection's own hand-overs, which happen while it is driven, would schedule the task once more for nothing.
struct ConnectionWaker {
    is_notified: AtomicBool,
    is_driving: AtomicBool,
    /// Whether the connection wants to be polled again, but not while it is being driven: its write waits for other tasks.
    is_requeued: AtomicBool,
    task: AtomicWaker,
}

impl ConnectionWaker {
    /// Whether it was notified since the last time.
    fn take_notified(&self) -> bool {
        // Mostly it was not, and to look costs less than to exchange.
        self.is_notified.load(Relaxed) && self.is_notified.swap(false, SeqCst)
    }
}

impl Requeue for Arc<ConnectionWaker> {
    fn requeue(&self, _: &Context<'_>) {
        self.is_requeued.store(true, Relaxed);
    }
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_notified.store(true, SeqCst);
        if !self.is_driving.load(SeqCst) {
            self.task.wake();
        }
    }
}
