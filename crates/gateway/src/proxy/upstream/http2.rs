//! An HTTP/2 connection to an upstream, shared by the calls of one core. A task on the core that
//! opened it drives it, because no single call owns it. The upstream limits concurrent streams;
//! further calls wait for a free stream.

use super::connect::UpstreamStream;
use super::connection::{CallFailure, Outgoing};
use super::patience::HeadDeadline;
use crate::proxy::limits::UpstreamLimits;
use http::header::{CONNECTION, HOST};
use http::uri::{Authority, Scheme};
use http::{HeaderName, HeaderValue, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

/// Maximum bytes buffered for sending per stream.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// Flow-control window per stream: bytes that the upstream may send before the client reads them.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// Flow-control window of the connection: the maximum (RFC 9113, section 6.9.1). With a smaller
/// one, a few clients that do not read would use up the window and stall every response on the
/// connection. Memory is bounded by the limit of calls in flight and the stream window.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// A shared HTTP/2 connection. Clones refer to the same connection, which closes after the last
/// clone is dropped and its calls are answered.
#[derive(Clone)]
pub(super) struct SharedConnection(SendRequest<Outgoing>);

impl SharedConnection {
    /// Performs the HTTP/2 handshake and spawns the task that drives the connection.
    pub(super) async fn new(
        stream: UpstreamStream,
        limits: &UpstreamLimits,
    ) -> Result<SharedConnection, hyper::Error> {
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(list_bytes_max(limits))
            .max_send_buf_size(SEND_BYTES_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // Detects upstreams that vanished without closing. A PING is sent after the idle
            // timeout of a connection; the reply may take as long as a new connection would.
            .keep_alive_interval(limits.idle_timeout)
            .keep_alive_timeout(limits.connect_timeout)
            .handshake(TokioIo::new(stream))
            .await?;
        // The error is ignored here because hyper also reports it to the calls in progress.
        tokio::spawn(async move { drop(connection.await) });
        Ok(SharedConnection(sender))
    }

    /// Returns whether the connection accepts calls, as far as is known.
    pub(super) fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// Sends a request and waits for the response head.
    ///
    /// `Host` is replaced by `:scheme` and `:authority`, because servers reject a request that
    /// names its host twice (RFC 9113, section 8.3.1). `Connection` is removed here: hyper would
    /// otherwise also remove the fields that it names, among them `TE: trailers`, which HTTP/2
    /// allows (RFC 9113, section 8.2.2) and gRPC servers require.
    ///
    /// # Errors
    ///
    /// As [`Connection::send`](super::connection::Connection::send). The request in
    /// [`Failed::Unsent`] has its original fields and address again.
    pub(super) async fn send(
        mut self,
        mut request: Box<http::Request<Outgoing>>,
        scheme: &Scheme,
        authority: &Authority,
        patience: &HeadDeadline,
    ) -> Result<http::Response<Incoming>, CallFailure> {
        let (host, connection) =
            (request.headers_mut().remove(HOST), request.headers_mut().remove(CONNECTION));
        // HTTP/1.1 sends the target in origin form, HTTP/2 needs scheme and authority (RFC 9113,
        // section 8.3.1). The pool chooses the protocol after the request was built, so it is
        // converted here.
        let mut address = std::mem::take(request.uri_mut()).into_parts();
        (address.scheme, address.authority) = (Some(scheme.clone()), Some(authority.clone()));
        *request.uri_mut() = Uri::from_parts(address).expect("all parts of the address were checked");
        match patience.wait(self.0.try_send_request(*request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(mut error)) => Err(match error.take_message() {
                Some(request) => CallFailure::Unsent(
                    // The next attempt may use an HTTP/1.1 connection, which needs the fields that
                    // were removed.
                    Box::new(as_it_was(request, [(HOST, host), (CONNECTION, connection)])),
                    error.into_error(),
                ),
                None => CallFailure::Broken(error.into_error()),
            }),
            Err(_) => Err(CallFailure::Late),
        }
    }
}

/// Returns the limit of a response head as HTTP/2 counts it: 32 extra bytes per field (RFC 9113,
/// section 6.5.2).
fn list_bytes_max(limits: &UpstreamLimits) -> u32 {
    let bytes = limits.head_bytes_max.saturating_add(limits.fields_max.saturating_mul(32));
    // The setting has 32 bits (RFC 9113, section 6.5.1).
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn as_it_was(
    mut request: http::Request<Outgoing>,
    removed: [(HeaderName, Option<HeaderValue>); 2],
) -> http::Request<Outgoing> {
    *request.uri_mut() = request.uri().path_and_query().cloned().map(Uri::from).unwrap_or_default();
    for (name, value) in removed {
        if let Some(value) = value {
            request.headers_mut().insert(name, value);
        }
    }
    request
}
