//! How errors of the gateway look to clients of a pack: the closed list of their kinds, and the body, statuses and words that
//! a pack gives them.

use super::{Form, Origin, Raw, ReasonId};
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_json::text::escape;

/// How errors made by the gateway look to the clients of one side.
#[derive(Debug)]
pub struct ErrorStyle {
    /// The body, piece by piece.
    pub body: Vec<ErrorPiece>,
    /// Type of the error body.
    pub content_type: String,
    /// Status, text and word by kind of gateway error (`unknown_token`, `wrong_method`, …: the closed list is
    /// [`GATEWAY_ERRORS`]); what is missing keeps the engine's default status, English text and own name.
    pub statuses: BTreeMap<String, u16>,
    /// By kind of error, the text for people.
    pub texts: BTreeMap<String, ReasonId>,
    /// By kind of error, the machine-readable word in the body.
    pub words: BTreeMap<String, String>,
    /// The status that every error is answered with, where the side tells errors by their body alone.
    pub status: Option<u16>,
    /// What the side's contract says of an error. An error of the other side that is nothing of the kind is told in the
    /// gateway's words.
    pub form: Option<Arc<Form>>,
}

/// An answer of a service that is a failure, whatever its status says.
#[derive(Clone, Debug)]
pub struct FailureRule {
    /// All of them hold. At least one.
    pub when: Vec<FailureTest>,
    /// The status that the answer is read as.
    pub status: u16,
    /// Where the mapping declares it.
    pub origin: Origin,
}

/// What an answer has at a place: the place is there, and its value is one of these.
#[derive(Clone, Debug)]
pub struct FailureTest {
    /// What of the answer is looked at.
    pub place: FailurePlace,
    /// Scalars, as JSON text.
    pub values: Vec<Raw>,
}

/// Where an answer says that it is a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailurePlace {
    /// A header field, in lower case.
    Header(String),
    /// Members of the body, from the top.
    Body(Vec<Arc<str>>),
}

/// A part of the body of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorPiece {
    /// JSON text as it is.
    Json(Raw),
    /// The text for people, as a JSON string.
    Text,
    /// The status of the error, as a number.
    Status,
    /// The word for the kind of error, as a JSON string.
    Kind,
}

impl ErrorStyle {
    /// The status that an error of this status is answered with.
    pub fn answered(&self, status: u16) -> u16 {
        self.status.unwrap_or(status)
    }

    /// The body of an error of this kind, one of [`GATEWAY_ERRORS`], with its status and its text. The status is the error's
    /// own, also where all errors are answered with another one.
    pub fn body(&self, kind: &str, status: u16, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + text.len());
        for piece in &self.body {
            match piece {
                ErrorPiece::Json(json) => out.extend_from_slice(json),
                ErrorPiece::Text => string(text, &mut out),
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

/// The kinds of error the gateway makes itself, with their default status and English text.
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
