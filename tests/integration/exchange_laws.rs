//! Laws of complete exchanges on generated packs: two OpenAPI documents that differ by some known
//! edits, the pack that an author would write first, and an independent judge of every message in
//! between.
//!
//! The judge reads the raw documents with the `jsonschema` crate. It shares no code with the
//! compiler, so that a keyword that the compiler does not read is still judged.

mod bounds;
mod draw;
mod edits;
mod judge;
mod laws;
mod services;
mod values;
