//! The one error of the data path: what went wrong, on whose side, whether trying again is safe, and what the log should
//! know. It carries no response: only `proxy/layers/rescue.rs` turns it into one, in the client's language and the pack's form.
//!
//! Two texts, kept apart: what the client may read is looked up by the kind's name in the pack (or set with
//! [`GatewayError::saying`]); what the log reads is [`GatewayError::detail`] and the chain of sources. Neither holds secrets.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// Whose fault it is, as seen from the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The request is wrong: sent once more as it is, it fails again.
    Client,
    /// The gateway cannot do it now, or its operator has to act.
    Gateway,
    /// The service did not answer, or with something that is no answer.
    Upstream,
}

impl Side {
    /// Label for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Gateway => "gateway",
            Side::Upstream => "upstream",
        }
    }
}

/// Whether the same call may be sent again without risking a second effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Nothing of the call was seen by the upstream.
    Safe,
    /// It may have been seen: only a call that is harmless to repeat may be sent again.
    Never,
}

/// What went wrong. The names and default statuses are those of [`switchback_plan::GATEWAY_ERRORS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request has no token, or one that nobody enrolled.
    UnknownToken,
    /// No operation has this path.
    NotFound,
    /// The path is known under other methods, listed as the `Allow` header wants them.
    WrongMethod {
        /// Methods, joined by `, `.
        allow: String,
    },
    /// The path can be read in several ways, or leads above its front.
    BadPath,
    /// Framing, Host, or header fields that no intermediary may accept.
    BadRequest,
    /// A cursor that was not handed out to this client for this list, or too long ago.
    BadCursor,
    /// A page that cannot be found by the cursors of the service.
    BadPage,
    /// The body is not of the form that its type promises, or not what the operation takes.
    BadBody,
    /// The body is larger than the limits allow.
    TooLarge,
    /// The target is longer than the limits allow.
    UriTooLong,
    /// The operation takes no bodies of this type or content coding.
    UnsupportedMedia,
    /// `Expect` asks for something other than `100-continue`.
    ExpectationFailed,
    /// The header fields are more, or longer, than the limits allow.
    HeadersTooLarge,
    /// The client took too long to send its request.
    RequestTimeout,
    /// A limit of concurrency or memory is reached; trying again after this time may help.
    Overloaded {
        /// Becomes `Retry-After`, in whole seconds.
        retry_after: Duration,
    },
    /// The client's grant has ended: a person has to authorize again.
    NeedsReconnect,
    /// The account that the request is for cannot be acted on where its calls would go.
    AccountUnavailable,
    /// No connection could be made; nothing was sent.
    UpstreamUnreachable,
    /// The connection was lost before the answer, or within it.
    UpstreamClosed,
    /// What came is no answer.
    UpstreamBroken,
    /// The service did not answer in time.
    UpstreamTimeout,
    /// The request has passed this gateway before: its pseudonym is in `Via`.
    LoopDetected,
    /// The operation is not available and nothing else answers it.
    Refused,
    /// It is turned away on purpose until a window ends, in this time.
    Brownout {
        /// Becomes `Retry-After`, in whole seconds.
        retry_after: Duration,
    },
    /// The side that its client speaks has ended for it.
    Retired,
    /// A fault of the gateway itself; the log has more.
    Internal,
}

impl Kind {
    /// Stable name: key of the pack's error texts and label of metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::UnknownToken => "unknown_token",
            Kind::NotFound => "not_found",
            Kind::WrongMethod { .. } => "wrong_method",
            Kind::BadPath => "bad_path",
            Kind::BadRequest => "bad_request",
            Kind::BadCursor => "bad_cursor",
            Kind::BadPage => "bad_page",
            Kind::BadBody => "bad_body",
            Kind::TooLarge => "too_large",
            Kind::UriTooLong => "uri_too_long",
            Kind::UnsupportedMedia => "unsupported_media",
            Kind::ExpectationFailed => "expectation_failed",
            Kind::HeadersTooLarge => "headers_too_large",
            Kind::RequestTimeout => "request_timeout",
            Kind::Overloaded { .. } => "overloaded",
            Kind::NeedsReconnect => "needs_reconnect",
            Kind::AccountUnavailable => "account_unavailable",
            Kind::UpstreamUnreachable => "upstream_unreachable",
            Kind::UpstreamClosed => "upstream_closed",
            Kind::UpstreamBroken => "upstream_broken",
            Kind::UpstreamTimeout => "upstream_timeout",
            Kind::LoopDetected => "loop_detected",
            Kind::Refused => "refused",
            Kind::Brownout { .. } => "brownout",
            Kind::Retired => "retired",
            Kind::Internal => "internal",
        }
    }

    /// Whose fault this kind is.
    pub fn side(&self) -> Side {
        match self {
            Kind::UpstreamUnreachable
            | Kind::UpstreamClosed
            | Kind::UpstreamBroken
            | Kind::UpstreamTimeout => Side::Upstream,
            Kind::Overloaded { .. }
            | Kind::NeedsReconnect
            | Kind::AccountUnavailable
            | Kind::Refused
            | Kind::Brownout { .. }
            | Kind::Retired
            | Kind::Internal => Side::Gateway,
            _ => Side::Client,
        }
    }

    /// Whether the connection the request came on can still be trusted to be in step: after these it is closed.
    pub fn closes_connection(&self) -> bool {
        matches!(self, Kind::BadRequest | Kind::TooLarge | Kind::HeadersTooLarge | Kind::RequestTimeout)
    }
}

/// An error on its way to `rescue`.
pub struct GatewayError(Box<Inner>);

struct Inner {
    kind: Kind,
    retry: Retry,
    /// Whether the upstream's answer, or its end, never came.
    is_cut: bool,
    text: Option<String>,
    status: Option<http::StatusCode>,
    detail: String,
    headers: Option<Box<http::HeaderMap>>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl GatewayError {
    /// An error of this kind; `detail` is for the log and holds no secret.
    pub fn new(kind: Kind, detail: impl Into<String>) -> GatewayError {
        GatewayError(Box::new(Inner {
            kind,
            retry: Retry::Never,
            is_cut: false,
            text: None,
            status: None,
            detail: detail.into(),
            headers: None,
            source: None,
        }))
    }

    /// Nothing of the call reached the upstream.
    #[must_use]
    pub fn safe_to_retry(mut self) -> GatewayError {
        self.0.retry = Retry::Safe;
        self
    }

    /// The exchange broke before the whole answer was there: what the upstream would have said is not known.
    #[must_use]
    pub fn cut(mut self) -> GatewayError {
        self.0.is_cut = true;
        self
    }

    /// The text for the client, already in its language, instead of the pack's text for the kind.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> GatewayError {
        self.0.text = Some(text.into());
        self
    }

    /// The status for the client, instead of the pack's status for the kind.
    #[must_use]
    pub fn with_status(mut self, status: http::StatusCode) -> GatewayError {
        self.0.status = Some(status);
        self
    }

    /// Header fields that the answer carries besides.
    #[must_use]
    pub fn with_headers(mut self, headers: http::HeaderMap) -> GatewayError {
        self.0.headers = Some(Box::new(headers));
        self
    }

    /// Where it happened, for the log.
    #[must_use]
    pub fn at(mut self, place: &str) -> GatewayError {
        self.0.detail.push_str(", ");
        self.0.detail.push_str(place);
        self
    }

    /// The error underneath, for the log.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> GatewayError {
        self.0.source = Some(source.into());
        self
    }

    /// What went wrong: decides status, name and text of the answer.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Whose fault it is; decides how the failure is counted.
    pub fn side(&self) -> Side {
        self.0.kind.side()
    }

    /// Whether the same request may be sent again, as far as the gateway knows.
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// Whether the upstream gave no answer, or not all of it. An answer that came and cannot be used is not meant.
    pub fn is_unanswered(&self) -> bool {
        self.0.is_cut || matches!(self.0.kind, Kind::UpstreamUnreachable | Kind::UpstreamTimeout)
    }

    /// The client's text where the error brings its own.
    pub fn text(&self) -> Option<&str> {
        self.0.text.as_deref()
    }

    /// The status where the error brings its own.
    pub fn status(&self) -> Option<http::StatusCode> {
        self.0.status
    }

    /// Header fields that the answer carries besides.
    pub fn headers(&self) -> Option<&http::HeaderMap> {
        self.0.headers.as_deref()
    }

    /// What the log should know: the detail and the chain of sources.
    pub fn detail(&self) -> String {
        let mut out = self.0.detail.clone();
        let mut next: Option<&dyn StdError> = self.0.source.as_deref().map(|s| s as &dyn StdError);
        while let Some(source) = next {
            out.push_str(": ");
            out.push_str(&source.to_string());
            next = source.source();
        }
        out
    }
}

impl fmt::Debug for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GatewayError({}: {})", self.0.kind.name(), self.detail())
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind.name(), self.0.detail)
    }
}

impl StdError for GatewayError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|s| s as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_reads_the_whole_chain_and_the_display_does_not() {
        let io = std::io::Error::other("connection reset by peer");
        let error = GatewayError::new(Kind::UpstreamBroken, "reading the answer").because(io);
        assert_eq!(error.detail(), "reading the answer: connection reset by peer");
        assert_eq!(error.to_string(), "upstream_broken: reading the answer");
        assert_eq!(error.side(), Side::Upstream);
        assert_eq!(error.retry(), Retry::Never);
    }
}
