//! Skips one value over any number of chunks: a string up to its closing quote, a container by
//! counting the brackets outside its strings. Square and curly brackets are counted separately, so
//! a mismatch of their numbers is found.

use switchback_json::Open;
use switchback_json::scan::{self, Bracket, Scan, Task};

/// The position in a skipped value. [`Skip::of`] returns the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    /// In a string. `escaped`: the last byte was a backslash that starts an escape.
    String { escaped: bool },
    /// In a number or word.
    Bare(Bare),
    /// In an array or object.
    Nested(Nested),
}

/// In a skipped number or literal. The length of literals is checked, because a truncated one must
/// be an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bare {
    /// Remaining bytes of a literal; `None` for numbers.
    left: Option<usize>,
}

/// In a skipped array or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Nested {
    /// Open brackets.
    depth: usize,
    /// Open curly brackets.
    curly: isize,
    in_string: bool,
    escaped: bool,
}

/// The result of skipping within one piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skipped {
    /// The value is complete; this is the position after it.
    To(usize),
    /// The value continues after the text, or may.
    Cut(Skip),
    /// The bracket at this place exceeds the allowed depth.
    TooDeep(usize),
    /// A literal is invalid; this is the position after it.
    NoWord(usize),
    /// The brackets up to this place do not match.
    Unbalanced(usize),
}

impl Skip {
    /// Returns the position at the start of a value with the first byte `first`.
    #[inline(always)]
    pub(super) fn of(first: u8) -> Skip {
        match first {
            b'"' => Skip::String { escaped: false },
            b'[' | b'{' => Skip::Nested(Nested::default()),
            _ => Skip::Bare(Bare { left: word_len(first) }),
        }
    }

    /// Runs [`Skip::over`] in [`Scan::enter`].
    pub(super) fn enter_over<S: Scan>(self, scan: S, bytes: &[u8], at: usize, depth_left: usize) -> Skipped {
        scan.enter(Over { skip: self, bytes, at, depth_left })
    }

    /// Continues at `at`. A string starts after its opening quote, a container at its bracket.
    /// `depth_left` limits the open brackets.
    #[inline(always)]
    pub(super) fn over<S: Scan>(self, scan: S, bytes: &[u8], at: usize, depth_left: usize) -> Skipped {
        match self {
            Skip::String { escaped } => string_end(scan, bytes, at, escaped),
            Skip::Bare(bare) => match scan.bare_end(bytes, at) {
                // A number has no closing byte, so at the end of the chunk it may continue.
                end if end < bytes.len() => bare.end(end - at, end),
                end => Skipped::Cut(Skip::Bare(bare.after(end - at))),
            },
            Skip::Nested(nested) => nested.over(scan, bytes, at, depth_left),
        }
    }
}

struct Over<'b> {
    skip: Skip,
    bytes: &'b [u8],
    at: usize,
    depth_left: usize,
}

impl Task for Over<'_> {
    type Output = Skipped;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> Skipped {
        self.skip.over(scan, self.bytes, self.at, self.depth_left)
    }
}

/// Returns the length of the literal with the first byte `first`; `None` for numbers.
#[inline(always)]
fn word_len(first: u8) -> Option<usize> {
    match first {
        b't' | b'n' => Some(4),
        b'f' => Some(5),
        _ => None,
    }
}

impl Bare {
    /// Advances by `len` bytes. A literal that is too long wraps around to a number that is not 0.
    #[inline(always)]
    fn after(self, len: usize) -> Bare {
        Bare { left: self.left.map(|left| left.wrapping_sub(len)) }
    }

    /// Returns the result for a value up to `end`, after `len` more bytes.
    #[inline(always)]
    pub(super) fn end(self, len: usize, end: usize) -> Skipped {
        if self.after(len).left.unwrap_or(0) == 0 { Skipped::To(end) } else { Skipped::NoWord(end) }
    }
}

#[inline(always)]
fn string_end<S: Scan>(scan: S, bytes: &[u8], at: usize, escaped: bool) -> Skipped {
    // The byte after a backslash cannot close the string.
    let mut at = at + usize::from(escaped);
    loop {
        if at > bytes.len() {
            // The backslash was the last byte, so `at + 2` is beyond the text.
            return Skipped::Cut(Skip::String { escaped: true });
        }
        at = scan.string_break(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Skipped::To(at + 1),
            Some(_) => at += 2,
            None => return Skipped::Cut(Skip::String { escaped: false }),
        }
    }
}

impl Nested {
    /// Returns the position between two scalars within these brackets.
    pub(super) fn within(open: Open) -> Nested {
        Nested { depth: open.depth(), curly: open.objects() as isize, ..Nested::default() }
    }

    /// See [`Skip::over`].
    #[inline(always)]
    pub(super) fn over<S: Scan>(mut self, scan: S, bytes: &[u8], at: usize, depth_left: usize) -> Skipped {
        let mut at = at;
        while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
            if let Some(end) = self.block(scan, block, 64, depth_left) {
                return end.from(at);
            }
            at += 64;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        if !rest.is_empty() {
            // Spaces are no brackets or quotes, so padding does not change the state.
            let mut padded = [b' '; 64];
            padded[..rest.len()].copy_from_slice(rest);
            if let Some(end) = self.block(scan, &padded, rest.len(), depth_left) {
                return end.from(at);
            }
        }
        Skipped::Cut(Skip::Nested(self))
    }

    /// Reads a block of `len` bytes and padding.
    #[inline(always)]
    fn block<S: Scan>(
        &mut self,
        scan: S,
        block: &[u8; 64],
        len: usize,
        depth_left: usize,
    ) -> Option<Skipped> {
        let marks = scan.block(block);
        let (escaped, overflow) = scan::escaped(marks.backslash, self.escaped);
        // In a padded block, the escape of the last real byte falls on the padding.
        self.escaped = if len == 64 { overflow } else { escaped >> len & 1 == 1 };
        let inside = scan.prefix_xor(marks.quote & !escaped) ^ u64::from(self.in_string).wrapping_neg();
        self.in_string = inside >> 63 == 1;
        let mut brackets = marks.brackets & !inside;
        while brackets != 0 {
            let at = brackets.trailing_zeros() as usize;
            brackets &= brackets - 1;
            let bracket = Bracket::of(block[at % 64]);
            // Never negative before the end: the first bracket opens, and the loop returns at depth 0.
            self.depth = self.depth.wrapping_add_signed(bracket.depth);
            self.curly += bracket.curly;
            if self.depth > depth_left {
                return Some(Skipped::TooDeep(at));
            }
            if self.depth == 0 {
                // Counting both kinds finds unequal numbers, not a wrong order. The grammar, if it
                // is checked, rejects that; with `Check::Lenient` the value passes unread.
                return Some(if self.curly == 0 { Skipped::To(at + 1) } else { Skipped::Unbalanced(at) });
            }
        }
        None
    }
}

impl Skipped {
    /// Converts a position in the block at `at` to one in the text.
    #[inline(always)]
    fn from(self, at: usize) -> Skipped {
        match self {
            Skipped::To(end) => Skipped::To(at + end),
            Skipped::TooDeep(place) => Skipped::TooDeep(at + place),
            Skipped::Unbalanced(place) => Skipped::Unbalanced(at + place),
            Skipped::NoWord(_) | Skipped::Cut(_) => self,
        }
    }
}
