//! Where a value ends that begins within the chunk: the short ones in a window that has been loaded anyway, any other by
//! passing over it.

use super::skip::{Skip, Skipped};
use switchback_json::scan::{Scan, Task, WORD_BYTES};
use switchback_json::text::check_number;
use switchback_json::{Grammar, flat_len};

/// Bytes that are looked at from the one before a name on, so that one question about the end of the chunk does for the comma,
/// the name and the beginning of its value.
pub(super) const AHEAD_BYTES: usize = 4 * WORD_BYTES + 1;

/// What the chunk has from the byte before a name on, followed by zeros where it ends.
pub(super) type Ahead = [u8; AHEAD_BYTES];

/// The place after the value of the member whose name, with its colon, has `len` bytes, or [`NO_END`]. The value is at `value`
/// of the chunk, `ahead` begins one byte before the name. `depth_left` is how many brackets may be opened. `grammar` checks what
/// needs a closer look, if that is wanted: what is short and simple is in order where its end is found.
#[inline(always)]
pub(super) fn value_end<S: Scan>(
    scan: S,
    chunk: &[u8],
    ahead: &Ahead,
    len: usize,
    value: usize,
    depth_left: impl Fn() -> usize,
    grammar: &mut Option<Grammar>,
) -> usize {
    let first = ahead[1 + len % WINDOWS_BYTES];
    // By far the most frequent kind comes first.
    if first == b'"' {
        let window = window::<0, WORD_BYTES>(ahead, 2 + len);
        let found = scan.text_len(window);
        if found < S::STEP && window[found % WORD_BYTES] == b'"' {
            return value + found + 2;
        }
    } else {
        let window = window::<0, WORD_BYTES>(ahead, 1 + len);
        if first.is_ascii_digit() {
            let found = scan.digits_len(window);
            let is_end = matches!(window[found % WORD_BYTES], b',' | b'}');
            if found < S::STEP && is_end && (first != b'0' || found == 1) {
                return value + found;
            }
        } else if let Some(word_len) = word_len(window) {
            // What follows is no part of it where it is what has to follow.
            return value + word_len;
        } else if matches!(first, b'{' | b'[') && depth_left() > 0 {
            let block = window_of_block(ahead, 1 + len);
            let end = match grammar {
                Some(_) => flat_len(scan, block).unwrap_or(NO_END),
                None => short_container_end(scan, first, block),
            };
            if end != NO_END {
                return value + end;
            }
        }
    }
    scan.enter_apart(ValueEnd { chunk, value, depth_left: depth_left(), grammar })
}

/// Said of a value that does not end within the chunk or has a fault: no value ends there.
pub(super) const NO_END: usize = 0;

/// The length of the array or object that begins with `first`, at the start of `block`, if it holds no others and no backslash
/// and ends within the block; else [`NO_END`].
#[inline(always)]
fn short_container_end<S: Scan>(scan: S, first: u8, block: &[u8; 64]) -> usize {
    let marks = scan.block(block);
    // Without the bracket that it begins with.
    let brackets = marks.brackets & !scan.prefix_xor(marks.quote) & !1;
    let last = brackets.trailing_zeros() as usize;
    // In ASCII, each bracket is followed by one other byte and its counterpart.
    let ends = brackets != 0 && marks.backslash == 0 && block[last % 64] == first + 2;
    if ends { last + 1 } else { NO_END }
}

/// Bytes of the word that `window` begins with.
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

/// The bounds of a window's place: all sums of a place and a width stay within [`Ahead`].
const WINDOWS_BYTES: usize = 2 * WORD_BYTES;

/// The `N` bytes of `ahead` from `from` on, which is below [`WINDOWS_BYTES`] behind `PAST`.
#[inline(always)]
pub(super) fn window<const PAST: usize, const N: usize>(ahead: &Ahead, from: usize) -> &[u8; N] {
    const { assert!(PAST + WINDOWS_BYTES + N <= AHEAD_BYTES + 1) };
    ahead[PAST + from % WINDOWS_BYTES..].first_chunk().expect("the window ends before the bytes do")
}

#[inline(always)]
fn window_of_block(ahead: &Ahead, from: usize) -> &[u8; 64] {
    window::<0, 64>(ahead, from)
}

/// What the chunk has from the byte before `at` on, followed by zeros.
#[inline(never)]
pub(super) fn padded(chunk: &[u8], at: usize) -> Ahead {
    let (skipped, from) = if at == 0 { (1, 0) } else { (0, at - 1) };
    let rest = chunk.get(from..).unwrap_or_default();
    let len = rest.len().min(AHEAD_BYTES - skipped);
    let mut padded = [0; AHEAD_BYTES];
    padded[skipped..skipped + len].copy_from_slice(&rest[..len]);
    padded
}

/// A value of any kind and length.
struct ValueEnd<'c, 'g> {
    chunk: &'c [u8],
    value: usize,
    depth_left: usize,
    grammar: &'g mut Option<Grammar>,
}

impl Task for ValueEnd<'_, '_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> usize {
        let Some(&first) = self.chunk.get(self.value) else { return NO_END };
        if !matches!(first, b'"' | b'[' | b'{' | b'-' | b'0'..=b'9') {
            return NO_END;
        }
        // The quote of a string is behind, the bracket of a container before.
        let inside = self.value + usize::from(first == b'"');
        let Some(grammar) = self.grammar else {
            return passed_end(scan, first, self.chunk, inside, self.depth_left);
        };
        match first {
            b'"' => string_end(scan, self.chunk, inside),
            b'[' | b'{' => {
                grammar.restart(self.depth_left, 0);
                match grammar.feed_to_end(scan, &self.chunk[self.value..]) {
                    Ok(Some(len)) => self.value + len,
                    _ => NO_END,
                }
            }
            _ => match passed_end(scan, first, self.chunk, inside, self.depth_left) {
                NO_END => NO_END,
                end if check_number(&self.chunk[self.value..end]).is_ok() => end,
                _ => NO_END,
            },
        }
    }
}

/// The place after the value that begins with `first`, without looking into it, or [`NO_END`].
#[inline(always)]
fn passed_end<S: Scan>(scan: S, first: u8, chunk: &[u8], inside: usize, depth_left: usize) -> usize {
    match Skip::of(first).over(scan, chunk, inside, depth_left) {
        Skipped::To(end) => end,
        _ => NO_END,
    }
}

/// The place after the string whose text begins at `at`, or [`NO_END`].
#[inline(always)]
fn string_end<S: Scan>(scan: S, chunk: &[u8], at: usize) -> usize {
    let mut at = at;
    loop {
        at = scan.text_break(chunk, at);
        let rest = chunk.get(at..).unwrap_or_default();
        at += match rest {
            [b'"', ..] => return at + 1,
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [b'\\', b'u', digits @ ..] => match digits.first_chunk::<4>() {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => 6,
                _ => return NO_END,
            },
            _ => return NO_END,
        };
    }
}
