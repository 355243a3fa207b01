//! Classifies the outcome of an upstream exchange: whether the response is valid and, for a
//! failure, its cause and whether a retry is safe. Upstreams are not trusted to follow HTTP.

use super::pool::Unanswered;
use crate::body;
use crate::error::{ErrorKind, GatewayError};
use http::{Version, header};
use std::error::Error as StdError;
use std::io;
use tower::BoxError;

const BROKE_OFF: &str = "the exchange broke off";

/// Returns the error for a response head that did not arrive in time.
pub(super) fn late() -> GatewayError {
    GatewayError::new(ErrorKind::UpstreamTimeout, "no answer's head came in time")
}

/// Returns the error for a failed in-process service.
pub(super) fn broken_within(error: BoxError) -> GatewayError {
    body::broke_off(BROKE_OFF, error)
}

/// Converts a failed exchange into an error, including whether the upstream can have processed the
/// call.
pub(super) fn judge_unanswered(unanswered: Unanswered) -> GatewayError {
    match unanswered {
        Unanswered::Unreachable(error) => unreachable(error),
        Unanswered::Unsent(error) => untaken(error),
        // An error of the request body belongs to the client: the upload was cut off, too large or
        // too slow.
        Unanswered::Broken(error) => match find_source(&error) {
            Some(own) => own,
            None if has_source(&error, is_unprocessed) => untaken(error),
            None => body::broke_off(BROKE_OFF, error),
        },
        Unanswered::Late => late(),
    }
}

fn unreachable(error: BoxError) -> GatewayError {
    let is_late = has_source(&*error, |e| {
        e.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
    });
    let kind = if is_late { ErrorKind::UpstreamTimeout } else { ErrorKind::UpstreamUnreachable };
    GatewayError::new(kind, "no connection").because(error).safe_to_retry()
}

fn untaken(error: impl Into<BoxError>) -> GatewayError {
    let closed = GatewayError::new(ErrorKind::UpstreamClosed, "the upstream did not take the call");
    closed.because(error).safe_to_retry()
}

/// Returns whether the peer guarantees that it did not process the call, whatever its method (RFC
/// 9113, section 8.7): the stream was refused, or its identifier is above the last one that a
/// GOAWAY names. For streams up to that identifier h2 reports the end of the connection instead,
/// never the GOAWAY.
fn is_unprocessed(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref::<h2::Error>().is_some_and(|error| {
        // Only the peer can guarantee it: the same codes are also raised locally, for other
        // reasons.
        error.is_remote()
            && (error.is_go_away()
                || (error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM)))
    })
}

fn has_source(error: &(dyn StdError + 'static), test: impl Fn(&(dyn StdError + 'static)) -> bool) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if test(error) {
            return true;
        }
        next = error.source();
    }
    false
}

fn find_source(error: &(dyn StdError + 'static)) -> Option<GatewayError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(own) = error.downcast_ref::<GatewayError>() {
            // The source cannot be moved out of hyper's error; the detail suffices for the log.
            return Some(GatewayError::new(own.kind().clone(), own.detail()));
        }
        next = error.source();
    }
    None
}

/// Rejects response heads that an intermediary must not forward (RFC 9112, section 6; RFC 9110,
/// section 15) and heads with more than `fields_max` fields.
pub(super) fn judge_head<B>(response: &http::Response<B>, fields_max: usize) -> Result<(), GatewayError> {
    let broken = |detail: &str| Err(GatewayError::new(ErrorKind::UpstreamBroken, detail));
    let (status, headers) = (response.status(), response.headers());
    // Informational responses were consumed before, so a 1xx here is a 101 without a request to
    // switch.
    if !(200..=599).contains(&status.as_u16()) {
        return broken("a status that is no final answer");
    }
    // HTTP/2 frames bodies itself, so no framing field has to be checked.
    if response.version() == Version::HTTP_2 {
        // HTTP/1.1 connections enforce this limit while reading.
        return if headers.len() > fields_max { broken("too many header fields") } else { Ok(()) };
    }
    // Two recipients that disagree about the length of a body see different messages: request
    // smuggling in the response direction. Ambiguous framing is therefore an error (RFC 9112,
    // section 6.3).
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => broken("Transfer-Encoding more than once"),
        (Some(_), None) if headers.contains_key(header::CONTENT_LENGTH) => broken("two lengths for one body"),
        (Some(coding), None) if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            broken("an unknown transfer coding")
        }
        (Some(_), None) => Ok(()),
    }
}
