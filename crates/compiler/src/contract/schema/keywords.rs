//! The keywords of schemas: those that types represent, those without effect on values, and those
//! that types cannot represent.

use super::Schemas;
use crate::contract::faults;
use crate::diagnostic::suggest;
use crate::yaml::{Kind, Node};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The treatment of a keyword by the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordUse {
    /// Types represent it, or comparisons use it; see `unread`.
    Read,
    /// It has no effect on values or on their translation, or is read elsewhere. Parameters of
    /// Swagger 2.0 are schemas themselves.
    Silent,
    /// It restricts values in ways that types cannot represent: they accept a few more values than
    /// the document. Comparisons of two contracts use its text.
    NotRead,
}

const READ: &str = "\
    type nullable enum const properties required additionalProperties items minItems maxItems \
    $ref oneOf anyOf allOf format pattern minimum maximum minLength maxLength patternProperties \
    unevaluatedProperties prefixItems multipleOf exclusiveMinimum exclusiveMaximum uniqueItems \
    minProperties maxProperties minContains maxContains contentEncoding contentMediaType \
    contentSchema propertyNames";
const SILENT: &str = "\
    title description summary default example examples deprecated externalDocs $comment $schema \
    $id $anchor $defs definitions xml readOnly writeOnly discriminator name in collectionFormat \
    allowEmptyValue";
const NOT_READ: &str = "\
    not if then else dependentRequired dependentSchemas dependencies contains unevaluatedItems \
    additionalItems $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary";

/// Returns the use of a keyword, or `None` if it is unknown.
pub(super) fn use_of(name: &str) -> Option<KeywordUse> {
    static USES: LazyLock<HashMap<&str, KeywordUse>> = LazyLock::new(|| {
        let all = [(READ, KeywordUse::Read), (SILENT, KeywordUse::Silent), (NOT_READ, KeywordUse::NotRead)];
        all.into_iter().flat_map(|(names, of)| names.split(' ').map(move |name| (name, of))).collect()
    });
    USES.get(name).copied()
}

impl<'n> Schemas<'n, '_> {
    /// Reports keywords that types cannot represent, and misspelt ones.
    pub(super) fn check_keys(&mut self, node: &'n Node) {
        for (key, _) in node.as_map().unwrap_or_default() {
            let name = key.name.as_str();
            match use_of(name) {
                Some(KeywordUse::Read | KeywordUse::Silent) => {}
                _ if name.starts_with("x-") => {}
                Some(KeywordUse::NotRead) => {
                    self.findings.add(name, key.span, || faults::wider(key.span, name));
                }
                // Suggestions are expensive, and a document repeats its keywords.
                None => {
                    let near = *self.unknown.entry(name).or_insert_with(|| suggest(name, READ.split(' ')));
                    if let Some(near) = near {
                        let key_of = format!("key {name}");
                        self.findings.add(&key_of, key.span, || faults::near_key(key.span, name, near));
                    }
                }
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
        matches!(use_of(name), Some(KeywordUse::Read | KeywordUse::NotRead))
            && !matches!(name, "oneOf" | "anyOf" | "allOf" | "$ref" | "nullable" | "type" | "format")
    })
}

/// Returns whether an alternative only lists required members.
pub(super) fn only_requires(node: &Node) -> bool {
    node.as_map().is_some_and(|entries| {
        !entries.is_empty()
            && entries.iter().all(|(key, _)| {
                matches!(key.name.as_str(), "required" | "not" | "minProperties" | "maxProperties")
                    || use_of(&key.name) == Some(KeywordUse::Silent)
            })
    })
}
