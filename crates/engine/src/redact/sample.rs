//! A redacted value: its type, length and shape, and the value itself only if no part of it is
//! secret.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a sampled value.
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
    /// A body that is not JSON.
    Bytes,
}

impl Kind {
    /// Returns the type as a word.
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

/// A redacted value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The type of the value.
    pub kind: Kind,
    /// Characters of a text or number, elements of an array, members of an object, or bytes of
    /// another body.
    pub length: u64,
    /// Shape of a masked scalar: `9` for a digit, `a` and `A` for letters, punctuation unchanged,
    /// truncated with `…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// Keyed hash, equal for equal values under one salt. It reveals no information without the
    /// salt.
    pub hash: String,
    /// The value as JSON text, truncated with `…`. `None` if it is masked or a non-empty container.
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
