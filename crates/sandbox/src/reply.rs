//! What a handler gives back: a [`Reply`] with its bytes already written, or a [`Failure`] whose text is chosen later, when
//! the language of the request is known.

use super::reasons::{Expect, Lang, Reason, Thing};
use http::{Method, StatusCode};
use serde::Serialize;

/// A successful answer.
pub struct Reply {
    pub status: StatusCode,
    /// JSON, or nothing: some successful responses have an empty body.
    pub body: Vec<u8>,
    /// What the body shows, for control rules that change it on the way out; empty for none.
    pub resource: &'static str,
}

impl Reply {
    /// An answer with an empty body.
    pub fn empty(status: StatusCode) -> Reply {
        Reply { status, body: Vec::new(), resource: "" }
    }

    /// An answer that shows one thing or a list of things of a kind.
    pub fn json<T: Serialize>(status: StatusCode, resource: &'static str, value: &T) -> Reply {
        let mut body = Vec::with_capacity(2048);
        serde_json::to_writer(&mut body, value)
            .expect("views hold only strings as keys, and a Vec takes every write");
        Reply { status, body, resource }
    }

    /// 200 with a body.
    pub fn ok<T: Serialize>(resource: &'static str, value: &T) -> Reply {
        Reply::json(StatusCode::OK, resource, value)
    }

    /// 200 without a body.
    pub fn done() -> Reply {
        Reply::empty(StatusCode::OK)
    }
}

/// An answer that says why not.
#[derive(Debug)]
pub struct Failure {
    pub status: StatusCode,
    pub reason: Reason,
    /// The methods of the address, for a wrong method.
    pub allow: Vec<Method>,
}

impl Failure {
    pub fn new(status: StatusCode, reason: Reason) -> Failure {
        Failure { status, reason, allow: Vec::new() }
    }

    /// 400: not understood, or something required is missing.
    pub fn bad(reason: Reason) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, reason)
    }

    /// 404: nothing has that id.
    pub fn no(thing: Thing) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, Reason::NotFound(thing))
    }

    /// 400: a field has the wrong JSON type.
    pub fn mistyped(field: &'static str, expect: Expect) -> Failure {
        Failure::bad(Reason::WrongType(field, expect))
    }

    /// The `{reason}` object of the document.
    pub fn body(&self, lang: Lang) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body {
            reason: String,
        }
        Reply::json(self.status, "", &Body { reason: self.reason.text(lang) }).body
    }
}

/// What handlers return.
pub type Outcome = Result<Reply, Failure>;
