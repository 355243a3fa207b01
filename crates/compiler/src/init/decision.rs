//! The decisions that a draft leaves to a person, as data: rendered as `DECISIONS.md`, written as
//! `DECISIONS.json`, and walked through by the command line.

use crate::diagnostic::{Sources, Span};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A decision for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Id for `--accept`. It is stable as long as the operation's key is.
    pub id: String,
    /// Impact.
    pub weight: Weight,
    /// The operation of the old side, or a field of one of its types.
    pub operation: String,
    /// The difference, in Markdown. Equal texts at equal places are one question.
    pub text: String,
    /// Place within the operation's messages, such as `$.items[*].size`, if there is one.
    pub at: Option<String>,
    /// Places in the documents, by side.
    pub places: [Option<DocumentPlace>; 2],
    /// The effect of accepting it; `None` if an edit is necessary.
    pub proposal: Option<String>,
    /// Lines that resolve it. The first one is in `lines`.
    pub choices: Vec<Choice>,
    /// A mapping file for the operation that passes `check`, to paste and edit. All decisions about
    /// an operation share it.
    pub lines: Option<Arc<str>>,
}

/// The impact of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The operation is refused until a person decides.
    Blocker,
    /// There is a probable answer, which is not part of the draft.
    Proposal,
    /// The operation is served; a person should review the mapping.
    Look,
    /// The operation is served, and a part of its messages does not go over.
    Changed,
}

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct DocumentPlace {
    /// Path of the file within the pack.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// A way to resolve a decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Choice {
    /// Its effect.
    pub label: String,
    /// The line of the mapping.
    pub line: String,
}

impl Decision {
    /// Returns a decision about an operation, or about a field, that needs an edit.
    pub(super) fn new(weight: Weight, operation: &str, text: String) -> Decision {
        Decision {
            id: slug(operation),
            weight,
            operation: operation.to_owned(),
            text,
            at: None,
            places: [None, None],
            proposal: None,
            choices: Vec::new(),
            lines: None,
        }
    }

    /// Returns the decision with its places in the documents.
    pub(super) fn at_spans(self, spans: [Option<Span>; 2], sources: &Sources) -> Decision {
        Decision { places: spans.map(|span| span.map(|span| place_of(span, sources))), ..self }
    }
}

fn place_of(span: Span, sources: &Sources) -> DocumentPlace {
    DocumentPlace { file: sources.name(span.file).to_owned(), line: sources.start(span).line }
}

/// Converts a text to an id: its letters and digits, with `-` between words.
pub(crate) fn slug(text: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(word).collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Decisions with the same question: one answer holds for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecisionGroup {
    /// Impact.
    pub weight: Weight,
    /// The difference, in Markdown.
    pub text: String,
    /// Places in the documents, by side.
    pub places: [Option<DocumentPlace>; 2],
    /// Lines that resolve it.
    pub choices: Vec<Choice>,
    /// Where it occurs, in the order of the decisions.
    pub cases: Vec<DecisionCase>,
}

/// One occurrence of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecisionCase {
    /// Id for `--accept`.
    pub id: String,
    /// The operation of the old side, or a field of one of its types.
    pub operation: String,
    /// Places within the operation's messages.
    pub at: Vec<String>,
    /// The effect of accepting it.
    pub proposal: Option<String>,
}

/// Joins decisions with the same question. Blockers come first, then the questions that concern most
/// operations.
pub fn group(decisions: &[Decision]) -> Vec<DecisionGroup> {
    let mut joined: Vec<DecisionGroup> = Vec::new();
    let mut known: HashMap<(Weight, &str, &[Option<DocumentPlace>; 2]), usize> = HashMap::new();
    for decision in decisions {
        let key = (decision.weight, decision.text.as_str(), &decision.places);
        let at = *known.entry(key).or_insert_with(|| {
            joined.push(DecisionGroup {
                weight: decision.weight,
                text: decision.text.clone(),
                places: decision.places.clone(),
                choices: decision.choices.clone(),
                cases: Vec::new(),
            });
            joined.len() - 1
        });
        let cases = &mut joined[at].cases;
        match cases.last_mut().filter(|last| last.operation == decision.operation) {
            Some(last) => last.at.extend(decision.at.clone()),
            None => cases.push(DecisionCase {
                id: decision.id.clone(),
                operation: decision.operation.clone(),
                at: decision.at.iter().cloned().collect(),
                proposal: decision.proposal.clone(),
            }),
        }
    }
    joined.sort_by_key(|group| (group.weight, std::cmp::Reverse(group.cases.len())));
    joined
}

/// Returns the mapping files of the decisions, by operation.
pub fn files(decisions: &[Decision]) -> BTreeMap<&str, &str> {
    decisions.iter().filter_map(|one| Some((one.operation.as_str(), one.lines.as_deref()?))).collect()
}

/// Renders the decisions as JSON: the joined questions, and the mapping files by operation.
pub(super) fn to_json(joined: &[DecisionGroup], files: &BTreeMap<&str, &str>) -> String {
    let text = serde_json::to_string_pretty(&serde_json::json!({ "decisions": joined, "lines": files }));
    text.unwrap_or_default() + "\n"
}
