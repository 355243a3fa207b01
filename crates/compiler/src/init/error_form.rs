//! The template of the gateway's own errors, drafted from the error types of a contract.

use super::bodies::quote;
use crate::contract::{
    BreachKind, Contract, Object, Operation, Response, Scalar, ScalarKind, StatusPattern, Type, TypeKind,
    breaches, sample,
};
use crate::diagnostic::Span;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use switchback_json::Limits;

/// Names of members with the text of an error.
const TEXT_WORDS: &[&str] = &[
    "message",
    "detail",
    "error_message",
    "error_description",
    "description",
    "reason",
    "title",
    "msg",
    "error",
    "text",
];
/// Names of members with the kind of an error.
const KIND_WORDS: &[&str] =
    &["code", "error", "kind", "id", "errorcode", "error_code", "name", "reason", "type"];
/// Maximum nesting depth of a template.
const DEPTH_MAX: usize = 6;

/// The placeholders of a template.
const TEXT: &str = "$text";
const STATUS: &str = "$status";
const KIND: &str = "$kind";

/// The drafted template, and the error types that it does not conform to.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ErrorForm {
    /// The template in flow notation.
    pub body: String,
    /// Whether it conforms to the most frequent error type.
    pub is_conforming: bool,
    /// Number of errors of other types, with the place of the first one.
    pub others: usize,
    pub first_other: Option<Span>,
}

/// Drafts the template from the errors of a contract: that of the most frequent type with a member
/// for the text.
pub(super) fn draft(contract: &Contract) -> ErrorForm {
    let errors: Vec<(&Response, &Type)> = contract.operations.iter().flat_map(errors_of).collect();
    // A type that is used often is drafted once.
    let mut drafted: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, ty) in &errors {
        let of_type = drafted.entry(format!("{ty} {:?}", ty.span)).or_insert_with(|| template(contract, ty));
        if let Some(body) = of_type {
            *counts.entry(body.clone()).or_default() += 1;
        }
    }
    // Resolve ties by text.
    let best = counts.into_iter().max_by_key(|(text, count)| (*count, std::cmp::Reverse(text.clone())));
    let Some((body, _)) = best else {
        let is_conforming = errors.is_empty();
        let (others, first_other) = (errors.len(), errors.first().map(|(response, _)| response.span));
        return ErrorForm { body: "{message: $text}".to_owned(), is_conforming, others, first_other };
    };
    let filled = filled(&body);
    let misfits: Vec<Span> = errors
        .iter()
        .filter(|(_, ty)| !breaches(&contract.types, ty, &filled, None).is_empty())
        .map(|(response, _)| response.span)
        .collect();
    let body = flow(&serde_json::from_str(&body).unwrap_or_default());
    ErrorForm { body, is_conforming: true, others: misfits.len(), first_other: misfits.first().copied() }
}

/// Writes a template in flow notation, with bare placeholders.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", quote(name), flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) if [TEXT, STATUS, KIND].contains(&text.as_str()) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns the errors of an operation that the gateway reads.
fn errors_of(operation: &Operation) -> impl Iterator<Item = (&Response, &Type)> {
    let is_error = |response: &&Response| match response.status {
        StatusPattern::Exact(status) => status >= 400,
        StatusPattern::Class(class) => class >= 4,
        StatusPattern::Default => true,
    };
    let read = operation.responses.iter().filter(is_error).filter(|response| response.media.is_read());
    read.filter_map(|response| Some((response, response.body.as_ref()?)))
}

/// Returns the template of one type, if it has a place for the text and conforms.
fn template(contract: &Contract, ty: &Type) -> Option<String> {
    let mut writer = TemplateWriter { contract, has_text: false, depth: 0 };
    let value = writer.value(ty, "")?;
    let text = value.to_string();
    let fits = breaches(&contract.types, ty, &filled(&text), None)
        .iter()
        // A template may leave out what only documents of other dialects require.
        .all(|breach| breach.what == BreachKind::Unknown);
    (writer.has_text && fits).then_some(text)
}

/// Replaces the placeholders by values.
fn filled(body: &str) -> switchback_json::Value {
    let text = body.replace(&format!("\"{STATUS}\""), "500");
    let text = text.replace(KIND, "bad_request").replace(TEXT, "Something is wrong.");
    switchback_json::Value::parse(text.as_bytes(), &Limits::UNLIMITED).unwrap_or(switchback_json::Value::Null)
}

struct TemplateWriter<'c> {
    contract: &'c Contract,
    /// A template has the text once.
    has_text: bool,
    depth: usize,
}

impl TemplateWriter<'_> {
    fn value(&mut self, ty: &Type, name: &str) -> Option<Value> {
        if self.depth > DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let types = &self.contract.types;
        let value = match types.resolve(ty).kind {
            TypeKind::Object(object) => self.object(object),
            TypeKind::Array(array) => self.value(&array.items, name).map(|item| Value::Array(vec![item])),
            TypeKind::Scalar(scalar) => Some(self.scalar(scalar, ty, name)),
            kind => match kind.alternatives().first() {
                Some(first) => self.value(first, name),
                None => Some(sample(types, ty)),
            },
        };
        self.depth -= 1;
        value
    }

    fn object(&mut self, object: &Object) -> Option<Value> {
        let contract = self.contract;
        let is_free_text = |ty: &Type| {
            let kind = contract.types.resolve(ty).kind;
            matches!(kind, TypeKind::Scalar(Scalar { kind: ScalarKind::String, values: None, .. }))
        };
        let mut members = Map::new();
        // The member with the text, by the order of the words; else within a nested value.
        let fields = &object.fields;
        let text = TEXT_WORDS.iter().filter(|_| !self.has_text).find_map(|word| {
            fields.iter().find(|field| field.name.eq_ignore_ascii_case(word) && is_free_text(&field.ty))
        });
        self.has_text |= text.is_some();
        for field in fields {
            let is_text = text.is_some_and(|text| std::ptr::eq(text, field));
            let is_nested = |ty: &Type| {
                matches!(contract.types.resolve(ty).kind, TypeKind::Object(_) | TypeKind::Array(_))
            };
            let value = match is_text {
                true => Some(Value::from(TEXT)),
                false if field.required => self.value(&field.ty, &field.name),
                // An optional member is written if only it can hold the text.
                false if !self.has_text && is_nested(&field.ty) => {
                    let value = self.value(&field.ty, &field.name);
                    value.filter(|_| self.has_text)
                }
                false => None,
            };
            if let Some(value) = value {
                members.insert(field.name.clone(), value);
            } else if field.required {
                return None;
            }
        }
        Some(Value::Object(members))
    }

    fn scalar(&mut self, scalar: &Scalar, ty: &Type, name: &str) -> Value {
        let name = name.to_ascii_lowercase();
        let is_plain =
            scalar.values.is_none() && scalar.format.is_none() && scalar.limits.patterns.is_empty();
        match scalar.kind {
            ScalarKind::Integer | ScalarKind::Number
                if scalar.values.is_none() && (name.contains("status") || name.contains("code")) =>
            {
                Value::from(STATUS)
            }
            ScalarKind::String if is_plain && KIND_WORDS.contains(&name.as_str()) => Value::from(KIND),
            // A required title beside the text, as in problem details (RFC 9457). A template has the
            // text once.
            ScalarKind::String if is_plain && TEXT_WORDS.contains(&name.as_str()) => Value::from(KIND),
            ScalarKind::String if is_plain && !self.has_text && name.is_empty() => {
                self.has_text = true;
                Value::from(TEXT)
            }
            _ => sample(&self.contract.types, ty),
        }
    }
}
