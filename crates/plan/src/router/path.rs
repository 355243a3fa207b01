//! Paths of requests (RFC 3986, section 3.3), taken apart and put together so that nothing a client or an upstream says
//! changes the shape of a path.
//!
//! Refused rather than repaired: what one server reads as a separator, a dot segment or an end and another does not.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use std::fmt;

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It does not begin with a slash.
    NotAbsolute,
    /// Two slashes in a row, or one at the end.
    EmptySegment,
    /// `.` or `..`, escaped or not.
    DotSegment,
    /// An escaped slash, or a backslash, escaped or not.
    HiddenSeparator,
    /// A control character, escaped or not.
    Control,
    /// A percent sign without two hexadecimal digits.
    BadEscape,
    /// Escapes that are not UTF-8, or a character that has to be escaped in a path.
    BadCharacter,
}

impl fmt::Display for PathError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            PathError::NotAbsolute => "the path does not begin with a slash",
            PathError::EmptySegment => "the path has an empty segment",
            PathError::DotSegment => "the path has a dot segment",
            PathError::HiddenSeparator => "the path has an escaped slash or a backslash",
            PathError::Control => "the path has a control character",
            PathError::BadEscape => "the path has a percent sign that escapes nothing",
            PathError::BadCharacter => "the path has a character that is not allowed there",
        })
    }
}

impl std::error::Error for PathError {}

/// Whether a path stays below the prefix that it follows, however the service behind reads dot segments, escapes, backslashes,
/// parameters of segments and several slashes in a row. A path that does not would reach what was never put behind the
/// front.
pub fn stays_below(path: &str) -> bool {
    let mut depth = 0_i32;
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    for segment in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        // Some servers cut `;…` off before they look (RFC 3986, section 3.3, on parameters).
        match segment.split(|byte| *byte == b';').next().unwrap_or_default() {
            b"" | b"." => {}
            b".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return false;
        }
    }
    true
}

/// The decoded segments of an absolute path without a query; `/` has none. Each segment is decoded once: `%2541` is
/// `%41`.
pub fn segments(raw: &str) -> Result<Vec<Cow<'_, str>>, PathError> {
    segments_with(raw, Allowed::default())
}

/// What paths may hold that others refuse.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed {
    /// A slash at the end, after which the last segment is empty.
    pub slash_at_end: bool,
    /// Escaped slashes within a segment, between parts that are neither empty nor dots.
    pub escaped_slash: bool,
}

/// The same for paths that may hold more.
pub fn segments_with(raw: &str, allowed: Allowed) -> Result<Vec<Cow<'_, str>>, PathError> {
    let segment = |raw| decoded_segment(raw, allowed.escaped_slash);
    let rest = raw.strip_prefix('/').ok_or(PathError::NotAbsolute)?;
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    match rest.strip_suffix('/').filter(|_| allowed.slash_at_end) {
        Some(rest) => rest.split('/').map(segment).chain([Ok(Cow::Borrowed(""))]).collect(),
        None => rest.split('/').map(segment).collect(),
    }
}

/// Takes a prefix with one variable, such as `/accounts/{account}`, off an absolute path: gives the variable's decoded value
/// and the path that is left. None when the path does not begin so, or has nothing after it.
pub fn under<'p>(prefix: &str, raw: &'p str) -> Option<(Cow<'p, str>, &'p str)> {
    let mut value = None;
    let mut rest = raw;
    for wanted in prefix.split('/').skip(1) {
        let inner = rest.strip_prefix('/')?;
        let at = inner.find('/')?;
        let found = segment(&inner[..at]).ok()?;
        rest = &inner[at..];
        if wanted.starts_with('{') {
            value = Some(found);
        } else if found != wanted {
            return None;
        }
    }
    Some((value?, rest))
}

fn segment(raw: &str) -> Result<Cow<'_, str>, PathError> {
    decoded_segment(raw, false)
}

fn decoded_segment(raw: &str, takes_slash: bool) -> Result<Cow<'_, str>, PathError> {
    if !raw.is_empty() && raw.bytes().all(is_plain_path_byte) && !matches!(raw, "." | "..") {
        // The usual segment: nothing to decode, and nothing of what is refused below can be in it.
        return Ok(Cow::Borrowed(raw));
    }
    if !raw.bytes().all(is_path_byte) {
        let control = raw.bytes().any(|byte| byte.is_ascii_control());
        let backslash = raw.contains('\\');
        return Err(match (control, backslash) {
            (true, _) => PathError::Control,
            (false, true) => PathError::HiddenSeparator,
            (false, false) => PathError::BadCharacter,
        });
    }
    let decoded = decode(raw)?;
    match decoded.as_ref() {
        "" => Err(PathError::EmptySegment),
        "." | ".." => Err(PathError::DotSegment),
        text if text.contains('\\') || (!takes_slash && text.contains('/')) => {
            Err(PathError::HiddenSeparator)
        }
        // A server that decodes before it resolves dots would leave the variable.
        text if text.split('/').any(|part| matches!(part, "." | "..")) => Err(PathError::DotSegment),
        text if text.split('/').any(str::is_empty) => Err(PathError::EmptySegment),
        text if text.chars().any(char::is_control) => Err(PathError::Control),
        _ => Ok(decoded),
    }
}

fn decode(raw: &str) -> Result<Cow<'_, str>, PathError> {
    let escapes = raw.bytes().enumerate().filter(|(_, byte)| *byte == b'%');
    for (at, _) in escapes {
        let digits = raw.as_bytes().get(at + 1..at + 3).ok_or(PathError::BadEscape)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(PathError::BadEscape);
        }
    }
    percent_encoding::percent_decode_str(raw).decode_utf8().map_err(|_| PathError::BadCharacter)
}

/// `pchar` of RFC 3986: unreserved, sub-delims, `:`, `@`, and the `%` of escapes.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&byte)
}

/// The same without escapes. Every byte of every path goes through here.
fn is_plain_path_byte(byte: u8) -> bool {
    const PLAIN: [bool; 256] = {
        let mut plain = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            let marks = b"-._~!$&'()*+,;=:@";
            let mut at = 0;
            plain[byte] = (byte as u8).is_ascii_alphanumeric();
            while at < marks.len() {
                plain[byte] |= marks[at] == byte as u8;
                at += 1;
            }
            byte += 1;
        }
        plain
    };
    PLAIN[usize::from(byte)]
}

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A value that cannot be one segment of a path, however it is escaped: empty, `.` or `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsafeSegment;

impl fmt::Display for UnsafeSegment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an empty text or a dot segment cannot be part of an address")
    }
}

impl std::error::Error for UnsafeSegment {}

/// Appends `value` as one path segment: all but unreserved characters escaped.
pub fn encode_segment(value: &str, out: &mut String) -> Result<(), UnsafeSegment> {
    if matches!(value, "" | "." | "..") {
        return Err(UnsafeSegment);
    }
    out.extend(utf8_percent_encode(value, RESERVED));
    Ok(())
}

/// Appends `value` as a name or value of a query: all but unreserved characters escaped.
pub fn encode_query(value: &str, out: &mut String) {
    // Numbers and words are escaped as they are, and most values are such.
    if value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return out.push_str(value);
    }
    out.extend(utf8_percent_encode(value, RESERVED));
}
