//! Numbered findings about source text, with their places.
//!
//! This module contains source files, spans, findings, their ordered collection, suggestions for
//! misspelt names, and rendering as text or JSON. It does not contain the rules. Each reader of
//! text has a factory for its own findings (`faults.rs` in its folder), so that each mistake has
//! one wording. The table [`Code`] contains their numbers.

mod codes;
mod edit;
mod finding;
mod render;
mod source;
mod suggest;

pub use codes::Code;
pub use edit::{TextEdit, apply, plain_or_quoted, write_like};
pub(crate) use finding::{Aspect, NameKind, NamedUses};
pub use finding::{Finding, Findings, GroupedPlaces, Help, Severity, Suggestion, UNFINISHED};
pub use render::{Colour, to_json, to_text};
pub use source::{FileId, Position, Sources, Span};
#[cfg(test)]
pub(crate) use suggest::work;
pub use suggest::{did_you_mean, suggest};
