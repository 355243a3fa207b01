//! Streaming JSON that preserves number text, member order, escapes, null against absent and `[]`
//! against `{}`. No input or output.
//!
//! The crate contains the [`Value`] document, the push [`Reader`] that checks RFC 8259 on chunks,
//! the faster [`Grammar`], helpers for values as bytes ([`raw`]), [`Limits`] and [`Error`]. It
//! contains no member names of any service, no plans, and no translation (`translate`).
//!
//! Decisions to know before editing:
//!
//! - [`Value::parse`] is a [`Reader`] with a sink that builds the document, so document and stream
//!   cannot disagree. [`Grammar`] checks less and is compared with the reader by tests. All of them
//!   share the scans of [`text`] and [`scan`].
//! - Duplicate names (after decoding), escaped lone surrogates, a byte order mark and invalid UTF-8
//!   are errors, because parsers disagree about them. Numbers are text, without range and rounding.
//! - No function recurses over a document, including `Drop` and `Clone`.

// Items that no other crate uses must not be `pub`, so that the compiler reports them when they
// become unused.
#![warn(unreachable_pub)]
#![deny(missing_docs)]

mod error;
mod grammar;
mod keys;
mod limits;
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
pub use reader::{Container, Reader, Scalar, Sink, Validator, validate};
pub use utf8::Utf8Checker;
pub use value::{Array, Number, Object, Str, Value, ValueBuilder};

#[cfg(test)]
mod tests;
