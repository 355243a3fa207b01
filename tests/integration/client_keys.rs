//! `private_key_jwt` through the real binary. The authorization server is Authlib, which verifies
//! every assertion: its signature, claims, and that no `jti` comes twice.

use crate::support::dual::eventually;
use crate::support::http;
use crate::support::program::Program;
use crate::support::python::python;
use crate::support::raw::{Act, Answer, Upstream, exchange};
use crate::support::serving;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

const ADMIN: &str = "the-admin-token-of-tests";
const CALLBACK: &str = "http://127.0.0.1:9090/oauth/callback";
const PEER: &str = "tests/oauth-peers/authlib_server.py";

/// A private key of the tests.
fn key_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/integration/support/client_keys/{name}.pem"))
}

fn pem(name: &str) -> String {
    std::fs::read_to_string(key_file(name)).expect("it is part of the project")
}

/// Authlib with the client APP-key, whose registered keys have their names as ids, and APP-peer with
/// a secret.
struct Server {
    child: Child,
    issuer: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// `None`, with a message, without Python.
    fn start(folder: &Path, key: &str) -> Option<Server> {
        let python = python()?;
        let kty = if key.starts_with("rsa") { "RSA" } else { "EC" };
        let keys = folder.join("registered.json");
        let registered = json!([{ "kty": kty, "kid": key, "pem": pem(key) }]);
        std::fs::write(&keys, registered.to_string()).expect("written");
        let mut child = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(PEER))
            .args(["0", CALLBACK, "3600"])
            .arg(&keys)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the interpreter starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("text");
        let issuer = line.trim().strip_prefix("ready ").expect("it serves").to_owned();
        Some(Server { child, issuer })
    }

    /// Returns whether an access token is valid (RFC 7662).
    async fn accepts(&self, token: &str) -> bool {
        let (_, answer) = self.post("/token/introspection", &[("token", token)]).await;
        answer["active"] == json!(true)
    }

    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
        let mut url: reqwest::Url = "http://localhost/".parse().expect("a URL");
        url.query_pairs_mut().extend_pairs(fields);
        let answer = http::client()
            .post(format!("{}{path}", self.issuer))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(url.query().unwrap_or_default().to_owned())
            .send()
            .await
            .expect("it answers");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// Returns the forms of the requests that came so far.
    async fn seen(&self) -> Vec<Value> {
        let answer = http::client().get(format!("{}/seen", self.issuer)).send().await.expect("it answers");
        answer.json().await.expect("JSON")
    }
}

/// A gateway of the real binary in front of a service that answers every call with an empty list.
struct Gateway {
    program: Arc<Program>,
    clients: SocketAddr,
    admin: SocketAddr,
    service: Upstream,
    folder: TempDir,
    sealing: String,
}

impl Gateway {
    async fn start(folder: TempDir, oauth: &str, clients: &str) -> Gateway {
        let service = Upstream::start(vec![Act::json(200, "[]")]).await;
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0, token: {ADMIN} }}\nstore: 'sqlite:{}/store.db'\n\
             key: ${{TEST_KEY}}\nupstreams: {{ v3: {{ url: 'http://{}/v3' }} }}\n\
             settings: {{ agents: {{ max_chats: 5 }} }}\nreload: {{ settle: 20ms }}\n\
             oauth: {{ {oauth}, redirect_url: '{CALLBACK}', body: form, refresh_sends: [] }}\nclients:\n{clients}",
            folder.path().display(),
            service.address,
        );
        let file = folder.path().join("switchback.yaml");
        std::fs::write(&file, text).expect("written");
        let sealing = SealingKey::generate();
        let (program, clients, admin) = serving::serve(&file, &sealing).await;
        let sealing = sealing.expose().clone();
        Gateway { program: Arc::new(program), clients, admin, service, folder, sealing }
    }

    /// Makes a call as the client with this name. Returns its status.
    async fn call(&self, client: &str) -> u16 {
        let request = format!(
            "GET /v2/chats/7/messages HTTP/1.1\r\nhost: {}\r\nx-authorization: Bearer token-of-{client}\r\n\
             connection: close\r\n\r\n",
            self.clients
        );
        exchange(self.clients, request).await.expect("it answers").status
    }

    /// Makes a call as the client with this name. Returns the access token that reached the service.
    async fn access_token(&self, client: &str) -> String {
        assert_eq!(self.call(client).await, 200, "{client}");
        let seen = self.service.seen();
        let value = seen.last().and_then(|seen| seen.values("authorization").pop().map(str::to_owned));
        value.expect("a credential").trim_start_matches("Bearer ").to_owned()
    }

    async fn ask(&self, line: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {ADMIN}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.admin,
            body.len()
        );
        exchange(self.admin, request).await.expect("the admin port answers")
    }

    async fn admin(&self, line: &str, body: &Value) -> (u16, Value) {
        let answer = self.ask(line, body).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Connects a client as its owner, who opens the link and agrees.
    async fn connect(&self, client: &str) {
        let (_, link) = self.admin(&format!("POST /api/clients/{client}/connect"), &json!({})).await;
        let link = link["url"].as_str().unwrap_or_else(|| panic!("{link}")).to_owned();
        let agreed = http::client().get(link).send().await.expect("it answers");
        let back = agreed.headers()["location"].to_str().expect("ASCII").to_owned();
        let query = back.strip_prefix(CALLBACK).expect("to the callback");
        let answer = self.ask(&format!("GET /oauth/callback{query}"), &json!(null)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    async fn log_until(&self, mark: &'static str) -> String {
        let program = Arc::clone(&self.program);
        spawn_blocking(move || program.stderr_until(mark)).await.expect("it says so")
    }
}

/// A part of a JSON Web Token.
fn part(token: &str, at: usize) -> Value {
    let part = token.split('.').nth(at).expect("three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("JSON")
}

/// Checks what Authlib leaves open about the assertions that it accepted. Returns the last one.
fn check_assertions(seen: &[Value], algorithm: &str, kid: &str, audience: &str) -> String {
    let by_key: Vec<&Value> = seen.iter().filter(|form| form["client_id"] == "APP-key").collect();
    let mut ids = HashSet::new();
    for form in &by_key {
        assert!(
            form.get("client_secret").is_none() && form["authorization"].is_null(),
            "one way at a time: {form}"
        );
        let assertion = form["client_assertion"].as_str().unwrap_or_else(|| panic!("{form}"));
        assert_eq!(part(assertion, 0), json!({ "alg": algorithm, "typ": "JWT", "kid": kid }));
        let claims = part(assertion, 1);
        let of = |name: &str| claims[name].as_i64().expect("a number");
        assert_eq!((&claims["iss"], &claims["sub"]), (&json!("APP-key"), &json!("APP-key")));
        assert_eq!(claims["aud"], json!(audience), "one audience, not a list");
        assert_eq!(of("exp") - of("iat"), 60);
        assert!(
            ids.insert(claims["jti"].as_str().expect("a text").to_owned()),
            "a jti comes twice: {claims}"
        );
    }
    by_key.last().expect("requests of the key")["client_assertion"].as_str().expect("a text").to_owned()
}

/// All requests of a client with a key, against a server that verifies each, next to a client with
/// a secret.
async fn every_request_is_authenticated(key: &str, algorithm: &str, oauth: impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = Server::start(folder.path(), key) else { return };
    let with_key =
        format!("client_id: APP-key, client_key: 'file:{}', client_key_id: {key}", key_file(key).display());
    let clients = format!(
        "- {{ name: machine, v2_token: token-of-machine, grant: {{ flow: client_credentials, {with_key} }} }}\n\
         - {{ name: person, v2_token: token-of-person, grant: {{ {with_key} }} }}\n\
         - {{ name: older, v2_token: token-of-older, grant: {{ flow: client_credentials, client_id: APP-peer, client_secret: peer-secret }} }}\n"
    );
    let gateway = Gateway::start(folder, &oauth(&server.issuer), &clients).await;
    for client in ["machine", "older"] {
        assert!(server.accepts(&gateway.access_token(client).await).await, "{client}");
    }
    gateway.connect("person").await;
    let first = gateway.access_token("person").await;
    assert!(server.accepts(&first).await, "the token of a code");
    let (_, retried) = gateway.admin("POST /api/clients/person/retry", &json!({})).await;
    assert_eq!(retried["refreshed"], json!(true), "{retried}");
    let second = gateway.access_token("person").await;
    assert!(second != first && server.accepts(&second).await, "the token of a refresh");

    let later = json!({
        "name": "later", "side": "v2", "token": "token-of-later", "flow": "client_credentials",
        "client_id": "APP-key", "client_key": pem(key), "client_key_id": key,
    });
    let (status, added) = gateway.admin("POST /api/clients", &later).await;
    assert_eq!(status, 201, "{added}");
    assert!(server.accepts(&gateway.access_token("later").await).await, "a client of the admin API");

    let (_, revoked) = gateway.admin("POST /api/clients/person/revoke", &json!({})).await;
    assert_eq!(revoked["at_server"]["result"], json!("revoked"), "{revoked}");
    assert!(!server.accepts(&second).await, "it is revoked at the server");

    let seen = server.seen().await;
    let grants: HashSet<&str> = seen.iter().filter_map(|form| form["grant_type"].as_str()).collect();
    assert_eq!(grants, HashSet::from(["authorization_code", "refresh_token", "client_credentials"]));
    let last = check_assertions(&seen, algorithm, key, &server.issuer);
    let form = [
        ("grant_type", "client_credentials"),
        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ("client_assertion", &last),
    ];
    let (status, replayed) = server.post("/token", &form).await;
    assert_eq!((status, &replayed["error"]), (400, &json!("invalid_client")), "a replay: {replayed}");

    let pem = pem(key);
    let material = pem.lines().nth(1).expect("a line of the key");
    for line in ["GET /api/clients", "GET /api/config", "GET /clients", "GET /"] {
        let answer = gateway.ask(line, &json!(null)).await;
        assert!(answer.status == 200 && !answer.text().contains(material), "{line}: {}", answer.status);
    }
    for entry in std::fs::read_dir(gateway.folder.path()).expect("it is there") {
        let path = entry.expect("it can be read").path();
        let is_store = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("store"));
        let bytes = std::fs::read(&path).expect("it can be read");
        let has_key = bytes.windows(material.len()).any(|bytes| bytes == material.as_bytes());
        assert!(!(is_store && has_key), "the store seals the key: {}", path.display());
    }
    gateway.program.signal("TERM");
    let log = gateway.log_until("stopped").await;
    assert!(!log.contains(material) && !log.contains(&last), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_p256_key_authenticates_every_request_to_an_issuer() {
    every_request_is_authenticated("p256", "ES256", |issuer| format!("issuer: '{issuer}'")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_rsa_key_authenticates_every_request_to_configured_addresses() {
    every_request_is_authenticated("rsa", "RS256", |issuer| {
        format!(
            "authorize_url: '{issuer}/authorize', token_url: '{issuer}/token', revocation_url: '{issuer}/revoke', \
             assertion_audience: '{issuer}'"
        )
    })
    .await;
}

fn machine(key: &Path, id: &str) -> String {
    format!(
        "- {{ name: machine, v2_token: token-of-machine, grant: {{ flow: client_credentials, client_id: APP-key, \
         client_key: 'file:{}', client_key_id: {id} }} }}\n",
        key.display()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_key_is_reported_and_a_reload_takes_up_the_right_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = Server::start(folder.path(), "p256") else { return };
    let key = folder.path().join("app.pem");
    std::fs::write(&key, pem("p256-second")).expect("written");
    let issuer = format!("issuer: '{}'", server.issuer);
    let gateway = Gateway::start(folder, &issuer, &machine(&key, "p256")).await;
    assert_eq!(gateway.call("machine").await, 503);
    let log = gateway.log_until("refuses the application").await;
    assert!(log.contains("invalid_client") && log.contains("client_secret or client_key"), "{log}");
    let (_, clients) = gateway.admin("GET /api/clients", &json!(null)).await;
    let grant = &clients[0]["grant"];
    assert_eq!((&grant["state"], &grant["reason"]), (&json!("misconfigured"), &json!("invalid_client")));
    let page = gateway.ask("GET /", &json!(null)).await.text();
    assert!(page.contains("does not know the application, its secret or its key"), "{page}");

    std::fs::write(&key, pem("p256")).expect("written");
    gateway.log_until("reloaded").await;
    eventually("the new key is used", async || gateway.call("machine").await == 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_signs_another_assertion() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = Server::start(folder.path(), "p256") else { return };
    let issuer = format!("issuer: '{}', client_auth: private_key_jwt", server.issuer);
    let gateway = Gateway::start(folder, &issuer, &machine(&key_file("p256"), "p256")).await;
    // The first call may find the token that the start requested.
    gateway.access_token("machine").await;
    server.post("/fail?times=1", &[]).await;
    let before = server.seen().await.len();
    gateway.admin("POST /api/clients/machine/retry", &json!({})).await;
    eventually("a second attempt", async || server.seen().await.len() >= before + 2).await;
    check_assertions(&server.seen().await, "ES256", "p256", &server.issuer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_keys_are_added_on_the_command_line_and_bad_keys_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(server) = Server::start(folder.path(), "p256") else { return };
    let issuer = format!("issuer: '{}', client_auth: private_key_jwt", server.issuer);
    let gateway = Gateway::start(folder, &issuer, &machine(&key_file("p256"), "p256")).await;
    let add = async |name: &'static str, key: &'static str| {
        let file = gateway.folder.path().join("switchback.yaml").display().to_string();
        let sealing = gateway.sealing.clone();
        let adding = spawn_blocking(move || {
            let key = format!("file:{}", key_file(key).display());
            let words = [
                "client",
                "--config",
                &file,
                "add",
                name,
                "--side",
                "v2",
                "--token",
                "env:TOKEN",
                "--app-id",
                "env:APP",
                "--app-key",
                &key,
                "--app-key-id",
                "p256",
                "--client-credentials",
            ];
            let token = format!("token-of-{name}");
            Program::start(&words, &[("TEST_KEY", &sealing), ("TOKEN", &token), ("APP", "APP-key")]).all()
        });
        adding.await.expect("it ends")
    };
    let (status, _, log) = add("fine", "p256").await;
    assert!(status.success(), "{log}");
    eventually("the gateway knows the client", async || gateway.call("fine").await == 200).await;
    let (status, _, log) = add("bad", "p256-public").await;
    assert!(!status.success() && log.contains("--app-key: this is the public part of a key"), "{log}");

    // A secret where the server takes only keys is reported without a request.
    let with = |more: Value| {
        let mut body = json!({ "name": "other", "flow": "client_credentials", "client_id": "APP-key" });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    for (more, words) in [
        (json!({ "client_key": pem("rsa-1024") }), "client_key: the private key is neither"),
        (json!({ "client_key": pem("p256-encrypted") }), "client_key: the private key is encrypted"),
        (json!({ "client_key": pem("p256"), "client_key_id": "a\nb" }), "client_key: a key id"),
        (json!({ "client_key": pem("p256"), "client_secret": "hunter2" }), "together with"),
        (json!({ "client_key_id": "p256" }), "together with"),
    ] {
        let (status, refused) = gateway.admin("POST /api/clients", &with(more)).await;
        assert!(status == 400 && refused.to_string().contains(words), "{words}: {status} {refused}");
    }
    let before = server.seen().await.len();
    let secret = with(json!({ "client_secret": "hunter2", "token": "token-of-other" }));
    assert_eq!(gateway.admin("POST /api/clients", &secret).await.0, 201);
    assert_eq!(gateway.call("other").await, 503);
    let (_, clients) = gateway.admin("GET /api/clients", &json!(null)).await;
    let other = clients.as_array().expect("a list").iter().find(|client| client["name"] == "other");
    assert_eq!(other.expect("there")["grant"]["reason"], json!("no_usable_client_key"));
    let page = gateway.ask("GET /", &json!(null)).await.text();
    assert!(page.contains("the application has no private key"), "{page}");
    assert_eq!(server.seen().await.len(), before, "nothing was sent");
}
