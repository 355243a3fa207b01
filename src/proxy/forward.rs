//! Passes a request on, unchanged in meaning, to the service that the client believes it speaks to: the old one, while it
//! lives. Method, path, query and both bodies stay as they are, and so does the client's own token, unless the client was given
//! a credential for that very service: then its token is known to the gateway alone, and the call goes out with the credential.
//! What belongs to one hop does not cross (RFC 9110, section 7.6). Such a call is never repeated: nothing is known of its
//! effects.

use super::call::{Call, Credential, Payload};
use super::context::Facts;
use super::headers::{self, Pseudonym};
use super::stack::Calls;
use super::upstream::Upstream;
use super::upstream_auth;
use super::{Request, Response};
use crate::error::GatewayError;
use crate::token::Client;
use http::request::Parts;
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
    let mut headers = headers::forwarded_request(&parts.headers, parts.version, facts.trace, &pseudonym);
    let credential = match own_credential(&facts, &parts)? {
        Some(own) => {
            for name in facts.front().iter().flat_map(|front| &facts.program.credential(front.serves).read) {
                headers.remove(name.as_str());
            }
            own
        }
        None => Credential::Carried,
    };
    let call = Call {
        facts,
        upstream,
        method: parts.method,
        target,
        scope_bytes: 0,
        headers,
        payload: Payload::Stream(body),
        is_repeatable: false,
        credential,
    };
    let answer = calls.send(call).await?;
    let (parts, body) = answer.into_parts();
    let mut answer = Response::new(body);
    *answer.status_mut() = parts.status;
    *answer.headers_mut() = headers::forwarded_answer(&parts.headers);
    Ok(answer)
}

/// What the client was given for the service of the side that it speaks, if anything.
fn own_credential(facts: &Facts, parts: &Parts) -> Result<Option<Credential>, GatewayError> {
    let (Some(front), Some(client)) = (facts.front(), parts.extensions.get::<Arc<Client>>()) else {
        return Ok(None);
    };
    match upstream_auth::has_credential(&facts.program, client, front.serves) {
        true => upstream_auth::credential(&facts.program, client, front.serves).map(Some),
        false => Ok(None),
    }
}
