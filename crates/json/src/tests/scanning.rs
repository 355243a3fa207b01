//! Every way of scanning gives the same answers, over random bytes and all alignments.

use super::super::scan::{self, Care, Classes, Level, Portable, Scan, Task, WORD_BYTES, Windows};
use super::super::utf8::Utf8Checker;
#[cfg(unix)]
use super::guarded::Guarded;
use proptest::prelude::*;

/// Everything a way of scanning says about some bytes.
struct Everything<'a>(&'a [u8]);

#[derive(Debug, PartialEq)]
struct Answers {
    text_breaks: Vec<usize>,
    bare_ends: Vec<usize>,
    classes: Vec<Classes>,
    blanks: Vec<u64>,
    prefixes: Vec<u64>,
    /// By window: the first byte that is no text and the first that is no digit among the bytes
    /// that are looked at.
    starts: Vec<(usize, usize)>,
    /// Whether the beginning of a text stands at a place, for texts of all lengths.
    words: Vec<bool>,
}

impl Task for Everything<'_> {
    type Output = Answers;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> Answers {
        let bytes = self.0;
        let classes: Vec<_> =
            bytes.windows(64).map(|window| scan.classes(window.try_into().expect("64 bytes"))).collect();
        let starts = bytes.windows(WORD_BYTES).map(|window| {
            let window = window.try_into().expect("enough bytes");
            (S::STEP.min(scan.text_len(window)), S::STEP.min(scan.digits_len(window)))
        });
        Answers {
            starts: starts.collect(),
            words: words(bytes, |window, word, len| scan.is_word(window, word, Care::first(len))),
            text_breaks: (0..=bytes.len()).map(|at| scan.text_break(bytes, at)).collect(),
            bare_ends: (0..=bytes.len()).map(|at| scan.bare_end(bytes, at)).collect(),
            prefixes: classes.iter().map(|classes| scan.prefix_xor(classes.quote)).collect(),
            blanks: bytes
                .windows(64)
                .map(|window| scan.blanks(window.try_into().expect("64 bytes")))
                .collect(),
            classes,
        }
    }
}

/// What `is_word` says of neighbouring windows, and of a window and itself, by length of the word.
fn words(bytes: &[u8], is_word: impl Fn(&[u8; WORD_BYTES], &[u8; WORD_BYTES], usize) -> bool) -> Vec<bool> {
    let windows: Vec<&[u8; WORD_BYTES]> =
        bytes.windows(WORD_BYTES).map(|window| window.try_into().expect("enough bytes")).collect();
    let pairs = windows.windows(2).flat_map(|pair| [(pair[0], pair[1]), (pair[0], pair[0])]);
    pairs
        .flat_map(|(one, other)| (0..=WORD_BYTES).map(move |len| (one, other, len)))
        .map(|(one, other, len)| is_word(one, other, len))
        .collect()
}

/// Enters the task that it is given.
struct Entered<'a>(&'a [u8]);

impl Task for Entered<'_> {
    type Output = Answers;

    fn run<S: Scan>(self, scan: S) -> Answers {
        let apart = scan.enter_apart(Everything(self.0));
        assert_eq!(scan.enter(Everything(self.0)), apart);
        apart
    }
}

/// The same answers, byte by byte; `step` is how many bytes are looked at for `starts`.
fn by_hand(bytes: &[u8], step: usize) -> Answers {
    let first = |at: usize, is: &dyn Fn(u8) -> bool| {
        bytes[at..].iter().position(|byte| is(*byte)).map_or(bytes.len(), |found| at + found)
    };
    let mask = |window: &[u8], is: &dyn Fn(u8) -> bool| {
        window.iter().rev().fold(0u64, |mask, byte| mask << 1 | u64::from(is(*byte)))
    };
    let classes: Vec<_> = bytes
        .windows(64)
        .map(|window| Classes {
            quote: mask(window, &|byte| byte == b'"'),
            backslash: mask(window, &|byte| byte == b'\\'),
            control: mask(window, &|byte| byte < 0x20),
            low: mask(window, &|byte| byte <= 0x20),
            comma: mask(window, &|byte| byte == b','),
            colon: mask(window, &|byte| byte == b':'),
            opens: mask(window, &|byte| b"[{".contains(&byte)),
            closes: mask(window, &|byte| b"]}".contains(&byte)),
            digit: mask(window, &|byte| byte.is_ascii_digit()),
            zero: mask(window, &|byte| byte == b'0'),
        })
        .collect();
    Answers {
        text_breaks: (0..=bytes.len()).map(|at| first(at, &is_text_break)).collect(),
        bare_ends: (0..=bytes.len()).map(|at| first(at, &is_bare_end)).collect(),
        starts: (0..(bytes.len() + 1).saturating_sub(WORD_BYTES))
            .map(|at| {
                let digits = first(at, &|byte| !byte.is_ascii_digit()) - at;
                (step.min(first(at, &is_text_break) - at), step.min(digits))
            })
            .collect(),
        words: words(bytes, |one, other, len| one[..len] == other[..len]),
        prefixes: classes
            .iter()
            .map(|Classes { quote, .. }| {
                (0..64).fold(0, |sum, at| sum | u64::from((quote << (63 - at)).count_ones() % 2) << at)
            })
            .collect(),
        blanks: bytes.windows(64).map(|window| mask(window, &|byte| b" \t\r\n".contains(&byte))).collect(),
        classes,
    }
}

fn is_text_break(byte: u8) -> bool {
    matches!(byte, 0..0x20 | b'"' | b'\\')
}

fn is_bare_end(byte: u8) -> bool {
    matches!(byte, 0..=b' ' | b',' | b':' | b'"' | b'[' | b']' | b'{' | b'}')
}

/// How many bytes a way of scanning looks at.
struct Step;

impl Task for Step {
    type Output = usize;

    fn run<S: Scan>(self, _: S) -> usize {
        S::STEP
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let telling =
        prop::sample::select(b"\"\\[]{}:, \n\t\r\x1f\x21aZ059\x7f\x80\xa2\xdb\xfb\xfd\xff\xdc".to_vec());
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(telling, 0..200),
        (prop::collection::vec(Just(b'x'), 0..190), any::<u8>()).prop_map(|(mut bytes, last)| {
            bytes.push(last);
            bytes
        }),
    ]
}

proptest! {
    #[test]
    fn all_levels_agree_at_all_alignments(bytes in bytes(), shift in 0usize..64) {
        let mut moved = vec![b'"'; shift];
        moved.extend_from_slice(&bytes);
        let bytes = &moved[shift..];
        for level in Level::ALL {
            let expected = by_hand(bytes, scan::run(level, Step));
            prop_assert_eq!(scan::run(level, Entered(bytes)), expected, "{:?}", level);
        }
    }

    #[test]
    fn escapes_are_found_up_to_the_end_of_a_block(bytes in prop::collection::vec(prop::sample::select(b"\\\\\\x".to_vec()), 64)) {
        let block: &[u8; 64] = bytes.first_chunk().expect("64 bytes");
        let (escaped, escapes_next) = scan::escaped(Portable.classes(block).backslash);
        let mut is_escaped = false;
        for (at, byte) in block.iter().enumerate() {
            prop_assert_eq!(escaped >> at & 1 == 1, is_escaped);
            is_escaped = *byte == b'\\' && !is_escaped;
        }
        prop_assert_eq!(escapes_next, is_escaped);
    }

    #[test]
    fn utf_8_in_chunks_is_utf_8(text in any::<String>(), at in any::<prop::sample::Index>(), byte in any::<Option<u8>>(), size in 1usize..6) {
        let mut bytes = text.into_bytes();
        if let (Some(byte), false) = (byte, bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut checker = Utf8Checker::default();
        let fed = bytes.chunks(size).try_for_each(|chunk| checker.feed(chunk)).and_then(|()| checker.finish());
        let expected = std::str::from_utf8(&bytes).map(drop).map_err(|fault| fault.valid_up_to() as u64);
        prop_assert_eq!(fed.map_err(|fault| fault.offset), expected);
    }
}

/// Every length of input, in front of a page that cannot be read.
#[cfg(unix)]
#[test]
fn nothing_is_read_behind_the_last_byte() {
    let mut guarded = Guarded::new();
    for len in 0..=200 {
        let text: Vec<u8> = (0..len).map(|at| if at % 61 == 60 { b'"' } else { b'x' }).collect();
        let text = guarded.at_the_end(&text);
        for level in Level::ALL {
            let expected = by_hand(text, scan::run(level, Step));
            assert_eq!(scan::run(level, Entered(text)), expected, "{level:?}, {len} bytes");
        }
        for at in (0..=len + 1).chain([usize::MAX - 1, usize::MAX]) {
            let expected = at.checked_add(129).and_then(|end| text.get(at..end));
            assert_eq!(Windows::<129>::of(text).at(at).map(|window| &window[..]), expected);
        }
    }
}

/// Every length of input, each in an allocation of its own that ends where the input ends: what reads
/// beyond it is found by tests/sanitizers.sh.
#[test]
fn inputs_that_end_with_their_allocation_are_read_like_any_other() {
    for len in 0..=200 {
        let text: Vec<u8> = (0..len).map(|at| if at % 61 == 60 { b'"' } else { b'x' }).collect();
        let exact = text.into_boxed_slice();
        for level in Level::ALL {
            let expected = by_hand(&exact, scan::run(level, Step));
            assert_eq!(scan::run(level, Entered(&exact)), expected, "{level:?}, {len} bytes");
        }
    }
}

#[test]
fn the_best_level_is_available_and_the_portable_one_always_is() {
    assert!(Level::best().is_available());
    assert!(Level::Portable.is_available());
    println!("best level here: {:?}", Level::best());
}
