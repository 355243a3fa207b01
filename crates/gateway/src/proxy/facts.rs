//! The record of a request: the facts that its log line, its metrics and its span report. Layers
//! write it as they find them out, so that a request that is cancelled midway is reported with what
//! was known by then. No layer reads another layer's facts here; those are handed on by type
//! ([`super::request`]).

use super::context::RequestContext;
use super::program::Front;
use super::request::Operation;
use crate::capture::Recording;
use crate::error::GatewayError;
use crate::outcome::Outcome;
use crate::retire::Notice;
use crate::token::Client;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use switchback_engine::redact::Redactor;
use switchback_plan::{Disclosures, Route, RouteId};

/// The error that `rescue` answered.
pub(crate) struct RescuedError {
    /// [`crate::error::Kind::name`].
    pub kind: &'static str,
    pub outcome: Outcome,
    /// For the log only.
    pub detail: String,
}

/// Facts about a request, as far as it got.
#[derive(Default)]
pub(crate) struct Facts {
    pub front: Option<Arc<Front>>,
    operation: Option<RouteId>,
    /// Whether the path names an account.
    has_account: bool,
    pub client: Option<Arc<Client>>,
    /// The name of the operation's phase on arrival; empty if it was not determined.
    pub phase: &'static str,
    /// Deprecation fields for this client.
    pub notice: Option<Notice>,
    /// The recording of the request, while a capture is open.
    pub recording: Option<Arc<Recording>>,
    pub error: Option<RescuedError>,
    /// The upstream error behind a response that is not an error. For the log only.
    pub cause: Option<String>,
}

/// The record of one request.
#[derive(Default)]
pub(crate) struct RequestRecord {
    facts: Mutex<Facts>,
    is_forwarded: AtomicBool,
    is_unanswered: AtomicBool,
    has_left: AtomicBool,
    calls: AtomicU32,
    /// Total time in microseconds that calls waited for response heads.
    waited: AtomicU64,
    /// Total time in microseconds of waiting for bodies and of pauses in the plan, before the
    /// response head.
    paused: AtomicU64,
}

impl Facts {
    /// Records the operation that the request matches.
    pub(crate) fn set_operation(&mut self, operation: &Operation) {
        self.operation = Some(operation.route);
        self.has_account = operation.account.is_some();
    }

    /// Records the error that is answered.
    pub(crate) fn set_error(&mut self, error: &GatewayError, outcome: Outcome) {
        self.error = Some(RescuedError { kind: error.kind().name(), outcome, detail: error.detail() });
    }
}

impl RequestRecord {
    /// Marks that the response of the front's own service is forwarded unchanged.
    pub(crate) fn set_forwarded(&self) {
        self.is_forwarded.store(true, Relaxed);
    }

    pub(crate) fn is_forwarded(&self) -> bool {
        self.is_forwarded.load(Relaxed)
    }

    /// Marks that a call got no response. The response to the client is then attributed to the
    /// gateway, however the plan continued.
    pub(crate) fn set_unanswered(&self) {
        self.is_unanswered.store(true, Relaxed);
    }

    /// Returns whether a call got no response.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.is_unanswered.load(Relaxed)
    }

    /// Marks that the client disconnected or got a timeout response.
    pub(crate) fn set_left(&self) {
        self.has_left.store(true, Relaxed);
    }

    /// Returns whether the client no longer waits for the response.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Relaxed)
    }

    /// Counts a call to an upstream.
    pub(crate) fn count_call(&self) {
        self.calls.fetch_add(1, Relaxed);
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }

    /// Adds the time that a call waited for its response head.
    pub(crate) fn add_waited(&self, time: Duration) {
        add(&self.waited, time);
    }

    /// Returns the total time that calls waited for response heads.
    pub(crate) fn upstream_wait(&self) -> Duration {
        Duration::from_micros(self.waited.load(Relaxed))
    }

    /// Adds time spent waiting for something other than a response head.
    pub(crate) fn add_pause(&self, time: Duration) {
        add(&self.paused, time);
    }

    /// Returns the total time spent waiting before the response head.
    pub(crate) fn awaited(&self) -> Duration {
        self.upstream_wait() + Duration::from_micros(self.paused.load(Relaxed))
    }
}

fn add(sum: &AtomicU64, time: Duration) {
    sum.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
}

/// The facts about a request, locked while they are read or written.
pub(crate) struct RequestFacts<'c> {
    pub context: &'c RequestContext,
    facts: MutexGuard<'c, Facts>,
}

impl Deref for RequestFacts<'_> {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl DerefMut for RequestFacts<'_> {
    fn deref_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }
}

impl RequestContext {
    /// Locks the facts about the request. Do not hold them across an await.
    pub(crate) fn facts(&self) -> RequestFacts<'_> {
        let facts = self.record.facts.lock().unwrap_or_else(PoisonError::into_inner);
        RequestFacts { context: self, facts }
    }

    /// Returns the recording of the request, while a capture is open.
    pub(crate) fn recording(&self) -> Option<Arc<Recording>> {
        self.facts().recording.clone()
    }
}

impl RequestFacts<'_> {
    fn route(&self) -> Option<(&Front, &Route)> {
        let (front, operation) = (self.front.as_deref()?, self.operation?);
        Some((front, self.context.program.route(front.serves, operation)))
    }

    /// Returns whether an operation matched.
    pub(crate) fn has_operation(&self) -> bool {
        self.operation.is_some()
    }

    /// Returns the operation as the contract writes it, or an empty string if none matched.
    pub(crate) fn operation(&self) -> &str {
        self.route().map_or("", |(_, route)| &route.operation.key)
    }

    /// Returns the enrolled name, or an empty string before authentication.
    pub(crate) fn client(&self) -> &str {
        self.client.as_ref().map_or("", |client| &client.name)
    }

    /// Returns the name of the front's side, or an empty string outside all fronts.
    pub(crate) fn side(&self) -> &str {
        self.front.as_ref().map_or("", |front| &self.context.program.side(front.serves).name)
    }

    /// Returns the path for logs: the prefix of the front and the template of the operation. In a
    /// path without an operation, segments that are not in the contract are masked, because they
    /// may be tokens.
    pub(crate) fn shown_path(&self) -> String {
        let Some(front) = &self.front else { return "/*".to_owned() };
        let Some((_, route)) = self.route() else {
            return format!("{}{}", front.prefix, self.disclosures(front).outline(self.path_below(front)));
        };
        let scope = self.context.program.side(front.serves).scope.as_deref();
        let scope = scope.filter(|_| self.has_account).unwrap_or_default();
        // On the path of every request; `format!` is several times slower.
        [front.prefix.as_ref(), scope, &*route.operation.template].concat()
    }

    /// Returns the path like [`RequestFacts::shown_path`]. For a path without an operation that the
    /// front's own service answered, includes the names of collections.
    pub(crate) fn answered_path(&self) -> String {
        match self.front.as_deref().filter(|_| !self.has_operation()) {
            Some(front) => {
                let outline = self.disclosures(front).outline_of_answered(self.path_below(front));
                format!("{}{outline}", front.prefix)
            }
            None => self.shown_path(),
        }
    }

    fn path_below(&self, front: &Front) -> &str {
        self.context.uri.path().get(front.prefix.len()..).unwrap_or_default()
    }

    /// Returns path and query with secret and personal values masked.
    pub(crate) fn masked_target(&self, redactor: &Redactor) -> String {
        let target = self.context.uri.path_and_query().map_or("/", |target| target.as_str());
        let Some(front) = &self.front else {
            return redactor.target(target, &Disclosures::default(), None);
        };
        let disclosures = self.disclosures(front);
        // An account prefix shifts the segments, so the rules of the operation would not match.
        let operation = disclosures.operation(self.operation()).filter(|_| !self.has_account);
        let rest = target.get(front.prefix.len()..).unwrap_or_default();
        format!("{}{}", front.prefix, redactor.target(rest, disclosures, operation))
    }

    fn disclosures(&self, front: &Front) -> &Disclosures {
        &self.context.program.pack().disclosures[front.serves]
    }

    /// Returns the name of the service that answered, or `gateway`. Valid once the response has
    /// ended.
    pub(crate) fn answered_by(&self) -> &str {
        const GATEWAY: &str = "gateway";
        let Some(front) = self.front.as_ref().filter(|_| self.error.is_none()) else { return GATEWAY };
        let record = &self.context.record;
        if record.is_forwarded() {
            return front.own.as_ref().map_or(GATEWAY, |own| own.main().name());
        }
        if record.calls() > 0 && !record.is_unanswered() { front.backend.main().name() } else { GATEWAY }
    }
}
