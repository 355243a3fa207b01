//! The request context: the head of a request and the values that the outermost layer derives from
//! it. It is immutable and reference-counted, because the outer layers need it after the request
//! was consumed. Facts that layers find out later are in [`super::request`], by type; the
//! [`super::record`] repeats those that are reported.

use super::headers::is_form;
use super::language::Language;
use super::program::{Front, Program};
use super::record::RequestRecord;
use crate::clock::Clock;
use crate::server::Peer;
use crate::telemetry::otlp::RequestSpan;
use crate::telemetry::trace::{TraceParent, hex_digits};
use crate::token::carried;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The header field with the request id.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request in logs, traces and `x-request-id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub u64);

impl RequestId {
    /// Returns the id as 16 hexadecimal digits.
    pub fn digits(self) -> [u8; 16] {
        hex_digits(self.0)
    }

    /// Returns the id as a value of `x-request-id`.
    pub fn header_value(self) -> HeaderValue {
        HeaderValue::from_bytes(&self.digits()).expect("hexadecimal digits are a header value")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The sender of a request, as far as its connection identifies it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender {
    /// The peer of the connection, if known.
    pub peer: Option<Peer>,
    /// The client address: that of the peer, or the one that a trusted proxy declares.
    pub address: Option<IpAddr>,
}

/// The context of one request.
pub struct RequestContext {
    /// Request id for logs, traces and responses.
    pub id: RequestId,
    /// The W3C trace context, continued from the client or started here.
    pub trace: TraceParent,
    /// The span to record. `None` if traces are off or this one is not sampled.
    pub(crate) span: Option<Arc<RequestSpan>>,
    /// Monotonic time when the request head was read. Durations count from here.
    pub arrived: Instant,
    /// Wall time in milliseconds since 1970, once a plan has read it.
    received: OnceLock<i64>,
    /// The method as received.
    pub method: Method,
    /// Path and query as received, undecoded.
    pub uri: Uri,
    /// The HTTP version of the client's connection.
    pub version: Version,
    /// Fields as received, including credentials: never log them.
    pub headers: HeaderMap,
    /// Peer and address of the client.
    pub sender: Sender,
    /// The program that serves this request, even if the pack is reloaded meanwhile.
    pub program: Arc<Program>,
    /// Language of responses made by the gateway.
    pub language: Language,
    pub(crate) record: RequestRecord,
}

/// Omits the head: its fields contain the token, and its target may.
impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.facts();
        let mut shown = f.debug_struct("RequestContext");
        shown.field("id", &self.id).field("operation", &facts.operation()).field("client", &facts.client());
        shown.finish_non_exhaustive()
    }
}

impl RequestContext {
    /// Creates a context for a request head. Extensions other than the peer are dropped.
    pub fn new(
        id: RequestId,
        trace: TraceParent,
        mut head: http::request::Parts,
        program: Arc<Program>,
        language: Language,
    ) -> RequestContext {
        let peer: Option<Peer> = head.extensions.remove();
        RequestContext {
            id,
            trace,
            span: None,
            arrived: Instant::now(),
            received: OnceLock::new(),
            method: head.method,
            uri: head.uri,
            version: head.version,
            headers: head.headers,
            sender: Sender { peer, address: peer.map(|peer| peer.address.ip().to_canonical()) },
            program,
            language,
            record: RequestRecord::default(),
        }
    }

    /// Creates the context of a derived request with another head. It keeps id, trace, sender,
    /// program and language.
    pub fn with_head(&self, method: Method, uri: Uri, headers: HeaderMap) -> RequestContext {
        RequestContext {
            id: self.id,
            trace: self.trace,
            span: self.span.clone(),
            arrived: Instant::now(),
            received: OnceLock::new(),
            method,
            uri,
            version: self.version,
            headers,
            sender: self.sender,
            program: Arc::clone(&self.program),
            language: self.language,
            record: RequestRecord::default(),
        }
    }

    /// Returns path and query without the prefix of `front`, undecoded.
    pub fn below(&self, front: &Front) -> String {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        target.get(front.prefix.len()..).unwrap_or("/").to_owned()
    }

    /// Returns the body without form fields that carry the token of clients of `front`, or `None`
    /// if it has no such field.
    pub(crate) fn without_form_token(&self, front: &Front, body: &[u8]) -> Option<Bytes> {
        let credential = self.program.credential(front.serves);
        credential.read_form_fields().next()?;
        let form = str::from_utf8(body).ok().filter(|_| is_form(&self.headers))?;
        carried::without(form, credential.read_form_fields()).map(Bytes::from)
    }

    /// Awaits a body or a pause of the plan, and excludes the time from
    /// [`RequestContext::own_time`].
    pub(crate) async fn pause<T>(&self, awaited: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let outcome = awaited.await;
        self.record.add_pause(started.elapsed());
        outcome
    }

    /// Returns `since_arrival` without the time spent waiting. `None` if no call was made.
    pub(crate) fn own_time(&self, since_arrival: Duration) -> Option<Duration> {
        (self.record.calls() > 0).then(|| since_arrival.saturating_sub(self.record.awaited()))
    }

    /// Returns the wall time when a plan for the request first read it, in milliseconds since 1970.
    /// All later runs for the request, and the shadow's, get the same time.
    pub(crate) fn received_ms(&self) -> i64 {
        *self.received.get_or_init(|| Clock::machine().unix_ms())
    }

    /// Returns the client's `X-Request-Id`, or an empty string if absent or not text.
    pub fn client_request_id(&self) -> &str {
        self.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default()
    }
}
