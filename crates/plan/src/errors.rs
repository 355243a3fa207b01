//! Errors of the gateway in the form of a pack: the closed list of their kinds, and the body,
//! status and text of each.

use super::{Form, Origin, Raw, ReasonId, XmlFormat};
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_json::text::escape;

/// The form of gateway errors for the clients of one side.
#[derive(Debug)]
pub struct ErrorStyle {
    /// The body, piece by piece.
    pub body: Vec<ErrorPiece>,
    /// Media type of the body.
    pub content_type: String,
    /// Status by kind of error. The kinds are listed in [`GATEWAY_ERRORS`], which also has the
    /// default status and text of those that the pack omits.
    pub statuses: BTreeMap<String, u16>,
    /// Text for people, by kind of error.
    pub texts: BTreeMap<String, ReasonId>,
    /// Machine-readable word in the body, by kind of error. The default is the kind itself.
    pub words: BTreeMap<String, String>,
    /// The status of every error response, for a side that reports errors only in the body.
    pub status: Option<u16>,
    /// The error type of the side's contract. An error of the other side that does not conform to
    /// it is replaced by a gateway error.
    pub form: Option<Arc<Form>>,
    /// The layout of the side's errors, if its contract describes them in XML. The other members
    /// describe the equivalent JSON.
    pub xml: Option<Arc<XmlFormat>>,
}

/// A rule that recognizes a failure regardless of the response's status.
#[derive(Clone, Debug)]
pub struct FailureRule {
    /// All of these must be true; at least one.
    pub when: Vec<FailureTest>,
    /// The status to assume for the response.
    pub status: u16,
    /// Place of the declaration in the mapping.
    pub origin: Origin,
}

/// A condition on a response: the place is present, and has one of these values.
#[derive(Clone, Debug)]
pub struct FailureTest {
    /// The part of the response to test.
    pub place: FailurePlace,
    /// Scalars, as JSON text.
    pub values: Vec<Raw>,
}

/// The place that marks a response as a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailurePlace {
    /// A header field, in lower case.
    Header(String),
    /// Member names from the top of the body.
    Body(Vec<Arc<str>>),
}

/// A piece of an error body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorPiece {
    /// Literal JSON text.
    Json(Raw),
    /// The text for people, as a JSON string.
    Text,
    /// The status of the error, as a number.
    Status,
    /// The word for the kind of error, as a JSON string.
    Kind,
}

impl ErrorStyle {
    /// Returns the response status for an error with this status.
    pub fn status_for(&self, status: u16) -> u16 {
        self.status.unwrap_or(status)
    }

    /// Returns the body of an error of this kind, one of [`GATEWAY_ERRORS`], as JSON. `status` is the
    /// error's own status, even if the response has another one.
    pub fn body(&self, kind: &str, status: u16, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + text.len());
        for piece in &self.body {
            match piece {
                ErrorPiece::Json(json) => out.extend_from_slice(json),
                // Texts may quote parts of a request. Escaping keeps the body valid JSON for every input.
                ErrorPiece::Text => string(text, &mut out),
                // The error's own status, because some APIs answer every error with 200 and put the status
                // into the body.
                ErrorPiece::Status => out.extend_from_slice(status.to_string().as_bytes()),
                ErrorPiece::Kind => string(self.words.get(kind).map_or(kind, String::as_str), &mut out),
            }
        }
        out
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(escape(text).as_bytes());
    out.push(b'"');
}

/// The kinds of gateway errors with their default statuses and English texts.
pub const GATEWAY_ERRORS: &[(&str, u16, &str)] = &[
    ("unknown_token", 401, "The access token is missing or not known."),
    ("not_found", 404, "There is nothing at this address."),
    ("wrong_method", 405, "This method is not available at this address."),
    ("bad_path", 400, "The address is not valid."),
    ("bad_request", 400, "The request is not valid."),
    ("bad_cursor", 400, "The cursor is not valid here, or not any more. Start again with the first page."),
    (
        "bad_page",
        400,
        "This page cannot be reached. Ask for pages in their order, of a size that stays the same.",
    ),
    ("bad_body", 400, "The body is not of the expected form."),
    ("too_large", 413, "The request is too large."),
    ("uri_too_long", 414, "The address is too long."),
    ("unsupported_media", 415, "The content type or coding is not supported."),
    ("expectation_failed", 417, "The expectation cannot be met."),
    ("headers_too_large", 431, "The header fields are too large."),
    ("request_timeout", 408, "The request took too long to arrive."),
    ("overloaded", 503, "The service is busy. Try again later."),
    ("needs_reconnect", 503, "The connection to the service must be renewed by its owner."),
    ("account_unavailable", 501, "This account cannot be acted on here."),
    ("upstream_unreachable", 502, "The service cannot be reached."),
    ("upstream_refused", 403, "The service refused this request."),
    ("upstream_closed", 502, "The connection to the service was lost before it answered."),
    ("upstream_broken", 502, "The service gave an answer that cannot be understood."),
    ("upstream_timeout", 504, "The service did not answer in time."),
    ("loop_detected", 508, "The request came back to where it started."),
    ("refused", 501, "This operation is not available."),
    ("brownout", 503, "This operation is switched off for a while, because it is about to end."),
    ("retired", 410, "This version of the service has ended."),
    ("internal", 500, "Something went wrong."),
];
