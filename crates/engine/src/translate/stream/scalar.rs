//! Finds the end of a scalar for the fast path: of a short one in a window that is loaded already,
//! of any other by scanning. An invalid scalar, or one that may continue in the next chunk, is left
//! to the machine.

use super::edge::GAP_BYTES;
use switchback_json::scan::{Scan, Task, WORD_BYTES};
use switchback_json::text::{check_number, escape_len};

/// Length of the window after a scalar. It covers the text of an edge and the start of the next
/// scalar, so that one bounds check suffices for both.
pub(super) const AHEAD_BYTES: usize = 2 * GAP_BYTES;

/// The part of the chunk after a scalar, padded with zeros.
pub(super) type Ahead = [u8; AHEAD_BYTES];

/// The scalar is invalid, or its end is not in the chunk.
pub(super) const NO_END: usize = 0;

/// Returns the end of the scalar at `at` of the chunk, or [`NO_END`]. The scalar starts at `from` in `ahead`.
#[inline(always)]
pub(super) fn scalar_end<S: Scan>(scan: S, chunk: &[u8], ahead: &Ahead, from: usize, at: usize) -> usize {
    let first = ahead[from % GAP_BYTES];
    // Strings are by far the most frequent kind.
    if first == b'"' {
        let window = window::<1>(ahead, from);
        let found = scan.text_len(window);
        // The remainder only removes a bounds check: `found` is below the step.
        if found < S::STEP && window[found % WORD_BYTES] == b'"' {
            return at + found + 2;
        }
        // Long strings and strings with escapes are rare enough that their code is not inlined.
        return scan.enter_apart(StringEnd { chunk, at: at + 1 + found.min(S::STEP) });
    }
    let window = window::<0>(ahead, from);
    if first.is_ascii_digit() {
        let found = scan.digits_len(window);
        let is_end = matches!(window[found % WORD_BYTES], b',' | b'}' | b']');
        // Integers without a leading zero are certainly valid. All others take the complete check.
        if found < S::STEP && is_end && (first != b'0' || found == 1) {
            return at + found;
        }
    } else if let Some(len) = word_len(window) {
        // The next edge checks the text after a word.
        return at + len;
    }
    scan.enter_apart(NumberEnd { chunk, at })
}

/// Returns the length of the literal that `window` starts with.
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

/// Returns the word of `ahead` that starts `PAST` bytes after `from`, which is below [`GAP_BYTES`].
#[inline(always)]
fn window<const PAST: usize>(ahead: &Ahead, from: usize) -> &[u8; WORD_BYTES] {
    const { assert!(PAST + GAP_BYTES + WORD_BYTES <= AHEAD_BYTES) };
    ahead[PAST + from % GAP_BYTES..].first_chunk().expect("the window is within the bytes")
}

/// Returns the part of the chunk from `at`, padded with zeros.
#[inline(never)]
pub(super) fn padded(chunk: &[u8], at: usize) -> Ahead {
    let rest = chunk.get(at..).unwrap_or_default();
    let len = rest.len().min(AHEAD_BYTES);
    let mut padded = [0; AHEAD_BYTES];
    padded[..len].copy_from_slice(&rest[..len]);
    padded
}

/// [`scalar_end`] for a scalar at `at`.
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

/// The end of a string that was scanned up to `at`.
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

/// The end of a number at `at`.
struct NumberEnd<'c> {
    chunk: &'c [u8],
    at: usize,
}

impl Task for NumberEnd<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> usize {
        let end = scan.bare_end(self.chunk, self.at);
        // A number at the end of the chunk may continue in the next one.
        match self.chunk.get(self.at..end) {
            Some(number) if end < self.chunk.len() && check_number(number).is_ok() => end,
            _ => NO_END,
        }
    }
}
