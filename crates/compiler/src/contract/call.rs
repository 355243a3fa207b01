//! A call held against the contract of the side it goes to: path and query, and the body.

use super::{
    Contract, OpKey, Operation, Parameter, ParameterForm, ScalarKind, TypeKind, Types, breaches, breaches_in,
};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use switchback_json::{Limits, Number, Value};
use switchback_plan::Message;

/// In which ways a call is not what the contract asks for, each in a sentence that repeats no value. `operation` is written as
/// the contract writes it, `target` is path and query below the base.
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
        // A form is written after its contract; bytes are not looked into.
        (Some(wanted), Some(_)) if !wanted.media.is_json() => Vec::new(),
        (Some(wanted), Some(text)) => match Value::parse(text, &Limits::DOCUMENT) {
            Err(_) => vec!["the body is not JSON".to_owned()],
            Ok(value) => {
                let found = breaches_in(types, &wanted.ty, &value, Message::Request);
                found.iter().map(ToString::to_string).collect()
            }
        },
    }
}

/// The declared parameters of a query whose values are not of their types.
pub fn parameter_breaches(types: &Types, operation: &Operation, target: &str) -> Vec<String> {
    let given = given(target);
    let is_wrong = |parameter: &&Parameter| {
        let mut values = given.iter().filter(|(name, _)| *name == parameter.name);
        values.any(|(_, value)| !fits(types, parameter, value))
    };
    let wrong = operation.query.iter().filter(is_wrong);
    wrong.map(|parameter| format!("the parameter `{}` is not what it should be", parameter.name)).collect()
}

/// Names and values of the parameters of a query.
fn given(target: &str) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(parameter).collect()
}

fn query_breaches(types: &Types, operation: &Operation, target: &str) -> Vec<String> {
    let given = given(target);
    let mut said = parameter_breaches(types, operation, target);
    for parameter in &operation.query {
        if parameter.required && !given.iter().any(|(name, _)| *name == parameter.name) {
            said.push(format!("the parameter `{}` is required and missing", parameter.name));
        }
    }
    let is_field = |parameter: &Parameter, name: &str| {
        let of = name.strip_prefix(parameter.name.as_str());
        parameter.form == ParameterForm::Deep && of.is_some_and(|rest| rest.starts_with('['))
    };
    let is_known = |name: &str| operation.query.iter().any(|p| p.name == name || is_field(p, name));
    let is_unknown = |name: &str| !is_known(name);
    let unknown = given.iter().filter(|(name, _)| is_unknown(name));
    said.extend(unknown.map(|(name, _)| format!("the parameter `{name}` is not known")));
    said
}

/// Name and value of a parameter as it stands in a query; none of what is no text.
fn parameter(pair: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let decoded = |text| percent_decode_str(text).decode_utf8().ok();
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (!name.is_empty()).then_some(())?;
    Some((decoded(name)?, decoded(value)?))
}

/// Whether the text of a parameter is a value of its type.
fn fits(types: &Types, parameter: &Parameter, text: &str) -> bool {
    let kind = match types.resolve(&parameter.ty).kind {
        TypeKind::Scalar(scalar) => scalar.kind,
        // Lists and the like have many spellings in an address; none is judged.
        _ => return true,
    };
    let value = match kind {
        ScalarKind::Boolean => text.parse().ok().map(Value::Bool),
        ScalarKind::Integer | ScalarKind::Number => Number::from_text(text).map(Value::Number),
        ScalarKind::String => Some(Value::string(text)),
    };
    value.is_some_and(|value| breaches(types, &parameter.ty, &value).is_empty())
}
