//! Selects by phase whether the plans or the served side's own service answer a request, and starts
//! the shadow. Refused operations and calls that match no contract are forwarded to the own service
//! if one is configured, because only that service can answer them.

use super::ask::Dual;
use crate::body::Body;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::Response;
use crate::proxy::compose::forward::forward;
use crate::proxy::compose::{self, Composer};
use crate::proxy::headers::wants_switch;
use crate::proxy::request::{Authenticated, ForwardedRequest, KnownRequest, Unknown};
use crate::proxy::unknown_calls::UnknownCalls;
use crate::proxy::upstream::Upstream;
use crate::shadow::Phase;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, header};
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_engine::translate::undeclared_parameters;
use switchback_plan::{BodyFormat, Effect, Route, RouteKind, is_json_type};
use tower::Service;

/// Maximum number of undeclared parameters recorded per request.
const PARAMETERS_MAX: usize = 8;

/// The innermost layer for client requests. Its futures are boxed because their size depends on the
/// route.
#[derive(Clone)]
pub(crate) struct Phased {
    composer: Arc<Composer>,
    dual: Dual,
    unknown: UnknownCalls,
}

impl Phased {
    pub(crate) fn new(composer: Composer, dual: Dual, unknown: UnknownCalls) -> Phased {
        Phased { composer: Arc::new(composer), dual, unknown }
    }
}

type Answering = BoxFuture<'static, Result<Response, GatewayError>>;

/// The side that answers a known request.
enum Answerer {
    Plans,
    /// The served side's own service.
    Own(Arc<Upstream>),
    /// The same, because the operation does not accept the media type of the body.
    OwnForMediaType,
}

impl Service<Authenticated> for Phased {
    type Response = Response;
    type Error = GatewayError;
    type Future = Answering;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Authenticated) -> Answering {
        match request {
            Authenticated::Known(request, body) => self.answer_known(request, body),
            Authenticated::Unknown(unknown, request) => self.forward_unknown(unknown, request),
        }
    }
}

impl Phased {
    fn answer_known(&self, request: Arc<KnownRequest>, body: Body) -> Answering {
        let KnownRequest { context, front, operation, client, .. } = &*request;
        let own = match answerer(&request, &body) {
            Answerer::Plans => None,
            Answerer::Own(own) => Some(own),
            Answerer::OwnForMediaType => {
                return self.forward_unknown(Unknown::MediaType, request.forwarded(body));
            }
        };
        context.facts().phase = front.phase(operation.route).name();
        let route = request.route();
        // Recorded in every phase: while the old service answers, there is time to declare the
        // parameter.
        for (name, has_value) in undeclared_parameters(&route.operation, request.query()).take(PARAMETERS_MAX)
        {
            self.unknown.note_parameter(context, &name, has_value);
        }
        let writes = route.operation.effect == Effect::Write;
        let writing = writes.then(|| self.dual.writing(front, &client.name)).flatten();
        let mark = writing.as_ref().map(|writing| writing.mark);
        let asked = self.dual.shadow_request(&request, own.is_some(), mark);
        // A connection that may switch protocols cannot be compared.
        let asked = asked.filter(|_| !wants_switch(&context.headers, context.version));
        let composer = Arc::clone(&self.composer);
        let answering = match asked {
            None => answer(composer, own, request, body),
            Some(asked) => {
                let answering = move |body| answer(composer, own, request, body);
                Box::pin(self.dual.clone().both(body, asked, answering))
            }
        };
        match writing {
            None => answering,
            Some(writing) => Box::pin(async move {
                let answered = answering.await;
                drop(writing);
                answered
            }),
        }
    }

    /// Forwards a request to the own service and records its unknown part.
    fn forward_unknown(&self, unknown: Unknown, request: ForwardedRequest) -> Answering {
        let (composer, calls) = (Arc::clone(&self.composer), self.unknown.clone());
        let own = request.front.own.as_ref().and_then(|own| own.at(request.host())).cloned();
        let (context, front) = (Arc::clone(&request.context), &request.front);
        if let Some(route) = request.operation {
            context.facts().phase = front.phase(route).name();
        }
        let writes = !matches!(context.method, Method::GET | Method::HEAD | Method::OPTIONS);
        let client = request.client.as_ref().map_or("", |client| &client.name);
        let writing = writes.then(|| self.dual.writing(front, client)).flatten();
        Box::pin(async move {
            let answer = match own {
                Some(own) => forward(composer, own, request).await,
                None => Err(GatewayError::new(ErrorKind::Internal, "the host has no address")),
            };
            calls.note(&context, unknown, answer.as_ref().ok().map(Response::status));
            drop(writing);
            answer
        })
    }
}

/// Forwards a request to `own` if given, otherwise answers it by the plans.
fn answer(
    composer: Arc<Composer>,
    own: Option<Arc<Upstream>>,
    request: Arc<KnownRequest>,
    body: Body,
) -> Answering {
    match own {
        Some(own) => Box::pin(forward(composer, own, request.forwarded(body))),
        None => compose::answer(composer, request, body),
    }
}

/// Returns the side that answers.
fn answerer(request: &KnownRequest, body: &Body) -> Answerer {
    let KnownRequest { context, front, operation, client, .. } = request;
    let (serves, route) = (front.serves, request.route());
    let Some(own) = front.own.as_ref().and_then(|own| own.at(route.operation.host)) else {
        return Answerer::Plans;
    };
    let may_forward = || context.program.may_forward(client, serves);
    let is_refused =
        matches!(&route.kind, RouteKind::Refuse(refusal) if refusal.legacy_forward) && may_forward();
    // The plan returns the reason of the refusal. `compose` detects when the service is reachable
    // again.
    if is_refused && own.is_gone() {
        return Answerer::Plans;
    }
    let is_own = match front.phase(operation.route) {
        Phase::Legacy | Phase::Shadow => true,
        Phase::Canary(share) => !share.has_client(&client.name, &route.operation.key),
        Phase::Translated { .. } => false,
    };
    if is_refused || is_own {
        return Answerer::Own(Arc::clone(own));
    }
    let is_foreign = !body.is_empty()
        && front.asked_about_strangers().is_some()
        && is_foreign(route, &context.headers, &context.program.pack().json_types)
        && may_forward();
    if is_foreign { Answerer::OwnForMediaType } else { Answerer::Plans }
}

/// Returns whether the operation does not accept the body's media type. Default types that HTTP
/// clients add on their own are ignored.
fn is_foreign(route: &Route, headers: &HeaderMap, json_types: &[Arc<str>]) -> bool {
    const UNASKED: [&str; 3] =
        ["application/x-www-form-urlencoded", "text/plain", "application/octet-stream"];
    let takes_json = match &route.kind {
        RouteKind::Pair(_) | RouteKind::Serve(_) => {
            matches!(route.operation.format, BodyFormat::Json | BodyFormat::JsonOrForm(_))
        }
        RouteKind::Refuse(_) => false,
    };
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let named = named.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    takes_json
        && named.contains('/')
        && !is_json_type(named, json_types)
        && !UNASKED.iter().any(|word| named.eq_ignore_ascii_case(word))
}
