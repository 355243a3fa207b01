//! One gateway replaced by another while clients go on asking: by stopping and starting, by two
//! that overlap, and by turns. The test is the service manager: it holds the listening sockets and
//! passes them to every gateway that it starts.
//!
//! By hand with more of it: `HAND_OVER_REQUESTS=10000 cargo test --test integration hand_over --
//! --nocapture`.

use crate::support::program::Program;
use crate::support::raw::{Client, exchange};
use crate::support::serving::{self, Enrolled, connected};
use crate::support::{postgres, tls};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Options, Sandbox};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

/// Maximum rate of requests.
const PER_SECOND: u64 = 500;
/// Maximum number of requests in flight. A busy machine lowers the rate: requests that pile up
/// would be refused, and wait longer than the gateway announces its end.
const IN_FLIGHT_MAX: usize = 16;
/// Connections that are used again and again; every other request has one of its own.
const KEPT: usize = 8;

/// Requests of one test.
fn requests_max() -> usize {
    let given = std::env::var("HAND_OVER_REQUESTS").ok().and_then(|count| count.parse().ok());
    given.unwrap_or(1_000)
}

/// The procedures of a service manager for a gateway.
struct Unit {
    clients: TcpListener,
    admin: TcpListener,
    file: PathBuf,
    key: Secret<String>,
}

impl Unit {
    /// A gateway in front of the sandbox; with another's socket for clients, its twin. `store` as
    /// in the configuration.
    fn new(folder: &Path, twin: Option<&Unit>, sandbox: &Sandbox, store: &str) -> Unit {
        let free = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let clients = twin.map_or_else(free, |twin| twin.clients.try_clone().expect("a descriptor is free"));
        let (admin, key) = (free(), twin.map_or_else(SealingKey::generate, |twin| twin.key.clone()));
        let account = sandbox.credentials().account("administrator").expect("every sandbox has one");
        let more = connected(sandbox, &[Enrolled { account, company: None }]);
        // Long enough for each active connection to be notified of its end.
        let more = format!("{more}limits: {{ drain_delay: 1s }}\n");
        let file = serving::write(folder, &sandbox.address().to_string(), &more);
        let text = std::fs::read_to_string(&file).expect("it was written");
        let at = |socket: &TcpListener| socket.local_addr().expect("it is bound").to_string();
        let text = text
            .replacen("listen: 127.0.0.1:0\n", &format!("listen: {}\n", at(&clients)), 1)
            .replacen("listen: 127.0.0.1:0 }", &format!("listen: {} }}", at(&admin)), 1);
        let own =
            text.lines().find_map(|line| line.strip_prefix("store: ")).expect("there is one").to_owned();
        std::fs::write(&file, text.replacen(&own, store, 1)).expect("written");
        Unit { clients, admin, file, key }
    }

    fn address(&self) -> SocketAddr {
        self.clients.local_addr().expect("it is bound")
    }

    /// Starts a gateway, which is not waited for.
    fn start(&self, variables: &[(&str, &str)]) -> Program {
        let file = self.file.to_str().expect("temporary folders have plain names");
        let trusted = tls::upstream_certificate();
        let own =
            [("TEST_KEY", self.key.expose().as_str()), ("SSL_CERT_FILE", trusted.to_str().expect("plain"))];
        let variables = [&own[..], variables].concat();
        Program::activated([&self.clients, &self.admin], &["serve", "--config", file], &variables)
    }

    async fn serving(self: &Arc<Unit>) -> Program {
        let unit = Arc::clone(self);
        let starting = spawn_blocking(move || {
            let program = unit.start(&[]);
            program.stderr_until("serving");
            program
        });
        starting.await.expect("it serves")
    }
}

/// Stops a gateway as a service manager does, and waits for its end.
async fn stopped(program: Program) {
    let ended = spawn_blocking(move || {
        program.signal("TERM");
        program.ended()
    });
    let (status, log) = ended.await.expect("it ends");
    assert!(status.success() && log.contains("connections_cut=0"), "{log}");
}

/// Clients that ask at an even rate, some on connections that they keep.
struct Load {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    running: JoinHandle<Vec<String>>,
}

impl Load {
    fn on(address: SocketAddr, token: &str) -> Load {
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let request =
            format!("GET /v2/agents HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer {token}\r\n\r\n");
        let running =
            tokio::spawn(Load::run(address, request.into(), Arc::clone(&is_over), Arc::clone(&answered)));
        Load { is_over, answered, running }
    }

    /// The errors.
    async fn run(
        address: SocketAddr,
        request: Arc<str>,
        is_over: Arc<AtomicBool>,
        answered: Arc<AtomicUsize>,
    ) -> Vec<String> {
        let kept: Arc<[Mutex<Option<Client>>]> = (0..KEPT).map(|_| Mutex::default()).collect();
        let mut ticks = interval(Duration::from_secs(1) / u32::try_from(PER_SECOND).expect("small"));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let in_flight = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        let mut asking = JoinSet::new();
        let mut number = 0;
        while number < requests_max() || !is_over.load(Ordering::Relaxed) {
            ticks.tick().await;
            let permit = Arc::clone(&in_flight).acquire_owned().await.expect("it is never closed");
            let (kept, request, answered) = (Arc::clone(&kept), Arc::clone(&request), Arc::clone(&answered));
            asking.spawn(async move {
                let _permit = permit;
                let answer = match number % 2 {
                    0 => exchange(address, request.as_bytes()).await,
                    _ => {
                        let mut kept = kept[number / 2 % KEPT].lock().await;
                        let mut client = match kept.take() {
                            Some(client) => client,
                            None => Client::connect(address).await,
                        };
                        client.send(request.as_bytes()).await;
                        let answer = client.answer().await;
                        let is_last =
                            answer.as_ref().is_none_or(|answer| answer.value("connection") == "close");
                        *kept = Some(client).filter(|_| !is_last);
                        answer
                    }
                };
                answered.fetch_add(1, Ordering::Relaxed);
                match answer {
                    Some(answer) if answer.status == 200 && answer.is_complete => None,
                    Some(answer) => Some(format!("request {number}: {} {}", answer.status, answer.text())),
                    None => Some(format!("request {number}: no answer")),
                }
            });
            number += 1;
        }
        asking.join_all().await.into_iter().flatten().collect()
    }

    /// Waits until so many more requests have been answered.
    async fn goes_on(&self) {
        let until = self.answered.load(Ordering::Relaxed) + requests_max() / 5;
        crate::support::raw::until(|| self.answered.load(Ordering::Relaxed) >= until).await;
    }

    /// No client got an error.
    async fn ends_well(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let errors = self.running.await.expect("it ends");
        let all = self.answered.load(Ordering::Relaxed);
        println!("{all} requests, {} errors", errors.len());
        assert!(errors.is_empty(), "{} of {all}, such as {}", errors.len(), errors[0]);
    }
}

struct Scene {
    sandbox: Sandbox,
    token: String,
}

async fn scene() -> Scene {
    let sandbox = Sandbox::start(Options::default()).await.expect("a sandbox starts");
    let token =
        sandbox.credentials().account("administrator").expect("every sandbox has one").v2_token.clone();
    Scene { sandbox, token }
}

fn sqlite(folder: &Path) -> String {
    format!("sqlite:{}/store.db", folder.display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_that_a_gateway_is_stopped_and_started_again() {
    let (scene, folder) = (scene().await, tempfile::tempdir().expect("a temporary folder"));
    let unit = Arc::new(Unit::new(folder.path(), None, &scene.sandbox, &sqlite(folder.path())));
    let first = unit.serving().await;
    let load = Load::on(unit.address(), &scene.token);
    load.goes_on().await;
    stopped(first).await;
    let second = unit.serving().await;
    load.goes_on().await;
    load.ends_well().await;
    stopped(second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_started_beside_another_takes_over_its_store_when_that_ends() {
    let (scene, folder) = (scene().await, tempfile::tempdir().expect("a temporary folder"));
    let unit = Arc::new(Unit::new(folder.path(), None, &scene.sandbox, &sqlite(folder.path())));
    let first = unit.serving().await;
    let load = Load::on(unit.address(), &scene.token);
    load.goes_on().await;
    let starting = Arc::clone(&unit);
    let second = spawn_blocking(move || {
        let program = starting.start(&[]);
        program.stderr_until("waiting for the gateway that uses this store to exit");
        program
    });
    let second = second.await.expect("it waits");
    stopped(first).await;
    let second = spawn_blocking(move || {
        second.stderr_until("serving");
        second
    });
    let second = second.await.expect("it serves");
    load.goes_on().await;
    load.ends_well().await;
    stopped(second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_that_two_gateways_are_restarted_by_turns() {
    let Some(store) = postgres::database() else { return };
    let scene = scene().await;
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let first = Arc::new(Unit::new(folders[0].path(), None, &scene.sandbox, &store));
    let second = Arc::new(Unit::new(folders[1].path(), Some(&first), &scene.sandbox, &store));
    let (mut one, mut other) = (first.serving().await, second.serving().await);
    let load = Load::on(first.address(), &scene.token);
    load.goes_on().await;
    stopped(one).await;
    one = first.serving().await;
    load.goes_on().await;
    stopped(other).await;
    other = second.serving().await;
    load.goes_on().await;
    load.ends_well().await;
    stopped(one).await;
    stopped(other).await;
}

#[test]
fn a_service_manager_is_told_when_a_gateway_serves_and_when_it_stops() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let heard = folder.path().join("notify");
    let manager = UnixDatagram::bind(&heard).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("it can wait");
    let hear = || {
        let mut said = [0; 256];
        let count = manager.recv(&mut said).expect("it is told");
        String::from_utf8_lossy(&said[..count]).trim_end().to_owned()
    };
    let file = serving::write(folder.path(), "127.0.0.1:9", "limits: { drain_delay: 1h }\n");
    let key = SealingKey::generate();
    let arguments = ["serve", "--config", file.to_str().expect("a plain name")];
    let variables =
        [("TEST_KEY", key.expose().as_str()), ("NOTIFY_SOCKET", heard.to_str().expect("a plain name"))];
    let program = Program::start(&arguments, &variables);
    assert_eq!(hear(), "READY=1");
    assert!(program.stderr_until("serving").contains("serving"), "it serves before it says so");
    program.signal("TERM");
    assert_eq!(hear(), "STOPPING=1");
    program.signal("TERM");
    assert!(program.ended().0.success());
}

#[test]
fn a_socket_that_is_passed_for_nothing_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [clients, admin] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let file = serving::write(folder.path(), "127.0.0.1:9", "");
    let text = std::fs::read_to_string(&file).expect("it was written");
    let used = clients.local_addr().expect("it is bound");
    std::fs::write(&file, text.replacen("127.0.0.1:0", &used.to_string(), 1)).expect("written");
    let key = SealingKey::generate();
    let arguments = ["serve", "--config", file.to_str().expect("a plain name")];
    let program = Program::activated([&clients, &admin], &arguments, &[("TEST_KEY", key.expose())]);
    let (status, log) = program.ended();
    assert_eq!(status.code(), Some(3), "{log}");
    let unused = admin.local_addr().expect("it is bound").to_string();
    assert!(log.contains(&unused) && !log.contains(&used.to_string()), "{log}");
}

/// The configuration has loopback; the socket of the service manager is bound to all addresses.
#[test]
fn an_admin_socket_that_others_reach_wants_a_token() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [clients, admin] = ["127.0.0.1:0", "0.0.0.0:0"].map(|at| TcpListener::bind(at).expect("a free port"));
    let port = admin.local_addr().expect("it is bound").port();
    let file = serving::write(folder.path(), "127.0.0.1:9", "");
    let text = std::fs::read_to_string(&file).expect("it was written");
    let key = SealingKey::generate();
    let start = |token: &str| {
        let own = clients.local_addr().expect("it is bound");
        let text = text.replacen("listen: 127.0.0.1:0\n", &format!("listen: {own}\n"), 1).replacen(
            "listen: 127.0.0.1:0 }",
            &format!("listen: 127.0.0.1:{port}{token} }}"),
            1,
        );
        std::fs::write(&file, text).expect("written");
        let file = file.to_str().expect("temporary folders have plain names");
        Program::activated([&clients, &admin], &["serve", "--config", file], &[("TEST_KEY", key.expose())])
    };
    let (status, log) = start("").ended();
    assert!(!status.success(), "{log}");
    for part in [&format!("0.0.0.0:{port}"), "LISTEN_FDS", "`admin.token` is not set"] {
        assert!(log.contains(part), "{part} in {log}");
    }
    let program = start(", token: a-long-enough-admin-token");
    program.stderr_until("serving");
    // A reload that takes the token away is refused.
    let with = std::fs::read_to_string(&file).expect("it was written");
    std::fs::write(&file, with.replace(", token: a-long-enough-admin-token", "")).expect("written");
    program.signal("HUP");
    assert!(program.stderr_until("the reload failed").contains("`admin.token` is not set"));
}
