//! HTTP/2 on one connection. Each stream runs in its own task, within flow control.
//!
//! Decision to know: this uses `h2` directly, as hyper's server does internally, because hyper
//! hides two things that are needed here: which stream a client has stopped reading, and the
//! interim response that a client with `Expect: 100-continue` waits for (RFC 9110, section 10.1.1).
//! A stalled stream is reset alone; other streams continue, and the connection closes once only
//! stalled streams were left.

use super::activity::{Activity, Arrears, ShutdownSignal};
use super::{ConnectionTimeouts, HttpLimits, ServerOptions};
use crate::body::Body;
use crate::error::{ErrorKind, ErrorSide, GatewayError};
use crate::interim::{self, Interim};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use h2::server::{Connection, SendResponse};
use h2::{Ping, PingPong, Reason, RecvStream, SendStream};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};

/// Receive windows per stream and per connection.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Maximum number of reset streams, by the client before accept or by the gateway for errors,
/// before the connection is closed.
const RESETS_MAX: usize = 128;
/// Keep-alive pings detect a peer that disappeared.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of one piece of a response body, so that little more is buffered below than the
/// window has room for.
const PIECE_BYTES: usize = 16 * 1024;

/// Yields that let the connection's task write pending data.
const BREAK_TURNS: usize = 4;

/// Connection-specific fields, which HTTP/2 forbids (RFC 9113, section 8.2.2).
const OF_CONNECTIONS: [HeaderName; 6] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// A handler of requests.
pub(super) trait Respond: Send {
    fn answer(
        &mut self,
        request: http::Request<Body>,
    ) -> impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static;
}

/// Answers the requests of one connection until it closes.
pub(super) async fn serve<T>(
    transport: T,
    mut handler: impl Respond,
    options: &ServerOptions,
    activity: &Arc<Activity>,
) -> Result<(), h2::Error>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    activity.speaks_h2();
    let mut connection = builder(&options.http).handshake::<_, Bytes>(transport).await?;
    let mut pings = connection.ping_pong().map(Pings::new);
    let patience = ReaderPatience::from_timeouts(&options.timeouts);
    let mut is_ending = false;
    let mut next = |connection: &mut Connection<T, Bytes>, cx: &mut Context<'_>| {
        if !is_ending && activity.order() >= ShutdownSignal::Finish {
            is_ending = true;
            // Sends GOAWAY; a request that crosses it in transit is still answered.
            connection.graceful_shutdown();
        }
        if pings.as_mut().is_some_and(|pings| pings.is_gone(cx)) {
            // A peer that is gone cannot acknowledge a graceful shutdown.
            connection.abrupt_shutdown(Reason::NO_ERROR);
        }
        connection.poll_accept(cx)
    };
    while let Some(accepted) = poll_fn(|cx| next(&mut connection, cx)).await {
        let (request, reply) = accepted?;
        let in_flight = activity.request(true);
        let (parts, received) = request.into_parts();
        let mut stream = Stream { reply, activity: Arc::clone(activity), patience, continues: None };
        let body = stream.body(&parts.headers, received);
        let answering = handler.answer(http::Request::from_parts(parts, body));
        // A task per stream: a slow one must not block the frames of the others.
        tokio::spawn(async move {
            let _in_flight = in_flight;
            stream.run(answering).await;
        });
    }
    Ok(())
}

fn builder(limits: &HttpLimits) -> h2::server::Builder {
    let mut builder = h2::server::Builder::new();
    builder
        .max_concurrent_streams(limits.h2_streams_max)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX))
        .max_send_buffer_size(limits.buffer_bytes_max)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(Some(RESETS_MAX));
    builder
}

/// Keep-alive pings that detect an unresponsive peer.
struct Pings {
    pings: PingPong,
    timer: Pin<Box<Sleep>>,
    is_asked: bool,
}

impl Pings {
    fn new(pings: PingPong) -> Pings {
        Pings { pings, timer: Box::pin(tokio::time::sleep(PING_INTERVAL)), is_asked: false }
    }

    /// Returns whether the peer missed the deadline of a ping.
    fn is_gone(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            if self.is_asked && self.pings.poll_pong(cx).is_ready() {
                self.is_asked = false;
                self.timer.as_mut().reset(Instant::now() + PING_INTERVAL);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            // An error of `send_ping` means that the connection is closing already.
            if self.is_asked || self.pings.send_ping(Ping::opaque()).is_err() {
                return self.is_asked;
            }
            self.is_asked = true;
            self.timer.as_mut().reset(Instant::now() + PING_TIMEOUT);
        }
    }
}

/// How long a client may stall a response, and the minimum average rate meanwhile.
#[derive(Clone, Copy)]
struct ReaderPatience {
    timeout: Duration,
    bytes_per_second_min: u64,
}

impl ReaderPatience {
    fn from_timeouts(timeouts: &ConnectionTimeouts) -> ReaderPatience {
        ReaderPatience { timeout: timeouts.write, bytes_per_second_min: timeouts.answer_bytes_per_second_min }
    }
}

/// The stream of one request.
struct Stream {
    reply: SendResponse<Bytes>,
    activity: Arc<Activity>,
    patience: ReaderPatience,
    /// Set if the client waits for `100 Continue`.
    continues: Option<Arc<Continue>>,
}

/// Reason why a stream did not complete.
enum StreamEnd {
    /// The client reset the stream, or the connection is closed.
    Gone,
    /// The client does not read.
    Stalled,
    /// The response body failed.
    Broken,
}

impl From<h2::Error> for StreamEnd {
    fn from(_: h2::Error) -> StreamEnd {
        StreamEnd::Gone
    }
}

impl Stream {
    /// Returns the request body, and notes whether the client expects `100 Continue`.
    fn body(&mut self, headers: &HeaderMap, received: RecvStream) -> Body {
        if received.is_end_stream() {
            return Body::empty();
        }
        let expects = headers.get(header::EXPECT);
        if expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
            self.continues = Some(Arc::default());
        }
        let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Body::stream(
            Received { received, left: length, continues: self.continues.clone() },
            ErrorSide::Client,
        )
    }

    async fn run(mut self, answering: impl Future<Output = Result<Response<Body>, Infallible>>) {
        let Some(response) = self.response(answering).await else { return };
        match self.send(response).await {
            Ok(()) | Err(StreamEnd::Gone) => {}
            Err(StreamEnd::Broken) => {
                // A reset drops unsent data, including the response head: let the connection's task
                // send it first.
                for _ in 0..BREAK_TURNS {
                    tokio::task::yield_now().await;
                }
                self.reply.send_reset(Reason::INTERNAL_ERROR);
            }
            Err(StreamEnd::Stalled) => {
                tracing::debug!("a stream is cut: its client does not read");
                self.reply.send_reset(Reason::CANCEL);
                self.activity.stream_cut();
            }
        }
    }

    /// Waits for the response and sends interim ones meanwhile; returns `None` if the client resets
    /// the stream.
    async fn response(
        &mut self,
        answering: impl Future<Output = Result<Response<Body>, Infallible>>,
    ) -> Option<Response<Body>> {
        let mut answering = pin!(answering);
        poll_fn(|cx| {
            let (polled, interim) = interim::heard(|| answering.as_mut().poll(cx));
            for Interim { status, headers } in interim {
                let mut said = Response::new(());
                (*said.status_mut(), *said.headers_mut()) = (status, headers);
                // An error means that the stream is closed, which `poll_reset` reports below.
                let _ = self.reply.send_informational(said);
            }
            if let Poll::Ready(Ok(response)) = polled {
                return Poll::Ready(Some(response));
            }
            if self.continues.as_ref().is_some_and(|continues| continues.is_wanted(cx)) {
                self.continues = None;
                let mut interim = Response::new(());
                *interim.status_mut() = StatusCode::CONTINUE;
                // As above.
                let _ = self.reply.send_informational(interim);
            }
            match self.reply.poll_reset(cx) {
                Poll::Ready(_) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    async fn send(&mut self, response: Response<Body>) -> Result<(), StreamEnd> {
        let (mut parts, mut body) = response.into_parts();
        // A forwarded HTTP/1.1 response may contain them, and a client treats the stream as
        // malformed then.
        OF_CONNECTIONS.iter().for_each(|name| drop(parts.headers.remove(name)));
        if !parts.headers.contains_key(header::DATE) {
            let now = httpdate::fmt_http_date(SystemTime::now());
            parts.headers.insert(header::DATE, HeaderValue::try_from(now).expect("a date is plain text"));
        }
        let is_empty = body.is_end_stream();
        if !is_empty
            && let Some(length) = body.length()
            && !parts.headers.contains_key(header::CONTENT_LENGTH)
        {
            parts.headers.insert(header::CONTENT_LENGTH, length.into());
        }
        let mut sink = self.reply.send_response(Response::from_parts(parts, ()), is_empty)?;
        if is_empty {
            return Ok(());
        }
        let mut reader =
            ResponseReader { patience: self.patience, arrears: Arrears::default(), idle_since: None };
        while let Some(frame) = next_frame(&mut body, &mut sink).await? {
            let mut rest = match frame.into_data() {
                Ok(chunk) => chunk,
                Err(frame) => return Ok(sink.send_trailers(frame.into_trailers().unwrap_or_default())?),
            };
            while !rest.is_empty() {
                let taken = reader.capacity(&mut sink, rest.len().min(PIECE_BYTES)).await?;
                let piece = rest.split_to(taken.min(rest.len()));
                let is_last = rest.is_empty() && body.is_end_stream();
                sink.send_data(piece, is_last)?;
                if is_last {
                    return Ok(());
                }
            }
        }
        Ok(sink.send_data(Bytes::new(), true)?)
    }
}

/// Returns the next frame of the response body, or `StreamEnd::Gone` if the client resets the
/// stream.
async fn next_frame(
    body: &mut Body,
    sink: &mut SendStream<Bytes>,
) -> Result<Option<Frame<Bytes>>, StreamEnd> {
    poll_fn(|cx| {
        if let Poll::Ready(polled) = Pin::new(&mut *body).poll_frame(cx) {
            return Poll::Ready(polled.transpose().map_err(|_| StreamEnd::Broken));
        }
        sink.poll_reset(cx).map(|_| Err(StreamEnd::Gone))
    })
    .await
}

/// Read progress of the client on one response.
struct ResponseReader {
    patience: ReaderPatience,
    arrears: Arrears,
    /// Time since which no data waits for the client.
    idle_since: Option<Instant>,
}

impl ResponseReader {
    /// Waits until the client accepts some of `wanted` bytes, for at most the rest of its
    /// allowance.
    async fn capacity(&mut self, sink: &mut SendStream<Bytes>, wanted: usize) -> Result<usize, StreamEnd> {
        // The capacity is requested for one piece only: a larger reservation would hold a part of
        // the connection's window that other streams could use.
        sink.reserve_capacity(wanted);
        if sink.capacity() > 0 {
            self.arrears.paid(sink.capacity().min(wanted) as u64, self.patience.bytes_per_second_min);
            return Ok(sink.capacity());
        }
        let since = Instant::now();
        // The time since the last wait was the gateway's or the upstream's, so it reduces the debt.
        if let Some(idle_since) = self.idle_since.take() {
            self.arrears.add_idle(millis(since - idle_since));
        }
        let left = self.patience.timeout.saturating_sub(Duration::from_millis(self.arrears.0));
        let waiting = poll_fn(|cx| {
            loop {
                return Poll::Ready(match ready!(sink.poll_capacity(cx)) {
                    Some(Ok(0)) => continue,
                    Some(Ok(capacity)) => Ok(capacity),
                    Some(Err(_)) | None => Err(StreamEnd::Gone),
                });
            }
        });
        let waited = tokio::time::timeout_at(since + left, waiting).await;
        let capacity = waited.unwrap_or(Err(StreamEnd::Stalled))?;
        self.arrears.add_stall(millis(since.elapsed()));
        self.arrears.paid(capacity.min(wanted) as u64, self.patience.bytes_per_second_min);
        self.idle_since = Some(Instant::now());
        Ok(capacity)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Signal from the reader of a request body to its stream to send `100 Continue`: different tasks
/// may poll them.
#[derive(Default)]
struct Continue {
    is_wanted: AtomicBool,
    waker: AtomicWaker,
}

impl Continue {
    fn want(&self) {
        self.is_wanted.store(true, Release);
        self.waker.wake();
    }

    /// Takes the signal: returns whether the body was polled before any of it arrived.
    fn is_wanted(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.is_wanted.swap(false, AcqRel)
    }
}

/// A request body received over HTTP/2.
struct Received {
    received: RecvStream,
    /// Remaining bytes, if the client declared a length.
    left: Option<u64>,
    continues: Option<Arc<Continue>>,
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let this = self.get_mut();
        let polled = this.received.poll_data(cx);
        // Polling the body accepts the request. No `100 Continue` is needed if data has already
        // arrived.
        if let Some(continues) = this.continues.take()
            && polled.is_pending()
        {
            continues.want();
        }
        Poll::Ready(match ready!(polled) {
            Some(Ok(bytes)) => {
                // Extend the window by the bytes read. An error means that the stream is closed.
                let _ = this.received.flow_control().release_capacity(bytes.len());
                this.left = this.left.map(|left| left.saturating_sub(bytes.len() as u64));
                Some(Ok(Frame::data(bytes)))
            }
            // `NO_ERROR`: the peer does not need the rest, which completes the stream (RFC 9113,
            // section 8.1).
            Some(Err(error)) if error.reason() == Some(Reason::NO_ERROR) => None,
            Some(Err(error)) => {
                let broken = GatewayError::new(ErrorKind::BadRequest, "the request body broke off");
                Some(Err(broken.because(error)))
            }
            None => match ready!(this.received.poll_trailers(cx)) {
                Ok(trailers) => trailers.map(|trailers| Ok(Frame::trailers(trailers))),
                // The body is complete; only its trailers are lost.
                Err(_) => None,
            },
        })
    }

    fn is_end_stream(&self) -> bool {
        self.received.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
