//! Translation of single bodies.

use super::*;
use crate::translate::testing::{any_json, any_op, any_text, strew};
use proptest::prelude::*;
use switchback_plan::convert::ConversionKind;
use switchback_plan::{Absent, Close, CloseFrom, MemberAction, Others, ValueOp};

fn translate(op: &ValueOp, input: &str) -> Result<String, TranslateError> {
    translate_with(op, input, &[])
}

fn translate_with(op: &ValueOp, input: &str, supplied: &[Option<Vec<u8>>]) -> Result<String, TranslateError> {
    let settings = Settings::default();
    let mut out = b"before".to_vec();
    let done =
        document(op, input.as_bytes(), &Env { settings: &settings, supplied }, &Limits::DOCUMENT, &mut out);
    let out = String::from_utf8(out).unwrap();
    done.map(|()| out.strip_prefix("before").unwrap().to_owned())
}

fn check(op: &ValueOp, input: &str, expected: &str) {
    assert_eq!(translate(op, input).as_deref(), Ok(expected), "{input}");
}

fn check_error(op: &ValueOp, input: &str, expected: &str) {
    assert_eq!(translate(op, input).unwrap_err().to_string(), expected, "{input}");
}

#[test]
fn a_body_that_nothing_touches_is_copied_to_the_byte() {
    check(&ValueOp::Keep, " { \"a\" : 1.10 }\n", " { \"a\" : 1.10 }\n");
}

#[test]
fn members_come_out_in_the_order_of_the_source_with_values_as_they_stand() {
    let op = shape().emit("a", "x", ValueOp::Keep).same("b").op();
    check(&op, r#" { "b" : [1 ,2.50], "c":0, "a":"\u00e9\/" } "#, r#"{"b":[1 ,2.50],"x":"\u00e9\/"}"#);
    check(&op, "{}", "{}");
}

#[test]
fn a_name_with_escapes_is_the_name_it_decodes_to() {
    let op = shape().emit("text", "body", ValueOp::Keep).op();
    check(&op, r#"{"t\u0065xt":1}"#, r#"{"body":1}"#);
}

#[test]
fn members_without_a_rule_are_dropped_or_kept_with_their_names_as_written() {
    check(&shape().same("a").op(), r#"{"b":1,"a":2}"#, r#"{"a":2}"#);
    let keeping = shape().emit("a", "x", ValueOp::Keep).others(Others::Keep).op();
    check(&keeping, r#"{ "\u0062" : 1, "a":2}"#, r#"{"\u0062":1,"x":2}"#);
}

#[test]
fn a_member_that_occurs_twice_is_refused_wherever_it_stands() {
    let op = shape().same("a").op();
    check_error(&op, r#"{"a":1,"\u0061":2}"#, "$: member named twice in one object at byte 8");
    check_error(&op, r#"{"z":{"b":1,"b":2}}"#, "$: member named twice in one object at byte 13");
}

#[test]
fn null_passes_through_structure_and_other_kinds_do_not() {
    let op = shape().emit("a", "a", ValueOp::Array(Box::new(shape().same("b").op()))).op();
    check(&op, "null", "null");
    check(&op, r#"{"a":null}"#, r#"{"a":null}"#);
    check(&op, r#"{"a":[null,{"b":1,"c":2}]}"#, r#"{"a":[null,{"b":1}]}"#);
    check_error(&op, "[]", "$: expected an object, found an array");
    check_error(&op, r#"{"a":[{},7]}"#, "$.a[1]: expected an object, found a number (test.map.yaml:1)");
}

#[test]
fn one_element_is_wrapped_and_unwrapped() {
    let wrap = shape().emit("a", "a", ValueOp::Wrap(Box::new(ValueOp::Keep))).op();
    check(&wrap, r#"{"a":7}"#, r#"{"a":[7]}"#);
    check(&wrap, r#"{"a":null}"#, r#"{"a":[null]}"#);
    let unwrap = shape().emit("a", "a", ValueOp::Unwrap(Box::new(ValueOp::Keep))).op();
    check(&unwrap, r#"{"a":[ 7 ]}"#, r#"{"a":7}"#);
    check(&unwrap, r#"{"a":null}"#, r#"{"a":null}"#);
    for body in [r#"{"a":[]}"#, r#"{"a":[1,2]}"#] {
        check_error(&unwrap, body, "$.a: expected an array of exactly one element (test.map.yaml:1)");
    }
}

#[test]
fn a_conversion_that_yields_nothing_leaves_out_what_it_stands_for() {
    let absent = || convert(ConversionKind::AbsentToNull, false);
    check(&shape().emit("a", "a", absent()).op(), r#"{"a":null}"#, "{}");
    check(
        &shape().emit("a", "a", ValueOp::Array(Box::new(absent()))).op(),
        r#"{"a":[null,1,null,2]}"#,
        r#"{"a":[1,2]}"#,
    );
    check(&shape().emit("a", "a", ValueOp::Wrap(Box::new(absent()))).op(), r#"{"a":null}"#, "{}");
    check(&absent(), "null", "null");
}

#[test]
fn a_value_outside_a_conversion_is_an_error_with_its_place_and_line() {
    let op = shape().emit("a", "x", convert(ConversionKind::IntegerToString, true)).op();
    check_error(&op, r#"{"a":1.5}"#, "$.a: `integer_to_string` expects an integer (test.map.yaml:1)");
}

#[test]
fn a_refused_member_refuses_unless_it_is_null() {
    let op = shape().refuse("a", 3).same("b").op();
    check(&op, r#"{"a":null,"b":1}"#, r#"{"b":1}"#);
    let error = translate(&op, r#"{"a":0}"#).unwrap_err();
    assert_eq!(error.cause, Cause::Refused(switchback_plan::ReasonId(3)));
}

#[test]
fn what_has_no_place_in_the_stream_is_written_at_the_close_in_order() {
    let made = shape().same("a").emit("b", "y", convert(ConversionKind::AbsentToNull, false));
    let (a, b) = (made.index("a"), made.index("b"));
    let op = made
        .close("k", CloseFrom::Constant(raw("7")))
        .close("a", CloseFrom::Default { unless_written: a, value: raw("0") })
        .close("y", CloseFrom::Default { unless_written: b, value: raw("\"none\"") })
        .op();
    check(&op, r#"{"b":1,"a":2}"#, r#"{"y":1,"a":2,"k":7}"#);
    check(&op, "{}", r#"{"k":7,"a":0,"y":"none"}"#);
    check(&op, r#"{"b":null}"#, r#"{"k":7,"a":0,"y":"none"}"#);
}

#[test]
fn a_place_moves_up_from_where_it_was_captured() {
    let op = shape()
        .member(
            "box",
            MemberAction::Emit(switchback_plan::Emit { name: key("box"), op: shape().same("id").op() }),
            Some(0),
        )
        .close(
            "who",
            CloseFrom::Captured {
                alternatives: vec![captured(0, &["by", "name"], ValueOp::Keep)],
                absent: Absent::Value(raw("null")),
            },
        )
        .op();
    check(&op, r#"{"box":{"id":1,"by":{ "n\u0061me" : "A"}}}"#, r#"{"box":{"id":1},"who":"A"}"#);
    for body in [r#"{"box":{"id":1}}"#, r#"{"box":{"id":1,"by":null}}"#, r#"{"box":{"id":1,"by":3}}"#] {
        check(&op, body, r#"{"box":{"id":1},"who":null}"#);
    }
    check(&op, r#"{"box":null}"#, r#"{"box":null,"who":null}"#);
    check(&op, "{}", r#"{"who":null}"#);
}

#[test]
fn pieces_move_down_into_an_object_that_is_left_out_when_it_is_empty() {
    let from = |slot| CloseFrom::Captured {
        alternatives: vec![captured(slot, &[], ValueOp::Keep)],
        absent: Absent::Omit,
    };
    let op = shape()
        .capture("pinned", 0)
        .capture("colour", 1)
        .close("pin", CloseFrom::Object(vec![close("set", from(0)), close("colour", from(1))]))
        .op();
    check(&op, r#"{"colour":null,"pinned":true}"#, r#"{"pin":{"set":true,"colour":null}}"#);
    check(&op, "{}", "{}");
}

#[test]
fn an_object_is_left_out_where_something_is_missing_that_it_needs() {
    let from = |slot| CloseFrom::Captured {
        alternatives: vec![captured(slot, &[], ValueOp::Keep)],
        absent: Absent::Omit,
    };
    let needed = |close: Close| Close { needed: true, ..close };
    let port = close("port", CloseFrom::Object(vec![close("number", from(1))]));
    let service = |port: Close| {
        let name = needed(close("name", from(0)));
        shape().capture("n", 0).capture("p", 1).close("service", CloseFrom::Object(vec![name, port])).op()
    };
    let optional = service(port.clone());
    check(&optional, r#"{"n":"a","p":1}"#, r#"{"service":{"name":"a","port":{"number":1}}}"#);
    check(&optional, r#"{"n":"a"}"#, r#"{"service":{"name":"a"}}"#);
    check(&optional, r#"{"p":1}"#, "{}");
    let required = service(needed(port.clone()));
    check(&required, r#"{"n":"a"}"#, r#"{"service":{"name":"a","port":{}}}"#);
    check(&required, "{}", "{}");
    let always = shape().capture("p", 1).required("port", CloseFrom::Object(vec![close("number", from(1))]));
    check(&always.op(), "{}", r#"{"port":{}}"#);
}

#[test]
fn the_first_alternative_of_the_right_kind_is_taken() {
    use switchback_json::raw::Kind;
    let only = |slot, kind| switchback_plan::Captured {
        only: Some(switchback_plan::Kinds::from_kinds(&[kind])),
        ..captured(slot, &[], ValueOp::Keep)
    };
    let op = shape()
        .capture("n", 0)
        .capture("s", 1)
        .close(
            "v",
            CloseFrom::Captured {
                alternatives: vec![only(0, Kind::Number), only(1, Kind::String)],
                absent: Absent::Omit,
            },
        )
        .op();
    check(&op, r#"{"n":1,"s":"x"}"#, r#"{"v":1}"#);
    check(&op, r#"{"n":null,"s":"x"}"#, r#"{"v":"x"}"#);
    check(&op, r#"{"n":"1","s":2}"#, "{}");
}

#[test]
fn values_that_a_route_supplies_are_written_or_left_out() {
    let op = ValueOp::Array(Box::new(shape().same("a").close("w", CloseFrom::Supplied(0)).supplied(1).op()));
    let supplied = [Some(b"[1]".to_vec())];
    assert_eq!(translate_with(&op, r#"[{"a":1},{}]"#, &supplied).unwrap(), r#"[{"a":1,"w":[1]},{"w":[1]}]"#);
    assert_eq!(translate_with(&op, "[{}]", &[None]).unwrap(), "[{}]");
}

#[test]
fn a_setting_without_a_value_is_an_error_of_nobody_but_the_operator() {
    let op = shape().close("m", CloseFrom::Setting(0)).op();
    let error = translate(&op, "{}").unwrap_err();
    assert_eq!((error.cause.clone(), error.place.as_str()), (Cause::Setting(0), "$.m"));
    assert_eq!(Fault::of_body(Sender::ClientBody, &error).kind, FaultKind::Internal);
}

#[test]
fn a_body_over_a_limit_is_told_apart_from_a_broken_one() {
    let limits = Limits { depth: 2, ..Limits::DOCUMENT };
    let settings = Settings::default();
    let mut out = Vec::new();
    let error = document(&ValueOp::Keep, b"[[[]]]", &Env::new(&settings), &limits, &mut out).unwrap_err();
    assert!(error.is_limit() && out.is_empty());
    assert_eq!(Fault::of_body(Sender::ClientBody, &error).kind, FaultKind::TooLarge);
    assert_eq!(Fault::of_body(Sender::Upstream, &error).kind, FaultKind::UpstreamBroken);
    let broken = translate(&ValueOp::Keep, "{").unwrap_err();
    assert_eq!(Fault::of_body(Sender::ClientBody, &broken).kind, FaultKind::BadBody);
}

proptest! {
    #[test]
    fn every_plan_makes_json_of_json_or_says_why_not(op in any_op(), text in any_text()) {
        let text = String::from_utf8(text).unwrap();
        match translate_with(&op, &text, &[Some(b"7".to_vec())]) {
            Ok(out) => prop_assert!(switchback_json::validate(out.as_bytes(), &Limits::DOCUMENT).is_ok(), "{}", out),
            Err(error) => prop_assert!(!matches!(error.cause, Cause::Json(_)), "{}", error),
        }
    }

    #[test]
    fn white_space_and_escapes_of_names_change_no_value(op in any_op(), value in any_json(), seed in any::<u64>()) {
        let plain = translate(&op, &value.to_string());
        let strewn = translate(&op, &String::from_utf8(strew(&value, seed)).unwrap());
        let read = |out: &str| Value::parse(out.as_bytes(), &Limits::DOCUMENT).unwrap();
        match (plain, strewn) {
            (Ok(plain), Ok(strewn)) => prop_assert_eq!(read(&plain), read(&strewn)),
            (plain, strewn) => prop_assert_eq!(plain.map_err(|e| e.place), strewn.map_err(|e| e.place)),
        }
    }

    #[test]
    fn a_renaming_and_its_inverse_lose_nothing(value in any_json()) {
        let names = ["a", "b", "c", "é", "x y"];
        let there = names.iter().fold(shape(), |s, n| s.emit(n, &format!("to {n}"), ValueOp::Keep)).op();
        let back = names.iter().fold(shape(), |s, n| s.emit(&format!("to {n}"), n, ValueOp::Keep)).op();
        let text = value.to_string();
        if let Ok(out) = translate(&there, &text) {
            prop_assert_eq!(translate(&back, &out).unwrap(), text);
        }
    }

    #[test]
    fn text_that_is_no_json_is_refused_by_every_plan(op in any_op(), text in "[\\[\\]{}:,\"a0-9 ]{0,12}") {
        let valid = switchback_json::validate(text.as_bytes(), &Limits::DOCUMENT).is_ok();
        if !valid {
            prop_assert!(matches!(translate(&op, &text).unwrap_err().cause, Cause::Json(_)));
        }
    }
}
