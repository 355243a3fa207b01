//! The way of scanning for AVX-512. The numbers in brackets refer to the list in the module above.

use super::avx2::{Avx2, carryless_prefix_xor, scalar_extras};
use super::{BRACKET, BRACKET_BITS, Block, Care, Scan, Task, WORD_BYTES};
use std::arch::x86_64::*;

/// 64 bytes at a time. Holding a value proves that the processor has AVX-512 F and BW, AVX2, BMI1, BMI2,
/// LZCNT, POPCNT and PCLMULQDQ.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    #[inline]
    pub fn detect() -> Option<Avx512> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx2")
            && scalar_extras())
        .then_some(Avx512(()))
    }
}

impl Scan for Avx512 {
    #[inline(always)]
    fn string_break(self, bytes: &[u8], at: usize) -> usize {
        let at = find!(bytes, at, 64, self.string_marks);
        let found = self.string_marks(self.load_tail(bytes, at));
        bytes.len().min(at + found.trailing_zeros() as usize)
    }

    #[inline(always)]
    fn bare_end(self, bytes: &[u8], at: usize) -> usize {
        let at = find!(bytes, at, 64, self.bare_marks);
        let found = self.bare_marks(self.load_tail(bytes, at));
        bytes.len().min(at + found.trailing_zeros() as usize)
    }

    const STEP: usize = Avx2::STEP;

    // Masks of registers twice as wide take longer to reach a general register, and what is short is
    // found in half as many bytes.
    #[inline(always)]
    fn string_start(self, bytes: &[u8; WORD_BYTES]) -> usize {
        Avx2::of(self).string_start(bytes)
    }

    #[inline(always)]
    fn bare_start(self, bytes: &[u8; WORD_BYTES]) -> usize {
        Avx2::of(self).bare_start(bytes)
    }

    #[inline(always)]
    fn is_word(self, window: &[u8; WORD_BYTES], word: &[u8; WORD_BYTES], care: Care) -> bool {
        Avx2::of(self).is_word(window, word, care)
    }

    #[inline(always)]
    fn block(self, bytes: &[u8; 64]) -> Block {
        let bytes = self.load(bytes);
        // SAFETY: register arithmetic; `self` proves the features (1).
        unsafe {
            let folded = _mm512_or_si512(bytes, _mm512_set1_epi8(BRACKET_BITS as i8));
            Block {
                quote: _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'"' as i8)),
                backslash: _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'\\' as i8)),
                brackets: _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8(BRACKET as i8)),
            }
        }
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        // SAFETY: `self` proves PCLMULQDQ (1).
        unsafe { carryless_prefix_xor(bits) }
    }

    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
        fn inner<T: Task>(scan: Avx512, task: T) -> T::Output {
            task.run(scan)
        }
        // SAFETY: `self` proves the features (1).
        unsafe { inner(self, task) }
    }

    #[inline(always)]
    fn enter_short<T: Task>(self, task: T) -> T::Output {
        Avx2::of(self).enter(task)
    }

    #[inline(always)]
    fn enter_apart<T: Task>(self, task: T) -> T::Output {
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
        fn apart<T: Task>(scan: Avx512, task: T) -> T::Output {
            task.run(scan)
        }
        // SAFETY: `self` proves the features (1).
        unsafe { apart(self, task) }
    }
}

impl Avx512 {
    #[inline(always)]
    fn string_marks(self, bytes: __m512i) -> u64 {
        // SAFETY: register arithmetic; `self` proves the features (1).
        unsafe {
            _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'"' as i8))
                | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'\\' as i8))
        }
    }

    #[inline(always)]
    fn bare_marks(self, bytes: __m512i) -> u64 {
        // SAFETY: register arithmetic; `self` proves the features (1).
        let quote = unsafe { _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'"' as i8)) };
        quote | self.stop_marks(bytes)
    }

    #[inline(always)]
    fn stop_marks(self, bytes: __m512i) -> u64 {
        // SAFETY: register arithmetic; `self` proves the features (1).
        unsafe {
            let folded = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20));
            _mm512_cmple_epu8_mask(bytes, _mm512_set1_epi8(b' ' as i8))
                | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b',' as i8))
                | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b':' as i8))
                | _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8(b'{' as i8))
                | _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8(b'}' as i8))
        }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 64]) -> __m512i {
        // SAFETY: the array has 64 bytes (2); `self` proves the features (1).
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    /// The fewer than 64 bytes from `at` on, followed by zeros.
    #[inline(always)]
    fn load_tail(self, bytes: &[u8], at: usize) -> __m512i {
        let tail = bytes.get(at..).unwrap_or_default();
        let lanes = (1u64 << (tail.len() & 63)) - 1;
        // SAFETY: only lanes below `tail.len()` (which is below 64) are read (2); `self` proves
        // the features (1).
        unsafe { _mm512_maskz_loadu_epi8(lanes, tail.as_ptr().cast()) }
    }
}
