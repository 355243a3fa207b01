//! Compiles `read_back:` and `shows:` of `pack.yaml`. `read_back:` declares the read that observes
//! the effect of a write, with a path from variables of the write and from places of its request
//! and response. `shows:` lists the members of the write's body that the read returns unchanged.

use super::context::ContextValue;
use super::flow::Flow;
use super::route::RouteCheck;
use super::{RouteEnv, calls, faults, operations};
use crate::contract::{Operation, Type, TypeKind};
use crate::diagnostic::Findings;
use crate::mapping::ast::{ProgramDecl, ReadBackDecl, Shows};
use http::Method;
use switchback_plan::{self as plan, Effect, RouteKind, SideId};

/// Checks the declarations of a pack, and adds each to the route of its write.
pub(super) fn declare(
    env: &RouteEnv<'_>,
    program: &ProgramDecl,
    routes: &mut [Vec<plan::Route>; 2],
    findings: &mut Findings,
) {
    // Sides with an unknown write. `shows` may refer to it, so it is not reported again.
    let mut misspelt = Vec::new();
    for line in &program.manifest.compare.read_back {
        let side = SideId(line.side.side as u8);
        let Some(write) = operations::find(env.contract(side), &line.write, findings) else {
            misspelt.push(line.side.side);
            // Without the write its places are unknown, so only a read without places can be checked.
            if !line.read.value.contains('$') {
                operations::find(env.contract(side), &line.read, findings);
            }
            continue;
        };
        let mut check = RouteCheck::new(env, side, write, findings);
        // The response is that of the service itself. It contains the guaranteed members, or there is no
        // effect to read back.
        let answer = calls::result(write, true, line.read.span);
        let flow = Flow::of_request(write, side).with("answer", ContextValue::present(answer, side));
        let Some((read, path)) = check.target(&line.read, side, false, &flow) else { continue };
        let routes = &mut routes[line.side.side];
        if !fits(line, write, read, routes, findings) {
            continue;
        }
        // Routes with errors have not been lowered.
        let Some(route) = routes.iter_mut().find(|route| is_of(route, write)) else { continue };
        let origin = env.origin(line.write.span);
        let mut shows = Vec::new();
        let of_write =
            |shown: &&Shows| shown.side.side == line.side.side && shown.write.value == line.write.value;
        for shown in program.manifest.compare.shows.iter().filter(of_write) {
            shows.extend(shown_members(env, side, shown, write, read, findings));
        }
        let read_back = plan::ReadBack { operation: read.key.to_string().into(), path, shows, origin };
        // The read observes the write, whichever of the routes is active.
        for instead in &mut route.instead {
            instead.route.read_back = Some(read_back.clone());
        }
        route.read_back = Some(read_back);
    }
    for shown in &program.manifest.compare.shows {
        let is_of =
            |line: &&ReadBackDecl| line.side.side == shown.side.side && line.write.value == shown.write.value;
        let is_read = program.manifest.compare.read_back.iter().any(|line| is_of(&line));
        if is_read {
            continue;
        }
        if !misspelt.contains(&shown.side.side) {
            findings.push(faults::shows_without_reading(shown.write.span, &shown.write.value));
        }
        // The write is unknown, so a member is valid if any type declares it.
        let types = &env.contract(SideId(shown.side.side as u8)).types;
        let is_known = |member: &str| {
            types.iter().any(|named| {
                matches!(types.resolve(&named.ty).kind, TypeKind::Object(object) if object.field(member).is_some())
            })
        };
        for member in shown.members.iter().filter(|member| !is_known(&member.value)) {
            findings.push(faults::shows_no_member(member.span, &member.value, &shown.write.value));
        }
    }
}

/// Returns the members that both the write's body and the read's response have. Reports the others.
fn shown_members(
    env: &RouteEnv<'_>,
    side: SideId,
    shown: &Shows,
    write: &Operation,
    read: &Operation,
    findings: &mut Findings,
) -> Vec<std::sync::Arc<str>> {
    let types = &env.contract(side).types;
    let has = |ty: Option<&Type>, name: &str| match ty.map(|ty| types.resolve(ty).kind) {
        Some(TypeKind::Object(object)) => object.field(name).is_some(),
        _ => false,
    };
    let (written, answered) =
        (write.body.as_ref().map(|body| &body.ty), calls::success_body(read).map(|(ty, _)| ty));
    let mut members = Vec::new();
    for member in &shown.members {
        let lacking =
            [(written, write), (answered, read)].into_iter().find(|(ty, _)| !has(*ty, &member.value));
        match lacking {
            Some((_, operation)) => {
                findings.push(faults::shows_no_member(
                    member.span,
                    &member.value,
                    &operation.key.to_string(),
                ));
            }
            None => members.push(member.value.as_str().into()),
        }
    }
    members
}

/// Checks that the operations are a write and a read that can observe it.
fn fits(
    line: &ReadBackDecl,
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
