//! Request paths (RFC 3986, section 3.3): splitting and joining such that no value from a client or
//! an upstream can change the structure of a path.
//!
//! A path is rejected, not repaired, if servers may disagree about its separators, dot segments or
//! end.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use std::fmt;

/// The reason why a path is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It does not start with a slash.
    NotAbsolute,
    /// Two consecutive slashes, or a trailing slash.
    EmptySegment,
    /// `.` or `..`, escaped or not.
    DotSegment,
    /// An escaped slash, or a backslash, escaped or not.
    HiddenSeparator,
    /// A control character, escaped or not.
    Control,
    /// A percent sign without two hexadecimal digits.
    BadEscape,
    /// Escapes that are not UTF-8, or a character that must be escaped in a path.
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

/// Returns whether a path stays below its prefix, regardless of how the service interprets dot
/// segments, escapes, backslashes, segment parameters and repeated slashes. Any other path could
/// reach resources that the front does not expose.
pub fn stays_below(path: &str) -> bool {
    let mut depth = 0_i32;
    // Decode before splitting, because some servers do.
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    // Some servers treat a backslash as a slash.
    for segment in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        // Some servers remove `;…` before they compare segments (RFC 3986, section 3.3, on
        // parameters).
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

/// Returns the decoded segments of an absolute path without a query; none for `/`. Each segment is
/// decoded once: `%2541` is `%41`.
pub fn segments(raw: &str) -> Result<Vec<Cow<'_, str>>, PathError> {
    segments_with(raw, Allowed::default())
}

/// Exceptions from the rules for paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed {
    /// A trailing slash; the last segment is then empty.
    pub slash_at_end: bool,
    /// Escaped slashes within a segment. The parts between them must be neither empty nor dot
    /// segments.
    pub escaped_slash: bool,
}

/// Returns the decoded segments of a path with exceptions from the rules.
pub fn segments_with(raw: &str, allowed: Allowed) -> Result<Vec<Cow<'_, str>>, PathError> {
    let segment = |raw| decoded_segment(raw, allowed.escaped_slash);
    let rest = raw.strip_prefix('/').ok_or(PathError::NotAbsolute)?;
    // `"".split('/')` yields one empty segment, but the root path has none.
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    // The empty last segment is retained, because a contract may declare `/things/` and `/things` as
    // different paths.
    match rest.strip_suffix('/').filter(|_| allowed.slash_at_end) {
        Some(rest) => rest.split('/').map(segment).chain([Ok(Cow::Borrowed(""))]).collect(),
        None => rest.split('/').map(segment).collect(),
    }
}

/// Removes a prefix with one variable, such as `/accounts/{account}`, from an absolute path.
/// Returns the decoded value of the variable and the remaining path, or `None` if the path does not
/// have the prefix or ends with it.
pub fn strip_prefix<'p>(prefix: &str, raw: &'p str) -> Option<(Cow<'p, str>, &'p str)> {
    let mut value = None;
    let mut rest = raw;
    for wanted in prefix.split('/').skip(1) {
        let inner = rest.strip_prefix('/')?;
        // The prefix must be followed by another segment.
        let at = inner.find('/')?;
        // Compared after decoding, because `%61ccounts` and `accounts` are equivalent (RFC 3986, section
        // 6.2.2.2).
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
        // The common case: no escape to decode, and no byte that the checks below reject.
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
        // A server that decodes before it resolves dot segments would leave the variable's
        // position.
        text if text.split('/').any(|part| matches!(part, "." | "..")) => Err(PathError::DotSegment),
        text if text.split('/').any(str::is_empty) => Err(PathError::EmptySegment),
        text if text.chars().any(char::is_control) => Err(PathError::Control),
        _ => Ok(decoded),
    }
}

fn decode(raw: &str) -> Result<Cow<'_, str>, PathError> {
    // `percent_decode_str` passes malformed escapes through, so reject them here.
    let escapes = raw.bytes().enumerate().filter(|(_, byte)| *byte == b'%');
    for (at, _) in escapes {
        let digits = raw.as_bytes().get(at + 1..at + 3).ok_or(PathError::BadEscape)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(PathError::BadEscape);
        }
    }
    percent_encoding::percent_decode_str(raw).decode_utf8().map_err(|_| PathError::BadCharacter)
}

/// Returns whether the byte may occur in a path segment: `pchar` of RFC 3986, or the `%` of an
/// escape.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&byte)
}

/// Returns whether the byte is a `pchar` other than an escape. A lookup table, because it tests
/// every byte of every path.
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

/// All characters except the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A value that no escaping can turn into a path segment: empty, `.` or `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsafeSegment;

impl fmt::Display for UnsafeSegment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an empty text or a dot segment cannot be part of an address")
    }
}

impl std::error::Error for UnsafeSegment {}

/// Appends `value` as one path segment, with all but unreserved characters escaped.
pub fn encode_segment(value: &str, out: &mut String) -> Result<(), UnsafeSegment> {
    // Escaping does not help, because `%2E` is equivalent to `.` (RFC 3986, section 6.2.2.2): clients and
    // proxies remove dot segments and reach another resource. An empty segment often means the collection.
    if matches!(value, "" | "." | "..") {
        return Err(UnsafeSegment);
    }
    out.extend(utf8_percent_encode(value, RESERVED));
    Ok(())
}

/// Appends `value` as a name or value of a query, with all but unreserved characters escaped.
pub fn encode_query(value: &str, out: &mut String) {
    // The common case: alphanumeric values need no escaping.
    if value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return out.push_str(value);
    }
    out.extend(utf8_percent_encode(value, RESERVED));
}
