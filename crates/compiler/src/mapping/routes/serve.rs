//! Compiles `serve` routes: checks on the request, defaults, then a block.

use super::faults;
use super::flow::{Fact, Flow};
use super::operations::{allow_slashes, effect, operation};
use super::route::RouteCheck;
use super::{calls, route_of, verdict};
use crate::contract::{TypeIn, TypeKind};
use crate::mapping::ast::{self, ServeDecl, Spanned};
use crate::mapping::literal;
use crate::yaml::Node;
use switchback_plan::{self as plan, Key, Raw, RouteKind};

/// Maximum number of calls for one request.
pub(super) const CALLS_MAX: u32 = 50;

impl<'a> RouteCheck<'_, 'a> {
    /// Compiles a `serve` route.
    pub(super) fn serve(mut self, serve: &'a ServeDecl) -> Option<plan::Route> {
        let mut flow = Flow::of_request(self.operation, self.serves);
        flow.add_arrival();
        flow.approximate(self.sentences(&serve.notes));
        self.begin_paging(serve.paging.as_ref());
        // Without steps and checks every request is refused, so the plan needs no block.
        let refused = match &serve.block.end {
            Some(ast::BlockEnd::Refuse(refuse)) if serve.block.steps.is_empty() && serve.check.is_empty() => {
                Some(refuse)
            }
            _ => None,
        };
        if refused.is_none() {
            self.xml_operation(self.operation);
        }
        let kind = match refused {
            Some(refuse) => {
                verdict::of_refused(&serve.notes, self.findings);
                self.refusal(refuse).map(|refusal| (RouteKind::Refuse(refusal), (0, 0)))
            }
            None => self.compile_serve(serve, flow),
        };
        // Paging is checked against the calls, so report its errors even if another part failed.
        if kind.is_none() && self.summary.called.is_empty() {
            return None;
        }
        let paging = self.paging_of_serve(serve.paging.as_ref());
        let (kind, (calls_min, calls_max)) = kind?;
        let paging = paging?;
        let walked = paging.as_ref().filter(|paging| paging.walks()).map_or(0, |paging| paging.upto - 1);
        let calls_max = calls_max + walked;
        if walked > 0 && calls_max > CALLS_MAX {
            self.findings.push(faults::too_many_calls(serve.span, calls_max, CALLS_MAX));
            return None;
        }
        let verdict = match &kind {
            RouteKind::Refuse(_) => plan::Verdict::Not,
            // All branches refuse, so the only responses are refusals and errors of the calls before.
            RouteKind::Serve(served) if verdict::only_refuses(&served.block) => {
                verdict::of_refused(&serve.notes, self.findings);
                plan::Verdict::Not
            }
            _ => self.verdict(&serve.notes, paging.as_deref(), serve.span)?,
        };
        self.unknown_slashes(&serve.allow_slash, &[self.operation]);
        let effect = effect(&self.operation.key.method, None);
        let mut operation = operation(self.operation, self.env.types(self.serves), effect);
        allow_slashes(&serve.allow_slash, str::to_owned, &mut operation);
        Some(plan::Route {
            notes: [self.summary.notes, self.summary.bounds].concat(),
            losses: self.summary.losses,
            calls_min,
            calls_max,
            paging,
            business_errors: serve.business_errors.iter().map(|status| status.value as u16).collect(),
            ..route_of(operation, kind, verdict, self.env.origin(serve.span))
        })
    }

    fn compile_serve(&mut self, serve: &'a ServeDecl, mut flow: Flow) -> Option<(RouteKind, (u32, u32))> {
        let mark = self.findings.len();
        let checks: Vec<_> = serve.check.iter().map(|check| self.check(check, &mut flow)).collect();
        let fill = self.fill(&serve.fill, &mut flow);
        let (block, _) = self.block(&serve.block, flow);
        self.drop_parameters(serve);
        self.unread_results();
        // A line with an error may contain the missing read.
        if !self.findings.errors_since(mark) {
            self.unread(serve);
            self.unread_headers(serve);
            self.unread_media(None, serve.span);
        }
        let side = self.serves.other();
        let called: Vec<_> = self.summary.called.iter().map(|operation| (side, *operation)).collect();
        self.business_errors(&serve.business_errors, &called, serve.span);
        let checks = checks.into_iter().collect::<Option<Vec<_>>>()?;
        let (fill, mut block) = (fill?, block?);
        // Members that a write depends on are checked in earlier replies, before the write is sent.
        block.need_what_is_written();
        let calls = calls::count(&block);
        if calls.1 > CALLS_MAX {
            self.findings.push(faults::too_many_calls(serve.span, calls.1, CALLS_MAX));
            return None;
        }
        let reads_arrival = plan::ARRIVAL.iter().any(|place| self.summary.reads.places.contains(*place));
        Some((RouteKind::Serve(Box::new(plan::Serve { checks, fill, block, reads_arrival })), calls))
    }

    fn check(&mut self, check: &ast::CheckDecl, flow: &mut Flow) -> Option<plan::Check> {
        let condition = self.condition(&check.predicate, flow);
        let only_if = self.switch(check.only_if.as_ref(), flow);
        let unless = self.switch(check.unless.as_ref(), flow);
        let otherwise = match &check.otherwise {
            ast::CheckElseDecl::Answer { status, reason } => {
                let status = self.promised_status(status);
                let reason = self.env.reason_of_check(reason, self.findings);
                status.zip(reason).map(|(status, reason)| plan::CheckElse::Answer { status, reason })
            }
            ast::CheckElseDecl::Refuse(refuse) => self.refusal(refuse).map(plan::CheckElse::Refuse),
        };
        let (condition, only_if, unless) = (condition?, only_if?, unless?);
        // A check that can be disabled establishes no facts.
        if only_if.is_none() && unless.is_none() {
            flow.learn_all(&condition.facts, self.env.world.contracts);
        }
        Some(plan::Check {
            predicate: condition.predicate,
            only_if,
            unless,
            otherwise: otherwise?,
            origin: self.env.origin(check.span),
        })
    }

    /// Resolves the boolean setting of a check. An outer `None` is an error.
    fn switch(&mut self, path: Option<&Spanned<String>>, flow: &Flow) -> Option<Option<plan::Location>> {
        let Some(path) = path else { return Some(None) };
        let found = self.reading(flow).find_spanned(path)?;
        let boolean = [crate::contract::JsonKind::Boolean];
        if self.env.types(found.held.side).json_kinds(&found.held.ty) != boolean {
            self.findings.push(faults::not_boolean(path.span, &found.held.ty));
            return None;
        }
        Some(Some(found.location))
    }

    /// Compiles `fill:`, the defaults of members of the request's body.
    fn fill(&mut self, lines: &[(Spanned<String>, Node)], flow: &mut Flow) -> Option<Vec<(Key, Raw)>> {
        let mut filled = Vec::new();
        for (name, value) in lines {
            let path = format!("$.request.body.{}", name.value);
            let found = self.reading(flow).find_one(&path, name.span);
            let Some(found) = found else {
                filled.push(None);
                continue;
            };
            let ty = TypeIn { types: self.env.types(found.held.side), ty: &found.held.ty };
            if let Err(misfit) = literal::check(value, ty) {
                self.findings.push(faults::literal(&misfit));
                filled.push(None);
                continue;
            }
            if !found.held.absent {
                self.findings.push(faults::fill_needless(name));
            }
            // At run time a missing optional body is an empty object, so a filled member makes it
            // present.
            flow.learn(&["request", "body"], &Fact::Filled, self.env.world.contracts);
            flow.learn(&["request", "body", &name.value], &Fact::Filled, self.env.world.contracts);
            filled.push(Some((Key::new(&name.value), literal::json(value))));
        }
        filled.into_iter().collect()
    }

    /// Checks `query: {name: drop}`.
    fn drop_parameters(&mut self, serve: &ServeDecl) {
        let known: Vec<&str> = self.operation.query.iter().map(|p| p.name.as_str()).collect();
        for name in &serve.dropped {
            if self.paged.parameters[0].contains(&name.value) {
                self.findings.push(faults::paged_twice(name));
            }
            if !known.contains(&name.value.as_str()) {
                self.findings.push(faults::unknown_parameter(name, &self.operation.key, &known));
            }
            self.summary.reads.places.insert(format!("request.query.{}", name.value));
        }
    }

    /// Reports unread step results, even next to other errors: a misspelled name is then shown at
    /// its definition and not only at its use.
    pub(super) fn unread_results(&mut self) {
        let reads = &self.summary.reads;
        for (name, span, media) in &self.summary.opaque_results {
            if reads.has(&format!("{name}.body")) {
                self.findings.push(faults::opaque_reply(*span, media));
            }
        }
        for (place, name) in &self.summary.results {
            if !reads.has(place) {
                self.findings.push(faults::unread_result(name));
            }
        }
    }

    /// Reports unread parameters and variables. Unread fields of the request's body are losses.
    fn unread(&mut self, serve: &ServeDecl) {
        for variable in &self.operation.path_params {
            if !self.summary.reads.has(&format!("request.path.{}", variable.name)) {
                self.findings.push(faults::unread_variable(&variable.name, serve.at.span));
            }
        }
        for parameter in &self.operation.query {
            if !self.summary.reads.has(&format!("request.query.{}", parameter.name)) {
                let side = self.env.side_name(self.serves);
                self.findings.push(faults::parameter_goes_nowhere(&parameter.name, serve.at.span, side));
            }
        }
        let types = self.env.types(self.serves);
        let Some(body) = &self.operation.body else { return };
        let TypeKind::Object(object) = types.resolve(&body.ty).kind else { return };
        for field in &object.fields {
            if !self.summary.reads.has(&format!("request.body.{}", field.name)) {
                self.lose_part(format!("$.{}", field.name), None, serve.span);
            }
        }
    }
}
