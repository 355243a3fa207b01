//! The program of the data path: a compiled pack and the fronts at which it is served. A reload
//! creates a new program and replaces the current one atomically. Requests in flight finish with
//! the program that they started with.

use super::cors::Cors;
use super::error_form::ErrorForm;
use super::language::Language;
use super::limits::FrontLimits;
use super::origin::CallOrigin;
use super::side_upstreams::SideUpstreams;
use crate::shadow::{Knowledge, OperationTable, Phase};
use crate::store::GrantState;
use crate::telemetry::otlp::Traces;
use crate::token::Client;
use crate::token::carried::TokenPlace;
use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use switchback_engine::translate::Settings;
use switchback_engine::translate::stream::{self, Values};
use switchback_plan::router::Router;
use switchback_plan::{
    Credential, ErrorPlan, Pack, PerSide, ResponseBody, Route, RouteId, RouteKind, Side, SideId, ValueOp,
};

/// The program of new requests.
pub type CurrentProgram = Arc<ArcSwap<Program>>;

/// A pack and its fronts. Immutable.
#[derive(Debug)]
pub struct Program {
    pack: Arc<Pack>,
    /// Longest prefix first.
    fronts: Vec<Arc<Front>>,
    errors: PerSide<ErrorForm>,
    language_tags: Vec<HeaderValue>,
    settings: Arc<Settings>,
    values: Arc<Values>,
    /// Programs that transcode response bodies, by side, route, and response of the pair.
    transcoders: PerSide<Vec<Vec<Arc<stream::Program>>>>,
    /// By side: the `Vary` value of its responses.
    vary: PerSide<Option<HeaderValue>>,
    /// By side: the place of the token in a call.
    token_places: PerSide<Option<Arc<TokenPlace>>>,
    call_headers: PerSide<HeaderMap>,
    /// Delivery of events, if the pack has receivers.
    events: Option<ServedEvents>,
    /// Recorder of traces, if they are on.
    traces: Option<Arc<Traces>>,
}

/// A path prefix at which one side is served.
#[derive(Debug)]
pub struct Front {
    /// Starts with `/` and has no trailing slash; empty for the root.
    pub prefix: String,
    /// The side that is served.
    pub serves: SideId,
    /// Finds the routes of the served side.
    pub router: Router,
    /// The service of the other side, which receives translated calls.
    pub backend: SideUpstreams,
    /// The service of the served side itself, until it is switched off.
    pub own: Option<SideUpstreams>,
    /// Policy for unknown calls and clients while that service exists.
    pub unknown: UnknownClientPolicy,
    /// Upstreams of the shadow. `None`: no comparisons.
    pub beside: Option<Arc<ShadowUpstreams>>,
    /// Fields of every response of this front: `Deprecation`, `Sunset`, `Link`.
    pub announcements: Vec<(HeaderName, HeaderValue)>,
    /// Cross-origin access of pages. `None`: as the services answer.
    pub cors: Option<Cors>,
    /// Limits of its requests and their calls.
    pub limits: FrontLimits,
    /// The phase of each route; changes at runtime.
    pub phases: Arc<OperationTable>,
}

/// Policy for calls that match no contract, and for clients that are not enrolled, while the
/// front's own service exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownClientPolicy {
    /// Rejects them, as after the end of that service.
    Refuse,
    /// Forwards them to that service. Calls of known operations by unknown clients are forwarded
    /// only while that service answers the operation anyway.
    #[default]
    Forward,
    /// Forwards them in any phase: calls of unknown clients are never translated.
    ForwardAll,
}

/// The side whose events receivers get, and the rules for comparing both sides' events.
#[derive(Clone, Debug)]
pub struct ServedEvents {
    /// The phase of each event; changes at runtime.
    pub phases: Arc<OperationTable>,
    /// Declared noise for comparisons of two events.
    pub knowledge: Arc<Knowledge>,
}

/// The two services of a front for the shadow, with separate connections and limits, and the rules
/// of comparisons.
#[derive(Debug)]
pub struct ShadowUpstreams {
    /// The service of the other side.
    pub backend: SideUpstreams,
    /// The service of the served side, until it is switched off.
    pub own: Option<SideUpstreams>,
    /// Contracts and declared noise for comparisons of two responses.
    pub knowledge: Arc<Knowledge>,
}

impl Front {
    /// Returns the service that receives unknown calls.
    pub fn asked_about_strangers(&self) -> Option<&SideUpstreams> {
        self.own.as_ref().filter(|_| self.unknown != UnknownClientPolicy::Refuse)
    }

    /// Returns the upstreams of translated calls.
    pub(super) fn upstreams_for(&self, origin: CallOrigin) -> Option<&SideUpstreams> {
        match origin {
            CallOrigin::Client => Some(&self.backend),
            CallOrigin::Shadow => self.beside.as_ref().map(|beside| &beside.backend),
        }
    }

    /// Returns the phase of a route.
    pub fn phase(&self, route: RouteId) -> Phase {
        self.phases.phase(usize::from(route.0))
    }
}

impl Program {
    /// Creates a program. `settings` are the operator's values for the settings of the pack.
    pub fn new(pack: Arc<Pack>, settings: Arc<Settings>, mut fronts: Vec<Front>) -> Program {
        // The first match wins in `front`, and one prefix may contain another, such as the root
        // and `/v2`.
        fronts.sort_by_key(|front| std::cmp::Reverse(front.prefix.len()));
        let errors = SideId::BOTH.map(|side| ErrorForm::new(&pack, side));
        let language_tags = pack.languages.iter().filter_map(|tag| HeaderValue::from_str(tag).ok()).collect();
        let vary = SideId::BOTH.map(|side| vary(&pack.sides[side].credential));
        let token_places =
            SideId::BOTH.map(|side| TokenPlace::from_credential(&pack.sides[side].credential).map(Arc::new));
        let call_headers = SideId::BOTH.map(|side| call_headers(&pack.sides[side].credential));
        let transcoders =
            SideId::BOTH.map(|side| pack.directions[side].routes.iter().map(transcoders).collect());
        let values = Arc::new(Values { settings: Arc::clone(&settings), supplied: Vec::new() });
        let fronts = fronts.into_iter().map(Arc::new).collect();
        Program {
            errors,
            language_tags,
            settings,
            values,
            transcoders,
            vary,
            token_places,
            call_headers,
            fronts,
            pack,
            events: None,
            traces: None,
        }
    }

    /// Returns the program with this delivery of events.
    #[must_use]
    pub fn delivering(self, events: Option<ServedEvents>) -> Program {
        Program { events, ..self }
    }

    /// Returns whether the own service of a side's front does not exist or has been unreachable for
    /// so long that it counts as gone.
    pub fn is_own_service_gone(&self, serves: SideId) -> bool {
        let own =
            self.fronts.iter().filter(|front| front.serves == serves).find_map(|front| front.own.as_ref());
        own.is_none_or(|own| own.main().is_gone())
    }

    /// Returns whether requests of a client can be forwarded to the service of the served side. A
    /// grant that was never connected has no token to forward with.
    pub fn may_forward(&self, client: &Client, serves: SideId) -> bool {
        serves == SideId::OLD
            || client.fixed_token(&self.side(serves).name).is_some()
            || client.grant.state() != GrantState::Unconnected
    }

    /// Returns the delivery of events.
    pub fn events(&self) -> Option<&ServedEvents> {
        self.events.as_ref()
    }

    /// Returns the program with this recorder of traces.
    #[must_use]
    pub fn with_traces(self, traces: Option<Arc<Traces>>) -> Program {
        Program { traces, ..self }
    }

    /// Returns the recorder of traces.
    pub fn traces(&self) -> Option<&Arc<Traces>> {
        self.traces.as_ref()
    }

    /// Returns the pack of all fronts.
    pub fn pack(&self) -> &Arc<Pack> {
        &self.pack
    }

    /// Returns the operator's values for the settings of the pack.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Returns these values in the form that streams read.
    pub fn values(&self) -> &Arc<Values> {
        &self.values
    }

    /// Returns the program that transcodes a response body; `response` is its index in
    /// [`switchback_plan::Pair::responses`].
    pub fn transcoder(&self, serves: SideId, route: RouteId, response: usize) -> Arc<stream::Program> {
        Arc::clone(&self.transcoders[serves][route][response])
    }

    /// Returns the `Vary` value of responses to a side's clients.
    pub fn vary(&self, side: SideId) -> Option<&HeaderValue> {
        self.vary[side].as_ref()
    }

    /// Returns the pack's languages, the default first.
    pub fn languages(&self) -> &[String] {
        &self.pack.languages
    }

    /// Returns the `Content-Language` value of a language, or `None` if the pack does not have it.
    pub fn language_tag(&self, language: Language) -> Option<&HeaderValue> {
        self.language_tags.get(language.0)
    }

    /// Returns a route of the direction that serves a side.
    pub fn route(&self, serves: SideId, route: RouteId) -> &Route {
        &self.pack.directions[serves].routes[route]
    }

    /// Returns a side of the pack.
    pub fn side(&self, side: SideId) -> &Side {
        &self.pack.sides[side]
    }

    /// Returns how calls of a side carry their credential.
    pub fn credential(&self, side: SideId) -> &Credential {
        &self.side(side).credential
    }

    /// Returns the place of the token in a side's calls. `None`: the pack names no valid header.
    pub fn token_place(&self, side: SideId) -> Option<&Arc<TokenPlace>> {
        self.token_places[side].as_ref()
    }

    /// Returns the fixed fields of every call to a side.
    pub fn call_headers(&self, side: SideId) -> &HeaderMap {
        &self.call_headers[side]
    }

    /// Returns the form of errors for clients of a side.
    pub(crate) fn errors(&self, serves: SideId) -> &ErrorForm {
        &self.errors[serves]
    }

    /// Returns the front of a path, and the rest of the path after the prefix, starting with `/`.
    pub fn front<'p>(&self, path: &'p str) -> Option<(&Arc<Front>, &'p str)> {
        self.fronts.iter().find_map(|front| {
            let rest = path.strip_prefix(&front.prefix)?;
            // The prefix must match complete segments: `/v2` is no prefix of `/v20`.
            rest.starts_with('/').then_some((front, rest))
        })
    }

    /// Returns the front of a path, which may be its prefix alone.
    pub(crate) fn front_of(&self, path: &str) -> Option<&Arc<Front>> {
        self.front(path).map(|(front, _)| front).or_else(|| self.front_at(path))
    }

    /// Returns the front whose prefix equals this path; no operation has such a path.
    pub fn front_at(&self, path: &str) -> Option<&Arc<Front>> {
        self.fronts.iter().find(|front| front.prefix == path)
    }
}

/// Returns the fields that responses depend on: language and credential.
fn vary(credential: &Credential) -> Option<HeaderValue> {
    // A cache keyed by the URL alone would serve one client's response to another (RFC 9110,
    // section 12.5.5).
    let names = std::iter::once("accept-language").chain(credential.read_headers());
    HeaderValue::try_from(names.collect::<Vec<_>>().join(", ")).ok()
}

/// Parses the fixed fields of a side's calls. The compiler has rejected invalid ones.
fn call_headers(credential: &Credential) -> HeaderMap {
    let parsed = credential.headers.iter().filter_map(|(name, value)| {
        Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?))
    });
    parsed.collect()
}

/// Compiles a transcoder per response of a pair. Responses without a plan get a placeholder that is
/// never used, so that indices match.
fn transcoders(route: &Route) -> Vec<Arc<stream::Program>> {
    let RouteKind::Pair(pair) = &route.kind else { return Vec::new() };
    let op = |body: &ResponseBody| match body {
        ResponseBody::Plan(plan) | ResponseBody::Error(ErrorPlan { body: plan, .. }) => {
            stream::Program::of(plan)
        }
        ResponseBody::Empty | ResponseBody::Opaque(_) | ResponseBody::Undescribed => {
            stream::Program::compile(&ValueOp::Keep)
        }
    };
    pair.responses.iter().map(|response| Arc::new(op(&response.body))).collect()
}
