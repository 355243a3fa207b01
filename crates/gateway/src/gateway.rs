//! The gateway for use in other programs: as a [`tower::Service`], or as a [`tower::Layer`] around
//! the service that it calls. The program `switchback` assembles the same parts itself, because it
//! also serves reloads, phases and the admin port, which exceed the scope of this builder.

use crate::body::Body;
use crate::clock::Clock;
use crate::error::ErrorSide;
use crate::memory::Memory;
use crate::proxy::calls::retry::Budget;
use crate::proxy::headers::Pseudonym;
use crate::proxy::limits::Limits;
use crate::proxy::origin::CallOrigin;
use crate::proxy::program::{Front, Program, UnknownClientPolicy};
use crate::proxy::side_upstreams::SideUpstreams;
use crate::proxy::stack::{self, StackParts};
use crate::proxy::unknown_calls::UnknownCalls;
use crate::proxy::upstream::{InnerService, Upstream, UpstreamError};
use crate::retire::{Retirement, Usage};
use crate::shadow::{self, Shadow};
use crate::store::seal::{KeyRing, SealingKey};
use crate::store::{MissingStore, Store, StoreError};
use crate::token::{self, NewClient, Registry, RegistryError, TokenEndpoint, Tokens};
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_engine::translate::Settings;
use switchback_plan::router::Router;
use switchback_plan::{Pack, SideId};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, Service, ServiceExt as _};

/// Answers requests of one API version by calling the other. Clones share clients, limits and
/// connections.
///
/// It accepts requests with any body of [`Bytes`] and never fails: errors become responses in the
/// pack's error format. Requests must carry `Host` and the path as sent by the client, including
/// the front's prefix.
///
/// # Examples
///
/// A gateway in front of an API at another address. It rejects clients without a token and makes no
/// call:
///
/// ```
/// use switchback_compiler::mapping::compile;
/// use switchback_compiler::mapping::load::PackSource;
/// use switchback_gateway::Gateway;
/// use switchback_gateway::body::Body;
/// use tower::ServiceExt as _;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mappings/ingress");
/// let pack = compile(&PackSource::from_dir(folder.as_ref())?).pack.ok_or("the pack has errors")?;
/// let gateway = Gateway::builder()
///     .pack(pack)
///     .front("/old", "v1beta1")
///     .upstream("v1", "https://api.example.com".parse()?)
///     .client("acme", "token-of-acme", [("v1", "token-for-the-api")])
///     .build()
///     .await?;
///
/// let request = http::Request::get("/old/apis/extensions/v1beta1/namespaces/cafe/ingresses/tea");
/// let answer = gateway.oneshot(request.header("host", "gateway.test").body(Body::empty())?).await?;
/// assert_eq!(answer.status(), 401);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway {
    stack: BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>,
    _running: Arc<Running>,
}

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
/// use switchback_gateway::proxy::limits::Limits;
/// use switchback_gateway::secret::Secret;
/// use switchback_gateway::store::seal::KeyRing;
/// use switchback_gateway::store::{MissingStore, Store};
/// use switchback_gateway::token::{OAuth, TokenEndpoint};
///
/// # async fn example(
/// #     pack: Arc<switchback_plan::Pack>,
/// # ) -> Result<Gateway, Box<dyn std::error::Error + Send + Sync>> {
/// let keys = KeyRing::parse(&[Secret::new(std::env::var("SEALING_KEY")?)])?;
/// let store = Store::open("sqlite:/var/lib/gateway.db", keys, Clock::machine(), MissingStore::Create).await?;
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
///     .limits(Limits { in_flight_max: 512, ..Limits::default() })
///     .build()
///     .await?;
/// # Ok(gateway)
/// # }
/// ```
#[derive(Default)]
pub struct GatewayBuilder {
    pack: Option<Arc<Pack>>,
    settings: Settings,
    fronts: Vec<(String, String)>,
    upstreams: Vec<(String, Uri)>,
    hosts: Vec<(String, String, Uri)>,
    clients: Vec<NewClient>,
    limits: Limits,
    store: Option<Store>,
    endpoint: Option<TokenEndpoint>,
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
    /// The address of this side is invalid.
    #[error("upstream `{0}`: {1}")]
    Upstream(String, #[source] UpstreamError),
    /// A client is invalid or cannot be registered.
    #[error(transparent)]
    Client(#[from] RegistryError),
    /// The store does not answer, or another gateway uses it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The temporary folder for the store cannot be created, or a thread cannot be started.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Gateway {
    /// Returns an empty builder. [`GatewayBuilder::pack`] and [`GatewayBuilder::front`] must be called; a service
    /// also needs [`GatewayBuilder::upstream`] for each side that receives calls.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::default()
    }
}

impl GatewayBuilder {
    /// Sets the compiled pack.
    #[must_use]
    pub fn pack(mut self, pack: Arc<Pack>) -> GatewayBuilder {
        self.pack = Some(pack);
        self
    }

    /// Sets values for the operator configuration that the pack reads (`$.config`). The defaults
    /// are the pack's.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> GatewayBuilder {
        self.settings = settings;
        self
    }

    /// Serves a side of the pack at a path prefix. The prefix starts with `/` and has no `/` at its
    /// end; an empty prefix is the root. Several fronts may be added.
    #[must_use]
    pub fn front(mut self, prefix: impl Into<String>, side: impl Into<String>) -> GatewayBuilder {
        self.fronts.push((prefix.into(), side.into()));
        self
    }

    /// Sets the address of a side's service: `http://` or `https://`, a host, and the base path of
    /// all operations. A later call for the same side replaces the earlier one. A
    /// [`layer`](GatewayBuilder::layer) needs no address, since it calls its inner service.
    #[must_use]
    pub fn upstream(mut self, side: impl Into<String>, address: Uri) -> GatewayBuilder {
        self.upstreams.push((side.into(), address));
        self
    }

    /// Sets the address of a host that the pack names for a side. The format is that of
    /// [`upstream`](GatewayBuilder::upstream).
    #[must_use]
    pub fn host(mut self, side: impl Into<String>, host: impl Into<String>, address: Uri) -> GatewayBuilder {
        self.hosts.push((side.into(), host.into(), address));
        self
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
        let credentials = credentials.into_iter().map(|(side, token)| token::NewCredential {
            side: side.to_owned(),
            token: token.to_owned().into(),
        });
        self.enrol(NewClient {
            name: name.to_owned(),
            company: None,
            tokens: vec![crate::secret::Secret::from(token).into()],
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
        self.limits = limits;
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
    pub fn authorization_server(mut self, endpoint: TokenEndpoint) -> GatewayBuilder {
        self.endpoint = Some(endpoint);
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
        let (addresses, hosts) = (self.upstreams.clone(), self.hosts.clone());
        let prepared = self.prepare().await?;
        let (limits, sides) = (&prepared.limits, &prepared.pack.sides);
        if let Some(name) = addresses
            .iter()
            .map(|(name, _)| name)
            .chain(hosts.iter().map(|(name, ..)| name))
            .find(|name| sides.iter().all(|side| side.name != **name))
        {
            return Err(prepared.unknown(name));
        }
        let upstream = |name: &str, address: &Uri| {
            let upstream = Upstream::new(name, CallOrigin::Client, address, Arc::clone(limits));
            upstream.map(Arc::new).map_err(|error| BuildError::Upstream(name.to_owned(), error))
        };
        let mut upstreams = [None, None];
        for side in SideId::BOTH {
            let switchback_plan::Side { name, hosts: named, .. } = &sides[side];
            if let Some((_, host, _)) = hosts.iter().find(|(of, host, _)| of == name && !named.contains(host))
            {
                return Err(BuildError::UnknownHost { side: name.clone(), host: host.clone() });
            }
            if let Some((_, address)) = addresses.iter().rev().find(|(given, _)| given == name) {
                let mut others = Vec::new();
                for host in named {
                    let given = hosts.iter().rev().find(|(of, given, _)| of == name && given == host);
                    let missing = || BuildError::NoHost { side: name.clone(), host: host.clone() };
                    let (_, _, address) = given.ok_or_else(missing)?;
                    others.push(upstream(&format!("{name}/{host}"), address)?);
                }
                upstreams[side] = Some(SideUpstreams::new(upstream(name, address)?, others));
            }
        }
        prepared.gateway(|side| {
            upstreams[side].clone().ok_or_else(|| BuildError::NoUpstream(sides[side].name.clone()))
        })
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
        Ok(GatewayLayer(Arc::new(self.prepare().await?)))
    }

    async fn prepare(self) -> Result<Prepared, BuildError> {
        let pack = self.pack.ok_or(BuildError::NoPack)?;
        if self.fronts.is_empty() {
            return Err(BuildError::NoFront);
        }
        let mut fronts = Vec::new();
        for (prefix, name) in self.fronts {
            if !prefix.is_empty() && (!prefix.starts_with('/') || prefix.ends_with('/')) {
                return Err(BuildError::Prefix(prefix));
            }
            let side = SideId::BOTH.into_iter().find(|side| pack.sides[*side].name == name);
            fronts.push((prefix, side.ok_or_else(|| unknown_side(&pack, &name))?));
        }
        let (store, folder) = match self.store {
            Some(store) => (store, None),
            None => {
                let folder = Folder::new()?;
                let url = format!("sqlite:{}", folder.0.join("store.db").display());
                let keys = KeyRing::parse(&[SealingKey::generate()]).expect("a key made here is one");
                (Store::open(&url, keys, Clock::machine(), MissingStore::Create).await?, Some(folder))
            }
        };
        Registry::new(store.clone(), self.endpoint.clone()).ensure(self.clients).await?;
        let tokens = Tokens::open(store.clone(), self.endpoint, token::RefreshSettings::default()).await?;
        let (shadow, workers) = match Shadow::start(store.clone(), shadow::ShadowSettings::default()).await {
            Ok(started) => started,
            Err(shadow::ShadowStartError::Store(error)) => return Err(error.into()),
            Err(shadow::ShadowStartError::Thread(error)) => return Err(error.into()),
        };
        let refreshing = tokio::spawn(tokens.clone().run());
        let running = Running { refreshing, _workers: workers, _folder: folder };
        Ok(Prepared {
            pack,
            settings: Arc::new(self.settings),
            fronts,
            limits: Arc::new(self.limits),
            tokens,
            store,
            shadow,
            running: Arc::new(running),
        })
    }
}

/// A configured gateway without its upstreams.
struct Prepared {
    pack: Arc<Pack>,
    settings: Arc<Settings>,
    fronts: Vec<(String, SideId)>,
    limits: Arc<Limits>,
    tokens: Tokens,
    store: Store,
    shadow: Shadow,
    running: Arc<Running>,
}

impl Prepared {
    fn gateway(
        &self,
        upstream: impl Fn(SideId) -> Result<SideUpstreams, BuildError>,
    ) -> Result<Gateway, BuildError> {
        let mut fronts = Vec::new();
        for (prefix, serves) in &self.fronts {
            fronts.push(Front {
                prefix: prefix.clone(),
                serves: *serves,
                router: Router::new(&self.pack.directions[*serves]),
                backend: upstream(serves.other())?,
                own: upstream(*serves).ok().filter(|own| !own.main().is_within()),
                unknown: UnknownClientPolicy::default(),
                beside: None,
                announcements: Vec::new(),
                phases: Arc::default(),
            });
        }
        let program = Program::new(Arc::clone(&self.pack), Arc::clone(&self.settings), fronts);
        let stack = stack::stack(StackParts {
            program: Arc::new(ArcSwap::from_pointee(program)),
            tokens: self.tokens.clone(),
            limits: Arc::clone(&self.limits),
            memory: Memory::new(u64::MAX),
            pseudonym: Pseudonym::default(),
            retries: Budget::default(),
            store: self.store.clone(),
            clock: self.store.clock().clone(),
            detached: TaskTracker::new(),
            tap: Default::default(),
            shadow: self.shadow.clone(),
            unknown: UnknownCalls::new(self.store.clock().clone()),
            usage: Usage::off(),
            retirement: Retirement::new(self.store.clone()),
            forwarding: Default::default(),
        });
        Ok(Gateway { stack: BoxCloneSyncService::new(stack), _running: Arc::clone(&self.running) })
    }

    fn unknown(&self, name: &str) -> BuildError {
        unknown_side(&self.pack, name)
    }

    /// Returns whether a front serves this path.
    fn is_ours(&self, path: &str) -> bool {
        self.fronts
            .iter()
            .any(|(prefix, _)| path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('/')))
    }
}

fn unknown_side(pack: &Pack, name: &str) -> BuildError {
    let sides = SideId::BOTH.map(|side| pack.sides[side].name.clone());
    BuildError::UnknownSide { name: name.to_owned(), sides }
}

/// Background tasks and temporary data, stopped and removed with the last clone.
struct Running {
    refreshing: JoinHandle<()>,
    _workers: shadow::Workers,
    _folder: Option<Folder>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.refreshing.abort();
    }
}

/// A temporary folder for the default store, removed on drop.
struct Folder(PathBuf);

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

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl fmt::Debug for GatewayLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayLayer").field("fronts", &self.0.fronts).finish_non_exhaustive()
    }
}

impl<B> Service<Request<B>> for Gateway
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.stack.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.stack.call(request.map(|body| Body::wrap(body, ErrorSide::Client)))
    }
}

/// A gateway around a service that it calls. Created by [`GatewayBuilder::layer`].
///
/// Requests below a front are translated, and the resulting calls run directly on the inner
/// service, without a socket. All other requests reach the inner service unchanged.
///
/// # Examples
///
/// A service that implements the new version answers a client of the old one:
///
/// ```
/// use http::{Request, Response};
/// use std::convert::Infallible;
/// use switchback_compiler::mapping::compile;
/// use switchback_compiler::mapping::load::PackSource;
/// use switchback_gateway::Gateway;
/// use switchback_gateway::body::Body;
/// use tower::{Layer as _, ServiceExt as _, service_fn};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let api = service_fn(|call: Request<Body>| async move {
///     assert_eq!(call.uri().path(), "/apis/networking.k8s.io/v1/namespaces/cafe/ingresses/tea");
///     let ingress = r#"{
///         "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "tea"},
///         "spec": {"defaultBackend": {"service": {"name": "tea", "port": {"number": 80}}}}
///     }"#;
///     let answer = Response::builder().header("content-type", "application/json");
///     Ok::<_, Infallible>(answer.body(Body::full(ingress)).expect("these are header fields"))
/// });
///
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mappings/ingress");
/// let pack = compile(&PackSource::from_dir(folder.as_ref())?).pack.ok_or("the pack has errors")?;
/// let gateway = Gateway::builder()
///     .pack(pack)
///     .front("/old", "v1beta1")
///     .client("acme", "token-of-acme", [("v1", "token-for-the-api")])
///     .layer()
///     .await?;
/// let both = gateway.layer(api);
///
/// let request = Request::get("/old/apis/extensions/v1beta1/namespaces/cafe/ingresses/tea")
///     .header("host", "gateway.test")
///     .header("authorization", "Bearer token-of-acme")
///     .body(Body::empty())?;
/// let answer = both.oneshot(request).await?;
/// assert_eq!(answer.status(), 200);
/// let body = axum::body::to_bytes(axum::body::Body::new(answer.into_body()), 1 << 20).await?;
/// assert!(body.windows(18).any(|text| text == b"extensions/v1beta1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GatewayLayer(Arc<Prepared>);

impl<S, B> Layer<S> for GatewayLayer
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Service = Layered<S>;

    fn layer(&self, inner: S) -> Layered<S> {
        let called = inner.clone().map_err(Into::into).map_response(upstream_answer);
        let limits = Arc::clone(&self.0.limits);
        let upstream = Arc::new(Upstream::in_process("inner", InnerService::new(called), limits));
        let gateway = self.0.gateway(|_| Ok(SideUpstreams::of_all(Arc::clone(&upstream))));
        let gateway = gateway.expect("calls of either side have somewhere to go");
        Layered { gateway, inner, prepared: Arc::clone(&self.0) }
    }
}

fn upstream_answer<B>(answer: Response<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    answer.map(|body| Body::wrap(body, ErrorSide::Upstream))
}

/// A service with a gateway around it.
#[derive(Clone)]
pub struct Layered<S> {
    gateway: Gateway,
    inner: S,
    prepared: Arc<Prepared>,
}

impl<S: fmt::Debug> fmt::Debug for Layered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, A, B> Service<Request<A>> for Layered<S>
where
    S: Service<Request<Body>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
    A: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        // The request decides which of the two services must be ready, so `call` awaits readiness.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let request = request.map(|body| Body::wrap(body, ErrorSide::Client));
        if self.prepared.is_ours(request.uri().path()) {
            let answering = self.gateway.clone().oneshot(request);
            return Box::pin(async move {
                let Ok(answer) = answering.await;
                Ok(answer)
            });
        }
        let answering = self.inner.clone().oneshot(request);
        Box::pin(async move { answering.await.map(upstream_answer) })
    }
}
