//! Compiles the statuses of pairs: maps each status of the called side to one of the served side,
//! and reports missing ones.

use super::faults;
use super::route::RouteCheck;
use crate::contract::{
    self, Narrowing, Operation, StatusPattern, Type, TypeIn, TypeKind, assignable, compare,
};
use crate::diagnostic::Span;
use crate::mapping::ast::{PairDecl, Spanned, StatusWord};
use crate::mapping::{errors, form};
use std::sync::Arc;
use switchback_plan::{
    BodyPlan, Class, ErrorPlan, Form, MediaTypes, Message, Response, ResponseBody, Root, SideId, StatusFrom,
    StatusTo, ValueOp,
};

/// Response to an unlisted redirect, which a client of a translated API could not follow.
const BAD_GATEWAY: u16 = 502;

/// Status of a request that the service has accepted but not completed.
const ACCEPTED: u16 = 202;

/// Statuses of conditional and range requests (RFC 9110, sections 13.1 and 14.2), which services
/// return whether listed or not.
const OF_READINGS: [u16; 2] = [206, 304];

/// A mapping from a status of the called side to one of the served side.
struct StatusLine {
    from: StatusFrom,
    to: u16,
}

impl<'a> RouteCheck<'_, 'a> {
    /// Returns the rules for every status of the called side, in order of precedence. `media` are
    /// the types of a body that passes unchanged.
    pub(super) fn responses(
        &mut self,
        pair: &PairDecl,
        called: &Operation,
        media: Option<&Arc<MediaTypes>>,
    ) -> Vec<Response> {
        // Lines take precedence over equal statuses, and these over the fallback for the class.
        let mut lines = self.status_lines(pair, called);
        for status in successes(called) {
            if lines.iter().any(|line| line.from.matches(status)) {
                continue;
            }
            if self.operation.response(status).is_some() {
                lines.push(StatusLine { from: StatusFrom::Exact(status), to: status });
            } else {
                let (served, other) =
                    (self.env.side_name(self.serves), self.env.side_name(self.serves.other()));
                self.findings.push(faults::status_uncovered(status, pair.span, other, served));
            }
        }
        self.redirects(called, pair.span, &mut lines);
        if !pair.sides.made {
            self.unlisted_successes(&mut lines);
        }
        let mut responses: Vec<Response> =
            lines.iter().map(|line| self.response(pair, called, line, media)).collect();
        if let Some(media) = media.filter(|_| called.key.method == http::Method::GET) {
            // Partial and unmodified responses keep their status, whether listed or not.
            let is_said = |status: u16| lines.iter().any(|line| line.from == StatusFrom::Exact(status));
            let passed = OF_READINGS.iter().filter(|status| !is_said(**status)).map(|status| Response {
                from: StatusFrom::Exact(*status),
                to: StatusTo::Same,
                headers: Vec::new(),
                body: ResponseBody::Opaque(Arc::clone(media)),
            });
            responses.splice(0..0, passed.collect::<Vec<_>>());
        }
        responses.extend(self.other_errors(pair, called));
        if pair.sides.made {
            responses.extend(self.undescribed(called));
        }
        responses.extend(self.quiet_errors(&responses));
        responses.push(self.error(StatusFrom::Class(3), StatusTo::Exact(BAD_GATEWAY)));
        responses.push(self.error(StatusFrom::Class(4), StatusTo::Same));
        responses.push(self.error(StatusFrom::Class(5), StatusTo::Same));
        responses
    }

    fn error(&self, from: StatusFrom, to: StatusTo) -> Response {
        Response { from, to, headers: Vec::new(), body: self.error_body(from) }
    }

    fn error_body(&self, from: StatusFrom) -> ResponseBody {
        let body = self.env.errors.plans[self.serves].clone();
        ResponseBody::Error(ErrorPlan { body, declared: self.quiet_form(from) })
    }

    /// Returns rules for the errors that the served contract lists with a body that may tell
    /// clients nothing. Such a body passes for these statuses alone.
    fn quiet_errors(&self, known: &[Response]) -> Vec<Response> {
        let listed = self.operation.responses.iter().filter_map(|own| match own.status {
            StatusPattern::Exact(status @ 400..) => Some(StatusFrom::Exact(status)),
            _ => None,
        });
        let is_new = |from: &StatusFrom| known.iter().all(|response| !covers(response.from, *from));
        listed
            .filter(|from| is_new(from) && self.quiet_form(*from).is_some())
            .map(|from| self.error(from, StatusTo::Same))
            .collect()
    }

    /// Returns the form of errors with a status in the served contract, if it admits a body that
    /// tells clients nothing.
    fn quiet_form(&self, from: StatusFrom) -> Option<Arc<Form>> {
        let responses = &self.operation.responses;
        let listed = match from {
            StatusFrom::Exact(status) => self.operation.response(status),
            StatusFrom::Class(class) => responses
                .iter()
                .find(|own| own.status == StatusPattern::Class(class))
                .or_else(|| responses.iter().find(|own| own.status == StatusPattern::Default)),
        };
        let listed = listed.filter(|own| own.media.is_json())?;
        let types = self.env.types(self.serves);
        // A body that tells nothing belongs to the alternative that permits it.
        let alternatives = contract::alternatives_of(types.at(listed.body.as_ref()?))?;
        let quiet = alternatives.into_iter().find(|one| is_quiet(*one))?;
        Some(form::form_of(quiet.ty, types))
    }

    /// Adds the lines for successes that neither contract lists.
    fn unlisted_successes(&self, lines: &mut Vec<StatusLine>) {
        // An accepted request is not complete, so 202 must not become another success.
        let accepted = StatusFrom::Exact(ACCEPTED);
        if !lines.iter().any(|line| line.from.matches(ACCEPTED)) {
            lines.push(StatusLine { from: accepted, to: ACCEPTED });
        }
        // An unlisted success is still a success.
        if !lines.iter().any(|line| line.from == StatusFrom::Class(2)) {
            let first = successes(self.operation).next();
            let by_default = || self.operation.response(200).is_some().then_some(200);
            if let Some(status) = first.or_else(by_default) {
                lines.push(StatusLine { from: StatusFrom::Class(2), to: status });
            }
        }
    }

    /// Returns the rules of a generated pair for statuses whose body neither contract describes:
    /// they pass unchanged, because there is nothing to translate or to compare.
    fn undescribed(&self, called: &Operation) -> Vec<Response> {
        let pass = |from| Response {
            from,
            to: StatusTo::Same,
            headers: Vec::new(),
            body: ResponseBody::Undescribed,
        };
        let both = |called: &&contract::Response| self.is_undescribed(called);
        let errors = called.responses.iter().filter_map(|response| match response.status {
            StatusPattern::Exact(status @ 400..) => Some((response, StatusFrom::Exact(status))),
            StatusPattern::Class(class @ 4..) => Some((response, StatusFrom::Class(class))),
            _ => None,
        });
        let default = called.responses.iter().find(|response| response.status == StatusPattern::Default);
        let passes_others = default.filter(both).is_some();
        // Listed errors keep their translation if the others pass.
        let mut rules: Vec<Response> = errors
            .filter_map(|(response, from)| match both(&response) {
                true => Some(pass(from)),
                false => passes_others.then(|| self.error(from, StatusTo::Same)),
            })
            .collect();
        rules.sort_by_key(|response| matches!(response.from, StatusFrom::Class(_)));
        if passes_others {
            rules.extend([4, 5].map(|class| pass(StatusFrom::Class(class))));
        }
        rules.push(pass(StatusFrom::Class(2)));
        rules
    }

    /// Returns whether neither contract describes the body of a status: it has none, is not JSON, or
    /// may be any value.
    fn is_undescribed(&self, called: &contract::Response) -> bool {
        let is_described = |response: &contract::Response, side: SideId| {
            let types = self.env.types(side);
            let body = response.body.as_ref().filter(|_| response.media.is_json());
            body.is_some_and(|body| contract::alternatives_of(types.at(body)).is_some())
        };
        let same = self.operation.responses.iter().find(|own| own.status == called.status);
        same.is_some_and(|own| !is_described(own, self.serves)) && !is_described(called, self.serves.other())
    }

    /// Handles redirects that the called contract lists and no line maps: those that the served
    /// contract lists pass unchanged, others are noted as a difference.
    fn redirects(&mut self, called: &Operation, span: Span, lines: &mut Vec<StatusLine>) {
        for response in &called.responses {
            let StatusPattern::Exact(status @ 300..=399) = response.status else { continue };
            if lines.iter().any(|line| line.from.matches(status)) {
                continue;
            }
            if self.operation.responses.iter().any(|own| own.status == response.status) {
                lines.push(StatusLine { from: StatusFrom::Exact(status), to: status });
                continue;
            }
            let text = format!(
                "{status} of `{}` is answered {BAD_GATEWAY}: `{}` lists no {status}",
                called.key, self.operation.key
            );
            self.limit(text, span);
        }
    }

    fn response(
        &mut self,
        pair: &PairDecl,
        called: &Operation,
        line: &StatusLine,
        media: Option<&Arc<MediaTypes>>,
    ) -> Response {
        let target = match line.from {
            StatusFrom::Exact(from) if from == line.to => StatusTo::Same,
            _ => StatusTo::Exact(line.to),
        };
        let success = match line.from {
            StatusFrom::Exact(status) => status / 100 == 2,
            StatusFrom::Class(class) => class == 2,
        };
        let body = match success {
            // A redirect consists of its `Location`.
            false if is_redirect(line.from) && pair.sides.made => ResponseBody::Undescribed,
            false if is_redirect(line.from) => ResponseBody::Empty,
            false => self.error_body(line.from),
            true => {
                let from = body_of(called, line.from);
                let to = self.operation.response(line.to).and_then(|response| response.body.as_ref());
                if pair.sides.made && from.is_none() && to.is_none() {
                    let body = ResponseBody::Undescribed;
                    return Response { from: line.from, to: target, headers: Vec::new(), body };
                }
                match self.response_body(pair, called, [from, to]) {
                    ResponseBody::Plan(plan) => match media {
                        Some(media) => ResponseBody::Opaque(Arc::clone(media)),
                        None => ResponseBody::Plan(plan),
                    },
                    body => body,
                }
            }
        };
        Response { from: line.from, to: target, headers: Vec::new(), body }
    }

    /// Handles errors that are not of their side's error type: they pass unchanged if the served
    /// operation accepts them, otherwise the gateway replaces them.
    fn other_errors(&mut self, pair: &PairDecl, called: &Operation) -> Vec<Response> {
        let env = self.env;
        let (served, other) = (env.types(self.serves), env.types(self.serves.other()));
        let Some(usual) = env.errors.types[self.serves.other()] else { return Vec::new() };
        if matches!(other.resolve(usual).kind, TypeKind::Any) {
            self.kept_errors(pair, called);
            return Vec::new();
        }
        let mut responses = Vec::new();
        for response in &called.responses {
            let from = match response.status {
                StatusPattern::Exact(status) if status >= 400 => StatusFrom::Exact(status),
                StatusPattern::Class(class) if class >= 4 => StatusFrom::Class(class),
                _ => continue,
            };
            let Some(body) = &response.body else { continue };
            // A generated pair passes it as it is.
            if pair.sides.made && self.is_undescribed(response) {
                continue;
            }
            if !response.media.is_json()
                || assignable(other.at(body), other.at(usual), Some(Message::Answer)).is_ok()
            {
                continue;
            }
            let fits = self
                .own_error(response.status)
                .and_then(|own| compare(other.at(body), served.at(own), Some(Message::Answer)).ok());
            let (op, because) = match fits {
                Some(narrowings) => {
                    for loss in errors::narrower(&narrowings, self.serves, &env.world, pair.span) {
                        self.lose(loss);
                    }
                    (ValueOp::Keep, "the error is the same on both sides")
                }
                // Without a message in the body, the gateway supplies its own text.
                None => (ValueOp::Constant(b"null"[..].into()), "the error has no form on this side"),
            };
            let declared = matches!(op, ValueOp::Keep).then(|| self.quiet_form(from)).flatten();
            let body = BodyPlan { op, root: Root::ANY, class: Class::Pass, because: because.to_owned() };
            responses.push(Response {
                from,
                to: StatusTo::Same,
                headers: Vec::new(),
                body: ResponseBody::Error(ErrorPlan { body, declared }),
            });
        }
        // Exact statuses take precedence over classes.
        responses.sort_by_key(|response| matches!(response.from, StatusFrom::Class(_)));
        responses
    }

    /// Returns the type of the served contract for errors with these statuses.
    fn own_error(&self, status: StatusPattern) -> Option<&'a Type> {
        let operation = self.operation;
        let same = operation.responses.iter().find(|own| own.status == status);
        let own = same.or_else(|| match status {
            StatusPattern::Exact(status) => operation.response(status),
            StatusPattern::Class(_) | StatusPattern::Default => None,
        });
        own?.body.as_ref()
    }

    /// Handles errors of a side without a declared error type: they pass unchanged, and values that
    /// the served contract does not accept are losses.
    fn kept_errors(&mut self, pair: &PairDecl, called: &Operation) {
        let env = self.env;
        let (served, other) = (env.types(self.serves), env.types(self.serves.other()));
        for response in &called.responses {
            let is_error = match response.status {
                StatusPattern::Exact(status) => status >= 400,
                StatusPattern::Class(class) => class >= 4,
                StatusPattern::Default => true,
            };
            let (Some(body), Some(own)) = (&response.body, self.own_error(response.status)) else { continue };
            if !is_error || !response.media.is_json() {
                continue;
            }
            let compared = compare(other.at(body), served.at(own), Some(Message::Answer));
            let found = compared.unwrap_or_else(|why| {
                vec![Narrowing::of_both_messages(format!("errors that are no {own}: {why}"))]
            });
            for loss in errors::narrower(&found, self.serves, &env.world, pair.span) {
                self.lose(loss);
            }
        }
    }

    /// Returns the lines of `status:` in the current direction.
    fn status_lines(&mut self, pair: &PairDecl, called: &Operation) -> Vec<StatusLine> {
        let mut lines: Vec<(StatusLine, Span)> = Vec::new();
        for line in &pair.status {
            let turned: Vec<(StatusFrom, u16, Span, Span)> = match self.serves {
                SideId::OLD => line
                    .new
                    .iter()
                    .map(|word| (from_of(word.value), line.old.value as u16, word.span, line.old.span))
                    .collect(),
                _ => {
                    // In this direction the first status is sent, so it must not be a class.
                    let Some(first) = line.new.first() else { continue };
                    let StatusWord::Exact(to) = first.value else {
                        self.findings.push(faults::class_cannot_be_sent(first.span));
                        continue;
                    };
                    vec![(StatusFrom::Exact(line.old.value as u16), to, line.old.span, first.span)]
                }
            };
            for (from, to, from_span, to_span) in turned {
                self.known_status(from, called, self.serves.other(), from_span);
                self.promised_status(&Spanned { value: i64::from(to), span: to_span });
                if is_redirect(from) && to / 100 != 3 {
                    self.findings.push(faults::redirect_answered(from_span, to));
                }
                // The first match decides, so a line for a covered status would never apply.
                let earlier = lines.iter().find(|(line, _)| covers(line.from, from));
                if let Some((_, earlier)) = earlier {
                    self.findings.push(faults::status_twice(from_span, *earlier));
                }
                lines.push((StatusLine { from, to }, from_span));
            }
        }
        lines.into_iter().map(|(line, _)| line).collect()
    }

    /// Checks that the called contract lists a mapped status.
    fn known_status(&mut self, from: StatusFrom, called: &Operation, side: SideId, span: Span) {
        let known = match from {
            StatusFrom::Exact(status) => called.response(status).is_some(),
            StatusFrom::Class(class) => called.responses.iter().any(|response| match response.status {
                StatusPattern::Exact(status) => status / 100 == u16::from(class),
                StatusPattern::Class(known) => known == class,
                StatusPattern::Default => called.response(u16::from(class) * 100).is_some(),
            }),
        };
        if let (false, StatusFrom::Exact(status)) = (known, from) {
            self.findings.push(faults::unknown_status(status, span, self.env.side_name(side), called));
        } else if !known {
            self.findings.push(faults::unknown_class(span, self.env.side_name(side), called));
        }
    }

    /// Reports 5xx statuses that only some operations of the called contract list. These are
    /// business errors rather than failures, and must be declared.
    pub(super) fn business_errors(
        &mut self,
        said: &[Spanned<i64>],
        called: &[(SideId, &Operation)],
        span: Span,
    ) {
        let lists = |operation: &Operation, status: u16| {
            operation.responses.iter().any(|response| response.status == StatusPattern::Exact(status))
        };
        for (side, operation) in called {
            let contract = self.env.contract(*side);
            for response in &operation.responses {
                let StatusPattern::Exact(status @ 500..) = response.status else { continue };
                // A status that every operation lists is a generic failure of the service.
                let everywhere = contract.operations.iter().all(|other| lists(other, status));
                if !everywhere && !said.iter().any(|said| said.value == i64::from(status)) {
                    let side = self.env.side_name(*side);
                    self.findings.push(faults::business_error(status, span, side, &operation.key));
                }
            }
        }
        for status in said {
            if !called.iter().any(|(_, operation)| lists(operation, status.value as u16)) {
                self.findings.push(faults::no_business_error(status));
            }
        }
    }

    /// Checks the business errors of a pair in the directions that it serves.
    pub(super) fn pair_business_errors(
        &mut self,
        pair: &PairDecl,
        operations: [&Operation; 2],
        serves: &[SideId],
    ) {
        let called = serves.iter().map(|side| side.other());
        let called: Vec<_> = called.map(|side| (side, operations[side])).collect();
        self.business_errors(&pair.business_errors, &called, pair.span);
    }
}

fn from_of(word: StatusWord) -> StatusFrom {
    match word {
        StatusWord::Exact(status) => StatusFrom::Exact(status),
        StatusWord::Class(class) => StatusFrom::Class(class),
    }
}

/// Returns whether all statuses of a rule are redirects (3xx).
pub(super) fn is_redirect(from: StatusFrom) -> bool {
    match from {
        StatusFrom::Exact(status) => status / 100 == 3,
        StatusFrom::Class(class) => class == 3,
    }
}

/// Returns whether `first` includes every status of `second`.
fn covers(first: StatusFrom, second: StatusFrom) -> bool {
    match (first, second) {
        (_, StatusFrom::Exact(status)) => first.matches(status),
        (StatusFrom::Class(first), StatusFrom::Class(second)) => first == second,
        (StatusFrom::Exact(_), StatusFrom::Class(_)) => false,
    }
}

/// Returns the 2xx statuses that an operation lists, with 200 for the class.
fn successes(operation: &Operation) -> impl Iterator<Item = u16> {
    operation.responses.iter().filter_map(|response| match response.status {
        StatusPattern::Exact(status) if status / 100 == 2 => Some(status),
        StatusPattern::Class(2) => Some(200),
        _ => None,
    })
}

/// Returns the body type of a status; for a class, that of its first status with a body.
/// Returns whether a type admits a value that tells clients nothing: an object or a list without
/// elements, or a scalar.
fn is_quiet(ty: TypeIn<'_>) -> bool {
    match ty.kind() {
        TypeKind::Object(object) => object.fields.iter().all(|field| !field.required),
        TypeKind::Array(array) => array.min_items == 0,
        kind => matches!(kind, TypeKind::Scalar(_)),
    }
}

fn body_of(operation: &Operation, from: StatusFrom) -> Option<&Type> {
    match from {
        StatusFrom::Exact(status) => operation.response(status)?.body.as_ref(),
        StatusFrom::Class(_) => super::calls::success_body(operation).map(|(ty, _)| ty),
    }
}
