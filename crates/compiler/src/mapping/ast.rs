//! Syntax tree of mapping files: one struct per form of the language, each with its span.
//!
//! The reader (`syntax/`) builds these from YAML and reports errors of form only. The checker
//! decides whether names exist, types fit and all fields are covered. `mappings/README.md` is the
//! manual and has an example of every form.

mod archive;
mod paging;
mod step;

pub(crate) use archive::*;
pub(crate) use paging::*;
pub(crate) use step::*;

use crate::diagnostic::Span;
use crate::yaml::Node;
use switchback_plan::{PerSide, Scheme, TokenRequests};

/// A value and its span in the source.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// All files of a pack, parsed.
#[derive(Debug)]
pub(crate) struct ProgramDecl {
    pub manifest: Manifest,
    pub shapes: Vec<ShapeDecl>,
    pub routes: Vec<RouteDecl>,
    pub reasons: Vec<ReasonDecl>,
    pub archives: Vec<ArchiveDecl>,
    pub harvests: Vec<HarvestDecl>,
    pub events: Vec<EventDecl>,
    pub examples: Vec<ExampleDecl>,
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
    pub credentials: [Option<CredentialDecl>; 2],
    /// `send: {v3: {headers: {name: value}, query: {name: value}}}`: additions to every call to a
    /// side, by side.
    pub send: PerSide<Sent>,
    /// `hosts: {v3: {files: ['POST /files', 'https://files.example.com']}}`, by side.
    pub hosts: PerSide<Vec<HostDecl>>,
    /// `scope: {v3: '/accounts/{account}'}`, by side.
    pub scope: [Option<Spanned<String>>; 2],
    /// `languages: [en, …]`, the first is the default.
    pub languages: Vec<Spanned<String>>,
    /// `paging: {query: page, first: 0, size: 20}`
    pub paging: Option<PagingDecl>,
    /// `serves: [v1]`: the sides that clients speak, by side; both if omitted.
    pub serves: [bool; 2],
    /// `rest: refuse | forward | keep`, for both sides or by side: the policy for operations
    /// without a route.
    pub rest: [Option<Spanned<RestWord>>; 2],
    /// By side: the value that a table writes on that side for a value that it does not list.
    pub unknown_values: [Option<Node>; 2],
    /// `identical: keep`: creates pairs for operations that are equal on both sides.
    pub identical: Option<Span>,
    /// `errors: {body: {message: $text}, types: {v2: Error, v3: Error}, status: {wrong_method:
    /// 501}, text: {unknown_token: reason_name}}`
    pub errors: Errors,
    /// `events: {from: v2, name: {v1: $.headers.x-event, v2: $.body.type}}`
    pub events: Option<EventSides>,
    /// `refuse: {legacy: forward, status: 501, after: {date: null, status: 410}}`
    pub refuse: RefusePolicyDecl,
    /// `headers: {approximate: x-approximate}`: response headers in which the gateway marks its own
    /// actions.
    pub headers: OwnHeaders,
    /// `settings: {things.max: {type: integer, about: …}}`
    pub settings: Vec<SettingDecl>,
    /// `compare: {headers: […], types: {v2: {Thing: {key: id, …}}}, read_back: {v2: {POST /things:
    /// 'GET /things/{$.answer.body.id}'}}}`
    pub compare: Compare,
    pub span: Span,
}

/// An additional host of a side, at an address other than the side's own.
#[derive(Debug)]
pub(crate) struct HostDecl {
    pub name: Spanned<String>,
    /// Operation keys, and server URLs that the contract assigns to operations.
    pub answers: Vec<Spanned<String>>,
}

/// Policy for operations without a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestWord {
    Refuse,
    /// Forward to the service of the client's own side, while it is available.
    Forward,
    /// Pass unchanged to the equal operation of the other side. An operation without one is an
    /// error.
    Keep,
}

/// Settings for comparing two responses in a dual run.
#[derive(Debug, Default)]
pub(crate) struct Compare {
    /// Headers compared in addition to the default ones.
    pub headers: Vec<Spanned<String>>,
    pub types: Vec<CompareType>,
    pub read_back: Vec<ReadBackDecl>,
    pub shows: Vec<Shows>,
}

/// Members of a write's body that a later read returns unchanged.
#[derive(Debug)]
pub(crate) struct Shows {
    pub side: SideRef,
    /// Operation key of the write.
    pub write: Spanned<String>,
    pub members: Vec<Spanned<String>>,
}

/// The read that observes the effect of a write on the same side.
#[derive(Debug)]
pub(crate) struct ReadBackDecl {
    pub side: SideRef,
    /// Operation key of the write.
    pub write: Spanned<String>,
    /// For example `GET /things/{id}` or `GET /things/{$.answer.body.id}`.
    pub read: Spanned<String>,
}

/// Comparison rules for one type of one side.
#[derive(Debug)]
pub(crate) struct CompareType {
    pub side: SideRef,
    pub name: Spanned<String>,
    /// The member that identifies elements when lists of this type are matched.
    pub key: Option<Spanned<FieldPlace>>,
    pub noise: Vec<Spanned<FieldPlace>>,
    pub unordered: Vec<Spanned<FieldPlace>>,
    pub secret: Vec<Spanned<FieldPlace>>,
    /// Places whose texts may be displayed.
    pub harmless: Vec<Spanned<FieldPlace>>,
}

/// Names of headers that the gateway adds to responses.
#[derive(Debug, Default)]
pub(crate) struct OwnHeaders {
    /// Lists the approximations that apply to a response.
    pub approximate: Option<Spanned<String>>,
}

#[derive(Debug)]
pub(crate) struct CredentialDecl {
    pub read: Vec<CarrierDecl>,
    /// One or more.
    pub send: Vec<CarrierDecl>,
    /// `None` if each carrier names its own scheme.
    pub scheme: Option<Spanned<String>>,
    /// Closed lists of words, so the reader checks them.
    pub tokens: TokenRequests,
    pub headers: Vec<(Spanned<String>, Spanned<String>)>,
    pub span: Span,
}

/// Header fields and query parameters added to every call to a side.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub headers: Vec<(Spanned<String>, Node)>,
    pub query: Vec<(Spanned<String>, Node)>,
}

/// `x-api-key`, `{header: authorization, scheme: Token}`, `{basic: user}`, `{query: api_key}` or
/// `{form: token}`.
#[derive(Debug)]
pub(crate) struct CarrierDecl {
    /// Name of the header, query parameter or form field.
    pub name: Spanned<String>,
    pub kind: CarrierKind,
}

#[derive(Debug)]
pub(crate) enum CarrierKind {
    /// A header with the side's `scheme`.
    Usual,
    /// A header with its own scheme.
    Scheme(Spanned<String>),
    /// A header whose scheme has a dedicated word in the manifest.
    Own(Scheme),
    Query,
    FormField,
}

impl CarrierKind {
    pub(crate) fn is_header(&self) -> bool {
        !matches!(self, CarrierKind::Query | CarrierKind::FormField)
    }
}

impl CredentialDecl {
    /// Returns the carriers for reading and for sending tokens.
    pub(crate) fn carriers(&self) -> impl Iterator<Item = &CarrierDecl> {
        self.read.iter().chain(&self.send)
    }

    /// Returns the headers that carry a token in either direction.
    pub(crate) fn headers_of_tokens(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.carriers().filter(|carrier| carrier.kind.is_header()).map(|carrier| &carrier.name)
    }
}

#[derive(Debug)]
pub(crate) struct PagingDecl {
    pub query: Spanned<String>,
    pub first: Spanned<i64>,
    pub size: Spanned<i64>,
}

#[derive(Debug)]
pub(crate) struct Errors {
    /// A YAML value that contains the text `$text` exactly once, and `$status` and `$kind` any
    /// number of times.
    pub body: Node,
    /// Name of the error type in each contract, by side; empty if the errors of a side have no
    /// common type.
    pub types: [Spanned<String>; 2],
    /// Shape that converts between the two types.
    pub shape: Option<Spanned<String>>,
    pub status: Vec<(Spanned<String>, Spanned<i64>)>,
    pub text: Vec<(Spanned<String>, Spanned<String>)>,
    /// Values for `$kind`, by kind of error.
    pub kind: Vec<(Spanned<String>, Spanned<String>)>,
    /// `status: 200`: one status for every error.
    pub all: Option<Spanned<i64>>,
    /// `sides: {v1: {status: 200, body: {ok: false, error: $kind}}}`: overrides for one side.
    pub sides: [Option<SideErrors>; 2],
    /// `failures: {v2: [{when: {$.body.ok: false}, status: 401}]}`, by side.
    pub failures: [Vec<FailureDecl>; 2],
}

/// Error format for clients of one side, where it differs from the common one.
#[derive(Debug, Default)]
pub(crate) struct SideErrors {
    pub body: Option<Node>,
    pub all: Option<Spanned<i64>>,
    pub status: Vec<(Spanned<String>, Spanned<i64>)>,
    pub kind: Vec<(Spanned<String>, Spanned<String>)>,
}

/// Recognizes responses that are failures regardless of their status.
#[derive(Debug)]
pub(crate) struct FailureDecl {
    /// A place and the values that match.
    pub when: Vec<(Spanned<String>, Vec<Node>)>,
    pub status: Spanned<i64>,
    pub span: Span,
}

/// Refusal policy. Fields that a route omits are inherited from the manifest.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusePolicyDecl {
    /// `legacy: forward | never`, by side of the client; `{v2: forward, v3: never}` if they differ.
    pub legacy_forward: [Option<bool>; 2],
    pub status: Option<Spanned<i64>>,
    pub after_date: Option<Spanned<AfterDateDecl>>,
    pub after_status: Option<Spanned<i64>>,
}

/// The date from which a refusal is permanent.
#[derive(Clone, Debug)]
pub(crate) enum AfterDateDecl {
    Never,
    Day(String),
    /// `$.config.name`: set by the operator.
    Setting(Spanned<String>),
}

#[derive(Debug)]
pub(crate) struct SettingDecl {
    pub name: Spanned<String>,
    /// `boolean`, `integer`, `string` or `date`.
    pub kind: Spanned<String>,
    /// `null` if the setting is optional and has no default.
    pub default: Option<Node>,
    /// The permitted values of a `string`; unrestricted if empty.
    pub values: Vec<Spanned<String>>,
    pub about: Spanned<String>,
    /// The ambiguity of a contract that the setting resolves.
    pub reading: Option<Spanned<String>>,
}

impl SettingDecl {
    /// Returns whether the setting may have no value, that is, its default is `null`.
    pub(crate) fn is_optional(&self) -> bool {
        self.default.as_ref().is_some_and(Node::is_null)
    }
}

/// A lens between a type of the old side and a type of the new one.
///
/// Inline shapes (in a pair's `request:`) have no name and no `of:`; they use the types of the
/// operation.
#[derive(Clone, Debug)]
pub(crate) struct ShapeDecl {
    pub name: Option<Spanned<String>>,
    /// `of: {v2: Thing, v3: Item}`: component schema names, by side.
    pub of: Option<[Spanned<String>; 2]>,
    /// `alternatives: [Cat, Dog]`: the shape of each alternative, for types that are one of several
    /// objects.
    pub alternatives: Vec<Spanned<String>>,
    /// `like: Other`: inherits all lines of another shape; lines here override them.
    pub like: Option<Spanned<String>>,
    /// `same: [id, name]`
    pub same: Vec<Spanned<String>>,
    /// `rename: {old_place: new_place}` or `{old_place: {v3: new_place, shape: S, as: conversion,
    /// else: …}}`
    pub rename: Vec<Rename>,
    /// `copy: {v2: {place: $.a.b}}`: a read-only copy on one side of a place of the other.
    pub copy: Vec<CopyDecl>,
    /// `constant: {place: {v2: literal, v3: literal}}`: fixed on both sides, same name.
    pub constant: Vec<Constant>,
    /// `by_kind: {old_place: {integer: $.a, string: $.b}}`: splits one place of the old side into
    /// several of the new side by the JSON kind of the value.
    pub by_kind: Vec<ByKind>,
    /// `only: {v2: {field: …}, v3: {field: …}}`
    pub only: Vec<Only>,
    /// `rest: {v3: lost}` or `rest: {v3: null}`: all fields of the side that no line names.
    pub rest: Vec<Rest>,
    pub span: Span,
}

/// A place: member names from the enclosing object down. A bare word is one name; a text that
/// starts with `$` is a singular JSONPath of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldPlace(pub Vec<String>);

#[derive(Clone, Debug)]
pub(crate) struct Rename {
    pub old: Spanned<FieldPlace>,
    pub new: Spanned<FieldPlace>,
    /// `shape: S` for an object, `shape: [S]` for each element of an array.
    pub shape: Option<ShapeUse>,
    /// `as: name` or `as: {name: arguments}`
    pub conversion: Option<ConversionUse>,
    /// `default: {v2: literal}`: the value on that side if the other side has no value.
    pub defaults: Vec<(SideRef, Node)>,
    pub span: Span,
}

/// A reference to a shape, applied to a value or to each element of an array.
#[derive(Clone, Debug)]
pub(crate) struct ShapeUse {
    pub name: Spanned<String>,
    pub each: bool,
    /// `each_value: S`: applies the shape to each value of a map.
    pub each_value: bool,
    /// `else: error | drop | <literal>`, for both sides or by side: the fallback for a value that
    /// the shape does not accept.
    pub otherwise: Option<Node>,
}

#[derive(Clone, Debug)]
pub(crate) struct ConversionUse {
    pub name: Spanned<String>,
    pub arguments: Option<Node>,
    /// `else: error | keep | drop | <literal>`, for both sides or by side.
    pub otherwise: Option<Node>,
    /// `as: {each: conversion}`: converts each element of a list.
    pub each: Option<Span>,
    /// `as: [this, …]`: fallbacks, tried in order if this conversion does not accept the value.
    pub or: Vec<ConversionUse>,
}

/// A side's name, resolved: 0 is old, 1 is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SideRef {
    pub side: usize,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct CopyDecl {
    /// The side that receives the copy.
    pub to: SideRef,
    pub name: Spanned<String>,
    pub from: Spanned<FieldPlace>,
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
    pub old: Spanned<FieldPlace>,
    /// Kind (`integer`, `number`, `boolean`, `string`, `object`, `array`) → place on the new side.
    pub new: Vec<(Spanned<String>, Spanned<FieldPlace>)>,
    /// `default: {old side: value}`: the value on the old side if all of the places are absent.
    pub default: Option<Node>,
    pub span: Span,
}

/// A field that exists on one side only.
#[derive(Clone, Debug)]
pub(crate) struct Only {
    pub side: SideRef,
    pub place: Spanned<FieldPlace>,
    pub fill: Fill,
    pub span: Span,
}

/// Value of a one-sided field when its side is built.
#[derive(Clone, Debug)]
pub(crate) enum Fill {
    /// A literal, or `{value: literal, despite: type}`.
    Value { value: Node, despite_type: Option<Span> },
    /// `absent`: omitted.
    Absent,
    /// `none`: has no default; a route that builds this side supplies it under `with:`.
    Nothing,
    /// `$.config.name`
    Setting(Spanned<String>),
    /// `{refuse: reason}`: omitted when built; a value that arrives from this side refuses the
    /// call.
    Refuse(Spanned<String>),
}

#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub side: SideRef,
    /// The fill value; `None` for `lost`: the side can only be built without these fields.
    pub fill: Option<RestFill>,
    pub span: Span,
}

/// One literal for all fields that no line names: `null`, or `{value: null, despite: type}` if it
/// violates the type of some of them.
#[derive(Clone, Debug)]
pub(crate) struct RestFill {
    pub value: Node,
    pub despite_type: Option<Span>,
}

/// One entry of `routes:`.
#[derive(Debug)]
pub(crate) enum RouteDecl {
    Pair(PairDecl),
    Serve(ServeDecl),
}

impl RouteDecl {
    /// Returns the setting that enables the route.
    pub(crate) fn only_if(&self) -> Option<&Spanned<String>> {
        match self {
            RouteDecl::Pair(pair) => pair.only_if.as_ref(),
            RouteDecl::Serve(serve) => serve.only_if.as_ref(),
        }
    }
}

/// `pair: {v2: GET /a, v3: GET /b, front: v2}`
#[derive(Debug)]
pub(crate) struct PairDecl {
    /// `if: $.config.name`: replaces the route without `if` while the setting is on.
    pub only_if: Option<Spanned<String>>,
    /// `paging: {v1: {page: page}, v2: {cursor: after}}`
    pub paging: Option<PagedRoute>,
    /// Operation keys, by side.
    pub operations: [Spanned<String>; 2],
    /// The only side that the pair serves; both if omitted.
    pub front: Option<SideRef>,
    /// Generated for operations that are equal on both sides, and dropped if they turn out to
    /// differ.
    pub made: bool,
    /// `path: {old variable: new variable}`; equal names need no line.
    pub path: Vec<(Spanned<String>, Spanned<String>)>,
    /// `allow_slash: [id]`: path variables of either side whose values may contain escaped slashes.
    pub allow_slash: Vec<Spanned<String>>,
    /// `query: [page]`, `{old: new}` or `{old: {v2: new, as: conversion}}`
    pub query: Vec<ParameterLine>,
    /// `query: {name: {constant: {v2: value}}}`
    pub constant_query: Vec<ConstantParameter>,
    /// Names in lines with an error; suppresses further findings about them.
    pub faulty_query: Vec<String>,
    /// `query: {name: {refuse: reason, unless: [value]}}`
    pub refused_query: Vec<RefusedParameter>,
    /// `headers: {request: {old: new}, response: {old: {v2: new, as: conversion}}}`
    pub request_headers: Vec<ParameterLine>,
    pub response_headers: Vec<ParameterLine>,
    /// `headers: {request: {name: {constant: {v2: value}}}}`
    pub constant_request_headers: Vec<ConstantParameter>,
    pub constant_response_headers: Vec<ConstantParameter>,
    /// `media: {request: {old: new}, response: {old: new}}`: media types of bodies that are passed
    /// through.
    pub request_media: Vec<(Spanned<String>, Spanned<String>)>,
    pub response_media: Vec<(Spanned<String>, Spanned<String>)>,
    pub request: Option<BodyDecl>,
    pub response: Option<BodyDecl>,
    /// `status: {201: [200, 2xx]}`: old status → new statuses; the first is sent in the opposite
    /// direction.
    pub status: Vec<StatusLine>,
    /// `business_errors: [500]`
    pub business_errors: Vec<Spanned<i64>>,
    /// `retry: safe`: repeating a write is harmless.
    pub retry: Option<Spanned<bool>>,
    /// `effect: none | write`: overrides the effect implied by the method.
    pub effect: Option<Spanned<bool>>,
    pub notes: Notes,
    pub span: Span,
}

/// A query parameter or header of one side and its counterpart on the other.
#[derive(Clone, Debug)]
pub(crate) struct ParameterLine {
    pub old: Spanned<String>,
    pub new: Spanned<String>,
    pub conversion: Option<ConversionUse>,
}

impl ParameterLine {
    /// Creates a line without a conversion.
    pub(crate) fn plain(old: Spanned<String>, new: Spanned<String>) -> ParameterLine {
        ParameterLine { old, new, conversion: None }
    }
}

/// A query parameter or header with a fixed value on one side.
#[derive(Clone, Debug)]
pub(crate) struct ConstantParameter {
    pub name: Spanned<String>,
    pub side: SideRef,
    pub value: Node,
}

/// A query parameter of either side that refuses the call.
#[derive(Clone, Debug)]
pub(crate) struct RefusedParameter {
    pub name: Spanned<String>,
    pub reason: Spanned<String>,
    /// Values that are dropped instead of refused.
    pub unless: Vec<Spanned<String>>,
}

/// Annotations of a route for the report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// `verdict: different` or, if a pair's directions differ, `verdict: {v2: different, v3:
    /// partly}`; `exact` if omitted.
    ///
    /// The compiler derives the verdict and reports a declared one that differs. Refused routes
    /// have no verdict.
    pub verdict: Vec<(Option<SideRef>, Spanned<String>)>,
    /// `differs: …` and `approximate: …`: sentences.
    pub differs: Vec<Spanned<String>>,
    /// `approximate: sentence`, or `approximate: {name: sentence}` if the pack marks responses.
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
pub(crate) enum BodyDecl {
    /// `empty`
    Empty(Span),
    /// `keep`: identical on both sides.
    Keep(Span),
    Shape(ShapeUse),
    /// `{same: […], …}`: an unnamed shape.
    Inline(Box<ShapeDecl>),
}

/// `serve: v2, at: POST /a`
#[derive(Debug)]
pub(crate) struct ServeDecl {
    /// See [`Pair::only_if`].
    pub only_if: Option<Spanned<String>>,
    pub side: SideRef,
    pub at: Spanned<String>,
    /// `allow_slash: [id]`: path variables whose values may contain escaped slashes.
    pub allow_slash: Vec<Spanned<String>>,
    pub check: Vec<CheckDecl>,
    pub fill: Vec<(Spanned<String>, Node)>,
    /// `query: {name: drop}`: parameters that no step reads.
    pub dropped: Vec<Spanned<String>>,
    /// `headers: {name: drop}`, of requests and responses.
    pub dropped_headers: Vec<Spanned<String>>,
    /// See [`Pair::paging`].
    pub paging: Option<PagedRoute>,
    pub block: BlockDecl,
    pub business_errors: Vec<Spanned<i64>>,
    pub notes: Notes,
    pub span: Span,
}

/// An expression that produces a value.
#[derive(Clone, Debug)]
pub(crate) struct ExprDecl {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// A literal.
    Literal(Node),
    /// A text starting with `$`.
    Path(String),
    Object(Vec<(Spanned<String>, ExprDecl)>),
    Array(Vec<ExprDecl>),
    /// `{$from: path, as: conversion, else: …}`
    Convert {
        from: Box<ExprDecl>,
        conversion: ConversionUse,
    },
    /// `{$text: reason, with: {name: expr}}`
    Text {
        reason: Spanned<String>,
        with: Vec<(Spanned<String>, ExprDecl)>,
    },
    /// `{$shape: S | [S], from: expr, over: expr, with: {field: expr}, null_as: {field: literal},
    /// null_else: keep | absent}`
    Shape(Box<ShapeExpr>),
    /// `{$value: literal}`, optionally with `despite: type`: a literal that may start with `$` or
    /// violate its type.
    Value {
        value: Node,
        despite_type: Option<Span>,
    },
    /// `{$count: list}`, `{$sum: list}`
    Aggregate {
        what: switchback_plan::Aggregate,
        list: Box<ExprDecl>,
    },
    /// `{$first: [expr, …]}`: the first value that is present and not null.
    FirstOf(Vec<ExprDecl>),
    /// `{$present: [expr, …]}`: a list of the values that are present and not null.
    Present(Vec<ExprDecl>),
    /// `{$lookup: value, in: list, by: member, field: member}`
    Lookup {
        value: Box<ExprDecl>,
        list: Spanned<String>,
        by: Spanned<String>,
        field: Option<Spanned<String>>,
    },
    /// `{$each: {name: list}, give: expr}`: a list with the value of `give` for each element.
    Each {
        name: Spanned<String>,
        list: Box<ExprDecl>,
        give: Box<ExprDecl>,
    },
    /// `{$if: predicate, then: expr, else: expr}`; absent without `else`.
    If {
        predicate: PredicateDecl,
        then: Box<ExprDecl>,
        otherwise: Option<Box<ExprDecl>>,
    },
    /// `{$lines: [expr, …], numbered: [expr, …]}`: a multi-line text.
    Lines {
        plain: Vec<ExprDecl>,
        numbered: Vec<ExprDecl>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct ShapeExpr {
    pub shape: ShapeUse,
    pub from: ExprDecl,
    pub over: Option<ExprDecl>,
    pub with: Vec<(Spanned<String>, ExprDecl)>,
    pub null_as: Vec<(Spanned<String>, Node)>,
    pub null_else_absent: Option<Spanned<bool>>,
    /// `despite: type`: permits `null_else: absent` to omit required members.
    pub despite_type: Option<Span>,
}

/// One entry of `reasons:`.
#[derive(Debug)]
pub(crate) struct ReasonDecl {
    pub name: Spanned<String>,
    /// Language → text with `{placeholder}`s.
    pub texts: Vec<(Spanned<String>, Spanned<String>)>,
}

/// One entry of `examples:`. Values remain YAML until the example runs.
#[derive(Debug)]
pub(crate) enum ExampleDecl {
    Route(RouteExampleDecl),
    Shape(ShapeExampleDecl),
    Harvest(HarvestExampleDecl),
}

/// One page of a harvest: the expected calls with their scripted replies, and the archived entries.
#[derive(Debug)]
pub(crate) struct HarvestExampleDecl {
    /// `harvest: NAME`
    pub name: Spanned<String>,
    /// `page: 0`
    pub page: Spanned<i64>,
    pub exchange: ExchangeDecl,
    pub span: Span,
}

/// A request, the expected calls with their scripted replies, and the expected response.
#[derive(Debug)]
pub(crate) struct RouteExampleDecl {
    /// Side and request line, such as `v2 PUT /things/7?x=1`.
    pub at: Spanned<String>,
    pub config: Vec<(Spanned<String>, Node)>,
    pub headers: Vec<(Spanned<String>, Spanned<String>)>,
    pub body: Option<Node>,
    /// `archives: {name: {key: {age: 60, value: …}}}`
    pub archived: Vec<ArchivedDecl>,
    pub exchange: ExchangeDecl,
    /// `again: {calls, answer}`: the same request repeated, with the state that `resume` saved.
    pub again: Option<ExchangeDecl>,
    pub span: Span,
}

/// The expected calls and the expected response.
#[derive(Debug)]
pub(crate) struct ExchangeDecl {
    pub calls: Vec<ExampleCallDecl>,
    /// `keeps: {name: {key: value}}`, or `{name: [key]}` for archives without values.
    pub keeps: Vec<ArchivedDecl>,
    pub answer: ExampleAnswer,
}

/// An entry of an archive.
#[derive(Debug)]
pub(crate) struct ArchivedDecl {
    pub archive: Spanned<String>,
    pub key: String,
    pub age: i64,
    pub value: Option<Node>,
}

#[derive(Debug)]
pub(crate) struct ExampleCallDecl {
    pub headers: Vec<(Spanned<String>, Spanned<String>)>,
    pub reply_headers: Vec<(Spanned<String>, Spanned<String>)>,
    /// For example `GET /things/7?page=1`.
    pub expect: Spanned<String>,
    /// The exact body of the call.
    pub body: Option<Node>,
    pub reply_status: Spanned<i64>,
    /// `None` is an empty body.
    pub reply_body: Option<Node>,
}

#[derive(Debug)]
pub(crate) enum ExampleAnswer {
    /// `answer: {status, headers, body}`. With `--bless`, a body of `?` is filled in.
    Answer { status: Spanned<i64>, headers: Vec<(Spanned<String>, Spanned<String>)>, body: Option<Node> },
    /// `refused: reason`
    Refused(Spanned<String>),
}

/// One value on each side, translated both ways. `lost` lists the places that the round trip loses.
#[derive(Debug)]
pub(crate) struct ShapeExampleDecl {
    pub shape: Spanned<String>,
    pub values: [Option<Node>; 2],
    /// The side whose value is written first; the other value is derived from it.
    pub source: usize,
    /// Places lost in the first direction, as paths.
    pub lost: Vec<Spanned<String>>,
    pub span: Span,
}

/// The side that sends events, and the location of their names.
#[derive(Debug)]
pub(crate) struct EventSides {
    pub from: SideRef,
    /// By side. The receivers' side needs no name if the body contains it.
    pub names: [Option<Spanned<String>>; 2],
    pub span: Span,
}

/// Translation of one event of the sending side.
#[derive(Debug)]
pub(crate) struct EventDecl {
    /// `{v2: note.changed, v1: noteChanged}`, by side.
    pub names: [Option<Spanned<String>>; 2],
    pub body: Option<BodyDecl>,
    /// `$.body.note.id`
    pub key: Option<EventKey>,
    /// `{by: $.body.note.id, within: 2m}`
    pub correlate: Option<Correlation>,
    /// The reason why receivers of the other side do not get the event.
    pub drop: Option<Spanned<String>>,
    pub span: Span,
}

/// Ordering key: events with the same key are delivered in order.
#[derive(Debug)]
pub(crate) enum EventKey {
    /// A path in the event of the sending side.
    Sent(Spanned<String>),
    /// One path per side, if the other side also sends events itself.
    BySide([Option<Spanned<String>>; 2]),
}

/// Deduplication: identifies two events, one of each side, as the same event.
#[derive(Debug)]
pub(crate) struct Correlation {
    /// `$.body.note.id`, in the receivers' format.
    pub by: Vec<Spanned<String>>,
    /// `2m`
    pub within: Spanned<String>,
}
