//! Serving with a thread per core: the distribution of connections, the peer's address, and the
//! end.

use crate::support::raw::PATIENCE;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use switchback_gateway::body::Body;
use switchback_gateway::server::{Bound, ConnectionLimits, CoreRuntimes, Drain, ServerOptions, Serving};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

const ANY: &str = "127.0.0.1:0";

/// Answers with the name of the thread that it runs on.
async fn whereabouts(_: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
    let thread = std::thread::current();
    Ok(http::Response::new(Body::full(thread.name().unwrap_or("?").to_owned())))
}

fn start(options: ServerOptions, drain: &Drain) -> (SocketAddr, CoreRuntimes) {
    let listeners = Bound::together(ANY.parse().unwrap(), 2, None).unwrap();
    let address = listeners[0].address().unwrap();
    let service = tower::service_fn(whereabouts);
    let (_, current) = watch::channel(Serving { service, options: Arc::new(options) });
    (address, CoreRuntimes::start(listeners, &current, drain).unwrap())
}

async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 1024];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn all_cores_answer_at_one_address_and_a_connection_stays_on_its_core() {
    let drain = Drain::new();
    let (address, mut cores) = start(ServerOptions::default(), &drain);
    let mut seen = BTreeSet::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let first = ask(&mut stream).await;
        let name = |answer: &str| answer.rsplit("\r\n").next().unwrap_or("").to_owned();
        assert_eq!(name(&first), name(&ask(&mut stream).await));
        seen.insert(name(&first));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["core-0", "core-1"]);
    drain.begin();
    assert_eq!(cores.wait_drained().await.cut, 0);
    cores.join().await;
}

#[tokio::test]
async fn cores_share_one_limit_of_connections() {
    let drain = Drain::new();
    let connections = ConnectionLimits { max: 1, ..ConnectionLimits::default() };
    let (address, _cores) = start(ServerOptions { connections, ..ServerOptions::default() }, &drain);
    let mut first = TcpStream::connect(address).await.unwrap();
    assert!(ask(&mut first).await.starts_with("HTTP/1.1 200"));
    // Enough of them that some go to the other core.
    for _ in 0..16 {
        let mut further = TcpStream::connect(address).await.unwrap();
        let mut answer = String::new();
        let read = further.read_to_string(&mut answer);
        tokio::time::timeout(PATIENCE, read).await.expect("a refusal").unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    }
}

#[tokio::test]
async fn an_address_that_others_share_is_taken_all_the_same() {
    let mine = Bound::together(ANY.parse().unwrap(), 2, None).unwrap();
    let address = mine[0].address().unwrap();
    let theirs = Bound::together(address, 2, None);
    assert_eq!(theirs.err().map(|error| error.kind()), Some(std::io::ErrorKind::AddrInUse));
}
