//! Recording of live traffic: client requests, the resulting calls, and the responses. An operator
//! opens a capture on the admin port. While it is open, a share of the requests is recorded outside
//! the data path, redacted ([`Redaction`]), and returned as entries of an HTTP Archive.
//!
//! A capture never delays a request: bodies are copied while they stream, up to a limit, and
//! requests beyond the limit on concurrent recordings are counted instead of recorded. The layers
//! that observe the traffic are in `proxy::layers::record`, the archive format in `har`, and
//! replays in `replay`.

mod recording;
mod redaction;
mod tap;
#[cfg(test)]
mod tests;

pub(crate) use recording::CallRecord;
pub(crate) use recording::{Head, Recording, fields};
pub use redaction::Redaction;
pub use tap::{CaptureFilter, Captured, OpenCapture, Tap};
