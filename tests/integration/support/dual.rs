//! A gateway between v2 clients and both versions of a sandbox, in production form: with a
//! configuration file that can change, an admin port that accepts changes, and the command line.

use super::program::Program;
use super::raw::{self, Answer, Client};
use serde_json::Value;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::seal::{KeyRing, SealingKey};
use switchback_gateway::store::{MissingStore, Store};
use switchback_gateway::telemetry::metrics as names;
use switchback_sandbox::{Account, Sandbox};
use tempfile::TempDir;

/// The token of the admin port.
pub const ADMIN_TOKEN: &str = "admin-token-of-the-dual-run";

/// The files and secrets of a gateway; outlives its processes.
pub struct Dual {
    pub folder: TempDir,
    key: Secret<String>,
    /// Where the store is.
    pub store: String,
}

/// A running gateway. Stopped when dropped.
pub struct Running {
    /// Where clients connect.
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub program: Program,
    /// Its log up to readiness.
    pub said: String,
}

/// Where calls go: the addresses of the v2 and of the v3 service.
#[derive(Clone, Copy)]
pub struct Upstreams {
    pub v2: SocketAddr,
    pub v3: SocketAddr,
}

impl Upstreams {
    /// Both are the sandbox.
    pub fn of(sandbox: &Sandbox) -> Upstreams {
        Upstreams { v2: sandbox.address(), v3: sandbox.address() }
    }
}

impl Dual {
    /// On a SQLite file of its own.
    pub fn new() -> Dual {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = format!("sqlite:{}/store.db", folder.path().display());
        Dual { folder, key: SealingKey::generate(), store }
    }

    /// On a store that exists and is sealed with this key.
    pub fn sealed_with(key: Secret<String>, store: &str) -> Dual {
        Dual { folder: tempfile::tempdir().expect("a temporary folder"), key, store: store.to_owned() }
    }

    /// Another gateway on the same store, with files of its own.
    pub fn beside(&self) -> Dual {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Dual { folder, key: self.key.clone(), store: self.store.clone() }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("switchback.yaml")
    }

    /// Writes the configuration: every account of `clients` is enrolled by its v2 token and with
    /// its grant; `more` is YAML.
    pub fn configure(&self, sandbox: &Sandbox, upstreams: Upstreams, clients: &[&str], more: &str) {
        let (at, app) = (sandbox.address(), sandbox.credentials());
        let mut text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0, token: {ADMIN_TOKEN} }}\nstore: '{}'\nkey: ${{TEST_KEY}}\n\
             upstreams: {{ v3: {{ url: 'http://{}/v3' }}, v2: {{ url: 'http://{}/v2' }} }}\n\
             settings: {{ agents: {{ max_chats: 5 }} }}\n\
             oauth: {{ authorize_url: 'http://{at}/oauth/authorize', token_url: 'http://{at}/oauth/access_token', \
             redirect_url: '{}' }}\nclients:\n",
            self.store, upstreams.v3, upstreams.v2, app.redirect_uri
        );
        for role in clients {
            let account = sandbox.credentials().account(role).expect("a known role");
            let _ = writeln!(
                text,
                "- {{ name: {role}, v2_token: '{}', grant: {{ client_id: '{}', client_secret: '{}', refresh_token: '{}' }} }}",
                account.v2_token, app.client_id, app.client_secret, account.refresh_token
            );
        }
        text.push_str(&at_normal_priority(more));
        std::fs::write(self.file(), text).expect("the file is written");
    }

    /// Opens the store in addition to the gateway, as the command line does.
    pub async fn opened_store(&self) -> Store {
        self.store(MissingStore::Refuse).await
    }

    /// Creates the store before any gateway.
    pub async fn created_store(&self) -> Store {
        self.store(MissingStore::Create).await
    }

    async fn store(&self, missing: MissingStore) -> Store {
        let keys = KeyRing::parse(std::slice::from_ref(&self.key)).expect("a key");
        Store::open(&self.store, keys, Clock::machine(), missing).await.expect("the store opens")
    }

    /// Starts a gateway from the configuration and waits until it serves.
    pub async fn start(&self) -> Running {
        self.start_in(Vec::new()).await
    }

    /// The same with these variables in its environment.
    pub async fn start_in(&self, environment: Vec<(&'static str, String)>) -> Running {
        let (file, key) = (self.file(), self.key.clone());
        // Waiting blocks, and the sandbox may run on this very thread.
        let starting = tokio::task::spawn_blocking(move || {
            let file = file.to_str().expect("temporary folders have plain names");
            let own = [("TEST_KEY", key.expose().as_str())];
            let more = environment.iter().map(|(name, value)| (*name, value.as_str()));
            let variables: Vec<_> = own.into_iter().chain(more).collect();
            let program = Program::start(&["serve", "--config", file], &variables);
            let said = program.stderr_until("serving");
            let address = |name: &str| {
                let rest = said.split(name).nth(1).and_then(|rest| rest.split_whitespace().next());
                rest.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in:\n{said}"))
            };
            let (clients, admin) = (address("clients="), address("admin="));
            Running { address: clients, admin, program, said }
        });
        starting.await.expect("it serves")
    }

    /// Starts a gateway and waits until its clients have access tokens.
    pub async fn started(&self) -> Running {
        let gateway = self.start().await;
        eventually("the grant is refreshed ahead of use", async || {
            gateway.counted(names::TOKEN_EXPIRY, &[]).await > 0
        })
        .await;
        gateway
    }

    /// Runs a verb of the command line with this configuration; gives its exit code, output and errors.
    pub async fn cli(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let file = self.file();
        let file = file.to_str().expect("temporary folders have plain names");
        self.run(&[words, &["--config", file]].concat()).await
    }

    /// Runs the program in the folder of the configuration; gives its exit code, output and errors.
    pub async fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
        command.args(words).current_dir(self.folder.path()).env("TEST_KEY", self.key.expose());
        let output = tokio::task::spawn_blocking(move || command.output().expect("the program runs"));
        let output = output.await.expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The same for verbs that must succeed and print JSON.
    pub async fn cli_json(&self, words: &[&str]) -> Value {
        let (code, out, err) = self.cli(&[words, &["--format", "json"]].concat()).await;
        assert_eq!(code, Some(0), "{words:?}: {out}{err}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
    }
}

/// The shadow gets normal priority: many tests run at one time, and no core of the machine is idle.
fn at_normal_priority(more: &str) -> String {
    // Readings that are only timed would be among those that tests count.
    let timed = if more.contains("timed:") { "" } else { " timed: 0," };
    match more.contains("shadow: {") {
        true => more.replace("shadow: {", &format!("shadow: {{ priority: normal,{timed}")),
        false => format!("{more}shadow: {{ priority: normal,{timed} }}\n"),
    }
}

impl Running {
    /// Sends a request of an account with its v2 token; `fields` end in `\r\n` each. None if the
    /// connection ended without an answer.
    pub async fn ask(&self, account: &Account, line: &str, fields: &str, body: &str) -> Option<Answer> {
        let mut client = Client::connect(self.address).await;
        client.send(request(account, line, fields, body)).await;
        client.answer().await
    }

    /// Calls the admin port. Returns the status and the answer, as JSON if it is JSON.
    pub async fn admin(&self, line: &str, body: &Value) -> (u16, Value) {
        let answer = self.admin_text(line, body).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }

    /// The same, without parsing.
    pub async fn admin_text(&self, line: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut client = Client::connect(self.admin).await;
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN_TOKEN}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        client.send(head).await;
        client.answer().await.expect("the admin port answers")
    }

    /// Returns the sum of all samples of a metric with these labels.
    pub async fn counted(&self, metric: &str, labels: &[(&str, &str)]) -> u64 {
        let text = self.admin_text("GET /metrics", &Value::Null).await.text();
        let fits = |line: &&str| {
            line.strip_prefix(metric).is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|(name, value)| line.contains(&format!("{name}=\"{value}\"")))
        };
        let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        text.lines().filter(fits).filter_map(value).sum::<f64>() as u64
    }

    /// Waits until the shadow has processed a number of requests, with any result.
    pub async fn settled(&self, requests: u64) {
        eventually("the shadow is done", async || {
            let compared = self.counted(names::SHADOW_COMPARED, &[]).await;
            compared + self.counted(names::SHADOW_DROPPED, &[]).await >= requests
        })
        .await;
    }

    /// Returns the operation in the report once its counts satisfy this condition: metrics are
    /// recorded a little later.
    pub async fn reported_when(&self, operation: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        eventually("the record is written", async || {
            let (status, report) = self.admin("GET /api/diff", &Value::Null).await;
            assert_eq!(status, 200, "{report}");
            let operations = report["operations"].as_array().cloned().unwrap_or_default();
            last = operations.into_iter().find(|entry| entry["operation"] == operation).unwrap_or_default();
            is_so(&last["counts"])
        })
        .await;
        last
    }

    /// The operation in the report, once so many comparisons of it are recorded.
    pub async fn reported(&self, operation: &str, compared: u64) -> Value {
        let enough = |counts: &Value| {
            let count = |name: &str| counts[name].as_u64().unwrap_or(0);
            count("equal") + count("different") + count("equal_so_far") + count("planned") >= compared
        };
        self.reported_when(operation, enough).await
    }

    /// Returns the stored records.
    pub async fn exported(&self) -> Vec<Value> {
        let text = self.admin_text("GET /api/diff/export", &Value::Null).await.text();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON Lines")).collect()
    }

    /// Stops it, as a service manager does, and waits.
    pub async fn stop(self) {
        let program = self.program;
        let status = tokio::task::spawn_blocking(move || program.stop()).await.expect("it ends");
        assert!(status.success(), "{status}");
    }
}

/// Waits until something holds.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(raw::PATIENCE, asking).await.unwrap_or_else(|_| panic!("never happened: {what}"));
}

/// A request with an account's v2 token; `fields` end in `\r\n` each.
pub fn request(account: &Account, line: &str, fields: &str, body: &str) -> String {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let token = &account.v2_token;
    format!(
        "{line} HTTP/1.1\r\nhost: service.test\r\nx-authorization: Bearer {token}\r\n{length}{fields}\r\n{body}"
    )
}

/// Calls the sandbox's control, which must succeed.
pub async fn control(sandbox: &Sandbox, line: &str, body: Value) -> Value {
    let (method, what) = line.split_once(' ').expect("a method and what follows `/_sandbox/`");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!("{method} /_sandbox/{what} HTTP/1.1\r\nhost: control\r\n");
    let mut client = Client::connect(sandbox.address()).await;
    client.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await;
    let answer = client.answer().await.expect("control answers");
    assert!(answer.status < 300, "{line}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}

/// Returns the requests that the sandbox received below a path, without those of control.
pub async fn received(sandbox: &Sandbox, below: &str) -> Vec<Value> {
    let all = control(sandbox, "GET requests", Value::Null).await;
    let all = all.as_array().cloned().unwrap_or_default();
    all.into_iter()
        .filter(|entry| entry["path"].as_str().is_some_and(|path| path.starts_with(below)))
        .collect()
}

/// The account that may do everything.
pub fn administrator(service: &Sandbox) -> &Account {
    service.credentials().account("administrator").expect("every sandbox has one")
}

/// Calls a gateway as the administrator, with a body or with an empty one.
pub async fn ask(gateway: &Running, service: &Sandbox, line: &str, body: &str) -> Answer {
    gateway.ask(administrator(service), line, "", body).await.expect("an answer")
}

/// A gateway before the sandbox, or before others in its place, with the administrator as its
/// client; `more` is YAML.
pub async fn started(service: &Sandbox, upstreams: Upstreams, more: &str) -> (Dual, Running) {
    let dual = Dual::new();
    dual.configure(service, upstreams, &["administrator"], more);
    let gateway = dual.started().await;
    (dual, gateway)
}
