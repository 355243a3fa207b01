//! Compiles blocks: steps and their end. Results are defined before they are read, every result is
//! read, calls after a write declare their failure handling, and bodies match the called contract.

use super::context::{ContextValue, fan_out, reply};
use super::expr::{ExprScope, ExprTarget};
use super::faults;
use super::flow::{Flow, Write};
use super::operations::effect;
use super::provenance::{collect_sorted, exact, of_call};
use super::route::{AnswerPlace, RouteCheck};
use crate::contract::{JsonKind, OpKey, Operation, Response, StatusPattern, Type, TypeKind, Types};
use crate::diagnostic::Span;
use crate::mapping::ast::{
    self, AnswerDecl, BlockDecl, CallDecl, Decide, Pick, Spanned, StepActionDecl, StepDecl,
};
use crate::mapping::expected;
use switchback_plan::{self as plan, CallHead, Effect, Key, Pages};

/// Reserved names that step results cannot have.
const TAKEN: &[&str] = &["request", "config", "reply"];

/// Help text for pages beyond a bound.
const BEYOND_PAGES: &str = "add `beyond: cut`, where the first pages are enough, `beyond: absent`, where a part is of no use, or `beyond: {refuse: reason}`";

impl<'a> RouteCheck<'_, 'a> {
    /// Compiles a block. Returns no block if it reports an error, and the flow after the steps.
    pub(super) fn block(&mut self, block: &'a BlockDecl, mut flow: Flow) -> (Option<plan::Block>, Flow) {
        // Names of later steps, to explain a use before the definition.
        let names = block.steps.iter().filter_map(|step| step.name.as_ref());
        flow.later = names.map(|name| (name.value.clone(), name.span)).collect();
        let steps: Vec<_> = block.steps.iter().map(|step| self.step(step, &mut flow)).collect();
        let end = block.end.as_ref().and_then(|end| self.end(end, &flow));
        let steps = steps.into_iter().collect::<Option<Vec<_>>>();
        (steps.zip(end).map(|(steps, end)| plan::Block { steps, end }), flow)
    }

    fn end(&mut self, end: &'a ast::BlockEnd, flow: &Flow) -> Option<plan::End> {
        match end {
            ast::BlockEnd::Answer(answer) => {
                // A client error implies that the request had no effect, which is false after a
                // write.
                if (400..500).contains(&answer.status.value) {
                    self.too_late(answer.span, flow);
                }
                self.answer(answer, flow).map(plan::End::Answer)
            }
            ast::BlockEnd::Refuse(refuse) => {
                self.too_late(refuse.reason.span, flow);
                self.refusal(refuse).map(plan::End::Refuse)
            }
            ast::BlockEnd::Decide(decide) => {
                self.decision(decide, flow).map(|decision| plan::End::Decide(Box::new(decision)))
            }
        }
    }

    /// Compiles a step, and adds its result and its writes to the flow.
    fn step(&mut self, step: &'a StepDecl, flow: &mut Flow) -> Option<plan::Step> {
        if let Some(name) = &step.name {
            self.check_name(name, flow);
        }
        let faulty = self.summary.reads.faulty;
        let made = match &step.action {
            StepActionDecl::Call(call) => self.conditional_call(call, step, flow),
            StepActionDecl::Make(value) => {
                if let (Some(name), ast::ExprKind::Object(members)) = (&step.name, &value.kind) {
                    let place = |member: &Spanned<String>| format!("{}.{}", name.value, member.value);
                    let members = members.iter().map(|(member, _)| (place(member), member.clone()));
                    self.summary.results.extend(members);
                }
                // Later calls send the value.
                let scope = ExprScope { side: self.serves.other(), makes: true, ..self.scope(flow, None) };
                self.value(value, &scope).map(|made| (plan::StepAction::Make(made.expr), made.held))
            }
            StepActionDecl::Pick(pick) => self.picks(std::slice::from_ref(pick), step.span, flow),
            StepActionDecl::First(picks) => self.picks(picks, step.span, flow),
            StepActionDecl::Recall(recall) => self.recall(recall, step, flow),
            StepActionDecl::Keep(keep) => self.keep(keep, step, flow),
        };
        if let Some(name) = &step.name {
            flow.later.retain(|(later, _)| *later != name.value);
            self.summary.results.push((name.value.clone(), name.clone()));
            // Selections count as well: they select from replies.
            if !matches!(step.action, StepActionDecl::Make(_)) {
                flow.called_as.push(name.value.clone());
            }
            // After an error the result has an unknown type, so that its readers report no further
            // error.
            let held = made.as_ref().map(|(_, held)| held.clone());
            let unknown =
                || ContextValue { absent: false, ..ContextValue::any(self.serves.other(), step.span) };
            flow.set(&name.value, held.unwrap_or_else(unknown));
            // The type of a reply comes from the contract and that of an entry from its archive,
            // even if the request has an error.
            let is_declared = matches!(step.action, StepActionDecl::Call(_) | StepActionDecl::Recall(_));
            if made.is_none() || (self.summary.reads.faulty > faulty && !is_declared) {
                flow.faulty.insert(name.value.clone());
            }
        }
        let (action, ..) = made?;
        if let Some(name) = &step.name {
            flow.proofs.derive_result(&name.value, &action);
            flow.provenance.record(&name.value, &action, self.operation);
        }
        let name = step.name.as_ref().map(|name| Key::new(&name.value));
        Some(plan::Step { name, action, origin: self.env.origin(step.span) })
    }

    /// Reports a refusal after a write, unless a decision table has examined a reply since.
    fn too_late(&mut self, span: Span, flow: &Flow) {
        if let Some(write) = flow.wrote.as_ref().filter(|write| !write.is_judged) {
            self.findings.push(faults::refused_late(&write.name, span));
        }
    }

    pub(super) fn check_name(&mut self, name: &Spanned<String>, flow: &Flow) {
        if TAKEN.contains(&name.value.as_str()) || flow.get(&name.value).is_some() {
            self.findings.push(faults::name_taken(name));
        }
    }

    /// Compiles a call with its `each:` and `when:`. The current element and the facts of the
    /// condition hold within the call only.
    fn conditional_call(
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

    /// Resolves a list of a reply, adds its current element to the flow, and returns its maximum
    /// length.
    pub(super) fn elements(
        &mut self,
        name: &Spanned<String>,
        list: &Spanned<String>,
        step: &StepDecl,
        flow: &mut Flow,
    ) -> Option<(plan::Location, ContextValue, Option<u64>)> {
        let faulty = self.summary.reads.faulty;
        let found = self.reading(flow).find(&list.value, list.span)?;
        if self.summary.reads.faulty > faulty {
            flow.faulty.insert(name.value.clone());
        }
        let side = self.serves.other();
        let types = self.env.types(found.held.side);
        let (element, most) = match types.resolve(&found.held.ty).kind {
            TypeKind::Array(array) => ((*array.items).clone(), array.max_items),
            TypeKind::Any => (Type::any(step.span), None),
            _ => {
                self.findings.push(faults::each_of_no_list(list.span, &found.held.ty));
                return None;
            }
        };
        if found.held.side != side && !matches!(element.kind, TypeKind::Any) {
            self.findings.push(faults::each_of_request(list.span));
            return None;
        }
        let element = ContextValue::present(element, side);
        flow.set(&name.value, element.clone());
        flow.proofs.derive_element(&name.value, &found.location);
        flow.provenance.record_element(&name.value, &found.location);
        Some((found.location, element, most))
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
        let missing =
            flow.provenance.of_request(collect_sorted(|out| of_call(call, self.operation, out)), &covered);
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

    /// Compiles a selection. Its type is the common type of all choices, or unknown.
    fn picks(&mut self, picks: &[Pick], span: Span, flow: &Flow) -> Option<(plan::StepAction, ContextValue)> {
        let mut choices = Vec::new();
        let mut all: Vec<ContextValue> = Vec::new();
        // Without an unconditional choice the result may be absent.
        let certain = picks.iter().any(|pick| pick.when.is_none());
        for pick in picks {
            let made = self.pick(pick, flow);
            choices.push(made.map(|(choice, held)| {
                all.push(held);
                choice
            }));
        }
        let choices = choices.into_iter().collect::<Option<Vec<_>>>()?;
        let Some((first, others)) = all.split_first() else {
            self.findings.push(faults::no_choice(span));
            return None;
        };
        // The choices may have different maximum lengths.
        let cut = others.iter().any(|other| other.most() != first.most());
        let kind = |held: &ContextValue| held.clone().with_most(None).ty.kind;
        // Lengths are compared separately, because they do not affect the element type.
        let same = others.iter().all(|other| kind(other) == kind(first) && other.side == first.side);
        let absent = !certain || all.iter().any(|held| held.absent);
        let held = match same {
            true if cut => ContextValue { absent, ..first.clone().with_most(None) },
            true => ContextValue { absent, ..first.clone() },
            false => ContextValue::any(first.side, span),
        };
        Some((plan::StepAction::Select(plan::Selection { choices }), held))
    }

    fn pick(&mut self, pick: &Pick, flow: &Flow) -> Option<(plan::Choice, ContextValue)> {
        let when = match &pick.when {
            Some(when) => Some(self.condition(when, flow)?.predicate),
            None => None,
        };
        let found = self.reading(flow).find(&pick.path.value, pick.path.span)?;
        let types = self.env.types(found.held.side);
        let resolved = types.resolve(&found.held.ty).kind;
        let (take, held) = match &pick.take {
            ast::TakeDecl::All => (plan::Take::All, found.held.clone()),
            ast::TakeDecl::Page(number) => {
                let page = self.page_of(number, flow)?;
                let most = u64::from(page.size);
                (plan::Take::Page(page), found.held.clone().with_most(Some(most)))
            }
            take => {
                // The result is one of the matches; for a singular path, the match itself.
                let item = match resolved {
                    TypeKind::Array(array) if !found.is_singular() => {
                        ContextValue { ty: (*array.items).clone(), side: found.held.side, absent: true }
                    }
                    _ => ContextValue { absent: true, ..found.held.clone() },
                };
                match take {
                    ast::TakeDecl::Newest(members) => {
                        let known: Vec<_> = members.iter().map(|member| self.newest(&item, member)).collect();
                        known.into_iter().collect::<Option<()>>()?;
                        let keys = members.iter().map(|member| Key::new(&member.value));
                        (plan::Take::Newest(keys.collect()), item)
                    }
                    _ => (plan::Take::First, item),
                }
            }
        };
        Some((plan::Choice { when, from: found.location, take }, held))
    }

    /// Compiles a page number that slices a list assembled by the route.
    fn page_of(&mut self, number: &Spanned<String>, flow: &Flow) -> Option<plan::PageOf> {
        let Some(paging) = &self.env.manifest().paging else {
            self.findings.push(faults::no_paging(number.span));
            return None;
        };
        let found = self.reading(flow).find_spanned(number)?;
        self.is_scalar(&found.held, "the number of a page", number.span)?;
        let (first, size) = (paging.first.value, paging.size.value as u32);
        Some(plan::PageOf { at: found.location, first, size })
    }

    /// Checks that a member for `newest:` is a text or a number.
    fn newest(&mut self, item: &ContextValue, member: &Spanned<String>) -> Option<()> {
        let types = self.env.types(item.side);
        let TypeKind::Object(object) = types.resolve(&item.ty).kind else { return Some(()) };
        let Some(field) = object.field(&member.value) else {
            let known: Vec<&str> = object.fields.iter().map(|field| field.name.as_str()).collect();
            self.findings.push(faults::unknown_field(&member.value, member.span, &known));
            return None;
        };
        let kinds = types.json_kinds(&field.ty);
        if !kinds.contains(&JsonKind::String) && !kinds.contains(&JsonKind::Number) {
            self.findings.push(faults::newest_by(member.span, &field.ty));
            return None;
        }
        Some(())
    }

    /// Compiles `{status, headers, body}` against the served contract.
    pub(super) fn answer(&mut self, answer: &AnswerDecl, flow: &Flow) -> Option<plan::Answer> {
        let operation = self.operation;
        let status = self.promised_status(&answer.status);
        let mut headers = self.made_headers(&answer.headers, flow);
        if let (Some(headers), true) = (&mut headers, answer.status.value < 300) {
            self.summary.answered_headers.extend(headers.iter().map(|rule| rule.name.text.to_string()));
            headers.extend(self.approximate_header(&flow.approximations));
        }
        if let (Some(headers), Some(status), Some(_)) = (&mut headers, status, &answer.body) {
            self.json_name_of_answer(status, headers);
        }
        let promised = status.and_then(|status| operation.response(status));
        let body = match (&answer.body, promised.map(|response| response.body.as_ref())) {
            (None, None | Some(None)) => Some(None),
            (Some(body), None) => self.value(body, &self.scope(flow, None)).map(|made| Some(made.expr)),
            (Some(body), Some(None)) => {
                self.findings.push(faults::answer_without_body(body.span, &operation.key, &answer.status));
                None
            }
            (None, Some(Some(ty))) => {
                self.findings.push(faults::answer_needs_body(&answer.status, &operation.key, ty));
                None
            }
            (Some(body), Some(Some(ty))) => {
                let wanted = ExprTarget { ty, side: self.serves, required: true };
                // Literals in an error are not replacements for the service's data.
                let place = AnswerPlace { place: "$".to_owned(), unless_found: false };
                let place = (answer.status.value < 300).then_some(place);
                let scope = ExprScope { answer: place, ..self.scope(flow, Some(wanted)) };
                self.value(body, &scope).map(|made| Some(made.expr))
            }
        };
        let legacy_forward = answer.legacy_forward[self.serves.place()].unwrap_or(false);
        Some(plan::Answer { status: status?, headers: headers?, body: body?, legacy_forward })
    }

    fn decision(&mut self, decide: &'a Decide, flow: &Flow) -> Option<plan::Decision> {
        let table = self.table(decide, flow);
        // If the table has an error, assume that it examines replies.
        let is_judged =
            table.as_ref().is_none_or(|table| table.columns.iter().any(|one| is_of_reply(one, flow)));
        let mut outcomes = Vec::new();
        for (at, outcome) in decide.outcomes.iter().enumerate() {
            let facts = table.as_ref().map_or(&[][..], |table| &table.facts[at]);
            let mut flow = flow.where_holds(facts, self.env.world.contracts);
            if let Some(write) = &mut flow.wrote {
                write.is_judged |= is_judged;
            }
            let noted = self.summary.notes.len();
            flow.approximate(self.sentences(&outcome.notes));
            let notes = self.summary.notes[noted..].to_vec();
            let (block, _) = self.block(&outcome.block, flow);
            outcomes.push(block.map(|block| plan::Outcome {
                name: outcome.name.value.clone(),
                block,
                notes,
                origin: self.env.origin(outcome.name.span),
            }));
        }
        let outcomes = outcomes.into_iter().collect::<Option<Vec<_>>>()?;
        let table = table?;
        Some(plan::Decision { columns: table.columns, rows: table.rows, outcomes })
    }
}

/// Returns whether a column examines a reply.
fn is_of_reply(column: &plan::Column, flow: &Flow) -> bool {
    let of_reply = |place: &plan::Location| {
        let root = super::proof::names_of(place).into_iter().next();
        root.is_some_and(|root| flow.called_as.contains(&root))
    };
    match column {
        plan::Column::Place(place) => of_reply(place),
        plan::Column::Holds(predicate) => predicate.places().into_iter().any(of_reply),
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
pub(super) fn calls(block: &plan::Block) -> (u32, u32) {
    let (mut least, mut most) = match &block.end {
        plan::End::Answer(_) | plan::End::Refuse(_) => (0, 0),
        plan::End::Decide(decision) => {
            let ends = decision.outcomes.iter().map(|outcome| calls(&outcome.block));
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
        // Exactly one of two calls with opposite conditions is made.
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

/// Returns whether exactly one of two calls is made.
fn are_opposite(a: &plan::StepCall, b: &plan::StepCall) -> bool {
    use plan::Predicate::{AnyPresent, NonePresent};
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
