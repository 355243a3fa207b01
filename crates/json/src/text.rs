//! The content of single scalars: escapes of strings and the grammar of numbers, on complete
//! slices. All readers of this project use these functions; finding the end of a scalar is the task
//! of the readers.

use super::error::ErrorKind;
use std::borrow::Cow;

/// Returns the index of the first quote, backslash or control character, or the length if there is
/// none.
pub fn string_break(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(word) = bytes.get(at..at + 8) {
        // A slice of eight bytes always converts.
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes were sliced"));
        let found = break_marks(word);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let is_break = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    at + bytes[at..].iter().position(is_break).unwrap_or(bytes.len() - at)
}

/// Marks the high bit of every quote, backslash and control character of `word`. Borrows may also
/// mark bytes above the first match, so only the lowest mark is valid.
fn break_marks(word: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let equal = |byte: u8| {
        let differing = word ^ (LOW * u64::from(byte));
        differing.wrapping_sub(LOW) & !differing
    };
    let control = word.wrapping_sub(LOW * 0x20) & !word;
    (equal(b'"') | equal(b'\\') | control) & HIGH
}

/// Checks that text is UTF-8. An error has the offset within `raw`.
pub fn check_utf8(raw: &[u8]) -> Result<&str, (usize, ErrorKind)> {
    std::str::from_utf8(raw).map_err(|error| (error.valid_up_to(), ErrorKind::InvalidUtf8))
}

/// Checks the text between the quotes of a string: UTF-8, control characters, escapes, surrogates.
/// An error has the offset within `raw`.
pub fn check_string(raw: &[u8]) -> Result<&str, (usize, ErrorKind)> {
    let text = check_utf8(raw)?;
    let mut at = 0;
    loop {
        at += string_break(&raw[at..]);
        match raw.get(at) {
            None => return Ok(text),
            Some(b'\\') => at += character_len(&raw[at..]).map_err(|kind| (at, kind))?,
            Some(b'"') => return Err((at, ErrorKind::TrailingBytes)),
            Some(_) => return Err((at, ErrorKind::ControlInString)),
        }
    }
}

/// Returns the length of the escape that `raw` starts with, by the grammar alone: a lone surrogate
/// is an escape. Returns `None` if `raw` starts with no complete escape.
#[inline]
pub fn escape_len(raw: &[u8]) -> Option<usize> {
    match raw {
        [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [b'\\', b'u', digits @ ..] => match digits.first_chunk::<4>() {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Some(6),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the length of the character that is escaped at the start of `raw`: a surrogate pair has
/// two escapes.
fn character_len(raw: &[u8]) -> Result<usize, ErrorKind> {
    let len = escape_len(raw).ok_or(ErrorKind::InvalidEscape)?;
    if len == 2 {
        return Ok(len);
    }
    match hex4(raw, 2) {
        Some(0xD800..0xDC00) if raw[len..].starts_with(b"\\u") => {
            match hex4(raw, len + 2).ok_or(ErrorKind::InvalidEscape)? {
                0xDC00..0xE000 => Ok(2 * len),
                _ => Err(ErrorKind::LoneSurrogate),
            }
        }
        Some(0xD800..0xE000) => Err(ErrorKind::LoneSurrogate),
        _ => Ok(len),
    }
}

fn hex4(raw: &[u8], at: usize) -> Option<u32> {
    let digits = raw.get(at..at + 4)?;
    digits.iter().try_fold(0, |sum, &digit| Some(sum * 16 + char::from(digit).to_digit(16)?))
}

/// Decodes the escapes of a string that [`check_string`] accepted. In any other text, invalid
/// escapes stay unchanged and lone surrogates become U+FFFD.
pub fn decode(raw: &str) -> Cow<'_, str> {
    decode_escapes(raw).0
}

/// Decodes the escapes of `raw` like [`decode`]. Returns `None` if it has an invalid escape.
pub fn try_decode(raw: &str) -> Option<Cow<'_, str>> {
    match decode_escapes(raw) {
        (decoded, true) => Some(decoded),
        (_, false) => None,
    }
}

/// Returns the decoded text, and whether all escapes are valid.
#[inline]
fn decode_escapes(raw: &str) -> (Cow<'_, str>, bool) {
    let Some(first) = memchr::memchr(b'\\', raw.as_bytes()) else {
        return (Cow::Borrowed(raw), true);
    };
    let mut is_valid = true;
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    let mut next = Some(first);
    while let Some(backslash) = next {
        out.push_str(&rest[..backslash]);
        rest = &rest[backslash..];
        let (decoded, len) = decode_escape(rest);
        match decoded {
            Some(decoded) => out.push(decoded),
            None => {
                is_valid = false;
                out.push_str(&rest[..len]);
            }
        }
        rest = &rest[len..];
        next = memchr::memchr(b'\\', rest.as_bytes());
    }
    out.push_str(rest);
    (Cow::Owned(out), is_valid)
}

/// Returns the character of the escape at the start of `text`, and the length of the escape.
fn decode_escape(text: &str) -> (Option<char>, usize) {
    let raw = text.as_bytes();
    let simple = |decoded| (Some(decoded), 2);
    match raw.get(1) {
        Some(b'"') => simple('"'),
        Some(b'\\') => simple('\\'),
        Some(b'/') => simple('/'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(b'n') => simple('\n'),
        Some(b'r') => simple('\r'),
        Some(b't') => simple('\t'),
        Some(b'u') => match (hex4(raw, 2), hex4(raw, 8)) {
            (Some(high @ 0xD800..0xDC00), Some(low @ 0xDC00..0xE000)) if raw[6..8] == *b"\\u" => {
                (char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)), 12)
            }
            (Some(unit), _) => (Some(char::from_u32(unit).unwrap_or('\u{fffd}')), 6),
            (None, _) => (None, 1),
        },
        _ => (None, 1),
    }
}

/// Escapes `text` as RFC 8259, section 7 requires; without quotes.
pub fn escape(text: &str) -> Cow<'_, str> {
    if string_break(text.as_bytes()) == text.len() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                out.push_str("\\u00");
                out.push(if control < '\u{10}' { '0' } else { '1' });
                // The low half of a control character is one hexadecimal digit.
                out.push(char::from_digit(control as u32 & 0xF, 16).expect("four bits"));
            }
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// Returns whether the decoded text of `raw` is `key`.
pub fn is_key(raw: &[u8], key: &[u8]) -> bool {
    // An escape is always longer than its character, so texts of equal length are equal only byte for byte,
    // without escapes.
    match raw.len().cmp(&key.len()) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => raw == key && memchr::memchr(b'\\', raw).is_none(),
        std::cmp::Ordering::Greater => {
            memchr::memchr(b'\\', raw).is_some()
                && std::str::from_utf8(raw).is_ok_and(|raw| decode(raw).as_bytes() == key)
        }
    }
}

/// Checks the text of a number (RFC 8259, section 6). An error is the offset in `text`.
pub fn check_number(text: &[u8]) -> Result<(), usize> {
    let digits = |from: usize| from + text[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let some_digits = |from: usize| match digits(from.min(text.len())) {
        end if end > from => Ok(end),
        end => Err(end),
    };
    let mut at = usize::from(text.first() == Some(&b'-'));
    at = match text.get(at) {
        Some(b'0') => at + 1,
        _ => some_digits(at)?,
    };
    if text.get(at) == Some(&b'.') {
        at = some_digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        at = some_digits(at)?;
    }
    if at == text.len() { Ok(()) } else { Err(at) }
}
