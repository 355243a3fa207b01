//! Replies to calls that are not sent: from the pack's examples, else generated from the contract.

use super::tried::{DryRunPack, text_of};
use bytes::Bytes;
use http::HeaderMap;
use switchback_compiler::contract::{Contract, OpKey, Response, StatusPattern, sample};
use switchback_engine::har::{self, Exchange};
use switchback_engine::translate::{Call, Event, FailKind, Reply};
use switchback_plan::router::Found;
use switchback_plan::{ExampleCall, RouteExample, SideId};

/// The origin of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Recording,
    Service,
    Example,
    Contract,
}

impl By {
    pub(super) fn word(self) -> &'static str {
        match self {
            By::Recording => "recording",
            By::Service => "service",
            By::Example => "example",
            By::Contract => "contract",
        }
    }
}

/// Returns the recorded reply to a call. Each is used once.
pub(super) fn recorded(exchange: &Exchange, used: &mut Vec<usize>, call: &Call) -> Option<Event> {
    let calls = exchange.gateway.as_ref().map_or(&[][..], |known| &known.calls);
    let is_same = |recorded: &Exchange| {
        recorded.request.method == call.method.as_str() && path(&recorded.request.url) == path(&call.target)
    };
    let at = (0..calls.len()).find(|at| !used.contains(at) && is_same(&calls[*at]))?;
    used.push(at);
    let Some(response) = &calls[at].response else { return Some(FailKind::Unreachable.into()) };
    let headers = har::header_map(&response.headers);
    Some(Event::Reply(Reply { status: response.status, headers, body: response.body.bytes()? }))
}

/// Returns the path of a URL.
fn path(url: &str) -> &str {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    url.split('?').next().unwrap_or_default()
}

impl DryRunPack {
    /// Returns a reply to a call of a route, by decreasing precedence: an example of the same route
    /// with the same target; one of the same route with the same operation; any example with the
    /// operation; one generated from the contract. `call.step` is the number of preceding calls.
    pub(super) fn reply(
        &self,
        serves: SideId,
        operation: &str,
        target: &str,
        call: &Call,
    ) -> Option<(Event, By)> {
        let called = serves.other();
        let router = &self.routers[called];
        let of_call = |example: &ExampleCall| match router.find(&example.method, path(&example.target)) {
            Found::Route { route, .. } => {
                *self.pack.directions[called].routes[route].operation.key == *call.operation
            }
            _ => false,
        };
        let of_route = |example: &&RouteExample| {
            // An example with settings may belong to another route of the operation.
            example.serves == serves && self.operation_of(example) == operation && example.config.is_empty()
        };
        let mut of_route: Vec<&RouteExample> = self.examples.iter().filter(of_route).collect();
        // The example of this very request first, then successful ones.
        of_route.sort_by_key(|example| (example.target != target, !ends_well(example)));
        let same_address = |one: &&ExampleCall| one.method == call.method && one.target == call.target;
        let in_own = |same: &dyn Fn(&&ExampleCall) -> bool| {
            of_route.iter().find_map(|example| {
                let number = call.step as usize;
                let at_its_place = example.exchange.calls.get(number).filter(same);
                at_its_place.or_else(|| example.exchange.calls.iter().find(same)).cloned()
            })
        };
        let others = || {
            let all = self.examples.iter().filter(|example| example.serves == serves);
            all.flat_map(|example| &example.exchange.calls)
                .find(|one| one.method == call.method && (200..300).contains(&one.status) && of_call(one))
                .cloned()
        };
        let found = in_own(&same_address)
            .or_else(|| in_own(&|one| one.method == call.method && of_call(one)))
            .or_else(others);
        if let Some(found) = found {
            return Some((reply_of(&found), By::Example));
        }
        let made = made(&self.contracts[usize::from(called.0)], &call.operation)?;
        Some((Event::Reply(made), By::Contract))
    }
}

/// Returns an example's reply as an event.
pub(super) fn reply_of(call: &ExampleCall) -> Event {
    let body = call.reply.as_ref().map(|reply| Bytes::from(text_of(reply))).unwrap_or_default();
    Event::Reply(Reply { status: call.status, headers: HeaderMap::new(), body })
}

fn ends_well(example: &RouteExample) -> bool {
    matches!(&example.exchange.end, switchback_plan::ExampleEnd::Answer { status, .. } if (200..300).contains(status))
}

/// Generates the first success response of an operation's contract, with sample values of its
/// types.
fn made(contract: &Contract, operation: &str) -> Option<Reply> {
    let operation = contract.find(&OpKey::parse(operation).ok()?)?;
    let response = operation.responses.iter().find(|response| Response::is_success(response))?;
    let status = match response.status {
        StatusPattern::Exact(status) => status,
        StatusPattern::Class(class) => u16::from(class) * 100,
        StatusPattern::Default => 200,
    };
    let body = response.body.as_ref().map(|ty| sample(&contract.types, ty).to_string());
    Some(Reply { status, headers: HeaderMap::new(), body: body.unwrap_or_default().into() })
}
