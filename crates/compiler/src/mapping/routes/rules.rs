//! Query parameters and header fields that cross from one side to the other: each is known where it comes from and where
//! it goes, none is dropped without being said, and none is the gateway's own.

use super::faults;
use super::paths::location;
use super::route::RouteCheck;
use crate::contract::Operation;
use crate::diagnostic::Span;
use crate::mapping::ast::{Expr, ExprKind, Pair, Spanned};
use crate::mapping::literal;
use switchback_plan::{self as plan, HeaderRule, Key, QueryFrom, QueryRefusal, QueryRule, SideId};

/// Fields that belong to one hop (RFC 9110, section 7.6.1) or are made by the gateway for each message.
pub(in crate::mapping) const OWN_HEADERS: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "authorization",
    "via",
    "date",
];

/// Whether a field (lower case) belongs to one hop or is the gateway's to make.
pub(in crate::mapping) fn is_own_header(name: &str) -> bool {
    OWN_HEADERS.contains(&name) || name == "accept"
}

/// What `query: {name: drop}` says of a parameter.
pub(super) const DROP: &str = "drop";

impl RouteCheck<'_, '_> {
    /// The parameters of a pair's call, from the ones of the served operation.
    pub(super) fn pair_query(&mut self, pair: &Pair, called: &Operation) -> Vec<QueryRule> {
        let mut rules = Vec::new();
        let mut passed: Vec<&str> = Vec::new();
        for (old, new) in &pair.query {
            if new.value == DROP {
                passed.push(&old.value);
                continue;
            }
            let (from, to) = if self.serves == SideId::OLD { (old, new) } else { (new, old) };
            let known = self.operation.query.iter().any(|parameter| parameter.name == from.value);
            let taken = called.query.iter().any(|parameter| parameter.name == to.value);
            passed.push(&from.value);
            if known && taken {
                rules.push(QueryRule {
                    name: to.value.as_str().into(),
                    from: QueryFrom::Client(from.value.as_str().into()),
                });
            }
        }
        passed.extend(pair.refused_query.iter().map(|refused| refused.name.value.as_str()));
        for parameter in &self.operation.query {
            if !passed.contains(&parameter.name.as_str()) {
                let side = self.ground.side_name(self.serves);
                self.findings.push(faults::parameter_goes_nowhere(&parameter.name, pair.span, side));
            }
        }
        for parameter in called.query.iter().filter(|parameter| parameter.required) {
            if !rules.iter().any(|rule| rule.name.as_ref() == parameter.name) {
                self.findings.push(faults::parameter_missing(&parameter.name, pair.span, &called.key));
            }
        }
        rules
    }

    /// The parameters of the served operation that a client is refused for.
    pub(super) fn refused_query(&mut self, pair: &Pair) -> Vec<QueryRefusal> {
        let mut refusals = Vec::new();
        for refused in &pair.refused_query {
            let reason = self.ground.reason(&refused.reason, &[], self.findings);
            let known = self.operation.query.iter().any(|parameter| parameter.name == refused.name.value);
            let (true, Some(reason)) = (known, reason) else { continue };
            self.refuses = true;
            refusals.push(QueryRefusal {
                name: refused.name.value.as_str().into(),
                unless: refused.unless.iter().map(|value| value.value.as_str().into()).collect(),
                reason,
                origin: self.ground.origin(refused.name.span),
            });
        }
        refusals
    }

    /// Names in `query:` that the operations do not have; once per pair.
    pub(super) fn unknown_parameters(&mut self, pair: &Pair, operations: [&Operation; 2]) {
        let names = |side: usize| -> Vec<&str> {
            operations[side].query.iter().map(|parameter| parameter.name.as_str()).collect()
        };
        let dropped = pair.query.iter().filter(|(_, new)| new.value == DROP).map(|(old, _)| old);
        let all: Vec<&str> = names(0).into_iter().chain(names(1)).collect();
        for name in dropped.chain(pair.refused_query.iter().map(|refused| &refused.name)) {
            if !all.contains(&name.value.as_str()) {
                self.findings.push(faults::unknown_parameter(name, &operations[0].key, &all));
            }
        }
        for (old, new) in pair.query.iter().filter(|(_, new)| new.value != DROP) {
            for (side, name) in [(0, old), (1, new)] {
                if !names(side).contains(&name.value.as_str()) {
                    self.findings.push(faults::unknown_parameter(name, &operations[side].key, &names(side)));
                }
            }
        }
    }

    /// The parameters of a step's call.
    pub(super) fn call_query(
        &mut self,
        query: &[(Spanned<String>, Expr)],
        called: &Operation,
        side: SideId,
        span: Span,
        paged_by: Option<&str>,
    ) -> Vec<QueryRule> {
        let mut rules = Vec::new();
        for (name, value) in query {
            if paged_by == Some(name.value.as_str()) {
                self.findings.push(faults::page_set_twice(name));
                continue;
            }
            let Some(parameter) = called.query.iter().find(|parameter| parameter.name == name.value) else {
                let known: Vec<&str> = called.query.iter().map(|parameter| parameter.name.as_str()).collect();
                self.findings.push(faults::unknown_parameter(name, &called.key, &known));
                let _ = self.value(value, None);
                continue;
            };
            let wanted = super::expr::Wanted { ty: &parameter.ty, side, required: parameter.required };
            let Some(made) = self.value(value, Some(wanted)) else { continue };
            if self.is_scalar(&made.held, "a query parameter", value.span).is_none() {
                continue;
            }
            self.becomes_text(&made.expr, "a query parameter", value.span);
            let from = match &value.kind {
                ExprKind::Literal(node) => QueryFrom::Constant(literal::json(node)),
                _ => QueryFrom::Value(made.expr),
            };
            rules.push(QueryRule { name: name.value.as_str().into(), from });
        }
        for parameter in called.query.iter().filter(|parameter| parameter.required) {
            let paged = paged_by == Some(parameter.name.as_str());
            if !paged && !query.iter().any(|(name, _)| name.value == parameter.name) {
                self.findings.push(faults::parameter_missing(&parameter.name, span, &called.key));
            }
        }
        rules
    }

    /// Header fields of a pair's call or answer: `from` is the part of the context they are read from.
    pub(super) fn pair_headers(
        &mut self,
        lines: &[(Spanned<String>, Spanned<String>)],
        from: &[&str],
        towards: SideId,
    ) -> Vec<HeaderRule> {
        let mut rules = Vec::new();
        for (old, new) in lines {
            let (source, target) = if towards == SideId::NEW { (old, new) } else { (new, old) };
            let (source, target) = (self.header_name(source), self.header_name(target));
            let (Some(source), Some(target)) = (source, target) else { continue };
            let names: Vec<&str> = from.iter().copied().chain([source.as_str()]).collect();
            let value = plan::Expr::At(location(&names));
            rules.push(HeaderRule { name: Key::new(&target), value });
        }
        rules
    }

    /// Header fields with values made for them.
    pub(super) fn made_headers(&mut self, headers: &[(Spanned<String>, Expr)]) -> Option<Vec<HeaderRule>> {
        let mut rules = Vec::new();
        for (name, value) in headers {
            let name = self.header_name(name);
            let made = self.scalar_value(value, "a header field");
            let rule =
                name.zip(made).map(|(name, made)| HeaderRule { name: Key::new(&name), value: made.expr });
            rules.push(rule);
        }
        rules.into_iter().collect()
    }

    /// The lower-case name of a field that a mapping may touch.
    fn header_name(&mut self, name: &Spanned<String>) -> Option<String> {
        let Ok(parsed) = http::HeaderName::from_bytes(name.value.as_bytes()) else {
            self.findings.push(faults::header_form(name));
            return None;
        };
        let lower = parsed.as_str();
        let credential = self.ground.credential_headers.iter().any(|known| known == lower);
        if OWN_HEADERS.contains(&lower) || credential {
            self.findings.push(faults::own_header(name, credential));
            return None;
        }
        Some(lower.to_owned())
    }
}
