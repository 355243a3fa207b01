//! Where a scalar ends that starts within the chunk: a short one in a window that has been loaded anyway, any other by reading
//! to its end. A scalar with a fault, or one that the chunk may cut, is left to the machine.

use super::edge::GAP_BYTES;
use switchback_json::scan::{Scan, Task, WORD_BYTES};
use switchback_json::text::{check_number, escape_len};

/// Bytes that are looked at from the end of one scalar on, so that one question about the end of the chunk does for the text
/// before the next scalar and the beginning of that scalar.
pub(super) const AHEAD_BYTES: usize = 2 * GAP_BYTES;

/// What the chunk has from the end of a scalar on, followed by zeros where it ends.
pub(super) type Ahead = [u8; AHEAD_BYTES];

/// Stands for the end of a scalar that has a fault, or whose end is not in the chunk.
pub(super) const NO_END: usize = 0;

/// The place behind the scalar at `at` of the chunk, which `ahead` has from `from` on, or [`NO_END`].
#[inline(always)]
pub(super) fn scalar_end<S: Scan>(scan: S, chunk: &[u8], ahead: &Ahead, from: usize, at: usize) -> usize {
    let first = ahead[from % GAP_BYTES];
    // By far the most frequent kind comes first.
    if first == b'"' {
        let window = window::<1>(ahead, from);
        let found = scan.text_len(window);
        if found < S::STEP && window[found % WORD_BYTES] == b'"' {
            return at + found + 2;
        }
        return scan.enter_apart(StringEnd { chunk, at: at + 1 + found.min(S::STEP) });
    }
    let window = window::<0>(ahead, from);
    if first.is_ascii_digit() {
        let found = scan.digits_len(window);
        let is_end = matches!(window[found % WORD_BYTES], b',' | b'}' | b']');
        if found < S::STEP && is_end && (first != b'0' || found == 1) {
            return at + found;
        }
    } else if let Some(len) = word_len(window) {
        // The text that has to follow a word is no part of it.
        return at + len;
    }
    scan.enter_apart(NumberEnd { chunk, at })
}

/// Bytes of the word that `window` starts with.
#[inline(always)]
fn word_len(window: &[u8; WORD_BYTES]) -> Option<usize> {
    const fn word(text: [u8; 4]) -> u32 {
        u32::from_le_bytes(text)
    }
    const NULL: u32 = word(*b"null");
    const TRUE: u32 = word(*b"true");
    const FALS: u32 = word(*b"fals");
    match word([window[0], window[1], window[2], window[3]]) {
        NULL | TRUE => Some(4),
        FALS if window[4] == b'e' => Some(5),
        _ => None,
    }
}

/// A word of bytes of `ahead`, `PAST` bytes behind `from`, which is below [`GAP_BYTES`].
#[inline(always)]
fn window<const PAST: usize>(ahead: &Ahead, from: usize) -> &[u8; WORD_BYTES] {
    const { assert!(PAST + GAP_BYTES + WORD_BYTES <= AHEAD_BYTES) };
    ahead[PAST + from % GAP_BYTES..].first_chunk().expect("the window is within the bytes")
}

/// What the chunk has from `at` on, followed by zeros.
#[inline(never)]
pub(super) fn padded(chunk: &[u8], at: usize) -> Ahead {
    let rest = chunk.get(at..).unwrap_or_default();
    let len = rest.len().min(AHEAD_BYTES);
    let mut padded = [0; AHEAD_BYTES];
    padded[..len].copy_from_slice(&rest[..len]);
    padded
}

/// A scalar at `at`.
pub(super) struct ScalarEnd<'c> {
    pub chunk: &'c [u8],
    pub at: usize,
}

impl Task for ScalarEnd<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> usize {
        scalar_end(scan, self.chunk, &padded(self.chunk, self.at), 0, self.at)
    }
}

/// A string, of which the text before `at` has been read.
struct StringEnd<'c> {
    chunk: &'c [u8],
    at: usize,
}

impl Task for StringEnd<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> usize {
        let StringEnd { chunk, mut at } = self;
        loop {
            at = scan.text_break(chunk, at);
            let rest = chunk.get(at..).unwrap_or_default();
            if rest.first() == Some(&b'"') {
                return at + 1;
            }
            let Some(len) = escape_len(rest) else { return NO_END };
            at += len;
        }
    }
}

/// A number of any form, or what is none.
struct NumberEnd<'c> {
    chunk: &'c [u8],
    at: usize,
}

impl Task for NumberEnd<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> usize {
        let end = scan.bare_end(self.chunk, self.at);
        // The next chunk may have more of a number at the end of this one.
        match self.chunk.get(self.at..end) {
            Some(number) if end < self.chunk.len() && check_number(number).is_ok() => end,
            _ => NO_END,
        }
    }
}
