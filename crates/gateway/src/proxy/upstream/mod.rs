//! A service that the gateway calls: its address, its connections and its limits. An upstream sends
//! each call once (retries are the caller's decision) and checks that the response is valid HTTP.
//!
//! All calls share one [`ConnectionPool`], over plain TCP or TLS, in HTTP/1.1 or, if ALPN selects
//! it, HTTP/2. Each core has its own connections.
//!
//! Informational responses (1xx) are discarded, except for calls forwarded over HTTP/1.1, whose
//! client receives them before the final response.

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

/// Synchronization primitives of [`waker`], which its test replaces by loom's.
mod sync {
    pub(super) use futures_util::task::AtomicWaker;
    pub(super) use std::sync::atomic::{AtomicBool, Ordering};
}

use self::connect::Connector;
use self::connection::Outgoing;
use self::judge::{broken_within, judge_head, judge_unanswered, late};
use self::outage::Outage;
use self::patience::HeadDeadline;
use self::pool::{ConnectionPool, Unanswered};
use crate::body::{Body, BodyTimeout, LastByte};
use crate::error::{ErrorKind, GatewayError};
use crate::interim;
use crate::proxy::Response;
use crate::proxy::concurrency::{FairConcurrencyLimit, FairPermit, limit_error};
use crate::proxy::headers::{forwarded_answer, switches_as_asked};
use crate::proxy::limits::{CallLimits, UpstreamLimits};
use crate::proxy::origin::CallOrigin;
use crate::signature::Signature;
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

/// Error in the configuration of an upstream.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The scheme is not HTTP or HTTPS, or the host is missing.
    #[error("the address must begin with http:// or https:// and name a host")]
    Address,
    /// The address has a query, a fragment or user information. Calls have their own queries, and
    /// user information would leak a secret into logs.
    #[error("the address must not have a query, a fragment or user information")]
    Extras,
    /// A certificate, key or authority cannot be used.
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
}

/// Options of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Forwards informational responses to the client, and measures the idle timeout from the last
    /// byte in either direction.
    pub is_forwarded: bool,
    /// Uses a connection of its own, even where connections are shared.
    pub is_alone: bool,
    /// Limits of the call, if a client made it.
    pub limits: CallLimits,
}

/// A service that the gateway calls.
pub struct Upstream {
    name: Arc<str>,
    /// Origin of the calls that this upstream receives.
    role: CallOrigin,
    scheme: Scheme,
    authority: Authority,
    /// Path prefix of all calls, without a trailing slash.
    base: String,
    /// Value of the `Host` field.
    host: HeaderValue,
    transport: Transport,
    in_flight: FairConcurrencyLimit,
    outage: Outage,
    limits: UpstreamLimits,
    meter: UpstreamMeter,
    /// Signs translated calls.
    signature: Option<Signature>,
}

/// Transport of an upstream's calls.
enum Transport {
    Connections(Arc<ConnectionPool>),
    /// A service in the same process, called without a connection.
    Within(InnerService),
}

/// An in-process service used in place of a connection.
pub(crate) type InnerService = BoxCloneSyncService<http::Request<Body>, Response, BoxError>;

impl Upstream {
    /// Creates an upstream at `url`. All calls go to paths below the path of `url`. Certificates
    /// are verified against the system's authorities. `name` and `role` label logs and metrics.
    ///
    /// # Errors
    ///
    /// Returns an error if `url` is not an `http` or `https` address with a host and at most a
    /// path, or if the system's authorities cannot be read.
    pub fn new(
        name: &str,
        role: CallOrigin,
        url: &Uri,
        limits: UpstreamLimits,
    ) -> Result<Upstream, UpstreamError> {
        Upstream::with_tls(name, role, url, &ServiceTls::default(), limits)
    }

    /// Creates an upstream with its own TLS settings, which apply to `https` addresses.
    ///
    /// # Errors
    ///
    /// As [`Upstream::new`]; also if a file named by `tls` cannot be used.
    pub fn with_tls(
        name: &str,
        role: CallOrigin,
        url: &Uri,
        tls: &ServiceTls,
        limits: UpstreamLimits,
    ) -> Result<Upstream, UpstreamError> {
        let scheme = url
            .scheme()
            .filter(|s| **s == Scheme::HTTP || **s == Scheme::HTTPS)
            .ok_or(UpstreamError::Address)?;
        let authority = url.authority().filter(|a| !a.host().is_empty()).ok_or(UpstreamError::Address)?;
        // Rejected rather than ignored, because operators who write them expect an effect.
        if url.query().is_some() || authority.as_str().contains('@') {
            return Err(UpstreamError::Extras);
        }
        let connector = Connector::new(url.clone(), tls, &limits)?;
        let connections = ConnectionPool::new(connector, scheme.clone(), authority.clone(), limits);
        Ok(Upstream {
            name: name.into(),
            role,
            base: url.path().trim_end_matches('/').to_owned(),
            host: host(scheme, authority).ok_or(UpstreamError::Address)?,
            transport: Transport::Connections(connections),
            in_flight: FairConcurrencyLimit::new(limits.in_flight_max, limits.client_in_flight_max),
            outage: Outage::new(),
            meter: UpstreamMeter::new(name, role.name()),
            scheme: scheme.clone(),
            authority: authority.clone(),
            limits,
            signature: None,
        })
    }

    /// Sets the signature of translated calls.
    #[must_use]
    pub fn with_signature(self, signature: Option<Signature>) -> Upstream {
        Upstream { signature, ..self }
    }

    /// Returns the signature of translated calls.
    pub(crate) fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    /// Creates an upstream for a service in the same process. `name` labels logs and metrics.
    pub(crate) fn in_process(name: &str, service: InnerService, limits: UpstreamLimits) -> Upstream {
        let authority = Authority::from_static("localhost");
        Upstream {
            name: name.into(),
            role: CallOrigin::Client,
            base: String::new(),
            host: HeaderValue::from_static("localhost"),
            transport: Transport::Within(service),
            in_flight: FairConcurrencyLimit::new(limits.in_flight_max, limits.client_in_flight_max),
            outage: Outage::new(),
            meter: UpstreamMeter::new(name, CallOrigin::Client.name()),
            scheme: Scheme::HTTP,
            authority,
            limits,
            signature: None,
        }
    }

    /// Returns whether the upstream is a service in the same process.
    pub(crate) fn is_within(&self) -> bool {
        matches!(self.transport, Transport::Within(_))
    }

    /// Returns the label for logs and metrics.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the origin of the calls that this upstream receives.
    pub fn role(&self) -> CallOrigin {
        self.role
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns the port that calls connect to, or `None` for an in-process service.
    pub(crate) fn port(&self) -> Option<u16> {
        let own = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        (!self.is_within()).then(|| self.authority.port_u16().unwrap_or(own))
    }

    /// Returns the base URL, without a trailing slash.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, self.base)
    }

    /// Returns whether the upstream has been unreachable for longer than `upstream_gone_after`.
    pub(crate) fn is_gone(&self) -> bool {
        self.outage.is_longer_than(self.limits.gone_after)
    }

    /// Returns whether the upstream is reachable, as far as is known. After a long outage, one
    /// caller per interval opens a connection and waits for it. A connection alone does not end the
    /// outage, because it may only reach a proxy; a response does.
    pub(crate) async fn is_there(&self) -> bool {
        if !self.is_gone() {
            return true;
        }
        let Transport::Connections(connections) = &self.transport else { return true };
        // The probe opens a connection without a call, so it cannot have a side effect.
        self.outage.is_to_be_tried() && connections.open_idle().await
    }

    fn note_reach<T>(&self, answer: &Result<http::Response<T>, Unanswered>) {
        match answer {
            // Proxies send these for a service that is down behind them. A live service resets the
            // outage with its next other response.
            Ok(answer) if matches!(answer.status().as_u16(), 502..=504) => self.outage.miss(),
            Ok(_) => self.outage.reach(),
            Err(Unanswered::Unreachable(_) | Unanswered::Late) => self.outage.miss(),
            // The upstream accepted the connection, so it may accept the next call.
            Err(Unanswered::Unsent(_) | Unanswered::Broken(_)) => {}
        }
    }

    /// Acquires a permit for one call of this client.
    ///
    /// # Errors
    ///
    /// Returns a retry-safe error if a limit of calls in flight is reached.
    pub(crate) fn permit(&self, client: &str) -> Result<FairPermit, GatewayError> {
        self.in_flight.take(client).map_err(|limit| limit_error(limit).safe_to_retry())
    }

    /// Sends a call. `target` is the path and query below the upstream's base path. Fields that the
    /// gateway adds to `headers` remain there for a retry. The permit is released when the response
    /// body ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the request is invalid, the exchange fails, or the response head is not
    /// valid.
    pub(crate) async fn send(
        &self,
        permit: FairPermit,
        method: &Method,
        target: &str,
        headers: &mut HeaderMap,
        body: Body,
        way: Way,
    ) -> Result<Response, GatewayError> {
        let limits = self.call_limits(&way);
        let last_byte = way.is_forwarded.then(|| LastByte::new(limits.forwarded_idle_timeout));
        // A long upload counts as progress: without this, its call would time out before the
        // response head.
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
        // Started before a connection is chosen, so that the timeout includes opening one.
        let started = Instant::now();
        let patience = patience(started, &limits, last_byte.clone());
        let outcome = self.exchange(request, started, &patience, way.is_alone).await;
        self.meter.record(outcome.as_ref().ok().map(http::Response::status), started.elapsed());
        let response = outcome?;
        // The body is complete, so the permit can be released now.
        if response.body().is_whole() {
            return Ok(response.map(|body| body.with_limit(limits.response_bytes_max)));
        }
        Ok(limit_body(response, &limits, last_byte).map(|body| body.with_watcher(Box::new(permit))))
    }

    /// Returns the limits of a call. Shadow calls have no other limits than their upstream.
    fn call_limits(&self, way: &Way) -> CallLimits {
        match self.role {
            CallOrigin::Client => way.limits,
            CallOrigin::Shadow => self.limits.call_limits(),
        }
    }

    /// Sends a call that may switch protocols, on a dedicated HTTP/1.1 connection. If the upstream
    /// agrees, the response contains the connection as [`crate::tunnel::Switched`]; otherwise it is
    /// an ordinary response.
    ///
    /// # Errors
    ///
    /// As [`Upstream::send`]; also if the upstream switches to a protocol that the request does not
    /// name.
    pub(crate) async fn switch(
        &self,
        permit: FairPermit,
        method: &Method,
        target: &str,
        headers: &mut HeaderMap,
        way: Way,
    ) -> Result<Response, GatewayError> {
        let limits = self.call_limits(&way);
        let request = self.request(method, target, headers, Body::empty())?;
        let Transport::Connections(connections) = &self.transport else {
            return Err(GatewayError::new(
                ErrorKind::Internal,
                "a service within has no connection to switch",
            ));
        };
        let started = Instant::now();
        let last_byte = LastByte::new(limits.forwarded_idle_timeout);
        let patience = patience(started, &limits, Some(Arc::clone(&last_byte)));
        let outcome = switch::exchange(connections.connector(), request, &patience).await;
        self.note_reach(&outcome);
        let outcome = outcome.map_err(judge_unanswered);
        self.meter.record(outcome.as_ref().ok().map(http::Response::status), started.elapsed());
        let response = outcome?;
        match response.status() {
            // The client would otherwise interpret the bytes that follow as the protocol that it
            // offered.
            StatusCode::SWITCHING_PROTOCOLS if !switches_as_asked(headers, response.headers()) => {
                let detail = "the upstream goes over to a protocol that it was not asked for";
                return Err(GatewayError::new(ErrorKind::UpstreamBroken, detail));
            }
            StatusCode::SWITCHING_PROTOCOLS => {}
            _ => judge_head(&response, self.limits.fields_max)?,
        }
        Ok(limit_body(response, &limits, Some(last_byte)).map(|body| body.with_watcher(Box::new(permit))))
    }

    /// Builds the request to send.
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
            .map_err(|e| GatewayError::new(ErrorKind::Internal, "a call's target is invalid").because(e))?;
        let is_bodiless = body.is_empty();
        let mut request = http::Request::new(Outgoing::from(body));
        request.method_mut().clone_from(method);
        *request.uri_mut() = Uri::from(target);
        // Insert into the call's own header map, which has spare capacity; the copy below is sized
        // exactly and would have to grow. A retry overwrites these fields.
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
        patience: &HeadDeadline,
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
        judge_head(&response, self.limits.fields_max)?;
        Ok(response)
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({} at {})", self.name, self.url())
    }
}

/// Returns how long a call may wait for its response head.
fn patience(started: Instant, limits: &CallLimits, last_byte: Option<Arc<LastByte>>) -> HeadDeadline {
    let timeout = last_byte.as_ref().map_or(limits.response_timeout, |last_byte| last_byte.idle());
    HeadDeadline::new(tokio::time::Instant::from_std(started + timeout), last_byte)
}

/// Applies the size and time limits of response bodies.
fn limit_body(response: Response, limits: &CallLimits, last_byte: Option<Arc<LastByte>>) -> Response {
    // No minimum rate: a client that reads slowly also slows the upstream, and must not be cut off
    // for it.
    let timeout = BodyTimeout { idle: limits.response_timeout, bytes_per_second_min: 0 };
    response.map(|body| {
        let body = body.with_limit(limits.response_bytes_max).with_timeout(timeout);
        match last_byte {
            Some(last_byte) => {
                last_byte.answer();
                body.timed_by(&last_byte)
            }
            None => body,
        }
    })
}

/// Returns whether servers expect an explicit `Content-Length: 0` with this method (RFC 9110,
/// section 8.6). Strict servers answer 411 without it.
fn wants_length(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// Returns the value of `Host`: the port is omitted if it is the scheme's default (RFC 9110,
/// section 7.2).
fn host(scheme: &Scheme, authority: &Authority) -> Option<HeaderValue> {
    let own_port = if *scheme == Scheme::HTTPS { 443 } else { 80 };
    match authority.port_u16() {
        Some(port) if port != own_port => HeaderValue::try_from(format!("{}:{port}", authority.host())).ok(),
        _ => HeaderValue::from_str(authority.host()).ok(),
    }
}
