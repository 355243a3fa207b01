//! Requests on their way inward: each layer hands on a type that proves its findings, so that
//! layers in a wrong order do not compile. [`Request`] is identified, [`Routed`] has a front,
//! [`Authenticated`] has a sender; plans and comparisons work with [`KnownRequest`].

use super::context::RequestContext;
use super::limits::OperationLimits;
use super::program::Front;
use crate::body::Body;
use crate::memory::MemoryShare;
use crate::token::{Client, carried};
use bytes::Bytes;
use std::sync::Arc;
use switchback_engine::translate::{self, Run};
use switchback_json as json;
use switchback_plan::{Effect, HostId, Route, RouteId};

/// A request with its context. Layers pass it on more often than they read it, so it is small.
#[derive(Debug)]
pub struct Request {
    /// The head of the request and its derived values.
    pub context: Arc<RequestContext>,
    /// Read once, as it arrives; no layer buffers it without a limit.
    pub body: Body,
}

/// The operation that a request matches.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub route: RouteId,
    /// Decoded path values, in the order of the operation's variables.
    pub values: Vec<String>,
    /// Decoded account of the scope prefix, if the path has one.
    pub account: Option<String>,
}

/// The reason why a request is forwarded to the front's own service without a match of the contract
/// or an enrolled client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unknown {
    /// The path matches no operation.
    Path,
    /// The path matches an operation, the method does not.
    Method,
    /// The path is ambiguous or malformed.
    Spelling,
    /// The operation does not accept the media type of the body.
    MediaType,
    /// No client is enrolled with this token.
    Client,
}

impl Unknown {
    /// Returns the label in metrics and in the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Unknown::Path => "path",
            Unknown::Method => "method",
            Unknown::Spelling => "spelling",
            Unknown::MediaType => "media_type",
            Unknown::Client => "client",
        }
    }
}

/// A buffered form that may carry a token, with its memory reservation.
#[derive(Debug)]
pub(crate) struct Form {
    pub bytes: Bytes,
    pub _share: MemoryShare,
}

impl Form {
    /// Returns the text of a form, or an empty string if there is none.
    pub(crate) fn text(form: &Option<Arc<Form>>) -> &str {
        form.as_ref().and_then(|form| str::from_utf8(&form.bytes).ok()).unwrap_or_default()
    }
}

/// A request below a front. Created by `route`.
pub(crate) struct Routed {
    pub context: Arc<RequestContext>,
    pub front: Arc<Front>,
    /// The operation, or why the front's own service answers the request without one.
    pub operation: Result<Operation, Unknown>,
    /// Set by `form_token` if the front accepts tokens in forms.
    pub form: Option<Arc<Form>>,
    pub body: Body,
}

/// A request whose sender was looked up. Created by `authenticate`.
pub(crate) enum Authenticated {
    /// An enrolled client calls an operation.
    Known(Arc<KnownRequest>, Body),
    /// The front's own service answers, since the operation or the client is unknown.
    Unknown(Unknown, ForwardedRequest),
}

impl Authenticated {
    /// Returns the context, the front, the operation and the client, as far as they are known.
    pub(crate) fn parts(&self) -> (&RequestContext, &Front, Option<RouteId>, Option<&Arc<Client>>) {
        match self {
            Authenticated::Known(known, _) => {
                (&known.context, &known.front, Some(known.operation.route), Some(&known.client))
            }
            Authenticated::Unknown(_, request) => {
                (&request.context, &request.front, request.operation, request.client.as_ref())
            }
        }
    }
}

/// A call of an operation by an enrolled client. Shared by everything that answers it.
pub(crate) struct KnownRequest {
    pub context: Arc<RequestContext>,
    pub front: Arc<Front>,
    pub operation: Operation,
    pub client: Arc<Client>,
    pub form: Option<Arc<Form>>,
    /// The query without parameters that carry the token. `None`: the query has no token.
    query_left: Option<String>,
}

impl KnownRequest {
    pub(crate) fn new(
        context: Arc<RequestContext>,
        front: Arc<Front>,
        operation: Operation,
        client: Arc<Client>,
        form: Option<Arc<Form>>,
    ) -> KnownRequest {
        let names = context.program.credential(front.serves).read_queries();
        let query_left = context.uri.query().filter(|_| names.clone().next().is_some());
        let query_left = query_left.and_then(|query| carried::without(query, names));
        KnownRequest { context, front, operation, client, form, query_left }
    }

    /// Returns another call of the same client, which counts its own calls.
    pub(crate) fn derive(
        &self,
        context: RequestContext,
        front: Arc<Front>,
        operation: Operation,
    ) -> Arc<KnownRequest> {
        let mut facts = context.facts();
        facts.front = Some(Arc::clone(&front));
        facts.set_operation(&operation);
        facts.client = Some(Arc::clone(&self.client));
        drop(facts);
        let client = Arc::clone(&self.client);
        Arc::new(KnownRequest::new(Arc::new(context), front, operation, client, None))
    }

    /// Returns the route of the operation.
    pub(crate) fn route(&self) -> &Route {
        self.context.program.route(self.front.serves, self.operation.route)
    }

    /// Returns the limits of the operation.
    pub(crate) fn limits(&self) -> &OperationLimits {
        self.front.limits.for_route(Some(self.operation.route))
    }

    /// Returns the operation as the contract writes it.
    pub(crate) fn operation_key(&self) -> &Arc<str> {
        &self.route().operation.key
    }

    /// Returns path and query without the prefix of the front, undecoded.
    pub(crate) fn below_front(&self) -> String {
        self.context.below(&self.front)
    }

    /// Returns the query without parameters that carry the token, or an empty string.
    pub(crate) fn query(&self) -> &str {
        self.query_left.as_deref().or(self.context.uri.query()).unwrap_or_default()
    }

    /// Returns the body without form fields that carry the token.
    pub(crate) fn without_form_token(&self, body: Bytes) -> Bytes {
        self.context.without_form_token(&self.front, &body).unwrap_or(body)
    }

    /// Returns the request as input of a plan. `body` has no content coding and no token.
    pub(crate) fn as_input(&self, body: Bytes) -> translate::Request {
        translate::Request {
            path: self.operation.values.clone(),
            query: Some(self.query().to_owned()),
            headers: self.context.headers.clone(),
            body,
            language: self.context.language.0,
            arrival: self.arrival(),
        }
    }

    /// Returns the arrival of the request, if its route reads it.
    fn arrival(&self) -> Option<translate::Arrival> {
        let routes = &self.context.program.pack().directions[self.front.serves].routes;
        let route = routes.get(usize::from(self.operation.route.0))?;
        route
            .reads_arrival()
            .then(|| translate::Arrival { unix_ms: self.context.received_ms(), id: self.context.id.0 })
    }

    /// Returns a run of the plan.
    pub(crate) fn run(&self, body: Bytes, limits: json::Limits) -> Run {
        let program = &self.context.program;
        let (pack, settings) = (Arc::clone(program.pack()), Arc::clone(program.settings()));
        Run::new(pack, self.front.serves, self.operation.route, self.as_input(body), settings, limits)
    }

    /// Returns the request with `body` for the front's own service.
    pub(crate) fn forwarded(&self, body: Body) -> ForwardedRequest {
        ForwardedRequest {
            context: Arc::clone(&self.context),
            front: Arc::clone(&self.front),
            operation: Some(self.operation.route),
            client: Some(Arc::clone(&self.client)),
            _form: self.form.clone(),
            body,
        }
    }
}

/// A request that is forwarded unchanged to the front's own service.
pub(crate) struct ForwardedRequest {
    pub context: Arc<RequestContext>,
    pub front: Arc<Front>,
    pub operation: Option<RouteId>,
    /// `None`: that service authenticates the sender.
    pub client: Option<Arc<Client>>,
    /// Reserves the memory of the body.
    pub _form: Option<Arc<Form>>,
    pub body: Body,
}

impl ForwardedRequest {
    fn route(&self) -> Option<&Route> {
        self.operation.map(|route| self.context.program.route(self.front.serves, route))
    }

    /// Returns the limits of the operation, or those of requests without one.
    pub(crate) fn limits(&self) -> &OperationLimits {
        self.front.limits.for_route(self.operation)
    }

    /// Returns the host of the operation on the served side.
    pub(crate) fn host(&self) -> HostId {
        self.route().map_or(HostId::MAIN, |route| route.operation.host)
    }

    /// Returns the effect of the operation. Without a match, assumes [`Effect::Write`], the most
    /// restrictive.
    pub(crate) fn effect(&self) -> Effect {
        self.route().map_or(Effect::Write, |route| route.operation.effect)
    }
}
