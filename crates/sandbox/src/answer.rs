//! An HTTP answer before it is written. Every part of the sandbox produces it, and control rules
//! may modify it.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::Serialize;

/// An HTTP answer.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The kind of resource in the body, for control rules; empty if there is none.
    pub resource: &'static str,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

impl Answer {
    /// Creates an answer without a body.
    pub fn empty(status: StatusCode) -> Answer {
        Answer { status, headers: HeaderMap::new(), body: Vec::new(), resource: "" }
    }

    /// Creates an answer from serialized JSON.
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
