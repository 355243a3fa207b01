//! Changes of the configuration in a running gateway, through the real binary: all are applied,
//! except a short list that is displayed as waiting for a restart.

use crate::support::dual::eventually;
use crate::support::program::Program;
use crate::support::raw::{Answer, exchange};
use crate::support::serving;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use switchback_gateway::store::seal::SealingKey;
use tokio::task::spawn_blocking;

const FIRST: &str = "the-first-admin-token";
const SECOND: &str = "the-second-admin-token";

struct Running {
    program: Arc<Program>,
    clients: SocketAddr,
    admin: SocketAddr,
}

impl Running {
    async fn ask(&self, line: &str, token: &str, body: &str) -> Answer {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.admin,
            body.len()
        );
        exchange(self.admin, request).await.expect("the admin port answers")
    }

    /// The number behind a metric.
    async fn metric(&self, name: &str) -> String {
        let text = self.ask("GET /metrics", SECOND, "").await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    }

    /// Waits for a reload, automatic or requested. Returns its log.
    async fn reloaded(&self, is_asked: bool) -> String {
        if is_asked {
            self.program.signal("HUP");
        }
        let program = Arc::clone(&self.program);
        let log = spawn_blocking(move || program.stderr_until("reloaded")).await.expect("it says so");
        assert!(!log.contains("the reload failed"), "{log}");
        log
    }

    async fn link(&self) -> String {
        let answer = self.ask("POST /api/clients/acme/connect", SECOND, "{}").await;
        let link: Value = serde_json::from_slice(&answer.body).expect("JSON");
        link["url"].as_str().unwrap_or_else(|| panic!("{link}")).to_owned()
    }
}

fn replace(file: &Path, changes: &[(&str, &str)]) {
    let text = std::fs::read_to_string(file).expect("it was written");
    let changed = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from} in {text}");
        text.replacen(from, to, 1)
    });
    std::fs::write(file, changed).expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_but_a_short_list_is_taken_up_while_it_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path().display();
    let secret = folder.path().join("token");
    std::fs::write(&secret, FIRST).expect("written");
    let more = "oauth: { authorize_url: 'http://127.0.0.1:9/first', token_url: 'http://127.0.0.1:9/t', redirect_url: 'http://127.0.0.1:9/r' }\n\
        clients: [{ name: acme, v2_token: old-token-of-acme, grant: { client_id: app, client_secret: secret-of-app } }]\n\
        limits: { target_bytes: 8KiB }\nlog: { level: info }\nreload: { settle: 20ms }\n\
        events: { receivers: { acme: { verify: { secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }, url: 'http://127.0.0.1:9/events' } } }\n";
    let file = serving::write(folder.path(), "127.0.0.1:9", more);
    replace(
        &file,
        &[
            (
                "admin: { listen: 127.0.0.1:0 }",
                &format!("admin: {{ listen: 127.0.0.1:0, token: 'file:{at}/token' }}"),
            ),
            ("key: ${TEST_KEY}", &format!("key: ['file:{at}/key']")),
        ],
    );
    let keys = [SealingKey::generate(), SealingKey::generate()];
    std::fs::write(folder.path().join("key"), keys[0].expose()).expect("written");
    std::fs::write(folder.path().join("second-key"), keys[1].expose()).expect("written");
    let starting = file.clone();
    let running = spawn_blocking(move || {
        let program = serving::start(&starting, &[]);
        let (clients, admin) = serving::addresses(&program);
        Running { program: Arc::new(program), clients, admin }
    });
    let running = running.await.expect("it serves");
    assert_eq!(running.ask("GET /api/config", FIRST, "").await.status, 200);

    // A secret in a file is watched as the configuration is.
    std::fs::write(&secret, SECOND).expect("written");
    running.reloaded(false).await;
    assert_eq!(running.ask("GET /api/config", FIRST, "").await.status, 401);
    assert_eq!(running.ask("GET /api/config", SECOND, "").await.status, 200);
    assert!(running.link().await.starts_with("http://127.0.0.1:9/first?"));
    assert_eq!(running.metric("switchback_restart_pending").await, "0");

    let store = format!("sqlite:{at}/store.db");
    replace(
        &file,
        &[
            ("9/first", "9/second"),
            ("target_bytes: 8KiB", "target_bytes: 300, drain_delay: 1h"),
            ("log: { level: info }", "log: { level: debug, format: json }"),
            (&format!("key: ['file:{at}/key']"), &format!("key: ['file:{at}/second-key', 'file:{at}/key']")),
            (&store, &format!("sqlite:{at}/other.db")),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "C2FVsBQIhrscChlQIMV+b5sSYspob7oD"),
            (
                "reload: {",
                "shadow: { calls: 3 }\ngate: { default: never }\ntrusted_proxies: [10.0.0.0/8]\nreload: {",
            ),
        ],
    );
    let log = running.reloaded(false).await;
    assert!(log.contains(r#"needs_restart=["store", "log.format", "events"]"#), "{log}");
    assert_eq!(running.metric("switchback_restart_pending").await, "3");
    let before = std::fs::read_to_string(&file).expect("it was written");
    replace(&file, &[("gate: { default: never }", "gate: { default: nonsense }")]);
    let program = Arc::clone(&running.program);
    spawn_blocking(move || program.stderr_until("the reload failed")).await.expect("it says so");
    let mut overview = String::new();
    eventually("the page knows", async || {
        overview = running.ask("GET /", SECOND, "").await.text();
        overview.contains("The last reload failed")
    })
    .await;
    let pending = "A restart is pending</strong>: changes of <code>store, log.format, events</code>";
    assert!(overview.contains(pending), "a failed reload leaves what waits for a restart: {overview}");
    std::fs::write(&file, before).expect("written");
    running.reloaded(false).await;
    assert!(running.link().await.starts_with("http://127.0.0.1:9/second?"));
    let long = format!("GET /v2/{} HTTP/1.1\r\nhost: g\r\n\r\n", "a".repeat(400));
    assert_eq!(exchange(running.clients, long).await.expect("an answer").status, 414);
    assert!(running.reloaded(true).await.contains("DEBUG"), "there is more in the log now");

    let undone = [
        (", format: json", ""),
        (&format!("sqlite:{at}/other.db"), &store),
        ("C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    ];
    replace(&file, &undone);
    running.reloaded(false).await;
    assert_eq!(running.metric("switchback_restart_pending").await, "0");

    // The drain delay of the hour is taken up too: a second signal is needed.
    running.program.signal("TERM");
    let program = Arc::clone(&running.program);
    spawn_blocking(move || program.stderr_until("draining")).await.expect("it says so");
    assert_eq!(running.ask("GET /healthz/ready", SECOND, "").await.status, 503);
    drop(running);
    // The store is sealed with the newer key now.
    let at = at.to_string();
    let ended = spawn_blocking(move || {
        let key = format!("file:{at}/key");
        let store = format!("sqlite:{at}/store.db");
        Program::start(&["client", "list", "--store", &store, "--key", &key], &[]).ended()
    });
    let (status, log) = ended.await.expect("it ends");
    assert!(!status.success() && log.contains("which was not given"), "{log}");
}

#[test]
fn a_check_says_what_takes_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = serving::write(folder.path(), "127.0.0.1:9", "");
    let (status, out, log) = serving::start(&file, &["--check"]).all();
    assert!(status.success(), "{log}");
    let line =
        out.lines().find(|line| line.starts_with("changes are taken up while it runs, but for those of: "));
    assert!(line.is_some_and(|line| line.contains("listen, ") && line.contains("store")), "{out}");
}
