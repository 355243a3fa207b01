//! Adds the deprecation fields (`Deprecation`, `Sunset`, `Link`) configured for the front or the
//! client to every response. The layer sits outside `rescue`, so error responses carry them too.

use super::middleware::Middleware;
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use crate::telemetry::metrics::deprecated_request;
use http::HeaderName;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Announce;

impl Middleware<Request> for Announce {
    type Inward = Request;
    /// The front is known only after `route`, further in, has run.
    type Kept = Arc<RequestContext>;
    type Fault = Infallible;

    fn before(
        &self,
        request: Request,
    ) -> ControlFlow<Result<Response, Infallible>, (Request, Arc<RequestContext>)> {
        let context = Arc::clone(&request.context);
        ControlFlow::Continue((request, context))
    }

    fn after(context: Arc<RequestContext>, response: &mut Response) {
        let of_front = context.front().map_or(&[][..], |front| &front.announcements);
        let own = context.notice().map_or(&[][..], |notice| notice);
        if of_front.is_empty() && own.is_empty() {
            return;
        }
        if let Some(front) = context.front() {
            let side = &context.program.side(front.serves).name;
            deprecated_request(context.client(), side, context.operation());
        }
        // Each of these fields may occur once (RFC 8594, RFC 9745); a client's own dates override
        // those of the front.
        let is_told = |name: &HeaderName| own.iter().any(|(told, _)| told == name);
        for (name, value) in of_front.iter().filter(|(name, _)| !is_told(name)).chain(own) {
            response.headers_mut().append(name, value.clone());
        }
    }
}
