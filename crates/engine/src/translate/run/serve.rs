//! Routes with several calls: executes step by step until one of them finishes the run.

use super::pair::{encode_call, json_of_request};
use super::{
    Failure, Place, Run, Serving, State, call, call_label, during, elements, no_reply, parameter_name, poll,
};
use crate::translate::archive;
use crate::translate::blocks::{block_at, call_at};
use crate::translate::coverage::Mark;
use crate::translate::expected::broken_promise;
use crate::translate::failure::{ErrorAnswer, kind_of_status};
use crate::translate::fault::{Fault, FaultKind, Sender, Stop};
use crate::translate::gather::{After, Fanned};
use crate::translate::head::{self, with_parameter};
use crate::translate::reply::{foreign_success, redirect, unlisted_part};
use crate::translate::request::{context_of, header_values};
use crate::translate::sources::Traced;
use crate::translate::text::{error_body, text};
use crate::translate::turn::{Call, Entry, Failed, Next, Reply};
use crate::translate::value::constant;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Method};
use std::borrow::Cow;
use switchback_json::{Object, Value};
use switchback_plan::{
    self as plan, Beyond, BodyExpected, CallHead, CheckElse, Effect, End, Expected, Kinds, OnFail, PARAMETER,
    Refusal, Route, Serve, StatusFrom, Step, StepAction, StepCall,
};

impl Run {
    pub(super) fn begin(&mut self, route: &Route, serve: &Serve) -> Result<Next, Stop> {
        let mut context = context_of(&self.pack, &route.operation, &self.settings, self.request.head())?;
        let body = self.request_body(route, serve)?;
        if let (Some(body), Some(request)) = (body, context.get_mut("request").and_then(Value::as_object_mut))
        {
            request.insert("body", body);
        }
        if let Some(arrival) = self.request.arrival.filter(|_| serve.reads_arrival)
            && let Some(request) = context.get_mut("request").and_then(Value::as_object_mut)
        {
            arrival.add_to(request);
        }
        // Before any call: a request that fails a check has no effect on the other side.
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
                        let body = error_body(style, kind_of_status(*status), *status, &text);
                        self.answer(*status, HeaderMap::new(), Some(body), None)
                    }
                });
            }
        }
        let serving = Serving {
            context,
            outcomes: Vec::new(),
            step: 0,
            calls: 0,
            wrote: false,
            pages: None,
            fanned: None,
            looking: None,
            polling: None,
            is_over: false,
        };
        self.advance(serve, serving)
    }

    /// Returns the parsed body with defaults, or `None` if the operation takes no body.
    pub(super) fn request_body(&self, route: &Route, serve: &Serve) -> Result<Option<Value>, Stop> {
        let mut body = match route.operation.body {
            BodyExpected::No => return Ok(None),
            BodyExpected::Optional if self.request.body.is_empty() => Value::Object(Object::new()),
            _ => Value::parse(
                &json_of_request(route, &self.request.headers, &self.request.body, &self.limits)?,
                &self.limits,
            )
            .map_err(|error| Fault::of_body(Sender::ClientBody, &error.into()))?,
        };
        if let Some(members) = body.as_object_mut() {
            // An explicit null is not replaced by a default.
            for (key, raw) in
                serve.fill.iter().filter(|(key, _)| !members.contains_key(&key.text)).collect::<Vec<_>>()
            {
                members.insert(&*key.text, constant(raw));
            }
        }
        Ok(Some(body))
    }

    /// Executes steps until a call is needed or the route is finished.
    pub(super) fn advance(&mut self, serve: &Serve, mut at: Serving) -> Result<Next, Stop> {
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
                        if let Some(refusal) = refused_beyond(call, &mut at) {
                            self.marks.push(Mark::Beyond(at.outcomes.clone(), at.step));
                            return Ok(self.refused(refusal, at.wrote));
                        }
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
                        // Without keys, the results are empty and no lookup is needed.
                        archive::store_found(
                            recall,
                            step,
                            looking,
                            Vec::new(),
                            &self.limits,
                            &mut at.context,
                        )?;
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
                    // Steps are counted per block, and the outcome has a block of its own.
                    at.step = 0;
                }
            }
        }
    }

    /// Returns whether the current step has a call to make. For a step with `each`, elements whose
    /// condition is false get their results here.
    pub(super) fn is_wanted(&mut self, step: &Step, call: &StepCall, at: &mut Serving) -> bool {
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

    /// Makes the call of the current step, or the call for its next page.
    pub(super) fn call(
        &mut self,
        serve: &Serve,
        step: &Step,
        wanted: &StepCall,
        mut at: Serving,
    ) -> Result<Next, Stop> {
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
                    // Later rounds of a backfill continue the page numbers.
                    let before = match self.place {
                        Place::Harvest(_, round) => i64::from(round) * i64::from(pages.upto),
                        Place::Route(..) => 0,
                    };
                    let read = before + i64::from(at.pages.get_or_insert_default().count);
                    next.target = with_parameter(&next.target, &pages.parameter, pages.first + read);
                }
                if let (Some(each), Some(fanned)) = (&wanted.each, &mut at.fanned) {
                    // Repeated reads of one target share the reply. Writes are sent for each
                    // element, even for equal ones.
                    if head.effect == Effect::None && fanned.repeat(each, &next.target) {
                        return self.advance(serve, at);
                    }
                    fanned.calling(&next.target);
                }
                at.calls += 1;
                self.state = State::Serving(Box::new(at));
                Ok(Next::Call(next))
            }
            // A value that an earlier reply lacks makes the call impossible, so the step fails like
            // its call.
            Err(Stop::Fault(fault)) if fault.kind == FaultKind::UpstreamBroken => {
                self.on_failure(serve, at, Failed::broken(fault.detail).into())
            }
            Err(Stop::Fault(fault)) => Err(during(head, fault).at(&step.origin).into()),
            Err(stop) => Err(stop),
        }
    }

    pub(super) fn build(&self, wanted: &StepCall, is_read: bool, at: &Serving) -> Result<Call, Stop> {
        let StepCall { head, body, resume, .. } = wanted;
        let scope = self.scope(&at.context);
        let values = |expr: &plan::Expr| scope.value(expr);
        let target = head::target(head, self.request.head(), &values)?;
        let headers = head::headers(&head.headers, self.raw_headers(), &values)?;
        let body = match body {
            Some(expr) => {
                let json = scope.value(expr)?.map(|value| value.to_vec());
                json.map(|json| encode_call(&head.format, json, &self.limits)).transpose()?
            }
            None => None,
        };
        let mut next = Call { is_read, ..call(head, at.calls, target, headers, body) };
        if let Some(exprs) = resume {
            let served = self.route_in(&self.pack).map_or("", |route| &route.operation.key);
            // A retried request may reach the step after a different number of calls.
            let place = format!("{:?} {}", at.outcomes, at.step);
            let mut key = vec![Value::string(served), Value::string(&head.operation), Value::string(&place)];
            for expr in exprs {
                key.push(scope.value(expr)?.unwrap_or(Value::Null));
            }
            // Each element has its own key, even if two are equal.
            if let Some((place, element)) = at.fanned.as_ref().and_then(Fanned::at) {
                key.push(Value::from(i64::try_from(place).unwrap_or(i64::MAX)));
                key.push(element.clone());
            }
            next.resume_key = Some(Value::from(key).to_vec());
        }
        Ok(next)
    }

    pub(super) fn on_recall(
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
        archive::store_found(recall, step, looking, entries, &self.limits, &mut at.context)?;
        at.step += 1;
        self.advance(serve, at)
    }

    pub(super) fn on_reply(&mut self, serve: &Serve, mut at: Serving, reply: Reply) -> Result<Next, Stop> {
        let Some((step, call)) = call_at(serve, &at.outcomes, at.step) else {
            return Err(Fault::new(FaultKind::Internal, "a reply to a step that made no call").into());
        };
        if !(200..300).contains(&reply.status) {
            if let Some(poll) = call.poll.as_ref().filter(|_| poll::is_passing(reply.status)) {
                let detail = format!("the last answer was {}", reply.status);
                // A temporary failure while polling does not end the operation that is polled.
                return self.pause(serve, poll, at, poll::retry_after(&reply.headers), Some(detail));
            }
            return self.on_failure(serve, at, Failure::Replied(reply));
        }
        let (reply, body) = match self.usable_reply(step, call, &reply) {
            Ok(usable) => usable,
            Err(failed) => return self.on_failure(serve, at, failed.into()),
        };
        let reply = reply.as_ref();
        // From here on a refusal must not forward the request, which would repeat the effect.
        at.wrote |= call.head.effect == Effect::Write;
        let Some(pages) = &call.pages else {
            // The condition of a poll refers to the step's own result.
            self.set_result(&mut at, step, call, Some(reply), body);
            if let Some(poll) = call.poll.as_ref().filter(|poll| !at.context.holds(&poll.until)) {
                return self.pause(serve, poll, at, poll::retry_after(&reply.headers), None);
            }
            at.is_over |= call.poll.is_some();
            return self.go_on(serve, call, at);
        };
        let mut paged = at.pages.take().unwrap_or_default();
        let is_harvest = matches!(self.place, Place::Harvest(..));
        // A backfill has no total bound, so this check detects a service that ignores the page
        // parameter.
        if is_harvest && body.as_ref().is_some_and(|page| paged.repeats(page)) {
            let detail = "two pages are the same: the service does not page this list as the pack says";
            return self.on_failure(serve, at, Failed::broken(detail).into());
        }
        let after = match paged.add(body, pages) {
            Ok(after) => after,
            Err(failed) => return self.on_failure(serve, at, failed.into()),
        };
        if call.each.is_none() {
            // The condition `until` may refer to the pages read so far.
            self.set_result(&mut at, step, call, Some(reply), Some(paged.so_far()));
        }
        let selects = |place: &plan::Location| at.context.matches(place).iter().any(|value| !value.is_null());
        let found = pages.until.as_ref().is_some_and(selects);
        self.goes_on |= is_harvest && after == After::Bound && !found;
        let is_read = match after {
            After::More => false,
            After::Bound => matches!(pages.beyond, Beyond::Cut),
            After::Ended => true,
        };
        if call.each.is_some() && is_read {
            // An element gets its result after all pages of its list are read.
            self.set_result(&mut at, step, call, Some(reply), Some(paged.so_far()));
        }
        match after {
            After::More if !found => {
                at.pages = Some(paged);
                self.call(serve, step, call, at)
            }
            After::Bound if !found => self.beyond(serve, &pages.beyond, reply, at),
            _ => self.go_on(serve, call, at),
        }
    }

    /// Checks a successful reply against its contract. Returns it as JSON, with its body if that is
    /// used.
    fn usable_reply<'r>(
        &self,
        step: &Step,
        call: &StepCall,
        reply: &'r Reply,
    ) -> Result<(Cow<'r, Reply>, Option<Value>), Failed> {
        if let Some(detail) = unlisted_part(reply.status, &call.head) {
            return Err(Failed::broken(detail));
        }
        let reply = self.decode_reply(&call.head, reply)?;
        if let Some(detail) = foreign_success(&reply.headers, &self.pack.json_types, &reply.body) {
            return Err(Failed::broken(detail));
        }
        // Replies to writes are checked only where they are used: the write has already happened.
        let promised =
            (call.head.effect == Effect::None).then(|| promised_body(call, reply.status)).flatten();
        let body = self.reply_body(step.name.is_some() || promised.is_some(), &reply)?;
        let broken = promised.and_then(|promised| match &body {
            Some(body) => broken_promise(body, promised),
            None => Some("no body, and its contract promises one".to_owned()),
        });
        match broken {
            Some(detail) => Err(Failed::broken(detail)),
            None => Ok((reply, body)),
        }
    }

    /// Handles a list that may continue beyond the bound on its pages.
    pub(super) fn beyond(
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

    /// Continues with the next element or step after a reply.
    pub(super) fn go_on(&mut self, serve: &Serve, call: &StepCall, mut at: Serving) -> Result<Next, Stop> {
        at.polling = None;
        if call.each.is_none() {
            at.step += 1;
        }
        self.advance(serve, at)
    }

    /// Parses the body of a reply if it is used.
    pub(super) fn reply_body(&self, read: bool, reply: &Reply) -> Result<Option<Value>, Failed> {
        if !read || reply.body.is_empty() {
            return Ok(None);
        }
        Value::parse(&reply.body, &self.limits).map(Some).map_err(|error| Failed::broken(error.to_string()))
    }

    /// Sets the result of the current step or element.
    pub(super) fn set_result(
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

    pub(super) fn on_failure(
        &mut self,
        serve: &Serve,
        mut at: Serving,
        failure: Failure,
    ) -> Result<Next, Stop> {
        let Some((step, call)) = call_at(serve, &at.outcomes, at.step) else {
            return Err(Fault::new(FaultKind::Internal, "a failure of a step that made no call").into());
        };
        let head = &call.head;
        // A write without a reply may have happened.
        at.wrote |= head.effect == Effect::Write && matches!(failure, Failure::None(..));
        at.pages = None;
        at.polling = None;
        // A missing resource needs no further polling.
        let is_gone = matches!(&failure, Failure::Replied(reply) if [404, 410].contains(&reply.status));
        at.is_over |= call.poll.is_some() && is_gone;
        let is_over = at.is_over;
        let mut next = self.on_fail(serve, step, call, at, failure);
        if let Ok(Next::Answer(answer)) = &mut next {
            answer.is_over |= is_over;
        }
        next
    }

    /// Applies the step's `on_fail`.
    fn on_fail(
        &mut self,
        serve: &Serve,
        step: &Step,
        call: &StepCall,
        mut at: Serving,
        failure: Failure,
    ) -> Result<Next, Stop> {
        let StepCall { head, on_fail, .. } = call;
        let reply = match &failure {
            Failure::Replied(reply) => Some(reply),
            Failure::None(..) | Failure::Late(..) => None,
        };
        if matches!(on_fail, OnFail::Absent(_)) {
            if !on_fail.goes_on_without(reply.map(|reply| reply.status)) {
                return self.pass(head, step, failure, HeaderMap::new());
            }
            self.marks.push(Mark::OnFail(at.outcomes.clone(), at.step));
            self.set_result(&mut at, step, call, reply, None);
            return self.go_on(serve, call, at);
        }
        // Expressions of `on_fail` may refer to the failed reply.
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

    /// Answers with the status and error of the failed call.
    pub(super) fn pass(
        &self,
        head: &CallHead,
        step: &Step,
        failure: Failure,
        mut headers: HeaderMap,
    ) -> Result<Next, Stop> {
        let fault = match failure {
            Failure::Replied(reply) if reply.status >= 400 => {
                let direction = &self.pack.directions[self.direction];
                match self.error_answer(&direction.error.op, None, &reply) {
                    Ok(ErrorAnswer { body, foreign }) => {
                        let cause = foreign.map(|foreign| call_label(&foreign, head));
                        return Ok(self.error(reply.status, headers, Some(body), cause));
                    }
                    Err(failed) => no_reply(failed, head),
                }
            }
            Failure::Replied(reply) => no_reply(Failed::broken(redirect(reply.status, &reply.headers)), head),
            Failure::None(failed) => no_reply(failed, head),
            Failure::Late(failed, pause) => {
                let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
                headers.entry(RETRY_AFTER).or_insert(HeaderValue::from(seconds));
                no_reply(failed, head)
            }
        };
        let headers = (!headers.is_empty()).then(|| Box::new(headers));
        Err(Fault { headers, ..fault.at(&step.origin) }.into())
    }
}

/// Returns the refusal of a step with `each`, before its first call, if an element beyond the bound
/// needs a call.
fn refused_beyond<'c>(call: &'c StepCall, at: &mut Serving) -> Option<&'c Refusal> {
    let each = call.each.as_ref()?;
    let refusal = each.beyond.as_ref()?;
    // The bound was checked before the first element.
    if at.fanned.is_some() {
        return None;
    }
    let beyond = elements(&at.context, each).into_iter().skip(each.upto as usize);
    let mut wants = |element: Value| match &call.when {
        None => true,
        Some(when) => {
            at.context.set(&each.name.text, element);
            let holds = at.context.holds(when);
            at.context.remove(&each.name.text);
            holds
        }
    };
    beyond.into_iter().any(&mut wants).then_some(refusal)
}

/// Returns the body that the contract declares for a success with this status. An undeclared status
/// is treated like the first declared one with a body.
fn promised_body(call: &StepCall, status: u16) -> Option<&Expected> {
    let promise = call.promises.iter().find(|promise| promise.from.matches(status));
    let body = match promise {
        // A 204 never has a body (RFC 9110, section 15.3.5), even if the contract declares one.
        Some(promise) if promise.from == StatusFrom::Exact(204) => None,
        Some(promise) => promise.body.as_ref(),
        None => call.promises.iter().find_map(|promise| promise.body.as_ref()),
    };
    body.filter(|body| body.kinds != Kinds::ANY && call.head.method != Method::HEAD)
}
