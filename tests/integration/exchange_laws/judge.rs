//! Judges messages against a raw OpenAPI document: parameters, header fields, cookies, bodies and statuses.

use super::draw::{Message, operations};
use super::values::Pool;
use fastrand::Rng;
use http::header::{CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// A request on the wire, below the base address.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub target: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// An answer on the wire.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A message as its document reads it.
#[derive(Debug, Default, PartialEq)]
pub struct Parsed {
    /// Texts of path variables, parameters and header fields, by place.
    pub parts: BTreeMap<String, Vec<String>>,
    pub body: Option<Value>,
}

/// A violation of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// In the words of the report: `$.items[*].size`, `query.page`, `header ETag of the answer`.
    pub place: String,
    pub keyword: String,
    pub why: String,
}

impl Breach {
    fn new(place: &str, keyword: &str, why: impl Into<String>) -> Breach {
        Breach { place: place.to_owned(), keyword: keyword.to_owned(), why: why.into() }
    }
}

/// A place of a message that draws make sure to have, in the words of the report.
#[derive(Debug, Default)]
pub struct Aim {
    /// The steps within a body.
    steps: Option<Vec<String>>,
    /// The name of a parameter or a header field.
    name: Option<String>,
    /// Whether it is in the body of an error.
    is_error: bool,
}

impl Aim {
    pub fn at(place: &str) -> Aim {
        let body = place.strip_prefix("error body ").unwrap_or(place).strip_prefix('$');
        let steps = body.map(|rest| {
            let steps = rest.replace('[', ".[");
            steps.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect()
        });
        let named = place.split(' ').nth(1).or_else(|| place.split_once('.').map(|(_, name)| name));
        let name = named.filter(|_| steps.is_none()).map(str::to_owned);
        Aim { name, is_error: place.starts_with("error"), steps }
    }

    /// Whether the place may be in answers of this status.
    fn is_of(&self, status: &str) -> bool {
        self.steps.is_none() || self.is_error == status.starts_with(['4', '5'])
    }

    fn is_at(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    fn body(&self) -> Option<&[String]> {
        self.steps.as_deref()
    }
}

struct Schema {
    lowered: Value,
    validator: jsonschema::Validator,
}

/// A document and the validators of its schemas.
pub struct Judge<'d> {
    document: &'d Value,
    operations: Vec<(String, &'d Value)>,
    built: RefCell<HashMap<(String, bool), Rc<Schema>>>,
}

impl<'d> Judge<'d> {
    pub fn new(document: &'d Value) -> Judge<'d> {
        let found = operations(document).into_iter();
        let operations =
            found.filter_map(|(key, pointer)| Some((key, document.pointer(&pointer)?))).collect();
        Judge { document, operations, built: RefCell::default() }
    }

    pub fn operation(&self, key: &str) -> &'d Value {
        let found = self.operations.iter().find(|(known, _)| known == key);
        found.unwrap_or_else(|| panic!("no operation {key}")).1
    }

    fn response(&self, key: &str, status: u16) -> Option<&'d Value> {
        let responses = &self.operation(key)["responses"];
        let by_default = || responses.get("default").filter(|_| status >= 400);
        responses.get(status.to_string()).or_else(by_default)
    }

    /// Breaches that a request of the other side would be, and values that would reach a service
    /// which does not know their place or cannot read them from the text that its parameters are
    /// written in.
    pub fn unread(&self, key: &str, sent: &Asked, parsed: &Parsed) -> Vec<Breach> {
        let mut found = self.request(key, sent).1;
        let operation = self.operation(key);
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let place = format!("query.{}", parameter["name"].as_str().unwrap_or_default());
            let texts = parsed.parts.get(&place).filter(|_| parameter["explode"] == false);
            if texts.is_some_and(|texts| texts.iter().any(|text| text.is_empty() || text.contains(','))) {
                found.push(Breach::new(&place, "style", "an element is empty or holds a comma"));
            }
        }
        let content = &operation["requestBody"]["content"]["application/json"]["schema"];
        if let Some(body) = &parsed.body {
            let schema = self.schema(content, Message::Request);
            undeclared(&schema.lowered, body, "$", &mut found);
        }
        found
    }

    /// Whether an answer lacks a place that its document declares; none where the answer has no such place.
    pub fn lacks(&self, key: &str, got: &Parsed, place: &str) -> Option<bool> {
        let status: u16 = got.parts["status"][0].parse().ok()?;
        let response = self.response(key, status)?;
        if let Some(name) = place.strip_prefix("header ").and_then(|rest| rest.split(' ').next()) {
            let is_declared = response["headers"].get(name).is_some();
            return is_declared.then(|| !got.parts.contains_key(&format!("header {name} of the answer")));
        }
        if place.starts_with("error body ") != (status >= 400) {
            return None;
        }
        let aim = Aim::at(place);
        let (last, steps) = aim.steps.as_ref()?.split_last()?;
        let schema = self.schema(&response["content"]["application/json"]["schema"], Message::Answer);
        let mut holders = vec![got.body.as_ref()?];
        for step in steps {
            holders = holders.into_iter().flat_map(|value| members(value, step)).collect();
        }
        holders.retain(|value| value.is_object());
        let is_declared = schema.lowered.to_string().contains(&json!(last).to_string());
        (is_declared && !holders.is_empty()).then(|| holders.iter().all(|value| value.get(last).is_none()))
    }

    /// Whether an operation has answers of this status.
    pub fn declares(&self, key: &str, status: u16) -> bool {
        self.response(key, status).is_some()
    }

    /// Whether a place of answers is one that the document declares; the places of bodies are.
    pub fn knows(&self, key: &str, place: &str) -> bool {
        let Some(header) = place.strip_prefix("header ").and_then(|rest| rest.strip_suffix(" of the answer"))
        else {
            return true;
        };
        let responses = self.operation(key)["responses"].as_object().into_iter().flatten();
        responses.into_iter().any(|(_, response)| response["headers"].get(header).is_some())
    }

    fn schema(&self, schema: &Value, message: Message) -> Rc<Schema> {
        let key = (schema.to_string(), message == Message::Request);
        if let Some(known) = self.built.borrow().get(&key) {
            return Rc::clone(known);
        }
        let lowered = lower(schema, self.document, message);
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(&lowered)
            .unwrap_or_else(|error| panic!("{lowered} is no schema: {error}"));
        let built = Rc::new(Schema { lowered, validator });
        self.built.borrow_mut().insert(key, Rc::clone(&built));
        built
    }

    fn breaches(&self, schema: &Value, message: Message, value: &Value, root: &str) -> Vec<Breach> {
        let schema = self.schema(schema, message);
        let errors = schema.validator.iter_errors(value);
        // A `writeOnly` member should not be in an answer; one that is there harms no client.
        let is_meant = |e: &jsonschema::ValidationError<'_>| {
            message == Message::Request || e.kind().keyword() != "falseSchema"
        };
        errors
            .filter(is_meant)
            .map(|e| Breach::new(&place(root, e.instance_path().as_str()), e.kind().keyword(), e.to_string()))
            .collect()
    }

    /// A valid value of a schema; none where a few attempts find none.
    fn value(
        &self,
        pool: &Pool,
        rng: &mut Rng,
        schema: &Value,
        message: Message,
        aim: Option<&[String]>,
    ) -> Option<Value> {
        let schema = self.schema(schema, message);
        (0..30).map(|_| pool.value(rng, &schema.lowered, aim)).find(|value| schema.validator.is_valid(value))
    }

    /// Draws a valid request of an operation, with the place of the aim; none where no value fits.
    pub fn draw_request(&self, pool: &Pool, rng: &mut Rng, key: &str, aim: &Aim) -> Option<Asked> {
        let operation = self.operation(key);
        let (_, path) = key.split_once(' ')?;
        let mut asked = Asked { target: path.to_owned(), ..Asked::default() };
        let (mut query, mut cookies) = (Vec::new(), Vec::new());
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let (name, schema) = (parameter["name"].as_str()?, &parameter["schema"]);
            if parameter["required"] != true && !aim.is_at(name) && rng.bool() {
                continue;
            }
            let value = (0..10).find_map(|_| {
                let value = self.value(pool, rng, schema, Message::Request, None)?;
                let texts = texts(&value)?;
                // Each style has values that it cannot carry.
                let is_plain =
                    |text: &String| text.chars().all(|c| c.is_ascii_graphic() && !",;=\"\\".contains(c));
                let carries = match parameter["in"].as_str() {
                    Some("query") if parameter["explode"] != false => true,
                    Some("path") => texts.iter().all(|text| !text.is_empty() && is_plain(text)),
                    _ => texts.iter().all(|text| !text.is_empty() && is_plain(text)),
                };
                (carries && !texts.is_empty()).then_some(texts)
            });
            let Some(texts) = value else {
                if parameter["required"] == true {
                    return None;
                }
                continue;
            };
            match parameter["in"].as_str()? {
                "path" => asked.target = asked.target.replace(&format!("{{{name}}}"), &encoded(&texts[0])),
                "query" if parameter["explode"] == false => {
                    query.push(format!(
                        "{name}={}",
                        texts.iter().map(|t| encoded(t)).collect::<Vec<_>>().join(",")
                    ));
                }
                "query" => query.extend(texts.iter().map(|text| format!("{name}={}", encoded(text)))),
                "header" => add_lines(rng, &mut asked.headers, name, &texts)?,
                _ => cookies.push(format!("{name}={}", texts[0])),
            }
        }
        if !query.is_empty() {
            asked.target = format!("{}?{}", asked.target, query.join("&"));
        }
        if !cookies.is_empty() {
            asked.headers.insert(COOKIE, HeaderValue::from_str(&cookies.join("; ")).ok()?);
        }
        if let Some(body) = operation.get("requestBody")
            && (body["required"] == true || aim.body().is_some() || rng.u8(..4) != 0)
        {
            let (media, value) = self.content(pool, rng, &body["content"], Message::Request, aim.body())?;
            asked.headers.insert(CONTENT_TYPE, HeaderValue::from_str(&media).ok()?);
            asked.body = value;
        }
        let is_valid = self.request(key, &asked).1.is_empty();
        assert!(is_valid, "a drawn request is valid: {asked:?} {:?}", self.request(key, &asked).1);
        Some(asked)
    }

    fn content(
        &self,
        pool: &Pool,
        rng: &mut Rng,
        content: &Value,
        message: Message,
        aim: Option<&[String]>,
    ) -> Option<(String, Vec<u8>)> {
        let all: Vec<_> = content.as_object()?.iter().collect();
        let (media, of) = all[rng.usize(..all.len())];
        let value = match media.contains("json") {
            true => self.value(pool, rng, &of["schema"], message, aim)?.to_string().into_bytes(),
            false => b"red,green".to_vec(),
        };
        Some((media.clone(), value))
    }

    /// Draws an answer that the document declares, with the place of the aim.
    pub fn draw_answer(&self, pool: &Pool, rng: &mut Rng, key: &str, aim: &Aim) -> Option<Answered> {
        let operation = self.operation(key);
        let responses = operation["responses"].as_object()?;
        let listed = responses.iter().filter(|(status, _)| *status != "default");
        let (aimed, others): (Vec<_>, Vec<_>) = listed.partition(|(status, _)| aim.is_of(status));
        let listed = if aimed.is_empty() { others } else { aimed };
        let (status, response) = listed[rng.usize(..listed.len())];
        let mut answered = Answered { status: status.parse().ok()?, ..Answered::default() };
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            if header["required"] != true && !aim.is_at(name) && rng.bool() {
                continue;
            }
            let lines = (0..10).find_map(|_| {
                let texts = texts(&self.value(pool, rng, &header["schema"], Message::Answer, None)?)?;
                let is_plain =
                    |text: &String| !text.is_empty() && text.is_ascii() && !text.contains([' ', ',']);
                (!texts.is_empty() && texts.iter().all(is_plain)).then_some(texts)
            });
            match lines {
                Some(texts) => add_lines(rng, &mut answered.headers, name, &texts)?,
                None if header["required"] == true => return None,
                None => {}
            }
        }
        if response.get("content").is_some() {
            let (media, body) = self.content(pool, rng, &response["content"], Message::Answer, aim.body())?;
            answered.headers.insert(CONTENT_TYPE, HeaderValue::from_str(&media).ok()?);
            answered.body = body;
        }
        let breaches = self.answer(key, &answered).1;
        assert!(breaches.is_empty(), "a drawn answer is valid: {answered:?} {breaches:?}");
        Some(answered)
    }

    /// Reads a request and lists its breaches.
    pub fn request(&self, key: &str, asked: &Asked) -> (Parsed, Vec<Breach>) {
        let operation = self.operation(key);
        let (mut parsed, mut breaches) = (Parsed::default(), Vec::new());
        let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
        let pairs: Vec<(String, &str)> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, raw)| (decoded(name), raw))
            .collect();
        let cookies: Vec<(&str, &str)> = asked
            .headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split("; "))
            .filter_map(|cookie| cookie.split_once('='))
            .collect();
        let (_, template) = key.split_once(' ').unwrap_or_default();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let (name, schema) = (parameter["name"].as_str().unwrap_or_default(), &parameter["schema"]);
            let (place, found): (String, Vec<String>) = match parameter["in"].as_str().unwrap_or_default() {
                "path" => {
                    let both = template.split('/').zip(path.split('/'));
                    let mut of =
                        both.filter(|(part, _)| *part == format!("{{{name}}}")).map(|(_, raw)| decoded(raw));
                    (format!("path.{name}"), of.next().into_iter().collect())
                }
                "query" => {
                    let of = pairs.iter().filter(|(found, _)| found == name);
                    let texts = match parameter["explode"] == false {
                        true => of.flat_map(|(_, raw)| raw.split(',')).map(decoded).collect(),
                        false => of.map(|(_, raw)| decoded(raw)).collect(),
                    };
                    (format!("query.{name}"), texts)
                }
                "header" => {
                    (format!("header {name} of the request"), self.lines(&asked.headers, name, schema))
                }
                _ => {
                    let of = cookies.iter().filter(|(found, _)| *found == name);
                    (
                        format!("cookie {name} of the request"),
                        of.map(|(_, text)| (*text).to_owned()).collect(),
                    )
                }
            };
            if found.is_empty() {
                if parameter["required"] == true {
                    breaches.push(Breach::new(&place, "required", "is not there"));
                }
                continue;
            }
            breaches.extend(self.text_breaches(schema, Message::Request, &found, &place));
            parsed.parts.insert(place, found);
        }
        match operation.get("requestBody") {
            None if asked.body.is_empty() => {}
            None => breaches.push(Breach::new("$", "content", "a body where none is declared")),
            Some(body) if asked.body.is_empty() => {
                if body["required"] == true {
                    breaches.push(Breach::new("$", "required", "the body is not there"));
                }
            }
            Some(body) => {
                let (value, found) =
                    self.body_breaches(&body["content"], Message::Request, &asked.headers, &asked.body);
                parsed.body = Some(value);
                breaches.extend(found);
            }
        }
        (parsed, breaches)
    }

    /// Reads an answer and lists its breaches. An error status that the document does not list is
    /// tolerated: documents rarely list all of them.
    pub fn answer(&self, key: &str, answered: &Answered) -> (Parsed, Vec<Breach>) {
        let status = answered.status;
        let (mut parsed, mut breaches) = (Parsed::default(), Vec::new());
        parsed.parts.insert("status".to_owned(), vec![status.to_string()]);
        let Some(response) = self.response(key, status) else {
            if status < 400 {
                breaches.push(Breach::new("status", "status", format!("{status} is not declared")));
            }
            return (parsed, breaches);
        };
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            let place = format!("header {name} of the answer");
            let lines = self.lines(&answered.headers, name, &header["schema"]);
            if lines.is_empty() {
                if header["required"] == true {
                    breaches.push(Breach::new(&place, "required", "is not there"));
                }
                continue;
            }
            breaches.extend(self.text_breaches(&header["schema"], Message::Answer, &lines, &place));
            parsed.parts.insert(place, lines);
        }
        match response.get("content") {
            None if answered.body.is_empty() => {}
            None => breaches.push(Breach::new("$", "content", "a body where none is declared")),
            Some(_) if answered.body.is_empty() => breaches.push(Breach::new("$", "content", "no body")),
            Some(content) => {
                let (value, found) =
                    self.body_breaches(content, Message::Answer, &answered.headers, &answered.body);
                parsed.body = Some(value);
                breaches.extend(found);
            }
        }
        (parsed, breaches)
    }

    fn body_breaches(
        &self,
        content: &Value,
        message: Message,
        headers: &HeaderMap,
        body: &[u8],
    ) -> (Value, Vec<Breach>) {
        let named = headers.get(CONTENT_TYPE).map(text_of).unwrap_or_else(|| "application/json".to_owned());
        let essence = named.split(';').next().unwrap_or_default();
        let Some(media) = content.get(essence) else {
            return (Value::Null, vec![Breach::new("$", "content", format!("{named} is not declared"))]);
        };
        if !essence.contains("json") {
            return (json!(String::from_utf8_lossy(body)), Vec::new());
        }
        match serde_json::from_slice(body) {
            Err(error) => (Value::Null, vec![Breach::new("$", "content", format!("no JSON: {error}"))]),
            Ok(value) => {
                let breaches = self.breaches(&media["schema"], message, &value, "$");
                (value, breaches)
            }
        }
    }

    /// The values of a header field: the elements of a list, in one line or in several.
    fn lines(&self, headers: &HeaderMap, name: &str, schema: &Value) -> Vec<String> {
        let lines = headers.get_all(name.to_ascii_lowercase()).iter().map(text_of);
        match has_type(&self.schema(schema, Message::Answer).lowered, "array") {
            true => lines
                .flat_map(|line| line.split(',').map(|one| one.trim().to_owned()).collect::<Vec<_>>())
                .collect(),
            false => lines.collect(),
        }
    }

    fn text_breaches(&self, schema: &Value, message: Message, found: &[String], at: &str) -> Vec<Breach> {
        let lowered = Rc::clone(&self.schema(schema, message));
        let value = match has_type(&lowered.lowered, "array") {
            true => found.iter().map(|text| typed(text, &lowered.lowered["items"])).collect(),
            false if found.len() > 1 => json!(found),
            false => typed(&found[0], &lowered.lowered),
        };
        let mut breaches = self.breaches(schema, message, &value, at);
        // The report names a parameter as a whole.
        breaches.iter_mut().for_each(|breach| breach.place = at.to_owned());
        breaches
    }
}

/// Adds a header field, in one line or, for several elements, in several.
fn add_lines(rng: &mut Rng, headers: &mut HeaderMap, name: &str, texts: &[String]) -> Option<()> {
    let name = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).ok()?;
    let lines = if rng.bool() { vec![texts.join(", ")] } else { texts.to_vec() };
    for line in lines {
        headers.append(name.clone(), HeaderValue::from_str(&line).ok()?);
    }
    Some(())
}

fn text_of(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn decoded(raw: &str) -> String {
    percent_decode_str(&raw.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// The texts of a scalar, or of the elements of a list; none for anything else.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Number(_) | Value::Bool(_) => Some(vec![value.to_string()]),
        Value::Array(items) => {
            let texts: Option<Vec<Vec<String>>> = items.iter().map(texts).collect();
            Some(texts?.concat())
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// Members that an open object takes without declaring them.
fn undeclared(schema: &Value, value: &Value, at: &str, found: &mut Vec<Breach>) {
    match value {
        Value::Array(items) => {
            items.iter().for_each(|item| undeclared(&schema["items"], item, &format!("{at}[*]"), found));
        }
        Value::Object(members) if schema["properties"].is_object() => {
            for (name, member) in members {
                let place = format!("{at}.{name}");
                match schema["properties"].get(name) {
                    Some(of) => undeclared(of, member, &place, found),
                    None => {
                        found.push(Breach::new(&place, "undeclared", "the document declares no such member"))
                    }
                }
            }
        }
        _ => {}
    }
}

/// The values that a step leads to.
fn members<'v>(value: &'v Value, step: &str) -> Vec<&'v Value> {
    match (step, value) {
        ("[*]", Value::Array(items)) => items.iter().collect(),
        ("*", Value::Object(all)) => all.values().collect(),
        (name, value) => value.get(name).into_iter().collect(),
    }
}

fn has_type(schema: &Value, of: &str) -> bool {
    let own = match &schema["type"] {
        Value::String(found) => found == of,
        Value::Array(types) => types.iter().any(|found| found == of),
        _ => false,
    };
    own || schema["allOf"].as_array().is_some_and(|all| all.iter().any(|one| has_type(one, of)))
}

/// The value that a text stands for.
fn typed(text: &str, schema: &Value) -> Value {
    let parsed = || serde_json::from_str::<Value>(text).ok();
    if has_type(schema, "integer") || has_type(schema, "number") {
        return parsed().filter(Value::is_number).unwrap_or_else(|| json!(text));
    }
    if has_type(schema, "boolean") {
        return parsed().filter(Value::is_boolean).unwrap_or_else(|| json!(text));
    }
    json!(text)
}

/// `/items/0/size` below `$` is `$.items[*].size`.
fn place(root: &str, pointer: &str) -> String {
    let mut place = root.to_owned();
    for step in pointer.split('/').skip(1) {
        match step.bytes().all(|byte| byte.is_ascii_digit()) {
            true => place.push_str("[*]"),
            false => {
                place.push('.');
                place.push_str(step);
            }
        }
    }
    place
}

/// A schema of OpenAPI 3.0 or 3.1 in the words of JSON Schema 2020-12, for messages of one direction.
fn lower(schema: &Value, document: &Value, message: Message) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
        return lower(target.unwrap_or(&Value::Null), document, message);
    }
    let mut lowered = members.clone();
    for keyword in ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"]
    {
        if let Some(inner) = lowered.get_mut(keyword) {
            *inner = lower(inner, document, message);
        }
    }
    for keyword in ["allOf", "oneOf", "anyOf"] {
        for inner in lowered.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            *inner = lower(inner, document, message);
        }
    }
    let hidden = if message == Message::Request { "readOnly" } else { "writeOnly" };
    let mut gone = Vec::new();
    for (name, inner) in lowered.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let is_hidden = inner[hidden] == true;
        *inner = lower(inner, document, message);
        if is_hidden {
            *inner = json!(false);
            gone.push(name.clone());
        }
    }
    if let Some(required) = lowered.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !gone.iter().any(|one| name == one));
    }
    if lowered.remove("nullable") == Some(json!(true)) {
        lowered.insert("type".to_owned(), json!([members["type"], "null"]));
    }
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match lowered.get(exclusive) {
            Some(Value::Bool(true)) => {
                let value = lowered.remove(bound).unwrap_or_default();
                lowered.insert(exclusive.to_owned(), value);
            }
            Some(Value::Bool(false)) => drop(lowered.remove(exclusive)),
            _ => {}
        }
    }
    let wide = match schema["format"].as_str() {
        Some("int32") => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        Some("int64") => Some((i64::MIN, i64::MAX)),
        _ => None,
    };
    let mut lowered = Value::Object(lowered);
    if let Some((least, most)) = wide {
        lowered = json!({"allOf": [lowered, {"minimum": least, "maximum": most}]});
    }
    lowered
}
