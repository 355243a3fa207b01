//! Creates the request context: request id, trace, program and arrival time.
//!
//! A client's `x-request-id` does not become the request id, because a client could forge ids to
//! confuse the log. It is logged in a field of its own and forwarded to the upstream.

use super::middleware::{Before, Middleware};
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
    pub program: CurrentProgram,
    /// Defines which proxies may declare the client address.
    pub forwarding: Forwarding,
}

impl Middleware<http::Request<Body>> for Identify {
    type Inward = Request;
    /// `after` copies the request id from it.
    type Kept = Arc<RequestContext>;
    type Fault = Infallible;

    fn before(&self, request: http::Request<Body>) -> Before<Self, http::Request<Body>> {
        let (head, body) = request.into_parts();
        let parent = head.headers.get(TRACEPARENT).and_then(|value| TraceParent::parse(value.to_str().ok()?));
        let trace = parent.unwrap_or_else(|| TraceParent::start(fastrand::u128(..), fastrand::u64(..)));
        let program = self.program.load_full();
        let (trace, span) = program.traces().map_or((trace, None), |traces| traces.begin(parent, trace));
        let language = Language::negotiate(&head.headers, program.languages());
        let mut context = RequestContext::new(RequestId(fastrand::u64(..)), trace, head, program, language);
        context.span = span;
        context.sender.address =
            context.sender.peer.map(|peer| self.forwarding.client(peer, &context.headers));
        let context = Arc::new(context);
        let request = Request { context: Arc::clone(&context), body };
        ControlFlow::Continue((request, context))
    }

    fn after(context: Arc<RequestContext>, response: &mut Response) {
        // A forwarded response keeps the id that the front's own service has set.
        if !context.record.is_forwarded() || !response.headers().contains_key(REQUEST_ID) {
            response.headers_mut().insert(REQUEST_ID, context.id.header_value());
        }
        if is_bodiless(&context.method, response.status()) && !response.body().is_empty() {
            *response.body_mut() = Body::empty();
        }
    }
}

/// Returns whether a response has no body, regardless of its header fields (RFC 9112, section 6.3).
fn is_bodiless(method: &Method, status: StatusCode) -> bool {
    method == Method::HEAD || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}
