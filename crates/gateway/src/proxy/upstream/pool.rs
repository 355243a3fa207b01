//! The connections to one upstream that is spoken to in plain HTTP/1.1: kept in shards, one per core, so that a connection
//! is used again by the core that opened it and cores wait for one another neither for a lock nor for a wake-up. Upstreams
//! behind TLS are left to hyper's own client, which knows HTTP/2.

use super::connection::{Connection, Failed, Outgoing};
use crate::body::{self, Body};
use crate::error::{GatewayError, Side};
use crate::proxy::limits::Limits;
use crate::shard;
use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderMap, Uri, Version};
use http_body::{Frame, SizeHint};
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::connect::HttpConnector;
use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tower::ServiceExt as _;

/// How often idle connections are looked after, at most.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The connections to one upstream.
pub(super) struct ConnectionPool {
    connector: HttpConnector,
    /// Where to connect to.
    address: Uri,
    idle_timeout: Duration,
    /// Of the head of an answer.
    head_bytes_max: usize,
    fields_max: usize,
    /// Idle connections per shard.
    idle_max: usize,
    shards: Box<[Shard]>,
}

/// The idle connections of one core.
#[derive(Default)]
struct Shard {
    /// The last one used is the last: it is used next, so that those not needed grow old.
    idle: Mutex<Vec<Idle>>,
    is_swept: AtomicBool,
}

struct Idle {
    connection: Box<Connection>,
    /// When it is too old to be used again.
    until: Instant,
}

/// Why an upstream gave no answer.
pub(super) enum Unanswered {
    /// There is no connection.
    Unreachable(Box<dyn StdError + Send + Sync>),
    /// Nothing was written: the connection ended as soon as it was made.
    Unsent(hyper::Error),
    /// The exchange broke off.
    Broken(hyper::Error),
    Late,
}

impl ConnectionPool {
    /// A pool of connections to `address`.
    pub(super) fn new(connector: HttpConnector, address: Uri, limits: &Limits) -> Arc<ConnectionPool> {
        let shards: Box<[Shard]> = (0..shard::count()).map(|_| Shard::default()).collect();
        Arc::new(ConnectionPool {
            connector,
            address,
            idle_timeout: limits.upstream_idle_timeout,
            head_bytes_max: limits.upstream_head_bytes_max,
            fields_max: limits.upstream_fields_max,
            idle_max: limits.upstream_idle_max.div_ceil(shards.len()),
            shards,
        })
    }

    /// How to connect, and where to.
    pub(super) fn connector(&self) -> (HttpConnector, Uri) {
        (self.connector.clone(), self.address.clone())
    }

    /// Sends a call, on an idle connection if there is one, and waits at most `patience` for the head of the answer. A
    /// connection that turns out to have ended before anything was written is no matter: the next one is taken.
    pub(super) async fn exchange(
        self: &Arc<ConnectionPool>,
        mut request: Box<http::Request<Outgoing>>,
        started: Instant,
        patience: Duration,
    ) -> Result<http::Response<Body>, Unanswered> {
        let deadline = tokio::time::Instant::from_std(started + patience);
        let streams = !request.body().is_whole();
        loop {
            let (mut connection, is_fresh) = match self.idle(started) {
                Some(connection) => (connection, false),
                None => (Box::pin(self.connect(deadline)).await?, true),
            };
            match connection.send(request, deadline).await {
                Ok(response) => {
                    let (head, incoming) = response.into_parts();
                    let is_persistent =
                        head.version == Version::HTTP_11 && !head.headers.contains_key(CONNECTION);
                    let kept = keep_alive(&head.headers)
                        .map_or(self.idle_timeout, |kept| kept.min(self.idle_timeout));
                    let body = self.body(incoming, connection, streams || !is_persistent, kept);
                    return Ok(http::Response::from_parts(head, body));
                }
                Err(Failed::Unsent(unsent, _)) if !is_fresh => request = unsent,
                Err(Failed::Unsent(_, error)) => return Err(Unanswered::Unsent(error)),
                Err(Failed::Broken(error)) => return Err(Unanswered::Broken(error)),
                Err(Failed::Late) => return Err(Unanswered::Late),
            }
        }
    }

    async fn connect(&self, deadline: tokio::time::Instant) -> Result<Box<Connection>, Unanswered> {
        let connecting = self.connector.clone().oneshot(self.address.clone());
        match tokio::time::timeout_at(deadline, connecting).await {
            Ok(Ok(io)) => {
                Connection::new(io, self.head_bytes_max, self.fields_max).await.map_err(Unanswered::Broken)
            }
            Ok(Err(error)) => Err(Unanswered::Unreachable(error.into())),
            Err(_) => Err(Unanswered::Late),
        }
    }

    /// What of the body is here already is read at once: most answers come whole, and their connection is free again.
    fn body(
        self: &Arc<ConnectionPool>,
        incoming: Incoming,
        connection: Box<Connection>,
        is_last: bool,
        kept: Duration,
    ) -> Body {
        let mut rest = PooledBody {
            incoming,
            connection: Some(connection),
            is_last,
            kept,
            ready: None,
            home: Arc::clone(self),
        };
        if rest.incoming.is_end_stream() {
            rest.release();
            return Body::empty();
        }
        // Whoever reads on says whom to wake.
        match rest.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(None) => return Body::empty(),
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) if rest.connection.is_none() => return Body::full(bytes),
                Ok(bytes) => rest.ready = Some(Ok(Frame::data(bytes))),
                Err(trailers) => rest.ready = Some(Ok(trailers)),
            },
            Poll::Ready(Some(Err(error))) => rest.ready = Some(Err(error)),
            Poll::Pending => {}
        }
        Body::stream(rest, Side::Upstream)
    }

    /// A connection that can be used now.
    fn idle(&self, now: Instant) -> Option<Box<Connection>> {
        let mut idle = self.shard().idle();
        while let Some(mut next) = idle.pop() {
            if now < next.until && next.connection.poll_ready() {
                return Some(next.connection);
            }
        }
        None
    }

    fn put(self: &Arc<ConnectionPool>, connection: Box<Connection>, kept: Duration) {
        let shard = self.shard();
        let mut idle = shard.idle();
        if idle.len() < self.idle_max {
            idle.push(Idle { connection, until: Instant::now() + kept });
        }
        drop(idle);
        if !shard.is_swept.swap(true, Relaxed) {
            let (connections, at) = (Arc::downgrade(self), shard::here() % self.shards.len());
            let interval = SWEEP_INTERVAL.min(self.idle_timeout);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(interval).await;
                    let Some(connections) = connections.upgrade() else { return };
                    if connections.sweep(&connections.shards[at]) {
                        return;
                    }
                }
            });
        }
    }

    /// Closes what is too old or was closed by the upstream; whether none is left to come back for.
    fn sweep(&self, shard: &Shard) -> bool {
        let mut idle = shard.idle();
        let now = Instant::now();
        idle.retain_mut(|idle| now < idle.until && idle.connection.poll_ready());
        if idle.is_empty() {
            shard.is_swept.store(false, Relaxed);
        }
        idle.is_empty()
    }

    fn shard(&self) -> &Shard {
        &self.shards[shard::here() % self.shards.len()]
    }
}

impl Shard {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a connection may be kept of which the upstream says for how long it keeps it, in `Keep-Alive: timeout=5`: less,
/// since what is sent at the last moment may meet its end.
pub(super) fn keep_alive(headers: &HeaderMap) -> Option<Duration> {
    const MARGIN: Duration = Duration::from_secs(1);
    // Whoever says it names it there too.
    if !headers.contains_key(CONNECTION) {
        return None;
    }
    let said = headers.get("keep-alive")?.to_str().ok()?;
    let timeout = said.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?;
    let kept = Duration::from_secs(timeout.trim_matches('"').parse().ok()?);
    Some(if kept > MARGIN { kept - MARGIN } else { kept / 2 })
}

/// The rest of an answer's body, and the connection that it comes on. The connection is free when the body has ended; a body
/// that is dropped before ends its connection, as nothing else would.
struct PooledBody {
    incoming: Incoming,
    connection: Option<Box<Connection>>,
    /// Whether this may have been the last call on the connection: the upstream closes it, or the call is still being read
    /// from elsewhere.
    is_last: bool,
    /// How long the connection is kept when it is free.
    kept: Duration,
    /// Was here already when the head came.
    ready: Option<Result<Frame<Bytes>, GatewayError>>,
    home: Arc<ConnectionPool>,
}

impl PooledBody {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        let incoming = &mut self.incoming;
        Poll::Ready(match ready!(connection.drive(cx, |cx| Pin::new(&mut *incoming).poll_frame(cx))) {
            Some(Ok(frame)) => {
                if frame.is_data() && incoming.is_end_stream() {
                    self.release();
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                self.connection = None;
                Some(Err(body::broke_off(body::BROKE_OFF, error)))
            }
            None => {
                self.release();
                None
            }
        })
    }

    /// The answer is read. A connection that may not be used again is looked at now, any other when it is wanted: by then
    /// nobody holds the answer any more, and the connection can use its memory again instead of asking for more.
    fn release(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && (!self.is_last || connection.poll_ready())
        {
            connection.park();
            self.home.put(connection, self.kept);
        }
    }
}

impl http_body::Body for PooledBody {
    type Data = Bytes;
    type Error = GatewayError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, GatewayError>>> {
        let this = self.get_mut();
        if let Some(ready) = this.ready.take() {
            return Poll::Ready(Some(ready));
        }
        this.poll_next(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none() && self.connection.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.incoming.size_hint();
        match (&self.ready, rest.exact()) {
            (Some(Ok(ready)), Some(rest)) => {
                SizeHint::with_exact(rest + ready.data_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            _ => rest,
        }
    }
}
