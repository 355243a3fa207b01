//! Header fields that cross the gateway, those that do not, and the answers it gives about itself.

use crate::support::gateway::{Gateway, Setup, TOKEN, request};
use crate::support::raw::{Act, Client, PATIENCE, Upstream, answer, exchange};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use switchback_gateway::proxy::limits::{Limits, UpstreamLimits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const ITEM: &str = r#"{"title":"a"}"#;

#[tokio::test]
async fn nothing_of_the_clients_connection_or_identity_reaches_the_new_side() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let fields = format!(
        "connection: x-secret, authorization, x-own\r\nx-secret: 1\r\nauthorization: Bearer {TOKEN}\r\nx_own: Bearer {TOKEN}\r\n\
         keep-alive: 5\r\nproxy-authorization: Basic x\r\nte: trailers\r\nupgrade: h2c\r\ncookie: a=1\r\nif-none-match: \"x\"\r\n\
         range: bytes=0-1\r\nx-forwarded-for: 1.2.3.4\r\nforwarded: for=1.2.3.4\r\nx-request-id: of-the-client\r\n\
         accept-language: es\r\naccept-encoding: gzip\r\n"
    );
    assert_eq!(
        exchange(gateway.address, request("GET /old/things/a", &fields, "")).await.unwrap().status,
        200
    );
    let seen = new.seen().remove(0);
    let mut names: Vec<_> =
        seen.head.lines().skip(1).filter_map(|line| line.split(':').next()).map(str::to_lowercase).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "accept",
            "accept-encoding",
            "accept-language",
            "authorization",
            "host",
            "traceparent",
            "via",
            "x-request-id"
        ]
    );
    // The client's own request id is for correlating the logs of both.
    assert_eq!(seen.values("x-request-id"), ["of-the-client"]);
    assert_eq!(seen.values("authorization"), ["Bearer new-token-1"]);
    assert_eq!(seen.values("via"), ["1.1 switchback"]);
    assert_eq!(seen.values("accept-encoding"), ["identity"]);
    assert!(!seen.head.contains(TOKEN));
}

#[tokio::test]
async fn nothing_that_described_the_old_message_or_hop_reaches_the_client() {
    let fields = "connection: x-hop, close\r\nx-hop: 1\r\nkeep-alive: 5\r\nproxy-authenticate: Basic\r\nupgrade: h2c\r\n\
                  etag: \"a\"\r\ndigest: x\r\ncontent-md5: x\r\naccept-ranges: bytes\r\nset-cookie: s=1\r\nserver: inner\r\n\
                  cache-control: public, max-age=60\r\ncontent-type: application/json\r\nretry-after: 7\r\n";
    let new = Upstream::start(vec![Act::Reply(answer(200, fields, ITEM))]).await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap();
    assert_eq!((got.status, got.text().as_str()), (200, r#"{"name":"a"}"#));
    let mut names: Vec<_> = got.head.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "content-type", "date", "retry-after", "vary", "x-request-id"]);
    assert_eq!(got.value("content-length"), "12");
    assert_eq!(got.value("vary"), "accept-language, x-own, authorization");
}

#[tokio::test]
async fn a_request_that_comes_round_again_is_stopped() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, request("GET /old/things/a", "via: 1.1 a, 1.1 switchback\r\n", ""))
        .await
        .unwrap();
    assert_eq!(got.status, 508);
    assert_eq!(new.seen().len(), 0);
}

#[tokio::test]
async fn trace_context_goes_on_under_a_new_parent() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let fields = format!("traceparent: 00-{trace}-b7ad6b7169203331-01\r\ntracestate: v=1\r\n");
    exchange(gateway.address, request("GET /old/things/a", &fields, "")).await.unwrap();
    let seen = new.seen().remove(0);
    let parent = seen.values("traceparent")[0];
    assert!(parent.starts_with(&format!("00-{trace}-")) && !parent.contains("b7ad6b7169203331"), "{parent}");
    assert_eq!(seen.values("tracestate"), ["v=1"]);
}

#[tokio::test]
async fn options_that_may_go_no_further_are_answered_here_and_trace_never_is() {
    let (new, old) = (
        Upstream::start(vec![Act::json(200, ITEM)]).await,
        Upstream::start(vec![Act::json(200, "{}")]).await,
    );
    let before_old = Gateway::start(new.address, Setup { old: Some(old.address), ..Setup::default() }).await;
    for (method, left, status, seen) in
        [("TRACE", "0", 501, 0), ("OPTIONS", "00", 204, 0), ("TRACE", "1", 200, 1), ("OPTIONS", "7", 200, 2)]
    {
        let line = format!("{method} /old/never/heard");
        let fields = format!("max-forwards: {left}\r\ncookie: a=secret\r\n");
        let got = exchange(before_old.address, request(&line, &fields, "")).await.unwrap();
        assert_eq!((got.status, old.seen().len()), (status, seen), "{method} {left}");
        assert!(!got.text().contains("secret"));
    }
    assert_eq!(old.seen()[0].values("max-forwards"), ["0"]);
    let gateway = Gateway::before(&new).await;
    for (line, fields) in [("OPTIONS *", ""), ("OPTIONS /old/things/a", "max-forwards: 0\r\n")] {
        let got = exchange(gateway.address, request(line, fields, "")).await.unwrap();
        assert_eq!(got.status, 204, "{line}");
        assert!(got.value("allow").contains("GET"), "{line}");
    }
    let got = exchange(gateway.address, request("TRACE /old/things/a", "", "")).await.unwrap();
    assert_eq!((got.status, got.value("allow")), (501, "GET, HEAD, PUT"));
    assert!(!got.text().contains(TOKEN));
    assert_eq!(new.seen().len(), 0);
}

#[tokio::test]
async fn an_expectation_is_met_only_once_the_request_has_passed() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    let got =
        exchange(gateway.address, request("POST /old/things", "expect: miracles\r\n", "{}")).await.unwrap();
    assert_eq!(got.status, 417);

    let mut client = Client::connect(gateway.address).await;
    client.send("POST /old/things HTTP/1.1\r\nhost: a\r\nx-own: Bearer nobody-knows\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n").await;
    let first = client.first_line().await;
    assert!(first.starts_with("HTTP/1.1 401"), "{first}");

    let mut client = Client::connect(gateway.address).await;
    let head = format!(
        "POST /old/things HTTP/1.1\r\nhost: a\r\nx-own: Bearer {TOKEN}\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    );
    client.send(head).await;
    let first = client.first_line().await;
    assert!(first.starts_with("HTTP/1.1 100"), "{first}");
    client.send("{}").await;
    assert_eq!(client.answer().await.unwrap().status, 201);
}

#[tokio::test]
async fn head_is_get_without_its_body_and_the_connection_stays_in_step() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(request("HEAD /old/things/a", "", "")).await;
    let got = client.answer_to_head().await.unwrap();
    assert_eq!((got.status, got.value("content-type")), (200, "application/json"));
    client.send(request("GET /old/things/a", "", "")).await;
    assert_eq!(client.answer().await.unwrap().text(), r#"{"name":"a"}"#);
}

#[tokio::test]
async fn errors_speak_the_clients_language_in_the_packs_form() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    for (language, text) in [
        ("", "No such thing."),
        ("es-MX", "No existe."),
        ("de, es;q=0.5", "No existe."),
        ("fr", "No such thing."),
    ] {
        let fields =
            if language.is_empty() { String::new() } else { format!("accept-language: {language}\r\n") };
        let got = exchange(gateway.address, request("GET /old/nothing", &fields, "")).await.unwrap();
        assert_eq!((got.status, got.text()), (404, format!(r#"{{"why":"{text}"}}"#)), "{language}");
        assert_eq!(got.value("content-type"), "application/json");
    }
    let got = exchange(gateway.address, request("DELETE /old/things/a", "", "")).await.unwrap();
    assert_eq!((got.status, got.value("allow")), (501, "GET, HEAD, PUT"));
    let got = exchange(gateway.address, "GET /old/things/a HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!((got.status, got.value("www-authenticate")), (401, "Bearer"));
}

#[tokio::test]
async fn two_different_tokens_are_refused_and_the_sides_own_header_decides() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, request("GET /old/things/a", "x-own: Bearer other-token\r\n", ""))
        .await
        .unwrap();
    assert_eq!(got.status, 400);
    let both = format!(
        "GET /old/things/a HTTP/1.1\r\nhost: a\r\nx-own: Bearer other-token\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    );
    assert_eq!(exchange(gateway.address, both).await.unwrap().status, 401);
    let second = format!("GET /old/things/a HTTP/1.1\r\nhost: a\r\nauthorization: bearer {TOKEN}\r\n\r\n");
    assert_eq!(exchange(gateway.address, second).await.unwrap().status, 200);
    let underscore = format!("GET /old/things/a HTTP/1.1\r\nhost: a\r\nx_own: Bearer {TOKEN}\r\n\r\n");
    assert_eq!(exchange(gateway.address, underscore).await.unwrap().status, 401);
    assert_eq!(new.seen().len(), 1);
}

#[tokio::test]
async fn a_secondary_account_is_one_encoded_segment_before_the_path() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let setup = Setup { account: Some("4/2".into()), ..Setup::default() };
    let gateway = Gateway::start(new.address, setup).await;
    exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap();
    assert_eq!(new.seen().remove(0).line(), "GET /new/accounts/4%2F2/items/a HTTP/1.1");
}

#[tokio::test]
async fn what_the_pack_refuses_goes_to_the_old_service_as_it_came() {
    let fields = "set-cookie: a=1\r\nset-cookie: b=2\r\nset-cookie: c=3\r\nconnection: x-hop\r\nx-hop: 1\r\netag: \"e\"\r\n";
    let old = Upstream::start(vec![Act::Reply(answer(203, fields, "relic"))]).await;
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::start(new.address, Setup { old: Some(old.address), ..Setup::default() }).await;
    let sent = request(
        "GET /old/relics/a%20b?x=1&x=%41",
        "if-none-match: \"e\"\r\nconnection: x-mine\r\nx-mine: 1\r\n",
        "",
    );
    let got = exchange(gateway.address, sent).await.unwrap();
    assert_eq!((got.status, got.text().as_str()), (203, "relic"));
    assert_eq!(got.values("set-cookie"), ["a=1", "b=2", "c=3"]);
    assert_eq!((got.value("etag"), got.values("x-hop").len()), ("\"e\"", 0));
    let seen = old.seen().remove(0);
    assert_eq!(seen.line(), "GET /base/relics/a%20b?x=1&x=%41 HTTP/1.1");
    assert_eq!(seen.values("x-own"), [format!("Bearer {TOKEN}")]);
    assert_eq!((seen.values("if-none-match"), seen.values("x-mine").len()), (vec!["\"e\""], 0));
    assert_eq!(new.seen().len(), 0);
    assert_eq!(gateway.refreshes(), 0, "no grant is touched for a forwarded request");
}

/// All lines of a field go on, and their bytes: RFC 9110, sections 5.3 and 5.5.
#[tokio::test]
async fn a_field_in_several_lines_goes_on_whole_and_with_the_bytes_it_has() {
    let reply =
        b"HTTP/1.1 200 X\r\ncontent-length: 13\r\nx-rest: caf\xe9\r\nx-rest: 2\r\n\r\n{\"title\":\"a\"}";
    let new = Upstream::start(vec![Act::Reply(reply.to_vec())]).await;
    let gateway = Gateway::before(&new).await;
    let fields =
        "x-labels: one, two\r\nx-labels: \u{fc}ber\r\naccept-language: es\r\naccept-language: en;q=0.5\r\n";
    let got = exchange(gateway.address, request("GET /old/things/a", fields, "")).await.unwrap();
    assert_eq!(got.status, 200);
    assert_eq!(got.values("x-left"), ["caf\u{fffd}", "2"], "{}", got.head);
    let seen = new.seen().remove(0);
    assert_eq!(seen.values("x-tags"), ["one, two", "\u{fc}ber"]);
    assert_eq!(seen.values("accept-language"), ["es", "en;q=0.5"]);
    let got = exchange(gateway.address, request("GET /old/things/a", "x-labels: one\r\n", "")).await.unwrap();
    assert_eq!((got.status, new.seen().remove(1).values("x-tags")), (200, vec!["one"]));
}

/// The old service is down for good, and still configured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_a_service_that_is_gone_could_answer_is_refused_until_it_is_back() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let limits = Limits {
        upstream: UpstreamLimits { gone_after: Duration::from_millis(500), ..UpstreamLimits::default() },
        ..Limits::default()
    };
    let gateway = Gateway::start(new.address, Setup { old: Some(address), limits, ..Setup::default() }).await;
    let ask = async || {
        let got = exchange(gateway.address, request("GET /old/relics/a", "", "")).await.unwrap();
        (got.status, got.text())
    };
    assert_eq!(ask().await.0, 502, "it may be back in a moment");
    let reason = (501, r#"{"why":"Relics are gone."}"#.to_owned());
    let begun = Instant::now();
    let mut told = ask().await;
    while told.0 == 502 {
        assert!(begun.elapsed() < PATIENCE, "it stays unreachable");
        tokio::time::sleep(Duration::from_millis(50)).await;
        told = ask().await;
    }
    assert_eq!(told, reason);
    assert_eq!(ask().await, reason);
    let back = TcpListener::bind(address).await.expect("the port is free again");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = back.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = [0; 4096];
                while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    let relic = answer(200, "", "relic");
                    stream.write_all(&relic).await.unwrap();
                }
            });
        }
    });
    let begun = Instant::now();
    while told != (200, "relic".to_owned()) {
        assert!(begun.elapsed() < PATIENCE, "{told:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        told = ask().await;
    }
}

/// A proxy takes the connections of the old service, which is gone behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_a_proxy_finds_gone_counts_as_gone_until_an_answer_of_its_own() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let is_back = Arc::new(AtomicBool::new(false));
    let back = Arc::clone(&is_back);
    let old = Upstream::answering(move |_, _| match back.load(SeqCst) {
        true => Act::Reply(answer(200, "", "relic")),
        false => Act::Reply(answer(504, "content-type: text/html\r\n", "<html>gone</html>")),
    })
    .await;
    let limits = Limits {
        upstream: UpstreamLimits { gone_after: Duration::from_millis(500), ..UpstreamLimits::default() },
        ..Limits::default()
    };
    let setup = Setup { old: Some(old.address), limits, ..Setup::default() };
    let gateway = Gateway::start(new.address, setup).await;
    let ask = async || exchange(gateway.address, request("GET /old/relics/a", "", "")).await.unwrap().status;
    assert_eq!(ask().await, 504, "it may be back in a moment");
    for (wanted, last) in [(501, 504), (200, 501)] {
        is_back.store(wanted == 200, SeqCst);
        let begun = Instant::now();
        let mut status = ask().await;
        while status != wanted {
            assert!(begun.elapsed() < PATIENCE && [last, 504].contains(&status), "{status}, not {wanted}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            status = ask().await;
        }
    }
}

#[tokio::test]
async fn what_the_pack_refuses_is_refused_where_no_old_service_lives() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let got =
        exchange(gateway.address, request("GET /old/relics/a", "accept-language: es\r\n", "")).await.unwrap();
    assert_eq!((got.status, got.text().as_str()), (501, r#"{"why":"Las reliquias ya no existen."}"#));
    assert_eq!(new.seen().len(), 0);
}
