//! Keywords that restrict values in ways that types cannot represent. They are stored as text, so
//! that a comparison of two contracts detects differences. Equal texts have the same meaning.

use super::Schemas;
use super::layers::Layer;
use super::text_of;
use crate::contract::types::{Keyword, Limits, Scalar, ScalarKind, Type, TypeKind};
use crate::diagnostic::Span;
use crate::yaml::{Kind, Node};
use switchback_json::text::escape;

/// Keywords for values of every kind.
const OF_ALL: &[&str] = &["not", "$dynamicRef", "$recursiveRef"];

/// Keywords for texts.
const OF_TEXTS: &[&str] = &["contentEncoding", "contentMediaType", "contentSchema"];

/// Keywords for lists.
const OF_LISTS: &[&str] =
    &["contains", "minContains", "maxContains", "prefixItems", "unevaluatedItems", "additionalItems"];

/// Keywords for objects.
const OF_OBJECTS: &[&str] = &[
    "minProperties",
    "maxProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
];

/// Maximum length of a value in bytes. Longer values never compare as equal. The longest schema of
/// a second media type in the documents that were examined has 33 KB (GitHub Enterprise 2.18).
const LENGTH_MAX: usize = 64 * 1024;

/// Maximum depth of inlined references within one value.
const REFERENCES_MAX: usize = 8;

impl<'n> Schemas<'n, '_> {
    /// Returns the keywords of all layers that a type of this kind cannot represent.
    pub(super) fn unread(&self, word: &str, layers: &[Layer<'n>]) -> Vec<Keyword> {
        let of_kind = match word {
            "string" => OF_TEXTS,
            "array" => OF_LISTS,
            "object" => OF_OBJECTS,
            _ => &[],
        };
        let mut found: Vec<Keyword> = Vec::new();
        let mut add = |name: &str, value: String| {
            let keyword = Keyword { name: name.into(), value: value.into() };
            if !found.contains(&keyword) {
                found.push(keyword);
            }
        };
        for layer in layers {
            for name in OF_ALL.iter().chain(of_kind) {
                if let Some(value) = layer.node.get(name) {
                    add(name, self.canonical(value));
                }
            }
            // The three keywords have a meaning only in combination.
            if let Some(condition) = layer.node.get("if") {
                let part = |name| layer.node.get(name).map_or_else(String::new, |node| self.canonical(node));
                let parts = [self.canonical(condition), part("then"), part("else")];
                add("if", format!("[{}]", parts.join(",")));
            }
            match word {
                "object" => self.unread_of_object(layer, layers, &mut add),
                // Before 2020-12, a list under `items` had the meaning of `prefixItems`.
                "array" => {
                    if let Some(items) = layer.node.get("items").filter(|items| items.as_seq().is_some()) {
                        add("prefixItems", self.canonical(items));
                    }
                }
                "string" => {
                    // A type has one format; those of other layers are compared as text.
                    let first = text_of(layers, "format");
                    let other = layer.node.get("format").and_then(Node::as_str);
                    if let Some(other) = other.filter(|other| first.as_deref() != Some(other)) {
                        add("format", format!("\"{}\"", escape(other)));
                    }
                }
                _ => {}
            }
        }
        found
    }

    fn unread_of_object(&self, layer: &Layer<'n>, layers: &[Layer<'n>], add: &mut impl FnMut(&str, String)) {
        let node = layer.node;
        // In an object without declared members, a single pattern is the type of all members. Only
        // a pattern that does not match every name is a further constraint.
        let is_plain = |key: &str| key == "^.*$" || key == ".*" || key.is_empty();
        let patterns = node.get("patternProperties").and_then(Node::as_map).unwrap_or_default();
        let described = layers.iter().any(|layer| layer.node.get("properties").is_some());
        match patterns {
            [] => {}
            [(key, _)] if !described && is_plain(&key.name) => {}
            _ => add(
                "patternProperties",
                node.get("patternProperties").map_or_else(String::new, |node| self.canonical(node)),
            ),
        }
        if let Some(value) =
            node.get("unevaluatedProperties").filter(|value| !matches!(value.kind, Kind::Bool(_)))
        {
            add("unevaluatedProperties", self.canonical(value));
        }
        let choices = ["oneOf", "anyOf"].map(|name| (name, node.get(name).and_then(Node::as_seq)));
        for (name, list) in choices {
            let is_unread = |list: &&[Node]| !list.is_empty() && list.iter().all(super::only_requires);
            if list.filter(is_unread).is_some()
                && let Some(value) = node.get(name)
            {
                add(name, self.canonical(value));
            }
        }
        if let Some(discriminator) =
            node.get("discriminator").filter(|_| !choices.iter().any(|(_, list)| list.is_some()))
        {
            // Swagger 2.0 has a plain name.
            let is_name = discriminator.get("mapping").is_none();
            let name = discriminator.get("propertyName").filter(|_| is_name);
            add("discriminator", self.canonical(name.unwrap_or(discriminator)));
        }
    }

    /// Returns the default of a member's or parameter's schema, or of the target of its reference.
    pub(in crate::contract) fn default_of(&self, nodes: &[&'n Node]) -> Option<Box<str>> {
        let own = |node: &&'n Node| node.get("default").or_else(|| self.follow.follow(node)?.get("default"));
        nodes.iter().find_map(own).map(|node| self.canonical(node).into())
    }

    /// Returns the type of a text with its own media type, given the `content` node.
    pub(in crate::contract) fn text_of(&self, content: &'n Node, span: Span) -> Type {
        let keyword = Keyword { name: "content".into(), value: self.canonical(content).into() };
        let limits = Limits::from(crate::contract::types::ScalarLimits {
            unread: vec![keyword],
            ..Default::default()
        });
        let scalar = Scalar { kind: ScalarKind::String, values: None, format: None, limits };
        Type { kind: TypeKind::Scalar(scalar), nullable: false, span }
    }

    /// Serializes a value as canonical JSON: references inlined, members sorted by name,
    /// annotations removed.
    pub(in crate::contract) fn canonical(&self, node: &'n Node) -> String {
        let mut out = String::new();
        if self.write(node, REFERENCES_MAX, &mut out).is_none() {
            // The place makes the value unequal to any other.
            out.push_str(&format!("…{:?}", node.span));
        }
        out
    }

    /// Returns `None` if the value is too long, or a reference is unresolved or nested too deeply.
    fn write(&self, node: &'n Node, references: usize, out: &mut String) -> Option<()> {
        if out.len() > LENGTH_MAX {
            return None;
        }
        match &node.kind {
            Kind::Null => out.push_str("null"),
            Kind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Kind::Number(number) => out.push_str(number),
            Kind::String(content, _) => out.push_str(&format!("\"{}\"", escape(content))),
            Kind::Seq(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    self.write(item, references, out)?;
                }
                out.push(']');
            }
            // References are inlined, because the names of schemas do not matter.
            Kind::Map(_) if node.get("$ref").is_some_and(|value| value.as_str().is_some()) => {
                self.write(self.follow.follow(node)?, references.checked_sub(1)?, out)?;
            }
            Kind::Map(entries) => {
                const REMARKS: &[&str] =
                    &["description", "title", "summary", "example", "examples", "$comment"];
                let mut entries: Vec<_> =
                    entries.iter().filter(|(key, _)| !REMARKS.contains(&key.name.as_str())).collect();
                // The order of members does not matter.
                entries.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
                out.push('{');
                for (at, (key, value)) in entries.into_iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(&format!("\"{}\":", escape(&key.name)));
                    self.write(value, references, out)?;
                }
                out.push('}');
            }
        }
        Some(())
    }
}
