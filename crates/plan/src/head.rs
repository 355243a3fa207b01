//! The parts of a message other than its body: address, query, header fields, status.

use super::expr::Expr;
use super::format::BodyFormat;
use super::json::{Key, Raw};
use super::parameter::ListStyle;
use super::{HostId, Origin, ReasonId};
use http::header::{self, HeaderName};
use std::fmt;
use std::sync::Arc;

/// Header fields that every translated call copies from the client's request.
pub const CALL_KEEPS: [HeaderName; 3] =
    [header::ACCEPT_LANGUAGE, header::USER_AGENT, HeaderName::from_static("x-request-id")];

/// Header fields that every translated response copies from the service's reply.
pub const ANSWER_KEEPS: [HeaderName; 6] = [
    header::CONTENT_LANGUAGE,
    header::RETRY_AFTER,
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];

/// The head of one call to the other side.
#[derive(Clone, Debug)]
pub struct CallHead {
    /// The called operation as in its contract, such as `PUT /things/{id}`.
    pub operation: Arc<str>,
    /// The host of the other side that serves the operation.
    pub host: HostId,
    /// The request method.
    pub method: http::Method,
    /// Alternating literals and variables; a variable is encoded as one path segment.
    pub path: Vec<PathPart>,
    /// In the order of writing.
    pub query: Vec<QueryRule>,
    /// In the order of writing, after the fields that every call has.
    pub headers: Vec<HeaderRule>,
    /// Format of the request body; an opaque body is forwarded as the client sent it.
    pub format: BodyFormat,
    /// Format of the bodies of successful responses.
    pub answers: BodyFormat,
    /// Whether 206 is an expected status: the contract lists it, or the body is forwarded
    /// unchanged.
    pub partial: bool,
    /// The effect of the call on the service.
    pub effect: Effect,
    /// Whether the call may be repeated safely. Only then may the retry layer send it again.
    pub repeatable: bool,
    /// The line of the mapping that declares it.
    pub origin: Origin,
}

/// A piece of an address below the upstream's base URL.
#[derive(Clone, Debug)]
pub enum PathPart {
    /// Encoded text, including slashes.
    Literal(Arc<str>),
    /// A path variable of the served operation, by index.
    Variable(u16),
    /// A scalar from the context (`serve` routes only).
    Value(Expr),
}

/// A query parameter of the call.
#[derive(Clone, Debug)]
pub struct QueryRule {
    /// Decoded name on the called side.
    pub name: Arc<str>,
    /// Source of its value.
    pub from: QueryFrom,
    /// Notation of a list.
    pub style: ListStyle,
}

/// The source of a query parameter.
#[derive(Clone, Debug)]
pub enum QueryFrom {
    /// The client's parameter with this name, unchanged and with all its repetitions; omitted if
    /// absent.
    Client(Arc<str>),
    /// The client's parameters of the form `name[field]`, unchanged.
    ClientFields(Arc<str>),
    /// This scalar, as JSON text.
    Constant(Raw),
    /// A scalar or a list of scalars; omitted if absent or null.
    Value(Expr),
}

/// A query parameter that the route rejects.
#[derive(Clone, Debug)]
pub struct QueryRefusal {
    /// Name of the parameter on the client's side.
    pub name: Arc<str>,
    /// Decoded values for which the parameter has no effect; it is then dropped rather than
    /// rejected.
    pub unless: Vec<Arc<str>>,
    /// Text for the client.
    pub reason: ReasonId,
    /// The line of the mapping that rejects it.
    pub origin: Origin,
}

/// A header field; omitted if its value is absent or null. The context of a pair's rules is
/// `{request: {path, query, headers}, config, reply: {status, headers}}`, with `reply` only in
/// rules for responses.
#[derive(Clone, Debug)]
pub struct HeaderRule {
    /// Name in lower case.
    pub name: Key,
    /// Its value: a scalar.
    pub value: Expr,
}

/// The statuses of the other side that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFrom {
    /// This status only.
    Exact(u16),
    /// All statuses with this first digit: 2 for `2xx`.
    Class(u8),
}

impl StatusFrom {
    /// Returns whether the rule matches this status.
    pub fn matches(self, status: u16) -> bool {
        match self {
            StatusFrom::Exact(exact) => exact == status,
            // `2XX` in a contract covers 200 to 299 (OpenAPI 3.1, section 4.8.16).
            StatusFrom::Class(class) => status / 100 == u16::from(class),
        }
    }
}

impl fmt::Display for StatusFrom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusFrom::Exact(status) => write!(out, "{status}"),
            StatusFrom::Class(class) => write!(out, "{class}xx"),
        }
    }
}

/// The status of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusTo {
    /// The status of the other side's reply.
    Same,
    /// This status.
    Exact(u16),
}

impl fmt::Display for StatusTo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusTo::Same => out.write_str("the same"),
            StatusTo::Exact(status) => write!(out, "{status}"),
        }
    }
}

/// The effect of a call on the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads only: may be repeated, shadowed and cancelled.
    None,
    /// Changes state: sent at most once, and not cancelled.
    Write,
}
