//! Conversion between forms (`application/x-www-form-urlencoded`) and JSON: `a[b][]=c` represents
//! `{"a": {"b": ["c"]}}`.
//!
//! Form values have no types, so the contract declares which ones are numbers or booleans and which
//! names are lists. A value that does not match its type remains a text and is validated later like
//! any JSON text. Accepted names are `name=`, `name[field]=`, `name[]=`, `name[0]=`, and lists as
//! repeated names or delimited texts. Output follows the contract's `encoding`, by default
//! brackets. Forms cannot represent null, empty lists or empty objects: null is written as an empty
//! text, which is read as null if the type excludes texts; empty containers are omitted.
//!
//! Nodes with many children are indexed by hash, so that no body takes quadratic time.

use super::error::TranslateError;
use super::request::query_pairs;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use switchback_json::{Container, Limits, Object, Reader, Scalar, Sink, Value, text};
use switchback_json::{ErrorKind, Str};
use switchback_plan::router::path::encode_query;
use switchback_plan::{Form, FormField, FormFormat, FormKind, ListStyle};

/// Maximum number of children that are searched linearly.
const FEW: usize = 8;

/// The reason why a text is not a valid form, without any of its content.
pub type FormFault = String;

/// Appends a form as JSON text. An empty form is an empty object.
pub fn decode(format: &FormFormat, body: &[u8], limits: &Limits, out: &mut Vec<u8>) -> Result<(), FormFault> {
    let body = std::str::from_utf8(body).map_err(|_| "the form is not UTF-8".to_owned())?;
    let pairs = query_pairs(body)
        .map(|(name, value)| Ok((percent_decode(name)?, percent_decode(value.unwrap_or(""))?)));
    tree(format, pairs, limits, out)
}

/// Appends decoded names and values as JSON text.
pub(super) fn tree<'t>(
    format: &FormFormat,
    pairs: impl Iterator<Item = Result<(Cow<'t, str>, Cow<'t, str>), FormFault>>,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<(), FormFault> {
    let mut tree = Tree::new(&format.form, limits);
    for pair in pairs {
        let (name, value) = pair?;
        tree.add(name, value, &format.lists)?;
    }
    tree.write(0, out)
}

/// Returns the position of a byte. A plain loop, because names are too short for `memchr`.
fn position(text: &str, sign: u8) -> Option<usize> {
    text.bytes().position(|byte| byte == sign)
}

/// Decodes a name or value in place, in one pass: escapes are frequent in forms.
fn percent_decode(raw: &str) -> Result<Cow<'_, str>, FormFault> {
    let Some(first) = memchr::memchr2(b'%', b'+', raw.as_bytes()) else { return Ok(Cow::Borrowed(raw)) };
    // Decoded text is never longer than its encoding, so decode in place.
    let mut bytes = raw.as_bytes().to_vec();
    let (mut from, mut to) = (first, first);
    while let Some(byte) = bytes.get(from).copied() {
        let (one, next) = match byte {
            b'+' => (b' ', from + 1),
            // A percent sign without two hexadecimal digits is literal.
            b'%' => match bytes.get(from + 1..from + 3) {
                Some(&[high, low]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    (digit(high) << 4 | digit(low), from + 3)
                }
                _ => (byte, from + 1),
            },
            _ => (byte, from + 1),
        };
        bytes[to] = one;
        (from, to) = (next, to + 1);
    }
    bytes.truncate(to);
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "the form is not UTF-8".to_owned())
}

/// Returns the value of a hexadecimal digit.
fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        _ => (byte | 0x20) - b'a' + 10,
    }
}

/// The tree of a form's names. Parents precede their children.
struct Tree<'f, 't> {
    nodes: Vec<Node<'f, 't>>,
    /// Children of nodes with many children, by node and name.
    many: HashMap<(u32, Cow<'t, str>), u32>,
    nodes_max: usize,
    depth_max: usize,
}

struct Node<'f, 't> {
    /// The member name in the parent object, or the index in the parent list.
    name: Cow<'t, str>,
    /// The declared type; `None` if undeclared.
    form: Option<&'f Form>,
    /// The first value. Separate from `more`, because most nodes have exactly one.
    value: Option<Cow<'t, str>>,
    more: Vec<Cow<'t, str>>,
    children: Vec<u32>,
    /// Whether all children so far are list elements.
    is_list: bool,
}

impl<'f, 't> Node<'f, 't> {
    fn new(name: Cow<'t, str>, form: Option<&'f Form>) -> Node<'f, 't> {
        Node { name, form, value: None, more: Vec::new(), children: Vec::new(), is_list: false }
    }

    fn push(&mut self, value: Cow<'t, str>) {
        match self.value {
            None => self.value = Some(value),
            Some(_) => self.more.push(value),
        }
    }
}

impl<'f, 't> Tree<'f, 't> {
    fn new(form: &'f Form, limits: &Limits) -> Tree<'f, 't> {
        Tree {
            nodes: vec![Node::new("".into(), Some(form))],
            many: HashMap::new(),
            nodes_max: limits.nodes,
            depth_max: limits.depth,
        }
    }

    fn add(
        &mut self,
        name: Cow<'t, str>,
        value: Cow<'t, str>,
        lists: &[(switchback_plan::Key, ListStyle)],
    ) -> Result<(), FormFault> {
        let at = match self.nodes[0].form.and_then(|form| brackets_of(form, &name)) {
            None => self.child(0, name)?,
            Some(first) => self.insert_nested(&name, first)?,
        };
        let node = &mut self.nodes[at as usize];
        let joined =
            lists.iter().find(|(key, _)| *key.text == *node.name).and_then(|(_, style)| style.delimiter());
        match joined.filter(|_| node.form.is_some_and(|form| matches!(form.kind, FormKind::Array { .. }))) {
            None => node.push(value),
            // An empty text is an empty list, not a list of one empty text.
            Some(_) if value.is_empty() => node.is_list = true,
            Some(delimiter) => match value {
                Cow::Borrowed(text) => text.split(delimiter).for_each(|one| node.push(Cow::Borrowed(one))),
                Cow::Owned(text) => {
                    text.split(delimiter).for_each(|one| node.push(Cow::Owned(one.to_owned())));
                }
            },
        }
        Ok(())
    }

    /// Returns the node for a name like `a[b][]`. `first` is the position of its first bracket.
    #[expect(
        clippy::ptr_arg,
        reason = "parts of a borrowed name live as long as the form, not as the reference"
    )]
    fn insert_nested(&mut self, name: &Cow<'t, str>, first: usize) -> Result<u32, FormFault> {
        let part = |from: usize, to: usize| match name {
            Cow::Borrowed(text) => Cow::Borrowed(&text[from..to]),
            Cow::Owned(text) => Cow::Owned(text[from..to].to_owned()),
        };
        let mut at = self.child(0, part(0, first))?;
        let (mut from, mut depth) = (first, 0);
        while from < name.len() {
            let open = name[from..].starts_with('[');
            let Some(end) = position(&name[from..], b']').filter(|_| open) else {
                return Err("a name of the form has brackets that do not fit".to_owned());
            };
            let (inner, next) = (part(from + 1, from + end), from + end + 1);
            depth += 1;
            // Bounds the recursion of `write`.
            if depth > self.depth_max {
                return Err("the form is nested too deeply".to_owned());
            }
            at = match inner.is_empty() {
                // Trailing `[]` appends: the values of this node are elements if it is a list.
                true if next == name.len() => {
                    self.nodes[at as usize].is_list = true;
                    return Ok(at);
                }
                true => self.element(at, &name[next..])?,
                false => self.child(at, inner)?,
            };
            from = next;
        }
        Ok(at)
    }

    /// Returns the element for a name like `a[][b]`: the last one, or a new one if the last one
    /// already has a `b`.
    fn element(&mut self, at: u32, rest: &str) -> Result<u32, FormFault> {
        let node = &self.nodes[at as usize];
        let count = node.children.len();
        let key = rest.trim_start_matches('[').split(']').next().unwrap_or("");
        let last = node.children.last().copied();
        let has = |last: u32| self.find_child(last, key).is_some();
        match last.filter(|last| !has(*last)) {
            Some(last) => Ok(last),
            None => self.child(at, count.to_string().into()),
        }
    }

    /// Returns the child with this name.
    fn find_child(&self, at: u32, name: &str) -> Option<u32> {
        let children = &self.nodes[at as usize].children;
        match children.len() {
            0..=FEW => children.iter().copied().find(|child| self.nodes[*child as usize].name == name),
            _ => self.many.get(&(at, Cow::Borrowed(name))).copied(),
        }
    }

    /// Returns the child with this name, creating it if necessary.
    fn child(&mut self, at: u32, name: Cow<'t, str>) -> Result<u32, FormFault> {
        let made = self.nodes.len() as u32;
        let parent = &self.nodes[at as usize];
        let count = parent.children.len();
        // Names of the same element are usually adjacent.
        if let Some(last) = parent.children.last().filter(|last| self.nodes[**last as usize].name == name) {
            return Ok(*last);
        }
        if count <= FEW {
            if let Some(known) = self.find_child(at, &name) {
                return Ok(known);
            }
            // From here on a linear search would be too slow: index all children.
            if count == FEW {
                for child in &parent.children {
                    self.many.insert((at, self.nodes[*child as usize].name.clone()), *child);
                }
                self.many.insert((at, name.clone()), made);
            }
        } else {
            match self.many.entry((at, name.clone())) {
                Entry::Occupied(known) => return Ok(*known.get()),
                Entry::Vacant(place) => drop(place.insert(made)),
            }
        }
        if self.nodes.len() >= self.nodes_max {
            return Err("the form has too many values".to_owned());
        }
        let is_index = name.bytes().all(|byte| byte.is_ascii_digit()) && name.len() < 10;
        let form = parent.form.and_then(|form| inner(form, &name, count));
        let parent = &mut self.nodes[at as usize];
        // Numbered children form a list only if all of them are numbered.
        parent.is_list = is_index && (count == 0 || parent.is_list);
        parent.children.push(made);
        self.nodes.push(Node::new(name, form));
        Ok(made)
    }

    fn write(&self, at: u32, out: &mut Vec<u8>) -> Result<(), FormFault> {
        let node = &self.nodes[at as usize];
        let kind = node.form.map(|form| kind_for(form, node));
        let wants_list = matches!(kind, Some(FormKind::Array { .. }));
        let is_open = kind.is_none_or(|kind| matches!(kind, FormKind::Any));
        if node.value.is_some() && !node.children.is_empty() {
            return Err("a name of the form has both a value and values within it".to_owned());
        }
        if at != 0 && node.children.is_empty() {
            let items = match kind {
                Some(FormKind::Array { items, .. }) => Some(&**items),
                _ => None,
            };
            return match (&node.value, &node.more[..]) {
                (Some(one), []) if !(wants_list || is_open && node.is_list) => {
                    scalar(one, node.form, out);
                    Ok(())
                }
                _ if !wants_list && !is_open => {
                    Err("a name of the form is no list and comes more than once".to_owned())
                }
                (first, more) => list(first.iter().chain(more), out, |value, out| {
                    scalar(value, items, out);
                    Ok(())
                }),
            };
        }
        if at != 0 && node.is_list && (wants_list || is_open) {
            let mut children = node.children.clone();
            // Order elements by their index, regardless of their position in the form.
            children.sort_by_key(|child| self.nodes[*child as usize].name.parse::<u32>().unwrap_or(u32::MAX));
            return list(children.iter(), out, |child, out| self.write(*child, out));
        }
        if wants_list {
            return Err("a list of the form has elements without a number".to_owned());
        }
        out.push(b'{');
        for (place, child) in node.children.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(text::escape(&self.nodes[*child as usize].name).as_bytes());
            out.extend_from_slice(b"\":");
            self.write(*child, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

fn list<T>(
    values: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>) -> Result<(), FormFault>,
) -> Result<(), FormFault> {
    out.push(b'[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(value, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Returns the alternative that a node can represent.
fn kind_for<'f>(form: &'f Form, node: &Node<'_, '_>) -> &'f FormKind {
    let FormKind::OneOf(alternatives) = &form.kind else { return &form.kind };
    let is_it = |kind: &FormKind| match kind {
        FormKind::Object { .. } => !node.children.is_empty() && !node.is_list,
        FormKind::Array { .. } => node.is_list,
        _ => node.children.is_empty() && !node.is_list,
    };
    alternatives.iter().map(|one| &one.kind).find(|kind| is_it(kind)).unwrap_or(&FormKind::Any)
}

/// Returns the position of the first bracket, or `None` if the contract declares the complete name,
/// including its brackets.
pub(super) fn brackets_of(form: &Form, name: &str) -> Option<usize> {
    // A leading bracket belongs to the name.
    let brackets = position(name, b'[').filter(|at| *at > 0 && name.ends_with(']'));
    brackets.filter(|_| field(form, name, 0).is_none())
}

/// Returns the declared type of a member. `near` is its most likely position in the declaration.
fn field<'f>(form: &'f Form, name: &str, near: usize) -> Option<&'f Form> {
    let FormKind::Object { fields, .. } = &form.kind else { return None };
    let is_it = |field: &&'f FormField| *field.name.text == *name;
    let found = fields.get(near).filter(is_it).or_else(|| fields.iter().find(is_it))?;
    Some(&found.form)
}

/// Returns the declared type of a member or element.
fn inner<'f>(form: &'f Form, name: &str, near: usize) -> Option<&'f Form> {
    match &form.kind {
        FormKind::Object { others, .. } => field(form, name, near).or(others.as_deref()),
        FormKind::Array { items, .. } => Some(items),
        FormKind::OneOf(alternatives) => alternatives.iter().find_map(|one| inner(one, name, near)),
        _ => None,
    }
}

/// Appends a text as a scalar of its declared type.
fn scalar(value: &str, form: Option<&Form>, out: &mut Vec<u8>) {
    let is_number = |value: &str, fraction: bool| {
        switchback_json::Number::from_text(value).is_some() && (fraction || !value.contains(['.', 'e', 'E']))
    };
    let is_it = |form: &Form| match &form.kind {
        FormKind::Boolean => matches!(value, "true" | "false"),
        FormKind::Integer(_) => is_number(value, false),
        FormKind::Number(_) => is_number(value, true),
        _ => false,
    };
    let takes_text = |form: &Form| matches!(form.kind, FormKind::String(_) | FormKind::Any);
    let (is_plain, takes_text, nullable) = match form {
        None => (false, true, false),
        Some(Form { kind: FormKind::OneOf(all), nullable }) => {
            (all.iter().any(|one| is_it(one)), all.iter().any(|one| takes_text(one)), *nullable)
        }
        Some(form) => (is_it(form), takes_text(form), form.nullable),
    };
    if is_plain {
        out.extend_from_slice(value.as_bytes());
    } else if value.is_empty() && nullable && !takes_text {
        out.extend_from_slice(b"null");
    } else {
        out.push(b'"');
        out.extend_from_slice(text::escape(value).as_bytes());
        out.push(b'"');
    }
}

/// Encodes a JSON object as a form. The input is validated. An error is one of JSON syntax or
/// limits.
pub fn encode(format: &FormFormat, json: &[u8], limits: &Limits) -> Result<String, TranslateError> {
    let mut reader =
        Reader::new(Writer { format, out: String::with_capacity(json.len()), places: Vec::new() }, *limits);
    reader.feed(json)?;
    Ok(reader.finish()?.out)
}

/// A sink that writes a form while JSON is parsed.
struct Writer<'f> {
    format: &'f FormFormat,
    out: String,
    /// The open containers, outermost first.
    places: Vec<Within>,
}

/// An open container, and the position in it.
struct Within {
    /// Encoded prefix before the brackets of its members.
    prefix: String,
    /// The encoded name of the current member of an object.
    key: String,
    count: usize,
    container: Container,
    /// The list style of a top-level list.
    style: Option<ListStyle>,
}

impl Writer<'_> {
    /// Appends the name of the next value. `nests` is set for a container.
    fn name(&mut self, nests: bool, out: &mut String) {
        let depth = self.places.len();
        let Some(within) = self.places.last_mut() else { return };
        within.count += 1;
        let (prefix, key) = (&within.prefix, &within.key);
        if within.container == Container::Object && depth == 1 {
            return out.push_str(key);
        }
        out.push_str(prefix);
        match within.container {
            Container::Object => {
                out.push_str("%5B");
                out.push_str(key);
                out.push_str("%5D");
            }
            Container::Array if nests => {
                let _ = write!(out, "%5B{}%5D", within.count - 1);
            }
            Container::Array if within.style == Some(ListStyle::Repeated) => {}
            // The contract's name includes the brackets already.
            Container::Array if depth == 2 && prefix.ends_with("%5B%5D") => {}
            Container::Array => out.push_str("%5B%5D"),
        }
    }

    fn value(&mut self, value: &str) {
        let mut out = std::mem::take(&mut self.out);
        self.append(value, &mut out);
        self.out = out;
    }

    fn append(&mut self, value: &str, out: &mut String) {
        let Some(within) = self.places.last_mut() else { return };
        let delimiter = within.style.and_then(ListStyle::delimiter);
        if let Some(delimiter) = delimiter.filter(|_| within.count > 0) {
            // A further element of a delimited list.
            out.push_str(match delimiter {
                ',' => ",",
                ' ' => "+",
                _ => "%7C",
            });
            within.count += 1;
            return encode_query(value, out);
        }
        if !out.is_empty() {
            out.push('&');
        }
        if delimiter.is_some() {
            within.count = 1;
            out.push_str(&within.prefix);
        } else {
            self.name(false, out);
        }
        out.push('=');
        encode_query(value, out);
    }
}

impl Sink for Writer<'_> {
    fn open(&mut self, container: Container) -> Result<(), ErrorKind> {
        let style = match (container, &self.places[..]) {
            (Container::Array, [root]) => {
                // `root.key` is already encoded.
                let named = |(key, _): &&(switchback_plan::Key, ListStyle)| {
                    let mut name = String::new();
                    encode_query(&key.text, &mut name);
                    name == root.key
                };
                self.format.lists.iter().find(named).map(|(_, style)| *style)
            }
            _ => None,
        };
        let mut prefix = String::new();
        self.name(true, &mut prefix);
        self.places.push(Within { prefix, key: String::new(), count: 0, container, style });
        Ok(())
    }

    fn key(&mut self, raw: &str) -> Result<(), ErrorKind> {
        if let Some(within) = self.places.last_mut() {
            within.key.clear();
            encode_query(&text::decode(raw), &mut within.key);
        }
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), ErrorKind> {
        match scalar {
            Scalar::Null => self.value(""),
            Scalar::Bool(value) => self.value(if value { "true" } else { "false" }),
            Scalar::Number(number) => self.value(number),
            Scalar::String(raw) => self.value(&text::decode(raw)),
        }
        Ok(())
    }

    fn close(&mut self, _: Container) -> Result<(), ErrorKind> {
        self.places.pop();
        Ok(())
    }
}

/// Returns the decoded names and values of a form, in order, for comparison.
pub(super) fn pairs(text: &str) -> Value {
    let pairs = query_pairs(text).map(|(name, value)| {
        let (name, value) =
            (super::request::decode_query(name), super::request::decode_query(value.unwrap_or("")));
        let mut object = Object::new();
        let _ = object.insert_new(Str::new(&name), Value::string(&value));
        Value::Object(object)
    });
    Value::from(pairs.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use switchback_plan::Key;

    fn kind(kind: FormKind) -> Arc<Form> {
        Arc::new(Form { kind, nullable: false })
    }

    fn list_of(items: Arc<Form>) -> Arc<Form> {
        kind(FormKind::Array { items, items_min: 0, items_max: None })
    }

    fn object(fields: Vec<(&str, Arc<Form>)>) -> Arc<Form> {
        let field = |(name, form): (&str, _)| FormField { name: Key::new(name), form, required: false };
        kind(FormKind::Object { fields: fields.into_iter().map(field).collect(), others: None })
    }

    fn format() -> FormFormat {
        let text = || kind(FormKind::String(None));
        let inner = object(vec![("b", text()), ("n", kind(FormKind::Integer(None)))]);
        let form = object(vec![
            ("a", text()),
            ("n", kind(FormKind::Integer(None))),
            ("yes", kind(FormKind::Boolean)),
            ("maybe", Arc::new(Form { kind: FormKind::Number(None), nullable: true })),
            ("l", list_of(kind(FormKind::Integer(None)))),
            ("csv", list_of(text())),
            ("again", list_of(text())),
            ("o", inner.clone()),
            ("many", list_of(inner)),
            ("x[]", list_of(text())),
            ("any", kind(FormKind::Any)),
        ]);
        let lists = vec![(Key::new("csv"), ListStyle::Comma), (Key::new("again"), ListStyle::Repeated)];
        FormFormat { form, lists }
    }

    fn read(text: &str) -> Result<String, FormFault> {
        let mut out = Vec::new();
        decode(&format(), text.as_bytes(), &Limits::DOCUMENT, &mut out)?;
        Ok(String::from_utf8(out).expect("JSON is UTF-8"))
    }

    #[test]
    fn a_form_is_the_tree_that_its_contract_says() {
        for (form, json) in [
            ("", "{}"),
            ("a=x+y%26&n=7&yes=true", r#"{"a":"x y&","n":7,"yes":true}"#),
            ("n=seven&yes=1&maybe=&a=", r#"{"n":"seven","yes":"1","maybe":null,"a":""}"#),
            ("l=1", r#"{"l":[1]}"#),
            ("l[]=1&n=2&l%5B%5D=3", r#"{"l":[1,3],"n":2}"#),
            ("l[10]=1&l[2]=3", r#"{"l":[3,1]}"#),
            ("csv=a,b%2Cc&again=a&again=b", r#"{"csv":["a","b","c"],"again":["a","b"]}"#),
            ("csv=&x[]=q", r#"{"csv":[],"x[]":["q"]}"#),
            ("o[b]=x&o[n]=1", r#"{"o":{"b":"x","n":1}}"#),
            ("many[0][b]=x&many[1][n]=2&many[0][n]=1", r#"{"many":[{"b":"x","n":1},{"n":2}]}"#),
            ("many[][b]=x&many[][n]=1&many[][b]=y", r#"{"many":[{"b":"x","n":1},{"b":"y"}]}"#),
            (
                "any=1&other=2&other=3&more[]=4&m[k]=5",
                r#"{"any":"1","other":["2","3"],"more":["4"],"m":{"k":"5"}}"#,
            ),
        ] {
            assert_eq!(read(form).as_deref(), Ok(json), "{form}");
        }
    }

    #[test]
    fn what_is_no_form_of_its_contract_is_said_so() {
        for form in ["a=%ff", "a[b]c]=1", "a=1&a=2", "o=1&o[b]=2", "l[]=1&l[a]=2"] {
            assert!(read(form).is_err(), "{form}: {:?}", read(form));
        }
        let deep = format!("a{}=1", "[b]".repeat(100_000));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn what_is_written_is_what_the_contract_says() {
        let json = r#"{"a":"x y&","n":7,"yes":true,"maybe":null,"l":[1,2],"csv":["a","b"],"again":["a","b"],
            "o":{"b":"x"},"many":[{"b":"x"},{"n":1}],"deep":[[1],[2,3]],"none":[],"x[]":["q"]}"#;
        let form = encode(&format(), json.as_bytes(), &Limits::DOCUMENT).expect("it is JSON");
        let plain = percent_encoding::percent_decode_str(&form).decode_utf8_lossy().into_owned();
        assert_eq!(
            plain,
            "a=x y&&n=7&yes=true&maybe=&l[]=1&l[]=2&csv=a,b&again=a&again=b&o[b]=x&many[0][b]=x&many[1][n]=1\
             &deep[0][]=1&deep[1][]=2&deep[1][]=3&x[]=q"
        );
        assert!(form.starts_with("a=x%20y%26&n=7"), "{form}");
        assert!(encode(&format(), b"{\"a\":", &Limits::DOCUMENT).is_err());
    }

    #[test]
    fn a_form_of_a_hundred_thousand_names_is_read() {
        // With linear searches, this would take minutes.
        let flat: Vec<String> = (0..100_000).map(|n| format!("k{n}={n}")).collect();
        assert!(read(&flat.join("&")).is_ok());
        let nested: Vec<String> = (0..100_000).map(|n| format!("m[][k{n}]={n}")).collect();
        assert!(read(&nested.join("&")).is_ok());
        let elements: Vec<String> = (0..40_000).map(|n| format!("m[{n}][a]={n}")).collect();
        assert!(read(&elements.join("&")).is_ok());
    }

    /// Generates a tree that a form can represent, with its type.
    fn tree() -> impl Strategy<Value = (Value, Arc<Form>)> {
        let text = "[ -~äß]{0,6}".prop_map(|text| (Value::string(&text), kind(FormKind::String(None))));
        let number = any::<i64>().prop_map(|n| (Value::from(n), kind(FormKind::Integer(None))));
        let boolean = any::<bool>().prop_map(|value| (Value::Bool(value), kind(FormKind::Boolean)));
        let leaf = prop_oneof![text, number, boolean];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let members = proptest::collection::btree_map("[a-z0-9 &=+%.äß]{1,5}", inner.clone(), 1..5);
            let object = members.prop_map(|members| {
                let mut object = Object::new();
                let mut fields = Vec::new();
                for (name, (value, form)) in members {
                    object.insert(&*name, value);
                    fields.push(FormField { name: Key::new(&name), form, required: false });
                }
                (Value::Object(object), kind(FormKind::Object { fields, others: None }))
            });
            let list = (inner, 1..4_usize)
                .prop_map(|((value, form), count)| (Value::from(vec![value; count]), list_of(form)));
            prop_oneof![2 => object, 1 => list]
        })
        .prop_map(|(value, form)| {
            if value.as_object().is_some() {
                return (value, form);
            }
            let mut object = Object::new();
            object.insert("k", value);
            let fields = vec![FormField { name: Key::new("k"), form, required: false }];
            (Value::Object(object), kind(FormKind::Object { fields, others: None }))
        })
    }

    proptest! {
        #[test]
        fn what_a_form_can_say_comes_back((value, form) in tree(), repeated in any::<bool>()) {
            let lists = match (&form.kind, repeated) {
                (FormKind::Object { fields, .. }, true) => {
                    let scalars = |form: &Form| match &form.kind {
                        FormKind::Array { items, .. } => {
                            !matches!(items.kind, FormKind::Array { .. } | FormKind::Object { .. })
                        }
                        _ => false,
                    };
                    let lists = fields.iter().filter(|field| scalars(&field.form));
                    lists.map(|field| (field.name.clone(), ListStyle::Repeated)).collect()
                }
                _ => Vec::new(),
            };
            let format = FormFormat { form, lists };
            let text = encode(&format, &value.to_vec(), &Limits::DOCUMENT).expect("it is JSON");
            let mut out = Vec::new();
            decode(&format, text.as_bytes(), &Limits::DOCUMENT, &mut out).expect("it is a form");
            prop_assert_eq!(Value::parse(&out, &Limits::DOCUMENT).expect("it is JSON"), value, "{}", text);
        }

        #[test]
        fn escapes_are_those_of_the_library(text in "[a+%0-9A-Fg\u{e4}]{0,24}") {
            let spaced = text.replace('+', " ");
            let wanted = percent_encoding::percent_decode_str(&spaced).decode_utf8().ok();
            prop_assert_eq!(percent_decode(&text).ok(), wanted);
        }

        #[test]
        fn no_form_makes_anything_but_json_or_an_error(text in "[a-c=&\\[\\]%+0-2]{0,40}") {
            let mut out = Vec::new();
            if decode(&format(), text.as_bytes(), &Limits::DOCUMENT, &mut out).is_ok() {
                prop_assert!(Value::parse(&out, &Limits::DOCUMENT).is_ok(), "{}", String::from_utf8_lossy(&out));
            }
        }
    }
}
