//! Single cases with their text: what is written where, and what is refused.

use super::super::{Bounds, Program, Transcoder};
use super::plans::{
    array, attempt, captured, close, conversion, emit, first_of, keep, key, member, object, origin, place,
    raw, values,
};
use super::{reference, translate};
use crate::translate::{Cause, TranslateError};
use bytes::Bytes;
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{ErrorKind, Expected, Limit, Limits};
use switchback_plan::convert::{ConversionKind, Otherwise};
use switchback_plan::{
    Absent, Again, Captured, ChooseBy, ChooseOp, CloseFrom, MemberAction, Others, ReasonId, ValueOp,
};

fn translated(op: &ValueOp, body: &str) -> String {
    translate(op, Bounds::default(), body).expect("the case can be translated")
}

fn fault(op: &ValueOp, body: &str) -> Cause {
    translate(op, Bounds::default(), body).expect_err("the case cannot be translated")
}

#[test]
fn members_come_in_source_order_then_what_closes_in_plan_order() {
    let op = object(
        vec![keep("a"), emit("b", "z", ValueOp::Keep), member("c", MemberAction::Drop)],
        Others::Drop,
        vec![
            close("k", CloseFrom::Constant(raw("null"))),
            close("d", CloseFrom::Default { unless_written: 0, value: raw("[]") }),
            close("e", CloseFrom::Default { unless_written: 2, value: raw("0") }),
            close("s", CloseFrom::Setting(0)),
            close("w", CloseFrom::Supplied(0)),
            close("n", CloseFrom::Supplied(1)),
        ],
    );
    let text = translated(&op, r#" { "x" : {"a":[1]} , "b" : [ 1, 2 ] , "c":3,"a":1.10 } "#);
    assert_eq!(text, r#"{"z":[ 1, 2 ],"a":1.10,"k":null,"e":0,"s":10,"w":"given"}"#);
    assert_eq!(translated(&op, "{}"), r#"{"k":null,"d":[],"e":0,"s":10,"w":"given"}"#);
}

#[test]
fn numbers_escapes_and_odd_names_survive() {
    let op = array(object(vec![keep("a"), emit("b", "c", ValueOp::Keep)], Others::Keep, vec![]));
    for (body, expected) in [
        (r#"[{"a":100000000000000000000,"b":1e400}]"#, r#"[{"a":100000000000000000000,"c":1e400}]"#),
        (r#"[{"\u0061":"\ud83d\ude00\/","x\n":-0}]"#, r#"[{"a":"\ud83d\ude00\/","x\n":-0}]"#),
        (
            r#"[{"$serde_json::private::Number":"1","a":{}}]"#,
            r#"[{"$serde_json::private::Number":"1","a":{}}]"#,
        ),
        (r#"[{"a":"}]","b":"\\"},null,{}]"#, r#"[{"a":"}]","c":"\\"},null,{}]"#),
        ("[]", "[]"),
        (" null ", "null"),
    ] {
        assert_eq!(translated(&op, body), expected);
    }
}

#[test]
fn places_move_up_and_down() {
    let inner = object(vec![keep("id"), emit("way", "road", ValueOp::Keep)], Others::Drop, vec![]);
    let op = object(
        vec![captured(emit("in", "in", inner), 0), captured(member("low", MemberAction::Drop), 1)],
        Others::Drop,
        vec![
            close("way", first_of(vec![place(0, &["way"])], Absent::Omit)),
            close(
                "who",
                first_of(vec![place(0, &["who", "name"]), place(1, &[])], Absent::Value(raw("null"))),
            ),
            close("box", CloseFrom::Object(vec![close("low", first_of(vec![place(1, &[])], Absent::Omit))])),
        ],
    );
    let text = translated(&op, r#"{"in":{"id":5,"way":"post","who":{"name":"Ana","x":1}},"low":7}"#);
    assert_eq!(text, r#"{"in":{"id":5,"road":"post"},"way":"post","who":"Ana","box":{"low":7}}"#);
    assert_eq!(translated(&op, r#"{"in":null}"#), r#"{"in":null,"who":null}"#);
    assert_eq!(translated(&op, r#"{"low":{"way":1}}"#), r#"{"who":{"way":1},"box":{"low":{"way":1}}}"#);
}

#[test]
fn conversions_see_whole_values_and_may_leave_members_out() {
    let op = object(
        vec![
            emit("n", "n", conversion(ConversionKind::AbsentToNull, Otherwise::Error)),
            emit("s", "i", conversion(ConversionKind::IntegerToString, Otherwise::Error)),
            emit(
                "w",
                "w",
                ValueOp::Wrap(Box::new(conversion(ConversionKind::AbsentToNull, Otherwise::Error))),
            ),
        ],
        Others::Drop,
        vec![close("d", CloseFrom::Default { unless_written: 0, value: raw("true") })],
    );
    assert_eq!(translated(&op, r#"{"n":null,"s":"12","w":null}"#), r#"{"i":12,"d":true}"#);
    assert_eq!(translated(&op, r#"{"w":[1, 2],"n":{"a": 1}}"#), r#"{"w":[[1, 2]],"n":{"a": 1}}"#);
    assert!(matches!(fault(&op, r#"{"s":"x"}"#), Cause::Convert(_)));
    let list = array(conversion(ConversionKind::AbsentToNull, Otherwise::Error));
    assert_eq!(translated(&list, "[null,1,null,2,null]"), "[1,2]");
    assert_eq!(translated(&conversion(ConversionKind::AbsentToNull, Otherwise::Error), "null"), "null");
}

#[test]
fn arrays_of_one_are_wrapped_and_unwrapped() {
    let unwrap = ValueOp::Unwrap(Box::new(object(vec![keep("a")], Others::Drop, vec![])));
    assert_eq!(translated(&unwrap, r#"[ {"a": 1, "b": 2} ]"#), r#"{"a":1}"#);
    assert_eq!(translated(&unwrap, "null"), "null");
    for several in ["[]", "[{},{}]", "[ ]"] {
        assert!(matches!(fault(&unwrap, several), Cause::NotOne), "{several}");
    }
    let wrap = ValueOp::Wrap(Box::new(ValueOp::Wrap(Box::new(ValueOp::Keep))));
    assert_eq!(translated(&wrap, " 12"), "[[12]]");
    assert_eq!(translated(&wrap, r#"{"a": []}"#), r#"[[{"a": []}]]"#);
}

#[test]
fn a_member_that_cannot_be_carried_over_refuses_the_body_unless_null() {
    let op = object(vec![member("no", MemberAction::Refuse(ReasonId(9))), keep("a")], Others::Drop, vec![]);
    assert_eq!(translated(&op, r#"{"no":null,"a":1}"#), r#"{"a":1}"#);
    let refused = fault(&op, r#"{"a":1,"no":false}"#);
    assert_eq!(refused, Cause::Refused(ReasonId(9)));
}

#[test]
fn members_named_twice_are_refused_where_the_plan_reads_names() {
    let op = array(object(vec![keep("a"), emit("b", "b", ValueOp::Keep)], Others::Drop, vec![]));
    for body in [
        r#"[{"a":1,"a":1}]"#,
        r#"[{"a":1,"b":2},{"a":1,"b":2,"\u0061":3}]"#,
        r#"[{"x":1,"y":2},{"x":1,"y":2,"x":3}]"#,
        r#"[{"x\n":1,"x\u000a":2}]"#,
        r#"[{"a_name_that_is_too_long_to_be_expected":1,"b":1,"a_name_that_is_too_long_to_be_expected":2}]"#,
    ] {
        let Cause::Json(error) = fault(&op, body) else { panic!("{body}") };
        assert_eq!(error.kind, ErrorKind::DuplicateMember, "{body}");
    }
    let deep = r#"[{"a":{"x":1,"x":2}}]"#;
    assert_eq!(translate(&op, Bounds::default(), deep), Ok(deep.to_owned()));
}

#[test]
fn a_fault_of_a_value_is_told_where_it_is() {
    let op = array(object(vec![keep("a"), emit("b", "c", ValueOp::Keep)], Others::Drop, vec![]));
    let number = ErrorKind::InvalidNumber;
    let expected = |expected| ErrorKind::Unexpected { expected };
    for (value, at, kind) in [
        ("01", 1, number),
        ("1.", 2, number),
        ("1-2", 1, number),
        ("nul", 3, ErrorKind::InvalidLiteral),
        ("\"a\x01\"", 2, ErrorKind::ControlInString),
        ("\"a text that is longer than what is looked at at once \x01\"", 54, ErrorKind::ControlInString),
        (r#""a\q""#, 3, ErrorKind::InvalidEscape),
        ("[1,]", 3, expected(Expected::Value)),
        (r#"{"k":1,}"#, 7, expected(Expected::Key)),
        (r#"{"k" 1}"#, 5, expected(Expected::Colon)),
        (r#"["k":1]"#, 4, expected(Expected::CommaOrArrayEnd)),
        (r#"[1}"#, 2, expected(Expected::CommaOrArrayEnd)),
    ] {
        for (name, known) in [("a", r#"{"a":1,"b":2},"#), ("b", ""), ("x", r#"{"x":1,"b":2},"#)] {
            let before = format!(r#"[{known}{{"{name}":"#);
            let body = format!(r#"{before}{value},"y":0}}]"#);
            let Cause::Json(error) = fault(&op, &body) else { panic!("{body}") };
            assert_eq!((error.kind, error.offset), (kind, (before.len() + at) as u64), "{body}");
        }
    }
    for number in ["-", "1.", "1e", "-1.5e+"] {
        let Cause::Json(error) = fault(&ValueOp::Keep, number) else { panic!("{number}") };
        assert_eq!((error.kind, error.offset), (ErrorKind::UnexpectedEnd, number.len() as u64), "{number}");
    }
}

#[test]
fn a_short_value_within_objects_that_are_known_may_be_too_deep() {
    let op = array(object(vec![keep("a")], Others::Drop, vec![]));
    let body = format!(r#"[{{"a":1}},{{"a":1}},{{"a":[1]}}]{}"#, " ".repeat(130));
    let bounds = |depth| Bounds { json: Limits { depth, ..Limits::STREAM }, ..Bounds::default() };
    assert!(translate(&op, bounds(2), &body).is_err());
    assert!(translate(&op, bounds(3), &body).is_ok());
}

#[test]
fn what_one_object_lacks_another_may_not_have_twice() {
    let inner = object(vec![keep("a"), keep("b"), keep("c")], Others::Drop, vec![]);
    let op = array(object(vec![emit("in", "in", inner)], Others::Drop, vec![]));
    let known = r#"{"in":{"a":1,"b":1,"c":1}}"#;
    let lacks = r#"{"in":{"a":1,"c":1}}"#;
    let strange = format!(r#"[{known},{lacks},{{"in":{{"a":1,"b":1,"{}":0,"b":2}}}}]"#, "strange".repeat(9));
    let early = format!(r#"[{known},{lacks},{{"in":{{"b":1,"a":1,"b":2}}}}]"#);
    for body in [&strange, &early] {
        let Cause::Json(error) = fault(&op, body) else { panic!("{body}") };
        assert_eq!(error.kind, ErrorKind::DuplicateMember, "{body}");
        let once = body.replace(r#","b":2"#, "");
        let dropped = once.replace(&format!(r#","{}":0"#, "strange".repeat(9)), "");
        assert_eq!(translate(&op, Bounds::default(), &once), Ok(dropped));
    }
}

#[test]
fn an_object_of_very_many_names_is_bounded() {
    let op = object(vec![keep("a")], Others::Drop, vec![]);
    let names = |count: usize| {
        let names: Vec<_> = (0..count).map(|at| format!("\"name{at}\":{at}")).collect();
        format!("{{{},\"a\":1}}", names.join(","))
    };
    assert_eq!(translated(&op, &names(600)), r#"{"a":1}"#);
    let small = Bounds { names_bytes: 1000, ..Bounds::default() };
    let refused = translate(&op, small, &names(600)).expect_err("too many names");
    assert!(TranslateError::new(refused).is_limit());
}

#[test]
fn wrong_kinds_are_faults_of_the_sender() {
    let op = object(vec![emit("l", "l", array(ValueOp::Keep))], Others::Drop, vec![]);
    let kind = |expected, found| Cause::Kind { expected, found };
    assert_eq!(fault(&op, "[]"), kind(Kind::Object, Kind::Array));
    assert_eq!(fault(&op, r#"{"l":{}}"#), kind(Kind::Array, Kind::Object));
    assert_eq!(fault(&op, r#"{"l":"x"}"#), kind(Kind::Array, Kind::String));
}

#[test]
fn faults_name_the_place_and_the_mapping_line() {
    let inner = object(vec![emit("l", "l", array(ValueOp::Keep))], Others::Drop, vec![]);
    let op = array(object(vec![emit("o", "o", inner)], Others::Drop, vec![]));
    let program = Arc::new(Program::compile(&op));
    let mut transcoder = Transcoder::new(program, Arc::new(values()), Bounds::default());
    let error = transcoder.push(Bytes::from_static(br#"[{"o":{"l":7}}]"#)).expect_err("a number is no array");
    assert_eq!(error.to_string(), "$[*].o.l: expected an array, found a number (test:1)");
    assert_eq!(transcoder.push(Bytes::new()), Err(error));
}

#[test]
fn broken_structure_is_found_wherever_it_is() {
    let op = object(
        vec![keep("a"), emit("o", "o", object(vec![keep("p")], Others::Keep, vec![]))],
        Others::Drop,
        vec![],
    );
    for broken in [
        "",
        " ",
        "{",
        r#"{"a"#,
        r#"{"a":"#,
        r#"{"a":1"#,
        r#"{"a":1,"#,
        r#"{"a":1,}"#,
        r#"{"a" 1}"#,
        r#"{"a":}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":1}}"#,
        r#"{"a":1} x"#,
        r#"{"a":[1}"#,
        r#"{"a":[1},"b":2]"#,
        r#"{"x":{"y":[[]}}"#,
        r#"{"x":"abc}"#,
        r#"{"o":{"p":1]}"#,
        r#"{"o":{,}}"#,
        r#"{"a":"x"y}"#,
        r#"{"a":"x""b":2}"#,
        r#"{"a":1"b":2}"#,
        r#"{"a":1:2}"#,
        r#"{"a":1{}}"#,
        r#"{"a":"x":2}"#,
        r#"{"a":nullx}"#,
    ] {
        fault(&op, broken);
    }
    let broken_text = [&b"{\"x\":\"\xff\"}"[..], b"{\"a\":\"\xc3\"}", b"{\"a\":1}\xe2\x82"];
    for broken in broken_text {
        let program = Arc::new(Program::compile(&op));
        let values = Arc::new(values());
        for size in [1, 2, 100] {
            let level = switchback_json::scan::Level::best();
            let chunks = broken.chunks(size);
            assert!(super::run(&program, &values, Bounds::default(), level, chunks).is_err());
        }
    }
}

#[test]
fn limits_hold_while_text_passes_by() {
    let op = object(
        vec![keep("a"), captured(member("c", MemberAction::Drop), 0)],
        Others::Drop,
        vec![close("d", first_of(vec![place(0, &[])], Absent::Omit))],
    );
    let json = Limits { depth: 3, key_bytes: 6, total_bytes: 60, ..Limits::STREAM };
    let bounds = Bounds { json, capture_bytes: 8, ..Bounds::default() };
    let limit = |body: &str| match translate(&op, bounds, body) {
        Err(Cause::Json(error)) => Some(error.kind),
        other => {
            other.expect("nothing else is wrong");
            None
        }
    };
    assert_eq!(limit(r#"{"a":[[1]],"b":[[]]}"#), None);
    assert_eq!(limit(r#"{"a":[[[1]]]}"#), Some(ErrorKind::Limit(Limit::Depth)));
    assert_eq!(limit(r#"{"b":[{"c":[]}]}"#), Some(ErrorKind::Limit(Limit::Depth)));
    assert_eq!(limit(r#"{"sevenxx":1}"#), Some(ErrorKind::Limit(Limit::KeyBytes)));
    assert_eq!(limit(r#"{"c":"123456"}"#), None);
    assert_eq!(limit(r#"{"c":"1234567"}"#), Some(ErrorKind::Limit(Limit::HeldBytes)));
    assert_eq!(limit(&format!(r#"{{"a":"{}"}}"#, "x".repeat(52))), None);
    assert_eq!(limit(&format!(r#"{{"a":"{}"}}"#, "x".repeat(53))), Some(ErrorKind::Limit(Limit::TotalBytes)));
    let deep = "[".repeat(100_000);
    assert_eq!(limit(&format!(r#"{{"a":{deep}"#)), Some(ErrorKind::Limit(Limit::Depth)));
}

#[test]
fn what_is_not_changed_goes_out_as_the_chunk_that_came_in() {
    let program = Arc::new(Program::compile(&ValueOp::Keep));
    let mut transcoder = Transcoder::new(program, Arc::new(values()), Bounds::default());
    for chunk in [" {\"a\": [1", "0, 2]} ", "\n"] {
        let chunk = Bytes::from_static(chunk.as_bytes());
        let sent = transcoder.push(chunk.clone()).expect("nothing is wrong");
        assert_eq!((sent.as_ptr(), sent.len()), (chunk.as_ptr(), chunk.len()));
    }
    assert_eq!(transcoder.finish(&mut Vec::new()), Ok(()));
    for broken in ["{\"a\": [1}", "{}{}", "{\"a\"", "x"] {
        fault(&ValueOp::Keep, broken);
    }
    assert_eq!(translated(&ValueOp::Keep, " {\"a\": 1}\n"), " {\"a\": 1}\n");
}

#[test]
fn memory_does_not_grow_with_the_body() {
    let inner = object(
        vec![captured(keep("id"), 0)],
        Others::Keep,
        vec![close("copy", first_of(vec![place(0, &[])], Absent::Omit))],
    );
    let program = Arc::new(Program::compile(&array(inner)));
    let mut transcoder = Transcoder::new(program, Arc::new(values()), Bounds::default());
    let mut out = Vec::new();
    transcoder.push_into(b"[", &mut out).expect("nothing is wrong");
    let mut after_few = 0;
    for at in 0..5000 {
        let element = format!("{}{{\"id\":{at},\"x{}\":[[],{{}}]}}", if at == 0 { "" } else { "," }, at % 7);
        out.clear();
        transcoder.push_into(element.as_bytes(), &mut out).expect("nothing is wrong");
        if at == 100 {
            after_few = transcoder.held_bytes();
        }
    }
    assert_eq!(transcoder.held_bytes(), after_few);
}

#[test]
fn a_plan_with_more_members_than_a_word_has_bits() {
    let names: Vec<_> = (0..150).map(|at| format!("m{at:03}")).collect();
    let mut members: Vec<_> = names.iter().map(|name| keep(name)).collect();
    members[149] = emit("m149", "last", ValueOp::Keep);
    let op = object(
        members,
        Others::Drop,
        vec![
            close("first", CloseFrom::Default { unless_written: 0, value: raw("0") }),
            close("lost", CloseFrom::Default { unless_written: 149, value: raw("0") }),
        ],
    );
    let body =
        |names: &[String]| names.iter().map(|name| format!("\"{name}\":1")).collect::<Vec<_>>().join(",");
    let kept = body(&names[1..149]);
    assert_eq!(
        translated(&op, &format!("{{{}}}", body(&names[1..]))),
        format!("{{{kept},\"last\":1,\"first\":0}}")
    );
    let twice = format!("{{{},\"m149\":1}}", body(&names));
    assert!(matches!(fault(&op, &twice), Cause::Json(_)));
}

/// As [`translated`], and as the reference says.
fn alike(op: &ValueOp, body: &str) -> String {
    let text = translated(op, body);
    assert_eq!(reference(op, &values(), body.as_bytes()).as_deref(), Ok(text.as_str()));
    text
}

fn choose(by: ChooseBy, arms: Vec<ValueOp>) -> ValueOp {
    ValueOp::Choose(Arc::new(ChooseOp { name: "Choice".into(), by, arms, origin: origin() }))
}

#[test]
fn a_shape_within_itself_goes_as_deep_as_the_body() {
    let again = Again::default();
    let list = array(ValueOp::Again(again.clone()));
    let members = vec![emit("v", "value", ValueOp::Keep), emit("kids", "children", list)];
    let op = object(members, Others::Drop, vec![]);
    again.tie(&op);
    let body = r#"{"v":1,"kids":[{"v":2,"kids":[{"v":3,"x":0,"kids":null},{"v":4}]},null],"x":[]}"#;
    let made =
        r#"{"value":1,"children":[{"value":2,"children":[{"value":3,"children":null},{"value":4}]},null]}"#;
    assert_eq!(alike(&op, body), made);
    let deep = |open: usize| r#"{"kids":["#.repeat(open) + &"]}".repeat(open);
    let limits = Limits { depth: 20, ..Limits::STREAM };
    let bounds = Bounds { json: limits, ..Bounds::default() };
    assert_eq!(translate(&op, bounds, &deep(10)), Ok(deep(10).replace("kids", "children")));
    let too_deep = translate(&op, bounds, &deep(11));
    assert!(matches!(too_deep, Err(Cause::Json(error)) if error.kind == ErrorKind::Limit(Limit::Depth)));
}

#[test]
fn a_shape_within_itself_may_move_to_another_level() {
    let again = Again::default();
    let moved = Captured { op: ValueOp::Again(again.clone()), ..place(0, &[]) };
    let moved = close("next", first_of(vec![moved], Absent::Omit));
    let links = close("links", CloseFrom::Object(vec![moved]));
    let next = captured(member("next", MemberAction::Drop), 0);
    let op = object(vec![emit("v", "value", ValueOp::Keep), next], Others::Drop, vec![links]);
    again.tie(&op);
    let body = r#"{"next":{"v":2,"next":{"next":null,"v":3}},"v":1}"#;
    let made =
        r#"{"value":1,"links":{"next":{"value":2,"links":{"next":{"value":3,"links":{"next":null}}}}}}"#;
    assert_eq!(alike(&op, body), made);
}

#[test]
fn an_object_is_told_by_a_constant_wherever_it_stands() {
    let values = [("\"cat\"", 0), ("\"dog\"", 1), ("7", 1)].map(|(text, at)| (raw(text), at));
    let arms = vec![
        object(vec![keep("kind"), emit("lives", "left", ValueOp::Keep)], Others::Drop, vec![]),
        object(vec![keep("kind"), emit("bark", "says", ValueOp::Keep)], Others::Drop, vec![]),
    ];
    let op = array(choose(ChooseBy::Constant { member: key("kind"), values: values.to_vec() }, arms));
    let body = r#"[{"lives":9,"kind":"cat"},{"kind":"d\u006fg","bark":[1, 2]},null,{"kind":7.0,"bark":0}]"#;
    let made = r#"[{"left":9,"kind":"cat"},{"kind":"d\u006fg","says":[1, 2]},null,{"kind":7.0,"says":0}]"#;
    assert_eq!(alike(&op, body), made);
    for none in [r#"[{"kind":"cow"}]"#, r#"[{"bark":1}]"#, r#"[{"kind":{}}]"#] {
        assert_eq!(fault(&op, none), Cause::NoAlternative, "{none}");
        assert_eq!(reference(&op, &self::values(), none.as_bytes()), Err(Cause::NoAlternative));
    }
    let scalar = fault(&op, "[1]");
    assert_eq!(scalar, Cause::Kind { expected: Kind::Object, found: Kind::Number });
    let bounds = Bounds { choice_bytes: 40, ..Bounds::default() };
    let long = format!(r#"[{{"kind":"cat","lives":"{}"}}]"#, "9".repeat(40));
    let held = translate(&op, bounds, &long);
    assert!(matches!(held, Err(Cause::Json(error)) if error.kind == ErrorKind::Limit(Limit::HeldBytes)));
}

#[test]
fn an_element_that_is_not_taken_is_left_out_or_replaced() {
    let digits = || conversion(ConversionKind::IntegerToString, Otherwise::Error);
    let element = || object(vec![emit("n", "m", digits()), keep("k")], Others::Refuse(ReasonId(5)), vec![]);
    let body = r#"[{"k":1,"n":"1"},{"k":2,"n":"one"}, 3 ,null,{"n":"4"}]"#;
    let dropping = array(attempt(element(), None));
    // The target takes no null here.
    assert_eq!(alike(&dropping, body), r#"[{"k":1,"m":1},{"m":4}]"#);
    assert_eq!(alike(&dropping, r#"[{"n":"x"},{"n":[]}]"#), "[]");
    let replacing = array(attempt(element(), Some(raw("{\"m\":0}"))));
    assert_eq!(alike(&replacing, body), r#"[{"k":1,"m":1},{"m":0},{"m":0},{"m":0},{"m":4}]"#);
    // A list within, and a member: what stands around it is as it was.
    let list = || emit("all", "every", array(attempt(element(), None)));
    let one = emit("one", "only", attempt(element(), None));
    let holder = object(vec![list(), one, keep("z")], Others::Drop, vec![]);
    let held = r#"{"z":1,"one":{"n":"x"},"all":[{"n":"x"},{"n":"1"}]}"#;
    assert_eq!(alike(&holder, held), r#"{"z":1,"every":[{"m":1}]}"#);
    // What is refused is refused, and what is no JSON is none.
    assert_eq!(fault(&dropping, r#"[{"x":0}]"#), Cause::Refused(ReasonId(5)));
    assert!(matches!(fault(&dropping, r#"[{"n":"1"]"#), Cause::Json(_)));
    // An element is held up to the bound on objects that are held, and no further.
    let bounds = Bounds { choice_bytes: 40, ..Bounds::default() };
    let long = format!(r#"[{{"k":"{}"}}]"#, "9".repeat(40));
    let held = translate(&dropping, bounds, &long);
    assert!(matches!(held, Err(Cause::Json(error)) if error.kind == ErrorKind::Limit(Limit::HeldBytes)));
    let many = format!("[{}]", vec![r#"{"k":1,"n":"x"}"#; 40].join(","));
    assert_eq!(translate(&dropping, bounds, &many), Ok("[]".to_owned()));
}

#[test]
fn an_object_is_told_by_a_member_that_it_alone_has() {
    let arms = vec![
        object(vec![emit("url", "href", ValueOp::Keep)], Others::Drop, vec![]),
        object(vec![emit("text", "body", ValueOp::Keep)], Others::Drop, vec![]),
    ];
    let op = choose(ChooseBy::OwnField(vec![Some(key("url")), None]), arms);
    assert_eq!(alike(&op, r#"{"x":1,"url":"u"}"#), r#"{"href":"u"}"#);
    assert_eq!(alike(&op, r#"{"url":null,"text":"t"}"#), r#"{"body":"t"}"#);
}

#[test]
fn the_values_of_a_map_are_rewritten_under_the_names_they_come_with() {
    let each = object(vec![emit("a", "b", ValueOp::Keep)], Others::Drop, vec![]);
    let map = || Others::Each(each.clone());
    let shadowed = member("made", MemberAction::Shadowed);
    let op = object(vec![keep("id"), shadowed], map(), vec![close("made", CloseFrom::Constant(raw("0")))]);
    let body = r#"{"x":{"a":1},"id":{"a":2},"e\u0073c":{"a":[]},"made":{"a":3},"n":null}"#;
    let made = r#"{"x":{"b":1},"id":{"a":2},"e\u0073c":{"b":[]},"n":null,"made":0}"#;
    assert_eq!(alike(&op, body), made);
    let within = object(vec![emit("map", "map", object(vec![], map(), vec![]))], Others::Drop, vec![]);
    assert_eq!(
        alike(&within, r#"{"map":{"k":{"a":1},"l":{"a":2}}}"#),
        r#"{"map":{"k":{"b":1},"l":{"b":2}}}"#
    );
    let refusing = object(vec![keep("id")], Others::Refuse(ReasonId(5)), vec![]);
    assert_eq!(alike(&refusing, r#"{"x":null,"id":1}"#), r#"{"id":1}"#);
    assert_eq!(fault(&refusing, r#"{"id":1,"x":0}"#), Cause::Refused(ReasonId(5)));
}
