//! The plans of every pack, with a generated other side: it rejects requests outside its contract,
//! and answers all others with any permitted answer.

use crate::support::packs;
use crate::support::values::{Fill, Generator, Spot};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use std::time::Duration;
use switchback_compiler::contract::{Contract, Contracts, Operation, RequestBody, StatusPattern, breaches};
use switchback_compiler::mapping::{self, Compiled};
use switchback_engine::translate::{Call, Event, FaultKind, Next, Reply, Request, Run, Settings};
use switchback_json::{Limits, Value};
use switchback_plan::{Effect, Pack, ParameterKind, Route, RouteKind, SettingKind, SideId};

/// A request of a client: variables, body, settings, and the seed of the replies.
#[derive(Clone, Debug)]
struct Drawn {
    path: Vec<String>,
    body: Option<Value>,
    switches: Vec<bool>,
    /// By operation of the called contract: bodies of its successes.
    replies: Vec<Vec<Value>>,
}

fn as_it_is(_: &Spot<'_>, plain: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    plain
}

fn valid(contract: &Contract, ty: &switchback_compiler::contract::Type, fill: Fill) -> BoxedStrategy<Value> {
    let generator = Generator {
        types: &contract.types,
        fill,
        narrow: &as_it_is,
        must: &|_| false,
        single: &|_| false,
        extras: &|_| false,
    };
    generator.value(ty)
}

/// A body that was valid, with up to two places changed: left out, or of another kind.
fn mutated(contract: &Contract, body: &RequestBody) -> BoxedStrategy<Option<Value>> {
    let change =
        (any::<prop::sample::Index>(), prop::option::weighted(0.8, prop::sample::select(super::values())));
    let changes = prop::collection::vec(change, 0..3);
    let value = prop_oneof![valid(contract, &body.ty, Fill::Full), valid(contract, &body.ty, Fill::Any)];
    (value, changes)
        .prop_map(|(mut value, changes)| {
            for (at, change) in changes {
                let count = places(&value);
                let change = change.map(|new| parsed(&new.to_string()));
                if replace(&mut value, &mut at.index(count), change.as_ref()) == Gone::Yes {
                    return None;
                }
            }
            Some(value)
        })
        .boxed()
}

fn parsed(text: &str) -> Value {
    Value::parse(text.as_bytes(), &Limits::DOCUMENT).expect("it is JSON")
}

fn places(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.iter().map(|(_, value)| places(value)).sum(),
        Value::Array(items) => items.iter().map(places).sum(),
        _ => 0,
    }
}

#[derive(PartialEq)]
enum Gone {
    Yes,
    No,
}

/// Changes the place of this number, counted from the top; `Gone` when the value itself is to be left out.
fn replace(value: &mut Value, at: &mut usize, new: Option<&Value>) -> Gone {
    if *at == 0 {
        *at = usize::MAX;
        return match new {
            Some(new) => {
                *value = new.clone();
                Gone::No
            }
            None => Gone::Yes,
        };
    }
    *at -= 1;
    match value {
        Value::Object(members) => {
            let names: Vec<String> = members.iter().map(|(name, _)| name.decode().into_owned()).collect();
            for name in names {
                let Some(member) = members.get_mut(&name) else { continue };
                if *at != usize::MAX && replace(member, at, new) == Gone::Yes {
                    members.retain(|known, _| known.decode() != name);
                }
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                if *at != usize::MAX && replace(item, at, new) == Gone::Yes {
                    *item = Value::Null;
                }
            }
        }
        _ => {}
    }
    Gone::No
}

fn success(operation: &Operation) -> (u16, Option<&switchback_compiler::contract::Type>) {
    let status = |pattern| match pattern {
        StatusPattern::Exact(status) if status / 100 == 2 => Some(status),
        StatusPattern::Class(2) => Some(200),
        _ => None,
    };
    let known = operation
        .responses
        .iter()
        .find_map(|response| Some((status(response.status)?, response.body.as_ref())));
    known.unwrap_or((200, None))
}

fn drawn(pack: &Pack, contracts: &Contracts, route: &Route, side: SideId) -> BoxedStrategy<Drawn> {
    let served = &contracts[usize::from(side.0)];
    let called = &contracts[usize::from(side.other().0)];
    let operation = operation_of(served, &route.operation.key);
    let body = operation.body.as_ref().map_or(Just(None).boxed(), |body| mutated(served, body));
    let variables = route.operation.variables.iter().map(|variable| match variable.kind {
        ParameterKind::String => "[a-z]{1,8}".boxed(),
        ParameterKind::Boolean => Just("true".to_owned()).boxed(),
        ParameterKind::Integer | ParameterKind::Number => (1..99u32).prop_map(|n| n.to_string()).boxed(),
    });
    let replies = called.operations.iter().map(|operation| match success(operation).1 {
        None => Just(Vec::new()).boxed(),
        Some(ty) => {
            let one = prop_oneof![valid(called, ty, Fill::Full), valid(called, ty, Fill::Any)];
            prop::collection::vec(one, 2).boxed()
        }
    });
    let switches = prop::collection::vec(any::<bool>(), pack.settings.len());
    (variables.collect::<Vec<_>>(), body, switches, replies.collect::<Vec<_>>())
        .prop_map(|(path, body, switches, replies)| Drawn { path, body, switches, replies })
        .boxed()
}

fn operation_of<'c>(contract: &'c Contract, key: &str) -> &'c Operation {
    contract
        .operations
        .iter()
        .find(|operation| operation.key.to_string() == key)
        .expect("it is one of the contract's")
}

/// Settings that permit requests outside the contract of the other side: the generated service
/// rejects these, so the settings keep their defaults.
const AGAINST_THE_CONTRACT: [&str; 1] = ["contacts.nulls_as_texts"];

/// Every setting has a value: the boolean ones as they were drawn.
fn settings(pack: &Pack, switches: &[bool]) -> Settings {
    let mut given = switchback_json::Object::new();
    for (setting, on) in pack.settings.iter().zip(switches) {
        match setting.kind {
            _ if AGAINST_THE_CONTRACT.contains(&setting.name.as_str()) => None,
            SettingKind::Boolean => given.insert(setting.name.as_str(), Value::from(*on)),
            SettingKind::Integer if setting.default.is_none() => {
                given.insert(setting.name.as_str(), Value::from(5))
            }
            SettingKind::String if setting.default.is_none() => {
                given.insert(setting.name.as_str(), Value::string("x"))
            }
            _ => None,
        };
    }
    Settings::new(pack, &Value::Object(given)).expect("they are of their types")
}

/// Runs a request to its end. The error has the answer that followed a write.
fn run(compiled: &Compiled, side: SideId, route: &Route, drawn: &Drawn) -> Result<bool, String> {
    let pack = Arc::clone(compiled.pack.as_ref().expect("the pack compiles"));
    let called = &compiled.contracts.as_ref().expect("it has contracts")[usize::from(side.other().0)];
    let body = drawn.body.as_ref().map(Value::to_vec).unwrap_or_default();
    let request = Request { path: drawn.path.clone(), body: body.into(), ..Request::default() };
    let settings = Arc::new(settings(&pack, &drawn.switches));
    let mut run = Run::new(Arc::clone(&pack), side, route.id, request, settings, Limits::DOCUMENT);
    let (mut event, mut now) = (Event::Start, Duration::ZERO);
    let mut wrote = None::<String>;
    for turn in 0.. {
        assert!(turn < 100, "{} does not end", route.operation.key);
        let told = match run.next(event) {
            Ok(Next::Call(call)) => {
                let reply = reply(called, &call, drawn, turn)?;
                if call.effect == Effect::Write && reply.status < 300 {
                    wrote.get_or_insert_with(|| call.operation.to_string());
                } else if let (Some(wrote), 400) = (&wrote, reply.status) {
                    let sent = call.body.as_ref().map(|body| String::from_utf8_lossy(body).into_owned());
                    return Err(format!("after `{wrote}`, `{}` does not take {sent:?}", call.operation));
                }
                event = Event::Reply(reply);
                continue;
            }
            Ok(Next::Recall(lookup)) => {
                event = lookup.nothing();
                continue;
            }
            Ok(Next::Wait(wait)) => {
                event = wait.simulate(&mut now);
                continue;
            }
            Ok(Next::Keep(_)) => {
                wrote.get_or_insert_with(|| "an archive".to_owned());
                event = Event::Kept;
                continue;
            }
            Ok(Next::Answer(answer)) if answer.status < 400 || answer.status >= 500 => None,
            // The service's notation of a failed job.
            Ok(Next::Answer(answer)) if answer.is_over => None,
            Ok(Next::Answer(answer)) => Some(format!("answered {}", answer.status)),
            Ok(Next::Refuse(refused)) => Some(format!("refused: {}", refused.text)),
            Err(fault)
                if matches!(
                    fault.kind,
                    // Late: a job that does not end, for any caller.
                    FaultKind::UpstreamBroken | FaultKind::UpstreamUnreachable | FaultKind::UpstreamTimeout
                ) =>
            {
                None
            }
            Err(fault) => Some(fault.to_string()),
        };
        return match (&wrote, told) {
            (Some(wrote), Some(told)) => Err(format!("after `{wrote}`, {told}")),
            _ => Ok(wrote.is_some()),
        };
    }
    unreachable!("it has ended")
}

/// Returns the answer of a service with this contract.
fn reply(contract: &Contract, call: &Call, drawn: &Drawn, turn: usize) -> Result<Reply, String> {
    let operation = operation_of(contract, &call.operation);
    let refused = || Reply { status: 400, body: br#"{"error":"no"}"#.as_slice().into(), ..Reply::default() };
    match (&operation.body, &call.body) {
        (Some(body), Some(sent)) => {
            let sent = Value::parse(sent, &Limits::DOCUMENT).map_err(|error| error.to_string())?;
            if !breaches(&contract.types, &body.ty, &sent, None).is_empty() {
                return Ok(refused());
            }
        }
        (Some(body), None) if body.required => return Ok(refused()),
        _ => {}
    }
    let index =
        contract.operations.iter().position(|other| std::ptr::eq(other, operation)).unwrap_or_default();
    let bodies = &drawn.replies[index];
    let body = bodies.get(turn % bodies.len().max(1)).map(Value::to_vec).unwrap_or_default();
    Ok(Reply { status: success(operation).0, body: body.into(), ..Reply::default() })
}

/// Routes of several calls that write; a pair writes once, and passes on its answer.
fn is_written_in_steps(route: &Route) -> bool {
    route.operation.effect == Effect::Write && matches!(route.kind, RouteKind::Serve(_))
}

#[test]
fn no_plan_of_any_pack_turns_a_client_away_after_a_write() {
    let cases = super::random_mutations(64);
    let (mut routes, mut wrote) = (0, 0);
    for source in packs::all() {
        let compiled = mapping::compile(&source);
        let pack = compiled.pack.as_ref().expect("the pack compiles");
        let contracts = compiled.contracts.as_ref().expect("it has contracts");
        for direction in &pack.directions {
            for route in direction.routes.iter().filter(|route| is_written_in_steps(route)) {
                routes += 1;
                let mut runner =
                    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
                let strategy = drawn(pack, contracts, route, direction.serves);
                let written = std::cell::Cell::new(0);
                let outcome = runner.run(&strategy, |drawn| {
                    match run(&compiled, direction.serves, route, &drawn) {
                        Ok(done) => written.set(written.get() + u32::from(done)),
                        Err(fault) => return Err(TestCaseError::fail(fault)),
                    }
                    Ok(())
                });
                outcome.unwrap_or_else(|error| panic!("{} {}: {error}", pack.name, route.operation.key));
                wrote += written.get();
            }
        }
    }
    assert!(routes >= 8 && wrote > cases, "{routes} routes, {wrote} writes");
}
