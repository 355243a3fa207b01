//! One connection: TLS if asked for, HTTP/1.1 or HTTP/2 by ALPN or by its first bytes, and the end that it is told to
//! come to, politely or at once. Its deadlines are watched by the registry of its listener. HTTP/1.1 is hyper's; HTTP/2 is in
//! [`super::http2`].

use super::ServerOptions;
use super::activity::{Activity, InFlight, ShutdownListener, ShutdownSignal, TrackedIo};
use super::http2;
use super::ready::{self, Calling};
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
use tokio_rustls::TlsAcceptor;
use tower::Service;

/// Who is at the other end; an extension of requests where [`Options::tells_peer`] says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Address and port that the connection comes from: of a proxy, where one stands before the gateway.
    pub address: SocketAddr,
    /// Whether the connection to the gateway itself is encrypted.
    pub is_tls: bool,
}

/// A connection, as whoever answers its requests may speak of it; an extension of requests where [`Options::evicts`] is set.
#[derive(Clone)]
pub struct ConnectionHandle(Arc<Activity>);

impl ConnectionHandle {
    /// Someone on the connection has shown who they are: it is not closed to make room for others.
    pub fn trust(&self) {
        self.0.trust();
    }
}

/// Answered, unread, when there are too many connections.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";

/// hyper's own limit of header fields. When it is said, hyper takes memory for the fields of every message.
const HYPER_HEADERS_MAX: usize = 100;

/// How long a refused connection may take to hear so.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// What an HTTP/2 client begins with (RFC 9113, section 3.4).
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes that are read in one go after the last answer.
const LINGERING_PIECE_BYTES: usize = 16 * 1024;
/// How many turns a connection gets between the last piece of an answer that breaks off and its error. hyper drops what it
/// has not written yet when a body fails, the answer's head too, and the client would see no answer at all instead of half a
/// one. A write takes two turns (see `batch`); over HTTP/2 it is another task's.
const BREAK_TURNS: u8 = 4;

/// Tells a client that there are too many connections. With TLS there is no saying so before a handshake: it is closed. What
/// the client sends meanwhile is read and forgotten, since closing with bytes unread would take the answer back (RFC 9112,
/// section 9.6).
pub(super) async fn refuse(mut stream: TcpStream, is_tls: bool) {
    if !is_tls {
        let closing = async {
            stream.write_all(BUSY).await?;
            stream.shutdown().await?;
            loop {
                stream.readable().await?;
                // Not kept across waits: refusals are many when memory is short.
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

/// Answers the requests of one connection until it ends, or is cut.
pub(super) async fn serve<S>(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    service: S,
    options: Arc<ServerOptions>,
    activity: Arc<Activity>,
) where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let peer = Peer { address, is_tls: tls.is_some() };
    let mut serving = pin!(async {
        match tls {
            None => {
                let Some(spoken) = peek_protocol(&stream).await else { return };
                serve_transport(stream, spoken, peer, service, &options, &activity).await;
            }
            // Boxed, so that plain connections carry no room for TLS.
            Some(acceptor) => Box::pin(serve_tls(acceptor, stream, peer, service, &options, &activity)).await,
        }
    });
    let mut signals = ShutdownListener::new(&activity);
    // Whatever is awaited within is polled by this task too, and need not listen for itself.
    poll_fn(|cx| match signals.order(cx) {
        ShutdownSignal::Cut => Poll::Ready(()),
        ShutdownSignal::None | ShutdownSignal::Finish => serving.as_mut().poll(cx),
    })
    .await;
}

async fn serve_tls<S>(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: Peer,
    service: S,
    options: &ServerOptions,
    activity: &Arc<Activity>,
) where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
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

/// What is known of the version that a client speaks, before its first byte is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Http1,
    Http2,
    /// Its first bytes will tell.
    Unknown,
}

/// What a client's first bytes say; nothing when it breaks off. They are left where they are: read apart from the rest, they
/// would have to be put before it again.
///
/// Told to finish, a connection still waits for them: a client that has connected is about to send its request, and would
/// find no answer. Whoever goes on saying nothing is cut by the listener.
async fn peek_protocol(stream: &TcpStream) -> Option<Spoken> {
    let mut first = [0; H2_PREFACE.len()];
    let mut first = ReadBuf::new(&mut first);
    poll_fn(|cx| stream.poll_peek(cx, &mut first)).await.ok()?;
    Some(match first.filled() {
        H2_PREFACE => Spoken::Http2,
        start if H2_PREFACE.starts_with(start) => Spoken::Unknown,
        // Whatever is wrong with it is hyper's to find.
        _ => Spoken::Http1,
    })
}

/// Reads until the first bytes tell what is spoken. They are kept in `first`.
async fn read_first<T: AsyncRead + Unpin>(transport: &mut T, first: &mut BytesMut) -> io::Result<Spoken> {
    while H2_PREFACE.starts_with(first) {
        if first.len() == H2_PREFACE.len() {
            return Ok(Spoken::Http2);
        }
        if transport.read_buf(first).await? == 0 {
            break;
        }
        // A preface may be followed at once.
        if first.starts_with(H2_PREFACE) {
            return Ok(Spoken::Http2);
        }
    }
    Ok(Spoken::Http1)
}

async fn serve_transport<T, S>(
    mut transport: T,
    spoken: Spoken,
    peer: Peer,
    service: S,
    options: &ServerOptions,
    activity: &Arc<Activity>,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let mut first = BytesMut::new();
    let spoken = match spoken {
        Spoken::Unknown => match read_first(&mut transport, &mut first).await {
            Ok(spoken) => spoken,
            Err(error) => return tracing::debug!(%error, "a connection broke"),
        },
        known => known,
    };
    let (first, bytes_per_second_min) = (first.freeze(), options.answer_bytes_per_second_min);
    let told = TrackedIo::new(transport, Arc::clone(activity), first, bytes_per_second_min);
    let transport = Batched::new(told, OwnTask);
    let peer = options.tells_peer.then_some(peer);
    let handler = Handler { service, peer, evicts: options.evicts, activity: Arc::clone(activity) };
    if spoken == Spoken::Http2 {
        // Boxed, so that connections of HTTP/1.1 carry no room for it.
        if let Err(error) = Box::pin(http2::serve(transport, handler, options, activity)).await {
            tracing::debug!(%error, "a connection broke");
        }
        return;
    }
    let handler = Http1(Mutex::new(handler));
    let mut connection = builder(options).serve_connection(TokioIo::new(transport), handler);
    let (mut is_ending, mut is_idle_end) = (false, false);
    let ended = poll_fn(|cx| {
        // Polled first: a request that has come already is answered before the connection is told to finish.
        if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
            return Poll::Ready(ended);
        }
        if is_ending || activity.order() < ShutdownSignal::Finish {
            return Poll::Pending;
        }
        is_ending = true;
        is_idle_end = activity.is_idle();
        Pin::new(&mut connection).graceful_shutdown();
        Pin::new(&mut connection).poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "a connection broke");
        // A head that breaks the rules has been answered by hyper, and more may follow it.
        if error.is_parse() {
            linger(connection.into_parts().io.into_inner(), options, options.lingering_timeout).await;
        }
        return;
    }
    if let Some((tunnel, in_flight)) = activity.tunnel() {
        let parts = connection.into_parts();
        // Boxed, so that connections without one carry no room for it.
        let tunnelled = Box::pin(tunnel.run(parts.io.into_inner(), parts.read_buf, options.tunnel));
        if let Err(error) = tunnelled.await {
            tracing::debug!(%error, "a tunnel broke");
        }
        drop(in_flight);
    } else if !is_idle_end {
        // Nobody waits for clients while the server ends: only what is here is read.
        let patience = if is_ending { Duration::ZERO } else { options.lingering_timeout };
        linger(connection.into_parts().io.into_inner(), options, patience).await;
    }
}

/// Reads on, and throws away, what a client sends that has not seen yet that its connection ends: bytes that meet a closed
/// connection are answered by a reset, which takes from the client what it has not read of its answer (RFC 9112, section 9.6).
/// hyper has written everything and closed its direction by now.
async fn linger(mut transport: impl AsyncRead + Unpin, options: &ServerOptions, patience: Duration) {
    let reading = async {
        let mut forgotten = vec![0; LINGERING_PIECE_BYTES];
        let mut left = options.lingering_bytes_max;
        while left > 0 {
            match transport.read(&mut forgotten).await {
                Ok(0) | Err(_) => return,
                Ok(read) => left = left.saturating_sub(read as u64),
            }
        }
    };
    // Boxed, so that connections carry no room for it while they serve.
    let _ = tokio::time::timeout(patience, Box::pin(reading)).await;
}

fn builder(options: &ServerOptions) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(options.buffer_bytes_max.max(8 * 1024));
    if options.headers_max != HYPER_HEADERS_MAX {
        builder.max_headers(options.headers_max);
    }
    builder
}

/// Hands requests of one connection to the service.
struct Handler<S> {
    service: S,
    peer: Option<Peer>,
    /// Whether its requests can keep the connection from being evicted.
    evicts: bool,
    activity: Arc<Activity>,
}

impl<S> Handler<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Clone,
{
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

impl<S> http2::Respond for Handler<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    fn answer(
        &mut self,
        request: http::Request<Body>,
    ) -> impl Future<Output = Result<http::Response<Body>, Infallible>> + Send + 'static {
        self.call(request)
    }
}

/// Requests as hyper reads them. It calls through a shared reference although a connection is one task: the lock is never
/// waited for.
struct Http1<S>(Mutex<Handler<S>>);

impl<S> hyper::service::Service<http::Request<Incoming>> for Http1<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Clone,
{
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
    /// A request being answered.
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
        if in_flight.as_ref().is_some_and(InFlight::is_last) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response.map(|body| Served { body, breaking: None, _in_flight: in_flight })))
    }
}

/// The body of an answer, which keeps its request in flight.
struct Served {
    body: Body,
    /// What ends the body, and how many more times it is put off.
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
