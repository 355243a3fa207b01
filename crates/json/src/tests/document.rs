//! What a document keeps, how it compares and how it is changed; raw values; the bridge to reports.

use super::super::raw::{self, Kind};
use super::super::{Array, Limits, Number, Object, Str, Value};

fn parse(text: &str) -> Value {
    Value::parse(text.as_bytes(), &Limits::DOCUMENT).expect("the case is JSON")
}

#[test]
fn what_is_read_is_written_back_byte_for_byte() {
    for text in [
        r#"{"z":1.10,"a":100000000000000000000,"m":-0,"e":1E+05,"big":1e400}"#,
        r#"{"t\u0065xt":"\u00e9\/é","n":null,"l":[],"o":{}}"#,
        r#"{"$serde_json::private::Number":"1"}"#,
        r#"["",[[]],"\ud83d\ude00","😀",9007199254740993]"#,
        "null",
        "\"\"",
    ] {
        assert_eq!(parse(text).to_string(), text);
        assert_eq!(parse(text).clone().to_string(), text);
    }
    assert_eq!(parse(" { \"a\" : [ 1 , 2 ] } ").to_string(), r#"{"a":[1,2]}"#);
}

#[test]
fn members_are_found_by_decoded_name() {
    let value = parse(r#"{"t\u0065xt":"a\nb","null":null,"deep":{"id":12345678901234567890}}"#);
    assert_eq!(value.get("text").and_then(Value::as_str).as_deref(), Some("a\nb"));
    assert!(value.get("null").is_some_and(Value::is_null));
    assert!(value.get("absent").is_none());
    let id = value.get("deep").and_then(|deep| deep.get("id")).expect("is there");
    assert_eq!((id.as_i64(), id.as_number().map(Number::text)), (None, Some("12345678901234567890")));
    assert_eq!(parse("[1]").get("0"), None);
}

#[test]
fn equality_is_of_values_and_same_text_of_bytes() {
    let same = |a, b| parse(a) == parse(b);
    assert!(same(r#"{"a":1,"b":[2]}"#, r#"{"b":[2],"a":1}"#));
    assert!(same(r#"{"\u0061":"\u0062"}"#, r#"{"a":"b"}"#));
    assert!(!parse(r#"{"a":1,"b":2}"#).same_text(&parse(r#"{"b":2,"a":1}"#)));
    for (a, b) in [
        ("1", "1.0"),
        ("1", "\"1\""),
        ("[]", "{}"),
        ("null", "false"),
        ("[1,2]", "[2,1]"),
        ("[1]", "[1,1]"),
        (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
        (r#"{"a":1,"b":1}"#, r#"{"a":1,"c":1}"#),
    ] {
        assert!(!same(a, b) && !same(b, a), "{a} {b}");
    }
}

#[test]
fn objects_keep_order_and_names_stay_unique_through_changes() {
    for count in [3, 32, 33, 100] {
        let mut object: Object = (0..count)
            .map(|at| (format!("n{at}").as_str().into(), Value::from(at)))
            .collect::<Vec<(Str, Value)>>()
            .into_iter()
            .collect();
        assert_eq!(object.insert("n1", 7), Some(Value::from(1)));
        assert_eq!(object.len() as i64, count);
        assert!(object.insert_new(Str::from_raw("n\\u0031").expect("an escape"), Value::Null).is_err());
        assert_eq!(object.remove("n0"), Some(Value::from(0)));
        assert_eq!(object.remove("n0"), None);
        assert_eq!(object.get("n2"), Some(&Value::from(2)));
        object.insert("n0", true);
        let names: Vec<_> = object.keys().map(|key| key.decode().into_owned()).collect();
        let expected: Vec<_> = (1..count).map(|at| format!("n{at}")).chain(["n0".into()]).collect();
        assert_eq!(names, expected);
        object.retain(|key, _| key.is("n2"));
        assert_eq!(Value::from(object).to_string(), r#"{"n2":2}"#);
    }
}

#[test]
fn content_is_escaped_only_where_json_demands_it() {
    let value = Value::string("a\"b\\c\n\r\t\u{8}\u{c}\u{0}\u{1f}/é\u{7f}");
    assert_eq!(value.to_string(), "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0000\\u001f/é\u{7f}\"");
    assert_eq!(Str::from_raw("\"").map(drop), None);
    assert_eq!(Number::from_text("1.").map(drop), None);
    assert_eq!(Value::from(i64::MIN).to_string(), "-9223372036854775808");
}

#[test]
fn arrays_are_vectors_that_drop_flat() {
    let mut nested = Value::Null;
    for _ in 0..200_000 {
        nested = Value::Array(Array::from(vec![nested]));
    }
    let mut mixed = Object::new();
    mixed.insert("nested", nested);
    drop(mixed);
    let array: Array = [1, 2].map(Value::from).into_iter().collect();
    assert_eq!(array.into_iter().map(|value| value.as_i64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[test]
fn raw_values_tell_their_kind_and_end() {
    for (text, kind, len) in [
        ("null,", Some(Kind::Null), 4),
        ("true]", Some(Kind::Bool), 4),
        ("-1.5e3 ", Some(Kind::Number), 6),
        (r#""a\"]",1"#, Some(Kind::String), 6),
        (r#"[1,{"]":"["}] ,"#, Some(Kind::Array), 13),
        (r#" {"a":[[]]}}"#, Some(Kind::Object), 11),
    ] {
        assert_eq!(raw::kind(text.as_bytes()), kind, "{text}");
        assert_eq!(raw::skip_value(text.as_bytes(), 0), Ok(len), "{text}");
    }
    for broken in ["", "[", "[1,{}", "\"abc", "\"abc\\", "]", ",", "x"] {
        assert!(raw::skip_value(broken.as_bytes(), 0).is_err(), "{broken}");
    }
}

#[test]
fn raw_members_are_found_by_path() {
    let text = br#" {"a": {"b\u0063": [1, 2]}, "a2": 3} "#;
    let at = |path: &[&str]| {
        let range = raw::lookup(text, path.iter().copied()).expect("the case is JSON")?;
        Some(std::str::from_utf8(&text[range]).expect("the case is ASCII"))
    };
    assert_eq!(at(&["a", "bc"]), Some("[1, 2]"));
    assert_eq!(at(&["a2"]), Some("3"));
    assert_eq!(at(&["a", "x"]), None);
    assert_eq!(at(&["a2", "x"]), None);
    assert_eq!(at(&[]), Some(r#"{"a": {"b\u0063": [1, 2]}, "a2": 3}"#));
    for broken in [&br#"{"a" 1}"#[..], br#"{"a":1 "b":2}"#, br#"{"a":1,"#, b"{1}", b"{"] {
        assert!(raw::member(broken, "b").is_err());
    }
}

#[test]
fn reports_get_numbers_as_exactly_as_they_can_hold_them() {
    let value = parse(r#"{"i":-5,"u":18446744073709551615,"f":1.10,"huge":1e400,"s":"\u00e9"}"#);
    let expected = serde_json::json!({"i": -5, "u": u64::MAX, "f": 1.1, "huge": "1e400", "s": "é"});
    assert_eq!(value.to_serde(), expected);
    assert_eq!(
        Value::from(&expected).to_string(),
        r#"{"i":-5,"u":18446744073709551615,"f":1.1,"huge":"1e400","s":"é"}"#
    );
    let deep = parse(&["[".repeat(64), "]".repeat(64)].concat());
    assert_eq!(Value::from(&deep.to_serde()), deep);
    let deeper = [vec![b'['; 500], vec![b']'; 500]].concat();
    let deeper = Value::parse(&deeper, &Limits::UNLIMITED).expect("brackets match");
    assert!(deeper.to_serde().to_string().contains(&"[".repeat(300)));
}
