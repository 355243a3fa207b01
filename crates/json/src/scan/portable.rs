//! The scan level for every processor, without `unsafe`. Tests compare all other levels with it.

use super::{Care, Classes, Scan, Task, WORD_BYTES};

/// Scans eight bytes at a time in general registers.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the high bit of each byte of `word` that equals `byte`, which is ASCII.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    // Unlike the usual test for a zero byte, this one has no false positives above a match: no
    // carry crosses a byte, because its high bit is cleared first.
    let differing = word ^ (LOW * byte as u64);
    !((differing & !HIGH).wrapping_add(!HIGH) | differing) & HIGH
}

/// Returns the high bit of each byte that is `most`, which is ASCII, or less.
#[inline(always)]
fn at_most(word: u64, most: u8) -> u64 {
    !((word & !HIGH).wrapping_add(LOW * (0x7f - most as u64)) | word) & HIGH
}

/// Gathers the high bits of the eight bytes into the low eight bits.
#[inline(always)]
fn gather(marks: u64) -> u64 {
    // The factor moves each of the eight bits to another position of the top byte.
    (marks >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?))
}

#[inline(always)]
fn find(bytes: &[u8], mut at: usize, marks: impl Fn(u64) -> u64, is: impl Fn(u8) -> bool) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let marks = marks(word);
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + bytes[at..].iter().position(|byte| is(*byte)).unwrap_or(bytes.len() - at)
}

/// Returns the high bit of each byte that is white space, a control character or structural.
#[inline(always)]
fn stops(word: u64) -> u64 {
    let folded = word | (LOW * 0x20);
    at_most(word, 0x20) | equal(word, b',') | equal(word, b':') | equal(folded, b'{') | equal(folded, b'}')
}

/// Returns the high bit of each byte that is not plain text of a string.
#[inline(always)]
fn text_breaks(word: u64) -> u64 {
    equal(word, b'"') | equal(word, b'\\') | at_most(word, 0x1f)
}

/// Returns the high bit of each digit.
#[inline(always)]
fn digits(word: u64) -> u64 {
    at_most(word, b'9') & !at_most(word, b'0' - 1)
}

/// Returns the high bit of each byte that terminates a bare scalar.
#[inline(always)]
fn bare_ends(word: u64) -> u64 {
    stops(word) | equal(word, b'"')
}

#[inline(always)]
fn is_bare_end(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b',' | b':' | b'"') || matches!(byte | 0x20, b'{' | b'}')
}

/// Returns the position of the first marked byte among the first 16.
#[inline(always)]
fn start(bytes: &[u8; WORD_BYTES], marks: impl Fn(u64) -> u64) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let first = marks(u64::from_le_bytes(words[0]));
    if first != 0 {
        return (first.trailing_zeros() / 8) as usize;
    }
    8 + (marks(u64::from_le_bytes(words[1])).trailing_zeros() / 8) as usize
}

/// Masks of that many bytes, by length.
static MASKS: [[u64; WORD_BYTES / 8]; WORD_BYTES * 2] = {
    let mut masks = [[0; WORD_BYTES / 8]; WORD_BYTES * 2];
    let mut len = 0;
    while len <= WORD_BYTES {
        let mut at = 0;
        while at < len {
            masks[len][at / 8] |= 0xff << (at % 8 * 8);
            at += 1;
        }
        len += 1;
    }
    masks
};

impl Scan for Portable {
    #[inline(always)]
    fn text_break(self, bytes: &[u8], at: usize) -> usize {
        find(bytes, at, text_breaks, |byte| byte <= 0x1f || byte == b'"' || byte == b'\\')
    }

    #[inline(always)]
    fn bare_end(self, bytes: &[u8], at: usize) -> usize {
        find(bytes, at, bare_ends, is_bare_end)
    }

    const STEP: usize = 16;

    #[inline(always)]
    fn text_len(self, bytes: &[u8; WORD_BYTES]) -> usize {
        start(bytes, text_breaks)
    }

    #[inline(always)]
    fn digits_len(self, bytes: &[u8; WORD_BYTES]) -> usize {
        start(bytes, |word| HIGH & !digits(word))
    }

    #[inline(always)]
    fn is_word(self, window: &[u8; WORD_BYTES], word: &[u8; WORD_BYTES], care: Care) -> bool {
        let masks = &MASKS[usize::from(care.len) % MASKS.len()];
        let (window, word) = (window.as_chunks::<8>().0, word.as_chunks::<8>().0);
        let differing = window.iter().zip(word).zip(masks).fold(0, |differing, ((a, b), mask)| {
            differing | (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)) & mask
        });
        differing == 0
    }

    #[inline(always)]
    fn classes(self, bytes: &[u8; 64]) -> Classes {
        let mut classes = Classes::default();
        for (at, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let (shift, folded) = (at * 8, word | (LOW * 0x20));
            let is = |word, byte| gather(equal(word, byte)) << shift;
            classes.quote |= is(word, b'"');
            classes.backslash |= is(word, b'\\');
            classes.control |= gather(at_most(word, 0x1f)) << shift;
            classes.low |= gather(at_most(word, 0x20)) << shift;
            classes.comma |= is(word, b',');
            classes.colon |= is(word, b':');
            classes.opens |= is(folded, b'{');
            classes.closes |= is(folded, b'}');
            classes.digit |= gather(digits(word)) << shift;
            classes.zero |= is(word, b'0');
        }
        classes
    }

    #[inline(always)]
    fn blanks(self, bytes: &[u8; 64]) -> u64 {
        let words = bytes.as_chunks::<8>().0.iter().enumerate();
        words.fold(0, |blanks, (at, word)| {
            let word = u64::from_le_bytes(*word);
            let lines = equal(word, b'\n') | equal(word, b'\r');
            blanks | gather(lines | equal(word, b' ') | equal(word, b'\t')) << (at * 8)
        })
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        let mut bits = bits;
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }

    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }

    #[inline(never)]
    fn enter_apart<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }
}
