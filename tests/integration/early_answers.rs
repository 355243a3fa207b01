//! Answers before the end of their request: a client that is still sending, and reads only
//! afterwards, receives the complete answer (RFC 9112, section 9.6; RFC 9113, section 8.1).

use crate::bounds::h2_client;
use crate::support::gateway::{Gateway, Setup, TOKEN};
use crate::support::raw::{Act, Client, PATIENCE, Upstream};
use crate::support::tls;
use bytes::Bytes;
use h2::Reason;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_gateway::proxy::limits::{BodyLimits, Limits};
use switchback_gateway::server::{Lingering, ServerOptions};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Larger than the buffers of both ends.
const BODY_BYTES: usize = 12 << 20;
const SMALL: u64 = 1 << 20;
const LARGE: u64 = 1 << 30;

/// One that takes bodies of a megabyte at most, or of a gigabyte.
async fn gateway(bytes_max: u64, options: ServerOptions) -> Gateway {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let limits = Limits {
        bodies: BodyLimits {
            request_bytes_max: SMALL,
            forwarded_bytes_max: bytes_max,
            ..BodyLimits::default()
        },
        ..Limits::default()
    };
    Gateway::with(Setup { limits, options, ..Setup::default() }, &new).await
}

/// Sends a head and a body, and then reads. If the connection accepts no more data, the client
/// stops sending, as most do.
async fn told_afterwards(gateway: &Gateway, token: &str, framing: &str, piece: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect(gateway.address).await?;
    sent_and_read(&mut stream, token, framing, piece, async || {}).await
}

/// The same over a connection; `at_half` is run when half of the body is sent.
async fn sent_and_read<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    token: &str,
    framing: &str,
    piece: &[u8],
    at_half: impl AsyncFnOnce(),
) -> io::Result<String> {
    let head = format!("POST /old/things HTTP/1.1\r\nhost: a\r\nx-own: Bearer {token}\r\n{framing}\r\n");
    stream.write_all(head.as_bytes()).await?;
    let pieces = BODY_BYTES / (1 << 16);
    for _ in 0..pieces / 2 {
        stream.write_all(piece).await?;
    }
    at_half().await;
    for _ in pieces / 2..pieces {
        stream.write_all(piece).await?;
    }
    stream.flush().await?;
    let mut answer = Vec::new();
    match tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await? {
        // A complete answer needs no orderly shutdown of the connection.
        Err(error) if answer.is_empty() || error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    String::from_utf8(answer).map_err(io::Error::other)
}

/// Returns the status of an answer, which must have the announced length.
fn whole(answer: &str) -> &str {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    assert_eq!(length.map(str::to_owned), Some(body.len().to_string()), "{answer}");
    head.split(' ').nth(1).expect("a status")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tls_a_client_that_reads_only_after_its_body_finds_the_whole_answer() {
    let new = Upstream::start(vec![Act::json(200, "{}")]).await;
    let limits = Limits {
        bodies: BodyLimits { request_bytes_max: SMALL, ..BodyLimits::default() },
        ..Limits::default()
    };
    let gateway = Gateway::with(Setup { limits, tls: Some(tls::acceptor()), ..Setup::default() }, &new).await;
    let connector = TlsConnector::from(Arc::new(tls::client_config()));
    let name = "gateway.test".try_into().expect("a name");
    let stream = TcpStream::connect(gateway.address).await.expect("it listens");
    let mut stream = connector.connect(name, stream).await.expect("it is trusted");
    let length = format!("content-length: {BODY_BYTES}\r\n");
    let answer = sent_and_read(&mut stream, TOKEN, &length, &[b' '; 1 << 16], async || {}).await;
    assert_eq!(whole(&answer.expect("the answer was not lost")), "413");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_gateway_drains_such_a_client_still_finds_the_whole_answer() {
    let gateway = gateway(SMALL, ServerOptions::default()).await;
    let mut stream = TcpStream::connect(gateway.address).await.expect("it listens");
    let length = format!("content-length: {BODY_BYTES}\r\n");
    let drain = gateway.drain.clone();
    let begins = async || drain.begin();
    let answer = sent_and_read(&mut stream, TOKEN, &length, &[b' '; 1 << 16], begins).await;
    assert_eq!(whole(&answer.expect("the answer was not lost")), "413");
    assert_eq!(gateway.stop().await.cut, 0, "it ended by itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_only_after_its_body_finds_the_whole_answer() {
    let (small, large) =
        (gateway(SMALL, ServerOptions::default()).await, gateway(LARGE, ServerOptions::default()).await);
    let length = format!("content-length: {BODY_BYTES}\r\n");
    let chunked = "transfer-encoding: chunked\r\n";
    let chunk = [b"10000\r\n", &vec![b' '; 1 << 16][..], b"\r\n"].concat();
    for (token, framing, piece, status) in [
        (TOKEN, length.as_str(), &chunk[7..7 + (1 << 16)], 413),
        ("of-nobody", &length, &chunk[7..7 + (1 << 16)], 401),
        (TOKEN, chunked, &chunk[..], 413),
        ("of-nobody", chunked, &chunk[..], 401),
        (TOKEN, "x y: z\r\n", &chunk[..], 400),
    ] {
        let gateway = if status == 401 { &large } else { &small };
        let answer = told_afterwards(gateway, token, framing, piece).await;
        let answer = answer.unwrap_or_else(|error| panic!("{status} was lost ({framing}): {error}"));
        assert_eq!(whole(&answer), status.to_string(), "{framing}: {answer}");
    }
}

/// A client that never ends is disconnected after limits of time and bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_on_is_bounded() {
    let lingering = Lingering { timeout: Duration::from_millis(300), ..Lingering::default() };
    let short = ServerOptions { lingering, ..ServerOptions::default() };
    let gateway_of_time = gateway(LARGE, short).await;
    let head = format!("POST /old/things HTTP/1.1\r\nhost: a\r\ncontent-length: {BODY_BYTES}\r\n\r\n");
    let mut client = Client::connect(gateway_of_time.address).await;
    client.send(&head).await;
    assert_eq!(client.answer().await.expect("an answer").status, 401);
    let begun = Instant::now();
    let drain = gateway_of_time.stop().await;
    assert_eq!(drain.cut, 0, "it ended by itself");
    assert!(begun.elapsed() < Duration::from_secs(5));
    drop(client);

    let lingering = Lingering { bytes_max: 1 << 16, ..Lingering::default() };
    let few = ServerOptions { lingering, ..ServerOptions::default() };
    let gateway_of_bytes = gateway(SMALL, few).await;
    let answer =
        told_afterwards(&gateway_of_bytes, TOKEN, "content-length: 999999999\r\n", &[b' '; 1 << 16]).await;
    assert!(answer.is_err(), "the rest was not waited for");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http2_the_answer_is_whole_before_the_rest_is_declined() {
    for (token, status, bytes_max) in [(TOKEN, 413, SMALL), ("of-nobody", 401, LARGE)] {
        let gateway = gateway(bytes_max, ServerOptions::default()).await;
        let (mut client, _alive) = h2_client(gateway.address, 1 << 16).await;
        poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
        let request = http::Request::post("http://gateway.test/old/things");
        let request = request.header("x-own", format!("Bearer {token}"));
        let request = request.header("content-length", BODY_BYTES).body(()).unwrap();
        let (answer, mut body) = client.send_request(request, false).unwrap();
        let mut sent = 0;
        let declined = loop {
            body.reserve_capacity(1 << 14);
            let room = tokio::time::timeout(Duration::from_secs(20), poll_fn(|cx| body.poll_capacity(cx)));
            match room.await.expect("neither room nor an end") {
                Some(Ok(room)) => {
                    sent += room;
                    if body.send_data(Bytes::from(vec![b' '; room]), false).is_err() {
                        break poll_fn(|cx| body.poll_reset(cx)).await;
                    }
                }
                _ => break poll_fn(|cx| body.poll_reset(cx)).await,
            }
        };
        assert_eq!(declined.expect("the stream ends"), Reason::NO_ERROR, "{status}");
        assert!(sent < BODY_BYTES, "the rest was declined");
        let answer = answer.await.expect("the answer is there");
        assert_eq!(answer.status(), status);
        let length: usize = answer.headers()["content-length"].to_str().unwrap().parse().unwrap();
        let mut told = 0;
        let mut body = answer.into_body();
        while let Some(piece) = body.data().await {
            told += piece.expect("a whole answer").len();
        }
        assert_eq!(told, length);
    }
}
