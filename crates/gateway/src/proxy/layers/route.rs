//! Finds the front and the operation of a request from its method and undecoded path. The upstream
//! path is built from the values extracted here. The path is parsed only once, so two parsers
//! cannot disagree about it.

use super::middleware::Middleware;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::context::{Matched, RequestContext, Unknown};
use crate::proxy::{Request, Response};
use http::Method;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchback_plan::router::Found;
use switchback_plan::router::path::stays_below;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteLayer;

impl Middleware<Request> for RouteLayer {
    type Inward = Request;
    type Kept = ();
    type Fault = GatewayError;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, GatewayError>, (Request, ())> {
        match find(&request.context) {
            Err(error) => match unknown(&request.context, error.kind()) {
                None => ControlFlow::Break(Err(error)),
                Some(unknown) => {
                    request.context.set_unknown(unknown);
                    ControlFlow::Continue((request, ()))
                }
            },
            Ok(matched) => {
                request.context.set_matched(matched);
                ControlFlow::Continue((request, ()))
            }
        }
    }
}

/// Returns why a request matches no operation, or `None` if the gateway answers the error itself.
/// Sets the front of a request for exactly a front's prefix.
fn unknown(context: &RequestContext, why: &ErrorKind) -> Option<Unknown> {
    let unknown = match why {
        ErrorKind::NotFound => Unknown::Path,
        ErrorKind::WrongMethod { .. } => Unknown::Method,
        ErrorKind::BadPath => Unknown::Spelling,
        _ => return None,
    };
    let front = match context.front() {
        Some(front) => front,
        None => {
            let front = context.program.front_at(context.uri.path())?;
            context.set_front(Arc::clone(front));
            front
        }
    };
    let below = context.uri.path().get(front.prefix.len()..).unwrap_or_default();
    (front.asked_about_strangers().is_some() && stays_below(below)).then_some(unknown)
}

/// Finds the operation of a request. Also sets the front in the request context, even if no
/// operation matches.
pub(crate) fn find(context: &RequestContext) -> Result<Matched, GatewayError> {
    let path = context.uri.path();
    let Some((front, rest)) = context.program.front(path) else {
        // An ambiguous path gets its own error, whichever prefix it seems to have.
        return Err(match switchback_plan::router::path::segments(path) {
            Err(error) => GatewayError::new(ErrorKind::BadPath, error.to_string()),
            Ok(_) => GatewayError::new(ErrorKind::NotFound, "no front has this prefix"),
        });
    };
    context.set_front(Arc::clone(front));
    let scope = context.program.side(front.serves).scope.as_deref();
    let (account, rest) =
        match scope.and_then(|scope| switchback_plan::router::path::strip_prefix(scope, rest)) {
            Some((account, rest)) => (Some(account.into_owned()), rest),
            None => (None, rest),
        };
    match front.router.find(&context.method, rest) {
        Found::Route { route, values } => {
            let values = values.into_iter().map(Cow::into_owned).collect();
            Ok(Matched { front: Arc::clone(front), route, values, account })
        }
        Found::WrongMethod { allow } => {
            let allow = allow.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
            Err(GatewayError::new(ErrorKind::WrongMethod { allow }, "a method that the path does not have"))
        }
        Found::NotFound => Err(GatewayError::new(ErrorKind::NotFound, "no operation has this path")),
        Found::Bad(error) => Err(GatewayError::new(ErrorKind::BadPath, error.to_string())),
    }
}
