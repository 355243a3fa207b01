//! Reads a document into the contract of a side: types the parts of the normalized operations. An
//! error affects only its own part and is reported: a schema that cannot be typed becomes any
//! value, a body that is not JSON is opaque, and a path that no request can have is omitted.

use super::alternatives::settle_alternatives;
use super::compare::alternatives_of;
use super::documents::{Documents, Follow};
use super::faults;
use super::grouped::Grouped;
use super::normal::{
    self, BodyContent, ParameterPlace, ParameterStyle, RawAlso, RawBody, RawOperation, RawParameter,
};
use super::path::{OpKey, PathTemplate};
use super::schema::Schemas;
use super::types::{
    Access, Additional, Field, Object, Overlapping, Type, TypeId, TypeIn, TypeKind, Types, Unread,
};
use super::xml::{XmlBody, XmlObjects};
use super::{
    AlsoRead, Contract, Media, Operation, Parameter, ParameterForm, PartEncoding, RequestBody, Response,
    StatusPattern, UnreadMedia, Webhook,
};
use crate::diagnostic::{Findings, Span};
use crate::yaml::{Key, Node};
use http::Method;
use std::collections::HashMap;
use std::sync::Arc;
use switchback_plan::{BodyFormat, HostId, ListStyle, essence};

/// Reads the contract of the side `name` from its document. Errors are reported once per construct.
/// A contract with errors is only suitable for finding further errors.
pub fn parse_contract(name: &str, documents: &Documents, findings: &mut Findings) -> Contract {
    let mut contract = Contract { name: name.to_owned(), ..Contract::default() };
    let root = documents.root();
    let Some(dialect) = normal::dialect(root, findings) else { return contract };
    let mut grouped = Grouped::default();
    let follow = Follow::new(documents);
    let raw = normal::operations(dialect, &follow, &mut grouped);
    let raw_webhooks = normal::webhooks(dialect, &follow, &mut grouped);
    let schemas = Schemas::new(&follow, normal::schemas(root, dialect), &mut grouped);
    let mut reader = ContractReader { schemas, styles: HashMap::new() };
    // Named schemas are read first, in document order.
    reader.schemas.finish();
    let mut operations: Vec<Operation> = raw.iter().filter_map(|raw| reader.operation(raw)).collect();
    let mut webhooks: Vec<Webhook> = raw_webhooks.iter().map(|raw| reader.webhook(raw)).collect();
    reader.schemas.finish();
    let ContractReader { schemas, styles } = reader;
    let (mut types, discriminators, xml) = schemas.types();
    // References must be acyclic before alternatives are resolved, because resolving follows them
    // without a check.
    break_cycles(&mut types, &mut grouped);
    let mut overlapping = Overlapping::default();
    let mut settle = |ty: &Type, types: &Types, grouped: &mut Grouped| {
        settle_alternatives(ty, types, &discriminators, grouped, &mut overlapping)
    };
    let of_events = webhooks.iter_mut().filter_map(|webhook| Some(&mut webhook.body.as_mut()?.ty));
    for ty in operations.iter_mut().flat_map(types_of).chain(of_events) {
        if let Some(new) = settle(ty, &types, &mut grouped) {
            *ty = new;
        }
    }
    contract.webhooks = webhooks;
    // Resolve all types against the original ones before replacing any of them.
    let named = types.ids().filter_map(|id| Some((id, settle(&types.by_id(id).ty, &types, &mut grouped)?)));
    for (id, ty) in named.collect::<Vec<_>>() {
        types.replace(id, ty);
    }
    types.set_overlapping(overlapping);
    operations.iter_mut().for_each(|operation| lay_out(operation, &types, &xml));
    for mut operation in operations {
        // An exploded object can be expanded only after its type is resolved.
        spread(&mut operation.query, &types, &styles);
        let (key, span) = (operation.key.clone(), operation.span);
        if let Err(earlier) = contract.add(operation) {
            grouped.add("same operation", span, || {
                faults::same_operation(span, &key, &earlier.key, earlier.span)
            });
        }
    }
    contract.types = types;
    grouped.finish(Span { end: root.span.start, ..root.span }, findings);
    contract
}

/// Lays out the bodies of an operation that are XML.
fn lay_out(operation: &mut Operation, types: &Types, xml: &XmlObjects) {
    let request = operation.body.iter_mut().map(|body| (&mut body.media, &body.ty, body.span));
    let responses = operation
        .responses
        .iter_mut()
        .filter_map(|response| Some((&mut response.media, response.body.as_ref()?, response.span)));
    for (media, ty, span) in request.chain(responses) {
        if let Media::Xml(body) = media {
            Arc::make_mut(body).lay_out(ty, types, xml, span);
        }
    }
}

/// Returns all types in an operation.
fn types_of(operation: &mut Operation) -> impl Iterator<Item = &mut Type> {
    let parameters =
        operation.path_params.iter_mut().chain(&mut operation.query).chain(&mut operation.headers);
    let parameters = parameters.chain(&mut operation.cookies);
    let bodies = operation.body.iter_mut().map(|body| &mut body.ty);
    let responses = operation.responses.iter_mut().flat_map(|response| {
        response.body.iter_mut().chain(response.headers.iter_mut().map(|header| &mut header.ty))
    });
    parameters.map(|parameter| &mut parameter.ty).chain(bodies).chain(responses)
}

/// Replaces types that refer only to themselves, through references and alternatives, by any value,
/// and reports them. Later stages may then follow references without detecting cycles.
fn break_cycles(types: &mut Types, findings: &mut Grouped) {
    let names: Vec<(Span, String)> = types.iter().map(|named| (named.span, named.name.to_string())).collect();
    let mut state = vec![VisitState::New; names.len()];
    for start in 0..names.len() {
        // Depth-first search with an explicit stack: a chain of references may be as long as the
        // document.
        let mut stack = vec![(start, direct_references(&types.by_id(TypeId(start as u32)).ty), 0)];
        while let Some((at, direct, next)) = stack.pop() {
            if next == 0 && state[at] == VisitState::Done {
                continue;
            }
            state[at] = VisitState::Open;
            let Some(target) = direct.get(next).copied() else {
                state[at] = VisitState::Done;
                continue;
            };
            stack.push((at, direct, next + 1));
            match state[target] {
                VisitState::New => {
                    stack.push((target, direct_references(&types.by_id(TypeId(target as u32)).ty), 0));
                }
                VisitState::Done => {}
                VisitState::Open => {
                    // Break the cycle at the reference that closes it.
                    let (span, name) = &names[at];
                    findings.add("cycle", *span, || faults::reference_cycle(*span, name));
                    types.replace(TypeId(at as u32), Type::any(*span));
                    stack.pop();
                    state[at] = VisitState::Done;
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum VisitState {
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

/// Replaces each exploded object parameter by one parameter per field, and gives lists and alternatives
/// of the style `deepObject` the names with brackets that clients send.
fn spread(query: &mut Vec<Parameter>, types: &Types, styles: &HashMap<Span, ParameterStyle>) {
    let is_exploded = |parameter: &Parameter| styles.get(&parameter.span) == Some(&ParameterStyle::Exploded);
    let is_list_of_scalars = |ty: &Type| match types.resolve(ty).kind {
        TypeKind::Array(array) => matches!(types.resolve(&array.items).kind, TypeKind::Scalar(_)),
        _ => false,
    };
    let is_list = |ty: &Type| matches!(types.resolve(ty).kind, TypeKind::Array(_));
    let mut all = Vec::new();
    for parameter in std::mem::take(query) {
        let fields = match is_exploded(&parameter) {
            true => exploded_fields(types.at(&parameter.ty)),
            false => Vec::new(),
        };
        let spread = fields.iter().map(|(field, is_always)| Parameter {
            name: field.name.clone(),
            ty: field.ty.clone(),
            required: parameter.required && *is_always,
            form: ParameterForm::Plain,
            default: field.default.clone(),
            span: field.span,
        });
        let spread: Vec<Parameter> = spread.collect();
        match types.resolve(&parameter.ty).kind {
            _ if !spread.is_empty() => all.extend(spread),
            // The specification leaves this notation open; `name[]=a&name[]=b` is the usual one.
            // A list of objects has the form `name[0][field]=a`.
            TypeKind::Array(_)
                if parameter.form == ParameterForm::Deep && is_list_of_scalars(&parameter.ty) =>
            {
                let name = format!("{}[]", parameter.name);
                all.push(Parameter { name, form: ParameterForm::Plain, ..parameter });
            }
            // `name=5`, `name[]=5` or `name[field]=5`.
            TypeKind::OneOf(alternatives)
                if parameter.form == ParameterForm::Deep
                    && alternatives.iter().all(|one| !is_list(one) || is_list_of_scalars(one)) =>
            {
                let lists = alternatives.iter().filter(|one| is_list(one));
                all.extend(lists.map(|list| Parameter {
                    name: format!("{}[]", parameter.name),
                    ty: list.clone(),
                    required: false,
                    form: ParameterForm::Plain,
                    default: None,
                    span: parameter.span,
                }));
                let objects = alternatives.iter().filter_map(|one| types.at(one).object());
                all.extend(objects.flat_map(|object| &object.fields).map(|field| Parameter {
                    name: format!("{}[{}]", parameter.name, field.name),
                    ty: field.ty.clone(),
                    required: false,
                    form: ParameterForm::Plain,
                    default: field.default.clone(),
                    span: field.span,
                }));
                all.push(Parameter { form: ParameterForm::Plain, ..parameter });
            }
            _ => all.push(parameter),
        }
    }
    // The first of several parameters with the same name applies.
    let mut known: Vec<String> = Vec::new();
    all.retain(|parameter: &Parameter| {
        let first = !known.contains(&parameter.name);
        known.push(parameter.name.clone());
        first
    });
    *query = all;
}

/// Returns the fields of an object, or of all objects that a value may be, and whether each value has
/// them. Empty for other types.
fn exploded_fields(ty: TypeIn<'_>) -> Vec<(&Field, bool)> {
    let objects = alternatives_of(ty).and_then(|all| all.into_iter().map(TypeIn::object).collect());
    let objects: Vec<&Object> = objects.unwrap_or_default();
    let is_always =
        |name: &str| objects.iter().all(|object| object.field(name).is_some_and(|field| field.required));
    let fields = objects.iter().flat_map(|object| &object.fields);
    fields.map(|field| (field, is_always(&field.name))).collect()
}

fn owned(lists: &[(&str, ListStyle)]) -> Vec<(String, ListStyle)> {
    lists.iter().map(|(name, style)| ((*name).to_owned(), *style)).collect()
}

/// Returns whether both schemas are the same reference.
fn refers_alike(one: &Node, other: &Node) -> bool {
    let reference = |node: &Node| node.get("$ref").and_then(Node::as_str).map(str::to_owned);
    reference(one).is_some_and(|name| reference(other).is_some_and(|known| known == name))
}

/// Returns whether a response may have a body (RFC 9110, sections 9.3.2, 15.3.5, 15.3.6 and 15.4.5).
/// Documents declare content for the others all the same.
fn may_have_body(method: &Method, status: StatusPattern) -> bool {
    *method != Method::HEAD && !matches!(status, StatusPattern::Exact(100..=199 | 204 | 205 | 304))
}

struct ContractReader<'n, 'f> {
    schemas: Schemas<'n, 'f>,
    /// Notations of query parameters by their places.
    styles: HashMap<Span, ParameterStyle>,
}

impl<'n> ContractReader<'n, '_> {
    fn operation(&mut self, raw: &RawOperation<'n>) -> Option<Operation> {
        let path = &raw.path;
        let template = match PathTemplate::parse(&path.name) {
            Ok(template) => template,
            Err(fault) => {
                self.schemas
                    .findings
                    .add("path", path.span, || faults::path_form(path.span, &path.name, &fault));
                return None;
            }
        };
        let key = OpKey { method: raw.method.clone(), path: template };
        let mut of = |wanted: ParameterPlace| -> Vec<Parameter> {
            let placed = raw.parameters.iter().filter(|parameter| parameter.place == wanted);
            placed.map(|parameter| self.parameter(parameter)).collect()
        };
        let (path_params, query, headers) =
            (of(ParameterPlace::Path), of(ParameterPlace::Query), of(ParameterPlace::Header));
        let cookies = of(ParameterPlace::Cookie);
        let path_params = self.in_order_of_path(&key, raw.span, path_params);
        let body = raw.body.as_ref().map(|body| self.body(body));
        let responses = self.responses(&key, raw);
        Some(Operation {
            key,
            path_params,
            query,
            headers,
            cookies,
            body,
            responses,
            servers: raw.servers.clone(),
            host: HostId::MAIN,
            id: raw.id.map(str::to_owned),
            summary: raw.summary.map(str::to_owned),
            span: raw.span,
        })
    }

    fn webhook(&mut self, (name, body): &(&'n Key, Option<RawBody<'n>>)) -> Webhook {
        let body = body.as_ref().map(|body| self.body(body));
        Webhook { name: name.name.clone(), body, span: name.span }
    }

    fn body(&mut self, raw: &RawBody<'n>) -> RequestBody {
        let (ty, media) = self.content(&raw.content, raw.span);
        let mut unread = self.unread_media(&raw.content);
        let also = match &raw.also {
            // Forms with another schema are not read.
            Some(RawAlso::Form(schema, lists)) if self.is_same_schema(&raw.content, *schema) => {
                Some(AlsoRead::Form(owned(lists)))
            }
            Some(RawAlso::Json) => {
                unread.push(UnreadMedia { name: BodyFormat::JSON.into(), schema: None });
                Some(AlsoRead::Json)
            }
            Some(RawAlso::Form(..)) | None => None,
        };
        RequestBody { ty, media, also, unread, required: raw.required, span: raw.span }
    }

    fn parameter(&mut self, raw: &RawParameter<'n>) -> Parameter {
        let ty = match raw.schema {
            Some(schema) => self.schemas.parse(schema),
            None => raw
                .content
                .map_or_else(|| Type::any(raw.span), |content| self.schemas.text_of(content, raw.span)),
        };
        if raw.place == ParameterPlace::Query {
            self.styles.insert(raw.span, raw.style);
        }
        let form = match raw.style {
            ParameterStyle::Deep => ParameterForm::Deep,
            ParameterStyle::Exploded => ParameterForm::Plain,
            ParameterStyle::Joined(style) => ParameterForm::Joined(style),
            ParameterStyle::Text => ParameterForm::Text,
        };
        // A path variable is required even if the document omits the flag.
        let required = raw.required || raw.place == ParameterPlace::Path;
        let default = raw.schema.and_then(|schema| self.schemas.default_of(&[schema]));
        Parameter { name: raw.name.to_owned(), ty, required, form, default, span: raw.span }
    }

    fn in_order_of_path(&mut self, key: &OpKey, span: Span, mut given: Vec<Parameter>) -> Vec<Parameter> {
        let mut ordered = Vec::new();
        for variable in key.path.variables() {
            match given.iter().position(|parameter| parameter.name == variable) {
                Some(index) => ordered.push(given.remove(index)),
                None => {
                    self.schemas
                        .findings
                        .add("variable", span, || faults::variable_without_parameter(span, key, variable));
                    ordered.push(Parameter {
                        name: variable.to_owned(),
                        ty: Type::any(span),
                        required: true,
                        form: ParameterForm::Plain,
                        default: None,
                        span,
                    });
                }
            }
        }
        for extra in given {
            let variables = key.path.variables();
            self.schemas.findings.add("path parameter", extra.span, || {
                faults::parameter_without_variable(extra.span, key, &extra.name, variables)
            });
        }
        ordered
    }

    fn responses(&mut self, key: &OpKey, raw: &RawOperation<'n>) -> Vec<Response> {
        if raw.responses.is_empty() {
            self.schemas.findings.add("no responses", raw.span, || faults::no_responses(raw.span, key));
        }
        let mut read: Vec<Response> = Vec::new();
        for raw in &raw.responses {
            let status = raw.status;
            let Some(pattern) = StatusPattern::parse(&status.name) else {
                self.schemas
                    .findings
                    .add("status", status.span, || faults::status_form(status.span, &status.name));
                continue;
            };
            let content = raw.content.as_ref().filter(|_| may_have_body(&key.method, pattern));
            let (body, media) = match content {
                // Without a body, the media type is a placeholder.
                None => (None, Media::Json),
                Some(content) => {
                    let (ty, media) = self.content(content, status.span);
                    (Some(ty), media)
                }
            };
            let unread = content.map_or_else(Vec::new, |content| self.unread_media(content));
            let headers = raw.headers.iter().map(|header| self.parameter(header)).collect();
            read.push(Response { status: pattern, body, media, unread, headers, span: status.span });
        }
        read
    }

    /// Returns the media types of a body that the gateway does not use: non-JSON ones besides the
    /// selected one, and JSON with another schema.
    fn unread_media(&self, content: &BodyContent<'n>) -> Vec<UnreadMedia> {
        let (schema, others, is_form) = match content {
            BodyContent::Json { schema, others, .. } => (schema, others, false),
            BodyContent::Form { schema, others, .. } => (schema, others, true),
            // All of them are names of XML, which the gateway reads; another schema is not compared.
            BodyContent::Xml { .. } => return Vec::new(),
            BodyContent::Fields { .. } | BodyContent::Bytes { .. } => return Vec::new(),
        };
        // The text of a schema is long, so it is written only for schemas that are not the same node.
        let other_schema = |other: &'n Node| match schema {
            Some(schema) if std::ptr::eq(*schema, other) || refers_alike(schema, other) => None,
            schema => Some(self.schemas.canonical(other))
                .filter(|text| schema.is_none_or(|schema| self.schemas.canonical(schema) != *text)),
        };
        others
            .iter()
            // A client cannot send a range as its media type.
            .filter(|(media, _)| !media.contains('*'))
            .map(|(media, other)| UnreadMedia {
                name: essence(media).to_ascii_lowercase().into(),
                schema: other.and_then(other_schema).map(Arc::from),
            })
            .filter(|media| is_form || !self.schemas.is_json(&media.name) || media.schema.is_some())
            .collect()
    }

    /// Returns whether the schema of another media type is that of a body in JSON, or is not declared.
    fn is_same_schema(&self, content: &BodyContent<'n>, other: Option<&'n Node>) -> bool {
        let (BodyContent::Json { schema: Some(schema), .. }, Some(other)) = (content, other) else {
            return other.is_none();
        };
        std::ptr::eq(*schema, other)
            || refers_alike(schema, other)
            || self.schemas.canonical(schema) == self.schemas.canonical(other)
    }

    fn ty(&mut self, schema: Option<&'n Node>, span: Span) -> Type {
        schema.map_or_else(|| Type::any(span), |schema| self.schemas.parse(schema))
    }

    /// Returns the type and the media type of a body.
    fn content(&mut self, content: &BodyContent<'n>, span: Span) -> (Type, Media) {
        match content {
            BodyContent::Json { schema, media, .. } => (self.ty(*schema, span), Media::of_json(media)),
            BodyContent::Form { schema, media, parts, lists, .. } => {
                let mut ty = self.ty(*schema, span);
                let parts = parts.iter().map(|(name, said)| ((*name).to_owned(), said.clone()));
                let media = Media::of_form(media, parts.collect(), owned(lists));
                if let (Media::Multipart(..), TypeKind::Object(object)) = (&media, &mut ty.kind) {
                    // A part without a type is binary (OpenAPI 3.1, section 4.8.15).
                    let fields = object.fields.iter_mut();
                    fields.filter(|field| field.ty.kind == TypeKind::Any).for_each(Field::be_file);
                }
                (ty, media)
            }
            BodyContent::Fields { fields, media } => {
                let style = |field: &RawParameter<'n>| match field.style {
                    ParameterStyle::Exploded => Some((field.name.to_owned(), ListStyle::Repeated)),
                    ParameterStyle::Joined(style) => Some((field.name.to_owned(), style)),
                    ParameterStyle::Text | ParameterStyle::Deep => None,
                };
                let lists = fields.iter().filter_map(style).collect();
                let is_file = |field: &&RawParameter<'n>| {
                    field.schema.and_then(|schema| schema.get("type")?.as_str()) == Some("file")
                };
                // Swagger has no JSON fields in forms.
                let texts = fields.iter().filter(|field| !is_file(field));
                let parts = texts.map(|field| (field.name.to_owned(), PartEncoding::Text)).collect();
                let fields = fields.iter().map(|field| {
                    let required = field.required;
                    let Parameter { name, ty, default, span, .. } = self.parameter(field);
                    let mut read = Field { name, ty, required, access: Access::Both, default, span };
                    if is_file(&field) {
                        read.be_file();
                    }
                    read
                });
                let object = Object {
                    fields: fields.collect(),
                    additional: Additional::Open,
                    unread: Unread::default(),
                };
                let ty = Type { kind: TypeKind::Object(object), nullable: false, span };
                (ty, Media::of_form(media, parts, lists))
            }
            BodyContent::Xml { media, schema, .. } => {
                (self.schemas.parse(schema), Media::Xml(Arc::new(XmlBody::unread(media))))
            }
            BodyContent::Bytes { media } => {
                let essence = |media: &&str| essence(media).into();
                (Type::any(span), Media::Bytes(media.iter().map(essence).collect()))
            }
        }
    }
}
