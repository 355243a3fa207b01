//! Examples of a pack as tests: passing ones, and the messages of failing ones.

use super::pack::pack;
use super::*;
use crate::translate::example::{Report, run_all};
use std::sync::Arc;
use switchback_plan::convert::ConversionKind;
use switchback_plan::{
    Example, ExampleCall, ExampleEnd, ExampleKind, Exchange, Loss, Pack, RouteExample, ShapeExample,
    ShapePlan, SideId, ValueOp, Wanted,
};

/// Parses `GET /items/7 {"body": "sent"} -> 200 {"reply": 1}`; both JSON texts are optional.
fn scripted(line: &str) -> ExampleCall {
    let (call, reply) = line.split_once(" -> ").unwrap();
    let mut parts = call.splitn(3, ' ');
    let (status, reply) =
        reply.split_once(' ').map_or((reply, None), |(status, body)| (status, Some(raw(body))));
    ExampleCall {
        method: parts.next().unwrap().parse().unwrap(),
        target: parts.next().unwrap().into(),
        headers: Vec::new(),
        reply_headers: Vec::new(),
        body: parts.next().map(raw),
        status: status.parse().unwrap(),
        reply,
        origin: origin(),
    }
}

fn answered(status: u16, body: Wanted) -> ExampleEnd {
    ExampleEnd::Answer { status, headers: Vec::new(), body }
}

fn json(text: &str) -> Wanted {
    Wanted::Json(raw(text))
}

fn example(request: &str, calls: &[&str], end: ExampleEnd) -> RouteExample {
    let mut parts = request.splitn(3, ' ');
    RouteExample {
        serves: SideId::OLD,
        method: parts.next().unwrap().parse().unwrap(),
        target: parts.next().unwrap().into(),
        headers: Vec::new(),
        body: parts.next().map(raw),
        config: Vec::new(),
        archived: Vec::new(),
        exchange: Exchange {
            calls: calls.iter().map(|line| scripted(line)).collect(),
            keeps: Vec::new(),
            end,
        },
        again: None,
    }
}

fn report(kinds: Vec<ExampleKind>) -> Report {
    report_of(kinds, |_| {})
}

fn report_of(kinds: Vec<ExampleKind>, change: impl FnOnce(&mut Pack)) -> Report {
    let mut pack = Arc::into_inner(pack()).unwrap();
    pack.examples = kinds.into_iter().map(|kind| Example { kind, origin: origin() }).collect();
    change(&mut pack);
    run_all(&Arc::new(pack))
}

fn problems(example: RouteExample) -> Vec<String> {
    let report = report(vec![ExampleKind::Route(Box::new(example))]);
    report.outcomes[0].problems.iter().map(|problem| problem.to_string()).collect()
}

#[test]
fn an_example_that_says_what_happens_holds() {
    let get = example(
        "GET /notes/7?page=2",
        &[r#"GET /items/7?max=5&p=2 -> 200 {"body":"x"}"#],
        answered(200, json(r#"{"text":"x"}"#)),
    );
    assert_eq!(problems(get), Vec::<String>::new());
    let refused = example("DELETE /notes/7", &[], ExampleEnd::Refused("no_colour".into()));
    assert_eq!(problems(refused), Vec::<String>::new());
    let nowhere =
        example("GET /nowhere", &[], answered(404, json(r#"{"error":"There is nothing at this address."}"#)));
    assert_eq!(problems(nowhere), Vec::<String>::new());
    let wrong = example("PATCH /notes/7", &[], answered(405, Wanted::Open));
    assert_eq!(problems(wrong), Vec::<String>::new());
    let broken = example(
        "POST /notes/7/send [1]",
        &[],
        answered(400, json(r#"{"error":"The body is not of the expected form."}"#)),
    );
    assert_eq!(problems(broken), Vec::<String>::new());
}

#[test]
fn an_example_that_does_not_hold_says_where() {
    let called = r#"GET /items/7?max=5 -> 200 {"body":"x"}"#;
    let at = "test.map.yaml:1: ";
    let checks: [(RouteExample, &[&str]); 8] = [
        (
            example("GET /notes/7", &[called], answered(200, json(r#"{"text":"y","more":[1]}"#))),
            &[
                "the body of the answer is another one\n    $.text: expected \"y\", found \"x\"\n    $.more: expected [1], found nothing",
            ],
        ),
        (
            example("GET /notes/7", &[called], answered(201, Wanted::Open)),
            &["expected the status 201, found 200 {\"text\":\"x\"}"],
        ),
        (
            example("GET /notes/7", &[], answered(200, Wanted::None)),
            &["a call that is not expected: GET /items/7?max=5"],
        ),
        (
            example("GET /notes/7", &["GET /items/8?max=5 -> 200"], answered(200, Wanted::None)),
            &["expected the call GET /items/8?max=5, found GET /items/7?max=5"],
        ),
        (
            example("DELETE /notes/7", &[called], ExampleEnd::Refused("none_open".into())),
            &[
                "a call that is never made: GET /items/7?max=5",
                "expected a refusal with `none_open`, found one with `no_colour`",
            ],
        ),
        (
            example(
                "POST /notes/7/send {\"text\":\"a\"}",
                &["PUT /items/7/send {\"text\":\"b\"} -> 200"],
                answered(201, Wanted::None),
            ),
            &["the body of PUT /items/7/send is another one\n    $.text: expected \"b\", found \"a\""],
        ),
        (
            example("GET /notes/7", &["GET /items/7?max=5 -> 200"], answered(200, Wanted::None)),
            &[
                "the request ends in a fault: upstream_broken: $: unexpected end at byte 0, calling GET … (test.map.yaml:1)",
            ],
        ),
        (
            RouteExample {
                config: vec![("notes.min".into(), raw("1"))],
                ..example("GET /notes/7", &[called], answered(200, Wanted::Open))
            },
            &["the pack has no setting `notes.min`"],
        ),
    ];
    for (example, expected) in checks {
        let expected: Vec<String> = expected.iter().map(|line| format!("{at}{line}")).collect();
        assert_eq!(problems(example), expected);
    }
}

#[test]
fn a_repeated_request_goes_on_behind_what_was_written() {
    let first = Exchange {
        calls: vec![
            scripted(r#"POST /items {"title":"Tea"} -> 201 {"id":7}"#),
            scripted(r#"PUT /items/7 {"title":"Tea","tags":[]} -> 423 {"reason":"Locked."}"#),
        ],
        keeps: Vec::new(),
        end: ExampleEnd::Answer {
            status: 423,
            headers: vec![("x-created-id".into(), "7".into())],
            body: json(r#"{"error":"Locked."}"#),
        },
    };
    let second = Exchange {
        calls: vec![
            scripted(r#"PUT /items/7 {"title":"Tea","tags":[]} -> 200"#),
            scripted(r#"GET /items/7 -> 200 {"id":7}"#),
        ],
        keeps: Vec::new(),
        end: answered(201, json(r#"[{"id":7}]"#)),
    };
    let request = example(r#"POST /notes {"title":"Tea"}"#, &[], answered(0, Wanted::None));
    let both = RouteExample { exchange: first, again: Some(second), ..request };
    assert_eq!(problems(both), Vec::<String>::new());
}

#[test]
fn open_places_are_filled_and_ends_that_no_example_reaches_are_listed() {
    let get =
        example("GET /notes/7", &[r#"GET /items/7?max=5 -> 200 {"body":1.50}"#], answered(200, Wanted::Open));
    let found = report(vec![ExampleKind::Route(Box::new(get))]);
    assert_eq!(
        found.outcomes[0].found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [r#"{"text":1.50}"#]
    );
    let missed: Vec<String> =
        found.unreached.iter().map(|end| format!("{} {}", end.route.0, end.reach)).collect();
    assert_eq!(
        missed,
        [
            "1 check 1 failing",
            "1 the answer",
            "2 PUT … failing",
            "2 GET … failing",
            "2 the answer",
            "3 row 1 (`none`)",
            "3 row 2 (`skip`)",
            "3 row 3 (`run`)",
            "3 outcome `skip`",
            "3 POST … failing",
            "3 outcome `run`",
            "3 outcome `none`",
            "4 the refusal",
            "5 the answer",
        ]
    );
    assert!(!found.is_good());
}

/// Adds a shape with a renamed and converted member, a member that the old side lacks, and a
/// generated member on each side.
fn with_shape(pack: &mut Pack) {
    let to_old = shape().emit("id", "id", convert(ConversionKind::IntegerToString, false)).emit(
        "body",
        "text",
        ValueOp::Keep,
    );
    let to_new = shape()
        .emit("id", "id", convert(ConversionKind::IntegerToString, true))
        .emit("text", "body", ValueOp::Keep)
        .close("format", switchback_plan::CloseFrom::Constant(raw("\"plain\"")));
    let loss = |place: &str| Loss {
        side: "new".into(),
        place: place.into(),
        instead: None,
        unless_found: false,
        partly: false,
        narrow: None,
        origin: origin(),
    };
    let plan = |op, losses| Some(ShapePlan { op, losses, supplied: Vec::new() });
    pack.shapes.push(switchback_plan::Shape {
        name: "Note".into(),
        to: [plan(to_old.op(), vec![loss("$.format"), loss("$.rank")]), plan(to_new.op(), Vec::new())],
        origin: origin(),
    });
}

fn shape_problems(source: &str, target: &str, lost: &[&str]) -> Vec<String> {
    let example = ShapeExample {
        shape: "Note".into(),
        source: SideId::NEW,
        values: [json(target), json(source)],
        lost: lost.iter().map(|place| (*place).to_owned()).collect(),
    };
    let report = report_of(vec![ExampleKind::Shape(example)], with_shape);
    report.outcomes[0].problems.iter().map(|problem| problem.to_string()).collect()
}

#[test]
fn a_shape_runs_there_and_back_and_its_losses_are_those_listed() {
    let source = r#"{"id":"7","body":"x","format":"plain","rank":2,"odd":null}"#;
    assert_eq!(
        shape_problems(source, r#"{"id":7,"text":"x"}"#, &["$.format", "$.rank"]),
        Vec::<String>::new()
    );
    assert_eq!(
        shape_problems(source, r#"{"id":7,"text":"x"}"#, &["$.rank", "$.body"]),
        [
            "test.map.yaml:1: `$.format` is lost, but not listed under `lost`",
            "test.map.yaml:1: `$.body` is listed under `lost`, but comes back",
        ]
    );
    assert_eq!(
        shape_problems(source, r#"{"id":8,"text":"x"}"#, &["$.format", "$.rank"]),
        ["test.map.yaml:1: the other side's value is another one\n    $.id: expected 8, found 7",]
    );
    assert_eq!(
        shape_problems(r#"{"id":true}"#, "{}", &[]),
        [
            "test.map.yaml:1: the shape `Note` does not take the value: $.id: `integer_to_string` expects a string of digits (test.map.yaml:1)",
        ]
    );
}
