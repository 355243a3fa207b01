//! Finds JSON structure many bytes at a time: where strings and bare scalars stop, and the classes of
//! the bytes in blocks of 64.
//!
//! All `unsafe` code on the path of bodies is in this folder: one file per instruction set, one for
//! windows and one for appending. Every `unsafe` block relies on these conditions:
//!
//! 1. *The processor has the instructions.* Only `Avx2::detect` creates an `Avx2`, after
//!    `is_x86_feature_detected!` found all features that its methods use. Its field is private,
//!    so other code cannot create one. A method with `self` may use the features.
//!    SSE2 is part of every x86-64 processor.
//! 2. *Reads stay inside the slice.* Pointers come from `as_ptr` of a slice or an array reference
//!    whose length was checked, in the line above or by its type, to be at least the width of the
//!    load. All loads are unaligned.
//! 3. *No pointer is written through*, except for the spare capacity of a vector in `append.rs`.
//!
//! The portable level has no `unsafe`. Tests compare all other levels with it, over random bytes and
//! every alignment; `tests/sanitizers.sh` runs them under the address sanitizer.

/// Searches windows of `$width` bytes from `$at` for marks of `$scan.$marks`. Evaluates to the
/// position where less than a window is left. It uses no closures, because they would be compiled
/// without the features of the enclosing function.
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

/// The classes of `$bytes`. `$folded` has the bit 0x20 set, `$from_zero` is relative to `0`.
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

/// The classes of the bytes in a block of 64; bit 0 is the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Classes {
    /// `"`.
    pub quote: u64,
    /// `\`.
    pub backslash: u64,
    /// Bytes below 0x20.
    pub control: u64,
    /// Bytes up to the space, which include all white space.
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

/// Bytes that are compared at once; most strings, scalars and names are shorter.
pub const WORD_BYTES: usize = 32;

/// The compared part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Care {
    /// One bit per compared byte.
    bits: u32,
    len: u8,
}

impl Care {
    /// Compares the first `len` bytes, at most [`WORD_BYTES`].
    pub const fn first(len: usize) -> Care {
        let len = if len < WORD_BYTES { len } else { WORD_BYTES };
        Care { bits: ((1u64 << len) - 1) as u32, len: len as u8 }
    }

    /// Returns the number of compared bytes.
    #[inline(always)]
    pub const fn bytes(self) -> usize {
        self.len as usize
    }
}

/// A scan level. The results of all levels are equal.
pub trait Scan: Copy {
    /// Returns the position of the first quote, backslash or control character from `at`,
    /// or the length.
    fn text_break(self, bytes: &[u8], at: usize) -> usize;

    /// Returns the position of the first byte from `at` that cannot be part of a number or literal:
    /// white space, a control character, a structural byte or a quote; or the length.
    fn bare_end(self, bytes: &[u8], at: usize) -> usize;

    /// The number of bytes that [`Scan::text_len`] and [`Scan::digits_len`] read, at most [`WORD_BYTES`].
    const STEP: usize;

    /// Returns the number of bytes before the first quote, backslash or control character;
    /// [`Scan::STEP`] or more if the first [`Scan::STEP`] bytes contain no such byte.
    fn text_len(self, bytes: &[u8; WORD_BYTES]) -> usize;

    /// Returns the number of digits in the same way.
    fn digits_len(self, bytes: &[u8; WORD_BYTES]) -> usize;

    /// Returns whether the compared bytes of `window` and `word` are equal.
    fn is_word(self, window: &[u8; WORD_BYTES], word: &[u8; WORD_BYTES], care: Care) -> bool;

    /// Returns the classes of a block.
    fn classes(self, bytes: &[u8; 64]) -> Classes;

    /// Returns the white space of a block (RFC 8259, section 2).
    fn blanks(self, bytes: &[u8; 64]) -> u64;

    /// Returns a word whose bit n is the exclusive or of the bits 0 to n.
    fn prefix_xor(self, bits: u64) -> u64;

    /// Runs a task, compiled with the features of this level.
    /// The other methods are fast only within a task.
    fn enter<T: Task>(self, task: T) -> T::Output;

    /// Like [`Scan::enter`], but never inlined. For rare work.
    fn enter_apart<T: Task>(self, task: T) -> T::Output;
}

/// Work that is compiled for every level.
pub trait Task {
    /// The result of the task.
    type Output;

    /// Runs the task. Mark it `#[inline(always)]` if it is entered, so that it is compiled with the
    /// features of its caller.
    fn run<S: Scan>(self, scan: S) -> Self::Output;
}

/// The scan levels, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Eight bytes at a time in general registers, without `unsafe`.
    Portable,
    /// SSE2 on x86-64, otherwise the same as `Portable`.
    Baseline,
    /// 32 bytes at a time, with AVX2.
    Avx2,
}

impl Level {
    /// All levels, slowest first.
    pub const ALL: [Level; 3] = [Level::Portable, Level::Baseline, Level::Avx2];

    /// Returns the best level of this processor.
    pub fn best() -> Level {
        Level::ALL.into_iter().rev().find(|level| level.is_available()).unwrap_or(Level::Portable)
    }

    /// Returns whether the processor has this level.
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

/// Runs `task` with `level`, or with the best available level below it.
/// The task itself is compiled without special features; its hot parts use [`Scan::enter`].
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

/// Returns the escaped bytes of a block whose first byte is not escaped, and whether the first byte
/// after it is.
#[inline(always)]
pub fn escaped(backslash: u64) -> (u64, bool) {
    if backslash == 0 {
        return (0, false);
    }
    // An escaped backslash escapes no byte. Runs of backslashes are distinguished by the parity of
    // their start: adding the starts carries through each run.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let follows = backslash << 1;
    let odd_starts = backslash & !EVEN & !follows;
    let (even_runs, overflow) = odd_starts.overflowing_add(backslash);
    let invert = even_runs << 1;
    ((EVEN ^ invert) & follows, overflow)
}

#[cfg(target_arch = "x86_64")]
impl Classes {
    /// Returns these classes, followed by `next` after `width` bytes.
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
