//! The compiled form of a pack: what the front end writes and the run time reads.
//!
//! Everything here is immutable after compilation, shared behind one `Arc`, and free of YAML: names and places of the
//! mapping survive only as [`Origin`], for explanations, logs and blame. Nothing here runs; `translate` does.
//! Constants and keys are stored as ready JSON text, because the run time writes bytes, not values.

// What no other crate can reach says so, and the compiler finds it when nothing calls it.
#![warn(unreachable_pub)]
// The other crates and programs that embed the gateway read these types: each public item says what it means.
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
mod head;
mod oauth;
mod paging;
mod parameter;
mod reads;
mod report;
mod route;
pub mod router;
mod side;
mod step;

pub use archive::{Archive, ArchiveId, EachOf, Harvest, Keep, Recall};
pub use body::{
    Absent, Again, AttemptOp, BodyPlan, Captured, ChooseBy, ChooseOp, Class, Close, CloseFrom, Emit, Key,
    Kinds, Member, MemberAction, ObjectOp, Others, Raw, ValueOp,
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
pub use explain::{explain, explain_event};
pub use expr::{Aggregate, Expr, Location, NullElse, Overlay, Path, Segment};
pub use form::{Conform, Form, FormField, FormKind, Listed};
pub use format::{
    BodyFormat, FormFormat, MediaType, MediaTypes, MultipartFormat, PartKind, essence, is_json,
    media_in_range,
};
pub use head::{
    ANSWER_KEEPS, CALL_KEEPS, CallHead, HeaderRule, PathPart, QueryFrom, QueryRefusal, QueryRule, StatusFrom,
    StatusTo,
};
pub use oauth::{BodyForm, ClientAuth, RefreshExtra, TokenRequests};
pub use paging::{LastPage, MemberPath, PagedBy, PagedSide, Paging, Told};
pub use parameter::{ListStyle, ParameterKind, ParameterShape, Variable};
pub use report::{
    ArchiveReport, EventReport, GapReport, InsteadReport, LossReport, OperationReport, Report, SettingReport,
    ShapeReport, SideReport, report,
};
pub use route::{
    BodyExpected, Effect, Instead, Loss, Message, Narrow, Note, NoteKind, Operation, Pair, Refusal, Response,
    ResponseBody, Route, RouteId, RouteKind, Verdict,
};
pub use side::{HostId, PerSide, SideId};
pub use step::{
    Answer, Beyond, Block, Cell, Check, CheckElse, Choice, Column, Decision, Each, End, OnFail, Outcome,
    PARAMETER, PageOf, Pages, Poll, Predicate, Promise, Row, Selection, Serve, Step, StepAction, StepCall,
    Take,
};

use std::collections::BTreeMap;
use std::sync::Arc;

/// Where in the mapping files something comes from: blamed in findings, shown by `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the file within the pack, with `/` between folders.
    pub file: Arc<str>,
    /// 1-based.
    pub line: u32,
}

/// A compiled pack: two sides, and the plans to serve each of them from the other.
#[derive(Debug)]
pub struct Pack {
    /// By which logs, reports and configurations call it.
    pub name: String,
    /// By [`SideId`].
    pub sides: PerSide<Side>,
    /// Plans by served side: `directions[SideId::OLD]` serves the old side from the new one.
    pub directions: PerSide<Direction>,
    /// First is the default; lower-case BCP 47 tags.
    pub languages: Vec<String>,
    /// Texts for people; [`ReasonId`] indexes them.
    pub reasons: Vec<Reason>,
    /// By served side.
    pub errors: PerSide<ErrorStyle>,
    /// By side that is called: which of its answers are failures, whatever their status says. The first that holds counts.
    pub failures: PerSide<Vec<FailureRule>>,
    /// What refused operations are answered with.
    pub refuse: RefusePolicy,
    /// What the pack reads under `$.config`, in declaration order.
    pub settings: Vec<Setting>,
    /// The field (lower case) in which answers name the approximations that they are made by.
    pub approximate_header: Option<String>,
    /// What it keeps of its own, in the order of the program.
    pub archives: Vec<Archive>,
    /// How archives are filled while a side lives, in the order of the program.
    pub harvests: Vec<Harvest>,
    /// How events of one side reach those who know the other; none where the pack carries none.
    pub events: Option<Events>,
    /// Named shapes, in the order of the program.
    pub shapes: Vec<Shape>,
    /// In the order of the program.
    pub examples: Vec<Example>,
    /// Headers (lower case) compared in a dual run beside the usual ones.
    pub compared_headers: Vec<String>,
    /// What is declared of error bodies, by side.
    pub compared_errors: PerSide<Vec<CompareRule>>,
    /// What may be shown of messages, by side.
    pub disclosures: PerSide<Arc<Disclosures>>,
}

/// One side of a pack.
#[derive(Debug)]
pub struct Side {
    /// By which mapping files and configurations call it, such as `v2`.
    pub name: String,
    /// What calls to this side carry as their token, and where.
    pub credential: Credential,
    /// Path prefix that selects a client's secondary account on this side, with one `{…}` variable, such as
    /// `/accounts/{account}`; none where the side has no such thing.
    pub scope: Option<String>,
    /// Names of the hosts that it has besides the one at its own address, in the order of their [`HostId`]s.
    pub hosts: Vec<String>,
}

/// All plans that serve one side from the other.
#[derive(Debug)]
pub struct Direction {
    /// The side whose clients these plans answer.
    pub serves: SideId,
    /// One per operation of the served contract, in contract order. `RouteId` indexes it.
    pub routes: Vec<Route>,
    /// Turns an error body of the other side into one of the served side: for calls of `serve` routes that fail. (Pairs
    /// carry it in their [`Response`]s.)
    pub error: BodyPlan,
}

impl Direction {
    /// Whether at least one operation of this side is answered by something other than a refusal.
    pub fn is_served(&self) -> bool {
        self.routes.iter().flat_map(Route::all).any(|route| !matches!(route.kind, RouteKind::Refuse(_)))
    }
}

/// A localised text for people; placeholders are written `{name}`.
#[derive(Debug)]
pub struct Reason {
    /// By which mapping files call it.
    pub name: String,
    /// By language tag; the default language is always there.
    pub texts: BTreeMap<String, String>,
    /// Where the mapping declares it.
    pub origin: Origin,
}

/// Index into [`Pack::reasons`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReasonId(pub u16);

/// What happens to refused operations unless the route says otherwise.
#[derive(Clone, Debug)]
pub struct RefusePolicy {
    /// By served side: forward unchanged to that side's upstream while one is configured.
    pub legacy_forward: PerSide<bool>,
    /// The status until `after_date`.
    pub status: u16,
    /// From this day on, `after_status` is answered instead.
    pub after_date: Option<AfterDate>,
    /// The status from `after_date` on.
    pub after_status: u16,
}

/// From when on a refusal is for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterDate {
    /// `YYYY-MM-DD`, UTC.
    Day(String),
    /// The day that the operator gives with this setting (index into [`Pack::settings`]); none given, never.
    Setting(u16),
}

/// One value the pack reads from the operator's configuration.
#[derive(Debug)]
pub struct Setting {
    /// Dotted path below `$.config`.
    pub name: String,
    /// What values it takes.
    pub kind: SettingKind,
    /// JSON text used when the operator gives nothing.
    pub default: Option<Raw>,
    /// Whether the operator must give one.
    pub is_required: bool,
    /// The only texts that it may be; empty = any.
    pub values: Vec<String>,
    /// For the operator.
    pub about: String,
    /// Which open point of a contract it settles.
    pub reading: Option<String>,
    /// Where the manifest declares it.
    pub origin: Origin,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number of 64 bits, with a sign.
    Integer,
    /// Any text, or one of [`Setting::values`].
    String,
    /// `YYYY-MM-DD`.
    Date,
}

impl SettingKind {
    /// The kinds as packs name them.
    pub const WORDS: &'static [(&'static str, SettingKind)] = &[
        ("boolean", SettingKind::Boolean),
        ("integer", SettingKind::Integer),
        ("string", SettingKind::String),
        ("date", SettingKind::Date),
    ];

    /// The kind as packs name it.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// Whether a text is a day that there is, written `YYYY-MM-DD`.
pub fn is_day(text: &str) -> bool {
    let number = |part: std::ops::Range<usize>| text.get(part).and_then(|digits| digits.parse::<u32>().ok());
    let is_written = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let (true, Some(year), Some(month), Some(day)) = (is_written, number(0..4), number(5..7), number(8..10))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}
