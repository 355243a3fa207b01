//! The innermost layer: sets the resolved credential, signs the call, and sends the call to its upstream.

use super::call::{Call, Caller, Credential, InterimHandling, Payload};
use super::span;
use crate::body::Body;
use crate::clock::Clock;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::origin::CallOrigin;
use crate::proxy::upstream::Way;
use crate::proxy::{Response, headers};
use crate::signature::Signature;
use crate::token::carried::{self, TokenPlace};
use http::{HeaderMap, HeaderValue, header};
use std::sync::Arc;
use std::time::Instant;
use switchback_plan::BodyFormat;

/// The innermost layer, which sends calls to their upstream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Send;

impl Caller for Send {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        call.context.record.count_call();
        let upstream = Arc::clone(&call.upstream);
        // Acquired per attempt, because it is released with the body of each response.
        let permit = upstream.permit(call.client.as_ref().map_or("", |client| &client.name))?;
        let (mut target, mut form) = (None, None);
        if let Credential::Ready { place, value } = &call.credential {
            // The call may be sent again, so its own target and payload stay free of the token.
            // Headers are overwritten by the next attempt.
            match &**place {
                TokenPlace::Headers { names, .. } => {
                    for name in names {
                        call.headers.insert(name.clone(), value.clone());
                    }
                }
                TokenPlace::Query(name) => {
                    target = Some(carried::target_with(&call.target, name, text(value)));
                }
                TokenPlace::FormField(name) => {
                    form = Some(carried::form_with(form_of(call)?, name, text(value)));
                    let is_form = HeaderValue::from_static(BodyFormat::FORM);
                    call.headers.entry(header::CONTENT_TYPE).or_insert(is_form);
                }
            }
        }
        if let Some(signature) = upstream.signature().filter(|_| call.side.is_some()) {
            let fields = signed_fields(signature, call, form.as_deref())?;
            // They replace those of an earlier attempt, and the client's own.
            for (name, value) in &fields {
                call.headers.insert(name.clone(), value.clone());
            }
        }
        let span = span::begin(call);
        let started = Instant::now();
        // Counted before the attempt: if it is cancelled midway, the call may have reached the
        // upstream.
        call.delivery.sent += 1;
        let body = form.map_or_else(|| call.payload.take(), Body::full);
        let target = target.as_deref().unwrap_or(&call.target);
        let (method, headers) = (&call.method, &mut call.headers);
        let way = Way {
            is_forwarded: call.delivery.interim != InterimHandling::Answer,
            is_alone: call.delivery.is_alone,
            limits: call.limits,
        };
        let outcome = match call.delivery.interim {
            // Boxed because protocol switches are rare: the common future stays small.
            InterimHandling::Switch => Box::pin(upstream.switch(permit, method, target, headers, way)).await,
            InterimHandling::Answer | InterimHandling::Forward => {
                upstream.send(permit, method, target, headers, body, way).await
            }
        };
        // The client does not wait for shadow calls.
        if upstream.role() == CallOrigin::Client {
            let waited = started.elapsed();
            call.context.record.add_waited(waited);
            let first = call.delivery.times.map_or(started, |(first, _)| first);
            call.delivery.times = Some((first, started + waited));
        }
        span::end(span, outcome)
    }
}

/// Returns the header fields that sign a call: the time is that of the attempt, the id that of the
/// request.
///
/// # Errors
///
/// The body is streamed and is not buffered here.
fn signed_fields(signature: &Signature, call: &Call, form: Option<&[u8]>) -> Result<HeaderMap, GatewayError> {
    let body = match (form, &call.payload) {
        (Some(form), _) => form,
        (None, Payload::Whole(bytes)) => bytes,
        (None, Payload::Stream(_) | Payload::Sent) => {
            let detail = "a body that is streamed cannot be signed";
            return Err(GatewayError::new(ErrorKind::Internal, detail).safe_to_retry());
        }
    };
    Ok(signature.sign(&call.context.id.to_string(), body, Clock::machine().unix_ms()))
}

/// Returns the text of a credential. Tokens are checked for visible ASCII when they are read and
/// refreshed, so the fallback is never used.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
}

/// Returns the form body of a call, empty if the call has no body.
///
/// # Errors
///
/// The body is not a form, or it is streamed and is not buffered here.
fn form_of(call: &Call) -> Result<&[u8], GatewayError> {
    match &call.payload {
        Payload::Whole(bytes) if bytes.is_empty() || headers::is_form(&call.headers) => Ok(bytes),
        _ => Err(GatewayError::new(
            ErrorKind::NeedsReconnect,
            "the side takes its token in a form, and this is none",
        )
        .safe_to_retry()),
    }
}
