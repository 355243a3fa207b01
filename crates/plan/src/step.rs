//! Routes that take several calls: checks, steps, a decision, outcomes.

use super::archive::{Keep, Recall};
use super::body::Raw;
use super::expr::{Expr, Location};
use super::form::Conform;
use super::head::{CallHead, HeaderRule};
use super::route::Refusal;
use super::{Key, Note, Origin, ReasonId};

/// A route of several calls.
#[derive(Debug)]
pub struct Serve {
    /// Run before anything is called, in order.
    pub checks: Vec<Check>,
    /// Members put into `request.body` when absent.
    pub fill: Vec<(Key, Raw)>,
    pub block: Block,
}

/// A condition on the request; the route ends when it does not hold.
#[derive(Debug)]
pub struct Check {
    pub predicate: Predicate,
    /// Only checked while this boolean place is true.
    pub only_if: Option<Location>,
    /// Not checked while this boolean place is true.
    pub unless: Option<Location>,
    pub otherwise: CheckElse,
    pub origin: Origin,
}

/// The placeholder that a check's reason may have: the place that keeps the check from holding.
pub const PARAMETER: &str = "parameter";

/// How a route ends whose check does not hold.
#[derive(Debug)]
pub enum CheckElse {
    Answer { status: u16, reason: ReasonId },
    Refuse(Refusal),
}

/// The closed list of conditions. Presence means there and not null.
#[derive(Clone, Debug)]
pub enum Predicate {
    Present(Location),
    /// Not there; an explicit null counts as there.
    Missing(Location),
    /// Absent, or there with a value other than null.
    NotNull(Vec<Location>),
    AnyPresent(Vec<Location>),
    AllPresent(Vec<Location>),
    NonePresent(Vec<Location>),
    /// Absent, or one of these values.
    OneOf(Location, Vec<Raw>),
    /// Absent, or of one of these JSON kinds.
    Kind(Location, super::Kinds),
    Equal(Location, Location),
    AbsentOrEqual(Location, Location),
    /// All are what the contract says of them: there where they are required, and of their type.
    Conforms(Vec<Conform>),
    All(Vec<Predicate>),
    Any(Vec<Predicate>),
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
    pub steps: Vec<Step>,
    pub end: End,
}

/// How a block ends.
#[derive(Debug)]
pub enum End {
    Answer(Answer),
    Refuse(Refusal),
    Decide(Box<Decision>),
}

/// One step.
#[derive(Debug)]
pub struct Step {
    /// Name of its result in the context; unnamed steps are made for their failure only.
    pub name: Option<Key>,
    pub action: StepAction,
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
    pub head: CallHead,
    pub body: Option<Expr>,
    /// Made only while this holds; else the step has no result.
    pub when: Option<Predicate>,
    /// Made for each element of a list.
    pub each: Option<Each>,
    pub pages: Option<Pages>,
    pub on_fail: OnFail,
    /// When given: the reply is remembered under these values, and a repeated request takes it from there.
    pub resume: Option<Vec<Expr>>,
}

/// A call for each element of a list, one after the other; calls to one address are made once. The result is a list in the
/// order of the elements, of `{<name>: element, status, headers, body}`; an element whose condition does not hold, or that
/// stands beyond the bound, has no reply in it.
#[derive(Clone, Debug)]
pub struct Each {
    /// What the element is called in the context while its call is made, and in the result.
    pub name: Key,
    pub list: Location,
    pub upto: u32,
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
    pub when: Option<Predicate>,
    pub from: Location,
    /// Take one element of what `from` matched.
    pub take: Take,
}

/// How many of the matches are taken.
#[derive(Clone, Debug)]
pub enum Take {
    /// All, as an array.
    All,
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
    pub first: i64,
    pub size: u32,
}

/// A list read page by page; the result's body is all pages joined.
#[derive(Debug)]
pub struct Pages {
    pub parameter: String,
    pub first: i64,
    pub upto: u32,
    /// A page shorter than this is the last one.
    pub size: u32,
    /// Reading stops when this selects something in the pages read so far.
    pub until: Option<Location>,
    pub beyond: Beyond,
}

/// What follows when the last page that may be read is full, so that the list may go on.
#[derive(Debug)]
pub enum Beyond {
    /// The pages read are the result.
    Cut,
    /// The result has no body.
    Absent,
    Refuse(Refusal),
}

/// What follows when a call does not answer 2xx (or not at all).
#[derive(Debug)]
pub enum OnFail {
    /// The failed call's status and error are the answer.
    Pass,
    /// The same, with these headers besides.
    PassWith(Vec<HeaderRule>),
    Answer(Answer),
    /// Go on with this value as the step's body.
    Use(Expr),
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
    pub status: u16,
    pub headers: Vec<HeaderRule>,
    pub body: Option<Expr>,
}

/// A decision table.
#[derive(Debug)]
pub struct Decision {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    pub outcomes: Vec<Outcome>,
}

/// What a table looks at.
#[derive(Clone, Debug)]
pub enum Column {
    Place(Location),
    /// `true` or `false`.
    Holds(Predicate),
}

/// One row: all cells must match; the first row that does decides.
#[derive(Debug)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// Index into [`Decision::outcomes`].
    pub outcome: u16,
    pub origin: Origin,
}

/// One cell of a decision table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Any,
    /// Absent or null.
    Absent,
    /// One of these scalars (JSON text).
    OneOf(Vec<Raw>),
}

/// A named end of a route.
#[derive(Debug)]
pub struct Outcome {
    pub name: String,
    pub block: Block,
    pub notes: Vec<Note>,
    pub origin: Origin,
}
