//! The compiled form of a pack: what the front end writes and the run time reads.
//!
//! Everything here is immutable after compilation, shared behind one `Arc`, and free of YAML: names and places of the
//! mapping survive only as [`Origin`], for explanations, logs and blame. Nothing here runs; `translate` does.
//! Constants and keys are stored as ready JSON text, because the run time writes bytes, not values.

mod body;
mod compare;
pub mod convert;
mod errors;
mod example;
mod explain;
mod expr;
mod form;
mod head;
mod oauth;
mod report;
mod route;
pub mod router;
mod step;

pub use body::{
    Absent, BodyPlan, Captured, Class, Close, CloseFrom, Emit, Key, Kinds, Member, MemberAction, ObjectOp,
    Others, Raw, ValueOp,
};
pub use compare::{CompareKind, CompareRule, ReadBack};
pub use errors::{ErrorPiece, ErrorStyle, GATEWAY_ERRORS};
pub use example::{
    Example, ExampleCall, ExampleEnd, ExampleKind, Exchange, RouteExample, Shape, ShapeExample, ShapePlan,
    Wanted,
};
pub use explain::explain;
pub use expr::{Expr, Location, NullElse, Overlay, Path, Segment};
pub use form::{Conform, Form, FormField, FormKind, Listed};
pub use head::{CallHead, HeaderRule, PathPart, QueryFrom, QueryRefusal, QueryRule, StatusFrom, StatusTo};
pub use oauth::{BodyForm, ClientAuth, RefreshExtra, TokenRequests};
pub use report::{GapReport, LossReport, OperationReport, Report, ShapeReport, SideReport, report};
pub use route::{
    BodyExpected, Effect, Loss, Note, NoteKind, Operation, Pair, ParameterKind, Refusal, Response,
    ResponseBody, Route, RouteId, RouteKind, Variable, Verdict,
};
pub use step::{
    Answer, Beyond, Block, Cell, Check, CheckElse, Choice, Column, Decision, Each, End, OnFail, Outcome,
    PARAMETER, PageOf, Pages, Predicate, Row, Selection, Serve, Step, StepAction, StepCall, Take,
};

use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of a side in [`Pack::sides`]: 0 is the old side, 1 the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SideId(pub u8);

impl SideId {
    pub const OLD: SideId = SideId(0);
    pub const NEW: SideId = SideId(1);

    /// The side that calls of this side are translated to.
    pub fn other(self) -> SideId {
        SideId(1 - self.0)
    }
}

/// Where in the mapping files something comes from: blamed in findings, shown by `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    pub file: Arc<str>,
    /// 1-based.
    pub line: u32,
}

/// A compiled pack: two sides, and the plans to serve each of them from the other.
#[derive(Debug)]
pub struct Pack {
    pub name: String,
    pub sides: [Side; 2],
    /// Plans by served side: `directions[0]` serves the old side from the new one.
    pub directions: [Direction; 2],
    /// First is the default; lower-case BCP 47 tags.
    pub languages: Vec<String>,
    pub reasons: Vec<Reason>,
    pub errors: ErrorStyle,
    pub refuse: RefusePolicy,
    /// What the pack reads under `$.config`, in declaration order.
    pub settings: Vec<Setting>,
    /// Named shapes, in the order of the program.
    pub shapes: Vec<Shape>,
    /// In the order of the program.
    pub examples: Vec<Example>,
    /// Headers (lower case) compared in a dual run beside the usual ones.
    pub compared_headers: Vec<String>,
    /// What is declared of error bodies, by side.
    pub compared_errors: [Vec<CompareRule>; 2],
}

/// One side of a pack.
#[derive(Debug)]
pub struct Side {
    pub name: String,
    pub credential: Credential,
    /// Path prefix that selects a client's secondary account on this side, with one `{…}` variable, such as
    /// `/accounts/{account}`; none where the side has no such thing.
    pub scope: Option<String>,
}

/// How a side carries its credential.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Headers (lower case) a client's token is read from, the first present one wins.
    pub read: Vec<String>,
    /// Header (lower case) a token is sent in.
    pub send: String,
    /// Authentication scheme before the token, such as `Bearer`.
    pub scheme: String,
    /// How its authorization server wants to be asked for tokens.
    pub tokens: TokenRequests,
}

/// All plans that serve one side from the other.
#[derive(Debug)]
pub struct Direction {
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
        self.routes.iter().any(|route| !matches!(route.kind, RouteKind::Refuse(_)))
    }
}

/// A localised text for people; placeholders are written `{name}`.
#[derive(Debug)]
pub struct Reason {
    pub name: String,
    /// By language tag; the default language is always there.
    pub texts: BTreeMap<String, String>,
    pub origin: Origin,
}

/// Index into [`Pack::reasons`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReasonId(pub u16);

/// What happens to refused operations unless the route says otherwise.
#[derive(Clone, Debug)]
pub struct RefusePolicy {
    /// By served side: forward unchanged to that side's upstream while one is configured.
    pub legacy_forward: [bool; 2],
    pub status: u16,
    /// From this date (`YYYY-MM-DD`, UTC) on, `after_status` is answered instead.
    pub after_date: Option<String>,
    pub after_status: u16,
}

/// One value the pack reads from the operator's configuration.
#[derive(Debug)]
pub struct Setting {
    /// Dotted path below `$.config`.
    pub name: String,
    pub kind: SettingKind,
    /// JSON text used when the operator gives nothing; none = the operator must give one.
    pub default: Option<Raw>,
    pub about: String,
    pub origin: Origin,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    Boolean,
    Integer,
    String,
}
