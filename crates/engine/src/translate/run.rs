//! One request through its route, as a state machine without IO: it says which call to make, is told the reply, and ends
//! in an answer, a refusal or a fault. Pairs run here too, with their bodies held whole: tests, explanations, shadow plans
//! and the slow path have one driver.

use super::archive::{self, Looking};
use super::blocks::{block_at, call_at, writes};
use super::context::Context;
use super::coverage::Mark;
use super::document::{Env, document};
use super::failure::{ErrorAnswer, error_answer, failure_status, kind_of_status};
use super::fault::{Fault, FaultKind, Sender, Stop};
use super::gather::{After, Fanned, Paged};
use super::head::{self, PairHeads, with_parameter};
use super::reply::{begins_as_json, foreign_success, redirect};
use super::request::{Request, context_of, header_values};
use super::settings::Settings;
use super::sources::{self, Traced};
use super::text::text;
use super::turn::{Answer, Call, Entry, Event, FailKind, Failed, Next, Refused, Reply};
use super::urlencoded;
use super::value::{Scope, constant};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use switchback_json::{Limits, Object, Value};
use switchback_plan::{
    self as plan, Beyond, BodyExpected, BodyFormat, CallHead, CheckElse, Each, Effect, End, HeaderRule,
    OnFail, Origin, PARAMETER, Pack, Pair, ReasonId, Refusal, ResponseBody, Route, RouteId, RouteKind, Serve,
    SideId, Step, StepAction, StepCall,
};

/// One request on its way through its route.
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
    /// What was made of what, where somebody asks.
    trace: Option<Arc<Mutex<Vec<Traced>>>>,
}

/// Where the route at work stands in the pack.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// With the place in [`Route::instead`].
    Route(RouteId, Option<usize>),
    /// Index into [`Pack::harvests`].
    Harvest(usize),
}

#[derive(Debug)]
enum State {
    Fresh,
    /// The one call of a pair is out.
    Paired,
    Serving(Box<Serving>),
    Done,
}

/// Where a route of several calls stands.
#[derive(Debug)]
struct Serving {
    context: Context,
    /// Outcomes chosen so far: the way to the block at work.
    outcomes: Vec<u16>,
    /// Index of the step at work in that block.
    step: usize,
    /// Calls made.
    calls: u32,
    wrote: bool,
    /// Pages read by the step at work.
    pages: Option<Paged>,
    /// Elements that the step at work makes a call for.
    fanned: Option<Fanned>,
    /// What the step at work looks up in an archive.
    looking: Option<Looking>,
}

/// Why a step has no result.
enum Failure {
    Replied(Reply),
    None(Failed),
}

impl Failure {
    fn broken(detail: String) -> Failure {
        Failure::None(Failed { kind: FailKind::Broken, detail })
    }
}

impl Run {
    pub fn new(
        pack: Arc<Pack>,
        direction: SideId,
        route: RouteId,
        request: Request,
        settings: Arc<Settings>,
        limits: Limits,
    ) -> Run {
        let planned = pack.directions[direction].routes.get(usize::from(route.0));
        let instead = planned.and_then(|route| route.chosen(|setting| settings.is_on(setting)));
        let (state, place) = (State::Fresh, Place::Route(route, instead));
        Run { pack, direction, place, settings, request, limits, state, marks: Vec::new(), trace: None }
    }

    /// Reads one page of a harvest (index into [`Pack::harvests`]). It ends in an answer whose body is the page's list.
    pub fn of_harvest(
        pack: Arc<Pack>,
        harvest: usize,
        page: i64,
        settings: Arc<Settings>,
        limits: Limits,
    ) -> Run {
        let direction = pack.harvests.get(harvest).map_or(SideId::OLD, |harvest| harvest.from.other());
        let request = Request { query: Some(format!("page={page}")), ..Request::default() };
        let (state, place) = (State::Fresh, Place::Harvest(harvest));
        Run { pack, direction, place, settings, request, limits, state, marks: Vec::new(), trace: None }
    }

    /// Takes what happened and says what to do next. After an answer, a refusal or a fault the run is over.
    pub fn next(&mut self, event: Event) -> Result<Next, Fault> {
        let pack = Arc::clone(&self.pack);
        let Some(route) = self.route_in(&pack) else {
            return Err(Fault::new(FaultKind::Internal, "there is no such route"));
        };
        let event = self.read_failure(event);
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
                    Err(no_reply(failed.kind, &failed.detail, &pair.call).into())
                }
                (RouteKind::Serve(serve), State::Fresh, Event::Start) => self.begin(route, serve),
                (RouteKind::Serve(serve), State::Serving(at), Event::Reply(reply)) => {
                    self.replied(serve, *at, reply)
                }
                (RouteKind::Serve(serve), State::Serving(at), Event::Failed(failed)) => {
                    self.failed(serve, *at, Failure::None(failed))
                }
                (RouteKind::Serve(serve), State::Serving(at), Event::Recalled(entries)) => {
                    self.recalled(serve, *at, entries)
                }
                (RouteKind::Serve(serve), State::Serving(mut at), Event::Kept) => {
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
            Err(Stop::Refused(reason)) => Ok(self.refused(&self.refusal_for(reason), false)),
        }
    }

    /// A success that its service means as a failure is told as one. The gateway has done the same on the wire, before
    /// credentials and retries were judged by it; examples and replays have not.
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

    /// From here on notes where everything that is made comes from. Costs many times what making it does.
    pub fn trace(&mut self) {
        self.trace = Some(Arc::default());
    }

    /// What was noted since the last time.
    pub fn traced(&self) -> Vec<Traced> {
        let take = |trace: &Arc<Mutex<Vec<Traced>>>| {
            std::mem::take(&mut *trace.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.trace.as_ref().map(take).unwrap_or_default()
    }

    /// The document that the mapping's places look into, while a call of a route of several is out.
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

    /// Which parts of its route this run has gone through, for coverage.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Whether a call with an effect may follow the one that is out.
    pub fn may_write(&self) -> bool {
        let State::Serving(at) = &self.state else { return false };
        let Some(RouteKind::Serve(serve)) = self.route_in(&self.pack).map(|route| &route.kind) else {
            return false;
        };
        block_at(serve, &at.outcomes).is_some_and(|block| writes(block, at.step + 1))
    }

    fn route_in<'p>(&self, pack: &'p Pack) -> Option<&'p Route> {
        match self.place {
            Place::Harvest(at) => Some(&pack.harvests.get(at)?.route),
            Place::Route(id, instead) => {
                let route = pack.directions[self.direction].routes.get(usize::from(id.0))?;
                Some(instead.map_or(route, |at| &route.instead[at].route))
            }
        }
    }

    /// Which of the routes that answer instead is at work.
    pub fn instead(&self) -> Option<usize> {
        match self.place {
            Place::Route(_, instead) => instead,
            Place::Harvest(_) => None,
        }
    }

    // --- pairs ---------------------------------------------------------------------------------------------------

    fn pair_call(&mut self, route: &Route, pair: &Pair) -> Result<Next, Stop> {
        if let Some(at) = head::refused_parameter(&pair.refused, self.request.head().query) {
            self.marks.push(Mark::Parameter(at));
            return Err(Stop::Refused(pair.refused[at].reason));
        }
        head::wrong_constant(&pair.constants, self.request.head().query)?;
        let heads = self.pair_heads(route);
        let target = heads.target(&pair.call)?;
        let mut headers = heads.call_headers(&pair.call)?;
        head::opaque_headers(pair, self.request.head().headers, &mut headers);
        let body = self.pair_body(route, pair)?;
        self.note(|| {
            let sources = pair.request.as_ref().filter(|_| body.is_some()).map(|plan| {
                sources::of_body(
                    &plan.op,
                    &self.request.body,
                    &Env::of(&self.settings),
                    "$.request.body",
                    "$",
                )
            });
            let origin = Some(pair.call.origin.clone());
            Traced { call: Some(0), step: None, sources: sources.unwrap_or_default(), origin }
        });
        self.state = State::Paired;
        Ok(Next::Call(call(&pair.call, 0, target, headers, body)))
    }

    fn pair_body(&self, route: &Route, pair: &Pair) -> Result<Option<Bytes>, Stop> {
        let Some(plan) = &pair.request else { return Ok(None) };
        if pair.call.format.is_opaque() {
            let is_missing = route.operation.body != BodyExpected::Required && self.request.body.is_empty();
            return Ok((!is_missing).then(|| self.request.body.clone()));
        }
        let body: Cow<'_, [u8]> = match route.operation.body {
            // The other side wants a body that is made of constants alone.
            BodyExpected::No => Cow::Borrowed(b"{}"),
            BodyExpected::Optional if self.request.body.is_empty() => return Ok(None),
            _ => self.json_of_request(route)?,
        };
        let mut out = Vec::with_capacity(body.len());
        document(&plan.op, &body, &Env::of(&self.settings), &self.limits, &mut out)
            .map_err(|error| Stop::of_body(Sender::ClientBody, &error))?;
        self.written(&pair.call.format, out).map(Some)
    }

    /// The client's body as JSON, whatever it is written in.
    fn json_of_request(&self, route: &Route) -> Result<Cow<'_, [u8]>, Stop> {
        let body = &self.request.body;
        let named = self.request.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let format = &route.operation.format;
        let is_foreign = named.is_some_and(|named| named.contains('/') && !format.takes(named));
        match format {
            BodyFormat::Form(form) => {
                if is_foreign && !body.is_empty() {
                    return Err(unsupported(BodyFormat::FORM));
                }
                let mut out = Vec::with_capacity(body.len() * 2);
                urlencoded::decode(form, body, &self.limits, &mut out)
                    .map_err(|detail| Fault::new(FaultKind::BadBody, detail))?;
                Ok(out.into())
            }
            // Clients name other types and send JSON all the same, because their tools do so unasked.
            _ if is_foreign && !begins_as_json(body) => Err(unsupported(BodyFormat::JSON)),
            _ => Ok(Cow::Borrowed(body)),
        }
    }

    /// JSON in what a call sends.
    fn written(&self, format: &BodyFormat, json: Vec<u8>) -> Result<Bytes, Stop> {
        match format {
            BodyFormat::Form(form) => {
                let text = urlencoded::encode(form, &json, &self.limits)
                    .map_err(|error| Fault::of_body(Sender::ClientBody, &error))?;
                Ok(text.into_bytes().into())
            }
            _ => Ok(json.into()),
        }
    }

    fn pair_answer(&mut self, route: &Route, pair: &Pair, reply: &Reply) -> Result<Next, Stop> {
        let response = head::response(pair, reply.status)
            .ok_or_else(|| no_reply(FailKind::Broken, "a status that no rule is for", &pair.call))?;
        let status = head::status(response.to, reply.status);
        let headers = self.pair_heads(route).answer_headers(response, reply.status, &reply.headers)?;
        let broken = |detail: &str| no_reply(FailKind::Broken, detail, &pair.call);
        let mut cause = None;
        let body = match &response.body {
            ResponseBody::Empty => match foreign_success(&reply.headers, &reply.body) {
                Some(detail) => return Err(broken(&detail).into()),
                None => None,
            },
            ResponseBody::Plan(plan) => {
                let mut out = Vec::new();
                document(&plan.op, &reply.body, &Env::of(&self.settings), &self.limits, &mut out)
                    .map_err(|error| during(&pair.call, Fault::of_body(Sender::Upstream, &error)))?;
                self.note(|| {
                    let env = Env::of(&self.settings);
                    let sources = sources::of_body(&plan.op, &reply.body, &env, "$.reply.body", "$");
                    Traced { call: None, step: None, sources, origin: Some(route.origin.clone()) }
                });
                Some(out)
            }
            ResponseBody::Opaque => Some(reply.body.to_vec()),
            ResponseBody::Error(_) if reply.status < 400 => {
                return Err(broken(&redirect(reply.status, &reply.headers)).into());
            }
            ResponseBody::Error(plan) => {
                let answer = self.error_answer(&plan.op, reply).map_err(|detail| broken(&detail))?;
                cause = answer.foreign;
                Some(answer.body)
            }
        };
        if matches!(response.body, ResponseBody::Error(_)) {
            return Ok(self.error(status, headers, body, cause));
        }
        self.marks.push(Mark::Answered);
        Ok(self.answer(status, headers, body, cause))
    }

    fn pair_heads<'s>(&'s self, route: &'s Route) -> PairHeads<'s> {
        PairHeads {
            pack: &self.pack,
            route,
            settings: &self.settings,
            language: self.request.language,
            request: self.request.head(),
        }
    }

    // --- routes of several calls ---------------------------------------------------------------------------------

    fn begin(&mut self, route: &Route, serve: &Serve) -> Result<Next, Stop> {
        let mut context = context_of(&self.pack, &route.operation, &self.settings, self.request.head())?;
        let body = self.request_body(route, serve)?;
        if let (Some(body), Some(request)) = (body, context.get_mut("request").and_then(Value::as_object_mut))
        {
            request.insert("body", body);
        }
        for (at, check) in serve.checks.iter().enumerate() {
            let applies = check.only_if.as_ref().is_none_or(|place| context.is_true(place))
                && !check.unless.as_ref().is_some_and(|place| context.is_true(place));
            if applies && !context.holds(&check.predicate) {
                self.marks.push(Mark::Check(at));
                return Ok(match &check.otherwise {
                    CheckElse::Refuse(refusal) => self.refused(refusal, false),
                    CheckElse::Answer { status, reason } => {
                        let place = context.fails_at(&check.predicate).map(parameter_name);
                        let named = place.map(|name| (PARAMETER, name));
                        let named: Vec<_> = named.into_iter().collect();
                        let text = text(&self.pack, *reason, self.request.language, &named);
                        let style = &self.pack.errors[self.direction];
                        let body = style.body(kind_of_status(*status), *status, &text);
                        self.answer(*status, HeaderMap::new(), Some(body), None)
                    }
                });
            }
        }
        let (outcomes, pages, fanned, looking) = (Vec::new(), None, None, None);
        let serving = Serving { context, outcomes, step: 0, calls: 0, wrote: false, pages, fanned, looking };
        self.advance(serve, serving)
    }

    /// The parsed body with its defaults filled in; none when the operation takes none or none came.
    fn request_body(&self, route: &Route, serve: &Serve) -> Result<Option<Value>, Stop> {
        let mut body = match route.operation.body {
            BodyExpected::No => return Ok(None),
            BodyExpected::Optional if self.request.body.is_empty() => Value::Object(Object::new()),
            _ => Value::parse(&self.json_of_request(route)?, &self.limits)
                .map_err(|error| Fault::of_body(Sender::ClientBody, &error.into()))?,
        };
        if let Some(members) = body.as_object_mut() {
            for (key, raw) in
                serve.fill.iter().filter(|(key, _)| !members.contains_key(&key.text)).collect::<Vec<_>>()
            {
                members.insert(&*key.text, constant(raw));
            }
        }
        Ok(Some(body))
    }

    /// Goes on until a call has to be made or the route ends.
    fn advance(&mut self, serve: &Serve, mut at: Serving) -> Result<Next, Stop> {
        loop {
            let Some(block) = block_at(serve, &at.outcomes) else {
                return Err(Fault::new(FaultKind::Internal, "an outcome that the plan does not have").into());
            };
            if let Some(step) = block.steps.get(at.step) {
                match &step.action {
                    StepAction::Select(selection) => {
                        let selected = at.context.select(selection);
                        if let (Some(name), Some(value)) = (&step.name, selected) {
                            at.context.set(&name.text, value);
                        }
                        at.step += 1;
                        continue;
                    }
                    StepAction::Make(expr) => {
                        let made = self.scope(&at.context).value(expr);
                        let made = made.map_err(|stop| stop.at(&step.origin))?;
                        if let (Some(name), Some(value)) = (&step.name, made) {
                            at.context.set(&name.text, value);
                        }
                        at.step += 1;
                        continue;
                    }
                    StepAction::Call(call) => {
                        if !self.is_wanted(step, call, &mut at) {
                            at.step += 1;
                            continue;
                        }
                        return self.call(serve, step, call, at);
                    }
                    StepAction::Recall(recall) => {
                        let mut context = std::mem::take(&mut at.context);
                        let wanted = archive::lookup(recall, &mut context, &|context, expr| {
                            self.scope(context).value(expr)
                        });
                        at.context = context;
                        let (looking, lookup) = wanted.map_err(|stop| stop.at(&step.origin))?;
                        if let Some(lookup) = lookup {
                            at.looking = Some(looking);
                            self.state = State::Serving(Box::new(at));
                            return Ok(Next::Recall(lookup));
                        }
                        archive::found(recall, step, looking, Vec::new(), &self.limits, &mut at.context)?;
                        at.step += 1;
                        continue;
                    }
                    StepAction::Keep(keep) => {
                        let mut context = std::mem::take(&mut at.context);
                        let entries = archive::entries(keep, &mut context, &|context, expr| {
                            self.scope(context).value(expr)
                        });
                        at.context = context;
                        if let Some(entries) = entries.map_err(|stop| stop.at(&step.origin))? {
                            self.state = State::Serving(Box::new(at));
                            return Ok(Next::Keep(entries));
                        }
                        at.step += 1;
                        continue;
                    }
                }
            }
            match &block.end {
                End::Answer(answer) => {
                    self.marks.push(Mark::End(at.outcomes.clone()));
                    return self.answer_of(answer, &at);
                }
                End::Refuse(refusal) => {
                    self.marks.push(Mark::End(at.outcomes.clone()));
                    return Ok(self.refused(refusal, at.wrote));
                }
                End::Decide(decision) => {
                    let row = at.context.decide(decision);
                    let (index, row) =
                        row.ok_or_else(|| Fault::new(FaultKind::Internal, "no row of a decision matches"))?;
                    self.marks.push(Mark::Row(at.outcomes.clone(), index));
                    at.outcomes.push(row.outcome);
                    at.step = 0;
                }
            }
        }
    }

    /// Whether the step at work has a call to make. Of a step for each element, all elements that want none get their
    /// results here.
    fn is_wanted(&mut self, step: &Step, call: &StepCall, at: &mut Serving) -> bool {
        let holds = |at: &Serving| call.when.as_ref().is_none_or(|when| at.context.holds(when));
        let Some(each) = &call.each else {
            let wanted = holds(at);
            if !wanted {
                self.marks.push(Mark::Skipped(at.outcomes.clone(), at.step));
            }
            return wanted;
        };
        let mut fanned = at.fanned.take().unwrap_or_else(|| Fanned::new(elements(&at.context, each)));
        while let Some(element) = fanned.element().cloned() {
            at.context.set(&each.name.text, element);
            if fanned.is_within(each) && holds(at) {
                at.fanned = Some(fanned);
                return true;
            }
            self.marks.push(Mark::Skipped(at.outcomes.clone(), at.step));
            fanned.put(each, Object::new());
        }
        at.context.remove(&each.name.text);
        if let Some(name) = &step.name {
            at.context.set(&name.text, fanned.finish());
        }
        false
    }

    /// Makes the call of the step at work, or its next page.
    fn call(&mut self, serve: &Serve, step: &Step, wanted: &StepCall, mut at: Serving) -> Result<Next, Stop> {
        let head = &wanted.head;
        match self.build(wanted, step.name.is_some(), &at) {
            Ok(mut next) => {
                self.note(|| Traced {
                    call: Some(at.calls),
                    step: step.name.as_ref().map(|name| name.text.to_string()),
                    sources: wanted
                        .body
                        .as_ref()
                        .map(|expr| self.scope(&at.context).sources(expr, "$"))
                        .unwrap_or_default(),
                    origin: Some(step.origin.clone()),
                });
                if let Some(pages) = &wanted.pages {
                    let read = at.pages.get_or_insert_default().count;
                    next.target =
                        with_parameter(&next.target, &pages.parameter, pages.first + i64::from(read));
                }
                if let (Some(each), Some(fanned)) = (&wanted.each, &mut at.fanned) {
                    // A reading of one address gives the same; a write is made for each element, however equal they are.
                    if head.effect == Effect::None && fanned.repeat(each, &next.target) {
                        return self.advance(serve, at);
                    }
                    fanned.calling(&next.target);
                }
                at.calls += 1;
                self.state = State::Serving(Box::new(at));
                Ok(Next::Call(next))
            }
            // What an earlier reply lacks makes this call impossible: the step has failed, and says what then.
            Err(Stop::Fault(fault)) if fault.kind == FaultKind::UpstreamBroken => {
                self.failed(serve, at, Failure::broken(fault.detail))
            }
            Err(Stop::Fault(fault)) => Err(during(head, fault).at(&step.origin).into()),
            Err(stop) => Err(stop),
        }
    }

    fn build(&self, wanted: &StepCall, is_read: bool, at: &Serving) -> Result<Call, Stop> {
        let StepCall { head, body, resume, .. } = wanted;
        let scope = self.scope(&at.context);
        let values = |expr: &plan::Expr| scope.value(expr);
        let target = head::target(head, self.request.head(), &values)?;
        let headers = head::headers(&head.headers, &values)?;
        let body = match body {
            Some(expr) => {
                let json = scope.value(expr)?.map(|value| value.to_vec());
                json.map(|json| self.written(&head.format, json)).transpose()?
            }
            None => None,
        };
        let mut next = Call { is_read, ..call(head, at.calls, target, headers, body) };
        if let Some(exprs) = resume {
            let served = self.route_in(&self.pack).map_or("", |route| &route.operation.key);
            // A repeated request may come to the step by another number of calls.
            let place = format!("{:?} {}", at.outcomes, at.step);
            let mut key = vec![Value::string(served), Value::string(&head.operation), Value::string(&place)];
            for expr in exprs {
                key.push(scope.value(expr)?.unwrap_or(Value::Null));
            }
            // Each element has a key of its own, also where two are equal.
            if let Some((place, element)) = at.fanned.as_ref().and_then(Fanned::at) {
                key.push(Value::from(i64::try_from(place).unwrap_or(i64::MAX)));
                key.push(element.clone());
            }
            next.resume_key = Some(Value::from(key).to_vec());
        }
        Ok(next)
    }

    fn recalled(
        &mut self,
        serve: &Serve,
        mut at: Serving,
        entries: Vec<Option<Entry>>,
    ) -> Result<Next, Stop> {
        let step = block_at(serve, &at.outcomes).and_then(|block| block.steps.get(at.step));
        let (Some((step, StepAction::Recall(recall))), Some(looking)) =
            (step.map(|step| (step, &step.action)), at.looking.take())
        else {
            return Err(Fault::new(FaultKind::Internal, "entries for a step that looked nothing up").into());
        };
        archive::found(recall, step, looking, entries, &self.limits, &mut at.context)?;
        at.step += 1;
        self.advance(serve, at)
    }

    fn replied(&mut self, serve: &Serve, mut at: Serving, reply: Reply) -> Result<Next, Stop> {
        let Some((step, call)) = call_at(serve, &at.outcomes, at.step) else {
            return Err(Fault::new(FaultKind::Internal, "a reply to a step that made no call").into());
        };
        if !(200..300).contains(&reply.status) {
            return self.failed(serve, at, Failure::Replied(reply));
        }
        if let Some(detail) = foreign_success(&reply.headers, &reply.body) {
            return self.failed(serve, at, Failure::broken(detail));
        }
        at.wrote |= call.head.effect == Effect::Write;
        let body = match self.reply_body(step.name.is_some(), &reply) {
            Ok(body) => body,
            Err(detail) => return self.failed(serve, at, Failure::broken(detail)),
        };
        let Some(pages) = &call.pages else {
            self.set_result(&mut at, step, call, Some(&reply), body);
            return self.go_on(serve, call, at);
        };
        let mut paged = at.pages.take().unwrap_or_default();
        let after = match paged.add(body, pages) {
            Ok(after) => after,
            Err(detail) => return self.failed(serve, at, Failure::broken(detail)),
        };
        if call.each.is_none() {
            self.set_result(&mut at, step, call, Some(&reply), Some(paged.so_far()));
        }
        let selects = |place: &plan::Location| at.context.matches(place).iter().any(|value| !value.is_null());
        let found = pages.until.as_ref().is_some_and(selects);
        let is_read = match after {
            After::More => false,
            After::Bound => matches!(pages.beyond, Beyond::Cut),
            After::Ended => true,
        };
        if call.each.is_some() && is_read {
            // An element gets its one result when its list is read.
            self.set_result(&mut at, step, call, Some(&reply), Some(paged.so_far()));
        }
        match after {
            After::More if !found => {
                at.pages = Some(paged);
                self.call(serve, step, call, at)
            }
            After::Bound if !found => self.beyond(serve, &pages.beyond, &reply, at),
            _ => self.go_on(serve, call, at),
        }
    }

    /// The bound on pages is reached, and the list may go on.
    fn beyond(
        &mut self,
        serve: &Serve,
        beyond: &Beyond,
        reply: &Reply,
        mut at: Serving,
    ) -> Result<Next, Stop> {
        let Some((step, call)) = call_at(serve, &at.outcomes, at.step) else {
            return Err(Fault::new(FaultKind::Internal, "a reply to a step that made no call").into());
        };
        if !matches!(beyond, Beyond::Cut) {
            self.marks.push(Mark::Beyond(at.outcomes.clone(), at.step));
        }
        match beyond {
            Beyond::Cut => {}
            Beyond::Absent => self.set_result(&mut at, step, call, Some(reply), None),
            Beyond::Refuse(refusal) => return Ok(self.refused(refusal, at.wrote)),
        }
        self.go_on(serve, call, at)
    }

    /// After the reply that a call was made for: on to the next element, or the next step.
    fn go_on(&mut self, serve: &Serve, call: &StepCall, mut at: Serving) -> Result<Next, Stop> {
        if call.each.is_none() {
            at.step += 1;
        }
        self.advance(serve, at)
    }

    /// The parsed body of a reply that somebody reads; the error is for the log.
    fn reply_body(&self, read: bool, reply: &Reply) -> Result<Option<Value>, String> {
        if !read || reply.body.is_empty() {
            return Ok(None);
        }
        Value::parse(&reply.body, &self.limits).map(Some).map_err(|error| error.to_string())
    }

    /// Sets the result of the step at work, or of its element.
    fn set_result(
        &self,
        at: &mut Serving,
        step: &Step,
        call: &StepCall,
        reply: Option<&Reply>,
        body: Option<Value>,
    ) {
        let Some(name) = &step.name else { return };
        let mut result = Object::new();
        if let Some(reply) = reply {
            result.insert("status", i64::from(reply.status));
            result.insert("headers", header_values(&self.pack, &reply.headers));
        }
        if let Some(body) = body {
            result.insert("body", body);
        }
        match (&call.each, &mut at.fanned) {
            (Some(each), Some(fanned)) => fanned.put(each, result),
            _ => at.context.set(&name.text, Value::Object(result)),
        }
    }

    fn failed(&mut self, serve: &Serve, mut at: Serving, failure: Failure) -> Result<Next, Stop> {
        let Some((step, call)) = call_at(serve, &at.outcomes, at.step) else {
            return Err(Fault::new(FaultKind::Internal, "a failure of a step that made no call").into());
        };
        let StepCall { head, on_fail, .. } = call;
        // A call that got no reply may have had its effect all the same.
        at.wrote |= head.effect == Effect::Write && matches!(failure, Failure::None(..));
        at.pages = None;
        let reply = match &failure {
            Failure::Replied(reply) => Some(reply),
            Failure::None(..) => None,
        };
        if matches!(on_fail, OnFail::Absent(_)) {
            if !on_fail.goes_on_without(reply.map(|reply| reply.status)) {
                return self.pass(head, step, failure, HeaderMap::new());
            }
            self.marks.push(Mark::OnFail(at.outcomes.clone(), at.step));
            self.set_result(&mut at, step, call, reply, None);
            return self.go_on(serve, call, at);
        }
        if let Some(reply) = reply.filter(|_| call.each.is_none()) {
            let body = self.reply_body(true, reply).unwrap_or(None);
            self.set_result(&mut at, step, call, Some(reply), body);
        }
        if !matches!(on_fail, OnFail::Pass) {
            self.marks.push(Mark::OnFail(at.outcomes.clone(), at.step));
        }
        match on_fail {
            OnFail::Pass | OnFail::Absent(_) => self.pass(head, step, failure, HeaderMap::new()),
            OnFail::PassWith(rules) => {
                let headers = self.headers(rules, &at)?;
                self.pass(head, step, failure, headers)
            }
            OnFail::Answer(answer) => self.answer_of(answer, &at),
            OnFail::Refuse(refusal) => Ok(self.refused(refusal, at.wrote)),
            OnFail::Use(expr) => {
                let body = self.scope(&at.context).value(expr)?;
                self.set_result(&mut at, step, call, reply, body);
                self.go_on(serve, call, at)
            }
        }
    }

    /// Answers with the failed call's own status and error.
    fn pass(&self, head: &CallHead, step: &Step, failure: Failure, headers: HeaderMap) -> Result<Next, Stop> {
        let fault = match failure {
            Failure::Replied(reply) if reply.status >= 400 => {
                let direction = &self.pack.directions[self.direction];
                match self.error_answer(&direction.error.op, &reply) {
                    Ok(ErrorAnswer { body, foreign }) => {
                        let cause = foreign.map(|foreign| called(&foreign, head));
                        return Ok(self.error(reply.status, headers, Some(body), cause));
                    }
                    Err(detail) => no_reply(FailKind::Broken, &detail, head),
                }
            }
            Failure::Replied(reply) => {
                no_reply(FailKind::Broken, &redirect(reply.status, &reply.headers), head)
            }
            Failure::None(failed) => no_reply(failed.kind, &failed.detail, head),
        };
        let headers = (!headers.is_empty()).then(|| Box::new(headers));
        Err(Fault { headers, ..fault.at(&step.origin) }.into())
    }

    fn answer_of(&self, answer: &plan::Answer, at: &Serving) -> Result<Next, Stop> {
        let headers = self.headers(&answer.headers, at)?;
        let body = match &answer.body {
            Some(expr) => {
                self.note(|| Traced {
                    call: None,
                    step: None,
                    sources: self.scope(&at.context).sources(expr, "$"),
                    origin: self.origin_of_end(&at.outcomes),
                });
                self.scope(&at.context).value(expr)?.map(|value| value.to_vec())
            }
            None => None,
        };
        Ok(self.answer(answer.status, headers, body, None))
    }

    /// The line of the outcome that a route has come to, or of the route.
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

    fn headers(&self, rules: &[HeaderRule], at: &Serving) -> Result<HeaderMap, Stop> {
        let scope = self.scope(&at.context);
        head::headers(rules, &|expr| scope.value(expr))
    }

    // --- ends ----------------------------------------------------------------------------------------------------

    fn answer(
        &self,
        status: u16,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
        cause: Option<String>,
    ) -> Next {
        if body.is_some() && !headers.contains_key(header::CONTENT_TYPE) {
            let style = (status >= 400)
                .then(|| HeaderValue::from_str(&self.pack.errors[self.direction].content_type).ok())
                .flatten();
            let json = HeaderValue::from_static(BodyFormat::JSON);
            headers.insert(header::CONTENT_TYPE, style.unwrap_or(json));
        }
        Next::Answer(Answer { status, headers, body: body.map(Bytes::from), cause, error: None })
    }

    /// An answer that tells an error of the other side, with the status that the side answers its errors with.
    fn error(&self, status: u16, headers: HeaderMap, body: Option<Vec<u8>>, cause: Option<String>) -> Next {
        let answered = self.pack.errors[self.direction].answered(status);
        let next = self.answer(answered, headers, body, cause);
        match next {
            Next::Answer(answer) if answered != status => {
                Next::Answer(Answer { error: Some(status), ..answer })
            }
            next => next,
        }
    }

    fn refused(&self, refusal: &Refusal, wrote: bool) -> Next {
        let text = text(&self.pack, refusal.reason, self.request.language, &[]);
        Next::Refuse(Refused { refusal: refusal.clone(), text, wrote })
    }

    /// The pack's policy for a member that the mapping refuses.
    fn refusal_for(&self, reason: ReasonId) -> Refusal {
        let policy = &self.pack.refuse;
        Refusal {
            reason,
            legacy_forward: policy.legacy_forward[self.direction],
            status: policy.status,
            after_date: policy.after_date.clone(),
            after_status: policy.after_status,
        }
    }

    fn error_answer(&self, op: &plan::ValueOp, reply: &Reply) -> Result<ErrorAnswer, String> {
        let (served, language) = (self.direction, self.request.language);
        error_answer(&self.pack, served, op, &self.settings, language, &self.limits, reply)
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

/// The place as clients know it: the name of a parameter, or what leads to it.
fn parameter_name(place: &plan::Location) -> String {
    let text = place.text.as_ref();
    let known = ["$.request.body.", "$.request.query.", "$.request.headers.", "$.request.path."];
    let name = known.iter().find_map(|root| text.strip_prefix(root));
    name.unwrap_or(if text == "$.request.body" { "body" } else { text }).to_owned()
}

/// The elements that a step makes a call for.
fn elements(context: &Context, each: &Each) -> Vec<Value> {
    match context.value(&each.list).map(std::borrow::Cow::into_owned) {
        Some(Value::Array(list)) => list.into_iter().collect(),
        _ => Vec::new(),
    }
}

fn unsupported(wanted: &str) -> Stop {
    let detail = format!("the body is of another media type than {wanted}");
    Fault::new(FaultKind::UnsupportedMedia, detail).into()
}

fn call(head: &CallHead, step: u32, target: String, mut headers: HeaderMap, body: Option<Bytes>) -> Call {
    if let (BodyFormat::Form(_), Some(_)) = (&head.format, &body) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(BodyFormat::FORM));
    }
    Call {
        step,
        operation: Arc::clone(&head.operation),
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

fn no_reply(kind: FailKind, detail: &str, head: &CallHead) -> Fault {
    let (kind, words) = match kind {
        FailKind::Unreachable => (FaultKind::UpstreamUnreachable, "no connection"),
        FailKind::Timeout => (FaultKind::UpstreamTimeout, "no reply in time"),
        FailKind::Closed => (FaultKind::UpstreamClosed, "the connection was lost"),
        FailKind::Broken => (FaultKind::UpstreamBroken, "a reply that cannot be used"),
    };
    let detail = if detail.is_empty() { words.to_owned() } else { format!("{words}: {detail}") };
    during(head, Fault::new(kind, detail)).at(&head.origin)
}

/// What is to be logged of a call, with the call and its mapping line.
fn called(detail: &str, head: &CallHead) -> String {
    format!("{detail}, calling {} ({}:{})", head.operation, head.origin.file, head.origin.line)
}

fn during(head: &CallHead, fault: Fault) -> Fault {
    Fault { operation: Some(Arc::clone(&head.operation)), ..fault }
}
