//! The error type of the data path: its kind, the responsible side, whether a retry is safe, and
//! the detail for the log. Only `proxy/layers/rescue.rs` turns an error into a response, in the
//! client's language and the pack's error format.
//!
//! An error has two separate texts. The client's text is looked up in the pack by the kind's name,
//! or set with [`GatewayError::saying`]. The log receives [`GatewayError::detail`], which includes
//! the chain of sources. Neither contains a secret.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// The party responsible for an error, from the gateway's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorSide {
    /// The request is invalid; sending it unchanged fails again.
    Client,
    /// The gateway cannot serve the call now, or its operator has to act.
    Gateway,
    /// The service did not answer, or sent an invalid response.
    Upstream,
}

impl ErrorSide {
    /// Returns the label for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            ErrorSide::Client => "client",
            ErrorSide::Gateway => "gateway",
            ErrorSide::Upstream => "upstream",
        }
    }
}

/// Whether the same call may be sent again without risking a second effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetrySafety {
    /// The upstream received no part of the call.
    Safe,
    /// The upstream may have received the call, so only an idempotent call may be sent again.
    Never,
}

/// The kind of an error. Names and default statuses are defined in
/// [`switchback_plan::GATEWAY_ERRORS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request has no token, or an unknown one.
    UnknownToken,
    /// No operation matches this path.
    NotFound,
    /// The path exists, but only with other methods.
    WrongMethod {
        /// The allowed methods, joined by `, ` for the `Allow` header.
        allow: String,
    },
    /// The path is ambiguous, or leaves the front's prefix.
    BadPath,
    /// Framing, `Host` or header fields that an intermediary must reject.
    BadRequest,
    /// A cursor that has expired, or was not issued to this client for this list.
    BadCursor,
    /// A page that cannot be reached with the service's cursors.
    BadPage,
    /// The body does not match its content type or the operation's schema.
    BadBody,
    /// The body exceeds the size limit.
    TooLarge,
    /// The request target exceeds the length limit.
    UriTooLong,
    /// The operation does not accept bodies of this media type or content coding.
    UnsupportedMedia,
    /// `Expect` has a value other than `100-continue`.
    ExpectationFailed,
    /// The header fields exceed the limit on their number or size.
    HeadersTooLarge,
    /// The client took too long to send its request.
    RequestTimeout,
    /// A concurrency or memory limit is reached. A later retry may succeed.
    Overloaded {
        /// The value of `Retry-After`, rounded to seconds.
        retry_after: Duration,
    },
    /// The client's grant has ended; a person has to authorize it again.
    NeedsReconnect,
    /// The account of the request is unavailable on the other side.
    AccountUnavailable,
    /// No connection could be established; nothing was sent.
    UpstreamUnreachable,
    /// The connection was lost before or during the response.
    UpstreamClosed,
    /// The response is invalid.
    UpstreamBroken,
    /// The service did not answer in time.
    UpstreamTimeout,
    /// The request has passed this gateway before: `Via` contains its pseudonym.
    LoopDetected,
    /// The operation is unavailable, and no fallback answers it.
    Refused,
    /// A scheduled brownout rejects the call until its window closes.
    Brownout {
        /// The value of `Retry-After`, rounded to seconds.
        retry_after: Duration,
    },
    /// The client's API version has been retired for it.
    Retired,
    /// An internal error; the log has the details.
    Internal,
}

impl ErrorKind {
    /// Returns the stable name: the key of the pack's error texts and a label of metrics.
    pub fn name(&self) -> &'static str {
        match self {
            ErrorKind::UnknownToken => "unknown_token",
            ErrorKind::NotFound => "not_found",
            ErrorKind::WrongMethod { .. } => "wrong_method",
            ErrorKind::BadPath => "bad_path",
            ErrorKind::BadRequest => "bad_request",
            ErrorKind::BadCursor => "bad_cursor",
            ErrorKind::BadPage => "bad_page",
            ErrorKind::BadBody => "bad_body",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::UriTooLong => "uri_too_long",
            ErrorKind::UnsupportedMedia => "unsupported_media",
            ErrorKind::ExpectationFailed => "expectation_failed",
            ErrorKind::HeadersTooLarge => "headers_too_large",
            ErrorKind::RequestTimeout => "request_timeout",
            ErrorKind::Overloaded { .. } => "overloaded",
            ErrorKind::NeedsReconnect => "needs_reconnect",
            ErrorKind::AccountUnavailable => "account_unavailable",
            ErrorKind::UpstreamUnreachable => "upstream_unreachable",
            ErrorKind::UpstreamClosed => "upstream_closed",
            ErrorKind::UpstreamBroken => "upstream_broken",
            ErrorKind::UpstreamTimeout => "upstream_timeout",
            ErrorKind::LoopDetected => "loop_detected",
            ErrorKind::Refused => "refused",
            ErrorKind::Brownout { .. } => "brownout",
            ErrorKind::Retired => "retired",
            ErrorKind::Internal => "internal",
        }
    }

    /// Returns the responsible side.
    pub fn side(&self) -> ErrorSide {
        match self {
            ErrorKind::UpstreamUnreachable
            | ErrorKind::UpstreamClosed
            | ErrorKind::UpstreamBroken
            | ErrorKind::UpstreamTimeout => ErrorSide::Upstream,
            ErrorKind::Overloaded { .. }
            | ErrorKind::NeedsReconnect
            | ErrorKind::AccountUnavailable
            | ErrorKind::Refused
            | ErrorKind::Brownout { .. }
            | ErrorKind::Retired
            | ErrorKind::Internal => ErrorSide::Gateway,
            _ => ErrorSide::Client,
        }
    }

    /// Returns whether the connection must be closed after this error, because its framing can no
    /// longer be trusted.
    pub fn closes_connection(&self) -> bool {
        matches!(
            self,
            ErrorKind::BadRequest
                | ErrorKind::TooLarge
                | ErrorKind::HeadersTooLarge
                | ErrorKind::RequestTimeout
        )
    }
}

/// An error of the data path, on its way to the layer `rescue`.
pub struct GatewayError(Box<ErrorInner>);

struct ErrorInner {
    kind: ErrorKind,
    retry: RetrySafety,
    /// Whether the upstream's response is missing or incomplete.
    is_cut: bool,
    text: Option<String>,
    status: Option<http::StatusCode>,
    detail: String,
    headers: Option<Box<http::HeaderMap>>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl GatewayError {
    /// Creates an error of the given kind. `detail` is for the log and must not contain a secret.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> GatewayError {
        GatewayError(Box::new(ErrorInner {
            kind,
            retry: RetrySafety::Never,
            is_cut: false,
            text: None,
            status: None,
            detail: detail.into(),
            headers: None,
            source: None,
        }))
    }

    /// Marks the error as safe to retry: no part of the call reached the upstream.
    #[must_use]
    pub fn safe_to_retry(mut self) -> GatewayError {
        self.0.retry = RetrySafety::Safe;
        self
    }

    /// Marks the response as missing or incomplete: the upstream's verdict on the call is unknown.
    #[must_use]
    pub fn cut(mut self) -> GatewayError {
        self.0.is_cut = true;
        self
    }

    /// Sets the text for the client, in its language, instead of the pack's text for the kind.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> GatewayError {
        self.0.text = Some(text.into());
        self
    }

    /// Sets the status for the client, instead of the pack's status for the kind.
    #[must_use]
    pub fn with_status(mut self, status: http::StatusCode) -> GatewayError {
        self.0.status = Some(status);
        self
    }

    /// Adds header fields to the error response.
    #[must_use]
    pub fn with_headers(mut self, headers: http::HeaderMap) -> GatewayError {
        self.0.headers = Some(Box::new(headers));
        self
    }

    /// Appends the place of the error to the detail for the log.
    #[must_use]
    pub fn at(mut self, place: &str) -> GatewayError {
        self.0.detail.push_str(", ");
        self.0.detail.push_str(place);
        self
    }

    /// Sets the underlying error, for the log.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> GatewayError {
        self.0.source = Some(source.into());
        self
    }

    /// Returns the kind, which selects the status, name and text of the response.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns the responsible side, under which the failure is counted.
    pub fn side(&self) -> ErrorSide {
        self.0.kind.side()
    }

    /// Returns whether the same request may be sent again, as far as the gateway knows.
    pub fn retry(&self) -> RetrySafety {
        self.0.retry
    }

    /// Returns whether the upstream's response is missing or incomplete. A complete but unusable
    /// response does not count.
    pub fn is_unanswered(&self) -> bool {
        self.0.is_cut || matches!(self.0.kind, ErrorKind::UpstreamUnreachable | ErrorKind::UpstreamTimeout)
    }

    /// Returns the error's own text for the client, if set.
    pub fn text(&self) -> Option<&str> {
        self.0.text.as_deref()
    }

    /// Returns the error's own status, if set.
    pub fn status(&self) -> Option<http::StatusCode> {
        self.0.status
    }

    /// Returns additional header fields of the error response, if set.
    pub fn headers(&self) -> Option<&http::HeaderMap> {
        self.0.headers.as_deref()
    }

    /// Returns the text for the log: the detail and the chain of sources.
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
        let error = GatewayError::new(ErrorKind::UpstreamBroken, "reading the answer").because(io);
        assert_eq!(error.detail(), "reading the answer: connection reset by peer");
        assert_eq!(error.to_string(), "upstream_broken: reading the answer");
        assert_eq!(error.side(), ErrorSide::Upstream);
        assert_eq!(error.retry(), RetrySafety::Never);
    }
}
