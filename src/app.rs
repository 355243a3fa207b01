//! Builds a running gateway from a configuration. This is the only module that constructs and
//! connects the parts.
//!
//! Order matters in two places: a service is announced only once it works, and shutdown proceeds
//! from the listeners inwards.

mod announcements;
mod assemble;
pub mod builtin;
mod examine;
mod pack;
mod reload;
mod watch;

use crate::admin::{self, Admin, Area, Board, PackStatus, SessionPolicy, Status};
use crate::config::{self, Config};
use crate::playground::PlaygroundSession;
use arc_swap::ArcSwap;
use assemble::Services;
pub use assemble::service_address;
pub use examine::{Examined, Try, examine};
use reload::Reloader;
pub use reload::TAKE_A_RESTART;
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::capture::Tap;
use switchback_gateway::clients;
use switchback_gateway::clock::{Clock, rfc3339};
use switchback_gateway::events::deliver::Deliverer;
use switchback_gateway::events::dual::EventsDual;
use switchback_gateway::proxy::calls::retry::Budget;
use switchback_gateway::proxy::headers::Pseudonym;
use switchback_gateway::proxy::program::CurrentProgram;
use switchback_gateway::proxy::stack;
use switchback_gateway::proxy::unknown_calls::UnknownCalls;
use switchback_gateway::proxy::upstream::UpstreamError;
use switchback_gateway::retire::{Retirement, Usage};
use switchback_gateway::server::{self, Bound, CoreRuntimes, Drain, Drained, Inherited, Listener, Unclaimed};
use switchback_gateway::shadow::{self, Archive, Phases, Shadow};
use switchback_gateway::store::seal::{KeyRing, SealError};
use switchback_gateway::store::{self, Ensured, GrantFlow, MissingStore, Store, StoreError};
use switchback_gateway::telemetry::metrics;
use switchback_gateway::telemetry::otlp::OtlpError;
use switchback_gateway::tls::{self, ServerCertificate, TlsError};
use switchback_gateway::token::{
    self, NewClient, NewCredential, NewToken, OAuthConfigError, Registry, RegistryError, TokenEndpoint,
    Tokens,
};
use tokio::sync::{Mutex, Notify};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;
use watch::FolderWatch;

/// Interval of the histogram upkeep. The recorder stores every sample until then.
const METRICS_UPKEEP: Duration = Duration::from_secs(1);
/// Time limit for the final trace export at shutdown.
const TRACES_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two attempts to open the store at start.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Why a gateway failed to start. The messages are written for operators.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The pack does not compile or its examples fail. Holds the rendered findings.
    #[error("{0}")]
    Pack(String),
    /// The configuration does not fit the pack. Holds the rendered findings.
    #[error("{0}")]
    Mismatch(String),
    #[error("key: {0}")]
    Key(#[from] SealError),
    #[error("store: {0}")]
    Store(#[from] StoreError),
    /// The store did not answer within `limits.store_wait`.
    #[error(
        "store {0}: {1}; check that the database of `store` runs and can be reached from here, or raise `limits.store_wait`"
    )]
    StoreAway(String, StoreError),
    /// The address of the store, without secrets, and the cause.
    #[error("`store` {0} cannot be opened: {1}")]
    OpenStore(String, StoreError),
    #[error(
        "the limit of file descriptors is {limit}, which leaves clients hardly a connection; at least {needed} are needed \
         (`ulimit -n`, `LimitNOFILE=`)"
    )]
    Descriptors { limit: u64, needed: u64 },
    #[error("oauth: {0}")]
    OAuth(#[from] OAuthConfigError),
    #[error("clients: {0}")]
    Clients(#[from] RegistryError),
    #[error("upstreams.{0}: {1}")]
    Upstream(String, UpstreamError),
    #[error("upstreams.{0} is missing")]
    NoUpstream(String),
    #[error("settings: {0}")]
    Settings(String),
    #[error("{0} is not a URL")]
    Url(String),
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
    /// The bound socket, which may be inherited, is reachable from other hosts, and `admin.token`
    /// is unset.
    #[error(
        "others can reach the admin port on {0}, the socket that was passed for `admin.listen` (LISTEN_FDS), and `admin.token` is \
         not set; set it, or pass a socket that is bound to 127.0.0.1"
    )]
    AdminExposed(SocketAddr),
    /// The configuration key, its address and the cause.
    #[error("`{0}`: cannot listen on {1}: {2}")]
    Listen(&'static str, SocketAddr, io::Error),
    #[error(
        "sockets were passed (LISTEN_FDS) for {0}, which is the address of none of `listen`, `admin.listen`, `health.listen` and \
         `oauth.listen`"
    )]
    PassedForNothing(Unclaimed),
    #[error("{0}")]
    Traces(#[from] OtlpError),
    #[error("shadow: {0}")]
    Shadow(#[from] shadow::ShadowStartError),
    /// The HTTP client for event deliveries cannot be built.
    #[error("events: {0}")]
    Events(reqwest::Error),
    /// The runtime is shutting down.
    #[error("interrupted")]
    Interrupted,
}

/// Input of [`RunningApp::start`].
#[derive(Debug)]
pub struct StartOptions {
    pub config: Config,
    /// The configuration file, which reloads read again. `None`: reloads read only the pack.
    pub file: Option<PathBuf>,
    pub clock: Clock,
    /// Inherited listening sockets. Addresses without one are bound here.
    pub inherited: Inherited,
}

/// The addresses that a gateway listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    pub clients: SocketAddr,
    pub admin: SocketAddr,
    /// The separate health port, if configured.
    pub health: Option<SocketAddr>,
    /// The separate port for the OAuth callback, if configured.
    pub callback: Option<SocketAddr>,
}

/// A part that a reload may replace, until shutdown takes it.
type Replaceable<T> = Arc<Mutex<Option<T>>>;

/// Time limits of a shutdown.
#[derive(Clone, Copy, Debug)]
struct Stopping {
    /// Time during which new clients are still accepted.
    delay: Duration,
    /// Upper bound for the drain of everything in flight.
    grace: Duration,
}

impl Stopping {
    fn from_limits(limits: &config::LimitsConfig) -> Stopping {
        Stopping { delay: limits.drain_delay, grace: limits.drain_timeout }
    }
}

/// A running gateway.
pub struct RunningApp {
    addresses: Addresses,
    /// Drains the client listeners.
    drain_clients: Drain,
    /// Drains the admin, health and callback ports. They outlive the client listeners, so that
    /// operators can watch the drain.
    drain_admin: Drain,
    /// The threads that serve clients.
    cores: CoreRuntimes,
    /// The admin port, and the health and callback ports if they are separate.
    admin: Vec<JoinHandle<Drained>>,
    /// Announces the end of this replica to the others.
    studio: Admin,
    /// Requests with effects that continue after their client has disconnected.
    detached: TaskTracker,
    /// The workers that compare both sides.
    workers: Replaceable<shadow::Workers>,
    stopping: Arc<ArcSwap<Stopping>>,
    /// Background tasks: reload, refresh, metrics upkeep, gate. Aborted once all requests have
    /// finished.
    background: Vec<JoinHandle<()>>,
    reload: Arc<Notify>,
    board: Board,
    registry: Registry,
    tokens: Tokens,
    usage: Usage,
    /// Delivers events; `None` without receivers.
    deliverer: Option<Deliverer>,
    store: Store,
    current: CurrentProgram,
}

impl RunningApp {
    /// Starts all parts and returns once every listener accepts connections.
    pub async fn start(start: StartOptions) -> Result<RunningApp, StartError> {
        let StartOptions { config, file, clock, mut inherited } = start;
        let read = load_pack(&config).await?;
        reload::warn(
            reload::check_against_pack(&config, &read.facts(), file.as_deref())
                .map_err(StartError::Mismatch)?,
        );
        reload::check_parts(&config, file.as_deref()).map_err(StartError::Mismatch)?;
        let loaded = assemble::apply_settings(&config, read)?;
        let metrics = metrics::install();
        let store = open_store(&config, &clock).await?;
        let endpoint = endpoint(&config, &loaded)?;
        let registry = Registry::new(store.clone(), endpoint.clone());
        warn_of(registry.ensure(config.clients.iter().map(client_of).collect()).await?);
        // Sockets are passed on by a predecessor, which may still serve from this store. Without
        // them, a second gateway on one SQLite file is a mistake to report at once.
        let wait = if inherited.were_any() { config.limits.store_wait } else { Duration::ZERO };
        let tokens = open_tokens(&store, endpoint, wait).await?;

        let memory = assemble::memory(&config.limits);
        let limits = Arc::new(assemble::fit_to_memory(assemble::limits(&config.limits), &memory));
        let services = Services::new(&config, &limits, None)?;
        let (shadow, workers) = Shadow::start(store.clone(), assemble::shadow(&config.shadow)).await?;
        let phases = Phases::open(store.clone()).await?;
        let tables = assemble::tables(&config, &loaded);
        let program = assemble::program(&config, &loaded, &services, &tables)?;
        phases.serve(tables.into_iter().flatten().collect());
        phases.set_gate(config.gate.clone());
        let (usage, retirement) = (Usage::new(store.clone()), Retirement::new(store.clone()));
        retirement.serve(assemble::retirement_rules(&config, &loaded));
        retirement.sync().await?;
        let workbench = PlaygroundSession::new(assemble::playground_pack(&config, &loaded));
        let current: CurrentProgram = Arc::new(ArcSwap::from_pointee(program));
        let (detached, tap) = (TaskTracker::new(), Tap::default());
        let unknown = UnknownCalls::new(clock.clone());
        let parts = stack::StackParts {
            program: Arc::clone(&current),
            tokens: tokens.clone(),
            limits: Arc::clone(&limits),
            memory: memory.clone(),
            pseudonym: Pseudonym::default(),
            forwarding: assemble::forwarding(&config),
            retries: Budget::default(),
            store: store.clone(),
            clock: clock.clone(),
            detached: detached.clone(),
            tap: tap.clone(),
            shadow,
            unknown: unknown.clone(),
            usage: usage.clone(),
            retirement: retirement.clone(),
        };
        let certificate = config.tls.as_ref().map(|files| ServerCertificate::load(&tls_files(files)));
        let certificate = certificate.transpose()?;
        let tls = certificate.as_ref().map(ServerCertificate::acceptor).transpose()?;
        let (listeners, address) = bind(config.listen, tls, &mut inherited)?;
        let mut bind_admin = |key, address| bind_admin(key, address, &mut inherited);
        let (admin_listener, admin_address) = bind_admin("admin.listen", config.admin.listen)?;
        check_exposure(&config, admin_address)?;
        let health = config.health.map(|at| bind_admin("health.listen", at)).transpose()?;
        let callback = config.oauth.as_ref().and_then(|oauth| oauth.listen);
        let callback = callback.map(|at| bind_admin("oauth.listen", at)).transpose()?;
        let unclaimed = inherited.unclaimed_addresses();
        // An unclaimed socket would queue connections that are never accepted.
        if !unclaimed.is_empty() {
            return Err(StartError::PassedForNothing(unclaimed));
        }

        let now_ms = clock.unix_ms();
        metrics::config_reloaded(true, now_ms.div_euclid(1000));
        metrics::restart_pending(0);
        let certificates = reload::show_certificates(&config, certificate.as_ref(), &[]);
        let board: Board = Arc::new(ArcSwap::from_pointee(Status {
            config: config.masked.clone(),
            pack: PackStatus {
                name: loaded.pack.name.clone(),
                source: loaded.source,
                hash: loaded.hash,
                loaded_at: rfc3339(now_ms),
                generation: 1,
                last_reload: None,
            },
            shown: Some(Arc::clone(&loaded.shown)),
            before: None,
            certificates,
        }));
        let reload = Arc::new(Notify::new());
        let (drain_clients, drain_admin) = (Drain::new(), Drain::new());
        let admin = Admin::new(admin::AdminParts {
            metrics: metrics.clone(),
            registry: registry.clone(),
            tokens: tokens.clone(),
            phases: phases.clone(),
            archive: Archive::new(store.clone()),
            board: Arc::clone(&board),
            drain: drain_clients.clone(),
            reload: Arc::clone(&reload),
            tap,
            unknown,
            usage: usage.clone(),
            retirement: retirement.clone(),
            workbench: workbench.clone(),
            program: Arc::clone(&current),
            gate: ArcSwap::from_pointee(config.gate.clone()),
            clock: clock.clone(),
            store: store.clone(),
            access: admin_access(&config),
            hosts: admin_hosts(&config),
        });

        let descriptors = assemble::descriptors(&config)?;
        let options = assemble::listener_options(&config, &memory, descriptors);
        assemble::warn_of_descriptors(&config, &options);
        let events_shadow = Arc::new(ArcSwap::from_pointee(parts.shadow.clone()));
        let dual = EventsDual::new(store.clone(), Arc::clone(&events_shadow));
        let (intake, deliverer) = assemble::events(&config, &current, &store, &memory, &clock, dual)?;
        let admin_options = Arc::new(assemble::admin_options(&config.limits));
        let (cores, serve) = clients::serve(listeners, parts.clone(), intake, options, &drain_clients)
            .map_err(|error| StartError::Listen(LISTEN, address, error))?;
        let addresses = Addresses {
            clients: address,
            admin: admin_address,
            health: health.as_ref().map(|(_, address)| *address),
            callback: callback.as_ref().map(|(_, address)| *address),
        };
        let studio = admin.clone();
        let area = if callback.is_some() { Area::AllButCallback } else { Area::All };
        let apart = [(health, Area::Health), (callback, Area::Callback)];
        let apart = apart.into_iter().filter_map(|(bound, area)| Some((bound?.0, area)));
        let ports = std::iter::once((admin_listener, area)).chain(apart);
        let serving_admin = ports
            .map(|(listener, area)| {
                let (admin, options) = (admin.area(area), Arc::clone(&admin_options));
                tokio::spawn(server::serve(listener, admin, options, drain_admin.clone()))
            })
            .collect();

        let workers = Arc::new(Mutex::new(Some(workers)));
        let stopping = Arc::new(ArcSwap::from_pointee(Stopping::from_limits(&config.limits)));
        let reloader = Reloader {
            tried: reload::fingerprint(file.as_deref(), &config),
            watch: reload::watch(file.as_deref(), &config),
            gate: reload::gate(&config, &phases, &store, &clock),
            authority: reload::authority(&config, &loaded.pack),
            serve,
            parts,
            events_shadow,
            certificate,
            admin,
            workers: Arc::clone(&workers),
            stopping: Arc::clone(&stopping),
            admin_address,
            file,
            config,
            services,
            current: Arc::clone(&current),
            board: Arc::clone(&board),
            registry: registry.clone(),
            tokens: tokens.clone(),
            phases: phases.clone(),
            retirement: retirement.clone(),
            workbench,
            store: store.clone(),
            clock,
        };
        let mut background = vec![
            tokio::spawn(tokens.clone().run()),
            tokio::spawn(phases.clone().run()),
            tokio::spawn(retirement.run()),
            tokio::spawn(usage.clone().run()),
            tokio::spawn(reload_when_asked(reloader, Arc::clone(&reload))),
            tokio::spawn(keep_up(metrics)),
            tokio::spawn(studio.clone().watch()),
        ];
        background.extend(deliverer.clone().map(|deliverer| tokio::spawn(deliverer.run())));
        Ok(RunningApp {
            addresses,
            drain_clients,
            drain_admin,
            cores,
            admin: serving_admin,
            studio,
            detached,
            workers,
            stopping,
            background,
            reload,
            board,
            registry,
            tokens,
            usage,
            deliverer,
            store,
            current,
        })
    }

    /// Returns the bound addresses, with the actual port where port 0 was configured.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Requests a reload. The outcome is published on [`RunningApp::board`].
    pub fn reload(&self) {
        self.reload.notify_one();
    }

    /// Returns the status board: the served pack and the outcome of the last reload.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the registry of clients.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Reports the gateway as unready and closes connections as they become idle. Returns the time
    /// to wait before [`RunningApp::shutdown`].
    pub fn leave(&self) -> Duration {
        self.drain_clients.leave();
        self.stopping.load().delay
    }

    /// Shuts the gateway down. New connections are rejected, requests in flight have
    /// `limits.drain_timeout` to finish, and running token refreshes are stored before the store
    /// closes.
    pub async fn shutdown(mut self) -> Drained {
        // One deadline for requests, shadow and events: a service manager sets one timeout for the
        // process.
        let grace = self.stopping.load().grace;
        let end = Instant::now() + grace;
        self.drain_clients.leave();
        self.drain_clients.begin();
        let drained = self.cores.wait_drained().await;
        self.detached.close();
        if tokio::time::timeout_at(end, self.detached.wait()).await.is_err() {
            tracing::error!(requests = self.detached.len(), "requests with effects did not end in time");
        }
        // Abort reloads first: a reload could start workers that the steps below no longer stop.
        for task in &self.background {
            task.abort();
        }
        if let Some(workers) = self.workers.lock().await.take() {
            workers.stop(end.saturating_duration_since(Instant::now())).await;
        }
        if let Err(error) = self.usage.flush().await {
            tracing::warn!(%error, "the last calls are not counted");
        }
        self.studio.leave().await;
        // The full time again, not the rest: a spent refresh token without its stored successor is
        // lost.
        self.tokens.drain(grace).await;
        if let Some(deliverer) = &self.deliverer {
            deliverer.drain(end.saturating_duration_since(Instant::now())).await;
        }
        // Take the exporter from the current program: a reload may have replaced it.
        if let Some(traces) = self.current.load().traces().cloned() {
            traces.flush(TRACES_PATIENCE).await;
        }
        self.drain_admin.begin();
        for port in self.admin {
            if let Err(error) = port.await {
                tracing::error!(%error, "an admin port broke off");
            }
        }
        self.store.close().await;
        self.cores.join().await;
        drained
    }
}

/// Returns the phases that a configuration serves, for commands that work on the store next to a
/// running gateway.
pub async fn phases(config: &Config, store: Store, file: Option<PathBuf>) -> Result<Phases, StartError> {
    let read = load_pack(config).await?;
    reload::check_against_pack(config, &read.facts(), file.as_deref()).map_err(StartError::Mismatch)?;
    let loaded = assemble::apply_settings(config, read)?;
    let phases = Phases::open(store).await?;
    phases.serve(assemble::tables(config, &loaded).into_iter().flatten().collect());
    phases.set_gate(config.gate.clone());
    Ok(phases)
}

/// Returns the retirements of a configuration merged with those in the store, for commands that run
/// next to a gateway.
pub async fn retirement(
    config: &Config,
    store: Store,
    file: Option<PathBuf>,
) -> Result<Retirement, StartError> {
    let read = load_pack(config).await?;
    reload::check_against_pack(config, &read.facts(), file.as_deref()).map_err(StartError::Mismatch)?;
    let loaded = assemble::apply_settings(config, read)?;
    let retirement = Retirement::new(store);
    retirement.serve(assemble::retirement_rules(config, &loaded));
    retirement.sync().await?;
    Ok(retirement)
}

/// Returns the pack of a configuration and its settings, for commands that execute plans.
pub async fn pack_with_settings(
    config: &Config,
    file: Option<PathBuf>,
) -> Result<(Arc<switchback_plan::Pack>, Arc<switchback_engine::translate::Settings>), StartError> {
    let read = load_pack(config).await?;
    reload::check_against_pack(config, &read.facts(), file.as_deref()).map_err(StartError::Mismatch)?;
    let loaded = assemble::apply_settings(config, read)?;
    Ok((loaded.pack, loaded.settings))
}

/// Builds the endpoint of the authorization server. Sends no request.
fn endpoint(config: &Config, loaded: &pack::LoadedPack) -> Result<Option<TokenEndpoint>, StartError> {
    let oauth = config.oauth.as_ref().map(|oauth| assemble::oauth(oauth, &loaded.pack)).transpose()?;
    Ok(oauth.map(TokenEndpoint::new).transpose()?)
}

/// Opens the store. A database that does not answer yet is retried for `limits.store_wait`, since a
/// gateway and its database often start at the same time.
async fn open_store(config: &Config, clock: &Clock) -> Result<Store, StartError> {
    let keys = KeyRing::parse(&config.keys)?;
    let end = clock.elapsed().saturating_add(config.limits.store_wait);
    loop {
        let url = config.store.as_str();
        let error = match Store::open(url, keys.clone(), clock.clone(), MissingStore::Create).await {
            // An SQLite file is present or absent, so retrying is pointless. A database may still
            // start; a direct connection reports the cause more precisely than the pool.
            Err(error @ StoreError::Unavailable(_)) if !url.starts_with("sqlite:") => {
                store::reach(url).await.err().unwrap_or(error)
            }
            outcome => {
                return outcome.map_err(|error| StartError::OpenStore(config.store.to_masked(), error));
            }
        };
        if clock.elapsed() >= end {
            return Err(StartError::StoreAway(config.store.to_masked(), error));
        }
        tracing::warn!(%error, "the store does not answer; trying again before anything is served");
        clock.sleep(STORE_PAUSE).await;
    }
}

/// Opens the clients and grants. If another gateway still serves from the same SQLite file, waits
/// up to `wait` for it to exit: with socket activation the two overlap.
async fn open_tokens(
    store: &Store,
    endpoint: Option<TokenEndpoint>,
    wait: Duration,
) -> Result<Tokens, StoreError> {
    let end = store.clock().elapsed().saturating_add(wait);
    let mut is_told = false;
    loop {
        match Tokens::open(store.clone(), endpoint.clone(), token::RefreshSettings::default()).await {
            Err(StoreError::AlreadyServed(file)) if store.clock().elapsed() < end => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::info!(store = %file.display(), "waiting for the gateway that serves from this store to end");
                }
            }
            outcome => return outcome,
        }
    }
}

/// Logs configured clients that were not applied.
fn warn_of(left_alone: Vec<(String, Ensured)>) {
    for (client, why) in left_alone {
        match why {
            Ensured::Damaged => tracing::error!(
                client,
                "the stored row of a configured client was changed outside of Switchback; it is not used. Revoke the client \
                 and give it another name"
            ),
            _ => tracing::warn!(client, "a configured client is revoked and stays so"),
        }
    }
}

/// Returns the names of the pack's sides, old one first.
pub async fn sides(config: &Config) -> Result<[String; 2], StartError> {
    Ok(load_pack(config).await?.sides())
}

/// Returns the authorization server of a configuration with the request format of its pack, or
/// `None` without `oauth`.
pub async fn authorization_server(config: &Config) -> Result<Option<TokenEndpoint>, StartError> {
    if config.oauth.is_none() {
        return Ok(None);
    }
    let loaded = assemble::apply_settings(config, load_pack(config).await?)?;
    endpoint(config, &loaded)
}

async fn load_pack(config: &Config) -> Result<pack::ReadPack, StartError> {
    let folder = config.mapping.clone();
    // Compilation is CPU-bound and would block the runtime.
    let loaded = spawn_blocking(move || pack::load(folder.as_deref())).await;
    loaded.map_err(|_| StartError::Interrupted)?.map_err(StartError::Pack)
}

/// The configuration key of the client listener.
const LISTEN: &str = "listen";

/// Binds one client listener per core. Returns them with the actual address.
fn bind(
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    inherited: &mut Inherited,
) -> Result<(Vec<Bound>, SocketAddr), StartError> {
    let failed = |error| StartError::Listen(LISTEN, address, error);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let listeners = match inherited.claim(address) {
        Some(socket) => Bound::from_socket(socket, cores, tls),
        None => Bound::together(address, cores, tls),
    };
    let listeners = listeners.map_err(failed)?;
    let bound = listeners[0].address().map_err(failed)?;
    Ok((listeners, bound))
}

fn bind_admin(
    key: &'static str,
    address: SocketAddr,
    inherited: &mut Inherited,
) -> Result<(Listener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen(key, address, error);
    let listener = match inherited.claim(address) {
        Some(socket) => Listener::from_socket(socket),
        None => Listener::bind(address, None),
    };
    let listener = listener.map_err(failed)?;
    let bound = listener.address().map_err(failed)?;
    Ok((listener, bound))
}

/// Requires an admin token unless the bound address is loopback. The configured address was checked
/// earlier, but an inherited socket can be bound more widely.
fn check_exposure(config: &Config, bound: SocketAddr) -> Result<(), StartError> {
    match config.admin.token.is_none() && !bound.ip().to_canonical().is_loopback() {
        true => Err(StartError::AdminExposed(bound)),
        false => Ok(()),
    }
}

fn tls_files(files: &config::TlsFilesConfig) -> tls::TlsFiles {
    tls::TlsFiles { certificates: files.certificate.clone(), key: files.private_key.clone() }
}

/// Collects the access settings of the admin port.
fn admin_access(config: &Config) -> SessionPolicy {
    SessionPolicy {
        token: config.admin.token.clone(),
        read_token: config.admin.read_token.clone(),
        session: config.admin.session,
        session_max: config.admin.session_max,
        keys: config.keys.clone(),
    }
}

/// Returns the host names that the admin port accepts. Includes the host of `oauth.redirect_url`,
/// through which browsers reach the callback.
fn admin_hosts(config: &Config) -> Vec<String> {
    let callback = config.oauth.as_ref().and_then(|oauth| oauth.redirect_url.uri().host());
    config.admin.hosts.iter().cloned().chain(callback.map(str::to_ascii_lowercase)).collect()
}

/// Converts a configured client.
fn client_of(client: &config::ClientConfig) -> NewClient {
    let grant = client.grant.as_ref();
    let tokens = client.tokens.iter();
    let tokens =
        tokens.map(|(side, token)| NewToken { side: Some(side.value.clone()), token: Some(token.clone()) });
    let credentials = client.credentials.iter();
    let credentials =
        credentials.map(|(side, token)| NewCredential { side: side.value.clone(), token: token.clone() });
    NewClient {
        name: client.name.value.clone(),
        company: client.company.as_ref().map(|company| company.value.clone()),
        tokens: tokens.collect(),
        credentials: credentials.collect(),
        flow: grant.map_or_else(GrantFlow::default, |grant| grant.flow),
        app: grant.map(|grant| token::OAuthApp {
            id: grant.client_id.clone(),
            secret: grant.client_secret.clone(),
        }),
        refresh_token: grant.and_then(|grant| grant.refresh_token.clone()),
    }
}

async fn reload_when_asked(mut reloader: Reloader, asked: Arc<Notify>) {
    loop {
        tokio::select! {
            () = asked.notified() => reloader.reload().await,
            () = wait_for_change(reloader.watch.as_ref()) => reloader.reload_if_changed().await,
        }
    }
}

/// Waits for the next change of a watched file; pends forever without a watch.
async fn wait_for_change(watch: Option<&FolderWatch>) {
    match watch {
        Some(watch) => watch.wait_until_quiet().await,
        None => std::future::pending().await,
    }
}

async fn keep_up(metrics: metrics::Metrics) {
    loop {
        tokio::time::sleep(METRICS_UPKEEP).await;
        metrics.upkeep();
    }
}
