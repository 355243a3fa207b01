//! Translates errors of the other side into errors that clients of the served side know.

use super::context::same;
use super::document::{Env, document};
use super::form;
use super::reply::{foreign_error, is_of_another};
use super::settings::Settings;
use super::text::{error_body, gateway_error, in_error_format};
use super::turn::{Failed, Reply};
use super::value::constant;
use crate::xml;
use http::{HeaderMap, HeaderValue, header};
use std::borrow::Cow;
use switchback_json::{Limits, Value};
use switchback_plan::{BodyFormat, FailurePlace, FailureRule, FailureTest, Form, Pack, SideId, ValueOp};

/// The client's answer to an error of the other side.
#[derive(Debug)]
pub struct ErrorAnswer {
    /// The body in the format of the served side.
    pub body: Vec<u8>,
    /// For the log: why the error is not part of the contract, so that the text is the gateway's.
    pub foreign: Option<String>,
}

/// Translates errors of the other side for clients of one side.
#[derive(Debug, Clone, Copy)]
pub struct ErrorTranslator<'p> {
    /// The pack.
    pub pack: &'p Pack,
    /// The side of the clients.
    pub served: SideId,
    /// The settings of the pack.
    pub settings: &'p Settings,
    /// The language of the client, as an index into those of the pack.
    pub language: usize,
    /// The limits for the body of the error.
    pub limits: &'p Limits,
}

impl ErrorTranslator<'_> {
    /// Returns the answer to an error: its body translated by `op` if the result conforms to the
    /// served contract, otherwise the gateway's text for the status. `declared` is the form of
    /// bodies that pass although they tell clients nothing (see [`switchback_plan::ErrorPlan`]).
    ///
    /// # Errors
    ///
    /// For a 401 that did not originate from the service itself: an intermediary rejected the
    /// gateway's credentials, which does not concern the client's.
    pub fn answer(
        &self,
        op: &ValueOp,
        declared: Option<&Form>,
        reply: &Reply,
    ) -> Result<ErrorAnswer, Failed> {
        let reply = &*self.decoded(reply);
        let mut out = Vec::new();
        let translated = document(op, &reply.body, &Env::new(self.settings), self.limits, &mut out);
        let style = &self.pack.errors[self.served];
        let is_error = |value: &Value| {
            let is_something = match value {
                Value::Object(members) => !members.is_empty(),
                Value::Array(elements) => !elements.is_empty(),
                _ => false,
            };
            is_something && style.form.as_ref().is_none_or(|form| form::fits(value, form))
        };
        let passes = |value: &Value| is_error(value) || declared.is_some_and(|form| form::fits(value, form));
        if translated.is_ok() && Value::parse(&out, &Limits::UNLIMITED).is_ok_and(|value| passes(&value)) {
            return Ok(ErrorAnswer { body: in_error_format(style, out), foreign: None });
        }
        let foreign = foreign_error(reply.status, &reply.headers, &reply.body);
        let is_of_another = is_of_another(reply, &self.pack.json_types);
        if is_of_another && reply.status == 401 {
            return Err(Failed::broken(foreign));
        }
        let kind = if is_of_another { kind_of_foreign(reply.status) } else { kind_of_status(reply.status) };
        let (_, text) = gateway_error(self.pack, self.served, kind, self.language);
        Ok(ErrorAnswer { body: error_body(style, kind, reply.status, &text), foreign: Some(foreign) })
    }

    /// Converts an error in XML to JSON. Another text, such as a page of an intermediary, is not of
    /// the contract's layout and remains unchanged.
    fn decoded<'r>(&self, reply: &'r Reply) -> Cow<'r, Reply> {
        let format = self.pack.errors[self.served.other()].xml.as_ref();
        let format = format.filter(|_| xml::begins_as_xml(&reply.body));
        match format.map(|format| xml::decode(format, &reply.body, self.limits)) {
            Some(Ok(json)) => {
                let mut headers = reply.headers.clone();
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(BodyFormat::JSON));
                Cow::Owned(Reply { status: reply.status, headers, body: json.into() })
            }
            Some(Err(_)) | None => Cow::Borrowed(reply),
        }
    }
}

/// Returns the gateway error whose text fits best for a status of the pack or of the service.
pub(super) fn kind_of_status(status: u16) -> &'static str {
    match status {
        401 => "unknown_token",
        405 => "wrong_method",
        // A check that answers with a success signals its error by the body alone.
        200..=299 => "bad_request",
        400..=499 if !matches!(status, 404 | 413) => "bad_request",
        _ => kind_of_foreign(status),
    }
}

/// Returns the gateway error whose text fits best for an error outside the contract. It originates
/// from an intermediary, so it only indicates that the request was refused.
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

/// Returns the failure status of a success that one of the rules classifies as a failure. `body` is
/// the complete body without content coding. A body that is not JSON has no places to test.
pub fn failure_status(rules: &[FailureRule], headers: &HeaderMap, body: &[u8]) -> Option<u16> {
    if rules.is_empty() {
        return None;
    }
    // Some services send a byte order mark, which JSON does not permit (RFC 8259, section 8.1).
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
