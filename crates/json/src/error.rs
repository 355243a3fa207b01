//! What can be wrong with JSON text, and where. Texts are calm and carry nothing of the message
//! itself, so that they may be logged and shown.

use std::fmt;

/// A fault in JSON text with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// Bytes from the start of the text to the fault; the length of the text when it ended early.
    pub offset: u64,
    /// What is wrong there.
    pub kind: ErrorKind,
}

/// The ways in which text fails to be acceptable JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text ends inside a value, or is empty.
    UnexpectedEnd,
    /// A byte that cannot stand here; what could is named.
    Unexpected {
        /// What could have stood there.
        expected: Expected,
    },
    /// Something other than white space follows the value.
    TrailingBytes,
    /// A number that RFC 8259 section 6 does not allow.
    InvalidNumber,
    /// A bare word other than `true`, `false` and `null`.
    InvalidLiteral,
    /// A byte below 0x20 inside a string (section 7).
    ControlInString,
    /// A backslash followed by something that is no escape.
    InvalidEscape,
    /// An escaped surrogate without its other half: no Unicode text.
    LoneSurrogate,
    /// Bytes inside a string that are not UTF-8 (section 8.1).
    InvalidUtf8,
    /// A member whose decoded name occurred before in the same object.
    DuplicateMember,
    /// A bound was passed.
    Limit(Limit),
}

/// What could have stood where an unexpected byte was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The beginning of a value.
    Value,
    /// The beginning of a value, or `]`.
    ValueOrArrayEnd,
    /// A member name in quotes.
    Key,
    /// A member name in quotes, or `}`.
    KeyOrObjectEnd,
    /// The `:` after a member name.
    Colon,
    /// `,` or `]`.
    CommaOrArrayEnd,
    /// `,` or `}`.
    CommaOrObjectEnd,
    /// Found only by structure-only scanning, which does not tell more.
    Structure,
}

/// The bound that was passed, see [`super::Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Arrays and objects within one another.
    Depth,
    /// Bytes of a member name between its quotes, escapes as they stand.
    KeyBytes,
    /// Bytes of a string or number, escapes as they stand.
    ScalarBytes,
    /// Of one object.
    Members,
    /// Values of a text, those within others included.
    Nodes,
    /// Bytes of a text, white space included.
    TotalBytes,
    /// Of a value that a plan must keep for a while.
    HeldBytes,
}

impl Error {
    /// An error at this byte of the text.
    pub const fn new(offset: u64, kind: ErrorKind) -> Error {
        Error { offset, kind }
    }

    /// Whether a bound was passed rather than the grammar broken (413 rather than 400 for a client).
    pub const fn is_limit(&self) -> bool {
        matches!(self.kind, ErrorKind::Limit(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at byte {}", self.kind, self.offset)
    }
}

impl std::error::Error for Error {}

impl fmt::Display for ErrorKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ErrorKind::UnexpectedEnd => "unexpected end",
            ErrorKind::Unexpected { expected } => {
                return write!(out, "expected {expected}");
            }
            ErrorKind::TrailingBytes => "unexpected text after the value",
            ErrorKind::InvalidNumber => "invalid number",
            ErrorKind::InvalidLiteral => "unknown word where a value was expected",
            ErrorKind::ControlInString => "unescaped control character in a string",
            ErrorKind::InvalidEscape => "invalid escape in a string",
            ErrorKind::LoneSurrogate => "half of a surrogate pair in a string",
            ErrorKind::InvalidUtf8 => "invalid UTF-8 in a string",
            ErrorKind::DuplicateMember => "member named twice in one object",
            ErrorKind::Limit(limit) => return limit.fmt(out),
        })
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Expected::Value => "a value",
            Expected::ValueOrArrayEnd => "a value or `]`",
            Expected::Key => "a member name",
            Expected::KeyOrObjectEnd => "a member name or `}`",
            Expected::Colon => "`:`",
            Expected::CommaOrArrayEnd => "`,` or `]`",
            Expected::CommaOrObjectEnd => "`,` or `}`",
            Expected::Structure => "brackets that match",
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Limit::Depth => "nested too deeply",
            Limit::KeyBytes => "member name too long",
            Limit::ScalarBytes => "string or number too long",
            Limit::Members => "too many members in one object",
            Limit::Nodes => "too many values",
            Limit::TotalBytes => "text too long",
            Limit::HeldBytes => "value too long to be kept",
        })
    }
}
