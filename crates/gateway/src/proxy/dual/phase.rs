//! Selects by phase whether the plans or the served side's own service answer a request, and starts
//! the shadow. Refused operations and calls that match no contract are forwarded to the own service
//! if one is configured, because only that service can answer them.

use super::ask::Dual;
use crate::error::GatewayError;
use crate::proxy::compose::forward::forward;
use crate::proxy::compose::{self, Composer};
use crate::proxy::context::Unknown;
use crate::proxy::headers::wants_switch;
use crate::proxy::unknown_calls::UnknownCalls;
use crate::proxy::upstream::Upstream;
use crate::proxy::{Request, Response};
use crate::shadow::Phase;
use futures_util::future::BoxFuture;
use http::{HeaderMap, header};
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_engine::translate::undeclared_parameters;
use switchback_plan::{BodyFormat, Route, RouteKind};
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

impl Service<Request> for Phased {
    type Response = Response;
    type Error = GatewayError;
    type Future = BoxFuture<'static, Result<Response, GatewayError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let own = forwarded_to(&request);
        if request.context.unknown().is_none()
            && let (Some(query), Some(matched)) =
                (request.context.query(), request.context.operation_matched())
            && let route = request.context.program.route(matched.front.serves, matched.route)
        {
            // Recorded in every phase: while the old service answers, there is time to declare the
            // parameter.
            for (name, has_value) in undeclared_parameters(&route.operation, query).take(PARAMETERS_MAX) {
                self.unknown.note_parameter(&request.context, &name, has_value);
            }
        }
        let writing = self.dual.writing(&request.context);
        let mark = writing.as_ref().map(|writing| writing.mark);
        let asked = match request.context.unknown() {
            // A connection that may switch protocols cannot be compared.
            None => self
                .dual
                .shadow_request(&request.context, own.is_some(), mark)
                .filter(|_| !wants_switch(&request.context.headers, request.context.version)),
            // An unknown call has no counterpart.
            Some(_) => None,
        };
        let composer = Arc::clone(&self.composer);
        let answering: Self::Future = match asked {
            None if request.context.unknown().is_some() => {
                let (unknown, context) = (self.unknown.clone(), Arc::clone(&request.context));
                Box::pin(async move {
                    let answer = answer(composer, own, request).await;
                    unknown.note(&context, answer.as_ref().ok().map(Response::status));
                    answer
                })
            }
            None => answer(composer, own, request),
            Some(asked) => {
                let answering = move |request| answer(composer, own, request);
                Box::pin(self.dual.clone().both(request, asked, answering))
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
}

/// Forwards a request to `own` if given, otherwise answers it by the plans.
fn answer(
    composer: Arc<Composer>,
    own: Option<Arc<Upstream>>,
    request: Request,
) -> BoxFuture<'static, Result<Response, GatewayError>> {
    match own {
        Some(upstream) => {
            let calls = composer.calls.clone();
            let of_us = (composer.pseudonym.clone(), composer.forwarding.clone());
            let front = request.context.front().expect("`route` sits outside and leaves the front");
            let target = request.context.below(front);
            Box::pin(forward(calls, upstream, request, target, of_us))
        }
        None => compose::answer(composer, request),
    }
}

/// Returns the served side's own service if it answers this request. Sets the phase of the context.
fn forwarded_to(request: &Request) -> Option<Arc<Upstream>> {
    let context = &*request.context;
    let front = context.front().expect("`route` sits outside and leaves the front");
    if let Some(matched) = context.operation_matched() {
        context.set_phase(front.phase(matched.route).name());
    }
    let own = front.own.as_ref()?.at(context.host())?;
    // Unknown operations and clients reach this layer only if the own service handles them.
    let Some((matched, client)) = context.operation_matched().zip(context.known_client()) else {
        return Some(Arc::clone(own));
    };
    let serves = front.serves;
    let route = context.program.route(serves, matched.route);
    let is_refused = matches!(&route.kind, RouteKind::Refuse(refusal) if refusal.legacy_forward)
        && context.program.may_forward(client, serves);
    // The plan returns the reason of the refusal. `compose` detects when the service is reachable
    // again.
    if is_refused && own.is_gone() {
        return None;
    }
    let is_own = match front.phase(matched.route) {
        Phase::Legacy | Phase::Shadow => true,
        Phase::Canary(share) => !share.has_client(context.client(), context.operation()),
        Phase::Translated { .. } => false,
    };
    if is_refused || is_own {
        return Some(Arc::clone(own));
    }
    if !request.body.is_empty()
        && front.asked_about_strangers().is_some()
        && is_foreign(route, &context.headers)
        && context.program.may_forward(client, serves)
    {
        context.set_unknown(Unknown::MediaType);
        return Some(Arc::clone(own));
    }
    None
}

/// Returns whether the operation does not accept the body's media type. Default types that HTTP
/// clients add on their own are ignored.
fn is_foreign(route: &Route, headers: &HeaderMap) -> bool {
    const UNASKED: [&str; 3] =
        ["application/x-www-form-urlencoded", "text/plain", "application/octet-stream"];
    let takes_json = match &route.kind {
        RouteKind::Pair(_) | RouteKind::Serve(_) => matches!(route.operation.format, BodyFormat::Json),
        RouteKind::Refuse(_) => false,
    };
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let named = named.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    let is_json = named.rsplit(['/', '+']).next().is_some_and(|word| word.eq_ignore_ascii_case("json"));
    takes_json
        && named.contains('/')
        && !is_json
        && !UNASKED.iter().any(|word| named.eq_ignore_ascii_case(word))
}
