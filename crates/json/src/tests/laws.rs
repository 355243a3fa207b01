//! Laws over generated input: chunks do not matter, writing gives back what was read, and an
//! independent reader accepts the same texts.

use super::super::{Limits, Number, Object, Reader, Str, Validator, Value};
use super::push;
use proptest::prelude::*;

/// Values with odd names, odd numbers and odd strings.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Number::from_i64),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,8})?([eE][+-]?[0-9]{1,3})?"
            .prop_map(|text| Number::from_text(&text).expect("the pattern is the grammar")),
    ];
    let text = prop_oneof![
        "\\PC{0,12}".prop_map(|text| Str::new(&text)),
        any::<String>().prop_map(|text| Str::new(&text)),
        "([a-z\\[\\]{},: ]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-9a-fA-F]{2}|\\\\ud83d\\\\ude0[0-9a-f]){0,12}"
            .prop_map(|raw| Str::from_raw(&raw).expect("the pattern is the grammar")),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        text.clone().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..8)
                .prop_map(|members| Value::from(members.into_iter().collect::<Object>())),
        ]
    })
}

/// Bytes that are often nearly JSON.
pub(super) fn near_json() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "\\", "\\u00e9", "\\ud83d", "\\n", "1", "-",
        "0", ".5", "e1", "true", "null", "fals", " ", "\n", "é", "😀", "\"b\":{", "[[", "{}", "[]",
        "12345678",
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes()),
        (value(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(value, at, byte)| {
            let mut text = value.to_vec();
            let at = at.index(text.len());
            text[at] = byte;
            text
        }),
        (value(), any::<prop::sample::Index>()).prop_map(|(value, at)| {
            let mut text = value.to_vec();
            text.truncate(at.index(text.len() + 1));
            text
        }),
        prop::collection::vec(any::<u8>(), 0..32),
    ]
}

fn small_limits() -> impl Strategy<Value = Limits> {
    prop_oneof![
        Just(Limits::UNLIMITED),
        Just(Limits::DOCUMENT),
        (0usize..4, 0usize..6, 0usize..6, 0usize..8, 0u64..40).prop_map(
            |(depth, key_bytes, scalar_bytes, nodes, total_bytes)| {
                Limits { depth, key_bytes, scalar_bytes, members: 3, nodes, total_bytes }
            }
        ),
    ]
}

proptest! {
    #[test]
    fn chunks_do_not_change_verdict_or_place(text in near_json(), limits in small_limits(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let whole = Value::parse(&text, &limits).map(drop);
        for size in [1, 2, 3, 5] {
            prop_assert_eq!(push(&text, size, limits), whole);
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([0, text.len()]).collect();
        cuts.sort_unstable();
        let mut reader = Reader::new(Validator::default(), limits);
        let fed = cuts.windows(2).try_for_each(|cut| reader.feed(&text[cut[0]..cut[1]]));
        prop_assert_eq!(fed.and_then(|()| reader.finish().map(drop)), whole);
    }

    #[test]
    fn what_is_written_reads_back_the_same(value in value()) {
        let text = value.to_vec();
        let again = Value::parse(&text, &Limits::UNLIMITED).expect("we wrote it");
        prop_assert!(again == value && again.same_text(&value));
        prop_assert_eq!(again.clone().to_vec(), text);
    }

    #[test]
    fn an_independent_reader_agrees(text in near_json()) {
        // serde_json takes members named twice, refuses numbers outside f64 and knows its own depth.
        let ours = Value::parse(&text, &Limits { depth: 127, ..Limits::UNLIMITED });
        let theirs: Result<serde_json::Value, _> = serde_json::from_slice(&text);
        let pardoned = match (&ours, &theirs) {
            (Err(error), Ok(_)) => error.kind == super::super::ErrorKind::DuplicateMember,
            (Ok(_), Err(error)) => error.to_string().contains("number out of range"),
            _ => true,
        };
        prop_assert!(pardoned, "{ours:?} {theirs:?}");
    }

    #[test]
    fn decoded_text_is_what_an_independent_reader_decodes(value in value()) {
        if let Value::String(text) = &value {
            let theirs: String = serde_json::from_slice(&value.to_vec()).expect("we wrote it");
            prop_assert_eq!(text.decode(), theirs.as_str());
            prop_assert!(text.is(&theirs));
        }
    }
}
