//! Access to the recorded facts of a request ([`super::record`]), and the texts that reports make
//! of them.

use super::context::RequestContext;
use super::limits::OperationLimits;
use super::program::Front;
use super::record::Facts;
use super::request::Operation;
use crate::capture::Recording;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard, PoisonError};
use switchback_engine::redact::Redactor;
use switchback_plan::{Disclosures, Route};

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
    /// Records the operation that the request matches.
    pub(crate) fn set_operation(&mut self, operation: &Operation) {
        self.operation = Some(operation.route);
        self.has_account = operation.account.is_some();
    }

    fn route(&self) -> Option<(&Front, &Route)> {
        let (front, operation) = (self.front.as_deref()?, self.operation?);
        Some((front, self.context.program.route(front.serves, operation)))
    }

    /// Returns the limits of the operation, once the front is known.
    pub(crate) fn limits(&self) -> Option<&OperationLimits> {
        Some(self.front.as_deref()?.limits.for_route(self.operation))
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
