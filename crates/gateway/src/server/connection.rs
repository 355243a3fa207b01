//! One connection: TLS if asked for, HTTP/1.1 or HTTP/2 by ALPN or by its first bytes, and the end that it is told to
//! come to, politely or at once. Its deadlines are watched by the roster of its listener.

use super::Options;
use super::activity::{Activity, Ear, InFlight, Order, Told};
use crate::batch::{Batched, OwnTask};
use crate::body::Body;
use crate::error::{GatewayError, Side};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tower::Service;

/// Who is at the other end; an extension of requests where [`Options::tells_peer`] says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub address: SocketAddr,
    pub is_tls: bool,
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
/// HTTP/2 flow control: what a client may send ahead of us, per stream and per connection.
const H2_STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const H2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Streams that a client may open and reset, or that we had to reset, before the connection is closed.
const H2_RESETS_MAX: usize = 128;
/// A peer that is gone without a word is noticed by pings.
const H2_PING_INTERVAL: Duration = Duration::from_secs(30);
const H2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Tells a client that there are too many connections. With TLS there is no saying so before a handshake: it is closed.
pub(super) async fn refuse(mut stream: TcpStream, is_tls: bool) {
    if !is_tls {
        let farewell = async {
            stream.write_all(BUSY).await?;
            stream.shutdown().await
        };
        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, farewell).await;
    }
}

/// Answers the requests of one connection until it ends, or is cut.
pub(super) async fn serve<S>(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    service: S,
    options: Arc<Options>,
    activity: Arc<Activity>,
) where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
{
    let peer = Peer { address, is_tls: tls.is_some() };
    let mut serving = pin!(async {
        match tls {
            None => {
                let Some(version) = spoken(&stream, &activity).await else { return };
                serve_transport(stream, version, peer, service, &options, &activity).await;
            }
            // Boxed, so that plain connections carry no room for TLS.
            Some(acceptor) => Box::pin(secured(acceptor, stream, peer, service, &options, &activity)).await,
        }
    });
    let mut ear = Ear::new(&activity);
    // Whatever is awaited within is polled by this task too, and need not listen for itself.
    poll_fn(|cx| match ear.order(cx) {
        Order::Cut => Poll::Ready(()),
        Order::None | Order::Finish => serving.as_mut().poll(cx),
    })
    .await;
}

async fn secured<S>(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: Peer,
    service: S,
    options: &Options,
    activity: &Arc<Activity>,
) where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
{
    match acceptor.accept(stream).await {
        Ok(stream) => {
            activity.begin();
            let version = match stream.get_ref().1.alpn_protocol() {
                Some(b"http/1.1") => Version::Http1,
                _ => Version::Any,
            };
            serve_transport(stream, version, peer, service, options, activity).await;
        }
        Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
    }
}

/// What is known of the version that a client speaks, before hyper sees its first byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Http1,
    /// hyper finds out.
    Any,
}

/// What a client's first bytes say, or nothing when the connection is to end before they come. They are left where they
/// are: hyper would read them apart from the rest to find out, and then keep twice the buffer for the rest of the connection.
async fn spoken(stream: &TcpStream, activity: &Activity) -> Option<Version> {
    let mut first = [0; H2_PREFACE.len()];
    let mut first = ReadBuf::new(&mut first);
    let looked = poll_fn(|cx| match activity.order() {
        Order::None => stream.poll_peek(cx, &mut first).map(Some),
        Order::Finish | Order::Cut => Poll::Ready(None),
    });
    match looked.await? {
        Ok(_) if !H2_PREFACE.starts_with(first.filled()) => Some(Version::Http1),
        // Whatever is wrong with it is hyper's to find.
        _ => Some(Version::Any),
    }
}

async fn serve_transport<T, S>(
    transport: T,
    version: Version,
    peer: Peer,
    service: S,
    options: &Options,
    activity: &Arc<Activity>,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
{
    let told = Told { transport, activity: Arc::clone(activity) };
    let io = TokioIo::new(Batched::new(told, OwnTask));
    let peer = options.tells_peer.then_some(peer);
    let handler = Handler { service: Mutex::new(service), peer, activity: Arc::clone(activity) };
    let builder = match version {
        Version::Http1 => builder(options).http1_only(),
        Version::Any => builder(options),
    };
    let mut connection = pin!(builder.serve_connection(io, handler));
    let mut is_ending = false;
    let ended = poll_fn(|cx| {
        if !is_ending && activity.order() >= Order::Finish {
            is_ending = true;
            // HTTP/2 is told by GOAWAY; a request that crosses it on the way is still answered.
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(error = &*error, "a connection broke");
    }
}

fn builder(options: &Options) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(options.buffer_bytes_max.max(8 * 1024));
    if options.headers_max != HYPER_HEADERS_MAX {
        builder.http1().max_headers(options.headers_max);
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.h2_streams_max)
        .initial_stream_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(options.header_bytes_max).unwrap_or(u32::MAX))
        .max_send_buf_size(options.buffer_bytes_max)
        .max_pending_accept_reset_streams(H2_RESETS_MAX)
        .max_local_error_reset_streams(H2_RESETS_MAX)
        .keep_alive_interval(H2_PING_INTERVAL)
        .keep_alive_timeout(H2_PING_TIMEOUT);
    builder
}

/// Hands requests of one connection to the service.
struct Handler<S> {
    /// hyper calls through a shared reference although a connection is one task: the lock is never waited for.
    service: Mutex<S>,
    peer: Option<Peer>,
    activity: Arc<Activity>,
}

impl<S> hyper::service::Service<http::Request<Incoming>> for Handler<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
{
    type Response = http::Response<Served>;
    type Error = Infallible;
    type Future = Answering<S::Future>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let in_flight = self.activity.request(request.version() == http::Version::HTTP_2);
        let mut request = request.map(|body| Body::incoming(body, Side::Client));
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        let answer = self.service.lock().unwrap_or_else(PoisonError::into_inner).call(request);
        Answering { answer, in_flight: Some(in_flight) }
    }
}

pin_project! {
    /// A request being answered.
    struct Answering<F> {
        #[pin]
        answer: F,
        in_flight: Option<InFlight>,
    }
}

impl<F> Future for Answering<F>
where
    F: Future<Output = Result<http::Response<Body>, Infallible>>,
{
    type Output = Result<http::Response<Served>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(response) = ready!(this.answer.poll(cx));
        let in_flight = this.in_flight.take();
        Poll::Ready(Ok(response.map(|body| Served { body, _in_flight: in_flight })))
    }
}

/// The body of an answer, which keeps its request in flight.
struct Served {
    body: Body,
    _in_flight: Option<InFlight>,
}

impl hyper::body::Body for Served {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
