//! What any HTTP intermediary must settle about a request before it means anything (RFC 9110, 9112, 9113): one valid
//! Host, unambiguous framing, sizes, expectations, loops. What hyper already refuses (bad framing, bad field syntax)
//! never comes here.
//!
//! A request with both Content-Length and Transfer-Encoding is read by its Transfer-Encoding and its connection is closed
//! after the answer, as RFC 9112, section 6.3, allows: hyper drops the length before anyone sees it. Nothing of either
//! field is forwarded, so no one behind us can read the message differently.

use super::middleware::Middleware;
use crate::body::Body;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::context::RequestContext;
use crate::proxy::headers::{self, Pseudonym};
use crate::proxy::limits::Limits;
use crate::proxy::{Request, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct ValidateRequest {
    limits: Arc<Limits>,
    pseudonym: Pseudonym,
}

impl ValidateRequest {
    pub(crate) fn new(limits: Arc<Limits>, pseudonym: Pseudonym) -> ValidateRequest {
        ValidateRequest { limits, pseudonym }
    }
}

impl Middleware<Request> for ValidateRequest {
    type Inward = Request;
    type Kept = ();
    type Fault = GatewayError;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, GatewayError>, (Request, ())> {
        if let Err(error) = check(&request, &self.limits, &self.pseudonym) {
            return ControlFlow::Break(Err(error));
        }
        if is_for_us_alone(&request.context) {
            // Nothing is reflected: a request may hold what no answer should (RFC 9110, section 9.3.8).
            return ControlFlow::Break(match request.context.method == Method::OPTIONS {
                true => Ok(options_answer()),
                false => Err(GatewayError::new(
                    ErrorKind::WrongMethod { allow: ALLOW.to_owned() },
                    "TRACE of the gateway itself",
                )),
            });
        }
        let Request { context, body } = request;
        let body =
            body.with_limit(body_bytes_max(&self.limits)).with_timeout(self.limits.request_body_timeout);
        ControlFlow::Continue((Request { context, body }, ()))
    }
}

fn check(request: &Request, limits: &Limits, pseudonym: &Pseudonym) -> Result<(), GatewayError> {
    let context = &*request.context;
    check_target(context, limits)?;
    let seen = check_header_size(&context.headers, limits)?;
    check_host(context)?;
    if seen.coding {
        check_framing(&context.headers)?;
    }
    if seen.expectation {
        check_expectation(&context.headers)?;
    }
    if seen.via && headers::has_passed(&context.headers, pseudonym) {
        return Err(GatewayError::new(ErrorKind::LoopDetected, "our own name is in Via"));
    }
    if request.body.length().is_some_and(|length| length > body_bytes_max(limits)) {
        return Err(GatewayError::new(ErrorKind::TooLarge, "the announced request body is over its limit"));
    }
    Ok(())
}

/// What any body may have. Those that are read here may have less, which whoever holds them sees to: what is forwarded takes
/// no memory by its length.
fn body_bytes_max(limits: &Limits) -> u64 {
    limits.forwarded_bytes_max.max(limits.request_bytes_max)
}

fn check_target(context: &RequestContext, limits: &Limits) -> Result<(), GatewayError> {
    let length = context.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if length > limits.target_bytes_max {
        return Err(GatewayError::new(ErrorKind::UriTooLong, "the request target is over its limit"));
    }
    if context.method == Method::CONNECT || length == 0 {
        return Err(GatewayError::new(ErrorKind::BadPath, "the request target is not a path"));
    }
    Ok(())
}

/// Which fields a request has that few have, and that there are rules for.
#[derive(Clone, Copy, Default)]
struct RareFields {
    coding: bool,
    expectation: bool,
    via: bool,
}

/// One pass over all fields, which also sees what need not be searched for.
fn check_header_size(headers: &HeaderMap, limits: &Limits) -> Result<RareFields, GatewayError> {
    let (mut seen, mut bytes) = (RareFields::default(), 0);
    for (name, value) in headers {
        bytes += name.as_str().len() + value.len() + 4;
        seen.coding |= *name == header::TRANSFER_ENCODING;
        seen.expectation |= *name == header::EXPECT;
        seen.via |= *name == header::VIA;
    }
    if bytes > limits.header_bytes_max {
        return Err(GatewayError::new(ErrorKind::HeadersTooLarge, "the header fields are over their limit"));
    }
    Ok(seen)
}

/// One valid Host, except in HTTP/1.0; the authority of the target wins over it (RFC 9112, section 3.2; RFC 9113, section
/// 8.3.1), and since nothing further in looks at either, winning means that only its form matters.
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
    if authority.is_some_and(|authority| authority.as_str().contains('@')) {
        return bad("user information in the request target");
    }
    match context.version {
        Version::HTTP_11 if host.is_none() => bad("no Host"),
        Version::HTTP_2 if host.is_none() && authority.is_none() => bad("neither :authority nor Host"),
        _ => Ok(()),
    }
}

/// `uri-host [":" port]`, or nothing: a client whose target has no authority says so (RFC 9112, section 3.2).
fn is_authority(host: &HeaderValue) -> bool {
    let Ok(text) = host.to_str() else { return false };
    if text.is_empty() {
        return true;
    }
    // Most are a name and a port, and need no copy to be parsed.
    let (name, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_simple = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok();
    is_simple || (!text.contains('@') && text.parse::<http::uri::Authority>().is_ok())
}

/// Exactly one transfer coding, once (RFC 9112, section 6.1). hyper has seen to it that the last one is `chunked`.
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

/// `100-continue` is met by reading the body, which happens only once the request has passed all checks; anything else
/// cannot be met (RFC 9110, section 10.1.1).
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

/// `OPTIONS *`, and OPTIONS and TRACE that must not go further (RFC 9110, section 7.6.2).
fn is_for_us_alone(context: &RequestContext) -> bool {
    match context.method {
        Method::OPTIONS => context.uri.path() == "*" || headers::forwards_left(&context.headers) == Some(0),
        Method::TRACE => headers::forwards_left(&context.headers) == Some(0),
        _ => false,
    }
}

const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// What this server can do as a whole.
fn options_answer() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let allow = HeaderValue::from_static(ALLOW);
    response.headers_mut().insert(header::ALLOW, allow);
    response
}
