//! What comes back from an upstream, judged: whether it is an answer, and if there is none, whose fault that is and whether the
//! upstream can have seen the call. Upstreams are not trusted to keep to HTTP.

use super::pool::Unanswered;
use crate::body;
use crate::error::{GatewayError, Kind};
use http::{Version, header};
use std::error::Error as StdError;
use std::io;
use tower::BoxError;

const BROKE_OFF: &str = "the exchange broke off";

/// What it means that an answer's head did not come in time.
pub(super) fn late() -> GatewayError {
    GatewayError::new(Kind::UpstreamTimeout, "no answer's head came in time")
}

/// What it means that a service of the same program failed.
pub(super) fn broken_within(error: BoxError) -> GatewayError {
    body::broke_off(BROKE_OFF, error)
}

/// What it means that a connection brought no answer, and whether the upstream can have seen the call.
pub(super) fn judge_unanswered(unanswered: Unanswered) -> GatewayError {
    match unanswered {
        Unanswered::Unreachable(error) => unreachable(error),
        Unanswered::Unsent(error) => untaken(error),
        // The request body's own error is the client's: its upload was cut, too large or too slow.
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
    let kind = if is_late { Kind::UpstreamTimeout } else { Kind::UpstreamUnreachable };
    GatewayError::new(kind, "no connection").because(error).safe_to_retry()
}

fn untaken(error: impl Into<BoxError>) -> GatewayError {
    let closed = GatewayError::new(Kind::UpstreamClosed, "the upstream did not take the call");
    closed.because(error).safe_to_retry()
}

/// Whether an error says that the upstream has done nothing of the call, whatever its method (RFC 9113, section 8.7): its
/// stream lies beyond the last one that a GOAWAY names, or it was refused. To streams up to the last one h2 reports the end
/// of the connection, never the GOAWAY.
fn is_unprocessed(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref::<h2::Error>().is_some_and(|error| {
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
            return Some(GatewayError::new(own.kind().clone(), own.detail()));
        }
        next = error.source();
    }
    None
}

/// Heads that no intermediary may pass on (RFC 9112, section 6; RFC 9110, section 15), and those with more than `fields_max`
/// fields.
pub(super) fn judge_head<B>(response: &http::Response<B>, fields_max: usize) -> Result<(), GatewayError> {
    let broken = |detail: &str| Err(GatewayError::new(Kind::UpstreamBroken, detail));
    let (status, headers) = (response.status(), response.headers());
    if !(200..=599).contains(&status.as_u16()) {
        return broken("a status that is no final answer");
    }
    if response.version() == Version::HTTP_2 {
        // Of HTTP/1.1 the connection counts them while it reads.
        return if headers.len() > fields_max { broken("too many header fields") } else { Ok(()) };
    }
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
