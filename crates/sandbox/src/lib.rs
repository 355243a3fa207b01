//! The service itself: v3, v2 and the authorization server on one address, acting on one state. It is the upstream of demo,
//! tests and benchmarks, and something to develop against. An independent witness: written from the service's document alone,
//! it knows nothing of mappings or of the gateway. What the document leaves open is decided in the `README.md` beside this
//! file.

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
use control::differ::{Difference, Differences};
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

/// How much data there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Every kind of record, and a chat with thousands of messages.
    #[default]
    Small,
    /// 100,000 contacts and 1,000,000 messages.
    Large,
}

/// A part of the sandbox's address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    V3,
    V2,
    Oauth,
    Other,
}

/// How a sandbox starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Equal seeds give equal data and credentials.
    pub seed: u64,
    pub size: Size,
    /// Life of access tokens, in whole seconds.
    pub expires_in: Duration,
    /// Whether each refresh gives a new refresh token.
    pub rotate_refresh: bool,
    /// Whether a spent refresh token that comes again revokes its whole grant.
    pub detect_reuse: bool,
    /// Keeps the tokens across restarts of the sandbox.
    pub state_file: Option<PathBuf>,
    /// Callback addresses that the OAuth app accepts, the first being the one that is printed.
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

/// A running sandbox; dropping it stops it, with every connection.
pub struct Sandbox {
    address: SocketAddr,
    credentials: Credentials,
    accept: JoinHandle<()>,
}

impl Sandbox {
    /// Makes the state and starts listening.
    ///
    /// # Errors
    /// Where the address cannot be listened on, or the state file neither read nor written.
    pub async fn start(options: Options) -> io::Result<Sandbox> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        // Making the large state takes a moment of work, which must not hold up the other tasks of the runtime.
        let shared =
            tokio::task::spawn_blocking(|| Shared::new(options)).await.map_err(io::Error::other)??;
        let credentials = shared.credentials();
        let accept = tokio::spawn(http::accept(listener, Arc::new(shared)));
        Ok(Sandbox { address, credentials, accept })
    }

    /// What to tell whoever started it: addresses, credentials, and curl lines that work when pasted.
    pub fn welcome(&self) -> String {
        welcome::welcome(self.address, &self.credentials)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tokens and the OAuth app of its seed.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Stops listening and ends every connection.
    pub async fn stop(mut self) {
        self.accept.abort();
        // It ends by being aborted, and there is nothing else it could say.
        (&mut self.accept).await.ok();
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// What all connections share. Every lock is held for one short piece of work, and never while another task is awaited; where
/// two are needed, the vault comes before the state.
struct Shared {
    state: RwLock<State>,
    vault: RwLock<Vault>,
    credentials: Mutex<Credentials>,
    faults: Mutex<Faults>,
    differences: RwLock<Differences>,
    log: Mutex<Log>,
    wall: Wall,
    options: Options,
    /// Whether there is anything to look up under the locks of control; what a fast path asks first.
    has_faults: AtomicBool,
    has_differences: AtomicBool,
    keeps_log: AtomicBool,
}

/// A panic in a handler is a defect that a test should see as a failed request, not as a sandbox that answers nothing any more.
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

    fn read(&self) -> RwLockReadGuard<'_, State> {
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

    /// Whether requests are logged at all.
    fn logs(&self) -> bool {
        self.keeps_log.load(Ordering::Relaxed)
    }

    fn keep_log(&self, keep: usize) {
        let mut log = self.log();
        log.keep(keep);
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
        self.has_faults.store(!faults.is_empty(), Ordering::Release);
        result
    }

    /// The faults that a call meets.
    fn strike<S: AsRef<str>>(&self, side: Side, method: &::http::Method, segments: &[S]) -> Vec<Action> {
        if !self.has_faults.load(Ordering::Acquire) {
            return Vec::new();
        }
        let seed = self.read().seed;
        self.faults().strike(seed, side, method, segments)
    }

    fn differences(&self) -> RwLockReadGuard<'_, Differences> {
        locked!(self.differences.read())
    }

    fn add_difference(&self, difference: Difference) -> Result<u64, String> {
        self.change_differences(|differences| differences.add(difference))
    }

    fn change_differences<T>(&self, change: impl FnOnce(&mut Differences) -> T) -> T {
        let mut differences = locked!(self.differences.write());
        let result = change(&mut differences);
        self.has_differences.store(!differences.is_empty(), Ordering::Release);
        result
    }

    /// The body as the differences in force want it, where they want it otherwise.
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

    /// Everything as at the start, perhaps with another seed or size.
    fn reset(&self, seed: Option<u64>, size: Option<Size>) -> io::Result<()> {
        let mut options = self.options.clone();
        options.seed = seed.unwrap_or(options.seed);
        options.size = size.unwrap_or(options.size);
        if let Some(file) = &options.state_file {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
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
    vault.rotate = options.rotate_refresh;
    vault.detect_reuse = options.detect_reuse;
    vault.redirect_uris.clone_from(&options.redirect_uris);
    Ok((state, vault, credentials))
}
