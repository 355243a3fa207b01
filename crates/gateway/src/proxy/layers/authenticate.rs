//! Authenticates the client by its token. The side defines where a token may occur: header, query
//! or form field. The token is never forwarded in a translated call.
//!
//! If no client is enrolled with the token and the front's own service answers this operation, the
//! call continues with [`Unknown::Client`] and that service authenticates it.

use super::middleware::{Before, Middleware};
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::program::UnknownClientPolicy;
use crate::proxy::request::{Authenticated, Form, ForwardedRequest, KnownRequest, Routed, Unknown};
use crate::shadow::Phase;
use crate::token::{Client, Tokens, carried};
use http::HeaderMap;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchback_plan::{Carrier, Credential, RouteId, RouteKind};

#[derive(Clone)]
pub(crate) struct Authenticate {
    pub tokens: Tokens,
}

impl Middleware<Routed> for Authenticate {
    type Inward = Authenticated;
    type Kept = ();
    type Fault = GatewayError;

    fn before(&self, request: Routed) -> Before<Self, Routed> {
        let client = match self.client(&request) {
            Err(error) if !self.is_judged_by_own(&request) => return ControlFlow::Break(Err(error)),
            client => client.ok(),
        };
        let Routed { context, front, operation, form, body } = request;
        if let Some(client) = &client {
            context.facts().client = Some(Arc::clone(client));
        }
        let authenticated = match (operation, client) {
            (Ok(operation), Some(client)) => {
                let known = KnownRequest::new(context, front, operation, client, form);
                Authenticated::Known(Arc::new(known), body)
            }
            (operation, client) => {
                // The reason of `route` takes precedence: it is more specific.
                let unknown = operation.as_ref().err().copied().unwrap_or(Unknown::Client);
                let operation = operation.ok().map(|operation| operation.route);
                let request = ForwardedRequest { context, front, operation, client, _form: form, body };
                Authenticated::Unknown(unknown, request)
            }
        };
        ControlFlow::Continue((authenticated, ()))
    }
}

impl Authenticate {
    /// Returns whether the front's own service authenticates an unknown client. Tokens that this
    /// gateway issued, including revoked ones, are never forwarded to that service.
    fn is_judged_by_own(&self, request: &Routed) -> bool {
        let front = &request.front;
        if front.asked_about_strangers().is_none() {
            return false;
        }
        let is_own_to_answer = front.unknown == UnknownClientPolicy::ForwardAll
            || request
                .operation
                .as_ref()
                .map_or(true, |operation| answers_strangers(request, operation.route));
        // Checked last, because it hashes every candidate.
        is_own_to_answer && !self.shows_known_token(request)
    }

    /// Returns whether any location that may carry a token has one that this gateway issued.
    fn shows_known_token(&self, Routed { context, front, form, .. }: &Routed) -> bool {
        let (credential, clients) = (context.program.credential(front.serves), self.tokens.clients());
        let is_in_field = credential.read_fields().any(|(header, scheme)| {
            context.headers.get_all(header).iter().any(|value| {
                let words = value.as_bytes().split(|byte| *byte == b' ').filter(|word| !word.is_empty());
                let read = value.to_str().ok().and_then(|value| carried::extract_token(value, scheme));
                words.chain(read.as_deref().map(str::as_bytes)).any(|word| clients.is_known(word))
            })
        });
        let known = |token: Cow<'_, str>| clients.is_known(token.as_bytes());
        let (query, form) = (context.uri.query().unwrap_or_default(), Form::text(form));
        is_in_field
            || credential.read_queries().flat_map(|name| carried::values(query, name)).any(known)
            || credential.read_form_fields().flat_map(|name| carried::values(form, name)).any(known)
    }

    fn client(&self, Routed { context, front, form, .. }: &Routed) -> Result<Arc<Client>, GatewayError> {
        let side = context.program.side(front.serves);
        let (query, form) = (context.uri.query().unwrap_or_default(), Form::text(form));
        let token = token(&context.headers, query, form, &side.credential)?;
        let found = token.as_deref().map(str::as_bytes);
        let client = found.and_then(|token| self.tokens.clients().authenticate(token, &side.name));
        client.ok_or_else(|| {
            let detail =
                if token.is_some() { "a token that is not enrolled for this side" } else { "no token" };
            GatewayError::new(ErrorKind::UnknownToken, detail)
        })
    }
}

/// Returns whether the front's own service answers this operation for clients outside the canary
/// share. In the translated phase it does so only for a route that the pack refuses with
/// `legacy_forward`.
fn answers_strangers(Routed { context, front, .. }: &Routed, route: RouteId) -> bool {
    match front.phase(route) {
        Phase::Legacy | Phase::Shadow | Phase::Canary(_) => true,
        Phase::Translated { .. } => {
            let kind = &context.program.route(front.serves, route).kind;
            matches!(kind, RouteKind::Refuse(refusal) if refusal.legacy_forward)
        }
    }
}

/// Extracts the client's token. Returns `None` if there is no usable token, and an error if the
/// deciding location has two different values.
///
/// The first configured location that is present decides, even if it has no valid token: a fallback
/// would let the caller choose which token counts. If one header accepts several schemes, the first
/// that matches is used.
fn token<'r>(
    headers: &'r HeaderMap,
    query: &'r str,
    form: &'r str,
    credential: &Credential,
) -> Result<Option<Cow<'r, str>>, GatewayError> {
    let twice = |name: &str| {
        GatewayError::new(ErrorKind::BadRequest, format!("`{name}` twice with different values"))
    };
    for carrier in &credential.read {
        let (name, pairs) = match carrier {
            Carrier::Header { name, .. } => {
                let mut lines = headers.get_all(name.as_str()).iter();
                let Some(first) = lines.next() else { continue };
                // The service and the gateway could each read another one of them.
                if lines.any(|line| line != first) {
                    return Err(twice(name));
                }
                let Ok(value) = first.to_str() else { return Ok(None) };
                let mut schemes = credential.read_fields().filter(|(own, _)| own == name);
                return Ok(schemes.find_map(|(_, scheme)| carried::extract_token(value, scheme)));
            }
            Carrier::Query(name) => (name, query),
            Carrier::FormField(name) => (name, form),
        };
        let mut values = carried::values(pairs, name);
        let Some(first) = values.next() else { continue };
        if values.any(|value| value != first) {
            return Err(twice(name));
        }
        return Ok(Some(first).filter(|token| !token.is_empty()));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use switchback_plan::{BasicPart, Scheme};

    fn read(fields: &[(&'static str, &'static str)]) -> Result<Option<String>, ErrorKind> {
        let bearer = || Scheme::Word("Bearer".to_owned());
        read_as(&[("x-own", bearer()), ("authorization", bearer())], fields)
    }

    fn read_as(
        carriers: &[(&str, Scheme)],
        fields: &[(&'static str, &'static str)],
    ) -> Result<Option<String>, ErrorKind> {
        let carriers = carriers.iter();
        let carriers = carriers
            .map(|(name, scheme)| Carrier::Header { name: (*name).to_owned(), scheme: scheme.clone() });
        let credential = Credential {
            read: carriers.collect(),
            send: Vec::new(),
            tokens: Default::default(),
            headers: Vec::new(),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        match token(&headers, "", "", &credential) {
            Ok(token) => Ok(token.map(Cow::into_owned)),
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
        let alone = [("x-own", Scheme::Bare)];
        assert_eq!(read_as(&alone, &[("x-own", " a-key ")]), Ok(Some("a-key".into())));
        assert_eq!(read_as(&alone, &[("x-own", "Bearer a")]), Ok(Some("Bearer a".into())));
        assert_eq!(read_as(&alone, &[("x-own", "")]), Ok(None));
        let own = [("x-own", Scheme::Word("ApiToken".to_owned()))];
        assert_eq!(read_as(&own, &[("x-own", "apitoken a")]), Ok(Some("a".into())));
    }

    /// The first header present decides, and in it the first scheme that matches.
    #[test]
    fn one_header_may_carry_a_token_in_several_forms() {
        let all = [
            ("x-own", Scheme::Bare),
            ("authorization", Scheme::Word("Token".to_owned())),
            ("authorization", Scheme::Basic(BasicPart::User)),
            ("authorization", Scheme::Basic(BasicPart::Password)),
        ];
        let authorization = |value| read_as(&all, &[("authorization", value)]);
        assert_eq!(authorization("token a-key"), Ok(Some("a-key".into())));
        // `a-key:`, `:a-key` and `user:a-key`.
        assert_eq!(authorization("Basic YS1rZXk6"), Ok(Some("a-key".into())));
        assert_eq!(authorization("basic OmEta2V5"), Ok(Some("a-key".into())));
        assert_eq!(authorization("Basic dXNlcjphLWtleQ=="), Ok(Some("user".into())));
        for none in ["Basic", "Basic ???", "Basic YS1rZXk", "Bearer a-key", "Basic Og=="] {
            assert_eq!(authorization(none), Ok(None), "{none}");
        }
        let both = [("authorization", "token a-key"), ("x-own", "")];
        assert_eq!(read_as(&all, &both), Ok(None), "the first header decides");
    }

    #[test]
    fn two_different_tokens_are_ambiguous_and_two_equal_ones_are_not() {
        assert_eq!(read(&[("x-own", "Bearer a"), ("x-own", "Bearer b")]), Err(ErrorKind::BadRequest));
        assert_eq!(read(&[("x-own", "Bearer a"), ("x-own", "Bearer a")]), Ok(Some("a".into())));
    }
}
