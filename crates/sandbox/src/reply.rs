//! The result of a handler: a [`Reply`] with a serialized body, or a [`Failure`] whose text is
//! rendered later in the language of the request.

use super::reasons::{Expect, Lang, Reason, Thing};
use http::{Method, StatusCode};
use serde::Serialize;

/// A successful answer.
pub struct Reply {
    pub status: StatusCode,
    /// JSON, or empty: some successful answers have no body.
    pub body: Vec<u8>,
    /// The kind of resource in the body, for control rules; empty if there is none.
    pub resource: &'static str,
}

impl Reply {
    /// Creates an answer with an empty body.
    pub fn empty(status: StatusCode) -> Reply {
        Reply { status, body: Vec::new(), resource: "" }
    }

    /// Creates an answer with one resource, or with a list of resources of one kind.
    pub fn json<T: Serialize>(status: StatusCode, resource: &'static str, value: &T) -> Reply {
        let mut body = Vec::with_capacity(2048);
        serde_json::to_writer(&mut body, value)
            .expect("views hold only strings as keys, and a Vec takes every write");
        Reply { status, body, resource }
    }

    /// Creates a 200 with a body.
    pub fn ok<T: Serialize>(resource: &'static str, value: &T) -> Reply {
        Reply::json(StatusCode::OK, resource, value)
    }

    /// Creates a 200 without a body.
    pub fn done() -> Reply {
        Reply::empty(StatusCode::OK)
    }
}

/// A rejected request.
#[derive(Debug)]
pub struct Failure {
    pub status: StatusCode,
    pub reason: Reason,
    /// The methods that the path supports, if the method is wrong.
    pub allow: Vec<Method>,
}

impl Failure {
    pub fn new(status: StatusCode, reason: Reason) -> Failure {
        Failure { status, reason, allow: Vec::new() }
    }

    /// Creates a 400 for an invalid request.
    pub fn bad(reason: Reason) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, reason)
    }

    /// Creates a 404 for an unknown id.
    pub fn no(thing: Thing) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, Reason::NotFound(thing))
    }

    /// Creates a 400 for a field of the wrong JSON type.
    pub fn wrong_type(field: &'static str, expect: Expect) -> Failure {
        Failure::bad(Reason::WrongType(field, expect))
    }

    /// Serializes the documented `{reason}` object.
    pub fn body(&self, lang: Lang) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body {
            reason: String,
        }
        Reply::json(self.status, "", &Body { reason: self.reason.text(lang) }).body
    }
}

/// The result of a handler.
pub type Outcome = Result<Reply, Failure>;
