//! The document around the schemas: components, paths, operations, parameters, bodies, responses.

use super::faults;
use super::path::{OpKey, PathTemplate};
use super::schema::{Schemas, fields, reference};
use super::types::{NamedType, Type, TypeId, TypeKind, Types};
use super::{Body, Contract, Operation, Parameter, Response, StatusPattern};
use crate::diagnostic::{Findings, Span};
use crate::yaml::{Fields, Key, Keys, Node};
use std::collections::HashMap;
use std::sync::Arc;

const DOCUMENT: Keys = Keys::new(
    "an OpenAPI document",
    &["openapi", "info", "paths"],
    &["servers", "tags", "components", "security", "externalDocs", "jsonSchemaDialect"],
);
const COMPONENTS: Keys = Keys::new(
    "`components`",
    &[],
    &["schemas", "parameters", "responses", "requestBodies", "headers", "examples", "securitySchemes"],
);
const PATH_ITEM: Keys = Keys::new(
    "a path",
    &[],
    &["get", "put", "post", "delete", "options", "head", "patch", "parameters", "summary", "description"],
);
const OPERATION: Keys = Keys::new(
    "an operation",
    &["responses"],
    &[
        "parameters",
        "requestBody",
        "summary",
        "description",
        "tags",
        "operationId",
        "deprecated",
        "security",
        "externalDocs",
    ],
);
const PARAMETER: Keys = Keys::new(
    "a parameter",
    &["name", "in", "schema"],
    &["required", "description", "example", "examples", "deprecated"],
);
const HEADER: Keys =
    Keys::new("a header", &["schema"], &["required", "description", "example", "examples", "deprecated"]);
const REFERENCE: Keys = Keys::new("a reference", &["$ref"], &["summary", "description"]);
const REQUEST_BODY: Keys = Keys::new("a request body", &["content"], &["required", "description"]);
const RESPONSE: Keys = Keys::new("a response", &[], &["description", "content", "headers"]);
const MEDIA: Keys = Keys::new("a media type", &["schema"], &["example", "examples"]);

/// Reads the contract of the side called `name` from its document. Everything that can be read is read, and
/// every mistake is reported; a contract with errors serves only to find more of them.
pub fn read(name: &str, root: &Node, findings: &mut Findings) -> Contract {
    let mut contract = Contract { name: name.to_owned(), ..Contract::default() };
    let Some(document) = fields(root, &DOCUMENT, findings) else { return contract };
    check_version(&document, findings);
    let components = Components::new(&document, findings);
    let mut schemas = Schemas::new(components.schemas.iter().map(|(key, _)| key.name.as_str()));
    contract.types = named_types(components.schemas, &mut schemas, findings);
    let circular = break_cycles(&mut contract.types, findings);
    let mut reader = Reader { schemas, shared: Shared::default(), findings };
    reader.components(&components);
    let paths = document.get("paths").and_then(|node| node.map(reader.findings)).unwrap_or_default();
    for (path, item) in paths.iter().filter(|(path, _)| !path.name.starts_with("x-")) {
        reader.path_item(path, item, &mut contract);
    }
    let Reader { schemas, .. } = reader;
    if !circular {
        schemas.check_alternatives(&contract.types, findings);
    }
    contract
}

fn check_version(document: &Fields<'_>, findings: &mut Findings) {
    let Some(node) = document.get("openapi") else { return };
    if let Some(version) = node.text(findings)
        && version != "3.1"
        && !version.starts_with("3.1.")
    {
        findings.push(faults::openapi_version(node.span, version));
    }
}

/// The parts of `components` that are read, as written.
#[derive(Default)]
struct Components<'n> {
    schemas: &'n [(Key, Node)],
    parameters: &'n [(Key, Node)],
    responses: &'n [(Key, Node)],
    request_bodies: &'n [(Key, Node)],
    headers: &'n [(Key, Node)],
}

impl<'n> Components<'n> {
    fn new(document: &Fields<'n>, findings: &mut Findings) -> Components<'n> {
        let components = document.get("components").and_then(|node| fields(node, &COMPONENTS, findings));
        let Some(components) = components else { return Components::default() };
        let mut part = |name: &str| -> &'n [(Key, Node)] {
            components.get(name).and_then(|node| node.map(findings)).unwrap_or_default()
        };
        Components {
            schemas: part("schemas"),
            parameters: part("parameters"),
            responses: part("responses"),
            request_bodies: part("requestBodies"),
            headers: part("headers"),
        }
    }
}

fn named_types(entries: &[(Key, Node)], schemas: &mut Schemas, findings: &mut Findings) -> Types {
    let mut types = Types::default();
    for (key, node) in entries {
        let ty = schemas.read(node, findings);
        types.add(NamedType { name: Arc::from(key.name.as_str()), ty, span: key.span });
    }
    types
}

/// Types that lead only to themselves, through references and alternatives, become any value after they are
/// reported: everything later may follow references without looking back. Tells whether there were any.
fn break_cycles(types: &mut Types, findings: &mut Findings) -> bool {
    let mark = findings.len();
    let names: Vec<(Span, String)> = types.iter().map(|named| (named.span, named.name.to_string())).collect();
    let mut state = vec![Visit::New; names.len()];
    for start in 0..names.len() {
        // Depth first with a stack of its own: chains of references may be as long as the document.
        let mut stack = vec![(start, 0)];
        while let Some((at, next)) = stack.pop() {
            let direct = direct_references(&types.by_id(TypeId(at as u32)).ty);
            state[at] = Visit::Open;
            match direct.get(next) {
                None => state[at] = Visit::Done,
                Some(target) => {
                    stack.push((at, next + 1));
                    match state[*target] {
                        Visit::New => stack.push((*target, 0)),
                        Visit::Done => {}
                        Visit::Open => {
                            findings.push(faults::reference_cycle(names[at].0, &names[at].1));
                            types.replace(TypeId(at as u32), TypeKind::Any);
                        }
                    }
                }
            }
        }
    }
    findings.len() > mark
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    New,
    Open,
    Done,
}

fn direct_references(ty: &Type) -> Vec<usize> {
    match &ty.kind {
        TypeKind::Named(reference) => vec![reference.id.0 as usize],
        TypeKind::OneOf(alternatives) => alternatives.iter().flat_map(direct_references).collect(),
        _ => Vec::new(),
    }
}

/// Where a parameter is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Path,
    Query,
    Header,
}

type Placed = (Place, Parameter);

/// Components of one kind by name, each read once however often it is used: its mistakes are told once.
type ByName<'n, T> = HashMap<&'n str, Option<T>>;

/// What operations refer to.
#[derive(Default)]
struct Shared<'n> {
    parameters: ByName<'n, Placed>,
    responses: ByName<'n, Answer>,
    bodies: ByName<'n, Body>,
    headers: ByName<'n, Parameter>,
}

/// A response without its status.
#[derive(Clone)]
struct Answer {
    body: Option<Type>,
    headers: Vec<Parameter>,
}

struct Reader<'n, 'f> {
    schemas: Schemas,
    shared: Shared<'n>,
    findings: &'f mut Findings,
}

impl<'n> Reader<'n, '_> {
    /// Reads the components that operations may refer to. Headers come first: responses refer to them.
    fn components(&mut self, components: &Components<'n>) {
        for (key, node) in components.headers {
            let header = self.header(key, node);
            self.shared.headers.insert(&key.name, header);
        }
        for (key, node) in components.parameters {
            let parameter = self.parameter(node);
            self.shared.parameters.insert(&key.name, parameter);
        }
        for (key, node) in components.responses {
            let answer = self.answer(node);
            self.shared.responses.insert(&key.name, answer);
        }
        for (key, node) in components.request_bodies {
            let body = self.body(node);
            self.shared.bodies.insert(&key.name, body);
        }
    }

    fn path_item(&mut self, path: &'n Key, item: &'n Node, contract: &mut Contract) {
        let template = match PathTemplate::parse(&path.name) {
            Ok(template) => template,
            Err(fault) => {
                self.findings.push(faults::path_form(path.span, &path.name, &fault));
                return;
            }
        };
        let Some(item) = fields(item, &PATH_ITEM, self.findings) else { return };
        let shared = self.parameters(item.get("parameters"));
        for (word, method) in OpKey::METHODS {
            let Some((key, node)) = item.entry(word) else { continue };
            let op = OpKey { method, path: template.clone() };
            let Some(operation) = self.operation(op, key, node, &shared) else { continue };
            let (op, span) = (operation.key.clone(), operation.span);
            if let Err(earlier) = contract.add(operation) {
                self.findings.push(faults::same_operation(span, &op, &earlier.key, earlier.span));
            }
        }
    }

    /// One operation; `shared` are the parameters of its path, which its own parameters replace by name.
    fn operation(&mut self, key: OpKey, word: &Key, node: &'n Node, shared: &[Placed]) -> Option<Operation> {
        let operation = fields(node, &OPERATION, self.findings)?;
        let mut parameters = self.parameters(operation.get("parameters"));
        let own = parameters.len();
        for (place, parameter) in shared {
            let replaced = |(p, own): &Placed| p == place && own.name == parameter.name;
            if !parameters[..own].iter().any(replaced) {
                parameters.push((*place, parameter.clone()));
            }
        }
        let mut of = |wanted: Place| -> Vec<Parameter> {
            parameters.extract_if(.., |(place, _)| *place == wanted).map(|(_, parameter)| parameter).collect()
        };
        let (path_params, query, headers) = (of(Place::Path), of(Place::Query), of(Place::Header));
        let path_params = self.in_order_of_path(&key, word.span, path_params);
        let body = operation.get("requestBody").and_then(|node| self.body_or_reference(node));
        let responses = self.responses(&key, word, operation.get("responses"));
        let summary = operation.get("summary").and_then(|node| node.text(self.findings)).map(str::to_owned);
        Some(Operation { key, path_params, query, headers, body, responses, summary, span: word.span })
    }

    fn in_order_of_path(&mut self, key: &OpKey, span: Span, mut given: Vec<Parameter>) -> Vec<Parameter> {
        let mut ordered = Vec::new();
        for variable in key.path.variables() {
            match given.iter().position(|parameter| parameter.name == variable) {
                Some(index) => ordered.push(given.remove(index)),
                None => self.findings.push(faults::variable_without_parameter(span, key, variable)),
            }
        }
        for extra in given {
            let variables = key.path.variables();
            self.findings.push(faults::parameter_without_variable(extra.span, key, &extra.name, variables));
        }
        ordered
    }

    fn parameters(&mut self, node: Option<&'n Node>) -> Vec<Placed> {
        let mut read: Vec<Placed> = Vec::new();
        for item in node.and_then(|node| node.list(self.findings)).unwrap_or_default() {
            let placed = match self.referred(item, "parameters", |shared| &shared.parameters) {
                Referred::No => self.parameter(item),
                Referred::To(placed) => placed,
            };
            let Some((place, parameter)) = placed else { continue };
            match read.iter().find(|(p, other)| *p == place && other.name == parameter.name) {
                None => read.push((place, parameter)),
                Some((_, first)) => {
                    self.findings.push(faults::same_parameter(item.span, &parameter.name, first.span));
                }
            }
        }
        read
    }

    fn parameter(&mut self, node: &Node) -> Option<Placed> {
        let fields = fields(node, &PARAMETER, self.findings)?;
        let name = fields.get("name").and_then(|node| node.text(self.findings));
        let place = fields.get("in").and_then(|node| self.place(node));
        let ty = fields.get("schema").map(|node| self.schemas.read(node, self.findings));
        let required = self.required(&fields);
        let (name, place) = (name?.to_owned(), place?);
        if place == Place::Path && !required {
            self.findings.push(faults::optional_path_parameter(node.span, &name));
        }
        let ty = ty.unwrap_or_else(|| Type::any(node.span));
        Some((place, Parameter { name, ty, required: required || place == Place::Path, span: node.span }))
    }

    fn place(&mut self, node: &Node) -> Option<Place> {
        match node.text(self.findings)? {
            "path" => Some(Place::Path),
            "query" => Some(Place::Query),
            "header" => Some(Place::Header),
            other => {
                self.findings.push(faults::parameter_place(node.span, other));
                None
            }
        }
    }

    fn required(&mut self, fields: &Fields<'_>) -> bool {
        fields.get("required").and_then(|node| node.boolean(self.findings)).unwrap_or(false)
    }

    fn header(&mut self, key: &Key, node: &Node) -> Option<Parameter> {
        let header = fields(node, &HEADER, self.findings)?;
        let ty = header.get("schema").map(|node| self.schemas.read(node, self.findings));
        let required = self.required(&header);
        let ty = ty.unwrap_or_else(|| Type::any(node.span));
        Some(Parameter { name: key.name.clone(), ty, required, span: key.span })
    }

    fn body_or_reference(&mut self, node: &'n Node) -> Option<Body> {
        match self.referred(node, "requestBodies", |shared| &shared.bodies) {
            Referred::No => self.body(node),
            Referred::To(body) => body,
        }
    }

    fn body(&mut self, node: &Node) -> Option<Body> {
        let body = fields(node, &REQUEST_BODY, self.findings)?;
        let required = self.required(&body);
        let ty = body.get("content").and_then(|node| self.json(node))?;
        Some(Body { ty, required, span: node.span })
    }

    fn responses(&mut self, key: &OpKey, word: &Key, node: Option<&'n Node>) -> Vec<Response> {
        let entries = node.and_then(|node| node.map(self.findings));
        if entries.is_some_and(<[_]>::is_empty) {
            self.findings.push(faults::no_responses(word.span, key));
        }
        let mut read = Vec::new();
        for (status, node) in entries.unwrap_or_default().iter().filter(|(k, _)| !k.name.starts_with("x-")) {
            let answer = match self.referred(node, "responses", |shared| &shared.responses) {
                Referred::No => self.answer(node),
                Referred::To(answer) => answer,
            };
            match (StatusPattern::parse(&status.name), answer) {
                (None, _) => self.findings.push(faults::status_form(status.span, &status.name)),
                (Some(_), None) => {}
                (Some(pattern), Some(Answer { body, headers })) => {
                    read.push(Response { status: pattern, body, headers, span: status.span });
                }
            }
        }
        read
    }

    fn answer(&mut self, node: &'n Node) -> Option<Answer> {
        let response = fields(node, &RESPONSE, self.findings)?;
        let body = response.get("content").and_then(|node| self.json(node));
        let entries = response.get("headers").and_then(|node| node.map(self.findings)).unwrap_or_default();
        let mut headers = Vec::new();
        for (key, node) in entries {
            let header = match self.referred(node, "headers", |shared| &shared.headers) {
                Referred::No => self.header(key, node),
                Referred::To(header) => header.map(|header| Parameter { name: key.name.clone(), ..header }),
            };
            headers.extend(header);
        }
        Some(Answer { body, headers })
    }

    /// The type under `application/json`; `None` for an empty body, and after a finding.
    fn json(&mut self, content: &Node) -> Option<Type> {
        let mut json = None;
        for (key, node) in content.map(self.findings)? {
            if !is_json(&key.name) {
                self.findings.push(faults::media_type(key.span, &key.name));
                continue;
            }
            let schema = fields(node, &MEDIA, self.findings)?.get("schema")?;
            json = Some(self.schemas.read(schema, self.findings));
        }
        json
    }

    /// What a `$ref` leads to, if the node is one.
    fn referred<T: Clone>(
        &mut self,
        node: &Node,
        kind: &str,
        part: impl for<'s> Fn(&'s Shared<'n>) -> &'s ByName<'n, T>,
    ) -> Referred<T> {
        if node.get("$ref").is_none() {
            return Referred::No;
        }
        let Some(target) = fields(node, &REFERENCE, self.findings).and_then(|fields| fields.get("$ref"))
        else {
            return Referred::To(None);
        };
        let Some(name) = reference(target, kind, self.findings) else { return Referred::To(None) };
        let known = part(&self.shared);
        match known.get(name) {
            Some(found) => Referred::To(found.clone()),
            None => {
                let mut names: Vec<&str> = known.keys().copied().collect();
                names.sort_unstable();
                self.findings.push(faults::unknown_reference(target.span, kind, name, names.into_iter()));
                Referred::To(None)
            }
        }
    }
}

/// Whether a node is a reference, and to what; nothing after a finding.
enum Referred<T> {
    No,
    To(Option<T>),
}

/// RFC 9110 section 8.3.1: parameters after a semicolon do not change the type.
fn is_json(media_type: &str) -> bool {
    media_type
        .split(';')
        .next()
        .is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}
