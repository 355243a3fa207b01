//! Error answers of the other side, as clients of the served side know them.

use super::document::{Env, document};
use super::form;
use super::reply::{foreign_error, is_of_another};
use super::settings::Settings;
use super::text::gateway_error;
use super::turn::Reply;
use switchback_json::{Limits, Value};
use switchback_plan::{Pack, SideId, ValueOp};

/// What the client gets for an error of the other side.
#[derive(Debug)]
pub struct ErrorAnswer {
    pub body: Vec<u8>,
    /// For the log: why the error is not one of the contract, and its words are ours.
    pub foreign: Option<String>,
}

/// The answer to an error of the other side: its own body through `op` where that gives an error as the served contract has
/// it, else the gateway's words for the status in the pack's form. The error is for the log: what refuses the gateway's
/// credentials, and is not the service, says nothing of the client's.
pub fn error_answer(
    pack: &Pack,
    served: SideId,
    op: &ValueOp,
    settings: &Settings,
    language: usize,
    limits: &Limits,
    reply: &Reply,
) -> Result<ErrorAnswer, String> {
    let mut out = Vec::new();
    let translated = document(op, &reply.body, &Env::of(settings), limits, &mut out);
    let form = pack.errors.forms[served].as_ref();
    let says_something = |json: &[u8]| {
        let value = Value::parse(json, &Limits::UNLIMITED);
        value.is_ok_and(|value| {
            let is_something = value.as_object().is_some_and(|members| !members.is_empty());
            is_something && form.is_none_or(|form| form::fits(&value, form))
        })
    };
    if translated.is_ok() && says_something(&out) {
        return Ok(ErrorAnswer { body: out, foreign: None });
    }
    let foreign = foreign_error(reply.status, &reply.headers, &reply.body);
    let is_of_another = is_of_another(reply);
    if is_of_another && reply.status == 401 {
        return Err(foreign);
    }
    let kind = if is_of_another { kind_of_foreign(reply.status) } else { kind_of_status(reply.status) };
    let (_, text) = gateway_error(pack, kind, language);
    Ok(ErrorAnswer { body: pack.errors.body(kind, reply.status, &text), foreign: Some(foreign) })
}

/// The kind of gateway error whose words fit a status best that the pack gives, or the service.
pub(super) fn kind_of_status(status: u16) -> &'static str {
    match status {
        401 => "unknown_token",
        405 => "wrong_method",
        400..=499 if !matches!(status, 404 | 413) => "bad_request",
        _ => kind_of_foreign(status),
    }
}

/// The kind of gateway error whose words fit an error best that the contract does not know: whatever stands before the service
/// made it, and of the client's request it says no more than that it was refused.
fn kind_of_foreign(status: u16) -> &'static str {
    match status {
        404 => "not_found",
        413 => "too_large",
        429 | 503 => "overloaded",
        400..=499 => "upstream_refused",
        504 => "upstream_timeout",
        _ => "upstream_broken",
    }
}
