//! The configuration file as typed: every section and key, with its default and documentation. The
//! JSON Schema and the masked dump are generated from it. Rules between keys are in `check`.

use super::cors::RawCors;
use super::dual::{RawGate, RawShadow};
use super::events::{RawEvents, RawSignature};
use super::front_limits::RawOwnLimits;
use super::notices::RawNotices;
use super::read::{
    Free, FromYaml, NamedMap, OneOrMore, Placed, PositiveCount, ReadContext, describe_schema, is_name,
    is_word, scalar_text, section, words,
};
use super::rollout::{RawPhase, RawRollout};
use super::scalars::{ByteSize, DateOrTime, PathPrefix, Period, StoreUrl, WebUrl};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Span};
use switchback_compiler::yaml::{Kind, Node};
use switchback_gateway::proxy::forwarding::ForwardedFields;
use switchback_gateway::proxy::program::UnknownClientPolicy;
use switchback_gateway::secret::Secret;
use switchback_gateway::server::IpNet;
use switchback_gateway::shadow::{Priority, Share};
use switchback_gateway::store::GrantFlow;
use switchback_gateway::telemetry::log::{LogFormat, check_filter};
use switchback_plan::{BodyForm, ClientAuth, RefreshExtra};

section! {
    /// The configuration file.
    RawConfig is "the configuration",
    required {
        /// Encrypts grants and credentials, and keys the hashes of client tokens: `${NAME}` or
        /// `file:PATH` of the output of `switchback key generate`. In a list, the first key
        /// encrypts and all keys decrypt; this is how a key is rotated.
        key: OneOrMore<Placed<Secret<String>>>,
        /// The upstream services, by the side of the pack that they speak.
        upstreams: NamedMap<String, RawUpstream>,
    }
    optional {
        /// The address that clients connect to.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
        /// Certificate and key for client connections. Without it, clients connect without TLS.
        tls: RawTls,
        /// Addresses and networks, such as `10.0.0.0/8`, of the balancers and proxies in front of
        /// the gateway.
        trusted_proxies: Vec<IpNet> = Vec::new(),
        /// Addresses and networks of the balancers that start each connection with a header of the
        /// PROXY protocol (version 1 or 2), which names the client. Their connections without it are
        /// closed; others must not send it.
        proxy_protocol: Vec<IpNet> = Vec::new(),
        /// How `X-Forwarded-*` and `Forwarded` are handled in requests that are forwarded to the
        /// service of the client's own side: `pass` them unchanged; `append` the client's address
        /// to the fields of `trusted_proxies`, and replace those of others; `set` the client's
        /// address alone; `drop` them.
        forwarded: ForwardedFields = ForwardedFields::Pass,
        /// The admin port.
        admin: RawAdmin = RawAdmin::assumed(),
        /// A separate port for health checks.
        health: RawHealth,
        /// Folder of the pack. The default is the built-in pack `messaging`. `{ folder: PATH,
        /// writable: true }` permits operators to save mapping files in the admin site.
        mapping: RawMapping,
        /// Database of clients, grants and unfinished requests: `sqlite:FILE` for one gateway,
        /// `postgres://…` for several.
        store: StoreUrl = "sqlite:switchback.db".parse().expect("the default is well-formed"),
        /// Path prefixes at which clients speak one of the sides of the pack. The default is the
        /// old side at its name, translated to the new one.
        fronts: NamedMap<PathPrefix, RawFront>,
        /// The authorization server that issues and refreshes grants.
        oauth: RawOAuth,
        /// Clients that are registered at start. Others can be added while the gateway runs.
        clients: Vec<RawClient> = Vec::new(),
        /// Settings of the pack, which reads them as `$.config`. The pack declares them.
        settings: Free = Free::nothing(),
        /// The initial phase of operations, until one is set at run time: `default` and operations
        /// such as `GET /things/{id}`, each `legacy` (forwarded unchanged to the upstream of the
        /// client's side), `shadow` (forwarded, and compared with the other side), `{ phase:
        /// canary, share: 0.1 }` (translated for this share of the clients) or `translated` (`{
        /// phase: translated, check: 0.01 }` compares a share of the requests). `{ rollout: NAME }`
        /// starts a plan of `rollout` in its first phase.
        phases: NamedMap<String, RawPhase> = NamedMap(Vec::new()),
        /// Comparison with the side that does not answer.
        shadow: RawShadow = RawShadow::assumed(),
        /// Automatic promotion and rollback: `default` and operations, each a policy or `never`.
        /// Without it, no operation changes its phase automatically.
        gate: NamedMap<String, RawGate> = NamedMap(Vec::new()),
        /// Rollout plans by name: phases that an operation goes through, each left when its time is
        /// over and the evidence satisfies the policy of `gate`. A plan is started by `phases`,
        /// `switchback rollout` or the admin site.
        rollout: NamedMap<String, RawRollout> = NamedMap(Vec::new()),
        /// Translation of events for their receivers.
        events: RawEvents = RawEvents::assumed(),
        /// Notices to operators by webhook. Without receivers, none are sent.
        notices: RawNotices = RawNotices::assumed(),
        /// Announcements of the end of a side in responses, by the name of the side.
        sunset: NamedMap<String, RawSunset> = NamedMap(Vec::new()),
        /// Windows in which requests are rejected with 503 and `Retry-After`, so that owners of
        /// clients notice the coming end. Others can be added while the gateway runs (`switchback
        /// brownout`).
        brownouts: Vec<Placed<RawBrownout>> = Vec::new(),
        /// Limits on sizes, numbers and times.
        limits: RawLimits = RawLimits::assumed(),
        /// Logging.
        log: RawLog = RawLog::assumed(),
        /// Export of traces.
        telemetry: RawTelemetry = RawTelemetry::assumed(),
        /// Reloading of the pack and of this file while the gateway runs.
        reload: RawReload = RawReload::assumed(),
    }
}

section! {
    /// The folder of the pack with its options.
    RawMappingFolder is "`mapping`",
    required {
        /// The folder.
        folder: PathBuf,
    }
    optional {
        /// Whether operators may save mapping files in the admin site.
        writable: bool = false,
    }
}

/// The pack: a folder, or a map with its options.
#[derive(Clone, Debug)]
pub(super) struct RawMapping {
    /// `None` only after a finding.
    pub(super) folder: Option<Placed<PathBuf>>,
    pub(super) is_writable: bool,
}

impl FromYaml for RawMapping {
    fn may_quote(text: &str) -> bool {
        PathBuf::may_quote(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        match node.kind {
            Kind::Map(_) => RawMappingFolder::parse(node, reading)
                .map(|raw| RawMapping { folder: raw.folder, is_writable: raw.writable.value }),
            _ => Placed::parse(node, reading)
                .map(|folder| RawMapping { folder: Some(folder), is_writable: false }),
        }
    }

    fn schema() -> Value {
        json!({"anyOf": [PathBuf::schema(), RawMappingFolder::schema()]})
    }

    fn to_value(&self) -> Value {
        match self.is_writable {
            true => json!({"folder": self.folder.to_value(), "writable": true}),
            false => self.folder.to_value(),
        }
    }
}

section! {
    /// Files for TLS with clients.
    RawTls is "`tls`",
    required {
        /// PEM file: the certificate and its intermediates.
        certificate: PathBuf,
        /// PEM file: the private key of the certificate.
        private_key: PathBuf,
    }
    optional {}
}

section! {
    /// The admin port.
    RawAdmin is "`admin`",
    required {}
    optional {
        /// The address of health, metrics, the admin site, the admin API and the OAuth callback.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)),
        /// The bearer token for everything but health and the callback. Required unless the port
        /// listens on a loopback address; without it, the port is read-only.
        token: Secret<String>,
        /// A second token with read access. Requires `token`.
        read_token: Secret<String>,
        /// Period without use after which a browser is signed out.
        session: Period = Period(Duration::from_secs(12 * 60 * 60)),
        /// Period after which a browser is signed out regardless of use.
        session_max: Period = Period(Duration::from_secs(24 * 60 * 60)),
        /// Host names, in addition to IP addresses and `localhost`, under which browsers may reach
        /// the port. Other names are rejected, which prevents DNS rebinding.
        hosts: Vec<String> = Vec::new(),
        /// Memory for a sample of recent requests, which the admin site lists: masked like a
        /// capture, about ten successful and ten failed requests per second. `0` disables it.
        recent_requests: ByteSize = ByteSize(4 << 20),
    }
}

section! {
    /// A port for health checks alone.
    RawHealth is "`health`",
    required {
        /// The address of `/healthz/live` and `/healthz/ready`, which the admin port serves too. A
        /// flood of connections closes older connections of the flood; new ones are always
        /// accepted.
        listen: SocketAddr,
    }
    optional {}
}

section! {
    /// One path prefix.
    RawFront is "a front",
    required {
        /// The side that clients speak at this prefix.
        speaks: String,
    }
    optional {
        /// The side that requests are translated to. The default is the other side.
        backend: String,
        /// Handling of requests that match no operation of the contract, and of tokens of unknown
        /// clients, while `upstreams` has the client's side: `forward` sends both to that service
        /// (tokens only where the operation is not translated), `forward_all` also tokens where it
        /// is translated, `refuse` neither.
        unknown: UnknownClientPolicy = UnknownClientPolicy::Forward,
        /// Access of pages of other origins (CORS). Without it, preflights are requests like any other,
        /// and only forwarded responses have the fields of their service.
        cors: RawCors,
        /// Limits of this front in place of those of `limits`.
        limits: RawOwnLimits = RawOwnLimits::assumed(),
        /// Limits of single operations of this front, such as `POST /things`.
        operation_limits: NamedMap<String, RawOwnLimits> = NamedMap(Vec::new()),
    }
}

words! {
    UnknownClientPolicy: quotable { "forward" => Forward, "forward_all" => ForwardAll, "refuse" => Refuse }
    ForwardedFields: quotable { "pass" => Pass, "append" => Append, "set" => Set, "drop" => Drop }
    StateRule: masked { "required" => Required, "optional" => Optional }
    GrantFlow: masked { "authorization_code" => AuthorizationCode, "client_credentials" => ClientCredentials }
    LogFormat: quotable { "text" => Text, "json" => Json }
}

section! {
    /// One service.
    RawUpstream is "an upstream",
    required {
        /// Base URL of the service. Operation paths are appended to it.
        url: WebUrl,
    }
    optional {
        /// TLS settings, if the URL is `https`.
        tls: RawServiceTls,
        /// The URL at which clients reach the service: the base of the calls in migration notices.
        /// Without it, notices use a variable such as `$V3_URL`.
        public_url: WebUrl,
        /// Signature of translated calls to the side and its hosts: an HMAC of the body in a header
        /// field. By default they are not signed.
        sign: RawSignature,
        /// Addresses of the other hosts of the side, by their names in `hosts` of the pack.
        hosts: NamedMap<String, RawHost>,
    }
}

section! {
    /// An additional host of a side. Calls to it carry the credential of the side.
    RawHost is "a host",
    required {
        /// Base URL of the host. Operation paths are appended to it.
        url: WebUrl,
    }
    optional {
        /// TLS settings. The default is the settings of the side's own address, client certificate
        /// included, except `server_name`.
        tls: RawServiceTls,
        /// The URL at which clients reach the host, for migration notices.
        public_url: WebUrl,
    }
}

section! {
    /// TLS settings for a service or the authorization server. The files are watched like the
    /// configuration.
    RawServiceTls is "`tls`",
    required {}
    optional {
        /// PEM file: certificate authorities that replace those of the system.
        ca_file: PathBuf,
        /// PEM file: client certificate for mutual TLS, with its intermediates.
        certificate: PathBuf,
        /// PEM file: the private key of `certificate`.
        private_key: PathBuf,
        /// Name for SNI and for the verification of the certificate. The default is the host of the
        /// URL.
        server_name: String,
    }
}

section! {
    /// The authorization server.
    RawOAuth is "`oauth`",
    required {
        /// The URL that the authorization server redirects the account owner to: `/oauth/callback`
        /// on `oauth.listen` or the admin port, as browsers reach it.
        redirect_url: WebUrl,
    }
    optional {
        /// A separate port for `/oauth/callback`, so that browsers do not need to reach the admin
        /// port. The default is the admin port.
        listen: SocketAddr,
        /// Issuer identifier (RFC 8414). Endpoints that are not given here are discovered at start
        /// and on reload, and callbacks of another issuer are rejected (RFC 9207).
        issuer: String,
        /// Authorization endpoint, where the account owner grants access.
        authorize_url: WebUrl,
        /// Token endpoint.
        token_url: WebUrl,
        /// Revocation endpoint (RFC 7009), used when a client is revoked. The default is the
        /// endpoint in the metadata of the issuer, if these are used; otherwise tokens are not
        /// revoked at the server.
        revocation_url: WebUrl,
        /// Scopes to request.
        scopes: Vec<String> = Vec::new(),
        /// Additional fields of every token request, such as `audience` or `resource`. They are
        /// displayed: do not put secrets here.
        parameters: NamedMap<String, Placed<String>> = NamedMap(Vec::new()),
        /// Additional fields of every authorization link, such as `prompt: consent` or
        /// `access_type: offline`, which some servers require before they issue a refresh token.
        authorize_parameters: NamedMap<String, Placed<String>> = NamedMap(Vec::new()),
        /// Timeout of a request to the authorization server.
        timeout: Period = Period(Duration::from_secs(10)),
        /// Format of token requests: `form` (RFC 6749) or `json`. The default is the declaration of
        /// the pack, or `form`.
        body: BodyForm,
        /// Client authentication: `basic` (`client_secret_basic`), `post` (`client_secret_post`),
        /// `none` for a public client, or `private_key_jwt`. By default, a client with `client_key`
        /// uses `private_key_jwt`, and others the declaration of the pack, then the metadata of the
        /// issuer, then `basic`.
        client_auth: ClientAuth,
        /// Audience of the assertions of `private_key_jwt`. The default is `issuer`, or `token_url`
        /// without an issuer.
        assertion_audience: String,
        /// Additional content of a refresh request: `access_token`, the token that expires, and
        /// `scope`. The default is the declaration of the pack.
        refresh_sends: Vec<RefreshExtra>,
        /// Whether a callback must return the `state` of its link: `required`, or `optional` for an
        /// authorization server that drops it. A callback without it then matches the only pending
        /// authorization, if there is exactly one.
        state: StateRule = StateRule::Required,
        /// TLS settings for the authorization server.
        tls: RawServiceTls,
    }
}

/// Whether a callback must return the `state` of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateRule {
    Required,
    Optional,
}

/// Implements [`FromYaml`] for enums of other crates that define their own words.
macro_rules! own_words {
    ($($name:ty),+) => { $(
        impl FromYaml for $name {
            fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
                <$name>::of_word(node.word(<$name>::WORDS, reading.findings)?)
            }

            fn schema() -> Value {
                json!({"enum": <$name>::WORDS})
            }

            fn to_value(&self) -> Value {
                json!(self.word())
            }
        }
    )+ };
}
own_words!(BodyForm, ClientAuth, Priority, RefreshExtra);

section! {
    /// A client without its tokens, whose keys are named after sides.
    RawClientBase is "a client",
    required {
        /// Name of the client in logs, metrics and the admin API.
        name: String,
    }
    optional {
        /// Secondary account that the client acts on. The default is the main account.
        company: String,
        /// OAuth credentials for calls to the new side.
        grant: RawGrant,
        /// Fixed tokens for calls, by side, in place of a grant.
        credentials: NamedMap<String, Placed<Secret<String>>> = NamedMap(Vec::new()),
        /// The end of a side for this client, regardless of the date for others. A date that is set
        /// at run time (`switchback client sunset`) takes precedence.
        sunset: RawClientSunset,
    }
}

section! {
    /// The end of a side for one client.
    RawClientSunset is "`sunset` of a client",
    required {
        /// Requests of the client are answered 410 from then on.
        at: DateOrTime,
    }
    optional {
        /// The side that is retired. The default is the side that clients speak.
        side: Placed<String>,
        /// The date of deprecation.
        deprecated: DateOrTime,
        /// Whether responses announce the date in `Sunset` (RFC 8594) and `Deprecation` (RFC 9745).
        announce: bool = true,
    }
}

section! {
    /// A window in which requests are rejected.
    RawBrownout is "a brownout",
    required {
        /// Start of the window.
        from: DateOrTime,
        /// End of the window.
        until: DateOrTime,
    }
    optional {
        /// The side whose fronts are affected. The default is the side that clients speak.
        side: Placed<String>,
        /// Operations such as `GET /things/{id}`. The default is all requests of the side.
        operations: Vec<Placed<String>> = Vec::new(),
        /// Names of clients. The default is all clients.
        clients: Vec<Placed<String>> = Vec::new(),
        /// Text for clients, in place of the text of the pack for `brownout`.
        reason: String = String::new(),
    }
}

section! {
    /// OAuth credentials.
    RawGrant is "`grant`",
    required {
        /// Client identifier of the OAuth application.
        client_id: Secret<String>,
    }
    optional {
        /// Client secret of the OAuth application. Not used if `oauth.client_auth` is `none`.
        client_secret: Secret<String>,
        /// Private key of the OAuth application, in place of a secret: PEM, unencrypted, RSA with 2048
        /// to 4096 bits, ECDSA on P-256 or Ed25519. It signs the assertions of `private_key_jwt`
        /// (RFC 7523) with RS256, ES256 or EdDSA.
        client_key: Secret<String>,
        /// The id of `client_key` at the authorization server, if it needs one to select the public
        /// key (`kid`).
        client_key_id: String,
        /// How access tokens are obtained: `authorization_code`, with the consent of a person, or
        /// `client_credentials`, by the application itself.
        flow: GrantFlow = GrantFlow::AuthorizationCode,
        /// Initial refresh token. Used only while the store has no grant for the client. Without
        /// it, the client is connected with `switchback client connect`.
        refresh_token: Secret<String>,
    }
}

section! {
    /// Announcement of the end of a side (RFC 9745, RFC 8594).
    RawSunset is "an entry of `sunset`",
    required {}
    optional {
        /// The date of deprecation.
        deprecated: DateOrTime,
        /// The date after which the side is expected to be unavailable.
        sunset: DateOrTime,
        /// A page about the deprecation.
        policy: WebUrl,
        /// The replacement.
        successor: WebUrl,
    }
}

section! {
    /// Limits. A request or response that exceeds one is rejected with an error that names it;
    /// nothing is truncated.
    RawLimits is "`limits`",
    required {}
    optional {
        /// Resident memory of the process. Near the limit, connections and requests are rejected
        /// with 503. The default is the limit of the control group (cgroup), or the memory of the
        /// machine.
        memory: ByteSize,
        /// Open client connections. Further connections receive 503 and are closed. Lower if the
        /// limit of file descriptors (`ulimit -n`) requires it.
        connections: PositiveCount = PositiveCount(9_000),
        /// Open connections of one address (one /64 network for IPv6). By default an address may
        /// use as many as remain free for others. Connections of `trusted_proxies` do not count.
        connections_per_address: PositiveCount,
        /// Concurrent requests. Further requests receive 503.
        requests: PositiveCount = PositiveCount(4_096),
        /// Concurrent requests of one client. Further requests receive 503.
        requests_per_client: PositiveCount = PositiveCount(512),
        /// Concurrent requests on one HTTP/2 connection.
        http2_streams: PositiveCount = PositiveCount(100),
        /// Size of the request target (path and query). A larger one is rejected with 414.
        target_bytes: ByteSize = ByteSize(8 << 10),
        /// Number of header fields of a request.
        headers: PositiveCount = PositiveCount(100),
        /// Size of the header fields of a request. More are rejected with 431.
        header_bytes: ByteSize = ByteSize(16 << 10),
        /// Size of a request body, both as sent and decoded. A larger one is rejected with 413.
        body_bytes: ByteSize = ByteSize(10 << 20),
        /// Size of a request body that is forwarded unchanged to the service of the client's own
        /// side. A larger one is rejected with 413.
        forwarded_bytes: ByteSize = ByteSize(1 << 30),
        /// Members of one object in a parsed body. More are rejected with 413, or 502 in a
        /// response.
        object_members: PositiveCount = PositiveCount(10_000),
        /// Values in a request body: members and elements of all depths. More are rejected with
        /// 413.
        body_values: PositiveCount = PositiveCount(1_000_000),
        /// Nesting depth of a parsed body, from 8 to 256. More is rejected with 413, or 502 in a
        /// response.
        body_depth: PositiveCount = PositiveCount(64),
        /// Size of one string or number that the pack reads in a streamed response. A larger one is
        /// answered 502. Values that the pack does not read have no limit of their own; values of
        /// buffered bodies have the limit of the body.
        scalar_bytes: ByteSize = ByteSize(1 << 20),
        /// Size of an upstream response that must be buffered for its translation. A larger one is
        /// answered 502.
        held_bytes: ByteSize = ByteSize(16 << 20),
        /// Total size of bodies that all requests buffer, and of their translations. More are
        /// answered 503. Reduced if `memory` has less room.
        held_bytes_all: ByteSize = ByteSize(256 << 20),
        /// Number of bytes of a response that are translated before the first byte is sent, so that
        /// an error in them is still answered 502. A later error aborts the response.
        whole_bytes: ByteSize = ByteSize(64 << 10),
        /// Size of a streamed upstream response, decoded. A larger one is aborted.
        answer_bytes: ByteSize = ByteSize(1 << 30),
        /// Ratio of the decoded to the compressed size of a body.
        decode_ratio: PositiveCount = PositiveCount(500),
        /// Buffer size per HTTP/1.1 connection and direction.
        buffer_bytes: ByteSize = ByteSize(64 << 10),
        /// Timeout for the header fields of a request.
        header_timeout: Period = Period(Duration::from_secs(10)),
        /// Timeout between two chunks of a request body.
        body_timeout: Period = Period(Duration::from_secs(10)),
        /// Minimum average rate of a request body, in bytes per second.
        body_bytes_per_second: ByteSize = ByteSize(1 << 10),
        /// Time for which a client may accept no bytes of a response; over HTTP/2, of each
        /// response.
        write_timeout: Period = Period(Duration::from_secs(30)),
        /// Minimum average rate at which a client must read a response that it delays, in bytes per
        /// second.
        answer_bytes_per_second: ByteSize = ByteSize(1 << 10),
        /// Timeout of a connection without a request.
        idle_timeout: Period = Period(Duration::from_secs(75)),
        /// Timeout of a connection that was upgraded to another protocol, such as WebSocket,
        /// without data in either direction.
        tunnel_idle_timeout: Period = Period(Duration::from_secs(300)),
        /// Maximum lifetime of such a connection.
        tunnel_lifetime: Period = Period(Duration::from_secs(86_400)),
        /// Time for which data that a client still sends after the last response of its connection
        /// is read and discarded. A client that sends to a closed connection loses the response
        /// (RFC 9112, section 9.6).
        lingering_timeout: Period = Period(Duration::from_secs(10)),
        /// Number of bytes that are discarded this way.
        lingering_bytes: ByteSize = ByteSize(64 << 20),
        /// Timeout for a connection to an upstream, TLS included. Long enough for two
        /// retransmissions of a lost SYN, after one and three seconds.
        connect_timeout: Period = Period(Duration::from_millis(3500)),
        /// Timeout from sending a call to the head of its response, and between two chunks of its
        /// body. Forwarded calls use `forwarded_idle_timeout` instead.
        upstream_timeout: Period = Period(Duration::from_secs(15)),
        /// Timeout from the head of a request to the head of its response, including all calls and
        /// retries. Forwarded requests have no such timeout.
        total_timeout: Period = Period(Duration::from_secs(30)),
        /// Timeout of a forwarded request without a byte in either direction, before and within its
        /// response. An upload, a long poll or an event stream may take any time while data passes.
        forwarded_idle_timeout: Period = Period(Duration::from_secs(60)),
        /// Time without a reachable upstream after which operations that only that upstream can
        /// answer are refused with the reason of the pack, as if it were not configured. A call
        /// that gets no connection, times out, or is answered 502, 503 or 504 did not reach the
        /// upstream. One such call every five seconds still tries.
        upstream_gone_after: Period = Period(Duration::from_secs(60)),
        /// Time for which clients are still accepted after SIGTERM, while `/healthz/ready` answers
        /// 503 and each response closes its connection. Choose it longer than the check interval of
        /// the balancers. SIGINT and a second signal stop at once.
        drain_delay: Period = Period(Duration::from_secs(5)),
        /// Time for which a starting gateway waits for an unavailable store before it exits.
        store_wait: Period = Period(Duration::from_secs(60)),
        /// Time for requests in flight to finish when the gateway stops.
        drain_timeout: Period = Period(Duration::from_secs(30)),
        /// Concurrent calls to one upstream. Further calls receive 503 at once.
        upstream_calls: PositiveCount = PositiveCount(1_024),
        /// Concurrent calls of one client to one upstream. A client never gets more than remain
        /// free for others.
        upstream_calls_per_client: PositiveCount = PositiveCount(1_024),
        /// Idle connections per upstream.
        upstream_idle: PositiveCount = PositiveCount(256),
        /// Lifetime of an idle connection: choose it shorter than that of the upstream, or some
        /// writes meet a closed connection and are answered 502. `Keep-Alive: timeout=5` of an
        /// upstream takes precedence. An HTTP/2 connection in use that was silent for this long is
        /// pinged, and must answer within `connect_timeout`.
        upstream_idle_timeout: Period = Period(Duration::from_secs(4)),
        /// Number of header fields of an upstream response. More are answered 502. Any other value
        /// than 100 costs about 4,000 instructions per call.
        upstream_headers: PositiveCount = PositiveCount(100),
        /// Size of the header fields of an upstream response. More are answered 502. Each
        /// connection to an upstream may buffer this much.
        upstream_header_bytes: ByteSize = ByteSize(32 << 10),
    }
}

section! {
    /// Logging.
    RawLog is "`log`",
    required {}
    optional {
        /// `text` for people or `json` for machines.
        format: LogFormat = LogFormat::Text,
        /// A level such as `info`, or directives such as `info,switchback::access=off`, which turns
        /// the access log off. The variables `SWITCHBACK_LOG` and `RUST_LOG` take precedence.
        level: Filter = Filter("info".to_owned()),
        /// Whether the access log and traces contain client addresses.
        client_address: bool = true,
    }
}

section! {
    /// Export of traces.
    RawTelemetry is "`telemetry`",
    required {}
    optional {
        /// OpenTelemetry traces. Without it, no traces are recorded.
        otlp: RawOtlp,
    }
}

section! {
    /// Traces by OTLP over HTTP, in protobuf.
    RawOtlp is "`telemetry.otlp`",
    required {
        /// URL of the collector without `/v1/traces`, such as `http://collector:4318`.
        endpoint: WebUrl,
    }
    optional {
        /// Header fields of every request to the collector, such as a credential.
        headers: NamedMap<String, Placed<Secret<String>>> = NamedMap(Vec::new()),
        /// Share of the traces that start at the gateway and are recorded, from 0 to 1. A
        /// `traceparent` of a client decides for its own trace.
        ratio: Share = Share::ALL,
        /// Timeout of one export, including retries.
        timeout: Period = Period(Duration::from_secs(10)),
        /// Spans that wait for export. Further spans are dropped and counted.
        queue: PositiveCount = PositiveCount(2048),
    }
}

section! {
    /// Reloading.
    RawReload is "`reload`",
    required {}
    optional {
        /// Reload when the pack or this file changes. SIGHUP always reloads.
        watch: bool = true,
        /// Time for which files must stay unchanged before they are read.
        settle: Period = Period(Duration::from_millis(300)),
    }
}

/// A client. Its tokens have keys of the form `<side>_token`, which depend on the pack, so they are
/// read by hand.
#[derive(Clone, Debug)]
pub(super) struct RawClient {
    pub(super) base: RawClientBase,
    /// Tokens of the client, each with its side.
    pub(super) tokens: Vec<(Placed<String>, Placed<Secret<String>>)>,
    /// Whether a token key is present, valid or not.
    pub(super) has_token: bool,
    pub(super) span: Span,
}

const TOKEN_SUFFIX: &str = "_token";

impl FromYaml for RawClient {
    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let (tokens, others): (Vec<_>, Vec<_>) = node
            .map(reading.findings)?
            .iter()
            .cloned()
            .partition(|(key, _)| key.name.ends_with(TOKEN_SUFFIX));
        let has_token = !tokens.is_empty();
        let mut read = Vec::new();
        for (key, value) in &tokens {
            let side = key.name.trim_end_matches(TOKEN_SUFFIX);
            let given = OneOrMore::<Placed<Secret<String>>>::parse(value, reading);
            read.extend(
                given
                    .into_iter()
                    .flat_map(|given| given.0)
                    .map(|token| (Placed { value: side.to_owned(), span: key.span }, token)),
            );
        }
        let tokens = read;
        let base = RawClientBase::parse(&Node { span: node.span, kind: Kind::Map(others.into()) }, reading)?;
        Some(RawClient { base, tokens, has_token, span: node.span })
    }

    fn schema() -> Value {
        let mut schema = RawClientBase::schema();
        let about = "Token of the client for requests in a side, such as `v2_token`, or a list of them.";
        let token = describe_schema(OneOrMore::<Secret<String>>::schema(), &[about], None);
        schema["patternProperties"] = json!({ format!("^.+{TOKEN_SUFFIX}$"): token });
        schema
    }

    fn to_value(&self) -> Value {
        let mut shown = self.base.to_value();
        for (side, token) in &self.tokens {
            shown[format!("{}{TOKEN_SUFFIX}", side.value)] = token.to_value();
        }
        shown
    }
}

/// Words that users try as a level. They may be quoted in findings.
const LEVELS: [&str; 9] = ["off", "error", "warn", "info", "debug", "trace", "verbose", "critical", "notice"];

/// A validated filter of log events.
#[derive(Clone, Debug)]
pub(super) struct Filter(pub(super) String);

impl FromYaml for Filter {
    fn may_quote(text: &str) -> bool {
        (check_filter(text).is_ok() && is_name(text)) || is_word(text, &LEVELS)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let text = scalar_text(node, "a level such as `info`", reading)?;
        if let Err(why) = check_filter(text) {
            let finding =
                Finding::error(Code::ValueForm, node.span, "this is no level and no list of directives");
            reading.findings.push(finding.help(format!("for example `info` or `debug`; {why}")));
            return None;
        }
        Some(Filter(text.to_owned()))
    }

    fn schema() -> Value {
        json!({"type": "string", "examples": ["info", "info,switchback::access=off"]})
    }

    fn to_value(&self) -> Value {
        json!(self.0)
    }
}
