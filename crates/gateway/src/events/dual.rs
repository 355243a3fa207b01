//! The dual run of events: while the old version still sends its own events, both versions report
//! the same change. The phase of an event selects the one to deliver; the other is compared with
//! it. Events of the newer version are compared in the form that receivers would get.
//!
//! Two events are paired in the store by values that the pack names (`correlate`), so they may
//! arrive at different gateways and survive a restart. The shadow compares them: receiving never
//! waits for it, and events beyond its limits are dropped and counted. An event whose partner does
//! not arrive in time is counted separately.

use super::Receiver;
use super::translate::{EventError, translate};
use crate::proxy::program::{Program, ServedEvents};
use crate::shadow::{Done, Job, JobResult, JobSubject, Phase, Shadow, Subject, roll_of};
use crate::store::{Met, Store, StoreError, Unpaired};
use arc_swap::ArcSwap;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::diff::{BufferedAnswer, Candidate, SkipReason, View};
use switchback_engine::translate::Env;
use switchback_json::{Limits, Value};
use switchback_plan::{Correlate, EventRoute, Events};

/// Number of expired events processed at once.
const LOOKED_AT: usize = 256;

/// Compares events of both sides. Clones share it.
#[derive(Clone, Debug)]
pub struct EventsDual {
    store: Store,
    /// Replaced when its settings change.
    shadow: Arc<ArcSwap<Shadow>>,
}

/// The decision about an event.
#[derive(Debug)]
pub(super) struct Decided<'p> {
    pub(super) is_delivered: bool,
    pub(super) pair: Option<EventPairLookup<'p>>,
    /// The reason why the event cannot be compared, if it was selected for comparison.
    pub(super) untranslated: Option<(Subject, EventError)>,
}

/// Identifies the partner of an event on the other side.
#[derive(Debug)]
pub(super) struct EventPairLookup<'p> {
    pub(super) operation: &'p Arc<str>,
    pub(super) key: String,
    pub(super) within: Duration,
    /// The body for receivers, if the event is to be compared.
    pub(super) body: Option<Vec<u8>>,
    pub(super) subject: Subject,
}

/// A received event.
pub(super) struct Came<'e> {
    pub(super) receiver: &'e Receiver,
    pub(super) is_own: bool,
    pub(super) message: Option<&'e str>,
    pub(super) body: &'e [u8],
    pub(super) value: &'e Value,
}

impl EventsDual {
    /// Creates a comparer that pairs events in the store.
    pub fn new(store: Store, shadow: Shadow) -> EventsDual {
        EventsDual { store, shadow: Arc::new(ArcSwap::from_pointee(shadow)) }
    }

    /// Replaces the shadow, whose settings have changed.
    pub fn set_shadow(&self, shadow: Shadow) {
        self.shadow.store(Arc::new(shadow));
    }

    /// Decides whether the event is delivered, and how its partner is found.
    pub(super) fn decide<'p>(
        &self,
        program: &'p Program,
        events: &'p Events,
        route: Option<&'p EventRoute>,
        came: &Came<'_>,
    ) -> Decided<'p> {
        let alone = |is_delivered| Decided { is_delivered, pair: None, untranslated: None };
        // An event that only one version has is always delivered.
        let told = route.and_then(|route| Some((route, route.delivered()?)));
        let (Some(_), Some((route, told)), Some(served)) = (&came.receiver.own, told, program.events())
        else {
            return alone(true);
        };
        let Some((phase, period)) = served.phases.event(told.operation) else { return alone(!came.is_own) };
        // Exactly one of the two is delivered: the own event, or the translated one of the other
        // side.
        let is_delivered = is_translated(phase, &came.receiver.name, told.operation) != came.is_own;
        let Some(correlate) = told.correlate else { return alone(is_delivered) };
        let subject = subject(served, events, route, came, (phase, period), told.operation);
        let made = match came.is_own {
            true => Ok(None),
            false => translate_body(program, route, came.body).map(Some),
        };
        let made = match made {
            Ok(made) => made,
            Err(why) => {
                let is_compared = phase != Phase::Legacy && phase != Phase::default();
                let untranslated = is_compared.then_some((subject, why));
                return Decided { is_delivered, pair: None, untranslated };
            }
        };
        let key = match &made {
            None => key_of(correlate, came.value),
            Some((_, value)) => key_of(correlate, value),
        };
        let Some(key) = key else {
            self.shadow.load().record_skip(&subject, SkipReason::Unaddressed);
            return alone(is_delivered);
        };
        let shadow = self.shadow.load();
        let body = made.map_or_else(|| came.body.to_vec(), |(body, _)| body);
        // Drawn from the key rather than at random: both events must be in the sample or neither.
        let is_taken = shadow.takes(phase, roll_of(&key));
        let is_small = body.len() <= shadow.settings().body_bytes;
        if is_taken && !is_small {
            shadow.record_skip(&subject, SkipReason::TooLarge);
        }
        let body = (is_taken && is_small).then_some(body);
        let pair =
            EventPairLookup { operation: told.operation, key, within: correlate.within, body, subject };
        Decided { is_delivered, pair: Some(pair), untranslated: None }
    }

    /// Records an event that could not be translated to the receivers' form.
    pub(super) fn count_untranslated(&self, subject: Subject, why: EventError) {
        let nothing = BufferedAnswer::default();
        self.compare(subject, nothing, Candidate::Untranslated { what: why.to_string() });
    }

    /// Compares two paired events.
    pub(super) fn met(&self, is_own: bool, pair: EventPairLookup<'_>, met: Met) {
        let (Some(body), Some(other)) = (pair.body, met.body) else { return };
        // The first body was translated by another pack, so a difference could be that pack's.
        if *met.pack != **pair.subject.knowledge.pack_hash() {
            self.shadow.load().record_skip(&pair.subject, SkipReason::Replaced);
            return;
        }
        let other = other.expose().clone();
        let (reference, candidate) = if is_own { (body, other) } else { (other, body) };
        let (reference, candidate) = (BufferedAnswer::whole(reference), BufferedAnswer::whole(candidate));
        self.compare(pair.subject, reference, Candidate::Answered(view(candidate)));
    }

    /// Counts an event that could not be stored for lack of room.
    pub(super) fn no_room(&self, pair: &EventPairLookup<'_>) {
        if pair.body.is_some() {
            self.shadow.load().record_skip(&pair.subject, SkipReason::Queue);
        }
    }

    fn compare(&self, subject: Subject, reference: BufferedAnswer, candidate: Candidate) {
        let shadow = self.shadow.load_full();
        let of_candidate = match &candidate {
            Candidate::Answered(view) => view.body.total_bytes(),
            _ => 0,
        };
        let Ok(share) = shadow.memory().take(reference.total_bytes() + of_candidate) else {
            shadow.record_skip(&subject, SkipReason::Memory);
            return;
        };
        let judging = shadow.judging(&[]);
        let compared = subject.clone();
        let work = async move {
            let comparison = judging.compare(&compared, &view(reference), &candidate);
            Done { outcomes: vec![JobResult::Compared(comparison)], secrets: Vec::new() }
        };
        shadow.submit(Job { subject, work: Box::pin(work), share });
    }

    /// Counts unpaired events whose time has expired.
    pub(super) async fn look(&self, program: &Program) -> Result<(), StoreError> {
        loop {
            let unpaired = self.store.events_unpaired(LOOKED_AT).await?;
            let is_all = unpaired.len() < LOOKED_AT;
            unpaired.iter().for_each(|event| self.count_unpaired(program, event));
            if is_all {
                return Ok(());
            }
        }
    }

    fn count_unpaired(&self, program: &Program, event: &Unpaired) {
        let (Some(events), Some(served)) = (&program.pack().events, program.events()) else { return };
        let told =
            |route: &&EventRoute| route.delivered().is_some_and(|told| **told.operation == *event.operation);
        let Some(route) = events.routes.iter().find(told) else { return };
        let (Some(told), Some(now)) = (route.delivered(), served.phases.event(&event.operation)) else {
            return;
        };
        if !event.is_compared {
            return;
        }
        let shadow = self.shadow.load_full();
        let subject = Subject {
            client: event.receiver.as_str().into(),
            ..bare(served, events, route, now, told.operation)
        };
        let why = match event.is_known {
            false => Some(SkipReason::Queue),
            true if *event.pack != **served.knowledge.pack_hash() => Some(SkipReason::Replaced),
            true => None,
        };
        if let Some(why) = why {
            shadow.record_skip(&subject, why);
            return;
        }
        let within = told.correlate.map_or(0, |correlate| correlate.within.as_secs());
        let sides = &program.pack().sides;
        let lacking = if event.is_own { events.from } else { events.from.other() };
        let why = format!("{} sent no such event within {within} s", sides[lacking].name);
        let outcome = JobResult::Unpaired { is_missing: event.is_own, why };
        let work = async move { Done { outcomes: vec![outcome], secrets: Vec::new() } };
        let share = shadow.memory().share();
        shadow.submit(Job { subject, work: Box::pin(work), share });
    }
}

/// Returns whether a receiver gets the translated events of the other side.
fn is_translated(phase: Phase, receiver: &str, operation: &str) -> bool {
    match phase {
        Phase::Legacy | Phase::Shadow => false,
        Phase::Canary(share) => share.has_client(receiver, operation),
        Phase::Translated { .. } => true,
    }
}

fn view(body: BufferedAnswer) -> View {
    View { status: 200, headers: HeaderMap::new(), body }
}

fn subject(
    served: &ServedEvents,
    events: &Events,
    route: &EventRoute,
    came: &Came<'_>,
    now: (Phase, i64),
    operation: &Arc<str>,
) -> Subject {
    Subject {
        client: came.receiver.name.as_str().into(),
        request_id: came.message.unwrap_or_default().to_owned(),
        ..bare(served, events, route, now, operation)
    }
}

fn bare(
    served: &ServedEvents,
    events: &Events,
    route: &EventRoute,
    (phase, period): (Phase, i64),
    operation: &Arc<str>,
) -> Subject {
    let at = events.routes.iter().position(|one| std::ptr::eq(one, route));
    Subject {
        side: Arc::clone(served.phases.side()),
        serves: events.from.other(),
        about: JobSubject::Event(at.unwrap_or(usize::MAX)),
        operation: Arc::clone(operation),
        phase,
        period,
        client: "".into(),
        target: String::new(),
        request_id: String::new(),
        knowledge: Arc::clone(&served.knowledge),
    }
}

/// Translates an event to the receivers' form.
fn translate_body(
    program: &Program,
    route: &EventRoute,
    body: &[u8],
) -> Result<(Vec<u8>, Value), EventError> {
    let told = route.delivered().ok_or(EventError::Dropped)?;
    let translated = translate(route, &told, body, &Env::new(program.settings()))?;
    let value = Value::parse(&translated, &Limits::DOCUMENT)?;
    Ok((translated, value))
}

/// Returns the correlation values of an event as JSON: `7` and `"7"` are different keys. Returns
/// `None` if a value is missing.
fn key_of(correlate: &Correlate, body: &Value) -> Option<String> {
    let mut key = String::new();
    for names in &correlate.by {
        let value = super::member(names, body).filter(|value| !value.is_null())?;
        key.push_str(&String::from_utf8_lossy(&value.to_vec()));
        // A separator that the JSON text of a scalar cannot contain.
        key.push('\n');
    }
    Some(key)
}
