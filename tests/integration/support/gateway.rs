//! A gateway that serves the pack of things on a port of its own, with one client, `acme`, with the
//! token [`TOKEN`].

use super::peers::Wire;
use super::raw::{Act, Upstream};
use super::{pack, tls};
use arc_swap::ArcSwap;
use std::net::SocketAddr;
use std::sync::Arc;
use switchback_engine::translate::Settings;
use switchback_gateway::clock::Clock;
use switchback_gateway::memory::Memory;
use switchback_gateway::proxy::calls::retry::Budget;
use switchback_gateway::proxy::forwarding::Forwarding;
use switchback_gateway::proxy::headers::Pseudonym;
use switchback_gateway::proxy::limits::{FrontLimits, Limits};
use switchback_gateway::proxy::origin::CallOrigin;
use switchback_gateway::proxy::program::{Front, Program, UnknownClientPolicy};
use switchback_gateway::proxy::side_upstreams::SideUpstreams;
use switchback_gateway::proxy::stack::{self, MigrationParts, RecordingParts, StackParts};
use switchback_gateway::proxy::unknown_calls::UnknownCalls;
use switchback_gateway::proxy::upstream;
use switchback_gateway::proxy::{Request, Response};
use switchback_gateway::retire::{Retirement, Usage};
use switchback_gateway::secret::Secret;
use switchback_gateway::server::{self, Drain, Drained, Listener};
use switchback_gateway::shadow::{self, OperationTable, Phase, Served, Shadow};
use switchback_gateway::store::seal::{KeyRing, SealingKey};
use switchback_gateway::store::{MissingStore, Store};
use switchback_gateway::telemetry::log::{self, LogSettings};
use switchback_gateway::tls::ServiceTls;
use switchback_gateway::token::{NewClient, OAuth, OAuthApp, Registry, TokenEndpoint, Tokens};
use switchback_plan::router::Router;
use switchback_plan::{Effect, Pack, Route, SideId};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;
use tower::ServiceBuilder;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;

/// The token of `acme` at the gateway.
pub const TOKEN: &str = "old-token-of-acme";

/// How a gateway of a test differs from the default.
#[derive(Default)]
pub struct Setup {
    pub limits: Limits,
    /// The protocol of calls to services.
    pub wire: Wire,
    pub options: server::ServerOptions,
    /// Where the old service lives, if it does.
    pub old: Option<SocketAddr>,
    /// The policy for requests of unknown clients and operations.
    pub unknown: UnknownClientPolicy,
    /// The policy for `X-Forwarded-*` in forwarded requests.
    pub forwarding: Forwarding,
    /// The phase of every operation.
    pub phase: Phase,
    /// The secondary account of `acme`.
    pub account: Option<String>,
    pub tls: Option<TlsAcceptor>,
    /// The time limit of requests; unlimited if absent.
    pub memory: Option<Memory>,
    /// The answer of the authorization server to the second refresh.
    pub refresh: Option<Act>,
    /// A tower layer within the stack.
    pub layer: Option<Own>,
}

/// Layers of tower's, as a stack may have them.
pub enum Own {
    /// So many requests at one time; others wait.
    Waiting(usize),
    /// So many requests at one time; others are refused.
    Shedding(usize),
    /// Panics when it gets a request.
    PanickingOnRequest,
    /// Panics when it gets an answer.
    PanickingOnAnswer,
}

/// A running gateway.
pub struct Gateway {
    pub address: SocketAddr,
    pub drain: Drain,
    pub detached: TaskTracker,
    pub unknown: UnknownCalls,
    /// The authorization server, which gives `new-token-1`, then `new-token-2`.
    authorization: Upstream,
    serving: JoinHandle<Drained>,
    _workers: shadow::Workers,
    _folder: TempDir,
}

impl Gateway {
    /// A gateway with default limits in front of `new`.
    pub async fn before(new: &Upstream) -> Gateway {
        Gateway::with(Setup::default(), new).await
    }

    /// Starts a gateway in front of `new`, with the protocol of that.
    pub async fn with(setup: Setup, new: &Upstream) -> Gateway {
        Gateway::start(new.address, Setup { wire: new.wire, ..setup }).await
    }

    /// A gateway that serves the pack of things.
    pub async fn start(new: SocketAddr, setup: Setup) -> Gateway {
        let authorization =
            Upstream::start(vec![granted(1), setup.refresh.unwrap_or_else(|| granted(2))]).await;
        // Silent unless `SWITCHBACK_LOG` is set.
        log::init(&LogSettings { filter: "off".into(), ..LogSettings::default() });
        let folder = tempfile::tempdir().unwrap();
        let (store, tokens) = enrolled(&folder, authorization.address, setup.account).await;
        let (shadow, workers) =
            Shadow::start(store.clone(), shadow::ShadowSettings::default()).await.unwrap();
        let limits = Arc::new(setup.limits);
        let upstream = |name: &str, (address, path): (SocketAddr, &str)| {
            let scheme = if setup.wire == Wire::Plain { "http" } else { "https" };
            let url = format!("{scheme}://{address}{path}").parse().unwrap();
            let tls = ServiceTls { authorities: Some(tls::upstream_certificate()), ..ServiceTls::default() };
            Arc::new(
                upstream::Upstream::with_tls(name, CallOrigin::Client, &url, &tls, limits.upstream).unwrap(),
            )
        };
        let pack = Arc::new(pack::things());
        let front = Front {
            prefix: "/old".into(),
            serves: SideId::OLD,
            router: Router::new(&pack.directions[0]),
            backend: SideUpstreams::new(upstream("new", (new, "/new")), []),
            own: setup.old.map(|old| SideUpstreams::new(upstream("old", (old, "/base")), [])),
            unknown: setup.unknown,
            beside: None,
            announcements: Vec::new(),
            cors: None,
            limits: FrontLimits::new(limits.operation_limits(), []),
            phases: Arc::new(OperationTable::new(
                "old",
                "",
                pack_served(&pack, setup.phase, setup.old.is_some()),
            )),
        };
        let detached = TaskTracker::new();
        let unknown = UnknownCalls::new(Clock::machine());
        let program = Program::new(pack, Arc::new(Settings::default()), vec![front]);
        let parts = StackParts {
            program: Arc::new(ArcSwap::from_pointee(program)),
            tokens,
            limits,
            memory: setup.memory.unwrap_or_else(|| Memory::new(u64::MAX)),
            pseudonym: Pseudonym::default(),
            forwarding: setup.forwarding,
            retries: Budget::default(),
            migration: MigrationParts {
                shadow,
                unknown: unknown.clone(),
                usage: Usage::off(),
                retirement: Retirement::new(store.clone()),
            },
            store,
            clock: Clock::machine(),
            detached: detached.clone(),
            recording: RecordingParts::default(),
        };
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), setup.tls).unwrap();
        let address = listener.address().unwrap();
        let drain = Drain::new();
        let (options, drains) = (Arc::new(setup.options), drain.clone());
        let limited = |at_once| ServiceBuilder::new().layer(ConcurrencyLimitLayer::new(at_once));
        let serving = match setup.layer {
            None => tokio::spawn(server::serve(listener, stack::stack(parts), options, drains)),
            Some(Own::Waiting(at_once)) => {
                let stack = stack::stack_with(parts, limited(at_once));
                tokio::spawn(server::serve(listener, stack, options, drains))
            }
            Some(Own::Shedding(at_once)) => {
                let shedding = ServiceBuilder::new().layer(LoadShedLayer::new()).layer(limited(at_once));
                let stack = stack::stack_with(parts, shedding);
                tokio::spawn(server::serve(listener, stack, options, drains))
            }
            Some(Own::PanickingOnRequest) => {
                let panics = |_: Request| -> Request { panic!("no request is expected") };
                let stack = stack::stack_with(parts, ServiceBuilder::new().map_request(panics));
                tokio::spawn(server::serve(listener, stack, options, drains))
            }
            Some(Own::PanickingOnAnswer) => {
                let panics = |_: Response| -> Response { panic!("no answer is expected") };
                let stack = stack::stack_with(parts, ServiceBuilder::new().map_response(panics));
                tokio::spawn(server::serve(listener, stack, options, drains))
            }
        };
        Gateway {
            address,
            drain,
            detached,
            unknown,
            authorization,
            serving,
            _workers: workers,
            _folder: folder,
        }
    }

    /// Returns the number of calls of the scripted authorization server.
    pub fn refreshes(&self) -> usize {
        self.authorization.seen().len()
    }

    /// Drains, and returns the result.
    pub async fn stop(self) -> Drained {
        self.drain.begin();
        self.serving.await.unwrap()
    }
}

fn pack_served(pack: &Pack, phase: Phase, has_own: bool) -> Vec<Served> {
    let served = |route: &Route| Served {
        operation: Arc::clone(&route.operation.key),
        writes: route.operation.effect == Effect::Write,
        configured: phase,
        has_own,
        is_event: false,
    };
    pack.directions[0].routes.iter().map(served).collect()
}

fn granted(number: u32) -> Act {
    let body = format!(
        r#"{{"token_type":"Bearer","expires_in":2592000,"access_token":"new-token-{number}","refresh_token":"refresh-{number}"}}"#
    );
    Act::json(200, &body)
}

/// The store with `acme` in it, and its tokens.
async fn enrolled(folder: &TempDir, authorization: SocketAddr, account: Option<String>) -> (Store, Tokens) {
    let keys = KeyRing::parse(&[SealingKey::generate()]).unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let store = Store::open(&url, keys, Clock::machine(), MissingStore::Create).await.unwrap();
    let at = |path: &str| format!("http://{authorization}{path}").parse().unwrap();
    let endpoint = TokenEndpoint::new(OAuth {
        timeout: std::time::Duration::from_secs(5),
        ..OAuth::at(at("/oauth/authorize"), at("/token"), at("/callback"))
    });
    let endpoint = endpoint.unwrap();
    let secret = |text: &str| Secret::new(text.to_owned());
    let client = NewClient {
        name: "acme".into(),
        company: account,
        tokens: vec![secret(TOKEN).into()],
        credentials: Vec::new(),
        flow: Default::default(),
        app: Some(OAuthApp::with_secret(secret("app"), secret("app-secret"))),
        refresh_token: Some(secret("refresh-0")),
    };
    Registry::new(store.clone(), Some(endpoint.clone())).ensure(vec![client]).await.unwrap();
    let tokens =
        Tokens::open(store.clone(), Some(endpoint), switchback_gateway::token::RefreshSettings::default())
            .await
            .unwrap();
    (store, tokens)
}

/// A request of `acme`, with a correct length where there is a body. `fields` end in `\r\n` each.
pub fn request(line: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    format!("{line} HTTP/1.1\r\nhost: gateway.test\r\nx-own: Bearer {TOKEN}\r\n{length}{fields}\r\n{body}")
        .into_bytes()
}
