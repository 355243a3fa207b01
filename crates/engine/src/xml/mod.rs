//! Conversion between XML and JSON by the layout of a contract.
//!
//! Both directions are buffered: the elements of a list may be far apart in a document, and
//! attributes precede elements regardless of the order of JSON members. Depth, values and bytes are
//! limited as for JSON documents. A document has no DTD and no entities but the five predefined
//! ones, so its text never expands.
//!
//! Text that does not match its declared type remains a string and is validated later, as in forms.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{decode, tree};
pub use encode::encode;

use std::fmt;

/// Returns whether the first character of a text can start XML.
pub fn begins_as_xml(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
}

/// Namespace of `xsi:nil` (XML Schema part 1, section 2.6).
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// Maximum nesting depth, which bounds recursion regardless of the limits.
const DEPTH_MAX: usize = 256;
/// Name of the text of an element without a declared type.
const TEXT: &str = "#text";
/// First character of the names of attributes of an element without a declared type.
const ATTRIBUTE: char = '@';

/// A text that is not XML of its layout. Contains no values of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlError {
    /// 1-based line.
    pub line: usize,
    /// 1-based column, in characters.
    pub column: usize,
    /// The cause.
    pub cause: XmlCause,
}

/// The cause of an [`XmlError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlCause {
    /// The text is not well-formed, or does not match its layout.
    Malformed(&'static str),
    /// A limit was exceeded.
    Limit(&'static str),
}

impl XmlError {
    /// Returns whether a limit was exceeded, as opposed to a malformed text.
    pub fn is_limit(&self) -> bool {
        matches!(self.cause, XmlCause::Limit(_))
    }
}

impl fmt::Display for XmlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (XmlCause::Malformed(cause) | XmlCause::Limit(cause)) = self.cause;
        write!(out, "line {}, column {}: {cause}", self.line, self.column)
    }
}

impl std::error::Error for XmlError {}
