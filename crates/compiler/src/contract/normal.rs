//! The normal form of all OpenAPI dialects, before types are read: operations with their
//! parameters, at most one body, and responses by status. Every part is a node of the document with
//! its place. [`v2`] reads Swagger 2.0, [`v3`] reads OpenAPI 3.0 to 3.2. The schemas of the
//! dialects differ only in a few keywords, and `schema.rs` accepts all of them.
//!
//! Valid constructs that do not affect calls (callbacks, links, examples, security) are skipped
//! here.

mod v2;
mod v3;

use super::PartEncoding;
use super::documents::Follow;
use super::faults;
use super::grouped::Grouped;
use super::path::OpKey;
use crate::diagnostic::{Findings, Span};
use crate::yaml::{Key, Kind, Node};
use http::Method;
use switchback_plan::ListStyle;

/// An operation as in its document.
#[derive(Debug)]
pub(super) struct RawOperation<'n> {
    pub method: Method,
    pub path: &'n Key,
    /// Place of the method in the document.
    pub span: Span,
    /// Servers of the operation, which override the document's.
    pub servers: Vec<String>,
    pub id: Option<&'n str>,
    pub summary: Option<&'n str>,
    pub parameters: Vec<RawParameter<'n>>,
    pub body: Option<RawBody<'n>>,
    pub responses: Vec<RawResponse<'n>>,
}

/// A parameter, or a header of a response.
#[derive(Clone, Debug)]
pub(super) struct RawParameter<'n> {
    pub name: &'n str,
    pub place: ParameterPlace,
    pub required: bool,
    /// `None` if it is not declared.
    pub schema: Option<&'n Node>,
    /// Media type of its text, with the schema.
    pub content: Option<&'n Node>,
    pub style: ParameterStyle,
    pub span: Span,
}

/// The location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterPlace {
    Path,
    Query,
    Header,
    Cookie,
}

/// The notation of a parameter that is a list or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterStyle {
    /// One text; a list repeats the name, and an object has one parameter per field.
    Exploded,
    /// One text that contains the list or object.
    Joined(ListStyle),
    /// One text, for any value.
    Text,
    /// `name[field]=value`
    Deep,
}

#[derive(Debug)]
pub(super) struct RawBody<'n> {
    pub required: bool,
    pub content: BodyContent<'n>,
    /// Another format with the same schema.
    pub also: Option<RawAlso<'n>>,
    pub span: Span,
}

/// A second format of a body that is JSON or a URL-encoded form.
#[derive(Debug)]
pub(super) enum RawAlso<'n> {
    /// JSON, beside a form.
    Json,
    /// A form, beside JSON: its schema, and its lists with a declared style.
    Form(Option<&'n Node>, Vec<(&'n str, ListStyle)>),
}

#[derive(Debug)]
pub(super) struct RawResponse<'n> {
    pub status: &'n Key,
    /// `None` if it has no body.
    pub content: Option<BodyContent<'n>>,
    pub headers: Vec<RawParameter<'n>>,
}

/// The content of a body.
#[derive(Debug)]
pub(super) enum BodyContent<'n> {
    /// JSON, with its media type in the document. `others` are the other media types of the body,
    /// with their schemas.
    Json { media: &'n str, schema: Option<&'n Node>, others: Vec<(&'n str, Option<&'n Node>)> },
    /// A form with the schema of an object, the encodings of its parts and lists, and the other
    /// media types of the body.
    Form {
        media: &'n str,
        schema: Option<&'n Node>,
        others: Vec<(&'n str, Option<&'n Node>)>,
        parts: Vec<(&'n str, PartEncoding)>,
        lists: Vec<(&'n str, ListStyle)>,
    },
    /// A form that consists of parameters.
    Fields { media: &'n str, fields: Vec<RawParameter<'n>> },
    /// XML with the schema of an object or list. Other media types of the body are XML as well.
    Xml { media: &'n str, schema: &'n Node },
    /// Any other content, with all its media types.
    Bytes { media: Vec<&'n str> },
}

/// The dialect of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

/// Returns the dialect of a document, or `None` after reporting an error.
pub(super) fn dialect(root: &Node, findings: &mut Findings) -> Option<Dialect> {
    if !matches!(root.kind, Kind::Map(_)) {
        // `map` reports the wrong kind.
        root.map(findings);
        return None;
    }
    let words = |node: &Node| match &node.kind {
        Kind::String(text, _) | Kind::Number(text) => text.clone(),
        _ => String::new(),
    };
    // `openapi` takes precedence if a document has both.
    let (node, dialect, known): (&Node, Dialect, &[&str]) = match (root.get("openapi"), root.get("swagger")) {
        (Some(node), _) => (node, Dialect::V3, &["3.0", "3.1", "3.2"]),
        (None, Some(node)) => (node, Dialect::V2, &["2.0", "2"]),
        (None, None) => {
            findings.push(faults::no_openapi(root.span, other_kind(root)));
            return None;
        }
    };
    let version = words(node);
    let is_known = |known: &&str| version == **known || version.starts_with(&format!("{known}."));
    if !known.iter().any(is_known) {
        findings.push(faults::openapi_version(node.span, &version));
        return None;
    }
    Some(dialect)
}

/// Returns the kind of a description that is often taken for OpenAPI.
fn other_kind(root: &Node) -> Option<&'static str> {
    let has = |name: &str| root.get(name).is_some();
    let info = |name: &str| root.get("info").and_then(|info| info.get(name));
    let schema = info("schema").and_then(Node::as_str).unwrap_or_default();
    match () {
        () if has("asyncapi") => Some("an AsyncAPI document"),
        () if schema.contains("postman") || info("_postman_id").is_some() => Some("a Postman collection"),
        () if has("swaggerVersion") => Some("a Swagger 1.x document"),
        () if has("arazzo") => Some("an Arazzo document"),
        () if has("discoveryVersion") => Some("a Google API discovery document"),
        () if has("_type") && has("resources") => Some("an Insomnia export"),
        () if has("__schema") || root.get("data").is_some_and(|data| data.get("__schema").is_some()) => {
            Some("a GraphQL schema")
        }
        () if has("log") => Some("an HTTP archive (HAR)"),
        () if has("$schema") || has("definitions") => Some("a JSON Schema"),
        () => None,
    }
}

/// Returns the named schemas, in document order.
pub(super) fn schemas(root: &Node, dialect: Dialect) -> &[(Key, Node)] {
    let map = match dialect {
        Dialect::V2 => root.get("definitions"),
        Dialect::V3 => root.get("components").and_then(|components| components.get("schemas")),
    };
    map.and_then(Node::as_map).unwrap_or_default()
}

/// Returns all operations, in document order.
pub(super) fn operations<'n>(
    dialect: Dialect,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Vec<RawOperation<'n>> {
    let root = follow.documents.root();
    let Some(paths) = root.get("paths") else { return Vec::new() };
    let Some(paths) = paths.as_map() else {
        findings.add("paths", paths.span, || faults::not_a("paths", "a map", paths));
        return Vec::new();
    };
    let mut all = Vec::new();
    // Extensions are not paths.
    for (path, item) in paths.iter().filter(|(path, _)| !path.name.starts_with("x-")) {
        let Some(followed) = follow.follow_or_report(item, findings) else { continue };
        if followed.as_map().is_none() {
            findings.add("path item", item.span, || faults::not_a("a path", "a map", item));
            continue;
        }
        match dialect {
            Dialect::V2 => v2::path_item(path, followed, follow, findings, &mut all),
            Dialect::V3 => v3::path_item(path, followed, follow, findings, &mut all),
        }
    }
    all
}

/// Returns the body of each webhook (OpenAPI 3.1), in document order. Responses to webhooks are
/// ignored.
pub(super) fn webhooks<'n>(
    dialect: Dialect,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Vec<(&'n Key, Option<RawBody<'n>>)> {
    let root = follow.documents.root();
    if dialect == Dialect::V2 {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (name, item) in entries(root.get("webhooks"), "webhooks", findings) {
        let Some(followed) = follow.follow_or_report(item, findings) else { continue };
        let mut calls = Vec::new();
        v3::path_item(name, followed, follow, findings, &mut calls);
        // A webhook with several methods is still one event; its first method determines the body.
        all.extend(calls.into_iter().next().map(|call| (name, call.body)));
    }
    all
}

/// Returns the operations of a path item with their methods. Other keys are ignored.
fn methods<'n>(
    item: &'n Node,
    dialect: Dialect,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Vec<(&'n Key, Method, &'n Node)> {
    let mut all = Vec::new();
    for (key, node) in item.as_map().unwrap_or_default() {
        let Some((_, method)) = OpKey::METHODS.into_iter().find(|(word, _)| *word == key.name) else {
            // OpenAPI 3.2 allows other methods, which are not supported.
            if dialect == Dialect::V3 && matches!(key.name.as_str(), "query" | "additionalOperations") {
                findings.add("method", key.span, || faults::other_method(key.span, &key.name));
            }
            continue;
        };
        let Some(node) = follow.follow_or_report(node, findings) else { continue };
        match node.as_map() {
            Some(_) => all.push((key, method, node)),
            None => findings.add("operation", node.span, || faults::not_a("an operation", "a map", node)),
        }
    }
    all
}

/// Returns the parameters of a list with their names and their locations (`in`).
fn named<'n>(
    node: Option<&'n Node>,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Vec<(&'n str, &'n str, &'n Node)> {
    let mut all = Vec::new();
    for item in items(node, "parameters", findings) {
        let Some(node) = follow.follow_or_report(item, findings) else { continue };
        match (text(node, "name"), text(node, "in")) {
            (Some(name), Some(word)) => all.push((name, word, node)),
            _ => findings.add("parameter", node.span, || faults::parameter_form(node.span)),
        }
    }
    all
}

/// Returns the responses of an operation by status. Extensions are not statuses.
fn by_status<'n>(
    operation: &'n Node,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Vec<(&'n Key, &'n Node)> {
    let all = entries(operation.get("responses"), "responses", findings).iter();
    let all = all.filter(|(status, _)| !status.name.starts_with("x-"));
    all.filter_map(|(status, node)| Some((status, follow.follow_or_report(node, findings)?))).collect()
}

/// Returns the items of a list. Any other node is reported and has no items.
fn items<'n>(node: Option<&'n Node>, what: &str, findings: &mut Grouped) -> &'n [Node] {
    let Some(node) = node.filter(|node| !node.is_null()) else { return &[] };
    node.as_seq().unwrap_or_else(|| {
        findings.add(what, node.span, || faults::not_a(what, "a list", node));
        &[]
    })
}

/// Returns the entries of a map. Any other node is reported and has no entries.
fn entries<'n>(node: Option<&'n Node>, what: &str, findings: &mut Grouped) -> &'n [(Key, Node)] {
    let Some(node) = node.filter(|node| !node.is_null()) else { return &[] };
    node.as_map().unwrap_or_else(|| {
        findings.add(what, node.span, || faults::not_a(what, "a map", node));
        &[]
    })
}

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.get(key)?.as_str()
}

fn flag(node: &Node, key: &str) -> bool {
    node.get(key).is_some_and(|value| value.kind == Kind::Bool(true))
}

fn place(node: &Node, word: &str, findings: &mut Grouped) -> Option<ParameterPlace> {
    match word {
        "path" => Some(ParameterPlace::Path),
        "query" => Some(ParameterPlace::Query),
        "header" => Some(ParameterPlace::Header),
        "cookie" => Some(ParameterPlace::Cookie),
        other => {
            let key = format!("in {other}");
            findings.add(&key, node.span, || faults::parameter_place(node.span, other));
            None
        }
    }
}

/// Merges the operation's parameters with those of the path that it does not override. Duplicates
/// are reported.
fn together<'n>(
    own: Vec<RawParameter<'n>>,
    shared: &[RawParameter<'n>],
    findings: &mut Grouped,
) -> Vec<RawParameter<'n>> {
    let mut all: Vec<RawParameter<'n>> = Vec::with_capacity(own.len() + shared.len());
    let same = |a: &RawParameter<'n>, b: &RawParameter<'n>| a.place == b.place && a.name == b.name;
    for parameter in own {
        match all.iter().find(|known| same(known, &parameter)) {
            None => all.push(parameter),
            Some(first) => findings.add("same parameter", parameter.span, || {
                faults::same_parameter(parameter.span, parameter.name, first.span)
            }),
        }
    }
    for parameter in shared {
        if !all.iter().any(|known| same(known, parameter)) {
            all.push(parameter.clone());
        }
    }
    all
}

/// Returns the preference of a JSON media type, lowest first, or `None` for another media type.
pub(super) fn json_rank(media: &str) -> Option<u8> {
    let essence = media.split(';').next().unwrap_or("").trim();
    let (kind, sub) = essence.split_once('/')?;
    let is = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    match (kind, sub) {
        _ if is(kind, "application") && is(sub, "json") => Some(0),
        _ if sub.to_ascii_lowercase().ends_with("+json") => {
            // A sequence of JSON texts is not one JSON text.
            (!sub.to_ascii_lowercase().contains("stream") && !is(sub, "json-seq")).then_some(1)
        }
        _ if is(kind, "text") && is(sub, "json") => Some(2),
        _ if is(kind, "application") && sub == "*" => Some(3),
        ("*", "*") => Some(4),
        _ => None,
    }
}

/// Returns whether a body in XML has a structure that can be laid out. Others, such as a text that
/// is a document of any kind, are opaque.
pub(super) fn is_laid_out<'n>(schema: &'n Node, follow: &Follow<'n>) -> bool {
    let Some(schema) = follow.follow(schema) else { return false };
    ["properties", "items", "allOf", "oneOf", "anyOf"].iter().any(|key| schema.get(key).is_some())
}

/// Returns the same preference, with the media types that the pack declares as JSON.
pub(super) fn json_rank_in(media: &str, follow: &Follow<'_>) -> Option<u8> {
    json_rank(media).or_else(|| follow.documents.declares_json(media).then_some(1))
}

/// Returns whether a media type denotes a form.
pub(super) fn is_form(media: &str) -> bool {
    let essence = media.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence == "application/x-www-form-urlencoded" || essence == "multipart/form-data"
}
