//! Writes JSON as XML: attributes first, then elements in the order of the contract.

use super::decode::is_allowed;
use super::{ATTRIBUTE, DEPTH_MAX, TEXT, XSI};
use switchback_json::{self as json, Limits, Object, Value};
use switchback_plan::{XmlFormat, XmlKind, XmlMember, XmlName, XmlPlace, is_xml_name};

/// The replacement for characters that XML cannot represent (XML 1.0, section 2.2).
const REPLACEMENT: char = '\u{fffd}';

/// Writes JSON as a document in UTF-8.
///
/// A member with a name that XML does not allow is omitted; it is never a declared one. Characters
/// that XML does not allow become U+FFFD. An error is one of JSON syntax or limits.
pub fn encode(format: &XmlFormat, text: &[u8], limits: &Limits) -> Result<Vec<u8>, json::Error> {
    let value = Value::parse(text, &Limits { depth: limits.depth.min(DEPTH_MAX), ..*limits })?;
    let mut writer = Writer { format, out: String::with_capacity(text.len() * 2), scope: Vec::new() };
    writer.out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    writer.element(&format.root, Some(format.of), &value);
    Ok(writer.out.into_bytes())
}

struct Writer<'f> {
    format: &'f XmlFormat,
    out: String,
    /// Namespaces by prefix in scope, innermost last. The default namespace has an empty prefix.
    scope: Vec<(&'f str, &'f str)>,
}

impl<'f> Writer<'f> {
    fn kind(&self, of: Option<usize>) -> &'f XmlKind {
        of.and_then(|of| self.format.types.get(of)).map_or(&XmlKind::Any, |ty| &ty.kind)
    }

    /// Writes a value as one element.
    fn element(&mut self, name: &'f XmlName, of: Option<usize>, value: &Value) {
        let mark = self.scope.len();
        self.out.push('<');
        let from = self.out.len();
        let prefix = self.prefix_of(name, false);
        self.name(prefix, &name.local);
        let to = self.out.len();
        let tag = self.out[from..to].to_owned();
        self.declare(name, false);
        self.content(&tag, of, value);
        self.scope.truncate(mark);
    }

    /// Writes an undeclared element.
    fn other(&mut self, name: &str, of: Option<usize>, value: &Value) {
        let mark = self.scope.len();
        self.out.push('<');
        self.out.push_str(name);
        self.content(name, of, value);
        self.scope.truncate(mark);
    }

    fn name(&mut self, prefix: Option<&str>, local: &str) {
        if let Some(prefix) = prefix {
            self.out.push_str(prefix);
            self.out.push(':');
        }
        self.out.push_str(local);
    }

    /// Returns the prefix to write. One without a namespace needs a declaration in scope.
    fn prefix_of(&self, name: &'f XmlName, is_attribute: bool) -> Option<&'f str> {
        let prefix = name.prefix.as_deref().filter(|prefix| !prefix.is_empty())?;
        let is_known = name.namespace.is_some() || self.bound(prefix).is_some();
        // An attribute without a prefix is in no namespace (Namespaces in XML, section 6.2).
        (is_known && !(is_attribute && name.namespace.is_none() && self.bound(prefix).is_none()))
            .then_some(prefix)
    }

    fn bound(&self, prefix: &str) -> Option<&'f str> {
        self.scope.iter().rev().find(|(known, _)| *known == prefix).map(|(_, namespace)| *namespace)
    }

    /// Declares the namespace of a name within the current start tag, unless it is in scope.
    fn declare(&mut self, name: &'f XmlName, is_attribute: bool) {
        let Some(namespace) = name.namespace.as_deref() else { return };
        let prefix = name.prefix.as_deref().unwrap_or("");
        if (is_attribute && prefix.is_empty()) || self.bound(prefix).unwrap_or("") == namespace {
            return;
        }
        self.bind(prefix, namespace);
    }

    fn bind(&mut self, prefix: &'f str, namespace: &'f str) {
        self.out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
        self.out.push_str(prefix);
        self.out.push_str("=\"");
        escape(namespace, true, &mut self.out);
        self.out.push('"');
        self.scope.push((prefix, namespace));
    }

    /// Writes the rest of an element after its name.
    fn content(&mut self, tag: &str, of: Option<usize>, value: &Value) {
        if value.is_null() {
            if self.bound("xsi") != Some(XSI) {
                self.bind("xsi", XSI);
            }
            return self.out.push_str(" xsi:nil=\"true\"/>");
        }
        let start = match (self.kind(of), value) {
            (XmlKind::Object { members, others }, Value::Object(object)) => {
                self.declared_attributes(members, object);
                let start = self.begin();
                self.members(members, *others, object);
                start
            }
            (XmlKind::List { item, of }, Value::Array(items)) => {
                let start = self.begin();
                items.iter().for_each(|one| self.element(item, Some(*of), one));
                start
            }
            (_, Value::Object(object)) => {
                self.other_attributes(object);
                let start = self.begin();
                if let Some(text) = object.get(TEXT) {
                    self.scalar(text, false);
                }
                self.others(object, &[], None);
                start
            }
            // A list where the contract has none, or within a list: elements of the same name.
            (_, Value::Array(items)) => {
                let start = self.begin();
                items.iter().for_each(|one| self.other(tag, None, one));
                start
            }
            (_, scalar) => {
                let start = self.begin();
                self.scalar(scalar, false);
                start
            }
        };
        if self.out.len() == start {
            // Replaces the bracket of the start tag.
            self.out.truncate(start - 1);
            return self.out.push_str("/>");
        }
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
    }

    fn begin(&mut self) -> usize {
        self.out.push('>');
        self.out.len()
    }

    fn declared_attributes(&mut self, members: &'f [XmlMember], object: &Object) {
        for member in members {
            let XmlPlace::Attribute(name) = &member.place else { continue };
            let Some(value) = object.get(&member.key.text).filter(|value| !value.is_null()) else { continue };
            self.declare(name, true);
            self.out.push(' ');
            let prefix = self.prefix_of(name, true);
            self.name(prefix, &name.local);
            self.attribute_value(value);
        }
    }

    /// Writes the members of an undeclared object that are named like attributes.
    fn other_attributes(&mut self, object: &Object) {
        for (key, value) in object.iter() {
            let key = key.decode();
            let Some(name) = key.strip_prefix(ATTRIBUTE).filter(|name| is_attribute_name(name)) else {
                continue;
            };
            if !value.is_null() {
                self.out.push(' ');
                self.out.push_str(name);
                self.attribute_value(value);
            }
        }
    }

    fn attribute_value(&mut self, value: &Value) {
        self.out.push_str("=\"");
        self.scalar(value, true);
        self.out.push('"');
    }

    fn members(&mut self, members: &'f [XmlMember], others: Option<usize>, object: &Object) {
        for member in members {
            let Some(value) = object.get(&member.key.text) else { continue };
            match (&member.place, value) {
                (XmlPlace::Attribute(_), _) => {}
                (XmlPlace::Text, value) => self.scalar(value, false),
                (XmlPlace::Element(name), value) => self.element(name, Some(member.of), value),
                (XmlPlace::Repeated(name), Value::Array(items)) => {
                    items.iter().for_each(|one| self.element(name, Some(member.of), one));
                }
                // A list that is null has no elements.
                (XmlPlace::Repeated(_), Value::Null) => {}
                (XmlPlace::Repeated(name), value) => self.element(name, Some(member.of), value),
            }
        }
        self.others(object, members, others);
    }

    /// Writes undeclared members: lists as repeated elements.
    fn others(&mut self, object: &Object, members: &[XmlMember], of: Option<usize>) {
        for (name, value) in object.iter().map(|(key, value)| (key.decode(), value)) {
            if !is_xml_name(&name) || members.iter().any(|member| *member.key.text == *name) {
                continue;
            }
            match value {
                Value::Array(items) if !matches!(self.kind(of), XmlKind::List { .. }) => {
                    items.iter().for_each(|one| self.other(&name, of, one));
                }
                value => self.other(&name, of, value),
            }
        }
    }

    /// Writes a scalar as text. Containers have none.
    fn scalar(&mut self, value: &Value, is_attribute: bool) {
        match value {
            Value::Null | Value::Array(_) | Value::Object(_) => {}
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => self.out.push_str(number.text()),
            Value::String(text) => escape(&text.decode(), is_attribute, &mut self.out),
        }
    }
}

/// Returns whether an undeclared member may be written as an attribute without a prefix.
fn is_attribute_name(name: &str) -> bool {
    is_xml_name(name) && name != "xmlns"
}

fn escape(text: &str, is_attribute: bool, out: &mut String) {
    for sign in text.chars() {
        match sign {
            '<' => out.push_str("&lt;"),
            // Necessary only after `]]`.
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' if is_attribute => out.push_str("&quot;"),
            // Readers replace these by spaces or line feeds (XML 1.0, sections 2.11 and 3.3.3).
            '\r' => out.push_str("&#13;"),
            '\n' if is_attribute => out.push_str("&#10;"),
            '\t' if is_attribute => out.push_str("&#9;"),
            sign if is_allowed(sign) => out.push(sign),
            _ => out.push(REPLACEMENT),
        }
    }
}
