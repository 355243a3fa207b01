//! Error answers of the other side, as clients of the served side know them.

use super::document::{Env, document};
use super::form;
use super::settings::Settings;
use super::text::gateway_error;
use switchback_json::{Limits, Value};
use switchback_plan::{Pack, SideId, ValueOp};

/// The body of the answer to an error of the other side: its own body through `op` where that gives an error as the served
/// contract has it, else the gateway's words for the status in the pack's form.
#[allow(clippy::too_many_arguments)]
pub fn error_answer(
    pack: &Pack,
    served: SideId,
    op: &ValueOp,
    settings: &Settings,
    language: usize,
    limits: &Limits,
    status: u16,
    body: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    let translated = document(op, body, &Env::of(settings), limits, &mut out);
    let form = pack.errors.forms[usize::from(served.0)].as_ref();
    let says_something = |json: &[u8]| {
        let value = Value::parse(json, &Limits::UNLIMITED);
        value.is_ok_and(|value| {
            let is_something = value.as_object().is_some_and(|members| !members.is_empty());
            is_something && form.is_none_or(|form| form::fits(&value, form))
        })
    };
    if translated.is_ok() && says_something(&out) {
        return out;
    }
    let kind = kind_of_status(status);
    let (_, text) = gateway_error(pack, kind, language);
    pack.errors.body(kind, status, &text)
}

/// The kind of gateway error whose words fit a status best.
pub(super) fn kind_of_status(status: u16) -> &'static str {
    match status {
        401 => "unknown_token",
        404 => "not_found",
        405 => "wrong_method",
        413 => "too_large",
        400..=499 => "bad_request",
        503 => "overloaded",
        504 => "upstream_timeout",
        _ => "upstream_broken",
    }
}
