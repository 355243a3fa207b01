//! Upstreams that fail in all possible ways: the client's answer, the number of calls, and that no
//! answer is truncated without notice or assigned to the wrong request. All of it holds for each
//! protocol to the upstream.

use crate::support::gateway::{Gateway, Setup, request};
use crate::support::peers::Wire;
use crate::support::raw::{Act, Client, Upstream, answer, exchange, until};
use std::net::SocketAddr;
use std::time::Duration;
use switchback_gateway::proxy::limits::Limits;
use switchback_gateway::server;
use tokio::net::TcpListener;

const ITEM: &str = r#"{"title":"a"}"#;
const THING: &str = r#"{"name":"a"}"#;

fn get() -> Vec<u8> {
    request("GET /old/things/a", "", "")
}

fn post() -> Vec<u8> {
    request("POST /old/things", "", "{}")
}

fn put() -> Vec<u8> {
    request("PUT /old/things/a", "", "{}")
}

fn limited(change: impl FnOnce(&mut Limits)) -> Setup {
    let mut setup = Setup::default();
    change(&mut setup.limits);
    setup
}

/// Creates a test of each scenario for each protocol to the upstream. A missing scenario is unused,
/// which the compiler reports.
macro_rules! scenarios {
    (everywhere: $everywhere:tt, over_http1: $over_http1:tt) => {
        scenarios!(@over plain, Wire::Plain, $everywhere, $over_http1);
        scenarios!(@over tls_http1, Wire::Tls1, $everywhere, $over_http1);
        scenarios!(@over tls_http2, Wire::Tls2, $everywhere, []);
    };
    (@over $way:ident, $wire:expr, [$($scenario:ident,)*], [$($more:ident,)*]) => {
        mod $way {
            use super::Wire;
            $(
                #[tokio::test]
                async fn $scenario() {
                    super::$scenario($wire).await;
                }
            )*
            $(
                #[tokio::test]
                async fn $more() {
                    super::$more($wire).await;
                }
            )*
        }
    };
}

scenarios! {
    everywhere: [
        an_upstream_that_is_not_there_is_a_502,
        an_upstream_that_never_answers_is_a_504_and_is_not_asked_again,
        the_budget_of_the_whole_request_ends_it_whatever_the_hops_allow,
        a_body_that_stops_coming_is_a_504_before_the_first_byte,
        a_read_on_a_connection_that_died_is_made_once_more,
        a_call_with_an_effect_is_sent_once_however_it_ends,
        a_write_whose_unwanted_answer_breaks_off_was_done_all_the_same,
        a_pooled_connection_that_was_closed_meanwhile_costs_no_write_and_no_client,
        a_connection_serves_call_after_call_and_is_closed_when_nobody_calls,
        a_truncated_answer_is_never_an_answer,
        a_status_that_http_does_not_have_is_a_502,
        the_head_of_an_answer_has_a_bound,
        the_head_of_an_answer_may_have_many_fields_and_more_where_the_operator_wants,
        what_upstreams_put_around_a_text_is_passed_over,
        an_honest_list_may_shrink_very_much,
        a_lost_connection_is_told_as_one,
        interim_answers_do_not_count_as_the_answer,
        a_success_that_is_no_json_is_a_502,
        errors_of_the_upstream_keep_their_status_and_their_words,
        a_refused_credential_is_renewed_once_and_the_same_bytes_go_out_again,
        a_refused_credential_that_cannot_be_renewed_now_is_not_the_clients_fault,
        coded_bodies_are_decoded_both_ways_and_bombs_stop_early,
        numbers_order_and_unknown_members_pass_unchanged,
        calls_that_come_together_are_all_answered,
        a_large_answer_streams_through_whole,
        a_large_answer_that_breaks_off_is_seen_to_be_incomplete,
        a_client_that_does_not_read_holds_the_upstream_back_and_is_cut,
        clients_that_do_not_read_hold_nobody_else_back,
        an_upstream_that_never_stops_talking_is_stopped_at_the_limit,
        a_read_ends_with_its_client_and_a_write_does_not,
        a_client_that_floods_is_refused_and_may_come_back,
        a_hanging_upstream_does_not_pile_up_requests,
        draining_lets_requests_in_flight_end_and_takes_no_new_ones,
        draining_cuts_what_does_not_end_within_the_grace,
    ],
    // Not expressible in HTTP/2: contradictory framing, and the lifetime of a connection.
    over_http1: [
        answers_that_are_out_of_step_are_502_and_their_connection_is_not_used_again,
        a_connection_is_not_kept_longer_than_the_upstream_says,
        bytes_behind_an_answer_are_never_the_next_answer,
    ]
}

/// An address without a listener.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

async fn an_upstream_that_is_not_there_is_a_502(wire: Wire) {
    let gateway = Gateway::start(nobody().await, Setup { wire, ..Setup::default() }).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert_eq!((got.status, got.text().as_str()), (502, r#"{"why":"The service cannot be reached."}"#));
}

async fn an_upstream_that_never_answers_is_a_504_and_is_not_asked_again(wire: Wire) {
    let new = Upstream::over(wire, vec![Act::Silence]).await;
    let setup = limited(|limits| limits.upstream.response_timeout = Duration::from_millis(500));
    let gateway = Gateway::with(setup, &new).await;
    for bytes in [get(), post()] {
        assert_eq!(exchange(gateway.address, bytes).await.unwrap().status, 504);
    }
    assert_eq!(new.seen().len(), 2);
}

async fn the_budget_of_the_whole_request_ends_it_whatever_the_hops_allow(wire: Wire) {
    let new = Upstream::over(wire, vec![Act::Silence]).await;
    let setup = limited(|limits| limits.requests.total_timeout = Duration::from_millis(50));
    let gateway = Gateway::with(setup, &new).await;
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 504);
}

async fn a_body_that_stops_coming_is_a_504_before_the_first_byte(wire: Wire) {
    let stuck = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{\"title\"".to_vec();
    let new = Upstream::over(wire, vec![Act::Reply(stuck)]).await;
    let setup = limited(|limits| limits.upstream.response_timeout = Duration::from_millis(50));
    let gateway = Gateway::with(setup, &new).await;
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 504);
}

async fn a_read_on_a_connection_that_died_is_made_once_more(wire: Wire) {
    for died in [Act::ReplyAndReset(Vec::new()), Act::ReplyAndClose(Vec::new())] {
        let new = Upstream::over(wire, vec![died, Act::json(200, ITEM)]).await;
        let gateway = Gateway::before(&new).await;
        let got = exchange(gateway.address, get()).await.unwrap();
        assert_eq!((got.status, got.text().as_str()), (200, THING));
        assert_eq!(new.seen().len(), 2);
    }
    let new = Upstream::over(wire, vec![Act::ReplyAndReset(Vec::new())]).await;
    let gateway = Gateway::before(&new).await;
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 502);
    assert_eq!(new.seen().len(), 2, "once more, not again and again");
}

async fn a_call_with_an_effect_is_sent_once_however_it_ends(wire: Wire) {
    for died in [
        Act::ReplyAndReset(Vec::new()),
        Act::ReplyAndClose(Vec::new()),
        Act::ReplyAndClose(b"HTTP/1.1 200".to_vec()),
    ] {
        for bytes in [post(), put()] {
            let new = Upstream::over(wire, vec![died.clone()]).await;
            let gateway = Gateway::before(&new).await;
            assert_eq!(exchange(gateway.address, bytes).await.unwrap().status, 502, "{died:?}");
            assert_eq!(new.seen().len(), 1, "{died:?}");
        }
    }
}

async fn a_write_whose_unwanted_answer_breaks_off_was_done_all_the_same(wire: Wire) {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec();
    let new = Upstream::over(wire, vec![Act::ReplyAndClose(cut)]).await;
    let gateway = Gateway::before(&new).await;
    assert_eq!(exchange(gateway.address, post()).await.unwrap().status, 201);
    assert_eq!(new.seen().len(), 1);
}

async fn a_pooled_connection_that_was_closed_meanwhile_costs_no_write_and_no_client(wire: Wire) {
    let new =
        Upstream::over(wire, vec![Act::ReplyAndClose(answer(200, "", ITEM)), Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(get()).await;
    assert_eq!(client.answer().await.unwrap().status, 200);
    new.closed(1).await;
    client.send(get()).await;
    assert_eq!(client.answer().await.unwrap().text(), THING);
}

async fn a_connection_serves_call_after_call_and_is_closed_when_nobody_calls(wire: Wire) {
    let new = Upstream::over(wire, vec![Act::json(200, ITEM)]).await;
    let setup = limited(|limits| limits.upstream.idle_timeout = Duration::from_secs(2));
    let gateway = Gateway::with(setup, &new).await;
    for _ in 0..3 {
        assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 200);
    }
    assert!(new.seen().iter().all(|seen| seen.connection == 0), "{:?}", new.seen());
    new.closed(1).await;
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 200);
    assert_eq!(new.seen()[3].connection, 1);
}

async fn a_truncated_answer_is_never_an_answer(wire: Wire) {
    for cut in [
        "content-length: 30\r\n\r\n{\"title\":\"a\"",
        "content-length: 30\r\n\r\n{\"title\":\"a\"}",
        "transfer-encoding: chunked\r\n\r\n5\r\n{\"tit\r\n",
        "transfer-encoding: chunked\r\n\r\nd\r\n{\"title\":\"a\"}\r\n",
        "connection: close\r\n\r\n{\"title\":\"a\"",
        "connection: close\r\n\r\n",
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{cut}").into_bytes();
        let new = Upstream::over(wire, vec![Act::ReplyAndClose(bytes)]).await;
        let gateway = Gateway::before(&new).await;
        let got = exchange(gateway.address, get()).await.unwrap();
        assert_eq!(got.status, 502, "{cut}");
        assert!(!got.text().contains("title"), "{cut}");
    }
}

async fn answers_that_are_out_of_step_are_502_and_their_connection_is_not_used_again(wire: Wire) {
    for (what, head) in [
        ("two different lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3"),
        ("length and chunks", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked"),
        ("chunked twice", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked"),
        ("an unknown coding", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked"),
        ("a NUL", "HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 2"),
        ("101 unasked", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade"),
        ("status 000", "HTTP/1.1 000 X\r\ncontent-length: 2"),
        ("garbage", "what?"),
    ] {
        let new = Upstream::over(wire, vec![Act::Reply(format!("{head}\r\n\r\n{{}}").into_bytes())]).await;
        let gateway = Gateway::before(&new).await;
        let mut client = Client::connect(gateway.address).await;
        for _ in 0..2 {
            client.send(post()).await;
            let got = client.answer().await.unwrap();
            assert_eq!(got.status, 502, "{what}");
        }
        let connections: Vec<_> = new.seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0, 1], "{what}");
    }
}

async fn a_status_that_http_does_not_have_is_a_502(wire: Wire) {
    for status in [199, 600, 999] {
        if status == 199 && wire == Wire::Tls2 {
            // There it is an interim answer, which cannot be followed by anything.
            continue;
        }
        let new = Upstream::over(wire, vec![Act::Reply(answer(status, "", ITEM))]).await;
        let gateway = Gateway::before(&new).await;
        assert_eq!(exchange(gateway.address, post()).await.unwrap().status, 502, "{status}");
    }
}

async fn the_head_of_an_answer_has_a_bound(wire: Wire) {
    // Limited by the buffer of a connection, because a buffer that grew with an answer would remain.
    let answers = [(16 * 1024, 200), (30 * 1024, 200), (64 * 1024, 502)];
    for (bytes, status) in answers {
        let field = format!("content-type: application/json\r\nx-long: {}\r\n", "a".repeat(bytes));
        let new = Upstream::over(wire, vec![Act::Reply(answer(200, &field, ITEM))]).await;
        let gateway = Gateway::before(&new).await;
        assert_eq!(exchange(gateway.address, get()).await.unwrap().status, status, "{bytes} bytes");
    }
}

async fn the_head_of_an_answer_may_have_many_fields_and_more_where_the_operator_wants(wire: Wire) {
    let fields = |count| (0..count).map(|n| format!("x-{n}: {n}\r\n")).collect::<String>();
    for (count, allowed, status) in [(200, 256, 200), (300, 256, 502), (1000, 2000, 200)] {
        let field = format!("content-type: application/json\r\n{}", fields(count));
        let new = Upstream::over(wire, vec![Act::Reply(answer(200, &field, ITEM))]).await;
        let setup = limited(|limits| limits.upstream.fields_max = allowed);
        let gateway = Gateway::with(setup, &new).await;
        assert_eq!(exchange(gateway.address, get()).await.unwrap().status, status, "{count} fields");
    }
    let field = format!("content-type: application/json\r\nx-long: {}\r\n", "a".repeat(100 * 1024));
    let new = Upstream::over(wire, vec![Act::Reply(answer(200, &field, ITEM))]).await;
    let gateway = Gateway::with(limited(|limits| limits.upstream.head_bytes_max = 128 * 1024), &new).await;
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 200);
}

async fn what_upstreams_put_around_a_text_is_passed_over(wire: Wire) {
    use async_compression::tokio::write::{DeflateEncoder, GzipEncoder};
    use tokio::io::AsyncWriteExt as _;
    let coded = |coding: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    let mut members = Vec::new();
    for part in [&ITEM[..5], &ITEM[5..]] {
        let mut encoder = GzipEncoder::new(Vec::new());
        encoder.write_all(part.as_bytes()).await.unwrap();
        encoder.shutdown().await.unwrap();
        members.extend(encoder.into_inner());
    }
    let mut encoder = DeflateEncoder::new(Vec::new());
    encoder.write_all(ITEM.as_bytes()).await.unwrap();
    encoder.shutdown().await.unwrap();
    let raw = encoder.into_inner();
    for (what, reply, status) in [
        ("a byte order mark", answer(200, "", &format!("\u{feff}{ITEM}")), 200),
        ("no coding, called none", coded("none", ITEM.as_bytes()), 200),
        ("two members of gzip", coded("gzip", &members), 200),
        ("one member of gzip of two", coded("gzip", &members[..members.len() / 2]), 502),
        ("gzip and more", coded("gzip", &[&members[..], b"more"].concat()), 502),
        ("deflate without its wrapping", coded("deflate", &raw), 200),
        ("deflate and more", coded("deflate", &[&raw[..], b"more"].concat()), 502),
    ] {
        let new = Upstream::over(wire, vec![Act::Reply(reply)]).await;
        let gateway = Gateway::before(&new).await;
        let got = exchange(gateway.address, get()).await.unwrap();
        assert_eq!(got.status, status, "{what}");
        assert_eq!(got.text() == THING, status == 200, "{what}: {}", got.text());
    }
}

/// Two thousand times the same but for a number: services send such lists.
async fn an_honest_list_may_shrink_very_much(wire: Wire) {
    use async_compression::tokio::write::GzipEncoder;
    use tokio::io::AsyncWriteExt as _;
    let entries: Vec<_> =
        (0..2000).map(|n| format!(r#"{{"id":{n},"{}":null}}"#, "field".repeat(120))).collect();
    let text = format!(r#"{{"title":"a","list":[{}]}}"#, entries.join(","));
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(text.as_bytes()).await.unwrap();
    encoder.shutdown().await.unwrap();
    let body = encoder.into_inner();
    assert!(text.len() / body.len() > 100, "{} {}", text.len(), body.len());
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", body.len());
    let new = Upstream::over(wire, vec![Act::Reply([head.as_bytes(), &body].concat())]).await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert!(got.is_complete && got.text() == text.replacen("title", "name", 1));
}

async fn a_lost_connection_is_told_as_one(wire: Wire) {
    let lost = r#"{"why":"The connection to the service was lost before it answered."}"#;
    let garbled = r#"{"why":"The service gave an answer that cannot be understood."}"#;
    for (act, told) in [
        (Act::ReplyAndReset(Vec::new()), lost),
        (Act::ReplyAndClose(Vec::new()), lost),
        (Act::ReplyAndClose(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()), lost),
        (Act::Reply(b"what?\r\n\r\n".to_vec()), garbled),
    ] {
        if told == garbled && wire == Wire::Tls2 {
            continue;
        }
        let new = Upstream::over(wire, vec![act.clone()]).await;
        let gateway = Gateway::before(&new).await;
        let got = exchange(gateway.address, post()).await.unwrap();
        assert_eq!((got.status, got.text().as_str()), (502, told), "{act:?}");
        assert_eq!(new.seen().len(), 1, "{act:?}");
    }
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n{\"title\":".to_vec();
    let new = Upstream::over(wire, vec![Act::ReplyAndClose(cut)]).await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert_eq!((got.status, got.text().as_str()), (502, lost));
}

async fn a_connection_is_not_kept_longer_than_the_upstream_says(wire: Wire) {
    let reply = |timeout| {
        let fields = format!("connection: keep-alive\r\nkeep-alive: timeout={timeout}, max=100\r\n");
        Act::Reply(answer(200, &fields, ITEM))
    };
    for (timeout, connections) in [(0, [0, 1]), (60, [0, 0])] {
        let new = Upstream::over(wire, vec![reply(timeout)]).await;
        let gateway = Gateway::before(&new).await;
        for _ in 0..2 {
            assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 200);
        }
        let seen: Vec<_> = new.seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(seen, connections, "timeout={timeout}");
    }
    // Left alone it is closed in time, though the operator would keep it for an hour.
    let new = Upstream::over(wire, vec![reply(1)]).await;
    let setup = limited(|limits| limits.upstream.idle_timeout = Duration::from_secs(3600));
    let gateway = Gateway::with(setup, &new).await;
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 200);
    new.closed(1).await;
}

async fn bytes_behind_an_answer_are_never_the_next_answer(wire: Wire) {
    let extra = [answer(200, "", ITEM), answer(200, "", r#"{"title":"poison"}"#)].concat();
    let new = Upstream::over(wire, vec![Act::Reply(extra), Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let mut client = Client::connect(gateway.address).await;
    for _ in 0..2 {
        client.send(get()).await;
        assert_eq!(client.answer().await.unwrap().text(), THING);
    }
}

async fn interim_answers_do_not_count_as_the_answer(wire: Wire) {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n".repeat(20);
    bytes.extend(answer(200, "", ITEM));
    let new = Upstream::over(wire, vec![Act::Reply(bytes)]).await;
    let gateway = Gateway::before(&new).await;
    assert_eq!(exchange(gateway.address, get()).await.unwrap().text(), THING);
}

async fn a_success_that_is_no_json_is_a_502(wire: Wire) {
    for (what, fields, body) in [
        ("an error page", "content-type: text/html\r\n", "<html>it works</html>"),
        ("nothing", "", ""),
        ("two documents", "content-type: application/json\r\n", "{} {}"),
        ("a member twice", "content-type: application/json\r\n", r#"{"title":1,"title":2}"#),
        ("another kind of value", "content-type: application/json\r\n", "[]"),
    ] {
        let new = Upstream::over(wire, vec![Act::Reply(answer(200, fields, body))]).await;
        let gateway = Gateway::before(&new).await;
        assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 502, "{what}");
    }
}

async fn errors_of_the_upstream_keep_their_status_and_their_words(wire: Wire) {
    for status in [400, 403, 404, 409, 423, 429, 500, 501, 503] {
        let body = r#"{"why":"because"}"#;
        let new = Upstream::over(
            wire,
            vec![Act::Reply(answer(status, "retry-after: 9\r\ncontent-type: application/json\r\n", body))],
        )
        .await;
        let gateway = Gateway::before(&new).await;
        let got = exchange(gateway.address, get()).await.unwrap();
        assert_eq!((got.status, got.text().as_str(), got.value("retry-after")), (status, body, "9"));
        assert_eq!(new.seen().len(), 1);
    }
    let new = Upstream::over(
        wire,
        vec![Act::Reply(answer(500, "content-type: text/html\r\n", "<b>stack trace</b>"))],
    )
    .await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert_eq!(got.status, 500);
    assert!(got.text().starts_with(r#"{"why":"#) && !got.text().contains("stack trace"), "{}", got.text());
}

async fn a_refused_credential_is_renewed_once_and_the_same_bytes_go_out_again(wire: Wire) {
    let refusal = || Act::json(401, r#"{"why":"expired"}"#);
    let new = Upstream::over(wire, vec![refusal(), Act::json(200, "{}"), refusal()]).await;
    let gateway = Gateway::before(&new).await;
    let sent = request("POST /old/things", "", r#"{"n":1.10}"#);
    assert_eq!(exchange(gateway.address, &sent).await.unwrap().status, 201);
    let seen = new.seen();
    assert_eq!(seen[0].values("authorization"), ["Bearer new-token-1"]);
    assert_eq!(seen[1].values("authorization"), ["Bearer new-token-2"]);
    assert_eq!((&seen[0].body, &seen[1].body), (&br#"{"n":1.10}"#.to_vec(), &br#"{"n":1.10}"#.to_vec()));
    assert_eq!(gateway.refreshes(), 2);

    // The token was good for this a moment ago, so it is renewed once more. A 401 that stays is the
    // answer: it also means "not permitted", and must not loop.
    for _ in 0..5 {
        let got = exchange(gateway.address, &sent).await.unwrap();
        assert_eq!((got.status, got.text().as_str()), (401, r#"{"why":"expired"}"#));
        assert_eq!(gateway.refreshes(), 3);
    }
}

async fn a_refused_credential_that_cannot_be_renewed_now_is_not_the_clients_fault(wire: Wire) {
    for (refused, retries) in [
        // The authorization server is down: later.
        (Act::json(503, "{}"), true),
        // It has ended the grant, or does not know the application: its owner, or the operator, has to act.
        (Act::json(400, r#"{"error":"invalid_grant"}"#), false),
        (Act::json(401, r#"{"error":"invalid_client"}"#), false),
    ] {
        let new =
            Upstream::over(wire, vec![Act::json(200, ITEM), Act::json(401, r#"{"why":"expired"}"#)]).await;
        let setup = Setup { refresh: Some(refused), ..Setup::default() };
        let gateway = Gateway::with(setup, &new).await;
        assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 200);
        for _ in 0..3 {
            let got = exchange(gateway.address, get()).await.unwrap();
            assert_eq!(
                (got.status, got.values("retry-after").len()),
                (503, usize::from(retries)),
                "{}",
                got.text()
            );
        }
        assert!(gateway.refreshes() <= 3, "{} calls", gateway.refreshes());
    }
}

async fn coded_bodies_are_decoded_both_ways_and_bombs_stop_early(wire: Wire) {
    use async_compression::tokio::write::GzipEncoder;
    use tokio::io::AsyncWriteExt as _;
    async fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzipEncoder::new(Vec::new());
        encoder.write_all(text).await.unwrap();
        encoder.shutdown().await.unwrap();
        encoder.into_inner()
    }
    fn coded(body: &[u8]) -> Vec<u8> {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }
    let bomb = gzip(&vec![b' '; 50_000_000]).await;
    let unknown = b"HTTP/1.1 200 OK\r\ncontent-encoding: rot13\r\ncontent-length: 2\r\n\r\n{}".to_vec();
    let script = [coded(&gzip(ITEM.as_bytes()).await), coded(&bomb), unknown, answer(200, "", "{}")];
    let new = Upstream::over(wire, script.map(Act::Reply).to_vec()).await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert_eq!((got.text().as_str(), got.values("content-encoding").len()), (THING, 0));
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 502, "a bomb");
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 502, "an unknown coding");

    let sent = |body: &[u8], coding: &str| {
        let fields = format!("content-encoding: {coding}\r\ncontent-length: {}\r\n", body.len());
        [request("POST /old/things", &fields, ""), body.to_vec()].concat()
    };
    let small = gzip(br#"{"n":1.10}"#).await;
    assert_eq!(exchange(gateway.address, sent(&small, "gzip")).await.unwrap().status, 201);
    let seen = new.seen().pop().unwrap();
    assert_eq!((seen.body.as_slice(), seen.values("content-encoding").len()), (&br#"{"n":1.10}"#[..], 0));
    let before = new.seen().len();
    assert_eq!(exchange(gateway.address, sent(&bomb, "gzip")).await.unwrap().status, 400);
    assert_eq!(exchange(gateway.address, sent(&small, "br")).await.unwrap().status, 400);
    assert_eq!(exchange(gateway.address, sent(&small, "rot13")).await.unwrap().status, 415);
    assert_eq!(new.seen().len(), before);
}

#[tokio::test]
async fn a_body_that_is_no_json_reaches_nobody() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let gateway = Gateway::before(&new).await;
    for body in ["{", "{}{}", "", "nul", "[1,]", "{\"a\":1,\"a\":2}", "{\"a\":\"\\ud800\"}", "\u{feff}{}"] {
        let got = exchange(gateway.address, request("POST /old/things", "", body)).await.unwrap();
        assert_eq!(got.status, 400, "{body:?}");
    }
    let deep = "[".repeat(100_000);
    let got = exchange(gateway.address, request("POST /old/things", "", &deep)).await.unwrap();
    assert!([400, 413].contains(&got.status), "{}", got.status);
    assert_eq!(new.seen().len(), 0);
}

async fn numbers_order_and_unknown_members_pass_unchanged(wire: Wire) {
    let body = r#"{"title":100000000000000000000,"z":1.10,"a":-0,"e":1e400,"k":{"$serde_json::private::Number":"1"},"u":"\u00e9"}"#;
    let new = Upstream::over(wire, vec![Act::json(200, body)]).await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert_eq!(got.text(), body.replacen("title", "name", 1));
}

/// Concurrent calls, before and after the protocol of the upstream is known.
async fn calls_that_come_together_are_all_answered(wire: Wire) {
    let new =
        Upstream::over(wire, vec![Act::ReplyAndClose(answer(200, "", ITEM)), Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    for round in 0..3 {
        let asking = (0..16).map(|_| exchange(gateway.address, get()));
        for got in futures_util::future::join_all(asking).await {
            assert_eq!(got.expect("an answer").text(), THING, "in round {round}");
        }
    }
    // HTTP/2 shares connections: one after the first, which was closed, for each of the cores that called.
    let connections = new.seen().iter().map(|seen| seen.connection).max();
    if wire == Wire::Tls2 {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(connections <= Some(16 + threads), "{connections:?}");
    }
}

/// An object of about this many bytes.
fn large(bytes: usize) -> String {
    format!(r#"{{"title":"a","text":"{}"}}"#, "x".repeat(bytes))
}

async fn a_large_answer_streams_through_whole(wire: Wire) {
    let body = large(3_000_000).replace('x', "é");
    let new = Upstream::over(wire, vec![Act::json(200, &body)]).await;
    let gateway = Gateway::before(&new).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert!(got.is_complete && got.value("transfer-encoding") == "chunked");
    assert!(got.text() == body.replacen("title", "name", 1), "{} bytes came", got.body.len());
}

async fn a_large_answer_that_breaks_off_is_seen_to_be_incomplete(wire: Wire) {
    let body = large(1_000_000);
    for (what, bytes) in [
        ("the connection", answer(200, "", &body)[..900_000].to_vec()),
        ("the text", answer(200, "", &body[..900_000])),
        ("a member twice", answer(200, "", &body.replace("\"}", "\",\"title\":1}"))),
    ] {
        let new = Upstream::over(wire, vec![Act::ReplyAndClose(bytes)]).await;
        let gateway = Gateway::before(&new).await;
        let got = exchange(gateway.address, get()).await.unwrap();
        assert_eq!(got.status, 200, "{what}");
        assert!(!got.is_complete, "{what}");
    }
}

async fn a_client_that_does_not_read_holds_the_upstream_back_and_is_cut(wire: Wire) {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"text\":\"".to_vec();
    let new = Upstream::over(wire, vec![Act::Flood { head, piece: vec![b'x'; 65536] }]).await;
    let mut options = server::ServerOptions::default();
    options.timeouts.write = Duration::from_millis(200);
    let gateway = Gateway::with(Setup { options, ..Setup::default() }, &new).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(get()).await;
    // The upstream would send forever: the end of its connection shows that the client's was closed for
    // not reading.
    new.closed(1).await;
}

async fn clients_that_do_not_read_hold_nobody_else_back(wire: Wire) {
    const SILENT: usize = 6;
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"text\":\"".to_vec();
    let flood = Act::Flood { head, piece: vec![b'x'; 65536] };
    let mut script = vec![flood; SILENT];
    script.push(Act::json(200, THING));
    let new = Upstream::over(wire, script).await;
    let gateway = Gateway::before(&new).await;
    let mut silent = Vec::new();
    for count in 1..=SILENT {
        let mut client = Client::connect(gateway.address).await;
        client.send(get()).await;
        new.received(count).await;
        silent.push(client);
    }
    // Until no data reaches the clients that do not read.
    let mut quiet = 0;
    while quiet < 5 {
        let before = new.flooded();
        assert_eq!(exchange(gateway.address, get()).await.expect("an answer").status, 200);
        quiet = if new.flooded() == before { quiet + 1 } else { 0 };
    }
}

async fn an_upstream_that_never_stops_talking_is_stopped_at_the_limit(wire: Wire) {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"list\":[0".to_vec();
    let new = Upstream::over(wire, vec![Act::Flood { head, piece: b",0".repeat(8192) }]).await;
    let setup = limited(|limits| limits.upstream.response_bytes_max = 1_000_000);
    let gateway = Gateway::with(setup, &new).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert!(!got.is_complete && got.body.len() < 1_100_000);
    new.closed(1).await;
}

async fn a_read_ends_with_its_client_and_a_write_does_not(wire: Wire) {
    let new = Upstream::over(wire, vec![Act::Silence]).await;
    let gateway = Gateway::before(&new).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(get()).await;
    new.received(1).await;
    client.reset();
    // The upstream's connection ends without an answer.
    new.closed(1).await;

    let slow = Upstream::over(wire, vec![Act::Silence]).await;
    let setup = limited(|limits| limits.upstream.response_timeout = Duration::from_secs(1));
    let gateway = Gateway::with(setup, &slow).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(post()).await;
    slow.received(1).await;
    client.reset();
    assert_eq!(gateway.detached.len(), 1, "the write goes on");
    until(|| gateway.detached.is_empty()).await;
    assert_eq!(slow.seen().len(), 1);
}

async fn a_client_that_floods_is_refused_and_may_come_back(wire: Wire) {
    let new = Upstream::over(wire, vec![Act::Silence, Act::json(200, ITEM)]).await;
    let setup = limited(|limits| {
        limits.requests.client_in_flight_max = 1;
        limits.upstream.response_timeout = Duration::from_secs(1);
    });
    let gateway = Gateway::with(setup, &new).await;
    let mut first = Client::connect(gateway.address).await;
    first.send(get()).await;
    new.received(1).await;
    let got = exchange(gateway.address, get()).await.unwrap();
    assert_eq!((got.status, got.value("retry-after")), (503, "1"));
    assert_eq!(first.answer().await.unwrap().status, 504);
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 200);
}

async fn a_hanging_upstream_does_not_pile_up_requests(wire: Wire) {
    let new = Upstream::over(wire, vec![Act::Silence]).await;
    let setup = limited(|limits| limits.upstream.in_flight_max = 1);
    let gateway = Gateway::with(setup, &new).await;
    let mut first = Client::connect(gateway.address).await;
    first.send(get()).await;
    new.received(1).await;
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 503);
    assert_eq!(new.seen().len(), 1);
}

/// The time for a connection includes TLS: one that takes calls' own time would end this test late.
#[tokio::test]
async fn an_upstream_that_never_agrees_on_tls_is_a_504_in_the_time_for_a_connection() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut setup = limited(|limits| {
        limits.upstream.connect_timeout = Duration::from_millis(100);
        limits.upstream.response_timeout = Duration::from_secs(3600);
        limits.requests.total_timeout = Duration::from_secs(3600);
    });
    setup.wire = Wire::Tls2;
    let gateway = Gateway::start(silent.local_addr().unwrap(), setup).await;
    for bytes in [get(), post()] {
        assert_eq!(exchange(gateway.address, bytes).await.unwrap().status, 504);
    }
}

#[tokio::test]
async fn half_a_head_is_given_up_and_so_is_a_body_that_drips() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let mut setup = limited(|limits| limits.requests.body_timeout.idle = Duration::from_millis(50));
    setup.options.timeouts.header = Duration::from_millis(100);
    let gateway = Gateway::start(new.address, setup).await;
    for start in ["", "GET /old/things/a HTTP/1.1\r\nhost: a\r\n"] {
        let mut client = Client::connect(gateway.address).await;
        client.send(start).await;
        assert!(client.is_closed().await, "{start:?}");
    }
    let mut client = Client::connect(gateway.address).await;
    client.send(request("POST /old/things", "content-length: 20\r\n", "")).await;
    let got = client.answer().await.unwrap();
    assert_eq!(got.status, 408);
    assert!(client.is_closed().await);
    assert_eq!(new.seen().len(), 0);
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told_so_and_idle_ones_make_room() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let mut options = server::ServerOptions::default();
    options.connections.max = 1;
    options.timeouts.idle = Duration::from_millis(200);
    let gateway = Gateway::start(new.address, Setup { options, ..Setup::default() }).await;
    let mut first = Client::connect(gateway.address).await;
    first.send(get()).await;
    assert_eq!(first.answer().await.unwrap().status, 200);
    let mut second = Client::connect(gateway.address).await;
    assert_eq!(second.answer().await.unwrap().status, 503);
    assert!(first.is_closed().await, "an idle connection is closed");
    assert_eq!(exchange(gateway.address, get()).await.unwrap().status, 200);
}

async fn draining_lets_requests_in_flight_end_and_takes_no_new_ones(wire: Wire) {
    let new = Upstream::over(wire, vec![Act::Silence]).await;
    let setup = limited(|limits| limits.upstream.response_timeout = Duration::from_secs(1));
    let gateway = Gateway::with(setup, &new).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(get()).await;
    new.received(1).await;
    let address = gateway.address;
    let stopping = tokio::spawn(gateway.stop());
    assert_eq!(client.answer().await.unwrap().status, 504, "the request in flight has its answer");
    assert!(client.is_closed().await);
    assert_eq!(stopping.await.unwrap().cut, 0);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

async fn draining_cuts_what_does_not_end_within_the_grace(wire: Wire) {
    let new = Upstream::over(wire, vec![Act::Silence]).await;
    let options =
        server::ServerOptions { grace: Duration::from_millis(50), ..server::ServerOptions::default() };
    let gateway = Gateway::with(Setup { options, ..Setup::default() }, &new).await;
    let mut client = Client::connect(gateway.address).await;
    client.send(get()).await;
    new.received(1).await;
    assert_eq!(gateway.stop().await.cut, 1);
    assert!(client.answer().await.is_none());
}
