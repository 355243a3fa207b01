//! Notes of a route for the report: differences, approximations and the verdict.

use super::kinds::{MapOf, OneOrList, Text, kinds};
use super::section::section;
use super::{SideRef, Spanned, SyntaxReader};
use crate::mapping::schema::{by_side, map_of, reference, text};
use crate::yaml::{Kind, Node};
use serde_json::json;

kinds! {
    /// One sentence or a list of them.
    Sentences -> Vec<Spanned<String>>, OneOrList::<Text>::read, |_| reference("sentences");
    /// Sentences, or `{name: sentence}`.
    Approximations -> Vec<(Option<Spanned<String>>, Spanned<String>)>, |key, node, reader| Some(match node.kind {
        Kind::Map(_) => {
            let named = MapOf::<Text>::read(key, node, reader)?.into_iter();
            named.map(|(name, text)| (Some(name), text)).collect()
        }
        _ => Sentences::read(key, node, reader)?.into_iter().map(|text| (None, text)).collect(),
    }), |_| json!({"anyOf": [reference("sentences"), map_of(&text())]});
    /// A verdict for both directions of a pair, or by side.
    Verdicts -> Vec<(Option<SideRef>, Spanned<String>)>, |_, node, reader| {
        let Kind::Map(entries) = &node.kind else {
            return reader.verdict(node).map(|word| vec![(None, word)]);
        };
        let mut verdicts = Vec::new();
        for (key, value) in entries.iter() {
            let side = reader.side(&key.name, key.span);
            let word = reader.verdict(value);
            verdicts.extend(side.zip(word).map(|(side, word)| (Some(side), word)));
        }
        Some(verdicts)
    }, |sides| json!({"anyOf": [reference("verdict"), by_side(sides, 1, &reference("verdict"))]});
}

/// Words for how well a route keeps its operation.
pub(in crate::mapping) const VERDICTS: &[&str] = &["exact", "different", "partly"];

impl SyntaxReader<'_> {
    fn verdict(&mut self, node: &Node) -> Option<Spanned<String>> {
        let word = node.word(VERDICTS, self.findings)?;
        Some(Spanned { value: word.to_owned(), span: node.span })
    }
}

section! {
    /// Annotations of a route for the report. The compiler derives the verdict and reports a
    /// declared one that differs. Refused routes have no verdict.
    #[derive(Default)]
    Notes is "the notes of a route" {
        /// Differences, for the report.
        default differs: Sentences,
        /// Approximations, for the report. Names of approximations are listed in a header field of
        /// answers.
        default approximate: Approximations,
        /// Verdict on the operation.
        default verdict: Verdicts,
    }
}
