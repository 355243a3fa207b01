//! A contract as a judge of answers: the OpenAPI document read with the project's own YAML reader,
//! its operations, and whether an answer is one of those it lists. The schemas are judged by the
//! `jsonschema` crate, not by our own code.

use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::yaml::{self, Kind, Node};

/// A contract of the messaging pack.
pub struct Document {
    /// `v2` or `v3`.
    pub side: &'static str,
    /// All operations, in the order of the document.
    pub operations: Vec<Operation>,
    root: Value,
}

/// One method of one path.
pub struct Operation {
    pub method: Method,
    pub template: String,
    spec: Value,
}

/// The answer.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.template)
    }
}

/// A file below the crate's root, read with the project's YAML reader; it must be free of findings.
pub fn read_yaml(path: &str) -> Value {
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .expect("the file is part of the project");
    let (mut sources, mut findings) = (Sources::default(), Findings::default());
    let node = yaml::parse(&mut sources, path, &bytes, &mut findings);
    assert!(findings.is_empty(), "{path} has findings");
    plain(&node.expect("a file without findings has a tree"))
}

fn plain(node: &Node) -> Value {
    match &node.kind {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(*value),
        Kind::Number(text) => serde_json::from_str(text).expect("the reader admits only JSON's numbers"),
        Kind::String(text, _) => Value::String(text.clone()),
        Kind::Seq(items) => items.iter().map(plain).collect(),
        Kind::Map(entries) => {
            Value::Object(entries.iter().map(|(key, value)| (key.name.clone(), plain(value))).collect())
        }
    }
}

impl Document {
    /// Reads the contract of a side.
    pub fn load(side: &'static str) -> Document {
        let root = read_yaml(&format!("mappings/messaging/contracts/{side}.openapi.yaml"));
        let mut operations = Vec::new();
        for (template, item) in object(&root["paths"]) {
            for (method, spec) in object(item) {
                let method =
                    Method::from_str(&method.to_uppercase()).expect("a path item holds methods only");
                operations.push(Operation { method, template: template.clone(), spec: spec.clone() });
            }
        }
        Document { side, operations, root }
    }

    /// The operation written `METHOD /template`.
    pub fn operation(&self, key: &str) -> &Operation {
        let found = self.operations.iter().find(|operation| operation.to_string() == key);
        found.unwrap_or_else(|| panic!("{} has no operation {key}", self.side))
    }

    /// Returns the header of the token, by the contract's first security scheme.
    pub fn token_header(&self) -> &str {
        let schemes = object(&self.root["components"]["securitySchemes"]);
        schemes.values().next().and_then(|scheme| scheme["name"].as_str()).unwrap_or("Authorization")
    }

    /// Parameters of an operation of one place (`path`, `query`), references followed.
    pub fn parameters<'a>(
        &'a self,
        operation: &'a Operation,
        place: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        let all = operation.spec["parameters"].as_array().expect("every operation lists its parameters");
        all.iter().map(|one| self.resolve(one)).filter(move |one| one["in"] == place)
    }

    /// The example values of the variables of a path.
    pub fn path_example(&self, operation: &Operation) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = |one: &Value| one["name"].as_str().expect("parameters have names").to_owned();
        self.parameters(operation, "path").map(|one| (name(one), text(&one["example"]))).collect()
    }

    /// Returns the first example of a request body, and the schema of its object; `None` for an
    /// operation without a body.
    pub fn body_example<'a>(&'a self, operation: &'a Operation) -> Option<(&'a Value, &'a Value)> {
        let media = operation.spec.pointer("/requestBody/content/application~1json")?;
        let example = match &media["examples"] {
            Value::Object(all) => &all.values().next().expect("examples are not empty")["value"],
            _ => &media["example"],
        };
        Some((example, self.resolve(&media["schema"])))
    }

    /// Follows a reference, if it is one.
    pub fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.root.pointer(&reference[1..]).expect("references lead somewhere"),
            None => value,
        }
    }

    /// The statuses that an operation can answer.
    pub fn statuses(&self, operation: &Operation) -> Vec<u16> {
        object(&operation.spec["responses"])
            .keys()
            .map(|code| code.parse().expect("statuses are numbers"))
            .collect()
    }

    /// The statuses that the service's document lists for the operation itself.
    pub fn listed(&self, operation: &Operation) -> Vec<u16> {
        let codes =
            operation.spec["x-listed"].as_array().expect("every operation says what is listed for it");
        codes
            .iter()
            .map(|code| u16::try_from(code.as_u64().expect("statuses are numbers")).expect("of three digits"))
            .collect()
    }

    /// Returns the violations of an operation's answer against this contract.
    pub fn faults(&self, operation: &Operation, answer: &Answer) -> Vec<String> {
        let Some(response) = operation.spec["responses"].get(answer.status.as_str()) else {
            return vec![format!("status {} is not in the contract", answer.status)];
        };
        let Some(media) = self.resolve(response).pointer("/content/application~1json") else {
            let spare = !answer.body.is_empty();
            return spare.then(|| "a body where the contract has none".to_owned()).into_iter().collect();
        };
        let kind = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if kind.is_none_or(|kind| kind.split(';').next() != Some("application/json")) {
            return vec![format!("content type {kind:?}")];
        }
        match serde_json::from_slice(&answer.body) {
            Ok(value) => self.mismatches(&media["schema"], &value),
            Err(error) => vec![format!("not JSON: {error}")],
        }
    }

    fn mismatches(&self, schema: &Value, value: &Value) -> Vec<String> {
        let schema = json!({"allOf": [schema], "components": self.root["components"]});
        let judge = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .build(&schema)
            .expect("schemas of the contract are schemas");
        judge.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }
}

/// The members of a value that is an object.
pub fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("expected an object, found {value}"))
}

/// The members of a value that is an object, to be changed.
pub fn object_mut(value: &mut Value) -> &mut Map<String, Value> {
    value.as_object_mut().expect("the value is an object")
}
