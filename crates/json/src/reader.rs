//! The reader: a state machine that accepts chunks of any size, checks every rule of RFC 8259 and
//! calls a [`Sink`] for each token. It stores the scalar at the end of a chunk and one mark per
//! open container.
//!
//! The verdict, the offset of an error and the events do not depend on the cuts. Therefore the
//! limits of a scalar are checked before its content, and the content only when it is complete.

use super::error::{Error, ErrorKind, Expected, Limit};
use super::keys::KeyLedger;
use super::limits::Limits;
use super::text;

/// The two kinds of container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// `[` to `]`.
    Array,
    /// `{` to `}`.
    Object,
}

/// A value that is no container, as text of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// The number's text.
    Number(&'a str),
    /// The text between the quotes, with its escapes.
    String(&'a str),
}

/// Receives the tokens of a [`Reader`] in order. An error stops the reader.
pub trait Sink {
    /// An array or an object starts, as the value of the last key or the next element.
    fn open(&mut self, container: Container) -> Result<(), ErrorKind>;
    /// A member name of the innermost object, with its escapes.
    fn key(&mut self, raw: &str) -> Result<(), ErrorKind>;
    /// A value that is no container.
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), ErrorKind>;
    /// The innermost container closes.
    fn close(&mut self, container: Container) -> Result<(), ErrorKind>;
}

/// A sink that rejects duplicate names.
#[derive(Debug, Default)]
pub struct Validator {
    keys: KeyLedger,
}

impl Sink for Validator {
    fn open(&mut self, container: Container) -> Result<(), ErrorKind> {
        if container == Container::Object {
            self.keys.open();
        }
        Ok(())
    }

    fn key(&mut self, raw: &str) -> Result<(), ErrorKind> {
        if self.keys.insert(raw) { Ok(()) } else { Err(ErrorKind::DuplicateMember) }
    }

    fn scalar(&mut self, _: Scalar<'_>) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn close(&mut self, container: Container) -> Result<(), ErrorKind> {
        if container == Container::Object {
            self.keys.close();
        }
        Ok(())
    }
}

/// Checks a complete text.
pub fn validate(text: &[u8], limits: &Limits) -> Result<(), Error> {
    let mut reader = Reader::new(Validator::default(), *limits);
    reader.feed(text)?;
    reader.finish().map(drop)
}

/// The next expected token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    AfterValue,
    /// Inside a string. `escaped`: the last byte was a backslash that starts an escape.
    String {
        key: bool,
        escaped: bool,
    },
    Number,
    Literal,
}

/// Reads one JSON text, pushed in chunks.
///
/// ```
/// use switchback_json::{Limits, Reader, Validator};
/// let mut reader = Reader::new(Validator::default(), Limits::DOCUMENT);
/// for chunk in [&b"{\"a\": tr"[..], b"ue", b"}"] {
///     reader.feed(chunk)?;
/// }
/// reader.finish()?;
/// # Ok::<(), switchback_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<S> {
    sink: S,
    limits: Limits,
    state: State,
    /// The open containers, each with the number of its members; 0 for arrays.
    open: Vec<(Container, usize)>,
    /// The start of a scalar that continues in the next chunk.
    pending: Vec<u8>,
    /// Offset of the current scalar, after its quote.
    scalar_start: u64,
    /// Bytes of all previous chunks.
    before: u64,
    nodes: usize,
    failed: Option<Error>,
}

impl<S: Sink> Reader<S> {
    /// Creates a reader for one text.
    pub fn new(sink: S, limits: Limits) -> Reader<S> {
        Reader {
            sink,
            limits,
            state: State::Value,
            open: Vec::new(),
            pending: Vec::new(),
            scalar_start: 0,
            before: 0,
            nodes: 0,
            failed: None,
        }
    }

    /// Reads the next bytes. After an error, every further call returns the same error.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.advance(chunk).inspect_err(|error| self.failed = Some(*error))
    }

    /// Finishes the text. Returns the sink if the text is exactly one value.
    pub fn finish(mut self) -> Result<S, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        // Only a number or literal at the root is ended by the end of the text.
        if matches!(self.state, State::Number | State::Literal) {
            self.end_bare(&[])?;
        }
        if self.state == State::AfterValue && self.open.is_empty() {
            Ok(self.sink)
        } else {
            Err(Error::new(self.before, ErrorKind::UnexpectedEnd))
        }
    }

    fn advance(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let room = usize::try_from(self.limits.total_bytes - self.before).unwrap_or(usize::MAX);
        // The allowed part is read first, because an error in it precedes the limit.
        let allowed = &chunk[..chunk.len().min(room)];
        let mut at = 0;
        while at < allowed.len() {
            at = match self.state {
                State::String { key, escaped } => self.string(allowed, at, key, escaped)?,
                State::Number | State::Literal => self.bare(allowed, at)?,
                _ => self.structure(allowed, at)?,
            };
        }
        self.before += allowed.len() as u64;
        if allowed.len() < chunk.len() {
            return Err(Error::new(self.before, ErrorKind::Limit(Limit::TotalBytes)));
        }
        Ok(())
    }

    /// Reads white space and at most one structural byte, or enters a scalar.
    fn structure(&mut self, chunk: &[u8], at: usize) -> Result<usize, Error> {
        let blank = chunk[at..].iter().take_while(|byte| is_blank(**byte)).count();
        let at = at + blank;
        let Some(&byte) = chunk.get(at) else {
            return Ok(at);
        };
        let place = self.before + at as u64;
        match (self.state, byte) {
            (State::ValueOrEnd, b']') => self.close(Container::Array, place)?,
            (State::Value | State::ValueOrEnd, _) => return self.value(byte, at),
            (State::KeyOrEnd, b'}') => self.close(Container::Object, place)?,
            (State::Key | State::KeyOrEnd, b'"') => {
                self.count_member(place)?;
                self.scalar_start = place + 1;
                self.state = State::String { key: true, escaped: false };
            }
            (State::Colon, b':') => self.state = State::Value,
            (State::AfterValue, _) => self.after_value(byte, place)?,
            (state, _) => return Err(Error::new(place, unexpected_kind(state, self.innermost()))),
        }
        Ok(at + 1)
    }

    fn innermost(&self) -> Option<Container> {
        self.open.last().map(|(container, _)| *container)
    }

    fn count_member(&mut self, place: u64) -> Result<(), Error> {
        let Some((_, members)) = self.open.last_mut() else { return Ok(()) };
        *members += 1;
        if *members > self.limits.members {
            return Err(Error::new(place, ErrorKind::Limit(Limit::Members)));
        }
        Ok(())
    }

    fn value(&mut self, byte: u8, at: usize) -> Result<usize, Error> {
        let place = self.before + at as u64;
        let first = match byte {
            b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => byte,
            _ => return Err(Error::new(place, unexpected_kind(self.state, self.innermost()))),
        };
        // Counted before the value is read: the sink allocates for each one.
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(Error::new(place, ErrorKind::Limit(Limit::Nodes)));
        }
        self.scalar_start = place;
        match first {
            b'{' => self.open(Container::Object, State::KeyOrEnd, place)?,
            b'[' => self.open(Container::Array, State::ValueOrEnd, place)?,
            b'"' => {
                self.scalar_start = place + 1;
                self.state = State::String { key: false, escaped: false };
            }
            b'-' | b'0'..=b'9' => {
                self.state = State::Number;
                return Ok(at);
            }
            _ => {
                self.state = State::Literal;
                return Ok(at);
            }
        }
        Ok(at + 1)
    }

    fn after_value(&mut self, byte: u8, place: u64) -> Result<(), Error> {
        match (self.innermost(), byte) {
            (None, _) => return Err(Error::new(place, ErrorKind::TrailingBytes)),
            (Some(Container::Array), b',') => self.state = State::Value,
            (Some(Container::Object), b',') => self.state = State::Key,
            (Some(Container::Array), b']') => self.close(Container::Array, place)?,
            (Some(Container::Object), b'}') => self.close(Container::Object, place)?,
            (inside, _) => return Err(Error::new(place, unexpected_kind(State::AfterValue, inside))),
        }
        Ok(())
    }

    fn open(&mut self, container: Container, inside: State, place: u64) -> Result<(), Error> {
        if self.open.len() >= self.limits.depth {
            return Err(Error::new(place, ErrorKind::Limit(Limit::Depth)));
        }
        self.open.push((container, 0));
        self.state = inside;
        self.sink.open(container).map_err(|kind| Error::new(place, kind))
    }

    fn close(&mut self, container: Container, place: u64) -> Result<(), Error> {
        self.open.pop();
        self.state = State::AfterValue;
        self.sink.close(container).map_err(|kind| Error::new(place, kind))
    }

    /// Reads a string up to its closing quote or the end of the chunk.
    fn string(&mut self, chunk: &[u8], from: usize, key: bool, escaped: bool) -> Result<usize, Error> {
        let limit = if key { self.limits.key_bytes } else { self.limits.scalar_bytes };
        let over = if key { Limit::KeyBytes } else { Limit::ScalarBytes };
        // The second byte of an escape is skipped: it neither closes the string nor starts another
        // escape.
        let mut at = from + usize::from(escaped);
        // The scan below finds escapes and control characters, so a string within one chunk needs
        // no second check.
        let mut plain = !escaped && self.pending.is_empty();
        loop {
            at += text::string_break(&chunk[at..]);
            // Checked before the bytes are stored, and independently of cuts, so that the error is
            // the same for every division of the text into chunks.
            if self.pending.len() + (at.min(chunk.len()) - from) > limit {
                return Err(Error::new(self.scalar_start, ErrorKind::Limit(over)));
            }
            match chunk.get(at) {
                Some(b'"') => {
                    self.end_string(&chunk[from..at], key, plain)?;
                    return Ok(at + 1);
                }
                Some(b'\\') if at + 1 < chunk.len() => {
                    plain = false;
                    at += 2;
                }
                Some(b'\\') => {
                    self.state = State::String { key, escaped: true };
                    break;
                }
                Some(_) => return Err(Error::new(self.before + at as u64, ErrorKind::ControlInString)),
                None => {
                    self.state = State::String { key, escaped: false };
                    break;
                }
            }
        }
        self.pending.extend_from_slice(&chunk[from..]);
        Ok(chunk.len())
    }

    /// Finishes a string. `plain`: `last` is the complete string, without escapes and control characters.
    fn end_string(&mut self, last: &[u8], key: bool, plain: bool) -> Result<(), Error> {
        let start = self.scalar_start;
        let (sink, state) = (&mut self.sink, if key { State::Colon } else { State::AfterValue });
        self.state = state;
        with_whole(&mut self.pending, last, |raw| {
            let checked = if plain { text::check_utf8(raw) } else { text::check_string(raw) };
            let raw = checked.map_err(|(at, kind)| Error::new(start + at as u64, kind))?;
            let told = if key { sink.key(raw) } else { sink.scalar(Scalar::String(raw)) };
            told.map_err(|kind| Error::new(start, kind))
        })
    }

    /// Reads a number or literal up to a byte that cannot be part of it.
    fn bare(&mut self, chunk: &[u8], from: usize) -> Result<usize, Error> {
        let part_of = |byte: &u8| match self.state {
            State::Number => matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'),
            _ => byte.is_ascii_alphanumeric(),
        };
        let len = chunk[from..].iter().take_while(|byte| part_of(byte)).count();
        if self.pending.len() + len > self.limits.scalar_bytes {
            return Err(Error::new(self.scalar_start, ErrorKind::Limit(Limit::ScalarBytes)));
        }
        let piece = &chunk[from..from + len];
        // The next chunk may continue the number or literal.
        if from + len == chunk.len() {
            self.pending.extend_from_slice(piece);
        } else {
            self.end_bare(piece)?;
        }
        Ok(from + len)
    }

    fn end_bare(&mut self, last: &[u8]) -> Result<(), Error> {
        let (start, number) = (self.scalar_start, self.state == State::Number);
        let sink = &mut self.sink;
        self.state = State::AfterValue;
        with_whole(&mut self.pending, last, |text| {
            let scalar = if number { number_of(text) } else { literal_of(text) };
            let scalar = scalar.map_err(|(at, kind)| Error::new(start + at as u64, kind))?;
            sink.scalar(scalar).map_err(|kind| Error::new(start, kind))
        })
    }
}

fn number_of(text: &[u8]) -> Result<Scalar<'_>, (usize, ErrorKind)> {
    text::check_number(text).map_err(|at| (at, ErrorKind::InvalidNumber))?;
    // Valid numbers are ASCII.
    std::str::from_utf8(text).map(Scalar::Number).map_err(|_| (0, ErrorKind::InvalidNumber))
}

fn literal_of(text: &[u8]) -> Result<Scalar<'static>, (usize, ErrorKind)> {
    match text {
        b"null" => Ok(Scalar::Null),
        b"true" => Ok(Scalar::Bool(true)),
        b"false" => Ok(Scalar::Bool(false)),
        _ => Err((0, ErrorKind::InvalidLiteral)),
    }
}

/// Runs `work` on the pending bytes and `last`. Copies only if there are pending bytes.
fn with_whole<T>(pending: &mut Vec<u8>, last: &[u8], work: impl FnOnce(&[u8]) -> T) -> T {
    if pending.is_empty() {
        return work(last);
    }
    pending.extend_from_slice(last);
    let done = work(pending);
    // Keeps the capacity for the next cut scalar.
    pending.clear();
    done
}

/// Returns whether a byte is white space (RFC 8259, section 2).
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn unexpected_kind(state: State, inside: Option<Container>) -> ErrorKind {
    let expected = match (state, inside) {
        (State::ValueOrEnd, _) => Expected::ValueOrArrayEnd,
        (State::Key, _) => Expected::Key,
        (State::KeyOrEnd, _) => Expected::KeyOrObjectEnd,
        (State::Colon, _) => Expected::Colon,
        (State::AfterValue, Some(Container::Object)) => Expected::CommaOrObjectEnd,
        (State::AfterValue, _) => Expected::CommaOrArrayEnd,
        _ => Expected::Value,
    };
    ErrorKind::Unexpected { expected }
}
