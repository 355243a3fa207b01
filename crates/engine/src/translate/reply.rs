//! Recognizes replies that violate every contract: HTML pages instead of JSON, redirects, errors of
//! intermediaries. A success is only accepted if its body can conform to the contract.

use super::turn::Reply;
use http::{HeaderMap, header};
use std::sync::Arc;
use switchback_json::{Limits, Value};
use switchback_plan::{CallHead, is_json_type};

/// Maximum length of a media type in the log.
const SHOWN_BYTES_MAX: usize = 64;

/// Returns why a success cannot conform to its contract, as a log message, or `None` if it can.
/// `body` may be truncated. A missing body is accepted, because it may be unused.
///
/// The media type decides (RFC 9110, section 8.3). A body with another type is accepted if it is
/// valid JSON, because servers often mislabel it. A body without a type is accepted if it starts
/// like JSON. `json_types` are the media types that the pack declares as JSON.
pub fn foreign_success(headers: &HeaderMap, json_types: &[Arc<str>], body: &[u8]) -> Option<String> {
    if body.is_empty() {
        return None;
    }
    let is_fit = match media_type(headers) {
        // A content coding hides the first byte.
        Some(named) if is_json_type(named, json_types) => {
            headers.contains_key(header::CONTENT_ENCODING) || begins_as_json(body)
        }
        None => begins_as_json(body),
        // The declared type is wrong, so only a complete parse proves that the body is JSON.
        Some(_) => Value::parse(body, &Limits::DOCUMENT).is_ok(),
    };
    (!is_fit).then(|| format!("a success with {}, which is no answer of the contract", body_type(headers)))
}

/// Returns whether the media type alone excludes the contract's body, unless parsing it shows
/// otherwise. `json_types` are the media types that the pack declares as JSON.
pub fn is_foreign_type(headers: &HeaderMap, json_types: &[Arc<str>]) -> bool {
    media_type(headers).is_some_and(|named| !is_json_type(named, json_types))
}

/// Returns whether an intermediary produced the error: its media type is not JSON, it does not
/// start like JSON, or it is a 401 without a body.
pub(super) fn is_of_another(reply: &Reply, json_types: &[Arc<str>]) -> bool {
    match reply.body.is_empty() {
        true => reply.status == 401,
        false => is_foreign_type(&reply.headers, json_types) || !begins_as_json(&reply.body),
    }
}

/// Describes an error outside the contract, for the log.
pub(super) fn foreign_error(status: u16, headers: &HeaderMap, body: &[u8]) -> String {
    let what = if body.is_empty() { "no body".to_owned() } else { body_type(headers) };
    format!("an error {status} with {what}, which is no error of the contract")
}

/// Describes a redirect, for the log. Only the origin of its target is included, because the rest
/// may contain secrets.
pub fn redirect(status: u16, headers: &HeaderMap) -> String {
    let location = headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
    let place = location.and_then(|location| location.parse::<http::Uri>().ok());
    let service = place.as_ref().and_then(|place| {
        let port = place.port_u16().map_or(String::new(), |port| format!(":{port}"));
        Some(format!("{}://{}{port}", place.scheme_str()?, place.host()?))
    });
    let to = match (location, service) {
        (None, _) => "nowhere".to_owned(),
        (_, Some(service)) => service,
        (Some(_), None) => "another path".to_owned(),
    };
    format!("a redirect ({status}) to {to}: is the upstream's address right?")
}

/// Returns whether clients of the other side can follow a redirect. Relative targets and targets at
/// the answering service itself are not usable.
pub fn is_usable_redirect(status: u16, answer: &HeaderMap, service: Option<&str>) -> bool {
    // 300 and 304 do not redirect.
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return true;
    }
    let location = answer.get(header::LOCATION).and_then(|location| location.to_str().ok());
    let place = location.and_then(|location| location.parse::<http::Uri>().ok());
    let host = place.as_ref().filter(|place| place.scheme().is_some()).and_then(http::Uri::host);
    host.is_some_and(|host| service.is_none_or(|service| !service.eq_ignore_ascii_case(host)))
}

/// Returns why a 206 is not a valid reply to a call, or `None` if the contract lists 206 or the
/// body is forwarded unchanged.
pub fn unlisted_part(status: u16, call: &CallHead) -> Option<&'static str> {
    (status == 206 && !call.partial)
        .then_some("a part (206) of what was asked for, and its contract lists none")
}

/// Describes a body by its media type, for the log.
pub fn body_type(headers: &HeaderMap) -> String {
    match media_type(headers) {
        None => "a body of no type".to_owned(),
        Some(named) => {
            let shown: String = named.chars().filter(char::is_ascii_graphic).take(SHOWN_BYTES_MAX).collect();
            format!("a body of type {shown}")
        }
    }
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let named = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(named.split(';').next().unwrap_or("").trim()).filter(|named| !named.is_empty())
}

/// Returns whether the first byte of a text can start JSON.
pub(super) fn begins_as_json(body: &[u8]) -> bool {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|byte| matches!(byte, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn typed(media_type: &'static str) -> HeaderMap {
        match media_type {
            "" => HeaderMap::new(),
            named => HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(named))]),
        }
    }

    #[test]
    fn a_success_is_one_by_its_type_and_by_its_body() {
        for (media_type, body, is_fit) in [
            ("application/json", "{}", true),
            ("application/json; charset=utf-8", " [1", true),
            ("application/problem+json", "{}", true),
            ("Application/JSON", "\u{feff}{}", true),
            ("application/json", "<html>", false),
            ("text/html", "<html>sign in</html>", false),
            ("text/html", "", true),
            ("text/html; charset=utf-8", r#"{"id":7}"#, true),
            ("text/own; v=2", r#"{"id":"#, true),
            ("text/plain", "OK", false),
            ("text/plain", "true", true),
            ("", "<html>", false),
            ("", r#"{"id":"#, true),
            ("", "OK", false),
        ] {
            let fit = foreign_success(&typed(media_type), &["text/own".into()], body.as_bytes()).is_none();
            assert_eq!(fit, is_fit, "{media_type:?} {body:?}");
        }
    }

    #[test]
    fn a_redirect_is_usable_where_it_leaves_the_service() {
        for (status, location, usable) in [
            (302, Some("https://files.test/a?sign=b"), true),
            (303, Some("https://API.test:8443/v3/a"), false),
            (307, Some("/v3/a"), false),
            (308, Some("a"), false),
            (301, None, false),
            (304, None, true),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(location) = location {
                headers.insert(header::LOCATION, location.parse().unwrap());
            }
            assert_eq!(
                is_usable_redirect(status, &headers, Some("api.test")),
                usable,
                "{status} {location:?}"
            );
        }
    }

    #[test]
    fn a_redirect_is_told_without_what_its_address_may_hold() {
        for (location, told) in [
            ("https://user:secret@api.test:8443/signin?token=secret", "https://api.test:8443:"),
            ("/signin?token=secret", "another path:"),
            ("", "nowhere"),
        ] {
            let mut headers = HeaderMap::new();
            if !location.is_empty() {
                headers.insert(header::LOCATION, HeaderValue::from_static(location));
            }
            let detail = redirect(301, &headers);
            assert!(detail.contains(told) && !detail.contains("secret"), "{detail}");
        }
    }
}
