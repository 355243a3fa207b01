//! The configuration as the program needs it: complete, checked, with units in types. Names that the pack must know keep
//! their places, because they are checked when the pack is there.

use super::read::Placed;
use super::scalars::{Moment, Prefix, StoreUrl, WebUrl};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use switchback_compiler::diagnostic::Span;
use switchback_gateway::events::signature::Signature;
use switchback_gateway::proxy::forwarding::ForwardedFields;
use switchback_gateway::proxy::program::Strangers;
use switchback_gateway::secret::Secret;
use switchback_gateway::server::IpNet;
use switchback_gateway::shadow::{GateSettings, OperationKey, PerOperation, Phase, Priority, Share};
use switchback_gateway::store::Flow;
use switchback_gateway::telemetry::log::LogSettings;
use switchback_gateway::telemetry::otlp::OtlpSettings;
use switchback_gateway::tls::ServiceTls;
use switchback_plan::TokenRequests;

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// TLS towards clients.
    pub tls: Option<TlsFiles>,
    /// What clients come through.
    pub trusted_proxies: Vec<IpNet>,
    /// What forwarded requests say of the way they came.
    pub forwarded: ForwardedFields,
    pub admin: Admin,
    /// A port for health alone.
    pub health: Option<SocketAddr>,
    /// Folder of the pack; `None` for the built-in one.
    pub mapping: Option<PathBuf>,
    pub store: StoreUrl,
    /// At least one; the first seals.
    pub keys: Vec<Secret<String>>,
    /// Longest prefix first. Empty: the default of the pack.
    pub fronts: Vec<Front>,
    /// By side.
    pub upstreams: Vec<Upstream>,
    pub oauth: Option<OAuth>,
    pub clients: Vec<Client>,
    /// A JSON object.
    pub settings: Placed<Value>,
    /// Where each of the settings stands, by its dotted name.
    pub setting_places: Vec<(String, Span)>,
    pub phases: Phases,
    pub shadow: Shadow,
    pub gate: GateSettings,
    /// What `gate` names.
    pub gate_keys: Vec<Placed<OperationKey>>,
    pub events: Events,
    pub sunsets: Vec<Sunset>,
    pub brownouts: Vec<Brownout>,
    pub limits: Limits,
    /// Where `limits.total_timeout` is set; none where it is the default.
    pub total_timeout_place: Option<Span>,
    pub log: LogSettings,
    /// Whether it is logged where clients connect from.
    pub logs_address: bool,
    /// Where traces go.
    pub otlp: Option<OtlpSettings>,
    pub reload: Reload,
    /// The whole file as JSON, defaults filled in, secrets as `***`.
    pub masked: Value,
    pub places: Places,
    /// All files that it is read from beside its own: those of secrets, certificates and keys.
    pub files: Vec<PathBuf>,
}

/// Where values stand that can turn out to be wrong only when they are used. Of what the file leaves out, its beginning.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub listen: Span,
    pub admin_listen: Span,
    pub store: Span,
    pub mapping: Span,
    /// One for each key.
    pub keys: Vec<Span>,
    pub tls: Span,
}

impl Config {
    /// These files, and those of certificates and keys.
    pub(super) fn files_with(&self, mut files: Vec<PathBuf>) -> Vec<PathBuf> {
        let own = self.tls.iter().flat_map(|tls| [&tls.certificate, &tls.private_key]).map(PathBuf::as_path);
        let services = self.services().map(|(_, _, tls)| tls);
        let services = services.chain(self.oauth.iter().map(|oauth| &oauth.tls)).flat_map(|tls| tls.files());
        files.extend(own.chain(services).map(ToOwned::to_owned));
        files
    }

    /// All services that calls go to: those of sides by the side's name, those of other hosts of theirs as `SIDE/HOST`.
    pub fn services(&self) -> impl Iterator<Item = (String, &WebUrl, &Placed<ServiceTls>)> {
        self.upstreams.iter().flat_map(|upstream| {
            let side = &upstream.side.value;
            let hosts = upstream
                .hosts
                .iter()
                .map(move |host| (format!("{side}/{}", host.name.value), &host.url, &host.tls));
            std::iter::once((side.clone(), &upstream.url, &upstream.tls)).chain(hosts)
        })
    }

    /// Where clients reach services, by the names that [`Config::services`] gives, as far as that is configured.
    pub fn public_urls(&self) -> impl Iterator<Item = (String, &WebUrl)> {
        self.upstreams.iter().flat_map(|upstream| {
            let side = &upstream.side.value;
            let hosts = upstream.hosts.iter();
            let hosts = hosts.map(move |host| (format!("{side}/{}", host.name.value), &host.public_url));
            let all = std::iter::once((side.clone(), &upstream.public_url)).chain(hosts);
            all.filter_map(|(name, url)| Some((name, url.as_ref()?)))
        })
    }

    /// The upstream of a side.
    pub fn upstream(&self, side: &str) -> Option<&Upstream> {
        self.upstreams.iter().find(|upstream| upstream.side.value == side)
    }
}

/// PEM files for TLS towards clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub private_key: PathBuf,
}

/// The admin port.
#[derive(Clone, Debug)]
pub struct Admin {
    pub listen: SocketAddr,
    pub token: Option<Secret<String>>,
    /// Opens everything for reading and nothing for change.
    pub read_token: Option<Secret<String>>,
    /// How long a browser stays signed in after it was last used.
    pub session: Duration,
    /// How long a browser stays signed in, however much it is used.
    pub session_max: Duration,
    /// Host names allowed beside IP addresses and `localhost`, in lower case.
    pub hosts: Vec<String>,
}

/// A path prefix at which clients speak one side.
#[derive(Clone, Debug)]
pub struct Front {
    pub prefix: Placed<Prefix>,
    pub speaks: Placed<String>,
    /// `None`: the other side.
    pub backend: Option<Placed<String>>,
    pub unknown: Strangers,
}

/// A service that is called.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The side of the pack that it speaks.
    pub side: Placed<String>,
    pub url: WebUrl,
    pub tls: Placed<ServiceTls>,
    /// Where clients reach it.
    pub public_url: Option<WebUrl>,
    /// Where the hosts are that the pack names for the side.
    pub hosts: Vec<Host>,
}

/// A host of a side beside the one at its own address.
#[derive(Clone, Debug)]
pub struct Host {
    pub name: Placed<String>,
    pub url: WebUrl,
    pub tls: Placed<ServiceTls>,
    /// Where clients reach it.
    pub public_url: Option<WebUrl>,
}

/// The key of the configuration that says where a service is, by the name that [`Config::services`] gives.
pub fn service_key(name: &str) -> String {
    match name.split_once('/') {
        Some((side, host)) => format!("upstreams.{side}.hosts.{host}"),
        None => format!("upstreams.{name}"),
    }
}

/// The authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    /// Gives the addresses that are not given here.
    /// As typed: issuers are compared as texts, and a slash more makes another one.
    pub issuer: Option<String>,
    pub authorize_url: Option<WebUrl>,
    pub token_url: Option<WebUrl>,
    /// Where tokens are revoked.
    pub revocation_url: Option<WebUrl>,
    pub redirect_url: WebUrl,
    /// A port for the callback alone.
    pub listen: Option<SocketAddr>,
    pub scopes: Vec<String>,
    /// Names and values that requests for tokens carry besides.
    pub parameters: Vec<(String, String)>,
    /// Names and values that authorization links carry besides.
    pub authorize_parameters: Vec<(String, String)>,
    /// Most time for one answer.
    pub timeout: Duration,
    /// How it wants to be asked, where the configuration says so.
    pub requests: TokenRequests,
    pub is_state_optional: bool,
    pub tls: Placed<ServiceTls>,
}

/// A client to ensure at start.
#[derive(Clone, Debug)]
pub struct Client {
    pub name: Placed<String>,
    /// Secondary account.
    pub company: Option<Placed<String>>,
    /// What it is known by on fronts of each side, by the name of the side.
    pub tokens: Vec<(Placed<String>, Secret<String>)>,
    /// What its calls to a side go out with, by the name of the side, where not with the grant.
    pub credentials: Vec<(Placed<String>, Secret<String>)>,
    pub grant: Option<Grant>,
    /// When a side ends for it.
    pub sunset: Option<ClientSunset>,
}

/// When a side ends for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSunset {
    /// `None`: the one that clients speak.
    pub side: Option<Placed<String>>,
    pub at: Moment,
    pub deprecated: Option<Moment>,
    pub announce: bool,
    pub span: Span,
}

/// A window in which calls are turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brownout {
    /// `None`: the one that clients speak.
    pub side: Option<Placed<String>>,
    /// Empty: all.
    pub operations: Vec<Placed<String>>,
    /// Empty: all.
    pub clients: Vec<Placed<String>>,
    pub from: Moment,
    pub until: Moment,
    pub reason: String,
    pub span: Span,
}

/// OAuth credentials of a client.
#[derive(Clone, Debug)]
pub struct Grant {
    pub flow: Flow,
    pub client_id: Secret<String>,
    /// Empty where the app has none.
    pub client_secret: Secret<String>,
    /// To begin with.
    pub refresh_token: Option<Secret<String>>,
}

/// How operations are answered until something else is set at run time.
#[derive(Clone, Debug)]
pub struct Phases {
    /// What is named, in the order of the file.
    pub keys: Vec<(Placed<OperationKey>, Phase)>,
    pub operations: PerOperation<Phase>,
}

impl Phases {
    /// The phase that an operation of a side begins in.
    pub fn of(&self, side: &str, operation: &str) -> Phase {
        self.operations.of(side, operation).copied().unwrap_or_default()
    }
}

/// Asking the other side beside the one that answers; what each bound means stands with the key of its name in `dual`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadow {
    pub sample: Share,
    pub noise: Share,
    pub timed: Share,
    pub read_back: Share,
    pub read_backs: u32,
    pub queue: u32,
    pub queue_bytes: u64,
    pub body_bytes: u64,
    pub calls: u32,
    pub timeout: Duration,
    pub keep: Duration,
    pub findings: u32,
    pub priority: Priority,
}

/// What answers of a side say about its end.
#[derive(Clone, Debug)]
pub struct Sunset {
    pub side: Placed<String>,
    pub deprecated: Option<Moment>,
    pub sunset: Option<Moment>,
    pub policy: Option<WebUrl>,
    pub successor: Option<WebUrl>,
}

/// Bounds; what each one means stands with the key of its name in `sections`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `None`: what the control group or the machine has.
    pub memory: Option<u64>,
    pub connections: u32,
    /// `None`: as many as are left to others.
    pub connections_per_address: Option<u32>,
    pub requests: u32,
    pub requests_per_client: u32,
    pub http2_streams: u32,
    pub target_bytes: u64,
    pub headers: u32,
    pub header_bytes: u64,
    pub body_bytes: u64,
    pub forwarded_bytes: u64,
    pub object_members: u32,
    pub body_values: u32,
    pub body_depth: u32,
    pub scalar_bytes: u64,
    pub held_bytes: u64,
    pub held_bytes_all: u64,
    pub whole_bytes: u64,
    pub answer_bytes: u64,
    pub strict_answers: bool,
    pub decode_ratio: u32,
    pub buffer_bytes: u64,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub body_bytes_per_second: u64,
    pub write_timeout: Duration,
    pub answer_bytes_per_second: u64,
    pub idle_timeout: Duration,
    pub tunnel_idle_timeout: Duration,
    pub tunnel_lifetime: Duration,
    pub lingering_timeout: Duration,
    pub lingering_bytes: u64,
    pub connect_timeout: Duration,
    pub upstream_timeout: Duration,
    pub total_timeout: Duration,
    pub forwarded_idle_timeout: Duration,
    pub upstream_gone_after: Duration,
    pub drain_delay: Duration,
    pub store_wait: Duration,
    pub drain_timeout: Duration,
    pub upstream_calls: u32,
    pub upstream_calls_per_client: u32,
    pub upstream_idle: u32,
    pub upstream_idle_timeout: Duration,
    pub upstream_headers: u32,
    pub upstream_header_bytes: u64,
}

impl Default for Limits {
    /// The defaults of the configuration file.
    fn default() -> Limits {
        super::check::limits(&super::sections::RawLimits::assumed())
    }
}

/// Reloading while the gateway runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reload {
    pub watch: bool,
    /// How long files must stay unchanged.
    pub settle: Duration,
}

/// Events of the one version for receivers of the other.
#[derive(Clone, Debug)]
pub struct Events {
    pub receivers: Vec<EventReceiver>,
    pub settings: switchback_gateway::events::Settings,
}

/// Somebody who receives events.
#[derive(Clone, Debug)]
pub struct EventReceiver {
    pub name: String,
    /// Where the service delivers to.
    pub path: Placed<String>,
    pub verify: Signature,
    pub url: WebUrl,
    pub sign: Option<Signature>,
    /// While the version lives that the receiver knows.
    pub own: Option<OwnEvents>,
}

/// Where the version that a receiver knows delivers its own events.
#[derive(Clone, Debug)]
pub struct OwnEvents {
    pub path: Placed<String>,
    pub verify: Signature,
}

impl EventReceiver {
    /// Where events for it come in.
    pub fn paths(&self) -> impl Iterator<Item = &Placed<String>> {
        std::iter::once(&self.path).chain(self.own.as_ref().map(|own| &own.path))
    }
}

impl Events {
    /// Whether some receiver gets what the version sends that it knows.
    pub fn has_own(&self) -> bool {
        self.receivers.iter().any(|receiver| receiver.own.is_some())
    }
}
