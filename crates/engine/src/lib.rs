//! Processing of messages without sockets, files, clocks or tasks: translation by compiled plans,
//! bodies in XML, comparison of answers, redaction before storage, statistics of a dual run, and HTTP
//! Archives.

// Unreachable `pub` items must be `pub(crate)`, so that the compiler reports them as dead code.
#![warn(unreachable_pub)]
#![deny(missing_docs)]

pub mod diff;
pub mod evidence;
pub mod har;
pub mod redact;
pub mod translate;
pub mod xml;
