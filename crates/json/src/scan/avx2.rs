//! The way of scanning for AVX2. The numbers in brackets refer to the list in the module above.

#![expect(unsafe_code, reason = "instructions of the processor")]

use super::sse2::Sse2;
use super::{Care, Classes, Scan, Task, WORD_BYTES};
use std::arch::x86_64::*;

/// 32 bytes at a time. Holding a value proves that the processor has AVX2, BMI1, BMI2, LZCNT,
/// POPCNT and PCLMULQDQ.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    #[inline]
    pub(super) fn detect() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && scalar_extras()).then_some(Avx2(()))
    }
}

#[inline]
fn scalar_extras() -> bool {
    is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("pclmulqdq")
}

impl Scan for Avx2 {
    #[inline(always)]
    fn text_break(self, bytes: &[u8], at: usize) -> usize {
        let at = find!(bytes, at, 32, self.text_marks);
        Sse2.text_break(bytes, at)
    }

    #[inline(always)]
    fn bare_end(self, bytes: &[u8], at: usize) -> usize {
        let at = find!(bytes, at, 32, self.bare_marks);
        Sse2.bare_end(bytes, at)
    }

    const STEP: usize = 32;

    #[inline(always)]
    fn text_len(self, bytes: &[u8; WORD_BYTES]) -> usize {
        self.text_marks(self.load(bytes)).trailing_zeros() as usize
    }

    #[inline(always)]
    fn digits_len(self, bytes: &[u8; WORD_BYTES]) -> usize {
        self.digits(self.load(bytes)).trailing_ones() as usize
    }

    #[inline(always)]
    fn is_word(self, window: &[u8; WORD_BYTES], word: &[u8; WORD_BYTES], care: Care) -> bool {
        let (window, word) = (self.load(window), self.load(word));
        // SAFETY: register arithmetic; `self` proves the features (1).
        let same = unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi8(window, word)) as u32 };
        !same & care.bits == 0
    }

    #[inline(always)]
    fn classes(self, bytes: &[u8; 64]) -> Classes {
        let (halves, _) = bytes.as_chunks::<32>();
        let [low, high] = [self.classes_of(&halves[0]), self.classes_of(&halves[1])];
        low.then(high, 32)
    }

    #[inline(always)]
    fn blanks(self, bytes: &[u8; 64]) -> u64 {
        let (halves, _) = bytes.as_chunks::<32>();
        self.blanks_of(&halves[0]) | self.blanks_of(&halves[1]) << 32
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        // SAFETY: `self` proves PCLMULQDQ (1).
        unsafe { carryless_prefix_xor(bits) }
    }

    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
        fn inner<T: Task>(scan: Avx2, task: T) -> T::Output {
            task.run(scan)
        }
        // SAFETY: `self` proves the features (1).
        unsafe { inner(self, task) }
    }

    #[inline(always)]
    fn enter_apart<T: Task>(self, task: T) -> T::Output {
        #[inline(never)]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
        fn apart<T: Task>(scan: Avx2, task: T) -> T::Output {
            task.run(scan)
        }
        // SAFETY: `self` proves the features (1).
        unsafe { apart(self, task) }
    }
}

impl Avx2 {
    #[inline(always)]
    fn text_marks(self, bytes: __m256i) -> u32 {
        self.equal(bytes, b'"') | self.equal(bytes, b'\\') | self.at_most(bytes, 0x1f)
    }

    #[inline(always)]
    fn digits(self, bytes: __m256i) -> u32 {
        // SAFETY: register arithmetic; `self` proves the features (1).
        let from_zero = unsafe { _mm256_sub_epi8(bytes, _mm256_set1_epi8(b'0' as i8)) };
        self.at_most(from_zero, 9)
    }

    #[inline(always)]
    fn bare_marks(self, bytes: __m256i) -> u32 {
        self.stop_marks(bytes) | self.equal(bytes, b'"')
    }

    #[inline(always)]
    fn stop_marks(self, bytes: __m256i) -> u32 {
        // SAFETY: register arithmetic; `self` proves the features (1).
        unsafe {
            let blank = _mm256_set1_epi8(b' ' as i8);
            let folded = _mm256_or_si256(bytes, blank);
            let control = _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, blank), blank);
            // Folding makes commas and colons of control characters alone, which are marked anyway.
            let structure = _mm256_setr_epi8(
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3a, 0x7b, 0x2c, 0x7d, 0, 0, //
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3a, 0x7b, 0x2c, 0x7d, 0, 0,
            );
            let structural = _mm256_cmpeq_epi8(folded, _mm256_shuffle_epi8(structure, bytes));
            _mm256_movemask_epi8(_mm256_or_si256(control, structural)) as u32
        }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; 32]) -> __m256i {
        // SAFETY: the array has 32 bytes (2); `self` proves the features (1).
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn equal(self, bytes: __m256i, byte: u8) -> u32 {
        // SAFETY: register arithmetic; `self` proves the features (1).
        unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8))) as u32 }
    }

    #[inline(always)]
    fn classes_of(self, bytes: &[u8; 32]) -> Classes {
        let bytes = self.load(bytes);
        // SAFETY: register arithmetic; `self` proves the features (1).
        let (folded, from_zero) = unsafe {
            let folded = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
            (folded, _mm256_sub_epi8(bytes, _mm256_set1_epi8(b'0' as i8)))
        };
        classes!(self, bytes, folded, from_zero)
    }

    #[inline(always)]
    fn at_most(self, bytes: __m256i, byte: u8) -> u32 {
        // SAFETY: register arithmetic; `self` proves the features (1).
        unsafe {
            let most = _mm256_set1_epi8(byte as i8);
            _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(bytes, most), most)) as u32
        }
    }

    #[inline(always)]
    fn blanks_of(self, bytes: &[u8; 32]) -> u64 {
        let bytes = self.load(bytes);
        let lines = self.equal(bytes, b'\n') | self.equal(bytes, b'\r');
        (lines | self.equal(bytes, b' ') | self.equal(bytes, b'\t')).into()
    }
}

/// Multiplying by all ones without carries adds up every bit at and below each place.
///
/// # Safety
/// The processor must have PCLMULQDQ.
#[inline(always)]
pub(super) unsafe fn carryless_prefix_xor(bits: u64) -> u64 {
    // SAFETY: the caller promises the feature; register arithmetic otherwise.
    unsafe {
        let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
        _mm_cvtsi128_si64(product) as u64
    }
}
