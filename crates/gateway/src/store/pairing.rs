//! Values that pair an event with one of the other side.

use crate::secret::Secret;
use std::time::Duration;

/// The data that pairs an event with one of the other side.
#[derive(Debug)]
pub(crate) struct PairedEvent<'e> {
    /// The operation under which evidence is counted, such as `event noteChanged`.
    pub operation: &'e str,
    /// The correlation key, equal for both events.
    pub key: &'e str,
    /// Its body in the receivers' form, if the two are to be compared.
    pub body: Option<&'e [u8]>,
    /// The hash of the serving pack.
    pub pack: &'e str,
    /// Longest time to wait for the partner.
    pub within: Duration,
    pub bounds: PairBounds,
}

/// Limits of waiting events per receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairBounds {
    pub events_max: u64,
    pub bytes_max: u64,
}

/// The result of looking for the partner.
#[derive(Debug)]
pub(crate) enum PairLookup {
    /// The event has no correlation key.
    None,
    /// The partner has not arrived; the event waits for it.
    Waits,
    /// The partner has not arrived, and there is no room to wait.
    NoRoom,
    /// The partner was found.
    Met(Met),
}

/// The event that arrived first.
#[derive(Debug)]
pub(crate) struct Met {
    /// The body in the receivers' form; `None` if the two are not to be compared.
    pub body: Option<Secret<Vec<u8>>>,
    /// The hash of the pack that served at that time.
    pub pack: String,
}
