//! Listeners and connections: TCP and TLS, HTTP/1.1 and HTTP/2, their limits, and how they end. What a request means is
//! not known here: a tower service answers it.
//!
//! Decisions to know before editing: one timer per listener watches all deadlines of its connections (first request, head,
//! idle, stalled reader), because a timer per request costs more than it is worth; and nothing here is shared between
//! connections but the count of open ones, so that [`serve`] can run once per core on listeners of the same address
//! ([`Cores`]) as well as once on a runtime of many threads.

mod activity;
mod connection;
mod cores;
mod listen;
mod roster;
mod tls;

pub use connection::Peer;
pub use cores::Cores;
pub use listen::{Bound, Listener};
pub use tls::{TlsError, TlsFiles, tls_acceptor};

use crate::body::Body;
use crate::telemetry::metrics as names;
use activity::{Activity, Order};
use roster::Roster;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Interval, MissedTickBehavior};
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
    /// Whether requests are told whom they come from, by an extension, [`Peer`].
    pub tells_peer: bool,
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
            tells_peer: false,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    let places = Arc::new(Semaphore::new(options.connections_max));
    serve_among(listener, service, options, drain, places).await
}

/// The same, where several listeners share the places for connections.
async fn serve_among<S>(
    listener: Listener,
    service: S,
    options: Arc<Options>,
    drain: Drain,
    places: Arc<Semaphore>,
) -> Drained
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let connections = TaskTracker::new();
    let roster = Arc::new(Roster::default());
    let mut ticks = ticks(&options);
    loop {
        let (stream, address) = tokio::select! {
            biased;
            () = drain.begun() => break,
            _ = ticks.tick() => {
                roster.sweep(&options);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            metrics::counter!(names::LIMITED, "limit" => "connections").increment(1);
            connections.spawn(connection::refuse(stream, listener.is_tls()));
            continue;
        };
        let activity = Activity::new();
        let entry = roster.enter(Arc::clone(&activity));
        let options = Arc::clone(&options);
        let served = connection::serve(stream, address, listener.tls(), service.clone(), options, activity);
        connections.spawn(async move {
            let _held = (place, entry);
            let gauge = metrics::gauge!(names::CONNECTIONS);
            gauge.increment(1.0);
            served.await;
            gauge.decrement(1.0);
        });
    }
    drop(listener);
    connections.close();
    roster.give(Order::Finish);
    let in_time = finished(&connections, &roster, &options, &mut ticks).await;
    let cut = if in_time { 0 } else { connections.len() };
    roster.give(Order::Cut);
    connections.wait().await;
    Drained { cut }
}

/// Waits for the connections to end, their deadlines still watched; whether they did within the grace.
async fn finished(
    connections: &TaskTracker,
    roster: &Roster,
    options: &Options,
    ticks: &mut Interval,
) -> bool {
    let in_time = tokio::time::timeout(options.grace, async {
        loop {
            tokio::select! {
                () = connections.wait() => return,
                _ = ticks.tick() => roster.sweep(options),
            }
        }
    });
    in_time.await.is_ok()
}

fn ticks(options: &Options) -> Interval {
    let period = roster::tick(options);
    let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
