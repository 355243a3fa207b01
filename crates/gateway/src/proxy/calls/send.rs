//! The innermost layer: a call goes to its upstream, with the credential that is ready for it.

use super::call::{Call, Caller, Credential, Manner};
use super::span;
use crate::error::GatewayError;
use crate::proxy::Response;
use crate::proxy::origin::CallOrigin;
use crate::proxy::upstream::Way;
use std::sync::Arc;
use std::time::Instant;

/// Sends each call to its upstream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Send;

impl Caller for Send {
    async fn call(&self, call: &mut Call) -> Result<Response, GatewayError> {
        call.facts.called();
        let upstream = Arc::clone(&call.upstream);
        let slot = upstream.slot(call.facts.client())?;
        if let Credential::Ready { headers, value } = &call.credential {
            for header in headers.iter() {
                call.headers.insert(header.clone(), value.clone());
            }
        }
        let span = span::begin(call);
        let started = Instant::now();
        call.sent += 1;
        let body = call.payload.take();
        let (method, target, headers) = (&call.method, &call.target, &mut call.headers);
        let outcome = match call.manner {
            // Boxed: it is rare, and the usual call need not carry its size.
            Manner::Switch => Box::pin(upstream.switch(slot, method, target, headers)).await,
            manner => {
                let way = Way { tells_interim: manner == Manner::Forward, is_alone: call.is_alone };
                upstream.send(slot, method, target, headers, body, way).await
            }
        };
        // What the shadow asks is not what the client waits for.
        if upstream.role() == CallOrigin::Client {
            call.facts.add_waited(started.elapsed());
        }
        span::end(span, outcome)
    }
}
