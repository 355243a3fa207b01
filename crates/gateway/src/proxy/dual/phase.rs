//! Who answers: the plans, or the service that the client believes it speaks to; and who is asked beside. A refused operation
//! goes to that service while one is configured, since it alone can do it.

use super::ask::Dual;
use crate::error::GatewayError;
use crate::proxy::calls::upstream_auth::may_forward;
use crate::proxy::compose::forward::forward;
use crate::proxy::compose::{self, Composer};
use crate::proxy::context::Facts;
use crate::proxy::upstream::Upstream;
use crate::proxy::{Request, Response};
use crate::shadow::Phase;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_plan::RouteKind;
use tower::Service;

/// The last of the layers that see a client's request. Its futures are boxed: here the stack of layers ends and the
/// work, whose size depends on the route, begins.
#[derive(Clone)]
pub struct Phased {
    composer: Arc<Composer>,
    dual: Dual,
}

impl Phased {
    pub fn new(composer: Composer, dual: Dual) -> Phased {
        Phased { composer: Arc::new(composer), dual }
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
        let own = forwarded_to(&request.facts);
        let asked = self.dual.asked(&request.facts, own.is_some());
        let composer = Arc::clone(&self.composer);
        match asked {
            None => answer(composer, own, request),
            Some(asked) => {
                let answering = move |request| answer(composer, own, request);
                Box::pin(self.dual.clone().both(request, asked, answering))
            }
        }
    }
}

/// Has a request answered by the old service, where one is given, else by the plans.
fn answer(
    composer: Arc<Composer>,
    own: Option<Arc<Upstream>>,
    request: Request,
) -> BoxFuture<'static, Result<Response, GatewayError>> {
    match own {
        Some(upstream) => {
            let (calls, pseudonym) = (composer.calls.clone(), composer.pseudonym.clone());
            let target = request.facts.matched().below_front(&request.facts);
            Box::pin(forward(calls, upstream, request, target, pseudonym))
        }
        None => compose::answer(composer, request),
    }
}

/// The service that the client believes it speaks to, when that answers this request.
fn forwarded_to(facts: &Facts) -> Option<Arc<Upstream>> {
    let (matched, client) = (facts.matched(), facts.enrolled());
    let own = matched.front.own.as_ref()?;
    let serves = matched.front.serves;
    let route = facts.program.route(serves, matched.route);
    let is_refused = matches!(&route.kind, RouteKind::Refuse(refusal) if refusal.legacy_forward)
        && may_forward(&facts.program, client, serves);
    let is_own = match matched.front.phase(matched.route) {
        Phase::Legacy | Phase::Shadow => true,
        Phase::Canary(share) => !share.has_client(facts.client(), facts.operation()),
        Phase::Translated { .. } => false,
    };
    (is_refused || is_own).then(|| Arc::clone(own))
}
