//! Puts the client's credential into calls. A grant is renewed once when the upstream refuses it, and the refused call is
//! repeated with the same bytes: a 401 says that nothing was done. A second 401 is the answer, since it also means "not
//! permitted". A 401 that a renewal might have mended, where there is none to be had, is not the client's: it is told to try
//! later, or that the connection must be renewed. A fixed token cannot be renewed: its 401 is the answer too, until several in a row say that it is the token
//! that is refused. Then the client is told that the connection must be renewed; its own token is not to blame, and must not
//! look so.

use super::call::{Call, Caller, Credential};
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::Response;
use crate::proxy::program::Program;
use crate::token::carried::{self, TokenPlace};
use crate::token::{AccessToken, CallOperation, Client, FixedToken, Rejected, TokenError, TokenFault};
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::translate::is_foreign_type;
use switchback_plan::{Scheme, SideId};

/// What a client is told to wait when nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What the calls of a client to a side go out with: the token that was given for the side, else the grant, where the side
/// has grants.
pub(crate) fn credential(
    program: &Program,
    client: &Arc<Client>,
    side: SideId,
) -> Result<Credential, GatewayError> {
    let called = program.side(side);
    let place = program.token_place(side).cloned();
    let place = place
        .ok_or_else(|| GatewayError::new(ErrorKind::Internal, "the pack's credential header is no header"))?;
    if let Some(token) = client.fixed_token(&called.name) {
        let value = token.header(place.scheme());
        let value =
            value.ok_or_else(|| GatewayError::new(ErrorKind::Internal, "no header carries the token"))?;
        return Ok(Credential::Fixed { token: Arc::clone(token), place, value });
    }
    if side == SideId::NEW {
        return Ok(Credential::Grant { client: Arc::clone(client), place });
    }
    Err(nothing_for(&called.name))
}

/// What a request goes out with that is forwarded to the service of the side it speaks. On the old side that is the client's
/// own token, which that service gave it, unless the client was given a credential. On the new side it is always a credential:
/// tokens for its fronts are given out here, and mean nothing to that service.
pub(crate) fn forwarded_credential(
    program: &Program,
    client: &Arc<Client>,
    side: SideId,
) -> Result<Credential, GatewayError> {
    let name = &program.side(side).name;
    match side {
        SideId::OLD if client.fixed_token(name).is_none() => Ok(Credential::Carried),
        side if program.may_forward(client, side) => credential(program, client, side),
        _ => Err(nothing_for(name)),
    }
}

fn nothing_for(side: &str) -> GatewayError {
    GatewayError::new(ErrorKind::NeedsReconnect, format!("the client has no credential for {side}"))
        .safe_to_retry()
}

/// The layer: what it sends goes by `inner`.
#[derive(Debug)]
pub(crate) struct UpstreamAuth<S> {
    inner: S,
}

impl<S> UpstreamAuth<S> {
    pub(crate) fn new(inner: S) -> UpstreamAuth<S> {
        UpstreamAuth { inner }
    }
}

impl<S: Caller> Caller for UpstreamAuth<S> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        let (client, place) = match &call.credential {
            Credential::Grant { client, place } => (Arc::clone(client), Arc::clone(place)),
            Credential::Fixed { token, place, value } => {
                let (token, place, value) = (Arc::clone(token), Arc::clone(place), value.clone());
                call.credential = Credential::Ready { place, value };
                return note_response(Box::pin(self.inner.call(call)).await?, &token);
            }
            Credential::Carried | Credential::Ready { .. } => {
                return Box::pin(self.inner.call(call)).await;
            }
        };
        let grant = &client.grant;
        let token = grant.access_token().await.map_err(no_token)?;
        let operation = CallOperation::from_call(&call.method, &call.target[call.scope_bytes..]);
        let can_repeat = call.payload.is_whole();
        call.credential = ready(&place, &token)?;
        let response = self.inner.call(call).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            grant.on_success(&token, operation);
            return Ok(response);
        }
        if is_of_another(&response) {
            return Ok(response);
        }
        let refused =
            UnauthorizedCall { client, place, generation: token.generation(), operation, can_repeat };
        // Boxed with the answer in it: it is rare, and the usual call need not carry its size.
        Box::pin(self.resend(call, response, refused)).await
    }
}

/// A call that was refused for its token.
struct UnauthorizedCall {
    client: Arc<Client>,
    place: Arc<TokenPlace>,
    generation: i64,
    operation: CallOperation,
    /// Whether its body is still there.
    can_repeat: bool,
}

impl<S: Caller> UpstreamAuth<S> {
    /// Sends a call once more that was refused, if the grant that it went out with can be renewed.
    async fn resend(
        &self,
        call: &mut Call,
        refusal: Response,
        refused: UnauthorizedCall,
    ) -> Result<Response, GatewayError> {
        let UnauthorizedCall { client, place, generation, operation, can_repeat } = refused;
        let grant = &client.grant;
        let newer = match grant.on_unauthorized(generation, operation).await {
            Rejected::Replay(newer) => newer,
            Rejected::Pass => return Ok(refusal),
            Rejected::Unavailable(error) => return Err(no_token(error)),
        };
        drop(refusal);
        if !can_repeat {
            let kind = ErrorKind::Overloaded { retry_after: RETRY_AFTER };
            let detail =
                "the access token had ended, and the body has gone by; another try goes out with the new one";
            return Err(GatewayError::new(kind, detail).safe_to_retry());
        }
        call.credential = ready(&place, &newer)?;
        let response = self.inner.call(call).await?;
        match response.status() {
            StatusCode::UNAUTHORIZED if is_of_another(&response) => {}
            StatusCode::UNAUTHORIZED => grant.on_refused_again(newer.generation(), operation),
            _ => grant.on_success(&newer, operation),
        }
        Ok(response)
    }
}

/// Whether a refusal comes from something before the service, by its type: that wants credentials of its own, and says nothing
/// about the token, which is neither renewed for it nor held to be bad.
fn is_of_another(refusal: &Response) -> bool {
    is_foreign_type(refusal.headers())
}

/// Notes what an answer says about the fixed token that its call went out with.
fn note_response(response: Response, token: &FixedToken) -> Result<Response, GatewayError> {
    if response.status() != StatusCode::UNAUTHORIZED {
        token.on_success();
        return Ok(response);
    }
    if is_of_another(&response) {
        return Ok(response);
    }
    if token.on_unauthorized() {
        let detail = "the service refuses the token that the client's calls go out with";
        return Err(GatewayError::new(ErrorKind::NeedsReconnect, detail).safe_to_retry());
    }
    Ok(response)
}

/// An access token as its side wants it.
pub(super) fn ready(place: &Arc<TokenPlace>, token: &AccessToken) -> Result<Credential, GatewayError> {
    let value = match place.scheme() {
        Scheme::Word(word) if word == "Bearer" => Some(token.header().clone()),
        scheme => carried::value(token.secret().expose(), scheme),
    };
    let value =
        value.ok_or_else(|| GatewayError::new(ErrorKind::Internal, "no header carries the access token"))?;
    Ok(Credential::Ready { place: Arc::clone(place), value })
}

/// Why a call cannot be authorised, in the data path's terms. Nothing has been sent.
fn no_token(error: TokenError) -> GatewayError {
    let kind = match error.fault() {
        TokenFault::Enrolment => ErrorKind::NeedsReconnect,
        TokenFault::Server | TokenFault::Gateway => {
            ErrorKind::Overloaded { retry_after: error.retry_after().unwrap_or(RETRY_AFTER) }
        }
    };
    GatewayError::new(kind, "no access token").because(error).safe_to_retry()
}
