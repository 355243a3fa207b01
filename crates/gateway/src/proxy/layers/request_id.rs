//! Names each request, takes part in its trace, notes which program serves it, and sets the clock for everything measured
//! later. A client's own `x-request-id` is no name of ours, since it could be forged to confuse
//! the log: it is logged beside it and goes on to the upstream.

use super::middleware::Middleware;
use crate::body::Body;
use crate::proxy::context::{REQUEST_ID, RequestContext, RequestId};
use crate::proxy::forwarding::Forwarding;
use crate::proxy::language::Language;
use crate::proxy::program::CurrentProgram;
use crate::proxy::{Request, Response};
use crate::telemetry::trace::{TRACEPARENT, TraceParent};
use http::{Method, StatusCode};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct Identify {
    program: CurrentProgram,
    /// Whom it is believed where requests come from.
    forwarding: Forwarding,
}

impl Identify {
    pub(crate) fn new(program: CurrentProgram, forwarding: Forwarding) -> Identify {
        Identify { program, forwarding }
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
        let parent = head.headers.get(TRACEPARENT).and_then(|value| TraceParent::parse(value.to_str().ok()?));
        let trace = parent.unwrap_or_else(|| TraceParent::start(fastrand::u128(..), fastrand::u64(..)));
        let program = self.program.load_full();
        let (trace, span) = program.traces().map_or((trace, None), |traces| traces.begin(parent, trace));
        let language = Language::negotiate(&head.headers, program.languages());
        let mut context = RequestContext::new(RequestId(fastrand::u64(..)), trace, head, program, language);
        context.span = span;
        context.address = context.peer.map(|peer| self.forwarding.client(peer, &context.headers));
        let context = Arc::new(context);
        let request = Request { context: Arc::clone(&context), body };
        ControlFlow::Continue((request, context))
    }

    fn after(context: Arc<RequestContext>, response: &mut Response) {
        // The name that the own service gave it is its answer's, and stays.
        if !context.is_forwarded() || !response.headers().contains_key(REQUEST_ID) {
            response.headers_mut().insert(REQUEST_ID, context.id.header_value());
        }
        if is_bodiless(&context.method, response.status()) && !response.body().is_empty() {
            *response.body_mut() = Body::empty();
        }
    }
}

/// Answers that have no body, whatever their header fields say (RFC 9112, section 6.3).
fn is_bodiless(method: &Method, status: StatusCode) -> bool {
    method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}
