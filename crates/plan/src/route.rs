//! How one operation of the served side is answered.

use super::body::{BodyPlan, Class};
use super::format::{BodyFormat, MediaTypes};
use super::head::{CallHead, HeaderRule, QueryRefusal, StatusFrom, StatusTo};
use super::parameter::Variable;
use super::step::Serve;
use super::{AfterDate, CompareRule, HostId, Origin, Paging, ReadBack, ReasonId};
use std::sync::Arc;
use std::time::Duration;

/// Index into [`super::Direction::routes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId(pub u16);

/// The plan for one operation of the served side.
#[derive(Debug)]
pub struct Route {
    /// Its index in [`super::Direction::routes`].
    pub id: RouteId,
    /// What the client asked for.
    pub operation: Operation,
    /// How it is answered.
    pub kind: RouteKind,
    /// What the client may expect of the answer.
    pub verdict: Verdict,
    /// Differences, approximations and readings, for the report.
    pub notes: Vec<Note>,
    /// Fields of either side that do not survive, computed by the compiler.
    pub losses: Vec<Loss>,
    /// Least and most calls to the other side per request.
    pub calls_min: u32,
    /// Greatest number of calls to the other side per request.
    pub calls_max: u32,
    /// Statuses of the other side that are answers of the business, not failures: no retry, no breaker.
    pub business_errors: Vec<u16>,
    /// What is declared about comparing successful answers in a dual run.
    pub compare: Vec<CompareRule>,
    /// How its pages are asked for and told, where the sides differ in it.
    pub paging: Option<Arc<Paging>>,
    /// What a dual run may read after this write.
    pub read_back: Option<ReadBack>,
    /// What answers instead while a setting is on; of several the first.
    pub instead: Vec<Instead>,
    /// The entry of `routes:` that it was compiled from.
    pub origin: Origin,
}

/// A route that answers an operation while a boolean setting is on.
#[derive(Debug)]
pub struct Instead {
    /// Index into [`super::Pack::settings`].
    pub setting: u16,
    /// Has the id of the route that it stands in for.
    pub route: Route,
}

impl Route {
    /// The place in [`Route::instead`] of what answers with these settings, which `is_on` knows; none for the route itself.
    pub fn chosen(&self, is_on: impl Fn(u16) -> bool) -> Option<usize> {
        self.instead.iter().position(|instead| is_on(instead.setting))
    }

    /// The route itself, then what may answer instead.
    pub fn all(&self) -> impl Iterator<Item = &Route> {
        std::iter::once(self).chain(self.instead.iter().map(|instead| &instead.route))
    }

    /// How long its steps may wait for jobs of the service; zero where none waits.
    pub fn longest_wait(&self) -> Duration {
        match &self.kind {
            RouteKind::Serve(serve) => serve.block.longest_wait(),
            RouteKind::Pair(_) | RouteKind::Refuse(_) => Duration::ZERO,
        }
    }

    /// The most expensive class among the bodies of the route, or none when it makes no call.
    pub fn class(&self) -> Option<Class> {
        match &self.kind {
            RouteKind::Pair(_) if self.has_forms_in_answers() => Some(Class::Document),
            RouteKind::Pair(_) if self.paging.as_ref().is_some_and(|paging| paging.reads_body()) => {
                Some(Class::Document)
            }
            RouteKind::Pair(pair) => {
                let answers = pair.responses.iter().filter_map(|r| match &r.body {
                    ResponseBody::Plan(plan) => Some(plan.class),
                    _ => None,
                });
                Some(answers.chain(pair.request.iter().map(|r| r.class)).max().unwrap_or(Class::Pass))
            }
            RouteKind::Serve(_) => Some(Class::Document),
            RouteKind::Refuse(_) => None,
        }
    }

    /// Whether a pair reads or writes a form where it answers: those are held whole.
    pub fn has_forms_in_answers(&self) -> bool {
        let is_form = |format: &BodyFormat| matches!(format, BodyFormat::Form(_));
        let RouteKind::Pair(pair) = &self.kind else { return false };
        let is_read = |response: &Response| matches!(response.body, ResponseBody::Plan(_));
        pair.responses.iter().any(is_read)
            && (is_form(&pair.call.answers) || is_form(&self.operation.answers))
    }
}

/// An operation as clients of the served side know it.
#[derive(Clone, Debug)]
pub struct Operation {
    /// As the contract writes it, such as `GET /things/{id}`.
    pub key: Arc<str>,
    /// The host of its own side that answers it, while that side lives.
    pub host: HostId,
    /// The method that clients use.
    pub method: http::Method,
    /// Path template without the front's prefix.
    pub template: Arc<str>,
    /// Path variables in order, with the JSON type each has in the context.
    pub variables: Vec<Variable>,
    /// Query parameters that the contract knows; others are dropped, and the gateway says so.
    pub query: Vec<Variable>,
    /// Whether there is a body to read.
    pub body: BodyExpected,
    /// Whether null is a body that its contract allows.
    pub takes_null: bool,
    /// What its body is written in.
    pub format: BodyFormat,
    /// What the bodies of its successes are written in.
    pub answers: BodyFormat,
    /// What it does to the service.
    pub effect: Effect,
}

/// Whether an operation takes a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyExpected {
    /// A body that comes is not read.
    No,
    /// A request without one is whole.
    Optional,
    /// A request without one is refused.
    Required,
}

/// Whether a call changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads only: may be repeated, shadowed, cancelled.
    None,
    /// Changes something: sent once at most, and let finish.
    Write,
}

/// The three ways to answer an operation.
#[derive(Debug)]
pub enum RouteKind {
    /// One call on the other side.
    Pair(Box<Pair>),
    /// Several calls on the other side, or none.
    Serve(Box<Serve>),
    /// No call: a reason instead.
    Refuse(Refusal),
}

/// One call there, one answer back.
#[derive(Debug)]
pub struct Pair {
    /// Parameters that a client is refused for, before anything is called.
    pub refused: Vec<QueryRefusal>,
    /// Parameters of which only one value is served: the one that the mapping says (`constant:`), decoded.
    pub constants: Vec<(Arc<str>, Arc<str>)>,
    /// The call that is made.
    pub call: CallHead,
    /// None: no body is sent, and one that comes is dropped.
    pub request: Option<BodyPlan>,
    /// First match wins. A status no rule matches is answered by [`Response`]s for errors, which the compiler appends,
    /// so something always matches.
    pub responses: Vec<Response>,
}

/// What becomes of an answer with certain statuses.
#[derive(Debug)]
pub struct Response {
    /// The statuses of the other side that it is for.
    pub from: StatusFrom,
    /// The status that the client gets.
    pub to: StatusTo,
    /// Written into the head of the client's answer.
    pub headers: Vec<HeaderRule>,
    /// What the client gets of the body.
    pub body: ResponseBody,
}

/// What becomes of the body of an answer.
#[derive(Debug)]
pub enum ResponseBody {
    /// Dropped: the client gets none.
    Empty,
    /// Read and converted.
    Plan(BodyPlan),
    /// Passed as it comes, in its own media type: it is no JSON.
    Opaque(Arc<MediaTypes>),
    /// An error of the other side: passed through this plan when it is JSON of the right form, else wrapped in the pack's
    /// error style with the gateway's own text.
    Error(BodyPlan),
}

/// A refused operation or outcome.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// What the client is told.
    pub reason: ReasonId,
    /// Forward unchanged to the upstream of the served side while one is configured.
    pub legacy_forward: bool,
    /// The status until `after_date`.
    pub status: u16,
    /// None: `status` for good.
    pub after_date: Option<AfterDate>,
    /// The status from `after_date` on.
    pub after_status: u16,
}

/// How well an operation of the served side is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Same as before, up to the listed losses.
    Exact,
    /// Done, with a stated difference.
    Different,
    /// Some outcomes are refused.
    Partly,
    /// Not possible.
    Not,
}

/// A sentence for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Which list of the report it belongs to.
    pub kind: NoteKind,
    /// What answers that are made so are marked with.
    pub name: Option<Arc<str>>,
    /// As a sentence, such as the mapping writes it.
    pub text: String,
    /// The line of the mapping that says so.
    pub origin: Origin,
}

impl Note {
    /// The same of a value that stands further down: a note on a type that is not kept begins with its place, in backticks.
    #[must_use]
    pub fn below(self, step: &str) -> Note {
        let NoteKind::Despite = self.kind else { return self };
        let Some(place) = self.text.strip_prefix('`') else { return self };
        let dot = if place.starts_with('[') { "" } else { "." };
        Note { text: format!("`{step}{dot}{place}"), ..self }
    }
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A difference that a client may see.
    Differs,
    /// Served by something near, not the same.
    Approximate,
    /// A type of the contract is not kept.
    Despite,
}

/// A field that does not survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Name of the side the field belongs to.
    pub side: String,
    /// Place in the body, such as `$[*].size`.
    pub place: String,
    /// The JSON text that always stands at the place, since the other side has nothing for it; none = its value is lost.
    pub instead: Option<String>,
    /// Whether that is seen only where nothing was found.
    pub unless_found: bool,
    /// Whether only some of its values do not survive, or how they are spelt.
    pub partly: bool,
    /// The values that a narrower contract does not take; none where it is the mapping that loses them.
    pub narrow: Option<Narrow>,
    /// The line of the mapping that leaves it out.
    pub origin: Origin,
}

/// Values that the contract of the side which gets them does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Such as `values above 100`.
    pub values: String,
    /// The only message in which it matters; none where it does in both.
    pub only_in: Option<Message>,
    /// Whether the side that gets the message has the place, and the other side has nothing for it.
    pub is_of_target: bool,
}

/// What crosses from one side to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// From the served side to the called one.
    Request,
    /// Back.
    Answer,
}
