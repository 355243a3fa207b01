//! A service that the gateway calls: its address, its connections, its limits. The innermost layer of the stack: it sends
//! one call once and judges whether what comes back is an answer. Upstreams are not trusted to keep to HTTP.
//!
//! Interim answers (1xx) are read and dropped: hyper's server cannot send them on.

use super::Response;
use super::call::{Call, Credential, Payload};
use super::limit::{Slots, refused};
use super::limits::Limits;
use crate::body::{Body, Tempo};
use crate::error::{GatewayError, Kind, Side};
use crate::telemetry::metrics as names;
use futures_util::future::BoxFuture;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, StatusCode, Uri, Version, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use metrics::{Counter, Histogram, counter, histogram};
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tower::Service;

/// Bytes that hyper may hold per HTTP/1.1 connection and direction.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Header fields of an answer.
const ANSWER_HEADERS_MAX: usize = 100;
/// Bytes of header fields of an answer over HTTP/2.
const ANSWER_HEADER_BYTES_MAX: u32 = 32 * 1024;

/// Why an upstream cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    #[error("the address must begin with http:// or https:// and name a host")]
    Address,
    #[error("the address must not have a query, a fragment or user information")]
    Extras,
    #[error("the system's certificate authorities cannot be read: {0}")]
    Roots(io::Error),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// A service that the gateway calls.
pub struct Upstream {
    name: Arc<str>,
    scheme: Scheme,
    authority: Authority,
    /// Without a `/` at the end.
    base: String,
    client: Client<HttpsConnector<HttpConnector>, Body>,
    slots: Slots,
    limits: Arc<Limits>,
    meter: Meter,
}

/// The recorder's handles for one upstream.
struct Meter {
    /// By first digit of the status; 0 = no answer.
    answers: [Counter; 6],
    duration: Histogram,
}

impl Upstream {
    /// An upstream at `url`, below whose path all calls go. `name` labels it in logs and metrics.
    pub fn new(name: &str, url: &Uri, limits: Arc<Limits>) -> Result<Upstream, UpstreamError> {
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
            base: url.path().trim_end_matches('/').to_owned(),
            client: client(connector(scheme, &limits)?, &limits),
            slots: Slots::new(limits.upstream_in_flight_max),
            meter: Meter::new(name),
            scheme: scheme.clone(),
            authority: authority.clone(),
            limits,
        })
    }

    /// Label in logs and metrics.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    async fn send(self: Arc<Self>, call: Call) -> Result<Response, GatewayError> {
        let Some(slot) = self.slots.take() else { return Err(refused("upstream_in_flight")) };
        let request = self.request(call)?;
        let started = Instant::now();
        let outcome = self.exchange(request).await;
        self.meter.record(outcome.as_ref().ok().map(http::Response::status), started.elapsed());
        let response = outcome?;
        let tempo = Tempo { idle: self.limits.upstream_timeout, bytes_per_second_min: 0 };
        let bytes_max = self.limits.response_bytes_max;
        Ok(response.map(|body| {
            Body::incoming(body, Side::Upstream).limited(bytes_max).paced(tempo).watched(Box::new(slot))
        }))
    }

    fn request(&self, call: Call) -> Result<http::Request<Body>, GatewayError> {
        let target = PathAndQuery::try_from(format!("{}{}", self.base, call.target));
        let target =
            target.map_err(|e| GatewayError::new(Kind::Internal, "a call's target is invalid").because(e))?;
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(target);
        let body = match call.payload {
            Payload::Whole(bytes) => Body::full(bytes),
            Payload::Stream(body) => body,
        };
        let mut request = http::Request::new(body);
        *request.method_mut() = call.method;
        *request.uri_mut() = uri.build().expect("all parts of the address were checked");
        *request.headers_mut() = call.headers;
        if let Credential::Ready { header, value } = call.credential {
            request.headers_mut().insert(header, value);
        }
        Ok(request)
    }

    async fn exchange(
        &self,
        request: http::Request<Body>,
    ) -> Result<http::Response<hyper::body::Incoming>, GatewayError> {
        let answering = self.client.request(request);
        let response = match tokio::time::timeout(self.limits.upstream_timeout, answering).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(judge_error(error)),
            Err(_) => return Err(GatewayError::new(Kind::UpstreamTimeout, "no answer's head came in time")),
        };
        judge_head(response.status(), response.version(), response.headers())?;
        Ok(response)
    }
}

impl Meter {
    fn new(upstream: &str) -> Meter {
        let answers = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"].map(
            |class| counter!(names::UPSTREAM_REQUESTS, "upstream" => upstream.to_owned(), "status" => class),
        );
        Meter { answers, duration: histogram!(names::UPSTREAM_DURATION, "upstream" => upstream.to_owned()) }
    }

    fn record(&self, status: Option<StatusCode>, elapsed: Duration) {
        let class = status.map_or(0, |status| usize::from(status.as_u16() / 100).min(5));
        self.answers[class].increment(1);
        self.duration.record(elapsed.as_secs_f64());
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({} at {}://{}{})", self.name, self.scheme, self.authority, self.base)
    }
}

fn connector(scheme: &Scheme, limits: &Limits) -> Result<HttpsConnector<HttpConnector>, UpstreamError> {
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(limits.connect_timeout));
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = HttpsConnectorBuilder::new();
    let builder = if *scheme == Scheme::HTTPS {
        builder.with_provider_and_native_roots(provider).map_err(UpstreamError::Roots)?
    } else {
        // A plain address needs no authorities, and must not fail where the system has none.
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        builder.with_tls_config(
            config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth(),
        )
    };
    let builder = if *scheme == Scheme::HTTPS { builder.https_only() } else { builder.https_or_http() };
    Ok(builder.enable_http1().enable_http2().wrap_connector(tcp))
}

fn client(
    connector: HttpsConnector<HttpConnector>,
    limits: &Limits,
) -> Client<HttpsConnector<HttpConnector>, Body> {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(limits.upstream_idle_max)
        .pool_idle_timeout(limits.upstream_idle_timeout)
        .http1_max_buf_size(BUFFER_BYTES_MAX)
        .http1_max_headers(ANSWER_HEADERS_MAX)
        .http2_max_header_list_size(ANSWER_HEADER_BYTES_MAX)
        .http2_max_send_buf_size(BUFFER_BYTES_MAX)
        // Only requests of which nothing was written: those may go to another connection whatever they do.
        .retry_canceled_requests(true)
        .build(connector)
}

/// What a failed exchange means, and whether the upstream can have seen the call.
fn judge_error(error: legacy::Error) -> GatewayError {
    if error.is_connect() {
        let is_late = has_source(&error, |e| {
            e.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
        });
        let kind = if is_late { Kind::UpstreamTimeout } else { Kind::UpstreamUnreachable };
        return GatewayError::new(kind, "no connection").because(error).safe_to_retry();
    }
    // The request body's own error is the client's: its upload was cut, too large or too slow.
    if let Some(own) = find_source(&error) {
        return own;
    }
    GatewayError::new(Kind::UpstreamBroken, "the exchange broke off").because(error)
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

/// The innermost service: sends each call to its upstream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Send;

impl Service<Call> for Send {
    type Response = Response;
    type Error = GatewayError;
    type Future = BoxFuture<'static, Result<Response, GatewayError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        call.facts.called();
        Box::pin(Arc::clone(&call.upstream).send(call))
    }
}
