//! The way of scanning for every x86-64 processor. The numbers in brackets refer to the list in the
//! module above.

#![expect(unsafe_code, reason = "instructions of the processor")]

use super::portable::Portable;
use super::{Care, Classes, Scan, Task, WORD_BYTES};
use std::arch::x86_64::*;

/// 16 bytes at a time.
#[derive(Clone, Copy)]
pub(super) struct Sse2;

impl Scan for Sse2 {
    #[inline(always)]
    fn text_break(self, bytes: &[u8], at: usize) -> usize {
        let at = find!(bytes, at, 16, self.text_marks);
        Portable.text_break(bytes, at)
    }

    #[inline(always)]
    fn bare_end(self, bytes: &[u8], at: usize) -> usize {
        let at = find!(bytes, at, 16, self.bare_marks);
        Portable.bare_end(bytes, at)
    }

    const STEP: usize = 32;

    #[inline(always)]
    fn text_len(self, bytes: &[u8; WORD_BYTES]) -> usize {
        let [low, high] = halves(bytes);
        let low = self.text_marks(self.load(low));
        (low | self.text_marks(self.load(high)) << 16).trailing_zeros() as usize
    }

    #[inline(always)]
    fn digits_len(self, bytes: &[u8; WORD_BYTES]) -> usize {
        let [low, high] = halves(bytes);
        let low = self.digits(self.load(low));
        (low | self.digits(self.load(high)) << 16).trailing_ones() as usize
    }

    #[inline(always)]
    fn is_word(self, window: &[u8; WORD_BYTES], word: &[u8; WORD_BYTES], care: Care) -> bool {
        let ([low, high], [word_low, word_high]) = (halves(window), halves(word));
        // Most words end in the first half.
        !self.same(low, word_low) & care.bits & 0xffff == 0
            && (care.len <= 16 || !self.same(high, word_high) & (care.bits >> 16) == 0)
    }

    #[inline(always)]
    fn classes(self, bytes: &[u8; 64]) -> Classes {
        let (quarters, _) = bytes.as_chunks::<16>();
        let low = self.classes_of(&quarters[0]).then(self.classes_of(&quarters[1]), 16);
        let high = self.classes_of(&quarters[2]).then(self.classes_of(&quarters[3]), 16);
        low.then(high, 32)
    }

    #[inline(always)]
    fn blanks(self, bytes: &[u8; 64]) -> u64 {
        let (quarters, _) = bytes.as_chunks::<16>();
        let low = self.blanks_of(&quarters[0]) | self.blanks_of(&quarters[1]) << 16;
        low | (self.blanks_of(&quarters[2]) | self.blanks_of(&quarters[3]) << 16) << 32
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        Portable.prefix_xor(bits)
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

impl Sse2 {
    #[inline(always)]
    fn text_marks(self, bytes: __m128i) -> u32 {
        self.equal(bytes, b'"') | self.equal(bytes, b'\\') | self.at_most(bytes, 0x1f)
    }

    #[inline(always)]
    fn digits(self, bytes: __m128i) -> u32 {
        // SAFETY: register arithmetic with SSE2 (1).
        let from_zero = unsafe { _mm_sub_epi8(bytes, _mm_set1_epi8(b'0' as i8)) };
        self.at_most(from_zero, 9)
    }

    #[inline(always)]
    fn bare_marks(self, bytes: __m128i) -> u32 {
        self.stop_marks(bytes) | self.equal(bytes, b'"')
    }

    #[inline(always)]
    fn stop_marks(self, bytes: __m128i) -> u32 {
        // SAFETY: register arithmetic with SSE2 (1).
        unsafe {
            let blank = _mm_set1_epi8(b' ' as i8);
            let folded = _mm_or_si128(bytes, blank);
            let is = |bytes, byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8));
            let control = _mm_cmpeq_epi8(_mm_max_epu8(bytes, blank), blank);
            // Folding makes commas and colons of control characters alone, which are marked anyway.
            let between = _mm_or_si128(is(folded, b','), is(folded, b':'));
            let brackets = _mm_or_si128(is(folded, b'{'), is(folded, b'}'));
            _mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(between, brackets))) as u32
        }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 16]) -> __m128i {
        // SAFETY: the array has 16 bytes (2); SSE2 is always there (1).
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// A bit for each byte that is the same in both.
    #[inline(always)]
    fn same(self, one: &[u8; 16], other: &[u8; 16]) -> u32 {
        let (one, other) = (self.load(one), self.load(other));
        // SAFETY: register arithmetic with SSE2 (1).
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(one, other)) as u32 }
    }

    #[inline(always)]
    fn equal(self, bytes: __m128i, byte: u8) -> u32 {
        // SAFETY: register arithmetic with SSE2 (1).
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32 }
    }

    #[inline(always)]
    fn classes_of(self, bytes: &[u8; 16]) -> Classes {
        let bytes = self.load(bytes);
        // SAFETY: register arithmetic with SSE2 (1).
        let (folded, from_zero) = unsafe {
            let folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
            (folded, _mm_sub_epi8(bytes, _mm_set1_epi8(b'0' as i8)))
        };
        classes!(self, bytes, folded, from_zero)
    }

    #[inline(always)]
    fn at_most(self, bytes: __m128i, byte: u8) -> u32 {
        // SAFETY: register arithmetic with SSE2 (1).
        unsafe {
            let most = _mm_set1_epi8(byte as i8);
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(bytes, most), most)) as u32
        }
    }

    #[inline(always)]
    fn blanks_of(self, bytes: &[u8; 16]) -> u64 {
        let bytes = self.load(bytes);
        let lines = self.equal(bytes, b'\n') | self.equal(bytes, b'\r');
        (lines | self.equal(bytes, b' ') | self.equal(bytes, b'\t')).into()
    }
}

#[inline(always)]
fn halves(word: &[u8; WORD_BYTES]) -> [&[u8; 16]; 2] {
    let (halves, _) = word.as_chunks::<16>();
    [&halves[0], &halves[1]]
}
