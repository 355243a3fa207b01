//! The state of a run: the pack's folder, the decisions made so far, and the draft that they give.

use super::question::{Answer, Question, questions};
use crate::cli::init::{self, BASE};
use crate::cli::output::count_noun;
use crate::cli::pack::render_findings;
use std::io;
use std::path::{Path, PathBuf};
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::init::{DECISIONS, DECISIONS_JSON, Draft, SideDocument, Weight};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::{PackSource, sides};
use switchback_compiler::yaml::{self, Node};

/// The reason why a run ends.
pub(super) enum SessionError {
    /// The arguments or answers are wrong.
    Usage(String),
    /// A document or an answer does not compile.
    Findings(String),
    Io(io::Error),
}

impl SessionError {
    /// Puts the place of an answer before the text.
    pub(super) fn prefix(self, place: &str) -> SessionError {
        match self {
            SessionError::Usage(why) => SessionError::Usage(format!("{place}{why}")),
            SessionError::Findings(why) => SessionError::Findings(format!("{place}{why}")),
            SessionError::Io(error) => SessionError::Io(error),
        }
    }
}

impl From<io::Error> for SessionError {
    fn from(error: io::Error) -> SessionError {
        SessionError::Io(error)
    }
}

pub(super) struct DecideSession {
    folder: PathBuf,
    /// Name of the pack.
    name: String,
    sides: [SideDocument; 2],
    decided: Vec<String>,
    draft: Draft,
    /// Whether the folder compiles, with the edits of the user.
    is_clean: bool,
}

/// A draft with one decision more, before it is written.
pub(super) struct DraftAttempt {
    decided: Vec<String>,
    draft: Draft,
}

impl DecideSession {
    /// Reads the documents and decisions of a drafted pack, and drafts it.
    pub(super) fn open(folder: &Path) -> Result<DecideSession, SessionError> {
        let place = folder.display();
        if !folder.join(BASE).is_dir() {
            let why = format!("{place} is no drafted pack: draft one with `switchback init OLD NEW {place}`");
            return Err(SessionError::Usage(why));
        }
        let source =
            PackSource::from_dir(folder).map_err(|error| io::Error::other(format!("{place}: {error}")))?;
        let (name, documents) = manifest(&source).ok_or_else(|| {
            SessionError::Findings(format!("{place}/pack.yaml does not name two contracts"))
        })?;
        let [old, new] = documents.map(|(name, path)| init::side(&folder.join(path), &name));
        let (sides, decided) = ([old?, new?], init::read_decided(folder));
        let draft = draft(&name, folder, &sides, &decided)?;
        let is_clean = findings(folder)?.is_none();
        Ok(DecideSession { folder: folder.to_owned(), name, sides, decided, draft, is_clean })
    }

    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(super) fn sides(&self) -> &[SideDocument; 2] {
        &self.sides
    }

    /// Renders the progress: `3 decisions open: 2 blockers, 1 proposal`.
    pub(super) fn summary(&self) -> String {
        let open = questions(&self.draft);
        let of = |weight: Weight| open.iter().filter(|question| question.group.weight == weight).count();
        let [blockers, proposals] = [(Weight::Blocker, "blocker"), (Weight::Proposal, "proposal")]
            .map(|(weight, noun)| count_noun(of(weight) as u64, noun));
        format!("{} open: {blockers}, {proposals}\n", count_noun(open.len() as u64, "decision"))
    }

    pub(super) fn has_decided(&self) -> bool {
        !self.decided.is_empty()
    }

    /// Returns whether an earlier decision has this id.
    pub(super) fn is_decided(&self, id: &str) -> bool {
        let is_its =
            |line: &str| line == id || line.strip_prefix(id).is_some_and(|rest| rest.starts_with(": "));
        self.decided.iter().any(|line| is_its(line.strip_prefix("+ ").unwrap_or(line)))
    }

    /// Drafts the pack with an answer; `None` if the answer leaves the decision open. Writes nothing.
    pub(super) fn attempt(
        &self,
        question: &Question,
        answer: &Answer,
    ) -> Result<Option<DraftAttempt>, SessionError> {
        let lines: Vec<String> = match answer {
            Answer::Accept => question.ids.clone(),
            Answer::Line(line) => question.ids.iter().map(|id| format!("{id}: {line}")).collect(),
            Answer::Refuse(text) => {
                let id = &question.ids[0];
                let line = |operation: &String| format!("{id}: refuse {operation}: {text}");
                question.operations.iter().map(line).collect()
            }
            Answer::Skip => return Ok(None),
        };
        let mut decided = self.decided.clone();
        let more = lines.into_iter().enumerate();
        decided.extend(more.map(|(at, line)| if at == 0 { line } else { format!("+ {line}") }));
        let draft = draft(&self.name, &self.folder, &self.sides, &decided)?;
        let known = &self.draft.faults;
        if let Some((operation, why)) = draft.faults.iter().find(|(one, why)| known.get(*one) != Some(*why)) {
            let why = format!("the answer does not compile and is taken back: `{operation}`: {why}");
            return Err(SessionError::Findings(why));
        }
        let is_same = |one: &Question| one.group.text == question.group.text && one.ids == question.ids;
        if questions(&draft).iter().any(is_same) {
            let why = format!("the answer does not resolve `{}` and is taken back", question.ids[0]);
            return Err(SessionError::Findings(why));
        }
        Ok(Some(DraftAttempt { decided, draft }))
    }

    /// Renders the lines that an attempt changes, as a difference of files.
    pub(super) fn preview(&self, attempt: &DraftAttempt, is_coloured: bool) -> String {
        let text_in = |draft: &Draft, name: &str| {
            let file = draft.files.iter().find(|(known, _)| known == name);
            file.map_or_else(String::new, |(_, text)| text.clone())
        };
        let mut names: Vec<&String> =
            self.draft.files.iter().chain(&attempt.draft.files).map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        let mut preview = String::new();
        for name in names.into_iter().filter(|name| ![DECISIONS, DECISIONS_JSON].contains(&name.as_str())) {
            let (before, after) = (text_in(&self.draft, name), text_in(&attempt.draft, name));
            if before == after {
                continue;
            }
            let mut options = diffy::DiffOptions::new();
            let options = options.set_original_filename(name.clone()).set_modified_filename(name.clone());
            let patch = options.create_patch(&before, &after);
            let format = diffy::PatchFormatter::new();
            let format = if is_coloured { format.with_color() } else { format };
            preview.push_str(&format.fmt_patch(&patch).to_string());
        }
        preview
    }

    /// Writes a draft and its decisions. They are taken back if the folder then no longer compiles,
    /// which only edits of the user can cause.
    pub(super) fn write(&mut self, next: DraftAttempt) -> Result<(), SessionError> {
        let conflicts = init::write(&self.folder, &self.sides, &next.draft, &next.decided)?;
        let why = match (conflicts.first(), findings(&self.folder)?) {
            (Some(file), _) => Some(format!("{file}: an edit of yours is in the same lines")),
            (None, found) => found,
        };
        if let Some(why) = why.filter(|_| self.is_clean) {
            init::write(&self.folder, &self.sides, &self.draft, &self.decided)?;
            return Err(SessionError::Findings(format!("the answer is taken back:\n{why}")));
        }
        (self.decided, self.draft) = (next.decided, next.draft);
        Ok(())
    }

    /// Takes back the last decision. Returns it.
    pub(super) fn undo(&mut self) -> Result<Option<String>, SessionError> {
        let mut decided = self.decided.clone();
        let Some(at) = decided.iter().rposition(|line| !line.starts_with("+ ")) else { return Ok(None) };
        let undone = decided.split_off(at);
        let draft = draft(&self.name, &self.folder, &self.sides, &decided)?;
        self.write(DraftAttempt { decided, draft })?;
        Ok(Some(undone.join("\n")))
    }
}

fn draft(
    name: &str,
    folder: &Path,
    sides: &[SideDocument; 2],
    decided: &[String],
) -> Result<Draft, SessionError> {
    init::draft_pack(name, folder, sides, decided, &mut |_| ())
        .map_err(|compiled| SessionError::Findings(render_findings(&compiled, false)))
}

/// Returns the findings of the pack in a folder, if it does not compile.
fn findings(folder: &Path) -> io::Result<Option<String>> {
    let compiled = compile(&PackSource::from_dir(folder)?);
    Ok(compiled.pack.is_none().then(|| render_findings(&compiled, false)))
}

/// Returns the pack's name, and the name and the document of each side.
fn manifest(source: &PackSource) -> Option<(String, [(String, String); 2])> {
    let (_, bytes) = source.files().iter().find(|(name, _)| name == "pack.yaml")?;
    let root = yaml::parse(&mut Sources::new(), "pack.yaml", bytes, &mut Findings::new())?;
    let text = |node: Option<&Node>| node.and_then(Node::as_str).map(str::to_owned);
    let contracts = root.get("contracts")?;
    let [old, new] = sides(source)?.map(|name| text(contracts.get(&name)).map(|path| (name, path)));
    Some((text(root.get("pack"))?, [old?, new?]))
}
