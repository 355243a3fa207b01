//! One call to an upstream, as the layers below composition pass it on. Unlike a request it can be repeated, where that
//! is harmless: its body is whole.

use super::context::Facts;
use super::upstream::Upstream;
use crate::body::Body;
use crate::token::Client;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::sync::Arc;

/// A call on its way to an upstream.
#[derive(Debug)]
pub struct Call {
    pub facts: Arc<Facts>,
    pub upstream: Arc<Upstream>,
    pub method: Method,
    /// Path and query below the upstream's base, encoded; begins with `/`.
    pub target: String,
    pub headers: HeaderMap,
    pub payload: Payload,
    /// Whether a second sending is harmless: the inbound method, the outbound method and the plan all say so.
    pub is_repeatable: bool,
    pub credential: Credential,
}

/// The body of a call.
#[derive(Debug)]
pub enum Payload {
    Whole(Bytes),
    /// Passed on while it comes; cannot be sent twice.
    Stream(Body),
}

/// How a call is authorised.
#[derive(Debug, Clone)]
pub enum Credential {
    /// The call carries what it needs already.
    Carried,
    /// The grant of this client, in this header.
    Grant { client: Arc<Client>, header: HeaderName },
    /// This value, added last.
    Ready { header: HeaderName, value: HeaderValue },
}

impl Call {
    /// The same call once more; none when its body is gone after the first sending.
    pub fn again(&self) -> Option<Call> {
        let Payload::Whole(bytes) = &self.payload else { return None };
        Some(Call {
            facts: Arc::clone(&self.facts),
            upstream: Arc::clone(&self.upstream),
            method: self.method.clone(),
            target: self.target.clone(),
            headers: self.headers.clone(),
            payload: Payload::Whole(bytes.clone()),
            is_repeatable: self.is_repeatable,
            credential: self.credential.clone(),
        })
    }
}
