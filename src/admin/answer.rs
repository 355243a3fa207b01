//! Answers of the admin port, all with the headers that keep a browser from doing more with them than showing them.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use switchback_gateway::body::Body;

/// No script, no frames, no forms, nothing from elsewhere; the one style sheet is ours.
const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// An answer before it is sent.
pub(super) struct Answer {
    status: StatusCode,
    content_type: &'static str,
    body: Content,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What an answer says.
enum Content {
    Text(String),
    /// Written while it is read; of no length known before.
    Stream(Box<Body>),
}

impl Answer {
    pub(super) fn text(status: StatusCode, content_type: &'static str, body: impl Into<String>) -> Answer {
        Answer { status, content_type, body: Content::Text(body.into()), headers: Vec::new() }
    }

    /// An answer that is written while it is read.
    pub(super) fn stream(status: StatusCode, content_type: &'static str, body: Body) -> Answer {
        Answer { status, content_type, body: Content::Stream(Box::new(body)), headers: Vec::new() }
    }

    pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
        let body =
            serde_json::to_string_pretty(value).expect("values here have text keys and finite numbers");
        Answer::text(status, "application/json", body + "\n")
    }

    pub(super) fn html(status: StatusCode, body: String) -> Answer {
        Answer::text(status, "text/html; charset=utf-8", body)
    }

    /// An error for operators and their tools.
    pub(super) fn error(status: StatusCode, error: impl Into<String>) -> Answer {
        Answer::json(status, &json!({ "error": error.into() }))
    }

    pub(super) fn with_header(mut self, name: &'static str, value: &'static str) -> Answer {
        self.headers.push((HeaderName::from_static(name), HeaderValue::from_static(value)));
        self
    }

    /// The response; without its body to a `HEAD`, whose head is the same.
    pub(super) fn into_response(self, is_head: bool) -> Response<Body> {
        let (length, body) = match self.body {
            Content::Text(text) => (Some(text.len()), Body::full(text)),
            Content::Stream(body) => (None, *body),
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
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.extend(self.headers);
        response
    }
}

/// A text of several lines as it may stand in HTML, in an element that shows lines as they are.
pub(super) fn escape_lines(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

/// A text as it may stand in HTML, between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place_in_a_page() {
        assert_eq!(
            escape("<script>alert('1')</script> & \" onload=\u{0}"),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot; onload=\u{fffd}"
        );
        assert_eq!(escape_lines("a: 1\n  <b>\r\n\u{1b}c\n"), "a: 1\n  &lt;b&gt;\n\u{fffd}c");
    }

    #[test]
    fn a_head_answer_has_the_head_of_the_get_answer() {
        let get = Answer::error(StatusCode::NOT_FOUND, "x").into_response(false);
        let head = Answer::error(StatusCode::NOT_FOUND, "x").into_response(true);
        assert_eq!(get.headers(), head.headers());
        assert!(head.body().is_empty() && !get.body().is_empty());
        let policy = get.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("script-src"));
    }
}
