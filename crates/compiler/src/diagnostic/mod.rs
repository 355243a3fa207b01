//! Numbered findings about source text, and where in the text they are.
//!
//! Here: source files, spans, findings, their collection in a stable order, "did you mean", and rendering
//! as text or JSON. Not here: the rules that find something. Each reader of text keeps a small factory of
//! its own findings (`faults.rs` beside it), so that one mistake has one wording; the numbers of all of
//! them are in one table, [`Code`].

mod codes;
mod finding;
mod render;
mod source;
mod suggest;

pub use codes::Code;
pub(crate) use finding::{Aspect, NameKind, Named};
pub use finding::{Finding, Findings, Group, Severity};
pub use render::{Colour, to_json, to_text};
pub use source::{FileId, Position, Sources, Span};
pub use suggest::{did_you_mean, suggest};
