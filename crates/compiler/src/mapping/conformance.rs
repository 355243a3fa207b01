//! Checks the messages of examples against the contracts. An example proves little if no client
//! sends its request, or no service returns its replies.
//!
//! Checked: values in JSON bodies and in query parameters. Not checked:
//! - requests that do not end in a status below 400, calls of exchanges that end in a gateway error
//!   (5xx), and bodies of statuses that the contract does not list: these examples are about broken
//!   messages;
//! - omitted members, because examples abbreviate;
//! - null values in messages from the gateway, and a missing body in its responses, which running
//!   the example compares.

use super::ast::{
    ExampleAnswer, ExampleCallDecl, ExampleDecl, ExchangeDecl, ProgramDecl, RouteExampleDecl, Spanned,
};
use super::examples::is_open;
use crate::contract::{Breach, BreachKind, Contract, Contracts, Operation, breaches, parameter_breaches};
use crate::diagnostic::{Code, Finding, Findings, Span};
use crate::yaml::{Kind, Node};
use http::Method;
use switchback_json::{Number, Value};
use switchback_plan::Message;

/// Reports each place of an example that violates a contract.
pub(super) fn check(program: &ProgramDecl, contracts: &Contracts, findings: &mut Findings) {
    let mut judge = ExampleConformance { findings };
    for example in &program.examples {
        match example {
            ExampleDecl::Route(route) => {
                let sides = &program.manifest.sides;
                let Some((side, call)) = route.at.value.split_once(' ') else { continue };
                let Some(side) = sides.iter().position(|known| known.value == side) else { continue };
                judge.route(route, call, [&contracts[side], &contracts[1 - side]]);
            }
            ExampleDecl::Harvest(harvest) => {
                let found = program.harvests.iter().find(|one| one.name.value == harvest.name.value);
                let Some(found) = found else { continue };
                judge.calls(&harvest.exchange, &contracts[found.from.side]);
            }
            ExampleDecl::Shape(_) => {}
        }
    }
}

/// Origin of a message in an example.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    Gateway,
    /// A client or a service.
    Other,
}

struct ExampleConformance<'f> {
    findings: &'f mut Findings,
}

impl ExampleConformance<'_> {
    fn route(&mut self, route: &RouteExampleDecl, call: &str, [served, called]: [&Contract; 2]) {
        let operation = operation(served, call);
        if let (Some(operation), true) =
            (operation, status(&route.exchange).is_some_and(|status| status < 400))
        {
            self.query(call, operation, served, route.at.span);
            self.request(Maker::Other, route.send.body.as_ref(), operation, served, route.at.span);
        }
        for exchange in std::iter::once(&route.exchange).chain(&route.again) {
            self.calls(exchange, called);
            if let (Some(operation), ExampleAnswer::Answer { status, body, .. }) =
                (operation, &exchange.answer)
            {
                self.answer(Maker::Gateway, status, body.as_ref(), operation, served);
            }
        }
    }

    fn calls(&mut self, exchange: &ExchangeDecl, contract: &Contract) {
        // An invalid reply may be the very subject of such an example.
        if status(exchange).is_some_and(|status| status >= 500) {
            return;
        }
        for call in &exchange.calls {
            let Some(operation) = operation(contract, &call.expect.value) else { continue };
            self.call(call, operation, contract);
        }
    }

    fn call(&mut self, call: &ExampleCallDecl, operation: &Operation, contract: &Contract) {
        self.query(&call.expect.value, operation, contract, call.expect.span);
        self.request(Maker::Gateway, call.body.as_ref(), operation, contract, call.expect.span);
        self.answer(Maker::Other, &call.reply.status, call.reply.body.as_ref(), operation, contract);
    }

    fn query(&mut self, call: &str, operation: &Operation, contract: &Contract, span: Span) {
        for breach in parameter_breaches(&contract.types, operation, call) {
            self.report(span, "request", operation, &breach);
        }
    }

    fn request(
        &mut self,
        maker: Maker,
        body: Option<&Node>,
        operation: &Operation,
        contract: &Contract,
        span: Span,
    ) {
        match (&operation.body, body) {
            (Some(wanted), None) if wanted.required && wanted.media.is_json() => {
                self.report(span, "request", operation, "the body is required and missing");
            }
            (None, Some(body)) => {
                self.report(body.span, "request", operation, "a body is sent and none is taken");
            }
            // A form is a text in examples.
            (Some(wanted), Some(body)) if wanted.takes_form() && body.as_str().is_some() => {}
            (Some(wanted), Some(body)) if wanted.media.is_json() => {
                let value = value(body);
                let found = breaches(&contract.types, &wanted.ty, &value, Some(Message::Request));
                self.body(maker, "request", body, operation, &found);
            }
            _ => {}
        }
    }

    fn answer(
        &mut self,
        maker: Maker,
        status: &Spanned<i64>,
        body: Option<&Node>,
        operation: &Operation,
        contract: &Contract,
    ) {
        let listed = u16::try_from(status.value).ok().and_then(|status| operation.response(status));
        let Some(response) = listed else { return };
        let word = if maker == Maker::Gateway { "answer" } else { "reply" };
        match (&response.body, body) {
            // An empty reply is a violation only for successes; the bodies of failures are rarely
            // written out.
            (Some(_), None) if maker == Maker::Other && response.media.is_json() && status.value < 300 => {
                let breach = format!("{} has a body, and it is missing", status.value);
                self.report(status.span, word, operation, &breach);
            }
            (Some(wanted), Some(body)) if response.media.is_json() && !is_open(body) => {
                let found = breaches(&contract.types, wanted, &value(body), Some(Message::Answer));
                self.body(maker, word, body, operation, &found);
            }
            _ => {}
        }
    }

    fn body(&mut self, maker: Maker, word: &str, body: &Node, operation: &Operation, found: &[Breach]) {
        // Examples abbreviate, so missing members are not reported.
        for breach in found.iter().filter(|breach| breach.what != BreachKind::Missing) {
            let node = at(body, &breach.place);
            if maker == Maker::Gateway && node.kind == Kind::Null {
                continue;
            }
            self.report(node.span, word, operation, &breach.to_string());
        }
    }

    fn report(&mut self, span: Span, word: &str, operation: &Operation, breach: &str) {
        let message = format!("the {word} is not what `{}` promises: {breach}", operation.key);
        self.findings.push(Finding::error(Code::ExampleBreach, span, message).help(
            "write the example as the contract has it, or correct the contract if the service is right",
        ));
    }
}

/// Returns the operation of a contract that a call such as `GET /things/7?page=1` addresses.
fn operation<'c>(contract: &'c Contract, call: &str) -> Option<&'c Operation> {
    let (method, target) = call.split_once(' ')?;
    let path = target.split('?').next().unwrap_or(target);
    contract.find_path(&Method::from_bytes(method.as_bytes()).ok()?, path)
}

/// Returns the final status of an exchange, or `None` if it is refused.
fn status(exchange: &ExchangeDecl) -> Option<i64> {
    match &exchange.answer {
        ExampleAnswer::Answer { status, .. } => Some(status.value),
        ExampleAnswer::Refused(_) => None,
    }
}

fn value(node: &Node) -> Value {
    match &node.kind {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(*value),
        Kind::Number(text) => Number::from_text(text).map_or(Value::Null, Value::Number),
        Kind::String(text, _) => Value::string(text),
        Kind::Seq(items) => Value::Array(items.iter().map(value).collect()),
        Kind::Map(entries) => {
            let members = entries.iter().map(|(key, of)| (key.name.as_str(), value(of)));
            Value::Object(members.collect())
        }
    }
}

/// Returns the node at a place such as `$.items[3].name`, or its deepest existing ancestor.
fn at<'n>(root: &'n Node, place: &str) -> &'n Node {
    let (mut node, mut rest) = (root, place.strip_prefix('$').unwrap_or(place));
    loop {
        let next = match &node.kind {
            Kind::Seq(items) => rest.strip_prefix('[').and_then(|rest| {
                let (index, rest) = rest.split_once(']')?;
                Some((items.get(index.parse::<usize>().ok()?)?, rest))
            }),
            Kind::Map(entries) => rest.strip_prefix('.').and_then(|rest| {
                let after = |name: &str| {
                    rest.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                };
                entries.iter().find_map(|(key, value)| Some((value, after(&key.name)?)))
            }),
            _ => None,
        };
        match next {
            Some(found) => (node, rest) = found,
            None => return node,
        }
    }
}
