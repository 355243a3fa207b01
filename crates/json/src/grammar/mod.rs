//! Checks the grammar of RFC 8259 and the depth of a text, over chunks of any size.
//!
//! It does not check UTF-8 ([`Utf8Checker`](crate::Utf8Checker)), duplicate names, lone surrogates,
//! which the grammar allows, or the length of scalars. The [`Reader`](crate::Reader) checks all of
//! these and reports each token, but takes ten times as long. Tests compare both.
//!
//! Decisions to know before editing:
//!
//! - [`Grammar::byte`] implements the grammar, one byte at a time, and reports every error.
//!   [`Blocks`] is a fast path for 64 valid bytes: it compares classes of bytes with the bytes
//!   after them, and processes only brackets one by one. It leaves invalid blocks and cut scalars
//!   to `byte`.
//! - The start of a value sets the state after the value, so the end of a value needs no work.

mod blocks;

use self::blocks::{BLOCK_BYTES, Blocks, TAIL_BYTES};
use super::error::{Error, ErrorKind, Expected, Limit};
use super::reader::is_blank;
use super::scan::{self, Level, Scan, Task};

/// The next expected token, outside of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    AfterElement,
    AfterMember,
    /// Only white space.
    End,
}

/// The current scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    String,
    /// After a backslash.
    Escape,
    /// Remaining hexadecimal digits.
    Hex(u8),
    Number(Number),
    /// A literal, and the number of its bytes so far.
    Word(&'static [u8], u8),
}

/// The last part of a number so far (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

/// The open arrays and objects at a position of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Open {
    depth: u8,
    objects: u32,
}

impl Open {
    const DEPTH_MAX: usize = 32;

    /// Returns the number of open containers.
    pub fn depth(self) -> usize {
        usize::from(self.depth)
    }

    /// Returns a bit for each container, outermost first: 1 for an object.
    pub fn bits(self) -> u32 {
        self.objects
    }
}

/// The end of the text between two scalars, with its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// A scalar that is a value.
    Scalar(usize),
    /// The last bracket of the text.
    End(usize),
}

/// Returns whether a string, a number or a literal can start with `byte`.
pub const fn is_scalar_start(byte: u8) -> bool {
    matches!(byte, b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
}

/// Checks one text, pushed in chunks.
///
/// ```
/// use switchback_json::Grammar;
/// let mut grammar = Grammar::new(64);
/// for chunk in [&b"{\"a\": tr"[..], b"ue", b"}"] {
///     grammar.feed(chunk)?;
/// }
/// grammar.finish()?;
/// assert!(Grammar::new(64).feed(b"[01]").is_err());
/// # Ok::<(), switchback_json::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Grammar {
    next: Next,
    /// The state after a value at the current position.
    after: Next,
    inside: Inside,
    /// The state after each open array and object.
    open: Vec<Next>,
    depth_max: usize,
    /// Bytes of all previous chunks.
    before: u64,
    level: Level,
    failed: Option<Error>,
}

impl Grammar {
    /// `depth_max`: maximum number of open arrays and objects.
    pub fn new(depth_max: usize) -> Grammar {
        Grammar {
            next: Next::Value,
            after: Next::End,
            inside: Inside::Nothing,
            open: Vec::new(),
            depth_max,
            before: 0,
            level: Level::best(),
            failed: None,
        }
    }

    /// Starts another text. `offset` is added to the offsets of errors. Reuses the stack.
    pub fn restart(&mut self, depth_max: usize, offset: u64) {
        self.open.clear();
        (self.next, self.after, self.inside) = (Next::Value, Next::End, Inside::Nothing);
        (self.depth_max, self.before, self.failed) = (depth_max, offset, None);
    }

    /// Continues within `open`, at a value or after one; see [`Grammar::restart`].
    pub fn resume(&mut self, open: Open, is_behind: bool, depth_max: usize, offset: u64) {
        self.restart(depth_max, offset);
        for at in 0..open.depth() {
            self.open.push(self.after);
            self.after = if open.objects >> at & 1 == 1 { Next::AfterMember } else { Next::AfterElement };
        }
        self.next = if is_behind { self.after } else { Next::Value };
    }

    /// Returns the open arrays and objects, unless they exceed the capacity of [`Open`].
    pub fn open(&self) -> Option<Open> {
        let inner = self.open.iter().skip(1).chain(self.open.first().map(|_| &self.after));
        inner.enumerate().try_fold(Open::default(), |open, (at, after)| {
            // A shift beyond the word fails, which limits the search to the capacity of `Open`.
            let object = u32::from(*after == Next::AfterMember).checked_shl(at as u32)?;
            (at < Open::DEPTH_MAX).then(|| Open { depth: open.depth + 1, objects: open.objects | object })
        })
    }

    /// Reads from the end of a scalar, or the start of the text, to the next scalar or the end of
    /// the text. Returns `None` if `text` is invalid or incomplete.
    pub fn feed_to_scalar(&mut self, text: &[u8]) -> Option<Gap> {
        for (at, byte) in text.iter().enumerate() {
            let is_value = matches!(self.next, Next::Value | Next::ValueOrEnd);
            // A string that is a name is part of the gap: only values interrupt it.
            if self.inside == Inside::Nothing && is_value && is_scalar_start(*byte) {
                return Some(Gap::Scalar(at));
            }
            self.byte(*byte).ok()?;
            if self.inside == Inside::Nothing && self.next == Next::End {
                return Some(Gap::End(at + 1));
            }
        }
        None
    }

    /// Reads up to the end of the first value that is complete in `chunk`, and returns its
    /// position.
    ///
    /// # Errors
    /// See [`Grammar::feed`].
    pub fn feed_to_value_end<S: Scan>(&mut self, scan: S, chunk: &[u8]) -> Result<Option<usize>, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut at = 0;
        let end = loop {
            if self.inside == Inside::String {
                at = scan.enter(Text { chunk, at });
            }
            if chunk.get(at).is_some_and(|byte| self.is_ended_by(*byte)) {
                self.inside = Inside::Nothing;
            }
            if self.inside == Inside::Nothing && self.next == self.after {
                break Some(at);
            }
            let Some(byte) = chunk.get(at) else { break None };
            if let Err(kind) = self.byte(*byte) {
                let error = Error::new(self.before + at as u64, kind);
                // The state is undefined after an error, so every later call must return the same
                // one.
                self.failed = Some(error);
                return Err(error);
            }
            at += 1;
        };
        self.before += at as u64;
        Ok(end)
    }

    /// Returns whether `byte` terminates the current number or literal.
    fn is_ended_by(&self, byte: u8) -> bool {
        match self.inside {
            Inside::Number(number) => number.may_end() && !is_number_byte(byte),
            Inside::Word(word, come) => usize::from(come) == word.len() && !byte.is_ascii_alphanumeric(),
            _ => false,
        }
    }

    /// Uses another scan level than the best one of this processor, for tests and measurements.
    pub fn at_level(mut self, level: Level) -> Grammar {
        self.level = level;
        self
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// Returns the first error with its offset. Every further call returns the same error.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Error> {
        scan::run(self.level, Feed { grammar: self, chunk })
    }

    /// Reads up to the end of the text, which starts without white space, with the given scanner
    /// instead of that of the level. Returns the position of the end if it is in this chunk: after
    /// the last bracket or quote, or before the byte that terminates a number or literal.
    ///
    /// # Errors
    /// See [`Grammar::feed`].
    #[inline(always)]
    pub fn feed_to_end<S: Scan>(&mut self, scan: S, chunk: &[u8]) -> Result<Option<usize>, Error> {
        let is_scalar = self.open.is_empty()
            && (self.next == Next::End || chunk.first().is_some_and(|byte| is_scalar_start(*byte)));
        if is_scalar {
            return self.feed_to_value_end(scan, chunk);
        }
        let read = self.read_by(scan, chunk, true)?;
        Ok((self.next == Next::End).then_some(read))
    }

    /// Reads a chunk, or up to the end of the outermost container. Returns the number of bytes.
    fn read_by<S: Scan>(&mut self, scan: S, chunk: &[u8], to_end: bool) -> Result<usize, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let read = Chunk { grammar: self, chunk, to_end }.run(scan);
        let read = read.map_err(|(at, kind)| Error::new(self.before + at as u64, kind));
        self.before += *read.as_ref().unwrap_or(&chunk.len()) as u64;
        read.inspect_err(|error| self.failed = Some(*error))
    }

    /// Finishes the text.
    ///
    /// # Errors
    /// Returns the first error, also if the text is truncated.
    pub fn finish(&self) -> Result<(), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let is_whole = match self.inside {
            Inside::Nothing => true,
            Inside::Number(number) => number.may_end(),
            Inside::Word(word, come) => usize::from(come) == word.len(),
            Inside::String | Inside::Escape | Inside::Hex(_) => false,
        };
        if is_whole && self.next == Next::End {
            Ok(())
        } else {
            Err(Error::new(self.before, ErrorKind::UnexpectedEnd))
        }
    }

    /// Checks one byte in any state.
    fn byte(&mut self, byte: u8) -> Result<(), ErrorKind> {
        self.inside = match (self.inside, byte) {
            (Inside::Nothing, _) => return self.token(byte),
            (Inside::String, b'"') => Inside::Nothing,
            (Inside::String, b'\\') => Inside::Escape,
            (Inside::String, 0..0x20) => return Err(ErrorKind::ControlInString),
            (Inside::String, _) => Inside::String,
            (Inside::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Inside::String,
            (Inside::Escape, b'u') => Inside::Hex(4),
            (Inside::Hex(1), _) if byte.is_ascii_hexdigit() => Inside::String,
            (Inside::Hex(left), _) if byte.is_ascii_hexdigit() => Inside::Hex(left - 1),
            (Inside::Escape | Inside::Hex(_), _) => return Err(ErrorKind::InvalidEscape),
            (Inside::Number(number), _) => match number.with(byte) {
                Some(number) => Inside::Number(number),
                None if number.may_end() && !is_number_byte(byte) => return self.ends_before(byte),
                None => return Err(ErrorKind::InvalidNumber),
            },
            (Inside::Word(word, come), _) => match word.get(usize::from(come)) {
                Some(wanted) if *wanted == byte => Inside::Word(word, come + 1),
                None if !byte.is_ascii_alphanumeric() => return self.ends_before(byte),
                _ => return Err(ErrorKind::InvalidLiteral),
            },
        };
        Ok(())
    }

    /// Finishes a number or literal before this byte.
    fn ends_before(&mut self, byte: u8) -> Result<(), ErrorKind> {
        self.inside = Inside::Nothing;
        self.token(byte)
    }

    /// Checks a byte outside of scalars.
    fn token(&mut self, byte: u8) -> Result<(), ErrorKind> {
        if is_blank(byte) {
            return Ok(());
        }
        self.inside = match byte {
            b'"' => Inside::String,
            b'-' => Inside::Number(Number::Minus),
            b'0' => Inside::Number(Number::Zero),
            b'1'..=b'9' => Inside::Number(Number::Integer),
            b't' => Inside::Word(b"true", 1),
            b'f' => Inside::Word(b"false", 1),
            b'n' => Inside::Word(b"null", 1),
            _ => Inside::Nothing,
        };
        match (byte, self.inside) {
            (b'"', _) | (_, Inside::Nothing) => self.structure(byte),
            _ => self.bare(),
        }
    }

    /// Starts a number or literal.
    fn bare(&mut self) -> Result<(), ErrorKind> {
        if !matches!(self.next, Next::Value | Next::ValueOrEnd) {
            return Err(self.unexpected_kind());
        }
        self.next = self.after;
        Ok(())
    }

    /// Checks a bracket, a comma, a colon, or the opening quote of a string.
    fn structure(&mut self, byte: u8) -> Result<(), ErrorKind> {
        match (byte, self.next) {
            (b',', Next::AfterMember) => self.next = Next::Key,
            (b'"', Next::Key | Next::KeyOrEnd) => self.next = Next::Colon,
            (b':', Next::Colon) => self.next = Next::Value,
            (b'"', Next::Value | Next::ValueOrEnd) => self.next = self.after,
            (b',', Next::AfterElement) => self.next = Next::Value,
            (b'{', Next::Value | Next::ValueOrEnd) => self.opens(Next::KeyOrEnd, Next::AfterMember)?,
            (b'[', Next::Value | Next::ValueOrEnd) => self.opens(Next::ValueOrEnd, Next::AfterElement)?,
            (b'}', Next::KeyOrEnd | Next::AfterMember) | (b']', Next::ValueOrEnd | Next::AfterElement) => {
                self.after = self.open.pop().unwrap_or(Next::End);
                self.next = self.after;
            }
            _ => return Err(self.unexpected_kind()),
        }
        Ok(())
    }

    fn opens(&mut self, first: Next, between: Next) -> Result<(), ErrorKind> {
        if self.open.len() >= self.depth_max {
            return Err(ErrorKind::Limit(Limit::Depth));
        }
        self.open.push(self.after);
        (self.next, self.after) = (first, between);
        Ok(())
    }

    #[cold]
    fn unexpected_kind(&self) -> ErrorKind {
        let expected = match self.next {
            Next::Value => Expected::Value,
            Next::ValueOrEnd => Expected::ValueOrArrayEnd,
            Next::Key => Expected::Key,
            Next::KeyOrEnd => Expected::KeyOrObjectEnd,
            Next::Colon => Expected::Colon,
            Next::AfterElement => Expected::CommaOrArrayEnd,
            Next::AfterMember => Expected::CommaOrObjectEnd,
            Next::End => return ErrorKind::TrailingBytes,
        };
        ErrorKind::Unexpected { expected }
    }
}

/// Returns whether `byte` occurs in numbers. Such a byte cannot terminate one.
fn is_number_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

impl Number {
    /// Returns the state after one more byte, or `None` if the byte is not part of the number.
    fn with(self, byte: u8) -> Option<Number> {
        Some(match (self, byte) {
            (Number::Minus, b'0') => Number::Zero,
            (Number::Minus, b'1'..=b'9') | (Number::Integer, b'0'..=b'9') => Number::Integer,
            (Number::Zero | Number::Integer, b'.') => Number::Point,
            (Number::Point | Number::Fraction, b'0'..=b'9') => Number::Fraction,
            (Number::Zero | Number::Integer | Number::Fraction, b'e' | b'E') => Number::Exponent,
            (Number::Exponent, b'+' | b'-') => Number::ExponentSign,
            (Number::Exponent | Number::ExponentSign | Number::ExponentDigits, b'0'..=b'9') => {
                Number::ExponentDigits
            }
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(self, Number::Zero | Number::Integer | Number::Fraction | Number::ExponentDigits)
    }
}

/// [`Grammar::feed`] as a task.
struct Feed<'a> {
    grammar: &'a mut Grammar,
    chunk: &'a [u8],
}

impl Task for Feed<'_> {
    type Output = Result<(), Error>;

    fn run<S: Scan>(self, scan: S) -> Result<(), Error> {
        self.grammar.read_by(scan, self.chunk, false).map(drop)
    }
}

/// [`Scan::text_break`] as a task.
struct Text<'a> {
    chunk: &'a [u8],
    at: usize,
}

impl Task for Text<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> usize {
        scan.text_break(self.chunk, self.at)
    }
}

/// [`Grammar::read_by`] as a task.
struct Chunk<'a> {
    grammar: &'a mut Grammar,
    chunk: &'a [u8],
    /// Whether to stop at the end of the outermost container.
    to_end: bool,
}

/// An error with its position in the chunk.
type Fault = (usize, ErrorKind);

impl Task for Chunk<'_> {
    /// The number of bytes read.
    type Output = Result<usize, Fault>;

    fn run<S: Scan>(self, scan: S) -> Result<usize, Fault> {
        let Chunk { grammar, chunk, to_end } = self;
        let is_end = |grammar: &Grammar| to_end && grammar.next == Next::End;
        let mut at = 0;
        while at < chunk.len() && !is_end(grammar) {
            let before = at;
            if matches!(grammar.inside, Inside::Nothing | Inside::String) {
                at = scan.enter(Blocks { grammar: &mut *grammar, chunk, at });
            }
            if at == before && grammar.inside == Inside::String {
                at = scan.enter(Text { chunk, at });
            }
            // Reads escapes, cut scalars and short rests byte by byte. After an invalid block,
            // retrying from each of its bytes would check the same bytes up to 64 times.
            let again_from = if at == before && !grammar.open.is_empty() { at + BLOCK_BYTES } else { at };
            while !is_end(grammar)
                && let Some(byte) = chunk.get(at)
            {
                grammar.byte(*byte).map_err(|kind| (at, kind))?;
                at += 1;
                let is_between = matches!(grammar.inside, Inside::Nothing | Inside::String);
                if is_between && at >= again_from && chunk.len() - at >= TAIL_BYTES {
                    break;
                }
            }
        }
        Ok(at)
    }
}
