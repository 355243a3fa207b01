//! Who is calling: the client's token, read where its side carries it, selects an enrolled client. The token goes no
//! further: no header that may carry it crosses the gateway in a translated call.
//!
//! Of a client that nobody enrolled the front's own service is asked, where that answers the call anyway: it sees the call as
//! it came, and nothing of ours.

use super::middleware::Middleware;
use crate::error::{GatewayError, Kind};
use crate::proxy::context::{Matched, RequestContext, Unknown};
use crate::proxy::program::{Front, Strangers};
use crate::proxy::{Request, Response};
use crate::shadow::Phase;
use crate::token::{Client, Tokens};
use http::HeaderMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchback_plan::{Credential, RouteKind};

#[derive(Clone)]
pub(crate) struct Authenticate {
    tokens: Tokens,
}

impl Middleware<Request> for Authenticate {
    type Inward = Request;
    type Kept = ();
    type Fault = GatewayError;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, GatewayError>, (Request, ())> {
        match self.client(&request.facts) {
            Err(error) if !self.is_judged_by_own(&request.facts) => ControlFlow::Break(Err(error)),
            Err(_) => {
                // What is unknown of a call already says more.
                request.facts.set_unknown(Unknown::Client);
                ControlFlow::Continue((request, ()))
            }
            Ok(client) => {
                request.facts.set_client(client);
                ControlFlow::Continue((request, ()))
            }
        }
    }
}

impl Authenticate {
    pub(crate) fn new(tokens: Tokens) -> Authenticate {
        Authenticate { tokens }
    }

    /// Whether a client that nobody enrolled is for the front's own service to judge, which then sees what the client sent
    /// and nothing of ours. A token that was given out or revoked here says nothing to that service, and is not shown to it.
    fn is_judged_by_own(&self, facts: &RequestContext) -> bool {
        let front = facts.front().expect("`route` sits outside and leaves the front");
        if front.asked_about_strangers().is_none() {
            return false;
        }
        let is_own_to_answer = front.unknown == Strangers::ForwardAll
            || facts.operation_matched().is_none_or(|matched| answers_strangers(facts, matched));
        is_own_to_answer && !self.shows_known_token(facts, front)
    }

    fn shows_known_token(&self, facts: &RequestContext, front: &Front) -> bool {
        let credential = facts.program.credential(front.serves);
        let values = credential.read.iter().flat_map(|name| facts.headers.get_all(name.as_str()));
        let words = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b' '));
        words.filter(|word| !word.is_empty()).any(|word| self.tokens.clients().is_known(word))
    }

    fn client(&self, facts: &RequestContext) -> Result<Arc<Client>, GatewayError> {
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

/// Whether the own service answers an operation for those who are nobody's share of a canary: unless it is translated, and
/// then too where the pack refuses it and leaves it to that service.
fn answers_strangers(facts: &RequestContext, matched: &Matched) -> bool {
    let route = facts.program.route(matched.front.serves, matched.route);
    match matched.front.phase(matched.route) {
        Phase::Legacy | Phase::Shadow | Phase::Canary(_) => true,
        Phase::Translated { .. } => {
            matches!(&route.kind, RouteKind::Refuse(refusal) if refusal.legacy_forward)
        }
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

/// What follows the authentication scheme (RFC 9110, section 11.1: its case does not matter), or all of it where there is
/// none.
fn after_scheme<'v>(value: &'v str, scheme: &str) -> Option<&'v str> {
    if scheme.is_empty() {
        return Some(value.trim()).filter(|token| !token.is_empty());
    }
    let (head, rest) = value.trim().split_once(' ')?;
    let token = rest.trim_start();
    (head.eq_ignore_ascii_case(scheme) && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn read(fields: &[(&'static str, &'static str)]) -> Result<Option<String>, Kind> {
        read_after("Bearer", fields)
    }

    fn read_after(scheme: &str, fields: &[(&'static str, &'static str)]) -> Result<Option<String>, Kind> {
        let credential = Credential {
            read: vec!["x-own".into(), "authorization".into()],
            send: vec!["x-own".into()],
            scheme: scheme.into(),
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
    fn a_token_may_stand_alone_or_after_any_word() {
        assert_eq!(read_after("", &[("x-own", " a-key ")]), Ok(Some("a-key".into())));
        assert_eq!(read_after("", &[("x-own", "Bearer a")]), Ok(Some("Bearer a".into())));
        assert_eq!(read_after("", &[("x-own", "")]), Ok(None));
        assert_eq!(read_after("ApiToken", &[("x-own", "apitoken a")]), Ok(Some("a".into())));
    }

    #[test]
    fn two_different_tokens_are_ambiguous_and_two_equal_ones_are_not() {
        assert_eq!(read(&[("x-own", "Bearer a"), ("x-own", "Bearer b")]), Err(Kind::BadRequest));
        assert_eq!(read(&[("x-own", "Bearer a"), ("x-own", "Bearer a")]), Ok(Some("a".into())));
    }
}
