//! One value as it may be kept: what it is, how long, what it looks like, and itself only when nothing about it is secret.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
    /// A body that is no JSON, or a header.
    Bytes,
}

impl Kind {
    /// The kind in a word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "boolean",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Array => "array",
            Kind::Object => "object",
            Kind::Bytes => "bytes",
        }
    }
}

/// A value, redacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// What was sampled.
    pub kind: Kind,
    /// Characters of a text or number, elements of an array, members of an object, bytes of other bodies.
    pub length: u64,
    /// What a masked scalar looks like: `9` for a digit, `a` and `A` for letters, other marks as they are, cut with `…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// The same for equal values under one salt; says nothing of the value to whoever lacks the salt.
    pub hash: String,
    /// The value as JSON text, cut with `…`; none when it is masked or holds others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl fmt::Display for Sample {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.text, &self.shape, self.kind) {
            (Some(text), ..) => out.write_str(text),
            (None, Some(shape), kind) => write!(out, "<{} like {shape} #{}>", kind.word(), self.hash),
            (None, None, Kind::Array) => write!(out, "<array of {} #{}>", self.length, self.hash),
            (None, None, Kind::Object) => write!(out, "<object of {} #{}>", self.length, self.hash),
            (None, None, kind) => write!(out, "<{} of {} #{}>", kind.word(), self.length, self.hash),
        }
    }
}
