//! Compiles rules for query parameters and headers. Each has a known source and target; a parameter
//! must not be dropped implicitly, and must not be one of the gateway's own.

use super::expr::ExprTarget;
use super::faults;
use super::flow::Flow;
use super::operations;
use super::paths::{COOKIES, location};
use super::route::RouteCheck;
use crate::contract::{Narrowing, Operation, Parameter, ParameterForm, ScalarKind, TypeIn, TypeKind};
use crate::mapping::ast::{
    CallDecl, ConstantParameter, ConversionUse, ExprDecl, ExprKind, PairDecl, ParameterLine, Spanned,
};
use crate::mapping::lens::{
    Lost, ReadConversion, ReadyConversion, check_conversion, exceeding, is_partial, read_conversion,
};
use crate::mapping::literal;
use crate::yaml::Kind;
use std::sync::Arc;
use switchback_plan::convert::Conversion;
use switchback_plan::{
    self as plan, HeaderRule, Key, Kinds, ListStyle, Loss, Message, ParameterShape, QueryFrom, QueryRefusal,
    QueryRule, SideId,
};

/// Headers that belong to one hop (RFC 9110, section 7.6.1), or that the gateway sets for each
/// message.
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

/// Returns whether a header (in lower case) belongs to one hop or is set by the gateway.
pub(super) fn is_own_header(name: &str) -> bool {
    OWN_HEADERS.contains(&name) || name == "accept"
}

/// The word in `query: {name: drop}` and `headers: {request: {name: drop}}`.
pub(super) const DROP: &str = "drop";

impl<'a> RouteCheck<'_, 'a> {
    /// Compiles the query parameters of a pair's call.
    pub(super) fn pair_query(&mut self, pair: &PairDecl, called: &'a Operation) -> Vec<QueryRule> {
        let mut rules = Vec::new();
        let mut passed: Vec<&str> = Vec::new();
        for line in &pair.query.lines {
            if line.new.value == DROP {
                passed.push(&line.old.value);
                continue;
            }
            let (from, to) =
                if self.serves == SideId::OLD { (&line.old, &line.new) } else { (&line.new, &line.old) };
            let known = self.operation.query.iter().find(|parameter| parameter.name == from.value);
            let taken = called.query.iter().find(|parameter| parameter.name == to.value);
            // Claimed even if a name is wrong, which `unknown_parameters` reports.
            passed.push(&from.value);
            if let (Some(known), Some(taken)) = (known, taken) {
                rules.extend(self.parameter(line, known, taken));
            }
        }
        for constant in &pair.query.constants {
            let name = &constant.name.value;
            // The run time checks the value that clients send; the call has no such parameter.
            if constant.side.side == self.serves.place() {
                passed.push(name);
            } else if called.query.iter().any(|parameter| parameter.name == *name) {
                let from = QueryFrom::Constant(literal::json(&constant.value));
                let style = called.query.iter().find(|p| p.name == *name).map(style_of).unwrap_or_default();
                rules.push(QueryRule { name: name.as_str().into(), from, style });
            }
        }
        // After the lines of the route, which take precedence.
        self.sent_query(&mut rules, called);
        passed.extend(pair.query.refused.iter().map(|refused| refused.name.value.as_str()));
        passed.extend(pair.query.faulty.iter().map(String::as_str));
        let paged = &self.paged.parameters;
        passed.extend(paged[0].iter().map(String::as_str));
        // A line with an error may refer to any parameter of the new side.
        let is_hidden = self.serves == SideId::NEW && !pair.query.faulty.is_empty();
        for parameter in self.operation.query.iter().filter(|_| !is_hidden) {
            if !passed.contains(&parameter.name.as_str()) {
                let side = self.env.side_name(self.serves);
                self.findings.push(faults::parameter_goes_nowhere(&parameter.name, pair.span, side));
            }
        }
        for parameter in called.query.iter().filter(|parameter| parameter.required) {
            let is_faulty = pair.query.faulty.contains(&parameter.name) || paged[1].contains(&parameter.name);
            if !is_faulty && !rules.iter().any(|rule| rule.name.as_ref() == parameter.name) {
                self.findings.push(faults::parameter_missing(&parameter.name, pair.span, &called.key));
            }
        }
        rules
    }

    /// Compiles the rule for one parameter: passed unchanged if both sides serialize it alike,
    /// otherwise serialized again.
    fn parameter(&mut self, line: &ParameterLine, from: &Parameter, to: &Parameter) -> Option<QueryRule> {
        let types = [self.env.types(self.serves), self.env.types(self.serves.other())];
        let shapes = [operations::variable(from, types[0]).shape, operations::variable(to, types[1]).shape];
        let value = plan::Expr::At(location(&["request", "query", &from.name]));
        let style = style_of(to);
        let rule = |from| Some(QueryRule { name: to.name.as_str().into(), from, style });
        if let Some(written) = &line.conversion {
            let value =
                self.convert_value(written, value, [types[0].at(&from.ty), types[1].at(&to.ty)], &from.name)?;
            return rule(QueryFrom::Value(value));
        }
        let span = if self.serves == SideId::OLD { line.old.span } else { line.new.span };
        self.parameter_types("query", from, to, span);
        // The delimiter has no escape, so such elements would split or vanish.
        if let Some(delimiter) = style.delimiter()
            && style != style_of(from)
            && may_hold(delimiter, types[0].at(&from.ty))
        {
            let values = format!("lists with an element that is empty or holds `{delimiter}`");
            let place = format!("query.{}", from.name);
            self.lose_narrower(&[Narrowing::of_both_messages(values)], self.serves.other(), &place, span);
        }
        match &shapes {
            [ParameterShape::Fields(_), ParameterShape::Fields(_)] => {
                rule(QueryFrom::ClientFields(from.name.as_str().into()))
            }
            [ParameterShape::Single, ParameterShape::Single] => {
                rule(QueryFrom::Client(from.name.as_str().into()))
            }
            [ParameterShape::List(a), ParameterShape::List(b)] if a == b => {
                rule(QueryFrom::Client(from.name.as_str().into()))
            }
            [ParameterShape::Single | ParameterShape::List(_), ParameterShape::List(_)] => {
                rule(QueryFrom::Value(value))
            }
            _ => {
                let names = [self.serves, self.serves.other()].map(|side| self.env.side_name(side));
                let span = if self.serves == SideId::OLD { line.new.span } else { line.old.span };
                self.findings.push(faults::parameter_style(span, [&from.name, &to.name], names, &shapes));
                None
            }
        }
    }

    /// Compiles the conversion of a parameter. Returns `None` if it reports an error.
    fn convert_value(
        &mut self,
        written: &ConversionUse,
        value: plan::Expr,
        [from, to]: [TypeIn<'_>; 2],
        name: &str,
    ) -> Option<plan::Expr> {
        let by_side =
            if self.serves == SideId::OLD { [Some(from), Some(to)] } else { [Some(to), Some(from)] };
        let read = read_conversion(written, by_side, &self.env.world, self.findings)?;
        let ReadConversion::Convert(ReadyConversion { kind, elses, each: None }) = read else {
            self.findings.push(faults::parameter_single(&written.name));
            return None;
        };
        let (own, other) = (self.serves, self.serves.other());
        let said = &elses.0[other];
        if !said.is_said && is_partial(&kind, own, from) {
            self.use_partial(&written.name, other, from.ty, None);
        }
        let otherwise = said.otherwise.clone();
        let conversion = Conversion { kind, forward: own == SideId::OLD, otherwise };
        match check_conversion(&conversion, from, to) {
            Err(why) => {
                self.findings.push(faults::parameter_conversion(&written.name, name, &why.to_string()));
                return None;
            }
            Ok(lost) if !matches!(lost, Lost::Nothing) => self.lose(Loss {
                side: self.env.side_name(self.serves).to_owned(),
                place: format!("query.{name}"),
                instead: None,
                unless_found: false,
                partly: true,
                narrow: None,
                origin: self.env.origin(written.name.span),
            }),
            Ok(_) => {}
        }
        let exceeding = exceeding(&conversion, from, to, Some(Message::Request));
        self.lose_narrower(&exceeding, other, &format!("query.{name}"), written.name.span);
        Some(plan::Expr::Convert { from: Box::new(value), conversion })
    }

    /// Returns the constant parameters of the served side: the only value that clients may send for
    /// each.
    pub(super) fn constants(&mut self, pair: &PairDecl) -> Vec<(Arc<str>, Arc<str>)> {
        let served = self.serves.place();
        let of_side = pair.query.constants.iter().filter(|constant| constant.side.side == served);
        let text = |constant: &ConstantParameter| match &constant.value.kind {
            Kind::String(text, _) | Kind::Number(text) => Some(text.as_str().into()),
            Kind::Bool(value) => Some(value.to_string().into()),
            _ => None,
        };
        of_side.filter_map(|constant| Some((constant.name.value.as_str().into(), text(constant)?))).collect()
    }

    /// Adds the query parameters that all calls to the other side send (`send:`). Rules of the
    /// route take precedence.
    pub(super) fn sent_query(&self, rules: &mut Vec<QueryRule>, called: &Operation) {
        for (name, value) in &self.env.manifest().send[self.serves.other()].query {
            if !rules.iter().any(|rule| *rule.name == *name.value) {
                let style =
                    called.query.iter().find(|p| p.name == name.value).map(style_of).unwrap_or_default();
                let from = QueryFrom::Constant(literal::json(value));
                rules.push(QueryRule { name: name.value.as_str().into(), from, style });
            }
        }
    }

    /// Adds the headers that all calls to the other side send (`send:`). Rules of the route take
    /// precedence.
    pub(super) fn sent_headers(&self, rules: &mut Vec<HeaderRule>) {
        for (name, value) in &self.env.manifest().send[self.serves.other()].headers {
            let name = name.value.to_ascii_lowercase();
            if !rules.iter().any(|rule| *rule.name.text == *name) {
                rules.push(HeaderRule {
                    name: Key::new(&name),
                    value: plan::Expr::Constant(literal::json(value)),
                });
            }
        }
    }

    /// Compiles the parameters of the served operation that refuse a call.
    pub(super) fn refused_query(&mut self, pair: &PairDecl) -> Vec<QueryRefusal> {
        let mut refusals = Vec::new();
        for refused in &pair.query.refused {
            let reason = self.env.reason(&refused.reason, &[], self.findings);
            let known = self.operation.query.iter().any(|parameter| parameter.name == refused.name.value);
            let (true, Some(reason)) = (known, reason) else { continue };
            self.summary.refuses = true;
            refusals.push(QueryRefusal {
                name: refused.name.value.as_str().into(),
                unless: refused.unless.iter().map(|value| value.value.as_str().into()).collect(),
                reason,
                origin: self.env.origin(refused.name.span),
            });
        }
        refusals
    }

    /// Reports names in `query:` that the operations lack. Call it once per pair.
    pub(super) fn unknown_parameters(&mut self, pair: &PairDecl, operations: [&Operation; 2]) {
        let names = |side: usize| -> Vec<&str> {
            operations[side].query.iter().map(|parameter| parameter.name.as_str()).collect()
        };
        let dropped = pair.query.lines.iter().filter(|line| line.new.value == DROP).map(|line| &line.old);
        let all: Vec<&str> = names(0).into_iter().chain(names(1)).collect();
        for name in dropped.chain(pair.query.refused.iter().map(|refused| &refused.name)) {
            if !all.contains(&name.value.as_str()) {
                self.findings.push(faults::unknown_parameter(name, &operations[0].key, &all));
            }
        }
        for line in pair.query.lines.iter().filter(|line| line.new.value != DROP) {
            for (side, name) in [(0, &line.old), (1, &line.new)] {
                if !names(side).contains(&name.value.as_str()) {
                    self.findings.push(faults::unknown_parameter(name, &operations[side].key, &names(side)));
                }
            }
        }
        for constant in &pair.query.constants {
            let (side, name) = (constant.side.side, &constant.name);
            let Some(known) = operations[side].query.iter().find(|parameter| parameter.name == name.value)
            else {
                self.findings.push(faults::unknown_parameter(name, &operations[side].key, &names(side)));
                continue;
            };
            let types = &self.env.world.contracts[side].types;
            if let Err(misfit) = literal::check(&constant.value, types.at(&known.ty)) {
                self.findings.push(faults::constant_parameter(&misfit));
            }
        }
    }

    /// Compiles the query parameters of a step's call.
    pub(super) fn call_query(
        &mut self,
        call: &CallDecl,
        called: &Operation,
        paged_by: Option<&str>,
        flow: &Flow,
    ) -> Vec<QueryRule> {
        let side = self.serves.other();
        let mut rules = Vec::new();
        for (name, value) in &call.query {
            if self.paged.parameters[1].contains(&name.value) {
                self.findings.push(faults::paged_twice(name));
                continue;
            }
            if paged_by == Some(name.value.as_str()) {
                self.findings.push(faults::page_set_twice(name));
                continue;
            }
            let Some(parameter) = called.query.iter().find(|parameter| parameter.name == name.value) else {
                let known: Vec<&str> = called.query.iter().map(|parameter| parameter.name.as_str()).collect();
                self.findings.push(faults::unknown_parameter(name, &called.key, &known));
                // The parameter is unknown. Compile the value all the same, to report its errors.
                let _ = self.value(value, &self.scope(flow, None));
                continue;
            };
            let wanted = ExprTarget { ty: &parameter.ty, side, required: parameter.required };
            let Some(made) = self.value(value, &self.scope(flow, Some(wanted))) else { continue };
            let shape = operations::variable(parameter, self.env.types(side)).shape;
            // The types of lists and objects have been checked already.
            let is_single = matches!(shape, ParameterShape::Single);
            if is_single && self.is_scalar(&made.held, "a query parameter", value.span).is_none() {
                continue;
            }
            self.becomes_text(&made.expr, "a query parameter", flow, value.span);
            let from = match &value.kind {
                ExprKind::Literal(node) => QueryFrom::Constant(literal::json(node)),
                _ => QueryFrom::Value(made.expr),
            };
            rules.push(QueryRule { name: name.value.as_str().into(), from, style: style_of(parameter) });
        }
        // After the parameters of the call, which take precedence.
        self.sent_query(&mut rules, called);
        for parameter in called.query.iter().filter(|parameter| parameter.required) {
            let paged = paged_by == Some(parameter.name.as_str())
                || self.paged.parameters[1].contains(&parameter.name);
            let is_sent = rules.iter().any(|rule| *rule.name == *parameter.name);
            if !paged && !is_sent && !call.query.iter().any(|(name, _)| name.value == parameter.name) {
                self.findings.push(faults::parameter_missing(
                    &parameter.name,
                    call.operation.span,
                    &called.key,
                ));
            }
        }
        rules
    }

    /// Compiles the headers of a pair's request or response. `from` is the part of the context that
    /// they are read from.
    pub(super) fn pair_headers(
        &mut self,
        lines: &[ParameterLine],
        constants: &[ConstantParameter],
        from: &[&str],
        towards: SideId,
    ) -> Vec<HeaderRule> {
        let mut rules = Vec::new();
        for line in lines.iter().filter(|line| line.new.value != DROP) {
            let (source, target) =
                if towards == SideId::NEW { (&line.old, &line.new) } else { (&line.new, &line.old) };
            let (source, target) = (self.header_name(source), self.header_name(target));
            let (Some(source), Some(target)) = (source, target) else { continue };
            if COOKIES.contains(&source.as_str()) {
                let read = if towards == SideId::NEW { &line.old } else { &line.new };
                self.findings.push(faults::cookie_read(&read.value, read.span));
                continue;
            }
            let names: Vec<&str> = from.iter().copied().chain([source.as_str()]).collect();
            let value = plan::Expr::At(location(&names));
            let value = match &line.conversion {
                None => Some(value),
                Some(written) => self.converted_header(written, value, towards),
            };
            rules.extend(value.map(|value| HeaderRule { name: Key::new(&target), value }));
        }
        for constant in constants.iter().filter(|constant| constant.side.side == towards.place()) {
            let Some(name) = self.header_name(&constant.name) else { continue };
            let value = plan::Expr::Constant(literal::json(&constant.value));
            rules.push(HeaderRule { name: Key::new(&name), value });
        }
        rules
    }

    /// Compiles the conversion of a header. Headers are texts on both sides, regardless of their
    /// declared types.
    fn converted_header(
        &mut self,
        written: &ConversionUse,
        value: plan::Expr,
        towards: SideId,
    ) -> Option<plan::Expr> {
        let read = read_conversion(written, [None, None], &self.env.world, self.findings)?;
        let ReadConversion::Convert(ReadyConversion { kind, elses, each: None }) = read else {
            self.findings.push(faults::parameter_single(&written.name));
            return None;
        };
        let otherwise = elses.0[towards].otherwise.clone();
        let scalars = |kinds: Kinds| kinds.string || kinds.number || kinds.boolean;
        if !kind.kinds(towards.other()).string || !scalars(kind.kinds(towards)) {
            let why = "a header field is a text";
            self.findings.push(faults::parameter_conversion(&written.name, "a header field", why));
            return None;
        }
        let conversion = Conversion { kind, forward: towards == SideId::NEW, otherwise };
        Some(plan::Expr::Convert { from: Box::new(value), conversion })
    }

    /// Compiles headers from expressions.
    pub(super) fn made_headers(
        &mut self,
        headers: &[(Spanned<String>, ExprDecl)],
        flow: &Flow,
    ) -> Option<Vec<HeaderRule>> {
        let mut rules = Vec::new();
        for (name, value) in headers {
            let name = self.header_name(name);
            let made = self.scalar_value(value, "a header field", &self.scope(flow, None));
            let rule =
                name.zip(made).map(|(name, made)| HeaderRule { name: Key::new(&name), value: made.expr });
            rules.push(rule);
        }
        rules.into_iter().collect()
    }

    /// Returns the lower-case name of a header that mappings may set or read.
    fn header_name(&mut self, name: &Spanned<String>) -> Option<String> {
        let Ok(parsed) = http::HeaderName::from_bytes(name.value.as_bytes()) else {
            self.findings.push(faults::header_form(name));
            return None;
        };
        let lower = parsed.as_str();
        let credential = self.env.credential_headers.iter().any(|known| known == lower);
        if OWN_HEADERS.contains(&lower) || credential {
            self.findings.push(faults::own_header(name, credential));
            return None;
        }
        Some(lower.to_owned())
    }
}

/// Formats of texts that are never empty and contain no list delimiter.
const UNBROKEN: [&str; 4] = ["date", "date-time", "uuid", "ipv4"];

/// Returns whether an element of a list can be empty or contain the delimiter.
fn may_hold(delimiter: char, list: TypeIn<'_>) -> bool {
    let TypeKind::Array(array) = list.types.resolve(list.ty).kind else { return false };
    let TypeKind::Scalar(scalar) = list.types.resolve(&array.items).kind else { return true };
    let is_broken = |text: &str| text.is_empty() || text.contains(delimiter);
    match &scalar.values {
        _ if scalar.kind != ScalarKind::String => false,
        Some(values) if !values.open => values.values.iter().any(|value| is_broken(&value.to_string())),
        _ => !scalar.format.as_deref().is_some_and(|format| UNBROKEN.contains(&format)),
    }
}

/// How lists of a parameter are written.
fn style_of(parameter: &Parameter) -> ListStyle {
    match parameter.form {
        ParameterForm::Joined(style) => style,
        ParameterForm::Plain | ParameterForm::Text | ParameterForm::Deep => ListStyle::Repeated,
    }
}
