//! Compiles blocks: steps and their end. Results are defined before they are read, and every result is
//! read.

use super::context::ContextValue;
use super::expr::{ExprScope, ExprTarget};
use super::faults;
use super::flow::Flow;
use super::route::{AnswerPlace, RouteCheck};
use crate::contract::{JsonKind, Type, TypeKind};
use crate::diagnostic::Span;
use crate::mapping::ast::{self, AnswerDecl, BlockDecl, Decide, Pick, Spanned, StepActionDecl, StepDecl};
use switchback_plan::{self as plan, Key};

/// Reserved names that step results cannot have.
const TAKEN: &[&str] = &["request", "config", "reply"];

impl<'a> RouteCheck<'_, 'a> {
    /// Compiles a block. Returns no block if it reports an error, and the flow after the steps.
    pub(super) fn block(&mut self, block: &'a BlockDecl, mut flow: Flow) -> (Option<plan::Block>, Flow) {
        // Names of later steps, to explain a use before the definition.
        let names = block.steps.iter().filter_map(|step| step.name.as_ref());
        flow.later = names.map(|name| (name.value.clone(), name.span)).collect();
        // The end is compiled even if a step has an error, so that both report theirs.
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
            // The contract determines the type of a reply, and its archive that of an entry, even if the
            // request has an error.
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
    pub(super) fn too_late(&mut self, span: Span, flow: &Flow) {
        if let Some(write) = flow.wrote.as_ref().filter(|write| !write.is_judged) {
            self.findings.push(faults::refused_late(&write.name, span));
        }
    }

    pub(super) fn check_name(&mut self, name: &Spanned<String>, flow: &Flow) {
        if TAKEN.contains(&name.value.as_str()) || flow.get(&name.value).is_some() {
            self.findings.push(faults::name_taken(name));
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
        // A table that examines a reply knows whether the write took effect, so a refusal in its outcomes
        // is deliberate.
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
