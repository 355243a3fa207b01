//! Which front and which operation a request is for, from method and path as they stand in the request line. The values
//! found here are what the upstream's path is built from: there is one parse, so nothing can be read in two ways.

use super::after::After;
use crate::error::{GatewayError, Kind};
use crate::proxy::context::{Facts, Matched, Unknown};
use crate::proxy::{Request, Response};
use http::Method;
use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_plan::router::Found;
use switchback_plan::router::path::stays_below;
use tower::{Layer, Service};

#[derive(Clone, Copy, Debug, Default)]
pub struct RouteLayer;

impl<S> Layer<S> for RouteLayer {
    type Service = Route<S>;

    fn layer(&self, inner: S) -> Route<S> {
        Route { inner }
    }
}

#[derive(Clone)]
pub struct Route<S> {
    inner: S,
}

impl<S> Service<Request> for Route<S>
where
    S: Service<Request, Response = Response, Error = GatewayError>,
{
    type Response = Response;
    type Error = GatewayError;
    type Future = After<S::Future, ()>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match find(&request.facts) {
            Err(error) => match unknown(&request.facts, error.kind()) {
                None => After::early(Err(error)),
                Some(unknown) => {
                    request.facts.set_unknown(unknown);
                    After::wait(self.inner.call(request), ())
                }
            },
            Ok(matched) => {
                request.facts.set_matched(matched);
                After::wait(self.inner.call(request), ())
            }
        }
    }
}

/// What is unknown of a request that no operation is for, if the front's own service is to judge it.
fn unknown(facts: &Facts, why: &Kind) -> Option<Unknown> {
    let unknown = match why {
        Kind::NotFound => Unknown::Path,
        Kind::WrongMethod { .. } => Unknown::Method,
        Kind::BadPath => Unknown::Spelling,
        _ => return None,
    };
    let front = match facts.front() {
        Some(front) => front,
        None => {
            let front = facts.program.front_at(facts.uri.path())?;
            facts.set_front(Arc::clone(front));
            front
        }
    };
    let below = facts.uri.path().get(front.prefix.len()..).unwrap_or_default();
    (front.asked_about_strangers().is_some() && stays_below(below)).then_some(unknown)
}

/// Finds what a request is for, and leaves its front in its facts.
pub(crate) fn find(facts: &Facts) -> Result<Matched, GatewayError> {
    let path = facts.uri.path();
    let Some((front, rest)) = facts.program.front(path) else {
        // A path that could be read in two ways is refused as such wherever it seems to point.
        return Err(match switchback_plan::router::path::segments(path) {
            Err(error) => GatewayError::new(Kind::BadPath, error.to_string()),
            Ok(_) => GatewayError::new(Kind::NotFound, "no front has this prefix"),
        });
    };
    facts.set_front(Arc::clone(front));
    let scope = facts.program.side(front.serves).scope.as_deref();
    let (account, rest) = match scope.and_then(|scope| switchback_plan::router::path::under(scope, rest)) {
        Some((account, rest)) => (Some(account.into_owned()), rest),
        None => (None, rest),
    };
    match front.router.find(&facts.method, rest) {
        Found::Route { route, values } => {
            let values = values.into_iter().map(Cow::into_owned).collect();
            Ok(Matched { front: Arc::clone(front), route, values, account })
        }
        Found::WrongMethod { allow } => {
            let allow = allow.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
            Err(GatewayError::new(Kind::WrongMethod { allow }, "a method that the path does not have"))
        }
        Found::NotFound => Err(GatewayError::new(Kind::NotFound, "no operation has this path")),
        Found::Bad(error) => Err(GatewayError::new(Kind::BadPath, error.to_string())),
    }
}
