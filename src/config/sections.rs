//! The configuration file as typed: every section and every key, with its default and what it does. This list is the
//! reference; the JSON Schema and the masked dump are made from it. Rules between keys are in `check`.

use super::dual::{RawGate, RawShadow};
use super::events::RawEvents;
use super::read::{
    Count, Free, FromYaml, Named, OneOrMore, Placed, Reading, described, is_name, is_word, scalar_text,
    section,
};
use super::scalars::{Moment, Period, Prefix, Size, StoreUrl, WebUrl};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Span};
use switchback_compiler::yaml::{Kind, Node};
use switchback_gateway::proxy::forwarding::ForwardedFields;
use switchback_gateway::proxy::program::Strangers;
use switchback_gateway::secret::Secret;
use switchback_gateway::server::IpNet;
use switchback_gateway::shadow::{Phase, Priority, Share};
use switchback_gateway::store::Flow;
use switchback_gateway::telemetry::log::{LogFormat, check_filter};
use switchback_plan::{BodyForm, ClientAuth, RefreshExtra};

section! {
    /// The whole file.
    RawConfig is "the configuration",
    required {
        /// Seals grants and credentials, and keys the hashes of clients' tokens: `${NAME}` or `file:PATH` of what `switchback key generate` made.
        /// In a list the first key seals and all of them open, which is how a key is rotated.
        key: OneOrMore<Placed<Secret<String>>>,
        /// The services that calls go to, by the side of the pack that they speak.
        upstreams: Named<String, RawUpstream>,
    }
    optional {
        /// Where clients connect.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
        /// Certificate and key when clients connect with TLS; without it they connect in the clear.
        tls: RawTls,
        /// Addresses and networks, such as `10.0.0.0/8`, of the balancers and proxies that clients come through.
        trusted_proxies: Vec<IpNet> = Vec::new(),
        /// What requests say of the way they came, in `X-Forwarded-*` and `Forwarded`, that are forwarded to the service of the
        /// side that clients speak: `pass` what came; `append` the client's address to what `trusted_proxies` say, and replace
        /// what others say; `set` the client's address alone; `drop` all of it.
        forwarded: ForwardedFields = ForwardedFields::Pass,
        /// The admin port.
        admin: RawAdmin = RawAdmin::assumed(),
        /// A port of its own for health.
        health: RawHealth,
        /// Folder of the pack; without it the pack `messaging` that is built into the program.
        mapping: PathBuf,
        /// Where clients, grants and unfinished requests are kept: `sqlite:FILE` for one gateway, `postgres://…` for several.
        store: StoreUrl = "sqlite:switchback.db".parse().expect("the default is well-formed"),
        /// Path prefixes at which clients speak one of the pack's sides. Without this: the old side, at its name, served
        /// from the new one.
        fronts: Named<Prefix, RawFront>,
        /// The authorization server that grants come from and are refreshed at.
        oauth: RawOAuth,
        /// Clients that are ensured at start. Others can be added while the gateway runs.
        clients: Vec<RawClient> = Vec::new(),
        /// What the pack reads as `$.config`; the pack says which settings there are.
        settings: Free = Free::nothing(),
        /// How operations are answered until something else is set at run time: `default` and operations such as
        /// `GET /things/{id}`, each `legacy` (forwarded unchanged to the upstream of the side that the client speaks),
        /// `shadow` (so too, and the other side is asked beside it), `{ phase: canary, share: 0.1 }` (the other side for
        /// this share of the clients) or `translated` (the other side; `{ phase: translated, check: 0.01 }` compares a share
        /// of requests).
        phases: Named<String, Phase> = Named(Vec::new()),
        /// Asking the other side beside the one that answers, and comparing.
        shadow: RawShadow = RawShadow::assumed(),
        /// Moving operations by what was found: `default` and operations, each a policy or `never`. Without this nothing moves
        /// by itself.
        gate: Named<String, RawGate> = Named(Vec::new()),
        /// Events of the one version for receivers of the other.
        events: RawEvents = RawEvents::assumed(),
        /// What answers say about the end of a side, by the name of the side.
        sunset: Named<String, RawSunset> = Named(Vec::new()),
        /// Windows in which calls are turned away with 503 and `Retry-After`, so that clients notice that an end is near. Others
        /// can be added while the gateway runs (`switchback brownout`).
        brownouts: Vec<Placed<RawBrownout>> = Vec::new(),
        /// Bounds on sizes, numbers and times.
        limits: RawLimits = RawLimits::assumed(),
        /// Logging.
        log: RawLog = RawLog::assumed(),
        /// What is told to collectors.
        telemetry: RawTelemetry = RawTelemetry::assumed(),
        /// Reloading of the pack and of this file while the gateway runs.
        reload: RawReload = RawReload::assumed(),
    }
}

section! {
    /// Files for TLS towards clients.
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
        /// Where health, metrics, the studio, the admin API and the callback of the authorization server are.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)),
        /// What `Authorization: Bearer` must carry for all but health and the callback. Compulsory off loopback; without it
        /// on loopback nothing can be changed through the port.
        token: Secret<String>,
        /// A second token, which opens everything for reading and nothing for change. Needs `token` beside it.
        read_token: Secret<String>,
        /// How long a browser stays signed in to the studio after it was last used.
        session: Period = Period(Duration::from_secs(12 * 60 * 60)),
        /// How long a browser stays signed in to the studio, however much it is used.
        session_max: Period = Period(Duration::from_secs(24 * 60 * 60)),
        /// Names, beside IP addresses and `localhost`, under which browsers may reach the port. Others are refused, so that
        /// a web page cannot reach it through a name of its own.
        hosts: Vec<String> = Vec::new(),
    }
}

section! {
    /// A port for health alone.
    RawHealth is "`health`",
    required {
        /// Where `/healthz/live` and `/healthz/ready` are, and nothing else; the admin port has them too. Whoever fills it only
        /// closes his own connections: a new one always gets in.
        listen: SocketAddr,
    }
    optional {}
}

section! {
    /// One path prefix.
    RawFront is "a front",
    required {
        /// The side that clients speak here.
        speaks: String,
    }
    optional {
        /// The side that their calls are translated to; without it the other one.
        backend: String,
        /// What becomes of calls that no contract has, and of tokens that nobody enrolled, while `upstreams` has the side that
        /// clients speak here: `forward` has that service judge them, unchanged (tokens where the operation is not translated),
        /// `forward_all` those tokens also where it is, `refuse` neither.
        unknown: Strangers = Strangers::Forward,
    }
}

impl FromYaml for Strangers {
    fn may_quote(text: &str) -> bool {
        is_word(text, &STRANGERS)
    }

    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
        match node.word(&STRANGERS, reading.findings)? {
            "refuse" => Some(Strangers::Refuse),
            "forward_all" => Some(Strangers::ForwardAll),
            _ => Some(Strangers::Forward),
        }
    }

    fn schema() -> Value {
        json!({"enum": STRANGERS})
    }

    fn shown(&self) -> Value {
        json!(match self {
            Strangers::Refuse => "refuse",
            Strangers::Forward => "forward",
            Strangers::ForwardAll => "forward_all",
        })
    }
}

impl FromYaml for ForwardedFields {
    fn may_quote(text: &str) -> bool {
        is_word(text, &FORWARDED)
    }

    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
        match node.word(&FORWARDED, reading.findings)? {
            "append" => Some(ForwardedFields::Append),
            "set" => Some(ForwardedFields::Set),
            "drop" => Some(ForwardedFields::Drop),
            _ => Some(ForwardedFields::Pass),
        }
    }

    fn schema() -> Value {
        json!({"enum": FORWARDED})
    }

    fn shown(&self) -> Value {
        json!(match self {
            ForwardedFields::Pass => "pass",
            ForwardedFields::Append => "append",
            ForwardedFields::Set => "set",
            ForwardedFields::Drop => "drop",
        })
    }
}

const FORWARDED: [&str; 4] = ["pass", "append", "set", "drop"];
const STRANGERS: [&str; 3] = ["forward", "forward_all", "refuse"];

section! {
    /// One service.
    RawUpstream is "an upstream",
    required {
        /// Where it is, with the path that its operations are appended to.
        url: WebUrl,
    }
    optional {
        /// How it is called with TLS, where its URL begins with `https`.
        tls: RawServiceTls,
        /// Where clients reach it: the base of the calls in migration notices. Without it they have a variable there, such as
        /// `$V3_URL`.
        public_url: WebUrl,
        /// Where the other hosts of the side are, by the names that the pack's `hosts` has for them.
        hosts: Named<String, RawHost>,
    }
}

section! {
    /// A host of a side beside the one at its own address. Calls to it carry the side's credential, too.
    RawHost is "a host",
    required {
        /// Where it is, with the path that its operations are appended to.
        url: WebUrl,
    }
    optional {
        /// How it is called with TLS; without this as the side's own address is, certificate shown included, but for `server_name`.
        tls: RawServiceTls,
        /// Where clients reach it, for migration notices.
        public_url: WebUrl,
    }
}

section! {
    /// How a service, or the authorization server, is called with TLS. The files are watched as the configuration is.
    RawServiceTls is "`tls`",
    required {}
    optional {
        /// PEM file: the authorities that its certificate is held against, instead of the system's.
        ca_file: PathBuf,
        /// PEM file: what is shown to it, where it asks who calls (mTLS), with its intermediates.
        certificate: PathBuf,
        /// PEM file: the private key of `certificate`.
        private_key: PathBuf,
        /// The name that its certificate is for, asked for by SNI, instead of the one in its URL.
        server_name: String,
    }
}

section! {
    /// The authorization server.
    RawOAuth is "`oauth`",
    required {
        /// Where the authorization server sends the owner back to: `/oauth/callback` on `oauth.listen` or the admin port, as
        /// browsers reach it.
        redirect_url: WebUrl,
    }
    optional {
        /// A port of its own for the callback, `/oauth/callback`, and nothing else: what browsers must reach, without the admin
        /// pages beside it. Without this it is on the admin port.
        listen: SocketAddr,
        /// Who the authorization server is (RFC 8414): the addresses that are not given here are asked for there, at the start
        /// and on reload, and callbacks that name another issuer are refused (RFC 9207).
        issuer: String,
        /// Where the owner of an account is sent to agree.
        authorize_url: WebUrl,
        /// Where codes and refresh tokens are exchanged.
        token_url: WebUrl,
        /// Where tokens are revoked (RFC 7009) when their client is. Without this as the issuer's metadata say, if the addresses
        /// are asked for there; else they are not revoked there.
        revocation_url: WebUrl,
        /// What is asked for.
        scopes: Vec<String> = Vec::new(),
        /// Fields that each request for tokens carries besides, such as `audience` or `resource`. No secrets: they are shown.
        parameters: Named<String, Placed<String>> = Named(Vec::new()),
        /// Fields that each link to connect a client carries besides, such as `prompt: consent` or `access_type: offline`, which
        /// some servers want before they give a refresh token.
        authorize_parameters: Named<String, Placed<String>> = Named(Vec::new()),
        /// Most time for one answer of the authorization server.
        timeout: Period = Period(Duration::from_secs(10)),
        /// The form of requests for tokens: `form` (RFC 6749) or `json`. Without this as the pack says, else `form`.
        body: BodyForm,
        /// How an application shows who it is: `basic` (`client_secret_basic`), `post` (`client_secret_post`), or `none` for one
        /// without a secret. Without this as the pack says, else as the issuer's metadata says, else `basic`.
        client_auth: ClientAuth,
        /// What a refresh carries besides the refresh token: `access_token`, the one that ends, and `scope`. Without this as the
        /// pack says, else nothing.
        refresh_sends: Vec<RefreshExtra>,
        /// Whether a callback must bring back the `state` of its link: `required`, or `optional` for an authorization server
        /// that does not. Then a callback without one counts for the one authorization that is pending, if it is one only.
        state: StateRule = StateRule::Required,
        /// How it is called with TLS.
        tls: RawServiceTls,
    }
}

/// Whether a callback must bring back the `state` of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateRule {
    Required,
    Optional,
}

impl FromYaml for StateRule {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
        match node.word(&["required", "optional"], reading.findings)? {
            "optional" => Some(StateRule::Optional),
            _ => Some(StateRule::Required),
        }
    }

    fn schema() -> Value {
        json!({"enum": ["required", "optional"]})
    }

    fn shown(&self) -> Value {
        json!(match self {
            StateRule::Required => "required",
            StateRule::Optional => "optional",
        })
    }
}

/// Values of the compiled pack that a configuration can give too, by the same words.
macro_rules! words {
    ($($name:ty),+) => { $(
        impl FromYaml for $name {
            fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
                <$name>::of_word(node.word(<$name>::WORDS, reading.findings)?)
            }

            fn schema() -> Value {
                json!({"enum": <$name>::WORDS})
            }

            fn shown(&self) -> Value {
                json!(self.word())
            }
        }
    )+ };
}
words!(BodyForm, ClientAuth, Priority, RefreshExtra);

impl FromYaml for Flow {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
        match node.word(&FLOWS, reading.findings)? {
            "client_credentials" => Some(Flow::ClientCredentials),
            _ => Some(Flow::AuthorizationCode),
        }
    }

    fn schema() -> Value {
        json!({"enum": FLOWS})
    }

    fn shown(&self) -> Value {
        json!(self.name())
    }
}

const FLOWS: [&str; 2] = ["authorization_code", "client_credentials"];

section! {
    /// A client without its tokens, whose keys carry the names of sides.
    RawClientBase is "a client",
    required {
        /// Its name in logs, metrics and the admin API.
        name: String,
    }
    optional {
        /// The secondary account that it acts on; without it the main one.
        company: String,
        /// The OAuth credentials that its calls to the new side go out with.
        grant: RawGrant,
        /// By side: the token that its calls to that side go out with, where they do not go out with a grant.
        credentials: Named<String, Placed<Secret<String>>> = Named(Vec::new()),
        /// When a side ends for this client, whatever is said of the side to others. A date that is set while the gateway runs
        /// (`switchback client sunset`) wins.
        sunset: RawClientSunset,
    }
}

section! {
    /// The end of a side for one client.
    RawClientSunset is "`sunset` of a client",
    required {
        /// From then on its calls are answered 410.
        at: Moment,
    }
    optional {
        /// The side that ends; without it the one that clients speak.
        side: Placed<String>,
        /// When the side became, or will become, deprecated for it.
        deprecated: Moment,
        /// Whether its answers say so, in `Sunset` (RFC 8594) and `Deprecation` (RFC 9745).
        announce: bool = true,
    }
}

section! {
    /// A window in which calls are turned away.
    RawBrownout is "a brownout",
    required {
        /// When it begins.
        from: Moment,
        /// When calls are answered again.
        until: Moment,
    }
    optional {
        /// The side whose fronts it is for; without it the one that clients speak.
        side: Placed<String>,
        /// Operations such as `GET /things/{id}`; without any, all calls of the side.
        operations: Vec<Placed<String>> = Vec::new(),
        /// Clients by name; without any, all.
        clients: Vec<Placed<String>> = Vec::new(),
        /// What clients are told, instead of the pack's text for `brownout`.
        reason: String = String::new(),
    }
}

section! {
    /// OAuth credentials.
    RawGrant is "`grant`",
    required {
        /// Id of the OAuth app.
        client_id: Secret<String>,
    }
    optional {
        /// Secret of the OAuth app; it has none where `oauth.client_auth` is `none`.
        client_secret: Secret<String>,
        /// How access tokens are got: `authorization_code`, by a person who agrees once, or `client_credentials`, by the app for
        /// itself.
        flow: Flow = Flow::AuthorizationCode,
        /// A refresh token to begin with. Used only while the store holds no grant for the client; without it the client
        /// is connected by `switchback client connect`.
        refresh_token: Secret<String>,
    }
}

section! {
    /// What is said about the end of a side (RFC 9745, RFC 8594).
    RawSunset is "an entry of `sunset`",
    required {}
    optional {
        /// When the side became, or will become, deprecated.
        deprecated: Moment,
        /// When it is expected to stop working.
        sunset: Moment,
        /// A page about the deprecation.
        policy: WebUrl,
        /// What to use instead.
        successor: WebUrl,
    }
}

section! {
    /// Bounds. Whatever passes one is refused with a named error, never cut.
    RawLimits is "`limits`",
    required {}
    optional {
        /// Memory that the process may have resident. Close to it, connections and requests earn 503. Without this the bound of
        /// the control group (cgroup) that the process is in, or else what the machine has.
        memory: Size,
        /// Client connections open at one time; further ones are told 503 and closed. Fewer where the limit of descriptors
        /// (`ulimit -n`) has no room for as many.
        connections: Count = Count(9_000),
        /// Of these, from one address (of IPv6, from one /64). Without this an address may have as many as are left to others.
        /// Connections from `trusted_proxies` are not counted so.
        connections_per_address: Count,
        /// Requests being answered at one time; further ones earn 503.
        requests: Count = Count(4_096),
        /// Requests of one client being answered at one time; further ones earn 503.
        requests_per_client: Count = Count(512),
        /// Requests in flight on one HTTP/2 connection.
        http2_streams: Count = Count(100),
        /// Bytes of a request's target, that is path and query; more earn 414.
        target_bytes: Size = Size(8 << 10),
        /// Header fields of a request, in number.
        headers: Count = Count(100),
        /// Header fields of a request, in bytes; more earn 431.
        header_bytes: Size = Size(16 << 10),
        /// Body of a request, as sent and once decoded; more earns 413.
        body_bytes: Size = Size(10 << 20),
        /// Body of a request that is forwarded as it comes to the service of the side that its client speaks; more earns 413.
        forwarded_bytes: Size = Size(1 << 30),
        /// Members of one object in a body that is read; more earn 413, or 502 in an answer.
        object_members: Count = Count(10_000),
        /// Values in the body of a request, members and elements of all depths; more earn 413.
        body_values: Count = Count(1_000_000),
        /// Arrays and objects within one another in a body that is read, from 8 to 256; more earn 413, or 502 in an answer.
        body_depth: Count = Count(64),
        /// One text or number of an answer that is translated while it passes, where the pack reads it; a longer one earns 502. Values
        /// that pass unread have no bound of their own, and those of bodies that are held whole have that of the body.
        scalar_bytes: Size = Size(1 << 20),
        /// Answer of an upstream that must be held whole to be translated; more earns 502.
        held_bytes: Size = Size(16 << 20),
        /// Bodies held by all requests together, and what is made of them; more earns 503. Never more than `memory` has room
        /// for.
        held_bytes_all: Size = Size(256 << 20),
        /// So much of an answer is translated before its first byte is sent, so that a fault in it is still a 502. A later one
        /// breaks the answer off.
        whole_bytes: Size = Size(64 << 10),
        /// Answer of an upstream that streams through, once decoded; beyond it the answer breaks off.
        answer_bytes: Size = Size(1 << 30),
        /// Hold translated answers to every rule of JSON and every bound on it, also in what passes by unread; what breaks one
        /// earns 502. Otherwise they are checked as far as they are read: UTF-8, brackets, and what the pack names.
        strict_answers: bool = true,
        /// How many times larger than its compressed form a body may be.
        decode_ratio: Count = Count(500),
        /// What may be held per HTTP/1.1 connection and direction.
        buffer_bytes: Size = Size(64 << 10),
        /// Time for the header fields of a request to arrive.
        header_timeout: Period = Period(Duration::from_secs(10)),
        /// Time between two pieces of a request's body.
        body_timeout: Period = Period(Duration::from_secs(10)),
        /// Bytes per second that a request's body must bring on average.
        body_bytes_per_second: Size = Size(1 << 10),
        /// Time that a client may refuse to take bytes of its answer; over HTTP/2 of each of its answers.
        write_timeout: Period = Period(Duration::from_secs(30)),
        /// Bytes per second that a client must take on average of an answer that it keeps waiting.
        answer_bytes_per_second: Size = Size(1 << 10),
        /// Time that a connection may stay open without a request.
        idle_timeout: Period = Period(Duration::from_secs(75)),
        /// Time that a connection which has gone over to another protocol, such as WebSocket, may be silent both ways.
        tunnel_idle_timeout: Period = Period(Duration::from_secs(300)),
        /// Time that it may last in all.
        tunnel_lifetime: Period = Period(Duration::from_secs(86_400)),
        /// Time to read on, and throw away, what a client still sends after the last answer of its connection, before the connection
        /// is closed: a client that sends to a closed connection loses the answer (RFC 9112, section 9.6).
        lingering_timeout: Period = Period(Duration::from_secs(10)),
        /// Bytes that are read so.
        lingering_bytes: Size = Size(64 << 20),
        /// Time to connect to an upstream, TLS included; room for a lost SYN to be sent again after one second and after three.
        connect_timeout: Period = Period(Duration::from_millis(3500)),
        /// Time from sending a call until the head of its answer, and between two pieces of its body. Calls that are forwarded as
        /// they come have `forwarded_idle_timeout` instead.
        upstream_timeout: Period = Period(Duration::from_secs(15)),
        /// Time from the head of a request until the head of its answer, all calls and retries included. Requests that are forwarded
        /// as they come have no such end.
        total_timeout: Period = Period(Duration::from_secs(30)),
        /// Longest silence of a request that is forwarded as it comes to the service of the side that its client speaks: time since
        /// the last byte in either direction, before its answer and within it. An upload, a long poll or a stream of events may take
        /// as long as it wants while it is not silent for longer.
        forwarded_idle_timeout: Period = Period(Duration::from_secs(60)),
        /// Time that a service has not been reached at all, after which operations that only it can answer are refused with the
        /// pack's reason, as if it were not configured. A call without a connection, one that is answered too late, and one that
        /// is answered 502, 503 or 504 has not reached it. Every five seconds one such call still tries to reach it.
        upstream_gone_after: Period = Period(Duration::from_secs(60)),
        /// Time that clients are still accepted after SIGTERM, while `/healthz/ready` says 503 and each answer is the last one of
        /// its connection: longer than balancers take to notice. SIGINT, and a second signal, stop at once.
        drain_delay: Period = Period(Duration::from_secs(5)),
        /// How long a starting gateway waits for a store that does not answer; then it ends.
        store_wait: Period = Period(Duration::from_secs(60)),
        /// Time that requests in flight get to finish when the gateway stops.
        drain_timeout: Period = Period(Duration::from_secs(30)),
        /// Calls to one upstream at one time; further ones earn 503 at once.
        upstream_calls: Count = Count(1_024),
        /// Of these, of one client. In any case a client has no more of them than are left to others.
        upstream_calls_per_client: Count = Count(1_024),
        /// Connections to one upstream kept for later.
        upstream_idle: Count = Count(256),
        /// How long they are kept: less than the upstream keeps them, or now and then a write meets their end and earns 502. One
        /// that says `Keep-Alive: timeout=5` is taken at its word. One of HTTP/2 that is in use and has been silent for as long is
        /// asked whether it is there, and has `connect_timeout` to answer.
        upstream_idle_timeout: Period = Period(Duration::from_secs(4)),
        /// Header fields of an upstream's answer, in number; more earn 502.
        upstream_headers: Count = Count(256),
        /// Header fields of an upstream's answer, in bytes; more earn 502. Every connection to an upstream may hold as much.
        upstream_header_bytes: Size = Size(32 << 10),
    }
}

section! {
    /// Logging.
    RawLog is "`log`",
    required {}
    optional {
        /// `text` for people or `json` for machines.
        format: LogFormat = LogFormat::Text,
        /// A level such as `info`, or directives such as `info,switchback::access=off` to leave out the access log. The
        /// variables `SWITCHBACK_LOG` and `RUST_LOG` win.
        level: Filter = Filter("info".to_owned()),
        /// Whether lines of the access log, and traces, say where clients connect from.
        client_address: bool = true,
    }
}

section! {
    /// What is told to collectors.
    RawTelemetry is "`telemetry`",
    required {}
    optional {
        /// Traces for OpenTelemetry; without this none are recorded.
        otlp: RawOtlp,
    }
}

section! {
    /// Traces by OTLP over HTTP, in protobuf.
    RawOtlp is "`telemetry.otlp`",
    required {
        /// The collector: its address without `/v1/traces`, such as `http://collector:4318`.
        endpoint: WebUrl,
    }
    optional {
        /// Fields of every message to the collector, such as its credential.
        headers: Named<String, Placed<Secret<String>>> = Named(Vec::new()),
        /// The share of traces that are recorded, from 0 to 1, of those that begin here. A client that sends a `traceparent` has
        /// decided already.
        ratio: Share = Share::ALL,
        /// Most time for one message to the collector, with all tries.
        timeout: Period = Period(Duration::from_secs(10)),
        /// Most spans that wait to be sent. What comes beyond is dropped, and counted.
        queue: Count = Count(2048),
    }
}

section! {
    /// Reloading.
    RawReload is "`reload`",
    required {}
    optional {
        /// Reload when the pack or this file changes. SIGHUP reloads in any case.
        watch: bool = true,
        /// How long files must stay unchanged before they are read.
        settle: Period = Period(Duration::from_millis(300)),
    }
}

/// A client: its tokens stand under `<side>_token`, so their keys cannot be known before the pack is.
#[derive(Clone, Debug)]
pub(super) struct RawClient {
    pub(super) base: RawClientBase,
    /// By side: how the client is known on fronts of that side.
    pub(super) tokens: Vec<(Placed<String>, Placed<Secret<String>>)>,
    /// Whether a token is given, right or wrong.
    pub(super) has_token: bool,
    pub(super) span: Span,
}

const TOKEN_SUFFIX: &str = "_token";

impl FromYaml for RawClient {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
        let (tokens, others): (Vec<_>, Vec<_>) = node
            .map(reading.findings)?
            .iter()
            .cloned()
            .partition(|(key, _)| key.name.ends_with(TOKEN_SUFFIX));
        let has_token = !tokens.is_empty();
        let mut read = Vec::new();
        for (key, value) in &tokens {
            let side = key.name.trim_end_matches(TOKEN_SUFFIX);
            let given = OneOrMore::<Placed<Secret<String>>>::read(value, reading);
            read.extend(
                given
                    .into_iter()
                    .flat_map(|given| given.0)
                    .map(|token| (Placed { value: side.to_owned(), span: key.span }, token)),
            );
        }
        let tokens = read;
        let base = RawClientBase::read(&Node { span: node.span, kind: Kind::Map(others) }, reading)?;
        Some(RawClient { base, tokens, has_token, span: node.span })
    }

    fn schema() -> Value {
        let mut schema = RawClientBase::schema();
        schema["patternProperties"] =
            json!({ format!("^.+{TOKEN_SUFFIX}$"): OneOrMore::<Secret<String>>::schema() });
        schema
    }

    fn shown(&self) -> Value {
        let mut shown = self.base.shown();
        for (side, token) in &self.tokens {
            shown[format!("{}{TOKEN_SUFFIX}", side.value)] = token.shown();
        }
        shown
    }
}

impl FromYaml for LogFormat {
    fn may_quote(text: &str) -> bool {
        is_word(text, &["text", "json"])
    }

    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
        match node.word(&["text", "json"], reading.findings)? {
            "json" => Some(LogFormat::Json),
            _ => Some(LogFormat::Text),
        }
    }

    fn schema() -> Value {
        json!({"enum": ["text", "json"]})
    }

    fn shown(&self) -> Value {
        json!(match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        })
    }
}

/// Words that people take for a level.
const LEVELS: [&str; 9] = ["off", "error", "warn", "info", "debug", "trace", "verbose", "critical", "notice"];

/// A checked filter of log events.
#[derive(Clone, Debug)]
pub(super) struct Filter(pub(super) String);

impl FromYaml for Filter {
    fn may_quote(text: &str) -> bool {
        (check_filter(text).is_ok() && is_name(text)) || is_word(text, &LEVELS)
    }

    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
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

    fn shown(&self) -> Value {
        json!(self.0)
    }
}
