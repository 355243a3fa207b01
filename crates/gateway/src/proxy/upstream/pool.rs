//! Connection pool of one upstream. An HTTP/1.1 connection carries one call at a time and returns
//! to the pool when the response body has been read. An HTTP/2 connection carries many calls, so
//! one per core is enough.
//!
//! The pools of hyper-util do not fit: they return a connection when its service is dropped rather
//! than when the body ends, ignore `Keep-Alive: timeout`, and spawn a task for each connection.

use super::connect::{Connector, DialError};
use super::connection::{CallFailure, Connection, Outgoing};
use super::http2::SharedConnection;
use super::patience::HeadDeadline;
use super::pooled_body::pooled_body;
use super::ready::{ReadyConnections, SharedError};
use crate::body::Body;
use crate::error::ErrorSide;
use crate::proxy::limits::UpstreamLimits;
use futures_util::FutureExt as _;
use http::header::CONNECTION;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Version};
use hyper::body::Incoming;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The connections to one upstream.
pub(super) struct ConnectionPool {
    connector: Connector,
    scheme: Scheme,
    authority: Authority,
    limits: UpstreamLimits,
    /// Protocol of the latest connection, used as a prediction for the next one.
    speaks_http2: AtomicBool,
    ready: Arc<ReadyConnections>,
}

/// A connection for one call.
enum PoolConnection {
    Own(Box<Connection>),
    Shared(SharedConnection),
}

/// Reason why an upstream sent no response.
pub(super) enum Unanswered {
    /// No connection could be established.
    Unreachable(DialError),
    /// The new connection closed before anything was written.
    Unsent(hyper::Error),
    /// The exchange failed after the request was written, at least in part.
    Broken(hyper::Error),
    Late,
}

impl ConnectionPool {
    /// Creates a pool of connections opened by `connector`. `scheme` and `authority` address HTTP/2
    /// requests.
    pub(super) fn new(
        connector: Connector,
        scheme: Scheme,
        authority: Authority,
        limits: UpstreamLimits,
    ) -> Arc<ConnectionPool> {
        Arc::new(ConnectionPool {
            connector,
            scheme,
            authority,
            speaks_http2: AtomicBool::new(false),
            ready: Arc::new(ReadyConnections::new(&limits)),
            limits,
        })
    }

    /// Returns the connector of this pool.
    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends a request on a ready or new connection and waits for the response head for as long as
    /// `patience` allows. With `is_alone` the call does not share its connection.
    ///
    /// A reused connection that closed before anything was written is replaced by the next one.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is no response. [`Unanswered::Unsent`] is returned only
    /// for a connection on which no call was sent before.
    pub(super) async fn exchange(
        self: &Arc<ConnectionPool>,
        mut request: Box<http::Request<Outgoing>>,
        started: Instant,
        patience: &HeadDeadline,
        is_alone: bool,
    ) -> Result<http::Response<Body>, Unanswered> {
        // Taken now, because the request is moved into the call. A response may arrive while the
        // upload still runs; such a connection cannot carry another call yet.
        let is_streamed = !request.body().is_whole();
        loop {
            let (link, is_fresh) = match self.at_hand(started, is_alone) {
                Some(link) => (link, false),
                // Boxed because most calls find a ready connection: the future of the common case
                // stays small.
                None => Box::pin(self.open(patience.until(), is_alone)).await?,
            };
            let failed = match link {
                PoolConnection::Own(mut connection) => match connection.send(request, patience).await {
                    Ok(response) => return Ok(self.wrap_response(response, connection, is_streamed)),
                    Err(failed) => failed,
                },
                // Boxed: this future is large, and HTTP/1.1 calls need not contain it.
                PoolConnection::Shared(shared) => {
                    let sending = shared.send(request, &self.scheme, &self.authority, patience);
                    match Box::pin(sending).await {
                        Ok(response) => {
                            return Ok(response.map(|body| Body::incoming(body, ErrorSide::Upstream)));
                        }
                        Err(failed) => failed,
                    }
                }
            };
            match failed {
                // An upstream may close an idle connection while a request is about to use it.
                // Nothing was written, so sending again is safe for every method. A new connection
                // that closes unused is a refusal; retrying here would loop.
                CallFailure::Unsent(unsent, _) if !is_fresh => request = unsent,
                CallFailure::Unsent(_, error) => return Err(Unanswered::Unsent(error)),
                CallFailure::Broken(error) => return Err(Unanswered::Broken(error)),
                CallFailure::Late => return Err(Unanswered::Late),
            }
        }
    }

    /// Opens a connection for later calls. Returns whether that succeeded.
    pub(super) async fn open_idle(&self) -> bool {
        match self.connect().await {
            Ok(PoolConnection::Own(connection)) => self.ready.put(connection, self.ready.idle_timeout()),
            // If a concurrent call has stored one already, this second connection closes with the
            // drop.
            Ok(PoolConnection::Shared(shared)) => drop(self.ready.share(shared)),
            Err(_) => return false,
        }
        true
    }

    /// Takes a connection that is ready to use.
    fn at_hand(&self, now: Instant, is_alone: bool) -> Option<PoolConnection> {
        // `speaks_http2` is only a prediction. If it is wrong, the slot that is searched is empty
        // and `open` learns the actual protocol.
        if !self.speaks_http2.load(Relaxed) {
            return self.ready.idle(now).map(PoolConnection::Own);
        }
        if is_alone { None } else { self.ready.shared_connection(now).map(PoolConnection::Shared) }
    }

    /// Opens a connection. The flag is `true` if the connection was opened for this call or this
    /// call was the first to wait for it. If such a connection closes unused, the upstream refuses
    /// the call; any other may just have been idle for too long.
    async fn open(
        self: &Arc<ConnectionPool>,
        deadline: tokio::time::Instant,
        is_alone: bool,
    ) -> Result<(PoolConnection, bool), Unanswered> {
        let late = |_| Unanswered::Late;
        // While HTTP/2 is predicted, concurrent calls wait for one handshake. Otherwise a burst
        // would open a connection per call although one carries all of them.
        while self.speaks_http2.load(Relaxed) && !is_alone {
            let (opening, is_first) = self.ready.opening(|| Arc::clone(self).open_shared().boxed());
            let opened = tokio::time::timeout_at(deadline, opening).await.map_err(late)?;
            match opened.map_err(|error| Unanswered::Unreachable(error.into()))? {
                Some(shared) => return Ok((PoolConnection::Shared(shared), is_first)),
                // The upstream now uses HTTP/1.1, so each call needs its own connection.
                None => continue,
            }
        }
        let connected = tokio::time::timeout_at(deadline, self.connect()).await.map_err(late)?;
        Ok(match connected.map_err(Unanswered::Unreachable)? {
            PoolConnection::Shared(shared) if !is_alone => {
                (PoolConnection::Shared(self.ready.share(shared)), true)
            }
            link => (link, true),
        })
    }

    /// Opens the connection that calls of this core share. Returns `None` if the upstream now uses
    /// HTTP/1.1; the connection is then stored as idle.
    async fn open_shared(self: Arc<ConnectionPool>) -> Result<Option<SharedConnection>, SharedError> {
        Ok(match self.connect().await? {
            PoolConnection::Shared(shared) => Some(self.ready.share(shared)),
            // The waiting calls open their own connections in parallel; this one serves whichever
            // is next.
            PoolConnection::Own(connection) => {
                self.ready.put(connection, self.ready.idle_timeout());
                None
            }
        })
    }

    async fn connect(&self) -> Result<PoolConnection, DialError> {
        let stream = self.connector.connect().await?;
        let is_http2 = stream.is_http2();
        // Store only on change: every call on every core reads this flag.
        if self.speaks_http2.load(Relaxed) != is_http2 {
            self.speaks_http2.store(is_http2, Relaxed);
        }
        let limits = &self.limits;
        Ok(if is_http2 {
            PoolConnection::Shared(SharedConnection::new(stream, limits).await?)
        } else {
            PoolConnection::Own(Connection::new(stream, limits.head_bytes_max, limits.fields_max).await?)
        })
    }

    fn wrap_response(
        &self,
        response: http::Response<Incoming>,
        connection: Box<Connection>,
        is_streamed: bool,
    ) -> http::Response<Body> {
        let (head, incoming) = response.into_parts();
        let has_options = head.headers.contains_key(CONNECTION);
        // `Connection` may contain `close`, and HTTP/1.0 connections close by default (RFC 9112,
        // section 9.3). Instead of parsing the options, such a connection is checked when its body
        // is complete.
        let is_persistent = head.version == Version::HTTP_11 && !has_options;
        let idle_timeout = self.ready.idle_timeout();
        // An upstream that announces a `Keep-Alive` timeout names that field in `Connection`.
        let kept = if has_options { keep_alive(&head.headers) } else { None };
        let kept = kept.map_or(idle_timeout, |kept| kept.min(idle_timeout));
        let body = pooled_body(incoming, connection, is_streamed || !is_persistent, kept, &self.ready);
        http::Response::from_parts(head, body)
    }
}

/// Returns how long to retain a connection whose upstream announces a `Keep-Alive` timeout, such as
/// `timeout=5`. The margin avoids sending a request just as the upstream closes the connection.
fn keep_alive(headers: &HeaderMap) -> Option<Duration> {
    const MARGIN: Duration = Duration::from_secs(1);
    let said = headers.get("keep-alive")?.to_str().ok()?;
    let timeout = said.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?;
    let kept = Duration::from_secs(timeout.trim_matches('"').parse().ok()?);
    // A timeout of one second or less leaves no room for the margin. Half of it still permits reuse
    // by a burst of calls.
    Some(if kept > MARGIN { kept - MARGIN } else { kept / 2 })
}
