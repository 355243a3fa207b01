//! Tells clients of a side that is going away so, in every answer: `Deprecation`, `Sunset` and `Link`, as configured for
//! the front. Outside `rescue`, so that errors say it too.

use super::middleware::Middleware;
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use crate::telemetry::metrics::deprecated_request;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default)]
pub struct Announce;

impl Middleware<Request> for Announce {
    type Inward = Request;
    /// The request's front may have something to announce.
    type Kept = Arc<RequestContext>;
    type Fault = Infallible;

    fn before(
        &self,
        request: Request,
    ) -> ControlFlow<Result<Response, Infallible>, (Request, Arc<RequestContext>)> {
        let facts = Arc::clone(&request.facts);
        ControlFlow::Continue((request, facts))
    }

    fn after(facts: Arc<RequestContext>, response: &mut Response) {
        if let Some(front) = facts.front().filter(|front| !front.announcements.is_empty()) {
            let side = &facts.program.side(front.serves).name;
            deprecated_request(facts.client(), side, facts.operation());
            for (name, value) in &front.announcements {
                response.headers_mut().append(name, value.clone());
            }
        }
    }
}
