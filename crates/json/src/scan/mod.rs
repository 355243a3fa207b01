//! Finding JSON structure many bytes at a time: where a string ends, where a bare scalar ends, and
//! which bytes of a block of 64 are quotes, backslashes and brackets.
//!
//! This folder is the only place with `unsafe` code that bodies run through, one file for each set of
//! instructions and two for windows and what is appended out of them. What every `unsafe` block relies on:
//!
//! 1. *The processor can do it.* The value `Avx2` is made by its `detect` alone, right after
//!    `is_x86_feature_detected!` has found every feature that its methods use; it cannot be made
//!    elsewhere, since its field is private. A method that has `self` may use the features.
//!    SSE2 is part of every x86-64 processor.
//! 2. *Reads stay inside the slice.* Pointers are made by `as_ptr` of a slice or array reference whose
//!    length was checked, in the line above or by its type, to be at least the width of the load. All loads are of unaligned kind.
//! 3. *Nothing is written* through any pointer, but for the spare room of a vector in `append.rs`.
//!
//! The portable path has no `unsafe` and is what all others are tested against, over random bytes and
//! every alignment; tests/sanitizers.sh runs those tests under the address sanitizer.

/// Looks at windows of `$width` bytes from `$at` on, one after the other, through the marks that
/// `$scan.$marks` makes of each. Evaluates to the place where less than a window is left. No
/// closures: they would be compiled without the features of the function that they stand in.
#[cfg(target_arch = "x86_64")]
macro_rules! find {
    ($bytes:ident, $at:ident, $width:literal, $scan:ident.$marks:ident) => {{
        let mut at = $at;
        while let Some(window) = $bytes.get(at..).and_then(<[u8]>::first_chunk::<$width>) {
            let marks = $scan.$marks($scan.load(window));
            if marks != 0 {
                return at + marks.trailing_zeros() as usize;
            }
            at += $width;
        }
        at
    }};
}

/// The classes of `$bytes`, of which `$folded` has the bit of 0x20 set and `$from_zero` is counted from `0`.
#[cfg(target_arch = "x86_64")]
macro_rules! classes {
    ($scan:ident, $bytes:ident, $folded:ident, $from_zero:ident) => {
        Classes {
            quote: $scan.equal($bytes, b'"').into(),
            backslash: $scan.equal($bytes, b'\\').into(),
            control: $scan.at_most($bytes, 0x1f).into(),
            low: $scan.at_most($bytes, 0x20).into(),
            comma: $scan.equal($bytes, b',').into(),
            colon: $scan.equal($bytes, b':').into(),
            opens: $scan.equal($folded, b'{').into(),
            closes: $scan.equal($folded, b'}').into(),
            digit: $scan.at_most($from_zero, 9).into(),
            zero: $scan.equal($bytes, b'0').into(),
        }
    };
}

mod append;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;
mod windows;

pub use append::{append_start, append_starts};
#[cfg(target_arch = "x86_64")]
use avx2::Avx2;
pub use portable::Portable;
#[cfg(target_arch = "x86_64")]
use sse2::Sse2;
pub use windows::Windows;

/// Masks of one block of 64 bytes; bit 0 is the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    /// `"`.
    pub quote: u64,
    /// `\`.
    pub backslash: u64,
    /// `[`, `]`, `{` and `}`, and the few bytes that differ from them in the same bits: `Y`, `_`, `y` and
    /// delete. One comparison finds them all; [`Bracket::of`] tells them apart.
    pub brackets: u64,
}

/// What each byte of a block of 64 is; bit 0 is the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Classes {
    /// `"`.
    pub quote: u64,
    /// `\`.
    pub backslash: u64,
    /// Bytes below 0x20.
    pub control: u64,
    /// These and the space: all that can be white space.
    pub low: u64,
    /// `,`.
    pub comma: u64,
    /// `:`.
    pub colon: u64,
    /// `[` and `{`.
    pub opens: u64,
    /// `]` and `}`.
    pub closes: u64,
    /// `0` to `9`.
    pub digit: u64,
    /// `0`.
    pub zero: u64,
}

/// These bits set, all that [`Block::brackets`] marks, and nothing else, is the same byte.
const BRACKET_BITS: u8 = 0x26;
const BRACKET: u8 = 0x7f;

/// What a byte that [`Block::brackets`] marks does to the number of brackets open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bracket {
    /// 1 opens, -1 closes, 0 is no bracket.
    pub depth: isize,
    /// The same for `{` and `}` alone.
    pub curly: isize,
}

impl Bracket {
    /// For a byte that is marked.
    #[inline(always)]
    pub fn of(byte: u8) -> Bracket {
        let bit = |bit: u8| isize::from(byte >> bit & 1);
        // Of the bits that were set, brackets have one or the other of these two.
        let depth = bit(1) - bit(2);
        Bracket { depth, curly: depth * bit(5) }
    }
}

/// Bytes that are looked at once where strings, scalars and names are short, as most are.
pub const WORD_BYTES: usize = 32;

/// How much of a word counts when it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Care {
    /// A bit for each byte that counts.
    bits: u32,
    len: u8,
}

impl Care {
    /// The first `len` bytes, at most [`WORD_BYTES`].
    pub const fn first(len: usize) -> Care {
        let len = if len < WORD_BYTES { len } else { WORD_BYTES };
        Care { bits: ((1u64 << len) - 1) as u32, len: len as u8 }
    }

    /// How many bytes count.
    #[inline(always)]
    pub const fn bytes(self) -> usize {
        self.len as usize
    }
}

/// A way to look at bytes. The answers do not depend on the way, only the time they take does.
pub trait Scan: Copy {
    /// Place of the first quote or backslash from `at` on; the length when there is none.
    fn string_break(self, bytes: &[u8], at: usize) -> usize;

    /// Place of the first byte from `at` on that is not plain text of a string: a quote, a backslash or a control character;
    /// the length when there is none.
    fn text_break(self, bytes: &[u8], at: usize) -> usize;

    /// Place of the first byte from `at` on that cannot be part of a number or word: white space and
    /// control characters, structure, a quote; the length when there is none.
    fn bare_end(self, bytes: &[u8], at: usize) -> usize;

    /// How many bytes [`Scan::text_len`] and [`Scan::digits_len`] look at, at most [`WORD_BYTES`].
    const STEP: usize;

    /// How many of the first [`Scan::STEP`] bytes come before the first that [`Scan::text_break`] looks for; that many or more
    /// when there is none.
    fn text_len(self, bytes: &[u8; WORD_BYTES]) -> usize;

    /// The same with the first byte that is no digit.
    fn digits_len(self, bytes: &[u8; WORD_BYTES]) -> usize;

    /// Whether the bytes of `window` that count are those of `word`.
    fn is_word(self, window: &[u8; WORD_BYTES], word: &[u8; WORD_BYTES], care: Care) -> bool;

    /// The masks of a block.
    fn block(self, bytes: &[u8; 64]) -> Block;

    /// What the bytes of a block are.
    fn classes(self, bytes: &[u8; 64]) -> Classes;

    /// White space of RFC 8259, section 2.
    fn blanks(self, bytes: &[u8; 64]) -> u64;

    /// Bit n of the result is the exclusive or of the bits 0 to n.
    fn prefix_xor(self, bits: u64) -> u64;

    /// Runs a task that looks at bytes, compiled for the processor that this way of scanning needs. The
    /// other methods are only fast within one.
    fn enter<T: Task>(self, task: T) -> T::Output;

    /// The same as [`Scan::enter`], and not made part of the function that it stands in: for what is less often
    /// needed.
    fn enter_apart<T: Task>(self, task: T) -> T::Output;
}

/// Work that is compiled once for every way of scanning.
pub trait Task {
    /// What the task gives.
    type Output;

    /// For a task that is entered, to be `#[inline(always)]`, so that it is compiled with the features
    /// of its caller.
    fn run<S: Scan>(self, scan: S) -> Self::Output;
}

/// The ways of scanning, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Eight bytes at a time in ordinary registers; no `unsafe`.
    Portable,
    /// What every processor of the architecture has: SSE2 on x86-64, else the same as `Portable`.
    Baseline,
    /// 32 bytes at a time, where the processor has AVX2.
    Avx2,
}

impl Level {
    /// All of them, the slowest first.
    pub const ALL: [Level; 3] = [Level::Portable, Level::Baseline, Level::Avx2];

    /// The best level of this processor.
    pub fn best() -> Level {
        Level::ALL.into_iter().rev().find(|level| level.is_available()).unwrap_or(Level::Portable)
    }

    /// Whether [`run`] at this level would really use it.
    pub fn is_available(self) -> bool {
        match self {
            Level::Portable | Level::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Avx2::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2 => false,
        }
    }
}

/// Runs `task` with the way of scanning of `level`, or of the best one below it that the processor has.
/// The task itself is compiled as everything else is; what is hot in it is for [`Scan::enter`].
#[inline]
pub fn run<T: Task>(level: Level, task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if level >= Level::Avx2
            && let Some(scan) = Avx2::detect()
        {
            return task.run(scan);
        }
        if level >= Level::Baseline {
            return task.run(Sse2);
        }
    }
    let _ = level;
    task.run(Portable)
}

/// Which bytes of a block are escaped, given the backslashes and whether the first byte is escaped by
/// the block before. Also whether the byte after the block is.
#[inline(always)]
pub fn escaped(backslash: u64, first_escaped: bool) -> (u64, bool) {
    if backslash == 0 {
        return (u64::from(first_escaped), false);
    }
    // A backslash that is itself escaped escapes nothing. Runs of backslashes are told apart by
    // whether they begin at an even or an odd place: adding the starts carries through each run.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let backslash = backslash & !u64::from(first_escaped);
    let follows = backslash << 1 | u64::from(first_escaped);
    let odd_starts = backslash & !EVEN & !follows;
    let (even_runs, overflow) = odd_starts.overflowing_add(backslash);
    let invert = even_runs << 1;
    ((EVEN ^ invert) & follows, overflow)
}

#[cfg(target_arch = "x86_64")]
impl Classes {
    /// These with `next` after their first `width` bytes.
    #[inline(always)]
    fn then(self, next: Classes, width: u32) -> Classes {
        Classes {
            quote: self.quote | next.quote << width,
            backslash: self.backslash | next.backslash << width,
            control: self.control | next.control << width,
            low: self.low | next.low << width,
            comma: self.comma | next.comma << width,
            colon: self.colon | next.colon << width,
            opens: self.opens | next.opens << width,
            closes: self.closes | next.closes << width,
            digit: self.digit | next.digit << width,
            zero: self.zero | next.zero << width,
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Block {
    /// This block with `next` after its first `width` bytes.
    #[inline(always)]
    fn then(self, next: Block, width: u32) -> Block {
        Block {
            quote: self.quote | next.quote << width,
            backslash: self.backslash | next.backslash << width,
            brackets: self.brackets | next.brackets << width,
        }
    }
}
