use super::*;
use std::path::Path;
use std::sync::Arc;
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_engine::har::{self, Gateway, Request, Response, Shadow};
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
    let fronts = Fronts::from_pack(&pack);
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
    let fronts = Fronts::from_pack(&pack());
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
    let mut fronts = Fronts::from_pack(&pack());
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

/// Returns an exchange as the gateway records it. Calls are given as method and address, body,
/// reply.
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
    assert_eq!(outcome.verdict, ReplayVerdict::Same);
    assert_eq!(
        (outcome.operation.as_deref(), outcome.calls),
        (Some("v2 GET /agents"), vec!["GET /agents".to_owned()])
    );
}

fn changes(outcome: &ReplayOutcome) -> Vec<String> {
    match &outcome.verdict {
        ReplayVerdict::Changed(changes) => changes.iter().map(ToString::to_string).collect(),
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
        ReplayVerdict::Unknown(why) => why,
        verdict => panic!("{verdict:?}"),
    };
    assert_eq!(unknown(&at("https://x.example/logo.png")), UnknownReason::Foreign);
    assert_eq!(unknown(&at("https://x.example/v2/agents")), UnknownReason::NoReply);
    let mut bodiless = at("https://x.example/v2/chats/7/messages");
    bodiless.request.method = "POST".into();
    bodiless.request.body = har::Body::Missing;
    assert_eq!(unknown(&bodiless), UnknownReason::NoRequestBody);
    let calls = [("GET", "/agents", "", answered(200, AGENTS))];
    assert_eq!(unknown(&recorded(("GET", "/agents"), None, &calls)), UnknownReason::NoAnswer);
    let forwarded = recorded(("GET", "/chats/7/feedback"), answered(200, ""), &[]);
    assert_eq!(unknown(&forwarded), UnknownReason::Forwarded);
}

/// Returns a captured exchange with the outcome `outcome`.
fn ended(outcome: &str, shadow: Option<Shadow>, is_recalled: bool) -> Exchange {
    let mut exchange = recorded(("GET", "/agents"), answered(200, AGENTS), &[]);
    let known = exchange.gateway.as_mut().expect("a gateway recorded it");
    (known.outcome, known.shadow, known.is_recalled) = (outcome.to_owned(), shadow, is_recalled);
    exchange
}

#[test]
fn each_reason_for_knowing_nothing_has_its_own_words() {
    let replayer = replayer();
    let failed = recorded(("GET", "/agents"), answered(200, AGENTS), &[("GET", "/agents", "", None)]);
    // More values than a comparison looks at, and a recording in other bytes.
    let large = format!("[{}]", [r#"{"id":1,"name":"Ana"}"#; 20_000].join(","));
    let replies = [("GET", "/agents", "", answered(200, &large))];
    let large = recorded(("GET", "/agents"), answered(200, &large.replacen('[', "[ ", 1)), &replies);
    for (exchange, wanted) in [
        (ended("gateway_error", None, false), "the gateway answered it itself: gateway error"),
        (ended("brownout", None, false), "the gateway answered it itself: brownout"),
        (ended("retired", None, false), "the gateway answered it itself: retired"),
        (ended("cancelled", None, false), "the gateway answered it itself: cancelled"),
        (ended("upstream_error", None, false), "the gateway answered it itself: upstream error"),
        (ended("rejected", None, false), "the gateway answered it itself: rejected"),
        (ended("forwarded", None, false), "the old service answered it, and nobody asked the other side"),
        (
            ended("forwarded", Some(Shadow::Dropped("no_credential".into())), false),
            "the shadow came to no answer: no credential",
        ),
        (ended("translated", None, true), "its plan read something that the gateway keeps"),
        (ended("forwarded", Some(Shadow::Planned), true), "its plan read something that the gateway keeps"),
        (failed, "a call got no answer when it was recorded"),
        (large, "only a part of the answer was compared, and that part is the same"),
    ] {
        let verdict = replayer.offline(&exchange).verdict;
        assert!(
            matches!(&verdict, ReplayVerdict::Unknown(why) if why.to_string() == wanted),
            "{wanted}: {verdict:?}"
        );
    }
}

/// Every reason with its words: a reason that is added must be added here.
#[test]
fn no_two_reasons_for_knowing_nothing_have_the_same_words() {
    let words = |why: &UnknownReason| match why {
        UnknownReason::Foreign => "not a call of the API",
        UnknownReason::NoRequestBody => "the body of the request was not recorded",
        UnknownReason::NoReply => "no reply to the last call was recorded",
        UnknownReason::NoAnswer => "the answer was not recorded",
        UnknownReason::Forwarded => "the old service answered it, and nobody asked the other side",
        UnknownReason::Unanswered(_) => "the gateway answered it itself: upstream error",
        UnknownReason::CallUnanswered => "a call got no answer when it was recorded",
        UnknownReason::ShadowDropped(_) => "the shadow came to no answer: no memory",
        UnknownReason::Recalled => "its plan read something that the gateway keeps",
        UnknownReason::Cursor => "it asks for a page by a cursor that the gateway sealed",
        UnknownReason::Position => "its page was read from a position that the gateway remembered",
        UnknownReason::Effects => "it has effects, and only reads are sent",
        UnknownReason::Unreachable(_) => "the service could not be asked: refused",
        UnknownReason::Sampled => "only a part of the answer was compared, and that part is the same",
    };
    let reasons = [
        UnknownReason::Foreign,
        UnknownReason::NoRequestBody,
        UnknownReason::NoReply,
        UnknownReason::NoAnswer,
        UnknownReason::Forwarded,
        UnknownReason::Unanswered("upstream_error".into()),
        UnknownReason::CallUnanswered,
        UnknownReason::ShadowDropped("no_memory".into()),
        UnknownReason::Recalled,
        UnknownReason::Cursor,
        UnknownReason::Position,
        UnknownReason::Effects,
        UnknownReason::Unreachable("refused".into()),
        UnknownReason::Sampled,
    ];
    let mut seen: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    assert_eq!(seen, reasons.each_ref().map(words));
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), reasons.len());
}

/// Returns a pack with sealed cursors for its clients and a service that numbers its pages.
fn paged() -> Replayer {
    let contract = |parameters: [&str; 2], items: &str, next: &str| {
        let parameters =
            parameters.map(|name| format!("{{name: {name}, in: query, schema: {{type: string}}}}"));
        format!(
            "openapi: 3.1.0\ninfo: {{title: Things, version: '1'}}\npaths:\n  /things:\n    get:\n      parameters: [{}]\n      \
             responses: {{'200': {{description: ok, content: {{application/json: {{schema: {{type: object, \
             additionalProperties: false, required: [{items}], properties: {{{items}: {{type: array, items: {{type: integer}}}}{next}}}}}}}}}}}}}\n\
             components: {{schemas: {{Error: {{type: object, required: [error], properties: {{error: {{type: string}}}}}}}}}}\n",
            parameters.join(", ")
        )
    };
    let manifest = "pack: things\nsides: {old: v1, new: v2}\ncontracts: {v1: v1.yaml, v2: v2.yaml}\nserves: [v1]\n\
        credentials:\n  v1: {read: [x-token], send: x-token, scheme: none}\n  v2: {read: [authorization], send: authorization, scheme: Bearer}\n\
        languages: [en]\nerrors: {body: {error: $text}}\nrefuse: {legacy: never, status: 501}\n";
    let mapping = "mapping: 1\nroutes:\n  - pair: {v1: GET /things, v2: GET /things}\n    \
        paging: {v1: {cursor: after, next: $.next, default: 2, size: first, items: $.items}, v2: {page: page, default: 2, size: per_page, items: $.data}}\n    \
        response: {rename: {items: data}, only: {v1: {next: none}}}\n";
    let files = [
        ("pack.yaml", manifest.to_owned()),
        ("v1.yaml", contract(["after", "first"], "items", ", next: {type: string}")),
        ("v2.yaml", contract(["page", "per_page"], "data", "")),
        ("things.map.yaml", mapping.to_owned()),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.into_bytes())).to_vec();
    let compiled = compile(&PackSource::from_files(files));
    let shown = switchback_compiler::diagnostic::to_text(
        &compiled.sources,
        &compiled.findings,
        switchback_compiler::diagnostic::Colour::Never,
    );
    let pack = compiled.pack.unwrap_or_else(|| panic!("{shown}"));
    let fronts = Fronts::from_pack(&pack);
    Replayer::new(pack, Settings::default(), fronts, Salt::new([7; 32]))
}

#[test]
fn of_a_sealed_cursor_it_is_compared_that_there_is_one_and_all_else_is_compared() {
    let replayer = paged();
    let run = |target: &str, answer: &str| {
        let calls = [("GET", "/things?per_page=2&page=1", "", answered(200, r#"{"data":[1,2]}"#))];
        let mut exchange = recorded(("GET", target), answered(200, answer), &calls);
        exchange.request.url = format!("http://g/v1{target}");
        exchange.gateway.as_mut().expect("it is there").side = "v1".into();
        replayer.offline(&exchange)
    };
    let outcome = run("/things", r#"{"items":[1,2],"next":"AAAA-another-seal"}"#);
    assert_eq!(outcome.verdict, ReplayVerdict::Same, "{outcome:?}");
    for (answer, place) in
        [(r#"{"items":[1,3],"next":"AAAA-another-seal"}"#, "$.items[1]"), (r#"{"items":[1,2]}"#, "$.next")]
    {
        let changes = changes(&run("/things", answer));
        assert!(changes.len() == 1 && changes[0].contains(place), "{changes:?}");
    }
    let by_cursor = run("/things?after=AAAA-another-seal", r#"{"items":[1,2]}"#);
    assert_eq!(by_cursor.verdict, ReplayVerdict::Unknown(UnknownReason::Cursor));
}

#[test]
fn of_a_planned_write_the_calls_alone_are_the_same() {
    let call = [("POST", "/chats/7/messages", r#"{"text":"hello","isInternal":false}"#, None)];
    let mut exchange = recorded(("POST", "/chats/7/messages"), answered(201, ""), &call);
    exchange.request.body = har::Body::Whole(r#"{"text":"hello","isInternal":false}"#.into());
    let known = exchange.gateway.as_mut().expect("it is there");
    (known.outcome, known.shadow) = ("forwarded".into(), Some(Shadow::Planned));
    assert_eq!(replayer().offline(&exchange).verdict, ReplayVerdict::SameCalls);
}

#[test]
fn masks_of_a_recording_do_not_count_as_changes() {
    let masked = AGENTS.replace("Ana", "***");
    let calls = [("GET", "/agents", "", answered(200, AGENTS))];
    let outcome = replayer().offline(&recorded(("GET", "/agents"), answered(200, &masked), &calls));
    assert_eq!(outcome.verdict, ReplayVerdict::Same);
}

#[test]
fn a_shadow_is_compared_with_its_own_answer_or_with_the_one_that_the_client_received() {
    let agents = |name: &str| answered(200, &format!("[{{\"id\":1,\"name\":\"{name}\"}}]"));
    let (against_plan, against_received) = (replayer(), replayer().against_received());
    for (received, reply, is_same, is_by_kind) in [
        ("Ana", "Ana", true, false),
        ("Ana", "Bea", false, false),
        // Equal texts have equal masks.
        ("***0a1b2c", "***0a1b2c", true, false),
        ("***0a1b2c", "***0a1b2d", false, false),
        ("by ***0a1b2c", "by ***0a1b2d", true, true),
    ] {
        let calls = [("GET", "/agents", "", agents(reply))];
        let mut exchange = recorded(("GET", "/agents"), agents(received), &calls);
        let known = exchange.gateway.as_mut().expect("it was recorded by the gateway");
        let answer = agents(reply).expect("an answer");
        known.outcome = "forwarded".into();
        known.shadow = Some(Shadow::Answered { answer, masked: Vec::new() });
        assert_eq!(against_plan.offline(&exchange).verdict, ReplayVerdict::Same, "{received} {reply}");
        let outcome = against_received.offline(&exchange);
        let found = (outcome.verdict == ReplayVerdict::Same, outcome.is_by_kind);
        assert_eq!(found, (is_same, is_by_kind), "{received} {reply}: {:?}", outcome.verdict);
    }
}

#[test]
fn a_reply_that_breaks_the_plan_is_a_fault() {
    let calls = [("GET", "/agents", "", answered(200, "[{\"id\":"))];
    let outcome = replayer().offline(&recorded(("GET", "/agents"), answered(200, AGENTS), &calls));
    assert!(changes(&outcome)[0].starts_with("cannot be answered: upstream_broken"), "{outcome:?}");
}
