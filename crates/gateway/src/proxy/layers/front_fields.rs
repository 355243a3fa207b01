//! Adds the fields that are configured for the front to every response: the announcements of the end
//! of a side (`Deprecation`, `Sunset`, `Link`) and those of CORS. The layer sits outside `rescue`, so
//! error responses carry them too.

use super::middleware::{Before, Middleware};
use crate::proxy::context::RequestContext;
use crate::proxy::facts::RequestFacts;
use crate::proxy::program::Front;
use crate::proxy::{Request, Response};
use crate::telemetry::metrics::deprecated_request;
use http::{HeaderMap, HeaderName};
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
        match &facts.front {
            Some(front) => {
                announce(&facts, front, response.headers_mut());
                if let Some(cors) = &front.cors {
                    cors.set_fields(&context.headers, response.headers_mut());
                }
            }
            None => set_cors_of_unrouted(&context, response.headers_mut()),
        }
    }
}

fn announce(facts: &RequestFacts<'_>, front: &Front, headers: &mut HeaderMap) {
    let own = facts.notice.as_deref().unwrap_or_default();
    if front.announcements.is_empty() && own.is_empty() {
        return;
    }
    deprecated_request(facts.client(), facts.side(), facts.operation());
    // Each of these fields may occur once (RFC 8594, RFC 9745); a client's own dates override those
    // of the front.
    let is_told = |name: &HeaderName| own.iter().any(|(told, _)| told == name);
    for (name, value) in front.announcements.iter().filter(|(name, _)| !is_told(name)).chain(own) {
        headers.append(name, value.clone());
    }
}

/// Adds the fields of CORS to a response from before `route` found the front: a preflight's,
/// or that of a request beyond a limit, which a page could otherwise not tell from a failed
/// connection.
#[cold]
fn set_cors_of_unrouted(context: &RequestContext, headers: &mut HeaderMap) {
    if let Some(cors) = context.program.front_of(context.uri.path()).and_then(|front| front.cors.as_ref()) {
        cors.set_fields(&context.headers, headers);
    }
}
