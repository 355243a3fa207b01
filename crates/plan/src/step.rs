//! Routes of several calls: checks, steps, a decision, outcomes.

use super::archive::{Keep, Recall};
use super::expected::Expected;
use super::expr::Expr;
use super::head::{CallHead, Effect, HeaderRule, StatusFrom};
use super::json::{Key, Raw};
use super::location::Location;
use super::loss::Note;
use super::predicate::Predicate;
use super::refusal::Refusal;
use super::{Origin, ReasonId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A route of several calls.
#[derive(Debug)]
pub struct Serve {
    /// Checks to run before the first call, in order.
    pub checks: Vec<Check>,
    /// Defaults for absent members of `request.body`.
    pub fill: Vec<(Key, Raw)>,
    /// Steps to run if all checks pass.
    pub block: Block,
    /// Whether it reads the arrival of the request: `request.received` or `request.id`.
    pub reads_arrival: bool,
}

/// A condition on the request. If it is false, the route ends.
#[derive(Debug)]
pub struct Check {
    /// The condition.
    pub predicate: Predicate,
    /// If present, the check applies only while this boolean place is true.
    pub only_if: Option<Location>,
    /// If present, the check does not apply while this boolean place is true.
    pub unless: Option<Location>,
    /// End of the route if the condition is false.
    pub otherwise: CheckElse,
    /// The entry of `check:` that it was compiled from.
    pub origin: Origin,
}

/// The placeholder in a check's reason for the place that fails the check.
pub const PARAMETER: &str = "parameter";

/// The end of a route after a failed check.
#[derive(Debug)]
pub enum CheckElse {
    /// An error in the pack's style.
    Answer {
        /// Status of the response; the served contract declares it.
        status: u16,
        /// Text of the error; [`PARAMETER`] is replaced by the place that fails.
        reason: ReasonId,
    },
    /// A refusal with its own reason.
    Refuse(Refusal),
}

/// Steps and the end that follows them.
#[derive(Debug)]
pub struct Block {
    /// Run in this order; a step may read the results of earlier ones.
    pub steps: Vec<Step>,
    /// Run after the last step.
    pub end: End,
}

impl Block {
    /// Returns this block and the blocks of its outcomes, outer ones first.
    pub fn all(&self) -> Box<dyn Iterator<Item = &Block> + '_> {
        let outcomes = match &self.end {
            End::Decide(decision) => &decision.outcomes[..],
            End::Answer(_) | End::Refuse(_) => &[],
        };
        Box::new(std::iter::once(self).chain(outcomes.iter().flat_map(|outcome| outcome.block.all())))
    }

    /// Returns the calls of its own steps, without those of its outcomes.
    pub fn calls(&self) -> impl Iterator<Item = (&Step, &StepCall)> {
        self.steps.iter().filter_map(|step| Some((step, step.call()?)))
    }

    /// Marks the members of replies that a later write depends on as needed, provided that the
    /// contract requires them. Their absence then fails the step, rather than deleting data in the
    /// write.
    pub fn need_what_is_written(&mut self) {
        // Collected before the loop, because the analysis reads all steps and the loop modifies them.
        let needed: Vec<_> = (0..self.steps.len()).map(|at| self.needed_of(at)).collect();
        for (step, needed) in self.steps.iter_mut().zip(needed) {
            let StepAction::Call(call) = &mut step.action else { continue };
            for expected in call.promises.iter_mut().filter_map(|promise| promise.body.as_mut()) {
                // Only members that the contract requires are checked.
                let is_needed = |name: &&Key| needed.contains(&name.text);
                expected.needed = expected.members.iter().filter(is_needed).cloned().collect();
            }
        }
        // An outcome may contain calls and decisions of its own.
        if let End::Decide(decision) = &mut self.end {
            decision.outcomes.iter_mut().for_each(|outcome| outcome.block.need_what_is_written());
        }
    }

    fn needed_of(&self, at: usize) -> BTreeSet<Arc<str>> {
        match &self.steps[at].name {
            // Only a named step has a result that a write can use.
            Some(name) if self.writes_from(at + 1) => self.members_written(&name.text),
            _ => BTreeSet::new(),
        }
    }

    /// Returns whether a step from this index on, or an outcome, has an effect on the service.
    /// Archives are internal, so storing an entry has no such effect.
    pub fn writes_from(&self, at: usize) -> bool {
        let is_write = |call: &StepCall| call.head.effect == Effect::Write;
        // `all` starts with this block itself. Its steps before `at` do not count, so they are added
        // separately below. Every outcome counts, because the rows are not known before the request.
        let outcomes = self.all().skip(1).flat_map(Block::calls).map(|(_, call)| call);
        self.steps.iter().skip(at).filter_map(Step::call).chain(outcomes).any(is_write)
    }

    /// Returns the maximum time that its steps wait for jobs of the service, over all outcomes.
    pub fn longest_wait(&self) -> Duration {
        // Steps run one after another, but only one outcome is reached.
        let waits = self.calls().filter_map(|(_, call)| Some(call.poll.as_ref()?.within));
        let after = match &self.end {
            End::Decide(decision) => decision.outcomes.iter().map(|one| one.block.longest_wait()).max(),
            End::Answer(_) | End::Refuse(_) => None,
        };
        waits.sum::<Duration>() + after.unwrap_or_default()
    }
}

/// The end of a block.
#[derive(Debug)]
pub enum End {
    /// A fixed response, independent of the steps' results.
    Answer(Answer),
    /// A refusal, after read-only calls.
    Refuse(Refusal),
    /// A decision table that selects an outcome.
    Decide(Box<Decision>),
}

/// One step.
#[derive(Debug)]
pub struct Step {
    /// Name of the result in the context. The result of an unnamed step is not used; only its
    /// failure matters.
    pub name: Option<Key>,
    /// The action.
    pub action: StepAction,
    /// The entry of `steps:` that it was compiled from.
    pub origin: Origin,
}

impl Step {
    /// Returns the call, if the step makes one.
    pub fn call(&self) -> Option<&StepCall> {
        match &self.action {
            StepAction::Call(call) => Some(call),
            StepAction::Select(_) | StepAction::Make(_) | StepAction::Recall(_) | StepAction::Keep(_) => None,
        }
    }
}

/// The action of a step.
#[derive(Debug)]
pub enum StepAction {
    /// Makes a call. The result is `{status, headers, body}`, or with `each`, a list of these.
    Call(Box<StepCall>),
    /// Selects a value.
    Select(Selection),
    /// Computes a value.
    Make(Expr),
    /// Looks up the entry of an archive.
    Recall(Box<Recall>),
    /// Writes entries to an archive.
    Keep(Box<Keep>),
}

/// A call of a step.
#[derive(Debug)]
pub struct StepCall {
    /// Method, address and header fields.
    pub head: CallHead,
    /// Request body, if any.
    pub body: Option<Expr>,
    /// Condition for the call. If it is false, the step has no result.
    pub when: Option<Predicate>,
    /// Repeats the call for each element of a list.
    pub each: Option<Each>,
    /// Reads all pages of a paginated list.
    pub pages: Option<Pages>,
    /// Repeats the call until a job of the service is complete.
    pub poll: Option<Poll>,
    /// Constraints of the contract on the bodies of successful replies, by status; exact statuses
    /// first.
    pub promises: Vec<Promise>,
    /// Handling of a reply that is not 2xx, violates its constraints, or does not arrive.
    pub on_fail: OnFail,
    /// If present, the reply is stored under these values, and a repeated request reuses it.
    pub resume: Option<Vec<Expr>>,
}

/// The constraint of a contract on the body of a successful reply.
#[derive(Clone, Debug)]
pub struct Promise {
    /// The statuses that it applies to.
    pub from: StatusFrom,
    /// `None`: the reply has no body.
    pub body: Option<Expected>,
}

/// A sequence of calls, one for each element of a list. Reads with the same address are made once.
/// The result is a list of `{<name>: element, status, headers, body}` in the order of the elements.
/// An element for which the condition is false, or that is beyond the bound, has no reply in it.
#[derive(Clone, Debug)]
pub struct Each {
    /// Name of the element in the context of its call, and in the result.
    pub name: Key,
    /// Place of the list. If it is absent, there are no elements.
    pub list: Location,
    /// Maximum number of elements with a call.
    pub upto: u32,
    /// Refusal if an element beyond the bound needs a call; it occurs before the first call.
    /// `None`: such elements have no reply, which only reads allow.
    pub beyond: Option<Refusal>,
}

/// A read that is repeated until its reply satisfies a condition. That reply is the result.
#[derive(Clone, Debug)]
pub struct Poll {
    /// The condition on the reply.
    pub until: Predicate,
    /// Time between a reply and the next call. A longer time that the reply requests takes
    /// precedence.
    pub every: Duration,
    /// Maximum time between the first reply and the last call.
    pub within: Duration,
}

impl Poll {
    /// Returns the maximum number of calls.
    pub fn most(&self) -> u32 {
        // One call at the start, and one after each interval.
        let again = self.within.as_millis() / self.every.as_millis().max(1);
        // A long wait with a short interval could exceed `u32`.
        u32::try_from(again).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// A value selected from the context.
#[derive(Debug)]
pub struct Selection {
    /// Candidates; the first one with a true condition applies.
    pub choices: Vec<Choice>,
}

/// One candidate of a selection.
#[derive(Debug)]
pub struct Choice {
    /// Condition; true if absent.
    pub when: Option<Predicate>,
    /// The place to select from.
    pub from: Location,
    /// The part of the matches to select.
    pub take: Take,
}

/// The part of the matches that a selection returns.
#[derive(Clone, Debug)]
pub enum Take {
    /// All matches, as an array.
    All,
    /// The first match in list order.
    First,
    /// The match with the greatest text or number at these members, compared lexicographically; the
    /// last one of equal matches.
    Newest(Vec<Key>),
    /// The matches on this page.
    Page(PageOf),
}

/// A page of a selection.
#[derive(Clone, Debug)]
pub struct PageOf {
    /// Place of the page number; the first page if absent.
    pub at: Location,
    /// Number of the first page: 0 or 1, as the service counts.
    pub first: i64,
    /// Page size.
    pub size: u32,
}

/// A paginated list. The body of the result is the concatenation of all pages.
#[derive(Debug)]
pub struct Pages {
    /// Query parameter for the page number.
    pub parameter: String,
    /// Number of the first page.
    pub first: i64,
    /// Maximum number of pages.
    pub upto: u32,
    /// Page size; a shorter page is the last one.
    pub size: u32,
    /// Reading stops if this query matches in the pages read so far.
    pub until: Option<Location>,
    /// Handling of a list that exceeds the maximum.
    pub beyond: Beyond,
}

/// The handling of a list that may continue after the maximum number of pages, because the last one
/// is full.
#[derive(Debug)]
pub enum Beyond {
    /// The result is the pages read.
    Cut,
    /// The result has no body.
    Absent,
    /// The route is refused.
    Refuse(Refusal),
}

/// The handling of a call that fails: its status is not 2xx, or no reply arrives.
#[derive(Debug)]
pub enum OnFail {
    /// Respond with the call's status and error.
    Pass,
    /// Like `Pass`, with additional header fields.
    PassWith(Vec<HeaderRule>),
    /// Respond with this instead.
    Answer(Answer),
    /// Continue with this value as the step's body.
    Use(Expr),
    /// Refuse the route.
    Refuse(Refusal),
    /// Continue without a body after these statuses; other failures pass. An empty list matches any
    /// failure.
    Absent(Vec<u16>),
}

impl OnFail {
    /// Returns whether the route continues without a body after this status, or after no reply.
    pub fn goes_on_without(&self, status: Option<u16>) -> bool {
        let OnFail::Absent(statuses) = self else { return false };
        // An empty list covers failures without a status too, such as a closed connection. A list of
        // statuses does not mention these, so they remain failures.
        statuses.is_empty() || status.is_some_and(|status| statuses.contains(&status))
    }
}

/// The response to the client.
#[derive(Debug)]
pub struct Answer {
    /// Status; the served contract declares it.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<HeaderRule>,
    /// Body, if any.
    pub body: Option<Expr>,
    /// Whether the client's own service answers while it is available.
    pub legacy_forward: bool,
}

/// A decision table.
#[derive(Debug)]
pub struct Decision {
    /// Columns, in the order of the cells of each row.
    pub columns: Vec<Column>,
    /// Rows, in the order of evaluation.
    pub rows: Vec<Row>,
    /// Outcomes; at least one row leads to each.
    pub outcomes: Vec<Outcome>,
}

/// A column of a decision table.
#[derive(Clone, Debug)]
pub enum Column {
    /// The value at a place. A value that is not a scalar matches only [`Cell::Any`].
    Place(Location),
    /// The truth value of a condition.
    Holds(Predicate),
}

/// A row. The first row of which all cells match determines the outcome.
#[derive(Debug)]
pub struct Row {
    /// One cell per column.
    pub cells: Vec<Cell>,
    /// Index into [`Decision::outcomes`].
    pub outcome: u16,
    /// The row in the mapping.
    pub origin: Origin,
}

/// A cell of a decision table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Matches any value, and absence.
    Any,
    /// Matches absence and null.
    Absent,
    /// Matches one of these scalars (JSON text).
    OneOf(Vec<Raw>),
}

/// A named outcome of a route.
#[derive(Debug)]
pub struct Outcome {
    /// Name in reports and examples.
    pub name: String,
    /// Steps and end of the outcome.
    pub block: Block,
    /// Notes of the report about responses with this outcome.
    pub notes: Vec<Note>,
    /// Place of the declaration in the mapping.
    pub origin: Origin,
}
