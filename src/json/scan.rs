//! Finding JSON structure many bytes at a time: where a string ends, where a bare scalar ends, and
//! which bytes of a block of 64 are quotes, backslashes and brackets.
//!
//! This is the only file of the project with `unsafe` code. What every `unsafe` block relies on:
//!
//! 1. *The processor can do it.* The values `Avx512` and `Avx2` are made in one place, [`run`], right
//!    after `is_x86_feature_detected!` has found every feature that their methods use; they cannot be
//!    made elsewhere, since their field is private. A method that has `self` may use the features.
//!    SSE2 is part of every x86-64 processor.
//! 2. *Reads stay inside the slice.* Pointers are made by `as_ptr` of a slice or array reference whose
//!    length was checked, in the line above or by its type, to be at least the width of the load;
//!    masked loads read only lanes below the number of bytes left. All loads are of unaligned kind.
//! 3. *Nothing is written* through any pointer.
//!
//! The portable path has no `unsafe` and is what all others are tested against, over random bytes and
//! every alignment.

/// Masks of one block of 64 bytes; bit 0 is the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    pub quote: u64,
    pub backslash: u64,
    /// `[` and `{`.
    pub open: u64,
    /// `]` and `}`.
    pub close: u64,
    /// `{` and `}`; other bytes may be marked as well, so only of use where `open` or `close` is.
    pub curly: u64,
}

/// A way to look at bytes. The answers do not depend on the way, only the time they take does.
pub trait Scan: Copy {
    /// Place of the first quote or backslash from `at` on; the length when there is none.
    fn string_break(self, bytes: &[u8], at: usize) -> usize;

    /// Place of the first byte from `at` on that cannot be part of a number or word: white space and
    /// control characters, a comma, a closing bracket; the length when there is none.
    fn bare_end(self, bytes: &[u8], at: usize) -> usize;

    /// The masks of a block.
    fn block(self, bytes: &[u8; 64]) -> Block;

    /// Bit n of the result is the exclusive or of the bits 0 to n.
    fn prefix_xor(self, bits: u64) -> u64;

    /// Runs a task that looks at bytes, compiled for the processor that this way of scanning needs. The
    /// other methods are only fast within one.
    fn enter<T: Task>(self, task: T) -> T::Output;
}

/// Work that is compiled once for every way of scanning.
pub trait Task {
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
    Avx2,
    Avx512,
}

impl Level {
    pub const ALL: [Level; 4] = [Level::Portable, Level::Baseline, Level::Avx2, Level::Avx512];

    /// The best level of this processor.
    pub fn best() -> Level {
        Level::ALL.into_iter().rev().find(|level| level.is_available()).unwrap_or(Level::Portable)
    }

    /// Whether [`run`] at this level would really use it.
    pub fn is_available(self) -> bool {
        match self {
            Level::Portable | Level::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => x86::Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => x86::Avx512::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2 | Level::Avx512 => false,
        }
    }
}

/// Runs `task` with the way of scanning of `level`, or of the best one below it that the processor has.
/// The task itself is compiled as everything else is; what is hot in it is for [`Scan::enter`].
#[inline]
pub fn run<T: Task>(level: Level, task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if level >= Level::Avx512
            && let Some(scan) = x86::Avx512::detect()
        {
            return task.run(scan);
        }
        if level >= Level::Avx2
            && let Some(scan) = x86::Avx2::detect()
        {
            return task.run(scan);
        }
        if level >= Level::Baseline {
            return task.run(x86::Sse2);
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

/// Eight bytes at a time, in ordinary registers.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// High bit of exactly those bytes of `word` that are `byte`, which is ASCII.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    let differing = word ^ (LOW * byte as u64);
    !((differing & !HIGH).wrapping_add(!HIGH) | differing) & HIGH
}

/// The high bits of the eight bytes as the low eight bits.
#[inline(always)]
fn gather(marks: u64) -> u64 {
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

/// High bit of exactly those bytes that end a bare scalar.
#[inline(always)]
fn bare_ends(word: u64) -> u64 {
    let blank = !((word & !HIGH).wrapping_add(LOW * (0x7f - 0x20)) | word) & HIGH;
    blank | equal(word, b',') | equal(word | (LOW * 0x20), b'}')
}

#[inline(always)]
fn is_bare_end(byte: u8) -> bool {
    byte <= b' ' || byte == b',' || byte | 0x20 == b'}'
}

impl Scan for Portable {
    #[inline(always)]
    fn string_break(self, bytes: &[u8], at: usize) -> usize {
        let marks = |word| equal(word, b'"') | equal(word, b'\\');
        find(bytes, at, marks, |byte| byte == b'"' || byte == b'\\')
    }

    #[inline(always)]
    fn bare_end(self, bytes: &[u8], at: usize) -> usize {
        find(bytes, at, bare_ends, is_bare_end)
    }

    #[inline(always)]
    fn block(self, bytes: &[u8; 64]) -> Block {
        let mut block = Block::default();
        for (at, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let shift = at * 8;
            block.quote |= gather(equal(word, b'"')) << shift;
            block.backslash |= gather(equal(word, b'\\')) << shift;
            block.open |= gather(equal(word | (LOW * 0x20), b'{')) << shift;
            block.close |= gather(equal(word | (LOW * 0x20), b'}')) << shift;
            block.curly |= gather((word << 2) & HIGH) << shift;
        }
        block
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
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Block, Portable, Scan, Task};
    use std::arch::x86_64::*;

    /// 64 bytes at a time. Holding a value proves that the processor has AVX-512 F and BW, BMI1, BMI2,
    /// LZCNT, POPCNT and PCLMULQDQ.
    #[derive(Clone, Copy)]
    pub struct Avx512(());

    /// 32 bytes at a time. Holding a value proves that the processor has AVX2, BMI1, BMI2, LZCNT,
    /// POPCNT and PCLMULQDQ.
    #[derive(Clone, Copy)]
    pub struct Avx2(());

    /// 16 bytes at a time.
    #[derive(Clone, Copy)]
    pub struct Sse2;

    impl Avx512 {
        #[inline]
        pub fn detect() -> Option<Avx512> {
            (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") && scalar_extras())
                .then_some(Avx512(()))
        }
    }

    impl Avx2 {
        #[inline]
        pub fn detect() -> Option<Avx2> {
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

    /// Looks at windows of `$width` bytes from `$at` on, one after the other, through the marks that
    /// `$scan.$marks` makes of each. Evaluates to the place where less than a window is left. No
    /// closures: they would be compiled without the features of the function that they stand in.
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

        #[inline(always)]
        fn block(self, bytes: &[u8; 64]) -> Block {
            let bytes = self.load(bytes);
            // SAFETY: register arithmetic; `self` proves the features (1).
            unsafe {
                let folded = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20));
                Block {
                    quote: _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'"' as i8)),
                    backslash: _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'\\' as i8)),
                    open: _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8(b'{' as i8)),
                    close: _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8(b'}' as i8)),
                    curly: _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(0x20)),
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
            #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
            fn inner<T: Task>(scan: Avx512, task: T) -> T::Output {
                task.run(scan)
            }
            // SAFETY: `self` proves the features (1).
            unsafe { inner(self, task) }
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
            unsafe {
                let folded = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20));
                _mm512_cmple_epu8_mask(bytes, _mm512_set1_epi8(b' ' as i8))
                    | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b',' as i8))
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

    impl Scan for Avx2 {
        #[inline(always)]
        fn string_break(self, bytes: &[u8], at: usize) -> usize {
            let at = find!(bytes, at, 32, self.string_marks);
            Sse2.string_break(bytes, at)
        }

        #[inline(always)]
        fn bare_end(self, bytes: &[u8], at: usize) -> usize {
            let at = find!(bytes, at, 32, self.bare_marks);
            Sse2.bare_end(bytes, at)
        }

        #[inline(always)]
        fn block(self, bytes: &[u8; 64]) -> Block {
            let (halves, _) = bytes.as_chunks::<32>();
            let [low, high] = [self.half(&halves[0]), self.half(&halves[1])];
            low.then(high, 32)
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
    }

    impl Avx2 {
        #[inline(always)]
        fn string_marks(self, bytes: __m256i) -> u32 {
            self.equal(bytes, b'"') | self.equal(bytes, b'\\')
        }

        #[inline(always)]
        fn bare_marks(self, bytes: __m256i) -> u32 {
            // SAFETY: register arithmetic; `self` proves the features (1).
            let (folded, control) = unsafe {
                let blank = _mm256_set1_epi8(b' ' as i8);
                (
                    _mm256_or_si256(bytes, blank),
                    _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(bytes, blank), blank)),
                )
            };
            control as u32 | self.equal(bytes, b',') | self.equal(folded, b'}')
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
        fn half(self, bytes: &[u8; 32]) -> Block {
            let bytes = self.load(bytes);
            // SAFETY: register arithmetic; `self` proves the features (1).
            let (folded, curly) = unsafe {
                (
                    _mm256_or_si256(bytes, _mm256_set1_epi8(0x20)),
                    _mm256_movemask_epi8(_mm256_slli_epi16::<2>(bytes)) as u32,
                )
            };
            Block {
                quote: self.equal(bytes, b'"').into(),
                backslash: self.equal(bytes, b'\\').into(),
                open: self.equal(folded, b'{').into(),
                close: self.equal(folded, b'}').into(),
                curly: curly.into(),
            }
        }
    }

    impl Scan for Sse2 {
        #[inline(always)]
        fn string_break(self, bytes: &[u8], at: usize) -> usize {
            let at = find!(bytes, at, 16, self.string_marks);
            Portable.string_break(bytes, at)
        }

        #[inline(always)]
        fn bare_end(self, bytes: &[u8], at: usize) -> usize {
            let at = find!(bytes, at, 16, self.bare_marks);
            Portable.bare_end(bytes, at)
        }

        #[inline(always)]
        fn block(self, bytes: &[u8; 64]) -> Block {
            let (quarters, _) = bytes.as_chunks::<16>();
            let low = self.quarter(&quarters[0]).then(self.quarter(&quarters[1]), 16);
            let high = self.quarter(&quarters[2]).then(self.quarter(&quarters[3]), 16);
            low.then(high, 32)
        }

        #[inline(always)]
        fn prefix_xor(self, bits: u64) -> u64 {
            Portable.prefix_xor(bits)
        }

        #[inline(always)]
        fn enter<T: Task>(self, task: T) -> T::Output {
            task.run(self)
        }
    }

    impl Sse2 {
        #[inline(always)]
        fn string_marks(self, bytes: __m128i) -> u32 {
            self.equal(bytes, b'"') | self.equal(bytes, b'\\')
        }

        #[inline(always)]
        fn bare_marks(self, bytes: __m128i) -> u32 {
            // SAFETY: register arithmetic with SSE2 (1).
            let (folded, control) = unsafe {
                let blank = _mm_set1_epi8(b' ' as i8);
                (
                    _mm_or_si128(bytes, blank),
                    _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(bytes, blank), blank)),
                )
            };
            control as u32 | self.equal(bytes, b',') | self.equal(folded, b'}')
        }

        #[inline(always)]
        fn load(self, bytes: &[u8; 16]) -> __m128i {
            // SAFETY: the array has 16 bytes (2); SSE2 is always there (1).
            unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
        }

        #[inline(always)]
        fn equal(self, bytes: __m128i, byte: u8) -> u32 {
            // SAFETY: register arithmetic with SSE2 (1).
            unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32 }
        }

        #[inline(always)]
        fn quarter(self, bytes: &[u8; 16]) -> Block {
            let bytes = self.load(bytes);
            // SAFETY: register arithmetic with SSE2 (1).
            let (folded, curly) = unsafe {
                (
                    _mm_or_si128(bytes, _mm_set1_epi8(0x20)),
                    _mm_movemask_epi8(_mm_slli_epi16::<2>(bytes)) as u32,
                )
            };
            Block {
                quote: self.equal(bytes, b'"').into(),
                backslash: self.equal(bytes, b'\\').into(),
                open: self.equal(folded, b'{').into(),
                close: self.equal(folded, b'}').into(),
                curly: curly.into(),
            }
        }
    }

    impl Block {
        /// This block with `next` after its first `width` bytes.
        #[inline(always)]
        fn then(self, next: Block, width: u32) -> Block {
            Block {
                quote: self.quote | next.quote << width,
                backslash: self.backslash | next.backslash << width,
                open: self.open | next.open << width,
                close: self.close | next.close << width,
                curly: self.curly | next.curly << width,
            }
        }
    }

    /// Multiplying by all ones without carries adds up every bit at and below each place.
    ///
    /// # Safety
    /// The processor must have PCLMULQDQ.
    #[inline(always)]
    unsafe fn carryless_prefix_xor(bits: u64) -> u64 {
        // SAFETY: the caller promises the feature; register arithmetic otherwise.
        unsafe {
            let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
            _mm_cvtsi128_si64(product) as u64
        }
    }
}
