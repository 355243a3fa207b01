//! Reads policies for refused operations, in the manifest and in routes.

use super::{SyntaxReader, keys};
use crate::mapping::ast::{AfterDateDecl, Refuse, RefusePolicyDecl, Spanned};
use crate::yaml::{Kind, Node};

impl SyntaxReader<'_> {
    /// Reads `{legacy, status, after: {date, status}}`.
    pub(super) fn policy(&mut self, node: &Node) -> RefusePolicyDecl {
        let mut policy = RefusePolicyDecl::default();
        let Some(fields) = self.fields(node, &keys::POLICY) else { return policy };
        if let Some(legacy) = fields.get("legacy") {
            policy.legacy_forward = self.legacy(legacy);
        }
        policy.status = fields.get("status").and_then(|n| self.status(n));
        let Some(after) = fields.get("after").and_then(|n| self.fields(n, &keys::AFTER)) else {
            return policy;
        };
        if let Some(date) = after.get("date") {
            policy.after_date = self.after_date(date).map(|value| Spanned { value, span: date.span });
        }
        policy.after_status = after.get("status").and_then(|n| self.status(n));
        policy
    }

    /// Reads `null`, a day, or `$.config.name`.
    fn after_date(&mut self, node: &Node) -> Option<AfterDateDecl> {
        if node.is_null() {
            return Some(AfterDateDecl::Never);
        }
        let text = self.text(node)?;
        Some(match text.value.strip_prefix("$.config.") {
            Some(name) => AfterDateDecl::Setting(Spanned { value: name.to_owned(), span: text.span }),
            None => AfterDateDecl::Day(text.value),
        })
    }

    /// Reads `forward` or `never`, for clients of both sides or as `{v2: forward, v3: never}`.
    pub(super) fn legacy(&mut self, node: &Node) -> [Option<bool>; 2] {
        const WORDS: &[&str] = &["forward", "never"];
        let Kind::Map(entries) = &node.kind else {
            let word = node.word(WORDS, self.findings).map(|word| word == "forward");
            return [word, word];
        };
        let mut by_side = [None, None];
        for (key, value) in entries {
            let word = value.word(WORDS, self.findings);
            if let (Some(side), Some(word)) = (self.side(&key.name, key.span), word) {
                by_side[side.side] = Some(word == "forward");
            }
        }
        by_side
    }

    /// Reads `refuse: reason` with its optional `policy:`.
    pub(super) fn refuse(&mut self, reason: &Node, policy: Option<&Node>) -> Option<Refuse> {
        let policy = policy.map(|node| self.policy(node)).unwrap_or_default();
        Some(Refuse { reason: self.text(reason)?, policy })
    }
}
