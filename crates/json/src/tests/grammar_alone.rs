//! The grammar alone, held against the reader and against an independent one, at every level and
//! however the text is cut.

use super::super::reader::{Container, Scalar};
use super::super::scan::{self, Level, Scan, Task};
use super::super::{ErrorKind, Grammar, Limits, Reader, Sink};
use super::laws::{near_json, value};
use proptest::prelude::*;

/// Takes everything that it is told.
struct Nothing;

impl Sink for Nothing {
    fn open(&mut self, _: Container) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn key(&mut self, _: &str) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn scalar(&mut self, _: Scalar<'_>) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn close(&mut self, _: Container) -> Result<(), ErrorKind> {
        Ok(())
    }
}

fn checked(text: &[u8], size: usize, level: Level, depth: usize) -> Result<(), ErrorKind> {
    let mut grammar = Grammar::new(depth).at_level(level);
    text.chunks(size)
        .try_for_each(|chunk| grammar.feed(chunk))
        .and_then(|()| grammar.finish())
        .map_err(|error| error.kind)
}

/// The one verdict of all levels and cuts. What is wrong is the same, too, but for bare scalars: a
/// block sees them whole.
pub(super) fn accepts(text: &[u8], depth: usize) -> bool {
    let by_byte = checked(text, 1, Level::Portable, depth).is_ok();
    for level in Level::ALL {
        for size in [1, 7, 64, 65, 100, 4096] {
            let found = checked(text, size, level, depth);
            assert_eq!(
                found.is_ok(),
                by_byte,
                "{level:?} by {size}: {found:?} of {}",
                String::from_utf8_lossy(text)
            );
        }
    }
    by_byte
}

fn by_reader(text: &[u8], depth: usize) -> Result<(), ErrorKind> {
    let mut reader = Reader::new(Nothing, Limits { depth, ..Limits::UNLIMITED });
    reader.feed(text).and_then(|()| reader.finish().map(drop)).map_err(|error| error.kind)
}

/// Texts of several blocks, most of them nearly JSON.
fn long() -> impl Strategy<Value = Vec<u8>> {
    let padding = || prop::sample::select(vec![0usize, 1, 5, 30, 57, 58, 62, 63, 64, 65, 120]);
    let blank = prop::sample::select(vec![" ", "\n", "\t", "\r", "\u{b}"]);
    prop_oneof![
        near_json(),
        (prop::collection::vec(value(), 1..6), padding(), blank).prop_map(|(values, padding, blank)| {
            let between = format!(",{}", blank.repeat(padding));
            let texts: Vec<String> = values
                .iter()
                .map(|value| String::from_utf8(value.to_vec()).expect("JSON is UTF-8"))
                .collect();
            format!("[{}]", texts.join(&between)).into_bytes()
        }),
        (padding(), near_json(), padding()).prop_map(|(before, text, after)| {
            let (before, after) = (vec![b'x'; before], vec![b'7'; after]);
            [b"[\"", &before[..], b"\",", &text, b",", &after, b"1]"].concat()
        }),
    ]
}

/// The tokens of a text that is JSON.
fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => {
                let ends = |(at, _): &(usize, char)| {
                    let before = &rest[1..*at];
                    *at > 0 && (before.len() - before.trim_end_matches('\\').len()) % 2 == 0
                };
                rest.char_indices().skip(1).filter(|(_, c)| *c == '"').find(ends).expect("it ends").0 + 1
            }
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find(['{', '}', '[', ']', ',', ':']).unwrap_or(rest.len()),
        };
        tokens.push(rest[..len].to_owned());
        rest = &rest[len..];
    }
    tokens
}

/// What is done to one token.
#[derive(Debug, Clone)]
enum Slip {
    Nothing,
    Leave,
    Twice,
    Swap,
    Other(&'static str),
    Insert(&'static str),
}

impl Slip {
    fn make(&self, tokens: &mut Vec<String>, at: usize) {
        match *self {
            Slip::Nothing => {}
            Slip::Leave => drop(tokens.remove(at)),
            Slip::Twice => tokens.insert(at, tokens[at].clone()),
            Slip::Swap => {
                let next = (at + 1) % tokens.len();
                tokens.swap(at, next);
            }
            Slip::Other(text) => tokens[at] = text.to_owned(),
            Slip::Insert(text) => tokens.insert(at, text.to_owned()),
        }
    }
}

fn slip() -> impl Strategy<Value = Slip> {
    let texts = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"k\"",
        "\"k\":",
        "0",
        "01",
        "00",
        "-",
        "-0",
        "-01",
        "1.5",
        "1.",
        "1.5e",
        "1e+9",
        "12.",
        ".5",
        "nul",
        "nulll",
        "true",
        "truefalse",
        "\"a\\qb\"",
        "\"\\u12g4\"",
        "\"\\u00e9\\\\\"",
        "\"\\\"",
        "\"\x01\"",
        "\x01",
        "\\",
        "[]",
        "0,",
        ",0",
        ",[]",
        "\"k\",",
        "{}",
        "1 2",
        "\"a\" \"b\"",
        "123456789012345678901234567890123456789012345678901234567890123456789012",
        "1234567890123456789012345678901234567890123456789012345678901234567890x",
    ];
    let text = || prop::sample::select(texts.to_vec());
    prop_oneof![
        2 => Just(Slip::Nothing),
        2 => Just(Slip::Leave),
        2 => Just(Slip::Twice),
        2 => Just(Slip::Swap),
        6 => text().prop_map(Slip::Other),
        6 => text().prop_map(Slip::Insert),
    ]
}

/// Feeds pieces up to the end of the text. Returns the position of the end in all of them.
struct ToEnd<'t>(std::slice::Chunks<'t, u8>);

impl Task for ToEnd<'_> {
    type Output = Option<usize>;

    fn run<S: Scan>(self, scan: S) -> Option<usize> {
        let (mut grammar, mut before) = (Grammar::new(8), 0);
        for piece in self.0 {
            if let Some(end) = grammar.feed_to_end(scan, piece).expect("the text is valid") {
                return Some(before + end);
            }
            before += piece.len();
        }
        None
    }
}

#[test]
fn the_end_of_a_text_is_after_its_last_byte_however_it_is_cut() {
    for (text, end) in [
        ("12,", Some(2)),
        ("-1.5e3}", Some(6)),
        ("null]", Some(4)),
        (r#""a\"[",1"#, Some(6)),
        (r#"[1,"]"]]"#, Some(7)),
        ("{} ", Some(2)),
        ("12", None),
        (r#""a"#, None),
        ("[1", None),
    ] {
        for level in Level::ALL {
            for size in 1..=text.len() {
                let found = scan::run(level, ToEnd(text.as_bytes().chunks(size)));
                assert_eq!(found, end, "{text} at {level:?} by {size}");
            }
        }
    }
}

/// [`Grammar::feed_to_end`] with so many open at most.
struct Length<'b>(&'b [u8], usize);

impl Task for Length<'_> {
    type Output = Option<usize>;

    fn run<S: Scan>(self, scan: S) -> Option<usize> {
        Grammar::new(self.1).feed_to_end(scan, self.0).unwrap_or(None)
    }
}

/// What all levels say.
fn length(text: &[u8], depth: usize) -> Option<usize> {
    let found = Level::ALL.map(|level| scan::run(level, Length(text, depth)));
    assert!(found.iter().all(|length| *length == found[0]), "{found:?} of {}", String::from_utf8_lossy(text));
    found[0]
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// Arrays and objects of one or two blocks and more.
fn flat() -> impl Strategy<Value = String> {
    let scalars = || {
        prop::sample::select(vec![
            "1",
            "0",
            "120",
            "-1.5e3",
            "null",
            "true",
            "false",
            "\"\"",
            "\"a:,]}\"",
            "\"é\"",
        ])
    };
    let members = prop::collection::vec(scalars().prop_map(|value| format!("\"k\":{value}")), 0..16);
    prop_oneof![
        prop::collection::vec(scalars(), 0..20).prop_map(|values| format!("[{}]", values.join(","))),
        members.prop_map(|members| format!("{{{}}}", members.join(","))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn short_flat_values_are_taken_where_they_are_in_order(text in flat(), slip in slip(), at in any::<prop::sample::Index>(), behind in prop::sample::select(vec![",", "}", "]", "\"", "x", "{", "\\"])) {
        let mut tokens = tokens(&text);
        let at = at.index(tokens.len());
        let is_right = matches!(slip, Slip::Nothing);
        slip.make(&mut tokens, at);
        let text = tokens.concat();
        prop_assume!(text.starts_with(['{', '[']));
        let blocks: Vec<u8> = text.bytes().chain(behind.bytes().cycle().take(64)).collect();
        let found = length(&blocks, 100);
        if let Some(len) = found {
            prop_assert!(is_json(&blocks[..len]), "{}", String::from_utf8_lossy(&blocks[..len]));
        }
        if is_right && [",", "}", "]"].contains(&behind) {
            prop_assert_eq!(found, Some(text.len()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn one_token_that_is_wrong_among_whole_blocks_is_found(
        values in prop::collection::vec(value(), 3..8),
        slip in slip(),
        at in any::<prop::sample::Index>(),
        blank in prop::sample::select(vec!["", "", " ", "\n    "]),
        padding in 0usize..64,
    ) {
        let texts: Vec<String> = values.iter().map(|value| String::from_utf8(value.to_vec()).expect("JSON is UTF-8")).collect();
        let mut tokens = tokens(&format!("{{\"k\":[{}]}}", texts.join(",")));
        let at = at.index(tokens.len());
        slip.make(&mut tokens, at);
        // There is a whole block before and after whatever is wrong.
        let (before, after) = ("7".repeat(padding + 1), "[1,{\"a\":\"b\"}],".repeat(8));
        let text = format!("[{before},\"{}\",{},{after}null]", "x".repeat(64), tokens.join(blank));
        prop_assert_eq!(accepts(text.as_bytes(), 100), is_json(text.as_bytes()), "{}", text);
    }

    #[test]
    fn an_array_or_object_ends_where_it_does_if_it_is_in_order(
        values in prop::collection::vec(value(), 1..6),
        slip in slip(),
        at in any::<prop::sample::Index>(),
        blank in prop::sample::select(vec!["", "", " ", "\n    "]),
        escapes in prop::sample::select(vec!["", "\\\\", "\\\"", "\\u00e9", "\\u00g9", "\\x"]),
        padding in 0usize..64,
        depth in prop::sample::select(vec![3usize, 100]),
    ) {
        let texts: Vec<String> = values.iter().map(|value| String::from_utf8(value.to_vec()).expect("JSON is UTF-8")).collect();
        let mut tokens = tokens(&format!("{{\"k\":[{}]}}", texts.join(",")));
        let at = at.index(tokens.len());
        let is_right = matches!(slip, Slip::Nothing) && !["\\u00g9", "\\x"].contains(&escapes);
        slip.make(&mut tokens, at);
        let text = format!("[\"{}{escapes}\",{}]", "7".repeat(padding), tokens.join(blank));
        // Where it is cut, nothing is said; what follows in a body is a comma or an end.
        let whole = format!("{text},\"next\":[1,{{\"a\":null}}],\"last\":\"{}\"}}", "x".repeat(64));
        let found = length(whole.as_bytes(), depth);
        if let Some(len) = found {
            prop_assert!(is_json(&whole.as_bytes()[..len]), "{}", &whole[..len]);
            prop_assert!(checked(&whole.as_bytes()[..len], 1, Level::Portable, depth).is_ok());
        }
        if is_right && checked(text.as_bytes(), 1, Level::Portable, depth).is_ok() {
            prop_assert_eq!(found, Some(text.len()), "{}", text);
            // At the end of a chunk, a number that goes on from one block to the next is left to others.
            let last = length(text.as_bytes(), depth);
            prop_assert!(last.is_none_or(|len| len == text.len()), "{last:?} of {text}");
            for cut in [text.len() - 1, text.len() / 2] {
                prop_assert_eq!(length(&text.as_bytes()[..cut], depth), None);
            }
        }
    }

    #[test]
    fn the_grammar_alone_is_what_the_reader_and_another_one_say(
        text in long(),
        at in any::<prop::sample::Index>(),
        byte in prop::option::of(prop::sample::select(b"\"\\{}[],: \n\x01\x0b\x0c\x1a0-1.eEtfnux\x7f".to_vec())),
        depth in prop::sample::select(vec![2usize, 5, 100]),
    ) {
        let mut text = text;
        if let (Some(byte), false) = (byte, text.is_empty()) {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let found = accepts(&text, depth);
        match by_reader(&text, depth) {
            Err(ErrorKind::InvalidUtf8 | ErrorKind::LoneSurrogate) => {}
            reader => prop_assert_eq!(found, reader.is_ok(), "{:?}", reader),
        }
        if depth == 100 && std::str::from_utf8(&text).is_ok() {
            prop_assert_eq!(found, is_json(&text));
        }
    }
}

#[test]
fn an_array_ends_with_the_chunk_that_it_fills() {
    for padding in 0..200 {
        let text = format!("[{{\"a\":\"{}\"}},[]]", "x".repeat(padding));
        assert_eq!(length(text.as_bytes(), 2), Some(text.len()), "{text}");
        assert_eq!(length(text.as_bytes(), 1), None, "{text}");
    }
}

#[test]
fn nothing_but_white_space_stands_behind_the_outermost_bracket() {
    for padding in 50..130 {
        for behind in ["", " ", ",1", "1", " 1", "[]", "\"x\"", ":", "]", ",", " \n"] {
            let text = format!("[\"{}\"]{behind}", "x".repeat(padding));
            assert_eq!(accepts(text.as_bytes(), 9), behind.trim().is_empty(), "{text}");
        }
    }
}

#[test]
fn faults_are_told_where_they_are() {
    let place = |text: &[u8], size: usize| {
        let mut grammar = Grammar::new(64);
        let fed = text.chunks(size).try_for_each(|chunk| grammar.feed(chunk));
        fed.and_then(|()| grammar.finish()).map_err(|error| (error.offset, error.kind)).err()
    };
    let padded = |text: &str| [&[b' '; 70], text.as_bytes(), &[b' '; 70]].concat();
    for (text, at, kind) in [
        ("[1,,2]", 3, ErrorKind::Unexpected { expected: super::super::Expected::Value }),
        ("{\"a\" 1}", 5, ErrorKind::Unexpected { expected: super::super::Expected::Colon }),
        ("[\"\x01\"]", 2, ErrorKind::ControlInString),
        ("[\"\\x\"]", 3, ErrorKind::InvalidEscape),
        ("1 2", 2, ErrorKind::TrailingBytes),
        ("{\"a\":1]", 6, ErrorKind::Unexpected { expected: super::super::Expected::CommaOrObjectEnd }),
    ] {
        assert_eq!(place(text.as_bytes(), 1), Some((at, kind)), "{text}");
        for size in [1, 64, 1000] {
            assert_eq!(place(&padded(text), size), Some((at + 70, kind)), "{text} by {size}");
        }
    }
    assert_eq!(place(b"[1", 10), Some((2, ErrorKind::UnexpectedEnd)));
    assert_eq!(place(b"", 10), Some((0, ErrorKind::UnexpectedEnd)));
}
