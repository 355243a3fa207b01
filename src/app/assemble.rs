//! Configuration and pack → what the data path runs: limits, upstreams, fronts. Used at the start and by every reload.

use super::StartError;
use super::announcements;
use super::pack::{self, LoadedPack, ReadPack};
use crate::config::{self, Config};
use crate::playground;
use std::collections::HashMap;
use std::sync::Arc;
use switchback_compiler::mapping::load::PackSource;
use switchback_engine::translate::stream::Check;
use switchback_gateway::body::BodyTimeout;
use switchback_gateway::clock::Clock;
use switchback_gateway::events::deliver::Deliverer;
use switchback_gateway::events::dual::EventsDual;
use switchback_gateway::events::readers::Readers;
use switchback_gateway::events::receive::Intake;
use switchback_gateway::events::{OwnEvents, Receiver, Receivers};
use switchback_gateway::http_client::ServiceAddress;
use switchback_gateway::memory::{self, Memory};
use switchback_gateway::proxy::forwarding::Forwarding;
use switchback_gateway::proxy::limits::Limits;
use switchback_gateway::proxy::origin::CallOrigin;
use switchback_gateway::proxy::program::{Current, Front, Program, ServedEvents, ShadowUpstreams};
use switchback_gateway::proxy::side_upstreams::SideUpstreams;
use switchback_gateway::proxy::upstream::Upstream;
use switchback_gateway::retire::{Brownout, ClientSunset, Rules, SideOperations};
use switchback_gateway::server;
use switchback_gateway::shadow::{self, Served, Table};
use switchback_gateway::store::Store;
use switchback_gateway::telemetry::otlp::{OtlpSettings, Traces};
use switchback_gateway::tls::ServiceTls;
use switchback_gateway::token::OAuth;
use switchback_gateway::tunnel::TunnelLimits;
use switchback_json::{self as json, Value};
use switchback_plan::router::Router;
use switchback_plan::{Effect, EventRoute, Pack, PerSide, Route, SideId};
use tokio::sync::{Notify, Semaphore};

/// A size as the program counts in memory. Sizes that no machine has are as good as none.
fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// A number of things.
fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The bounds of the data path.
pub(super) fn limits(limits: &config::Limits) -> Limits {
    Limits {
        target_bytes_max: bytes(limits.target_bytes),
        header_bytes_max: bytes(limits.header_bytes),
        request_bytes_max: limits.body_bytes,
        forwarded_bytes_max: limits.forwarded_bytes,
        object_members_max: count(limits.object_members),
        request_values_max: count(limits.body_values),
        body_depth_max: count(limits.body_depth),
        scalar_bytes_max: bytes(limits.scalar_bytes),
        held_bytes_max: limits.held_bytes,
        whole_bytes_max: limits.whole_bytes,
        response_bytes_max: limits.answer_bytes,
        answer_check: if limits.strict_answers { Check::Grammar } else { Check::Lenient },
        decode_ratio_max: u64::from(limits.decode_ratio),
        in_flight_max: count(limits.requests),
        client_in_flight_max: count(limits.requests_per_client),
        held_bytes_all_max: limits.held_bytes_all,
        request_body_timeout: BodyTimeout {
            idle: limits.body_timeout,
            bytes_per_second_min: limits.body_bytes_per_second,
        },
        total_timeout: limits.total_timeout,
        connect_timeout: limits.connect_timeout,
        upstream_timeout: limits.upstream_timeout,
        forwarded_idle_timeout: limits.forwarded_idle_timeout,
        upstream_gone_after: limits.upstream_gone_after,
        upstream_in_flight_max: count(limits.upstream_calls),
        client_upstream_in_flight_max: count(limits.upstream_calls_per_client),
        upstream_idle_max: count(limits.upstream_idle),
        upstream_idle_timeout: limits.upstream_idle_timeout,
        upstream_fields_max: count(limits.upstream_headers),
        upstream_head_bytes_max: bytes(limits.upstream_header_bytes),
    }
}

/// The memory that the process may have.
pub(super) fn memory(limits: &config::Limits) -> Memory {
    let bytes_max = limits.memory.or_else(memory::limit);
    bytes_max.map_or_else(|| Memory::new(u64::MAX), Memory::of_process)
}

/// The bounds of the data path, as far as the memory has room for what they allow.
pub(super) fn fitted(limits: Limits, memory: &Memory) -> Limits {
    let requests_max = usize::try_from(memory.bytes_max() / REQUEST_BYTES).unwrap_or(usize::MAX);
    Limits { in_flight_max: limits.in_flight_max.min(requests_max.max(1)), ..limits }
}

/// Bytes that a request takes which holds no body: buffers towards both sides and its work.
const REQUEST_BYTES: u64 = 64 << 10;

/// The bounds of the listener for clients.
pub(super) fn listener_options(config: &Config, memory: &Memory, descriptors: u64) -> server::Options {
    let limits = &config.limits;
    // All connections may have as much as a quarter of the memory in their buffers, were they a thousand.
    let buffer_bytes = (memory.bytes_max() / 4096).max(2 * limits.header_bytes.max(HEAD_BYTES_MIN));
    server::Options {
        connections_max: count(limits.connections).min(bytes(descriptors)),
        connections_per_address_max: limits.connections_per_address.map(count),
        trusted_proxies: config.trusted_proxies.clone(),
        memory: Some(memory.clone()),
        evicts: false,
        is_measured: true,
        header_timeout: limits.header_timeout,
        idle_timeout: limits.idle_timeout,
        write_timeout: limits.write_timeout,
        answer_bytes_per_second_min: limits.answer_bytes_per_second,
        headers_max: count(limits.headers),
        header_bytes_max: bytes(limits.header_bytes),
        buffer_bytes_max: bytes(limits.buffer_bytes.min(buffer_bytes)),
        lingering_timeout: limits.lingering_timeout,
        lingering_bytes_max: limits.lingering_bytes,
        tunnel: TunnelLimits { idle: limits.tunnel_idle_timeout, lifetime: limits.tunnel_lifetime },
        h2_streams_max: limits.http2_streams,
        // Who the peer is says also whom to believe, and by which protocol clients ask.
        tells_peer: config.forwarded.names_peer()
            || config.logs_address
            || config.tls.is_some()
            || !config.trusted_proxies.is_empty(),
        grace: limits.drain_timeout,
    }
}

/// Tells the operator when not all connections can be had.
pub(super) fn warn_of_descriptors(config: &Config, options: &server::Options) {
    if options.connections_max < count(config.limits.connections) {
        tracing::warn!(
            configured = config.limits.connections,
            connections = options.connections_max,
            "the limit of descriptors has no room for all connections; raise it (ulimit -n)"
        );
    }
}

/// What forwarded requests say of the way they came.
pub(super) fn forwarding(config: &Config) -> Forwarding {
    Forwarding { fields: config.forwarded, trusted: config.trusted_proxies.clone().into() }
}

/// Room for a head however little memory there is.
const HEAD_BYTES_MIN: u64 = 8 << 10;

/// The bounds of the admin port, and of those of health and of the callback: few connections, small requests, whatever the
/// data path may do. Whoever fills them only closes his own connections: a new one takes the place of the oldest on which
/// nobody has shown the admin token.
pub(super) fn admin_options(limits: &config::Limits) -> server::Options {
    server::Options {
        is_measured: false,
        connections_max: ADMIN_CONNECTIONS_MAX,
        // A place is taken from others anyway.
        connections_per_address_max: Some(ADMIN_CONNECTIONS_MAX),
        evicts: true,
        // Wrong tokens are counted by address.
        tells_peer: true,
        grace: limits.drain_timeout,
        ..server::Options::default()
    }
}

/// Client connections that the limit of descriptors has room for, after what else the configuration may open. The limit is
/// raised to what the system allows first.
///
/// # Errors
///
/// There is room for hardly any: a gateway that serves nobody had better not look ready.
pub(super) fn descriptors(config: &Config) -> Result<u64, StartError> {
    let limits = &config.limits;
    let upstreams = config.services().count() as u64;
    let calls = u64::from(limits.upstream_calls)
        + u64::from(limits.upstream_idle)
        + 2 * u64::from(config.shadow.calls);
    let callback = config.oauth.as_ref().and_then(|oauth| oauth.listen);
    let ports = 1 + u64::from(config.health.is_some()) + u64::from(callback.is_some());
    let others = OTHER_DESCRIPTORS + ports * ADMIN_CONNECTIONS_MAX as u64;
    let Some(limit) = server::raise_descriptors() else { return Ok(u64::from(limits.connections)) };
    // A call needs a connection only while a client waits for it: with few descriptors there are few of both.
    let left = limit.saturating_sub(others);
    let room = left.saturating_sub(upstreams * calls).max(left / 2);
    let needed = others + 2 * CONNECTIONS_MIN;
    if limit < needed { Err(StartError::Descriptors { limit, needed }) } else { Ok(room) }
}

/// Client connections below which a gateway does not start.
const CONNECTIONS_MIN: u64 = 16;

/// Descriptors of the store, the log, the listeners, files being read, and connections being refused.
const OTHER_DESCRIPTORS: u64 = 96;

const ADMIN_CONNECTIONS_MAX: usize = 64;

/// The authorization server as `token` wants it, asked as the configuration says, else as the pack says.
pub(super) fn oauth(oauth: &config::OAuth, pack: &Pack) -> Result<OAuth, StartError> {
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
        requests,
        parameters: oauth.parameters.clone(),
        authorize_parameters: oauth.authorize_parameters.clone(),
        is_state_optional: oauth.is_state_optional,
        tls: oauth.tls.value.clone(),
    })
}

/// The upstreams, by side and by `SIDE/HOST`. One that is called as before is kept, with its connections; the text says how.
type Upstreams = HashMap<String, (String, Arc<Upstream>)>;

fn upstreams(config: &Config, limits: &Arc<Limits>, before: &Upstreams) -> Result<Upstreams, StartError> {
    upstreams_for(CallOrigin::Client, config, limits, before)
}

/// The same services with connections and limits of the shadow's own.
fn shadow_upstreams(config: &Config, limits: &Limits, before: &Upstreams) -> Result<Upstreams, StartError> {
    let limits = Limits {
        upstream_timeout: config.shadow.timeout,
        forwarded_idle_timeout: config.shadow.timeout,
        connect_timeout: limits.connect_timeout.min(config.shadow.timeout),
        // Its workers are as many as its calls, each makes one at a time, and whose request they work on is all the same.
        // Twice as many slots, so that no client's share of them is ever too small.
        upstream_in_flight_max: count(config.shadow.calls).saturating_mul(2).saturating_add(1),
        client_upstream_in_flight_max: count(config.shadow.calls),
        upstream_idle_max: count(config.shadow.calls),
        response_bytes_max: limits.response_bytes_max.min(SHADOW_ANSWER_BYTES_MAX),
        ..limits.clone()
    };
    upstreams_for(CallOrigin::Shadow, config, &Arc::new(limits), before)
}

/// Bytes of one answer that the shadow reads: whatever a candidate sends, it costs no more than this.
const SHADOW_ANSWER_BYTES_MAX: u64 = 64 << 20;

fn upstreams_for(
    role: CallOrigin,
    config: &Config,
    limits: &Arc<Limits>,
    before: &Upstreams,
) -> Result<Upstreams, StartError> {
    let mut upstreams = Upstreams::new();
    for (name, url, tls) in config.services() {
        let way = way(url, tls);
        let upstream = match before.get(&name) {
            Some((before, upstream)) if *before == way => Arc::clone(upstream),
            _ => {
                let upstream = Upstream::secured(&name, role, url.uri(), tls, Arc::clone(limits));
                Arc::new(upstream.map_err(|error| StartError::Upstream(name.clone(), error))?)
            }
        };
        upstreams.insert(name, (way, upstream));
    }
    Ok(upstreams)
}

/// Everything by which a service is called, the content of the files included.
pub(super) fn way(url: &config::WebUrl, tls: &ServiceTls) -> String {
    let files = tls.files().map(|file| (file.display().to_string(), std::fs::read(file).unwrap_or_default()));
    format!("{url} {tls:?} {}", pack::hash(&PackSource::from_files(files.collect())))
}

/// All services that are called.
pub(super) struct Services {
    /// On behalf of clients.
    pub(super) upstreams: Upstreams,
    /// On behalf of the shadow.
    pub(super) shadow: Upstreams,
    /// What traces go to, with its settings.
    traces: Option<(OtlpSettings, Arc<Traces>)>,
}

impl Services {
    /// Those of a configuration; with `before`, what has not changed stays as it is.
    pub(super) fn new(
        config: &Config,
        limits: &Arc<Limits>,
        before: Option<&Services>,
    ) -> Result<Services, StartError> {
        let none = Upstreams::new();
        Ok(Services {
            upstreams: upstreams(config, limits, before.map_or(&none, |before| &before.upstreams))?,
            shadow: shadow_upstreams(config, limits, before.map_or(&none, |before| &before.shadow))?,
            traces: traces(config, before)?,
        })
    }

    /// What traces are recorded with.
    pub(super) fn traces(&self) -> Option<&Arc<Traces>> {
        self.traces.as_ref().map(|(_, traces)| traces)
    }
}

/// Those whose settings have not changed go on.
fn traces(
    config: &Config,
    before: Option<&Services>,
) -> Result<Option<(OtlpSettings, Arc<Traces>)>, StartError> {
    let Some(settings) = &config.otlp else { return Ok(None) };
    let running = before.and_then(|before| before.traces.as_ref());
    let traces = match running.filter(|(running, _)| running == settings) {
        Some((_, traces)) => Arc::clone(traces),
        None => Traces::start(settings)?,
    };
    Ok(Some((settings.clone(), traces)))
}

/// What takes events in, and what delivers them where somebody receives some.
pub(super) fn events(
    config: &Config,
    program: &Current,
    store: &Store,
    memory: &Memory,
    clock: &Clock,
    dual: EventsDual,
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
    let (settings, queued) = (config.events.settings, Arc::new(Notify::new()));
    let places = count(config.limits.requests_per_client);
    let intake = Intake {
        receivers: receivers.clone(),
        settings,
        program: Arc::clone(program),
        store: store.clone(),
        memory: memory.part(config.limits.held_bytes_all),
        clock: clock.clone(),
        body_timeout: limits(&config.limits).request_body_timeout,
        // No more than there is memory for.
        readers: Readers::new(places.min(bytes(config.limits.held_bytes_all / settings.body_bytes.max(1)))),
        places: Arc::new(Semaphore::new(places)),
        dual: dual.clone(),
        queued: Arc::clone(&queued),
    };
    if receivers.is_empty() {
        return Ok((intake, None));
    }
    let (program, store) = (Arc::clone(program), store.clone());
    let deliverer = Deliverer::new(receivers, settings, program, store, clock.clone(), dual, queued);
    Ok((intake, Some(deliverer.map_err(StartError::Events)?)))
}

/// What the shadow may cost.
pub(super) fn shadow(shadow: &config::Shadow) -> shadow::Settings {
    shadow::Settings {
        sample: shadow.sample,
        noise: shadow.noise,
        timed: shadow.timed,
        read_back: shadow.read_back,
        read_backs: count(shadow.read_backs),
        queue: count(shadow.queue),
        queue_bytes: shadow.queue_bytes,
        body_bytes: bytes(shadow.body_bytes),
        workers: count(shadow.calls),
        timeout: shadow.timeout,
        keep: shadow.keep,
        records: shadow.findings,
        priority: shadow.priority,
    }
}

/// What serves: every front with its routes, phases, upstreams and announcements. The configuration was checked against
/// the pack.
pub(super) fn program(
    config: &Config,
    loaded: &LoadedPack,
    services: &Services,
    tables: &Tables,
) -> Result<Program, StartError> {
    let pack = &loaded.pack;
    let mut fronts = Vec::new();
    for (prefix, side) in prefixes(config, pack) {
        let table = tables[side].clone().unwrap_or_default();
        fronts.push(front(prefix, side, config, loaded, services, table)?);
    }
    let program = Program::new(Arc::clone(pack), Arc::clone(&loaded.settings), fronts);
    let told = loaded.pack.events.as_ref().and_then(|events| tables[events.from.other()].clone());
    let events = told.filter(|_| config.events.has_own());
    let events = events.map(|phases| ServedEvents { phases, knowledge: Arc::clone(&loaded.knowledge) });
    Ok(program.delivering(events).traced(services.traces().cloned()))
}

/// The pack as it serves with the settings of a configuration.
pub(super) fn under(config: &Config, read: ReadPack) -> Result<LoadedPack, StartError> {
    let text = config.settings.value.to_string();
    let given = Value::parse(text.as_bytes(), &json::Limits::DOCUMENT)
        .map_err(|error| StartError::Settings(error.to_string()))?;
    read.under(&given).map_err(|errors| {
        StartError::Settings(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })
}

/// The configured fronts; else the pack's old side, at its name.
fn prefixes(config: &Config, pack: &Pack) -> Vec<(String, SideId)> {
    if config.fronts.is_empty() {
        return vec![(format!("/{}", pack.sides[0].name), SideId::OLD)];
    }
    let side = |name: &str| if pack.sides[1].name == name { SideId::NEW } else { SideId::OLD };
    config.fronts.iter().map(|front| (front.prefix.as_str().to_owned(), side(&front.speaks))).collect()
}

fn front(
    prefix: String,
    serves: SideId,
    config: &Config,
    loaded: &LoadedPack,
    services: &Services,
    phases: Arc<Table>,
) -> Result<Front, StartError> {
    let pack = &loaded.pack;
    let name = |side: SideId| pack.sides[side].name.as_str();
    let of = |upstreams: &Upstreams, side: SideId| {
        let at = |name: &str| upstreams.get(name).map(|(_, upstream)| Arc::clone(upstream));
        let hosts = pack.sides[side].hosts.iter().map(|host| at(&format!("{}/{host}", name(side))));
        Some(SideUpstreams::new(at(name(side))?, hosts.collect::<Option<Vec<_>>>()?))
    };
    let upstream = |side: SideId| of(&services.upstreams, side);
    let beside = of(&services.shadow, serves.other()).map(|backend| {
        let own = of(&services.shadow, serves);
        Arc::new(ShadowUpstreams { backend, own, knowledge: Arc::clone(&loaded.knowledge) })
    });
    let unknown = config.fronts.iter().find(|front| front.prefix.as_str() == prefix);
    let unknown = unknown.map(|front| front.unknown).unwrap_or_default();
    let direction = &pack.directions[serves];
    let sunset = config.sunsets.iter().find(|sunset| sunset.side.value == name(serves));
    Ok(Front {
        prefix,
        serves,
        router: Router::new(direction),
        backend: upstream(serves.other())
            .ok_or_else(|| StartError::NoUpstream(name(serves.other()).to_owned()))?,
        own: upstream(serves),
        unknown,
        beside,
        announcements: sunset.map(announcements::fields).unwrap_or_default(),
        phases,
    })
}

/// Of each side that clients speak, the phases of its operations.
pub(super) type Tables = PerSide<Option<Arc<Table>>>;

/// What is tried in the playground: the pack that serves.
pub(super) fn tried(config: &Config, loaded: &LoadedPack) -> playground::Served {
    let fronts = prefixes(config, &loaded.pack).into_iter();
    playground::Served {
        files: Arc::clone(&loaded.files),
        settings: config.settings.value.to_string(),
        fronts: fronts.map(|(prefix, side)| (prefix, loaded.pack.sides[side].name.clone())).collect(),
        upstreams: config.services().map(|(name, url, tls)| (name, service_address(url, tls))).collect(),
        public_urls: config.public_urls().map(|(name, url)| (name, url.to_string())).collect(),
    }
}

/// Where a service is, for calls outside the data path.
pub fn service_address(url: &config::WebUrl, tls: &ServiceTls) -> ServiceAddress {
    ServiceAddress { url: url.to_string(), tls: tls.clone() }
}

/// What is retired by configuration, and what can be retired at run time. The configuration was checked against the pack.
pub(super) fn retired(config: &Config, loaded: &LoadedPack) -> Rules {
    let mut served: Vec<SideOperations> = Vec::new();
    for (_, side) in prefixes(config, &loaded.pack) {
        let name = &loaded.pack.sides[side].name;
        if served.iter().all(|known| known.side != *name) {
            let routes = loaded.pack.directions[side].routes.iter();
            let operations = routes.map(|route| route.operation.key.to_string()).collect();
            served.push(SideOperations { side: name.clone(), operations });
        }
    }
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
            set_ms: 0,
        })
    });
    Rules { brownouts: brownouts.collect(), sunsets: sunsets.collect(), served }
}

/// All operations that are served, in their configured phases, and the events that both versions send. Fronts of one side share
/// a table.
pub(super) fn tables(config: &Config, loaded: &LoadedPack) -> Tables {
    let spoken: Vec<SideId> = prefixes(config, &loaded.pack).into_iter().map(|(_, side)| side).collect();
    [SideId::OLD, SideId::NEW].map(|side| {
        let mut served = events_served(side, config, loaded);
        if spoken.contains(&side) {
            // By the number of a route first.
            served.splice(..0, routes_served(side, config, loaded));
        }
        let name = &loaded.pack.sides[side].name;
        (!served.is_empty()).then(|| Arc::new(Table::new(name, &loaded.served, served)))
    })
}

fn routes_served(side: SideId, config: &Config, loaded: &LoadedPack) -> Vec<Served> {
    let name = &loaded.pack.sides[side].name;
    let has_own = config.upstream(name).is_some();
    let served = |route: &Route| Served {
        operation: Arc::clone(&route.operation.key),
        writes: route.operation.effect == Effect::Write,
        configured: config.phases.of(name, &route.operation.key),
        has_own,
        is_event: false,
    };
    loaded.pack.directions[side].routes.iter().map(served).collect()
}

/// The events that receivers of a side are told of, where that side sends its own too.
fn events_served(side: SideId, config: &Config, loaded: &LoadedPack) -> Vec<Served> {
    let name = &loaded.pack.sides[side].name;
    let events = loaded.pack.events.as_ref().filter(|events| events.from.other() == side);
    let mut served: Vec<Served> = Vec::new();
    for told in events.iter().flat_map(|events| &events.routes).filter_map(EventRoute::told) {
        // Several may become one.
        let is_listed = served.iter().any(|served| served.operation == *told.operation);
        if config.events.has_own() && !is_listed {
            served.push(Served {
                operation: Arc::clone(told.operation),
                // Nothing is asked, so nothing is done twice.
                writes: false,
                configured: config.phases.of(name, told.operation),
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
    use std::sync::Arc;
    use switchback_gateway::body::Body;
    use switchback_gateway::proxy::Request;
    use switchback_gateway::proxy::context::{RequestContext, RequestId};
    use switchback_gateway::proxy::language::Language;
    use switchback_gateway::proxy::program::Program;
    use switchback_gateway::telemetry::trace::TraceParent;

    /// Requests go through many hands, any of which might print one.
    #[test]
    fn what_is_printed_of_a_request_holds_nothing_that_its_client_sent() {
        let loaded = pack::load(None).expect("the built-in pack is fit to serve");
        let nothing = switchback_json::Value::Object(switchback_json::Object::new());
        let loaded = loaded.under(&nothing).expect("no setting is wrong");
        let program = Arc::new(Program::new(loaded.pack, Arc::default(), Vec::new()));
        let sent = http::Request::get("/path?key=secret-1").header("authorization", "Bearer secret-2");
        let (head, ()) = sent.body(()).expect("it is a request").into_parts();
        let context = RequestContext::new(RequestId(7), TraceParent::start(1, 2), head, program, Language(0));
        let shown = format!("{:?}", Request { context: Arc::new(context), body: Body::full("secret-3") });
        assert!(shown.contains("RequestId(7)") && !shown.contains("secret"), "{shown}");
    }
}
