//! The layers of a single call, outermost first, with the reason for the position of each: the lower
//! half of `proxy/stack.rs`.

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

/// The layers below translation. Clones share one instance.
#[derive(Clone)]
pub(crate) struct Calls(Arc<Below>);

enum Below {
    Client(
        // Above the credential, so that captures do not contain it.
        RecordCall<
            // Below translation, so that a rejected credential replays the same bytes instead of
            // translating again.
            UpstreamAuth<
                // Below the credential, so that an expired token reported with a 2xx status is
                // refreshed too.
                ReadFailure<
                    // Below the credential, so that a retry sends exactly the same call.
                    Retry<Send>,
                >,
            >,
        >,
    ),
    // Uses only currently valid credentials; retries work as for client calls.
    Shadow(RecordCall<ShadowAuth<ReadFailure<Retry<Send>>>>),
}

impl Calls {
    /// Returns the layers for client calls.
    pub(crate) fn new(retries: Budget) -> Calls {
        let below = RecordCall { inner: UpstreamAuth { inner: layers_of_attempts(retries) } };
        Calls(Arc::new(Below::Client(below)))
    }

    /// Returns the layers for shadow calls.
    pub(crate) fn of_shadow(retries: Budget) -> Calls {
        let below = RecordCall { inner: ShadowAuth { inner: layers_of_attempts(retries) } };
        Calls(Arc::new(Below::Shadow(below)))
    }

    /// Sends one call to its upstream.
    pub(crate) async fn send(&self, call: &mut Call) -> Result<Response, GatewayError> {
        match &*self.0 {
            Below::Client(below) => below.call(call).await,
            // Boxed, so that the futures of client calls stay small.
            Below::Shadow(below) => Box::pin(below.call(call)).await,
        }
    }
}

fn layers_of_attempts(retries: Budget) -> ReadFailure<Retry<Send>> {
    ReadFailure { inner: Retry::new(Send, retries) }
}
