//! Events: the calls that a service makes by itself, delivered to those who know the other side's only.

use super::{BodyPlan, Loss, Origin, SideId};
use std::sync::Arc;

/// How the events of one side become those of the other.
#[derive(Debug)]
pub struct Events {
    /// The side that sends them.
    pub from: SideId,
    /// Where the name of an event stands, on the side that sends.
    pub name: EventName,
    /// The header field in which the other side's receivers are told it, where not in the body.
    pub told_in: Option<String>,
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
    pub becomes: Becomes,
    /// Members of the body that lead to its key: events of one key are delivered in the order in which they came. Empty: all
    /// events of a receiver are.
    pub key: Vec<Arc<str>>,
    pub losses: Vec<Loss>,
    pub origin: Origin,
}

/// What receivers of the other side get of an event.
#[derive(Debug)]
pub enum Becomes {
    Event {
        name: Arc<str>,
        body: BodyPlan,
    },
    /// Nothing, and why.
    Dropped {
        because: String,
    },
}

impl Events {
    /// What becomes of the event of this name.
    pub fn route(&self, sent: &str) -> Option<&EventRoute> {
        self.routes.iter().find(|route| &*route.sent == sent)
    }
}
