//! `kill -9` at every step of a refresh, against the sandbox's authorization server, which rotates
//! refresh tokens, detects reuse and has no grace: a grant is preserved if possible, and flagged
//! otherwise.
//!
//! The victim is a separate process (this test program, started again with [`child`]). It stops
//! itself at a chosen step, according to the trace of the refresh, and is killed there; or a relay
//! between it and the server holds the call at a chosen point; or it is killed at a random time.
//! The relay also records the last refresh token from the server, and so determines the loss of a
//! kill before the next process does.
//!
//! `SWITCHBACK_KILL_ROUNDS=1000` makes the campaign long.

use crate::support::authority::Authority;
use crate::support::tokens::{OLD_TOKEN, PATIENCE, acme, key, operation, ring, service_requests, sqlite_in};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::{GrantState, MissingStore, Store};
use switchback_gateway::token::{Client, OAuth, OAuthApp, RefreshSettings, Registry, TokenEndpoint, Tokens};
use switchback_sandbox::{Options, Sandbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tracing_subscriber::layer::SubscriberExt as _;

const ROUNDS_QUICK: usize = 27;
const REDIRECT: &str = "http://127.0.0.1:9090/oauth/callback";

/// Where a victim dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kill {
    /// The intent is durable, and no request was sent.
    IntentWritten,
    /// The call is about to be sent.
    BeforeSending,
    /// The call has arrived and the server has not acted.
    BeforeActing,
    /// The server has acted, and the answer is on its way.
    BeforeAnswering,
    /// The answer has arrived and is not stored: the window that cannot be closed.
    BeforeStoring,
    /// Some microseconds after the answer went out.
    AroundStoring,
    /// The new tokens are durable, and not yet in use.
    Stored,
    /// All is done.
    Woken,
    /// Any time from the first instruction on.
    AnyTime,
}

const KILLS: [Kill; 9] = [
    Kill::IntentWritten,
    Kill::BeforeSending,
    Kill::BeforeActing,
    Kill::BeforeAnswering,
    Kill::BeforeStoring,
    Kill::AroundStoring,
    Kill::Stored,
    Kill::Woken,
    Kill::AnyTime,
];

impl Kill {
    /// The step of the trace at which the victim stops itself.
    fn step(self) -> Option<&'static str> {
        match self {
            Kill::IntentWritten => Some("intent"),
            Kill::BeforeSending => Some("sending"),
            Kill::BeforeStoring => Some("received"),
            Kill::Stored => Some("persisted"),
            Kill::Woken => Some("woken"),
            _ => None,
        }
    }

    /// Where the relay holds the call.
    fn hold(self) -> Hold {
        match self {
            Kill::BeforeActing => Hold::Request,
            Kill::BeforeAnswering => Hold::Answer,
            _ => Hold::Nothing,
        }
    }

    /// Whether the server may have rotated the token without the victim having stored it.
    fn may_lose(self) -> bool {
        matches!(self, Kill::BeforeAnswering | Kill::BeforeStoring | Kill::AroundStoring | Kill::AnyTime)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Nothing,
    Request,
    Answer,
}

/// A relay between victim and server, which records all tokens.
struct Relay {
    address: SocketAddr,
    shared: Arc<RelayShared>,
}

struct RelayShared {
    upstream: SocketAddr,
    hold: Mutex<Hold>,
    /// The refresh token that the server gave out last.
    active: Mutex<String>,
    calls: Mutex<usize>,
    seen: mpsc::UnboundedSender<&'static str>,
}

impl Relay {
    async fn start(upstream: SocketAddr, active: String) -> (Self, mpsc::UnboundedReceiver<&'static str>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (seen, events) = mpsc::unbounded_channel();
        let shared = Arc::new(RelayShared {
            upstream,
            hold: Mutex::new(Hold::Nothing),
            active: Mutex::new(active),
            calls: Mutex::new(0),
            seen,
        });
        let serving = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(relay(stream, serving.clone()));
            }
        });
        (Relay { address, shared }, events)
    }

    fn active(&self) -> String {
        self.shared.active.lock().expect("never poisoned").clone()
    }

    fn calls(&self) -> usize {
        *self.shared.calls.lock().expect("never poisoned")
    }

    fn hold(&self, hold: Hold) {
        *self.shared.hold.lock().expect("never poisoned") = hold;
    }
}

async fn relay(mut client: TcpStream, shared: Arc<RelayShared>) -> Option<()> {
    let (request, _) = read_message(&mut client).await?;
    *shared.calls.lock().expect("never poisoned") += 1;
    let hold = *shared.hold.lock().expect("never poisoned");
    if hold == Hold::Request {
        let _ = shared.seen.send("request");
        // Held until the victim is dead: a close of that side is never passed on.
        let _ = client.read(&mut [0; 1]).await;
        return None;
    }
    let mut server = TcpStream::connect(shared.upstream).await.ok()?;
    server.write_all(&request).await.ok()?;
    let (answer, body) = read_message(&mut server).await?;
    if let Some(token) = body.as_ref().and_then(|body| body["refresh_token"].as_str()) {
        *shared.active.lock().expect("never poisoned") = token.to_owned();
    }
    if hold == Hold::Answer {
        let _ = shared.seen.send("answer");
        let _ = client.read(&mut [0; 1]).await;
        return None;
    }
    client.write_all(&answer).await.ok()?;
    let _ = shared.seen.send("answered");
    Some(())
}

/// One message with its length in the head, and its body as JSON if it is that.
async fn read_message(stream: &mut TcpStream) -> Option<(Vec<u8>, Option<Value>)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(head_end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
            if bytes.len() >= head_end + 4 + length.trim().parse::<usize>().ok()? {
                let body = serde_json::from_slice(&bytes[head_end + 4..]).ok();
                return Some((bytes, body));
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// Settings under which every 401 may refresh, so that a refresh can be triggered at will.
fn eager() -> RefreshSettings {
    RefreshSettings { rejection_quiet: Duration::ZERO, ..RefreshSettings::default() }
}

fn endpoint(token_server: SocketAddr, authorize_server: SocketAddr) -> TokenEndpoint {
    let url = |address: SocketAddr, path: &str| format!("http://{address}{path}").parse().expect("a URL");
    let (authorize_url, token_url) =
        (url(authorize_server, "/oauth/authorize"), url(token_server, "/oauth/access_token"));
    TokenEndpoint::new(OAuth {
        scopes: vec!["install_app".to_owned()],
        requests: service_requests(),
        ..OAuth::at(authorize_url, token_url, REDIRECT.parse().expect("a URL"))
    })
    .expect("loopback needs no TLS")
}

/// Causes exactly one refresh.
async fn refresh(client: &Client) -> bool {
    match client.grant.current() {
        None => client.grant.access_token().await.is_ok(),
        Some(token) => {
            matches!(
                client.grant.on_unauthorized(token.generation(), operation()).await,
                switchback_gateway::token::Rejected::Replay(_)
            )
        }
    }
}

/// Stops the process at a step of the trace, and prints it.
struct StopAt(String);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for StopAt {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        struct Step<'a>(&'a str, bool);
        impl tracing::field::Visit for Step<'_> {
            fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
                self.1 |= field.name() == "step" && value == self.0;
            }
            fn record_debug(&mut self, _: &tracing::field::Field, _: &dyn std::fmt::Debug) {}
        }
        let mut step = Step(&self.0, false);
        event.record(&mut step);
        if step.1 {
            println!("STOPPED");
            loop {
                std::thread::park();
            }
        }
    }
}

/// The victim: opens the store, refreshes once, prints it, and waits for its end.
#[test]
#[ignore = "not a test of its own: the campaign starts it and kills it"]
fn child() {
    let Ok(url) = std::env::var("SWITCHBACK_KILL_STORE") else { return };
    let from = |name: &str| std::env::var(name).expect("given by the campaign");
    let subscriber = tracing_subscriber::registry().with(StopAt(from("SWITCHBACK_KILL_STEP")));
    tracing::subscriber::set_global_default(subscriber).expect("the first one");
    let relay: SocketAddr = from("SWITCHBACK_KILL_RELAY").parse().expect("an address");
    let key = Secret::new(from("SWITCHBACK_KILL_KEY"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let store =
            Store::open(&url, ring(&[&key]), Clock::machine(), MissingStore::Refuse).await.expect("opens");
        let tokens =
            Tokens::open(store, Some(endpoint(relay, relay)), eager()).await.expect("the role is free");
        let client = tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").expect("enrolled");
        refresh(&client).await;
        println!("DONE");
        std::future::pending::<()>().await;
    });
}

struct Campaign {
    folder: tempfile::TempDir,
    key: Secret<String>,
    relay: Relay,
    events: mpsc::UnboundedReceiver<&'static str>,
    authorize_server: SocketAddr,
}

impl Campaign {
    async fn start(server: SocketAddr, app: OAuthApp, refresh_token: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let key = key();
        let (relay, events) = Relay::start(server, refresh_token.to_owned()).await;
        let campaign = Campaign { folder, key, relay, events, authorize_server: server };
        let store = campaign.open(MissingStore::Create).await;
        let mut client = acme(refresh_token);
        client.app = Some(app);
        Registry::new(store.clone(), None).add(client).await.expect("added");
        store.close().await;
        campaign
    }

    async fn open(&self, missing: MissingStore) -> Store {
        let url = sqlite_in(self.folder.path());
        Store::open(&url, ring(&[&self.key]), Clock::machine(), missing).await.expect("opens")
    }

    fn endpoint(&self) -> TokenEndpoint {
        endpoint(self.relay.address, self.authorize_server)
    }

    fn spawn(&self, kill: Kill) -> Child {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["token_kill::child", "--exact", "--ignored", "--nocapture"])
            .env("SWITCHBACK_KILL_STORE", sqlite_in(self.folder.path()))
            .env("SWITCHBACK_KILL_KEY", self.key.expose())
            .env("SWITCHBACK_KILL_RELAY", self.relay.address.to_string())
            .env("SWITCHBACK_KILL_STEP", kill.step().unwrap_or("never"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program starts")
    }

    /// Starts a victim and kills it at the point of `kill`.
    async fn murder(&mut self, kill: Kill, random: &mut fastrand::Rng) {
        while self.events.try_recv().is_ok() {}
        self.relay.hold(kill.hold());
        let mut victim = self.spawn(kill);
        let (said, mut stopped) = oneshot::channel();
        let output = std::io::BufReader::new(victim.stdout.take().expect("piped"));
        let listening = std::thread::spawn(move || {
            let mut lines = output.lines().map_while(Result::ok);
            if let Some(line) = lines.find(|line| line == "STOPPED" || line == "DONE") {
                let _ = said.send(line);
            }
        });
        let arrived = async {
            match kill {
                Kill::AnyTime => tokio::time::sleep(Duration::from_micros(random.u64(0..60_000))).await,
                Kill::BeforeActing | Kill::BeforeAnswering => drop(self.events.recv().await),
                Kill::AroundStoring => {
                    self.events.recv().await;
                    tokio::time::sleep(Duration::from_micros(random.u64(0..4_000))).await;
                }
                _ => assert_eq!((&mut stopped).await.expect("the victim speaks"), "STOPPED", "{kill:?}"),
            }
        };
        let arrived = tokio::time::timeout(PATIENCE, arrived).await;
        victim.kill().expect("SIGKILL");
        victim.wait().expect("it is gone");
        listening.join().expect("its output has ended");
        arrived.unwrap_or_else(|_| panic!("{kill:?} was never reached"));
        self.relay.hold(Hold::Nothing);
    }

    /// Inspects the remaining state, restarts, and returns whether the grant was preserved. Fails
    /// if it was lost without need, or lost without a flag.
    async fn inquest(&self, kill: Kill) -> bool {
        let store = self.open(MissingStore::Refuse).await;
        let id = store.client("acme").await.expect("there").id;
        let row = store.grant_of(&id).await.expect("there");
        let held = row.secrets.as_ref().expect("opens").refresh.clone().expect("there");
        let keepable = *held.expose() == self.relay.active();
        assert!(keepable || kill.may_lose(), "{kill:?} must not lose the grant");
        assert!(keepable || row.outcome_unknown, "{kill:?}: a spent token without an intent");
        let tokens =
            Tokens::open(store.clone(), Some(self.endpoint()), eager()).await.expect("the role is free");
        let client = tokens.clients().authenticate(OLD_TOKEN.as_bytes(), "v2").expect("enrolled");
        let before = self.relay.calls();
        let kept = refresh(&client).await;
        if keepable {
            assert!(kept, "{kill:?}: the token was good and the grant is lost: {:?}", client.grant);
        }
        if !kept {
            assert_eq!(client.grant.state(), GrantState::NeedsReconnect, "{kill:?}");
            assert_eq!(self.relay.calls(), before + 1, "{kill:?}: one try");
            for _ in 0..10 {
                assert!(!refresh(&client).await);
            }
            assert_eq!(self.relay.calls(), before + 1, "{kill:?}: and no storm");
            let flagged = store.grant_of(&id).await.expect("there");
            assert_eq!(flagged.state, GrantState::NeedsReconnect, "{kill:?}: in the store as well");
            assert_eq!(flagged.reason.as_deref(), Some("refresh_interrupted"), "{kill:?}");
        }
        tokens.drain(PATIENCE).await;
        drop((client, tokens));
        store.close().await;
        kept
    }

    /// Reconnects the client, as an operator does for a lost grant.
    async fn reconnect(&self) {
        let store = self.open(MissingStore::Refuse).await;
        let registry = Registry::new(store.clone(), Some(self.endpoint()));
        let link = registry.connect("acme", None).await.expect("a link").url;
        let http = crate::support::http::client();
        let agreed = http.get(format!("{link}&auto_approve=1")).send().await.expect("answers");
        let back = agreed.headers()["location"].to_str().expect("text").to_owned();
        let query = back.split_once('?').expect("a query").1.to_owned();
        registry.callback(&query).await.expect("connected again");
        store.close().await;
    }
}

async fn run(mut campaign: Campaign, rounds: usize) -> BTreeMap<Kill, (usize, usize)> {
    let seed = fastrand::u64(..);
    eprintln!("{rounds} kills, seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut tally: BTreeMap<Kill, (usize, usize)> = BTreeMap::new();
    for round in 0..rounds {
        let kill = KILLS[round % KILLS.len()];
        campaign.murder(kill, &mut random).await;
        let kept = campaign.inquest(kill).await;
        let entry = tally.entry(kill).or_default();
        if kept {
            entry.0 += 1;
        } else {
            entry.1 += 1;
            campaign.reconnect().await;
        }
    }
    for (kill, (kept, lost)) in &tally {
        eprintln!("{kill:<16?} kept {kept:>4}  lost and flagged {lost:>4}");
    }
    tally
}

fn rounds() -> usize {
    std::env::var("SWITCHBACK_KILL_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(ROUNDS_QUICK)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_refresh_loses_no_grant_that_could_be_kept() {
    let sandbox = Sandbox::start(Options { redirect_uris: vec![REDIRECT.to_owned()], ..Options::default() });
    let sandbox = sandbox.await.expect("a free port");
    let given = sandbox.credentials();
    let app = OAuthApp::with_secret(given.client_id.as_str().into(), given.client_secret.as_str().into());
    let campaign = Campaign::start(sandbox.address(), app, &given.refresh_token).await;
    let tally = run(campaign, rounds()).await;
    let lost: usize = tally.iter().filter(|(kill, _)| !kill.may_lose()).map(|(_, (_, lost))| lost).sum();
    assert_eq!(lost, 0);
    for kill in [Kill::BeforeAnswering, Kill::BeforeStoring] {
        assert_eq!(
            tally[&kill].0, 0,
            "{kill:?} cannot be survived without grace; if it was, the test looks away"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_grace_period_a_killed_refresh_loses_nothing_at_all() {
    let authority = Authority::start().await;
    authority.state().grace = true;
    let campaign =
        Campaign::start(authority.address, crate::support::authority::app(), "refresh-canary-0").await;
    let tally = run(campaign, rounds()).await;
    assert_eq!(tally.values().map(|(_, lost)| lost).sum::<usize>(), 0);
}
