//! The cluster of `deploy` as processes (`deploy/local-cluster`): operations of an administrator
//! and their effect on clients; and the dashboard's queries, on the Prometheus that has scraped it.

use reqwest::{Client, StatusCode};
use serde_json::Value;
use std::collections::HashMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use switchback_sandbox::{Options, Sandbox};
use tempfile::TempDir;
use tokio::sync::RwLock;

/// How long PostgreSQL is away.
const AWAY: Duration = Duration::from_secs(30);
/// Between two requests of one client.
const PACE: Duration = Duration::from_millis(60);
const CLIENTS: usize = 4;

/// A running cluster; ended when dropped.
struct Cluster {
    folder: TempDir,
    port: u16,
    /// Its own records.
    known: HashMap<String, String>,
}

impl Cluster {
    /// `None`, with a message, if a program is missing.
    async fn up() -> Option<Cluster> {
        let missing = |name: &&str| {
            let folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/sbin"];
            !folders.iter().any(|folder| Path::new(folder).join(name).exists())
        };
        let missing: Vec<&str> =
            ["haproxy", "prometheus", "curl", "setsid"].into_iter().filter(missing).collect();
        if !missing.is_empty() || !Path::new("/usr/lib/postgresql").exists() {
            eprintln!("SKIPPED: not installed: {missing:?}, or PostgreSQL");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut cluster = Cluster { folder, port: free_ports(9), known: HashMap::new() };
        cluster.run("up", None).await;
        let known = std::fs::read_to_string(cluster.folder.path().join("env")).expect("it is written");
        let pairs = known.lines().filter_map(|line| line.split_once('='));
        cluster.known = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(cluster)
    }

    fn command(&self, verb: &str, name: Option<&str>) -> Command {
        let mut command = Command::new("deploy/local-cluster");
        command.arg(verb).arg(self.folder.path()).args(name);
        command
            .env("SWITCHBACK", env!("CARGO_BIN_EXE_switchback"))
            .env("CLUSTER_PORT", self.port.to_string())
            .env("CLUSTER_SCRAPE", "1s");
        command
    }

    async fn run(&self, verb: &str, name: Option<&str>) {
        let mut command = self.command(verb, name);
        let done = tokio::task::spawn_blocking(move || command.output()).await.expect("it ends");
        let done = done.expect("bash runs");
        let logs = || {
            let read = |file: PathBuf| std::fs::read_to_string(file).unwrap_or_default();
            let files = std::fs::read_dir(self.folder.path()).expect("it is ours").filter_map(Result::ok);
            let logs =
                files.map(|file| file.path()).filter(|file| file.extension().is_some_and(|end| end == "log"));
            logs.map(|file| format!("{}:\n{}", file.display(), last_lines(&read(file.clone()))))
                .collect::<String>()
        };
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{verb} {name:?}: {said}\n{}", logs());
    }

    fn at(&self, name: &str) -> &str {
        &self.known[name]
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // After any failure, no process remains.
        let _ = self.command("down", None).status();
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n") + "\n"
}

/// The first of so many ports in a row that are free now.
fn free_ports(count: u16) -> u16 {
    for _ in 0..1000 {
        let first = fastrand::u16(20_000..32_000);
        let held: Vec<_> =
            (first..first + count).map(|port| TcpListener::bind(("127.0.0.1", port))).collect();
        if held.iter().all(Result::is_ok) {
            return first;
        }
    }
    panic!("no {count} free ports in a row");
}

/// Clients that go on asking, each on connections that it keeps.
struct Load {
    done: Arc<AtomicUsize>,
    /// Whether clients write; a write holds it until it is answered.
    writes: Arc<RwLock<bool>>,
    errors: Arc<Mutex<Vec<String>>>,
    /// Answers that started as successes and are incomplete.
    cut: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    clients: Vec<tokio::task::JoinHandle<()>>,
}

/// The answer to a client.
enum Outcome {
    Whole,
    Cut(String),
    Failed(String),
}

impl Load {
    fn begin(front: &str, token: &str) -> Load {
        let mut load = Load {
            done: Arc::default(),
            writes: Arc::new(RwLock::new(true)),
            errors: Arc::default(),
            cut: Arc::default(),
            is_over: Arc::default(),
            clients: Vec::new(),
        };
        for client in 0..CLIENTS {
            let (front, token) = (format!("http://{front}"), format!("Bearer {token}"));
            let (done, errors, cut) =
                (Arc::clone(&load.done), Arc::clone(&load.errors), Arc::clone(&load.cut));
            let (writes, is_over) = (Arc::clone(&load.writes), Arc::clone(&load.is_over));
            load.clients.push(tokio::spawn(async move {
                let http = crate::support::http::client();
                let mut pace = tokio::time::interval(PACE);
                for number in client.. {
                    pace.tick().await;
                    if is_over.load(Relaxed) {
                        return;
                    }
                    let writes = writes.read().await;
                    let is_write = number % 5 == 0 && *writes;
                    let _until_answered = is_write.then_some(writes);
                    let request = match number % 5 {
                        _ if is_write => http
                            .post(format!("{front}/v2/chats/7/messages"))
                            .header("content-type", "application/json")
                            .body(format!(r#"{{"text":"{client}-{number}"}}"#)),
                        1 => http.get(format!("{front}/v2/chats/7")),
                        2 => http.get(format!("{front}/v2/contacts")),
                        _ => http.get(format!("{front}/v2/agents")),
                    };
                    let request = request.header("x-authorization", &token).timeout(Duration::from_secs(30));
                    let outcome = match request.send().await {
                        Ok(answer) if answer.status().is_success() => match answer.bytes().await {
                            Ok(_) => Outcome::Whole,
                            Err(error) if is_write => Outcome::Failed(format!("{error:?}")),
                            Err(error) => Outcome::Cut(format!("{error:?}")),
                        },
                        Ok(answer) => {
                            let status = answer.status();
                            Outcome::Failed(format!("{status}: {}", answer.text().await.unwrap_or_default()))
                        }
                        Err(error) => Outcome::Failed(format!("{error:?}")),
                    };
                    let said = |error: String| format!("request {number}: {error}");
                    match outcome {
                        Outcome::Whole => _ = done.fetch_add(1, Relaxed),
                        Outcome::Cut(error) => cut.lock().expect("nobody panics").push(said(error)),
                        Outcome::Failed(error) => errors.lock().expect("nobody panics").push(said(error)),
                    }
                }
            }));
        }
        load
    }

    /// Until so many more requests are answered.
    async fn more(&self, requests: usize) {
        let wanted = self.done.load(Relaxed) + requests;
        crate::support::raw::until(|| {
            self.done.load(Relaxed) >= wanted || !self.errors.lock().expect("so").is_empty()
        })
        .await;
    }

    /// Ends the writes: none is in progress afterwards.
    async fn write_no_more(&self) {
        *self.writes.write().await = false;
    }

    /// Every answer was a success, and all but a number of them are complete.
    fn no_errors(&self, after: &str, may_be_cut: usize) {
        // Copies, because a panic with a lock held would hide its cause behind the panics of all clients.
        let errors = self.errors.lock().expect("nobody panics").clone();
        let cut = self.cut.lock().expect("nobody panics").clone();
        let done = self.done.load(Relaxed);
        assert!(errors.is_empty(), "{after}, of {done} answered: {errors:#?}");
        assert!(cut.len() <= may_be_cut, "{after}, of {done} answered, did not come whole: {cut:#?}");
    }

    async fn end(mut self) -> usize {
        self.is_over.store(true, Relaxed);
        for client in std::mem::take(&mut self.clients) {
            client.await.expect("it ends");
        }
        self.no_errors("in the end", CLIENTS);
        self.done.load(Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_notice_no_restart_no_store_that_is_away_and_no_gateway_that_dies() {
    let Some(cluster) = Cluster::up().await else { return };
    let load = Load::begin(cluster.at("CLUSTER_FRONT"), cluster.at("SANDBOX_V2_TOKEN"));
    load.more(40).await;

    for gateway in ["gateway-a", "gateway-b"] {
        cluster.run("stop", Some(gateway)).await;
        cluster.run("start", Some(gateway)).await;
        load.more(20).await;
        load.no_errors(&format!("{gateway} was restarted"), 0);
    }

    cluster.run("stop", Some("postgres")).await;
    tokio::time::sleep(AWAY).await;
    load.more(20).await;
    cluster.run("start", Some("postgres")).await;
    load.more(20).await;
    load.no_errors("PostgreSQL was away", 0);

    // Calls in progress end with a gateway: only its client may repeat a write, and a started answer is
    // cut, so that its client notices. Each client has at most one.
    load.write_no_more().await;
    load.more(3 * CLIENTS).await;
    cluster.run("kill", Some("gateway-b")).await;
    load.more(40).await;
    load.no_errors("a gateway was killed", CLIENTS);
    cluster.run("start", Some("gateway-b")).await;
    load.more(20).await;

    the_dashboard_shows_something(&cluster).await;
    let answered = load.end().await;
    eprintln!("{answered} requests answered, none with an error");
}

/// The panel for an absent part of the cluster: it has no TLS.
const WITHOUT_TLS: &str = "Remaining lifetime of certificates";

/// Every query of the dashboard has an answer, and every rule is evaluated without an error.
async fn the_dashboard_shows_something(cluster: &Cluster) {
    let http = crate::support::http::client();
    // Undeclared calls are counted too.
    let unknown = format!("http://{}/v2/of-no-contract", cluster.at("CLUSTER_FRONT"));
    let token = format!("Bearer {}", cluster.at("SANDBOX_V2_TOKEN"));
    let answer = http.get(unknown).header("x-authorization", token).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let dashboard = std::fs::read_to_string("deploy/grafana/switchback.json").expect("there");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("a list");
    let targets =
        panels.iter().filter_map(|panel| Some((panel["title"].as_str()?, panel["targets"].as_array()?)));
    let mut missing: Vec<(String, String)> = targets
        .flat_map(|(title, targets)| targets.iter().map(move |target| (title.to_owned(), query(target))))
        .collect();
    assert!(missing.len() > 30, "{missing:?}");
    // The next scrape has the latest events.
    for _ in 0..30 {
        let mut still = Vec::new();
        for (title, query) in missing {
            if series(&http, cluster, &query).await == 0 {
                still.push((title, query));
            }
        }
        missing = still;
        if missing.iter().all(|(title, _)| title == WITHOUT_TLS) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let without: Vec<&str> = missing.iter().map(|(title, _)| title.as_str()).collect();
    assert_eq!(without, [WITHOUT_TLS], "no series: {missing:#?}");
    assert_eq!(series(&http, cluster, "switchback_of_no_kind").await, 0, "what is not there has none");

    let rules: Value = asked(&http, cluster, "rules", &[]).await;
    let rules = rules["data"]["groups"][0]["rules"].as_array().expect("a list");
    assert!(rules.len() > 15, "{rules:#?}");
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule:#}");
    }
}

/// A query of a panel as Grafana sends it, with its variables replaced.
fn query(target: &Value) -> String {
    let query = target["expr"].as_str().expect("text");
    [("$__rate_interval", "1m"), ("$__range", "10m"), ("$client", ".*"), ("$side", ".*")]
        .iter()
        .fold(query.to_owned(), |query, (variable, value)| query.replace(variable, value))
}

async fn series(http: &Client, cluster: &Cluster, query: &str) -> usize {
    let answer = asked(http, cluster, "query", &[("query", query)]).await;
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    answer["data"]["result"].as_array().expect("a list").len()
}

async fn asked(http: &Client, cluster: &Cluster, what: &str, query: &[(&str, &str)]) -> Value {
    let at = format!("http://{}/api/v1/{what}", cluster.at("CLUSTER_PROMETHEUS"));
    http.get(at).query(query).send().await.expect("Prometheus answers").json().await.expect("JSON")
}

/// The cluster's files have the names of the sandbox with seed 1.
#[tokio::test]
async fn the_clusters_files_know_the_sandbox() {
    let sandbox = Sandbox::start(Options { listen: ([127, 0, 0, 1], 0).into(), ..Options::default() });
    let sandbox = sandbox.await.expect("it starts");
    let known = sandbox.credentials();
    let file = std::fs::read_to_string("deploy/cluster/sandbox.env").expect("there");
    for (name, value) in [
        ("SANDBOX_V2_TOKEN", &known.v2_token),
        ("SANDBOX_CLIENT_ID", &known.client_id),
        ("SANDBOX_CLIENT_SECRET", &known.client_secret),
        ("SANDBOX_REFRESH_TOKEN", &known.refresh_token),
    ] {
        assert!(file.lines().any(|line| line == format!("{name}={value}")), "{name} is {value}");
    }
    sandbox.stop().await;
}
