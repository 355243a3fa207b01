//! A service that the gateway calls: its address, its connections, its limits. It sends one call once and judges
//! whether what comes back is an answer. Upstreams are not trusted to keep to HTTP.
//!
//! Without TLS calls go out on our own [`ConnectionPool`]; with it, by hyper's client, which agrees on HTTP/2 where it can.
//! Each core has connections, or a client, of its own.
//!
//! Interim answers (1xx) are read and dropped, unless a call is forwarded: then they go to the client before the answer.

mod connection;
mod pool;
mod secure;
mod switch;

use self::connection::Outgoing;
use self::pool::{ConnectionPool, Unanswered, keep_alive};
use crate::body::{self, Body, BodyTimeout};
use crate::error::{GatewayError, Kind, Side};
use crate::interim;
use crate::proxy::Response;
use crate::proxy::headers::forwarded_answer;
use crate::proxy::limits::Limits;
use crate::proxy::origin::CallOrigin;
use crate::proxy::slots::{FairConcurrencyLimit, FairPermit, refused};
use crate::shard;
use crate::telemetry::metrics::UpstreamMeter;
use crate::tls::{ServiceTls, TlsError, TlsSetup};
use futures_util::FutureExt as _;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header};
use hyper::ext::on_informational;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

/// Bytes that hyper may hold per HTTP/1.1 connection and direction.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

const BROKE_OFF: &str = "the exchange broke off";

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
    /// Interim answers are told to the client.
    pub tells_interim: bool,
    /// On a connection of its own, behind TLS, where connections may be shared.
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
    slots: FairConcurrencyLimit,
    limits: Arc<Limits>,
    meter: UpstreamMeter,
}

/// What calls go out on.
enum Transport {
    Plain(Arc<ConnectionPool>),
    Tls {
        /// A client per core.
        clients: Box<[TlsClient]>,
        /// Makes a connection for each call.
        alone: TlsClient,
        setup: Box<TlsSetup>,
    },
    /// No connection: a service of the same program.
    Within(InnerService),
}

/// A service of the same program that is called in place of one behind a connection.
pub(crate) type InnerService = BoxCloneSyncService<http::Request<Body>, Response, BoxError>;

type TlsClient = Client<HttpsConnector<HttpConnector>, Outgoing>;

impl Upstream {
    /// An upstream at `url`, below whose path all calls go, whose certificate is held against the system's authorities. `name`
    /// and `role` label it in logs and metrics.
    pub fn new(
        name: &str,
        role: CallOrigin,
        url: &Uri,
        limits: Arc<Limits>,
    ) -> Result<Upstream, UpstreamError> {
        Upstream::secured(name, role, url, &ServiceTls::default(), limits)
    }

    /// The same, called with TLS as `tls` says where its address begins with https://.
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
        Ok(Upstream {
            name: name.into(),
            role,
            base: url.path().trim_end_matches('/').to_owned(),
            host: host(scheme, authority).ok_or(UpstreamError::Address)?,
            transport: transport(scheme, url, tls, &limits)?,
            slots: FairConcurrencyLimit::new(
                limits.upstream_in_flight_max,
                limits.client_upstream_in_flight_max,
            ),
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
            slots: FairConcurrencyLimit::new(
                limits.upstream_in_flight_max,
                limits.client_upstream_in_flight_max,
            ),
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

    /// A place among the calls in flight, for a call of this client.
    pub(crate) fn slot(&self, client: &str) -> Result<FairPermit, GatewayError> {
        self.slots.take(client).map_err(|limit| refused(limit).safe_to_retry())
    }

    /// Sends a call. `target` is path and query below the upstream's base; what the gateway adds to `headers` stays in them,
    /// for another try. The slot is taken until the answer's body has ended.
    pub(crate) async fn send(
        &self,
        slot: FairPermit,
        method: &Method,
        target: &str,
        headers: &mut HeaderMap,
        body: Body,
        way: Way,
    ) -> Result<Response, GatewayError> {
        let mut request = Box::new(self.request(method, target, headers, body)?);
        if way.tells_interim {
            on_informational(&mut *request, |interim| {
                interim::say(interim.status(), forwarded_answer(interim.headers(), false));
            });
        }
        let started = Instant::now();
        let outcome = self.exchange(request, started, way.is_alone).await;
        self.meter.record(outcome.as_ref().ok().map(http::Response::status), started.elapsed());
        let response = outcome?;
        // Nothing more is wanted of the upstream for it.
        if response.body().is_whole() {
            return Ok(response.map(|body| body.limited(self.limits.response_bytes_max)));
        }
        let body_timeout = BodyTimeout { idle: self.limits.upstream_timeout, bytes_per_second_min: 0 };
        let bytes_max = self.limits.response_bytes_max;
        Ok(response.map(|body| body.limited(bytes_max).paced(body_timeout).watched(Box::new(slot))))
    }

    /// Sends a call after which its connection may speak another protocol. It gets a connection of its own, in HTTP/1.1,
    /// which the answer brings along ([`crate::tunnel::Switched`]) if the upstream agrees; else the answer is as any other.
    pub(crate) async fn switch(
        &self,
        slot: FairPermit,
        method: &Method,
        target: &str,
        headers: &mut HeaderMap,
    ) -> Result<Response, GatewayError> {
        let mut request = self.request(method, target, headers, Body::empty())?;
        if let Transport::Tls { .. } = &self.transport {
            let target = request.uri().path_and_query().cloned().map(Uri::from);
            *request.uri_mut() = target.unwrap_or_default();
            request.headers_mut().insert(header::HOST, self.host.clone());
        }
        let started = Instant::now();
        let patience = self.limits.upstream_timeout;
        let switching = match &self.transport {
            Transport::Plain(connections) => {
                switch::plain(connections.connector(), request, patience).left_future()
            }
            Transport::Tls { setup, .. } => {
                let address = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
                let address =
                    address.path_and_query("/").build().expect("all parts of the address were checked");
                switch::secured(setup, &self.limits, address, request, patience).right_future()
            }
            Transport::Within(_) => {
                return Err(GatewayError::new(
                    Kind::Internal,
                    "a service within has no connection to switch",
                ));
            }
        };
        let outcome = switching.await.map_err(judge_unanswered);
        self.meter.record(outcome.as_ref().ok().map(http::Response::status), started.elapsed());
        let response = outcome?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            judge_head(response.status(), response.version(), response.headers())?;
        }
        let body_timeout = BodyTimeout { idle: patience, bytes_per_second_min: 0 };
        let bytes_max = self.limits.response_bytes_max;
        Ok(response.map(|body| body.limited(bytes_max).paced(body_timeout).watched(Box::new(slot))))
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
        *request.uri_mut() = match &self.transport {
            Transport::Plain(_) | Transport::Within(_) => Uri::from(target),
            Transport::Tls { .. } => {
                let whole = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
                whole.path_and_query(target).build().expect("all parts of the address were checked")
            }
        };
        // Into the call's own fields, which have room, and not into the copy, which would have to grow. What the call is
        // repeated with takes their place.
        if let Transport::Plain(_) | Transport::Within(_) = &self.transport {
            // Behind TLS hyper's client adds it, and to HTTP/1.1 alone: HTTP/2 says it in `:authority`, and servers refuse
            // a request that says it twice (RFC 9113, section 8.3.1).
            headers.insert(header::HOST, self.host.clone());
        }
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
        is_alone: bool,
    ) -> Result<Response, GatewayError> {
        let patience = self.limits.upstream_timeout;
        let response = match &self.transport {
            Transport::Plain(connections) => {
                connections.exchange(request, started, patience).await.map_err(judge_unanswered)?
            }
            Transport::Tls { clients, alone, .. } => {
                let client = if is_alone { alone } else { &clients[shard::here() % clients.len()] };
                // Boxed, so that calls that go another way need not carry its size.
                Box::pin(self.exchange_secured(client, *request)).await?
            }
            Transport::Within(service) => {
                let answering = service.clone().oneshot(request.map(Outgoing::into_body));
                let answer = tokio::time::timeout(patience, answering).await.map_err(|_| late())?;
                return answer.map_err(|error| body::broke_off(BROKE_OFF, error));
            }
        };
        judge_head(response.status(), response.version(), response.headers())?;
        Ok(response)
    }

    async fn exchange_secured(
        &self,
        client: &TlsClient,
        mut request: http::Request<Outgoing>,
    ) -> Result<Response, GatewayError> {
        let connection = capture_connection(&mut request);
        let answering = tokio::time::timeout(self.limits.upstream_timeout, client.request(request));
        let answer = answering.await.map_err(|_| late())?.map_err(judge_error)?;
        if keep_alive(answer.headers()).is_some_and(|kept| kept < self.limits.upstream_idle_timeout)
            && let Some(connected) = connection.connection_metadata().as_ref()
        {
            // The pool would keep it for longer than the upstream does.
            connected.poison();
        }
        Ok(answer.map(|body| Body::incoming(body, Side::Upstream)))
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

fn transport(
    scheme: &Scheme,
    url: &Uri,
    tls: &ServiceTls,
    limits: &Limits,
) -> Result<Transport, UpstreamError> {
    let tcp = secure::tcp(limits);
    if *scheme == Scheme::HTTP {
        return Ok(Transport::Plain(ConnectionPool::new(tcp, url.clone(), limits)));
    }
    let setup = Box::new(tls.read()?);
    let connector = secure::connecting(&setup).enable_http1().enable_http2().wrap_connector(tcp);
    let idle_max = limits.upstream_idle_max.div_ceil(shard::count());
    Ok(Transport::Tls {
        clients: (0..shard::count()).map(|_| secured(connector.clone(), idle_max, limits)).collect(),
        // Nothing is kept, so nothing is shared, which connections of HTTP/2 are.
        alone: secured(connector, 0, limits),
        setup,
    })
}

fn secured(connector: HttpsConnector<HttpConnector>, idle_max: usize, limits: &Limits) -> TlsClient {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(idle_max)
        .pool_idle_timeout(limits.upstream_idle_timeout)
        // To HTTP/1.1 only; HTTP/2 has `:authority`.
        .set_host(true)
        .http1_max_buf_size(limits.upstream_head_bytes_max.max(BUFFER_BYTES_MAX))
        .http1_max_headers(limits.upstream_fields_max)
        .http2_max_header_list_size(u32::try_from(limits.upstream_head_bytes_max).unwrap_or(u32::MAX))
        .http2_max_send_buf_size(BUFFER_BYTES_MAX)
        // Only requests of which nothing was written: those may go to another connection whatever they do.
        .retry_canceled_requests(true)
        .build(connector)
}

fn late() -> GatewayError {
    GatewayError::new(Kind::UpstreamTimeout, "no answer's head came in time")
}

/// What it means that a connection brought no answer, and whether the upstream can have seen the call.
fn judge_unanswered(unanswered: Unanswered) -> GatewayError {
    match unanswered {
        Unanswered::Unreachable(error) => unreachable(error),
        // The request body's own error is the client's: its upload was cut, too large or too slow.
        Unanswered::Unsent(error) => untaken(error),
        Unanswered::Broken(error) => find_source(&error).unwrap_or_else(|| body::broke_off(BROKE_OFF, error)),
        Unanswered::Late => late(),
    }
}

fn unreachable(error: Box<dyn StdError + Send + Sync>) -> GatewayError {
    let is_late = has_source(&*error, |e| {
        e.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
    });
    let kind = if is_late { Kind::UpstreamTimeout } else { Kind::UpstreamUnreachable };
    GatewayError::new(kind, "no connection").because(error).safe_to_retry()
}

/// What a failed exchange of hyper's client means, and whether the upstream can have seen the call.
fn judge_error(error: legacy::Error) -> GatewayError {
    if error.is_connect() {
        return unreachable(error.into());
    }
    // The request body's own error is the client's: its upload was cut, too large or too slow.
    if let Some(own) = find_source(&error) {
        return own;
    }
    if has_source(&error, |error| is_unprocessed(error) || is_unsent(error)) {
        return untaken(error);
    }
    body::broke_off(BROKE_OFF, error)
}

fn untaken(error: impl Into<Box<dyn StdError + std::marker::Send + Sync>>) -> GatewayError {
    let closed = GatewayError::new(Kind::UpstreamClosed, "the upstream did not take the call");
    closed.because(error).safe_to_retry()
}

/// Whether nothing of the call was written: the connection had ended before its turn came. hyper's client sends such a call
/// again by itself, but not when it was the call that the connection was made for, before which others may have taken their
/// turns.
fn is_unsent(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
}

/// Whether an error says that the upstream has done nothing of the call, whatever its method (RFC 9113, section 8.7): its
/// stream lies beyond the last one that a GOAWAY names, or it was refused. To streams up to the last one h2 reports the end
/// of the connection, never the GOAWAY.
fn is_unprocessed(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref::<h2::Error>().is_some_and(|error| {
        error.is_remote()
            && (error.is_go_away()
                || (error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM)))
    })
}

fn has_source(error: &(dyn StdError + 'static), test: impl Fn(&(dyn StdError + 'static)) -> bool) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if test(error) {
            return true;
        }
        next = error.source();
    }
    false
}

fn find_source(error: &(dyn StdError + 'static)) -> Option<GatewayError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(own) = error.downcast_ref::<GatewayError>() {
            return Some(GatewayError::new(own.kind().clone(), own.detail()));
        }
        next = error.source();
    }
    None
}

/// Heads that no intermediary may pass on (RFC 9112, section 6; RFC 9110, section 15).
fn judge_head(status: StatusCode, version: Version, headers: &HeaderMap) -> Result<(), GatewayError> {
    let broken = |detail: &str| Err(GatewayError::new(Kind::UpstreamBroken, detail));
    if !(200..=599).contains(&status.as_u16()) {
        return broken("a status that is no final answer");
    }
    if version == Version::HTTP_2 {
        return Ok(());
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => broken("Transfer-Encoding more than once"),
        (Some(_), None) if headers.contains_key(header::CONTENT_LENGTH) => broken("two lengths for one body"),
        (Some(coding), None) if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            broken("an unknown transfer coding")
        }
        (Some(_), None) => Ok(()),
    }
}
