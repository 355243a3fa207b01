//! Comparison of two answers: their differences, and those that a pack declares.

use super::raw::Answer;
use crate::contract_walk::document::{Document, Operation};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use switchback_compiler::mapping::{self, load::PackSource};
use switchback_plan::router::{Found, Router};
use switchback_plan::{
    Absent, Block, Close, CloseFrom, End, Expr, Key, MemberAction, Pack, Route, RouteKind, SideId, ValueOp,
};

/// The first pack, compiled from its folder.
pub fn messaging_pack() -> Arc<Pack> {
    let source =
        PackSource::from_dir(&super::packs::messaging_folder()).expect("the pack lies beside the tests");
    mapping::compile(&source).pack.expect("the pack compiles")
}

/// The route that a request line such as `GET /v2/things?page=1` finds at the front that serves a
/// side at its name.
pub fn route_of<'p>(pack: &'p Pack, side: SideId, line: &str) -> Option<&'p Route> {
    let side_at = usize::from(side.0);
    let (method, target) = line.split_once(' ')?;
    let path = target.strip_prefix('/')?.strip_prefix(&pack.sides[side_at].name)?.split('?').next()?;
    let direction = &pack.directions[side_at];
    match Router::new(direction).find(&method.parse().ok()?, path) {
        Found::Route { route, .. } => direction.routes.get(usize::from(route.0)),
        _ => None,
    }
}

/// Returns whether the pack declares this difference: a field of the served side that is lost on
/// this route, and its replacement.
pub fn is_declared(pack: &Pack, route: Option<&Route>, side: SideId, difference: &Difference) -> bool {
    let name = &pack.sides[usize::from(side.0)].name;
    let losses = route.map_or(&[][..], |route| &route.losses);
    losses.iter().any(|loss| {
        let instead = loss.instead.as_deref().and_then(|text| serde_json::from_str(text).ok());
        loss.side == *name && loss.place == difference.place && instead == difference.got
    })
}

/// Returns whether two values are one id: integers or numeric texts, as the contracts permit;
/// clients must accept both.
pub fn is_same_id(difference: &Difference) -> bool {
    let digits = |value: &Option<Value>| match value {
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::String(text)) if text.bytes().all(|b| b.is_ascii_digit()) => Some(text.clone()),
        _ => None,
    };
    let name = difference.place.rsplit('.').next().unwrap_or_default();
    let is_id = name == "id" || name.ends_with("Id") || name.ends_with("ID");
    is_id && digits(&difference.told).is_some() && digits(&difference.told) == digits(&difference.got)
}

/// The places of a route's answers at which the pack writes null for lack of a source; a nested
/// null represents everything below it.
pub fn written_nulls(route: &Route) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    if let RouteKind::Serve(serve) = &route.kind {
        of_block(&serve.block, &mut places);
    }
    places
}

fn of_block(block: &Block, places: &mut BTreeSet<String>) {
    match &block.end {
        End::Answer(answer) => {
            if let Some(body) = &answer.body {
                of_expr(body, "$", places);
            }
        }
        End::Decide(decision) => {
            decision.outcomes.iter().for_each(|outcome| of_block(&outcome.block, places))
        }
        End::Refuse(_) => {}
    }
}

fn of_expr(expr: &Expr, place: &str, places: &mut BTreeSet<String>) {
    match expr {
        Expr::Constant(raw) => of_constant(raw, place, places),
        Expr::Object(members) => {
            members.iter().for_each(|(key, value)| of_expr(value, &below(place, key), places));
        }
        Expr::Array(items) | Expr::Present(items) => {
            items.iter().for_each(|item| of_expr(item, &format!("{place}[*]"), places));
        }
        Expr::FirstOf(alternatives) => alternatives.iter().for_each(|one| of_expr(one, place, places)),
        Expr::Each { give, .. } => of_expr(give, &format!("{place}[*]"), places),
        Expr::If { then, otherwise, .. } => {
            of_expr(then, place, places);
            otherwise.iter().for_each(|otherwise| of_expr(otherwise, place, places));
        }
        Expr::Shape { op, with, .. } => of_op(op, with, place, places),
        Expr::At(_)
        | Expr::Convert { .. }
        | Expr::Apply { .. }
        | Expr::Text { .. }
        | Expr::Lines { .. }
        | Expr::Aggregate { .. }
        | Expr::Lookup { .. } => {}
    }
}

fn of_op(op: &ValueOp, with: &[Expr], place: &str, places: &mut BTreeSet<String>) {
    match op {
        ValueOp::Object(object) => {
            for member in &object.members {
                if let MemberAction::Emit(emit) = &member.action {
                    of_op(&emit.op, with, &below(place, &emit.name), places);
                }
            }
            of_close(&object.close, with, place, places);
        }
        ValueOp::Array(each) | ValueOp::Wrap(each) => of_op(each, with, &format!("{place}[*]"), places),
        ValueOp::Unwrap(inner) => of_op(inner, with, place, places),
        ValueOp::Constant(raw) => of_constant(raw, place, places),
        ValueOp::Choose(choose) => choose.arms.iter().for_each(|arm| of_op(arm, with, place, places)),
        ValueOp::Attempt(attempt) => {
            of_op(&attempt.op, with, place, places);
            attempt.instead.iter().for_each(|raw| of_constant(raw, place, places));
        }
        ValueOp::Keep | ValueOp::Convert(_) | ValueOp::Again(_) => {}
    }
}

fn of_close(close: &[Close], with: &[Expr], place: &str, places: &mut BTreeSet<String>) {
    for Close { name, from, .. } in close {
        let place = below(place, name);
        match from {
            CloseFrom::Constant(raw) | CloseFrom::Default { value: raw, .. } => {
                of_constant(raw, &place, places)
            }
            CloseFrom::Captured { alternatives, absent } => {
                alternatives.iter().for_each(|one| of_op(&one.op, with, &place, places));
                if let Absent::Value(raw) = absent {
                    of_constant(raw, &place, places);
                }
            }
            CloseFrom::Object(close) => of_close(close, with, &place, places),
            CloseFrom::Supplied(at) => {
                with.get(usize::from(*at)).iter().for_each(|expr| of_expr(expr, &place, places));
            }
            CloseFrom::Setting(_) => {}
        }
    }
}

fn of_constant(raw: &[u8], place: &str, places: &mut BTreeSet<String>) {
    if raw == b"null" {
        places.insert(place.to_owned());
    }
}

fn below(place: &str, key: &Key) -> String {
    format!("{place}.{}", key.text)
}

/// Whether a body is an error in the service's form: one reason, with words in it.
pub fn is_error_form(body: &Value) -> bool {
    body.as_object().is_some_and(|members| members.len() == 1)
        && body["reason"].as_str().is_some_and(|text| !text.is_empty())
}

/// Returns the body as JSON; null without one.
pub fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}

/// Returns undeclared members of the bodies that a service with this contract received, by
/// operation. `log` is the sandbox's list at `/_sandbox/requests`.
pub fn undeclared_members(contract: &Document, log: &Value) -> Vec<String> {
    let calls = log.as_array().or_else(|| log["requests"].as_array()).expect("a list of requests");
    let side = format!("/{}/", contract.side);
    let mut found = Vec::new();
    for call in calls {
        let (method, path) = (&call["method"], call["path"].as_str().unwrap_or_default());
        let Some(path) = path.strip_prefix(&side) else { continue };
        let path: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').collect();
        let is_it = |operation: &&Operation| {
            let template: Vec<&str> = operation.template[1..].split('/').collect();
            let fits = |(name, segment): (&&str, &&str)| name.starts_with('{') || name == segment;
            method == operation.method.as_str()
                && template.len() == path.len()
                && template.iter().zip(&path).all(fits)
        };
        let operation = contract.operations.iter().find(is_it).expect("calls are of the contract");
        let declared = contract.body_example(operation).map(|(_, schema)| &schema["properties"]);
        for name in call["body"].as_object().into_iter().flat_map(|members| members.keys()) {
            if declared.is_none_or(|declared| declared[name].is_null()) {
                found.push(format!("{operation}: {name}"));
            }
        }
    }
    found
}

/// A place at which two values differ; elements of arrays are `[*]`.
pub struct Difference {
    pub place: String,
    pub told: Option<Value>,
    pub got: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: told {:?}, got {:?}", self.place, self.told, self.got)
    }
}

/// Returns all places with a difference between two answers.
pub fn differences(told: &Value, got: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk("$", Some(told), Some(got), &mut found);
    found
}

fn walk(place: &str, told: Option<&Value>, got: Option<&Value>, found: &mut Vec<Difference>) {
    match (told, got) {
        (Some(Value::Object(told)), Some(Value::Object(got))) => {
            let names: BTreeSet<_> = told.keys().chain(got.keys()).collect();
            for name in names {
                walk(&format!("{place}.{name}"), told.get(name), got.get(name), found);
            }
        }
        (Some(Value::Array(told)), Some(Value::Array(got))) => {
            for at in 0..told.len().max(got.len()) {
                walk(&format!("{place}[*]"), told.get(at), got.get(at), found);
            }
        }
        (told, got) if told != got => {
            found.push(Difference { place: place.to_owned(), told: told.cloned(), got: got.cloned() });
        }
        _ => {}
    }
}
