//! Adds the client's credential to calls and handles 401 responses.
//!
//! - Grant: the first 401 triggers one refresh, and the call is sent again with the same bytes. This
//!   is safe because a 401 means that the call was not executed. A second 401 is returned, since the
//!   service also uses it for missing permissions. If the refresh fails, the client gets an
//!   `Overloaded` or `NeedsReconnect` error instead of the 401.
//! - Fixed token: it cannot be refreshed, so a 401 is returned. After several consecutive 401s the
//!   token counts as rejected, and the client gets a `NeedsReconnect` error. A 401 would wrongly
//!   blame the client's own token.

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

/// Default `Retry-After` if the token error does not provide one.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Returns the credential for calls of `client` to `side`: its fixed token for that side, otherwise
/// its grant if `side` is the new one.
///
/// # Errors
///
/// The client has no credential for the side, or the pack's token place is not a valid header.
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

/// Returns the credential for a request that is forwarded to the service of its own side.
///
/// On the old side the request keeps the client's own token, which that service issued, unless a
/// fixed token is configured. On the new side the gateway always sets a credential: it issued the
/// client's token itself, and the service does not know that token.
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

/// A layer that adds credentials and refreshes rejected grants.
#[derive(Debug)]
pub(crate) struct UpstreamAuth<S> {
    pub inner: S,
}

impl<S: Caller> Caller for UpstreamAuth<S> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        let (client, place) = match &call.credential {
            Credential::Grant { client, place } => (Arc::clone(client), Arc::clone(place)),
            Credential::Fixed { token, place, value } => {
                let (token, place, value) = (Arc::clone(token), Arc::clone(place), value.clone());
                call.credential = Credential::Ready { place, value };
                return note_response(Box::pin(self.inner.call(call)).await?, call, &token);
            }
            // A 401 for the client's own token is the old service's answer to that client and is
            // forwarded.
            Credential::Carried | Credential::Ready { .. } => {
                return Box::pin(self.inner.call(call)).await;
            }
        };
        let grant = &client.grant;
        let token = grant.access_token().await.map_err(no_token)?;
        let operation = CallOperation::from_call(&call.method, &call.target[call.scope_bytes..]);
        // Read before the call, which takes the payload.
        let can_repeat = call.payload.is_whole();
        call.credential = ready(&place, &token)?;
        let response = self.inner.call(call).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            grant.on_success(&token, operation);
            return Ok(response);
        }
        if is_of_another(&response, call) {
            return Ok(response);
        }
        let refused =
            UnauthorizedCall { client, place, generation: token.generation(), operation, can_repeat };
        // Boxed because a 401 is rare: the common future stays small.
        Box::pin(self.resend(call, response, refused)).await
    }
}

/// A call that was rejected with a 401.
struct UnauthorizedCall {
    client: Arc<Client>,
    place: Arc<TokenPlace>,
    generation: i64,
    operation: CallOperation,
    /// Whether the body is buffered and can be sent again.
    can_repeat: bool,
}

impl<S: Caller> UpstreamAuth<S> {
    /// Refreshes the grant and sends the rejected call again. Returns the 401 if a refresh would not
    /// help.
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
        // Frees the connection for the second attempt.
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
            StatusCode::UNAUTHORIZED if is_of_another(&response, call) => {}
            // A fresh token was rejected too, so the cause is a missing permission. Recording it
            // prevents a refresh for each further call of this operation.
            StatusCode::UNAUTHORIZED => grant.on_refused_again(newer.generation(), operation),
            _ => grant.on_success(&newer, operation),
        }
        Ok(response)
    }
}

/// Returns whether an intermediary sent the 401, judged by its media type. Such a response does not
/// concern the token, which is neither refreshed nor counted as rejected.
fn is_of_another(refusal: &Response, call: &Call) -> bool {
    is_foreign_type(refusal.headers(), &call.context.program.pack().json_types)
}

/// Updates the state of a fixed token from the response to a call that used it.
///
/// # Errors
///
/// The service rejected the token several times in a row.
fn note_response(response: Response, call: &Call, token: &FixedToken) -> Result<Response, GatewayError> {
    if response.status() != StatusCode::UNAUTHORIZED {
        token.on_success();
        return Ok(response);
    }
    if is_of_another(&response, call) {
        return Ok(response);
    }
    if token.on_unauthorized() {
        let detail = "the service refuses the token that the client's calls go out with";
        return Err(GatewayError::new(ErrorKind::NeedsReconnect, detail).safe_to_retry());
    }
    Ok(response)
}

/// Formats an access token for its place in a call.
pub(super) fn ready(place: &Arc<TokenPlace>, token: &AccessToken) -> Result<Credential, GatewayError> {
    let value = match place.scheme() {
        Scheme::Word(word) if word == "Bearer" => Some(token.header().clone()),
        scheme => carried::value(token.secret().expose(), scheme),
    };
    let value =
        value.ok_or_else(|| GatewayError::new(ErrorKind::Internal, "no header carries the access token"))?;
    Ok(Credential::Ready { place: Arc::clone(place), value })
}

/// Converts a token error. A retry is safe because the call was not sent or was rejected with a 401.
fn no_token(error: TokenError) -> GatewayError {
    let kind = match error.fault() {
        TokenFault::Enrolment => ErrorKind::NeedsReconnect,
        TokenFault::Server | TokenFault::Gateway => {
            ErrorKind::Overloaded { retry_after: error.retry_after().unwrap_or(RETRY_AFTER) }
        }
    };
    GatewayError::new(kind, "no access token").because(error).safe_to_retry()
}
