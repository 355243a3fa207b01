//! What operators see while the program runs: logs, metrics, trace context, and the rules that keep secrets and forged
//! lines out of them. Nothing here decides how a request is answered.
//!
//! Two decisions to know before editing: metrics carry the operation and the enrolled client name, never a path or a
//! token; and a text that came from outside passes [`escape::Escaped`] before it reaches a log line.

pub(crate) mod access;
mod access_line;
pub(crate) mod escape;
pub mod log;
pub mod metrics;
pub(crate) mod non_blocking;
pub mod otlp;
mod process;
pub mod reading;
pub mod trace;
