//! Events: the calls that a service makes by itself, delivered to those who know the other side's only.

use super::{BodyPlan, CompareRule, Loss, Origin, SideId};
use std::sync::Arc;
use std::time::Duration;

/// How the events of one side become those of the other.
#[derive(Debug)]
pub struct Events {
    /// The side that sends them.
    pub from: SideId,
    /// Where the name of an event stands, on the side that sends.
    pub name: EventName,
    /// Where it stands in the events of the other side; none where the pack does not say it.
    pub told: Option<EventName>,
    /// One for each event of the side that sends, in the order of its contract.
    pub routes: Vec<EventRoute>,
}

/// Where the name of an event stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventName {
    /// A header field, in lower case.
    Header(String),
    /// Members of the body, from the top.
    Body(Vec<Arc<str>>),
}

/// What becomes of one event.
#[derive(Debug)]
pub struct EventRoute {
    /// Its name on the side that sends.
    pub sent: Arc<str>,
    /// What is delivered for it.
    pub becomes: Becomes,
    /// Members of the body that lead to its key: events of one key are delivered in the order in which they came. Empty: all
    /// events of a receiver are.
    pub key: Vec<Arc<str>>,
    /// The same for the events that the other side sends itself, in their bodies.
    pub own_key: Vec<Arc<str>>,
    /// Members that receivers of the other side do not get.
    pub losses: Vec<Loss>,
    /// Where the mapping declares it.
    pub origin: Origin,
}

/// What receivers of the other side get of an event.
#[derive(Debug)]
pub enum Becomes {
    /// An event of the other side.
    Event {
        /// Its name there.
        name: Arc<str>,
        /// What a dual run calls it, beside the operations of its side: `event noteChanged`.
        operation: Arc<str>,
        /// What makes its body.
        body: BodyPlan,
        /// How a dual run finds the event of the other side that tells the same; none: it compares none.
        correlate: Option<Correlate>,
        /// What is declared of comparing such bodies.
        compare: Vec<CompareRule>,
    },
    /// Nothing, and why.
    Dropped {
        /// As a sentence of the mapping.
        because: String,
    },
}

/// By what two events, one of each side, are the same one told twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correlate {
    /// Members of the body in the form that receivers know, each from the top: equal values there, equal events.
    pub by: Vec<Vec<Arc<str>>>,
    /// How long the one waits for the other.
    pub within: Duration,
}

impl EventRoute {
    /// What receivers are told, and how it is made; none where they are told nothing.
    pub fn told(&self) -> Option<ToldEvent<'_>> {
        match &self.becomes {
            Becomes::Event { name, operation, body, correlate, compare } => {
                Some(ToldEvent { name, operation, body, correlate: correlate.as_ref(), compare })
            }
            Becomes::Dropped { .. } => None,
        }
    }
}

/// An event as its receivers know it.
#[derive(Clone, Copy, Debug)]
pub struct ToldEvent<'r> {
    /// Its name there.
    pub name: &'r Arc<str>,
    /// What a dual run calls it.
    pub operation: &'r Arc<str>,
    /// What makes its body.
    pub body: &'r BodyPlan,
    /// How a dual run finds the event of the other side that tells the same; none: it compares none.
    pub correlate: Option<&'r Correlate>,
    /// What is declared of comparing such bodies.
    pub compare: &'r [CompareRule],
}

impl Events {
    /// The header field in which receivers are told the name, where not the body says it.
    pub fn told_in(&self) -> Option<&str> {
        match &self.told {
            Some(EventName::Header(name)) => Some(name),
            Some(EventName::Body(_)) | None => None,
        }
    }

    /// The first event that becomes the one of this name.
    pub fn telling(&self, name: &str) -> Option<&EventRoute> {
        self.routes.iter().find(|route| route.told().is_some_and(|told| **told.name == *name))
    }

    /// What becomes of the event of this name.
    pub fn route(&self, sent: &str) -> Option<&EventRoute> {
        self.routes.iter().find(|route| &*route.sent == sent)
    }
}
