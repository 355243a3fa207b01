//! One connection: TLS if configured, HTTP/1.1 or HTTP/2 by ALPN or by its first bytes, and a
//! graceful or immediate shutdown. The listener's registry watches its deadlines. hyper serves
//! HTTP/1.1; [`super::http2`] serves HTTP/2.

use super::activity::{Activity, InFlight, ShutdownListener, ShutdownSignal, TrackedIo};
use super::http2;
use super::proxy_protocol;
use super::ready::{self, Calling};
use super::{HttpLimits, Lingering, RequestService, ServerOptions};
use crate::batch::{Batched, OwnTask};
use crate::body::Body;
use crate::error::{ErrorSide, GatewayError};
use crate::interim;
use crate::tunnel::Tunnel;
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;

/// The remote end of a connection; a request extension if [`ServerOptions::tells_peer`] is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Remote address and port; those of the proxy if there is one in front of the gateway.
    pub address: SocketAddr,
    /// Whether the connection to the gateway itself is encrypted.
    pub is_tls: bool,
}

/// A handle of the connection; a request extension if [`ServerOptions::evicts`] is set.
#[derive(Clone)]
pub struct ConnectionHandle(Arc<Activity>);

impl ConnectionHandle {
    /// Marks the connection as authenticated, so that it is not evicted in favour of others.
    pub fn trust(&self) {
        self.0.trust();
    }
}

/// Response to a connection beyond the limits, sent without reading its request.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";

/// hyper's default limit of header fields. Setting any limit makes hyper allocate for the fields of
/// each message.
const HYPER_HEADERS_MAX: usize = 100;

/// Maximum time for rejecting a connection.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a connection that has not sent anything stays open once draining starts: the first
/// request of a client that has just connected may be in transit, or in a client that waits for a
/// processor.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Connection preface of an HTTP/2 client (RFC 9113, section 3.4).
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Size of one read while lingering after the last response.
const LINGERING_PIECE_BYTES: usize = 16 * 1024;
/// Polls between the last chunk of a truncated response and its error. When a body fails, hyper
/// drops unwritten data including the response head, and the client would receive no response
/// instead of a truncated one. A write takes two polls (see `batch`); over HTTP/2, another task
/// writes.
const BREAK_TURNS: u8 = 4;

/// Rejects a connection with 503. With TLS, no response is possible before the handshake, so the
/// connection is closed. Received bytes are discarded until then: closing with unread bytes would
/// reset the connection and lose the response (RFC 9112, section 9.6).
pub(super) async fn refuse(mut stream: TcpStream, is_tls: bool) {
    if !is_tls {
        let closing = async {
            stream.write_all(BUSY).await?;
            stream.shutdown().await?;
            loop {
                stream.readable().await?;
                // Scoped to one read, so that the future does not store it: rejections are frequent
                // when memory is short.
                let mut forgotten = [0; 16 * 1024];
                match stream.try_read(&mut forgotten) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        };
        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, closing).await;
    }
}

/// Answers the requests of one connection until it closes or is cut.
pub(super) async fn serve<S: RequestService>(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    service: S,
    options: Arc<ServerOptions>,
    activity: Arc<Activity>,
) {
    let mut serving = pin!(async {
        let Some((stream, address)) = client_of(stream, address, &options).await else { return };
        let peer = Peer { address, is_tls: tls.is_some() };
        match tls {
            None => {
                let Some(spoken) = peek_protocol(&stream).await else { return };
                serve_transport(stream, spoken, peer, service, &options, &activity).await;
            }
            // Boxed, so that plain connections do not reserve space for TLS.
            Some(acceptor) => Box::pin(serve_tls(acceptor, stream, peer, service, &options, &activity)).await,
        }
    });
    let mut signals = ShutdownListener::new(&activity);
    // Boxed when draining starts, so that connections do not reserve space for it.
    let mut first_request: Option<Pin<Box<Sleep>>> = None;
    // The inner futures are polled by this task too, so they need no listener of their own.
    poll_fn(|cx| {
        let order = signals.order(cx);
        // Poll before the grace ends: the runtime reports received bytes before timers, so a
        // request that has arrived in time is answered, even if this task is late.
        if order == ShutdownSignal::Cut || serving.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if order == ShutdownSignal::Finish && activity.is_silent() {
            let grace = || Box::pin(tokio::time::sleep(FIRST_REQUEST_GRACE));
            return first_request.get_or_insert_with(grace).as_mut().poll(cx);
        }
        Poll::Pending
    })
    .await;
}

/// Returns the connection with the address of its client, which a balancer names in a header of the
/// PROXY protocol. `None`: the header is missing or invalid.
async fn client_of(
    mut stream: TcpStream,
    address: SocketAddr,
    options: &ServerOptions,
) -> Option<(TcpStream, SocketAddr)> {
    if !options.proxied.iter().any(|network| network.contains(&address.ip().to_canonical())) {
        return Some((stream, address));
    }
    // Boxed, so that other connections do not reserve space for it.
    match Box::pin(proxy_protocol::read_client(&mut stream)).await {
        Ok(client) => Some((stream, client.unwrap_or(address))),
        Err(error) => {
            tracing::debug!(%error, %address, "a connection without a valid PROXY header");
            None
        }
    }
}

async fn serve_tls<S: RequestService>(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: Peer,
    service: S,
    options: &ServerOptions,
    activity: &Arc<Activity>,
) {
    match acceptor.accept(stream).await {
        Ok(stream) => {
            activity.begin();
            let spoken = match stream.get_ref().1.alpn_protocol() {
                Some(b"http/1.1") => Spoken::Http1,
                Some(b"h2") => Spoken::Http2,
                _ => Spoken::Unknown,
            };
            serve_transport(stream, spoken, peer, service, options, activity).await;
        }
        Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
    }
}

/// HTTP version of a connection, as far as it is known before the first read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Http1,
    Http2,
    /// To be detected from the first bytes.
    Unknown,
}

/// Peeks at the first bytes to detect the protocol; returns `None` if the connection breaks.
/// Peeking leaves the bytes in the socket, so they need not be replayed.
///
/// Waits even during a graceful shutdown: a client that has just connected is about to send its
/// request ([`FIRST_REQUEST_GRACE`]).
async fn peek_protocol(stream: &TcpStream) -> Option<Spoken> {
    let mut first = [0; H2_PREFACE.len()];
    let mut first = ReadBuf::new(&mut first);
    poll_fn(|cx| stream.poll_peek(cx, &mut first)).await.ok()?;
    Some(match first.filled() {
        // Prior knowledge: an HTTP/2 client without TLS sends the preface at once (RFC 9113,
        // section 3.3).
        H2_PREFACE => Spoken::Http2,
        start if H2_PREFACE.starts_with(start) => Spoken::Unknown,
        // hyper reports malformed requests.
        _ => Spoken::Http1,
    })
}

/// Reads into `first` until the bytes identify the protocol.
async fn read_first<T: AsyncRead + Unpin>(transport: &mut T, first: &mut BytesMut) -> io::Result<Spoken> {
    while H2_PREFACE.starts_with(first) {
        if first.len() == H2_PREFACE.len() {
            return Ok(Spoken::Http2);
        }
        if transport.read_buf(first).await? == 0 {
            break;
        }
        // One read may return the preface and the frames after it.
        if first.starts_with(H2_PREFACE) {
            return Ok(Spoken::Http2);
        }
    }
    Ok(Spoken::Http1)
}

async fn serve_transport<T, S: RequestService>(
    mut transport: T,
    spoken: Spoken,
    peer: Peer,
    service: S,
    options: &ServerOptions,
    activity: &Arc<Activity>,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut first = BytesMut::new();
    let spoken = match spoken {
        Spoken::Unknown => match read_first(&mut transport, &mut first).await {
            Ok(spoken) => spoken,
            Err(error) => return tracing::debug!(%error, "a connection broke"),
        },
        known => known,
    };
    let (first, bytes_per_second_min) = (first.freeze(), options.timeouts.answer_bytes_per_second_min);
    let told = TrackedIo::new(transport, Arc::clone(activity), first, bytes_per_second_min);
    let transport = Batched::new(told, OwnTask);
    let peer = options.tells_peer.then_some(peer);
    let handler = Handler { service, peer, evicts: options.evicts, activity: Arc::clone(activity) };
    if spoken == Spoken::Http2 {
        // Boxed, so that HTTP/1.1 connections do not reserve space for it.
        if let Err(error) = Box::pin(http2::serve(transport, handler, options, activity)).await {
            tracing::debug!(%error, "a connection broke");
        }
        return;
    }
    let handler = Http1(Mutex::new(handler));
    let mut connection = builder(&options.http).serve_connection(TokioIo::new(transport), handler);
    let (mut is_ending, mut is_idle_end) = (false, false);
    let ended = poll_fn(|cx| {
        // Poll first: answer a request that has arrived before the graceful shutdown.
        if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
            return Poll::Ready(ended);
        }
        // A silent connection has [`FIRST_REQUEST_GRACE`]: hyper would close it at once.
        if is_ending || activity.order() < ShutdownSignal::Finish || activity.is_silent() {
            return Poll::Pending;
        }
        is_ending = true;
        // Read before the shutdown starts. A connection without a request in flight has no response
        // that a reset could destroy, so it need not linger.
        is_idle_end = activity.is_idle();
        Pin::new(&mut connection).graceful_shutdown();
        Pin::new(&mut connection).poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "a connection broke");
        // hyper has answered the malformed head; the client may still be sending.
        if error.is_parse() {
            linger(connection.into_parts().io.into_inner(), options.lingering).await;
        }
        return;
    }
    if let Some((tunnel, in_flight)) = activity.tunnel() {
        let parts = connection.into_parts();
        // Boxed, so that connections without a tunnel do not reserve space for it.
        let tunnelled = Box::pin(tunnel.run(parts.io.into_inner(), parts.read_buf, options.tunnel));
        if let Err(error) = tunnelled.await {
            tracing::debug!(%error, "a tunnel broke");
        }
        // A tunnel counts as a request in flight until it closes, so a shutdown waits for it.
        drop(in_flight);
    } else if !is_idle_end {
        // During shutdown, read only the bytes that have already arrived.
        let timeout = if is_ending { Duration::ZERO } else { options.lingering.timeout };
        let lingering = Lingering { timeout, ..options.lingering };
        linger(connection.into_parts().io.into_inner(), lingering).await;
    }
}

/// Discards input from a client that has not noticed the close yet. Bytes that reach a closed
/// socket cause a reset, which can destroy the unread part of the response (RFC 9112, section 9.6).
/// hyper has flushed and closed the write half by now.
async fn linger(mut transport: impl AsyncRead + Unpin, limits: Lingering) {
    let reading = async {
        let mut forgotten = vec![0; LINGERING_PIECE_BYTES];
        let mut left = limits.bytes_max;
        while left > 0 {
            match transport.read(&mut forgotten).await {
                Ok(0) | Err(_) => return,
                Ok(read) => left = left.saturating_sub(read as u64),
            }
        }
    };
    // Boxed, so that connections do not reserve space for it while they serve.
    let _ = tokio::time::timeout(limits.timeout, Box::pin(reading)).await;
}

fn builder(limits: &HttpLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // The registry checks this deadline. hyper's own timer would be set anew for each request.
        .header_read_timeout(None)
        .max_buf_size(limits.buffer_bytes_max.max(8 * 1024));
    if limits.headers_max != HYPER_HEADERS_MAX {
        builder.max_headers(limits.headers_max);
    }
    builder
}

/// Passes the requests of one connection to the service.
struct Handler<S> {
    service: S,
    peer: Option<Peer>,
    /// Whether requests receive a [`ConnectionHandle`], to prevent eviction.
    evicts: bool,
    activity: Arc<Activity>,
}

impl<S: RequestService> Handler<S> {
    fn call(&mut self, mut request: http::Request<Body>) -> Calling<S, Body> {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        if self.evicts {
            request.extensions_mut().insert(ConnectionHandle(Arc::clone(&self.activity)));
        }
        ready::call(&mut self.service, request)
    }
}

impl<S: RequestService> http2::Respond for Handler<S> {
    fn answer(
        &mut self,
        request: http::Request<Body>,
    ) -> impl Future<Output = Result<http::Response<Body>, Infallible>> + Send + 'static {
        self.call(request)
    }
}

/// Adapter for hyper. hyper calls it through a shared reference, but only from the connection's
/// task, so the lock is never contended.
struct Http1<S>(Mutex<Handler<S>>);

impl<S: RequestService> hyper::service::Service<http::Request<Incoming>> for Http1<S> {
    type Response = http::Response<Served>;
    type Error = Infallible;
    type Future = RequestFuture<Calling<S, Body>>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let mut handler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_flight = handler.activity.request(false);
        let answer = handler.call(request.map(|body| Body::incoming(body, ErrorSide::Client)));
        RequestFuture { answer, in_flight: Some(in_flight) }
    }
}

pin_project! {
    /// A request that is being answered.
    struct RequestFuture<F> {
        #[pin]
        answer: F,
        in_flight: Option<InFlight>,
    }
}

impl<F> Future for RequestFuture<F>
where
    F: Future<Output = Result<http::Response<Body>, Infallible>>,
{
    type Output = Result<http::Response<Served>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (polled, interim) = interim::heard(|| this.answer.poll(cx));
        if let Some(in_flight) = this.in_flight.as_ref().filter(|_| !interim.is_empty()) {
            in_flight.say(interim);
        }
        let Ok(mut response) = ready!(polled);
        let mut in_flight = this.in_flight.take();
        if response.status() == StatusCode::SWITCHING_PROTOCOLS
            && let Some(tunnel) = Tunnel::take_from(&mut response)
            && let Some(in_flight) = in_flight.take()
        {
            in_flight.into_tunnel(tunnel);
        }
        // Announces the close, so that the client does not send its next request into it (RFC 9112,
        // section 9.6).
        if in_flight.as_ref().is_some_and(InFlight::is_last) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response.map(|body| Served { body, breaking: None, _in_flight: in_flight })))
    }
}

/// A response body that keeps its request in flight.
struct Served {
    body: Body,
    /// The error of the body, and the number of polls left before it is returned.
    breaking: Option<(GatewayError, u8)>,
    _in_flight: Option<InFlight>,
}

impl hyper::body::Body for Served {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        if self.breaking.is_none() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Err(error)) => self.breaking = Some((error, BREAK_TURNS)),
                other => return Poll::Ready(other),
            }
        }
        match self.breaking.take() {
            Some((error, 0)) => Poll::Ready(Some(Err(error))),
            Some((error, turns)) => {
                self.breaking = Some((error, turns - 1));
                // No event will wake the task: the body has failed, and only the write is still in
                // progress.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.breaking.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
