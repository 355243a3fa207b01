//! Converts configuration and pack into the parts of the data path: limits, upstreams, fronts. Used
//! at start and by every reload.

use super::StartError;
use super::announcements;
use super::pack::{LoadedPack, ReadPack};
use crate::config::{self, Config};
use crate::playground;
use std::sync::Arc;
use switchback_gateway::body::BodyTimeout;
use switchback_gateway::events::deliver::Deliverer;
use switchback_gateway::events::dual::EventsDual;
use switchback_gateway::events::readers::Readers;
use switchback_gateway::events::receive::Intake;
use switchback_gateway::events::{EventParts, OwnEvents, Receiver, Receivers};
use switchback_gateway::http_client::ServiceAddress;
use switchback_gateway::memory::{self, Memory};
use switchback_gateway::proxy::forwarding::Forwarding;
use switchback_gateway::proxy::limits::{BodyLimits, Limits, RequestLimits, UpstreamLimits};
use switchback_gateway::proxy::stack::StackParts;
use switchback_gateway::retire::{Brownout, ClientSunset, RetirementRules, SideOperations};
use switchback_gateway::server;
use switchback_gateway::shadow::{OperationTable, Served};
use switchback_gateway::telemetry::otlp::{OtlpSettings, Traces};
use switchback_gateway::tls::ServiceTls;
use switchback_gateway::token::OAuth;
use switchback_gateway::tunnel::TunnelLimits;
use switchback_gateway::{DualSettings, FrontSettings, ProgramSettings, ServiceSettings};
use switchback_json::{self as json, Value};
use switchback_plan::{Effect, EventRoute, Pack, PerSide, Route, SideId};
use tokio::sync::{Notify, Semaphore};

/// Converts a size. Sizes beyond the address space count as unlimited.
pub(super) fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Converts a count.
fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Converts the limits of the data path.
pub(super) fn limits(limits: &config::LimitsConfig) -> Limits {
    Limits {
        requests: RequestLimits {
            target_bytes_max: bytes(limits.target_bytes),
            header_bytes_max: bytes(limits.header_bytes),
            body_timeout: BodyTimeout {
                idle: limits.body_timeout,
                bytes_per_second_min: limits.body_bytes_per_second,
            },
            in_flight_max: count(limits.requests),
            client_in_flight_max: count(limits.requests_per_client),
            total_timeout: limits.total_timeout,
        },
        bodies: BodyLimits {
            request_bytes_max: limits.body_bytes,
            forwarded_bytes_max: limits.forwarded_bytes,
            object_members_max: count(limits.object_members),
            request_values_max: count(limits.body_values),
            depth_max: count(limits.body_depth),
            scalar_bytes_max: bytes(limits.scalar_bytes),
            held_bytes_max: limits.held_bytes,
            held_bytes_all_max: limits.held_bytes_all,
            whole_bytes_max: limits.whole_bytes,
            decode_ratio_max: u64::from(limits.decode_ratio),
        },
        upstream: UpstreamLimits {
            connect_timeout: limits.connect_timeout,
            response_timeout: limits.upstream_timeout,
            forwarded_idle_timeout: limits.forwarded_idle_timeout,
            gone_after: limits.upstream_gone_after,
            in_flight_max: count(limits.upstream_calls),
            client_in_flight_max: count(limits.upstream_calls_per_client),
            head_bytes_max: bytes(limits.upstream_header_bytes),
            fields_max: count(limits.upstream_headers),
            response_bytes_max: limits.answer_bytes,
            idle_max: count(limits.upstream_idle),
            idle_timeout: limits.upstream_idle_timeout,
        },
    }
}

/// Creates the memory budget: `limits.memory`, else the limit of the control group or machine, else
/// unlimited.
pub(super) fn memory(limits: &config::LimitsConfig) -> Memory {
    let bytes_max = limits.memory.or_else(memory::limit);
    bytes_max.map_or_else(|| Memory::new(u64::MAX), Memory::of_process)
}

/// Lowers `in_flight_max` to the number of requests that fit into the memory budget.
pub(super) fn fit_to_memory(limits: Limits, memory: &Memory) -> Limits {
    let requests_max = usize::try_from(memory.bytes_max() / REQUEST_BYTES).unwrap_or(usize::MAX);
    // At least one: a tiny budget must slow the gateway down, not reject every request.
    let in_flight_max = limits.requests.in_flight_max.min(requests_max.max(1));
    Limits { requests: RequestLimits { in_flight_max, ..limits.requests }, ..limits }
}

/// Memory of a request without a buffered body: connection buffers on both sides and its task.
const REQUEST_BYTES: u64 = 64 << 10;

/// Returns the options of the client listener.
pub(super) fn listener_options(config: &Config, memory: &Memory, descriptors: u64) -> server::ServerOptions {
    let limits = &config.limits;
    // Bound the buffers by a quarter of the memory, assuming a thousand connections.
    let buffer_bytes = (memory.bytes_max() / 4096).max(2 * limits.header_bytes.max(HEAD_BYTES_MIN));
    server::ServerOptions {
        connections: server::ConnectionLimits {
            max: count(limits.connections).min(bytes(descriptors)),
            per_address_max: limits.connections_per_address.map(count),
            // The client that a header names may have many connections through one balancer.
            trusted: [&config.trusted_proxies[..], &config.proxy_protocol].concat(),
        },
        proxied: config.proxy_protocol.clone(),
        memory: Some(memory.clone()),
        evicts: false,
        is_measured: true,
        timeouts: server::ConnectionTimeouts {
            header: limits.header_timeout,
            idle: limits.idle_timeout,
            write: limits.write_timeout,
            answer_bytes_per_second_min: limits.answer_bytes_per_second,
        },
        http: server::HttpLimits {
            headers_max: count(limits.headers),
            header_bytes_max: bytes(limits.header_bytes),
            buffer_bytes_max: bytes(limits.buffer_bytes.min(buffer_bytes)),
            h2_streams_max: limits.http2_streams,
        },
        lingering: server::Lingering { timeout: limits.lingering_timeout, bytes_max: limits.lingering_bytes },
        tunnel: TunnelLimits { idle: limits.tunnel_idle_timeout, lifetime: limits.tunnel_lifetime },
        // The peer address decides which forwarding headers are trusted, and the scheme that they
        // report.
        tells_peer: config.forwarded.names_peer()
            || config.logs_address
            || config.tls.is_some()
            || !config.trusted_proxies.is_empty(),
        grace: limits.drain_timeout,
    }
}

/// Logs a warning if the descriptor limit is too low for all configured connections.
pub(super) fn warn_of_descriptors(config: &Config, options: &server::ServerOptions) {
    if options.connections.max < count(config.limits.connections) {
        tracing::warn!(
            configured = config.limits.connections,
            connections = options.connections.max,
            "the limit of descriptors has no room for all connections; raise it (ulimit -n)"
        );
    }
}

/// Returns how forwarded requests set `Forwarded` and `X-Forwarded-*`.
pub(super) fn forwarding(config: &Config) -> Forwarding {
    Forwarding { fields: config.forwarded, trusted: config.trusted_proxies.clone().into() }
}

/// Smallest header buffer, regardless of the memory budget.
const HEAD_BYTES_MIN: u64 = 8 << 10;

/// Returns the options of the admin, health and callback ports: few connections and small requests,
/// independent of the data path. A client that exhausts them only closes connections without an
/// admin token: a new connection evicts the oldest of those.
pub(super) fn admin_options(limits: &config::LimitsConfig) -> server::ServerOptions {
    server::ServerOptions {
        is_measured: false,
        connections: server::ConnectionLimits {
            max: ADMIN_CONNECTIONS_MAX,
            // Eviction already bounds each address.
            per_address_max: Some(ADMIN_CONNECTIONS_MAX),
            trusted: Vec::new(),
        },
        evicts: true,
        // Failed tokens are counted by peer address.
        tells_peer: true,
        grace: limits.drain_timeout,
        ..server::ServerOptions::default()
    }
}

/// Returns how many client connections the descriptor limit allows after all other descriptors.
/// Raises the soft limit to the hard limit first.
///
/// # Errors
///
/// The limit leaves fewer than [`CONNECTIONS_MIN`] connections: such a gateway must not report
/// itself ready.
pub(super) fn descriptors(config: &Config) -> Result<u64, StartError> {
    let limits = &config.limits;
    let upstreams = config.services().count() as u64;
    // Calls in flight and idle connections, for clients and for the shadow.
    let calls =
        u64::from(limits.upstream_calls) + u64::from(limits.upstream_idle) + 2 * config.shadow.workers as u64;
    // Each port of operators may have its full number of connections at the same time.
    let callback = config.oauth.as_ref().and_then(|oauth| oauth.listen);
    let ports = 1 + u64::from(config.health.is_some()) + u64::from(callback.is_some());
    let others = OTHER_DESCRIPTORS + ports * ADMIN_CONNECTIONS_MAX as u64;
    // Without a limit from the system, the configuration alone decides.
    let Some(limit) = server::raise_descriptors() else { return Ok(u64::from(limits.connections)) };
    // A call needs a connection only while a client waits for it, so the two share a scarce limit.
    // Clients get at least half.
    let left = limit.saturating_sub(others);
    let room = left.saturating_sub(upstreams * calls).max(left / 2);
    // Twice, since `room` may be only half of the remaining descriptors.
    let needed = others + 2 * CONNECTIONS_MIN;
    if limit < needed { Err(StartError::Descriptors { limit, needed }) } else { Ok(room) }
}

/// Fewest client connections that a gateway starts with.
const CONNECTIONS_MIN: u64 = 16;

/// Descriptors of the store, the log, the listeners, files being read, and connections being
/// rejected.
const OTHER_DESCRIPTORS: u64 = 96;

const ADMIN_CONNECTIONS_MAX: usize = 64;

/// Converts the settings of the authorization server. The request format of the configuration
/// overrides that of the pack.
pub(super) fn oauth(oauth: &config::OAuthConfig, pack: &Pack) -> Result<OAuth, StartError> {
    let url = |url: &config::WebUrl| url.to_string().parse().map_err(|_| StartError::Url(url.to_string()));
    let url_if = |given: &Option<config::WebUrl>| given.as_ref().map(url).transpose();
    let requests = oauth.requests.clone().or(pack.sides[1].credential.tokens.clone());
    Ok(OAuth {
        issuer: oauth.issuer.clone(),
        authorize_url: url_if(&oauth.authorize_url)?,
        token_url: url_if(&oauth.token_url)?,
        revocation_url: url_if(&oauth.revocation_url)?,
        redirect_url: url(&oauth.redirect_url)?,
        scopes: oauth.scopes.clone(),
        timeout: oauth.timeout,
        assertion_audience: oauth.assertion_audience.clone(),
        requests,
        parameters: oauth.parameters.clone(),
        authorize_parameters: oauth.authorize_parameters.clone(),
        is_state_optional: oauth.is_state_optional,
        tls: oauth.tls.value.clone(),
    })
}

/// Starts the trace exporter, or reuses the running one if its settings are unchanged.
pub(super) fn traces(
    settings: Option<&OtlpSettings>,
    before: Option<(&OtlpSettings, &Arc<Traces>)>,
) -> Result<Option<Arc<Traces>>, StartError> {
    let Some(settings) = settings else { return Ok(None) };
    Ok(Some(match before.filter(|(before, _)| *before == settings) {
        Some((_, traces)) => Arc::clone(traces),
        None => Traces::start(settings)?,
    }))
}

/// Builds the event intake, and the deliverer if there are receivers.
pub(super) fn events(
    config: &Config,
    stack: &StackParts,
    dual: &EventsDual,
) -> Result<(Intake, Option<Deliverer>), StartError> {
    let receiver = |receiver: &config::EventReceiver| Receiver {
        name: receiver.name.clone(),
        path: receiver.path.value.clone(),
        verify: receiver.verify.clone(),
        url: receiver.url.uri().clone(),
        sign: receiver.sign.clone(),
        own: receiver
            .own
            .as_ref()
            .map(|own| OwnEvents { path: own.path.value.clone(), verify: own.verify.clone() }),
    };
    let receivers = Receivers::new(config.events.receivers.iter().map(receiver).collect());
    let settings = config.events.settings;
    let places = count(config.limits.requests_per_client);
    let parts = EventParts {
        receivers,
        settings,
        program: Arc::clone(&stack.program),
        store: stack.store.clone(),
        clock: stack.clock.clone(),
        dual: dual.clone(),
        queued: Arc::new(Notify::new()),
    };
    let deliverer = (!parts.receivers.is_empty()).then(|| Deliverer::new(parts.clone())).transpose();
    let intake = Intake {
        parts,
        memory: stack.memory.part(config.limits.held_bytes_all),
        body_timeout: stack.limits.requests.body_timeout,
        // Bound the readers by the memory for event bodies.
        readers: Readers::new(places.min(bytes(config.limits.held_bytes_all / settings.body_bytes.max(1)))),
        places: Arc::new(Semaphore::new(places)),
    };
    Ok((intake, deliverer.map_err(StartError::Events)?))
}

/// Describes the program: every front with its routes, phases, upstreams and announcements. The
/// configuration must have been checked against the pack.
pub(super) fn program(
    config: &Config,
    loaded: &LoadedPack,
    limits: &Arc<Limits>,
    phases: Tables,
    traces: Option<Arc<Traces>>,
) -> ProgramSettings {
    let pack = &loaded.pack;
    let own = |front: &config::FrontConfig| {
        front.operation_limits.iter().map(|(key, own)| (key.value.clone(), own.limits)).collect::<Vec<_>>()
    };
    let front = |(prefix, side): (String, SideId)| {
        let side = pack.sides[side].name.clone();
        let front = config.fronts.iter().find(|front| front.prefix.as_str() == prefix);
        let sunset = config.sunsets.iter().find(|sunset| sunset.side.value == side);
        FrontSettings {
            unknown: front.map(|front| front.unknown).unwrap_or_default(),
            announcements: sunset.map(announcements::fields).unwrap_or_default(),
            cors: front.and_then(|front| front.cors.clone()),
            limits: front.map(|front| front.limits.limits).unwrap_or_default(),
            operation_limits: front.into_iter().flat_map(own).collect(),
            prefix,
            side,
        }
    };
    let service = |(name, url, tls): (String, &config::WebUrl, &config::Placed<ServiceTls>)| {
        // Hosts carry the credential and the signature of their side.
        let side = name.split('/').next().unwrap_or_default();
        let sign = config.upstream(side).and_then(|upstream| upstream.sign.clone());
        ServiceSettings { name, address: url.uri().clone(), tls: tls.value.clone(), sign }
    };
    ProgramSettings {
        pack: Some(Arc::clone(pack)),
        settings: Arc::clone(&loaded.settings),
        fronts: prefixes(config, pack).into_iter().map(front).collect(),
        services: config.services().map(service).collect(),
        limits: Arc::clone(limits),
        dual: Some(DualSettings {
            shadow: config.shadow,
            phases,
            knowledge: Arc::clone(&loaded.knowledge),
            has_own_events: config.events.has_own(),
        }),
        traces,
    }
}

/// Applies the configured settings to the pack.
pub(super) fn apply_settings(config: &Config, read: ReadPack) -> Result<LoadedPack, StartError> {
    // The engine has its own JSON values, which keep numbers as written. Text is the form that both share.
    let text = config.settings.value.to_string();
    let given = Value::parse(text.as_bytes(), &json::Limits::DOCUMENT)
        .map_err(|error| StartError::Settings(error.to_string()))?;
    read.with_settings(&given).map_err(|errors| {
        StartError::Settings(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })
}

/// Returns the configured fronts, or the pack's old side at a prefix of its name.
fn prefixes(config: &Config, pack: &Pack) -> Vec<(String, SideId)> {
    if config.fronts.is_empty() {
        return vec![(format!("/{}", pack.sides[0].name), SideId::OLD)];
    }
    // `against_pack` has rejected any other name.
    let side = |name: &str| if pack.sides[1].name == name { SideId::NEW } else { SideId::OLD };
    config.fronts.iter().map(|front| (front.prefix.as_str().to_owned(), side(&front.speaks))).collect()
}

/// The phases of each side that clients speak.
pub(super) type Tables = PerSide<Option<Arc<OperationTable>>>;

/// Returns the input of the playground: the served pack, its settings and the services.
pub(super) fn playground_pack(config: &Config, loaded: &LoadedPack) -> playground::ServedPack {
    let fronts = prefixes(config, &loaded.pack).into_iter();
    playground::ServedPack {
        files: Arc::clone(&loaded.files),
        settings: config.settings.value.to_string(),
        fronts: fronts.map(|(prefix, side)| (prefix, loaded.pack.sides[side].name.clone())).collect(),
        upstreams: config.services().map(|(name, url, tls)| (name, service_address(url, tls))).collect(),
        public_urls: config.public_urls().map(|(name, url)| (name, url.to_string())).collect(),
        writable: config
            .mapping
            .clone()
            // Edits of a restored pack would be saved among other files.
            .filter(|_| config.is_mapping_writable && loaded.restored.is_none()),
    }
}

/// Returns the address of a service, for calls outside the data path.
pub fn service_address(url: &config::WebUrl, tls: &ServiceTls) -> ServiceAddress {
    ServiceAddress { url: url.to_string(), tls: tls.clone() }
}

/// Returns the configured brownouts and sunsets, and the operations that can be retired at run
/// time. The configuration must have been checked against the pack.
pub(super) fn retirement_rules(config: &Config, loaded: &LoadedPack) -> RetirementRules {
    let mut served: Vec<SideOperations> = Vec::new();
    for (_, side) in prefixes(config, &loaded.pack) {
        let name = &loaded.pack.sides[side].name;
        // Several fronts may speak one side.
        if served.iter().all(|known| known.side != *name) {
            let routes = loaded.pack.directions[side].routes.iter();
            let operations = routes.map(|route| route.operation.key.to_string()).collect();
            served.push(SideOperations { side: name.clone(), operations });
        }
    }
    // Without a name there is one served side only, as `against_pack` requires.
    let meant = |named: Option<&config::Placed<String>>| {
        named.map(|side| side.value.clone()).unwrap_or_else(|| served[0].side.clone())
    };
    let names = |list: &[config::Placed<String>]| list.iter().map(|one| one.value.clone()).collect();
    let brownouts = config.brownouts.iter().zip(1..).map(|(brownout, number)| Brownout {
        id: format!("configuration-{number}"),
        side: meant(brownout.side.as_ref()),
        operations: names(&brownout.operations),
        clients: names(&brownout.clients),
        from_ms: brownout.from.unix_ms(),
        until_ms: brownout.until.unix_ms(),
        reason: brownout.reason.clone(),
        by: "configuration".to_owned(),
    });
    let sunsets = config.clients.iter().filter_map(|client| {
        let sunset = client.sunset.as_ref()?;
        Some(ClientSunset {
            client: client.name.value.clone(),
            side: meant(sunset.side.as_ref()),
            at_ms: Some(sunset.at.unix_ms()),
            deprecated_ms: sunset.deprecated.map(|moment| moment.unix_ms()),
            announce: sunset.announce,
            by: "configuration".to_owned(),
            // 0 marks a configured sunset: no operator has set it at a moment.
            set_ms: 0,
        })
    });
    RetirementRules { brownouts: brownouts.collect(), sunsets: sunsets.collect(), served }
}

/// Returns the configured phases of all served operations, and of the events that both versions
/// send. Fronts of one side share a table.
pub(super) fn tables(config: &Config, loaded: &LoadedPack) -> Tables {
    let spoken: Vec<SideId> = prefixes(config, &loaded.pack).into_iter().map(|(_, side)| side).collect();
    [SideId::OLD, SideId::NEW].map(|side| {
        let mut served = events_served(side, config, loaded);
        if spoken.contains(&side) {
            // Routes first: their position in the table is their route number.
            served.splice(..0, routes_served(side, config, loaded));
        }
        let name = &loaded.pack.sides[side].name;
        (!served.is_empty()).then(|| Arc::new(OperationTable::new(name, &loaded.served, served)))
    })
}

fn routes_served(side: SideId, config: &Config, loaded: &LoadedPack) -> Vec<Served> {
    let name = &loaded.pack.sides[side].name;
    let has_own = config.upstream(name).is_some();
    let served = |route: &Route| Served {
        operation: Arc::clone(&route.operation.key),
        writes: route.operation.effect == Effect::Write,
        configured: config.phases.for_operation(name, &route.operation.key),
        has_own,
        is_event: false,
    };
    loaded.pack.directions[side].routes.iter().map(served).collect()
}

/// Returns the events that receivers of a side are sent, if that side sends events itself.
fn events_served(side: SideId, config: &Config, loaded: &LoadedPack) -> Vec<Served> {
    let name = &loaded.pack.sides[side].name;
    let events = loaded.pack.events.as_ref().filter(|events| events.from.other() == side);
    let mut served: Vec<Served> = Vec::new();
    for told in events.iter().flat_map(|events| &events.routes).filter_map(EventRoute::delivered) {
        // Several events may translate to one.
        let is_listed = served.iter().any(|served| served.operation == *told.operation);
        if config.events.has_own() && !is_listed {
            served.push(Served {
                operation: Arc::clone(told.operation),
                // An event makes no call, so no call can be executed twice.
                writes: false,
                configured: config.phases.for_operation(name, told.operation),
                has_own: true,
                is_event: true,
            });
        }
    }
    served
}

#[cfg(test)]
mod tests {
    use crate::app::pack;
    use crate::config::LimitsConfig;
    use std::sync::Arc;
    use switchback_gateway::body::Body;
    use switchback_gateway::proxy::Request;
    use switchback_gateway::proxy::context::{RequestContext, RequestId};
    use switchback_gateway::proxy::language::Language;
    use switchback_gateway::proxy::limits::Limits;
    use switchback_gateway::proxy::program::Program;
    use switchback_gateway::telemetry::trace::TraceParent;

    #[test]
    fn the_program_and_the_crate_have_the_same_default_limits() {
        let of_the_program = super::limits(&LimitsConfig::default());
        assert_eq!(format!("{of_the_program:#?}"), format!("{:#?}", Limits::default()));
    }

    /// Any code on the path of a request may print it.
    #[test]
    fn what_is_printed_of_a_request_holds_nothing_that_its_client_sent() {
        let loaded = pack::load(None).expect("the built-in pack is fit to serve");
        let nothing = switchback_json::Value::Object(switchback_json::Object::new());
        let loaded = loaded.with_settings(&nothing).expect("no setting is wrong");
        let program = Arc::new(Program::new(loaded.pack, Arc::default(), Vec::new()));
        let sent = http::Request::get("/path?key=secret-1").header("authorization", "Bearer secret-2");
        let (head, ()) = sent.body(()).expect("it is a request").into_parts();
        let context = RequestContext::new(RequestId(7), TraceParent::start(1, 2), head, program, Language(0));
        let shown = format!("{:?}", Request { context: Arc::new(context), body: Body::full("secret-3") });
        assert!(shown.contains("RequestId(7)") && !shown.contains("secret"), "{shown}");
    }
}
