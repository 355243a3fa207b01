//! Recording of live traffic: what clients asked, which calls that became, what came back. An operator opens a capture on
//! the admin port; while it is open, a share of the requests is recorded beside the data path, made fit to be kept
//! ([`Redaction`]), and handed over as entries of an HTTP Archive.
//!
//! Nobody waits for a capture: bodies are copied while they go by, up to a bound; where there is no room for another
//! recording, the request goes unrecorded and is counted. What lives elsewhere: the layers that watch the traffic
//! (`proxy::layers::record`), the archive's form (`har`), running it again (`replay`).

mod recording;
mod redaction;
mod tap;
#[cfg(test)]
mod tests;

pub(crate) use recording::CallRecord;
pub(crate) use recording::{Head, Recording, fields};
pub use redaction::Redaction;
pub use tap::{Capture, Captured, Tap, Wanted};
