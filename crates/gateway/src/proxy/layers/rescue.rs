//! Turns errors into responses; no other layer does. The client receives the pack's error format in
//! its language; the log receives the full detail. A panic further in fails one request only.

use crate::body::{Body, BodyEnd, BodyWatcher};
use crate::error::{ErrorKind, ErrorSide, GatewayError};
use crate::outcome::Outcome;
use crate::proxy::concurrency::limit_error;
use crate::proxy::context::RequestContext;
use crate::proxy::{Request, Response};
use crate::telemetry::escape::Escaped;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::CatchUnwind;
use http::{HeaderValue, Version, header};
use pin_project_lite::pin_project;
use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use switchback_plan::SideId;
use tower::{BoxError, Service};

pub(crate) struct Rescue<S> {
    inner: S,
    /// The error of the last `poll_ready`. The next call returns it as a response.
    unready: Option<GatewayError>,
}

impl<S> Rescue<S> {
    pub(crate) fn new(inner: S) -> Rescue<S> {
        Rescue { inner, unready: None }
    }
}

impl<S: Clone> Clone for Rescue<S> {
    fn clone(&self) -> Rescue<S> {
        Rescue::new(self.inner.clone())
    }
}

type Caught<F> = CatchUnwind<AssertUnwindSafe<F>>;

pin_project! {
    /// A future that always resolves to a response.
    #[project = RescuedProjection]
    pub enum Rescued<F> {
        // The inner service was not called, or panicked during the call.
        Early { answer: Option<Response> },
        Wait {
            #[pin]
            answering: Caught<F>,
            context: Arc<RequestContext>,
        },
    }
}

impl<F, E> Future for Rescued<F>
where
    F: Future<Output = Result<Response, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(match self.project() {
            RescuedProjection::Early { answer } => {
                answer.take().expect("a future is not polled after it is ready")
            }
            RescuedProjection::Wait { answering, context } => match ready!(answering.poll(cx)) {
                Ok(Ok(mut response)) => {
                    // A completed body cannot be truncated.
                    if !response.body().is_whole() {
                        response.body_mut().watch(Box::new(LateErrorLog { context: Arc::clone(context) }));
                    }
                    response
                }
                Ok(Err(error)) => answer(context, &own(error)),
                Err(panic) => answer(context, &panic_error(&*panic)),
            },
        }))
    }
}

impl<S> Service<Request> for Rescue<S>
where
    S: Service<Request, Response = Response, Error: Into<BoxError>>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Rescued<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // State behind a panic is not used again by this request; shared state ignores poisoned
        // locks.
        let polled = catch_unwind(AssertUnwindSafe(|| self.inner.poll_ready(cx)));
        self.unready = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(()))) => None,
            Ok(Poll::Ready(Err(error))) => Some(own(error)),
            Err(panic) => Some(panic_error(&*panic)),
        };
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let context = Arc::clone(&request.context);
        if let Some(error) = self.unready.take() {
            return Rescued::Early { answer: Some(answer(&context, &error)) };
        }
        match catch_unwind(AssertUnwindSafe(|| self.inner.call(request))) {
            Ok(answering) => {
                let answering = AssertUnwindSafe(answering).catch_unwind();
                Rescued::Wait { answering, context }
            }
            Err(panic) => Rescued::Early { answer: Some(answer(&context, &panic_error(&*panic))) },
        }
    }
}

/// Converts an error of the inner service. A foreign layer's load shedding and timeout errors map
/// to the gateway's own; every other foreign error is internal.
fn own(error: impl Into<BoxError>) -> GatewayError {
    let error = match error.into().downcast::<GatewayError>() {
        Ok(own) => return *own,
        Err(other) => other,
    };
    if error.is::<tower::load_shed::error::Overloaded>() {
        return limit_error("layer");
    }
    let kind = if error.is::<tower::timeout::error::Elapsed>() {
        ErrorKind::UpstreamTimeout
    } else {
        ErrorKind::Internal
    };
    GatewayError::new(kind, format!("a layer failed: {error}"))
}

/// Logs an error that truncates a response. Its head has been sent, so it cannot be replaced by an
/// error response.
struct LateErrorLog {
    context: Arc<RequestContext>,
}

impl BodyWatcher for LateErrorLog {
    fn chunk(&mut self, _bytes: &Bytes) {}

    fn on_error(&mut self, error: &GatewayError) {
        let (id, facts) = (self.context.id, self.context.facts());
        let (operation, client) = (facts.operation(), facts.client());
        let (kind, side, detail) = (error.kind().name(), error.side().name(), error.detail());
        tracing::warn!(request_id = %id, operation, client, kind, side, detail = %Escaped(&detail), "a response was truncated");
    }

    fn end(&mut self, _end: BodyEnd) {}
}

fn panic_error(panic: &(dyn Any + Send)) -> GatewayError {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    GatewayError::new(ErrorKind::Internal, format!("panic: {}", text.unwrap_or("without a text")))
}

fn answer(context: &RequestContext, error: &GatewayError) -> Response {
    log(context, error);
    context.facts().set_error(error, outcome(error));
    response(context, error)
}

/// Builds the error response for the client of a request.
pub(crate) fn response(context: &RequestContext, error: &GatewayError) -> Response {
    let front = context.facts().front.clone();
    // Outside all fronts, use the format of the old side: its clients are the expected callers.
    let serves = front.as_ref().map_or(SideId::OLD, |front| front.serves);
    let form = context.program.errors(serves);
    let (status, body) = form.answer(error, context.language);
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Some(own) = error.headers() {
        headers.extend(own.clone());
    }
    headers.insert(header::CONTENT_TYPE, form.content_type().clone());
    // Some errors are cacheable by default, such as 404 and 501 (RFC 9110, section 15.1), and would
    // outlive their cause.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(language) = context.program.language_tag(context.language) {
        headers.insert(header::CONTENT_LANGUAGE, language.clone());
    }
    match error.kind() {
        ErrorKind::WrongMethod { allow } => {
            if let Ok(allow) = HeaderValue::from_str(allow) {
                headers.insert(header::ALLOW, allow);
            }
        }
        ErrorKind::UnknownToken => {
            // Required with 401 (RFC 9110, section 11.6.1).
            let first = front.map(|front| context.program.credential(front.serves).read_fields().next());
            // A token without a scheme has no registered scheme name.
            let scheme = first.map(|first| first.and_then(|(_, scheme)| scheme.name()).unwrap_or("ApiKey"));
            if let Some(Ok(scheme)) = scheme.map(HeaderValue::from_str) {
                headers.insert(header::WWW_AUTHENTICATE, scheme);
            }
        }
        ErrorKind::Overloaded { retry_after } | ErrorKind::Brownout { retry_after } => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after.as_secs().max(1)));
        }
        _ => {}
    }
    // The rest of the request could be read as the next one. Over HTTP/2 each request has its own
    // stream.
    if error.kind().closes_connection() && context.version < Version::HTTP_2 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn outcome(error: &GatewayError) -> Outcome {
    match (error.kind(), error.side()) {
        (ErrorKind::Refused | ErrorKind::AccountUnavailable, _) => Outcome::Refused,
        (ErrorKind::Brownout { .. }, _) => Outcome::Brownout,
        (ErrorKind::Retired, _) => Outcome::Retired,
        (_, ErrorSide::Client) => Outcome::Rejected,
        (_, ErrorSide::Gateway) => Outcome::GatewayError,
        (_, ErrorSide::Upstream) => Outcome::UpstreamError,
    }
}

/// Logs an error. Client errors and deliberate refusals are logged at `debug` only, since an
/// operator need not act on them; the access log has a line for each.
fn log(context: &RequestContext, error: &GatewayError) {
    let (id, facts) = (context.id, context.facts());
    let (operation, client) = (facts.operation(), facts.client());
    let (kind, side, detail) = (error.kind().name(), error.side().name(), error.detail());
    match outcome(error).is_failed() {
        false => {
            tracing::debug!(request_id = %id, operation, client, kind, side, detail = %Escaped(&detail), "a request was rejected");
        }
        // Indicates a bug in the gateway or in its pack.
        true if *error.kind() == ErrorKind::Internal => {
            tracing::error!(request_id = %id, operation, client, kind, side, detail = %Escaped(&detail), "a request failed");
        }
        true => {
            tracing::warn!(request_id = %id, operation, client, kind, side, detail = %Escaped(&detail), "a request failed");
        }
    }
}
