//! Sets the credential of shadow calls. Shadow calls never change the state of a credential.

use super::call::{Call, Caller, Credential};
use super::upstream_auth::ready;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::Response;
use http::StatusCode;
use std::sync::Arc;

/// A layer that adds the client's currently valid credential to shadow calls. It never refreshes a
/// grant and reports no response status to it: a 401 to a shadow call must not invalidate the grant
/// that client calls use.
#[derive(Debug)]
pub(super) struct ShadowAuth<S> {
    pub inner: S,
}

impl<S: Caller> Caller for ShadowAuth<S> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        let ready = match &call.credential {
            // The client's own token: a 401 is a regular response here.
            Credential::Carried | Credential::Ready { .. } => return self.inner.call(call).await,
            Credential::Fixed { place, value, .. } => {
                Credential::Ready { place: Arc::clone(place), value: value.clone() }
            }
            Credential::Grant { client, place } => {
                let token = client.grant.current();
                let token = token.ok_or_else(|| no_credential("no access token is valid now"))?;
                ready(place, &token)?
            }
        };
        call.credential = ready;
        let response = self.inner.call(call).await?;
        match response.status() {
            StatusCode::UNAUTHORIZED => Err(no_credential("the credential was refused")),
            _ => Ok(response),
        }
    }
}

fn no_credential(detail: &str) -> GatewayError {
    GatewayError::new(ErrorKind::NeedsReconnect, detail).safe_to_retry()
}
