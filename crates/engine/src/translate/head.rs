//! Targets, queries, header fields and statuses of calls and answers. The proxy uses [`PairHeads`]
//! for pairs whose bodies it streams; all other routes use `run`.

use super::context::Context;
use super::fault::{Fault, FaultKind, Sender, Stop};
use super::request::{
    RequestHead, comes_twice, context_of_pair, decode_query, header_values, is_secret, query_pairs,
    strip_parameter,
};
use super::settings::Settings;
use super::value::{Scope, broken, constant, plain};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use switchback_json::{Limits, Object, Value};
use switchback_plan::router::path::{encode_query, encode_segment};
use switchback_plan::{
    CallHead, Expr, HeaderRule, ListStyle, Location, Pack, Pair, Path, PathPart, QueryFrom, QueryRefusal,
    QueryRule, Response, Route, Segment, StatusTo,
};

/// The heads of one exchange of a pair. `S` is the type of path values.
#[derive(Debug)]
pub struct PairHeads<'a, S = String> {
    /// The pack of the route.
    pub pack: &'a Pack,
    /// The pair.
    pub route: &'a Route,
    /// The operator's settings.
    pub settings: &'a Arc<Settings>,
    /// Index into [`Pack::languages`].
    pub language: usize,
    /// The client's request without its body.
    pub request: RequestHead<'a, S>,
}

impl<S: AsRef<str>> PairHeads<'_, S> {
    /// Returns the encoded path and query of the call, relative to the upstream's base URL.
    pub fn target(&self, head: &CallHead) -> Result<String, Fault> {
        self.with_values(needs_context(head), None, |values| target(head, self.request, values))
    }

    /// Returns the header fields that rules set on the call.
    pub fn call_headers(&self, head: &CallHead) -> Result<HeaderMap, Fault> {
        let raw = self.raw_headers(None);
        self.with_values(needs_values(&head.headers, raw), None, |values| headers(&head.headers, raw, values))
    }

    /// Returns the header fields that rules set on the answer to a reply.
    pub fn answer_headers(
        &self,
        response: &Response,
        reply_status: u16,
        reply_headers: &HeaderMap,
    ) -> Result<HeaderMap, Fault> {
        let (reply, raw) = (Some((reply_status, reply_headers)), self.raw_headers(Some(reply_headers)));
        self.with_values(needs_values(&response.headers, raw), reply, |values| {
            headers(&response.headers, raw, values)
        })
    }

    fn raw_headers<'h>(&'h self, reply: Option<&'h HeaderMap>) -> RawHeaders<'h> {
        RawHeaders { pack: self.pack, request: self.request.headers, reply }
    }

    /// Calls `work` with a function that evaluates expressions. The context is only built if
    /// `needed`.
    fn with_values<T>(
        &self,
        needed: bool,
        reply: Option<(u16, &HeaderMap)>,
        work: impl FnOnce(Values<'_>) -> Result<T, Stop>,
    ) -> Result<T, Fault> {
        let done = if needed {
            context_of_pair(self.pack, &self.route.operation, self.settings, self.request).and_then(
                |(mut context, repeated)| {
                    if let Some((status, headers)) = reply {
                        context.set("reply", reply_value(self.pack, status, headers));
                    }
                    let scope = self.scope(&context);
                    work(&|expr| match parameter_of(expr).filter(|name| repeated.contains(name)) {
                        Some(name) => Err(comes_twice(name)),
                        None => scope.value(expr),
                    })
                },
            )
        } else {
            let context = Context::default();
            let scope = self.scope(&context);
            work(&|expr| scope.value(expr))
        };
        done.map_err(|stop| match stop {
            Stop::Fault(fault) => fault.at(&self.route.origin),
            Stop::Refused(_) => {
                Fault::new(FaultKind::Internal, "a head cannot be refused").at(&self.route.origin)
            }
        })
    }

    fn scope<'s>(&'s self, context: &'s Context) -> Scope<'s> {
        Scope {
            pack: self.pack,
            settings: self.settings,
            language: self.language,
            context,
            limits: &Limits::DOCUMENT,
        }
    }
}

/// Returns the query parameter that a value of a pair is taken from.
fn parameter_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Convert { from, .. } => parameter_of(from),
        Expr::At(Location { path: Path::Singular(segments), .. }) => match &segments[..] {
            [Segment::Member(request), Segment::Member(query), Segment::Member(name)]
                if &*request.text == "request" && &*query.text == "query" =>
            {
                Some(&name.text)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Evaluates an expression.
pub(super) type Values<'v> = &'v dyn Fn(&Expr) -> Result<Option<Value>, Stop>;

fn reply_value(pack: &Pack, status: u16, headers: &HeaderMap) -> Value {
    let mut reply = Object::new();
    reply.insert("status", i64::from(status));
    reply.insert("headers", header_values(pack, headers));
    Value::Object(reply)
}

/// Returns whether the target contains values from the context.
fn needs_context(head: &CallHead) -> bool {
    head.path.iter().any(|part| matches!(part, PathPart::Value(_)))
        || head.query.iter().any(|rule| matches!(rule.from, QueryFrom::Value(_)))
}

/// Returns the encoded path and query of a call.
pub(super) fn target<S: AsRef<str>>(
    head: &CallHead,
    request: RequestHead<'_, S>,
    values: Values<'_>,
) -> Result<String, Stop> {
    let mut out = path(&head.path, request, values)?;
    let mut parameters = Parameters { out: &mut out, first: true };
    for rule in &head.query {
        query(rule, request.query, values, &mut parameters)?;
    }
    Ok(out)
}

/// Returns the encoded path of a call.
pub(super) fn path<S: AsRef<str>>(
    parts: &[PathPart],
    request: RequestHead<'_, S>,
    values: Values<'_>,
) -> Result<String, Stop> {
    let mut out = String::with_capacity(64);
    for part in parts {
        match part {
            PathPart::Literal(text) => out.push_str(text),
            PathPart::Variable(at) => {
                let value = request.path.get(usize::from(*at)).map(AsRef::as_ref).unwrap_or("");
                // A value that no path segment can contain identifies no resource.
                encode_segment(value, &mut out)
                    .map_err(|error| Fault::new(FaultKind::NotFound, error.to_string()))?;
            }
            PathPart::Value(expr) => {
                let sender = Sender::from_expr(expr);
                let value = values(expr)?.as_ref().and_then(plain);
                let value = value.ok_or_else(|| {
                    broken(sender, "a part of the address to call is not there or no scalar")
                })?;
                encode_segment(&value, &mut out).map_err(|error| broken(sender, &error.to_string()))?;
            }
        }
    }
    Ok(out)
}

fn query(
    rule: &QueryRule,
    raw: &str,
    values: Values<'_>,
    parameters: &mut Parameters<'_>,
) -> Result<(), Stop> {
    match &rule.from {
        QueryFrom::Client(name) => {
            for (_, value) in query_pairs(raw).filter(|(found, _)| decode_query(found) == **name) {
                parameters.add_raw(&rule.name, value);
            }
        }
        QueryFrom::ClientFields(name) => {
            for (found, value) in query_pairs(raw) {
                let found = decode_query(found);
                if let Some(field) = strip_parameter(&found, name) {
                    parameters.add_raw(&format!("{}{field}", rule.name), value);
                }
            }
        }
        QueryFrom::Constant(raw) => parameters.add_value(rule, Some(constant(raw)), Sender::Operator)?,
        QueryFrom::Value(expr) => parameters.add_value(rule, values(expr)?, Sender::from_expr(expr))?,
    }
    Ok(())
}

/// Returns an error if the client requests another value of a parameter than the served one.
pub fn wrong_constant(constants: &[(Arc<str>, Arc<str>)], query: &str) -> Result<(), Fault> {
    for (name, value) in constants {
        // An absent parameter accepts the served value.
        let mut values = query_pairs(query).filter(|(found, _)| decode_query(found) == **name);
        if values.any(|(_, found)| decode_query(found.unwrap_or("")) != **value) {
            let said = format!("the query parameter `{name}` has another value than the one that is served");
            return Err(Fault::new(FaultKind::BadRequest, said));
        }
    }
    Ok(())
}

/// Returns the index of the first refusal that the query triggers.
pub fn refused_parameter(refusals: &[QueryRefusal], query: &str) -> Option<usize> {
    refusals.iter().position(|refusal| {
        let values = query_pairs(query).filter(|(name, _)| decode_query(name) == *refusal.name);
        values
            .map(|(_, value)| decode_query(value.unwrap_or("")))
            .any(|value| !refusal.unless.iter().any(|meant| **meant == value))
    })
}

fn no_parameter(sender: Sender) -> Stop {
    broken(sender, "a query parameter is made of scalars, and found is something else")
}

/// A writer of query parameters.
struct Parameters<'o> {
    out: &'o mut String,
    first: bool,
}

impl Parameters<'_> {
    /// Adds a parameter, unless the value is `None`.
    fn add(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.name(name);
            self.out.push('=');
            encode_query(&value, self.out);
        }
    }

    /// Adds a value from the context: a list in the style of the rule, an object as one parameter
    /// per field.
    fn add_value(&mut self, rule: &QueryRule, value: Option<Value>, sender: Sender) -> Result<(), Stop> {
        match value {
            Some(Value::Array(elements)) => self.add_list(&rule.name, &elements, rule.style, sender),
            Some(Value::Object(members)) => {
                for (field, value) in members.iter() {
                    let name = format!("{}[{}]", rule.name, field.decode());
                    match value {
                        Value::Array(elements) => {
                            self.add_list(&name, elements, ListStyle::Repeated, sender)?;
                        }
                        Value::Object(_) => return Err(no_parameter(sender)),
                        value => self.add(&name, plain(value)),
                    }
                }
                Ok(())
            }
            value => {
                self.add(&rule.name, value.as_ref().and_then(plain));
                Ok(())
            }
        }
    }

    /// Adds a list. An empty list is omitted, because no style can represent it.
    fn add_list(
        &mut self,
        name: &str,
        elements: &[Value],
        style: ListStyle,
        sender: Sender,
    ) -> Result<(), Stop> {
        let Some(delimiter) = style.delimiter() else {
            for element in elements {
                self.add(name, Some(plain(element).ok_or_else(|| no_parameter(sender))?));
            }
            return Ok(());
        };
        for (at, element) in elements.iter().enumerate() {
            let text = plain(element).ok_or_else(|| no_parameter(sender))?;
            if text.contains(delimiter) || text.is_empty() {
                let said =
                    "a list cannot be written whose element is empty or holds what stands between them";
                return Err(broken(sender, said));
            }
            if at == 0 {
                self.name(name);
                self.out.push('=');
            } else {
                // Commas are safe in a query; other separators must be escaped.
                match delimiter {
                    ',' => self.out.push(','),
                    other => encode_query(other.encode_utf8(&mut [0; 4]), self.out),
                }
            }
            encode_query(&text, self.out);
        }
        Ok(())
    }

    /// Adds a parameter with an encoded value.
    fn add_raw(&mut self, name: &str, value: Option<&str>) {
        self.name(name);
        if let Some(value) = value {
            self.out.push('=');
            self.out.push_str(value);
        }
    }

    fn name(&mut self, name: &str) {
        self.out.push(if std::mem::take(&mut self.first) { '?' } else { '&' });
        encode_query(name, self.out);
    }
}

/// Returns the target with this parameter added or replaced.
pub(super) fn with_parameter(target: &str, name: &str, value: i64) -> String {
    with_text(target, name, &value.to_string())
}

/// Returns the target with this text parameter added or replaced.
pub(super) fn with_text(target: &str, name: &str, value: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut out = path.to_owned();
    let mut parameters = Parameters { out: &mut out, first: true };
    for (known, old) in query_pairs(query).filter(|(known, _)| decode_query(known) != name) {
        parameters.add_raw(&decode_query(known), old);
    }
    parameters.add(name, Some(value.to_owned()));
    out
}

/// Received header fields. A rule that copies a field unchanged copies its lines byte by byte.
#[derive(Clone, Copy)]
pub(super) struct RawHeaders<'h> {
    pub pack: &'h Pack,
    pub request: &'h HeaderMap,
    /// The reply, for pairs.
    pub reply: Option<&'h HeaderMap>,
}

impl<'h> RawHeaders<'h> {
    /// Returns the field that an expression copies and the headers it is copied from, or `None` for
    /// other expressions.
    fn taken_over<'e>(self, expr: &'e Expr) -> Option<(&'h HeaderMap, &'e str)> {
        let Expr::At(Location { path: Path::Singular(segments), .. }) = expr else { return None };
        let [Segment::Member(from), Segment::Member(headers), Segment::Member(name)] = &segments[..] else {
            return None;
        };
        let map = match &*from.text {
            "request" => self.request,
            "reply" => self.reply?,
            _ => return None,
        };
        // Credentials never pass through a mapping.
        (&*headers.text == "headers" && !is_secret(self.pack, &name.text)).then_some((map, &*name.text))
    }
}

/// Returns whether any of these rules needs the context.
fn needs_values(rules: &[HeaderRule], raw: RawHeaders<'_>) -> bool {
    rules.iter().any(|rule| !matches!(rule.value, Expr::Constant(_)) && raw.taken_over(&rule.value).is_none())
}

/// Returns the header fields of these rules.
pub(super) fn headers(
    rules: &[HeaderRule],
    raw: RawHeaders<'_>,
    values: Values<'_>,
) -> Result<HeaderMap, Stop> {
    let mut map = HeaderMap::with_capacity(rules.len());
    for rule in rules {
        let name = HeaderName::from_bytes(rule.name.text.as_bytes())
            .map_err(|_| Fault::new(FaultKind::Internal, "the plan has a header name that is none"))?;
        if let Some((from, source)) = raw.taken_over(&rule.value) {
            // A later rule for a name replaces an earlier one if it yields a value.
            // Copy bytes instead of text, because header values need not be UTF-8.
            let mut lines = from.get_all(source).iter().cloned();
            if let Some(first) = lines.next() {
                map.insert(name.clone(), first);
                for line in lines {
                    map.append(name.clone(), line);
                }
            }
            continue;
        }
        let Some(text) = values(&rule.value)?.as_ref().and_then(plain) else { continue };
        // Non-ASCII text is sent as UTF-8, which recipients treat as opaque bytes (RFC 9110,
        // section 5.5).
        let value = HeaderValue::from_bytes(text.as_bytes())
            .map_err(|_| broken(Sender::from_expr(&rule.value), "a value that no header field can carry"))?;
        map.insert(name, value);
    }
    Ok(map)
}

/// Returns the rule for a reply of this status. A compiled pair has one for every status.
pub fn response(pair: &Pair, status: u16) -> Option<&Response> {
    pair.responses.iter().find(|response| response.from.matches(status))
}

/// Returns the status of the answer to a reply of this status.
pub fn status(to: StatusTo, reply_status: u16) -> u16 {
    match to {
        StatusTo::Same => reply_status,
        StatusTo::Exact(status) => status,
    }
}
