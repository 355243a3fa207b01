//! Draws the documents of both sides: one document, then edits on either copy of it.
//!
//! Schemas are drawn in the words of JSON Schema 2020-12 and rewritten where a document is OpenAPI 3.0.

use super::edits::{self, Change};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The names of the sides.
pub const SIDES: [&str; 2] = ["a", "b"];

/// The direction in which a message crosses, from the client's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    Request,
    Answer,
}

/// One drawn pack.
pub struct Case {
    pub seed: u64,
    /// As the compiler and the judge read them.
    pub documents: [Value; 2],
    pub edits: Vec<Edit>,
    pub lines: Lines,
}

/// How the pack maps operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// `identical: keep` alone.
    Kept,
    /// A `pair` for each operation, with shapes for its types.
    Shapes,
    /// As `init` drafts it.
    Drafted,
}

/// One difference between the documents.
#[derive(Clone, Debug)]
pub struct Edit {
    pub row: &'static str,
    /// The side whose document was edited.
    pub side: usize,
    pub pointer: String,
    /// The operations and messages that the edited place belongs to.
    pub uses: Vec<(String, Message)>,
    pub change: Change,
}

impl Edit {
    /// Whether a message of an operation can be valid for its sender and invalid for its receiver.
    pub fn narrows(&self, operation: &str, message: Message, sender: usize) -> bool {
        let is_used = self.uses.iter().any(|(key, of)| key == operation && *of == message);
        let change = self.change.of(message);
        is_used && if self.side == sender { change.loses_as_source() } else { change.loses_as_target() }
    }
}

/// A place in a document that edits can change.
#[derive(Clone, Debug)]
pub struct Site {
    pub pointer: String,
    pub kind: SiteKind,
    pub uses: Vec<(String, Message)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteKind {
    Operation,
    /// A schema within a body.
    Body,
    /// A schema of a parameter or a header field.
    Text,
}

/// Draws a case out of its seed.
pub fn case(seed: u64) -> Case {
    let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let lines = [Lines::Kept, Lines::Kept, Lines::Shapes, Lines::Drafted][(seed % 4) as usize];
    let base = document(&mut rng, lines);
    let mut documents = [base.clone(), base];
    let is_new = [rng.u8(..4) != 0, rng.u8(..4) != 0];
    let mut drawn: Vec<Edit> = Vec::new();
    for _ in 0..[0, 1, 1, 2, 3, 4][rng.usize(..6)] {
        if let Some(edit) = edits::draw(&mut rng, &mut documents, is_new, lines, &drawn) {
            drawn.push(edit);
        }
    }
    let versions = [0, 1].map(|side| if is_new[side] { "3.1.0" } else { "3.0.3" });
    let [a, b] = documents;
    let documents = [render(a, versions[0]), render(b, versions[1])];
    Case { seed, documents, edits: drawn, lines }
}

/// The operations of a document: their keys, such as `GET /things/{id}`, and pointers.
pub fn operations(document: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in ["get", "put", "post", "delete"].into_iter().filter(|method| item.get(method).is_some())
        {
            let pointer = format!("/paths/{}/{method}", escape(path));
            found.push((format!("{} {path}", method.to_uppercase()), pointer));
        }
    }
    found
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// All places of a document that edits can change.
pub fn sites(document: &Value) -> Vec<Site> {
    let mut sites = Vec::new();
    for (key, pointer) in operations(document) {
        let uses = [Message::Request, Message::Answer].map(|message| (key.clone(), message));
        add(&mut sites, &pointer, SiteKind::Operation, &uses[0]);
        add(&mut sites, &pointer, SiteKind::Operation, &uses[1]);
        let operation = document.pointer(&pointer).unwrap_or(&Value::Null);
        for (at, parameter) in operation["parameters"].as_array().into_iter().flatten().enumerate() {
            if parameter["in"] != "path" {
                add(&mut sites, &format!("{pointer}/parameters/{at}/schema"), SiteKind::Text, &uses[0]);
            }
        }
        for media in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            let body = format!("{pointer}/requestBody/content/{}/schema", escape(media.0));
            add_schemas(&mut sites, document, &body, &uses[0]);
        }
        for (status, response) in operation["responses"].as_object().into_iter().flatten() {
            let response_at = format!("{pointer}/responses/{status}");
            for header in response["headers"].as_object().into_iter().flatten() {
                let schema = format!("{response_at}/headers/{}/schema", escape(header.0));
                add(&mut sites, &schema, SiteKind::Text, &uses[1]);
            }
            for media in response["content"].as_object().into_iter().flatten() {
                let body = format!("{response_at}/content/{}/schema", escape(media.0));
                add_schemas(&mut sites, document, &body, &uses[1]);
            }
        }
    }
    sites
}

fn add(sites: &mut Vec<Site>, pointer: &str, kind: SiteKind, used: &(String, Message)) {
    match sites.iter_mut().find(|site| site.pointer == pointer) {
        Some(site) if site.uses.contains(used) => {}
        Some(site) => site.uses.push(used.clone()),
        None => sites.push(Site { pointer: pointer.to_owned(), kind, uses: vec![used.clone()] }),
    }
}

fn add_schemas(sites: &mut Vec<Site>, document: &Value, pointer: &str, used: &(String, Message)) {
    let Some(schema) = document.pointer(pointer) else { return };
    if let Some(reference) = schema["$ref"].as_str() {
        return add_schemas(sites, document, &reference[1..], used);
    }
    add(sites, pointer, SiteKind::Body, used);
    for (name, _) in schema["properties"].as_object().into_iter().flatten() {
        add_schemas(sites, document, &format!("{pointer}/properties/{}", escape(name)), used);
    }
    if schema["items"].is_object() {
        add_schemas(sites, document, &format!("{pointer}/items"), used);
    }
}

/// Patterns with texts that match and texts that do not.
pub const PATTERNS: [(&str, &[&str], &[&str]); 3] = [
    ("^[a-m]+$", &["a", "dcba", "mmmmmmmm"], &["x", "A1", ""]),
    ("^[a-z]+$", &["a", "xyz", "qqqqqqqq"], &["A", "9", ""]),
    ("^[0-9]{2}$", &["07", "99"], &["7", "123", "xy"]),
];

/// A schema of a scalar.
fn scalar(rng: &mut fastrand::Rng) -> Value {
    let mut schema = match rng.u8(..16) {
        0 | 1 => json!({"type": "string"}),
        2 => json!({"type": "string", "minLength": 2}),
        3 => json!({"type": "string", "maxLength": 6}),
        4 => json!({"type": "string", "pattern": PATTERNS[rng.usize(..PATTERNS.len())].0}),
        5 => json!({"type": "string", "format": (["date", "date-time", "uuid"][rng.usize(..3)])}),
        6 => json!({"type": "string", "enum": ["abc", "def", "xyz"]}),
        7 | 8 => json!({"type": "integer"}),
        9 => json!({"type": "integer", "format": (["int32", "int64"][rng.usize(..2)])}),
        10 => json!({"type": "integer", "minimum": 1}),
        11 => json!({"type": "integer", "maximum": 50}),
        12 => json!({"type": "integer", "enum": [1, 2, 3]}),
        13 => json!({"type": "number"}),
        14 => json!({"type": "number", "minimum": 0}),
        _ => json!({"type": "boolean"}),
    };
    if rng.u8(..8) == 0 {
        schema["default"] = super::values::any(&schema);
    }
    schema
}

/// A schema of a member.
fn member(rng: &mut fastrand::Rng, depth: u8) -> Value {
    let mut schema = match rng.u8(..8) {
        0 => {
            let mut list = json!({"type": "array", "items": scalar(rng)});
            if rng.u8(..3) == 0 {
                list["maxItems"] = json!(4);
            }
            list
        }
        1 if depth < 2 => object(rng, depth + 1),
        2 => json!({"type": "object", "additionalProperties": scalar(rng)}),
        _ => scalar(rng),
    };
    if rng.u8(..6) == 0 && schema.get("default").is_none() {
        nullable(&mut schema);
    }
    schema
}

/// Adds null to the values of a schema.
pub fn nullable(schema: &mut Value) {
    if let Some(of) = schema["type"].as_str().map(str::to_owned) {
        schema["type"] = json!([of, "null"]);
        if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            values.push(Value::Null);
        }
    }
}

fn object(rng: &mut fastrand::Rng, depth: u8) -> Value {
    let names = ["red", "green", "blue", "grey", "pink"];
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for name in names.iter().take(1 + rng.usize(..if depth == 0 { 5 } else { 2 })) {
        properties.insert((*name).to_owned(), member(rng, depth));
        if rng.bool() {
            required.push(json!(name));
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if rng.u8(..4) == 0 {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

fn document(rng: &mut fastrand::Rng, lines: Lines) -> Value {
    let thing = json!({"$ref": "#/components/schemas/Thing"});
    let mut paths = json!({});
    let wanted = 1 + rng.usize(..3);
    let mut forms = ["get /things/{id}", "post /things", "put /things/{id}", "get /things", "get /shelf"];
    rng.shuffle(&mut forms);
    for form in forms.iter().take(wanted) {
        let (method, path) = form.split_once(' ').unwrap_or_default();
        let body = |rng: &mut fastrand::Rng| match rng.bool() || lines != Lines::Kept {
            true => thing.clone(),
            false => object(rng, 0),
        };
        let mut operation = json!({"responses": {}});
        let mut parameters = Vec::new();
        if path.contains("{id}") {
            parameters
                .push(json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}));
        }
        for (name, place) in
            [("size", "query"), ("tags", "query"), ("X-Depth", "header"), ("theme", "cookie")]
        {
            if rng.u8(..3) != 0 {
                continue;
            }
            let mut schema = scalar(rng);
            if name == "tags" || (place == "header" && rng.u8(..3) == 0) {
                schema = json!({"type": "array", "items": schema});
            }
            let mut parameter = json!({"name": name, "in": place, "schema": schema});
            if rng.u8(..4) == 0 {
                parameter["required"] = json!(true);
            }
            parameters.push(parameter);
        }
        operation["parameters"] = json!(parameters);
        if method != "get" {
            let required = rng.u8(..4) != 0;
            let content = json!({"application/json": {"schema": body(rng)}});
            operation["requestBody"] = json!({"required": required, "content": content});
        }
        let status = if method == "post" { "201" } else { "200" };
        let mut answer = body(rng);
        if form.ends_with("things") && method == "get" {
            answer = json!({"type": "array", "items": answer});
        }
        let mut success = json!({"description": "it", "content": {"application/json": {"schema": answer}}});
        if rng.u8(..3) == 0 {
            let mut header = json!({"schema": scalar(rng)});
            if rng.u8(..3) == 0 {
                header = json!({"schema": {"type": "array", "items": header["schema"]}});
            }
            if rng.bool() {
                header["required"] = json!(true);
            }
            success["headers"] = json!({"X-Left": header});
        }
        operation["responses"][status] = success;
        if rng.bool() {
            operation["responses"]["404"] = json!({"description": "none", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}});
        }
        paths[path][method] = operation;
    }
    let error =
        json!({"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "drawn", "version": "1"},
        "paths": paths,
        "components": {"schemas": {"Error": error, "Thing": object(rng, 0)}},
    })
}

/// Rewrites a document in the words of its version.
fn render(mut document: Value, version: &str) -> Value {
    document["openapi"] = json!(version);
    if version.starts_with("3.0") {
        to_3_0(&mut document);
    }
    document
}

/// Nullable and exclusive bounds, as OpenAPI 3.0 writes them.
fn to_3_0(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(to_3_0),
        Value::Object(members) => {
            members.values_mut().for_each(to_3_0);
            if let Some(Value::Array(types)) = members.get("type") {
                let of = types.iter().find(|one| *one != "null").cloned().unwrap_or_default();
                members.insert("type".to_owned(), of);
                members.insert("nullable".to_owned(), json!(true));
            }
            for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
                if members.get(exclusive).is_some_and(Value::is_number) {
                    let value = members.insert(exclusive.to_owned(), json!(true)).unwrap_or_default();
                    members.insert(bound.to_owned(), value);
                }
            }
            if let Some(value) = members.remove("const") {
                members.insert("enum".to_owned(), json!([value]));
            }
        }
        _ => {}
    }
}

impl Case {
    /// The mapping lines that an author would write first; none where all operations are kept.
    pub fn mapping(&self) -> Option<String> {
        if self.lines != Lines::Shapes {
            return None;
        }
        let thing = |side: usize| self.documents[side].pointer("/components/schemas/Thing");
        let names = |side: usize| -> Vec<String> {
            let members = thing(side).and_then(|thing| thing["properties"].as_object());
            members.into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        let (old, new) = (names(0), names(1));
        let mut text = "mapping: 1\n".to_owned();
        let is_used = self.documents[0]["paths"].to_string().contains("schemas/Thing");
        if is_used {
            let same: Vec<&str> = old.iter().filter(|name| new.contains(name)).map(String::as_str).collect();
            let _ = write!(text, "shapes:\n  Thing:\n    of: {{a: Thing, b: Thing}}\n");
            if !same.is_empty() {
                let _ = writeln!(text, "    same: [{}]", same.join(", "));
            }
            let (gone, came): (Vec<_>, Vec<_>) = (
                old.iter().filter(|name| !new.contains(name)).collect(),
                new.iter().filter(|name| !old.contains(name)).collect(),
            );
            let renames: Vec<String> =
                gone.iter().zip(&came).map(|(old, new)| format!("{old}: {new}")).collect();
            if !renames.is_empty() {
                let _ = writeln!(text, "    rename: {{{}}}", renames.join(", "));
            }
        }
        text.push_str("routes:\n");
        for (key, pointer) in operations(&self.documents[0]) {
            let _ = writeln!(text, "  - pair: {{a: '{key}', b: '{key}'}}");
            let operation = self.documents[0].pointer(&pointer).unwrap_or(&Value::Null);
            let queries = |side: usize| -> Vec<String> {
                let operation = self.documents[side].pointer(&pointer).unwrap_or(&Value::Null);
                let all = operation["parameters"].as_array().into_iter().flatten();
                let of_query = all.filter(|one| one["in"] == "query");
                of_query.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
            };
            let both: Vec<String> = queries(0).into_iter().filter(|name| queries(1).contains(name)).collect();
            if !both.is_empty() {
                let _ = writeln!(text, "    query: [{}]", both.join(", "));
            }
            if operation.get("requestBody").is_some() {
                text.push_str("    request: Thing\n");
            }
            let is_list = key == "GET /things";
            let _ = writeln!(text, "    response: {}", if is_list { "[Thing]" } else { "Thing" });
        }
        Some(text)
    }

    /// A description for people who look into a failure.
    pub fn description(&self) -> String {
        let mut text = format!("seed {}, {:?}\n", self.seed, self.lines);
        for edit in &self.edits {
            let side = SIDES[edit.side];
            let _ = writeln!(text, "  edit of {side}: {} at {} ({:?})", edit.row, edit.pointer, edit.change);
        }
        text
    }

    /// The same with the documents and the mapping.
    pub fn files(&self) -> String {
        let mut text = self.description();
        for (side, document) in SIDES.iter().zip(&self.documents) {
            let _ = writeln!(text, "# {side}.json\n{document}");
        }
        text + &self.mapping().unwrap_or_default()
    }
}
