//! What the data path runs at one moment: the compiled pack and the fronts it serves. A reload
//! makes a new program and swaps it in whole; requests in flight finish on the one they began with.

use super::error_form::ErrorForm;
use super::language::Language;
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
    Credential, Pack, PerSide, ResponseBody, Route, RouteId, RouteKind, Side, SideId, ValueOp,
};

/// The program that new requests get.
pub type CurrentProgram = Arc<ArcSwap<Program>>;

/// A pack and how it is served. Immutable.
#[derive(Debug)]
pub struct Program {
    pack: Arc<Pack>,
    /// Longest prefix first.
    fronts: Vec<Arc<Front>>,
    errors: PerSide<ErrorForm>,
    language_tags: Vec<HeaderValue>,
    settings: Arc<Settings>,
    values: Arc<Values>,
    /// By side, route, and response of the pair: what its bodies stream through.
    transcoders: PerSide<Vec<Vec<Arc<stream::Program>>>>,
    /// By side: what its answers depend on besides the address.
    vary: PerSide<Option<HeaderValue>>,
    /// By side: the field that a token is sent in.
    token_places: PerSide<Option<Arc<TokenPlace>>>,
    call_headers: PerSide<HeaderMap>,
    /// How events reach receivers, where somebody receives some.
    events: Option<ServedEvents>,
    /// What traces are recorded with, if they are.
    traces: Option<Arc<Traces>>,
}

/// A path prefix at which clients speak one side.
#[derive(Debug)]
pub struct Front {
    /// Begins with `/`, does not end with one; empty for the root.
    pub prefix: String,
    /// The side that clients speak here.
    pub serves: SideId,
    /// Finds the routes of the served side.
    pub router: Router,
    /// The service of the other side, which translated calls go to.
    pub backend: SideUpstreams,
    /// The service of the served side itself, while it lives.
    pub own: Option<SideUpstreams>,
    /// What becomes of what nobody here knows while that service lives.
    pub unknown: UnknownClientPolicy,
    /// What the shadow asks; none where there is no shadow.
    pub beside: Option<Arc<ShadowUpstreams>>,
    /// Fields that every answer of this front carries: `Deprecation`, `Sunset`, `Link`.
    pub announcements: Vec<(HeaderName, HeaderValue)>,
    /// In which phase each route is; changes while it is served.
    pub phases: Arc<OperationTable>,
}

/// What becomes of calls that no contract has, and of clients that nobody enrolled, while a front's
/// own service lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownClientPolicy {
    /// They are refused, as they are when that service is gone.
    Refuse,
    /// They are that service's to judge; clients that nobody enrolled only where it answers the
    /// operation anyway.
    #[default]
    Forward,
    /// The same, and what clients call that nobody enrolled is never translated.
    ForwardAll,
}

/// Which side's events receivers get, and what comparing both needs to know.
#[derive(Clone, Debug)]
pub struct ServedEvents {
    /// In which phase each event is; changes while it is served.
    pub phases: Arc<OperationTable>,
    /// Declared noise, by which two events are compared.
    pub knowledge: Arc<Knowledge>,
}

/// The two services of a front once more, with connections and limits of the shadow's own, and what
/// comparing needs to know.
#[derive(Debug)]
pub struct ShadowUpstreams {
    /// The service of the other side.
    pub backend: SideUpstreams,
    /// The service of the served side, while it lives.
    pub own: Option<SideUpstreams>,
    /// Contracts and declared noise, by which two answers are compared.
    pub knowledge: Arc<Knowledge>,
}

impl Front {
    /// The service that is asked about what nobody here knows.
    pub fn asked_about_strangers(&self) -> Option<&SideUpstreams> {
        self.own.as_ref().filter(|_| self.unknown != UnknownClientPolicy::Refuse)
    }

    /// Where translated calls go.
    pub(super) fn upstreams_for(&self, origin: CallOrigin) -> Option<&SideUpstreams> {
        match origin {
            CallOrigin::Client => Some(&self.backend),
            CallOrigin::Shadow => self.beside.as_ref().map(|beside| &beside.backend),
        }
    }

    /// Who answers a route, and who is asked beside.
    pub fn phase(&self, route: RouteId) -> Phase {
        self.phases.phase(usize::from(route.0))
    }
}

impl Program {
    /// `settings` are the operator's values for what the pack reads of the configuration.
    pub fn new(pack: Arc<Pack>, settings: Arc<Settings>, mut fronts: Vec<Front>) -> Program {
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

    /// The same program, by which events are delivered so.
    #[must_use]
    pub fn delivering(self, events: Option<ServedEvents>) -> Program {
        Program { events, ..self }
    }

    /// Whether the own service of a side's front was not reached for so long that it counts as
    /// gone, or is none.
    pub fn is_own_service_gone(&self, serves: SideId) -> bool {
        let own =
            self.fronts.iter().filter(|front| front.serves == serves).find_map(|front| front.own.as_ref());
        own.is_none_or(|own| own.main().is_gone())
    }

    /// Whether requests of a client can be forwarded to the service of the side that they speak. A
    /// grant that nobody has connected yet is nothing to go out with.
    pub fn may_forward(&self, client: &Client, serves: SideId) -> bool {
        serves == SideId::OLD
            || client.fixed_token(&self.side(serves).name).is_some()
            || client.grant.state() != GrantState::Unconnected
    }

    /// How events reach receivers.
    pub fn events(&self) -> Option<&ServedEvents> {
        self.events.as_ref()
    }

    /// The same program, whose requests are recorded so.
    #[must_use]
    pub fn with_traces(self, traces: Option<Arc<Traces>>) -> Program {
        Program { traces, ..self }
    }

    /// What traces are recorded with.
    pub fn traces(&self) -> Option<&Arc<Traces>> {
        self.traces.as_ref()
    }

    /// The pack that all fronts are served by.
    pub fn pack(&self) -> &Arc<Pack> {
        &self.pack
    }

    /// What the pack reads of the operator's configuration.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The same, as streams take it.
    pub fn values(&self) -> &Arc<Values> {
        &self.values
    }

    /// What the bodies of a pair's response stream through; `response` is its index in
    /// [`switchback_plan::Pair::responses`].
    pub fn transcoder(&self, serves: SideId, route: RouteId, response: usize) -> Arc<stream::Program> {
        Arc::clone(&self.transcoders[serves][route][response])
    }

    /// The `Vary` of answers to a side's clients.
    pub fn vary(&self, side: SideId) -> Option<&HeaderValue> {
        self.vary[side].as_ref()
    }

    /// The pack's languages, the default first.
    pub fn languages(&self) -> &[String] {
        &self.pack.languages
    }

    /// What `Content-Language` says for this language; none where the pack has no such language.
    pub fn language_tag(&self, language: Language) -> Option<&HeaderValue> {
        self.language_tags.get(language.0)
    }

    /// A route of the direction that serves a side.
    pub fn route(&self, serves: SideId, route: RouteId) -> &Route {
        &self.pack.directions[serves].routes[route]
    }

    /// A side of the pack.
    pub fn side(&self, side: SideId) -> &Side {
        &self.pack.sides[side]
    }

    /// How a side carries its credential.
    pub fn credential(&self, side: SideId) -> &Credential {
        &self.side(side).credential
    }

    /// Where a side's calls carry their credential; none when the pack names what is no field.
    pub fn token_place(&self, side: SideId) -> Option<&Arc<TokenPlace>> {
        self.token_places[side].as_ref()
    }

    /// The fields that every call to a side carries besides.
    pub fn call_headers(&self, side: SideId) -> &HeaderMap {
        &self.call_headers[side]
    }

    /// How errors look to clients of a side.
    pub(crate) fn errors(&self, serves: SideId) -> &ErrorForm {
        &self.errors[serves]
    }

    /// The front that a path belongs to, and the rest of the path after its prefix, beginning with `/`.
    pub fn front<'p>(&self, path: &'p str) -> Option<(&Arc<Front>, &'p str)> {
        self.fronts.iter().find_map(|front| {
            let rest = path.strip_prefix(&front.prefix)?;
            rest.starts_with('/').then_some((front, rest))
        })
    }

    /// The front whose prefix is this very path: no operation lies there.
    pub fn front_at(&self, path: &str) -> Option<&Arc<Front>> {
        self.fronts.iter().find(|front| front.prefix == path)
    }
}

/// Answers differ by language and by who asks; a cache that looked at the address alone would mix clients.
fn vary(credential: &Credential) -> Option<HeaderValue> {
    let names = std::iter::once("accept-language").chain(credential.read_headers());
    HeaderValue::try_from(names.collect::<Vec<_>>().join(", ")).ok()
}

/// What is no field was refused by the pack's compiler.
fn call_headers(credential: &Credential) -> HeaderMap {
    let parsed = credential.headers.iter().filter_map(|(name, value)| {
        Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?))
    });
    parsed.collect()
}

/// One per response of a pair; those without a plan of their own stand for themselves and are never
/// asked for.
fn transcoders(route: &Route) -> Vec<Arc<stream::Program>> {
    let RouteKind::Pair(pair) = &route.kind else { return Vec::new() };
    let op = |body: &ResponseBody| match body {
        ResponseBody::Plan(plan) | ResponseBody::Error(plan) => stream::Program::of(plan),
        ResponseBody::Empty | ResponseBody::Opaque(_) => stream::Program::compile(&ValueOp::Keep),
    };
    pair.responses.iter().map(|response| Arc::new(op(&response.body))).collect()
}
