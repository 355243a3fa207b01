//! Syntax tree of routes with several calls: checks, steps, decision tables and final responses.

use super::{ExprDecl, Notes, RefusePolicyDecl, Spanned};
use crate::diagnostic::Span;
use crate::yaml::Node;

/// Steps, followed by exactly one of `answer`, `refuse` or `decide`.
#[derive(Debug)]
pub(crate) struct BlockDecl {
    pub steps: Vec<StepDecl>,
    pub end: Option<BlockEnd>,
}

#[derive(Debug)]
pub(crate) enum BlockEnd {
    Answer(AnswerDecl),
    /// `refuse: reason` with an optional `policy:`
    Refuse(Refuse),
    /// `decide: {on: […], rows: [[…, outcome]]}` and `outcomes:`
    Decide(Decide),
}

#[derive(Clone, Debug)]
pub(crate) struct Refuse {
    pub reason: Spanned<String>,
    pub policy: RefusePolicyDecl,
}

#[derive(Debug)]
pub(crate) struct CheckDecl {
    pub predicate: PredicateDecl,
    /// `if: $.config.name`
    pub only_if: Option<Spanned<String>>,
    /// `unless: $.config.name`
    pub unless: Option<Spanned<String>>,
    pub otherwise: CheckElseDecl,
    pub span: Span,
}

/// Response to a check that fails.
#[derive(Debug)]
pub(crate) enum CheckElseDecl {
    /// `{status, reason}`
    Answer { status: Spanned<i64>, reason: Spanned<String> },
    /// `{refuse: reason}` with an optional `policy:`
    Refuse(Refuse),
}

/// `{present: place}` and so on. In `check`, bare words are members of the request body.
#[derive(Clone, Debug)]
pub(crate) struct PredicateDecl {
    pub word: Spanned<PredicateWord>,
    /// Paths, already prefixed with `$.request.body.` where the file has a bare word.
    pub places: Vec<Spanned<String>>,
    /// The values of `one_of`, or the word of `kind`.
    pub values: Vec<Node>,
    /// Operands of `all`, `any` and `not`.
    pub of: Vec<PredicateDecl>,
}

impl PredicateDecl {
    /// Returns all places that the predicate reads, including those of nested predicates.
    pub(in crate::mapping) fn all_places(&self) -> Vec<&Spanned<String>> {
        self.places.iter().chain(self.of.iter().flat_map(PredicateDecl::all_places)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredicateWord {
    Present,
    Missing,
    NotNull,
    AnyPresent,
    AllPresent,
    NonePresent,
    OneOf,
    Kind,
    Equal,
    AbsentOrEqual,
    Conforms,
    All,
    Any,
    Not,
}

#[derive(Debug)]
pub(crate) struct StepDecl {
    pub name: Option<Spanned<String>>,
    pub action: StepActionDecl,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum StepActionDecl {
    Call(CallDecl),
    /// `pick: path` with `take: first | all` or `newest: member`
    Pick(Pick),
    /// `first: [{when: …, pick: …}, …]`
    First(Vec<Pick>),
    /// `make: value`
    Make(ExprDecl),
    Recall(super::RecallDecl),
    Keep(super::KeepDecl),
}

/// `call: 'PUT /things/{$.made.body.id}'`
#[derive(Debug)]
pub(crate) struct CallDecl {
    /// As written: `{name}` is a path variable of the served operation, `{$.path}` a place.
    pub operation: Spanned<String>,
    /// `when: predicate`: skips the call unless the predicate holds.
    pub when: Option<PredicateDecl>,
    /// `each: {name: list}` with `upto:`: repeats the call for each element.
    pub each: Option<EachDecl>,
    pub query: Vec<(Spanned<String>, ExprDecl)>,
    pub headers: Vec<(Spanned<String>, ExprDecl)>,
    pub body: Option<ExprDecl>,
    /// `pages: {upto: 5, until: path}`
    pub pages: Option<PagesDecl>,
    /// `until: predicate, every: 1s, within: 20s`
    pub poll: Option<PollDecl>,
    pub on_fail: Option<OnFailDecl>,
    /// `resume: [path, …]`
    pub resume: Vec<Spanned<String>>,
    pub retry: Option<Spanned<bool>>,
    pub effect: Option<Spanned<bool>>,
}

/// `each: {name: list}, upto: 20, beyond: absent`
#[derive(Debug)]
pub(crate) struct EachDecl {
    /// Binds the current element, both in the call and in its result.
    pub name: Spanned<String>,
    pub list: Spanned<String>,
    pub upto: Spanned<i64>,
    pub beyond: Option<Spanned<BeyondDecl>>,
}

/// `until: predicate, every: 1s, within: 20s`: repeats the call until its reply satisfies the
/// predicate.
#[derive(Debug)]
pub(crate) struct PollDecl {
    pub until: PredicateDecl,
    pub every: Spanned<String>,
    pub within: Spanned<String>,
    /// Span of the word `until`.
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct PagesDecl {
    pub upto: Spanned<i64>,
    pub until: Option<Spanned<String>>,
    pub beyond: Option<Spanned<BeyondDecl>>,
    pub span: Span,
}

/// Policy for a list that is longer than its bound.
#[derive(Debug)]
pub(crate) enum BeyondDecl {
    /// `cut`: truncates the list to the pages that were read.
    Cut,
    /// `absent`: for pages, no body, as if the call had failed; for elements, no result for those
    /// beyond the bound.
    Absent,
    /// `{refuse: reason}`
    Refuse(Refuse),
}

#[derive(Debug)]
pub(crate) enum OnFailDecl {
    /// `pass`
    Pass,
    /// `{pass: {headers: {name: expr}}}`
    PassWith(Vec<(Spanned<String>, ExprDecl)>),
    /// `{answer: {…}}`
    Answer(AnswerDecl),
    /// `{use: expr}`
    Use(ExprDecl),
    /// `{refuse: reason}`
    Refuse(Refuse),
    /// `absent`, or `{absent: [404]}` for these statuses only: continues without a body.
    Absent(Vec<Spanned<i64>>),
}

#[derive(Debug)]
pub(crate) struct Pick {
    pub when: Option<PredicateDecl>,
    pub path: Spanned<String>,
    pub take: TakeDecl,
}

#[derive(Clone, Debug)]
pub(crate) enum TakeDecl {
    All,
    First,
    /// `newest: member`, or `newest: [member, …]` with tie breakers in order.
    Newest(Vec<Spanned<String>>),
    /// `page: path`: the slice of the matches on the page with this number.
    Page(Spanned<String>),
}

#[derive(Debug)]
pub(crate) struct AnswerDecl {
    /// `legacy: forward`: forwards to the clients' own service while it is available.
    pub legacy_forward: [Option<bool>; 2],
    pub status: Spanned<i64>,
    pub headers: Vec<(Spanned<String>, ExprDecl)>,
    pub body: Option<ExprDecl>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Decide {
    pub on: Vec<ColumnDecl>,
    pub rows: Vec<RowDecl>,
    pub outcomes: Vec<OutcomeDecl>,
    pub span: Span,
}

/// A column of a decision table.
#[derive(Debug)]
pub(crate) enum ColumnDecl {
    /// A path.
    Place(Spanned<String>),
    /// `{predicate: …}`; its cells are `true` and `false`.
    Holds(PredicateDecl),
}

#[derive(Debug)]
pub(crate) struct RowDecl {
    pub cells: Vec<CellDecl>,
    pub outcome: Spanned<String>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum CellDecl {
    /// `_`
    Any,
    /// `absent`
    Absent(Span),
    /// A literal or a list of literals.
    OneOf(Vec<Node>),
}

#[derive(Debug)]
pub(crate) struct OutcomeDecl {
    pub name: Spanned<String>,
    pub block: BlockDecl,
    pub notes: Notes,
}
