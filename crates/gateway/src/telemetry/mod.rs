//! Observability: logs, metrics and traces, and the rules that protect them from secrets and forged
//! lines. This module never affects how a request is answered.
//!
//! Metrics carry the operation and the client name, never a path or a token. External text passes
//! [`escape::Escaped`] before it reaches a log line.

pub(crate) mod access_line;
pub(crate) mod escape;
pub mod log;
pub mod metrics;
pub(crate) mod non_blocking;
#[cfg_attr(not(feature = "otlp"), path = "otlp_off.rs")]
pub mod otlp;
mod process;
pub mod reading;
pub mod trace;
