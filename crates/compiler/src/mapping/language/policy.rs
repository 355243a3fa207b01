//! Policies for refused operations, in the manifest and in routes.

use super::Spanned;
use super::kinds::{Status, Text, kinds};
use super::section::section;
use crate::mapping::schema::{map_of, words};
use crate::yaml::Kind;
use serde_json::json;

section! {
    /// Refusal policy. Fields that a route omits are inherited from the manifest.
    #[derive(Default)]
    RefusePolicyDecl is "a policy of refusal", defines "policy" {
        /// Whether the operation is forwarded to the old service while one is configured.
        default legacy_forward("legacy"): LegacyForward,
        /// Status of the refusal otherwise.
        optional status: Status,
        /// Another status from a date on.
        optional after: AfterDecl,
    }
}

section! {
    /// The status of a refusal that is permanent.
    AfterDecl is "`after`" {
        /// `YYYY-MM-DD`, `$.config.name` for a setting that is a date, or null for never.
        lenient date: AfterDate,
        /// Status of the refusal from that day on.
        optional status: Status,
    }
}

/// The date from which a refusal is permanent.
#[derive(Clone, Debug)]
pub(crate) enum AfterDateDecl {
    Never,
    Day(String),
    /// `$.config.name`: set by the operator.
    Setting(Spanned<String>),
}

kinds! {
    /// `null`, a day, or `$.config.name`.
    AfterDate -> Spanned<AfterDateDecl>, |key, node, reader| {
        let span = node.span;
        if node.is_null() {
            return Some(Spanned { value: AfterDateDecl::Never, span });
        }
        let text = Text::read(key, node, reader)?;
        let value = match text.value.strip_prefix("$.config.") {
            Some(name) => AfterDateDecl::Setting(Spanned { value: name.to_owned(), span }),
            None => AfterDateDecl::Day(text.value),
        };
        Some(Spanned { value, span })
    }, |_| json!({"type": ["string", "null"]});
    /// `forward` or `never`, for clients of both sides or as `{v2: forward, v3: never}`.
    LegacyForward -> [Option<bool>; 2], |_, node, reader| {
        let Kind::Map(entries) = &node.kind else {
            let word = node.word(LEGACY, reader.findings).map(|word| word == "forward");
            return Some([word, word]);
        };
        let mut by_side = [None, None];
        for (key, value) in entries.iter() {
            let word = value.word(LEGACY, reader.findings);
            if let (Some(side), Some(word)) = (reader.side(&key.name, key.span), word) {
                by_side[side.side] = Some(word == "forward");
            }
        }
        Some(by_side)
    }, |_| json!({"anyOf": [words(LEGACY), map_of(&words(LEGACY))]});
}

const LEGACY: &[&str] = &["forward", "never"];

section! {
    /// `{refuse: reason}` with an optional `policy:`
    Refuse is "`else`" {
        /// Refused, with this reason.
        required reason("refuse"): Text,
        /// Policy for this refusal.
        default policy: RefusePolicyDecl,
    }
}
