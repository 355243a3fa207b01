//! Errors of JSON text. They contain no part of the text,
//! so they can be logged and displayed.

use std::fmt;

/// An error in JSON text, with its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// Offset of the error in bytes; the length of a truncated text.
    pub offset: u64,
    /// The kind of error.
    pub kind: ErrorKind,
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is empty, or its last value is incomplete.
    UnexpectedEnd,
    /// An unexpected byte.
    Unexpected {
        /// The expected tokens.
        expected: Expected,
    },
    /// The value is followed by other bytes than white space.
    TrailingBytes,
    /// A number that RFC 8259 section 6 does not allow.
    InvalidNumber,
    /// A literal other than `true`, `false` and `null`.
    InvalidLiteral,
    /// A byte below 0x20 inside a string (section 7).
    ControlInString,
    /// A backslash that starts no valid escape.
    InvalidEscape,
    /// An escaped surrogate without its other half.
    LoneSurrogate,
    /// Bytes inside a string that are not UTF-8 (section 8.1).
    InvalidUtf8,
    /// A member name that occurred before in the same object, compared after decoding.
    DuplicateMember,
    /// A limit is exceeded.
    Limit(Limit),
}

/// The tokens expected at an unexpected byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The start of a value.
    Value,
    /// The start of a value, or `]`.
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
}

/// The exceeded limit; see [`super::Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Nesting of arrays and objects.
    Depth,
    /// Bytes of a member name between its quotes, with its escapes.
    KeyBytes,
    /// Bytes of a string or number, with its escapes.
    ScalarBytes,
    /// Members of one object.
    Members,
    /// Values of a text, including nested ones.
    Nodes,
    /// Bytes of a text, including white space.
    TotalBytes,
    /// Bytes of a value that a plan buffers.
    HeldBytes,
}

impl Error {
    /// Returns an error at this offset.
    pub const fn new(offset: u64, kind: ErrorKind) -> Error {
        Error { offset, kind }
    }

    /// Returns whether a limit is exceeded, rather than the grammar violated (413 rather than 400
    /// for a client).
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
