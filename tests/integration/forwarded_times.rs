//! The duration of a forwarded call: unlimited while bytes pass in either direction. An upload that
//! takes longer than any call may, a stream of events with pauses, and an answer that waits for an
//! event are completed; a silent connection is closed.

use crate::support::gateway::{Gateway, Setup, request};
use crate::support::peers::Wire;
use crate::support::raw::{Act, Client, Upstream, exchange};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use switchback_gateway::proxy::limits::{Limits, RequestLimits, UpstreamLimits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The longest silence.
const IDLE: Duration = Duration::from_millis(1500);
/// The pause between two pieces of a slow body.
const PAUSE: Duration = Duration::from_millis(150);
/// So many pieces take longer than the longest silence.
const PIECES: usize = 14;

fn setup(old: SocketAddr, wire: Wire) -> Setup {
    let limits = Limits {
        requests: RequestLimits { total_timeout: Duration::from_millis(200), ..RequestLimits::default() },
        upstream: UpstreamLimits {
            response_timeout: Duration::from_millis(200),
            forwarded_idle_timeout: IDLE,
            ..UpstreamLimits::default()
        },
        ..Limits::default()
    };
    Setup { limits, wire, old: Some(old), ..Setup::default() }
}

/// A service that has read the head of a request and does this.
async fn service<F: Future<Output = ()> + Send>(
    serve: impl Fn(TcpStream) -> F + Clone + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let serve = serve.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                serve(stream).await;
            });
        }
    });
    address
}

async fn say(stream: &mut TcpStream, bytes: &str) {
    stream.write_all(bytes.as_bytes()).await.unwrap();
}

async fn upload(client: &mut Client) {
    let fields = format!("content-length: {}\r\n", PIECES * 4);
    client.send(request("POST /old/never/heard", &fields, "")).await;
    for _ in 0..PIECES {
        tokio::time::sleep(PAUSE).await;
        client.send("abcd").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_takes_as_long_as_it_takes_while_bytes_flow() {
    for wire in [Wire::Plain, Wire::Tls1, Wire::Tls2] {
        let old = Upstream::over(wire, vec![Act::json(200, "{}")]).await;
        let gateway = Gateway::start("127.0.0.1:9".parse().unwrap(), setup(old.address, wire)).await;
        let mut client = Client::connect(gateway.address).await;
        upload(&mut client).await;
        assert_eq!(client.answer().await.expect("an answer").status, 200, "{wire:?}");
        assert_eq!(old.seen().remove(0).body, "abcd".repeat(PIECES).as_bytes(), "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_events_lasts_while_its_pauses_are_short() {
    let old = service(|mut stream| async move {
        say(
            &mut stream,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n",
        )
        .await;
        for _ in 0..PIECES {
            tokio::time::sleep(PAUSE).await;
            say(&mut stream, "9\r\ndata: x\n\n\r\n").await;
        }
        say(&mut stream, "0\r\n\r\n").await;
    });
    let gateway = Gateway::start("127.0.0.1:9".parse().unwrap(), setup(old.await, Wire::Plain)).await;
    let answer = exchange(gateway.address, request("GET /old/events", "", "")).await.unwrap();
    assert!(answer.is_complete, "{}", answer.text());
    assert_eq!(answer.text(), "data: x\n\n".repeat(PIECES));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_may_wait_for_something_to_happen() {
    let old = service(|mut stream| async move {
        tokio::time::sleep(IDLE / 3).await;
        say(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    });
    let gateway = Gateway::start("127.0.0.1:9".parse().unwrap(), setup(old.await, Wire::Plain)).await;
    let answer = exchange(gateway.address, request("GET /old/poll", "", "")).await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
}

/// The answer has started, and is silent beyond its limit while the upload continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_not_too_slow_while_its_request_still_comes() {
    let old = service(|mut stream| async move {
        say(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab").await;
        let mut body = [0; PIECES * 4];
        stream.read_exact(&mut body).await.unwrap();
        say(&mut stream, "cd").await;
    });
    let gateway = Gateway::start("127.0.0.1:9".parse().unwrap(), setup(old.await, Wire::Plain)).await;
    let mut client = Client::connect(gateway.address).await;
    upload(&mut client).await;
    let answer = client.answer().await.expect("an answer");
    assert_eq!((answer.status, answer.text().as_str()), (200, "abcd"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_silent_for_too_long_is_a_504() {
    for wire in [Wire::Plain, Wire::Tls2] {
        let old = Upstream::over(wire, vec![Act::Silence]).await;
        let gateway = Gateway::start("127.0.0.1:9".parse().unwrap(), setup(old.address, wire)).await;
        for bytes in [request("GET /old/never/heard", "", ""), request("POST /old/never/heard", "", "abcd")] {
            let begun = Instant::now();
            assert_eq!(exchange(gateway.address, bytes).await.unwrap().status, 504, "{wire:?}");
            assert!(begun.elapsed() >= IDLE, "{wire:?}");
        }
    }
}
