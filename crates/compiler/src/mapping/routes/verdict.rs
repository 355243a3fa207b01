//! Derives the verdict of a route, and compares it with the declared one.

use super::faults;
use super::route::RouteCheck;
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::Notes;
use switchback_plan::{Block, End, NoteKind, OnFail, Paging, StepAction, Verdict};

impl RouteCheck<'_, '_> {
    /// Returns the verdict of a route that is not refused entirely. Returns `None` if it reports a
    /// different declared verdict.
    pub(super) fn verdict(&mut self, notes: &Notes, paging: Option<&Paging>, span: Span) -> Option<Verdict> {
        // Every route may return an error, so losses of errors concern all of them.
        for loss in &self.env.errors.losses[self.serves] {
            self.lose(loss.clone());
        }
        // A violated type is a difference, because it can break strict clients.
        let differs = |kind| matches!(kind, NoteKind::Differs | NoteKind::Approximate | NoteKind::Despite);
        // A refusal is the stronger verdict: differences of the rest do not change it.
        let found = if self.summary.refuses {
            Verdict::Partly
        } else if self.summary.notes.iter().any(|note| differs(note.kind)) {
            Verdict::Different
        } else {
            Verdict::Exact
        };
        let said =
            notes.verdict.iter().find(|(side, _)| side.is_none_or(|side| side.side == self.serves.place()));
        let declared = match said.map(|(_, word)| word.value.as_str()) {
            None | Some("exact") => Verdict::Exact,
            Some("different") => Verdict::Different,
            Some(_) => Verdict::Partly,
        };
        // The lines of the mapping describe fixed fields, lost fields and cut lists sufficiently,
        // so the verdict `different` follows without a declaration. A declared verdict must be
        // correct all the same.
        let is_limited =
            paging.is_some_and(|paging| !paging.limits().is_empty()) || !self.summary.bounds.is_empty();
        if found == Verdict::Exact && (is_limited || self.has_gaps()) {
            let Some((_, said)) = said else { return Some(Verdict::Different) };
            self.findings.push(faults::verdict_by_itself(said.span, word(declared)));
            return None;
        }
        if declared == found {
            return Some(found);
        }
        let span = said.map_or(span, |(_, word)| word.span);
        let why = match found {
            Verdict::Partly => "some of it is refused",
            Verdict::Different => {
                "`differs` or `approximate` says that something is different, or a type is not kept"
            }
            Verdict::Exact | Verdict::Not => "nothing is refused, and no line says what differs",
        };
        let side = self.env.side_name(self.serves);
        self.findings.push(faults::verdict(span, word(declared), word(found), why, side, said.is_some()));
        None
    }
}

impl RouteCheck<'_, '_> {
    /// Returns whether a field of the served side has no source or does not reach the other side
    /// completely, or a contract does not accept all of its values.
    fn has_gaps(&self) -> bool {
        let served = self.env.side_name(self.serves);
        self.summary.losses.iter().any(|loss| loss.side == served || loss.narrow.is_some())
    }
}

/// Returns whether a block never results in a success, regardless of the replies to its steps.
pub(super) fn only_refuses(block: &Block) -> bool {
    let succeeds = |on_fail: &OnFail| matches!(on_fail, OnFail::Answer(answer) if answer.status < 400);
    let calls = block.steps.iter().filter_map(|step| match &step.action {
        StepAction::Call(call) => Some(&call.on_fail),
        StepAction::Select(_) | StepAction::Make(_) | StepAction::Recall(_) | StepAction::Keep(_) => None,
    });
    let ends = match &block.end {
        End::Refuse(_) => true,
        End::Answer(_) => false,
        End::Decide(decision) => decision.outcomes.iter().all(|outcome| only_refuses(&outcome.block)),
    };
    ends && !calls.into_iter().any(succeeds)
}

/// Reports verdicts declared on a refused route.
pub(super) fn of_refused(notes: &Notes, findings: &mut Findings) {
    for (_, word) in &notes.verdict {
        findings.push(faults::verdict_of_refused(word.span));
    }
}

/// Returns the word for a verdict.
pub(in crate::mapping) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Exact => "exact",
        Verdict::Different => "different",
        Verdict::Partly => "partly",
        Verdict::Not => "not possible",
    }
}
