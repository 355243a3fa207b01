//! Checks a call against the contract of its target side: path, query and body.

use super::{Contract, OpKey, Operation, Parameter, ParameterForm, ScalarKind, TypeKind, Types, breaches};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use switchback_json::{Limits, Number, Value};
use switchback_plan::Message;

/// Returns the violations of the contract by a call, as sentences that contain no value.
/// `operation` is the contract's key; `target` is the path and query below the base URL.
pub fn call_breaches(contract: &Contract, operation: &str, target: &str, body: Option<&[u8]>) -> Vec<String> {
    let found = OpKey::parse(operation).ok().and_then(|key| contract.find(&key));
    let Some(operation) = found else { return vec!["the contract has no such operation".to_owned()] };
    let mut said = query_breaches(&contract.types, operation, target);
    said.extend(body_breaches(&contract.types, operation, body));
    said
}

fn body_breaches(types: &Types, operation: &Operation, body: Option<&[u8]>) -> Vec<String> {
    match (&operation.body, body) {
        (None, None) => Vec::new(),
        (None, Some(_)) => vec!["a body is sent and none is taken".to_owned()],
        (Some(wanted), None) if wanted.required => vec!["the body is required and missing".to_owned()],
        (Some(_), None) => Vec::new(),
        // The gateway derives forms from the contract, and opaque bytes are not inspected.
        (Some(wanted), Some(_)) if !wanted.media.is_json() => Vec::new(),
        (Some(wanted), Some(text)) => match Value::parse(text, &Limits::DOCUMENT) {
            Err(_) => vec!["the body is not JSON".to_owned()],
            Ok(value) => {
                let found = breaches(types, &wanted.ty, &value, Some(Message::Request));
                found.iter().map(ToString::to_string).collect()
            }
        },
    }
}

/// Returns the declared query parameters with values that do not match their types.
pub fn parameter_breaches(types: &Types, operation: &Operation, target: &str) -> Vec<String> {
    let given = query_pairs(target);
    let is_wrong = |parameter: &&Parameter| {
        let mut values = given.iter().filter(|(name, _)| *name == parameter.name);
        values.any(|(_, value)| !fits(types, parameter, value))
    };
    let wrong = operation.query.iter().filter(is_wrong);
    wrong.map(|parameter| format!("the parameter `{}` is not what it should be", parameter.name)).collect()
}

/// Returns the names and values of the query parameters.
fn query_pairs(target: &str) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(parameter).collect()
}

fn query_breaches(types: &Types, operation: &Operation, target: &str) -> Vec<String> {
    let given = query_pairs(target);
    let mut said = parameter_breaches(types, operation, target);
    // A field of a deep object is written `name[field]`.
    let is_of = |parameter: &Parameter, name: &str| match name.strip_prefix(parameter.name.as_str()) {
        Some("") => true,
        Some(rest) => parameter.form == ParameterForm::Deep && rest.starts_with('['),
        None => false,
    };
    for parameter in &operation.query {
        if parameter.required && !given.iter().any(|(name, _)| is_of(parameter, name)) {
            said.push(format!("the parameter `{}` is required and missing", parameter.name));
        }
    }
    let unknown = given.iter().filter(|(name, _)| !operation.query.iter().any(|one| is_of(one, name)));
    said.extend(unknown.map(|(name, _)| format!("the parameter `{name}` is not known")));
    said
}

/// Decodes a parameter of a query. Returns `None` if it is not UTF-8 or has no name.
fn parameter(pair: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let decoded = |text| percent_decode_str(text).decode_utf8().ok();
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (!name.is_empty()).then_some(())?;
    Some((decoded(name)?, decoded(value)?))
}

/// Returns whether the text of a parameter is a value of its type.
fn fits(types: &Types, parameter: &Parameter, text: &str) -> bool {
    let kind = match types.resolve(&parameter.ty).kind {
        TypeKind::Scalar(scalar) => scalar.kind,
        // Lists and objects have many notations in a URL, so they are not checked.
        _ => return true,
    };
    let value = match kind {
        ScalarKind::Boolean => text.parse().ok().map(Value::Bool),
        ScalarKind::Integer | ScalarKind::Number => Number::from_text(text).map(Value::Number),
        ScalarKind::String => Some(Value::string(text)),
    };
    value.is_some_and(|value| breaches(types, &parameter.ty, &value, None).is_empty())
}
