//! Compiles blocks: steps and their end. Results are defined before they are read, every result is
//! read, calls after a write declare their failure handling, and bodies match the called contract.

use super::context::{ContextValue, StepContext, fan_out, reply};
use super::expr::ExprTarget;
use super::faults;
use super::operations::effect;
use super::provenance::{collect_sorted, exact, of_call};
use super::route::{AnswerContext, RouteCheck};
use crate::contract::{JsonKind, OpKey, Operation, Response, StatusPattern, Type, TypeKind, Types};
use crate::diagnostic::Span;
use crate::mapping::ast::{
    self, AnswerDecl, BlockDecl, CallDecl, Decide, Pick, Spanned, StepActionDecl, StepDecl,
};
use crate::mapping::expected;
use switchback_plan::{self as plan, CallHead, Effect, Key, Pages, SideId};

/// Reserved names that step results cannot have.
const TAKEN: &[&str] = &["request", "config", "reply"];

/// Help text for pages beyond a bound.
const BEYOND_PAGES: &str = "add `beyond: cut`, where the first pages are enough, `beyond: absent`, where a part is of no use, or `beyond: {refuse: reason}`";

impl<'a> RouteCheck<'_, 'a> {
    /// Compiles a block. Returns `None` if it reports an error.
    pub(super) fn block(&mut self, block: &'a BlockDecl) -> Option<plan::Block> {
        // Names of later steps, to explain a use before the definition.
        let outer = std::mem::take(&mut self.context.later);
        let names = block.steps.iter().filter_map(|step| step.name.as_ref());
        self.context.later = names.map(|name| (name.value.clone(), name.span)).collect();
        let steps: Vec<_> = block.steps.iter().map(|step| self.step(step)).collect();
        self.context.later = outer;
        let end = match block.end.as_ref()? {
            ast::BlockEnd::Answer(answer) => {
                // A client error implies that the request had no effect, which is false after a
                // write.
                if (400..500).contains(&answer.status.value) {
                    self.too_late(answer.span);
                }
                self.answer(answer).map(plan::End::Answer)
            }
            ast::BlockEnd::Refuse(refuse) => {
                self.too_late(refuse.reason.span);
                self.refuses = true;
                self.refusal(refuse).map(plan::End::Refuse)
            }
            ast::BlockEnd::Decide(decide) => self.decision(decide).map(|d| plan::End::Decide(Box::new(d))),
        };
        let steps = steps.into_iter().collect::<Option<Vec<_>>>()?;
        Some(plan::Block { steps, end: end? })
    }

    fn step(&mut self, step: &'a StepDecl) -> Option<plan::Step> {
        if let Some(name) = &step.name {
            self.check_name(name);
        }
        let faults_met = self.context.faults_met;
        let made = match &step.action {
            StepActionDecl::Call(call) => self.conditional_call(call, step),
            StepActionDecl::Make(value) => {
                if let (Some(name), ast::ExprKind::Object(members)) = (&step.name, &value.kind) {
                    let members = members.iter().map(|(member, _)| (name.value.clone(), member.clone()));
                    self.made.extend(members);
                }
                self.make(value)
            }
            StepActionDecl::Pick(pick) => self.picks(std::slice::from_ref(pick), step.span),
            StepActionDecl::First(picks) => self.picks(picks, step.span),
            StepActionDecl::Recall(recall) => self.recall(recall, step),
            StepActionDecl::Keep(keep) => self.keep(keep, step),
        };
        if let Some(name) = &step.name {
            self.context.later.retain(|(later, _)| *later != name.value);
            self.results.push(name.clone());
            // Selections count as well: they select from replies.
            if !matches!(step.action, StepActionDecl::Make(_)) {
                self.called_as.push(name.value.clone());
            }
            // After an error the result has an unknown type, so that its readers report no further
            // error.
            let held = made.as_ref().map(|(_, held)| held.clone());
            let unknown =
                || ContextValue { absent: false, ..ContextValue::any(self.serves.other(), step.span) };
            let is_faulty = made.is_none() || self.context.faults_met > faults_met;
            self.context.set(&name.value, held.unwrap_or_else(unknown));
            // The type of a reply comes from the contract, even if the request has an error.
            if made.is_none() || (is_faulty && !matches!(step.action, StepActionDecl::Call(_))) {
                self.context.faulty.insert(name.value.clone());
            }
        }
        let (action, ..) = made?;
        if let Some(name) = &step.name {
            self.context.proofs.derive_result(&name.value, &action);
            self.context.provenance.record(&name.value, &action, self.operation);
        }
        let name = step.name.as_ref().map(|name| Key::new(&name.value));
        Some(plan::Step { name, action, origin: self.env.origin(step.span) })
    }

    /// Reports a refusal after a write, unless a decision table has examined a reply since.
    fn too_late(&mut self, span: Span) {
        if let (Some(write), false) = (&self.wrote, self.judged) {
            self.findings.push(faults::refused_late(write, span));
        }
    }

    pub(super) fn check_name(&mut self, name: &Spanned<String>) {
        if TAKEN.contains(&name.value.as_str()) || self.context.get(&name.value).is_some() {
            self.findings.push(faults::name_taken(name));
        }
    }

    /// Compiles a `make` step, whose value later calls send.
    fn make(&mut self, value: &ast::ExprDecl) -> Option<(plan::StepAction, ContextValue)> {
        (self.makes_for, self.makes) = (self.serves.other(), true);
        let made = self.value(value, None);
        (self.makes_for, self.makes) = (self.serves, false);
        made.map(|made| (plan::StepAction::Make(made.expr), made.held))
    }

    /// Compiles a call with its `each:` and `when:`. The current element and the facts of the
    /// condition hold within the call.
    fn conditional_call(
        &mut self,
        call: &'a CallDecl,
        step: &StepDecl,
    ) -> Option<(plan::StepAction, ContextValue)> {
        let each = match &call.each {
            None => None,
            Some(each) => Some(self.each(each, call, step)?),
        };
        let before = self.context.clone();
        let when = match &call.when {
            None => None,
            Some(when) => match self.condition(when) {
                None => {
                    self.look_at(call);
                    self.leave(before);
                    call.each.iter().for_each(|each| self.context.remove(&each.name.value));
                    return None;
                }
                Some(condition) => {
                    self.context.learn_all(&condition.facts, self.env.world.contracts);
                    Some(condition.predicate)
                }
            },
        };
        let made = self.call(call, step);
        self.leave(before);
        if let Some(each) = &call.each {
            self.context.remove(&each.name.value);
            if !self.context.is_root_read(&each.name.value) {
                self.findings.push(faults::unread_element(&each.name));
            }
        }
        let (mut made, held) = made?;
        let conditional = when.is_some();
        made.when = when;
        let Some((each, element)) = each else {
            // A call that is skipped leaves no result.
            let held = ContextValue { absent: conditional, ..held };
            call.resume.first().iter().for_each(|key| self.check_key(&made, key.span));
            return Some((plan::StepAction::Call(Box::new(made)), held));
        };
        let held = fan_out(&each.name.text, element, held.ty, step.span);
        made.each = Some(each);
        call.resume.first().iter().for_each(|key| self.check_key(&made, key.span));
        Some((plan::StepAction::Call(Box::new(made)), held))
    }

    /// Restores the context before a call, but keeps the record of reads.
    fn leave(&mut self, before: StepContext) {
        let within = std::mem::replace(&mut self.context, before);
        self.context.read.extend(within.read);
        self.context.with_body = within.with_body;
        self.context.faults_met = within.faults_met;
    }

    /// Compiles `each: {name: list}`, and adds the current element to the context.
    fn each(
        &mut self,
        each: &ast::EachDecl,
        call: &CallDecl,
        step: &StepDecl,
    ) -> Option<(plan::Each, ContextValue)> {
        self.check_name(&each.name);
        if step.name.is_none() {
            self.findings.push(faults::each_without_name(call.operation.span));
        }
        if let Some(until) = call.pages.as_ref().and_then(|pages| pages.until.as_ref()) {
            // The list that belongs to an element has no place in the context while its pages are
            // read.
            self.findings.push(faults::each_with(until.span, "pages: {until: …}"));
        }
        let elements = self.elements(&each.name, &each.list, step);
        // Compile `beyond:` even if the list has an error, to report its own errors.
        let most = elements.as_ref().and_then(|(.., most)| *most);
        let beyond = self.beyond_elements(each, call, most);
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
                self.too_late(span);
                self.refuses = true;
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

    /// Records a restriction that a line of the mapping implies.
    pub(super) fn limit(&mut self, text: String, span: Span) {
        let note =
            plan::Note { kind: plan::NoteKind::Differs, name: None, text, origin: self.env.origin(span) };
        if !self.bounds.contains(&note) {
            self.bounds.push(note);
        }
    }

    /// Marks an element as unknown if its list is unknown.
    pub(super) fn element_of_fault(&mut self, name: &Spanned<String>, faults_met: usize) {
        if self.context.faults_met > faults_met {
            self.context.faulty.insert(name.value.clone());
        }
    }

    /// Resolves a list of a reply, adds its current element to the context, and returns its maximum
    /// length.
    pub(super) fn elements(
        &mut self,
        name: &Spanned<String>,
        list: &Spanned<String>,
        step: &StepDecl,
    ) -> Option<(plan::Location, ContextValue, Option<u64>)> {
        let faults_met = self.context.faults_met;
        let found = self.reading().find_spanned_any(list)?;
        self.element_of_fault(name, faults_met);
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
        self.context.set(&name.value, element.clone());
        self.context.proofs.derive_element(&name.value, &found.location);
        self.context.provenance.record_element(&name.value, &found.location);
        Some((found.location, element, most))
    }

    fn call(&mut self, call: &'a CallDecl, step: &StepDecl) -> Option<(plan::StepCall, ContextValue)> {
        let side = self.serves.other();
        // Compile all parts before the first `?`, so that one error does not hide others.
        if call.each.is_some() && self.wrote.is_none() && is_write(call) {
            // The second of these calls follows the first write, so the rules for calls after a
            // write apply to all of them.
            (self.wrote, self.judged) = (Some(call.operation.value.as_str().into()), false);
        }
        let after_write = self.wrote.is_some();
        let target = self.target(&call.operation, side, true);
        let Some((operation, path)) = target else {
            self.look_at(call);
            return None;
        };
        // Recorded even if the rest of the call has errors, for the checks of statuses and headers.
        self.called.push(operation);
        let effect = effect(&operation.key.method, call.effect.as_ref());
        let paged = call.pages.as_ref().and(self.env.manifest().paging.as_ref());
        let parameter = paged.map(|paging| paging.query.value.as_str());
        let query = self.call_query(&call.query, operation, side, call.operation.span, parameter);
        let mut headers = self.made_headers(&call.headers);
        headers.iter_mut().for_each(|headers| self.sent_headers(headers));
        if let Some(headers) = &headers {
            self.required_headers(headers, operation, call.operation.span);
        }
        headers.iter_mut().for_each(|headers| self.json_names(operation, headers));
        let body = self.call_body(call, operation, side);
        let resume = self.resume(call, effect);
        if effect == Effect::Write && self.harvests {
            self.findings.push(faults::harvest_writes(call.operation.span, &operation.key));
        }
        // Set before the failure handling is compiled, which may run after this write has taken
        // effect.
        if effect == Effect::Write && (self.wrote.is_none() || self.keeps) {
            self.keeps = false;
            (self.wrote, self.judged) = (Some(operation.key.to_string().into()), false);
        }
        let on_fail = self.on_fail(call, operation, after_write);
        let without_body = matches!(call.on_fail, Some(ast::OnFailDecl::Absent(_)))
            || call.pages.as_ref().is_some_and(
                |pages| matches!(&pages.beyond, Some(beyond) if matches!(beyond.value, ast::BeyondDecl::Absent)),
            );
        let held = ContextValue::present(result(operation, !without_body, call.operation.span), side);
        let unread = operation.responses.iter().filter(|answer| answer.is_success() && answer.body.is_some());
        let unread = unread.map(|answer| &answer.media).find(|media| !media.is_read());
        if let (Some(name), Some(media)) = (&step.name, unread) {
            self.opaque_results.push((name.value.clone(), call.operation.span, media.name().to_owned()));
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
            self.context.with_body.push((name.value.clone(), exact.collect()));
        }
        let pages = self.pages(call, step, operation, effect, &held);
        let (poll, held) = match &call.poll {
            None => (Some(None), held),
            Some(poll) => match self.poll(poll, call, step, effect, held.clone()) {
                None => (None, held),
                Some((poll, held)) => (Some(Some(poll)), held),
            },
        };
        let is_repeatable = effect == Effect::None || call.retry.as_ref().is_some_and(|flag| flag.value);
        if call.resume.is_empty() && !is_repeatable {
            self.unremembered.get_or_insert_with(|| operation.key.to_string().into());
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
    pub(super) fn check_key(&mut self, call: &plan::StepCall, span: Span) {
        let Some(key) = &call.resume else { return };
        let of_key = |expr: &plan::Expr| match expr {
            plan::Expr::At(location) => exact(location),
            _ => None,
        };
        // The gateway adds the current element to the key.
        let element = call.each.iter().map(|each| each.name.text.to_string());
        let covered: Vec<String> = key.iter().filter_map(of_key).chain(element).collect();
        let missing = self
            .context
            .provenance
            .of_request(collect_sorted(|out| of_call(call, self.operation, out)), &covered);
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
    fn look_at(&mut self, call: &CallDecl) {
        for (_, value) in call.query.iter().chain(&call.headers) {
            let _ = self.value(value, None);
        }
        for path in &call.resume {
            let _ = self.reading().find_spanned(path);
        }
    }

    fn call_body(
        &mut self,
        call: &CallDecl,
        operation: &Operation,
        side: SideId,
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
                let wanted = ExprTarget { ty: &body.ty, side, required: body.required };
                self.value(written, Some(wanted)).map(|made| Some(made.expr))
            }
        }
    }

    fn resume(&mut self, call: &CallDecl, effect: Effect) -> Option<Option<Vec<plan::Expr>>> {
        if call.resume.is_empty() {
            return Some(None);
        }
        if effect == Effect::None {
            self.findings.push(faults::resume_of_reading(call.resume[0].span));
            return None;
        }
        let places: Vec<_> =
            call.resume.iter().map(|path| self.reading().find_spanned(path).map(plan::Expr::from)).collect();
        places.into_iter().collect::<Option<Vec<_>>>().map(Some)
    }

    fn pages(
        &mut self,
        call: &CallDecl,
        step: &StepDecl,
        operation: &Operation,
        effect: Effect,
        held: &ContextValue,
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
        if !has_parameter || !list || effect == Effect::Write {
            self.findings.push(faults::not_paged(pages.span, &operation.key, &paging.query.value));
            return None;
        }
        // `until` reads the pages fetched so far by the name of the step.
        let until = match &pages.until {
            None => None,
            Some(path) => {
                if let Some(name) = &step.name {
                    self.context.set(&name.value, held.clone());
                }
                Some(self.reading().find(&path.value, path.span)?.location)
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
                self.refuses = true;
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

    fn on_fail(&mut self, call: &CallDecl, operation: &Operation, after_write: bool) -> Option<plan::OnFail> {
        match &call.on_fail {
            // A failure here leaves the request half done, so its handling must be explicit.
            None if after_write => {
                self.findings.push(faults::on_fail_needed(call.operation.span));
                None
            }
            None | Some(ast::OnFailDecl::Pass) => Some(plan::OnFail::Pass),
            Some(ast::OnFailDecl::PassWith(headers)) => {
                self.made_headers(headers).map(plan::OnFail::PassWith)
            }
            Some(ast::OnFailDecl::Answer(answer)) => self.answer(answer).map(plan::OnFail::Answer),
            Some(ast::OnFailDecl::Refuse(refuse)) => {
                self.refuses = true;
                self.refusal(refuse).map(plan::OnFail::Refuse)
            }
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
                self.value(value, Some(wanted)).map(|made| plan::OnFail::Use(made.expr))
            }
        }
    }

    /// Compiles a selection. Its type is the common type of all choices, or unknown.
    fn picks(&mut self, picks: &[Pick], span: Span) -> Option<(plan::StepAction, ContextValue)> {
        let mut choices = Vec::new();
        let mut all: Vec<ContextValue> = Vec::new();
        // Without an unconditional choice the result may be absent.
        let certain = picks.iter().any(|pick| pick.when.is_none());
        for pick in picks {
            let made = self.pick(pick);
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

    fn pick(&mut self, pick: &Pick) -> Option<(plan::Choice, ContextValue)> {
        let when = match &pick.when {
            Some(when) => Some(self.condition(when)?.predicate),
            None => None,
        };
        let found = self.reading().find(&pick.path.value, pick.path.span)?;
        let types = self.env.types(found.held.side);
        let resolved = types.resolve(&found.held.ty).kind;
        let (take, held) = match &pick.take {
            ast::TakeDecl::All => (plan::Take::All, found.held.clone()),
            ast::TakeDecl::Page(number) => {
                let page = self.page_of(number)?;
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
    fn page_of(&mut self, number: &Spanned<String>) -> Option<plan::PageOf> {
        let Some(paging) = &self.env.manifest().paging else {
            self.findings.push(faults::no_paging(number.span));
            return None;
        };
        let found = self.reading().find_spanned(number)?;
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
    pub(super) fn answer(&mut self, answer: &AnswerDecl) -> Option<plan::Answer> {
        let operation = self.operation;
        let status = self.promised_status(&answer.status);
        let mut headers = self.made_headers(&answer.headers);
        if let (Some(headers), true) = (&mut headers, answer.status.value < 300) {
            self.answered_headers.extend(headers.iter().map(|rule| rule.name.text.to_string()));
            headers.extend(self.approximate_header());
        }
        if let (Some(headers), Some(status), Some(_)) = (&mut headers, status, &answer.body) {
            self.json_name_of_answer(status, headers);
        }
        let promised = status.and_then(|status| operation.response(status));
        let body = match (&answer.body, promised.map(|response| response.body.as_ref())) {
            (None, None | Some(None)) => Some(None),
            (Some(body), None) => self.value(body, None).map(|made| Some(made.expr)),
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
                let place = AnswerContext { place: "$".to_owned(), unless_found: false };
                self.answers = (answer.status.value < 300).then_some(place);
                let made = self.value(body, Some(wanted)).map(|made| Some(made.expr));
                self.answers = None;
                made
            }
        };
        let legacy_forward = answer.legacy_forward[self.serves.place()].unwrap_or(false);
        Some(plan::Answer { status: status?, headers: headers?, body: body?, legacy_forward })
    }

    fn decision(&mut self, decide: &'a Decide) -> Option<plan::Decision> {
        let table = self.table(decide);
        let judged = self.judged;
        // If the table has an error, assume that it examines replies.
        self.judged |=
            table.as_ref().is_none_or(|table| table.columns.iter().any(|one| self.is_of_reply(one)));
        let mut outcomes = Vec::new();
        for (at, outcome) in decide.outcomes.iter().enumerate() {
            // Each outcome starts from the same state.
            let (before, wrote, judged, keeps) =
                (self.context.clone(), self.wrote.clone(), self.judged, self.keeps);
            let unremembered = self.unremembered.clone();
            let facts = table.as_ref().map(|table| table.facts[at].as_slice()).unwrap_or_default();
            self.context.learn_all(facts, self.env.world.contracts);
            let (noted, named) = (self.notes.len(), self.approximations.len());
            self.sentences(&outcome.notes);
            let notes = self.notes[noted..].to_vec();
            let block = self.block(&outcome.block);
            let read = std::mem::replace(&mut self.context, before).read;
            self.context.read.extend(read);
            (self.wrote, self.judged, self.keeps) = (wrote, judged, keeps);
            self.unremembered = unremembered;
            self.approximations.truncate(named);
            outcomes.push(block.map(|block| plan::Outcome {
                name: outcome.name.value.clone(),
                block,
                notes,
                origin: self.env.origin(outcome.name.span),
            }));
        }
        self.judged = judged;
        let outcomes = outcomes.into_iter().collect::<Option<Vec<_>>>()?;
        let table = table?;
        Some(plan::Decision { columns: table.columns, rows: table.rows, outcomes })
    }
}

impl RouteCheck<'_, '_> {
    /// Returns whether a column examines a reply.
    fn is_of_reply(&self, column: &plan::Column) -> bool {
        let of_reply = |place: &plan::Location| {
            let root = super::proof::names_of(place).into_iter().next();
            root.is_some_and(|root| self.called_as.contains(&root))
        };
        match column {
            plan::Column::Place(place) => of_reply(place),
            plan::Column::Holds(predicate) => predicate.places().into_iter().any(of_reply),
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
