//! Constructs a gateway from its settings. Each part is constructed here and nowhere else; the
//! program `switchback` uses the same builder and adds listeners, phases and reloads.

use super::program::{FrontSettings, ProgramSettings, ServiceSettings, Upstreams};
use super::{Gateway, GatewayLayer, Prepared, Running};
use crate::capture::Tap;
use crate::clock::Clock;
use crate::memory::Memory;
use crate::proxy::calls::retry::Budget;
use crate::proxy::forwarding::Forwarding;
use crate::proxy::headers::Pseudonym;
use crate::proxy::limits::Limits;
use crate::proxy::program::Program;
use crate::proxy::stack::{MigrationParts, RecordingParts, StackParts};
use crate::proxy::unknown_calls::UnknownCalls;
use crate::proxy::upstream::UpstreamError;
use crate::recent::RecentRequests;
use crate::retire::{Retirement, Usage};
use crate::secret::Secret;
use crate::shadow::{Shadow, ShadowStartError, Workers};
use crate::store::seal::{KeyRing, SealingKey};
use crate::store::{Ensured, MissingStore, Store, StoreError};
use crate::tls::ServiceTls;
use crate::token::{
    NewClient, NewCredential, RefreshSettings, Registry, RegistryError, TokenEndpoint, Tokens,
};
use arc_swap::ArcSwap;
use http::Uri;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::translate::Settings;
use switchback_plan::Pack;
use tokio_util::task::TaskTracker;

/// A builder of a [`Gateway`] or a [`GatewayLayer`]. Created by [`Gateway::builder`].
///
/// # Examples
///
/// A gateway that stores clients and their grants in a file, refreshes grants, and lowers the limit
/// on concurrent requests:
///
/// ```no_run
/// use std::sync::Arc;
/// use switchback_gateway::Gateway;
/// use switchback_gateway::clock::Clock;
/// use switchback_gateway::proxy::limits::{Limits, RequestLimits};
/// use switchback_gateway::secret::Secret;
/// use switchback_gateway::store::seal::KeyRing;
/// use switchback_gateway::store::{MissingStore, Store};
/// use switchback_gateway::token::{OAuth, TokenEndpoint};
///
/// # async fn example(
/// #     pack: Arc<switchback_plan::Pack>,
/// # ) -> Result<Gateway, Box<dyn std::error::Error + Send + Sync>> {
/// let keys = KeyRing::parse(&[Secret::new(std::env::var("SEALING_KEY")?)])?;
/// let file = "sqlite:/var/lib/gateway.db";
/// let store = Store::open(file, keys, Clock::machine(), MissingStore::Create).await?;
/// let server = TokenEndpoint::new(OAuth::at(
///     "https://login.example.com/authorize".parse()?,
///     "https://login.example.com/token".parse()?,
///     "https://gateway.example.com/callback".parse()?,
/// ))?;
/// let gateway = Gateway::builder()
///     .pack(pack)
///     .front("/v1", "v1")
///     .upstream("v2", "https://api.example.com/v2".parse()?)
///     .store(store)
///     .authorization_server(server)
///     .limits(Limits {
///         requests: RequestLimits { in_flight_max: 512, ..RequestLimits::default() },
///         ..Limits::default()
///     })
///     .build()
///     .await?;
/// # Ok(gateway)
/// # }
/// ```
#[derive(Default)]
pub struct GatewayBuilder {
    program: ProgramSettings,
    clients: Vec<NewClient>,
    store: Option<Store>,
    endpoint: Option<TokenEndpoint>,
    memory: Option<Memory>,
    forwarding: Forwarding,
    counts_usage: bool,
    recent_bytes_max: usize,
    predecessor_wait: Duration,
}

/// An error that prevents building a gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// [`GatewayBuilder::pack`] was not called.
    #[error("a gateway needs a pack: call `pack`")]
    NoPack,
    /// [`GatewayBuilder::front`] was not called.
    #[error("a gateway needs a path prefix at which clients speak one side: call `front`")]
    NoFront,
    /// The pack has no side of this name.
    #[error("the pack has no side `{name}`; its sides are `{}` and `{}`", .sides[0], .sides[1])]
    UnknownSide {
        /// The name passed to the builder.
        name: String,
        /// The pack's sides.
        sides: [String; 2],
    },
    /// A prefix does not start with `/`, or has a `/` at its end.
    #[error("the prefix `{0}` must begin with `/` and not end with it, or be empty")]
    Prefix(String),
    /// Calls of this side have no upstream address.
    #[error("calls go to side `{0}`, which has no address: call `upstream`")]
    NoUpstream(String),
    /// A host of this side has no address.
    #[error("the pack names the host `{host}` of `{side}`, which has no address: call `host`")]
    NoHost {
        /// The side's name.
        side: String,
        /// The host's name in the pack.
        host: String,
    },
    /// The pack names no such host.
    #[error("the pack names no host `{host}` of `{side}`")]
    UnknownHost {
        /// The side's name.
        side: String,
        /// The name passed to the builder.
        host: String,
    },
    /// The side has no such operation.
    #[error("`{side}` has no operation `{operation}` to limit")]
    UnknownOperation {
        /// The side's name.
        side: String,
        /// The operation of [`FrontSettings::operation_limits`].
        operation: String,
    },
    /// The address of this side is invalid.
    #[error("upstream `{0}`: {1}")]
    Upstream(String, #[source] UpstreamError),
    /// A client is invalid or cannot be registered.
    #[error(transparent)]
    Client(#[from] RegistryError),
    /// The store does not answer, or another gateway uses it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The shadow cannot read its learned noise or start its thread.
    #[error(transparent)]
    Shadow(#[from] ShadowStartError),
    /// The temporary folder for the store cannot be created.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl GatewayBuilder {
    /// Sets the compiled pack.
    #[must_use]
    pub fn pack(mut self, pack: Arc<Pack>) -> GatewayBuilder {
        self.program.pack = Some(pack);
        self
    }

    /// Sets values for the operator configuration that the pack reads (`$.config`). The defaults
    /// are the pack's.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> GatewayBuilder {
        self.program.settings = Arc::new(settings);
        self
    }

    /// Serves a side of the pack at a path prefix. The prefix starts with `/` and has no `/` at its
    /// end; an empty prefix is the root. Several fronts may be added.
    #[must_use]
    pub fn front(mut self, prefix: impl Into<String>, side: impl Into<String>) -> GatewayBuilder {
        let (prefix, side) = (prefix.into(), side.into());
        self.program.fronts.push(FrontSettings { prefix, side, ..FrontSettings::default() });
        self
    }

    /// Sets the address of a side's service: `http://` or `https://`, a host, and the base path of
    /// all operations. A later call for the same side replaces the earlier one. A
    /// [`layer`](GatewayBuilder::layer) needs no address, since it calls its inner service.
    #[must_use]
    pub fn upstream(mut self, side: impl Into<String>, address: Uri) -> GatewayBuilder {
        let tls = ServiceTls::default();
        self.program.services.push(ServiceSettings { name: side.into(), address, tls, sign: None });
        self
    }

    /// Sets the address of a host that the pack names for a side. The format is that of
    /// [`upstream`](GatewayBuilder::upstream).
    #[must_use]
    pub fn host(self, side: impl Into<String>, host: impl Into<String>, address: Uri) -> GatewayBuilder {
        self.upstream(format!("{}/{}", side.into(), host.into()), address)
    }

    /// Adds a client: its name in logs and metrics, the token that authenticates it, and for each
    /// side the token of its upstream calls. A name has 1 to 64 characters of `a-z A-Z 0-9 . _ -`,
    /// a token 8 to 4096 visible ASCII characters.
    #[must_use]
    pub fn client<'a>(
        self,
        name: &str,
        token: &str,
        credentials: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> GatewayBuilder {
        let credentials = credentials
            .into_iter()
            .map(|(side, token)| NewCredential { side: side.to_owned(), token: token.to_owned().into() });
        self.enrol(NewClient {
            name: name.to_owned(),
            company: None,
            tokens: vec![Secret::from(token).into()],
            credentials: credentials.collect(),
            flow: Default::default(),
            app: None,
            refresh_token: None,
        })
    }

    /// Adds a client with all settings.
    #[must_use]
    pub fn enrol(mut self, client: NewClient) -> GatewayBuilder {
        self.clients.push(client);
        self
    }

    /// Sets the limits of the data path: bytes, counts and times. The default is
    /// [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> GatewayBuilder {
        self.program.limits = Arc::new(limits);
        self
    }

    /// Sets the store for clients and their grants. The default is a temporary store that is
    /// deleted with the gateway. That suffices for fixed tokens, but a refreshed grant is lost with
    /// it.
    #[must_use]
    pub fn store(mut self, store: Store) -> GatewayBuilder {
        self.store = Some(store);
        self
    }

    /// Sets the authorization server that refreshes grants.
    #[must_use]
    pub fn authorization_server(mut self, endpoint: impl Into<Option<TokenEndpoint>>) -> GatewayBuilder {
        self.endpoint = endpoint.into();
        self
    }

    /// Sets everything that the program is built from. A program that reloads builds the next one
    /// from new settings with [`ProgramSettings::program`].
    #[must_use]
    pub fn program(mut self, settings: ProgramSettings) -> GatewayBuilder {
        self.program = settings;
        self
    }

    /// Sets the memory budget. The default is unlimited.
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> GatewayBuilder {
        self.memory = Some(memory);
        self
    }

    /// Sets the forwarding headers of calls, and the trusted proxies.
    #[must_use]
    pub fn forwarding(mut self, forwarding: Forwarding) -> GatewayBuilder {
        self.forwarding = forwarding;
        self
    }

    /// Counts the calls of each client in the store. The caller runs [`Usage::run`].
    #[must_use]
    pub fn count_usage(mut self) -> GatewayBuilder {
        self.counts_usage = true;
        self
    }

    /// Samples recent requests in memory, up to this number of bytes. The default is not to.
    #[must_use]
    pub fn sample_requests(mut self, bytes_max: usize) -> GatewayBuilder {
        self.recent_bytes_max = bytes_max;
        self
    }

    /// Sets how long to wait for another gateway that still serves from the same SQLite file: with
    /// socket activation the two overlap. The default is not to wait.
    #[must_use]
    pub fn predecessor_wait(mut self, wait: Duration) -> GatewayBuilder {
        self.predecessor_wait = wait;
        self
    }

    /// Builds the gateway as a service. It refreshes grants in the background until its last clone
    /// is dropped.
    ///
    /// # Errors
    /// A setting is missing or does not match the pack, or the store cannot be used.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn build(self) -> Result<Gateway, BuildError> {
        let (stack, running) = Running::start(self.open().await?);
        Ok(Gateway::new(stack, running))
    }

    /// Builds the gateway as a layer: requests below a front become calls of the inner service, and
    /// all others are forwarded to it unchanged. The layer refreshes grants in the background until
    /// it and all of its services are dropped.
    ///
    /// # Errors
    /// A setting is missing or does not match the pack, or the store cannot be used.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn layer(self) -> Result<GatewayLayer, BuildError> {
        self.program.check()?;
        let (pack, values) = (Arc::clone(self.program.pack()?), Arc::clone(&self.program.settings));
        let settings = self.program.clone();
        // Each inner service gets a program of its own.
        let parts = self.open_with(Program::new(pack, values, Vec::new()), Upstreams::default()).await?;
        let (stack, running) = Running::start(parts);
        Ok(GatewayLayer(Arc::new(Prepared { settings, stack, running })))
    }

    /// Opens the parts of the gateway without serving them, for a program with listeners of its own
    /// ([`crate::clients::serve`]). The caller runs the background tasks: [`Tokens::run`],
    /// [`Retirement::run`] and [`Usage::run`].
    ///
    /// # Errors
    /// A setting is missing or does not match the pack, or the store cannot be used.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn open(self) -> Result<GatewayParts, BuildError> {
        let upstreams = self.program.connect(&Upstreams::default())?;
        let program = self.program.program(&upstreams)?;
        self.open_with(program, upstreams).await
    }

    async fn open_with(self, program: Program, upstreams: Upstreams) -> Result<GatewayParts, BuildError> {
        let (store, folder) = match self.store {
            Some(store) => (store, None),
            None => {
                let folder = Folder::new()?;
                let url = format!("sqlite:{}", folder.0.join("store.db").display());
                let keys = KeyRing::parse(&[SealingKey::generate()]).expect("a key made here is one");
                (Store::open(&url, keys, Clock::machine(), MissingStore::Create).await?, Some(folder))
            }
        };
        let clock = store.clock().clone();
        let registry = Registry::new(store.clone(), self.endpoint.clone());
        let skipped_clients = registry.ensure(self.clients).await?;
        let tokens = open_tokens(&store, self.endpoint, self.predecessor_wait).await?;
        let shadow = self.program.dual.map(|dual| dual.shadow).unwrap_or_default();
        let (shadow, workers) = Shadow::start(store.clone(), shadow).await?;
        let stack = StackParts {
            program: Arc::new(ArcSwap::from_pointee(program)),
            tokens,
            limits: self.program.limits,
            memory: self.memory.unwrap_or_else(|| Memory::new(u64::MAX)),
            pseudonym: Pseudonym::default(),
            forwarding: self.forwarding,
            retries: Budget::default(),
            detached: TaskTracker::new(),
            recording: RecordingParts {
                tap: Tap::default(),
                recent: RecentRequests::new(self.recent_bytes_max, clock.clone()),
            },
            migration: MigrationParts {
                shadow,
                unknown: UnknownCalls::new(clock.clone()),
                usage: if self.counts_usage { Usage::new(store.clone()) } else { Usage::off() },
                retirement: Retirement::new(store.clone()),
            },
            store,
            clock,
        };
        Ok(GatewayParts { stack, registry, upstreams, workers, skipped_clients, folder })
    }
}

/// The parts of an opened gateway. Created by [`GatewayBuilder::open`].
pub struct GatewayParts {
    /// The input of the stack.
    pub stack: StackParts,
    /// Manages clients at run time.
    pub registry: Registry,
    /// The connected services, which the next program can reuse.
    pub upstreams: Upstreams,
    /// The workers of the shadow. They stop when dropped.
    pub workers: Workers,
    /// Clients that were not applied, and why.
    pub skipped_clients: Vec<(String, Ensured)>,
    /// Holds the default store.
    pub(super) folder: Option<Folder>,
}

/// Opens the clients and grants.
async fn open_tokens(
    store: &Store,
    endpoint: Option<TokenEndpoint>,
    wait: Duration,
) -> Result<Tokens, StoreError> {
    let end = store.clock().elapsed().saturating_add(wait);
    let mut is_logged = false;
    loop {
        match Tokens::open(store.clone(), endpoint.clone(), RefreshSettings::default()).await {
            Err(StoreError::AlreadyServed(file)) if store.clock().elapsed() < end => {
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::info!(store = %file.display(), "waiting for the gateway that uses this store to exit");
                }
            }
            outcome => return outcome,
        }
    }
}

/// A temporary folder for the default store, removed on drop.
pub(super) struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        let name = format!("switchback-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
