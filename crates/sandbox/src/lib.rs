//! A simulation of the messaging service: v3, v2 and the authorization server on one address with
//! one state. It is the upstream of the demo, the tests and the benchmarks, and a target for
//! development. As an independent reference, it is written from the service's document alone,
//! without knowledge of mappings or the gateway. Decisions about points that the document leaves
//! open are in `README.md` of the crate.

mod answer;
mod call;
mod clock;
mod control;
mod http;
mod oauth;
mod reasons;
mod reply;
mod router;
mod seed;
mod state;
mod v2;
mod v3;
mod views;
mod welcome;
mod wire;

pub use oauth::{Account, Credentials};

use clock::Wall;
use control::differ::{Difference, Differences, FieldError};
use control::faults::{Action, Fault, Faults};
use control::log::Log;
use oauth::Vault;
use serde::{Deserialize, Serialize};
use state::State;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The amount of seeded data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Every kind of record, and a chat with thousands of messages.
    #[default]
    Small,
    /// 100,000 contacts and 1,000,000 messages.
    Large,
}

/// A part of the sandbox's URL space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    V3,
    V2,
    Oauth,
    Other,
}

/// Configuration of a sandbox.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// Equal seeds yield equal data and credentials.
    pub seed: u64,
    pub size: Size,
    /// Lifetime of access tokens, in seconds, rounded down.
    pub expires_in: Duration,
    /// Whether each refresh issues a new refresh token.
    pub rotate_refresh: bool,
    /// Whether the reuse of a spent refresh token revokes its grant.
    pub detect_reuse: bool,
    /// File that persists the tokens across restarts.
    pub state_file: Option<PathBuf>,
    /// Redirect URIs that the OAuth app accepts. The first one is printed.
    pub redirect_uris: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            seed: 1,
            size: Size::Small,
            expires_in: Duration::from_secs(2_592_000),
            rotate_refresh: true,
            detect_reuse: true,
            state_file: None,
            redirect_uris: vec!["http://127.0.0.1:9090/oauth/callback".to_owned()],
        }
    }
}

/// A running sandbox. Dropping it stops the server and closes all connections.
pub struct Sandbox {
    address: SocketAddr,
    credentials: Credentials,
    accept: JoinHandle<()>,
}

impl Sandbox {
    /// Builds the state and starts listening.
    ///
    /// # Errors
    /// Fails if the address cannot be bound, or if the state file cannot be read or written.
    pub async fn start(options: Options) -> io::Result<Sandbox> {
        // Bound before the state is built, so that a port in use is reported without waiting for the large
        // state.
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        // Building the large state is CPU-bound and must not block the async runtime.
        let shared =
            tokio::task::spawn_blocking(|| Shared::new(options)).await.map_err(io::Error::other)??;
        let credentials = shared.credentials();
        let accept = tokio::spawn(http::accept(listener, Arc::new(shared)));
        Ok(Sandbox { address, credentials, accept })
    }

    /// Returns the startup message: addresses, credentials, and curl commands.
    pub fn welcome(&self) -> String {
        welcome::welcome(self.address, &self.credentials)
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the tokens and the OAuth app of the seed.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Stops listening and closes all connections.
    pub async fn stop(mut self) {
        self.accept.abort();
        // The task was aborted, so its result carries no information.
        (&mut self.accept).await.ok();
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// State shared by all connections. Every lock is held for one short operation and never across an
/// await. If two are needed, the vault is locked before the state.
struct Shared {
    state: RwLock<State>,
    vault: RwLock<Vault>,
    credentials: Mutex<Credentials>,
    faults: Mutex<Faults>,
    differences: RwLock<Differences>,
    log: Mutex<Log>,
    wall: Wall,
    options: Options,
    /// Whether the locked collections are non-empty, so that most requests can skip the locks.
    has_faults: AtomicBool,
    has_differences: AtomicBool,
    keeps_log: AtomicBool,
}

/// Ignores lock poisoning. A panicking handler then fails only its own request, which a test can
/// observe, instead of disabling the sandbox.
macro_rules! locked {
    ($guard:expr) => {
        $guard.unwrap_or_else(std::sync::PoisonError::into_inner)
    };
}

impl Shared {
    fn new(options: Options) -> io::Result<Shared> {
        let wall = Wall::default();
        let (state, vault, credentials) = fresh(&options, &wall)?;
        Ok(Shared {
            state: RwLock::new(state),
            vault: RwLock::new(vault),
            credentials: Mutex::new(credentials),
            faults: Mutex::default(),
            differences: RwLock::default(),
            log: Mutex::default(),
            wall,
            options,
            has_faults: AtomicBool::new(false),
            has_differences: AtomicBool::new(false),
            keeps_log: AtomicBool::new(true),
        })
    }

    fn lock_state(&self) -> RwLockReadGuard<'_, State> {
        locked!(self.state.read())
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        locked!(self.state.write())
    }

    fn vault(&self) -> RwLockReadGuard<'_, Vault> {
        locked!(self.vault.read())
    }

    fn vault_mut(&self) -> RwLockWriteGuard<'_, Vault> {
        locked!(self.vault.write())
    }

    fn credentials(&self) -> Credentials {
        locked!(self.credentials.lock()).clone()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        locked!(self.log.lock())
    }

    /// Returns whether requests are logged.
    fn logs(&self) -> bool {
        self.keeps_log.load(Ordering::Relaxed)
    }

    fn keep_log(&self, keep: usize) {
        let mut log = self.log();
        log.keep(keep);
        // Stored while the lock is held, so that two calls cannot leave a flag that contradicts the log.
        self.keeps_log.store(log.is_kept(), Ordering::Relaxed);
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        locked!(self.faults.lock())
    }

    fn add_fault(&self, fault: Fault) -> u64 {
        self.change_faults(|faults| faults.add(fault))
    }

    fn change_faults<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> T {
        let mut faults = self.faults();
        let result = change(&mut faults);
        // Release pairs with the acquire of `strike`: a request that starts after the control call's
        // answer sees the rule. Tests add a rule and call at once.
        self.has_faults.store(!faults.is_empty(), Ordering::Release);
        result
    }

    /// Returns the faults that apply to a call.
    fn strike<S: AsRef<str>>(&self, side: Side, method: &::http::Method, segments: &[S]) -> Vec<Action> {
        // Measurements run without rules, and one lock for all requests would limit the throughput.
        if !self.has_faults.load(Ordering::Acquire) {
            return Vec::new();
        }
        // Release the lock of the state before taking that of the faults.
        let seed = self.lock_state().seed;
        self.faults().strike(seed, side, method, segments)
    }

    fn differences(&self) -> RwLockReadGuard<'_, Differences> {
        locked!(self.differences.read())
    }

    fn add_difference(&self, difference: Difference) -> Result<u64, FieldError> {
        self.change_differences(|differences| differences.add(difference))
    }

    fn change_differences<T>(&self, change: impl FnOnce(&mut Differences) -> T) -> T {
        let mut differences = locked!(self.differences.write());
        let result = change(&mut differences);
        self.has_differences.store(!differences.is_empty(), Ordering::Release);
        result
    }

    /// Returns the body modified by the active differences, if any applies.
    fn differ<S: AsRef<str>>(
        &self,
        side: Side,
        resource: &str,
        segments: &[S],
        body: &[u8],
    ) -> Option<Vec<u8>> {
        let any = self.has_differences.load(Ordering::Acquire) && !body.is_empty();
        any.then(|| self.differences().apply(side, resource, segments, body)).flatten()
    }

    fn advance(&self, seconds: i64) {
        self.wall.advance(seconds);
        let mut state = self.write();
        state.now = state.now.saturating_add(seconds);
    }

    /// Restores the initial state, optionally with another seed or size.
    fn reset(&self, seed: Option<u64>, size: Option<Size>) -> io::Result<()> {
        let mut options = self.options.clone();
        options.seed = seed.unwrap_or(options.seed);
        options.size = size.unwrap_or(options.size);
        // Otherwise the vault would load the old tokens again.
        if let Some(file) = &options.state_file {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // Reset before the vault is built, because the seeded tokens expire relative to the clock.
        self.wall.reset();
        let (state, vault, credentials) = fresh(&options, &self.wall)?;
        *self.vault_mut() = vault;
        *self.write() = state;
        *locked!(self.credentials.lock()) = credentials;
        self.change_faults(Faults::clear);
        self.change_differences(Differences::clear);
        *self.log() = Log::default();
        self.keeps_log.store(true, Ordering::Relaxed);
        Ok(())
    }
}

fn fresh(options: &Options, wall: &Wall) -> io::Result<(State, Vault, Credentials)> {
    let state = seed::build(options.seed, options.size);
    let redirect_uri = options.redirect_uris.first().map_or("", String::as_str);
    let credentials = Credentials::of_seed(options.seed, redirect_uri);
    let expires_in = options.expires_in.as_secs();
    let file = options.state_file.clone();
    let mut vault = Vault::open(options.seed, &credentials, file, wall.now_ms(), expires_in)?;
    // Set from the options even after loading a file, which contains tokens but no switches.
    vault.rotate = options.rotate_refresh;
    vault.detect_reuse = options.detect_reuse;
    vault.redirect_uris.clone_from(&options.redirect_uris);
    Ok((state, vault, credentials))
}
