//! Swagger 2.0 in normal form: `body` and `formData` parameters become bodies with the media types
//! of `consumes` and `produces`.

use super::{
    BodyContent, Dialect, ParameterPlace, ParameterStyle, RawAlso, RawBody, RawOperation, RawParameter,
    RawResponse,
};
use super::{
    by_status, entries, flag, is_laid_out, items, json_rank_in, methods, named, place, text, together,
};
use crate::contract::documents::Follow;
use crate::contract::grouped::Grouped;
use crate::diagnostic::Span;
use crate::yaml::{Key, Node};
use switchback_plan::{ListStyle, essence, is_json, is_xml};

const JSON: &str = "application/json";
const URLENCODED: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// A parameter of the document, of any kind.
#[derive(Clone)]
enum V2Parameter<'n> {
    Parameter(RawParameter<'n>),
    /// `in: body`
    Body {
        schema: Option<&'n Node>,
        required: bool,
        span: Span,
    },
    /// `in: formData`
    Field {
        field: RawParameter<'n>,
        is_file: bool,
    },
}

pub(super) fn path_item<'n>(
    path: &'n Key,
    item: &'n Node,
    follow: &Follow<'n>,
    findings: &mut Grouped,
    all: &mut Vec<RawOperation<'n>>,
) {
    let shared = parameters(item.get("parameters"), follow, findings);
    for (key, method, node) in methods(item, Dialect::V2, follow, findings) {
        let own = parameters(node.get("parameters"), follow, findings);
        let of_call = |written: &[V2Parameter<'n>]| -> Vec<RawParameter<'n>> {
            written
                .iter()
                .filter_map(|written| match written {
                    V2Parameter::Parameter(parameter) => Some(parameter.clone()),
                    _ => None,
                })
                .collect()
        };
        // An operation's own body overrides the body of the path.
        let has_body = own.iter().any(|written| !matches!(written, V2Parameter::Parameter(_)));
        let of_body = if has_body { &own } else { &shared };
        all.push(RawOperation {
            method,
            path,
            span: key.span,
            // Swagger declares servers only for the complete document.
            servers: Vec::new(),
            id: text(node, "operationId"),
            summary: text(node, "summary"),
            parameters: together(of_call(&own), &of_call(&shared), findings),
            body: body(of_body, node, follow, findings),
            responses: responses(node, follow, findings),
        });
    }
}

fn parameters<'n>(
    node: Option<&'n Node>,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Vec<V2Parameter<'n>> {
    let mut read = Vec::new();
    for (name, word, node) in named(node, follow, findings) {
        let required = flag(node, "required");
        let plain = RawParameter {
            name,
            place: ParameterPlace::Query,
            required,
            // A parameter without `schema` describes its value by its own keys.
            schema: Some(node.get("schema").unwrap_or(node)),
            content: None,
            style: style(node),
            span: node.span,
        };
        read.extend(match word {
            "body" => Some(V2Parameter::Body { schema: node.get("schema"), required, span: node.span }),
            "formData" => {
                Some(V2Parameter::Field { field: plain, is_file: text(node, "type") == Some("file") })
            }
            word => {
                let place = place(node, word, findings);
                place.map(|place| V2Parameter::Parameter(RawParameter { place, ..plain }))
            }
        });
    }
    read
}

fn style(node: &Node) -> ParameterStyle {
    match text(node, "collectionFormat") {
        Some("multi") => ParameterStyle::Exploded,
        Some("ssv") => ParameterStyle::Joined(ListStyle::Space),
        Some("pipes") => ParameterStyle::Joined(ListStyle::Pipe),
        // Plans have no lists with tabs, so the value passes as one text.
        Some("tsv") => ParameterStyle::Text,
        _ => ParameterStyle::Joined(ListStyle::Comma),
    }
}

/// Returns the media types in `consumes` or `produces` of the operation, otherwise of the document.
fn media<'n>(operation: &'n Node, key: &str, follow: &Follow<'n>, findings: &mut Grouped) -> Vec<&'n str> {
    let node = operation.get(key).or_else(|| follow.documents.root().get(key));
    items(node, key, findings).iter().filter_map(Node::as_str).collect()
}

/// Returns the preferred JSON media type, `application/json` without a declaration, or all media
/// types if they do not include JSON.
fn json<'n>(media: &[&'n str], follow: &Follow<'n>) -> Result<&'n str, Vec<&'n str>> {
    let best = media.iter().filter_map(|media| Some((json_rank_in(media, follow)?, *media))).min();
    match best {
        Some((_, media)) => Ok(media),
        None if media.is_empty() => Ok(JSON),
        None => Err(media.to_vec()),
    }
}

/// Returns the content if all media types are XML and the schema has a layout.
fn xml<'n>(media: &[&'n str], schema: Option<&'n Node>, follow: &Follow<'n>) -> Option<BodyContent<'n>> {
    let first = media.first().filter(|_| media.iter().all(|media| is_xml(essence(media))))?;
    let schema = schema.filter(|schema| is_laid_out(schema, follow))?;
    Some(BodyContent::Xml { media: first, schema })
}

/// Returns the other media types, which share the schema.
fn others<'n>(read: &str, schema: Option<&'n Node>, all: &[&'n str]) -> Vec<(&'n str, Option<&'n Node>)> {
    all.iter().filter(|media| **media != read).map(|media| (*media, schema)).collect()
}

fn body<'n>(
    written: &[V2Parameter<'n>],
    operation: &'n Node,
    follow: &Follow<'n>,
    findings: &mut Grouped,
) -> Option<RawBody<'n>> {
    let consumes = media(operation, "consumes", follow, findings);
    let mut fields = Vec::new();
    let mut with_file = false;
    for one in written {
        match one {
            // Swagger allows either a body or form fields.
            V2Parameter::Body { schema, required, span } => {
                let content = match json(&consumes, follow) {
                    Ok(media) => BodyContent::Json {
                        media,
                        schema: *schema,
                        others: others(media, *schema, &consumes),
                    },
                    Err(media) => xml(&media, *schema, follow).unwrap_or(BodyContent::Bytes { media }),
                };
                let has_form = consumes.iter().any(|media| essence(media).eq_ignore_ascii_case(URLENCODED));
                let also = match &content {
                    BodyContent::Json { .. } if has_form => Some(RawAlso::Form(*schema, Vec::new())),
                    _ => None,
                };
                return Some(RawBody { required: *required, content, also, span: *span });
            }
            V2Parameter::Field { field, is_file } => {
                with_file |= is_file;
                fields.push(field.clone());
            }
            V2Parameter::Parameter(_) => {}
        }
    }
    let first = fields.first()?.span;
    // A file requires multipart, regardless of `consumes`.
    let multipart = with_file || consumes.iter().any(|media| media.eq_ignore_ascii_case(MULTIPART));
    let media = if multipart { MULTIPART } else { URLENCODED };
    let required = fields.iter().any(|field| field.required);
    // Documents describe the members of a JSON body as form fields, too, and list both media types.
    let has = |wanted: fn(&str) -> bool| consumes.iter().any(|media| wanted(essence(media)));
    let is_both = !multipart && has(is_json) && has(|named| named.eq_ignore_ascii_case(URLENCODED));
    let also = is_both.then_some(RawAlso::Json);
    Some(RawBody { required, content: BodyContent::Fields { media, fields }, also, span: first })
}

fn responses<'n>(operation: &'n Node, follow: &Follow<'n>, findings: &mut Grouped) -> Vec<RawResponse<'n>> {
    let produces = media(operation, "produces", follow, findings);
    let mut read = Vec::new();
    for (status, node) in by_status(operation, follow, findings) {
        let content =
            node.get("schema").map(|schema| match (text(schema, "type"), json(&produces, follow)) {
                // A file may have any of the operation's media types. Without `produces`, its type is
                // unknown.
                (Some("file"), _) if produces.is_empty() => BodyContent::Bytes { media: vec!["*/*"] },
                (Some("file"), _) => BodyContent::Bytes { media: produces.clone() },
                (_, Ok(media)) => {
                    let others = others(media, Some(schema), &produces);
                    BodyContent::Json { media, schema: Some(schema), others }
                }
                (_, Err(media)) => match media.iter().find(|media| media.eq_ignore_ascii_case(URLENCODED)) {
                    Some(form) => {
                        let others = others(form, Some(schema), &media);
                        BodyContent::Form {
                            media: form,
                            schema: Some(schema),
                            others,
                            parts: Vec::new(),
                            lists: Vec::new(),
                        }
                    }
                    None => xml(&media, Some(schema), follow).unwrap_or(BodyContent::Bytes { media }),
                },
            });
        let mut headers = Vec::new();
        for (key, header) in entries(node.get("headers"), "headers", findings) {
            headers.push(RawParameter {
                name: &key.name,
                place: ParameterPlace::Header,
                required: false,
                schema: Some(header),
                content: None,
                style: ParameterStyle::Text,
                span: key.span,
            });
        }
        read.push(RawResponse { status, content, headers });
    }
    read
}
