//! The compiled form of a pack: the compiler writes it, and the run time reads it.
//!
//! The types are immutable after compilation, shared behind one `Arc`, and independent of YAML.
//! Names and places of the mapping survive only as [`Origin`], for explanations, logs and findings.
//! This crate executes no plan; `translate` does. Constants and keys are stored as serialized JSON,
//! because the run time writes bytes rather than values.

// Items that no other crate uses must not be `pub`, so that the compiler reports them when they
// become unused.
#![warn(unreachable_pub)]
// Other crates and programs that embed the gateway use these types, so public items are documented.
#![deny(missing_docs)]

mod archive;
mod body;
mod compare;
pub mod convert;
mod credential;
mod decimal;
mod disclosure;
mod errors;
mod event;
mod example;
mod expected;
mod explain;
mod expr;
mod form;
mod format;
pub mod function;
mod head;
mod json;
mod location;
mod loss;
mod oauth;
mod paging;
mod parameter;
mod predicate;
mod reads;
mod refusal;
mod report;
mod route;
pub mod router;
mod side;
mod step;
mod xml;

pub use archive::{Archive, ArchiveId, EachOf, Keep, Recall};
pub use body::{
    Absent, Again, AttemptOp, BodyPlan, Captured, ChooseBy, ChooseOp, Class, Close, CloseFrom, Emit, Member,
    MemberAction, ObjectOp, Others, ValueOp,
};
pub use compare::{CompareKind, CompareRule, ReadBack};
pub use credential::{BasicPart, Carrier, Credential, Scheme};
pub use decimal::Decimal;
pub use disclosure::{
    Disclosed, Disclosure, DisclosureId, Disclosures, Exposure, OperationDisclosure, SegmentDisclosure,
};
pub use errors::{ErrorPiece, ErrorStyle, FailurePlace, FailureRule, FailureTest, GATEWAY_ERRORS};
pub use event::{Becomes, Correlate, EventName, EventRoute, Events, ToldEvent};
pub use example::{
    Archived, Example, ExampleCall, ExampleEnd, ExampleKind, Exchange, HarvestExample, RouteExample, Shape,
    ShapeExample, ShapePlan, Wanted,
};
pub use expected::{Expected, Root};
pub use explain::{explain, explain_event, refusals};
pub use expr::{Aggregate, Expr, NullElse, Overlay};
pub use form::{Conform, Form, FormField, FormKind, Listed};
pub use format::{
    BodyFormat, FormFormat, MediaType, MediaTypes, MultipartFormat, PartKind, essence, is_json, is_json_type,
    media_in_range,
};
pub use head::{
    ANSWER_KEEPS, CALL_KEEPS, CallHead, Effect, HeaderRule, PathPart, QueryFrom, QueryRefusal, QueryRule,
    StatusFrom, StatusTo,
};
pub use json::{Key, Kinds, Raw};
pub use location::{Location, Path, Segment};
pub use loss::{Loss, Message, Narrow, Note, NoteKind};
pub use oauth::{BodyForm, ClientAuth, RefreshExtra, TokenRequests};
pub use paging::{LastPage, MemberPath, PagedBy, PagedSide, Paging, Told};
pub use parameter::{ListStyle, ParameterKind, ParameterShape, Variable};
pub use predicate::Predicate;
pub use reads::ARRIVAL;
pub use refusal::{AfterDate, Refusal, RefusePolicy};
pub use report::{
    ArchiveReport, EventReport, GapReport, InsteadReport, LossReport, OperationReport, Report, SettingReport,
    ShapeReport, SideReport, report,
};
pub use route::{
    BodyExpected, ErrorPlan, Harvest, Instead, Operation, Pair, Response, ResponseBody, Route, RouteId,
    RouteKind, Verdict,
};
pub use side::{HostId, PerSide, SideId};
pub use step::{
    Answer, Beyond, Block, Cell, Check, CheckElse, Choice, Column, Decision, Each, End, OnFail, Outcome,
    PARAMETER, PageOf, Pages, Poll, Promise, Row, Selection, Serve, Step, StepAction, StepCall, Take,
};
pub use xml::{XmlFormat, XmlKind, XmlMember, XmlName, XmlPlace, XmlScalar, XmlType, is_xml, is_xml_name};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use time::Date;
use time::macros::format_description;

/// A place in the mapping files. Findings and `explain` refer to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the file within the pack, with `/` between folders.
    pub file: Arc<str>,
    /// 1-based line number.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// A compiled pack: two sides, and the plans to serve each of them from the other.
#[derive(Debug)]
pub struct Pack {
    /// Name of the pack in logs, reports and configurations.
    pub name: String,
    /// The sides, by [`SideId`].
    pub sides: PerSide<Side>,
    /// Plans by served side: `directions[SideId::OLD]` serves the old side from the new one.
    pub directions: PerSide<Direction>,
    /// Lower-case BCP 47 tags; the first is the default.
    pub languages: Vec<String>,
    /// Texts for people; [`ReasonId`] is an index into them.
    pub reasons: Vec<Reason>,
    /// Error style by served side.
    pub errors: PerSide<ErrorStyle>,
    /// By called side, the rules that recognize failures regardless of the status. The first match
    /// applies.
    pub failures: PerSide<Vec<FailureRule>>,
    /// Response to refused operations.
    pub refuse: RefusePolicy,
    /// Settings that the pack reads under `$.config`, in declaration order.
    pub settings: Vec<Setting>,
    /// Header field (lower case) in which responses list their approximations.
    pub approximate_header: Option<String>,
    /// Archives, in declaration order.
    pub archives: Vec<Archive>,
    /// Harvests that fill the archives, in declaration order.
    pub harvests: Vec<Harvest>,
    /// Translation of events; `None` if the pack has none.
    pub events: Option<Events>,
    /// Named shapes, in declaration order.
    pub shapes: Vec<Shape>,
    /// Examples, in declaration order.
    pub examples: Vec<Example>,
    /// Media types, besides those of [`is_json`], that denote JSON.
    pub json_types: Vec<Arc<str>>,
    /// Header fields (lower case) to compare in a dual run, in addition to the defaults.
    pub compared_headers: Vec<String>,
    /// Comparison rules for error bodies, by side.
    pub compared_errors: PerSide<Vec<CompareRule>>,
    /// Disclosure rules for messages, by side.
    pub disclosures: PerSide<Arc<Disclosures>>,
}

impl Pack {
    /// Returns a reason in the default language.
    pub fn reason_text(&self, id: ReasonId) -> Option<&str> {
        let reason = self.reasons.get(usize::from(id.0))?;
        reason.texts.get(self.languages.first()?).map(String::as_str)
    }
}

/// One side of a pack.
#[derive(Debug)]
pub struct Side {
    /// Name in mapping files and configurations, such as `v2`.
    pub name: String,
    /// Location and scheme of the token.
    pub credential: Credential,
    /// Path prefix that selects a client's secondary account, with one `{…}` variable, such as
    /// `/accounts/{account}`. `None` if the side has no secondary accounts.
    pub scope: Option<String>,
    /// Names of the additional hosts, in the order of their [`HostId`]s.
    pub hosts: Vec<String>,
}

/// All plans that serve one side from the other.
#[derive(Debug)]
pub struct Direction {
    /// The side of the clients that these plans serve.
    pub serves: SideId,
    /// One route per operation of the served contract, in contract order. `RouteId` is an index
    /// into them.
    pub routes: Vec<Route>,
    /// Translates an error body of the other side, for failed calls of `serve` routes. (Pairs have
    /// it in their [`Response`]s.)
    pub error: BodyPlan,
}

impl Direction {
    /// Returns whether at least one operation is not refused.
    pub fn is_served(&self) -> bool {
        self.routes.iter().flat_map(Route::all).any(|route| !matches!(route.kind, RouteKind::Refuse(_)))
    }
}

/// A localized text for people. Placeholders have the form `{name}`.
#[derive(Debug)]
pub struct Reason {
    /// Name in mapping files.
    pub name: String,
    /// Texts by language tag; the default language is always present.
    pub texts: BTreeMap<String, String>,
    /// Place of the declaration in the mapping.
    pub origin: Origin,
}

/// Index into [`Pack::reasons`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReasonId(pub u16);

/// A value that the pack reads from the operator's configuration.
#[derive(Debug)]
pub struct Setting {
    /// Dotted path below `$.config`.
    pub name: String,
    /// Type of its values.
    pub kind: SettingKind,
    /// Default, as JSON text.
    pub default: Option<Raw>,
    /// Whether the operator must set it.
    pub is_required: bool,
    /// Allowed texts; empty if any text is allowed.
    pub values: Vec<String>,
    /// Description for the operator.
    pub about: String,
    /// The open question of a contract that it decides.
    pub reading: Option<String>,
    /// Place of the declaration in the manifest.
    pub origin: Origin,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// `true` or `false`.
    Boolean,
    /// A signed 64-bit integer.
    Integer,
    /// Any text, or one of [`Setting::values`].
    String,
    /// `YYYY-MM-DD`.
    Date,
}

impl SettingKind {
    /// The kinds with their names in packs.
    pub const WORDS: &'static [(&'static str, SettingKind)] = &[
        ("boolean", SettingKind::Boolean),
        ("integer", SettingKind::Integer),
        ("string", SettingKind::String),
        ("date", SettingKind::Date),
    ];

    /// Returns the name in packs.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// Returns whether the text is a valid date in the form `YYYY-MM-DD`.
pub fn is_day(text: &str) -> bool {
    // The format accepts a sign, which makes the text longer.
    text.len() == 10 && Date::parse(text, format_description!("[year]-[month]-[day]")).is_ok()
}
