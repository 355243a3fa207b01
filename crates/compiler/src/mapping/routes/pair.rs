//! Compiles pairs: one call and its response, in each direction that the pair serves.

use super::faults;
use super::operations::{allow_slashes, effect, operation};
use super::route::RouteCheck;
use super::route_of;
use super::status::is_redirect;
use crate::contract::{
    Narrowing, Operation, Segment, SegmentPart, Type, TypeIn, compare_lists, compare_once,
};
use crate::diagnostic::Span;
use crate::mapping::ast::{BodyDecl, PairDecl};
use crate::mapping::expected;
use crate::mapping::lens::{Lens, Supply};
use std::sync::Arc;
use switchback_plan::{
    self as plan, BodyFormat, BodyPlan, CallHead, Class, Effect, PathPart, ResponseBody, Root, RouteKind,
    SideId, ValueOp,
};

impl<'a> RouteCheck<'_, 'a> {
    /// Compiles a pair in the direction that serves `self.serves`.
    pub(super) fn pair(mut self, pair: &'a PairDecl, operations: [&'a Operation; 2]) -> Option<plan::Route> {
        let called = operations[self.serves.other()];
        let approximations = self.sentences(&pair.notes);
        let passed = self.passed_bodies(pair, called);
        let answers = passed.as_ref().and_then(|passed| passed.answers.clone());
        self.begin_paging(pair.paging.as_ref());
        let paging = match &pair.paging {
            Some(paging) => self.paging(paging, called).map(Some),
            None => Some(None),
        };
        if paging.is_none() {
            // Treat all parameters as claimed, because the invalid line would have claimed some of
            // them.
            let names = |operation: &Operation| operation.query.iter().map(|one| one.name.clone()).collect();
            self.paged.parameters = [names(self.operation), names(called)];
            self.paged.is_faulty = true;
        }
        // Every part is compiled before the first `?`, so that one error does not hide others.
        let path = self.path(pair, called);
        self.path_types(pair, called);
        let query = self.pair_query(pair, called);
        let refused = self.refused_query(pair);
        let towards = self.serves.other();
        let constants = self.constants(pair);
        let request_headers = (&pair.headers.request.lines, &pair.headers.request.constants);
        let mut headers =
            self.pair_headers(request_headers.0, request_headers.1, &["request", "headers"], towards);
        self.sent_headers(&mut headers);
        self.declared_request_headers(pair, called, &mut headers);
        self.required_headers(&headers, called, pair.span);
        if passed.as_ref().is_none_or(|passed| passed.request.is_none() && passed.answers.is_none()) {
            self.json_names(called, &mut headers);
        }
        self.unread_media(passed.as_ref(), pair.span);
        let response_headers = (&pair.headers.response.lines, &pair.headers.response.constants);
        let mut answer_headers =
            self.pair_headers(response_headers.0, response_headers.1, &["reply", "headers"], self.serves);
        self.declared_answer_headers(pair, called, &mut answer_headers);
        let request = self.request(pair, called);
        let effect = effect(&called.key.method, pair.effect.as_ref());
        let mark = self.findings.len();
        self.kept_links(pair);
        let mut responses = self.responses(pair, called, answers.as_ref());
        for response in &mut responses {
            response.headers = answer_headers.clone();
            if is_redirect(response.from) {
                self.location_of_redirect(pair, &mut response.headers);
            }
            if !matches!(response.body, ResponseBody::Error(_)) {
                response.headers.extend(self.approximate_header(&approximations));
            }
            if matches!(response.body, ResponseBody::Plan(_)) {
                self.json_name_of_answer(super::media::client_status(response), &mut response.headers);
            }
        }
        // Rules are built even after an error, to report further ones, but must not reach a plan.
        let responses = (!self.findings.errors_since(mark)).then_some(responses);
        let mut operation = operation(self.operation, self.env.types(self.serves), Effect::None);
        let mut format = super::operations::format(called, self.env.types(self.serves.other()));
        // `allow_slash` may list the other side's name of a variable.
        let turned = |name: &str| {
            let lines = pair.path.iter().find(|(_, new)| self.serves != SideId::OLD && new.value == name);
            lines.map_or(name, |(old, _)| old.value.as_str()).to_owned()
        };
        allow_slashes(&pair.allow_slash, turned, &mut operation);
        self.unknown_slashes(&pair.allow_slash, &operations);
        if let Some(media) = passed?.request {
            operation.format = BodyFormat::Opaque(Arc::clone(&media));
            format = BodyFormat::Opaque(media);
        }
        let paging = paging?;
        let verdict = self.verdict(&pair.notes, paging.as_deref(), pair.span);
        let call = CallHead {
            operation: called.key.to_string().into(),
            host: called.host,
            method: called.key.method.clone(),
            path: path?,
            query,
            headers,
            format,
            answers: super::operations::answers(called, self.env.types(self.serves.other())),
            partial: answers.is_some() || super::operations::lists_partial(called),
            effect,
            repeatable: effect == Effect::None || pair.retry.as_ref().is_some_and(|flag| flag.value),
            origin: self.env.origin(pair.span),
        };
        operation.effect = super::operations::effect(&self.operation.key.method, pair.effect.as_ref());
        let kind = RouteKind::Pair(Box::new(plan::Pair {
            refused,
            constants,
            call,
            request: request?,
            responses: responses?,
        }));
        Some(plan::Route {
            notes: [self.summary.notes, self.summary.bounds].concat(),
            losses: self.summary.losses,
            calls_min: 1,
            calls_max: paging.as_ref().map_or(1, plan_calls),
            paging,
            business_errors: pair.business_errors.iter().map(|status| status.value as u16).collect(),
            ..route_of(operation, kind, verdict?, self.env.origin(pair.span))
        })
    }

    /// Returns the path of the call, with variables from the served operation.
    fn path(&mut self, pair: &PairDecl, called: &Operation) -> Option<Vec<PathPart>> {
        let names: Vec<&str> = self.operation.key.path.variables().collect();
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut used = Vec::new();
        let mut variable = |name: &str, literal: &mut String| {
            let from = self.source_of_variable(pair, name);
            let Some(index) = names.iter().position(|known| *known == from) else {
                let span = pair.sides.operations[self.serves.other()].span;
                self.findings.push(faults::unbound_variable(name, span, &self.operation.key));
                return None;
            };
            used.push(index);
            if !literal.is_empty() {
                parts.push(PathPart::Literal(std::mem::take(literal).into()));
            }
            parts.push(PathPart::Variable(index as u16));
            Some(())
        };
        for segment in called.key.path.segments() {
            literal.push('/');
            match segment {
                Segment::Literal(text) => literal.push_str(text),
                Segment::Variable(name) => variable(name, &mut literal)?,
                Segment::Mixed(pieces) => {
                    for piece in pieces {
                        match piece {
                            SegmentPart::Text(text) => literal.push_str(text),
                            SegmentPart::Variable(name) => variable(name, &mut literal)?,
                        }
                    }
                }
            }
        }
        if !literal.is_empty() || parts.is_empty() {
            parts.push(PathPart::Literal(if literal.is_empty() { "/".into() } else { literal.into() }));
        }
        for (index, name) in names.iter().enumerate() {
            // A variable that the call ignores would make different resources equal.
            if !used.contains(&index) {
                let span = pair.sides.operations[self.serves].span;
                self.findings.push(faults::unread_variable(name, span));
                return None;
            }
        }
        Some(parts)
    }

    /// Records values of path variables that the called operation does not accept.
    fn path_types(&mut self, pair: &PairDecl, called: &Operation) {
        for taken in &called.path_params {
            let from = self.source_of_variable(pair, &taken.name);
            if let Some(known) = self.operation.path_params.iter().find(|known| known.name == from) {
                self.parameter_types("path", known, taken, pair.span);
            }
        }
    }

    /// Returns the served variable for a called one: that of a `path:` line, otherwise the one with
    /// the same name.
    fn source_of_variable<'n>(&self, pair: &'n PairDecl, name: &'n str) -> &'n str {
        let lines = pair.path.iter().map(|(old, new)| match self.serves {
            SideId::OLD => (old.value.as_str(), new.value.as_str()),
            _ => (new.value.as_str(), old.value.as_str()),
        });
        lines.filter(|(_, to)| *to == name).map(|(from, _)| from).next().unwrap_or(name)
    }

    fn request(&mut self, pair: &PairDecl, called: &Operation) -> Option<Option<BodyPlan>> {
        let served = self.operation.body.as_ref();
        let taken = called.body.as_ref();
        let what = BodyTypes {
            what: "request",
            from: served.map(|body| &body.ty),
            to: taken.map(|body| &body.ty),
            to_required: taken.is_some_and(|body| body.required),
            towards: self.serves.other(),
            wrote: None,
            span: pair.span,
        };
        // Clients may omit the body, and the call cannot: such requests have no translation.
        if what.to_required && served.is_some_and(|body| !body.required) {
            let found = Narrowing::of_both_messages("a request without a body".to_owned());
            self.lose_narrower(&[found], what.towards, "$", pair.span);
        }
        let plan = self.translate_body(pair.request.as_ref(), &what)?;
        if let (Some(plan), Some(used @ (BodyDecl::Shape(_) | BodyDecl::Inline(_)))) = (&plan, &pair.request)
        {
            self.files(&plan.op, used, pair.span, [served, taken])?;
        }
        Some(plan)
    }

    /// Translates the body of a response.
    pub(super) fn response_body(
        &mut self,
        pair: &PairDecl,
        called: &Operation,
        [from, to]: [Option<&Type>; 2],
    ) -> ResponseBody {
        let writes = effect(&called.key.method, pair.effect.as_ref()) == Effect::Write;
        let what = BodyTypes {
            what: "response",
            from,
            to,
            to_required: to.is_some(),
            towards: self.serves,
            wrote: writes.then(|| called.key.to_string()),
            span: pair.span,
        };
        let plan = self.translate_body(pair.response.as_ref(), &what).flatten();
        plan.map_or(ResponseBody::Empty, ResponseBody::Plan)
    }

    /// Returns the translation of a body, `None` if no body is sent. An outer `None` is an error.
    fn translate_body(&mut self, line: Option<&BodyDecl>, what: &BodyTypes<'_>) -> Option<Option<BodyPlan>> {
        let lenses = self.env.lenses;
        let supply = self.supply_of(what);
        let lens = match line {
            None if what.from.is_none() && !what.to_required => return Some(None),
            None => {
                self.findings.push(faults::body_line_missing(what.span, what.what, what.from, what.to));
                return None;
            }
            Some(BodyDecl::Empty(span)) => {
                if what.to_required {
                    self.findings.push(faults::empty_body(*span, what.what, what.to));
                    return None;
                }
                return Some(None);
            }
            Some(BodyDecl::Keep(span)) => return self.keep_body(*span, what),
            Some(BodyDecl::Shape(used)) => {
                let Some(types) = self.lens_types(used.name.span, what)? else { return Some(None) };
                if used.each {
                    let [source, target] = match what.towards {
                        SideId::OLD => [types[1], types[0]],
                        _ => types,
                    };
                    self.lose_narrower(&compare_lists(source, target), what.towards, "$", used.name.span);
                }
                lenses.body(used, types, what.towards, &supply, self.findings)?
            }
            Some(BodyDecl::Inline(shape)) => {
                let Some(types) = self.lens_types(shape.span, what)? else { return Some(None) };
                lenses.inline(shape, types, what.towards, &supply, self.findings)?
            }
        };
        Some(Some(self.lens_plan(lens, what)))
    }

    fn keep_body(&mut self, span: Span, what: &BodyTypes<'_>) -> Option<Option<BodyPlan>> {
        let promised = super::calls::success_body(self.operation).is_some();
        let (from, to) = match (what.from, what.to) {
            (Some(from), Some(to)) => (from, to),
            // Some successes may have a body and others not.
            (_, None) if what.what == "response" && promised => return Some(None),
            (None, Some(_)) if what.what == "request" && !what.to_required => return Some(None),
            _ => {
                self.findings.push(faults::keep_without_body(span, what.what));
                return None;
            }
        };
        let source = self.env.types(what.towards.other()).at(from);
        let target = self.env.types(what.towards).at(to);
        let proven = &self.env.proven[what.towards];
        let message = self.message(what.towards);
        // Large contracts use the same types in many responses. Compare each of them once.
        let compared = compare_once(source, target, message, &mut proven.borrow_mut());
        match compared {
            Ok(narrowings) => self.lose_narrower(&narrowings, what.towards, "$", span),
            Err(why) => {
                self.findings.push(faults::does_not_fit(span, from, to, &why.to_string(), false));
                return None;
            }
        }
        let because = "the body is the same on both sides".to_owned();
        Some(Some(BodyPlan { op: ValueOp::Keep, root: Root::ANY, class: Class::Pass, because }))
    }

    /// Returns the types that a shape relates, by side, or `None` if no body is produced. An outer
    /// `None` is an error.
    fn lens_types<'t>(&mut self, span: Span, what: &BodyTypes<'t>) -> Option<Option<[TypeIn<'t>; 2]>>
    where
        'a: 't,
    {
        let env = self.env;
        // Some successes may have a body and others not. A shape is an error only if all successes lack a
        // body.
        let promised = super::calls::success_body(self.operation).is_some();
        match (what.from, what.to) {
            (Some(from), Some(to)) => {
                let source = env.types(what.towards.other()).at(from);
                let target = env.types(what.towards).at(to);
                Some(Some(if what.towards == SideId::OLD { [target, source] } else { [source, target] }))
            }
            // The called side has no body, or the served side does not expect one.
            (_, None) if what.what == "response" && promised => Some(None),
            _ => {
                self.findings.push(faults::shape_without_body(span, what.what, what.from.is_none()));
                None
            }
        }
    }

    /// Returns the members of a response that the gateway writes by itself.
    fn supply_of(&self, what: &BodyTypes<'_>) -> Supply {
        let paged = if what.what == "response" { self.paged.members.clone() } else { Default::default() };
        Supply { paged, over: self.paged.is_faulty, ..Supply::default() }
    }

    fn lens_plan(&mut self, lens: Lens, what: &BodyTypes<'_>) -> BodyPlan {
        self.take_over(&lens, what.towards, None, None, what.wrote.as_deref());
        let types = self.env.types(what.towards.other());
        let root = match (&lens.op, what.from) {
            // A rejected value has a fallback, so it must not fail the check of the entire body.
            (ValueOp::Attempt(_), _) | (_, None) => Root::ANY,
            (_, Some(ty)) if what.what == "request" => expected::request_root(ty, types),
            (_, Some(ty)) => expected::answer_root(ty, types),
        };
        BodyPlan { op: lens.op, root, class: lens.class, because: lens.because }
    }
}

/// Returns the maximum number of calls for one page.
fn plan_calls(paging: &Arc<plan::Paging>) -> u32 {
    if paging.walks() { paging.upto } else { 1 }
}

/// A body, in the direction of its transfer.
struct BodyTypes<'t> {
    /// `request` or `response`.
    what: &'static str,
    from: Option<&'t Type>,
    to: Option<&'t Type>,
    to_required: bool,
    towards: SideId,
    /// The write that precedes the body.
    wrote: Option<String>,
    span: Span,
}
