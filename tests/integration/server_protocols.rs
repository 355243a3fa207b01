//! The listener's protocols: HTTP/2 by prior knowledge, TLS with either version by ALPN, and their
//! ends when the gateway drains.

use crate::support::gateway::{Gateway, Setup, TOKEN};
use crate::support::raw::{Act, PATIENCE, Upstream};
use crate::support::tls;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::proxy::limits::{BodyLimits, Limits, UpstreamLimits};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const ITEM: &str = r#"{"title":"a"}"#;
const THING: &str = r#"{"name":"a"}"#;

async fn secured(gateway: &Gateway, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut config = tls::client_config();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(gateway.address).await.unwrap();
    let name = "gateway.test".try_into().unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    stream
}

async fn h2<T>(transport: T) -> http2::SendRequest<Full<Bytes>>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(transport)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get(uri: &str) -> http::request::Builder {
    http::Request::get(uri).header("x-own", format!("Bearer {TOKEN}"))
}

async fn text(response: http::Response<hyper::body::Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn http2_is_spoken_to_who_speaks_it_first() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let mut sender = h2(TcpStream::connect(gateway.address).await.unwrap()).await;
    for _ in 0..2 {
        let request = get("http://gateway.test/old/things/a").body(Full::default()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
        assert_eq!(text(response).await, THING);
    }
    let seen = new.seen().remove(0);
    assert_eq!((seen.line(), seen.values("via")), ("GET /new/items/a HTTP/1.1", vec!["2.0 switchback"]));
}

/// Sends `head` of a connection, and the `rest` when another connection has been served meanwhile.
async fn in_two_parts(gateway: &Gateway, head: &[u8], rest: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(head).await.unwrap();
    let mut other = h2(TcpStream::connect(gateway.address).await.unwrap()).await;
    let answer = other.send_request(get("http://gateway.test/nowhere").body(Full::default()).unwrap()).await;
    assert_eq!(answer.unwrap().status().as_u16(), 404);
    stream.write_all(rest).await.unwrap();
    stream
}

#[tokio::test]
async fn the_version_is_found_in_bytes_that_come_one_by_one() {
    let new = Upstream::start(vec![]).await;
    let gateway = Gateway::before(&new).await;
    // Both begin with the same letter.
    let mut http1 = in_two_parts(&gateway, b"P", b"OST /nowhere HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut line = [0; 12];
    timeout(PATIENCE, http1.read_exact(&mut line)).await.unwrap().unwrap();
    assert_eq!(&line, b"HTTP/1.1 404");

    const NO_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let rest = [b"RI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NO_SETTINGS].concat();
    let mut http2 = in_two_parts(&gateway, b"P", &rest).await;
    let mut frame = [0; 9];
    timeout(PATIENCE, http2.read_exact(&mut frame)).await.unwrap().unwrap();
    assert_eq!(frame[3], 4, "the gateway's own settings come first");
}

#[tokio::test]
async fn an_error_over_http2_ends_its_stream_and_not_the_connection() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let limits =
        Limits { bodies: BodyLimits { request_bytes_max: 10, ..BodyLimits::default() }, ..Limits::default() };
    let gateway = Gateway::start(new.address, Setup { limits, ..Setup::default() }).await;
    let mut sender = h2(TcpStream::connect(gateway.address).await.unwrap()).await;
    let large =
        http::Request::post("http://gateway.test/old/things").header("x-own", format!("Bearer {TOKEN}"));
    let response = sender.send_request(large.body(Full::from(vec![b' '; 100_000])).unwrap()).await.unwrap();
    assert_eq!(response.status().as_u16(), 413);
    let response =
        sender.send_request(get("http://gateway.test/old/things/a").body(Full::default()).unwrap()).await;
    assert_eq!(response.unwrap().status().as_u16(), 200);
    assert_eq!(new.seen().len(), 1);
}

#[tokio::test]
async fn a_head_over_http2_has_no_body() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let gateway = Gateway::before(&new).await;
    let mut sender = h2(TcpStream::connect(gateway.address).await.unwrap()).await;
    let request =
        http::Request::head("http://gateway.test/old/things/a").header("x-own", format!("Bearer {TOKEN}"));
    let response = sender.send_request(request.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn tls_carries_both_versions() {
    let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
    let setup = Setup { tls: Some(tls::acceptor()), ..Setup::default() };
    let gateway = Gateway::start(new.address, setup).await;

    let mut sender = h2(secured(&gateway, b"h2").await).await;
    let request = get("https://gateway.test/old/things/a").body(Full::default()).unwrap();
    assert_eq!(text(sender.send_request(request).await.unwrap()).await, THING);

    let io = TokioIo::new(secured(&gateway, b"http/1.1").await);
    let (mut sender, connection) = http1::handshake::<_, Empty<Bytes>>(io).await.unwrap();
    tokio::spawn(connection);
    let request = get("/old/things/a").header("host", "gateway.test").body(Empty::new()).unwrap();
    assert_eq!(text(sender.send_request(request).await.unwrap()).await, THING);
}

#[tokio::test]
async fn draining_ends_http2_after_what_is_in_flight() {
    let new = Upstream::start(vec![Act::Silence]).await;
    let limits = Limits {
        upstream: UpstreamLimits {
            response_timeout: Duration::from_millis(300),
            ..UpstreamLimits::default()
        },
        ..Limits::default()
    };
    let gateway = Gateway::start(new.address, Setup { limits, ..Setup::default() }).await;
    let stream = TcpStream::connect(gateway.address).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let ended = tokio::spawn(connection);
    let request = get("http://gateway.test/old/things/a").body(Full::<Bytes>::default()).unwrap();
    let answering = tokio::spawn(sender.send_request(request));
    new.received(1).await;
    assert_eq!(gateway.stop().await.cut, 0);
    assert_eq!(answering.await.unwrap().unwrap().status().as_u16(), 504);
    tokio::time::timeout(PATIENCE, ended).await.expect("the connection ends").unwrap().unwrap();
}

/// Clients that connected before the gateway drains and ask only afterwards are answered, over TLS
/// too.
#[tokio::test]
async fn draining_waits_for_the_first_request_of_who_has_just_connected() {
    const PAUSE: Duration = Duration::from_millis(300);
    for is_tls in [false, true] {
        let new = Upstream::start(vec![Act::json(200, ITEM)]).await;
        let setup = Setup { tls: is_tls.then(tls::acceptor), ..Setup::default() };
        let gateway = Gateway::start(new.address, setup).await;
        let stream: Box<dyn Transport> = match is_tls {
            true => Box::new(secured(&gateway, b"http/1.1").await),
            false => Box::new(TcpStream::connect(gateway.address).await.unwrap()),
        };
        let stopping = tokio::spawn(gateway.stop());
        tokio::time::sleep(PAUSE).await;
        let (mut sender, connection) =
            http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = get("/old/things/a").header("host", "gateway.test").body(Empty::new()).unwrap();
        assert_eq!(text(sender.send_request(request).await.unwrap()).await, THING);
        assert_eq!(stopping.await.unwrap().cut, 0);
    }
}

/// Who connects and never asks does not hold up the end.
#[tokio::test]
async fn draining_ends_connections_that_stay_silent() {
    let new = Upstream::start(vec![]).await;
    let gateway = Gateway::before(&new).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let stopped = timeout(PATIENCE, gateway.stop()).await.expect("it ends");
    assert_eq!(stopped.cut, 0);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}
