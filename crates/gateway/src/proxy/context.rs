//! The request context, through which layers share facts about a request. It is reference-counted,
//! because the outer layers need it after the request was consumed. Fields are written once,
//! except the counters; the request head is immutable.

use super::headers::is_form;
use super::language::Language;
use super::program::{Front, Program};
use crate::capture::Recording;
use crate::error::GatewayError;
use crate::memory::MemoryShare;
use crate::outcome::Outcome;
use crate::retire::Notice;
use crate::server::Peer;
use crate::telemetry::otlp::RequestSpan;
use crate::telemetry::trace::{TraceParent, hex_digits};
use crate::token::{Client, carried};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use switchback_engine::redact::Redactor;
use switchback_plan::{Disclosures, Effect, HostId, RouteId};

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

/// The operation that a request matches.
#[derive(Clone, Debug)]
pub(crate) struct Matched {
    pub front: Arc<Front>,
    pub route: RouteId,
    /// Decoded path values, in the order of the operation's variables.
    pub values: Vec<String>,
    /// Decoded account of the scope prefix, if the path has one.
    pub account: Option<String>,
}

impl Matched {
    /// Returns path and query without the prefix of the front, undecoded.
    pub(crate) fn below_front(&self, context: &RequestContext) -> String {
        context.below(&self.front)
    }
}

/// The reason why a request is forwarded to the front's own service without a match of the contract
/// or an enrolled client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unknown {
    /// The path matches no operation.
    Path,
    /// The path matches an operation, the method does not.
    Method,
    /// The path is ambiguous or malformed.
    Spelling,
    /// The operation does not accept the media type of the body.
    MediaType,
    /// No client is enrolled with this token.
    Client,
}

impl Unknown {
    /// Returns the label in metrics and in the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Unknown::Path => "path",
            Unknown::Method => "method",
            Unknown::Spelling => "spelling",
            Unknown::MediaType => "media_type",
            Unknown::Client => "client",
        }
    }
}

/// The error that `rescue` answered.
#[derive(Debug)]
pub(crate) struct RescuedError {
    /// [`crate::error::Kind::name`].
    pub kind: &'static str,
    pub outcome: Outcome,
    /// For the log only.
    pub detail: String,
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
    /// The method as received.
    pub method: Method,
    /// Path and query as received, undecoded.
    pub uri: Uri,
    /// The query without tokens, computed on first use. The inner `None`: the query has no token.
    query_left: OnceLock<Option<String>>,
    /// The form in the body, with its memory reservation.
    form: OnceLock<(Bytes, MemoryShare)>,
    /// The HTTP version of the client's connection.
    pub version: Version,
    /// Fields as received, including credentials: never log them.
    pub headers: HeaderMap,
    /// The peer of the connection, if known.
    pub peer: Option<Peer>,
    /// The client address: that of the peer, or the one that a trusted proxy declares.
    pub address: Option<IpAddr>,
    /// The program that serves this request, even if the pack is reloaded meanwhile.
    pub program: Arc<Program>,
    /// Language of responses made by the gateway.
    pub language: Language,
    front: OnceLock<Arc<Front>>,
    matched: OnceLock<Matched>,
    unknown: OnceLock<Unknown>,
    forwarded: OnceLock<()>,
    client: OnceLock<Arc<Client>>,
    fault: OnceLock<RescuedError>,
    cause: OnceLock<String>,
    unanswered: OnceLock<()>,
    left: OnceLock<()>,
    recording: OnceLock<Arc<Recording>>,
    phase: OnceLock<&'static str>,
    notice: OnceLock<Notice>,
    calls: AtomicU32,
    /// Total time in microseconds that calls waited for response heads.
    waited: AtomicU64,
    /// Total time in microseconds of waiting for bodies and of pauses in the plan, before the
    /// response head.
    paused: AtomicU64,
    /// Time from arrival to the end of the response.
    took: OnceLock<Duration>,
}

/// Omits the head: its fields contain the token, and its target may.
impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RequestContext");
        shown.field("id", &self.id).field("operation", &self.operation()).field("client", &self.client());
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
            method: head.method,
            uri: head.uri,
            query_left: OnceLock::new(),
            form: OnceLock::new(),
            version: head.version,
            headers: head.headers,
            peer,
            address: peer.map(|peer| peer.address.ip().to_canonical()),
            program,
            language,
            front: OnceLock::new(),
            matched: OnceLock::new(),
            unknown: OnceLock::new(),
            forwarded: OnceLock::new(),
            client: OnceLock::new(),
            fault: OnceLock::new(),
            cause: OnceLock::new(),
            unanswered: OnceLock::new(),
            left: OnceLock::new(),
            recording: OnceLock::new(),
            phase: OnceLock::new(),
            notice: OnceLock::new(),
            calls: AtomicU32::new(0),
            waited: AtomicU64::new(0),
            paused: AtomicU64::new(0),
            took: OnceLock::new(),
        }
    }

    /// Creates the context of a derived request with another head. It keeps id, trace, peer,
    /// address, program and language.
    pub fn with_head(&self, method: Method, uri: Uri, headers: HeaderMap) -> RequestContext {
        let (mut head, ()) = http::Request::new(()).into_parts();
        (head.method, head.uri, head.version, head.headers) = (method, uri, self.version, headers);
        if let Some(peer) = self.peer {
            head.extensions.insert(peer);
        }
        let (span, address) = (self.span.clone(), self.address);
        RequestContext {
            span,
            address,
            ..RequestContext::new(self.id, self.trace, head, Arc::clone(&self.program), self.language)
        }
    }

    /// Set by `route`.
    pub(crate) fn set_front(&self, front: Arc<Front>) {
        let _ = self.front.set(front);
    }

    pub(crate) fn front(&self) -> Option<&Arc<Front>> {
        self.front.get()
    }

    /// Set by `route` if an operation matches.
    pub(crate) fn set_matched(&self, matched: Matched) {
        let _ = self.matched.set(matched);
    }

    /// Returns the matched operation.
    ///
    /// # Panics
    ///
    /// Panics if no operation matched. Such requests are forwarded before this is called.
    pub(crate) fn route_match(&self) -> &Matched {
        self.matched.get().expect("what matched nothing is forwarded before anyone asks")
    }

    /// Returns the matched operation, if any.
    pub(crate) fn operation_matched(&self) -> Option<&Matched> {
        self.matched.get()
    }

    /// Set by the first layer that cannot match the request, if the front's own service answers it.
    /// Later reasons are ignored.
    pub(crate) fn set_unknown(&self, unknown: Unknown) {
        let _ = self.unknown.set(unknown);
    }

    /// Returns why the request is unknown, or `None` if it is known.
    pub fn unknown(&self) -> Option<Unknown> {
        self.unknown.get().copied()
    }

    /// Returns path and query without the prefix of `front`, undecoded.
    pub fn below(&self, front: &Front) -> String {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        target.get(front.prefix.len()..).unwrap_or("/").to_owned()
    }

    /// Returns the query without parameters that carry the token.
    pub(crate) fn query(&self) -> Option<&str> {
        let query = self.uri.query()?;
        match self.front().map(|front| self.program.credential(front.serves).read_queries()) {
            Some(names) if names.clone().next().is_some() => {
                let left = self.query_left.get_or_init(|| carried::without(query, names));
                Some(left.as_deref().unwrap_or(query)).filter(|query| !query.is_empty())
            }
            _ => Some(query),
        }
    }

    /// Set by `form_token` if the front accepts tokens in forms.
    pub(crate) fn set_form(&self, form: Bytes, share: MemoryShare) {
        let _ = self.form.set((form, share));
    }

    /// Returns the buffered form, or an empty string if there is none.
    pub(crate) fn form(&self) -> &str {
        self.form.get().and_then(|(form, _)| str::from_utf8(form).ok()).unwrap_or_default()
    }

    /// Returns the body without form fields that carry the token, or `None` if it has no such
    /// field.
    pub(crate) fn without_form_token(&self, body: &[u8]) -> Option<Bytes> {
        let credential = self.program.credential(self.front()?.serves);
        credential.read_form_fields().next()?;
        let form = str::from_utf8(body).ok().filter(|_| is_form(&self.headers))?;
        carried::without(form, credential.read_form_fields()).map(Bytes::from)
    }

    /// Set if the response of the front's own service is forwarded unchanged.
    pub(crate) fn set_forwarded(&self) {
        let _ = self.forwarded.set(());
    }

    pub(crate) fn is_forwarded(&self) -> bool {
        self.forwarded.get().is_some()
    }

    /// Returns the operation as the contract writes it, or an empty string if none matched.
    pub fn operation(&self) -> &str {
        self.matched
            .get()
            .map_or("", |matched| &self.program.route(matched.front.serves, matched.route).operation.key)
    }

    /// Returns the effect of the operation. Without a match, assumes [`Effect::Write`], the most
    /// restrictive.
    pub fn effect(&self) -> Effect {
        let route = self.matched.get().map(|matched| self.program.route(matched.front.serves, matched.route));
        route.map_or(Effect::Write, |route| route.operation.effect)
    }

    /// Returns the path for logs: the prefix of the front and the template of the operation. In a
    /// path without an operation, segments that are not in the contract are masked, because they
    /// may be tokens.
    pub fn shown_path(&self) -> String {
        let Some(front) = self.front() else { return "/*".to_owned() };
        let Some(matched) = self.matched.get() else {
            return format!("{}{}", front.prefix, self.disclosures(front).outline(self.path_below(front)));
        };
        let scope = self.program.side(front.serves).scope.as_deref();
        let scope = scope.filter(|_| matched.account.is_some()).unwrap_or_default();
        let template = &*self.program.route(front.serves, matched.route).operation.template;
        // On the path of every request; `format!` is several times slower.
        [front.prefix.as_ref(), scope, template].concat()
    }

    /// Returns the path like [`RequestContext::shown_path`]. For a path without an operation that
    /// the front's own service answered, includes the names of collections.
    pub(crate) fn answered_path(&self) -> String {
        match self.front().filter(|_| self.matched.get().is_none()) {
            Some(front) => {
                let outline = self.disclosures(front).outline_of_answered(self.path_below(front));
                format!("{}{outline}", front.prefix)
            }
            None => self.shown_path(),
        }
    }

    fn path_below(&self, front: &Front) -> &str {
        self.uri.path().get(front.prefix.len()..).unwrap_or_default()
    }

    /// Returns path and query with secret and personal values masked.
    pub fn masked_target(&self, redactor: &Redactor) -> String {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        let Some(front) = self.front() else {
            return redactor.target(target, &Disclosures::default(), None);
        };
        let disclosures = self.disclosures(front);
        let operation = disclosures.operation(self.operation());
        let rest = target.get(front.prefix.len()..).unwrap_or_default();
        // An account prefix shifts the segments, so the rules of the operation would not match.
        let operation =
            operation.filter(|_| self.matched.get().is_some_and(|matched| matched.account.is_none()));
        format!("{}{}", front.prefix, redactor.target(rest, disclosures, operation))
    }

    fn disclosures(&self, front: &Front) -> &Disclosures {
        &self.program.pack().disclosures[front.serves]
    }

    /// Set by `authenticate`.
    pub(crate) fn set_client(&self, client: Arc<Client>) {
        let _ = self.client.set(client);
    }

    /// Returns the client.
    ///
    /// # Panics
    ///
    /// Panics if the client is unknown. Such requests are forwarded before this is called.
    pub fn expect_client(&self) -> &Arc<Client> {
        self.client.get().expect("what comes from nobody that is enrolled is forwarded before anyone asks")
    }

    /// Returns the client, if its token is enrolled.
    pub fn known_client(&self) -> Option<&Arc<Client>> {
        self.client.get()
    }

    /// Returns the enrolled name, or an empty string before authentication.
    pub fn client(&self) -> &str {
        self.client.get().map_or("", |client| &client.name)
    }

    /// Set by `rescue`.
    pub(crate) fn set_fault(&self, error: &GatewayError, outcome: Outcome) {
        let _ = self.fault.set(RescuedError { kind: error.kind().name(), outcome, detail: error.detail() });
    }

    pub(crate) fn fault(&self) -> Option<&RescuedError> {
        self.fault.get()
    }

    /// Set by `compose`: the upstream error behind a response that is not an error. For the log
    /// only.
    pub(crate) fn set_cause(&self, cause: String) {
        let _ = self.cause.set(cause);
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.get().map(String::as_str)
    }

    /// Marks that the client disconnected or got a timeout response.
    pub(crate) fn set_left(&self) {
        let _ = self.left.set(());
    }

    /// Returns whether the client no longer waits for the response.
    pub(crate) fn has_left(&self) -> bool {
        self.left.get().is_some()
    }

    /// Marks that a call got no response. The response to the client is then attributed to the
    /// gateway, however the plan continued.
    pub(crate) fn set_unanswered(&self) {
        let _ = self.unanswered.set(());
    }

    /// Returns whether a call got no response.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered.get().is_some()
    }

    /// Set by `record` while a capture is open.
    pub(crate) fn set_recording(&self, recording: Arc<Recording>) {
        let _ = self.recording.set(recording);
    }

    pub(crate) fn recording(&self) -> Option<&Arc<Recording>> {
        self.recording.get()
    }

    /// Set by `retire`: deprecation fields for this client.
    pub(crate) fn set_notice(&self, notice: Notice) {
        let _ = self.notice.set(notice);
    }

    pub(crate) fn notice(&self) -> Option<&Notice> {
        self.notice.get()
    }

    /// Returns the duration of the request. The first call fixes the value, so call it only after
    /// the response has ended.
    pub fn took(&self) -> Duration {
        *self.took.get_or_init(|| self.arrived.elapsed())
    }

    /// Counts a call to an upstream.
    pub fn count_call(&self) {
        self.calls.fetch_add(1, Relaxed);
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }

    /// Adds the time that a call waited for its response head.
    pub(crate) fn add_waited(&self, time: Duration) {
        self.waited.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Returns the total time that calls waited for response heads.
    pub fn upstream_wait(&self) -> Duration {
        Duration::from_micros(self.waited.load(Relaxed))
    }

    /// Awaits a body or a pause of the plan, and excludes the time from
    /// [`RequestContext::own_time`].
    pub(crate) async fn pause<T>(&self, awaited: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let outcome = awaited.await;
        self.add_pause(started.elapsed());
        outcome
    }

    /// Adds time spent waiting for something other than a response head.
    pub(crate) fn add_pause(&self, time: Duration) {
        self.paused.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Returns the time since arrival without the time spent waiting. `None` if no call was made.
    pub(crate) fn own_time(&self) -> Option<Duration> {
        let awaited = self.upstream_wait() + Duration::from_micros(self.paused.load(Relaxed));
        (self.calls() > 0).then(|| self.arrived.elapsed().saturating_sub(awaited))
    }

    /// Set by `phase`: the phase of the operation on arrival.
    pub(crate) fn set_phase(&self, phase: &'static str) {
        let _ = self.phase.set(phase);
    }

    /// Returns the name of the operation's phase, or an empty string if it was not determined.
    pub fn phase(&self) -> &'static str {
        self.phase.get().copied().unwrap_or_default()
    }

    /// Returns the name of the service that answered, or `gateway`. Valid once the response has
    /// ended.
    pub fn answered_by(&self) -> &str {
        const GATEWAY: &str = "gateway";
        let Some(front) = self.front().filter(|_| self.fault().is_none()) else { return GATEWAY };
        if self.is_forwarded() {
            return front.own.as_ref().map_or(GATEWAY, |own| own.main().name());
        }
        if self.calls() > 0 && !self.is_unanswered() { front.backend.main().name() } else { GATEWAY }
    }

    /// Returns the host of the operation on the served side.
    pub(crate) fn host(&self) -> HostId {
        let matched = self.front().zip(self.operation_matched());
        matched.map_or(HostId::MAIN, |(front, matched)| {
            self.program.route(front.serves, matched.route).operation.host
        })
    }

    /// Returns the client's `X-Request-Id`, or an empty string if absent or not text.
    pub fn client_request_id(&self) -> &str {
        self.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default()
    }
}
