//! Requests on routes, with scripted replies.

use super::pack::{CREATE, EDIT, GET, REFUSED, SEARCH, SEND, location, pack};
use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;
use switchback_plan::{Effect, Pack, RouteId, SideId};

fn start(pack: &Arc<Pack>, route: RouteId, request: Request) -> Run {
    let settings = Settings::new(pack, &Value::Object(switchback_json::Object::new())).unwrap();
    Run::new(Arc::clone(pack), SideId::OLD, route, request, Arc::new(settings), Limits::DOCUMENT)
}

fn request(path: &str, body: &str) -> Request {
    let path = if path.is_empty() { Vec::new() } else { vec![path.to_owned()] };
    Request { path, body: Bytes::copy_from_slice(body.as_bytes()), ..Request::default() }
}

fn reply(status: u16, body: &str) -> Event {
    Event::Reply(Reply { status, body: Bytes::copy_from_slice(body.as_bytes()), ..Reply::default() })
}

#[test]
fn operations_share_what_is_known_of_errors() {
    let rules = crate::diff::Rules::compile(&pack());
    assert_eq!(rules.errors(SideId::OLD), (6, 1));
}

/// Formats a step of a run as one line.
fn line(next: Result<Next, Fault>) -> String {
    let text = |body: &Option<Bytes>| {
        body.as_ref().map_or_else(String::new, |body| format!(" {}", String::from_utf8_lossy(body)))
    };
    match next {
        Ok(Next::Call(call)) => format!("{} {}{}", call.method, call.target, text(&call.body)),
        Ok(Next::Answer(answer)) => format!("= {}{}", answer.status, text(&answer.body)),
        Ok(Next::Refuse(refused)) => format!("refused: {}", refused.text),
        Ok(Next::Recall(_) | Next::Keep(_)) => "an archive".to_owned(),
        Ok(Next::Wait(wait)) => format!("waits {:?}", wait.pause),
        Err(fault) => format!("fault: {}", fault.kind.name()),
    }
}

/// Runs a request to its end. Each event must result in the step that its line describes.
fn check(route: RouteId, request: Request, steps: &[(Event, &str)]) {
    let mut run = start(&pack(), route, request);
    for (event, expected) in steps {
        assert_eq!(line(run.next(event.clone())), *expected);
    }
    assert_eq!(line(run.next(Event::Start)), "fault: internal", "the run is over");
}

#[test]
fn a_run_tells_whether_a_write_may_follow_and_whether_a_reply_is_read() {
    let seen = |route, body: &str, replies: &[(u16, &str)]| {
        let mut run = start(&pack(), route, request(if route == CREATE { "" } else { "7" }, body));
        let starts = std::iter::once(Event::Start);
        let mut seen = Vec::new();
        for event in starts.chain(replies.iter().map(|(status, body)| reply(*status, body))) {
            let Ok(Next::Call(call)) = run.next(event) else { panic!("a call was expected") };
            seen.push((call.method.to_string(), call.is_read, run.may_write()));
        }
        seen
    };
    let call = |method: &str, is_read, may_write| (method.to_owned(), is_read, may_write);
    // Read, then overwrite completely.
    assert_eq!(
        seen(EDIT, r#"{"title":"a"}"#, &[(200, r#"{"title":"b"}"#)]),
        [call("GET", true, true), call("PUT", false, false)]
    );
    // Create, modify by the new id, and read for the answer.
    assert_eq!(
        seen(CREATE, r#"{"title":"a"}"#, &[(200, r#"{"id":1}"#), (200, "")]),
        [call("POST", true, true), call("PUT", false, false), call("GET", true, false)]
    );
    // All outcomes of a decision count.
    assert_eq!(seen(SEARCH, "{}", &[]), [call("GET", true, true)]);
}

#[test]
fn a_pair_is_one_call_with_its_head_made_by_rules() {
    let mut sent = request("7", "");
    sent.query = Some("page=%31&page=2&other=x".into());
    sent.headers.insert("x-trace", "t1".parse().unwrap());
    let mut run = start(&pack(), GET, sent);
    let Ok(Next::Call(call)) = run.next(Event::Start) else { panic!("a pair makes a call") };
    assert_eq!(call.target, "/items/7?p=%31&p=2&max=5");
    assert_eq!(call.headers.get("x-trace").unwrap(), "t1");
    assert_eq!((call.effect, call.repeatable, call.step), (Effect::None, true, 0));
    let mut replied = Reply { status: 203, body: Bytes::from_static(b"{\"body\":1.50}"), ..Reply::default() };
    replied.headers.insert("age", "3".parse().unwrap());
    let Ok(Next::Answer(answer)) = run.next(Event::Reply(replied)) else { panic!("a reply is answered") };
    assert_eq!((answer.status, answer.body.as_deref()), (200, Some(&b"{\"text\":1.50}"[..])));
    assert_eq!(answer.headers.get("x-age").unwrap(), "3");
    assert_eq!(answer.headers.get("content-type").unwrap(), "application/json");
}

#[test]
fn a_part_that_no_contract_lists_is_no_answer() {
    let mut run = start(&pack(), GET, request("7", ""));
    assert!(matches!(run.next(Event::Start), Ok(Next::Call(_))));
    let part = Reply { status: 206, body: Bytes::from_static(b"{\"body\":1.50}"), ..Reply::default() };
    let fault = run.next(Event::Reply(part)).expect_err("a part is no answer");
    assert_eq!(fault.kind.name(), "upstream_broken");
}

#[test]
fn an_error_of_the_other_side_passes_in_the_form_of_this_one() {
    let called = "GET /items/7?max=5";
    check(
        GET,
        request("7", ""),
        &[
            (Event::Start, called),
            (reply(404, r#"{"reason":"No such item.","trace":1}"#), r#"= 404 {"error":"No such item."}"#),
        ],
    );
    for body in ["", "<html>", "[]", "{}", r#"{"other":1}"#, "null"] {
        check(
            GET,
            request("7", ""),
            &[
                (Event::Start, called),
                (reply(404, body), r#"= 404 {"error":"There is nothing at this address."}"#),
            ],
        );
    }
}

#[test]
fn a_reply_that_cannot_be_used_is_the_upstreams_fault() {
    let called = "GET /items/7?max=5";
    for bad in [
        reply(200, ""),
        reply(200, "{\"body\":"),
        reply(200, "[]"),
        reply(500, "{}"),
        FailKind::Broken.into(),
    ] {
        check(GET, request("7", ""), &[(Event::Start, called), (bad, "fault: upstream_broken")]);
    }
    check(
        GET,
        request("7", ""),
        &[(Event::Start, called), (FailKind::Timeout.into(), "fault: upstream_timeout")],
    );
    check(
        GET,
        request("7", ""),
        &[(Event::Start, called), (FailKind::Unreachable.into(), "fault: upstream_unreachable")],
    );
}

#[test]
fn a_body_that_cannot_be_used_is_the_clients_fault_and_nothing_is_called() {
    for body in ["", "{", "[]", "{\"text\":1,\"text\":2}"] {
        check(SEND, request("7", body), &[(Event::Start, "fault: bad_body")]);
    }
    check(
        SEND,
        request("7", "{\"text\":\"a\"}"),
        &[(Event::Start, "PUT /items/7/send {\"text\":\"a\"}"), (reply(204, ""), "= 201")],
    );
    check(
        SEND,
        request("7", "{\"text\":\"a\",\"colour\":1}"),
        &[(Event::Start, "refused: Colours are gone.")],
    );
}

#[test]
fn a_path_value_that_would_change_the_address_is_not_found() {
    for value in ["..", ".", ""] {
        check(SEND, request(value, "{}"), &[(Event::Start, "fault: not_found")]);
    }
    check(
        SEND,
        request("a/b c", "{}"),
        &[(Event::Start, "PUT /items/a%2Fb%20c/send {}"), (reply(500, "{\"x\":1}"), "= 500 {\"x\":1}")],
    );
}

#[test]
fn a_check_that_fails_answers_before_anything_is_called() {
    let expected = "= 400 {\"error\":\"Give a title, {who}.\"}";
    check(EDIT, request("7", "{\"title\":null}"), &[(Event::Start, expected)]);
    let spanish = Request { language: 1, ..request("7", "{}") };
    check(EDIT, spanish, &[(Event::Start, "= 400 {\"error\":\"Dé un título, {who}.\"}")]);
}

#[test]
fn an_edit_is_laid_over_the_old_value_and_makes_up_only_what_neither_has() {
    let edits = [
        (
            r#"{"title":"Tea"}"#,
            r#"{"author":"Ana","city":"Olinda","x":1}"#,
            r#"{"author":"Ana","city":"Olinda","title":"Tea","kind":"note"}"#,
        ),
        (
            r#"{"author":"Bo"}"#,
            r#"{"title":null,"city":null,"kind":"old"}"#,
            r#"{"title":"","kind":"old","author":"Bo"}"#,
        ),
        (r#"{"title":"Tea"}"#, "{}", r#"{"title":"Tea","author":"nobody","kind":"note"}"#),
    ];
    for (body, old, sent) in edits {
        check(
            EDIT,
            request("7", body),
            &[
                (Event::Start, "GET /items/7"),
                (reply(200, old), &format!("PUT /items/7 {sent}")),
                (reply(200, "not json, and nobody reads it"), "= 204"),
            ],
        );
    }
}

#[test]
fn a_failed_step_answers_its_own_status_and_error() {
    check(
        EDIT,
        request("9", "{\"title\":\"T\"}"),
        &[
            (Event::Start, "GET /items/9"),
            (reply(404, "{\"reason\":\"Gone.\"}"), "= 404 {\"error\":\"Gone.\"}"),
        ],
    );
    check(
        EDIT,
        request("9", "{\"title\":\"T\"}"),
        &[(Event::Start, "GET /items/9"), (reply(200, "[]"), "fault: upstream_broken")],
    );
    check(
        EDIT,
        request("9", "{\"title\":\"T\"}"),
        &[(Event::Start, "GET /items/9"), (reply(302, ""), "fault: upstream_broken")],
    );
}

#[test]
fn a_creation_fills_its_body_and_shows_what_it_made() {
    check(
        CREATE,
        request("", r#"{"title":"Tea"}"#),
        &[
            (Event::Start, r#"POST /items {"title":"Tea"}"#),
            (reply(201, r#"{"id":"a b"}"#), r#"PUT /items/a%20b {"title":"Tea","tags":[]}"#),
            (reply(200, ""), "GET /items/a%20b"),
            (
                reply(200, r#"{"id":"a b","big":12345678901234567890}"#),
                r#"= 201 [{"id":"a b","big":12345678901234567890}]"#,
            ),
        ],
    );
    check(
        CREATE,
        request("", r#"{"title":"Tea","tags":null}"#),
        &[
            (Event::Start, r#"POST /items {"title":"Tea"}"#),
            (reply(201, r#"{"id":7}"#), r#"PUT /items/7 {"title":"Tea","tags":null}"#),
            (reply(200, ""), "GET /items/7"),
            (FailKind::Timeout.into(), r#"= 201 [{"id":7}]"#),
        ],
    );
}

#[test]
fn a_failure_after_a_write_carries_the_headers_that_the_route_adds() {
    let mut run = start(&pack(), CREATE, request("", r#"{"title":"Tea"}"#));
    run.next(Event::Start).unwrap();
    run.next(reply(201, "{\"id\":7}")).unwrap();
    let Ok(Next::Answer(answer)) = run.next(reply(423, "{\"reason\":\"Locked.\"}")) else {
        panic!("the error passes")
    };
    assert_eq!(answer.headers.get("x-created-id").unwrap(), "7");
    assert_eq!((answer.status, answer.body.as_deref()), (423, Some(&b"{\"error\":\"Locked.\"}"[..])));

    let mut run = start(&pack(), CREATE, request("", r#"{"title":"Tea"}"#));
    run.next(Event::Start).unwrap();
    run.next(reply(201, "{\"id\":7}")).unwrap();
    let fault = run.next(FailKind::Timeout.into()).unwrap_err();
    assert_eq!(fault.headers.unwrap().get("x-created-id").unwrap(), "7");
}

#[test]
fn a_call_that_an_earlier_reply_makes_impossible_has_failed() {
    for made in ["{}", "{\"id\":null}", "{\"id\":[1]}", "{\"id\":\"..\"}", "{\"id\":\"\"}", ""] {
        check(
            CREATE,
            request("", r#"{"title":"Tea"}"#),
            &[(Event::Start, r#"POST /items {"title":"Tea"}"#), (reply(201, made), "fault: upstream_broken")],
        );
    }
}

#[test]
fn a_write_is_remembered_under_its_values_and_the_same_request_finds_it_again() {
    let key_of = |route, body: &str| match start(&pack(), route, request("", body)).next(Event::Start) {
        Ok(Next::Call(call)) => call.resume_key,
        other => panic!("{other:?}"),
    };
    let first = key_of(CREATE, r#"{"title":"Tea"}"#).unwrap();
    assert_eq!(key_of(CREATE, r#"{ "title" : "Tea", "tags":[1]}"#), Some(first.clone()));
    assert_ne!(key_of(CREATE, r#"{"title":"Coffee"}"#), Some(first));
}

#[test]
fn pages_are_read_until_something_is_found_or_the_list_or_the_bound_ends() {
    let page = |at: u32| format!("GET /items?owner=7&page={at}");
    let closed = r#"[{"id":1,"open":false,"owner":7},{"id":2,"open":true,"owner":8}]"#;
    let open = r#"[{"id":3,"open":true,"owner":7,"state":"new","at":"2"},{"id":4,"open":true,"owner":7,"state":"done","at":"1"}]"#;
    check(
        SEARCH,
        request("7", ""),
        &[
            (Event::Start, &page(0)),
            (reply(200, closed), &page(1)),
            (reply(200, open), "POST /items/3/run"),
            (reply(204, ""), r#"= 200 {"ran":3,"say":"Give a title, 3."}"#),
        ],
    );
    check(
        SEARCH,
        request("7", ""),
        &[
            (Event::Start, &page(0)),
            (reply(200, closed), &page(1)),
            (reply(200, closed), &page(2)),
            (reply(200, closed), "refused: Nothing is open."),
        ],
    );
    check(
        SEARCH,
        request("7", ""),
        &[(Event::Start, &page(0)), (reply(200, "[]"), "refused: Nothing is open.")],
    );
    check(
        SEARCH,
        request("7", ""),
        &[(Event::Start, &page(0)), (reply(200, "{}"), "fault: upstream_broken")],
    );
    check(
        SEARCH,
        request("7", ""),
        &[
            (Event::Start, &page(0)),
            (reply(200, closed), &page(1)),
            (reply(503, ""), "= 503 {\"error\":\"The service is busy. Try again later.\"}"),
        ],
    );
}

#[test]
fn a_decision_takes_the_first_row_that_matches() {
    let found = |state: &str| format!(r#"[{{"id":5,"open":true,"owner":7,"state":{state}}}]"#);
    let called = "GET /items?owner=7&page=0";
    for state in ["\"done\"", "1", "1.0"] {
        check(SEARCH, request("7", ""), &[(Event::Start, called), (reply(200, &found(state)), "= 200 5")]);
        check(
            SEARCH,
            request("7", "{\"force\":0}"),
            &[
                (Event::Start, called),
                (reply(200, &found(state)), "POST /items/5/run"),
                (reply(400, ""), "refused: Colours are gone."),
            ],
        );
    }
    check(
        SEARCH,
        request("7", ""),
        &[(Event::Start, called), (reply(200, &found("null")), "refused: Nothing is open.")],
    );
}

#[test]
fn a_refusal_after_a_write_says_that_something_was_written() {
    let found = r#"[{"id":5,"open":true,"owner":7,"state":"new"}]"#;
    let refusal_after = |last: Event| {
        let mut run = start(&pack(), SEARCH, request("7", ""));
        run.next(Event::Start).unwrap();
        run.next(reply(200, found)).unwrap();
        match run.next(last) {
            Ok(Next::Refuse(refused)) => refused.wrote,
            other => panic!("{other:?}"),
        }
    };
    assert!(refusal_after(FailKind::Timeout.into()), "the write may have happened");
    assert!(!refusal_after(reply(400, "")), "the other side said that it did not");
}

#[test]
fn a_refused_operation_is_refused_in_the_clients_language() {
    check(REFUSED, request("7", ""), &[(Event::Start, "refused: Colours are gone.")]);
    let spanish = Request { language: 1, ..request("7", "") };
    check(REFUSED, spanish, &[(Event::Start, "refused: Ya no hay colores.")]);
}

#[test]
fn a_reason_without_a_text_in_a_language_is_told_in_the_default_one() {
    assert_eq!(text(&pack(), switchback_plan::ReasonId(1), 1, &[]), "Nothing is open.");
    let with = [("who", "{who}".to_owned())];
    assert_eq!(text(&pack(), switchback_plan::ReasonId(0), 0, &with), "Give a title, {who}.");
    assert_eq!(pack().errors[0].body("internal", 500, "a \"b\"\n"), br#"{"error":"a \"b\"\n"}"#);
}

#[test]
fn integers_that_a_double_cannot_hold_are_told_apart() {
    let mut context = context::Context::default();
    let items = br#"[{"id":9007199254740993},{"id":9007199254740992},{"id":1.0}]"#;
    context.set("items", Value::parse(items, &Limits::DOCUMENT).unwrap());
    context.set("one", Value::parse(b"9007199254740993", &Limits::DOCUMENT).unwrap());
    let found = |text: &str| {
        let matches = context.matches(&location(text));
        matches.iter().map(|value| value.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("$.items[?@.id == $.one].id"), "9007199254740993");
    assert_eq!(found("$.items[?@.id == 1].id"), "1.0");
    assert_eq!(found("$.items[-1].id"), "1.0");
    assert_eq!(found("$.items[?@.nothing]"), "");
}

#[test]
fn settings_are_checked_by_name_and_kind_and_told_when_missing() {
    let given =
        |json: &str| Settings::new(&pack(), &Value::parse(json.as_bytes(), &Limits::DOCUMENT).unwrap());
    assert_eq!(given(r#"{"notes":{"max":9}}"#).unwrap().get(0).unwrap()[..], *b"9");
    assert_eq!(given(r#"{"notes.max":9}"#).unwrap().missing(&pack()), Vec::<&str>::new());
    let errors = given(r#"{"notes":{"max":"9","min":1},"x":2}"#).unwrap_err();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "the setting `notes.max` must be an integer",
            "the pack has no setting `notes.min`",
            "the pack has no setting `x`",
        ]
    );
    assert_eq!(Settings::default().missing(&pack()), Vec::<&str>::new());
    let mut demanding = pack();
    Arc::get_mut(&mut demanding).expect("made for this test").settings[0].is_required = true;
    assert_eq!(Settings::default().missing(&demanding), ["notes.max"]);
}

/// Generates any event that a network could cause.
fn any_event() -> impl Strategy<Value = Event> {
    let body = prop_oneof![
        crate::translate::testing::any_text(),
        Just(Vec::new()),
        proptest::collection::vec(any::<u8>(), 0..20),
        Just(br#"[{"id":3,"open":true,"owner":7,"state":"new","at":"2"}]"#.to_vec()),
        Just(br#"{"id":3,"title":"x","reason":"y"}"#.to_vec()),
    ];
    let replied = (prop_oneof![Just(200u16), 100u16..600, Just(0), Just(u16::MAX)], body)
        .prop_map(|(status, body)| Event::Reply(Reply { status, body: body.into(), ..Reply::default() }));
    let failed = proptest::sample::select(vec![FailKind::Unreachable, FailKind::Timeout, FailKind::Broken]);
    prop_oneof![8 => replied, 1 => failed.prop_map(Event::from), 1 => Just(Event::Start)]
}

proptest! {
    #[test]
    fn no_client_and_no_upstream_makes_a_run_panic_or_go_on_for_ever(
        route in 0u16..7,
        path in proptest::collection::vec("\\PC{0,6}", 0..2),
        query in "[a-z=&%+0-9]{0,16}",
        body in prop_oneof![crate::translate::testing::any_text(), Just(br#"{"title":"x","text":"y"}"#.to_vec())],
        language in 0usize..4,
        events in proptest::collection::vec(any_event(), 0..12),
    ) {
        let sent = Request { path, query: Some(query), body: body.into(), language, ..Request::default() };
        let mut run = start(&pack(), RouteId(route), sent);
        let mut over = false;
        let mut calls = 0;
        for event in std::iter::once(Event::Start).chain(events) {
            let next = run.next(event);
            if over {
                prop_assert!(next.is_err(), "a run that is over stays over");
            }
            match next {
                Ok(Next::Call(call)) => {
                    calls += 1;
                    prop_assert!(call.target.starts_with("/items") && !call.target.contains(".."));
                    prop_assert!(call.body.is_none_or(|body| switchback_json::validate(&body, &Limits::DOCUMENT).is_ok()));
                }
                Ok(Next::Answer(answer)) => {
                    over = true;
                    prop_assert!(answer.body.is_none_or(|body| switchback_json::validate(&body, &Limits::DOCUMENT).is_ok()));
                }
                Ok(Next::Refuse(_) | Next::Recall(_) | Next::Keep(_) | Next::Wait(_)) | Err(_) => over = true,
            }
        }
        prop_assert!(calls <= 5);
    }
}
