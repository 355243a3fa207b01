//! Errors that the gateway makes of a message it cannot translate: whose fault it is, and what the log should know.

use super::error::{Cause, TranslateError};
use http::HeaderMap;
use std::fmt;
use std::sync::Arc;
use switchback_plan::{Expr, Origin, Path, ReasonId, Segment};

/// The kinds of fault, a part of [`switchback_plan::GATEWAY_ERRORS`]. The first seven are the client's, the next four the
/// upstream's; the others are ours or the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// A parameter or a header field of the request is not what the contract says.
    BadRequest,
    /// A cursor that was not made here for this client and list, or too long ago.
    BadCursor,
    /// A page that cannot be reached by the pages before it.
    BadPage,
    /// The request's body is not what the contract says.
    BadBody,
    /// The request is larger than what may be held of one.
    TooLarge,
    /// The request's body has a media type or a coding that the operation does not take.
    UnsupportedMedia,
    /// A path variable has a value that no resource can have.
    NotFound,
    /// No connection to the upstream.
    UpstreamUnreachable,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The connection was lost before the answer was complete.
    UpstreamClosed,
    /// The upstream's answer is no HTTP, or nothing that its contract knows.
    UpstreamBroken,
    /// There is no memory for what the request needs held.
    Overloaded,
    /// Configuration, mapping and engine do not fit together.
    Internal,
}

impl FaultKind {
    /// Its name in [`switchback_plan::GATEWAY_ERRORS`].
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

/// A request that cannot be answered by its plan. Carries no response: its form and language are the caller's business.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What went wrong, and whose fault it is.
    pub kind: FaultKind,
    /// For the log: places and kinds of values, never values.
    pub detail: String,
    /// The mapping line at work.
    pub origin: Option<Origin>,
    /// The call at work, as the other side's contract writes it.
    pub operation: Option<Arc<str>>,
    /// Header fields that the route adds to the answer even so.
    pub headers: Option<Box<HeaderMap>>,
}

impl Fault {
    /// A fault that is not yet blamed on a line or a call.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Fault {
        Fault { kind, detail: detail.into(), origin: None, operation: None, headers: None }
    }

    /// A body of another media type than wanted.
    pub(super) fn unsupported(wanted: &str) -> Fault {
        let detail = format!("the body is of another media type than {wanted}");
        Fault::new(FaultKind::UnsupportedMedia, detail)
    }

    /// A body that cannot be translated, blamed on whoever sent it.
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
            Some(origin) => write!(out, " ({}:{})", origin.file, origin.line),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}

/// Who sent a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The client, in its body.
    ClientBody,
    /// The client, outside its body.
    Client,
    /// The service that was called.
    Upstream,
    /// Configuration and mapping.
    Operator,
}

impl Sender {
    /// Who sent what a value is made of; of several, the first that is no constant.
    pub(super) fn of(expr: &Expr) -> Sender {
        match expr {
            Expr::Constant(_) => Sender::Operator,
            Expr::At(location) => Sender::of_path(&location.path, &location.text),
            Expr::Convert { from, .. } | Expr::Shape { from, .. } => Sender::of(from),
            Expr::Object(members) => Sender::of_all(members.iter().map(|(_, value)| value)),
            Expr::Array(values) | Expr::FirstOf(values) | Expr::Present(values) => {
                Sender::of_all(values.iter())
            }
            Expr::Each { list, .. } | Expr::Aggregate { list, .. } => Sender::of(list),
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
            .find_map(|value| Some(Sender::of(value)).filter(|s| *s != Sender::Operator))
            .unwrap_or(Sender::Operator)
    }

    fn of_path(path: &Path, text: &str) -> Sender {
        let name = |at: usize| match path {
            Path::Singular(segments) => match segments.get(at) {
                Some(Segment::Member(key)) => key.text.as_ref(),
                _ => "",
            },
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

/// Why work on a request stops before its end.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    Fault(Fault),
    /// The mapping refuses what the request asks for.
    Refused(ReasonId),
}

impl Stop {
    /// The same with the mapping line at work, where none is known yet.
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
