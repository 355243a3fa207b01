//! What layers leave for one another about a request: one [`RequestContext`] per request, shared by reference count, because
//! the outer layers still need it when the request itself has long been consumed. RequestContext are written once and never
//! changed; the request's own head is the first of them.

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

/// The field that names a request.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The name of a request in logs, in `x-request-id`, and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub u64);

impl RequestId {
    /// As logs say it.
    pub fn digits(self) -> [u8; 16] {
        hex_digits(self.0)
    }

    /// As `x-request-id` says it.
    pub fn header_value(self) -> HeaderValue {
        HeaderValue::from_bytes(&self.digits()).expect("hexadecimal digits are a header value")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a request is for.
#[derive(Clone, Debug)]
pub(crate) struct Matched {
    pub front: Arc<Front>,
    pub route: RouteId,
    /// Decoded path values, in the order of the operation's variables.
    pub values: Vec<String>,
    /// The secondary account that the path names before the operation, decoded.
    pub account: Option<String>,
}

impl Matched {
    /// Path and query below the front's prefix, as they came.
    pub(crate) fn below_front(&self, context: &RequestContext) -> String {
        context.below(&self.front)
    }
}

/// Why the front's own service is asked about a request that the contract or the gateway knows nothing of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unknown {
    /// No operation has its path.
    Path,
    /// Its path is that of an operation, its method is not.
    Method,
    /// Its path can be read in several ways, or ends or is written as no operation's is.
    Spelling,
    /// Its body is of a type that the operation does not take.
    MediaType,
    /// Nobody enrolled its client.
    Client,
}

impl Unknown {
    /// Label in metrics, and word in the admin API.
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

/// What `rescue` notes about an error it answered.
#[derive(Debug)]
pub(crate) struct RescuedError {
    /// [`crate::error::Kind::name`].
    pub kind: &'static str,
    pub outcome: Outcome,
    /// For the log only.
    pub detail: String,
}

/// What is known about one request.
pub struct RequestContext {
    /// Names the request in logs, traces and answers.
    pub id: RequestId,
    /// The W3C trace that it belongs to: as it came, or begun here.
    pub trace: TraceParent,
    /// What of the trace is recorded here; nothing where traces are off or this one is not sampled.
    pub(crate) span: Option<Arc<RequestSpan>>,
    /// When its head was read; the monotonic clock, from which times taken are counted.
    pub arrived: Instant,
    /// As it came.
    pub method: Method,
    /// As it came: path and query, undecoded.
    pub uri: Uri,
    /// Its query without a token, once asked for; none where it has no token.
    query_left: OnceLock<Option<String>>,
    /// The form that is its body, and its share of the memory.
    form: OnceLock<(Bytes, MemoryShare)>,
    /// The HTTP version of the client's connection.
    pub version: Version,
    /// As they came, credentials included: never to be printed.
    pub headers: HeaderMap,
    /// Who is at the other end, where that is wanted.
    pub peer: Option<Peer>,
    /// Where the client connects from: the peer, or who is behind it if it is trusted to say so.
    pub address: Option<IpAddr>,
    /// What serves this request, however often the pack is reloaded meanwhile.
    pub program: Arc<Program>,
    /// The language of the pack in which the client is answered.
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
    /// Microseconds that calls waited for the heads of their answers, all together.
    waited: AtomicU64,
    /// Microseconds in which bodies were awaited before the answer had a head, and pauses of the plan passed.
    paused: AtomicU64,
    /// From arrival to the end of the answer.
    took: OnceLock<Duration>,
}

/// Without the head: its fields hold the client's token, and its address may hold more.
impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RequestContext");
        shown.field("id", &self.id).field("operation", &self.operation()).field("client", &self.client());
        shown.finish_non_exhaustive()
    }
}

impl RequestContext {
    /// The context of a request with this head; but for the peer its extensions are dropped.
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

    /// RequestContext of another request that is made for this one: with this head, and nothing else known of it yet.
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

    /// Left by `route`.
    pub(crate) fn set_front(&self, front: Arc<Front>) {
        let _ = self.front.set(front);
    }

    pub(crate) fn front(&self) -> Option<&Arc<Front>> {
        self.front.get()
    }

    /// Left by `route`: what the request is for.
    pub(crate) fn set_matched(&self, matched: Matched) {
        let _ = self.matched.set(matched);
    }

    /// For those who answer what the contract has.
    pub(crate) fn route_match(&self) -> &Matched {
        self.matched.get().expect("what matched nothing is forwarded before anyone asks")
    }

    /// What the request is for, where the contract has it.
    pub(crate) fn operation_matched(&self) -> Option<&Matched> {
        self.matched.get()
    }

    /// Left by the first layer that finds nobody here to know the request, where the front's own service is asked instead.
    pub(crate) fn set_unknown(&self, unknown: Unknown) {
        let _ = self.unknown.set(unknown);
    }

    /// What is not known of the request; nothing while all is.
    pub fn unknown(&self) -> Option<Unknown> {
        self.unknown.get().copied()
    }

    /// Path and query below the prefix of a front, as they came.
    pub fn below(&self, front: &Front) -> String {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        target.get(front.prefix.len()..).unwrap_or("/").to_owned()
    }

    /// The query, without what carries the client's token.
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

    /// Left by `form_token`: the form that is the request's body, where tokens of its front may stand in forms.
    pub(crate) fn set_form(&self, form: Bytes, share: MemoryShare) {
        let _ = self.form.set((form, share));
    }

    /// The form that is the request's body, where tokens may stand in one; empty where there is none.
    pub(crate) fn form(&self) -> &str {
        self.form.get().and_then(|(form, _)| str::from_utf8(form).ok()).unwrap_or_default()
    }

    /// The body of this request, without the fields of a form that carry the client's token. Nothing where it has none.
    pub(crate) fn without_form_token(&self, body: &[u8]) -> Option<Bytes> {
        let credential = self.program.credential(self.front()?.serves);
        credential.read_form_fields().next()?;
        let form = str::from_utf8(body).ok().filter(|_| is_form(&self.headers))?;
        carried::without(form, credential.read_form_fields()).map(Bytes::from)
    }

    /// The answer is the own service's, passed on as it came.
    pub(crate) fn set_forwarded(&self) {
        let _ = self.forwarded.set(());
    }

    pub(crate) fn is_forwarded(&self) -> bool {
        self.forwarded.get().is_some()
    }

    /// The operation as the contract writes it; empty while nothing matched.
    pub fn operation(&self) -> &str {
        self.matched
            .get()
            .map_or("", |matched| &self.program.route(matched.front.serves, matched.route).operation.key)
    }

    /// What the operation does to the service; the worst while nothing matched.
    pub fn effect(&self) -> Effect {
        let route = self.matched.get().map(|matched| self.program.route(matched.front.serves, matched.route));
        route.map_or(Effect::Write, |route| route.operation.effect)
    }

    /// The path as logs show it: the front's prefix and the template of the operation; of a path that no operation has, the
    /// words of the contract. What else a client puts into a path may be a token.
    pub fn shown_path(&self) -> String {
        let Some(front) = self.front() else { return "/*".to_owned() };
        let Some(matched) = self.matched.get() else {
            return format!("{}{}", front.prefix, self.disclosures(front).outline(self.path_below(front)));
        };
        let scope = self.program.side(front.serves).scope.as_deref();
        let scope = scope.filter(|_| matched.account.is_some()).unwrap_or_default();
        let template = &*self.program.route(front.serves, matched.route).operation.template;
        // Every request pays for this, and general formatting costs several times as much.
        [front.prefix.as_ref(), scope, template].concat()
    }

    /// The path as [`RequestContext::shown_path`] has it; of one that no operation has and the own service answers, with the
    /// name of its collection.
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

    /// Path and query with every value masked that may be secret or personal.
    pub fn masked_target(&self, redactor: &Redactor) -> String {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        let Some(front) = self.front() else {
            return redactor.target(target, &Disclosures::default(), None);
        };
        let disclosures = self.disclosures(front);
        let operation = disclosures.operation(self.operation());
        let rest = target.get(front.prefix.len()..).unwrap_or_default();
        // With the path of an account before it, the operation's own path does not stand where it is looked for.
        let operation =
            operation.filter(|_| self.matched.get().is_some_and(|matched| matched.account.is_none()));
        format!("{}{}", front.prefix, redactor.target(rest, disclosures, operation))
    }

    fn disclosures(&self, front: &Front) -> &Disclosures {
        &self.program.pack().disclosures[front.serves]
    }

    /// Left by `authenticate`.
    pub(crate) fn set_client(&self, client: Arc<Client>) {
        let _ = self.client.set(client);
    }

    /// For those who answer on behalf of a client.
    pub fn expect_client(&self) -> &Arc<Client> {
        self.client.get().expect("what comes from nobody that is enrolled is forwarded before anyone asks")
    }

    /// The client, where its token is enrolled.
    pub fn known_client(&self) -> Option<&Arc<Client>> {
        self.client.get()
    }

    /// The client's enrolled name; empty before authentication.
    pub fn client(&self) -> &str {
        self.client.get().map_or("", |client| &client.name)
    }

    /// Left by `rescue`.
    pub(crate) fn set_fault(&self, error: &GatewayError, outcome: Outcome) {
        let _ = self.fault.set(RescuedError { kind: error.kind().name(), outcome, detail: error.detail() });
    }

    pub(crate) fn fault(&self) -> Option<&RescuedError> {
        self.fault.get()
    }

    /// Left by `compose`: what went wrong upstream, where the client gets an answer all the same. For the log only.
    pub(crate) fn set_cause(&self, cause: String) {
        let _ = self.cause.set(cause);
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.get().map(String::as_str)
    }

    /// Nobody waits for the answer any more: the client has gone, or was told that it takes too long.
    pub(crate) fn set_left(&self) {
        let _ = self.left.set(());
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn has_left(&self) -> bool {
        self.left.get().is_some()
    }

    /// Left by whoever makes calls: one of them got no answer. However the plan went on from there, the answer that it came
    /// to is none of the other side's.
    pub(crate) fn set_unanswered(&self) {
        let _ = self.unanswered.set(());
    }

    /// Whether a call got no answer.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered.get().is_some()
    }

    /// Left by `record`, while a capture is open.
    pub(crate) fn set_recording(&self, recording: Arc<Recording>) {
        let _ = self.recording.set(recording);
    }

    pub(crate) fn recording(&self) -> Option<&Arc<Recording>> {
        self.recording.get()
    }

    /// Left by `retire`: what answers to this client say about its end.
    pub(crate) fn set_notice(&self, notice: Notice) {
        let _ = self.notice.set(notice);
    }

    pub(crate) fn notice(&self) -> Option<&Notice> {
        self.notice.get()
    }

    /// How long the request took. Asked once all of its answer has gone, by all who write it down: the first sets it.
    pub fn took(&self) -> Duration {
        *self.took.get_or_init(|| self.arrived.elapsed())
    }

    /// Counts one call to an upstream.
    pub fn count_call(&self) {
        self.calls.fetch_add(1, Relaxed);
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }

    /// A call waited so long for the head of its answer.
    pub(crate) fn add_waited(&self, time: Duration) {
        self.waited.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// How long calls waited for the heads of their answers, all together.
    pub fn upstream_wait(&self) -> Duration {
        Duration::from_micros(self.waited.load(Relaxed))
    }

    /// Awaits what the gateway does not work on: a body of the client or of a service, or a pause that the plan makes.
    pub(crate) async fn pause<T>(&self, awaited: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let outcome = awaited.await;
        self.add_pause(started.elapsed());
        outcome
    }

    /// Adds time in which the gateway waited for something other than the head of an answer.
    pub(crate) fn add_pause(&self, time: Duration) {
        self.paused.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// The time that the gateway itself has taken so far: all of it, less what was waited for. `None` where no call was made.
    pub(crate) fn own_time(&self) -> Option<Duration> {
        let awaited = self.upstream_wait() + Duration::from_micros(self.paused.load(Relaxed));
        (self.calls() > 0).then(|| self.arrived.elapsed().saturating_sub(awaited))
    }

    /// Left by `phase`: the one in which the operation was when the request came.
    pub(crate) fn set_phase(&self, phase: &'static str) {
        let _ = self.phase.set(phase);
    }

    /// The name of the operation's phase; empty where there is no operation, or the request did not get so far.
    pub fn phase(&self) -> &'static str {
        self.phase.get().copied().unwrap_or_default()
    }

    /// The service whose answer the client gets, or `gateway`. Asked when the answer has ended.
    pub fn answered_by(&self) -> &str {
        const GATEWAY: &str = "gateway";
        let Some(front) = self.front().filter(|_| self.fault().is_none()) else { return GATEWAY };
        if self.is_forwarded() {
            return front.own.as_ref().map_or(GATEWAY, |own| own.main().name());
        }
        if self.calls() > 0 && !self.is_unanswered() { front.backend.main().name() } else { GATEWAY }
    }

    /// The host of the served side that its own service answers this at.
    pub(crate) fn host(&self) -> HostId {
        let matched = self.front().zip(self.operation_matched());
        matched.map_or(HostId::MAIN, |(front, matched)| {
            self.program.route(front.serves, matched.route).operation.host
        })
    }

    /// `X-Request-Id` as the client sent it; empty where it sent none that is text.
    pub fn client_request_id(&self) -> &str {
        self.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default()
    }
}
