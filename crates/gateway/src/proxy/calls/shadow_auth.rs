//! How a call of the shadow is authorised: by what is valid now, and nothing comes of how it was taken.

use super::call::{Call, Caller, Credential};
use super::upstream_auth::ready;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::Response;
use http::StatusCode;
use std::sync::Arc;

/// Puts the client's credential into calls of the shadow if it is valid now. Nothing is renewed, and nobody is told how an
/// answer went: a candidate that answers 401 must not end the grant that real calls go out with.
#[derive(Debug)]
pub(super) struct ShadowAuth<S> {
    inner: S,
}

impl<S> ShadowAuth<S> {
    pub(super) fn new(inner: S) -> ShadowAuth<S> {
        ShadowAuth { inner }
    }
}

impl<S: Caller> Caller for ShadowAuth<S> {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        let ready = match &call.credential {
            // What the client itself brought is its own affair, its 401 included.
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
