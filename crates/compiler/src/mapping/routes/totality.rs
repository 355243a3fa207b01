//! Assigns every operation of both contracts to exactly one route.

use super::faults;
use super::operations;
use crate::contract::{Contracts, Operation};
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::{ProgramDecl, RouteDecl};
use std::collections::HashMap;
use switchback_plan::SideId;

/// A route in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assigned<'a> {
    /// `None` for an operation without a route, to which the pack's `rest:` applies.
    pub route: Option<&'a RouteDecl>,
    pub operation: &'a Operation,
    pub serves: SideId,
    /// For pairs: the operations of both sides.
    pub operations: Option<[&'a Operation; 2]>,
}

/// An operation's route, and the routes that replace it while their setting is on, in the order of
/// the program.
pub(super) type AssignedRoutes<'a> = (Assigned<'a>, Vec<Assigned<'a>>);

/// Assigns all routes of existing operations, by side in the order of the contract. Reports
/// operations with several routes or without one.
pub(super) fn assign<'a>(
    program: &'a ProgramDecl,
    contracts: &'a Contracts,
    is_stopped: &dyn Fn() -> bool,
    findings: &mut Findings,
) -> [Vec<AssignedRoutes<'a>>; 2] {
    let mut assigned: [HashMap<*const Operation, (Assigned<'a>, Span)>; 2] = [HashMap::new(), HashMap::new()];
    let mut instead: HashMap<*const Operation, Vec<Assigned<'a>>> = HashMap::new();
    // Routes with `if:` are alternatives to the regular one, so they do not count as duplicates.
    let mut take = |one: Assigned<'a>, span: Span, findings: &mut Findings| {
        if one.route.is_some_and(|route| route.only_if().is_some()) {
            instead.entry(one.operation).or_default().push(one);
            return;
        }
        let routes = &mut assigned[one.serves];
        let is_made = matches!(one.route, Some(RouteDecl::Pair(pair)) if pair.sides.made);
        if let Some((_, first)) = routes.get(&std::ptr::from_ref(one.operation)) {
            // A declared route takes precedence over a generated pair.
            if !is_made {
                findings.push(faults::answered_twice(&one.operation.key, span, *first));
            }
        } else {
            routes.insert(one.operation, (one, span));
        }
    };
    for route in program.routes.iter().take_while(|_| !is_stopped()) {
        match route {
            RouteDecl::Pair(pair) => {
                if let Some(front) = pair.sides.front.filter(|front| !program.manifest.serves[front.side]) {
                    findings.push(faults::unserved_side(front.span, &contracts[front.side].name));
                }
                let old = operations::find(&contracts[0], &pair.sides.operations[0], findings);
                let new = operations::find(&contracts[1], &pair.sides.operations[1], findings);
                for (side, operation) in [(SideId::OLD, old), (SideId::NEW, new)] {
                    let served = pair.sides.front.is_none_or(|front| front.side == side.place())
                        && program.manifest.serves[side];
                    // Resolve both operations even if only one is served, so that unknown ones are
                    // reported.
                    let Some(operation) = operation.filter(|_| served) else { continue };
                    let operations = old.zip(new).map(|(old, new)| [old, new]);
                    let one = Assigned { route: Some(route), operation, serves: side, operations };
                    take(one, pair.sides.operations[side].span, findings);
                }
            }
            RouteDecl::Serve(serve) => {
                let side = SideId(serve.side.side as u8);
                let contract = &contracts[serve.side.side];
                if !program.manifest.serves[serve.side.side] {
                    findings.push(faults::unserved_side(serve.side.span, &contract.name));
                } else if let Some(operation) = operations::find(contract, &serve.at, findings) {
                    let one = Assigned { route: Some(route), operation, serves: side, operations: None };
                    take(one, serve.at.span, findings);
                }
            }
        }
    }
    let mut in_order = [Vec::new(), Vec::new()];
    for (side, routes) in assigned.iter().enumerate() {
        for operation in &contracts[side].operations {
            let others = instead.remove(&std::ptr::from_ref(operation)).unwrap_or_default();
            let usual = match routes.get(&std::ptr::from_ref(operation)) {
                Some((one, _)) => *one,
                // Clients do not use this side, so its operations need no route.
                None if !program.manifest.serves[side] => continue,
                None if program.manifest.rest[side].is_some() => {
                    Assigned { route: None, operation, serves: SideId(side as u8), operations: None }
                }
                None => {
                    let (name, sometimes) = (&contracts[side].name, !others.is_empty());
                    findings.push(faults::unanswered_operation(operation, name, sometimes, None));
                    continue;
                }
            };
            in_order[side].push((usual, others));
        }
    }
    in_order
}
