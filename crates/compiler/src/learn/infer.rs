//! Contracts from traffic: operations, parameters and types of recorded calls, as an OpenAPI 3.1
//! document. It states what was seen: a member is required if every object had it, and an
//! enumeration lists the values seen, which are not all that exist.

use super::model::TrafficCall;
use serde_json::{Map, Value as Serde, json};
use std::collections::{BTreeMap, BTreeSet};
use switchback_json::{Number, Value};
use switchback_plan::convert::instant;

/// Maximum number of different operations of a side. Calls to others are not counted.
const OPERATIONS_MAX: usize = 5_000;
/// Maximum number of different texts kept of one member.
const TEXTS_MAX: usize = 16;
/// Maximum number of different members of an object. With more, it is a map.
const MEMBERS_MAX: usize = 200;
/// Maximum depth of types.
const DEPTH_MAX: usize = 12;
/// Minimum number of messages for a statement about all of them.
const MESSAGES_MIN: u64 = 3;
/// Number of different texts in one segment of a path that make it a variable.
const SEGMENTS_MAX: usize = 20;

/// A contract in the making.
#[derive(Debug, Default)]
pub struct Inference {
    operations: BTreeMap<(String, Vec<String>), ObservedOperation>,
}

#[derive(Debug, Default)]
struct ObservedOperation {
    calls: u64,
    variables: Vec<ObservedType>,
    query: BTreeMap<String, ObservedType>,
    body: Option<ObservedType>,
    is_form: bool,
    /// By status; a type without values for an answer without JSON.
    answers: BTreeMap<u16, ObservedType>,
}

/// The values seen at one place.
#[derive(Debug, Default)]
struct ObservedType {
    seen: u64,
    nulls: u64,
    booleans: u64,
    integers: u64,
    numbers: u64,
    texts: u64,
    /// The different texts, while they are few.
    values: BTreeSet<String>,
    /// By format, how many of the texts have it.
    formats: BTreeMap<&'static str, u64>,
    items: Option<Box<ObservedType>>,
    lists: u64,
    objects: u64,
    members: BTreeMap<String, ObservedType>,
}

impl Inference {
    /// Adds a call of this side.
    pub fn add(&mut self, call: &TrafficCall) {
        let (path, query) = call.parts();
        let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let template: Vec<String> =
            segments.iter().enumerate().map(|(at, segment)| segment_of(at, segment)).collect();
        let key = (call.method.as_str().to_ascii_lowercase(), template);
        if self.operations.len() >= OPERATIONS_MAX && !self.operations.contains_key(&key) {
            return;
        }
        let variables = segments.iter().zip(&key.1).filter(|(_, template)| template.starts_with(VARIABLE));
        let variables: Vec<&str> = variables.map(|(segment, _)| *segment).collect();
        let operation = self.operations.entry(key).or_default();
        operation.calls += 1;
        operation.variables.resize_with(variables.len(), ObservedType::default);
        for (known, text) in operation.variables.iter_mut().zip(variables) {
            known.add_text(text);
        }
        let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            names.entry(name).or_default().push(value);
        }
        for (name, values) in names {
            let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
            let known = operation.query.entry(name).or_default();
            match values.as_slice() {
                [value] => known.add_text(value),
                several => {
                    known.seen += 1;
                    known.lists += 1;
                    several.iter().for_each(|value| known.items.get_or_insert_default().add_text(value));
                }
            }
        }
        if let Some(sent) = &call.sent {
            operation.body.get_or_insert_default().add(sent, 0);
            operation.is_form |= call.is_form;
        }
        let answer = operation.answers.entry(call.status).or_default();
        if let Some(value) = &call.answer {
            answer.add(value, 0);
        }
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether no call was added.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the document.
    pub fn document(mut self, title: &str, version: &str) -> String {
        self.merge_segments();
        let mut schemas = Map::new();
        let mut paths: BTreeMap<String, Map<String, Serde>> = BTreeMap::new();
        for ((method, template), operation) in &self.operations {
            let (path, names) = render_path(template);
            let rendered = operation.render(&names, &type_name(template), &mut schemas);
            paths.entry(path).or_default().insert(method.clone(), rendered);
        }
        let document = json!({
            "openapi": "3.1.0",
            "info": {"title": title, "version": version, "description": "Drafted from recorded traffic."},
            "paths": paths,
            "components": {"schemas": schemas},
        });
        format!("{document:#}\n")
    }

    /// Makes a variable of each segment that has many different texts.
    fn merge_segments(&mut self) {
        let mut texts: BTreeMap<(String, usize, Vec<String>), BTreeSet<String>> = BTreeMap::new();
        for (method, template) in self.operations.keys() {
            for at in 1..template.len() {
                let mut around = template.clone();
                let text = std::mem::replace(&mut around[at], VARIABLE.to_owned());
                texts.entry((method.clone(), at, around)).or_default().insert(text);
            }
        }
        texts.retain(|_, texts| texts.len() > SEGMENTS_MAX);
        for ((method, at, around), texts) in texts {
            for text in texts.iter().filter(|text| *text != VARIABLE) {
                let mut template = around.clone();
                template[at].clone_from(text);
                let Some(mut one) = self.operations.remove(&(method.clone(), template)) else { continue };
                let before = around[..at].iter().filter(|segment| segment.starts_with(VARIABLE)).count();
                let mut variable = ObservedType::default();
                variable.add_text(text);
                one.variables.insert(before, variable);
                self.operations.entry((method.clone(), around.clone())).or_default().merge(one);
            }
        }
    }
}

/// A segment that is a variable; an ending may follow.
const VARIABLE: &str = "{}";

/// Returns the segment of the template: a variable for a text that looks like an id.
fn segment_of(at: usize, text: &str) -> String {
    let (stem, ending) = match text.rsplit_once('.') {
        Some((stem, ending)) if matches!(ending, "json" | "xml") => (stem, format!(".{ending}")),
        _ => (text, String::new()),
    };
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_version = stem.strip_prefix('v').is_some_and(digits) || (stem.contains('.') && digits(stem));
    let is_id = stem.contains(|c: char| c.is_ascii_digit() || matches!(c, '@' | '*')) || stem.len() >= 24;
    if at > 0 && is_id && !is_version { format!("{VARIABLE}{ending}") } else { text.to_owned() }
}

/// Returns the path with named variables, and their names.
fn render_path(template: &[String]) -> (String, Vec<String>) {
    let mut names = Vec::new();
    let path = template.iter().fold(String::new(), |path, segment| match segment.strip_prefix(VARIABLE) {
        Some(ending) => {
            let name = if names.is_empty() { "id".to_owned() } else { format!("id{}", names.len() + 1) };
            let path = format!("{path}/{{{name}}}{ending}");
            names.push(name);
            path
        }
        None => format!("{path}/{segment}"),
    });
    (path, names)
}

/// Returns the name of the type of a resource: the last fixed segments of its path.
fn type_name(template: &[String]) -> String {
    let fixed = template.iter().filter(|segment| !segment.starts_with(VARIABLE));
    let words = fixed.flat_map(|segment| segment.split(|c: char| !c.is_ascii_alphanumeric()));
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    let name: String = words.filter(|word| !word.is_empty()).map(capital).collect();
    if template.last().is_some_and(|last| last.starts_with(VARIABLE)) { name + "One" } else { name }
}

impl ObservedOperation {
    fn merge(&mut self, other: ObservedOperation) {
        self.calls += other.calls;
        self.is_form |= other.is_form;
        self.variables.resize_with(other.variables.len(), ObservedType::default);
        self.variables.iter_mut().zip(other.variables).for_each(|(known, other)| known.merge(other));
        other.query.into_iter().for_each(|(name, ty)| self.query.entry(name).or_default().merge(ty));
        other.answers.into_iter().for_each(|(status, ty)| self.answers.entry(status).or_default().merge(ty));
        if let Some(body) = other.body {
            self.body.get_or_insert_default().merge(body);
        }
    }

    fn render(&self, names: &[String], name: &str, schemas: &mut Map<String, Serde>) -> Serde {
        let path = names
            .iter()
            .zip(&self.variables)
            .map(|(name, ty)| json!({"name": name, "in": "path", "required": true, "schema": ty.render()}));
        let query = self.query.iter().map(|(name, ty)| {
            let required = self.calls >= MESSAGES_MIN && ty.seen == self.calls;
            json!({"name": name, "in": "query", "required": required, "schema": ty.render()})
        });
        let mut operation = json!({"parameters": path.chain(query).collect::<Vec<_>>()});
        if let Some(body) = &self.body {
            let media = if self.is_form { "application/x-www-form-urlencoded" } else { "application/json" };
            operation["requestBody"] = json!({
                "required": self.calls >= MESSAGES_MIN && body.seen == self.calls,
                "content": {media: {"schema": body.render()}},
            });
        }
        let answers = self.answers.iter().map(|(status, ty)| {
            let mut answer = json!({"description": format!("{} answers", ty.seen)});
            if ty.seen > 0 {
                let schema = if status / 100 == 2 { ty.render_named(name, schemas) } else { ty.render() };
                answer["content"] = json!({"application/json": {"schema": schema}});
            }
            (status.to_string(), answer)
        });
        operation["responses"] = Serde::Object(answers.collect());
        operation
    }
}

impl ObservedType {
    fn add(&mut self, value: &Value, depth: usize) {
        self.seen += 1;
        match value {
            Value::Null => self.nulls += 1,
            Value::Bool(_) => self.booleans += 1,
            Value::Number(number) if number.text().contains(['.', 'e', 'E']) => self.numbers += 1,
            Value::Number(_) => self.integers += 1,
            Value::String(text) => self.add_string(&text.decode()),
            Value::Array(items) => {
                self.lists += 1;
                let known = self.items.get_or_insert_default();
                items.iter().filter(|_| depth < DEPTH_MAX).for_each(|item| known.add(item, depth + 1));
            }
            Value::Object(members) => {
                self.objects += 1;
                for (name, member) in members.iter().filter(|_| depth < DEPTH_MAX) {
                    let name = name.decode();
                    // One member more than allowed marks the object as a map.
                    if self.members.len() <= MEMBERS_MAX || self.members.contains_key(&*name) {
                        self.members.entry(name.into_owned()).or_default().add(member, depth + 1);
                    }
                }
            }
        }
    }

    /// Adds a value of a path or query.
    fn add_text(&mut self, text: &str) {
        match (text, Number::from_text(text)) {
            ("true" | "false", _) => self.add(&Value::Bool(true), 0),
            (_, Some(number)) => self.add(&Value::Number(number), 0),
            _ => self.add(&Value::string(text), 0),
        }
    }

    fn add_string(&mut self, text: &str) {
        self.texts += 1;
        if self.values.len() <= TEXTS_MAX {
            self.values.insert(text.chars().take(64).collect());
        }
        let digits = |pattern: &str| {
            let is_as = |(c, p): (char, char)| if p == '0' { c.is_ascii_hexdigit() } else { c == p };
            text.len() == pattern.len() && text.chars().zip(pattern.chars()).all(is_as)
        };
        let format = match text {
            _ if instant(text).is_some() => "date-time",
            _ if digits("0000-00-00") => "date",
            _ if digits("00000000-0000-0000-0000-000000000000") => "uuid",
            _ => return,
        };
        *self.formats.entry(format).or_default() += 1;
    }

    fn merge(&mut self, other: ObservedType) {
        self.seen += other.seen;
        self.nulls += other.nulls;
        self.booleans += other.booleans;
        self.integers += other.integers;
        self.numbers += other.numbers;
        self.texts += other.texts;
        self.lists += other.lists;
        self.objects += other.objects;
        self.values.extend(other.values);
        other.formats.into_iter().for_each(|(name, count)| *self.formats.entry(name).or_default() += count);
        other.members.into_iter().for_each(|(name, ty)| self.members.entry(name).or_default().merge(ty));
        if let Some(items) = other.items {
            self.items.get_or_insert_default().merge(*items);
        }
    }

    /// Renders the type of an answer, with a name for its objects.
    fn render_named(&self, name: &str, schemas: &mut Map<String, Serde>) -> Serde {
        let mut named = |ty: &ObservedType, name: String| {
            let reference = json!({"$ref": format!("#/components/schemas/{name}")});
            schemas.insert(name, ty.render());
            reference
        };
        match &self.items {
            Some(items) if items.objects > 0 && self.objects == 0 => {
                json!({"type": "array", "items": named(items, format!("{name}Item"))})
            }
            _ if self.objects > 0 => named(self, name.to_owned()),
            _ => self.render(),
        }
    }

    fn render(&self) -> Serde {
        let kinds = [
            ("null", self.nulls),
            ("boolean", self.booleans),
            // Any number includes integers.
            ("integer", if self.numbers > 0 { 0 } else { self.integers }),
            ("number", self.numbers),
            ("string", self.texts),
            ("array", self.lists),
            ("object", self.objects),
        ];
        let kinds: Vec<&str> =
            kinds.into_iter().filter(|(_, seen)| *seen > 0).map(|(kind, _)| kind).collect();
        // A member that was null throughout may have any other value.
        if kinds.is_empty() || kinds == ["null"] {
            return json!({});
        }
        let mut schema = Map::new();
        schema.insert("type".into(), if let [kind] = kinds[..] { json!(kind) } else { json!(kinds) });
        let format = self.formats.iter().find(|(_, count)| **count == self.texts);
        schema.extend(format.map(|(name, _)| ("format".into(), json!(name))));
        if self.is_enumeration() && format.is_none() {
            let null = (self.nulls > 0).then_some(Serde::Null);
            let values = self.values.iter().map(|text| json!(text)).chain(null);
            schema.insert("x-values-seen".into(), values.collect());
        }
        schema.extend(self.items.as_ref().map(|items| ("items".into(), items.render())));
        if self.objects > 0 && self.members.len() > MEMBERS_MAX {
            schema.insert("additionalProperties".into(), json!({}));
        } else if self.objects > 0 {
            let all: Map<String, Serde> =
                self.members.iter().map(|(name, ty)| (name.clone(), ty.render())).collect();
            schema.insert("properties".into(), Serde::Object(all));
            let is_required = |ty: &ObservedType| self.objects >= MESSAGES_MIN && ty.seen == self.objects;
            let required: Vec<&String> =
                self.members.iter().filter(|(_, ty)| is_required(ty)).map(|(name, _)| name).collect();
            if !required.is_empty() {
                schema.insert("required".into(), json!(required));
            }
        }
        Serde::Object(schema)
    }

    /// Returns whether the texts are few words that occur again and again.
    fn is_enumeration(&self) -> bool {
        let is_word = |text: &String| {
            text.contains(|c: char| c.is_ascii_alphabetic())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        };
        let count = self.values.len() as u64;
        // Other kinds than texts are no part of an enumeration.
        let others = self.booleans + self.integers + self.numbers + self.lists + self.objects;
        count < TEXTS_MAX as u64
            && self.texts >= 20_u64.max(5 * count)
            && others == 0
            && self.values.iter().all(is_word)
    }
}
