//! A service that the gateway calls: its address, its connections, its limits. It sends one call once and judges
//! whether what comes back is an answer. Upstreams are not trusted to keep to HTTP.
//!
//! All calls go out on one [`ConnectionPool`], over plain TCP or TLS, in HTTP/1.1 or, where both sides agree on it, HTTP/2. Each
//! core has connections of its own.
//!
//! Interim answers (1xx) are read and dropped, unless a call is forwarded over HTTP/1.1: then they go to the client before the answer.

mod connect;
mod connection;
mod http2;
mod judge;
mod outage;
mod patience;
mod pool;
mod pooled_body;
mod ready;
mod switch;
mod waker;

/// What [`waker`] stands on. Its test has loom's instead.
mod sync {
    pub(super) use futures_util::task::AtomicWaker;
    pub(super) use std::sync::atomic::{AtomicBool, Ordering};
}

use self::connect::Connector;
use self::connection::Outgoing;
use self::judge::{broken_within, judge_head, judge_unanswered, late};
use self::outage::Outage;
use self::patience::Patience;
use self::pool::{ConnectionPool, Unanswered};
use crate::body::{Body, BodyTimeout, LastByte};
use crate::error::{GatewayError, Kind};
use crate::interim;
use crate::proxy::Response;
use crate::proxy::concurrency::{FairConcurrencyLimit, FairPermit, refused};
use crate::proxy::headers::{forwarded_answer, switches_as_asked};
use crate::proxy::limits::Limits;
use crate::proxy::origin::CallOrigin;
use crate::telemetry::metrics::UpstreamMeter;
use crate::tls::{ServiceTls, TlsError};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use hyper::ext::on_informational;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

/// Why an upstream cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Another scheme, or no host.
    #[error("the address must begin with http:// or https:// and name a host")]
    Address,
    /// Calls have queries and fragments of their own; user information would be a secret in a log.
    #[error("the address must not have a query, a fragment or user information")]
    Extras,
    /// A certificate, a key or an authority cannot be used.
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
}

/// How a call goes out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// As it came: its interim answers go to the client, and its time runs from the last byte in either direction.
    pub is_forwarded: bool,
    /// On a connection of its own, also where connections are shared.
    pub is_alone: bool,
}

/// A service that the gateway calls.
pub struct Upstream {
    name: Arc<str>,
    /// Whose calls it takes.
    role: CallOrigin,
    scheme: Scheme,
    authority: Authority,
    /// Without a `/` at the end.
    base: String,
    /// The authority as `Host` says it.
    host: HeaderValue,
    transport: Transport,
    in_flight: FairConcurrencyLimit,
    outage: Outage,
    limits: Arc<Limits>,
    meter: UpstreamMeter,
}

/// What calls go out on.
enum Transport {
    Connections(Arc<ConnectionPool>),
    /// No connection: a service of the same program.
    Within(InnerService),
}

/// A service of the same program that is called in place of one behind a connection.
pub(crate) type InnerService = BoxCloneSyncService<http::Request<Body>, Response, BoxError>;

impl Upstream {
    /// An upstream at `url`, below whose path all calls go, whose certificate is held against the system's authorities. `name`
    /// and `role` label it in logs and metrics.
    ///
    /// # Errors
    ///
    /// The address is not `http://` or `https://` with a host and at most a path, or the system's authorities cannot be read.
    pub fn new(
        name: &str,
        role: CallOrigin,
        url: &Uri,
        limits: Arc<Limits>,
    ) -> Result<Upstream, UpstreamError> {
        Upstream::secured(name, role, url, &ServiceTls::default(), limits)
    }

    /// The same, called with TLS as `tls` says where its address begins with https://.
    ///
    /// # Errors
    ///
    /// As with [`Upstream::new`]; or a file that `tls` names cannot be used.
    pub fn secured(
        name: &str,
        role: CallOrigin,
        url: &Uri,
        tls: &ServiceTls,
        limits: Arc<Limits>,
    ) -> Result<Upstream, UpstreamError> {
        let scheme = url
            .scheme()
            .filter(|s| **s == Scheme::HTTP || **s == Scheme::HTTPS)
            .ok_or(UpstreamError::Address)?;
        let authority = url.authority().filter(|a| !a.host().is_empty()).ok_or(UpstreamError::Address)?;
        if url.query().is_some() || authority.as_str().contains('@') {
            return Err(UpstreamError::Extras);
        }
        let connector = Connector::new(url.clone(), tls, &limits)?;
        let connections =
            ConnectionPool::new(connector, scheme.clone(), authority.clone(), Arc::clone(&limits));
        Ok(Upstream {
            name: name.into(),
            role,
            base: url.path().trim_end_matches('/').to_owned(),
            host: host(scheme, authority).ok_or(UpstreamError::Address)?,
            transport: Transport::Connections(connections),
            in_flight: FairConcurrencyLimit::new(
                limits.upstream_in_flight_max,
                limits.client_upstream_in_flight_max,
            ),
            outage: Outage::new(),
            meter: UpstreamMeter::new(name, role.name()),
            scheme: scheme.clone(),
            authority: authority.clone(),
            limits,
        })
    }

    /// A service of the same program, which is called with the bare path as its address. `name` labels it in logs and
    /// metrics.
    pub(crate) fn within(name: &str, service: InnerService, limits: Arc<Limits>) -> Upstream {
        let authority = Authority::from_static("localhost");
        Upstream {
            name: name.into(),
            role: CallOrigin::Client,
            base: String::new(),
            host: HeaderValue::from_static("localhost"),
            transport: Transport::Within(service),
            in_flight: FairConcurrencyLimit::new(
                limits.upstream_in_flight_max,
                limits.client_upstream_in_flight_max,
            ),
            outage: Outage::new(),
            meter: UpstreamMeter::new(name, CallOrigin::Client.name()),
            scheme: Scheme::HTTP,
            authority,
            limits,
        }
    }

    /// Whether it is a service of the same program.
    pub(crate) fn is_within(&self) -> bool {
        matches!(self.transport, Transport::Within(_))
    }

    /// Label in logs and metrics.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whose calls it takes.
    pub fn role(&self) -> CallOrigin {
        self.role
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The port that calls go to.
    pub(crate) fn port(&self) -> Option<u16> {
        let own = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        (!self.is_within()).then(|| self.authority.port_u16().unwrap_or(own))
    }

    /// Where it is, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, self.base)
    }

    /// Whether it has not been reached for so long that it counts as gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.outage.is_longer_than(self.limits.upstream_gone_after)
    }

    /// Whether it is there, as far as is known: one that counts as gone is tried now and then by one of those who ask, who waits
    /// for the connection. Only an answer to that call proves that it is back: the connection may be one to a proxy before it.
    pub(crate) async fn is_there(&self) -> bool {
        if !self.is_gone() {
            return true;
        }
        let Transport::Connections(connections) = &self.transport else { return true };
        self.outage.is_to_be_tried() && connections.warm().await
    }

    fn note_reach<T>(&self, answer: &Result<http::Response<T>, Unanswered>) {
        match answer {
            // Proxies answer so for a service that is gone behind them. A service that lives answers other calls otherwise.
            Ok(answer) if matches!(answer.status().as_u16(), 502..=504) => self.outage.miss(),
            Ok(_) => self.outage.reach(),
            Err(Unanswered::Unreachable(_) | Unanswered::Late) => self.outage.miss(),
            // It took the connection, and may take the next call.
            Err(Unanswered::Unsent(_) | Unanswered::Broken(_)) => {}
        }
    }

    /// A place among the calls in flight, for a call of this client.
    pub(crate) fn permit(&self, client: &str) -> Result<FairPermit, GatewayError> {
        self.in_flight.take(client).map_err(|limit| refused(limit).safe_to_retry())
    }

    /// Sends a call. `target` is path and query below the upstream's base; what the gateway adds to `headers` stays in them,
    /// for another try. The permit is taken until the answer's body has ended.
    pub(crate) async fn send(
        &self,
        permit: FairPermit,
        method: &Method,
        target: &str,
        headers: &mut HeaderMap,
        body: Body,
        way: Way,
    ) -> Result<Response, GatewayError> {
        let last_byte = way.is_forwarded.then(|| LastByte::new(self.limits.forwarded_idle_timeout));
        let body = match &last_byte {
            Some(last_byte) => body.timed_by(last_byte),
            None => body,
        };
        let mut request = Box::new(self.request(method, target, headers, body)?);
        if let Some(last_byte) = last_byte.clone() {
            on_informational(&mut *request, move |interim| {
                last_byte.pass();
                interim::say(interim.status(), forwarded_answer(interim.headers(), false));
            });
        }
        let started = Instant::now();
        let patience = self.patience(started, last_byte.clone());
        let outcome = self.exchange(request, started, &patience, way.is_alone).await;
        self.meter.record(outcome.as_ref().ok().map(http::Response::status), started.elapsed());
        let response = outcome?;
        // Nothing more is wanted of the upstream for it.
        if response.body().is_whole() {
            return Ok(response.map(|body| body.limited(self.limits.response_bytes_max)));
        }
        Ok(self.bounded(response, last_byte).map(|body| body.watched(Box::new(permit))))
    }

    /// The time that a call has to be answered.
    fn patience(&self, started: Instant, last_byte: Option<Arc<LastByte>>) -> Patience {
        let timeout = last_byte.as_ref().map_or(self.limits.upstream_timeout, |last_byte| last_byte.idle());
        Patience::new(tokio::time::Instant::from_std(started + timeout), last_byte)
    }

    /// An answer whose body has the bounds of bodies, in bytes and in time.
    fn bounded(&self, response: Response, last_byte: Option<Arc<LastByte>>) -> Response {
        let body_timeout = BodyTimeout { idle: self.limits.upstream_timeout, bytes_per_second_min: 0 };
        let bytes_max = self.limits.response_bytes_max;
        response.map(|body| {
            let body = body.limited(bytes_max).paced(body_timeout);
            match last_byte {
                Some(last_byte) => {
                    last_byte.answer();
                    body.timed_by(&last_byte)
                }
                None => body,
            }
        })
    }

    /// Sends a call after which its connection may speak another protocol. It gets a connection of its own, in HTTP/1.1,
    /// which the answer brings along ([`crate::tunnel::Switched`]) if the upstream agrees; else the answer is as any other.
    pub(crate) async fn switch(
        &self,
        permit: FairPermit,
        method: &Method,
        target: &str,
        headers: &mut HeaderMap,
    ) -> Result<Response, GatewayError> {
        let request = self.request(method, target, headers, Body::empty())?;
        let Transport::Connections(connections) = &self.transport else {
            return Err(GatewayError::new(Kind::Internal, "a service within has no connection to switch"));
        };
        let started = Instant::now();
        let last_byte = LastByte::new(self.limits.forwarded_idle_timeout);
        let patience = self.patience(started, Some(Arc::clone(&last_byte)));
        let outcome = switch::exchange(connections.connector(), request, &patience).await;
        self.note_reach(&outcome);
        let outcome = outcome.map_err(judge_unanswered);
        self.meter.record(outcome.as_ref().ok().map(http::Response::status), started.elapsed());
        let response = outcome?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS if !switches_as_asked(headers, response.headers()) => {
                let detail = "the upstream goes over to a protocol that it was not asked for";
                return Err(GatewayError::new(Kind::UpstreamBroken, detail));
            }
            StatusCode::SWITCHING_PROTOCOLS => {}
            _ => judge_head(&response, self.limits.upstream_fields_max)?,
        }
        Ok(self.bounded(response, Some(last_byte)).map(|body| body.watched(Box::new(permit))))
    }

    /// The call as it is sent.
    fn request(
        &self,
        method: &Method,
        target: &str,
        headers: &mut HeaderMap,
        body: Body,
    ) -> Result<http::Request<Outgoing>, GatewayError> {
        let mut path = String::with_capacity(self.base.len() + target.len());
        path.push_str(&self.base);
        path.push_str(target);
        let target = PathAndQuery::try_from(path)
            .map_err(|e| GatewayError::new(Kind::Internal, "a call's target is invalid").because(e))?;
        let is_bodiless = body.is_empty();
        let mut request = http::Request::new(Outgoing::from(body));
        request.method_mut().clone_from(method);
        *request.uri_mut() = Uri::from(target);
        // Into the call's own fields, which have room, and not into the copy, which would have to grow. What the call is
        // repeated with takes its place.
        headers.insert(header::HOST, self.host.clone());
        if is_bodiless && wants_length(method) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        request.headers_mut().clone_from(headers);
        Ok(request)
    }

    async fn exchange(
        &self,
        request: Box<http::Request<Outgoing>>,
        started: Instant,
        patience: &Patience,
        is_alone: bool,
    ) -> Result<Response, GatewayError> {
        let response = match &self.transport {
            Transport::Connections(connections) => {
                let answer = connections.exchange(request, started, patience, is_alone).await;
                self.note_reach(&answer);
                answer.map_err(judge_unanswered)?
            }
            Transport::Within(service) => {
                let answering = service.clone().oneshot(request.map(Outgoing::into_body));
                let answer = patience.wait(answering).await;
                return answer.map_err(|_| late())?.map_err(broken_within);
            }
        };
        judge_head(&response, self.limits.upstream_fields_max)?;
        Ok(response)
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({} at {})", self.name, self.url())
    }
}

/// Whether servers expect to be told that a request of this method has no body (RFC 9110, section 8.6): strict ones answer
/// 411 otherwise.
fn wants_length(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// `Host`: the port is only said where it is not the scheme's own (RFC 9110, section 7.2).
fn host(scheme: &Scheme, authority: &Authority) -> Option<HeaderValue> {
    let own_port = if *scheme == Scheme::HTTPS { 443 } else { 80 };
    match authority.port_u16() {
        Some(port) if port != own_port => HeaderValue::try_from(format!("{}:{port}", authority.host())).ok(),
        _ => HeaderValue::from_str(authority.host()).ok(),
    }
}
