//! Events: calls that a service sends by itself, translated for receivers that know the other side.

use super::{BodyPlan, CompareRule, Loss, Origin, SideId};
use std::sync::Arc;
use std::time::Duration;

/// The translation of the events of one side.
#[derive(Debug)]
pub struct Events {
    /// The side that sends events.
    pub from: SideId,
    /// Place of the event name on the sending side.
    pub name: EventName,
    /// Place of the event name on the other side, if the pack declares it.
    pub told: Option<EventName>,
    /// One route per event of the sending side, in the order of its contract.
    pub routes: Vec<EventRoute>,
}

/// The place of an event name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventName {
    /// A header field, in lower case.
    Header(String),
    /// Member names from the top of the body.
    Body(Vec<Arc<str>>),
}

/// The translation of one event.
#[derive(Debug)]
pub struct EventRoute {
    /// Name on the sending side.
    pub sent: Arc<str>,
    /// The event to deliver.
    pub becomes: Becomes,
    /// Path to the ordering key in the body. Events with the same key are delivered in order of
    /// arrival. If the path is empty, all events of a receiver are ordered.
    pub key: Vec<Arc<str>>,
    /// The ordering key in the bodies of events that the other side sends itself.
    pub own_key: Vec<Arc<str>>,
    /// Members that receivers of the other side do not get.
    pub losses: Vec<Loss>,
    /// Place of the declaration in the mapping.
    pub origin: Origin,
}

/// The result for receivers of the other side.
#[derive(Debug)]
pub enum Becomes {
    /// An event of the other side.
    Event {
        /// Name on the other side.
        name: Arc<str>,
        /// Its operation name in a dual run, such as `event noteChanged`.
        operation: Arc<str>,
        /// Produces its body.
        body: BodyPlan,
        /// How a dual run finds the corresponding event of the other side. `None`: the event is not
        /// compared.
        correlate: Option<Correlate>,
        /// Comparison rules for these bodies.
        compare: Vec<CompareRule>,
    },
    /// No event.
    Dropped {
        /// The reason, as a sentence of the mapping.
        because: String,
    },
}

/// The correlation of two events, one of each side, that report the same change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correlate {
    /// Paths in the body that receivers get. Two events correspond if the values at all of them are
    /// equal.
    pub by: Vec<Vec<Arc<str>>>,
    /// How long an event waits for its counterpart.
    pub within: Duration,
}

impl EventRoute {
    /// Returns the event that receivers get, if any.
    pub fn delivered(&self) -> Option<ToldEvent<'_>> {
        match &self.becomes {
            Becomes::Event { name, operation, body, correlate, compare } => {
                Some(ToldEvent { name, operation, body, correlate: correlate.as_ref(), compare })
            }
            Becomes::Dropped { .. } => None,
        }
    }
}

/// An event in the form of its receivers.
#[derive(Clone, Copy, Debug)]
pub struct ToldEvent<'r> {
    /// Name on the other side.
    pub name: &'r Arc<str>,
    /// Its operation name in a dual run.
    pub operation: &'r Arc<str>,
    /// Produces its body.
    pub body: &'r BodyPlan,
    /// How a dual run finds the corresponding event of the other side. `None`: the event is not
    /// compared.
    pub correlate: Option<&'r Correlate>,
    /// Comparison rules for these bodies.
    pub compare: &'r [CompareRule],
}

impl Events {
    /// Returns the header field in which receivers get the event name, unless the body contains it.
    pub fn told_in(&self) -> Option<&str> {
        match &self.told {
            Some(EventName::Header(name)) => Some(name),
            Some(EventName::Body(_)) | None => None,
        }
    }

    /// Returns the first route with a result of this name.
    pub fn telling(&self, name: &str) -> Option<&EventRoute> {
        self.routes.iter().find(|route| route.delivered().is_some_and(|told| **told.name == *name))
    }

    /// Returns the route of the event with this name on the sending side.
    pub fn route(&self, sent: &str) -> Option<&EventRoute> {
        self.routes.iter().find(|route| &*route.sent == sent)
    }
}
