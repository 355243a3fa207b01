//! A row of the table of paths ([`super::routes`]).

use super::AdminParts;
use super::answer::Answer;
use futures_util::future::BoxFuture;
use http::{Method, Request};
use schemars::{Schema, SchemaGenerator};
use std::sync::Arc;
use switchback_gateway::body::Body;

/// A path of the admin port with one of its methods.
#[derive(Clone, Copy)]
pub struct AdminRoute {
    /// `GET`, which includes `HEAD`, or `POST`.
    pub method: &'static str,
    /// A template, such as `/api/clients/{name}/rotate`, with at most one variable.
    pub path: &'static str,
    pub(super) about: &'static str,
    /// Parameters of the query.
    pub(super) query: &'static [QueryParameter],
    /// The schema of the request body. `None` on a `POST`: the empty object.
    pub(super) body: Option<BodySchema>,
    /// The status of success, and its content.
    pub(super) answer: (u16, AnswerContent),
    /// Statuses of errors, in addition to those of all routes.
    pub(super) errors: &'static [u16],
    /// The kind of the history entry (`transition`: recorded among the transitions). `None`: the
    /// call has no effect.
    pub history: Option<&'static str>,
    pub(super) run: Handler,
}

/// A parameter of a query.
#[derive(Clone, Copy)]
pub(super) struct QueryParameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Its schema, as JSON.
    pub(super) schema: &'static str,
}

/// The content of a successful response.
#[derive(Clone, Copy)]
pub(super) enum AnswerContent {
    /// JSON with a schema of `schemas.json`.
    Json(&'static str),
    /// Text of a media type.
    Text(&'static str),
}

pub(super) type BodySchema = fn(&mut SchemaGenerator) -> Schema;

/// The program part that runs a call.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    Admin(for<'c> fn(AdminCall<'c>) -> BoxFuture<'c, Answer>),
    /// The studio has the data of several pages.
    Studio,
}

/// A request that matches a route.
pub(super) struct AdminCall<'c> {
    pub(super) parts: &'c Arc<AdminParts>,
    /// The variable of the path, or empty.
    pub(super) id: &'c str,
    pub(super) query: &'c str,
    /// The author of changes.
    pub(super) by: &'c str,
    pub(super) request: Request<Body>,
}

pub(super) const fn get(
    path: &'static str,
    about: &'static str,
    content: AnswerContent,
    run: Handler,
) -> AdminRoute {
    let (query, errors): (&[QueryParameter], &[u16]) = (&[], &[]);
    AdminRoute {
        method: "GET",
        path,
        about,
        query,
        body: None,
        answer: (200, content),
        errors,
        history: None,
        run,
    }
}

pub(super) const fn post(
    path: &'static str,
    about: &'static str,
    answer: (u16, &'static str),
    run: Handler,
) -> AdminRoute {
    let answer = (answer.0, AnswerContent::Json(answer.1));
    AdminRoute { method: "POST", answer, ..get(path, about, answer.1, run) }
}

impl AdminRoute {
    pub(super) const fn query(self, query: &'static [QueryParameter]) -> AdminRoute {
        AdminRoute { query, ..self }
    }

    pub(super) const fn body(self, body: BodySchema) -> AdminRoute {
        AdminRoute { body: Some(body), ..self }
    }

    pub(super) const fn errors(self, errors: &'static [u16]) -> AdminRoute {
        AdminRoute { errors, ..self }
    }

    pub(super) const fn history(self, kind: &'static str) -> AdminRoute {
        AdminRoute { history: Some(kind), ..self }
    }

    /// Returns the variable of the path if the path matches; empty for a path without one.
    pub(super) fn matches<'p>(&self, path: &'p str) -> Option<&'p str> {
        let mut id = "";
        let (mut pattern, mut segments) = (self.path.split('/'), path.split('/'));
        loop {
            match (pattern.next(), segments.next()) {
                (None, None) => return Some(id),
                (Some(part), Some(segment)) if part.starts_with('{') && !segment.is_empty() => id = segment,
                (Some(part), Some(segment)) if part == segment => {}
                _ => return None,
            }
        }
    }

    pub(super) fn takes(&self, method: &Method) -> bool {
        // The callback consumes a code, which a safe method must not do (RFC 9110, section 9.2.1),
        // and link checkers send HEAD. GET is unavoidable: OAuth redirects use it.
        let is_head = *method == Method::HEAD && self.method == "GET" && self.path != "/oauth/callback";
        method.as_str() == self.method || is_head
    }
}
