//! The gateway in front of common servers of production: nginx, HAProxy and Envoy, each in plain
//! HTTP/1.1, in TLS with HTTP/1.1 and in TLS with HTTP/2. The server in between must make no
//! difference, and no write may be lost or done twice.

use crate::support::peers::{Kind, Peer, Wire};
use crate::support::raw::{Answer, Client};
use crate::support::serving::{self, Enrolled, Serving};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use switchback_sandbox::{Options, Sandbox};

/// Calls of all kinds with their answers: status, and the body of reads.
const CALLS: &[(&str, &str)] = &[
    ("GET /v2/agents", ""),
    ("GET /v2/agents/203", ""),
    ("GET /v2/agents/999999", ""),
    ("GET /v2/chats?page=0", ""),
    ("GET /v2/chats/1", ""),
    ("GET /v2/chats/1/messages", ""),
    ("GET /v2/contacts?page=0", ""),
    ("POST /v2/chats/1/messages", r#"{"text":"olá 😀","isInternal":false}"#),
    ("POST /v2/chats/1/messages", r#"{"text":7}"#),
    ("POST /v2/chats/1/queue", ""),
    ("POST /v2/chats/5/reopen", ""),
    ("POST /v2/chats/1/close", r#"{"sendFeedback":false}"#),
    ("POST /v2/contacts", r#"{"name":"Ana","email":"ana@example.test"}"#),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_changes_behind_nginx() {
    unchanged_behind(Kind::Nginx).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_changes_behind_haproxy() {
    unchanged_behind(Kind::Haproxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_changes_behind_envoy() {
    unchanged_behind(Kind::Envoy).await;
}

async fn unchanged_behind(kind: Kind) {
    let sandbox = sandbox().await;
    let direct = Serving::before(&sandbox).await;
    let wanted = all_answers(direct.address, &token(&sandbox)).await;
    assert_eq!(wanted[0].0, 200);
    for wire in Wire::ALL {
        let sandbox = self::sandbox().await;
        let Some(peer) = Peer::before(kind, wire, sandbox.address()) else { return };
        let gateway = before(&peer, &sandbox).await;
        let got = all_answers(gateway.address, &token(&sandbox)).await;
        for ((wanted, got), (line, _)) in wanted.iter().zip(&got).zip(CALLS) {
            assert_eq!(got, wanted, "{line} through {kind:?}, {wire:?}");
        }
    }
}

/// nginx ends a connection after a number of requests, by GOAWAY over HTTP/2; unprocessed requests
/// need another connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_outlive_connections_that_nginx_ends() {
    // With as few as one, calls that are turned away meet others on each connection that follows.
    for (wire, calls) in Wire::ALL.into_iter().flat_map(|wire| [(wire, 3), (wire, 1)]) {
        let sandbox = sandbox().await;
        let more = format!("keepalive_requests {calls};");
        let Some(peer) = Peer::configured(Kind::Nginx, wire, sandbox.address(), &more) else { return };
        let gateway = before(&peer, &sandbox).await;
        write_concurrently(&gateway, &sandbox, wire, || {}).await;
    }
}

/// A reload ends all connections of the old worker, idle or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_outlive_reloads_of_nginx() {
    let sandbox = sandbox().await;
    let Some(peer) = Peer::before(Kind::Nginx, Wire::Tls2, sandbox.address()) else { return };
    let gateway = before(&peer, &sandbox).await;
    write_concurrently(&gateway, &sandbox, Wire::Tls2, || peer.reload()).await;
}

const WRITERS: usize = 8;
const WRITES: usize = 15;

/// Several clients write one after another, with something happening between; each write is
/// acknowledged and done once.
async fn write_concurrently(gateway: &Serving, sandbox: &Sandbox, wire: Wire, between: impl Fn()) {
    let (address, token) = (gateway.address, token(sandbox));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let token = token.clone();
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                let mut texts = Vec::new();
                for number in 0..WRITES {
                    let text = format!("text {writer}-{number}.");
                    let body = format!(r#"{{"text":"{text}"}}"#);
                    let answer = ask(&mut client, "POST /v2/chats/1/messages", &body, &token).await;
                    assert_eq!(answer.status, 201, "{wire:?} {text} {}", answer.text());
                    texts.push(text);
                }
                texts
            })
        })
        .collect();
    let mut texts = Vec::new();
    for writer in writers {
        between();
        texts.extend(writer.await.expect("no writer failed"));
    }
    let done = messages(sandbox).await;
    for text in texts {
        assert_eq!(done.iter().filter(|done| **done == text).count(), 1, "{text}");
    }
}

/// The texts of a chat as the service itself shows them.
async fn messages(sandbox: &Sandbox) -> Vec<String> {
    let mut client = Client::connect(sandbox.address()).await;
    let (mut texts, mut ids) = (Vec::new(), BTreeSet::new());
    for page in 0.. {
        let line = format!("GET /v2/chats/1/messages?page={page}");
        let answer = ask(&mut client, &line, "", &token(sandbox)).await;
        let list: Vec<serde_json::Value> = serde_json::from_str(&answer.text()).expect("a list");
        let before = ids.len();
        for message in &list {
            if ids.insert(message["id"].to_string()) {
                texts.push(message["body"].as_str().unwrap_or_default().to_owned());
            }
        }
        if ids.len() == before {
            break;
        }
    }
    texts
}

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("a free port")
}

fn token(sandbox: &Sandbox) -> String {
    sandbox.credentials().account("administrator").expect("every sandbox has one").v2_token.clone()
}

/// A gateway with a server in front of its v3 service, but not of its authorization server.
async fn before(peer: &Peer, sandbox: &Sandbox) -> Serving {
    let account = sandbox.credentials().account("administrator").expect("every sandbox has one");
    let connected = serving::connected(sandbox, &[Enrolled { account, company: None }]);
    Serving::at(&peer.url("v3"), &connected).await
}

async fn all_answers(address: SocketAddr, token: &str) -> Vec<(u16, String)> {
    let mut client = Client::connect(address).await;
    let mut answers = Vec::new();
    for (line, body) in CALLS {
        let answer = ask(&mut client, line, body, token).await;
        // The answer to a write contains times.
        let is_reading = line.starts_with("GET");
        answers.push((answer.status, if is_reading { answer.text() } else { String::new() }));
    }
    answers
}

async fn ask(client: &mut Client, line: &str, body: &str, token: &str) -> Answer {
    client
        .send(format!(
            "{line} HTTP/1.1\r\nhost: gateway.test\r\nx-authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    client.answer().await.expect("an answer")
}
