//! Every kind of fault, as a client meets it.

use super::Service;
use http::Method;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn fault(service: &Service, action: Value) {
    service.control("POST", "/faults", json!({"path": "/chats/{id}", "count": 1, "action": action})).await;
}

/// Returns all data of a separate connection until its end, and the kind of its end.
async fn raw(service: &Service, method: &str, path: &str, body: &str) -> (Vec<u8>, Result<(), ErrorKind>) {
    let token = service.account("administrator").access_token;
    let mut stream = TcpStream::connect(service.sandbox.address()).await.expect("a connection");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: sandbox\r\nauthorization: Bearer {token}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("a request sent");
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes).await.map(drop).map_err(|error| error.kind());
    (bytes, ended)
}

fn body_of(response: &[u8]) -> &[u8] {
    let head = response.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    &response[head + 4..]
}

#[tokio::test]
async fn a_delayed_answer_is_the_same_answer() {
    let service = Service::start().await;
    let plain = service.read("/chats/7").await;
    fault(&service, json!({"delay": {"ms": 30}})).await;
    let before = std::time::Instant::now();
    assert_eq!(service.read("/chats/7").await, plain);
    assert!(before.elapsed() >= Duration::from_millis(30), "it must not come earlier");
}

#[tokio::test]
async fn a_status_comes_before_the_effect_or_after_it() {
    let service = Service::start().await;
    for (when, effects) in [("before", 0), ("after", 1)] {
        let action = json!({"status": {"code": 503, "body": {"reason": "later"}, "when": when}});
        service.control("POST", "/faults", json!({"method": "POST", "count": 1, "action": action})).await;
        let answer = service.v3("POST", "/chats/7/messages", json!({"text": "x"})).await.expect(503);
        assert_eq!(answer, json!({"reason": "later"}));
        assert_eq!(
            service.control("GET", "/effects", Value::Null).await.as_array().map(Vec::len),
            Some(effects)
        );
    }
}

#[tokio::test]
async fn a_reset_is_a_reset_with_or_without_the_effect() {
    let service = Service::start().await;
    for (when, count) in [("before", 0), ("after", 1)] {
        let rule = json!({"side": "v3", "count": 1, "action": {"reset": {"when": when}}});
        service.control("POST", "/faults", rule).await;
        let (bytes, ended) = raw(&service, "POST", "/v3/chats/7/messages", r#"{"text": "x"}"#).await;
        assert_eq!((bytes.len(), ended), (0, Err(ErrorKind::ConnectionReset)), "{when}");
        let effects = service.control("GET", "/effects", Value::Null).await;
        assert_eq!(effects.as_array().map(Vec::len), Some(count), "{when}");
    }
    let (bytes, ended) = raw(&service, "GET", "/v3/chats/7", "").await;
    assert!(bytes.starts_with(b"HTTP/1.1 200") && ended.is_ok(), "the rules are used up");
}

#[tokio::test]
async fn a_truncated_body_ends_short_of_its_announced_length() {
    let service = Service::start().await;
    fault(&service, json!({"truncate": {"bytes": 10}})).await;
    let (bytes, _) = raw(&service, "GET", "/v3/chats/7", "").await;
    assert_eq!(body_of(&bytes), br#"{"id":7,"a"#);
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    assert!(length.and_then(|length| length.parse::<usize>().ok()) > Some(500), "{length:?}");
    fault(&service, json!({"truncate": {"bytes": 10}})).await;
    let token = format!("Bearer {}", service.account("administrator").access_token);
    let answer = service.send(Method::GET, "/v3/chats/7", &[("authorization", &token)], "").await;
    assert!(answer.is_err(), "a client that counts notices");
}

#[tokio::test]
async fn a_dripping_body_arrives_whole() {
    let service = Service::start().await;
    let plain = service.read("/chats/7").await;
    fault(&service, json!({"drip": {"bytes": 100, "every_ms": 1}})).await;
    assert_eq!(service.read("/chats/7").await, plain);
}

#[tokio::test]
async fn an_endless_body_does_not_end() {
    let service = Service::start().await;
    fault(&service, json!({"endless": {}})).await;
    let token = service.account("administrator").access_token;
    let mut stream = TcpStream::connect(service.sandbox.address()).await.expect("a connection");
    let request =
        format!("GET /v3/chats/7 HTTP/1.1\r\nhost: sandbox\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request sent");
    let mut bytes = vec![0; 4 * 1024 * 1024];
    stream.read_exact(&mut bytes).await.expect("four megabytes, and more would come");
    assert!(bytes.ends_with(b" "));
}

#[tokio::test]
async fn invalid_json_and_html_are_what_their_length_says() {
    let service = Service::start().await;
    let token = format!("Bearer {}", service.account("administrator").access_token);
    let headers = [("authorization", token.as_str())];
    let get = || service.send(Method::GET, "/v3/chats/7", &headers, "");
    fault(&service, json!({"invalid_json": {}})).await;
    let answer = get().await.expect("an answer");
    assert_eq!(answer.status, 200);
    assert!(serde_json::from_slice::<Value>(&answer.bytes).is_err());
    fault(&service, json!({"html": {"status": 502}})).await;
    let answer = get().await.expect("an answer");
    assert_eq!(
        (answer.status.as_u16(), answer.headers["content-type"].as_bytes()),
        (502, &b"text/html; charset=utf-8"[..])
    );
    assert!(answer.bytes.starts_with(b"<html>"));
}

#[tokio::test]
async fn gzip_unpacks_to_the_same_body() {
    let service = Service::start().await;
    let plain = service.read("/chats/7").await;
    fault(&service, json!({"gzip": {}})).await;
    let answer = service.v3("GET", "/chats/7", Value::Null).await;
    assert_eq!(answer.headers["content-encoding"], "gzip");
    assert_eq!(&answer.bytes[..2], b"\x1f\x8b");
    let mut decoder = async_compression::tokio::write::GzipDecoder::new(Vec::new());
    decoder.write_all(&answer.bytes).await.expect("gzip");
    decoder.shutdown().await.expect("whole gzip");
    assert_eq!(serde_json::from_slice::<Value>(&decoder.into_inner()).expect("JSON"), plain);
}

#[tokio::test]
async fn rules_are_listed_with_their_hits_and_removed() {
    let service = Service::start().await;
    let rule = json!({"side": "v2", "skip": 1, "probability": 1.0, "action": {"gzip": {}}});
    let id = service.control("POST", "/faults", rule).await["id"].clone();
    for _ in 0..3 {
        service.v2("GET", "/chats/7", Value::Null).await;
        service.v3("GET", "/chats/7", Value::Null).await;
    }
    let rules = service.control("GET", "/faults", Value::Null).await;
    assert_eq!((&rules[0]["seen"], &rules[0]["done"]), (&json!(3), &json!(2)));
    service.control("DELETE", &format!("/faults/{id}"), Value::Null).await;
    assert_eq!(service.control("GET", "/faults", Value::Null).await, json!([]));
    let wrong = service.send(Method::POST, "/_sandbox/faults", &[], r#"{"action": {"delay": {}}}"#).await;
    assert_eq!(wrong.expect("an answer").status, 400);
}
