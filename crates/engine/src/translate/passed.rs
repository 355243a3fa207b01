//! Bodies that are forwarded unchanged: the header fields that describe them, and their media
//! types.

use super::fault::{Fault, FaultKind};
use super::reply::body_type;
use super::turn::Failed;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use switchback_plan::{BodyFormat, MediaType, MediaTypes, Pair, Response, ResponseBody};

/// Request header fields that are forwarded with an unchanged body: its description and
/// preconditions.
const PASSED_WITH_REQUEST: [HeaderName; 7] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_DISPOSITION,
    header::CONTENT_LOCATION,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_UNMODIFIED_SINCE,
];

/// Request header fields that select the representation of an unchanged answer.
const PASSED_FOR_ANSWER: [HeaderName; 5] =
    [header::ACCEPT, header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];

/// Answer header fields that are forwarded with an unchanged body. They describe the body, so they
/// remain valid.
const PASSED_WITH_ANSWER: [HeaderName; 6] = [
    header::CONTENT_ENCODING,
    header::CONTENT_DISPOSITION,
    header::CONTENT_RANGE,
    header::ACCEPT_RANGES,
    header::ETAG,
    header::LAST_MODIFIED,
];

/// Digests of a body (RFC 9530), in both directions.
const DIGESTS: [HeaderName; 2] =
    [HeaderName::from_static("content-digest"), HeaderName::from_static("repr-digest")];

/// Adds the header fields that describe an unchanged body to the call. Fails if its media type is
/// not in the contracts.
pub fn headers(
    pair: &Pair,
    client: &HeaderMap,
    has_body: bool,
    headers: &mut HeaderMap,
) -> Result<(), Fault> {
    if let (BodyFormat::Opaque(media), true) = (&pair.call.format, has_body) {
        if let Some(named) = media_type(media, client, false)? {
            headers.insert(header::CONTENT_TYPE, named);
        }
        copy(client, PASSED_WITH_REQUEST.iter().chain(&DIGESTS), headers);
    }
    let is_passed = |response: &Response| matches!(response.body, ResponseBody::Opaque(_));
    if pair.responses.iter().any(is_passed) {
        copy(client, PASSED_FOR_ANSWER.iter(), headers);
    }
    Ok(())
}

/// Adds the header fields that describe the reply's unchanged body to the answer. `is_empty` is set
/// if there is no body. The error describes a media type that is not in the contract.
pub fn answer(
    media: &MediaTypes,
    reply: &HeaderMap,
    is_empty: bool,
    headers: &mut HeaderMap,
) -> Result<(), Failed> {
    if !is_empty {
        let named = media_type(media, reply, true).map_err(|_| {
            Failed::broken(format!("a success with {}, which is no answer of the contract", body_type(reply)))
        })?;
        if let Some(named) = named {
            headers.insert(header::CONTENT_TYPE, named);
        }
    }
    copy(reply, PASSED_WITH_ANSWER.iter().chain(&DIGESTS), headers);
    Ok(())
}

/// Adds the header fields that describe the reply's unchanged body to the answer, for a body that
/// neither contract describes.
pub fn undescribed(reply: &HeaderMap, headers: &mut HeaderMap) {
    copy(reply, [header::CONTENT_TYPE].iter().chain(&PASSED_WITH_ANSWER).chain(&DIGESTS), headers);
}

fn copy<'n>(from: &HeaderMap, names: impl Iterator<Item = &'n HeaderName>, to: &mut HeaderMap) {
    for name in names {
        if let Some(value) = from.get(name) {
            to.insert(name.clone(), value.clone());
        }
    }
}

/// Returns the media type of the forwarded body. A type that only the sender's contract declares is
/// accepted with `passes_untaken`.
fn media_type(
    media: &MediaTypes,
    headers: &HeaderMap,
    passes_untaken: bool,
) -> Result<Option<HeaderValue>, Fault> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        let named = media.default_type().and_then(|named| HeaderValue::from_str(named).ok());
        return if named.is_some() || passes_untaken { Ok(named) } else { Err(no_media_type(media)) };
    };
    let named = value.to_str().unwrap_or("");
    match media.classify(named) {
        MediaType::Same => Ok(Some(value.clone())),
        MediaType::Untaken if passes_untaken => Ok(Some(value.clone())),
        MediaType::Renamed(to) => {
            // A renamed type keeps its parameters, such as the charset.
            let parameters = named.find(';').map_or("", |at| &named[at..]);
            Ok(HeaderValue::from_str(&format!("{to}{parameters}")).ok())
        }
        MediaType::Untaken | MediaType::Foreign => Err(no_media_type(media)),
    }
}

fn no_media_type(media: &MediaTypes) -> Fault {
    let detail = format!("the body is of another media type than {}", media.from.join(", "));
    Fault::new(FaultKind::UnsupportedMedia, detail)
}
