//! Forwards a request without translation to the legacy service that the client addresses. Method,
//! path, query and both bodies are unchanged, and so is the client's token unless the gateway has a
//! credential for that service (see `upstream_auth`). Hop-by-hop fields are removed (RFC 9110,
//! section 7.6). Only calls without effects, according to both HTTP and the contract, may be
//! retried.

use crate::error::GatewayError;
use crate::proxy::calls::call::{Call, Credential, Delivery, InterimHandling, Payload};
use crate::proxy::calls::upstream_auth;
use crate::proxy::compose::Composer;
use crate::proxy::request::ForwardedRequest;
use crate::proxy::upstream::Upstream;
use crate::proxy::{Response, headers};
use crate::token::carried;
use crate::tunnel::Switched;
use bytes::Bytes;
use http::{Method, header};
use hyper::ext::ReasonPhrase;
use std::ops::Deref;
use std::sync::Arc;
use switchback_plan::Effect;

/// Forwards `request` to `upstream`, with its credential and forwarding fields.
pub(crate) async fn forward(
    composer: impl Deref<Target = Composer>,
    upstream: Arc<Upstream>,
    request: ForwardedRequest,
) -> Result<Response, GatewayError> {
    let (effect, limits) = (request.effect(), request.limits().calls);
    let ForwardedRequest { context, front, client, mut body, _form, .. } = request;
    context.record.set_forwarded();
    let pseudonym = &composer.pseudonym;
    let mut headers = headers::forwarded_request(&context.headers, context.version, context.trace, pseudonym);
    composer.forwarding.apply(&mut headers, context.sender.peer, context.headers.get(header::HOST));
    let (side, mut target) = (front.serves, context.below(&front));
    let credential = match &client {
        Some(client) => upstream_auth::forwarded_credential(&context.program, client, side)?,
        // An unknown client uses its own credential, never one of the gateway.
        None => Credential::Carried,
    };
    if !matches!(credential, Credential::Carried) {
        let own = context.program.credential(side);
        headers::remove_credentials(&mut headers, own);
        target = carried::target_without(&target, own.read_queries()).unwrap_or(target);
    }
    let switches = body.is_empty() && headers::add_switch(&context.headers, context.version, &mut headers);
    if context.method == Method::OPTIONS || context.method == Method::TRACE {
        headers::count_down(&mut headers);
    }
    // Safe methods (RFC 9110, section 9.2.1), unless the request overrides its method.
    let is_reading = matches!(context.method, Method::GET | Method::HEAD)
        && effect == Effect::None
        && body.is_empty()
        && !headers::names_other_method(&context.headers);
    // A form that carries a token must be rewritten, so take it from memory; it was buffered before.
    // All other bodies stream through.
    let uses_form =
        !matches!(credential, Credential::Carried) && context.program.credential(side).uses_forms();
    let form = match uses_form && headers::is_form(&context.headers) {
        true => body.take_whole(u64::MAX).transpose()?,
        false => None,
    };
    let form = form.map(|form| context.without_form_token(&front, &form).unwrap_or(form));
    let mut call = Call {
        method: context.method.clone(),
        context,
        client,
        upstream,
        target,
        scope_bytes: 0,
        // Forwarded responses are not interpreted.
        side: None,
        limits,
        headers,
        payload: match form {
            Some(form) => Payload::Whole(form),
            None if body.is_empty() => Payload::Whole(Bytes::new()),
            None => Payload::Stream(body.with_trailers()),
        },
        delivery: Delivery::new(
            if switches { InterimHandling::Switch } else { InterimHandling::Forward },
            is_reading,
        ),
        credential,
    };
    let is_head = call.method == Method::HEAD;
    let answer = composer.calls.send(&mut call).await?;
    let (mut parts, body) = answer.into_parts();
    let mut answer = Response::new(body.with_trailers());
    *answer.status_mut() = parts.status;
    *answer.headers_mut() = headers::forwarded_answer(&parts.headers, is_head);
    if let Some(reason) = parts.extensions.remove::<ReasonPhrase>() {
        answer.extensions_mut().insert(reason);
    }
    if let Some(switched) = parts.extensions.remove::<Switched>() {
        headers::add_switched(&parts.headers, answer.headers_mut());
        answer.extensions_mut().insert(switched);
    }
    Ok(answer)
}
