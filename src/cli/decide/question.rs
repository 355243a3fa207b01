//! An open decision, the answers to it, and its text.

use serde_json::json;
use switchback_compiler::init::{Choice, DecisionGroup, DocumentPlace, Draft, SideDocument, Weight};

/// An open decision of a draft. One answer holds for all its operations.
pub(super) struct Question {
    /// The ids under which it can be answered.
    pub ids: Vec<String>,
    pub group: DecisionGroup,
    /// The effect of accepting the proposal, if there is one.
    pub proposal: Option<String>,
    /// Lines that resolve it. A proposal has none besides its own.
    pub choices: Vec<Choice>,
    /// Operations that can be refused instead.
    pub operations: Vec<String>,
}

pub(super) enum Answer {
    Accept,
    Line(String),
    /// The text for clients.
    Refuse(String),
    Skip,
}

/// Lines of a document that are displayed, and their longest part.
const LINES_SHOWN: usize = 3;
const COLUMNS_SHOWN: usize = 120;

/// Returns the open decisions of a draft, blockers first, and those with the most calls before others.
pub(super) fn questions(draft: &Draft) -> Vec<Question> {
    let keys: Vec<String> = draft
        .compiled
        .contracts
        .iter()
        .flat_map(|[old, _]| &old.operations)
        .map(|one| one.key.to_string())
        .collect();
    let open = draft.questions().into_iter().filter(DecisionGroup::is_open);
    open.map(|group| {
        let ids = group.ids();
        let proposal = group.cases.iter().find_map(|case| case.proposal.clone());
        // A refusal has an answer of its own, and the line of a proposal is written by accepting it.
        let is_line = |choice: &&Choice| proposal.is_none() && !choice.line.starts_with("{serve:");
        let choices = group.choices.iter().filter(is_line).cloned().collect();
        let operations = group.cases.iter().map(|case| case.operation.clone());
        let operations = operations.filter(|operation| keys.contains(operation)).collect();
        Question { ids, group, proposal, choices, operations }
    })
    .collect()
}

impl Question {
    /// Parses an answer. The error says which answers there are.
    pub(super) fn parse(&self, text: &str) -> Result<Answer, String> {
        let own = ["only: {", "rename: {"].iter().any(|start| text.starts_with(start));
        match text.split_once(' ').unwrap_or((text, "")) {
            ("skip", "") => Ok(Answer::Skip),
            ("accept", "") if self.proposal.is_some() => Ok(Answer::Accept),
            ("refuse", reason) if !self.operations.is_empty() && !reason.trim().is_empty() => {
                Ok(Answer::Refuse(reason.trim().to_owned()))
            }
            _ if own && !self.choices.is_empty() => Ok(Answer::Line(text.to_owned())),
            (number, "") => {
                let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let choice = at.and_then(|at| self.choices.get(at));
                choice.map(|choice| Answer::Line(choice.line.clone())).ok_or_else(|| self.no_answer(text))
            }
            _ => Err(self.no_answer(text)),
        }
    }

    fn no_answer(&self, text: &str) -> String {
        let answers: Vec<String> = self.answers().into_iter().map(|(answer, ..)| answer).collect();
        format!("`{text}` is no answer to `{}`: answer {}", self.ids[0], answers.join(", "))
    }

    /// Returns the answers with their effects and lines.
    fn answers(&self) -> Vec<(String, String, Option<&str>)> {
        let mut all = Vec::new();
        let line = self.group.choices.first().map(|choice| choice.line.as_str());
        all.extend(self.proposal.iter().map(|proposal| ("accept".to_owned(), proposal.clone(), line)));
        let choices = self.choices.iter().enumerate();
        all.extend(
            choices.map(|(at, one)| ((at + 1).to_string(), one.label.clone(), Some(one.line.as_str()))),
        );
        if !self.choices.is_empty() {
            all.push(("LINE".to_owned(), "a line of your own, of the form of these".to_owned(), None));
        }
        if !self.operations.is_empty() {
            all.push((
                "refuse TEXT".to_owned(),
                "refuse it for good, with this text for clients".to_owned(),
                None,
            ));
        }
        all.push((
            "skip".to_owned(),
            "leave it open, for example to write a mapping file by hand".to_owned(),
            None,
        ));
        all
    }

    /// Renders the decision with its places and answers.
    pub(super) fn render(&self, sides: &[SideDocument; 2]) -> String {
        let weight = if self.group.weight == Weight::Blocker { "blocker" } else { "proposal" };
        let traffic = self.group.traffic.map(|traffic| format!(", {}", traffic.render()));
        let mut text = format!("{}   {weight}{}\n", self.ids.join(", "), traffic.unwrap_or_default());
        for case in &self.group.cases {
            let at = if case.at.is_empty() { String::new() } else { format!(" at {}", case.at.join(", ")) };
            text.push_str(&format!("  {}{at}\n", case.operation));
        }
        text.push_str(&format!("  {}\n", self.group.text));
        for (side, place) in sides.iter().zip(&self.group.places) {
            text.push_str(&place.as_ref().map(|place| excerpt(side, place)).unwrap_or_default());
        }
        for (answer, label, line) in self.answers() {
            let line = line.map(|line| format!(": {line}")).unwrap_or_default();
            text.push_str(&format!("  [{answer}] {label}{line}\n"));
        }
        text
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        let answers = self.answers().into_iter();
        let answers =
            answers.map(|(answer, label, line)| json!({"answer": answer, "label": label, "line": line}));
        json!({ "ids": self.ids, "decision": self.group, "answers": answers.collect::<Vec<_>>() })
    }
}

/// Renders a place in a document with its first lines.
fn excerpt(side: &SideDocument, place: &DocumentPlace) -> String {
    let mut text = format!("  {}:{}\n", place.file, place.line);
    let file = side.files.iter().find(|(name, _)| *name == place.file);
    let source = file.map(|(_, bytes)| String::from_utf8_lossy(bytes)).unwrap_or_default();
    let first = place.line as usize;
    for (at, line) in source.lines().enumerate().skip(first.saturating_sub(1)).take(LINES_SHOWN) {
        // Documents without line breaks have very long lines.
        let end = line.char_indices().nth(COLUMNS_SHOWN);
        let line = end.map_or_else(|| line.to_owned(), |(end, _)| format!("{} …", &line[..end]));
        text.push_str(&format!("  {:>6} | {line}\n", at + 1));
    }
    text
}
