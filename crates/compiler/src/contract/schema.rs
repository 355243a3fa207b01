//! Schemas of a document → types.

use super::faults;
use super::types::{
    Additional, Array, Enum, Field, JsonKind, Limits, Literal, Object, Reference, Scalar, ScalarKind, Type,
    TypeId, TypeKind, Types,
};
use crate::diagnostic::{Findings, Span};
use crate::yaml::{Fields, Key, Keys, Kind, Node};
use std::collections::HashMap;
use std::sync::Arc;

/// Keywords that change what a document means and are not read, with what to do instead. Keywords that are
/// in neither list are reported as unknown.
pub(super) const OUTSIDE: &[(&str, &str)] = &[
    ("allOf", "write the fields out in one schema"),
    ("not", "say what the value is"),
    ("if", "write the cases as alternatives that differ by JSON type"),
    ("then", "write the cases as alternatives that differ by JSON type"),
    ("else", "write the cases as alternatives that differ by JSON type"),
    ("discriminator", "alternatives are told apart by their JSON type"),
    ("nullable", "write the type as a list: `type: [<type>, 'null']`"),
    ("patternProperties", "use `additionalProperties`"),
    ("propertyNames", "use `additionalProperties`"),
    ("dependentRequired", "leave the fields optional"),
    ("dependentSchemas", "leave the fields optional"),
    ("prefixItems", "give one type for all `items`"),
    ("contains", "give one type for all `items`"),
    ("unevaluatedProperties", "use `additionalProperties`"),
    ("unevaluatedItems", "use `items`"),
    ("$defs", "put the type under `components/schemas`"),
    ("definitions", "put the type under `components/schemas`"),
    ("$id", "refer to types by '#/components/schemas/<name>'"),
    ("$anchor", "refer to types by '#/components/schemas/<name>'"),
    ("$dynamicRef", "refer to types by '#/components/schemas/<name>'"),
    ("$dynamicAnchor", "refer to types by '#/components/schemas/<name>'"),
    ("readOnly", "give requests and responses types of their own"),
    ("writeOnly", "give requests and responses types of their own"),
    ("style", "leave it out: parameters are written in the default style"),
    ("explode", "leave it out: parameters are written in the default style"),
    ("allowReserved", "leave it out: parameters are percent-encoded"),
    ("allowEmptyValue", "leave it out, or make the parameter optional"),
    ("encoding", "bodies are application/json"),
    ("callbacks", "only calls of clients are translated"),
    ("webhooks", "only calls of clients are translated"),
    ("links", "leave it out"),
    ("pathItems", "write the paths out under `paths`"),
];

/// Whether a keyword is in [`OUTSIDE`].
pub(super) fn is_outside(name: &str) -> bool {
    OUTSIDE.iter().any(|(keyword, _)| *keyword == name)
}

/// Reads a map of a contract: keys outside the subset, unknown keys and missing keys are all reported.
pub(super) fn fields<'n>(node: &'n Node, keys: &Keys, findings: &mut Findings) -> Option<Fields<'n>> {
    let fields = Fields::read(node, &Keys { extensions: true, elsewhere: is_outside, ..*keys }, findings)?;
    for (key, _) in fields.entries() {
        if let Some((_, help)) = OUTSIDE.iter().find(|(keyword, _)| *keyword == key.name) {
            findings.push(faults::outside_subset(key.span, &key.name, help));
        }
    }
    Some(fields)
}

/// Keywords that say nothing about values.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "summary",
    "default",
    "example",
    "examples",
    "deprecated",
    "externalDocs",
    "$comment",
    "xml",
];

const SCHEMA: Keys = Keys::new(
    "a schema",
    &[],
    &[
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "$ref",
        "oneOf",
        "anyOf",
        "format",
        "pattern",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        // Annotations.
        "title",
        "description",
        "summary",
        "default",
        "example",
        "examples",
        "deprecated",
        "externalDocs",
        "$comment",
        "xml",
        // Bounds of values that no generated value needs and no translation sees.
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "contentEncoding",
        "contentMediaType",
    ],
);

/// Which keyword speaks about which types.
const KEYWORD_KINDS: &[(&str, &[&str])] = &[
    ("properties", &["object"]),
    ("required", &["object"]),
    ("additionalProperties", &["object"]),
    ("minProperties", &["object"]),
    ("maxProperties", &["object"]),
    ("items", &["array"]),
    ("minItems", &["array"]),
    ("maxItems", &["array"]),
    ("uniqueItems", &["array"]),
    ("pattern", &["string"]),
    ("minLength", &["string"]),
    ("maxLength", &["string"]),
    ("contentEncoding", &["string"]),
    ("contentMediaType", &["string"]),
    ("x-values-seen", &["string", "integer", "number"]),
    ("format", &["string", "integer", "number"]),
    ("minimum", &["integer", "number"]),
    ("maximum", &["integer", "number"]),
    ("exclusiveMinimum", &["integer", "number"]),
    ("exclusiveMaximum", &["integer", "number"]),
    ("multipleOf", &["integer", "number"]),
];

const TYPE_WORDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// The name that a `$ref` to a component of this kind leads to; any other form is reported.
pub(super) fn reference<'n>(node: &'n Node, kind: &str, findings: &mut Findings) -> Option<&'n str> {
    let text = node.text(findings)?;
    let name = text.strip_prefix("#/components/").and_then(|rest| rest.strip_prefix(kind)?.strip_prefix('/'));
    let name = name.filter(|name| !name.is_empty() && !name.contains(['/', '~', '%']));
    if name.is_none() {
        findings.push(faults::reference_form(node.span, kind));
    }
    name
}

/// Reads schemas against the names of all named types.
pub(super) struct Schemas {
    names: HashMap<Arc<str>, TypeId>,
    /// Alternatives as read, to be compared once all named types are known.
    alternatives: Vec<Vec<Type>>,
}

impl Schemas {
    /// `names` in the order of the document; their ids count in that order.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Schemas {
        let names = names.enumerate().map(|(i, name)| (Arc::from(name), TypeId(i as u32))).collect();
        Schemas { names, alternatives: Vec::new() }
    }

    /// The type that a schema describes. A schema that cannot be understood is reported and stands for any
    /// value, so that nothing follows from it.
    pub(super) fn read(&mut self, node: &Node, findings: &mut Findings) -> Type {
        if node.kind == Kind::Bool(true) {
            return Type::any(node.span);
        }
        let Some(schema) = fields(node, &SCHEMA, findings) else {
            return Type::any(node.span);
        };
        if let Some(target) = schema.get("$ref") {
            return self.named(&schema, target, findings);
        }
        match schema.entry("oneOf").or_else(|| schema.entry("anyOf")) {
            Some((key, list)) => self.alternatives(&schema, key, list, findings),
            None => self.written_out(&schema, findings),
        }
    }

    fn named(&mut self, schema: &Fields<'_>, target: &Node, findings: &mut Findings) -> Type {
        for (key, _) in schema.entries() {
            if key.name != "$ref" && !is_annotation(&key.name) {
                findings.push(faults::beside_reference(key.span, &key.name));
            }
        }
        let span = schema.node.span;
        let Some(name) = reference(target, "schemas", findings) else {
            return Type::any(span);
        };
        match self.names.get_key_value(name) {
            Some((name, id)) => {
                let reference = Reference { id: *id, name: Arc::clone(name) };
                Type { kind: TypeKind::Named(reference), nullable: false, span }
            }
            None => {
                let mut known: Vec<&str> = self.names.keys().map(AsRef::as_ref).collect();
                known.sort_unstable();
                findings.push(faults::unknown_reference(target.span, "schemas", name, known.into_iter()));
                Type::any(span)
            }
        }
    }

    fn alternatives(&mut self, schema: &Fields<'_>, key: &Key, list: &Node, findings: &mut Findings) -> Type {
        for (other, _) in schema.entries() {
            if other.name != key.name && !is_annotation(&other.name) && !is_outside(&other.name) {
                findings.push(faults::beside_alternatives(other.span, &other.name, &key.name));
            }
        }
        let span = schema.node.span;
        let Some(items) = list.list(findings) else { return Type::any(span) };
        let read: Vec<Type> = items.iter().map(|item| self.read(item, findings)).collect();
        let nullable = read.iter().any(|ty| ty.kind == TypeKind::Null);
        let mut others: Vec<Type> = read.into_iter().filter(|ty| ty.kind != TypeKind::Null).collect();
        match others.len() {
            0 if nullable => Type { kind: TypeKind::Null, nullable: true, span },
            0 => {
                findings.push(faults::no_alternatives(list.span));
                Type::any(span)
            }
            1 => {
                let only = others.remove(0);
                Type { nullable: only.nullable || nullable, ..only }
            }
            _ => {
                self.alternatives.push(others.clone());
                Type { kind: TypeKind::OneOf(others), nullable, span }
            }
        }
    }

    fn written_out(&mut self, schema: &Fields<'_>, findings: &mut Findings) -> Type {
        let span = schema.node.span;
        let values = listed(schema, findings);
        let Some(words) = type_words(schema, values.as_ref(), findings) else {
            return Type::any(span);
        };
        check_keywords(schema, &words, findings);
        let allows_null = words.contains(&"null");
        let null_listed = values.as_ref().is_none_or(|values| values.open || values.null);
        if let Some(values) = &values {
            values.check(&words, allows_null && !null_listed, findings);
        }
        let nullable = allows_null && null_listed;
        let mut kinds: Vec<TypeKind> = TYPE_WORDS
            .iter()
            .filter(|word| **word != "null" && words.contains(word))
            .filter(|word| **word != "integer" || !words.contains(&"number"))
            .map(|word| self.kind(word, schema, values.as_ref(), findings))
            .collect();
        let kind = match kinds.len() {
            0 => TypeKind::Null,
            1 => kinds.remove(0),
            _ => {
                TypeKind::OneOf(kinds.into_iter().map(|kind| Type { kind, nullable: false, span }).collect())
            }
        };
        Type { nullable: nullable || kind == TypeKind::Null, kind, span }
    }

    fn kind(
        &mut self,
        word: &str,
        schema: &Fields<'_>,
        values: Option<&Values>,
        findings: &mut Findings,
    ) -> TypeKind {
        let scalar = |kind: ScalarKind, findings: &mut Findings| {
            TypeKind::Scalar(Scalar {
                kind,
                values: values.and_then(|values| values.of(kind)),
                format: text_of(schema, "format", findings),
                limits: limits(schema, findings),
            })
        };
        match word {
            "boolean" => scalar(ScalarKind::Boolean, findings),
            "integer" => scalar(ScalarKind::Integer, findings),
            "number" => scalar(ScalarKind::Number, findings),
            "string" => scalar(ScalarKind::String, findings),
            "array" => TypeKind::Array(Array {
                items: Box::new(match schema.get("items") {
                    Some(items) => self.read(items, findings),
                    None => Type::any(schema.node.span),
                }),
                min_items: whole_of(schema, "minItems", findings).unwrap_or(0),
                max_items: whole_of(schema, "maxItems", findings),
            }),
            _ => TypeKind::Object(self.object(schema, findings)),
        }
    }

    fn object(&mut self, schema: &Fields<'_>, findings: &mut Findings) -> Object {
        let properties = schema.get("properties").and_then(|node| node.map(findings)).unwrap_or_default();
        let mut fields: Vec<Field> = properties
            .iter()
            .map(|(key, node)| Field {
                name: key.name.clone(),
                ty: self.read(node, findings),
                required: false,
                span: key.span,
            })
            .collect();
        let by_name: HashMap<&str, usize> =
            properties.iter().enumerate().map(|(i, (key, _))| (key.name.as_str(), i)).collect();
        for node in schema.get("required").and_then(|node| node.list(findings)).unwrap_or_default() {
            let Some(name) = node.text(findings) else { continue };
            match by_name.get(name) {
                Some(index) => fields[*index].required = true,
                None => {
                    let known = properties.iter().map(|(key, _)| key.name.as_str());
                    findings.push(faults::required_without_property(node.span, name, known));
                }
            }
        }
        Object { fields, additional: self.additional(schema, findings) }
    }

    fn additional(&mut self, schema: &Fields<'_>, findings: &mut Findings) -> Additional {
        match schema.get("additionalProperties") {
            None => Additional::Open,
            Some(node) => match node.kind {
                Kind::Bool(true) => Additional::Open,
                Kind::Bool(false) => Additional::Closed,
                _ => Additional::Of(Box::new(self.read(node, findings))),
            },
        }
    }

    /// Reports alternatives that a reader could not tell apart.
    pub(super) fn check_alternatives(&self, types: &Types, findings: &mut Findings) {
        for alternatives in &self.alternatives {
            let mut taken: HashMap<JsonKind, Span> = HashMap::new();
            for alternative in alternatives {
                let kinds = types.json_kinds(alternative);
                match kinds.iter().find_map(|kind| taken.get(kind).map(|earlier| (*kind, *earlier))) {
                    Some((kind, earlier)) => {
                        findings.push(faults::alternatives_overlap(alternative.span, kind, earlier));
                    }
                    None => taken.extend(kinds.into_iter().map(|kind| (kind, alternative.span))),
                }
            }
        }
    }
}

fn is_annotation(name: &str) -> bool {
    ANNOTATIONS.contains(&name) || (name.starts_with("x-") && name != "x-values-seen")
}

fn text_of(schema: &Fields<'_>, key: &str, findings: &mut Findings) -> Option<String> {
    schema.get(key)?.text(findings).map(str::to_owned)
}

fn whole_of(schema: &Fields<'_>, key: &str, findings: &mut Findings) -> Option<u64> {
    schema.get(key)?.whole(0..=u64::MAX, findings)
}

fn number_of(schema: &Fields<'_>, key: &str, findings: &mut Findings) -> Option<String> {
    let node = schema.get(key)?;
    match &node.kind {
        Kind::Number(text) => Some(text.clone()),
        _ => node.wrong_kind("a number", None, findings),
    }
}

fn limits(schema: &Fields<'_>, findings: &mut Findings) -> Limits {
    Limits {
        minimum: number_of(schema, "minimum", findings),
        maximum: number_of(schema, "maximum", findings),
        min_length: whole_of(schema, "minLength", findings),
        max_length: whole_of(schema, "maxLength", findings),
        pattern: text_of(schema, "pattern", findings),
    }
}

/// The words of `type`, or those that the listed values show; `None` for a schema that says nothing.
fn type_words(
    schema: &Fields<'_>,
    values: Option<&Values>,
    findings: &mut Findings,
) -> Option<Vec<&'static str>> {
    let Some(node) = schema.get("type") else {
        let values = values.filter(|values| !values.open);
        if values.is_none() {
            report_missing_type(schema, findings);
        }
        return values.map(Values::words);
    };
    let items = match &node.kind {
        Kind::Seq(items) => items.as_slice(),
        Kind::Null => {
            return node.wrong_kind("a type", Some("quote it: 'null'".to_owned()), findings);
        }
        _ => std::slice::from_ref(node),
    };
    let words: Vec<&str> = items
        .iter()
        .filter_map(|item| match item.is_null() {
            true => item.wrong_kind("a type", Some("quote it: 'null'".to_owned()), findings),
            false => item.word(&TYPE_WORDS, findings),
        })
        .collect();
    (!words.is_empty()).then_some(words)
}

fn report_missing_type(schema: &Fields<'_>, findings: &mut Findings) {
    for (key, _) in schema.entries() {
        if let Some((_, kinds)) = KEYWORD_KINDS.iter().find(|(keyword, _)| *keyword == key.name) {
            findings.push(faults::keyword_without_type(key.span, &key.name, kinds[0]));
        }
    }
}

fn check_keywords(schema: &Fields<'_>, words: &[&str], findings: &mut Findings) {
    for (key, _) in schema.entries() {
        if let Some((_, kinds)) = KEYWORD_KINDS.iter().find(|(keyword, _)| *keyword == key.name)
            && !kinds.iter().any(|kind| words.contains(kind))
        {
            findings.push(faults::keyword_kind(key.span, &key.name, kinds, &words.join(" or ")));
        }
    }
}

/// Values of `enum`, `const` or `x-values-seen`, with their places.
struct Values {
    list: Vec<(Literal, Span)>,
    null: bool,
    open: bool,
    span: Span,
}

fn listed(schema: &Fields<'_>, findings: &mut Findings) -> Option<Values> {
    let (closed, open) = (schema.get("enum"), schema.get("x-values-seen"));
    if let (Some(_), Some((key, _))) = (closed, schema.entry("x-values-seen")) {
        findings.push(faults::enum_open_and_closed(key.span));
    }
    if let Some(node) = schema.get("const") {
        return Some(Values::read(std::slice::from_ref(node), node.span, false, findings));
    }
    let node = closed.or(open)?;
    let items = node.list(findings)?;
    if items.is_empty() {
        findings.push(faults::enum_empty(node.span));
        return None;
    }
    Some(Values::read(items, node.span, closed.is_none(), findings))
}

impl Values {
    fn read(items: &[Node], span: Span, open: bool, findings: &mut Findings) -> Values {
        let mut values = Values { list: Vec::new(), null: false, open, span };
        let mut seen = std::collections::HashSet::new();
        for item in items {
            let literal = match &item.kind {
                Kind::Null => {
                    values.null = true;
                    continue;
                }
                Kind::Bool(value) => Literal::Boolean(*value),
                Kind::Number(text) => Literal::Number(text.clone()),
                Kind::String(text, _) => Literal::String(text.clone()),
                Kind::Seq(_) | Kind::Map(_) => {
                    item.wrong_kind::<()>("a scalar", None, findings);
                    continue;
                }
            };
            if seen.insert(literal.clone()) {
                values.list.push((literal, item.span));
            } else {
                findings.push(faults::enum_value_twice(item.span, &literal.to_string()));
            }
        }
        values
    }

    /// Type words that the values show.
    fn words(&self) -> Vec<&'static str> {
        let shown = |word: &&str| match *word {
            "null" => self.null,
            word => self.list.iter().any(|(literal, _)| narrowest(literal) == word),
        };
        TYPE_WORDS.into_iter().filter(shown).collect()
    }

    fn check(&self, words: &[&str], null_left_out: bool, findings: &mut Findings) {
        for (literal, span) in &self.list {
            if !words.iter().any(|word| is_of(literal, word)) {
                let found = format!("`{literal}` ({})", narrowest(literal));
                findings.push(faults::enum_value_kind(*span, &found, &words.join(" or ")));
            }
        }
        if self.null && !words.contains(&"null") {
            findings.push(faults::enum_value_kind(self.span, "`null`", &words.join(" or ")));
        }
        if null_left_out {
            findings.push(faults::enum_without_null(self.span));
        }
    }

    fn of(&self, kind: ScalarKind) -> Option<Enum> {
        let values: Vec<Literal> = self
            .list
            .iter()
            .filter(|(literal, _)| is_of(literal, kind.word()))
            .map(|(literal, _)| literal.clone())
            .collect();
        (!values.is_empty()).then_some(Enum { values, open: self.open })
    }
}

fn narrowest(literal: &Literal) -> &'static str {
    match literal {
        Literal::Boolean(_) => "boolean",
        Literal::Number(text) if text.contains(['.', 'e', 'E']) => "number",
        Literal::Number(_) => "integer",
        Literal::String(_) => "string",
    }
}

fn is_of(literal: &Literal, word: &str) -> bool {
    let narrowest = narrowest(literal);
    narrowest == word || (narrowest == "integer" && word == "number")
}
