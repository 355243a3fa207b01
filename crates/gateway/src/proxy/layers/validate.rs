//! Checks that apply to every HTTP intermediary (RFC 9110, 9112, 9113): a single valid Host,
//! unambiguous framing, size limits, expectations and forwarding loops. hyper has already rejected
//! malformed framing and field syntax.
//!
//! A request with both Content-Length and Transfer-Encoding is read by its Transfer-Encoding, and
//! its connection is closed after the response (RFC 9112, section 6.3); hyper removes the length.
//! Neither field is forwarded, so an upstream cannot read the message differently.

use super::middleware::{Before, Middleware};
use crate::body::Body;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::context::RequestContext;
use crate::proxy::cors::is_preflight;
use crate::proxy::headers::{self, Pseudonym};
use crate::proxy::limits::RequestLimits;
use crate::proxy::{Request, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use std::ops::ControlFlow;

#[derive(Clone)]
pub(crate) struct ValidateRequest {
    pub limits: RequestLimits,
    pub pseudonym: Pseudonym,
}

impl Middleware<Request> for ValidateRequest {
    type Inward = Request;
    type Kept = ();
    type Fault = GatewayError;

    fn before(&self, request: Request) -> Before<Self, Request> {
        if let Err(error) = self.check(&request.context) {
            return ControlFlow::Break(Err(error));
        }
        if let Some(answer) = own_answer(&request.context) {
            return ControlFlow::Break(answer);
        }
        ControlFlow::Continue((request, ()))
    }
}

impl ValidateRequest {
    fn check(&self, context: &RequestContext) -> Result<(), GatewayError> {
        check_target(context, self.limits.target_bytes_max)?;
        // The size first: the checks below then read a bounded number of fields.
        let seen = check_header_size(&context.headers, self.limits.header_bytes_max)?;
        check_host(context)?;
        if seen.coding {
            check_framing(&context.headers)?;
        }
        if seen.expectation {
            check_expectation(&context.headers)?;
        }
        if seen.via && headers::has_passed(&context.headers, &self.pseudonym) {
            return Err(GatewayError::new(ErrorKind::LoopDetected, "our own name is in Via"));
        }
        Ok(())
    }
}

fn check_target(context: &RequestContext, bytes_max: usize) -> Result<(), GatewayError> {
    let length = context.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if length > bytes_max {
        return Err(GatewayError::new(ErrorKind::UriTooLong, "the request target is over its limit"));
    }
    // The gateway is no forward proxy, so it opens no tunnels to other hosts.
    if context.method == Method::CONNECT || length == 0 {
        return Err(GatewayError::new(ErrorKind::BadPath, "the request target is not a path"));
    }
    Ok(())
}

/// Rarely sent fields that need further checks.
#[derive(Clone, Copy, Default)]
struct RareFields {
    coding: bool,
    expectation: bool,
    via: bool,
}

/// Checks the total size of the fields. The same pass detects the rare fields, which saves a lookup
/// for each.
fn check_header_size(headers: &HeaderMap, bytes_max: usize) -> Result<RareFields, GatewayError> {
    let (mut seen, mut bytes) = (RareFields::default(), 0);
    for (name, value) in headers {
        // As sent over HTTP/1.1: a colon, a space and a line break per field.
        bytes += name.as_str().len() + value.len() + 4;
        seen.coding |= *name == header::TRANSFER_ENCODING;
        seen.expectation |= *name == header::EXPECT;
        seen.via |= *name == header::VIA;
    }
    if bytes > bytes_max {
        return Err(GatewayError::new(ErrorKind::HeadersTooLarge, "the header fields are over their limit"));
    }
    Ok(seen)
}

/// Requires one valid Host, except in HTTP/1.0. The authority of the target takes precedence (RFC
/// 9112, section 3.2; RFC 9113, section 8.3.1). Routing uses neither, so only the syntax is
/// checked.
fn check_host(context: &RequestContext) -> Result<(), GatewayError> {
    let bad = |detail: &str| Err(GatewayError::new(ErrorKind::BadRequest, detail));
    let mut hosts = context.headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return bad("more than one Host");
    }
    if let Some(host) = host
        && !is_authority(host)
    {
        return bad("an invalid Host");
    }
    let authority = context.uri.authority();
    // Credentials in a URL are an error in `http` requests (RFC 9110, section 4.2.4).
    if authority.is_some_and(|authority| authority.as_str().contains('@')) {
        return bad("user information in the request target");
    }
    match context.version {
        Version::HTTP_11 if host.is_none() => bad("no Host"),
        Version::HTTP_2 if host.is_none() && authority.is_none() => bad("neither :authority nor Host"),
        _ => Ok(()),
    }
}

/// Returns whether the value is `uri-host [":" port]` or empty. Clients send an empty value if the
/// target has no authority (RFC 9112, section 3.2).
fn is_authority(host: &HeaderValue) -> bool {
    let Ok(text) = host.to_str() else { return false };
    if text.is_empty() {
        return true;
    }
    // Fast path without an allocation: a name with an optional port.
    let (name, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_simple = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok();
    is_simple || (!text.contains('@') && text.parse::<http::uri::Authority>().is_ok())
}

/// Requires exactly one transfer coding (RFC 9112, section 6.1). hyper ensures that the last one is
/// `chunked`.
fn check_framing(headers: &HeaderMap) -> Result<(), GatewayError> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let (Some(coding), second) = (codings.next(), codings.next()) else { return Ok(()) };
    if second.is_some() {
        return Err(GatewayError::new(ErrorKind::BadRequest, "Transfer-Encoding more than once"));
    }
    if coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let list: Vec<&str> = coding.to_str().unwrap_or("").split(',').map(str::trim).collect();
    let is_malformed = list.iter().any(|one| one.is_empty())
        || list.iter().filter(|one| one.eq_ignore_ascii_case("chunked")).count() != 1;
    let error = GatewayError::new(ErrorKind::BadRequest, "a transfer coding besides chunked");
    Err(if is_malformed { error } else { error.with_status(StatusCode::NOT_IMPLEMENTED) })
}

/// Rejects expectations other than `100-continue` (RFC 9110, section 10.1.1). That one is fulfilled
/// when the body is first read, which is after all checks.
fn check_expectation(headers: &HeaderMap) -> Result<(), GatewayError> {
    for value in headers.get_all(header::EXPECT) {
        if !value.as_bytes().eq_ignore_ascii_case(b"100-continue") {
            return Err(GatewayError::new(
                ErrorKind::ExpectationFailed,
                "an expectation other than 100-continue",
            ));
        }
    }
    Ok(())
}

/// Returns the answer to a request whose final recipient is the gateway: `OPTIONS *`, OPTIONS or TRACE
/// with `Max-Forwards: 0` (RFC 9110, section 7.6.2), and a preflight of a front with CORS.
fn own_answer(context: &RequestContext) -> Option<Result<Response, GatewayError>> {
    let is_last = || headers::forwards_left(&context.headers) == Some(0);
    match context.method {
        Method::OPTIONS if context.uri.path() == "*" || is_last() => Some(Ok(options_answer())),
        Method::OPTIONS if is_preflight(&context.headers) => answer_preflight(context).map(Ok),
        // Do not reflect the request: it may contain credentials (RFC 9110, section 9.3.8).
        Method::TRACE if is_last() => Some(Err(GatewayError::new(
            ErrorKind::WrongMethod { allow: ALLOW.to_owned() },
            "TRACE of the gateway itself",
        ))),
        _ => None,
    }
}

/// Answers a preflight of a front with CORS. Without, it is forwarded as any other request.
fn answer_preflight(context: &RequestContext) -> Option<Response> {
    let cors = context.program.front_of(context.uri.path())?.cors.as_ref()?;
    context.facts().cause = Some("a preflight (CORS)".into());
    Some(cors.preflight(&context.headers))
}

const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Builds the response to OPTIONS for the gateway itself.
fn options_answer() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let allow = HeaderValue::from_static(ALLOW);
    response.headers_mut().insert(header::ALLOW, allow);
    response
}
