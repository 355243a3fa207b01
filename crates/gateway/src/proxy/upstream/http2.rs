//! One HTTP/2 connection to an upstream, which the calls of a core share. A task of the core that opened it drives it, since
//! no call has it to itself. How many calls it takes at once the upstream says; those beyond wait for their turn.

use super::connect::Stream;
use super::connection::{Failed, Outgoing};
use super::patience::Patience;
use crate::proxy::limits::Limits;
use http::header::{CONNECTION, HOST};
use http::uri::{Authority, Scheme};
use http::{HeaderName, HeaderValue, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

/// Bytes that a connection may hold of the bodies of one call.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// Flow control: bytes of an answer that the upstream may send ahead of its client.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// And of all answers of a connection: no limit (RFC 9113, section 6.9.1), since otherwise a few clients that do not read use it
/// up, and with it the answers of everybody else on the connection. Calls in flight are limited, and with them what it holds.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// A connection that several calls share: clones are the same connection, which ends when the last is gone and the calls on
/// it are answered.
#[derive(Clone)]
pub(super) struct SharedConnection(SendRequest<Outgoing>);

impl SharedConnection {
    /// Begins to speak HTTP/2 on a connection.
    pub(super) async fn new(stream: Stream, limits: &Limits) -> Result<SharedConnection, hyper::Error> {
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(list_bytes_max(limits))
            .max_send_buf_size(SEND_BYTES_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // An upstream that is gone without a word keeps no calls: a connection in use is asked as soon as it is as
            // silent as an idle one may be, and answers in the time that a new one would take.
            .keep_alive_interval(limits.upstream_idle_timeout)
            .keep_alive_timeout(limits.connect_timeout)
            .handshake(TokioIo::new(stream))
            .await?;
        // How it ended is told to the calls that were on it.
        tokio::spawn(async move { drop(connection.await) });
        Ok(SharedConnection(sender))
    }

    /// Whether it takes calls, as far as is known.
    pub(super) fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// Sends a call and waits for the head of its answer. The call names its upstream in `Host`, as with HTTP/1.1; on its way it
    /// says `scheme` and `authority`, since servers refuse a request that names its host twice (RFC 9113, section 8.3.1). It has
    /// no `Connection`, which HTTP/2 knows nothing of: hyper would take away what that names, and with it `TE: trailers`, which
    /// may be sent (RFC 9113, section 8.2.2) and without which gRPC services refuse a call. A call that was not sent comes back
    /// as it was.
    pub(super) async fn send(
        mut self,
        mut request: Box<http::Request<Outgoing>>,
        scheme: &Scheme,
        authority: &Authority,
        patience: &Patience,
    ) -> Result<http::Response<Incoming>, Failed> {
        let (host, connection) =
            (request.headers_mut().remove(HOST), request.headers_mut().remove(CONNECTION));
        let mut address = std::mem::take(request.uri_mut()).into_parts();
        (address.scheme, address.authority) = (Some(scheme.clone()), Some(authority.clone()));
        *request.uri_mut() = Uri::from_parts(address).expect("all parts of the address were checked");
        match patience.wait(self.0.try_send_request(*request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(mut error)) => Err(match error.take_message() {
                Some(request) => Failed::Unsent(
                    Box::new(as_it_was(request, [(HOST, host), (CONNECTION, connection)])),
                    error.into_error(),
                ),
                None => Failed::Broken(error.into_error()),
            }),
            Err(_) => Err(Failed::Late),
        }
    }
}

/// The limit of an answer's head as HTTP/2 counts: with 32 bytes for each field (RFC 9113, section 6.5.2).
fn list_bytes_max(limits: &Limits) -> u32 {
    let bytes = limits.upstream_head_bytes_max.saturating_add(limits.upstream_fields_max.saturating_mul(32));
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
