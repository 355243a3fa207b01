//! Puts the client's grant into calls, and renews it once when the upstream refuses it. The refused call is repeated with
//! the same bytes: a 401 says that nothing was done. A second 401 is the answer, since it also means "not permitted".

use super::Response;
use super::call::{Call, Credential};
use crate::error::{GatewayError, Kind};
use crate::token::{AccessToken, Rejected, TokenError, TokenFault};
use futures_util::future::BoxFuture;
use http::{HeaderName, StatusCode};
use std::task::{Context, Poll};
use std::time::Duration;
use tower::{Layer, Service};

/// What a client is told to wait when nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub struct UpstreamAuthLayer;

impl<S> Layer<S> for UpstreamAuthLayer {
    type Service = UpstreamAuth<S>;

    fn layer(&self, inner: S) -> UpstreamAuth<S> {
        UpstreamAuth { inner }
    }
}

#[derive(Clone)]
pub struct UpstreamAuth<S> {
    inner: S,
}

impl<S> Service<Call> for UpstreamAuth<S>
where
    S: Service<Call, Response = Response, Error = GatewayError> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = GatewayError;
    type Future = BoxFuture<'static, Result<Response, GatewayError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        let mut inner = self.inner.clone();
        Box::pin(async move {
            let Credential::Grant { client, header } = call.credential.clone() else {
                return inner.call(call).await;
            };
            let grant = &client.grant;
            let token = grant.access_token().await.map_err(no_token)?;
            let second = call.again();
            call.credential = ready(&header, &token);
            let response = inner.call(call).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                grant.worked(&token);
                return Ok(response);
            }
            let (Some(mut second), Rejected::Replay(newer)) =
                (second, grant.rejected(token.generation()).await)
            else {
                return Ok(response);
            };
            second.credential = ready(&header, &newer);
            inner.call(second).await
        })
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
