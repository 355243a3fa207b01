//! Compiles calls of `serve` routes: their bodies match the called contract, calls after a write
//! declare their failure handling, and keys cover the input of a remembered write.

use super::context::{ContextValue, fan_out, reply};
use super::expr::ExprTarget;
use super::faults;
use super::flow::{Flow, Write};
use super::operations::effect;
use super::provenance::{collect, exact, of_call};
use super::route::RouteCheck;
use crate::contract::{OpKey, Operation, Response, StatusPattern, Type, TypeKind, Types};
use crate::diagnostic::Span;
use crate::mapping::ast::{self, CallDecl, Spanned, StepDecl};
use crate::mapping::expected;
use switchback_plan::{self as plan, CallHead, Effect, Key, Pages};

/// Help text for pages beyond a bound.
const BEYOND_PAGES: &str = "add `beyond: cut`, where the first pages are enough, `beyond: absent`, where a part is of no use, or `beyond: {refuse: reason}`";

impl<'a> RouteCheck<'_, 'a> {
    /// Compiles a call with its `each:` and `when:`. The current element and the facts of the
    /// condition hold within the call only.
    pub(super) fn conditional_call(
        &mut self,
        call: &'a CallDecl,
        step: &StepDecl,
        flow: &mut Flow,
    ) -> Option<(plan::StepAction, ContextValue)> {
        let mut within = flow.clone();
        let each = match &call.each {
            None => None,
            Some(each) => Some(self.each(each, call, step, &mut within)?),
        };
        let when = match &call.when {
            None => None,
            Some(when) => {
                let Some(condition) = self.condition(when, &within) else {
                    self.look_at(call, &within);
                    return None;
                };
                within.learn_all(&condition.facts, self.env.world.contracts);
                Some(condition.predicate)
            }
        };
        let made = self.call(call, step, &mut within);
        flow.wrote.clone_from(&within.wrote);
        flow.unremembered.clone_from(&within.unremembered);
        flow.with_body.clone_from(&within.with_body);
        if let Some(each) = &call.each
            && !self.summary.reads.has_root(&each.name.value)
        {
            self.findings.push(faults::unread_element(&each.name));
        }
        let (mut made, held) = made?;
        made.when = when;
        let held = match each {
            // A call that is skipped leaves no result.
            None => ContextValue { absent: made.when.is_some(), ..held },
            Some((each, element)) => {
                let held = fan_out(&each.name.text, element, held.ty, step.span);
                made.each = Some(each);
                held
            }
        };
        call.resume.first().iter().for_each(|key| self.check_key(&made, &within, key.span));
        Some((plan::StepAction::Call(Box::new(made)), held))
    }

    /// Compiles `each: {name: list}`, and adds the current element to the flow.
    fn each(
        &mut self,
        each: &ast::EachDecl,
        call: &CallDecl,
        step: &StepDecl,
        flow: &mut Flow,
    ) -> Option<(plan::Each, ContextValue)> {
        self.check_name(&each.name, flow);
        if step.name.is_none() {
            self.findings.push(faults::each_without_name(call.operation.span));
        }
        if let Some(until) = call.pages.as_ref().and_then(|pages| pages.until.as_ref()) {
            // The list that belongs to an element has no place in the context while its pages are
            // read.
            self.findings.push(faults::each_with(until.span, "pages: {until: …}"));
        }
        let elements = self.elements(&each.name, &each.list, step, flow);
        // Compile `beyond:` even if the list has an error, to report its own errors.
        let most = elements.as_ref().and_then(|(.., most)| *most);
        let beyond = self.beyond_elements(each, call, most, flow);
        let (list, element, _) = elements?;
        let name = Key::new(&each.name.value);
        Some((plan::Each { name, list, upto: each.upto.value as u32, beyond: beyond? }, element))
    }

    /// Compiles `beyond:` of a fanned-out call; `most` is the maximum length of the list. An outer
    /// `None` is an error.
    fn beyond_elements(
        &mut self,
        each: &ast::EachDecl,
        call: &CallDecl,
        most: Option<u64>,
        flow: &Flow,
    ) -> Option<Option<plan::Refusal>> {
        let writes = is_write(call);
        match each.beyond.as_ref().map(|beyond| (&beyond.value, beyond.span)) {
            None => {
                let helps = match writes {
                    true => "add `beyond: {refuse: reason}`",
                    false => {
                        "add `beyond: absent`, where the others can do without a reply, or `beyond: {refuse: reason}`"
                    }
                };
                self.findings.push(faults::bound_unsaid(each.upto.span, "the elements", helps));
                None
            }
            Some((ast::BeyondDecl::Refuse(refuse), span)) => {
                self.too_late(span, flow);
                self.refusal(refuse).map(Some)
            }
            Some((_, span)) if writes => {
                self.findings.push(faults::write_beyond(span));
                None
            }
            Some((_, span)) => {
                let upto = each.upto.value;
                // A list that the contract bounds below `upto` cannot lose elements.
                if most.is_none_or(|most| most > upto as u64) {
                    let elements = if upto == 1 { "element" } else { "elements" };
                    let (operation, list) = (&call.operation.value, &each.list.value);
                    let text =
                        format!("`{operation}` is called for the first {upto} {elements} of `{list}` alone.");
                    self.limit(text, span);
                }
                Some(None)
            }
        }
    }

    fn call(
        &mut self,
        call: &'a CallDecl,
        step: &StepDecl,
        flow: &mut Flow,
    ) -> Option<(plan::StepCall, ContextValue)> {
        let side = self.serves.other();
        // Compile all parts before the first `?`, so that one error does not hide others.
        if call.each.is_some() && flow.wrote.is_none() && is_write(call) {
            // The second of these calls follows the first write, so the rules for calls after a
            // write apply to all of them.
            flow.wrote = Some(Write::of_call(&call.operation.value));
        }
        let after_write = flow.wrote.is_some();
        let target = self.target(&call.operation, side, true, flow);
        let Some((operation, path)) = target else {
            self.look_at(call, flow);
            return None;
        };
        // Recorded even if the rest of the call has errors, for the checks of statuses and headers.
        self.summary.called.push(operation);
        self.xml_operation(operation);
        let effect = effect(&operation.key.method, call.effect.as_ref());
        let paged = call.pages.as_ref().and(self.env.manifest().paging.as_ref());
        let parameter = paged.map(|paging| paging.query.value.as_str());
        let query = self.call_query(call, operation, parameter, flow);
        let mut headers = self.made_headers(&call.headers, flow);
        headers.iter_mut().for_each(|headers| self.sent_headers(headers));
        if let Some(headers) = &headers {
            self.required_headers(headers, operation, call.operation.span);
        }
        headers.iter_mut().for_each(|headers| self.json_names(operation, headers));
        let body = self.call_body(call, operation, flow);
        let resume = self.resume(call, effect, flow);
        if effect == Effect::Write && self.is_harvest {
            self.findings.push(faults::harvest_writes(call.operation.span, &operation.key));
        }
        // Set before the failure handling is compiled, which may run after this write has taken
        // effect.
        if effect == Effect::Write && flow.wrote.as_ref().is_none_or(|write| write.is_keep) {
            flow.wrote = Some(Write::of_call(&operation.key.to_string()));
        }
        let on_fail = self.on_fail(call, operation, after_write, flow);
        let without_body = matches!(call.on_fail, Some(ast::OnFailDecl::Absent(_)))
            || call.pages.as_ref().is_some_and(
                |pages| matches!(&pages.beyond, Some(beyond) if matches!(beyond.value, ast::BeyondDecl::Absent)),
            );
        let held = ContextValue::present(result(operation, !without_body, call.operation.span), side);
        let unread = operation.responses.iter().filter(|answer| answer.is_success() && answer.body.is_some());
        let unread = unread.map(|answer| &answer.media).find(|media| !media.is_read());
        if let (Some(name), Some(media)) = (&step.name, unread) {
            self.summary.opaque_results.push((
                name.value.clone(),
                call.operation.span,
                media.name().to_owned(),
            ));
        }
        // The result of several calls has no single status that could determine whether there is a
        // body.
        let cut = call.pages.is_some() || call.each.is_some();
        if let (Some(name), false) = (&step.name, cut) {
            let statuses = operation.responses.iter().filter(|one| one.is_success() && one.body.is_some());
            // Facts compare a status with literals, so the statuses of a class cannot be matched.
            let exact = statuses.filter_map(|response| match response.status {
                StatusPattern::Exact(status) => Some(status.to_string()),
                _ => None,
            });
            flow.with_body.push((name.value.clone(), exact.collect()));
        }
        let pages = self.pages(call, step, operation, &held, flow);
        let (poll, held) = match &call.poll {
            None => (Some(None), held),
            Some(poll) => match self.poll(poll, call, step, operation, held.clone(), flow) {
                None => (None, held),
                Some((poll, held)) => (Some(Some(poll)), held),
            },
        };
        let is_repeatable = effect == Effect::None || call.retry.as_ref().is_some_and(|flag| flag.value);
        if call.resume.is_empty() && !is_repeatable {
            flow.unremembered.get_or_insert_with(|| operation.key.to_string().into());
        }
        let head = CallHead {
            operation: operation.key.to_string().into(),
            host: operation.host,
            method: operation.key.method.clone(),
            path,
            query,
            headers: headers?,
            format: super::operations::format(operation, self.env.types(side)),
            answers: super::operations::answers(operation, self.env.types(side)),
            partial: super::operations::lists_partial(operation),
            effect,
            repeatable: is_repeatable,
            origin: self.env.origin(call.operation.span),
        };
        let made = plan::StepCall {
            head,
            body: body?,
            when: None,
            each: None,
            pages: pages?,
            poll: poll?,
            promises: promises(operation, self.env.types(side)),
            on_fail: on_fail?,
            resume: resume?,
        };
        Some((made, held))
    }

    /// Reports parts of the request that a remembered write depends on and its key lacks.
    fn check_key(&mut self, call: &plan::StepCall, flow: &Flow, span: Span) {
        let Some(key) = &call.resume else { return };
        let of_key = |expr: &plan::Expr| match expr {
            plan::Expr::At(location) => exact(location),
            _ => None,
        };
        // The gateway adds the current element to the key.
        let element = call.each.iter().map(|each| each.name.text.to_string());
        let covered: Vec<String> = key.iter().filter_map(of_key).chain(element).collect();
        let mut missing =
            flow.provenance.of_request(collect(|out| of_call(call, self.operation, out)), &covered);
        // The arrival identifies an attempt. The reply of the first attempt counts for all.
        missing.retain(|place| !plan::ARRIVAL.contains(&place.as_str()));
        if !missing.is_empty() {
            let written = key.iter().filter_map(|expr| match expr {
                plan::Expr::At(location) => Some(location.text.to_string()),
                _ => None,
            });
            let missing: Vec<String> = missing.into_iter().map(|place| format!("$.{place}")).collect();
            let is_kept = |place: &String| !missing.iter().any(|wide| place.starts_with(&format!("{wide}.")));
            // Suggest a complete key, in which wider places replace those within.
            let complete: Vec<String> = written.filter(is_kept).chain(missing.iter().cloned()).collect();
            self.findings.push(faults::key_lacks(span, &call.head.operation, &missing, &complete));
        }
    }

    /// Compiles the arguments of a call with an error, to report their own errors.
    fn look_at(&mut self, call: &CallDecl, flow: &Flow) {
        for (_, value) in call.query.iter().chain(&call.headers) {
            let _ = self.value(value, &self.scope(flow, None));
        }
        for path in &call.resume {
            let _ = self.reading(flow).find_spanned(path);
        }
    }

    fn call_body(
        &mut self,
        call: &CallDecl,
        operation: &Operation,
        flow: &Flow,
    ) -> Option<Option<plan::Expr>> {
        match (&call.body, &operation.body) {
            (None, None) => Some(None),
            (Some(body), None) => {
                self.findings.push(faults::body_not_taken(body.span, &operation.key));
                None
            }
            (None, Some(body)) if body.required => {
                self.findings.push(faults::body_needed(call.operation.span, &operation.key, &body.ty));
                None
            }
            (None, Some(_)) => Some(None),
            (Some(written), Some(body)) => {
                let side = self.serves.other();
                let wanted = ExprTarget { ty: &body.ty, side, required: body.required };
                self.value(written, &self.scope(flow, Some(wanted))).map(|made| Some(made.expr))
            }
        }
    }

    fn resume(&mut self, call: &CallDecl, effect: Effect, flow: &Flow) -> Option<Option<Vec<plan::Expr>>> {
        if call.resume.is_empty() {
            return Some(None);
        }
        if effect == Effect::None {
            self.findings.push(faults::resume_of_reading(call.resume[0].span));
            return None;
        }
        for path in &call.resume {
            if plan::ARRIVAL.iter().any(|place| path.value.strip_prefix("$.") == Some(place)) {
                self.findings.push(faults::key_of_arrival(path));
                return None;
            }
        }
        let places: Vec<_> = call
            .resume
            .iter()
            .map(|path| self.reading(flow).find_spanned(path).map(plan::Expr::from))
            .collect();
        places.into_iter().collect::<Option<Vec<_>>>().map(Some)
    }

    fn pages(
        &mut self,
        call: &CallDecl,
        step: &StepDecl,
        operation: &Operation,
        held: &ContextValue,
        flow: &Flow,
    ) -> Option<Option<Pages>> {
        let Some(pages) = &call.pages else { return Some(None) };
        let Some(paging) = &self.env.manifest().paging else {
            self.findings.push(faults::no_paging(pages.span));
            return None;
        };
        let has_parameter = operation.query.iter().any(|parameter| parameter.name == paging.query.value);
        let list = success_body(operation).is_some_and(|(ty, _)| {
            matches!(self.env.types(held.side).resolve(ty).kind, TypeKind::Array(_) | TypeKind::Any)
        });
        if !has_parameter || !list || effect(&operation.key.method, call.effect.as_ref()) == Effect::Write {
            self.findings.push(faults::not_paged(pages.span, &operation.key, &paging.query.value));
            return None;
        }
        // `until` reads the pages fetched so far by the name of the step.
        let until = match &pages.until {
            None => None,
            Some(path) => {
                let with_pages = step.name.as_ref().map(|name| flow.with(&name.value, held.clone()));
                let flow = with_pages.as_ref().unwrap_or(flow);
                Some(self.reading(flow).find(&path.value, path.span)?.location)
            }
        };
        let (upto, size) = (pages.upto.value, paging.size.value);
        let read = format!("`{}` is read up to {upto} pages of {size}", operation.key);
        let beyond = match &pages.beyond {
            None => {
                self.findings.push(faults::bound_unsaid(pages.span, "the pages", BEYOND_PAGES));
                return None;
            }
            Some(Spanned { value: ast::BeyondDecl::Cut, span }) => {
                self.limit(format!("{read}; a longer list is cut."), *span);
                plan::Beyond::Cut
            }
            Some(Spanned { value: ast::BeyondDecl::Absent, span }) => {
                self.limit(format!("{read}; of a longer list nothing is used."), *span);
                plan::Beyond::Absent
            }
            Some(Spanned { value: ast::BeyondDecl::Refuse(refuse), .. }) => {
                plan::Beyond::Refuse(self.refusal(refuse)?)
            }
        };
        Some(Some(Pages {
            beyond,
            parameter: paging.query.value.clone(),
            first: paging.first.value,
            upto: pages.upto.value as u32,
            size: paging.size.value as u32,
            until,
        }))
    }

    fn on_fail(
        &mut self,
        call: &CallDecl,
        operation: &Operation,
        after_write: bool,
        flow: &Flow,
    ) -> Option<plan::OnFail> {
        match &call.on_fail {
            // A failure here leaves the request half done, so its handling must be explicit.
            None if after_write => {
                self.findings.push(faults::on_fail_needed(call.operation.span));
                None
            }
            None | Some(ast::OnFailDecl::Pass) => Some(plan::OnFail::Pass),
            Some(ast::OnFailDecl::PassWith(headers)) => {
                self.made_headers(headers, flow).map(plan::OnFail::PassWith)
            }
            Some(ast::OnFailDecl::Answer(answer)) => self.answer(answer, flow).map(plan::OnFail::Answer),
            Some(ast::OnFailDecl::Refuse(refuse)) => self.refusal(refuse).map(plan::OnFail::Refuse),
            Some(ast::OnFailDecl::Absent(statuses)) => {
                let known = |status: &&Spanned<i64>| operation.response(status.value as u16).is_none();
                let side = self.serves.other();
                for status in statuses.iter().filter(known) {
                    let side = self.env.side_name(side);
                    let value = status.value as u16;
                    self.findings.push(faults::unknown_status(value, status.span, side, operation));
                }
                let statuses = statuses.iter().map(|status| status.value as u16);
                Some(plan::OnFail::Absent(statuses.collect()))
            }
            Some(ast::OnFailDecl::Use(value)) => {
                let Some((ty, _)) = success_body(operation) else {
                    self.findings.push(faults::nothing_to_use(value.span, &operation.key));
                    return None;
                };
                let wanted = ExprTarget { ty, side: self.serves.other(), required: true };
                self.value(value, &self.scope(flow, Some(wanted))).map(|made| plan::OnFail::Use(made.expr))
            }
        }
    }
}

/// Returns the type of an operation's successful response, and whether all successes have a body.
pub(super) fn success_body(operation: &Operation) -> Option<(&Type, bool)> {
    let success = |pattern: StatusPattern| match pattern {
        StatusPattern::Exact(status) => (200..300).contains(&status),
        StatusPattern::Class(class) => class == 2,
        StatusPattern::Default => false,
    };
    let responses = || operation.responses.iter().filter(|response| success(response.status));
    let ty = responses().find_map(|response| response.body.as_ref())?;
    Some((ty, responses().all(|response| response.body.is_some())))
}

/// Returns the guarantees of the contract for successful responses. Opaque bodies count as absent.
fn promises(operation: &Operation, types: &Types) -> Vec<plan::Promise> {
    let promise = |response: &Response| {
        let from = match response.status {
            StatusPattern::Exact(status) => plan::StatusFrom::Exact(status),
            StatusPattern::Class(class) => plan::StatusFrom::Class(class),
            StatusPattern::Default => return None,
        };
        let body = match &response.body {
            Some(ty) if response.media.is_read() => Some(expected::answer(ty, types)),
            _ => None,
        };
        Some(plan::Promise { from, body })
    };
    let successes = operation.responses.iter().filter(|response| response.is_success());
    let mut promises: Vec<_> = successes.filter_map(promise).collect();
    // The first match applies, and exact statuses precede their class.
    promises.sort_by_key(|promise| matches!(promise.from, plan::StatusFrom::Class(_)));
    promises
}

/// Returns the type of a call's result. `with_body`: whether the contract's guarantee of a body
/// applies.
pub(super) fn result(operation: &Operation, with_body: bool, span: Span) -> Type {
    let body = success_body(operation);
    reply(body.map(|(ty, _)| ty.clone()), with_body && body.is_some_and(|(_, always)| always), span)
}

/// Returns the minimum and maximum number of calls of a block if no check and no call fails.
pub(super) fn count(block: &plan::Block) -> (u32, u32) {
    let (mut least, mut most) = match &block.end {
        plan::End::Answer(_) | plan::End::Refuse(_) => (0, 0),
        plan::End::Decide(decision) => {
            let ends = decision.outcomes.iter().map(|outcome| count(&outcome.block));
            ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0))
        }
    };
    let made: Vec<&plan::StepCall> = block
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            plan::StepAction::Call(call) => Some(&**call),
            _ => None,
        })
        .collect();
    for (at, call) in made.iter().enumerate() {
        // Exactly one of two calls with opposite conditions is sent.
        if let Some(other) = made[..at].iter().find(|other| are_opposite(other, call)) {
            least += 1;
            most = most.saturating_add(at_most(call).saturating_sub(at_most(other)));
            continue;
        }
        least += u32::from(call.when.is_none() && call.each.is_none());
        most = most.saturating_add(at_most(call));
    }
    (least, most)
}

/// Returns the maximum number of calls of a step.
fn at_most(call: &plan::StepCall) -> u32 {
    let once = call.pages.as_ref().map_or(1, |pages| pages.upto);
    let once = call.poll.as_ref().map_or(once, plan::Poll::most);
    call.each.as_ref().map_or(once, |each| each.upto.saturating_mul(once))
}

/// Returns whether exactly one of two calls is sent.
fn are_opposite(a: &plan::StepCall, b: &plan::StepCall) -> bool {
    use plan::Predicate::{AnyPresent, NonePresent};
    // With `each`, conditions are evaluated per element, so both calls may occur.
    if a.each.is_some() || b.each.is_some() {
        return false;
    }
    match (&a.when, &b.when) {
        (Some(NonePresent(these)), Some(AnyPresent(those)))
        | (Some(AnyPresent(these)), Some(NonePresent(those))) => {
            these.iter().map(|place| &place.text).eq(those.iter().map(|place| &place.text))
        }
        _ => false,
    }
}

/// Returns whether a call writes, judged by its text. An unknown method is reported elsewhere.
fn is_write(call: &CallDecl) -> bool {
    let method = call.operation.value.split_whitespace().next();
    let known = OpKey::METHODS.iter().find(|(_, known)| Some(known.as_str()) == method);
    known.is_some_and(|(_, method)| effect(method, call.effect.as_ref()) == Effect::Write)
}
