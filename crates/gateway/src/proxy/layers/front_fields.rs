//! Adds the deprecation fields (`Deprecation`, `Sunset`, `Link`) configured for the front or the
//! client to every response. The layer sits outside `rescue`, so error responses carry them too.

use super::middleware::{Before, Middleware};
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use crate::telemetry::metrics::deprecated_request;
use http::HeaderName;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrontFields;

impl Middleware<Request> for FrontFields {
    type Inward = Request;
    /// The front is known only after `route`, further in, has run.
    type Kept = Arc<RequestContext>;
    type Fault = Infallible;

    fn before(&self, request: Request) -> Before<Self, Request> {
        let context = Arc::clone(&request.context);
        ControlFlow::Continue((request, context))
    }

    fn after(context: Arc<RequestContext>, response: &mut Response) {
        let facts = context.facts();
        let Some(front) = &facts.front else { return };
        let own = facts.notice.as_deref().unwrap_or_default();
        if front.announcements.is_empty() && own.is_empty() {
            return;
        }
        deprecated_request(facts.client(), facts.side(), facts.operation());
        // Each of these fields may occur once (RFC 8594, RFC 9745); a client's own dates override
        // those of the front.
        let is_told = |name: &HeaderName| own.iter().any(|(told, _)| told == name);
        for (name, value) in front.announcements.iter().filter(|(name, _)| !is_told(name)).chain(own) {
            response.headers_mut().append(name, value.clone());
        }
    }
}
