//! Whether a text that only passes by is JSON: the grammar of RFC 8259 and a bound on depth, over chunks cut anywhere.
//!
//! What it leaves to others: UTF-8 ([`Utf8Checker`](crate::Utf8Checker)), members named twice, halves of surrogate pairs,
//! which the grammar allows, and bounds on single scalars. The [`Reader`](crate::Reader) looks at all of these and tells
//! what it reads; it takes ten times as long. Tests hold the two together.
//!
//! Decisions to know before editing:
//!
//! - [`Grammar::byte`] knows the whole grammar, one byte at a time, and tells every fault. [`Blocks`] is a short cut through it
//!   for 64 bytes that are as they should be: it holds whole classes of bytes against what may follow them, and goes through
//!   brackets one by one. What is not in order, or cut, it leaves to `byte`.
//! - A value that begins decides at once what may follow it, so that nothing has to happen when it ends.

mod blocks;

use self::blocks::{BLOCK_BYTES, Blocks, TAIL_BYTES};
use super::error::{Error, ErrorKind, Expected, Limit};
use super::reader::is_blank;
use super::scan::{self, Level, Scan, Task};

/// What may come next, outside of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    AfterElement,
    AfterMember,
    /// Nothing but white space.
    End,
}

/// The scalar that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    String,
    /// Behind a backslash.
    Escape,
    /// Hexadecimal digits to come.
    Hex(u8),
    Number(Number),
    /// A word, and how many of its bytes have come.
    Word(&'static [u8], u8),
}

/// Which part of a number has come last (RFC 8259, section 6).
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

/// The arrays and objects that are open at one place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Open {
    depth: u8,
    objects: u32,
}

impl Open {
    const DEPTH_MAX: usize = 32;

    /// How many there are.
    pub fn depth(self) -> usize {
        usize::from(self.depth)
    }

    /// A bit for each, outermost first: whether it is an object.
    pub fn bits(self) -> u32 {
        self.objects
    }

    /// How many of them are objects.
    pub fn objects(self) -> usize {
        self.objects.count_ones() as usize
    }
}

/// Where the text between two scalars leads, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// To a scalar that is a value.
    Scalar(usize),
    /// Behind the last bracket of the text.
    End(usize),
}

/// Whether a string, a number or a word may start with `byte`.
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
    /// What may come after a value that stands where the reading has come to.
    after: Next,
    inside: Inside,
    /// For each open array and object what comes after it.
    open: Vec<Next>,
    depth_max: usize,
    /// Bytes of all chunks before this one.
    before: u64,
    level: Level,
    failed: Option<Error>,
}

impl Grammar {
    /// `depth_max`: arrays and objects that may be open at one time.
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

    /// Begins another text, whose first byte lies at `offset` of what faults are counted in. The stack of the last one is kept.
    pub fn restart(&mut self, depth_max: usize, offset: u64) {
        self.open.clear();
        (self.next, self.after, self.inside) = (Next::Value, Next::End, Inside::Nothing);
        (self.depth_max, self.before, self.failed) = (depth_max, offset, None);
    }

    /// Continues in the middle of a text, within `open` and at a value, or behind one; see [`Grammar::restart`].
    pub fn resume(&mut self, open: Open, is_behind: bool, depth_max: usize, offset: u64) {
        self.restart(depth_max, offset);
        for at in 0..open.depth() {
            self.open.push(self.after);
            self.after = if open.objects >> at & 1 == 1 { Next::AfterMember } else { Next::AfterElement };
        }
        self.next = if is_behind { self.after } else { Next::Value };
    }

    /// The arrays and objects that are open, unless there are more than [`Open`] has room for.
    pub fn open(&self) -> Option<Open> {
        let inner = self.open.iter().skip(1).chain(self.open.first().map(|_| &self.after));
        inner.enumerate().try_fold(Open::default(), |open, (at, after)| {
            let object = u32::from(*after == Next::AfterMember).checked_shl(at as u32)?;
            (at < Open::DEPTH_MAX).then(|| Open { depth: open.depth + 1, objects: open.objects | object })
        })
    }

    /// Reads from behind one scalar, or the beginning of the text, up to the next one or the end of the text. `None` where
    /// `text` has a fault or ends before.
    pub fn feed_to_scalar(&mut self, text: &[u8]) -> Option<Gap> {
        for (at, byte) in text.iter().enumerate() {
            let is_value = matches!(self.next, Next::Value | Next::ValueOrEnd);
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

    /// Reads no further than to the end of the first value that ends in `chunk`; returns the place behind it.
    ///
    /// # Errors
    /// See [`Grammar::feed`].
    pub fn feed_to_value_end<S: Scan>(&mut self, scan: S, chunk: &[u8]) -> Result<Option<usize>, Error> {
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
                self.failed = Some(error);
                return Err(error);
            }
            at += 1;
        };
        self.before += at as u64;
        Ok(end)
    }

    /// Whether a number or word has come to its end, which `byte` follows.
    fn is_ended_by(&self, byte: u8) -> bool {
        match self.inside {
            Inside::Number(number) => number.may_end() && number.with(byte).is_none(),
            Inside::Word(word, come) => usize::from(come) == word.len() && !byte.is_ascii_alphanumeric(),
            _ => false,
        }
    }

    /// The same, looking at bytes in another way than the best of this processor; for tests and measurements.
    pub fn at_level(mut self, level: Level) -> Grammar {
        self.level = level;
        self
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// The first fault with its place. Every further call returns the same.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Error> {
        scan::run(self.level, Feed { grammar: self, chunk })
    }

    /// [`Grammar::feed`] with a way of scanning, whatever the level.
    ///
    /// # Errors
    /// See there.
    pub fn feed_by<S: Scan>(&mut self, scan: S, chunk: &[u8]) -> Result<(), Error> {
        self.read_by(scan, chunk, false).map(drop)
    }

    /// [`Grammar::feed_by`] no further than to the end of the array or object that the text is; gives the place behind it, if it
    /// ends in this chunk.
    ///
    /// # Errors
    /// See there.
    #[inline(always)]
    pub fn feed_to_end<S: Scan>(&mut self, scan: S, chunk: &[u8]) -> Result<Option<usize>, Error> {
        let read = self.read_by(scan, chunk, true)?;
        Ok((self.next == Next::End).then_some(read))
    }

    /// Reads a chunk, or what it has of an array or object; gives how many bytes.
    fn read_by<S: Scan>(&mut self, scan: S, chunk: &[u8], to_end: bool) -> Result<usize, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let read = Chunk { grammar: self, chunk, to_end }.run(scan);
        let read = read.map_err(|(at, kind)| Error::new(self.before + at as u64, kind));
        self.before += *read.as_ref().unwrap_or(&chunk.len()) as u64;
        read.inspect_err(|error| self.failed = Some(*error))
    }

    /// The text has ended.
    ///
    /// # Errors
    /// The first fault, or that the text is cut short.
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

    /// Takes one byte, whatever has come before it.
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
                None if number.may_end() => return self.ends_before(byte),
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

    /// A bare scalar has ended, and this byte follows it.
    fn ends_before(&mut self, byte: u8) -> Result<(), ErrorKind> {
        self.inside = Inside::Nothing;
        self.token(byte)
    }

    /// Takes a byte outside of scalars.
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

    /// A number or word begins.
    fn bare(&mut self) -> Result<(), ErrorKind> {
        if !matches!(self.next, Next::Value | Next::ValueOrEnd) {
            return Err(self.unexpected_kind());
        }
        self.next = self.after;
        Ok(())
    }

    /// Takes a bracket, comma or colon, or a quote that opens a string.
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

impl Number {
    /// What follows from one more byte; none where it is not part of the number.
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

/// [`Grammar::feed_by`] with the way of scanning that it is run with.
struct Feed<'a> {
    grammar: &'a mut Grammar,
    chunk: &'a [u8],
}

impl Task for Feed<'_> {
    type Output = Result<(), Error>;

    fn run<S: Scan>(self, scan: S) -> Result<(), Error> {
        self.grammar.feed_by(scan, self.chunk)
    }
}

/// Text of a string, up to what is none.
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

/// One chunk to be read.
struct Chunk<'a> {
    grammar: &'a mut Grammar,
    chunk: &'a [u8],
    /// Not further than to the end of the outermost array or object.
    to_end: bool,
}

/// A fault with its place in the chunk.
type Fault = (usize, ErrorKind);

impl Task for Chunk<'_> {
    /// How many bytes were read.
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
            // An escape or a scalar that a block cuts, or what is shorter than a block. A block in which something is unusual is
            // not tried again from each of its bytes on.
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
