//! Passes a request on, unchanged in meaning, to the service that the client believes it speaks to: the old one, while it
//! lives. Method, path, query, the client's own token and both bodies stay as they are; what belongs to one hop does not
//! cross (RFC 9110, section 7.6). Such a call is never repeated: nothing is known of its effects.

use super::call::{Call, Credential, Payload};
use super::context::Facts;
use super::headers::{self, Pseudonym};
use super::stack::Calls;
use super::upstream::Upstream;
use super::{Request, Response};
use crate::error::GatewayError;
use std::sync::Arc;

/// Sends `request` to `upstream`, with `target` (path and query below the upstream's base) as its address.
pub async fn forward(
    calls: Calls,
    upstream: Arc<Upstream>,
    request: Request,
    target: String,
    pseudonym: Pseudonym,
) -> Result<Response, GatewayError> {
    let facts = Facts::of(&request);
    let (parts, body) = request.into_parts();
    let headers = headers::forwarded_request(&parts.headers, parts.version, facts.trace, &pseudonym);
    let call = Call {
        facts,
        upstream,
        method: parts.method,
        target,
        headers,
        payload: Payload::Stream(body),
        is_repeatable: false,
        credential: Credential::Carried,
    };
    let answer = calls.send(call).await?;
    let (parts, body) = answer.into_parts();
    let mut answer = Response::new(body);
    *answer.status_mut() = parts.status;
    *answer.headers_mut() = headers::forwarded_answer(&parts.headers);
    Ok(answer)
}
