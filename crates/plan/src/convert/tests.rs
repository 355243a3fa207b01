//! Executes every example of every conversion, and tests the laws with generated values.

use super::*;
use proptest::prelude::*;

fn convert(conversion: &Conversion, json: Option<&str>) -> Result<Option<String>, ConvertError> {
    let Some(json) = json else {
        return Ok(conversion.absent().map(|raw| String::from_utf8(raw.to_vec()).unwrap()));
    };
    let mut out = Vec::new();
    let done = conversion.apply(json.as_bytes(), &mut out)?;
    Ok((done == Yield::Written).then(|| String::from_utf8(out).unwrap()))
}

#[test]
fn every_example_holds_in_its_directions() {
    for spec in SPECS {
        assert!(spec.examples.iter().any(|e| e.holds == Holds::Both), "{} shows its inverse", spec.name);
        for example in spec.examples {
            let forward = Conversion::new((example.kind)(), true);
            let shown = format!("{} {:?} ↔ {:?}", example.written, example.old, example.new);
            if example.holds != Holds::Backward {
                assert_eq!(
                    convert(&forward, example.old).unwrap().as_deref(),
                    example.new,
                    "forward: {shown}"
                );
            }
            if example.holds != Holds::Forward {
                assert_eq!(
                    convert(&forward.inverse(), example.new).unwrap().as_deref(),
                    example.old,
                    "back: {shown}"
                );
            }
        }
    }
}

#[test]
fn examples_keep_to_the_kinds_that_are_claimed() {
    for spec in SPECS {
        for example in spec.examples {
            let kind = (example.kind)();
            assert_eq!(kind.spec().name, spec.name);
            for (side, json) in [(SideId::OLD, example.old), (SideId::NEW, example.new)] {
                let takes = |json: &str| {
                    let found = raw::kind(json.as_bytes()).unwrap();
                    kind.kinds(side).contains(found) || (found == Kind::Null && spec.null_passes)
                };
                if example.holds == Holds::Both {
                    assert!(json.map_or(spec.domain(side).absent, takes), "{} {json:?}", spec.name);
                }
            }
        }
    }
}

#[test]
fn the_first_of_several_that_takes_a_value_converts_it() {
    let pairs = ConversionKind::Pairs { key: "k".into(), value: "v".into(), list: SideId::NEW };
    let kind = ConversionKind::FirstOf(vec![ConversionKind::EmptyArrayToNull, pairs].into());
    let none = Otherwise::Value(Raw::from(&b"[]"[..]));
    let back = Conversion { otherwise: none, ..Conversion::new(kind.clone(), false) };
    for (new, old) in [
        ("null", "[]"),
        ("[]", "[]"),
        ("{}", "[]"),
        (r#"{"a":1}"#, r#"{"a":1}"#),
        (r#"[{"k":"a","v":1},{"v":null,"k":"b"}]"#, r#"{"a":1,"b":null}"#),
        // A failed conversion leaves no partial output.
        (r#"[{"k":"a","v":1},7]"#, "[]"),
        ("false", "[]"),
        (r#""""#, "[]"),
        ("0", "[]"),
    ] {
        assert_eq!(convert(&back, Some(new)).unwrap().as_deref(), Some(old), "{new}");
    }
    let there = Conversion::new(kind, true);
    assert_eq!(convert(&there, Some("[]")).unwrap().as_deref(), Some("null"));
    assert_eq!(convert(&there, Some(r#"{"a":1}"#)).unwrap().as_deref(), Some(r#"{"a":1}"#));
    let error = convert(&there, Some("7")).unwrap_err().to_string();
    assert_eq!(error, "`a list of conversions` expects a value that one of its conversions takes");
}

#[test]
fn a_value_outside_the_domain_is_an_error_or_what_else_says() {
    let outside: &[(ConversionKind, bool, &[&str])] = &[
        (ConversionKind::IntegerToString, true, &["1.5", "1e3", "\"1\"", "true", "[]"]),
        (
            ConversionKind::IntegerToString,
            false,
            &["\"\"", "\"a\"", "\"01\"", "\"1.0\"", "\"+1\"", "\" 1\"", "\"-\"", "1"],
        ),
        (ConversionKind::Integer, true, &["\"7\"", "1.5", "true"]),
        (ConversionKind::Integer, false, &["\"a\"", "\"01\"", "1.5", "\"1.0\"", "{}"]),
        (ConversionKind::LowerCase, true, &["7", "[]", "true"]),
        (ConversionKind::Digits, false, &["\"none\"", "\"\"", "5511", "{}"]),
        (ConversionKind::EmptyArrayToNull, true, &["[1]", "null", "\"\"", "0"]),
        (ConversionKind::EmptyArrayToNull, false, &["[1]", "false"]),
        (ConversionKind::CsvToArray, true, &["1", "[]"]),
        (ConversionKind::CsvToArray, false, &["[\"a,b\"]", "[\"\"]", "[1]", "{}", "[null]"]),
        (
            ConversionKind::Pairs { key: "k".into(), value: "v".into(), list: SideId::NEW },
            false,
            &[
                "[{\"k\":\"a\"}]",
                "[{\"v\":1}]",
                "[{\"k\":1,\"v\":1}]",
                "[{\"k\":\"a\",\"v\":1},{\"v\":2,\"k\":\"\\u0061\"}]",
                "{}",
            ],
        ),
        (
            (date::SPEC.examples[0].kind)(),
            true,
            &[
                "\"30/02/2024\"",
                "\"29/02/2023\"",
                "\"1/1/2024\"",
                "\"01/13/2024\"",
                "\"01/01/2024 \"",
                "\"\"",
                "3",
                "\"+1/01/2024\"",
            ],
        ),
        ((table::SPEC.examples[0].kind)(), true, &["2", "2.0", "\"0\"", "[]"]),
    ];
    for (kind, forward, values) in outside {
        for value in *values {
            let mut conversion = Conversion::new(kind.clone(), *forward);
            let error = convert(&conversion, Some(value)).expect_err(value);
            assert_eq!(error.conversion, kind.spec().name);
            conversion.otherwise = Otherwise::Keep;
            assert_eq!(convert(&conversion, Some(value)).unwrap().as_deref(), Some(*value));
            conversion.otherwise = Otherwise::Value(Raw::from(&b"0"[..]));
            assert_eq!(convert(&conversion, Some(value)).unwrap().as_deref(), Some("0"));
        }
    }
}

#[test]
fn a_table_that_does_not_list_null_lets_it_pass() {
    let rows = vec![(Raw::from(&b"1"[..]), Raw::from(&b"2"[..]))];
    let conversion = Conversion::new(ConversionKind::Table(Table { rows }.into()), true);
    assert_eq!(convert(&conversion, Some("null")).unwrap().as_deref(), Some("null"));
}

#[test]
fn patterns_must_have_the_same_known_parts() {
    assert_eq!(date::check_patterns("%d/%m/%Y", "%Y-%m-%d"), Ok(()));
    for (old, new, says) in [
        ("%d/%m/%y", "%Y-%m-%d", "`%y` is not a part of a date"),
        ("%d/%m", "%Y-%m-%d", "`%Y` is in one of the forms only"),
        ("%d%d", "%d", "`%d` occurs twice in `%d%d`"),
        (
            "today",
            "now",
            "`today` has no part of a date, and is none of `rfc3339`, `epoch_second`, `epoch_millis`",
        ),
    ] {
        assert_eq!(date::check_patterns(old, new).unwrap_err().to_string(), says);
    }
}

/// Asserts that a round trip returns the same text, if the value is in the domain.
fn there_and_back(kind: ConversionKind, forward: bool, json: &str) -> Result<(), TestCaseError> {
    let there = Conversion::new(kind, forward);
    if let Ok(Some(other)) = convert(&there, Some(json)) {
        let back = convert(&there.inverse(), Some(&other)).unwrap();
        prop_assert_eq!(back.as_deref(), Some(json), "through {}", other);
    }
    Ok(())
}

proptest! {
    #[test]
    fn integers_of_any_length_come_back(digits in "-?(0|[1-9][0-9]{0,40})") {
        there_and_back(ConversionKind::IntegerToString, true, &digits)?;
        there_and_back(ConversionKind::StringToInteger, false, &digits)?;
        there_and_back(ConversionKind::IntegerToString, false, &format!("\"{digits}\""))?;
    }

    #[test]
    fn integers_come_back_from_either_spelling(digits in "-?(0|[1-9][0-9]{0,40})") {
        there_and_back(ConversionKind::Integer, true, &digits)?;
        let there = Conversion::new(ConversionKind::Integer, false);
        for new in [digits.clone(), format!("\"{digits}\"")] {
            prop_assert_eq!(convert(&there, Some(&new)).unwrap(), Some(digits.clone()));
        }
    }

    #[test]
    fn what_is_folded_comes_back_and_folds_to_itself(text in "\\PC{0,12}") {
        let json = switchback_json::Value::string(&text).to_string();
        for kind in [ConversionKind::LowerCase, ConversionKind::Digits] {
            for forward in [true, false] {
                let Ok(Some(folded)) = convert(&Conversion::new(kind.clone(), forward), Some(&json)) else { continue };
                there_and_back(kind.clone(), forward, &folded)?;
                prop_assert_eq!(convert(&Conversion::new(kind.clone(), forward), Some(&folded)).unwrap(), Some(folded.clone()));
            }
        }
    }

    #[test]
    fn lists_come_back(items in proptest::collection::vec("[a-zA-Z \"\\\\\u{e9},]{0,5}", 0..5)) {
        let array = switchback_json::Value::from(items.iter().map(|i| switchback_json::Value::string(i)).collect::<Vec<_>>());
        there_and_back(ConversionKind::CsvToArray, false, &array.to_string())?;
        let text = switchback_json::Value::string(&items.join(","));
        there_and_back(ConversionKind::CsvToArray, true, &text.to_string())?;
    }

    #[test]
    fn objects_come_back_from_pairs(members in proptest::collection::btree_map(".{0,4}", ".{0,4}", 0..6)) {
        let object: switchback_json::Object = members.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let object = switchback_json::Value::Object(object).to_string();
        for list in [SideId::NEW, SideId::OLD] {
            let kind = ConversionKind::Pairs { key: "name \"x\"".into(), value: "value".into(), list };
            there_and_back(kind, list == SideId::NEW, &object)?;
        }
    }

    #[test]
    fn samples_of_every_conversion_are_in_its_domain_and_come_back(seed in any::<u64>()) {
        for example in SPECS.iter().flat_map(|spec| spec.examples) {
            let ConversionKind::Own(own) = (example.kind)() else { continue };
            for side in [SideId::OLD, SideId::NEW] {
                let sample = own.sample(side, seed);
                let there = Conversion::new(ConversionKind::Own(Arc::clone(&own)), side == SideId::OLD);
                let other = convert(&there, Some(&sample)).unwrap().unwrap();
                let back = convert(&there.inverse(), Some(&other)).unwrap();
                prop_assert_eq!(back.as_deref(), Some(sample.as_str()), "{} through {}", example.written, other);
            }
        }
    }

    #[test]
    fn no_value_makes_a_conversion_panic_or_write_what_is_not_json(value in any_json()) {
        let json = value.to_string();
        for example in SPECS.iter().flat_map(|spec| spec.examples) {
            for forward in [true, false] {
                let conversion = Conversion::new((example.kind)(), forward);
                if let Ok(Some(out)) = convert(&conversion, Some(&json)) {
                    let read = switchback_json::Value::parse(out.as_bytes(), &switchback_json::Limits::DOCUMENT);
                    prop_assert!(read.is_ok(), "{}", out);
                }
            }
        }
    }
}

/// Generates small values, many of them in the domain of a conversion.
fn any_json() -> impl Strategy<Value = switchback_json::Value> {
    use switchback_json::{Number, Value};
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        "-?(0|[1-9][0-9]{0,3})(\\.[0-9])?".prop_map(|text| Value::Number(Number::from_text(&text).unwrap())),
        "[a-z0-9/,\"\\\\-]{0,10}".prop_map(|text| Value::string(&text)),
        "[0-9]{2}/[0-9]{2}/[0-9]{4}".prop_map(|text| Value::string(&text)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[kva]", inner, 0..4).prop_map(|members| Value::Object(
                members.iter().map(|(k, v)| (k.as_str(), v.clone())).collect()
            )),
        ]
    })
}
