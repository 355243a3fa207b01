//! Who is calling: the client's token, read where its side carries it, selects an enrolled client. The token goes no
//! further: no header that may carry it crosses the gateway in a translated call.

use super::after::After;
use crate::error::{GatewayError, Kind};
use crate::proxy::context::Facts;
use crate::proxy::{Request, Response};
use crate::token::{Client, Tokens};
use http::HeaderMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use switchback_plan::Credential;
use tower::{Layer, Service};

#[derive(Clone)]
pub struct AuthenticateLayer {
    tokens: Tokens,
}

impl AuthenticateLayer {
    pub fn new(tokens: Tokens) -> AuthenticateLayer {
        AuthenticateLayer { tokens }
    }
}

impl<S> Layer<S> for AuthenticateLayer {
    type Service = Authenticate<S>;

    fn layer(&self, inner: S) -> Authenticate<S> {
        Authenticate { inner, tokens: self.tokens.clone() }
    }
}

#[derive(Clone)]
pub struct Authenticate<S> {
    inner: S,
    tokens: Tokens,
}

impl<S> Service<Request> for Authenticate<S>
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
        match self.client(&request.facts) {
            Err(error) => After::early(Err(error)),
            Ok(client) => {
                request.facts.set_client(client);
                After::wait(self.inner.call(request), ())
            }
        }
    }
}

impl<S> Authenticate<S> {
    fn client(&self, facts: &Facts) -> Result<Arc<Client>, GatewayError> {
        let front = facts.front().expect("`route` sits outside and leaves the front");
        let side = facts.program.side(front.serves);
        let token = token(&facts.headers, &side.credential)?;
        let client = token.and_then(|token| self.tokens.clients().authenticate(token.as_bytes(), &side.name));
        client.ok_or_else(|| {
            let detail =
                if token.is_some() { "a token that is not enrolled for this side" } else { "no token" };
            GatewayError::new(Kind::UnknownToken, detail)
        })
    }
}

/// The client's token. The first of the side's headers that is there decides, even when it holds no token: to look further
/// would let a caller choose whose token counts. The same header twice with different values is ambiguous.
fn token<'h>(headers: &'h HeaderMap, credential: &Credential) -> Result<Option<&'h str>, GatewayError> {
    let found = credential.read.iter().find_map(|name| {
        let mut lines = headers.get_all(name.as_str()).iter();
        lines.next().map(|first| (name, first, lines))
    });
    let Some((name, first, mut lines)) = found else { return Ok(None) };
    if lines.any(|line| line != first) {
        return Err(GatewayError::new(Kind::BadRequest, format!("`{name}` twice with different values")));
    }
    Ok(first.to_str().ok().and_then(|value| after_scheme(value, &credential.scheme)))
}

/// What follows the authentication scheme (RFC 9110, section 11.1: its case does not matter).
fn after_scheme<'v>(value: &'v str, scheme: &str) -> Option<&'v str> {
    let (head, rest) = value.trim().split_once(' ')?;
    let token = rest.trim_start();
    (head.eq_ignore_ascii_case(scheme) && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn read(fields: &[(&'static str, &'static str)]) -> Result<Option<String>, Kind> {
        let credential = Credential {
            read: vec!["x-own".into(), "authorization".into()],
            send: vec!["x-own".into()],
            scheme: "Bearer".into(),
            tokens: Default::default(),
            headers: Vec::new(),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        match token(&headers, &credential) {
            Ok(token) => Ok(token.map(str::to_owned)),
            Err(error) => Err(error.kind().clone()),
        }
    }

    #[test]
    fn the_sides_own_header_wins_even_when_it_is_useless() {
        assert_eq!(read(&[("authorization", "Bearer a"), ("x-own", "Bearer b")]), Ok(Some("b".into())));
        assert_eq!(read(&[("authorization", "Bearer a"), ("x-own", "b")]), Ok(None));
        assert_eq!(read(&[("authorization", "bearer  a")]), Ok(Some("a".into())));
        assert_eq!(read(&[("authorization", "Basic a")]), Ok(None));
        assert_eq!(read(&[("authorization", "Bearer ")]), Ok(None));
        assert_eq!(read(&[("x_own", "Bearer a")]), Ok(None));
        assert_eq!(read(&[]), Ok(None));
    }

    #[test]
    fn two_different_tokens_are_ambiguous_and_two_equal_ones_are_not() {
        assert_eq!(read(&[("x-own", "Bearer a"), ("x-own", "Bearer b")]), Err(Kind::BadRequest));
        assert_eq!(read(&[("x-own", "Bearer a"), ("x-own", "Bearer a")]), Ok(Some("a".into())));
    }
}
