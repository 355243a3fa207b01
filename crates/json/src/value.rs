//! A JSON document in memory. It loses only white space: numbers and strings keep their text, and
//! objects the order of their members.
//!
//! Equality is that of JSON values: the order of members is ignored, strings and names are compared
//! after decoding, and numbers by their text, so `1.0` and `1` differ. [`Value::same_text`]
//! compares the serialized text.

mod object;

pub use object::Object;

use super::error::{Error, ErrorKind};
use super::limits::Limits;
use super::reader::{Container, Reader, Scalar, Sink};
use super::text;
use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Any JSON value.
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as text.
    Number(Number),
    /// A string with its escapes.
    String(Str),
    /// An array.
    Array(Array),
    /// An object.
    Object(Object),
}

/// A number as text, valid by RFC 8259.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

/// The text of a string between its quotes, with valid escapes.
#[derive(Clone)]
pub struct Str(Box<str>);

/// The elements of an array. Unlike a `Vec`, it is dropped without recursion.
#[derive(Default)]
pub struct Array(Vec<Value>);

impl Value {
    /// Parses exactly one value.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Value, Error> {
        let mut reader = Reader::new(ValueBuilder::default(), *limits);
        reader.feed(text)?;
        let empty = Error::new(text.len() as u64, ErrorKind::UnexpectedEnd);
        reader.finish()?.done.ok_or(empty)
    }

    /// Returns a string with this content, escaped as JSON requires.
    pub fn string(content: &str) -> Value {
        Value::String(Str::new(content))
    }

    /// Returns whether the value is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns the boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the decoded content of a string.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::String(value) => Some(value.decode()),
            _ => None,
        }
    }

    /// Returns the number.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Value::Number(value) => Some(value),
            _ => None,
        }
    }

    /// Returns an integer that fits `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// Returns the elements of an array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Value::Array(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the elements of an array.
    pub fn as_array_mut(&mut self) -> Option<&mut Array> {
        match self {
            Value::Array(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the members of an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the members of an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Value::Object(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value of the member with this decoded name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Returns the value of the member with this decoded name.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.as_object_mut()?.get_mut(key)
    }

    /// Returns the value and replaces it by null.
    pub fn take(&mut self) -> Value {
        std::mem::replace(self, Value::Null)
    }

    /// Appends the value without white space. Numbers, strings and names keep their text.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer { out, comma: false };
        // The writer accepts every event.
        let _ = self.tell(&mut writer);
    }

    /// Returns the text of [`Value::write`].
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// Returns whether both values have the same serialized text, including the order of members
    /// and the escapes.
    pub fn same_text(&self, other: &Value) -> bool {
        self.to_vec() == other.to_vec()
    }

    /// Sends this value to `sink` as a [`Reader`] would.
    pub fn tell(&self, sink: &mut impl Sink) -> Result<(), ErrorKind> {
        let mut open: Vec<Children<'_>> = Vec::new();
        let mut next = Some(self);
        loop {
            match next {
                Some(Value::Null) => sink.scalar(Scalar::Null)?,
                Some(Value::Bool(value)) => sink.scalar(Scalar::Bool(*value))?,
                Some(Value::Number(value)) => sink.scalar(Scalar::Number(value.text()))?,
                Some(Value::String(value)) => sink.scalar(Scalar::String(value.raw()))?,
                Some(Value::Array(value)) => {
                    sink.open(Container::Array)?;
                    open.push(Children::Array(value.iter()));
                }
                Some(Value::Object(value)) => {
                    sink.open(Container::Object)?;
                    open.push(Children::Object(Box::new(value.iter())));
                }
                None => match open.pop() {
                    Some(Children::Array(_)) => sink.close(Container::Array)?,
                    Some(Children::Object(_)) => sink.close(Container::Object)?,
                    None => return Ok(()),
                },
            }
            next = match open.last_mut() {
                None => return Ok(()),
                Some(Children::Array(values)) => values.next(),
                Some(Children::Object(members)) => match members.next() {
                    Some((key, value)) => {
                        sink.key(key.raw())?;
                        Some(value)
                    }
                    None => None,
                },
            };
        }
    }

    /// Returns whether a drop could reach more than one level.
    pub(super) fn has_children(&self) -> bool {
        match self {
            Value::Array(array) => !array.is_empty(),
            Value::Object(object) => !object.is_empty(),
            _ => false,
        }
    }
}

enum Children<'a> {
    Array(std::slice::Iter<'a, Value>),
    Object(Box<dyn Iterator<Item = (&'a Str, &'a Value)> + 'a>),
}

/// Drops values level by level instead of recursively.
fn dismantle(mut values: Vec<Value>) {
    while let Some(value) = values.pop() {
        match value {
            Value::Array(mut array) => values.append(&mut array.0),
            Value::Object(mut object) => values.extend(object.take_values()),
            _ => {}
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if self.0.iter().any(Value::has_children) {
            dismantle(std::mem::take(&mut self.0));
        }
    }
}

impl Clone for Value {
    fn clone(&self) -> Value {
        match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(*value),
            Value::Number(value) => Value::Number(value.clone()),
            Value::String(value) => Value::String(value.clone()),
            Value::Array(_) | Value::Object(_) => {
                let mut builder = ValueBuilder::default();
                self.tell(&mut builder).expect("names within one object of a value are different");
                builder.done.expect("a value tells one whole value")
            }
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        let mut pairs = vec![(self, other)];
        while let Some(pair) = pairs.pop() {
            let same = match pair {
                (Value::Null, Value::Null) => true,
                (Value::Bool(a), Value::Bool(b)) => a == b,
                (Value::Number(a), Value::Number(b)) => a == b,
                (Value::String(a), Value::String(b)) => a == b,
                (Value::Array(a), Value::Array(b)) => {
                    pairs.extend(a.iter().zip(b.iter()));
                    a.len() == b.len()
                }
                (Value::Object(a), Value::Object(b)) => {
                    let before = pairs.len();
                    pairs.extend(a.iter().map_while(|(key, value)| Some((value, b.get(&key.decode())?))));
                    a.len() == b.len() && pairs.len() - before == a.len()
                }
                _ => false,
            };
            if !same {
                return false;
            }
        }
        true
    }
}

impl Eq for Value {}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(&self.to_vec()))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(Number::from_i64(value))
    }
}

impl From<&str> for Value {
    fn from(content: &str) -> Value {
        Value::string(content)
    }
}

impl From<Str> for Value {
    fn from(value: Str) -> Value {
        Value::String(value)
    }
}

impl From<Number> for Value {
    fn from(value: Number) -> Value {
        Value::Number(value)
    }
}

impl From<Array> for Value {
    fn from(value: Array) -> Value {
        Value::Array(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Value {
        Value::Array(Array(values))
    }
}

impl From<Object> for Value {
    fn from(value: Object) -> Value {
        Value::Object(value)
    }
}

impl Number {
    /// Returns a number in decimal digits.
    pub fn from_i64(value: i64) -> Number {
        Number(value.to_string().into())
    }

    /// Returns a number with this text, if it is valid by RFC 8259, section 6.
    pub fn from_text(text: &str) -> Option<Number> {
        text::check_number(text.as_bytes()).ok().map(|()| Number(text.into()))
    }

    /// Returns the text of the number.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns an integer without fraction and exponent, if it fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Str {
    /// Returns a string with this content, escaped as JSON requires.
    pub fn new(content: &str) -> Str {
        Str(text::escape(content).into())
    }

    /// Returns a string with this text between its quotes, if it is valid.
    pub fn from_raw(raw: &str) -> Option<Str> {
        text::check_string(raw.as_bytes()).ok().map(|raw| Str(raw.into()))
    }

    /// Returns the text between the quotes, with its escapes.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// Returns the decoded content.
    pub fn decode(&self) -> Cow<'_, str> {
        text::decode(&self.0)
    }

    /// Returns whether the decoded content is `content`. Allocates only for strings with escapes.
    pub fn is(&self, content: &str) -> bool {
        text::is_key(self.0.as_bytes(), content.as_bytes())
    }
}

impl From<&str> for Str {
    fn from(content: &str) -> Str {
        Str::new(content)
    }
}

/// Compares the decoded content.
impl PartialEq for Str {
    fn eq(&self, other: &Str) -> bool {
        self.0 == other.0 || self.decode() == other.decode()
    }
}

impl Eq for Str {}

impl fmt::Debug for Str {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.0)
    }
}

impl Array {
    /// Returns an empty array.
    pub fn new() -> Array {
        Array::default()
    }
}

impl Deref for Array {
    type Target = Vec<Value>;

    fn deref(&self) -> &Vec<Value> {
        &self.0
    }
}

impl DerefMut for Array {
    fn deref_mut(&mut self) -> &mut Vec<Value> {
        &mut self.0
    }
}

impl From<Vec<Value>> for Array {
    fn from(values: Vec<Value>) -> Array {
        Array(values)
    }
}

impl FromIterator<Value> for Array {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Array {
        Array(values.into_iter().collect())
    }
}

impl IntoIterator for Array {
    type Item = Value;
    type IntoIter = std::vec::IntoIter<Value>;

    fn into_iter(mut self) -> Self::IntoIter {
        std::mem::take(&mut self.0).into_iter()
    }
}

impl<'a> IntoIterator for &'a Array {
    type Item = &'a Value;
    type IntoIter = std::slice::Iter<'a, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// A [`Sink`] that builds a value. It keeps the values read so far if the reader stops early.
#[derive(Default)]
pub struct ValueBuilder {
    open: Vec<Open>,
    done: Option<Value>,
}

enum Open {
    Array(Array),
    Object { members: Object, key: Option<Str> },
}

impl Open {
    fn into_value(self) -> Value {
        match self {
            Open::Array(values) => Value::Array(values),
            Open::Object { members, .. } => Value::Object(members),
        }
    }
}

impl ValueBuilder {
    /// Returns the value as far as it was read, and the number of its containers, from the root
    /// down along the last children, that were not read to their end. `None` if there is no value.
    pub fn finish_open(mut self) -> Option<(Value, usize)> {
        let open = self.open.len();
        while let Some(container) = self.open.pop() {
            self.add(container.into_value()).ok()?;
        }
        Some((self.done?, open))
    }

    fn add(&mut self, value: Value) -> Result<(), ErrorKind> {
        match self.open.last_mut() {
            None => self.done = Some(value),
            Some(Open::Array(values)) => values.push(value),
            Some(Open::Object { members, key }) => {
                let key = key.take().expect("a reader tells a name before each value of an object");
                members.insert_new(key, value).map_err(|_| ErrorKind::DuplicateMember)?;
            }
        }
        Ok(())
    }
}

impl Sink for ValueBuilder {
    fn open(&mut self, container: Container) -> Result<(), ErrorKind> {
        self.open.push(match container {
            Container::Array => Open::Array(Array::new()),
            Container::Object => Open::Object { members: Object::new(), key: None },
        });
        Ok(())
    }

    fn key(&mut self, raw: &str) -> Result<(), ErrorKind> {
        if let Some(Open::Object { members, key }) = self.open.last_mut() {
            let name = Str(raw.into());
            if members.contains_key(&name.decode()) {
                return Err(ErrorKind::DuplicateMember);
            }
            *key = Some(name);
        }
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), ErrorKind> {
        self.add(match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Number(text) => Value::Number(Number(text.into())),
            Scalar::String(raw) => Value::String(Str(raw.into())),
        })
    }

    fn close(&mut self, _: Container) -> Result<(), ErrorKind> {
        match self.open.pop() {
            Some(container) => self.add(container.into_value()),
            None => Ok(()),
        }
    }
}

/// Writes events as compact text.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Whether the next value in the container needs a comma.
    comma: bool,
}

impl Writer<'_> {
    fn separate(&mut self) {
        if std::mem::take(&mut self.comma) {
            self.out.push(b',');
        }
    }
}

impl Sink for Writer<'_> {
    fn open(&mut self, container: Container) -> Result<(), ErrorKind> {
        self.separate();
        self.out.push(if container == Container::Array { b'[' } else { b'{' });
        Ok(())
    }

    fn key(&mut self, raw: &str) -> Result<(), ErrorKind> {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(raw.as_bytes());
        self.out.extend_from_slice(b"\":");
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), ErrorKind> {
        self.separate();
        match scalar {
            Scalar::Null => self.out.extend_from_slice(b"null"),
            Scalar::Bool(true) => self.out.extend_from_slice(b"true"),
            Scalar::Bool(false) => self.out.extend_from_slice(b"false"),
            Scalar::Number(text) => self.out.extend_from_slice(text.as_bytes()),
            Scalar::String(raw) => {
                self.out.push(b'"');
                self.out.extend_from_slice(raw.as_bytes());
                self.out.push(b'"');
            }
        }
        self.comma = true;
        Ok(())
    }

    fn close(&mut self, container: Container) -> Result<(), ErrorKind> {
        self.out.push(if container == Container::Array { b']' } else { b'}' });
        self.comma = true;
        Ok(())
    }
}
