//! Names each request, takes part in its trace, notes which program serves it, and sets the clock for everything measured
//! later. A client's own `x-request-id` is not believed: it could be forged to confuse the log.

use super::after::{After, Finish};
use crate::body::Body;
use crate::proxy::context::{Facts, RequestId};
use crate::proxy::language::Language;
use crate::proxy::program::Current;
use crate::proxy::{Request, Response};
use crate::telemetry::trace::{TRACEPARENT, TraceParent};
use http::{Method, StatusCode};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

const REQUEST_ID: http::HeaderName = http::HeaderName::from_static("x-request-id");

#[derive(Clone)]
pub struct RequestIdLayer {
    program: Current,
}

impl RequestIdLayer {
    pub fn new(program: Current) -> RequestIdLayer {
        RequestIdLayer { program }
    }
}

impl<S> Layer<S> for RequestIdLayer {
    type Service = Identified<S>;

    fn layer(&self, inner: S) -> Identified<S> {
        Identified { inner, program: self.program.clone() }
    }
}

#[derive(Clone)]
pub struct Identified<S> {
    inner: S,
    program: Current,
}

type Outcome = Result<Response, Infallible>;

impl<S> Service<http::Request<Body>> for Identified<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = After<S::Future, Named>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (head, body) = request.into_parts();
        let trace = head.headers.get(TRACEPARENT).and_then(|value| TraceParent::parse(value.to_str().ok()?));
        let trace = trace.unwrap_or_else(|| TraceParent::start(fastrand::u128(..), fastrand::u64(..)));
        let program = self.program.load_full();
        let language = Language::wanted(&head.headers, program.languages());
        let facts = Arc::new(Facts::new(RequestId(fastrand::u64(..)), trace, head, program, language));
        let request = Request { facts: Arc::clone(&facts), body };
        After::wait(self.inner.call(request), Named(facts))
    }
}

/// A request with a name, which its answer is to have too.
pub struct Named(Arc<Facts>);

impl Finish<Outcome> for Named {
    fn finish(self, outcome: &mut Outcome) {
        let (Named(facts), Ok(response)) = (self, outcome) else { return };
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
