use super::*;
use std::path::Path;
use std::sync::Arc;
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_engine::har::{self, Gateway, Request, Response};
use switchback_engine::redact::Salt;
use switchback_engine::translate::Settings;
use switchback_plan::{Pack, SideId};

fn pack() -> Arc<Pack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
    let source = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
    compile(&source).pack.expect("the pack compiles")
}

fn replayer() -> Replayer {
    let pack = pack();
    let fronts = Fronts::of(&pack);
    Replayer::new(pack, Settings::default(), fronts, Salt::new([7; 32]))
}

fn at(url: &str) -> Exchange {
    let request = Request { method: "GET".into(), url: url.into(), ..Request::default() };
    Exchange { request, ..Exchange::default() }
}

fn answered(status: u16, body: &str) -> Option<Response> {
    let body = bytes::Bytes::copy_from_slice(body.as_bytes());
    Some(Response { status, headers: Vec::new(), body: body.into() })
}

#[test]
fn the_name_of_a_side_in_a_path_says_where_the_operation_begins() {
    let fronts = Fronts::of(&pack());
    let found = |url: &str| fronts.find(&at(url));
    assert_eq!(found("https://x.example/v2/a/7?b=1"), Some((SideId::OLD, "/a/7?b=1".into())));
    assert_eq!(found("https://x.example/api/v3/a"), Some((SideId::NEW, "/a".into())));
    assert_eq!(found("/v2/a"), Some((SideId::OLD, "/a".into())));
    for url in
        ["https://x.example/a", "https://v2.example/a", "https://x.example/a?/v2/b", "/v2", "about:blank", ""]
    {
        assert_eq!(found(url), None, "{url}");
    }
}

#[test]
fn stated_prefixes_are_the_only_ones_that_count_and_the_longest_wins() {
    let mut fronts = Fronts::of(&pack());
    fronts.add("https://old.example/api=v2").unwrap();
    fronts.add("https://old.example/api/next/=v3").unwrap();
    let found = |url: &str| fronts.find(&at(url));
    assert_eq!(found("https://old.example/api/a"), Some((SideId::OLD, "/a".into())));
    assert_eq!(found("https://old.example/api/next/a?b"), Some((SideId::NEW, "/a?b".into())));
    assert_eq!(found("https://old.example/apia"), None);
    assert_eq!(found("https://other.example/v2/a"), None);
    for wrong in ["https://old.example", "/a=v9", "a=v2"] {
        assert!(fronts.add(wrong).is_err(), "{wrong}");
    }
}

/// An exchange as the gateway records it, with the calls given as method and address, body, reply.
fn recorded(
    line: (&str, &str),
    answer: Option<Response>,
    calls: &[(&str, &str, &str, Option<Response>)],
) -> Exchange {
    let body = |text: &str| har::Body::from(bytes::Bytes::copy_from_slice(text.as_bytes()));
    let call = |(method, url, sent, reply): &(&str, &str, &str, Option<Response>)| Exchange {
        request: Request {
            method: (*method).into(),
            url: (*url).into(),
            headers: Vec::new(),
            body: body(sent),
            masked: Vec::new(),
        },
        response: reply.clone(),
        ..Exchange::default()
    };
    Exchange {
        request: Request {
            method: line.0.into(),
            url: format!("http://g/v2{}", line.1),
            ..Request::default()
        },
        response: answer,
        gateway: Some(Gateway {
            side: "v2".into(),
            target: line.1.into(),
            calls: calls.iter().map(call).collect(),
            ..Gateway::default()
        }),
        ..Exchange::default()
    }
}

const AGENTS: &str = r#"[{"id":1,"name":"Ana"}]"#;

#[test]
fn the_same_pack_makes_the_same_of_a_recorded_exchange() {
    let calls = [("GET", "/agents", "", answered(200, AGENTS))];
    let outcome = replayer().offline(&recorded(("GET", "/agents"), answered(200, AGENTS), &calls));
    assert_eq!(outcome.verdict, Verdict::Same);
    assert_eq!(
        (outcome.operation.as_deref(), outcome.calls),
        (Some("v2 GET /agents"), vec!["GET /agents".to_owned()])
    );
}

fn changes(outcome: &Outcome) -> Vec<String> {
    match &outcome.verdict {
        Verdict::Changed(changes) => changes.iter().map(ToString::to_string).collect(),
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn another_answer_is_a_change_at_its_place() {
    let calls = [("GET", "/agents", "", answered(200, AGENTS))];
    let other = AGENTS.replace("Ana", "Bea");
    let outcome = replayer().offline(&recorded(("GET", "/agents"), answered(200, &other), &calls));
    let changes = changes(&outcome);
    assert!(changes.len() == 1 && changes[0].contains("$[0].name"), "{changes:?}");
}

#[test]
fn calls_that_are_made_otherwise_are_named() {
    let replayer = replayer();
    let elsewhere = [("GET", "/people", "", answered(200, AGENTS))];
    let outcome = replayer.offline(&recorded(("GET", "/agents"), answered(200, AGENTS), &elsewhere));
    assert_eq!(changes(&outcome), ["call 1 is new: GET /agents"]);
    let more = [("GET", "/agents", "", answered(200, AGENTS)), ("GET", "/agents/1", "", answered(200, "{}"))];
    let outcome = replayer.offline(&recorded(("GET", "/agents"), answered(200, AGENTS), &more));
    assert_eq!(changes(&outcome), ["no longer called: GET /agents/1"]);
    let mut sent = recorded(
        ("POST", "/chats/7/messages"),
        answered(201, ""),
        &[("POST", "/chats/7/messages", r#"{"text":"hello","isInternal":false}"#, answered(200, "{}"))],
    );
    sent.request.body = har::Body::Whole(r#"{"text":"bye","isInternal":false}"#.into());
    let changes = changes(&replayer.offline(&sent));
    assert!(changes.len() == 1 && changes[0].starts_with("call 1, POST /chats/7/messages: "), "{changes:?}");
    assert!(changes[0].contains("$.text"), "{changes:?}");
}

#[test]
fn what_was_not_recorded_is_unknown_and_not_the_same() {
    let replayer = replayer();
    let unknown = |exchange: &Exchange| match replayer.offline(exchange).verdict {
        Verdict::Unknown(why) => why,
        verdict => panic!("{verdict:?}"),
    };
    assert_eq!(unknown(&at("https://x.example/logo.png")), Unknown::Foreign);
    assert_eq!(unknown(&at("https://x.example/v2/agents")), Unknown::NoReply);
    let mut bodiless = at("https://x.example/v2/chats/7/messages");
    bodiless.request.method = "POST".into();
    bodiless.request.body = har::Body::Missing;
    assert_eq!(unknown(&bodiless), Unknown::NoRequestBody);
    let calls = [("GET", "/agents", "", answered(200, AGENTS))];
    assert_eq!(unknown(&recorded(("GET", "/agents"), None, &calls)), Unknown::NoAnswer);
    let forwarded = recorded(("GET", "/chats/7/feedback"), answered(200, ""), &[]);
    assert_eq!(unknown(&forwarded), Unknown::Forwarded);
}

#[test]
fn masks_of_a_recording_do_not_count_as_changes() {
    let masked = AGENTS.replace("Ana", "***");
    let calls = [("GET", "/agents", "", answered(200, AGENTS))];
    let outcome = replayer().offline(&recorded(("GET", "/agents"), answered(200, &masked), &calls));
    assert_eq!(outcome.verdict, Verdict::Same);
}

#[test]
fn a_reply_that_breaks_the_plan_is_a_fault() {
    let calls = [("GET", "/agents", "", answered(200, "[{\"id\":"))];
    let outcome = replayer().offline(&recorded(("GET", "/agents"), answered(200, AGENTS), &calls));
    assert!(changes(&outcome)[0].starts_with("cannot be answered: upstream_broken"), "{outcome:?}");
}
