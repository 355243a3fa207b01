//! No peer occupies more than its share: clients that do not read, that send expensive requests, or
//! that open many connections from one address, next to clients that are still answered.

use crate::support::gateway::{Gateway, Setup, TOKEN, request};
use crate::support::raw::{Act, Client, PATIENCE, Upstream, exchange};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::memory::Memory;
use switchback_gateway::proxy::limits::{BodyLimits, Limits, UpstreamLimits};
use switchback_gateway::server::{self, ConnectionLimits, ConnectionTimeouts, ServerOptions};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const ITEM: &str = r#"{"title":"a"}"#;
const THING: &str = r#"{"name":"a"}"#;

/// Short enough for a test, long enough for an honest client on a busy machine.
const STALL: Duration = Duration::from_millis(300);

/// An item that is longer than all windows and buffers on its way.
fn long_item() -> String {
    let parts = vec![r#"{"part":"of some length, so that not too many are needed"}"#; 40_000];
    format!(r#"{{"title":"a","parts":[{}]}}"#, parts.join(","))
}

/// An HTTP/2 client that lets every answer send so many bytes, and the task that keeps it alive:
/// PINGs are answered.
pub async fn h2_client(address: SocketAddr, window: u32) -> (SendRequest<Bytes>, JoinHandle<()>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    let (client, connection) = builder.initial_window_size(window).handshake(stream).await.unwrap();
    (client, tokio::spawn(async move { drop(connection.await) }))
}

pub fn get(target: &str, token: &str) -> http::Request<()> {
    let request = http::Request::get(format!("http://gateway.test{target}"));
    request.header("x-own", format!("Bearer {token}")).body(()).unwrap()
}

pub async fn send(client: &mut SendRequest<Bytes>, request: http::Request<()>) -> ResponseFuture {
    poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
    client.send_request(request, true).unwrap().0
}

fn impatient() -> ServerOptions {
    let timeouts = ConnectionTimeouts { write: STALL, ..ConnectionTimeouts::default() };
    ServerOptions { timeouts, ..ServerOptions::default() }
}

#[tokio::test]
async fn an_answer_over_http2_that_its_client_does_not_read_is_cut_and_its_call_is_free_again() {
    let new = Upstream::start(vec![
        Act::json(200, &long_item()),
        Act::json(200, &long_item()),
        Act::json(200, ITEM),
    ])
    .await;
    let limits = Limits {
        bodies: BodyLimits { whole_bytes_max: 1024, ..BodyLimits::default() },
        upstream: UpstreamLimits { in_flight_max: 3, ..UpstreamLimits::default() },
        ..Limits::default()
    };
    let gateway =
        Gateway::start(new.address, Setup { limits, options: impatient(), ..Setup::default() }).await;
    let (mut client, _alive) = h2_client(gateway.address, 0).await;
    let mut stalled = Vec::new();
    for _ in 0..2 {
        let answer = send(&mut client, get("/old/things/a", TOKEN)).await;
        let answer = timeout(PATIENCE, answer).await.expect("the head needs no window").unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        stalled.push(answer.into_body());
    }
    for mut body in stalled {
        let next = timeout(PATIENCE, body.data()).await.expect("the stream is cut");
        let error = next.expect("it does not end as if it were complete").unwrap_err();
        assert_eq!(error.reason(), Some(h2::Reason::CANCEL), "{error}");
    }
    let answer = exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, THING));
}

#[tokio::test]
async fn a_stalled_answer_over_http2_does_not_end_the_others_of_its_connection() {
    let new = Upstream::start(vec![Act::json(200, &long_item()), Act::Silence]).await;
    let limits = Limits {
        bodies: BodyLimits { whole_bytes_max: 1024, ..BodyLimits::default() },
        upstream: UpstreamLimits { response_timeout: Duration::from_secs(3), ..UpstreamLimits::default() },
        ..Limits::default()
    };
    let gateway =
        Gateway::start(new.address, Setup { limits, options: impatient(), ..Setup::default() }).await;
    let (mut client, _alive) = h2_client(gateway.address, 0).await;
    let stalled = send(&mut client, get("/old/things/a", TOKEN)).await;
    let mut stalled = timeout(PATIENCE, stalled).await.unwrap().unwrap().into_body();
    // Waits for the upstream, which is no fault of the client, and for much longer than it may stall.
    let waiting = send(&mut client, get("/old/things/a", TOKEN)).await;
    assert!(timeout(PATIENCE, stalled.data()).await.expect("the stream is cut").unwrap().is_err());
    let waited = timeout(PATIENCE, waiting).await.expect("the other one is answered").unwrap();
    assert_eq!(waited.status().as_u16(), 504);
}

#[tokio::test]
async fn strangers_that_do_not_read_do_not_keep_their_places() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let connections = ConnectionLimits { max: 8, per_address_max: Some(8), trusted: Vec::new() };
    let options = ServerOptions { connections, ..impatient() };
    let gateway = Gateway::start(new.address, Setup { options, ..Setup::default() }).await;
    let mut strangers = Vec::new();
    for _ in 0..8 {
        let (mut client, alive) = h2_client(gateway.address, 0).await;
        let answer = send(&mut client, get("/old/things/a", "of-nobody")).await;
        let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
        assert_eq!(answer.status().as_u16(), 401);
        strangers.push((client, answer, alive));
    }
    assert_eq!(Client::connect(gateway.address).await.answer().await.unwrap().status, 503);
    for (_, _, alive) in strangers {
        timeout(PATIENCE, alive).await.expect("the connection of a stranger ends").unwrap();
    }
    let answer = exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap();
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_client_that_takes_its_answer_in_drops_is_no_reader() {
    let new = Upstream::start(vec![Act::json(200, &long_item())]).await;
    // Whatever it takes, it is less than this.
    let mut options = impatient();
    options.timeouts.answer_bytes_per_second_min = 1 << 40;
    let limits =
        Limits { bodies: BodyLimits { whole_bytes_max: 1024, ..BodyLimits::default() }, ..Limits::default() };
    let gateway = Gateway::start(new.address, Setup { limits, options, ..Setup::default() }).await;
    let (mut client, _alive) = h2_client(gateway.address, 1024).await;
    let answer = send(&mut client, get("/old/things/a", TOKEN)).await;
    let mut body = timeout(PATIENCE, answer).await.unwrap().unwrap().into_body();
    // Each piece is let in long before a stall would be cut.
    let mut ticks = tokio::time::interval(STALL / 6);
    let cut = async {
        loop {
            match body.data().await {
                Some(Ok(piece)) => drop(body.flow_control().release_capacity(piece.len())),
                other => return other,
            }
            ticks.tick().await;
        }
    };
    let cut = timeout(PATIENCE, cut).await.expect("the stream is cut");
    assert!(cut.expect("it does not end as if it were complete").is_err());
}

#[tokio::test]
async fn a_client_of_http2_that_waits_to_be_asked_is_asked_once_its_request_is_accepted() {
    let new = Upstream::start(vec![Act::json(200, r#"{"id":"1"}"#)]).await;
    let gateway = Gateway::before(&new).await;
    let (mut client, _alive) = h2_client(gateway.address, 65_535).await;
    let post = |token: &str| {
        let request = http::Request::post("http://gateway.test/old/things");
        let request = request.header("x-own", format!("Bearer {token}"));
        request.header("expect", "100-continue").body(()).unwrap()
    };
    poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
    let (mut answer, mut body) = client.send_request(post(TOKEN), false).unwrap();
    let asked = timeout(PATIENCE, poll_fn(|cx| answer.poll_informational(cx))).await.expect("it is asked");
    assert_eq!(asked.unwrap().unwrap().status().as_u16(), 100);
    body.send_data(Bytes::from_static(THING.as_bytes()), true).unwrap();
    assert_eq!(timeout(PATIENCE, answer).await.unwrap().unwrap().status().as_u16(), 201);

    // Refused by its head, so its body is not requested.
    let (mut answer, _body) = client.send_request(post("of-nobody"), false).unwrap();
    let (mut asked, mut status) = (0, 0);
    let told = poll_fn(|cx| {
        if let std::task::Poll::Ready(Some(_)) = answer.poll_informational(cx) {
            asked += 1;
        }
        std::pin::Pin::new(&mut answer).poll(cx)
    });
    if let Ok(answer) = timeout(PATIENCE, told).await.expect("it is answered") {
        status = answer.status().as_u16();
    }
    assert_eq!((status, asked), (401, 0));
}

#[tokio::test]
async fn an_address_gets_the_places_that_it_may_have_and_a_proxy_all() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    for (trusted, expected) in [("192.0.2.0/24", 503), ("127.0.0.0/8", 200)] {
        let connections = ConnectionLimits {
            per_address_max: Some(1),
            trusted: vec![trusted.parse().unwrap()],
            ..ConnectionLimits::default()
        };
        let options = ServerOptions { connections, ..ServerOptions::default() };
        let gateway = Gateway::start(new.address, Setup { options, ..Setup::default() }).await;
        let mut first = Client::connect(gateway.address).await;
        first.send(request("GET /old/things/a", "", "")).await;
        assert_eq!(first.answer().await.unwrap().status, 200);
        let second = exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap();
        assert_eq!(second.status, expected, "{trusted}");
    }
}

#[tokio::test]
async fn a_body_that_there_is_no_memory_for_earns_503_and_its_connection_goes_on() {
    let new = Upstream::start(vec![Act::json(200, r#"{"id":"1"}"#)]).await;
    let setup = Setup { memory: Some(Memory::new(300_000)), ..Setup::default() };
    let gateway = Gateway::start(new.address, setup).await;
    let body = format!(r#"{{"name":"{}"}}"#, "a".repeat(100_000));
    let whole = request("POST /old/things", "", &body);
    // The first one has announced its size, and sends only half of it.
    let mut first = Client::connect(gateway.address).await;
    first.send(&whole[..whole.len() / 2]).await;
    let mut second = Client::connect(gateway.address).await;
    let mut refused = None;
    // Until the first one's head was read.
    for _ in 0..1000 {
        second.send(&whole).await;
        let answer = second.answer().await.expect("the connection goes on");
        if answer.status == 503 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("there is no memory for both");
    assert_eq!(refused.value("retry-after"), "1");
    second.send(request("GET /old/things/a", "", "")).await;
    assert_ne!(second.answer().await.expect("the connection goes on").status, 503);
    first.send(&whole[whole.len() / 2..]).await;
    assert_eq!(first.answer().await.unwrap().status, 201, "it has what it was given");
    second.send(&whole).await;
    assert_eq!(second.answer().await.unwrap().status, 201, "and gives it back");
}

#[tokio::test]
async fn connections_that_there_is_no_memory_for_are_told_so() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let memory = Memory::new(2 * 16 * 1024);
    let options = ServerOptions { memory: Some(memory.clone()), ..ServerOptions::default() };
    let gateway = Gateway::start(new.address, Setup { options, ..Setup::default() }).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(gateway.address).await;
        client.send(request("GET /old/things/a", "", "")).await;
        assert_eq!(client.answer().await.unwrap().status, 200);
        held.push(client);
    }
    let refused = Client::connect(gateway.address).await.answer().await.unwrap();
    assert_eq!((refused.status, refused.value("retry-after")), (503, "1"));
    drop(held);
    crate::support::raw::until(|| memory.bytes_used() == 0).await;
    assert_eq!(exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap().status, 200);
}

#[tokio::test]
async fn an_object_with_too_many_members_and_a_body_with_too_many_values_are_refused_in_both_directions() {
    let members: Vec<String> = (0..101).map(|n| format!(r#""name-{n}":1"#)).collect();
    let wide = format!(r#"{{{},"name":"a"}}"#, members.join(","));
    let many = format!(r#"{{"name":"a","tags":[{}1]}}"#, "1,".repeat(1000));
    let limits = Limits {
        bodies: BodyLimits { object_members_max: 100, request_values_max: 1000, ..BodyLimits::default() },
        ..Limits::default()
    };
    // More than can be expected by name.
    let members: Vec<String> = (0..300).map(|n| format!(r#""name-{n}":1"#)).collect();
    let answer = format!(r#"{{{},"title":"a"}}"#, members.join(","));
    let new = Upstream::start(vec![Act::json(200, &answer)]).await;
    let gateway = Gateway::start(new.address, Setup { limits, ..Setup::default() }).await;
    for body in [&wide, &many] {
        let answer = exchange(gateway.address, request("POST /old/things", "", body)).await.unwrap();
        assert_eq!((answer.status, new.seen().len()), (413, 0), "{}", answer.text());
    }
    let answer = exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap();
    assert_eq!(answer.status, 502, "{}", answer.text());
}

/// On the one thread that all of this test runs on.
#[tokio::test]
async fn a_large_body_does_not_keep_others_waiting_while_it_is_worked_on() {
    let new = Upstream::start(vec![Act::json(200, r#"{"id":"1"}"#)]).await;
    let gateway = Gateway::before(&new).await;
    let names: Vec<String> = (0..2000).map(|n| format!(r#""name-of-a-member-{n}":0"#)).collect();
    let objects = vec![format!("{{{}}}", names.join(",")); 100];
    let large = format!(r#"{{"name":"large","parts":[{}]}}"#, objects.join(","));
    let mut first = Client::connect(gateway.address).await;
    let mut second = Client::connect(gateway.address).await;
    second.send(request("GET /old/things/before", "", "")).await;
    second.answer().await.unwrap();
    let whole = request("POST /old/things", "", &large);
    // All but its last byte is there before the others come.
    first.send(&whole[..whole.len() - 1]).await;
    second.send(request("GET /old/things/between", "", "")).await;
    second.answer().await.unwrap();
    first.send(&whole[whole.len() - 1..]).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    second.send(request("GET /old/things/small", "", "")).await;
    second.answer().await.unwrap();
    assert_eq!(first.answer().await.unwrap().status, 201);
    let seen: Vec<String> = new.seen().iter().map(|seen| seen.line().to_owned()).collect();
    let at = |part: &str| seen.iter().position(|line| line.contains(part)).expect("it was sent");
    assert!(at("/small") < at("POST"), "{seen:?}");
}

#[tokio::test]
async fn one_that_leaves_takes_clients_still_and_each_answer_is_the_last_of_its_connection() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let mut idle = Client::connect(gateway.address).await;
    idle.send(request("GET /old/things/a", "", "")).await;
    let answer = idle.answer().await.unwrap();
    assert_eq!(answer.value("connection"), "");
    let (mut over_h2, ended) = h2_client(gateway.address, 65_535).await;
    let first = send(&mut over_h2, get("/old/things/a", TOKEN)).await.await.unwrap();
    assert_eq!(first.status().as_u16(), 200);
    drop(first);

    gateway.drain.leave();
    timeout(PATIENCE, ended).await.expect("HTTP/2 is told to go away").unwrap();
    for client in [idle, Client::connect(gateway.address).await] {
        let mut client = client;
        client.send(request("GET /old/things/a", "", "")).await;
        let answer = client.answer().await.expect("nobody is turned away yet");
        assert_eq!((answer.status, answer.value("connection")), (200, "close"));
        assert!(client.is_closed().await);
    }
    let (mut late, ended) = h2_client(gateway.address, 65_535).await;
    let last = send(&mut late, get("/old/things/a", TOKEN)).await.await.unwrap();
    assert_eq!(last.status().as_u16(), 200);
    drop(last);
    timeout(PATIENCE, ended).await.expect("who comes over HTTP/2 now is told at once").unwrap();
    assert_eq!(gateway.stop().await, server::Drained { cut: 0 });
}

#[tokio::test]
async fn who_has_connected_when_it_stops_is_answered_and_who_says_nothing_is_cut() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let (mut asking, mut silent) =
        (Client::connect(gateway.address).await, Client::connect(gateway.address).await);
    // Both are accepted before the following ones are answered.
    let mut third = Client::connect(gateway.address).await;
    third.send(request("GET /old/things/a", "", "")).await;
    third.answer().await.expect("it serves");
    gateway.drain.begin();
    asking.send(request("GET /old/things/a", "", "")).await;
    let answer = asking.answer().await.expect("its request was on the way");
    assert_eq!((answer.status, answer.value("connection")), (200, "close"));
    assert!(silent.is_closed().await && asking.is_closed().await);
    gateway.stop().await;
}

/// For a listener that must always accept requests.
#[tokio::test]
async fn where_places_are_taken_the_oldest_stranger_makes_room_and_who_is_known_stays() {
    let known = tower::service_fn(|request: http::Request<switchback_gateway::body::Body>| async move {
        if request.uri().path() == "/known" {
            request.extensions().get::<server::ConnectionHandle>().expect("peers are told").trust();
        }
        Ok::<_, std::convert::Infallible>(http::Response::new(switchback_gateway::body::Body::full("here")))
    });
    let options = ServerOptions {
        connections: ConnectionLimits { max: 3, per_address_max: Some(3), trusted: Vec::new() },
        evicts: true,
        tells_peer: true,
        ..ServerOptions::default()
    };
    let listener = server::Listener::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
    let (address, drain) = (listener.address().unwrap(), server::Drain::new());
    let serving = tokio::spawn(server::serve(listener, known, Arc::new(options), drain.clone()));
    let ask = async |client: &mut Client, path: &str| {
        client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        client.answer().await.map(|answer| answer.text())
    };
    let mut operator = Client::connect(address).await;
    assert_eq!(ask(&mut operator, "/known").await.as_deref(), Some("here"));
    let mut strangers = Vec::new();
    for _ in 0..70 {
        let mut stranger = Client::connect(address).await;
        stranger.send("GET / HT").await;
        strangers.push(stranger);
        let mut probe = Client::connect(address).await;
        assert_eq!(ask(&mut probe, "/").await.as_deref(), Some("here"), "a probe always gets in");
    }
    assert!(strangers[0].is_closed().await, "the oldest made room");
    assert_eq!(ask(&mut operator, "/").await.as_deref(), Some("here"), "who is known stays");
    drop((strangers, operator));
    drain.begin();
    timeout(PATIENCE, serving).await.expect("it ends").unwrap();
}

/// A body that is not parsed has no bound of its own; the operator configures the permitted depth.
#[tokio::test]
async fn a_long_text_passes_and_the_depth_of_a_body_is_a_setting() {
    let text = format!(r#"{{"title":"{}"}}"#, "x".repeat(1_200_000));
    let deep = format!(r#"{{"title":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    let new = Upstream::start(vec![Act::json(200, &text), Act::json(200, &deep)]).await;
    for (body_depth_max, status) in [(64, 502), (128, 200)] {
        let limits = Limits {
            bodies: BodyLimits { depth_max: body_depth_max, ..BodyLimits::default() },
            ..Limits::default()
        };
        let gateway = Gateway::with(Setup { limits, ..Setup::default() }, &new).await;
        if body_depth_max == 64 {
            let got = exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap();
            assert_eq!((got.status, got.body.len()), (200, text.len() - 1), "`title` is `name`");
        }
        let got = exchange(gateway.address, request("GET /old/things/a", "", "")).await.unwrap();
        assert_eq!(got.status, status);
    }
}

/// Connections that the system has accepted before a listener closes have sent their requests.
#[tokio::test]
async fn connections_that_wait_when_the_listener_ends_are_answered() {
    use std::io::{Read as _, Write as _};
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    // The listener's task cannot run in between, because there is no await.
    let connect = |_| {
        let mut client = std::net::TcpStream::connect(gateway.address).unwrap();
        client.write_all(&request("GET /old/nothing", "", "")).unwrap();
        client
    };
    let clients: Vec<_> = (0..20).map(connect).collect();
    assert_eq!(gateway.stop().await.cut, 0);
    for mut client in clients {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it was not reset");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
}
