//! Limits of a front and of single operations, through the real binary: each replaces the limit that it
//! names, an operation inherits from its front, other fronts keep those of the section `limits`, and a
//! reload applies them.

use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Client, Upstream, answer, exchange};
use crate::support::serving;
use std::net::SocketAddr;
use std::path::Path;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

const TOKEN: &str = "x-authorization: Bearer old-token-of-acme\r\n";

/// A gateway before two services, which forwards all operations but lists of agents and new messages.
struct Gateway {
    address: SocketAddr,
    program: std::sync::Arc<Program>,
    folder: TempDir,
}

/// Writes a configuration with these sections `fronts` and `limits`.
fn write(folder: &Path, old: SocketAddr, new: SocketAddr, fronts: &str, limits: &str) {
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{}/store.db\nkey: ${{TEST_KEY}}\n\
         upstreams: {{ v3: {{ url: 'http://{new}/v3' }}, v2: {{ url: 'http://{old}/v2' }} }}\n\
         settings: {{ agents: {{ max_chats: 5 }} }}\nreload: {{ watch: false }}\n\
         phases: {{ default: legacy, 'GET /agents': translated, 'POST /chats/{{id}}/messages': translated }}\n\
         clients: [{{ name: acme, v2_token: old-token-of-acme, credentials: {{ v3: new-token-of-acme }} }}]\n\
         limits: {{ {limits} }}\nfronts: {{ {fronts} }}\n",
        folder.display(),
    );
    std::fs::write(folder.join("switchback.yaml"), text).expect("the file is written");
}

impl Gateway {
    async fn start(old: &Upstream, new: &Upstream, fronts: &str, limits: &str) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path(), old.address, new.address, fronts, limits);
        let file = folder.path().join("switchback.yaml");
        let (program, address, _) = serving::serve(&file, &SealingKey::generate()).await;
        Gateway { address, program: program.into(), folder }
    }

    /// Sends a body with its length or in one chunk.
    async fn post(&self, path: &str, body: &str, is_chunked: bool) -> Answer {
        let framed = match is_chunked {
            true => format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
            false => format!("content-length: {}\r\n\r\n{body}", body.len()),
        };
        let fields = format!("host: g\r\ncontent-type: application/json\r\n{TOKEN}");
        exchange(self.address, format!("POST {path} HTTP/1.1\r\n{fields}{framed}")).await.expect("an answer")
    }

    async fn get(&self, path: &str) -> Answer {
        exchange(self.address, format!("GET {path} HTTP/1.1\r\nhost: g\r\n{TOKEN}\r\n"))
            .await
            .expect("an answer")
    }
}

/// A message of so many bytes.
fn message(bytes: usize) -> String {
    let text = "x".repeat(bytes - r#"{"body":""}"#.len());
    format!(r#"{{"body":"{text}"}}"#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_have_the_limit_of_their_operation() {
    let old = Upstream::start(vec![Act::json(200, "{}")]).await;
    let new = Upstream::start(vec![Act::Reply(answer(201, "", ""))]).await;
    let fronts = "/v2: { speaks: v2, limits: { body_bytes: 1KiB, forwarded_bytes: 2KiB }, operation_limits: \
                  { 'POST /chats/{id}/messages': { body_bytes: 4KiB }, 'POST /chats/{id}/tags': { forwarded_bytes: 4KiB } } }, \
                  /other: { speaks: v2 }";
    let gateway =
        Gateway::start(&old, &new, fronts, "body_bytes: 8KiB, forwarded_bytes: 8KiB, upstream_timeout: 15s")
            .await;
    for (path, bytes, status) in [
        // Translated. The front inherits none of its body limit to the operation with its own.
        ("/v2/chats/1/messages", 4096, 201),
        ("/v2/chats/1/messages", 4097, 413),
        ("/other/chats/1/messages", 8192, 201),
        ("/other/chats/1/messages", 8193, 413),
        // Forwarded, with an operation and without.
        ("/v2/chats/1/tags", 4096, 200),
        ("/v2/chats/1/tags", 4097, 413),
        ("/v2/chats/1/close", 2048, 200),
        ("/v2/chats/1/close", 2049, 413),
        ("/v2/in/no/contract", 2048, 200),
        ("/v2/in/no/contract", 2049, 413),
        ("/other/chats/1/close", 8192, 200),
        ("/other/in/no/contract", 8193, 413),
    ] {
        for is_chunked in [false, true] {
            let answer = gateway.post(path, &message(bytes), is_chunked).await;
            assert_eq!(
                answer.status,
                status,
                "{path}, {bytes} bytes, chunked {is_chunked}: {}",
                answer.text()
            );
        }
    }
    // A reload replaces them.
    write(
        gateway.folder.path(),
        old.address,
        new.address,
        "/v2: { speaks: v2 }",
        "body_bytes: 8KiB, forwarded_bytes: 8KiB",
    );
    gateway.program.signal("HUP");
    let program = std::sync::Arc::clone(&gateway.program);
    spawn_blocking(move || program.stderr_until("reloaded")).await.expect("it reloads");
    for (path, status) in [("/v2/chats/1/messages", 201), ("/v2/chats/1/close", 200)] {
        assert_eq!(gateway.post(path, &message(8192), false).await.status, status, "{path}");
        assert_eq!(gateway.post(path, &message(8193), false).await.status, 413, "{path}");
    }
}

/// The section `limits` has timeouts of hours, so an answer shows that the limit of the front ended it.
const HOURS: &str = "upstream_timeout: 5h, total_timeout: 6h, forwarded_idle_timeout: 5h, body_timeout: 5h";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_have_the_timeouts_of_their_operation() {
    let (old, new) = (Upstream::start(vec![Act::Silence]).await, Upstream::start(vec![Act::Silence]).await);
    for (name, fronts, path) in [
        ("upstream, of the front", "limits: { upstream_timeout: 200ms }", "/v2/agents"),
        ("total, of the front", "limits: { total_timeout: 200ms }", "/v2/agents"),
        (
            "upstream, of the operation",
            "operation_limits: { GET /agents: { upstream_timeout: 200ms } }",
            "/v2/agents",
        ),
        (
            "total, of the operation",
            "operation_limits: { GET /agents: { total_timeout: 200ms } }",
            "/v2/agents",
        ),
        ("forwarded, of the front", "limits: { forwarded_idle_timeout: 200ms }", "/v2/contacts"),
        (
            "forwarded, without an operation",
            "limits: { forwarded_idle_timeout: 200ms }",
            "/v2/in/no/contract",
        ),
        (
            "forwarded, of the operation",
            "operation_limits: { GET /contacts: { forwarded_idle_timeout: 200ms } }",
            "/v2/contacts",
        ),
    ] {
        let gateway = Gateway::start(&old, &new, &format!("/v2: {{ speaks: v2, {fronts} }}"), HOURS).await;
        assert_eq!(gateway.get(path).await.status, 504, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_has_the_timeout_of_its_operation() {
    let old = Upstream::start(vec![Act::json(200, "{}")]).await;
    let new = Upstream::start(vec![Act::Reply(answer(201, "", ""))]).await;
    let fronts =
        "/v2: { speaks: v2, operation_limits: { 'POST /chats/{id}/messages': { body_timeout: 200ms } } }";
    let gateway = Gateway::start(&old, &new, fronts, HOURS).await;
    let mut client = Client::connect(gateway.address).await;
    let fields = format!("host: g\r\ncontent-length: 20\r\ncontent-type: application/json\r\n{TOKEN}");
    client.send(format!("POST /v2/chats/1/messages HTTP/1.1\r\n{fields}\r\n{{")).await;
    assert_eq!(client.answer().await.expect("an answer").status, 408);
    assert!(new.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_have_the_limit_of_their_operation() {
    let head = b"HTTP/1.1 200 X\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n".to_vec();
    let flood = || Act::Flood { head: head.clone(), piece: vec![b'x'; 16 << 10] };
    let (old, new) = (Upstream::start(vec![flood()]).await, Upstream::start(vec![flood()]).await);
    let fronts = "/v2: { speaks: v2, limits: { answer_bytes: 64KiB }, operation_limits: { GET /contacts: { answer_bytes: 128KiB } } }";
    let gateway = Gateway::start(&old, &new, fronts, "answer_bytes: 1GiB").await;
    for (path, bytes_max) in [("/v2/chats/1", 64 << 10), ("/v2/contacts", 128 << 10)] {
        let answer = gateway.get(path).await;
        assert!(!answer.is_complete, "{path}");
        let read = answer.body.len();
        assert!(read <= bytes_max && read > bytes_max / 2, "{path}: {read}");
    }
}

#[test]
fn a_check_shows_what_is_replaced_and_finds_mistakes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let anywhere: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let check = |fronts: &str, limits: &str, more: &[&str]| {
        write(folder.path(), anywhere, anywhere, fronts, limits);
        let file = folder.path().join("switchback.yaml");
        let program = serving::start(&file, &[&["--check"], more].concat());
        program.all()
    };
    let fronts = "/v2: { speaks: v2, limits: { total_timeout: 60s, body_bytes: 1KiB }, operation_limits: \
                  { 'GET /agents': { total_timeout: 5s, answer_bytes: 1MiB } } }";
    let (status, out, _) = check(fronts, "body_bytes: 8KiB", &[]);
    assert!(status.success(), "{out}");
    for line in [
        "fronts./v2.limits: body_bytes 1KiB (instead of 8KiB)",
        "fronts./v2.limits: total_timeout 1m (instead of 30s)",
        "fronts./v2.operation_limits.GET /agents: answer_bytes 1MiB (instead of 1GiB)",
        "fronts./v2.operation_limits.GET /agents: total_timeout 5s (instead of 1m)",
    ] {
        assert!(out.lines().any(|shown| shown == line), "{line} in {out}");
    }
    let (_, json, _) = check(fronts, "body_bytes: 8KiB", &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["limits"].as_array().map(Vec::len), Some(4), "{json:#}");
    assert_eq!(json["limits"][1]["inherited"], "30s", "{json:#}");

    let wrong = "/v2: { speaks: v2, limits: { total_timeout: 0s, body_byte: 1KiB, answer_bytes: 1 }, operation_limits: \
                 { 'GET /agent': {}, 'GET /agents': { upstream_timeout: 45s } } }";
    let (status, _, said) = check(wrong, "body_bytes: 8KiB", &[]);
    assert!(!status.success());
    for finding in [
        "`total_timeout` is between 1ms and 1d",
        "`body_byte`",
        "did you mean `body_bytes`",
        "`answer_bytes` is at least 64KiB",
    ] {
        assert!(said.contains(finding), "{finding} in {said}");
    }
    let wrong = "/v2: { speaks: v2, operation_limits: { 'GET /agent': {}, 'GET /agents': { upstream_timeout: 45s } } }";
    let (_, _, said) = check(wrong, "body_bytes: 8KiB", &[]);
    assert!(said.contains("`upstream_timeout` (45s) is longer than `total_timeout` (30s)"), "{said}");
    let wrong = "/v2: { speaks: v2, operation_limits: { 'GET /agent': {} } }";
    let (_, _, said) = check(wrong, "body_bytes: 8KiB", &[]);
    assert!(said.contains("`v2` has no operation `GET /agent`") && said.contains("GET /agents"), "{said}");
}
