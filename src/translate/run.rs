//! One request through its route, as a state machine without IO: it says which call to make, is told the reply, and ends
//! in an answer, a refusal or a fault. Pairs run here too, with their bodies held whole: tests, explanations, shadow plans
//! and the slow path have one driver.

use super::context::Context;
use super::coverage::Mark;
use super::document::{Env, document};
use super::failure::error_answer;
use super::fault::{Fault, FaultKind, Sender, Stop};
use super::head::{self, PairHeads, with_parameter};
use super::request::{Request, context_of, header_values};
use super::settings::Settings;
use super::text::{error_body, text};
use super::value::{Scope, constant};
use crate::json::{Limits, Object, Value};
use crate::plan::{
    self, Block, BodyExpected, CallHead, Effect, End, Expr, HeaderRule, OnFail, Pack, Pages, Pair, ReasonId,
    Refusal, ResponseBody, Route, RouteId, RouteKind, Serve, SideId, Step, StepAction,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use std::sync::Arc;

/// What happened to the last call.
#[derive(Clone, Debug)]
pub enum Event {
    /// Nothing yet: the first event of every run.
    Start,
    Reply(Reply),
    /// The call got no reply, or none that can be used.
    Failed(FailKind),
}

/// A reply of the other side.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    /// Decoded of content codings; empty = none.
    pub body: Bytes,
}

/// Why a call got no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailKind {
    Unreachable,
    Timeout,
    /// The reply was cut short, too large, or no HTTP.
    Broken,
}

/// What to do next.
#[derive(Clone, Debug)]
pub enum Next {
    Call(Call),
    Answer(Answer),
    Refuse(Refused),
}

/// A call to the other side.
#[derive(Clone, Debug)]
pub struct Call {
    /// Calls of this run before this one.
    pub step: u32,
    /// As the other side's contract writes it.
    pub operation: Arc<str>,
    pub method: Method,
    /// Path and query, encoded, below the upstream's base address.
    pub target: String,
    /// Only what the mapping asks for; content type, language and credentials are the caller's to add.
    pub headers: HeaderMap,
    /// JSON text.
    pub body: Option<Bytes>,
    pub effect: Effect,
    /// Whether a repeat is harmless.
    pub repeatable: bool,
    /// When given: a 2xx reply to this call is to be remembered under this key (and the client), and one remembered is to
    /// be fed to [`Run::next`] instead of making the call. May be forgotten when the run ends in a 2xx answer.
    pub resume_key: Option<Vec<u8>>,
}

/// What the client gets.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    /// What the mapping asks for, and the content type when there is a body.
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
}

/// The route cannot do what is asked for.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which status when, and whether the old service may answer instead.
    pub refusal: Refusal,
    /// In the client's language.
    pub text: String,
    /// Whether a call with an effect was made before; the request must then not be forwarded.
    pub wrote: bool,
}

/// One request on its way through its route.
#[derive(Debug)]
pub struct Run {
    pack: Arc<Pack>,
    direction: SideId,
    route: RouteId,
    settings: Arc<Settings>,
    request: Request,
    limits: Limits,
    state: State,
    marks: Vec<Mark>,
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
    /// Pages read by the step at work, joined.
    pages: Option<Gathered>,
}

#[derive(Debug, Default)]
struct Gathered {
    count: u32,
    elements: Vec<Value>,
}

/// Why a step has no result.
enum Failure {
    Replied(Reply),
    None(FailKind, String),
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
        Run { pack, direction, route, settings, request, limits, state: State::Fresh, marks: Vec::new() }
    }

    /// Takes what happened and says what to do next. After an answer, a refusal or a fault the run is over.
    pub fn next(&mut self, event: Event) -> Result<Next, Fault> {
        let pack = Arc::clone(&self.pack);
        let Some(route) = self.route_in(&pack) else {
            return Err(Fault::new(FaultKind::Internal, "there is no such route"));
        };
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
                (RouteKind::Pair(pair), State::Paired, Event::Failed(kind)) => {
                    Err(no_reply(kind, "", &pair.call).into())
                }
                (RouteKind::Serve(serve), State::Fresh, Event::Start) => self.begin(route, serve),
                (RouteKind::Serve(serve), State::Serving(at), Event::Reply(reply)) => {
                    self.replied(serve, *at, reply)
                }
                (RouteKind::Serve(serve), State::Serving(at), Event::Failed(kind)) => {
                    self.failed(serve, *at, Failure::None(kind, String::new()))
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

    /// Which parts of its route this run has gone through, for coverage.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    fn route_in<'p>(&self, pack: &'p Pack) -> Option<&'p Route> {
        pack.directions.get(usize::from(self.direction.0))?.routes.get(usize::from(self.route.0))
    }

    // --- pairs ---------------------------------------------------------------------------------------------------

    fn pair_call(&mut self, route: &Route, pair: &Pair) -> Result<Next, Stop> {
        let heads = self.pair_heads(route);
        let target = heads.target(&pair.call)?;
        let headers = heads.call_headers(&pair.call)?;
        let body = self.pair_body(route, pair)?;
        self.state = State::Paired;
        Ok(Next::Call(call(&pair.call, 0, target, headers, body)))
    }

    fn pair_body(&self, route: &Route, pair: &Pair) -> Result<Option<Bytes>, Stop> {
        let Some(plan) = &pair.request else { return Ok(None) };
        let body: &[u8] = match route.operation.body {
            // The other side wants a body that is made of constants alone.
            BodyExpected::No => b"{}",
            BodyExpected::Optional if self.request.body.is_empty() => return Ok(None),
            _ => &self.request.body,
        };
        let mut out = Vec::new();
        document(&plan.op, body, &Env::of(&self.settings), &self.limits, &mut out)
            .map_err(|error| Stop::of_body(Sender::ClientBody, &error))?;
        Ok(Some(out.into()))
    }

    fn pair_answer(&mut self, route: &Route, pair: &Pair, reply: &Reply) -> Result<Next, Stop> {
        let response = head::response(pair, reply.status)
            .ok_or_else(|| no_reply(FailKind::Broken, "a status that no rule is for", &pair.call))?;
        let status = head::status(response.to, reply.status);
        let headers = self.pair_heads(route).answer_headers(response, reply.status, &reply.headers)?;
        let body = match &response.body {
            ResponseBody::Empty => None,
            ResponseBody::Plan(plan) => {
                let mut out = Vec::new();
                document(&plan.op, &reply.body, &Env::of(&self.settings), &self.limits, &mut out)
                    .map_err(|error| during(&pair.call, Fault::of_body(Sender::Upstream, &error)))?;
                Some(out)
            }
            ResponseBody::Error(plan) => Some(self.error_answer(&plan.op, reply)),
        };
        if !matches!(response.body, ResponseBody::Error(_)) {
            self.marks.push(Mark::Answered);
        }
        Ok(self.answer(status, headers, body))
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
            let applies = check.only_if.as_ref().is_none_or(|place| context.is_true(place));
            if applies && !context.holds(&check.predicate) {
                self.marks.push(Mark::Check(at));
                let text = text(&self.pack, check.reason, self.request.language, &[]);
                return Ok(self.answer(check.status, HeaderMap::new(), Some(error_body(&self.pack, &text))));
            }
        }
        let at = Serving { context, outcomes: Vec::new(), step: 0, calls: 0, wrote: false, pages: None };
        self.advance(serve, at)
    }

    /// The parsed body with its defaults filled in; none when the operation takes none or none came.
    fn request_body(&self, route: &Route, serve: &Serve) -> Result<Option<Value>, Stop> {
        let mut body = match route.operation.body {
            BodyExpected::No => return Ok(None),
            BodyExpected::Optional if self.request.body.is_empty() => Value::Object(Object::new()),
            _ => Value::parse(&self.request.body, &self.limits)
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
                    StepAction::Call { .. } => return self.call(serve, step, at),
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

    /// Makes the call of the step at work, or its next page.
    fn call(&mut self, serve: &Serve, step: &Step, mut at: Serving) -> Result<Next, Stop> {
        let StepAction::Call { head, body, pages, resume, .. } = &step.action else {
            return Err(Fault::new(FaultKind::Internal, "a step that makes no call").into());
        };
        match self.build(head, body.as_ref(), resume.as_deref(), &at) {
            Ok(mut next) => {
                if let Some(pages) = pages {
                    let read = at.pages.get_or_insert_default().count;
                    next.target =
                        with_parameter(&next.target, &pages.parameter, pages.first + i64::from(read));
                }
                at.calls += 1;
                self.state = State::Serving(Box::new(at));
                Ok(Next::Call(next))
            }
            // What an earlier reply lacks makes this call impossible: the step has failed, and says what then.
            Err(Stop::Fault(fault)) if fault.kind == FaultKind::UpstreamBroken => {
                self.failed(serve, at, Failure::None(FailKind::Broken, fault.detail))
            }
            Err(Stop::Fault(fault)) => Err(during(head, fault).at(&step.origin).into()),
            Err(stop) => Err(stop),
        }
    }

    fn build(
        &self,
        head: &CallHead,
        body: Option<&Expr>,
        resume: Option<&[Expr]>,
        at: &Serving,
    ) -> Result<Call, Stop> {
        let scope = self.scope(&at.context);
        let values = |expr: &Expr| scope.value(expr);
        let target = head::target(head, self.request.head(), &values)?;
        let headers = head::headers(&head.headers, &values)?;
        let body = match body {
            Some(expr) => scope.value(expr)?.map(|value| Bytes::from(value.to_vec())),
            None => None,
        };
        let mut next = call(head, at.calls, target, headers, body);
        if let Some(exprs) = resume {
            let served = self.route_in(&self.pack).map_or("", |route| &route.operation.key);
            let mut key =
                vec![Value::string(served), Value::string(&head.operation), Value::from(i64::from(at.calls))];
            for expr in exprs {
                key.push(scope.value(expr)?.unwrap_or(Value::Null));
            }
            next.resume_key = Some(Value::from(key).to_vec());
        }
        Ok(next)
    }

    fn replied(&mut self, serve: &Serve, mut at: Serving, reply: Reply) -> Result<Next, Stop> {
        let Some(Step { name, action: StepAction::Call { head, pages, .. }, .. }) = step_at(serve, &at)
        else {
            return Err(Fault::new(FaultKind::Internal, "a reply to a step that made no call").into());
        };
        if !(200..300).contains(&reply.status) {
            return self.failed(serve, at, Failure::Replied(reply));
        }
        at.wrote |= head.effect == Effect::Write;
        let body = match self.reply_body(name.is_some(), &reply) {
            Ok(body) => body,
            Err(detail) => return self.failed(serve, at, Failure::None(FailKind::Broken, detail)),
        };
        let name = name.as_ref().map(|key| &*key.text);
        match pages {
            None => self.set_result(&mut at, name, Some(&reply), body),
            Some(pages) => match self.gather(&mut at, name, pages, &reply, body) {
                Ok(true) => at.pages = None,
                Ok(false) => {
                    let step = step_at(serve, &at);
                    return step.map_or_else(
                        || Err(Fault::new(FaultKind::Internal, "no step").into()),
                        |step| self.call(serve, step, at),
                    );
                }
                Err(detail) => return self.failed(serve, at, Failure::None(FailKind::Broken, detail)),
            },
        }
        at.step += 1;
        self.advance(serve, at)
    }

    /// The parsed body of a reply that somebody reads; the error is for the log.
    fn reply_body(&self, read: bool, reply: &Reply) -> Result<Option<Value>, String> {
        if !read || reply.body.is_empty() {
            return Ok(None);
        }
        Value::parse(&reply.body, &self.limits).map(Some).map_err(|error| error.to_string())
    }

    /// Adds a page; returns whether it was the last one.
    fn gather(
        &self,
        at: &mut Serving,
        name: Option<&str>,
        pages: &Pages,
        reply: &Reply,
        body: Option<Value>,
    ) -> Result<bool, String> {
        let Some(Value::Array(page)) = body else {
            return Err("a page that is no array".into());
        };
        let gathered = at.pages.get_or_insert_default();
        let is_short = u32::try_from(page.len()).is_ok_and(|len| len < pages.size);
        gathered.count += 1;
        gathered.elements.extend(page);
        let is_last = is_short || gathered.count >= pages.upto;
        let so_far = Value::from(gathered.elements.clone());
        self.set_result(at, name, Some(reply), Some(so_far));
        let found =
            pages.until.as_ref().is_some_and(|place| at.context.matches(place).iter().any(|v| !v.is_null()));
        Ok(is_last || found)
    }

    fn set_result(&self, at: &mut Serving, name: Option<&str>, reply: Option<&Reply>, body: Option<Value>) {
        let Some(name) = name else { return };
        let mut result = Object::new();
        if let Some(reply) = reply {
            result.insert("status", i64::from(reply.status));
            result.insert("headers", header_values(&self.pack, &reply.headers));
        }
        if let Some(body) = body {
            result.insert("body", body);
        }
        at.context.set(name, Value::Object(result));
    }

    fn failed(&mut self, serve: &Serve, mut at: Serving, failure: Failure) -> Result<Next, Stop> {
        let Some(step) = step_at(serve, &at) else {
            return Err(Fault::new(FaultKind::Internal, "a failure of a step that is not there").into());
        };
        let StepAction::Call { head, on_fail, .. } = &step.action else {
            return Err(Fault::new(FaultKind::Internal, "a failure of a step that made no call").into());
        };
        // A call that got no reply may have had its effect all the same.
        at.wrote |= head.effect == Effect::Write && matches!(failure, Failure::None(..));
        at.pages = None;
        let name = step.name.as_ref().map(|key| &*key.text);
        if let Failure::Replied(reply) = &failure {
            let body = self.reply_body(true, reply).unwrap_or(None);
            self.set_result(&mut at, name, Some(reply), body);
        }
        if !matches!(on_fail, OnFail::Pass) {
            self.marks.push(Mark::OnFail(at.outcomes.clone(), at.step));
        }
        match on_fail {
            OnFail::Pass => self.pass(head, step, failure, HeaderMap::new()),
            OnFail::PassWith(rules) => {
                let headers = self.headers(rules, &at)?;
                self.pass(head, step, failure, headers)
            }
            OnFail::Answer(answer) => self.answer_of(answer, &at),
            OnFail::Refuse(refusal) => Ok(self.refused(refusal, at.wrote)),
            OnFail::Use(expr) => {
                let body = self.scope(&at.context).value(expr)?;
                let reply = match &failure {
                    Failure::Replied(reply) => Some(reply),
                    Failure::None(..) => None,
                };
                self.set_result(&mut at, name, reply, body);
                at.step += 1;
                self.advance(serve, at)
            }
        }
    }

    /// Answers with the failed call's own status and error.
    fn pass(&self, head: &CallHead, step: &Step, failure: Failure, headers: HeaderMap) -> Result<Next, Stop> {
        let fault = match failure {
            Failure::Replied(reply) if reply.status >= 400 => {
                let direction = &self.pack.directions[usize::from(self.direction.0)];
                let body = self.error_answer(&direction.error.op, &reply);
                return Ok(self.answer(reply.status, headers, Some(body)));
            }
            Failure::Replied(_) => {
                no_reply(FailKind::Broken, "a status that is neither success nor error", head)
            }
            Failure::None(kind, detail) => no_reply(kind, &detail, head),
        };
        let headers = (!headers.is_empty()).then(|| Box::new(headers));
        Err(Fault { headers, ..fault.at(&step.origin) }.into())
    }

    fn answer_of(&self, answer: &plan::Answer, at: &Serving) -> Result<Next, Stop> {
        let headers = self.headers(&answer.headers, at)?;
        let body = match &answer.body {
            Some(expr) => self.scope(&at.context).value(expr)?.map(|value| value.to_vec()),
            None => None,
        };
        Ok(self.answer(answer.status, headers, body))
    }

    fn headers(&self, rules: &[HeaderRule], at: &Serving) -> Result<HeaderMap, Stop> {
        let scope = self.scope(&at.context);
        head::headers(rules, &|expr| scope.value(expr))
    }

    // --- ends ----------------------------------------------------------------------------------------------------

    fn answer(&self, status: u16, mut headers: HeaderMap, body: Option<Vec<u8>>) -> Next {
        if body.is_some() && !headers.contains_key(header::CONTENT_TYPE) {
            let style =
                (status >= 400).then(|| HeaderValue::from_str(&self.pack.errors.content_type).ok()).flatten();
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, style.unwrap_or(json));
        }
        Next::Answer(Answer { status, headers, body: body.map(Bytes::from) })
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
            legacy_forward: policy.legacy_forward,
            status: policy.status,
            after_date: policy.after_date.clone(),
            after_status: policy.after_status,
        }
    }

    fn error_answer(&self, op: &plan::ValueOp, reply: &Reply) -> Vec<u8> {
        error_answer(
            &self.pack,
            op,
            &self.settings,
            self.request.language,
            &self.limits,
            reply.status,
            &reply.body,
        )
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

fn block_at<'p>(serve: &'p Serve, outcomes: &[u16]) -> Option<&'p Block> {
    outcomes.iter().try_fold(&serve.block, |block, outcome| match &block.end {
        End::Decide(decision) => decision.outcomes.get(usize::from(*outcome)).map(|outcome| &outcome.block),
        _ => None,
    })
}

fn step_at<'p>(serve: &'p Serve, at: &Serving) -> Option<&'p Step> {
    block_at(serve, &at.outcomes)?.steps.get(at.step)
}

fn call(head: &CallHead, step: u32, target: String, headers: HeaderMap, body: Option<Bytes>) -> Call {
    Call {
        step,
        operation: Arc::clone(&head.operation),
        method: head.method.clone(),
        target,
        headers,
        body,
        effect: head.effect,
        repeatable: head.repeatable,
        resume_key: None,
    }
}

fn no_reply(kind: FailKind, detail: &str, head: &CallHead) -> Fault {
    let (kind, words) = match kind {
        FailKind::Unreachable => (FaultKind::UpstreamUnreachable, "no connection"),
        FailKind::Timeout => (FaultKind::UpstreamTimeout, "no reply in time"),
        FailKind::Broken => (FaultKind::UpstreamBroken, "a reply that cannot be used"),
    };
    let detail = if detail.is_empty() { words.to_owned() } else { format!("{words}: {detail}") };
    during(head, Fault::new(kind, detail)).at(&head.origin)
}

fn during(head: &CallHead, fault: Fault) -> Fault {
    Fault { operation: Some(Arc::clone(&head.operation)), ..fault }
}
