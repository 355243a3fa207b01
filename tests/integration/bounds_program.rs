//! Limits of the complete program in production: ports under attack, signals, descriptors, memory.

use crate::support::postgres;
use crate::support::program::{Program, anonymous};
use crate::support::raw::{self, Act, Client, Upstream, exchange};
use crate::support::serving::{self, Enrolled, start};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use switchback_sandbox::{Options, Sandbox};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Returns the address in the startup message of a program.
fn named(log: &str, name: &str) -> SocketAddr {
    let address =
        log.split(name).nth(1).and_then(|rest| rest.split([' ', '"', '\n']).find(|part| !part.is_empty()));
    address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("no {name} in {log}"))
}

async fn ask(address: SocketAddr, path: &str) -> Option<raw::Answer> {
    exchange(address, format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")).await
}

/// Starts a gateway with an unreachable service and these lines of configuration. Returns it with
/// its log up to readiness.
async fn serve(more: &str) -> (Program, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = serving::write(folder.path(), "127.0.0.1:9", more);
    let started = tokio::task::spawn_blocking(move || {
        let program = start(&file, &[]);
        let log = program.stderr_until("serving");
        (program, log)
    });
    let (program, log) = started.await.expect("it starts");
    (program, log, folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_that_fill_a_port_keep_nobody_from_its_health() {
    let (_program, log, _folder) = serve("health: { listen: 127.0.0.1:0 }\n").await;
    for name in ["admin=", "health="] {
        let address = named(&log, name);
        let mut strangers = Vec::new();
        for _ in 0..80 {
            let mut stranger = Client::connect(address).await;
            stranger.send("GET / HTTP/1.1\r\n").await;
            strangers.push(stranger);
        }
        for path in ["/healthz/live", "/healthz/ready"] {
            assert_eq!(ask(address, path).await.map(|answer| answer.status), Some(200), "{name} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_of_health_and_callback_have_nothing_beside_them() {
    let more = "health: { listen: 127.0.0.1:0 }\n\
        oauth: { authorize_url: 'http://127.0.0.1:9/a', token_url: 'http://127.0.0.1:9/t', \
        redirect_url: 'http://127.0.0.1/oauth/callback', listen: 127.0.0.1:0 }\n";
    let (_program, log, _folder) = serve(more).await;
    for (name, found) in [
        ("admin=", ["/healthz/live", "/healthz/ready", "/metrics", "/", "/api/config"].as_slice()),
        ("health=", &["/healthz/live", "/healthz/ready"]),
        ("callback=", &["/oauth/callback"]),
    ] {
        let address = named(&log, name);
        for path in [
            "/healthz/live",
            "/healthz/ready",
            "/metrics",
            "/",
            "/api/config",
            "/assets/none.css",
            "/oauth/callback",
        ] {
            let status = ask(address, path).await.expect("an answer").status;
            let is_found = found.contains(&path);
            assert_eq!(status != 404, is_found, "{name}{path}: {status}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_sigterm_it_is_unready_at_once_and_takes_clients_until_the_delay_is_over() {
    let (program, log, _folder) = serve("limits: { drain_delay: 2s }\n").await;
    let (clients, admin) = (named(&log, "clients="), named(&log, "admin="));
    assert_eq!(ask(admin, "/healthz/ready").await.unwrap().status, 200);
    program.signal("TERM");
    let program = tokio::task::spawn_blocking(move || {
        program.stderr_until("draining");
        program
    });
    let program = program.await.unwrap();
    let ready = ask(admin, "/healthz/ready").await.expect("the admin port outlives the clients'");
    assert_eq!(ready.status, 503, "{}", ready.text());
    assert_eq!(ask(admin, "/healthz/live").await.unwrap().status, 200);
    let mut client = Client::connect(clients).await;
    client.send("GET /v2/nothing HTTP/1.1\r\nhost: g\r\n\r\n").await;
    let answer = client.answer().await.expect("clients are still taken");
    assert_eq!((answer.status, answer.value("connection")), (404, "close"));
    let (status, log) = tokio::task::spawn_blocking(move || program.ended()).await.unwrap();
    assert!(status.success(), "{log}");
    assert!(tokio::net::TcpStream::connect(clients).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_does_not_wait_for_the_delay() {
    let (program, _, _folder) = serve("limits: { drain_delay: 1h }\n").await;
    program.signal("TERM");
    let ended = tokio::task::spawn_blocking(move || {
        program.stderr_until("draining");
        program.signal("TERM");
        program.ended()
    });
    assert!(ended.await.unwrap().0.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_nobody_connected_makes_nobody_unready() {
    let (_program, log, _folder) = serve("clients: [{ name: acme, v2_token: old-token-of-acme }]\n").await;
    let ready = ask(named(&log, "admin="), "/healthz/ready").await.unwrap();
    assert_eq!(ready.status, 200, "{}", ready.text());
    let metrics = ask(named(&log, "admin="), "/metrics").await.unwrap().text();
    assert!(metrics.contains("switchback_store_up 1"), "{metrics}");
}

/// Its grant has ended, and a person has to connect the client again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_has_ended_makes_nobody_unready() {
    let server = Upstream::start(vec![Act::json(400, r#"{"error":"invalid_grant"}"#)]).await;
    let at = server.address;
    let more = format!(
        "oauth: {{ authorize_url: 'http://{at}/a', token_url: 'http://{at}/t', redirect_url: 'http://{at}/r' }}\n\
         clients: [{{ name: acme, v2_token: old-token-of-acme, grant: {{ client_id: app, client_secret: secret, \
         refresh_token: spent-already }} }}]\n"
    );
    let (_program, log, _folder) = serve(&more).await;
    let admin = named(&log, "admin=");
    let has_ended = "switchback_token_state{client=\"acme\",state=\"needs_reconnect\"} 1";
    while !ask(admin, "/metrics").await.unwrap().text().contains(has_ended) {
        server.received(1).await;
    }
    let ready = ask(admin, "/healthz/ready").await.unwrap();
    assert_eq!(ready.status, 200, "{}", ready.text());
}

/// A gateway with a relay in front of its database.
struct Relayed {
    program: Program,
    /// Its log up to readiness.
    log: String,
    relay: Relay,
    /// Where the gateway looks for the socket of its database, and where that is.
    between: tempfile::TempDir,
    database: PathBuf,
    _own: tempfile::TempDir,
}

/// Starts a gateway for this service, with these lines of configuration. Returns `None` if
/// PostgreSQL is unavailable.
async fn serve_behind_relay(service: &str, more: &str) -> Option<Relayed> {
    let url = postgres::database()?;
    let (database, folder) = url.split_once("?host=").expect("it is on a socket in a folder");
    let between = tempfile::tempdir().expect("a temporary folder");
    let relay = Relay::start(between.path(), Path::new(folder));
    let own = tempfile::tempdir().expect("a temporary folder");
    let file = serving::write(own.path(), service, more);
    let text = std::fs::read_to_string(&file).expect("it was written");
    let store = format!("{database}?host={}", between.path().display());
    let text = text.replace(&format!("sqlite:{}/store.db", own.path().display()), &store);
    std::fs::write(&file, text).expect("written");
    let started = tokio::task::spawn_blocking(move || {
        let program = start(&file, &[]);
        let log = program.stderr_until("serving");
        (program, log)
    });
    let (program, log) = started.await.expect("it starts");
    Some(Relayed { program, log, relay, between, database: folder.into(), _own: own })
}

/// The database becomes unavailable and available again while the gateway serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_down_makes_nobody_unready() {
    let Some(relayed) = serve_behind_relay("127.0.0.1:9", "").await else { return };
    let Relayed { program: _program, log, relay, between, database, .. } = relayed;
    let admin = named(&log, "admin=");
    let store = async |is_up: bool| loop {
        let ready = ask(admin, "/healthz/ready").await.unwrap();
        assert_eq!(ready.status, 200, "{}", ready.text());
        if ready.text().contains(&format!("\"store\": {is_up}")) {
            break;
        }
    };
    store(true).await;
    drop(relay);
    store(false).await;
    let _relay = Relay::start(between.path(), &database);
    store(true).await;
}

/// No call waits for a database that failed a moment ago, and the failure is not attributed to the
/// authorization server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_store_is_away_requests_are_told_at_once_and_the_log_says_what_is_away() {
    let sandbox = Sandbox::start(Options::default()).await.expect("it starts");
    let account = sandbox.credentials().account("administrator").expect("every sandbox has one");
    let more = serving::connected(&sandbox, &[Enrolled { account, company: None }]);
    let relayed = serve_behind_relay(&sandbox.address().to_string(), &more).await;
    let Some(Relayed { program, log, relay, .. }) = relayed else { return };
    let clients = named(&log, "clients=");
    let asked = async |line: &str, body: &str| {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            account.v2_token,
            body.len()
        );
        exchange(clients, request).await.expect("an answer")
    };
    while asked("GET /v2/agents", "").await.status != 200 {}

    drop(relay);
    let made = async |name: &str| {
        let contact = format!(r#"{{"name":"{name}","email":"{name}@e.test","phone":"5511"}}"#);
        let answer = asked("POST /v2/contacts", &contact).await;
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert_ne!(answer.value("retry-after"), "");
    };
    made("ana").await;
    // One of them at most may try again; it is not known which.
    tokio::join!(made("bia"), made("caio"), made("davi"), made("enzo"));
    let expire = format!("http://{}/_sandbox/tokens/expire", sandbox.address());
    let ended = crate::support::http::client().post(expire).json(&serde_json::json!({})).send().await;
    assert!(ended.expect("the sandbox answers").status().is_success());
    let answer = asked("GET /v2/agents", "").await;
    assert_eq!(answer.status, 503, "{}", answer.text());

    program.signal("INT");
    let (_, log) = tokio::task::spawn_blocking(move || program.ended()).await.expect("it ends");
    let causes = |operation: &str| -> Vec<&str> {
        let lines = log.lines().filter(|line| line.contains("status=503") && line.contains(operation));
        lines.map(|line| line.split("cause=").nth(1).unwrap_or_default()).collect()
    };
    let written = causes("POST /contacts");
    assert_eq!(written.len(), 5, "{log}");
    let told_at_once = written.iter().filter(|cause| cause.contains("did not answer a moment ago")).count();
    assert!(told_at_once >= 3, "{written:?}");
    let read = causes("GET /agents");
    assert_eq!(read.len(), 1, "{log}");
    assert!(read[0].contains("no refresh") && read[0].contains("database"), "{read:?}");
    assert!(!log.contains("authorization server"), "{log}");
}

/// A relay between a gateway and its database, until dropped.
struct Relay {
    socket: PathBuf,
    running: tokio::task::JoinHandle<()>,
}

impl Relay {
    fn start(at: &Path, database: &Path) -> Relay {
        const NAME: &str = ".s.PGSQL.5432";
        let (socket, database) = (at.join(NAME), database.join(NAME));
        let listener = UnixListener::bind(&socket).expect("a socket in a temporary folder");
        let running = tokio::spawn(async move {
            let mut relayed = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far = UnixStream::connect(&database).await.expect("the database is there");
                relayed.spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
            }
        });
        Relay { socket, running }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.running.abort();
        let _ = std::fs::remove_file(&self.socket);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_few_descriptors_clients_are_refused_before_the_admin_port_starves() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = serving::write(folder.path(), "127.0.0.1:9", "");
    let started = tokio::task::spawn_blocking(move || {
        let program = serving::start_with_descriptors(&file, 400);
        let log = program.stderr_until("serving");
        (program, log)
    });
    let (_program, log) = started.await.expect("it starts");
    assert!(log.contains("the limit of descriptors has no room"), "{log}");
    let (clients, admin) = (named(&log, "clients="), named(&log, "admin="));
    let mut open = Vec::new();
    for _ in 0..500 {
        let mut client = Client::connect(clients).await;
        client.send("GET /v2/nothing HTTP/1.1\r\n").await;
        open.push(client);
    }
    assert_eq!(ask(admin, "/healthz/live").await.map(|answer| answer.status), Some(200));
    let refused = ask(clients, "/v2/nothing").await.map(|answer| answer.status);
    assert_eq!(refused, Some(503), "clients beyond are told so");
    drop(open);
    let mut status = None;
    for _ in 0..1000 {
        status = ask(clients, "/v2/nothing").await.map(|answer| answer.status);
        if status == Some(404) {
            break;
        }
    }
    assert_eq!(status, Some(404), "and come again when others have gone");
}

/// A gateway without memory for any client does not start; with memory for a few, it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_hardly_any_descriptors_it_serves_or_says_that_it_cannot() {
    for (count, serves) in [(128, false), (256, true)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = serving::write(folder.path(), "127.0.0.1:9", "");
        let started = tokio::task::spawn_blocking(move || {
            let program = serving::start_with_descriptors(&file, count);
            if !serves {
                let (status, log) = program.ended();
                assert!(!status.success() && log.contains("the limit of file descriptors is 128"), "{log}");
                return None;
            }
            let log = program.stderr_until("serving");
            Some((program, log))
        });
        let Some((_program, log)) = started.await.expect("it starts or ends") else { continue };
        let served = ask(named(&log, "clients="), "/v2/nothing").await.map(|answer| answer.status);
        assert_eq!(served, Some(404), "{log}");
    }
}

/// Concurrent bodies exceed the available memory: some are refused with an answer, and the limit is
/// respected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_no_memory_for_is_refused_and_the_process_stays_below_its_bound() {
    const BOUND: u64 = 160 << 20;
    let more = "limits: { memory: 160MiB, requests_per_client: 1024 }\nclients: [{ name: acme, v2_token: old-token-of-acme, \
        credentials: {} }]\n";
    let (program, log, _folder) = serve(more).await;
    let clients = named(&log, "clients=");
    let body = format!(r#"{{"text":"{}"}}"#, "a".repeat(1_000_000));
    let message = format!(
        "POST /v2/chats/1/messages HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer old-token-of-acme\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut open = Vec::new();
    for _ in 0..300 {
        let mut client = Client::connect(clients).await;
        client.send(&message).await;
        client.send(&body.as_bytes()[..body.len() / 2]).await;
        open.push(client);
    }
    let most = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let mut statuses = std::collections::BTreeMap::new();
    for mut client in open {
        client.send(&body.as_bytes()[body.len() / 2..]).await;
        let status = client.answer().await.map_or(0, |answer| answer.status);
        *statuses.entry(status).or_insert(0) += 1;
        most.fetch_max(crate::support::program::resident(program.id()), std::sync::atomic::Ordering::Relaxed);
    }
    let most = most.load(std::sync::atomic::Ordering::Relaxed);
    assert!(most < BOUND, "{most} bytes resident");
    assert_eq!(statuses.get(&0), None, "everyone is told: {statuses:?}");
    assert!(statuses.get(&503).is_some_and(|refused| *refused > 0), "{statuses:?}");
}

/// Compiling needs several times the retained memory, and a busy process has no other opportunity
/// to release it. A failed reload retains nothing, so all of it must be released.
#[test]
fn what_a_reload_took_is_given_back_with_it() {
    const MORE_MAX: u64 = 3 << 20;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pack = folder.path().join("pack");
    crate::reload_pack::copy(Path::new("mappings/messaging"), &pack);
    let more = format!("mapping: {}\nreload: {{ watch: false }}\n", pack.display());
    let file = serving::write(folder.path(), "127.0.0.1:9", &more);
    let program = start(&file, &[]);
    program.stderr_until("serving");
    let before = anonymous(program.id());
    std::fs::write(pack.join("zz.map.yaml"), "mapping: 1\nroutes: [{pair: nothing}]\n").expect("written");
    // The least of several, since other threads may be at something just then.
    let reloads = (0..3).map(|_| {
        program.signal("HUP");
        program.stderr_until("the reload failed");
        anonymous(program.id())
    });
    let after = reloads.min().unwrap_or_default();
    assert!(after < before + MORE_MAX, "{after} bytes after reloads, {before} before them");
}

/// The default stop timeouts of systemd and Kubernetes exceed the duration of a stop.
#[test]
fn service_managers_wait_longer_than_a_stop_takes() {
    let limits = switchback::config::LimitsConfig::default();
    let stop = limits.drain_delay + limits.drain_timeout;
    let seconds = |text: &str, key: &str| {
        let rest = text.split(key).nth(1).unwrap_or_else(|| panic!("{key} is there"));
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Duration::from_secs(digits.parse().expect("a number of seconds"))
    };
    let unit = std::fs::read_to_string("deploy/switchback.service").unwrap();
    assert!(seconds(&unit, "TimeoutStopSec=") > stop);
    let pod = std::fs::read_to_string("deploy/chart/values.yaml").unwrap();
    let drained = seconds(&pod, "drain_timeout: ") + limits.drain_delay;
    assert!(seconds(&pod, "terminationGracePeriodSeconds: ") > drained);
}
