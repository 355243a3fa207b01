//! Response headers that announce the end of a side: `Deprecation` (RFC 9745), `Sunset` (RFC 8594)
//! and `Link` to the policy and the successor.

use crate::config::Sunset;
use http::header::LINK;
use http::{HeaderName, HeaderValue};
use std::time::{Duration, UNIX_EPOCH};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");
/// Unix time of the year 10000, the first that an HTTP date cannot represent.
const HTTP_DATE_END: u64 = 253_402_300_800;

/// Returns the header fields of a side. Omits a sunset before 1970 or after 9999, which an HTTP
/// date cannot represent.
pub(super) fn fields(sunset: &Sunset) -> Vec<(HeaderName, HeaderValue)> {
    let mut fields = Vec::new();
    if let Some(at) = &sunset.deprecated {
        // A structured field of the type Date (RFC 9651, section 3.3.7), unlike `Sunset`, which is an HTTP
        // date.
        fields.push((DEPRECATION, format!("@{}", at.0.unix_timestamp())));
    }
    let seconds = sunset.sunset.and_then(|at| u64::try_from(at.0.unix_timestamp()).ok());
    if let Some(seconds) = seconds.filter(|seconds| *seconds < HTTP_DATE_END) {
        fields.push((SUNSET, httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))));
    }
    // The same page under both relations: clients may know either RFC.
    for relation in ["deprecation", "sunset"] {
        fields.extend(sunset.policy.iter().map(|url| (LINK, format!("<{url}>; rel=\"{relation}\""))));
    }
    fields.extend(sunset.successor.iter().map(|url| (LINK, format!("<{url}>; rel=\"successor-version\""))));
    fields.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Placed;
    use switchback_compiler::diagnostic::Span;

    fn lines(deprecated: Option<&str>, sunset: Option<&str>, url: Option<&str>) -> Vec<String> {
        let moment = |text: &str| text.parse().expect("a moment");
        let url = |path: &str| url.map(|url| format!("{url}/{path}").parse().expect("a URL"));
        let sunset = Sunset {
            side: Placed { value: "old".to_owned(), span: Span::default() },
            deprecated: deprecated.map(moment),
            sunset: sunset.map(moment),
            policy: url("why"),
            successor: url("new"),
        };
        let line =
            |(name, value): &(HeaderName, HeaderValue)| format!("{name}: {}", value.to_str().expect("ASCII"));
        fields(&sunset).iter().map(line).collect()
    }

    #[test]
    fn dates_are_written_as_their_two_documents_say() {
        assert_eq!(
            lines(Some("2026-01-01"), Some("2026-12-31T23:59:59+01:00"), Some("https://a.example")),
            [
                "deprecation: @1767225600",
                "sunset: Thu, 31 Dec 2026 22:59:59 GMT",
                "link: <https://a.example/why>; rel=\"deprecation\"",
                "link: <https://a.example/why>; rel=\"sunset\"",
                "link: <https://a.example/new>; rel=\"successor-version\"",
            ]
        );
    }

    #[test]
    fn a_date_that_the_field_cannot_carry_is_left_out() {
        for sunset in ["1960-01-01", "9999-12-31T23:00:00-05:00"] {
            assert_eq!(lines(None, Some(sunset), None), Vec::<String>::new());
        }
        assert_eq!(lines(Some("1969-12-31T23:59:59Z"), None, None), ["deprecation: @-1"]);
    }
}
