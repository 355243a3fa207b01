//! Requests that an intermediary must not accept, byte by byte: framing, fields, Host, targets. The
//! upstream must not see any part of a refused request.

use crate::support::gateway::{Gateway, Setup, TOKEN, request};
use crate::support::raw::{Act, Client, Upstream, exchange};
use switchback_gateway::proxy::limits::{BodyLimits, Limits};

const ITEM: &str = r#"{"title":"a","n":1.10}"#;

/// Sends bytes and expects this status (0 = a close without an answer), and that the upstream
/// received nothing.
async fn refused(gateway: &Gateway, new: &Upstream, what: &str, bytes: &[u8], statuses: &[u16]) {
    let answer = exchange(gateway.address, bytes).await;
    let status = answer.as_ref().map_or(0, |answer| answer.status);
    assert!(statuses.contains(&status), "{what}: {status} {answer:?}");
    assert_eq!(new.seen().len(), 0, "{what}: the upstream was asked");
}

fn head(rest: &str) -> Vec<u8> {
    format!("POST /old/things HTTP/1.1\r\nx-own: Bearer {TOKEN}\r\n{rest}").into_bytes()
}

#[tokio::test]
async fn lengths_that_contradict_or_are_no_number_are_refused() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    for lengths in ["2\r\ncontent-length: 3", "+2", "-2", "0x2", "18446744073709551619", "2, 3", ""] {
        let bytes = head(&format!("host: a\r\ncontent-length: {lengths}\r\n\r\n{{}}"));
        refused(&gateway, &new, lengths, &bytes, &[400, 413]).await;
    }
}

#[tokio::test]
async fn transfer_codings_other_than_one_chunked_are_refused() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    let chunks = "2\r\n{}\r\n0\r\n\r\n";
    for (coding, status) in [
        ("chunked\r\ntransfer-encoding: chunked", 400),
        ("chunked, chunked", 400),
        (",chunked", 400),
        ("gzip, chunked", 501),
        ("chunked, gzip", 400),
        ("\u{b}chunked", 400),
        ("identity", 400),
    ] {
        let bytes = head(&format!("host: a\r\ntransfer-encoding: {coding}\r\n\r\n{chunks}"));
        refused(&gateway, &new, coding, &bytes, &[status]).await;
    }
    let bytes = format!("POST /old/things HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
    refused(&gateway, &new, "HTTP/1.0", bytes.as_bytes(), &[400]).await;
}

#[tokio::test]
async fn broken_chunks_are_the_clients_fault_and_reach_nobody() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    for chunks in
        ["0x2\r\n{}\r\n0\r\n\r\n", "fffffffffffffffff\r\n{}", "-2\r\n{}\r\n0\r\n\r\n", "2\n{}\r\n0\r\n\r\n"]
    {
        let bytes = head(&format!("host: a\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"));
        refused(&gateway, &new, chunks, &bytes, &[400]).await;
    }
}

#[tokio::test]
async fn fields_that_two_parsers_could_read_differently_are_refused() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    for field in ["x-a : b", "x-a: b\r\n folded", "x-a: b\rc", "x-a: b\0c", ": b", "x a: b"] {
        let bytes = head(&format!("host: a\r\n{field}\r\ncontent-length: 2\r\n\r\n{{}}"));
        refused(&gateway, &new, field, &bytes, &[400]).await;
    }
}

#[tokio::test]
async fn exactly_one_valid_host_is_wanted() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    for hosts in [
        "",
        "host: a\r\nhost: a\r\n",
        "host: a\r\nhost: b\r\n",
        "host: a b\r\n",
        "host: u@a\r\n",
        "host: a/b\r\n",
    ] {
        let bytes = head(&format!("{hosts}content-length: 2\r\n\r\n{{}}"));
        refused(&gateway, &new, hosts, &bytes, &[400]).await;
    }
    let userinfo = request("GET http://u@other.test/old/things/a", "", "");
    refused(&gateway, &new, "user information", &userinfo, &[400]).await;
}

#[tokio::test]
async fn an_empty_host_is_one() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let bytes = format!("GET /old/things/a HTTP/1.1\r\nhost:\r\nx-own: Bearer {TOKEN}\r\n\r\n");
    assert_eq!(exchange(gateway.address, bytes).await.unwrap().status, 200);
    assert_eq!(new.seen().remove(0).values("host"), [new.address.to_string()]);
}

#[tokio::test]
async fn the_authority_of_the_target_is_not_passed_on_and_neither_is_host() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let answer =
        exchange(gateway.address, request("GET http://other.test/old/things/a", "", "")).await.unwrap();
    assert_eq!(answer.status, 200);
    let seen = new.seen().remove(0);
    assert_eq!(seen.line(), "GET /new/items/a HTTP/1.1");
    assert_eq!(seen.values("host"), [new.address.to_string()]);
}

#[tokio::test]
async fn both_lengths_at_once_are_read_by_the_chunks_and_end_the_connection() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    for fields in
        ["content-length: 3\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 3"]
    {
        let mut client = Client::connect(gateway.address).await;
        client
            .send(head(&format!(
                "host: a\r\n{fields}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"
            )))
            .await;
        assert_eq!(client.answer().await.unwrap().status, 201);
        assert!(client.is_closed().await, "{fields}");
        let seen = new.seen().pop().unwrap();
        assert_eq!((seen.body.as_slice(), seen.values("content-length")), (&b"{}"[..], vec!["2"]));
        assert!(seen.values("transfer-encoding").is_empty());
    }
    assert_eq!(new.seen().len(), 2);
}

#[tokio::test]
async fn what_follows_a_request_refused_early_is_never_read_as_the_next_one() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    let smuggled = "GET /old/things/smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    let bytes = format!(
        "POST /old/things HTTP/1.1\r\nhost: a\r\nx-own: Bearer wrong-token\r\ncontent-length: {}\r\n\r\n{smuggled}",
        smuggled.len()
    );
    let mut client = Client::connect(gateway.address).await;
    client.send(bytes).await;
    assert_eq!(client.answer().await.unwrap().status, 401);
    client.send("GET /old/things/b HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let next = client.answer().await;
    assert!(next.as_ref().is_none_or(|answer| answer.status == 401), "{next:?}");
    assert_eq!(new.seen().len(), 0);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let new = Upstream::start(vec![Act::json(200, r#"{"title":1}"#), Act::json(200, r#"{"title":2}"#)]).await;
    let gateway = Gateway::before(&new).await;
    let mut client = Client::connect(gateway.address).await;
    client.send([request("GET /old/things/a", "", ""), request("GET /old/things/b", "", "")].concat()).await;
    assert_eq!(client.answer().await.unwrap().text(), r#"{"name":1}"#);
    assert_eq!(client.answer().await.unwrap().text(), r#"{"name":2}"#);
}

#[tokio::test]
async fn bytes_behind_an_upgrade_go_nowhere() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let mut client = Client::connect(gateway.address).await;
    let fields = "connection: upgrade\r\nupgrade: websocket\r\n";
    client.send([request("GET /old/things/a", fields, ""), b"\x81\x05hello".to_vec()].concat()).await;
    assert_eq!(client.answer().await.unwrap().status, 200);
    let seen = new.seen().remove(0);
    assert!(seen.values("upgrade").is_empty() && seen.body.is_empty());
    assert_eq!(new.seen().len(), 1);
}

#[tokio::test]
async fn paths_that_could_mean_another_place_are_refused() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    for path in [
        "/old/../new/items/a",
        "/old/things/..",
        "/old/things/%2e%2e",
        "/old/things/a%2f..%2fb",
        "/old/things/a%5cb",
        "/old/things/a%00",
        "/old/things/a%0d%0ax",
        "/old/things/%zz",
        "/old//things/a",
        "/old/things/a/",
        "/old/things/",
        "/old/./things/a",
        "/old/things/%ff",
    ] {
        refused(&gateway, &new, path, &request(&format!("GET {path}"), "", ""), &[400]).await;
    }
    for path in ["/OLD/things/a", "/elsewhere", "/", "/old", "/new/items/a", "/old/nothing"] {
        refused(&gateway, &new, path, &request(&format!("GET {path}"), "", ""), &[404]).await;
    }
}

#[tokio::test]
async fn a_value_stays_one_encoded_segment_whatever_it_holds() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    for (sent, forwarded) in [
        ("%252e%252e", "%252e%252e"),
        ("a%3Fb%23c", "a%3Fb%23c"),
        ("a;b=c", "a%3Bb%3Dc"),
        ("%E2%82%AC", "%E2%82%AC"),
        ("a%20b+c", "a%20b%2Bc"),
        ("accounts", "accounts"),
    ] {
        let answer =
            exchange(gateway.address, request(&format!("GET /old/things/{sent}"), "", "")).await.unwrap();
        assert_eq!(answer.status, 200, "{sent}");
        assert_eq!(
            new.seen().pop().unwrap().line(),
            format!("GET /new/items/{forwarded} HTTP/1.1"),
            "{sent}"
        );
    }
}

#[tokio::test]
async fn a_query_keeps_what_the_contract_knows_byte_for_byte_and_in_order() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let line = "GET /old/things/a?page=1&x=%26&page=%32&admin=true";
    assert_eq!(exchange(gateway.address, request(line, "", "")).await.unwrap().status, 200);
    assert_eq!(new.seen().remove(0).line(), "GET /new/items/a?page=1&page=%32 HTTP/1.1");
}

#[tokio::test]
async fn sizes_beyond_their_limits_are_refused_by_name() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let limits = Limits {
        bodies: BodyLimits { request_bytes_max: 100, ..BodyLimits::default() },
        ..Limits::default()
    };
    let gateway = Gateway::start(new.address, Setup { limits, ..Setup::default() }).await;
    let long = "x".repeat(9000);
    refused(&gateway, &new, "target", &request(&format!("GET /old/things/{long}"), "", ""), &[414]).await;
    let fields = format!("x-a: {long}\r\nx-b: {long}\r\n");
    refused(&gateway, &new, "field bytes", &request("GET /old/things/a", &fields, ""), &[431]).await;
    let fields: String = (0..150).map(|n| format!("x-{n}: a\r\n")).collect();
    refused(&gateway, &new, "field count", &request("GET /old/things/a", &fields, ""), &[431]).await;
    refused(&gateway, &new, "announced body", &request("POST /old/things", "", &"x".repeat(101)), &[413])
        .await;
    // The rest of the body is never sent: the answer must not wait for it.
    let chunked =
        head(&format!("host: a\r\ntransfer-encoding: chunked\r\n\r\n65\r\n{}\r\n", "x".repeat(0x65)));
    refused(&gateway, &new, "chunked body", &chunked, &[413]).await;
}

#[tokio::test]
async fn trailers_are_dropped() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    let chunks = "2\r\n{}\r\n0\r\ncontent-length: 9\r\nauthorization: Bearer x\r\nhost: evil\r\n\r\n";
    let bytes =
        head(&format!("host: a\r\ntrailer: authorization\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"));
    assert_eq!(exchange(gateway.address, bytes).await.unwrap().status, 201);
    let seen = new.seen().remove(0);
    assert_eq!(seen.values("authorization"), ["Bearer new-token-1"]);
    assert_eq!((seen.values("content-length"), seen.values("trailer").len()), (vec!["2"], 0));
}

/// Null is not an object by the contract; the client gets an error, and the other side is not
/// called.
#[tokio::test]
async fn null_is_no_body() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    for body in ["null", " null\n"] {
        refused(&gateway, &new, body, &request("POST /old/things", "", body), &[400]).await;
    }
    assert_eq!(exchange(gateway.address, request("POST /old/things", "", "{}")).await.unwrap().status, 201);
}
