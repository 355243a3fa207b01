//! Every rule of RFC 8259 with what it allows and what it forbids, and where the fault is reported.

use super::super::error::{ErrorKind, Expected, Limit};
use super::super::{Error, Limits};
use super::verdict;

fn accepts(texts: &[&str]) {
    for text in texts {
        assert_eq!(verdict(text.as_bytes(), Limits::DOCUMENT), Ok(()), "{text}");
    }
}

fn refuses(kind: ErrorKind, cases: &[(&[u8], u64)]) {
    for (text, offset) in cases {
        let found = verdict(text, Limits::DOCUMENT);
        assert_eq!(found, Err(Error::new(*offset, kind)), "{}", String::from_utf8_lossy(text));
    }
}

fn expected(expected: Expected) -> ErrorKind {
    ErrorKind::Unexpected { expected }
}

#[test]
fn section_2_white_space_is_four_characters() {
    accepts(&[" \t\r\n1 \t\r\n", "[ ]", "{ }", "[\n1\t,\r2 ]", "{ \"a\" : 1 , \"b\" : 2 }"]);
    refuses(expected(Expected::Value), &[(b"\x0c1", 0), (b"\x0b1", 0), (b"\xc2\xa01", 0)]);
    refuses(expected(Expected::CommaOrArrayEnd), &[(b"[1\x0c]", 2), ("[1\u{a0}]".as_bytes(), 2)]);
}

#[test]
fn section_2_one_value_and_nothing_after_it() {
    accepts(&["null", "1", "\"\"", "[]", "{}"]);
    refuses(
        ErrorKind::TrailingBytes,
        &[(b"1 2", 2), (b"{}{}", 2), (b"[]]", 2), (b"null,", 4), (b"\"\"x", 2), (b"{}#c", 2), (b"1\0", 1)],
    );
    refuses(ErrorKind::UnexpectedEnd, &[(b"", 0), (b"  ", 2)]);
}

#[test]
fn section_3_literals_are_lower_case_and_whole() {
    accepts(&["true", "false", "null", "[true,false,null]"]);
    let words: [(&[u8], u64); 8] = [
        (b"True", 0),
        (b"NULL", 0),
        (b"nul", 0),
        (b"truex", 0),
        (b"[nulla]", 1),
        (b"NaN", 0),
        (b"[Infinity]", 1),
        (b"undefined", 0),
    ];
    refuses(ErrorKind::InvalidLiteral, &words);
}

#[test]
fn section_4_objects() {
    accepts(&["{}", r#"{"a":1}"#, r#"{"":0}"#, r#"{"a":{"a":{"a":[]}}}"#, r#"[{"a":1},{"a":2}]"#]);
    refuses(expected(Expected::KeyOrObjectEnd), &[(b"{,}", 1), (b"{1:2}", 1), (b"{a:1}", 1), (b"{]", 1)]);
    refuses(expected(Expected::Key), &[(br#"{"a":1,}"#, 7), (br#"{"a":1,,}"#, 7), (br#"{"a":1,b:2}"#, 7)]);
    refuses(expected(Expected::Colon), &[(br#"{"a"}"#, 4), (br#"{"a",1}"#, 4), (br#"{"a" 1}"#, 5)]);
    refuses(expected(Expected::Value), &[(br#"{"a":}"#, 5), (br#"{"a"::1}"#, 5), (br#"{"a":,"b":1}"#, 5)]);
    refuses(expected(Expected::CommaOrObjectEnd), &[(br#"{"a":1]"#, 6), (br#"{"a":1 "b":2}"#, 7)]);
    refuses(ErrorKind::UnexpectedEnd, &[(b"{", 1), (br#"{"a"#, 3), (br#"{"a":"#, 5), (br#"{"a":1,"#, 7)]);
}

#[test]
fn section_4_names_are_unique_after_decoding() {
    let cases: [(&[u8], u64); 4] = [
        (br#"{"a":1,"a":1}"#, 8),
        (br#"{"text":1,"t\u0065xt":2}"#, 11),
        (br#"[{"x":{"\n":0,"\u000a":0}}]"#, 15),
        (br#"{"a":{"b":1},"b":2,"a":3}"#, 20),
    ];
    refuses(ErrorKind::DuplicateMember, &cases);
    accepts(&[r#"{"a":1,"A":2}"#, r#"{"a\n":1,"a\\n":2}"#, r#"{"a":{"a":1},"b":{"a":1}}"#]);
}

#[test]
fn section_4_a_repeated_name_is_found_among_many() {
    let names = |count: usize| (0..count).map(|at| format!("\"n{at}\":0")).collect::<Vec<_>>().join(",");
    for count in [15, 16, 17, 18, 31, 32, 33, 34, 500] {
        let distinct = format!("{{{}}}", names(count));
        assert_eq!(verdict(distinct.as_bytes(), Limits::DOCUMENT), Ok(()), "{count}");
        for repeated in [0, count / 2, count - 1] {
            let text = format!("{{{},\"n{repeated}\":0}}", names(count));
            let found = verdict(text.as_bytes(), Limits::DOCUMENT).map_err(|error| error.kind);
            assert_eq!(found, Err(ErrorKind::DuplicateMember), "{count} {repeated}");
        }
    }
}

#[test]
fn section_5_arrays() {
    accepts(&["[]", "[1]", "[[],[[]]]", r#"[null,1,"1",{}]"#]);
    refuses(expected(Expected::ValueOrArrayEnd), &[(b"[,1]", 1), (b"[}", 1), (b"[:]", 1)]);
    refuses(expected(Expected::Value), &[(b"[1,]", 3), (b"[1,,2]", 3), (b"]", 0), (b"[1,:]", 3)]);
    refuses(expected(Expected::CommaOrArrayEnd), &[(b"[1:2]", 2), (b"[1}", 2), (b"[\"a\"\"b\"]", 4)]);
    refuses(ErrorKind::UnexpectedEnd, &[(b"[", 1), (b"[1", 2), (b"[1,", 3), (b"[[]", 3)]);
}

#[test]
fn section_6_numbers() {
    accepts(&["0", "-0", "1", "10", "1.10", "0.0", "1e5", "1E+5", "1e-05", "-1.5e400", "0e0", "[-0.0]"]);
    accepts(&["100000000000000000000", "9007199254740993", "1e99999"]);
    let cases: [(&[u8], u64); 14] = [
        (b"-", 1),
        (b"01", 1),
        (b"-01", 2),
        (b"1.", 2),
        (b"1.e5", 2),
        (b"[1e]", 3),
        (b"[1e+]", 4),
        (b"1e5.5", 3),
        (b"1-1", 1),
        (b"1.2.3", 3),
        (b"--1", 1),
        (b"-e1", 1),
        (b"1e5e5", 3),
        (b"0E++", 3),
    ];
    refuses(ErrorKind::InvalidNumber, &cases);
    refuses(expected(Expected::Value), &[(b"+1", 0), (b".5", 0), ("\u{ff11}".as_bytes(), 0)]);
    refuses(ErrorKind::TrailingBytes, &[(b"0x10", 1), (b"1_0", 1), (b"1a", 1)]);
    refuses(ErrorKind::InvalidNumber, &[(b"-Infinity", 1)]);
}

#[test]
fn section_7_strings() {
    accepts(&[
        r#""""#,
        r#""abc""#,
        r#""\"\\\/\b\f\n\r\t""#,
        r#""\u0041\u00e9\uD83D\uDE00""#,
        "\"\u{7f}\u{2028}\"",
    ]);
    accepts(&["\"h\u{e9}\u{4e16}\u{1f600}\"", r#""\u0000""#, "\"'\"", r#""\\\"""#]);
    refuses(
        ErrorKind::ControlInString,
        &[(b"\"\n\"", 1), (b"\"a\0b\"", 2), (b"\"1234567\x1f\"", 8), (b"\"\t\"", 1)],
    );
    let escapes: [(&[u8], u64); 8] = [
        (br#""\x41""#, 1),
        (br#""\'""#, 1),
        (br#""a\u12""#, 2),
        (br#""\u12G4""#, 1),
        (br#""\U0041""#, 1),
        (b"\"\\\n\"", 1),
        (br#""\uD83D\uDE""#, 1),
        (br#""\u+041""#, 1),
    ];
    refuses(ErrorKind::InvalidEscape, &escapes);
    let halves: [(&[u8], u64); 5] = [
        (br#""\uD800""#, 1),
        (br#""\uDC00""#, 1),
        (br#""\uD83D\u0041""#, 1),
        (br#""\uD83D\n""#, 1),
        (br#""x\uD83D\uD83D\uDE00""#, 2),
    ];
    refuses(ErrorKind::LoneSurrogate, &halves);
    refuses(ErrorKind::UnexpectedEnd, &[(b"\"", 1), (b"\"abc", 4), (b"\"abc\\", 5), (b"\"\\\"", 3)]);
    refuses(expected(Expected::Value), &[(b"'a'", 0), (b"\\u0022", 0)]);
}

#[test]
fn section_8_only_utf_8_without_a_byte_order_mark() {
    let cases: [(&[u8], u64); 6] = [
        (b"\"\xff\"", 1),
        (b"\"a\xc3\"", 2),
        (b"\"\xc0\x80\"", 1),
        (b"\"\xed\xa0\x80\"", 1),
        (b"\"\xf4\x90\x80\x80\"", 1),
        (b"{\"\x80\":1}", 2),
    ];
    refuses(ErrorKind::InvalidUtf8, &cases);
    refuses(expected(Expected::Value), &[(b"\xef\xbb\xbf{}", 0), (b"\xff\xfe[\0]\0", 0), (b"\0[\0]", 0)]);
}

#[test]
fn section_9_each_bound_is_reached_exactly() {
    let bounds = Limits { depth: 2, key_bytes: 3, scalar_bytes: 4, members: 3, nodes: 5, total_bytes: 30 };
    let check = |text: &str, limit: Option<(Limit, u64)>| {
        let expected = match limit {
            None => Ok(()),
            Some((limit, offset)) => Err(Error::new(offset, ErrorKind::Limit(limit))),
        };
        assert_eq!(verdict(text.as_bytes(), bounds), expected, "{text}");
    };
    check("[[1]]", None);
    check("[[[]]]", Some((Limit::Depth, 2)));
    check("[{\"a\":{}}]", Some((Limit::Depth, 6)));
    check("{\"abc\":1}", None);
    check("{\"abcd\":1}", Some((Limit::KeyBytes, 2)));
    check("[\"abcd\"]", None);
    check("[\"abcde\"]", Some((Limit::ScalarBytes, 2)));
    check("[\"ab\\n\"]", None);
    check("[\"\\u0041\"]", Some((Limit::ScalarBytes, 2)));
    check("1234", None);
    check("12345", Some((Limit::ScalarBytes, 0)));
    check(r#"{"a":1,"b":2,"c":3}"#, None);
    check(r#"{"a":1,"b":2,"c":3,"d":4}"#, Some((Limit::Members, 19)));
    check(r#"[{"a":1,"b":2},{"a":1}]"#, Some((Limit::Nodes, 20)));
    check("[1,2,3,4]", None);
    check("[1,2,3,4,5]", Some((Limit::Nodes, 9)));
    check("                             1", None);
    check("                              1", Some((Limit::TotalBytes, 30)));
}

#[test]
fn deep_nesting_is_refused_or_held_without_recursion() {
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let refused = verdict(&deep, Limits::DOCUMENT);
    assert_eq!(refused, Err(Error::new(64, ErrorKind::Limit(Limit::Depth))));
    assert_eq!(verdict(&deep, Limits::UNLIMITED), Ok(()));
    let objects = [b"{\"a\":".repeat(100_000), b"1".to_vec(), vec![b'}'; 100_000]].concat();
    assert_eq!(verdict(&objects, Limits::UNLIMITED), Ok(()));
    let document = super::Value::parse(&objects, &Limits::UNLIMITED).expect("accepted above");
    let copy = document.clone();
    assert!(copy == document && copy.same_text(&document));
    assert_eq!(copy.to_vec(), objects);
}

#[test]
fn faults_are_told_calmly_and_with_their_place() {
    let told = |text: &[u8]| verdict(text, Limits::DOCUMENT).unwrap_err().to_string();
    assert_eq!(told(br#"{"secret": "abc"#), "unexpected end at byte 15");
    assert_eq!(told(br#"{"secret" "abc"}"#), "expected `:` at byte 10");
    assert_eq!(told(br#"{"a":1,"a":2}"#), "member named twice in one object at byte 8");
}

#[test]
fn a_failed_reader_stays_failed() {
    let mut reader = super::Reader::new(super::Validator::default(), Limits::DOCUMENT);
    let fault = reader.feed(b"[}").unwrap_err();
    assert_eq!(reader.feed(b"[]"), Err(fault));
    assert_eq!(reader.finish().map(drop), Err(fault));
}
