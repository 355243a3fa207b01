//! The configuration as the program uses it: complete, checked, with typed units. Names that refer
//! to the pack have their places, because they are checked only once the pack is loaded.

use super::read::Placed;
use super::scalars::{DateOrTime, PathPrefix, StoreUrl, WebUrl};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use switchback_compiler::diagnostic::Span;
use switchback_gateway::notices::{NoticeReceiver, NoticeSettings};
use switchback_gateway::proxy::cors::CorsSettings;
use switchback_gateway::proxy::forwarding::ForwardedFields;
use switchback_gateway::proxy::limits::LimitOverrides;
use switchback_gateway::proxy::program::UnknownClientPolicy;
use switchback_gateway::secret::Secret;
use switchback_gateway::server::IpNet;
use switchback_gateway::shadow::{
    GateSettings, OperationKey, PerOperation, Phase, RolloutSettings, ShadowSettings,
};
use switchback_gateway::signature::Signature;
use switchback_gateway::store::GrantFlow;
use switchback_gateway::telemetry::log::LogSettings;
use switchback_gateway::telemetry::otlp::OtlpSettings;
use switchback_gateway::tls::ServiceTls;
use switchback_gateway::token::AppCredential;
use switchback_plan::TokenRequests;

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub tls: Option<TlsFilesConfig>,
    /// Trusted proxies: their forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Balancers that start each connection with a header of the PROXY protocol.
    pub proxy_protocol: Vec<IpNet>,
    /// How forwarded requests set `Forwarded` and `X-Forwarded-*`.
    pub forwarded: ForwardedFields,
    pub admin: AdminConfig,
    /// The separate health port.
    pub health: Option<SocketAddr>,
    /// Folder of the pack; `None`: the built-in one.
    pub mapping: Option<PathBuf>,
    /// Whether operators may save mapping files in the admin site.
    pub is_mapping_writable: bool,
    pub store: StoreUrl,
    /// At least one. The first seals, all open.
    pub keys: Vec<Secret<String>>,
    /// Longest prefix first. Empty: the pack's default.
    pub fronts: Vec<FrontConfig>,
    /// One per side.
    pub upstreams: Vec<UpstreamConfig>,
    pub oauth: Option<OAuthConfig>,
    pub clients: Vec<ClientConfig>,
    /// A JSON object.
    pub settings: Placed<Value>,
    /// Places of the settings, by dotted name.
    pub setting_places: Vec<(String, Span)>,
    pub phases: PhasesConfig,
    pub shadow: ShadowSettings,
    pub gate: GateSettings,
    /// The operations that `gate` names.
    pub gate_keys: Vec<Placed<OperationKey>>,
    pub events: EventsConfig,
    pub notices: NoticesConfig,
    pub sunsets: Vec<Sunset>,
    pub brownouts: Vec<BrownoutConfig>,
    pub limits: LimitsConfig,
    /// The place of `limits.total_timeout`; `None` for the default.
    pub total_timeout_place: Option<Span>,
    pub log: LogSettings,
    /// Whether the access log includes client addresses.
    pub logs_address: bool,
    pub otlp: Option<OtlpSettings>,
    pub reload: Reload,
    /// The configuration as JSON, with defaults filled in and secrets replaced by `***`.
    pub masked: Value,
    pub places: ValueSpans,
    /// Other files that the configuration reads: secrets, certificates and keys.
    pub files: Vec<PathBuf>,
}

/// Places of values with errors that appear only in use. Defaults have the start of the file.
#[derive(Clone, Debug, Default)]
pub struct ValueSpans {
    pub listen: Span,
    pub store: Span,
    pub mapping: Span,
    /// One for each key.
    pub keys: Vec<Span>,
    pub tls: Span,
}

impl Config {
    /// Appends the certificate and key files to `files`.
    pub(super) fn files_with(&self, mut files: Vec<PathBuf>) -> Vec<PathBuf> {
        let own = self.tls.iter().flat_map(|tls| [&tls.certificate, &tls.private_key]).map(PathBuf::as_path);
        let services = self.services().map(|(_, _, tls)| tls);
        let services = services.chain(self.oauth.iter().map(|oauth| &oauth.tls)).flat_map(|tls| tls.files());
        files.extend(own.chain(services).map(ToOwned::to_owned));
        files
    }

    /// Returns all upstream services: sides by name, their other hosts as `SIDE/HOST`.
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

    /// Returns the public addresses of services, if configured, by the names of
    /// [`Config::services`].
    pub fn public_urls(&self) -> impl Iterator<Item = (String, &WebUrl)> {
        self.upstreams.iter().flat_map(|upstream| {
            let side = &upstream.side.value;
            let hosts = upstream.hosts.iter();
            let hosts = hosts.map(move |host| (format!("{side}/{}", host.name.value), &host.public_url));
            let all = std::iter::once((side.clone(), &upstream.public_url)).chain(hosts);
            all.filter_map(|(name, url)| Some((name, url.as_ref()?)))
        })
    }

    pub fn upstream(&self, side: &str) -> Option<&UpstreamConfig> {
        self.upstreams.iter().find(|upstream| upstream.side.value == side)
    }
}

/// PEM files of the TLS listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFilesConfig {
    pub certificate: PathBuf,
    pub private_key: PathBuf,
}

/// Settings of the admin port.
#[derive(Clone, Debug)]
pub struct AdminConfig {
    pub listen: SocketAddr,
    pub token: Option<Secret<String>>,
    /// A token with read access only.
    pub read_token: Option<Secret<String>>,
    /// Idle timeout of a browser session.
    pub session: Duration,
    /// Longest lifetime of a browser session.
    pub session_max: Duration,
    /// Permitted host names in addition to IP addresses and `localhost`, in lower case.
    pub hosts: Vec<String>,
    /// Limit of the sample of recent requests; 0 disables it.
    pub recent_requests_bytes: u64,
}

/// A path prefix at which clients speak one side.
#[derive(Clone, Debug)]
pub struct FrontConfig {
    pub prefix: Placed<PathPrefix>,
    pub speaks: Placed<String>,
    /// `None`: the other side.
    pub backend: Option<Placed<String>>,
    pub unknown: UnknownClientPolicy,
    pub cors: Option<CorsSettings>,
    pub limits: OwnLimits,
    /// Limits by operations as the contract writes them.
    pub operation_limits: Vec<(Placed<String>, OwnLimits)>,
}

/// Limits of a front or an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnLimits {
    pub limits: LimitOverrides,
    pub total_timeout_place: Option<Span>,
}

impl FrontConfig {
    /// Returns the total timeout of an operation, and the place and the key that set it. `None`: it is
    /// that of `limits`.
    pub fn total_timeout(&self, operation: &str) -> Option<(Duration, Option<Span>, String)> {
        let prefix = self.prefix.as_str();
        let own = self.operation_limits.iter().find(|(key, _)| key.value == operation);
        let own =
            own.map(|(_, own)| (own, format!("fronts.{prefix}.operation_limits.{operation}.total_timeout")));
        let levels = own.into_iter().chain([(&self.limits, format!("fronts.{prefix}.limits.total_timeout"))]);
        levels
            .into_iter()
            .find_map(|(own, key)| Some((own.limits.total_timeout?, own.total_timeout_place, key)))
    }
}

/// An upstream service.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The side of the pack that it implements.
    pub side: Placed<String>,
    pub url: WebUrl,
    pub tls: Placed<ServiceTls>,
    /// The address at which clients reach it.
    pub public_url: Option<WebUrl>,
    /// Signs translated calls to the side and its hosts.
    pub sign: Option<Signature>,
    /// Addresses of the hosts that the pack names for the side.
    pub hosts: Vec<HostConfig>,
}

/// A host of a side in addition to the side's own address.
#[derive(Clone, Debug)]
pub struct HostConfig {
    pub name: Placed<String>,
    pub url: WebUrl,
    pub tls: Placed<ServiceTls>,
    /// The address at which clients reach it.
    pub public_url: Option<WebUrl>,
}

/// Returns the configuration key of a service, by its name in [`Config::services`].
pub fn service_key(name: &str) -> String {
    match name.split_once('/') {
        Some((side, host)) => format!("upstreams.{side}.hosts.{host}"),
        None => format!("upstreams.{name}"),
    }
}

/// Settings of the authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthConfig {
    /// Supplies the addresses that are not configured. Stored as typed: issuers are compared as
    /// strings, so a trailing slash matters (RFC 8414, section 3.3).
    pub issuer: Option<String>,
    pub authorize_url: Option<WebUrl>,
    pub token_url: Option<WebUrl>,
    pub revocation_url: Option<WebUrl>,
    pub redirect_url: WebUrl,
    /// A separate port for the callback.
    pub listen: Option<SocketAddr>,
    pub scopes: Vec<String>,
    /// Additional parameters of token requests.
    pub parameters: Vec<(String, String)>,
    /// Additional parameters of authorization links.
    pub authorize_parameters: Vec<(String, String)>,
    /// Time limit per request.
    pub timeout: Duration,
    /// Request format, where it overrides the pack.
    pub requests: TokenRequests,
    /// `None`: the issuer, or the token endpoint without an issuer.
    pub assertion_audience: Option<String>,
    pub is_state_optional: bool,
    pub tls: Placed<ServiceTls>,
}

/// A client to enrol at start.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub name: Placed<String>,
    /// The secondary account.
    pub company: Option<Placed<String>>,
    /// Its tokens, each with the name of the side.
    pub tokens: Vec<(Placed<String>, Secret<String>)>,
    /// Fixed tokens for calls to a side, by the name of the side, as an alternative to the grant.
    pub credentials: Vec<(Placed<String>, Secret<String>)>,
    pub grant: Option<GrantConfig>,
    /// The end of a side for this client.
    pub sunset: Option<SunsetConfig>,
}

/// The end of a side for one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SunsetConfig {
    /// `None`: the only side that clients speak.
    pub side: Option<Placed<String>>,
    pub at: DateOrTime,
    pub deprecated: Option<DateOrTime>,
    pub announce: bool,
    pub span: Span,
}

/// A window in which calls are rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrownoutConfig {
    /// `None`: the only side that clients speak.
    pub side: Option<Placed<String>>,
    /// Empty: all.
    pub operations: Vec<Placed<String>>,
    /// Empty: all.
    pub clients: Vec<Placed<String>>,
    pub from: DateOrTime,
    pub until: DateOrTime,
    pub reason: String,
    pub span: Span,
}

/// OAuth credentials of a client.
#[derive(Clone, Debug)]
pub struct GrantConfig {
    pub flow: GrantFlow,
    pub client_id: Secret<String>,
    pub credential: AppCredential,
    pub refresh_token: Option<Secret<String>>,
}

/// Initial phases of operations. Phases set at run time override them.
#[derive(Clone, Debug)]
pub struct PhasesConfig {
    /// The keys, in the order of the file. The phase of a rollout is that of its first step.
    pub keys: Vec<(Placed<OperationKey>, Phase)>,
    pub operations: PerOperation<Phase>,
    pub rollouts: RolloutSettings,
}

impl PhasesConfig {
    pub fn for_operation(&self, side: &str, operation: &str) -> Phase {
        self.operations.get(side, operation).copied().unwrap_or_default()
    }
}

/// Announcements of the end of a side.
#[derive(Clone, Debug)]
pub struct Sunset {
    pub side: Placed<String>,
    pub deprecated: Option<DateOrTime>,
    pub sunset: Option<DateOrTime>,
    pub policy: Option<WebUrl>,
    pub successor: Option<WebUrl>,
}

/// Limits. The keys of the same names in `sections` document each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// `None`: the limit of the control group or the machine.
    pub memory: Option<u64>,
    pub connections: u32,
    /// `None`: limited only by the connections that must stay free for other addresses.
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

/// Settings of reloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reload {
    pub watch: bool,
    /// Time without changes before the files are read.
    pub settle: Duration,
}

/// Settings of event delivery.
#[derive(Clone, Debug)]
pub struct EventsConfig {
    pub receivers: Vec<EventReceiver>,
    pub settings: switchback_gateway::events::EventSettings,
}

/// Settings of notices to operators.
#[derive(Clone, Debug)]
pub struct NoticesConfig {
    pub receivers: Vec<NoticeReceiver>,
    pub settings: NoticeSettings,
}

/// A receiver of events.
#[derive(Clone, Debug)]
pub struct EventReceiver {
    pub name: String,
    /// The path at which the service delivers.
    pub path: Placed<String>,
    pub verify: Signature,
    pub url: WebUrl,
    pub sign: Option<Signature>,
    /// The receiver's own version, while that still sends events.
    pub own: Option<OwnEventsConfig>,
}

/// Delivery of a receiver's own version.
#[derive(Clone, Debug)]
pub struct OwnEventsConfig {
    pub path: Placed<String>,
    pub verify: Signature,
}

impl EventReceiver {
    /// Returns the paths at which its events arrive.
    pub fn paths(&self) -> impl Iterator<Item = &Placed<String>> {
        std::iter::once(&self.path).chain(self.own.as_ref().map(|own| &own.path))
    }

    /// Returns its signature schemes: of the service, of deliveries, and of its own version.
    fn signatures(&self) -> [Option<&Signature>; 3] {
        [Some(&self.verify), self.sign.as_ref(), self.own.as_ref().map(|own| &own.verify)]
    }

    /// Returns whether both have the same signature schemes with the same secrets.
    fn has_secrets_of(&self, other: &EventReceiver) -> bool {
        self.signatures().into_iter().zip(other.signatures()).all(|pair| match pair {
            (Some(one), Some(other)) => one.has_secrets_of(other),
            (None, None) => true,
            _ => false,
        })
    }
}

impl EventsConfig {
    /// Returns whether a receiver gets events of its own version.
    pub fn has_own(&self) -> bool {
        self.receivers.iter().any(|receiver| receiver.own.is_some())
    }

    /// Returns whether the receivers, in order, have the same secrets.
    pub fn has_secrets_of(&self, other: &EventsConfig) -> bool {
        self.receivers.len() == other.receivers.len()
            && self.receivers.iter().zip(&other.receivers).all(|(one, other)| one.has_secrets_of(other))
    }
}
