//! Balancers that name their client by the PROXY protocol, in both versions: byte by byte, and HAProxy
//! in front of the real binary.

use crate::support::gateway::{Gateway, Setup, TOKEN};
use crate::support::peers::{Kind, Peer, Wire};
use crate::support::raw::{Act, PATIENCE, Upstream, answer};
use crate::support::serving;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use switchback_gateway::proxy::forwarding::{ForwardedFields, Forwarding};
use switchback_gateway::server::ServerOptions;
use switchback_gateway::store::seal::SealingKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

const BALANCER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

async fn old_service() -> Upstream {
    Upstream::start(vec![Act::Reply(answer(200, "", "by the old service"))]).await
}

/// Sends the pieces on a connection from `source`, and reads until it closes.
async fn received(source: Ipv4Addr, to: SocketAddr, pieces: &[&[u8]]) -> String {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((source, 0).into()).expect("all of 127/8 is loopback");
    let mut stream = socket.connect(to).await.expect("connects");
    stream.set_nodelay(true).expect("set");
    for piece in pieces {
        // It may have closed already.
        let _ = stream.write_all(piece).await;
    }
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes));
    let _ = reading.await.expect("the connection closes");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn request(prefix: &str) -> Vec<u8> {
    format!(
        "GET {prefix}/elsewhere HTTP/1.1\r\nhost: g\r\nx-own: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
    )
    .into()
}

/// A header of version 2: command, family, and the rest.
fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("short").to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n", &[command, family][..], &length, rest].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_of_a_balancer_is_the_one_that_its_header_names() {
    let old = old_service().await;
    let setup = Setup {
        old: Some(old.address),
        forwarding: Forwarding { fields: ForwardedFields::Set, trusted: [].into() },
        options: ServerOptions {
            tells_peer: true,
            proxied: vec!["127.0.0.9/32".parse().expect("a network")],
            ..ServerOptions::default()
        },
        ..Setup::default()
    };
    let gateway = Gateway::start(old.address, setup).await;
    let addresses = [203, 0, 113, 7, 127, 0, 0, 1, 0xc3, 0x50, 0, 80];
    // A field without a meaning, as balancers pad.
    let padded = [&addresses[..], &[4, 0, 3, 0, 0, 0]].concat();
    let long = format!("PROXY UNKNOWN {}\r\n", "f".repeat(91));
    for (name, header, client) in [
        ("TCP over IPv4", b"PROXY TCP4 203.0.113.7 127.0.0.1 50000 80\r\n".to_vec(), "203.0.113.7"),
        ("TCP over IPv6", b"PROXY TCP6 2001:db8::7 ::1 50000 80\r\n".to_vec(), "2001:db8::7"),
        ("no known client", b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.9"),
        ("the longest line", long.into(), "127.0.0.9"),
        ("binary", binary(0x21, 0x11, &addresses), "203.0.113.7"),
        ("binary, with a field", binary(0x21, 0x11, &padded), "203.0.113.7"),
        ("a health check", binary(0x20, 0, &[]), "127.0.0.9"),
    ] {
        let whole = [header, request("/old")].concat();
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        for pieces in [&[&whole[..]][..], &bytes] {
            let before = old.seen().len();
            let said = received(BALANCER, gateway.address, pieces).await;
            assert!(said.starts_with("HTTP/1.1 200"), "{name}: {said}");
            assert_eq!(old.seen()[before].values("x-forwarded-for"), [client], "{name}");
        }
    }
    let before = old.seen().len();
    for (name, header) in [
        ("no header", Vec::new()),
        ("half a header", b"PROXY TCP4 203.0.113.7\r\n".to_vec()),
        ("no address", b"PROXY TCP4 here there 1 2\r\n".to_vec()),
        ("a line too long", format!("PROXY UNKNOWN {}\r\n", "f".repeat(92)).into()),
        ("a line without its end", format!("PROXY {}", "f".repeat(200)).into()),
        ("binary, too long", binary(0x21, 0x11, &[0; 4097])),
        ("binary, of a later version", binary(0x31, 0x11, &addresses)),
    ] {
        let said = received(BALANCER, gateway.address, &[&header, &request("/old")]).await;
        assert_eq!(said, "", "{name}");
    }
    assert_eq!(old.seen().len(), before);

    // Anyone else is no balancer.
    let named = [&b"PROXY TCP4 203.0.113.7 127.0.0.1 50000 80\r\n"[..], &request("/old")].concat();
    let said = received(STRANGER, gateway.address, &[&named]).await;
    assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    let said = received(STRANGER, gateway.address, &[&request("/old")]).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert_eq!(old.seen().last().expect("called").values("x-forwarded-for"), ["127.0.0.2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn haproxy_names_its_client_in_both_versions() {
    let old = old_service().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = "proxy_protocol: []\nforwarded: set\nphases: { default: legacy }\n";
    let file = serving::write_before(folder.path(), &old.address.to_string(), &["v2", "v3"], more);
    let (program, address, _) = serving::serve(&file, &SealingKey::generate()).await;
    let program = Arc::new(program);
    // A reload is enough.
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::write(&file, text.replacen("proxy_protocol: []", "proxy_protocol: [127.0.0.1]", 1))
        .expect("written");
    program.signal("HUP");
    let reading = Arc::clone(&program);
    let reloading = tokio::task::spawn_blocking(move || reading.stderr_until("reloaded"));
    reloading.await.expect("it reloads");
    for option in ["send-proxy", "send-proxy-v2"] {
        let option = format!("{option} check inter 100ms");
        let starting = tokio::task::spawn_blocking(move || {
            Peer::configured(Kind::Haproxy, Wire::Plain, address, &option)
        });
        let Some(haproxy) = starting.await.expect("it starts") else { return };
        let url: http::Uri = haproxy.url("v2").parse().expect("a URL");
        let at: SocketAddr = url.authority().expect("with an address").as_str().parse().expect("an address");
        let said = received(BALANCER, at, &[&request("/v2")]).await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        assert_eq!(old.seen().last().expect("called").values("x-forwarded-for"), ["127.0.0.9"]);
        let reading = Arc::clone(&program);
        let log = tokio::task::spawn_blocking(move || reading.stderr_until("address=127.0.0.9")).await;
        log.expect("the access log has the client");
    }
}
