//! Parses YAML into a tree in which every key and every value has its place. The meaning of keys is
//! not part of this module.
//!
//! The dialect is a subset of YAML 1.2, so that people, editors and all parsers interpret a file in
//! the same way: one document; unique text keys; no merge keys or tags; numbers in JSON notation;
//! `yes`, `no`, `on`, `off`, `y` and `n` only in quotes. An alias inserts a copy of its value, which
//! counts towards the limits. One run reports all errors, except that a syntax error stops the
//! parser, because the rest cannot be interpreted.
//!
//! Documents written by others are read leniently ([`read_document`]): as JSON if they are JSON,
//! otherwise like common YAML parsers do.
//!
//! All readers of trees use [`Fields`] and the functions of [`Node`], so that errors such as an
//! unknown key have the same wording everywhere.

mod anchors;
mod build;
mod faults;
mod fields;
mod json;
mod layout;
mod lenient;
mod scalar;
mod schema;

pub(crate) use build::without_duplicates;
pub use fields::{Fields, KeyEntry, Keys};
pub use layout::format;
pub use schema::described;

use crate::diagnostic::{FileId, Findings, Sources, Span};
use std::sync::Arc;

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// From the first to the last character. For a key without a value, the span of the key.
    pub span: Span,
    /// The value.
    pub kind: Kind,
}

/// A value without its place.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`, `~`, or an absent value.
    Null,
    /// Plain `true` or `false`.
    Bool(bool),
    /// A plain number in its original notation, which is also valid JSON.
    Number(String),
    /// Any other scalar.
    String(String, TextStyle),
    /// A sequence. Clones of a tree share their contents, because most of them are only read.
    Seq(Arc<Vec<Node>>),
    /// A mapping in text order, with unique keys.
    Map(Arc<Vec<(Key, Node)>>),
}

/// The notation of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    /// Without quotes.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// As a `|` or `>` block.
    Block,
}

/// A key of a mapping. Keys are always texts, including numbers and words such as `no`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The text without quotes.
    pub name: String,
    /// Its place.
    pub span: Span,
}

/// Limits of one file, for all readers.
pub mod bounds {
    /// The limits of one file.
    #[derive(Debug, Clone, Copy)]
    pub struct YamlLimits {
        /// Maximum size in bytes.
        pub bytes: usize,
        /// Maximum nesting depth of sequences and mappings.
        pub depth: usize,
        /// Maximum number of values; keys and scalars count.
        pub nodes: usize,
    }

    /// Limits of files written for the gateway.
    pub const STRICT: YamlLimits = YamlLimits { bytes: BYTES_MAX, depth: DEPTH_MAX, nodes: NODES_MAX };
    /// Limits of documents written by others. The number of nodes bounds the memory of the tree.
    pub const DOCUMENT: YamlLimits = YamlLimits { bytes: DOCUMENT_BYTES_MAX, depth: 200, nodes: 3_000_000 };

    /// Maximum size of a file in bytes.
    pub const BYTES_MAX: usize = 16 * 1024 * 1024;
    /// Maximum size of a document in bytes.
    pub const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;
    /// Maximum nesting depth of sequences and mappings.
    pub const DEPTH_MAX: usize = 64;
    /// Maximum number of values of one file; keys and scalars count.
    pub const NODES_MAX: usize = 1_000_000;
}

/// Adds a file to `sources` and parses it.
///
/// Returns `None` if there is no tree: the file is not UTF-8, has a syntax error, contains only
/// comments, or exceeds a limit. Other errors are reported, and the rest of the file is read.
pub fn parse(sources: &mut Sources, name: &str, bytes: &[u8], findings: &mut Findings) -> Option<Node> {
    let file = add(sources, name, bytes, &bounds::STRICT, findings)?;
    let (root, aliases) = build::tree(sources.text(file), file, sources.next_id(), findings);
    for alias in aliases {
        sources.add_copy(file, alias);
    }
    root
}

/// Like [`parse`] for a document written by others: JSON as JSON, everything else like common YAML
/// parsers do.
pub fn read_document(
    sources: &mut Sources,
    name: &str,
    bytes: &[u8],
    findings: &mut Findings,
) -> Option<Node> {
    let file = add(sources, name, bytes, &bounds::DOCUMENT, findings)?;
    let text = sources.text(file);
    match json::parse_json(text, file, findings) {
        json::JsonOutcome::Read(node) => Some(node),
        json::JsonOutcome::OverBounds => None,
        json::JsonOutcome::NotJson => lenient::tree(text, file, findings),
    }
}

/// Adds a file, unless it exceeds the size limit or is not UTF-8.
fn add(
    sources: &mut Sources,
    name: &str,
    bytes: &[u8],
    bounds: &bounds::YamlLimits,
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
            // The replacement character has three bytes.
            findings.push(faults::not_utf8(Span::new(file, at, at + 3), bytes[error.valid_up_to()]));
            None
        }
    }
}

impl Node {
    /// Returns the text, if it is one. Numbers and booleans are not texts.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text, _) => Some(text),
            _ => None,
        }
    }

    /// Returns the items, if it is a list.
    pub fn as_seq(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the entries, if it is a map.
    pub fn as_map(&self) -> Option<&[(Key, Node)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value under a key, if it is a map with this key.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.as_map()?.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    /// Changes the place of the value, and of each key and value in it.
    pub(crate) fn each_span(&mut self, change: &mut impl FnMut(&mut Span)) {
        change(&mut self.span);
        match &mut self.kind {
            Kind::Seq(items) => Arc::make_mut(items).iter_mut().for_each(|item| item.each_span(change)),
            Kind::Map(entries) => Arc::make_mut(entries).iter_mut().for_each(|(key, value)| {
                change(&mut key.span);
                value.each_span(change);
            }),
            _ => {}
        }
    }

    /// Returns whether it is null.
    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// Returns the name of the kind, for messages.
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
