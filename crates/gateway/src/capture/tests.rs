use super::*;
use crate::body::{BodyEnd, Copied};
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::path::Path;
use std::sync::Arc;
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_engine::har::{Body, Exchange, Gateway, Request, Response, Shadow};
use switchback_engine::redact::{MASK, Salt};

fn wanted() -> CaptureFilter {
    CaptureFilter { operation: None, client: None, share: 1.0, body_bytes_max: 1 << 10 }
}

fn whole(text: &'static str) -> Copied {
    Copied { bytes: Bytes::from_static(text.as_bytes()), total: text.len() as u64, end: BodyEnd::Complete }
}

/// Records a request of `client` for `operation` with the response body `answer`.
fn record(tap: &Tap, operation: &str, client: &str, answer: Copied) -> bool {
    let Some(capture) = tap.take(|| 0.5) else { return false };
    let headers = HeaderMap::new();
    let head = Head {
        method: &Method::GET,
        url: "http://g/v1/x".into(),
        headers: &headers,
        side: "v1",
        target: "/x",
        operation,
        client,
        language: 0,
        outcome: "translated",
        status: 200,
        answer_headers: &headers,
    };
    Recording::new(capture).finish(&head, answer);
    true
}

#[tokio::test]
async fn only_what_is_wanted_is_handed_over() {
    let tap = Tap::default();
    let asked = CaptureFilter { operation: Some("GET /x".into()), client: Some("acme".into()), ..wanted() };
    let mut captured = tap.open(asked).unwrap();
    for (operation, client) in [("GET /y", "acme"), ("GET /x", "other"), ("GET /x", "acme")] {
        assert!(record(&tap, operation, client, whole("{}")));
    }
    let exchange = captured.next().await.unwrap();
    assert_eq!(exchange.gateway.unwrap().client, "acme");
    assert!(captured.exchanges.try_recv().is_err(), "the others are of another kind");
}

#[test]
fn one_capture_is_open_at_a_time_and_dropping_it_closes_it() {
    let tap = Tap::default();
    assert!(tap.take(|| 0.0).is_none(), "nobody captures");
    let captured = tap.open(wanted()).unwrap();
    assert!(tap.open(wanted()).is_none());
    assert!(tap.take(|| 0.0).is_some());
    drop(captured);
    assert!(tap.take(|| 0.0).is_none());
    assert!(tap.open(wanted()).is_some());
}

#[test]
fn a_share_is_taken_by_lot() {
    let tap = Tap::default();
    let _captured = tap.open(CaptureFilter { share: 0.25, ..wanted() }).unwrap();
    assert!(tap.take(|| 0.2).is_some());
    assert!(tap.take(|| 0.25).is_none());
}

#[test]
fn requests_that_there_is_no_room_for_go_unrecorded_and_are_counted() {
    let tap = Tap::default();
    let captured = tap.open(wanted()).unwrap();
    let at_work: Vec<Recording> =
        std::iter::from_fn(|| tap.take(|| 0.0).map(Recording::new)).take(10_000).collect();
    assert!(at_work.len() < 10_000, "there is a bound");
    assert_eq!(captured.left_out(), 1);
    drop(at_work);
    assert!(tap.take(|| 0.0).is_some(), "recordings that ended make room");
}

#[tokio::test]
async fn a_reader_that_does_not_come_holds_no_more_than_the_queue() {
    let tap = Tap::default();
    let mut captured = tap.open(wanted()).unwrap();
    for _ in 0..10_000 {
        record(&tap, "GET /x", "acme", whole("{}"));
    }
    let mut taken = 0;
    while captured.exchanges.try_recv().is_ok() {
        taken += 1;
    }
    assert_eq!(taken + captured.left_out(), 10_000);
    assert!(captured.left_out() > 5_000);
}

#[tokio::test]
async fn what_was_being_answered_when_a_capture_is_asked_to_end_is_in_it() {
    let tap = Tap::default();
    let mut captured = tap.open(wanted()).unwrap();
    record(&tap, "GET /a", "acme", whole("{}"));
    let at_work = tap.take(|| 0.0).expect("a capture is open");
    assert!(tap.end() && !tap.end());
    assert!(tap.take(|| 0.0).is_none(), "nothing further is recorded");
    let another = tap.open(wanted()).expect("the next one can be opened at once");
    let late = tokio::spawn(async move {
        tokio::task::yield_now().await;
        let headers = HeaderMap::new();
        let head = Head {
            method: &Method::GET,
            url: "http://g/v1/late".into(),
            headers: &headers,
            side: "v1",
            target: "/late",
            operation: "GET /late",
            client: "acme",
            language: 0,
            outcome: "translated",
            status: 200,
            answer_headers: &headers,
        };
        Recording::new(at_work).finish(&head, whole("{}"));
    });
    let mut seen = Vec::new();
    while let Some(exchange) = captured.next().await {
        seen.push(exchange.request.url);
    }
    late.await.unwrap();
    assert_eq!(seen, ["http://g/v1/x", "http://g/v1/late"]);
    drop(captured);
    assert!(tap.take(|| 0.0).is_some(), "the other one goes on");
    drop(another);
}

#[tokio::test]
async fn a_body_that_was_cut_is_said_to_be_missing() {
    let tap = Tap::default();
    let mut captured = tap.open(wanted()).unwrap();
    let cut = Copied { bytes: Bytes::from_static(b"[1,"), total: 9, end: BodyEnd::Complete };
    record(&tap, "GET /x", "acme", cut);
    record(&tap, "GET /x", "acme", Copied { end: BodyEnd::Abandoned, ..whole("[") });
    for _ in 0..2 {
        assert_eq!(captured.next().await.unwrap().response.unwrap().body, Body::Missing);
    }
}

/// A secret named as such in the response to a call is masked wherever the plan copied it.
#[test]
fn what_is_masked_in_one_message_is_masked_in_all() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/messaging");
    let source = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
    let pack: Arc<_> = compile(&source).pack.expect("the pack compiles");
    let fields = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let body = |text: &str| Body::Whole(Bytes::copy_from_slice(text.as_bytes()));
    let answered = |text: &str| Some(Response { status: 200, headers: Vec::new(), body: body(text) });
    let call = Exchange {
        request: Request { method: "GET".into(), url: "/things/correct-horse".into(), ..Request::default() },
        response: answered(r#"{"password":"correct-horse","note":"said correct-horse"}"#),
        ..Exchange::default()
    };
    let exchange = Exchange {
        request: Request {
            method: "GET".into(),
            url: "http://g/v2/things/1".into(),
            headers: fields(&[("Authorization", "Bearer battery-staple"), ("accept", "x")]),
            body: body(r#"{"text":"my token is battery-staple"}"#),
            masked: Vec::new(),
        },
        response: answered(r#"{"body":"correct-horse"}"#),
        gateway: Some(Gateway {
            side: "v2".into(),
            target: "/things/1".into(),
            shadow: answered(r#"{"body":"correct-horse"}"#)
                .map(|answer| Shadow::Answered { answer, masked: Vec::new() }),
            calls: vec![call],
            ..Gateway::default()
        }),
        ..Exchange::default()
    };
    let redacted = Redaction::new(&pack, Salt::new([7; 32])).redact(&exchange);
    let text = format!("{redacted:?}");
    assert!(!text.contains("correct-horse") && !text.contains("battery-staple"), "{text}");
    let Some(Body::Whole(answer)) = redacted.response.map(|response| response.body) else { panic!("a body") };
    let masked: serde_json::Value = serde_json::from_slice(&answer).expect("it is JSON still");
    // The operation is unknown, so the member's name is masked too.
    let members: Vec<_> = masked.as_object().expect("an object still").iter().collect();
    let is_masked = |text: &str| text.starts_with(MASK);
    assert!(
        matches!(&members[..], [(name, value)] if is_masked(name) && value.as_str().is_some_and(is_masked)),
        "{masked}"
    );
    assert_eq!(redacted.request.headers[1], ("accept".to_owned(), "x".to_owned()));
}
