//! Builds a running gateway from a configuration. This is the only module that constructs and
//! connects the parts.
//!
//! Order matters in two places: a service is announced only once it works, and shutdown proceeds
//! from the listeners inwards.

mod admin_port;
mod announcements;
mod assemble;
pub mod builtin;
mod doctor;
mod examine;
mod notices;
mod pack;
mod recorded;
mod reload;
mod watch;

use crate::admin::{self, Board, PackStatus, ReloadRequest, ReloadRequests, SessionPolicy, Status};
use crate::config::{self, Config};
use crate::playground::PlaygroundSession;
pub use crate::studio::FORMS;
pub use admin_port::{Admin, Area};
use arc_swap::ArcSwap;
pub use assemble::service_address;
pub use doctor::{CheckState, DoctorCheck, diagnose};
pub use examine::{Examined, Try, examine};
pub use notices::notice_endpoints;
use pack::{LoadedPack, PackError};
pub(crate) use recorded::restore_pack;
pub use reload::TAKE_A_RESTART;
use reload::{Reloader, WatchedFiles};
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::clients;
use switchback_gateway::clock::{Clock, rfc3339};
use switchback_gateway::events::deliver::Deliverer;
use switchback_gateway::events::dual::EventsDual;
use switchback_gateway::http_client::HttpClientError;
use switchback_gateway::notices::{NoticeSender, NoticeWatch};
use switchback_gateway::proxy::stack::StackParts;
use switchback_gateway::proxy::upstream::UpstreamError;
use switchback_gateway::retire::Retirement;
use switchback_gateway::server::{self, Bound, CoreRuntimes, Drain, Drained, Inherited, Listener, Unclaimed};
use switchback_gateway::shadow::{self, Archive, Phases, keep_gate};
use switchback_gateway::store::seal::{KeyRing, SealError};
use switchback_gateway::store::{self, Ensured, GrantFlow, MissingStore, Store, StoreError};
use switchback_gateway::telemetry::metrics;
use switchback_gateway::telemetry::otlp::OtlpError;
use switchback_gateway::tls::{self, ServerCertificate, TlsError};
use switchback_gateway::token::{
    self, NewClient, NewCredential, NewToken, OAuthConfigError, Registry, RegistryError, TokenEndpoint,
};
use switchback_gateway::{BuildError, Gateway, GatewayBuilder, GatewayParts};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
pub(crate) use watch::FolderWatch;

/// Interval of the histogram upkeep. The recorder stores every sample until then.
const METRICS_UPKEEP: Duration = Duration::from_secs(1);
/// Time limit for the final trace export at shutdown.
const TRACES_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two attempts to open the store at start.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Why a gateway failed to start. The messages are written for operators.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The pack cannot be read or compiled, or its examples fail.
    #[error(transparent)]
    Pack(#[from] PackError),
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
    /// Another error of the builder. The check of the configuration against the pack finds these
    /// first.
    #[error(transparent)]
    Build(BuildError),
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
    /// The HTTP client for a receiver of notices cannot be built.
    #[error("notices: {0}")]
    Notices(HttpClientError),
    /// The runtime is shutting down.
    #[error("interrupted")]
    Interrupted,
}

impl From<BuildError> for StartError {
    fn from(error: BuildError) -> StartError {
        match error {
            BuildError::Upstream(name, error) => StartError::Upstream(name, error),
            BuildError::NoUpstream(name) => StartError::NoUpstream(name),
            BuildError::Client(error) => error.into(),
            BuildError::Store(error) => error.into(),
            BuildError::Shadow(error) => error.into(),
            error => StartError::Build(error),
        }
    }
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

/// The ports, their connections and the threads that serve clients.
struct Ports {
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
}

/// The parts of a running gateway that reloads update.
#[derive(Clone)]
struct Shared {
    admin: Admin,
    board: Board,
    registry: Registry,
    phases: Phases,
    workbench: PlaygroundSession,
    notices: NoticeSender,
    /// The workers that compare both sides.
    workers: Replaceable<shadow::Workers>,
    stopping: Arc<ArcSwap<Stopping>>,
}

/// A running gateway.
pub struct RunningApp {
    ports: Ports,
    shared: Shared,
    stack: StackParts,
    /// Delivers events; `None` without receivers.
    deliverer: Option<Deliverer>,
    /// Background tasks: reload, refresh, metrics upkeep, gate. Aborted once all requests have
    /// finished.
    background: Vec<JoinHandle<()>>,
    reload: ReloadRequests,
}

impl RunningApp {
    /// Starts all parts and returns once every listener accepts connections.
    pub async fn start(start: StartOptions) -> Result<RunningApp, StartError> {
        let StartOptions { config, file, clock, mut inherited } = start;
        let (mut loaded, warnings) = load(&config, file.as_deref()).await?;
        reload::warn(warnings);
        reload::check_parts(&config, file.as_deref())?;
        let metrics = metrics::install();
        // After the pack and the files were checked: waiting for a database can take `limits.store_wait`,
        // and a typing error should be reported before that.
        let store = open_store(&config, &clock).await?;
        let restored = store.restored_pack().await?;
        match recorded::load_restored(&config, file.as_deref(), &store, restored.as_ref(), &loaded.hash).await
        {
            Ok(Some((pack, warnings))) => {
                tracing::warn!(
                    pack = pack.hash,
                    instead_of = loaded.hash,
                    "a restored pack is in place of the one on disk"
                );
                reload::warn(warnings);
                loaded = pack;
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "the restored pack cannot serve; the one on disk does"),
        }
        recorded::record(&store, &loaded, "start");
        let endpoint = endpoint(&config, &loaded)?;
        let memory = assemble::memory(&config.limits);
        let limits = Arc::new(assemble::fit_to_memory(assemble::limits(&config.limits), &memory));
        let traces = assemble::traces(config.otlp.as_ref(), None)?;
        let tables = assemble::tables(&config, &loaded);
        let builder = Gateway::builder()
            .program(assemble::program(&config, &loaded, &limits, tables.clone(), traces))
            .authorization_server(endpoint)
            .store(store.clone())
            .memory(memory.clone())
            .forwarding(assemble::forwarding(&config))
            .count_usage()
            .sample_requests(assemble::bytes(config.admin.recent_requests_bytes))
            // Sockets are passed on by a predecessor, which may still serve from this store. Without
            // them, a second gateway on one SQLite file is a mistake to report at once.
            .predecessor_wait(if inherited.were_any() { config.limits.store_wait } else { Duration::ZERO });
        let builder = config.clients.iter().map(client_of).fold(builder, GatewayBuilder::enrol);
        let GatewayParts { stack, registry, upstreams, workers, skipped_clients, .. } =
            builder.open().await?;
        warn_of(skipped_clients);
        let phases = Phases::open(store.clone()).await?;
        phases.serve(tables.into_iter().flatten().collect());
        phases.set_policies(config.gate.clone(), config.phases.rollouts.clone());
        stack.migration.retirement.serve(assemble::retirement_rules(&config, &loaded));
        stack.migration.retirement.sync().await?;
        let workbench = PlaygroundSession::new(assemble::playground_pack(&config, &loaded));
        let certificate = config.tls.as_ref().map(|files| ServerCertificate::load(&tls_files(files)));
        let certificate = certificate.transpose()?;
        let tls = certificate.as_ref().map(ServerCertificate::acceptor).transpose()?;
        // Bound once pack, store and clients are ready, so that connections do not queue at a gateway that
        // cannot start.
        let listeners = Listeners::bind(&config, tls, &mut inherited)?;

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
                restored: loaded.restored.clone(),
            },
            shown: Some(Arc::clone(&loaded.shown)),
            before: None,
            certificates,
        }));
        let (reload, requested) = ReloadRequests::new();
        let (drain_clients, drain_admin) = (Drain::new(), Drain::new());
        let parts = admin::AdminParts {
            metrics: metrics.clone(),
            registry: registry.clone(),
            tokens: stack.tokens.clone(),
            phases: phases.clone(),
            archive: Archive::new(store.clone()),
            board: Arc::clone(&board),
            drain: drain_clients.clone(),
            reload: reload.clone(),
            tap: stack.recording.tap.clone(),
            requests: admin::RequestsView::new(stack.recording.recent.clone()),
            unknown: stack.migration.unknown.clone(),
            usage: stack.migration.usage.clone(),
            retirement: stack.migration.retirement.clone(),
            workbench: workbench.clone(),
            program: Arc::clone(&stack.program),
            clock: clock.clone(),
            store: store.clone(),
        };
        let admin = Admin::new(parts, &admin_access(&config), admin_hosts(&config));

        let descriptors = assemble::descriptors(&config)?;
        let options = assemble::listener_options(&config, &memory, descriptors);
        assemble::warn_of_descriptors(&config, &options);
        let dual = EventsDual::new(store.clone(), stack.migration.shadow.clone());
        let (intake, deliverer) = assemble::events(&config, &stack, &dual)?;
        let addresses = listeners.addresses();
        let (cores, serve) =
            clients::serve(listeners.clients, stack.clone(), intake, options, &drain_clients)
                .map_err(|error| StartError::Listen(LISTEN, addresses.clients, error))?;
        // The callback's own port exists so that the admin port need not be reachable for the owners of
        // clients.
        let area = if listeners.callback.is_some() { Area::AllButCallback } else { Area::All };
        let own = [(listeners.health, Area::Health), (listeners.callback, Area::Callback)];
        let own = own.into_iter().filter_map(|(bound, area)| Some((bound?, area)));
        let admin_options = Arc::new(assemble::admin_options(&config.limits));
        let serve_admin = |(bound, area): (AdminListener, Area)| {
            let (admin, options) = (admin.area(area), Arc::clone(&admin_options));
            tokio::spawn(server::serve(bound.listener, admin, options, drain_admin.clone()))
        };
        let serving_admin = std::iter::once((listeners.admin, area)).chain(own).map(serve_admin).collect();
        let ports = Ports { addresses, drain_clients, drain_admin, cores, admin: serving_admin };

        let notices =
            NoticeSender::new(store.clone(), notice_endpoints(&config.notices)?, config.notices.settings);
        // Before the tasks below start: their changes have notices.
        let watch =
            NoticeWatch::new(store.clone(), stack.migration.retirement.clone(), notices.clone()).await?;
        let watch = notices::keep_watch(watch, Arc::clone(&board), clock.clone());
        let shared = Shared {
            admin: admin.clone(),
            board,
            registry,
            phases: phases.clone(),
            workbench,
            notices: notices.clone(),
            workers: Arc::new(Mutex::new(Some(workers))),
            stopping: Arc::new(ArcSwap::from_pointee(Stopping::from_limits(&config.limits))),
        };
        let reloader = Reloader {
            files: WatchedFiles::new(file.as_deref(), &config),
            authority: reload::authority(&config, &loaded.pack),
            shared: shared.clone(),
            stack: stack.clone(),
            serve,
            upstreams,
            dual,
            certificate,
            admin_address: addresses.admin,
            file,
            config,
        };
        let mut background = vec![
            tokio::spawn(stack.tokens.clone().run()),
            tokio::spawn(keep_gate(phases.clone(), Archive::new(store.clone()))),
            tokio::spawn(phases.run()),
            tokio::spawn(stack.migration.retirement.clone().run()),
            tokio::spawn(stack.migration.usage.clone().run()),
            tokio::spawn(reload_when_requested(reloader, requested)),
            tokio::spawn(recorded::follow(store.clone(), reload.clone(), restored)),
            tokio::spawn(keep_up(metrics)),
            tokio::spawn(admin.watch()),
            tokio::spawn(watch),
        ];
        background.extend(deliverer.clone().map(|deliverer| tokio::spawn(deliverer.run())));
        Ok(RunningApp { ports, shared, stack, deliverer, background, reload })
    }

    /// Returns the bound addresses, with the actual port where port 0 was configured.
    pub fn addresses(&self) -> Addresses {
        self.ports.addresses
    }

    /// Requests a reload. The outcome is published on [`RunningApp::board`].
    pub fn reload(&self) {
        self.reload.ask("a signal");
    }

    /// Returns the status board: the served pack and the outcome of the last reload.
    pub fn board(&self) -> &Board {
        &self.shared.board
    }

    /// Returns the registry of clients.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// Reports the gateway as unready and closes connections as they become idle. Returns the time
    /// to wait before [`RunningApp::shutdown`].
    pub fn leave(&self) -> Duration {
        self.ports.drain_clients.leave();
        self.shared.stopping.load().delay
    }

    /// Shuts the gateway down. New connections are rejected, requests in flight have
    /// `limits.drain_timeout` to finish, and running token refreshes are stored before the store
    /// closes.
    pub async fn shutdown(mut self) -> Drained {
        // One deadline for requests, shadow and events: a service manager sets one timeout for the
        // process.
        let grace = self.shared.stopping.load().grace;
        let end = Instant::now() + grace;
        self.ports.drain_clients.leave();
        self.ports.drain_clients.begin();
        let drained = self.ports.cores.wait_drained().await;
        let stack = &self.stack;
        stack.detached.close();
        if tokio::time::timeout_at(end, stack.detached.wait()).await.is_err() {
            tracing::error!(requests = stack.detached.len(), "requests with effects did not end in time");
        }
        // Abort reloads first: a reload could start workers that the steps below no longer stop.
        for task in &self.background {
            task.abort();
        }
        if let Some(workers) = self.shared.workers.lock().await.take() {
            workers.stop(end.saturating_duration_since(Instant::now())).await;
        }
        if let Err(error) = stack.migration.usage.flush().await {
            tracing::warn!(%error, "the last calls are not counted");
        }
        // Before the store closes: other replicas read there that this one has left, and do not report it
        // as lost.
        self.shared.admin.leave().await;
        // The full time again, not the rest: a spent refresh token without its stored successor is
        // lost.
        stack.tokens.drain(grace).await;
        if let Some(deliverer) = &self.deliverer {
            deliverer.drain(end.saturating_duration_since(Instant::now())).await;
        }
        self.shared.notices.drain(end.saturating_duration_since(Instant::now())).await;
        // Take the exporter from the current program: a reload may have replaced it.
        if let Some(traces) = stack.program.load().traces().cloned() {
            traces.flush(TRACES_PATIENCE).await;
        }
        self.ports.drain_admin.begin();
        for port in self.ports.admin {
            if let Err(error) = port.await {
                tracing::error!(%error, "an admin port broke off");
            }
        }
        stack.store.close().await;
        // Last: joining stops all tasks that are still spawned on these threads.
        self.ports.cores.join().await;
        drained
    }
}

/// Returns the phases that a configuration serves, for commands that work on the store next to a
/// running gateway.
pub async fn phases(config: &Config, store: Store, file: Option<PathBuf>) -> Result<Phases, StartError> {
    let (loaded, _) = load(config, file.as_deref()).await?;
    let phases = Phases::open(store).await?;
    phases.serve(assemble::tables(config, &loaded).into_iter().flatten().collect());
    phases.set_policies(config.gate.clone(), config.phases.rollouts.clone());
    Ok(phases)
}

/// Returns the retirements of a configuration merged with those in the store, for commands that run
/// next to a gateway.
pub async fn retirement(
    config: &Config,
    store: Store,
    file: Option<PathBuf>,
) -> Result<Retirement, StartError> {
    let (loaded, _) = load(config, file.as_deref()).await?;
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
    let (loaded, _) = load(config, file.as_deref()).await?;
    Ok((loaded.pack, loaded.settings))
}

/// Returns a playground session with the pack of a configuration, for commands that render notices.
pub async fn playground(config: &Config, file: Option<PathBuf>) -> Result<PlaygroundSession, StartError> {
    let (loaded, _) = load(config, file.as_deref()).await?;
    Ok(PlaygroundSession::new(assemble::playground_pack(config, &loaded)))
}

/// Loads the pack of a configuration, checks both against each other and applies the settings. Also
/// returns the warnings.
async fn load(config: &Config, file: Option<&Path>) -> Result<(LoadedPack, Option<String>), StartError> {
    fit(config, file, load_pack(config).await?)
}

/// Checks a pack and a configuration against each other and applies the settings. Also returns the
/// warnings.
fn fit(
    config: &Config,
    file: Option<&Path>,
    read: pack::ReadPack,
) -> Result<(LoadedPack, Option<String>), StartError> {
    let warnings = reload::check_against_pack(config, &read.facts(), file)?;
    Ok((assemble::apply_settings(config, read)?, warnings))
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
        // Checked after the attempt, so that `store_wait: 0` still allows one.
        if clock.elapsed() >= end {
            return Err(StartError::StoreAway(config.store.to_masked(), error));
        }
        tracing::warn!(%error, "the store does not answer; trying again before anything is served");
        clock.sleep(STORE_PAUSE).await;
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
    Ok(loaded.map_err(|_| StartError::Interrupted)??)
}

/// The configuration key of the client listener.
const LISTEN: &str = "listen";

/// The bound ports.
struct Listeners {
    /// One per core.
    clients: Vec<Bound>,
    address: SocketAddr,
    admin: AdminListener,
    health: Option<AdminListener>,
    callback: Option<AdminListener>,
}

/// A port for operators, with its actual address.
struct AdminListener {
    listener: Listener,
    address: SocketAddr,
}

impl Listeners {
    fn bind(
        config: &Config,
        tls: Option<TlsAcceptor>,
        inherited: &mut Inherited,
    ) -> Result<Listeners, StartError> {
        let failed = |error| StartError::Listen(LISTEN, config.listen, error);
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        // A passed socket is one queue for all cores. Sockets bound here share the port, and the kernel
        // distributes connections among them.
        let clients = match inherited.claim(config.listen) {
            Some(socket) => Bound::from_socket(socket, cores, tls),
            None => Bound::together(config.listen, cores, tls),
        };
        let clients = clients.map_err(failed)?;
        let address = clients[0].address().map_err(failed)?;
        let admin = AdminListener::bind("admin.listen", config.admin.listen, inherited)?;
        check_exposure(config, admin.address)?;
        let mut bind = |key, address: Option<SocketAddr>| {
            address.map(|address| AdminListener::bind(key, address, inherited)).transpose()
        };
        let health = bind("health.listen", config.health)?;
        let callback = bind("oauth.listen", config.oauth.as_ref().and_then(|oauth| oauth.listen))?;
        let unclaimed = inherited.unclaimed_addresses();
        // An unclaimed socket would queue connections that are never accepted.
        if !unclaimed.is_empty() {
            return Err(StartError::PassedForNothing(unclaimed));
        }
        Ok(Listeners { clients, address, admin, health, callback })
    }

    fn addresses(&self) -> Addresses {
        Addresses {
            clients: self.address,
            admin: self.admin.address,
            health: self.health.as_ref().map(|bound| bound.address),
            callback: self.callback.as_ref().map(|bound| bound.address),
        }
    }
}

impl AdminListener {
    fn bind(
        key: &'static str,
        address: SocketAddr,
        inherited: &mut Inherited,
    ) -> Result<AdminListener, StartError> {
        let failed = |error| StartError::Listen(key, address, error);
        let listener = match inherited.claim(address) {
            Some(socket) => Listener::from_socket(socket),
            None => Listener::bind(address, None),
        };
        let listener = listener.map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        Ok(AdminListener { listener, address })
    }
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
    // Otherwise the protection against DNS rebinding would reject a browser on its way back from the
    // authorization server.
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
            credential: grant.credential.clone(),
        }),
        refresh_token: grant.and_then(|grant| grant.refresh_token.clone()),
    }
}

async fn reload_when_requested(mut reloader: Reloader, mut requests: mpsc::Receiver<ReloadRequest>) {
    loop {
        tokio::select! {
            // A request reloads unchanged files, too: it also fetches the authorization server's metadata
            // again.
            Some(request) = requests.recv() => reloader.run(request).await,
            () = wait_for_change(reloader.files.watch()) => reloader.reload_if_changed().await,
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
