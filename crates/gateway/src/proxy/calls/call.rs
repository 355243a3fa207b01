//! One call to an upstream, as the layers below composition lend it to one another. Unlike a request it can be repeated,
//! where that is harmless: its body is whole.

use crate::body::Body;
use crate::error::GatewayError;
use crate::proxy::Response;
use crate::proxy::context::RequestContext;
use crate::proxy::upstream::Upstream;
use crate::token::carried::TokenPlace;
use crate::token::{Client, FixedToken};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use std::sync::Arc;
use switchback_plan::SideId;

/// What sends calls: the layers below composition, one within the other. Unlike the layers above they need no boxes, since
/// nothing but the innermost of them waits for more than the next.
pub(crate) trait Caller: Send + Sync {
    /// Sends a call; the answer's head is here when this returns.
    fn call(&self, call: &mut Call) -> impl Future<Output = Result<Response, GatewayError>> + Send;
}

/// A call on its way to an upstream.
#[derive(Debug)]
pub(crate) struct Call {
    pub context: Arc<RequestContext>,
    pub upstream: Arc<Upstream>,
    /// The side that a plan calls; none where a request is forwarded.
    pub side: Option<SideId>,
    pub method: Method,
    /// Path and query below the upstream's base, encoded; begins with `/`.
    pub target: String,
    /// Bytes of the target before the plan's own: the prefix of the client's account.
    pub scope_bytes: usize,
    pub headers: HeaderMap,
    pub payload: Payload,
    pub manner: InterimHandling,
    /// Whether a second sending is harmless: the inbound method, the outbound method and the plan all say so.
    pub is_repeatable: bool,
    /// Whether it goes out on a connection of its own, shared with no other call.
    pub is_alone: bool,
    /// How often it was sent.
    pub sent: u32,
    pub credential: Credential,
}

/// What is done with what an upstream says besides its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterimHandling {
    /// Only the answer counts.
    Answer,
    /// Its interim answers are the client's too.
    Forward,
    /// The same, and it may go over to another protocol.
    Switch,
}

/// The body of a call.
#[derive(Debug)]
pub(crate) enum Payload {
    Whole(Bytes),
    /// Passed on while it comes; cannot be sent twice.
    Stream(Body),
    /// Was passed on.
    Sent,
}

/// How a call is authorised.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    /// The call carries what it needs already.
    Carried,
    /// The grant of this client, in this place.
    Grant { client: Arc<Client>, place: Arc<TokenPlace> },
    /// This token, in the place as given; it cannot be renewed.
    Fixed { token: Arc<FixedToken>, place: Arc<TokenPlace>, value: HeaderValue },
    /// This value, added last.
    Ready { place: Arc<TokenPlace>, value: HeaderValue },
}

impl Payload {
    /// Whether the body can be sent once more.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Payload::Whole(_))
    }

    /// The body, to be sent now.
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
