//! One call to an upstream, which the layers below composition pass on by mutable reference. A
//! call with a buffered body can be sent again; a streamed body cannot.

use crate::body::Body;
use crate::error::GatewayError;
use crate::proxy::Response;
use crate::proxy::context::RequestContext;
use crate::proxy::limits::CallLimits;
use crate::proxy::upstream::Upstream;
use crate::token::carried::TokenPlace;
use crate::token::{Client, FixedToken};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use std::sync::Arc;
use std::time::Instant;
use switchback_plan::SideId;

/// A layer below composition, which sends calls through the layer that it wraps.
// Not `tower::Service`: the call is lent, so that layers need neither clone nor box it.
pub(crate) trait Caller: Send + Sync {
    /// Sends a call. Returns when the response head has arrived; the body may still be streaming.
    fn call(&self, call: &mut Call) -> impl Future<Output = Result<Response, GatewayError>> + Send;
}

/// A call on its way to an upstream.
pub(crate) struct Call {
    pub context: Arc<RequestContext>,
    /// The client on whose behalf the call is sent, if it is enrolled.
    pub client: Option<Arc<Client>>,
    pub upstream: Arc<Upstream>,
    /// The side that a plan calls; `None` if a request is forwarded.
    pub side: Option<SideId>,
    /// Limits of the operation. Calls of the shadow have those of their upstream instead.
    pub limits: CallLimits,
    pub method: Method,
    /// Path and query below the upstream's base URL, percent-encoded, with a leading `/`.
    pub target: String,
    /// Length in bytes of the account prefix, which precedes the plan's path in `target`.
    pub scope_bytes: usize,
    pub headers: HeaderMap,
    pub payload: Payload,
    pub delivery: Delivery,
    pub credential: Credential,
}

/// How a call is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub interim: InterimHandling,
    /// Whether the call may be sent twice: the inbound method, the outbound method and the plan
    /// all permit it.
    pub is_repeatable: bool,
    /// Whether the call is sent on a connection that it shares with no other call.
    pub is_alone: bool,
    /// Number of times that the call was sent.
    pub sent: u32,
    /// The start of the first attempt and the end of the last one.
    pub times: Option<(Instant, Instant)>,
}

impl Delivery {
    pub(crate) fn new(interim: InterimHandling, is_repeatable: bool) -> Delivery {
        Delivery { interim, is_repeatable, is_alone: false, sent: 0, times: None }
    }
}

/// The handling of interim (1xx) responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterimHandling {
    /// Interim responses are dropped.
    Answer,
    /// Interim responses are forwarded to the client, over HTTP/1.1 only.
    Forward,
    /// Interim responses are forwarded, and the connection may switch protocols.
    Switch,
}

/// The body of a call.
#[derive(Debug)]
pub(crate) enum Payload {
    Whole(Bytes),
    /// Forwarded as it arrives; can be sent once only.
    Stream(Body),
    /// A stream that was already sent.
    Sent,
}

/// The credential of a call.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    /// The headers already contain the credential.
    Carried,
    /// The access token of this client's grant, to be set at `place`.
    Grant { client: Arc<Client>, place: Arc<TokenPlace> },
    /// A fixed token, which cannot be refreshed. `value` is its header value for `place`.
    Fixed { token: Arc<FixedToken>, place: Arc<TokenPlace>, value: HeaderValue },
    /// A resolved credential; [`super::send`] sets it at `place`.
    Ready { place: Arc<TokenPlace>, value: HeaderValue },
}

impl Payload {
    /// Returns whether the body is buffered and can be sent again.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Payload::Whole(_))
    }

    /// Returns the body to send. A stream is moved out; afterwards the body is empty.
    pub(crate) fn take(&mut self) -> Body {
        match self {
            Payload::Whole(bytes) => Body::full(bytes.clone()),
            Payload::Stream(body) => {
                let body = std::mem::take(body);
                *self = Payload::Sent;
                body
            }
            Payload::Sent => Body::empty(),
        }
    }
}
