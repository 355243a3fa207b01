//! Puts the client's grant into calls, and renews it once when the upstream refuses it. The refused call is repeated with
//! the same bytes: a 401 says that nothing was done. A second 401 is the answer, since it also means "not permitted".

use super::Response;
use super::call::{Call, Caller, Credential};
use crate::error::{GatewayError, Kind};
use crate::token::{AccessToken, Rejected, TokenError, TokenFault};
use http::{HeaderName, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// What a client is told to wait when nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The layer: what it sends goes by `inner`.
#[derive(Debug)]
pub struct UpstreamAuth<S> {
    inner: S,
}

impl<S> UpstreamAuth<S> {
    pub fn new(inner: S) -> UpstreamAuth<S> {
        UpstreamAuth { inner }
    }
}

impl<S: Caller> Caller for UpstreamAuth<S> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        let Credential::Grant { client, header } = &call.credential else {
            return Box::pin(self.inner.call(call)).await;
        };
        let (client, header) = (Arc::clone(client), header.clone());
        let grant = &client.grant;
        let token = grant.access_token().await.map_err(no_token)?;
        let can_repeat = call.payload.is_whole();
        call.credential = ready(&header, &token);
        let response = self.inner.call(call).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            grant.worked(&token);
            return Ok(response);
        }
        if !can_repeat {
            return Ok(response);
        }
        let Rejected::Replay(newer) = Box::pin(grant.rejected(token.generation())).await else {
            return Ok(response);
        };
        call.credential = ready(&header, &newer);
        Box::pin(self.inner.call(call)).await
    }
}

fn ready(header: &HeaderName, token: &AccessToken) -> Credential {
    Credential::Ready { header: header.clone(), value: token.header().clone() }
}

/// Why a call cannot be authorised, in the data path's terms. Nothing has been sent.
fn no_token(error: TokenError) -> GatewayError {
    let kind = match error.fault() {
        TokenFault::Enrolment => Kind::NeedsReconnect,
        TokenFault::Server | TokenFault::Gateway => {
            Kind::Overloaded { retry_after: error.retry_after().unwrap_or(RETRY_AFTER) }
        }
    };
    GatewayError::new(kind, "no access token").because(error).safe_to_retry()
}
