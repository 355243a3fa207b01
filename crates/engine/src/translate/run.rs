//! One request on its route, as a state machine without I/O: it returns the next call, consumes the
//! reply, and finishes with an answer, a refusal or an error. Pairs run here too, with buffered
//! bodies, so that tests, explanations, shadow plans and the slow path share one driver.

mod pair;
mod poll;
mod serve;

use super::archive::Looking;
use super::blocks::block_at;
use super::context::Context;
use super::coverage::Mark;
use super::failure::{ErrorAnswer, ErrorTranslator, failure_status};
use super::fault::{Fault, FaultKind, Stop};
use super::gather::{Fanned, Paged};
use super::head::{self};
use super::paging::{After, Pager, Pages, Readable};
use super::parts::Fields;
use super::request::Request;
use super::settings::Settings;
use super::sources::Traced;
use super::text::{in_error_format, text};
use super::turn::{Answer, Call, Event, FailKind, Failed, Next, Refused, Reply};
use super::value::Scope;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use switchback_json::{Limits, Value};
use switchback_plan::{
    self as plan, BodyFormat, CallHead, Each, End, HeaderRule, Origin, Pack, Paging, ReasonId, Refusal,
    Route, RouteId, RouteKind, SideId, essence,
};

/// The state of one request.
#[derive(Debug)]
pub struct Run {
    pack: Arc<Pack>,
    direction: SideId,
    place: Place,
    settings: Arc<Settings>,
    request: Request,
    limits: Limits,
    state: State,
    marks: Vec<Mark>,
    paging: RunPaging,
    /// The recorded sources, if tracing is enabled.
    trace: Option<Arc<Mutex<Vec<Traced>>>>,
    multipart: RunMultipart,
    /// Whether a list of a backfill continues beyond the pages of this round.
    goes_on: bool,
}

#[derive(Debug)]
struct RunPaging {
    /// The environment for paging.
    pages: Arc<dyn Pages>,
    /// The paging state, if the route has pages.
    pager: Option<Box<Pager>>,
}

#[derive(Debug, Default)]
struct RunMultipart {
    /// The fields of a multipart body whose files are streamed separately.
    fields: Option<Box<Fields>>,
    /// Unpredictable part of generated boundaries.
    salt: u64,
}

/// The current route in the pack.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A route, with an index into [`Route::instead`].
    Route(RouteId, Option<usize>),
    /// An index into [`Pack::harvests`], and the number of rounds that were read before.
    Harvest(usize, u32),
}

#[derive(Debug)]
enum State {
    Fresh,
    /// The only call of a pair is outstanding.
    Paired,
    Serving(Box<Serving>),
    Done,
}

/// The state of a serve route.
#[derive(Debug)]
struct Serving {
    context: Context,
    /// Outcomes chosen so far, which identify the current block.
    outcomes: Vec<u16>,
    /// Index of the current step in that block.
    step: usize,
    /// Number of calls.
    calls: u32,
    wrote: bool,
    /// Pages that the current step has read.
    pages: Option<Paged>,
    /// Elements that the current step makes calls for.
    fanned: Option<Fanned>,
    /// The pending archive lookup of the current step.
    looking: Option<Looking>,
    /// The state of the current step if it polls.
    polling: Option<poll::Polling>,
    /// Whether a polled operation has completed.
    is_over: bool,
}

/// The reason why a step has no result.
enum Failure {
    Replied(Reply),
    None(Failed),
    /// A polled operation did not complete in time. The client may retry after this duration.
    Late(Failed, Duration),
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Failure {
        Failure::None(failed)
    }
}

impl Run {
    /// Creates a run of this route for one request. Processing starts when [`Run::next`] is called
    /// with [`Event::Start`]; an unknown route is an error then. `limits` apply to every parsed
    /// body.
    pub fn new(
        pack: Arc<Pack>,
        direction: SideId,
        route: RouteId,
        request: Request,
        settings: Arc<Settings>,
        limits: Limits,
    ) -> Run {
        let planned = pack.directions[direction].routes.get(usize::from(route.0));
        // Settings are fixed while a pack is active, so the alternative is chosen once.
        let instead = planned.and_then(|route| route.chosen(|setting| settings.is_on(setting)));
        Run::start(pack, direction, Place::Route(route, instead), request, settings, limits)
    }

    fn start(
        pack: Arc<Pack>,
        direction: SideId,
        place: Place,
        request: Request,
        settings: Arc<Settings>,
        limits: Limits,
    ) -> Run {
        Run {
            pack,
            direction,
            place,
            settings,
            request,
            limits,
            state: State::Fresh,
            marks: Vec::new(),
            paging: RunPaging { pages: Arc::new(Readable), pager: None },
            trace: None,
            multipart: RunMultipart::default(),
            goes_on: false,
        }
    }

    /// Sets the environment for paging.
    #[must_use]
    pub fn with_pages(mut self, pages: Arc<dyn Pages>) -> Run {
        self.paging.pages = pages;
        self
    }

    /// Sets an unpredictable number for multipart boundaries.
    #[must_use]
    pub fn with_salt(mut self, salt: u64) -> Run {
        self.multipart.salt = salt;
        self
    }

    /// Sets the fields of a multipart body whose files follow the call's own body.
    #[must_use]
    pub fn with_fields(mut self, fields: Fields) -> Run {
        self.multipart.fields = Some(Box::new(fields));
        self
    }

    /// Creates a run that reads one page of a backfill (index into [`Pack::harvests`]). Its answer
    /// has the list of the page as its body.
    ///
    /// Lists within the page are read up to their bound in each round. `round` is the number of
    /// preceding rounds; [`Run::goes_on`] returns whether another one is needed.
    pub fn of_harvest(
        pack: Arc<Pack>,
        harvest: usize,
        (page, round): (i64, u32),
        settings: Arc<Settings>,
        limits: Limits,
    ) -> Run {
        // A backfill reads `from` like a route that serves the other side.
        let direction = pack.harvests.get(harvest).map_or(SideId::OLD, |harvest| harvest.from.other());
        let request = Request { query: Some(format!("page={page}")), ..Request::default() };
        Run::start(pack, direction, Place::Harvest(harvest, round), request, settings, limits)
    }

    /// Returns whether a list within the page of a backfill may continue beyond this round.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Processes an event and returns the next step. After an answer, a refusal or an error, the
    /// run is over.
    pub fn next(&mut self, event: Event) -> Result<Next, Fault> {
        let pack = Arc::clone(&self.pack);
        let Some(route) = self.route_in(&pack) else {
            return Err(Fault::new(FaultKind::Internal, "there is no such route"));
        };
        // Before the route sees the event, so that steps and pages need not know such services.
        let event = self.read_failure(event);
        match &route.paging {
            None => self.step(route, event),
            Some(paging) => self.run_paged(route, paging, event).map_err(|fault| fault.at(&paging.origin)),
        }
    }

    /// Like [`Run::step`], for a route with pages: sets the page parameters of the call, and
    /// processes its reply before the route does.
    fn run_paged(&mut self, route: &Route, paging: &Arc<Paging>, event: Event) -> Result<Next, Fault> {
        let mut pager = match self.paging.pager.take() {
            Some(pager) => pager,
            None => {
                let head = self.request.head();
                let (pages, key) = (Arc::clone(&self.paging.pages), &route.operation.key);
                Box::new(Pager::new(paging, pages, key, head.path, head.query)?)
            }
        };
        let event = match event {
            // The pager first: it may need further calls before the requested page is complete.
            Event::Reply(reply) if pager.waits() => match pager.reply(reply, &self.limits)? {
                After::Page(reply) => Event::Reply(reply),
                After::Call(call) => {
                    self.paging.pager = Some(pager);
                    return Ok(Next::Call(*call));
                }
            },
            event => event,
        };
        let next = match self.step(route, event)? {
            // Page parameters belong to this call only; other calls of the route are unrelated.
            Next::Call(call) if !pager.has_called() && *call.operation == *pager.operation() => {
                Next::Call(pager.call(call)?)
            }
            // Only a success announces a following page.
            Next::Answer(mut answer) if answer.error.is_none() && (200..300).contains(&answer.status) => {
                pager.tell_head(&mut answer.headers)?;
                if let Some(body) = &answer.body
                    && let Some(told) = pager.tell_body(body, &self.limits)?
                {
                    answer.body = Some(told);
                }
                Next::Answer(answer)
            }
            next => next,
        };
        self.paging.pager = Some(pager);
        Ok(next)
    }

    fn step(&mut self, route: &Route, event: Event) -> Result<Next, Fault> {
        // An error leaves the run in its final state.
        let state = std::mem::replace(&mut self.state, State::Done);
        let next =
            match (&route.kind, state, event) {
                (RouteKind::Refuse(refusal), State::Fresh, Event::Start) => {
                    self.marks.push(Mark::Refused);
                    Ok(self.refused(refusal, false))
                }
                (RouteKind::Pair(pair), State::Fresh, Event::Start) => self.pair_call(route, pair),
                (RouteKind::Pair(pair), State::Paired, Event::Reply(reply)) => {
                    self.pair_answer(route, pair, &reply)
                }
                (RouteKind::Pair(pair), State::Paired, Event::Failed(failed)) => {
                    Err(no_reply(failed, &pair.call).into())
                }
                (RouteKind::Serve(serve), State::Fresh, Event::Start) => self.begin(route, serve),
                (RouteKind::Serve(serve), State::Serving(at), Event::Reply(reply)) => {
                    self.on_reply(serve, *at, reply)
                }
                (RouteKind::Serve(serve), State::Serving(at), Event::Failed(failed)) => {
                    self.on_no_reply(serve, *at, failed)
                }
                (RouteKind::Serve(serve), State::Serving(at), Event::Waited { since }) => {
                    self.ask_again(serve, *at, since)
                }
                (RouteKind::Serve(serve), State::Serving(at), Event::Late) => self.late(serve, *at),
                (RouteKind::Serve(serve), State::Serving(at), Event::Recalled(entries)) => {
                    self.on_recall(serve, *at, entries)
                }
                (RouteKind::Serve(serve), State::Serving(mut at), Event::Kept) => {
                    // A stored entry counts as a write.
                    at.wrote = true;
                    at.step += 1;
                    self.advance(serve, *at)
                }
                _ => Err(Fault::new(FaultKind::Internal, "an event that does not follow from the last step")
                    .into()),
            };
        match next {
            Ok(next) => Ok(next),
            Err(Stop::Fault(fault)) => Err(fault.at(&route.origin)),
            Err(Stop::Refused(reason)) => {
                Ok(self.refused(&refusal_for(&self.pack, self.direction, reason), false))
            }
        }
    }

    /// Replaces the status of a success that the service means as a failure. The gateway does the
    /// same on the wire, before it evaluates credentials and retries; examples and replays need it
    /// here.
    fn read_failure(&self, event: Event) -> Event {
        match event {
            Event::Reply(reply) if (200..300).contains(&reply.status) => {
                let rules = &self.pack.failures[self.direction.other()];
                let status = failure_status(rules, &reply.headers, &reply.body).unwrap_or(reply.status);
                Event::Reply(Reply { status, ..reply })
            }
            event => event,
        }
    }

    /// Enables tracing of the sources of all output. Tracing costs many times as much as the
    /// translation.
    pub fn trace(&mut self) {
        self.trace = Some(Arc::default());
    }

    /// Takes the sources recorded since the last call.
    pub fn take_trace(&self) -> Vec<Traced> {
        let take = |trace: &Arc<Mutex<Vec<Traced>>>| {
            std::mem::take(&mut *trace.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.trace.as_ref().map(take).unwrap_or_default()
    }

    /// Returns the context document while a call of a serve route is outstanding.
    pub fn context(&self) -> Option<Value> {
        match &self.state {
            State::Serving(at) => Some(at.context.document()),
            _ => None,
        }
    }

    fn note(&self, traced: impl FnOnce() -> Traced) {
        if let Some(trace) = &self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).push(traced());
        }
    }

    /// Returns the parts of the route that this run passed through, for coverage.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Returns whether a writing call may follow the outstanding one.
    pub fn may_write(&self) -> bool {
        let State::Serving(at) = &self.state else { return false };
        let Some(RouteKind::Serve(serve)) = self.route_in(&self.pack).map(|route| &route.kind) else {
            return false;
        };
        block_at(serve, &at.outcomes).is_some_and(|block| block.writes_from(at.step + 1))
    }

    fn route_in<'p>(&self, pack: &'p Pack) -> Option<&'p Route> {
        match self.place {
            Place::Harvest(at, _) => Some(&pack.harvests.get(at)?.route),
            Place::Route(id, instead) => {
                let route = pack.directions[self.direction].routes.get(usize::from(id.0))?;
                Some(instead.map_or(route, |at| &route.instead[at].route))
            }
        }
    }

    /// Returns the index of the active alternative route, if any.
    pub fn instead(&self) -> Option<usize> {
        match self.place {
            Place::Route(_, instead) => instead,
            Place::Harvest(..) => None,
        }
    }

    fn answer_of(&self, answer: &plan::Answer, at: &Serving) -> Result<Next, Stop> {
        let (forward, mut headers) = (answer.legacy_forward, self.headers(&answer.headers, at)?);
        let body = match &answer.body {
            Some(expr) => {
                self.note(|| Traced {
                    call: None,
                    step: None,
                    sources: self.scope(&at.context).sources(expr, "$"),
                    origin: self.origin_of_end(&at.outcomes),
                });
                let json = self.scope(&at.context).value(expr)?.map(|value| value.to_vec());
                match (self.route_in(&self.pack), json) {
                    (Some(route), Some(json)) if (200..300).contains(&answer.status) => {
                        Some(self.spelt_answer(route, json, &mut headers)?)
                    }
                    (_, json) => json.map(|json| in_error_format(&self.pack.errors[self.direction], json)),
                }
            }
            None => None,
        };
        let mut next = self.answer(answer.status, headers, body, None);
        if let Next::Answer(answer) = &mut next {
            // After a write, forwarding the request would repeat its effect.
            (answer.is_over, answer.forward) = (at.is_over, forward && !at.wrote);
        }
        Ok(next)
    }

    /// Returns the line of the last chosen outcome, or of the route.
    fn origin_of_end(&self, outcomes: &[u16]) -> Option<Origin> {
        let route = self.route_in(&self.pack)?;
        let RouteKind::Serve(serve) = &route.kind else { return Some(route.origin.clone()) };
        let mut origin = &route.origin;
        let mut block = &serve.block;
        for at in outcomes {
            let End::Decide(decision) = &block.end else { break };
            let outcome = decision.outcomes.get(usize::from(*at))?;
            (origin, block) = (&outcome.origin, &outcome.block);
        }
        Some(origin.clone())
    }

    /// Returns the received header fields that rules can copy. Those of replies are in the context.
    fn raw_headers(&self) -> head::RawHeaders<'_> {
        head::RawHeaders { pack: &self.pack, request: &self.request.headers, reply: None }
    }

    fn headers(&self, rules: &[HeaderRule], at: &Serving) -> Result<HeaderMap, Stop> {
        let scope = self.scope(&at.context);
        head::headers(rules, self.raw_headers(), &|expr| scope.value(expr))
    }

    fn answer(
        &self,
        status: u16,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
        cause: Option<String>,
    ) -> Next {
        if body.is_some() && !headers.contains_key(header::CONTENT_TYPE) {
            // Errors have the media type of the pack's error format, such as
            // `application/problem+json`.
            let style = (status >= 400)
                .then(|| HeaderValue::from_str(&self.pack.errors[self.direction].content_type).ok())
                .flatten();
            let json = HeaderValue::from_static(BodyFormat::JSON);
            headers.insert(header::CONTENT_TYPE, style.unwrap_or(json));
        }
        let body = body.map(Bytes::from);
        Next::Answer(Answer { status, headers, body, cause, ..Answer::default() })
    }

    /// Builds an answer for an error of the other side, with the HTTP status that the served side
    /// uses for errors.
    fn error(
        &self,
        status: u16,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
        cause: Option<String>,
    ) -> Next {
        let style = &self.pack.errors[self.direction];
        let answered = style.status_for(status);
        // Even with the status of a success.
        if style.xml.is_some()
            && let Ok(named) = HeaderValue::from_str(&style.content_type)
        {
            headers.entry(header::CONTENT_TYPE).or_insert(named);
        }
        let next = self.answer(answered, headers, body, cause);
        match next {
            Next::Answer(answer) if answered != status => {
                Next::Answer(Answer { error: Some(status), ..answer })
            }
            next => next,
        }
    }

    fn refused(&self, refusal: &Refusal, wrote: bool) -> Next {
        refused(&self.pack, self.request.language, refusal, wrote)
    }

    fn error_answer(
        &self,
        op: &plan::ValueOp,
        declared: Option<&plan::Form>,
        reply: &Reply,
    ) -> Result<ErrorAnswer, Failed> {
        let translator = ErrorTranslator {
            pack: &self.pack,
            served: self.direction,
            settings: &self.settings,
            language: self.request.language,
            limits: &self.limits,
        };
        translator.answer(op, declared, reply)
    }

    fn scope<'s>(&'s self, context: &'s Context) -> Scope<'s> {
        Scope {
            pack: &self.pack,
            settings: &self.settings,
            language: self.request.language,
            context,
            limits: &self.limits,
        }
    }
}

fn refused(pack: &Pack, language: usize, refusal: &Refusal, wrote: bool) -> Next {
    let text = text(pack, refusal.reason, language, &[]);
    Next::Refuse(Refused { refusal: refusal.clone(), text, wrote })
}

/// The pack's policy for a member that the mapping refuses.
fn refusal_for(pack: &Pack, served: SideId, reason: ReasonId) -> Refusal {
    let policy = &pack.refuse;
    Refusal {
        reason,
        legacy_forward: policy.legacy_forward[served],
        status: policy.status,
        after_date: policy.after_date.clone(),
        after_status: policy.after_status,
    }
}

/// Returns the place as clients know it: the name of a parameter, or its path in the body.
fn parameter_name(place: &plan::Location) -> String {
    let text = place.text.as_ref();
    let known = ["$.request.body.", "$.request.query.", "$.request.headers.", "$.request.path."];
    let name = known.iter().find_map(|root| text.strip_prefix(root));
    name.unwrap_or(if text == "$.request.body" { "body" } else { text }).to_owned()
}

/// Returns the elements that a step makes calls for.
fn elements(context: &Context, each: &Each) -> Vec<Value> {
    match context.value(&each.list).map(std::borrow::Cow::into_owned) {
        Some(Value::Array(list)) => list.into_iter().collect(),
        _ => Vec::new(),
    }
}

fn unsupported_stop(wanted: &str) -> Stop {
    Fault::unsupported_media(wanted).into()
}

/// Returns the value of `Content-Type` for written bodies of a format.
fn media_type(format: &BodyFormat) -> Option<HeaderValue> {
    HeaderValue::from_str(format.media_type()?).ok()
}

fn call(head: &CallHead, step: u32, target: String, mut headers: HeaderMap, body: Option<Bytes>) -> Call {
    if head.answers.is_converted()
        && !headers.contains_key(header::ACCEPT)
        && let Some(named) = head.answers.media_type().map(essence)
        && let Ok(named) = HeaderValue::from_str(named)
    {
        headers.insert(header::ACCEPT, named);
    }
    if head.format.is_converted()
        && body.is_some()
        && let Some(named) = media_type(&head.format)
    {
        headers.insert(header::CONTENT_TYPE, named);
    }
    Call {
        step,
        operation: Arc::clone(&head.operation),
        host: head.host,
        method: head.method.clone(),
        target,
        headers,
        body,
        effect: head.effect,
        repeatable: head.repeatable,
        is_read: true,
        resume_key: None,
    }
}

fn no_reply(Failed { kind, detail }: Failed, head: &CallHead) -> Fault {
    let (kind, words) = match kind {
        FailKind::Unreachable => (FaultKind::UpstreamUnreachable, "no connection"),
        FailKind::Timeout => (FaultKind::UpstreamTimeout, "no reply in time"),
        FailKind::Closed => (FaultKind::UpstreamClosed, "the connection was lost"),
        FailKind::Broken => (FaultKind::UpstreamBroken, "a reply that cannot be used"),
    };
    let detail = if detail.is_empty() { words.to_owned() } else { format!("{words}: {detail}") };
    during(head, Fault::new(kind, detail)).at(&head.origin)
}

/// Adds the call and its mapping line to a log message.
fn call_label(detail: &str, head: &CallHead) -> String {
    format!("{detail}, calling {} ({})", head.operation, head.origin)
}

fn during(head: &CallHead, fault: Fault) -> Fault {
    Fault { operation: Some(Arc::clone(&head.operation)), ..fault }
}
