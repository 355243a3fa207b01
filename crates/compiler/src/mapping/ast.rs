//! Mapping files as written: one struct per form of the language, each with its place.
//!
//! The reader (`syntax/`) makes these out of YAML and complains about form only; whether names exist, types fit and
//! nothing is forgotten is the checker's business. The manual with an example of every form is `mappings/README.md`.

mod archive;
mod paging;
mod step;

pub(crate) use archive::*;
pub(crate) use paging::*;
pub(crate) use step::*;

use crate::diagnostic::Span;
use crate::yaml::Node;
use switchback_plan::{PerSide, Scheme, TokenRequests};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// All files of a pack, read.
#[derive(Debug)]
pub(crate) struct Program {
    pub manifest: Manifest,
    pub shapes: Vec<Shape>,
    pub routes: Vec<Route>,
    pub reasons: Vec<Reason>,
    pub archives: Vec<Archive>,
    pub harvests: Vec<Harvest>,
    pub events: Vec<Event>,
    pub examples: Vec<Example>,
}

/// `pack.yaml`.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// `pack: messaging`
    pub name: Spanned<String>,
    /// `sides: {old: v2, new: v3}`
    pub sides: [Spanned<String>; 2],
    /// `contracts: {v2: contracts/v2.openapi.yaml, …}`, by side.
    pub contracts: [Spanned<String>; 2],
    /// `credentials: {v2: {read: […], send: …, scheme: …, headers: {…}}, …}`, by side.
    pub credentials: [Option<Credential>; 2],
    /// `send: {v3: {headers: {name: value}, query: {name: value}}}`: what every call to a side has, by side.
    pub send: PerSide<Sent>,
    /// `hosts: {v3: {files: ['POST /files', 'https://files.example.com']}}`, by side.
    pub hosts: PerSide<Vec<Host>>,
    /// `scope: {v3: '/accounts/{account}'}`, by side.
    pub scope: [Option<Spanned<String>>; 2],
    /// `languages: [en, …]`, the first is the default.
    pub languages: Vec<Spanned<String>>,
    /// `paging: {query: page, first: 0, size: 20}`
    pub paging: Option<Paging>,
    /// `serves: [v1]`: the sides that clients speak, by side; both when left out.
    pub serves: [bool; 2],
    /// `rest: refuse | forward | keep`, or by side: what happens to operations that no route names.
    pub rest: [Option<Spanned<RestWord>>; 2],
    /// By side: what a table writes there for a value that it does not list.
    pub unknown_values: [Option<Node>; 2],
    /// `identical: keep`: operations that are equal on both sides are pairs without being written.
    pub identical: Option<Span>,
    /// `errors: {body: {message: $text}, types: {v2: Error, v3: Error}, status: {wrong_method: 501}, text: {unknown_token: reason_name}}`
    pub errors: Errors,
    /// `events: {from: v2, name: {v1: $.headers.x-event, v2: $.body.type}}`
    pub events: Option<EventSides>,
    /// `refuse: {legacy: forward, status: 501, after: {date: null, status: 410}}`
    pub refuse: RefusePolicy,
    /// `headers: {approximate: x-approximate}`: fields with which the gateway says what it did.
    pub headers: OwnHeaders,
    /// `settings: {things.max: {type: integer, about: …}}`
    pub settings: Vec<Setting>,
    /// `compare: {headers: […], types: {v2: {Thing: {key: id, …}}}, read_back: {v2: {POST /things: 'GET /things/{$.answer.body.id}'}}}`
    pub compare: Compare,
    pub span: Span,
}

/// A host of a side besides the one at its own address.
#[derive(Debug)]
pub(crate) struct Host {
    pub name: Spanned<String>,
    /// Operations as the contract writes them, and servers that the contract gives to operations.
    pub answers: Vec<Spanned<String>>,
}

/// What happens to operations that no route names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestWord {
    Refuse,
    /// To the service of the client's own side, while it lives.
    Forward,
    /// Kept as they are; one that cannot be is an error.
    Keep,
}

/// What comparing two answers in a dual run looks at and looks away from.
#[derive(Debug, Default)]
pub(crate) struct Compare {
    /// Headers compared beside the usual ones.
    pub headers: Vec<Spanned<String>>,
    pub types: Vec<CompareType>,
    pub read_back: Vec<ReadBack>,
    pub shows: Vec<Shows>,
}

/// Members of a write's body that its reading shows as they were written.
#[derive(Debug)]
pub(crate) struct Shows {
    pub side: SideRef,
    /// The operation that writes, as its contract writes it.
    pub write: Spanned<String>,
    pub members: Vec<Spanned<String>>,
}

/// Which reading shows what a write of the same side has changed.
#[derive(Debug)]
pub(crate) struct ReadBack {
    pub side: SideRef,
    /// The operation that writes, as its contract writes it.
    pub write: Spanned<String>,
    /// Such as `GET /things/{id}` or `GET /things/{$.answer.body.id}`.
    pub read: Spanned<String>,
}

/// What is declared of one type of one side.
#[derive(Debug)]
pub(crate) struct CompareType {
    pub side: SideRef,
    pub name: Spanned<String>,
    /// The member by which elements of its lists are matched.
    pub key: Option<Spanned<Place>>,
    pub noise: Vec<Spanned<Place>>,
    pub unordered: Vec<Spanned<Place>>,
    pub secret: Vec<Spanned<Place>>,
    /// Places whose texts may be shown.
    pub harmless: Vec<Spanned<Place>>,
}

/// Names of header fields that answers get.
#[derive(Debug, Default)]
pub(crate) struct OwnHeaders {
    /// Says by which approximations an answer was made.
    pub approximate: Option<Spanned<String>>,
}

#[derive(Debug)]
pub(crate) struct Credential {
    pub read: Vec<Carrier>,
    /// One or several.
    pub send: Vec<Carrier>,
    /// None where every carrier says for itself.
    pub scheme: Option<Spanned<String>>,
    /// Closed lists of words, so the reader checks them.
    pub tokens: TokenRequests,
    pub headers: Vec<(Spanned<String>, Spanned<String>)>,
    pub span: Span,
}

/// Header fields and query parameters that every call to a side has.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub headers: Vec<(Spanned<String>, Node)>,
    pub query: Vec<(Spanned<String>, Node)>,
}

/// `x-api-key`, `{header: authorization, scheme: Token}`, `{basic: user}`, `{query: api_key}` or `{form: token}`.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// Of the header, of the query parameter or of the form's field.
    pub name: Spanned<String>,
    pub kind: CarrierKind,
}

#[derive(Debug)]
pub(crate) enum CarrierKind {
    /// A header, as the side's `scheme` says.
    Usual,
    /// A header with a scheme of its own.
    Scheme(Spanned<String>),
    /// A header with a scheme that has words of its own in the manifest.
    Own(Scheme),
    Query,
    FormField,
}

impl CarrierKind {
    pub(crate) fn is_header(&self) -> bool {
        !matches!(self, CarrierKind::Query | CarrierKind::FormField)
    }
}

impl Credential {
    /// All places of a token, one way or the other.
    pub(crate) fn carriers(&self) -> impl Iterator<Item = &Carrier> {
        self.read.iter().chain(&self.send)
    }

    /// The headers that carry a token, one way or the other.
    pub(crate) fn headers_of_tokens(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.carriers().filter(|carrier| carrier.kind.is_header()).map(|carrier| &carrier.name)
    }
}

#[derive(Debug)]
pub(crate) struct Paging {
    pub query: Spanned<String>,
    pub first: Spanned<i64>,
    pub size: Spanned<i64>,
}

#[derive(Debug)]
pub(crate) struct Errors {
    /// Any YAML value with the text `$text` exactly once in it, and `$status` and `$kind` wherever they are wanted.
    pub body: Node,
    /// Name of the error type in each contract, by side; empty where errors have no one type.
    pub types: [Spanned<String>; 2],
    /// Shape that turns one into the other.
    pub shape: Option<Spanned<String>>,
    pub status: Vec<(Spanned<String>, Spanned<i64>)>,
    pub text: Vec<(Spanned<String>, Spanned<String>)>,
    /// What `$kind` stands for.
    pub kind: Vec<(Spanned<String>, Spanned<String>)>,
    /// `status: 200`: every error is answered with it.
    pub all: Option<Spanned<i64>>,
    /// `sides: {v1: {status: 200, body: {ok: false, error: $kind}}}`: what one side has otherwise.
    pub sides: [Option<SideErrors>; 2],
    /// `failures: {v2: [{when: {$.body.ok: false}, status: 401}]}`, by side.
    pub failures: [Vec<Failure>; 2],
}

/// How errors look to clients of one side, where that is not what both have.
#[derive(Debug, Default)]
pub(crate) struct SideErrors {
    pub body: Option<Node>,
    pub all: Option<Spanned<i64>>,
    pub status: Vec<(Spanned<String>, Spanned<i64>)>,
    pub kind: Vec<(Spanned<String>, Spanned<String>)>,
}

/// Which answers of a side are failures, whatever their status says.
#[derive(Debug)]
pub(crate) struct Failure {
    /// A place and the values that it has one of.
    pub when: Vec<(Spanned<String>, Vec<Node>)>,
    pub status: Spanned<i64>,
    pub span: Span,
}

/// Every field may be left out; the manifest's policy fills a route's.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusePolicy {
    /// `legacy: forward | never`, by side of the client; `{v2: forward, v3: never}` where they differ.
    pub legacy_forward: [Option<bool>; 2],
    pub status: Option<Spanned<i64>>,
    pub after_date: Option<Spanned<AfterDate>>,
    pub after_status: Option<Spanned<i64>>,
}

/// From when on a refusal is for good.
#[derive(Clone, Debug)]
pub(crate) enum AfterDate {
    Never,
    Day(String),
    /// `$.config.name`: the operator says when.
    Setting(Spanned<String>),
}

#[derive(Debug)]
pub(crate) struct Setting {
    pub name: Spanned<String>,
    /// `boolean`, `integer`, `string`, `date`.
    pub kind: Spanned<String>,
    /// `null` for a setting that may be left out without standing for anything.
    pub default: Option<Node>,
    /// The only texts that a `string` may be; any where this is empty.
    pub values: Vec<Spanned<String>>,
    pub about: Spanned<String>,
    /// Which open point of a contract the setting settles.
    pub reading: Option<Spanned<String>>,
}

impl Setting {
    /// Whether there may be no value: the default is `null`.
    pub(crate) fn is_optional(&self) -> bool {
        self.default.as_ref().is_some_and(Node::is_null)
    }
}

/// A lens between a type of the old side and a type of the new one. Inline shapes (in a pair's `request:`) have no name
/// and no `of:`; their types are those of the operation.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub name: Option<Spanned<String>>,
    /// `of: {v2: Thing, v3: Item}`: component schema names, by side.
    pub of: Option<[Spanned<String>; 2]>,
    /// `alternatives: [Cat, Dog]`: for types that are one of several objects, the shape of each.
    pub alternatives: Vec<Spanned<String>>,
    /// `like: Other`: takes over all lines of another shape; lines here win.
    pub like: Option<Spanned<String>>,
    /// `same: [id, name]`
    pub same: Vec<Spanned<String>>,
    /// `rename: {old_place: new_place}` or `{old_place: {v3: new_place, shape: S, as: conversion, else: …}}`
    pub rename: Vec<Rename>,
    /// `copy: {v2: {place: $.a.b}}`: an extra view on one side of a place of the other; not written back.
    pub copy: Vec<Copy>,
    /// `constant: {place: {v2: literal, v3: literal}}`: fixed on both sides, same name.
    pub constant: Vec<Constant>,
    /// `by_kind: {old_place: {integer: $.a, string: $.b}}`: one place of the old side, several of the new one, chosen by
    /// the kind of the value.
    pub by_kind: Vec<ByKind>,
    /// `only: {v2: {field: …}, v3: {field: …}}`
    pub only: Vec<Only>,
    /// `rest: {v3: lost}` or `rest: {v3: null}`: all fields of the side that no line names.
    pub rest: Vec<Rest>,
    pub span: Span,
}

/// A place: member names from the enclosing object down. A bare word is one name, a text starting with `$` a singular
/// JSONPath of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub Vec<String>);

#[derive(Clone, Debug)]
pub(crate) struct Rename {
    pub old: Spanned<Place>,
    pub new: Spanned<Place>,
    /// `shape: S` for an object, `shape: [S]` for each element of an array.
    pub shape: Option<ShapeUse>,
    /// `as: name` or `as: {name: arguments}`
    pub conversion: Option<ConversionUse>,
    /// `default: {v2: literal}`: written on that side when the other has nothing there.
    pub defaults: Vec<(SideRef, Node)>,
    pub span: Span,
}

/// A shape by name, for a value or for each element of an array.
#[derive(Clone, Debug)]
pub(crate) struct ShapeUse {
    pub name: Spanned<String>,
    pub each: bool,
    /// `each_value: S`: for each value of a map.
    pub each_value: bool,
    /// `else: error | drop | <literal>`, or one of these for each side: what follows for a value that the shape does not take.
    pub otherwise: Option<Node>,
}

#[derive(Clone, Debug)]
pub(crate) struct ConversionUse {
    pub name: Spanned<String>,
    pub arguments: Option<Node>,
    /// `else: error | keep | drop | <literal>`, or one of these for each side
    pub otherwise: Option<Node>,
    /// `as: {each: conversion}`: for each element of a list.
    pub each: Option<Span>,
    /// `as: [this, …]`: tried in this order where this one does not take the value.
    pub or: Vec<ConversionUse>,
}

/// Name of a side as written, resolved: 0 old, 1 new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SideRef {
    pub side: usize,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// The side that gets the extra view.
    pub to: SideRef,
    pub name: Spanned<String>,
    pub from: Spanned<Place>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Constant {
    pub name: Spanned<String>,
    pub values: [Node; 2],
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct ByKind {
    pub old: Spanned<Place>,
    /// Kind (`integer`, `number`, `boolean`, `string`, `object`, `array`) → place on the new side.
    pub new: Vec<(Spanned<String>, Spanned<Place>)>,
    /// `default: {old side: value}`: written on the old side where none of the places is there.
    pub default: Option<Node>,
    pub span: Span,
}

/// A field that one side has and the other has not.
#[derive(Clone, Debug)]
pub(crate) struct Only {
    pub side: SideRef,
    pub place: Spanned<Place>,
    pub fill: Fill,
    pub span: Span,
}

/// What a one-sided field gets when its side is built.
#[derive(Clone, Debug)]
pub(crate) enum Fill {
    /// A literal, or `{value: literal, despite: type}`.
    Value { value: Node, despite_type: Option<Span> },
    /// `absent`: left out.
    Absent,
    /// `none`: cannot be made up; a route that builds this side supplies it under `with:`.
    Nothing,
    /// `$.config.name`
    Setting(Spanned<String>),
    /// `{refuse: reason}`: left out when built; a value that comes from this side refuses the call.
    Refuse(Spanned<String>),
}

#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub side: SideRef,
    /// What they are built with; none (`lost`) when the side can only be built without them.
    pub fill: Option<RestFill>,
    pub span: Span,
}

/// One literal for all fields that no line names: `null`, or `{value: null, despite: type}` where some of them break their
/// type with it.
#[derive(Clone, Debug)]
pub(crate) struct RestFill {
    pub value: Node,
    pub despite_type: Option<Span>,
}

/// One entry of `routes:`.
#[derive(Debug)]
pub(crate) enum Route {
    Pair(Pair),
    Serve(Serve),
}

impl Route {
    /// The setting that it answers with.
    pub(crate) fn only_if(&self) -> Option<&Spanned<String>> {
        match self {
            Route::Pair(pair) => pair.only_if.as_ref(),
            Route::Serve(serve) => serve.only_if.as_ref(),
        }
    }
}

/// `pair: {v2: GET /a, v3: GET /b, front: v2}`
#[derive(Debug)]
pub(crate) struct Pair {
    /// `if: $.config.name`: answers while the setting is on, instead of the route that has no `if`.
    pub only_if: Option<Spanned<String>>,
    /// `paging: {v1: {page: page}, v2: {cursor: after}}`
    pub paging: Option<PagedRoute>,
    /// Operation keys, by side.
    pub operations: [Spanned<String>; 2],
    /// Only this side is served by the pair; both when left out.
    pub front: Option<SideRef>,
    /// Made for operations that are equal on both sides, and left out where they are not.
    pub made: bool,
    /// `path: {old variable: new variable}`; same names need no line.
    pub path: Vec<(Spanned<String>, Spanned<String>)>,
    /// `allow_slash: [id]`: path variables, of either side, whose values may hold escaped slashes.
    pub allow_slash: Vec<Spanned<String>>,
    /// `query: [page]`, `{old: new}` or `{old: {v2: new, as: conversion}}`
    pub query: Vec<ParameterLine>,
    /// `query: {name: {constant: {v2: value}}}`
    pub constant_query: Vec<ConstantParameter>,
    /// Names in lines that were found faulty: nothing more is said of them.
    pub faulty_query: Vec<String>,
    /// `query: {name: {refuse: reason, unless: [value]}}`
    pub refused_query: Vec<RefusedParameter>,
    /// `headers: {request: {old: new}, response: {old: {v2: new, as: conversion}}}`
    pub request_headers: Vec<ParameterLine>,
    pub response_headers: Vec<ParameterLine>,
    /// `headers: {request: {name: {constant: {v2: value}}}}`
    pub constant_request_headers: Vec<ConstantParameter>,
    pub constant_response_headers: Vec<ConstantParameter>,
    /// `media: {request: {old: new}, response: {old: new}}`: media types of bodies that are passed.
    pub request_media: Vec<(Spanned<String>, Spanned<String>)>,
    pub response_media: Vec<(Spanned<String>, Spanned<String>)>,
    pub request: Option<Body>,
    pub response: Option<Body>,
    /// `status: {201: [200, 2xx]}`: old status → new statuses; the first is sent when going the other way.
    pub status: Vec<StatusLine>,
    /// `business_errors: [500]`
    pub business_errors: Vec<Spanned<i64>>,
    /// `retry: safe`: a repeat of a write is harmless.
    pub retry: Option<Spanned<bool>>,
    /// `effect: none | write` where the method misleads.
    pub effect: Option<Spanned<bool>>,
    pub notes: Notes,
    pub span: Span,
}

/// A query parameter or header field of one side, and the one of the other side that it is.
#[derive(Clone, Debug)]
pub(crate) struct ParameterLine {
    pub old: Spanned<String>,
    pub new: Spanned<String>,
    pub conversion: Option<ConversionUse>,
}

impl ParameterLine {
    /// As it came.
    pub(crate) fn plain(old: Spanned<String>, new: Spanned<String>) -> ParameterLine {
        ParameterLine { old, new, conversion: None }
    }
}

/// A query parameter or header field that always has one value on a side.
#[derive(Clone, Debug)]
pub(crate) struct ConstantParameter {
    pub name: Spanned<String>,
    pub side: SideRef,
    pub value: Node,
}

/// A query parameter of either side that a client is refused for.
#[derive(Clone, Debug)]
pub(crate) struct RefusedParameter {
    pub name: Spanned<String>,
    pub reason: Spanned<String>,
    /// Values for which it is dropped instead.
    pub unless: Vec<Spanned<String>>,
}

/// What the report says about a route.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// `verdict: different` or, where a pair's directions differ, `verdict: {v2: different, v3: partly}`; `exact` when left
    /// out. The compiler works the verdict out and holds the author to it. Refused routes need none.
    pub verdict: Vec<(Option<SideRef>, Spanned<String>)>,
    /// `differs: …` and `approximate: …`: sentences.
    pub differs: Vec<Spanned<String>>,
    /// Each with its name where the pack marks answers: `approximate: {name: sentence}`.
    pub approximate: Vec<(Option<Spanned<String>>, Spanned<String>)>,
}

#[derive(Debug)]
pub(crate) struct StatusLine {
    pub old: Spanned<i64>,
    pub new: Vec<Spanned<StatusWord>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusWord {
    Exact(u16),
    /// `2xx`
    Class(u8),
}

/// A body of a pair.
#[derive(Debug)]
pub(crate) enum Body {
    /// `empty`
    Empty(Span),
    /// `keep`: the same on both sides.
    Keep(Span),
    Shape(ShapeUse),
    /// `{same: […], …}`: an unnamed shape.
    Inline(Box<Shape>),
}

/// `serve: v2, at: POST /a`
#[derive(Debug)]
pub(crate) struct Serve {
    /// As in [`Pair::only_if`].
    pub only_if: Option<Spanned<String>>,
    pub side: SideRef,
    pub at: Spanned<String>,
    /// `allow_slash: [id]`: path variables whose values may hold escaped slashes.
    pub allow_slash: Vec<Spanned<String>>,
    pub check: Vec<Check>,
    pub fill: Vec<(Spanned<String>, Node)>,
    /// `query: {name: drop}`: parameters that no step reads.
    pub dropped: Vec<Spanned<String>>,
    /// `headers: {name: drop}`, of requests and of answers.
    pub dropped_headers: Vec<Spanned<String>>,
    /// As in [`Pair::paging`].
    pub paging: Option<PagedRoute>,
    pub block: Block,
    pub business_errors: Vec<Spanned<i64>>,
    pub notes: Notes,
    pub span: Span,
}

/// A value to be made.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// A literal.
    Literal(Node),
    /// A text starting with `$`.
    Path(String),
    Object(Vec<(Spanned<String>, Expr)>),
    Array(Vec<Expr>),
    /// `{$from: path, as: conversion, else: …}`
    Convert {
        from: Box<Expr>,
        conversion: ConversionUse,
    },
    /// `{$text: reason, with: {name: expr}}`
    Text {
        reason: Spanned<String>,
        with: Vec<(Spanned<String>, Expr)>,
    },
    /// `{$shape: S | [S], from: expr, over: expr, with: {field: expr}, null_as: {field: literal}, null_else: keep | absent}`
    Shape(Box<ShapeExpr>),
    /// `{$value: literal}`, optionally with `despite: type`: a literal that may start with `$` or miss its type.
    Value {
        value: Node,
        despite_type: Option<Span>,
    },
    /// `{$count: list}`, `{$sum: list}`
    Aggregate {
        what: switchback_plan::Aggregate,
        list: Box<Expr>,
    },
    /// `{$first: [expr, …]}`: the first that is there and not null.
    FirstOf(Vec<Expr>),
    /// `{$present: [expr, …]}`: a list of those that are there and not null.
    Present(Vec<Expr>),
    /// `{$lookup: value, in: list, by: member, field: member}`
    Lookup {
        value: Box<Expr>,
        list: Spanned<String>,
        by: Spanned<String>,
        field: Option<Spanned<String>>,
    },
    /// `{$each: {name: list}, give: expr}`: a list of what each element gives.
    Each {
        name: Spanned<String>,
        list: Box<Expr>,
        give: Box<Expr>,
    },
    /// `{$if: predicate, then: expr, else: expr}`; nothing without `else`.
    If {
        predicate: Predicate,
        then: Box<Expr>,
        otherwise: Option<Box<Expr>>,
    },
    /// `{$lines: [expr, …], numbered: [expr, …]}`: a text of lines.
    Lines {
        plain: Vec<Expr>,
        numbered: Vec<Expr>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct ShapeExpr {
    pub shape: ShapeUse,
    pub from: Expr,
    pub over: Option<Expr>,
    pub with: Vec<(Spanned<String>, Expr)>,
    pub null_as: Vec<(Spanned<String>, Node)>,
    pub null_else_absent: Option<Spanned<bool>>,
    /// `despite: type`: what `null_else: absent` leaves out may be required.
    pub despite_type: Option<Span>,
}

/// One entry of `reasons:`.
#[derive(Debug)]
pub(crate) struct Reason {
    pub name: Spanned<String>,
    /// Language → text with `{placeholder}`s.
    pub texts: Vec<(Spanned<String>, Spanned<String>)>,
}

/// One entry of `examples:`; the values stay YAML until the example runs.
#[derive(Debug)]
pub(crate) enum Example {
    Route(RouteExample),
    Shape(ShapeExample),
    Harvest(HarvestExample),
}

/// One page of a harvest: the calls made with their scripted replies, and what is kept.
#[derive(Debug)]
pub(crate) struct HarvestExample {
    /// `harvest: NAME`
    pub name: Spanned<String>,
    /// `page: 0`
    pub page: Spanned<i64>,
    pub exchange: Exchange,
    pub span: Span,
}

/// A request, the calls it must make with their scripted replies, and the answer.
#[derive(Debug)]
pub(crate) struct RouteExample {
    /// Side and address, such as `v2 PUT /things/7?x=1`.
    pub at: Spanned<String>,
    pub config: Vec<(Spanned<String>, Node)>,
    pub headers: Vec<(Spanned<String>, Spanned<String>)>,
    pub body: Option<Node>,
    /// `archives: {name: {key: {age: 60, value: …}}}`
    pub archived: Vec<Archived>,
    pub exchange: Exchange,
    /// `again: {calls, answer}`: the same request once more, with what `resume` remembered.
    pub again: Option<Exchange>,
    pub span: Span,
}

/// The calls made and the answer given.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub calls: Vec<ExampleCall>,
    /// `keeps: {name: {key: value}}`, or `{name: [key]}` where entries are their keys alone.
    pub keeps: Vec<Archived>,
    pub answer: ExampleAnswer,
}

/// An entry of an archive.
#[derive(Debug)]
pub(crate) struct Archived {
    pub archive: Spanned<String>,
    pub key: String,
    pub age: i64,
    pub value: Option<Node>,
}

#[derive(Debug)]
pub(crate) struct ExampleCall {
    pub headers: Vec<(Spanned<String>, Spanned<String>)>,
    pub reply_headers: Vec<(Spanned<String>, Spanned<String>)>,
    /// Such as `GET /things/7?page=1`.
    pub expect: Spanned<String>,
    /// The body that must be sent, exactly.
    pub body: Option<Node>,
    pub reply_status: Spanned<i64>,
    /// None = empty.
    pub reply_body: Option<Node>,
}

#[derive(Debug)]
pub(crate) enum ExampleAnswer {
    /// `answer: {status, headers, body}`; body `?` asks `--bless` to fill it in.
    Answer { status: Spanned<i64>, headers: Vec<(Spanned<String>, Spanned<String>)>, body: Option<Node> },
    /// `refused: reason`
    Refused(Spanned<String>),
}

/// One value on each side; runs both ways. `lost` lists the places that do not come back.
#[derive(Debug)]
pub(crate) struct ShapeExample {
    pub shape: Spanned<String>,
    pub values: [Option<Node>; 2],
    /// Which of the two was written first: the one the other is made from.
    pub source: usize,
    /// Places lost on the way there, as paths.
    pub lost: Vec<Spanned<String>>,
    pub span: Span,
}

/// Which side sends events, and where their names stand.
#[derive(Debug)]
pub(crate) struct EventSides {
    pub from: SideRef,
    /// By side; the other side's receivers need none where the body says it.
    pub names: [Option<Spanned<String>>; 2],
    pub span: Span,
}

/// What becomes of an event of the side that sends.
#[derive(Debug)]
pub(crate) struct Event {
    /// `{v2: note.changed, v1: noteChanged}`, by side.
    pub names: [Option<Spanned<String>>; 2],
    pub body: Option<Body>,
    /// `$.body.note.id`
    pub key: Option<EventKey>,
    /// `{by: $.body.note.id, within: 2m}`
    pub correlate: Option<Correlation>,
    /// Why receivers of the other side get nothing of it.
    pub drop: Option<Spanned<String>>,
    pub span: Span,
}

/// What keeps events in order.
#[derive(Debug)]
pub(crate) enum EventKey {
    /// Of the side that sends.
    Sent(Spanned<String>),
    /// Of the events that the other side sends itself, too.
    BySide([Option<Spanned<String>>; 2]),
}

/// By what two events, one of each side, are the same one told twice.
#[derive(Debug)]
pub(crate) struct Correlation {
    /// `$.body.note.id`, in the form that receivers know.
    pub by: Vec<Spanned<String>>,
    /// `2m`
    pub within: Spanned<String>,
}
