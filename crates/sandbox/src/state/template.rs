//! Validates template messages for a channel and renders their text.

use super::catalog::{Template, TemplateUse};
use super::marker::expand;
use super::{ChannelKind, Company};
use crate::call::integer;
use crate::reasons::{Expect, Reason, Thing};
use crate::reply::Failure;
use serde_json::{Map, Value};

/// Validates an `hsm` object against the company's templates and the channel. Returns the rendered
/// text.
pub fn check(hsm: &Map<String, Value>, company: &Company, channel: ChannelKind) -> Result<String, Failure> {
    let id = hsm.get("template_id").ok_or(Failure::bad(Reason::Missing("template_id")))?;
    let id = integer(id).ok_or(Failure::wrong_type("template_id", Expect::Integer))?;
    let params = params(hsm)?;
    let header = parts(hsm, "header")?;
    let buttons = parts(hsm, "buttons")?;
    header.iter().try_for_each(|part| check_header(part))?;
    buttons.iter().try_for_each(|part| check_button(part))?;

    let template = company.templates.iter().find(|t| i64::try_from(t.id) == Ok(id));
    let template = template.ok_or(Failure::bad(Reason::NotFound(Thing::Template)))?;
    if !supports(channel, template) || buttons.len() > template.buttons {
        return Err(Failure::bad(Reason::TemplateUnsupported));
    }
    if params.len() != template.params {
        let reason = Reason::TemplateParams { wanted: template.params, given: params.len() };
        return Err(Failure::bad(reason));
    }
    if header.iter().any(|part| part.get("type").and_then(Value::as_str) != template.header) {
        return Err(Failure::bad(Reason::WrongValue("header")));
    }
    fill(template, &params)
}

/// Returns whether a channel supports a template. The service's own provider supports all; the
/// other provider of the app supports plain text, except for authentication.
fn supports(channel: ChannelKind, template: &Template) -> bool {
    match channel {
        ChannelKind::WhatsappEnterprise => true,
        ChannelKind::Whatsapp => {
            template.purpose != TemplateUse::Authentication
                && template.buttons == 0
                && template.header.is_none()
        }
        _ => false,
    }
}

fn params(hsm: &Map<String, Value>) -> Result<Vec<(&str, &str)>, Failure> {
    let Some(params) = hsm.get("params") else { return Ok(Vec::new()) };
    let params = params.as_object().ok_or(Failure::wrong_type("params", Expect::Object))?;
    params
        .iter()
        .map(|(key, value)| {
            Ok((key.as_str(), value.as_str().ok_or(Failure::wrong_type("params", Expect::String))?))
        })
        .collect()
}

/// Returns the objects in `params` of the header or of the buttons.
fn parts<'a>(
    hsm: &'a Map<String, Value>,
    name: &'static str,
) -> Result<Vec<&'a Map<String, Value>>, Failure> {
    let Some(group) = hsm.get(name) else { return Ok(Vec::new()) };
    let group = group.as_object().ok_or(Failure::wrong_type(name, Expect::Object))?;
    let Some(list) = group.get("params") else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or(Failure::wrong_type(name, Expect::Array))?;
    list.iter().map(|part| part.as_object().ok_or(Failure::wrong_type(name, Expect::Object))).collect()
}

/// Validates a header `{type: T, T: {…}}`, including the property that its type requires.
fn check_header(part: &Map<String, Value>) -> Result<(), Failure> {
    let wrong = || Failure::bad(Reason::WrongValue("header"));
    let kind = part.get("type").and_then(Value::as_str).ok_or_else(wrong)?;
    let property = match kind {
        "text" => "text",
        "image" | "document" | "video" => "link",
        _ => return Err(wrong()),
    };
    let media = part.get(kind).and_then(Value::as_object).ok_or_else(wrong)?;
    let filename_ok = media.get("filename").is_none_or(Value::is_string);
    if media.get(property).is_some_and(Value::is_string) && filename_ok { Ok(()) } else { Err(wrong()) }
}

fn check_button(part: &Map<String, Value>) -> Result<(), Failure> {
    let is_text = part.get("type").and_then(Value::as_str) == Some("text");
    let has_text = part.get("text").is_some_and(Value::is_string);
    if is_text && has_text { Ok(()) } else { Err(Failure::bad(Reason::WrongValue("buttons"))) }
}

/// Renders a template. Parameters are numbered from 1, and all of them are required.
fn fill(template: &Template, params: &[(&str, &str)]) -> Result<String, Failure> {
    let value =
        |key: &str| params.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned());
    // The number of parameters was checked, but not their names.
    if (1..=template.params).any(|position| value(&position.to_string()).is_none()) {
        return Err(Failure::bad(Reason::WrongValue("params")));
    }
    Ok(expand(template.text, value))
}
