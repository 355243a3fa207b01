//! Generates examples of operations that pass unchanged (`identical: keep`, `rest: keep`, pairs
//! with `keep`) from the contracts, one for each success. Authors need not write them, because they
//! would only repeat the contracts.

use crate::contract::{
    Contract, Contracts, Operation, Parameter, Scalar, StatusPattern, TypeKind, Types, sample,
};
use serde_json::Value;
use switchback_plan::{
    BodyFormat, Direction, Example, ExampleCall, ExampleEnd, ExampleKind, Exchange, Expr, HeaderRule, Pack,
    Pair, QueryFrom, QueryRule, Raw, ResponseBody, Route, RouteExample, RouteKind, StatusFrom, StatusTo,
    ValueOp, Wanted,
};

/// Returns an example for each success of each operation that passes unchanged.
pub fn examples(pack: &Pack, contracts: &Contracts) -> Vec<Example> {
    let of = |direction| of_direction(direction, contracts);
    pack.directions.iter().flat_map(of).collect()
}

fn of_direction<'p>(
    direction: &'p Direction,
    contracts: &'p Contracts,
) -> impl Iterator<Item = Example> + 'p {
    let [served, called] =
        [direction.serves, direction.serves.other()].map(|side| &contracts[usize::from(side.0)]);
    direction.routes.iter().flat_map(move |route| {
        let RouteKind::Pair(pair) = &route.kind else { return Vec::new() };
        let (Some(asked), Some(answers)) =
            (operation(served, &route.operation.key), operation(called, &pair.call.operation))
        else {
            return Vec::new();
        };
        let same_path =
            asked.key.method == answers.key.method && asked.key.path.shape() == answers.key.path.shape();
        // The result of a route with alternatives depends on settings, which the contracts do not
        // determine.
        if !route.instead.is_empty() || !same_path || !is_kept(pair) || !asked.is_typed() {
            return Vec::new();
        }
        let kept = PassedRoute { route, pair, asked, served, called, answers };
        pair.responses.iter().filter_map(|response| kept.example(direction, response)).collect()
    })
}

fn operation<'c>(contract: &'c Contract, key: &str) -> Option<&'c Operation> {
    contract.operations.iter().find(|operation| operation.key.to_string() == key)
}

fn is_kept(pair: &Pair) -> bool {
    let same_query = pair.call.query.iter().all(|rule| match &rule.from {
        QueryFrom::Client(name) => *name == rule.name,
        // List parameters need a serialization style, which the sample does not render.
        QueryFrom::Constant(value) => !value.starts_with(b"["),
        _ => false,
    });
    let is_constant = |rule: &HeaderRule| matches!(rule.value, Expr::Constant(_));
    pair.request.as_ref().is_none_or(|plan| matches!(plan.op, ValueOp::Keep))
        && matches!(pair.call.format, BodyFormat::Json)
        && pair.refused.is_empty()
        && same_query
        && pair.call.headers.iter().all(is_constant)
}

/// A route that passes requests and responses unchanged.
struct PassedRoute<'p> {
    route: &'p Route,
    pair: &'p Pair,
    asked: &'p Operation,
    served: &'p Contract,
    called: &'p Contract,
    answers: &'p Operation,
}

impl PassedRoute<'_> {
    /// Returns the example of one success, or `None` if its body is not JSON or not described.
    fn example(&self, direction: &Direction, response: &switchback_plan::Response) -> Option<Example> {
        let status = match response.from {
            StatusFrom::Exact(status) => status,
            StatusFrom::Class(class) => u16::from(class) * 100,
        };
        let promised = self.answers.response(status).filter(|one| one.status != StatusPattern::Default)?;
        if status / 100 != 2 || response.to != StatusTo::Same || !response.headers.is_empty() {
            return None;
        }
        let reply = match &response.body {
            ResponseBody::Empty => None,
            ResponseBody::Undescribed if matches!(response.from, StatusFrom::Exact(_)) => None,
            ResponseBody::Plan(plan) if matches!(plan.op, ValueOp::Keep) && promised.media.is_json() => {
                Some(raw(&sample(&self.called.types, promised.body.as_ref()?)))
            }
            _ => return None,
        };
        let target = self.target();
        let body = self.pair.request.as_ref().and(self.asked.body.as_ref());
        let body = body.map(|body| raw(&sample(&self.served.types, &body.ty)));
        let origin = self.route.origin.clone();
        let call = ExampleCall {
            method: self.pair.call.method.clone(),
            target: self.call_target(&target),
            headers: Vec::new(),
            body: body.clone(),
            status,
            reply_headers: Vec::new(),
            reply: reply.clone(),
            origin: origin.clone(),
        };
        let end = ExampleEnd::Answer {
            status,
            headers: Vec::new(),
            body: reply.map_or(Wanted::None, Wanted::Json),
        };
        let route = RouteExample {
            serves: direction.serves,
            method: self.asked.key.method.clone(),
            target,
            headers: Vec::new(),
            body,
            config: Vec::new(),
            exchange: Exchange { calls: vec![call], end, keeps: Vec::new() },
            archived: Vec::new(),
            again: None,
        };
        Some(Example { kind: ExampleKind::Route(Box::new(route)), origin })
    }

    /// Returns the expected target of the call, including constant parameters.
    fn call_target(&self, target: &str) -> String {
        let mut called = target.to_owned();
        for rule in &self.pair.call.query {
            let QueryFrom::Constant(value) = &rule.from else { continue };
            let text = match serde_json::from_slice(value) {
                Ok(Value::String(text)) => percent_encode(&text),
                Ok(value) => value.to_string(),
                Err(_) => continue,
            };
            let joint = if called.contains('?') { '&' } else { '?' };
            called.push_str(&format!("{joint}{}={text}", percent_encode(&rule.name)));
        }
        called
    }

    /// Returns the request target, with a sample value for each variable and each forwarded
    /// parameter.
    fn target(&self) -> String {
        let types = &self.served.types;
        let mut target = self.asked.key.path.to_string();
        for variable in &self.asked.path_params {
            let value = text_of(types, variable).unwrap_or_else(|| "1".to_owned());
            target = target.replace(&format!("{{{}}}", variable.name), &value);
        }
        let from_client = |rule: &&QueryRule| matches!(rule.from, QueryFrom::Client(_));
        let goes_over = |parameter: &&Parameter| {
            self.pair.call.query.iter().filter(from_client).any(|rule| *rule.name == *parameter.name)
        };
        let query: Vec<String> = self
            .asked
            .query
            .iter()
            .filter(goes_over)
            .filter_map(|parameter| {
                Some(format!("{}={}", percent_encode(&parameter.name), text_of(types, parameter)?))
            })
            .collect();
        if query.is_empty() { target } else { format!("{target}?{}", query.join("&")) }
    }
}

/// Returns the sample value of a parameter, percent-encoded, or `None` if it is not a scalar.
fn text_of(types: &Types, parameter: &Parameter) -> Option<String> {
    let TypeKind::Scalar(Scalar { .. }) = types.resolve(&parameter.ty).kind else { return None };
    Some(match sample(types, &parameter.ty) {
        Value::String(text) => percent_encode(&text),
        value => value.to_string(),
    })
}

fn percent_encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn raw(value: &Value) -> Raw {
    value.to_string().into_bytes().into()
}
