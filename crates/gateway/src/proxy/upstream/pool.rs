//! Calls to one upstream, whatever they go over: on a connection that is ready, or on a new one. A connection of HTTP/1.1 takes
//! one call at a time and is free when the answer's body has been read; one of HTTP/2 takes many, so each core has one.
//!
//! hyper-util's pools give a connection back when its service is dropped rather than when a body has ended, know no time
//! after which an upstream gives a connection up, and drive each connection by a task of its own.

use super::connect::{ConnectError, Connector};
use super::connection::{Connection, Failed, Outgoing};
use super::http2::SharedConnection;
use super::patience::Patience;
use super::pooled_body::pooled;
use super::ready::{ReadyConnections, SharedError};
use crate::body::Body;
use crate::error::Side;
use crate::proxy::limits::Limits;
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
    limits: Arc<Limits>,
    /// Whether the last connection was agreed to speak HTTP/2, and the next one most likely will be.
    speaks_http2: AtomicBool,
    ready: Arc<ReadyConnections>,
}

/// A connection that a call can go out on.
enum Link {
    Own(Box<Connection>),
    Shared(SharedConnection),
}

/// Why an upstream gave no answer.
pub(super) enum Unanswered {
    /// There is no connection.
    Unreachable(ConnectError),
    /// Nothing was written: the connection ended as soon as it was made.
    Unsent(hyper::Error),
    /// The exchange broke off.
    Broken(hyper::Error),
    Late,
}

impl ConnectionPool {
    /// A pool of connections that `connector` makes, to a service at `authority`.
    pub(super) fn new(
        connector: Connector,
        scheme: Scheme,
        authority: Authority,
        limits: Arc<Limits>,
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

    /// What makes its connections.
    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends a call, on a connection that is at hand if there is one, and waits for the head of the answer as long as `patience`
    /// allows. A connection that turns out to have ended before anything was written is no matter: the
    /// next one is taken. A call that `is_alone` shares no connection with others.
    pub(super) async fn exchange(
        self: &Arc<ConnectionPool>,
        mut request: Box<http::Request<Outgoing>>,
        started: Instant,
        patience: &Patience,
        is_alone: bool,
    ) -> Result<http::Response<Body>, Unanswered> {
        let is_streamed = !request.body().is_whole();
        loop {
            let (link, is_fresh) = match self.at_hand(started, is_alone) {
                Some(link) => (link, false),
                None => Box::pin(self.open(patience.until(), is_alone)).await?,
            };
            let failed = match link {
                Link::Own(mut connection) => match connection.send(request, patience).await {
                    Ok(response) => return Ok(self.answered(response, connection, is_streamed)),
                    Err(failed) => failed,
                },
                // Boxed, so that calls that go another way need not carry its size.
                Link::Shared(shared) => {
                    let sending = shared.send(request, &self.scheme, &self.authority, patience);
                    match Box::pin(sending).await {
                        Ok(response) => return Ok(response.map(|body| Body::incoming(body, Side::Upstream))),
                        Err(failed) => failed,
                    }
                }
            };
            match failed {
                Failed::Unsent(unsent, _) if !is_fresh => request = unsent,
                Failed::Unsent(_, error) => return Err(Unanswered::Unsent(error)),
                Failed::Broken(error) => return Err(Unanswered::Broken(error)),
                Failed::Late => return Err(Unanswered::Late),
            }
        }
    }

    /// Makes a connection for calls to come; whether there is one.
    pub(super) async fn warm(&self) -> bool {
        match self.connect().await {
            Ok(Link::Own(connection)) => self.ready.put(connection, self.ready.idle_timeout()),
            Ok(Link::Shared(shared)) => drop(self.ready.share(shared)),
            Err(_) => return false,
        }
        true
    }

    /// A connection that can be used now.
    fn at_hand(&self, now: Instant, is_alone: bool) -> Option<Link> {
        if !self.speaks_http2.load(Relaxed) {
            return self.ready.idle(now).map(Link::Own);
        }
        if is_alone { None } else { self.ready.shared(now).map(Link::Shared) }
    }

    /// A new connection, and whether it was made for this call alone or first: if such a one ends unused, the upstream does
    /// not want the call, rather than having grown tired of the connection.
    async fn open(
        self: &Arc<ConnectionPool>,
        deadline: tokio::time::Instant,
        is_alone: bool,
    ) -> Result<(Link, bool), Unanswered> {
        let late = |_| Unanswered::Late;
        while self.speaks_http2.load(Relaxed) && !is_alone {
            let (opening, is_first) = self.ready.opening(|| Arc::clone(self).open_shared().boxed());
            let opened = tokio::time::timeout_at(deadline, opening).await.map_err(late)?;
            match opened.map_err(|error| Unanswered::Unreachable(error.into()))? {
                Some(shared) => return Ok((Link::Shared(shared), is_first)),
                // It speaks HTTP/1.1 now: each call needs a connection of its own.
                None => continue,
            }
        }
        let connected = tokio::time::timeout_at(deadline, self.connect()).await.map_err(late)?;
        Ok(match connected.map_err(Unanswered::Unreachable)? {
            Link::Shared(shared) if !is_alone => (Link::Shared(self.ready.share(shared)), true),
            link => (link, true),
        })
    }

    /// A connection that the calls of this core share; none if the upstream speaks HTTP/1.1 by now.
    async fn open_shared(self: Arc<ConnectionPool>) -> Result<Option<SharedConnection>, SharedError> {
        Ok(match self.connect().await? {
            Link::Shared(shared) => Some(self.ready.share(shared)),
            Link::Own(connection) => {
                self.ready.put(connection, self.ready.idle_timeout());
                None
            }
        })
    }

    async fn connect(&self) -> Result<Link, ConnectError> {
        let stream = self.connector.connect().await?;
        let is_http2 = stream.is_http2();
        // Written only when it changes: all cores read it with each call.
        if self.speaks_http2.load(Relaxed) != is_http2 {
            self.speaks_http2.store(is_http2, Relaxed);
        }
        let limits = &self.limits;
        Ok(if is_http2 {
            Link::Shared(SharedConnection::new(stream, limits).await?)
        } else {
            Link::Own(
                Connection::new(stream, limits.upstream_head_bytes_max, limits.upstream_fields_max).await?,
            )
        })
    }

    fn answered(
        &self,
        response: http::Response<Incoming>,
        connection: Box<Connection>,
        is_streamed: bool,
    ) -> http::Response<Body> {
        let (head, incoming) = response.into_parts();
        let has_options = head.headers.contains_key(CONNECTION);
        let is_persistent = head.version == Version::HTTP_11 && !has_options;
        let idle_timeout = self.ready.idle_timeout();
        // An upstream that says how long it keeps the connection names that field among the options.
        let kept = if has_options { keep_alive(&head.headers) } else { None };
        let kept = kept.map_or(idle_timeout, |kept| kept.min(idle_timeout));
        let body = pooled(incoming, connection, is_streamed || !is_persistent, kept, &self.ready);
        http::Response::from_parts(head, body)
    }
}

/// How long a connection may be kept of which the upstream says for how long it keeps it, in `Keep-Alive: timeout=5`: less,
/// since what is sent at the last moment may meet its end.
fn keep_alive(headers: &HeaderMap) -> Option<Duration> {
    const MARGIN: Duration = Duration::from_secs(1);
    let said = headers.get("keep-alive")?.to_str().ok()?;
    let timeout = said.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?;
    let kept = Duration::from_secs(timeout.trim_matches('"').parse().ok()?);
    Some(if kept > MARGIN { kept - MARGIN } else { kept / 2 })
}
