//! Routes: the way in which one operation of the served side is answered.

use super::body::{BodyPlan, Class};
use super::form::Form;
use super::format::{BodyFormat, MediaTypes};
use super::head::{CallHead, Effect, HeaderRule, QueryRefusal, StatusFrom, StatusTo};
use super::loss::{Loss, Note};
use super::parameter::Variable;
use super::refusal::Refusal;
use super::step::{Block, Serve};
use super::{CompareRule, HostId, Origin, Paging, ReadBack, SideId};
use std::sync::Arc;
use std::time::Duration;

/// Index into [`super::Direction::routes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId(pub u16);

/// The plan for one operation of the served side.
#[derive(Debug)]
pub struct Route {
    /// Index of the route in [`super::Direction::routes`].
    pub id: RouteId,
    /// The served operation.
    pub operation: Operation,
    /// The way in which it is answered.
    pub kind: RouteKind,
    /// The guarantee for the client.
    pub verdict: Verdict,
    /// Differences, approximations and deviations, for the report.
    pub notes: Vec<Note>,
    /// Fields of either side that do not survive, computed by the compiler.
    pub losses: Vec<Loss>,
    /// Minimum number of calls to the other side per request.
    pub calls_min: u32,
    /// Maximum number of calls to the other side per request.
    pub calls_max: u32,
    /// Statuses of the other side that are regular results: they cause no retry and do not open the
    /// circuit breaker.
    pub business_errors: Vec<u16>,
    /// Comparison rules for successful responses in a dual run.
    pub compare: Vec<CompareRule>,
    /// Pagination, if the sides differ in it.
    pub paging: Option<Arc<Paging>>,
    /// The operation that reads the effect of this write in a dual run.
    pub read_back: Option<ReadBack>,
    /// Alternative routes while a setting is on. The first one with an enabled setting applies.
    pub instead: Vec<Instead>,
    /// The entry of `routes:` that it was compiled from.
    pub origin: Origin,
}

/// An alternative route of an operation while a boolean setting is on.
#[derive(Debug)]
pub struct Instead {
    /// Index into [`super::Pack::settings`].
    pub setting: u16,
    /// The alternative route. It has the id of the route that it replaces.
    pub route: Route,
}

impl Route {
    /// Returns the index in [`Route::instead`] of the route that applies with these settings;
    /// `None` for the route itself.
    pub fn chosen(&self, is_on: impl Fn(u16) -> bool) -> Option<usize> {
        self.instead.iter().position(|instead| is_on(instead.setting))
    }

    /// Returns the route itself, then its alternatives.
    pub fn all(&self) -> impl Iterator<Item = &Route> {
        std::iter::once(self).chain(self.instead.iter().map(|instead| &instead.route))
    }

    /// Returns whether the route or an alternative reads the arrival of the request.
    pub fn reads_arrival(&self) -> bool {
        self.all().any(|route| matches!(&route.kind, RouteKind::Serve(serve) if serve.reads_arrival))
    }

    /// Returns the blocks of a route of several calls, outer ones first.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let block = match &self.kind {
            RouteKind::Serve(serve) => Some(&serve.block),
            RouteKind::Pair(_) | RouteKind::Refuse(_) => None,
        };
        block.into_iter().flat_map(Block::all)
    }

    /// Returns the heads of all calls that the route may make, in its order.
    pub fn call_heads(&self) -> impl Iterator<Item = &CallHead> {
        let pair = match &self.kind {
            RouteKind::Pair(pair) => Some(&pair.call),
            RouteKind::Serve(_) | RouteKind::Refuse(_) => None,
        };
        pair.into_iter().chain(self.blocks().flat_map(Block::calls).map(|(_, call)| &call.head))
    }

    /// Returns the maximum time that its steps wait for jobs of the service; zero if none waits.
    pub fn longest_wait(&self) -> Duration {
        match &self.kind {
            RouteKind::Serve(serve) => serve.block.longest_wait(),
            RouteKind::Pair(_) | RouteKind::Refuse(_) => Duration::ZERO,
        }
    }

    /// Returns the most expensive class among the route's bodies, or `None` if it makes no call.
    pub fn class(&self) -> Option<Class> {
        match &self.kind {
            // Forms and XML are not streamed.
            RouteKind::Pair(_) if self.has_encoded_answers() => Some(Class::Document),
            // Members about other pages are read and written in the buffered body.
            RouteKind::Pair(_) if self.paging.as_ref().is_some_and(|paging| paging.reads_body()) => {
                Some(Class::Document)
            }
            RouteKind::Pair(pair) => {
                // The class describes the regular bodies; those of errors do not count.
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

    /// Returns whether the responses of a pair are read or written as a form or as XML, which are
    /// buffered completely.
    pub fn has_encoded_answers(&self) -> bool {
        let RouteKind::Pair(pair) = &self.kind else { return false };
        let is_read = |response: &Response| matches!(response.body, ResponseBody::Plan(_));
        pair.responses.iter().any(is_read)
            && (pair.call.answers.is_converted() || self.operation.answers.is_converted())
    }
}

/// An operation of the served side.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The operation as in the contract, such as `GET /things/{id}`.
    pub key: Arc<str>,
    /// The host of its own side that serves it while that side is available.
    pub host: HostId,
    /// The request method.
    pub method: http::Method,
    /// Path template without the front's prefix.
    pub template: Arc<str>,
    /// Path variables in order, with the JSON type that each has in the context.
    pub variables: Vec<Variable>,
    /// Declared query parameters. Others are dropped, and the gateway reports them.
    pub query: Vec<Variable>,
    /// Whether the operation has a request body.
    pub body: BodyExpected,
    /// Whether the contract allows null as the body.
    pub takes_null: bool,
    /// Format of the request body.
    pub format: BodyFormat,
    /// Format of the bodies of successful responses.
    pub answers: BodyFormat,
    /// Effect on the service.
    pub effect: Effect,
}

/// Whether an operation has a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyExpected {
    /// A body is ignored.
    No,
    /// The body may be absent.
    Optional,
    /// A request without a body is rejected.
    Required,
}

/// The ways to answer an operation.
#[derive(Debug)]
pub enum RouteKind {
    /// One call to the other side.
    Pair(Box<Pair>),
    /// Several calls to the other side, or none.
    Serve(Box<Serve>),
    /// No call; the response contains a reason.
    Refuse(Refusal),
}

/// One call and the translation of its response.
#[derive(Debug)]
pub struct Pair {
    /// Parameters that are rejected before the call.
    pub refused: Vec<QueryRefusal>,
    /// Parameters of which only one value is supported: the decoded value of `constant:` in the
    /// mapping.
    pub constants: Vec<(Arc<str>, Arc<str>)>,
    /// The call.
    pub call: CallHead,
    /// Translation of the request body. `None`: no body is sent, and the client's is dropped.
    pub request: Option<BodyPlan>,
    /// The first match applies. The compiler appends responses for errors, so every status matches.
    pub responses: Vec<Response>,
}

/// The translation of a response with certain statuses.
#[derive(Debug)]
pub struct Response {
    /// Statuses of the other side that it matches.
    pub from: StatusFrom,
    /// Status for the client.
    pub to: StatusTo,
    /// Header fields of the client's response.
    pub headers: Vec<HeaderRule>,
    /// Body for the client.
    pub body: ResponseBody,
}

/// The translation of a response body.
#[derive(Debug)]
pub enum ResponseBody {
    /// Drops the body.
    Empty,
    /// Translates the body.
    Plan(BodyPlan),
    /// Forwards the body unchanged, with its own media type: it is not JSON.
    Opaque(Arc<MediaTypes>),
    /// Forwards the body unchanged, with its own media type: neither contract describes it.
    Undescribed,
    /// Translates an error of the other side with this plan if it is JSON of the right form.
    /// Otherwise replaces it by an error in the pack's style with the gateway's own text.
    Error(ErrorPlan),
}

/// The translation of an error of the other side.
#[derive(Debug)]
pub struct ErrorPlan {
    /// The translation of the body.
    pub body: BodyPlan,
    /// The form of errors with this status in the served contract, if it admits a body that tells
    /// clients nothing, such as `{}` or a number. A body of this form passes nevertheless.
    pub declared: Option<Arc<Form>>,
}

impl From<BodyPlan> for ErrorPlan {
    fn from(body: BodyPlan) -> ErrorPlan {
        ErrorPlan { body, declared: None }
    }
}

/// The degree to which an operation of the served side is preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Unchanged, except for the listed losses.
    Exact,
    /// Supported, with a documented difference.
    Different,
    /// Some outcomes are refused.
    Partly,
    /// Not supported.
    Not,
}

/// A procedure that fills archives from one side, page by page.
#[derive(Debug)]
pub struct Harvest {
    /// Name by which operators refer to the harvest.
    pub name: String,
    /// Description for the operator.
    pub about: String,
    /// The side to read from.
    pub from: SideId,
    /// A route of several calls with `page` as its only parameter. Its response is the page; a page
    /// with fewer than `page_size` elements is the last one.
    pub route: Route,
    /// Number of the first page.
    pub first: i64,
    /// Number of elements in a full page.
    pub page_size: u32,
}
