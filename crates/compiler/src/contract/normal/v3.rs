//! OpenAPI 3.0, 3.1 and 3.2 in normal form.

use super::{
    BodyContent, Dialect, ParameterPlace, ParameterStyle, RawAlso, RawBody, RawOperation, RawParameter,
    RawResponse,
};
use super::{
    by_status, entries, flag, is_form, is_laid_out, json_rank, json_rank_in, methods, named, place, text,
    together,
};
use crate::contract::PartEncoding;
use crate::contract::documents::Follow;
use crate::contract::grouped::Grouped;
use crate::yaml::{Key, Node};
use switchback_plan::{BodyFormat, ListStyle, essence, is_xml};

pub(super) fn path_item<'n>(
    path: &'n Key,
    item: &'n Node,
    follow: &Follow<'n>,
    findings: &mut Grouped,
    all: &mut Vec<RawOperation<'n>>,
) {
    let shared = parameters(item.get("parameters"), follow, findings);
    for (key, method, node) in methods(item, Dialect::V3, follow, findings) {
        let own = parameters(node.get("parameters"), follow, findings);
        all.push(RawOperation {
            method,
            path,
            span: key.span,
            // The operation's servers override those of the path.
            servers: servers(node).or_else(|| servers(item)).unwrap_or_default(),
            id: text(node, "operationId"),
            summary: text(node, "summary"),
            parameters: together(own, &shared, findings),
            body: node
                .get("requestBody")
                .and_then(|body| request_body(body, follow, findings))
                .filter(|body| !says_nothing(&key.name, body)),
            responses: responses(node, follow, findings),
        });
    }
}

/// Returns the URLs of the declared servers, with the defaults of their variables filled in, or
/// `None` without a declaration. URLs are not validated, because only servers that the pack refers
/// to are used.
fn servers(node: &Node) -> Option<Vec<String>> {
    let named = node.get("servers")?.as_seq()?;
    let address = |server: &Node| {
        let mut url = text(server, "url")?.to_owned();
        for (name, variable) in server.get("variables").and_then(Node::as_map).unwrap_or_default() {
            if let Some(default) = text(variable, "default") {
                url = url.replace(&format!("{{{}}}", name.name), default);
            }
        }
        Some(url)
    };
    Some(named.iter().filter_map(address).collect())
}

fn parameters<'n>(
    node: Option<&'n Node>,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Vec<RawParameter<'n>> {
    let mut read = Vec::new();
    for (name, word, node) in named(node, follow, findings) {
        let Some(place) = place(node, word, findings) else { continue };
        read.push(RawParameter { place, ..parameter(name, node) });
    }
    read
}

/// Reads the properties that parameters and response headers have in common.
fn parameter<'n>(name: &'n str, node: &'n Node) -> RawParameter<'n> {
    let joined = match text(node, "style") {
        Some("spaceDelimited") => ParameterStyle::Joined(ListStyle::Space),
        Some("pipeDelimited") => ParameterStyle::Joined(ListStyle::Pipe),
        _ => ParameterStyle::Joined(ListStyle::Comma),
    };
    let style = match (text(node, "style"), node.get("explode")) {
        (Some("deepObject"), _) => ParameterStyle::Deep,
        // Without `style`, `form` is assumed, with its default `explode: true`.
        (Some("form") | None, None) => ParameterStyle::Exploded,
        (_, Some(_)) if flag(node, "explode") => ParameterStyle::Exploded,
        _ => joined,
    };
    RawParameter {
        name,
        place: ParameterPlace::Header,
        required: flag(node, "required"),
        schema: node.get("schema"),
        content: node.get("content"),
        // A value with its own media type is one text.
        style: if node.get("content").is_some() { ParameterStyle::Text } else { style },
        span: node.span,
    }
}

fn request_body<'n>(node: &'n Node, follow: &Follow<'n>, findings: &mut Grouped) -> Option<RawBody<'n>> {
    let node = follow.follow_or_report(node, findings)?;
    let content = content(node.get("content"), true, follow, findings)?;
    let also = match &content {
        BodyContent::Json { .. } => also_form(node, follow),
        _ => None,
    };
    Some(RawBody { required: flag(node, "required"), content, also, span: node.span })
}

/// Returns the URL-encoded form that a body in JSON may also be.
fn also_form<'n>(body: &'n Node, follow: &Follow<'n>) -> Option<RawAlso<'n>> {
    let all = body.get("content")?.as_map()?;
    let (_, media) = all.iter().find(|(key, _)| essence(&key.name).eq_ignore_ascii_case(BodyFormat::FORM))?;
    let schema = follow.follow(media).and_then(|media| media.get("schema"));
    Some(RawAlso::Form(schema, lists(media, follow)))
}

/// Returns whether a body is optional and has no semantics for its method (RFC 9110, sections 9.3.1
/// to 9.3.8). Generators declare empty forms for such methods.
fn says_nothing(method: &str, body: &RawBody<'_>) -> bool {
    !body.required
        && match method {
            "get" | "head" | "trace" => true,
            "delete" => {
                matches!(&body.content, BodyContent::Form { schema, .. } if schema.is_none_or(has_no_members))
            }
            _ => false,
        }
}

/// Returns whether a schema declares no members.
fn has_no_members(schema: &Node) -> bool {
    let is_empty = |node: &Node| node.as_map().is_none_or(<[_]>::is_empty);
    let entries = schema.as_map().unwrap_or_default();
    entries.iter().all(|(key, value)| match key.name.as_str() {
        "$ref" | "allOf" | "oneOf" | "anyOf" => false,
        "properties" => is_empty(value),
        _ => true,
    })
}

fn responses<'n>(operation: &'n Node, follow: &Follow<'n>, findings: &mut Grouped) -> Vec<RawResponse<'n>> {
    let mut read = Vec::new();
    for (status, node) in by_status(operation, follow, findings) {
        let mut headers = Vec::new();
        for (key, header) in entries(node.get("headers"), "headers", findings) {
            let Some(header) = follow.follow_or_report(header, findings) else { continue };
            headers.push(RawParameter { span: key.span, ..parameter(&key.name, header) });
        }
        let content = content(node.get("content"), false, follow, findings);
        read.push(RawResponse { status, content, headers });
    }
    read
}

/// Returns the preferred content: JSON, otherwise a form, otherwise XML, otherwise opaque bytes.
fn content<'n>(
    node: Option<&'n Node>,
    request: bool,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Option<BodyContent<'n>> {
    let all = entries(node, "content", findings);
    let schema = |media: &'n Node| follow.follow(media).and_then(|media| media.get("schema"));
    // A range that includes JSON is opaque if its schema declares it binary.
    let is_bytes = |name: &str, media: &'n Node| {
        let schema = schema(media).and_then(|schema| follow.follow(schema));
        name.contains('*') && schema.is_some_and(|schema| text(schema, "format") == Some("binary"))
    };
    let others = |read: &Key| {
        let others = all.iter().filter(|(other, _)| other.name != read.name);
        others.map(|(key, node)| (key.name.as_str(), schema(node))).collect()
    };
    let json = all.iter().filter(|(key, node)| !is_bytes(&key.name, node));
    let json = json.filter_map(|(key, node)| Some((json_rank_in(&key.name, follow)?, key, node)));
    // The first of several equally preferred types applies.
    if let Some((_, key, node)) = json.min_by_key(|(rank, ..)| *rank) {
        return Some(BodyContent::Json { media: &key.name, schema: schema(node), others: others(key) });
    }
    // A response is never read as multipart.
    let form = all.iter().find(|(key, _)| match request {
        true => is_form(&key.name),
        false => essence(&key.name).eq_ignore_ascii_case(BodyFormat::FORM),
    });
    if let Some((key, node)) = form {
        return Some(BodyContent::Form {
            media: &key.name,
            schema: schema(node),
            others: others(key),
            parts: parts(node, follow),
            lists: lists(node, follow),
        });
    }
    // Next to other opaque types, such as images, XML is opaque as well.
    if let [(key, node), ..] = all
        && all.iter().all(|(key, _)| is_xml(essence(&key.name)))
        && let Some(schema) = schema(node).filter(|schema| is_laid_out(schema, follow))
    {
        return Some(BodyContent::Xml { media: &key.name, schema });
    }
    let media: Vec<&str> = all.iter().map(|(key, _)| key.name.as_str()).collect();
    (!media.is_empty()).then_some(BodyContent::Bytes { media })
}

/// Returns the lists of a form with a declared `encoding`. Other lists are written with brackets,
/// as most services expect, regardless of OpenAPI's default style.
fn lists<'n>(media: &'n Node, follow: &Follow<'n>) -> Vec<(&'n str, ListStyle)> {
    let encoding = follow.follow(media).and_then(|media| media.get("encoding")).and_then(Node::as_map);
    let style = |(key, node): &'n (Key, Node)| match parameter(&key.name, node).style {
        _ if node.get("style").is_none() && node.get("explode").is_none() => None,
        ParameterStyle::Exploded => Some((key.name.as_str(), ListStyle::Repeated)),
        ParameterStyle::Joined(style) => Some((key.name.as_str(), style)),
        ParameterStyle::Text | ParameterStyle::Deep => None,
    };
    encoding.unwrap_or_default().iter().filter_map(style).collect()
}

/// Returns the encodings of parts: by `contentType`, otherwise text if a style is declared.
fn parts<'n>(media: &'n Node, follow: &Follow<'n>) -> Vec<(&'n str, PartEncoding)> {
    let encoding = follow.follow(media).and_then(|media| media.get("encoding")).and_then(Node::as_map);
    let said = |(key, node): &'n (Key, Node)| {
        let of_type = text(node, "contentType").map(|named| {
            // The first of several types is the one to write.
            let named = essence(named.split(',').next().unwrap_or(""));
            match named {
                // A range such as `*/*` is not a type to write.
                _ if json_rank(named).is_some_and(|rank| rank < 3) => PartEncoding::Json(named.into()),
                _ if named.starts_with("text/plain") || named == BodyFormat::FORM => PartEncoding::Text,
                _ => PartEncoding::File,
            }
        });
        let has_style = node.get("style").is_some() || node.get("explode").is_some();
        let said = of_type.or(has_style.then_some(PartEncoding::Text))?;
        Some((key.name.as_str(), said))
    };
    encoding.unwrap_or_default().iter().filter_map(said).collect()
}
