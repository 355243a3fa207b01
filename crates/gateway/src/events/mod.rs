//! Events: what a service calls by itself, taken in where its new version delivers it, and delivered to receivers that know the
//! old one. [`receive`] checks who sends and queues; [`deliver`] translates, signs and sends; [`signature`] knows the forms of
//! signatures; the queue itself is `store::events`. How an event becomes another is the plan's. While the old version still sends
//! its own events, [`dual`] decides which of the two is delivered, and has them compared.
//!
//! What was answered with a success is durable, and is delivered at least once, in order for each key. What a receiver will not
//! take, again and again, ends as a dead letter, and somebody looks after it; the events behind it go on.

pub mod deliver;
pub mod dual;
pub mod readers;
pub mod receive;
pub mod signature;

use http::Uri;
use signature::Signature;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Who gets events, and from whom.
#[derive(Debug)]
pub struct Receiver {
    /// Stands in the configuration, in metrics and in the store; no two receivers share one.
    pub name: String,
    /// The path at which the service delivers its events.
    pub path: String,
    /// What their signatures are held against.
    pub verify: Signature,
    /// Where they are delivered.
    pub url: Uri,
    /// How they are signed for their receiver; none where it looks at no signature.
    pub sign: Option<Signature>,
    /// Where the version that the receiver knows delivers its own events, while it lives.
    pub own: Option<OwnEvents>,
}

/// Where a version delivers events that its receivers know as they are.
#[derive(Debug)]
pub struct OwnEvents {
    /// The path at which they come.
    pub path: String,
    /// What their signatures are held against.
    pub verify: Signature,
}

/// Bounds of all that is about events.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Events that may wait for one receiver, dead ones included.
    pub queue: u64,
    /// Bytes of their bodies.
    pub queue_bytes: u64,
    /// Most bytes of one event; a larger one is refused with 413.
    pub body_bytes: u64,
    /// How far the moment of a signature may be from ours.
    pub tolerance: Duration,
    /// How long messages are known again.
    pub remember: Duration,
    /// Most time for the answer of a receiver.
    pub timeout: Duration,
    /// Deliveries under way at one time.
    pub deliveries: usize,
    /// Tries after which an event is a dead letter.
    pub attempts: u32,
    /// The pause after the first try that failed; it doubles from try to try.
    pub retry_first: Duration,
    /// The longest pause between two tries.
    pub retry_max: Duration,
    /// Events of one receiver that may wait for the one of the other side.
    pub pairs: u64,
    /// Bytes of their bodies.
    pub pairs_bytes: u64,
}

/// All receivers, by name and by path.
#[derive(Clone, Debug, Default)]
pub struct Receivers {
    by_path: Arc<HashMap<String, (Arc<Receiver>, Sender)>>,
}

/// Who delivers at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// The side of which events are translated.
    Other,
    /// The side that the receiver knows.
    Own,
}

impl Receivers {
    /// Receivers by their paths; of two with one path the later is kept.
    pub fn new(receivers: Vec<Receiver>) -> Receivers {
        let mut by_path = HashMap::new();
        for receiver in receivers.into_iter().map(Arc::new) {
            if let Some(own) = &receiver.own {
                by_path.insert(own.path.clone(), (Arc::clone(&receiver), Sender::Own));
            }
            by_path.insert(receiver.path.clone(), (receiver, Sender::Other));
        }
        Receivers { by_path: Arc::new(by_path) }
    }

    /// Whether nobody gets events.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Receiver>> {
        let of = self.by_path.values().filter(|(_, sender)| *sender == Sender::Other);
        of.map(|(receiver, _)| receiver)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.all().map(|receiver| receiver.name.as_str())
    }

    fn at(&self, path: &str) -> Option<(&Arc<Receiver>, Sender)> {
        self.by_path.get(path).map(|(receiver, sender)| (receiver, *sender))
    }

    fn named(&self, name: &str) -> Option<&Arc<Receiver>> {
        self.all().find(|receiver| receiver.name == name)
    }
}
