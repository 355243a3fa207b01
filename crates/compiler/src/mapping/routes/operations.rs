//! Resolves operation keys of mappings in a contract, and lowers operations, parameters and formats
//! of bodies. Suggests similar operations for unknown ones.

use super::faults;
use crate::contract::{
    AlsoRead, Contract, Field, Media, OpKey, Operation, Parameter, ParameterForm, PartEncoding, Scalar,
    ScalarKind, Type, TypeKind, Types,
};
use crate::diagnostic::Findings;
use crate::mapping::ast::Spanned;
use crate::mapping::form;
use std::sync::Arc;
use switchback_plan::{
    self as plan, BodyExpected, BodyFormat, Effect, FormFormat, Key, ListStyle, MultipartFormat,
    ParameterKind, ParameterShape, PartKind, Variable,
};

/// Resolves an operation by its key. Returns `None` if it reports an error.
pub(in crate::mapping) fn find<'a>(
    contract: &'a Contract,
    written: &Spanned<String>,
    findings: &mut Findings,
) -> Option<&'a Operation> {
    let key = match OpKey::parse(&written.value) {
        Ok(key) => key,
        Err(fault) => {
            findings.push(faults::operation_form(&written.value, written.span, &fault));
            return None;
        }
    };
    let found = contract.find(&key);
    if found.is_none() {
        findings.push(faults::unknown_operation(&key, written.span, contract));
    }
    found
}

/// Returns the operation as its clients use it.
pub(super) fn operation(operation: &Operation, types: &Types, effect: Effect) -> plan::Operation {
    let path =
        |parameter: &Parameter| Variable { shape: ParameterShape::Single, ..variable(parameter, types) };
    let query = |parameter: &Parameter| variable(parameter, types);
    plan::Operation {
        key: operation.key.to_string().into(),
        host: operation.host,
        method: operation.key.method.clone(),
        template: operation.key.path.to_string().into(),
        variables: operation.path_params.iter().map(path).collect(),
        query: operation.query.iter().map(query).collect(),
        body: match &operation.body {
            None => BodyExpected::No,
            Some(body) if body.required => BodyExpected::Required,
            Some(_) => BodyExpected::Optional,
        },
        takes_null: operation.body.as_ref().is_some_and(|body| types.resolve(&body.ty).nullable),
        format: accepted(operation, types),
        answers: answers(operation, types),
        effect,
    }
}

/// Returns the formats that clients may send.
fn accepted(operation: &Operation, types: &Types) -> BodyFormat {
    let Some(body) = &operation.body else { return BodyFormat::Json };
    match (&body.media, &body.also) {
        (_, Some(AlsoRead::Form(lists))) | (Media::Form(_, lists), Some(AlsoRead::Json)) => {
            BodyFormat::JsonOrForm(form_format(&body.ty, lists, types))
        }
        _ => format(operation, types),
    }
}

/// Returns the format of the body of a call.
pub(super) fn format(operation: &Operation, types: &Types) -> BodyFormat {
    match operation.body.as_ref().map(|body| (&body.media, body)) {
        None | Some((Media::Json | Media::OtherJson(_), _)) => BodyFormat::Json,
        Some((Media::Form(_, lists), body)) => form_of(&body.ty, lists, types),
        Some((Media::Multipart(_, parts, lists), body)) => {
            BodyFormat::Multipart(Arc::new(multipart(&body.ty, parts, lists, types)))
        }
        Some((Media::Xml(xml), _)) => BodyFormat::Xml(Arc::clone(&xml.format)),
        // If the body passes unchanged, the pair sets its media types.
        Some((Media::Bytes(_), _)) => BodyFormat::Opaque(Arc::default()),
    }
}

/// Returns the format of an operation's successful responses: that of the first one with a body.
/// Opaque bodies pass unchanged or are not used.
pub(super) fn answers(operation: &Operation, types: &Types) -> BodyFormat {
    let mut successes = operation.responses.iter().filter(|answer| answer.is_success());
    match successes.find_map(|answer| Some((&answer.media, answer.body.as_ref()?))) {
        Some((Media::Form(_, lists), ty)) => form_of(ty, lists, types),
        Some((Media::Xml(xml), _)) => BodyFormat::Xml(Arc::clone(&xml.format)),
        _ => BodyFormat::Json,
    }
}

/// Returns whether an operation lists 206 as a success.
pub(super) fn lists_partial(operation: &Operation) -> bool {
    operation.responses.iter().any(|answer| answer.is_success() && answer.status.covers(206))
}

fn form_of(ty: &Type, lists: &[(String, ListStyle)], types: &Types) -> BodyFormat {
    BodyFormat::Form(form_format(ty, lists, types))
}

fn form_format(ty: &Type, lists: &[(String, ListStyle)], types: &Types) -> Arc<FormFormat> {
    let lists = lists.iter().map(|(name, style)| (Key::new(name), *style)).collect();
    Arc::new(FormFormat { form: form::form_of(ty, types), lists })
}

/// Returns a parameter in the form of plans.
pub(super) fn variable(parameter: &Parameter, types: &Types) -> Variable {
    let kind = |ty: &Type| match types.resolve(ty).kind {
        TypeKind::Scalar(scalar) => match scalar.kind {
            ScalarKind::Integer => ParameterKind::Integer,
            ScalarKind::Number => ParameterKind::Number,
            ScalarKind::Boolean => ParameterKind::Boolean,
            ScalarKind::String => ParameterKind::String,
        },
        _ => ParameterKind::String,
    };
    let (kind, shape) = match (types.resolve(&parameter.ty).kind, parameter.form) {
        (TypeKind::Array(array), ParameterForm::Plain) => {
            (kind(&array.items), ParameterShape::List(ListStyle::Repeated))
        }
        // The fields of a list's elements pass unread. Alternatives have this form if one is such a list.
        (TypeKind::Array(_) | TypeKind::OneOf(_), ParameterForm::Deep) => {
            (ParameterKind::String, ParameterShape::Fields(Vec::new().into()))
        }
        (TypeKind::Array(array), ParameterForm::Joined(style)) => {
            (kind(&array.items), ParameterShape::List(style))
        }
        (TypeKind::Object(object), ParameterForm::Deep) => {
            let of = |field: &Field| variable(&parameter_of(field), types);
            let fields = object.fields.iter().map(of);
            (ParameterKind::String, ParameterShape::Fields(fields.collect()))
        }
        // Everything else is passed as one text.
        _ => (kind(&parameter.ty), ParameterShape::Single),
    };
    Variable {
        name: parameter.name.as_str().into(),
        kind,
        shape,
        required: parameter.required,
        takes_slash: false,
    }
}

fn parameter_of(field: &Field) -> Parameter {
    Parameter {
        name: field.name.clone(),
        ty: field.ty.clone(),
        required: field.required,
        form: ParameterForm::Plain,
        default: field.default.clone(),
        span: field.span,
    }
}

/// Permits slashes in the listed path variables of a served operation. `other_name` returns the
/// other side's name of a variable.
pub(super) fn allow_slashes(
    listed: &[Spanned<String>],
    other_name: impl Fn(&str) -> String,
    operation: &mut plan::Operation,
) {
    let is_listed = |name: &str| listed.iter().any(|one| one.value == name);
    for variable in &mut operation.variables {
        variable.takes_slash = is_listed(&variable.name) || is_listed(&other_name(&variable.name));
    }
}

/// Returns the effect of a call: that of its method, unless the mapping overrides it.
pub(super) fn effect(method: &http::Method, said: Option<&Spanned<bool>>) -> Effect {
    // The safe methods (RFC 9110, section 9.2.1).
    let reads = [http::Method::GET, http::Method::HEAD, http::Method::OPTIONS].contains(method);
    match said.map_or(!reads, |writes| writes.value) {
        true => Effect::Write,
        false => Effect::None,
    }
}

/// Returns the format of a multipart body.
pub(super) fn multipart(
    ty: &Type,
    said: &[(String, PartEncoding)],
    lists: &[(String, ListStyle)],
    types: &Types,
) -> MultipartFormat {
    let fields: &[Field] = match types.resolve(ty).kind {
        TypeKind::Object(object) => &object.fields,
        _ => &[],
    };
    let mut parts = Vec::new();
    let mut styles: Vec<(Key, ListStyle)> =
        lists.iter().map(|(name, style)| (Key::new(name), *style)).collect();
    for field in fields {
        let known = said.iter().find(|(name, _)| *name == field.name).map(|(_, said)| said);
        let kind = match known {
            Some(PartEncoding::Text) => None,
            Some(PartEncoding::File) => Some(PartKind::File),
            Some(PartEncoding::Json(named)) => Some(PartKind::Json(Arc::clone(named))),
            None => usual_part(&field.ty, types),
        };
        let is_list = matches!(types.resolve(&field.ty).kind, TypeKind::Array(_));
        if is_list && kind.is_none() && !lists.iter().any(|(name, _)| *name == field.name) {
            // Each element is a separate part with the same name (RFC 7578, section 4.3).
            styles.push((Key::new(&field.name), ListStyle::Repeated));
        }
        parts.extend(kind.map(|kind| (Key::new(&field.name), kind)));
    }
    let fields = FormFormat { form: form::form_of(ty, types), lists: styles };
    MultipartFormat { fields, parts }
}

/// Returns the default content of a part by its type (OpenAPI 3, encoding object); `None` for a
/// text.
fn usual_part(ty: &Type, types: &Types) -> Option<PartKind> {
    match types.resolve(ty).kind {
        TypeKind::Any => Some(PartKind::File),
        TypeKind::Scalar(scalar) => {
            let is_file =
                scalar.kind == ScalarKind::String && scalar.format.as_deref() == Some(Scalar::BYTES);
            is_file.then_some(PartKind::File)
        }
        TypeKind::Array(array) => usual_part(&array.items, types),
        TypeKind::Object(_) | TypeKind::Choice(_) => Some(PartKind::Json(BodyFormat::JSON.into())),
        TypeKind::OneOf(_) | TypeKind::Null | TypeKind::Named(_) => None,
    }
}
