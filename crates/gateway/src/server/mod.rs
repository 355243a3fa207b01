//! Listeners and connections: TCP and TLS, HTTP/1.1 and HTTP/2, their limits, and how they end. What a request means is
//! not known here: a tower service answers it.
//!
//! Decisions to know before editing: one timer per listener watches all deadlines of its connections (first request, head,
//! idle, stalled reader), because a timer per request costs more than it is worth; and nothing here is shared between
//! connections but the count of open ones, so that [`serve`] can run once per core on listeners of the same address
//! ([`CoreRuntimes`]) as well as once on a runtime of many threads.

mod activity;
mod connection;
mod cores;
mod http2;
mod inherited;
mod listen;
mod permits;
mod ready;
mod registry;

pub use connection::{ConnectionHandle, Peer};
pub use cores::CoreRuntimes;
pub use inherited::{Inherited, Unclaimed};
pub use ipnet::IpNet;
pub use listen::{Bound, Listener, raise_descriptors};

use crate::body::Body;
use crate::memory::Memory;
use crate::telemetry::metrics;
use crate::tunnel::TunnelLimits;
use activity::{Activity, ShutdownSignal};
use permits::{ConnectionLimits, ConnectionPermits, NoPermit};
use registry::ConnectionRegistry;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

/// The limits of a listener and of each of its connections.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Open connections; beyond it new ones are told 503 and closed.
    pub connections_max: usize,
    /// Open connections from one address; none = as long as as many places are free as it has.
    pub connections_per_address_max: Option<usize>,
    /// Addresses of balancers and proxies: what comes from them is not counted by address.
    pub trusted_proxies: Vec<IpNet>,
    /// What connections take their memory of.
    pub memory: Option<Memory>,
    /// Whether a new connection, where there is no place, takes that of the oldest one on which nobody has shown who they are
    /// ([`Standing::trust`]). For listeners whose requests are short and must always get in.
    pub evicts: bool,
    /// Whether its connections are those of clients, which a metric counts.
    pub is_measured: bool,
    /// Longest time from the first byte of a request's head (or, on a new connection, from its start) to its end.
    pub header_timeout: Duration,
    /// Longest time a connection stays open without a request.
    pub idle_timeout: Duration,
    /// Longest time a client may refuse to take bytes of an answer; over HTTP/2 of each answer.
    pub write_timeout: Duration,
    /// What it must take on average while it keeps an answer waiting; 0 = any.
    pub answer_bytes_per_second_min: u64,
    /// Header fields of a request.
    pub headers_max: usize,
    /// Bytes of a request's head.
    pub header_bytes_max: usize,
    /// Bytes that hyper may hold per HTTP/1.1 connection and direction; at least 8 KiB.
    pub buffer_bytes_max: usize,
    /// How long a connection is read on, unheard, after its last answer, so that its client finds the answer.
    pub lingering_timeout: Duration,
    /// And how many bytes.
    pub lingering_bytes_max: u64,
    /// Whether requests are told whom they come from, by an extension, [`Peer`].
    pub tells_peer: bool,
    /// How long a connection may be another protocol's.
    pub tunnel: TunnelLimits,
    /// Requests in flight on one HTTP/2 connection.
    pub h2_streams_max: u32,
    /// How long requests in flight may take to end once draining begins.
    pub grace: Duration,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            connections_max: 9_000,
            connections_per_address_max: None,
            trusted_proxies: Vec::new(),
            memory: None,
            evicts: false,
            is_measured: true,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            answer_bytes_per_second_min: 1024,
            headers_max: 100,
            header_bytes_max: 16 * 1024,
            buffer_bytes_max: 64 * 1024,
            lingering_timeout: Duration::from_secs(10),
            lingering_bytes_max: 64 * 1024 * 1024,
            tells_peer: false,
            tunnel: TunnelLimits::default(),
            h2_streams_max: 100,
            grace: Duration::from_secs(30),
        }
    }
}

/// What connections are answered with, and within which limits.
#[derive(Clone, Debug)]
pub struct Serving<S> {
    /// Answers requests; each connection works on a clone.
    pub service: S,
    /// Limits of connections: counts, bytes and times.
    pub options: Arc<ServerOptions>,
}

/// What new connections are answered with, as it is replaced. When that happens, each answer is the last one of a connection
/// that was open before: it ends on what it began with, and its client comes again.
pub(crate) type CurrentServing<S> = watch::Receiver<Serving<S>>;

/// Ends `serve` from outside. Cheap to clone; all clones are one switch.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    left: CancellationToken,
    begun: CancellationToken,
}

impl Drain {
    /// Has not begun.
    pub fn new() -> Drain {
        Drain::default()
    }

    /// Connections are still accepted, but each answer is the last one of its connection, and HTTP/2 connections are told to
    /// go away: balancers are about to find out that nothing should come here any more.
    pub fn leave(&self) {
        self.left.cancel();
    }

    /// Whether [`Drain::leave`] was called.
    pub fn is_leaving(&self) -> bool {
        self.left.is_cancelled()
    }

    /// No new connections; those open finish their requests in flight and close.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// Whether the server has been told to end.
    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Waits until [`Drain::begin`].
    pub async fn wait_for_begin(&self) {
        self.begun.cancelled().await;
    }
}

/// How a listener ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy when the grace was over, and were cut.
    pub cut: usize,
}

/// Accepts connections and answers their requests with `service` until `drain` begins, then lets requests in flight end
/// for at most [`Options::grace`]. Each connection works on its own clone of `service`.
pub async fn serve<S>(listener: Listener, service: S, options: Arc<ServerOptions>, drain: Drain) -> Drained
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let permits = ConnectionPermits::new(bounds(&options));
    let (_unchanged, current) = watch::channel(Serving { service, options });
    serve_among(listener, current, drain, permits).await
}

/// How many connections there may be with these options.
fn bounds(options: &ServerOptions) -> ConnectionLimits {
    ConnectionLimits {
        connections_max: options.connections_max,
        per_address_max: options.connections_per_address_max,
        trusted: options.trusted_proxies.clone(),
    }
}

/// Bytes that a connection takes as long as it is open: its task, its buffers, and what of a request in flight is not counted
/// by itself. An estimate from the buffers that hyper and TLS keep.
fn connection_bytes(is_tls: bool) -> u64 {
    if is_tls { 64 * 1024 } else { 16 * 1024 }
}

/// The same, where several listeners share the permits for connections, with what can be replaced.
async fn serve_among<S>(
    listener: Listener,
    mut current: CurrentServing<S>,
    drain: Drain,
    places: Arc<ConnectionPermits>,
) -> Drained
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let connections = TaskTracker::new();
    let registry = Arc::new(ConnectionRegistry::default());
    // A copy of our own: cores do not meet over it whenever somebody connects.
    let mut serving = current.borrow_and_update().clone();
    let mut ticks = self::ticks(&serving.options);
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
        let entry = registry.enter(Arc::clone(&activity));
        let (service, options) = (service.clone(), Arc::clone(options));
        let is_measured = options.is_measured;
        let served = connection::serve(stream, address, tls.clone(), service, options, activity);
        connections.spawn(async move {
            let _held = (place, entry, memory);
            let gauge = is_measured.then(metrics::connections);
            gauge.iter().for_each(|gauge| gauge.increment(1.0));
            served.await;
            gauge.iter().for_each(|gauge| gauge.decrement(1.0));
        });
    };
    loop {
        let (stream, address) = tokio::select! {
            biased;
            () = drain.wait_for_begin() => break,
            () = drain.left.cancelled(), if !has_left => {
                has_left = true;
                registry.leave();
                continue;
            }
            Ok(()) = current.changed() => {
                serving = current.borrow_and_update().clone();
                places.set_bounds(bounds(&serving.options));
                ticks = self::ticks(&serving.options);
                registry.leave();
                continue;
            }
            _ = ticks.tick() => {
                registry.sweep(&serving.options);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        admit(stream, address, &serving);
    }
    // Clients whose connection the system has accepted meanwhile have sent their requests: a closed listener would reset them.
    for (stream, address) in listener.into_waiting() {
        admit(stream, address, &serving);
    }
    connections.close();
    registry.give(ShutdownSignal::Finish);
    let in_time = wait_for_connections(&connections, &registry, &serving.options, &mut ticks).await;
    let cut = if in_time { 0 } else { connections.len() };
    registry.give(ShutdownSignal::Cut);
    connections.wait().await;
    Drained { cut }
}

/// How long a connection that has not said anything yet is listened to once draining begins: its first request may be on its way.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(100);

/// Waits for the connections to end, their deadlines still watched; whether they did within the grace.
async fn wait_for_connections(
    connections: &TaskTracker,
    registry: &ConnectionRegistry,
    options: &ServerOptions,
    ticks: &mut Interval,
) -> bool {
    let mut silent = pin!(tokio::time::sleep(FIRST_REQUEST_GRACE));
    let in_time = tokio::time::timeout(options.grace, async {
        loop {
            tokio::select! {
                () = connections.wait() => return,
                () = silent.as_mut(), if !silent.is_elapsed() => registry.cut_silent(),
                _ = ticks.tick() => registry.sweep(options),
            }
        }
    });
    in_time.await.is_ok()
}

fn ticks(options: &ServerOptions) -> Interval {
    let period = registry::tick(options);
    let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
