//! Finds the front and the operation of a request from its method and undecoded path. The upstream
//! path is built from the values extracted here. The path is parsed only once, so two parsers
//! cannot disagree about it. From here on, the body has the limits of its operation.

use super::middleware::{Before, Middleware};
use crate::body::Body;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::Request;
use crate::proxy::context::RequestContext;
use crate::proxy::program::Front;
use crate::proxy::request::{Operation, Routed, Unknown};
use http::Method;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchback_plan::router;
use switchback_plan::router::path::stays_below;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteLayer;

impl Middleware<Request> for RouteLayer {
    type Inward = Routed;
    type Kept = ();
    type Fault = GatewayError;

    fn before(&self, request: Request) -> Before<Self, Request> {
        match route(&request.context) {
            Err(error) => ControlFlow::Break(Err(error)),
            Ok((front, operation)) => {
                let Request { context, body } = request;
                let body = match limit_body(body, &front, operation.as_ref().ok()) {
                    Ok(body) => body,
                    Err(error) => return ControlFlow::Break(Err(error)),
                };
                ControlFlow::Continue((Routed { context, front, operation, form: None, body }, ()))
            }
        }
    }
}

/// Applies the limits of an operation to the body of its request. Code that buffers the body
/// enforces the lower limit of buffered bodies; a forwarded body is streamed, so its length costs no
/// memory.
///
/// # Errors
///
/// The announced length is over the limit.
fn limit_body(body: Body, front: &Front, operation: Option<&Operation>) -> Result<Body, GatewayError> {
    let limits = front.limits.for_route(operation.map(|operation| operation.route));
    let bytes_max = limits.body_bytes_max();
    if body.length().is_some_and(|length| length > bytes_max) {
        return Err(GatewayError::new(ErrorKind::TooLarge, "the announced request body is over its limit"));
    }
    Ok(body.with_limit(bytes_max).with_timeout(limits.body_timeout))
}

/// The front of a request, and its operation or the reason why it has none.
type Found = (Arc<Front>, Result<Operation, Unknown>);

/// Finds the front and the operation, and records them. The front is recorded even if the request
/// fails, because errors have its form.
fn route(context: &RequestContext) -> Result<Found, GatewayError> {
    let (front, found) = match front(context) {
        Ok((front, rest)) => (front, find(context, front, rest)),
        Err(error) => match context.program.front_at(context.uri.path()) {
            None => return Err(error),
            Some(front) => (front, Err(error)),
        },
    };
    let mut facts = context.facts();
    facts.front = Some(Arc::clone(front));
    let operation = match found {
        Ok(operation) => {
            facts.set_operation(&operation);
            Ok(operation)
        }
        Err(error) => Err(unknown(context, front, error.kind()).ok_or(error)?),
    };
    Ok((Arc::clone(front), operation))
}

/// Returns why a request matches no operation, or `None` if the gateway answers the error itself.
fn unknown(context: &RequestContext, front: &Front, why: &ErrorKind) -> Option<Unknown> {
    let unknown = match why {
        ErrorKind::NotFound => Unknown::Path,
        ErrorKind::WrongMethod { .. } => Unknown::Method,
        ErrorKind::BadPath => Unknown::Spelling,
        _ => return None,
    };
    let below = context.uri.path().get(front.prefix.len()..).unwrap_or_default();
    (front.asked_about_strangers().is_some() && stays_below(below)).then_some(unknown)
}

/// Finds the front of a request, and the path below it.
pub(crate) fn front(context: &RequestContext) -> Result<(&Arc<Front>, &str), GatewayError> {
    let path = context.uri.path();
    context.program.front(path).ok_or_else(|| match switchback_plan::router::path::segments(path) {
        // An ambiguous path gets its own error, whichever prefix it seems to have.
        Err(error) => GatewayError::new(ErrorKind::BadPath, error.to_string()),
        Ok(_) => GatewayError::new(ErrorKind::NotFound, "no front has this prefix"),
    })
}

/// Finds the operation of a request from its path below `front`.
pub(crate) fn find(context: &RequestContext, front: &Front, rest: &str) -> Result<Operation, GatewayError> {
    let scope = context.program.side(front.serves).scope.as_deref();
    let (account, rest) =
        match scope.and_then(|scope| switchback_plan::router::path::strip_prefix(scope, rest)) {
            Some((account, rest)) => (Some(account.into_owned()), rest),
            None => (None, rest),
        };
    match front.router.find(&context.method, rest) {
        router::Found::Route { route, values } => {
            let values = values.into_iter().map(Cow::into_owned).collect();
            Ok(Operation { route, values, account })
        }
        router::Found::WrongMethod { allow } => {
            let allow = allow.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
            Err(GatewayError::new(ErrorKind::WrongMethod { allow }, "a method that the path does not have"))
        }
        router::Found::NotFound => Err(GatewayError::new(ErrorKind::NotFound, "no operation has this path")),
        router::Found::Bad(error) => Err(GatewayError::new(ErrorKind::BadPath, error.to_string())),
    }
}
