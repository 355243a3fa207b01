//! A client's request as plans see it, and its part of the context document.

use super::context::Context;
use super::fault::{Fault, FaultKind, Stop};
use super::settings::Settings;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::sync::Arc;
use switchback_json::{Number, Object, Str, Value};
use switchback_plan::convert::{instant, timestamp};
use switchback_plan::router::fits;
use switchback_plan::{Operation, Pack, ParameterKind, ParameterShape, Variable};

/// A request of a client of the served side.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Decoded values of the path variables, in the order of [`Operation::variables`].
    pub path: Vec<String>,
    /// The raw query after the question mark. `None` or empty: no query.
    pub query: Option<String>,
    /// Header fields. Only those that rules of the route refer to are used.
    pub headers: HeaderMap,
    /// The body after decoding of content codings; empty if missing.
    pub body: Bytes,
    /// Index into [`Pack::languages`].
    pub language: usize,
    /// The arrival. Required if [`Route::reads_arrival`](switchback_plan::Route::reads_arrival).
    pub arrival: Option<Arrival>,
}

/// The arrival of a request. It is the same whenever the plan runs for this request, so a call that
/// is sent again has the same bytes, and a shadow plans the same calls.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Milliseconds since 1970.
    pub unix_ms: i64,
    /// The id in logs and in `X-Request-Id`.
    pub id: u64,
}

impl Arrival {
    /// The arrival of requests of examples: noon of 9 March 2024.
    pub(super) const EXAMPLE: Arrival = Arrival { unix_ms: 1_709_985_600_000, id: 1 };

    /// Returns the arrival of a recorded request by its start in RFC 3339. Its id is not recorded.
    pub fn of_recording(started: &str) -> Arrival {
        let recorded = instant(started);
        let unix_ms = recorded.map(|(seconds, nanos)| seconds * 1000 + i64::from(nanos / 1_000_000));
        Arrival { unix_ms: unix_ms.unwrap_or(Arrival::EXAMPLE.unix_ms), ..Arrival::EXAMPLE }
    }

    /// Adds the members `received` and `id` to the request of a context.
    pub(super) fn add_to(self, request: &mut Object) {
        request.insert("received", Value::string(&timestamp(self.unix_ms)));
        request.insert("id", Value::string(&format!("{:016x}", self.id)));
    }
}

/// A borrowed [`Request`] without its body.
#[derive(Debug)]
pub struct RequestHead<'a, S = String> {
    /// Decoded values of the path variables, in the order of [`Operation::variables`].
    pub path: &'a [S],
    /// The raw query after the question mark; empty if missing.
    pub query: &'a str,
    /// The request's header fields.
    pub headers: &'a HeaderMap,
}

impl<S> Clone for RequestHead<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for RequestHead<'_, S> {}

impl Request {
    /// Returns the request without its body.
    pub fn head(&self) -> RequestHead<'_> {
        RequestHead { path: &self.path, query: self.query.as_deref().unwrap_or(""), headers: &self.headers }
    }
}

/// Returns the raw names and values of a query or form. The value is `None` without an equals sign.
pub(super) fn query_pairs(query: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let ends = memchr::memchr_iter(b'&', query.as_bytes()).chain([query.len()]);
    let pairs = ends.scan(0, |from, end| Some(&query[std::mem::replace(from, end + 1)..end]));
    // Names are short, so a plain loop is faster than `memchr`.
    pairs.filter(|pair| !pair.is_empty()).map(|pair| match pair.bytes().position(|byte| byte == b'=') {
        Some(at) => (&pair[..at], Some(&pair[at + 1..])),
        None => (pair, None),
    })
}

/// Decodes a name or value in form encoding. Invalid UTF-8 becomes U+FFFD.
pub(super) fn decode_query(raw: &str) -> String {
    let spaced: Cow<'_, str> = if raw.contains('+') { raw.replace('+', " ").into() } else { raw.into() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// Builds the context of a request without its body: `request.path`, `request.query` (declared
/// parameters, with their types), `request.headers` (without credentials), and `config`.
pub(super) fn context_of<S: AsRef<str>>(
    pack: &Pack,
    operation: &Operation,
    settings: &Settings,
    head: RequestHead<'_, S>,
) -> Result<Context, Stop> {
    context_with(pack, operation, settings, head, query_values(operation, head.query)?)
}

/// Like [`context_of`], for a pair. Parameters of a pair are forwarded as received, so a repeated
/// one is an error only if a rule reads it. It is omitted here, and its name is returned.
pub(super) fn context_of_pair<'o, S: AsRef<str>>(
    pack: &Pack,
    operation: &'o Operation,
    settings: &Settings,
    head: RequestHead<'_, S>,
) -> Result<(Context, Vec<&'o str>), Stop> {
    let (values, repeated) = query_values_of_pair(operation, head.query)?;
    Ok((context_with(pack, operation, settings, head, values)?, repeated))
}

fn context_with<S: AsRef<str>>(
    pack: &Pack,
    operation: &Operation,
    settings: &Settings,
    head: RequestHead<'_, S>,
    query: Object,
) -> Result<Context, Stop> {
    let mut request = Object::new();
    request.insert("path", path_values(operation, head.path)?);
    request.insert("query", query);
    request.insert("headers", header_values(pack, head.headers));
    let mut context = Context::default();
    context.set("request", Value::Object(request));
    context.set("config", config(pack, settings));
    Ok(context)
}

fn path_values<S: AsRef<str>>(operation: &Operation, path: &[S]) -> Result<Object, Stop> {
    let mut values = Object::new();
    for (at, variable) in operation.variables.iter().enumerate() {
        let value = path.get(at).and_then(|text| parse_typed(variable, text.as_ref()));
        let value = value.ok_or_else(|| misfit(FaultKind::NotFound, "path variable", variable))?;
        values.insert(&*variable.name, value);
    }
    Ok(values)
}

/// Returns the query parameters with the types of the contract. A scalar parameter must not be
/// repeated, because servers disagree about which of two values applies.
fn query_values(operation: &Operation, query: &str) -> Result<Object, Stop> {
    let (values, repeated) = query_values_of_pair(operation, query)?;
    match repeated.first() {
        None => Ok(values),
        Some(name) => Err(comes_twice(name)),
    }
}

/// Returns the error for a repeated scalar parameter.
pub(super) fn comes_twice(name: &str) -> Stop {
    let said = format!("the query parameter `{name}` is no list and comes more than once");
    Fault::new(FaultKind::BadRequest, said).into()
}

/// Returns the parameters, and the names of repeated scalar ones, which have no value.
fn query_values_of_pair<'o>(operation: &'o Operation, query: &str) -> Result<(Object, Vec<&'o str>), Stop> {
    let mut found: Vec<(&Variable, Found)> = Vec::new();
    for (name, text) in query_pairs(query) {
        let name = decode_query(name);
        // Undeclared parameters are never forwarded, so their values are not validated.
        let Some((variable, field)) = find_variable(&operation.query, &name) else { continue };
        // All fields of a parameter share its variable.
        let at = found.iter().position(|(known, _)| std::ptr::eq(*known, variable)).unwrap_or_else(|| {
            found.push((variable, Found::default()));
            found.len() - 1
        });
        let text = decode_query(text.unwrap_or(""));
        found[at].1.add(variable, field, &text)?;
    }
    let (mut values, mut repeated) = (Object::new(), Vec::new());
    for (variable, found) in found {
        match found.value() {
            Some(value) => drop(values.insert(&*variable.name, value)),
            None => repeated.push(&*variable.name),
        }
    }
    Ok((values, repeated))
}

/// Returns the parameter of this name, with its field for the form `name[field]`.
fn find_variable<'o>(variables: &'o [Variable], name: &str) -> Option<(&'o Variable, Option<&'o Variable>)> {
    variables.iter().find_map(|variable| match &variable.shape {
        ParameterShape::Fields(fields) => {
            let field = name.strip_prefix(&*variable.name)?.strip_prefix('[')?;
            let field = field.strip_suffix("[]").unwrap_or(field).strip_suffix(']')?;
            fields.iter().find(|known| *known.name == *field).map(|field| (variable, Some(field)))
        }
        _ => (*variable.name == *name).then_some((variable, None)),
    })
}

/// Returns the names of query parameters that the operation does not declare, each with whether it
/// has a value. They are never forwarded.
pub fn undeclared_parameters<'q>(
    operation: &'q Operation,
    query: &'q str,
) -> impl Iterator<Item = (String, bool)> + 'q {
    let is_of = |variable: &Variable, name: &str| match &variable.shape {
        // Its fields are not checked here.
        ParameterShape::Fields(_) => strip_parameter(name, &variable.name).is_some(),
        _ => *variable.name == *name,
    };
    let is_declared = move |name: &str| operation.query.iter().any(|variable| is_of(variable, name));
    // Compare raw names first, because few names are encoded.
    let pairs = query_pairs(query).filter(move |(name, _)| !is_declared(name));
    pairs.filter_map(move |(name, value)| {
        Some((decode_query(name), value.is_some())).filter(|(name, _)| !is_declared(name))
    })
}

/// Returns the part of `name[field]` after the parameter's name, which is empty for `name` itself: a
/// parameter with fields may also have a value of its own.
pub(super) fn strip_parameter<'n>(name: &'n str, parameter: &str) -> Option<&'n str> {
    name.strip_prefix(parameter).filter(|rest| rest.is_empty() || rest.starts_with('['))
}

/// The values of one parameter so far.
#[derive(Default)]
enum Found {
    #[default]
    Nothing,
    One(Value),
    /// A scalar that was repeated.
    Twice,
    List(Vec<Value>),
    Fields(Vec<(Arc<str>, Found)>),
}

impl Found {
    fn add(&mut self, variable: &Variable, field: Option<&Variable>, text: &str) -> Result<(), Stop> {
        if let Some(field) = field {
            if matches!(self, Found::Nothing) {
                *self = Found::Fields(Vec::new());
            }
            let Found::Fields(fields) = self else { return Ok(()) };
            let at = fields.iter().position(|(name, _)| *name == field.name).unwrap_or_else(|| {
                fields.push((Arc::clone(&field.name), Found::Nothing));
                fields.len() - 1
            });
            return fields[at].1.add(field, None, text);
        }
        let value = |text: &str| {
            parse_typed(variable, text)
                .ok_or_else(|| misfit(FaultKind::BadRequest, "query parameter", variable))
        };
        match (&variable.shape, &mut *self) {
            (ParameterShape::List(style), Found::Nothing | Found::List(_)) => {
                if matches!(self, Found::Nothing) {
                    *self = Found::List(Vec::new());
                }
                let Found::List(list) = self else { return Ok(()) };
                match style.delimiter() {
                    None => list.push(value(text)?),
                    // A delimited list without text has no elements.
                    Some(_) if text.is_empty() => {}
                    Some(delimiter) => {
                        for element in text.split(delimiter) {
                            list.push(value(element)?);
                        }
                    }
                }
            }
            (_, Found::Nothing) => *self = Found::One(value(text)?),
            _ => *self = Found::Twice,
        }
        Ok(())
    }

    /// Returns the value, or `None` if the parameter or one of its fields is a repeated scalar.
    fn value(self) -> Option<Value> {
        match self {
            Found::Nothing => Some(Value::Null),
            Found::One(value) => Some(value),
            Found::Twice => None,
            Found::List(values) => Some(Value::from(values)),
            Found::Fields(fields) => {
                let mut object = Object::new();
                for (name, found) in fields {
                    object.insert(&*name, found.value()?);
                }
                Some(Value::Object(object))
            }
        }
    }
}

fn misfit(kind: FaultKind, what: &str, variable: &Variable) -> Stop {
    Fault::new(kind, format!("the {what} `{}` is not of its type", variable.name)).into()
}

fn parse_typed(variable: &Variable, text: &str) -> Option<Value> {
    fits(variable.kind, text).then(|| match variable.kind {
        ParameterKind::Boolean => Value::Bool(text == "true"),
        ParameterKind::Integer | ParameterKind::Number => {
            Number::from_text(text).map_or(Value::Null, Value::Number)
        }
        ParameterKind::String => Value::string(text),
    })
}

/// Returns header fields as lower-case names with texts. Lines of one field are joined (RFC 9110,
/// section 5.3). Credentials are omitted, because mappings must not read them.
pub(super) fn header_values(pack: &Pack, headers: &HeaderMap) -> Object {
    let mut values = Object::new();
    let mut lines = headers.iter().peekable();
    while let Some((name, value)) = lines.next() {
        let mut text = header_text(value);
        // `HeaderMap` yields all lines of a field in succession.
        while let Some((_, more)) = lines.next_if(|(next, _)| *next == name) {
            text = format!("{text}, {}", header_text(more)).into();
        }
        if !is_secret(pack, name.as_str()) {
            let _ = values.insert_new(Str::new(name.as_str()), Value::string(&text));
        }
    }
    values
}

/// Returns whether a header field contains a credential.
pub(super) fn is_secret(pack: &Pack, name: &str) -> bool {
    matches!(name, "authorization" | "proxy-authorization" | "cookie" | "set-cookie")
        || pack.sides.iter().any(|side| side.credential.headers_of_tokens().any(|known| known == name))
}

/// Decodes a header value. Invalid UTF-8 is read as ISO-8859-1, the historical encoding (RFC 9110,
/// section 5.5).
fn header_text(value: &HeaderValue) -> Cow<'_, str> {
    match str::from_utf8(value.as_bytes()) {
        Ok(text) => text.into(),
        Err(_) => value.as_bytes().iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// Returns the settings as the tree of their dotted names.
fn config(pack: &Pack, settings: &Settings) -> Value {
    let mut root = Value::Object(Object::new());
    for (at, setting) in pack.settings.iter().enumerate() {
        let value = u16::try_from(at).ok().and_then(|at| settings.get(at));
        // Settings were validated as JSON when they were set.
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

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_plan::{BodyExpected, Effect, HostId, ListStyle};

    fn operation() -> Operation {
        let list = |name: &str, kind, style| Variable {
            shape: ParameterShape::List(style),
            ..Variable::single(name, kind, false)
        };
        let fields = vec![
            Variable::single("city", ParameterKind::String, false),
            list("tags", ParameterKind::String, ListStyle::Repeated),
        ];
        Operation {
            key: "GET /a".into(),
            host: HostId::MAIN,
            method: http::Method::GET,
            template: "/a".into(),
            variables: Vec::new(),
            query: vec![
                Variable::single("page", ParameterKind::Integer, false),
                list("ids[]", ParameterKind::Integer, ListStyle::Repeated),
                list("csv", ParameterKind::String, ListStyle::Comma),
                list("pipe", ParameterKind::Boolean, ListStyle::Pipe),
                list("space", ParameterKind::String, ListStyle::Space),
                Variable {
                    shape: ParameterShape::Fields(fields.into()),
                    ..Variable::single("filter", ParameterKind::String, false)
                },
            ],
            body: BodyExpected::No,
            takes_null: false,
            format: switchback_plan::BodyFormat::Json,
            answers: switchback_plan::BodyFormat::Json,
            effect: Effect::None,
        }
    }

    fn read(query: &str) -> Result<String, String> {
        let values = query_values(&operation(), query).map(Value::Object);
        values.map(|value| String::from_utf8(value.to_vec()).expect("JSON is UTF-8")).map_err(|stop| {
            match stop {
                Stop::Fault(fault) => fault.detail,
                Stop::Refused(_) => "refused".to_owned(),
            }
        })
    }

    #[test]
    fn a_query_is_read_in_the_styles_of_its_contract() {
        for (query, json) in [
            ("page=2", r#"{"page":2}"#),
            ("ids[]=1&page=2&ids%5B%5D=3", r#"{"ids[]":[1,3],"page":2}"#),
            ("csv=a,b%2Cc&pipe=true|false&pipe=true", r#"{"csv":["a","b","c"],"pipe":[true,false,true]}"#),
            ("csv=&space=a+b%20c", r#"{"csv":[],"space":["a","b","c"]}"#),
            ("filter[city]=x&filter[tags]=a&filter[tags][]=b", r#"{"filter":{"city":"x","tags":["a","b"]}}"#),
            ("other=1&filter[else]=2", "{}"),
        ] {
            assert_eq!(read(query).as_deref(), Ok(json), "{query}");
        }
    }

    #[test]
    fn a_parameter_that_is_no_list_comes_once() {
        for query in ["page=1&page=1", "filter[city]=a&filter[city]=b"] {
            assert!(read(query).unwrap_err().contains("is no list and comes more than once"), "{query}");
        }
        for query in ["page=x", "ids[]=1&ids[]=", "pipe=true||"] {
            assert!(read(query).unwrap_err().contains("is not of its type"), "{query}");
        }
    }
}
