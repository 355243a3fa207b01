//! The kinds of values that a schema allows, from `type` or implied by other keywords, and the
//! values that it enumerates.

use super::layers::Layer;
use crate::contract::faults;
use crate::contract::grouped::Grouped;
use crate::contract::types::{Enum, Literal, ScalarKind};
use crate::diagnostic::Span;
use crate::yaml::{Kind, Node};
use std::collections::HashSet;

pub(super) const TYPE_WORDS: [&str; 7] =
    ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Returns the types that all layers allow, or those implied by keywords and enumerated values.
/// Returns `None` if there is no such evidence.
pub(super) fn type_words(
    layers: &[Layer<'_>],
    values: Option<&EnumValues>,
    findings: &mut Grouped,
) -> Option<Vec<&'static str>> {
    let mut words: Option<Vec<&'static str>> = None;
    for node in layers.iter().filter_map(|layer| layer.node.get("type")) {
        let said = words_of(node, findings)?;
        words = Some(match words {
            None => said,
            Some(words) => {
                let both = intersection(&words, &said);
                if both.is_empty() {
                    findings.add("no type", node.span, || faults::no_common_type(node.span));
                    return None;
                }
                both
            }
        });
    }
    let has = |key: &str| layers.iter().any(|layer| layer.node.get(key).is_some());
    let lists = |key: &str| layers.iter().any(|layer| layer.node.get(key).and_then(Node::as_seq).is_some());
    let maps = |key: &str| layers.iter().any(|layer| layer.node.get(key).and_then(Node::as_map).is_some());
    // Without `type`, the other keywords imply the kind.
    words.or_else(|| {
        if let Some(values) = values.filter(|values| !values.open) {
            return Some(values.words());
        }
        // Keywords of another type have no effect in JSON Schema, so their presence reveals the intended
        // type.
        if maps("properties")
            || maps("additionalProperties")
            || maps("patternProperties")
            || lists("required")
        {
            return Some(vec!["object"]);
        }
        if has("items") || has("prefixItems") {
            return Some(vec!["array"]);
        }
        if has("pattern") || has("minLength") || has("maxLength") {
            return Some(vec!["string"]);
        }
        let of_numbers = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
        if of_numbers.into_iter().any(has) {
            return Some(vec!["number"]);
        }
        // An open enumeration is the weakest evidence.
        values.map(EnumValues::words)
    })
}

fn words_of(node: &Node, findings: &mut Grouped) -> Option<Vec<&'static str>> {
    let items = match &node.kind {
        Kind::Seq(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut words = Vec::new();
    for item in items {
        let text = match &item.kind {
            Kind::Null => "null",
            Kind::String(text, _) => text.as_str(),
            _ => "",
        };
        match TYPE_WORDS.iter().find(|word| **word == text) {
            Some(word) => words.push(*word),
            // Binary data in Swagger 2.0.
            None if text == "file" => return None,
            None => {
                let key = format!("type {text}");
                findings.add(&key, item.span, || faults::unknown_type_word(item.span, text, &TYPE_WORDS));
                return None;
            }
        }
    }
    (!words.is_empty()).then_some(words)
}

fn intersection(a: &[&'static str], b: &[&'static str]) -> Vec<&'static str> {
    let goes = |word: &str, among: &[&'static str]| {
        // Every integer is a number.
        among.contains(&word) || (word == "integer" && among.contains(&"number"))
    };
    let mut both: Vec<&'static str> = a.iter().copied().filter(|word| goes(word, b)).collect();
    for word in b.iter().copied().filter(|word| goes(word, a)) {
        if !both.contains(&word) {
            both.push(word);
        }
    }
    both
}

/// The values of `enum`, `const` or `x-values-seen`, with their places.
#[derive(Clone)]
pub(super) struct EnumValues {
    list: Vec<(Literal, Span)>,
    pub(super) null: bool,
    pub(super) open: bool,
    span: Span,
}

/// Returns the values that all layers enumerate. A closed enumeration overrides an open one.
pub(super) fn common_values(layers: &[Layer<'_>], findings: &mut Grouped) -> Option<EnumValues> {
    let mut found: Option<EnumValues> = None;
    for layer in layers {
        let Some(values) = listed_in(layer.node, findings) else { continue };
        found = Some(match found {
            None => values,
            Some(known) if known.open != values.open => {
                if known.open {
                    values
                } else {
                    known
                }
            }
            Some(known) => known.common(values),
        });
    }
    found
}

fn listed_in(schema: &Node, findings: &mut Grouped) -> Option<EnumValues> {
    if let Some(node) = schema.get("const") {
        return EnumValues::parse(std::slice::from_ref(node), node.span, false, findings);
    }
    let closed = schema.get("enum");
    let open = schema.get("x-values-seen").or_else(|| schema.get("x-extensible-enum"));
    if let (Some(_), Some(open)) = (closed, open) {
        findings.add("enum", open.span, || faults::enum_open_and_closed(open.span));
    }
    let node = closed.or(open)?;
    let items = node.as_seq().filter(|items| !items.is_empty())?;
    EnumValues::parse(items, node.span, closed.is_none(), findings)
}

impl EnumValues {
    /// Returns `None` if a value is a list or an object.
    fn parse(items: &[Node], span: Span, open: bool, findings: &mut Grouped) -> Option<EnumValues> {
        let mut values = EnumValues { list: Vec::new(), null: false, open, span };
        let mut seen = HashSet::new();
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
                    findings.add("enum value", item.span, || faults::enum_of_values(item.span));
                    return None;
                }
            };
            if seen.insert(literal.clone()) {
                values.list.push((literal, item.span));
            }
        }
        Some(values)
    }

    /// Returns the common values. Without a common value, no value is valid; the shorter list is
    /// then returned.
    fn common(self, other: EnumValues) -> EnumValues {
        let known: HashSet<&Literal> = other.list.iter().map(|(one, _)| one).collect();
        let both: Vec<_> = self.list.iter().filter(|(one, _)| known.contains(one)).cloned().collect();
        let null = self.null && other.null;
        match both.is_empty() && !null {
            true => {
                if other.list.len() < self.list.len() {
                    other
                } else {
                    self
                }
            }
            false => EnumValues { list: both, null, ..self },
        }
    }

    /// Returns the types of the values.
    fn words(&self) -> Vec<&'static str> {
        let shown = |word: &&str| match *word {
            "null" => self.null,
            word => self.list.iter().any(|(literal, _)| narrowest(literal) == word),
        };
        TYPE_WORDS.into_iter().filter(shown).collect()
    }

    pub(super) fn check(&self, words: &[&str], null_left_out: bool, asked: bool, findings: &mut Grouped) {
        for (literal, span) in &self.list {
            if !words.iter().any(|word| is_of(literal, word)) {
                let found = format!("`{literal}` ({})", narrowest(literal));
                findings
                    .add("enum kind", *span, || faults::enum_value_kind(*span, &found, &words.join(" or ")));
            }
        }
        if self.null && !words.contains(&"null") && !asked {
            findings.add("enum kind", self.span, || {
                faults::enum_value_kind(self.span, "`null`", &words.join(" or "))
            });
        }
        if null_left_out {
            findings.add("enum null", self.span, || faults::enum_without_null(self.span));
        }
    }

    pub(super) fn to_enum(&self, kind: ScalarKind) -> Option<Enum> {
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
