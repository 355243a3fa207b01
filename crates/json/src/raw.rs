//! Values as bytes: their kind, their end, and the position of a member. The text must have been
//! checked before, by a [`super::Reader`] or as part of a [`super::Value`]. Errors in the structure
//! are reported; the content of scalars is not checked.

use super::error::{Error, ErrorKind, Expected};
use super::reader::is_blank;
use super::scan::{Portable, Scan};
use super::text;
use std::ops::Range;

/// The kinds of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// Returns the kind of a value with the first byte `first`.
    pub const fn of_first_byte(first: u8) -> Option<Kind> {
        match first {
            b'n' => Some(Kind::Null),
            b't' | b'f' => Some(Kind::Bool),
            b'-' | b'0'..=b'9' => Some(Kind::Number),
            b'"' => Some(Kind::String),
            b'[' => Some(Kind::Array),
            b'{' => Some(Kind::Object),
            _ => None,
        }
    }
}

/// Returns the kind of the first value in `bytes`.
pub fn kind(bytes: &[u8]) -> Option<Kind> {
    bytes.get(skip_blank(bytes, 0)).copied().and_then(Kind::of_first_byte)
}

/// Returns the first position from `at` that is not white space, or the length.
pub fn skip_blank(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| !is_blank(*byte)).map_or(bytes.len(), |blank| at + blank)
}

/// Returns the end of the value at `at`, after optional white space.
pub fn skip_value(bytes: &[u8], at: usize) -> Result<usize, Error> {
    let mut at = skip_blank(bytes, at);
    let mut depth = 0usize;
    loop {
        let first = *bytes.get(at).ok_or_else(|| end(bytes))?;
        match first {
            b'"' => at = skip_string(bytes, at)?,
            b'[' | b'{' => {
                depth += 1;
                at += 1;
            }
            b']' | b'}' => {
                depth = depth.checked_sub(1).ok_or_else(|| unexpected_error(at, Expected::Value))?;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            _ if Kind::of_first_byte(first).is_some() => at = Portable.bare_end(bytes, at),
            _ => return Err(unexpected_error(at, Expected::Value)),
        }
        if depth == 0 {
            return Ok(at);
        }
    }
}

/// Returns the end of the string whose opening quote is at `at`.
pub fn skip_string(bytes: &[u8], at: usize) -> Result<usize, Error> {
    let mut at = at + 1;
    while at < bytes.len() {
        at += text::string_break(&bytes[at..]);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => break,
        }
    }
    Err(end(bytes))
}

/// Returns the range of the value of the member with the decoded name `key`, if `bytes` is an object with
/// this member. Of duplicate names, the first one is found.
pub fn member(bytes: &[u8], key: &str) -> Result<Option<Range<usize>>, Error> {
    let mut at = skip_blank(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return Ok(None);
    }
    at = skip_blank(bytes, at + 1);
    while bytes.get(at) == Some(&b'"') {
        let name_end = skip_string(bytes, at)?;
        let name = &bytes[at + 1..name_end - 1];
        let colon = skip_blank(bytes, name_end);
        if bytes.get(colon) != Some(&b':') {
            return Err(unexpected_error(colon, Expected::Colon));
        }
        let start = skip_blank(bytes, colon + 1);
        let value_end = skip_value(bytes, start)?;
        if text::is_key(name, key.as_bytes()) {
            return Ok(Some(start..value_end));
        }
        at = skip_blank(bytes, value_end);
        match bytes.get(at) {
            Some(b',') => at = skip_blank(bytes, at + 1),
            Some(b'}') => return Ok(None),
            Some(_) => return Err(unexpected_error(at, Expected::CommaOrObjectEnd)),
            None => return Err(end(bytes)),
        }
    }
    match bytes.get(at) {
        Some(b'}') => Ok(None),
        Some(_) => Err(unexpected_error(at, Expected::KeyOrObjectEnd)),
        None => Err(end(bytes)),
    }
}

/// Returns the range of the value at a path of member names. An empty path selects the root.
pub fn lookup<'k>(
    bytes: &[u8],
    path: impl IntoIterator<Item = &'k str>,
) -> Result<Option<Range<usize>>, Error> {
    let start = skip_blank(bytes, 0);
    let mut found = start..skip_value(bytes, start)?;
    for key in path {
        match member(&bytes[found.clone()], key)? {
            Some(inner) => found = found.start + inner.start..found.start + inner.end,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

fn end(bytes: &[u8]) -> Error {
    Error::new(bytes.len() as u64, ErrorKind::UnexpectedEnd)
}

fn unexpected_error(at: usize, expected: Expected) -> Error {
    Error::new(at as u64, ErrorKind::Unexpected { expected })
}
