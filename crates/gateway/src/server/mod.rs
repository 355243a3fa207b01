//! Listeners and connections: TCP and TLS, HTTP/1.1 and HTTP/2, their limits and their shutdown. A
//! tower service answers the requests.
//!
//! Decisions to know before editing: one timer per listener checks all deadlines of its connections
//! (first request, head, idle, stalled reader), because a timer per request is too expensive.
//! Connections share the permits, the registry, the memory limit and the drain switch, so that
//! [`serve`] can run once per core on listeners of the same address ([`CoreRuntimes`]) or once on a
//! multi-threaded runtime.

mod activity;
mod connection;
mod cores;
mod http2;
mod inherited;
mod listen;
mod permits;
mod proxy_protocol;
mod ready;
mod registry;

pub use connection::{ConnectionHandle, Peer};
pub use cores::CoreRuntimes;
pub use inherited::{Inherited, Unclaimed};
pub use ipnet::IpNet;
pub use listen::{Bound, Listener, raise_descriptors};
pub use permits::ConnectionLimits;

use crate::body::Body;
use crate::memory::Memory;
use crate::telemetry::metrics;
use crate::tunnel::TunnelLimits;
use activity::{Activity, ShutdownSignal};
use permits::{ConnectionPermits, NoPermit};
use registry::ConnectionRegistry;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

/// Limits of a listener and of each of its connections.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Limits on the number of connections.
    pub connections: ConnectionLimits,
    /// Budget that connections reserve their memory from.
    pub memory: Option<Memory>,
    /// Whether a new connection, at the limit, evicts the oldest one that is not trusted
    /// ([`ConnectionHandle::trust`]). For listeners with short requests that must always be
    /// reachable.
    pub evicts: bool,
    /// Whether the connections count towards the metric of client connections.
    pub is_measured: bool,
    /// Deadlines of clients.
    pub timeouts: ConnectionTimeouts,
    /// Limits of HTTP on one connection.
    pub http: HttpLimits,
    /// Limits of reading from a client that was answered before its request ended.
    pub lingering: Lingering,
    /// Whether requests carry their [`Peer`] as an extension.
    pub tells_peer: bool,
    /// Balancers that start each connection with a header of the PROXY protocol, which names the client.
    pub proxied: Vec<IpNet>,
    /// Limits of upgraded connections.
    pub tunnel: TunnelLimits,
    /// How long requests in flight may take to finish once draining has started.
    pub grace: Duration,
}

/// Deadlines of the client of one connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTimeouts {
    /// Maximum time from the first byte of a request head (on a new connection: from its start) to
    /// the end of the head.
    pub header: Duration,
    /// Maximum time that a connection stays open without a request.
    pub idle: Duration,
    /// Maximum time that a client may read no bytes of a response; over HTTP/2, of each response.
    pub write: Duration,
    /// Minimum average rate at which a client reads while a response is waiting; 0 disables the
    /// check.
    pub answer_bytes_per_second_min: u64,
}

/// Limits of HTTP on one connection.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Maximum number of header fields in a request.
    pub headers_max: usize,
    /// Maximum size of a request head in bytes.
    pub header_bytes_max: usize,
    /// Maximum size of hyper's buffer per HTTP/1.1 connection and direction in bytes; at least 8
    /// KiB.
    pub buffer_bytes_max: usize,
    /// Maximum number of concurrent requests on one HTTP/2 connection.
    pub h2_streams_max: u32,
}

/// Limits of discarding bytes after the last response, so that the client can read it.
#[derive(Clone, Copy, Debug)]
pub struct Lingering {
    /// How long received bytes are discarded.
    pub timeout: Duration,
    /// Maximum number of bytes that are discarded.
    pub bytes_max: u64,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            connections: ConnectionLimits::default(),
            memory: None,
            evicts: false,
            is_measured: true,
            timeouts: ConnectionTimeouts::default(),
            http: HttpLimits::default(),
            lingering: Lingering::default(),
            tells_peer: false,
            proxied: Vec::new(),
            tunnel: TunnelLimits::default(),
            grace: Duration::from_secs(30),
        }
    }
}

impl Default for ConnectionTimeouts {
    fn default() -> ConnectionTimeouts {
        ConnectionTimeouts {
            header: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            answer_bytes_per_second_min: 1024,
        }
    }
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            headers_max: 100,
            header_bytes_max: 16 * 1024,
            buffer_bytes_max: 64 * 1024,
            h2_streams_max: 100,
        }
    }
}

impl Default for Lingering {
    fn default() -> Lingering {
        Lingering { timeout: Duration::from_secs(10), bytes_max: 64 * 1024 * 1024 }
    }
}

/// A service that answers the requests of connections and cannot fail. Each connection uses a
/// clone.
pub trait RequestService:
    Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> RequestService for S where
    S: Service<
            http::Request<Body>,
            Response = http::Response<Body>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// A service and the limits of the connections that use it.
#[derive(Clone, Debug)]
pub struct Serving<S> {
    /// The service that answers requests; each connection uses a clone.
    pub service: S,
    /// Limits of connections: counts, bytes and times.
    pub options: Arc<ServerOptions>,
}

/// The current [`Serving`], which can be replaced. After a replacement, each open connection
/// finishes with the previous service and closes after its next response.
pub(crate) type CurrentServing<S> = watch::Receiver<Serving<S>>;

/// A switch that stops [`serve`]. Clones are cheap and refer to the same switch.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    left: CancellationToken,
    begun: CancellationToken,
}

impl Drain {
    /// Returns a switch that has not been triggered.
    pub fn new() -> Drain {
        Drain::default()
    }

    /// Announces shutdown while connections are still accepted: each response closes its
    /// connection, and HTTP/2 connections receive GOAWAY. Gives load balancers time to notice.
    pub fn leave(&self) {
        self.left.cancel();
    }

    /// Returns whether [`Drain::leave`] was called.
    pub fn is_leaving(&self) -> bool {
        self.left.is_cancelled()
    }

    /// Stops accepting connections; open ones finish their requests in flight and close.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// Returns whether [`Drain::begin`] was called.
    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Waits for [`Drain::begin`].
    pub async fn wait_for_begin(&self) {
        self.begun.cancelled().await;
    }
}

/// The outcome of draining a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Number of connections still busy after the grace period, which were cut.
    pub cut: usize,
}

/// Accepts connections and answers their requests with `service` until `drain` starts, then waits
/// at most [`ServerOptions::grace`] for requests in flight. Each connection uses its own clone of
/// `service`.
pub async fn serve<S: RequestService>(
    listener: Listener,
    service: S,
    options: Arc<ServerOptions>,
    drain: Drain,
) -> Drained {
    let permits = ConnectionPermits::new(options.connections.clone());
    let (_unchanged, current) = watch::channel(Serving { service, options });
    serve_among(listener, current, drain, permits).await
}

/// Returns the bytes to reserve for an open connection: its task, its buffers and the parts of
/// requests that have no reservation of their own. Estimated from the buffers of hyper and TLS.
fn connection_bytes(is_tls: bool) -> u64 {
    if is_tls { 64 * 1024 } else { 16 * 1024 }
}

/// Serves like [`serve`], with connection permits that several listeners share and a service that
/// can be replaced.
async fn serve_among<S: RequestService>(
    listener: Listener,
    mut current: CurrentServing<S>,
    drain: Drain,
    places: Arc<ConnectionPermits>,
) -> Drained {
    let connections = TaskTracker::new();
    let registry = Arc::new(ConnectionRegistry::default());
    // Clone it, so that cores do not contend for the channel on each connection.
    let mut serving = current.borrow_and_update().clone();
    let mut ticks = self::ticks(&serving.options.timeouts);
    let mut has_left = false;
    let (is_tls, tls) = (listener.is_tls(), listener.tls());
    let admit = |stream: TcpStream, address: SocketAddr, serving: &Serving<S>| {
        let Serving { service, options } = serving;
        let place = match places.take(address.ip()) {
            Ok(place) => place,
            Err(NoPermit::Full) if options.evicts && registry.evict() => places.take_over(address.ip()),
            Err(why) => {
                let limit = if why == NoPermit::Full { "connections" } else { "connections_per_address" };
                metrics::count_limited(limit);
                connections.spawn(connection::refuse(stream, is_tls));
                return;
            }
        };
        let memory = options.memory.as_ref().map(|memory| memory.take(connection_bytes(is_tls)));
        let Ok(memory) = memory.transpose() else {
            metrics::count_limited("memory");
            connections.spawn(connection::refuse(stream, is_tls));
            return;
        };
        let activity = Activity::new();
        if drain.is_leaving() {
            activity.leave();
        }
        // Registered before its task starts, so that a shutdown in between reaches it.
        let entry = registry.enter(Arc::clone(&activity));
        let (service, options) = (service.clone(), Arc::clone(options));
        let is_measured = options.is_measured;
        let served = connection::serve(stream, address, tls.clone(), service, options, activity);
        connections.spawn(async move {
            // Moved into the task, so that they are released when the connection closes for any
            // reason.
            let _held = (place, entry, memory);
            let gauge = is_measured.then(metrics::connections);
            gauge.iter().for_each(|gauge| gauge.increment(1.0));
            served.await;
            gauge.iter().for_each(|gauge| gauge.decrement(1.0));
        });
    };
    loop {
        let (stream, address) = tokio::select! {
            // Drain before accepts: under load there is always a connection to accept, and the
            // shutdown would wait for a pause.
            biased;
            () = drain.wait_for_begin() => break,
            () = drain.left.cancelled(), if !has_left => {
                has_left = true;
                registry.leave();
                continue;
            }
            Ok(()) = current.changed() => {
                serving = current.borrow_and_update().clone();
                places.set_bounds(serving.options.connections.clone());
                ticks = self::ticks(&serving.options.timeouts);
                registry.leave();
                continue;
            }
            _ = ticks.tick() => {
                registry.sweep(&serving.options.timeouts);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        admit(stream, address, &serving);
    }
    // Connections in the backlog may already have sent requests; closing the listener would reset
    // them.
    for (stream, address) in listener.into_waiting() {
        admit(stream, address, &serving);
    }
    connections.close();
    registry.give(ShutdownSignal::Finish);
    let in_time = wait_for_connections(&connections, &registry, &serving.options, &mut ticks).await;
    let cut = if in_time { 0 } else { connections.len() };
    // Also without a timeout: it has no effect if every connection has closed.
    registry.give(ShutdownSignal::Cut);
    connections.wait().await;
    Drained { cut }
}

/// Waits for the connections to close and sweeps their deadlines meanwhile. Returns whether all of
/// them closed within the grace period.
async fn wait_for_connections(
    connections: &TaskTracker,
    registry: &ConnectionRegistry,
    options: &ServerOptions,
    ticks: &mut Interval,
) -> bool {
    let in_time = tokio::time::timeout(options.grace, async {
        loop {
            tokio::select! {
                () = connections.wait() => return,
                _ = ticks.tick() => registry.sweep(&options.timeouts),
            }
        }
    });
    in_time.await.is_ok()
}

fn ticks(timeouts: &ConnectionTimeouts) -> Interval {
    let period = registry::tick(timeouts);
    let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
    // After a busy time, missed ticks are not repeated: one sweep checks all deadlines.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
