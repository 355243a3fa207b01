//! An HTTP answer before it is written: what every part of the sandbox gives to the connection, and what control may spoil.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::Serialize;

/// An answer.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// What the body shows, for control; empty for none.
    pub resource: &'static str,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

impl Answer {
    /// An answer without a body.
    pub fn empty(status: StatusCode) -> Answer {
        Answer { status, headers: HeaderMap::new(), body: Vec::new(), resource: "" }
    }

    /// An answer whose body is JSON already.
    pub fn json_bytes(status: StatusCode, body: Vec<u8>) -> Answer {
        Answer { body, ..Answer::empty(status) }.with(CONTENT_TYPE, JSON)
    }

    pub fn json<T: Serialize>(status: StatusCode, value: &T) -> Answer {
        let body = serde_json::to_vec(value)
            .expect("answers hold only strings as keys, and a Vec takes every write");
        Answer::json_bytes(status, body)
    }

    pub fn html(status: StatusCode, page: String) -> Answer {
        Answer { body: page.into_bytes(), ..Answer::empty(status) }.with(CONTENT_TYPE, HTML)
    }

    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Answer {
        self.headers.insert(name, value);
        self
    }
}
