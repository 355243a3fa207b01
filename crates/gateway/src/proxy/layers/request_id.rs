//! Names each request, takes part in its trace, notes which program serves it, and sets the clock for everything measured
//! later. A client's own `x-request-id` is not believed: it could be forged to confuse the log.

use super::middleware::Middleware;
use crate::body::Body;
use crate::proxy::context::{RequestContext, RequestId};
use crate::proxy::language::Language;
use crate::proxy::program::Current;
use crate::proxy::{Request, Response};
use crate::telemetry::trace::{TRACEPARENT, TraceParent};
use http::{Method, StatusCode};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

const REQUEST_ID: http::HeaderName = http::HeaderName::from_static("x-request-id");

#[derive(Clone)]
pub struct Identify {
    program: Current,
}

impl Identify {
    pub fn new(program: Current) -> Identify {
        Identify { program }
    }
}

impl Middleware<http::Request<Body>> for Identify {
    type Inward = Request;
    /// The name that the answer is to have too.
    type Kept = Arc<RequestContext>;
    type Fault = Infallible;

    fn before(
        &self,
        request: http::Request<Body>,
    ) -> ControlFlow<Result<Response, Infallible>, (Request, Arc<RequestContext>)> {
        let (head, body) = request.into_parts();
        let trace = head.headers.get(TRACEPARENT).and_then(|value| TraceParent::parse(value.to_str().ok()?));
        let trace = trace.unwrap_or_else(|| TraceParent::start(fastrand::u128(..), fastrand::u64(..)));
        let program = self.program.load_full();
        let language = Language::wanted(&head.headers, program.languages());
        let facts =
            Arc::new(RequestContext::new(RequestId(fastrand::u64(..)), trace, head, program, language));
        let request = Request { facts: Arc::clone(&facts), body };
        ControlFlow::Continue((request, facts))
    }

    fn after(facts: Arc<RequestContext>, response: &mut Response) {
        // The name that the own service gave it is its answer's, and stays.
        if !facts.is_forwarded() || !response.headers().contains_key(REQUEST_ID) {
            response.headers_mut().insert(REQUEST_ID, facts.id.header_value());
        }
        if is_bodiless(&facts.method, response.status()) && !response.body().is_empty() {
            *response.body_mut() = Body::empty();
        }
    }
}

/// Answers that have no body, whatever their header fields say (RFC 9112, section 6.3).
fn is_bodiless(method: &Method, status: StatusCode) -> bool {
    method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}
