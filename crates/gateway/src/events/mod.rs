//! Events (webhooks): received from a service's new version, and delivered to receivers of the old
//! one. [`receive`] verifies the sender and queues; [`deliver`] translates, signs and sends;
//! [`crate::signature`] implements the signature schemes; the queue is in `store::events`. The plan
//! translates events. While the old version still sends its own events, [`dual`] selects which one
//! is delivered and compares them.
//!
//! An acknowledged event is durable and delivered at least once, in order per key. An event that
//! its receiver repeatedly rejects becomes a dead letter for an operator to handle; later events
//! are still delivered.

pub mod deliver;
pub mod dual;
pub mod readers;
pub mod receive;
mod translate;

use crate::clock::Clock;
use crate::proxy::program::CurrentProgram;
use crate::signature::Signature;
use crate::store::Store;
use dual::EventsDual;
use http::Uri;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use switchback_json::Value;
use tokio::sync::Notify;

/// A receiver of events and the sources of its events.
#[derive(Debug)]
pub struct Receiver {
    /// Unique name in the configuration, in metrics and in the store.
    pub name: String,
    /// The path at which the service delivers events.
    pub path: String,
    /// Verifies the service's signatures.
    pub verify: Signature,
    /// The receiver's URL.
    pub url: Uri,
    /// Signs deliveries to the receiver; `None` if it does not verify signatures.
    pub sign: Option<Signature>,
    /// The source of the old version's own events, while that version is live.
    pub own: Option<OwnEvents>,
}

/// The source of events that receivers accept without translation.
#[derive(Debug)]
pub struct OwnEvents {
    /// The path at which the service delivers events.
    pub path: String,
    /// Verifies the service's signatures.
    pub verify: Signature,
}

/// Limits of receiving and delivering events.
#[derive(Clone, Copy, Debug)]
pub struct EventSettings {
    /// Maximum number of queued events per receiver, dead letters included.
    pub queue: u64,
    /// Maximum total size of their bodies, in bytes.
    pub queue_bytes: u64,
    /// Maximum size of one event in bytes; a larger one is rejected with 413.
    pub body_bytes: u64,
    /// Maximum difference between a signature's timestamp and the current time.
    pub tolerance: Duration,
    /// Time for which message ids are remembered to detect duplicates.
    pub remember: Duration,
    /// Time limit for a receiver's response.
    pub timeout: Duration,
    /// Maximum number of concurrent deliveries.
    pub deliveries: usize,
    /// Number of attempts after which an event becomes a dead letter.
    pub attempts: u32,
    /// Pause after the first failed attempt; it doubles with each further one.
    pub retry_first: Duration,
    /// Longest pause between two attempts.
    pub retry_max: Duration,
    /// Maximum number of events per receiver that await their partner.
    pub pairs: u64,
    /// Maximum total size of their bodies, in bytes.
    pub pairs_bytes: u64,
}

/// State that receiving and delivering share.
#[derive(Clone)]
pub struct EventParts {
    /// The receivers, by path.
    pub receivers: Receivers,
    /// Limits of queue, body, signature and delivery.
    pub settings: EventSettings,
    /// The current program, whose pack names and translates the events.
    pub program: CurrentProgram,
    /// Stores events before they are acknowledged.
    pub store: Store,
    /// Provides the current time for signatures.
    pub clock: Clock,
    /// Compares events of both sides.
    pub dual: EventsDual,
    /// Notified when an event is ready for delivery.
    pub queued: Arc<Notify>,
}

/// All receivers, by path.
#[derive(Clone, Debug, Default)]
pub struct Receivers {
    by_path: Arc<HashMap<String, (Arc<Receiver>, EventSender)>>,
}

/// The sender at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventSender {
    /// The side whose events are translated.
    Other,
    /// The side that receivers know.
    Own,
}

impl Receivers {
    /// Indexes receivers by path. If two share a path, the later one replaces the earlier.
    pub fn new(receivers: Vec<Receiver>) -> Receivers {
        let mut by_path = HashMap::new();
        for receiver in receivers.into_iter().map(Arc::new) {
            if let Some(own) = &receiver.own {
                by_path.insert(own.path.clone(), (Arc::clone(&receiver), EventSender::Own));
            }
            by_path.insert(receiver.path.clone(), (receiver, EventSender::Other));
        }
        Receivers { by_path: Arc::new(by_path) }
    }

    /// Returns whether there are no receivers.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Receiver>> {
        let of = self.by_path.values().filter(|(_, sender)| *sender == EventSender::Other);
        of.map(|(receiver, _)| receiver)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.all().map(|receiver| receiver.name.as_str())
    }

    fn at(&self, path: &str) -> Option<(&Arc<Receiver>, EventSender)> {
        self.by_path.get(path).map(|(receiver, sender)| (receiver, *sender))
    }

    fn receiver(&self, name: &str) -> Option<&Arc<Receiver>> {
        self.all().find(|receiver| receiver.name == name)
    }
}

/// Returns the member at these names below a body.
fn member<'v>(names: &[Arc<str>], body: &'v Value) -> Option<&'v Value> {
    names.iter().try_fold(body, |value, name| value.as_object()?.get(name))
}
