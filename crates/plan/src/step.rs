//! Routes that take several calls: checks, steps, a decision, outcomes.

use super::archive::{Keep, Recall};
use super::body::Raw;
use super::expected::Expected;
use super::expr::{Expr, Location};
use super::form::Conform;
use super::head::{CallHead, HeaderRule, StatusFrom};
use super::route::Refusal;
use super::{Effect, Key, Note, Origin, ReasonId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A route of several calls.
#[derive(Debug)]
pub struct Serve {
    /// Run before anything is called, in order.
    pub checks: Vec<Check>,
    /// Members put into `request.body` when absent.
    pub fill: Vec<(Key, Raw)>,
    /// What follows when every check holds.
    pub block: Block,
}

/// A condition on the request; the route ends when it does not hold.
#[derive(Debug)]
pub struct Check {
    /// What must be so for the route to go on.
    pub predicate: Predicate,
    /// Only checked while this boolean place is true.
    pub only_if: Option<Location>,
    /// Not checked while this boolean place is true.
    pub unless: Option<Location>,
    /// How the route ends when it is not.
    pub otherwise: CheckElse,
    /// The entry of `check:` that it was compiled from.
    pub origin: Origin,
}

/// The placeholder that a check's reason may have: the place that keeps the check from holding.
pub const PARAMETER: &str = "parameter";

/// How a route ends whose check does not hold.
#[derive(Debug)]
pub enum CheckElse {
    /// An error of the pack's style.
    Answer {
        /// The status of the answer, which the served contract promises.
        status: u16,
        /// Its text; the placeholder [`PARAMETER`] is filled with the place that fails.
        reason: ReasonId,
    },
    /// The refusal of an operation, with a reason of its own.
    Refuse(Refusal),
}

/// The closed list of conditions. Presence means there and not null.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// There, and not null.
    Present(Location),
    /// Not there; an explicit null counts as there.
    Missing(Location),
    /// Absent, or there with a value other than null.
    NotNull(Vec<Location>),
    /// At least one of these is there and not null.
    AnyPresent(Vec<Location>),
    /// All of these are there and not null.
    AllPresent(Vec<Location>),
    /// None of these is there with a value other than null.
    NonePresent(Vec<Location>),
    /// Absent, or one of these values.
    OneOf(Location, Vec<Raw>),
    /// Absent, or of one of these JSON kinds.
    Kind(Location, super::Kinds),
    /// The same JSON value is at both, however its numbers are written; or nothing is at either.
    Equal(Location, Location),
    /// The first is absent, or the same JSON value is at both.
    AbsentOrEqual(Location, Location),
    /// All are what the contract says of them: there where they are required, and of their type.
    Conforms(Vec<Conform>),
    /// Every one of these holds; an empty list does.
    All(Vec<Predicate>),
    /// At least one of these holds; an empty list does not.
    Any(Vec<Predicate>),
    /// This does not hold.
    Not(Box<Predicate>),
}

impl Predicate {
    /// The places that it looks at.
    pub fn places(&self) -> Vec<&Location> {
        match self {
            Predicate::Present(place)
            | Predicate::Missing(place)
            | Predicate::OneOf(place, _)
            | Predicate::Kind(place, _) => vec![place],
            Predicate::NotNull(places)
            | Predicate::AnyPresent(places)
            | Predicate::AllPresent(places)
            | Predicate::NonePresent(places) => places.iter().collect(),
            Predicate::Equal(left, right) | Predicate::AbsentOrEqual(left, right) => vec![left, right],
            Predicate::Conforms(fields) => fields.iter().map(|field| &field.place).collect(),
            Predicate::All(of) | Predicate::Any(of) => of.iter().flat_map(Predicate::places).collect(),
            Predicate::Not(of) => of.places(),
        }
    }
}

/// Steps and how they end.
#[derive(Debug)]
pub struct Block {
    /// Run in this order; a later one may read the result of an earlier one.
    pub steps: Vec<Step>,
    /// Run once all steps have a result.
    pub end: End,
}

impl Block {
    /// Has the answers of its readings checked for every member that a later write of it depends on, where the contract promises
    /// the member.
    pub fn need_what_is_written(&mut self) {
        let needed: Vec<_> = (0..self.steps.len()).map(|at| self.needed_of(at)).collect();
        for (step, needed) in self.steps.iter_mut().zip(needed) {
            let StepAction::Call(call) = &mut step.action else { continue };
            for expected in call.promises.iter_mut().filter_map(|promise| promise.body.as_mut()) {
                let is_needed = |name: &&Key| needed.contains(&name.text);
                expected.needed = expected.members.iter().filter(is_needed).cloned().collect();
            }
        }
        if let End::Decide(decision) = &mut self.end {
            decision.outcomes.iter_mut().for_each(|outcome| outcome.block.need_what_is_written());
        }
    }

    fn needed_of(&self, at: usize) -> BTreeSet<Arc<str>> {
        match &self.steps[at].name {
            Some(name) if self.writes_from(at + 1) => self.members_written(&name.text),
            _ => BTreeSet::new(),
        }
    }

    /// Whether a step from this one on, or an outcome, has an effect on the service.
    fn writes_from(&self, at: usize) -> bool {
        let writes =
            |step: &Step| matches!(&step.action, StepAction::Call(call) if call.head.effect == Effect::Write);
        let in_outcomes = match &self.end {
            End::Decide(decision) => decision.outcomes.iter().any(|outcome| outcome.block.writes_from(0)),
            End::Answer(_) | End::Refuse(_) => false,
        };
        in_outcomes || self.steps[at..].iter().any(writes)
    }

    /// How long its steps may wait for jobs of the service, on the way through it that waits longest.
    pub fn longest_wait(&self) -> Duration {
        let waits = self.steps.iter().filter_map(|step| match &step.action {
            StepAction::Call(call) => call.poll.as_ref().map(|poll| poll.within),
            _ => None,
        });
        let after = match &self.end {
            End::Decide(decision) => decision.outcomes.iter().map(|one| one.block.longest_wait()).max(),
            End::Answer(_) | End::Refuse(_) => None,
        };
        waits.sum::<Duration>() + after.unwrap_or_default()
    }
}

/// How a block ends.
#[derive(Debug)]
pub enum End {
    /// The same answer whatever the steps gave.
    Answer(Answer),
    /// A refusal, after calls that only read.
    Refuse(Refusal),
    /// A table that picks one of several outcomes.
    Decide(Box<Decision>),
}

/// One step.
#[derive(Debug)]
pub struct Step {
    /// Name of its result in the context; unnamed steps are made for their failure only.
    pub name: Option<Key>,
    /// What is done.
    pub action: StepAction,
    /// The entry of `steps:` that it was compiled from.
    pub origin: Origin,
}

/// What a step does.
#[derive(Debug)]
pub enum StepAction {
    /// Its result is `{status, headers, body}`; with `each`, a list of these.
    Call(Box<StepCall>),
    /// Its result is the value selected.
    Select(Selection),
    /// Its result is this value.
    Make(Expr),
    /// Its result is what an archive has under a key.
    Recall(Box<Recall>),
    /// Puts entries into an archive.
    Keep(Box<Keep>),
}

/// A call of a step.
#[derive(Debug)]
pub struct StepCall {
    /// Method, address and header fields of the call.
    pub head: CallHead,
    /// What is sent; without it the call has no body.
    pub body: Option<Expr>,
    /// Made only while this holds; else the step has no result.
    pub when: Option<Predicate>,
    /// Made for each element of a list.
    pub each: Option<Each>,
    /// For a list that comes in pages: how all of them are read.
    pub pages: Option<Pages>,
    /// For what takes its time at the service: how its end is waited for.
    pub poll: Option<Poll>,
    /// What its contract promises of the bodies of its successes, by status; the narrower first.
    pub promises: Vec<Promise>,
    /// What follows when the answer is not 2xx, breaks its promise, or does not come.
    pub on_fail: OnFail,
    /// When given: the reply is remembered under these values, and a repeated request takes it from there.
    pub resume: Option<Vec<Expr>>,
}

/// What a contract promises of the body of a success.
#[derive(Clone, Debug)]
pub struct Promise {
    /// The statuses that it is about.
    pub from: StatusFrom,
    /// `None`: there is no body.
    pub body: Option<Expected>,
}

/// A call for each element of a list, one after the other; readings of one address are made once. The result is a list in the
/// order of the elements, of `{<name>: element, status, headers, body}`; an element whose condition does not hold, or that
/// stands beyond the bound, has no reply in it.
#[derive(Clone, Debug)]
pub struct Each {
    /// What the element is called in the context while its call is made, and in the result.
    pub name: Key,
    /// Where the list is; without one there are no elements.
    pub list: Location,
    /// Most elements that calls are made for.
    pub upto: u32,
    /// The refusal of the route, before the first of these calls, where an element beyond the bound wants one. `None`:
    /// elements beyond the bound have no reply; of readings only.
    pub beyond: Option<Refusal>,
}

/// A reading that is made again until its reply shows what is waited for. The result is the reply that does.
#[derive(Clone, Debug)]
pub struct Poll {
    /// Holds, of the reply, when the waiting is over.
    pub until: Predicate,
    /// From one reply to the next call; a reply that asks for more time gets it.
    pub every: Duration,
    /// From the first reply to the last call.
    pub within: Duration,
}

impl Poll {
    /// Most calls that are made.
    pub fn most(&self) -> u32 {
        let again = self.within.as_millis() / self.every.as_millis().max(1);
        u32::try_from(again).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// A value chosen out of the context.
#[derive(Debug)]
pub struct Selection {
    /// The first choice whose condition holds.
    pub choices: Vec<Choice>,
}

/// One way to select.
#[derive(Debug)]
pub struct Choice {
    /// Chosen only while this holds; always without it.
    pub when: Option<Predicate>,
    /// The place whose matches are chosen from.
    pub from: Location,
    /// Take one element of what `from` matched.
    pub take: Take,
}

/// How many of the matches are taken.
#[derive(Clone, Debug)]
pub enum Take {
    /// All, as an array.
    All,
    /// The first one in the order of the list.
    First,
    /// The one with the greatest text or number at these members, the first of them before the next; the last of equals.
    Newest(Vec<Key>),
    /// Those that the page of this number shows.
    Page(PageOf),
}

/// A page of what was selected.
#[derive(Clone, Debug)]
pub struct PageOf {
    /// Number of the page; without one the first.
    pub at: Location,
    /// Number of the first page, 0 or 1 as the service counts.
    pub first: i64,
    /// Most items of a page.
    pub size: u32,
}

/// A list read page by page; the result's body is all pages joined.
#[derive(Debug)]
pub struct Pages {
    /// Query parameter that carries the number of the page.
    pub parameter: String,
    /// Number of the first page.
    pub first: i64,
    /// Most pages that are read.
    pub upto: u32,
    /// A page shorter than this is the last one.
    pub size: u32,
    /// Reading stops when this selects something in the pages read so far.
    pub until: Option<Location>,
    /// What follows when the last of them is full.
    pub beyond: Beyond,
}

/// What follows when the last page that may be read is full, so that the list may go on.
#[derive(Debug)]
pub enum Beyond {
    /// The pages read are the result.
    Cut,
    /// The result has no body.
    Absent,
    /// The route is refused.
    Refuse(Refusal),
}

/// What follows when a call does not answer 2xx (or not at all).
#[derive(Debug)]
pub enum OnFail {
    /// The failed call's status and error are the answer.
    Pass,
    /// The same, with these headers besides.
    PassWith(Vec<HeaderRule>),
    /// This answer, instead of what the route would have given.
    Answer(Answer),
    /// Go on with this value as the step's body.
    Use(Expr),
    /// The route is refused.
    Refuse(Refusal),
    /// Go on without a body: after any failure, or after these statuses alone (the others pass).
    Absent(Vec<u16>),
}

impl OnFail {
    /// Whether the route goes on without a body after this status, or after none.
    pub fn goes_on_without(&self, status: Option<u16>) -> bool {
        let OnFail::Absent(statuses) = self else { return false };
        statuses.is_empty() || status.is_some_and(|status| statuses.contains(&status))
    }
}

/// What the client gets.
#[derive(Debug)]
pub struct Answer {
    /// The status of the answer, which the served contract promises.
    pub status: u16,
    /// Written into the head of the answer.
    pub headers: Vec<HeaderRule>,
    /// None: the answer has no body.
    pub body: Option<Expr>,
    /// The client's own service answers while there is one, and this is the answer afterwards.
    pub legacy_forward: bool,
}

/// A decision table.
#[derive(Debug)]
pub struct Decision {
    /// What is looked at, in the order of the cells of each row.
    pub columns: Vec<Column>,
    /// Tried from the first on.
    pub rows: Vec<Row>,
    /// Where rows lead to; each is reached by at least one.
    pub outcomes: Vec<Outcome>,
}

/// What a table looks at.
#[derive(Clone, Debug)]
pub enum Column {
    /// The value at a place. A value that is no scalar matches only cells for any value.
    Place(Location),
    /// `true` or `false`.
    Holds(Predicate),
}

/// One row: all cells must match; the first row that does decides.
#[derive(Debug)]
pub struct Row {
    /// One for each column, in their order.
    pub cells: Vec<Cell>,
    /// Index into [`Decision::outcomes`].
    pub outcome: u16,
    /// The row in the mapping.
    pub origin: Origin,
}

/// One cell of a decision table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Matches whatever is there, and that nothing is.
    Any,
    /// Absent or null.
    Absent,
    /// One of these scalars (JSON text).
    OneOf(Vec<Raw>),
}

/// A named end of a route.
#[derive(Debug)]
pub struct Outcome {
    /// By which reports and examples call it.
    pub name: String,
    /// Its own steps and end.
    pub block: Block,
    /// What the report says of answers that end here.
    pub notes: Vec<Note>,
    /// Where the mapping declares it.
    pub origin: Origin,
}
