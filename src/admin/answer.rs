//! Responses of the admin port. All have headers that restrict their use by browsers.

use crate::operate::{Refusal, RefusalKind};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION, SET_COOKIE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use switchback_gateway::body::Body;

/// Allows only resources of the admin port itself: no inline scripts or styles, no frames, no other
/// origins.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                              form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The outcome of a request: `?` returns an error response early.
pub(crate) type Answer = Result<AdminResponse, AdminResponse>;

/// A response under construction.
pub(crate) struct AdminResponse {
    status: StatusCode,
    content_type: &'static str,
    body: ResponseContent,
    headers: Vec<(HeaderName, HeaderValue)>,
}

enum ResponseContent {
    Text(String),
    /// A streamed body of unknown length.
    Stream(Box<Body>),
}

impl AdminResponse {
    pub(crate) fn text(
        status: StatusCode,
        content_type: &'static str,
        body: impl Into<String>,
    ) -> AdminResponse {
        AdminResponse { status, content_type, body: ResponseContent::Text(body.into()), headers: Vec::new() }
    }

    pub(super) fn stream(status: StatusCode, content_type: &'static str, body: Body) -> AdminResponse {
        AdminResponse {
            status,
            content_type,
            body: ResponseContent::Stream(Box::new(body)),
            headers: Vec::new(),
        }
    }

    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> AdminResponse {
        let body =
            serde_json::to_string_pretty(value).expect("values here have text keys and finite numbers");
        AdminResponse::text(status, "application/json", body + "\n")
    }

    /// Builds a successful JSON response.
    pub(super) fn ok(value: &impl Serialize) -> Answer {
        Ok(AdminResponse::json(StatusCode::OK, value))
    }

    pub(crate) fn html(status: StatusCode, body: String) -> AdminResponse {
        AdminResponse::text(status, "text/html; charset=utf-8", body)
    }

    /// Redirects a browser to another path, which it requests with GET (303).
    pub(crate) fn see(path: &str) -> AdminResponse {
        let place = HeaderValue::try_from(path).unwrap_or_else(|_| HeaderValue::from_static("/"));
        AdminResponse::text(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "").header(LOCATION, place)
    }

    /// Builds an error response for operators and their tools.
    pub(crate) fn error(status: StatusCode, error: impl Into<String>) -> AdminResponse {
        AdminResponse::json(status, &json!({ "error": error.into() }))
    }

    pub(crate) fn with_header(self, name: &'static str, value: &'static str) -> AdminResponse {
        self.header(HeaderName::from_static(name), HeaderValue::from_static(value))
    }

    /// Sets a header. It replaces the default of that name.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> AdminResponse {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn cookie(self, cookie: &str) -> AdminResponse {
        let value = HeaderValue::try_from(cookie).expect("cookies are made of visible characters");
        self.header(SET_COOKIE, value)
    }

    /// Builds the HTTP response. A response to `HEAD` has the same headers and no body.
    pub(crate) fn into_response(self, is_head: bool) -> Response<Body> {
        let (length, body) = match self.body {
            ResponseContent::Text(text) => (Some(text.len()), Body::full(text)),
            ResponseContent::Stream(body) => (None, *body),
        };
        let body = if is_head { Body::empty() } else { body };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        for (name, value) in [
            ("content-security-policy", CONTENT_POLICY),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            // With `no-referrer`, browsers send `Origin: null` even to the same origin, and the
            // check of forms would fail.
            ("referrer-policy", "same-origin"),
            // Pages contain data about clients, which must not stay in caches after signing out.
            ("cache-control", "no-store"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        for (name, value) in self.headers {
            // Each cookie is a field of its own (RFC 6265, section 3).
            if name == SET_COOKIE {
                headers.append(name, value);
            } else {
                headers.insert(name, value);
            }
        }
        response
    }
}

impl<E> From<E> for AdminResponse
where
    Refusal: From<E>,
{
    fn from(error: E) -> AdminResponse {
        let refusal = Refusal::from(error);
        let status = match refusal.kind() {
            RefusalKind::Invalid => StatusCode::BAD_REQUEST,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Conflict | RefusalKind::Failed => StatusCode::CONFLICT,
            RefusalKind::StoreSettings | RefusalKind::Store => {
                // The cause is logged only: it may name hosts and tables of the database.
                tracing::error!(error = %refusal, "a request of the admin API failed in the store");
                return AdminResponse::error(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the store did not do it; the log says why",
                );
            }
        };
        AdminResponse::error(status, refusal.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_answer_has_the_head_of_the_get_answer() {
        let get = AdminResponse::error(StatusCode::NOT_FOUND, "x").into_response(false);
        let head = AdminResponse::error(StatusCode::NOT_FOUND, "x").into_response(true);
        assert_eq!(get.headers(), head.headers());
        assert!(head.body().is_empty() && !get.body().is_empty());
        let policy = get.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
    }
}
