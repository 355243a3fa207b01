//! A client's request as plans see it, and the part of the context document it makes.

use super::context::Context;
use super::fault::{Fault, FaultKind, Stop};
use super::settings::Settings;
use bytes::Bytes;
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use switchback_json::{Number, Object, Str, Value};
use switchback_plan::router::fits;
use switchback_plan::{Operation, Pack, ParameterKind, Variable};

/// A request of a client of the served side.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Decoded values of the path variables, in the order of [`Operation::variables`].
    pub path: Vec<String>,
    /// As it stands after the question mark; none or empty = no query.
    pub query: Option<String>,
    pub headers: HeaderMap,
    /// Decoded of content codings; empty = none.
    pub body: Bytes,
    /// Index into [`Pack::languages`].
    pub language: usize,
}

/// The head of a [`Request`], borrowed from wherever it is kept.
#[derive(Debug)]
pub struct RequestHead<'a, S = String> {
    pub path: &'a [S],
    pub query: &'a str,
    pub headers: &'a HeaderMap,
}

impl<S> Clone for RequestHead<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for RequestHead<'_, S> {}

impl Request {
    pub fn head(&self) -> RequestHead<'_> {
        RequestHead { path: &self.path, query: self.query.as_deref().unwrap_or(""), headers: &self.headers }
    }
}

/// The parameters of a raw query, as they stand: name and value, the value none where there is no equals sign.
pub(super) fn query_pairs(query: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| match pair.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (pair, None),
    })
}

/// A name or value of a query, decoded as forms write it; what is no UTF-8 becomes U+FFFD.
pub(super) fn decode_query(raw: &str) -> String {
    let spaced: Cow<'_, str> = if raw.contains('+') { raw.replace('+', " ").into() } else { raw.into() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// The context of a request without its body: `request.path`, `request.query` (parameters that the contract knows, with
/// the type it gives them), `request.headers` (without credentials), `config`.
pub(super) fn context_of<S: AsRef<str>>(
    pack: &Pack,
    operation: &Operation,
    settings: &Settings,
    head: RequestHead<'_, S>,
) -> Result<Context, Stop> {
    let mut request = Object::new();
    request.insert("path", path_values(operation, head.path)?);
    request.insert("query", query_values(operation, head.query)?);
    request.insert("headers", header_values(pack, head.headers));
    let mut context = Context::default();
    context.set("request", Value::Object(request));
    context.set("config", config(pack, settings));
    Ok(context)
}

fn path_values<S: AsRef<str>>(operation: &Operation, path: &[S]) -> Result<Object, Stop> {
    let mut values = Object::new();
    for (at, variable) in operation.variables.iter().enumerate() {
        let value = path.get(at).and_then(|text| typed(variable, text.as_ref()));
        let value = value.ok_or_else(|| misfit(FaultKind::NotFound, "path variable", variable))?;
        values.insert(&*variable.name, value);
    }
    Ok(values)
}

fn query_values(operation: &Operation, query: &str) -> Result<Object, Stop> {
    let mut values = Object::new();
    for (name, value) in query_pairs(query) {
        let name = decode_query(name);
        let Some(variable) = operation.query.iter().find(|variable| *variable.name == *name) else {
            continue;
        };
        let value = typed(variable, &decode_query(value.unwrap_or("")));
        let value = value.ok_or_else(|| misfit(FaultKind::BadRequest, "query parameter", variable))?;
        // The first of several counts, as in most servers.
        let _ = values.insert_new(Str::new(&name), value);
    }
    Ok(values)
}

fn misfit(kind: FaultKind, what: &str, variable: &Variable) -> Stop {
    Fault::new(kind, format!("the {what} `{}` is not of its type", variable.name)).into()
}

fn typed(variable: &Variable, text: &str) -> Option<Value> {
    fits(variable.kind, text).then(|| match variable.kind {
        ParameterKind::Boolean => Value::Bool(text == "true"),
        ParameterKind::Integer | ParameterKind::Number => {
            Number::from_text(text).map_or(Value::Null, Value::Number)
        }
        ParameterKind::String => Value::string(text),
    })
}

/// Header fields as lower-case names to the text of their first value. Credentials are not for mappings.
pub(super) fn header_values(pack: &Pack, headers: &HeaderMap) -> Object {
    let is_secret = |name: &str| {
        matches!(name, "authorization" | "proxy-authorization" | "cookie" | "set-cookie")
            || pack.sides.iter().any(|side| {
                side.credential.read.iter().chain(&side.credential.send).any(|known| known == name)
            })
    };
    let mut values = Object::new();
    for (name, value) in headers {
        if let (Ok(text), false) = (value.to_str(), is_secret(name.as_str())) {
            let _ = values.insert_new(Str::new(name.as_str()), Value::string(text));
        }
    }
    values
}

/// The settings as the tree that their dotted names make.
fn config(pack: &Pack, settings: &Settings) -> Value {
    let mut root = Value::Object(Object::new());
    for (at, setting) in pack.settings.iter().enumerate() {
        let value = u16::try_from(at).ok().and_then(|at| settings.get(at));
        // Settings were read as JSON values when they were given.
        let Some(Ok(value)) = value.map(|raw| Value::parse(raw, &switchback_json::Limits::UNLIMITED)) else {
            continue;
        };
        put(&mut root, &setting.name, value);
    }
    root
}

fn put(tree: &mut Value, name: &str, value: Value) {
    let Some(members) = tree.as_object_mut() else { return };
    match name.split_once('.') {
        None => {
            members.insert(name, value);
        }
        Some((first, rest)) => {
            if !members.contains_key(first) {
                members.insert(first, Value::Object(Object::new()));
            }
            if let Some(inner) = members.get_mut(first) {
                put(inner, rest, value);
            }
        }
    }
}
