//! Cross-origin access of pages to a front, after the Fetch Standard, "CORS protocol": the permitted
//! origins, responses to preflights, and the fields of all other responses. The layer `validate`
//! answers preflights, the layer `front_fields` sets the fields.
//!
//! `tower-http` has a layer for this. It is not used, because the front of a request is found far
//! inside the stack, and because that layer answers every `OPTIONS` and leaves the fields of a
//! service in responses to other origins.

use crate::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The pages that may read the responses of a front, and the permitted contents of their requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsSettings {
    /// The permitted origins.
    pub origins: Vec<AllowedOrigin>,
    /// The methods that preflights permit.
    pub methods: Vec<Method>,
    /// The request header fields that preflights permit; `None`: those that the preflight names.
    pub headers: Option<Vec<HeaderName>>,
    /// The response header fields that scripts may read, besides those that they always may.
    pub exposed: Vec<HeaderName>,
    /// Whether requests may carry cookies and other credentials of the browser.
    pub credentials: bool,
    /// How long a browser may cache the response to a preflight; `None`: as long as it likes.
    pub max_age: Option<Duration>,
}

/// The origins that one entry of a list permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedOrigin {
    /// Every origin.
    Any,
    /// One origin as browsers write it: `https://app.example.com`.
    Exact(String),
    /// The subdomains of a host, at any depth: `https://*.example.com`.
    Subdomains {
        /// Up to the asterisk.
        start: String,
        /// After the asterisk, from the dot on.
        end: String,
    },
}

/// A text that is no origin; the message states the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OriginError(&'static str);

impl FromStr for AllowedOrigin {
    type Err = OriginError;

    /// Parses the form that browsers send, because origins are compared byte by byte (Fetch Standard,
    /// "CORS check").
    fn from_str(text: &str) -> Result<AllowedOrigin, OriginError> {
        const EXPECTED: OriginError =
            OriginError("expected an origin such as `https://app.example.com` or `https://*.example.com`");
        if text == "*" {
            return Ok(AllowedOrigin::Any);
        }
        if text == "null" {
            return Err(OriginError("`null` is the origin of any sandboxed page or file; name the origins"));
        }
        let (scheme, authority) = text.split_once("://").ok_or(EXPECTED)?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b));
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(OriginError("browsers send origins in lower case"));
        }
        if authority.contains(['/', '?', '#']) {
            return Err(OriginError("an origin ends with its host or port, without a slash or path"));
        }
        if !text.is_ascii() {
            return Err(OriginError("browsers send host names in their ASCII form (`xn--…`)"));
        }
        // The digits after the last colon, unless that belongs to an IPv6 address.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if matches!((scheme, port), ("https", Some("443")) | ("http", Some("80"))) {
            return Err(OriginError("browsers leave out the default port of the scheme"));
        }
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok() && !port.starts_with(['0', '+']));
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_address = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
        if !is_scheme || !is_port || name.is_empty() || !(is_address || name.bytes().all(is_host_byte)) {
            return Err(EXPECTED);
        }
        Ok(match text.split_once('*') {
            Some((start, end)) => AllowedOrigin::Subdomains { start: start.to_owned(), end: end.to_owned() },
            None => AllowedOrigin::Exact(text.to_owned()),
        })
    }
}

impl fmt::Display for AllowedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowedOrigin::Any => f.write_str("*"),
            AllowedOrigin::Exact(origin) => f.write_str(origin),
            AllowedOrigin::Subdomains { start, end } => write!(f, "{start}*{end}"),
        }
    }
}

impl AllowedOrigin {
    fn permits(&self, origin: &str) -> bool {
        match self {
            AllowedOrigin::Any => true,
            AllowedOrigin::Exact(exact) => exact == origin,
            AllowedOrigin::Subdomains { start, end } => origin
                .strip_prefix(start.as_str())
                .and_then(|rest| rest.strip_suffix(end.as_str()))
                // Only a name: a port or a path before the suffix would be another host.
                .is_some_and(|name| !name.is_empty() && name.bytes().all(is_host_byte)),
        }
    }
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte)
}

/// Returns whether an `OPTIONS` request is a preflight (Fetch Standard, "CORS-preflight request").
pub(crate) fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The policy of a front, with the values of its fields.
#[derive(Clone, Debug)]
pub struct Cors {
    origins: Vec<AllowedOrigin>,
    methods: HeaderValue,
    /// `None`: as requested.
    headers: Option<HeaderValue>,
    exposed: Option<HeaderValue>,
    credentials: bool,
    max_age: Option<HeaderValue>,
}

impl Cors {
    /// Builds the policy from its settings.
    pub fn new(settings: &CorsSettings) -> Cors {
        Cors {
            origins: settings.origins.clone(),
            methods: list(settings.methods.iter().map(Method::as_str)),
            headers: settings.headers.as_ref().map(|names| list(names.iter().map(HeaderName::as_str))),
            exposed: (!settings.exposed.is_empty())
                .then(|| list(settings.exposed.iter().map(HeaderName::as_str))),
            credentials: settings.credentials,
            max_age: settings.max_age.map(|max_age| HeaderValue::from(max_age.as_secs())),
        }
    }

    /// Sets the fields of a response and removes those that a service has set: pages trust the
    /// gateway's address, and its policy replaces that of the service.
    pub(crate) fn set_fields(&self, request: &HeaderMap, headers: &mut HeaderMap) {
        headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN);
        headers.remove(ACCESS_CONTROL_ALLOW_CREDENTIALS);
        headers.remove(ACCESS_CONTROL_EXPOSE_HEADERS);
        // A cache must not serve the response for one origin to another. This holds for requests
        // without an origin too (Fetch Standard, "CORS protocol and HTTP caches").
        if !self.permits_any() {
            add_vary(headers);
        }
        let Some(origin) = self.permitted(request) else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if self.credentials {
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        if let Some(exposed) = &self.exposed {
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed.clone());
        }
    }

    fn permits_any(&self) -> bool {
        self.origins.contains(&AllowedOrigin::Any)
    }

    /// Returns the value of `Access-Control-Allow-Origin`, if the origin is permitted.
    fn permitted(&self, request: &HeaderMap) -> Option<HeaderValue> {
        if self.permits_any() {
            return Some(HeaderValue::from_static("*"));
        }
        let origin = request.get(ORIGIN)?;
        let text = origin.to_str().ok()?;
        self.origins.iter().any(|allowed| allowed.permits(text)).then(|| origin.clone())
    }

    /// Builds the response to a preflight, without the fields of [`Cors::set_fields`]. The browser
    /// decides: without permissions, it reports an error to the page.
    pub(crate) fn preflight(&self, request: &HeaderMap) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        if self.permitted(request).is_none() {
            return response;
        }
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, self.methods.clone());
        match &self.headers {
            Some(named) => {
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, named.clone());
            }
            None => {
                for requested in request.get_all(ACCESS_CONTROL_REQUEST_HEADERS) {
                    headers.append(ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
                }
            }
        }
        if let Some(max_age) = &self.max_age {
            headers.insert(ACCESS_CONTROL_MAX_AGE, max_age.clone());
        }
        response
    }
}

/// Adds `Origin` to `Vary`, unless it is there.
fn add_vary(headers: &mut HeaderMap) {
    let is_named = |value: &HeaderValue| {
        let names = value.to_str().unwrap_or_default().split(',').map(str::trim);
        names.into_iter().any(|name| name == "*" || name.eq_ignore_ascii_case("origin"))
    };
    if !headers.get_all(VARY).iter().any(is_named) {
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> HeaderValue {
    let text = names.collect::<Vec<_>>().join(", ");
    HeaderValue::try_from(text).expect("methods and names of fields are tokens")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_with_the_form_that_browsers_send() {
        for (allowed, origin, is_permitted) in [
            ("*", "https://any.example", true),
            ("https://app.example.com", "https://app.example.com", true),
            ("https://app.example.com", "https://app.example.com:8443", false),
            ("https://app.example.com", "http://app.example.com", false),
            ("https://app.example.com", "https://app.example.com.evil.example", false),
            ("https://*.example.com", "https://a.example.com", true),
            ("https://*.example.com", "https://a.b-c.example.com", true),
            ("https://*.example.com", "https://example.com", false),
            ("https://*.example.com", "https://.example.com", false),
            ("https://*.example.com", "https://evilexample.com", false),
            ("https://*.example.com", "https://evil.example/.example.com", false),
            ("https://*.example.com", "https://evil.example:1.example.com", false),
            ("https://*.example.com:8443", "https://a.example.com:8443", true),
            ("https://*.example.com", "https://a.example.com:8443", false),
            ("http://[::1]:3000", "http://[::1]:3000", true),
            ("app://desk", "app://desk", true),
        ] {
            let parsed: AllowedOrigin = allowed.parse().unwrap_or_else(|error| panic!("{allowed}: {error}"));
            assert_eq!(parsed.permits(origin), is_permitted, "{allowed} and {origin}");
            assert_eq!(parsed.to_string(), allowed);
        }
    }

    #[test]
    fn an_origin_that_no_browser_sends_is_no_setting() {
        for text in [
            "",
            "null",
            "app.example.com",
            "https://",
            "https://app.example.com/",
            "https://app.example.com/path",
            "https://App.example.com",
            "https://app.example.com:443",
            "http://app.example.com:80",
            "https://app.example.com:0x1",
            "https://app.example.com:08443",
            "https://user@app.example.com",
            "https://bücher.example",
            "https://*",
            "https://a.*.example.com",
            "https://*.*.example.com",
            "https://[::g]",
            "HTTPS://app.example.com",
        ] {
            assert!(text.parse::<AllowedOrigin>().is_err(), "{text}");
        }
    }
}
