//! JSON without loss and without IO: number text, member order, the escapes inside strings, null
//! against absent and `[]` against `{}` all survive a read and a write.
//!
//! What lives here: the [`Value`] document, the push [`Reader`] that checks RFC 8259 on chunks cut
//! anywhere, [`raw`] helpers for values that stay bytes, [`Limits`] and [`Error`]. What does not:
//! any member name of any service, plans, and the streaming transcoder (`translate`).
//!
//! Decisions to know before editing:
//!
//! - There is one grammar, in [`reader`]. [`Value::parse`] is that reader with a sink that builds,
//!   so document and stream cannot disagree about what is JSON.
//! - Stricter than the RFC where it leaves a choice that two parsers could take differently: a
//!   member that occurs twice in one object (after decoding escapes), an escaped lone surrogate, a
//!   byte order mark and bytes that are not UTF-8 are errors. Numbers are text: no range, no rounding.
//! - Nothing recurses over a document, not even dropping or cloning it.

// What no other crate can reach says so, and the compiler finds it when nothing calls it.
#![warn(unreachable_pub)]
#![deny(missing_docs)]

mod error;
mod grammar;
mod keys;
mod limits;
mod object;
pub mod raw;
pub mod reader;
pub mod scan;
mod serde_bridge;
pub mod text;
mod utf8;
mod value;

pub use error::{Error, ErrorKind, Expected, Limit};
pub use grammar::{Gap, Grammar, Open, is_scalar_start};
pub use keys::KeyLedger;
pub use limits::Limits;
pub use object::Object;
pub use reader::{Container, Reader, Scalar, Sink, Validator, validate};
pub use utf8::Utf8Checker;
pub use value::{Array, Number, Str, Value, ValueBuilder};

#[cfg(test)]
mod tests;
