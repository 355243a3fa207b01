//! The keywords of schemas: those that types represent, those without effect on values, and those
//! that types cannot represent.

use super::Schemas;
use crate::contract::faults;
use crate::contract::grouped::Grouped;
use crate::diagnostic::suggest;
use crate::yaml::{Kind, Node};

/// Keywords without effect on values, or without effect on their translation, and keywords that are
/// read elsewhere.
pub(super) const SILENT: &[&str] = &[
    "title",
    "description",
    "summary",
    "default",
    "example",
    "examples",
    "deprecated",
    "externalDocs",
    "$comment",
    "$schema",
    "$id",
    "$anchor",
    "$defs",
    "definitions",
    "xml",
    "readOnly",
    "writeOnly",
    "discriminator",
    // Parameters of Swagger 2.0 are schemas themselves.
    "name",
    "in",
    "collectionFormat",
    "allowEmptyValue",
];

/// Keywords that types represent, or that comparisons use.
const READ: &[&str] = &[
    "type",
    "nullable",
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
    "allOf",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "patternProperties",
    "unevaluatedProperties",
    "prefixItems",
    "multipleOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    // Used only in comparisons; see `unread`.
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "propertyNames",
];

/// Keywords that restrict values in ways that types cannot represent. The types accept a few more
/// values than the document. Comparisons of two contracts use the text of these keywords; see
/// `unread`.
const NOT_READ: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "contains",
    "unevaluatedItems",
    "additionalItems",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
];

impl<'n> Schemas<'n, '_> {
    /// Reports keywords that types cannot represent, and misspelt ones.
    pub(super) fn check_keys(&mut self, node: &'n Node, findings: &mut Grouped) {
        for (key, _) in node.as_map().unwrap_or_default() {
            let name = key.name.as_str();
            if READ.contains(&name) || SILENT.contains(&name) || name.starts_with("x-") {
                continue;
            }
            if NOT_READ.contains(&name) {
                findings.add(name, key.span, || faults::wider(key.span, name));
                continue;
            }
            // Suggestions are expensive, and a document repeats its keywords.
            let near = *self.unknown.entry(name).or_insert_with(|| suggest(name, READ.iter().copied()));
            if let Some(near) = near {
                findings.add(&format!("key {name}"), key.span, || faults::near_key(key.span, name, near));
            }
        }
    }
}

pub(super) fn says_nullable(node: &Node) -> bool {
    ["nullable", "x-nullable"].iter().any(|key| node.get(key).is_some_and(|v| v.kind == Kind::Bool(true)))
}

/// Returns whether a schema has constraints in addition to its alternatives.
pub(super) fn says_something(node: &Node) -> bool {
    node.as_map().unwrap_or_default().iter().any(|(key, _)| {
        let name = key.name.as_str();
        // The alternatives repeat or imply a type or format.
        (READ.contains(&name) || NOT_READ.contains(&name))
            && !matches!(name, "oneOf" | "anyOf" | "allOf" | "$ref" | "nullable" | "type" | "format")
    })
}

/// Returns whether an alternative only lists required members.
pub(super) fn only_requires(node: &Node) -> bool {
    node.as_map().is_some_and(|entries| {
        !entries.is_empty()
            && entries.iter().all(|(key, _)| {
                matches!(key.name.as_str(), "required" | "not" | "minProperties" | "maxProperties")
                    || (SILENT.contains(&key.name.as_str()))
            })
    })
}
