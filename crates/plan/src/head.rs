//! Everything of a message that is not its body: address, query, headers, status.

use super::body::Raw;
use super::expr::Expr;
use super::format::BodyFormat;
use super::parameter::ListStyle;
use super::route::Effect;
use super::{HostId, Key, Origin, ReasonId};
use http::header::{self, HeaderName};
use std::sync::Arc;

/// Header fields that every translated call takes over from the client's request.
pub const CALL_KEEPS: [HeaderName; 3] =
    [header::ACCEPT_LANGUAGE, header::USER_AGENT, HeaderName::from_static("x-request-id")];

/// Header fields that every translated answer takes over from the service's reply.
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
    /// The called operation as its contract writes it, such as `PUT /things/{id}`.
    pub operation: Arc<str>,
    /// The host of the other side that answers it.
    pub host: HostId,
    /// The method that is sent.
    pub method: http::Method,
    /// Alternating literal text and variables; variables are encoded as one path segment.
    pub path: Vec<PathPart>,
    /// In the order in which they are written.
    pub query: Vec<QueryRule>,
    /// In the order in which they are written, after those that every call has.
    pub headers: Vec<HeaderRule>,
    /// What its body is written in; an opaque one goes out as the client's came.
    pub format: BodyFormat,
    /// What the bodies of its successes are written in.
    pub answers: BodyFormat,
    /// Whether 206 is an answer of it: one that its contract lists, or that passes as it comes.
    pub partial: bool,
    /// What the call does to the service.
    pub effect: Effect,
    /// Whether a repeat of this call is harmless; only then may the retry layer send it twice.
    pub repeatable: bool,
    /// The line of the mapping that asks for it.
    pub origin: Origin,
}

/// One piece of an address below the upstream's base.
#[derive(Clone, Debug)]
pub enum PathPart {
    /// Literal text, slashes included, ready to be sent.
    Literal(Arc<str>),
    /// The value of a variable of the served operation's path, by its index there.
    Variable(u16),
    /// A scalar out of the context (`serve` routes only).
    Value(Expr),
}

/// One query parameter of the call.
#[derive(Clone, Debug)]
pub struct QueryRule {
    /// Name of the parameter as the called side writes it, decoded.
    pub name: Arc<str>,
    /// What gives its value.
    pub from: QueryFrom,
    /// How a value that is a list is written.
    pub style: ListStyle,
}

/// Where a query parameter comes from.
#[derive(Clone, Debug)]
pub enum QueryFrom {
    /// The client's parameter of this name, as it came (all of them if it came more than once); nothing is sent when it
    /// is absent.
    Client(Arc<str>),
    /// The client's parameters that are fields of this one, `name[field]`, as they came.
    ClientFields(Arc<str>),
    /// This scalar, as JSON text.
    Constant(Raw),
    /// A scalar or a list of scalars; nothing is sent for nothing and null.
    Value(Expr),
}

/// A query parameter that a client is refused for.
#[derive(Clone, Debug)]
pub struct QueryRefusal {
    /// The client's name for it.
    pub name: Arc<str>,
    /// Values, decoded, with which it means nothing and is dropped.
    pub unless: Vec<Arc<str>>,
    /// What the client is told.
    pub reason: ReasonId,
    /// The line of the mapping that refuses it.
    pub origin: Origin,
}

/// One header field, lower-case name; left out when its value is nothing or null. The context of a pair's rules is
/// `{request: {path, query, headers}, config, reply: {status, headers}}`, `reply` for rules of answers only.
#[derive(Clone, Debug)]
pub struct HeaderRule {
    /// In lower case.
    pub name: Key,
    /// What gives the field's value: a scalar.
    pub value: Expr,
}

/// Which statuses of the other side a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFrom {
    /// This status alone.
    Exact(u16),
    /// First digit: 2 for `2xx`.
    Class(u8),
}

impl StatusFrom {
    /// Whether the rule is for this status.
    pub fn matches(self, status: u16) -> bool {
        match self {
            StatusFrom::Exact(exact) => exact == status,
            StatusFrom::Class(class) => status / 100 == u16::from(class),
        }
    }
}

/// The status answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusTo {
    /// The status that the other side gave.
    Same,
    /// This status.
    Exact(u16),
}
