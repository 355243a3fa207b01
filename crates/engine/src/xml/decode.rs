//! Reads XML as JSON text.

use super::{ATTRIBUTE, DEPTH_MAX, TEXT, XSI, XmlCause, XmlError};
use quick_xml::XmlVersion;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, NamespaceError, NamespaceResolver, ResolveResult};
use quick_xml::reader::NsReader;
use std::borrow::Cow;
use std::collections::HashMap;
use switchback_json::{Limits, Number, Object, Value, text};
use switchback_plan::{XmlFormat, XmlKind, XmlMember, XmlName, XmlPlace, XmlScalar, XmlType, is_xml_name};

/// Maximum number of attributes of one element, which are compared with each other.
const ATTRIBUTES_MAX: usize = 256;
/// Maximum number of different members that are searched linearly.
const FEW: usize = 8;
/// Namespace of `xml:lang` and others, which belong to no contract.
const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// Type of undeclared elements.
static ANY: XmlType = XmlType { kind: XmlKind::Any, nullable: true };

const BAD_ATTRIBUTE: &str = "an attribute that is not well-formed";
const BAD_CHARACTER: &str = "a character that XML does not allow";
const BAD_NAME: &str = "a name that XML does not allow";
const REPEATED: &str = "an element or attribute that is no list, and is repeated";
const UNDECLARED_PREFIX: &str = "a prefix that is not declared";

/// Returns a document as JSON text of at most `limits.total_bytes`.
///
/// # Errors
///
/// If the text is not well-formed XML 1.0 in UTF-8 or ISO-8859-1, has a DTD or an undeclared
/// entity, has another root element, or repeats an element that is no list; or if it exceeds a
/// limit.
pub fn decode(format: &XmlFormat, body: &[u8], limits: &Limits) -> Result<Vec<u8>, XmlError> {
    let root_type = format.types.get(format.of).unwrap_or(&ANY);
    let (_, json) = Document::new(Some(&format.root), root_type, &format.types, *limits).read(body)?;
    Ok(json)
}

/// Returns a document without a layout as a tree of texts: an object with the root element as its
/// only member. Two documents with equal trees differ only in layout, prefixes and order.
pub fn tree(body: &[u8], limits: &Limits) -> Result<Value, XmlError> {
    let (name, json) = Document::new(None, &ANY, &[], *limits).read(body)?;
    let mut tree = Object::new();
    tree.insert(&*name, Value::parse(&json, &Limits::UNLIMITED).unwrap_or(Value::Null));
    Ok(Value::Object(tree))
}

/// An error with its position in bytes.
struct Misread {
    at: usize,
    cause: XmlCause,
}

fn malformed(at: usize, why: &'static str) -> Misread {
    Misread { at, cause: XmlCause::Malformed(why) }
}

fn limit(at: usize, why: &'static str) -> Misread {
    Misread { at, cause: XmlCause::Limit(why) }
}

/// Decodes the text, in UTF-8 or ISO-8859-1 (XML 1.0, section 4.3.3).
fn characters(body: &[u8]) -> Result<Cow<'_, str>, XmlError> {
    let error = |why| XmlError { line: 1, column: 1, cause: XmlCause::Malformed(why) };
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match declared_encoding(body).map(str::to_ascii_lowercase).as_deref() {
        None | Some("utf-8" | "utf8" | "us-ascii" | "ascii") => {
            Ok(std::str::from_utf8(body).map_err(|_| error("the text is not UTF-8"))?.into())
        }
        // Its code points are the first of Unicode.
        Some("iso-8859-1" | "latin1") => {
            Ok(body.iter().map(|byte| char::from(*byte)).collect::<String>().into())
        }
        Some(_) => Err(error("the encoding is neither UTF-8 nor ISO-8859-1")),
    }
}

/// Returns the encoding in the XML declaration.
fn declared_encoding(body: &[u8]) -> Option<&str> {
    let end = memchr::memmem::find(body, b"?>").filter(|_| body.starts_with(b"<?xml"))?;
    let declaration = std::str::from_utf8(&body[..end]).ok()?;
    let (_, rest) = declaration.split_once("encoding")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
    rest[1..].split(quote).next()
}

/// Describes an error of the parser. Its own texts may contain names of the document.
fn cause_of(error: &Error) -> XmlCause {
    XmlCause::Malformed(match error {
        Error::Syntax(_) => "markup that does not end",
        Error::IllFormed(IllFormedError::UnmatchedEndTag(_) | IllFormedError::MismatchedEndTag { .. }) => {
            "an end tag that is not the one of the open element"
        }
        Error::IllFormed(IllFormedError::UnclosedReference) => "an ampersand without an entity",
        Error::InvalidAttr(_) => BAD_ATTRIBUTE,
        Error::Namespace(NamespaceError::TooManyBindings(_)) => {
            return XmlCause::Limit("too many namespaces");
        }
        Error::Namespace(_) => "a namespace declaration that is not allowed",
        _ => "the text is not well-formed",
    })
}

/// Returns the character of a reference; `None` for an undeclared entity or an excluded character.
fn character(reference: &BytesRef<'_>) -> Option<char> {
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => reference.resolve_char_ref().ok().flatten().filter(|sign| is_allowed(*sign)),
    }
}

/// Returns whether a document may contain a character (XML 1.0, section 2.2).
pub(super) fn is_allowed(sign: char) -> bool {
    matches!(sign, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// The place of a child in its parent.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Slot {
    /// A declared member, by its index. Items of a list have the index 0.
    Member(usize),
    /// An undeclared element.
    Element(Box<str>),
    /// An undeclared attribute.
    Attribute(Box<str>),
}

/// The children of one element with the same slot.
struct Entry {
    slot: Slot,
    count: usize,
    /// Their JSON, separated by commas.
    json: Vec<u8>,
}

impl Entry {
    fn push(&mut self, json: Vec<u8>) {
        if self.json.is_empty() {
            self.json = json;
        } else {
            self.json.push(b',');
            self.json.extend_from_slice(&json);
        }
    }
}

/// An element whose end has not been read.
struct OpenElement<'f> {
    ty: &'f XmlType,
    /// Index of its entry in its parent.
    entry: usize,
    is_nil: bool,
    text: String,
    entries: Vec<Entry>,
    /// Indexes of the entries, if there are many.
    index: HashMap<Slot, usize>,
}

impl<'f> OpenElement<'f> {
    fn new(ty: &'f XmlType, entry: usize) -> OpenElement<'f> {
        OpenElement {
            ty,
            entry,
            is_nil: false,
            text: String::new(),
            entries: Vec::new(),
            index: HashMap::new(),
        }
    }

    /// Returns the declared members of an object.
    fn members(&self) -> &'f [XmlMember] {
        match &self.ty.kind {
            XmlKind::Object { members, .. } => members,
            XmlKind::Any | XmlKind::Scalar(_) | XmlKind::List { .. } => &[],
        }
    }

    /// Counts a child and returns the index of its entry, which is new for the first of its slot.
    fn count(&mut self, at: usize, slot: Slot, members_max: usize) -> Result<usize, Misread> {
        if let Some(known) = self.find(&slot) {
            let is_list = match slot {
                Slot::Member(at) => {
                    self.members().get(at).is_none_or(|one| matches!(one.place, XmlPlace::Repeated(_)))
                }
                Slot::Element(_) => true,
                Slot::Attribute(_) => false,
            };
            if !is_list {
                return Err(malformed(at, REPEATED));
            }
            self.entries[known].count += 1;
            return Ok(known);
        }
        let new = self.entries.len();
        if new >= members_max {
            return Err(limit(at, "an element has too many different members"));
        }
        // From here on, a linear search would be too slow.
        if new == FEW {
            let slots = self.entries.iter().map(|entry| entry.slot.clone());
            self.index = slots.zip(0..).collect();
        }
        if new >= FEW {
            self.index.insert(slot.clone(), new);
        }
        self.entries.push(Entry { slot, count: 1, json: Vec::new() });
        Ok(new)
    }

    fn find(&self, slot: &Slot) -> Option<usize> {
        // The items of a list are usually adjacent.
        let last = self.entries.len().checked_sub(1)?;
        if self.entries[last].slot == *slot {
            return Some(last);
        }
        match last < FEW {
            true => self.entries.iter().position(|entry| entry.slot == *slot),
            false => self.index.get(slot).copied(),
        }
    }

    /// Returns the JSON of the complete element.
    fn into_json(self, types: &[XmlType]) -> Vec<u8> {
        if self.is_nil {
            return b"null".to_vec();
        }
        let mut out = Vec::new();
        match &self.ty.kind {
            XmlKind::Scalar(_) => write_text(&self.text, self.ty, &mut out),
            XmlKind::Any if self.entries.is_empty() => write_string(&self.text, &mut out),
            XmlKind::List { .. } => {
                out.push(b'[');
                if let Some(items) = self.entries.iter().find(|entry| entry.slot == Slot::Member(0)) {
                    out.extend_from_slice(&items.json);
                }
                out.push(b']');
            }
            XmlKind::Any | XmlKind::Object { .. } => self.write_object(types, &mut out),
        }
        out
    }

    fn write_object(&self, types: &[XmlType], out: &mut Vec<u8>) {
        let members = self.members();
        out.push(b'{');
        let start = out.len();
        let begin = |key: &[u8], out: &mut Vec<u8>| {
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(key);
            out.push(b':');
        };
        for Entry { slot, count, json } in &self.entries {
            let is_list = match slot {
                Slot::Member(at) => {
                    begin(&members[*at].key.json, out);
                    matches!(members[*at].place, XmlPlace::Repeated(_))
                }
                // It has another namespace or place than the declared member, which JSON cannot have twice.
                Slot::Element(name) if members.iter().any(|member| *member.key.text == **name) => continue,
                Slot::Element(name) => {
                    begin(&quoted(name), out);
                    *count > 1
                }
                Slot::Attribute(name) => {
                    begin(&quoted(&format!("{ATTRIBUTE}{name}")), out);
                    false
                }
            };
            out.extend_from_slice(if is_list { b"[" } else { b"" });
            out.extend_from_slice(json);
            out.extend_from_slice(if is_list { b"]" } else { b"" });
        }
        // White space between elements is layout.
        let text = if self.has_elements() { self.text.trim_ascii() } else { &self.text };
        if self.ty.kind == XmlKind::Any && !text.trim_ascii().is_empty() {
            begin(&quoted(TEXT), out);
            write_string(text, out);
        }
        for (at, member) in members.iter().enumerate() {
            match &member.place {
                XmlPlace::Text if member.required || !text.is_empty() => {
                    begin(&member.key.json, out);
                    write_text(text, types.get(member.of).unwrap_or(&ANY), out);
                }
                // A required list without items is empty; an optional one may be absent.
                XmlPlace::Repeated(_) if member.required && self.find(&Slot::Member(at)).is_none() => {
                    begin(&member.key.json, out);
                    out.extend_from_slice(b"[]");
                }
                _ => {}
            }
        }
        out.push(b'}');
    }

    fn has_elements(&self) -> bool {
        let members = self.members();
        self.entries.iter().any(|entry| match &entry.slot {
            Slot::Member(at) => !matches!(members[*at].place, XmlPlace::Attribute(_)),
            Slot::Element(_) => true,
            Slot::Attribute(_) => false,
        })
    }
}

/// The document so far.
struct Document<'f> {
    /// Name of the root element; `None`: any.
    root: Option<&'f XmlName>,
    root_type: &'f XmlType,
    types: &'f [XmlType],
    limits: Limits,
    /// Number of elements and attributes.
    nodes: usize,
    open: Vec<OpenElement<'f>>,
    /// Local name of the root element of the document.
    name: Box<str>,
    /// JSON of the complete root element.
    json: Option<Vec<u8>>,
}

impl<'f> Document<'f> {
    fn new(
        root: Option<&'f XmlName>,
        root_type: &'f XmlType,
        types: &'f [XmlType],
        limits: Limits,
    ) -> Document<'f> {
        Document { root, root_type, types, limits, nodes: 0, open: Vec::new(), name: "".into(), json: None }
    }

    /// Returns the name of the root element and the JSON of the document.
    fn read(self, body: &[u8]) -> Result<(Box<str>, Vec<u8>), XmlError> {
        let source = characters(body)?;
        self.read_text(&source).map_err(|Misread { at, cause }| {
            let before = source.get(..at).unwrap_or(&source);
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            XmlError { line, column: before[line_start..].chars().count() + 1, cause }
        })
    }

    fn read_text(mut self, source: &str) -> Result<(Box<str>, Vec<u8>), Misread> {
        if let Some((at, _)) = source.char_indices().find(|(_, sign)| !is_allowed(*sign)) {
            return Err(malformed(at, BAD_CHARACTER));
        }
        let mut reader = NsReader::from_str(source);
        loop {
            let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
            let event = match reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let at = usize::try_from(reader.error_position()).unwrap_or(at).max(at);
                    return Err(Misread { at, cause: cause_of(&error) });
                }
            };
            match event {
                Event::Start(start) => self.open(at, &start, reader.resolver())?,
                Event::Empty(start) => {
                    self.open(at, &start, reader.resolver())?;
                    self.close(at)?;
                }
                Event::End(_) => self.close(at)?,
                Event::Text(content) => self.text(at, &content.xml10_content())?,
                Event::CData(content) => self.text(at, &content.xml10_content())?,
                Event::GeneralRef(reference) => {
                    let sign = character(&reference)
                        .ok_or_else(|| malformed(at, "an entity that is not predefined"))?;
                    self.text(at, sign.encode_utf8(&mut [0; 4]))?;
                }
                Event::Comment(_) | Event::PI(_) => {}
                Event::Decl(declaration) => {
                    let is_first = at == 0 && declaration.version().is_ok_and(|version| version == "1.0");
                    if !is_first {
                        let why = "an XML declaration that is not at the start, or not of version 1.0";
                        return Err(malformed(at, why));
                    }
                }
                Event::DocType(_) => {
                    return Err(malformed(at, "a document type declaration, which is not accepted"));
                }
                Event::Eof => break,
            }
        }
        match self.json {
            Some(json) => Ok((self.name, json)),
            None if self.open.is_empty() => Err(malformed(source.len(), "the text has no element")),
            None => Err(malformed(source.len(), "the text ends within an element")),
        }
    }

    fn type_at(&self, index: usize) -> &'f XmlType {
        self.types.get(index).unwrap_or(&ANY)
    }

    fn count_node(&mut self, at: usize) -> Result<(), Misread> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(limit(at, "the document has too many elements"));
        }
        Ok(())
    }

    fn open(
        &mut self,
        at: usize,
        start: &BytesStart<'_>,
        resolver: &NamespaceResolver,
    ) -> Result<(), Misread> {
        if self.open.len() >= self.limits.depth.min(DEPTH_MAX) {
            return Err(limit(at, "elements are nested too deeply"));
        }
        self.count_node(at)?;
        let (namespace, local) = resolver.resolve_element(start.name());
        let local = local.into_inner();
        if matches!(namespace, ResolveResult::Unknown(_)) {
            return Err(malformed(at, UNDECLARED_PREFIX));
        }
        if !is_xml_name(local) {
            return Err(malformed(at, BAD_NAME));
        }
        let place = self.open.last().map(|parent| self.place_of(at, &parent.ty.kind, local, &namespace));
        let mut element = match (place.transpose()?, self.open.last_mut()) {
            (Some((slot, ty)), Some(parent)) => {
                OpenElement::new(ty, parent.count(at, slot, self.limits.members)?)
            }
            _ if self.json.is_some() => return Err(malformed(at, "a second root element")),
            _ if self.root.is_some_and(|root| !is_named(root, local, &namespace)) => {
                return Err(malformed(at, "the root element is not the one of the contract"));
            }
            _ => {
                self.name = local.into();
                OpenElement::new(self.root_type, 0)
            }
        };
        self.attributes(at, &mut element, start, resolver)?;
        self.open.push(element);
        Ok(())
    }

    /// Returns the place of a child element in its parent, and its type.
    fn place_of(
        &self,
        at: usize,
        parent: &'f XmlKind,
        local: &str,
        namespace: &ResolveResult<'_>,
    ) -> Result<(Slot, &'f XmlType), Misread> {
        let undeclared = || Slot::Element(local.into());
        match parent {
            XmlKind::Scalar(_) => Err(malformed(at, "an element where the contract has a text")),
            XmlKind::List { item, of } if is_named(item, local, namespace) => {
                Ok((Slot::Member(0), self.type_at(*of)))
            }
            XmlKind::Any | XmlKind::List { .. } => Ok((undeclared(), &ANY)),
            XmlKind::Object { members, others } => {
                let is_it = |place: &XmlPlace| match place {
                    XmlPlace::Element(name) | XmlPlace::Repeated(name) => is_named(name, local, namespace),
                    XmlPlace::Attribute(_) | XmlPlace::Text => false,
                };
                match members.iter().position(|member| is_it(&member.place)) {
                    Some(found) => Ok((Slot::Member(found), self.type_at(members[found].of))),
                    None => Ok((undeclared(), others.map_or(&ANY, |of| self.type_at(of)))),
                }
            }
        }
    }

    fn attributes(
        &mut self,
        at: usize,
        element: &mut OpenElement<'f>,
        start: &BytesStart<'_>,
        resolver: &NamespaceResolver,
    ) -> Result<(), Misread> {
        for (count, attribute) in start.attributes().enumerate() {
            if count >= ATTRIBUTES_MAX {
                return Err(limit(at, "an element has too many attributes"));
            }
            let attribute = attribute.map_err(|error| match error {
                AttrError::Duplicated(..) => malformed(at, REPEATED),
                _ => malformed(at, BAD_ATTRIBUTE),
            })?;
            if attribute.key.as_namespace_binding().is_some() {
                continue;
            }
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|_| malformed(at, "an attribute with an entity that is not predefined"))?;
            if !value.chars().all(is_allowed) {
                return Err(malformed(at, BAD_CHARACTER));
            }
            let (namespace, local) = resolver.resolve_attribute(attribute.key);
            let local = local.into_inner();
            match namespace {
                ResolveResult::Unknown(_) => return Err(malformed(at, UNDECLARED_PREFIX)),
                ResolveResult::Bound(Namespace(XSI)) => {
                    element.is_nil |= local == "nil" && matches!(value.trim(), "true" | "1");
                    continue;
                }
                ResolveResult::Bound(Namespace(XML)) => continue,
                _ if !is_xml_name(local) => return Err(malformed(at, BAD_NAME)),
                _ => {}
            }
            let is_it = |place: &XmlPlace| match place {
                XmlPlace::Attribute(name) => is_named(name, local, &namespace),
                XmlPlace::Element(_) | XmlPlace::Repeated(_) | XmlPlace::Text => false,
            };
            let members = element.members();
            let (slot, ty) = match members.iter().position(|member| is_it(&member.place)) {
                Some(found) => (Slot::Member(found), self.type_at(members[found].of)),
                None if element.ty.kind == XmlKind::Any => (Slot::Attribute(local.into()), &ANY),
                // Of no use to the other side, whose bodies have no attributes.
                None => continue,
            };
            self.count_node(at)?;
            let entry = element.count(at, slot, self.limits.members)?;
            write_text(&value, ty, &mut element.entries[entry].json);
        }
        Ok(())
    }

    fn text(&mut self, at: usize, content: &str) -> Result<(), Misread> {
        let is_blank = content.trim_ascii().is_empty();
        let Some(open) = self.open.last_mut() else {
            return if is_blank { Ok(()) } else { Err(malformed(at, "text outside the root element")) };
        };
        let takes_text = match &open.ty.kind {
            XmlKind::Any | XmlKind::Scalar(_) => true,
            XmlKind::Object { members, .. } => members.iter().any(|one| one.place == XmlPlace::Text),
            XmlKind::List { .. } => false,
        };
        match takes_text {
            true => open.text.push_str(content),
            false if is_blank => {}
            false => return Err(malformed(at, "text where the contract has elements")),
        }
        Ok(())
    }

    fn close(&mut self, at: usize) -> Result<(), Misread> {
        let Some(element) = self.open.pop() else {
            return Err(malformed(at, "an end tag without its element"));
        };
        let entry = element.entry;
        let json = element.into_json(self.types);
        if json.len() as u64 > self.limits.total_bytes {
            return Err(limit(at, "the document is too large"));
        }
        match self.open.last_mut() {
            Some(parent) => parent.entries[entry].push(json),
            None => self.json = Some(json),
        }
        Ok(())
    }
}

fn is_named(name: &XmlName, local: &str, namespace: &ResolveResult<'_>) -> bool {
    *name.local == *local
        && name.namespace.as_deref().is_none_or(|wanted| match namespace {
            ResolveResult::Bound(Namespace(found)) => *found == wanted,
            _ => wanted.is_empty(),
        })
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_string(text, &mut out);
    out
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text::escape(text).as_bytes());
    out.push(b'"');
}

/// Appends a text as a scalar of its type.
fn write_text(text: &str, ty: &XmlType, out: &mut Vec<u8>) {
    let XmlKind::Scalar(of) = ty.kind else { return write_string(text, out) };
    let plain = text.trim_ascii();
    match plain {
        "true" | "1" if of.boolean => return out.extend_from_slice(b"true"),
        "false" | "0" if of.boolean => return out.extend_from_slice(b"false"),
        "" if ty.nullable && !of.string => return out.extend_from_slice(b"null"),
        _ => {}
    }
    match number(plain, of) {
        Some(number) => out.extend_from_slice(number.as_bytes()),
        None => write_string(text, out),
    }
}

/// Returns a decimal of XML Schema (part 2, section 3.2.3) as JSON: without a plus sign and leading
/// zeros, and with digits on both sides of the point.
fn number(text: &str, of: XmlScalar) -> Option<Cow<'_, str>> {
    if !(of.number || of.integer && !text.contains(['.', 'e', 'E'])) {
        return None;
    }
    if Number::from_text(text).is_some() {
        return Some(text.into());
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    // `.` alone, and a sign alone, have no digits.
    if !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole_end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(whole_end);
    let (whole, rest) = (whole.trim_start_matches('0'), rest.strip_suffix('.').unwrap_or(rest));
    let decimal = format!("{sign}{}{rest}", if whole.is_empty() { "0" } else { whole });
    Number::from_text(&decimal).is_some().then(|| decimal.into())
}
