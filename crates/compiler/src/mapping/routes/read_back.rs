//! `read_back:` of `pack.yaml`: which reading of a side shows what a write of it has changed, and where the address of the
//! reading comes from: variables of the write, places of its request and of its answer.

use super::context::ContextValue;
use super::route::RouteCheck;
use super::{Ground, faults, operations, steps};
use crate::contract::Operation;
use crate::diagnostic::Findings;
use crate::mapping::ast::{Program, ReadBack};
use http::Method;
use switchback_plan::{self as plan, Effect, RouteKind, SideId};

/// Checks the declarations of a pack, and puts each into the route of its write.
pub(super) fn declare(
    ground: &Ground<'_>,
    program: &Program,
    routes: &mut [Vec<plan::Route>; 2],
    findings: &mut Findings,
) {
    for line in &program.manifest.compare.read_back {
        let side = SideId(line.side.side as u8);
        let Some(write) = operations::find(ground.contract(side), &line.write, findings) else {
            // Places of the write are not known, and the operation is looked at where it has none.
            if !line.read.value.contains('$') {
                operations::find(ground.contract(side), &line.read, findings);
            }
            continue;
        };
        let mut check = RouteCheck::new(ground, side, write, findings);
        // The answer is that of the service itself: it has what the contract promises, or there is nothing to read back.
        let answer = steps::result(write, true, line.read.span);
        check.context.set("answer", ContextValue::there(answer, side));
        let Some((read, path)) = check.target(&line.read, side, false) else { continue };
        let routes = &mut routes[line.side.side];
        if !fits(line, write, read, routes, findings) {
            continue;
        }
        // A route with faults of its own is not among them.
        let Some(route) = routes.iter_mut().find(|route| is_of(route, write)) else { continue };
        let origin = ground.origin(line.write.span);
        let read_back = plan::ReadBack { operation: read.key.to_string().into(), path, origin };
        for instead in &mut route.instead {
            instead.route.read_back = Some(read_back.clone());
        }
        route.read_back = Some(read_back);
    }
}

/// Whether the one is a write and the other shows what it did. Reports what speaks against it.
fn fits(
    line: &ReadBack,
    write: &Operation,
    read: &Operation,
    routes: &[plan::Route],
    findings: &mut Findings,
) -> bool {
    let mark = findings.len();
    let of = |operation: &Operation| routes.iter().find(|route| is_of(route, operation));
    if of(write).is_some_and(|route| route.operation.effect == Effect::None) {
        findings.push(faults::nothing_to_read_back(line.write.span, &write.key));
    }
    if of(read).is_some_and(|route| route.operation.effect == Effect::Write) || read.key.method != Method::GET
    {
        findings.push(faults::read_back_writes(line.read.span, &read.key));
    }
    for (span, operation) in [(line.write.span, write), (line.read.span, read)] {
        let is_refused =
            |route: &plan::Route| route.all().all(|one| matches!(one.kind, RouteKind::Refuse(_)));
        if of(operation).is_some_and(is_refused) {
            findings.push(faults::read_back_refused(span, &operation.key));
        }
    }
    for parameter in read.query.iter().filter(|parameter| parameter.required) {
        findings.push(faults::read_back_parameter(line.read.span, &read.key, &parameter.name));
    }
    !findings.errors_since(mark)
}

fn is_of(route: &plan::Route, operation: &Operation) -> bool {
    *route.operation.key == operation.key.to_string()
}
