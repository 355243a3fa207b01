//! What is done with messages, without sockets, files, clocks or tasks: translation through plans, comparison of answers,
//! redaction of what is kept, the statistics of a dual run, and HTTP Archives.

// What no other crate can reach says so, and the compiler finds it when nothing calls it.
#![warn(unreachable_pub)]
#![deny(missing_docs)]

pub mod diff;
pub mod evidence;
pub mod har;
pub mod redact;
pub mod translate;
