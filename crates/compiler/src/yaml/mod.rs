//! YAML text as a tree in which every key and every value knows its place. No meaning: what a key is for is
//! the business of contracts, mappings and configuration.
//!
//! The dialect is smaller than YAML 1.2, so that a file reads the same to people, editors and every parser:
//! one document; text keys, each once; no anchors, merge keys or tags; numbers as JSON writes them; `yes`,
//! `no`, `on`, `off`, `y` and `n` only in quotes. All that can be found in one run is reported in one run; a
//! syntax error ends the file, since nothing after it can be trusted.
//!
//! Documents that somebody else wrote are read leniently ([`read_document`]): as the usual parsers read them, or as JSON
//! where they are JSON.
//!
//! [`Fields`] and the readers of [`Node`] are the one way in which all front ends take a tree apart, so that
//! an unknown key or a text in place of a list reads the same everywhere.

mod build;
mod faults;
mod fields;
mod json;
mod lenient;
mod scalar;

pub use fields::{Fields, Keys};

use crate::diagnostic::{FileId, Findings, Sources, Span};

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// From its first to its last character; for a key without a value, the key.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`, `~`, or nothing after the key.
    Null,
    /// Plain `true` or `false`.
    Bool(bool),
    /// A plain number, as it was written, which is also valid JSON.
    Number(String),
    /// Any other scalar.
    String(String, Style),
    /// A sequence.
    Seq(Vec<Node>),
    /// A mapping, in the order of the text. No two keys have one name.
    Map(Vec<(Key, Node)>),
}

/// How a text was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// As a `|` or `>` block.
    Block,
}

/// A key of a mapping. Numbers and words like `no` are texts here: a key is never anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its text without quotes.
    pub name: String,
    /// Its place.
    pub span: Span,
}

/// Bounds of one file. They hold for every file that any front end reads.
pub mod bounds {
    /// What one file may have.
    #[derive(Debug, Clone, Copy)]
    pub struct Bounds {
        /// Size of its text.
        pub bytes: usize,
        /// Sequences and mappings inside one another.
        pub depth: usize,
        /// Its values, each key and each scalar counted.
        pub nodes: usize,
    }

    /// Files that are written for the gateway.
    pub const STRICT: Bounds = Bounds { bytes: BYTES_MAX, depth: DEPTH_MAX, nodes: NODES_MAX };
    /// Documents that somebody else wrote. Fifty values of a document take about as much memory as a page of text.
    pub const DOCUMENT: Bounds = Bounds { bytes: DOCUMENT_BYTES_MAX, depth: 200, nodes: 3_000_000 };

    /// Size of a file's text.
    pub const BYTES_MAX: usize = 16 * 1024 * 1024;
    /// Size of the text of a document that somebody else wrote.
    pub const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;
    /// Sequences and mappings inside one another.
    pub const DEPTH_MAX: usize = 64;
    /// Values of one file, each key and each scalar counted.
    pub const NODES_MAX: usize = 1_000_000;
}

/// Adds a file to `sources` and reads it.
///
/// `None` when there is no tree: bytes that are not UTF-8, a syntax error, nothing but comments, or a bound
/// passed. Everything else is reported and read around.
pub fn read(sources: &mut Sources, name: &str, bytes: &[u8], findings: &mut Findings) -> Option<Node> {
    let file = add(sources, name, bytes, &bounds::STRICT, findings)?;
    build::tree(sources.text(file), file, findings)
}

/// The same for a document that somebody else wrote: JSON as JSON, everything else as the usual YAML parsers read it.
pub fn read_document(
    sources: &mut Sources,
    name: &str,
    bytes: &[u8],
    findings: &mut Findings,
) -> Option<Node> {
    let file = add(sources, name, bytes, &bounds::DOCUMENT, findings)?;
    let text = sources.text(file);
    match json::read(text, file, findings) {
        json::Reading::Read(node) => Some(node),
        json::Reading::OverBounds => None,
        json::Reading::NotJson => lenient::tree(text, file, findings),
    }
}

/// Adds a file whose text can be read.
fn add(
    sources: &mut Sources,
    name: &str,
    bytes: &[u8],
    bounds: &bounds::Bounds,
    findings: &mut Findings,
) -> Option<FileId> {
    if bytes.len() > bounds.bytes {
        let file = sources.add(name, "");
        findings.push(faults::too_many_bytes(Span::new(file, 0, 0), bytes.len(), bounds));
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(sources.add(name, text)),
        Err(error) => {
            let file = sources.add(name, String::from_utf8_lossy(bytes));
            let at = error.valid_up_to() as u32;
            findings.push(faults::not_utf8(Span::new(file, at, at + 3), bytes[error.valid_up_to()]));
            None
        }
    }
}

impl Node {
    /// The text, if it is one. Numbers and booleans are not.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text, _) => Some(text),
            _ => None,
        }
    }

    /// The values, if it is a list.
    pub fn as_seq(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if it is a map.
    pub fn as_map(&self) -> Option<&[(Key, Node)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value under a key, if it is a map that has it.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.as_map()?.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// The kind in a word, for messages.
    pub fn kind_word(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::String(..) => "a text",
            Kind::Seq(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }
}

#[cfg(test)]
mod tests;
