//! The decisions that a draft leaves to a person, as data: rendered as `DECISIONS.md`, written as
//! `DECISIONS.json`, and walked through by the command line.

use crate::diagnostic::{Sources, Span};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DocumentPlace {
    /// Path of the file within the pack.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// A way to resolve a decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionGroup {
    /// Impact.
    pub weight: Weight,
    /// The traffic that waits for it; `None` without recorded traffic, or for a question about a type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<DecisionTraffic>,
    /// The difference, in Markdown.
    pub text: String,
    /// Places in the documents, by side.
    pub places: [Option<DocumentPlace>; 2],
    /// Lines that resolve it.
    pub choices: Vec<Choice>,
    /// Where it occurs, in the order of the decisions.
    pub cases: Vec<DecisionCase>,
}

impl DecisionGroup {
    /// Returns the ids under which it can be answered.
    pub fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.cases.iter().map(|case| case.id.clone()).collect();
        ids.dedup();
        ids
    }

    /// Returns whether an answer is necessary for a part of the draft.
    pub fn is_open(&self) -> bool {
        matches!(self.weight, Weight::Blocker | Weight::Proposal)
    }
}

/// Calls of the operations that a question concerns. The order is that of importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecisionTraffic {
    /// Number of calls.
    pub calls: u64,
    /// Number of different clients.
    pub clients: usize,
}

impl DecisionTraffic {
    /// Renders it, such as `12 calls, 1 client`.
    pub fn render(self) -> String {
        let count = |count: u64, noun| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        format!("{}, {}", count(self.calls, "call"), count(self.clients as u64, "client"))
    }
}

/// The use of an operation of the old side by clients, in recorded traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationUse {
    /// Key of the operation.
    pub operation: String,
    /// Number of calls.
    pub calls: u64,
    /// The clients, by number.
    #[serde(rename = "client_numbers")]
    pub clients: BTreeSet<usize>,
}

/// Returns the uses of operations from the JSON of `switchback learn`.
pub fn parse_uses(learned: &str) -> Option<Vec<OperationUse>> {
    #[derive(Deserialize)]
    struct LearnedFile {
        operations: Vec<OperationUse>,
    }
    serde_json::from_str(learned).ok().map(|file: LearnedFile| file.operations)
}

/// One occurrence of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// Joins decisions with the same question. Blockers come first, then the questions that most calls and
/// clients wait for, then those that concern most operations.
pub(super) fn group(decisions: &[Decision], uses: &[OperationUse]) -> Vec<DecisionGroup> {
    let mut joined: Vec<DecisionGroup> = Vec::new();
    let mut known: HashMap<(Weight, &str, &[Option<DocumentPlace>; 2]), usize> = HashMap::new();
    for decision in decisions {
        let key = (decision.weight, decision.text.as_str(), &decision.places);
        let at = *known.entry(key).or_insert_with(|| {
            joined.push(DecisionGroup {
                weight: decision.weight,
                traffic: None,
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
    let uses: HashMap<&str, &OperationUse> = uses.iter().map(|one| (one.operation.as_str(), one)).collect();
    for group in &mut joined {
        group.traffic = traffic(&group.cases, &uses);
    }
    joined.sort_by_key(|group| (group.weight, Reverse((group.traffic, group.cases.len()))));
    joined
}

fn traffic(cases: &[DecisionCase], uses: &HashMap<&str, &OperationUse>) -> Option<DecisionTraffic> {
    let operations: BTreeSet<&str> = cases.iter().map(|case| case.operation.as_str()).collect();
    let uses: Vec<_> = operations.iter().filter_map(|operation| uses.get(operation)).collect();
    let clients: BTreeSet<usize> = uses.iter().flat_map(|one| &one.clients).copied().collect();
    let calls = uses.iter().map(|one| one.calls).sum();
    (!uses.is_empty()).then_some(DecisionTraffic { calls, clients: clients.len() })
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

/// Returns the joined questions of the JSON, in their order.
pub fn parse_list(list: &str) -> Option<Vec<DecisionGroup>> {
    #[derive(Deserialize)]
    struct DecisionList {
        decisions: Vec<DecisionGroup>,
    }
    serde_json::from_str(list).ok().map(|list: DecisionList| list.decisions)
}
