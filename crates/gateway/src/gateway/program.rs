//! Builds [`Program`]s from their settings, at the start and at every reload. Services with unchanged
//! settings keep their connections.

use super::BuildError;
use crate::proxy::cors::{Cors, CorsSettings};
use crate::proxy::limits::{FrontLimits, LimitOverrides, Limits, UpstreamLimits};
use crate::proxy::origin::CallOrigin;
use crate::proxy::program::{Front, Program, ServedEvents, ShadowUpstreams, UnknownClientPolicy};
use crate::proxy::side_upstreams::SideUpstreams;
use crate::proxy::upstream::Upstream;
use crate::shadow::{Knowledge, OperationTable, ShadowSettings};
use crate::signature::Signature;
use crate::telemetry::otlp::Traces;
use crate::tls::ServiceTls;
use http::{HeaderName, HeaderValue, Uri};
use std::collections::HashMap;
use std::sync::Arc;
use switchback_engine::translate::Settings;
use switchback_plan::router::Router;
use switchback_plan::{Direction, Pack, PerSide, SideId};

/// Most response bytes that the shadow reads, a bound on the cost of any candidate.
const SHADOW_RESPONSE_BYTES_MAX: u64 = 64 << 20;

/// Describes a [`Program`]: a pack, the path prefixes of its sides, and the services to call.
#[derive(Clone, Default)]
pub struct ProgramSettings {
    /// The compiled pack. Required.
    pub pack: Option<Arc<Pack>>,
    /// Values for the operator configuration that the pack reads.
    pub settings: Arc<Settings>,
    /// The path prefixes of clients. At least one is required.
    pub fronts: Vec<FrontSettings>,
    /// The services of the sides and their hosts. A later one of the same name replaces an earlier
    /// one.
    pub services: Vec<ServiceSettings>,
    /// The limits of calls.
    pub limits: Arc<Limits>,
    /// The dual run. `None`: no operation has another phase than the default.
    pub dual: Option<DualSettings>,
    /// The exporter of traces.
    pub traces: Option<Arc<Traces>>,
}

/// A path prefix at which one side is served.
#[derive(Clone, Debug, Default)]
pub struct FrontSettings {
    /// Starts with `/` and has no `/` at its end, or is empty.
    pub prefix: String,
    /// The name of the side.
    pub side: String,
    /// The policy for unknown clients and calls while the side's own service is available.
    pub unknown: UnknownClientPolicy,
    /// Header fields of every response, such as `Deprecation` and `Sunset`.
    pub announcements: Vec<(HeaderName, HeaderValue)>,
    /// Cross-origin access of pages. `None`: as the services answer.
    pub cors: Option<CorsSettings>,
    /// Limits that the front replaces.
    pub limits: LimitOverrides,
    /// Limits that operations of the front replace, by operations as the contract writes them, such
    /// as `POST /things`.
    pub operation_limits: Vec<(String, LimitOverrides)>,
}

/// A service to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// `SIDE`, or `SIDE/HOST` for a host that the pack names.
    pub name: String,
    /// The base URL.
    pub address: Uri,
    /// The TLS settings.
    pub tls: ServiceTls,
    /// Signs translated calls.
    pub sign: Option<Signature>,
}

/// How both sides are compared.
#[derive(Clone)]
pub struct DualSettings {
    /// The limits of the shadow.
    pub shadow: ShadowSettings,
    /// The phases of each served side.
    pub phases: PerSide<Option<Arc<OperationTable>>>,
    /// Contracts and declared noise of the pack.
    pub knowledge: Arc<Knowledge>,
    /// Whether events of both sides are received and compared.
    pub has_own_events: bool,
}

/// The connected services. Clones share the connections.
#[derive(Clone, Debug, Default)]
pub struct Upstreams {
    clients: Connected,
    shadow: Connected,
}

/// Upstreams by the names of their services, each with the fingerprint of its settings.
type Connected = HashMap<String, (String, Arc<Upstream>)>;

impl ProgramSettings {
    pub(super) fn pack(&self) -> Result<&Arc<Pack>, BuildError> {
        self.pack.as_ref().ok_or(BuildError::NoPack)
    }

    fn side(&self, name: &str) -> Result<SideId, BuildError> {
        let sides = &self.pack()?.sides;
        let found = SideId::BOTH.into_iter().find(|side| sides[*side].name == name);
        found.ok_or_else(|| BuildError::UnknownSide {
            name: name.to_owned(),
            sides: sides.each_ref().map(|side| side.name.clone()),
        })
    }

    /// Checks the settings against the pack.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        let pack = self.pack()?;
        if self.fronts.is_empty() {
            return Err(BuildError::NoFront);
        }
        for FrontSettings { prefix, side, .. } in &self.fronts {
            if !prefix.is_empty() && (!prefix.starts_with('/') || prefix.ends_with('/')) {
                return Err(BuildError::Prefix(prefix.clone()));
            }
            self.side(side)?;
        }
        // A misspelt host is also missing, so unknown names are reported first.
        for service in &self.services {
            let (side, host) = service.name.split_once('/').unwrap_or((&service.name, ""));
            let hosts = &pack.sides[self.side(side)?].hosts;
            if !host.is_empty() && !hosts.iter().any(|known| known == host) {
                return Err(BuildError::UnknownHost { side: side.to_owned(), host: host.to_owned() });
            }
        }
        let is_there = |name: &str| self.services.iter().any(|service| service.name == name);
        for side in pack.sides.iter().filter(|side| is_there(&side.name)) {
            if let Some(host) = side.hosts.iter().find(|host| !is_there(&format!("{}/{host}", side.name))) {
                return Err(BuildError::NoHost { side: side.name.clone(), host: host.clone() });
            }
        }
        Ok(())
    }

    /// Connects to the services, without a call. Reuses the upstreams of `before` whose settings
    /// are unchanged; their limits must be unchanged too.
    ///
    /// # Errors
    ///
    /// The settings do not match the pack, or a service has an invalid address or unusable TLS
    /// files.
    pub fn connect(&self, before: &Upstreams) -> Result<Upstreams, BuildError> {
        self.check()?;
        let limits = self.limits.upstream;
        let clients = self.connect_for(CallOrigin::Client, limits, &before.clients)?;
        let Some(DualSettings { shadow, .. }) = &self.dual else {
            return Ok(Upstreams { clients, shadow: Connected::default() });
        };
        // The shadow has connections and limits of its own.
        let limits = UpstreamLimits {
            response_timeout: shadow.timeout,
            forwarded_idle_timeout: shadow.timeout,
            connect_timeout: limits.connect_timeout.min(shadow.timeout),
            // There are as many workers as calls, and each makes one call at a time for any client.
            // Twice as many slots leave every client's share large enough.
            in_flight_max: shadow.workers.saturating_mul(2).saturating_add(1),
            client_in_flight_max: shadow.workers,
            idle_max: shadow.workers,
            response_bytes_max: limits.response_bytes_max.min(SHADOW_RESPONSE_BYTES_MAX),
            ..limits
        };
        let shadow = self.connect_for(CallOrigin::Shadow, limits, &before.shadow)?;
        Ok(Upstreams { clients, shadow })
    }

    fn connect_for(
        &self,
        origin: CallOrigin,
        limits: UpstreamLimits,
        before: &Connected,
    ) -> Result<Connected, BuildError> {
        let mut connected = Connected::new();
        for ServiceSettings { name, address, tls, sign } in &self.services {
            let fingerprint = format!("{address} {}", tls.fingerprint());
            let upstream = match before.get(name) {
                // The fingerprint has no secrets, so signatures are compared by themselves.
                Some((before, upstream))
                    if *before == fingerprint && upstream.signature() == sign.as_ref() =>
                {
                    Arc::clone(upstream)
                }
                _ => {
                    let upstream = Upstream::with_tls(name, origin, address, tls, limits);
                    let upstream = upstream.map_err(|error| BuildError::Upstream(name.clone(), error))?;
                    Arc::new(upstream.with_signature(sign.clone()))
                }
            };
            connected.insert(name.clone(), (fingerprint, upstream));
        }
        Ok(connected)
    }

    /// Builds the program that calls these services.
    ///
    /// # Errors
    ///
    /// The settings do not match the pack, or a side to call has no service.
    pub fn program(&self, upstreams: &Upstreams) -> Result<Program, BuildError> {
        let sides = &self.pack()?.sides;
        self.program_with(|origin, side| {
            let connected = match origin {
                CallOrigin::Client => &upstreams.clients,
                CallOrigin::Shadow => &upstreams.shadow,
            };
            let switchback_plan::Side { name, hosts, .. } = &sides[side];
            let at = |name: &str| connected.get(name).map(|(_, upstream)| Arc::clone(upstream));
            let hosts = hosts.iter().map(|host| at(&format!("{name}/{host}")));
            Some(SideUpstreams::new(at(name)?, hosts.collect::<Option<Vec<_>>>()?))
        })
    }

    /// Builds the program that calls the services that `upstreams` returns.
    pub(super) fn program_with(
        &self,
        upstreams: impl Fn(CallOrigin, SideId) -> Option<SideUpstreams>,
    ) -> Result<Program, BuildError> {
        let pack = self.pack()?;
        let dual = self.dual.as_ref();
        let phases = |side: SideId| dual.and_then(|dual| dual.phases[side].clone());
        let mut fronts = Vec::new();
        for front in &self.fronts {
            let serves = self.side(&front.side)?;
            let called = serves.other();
            let shadow = dual.zip(upstreams(CallOrigin::Shadow, called)).map(|(dual, backend)| {
                let own = upstreams(CallOrigin::Shadow, serves);
                Arc::new(ShadowUpstreams { backend, own, knowledge: Arc::clone(&dual.knowledge) })
            });
            fronts.push(Front {
                prefix: front.prefix.clone(),
                serves,
                router: Router::new(&pack.directions[serves]),
                backend: upstreams(CallOrigin::Client, called)
                    .ok_or_else(|| BuildError::NoUpstream(pack.sides[called].name.clone()))?,
                own: upstreams(CallOrigin::Client, serves).filter(|own| !own.main().is_within()),
                unknown: front.unknown,
                beside: shadow,
                announcements: front.announcements.clone(),
                cors: front.cors.as_ref().map(Cors::new),
                limits: self.front_limits(front, &pack.directions[serves])?,
                phases: phases(serves).unwrap_or_default(),
            });
        }
        let events = pack.events.as_ref().zip(dual.filter(|dual| dual.has_own_events));
        let events = events.and_then(|(events, dual)| {
            let phases = phases(events.from.other())?;
            Some(ServedEvents { phases, knowledge: Arc::clone(&dual.knowledge) })
        });
        let program = Program::new(Arc::clone(pack), Arc::clone(&self.settings), fronts);
        Ok(program.delivering(events).with_traces(self.traces.clone()))
    }

    /// Returns the limits of a front, which inherits those of the program.
    fn front_limits(&self, front: &FrontSettings, direction: &Direction) -> Result<FrontLimits, BuildError> {
        let own = |(operation, own): &(String, LimitOverrides)| {
            let found = direction.routes.iter().find(|route| *route.operation.key == **operation);
            let unknown =
                || BuildError::UnknownOperation { side: front.side.clone(), operation: operation.clone() };
            Ok((found.ok_or_else(unknown)?.id, *own))
        };
        let operations = front.operation_limits.iter().map(own).collect::<Result<Vec<_>, BuildError>>()?;
        Ok(FrontLimits::new(self.limits.operation_limits().override_by(&front.limits), operations))
    }

    /// Returns whether a front serves this path.
    pub(super) fn is_served(&self, path: &str) -> bool {
        let prefixes = self.fronts.iter().map(|front| front.prefix.as_str());
        prefixes.into_iter().any(|prefix| path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')))
    }
}
