//! Listeners and connections: TCP and TLS, HTTP/1.1 and HTTP/2, their limits, and how they end. What a request means is
//! not known here: a tower service answers it.
//!
//! Decisions to know before editing: one timer per connection watches all its deadlines (first request, head, idle, stalled
//! reader), because a timer per request costs more than it is worth; and nothing here is shared between connections but
//! the counters of open ones, so that `serve` can run once per core on listeners of the same address as well as once on a
//! runtime of many threads.

mod activity;
mod connection;
mod listen;
mod tls;

pub use connection::Peer;
pub use listen::Listener;
pub use tls::{TlsError, TlsFiles, tls_acceptor};

use crate::body::Body;
use crate::telemetry::metrics as names;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

/// The limits of a listener and of each of its connections.
#[derive(Clone, Debug)]
pub struct Options {
    /// Open connections; beyond it new ones are told 503 and closed.
    pub connections_max: usize,
    /// Longest time from the first byte of a request's head (or, on a new connection, from its start) to its end.
    pub header_timeout: Duration,
    /// Longest time a connection stays open without a request.
    pub idle_timeout: Duration,
    /// Longest time a client may refuse to take bytes of an answer.
    pub write_timeout: Duration,
    /// Header fields of a request.
    pub headers_max: usize,
    /// Bytes of a request's head.
    pub header_bytes_max: usize,
    /// Bytes that hyper may hold per HTTP/1.1 connection and direction; at least 8 KiB.
    pub buffer_bytes_max: usize,
    /// Requests in flight on one HTTP/2 connection.
    pub h2_streams_max: u32,
    /// How long requests in flight may take to end once draining begins.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            connections_max: 9_000,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            headers_max: 100,
            header_bytes_max: 16 * 1024,
            buffer_bytes_max: 64 * 1024,
            h2_streams_max: 100,
            grace: Duration::from_secs(30),
        }
    }
}

/// Ends `serve` from outside. Cheap to clone; all clones are one switch.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    begun: CancellationToken,
}

impl Drain {
    pub fn new() -> Drain {
        Drain::default()
    }

    /// No new connections; those open finish their requests in flight and close.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Waits until [`Drain::begin`].
    pub async fn begun(&self) {
        self.begun.cancelled().await;
    }
}

/// How a listener ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy when the grace was over, and were cut.
    pub cut: usize,
}

/// Accepts connections and answers their requests with `service` until `drain` begins, then lets requests in flight end
/// for at most [`Options::grace`]. Each connection works on its own clone of `service`.
pub async fn serve<S>(listener: Listener, service: S, options: Arc<Options>, drain: Drain) -> Drained
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let open = Arc::new(Semaphore::new(options.connections_max));
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    loop {
        let (stream, address) = tokio::select! {
            biased;
            () = drain.begun() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok(permit) = Arc::clone(&open).try_acquire_owned() else {
            metrics::counter!(names::LIMITED, "limit" => "connections").increment(1);
            connections.spawn(connection::refuse(stream, listener.is_tls()));
            continue;
        };
        let served = connection::serve(
            stream,
            address,
            listener.tls(),
            service.clone(),
            Arc::clone(&options),
            drain.clone(),
        );
        let cut = cut.clone();
        connections.spawn(async move {
            let _permit = permit;
            let gauge = metrics::gauge!(names::CONNECTIONS);
            gauge.increment(1.0);
            tokio::select! {
                () = served => {}
                () = cut.cancelled() => {}
            }
            gauge.decrement(1.0);
        });
    }
    drop(listener);
    connections.close();
    let in_time = tokio::time::timeout(options.grace, connections.wait()).await.is_ok();
    let left = if in_time { 0 } else { connections.len() };
    cut.cancel();
    connections.wait().await;
    Drained { cut: left }
}
