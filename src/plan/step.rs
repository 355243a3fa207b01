//! Routes that take several calls: checks, steps, a decision, outcomes.

use super::body::Raw;
use super::expr::{Expr, Location};
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

/// A condition on the request; the route ends with `status` and `reason` when it does not hold.
#[derive(Debug)]
pub struct Check {
    pub predicate: Predicate,
    /// Only checked while this boolean place is true.
    pub only_if: Option<Location>,
    pub status: u16,
    pub reason: ReasonId,
    pub origin: Origin,
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
    /// Absent, or one of these values.
    OneOf(Location, Vec<Raw>),
    /// Absent, or of one of these JSON kinds.
    Kind(Location, super::Kinds),
    Equal(Location, Location),
    AbsentOrEqual(Location, Location),
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
    /// Its result is `{status, headers, body}`.
    Call {
        head: CallHead,
        body: Option<Expr>,
        pages: Option<Pages>,
        on_fail: OnFail,
        /// When given: the reply is remembered under these values, and a repeated request takes it from there.
        resume: Option<Vec<Expr>>,
    },
    /// Its result is the value selected.
    Select(Selection),
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
    /// The one with the greatest text at this member, the last of equals.
    Newest(Key),
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
