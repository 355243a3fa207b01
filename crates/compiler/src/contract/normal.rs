//! The one form that all dialects of OpenAPI are brought into before anything is typed: operations with their parameters, one
//! body and answers by status, each a node of the document with its place. 2.0 is read in [`v2`], 3.0 to 3.2 in [`v3`]; of
//! schemas the dialects differ in a few keywords only, which `schema.rs` takes as they come.
//!
//! What is legal and says nothing about calls (callbacks, links, examples, security) is passed over here.

mod v2;
mod v3;

use super::PartEncoding;
use super::documents::Follow;
use super::faults;
use super::grouped::Grouped;
use crate::diagnostic::{Findings, Span};
use crate::yaml::{Key, Kind, Node};
use http::Method;
use switchback_plan::ListStyle;

/// An operation as its document has it.
#[derive(Debug)]
pub(super) struct RawOperation<'n> {
    pub method: Method,
    pub path: &'n Key,
    /// The method in the document.
    pub span: Span,
    /// Servers of its own, instead of the document's.
    pub servers: Vec<String>,
    pub id: Option<&'n str>,
    pub summary: Option<&'n str>,
    pub parameters: Vec<RawParameter<'n>>,
    pub body: Option<RawBody<'n>>,
    pub responses: Vec<RawResponse<'n>>,
}

/// A parameter, or a header of an answer.
#[derive(Clone, Debug)]
pub(super) struct RawParameter<'n> {
    pub name: &'n str,
    pub place: Place,
    pub required: bool,
    /// None where it is not described.
    pub schema: Option<&'n Node>,
    /// The media type that its text is of, with its schema.
    pub content: Option<&'n Node>,
    pub style: Style,
    pub span: Span,
}

/// Where a parameter is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

/// How a parameter is written that is a list or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// One text; lists repeat the name. Objects are fields side by side.
    Exploded,
    /// One text, lists and objects within it.
    Joined(ListStyle),
    /// One text, whatever it is.
    Text,
    /// `name[field]=value`
    Deep,
}

#[derive(Debug)]
pub(super) struct RawBody<'n> {
    pub required: bool,
    pub content: Content<'n>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) struct RawResponse<'n> {
    pub status: &'n Key,
    /// None: it has no body.
    pub content: Option<Content<'n>>,
    pub headers: Vec<RawParameter<'n>>,
}

/// What a body holds.
#[derive(Debug)]
pub(super) enum Content<'n> {
    /// JSON, with its media type as the document has it; and the other media types that the body may have, with their schemas.
    Json { media: &'n str, schema: Option<&'n Node>, others: Vec<(&'n str, Option<&'n Node>)> },
    /// A form, by a schema of an object; what it says of how parts and lists are written; and the other media types.
    Form {
        media: &'n str,
        schema: Option<&'n Node>,
        others: Vec<(&'n str, Option<&'n Node>)>,
        parts: Vec<(&'n str, PartEncoding)>,
        lists: Vec<(&'n str, ListStyle)>,
    },
    /// A form, by parameters.
    Fields { media: &'n str, fields: Vec<RawParameter<'n>> },
    /// Anything else, with all its media types.
    Bytes { media: Vec<&'n str> },
}

/// Which dialect a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

/// The dialect of a document; none after an error.
pub(super) fn dialect(root: &Node, findings: &mut Findings) -> Option<Dialect> {
    if !matches!(root.kind, Kind::Map(_)) {
        root.map(findings);
        return None;
    }
    let words = |node: &Node| match &node.kind {
        Kind::String(text, _) | Kind::Number(text) => text.clone(),
        _ => String::new(),
    };
    let (node, dialect, known): (&Node, Dialect, &[&str]) = match (root.get("openapi"), root.get("swagger")) {
        (Some(node), _) => (node, Dialect::V3, &["3.0", "3.1", "3.2"]),
        (None, Some(node)) => (node, Dialect::V2, &["2.0", "2"]),
        (None, None) => {
            findings.push(faults::no_openapi(root.span));
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

/// The schemas that have names of their own, in the order of the document.
pub(super) fn schemas(root: &Node, dialect: Dialect) -> &[(Key, Node)] {
    let map = match dialect {
        Dialect::V2 => root.get("definitions"),
        Dialect::V3 => root.get("components").and_then(|components| components.get("schemas")),
    };
    map.and_then(Node::as_map).unwrap_or_default()
}

/// All operations, in the order of the document.
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
    for (path, item) in paths.iter().filter(|(path, _)| !path.name.starts_with("x-")) {
        let Some(followed) = follow.followed(item, findings) else { continue };
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

/// The body of each webhook (OpenAPI 3.1), in the order of the document. How it is answered says nothing here.
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
        let Some(followed) = follow.followed(item, findings) else { continue };
        let mut calls = Vec::new();
        v3::path_item(name, followed, follow, findings, &mut calls);
        // A webhook of several methods is one event all the same: what comes first says what it brings.
        all.extend(calls.into_iter().next().map(|call| (name, call.body)));
    }
    all
}

/// The items of a list, and nothing for what is none.
fn items<'n>(node: Option<&'n Node>, what: &str, findings: &mut Grouped) -> &'n [Node] {
    let Some(node) = node.filter(|node| !node.is_null()) else { return &[] };
    node.as_seq().unwrap_or_else(|| {
        findings.add(what, node.span, || faults::not_a(what, "a list", node));
        &[]
    })
}

/// The entries of a map, and nothing for what is none.
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

fn place(node: &Node, word: &str, findings: &mut Grouped) -> Option<Place> {
    match word {
        "path" => Some(Place::Path),
        "query" => Some(Place::Query),
        "header" => Some(Place::Header),
        "cookie" => Some(Place::Cookie),
        other => {
            let key = format!("in {other}");
            findings.add(&key, node.span, || faults::parameter_place(node.span, other));
            None
        }
    }
}

/// Own parameters, and those of the path that they do not replace; each once.
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

/// How near a media type is to JSON; none for what is not JSON.
pub(super) fn json_rank(media: &str) -> Option<u8> {
    let essence = media.split(';').next().unwrap_or("").trim();
    let (kind, sub) = essence.split_once('/')?;
    let is = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    match (kind, sub) {
        _ if is(kind, "application") && is(sub, "json") => Some(0),
        _ if sub.to_ascii_lowercase().ends_with("+json") => {
            // Texts in a sequence are not one JSON text.
            (!sub.to_ascii_lowercase().contains("stream") && !is(sub, "json-seq")).then_some(1)
        }
        _ if is(kind, "text") && is(sub, "json") => Some(2),
        _ if is(kind, "application") && sub == "*" => Some(3),
        ("*", "*") => Some(4),
        _ => None,
    }
}

/// Whether a media type is one of forms.
pub(super) fn is_form(media: &str) -> bool {
    let essence = media.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence == "application/x-www-form-urlencoded" || essence == "multipart/form-data"
}
