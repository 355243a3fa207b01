//! Compiles mapping files to plans: reading (`language`, `load`), checking, and lowering.

mod cascade;
mod compare;
mod compile;
mod conformance;
mod corrections;
mod disclosures;
mod errors;
mod events;
mod examples;
mod expected;
mod faults;
mod form;
pub(crate) mod fragments;
mod hosts;
pub mod kept;
mod language;
mod lens;
mod literal;
pub mod load;
mod made;
mod manifest;
#[cfg(test)]
mod manual_pages;
mod media;
mod message_place;
mod named_schema;
mod names;
mod references;
mod routes;
pub mod schema;
pub mod shapes;
mod texts;

pub use compile::{Compiled, Compiler, compile, contracts};
pub use named_schema::named_schema;
pub use references::{ResolvedKind, ResolvedName};

use language as ast;

use crate::diagnostic::{Sources, Span};
use switchback_plan::Origin;

/// Returns the file and line that a plan records as its origin.
fn origin(sources: &Sources, span: Span) -> Origin {
    Origin { file: sources.name(span.file).into(), line: sources.start(span).line }
}
