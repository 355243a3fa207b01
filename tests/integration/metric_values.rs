//! Values of metrics and levels of the log, through the real binary: known activity, and the
//! resulting numbers and lines.

use crate::support::authority::{APP_ID, APP_SECRET, Act as GrantAct, Authority, CALLBACK, Gate};
use crate::support::dual::{ADMIN_TOKEN, Dual, Upstreams, eventually};
use crate::support::postgres;
use crate::support::program::Program;
use crate::support::raw::{Act, Client, Upstream, exchange};
use crate::support::serving;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Options, Sandbox};
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

const TOKEN: &str = "old-token-of-acme";
const CLIENTS: &str =
    "clients: [{ name: acme, v2_token: old-token-of-acme, credentials: { v3: new-token-of-acme } }]\n";

struct Gateway {
    program: Program,
    clients: SocketAddr,
    admin: SocketAddr,
    file: PathBuf,
    _folder: TempDir,
}

impl Gateway {
    async fn before(service: SocketAddr, more: &str) -> Gateway {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = serving::write(folder.path(), &service.to_string(), &format!("{CLIENTS}{more}"));
        let text = std::fs::read_to_string(&file).expect("it was written");
        let admin = format!("admin: {{ listen: 127.0.0.1:0, token: {ADMIN_TOKEN} }}");
        std::fs::write(&file, text.replace("admin: { listen: 127.0.0.1:0 }", &admin)).expect("a file");
        Gateway::of(folder, file).await
    }

    async fn of(folder: TempDir, file: PathBuf) -> Gateway {
        let (program, clients, admin) = serving::serve(&file, &SealingKey::generate()).await;
        Gateway { program, clients, admin, file, _folder: folder }
    }

    async fn ask(&self, line: &str, body: &str) -> u16 {
        exchange(self.clients, request(line, body)).await.expect("an answer").status
    }

    async fn metrics(&self) -> String {
        let token = format!("authorization: Bearer {ADMIN_TOKEN}\r\n");
        let head =
            format!("GET /metrics HTTP/1.1\r\nhost: {}\r\n{token}connection: close\r\n\r\n", self.admin);
        exchange(self.admin, head).await.expect("the admin port answers").text()
    }

    /// Waits until the metrics have each of these lines.
    async fn measured(&self, lines: &[&str]) {
        for wanted in lines {
            eventually(wanted, async || self.metrics().await.lines().any(|line| line == *wanted)).await;
        }
    }

    /// The value of one sample, by its name and labels.
    async fn sample(&self, name: &str) -> f64 {
        let text = self.metrics().await;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in:\n{text}")).parse().expect("a number")
    }

    /// The store, opened by another program.
    async fn sqlite(&self) -> sqlx::SqlitePool {
        let file = self.file.with_file_name("store.db");
        sqlx::SqlitePool::connect(&format!("sqlite:{}", file.display())).await.expect("the file opens")
    }

    async fn reload(&self) {
        let head = format!(
            "POST /api/reload HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {ADMIN_TOKEN}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}",
            self.admin
        );
        assert_eq!(exchange(self.admin, head).await.expect("an answer").status, 202);
    }

    fn ended(self) -> String {
        self.program.signal("TERM");
        let (status, log) = self.program.ended();
        assert!(status.success(), "{log}");
        log
    }
}

fn request(line: &str, body: &str) -> String {
    format!(
        "{line} HTTP/1.1\r\nhost: gateway.test\r\nx-authorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_done_is_what_the_metrics_count() {
    let service = Upstream::answering(|at, _| match at {
        0 | 2 => Act::json(200, "[]"),
        // The connection is lost, and the reading sent again.
        1 => Act::ReplyAndReset(Vec::new()),
        3 => Act::json(200, r#"[{"id":1,"id":2,"name":"A"}]"#),
        _ => Act::Silence,
    })
    .await;
    let more = "sunset: { v2: { deprecated: 2020-01-01, sunset: 2098-01-01 } }\nlimits: { requests_per_client: 1 }\n";
    let begun = Instant::now();
    let gateway = Gateway::before(service.address, more).await;
    gateway
        .measured(&[
            "switchback_store_up 1",
            "switchback_config_reload_total{result=\"success\"} 1",
            "switchback_config_reload_total{result=\"failure\"} 0",
        ])
        .await;
    assert_eq!(gateway.ask("GET /v2/agents", "").await, 200);
    assert_eq!(gateway.ask("GET /v2/agents", "").await, 200);
    assert_eq!(gateway.ask("GET /v2/agents", "").await, 502);
    // One request of the client waits for the service; there is no place for another.
    let mut waiting = Client::connect(gateway.clients).await;
    waiting.send(request("GET /v2/agents", "")).await;
    gateway.measured(&["switchback_requests_in_flight 1", "switchback_connections 1"]).await;
    assert_eq!(gateway.ask("GET /v2/agents", "").await, 503);
    drop(waiting);
    let of = "side=\"v2\",operation=\"GET /agents\"";
    gateway
        .measured(&[
            "switchback_connections 0",
            "switchback_requests_in_flight 0",
            &format!("switchback_request_duration_seconds_count{{{of}}} 5"),
            // The one that its client gave up had no answer to announce it in.
            &format!("switchback_deprecated_requests_total{{client=\"acme\",{of}}} 4"),
            "switchback_transform_failures_total{operation=\"GET /agents\",direction=\"answer\"} 1",
            "switchback_upstream_requests_total{upstream=\"v3\",role=\"client\",status=\"2xx\"} 3",
            "switchback_retries_total{upstream=\"v3\",role=\"client\",why=\"broken\"} 1",
            "switchback_limited_total{limit=\"client_in_flight\"} 1",
        ])
        .await;
    // Two answers that were translated, one that could not be, and the call that was sent again,
    // which counts each time. The call that its client gave up does not count.
    gateway
        .measured(&["switchback_upstream_request_duration_seconds_count{upstream=\"v3\",role=\"client\"} 4"])
        .await;
    // A duration of zero, or longer than the test, would be a wrong measurement.
    for (histogram, labels) in [
        ("switchback_request_duration_seconds", of),
        ("switchback_upstream_request_duration_seconds", "upstream=\"v3\",role=\"client\""),
    ] {
        let count = gateway.sample(&format!("{histogram}_count{{{labels}}}")).await;
        assert_eq!(gateway.sample(&format!("{histogram}_bucket{{{labels},le=\"+Inf\"}}")).await, count);
        let sum = gateway.sample(&format!("{histogram}_sum{{{labels}}}")).await;
        let most = count * begun.elapsed().as_secs_f64();
        assert!(sum > 0.0 && sum <= most, "{histogram}: {sum} of at most {most}");
    }
}

/// Each limit refuses one request or connection while another one waits for the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_limit_counts_what_it_refuses_and_nothing_else() {
    for (limits, limit) in [
        ("requests: 1", "in_flight"),
        ("requests_per_client: 1", "client_in_flight"),
        ("upstream_calls: 1", "upstream_in_flight"),
        ("upstream_calls_per_client: 1", "client_upstream_in_flight"),
        ("connections: 1", "connections"),
        ("connections_per_address: 1", "connections_per_address"),
    ] {
        let service = Upstream::start(vec![Act::Silence]).await;
        let gateway = Gateway::before(service.address, &format!("limits: {{ {limits} }}\n")).await;
        let mut waiting = Client::connect(gateway.clients).await;
        waiting.send(request("GET /v2/agents", "")).await;
        service.received(1).await;
        assert_eq!(gateway.ask("GET /v2/agents", "").await, 503, "{limits}");
        gateway.measured(&[&format!("switchback_limited_total{{limit=\"{limit}\"}} 1")]).await;
        let text = gateway.metrics().await;
        let all = text.lines().filter(|line| line.starts_with("switchback_limited_total{"));
        assert_eq!(all.filter(|line| !line.ends_with(" 0")).count(), 1, "{limits}: {text}");
    }
}

/// Unix time in seconds.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_measures_itself_as_the_system_does() {
    let before = now();
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let gateway = Gateway::before(service.address, "").await;
    let loaded = gateway.sample("switchback_config_loaded_timestamp_seconds").await;
    let started = gateway.sample("process_start_time_seconds").await;
    // Both are whole seconds, and clocks of the system differ by less than another.
    for at in [started, loaded] {
        assert!((before - 2.0..=now() + 1.0).contains(&at), "{before} {started} {loaded} {}", now());
    }
    let id = gateway.program.id();
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{id}/{name}")).expect("it runs");
    let count = |name: &str| std::fs::read_dir(format!("/proc/{id}/{name}")).expect("it runs").count() as f64;
    let field = |name: &str, start: &str, at: usize| -> f64 {
        let text = file(name);
        let line = text.lines().find_map(|line| line.strip_prefix(start)).expect("a line of proc(5)");
        line.split_whitespace().nth(at).expect("a field").parse().expect("a number")
    };
    assert_eq!(gateway.sample("process_max_fds").await, field("limits", "Max open files", 0));
    for clients in [0, 16] {
        let mut held = Vec::new();
        for _ in 0..clients {
            held.push(Client::connect(gateway.clients).await);
        }
        gateway.measured(&[&format!("switchback_connections {clients}")]).await;
        eventually("descriptors and threads are those of the system", async || {
            // The scraping connection is counted too.
            let wanted = (count("fd") + 1.0, count("task"));
            let found = (gateway.sample("process_open_fds").await, gateway.sample("process_threads").await);
            found == wanted && wanted.0 > f64::from(clients)
        })
        .await;
    }
    for (metric, of_system) in
        [("process_resident_memory_bytes", "VmRSS:"), ("process_virtual_memory_bytes", "VmSize:")]
    {
        let (found, wanted) = (gateway.sample(metric).await, field("status", of_system, 0) * 1024.0);
        assert!((found - wanted).abs() < wanted / 4.0, "{metric}: {found} of {wanted}");
    }
    // In user mode and in the kernel, in ticks of a hundredth of a second.
    let cpu = || {
        let stat = file("stat");
        let rest = stat.rsplit_once(')').expect("proc(5)").1.split_whitespace();
        rest.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
    };
    let before = cpu();
    let found = gateway.sample("process_cpu_seconds_total").await;
    assert!((before.floor()..=cpu()).contains(&found), "{before} {found} {}", cpu());
}

/// A configuration that a reload refuses leaves the time of the one that serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_the_configuration_is_that_of_the_last_one_that_loaded() {
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let gateway = Gateway::before(service.address, "").await;
    let loaded = async || gateway.sample("switchback_config_loaded_timestamp_seconds").await;
    let first = loaded().await;
    // The next second has come.
    eventually("a second is over", async || now() >= first + 1.0).await;
    let good = std::fs::read_to_string(&gateway.file).expect("it was written");
    std::fs::write(&gateway.file, "listen: nowhere\n").expect("a file");
    gateway.reload().await;
    gateway.measured(&["switchback_config_reload_total{result=\"failure\"} 1"]).await;
    assert_eq!(loaded().await, first);
    std::fs::write(&gateway.file, good).expect("a file");
    gateway.reload().await;
    gateway.measured(&["switchback_config_reload_total{result=\"success\"} 2"]).await;
    let second = loaded().await;
    assert!(second > first && second <= now(), "{first} {second} {}", now());
}

/// Entries of the dual run that a store does not take, and calls of the shadow that are sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_shadow_lacks_and_sends_again_is_counted_apart_from_clients() {
    let calls = AtomicUsize::new(0);
    let service = Upstream::answering(move |_, seen| match seen.line().contains(" /v3/") {
        false => Act::json(200, "[]"),
        true => match calls.fetch_add(1, Ordering::SeqCst) {
            1 => Act::ReplyAndReset(Vec::new()),
            _ => Act::json(200, "[]"),
        },
    })
    .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = format!(
        "{CLIENTS}phases: {{ default: shadow }}\nshadow: {{ priority: normal, noise: 0, timed: 0 }}\n"
    );
    let file = serving::write_before(folder.path(), &service.address.to_string(), &["v2", "v3"], &more);
    let text = std::fs::read_to_string(&file).expect("it was written");
    let admin = format!("admin: {{ listen: 127.0.0.1:0, token: {ADMIN_TOKEN} }}");
    std::fs::write(&file, text.replace("admin: { listen: 127.0.0.1:0 }", &admin)).expect("a file");
    let gateway = Gateway::of(folder, file).await;
    let compared = "switchback_shadow_compared_total{side=\"v2\",operation=\"GET /agents\",result=\"equal\"}";
    let store = gateway.sqlite().await;
    let full = "CREATE TRIGGER full BEFORE INSERT ON dual_evidence BEGIN SELECT RAISE(ABORT, 'full'); END";
    sqlx::query(full).execute(&store).await.expect("the store has the table");
    assert_eq!(gateway.ask("GET /v2/agents", "").await, 200);
    gateway.measured(&[&format!("{compared} 1"), "switchback_shadow_unrecorded_total 1"]).await;
    sqlx::query("DROP TRIGGER full").execute(&store).await.expect("it is there");
    assert_eq!(gateway.ask("GET /v2/agents", "").await, 200);
    gateway.measured(&[&format!("{compared} 2")]).await;
    eventually("the second is recorded", async || {
        let recorded = sqlx::query("SELECT 1 FROM dual_evidence").fetch_all(&store).await;
        recorded.expect("the store has the table").len() == 1
    })
    .await;
    let of = |role: &str| format!("upstream=\"v3\",role=\"{role}\"");
    gateway
        .measured(&[
            "switchback_shadow_unrecorded_total 1",
            &format!("switchback_retries_total{{{},why=\"broken\"}} 1", of("shadow")),
            &format!("switchback_retries_total{{{},why=\"broken\"}} 0", of("client")),
            &format!("switchback_upstream_requests_total{{{},status=\"2xx\"}} 2", of("shadow")),
            &format!("switchback_upstream_requests_total{{{},status=\"none\"}} 1", of("shadow")),
            &format!("switchback_upstream_requests_total{{{},status=\"2xx\"}} 0", of("client")),
            &format!("switchback_upstream_request_duration_seconds_count{{{}}} 3", of("shadow")),
        ])
        .await;
}

/// A gateway with one client, which has a grant of this authorization server.
async fn granted(authority: &Authority) -> Gateway {
    let at = authority.address;
    let more = format!(
        "oauth: {{ authorize_url: 'http://{at}/oauth/authorize', token_url: 'http://{at}/oauth/access_token', \
         redirect_url: '{CALLBACK}' }}\n\
         clients: [{{ name: acme, v2_token: {TOKEN}, grant: {{ client_id: {APP_ID}, client_secret: {APP_SECRET}, \
         refresh_token: refresh-canary-0 }} }}]\n"
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = serving::write(folder.path(), "127.0.0.1:9", &more);
    let text = std::fs::read_to_string(&file).expect("it was written");
    let admin = format!("admin: {{ listen: 127.0.0.1:0, token: {ADMIN_TOKEN} }}");
    std::fs::write(&file, text.replace("admin: { listen: 127.0.0.1:0 }", &admin)).expect("a file");
    Gateway::of(folder, file).await
}

fn refreshed(result: &str, count: u32) -> String {
    format!("switchback_token_refresh_total{{client=\"acme\",result=\"{result}\"}} {count}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_counts_by_its_result() {
    const JSON: &str = "content-type: application/json\r\n";
    for (act, result, state) in [
        (GrantAct::Normally, "ok", "active"),
        // An outage is retried within one refresh; an answer without tokens ends it, and another one
        // follows.
        (GrantAct::Say(200, JSON, "{}"), "failed", "active"),
        (GrantAct::Say(400, JSON, r#"{"error":"invalid_grant"}"#), "refused", "needs_reconnect"),
        (GrantAct::Say(401, JSON, r#"{"error":"invalid_client"}"#), "misconfigured", "misconfigured"),
    ] {
        let authority = Authority::start().await;
        authority.script(act);
        let before = now();
        let gateway = granted(&authority).await;
        gateway
            .measured(&[
                &refreshed(result, 1),
                &format!("switchback_token_state{{client=\"acme\",state=\"{state}\"}} 1"),
            ])
            .await;
        if result == "ok" {
            gateway.measured(&["switchback_token_lifetime_seconds{client=\"acme\"} 3600"]).await;
            let ends = gateway.sample("switchback_token_expiry_timestamp_seconds{client=\"acme\"}").await;
            assert!((before + 3600.0 - 1.0..=now() + 3600.0).contains(&ends), "{before} {ends} {}", now());
        }
    }
}

/// A store that takes no tokens for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_that_only_memory_has_are_counted_until_the_store_has_them() {
    let authority = Authority::start().await;
    let gate = Arc::new(Gate::default());
    authority.script(GrantAct::HoldBefore(Arc::clone(&gate)));
    let gateway = granted(&authority).await;
    gate.arrived().await;
    gateway.measured(&["switchback_token_unpersisted 0"]).await;
    let store = gateway.sqlite().await;
    let full = "CREATE TRIGGER full BEFORE UPDATE OF access ON grants BEGIN SELECT RAISE(ABORT, 'full'); END";
    sqlx::query(full).execute(&store).await.expect("the store has the table");
    gate.go.notify_one();
    gateway.measured(&["switchback_token_unpersisted 1", &refreshed("unpersisted", 1)]).await;
    sqlx::query("DROP TRIGGER full").execute(&store).await.expect("it is there");
    gateway.measured(&["switchback_token_unpersisted 0"]).await;
    // No refresh starts if its tokens could not be stored.
    let full = "CREATE TRIGGER full BEFORE INSERT ON refresh_intents BEGIN SELECT RAISE(ABORT, 'full'); END";
    sqlx::query(full).execute(&store).await.expect("the store has the table");
    let calls = authority.calls();
    let head = format!(
        "POST /api/clients/acme/retry HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {ADMIN_TOKEN}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}",
        gateway.admin
    );
    exchange(gateway.admin, head).await.expect("an answer");
    gateway.measured(&[&refreshed("store", 1)]).await;
    assert_eq!(authority.calls(), calls);
}

/// Each step down adds the lines of one level, by the same three situations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_level_of_the_log_adds_its_own_lines() {
    let service =
        Upstream::start(vec![Act::Reply(b"HTTP/1.1 500 X\r\ncontent-length: 6\r\n\r\n<html>".to_vec())])
            .await;
    let gateway = Gateway::before(service.address, "log: { level: info }\n").await;
    let good = std::fs::read_to_string(&gateway.file).expect("it was written");
    let mut reloads = 1;
    for (level, failures) in ["error", "warn", "info", "debug"].into_iter().zip(1..) {
        std::fs::write(&gateway.file, good.replace("level: info", &format!("level: {level}")))
            .expect("a file");
        gateway.reload().await;
        reloads += 1;
        gateway.measured(&[&format!("switchback_config_reload_total{{result=\"success\"}} {reloads}")]).await;
        assert_eq!(gateway.ask("GET /v2/agents", "").await, 500, "the service fails");
        assert_eq!(gateway.ask("GET /v2/nothing", "").await, 404, "the client is wrong");
        std::fs::write(&gateway.file, "listen: nowhere\n").expect("a file");
        gateway.reload().await;
        gateway
            .measured(&[&format!("switchback_config_reload_total{{result=\"failure\"}} {failures}")])
            .await;
    }
    let log = gateway.ended();
    let count = |level: &str, text: &str| {
        log.lines().filter(|line| line.contains(level) && line.contains(text)).count()
    };
    assert_eq!(
        [
            count("ERROR", "the reload failed"),
            count("WARN", "an upstream returned an error"),
            count("INFO", "switchback::access"),
            count("DEBUG", "a request was rejected"),
        ],
        [4, 3, 4, 1],
        "{log}"
    );
}

/// A transition that the command line makes is counted by the gateway that serves the operation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transitions_are_counted_whoever_makes_them_and_gone_operations_have_no_phase() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    let phases = "phases: { 'v2 GET /chats': legacy }\n";
    dual.configure(&service, Upstreams::of(&service), &["administrator"], phases);
    let gateway = dual.start().await;
    let metrics = async || gateway.admin_text("GET /metrics", &Value::Null).await.text();
    let moved = |phase: &str, count: u32| {
        let of = "side=\"v2\",operation=\"GET /chats\"";
        format!("switchback_phase_transitions_total{{{of},phase=\"{phase}\",by=\"operator\"}} {count}")
    };
    dual.cli_json(&["phase", "set", "GET /chats", "shadow"]).await;
    eventually("the command line's transition is counted", async || {
        metrics().await.lines().any(|line| line == moved("shadow", 1))
    })
    .await;
    let set = json!({"operation": "GET /chats", "phase": "translated"});
    assert_eq!(gateway.admin("POST /api/phases", &set).await.0, 200);
    let text = metrics().await;
    assert!(text.lines().any(|line| line == moved("translated", 1)), "once: {text}");
    let reset = json!({"operation": "GET /agents", "phase": null});
    gateway.admin("POST /api/phases", &reset).await;
    assert!(
        !metrics().await.contains("switchback_phase_transitions_total{side=\"v2\",operation=\"GET /agents\"")
    );

    // A client that is revoked has no grant any more.
    let has_grant = async || metrics().await.contains("switchback_token_state{client=\"administrator\"");
    assert!(has_grant().await);
    assert_eq!(gateway.admin("POST /api/clients/administrator/revoke", &json!({})).await.0, 200);
    eventually("its grant is gone", async || !has_grant().await).await;

    // The front of v3 is taken away, and with it its operations.
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    let both = format!("{text}fronts: {{ /v2: {{ speaks: v2 }}, /v3: {{ speaks: v3 }} }}\n");
    let is_there = async || metrics().await.contains("switchback_phase{side=\"v3\"");
    std::fs::write(dual.file(), both).expect("a file");
    assert_eq!(gateway.admin("POST /api/reload", &json!({})).await.0, 202);
    eventually("the front is served", async || is_there().await).await;
    std::fs::write(dual.file(), text).expect("a file");
    assert_eq!(gateway.admin("POST /api/reload", &json!({})).await.0, 202);
    eventually("its operations are gone", async || !is_there().await).await;
    assert!(!metrics().await.contains("NaN"));
}

/// A way to a database that can be cut.
struct Way {
    from: PathBuf,
    to: PathBuf,
    passing: JoinSet<()>,
}

impl Way {
    fn open(&mut self) {
        let listener = UnixListener::bind(&self.from).expect("the folder is ours");
        let to = self.to.clone();
        self.passing.spawn(async move {
            let mut passing = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let to = to.clone();
                passing.spawn(async move {
                    if let Ok(mut far) = UnixStream::connect(to).await {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
    }

    async fn cut(&mut self) {
        self.passing.shutdown().await;
        std::fs::remove_file(&self.from).expect("it was bound");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_away_is_0_and_logged_once_and_1_when_it_is_back() {
    let Some(database) = postgres::database() else { return };
    let (url, folder) = database.split_once("?host=").expect("it is on a socket");
    let socket = ".s.PGSQL.5432";
    let own = tempfile::tempdir().expect("a temporary folder");
    let mut way =
        Way { from: own.path().join(socket), to: Path::new(folder).join(socket), passing: JoinSet::new() };
    way.open();
    let service = Upstream::start(vec![Act::json(200, "[]")]).await;
    let files = tempfile::tempdir().expect("a temporary folder");
    let file = serving::write(files.path(), &service.address.to_string(), CLIENTS);
    let text = std::fs::read_to_string(&file).expect("it was written");
    let sqlite = format!("sqlite:{}/store.db", files.path().display());
    let store = format!("'{url}?host={}'", own.path().display());
    std::fs::write(&file, text.replacen(&sqlite, &store, 1)).expect("a file");
    let gateway = Gateway::of(files, file).await;
    gateway.measured(&["switchback_store_up 1"]).await;
    for _ in 0..2 {
        way.cut().await;
        gateway.measured(&["switchback_store_up 0"]).await;
        assert_eq!(gateway.ask("GET /v2/agents", "").await, 200, "clients go on");
        way.open();
        gateway.measured(&["switchback_store_up 1"]).await;
    }
    let log = gateway.ended();
    let lines = log.lines().filter(|line| line.contains("WARN") && line.contains("the store cannot be read"));
    assert_eq!(lines.count(), 2, "once for each outage: {log}");
}
