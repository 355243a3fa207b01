//! The layout of XML bodies, derived from a contract: which member of the JSON tree is an element,
//! an attribute, a repeated element or the text of its element (OpenAPI 3.0, section 4.7.26).
//!
//! Types refer to each other by index, so that the layout of a recursive type is finite.

use super::json::Key;
use std::sync::Arc;

/// The layout of one XML document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlFormat {
    /// Value of `Content-Type` for written documents, with its charset where it needs one.
    pub content_type: Arc<str>,
    /// Name of the root element.
    pub root: XmlName,
    /// Index of the root's type in `types`.
    pub of: usize,
    /// All types of the document.
    pub types: Vec<XmlType>,
}

/// The name of an element or attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlName {
    /// Name without a prefix.
    pub local: Arc<str>,
    /// Namespace. `None`: any namespace matches, and written elements inherit the default namespace
    /// of their parent.
    pub namespace: Option<Arc<str>>,
    /// Prefix of written names.
    pub prefix: Option<Arc<str>>,
}

/// The layout of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlType {
    /// Layout of a value other than null.
    pub kind: XmlKind,
    /// Whether null is allowed. An element that is null has the attribute `xsi:nil="true"`.
    pub nullable: bool,
}

/// The layout of a value other than null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlKind {
    /// Any value. Read as a text, or as an object of elements, `@attributes` and `#text`.
    Any,
    /// A text that represents a scalar.
    Scalar(XmlScalar),
    /// An element with members.
    Object {
        /// Declared members, in the order in which elements are written.
        members: Vec<XmlMember>,
        /// Index of the type of undeclared members; `None`: any value.
        others: Option<usize>,
    },
    /// An element that contains one element per item.
    List {
        /// Name of the items.
        item: XmlName,
        /// Index of their type.
        of: usize,
    },
}

/// The scalars that a text may represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XmlScalar {
    /// Strings.
    pub string: bool,
    /// `true`, `false`, `1` and `0` (XML Schema part 2, section 3.2.2).
    pub boolean: bool,
    /// Numbers without a fraction.
    pub integer: bool,
    /// Any numbers.
    pub number: bool,
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlMember {
    /// Name of the member in JSON.
    pub key: Key,
    /// Its place in XML.
    pub place: XmlPlace,
    /// Index of its type; of each item for repeated elements.
    pub of: usize,
    /// Whether the contract requires it.
    pub required: bool,
}

/// The place of a member in the element of its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlPlace {
    /// A child element.
    Element(XmlName),
    /// An attribute.
    Attribute(XmlName),
    /// A list without an element of its own: one child element per item.
    Repeated(XmlName),
    /// The text of the element.
    Text,
}

/// Returns whether a media type without parameters denotes XML (RFC 7303).
pub fn is_xml(essence: &str) -> bool {
    let ends_in_xml = essence.len() > 4
        && essence.get(essence.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case("+xml"));
    essence.eq_ignore_ascii_case("application/xml") || essence.eq_ignore_ascii_case("text/xml") || ends_in_xml
}

/// Returns whether a text is a name of an element without a prefix (an `NCName` of Namespaces in
/// XML, section 3).
pub fn is_xml_name(text: &str) -> bool {
    let starts = |sign: char| sign == '_' || sign.is_alphabetic();
    let goes_on = |sign: char| starts(sign) || sign.is_numeric() || matches!(sign, '-' | '.' | '\u{b7}');
    let mut signs = text.chars();
    // Unicode's classes are slightly wider than those of XML, which lists ranges of code points.
    signs.next().is_some_and(starts) && signs.all(goes_on)
}
