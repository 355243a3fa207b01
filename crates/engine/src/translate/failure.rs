//! Error answers of the other side, as clients of the served side know them.

use super::context::same;
use super::document::{Env, document};
use super::form;
use super::reply::{foreign_error, is_of_another};
use super::settings::Settings;
use super::text::gateway_error;
use super::turn::Reply;
use super::value::constant;
use http::HeaderMap;
use switchback_json::{Limits, Value};
use switchback_plan::{FailurePlace, FailureRule, FailureTest, Pack, SideId, ValueOp};

/// What the client gets for an error of the other side.
#[derive(Debug)]
pub struct ErrorAnswer {
    /// JSON text in the served side's form.
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
    let form = pack.errors[served].form.as_ref();
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
    let (_, text) = gateway_error(pack, served, kind, language);
    Ok(ErrorAnswer { body: pack.errors[served].body(kind, reply.status, &text), foreign: Some(foreign) })
}

/// The kind of gateway error whose words fit a status best that the pack gives, or the service.
pub(super) fn kind_of_status(status: u16) -> &'static str {
    match status {
        401 => "unknown_token",
        405 => "wrong_method",
        // A check that is answered with a success tells its error by the body alone.
        200..=299 => "bad_request",
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

/// The status that a success is read as, where one of the rules says that it is a failure. `body` is the whole body, without a
/// content coding; one that is no JSON has no places.
pub fn failure_status(rules: &[FailureRule], headers: &HeaderMap, body: &[u8]) -> Option<u16> {
    if rules.is_empty() {
        return None;
    }
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let body = Value::parse(text, &Limits::DOCUMENT).ok();
    let holds = |rule: &&FailureRule| rule.when.iter().all(|test| test_holds(test, headers, body.as_ref()));
    rules.iter().find(holds).map(|rule| rule.status)
}

fn test_holds(test: &FailureTest, headers: &HeaderMap, body: Option<&Value>) -> bool {
    let is_one = |value: &Value| test.values.iter().any(|raw| same(value, &constant(raw)));
    match &test.place {
        FailurePlace::Header(name) => {
            let values = headers.get_all(name.as_str()).iter().filter_map(|value| value.to_str().ok());
            values.map(Value::string).any(|value| is_one(&value))
        }
        FailurePlace::Body(names) => {
            let member = |value: Option<&Value>, name: &str| value?.as_object()?.get(name).cloned();
            let mut at = body.cloned();
            for name in names {
                at = member(at.as_ref(), name);
            }
            at.as_ref().is_some_and(is_one)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use switchback_plan::Origin;

    fn rule(place: FailurePlace, values: &[&str], status: u16) -> FailureRule {
        let values = values.iter().map(|json| json.as_bytes().into()).collect();
        let origin = Origin { file: "pack.yaml".into(), line: 1 };
        FailureRule { when: vec![FailureTest { place, values }], status, origin }
    }

    #[test]
    fn a_success_is_a_failure_where_a_place_says_so_and_only_where_it_is_there() {
        let rules = [
            rule(FailurePlace::Body(vec!["error".into(), "code".into()]), &["\"expired\"", "7"], 401),
            rule(FailurePlace::Body(vec!["ok".into()]), &["false"], 400),
            rule(FailurePlace::Header("x-state".into()), &["\"busy\""], 503),
        ];
        let busy = HeaderMap::from_iter([("x-state".parse().unwrap(), HeaderValue::from_static("busy"))]);
        let none = HeaderMap::new();
        for (headers, body, status) in [
            (&none, r#"{"ok":false,"error":{"code":"expired"}}"#, Some(401)),
            (&none, r#"{"ok":false,"error":{"code":7.0}}"#, Some(401)),
            (&none, "\u{feff}{\"ok\": false}", Some(400)),
            (&none, r#"{"ok":true,"error":{"code":"other"}}"#, None),
            (&none, r#"{"ok":"false"}"#, None),
            (&none, r#"{"things":[]}"#, None),
            (&none, "[false]", None),
            (&none, "<html>", None),
            (&none, "", None),
            (&busy, "", Some(503)),
            (&busy, r#"{"ok":false}"#, Some(400)),
        ] {
            assert_eq!(failure_status(&rules, headers, body.as_bytes()), status, "{body}");
        }
    }
}
