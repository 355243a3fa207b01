//! What a single call goes through, outermost first, with the reason for each place: the lower half of `proxy/stack.rs`.

use super::call::{Call, Caller as _};
use super::read_failure::ReadFailure;
use super::record::RecordCall;
use super::retry::{Budget, Retry};
use super::send::Send;
use super::shadow_auth::ShadowAuth;
use super::upstream_auth::UpstreamAuth;
use crate::error::GatewayError;
use crate::proxy::Response;
use std::sync::Arc;

/// The layers below translation, outermost first. Shared by reference count: one for all requests.
#[derive(Clone)]
pub(crate) struct Calls(Arc<Below>);

enum Below {
    Client(
        // Above the credential, so that no capture holds one.
        RecordCall<
            // Below translation, so that a refused credential replays bytes instead of translating again.
            UpstreamAuth<
                // Below the credential, so that a token is renewed also where its end is told with a success.
                ReadFailure<
                    // Below the credential, so that what is repeated is exactly what was sent.
                    Retry<Send>,
                >,
            >,
        >,
    ),
    // Authorised by what is valid now, and repeated as the calls of clients are.
    Shadow(RecordCall<ShadowAuth<ReadFailure<Retry<Send>>>>),
}

impl Calls {
    /// For the calls of clients.
    pub(crate) fn new(retries: Budget) -> Calls {
        let below = RecordCall::new(UpstreamAuth::new(ReadFailure::new(Retry::new(Send, retries))));
        Calls(Arc::new(Below::Client(below)))
    }

    /// For those of the shadow.
    pub(crate) fn of_shadow(retries: Budget) -> Calls {
        let below = RecordCall::new(ShadowAuth::new(ReadFailure::new(Retry::new(Send, retries))));
        Calls(Arc::new(Below::Shadow(below)))
    }

    /// Makes one call to an upstream.
    pub(crate) async fn send(&self, call: &mut Call) -> Result<Response, GatewayError> {
        match &*self.0 {
            Below::Client(below) => below.call(call).await,
            // Boxed, so that the calls of clients need no room for it.
            Below::Shadow(below) => Box::pin(below.call(call)).await,
        }
    }
}
