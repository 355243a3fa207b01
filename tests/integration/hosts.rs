//! Sides with several hosts, through the real binary: each operation is called at its own host, and
//! at no other. The pack is `tests/integration/hosts`.

use crate::support::dual::eventually;
use crate::support::program::Program;
use crate::support::raw::{Act, Answer, Seen, Upstream, exchange, until};
use crate::support::serving;
use std::net::SocketAddr;
use std::process::Command;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/hosts");

/// Both versions of a service, each at two hosts.
struct Services {
    v1: Upstream,
    content: Upstream,
    v2: Upstream,
    files: Upstream,
}

impl Services {
    async fn start() -> Services {
        let of_v1 = |id: &str| format!(r#"{{"id":"{id}","name":"notes"}}"#);
        let of_v2 = |id: &str| format!(r#"{{"id":"{id}","title":"notes"}}"#);
        Services {
            v1: Upstream::answering(move |_, _| Act::json(200, &of_v1("7"))).await,
            content: Upstream::answering(|_, _| Act::json(200, r#"{"text":"hello"}"#)).await,
            v2: Upstream::answering(move |_, seen| {
                Act::json(if seen.line().starts_with("POST") { 201 } else { 200 }, &of_v2("7"))
            })
            .await,
            files: Upstream::answering(|_, _| Act::json(200, r#"{"body":"hello"}"#)).await,
        }
    }

    /// The request lines that each received, without the version of HTTP.
    fn asked(&self) -> [Vec<String>; 4] {
        let line = |seen: &Seen| seen.line().trim_end_matches(" HTTP/1.1").to_owned();
        [&self.v1, &self.content, &self.v2, &self.files].map(|one| one.seen().iter().map(line).collect())
    }

    /// `upstreams` of a configuration.
    fn upstreams(&self) -> String {
        let host = |name: &str, at: &Upstream| {
            let public = format!("public_url: 'https://{name}.example.com/of'");
            format!("hosts: {{ {name}: {{ url: 'http://{}/of/{name}', {public} }} }}", at.address)
        };
        format!(
            "upstreams:\n  v1: {{ url: 'http://{}/v1', {} }}\n  v2: {{ url: 'http://{}/v2', public_url: 'https://api.example.com/v2', {} }}\n",
            self.v1.address,
            host("content", &self.content),
            self.v2.address,
            host("files", &self.files)
        )
    }
}

struct Gateway {
    address: SocketAddr,
    admin: SocketAddr,
    program: Program,
    folder: TempDir,
}

fn configuration(folder: &TempDir, upstreams: &str, phases: &str) -> String {
    format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{}/store.db\nkey: ${{TEST_KEY}}\nmapping: {PACK}\n\
         fronts: {{ /old: {{ speaks: v1 }}, /new: {{ speaks: v2 }} }}\nphases: {phases}\n\
         shadow: {{ noise: 0, priority: normal }}\nreload: {{ watch: false }}\n\
         clients: [{{ name: ci, v1_token: key-of-v1, v2_token: token-of-v2, credentials: {{ v1: secret-at-v1, v2: secret-at-v2 }} }}]\n{upstreams}",
        folder.path().display()
    )
}

async fn gateway(services: &Services, phases: &str) -> Gateway {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("switchback.yaml");
    std::fs::write(&file, configuration(&folder, &services.upstreams(), phases)).expect("it is written");
    let (program, address, admin) = serving::serve(&file, &SealingKey::generate()).await;
    Gateway { address, admin, program, folder }
}

impl Gateway {
    async fn ask(&self, line: &str, body: &str) -> Answer {
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: g\r\nx-api-key: key-of-v1\r\nauthorization: Bearer token-of-v2\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        exchange(self.address, request).await.expect("an answer")
    }
}

#[tokio::test]
async fn each_operation_is_asked_for_at_its_own_host_in_both_directions() {
    let services = Services::start().await;
    let gateway = gateway(&services, "{ default: translated }").await;
    for (line, answered) in [
        ("GET /old/files/7", r#"{"id":"7","name":"notes"}"#),
        ("GET /old/files/7/content", r#"{"text":"hello"}"#),
        ("GET /new/files/7", r#"{"id":"7","title":"notes"}"#),
        ("GET /new/files/7/content", r#"{"body":"hello"}"#),
    ] {
        let answer = gateway.ask(line, "").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, answered), "{line}");
    }
    let made = gateway.ask("POST /old/files", r#"{"name":"notes","text":"hello"}"#).await;
    assert_eq!((made.status, made.text().as_str()), (201, r#"{"id":"7","name":"notes"}"#));
    assert_eq!(
        services.asked().map(|lines| lines.join(", ")),
        [
            "GET /v1/files/7",
            "GET /of/content/files/7/content",
            "GET /v2/files/7, POST /v2/files",
            "GET /of/files/files/7/content, PUT /of/files/files/7/content",
        ]
    );
    // Each host is sent its side's credential, and no other's.
    for (services, name, wanted) in [
        ([&services.v1, &services.content], "x-api-key", "secret-at-v1"),
        ([&services.v2, &services.files], "authorization", "Bearer secret-at-v2"),
    ] {
        for seen in services.iter().flat_map(|service| service.seen()) {
            assert_eq!(seen.values(name), [wanted], "{}", seen.line());
            let other = if name == "authorization" { "x-api-key" } else { "authorization" };
            assert!(seen.values(other).is_empty(), "{}", seen.line());
        }
    }
    let file = gateway.folder.path().join("switchback.yaml");
    let asking = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
        let file = file.to_str().expect("temporary folders have plain names");
        command.args(["serve", "--config", file, "--check=online"]);
        command.env("TEST_KEY", SealingKey::generate().expose()).output().expect("the program runs")
    });
    let output = asking.await.expect("it ends");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    for name in ["upstreams.v1.hosts.content", "upstreams.v2.hosts.files"] {
        assert!(text.contains(name), "{text}");
    }
    drop(gateway.program);
}

#[tokio::test]
async fn a_service_that_still_answers_itself_does_so_at_the_host_of_the_operation_and_so_does_who_is_asked_beside()
 {
    let services = Services::start().await;
    let gateway = gateway(
        &services,
        "{ v1 default: legacy, v2 default: translated, 'v1 GET /files/{id}/content': shadow }",
    )
    .await;
    let answer = gateway.ask("GET /old/files/7/content", "").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"text":"hello"}"#));
    let answer = gateway.ask("GET /old/files/7", "").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"id":"7","name":"notes"}"#));
    // Paths outside the contract are sent to the side's own address.
    gateway.ask("GET /old/unknown", "").await;
    until(|| !services.files.seen().is_empty()).await;
    // Where the answers differ, the reference is read once more.
    assert_eq!(
        services.asked().map(|mut lines| {
            lines.dedup();
            lines.join(", ")
        }),
        [
            "GET /v1/files/7, GET /v1/unknown",
            "GET /of/content/files/7/content",
            "",
            "GET /of/files/files/7/content"
        ]
    );
    drop(gateway.program);
}

#[tokio::test]
async fn the_letter_to_an_owner_names_the_public_address_of_the_host_of_each_call() {
    let services = Services::start().await;
    let gateway = gateway(&services, "{ default: translated }").await;
    gateway.ask("GET /old/files/7/content", "").await;
    gateway.ask("GET /old/files/7", "").await;
    let letter = "GET /api/clients/ci/letter HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut text = String::new();
    eventually("both are written down", async || {
        text = exchange(gateway.admin, letter.to_owned()).await.expect("an answer").text();
        text.contains("https://files.example.com/of/") && text.contains("https://api.example.com/v2/")
    })
    .await;
    assert!(!text.contains("127.0.0.1"), "addresses of the inner network mean nothing to an owner: {text}");
}

/// Returns the output of `serve --check` for a configuration.
fn checked(upstreams: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("switchback.yaml");
    std::fs::write(&file, configuration(&folder, upstreams, "{ default: translated }"))
        .expect("it is written");
    let output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .args(["serve", "--config", file.to_str().expect("a plain name"), "--check"])
        .env("TEST_KEY", SealingKey::generate().expose())
        .output()
        .expect("the program runs");
    assert_ne!(output.status.code(), Some(0));
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_host_without_an_address_and_an_address_without_a_host_are_found_before_anything_starts() {
    let v1 = "v1: { url: 'http://127.0.0.1:9', hosts: { content: { url: 'http://127.0.0.1:9' } } }";
    let missing = checked(&format!("upstreams:\n  {v1}\n  v2: {{ url: 'http://127.0.0.1:9' }}\n"));
    assert!(missing.contains("`v2` has the host `files`, and it has no address here"), "{missing}");
    assert!(missing.contains("add `upstreams.v2.hosts.files.url`"), "{missing}");
    assert!(missing.contains("switchback.yaml:13:3"), "{missing}");
    let misspelt = "v2: { url: 'http://127.0.0.1:9', hosts: { fils: { url: 'http://127.0.0.1:9' } } }";
    let misspelt = checked(&format!("upstreams:\n  {v1}\n  {misspelt}\n"));
    assert!(misspelt.contains("the pack names no host `fils` of `v2`"), "{misspelt}");
    assert!(misspelt.contains("did you mean `files`?"), "{misspelt}");
    assert!(!misspelt.contains("has no address here"), "one finding for one mistake: {misspelt}");
    // The host has the same settings as its side: an error in these is reported once.
    let missing = "tls: { ca_file: /nowhere/ca.pem }, hosts: { files: { url: 'https://127.0.0.1:9' } }";
    let missing =
        checked(&format!("upstreams:\n  {v1}\n  v2: {{ url: 'https://127.0.0.1:9', {missing} }}\n"));
    assert_eq!(missing.matches("error[").count(), 1, "{missing}");
    assert!(missing.contains("/nowhere/ca.pem"), "{missing}");
}

#[test]
fn explain_says_at_which_host_a_call_is_made() {
    let output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .args(["explain", "POST /v1/files", PACK])
        .output()
        .expect("the program runs");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("call POST /files of v2: writes"), "{text}");
    assert!(text.contains("/content of v2 at its host files: writes"), "{text}");
}
