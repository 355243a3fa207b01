//! Errors for messages that the gateway cannot translate: the responsible party, and details for
//! the log.

use super::error::{Cause, TranslateError};
use http::HeaderMap;
use std::fmt;
use std::sync::Arc;
use switchback_plan::{Expr, Origin, Path, ReasonId, Segment};

/// The kinds of errors, a subset of [`switchback_plan::GATEWAY_ERRORS`]. The first seven are the
/// client's, the next four the upstream's; the others are the gateway's or the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// A parameter or header field of the request violates the contract.
    BadRequest,
    /// A cursor that is expired, or was not issued for this client and list.
    BadCursor,
    /// A page that is unreachable from the preceding pages.
    BadPage,
    /// The request's body violates the contract.
    BadBody,
    /// The request exceeds the buffer limit.
    TooLarge,
    /// The media type or content coding of the request's body is not supported by the operation.
    UnsupportedMedia,
    /// A path variable has a value that no resource can have.
    NotFound,
    /// The upstream cannot be connected.
    UpstreamUnreachable,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The connection was closed before the answer was complete.
    UpstreamClosed,
    /// The upstream's answer is not HTTP, or violates its contract.
    UpstreamBroken,
    /// The memory budget is exhausted.
    Overloaded,
    /// Configuration, mapping and engine are inconsistent.
    Internal,
}

impl FaultKind {
    /// Returns the name in [`switchback_plan::GATEWAY_ERRORS`].
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::BadRequest => "bad_request",
            FaultKind::BadCursor => "bad_cursor",
            FaultKind::BadPage => "bad_page",
            FaultKind::BadBody => "bad_body",
            FaultKind::TooLarge => "too_large",
            FaultKind::UnsupportedMedia => "unsupported_media",
            FaultKind::NotFound => "not_found",
            FaultKind::UpstreamUnreachable => "upstream_unreachable",
            FaultKind::UpstreamTimeout => "upstream_timeout",
            FaultKind::UpstreamClosed => "upstream_closed",
            FaultKind::UpstreamBroken => "upstream_broken",
            FaultKind::Overloaded => "overloaded",
            FaultKind::Internal => "internal",
        }
    }
}

/// A request that its plan cannot answer. Contains no response: format and language are up to the
/// caller.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind of error, which implies the responsible party.
    pub kind: FaultKind,
    /// For the log: places and types of values, never values.
    pub detail: String,
    /// The current mapping line.
    pub origin: Option<Origin>,
    /// The current call, as an operation key of the other side's contract.
    pub operation: Option<Arc<str>>,
    /// Header fields that the route adds to the answer even for this error.
    pub headers: Option<Box<HeaderMap>>,
}

impl Fault {
    /// Creates an error without a mapping line or call.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Fault {
        Fault { kind, detail: detail.into(), origin: None, operation: None, headers: None }
    }

    /// Creates an error for a body with an unexpected media type.
    pub(super) fn unsupported_media(wanted: &str) -> Fault {
        let detail = format!("the body is of another media type than {wanted}");
        Fault::new(FaultKind::UnsupportedMedia, detail)
    }

    /// Creates an error for a body that cannot be translated, attributed to its sender.
    pub fn of_body(sender: Sender, error: &TranslateError) -> Fault {
        let kind = match sender {
            _ if matches!(error.cause, Cause::Setting(_)) => FaultKind::Internal,
            Sender::ClientBody if error.is_limit() => FaultKind::TooLarge,
            Sender::ClientBody => FaultKind::BadBody,
            Sender::Client => FaultKind::BadRequest,
            Sender::Upstream => FaultKind::UpstreamBroken,
            Sender::Operator => FaultKind::Internal,
        };
        Fault { origin: error.origin.clone(), ..Fault::new(kind, error.to_string()) }
    }

    #[must_use]
    pub(super) fn at(mut self, origin: &Origin) -> Fault {
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.kind.name(), self.detail)?;
        if let Some(operation) = &self.operation {
            write!(out, ", calling {operation}")?;
        }
        match &self.origin {
            Some(origin) => write!(out, " ({origin})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The body of the client's request.
    ClientBody,
    /// The client's request, except its body.
    Client,
    /// The called service.
    Upstream,
    /// Configuration and mapping.
    Operator,
}

impl Sender {
    /// Returns the origin of an expression's value. Of several, the first that is not a constant
    /// counts.
    pub(super) fn from_expr(expr: &Expr) -> Sender {
        match expr {
            Expr::Constant(_) => Sender::Operator,
            Expr::At(location) => Sender::of_path(&location.path, &location.text),
            Expr::Convert { from, .. } | Expr::Apply { from, .. } | Expr::Shape { from, .. } => {
                Sender::from_expr(from)
            }
            Expr::Object(members) => Sender::of_all(members.iter().map(|(_, value)| value)),
            Expr::Array(values) | Expr::FirstOf(values) | Expr::Present(values) => {
                Sender::of_all(values.iter())
            }
            Expr::Each { list, .. } | Expr::Aggregate { list, .. } => Sender::from_expr(list),
            Expr::Lookup { list, .. } => Sender::of_path(&list.path, &list.text),
            Expr::If { then, otherwise, .. } => {
                Sender::of_all(std::iter::once(&**then).chain(otherwise.as_deref()))
            }
            Expr::Lines { plain, numbered } => Sender::of_all(plain.iter().chain(numbered)),
            Expr::Text { with, .. } => Sender::of_all(with.iter().map(|(_, value)| value)),
        }
    }

    fn of_all<'e>(mut values: impl Iterator<Item = &'e Expr>) -> Sender {
        values
            .find_map(|value| Some(Sender::from_expr(value)).filter(|s| *s != Sender::Operator))
            .unwrap_or(Sender::Operator)
    }

    fn of_path(path: &Path, text: &str) -> Sender {
        let name = |at: usize| match path {
            Path::Singular(segments) => match segments.get(at) {
                Some(Segment::Member(key)) => key.text.as_ref(),
                _ => "",
            },
            // A query has no list of segments, so take the names from its text.
            Path::Query(_) => text
                .split(['.', '[', ']', '\'', '"'])
                .filter(|part| !part.is_empty())
                .nth(at + 1)
                .unwrap_or(""),
        };
        match (name(0), name(1)) {
            ("request", "body") => Sender::ClientBody,
            ("request", _) => Sender::Client,
            ("config", _) => Sender::Operator,
            _ => Sender::Upstream,
        }
    }
}

/// The reason why processing of a request stops early.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    Fault(Fault),
    /// The mapping refuses the request.
    Refused(ReasonId),
}

impl Stop {
    /// Adds the mapping line unless one is already known.
    pub(super) fn at(self, origin: &Origin) -> Stop {
        match self {
            Stop::Fault(fault) => Stop::Fault(fault.at(origin)),
            refused @ Stop::Refused(_) => refused,
        }
    }

    pub(super) fn of_body(sender: Sender, error: &TranslateError) -> Stop {
        match error.cause {
            Cause::Refused(reason) => Stop::Refused(reason),
            _ => Stop::Fault(Fault::of_body(sender, error)),
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}
