//! Control calls other than faults: differences, locks, clock, log, effects, reset, and
//! reproducibility by seed.

use super::Service;
use http::Method;
use serde_json::{Value, json};
use switchback_sandbox::Options;

#[tokio::test]
async fn a_difference_shows_on_its_side_only() {
    let service = Service::start().await;
    let rule = json!({"side": "v2", "resource": "chat", "of": 7, "field": "$.agentId", "change": "retype"});
    let id = service.control("POST", "/differences", rule).await["id"].clone();
    let rule = json!({"side": "v3", "path": "/chats/{id}", "field": "$.channels[*].name", "change": {"set": "else"}});
    service.control("POST", "/differences", rule).await;
    assert!(service.v2("GET", "/chats/7", Value::Null).await.expect(200)["agentId"].is_string());
    assert!(service.v2("GET", "/chats/1", Value::Null).await.expect(200)["agentId"].is_u64());
    let chat = service.read("/chats/7").await;
    assert!(chat["agentId"].is_u64());
    assert_eq!(chat["channels"][0]["name"], "else");
    assert_ne!(service.read("/chats").await[0]["channels"][0]["name"], "else", "another path");
    service.control("DELETE", &format!("/differences/{id}"), Value::Null).await;
    assert!(service.v2("GET", "/chats/7", Value::Null).await.expect(200)["agentId"].is_u64());
    let wrong = service.send(
        Method::POST,
        "/_sandbox/differences",
        &[],
        r#"{"side":"v2","field":"a","change":"remove"}"#,
    );
    assert_eq!(wrong.await.expect("an answer").status, 400);
}

#[tokio::test]
async fn a_locked_chat_answers_423_in_both_versions() {
    let service = Service::start().await;
    service.control("POST", "/chats/7/lock", Value::Null).await;
    service.v3("GET", "/chats/7", Value::Null).await.expect(423);
    service.v2("POST", "/chats/7/messages", json!({"text": "x"})).await.expect(423);
    service.v3("GET", "/chats/6", Value::Null).await.expect(200);
    service.control("DELETE", "/chats/7/lock", Value::Null).await;
    service.v3("GET", "/chats/7", Value::Null).await.expect(200);
}

#[tokio::test]
async fn stamps_come_from_a_clock_that_moves_when_told() {
    let service = Service::start().await;
    let clock = service.control("POST", "/clock", json!({"advance": 86_400})).await;
    assert_eq!(clock["now"], "2026-03-03 09:00:00");
    service.v2("POST", "/chats/7/messages", json!({"text": "tomorrow"})).await.expect(201);
    assert_eq!(service.read("/chats/7/messages").await[0]["sendAt"], "2026-03-03 09:00:01");
}

#[tokio::test]
async fn received_requests_are_on_record() {
    let service = Service::start().await;
    service.v2("POST", "/chats/7/messages?x=1", json!({"text": "on record"})).await.expect(201);
    service.v3("GET", "/chats/999999", Value::Null).await.expect(404);
    let requests = service.control("GET", "/requests", Value::Null).await;
    assert_eq!(requests.as_array().map(Vec::len), Some(2), "control itself is not logged");
    let first = &requests[0];
    assert_eq!((&first["method"], &first["path"]), (&json!("POST"), &json!("/v2/chats/7/messages?x=1")));
    assert_eq!((&first["body"], &first["status"]), (&json!({"text": "on record"}), &json!(201)));
    assert!(
        first["headers"]["x-authorization"].as_str().is_some_and(|value| value.starts_with("Bearer v2-"))
    );
    let selected = service.control("GET", "/requests?path=/v3/chats/999999", Value::Null).await;
    assert_eq!((selected.as_array().map(Vec::len), &selected[0]["status"]), (Some(1), &json!(404)));

    service.control("PUT", "/requests", json!({"keep": 1})).await;
    assert_eq!(service.control("GET", "/requests", Value::Null).await.as_array().map(Vec::len), Some(1));
    service.control("PUT", "/requests", json!({"keep": 0})).await;
    service.read("/chats/7").await;
    assert_eq!(service.control("GET", "/requests", Value::Null).await, json!([]));
}

#[tokio::test]
async fn effects_are_counted_by_kind_and_chat() {
    let service = Service::start().await;
    for _ in 0..3 {
        service.v2("POST", "/chats/7/messages", json!({"text": "x"})).await.expect(201);
    }
    service.v3("POST", "/chats/7/messages", json!({"text": 1})).await.expect(400);
    service.v3("PUT", "/chats/7/close", Value::Null).await.expect(200);
    service.v2("POST", "/chats/7/close", Value::Null).await.expect(201);
    let effects = service.control("GET", "/effects", Value::Null).await;
    let expected =
        json!([{"effect": "close", "id": 7, "count": 1}, {"effect": "message", "id": 7, "count": 3}]);
    assert_eq!(effects, expected, "a refused call and a second close have no effect");
    service.control("DELETE", "/effects", Value::Null).await;
    assert_eq!(service.control("GET", "/effects", Value::Null).await, json!([]));
}

/// Some reads and writes with all answers.
async fn story(service: &Service) -> Vec<Value> {
    let mut seen = Vec::new();
    for path in ["/chats", "/contacts", "/agents", "/chats/4/messages?page=9", "/contacts/1001/timeline"] {
        seen.push(service.read(path).await);
    }
    for (method, path, body) in [
        ("POST", "/chats/7/messages", json!({"text": "a"})),
        ("POST", "/contacts", json!({"name": "n", "email": "e@example.com"})),
        ("PUT", "/chats/7/tags", json!({"tags": "vip, new one"})),
        ("PUT", "/chats/7/close", json!({})),
        ("GET", "/chats/7", Value::Null),
        ("GET", "/chats/7/tags", Value::Null),
        ("GET", "/chats/7/messages", Value::Null),
    ] {
        seen.push(service.v3(method, path, body).await.json());
    }
    seen.push(serde_json::to_value(service.sandbox.credentials()).expect("credentials"));
    seen
}

#[tokio::test]
async fn equal_seeds_tell_equal_stories() {
    let (one, other) = (Service::start().await, Service::start().await);
    let first = story(&one).await;
    assert_eq!(first, story(&other).await);
    let elsewhere = Service::with(Options { seed: 2, ..Options::default() }).await;
    let differing = story(&elsewhere).await;
    assert!(first.iter().zip(&differing).filter(|(a, b)| a == b).count() < 4);
    one.control("POST", "/reset", Value::Null).await;
    assert_eq!(first, story(&one).await, "a reset begins the story again");
}

#[tokio::test]
async fn control_lists_itself_and_refuses_what_it_does_not_know() {
    let service = Service::start().await;
    let help = service.control("GET", "/", Value::Null).await;
    let calls: Vec<&str> = help.as_array().unwrap().iter().filter_map(|line| line["call"].as_str()).collect();
    assert!(calls.contains(&"POST /_sandbox/faults"));
    let readme = include_str!("../../../crates/sandbox/README.md");
    for call in calls {
        assert!(readme.contains(call), "the README tells of {call}");
    }
    for (method, path, body) in
        [(Method::GET, "/_sandbox/nothing", ""), (Method::POST, "/_sandbox/chats/0/lock", "")]
    {
        let answer = service.send(method, path, &[], body).await.expect("an answer");
        assert_eq!(answer.status, 404, "{path}");
    }
    let answer =
        service.send(Method::POST, "/_sandbox/clock", &[], r#"{"advnace": 1}"#).await.expect("an answer");
    assert_eq!(answer.status, 400);
}
