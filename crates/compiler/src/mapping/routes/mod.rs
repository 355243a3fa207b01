//! Routes: checked against both contracts and lowered to plans, each in the direction that it serves.
//!
//! One file per idea: which operations are answered ([`totality`]), pairs ([`pair`], [`status`], [`rules`]), routes of
//! several calls ([`serve`], [`steps`], [`table`], [`conditions`]), the values they make ([`expr`], [`forms`]), the paths these read
//! ([`paths`], [`filter`]) and the types of what paths lead to ([`context`]), what is known of a request before it is used
//! ([`proof`]), what is read after a write in a dual run ([`read_back`]). Shapes are the business of `lens`.

mod conditions;
mod context;
mod expr;
mod faults;
mod filter;
mod forms;
mod operations;
mod pair;
mod paths;
mod policy;
mod proof;
mod read_back;
mod route;
mod rules;
mod serve;
mod status;
mod steps;
mod table;
mod totality;
mod verdict;

pub(super) use policy::of_pack as refuse_policy;
pub(super) use rules::OWN_HEADERS;

use super::ast::{ConversionUse, Paging, Pair, Program, Route, Spanned};
use super::compare::Comparisons;
use super::lens::{Lenses, ReadConversion, World, read_conversion};
use super::names::{Names, SettingRef};
use crate::contract::{Contract, Type, Types, assignable};
use crate::diagnostic::{Findings, Sources, Span};
use route::RouteCheck;
use std::collections::{BTreeSet, HashMap};
use switchback_plan::{
    self as plan, BodyPlan, Loss, Note, Origin, ReasonId, RefusePolicy, RouteId, RouteKind, SettingKind,
    SideId, Verdict,
};
use totality::{Answered, Assigned};

/// What is known before any route is looked at.
pub(super) struct Ground<'a> {
    pub sources: &'a Sources,
    pub contracts: &'a [Contract; 2],
    pub names: &'a Names,
    pub world: World<'a>,
    /// Of each reason, by index.
    pub placeholders: &'a [BTreeSet<String>],
    pub lenses: &'a Lenses<'a>,
    pub refuse: &'a RefusePolicy,
    pub comparisons: &'a Comparisons<'a>,
    pub paging: Option<&'a Paging>,
    /// By served side: the other side's errors turned into this one's.
    pub errors: &'a [BodyPlan; 2],
    /// The error type of each side.
    pub error_types: [Option<&'a Type>; 2],
    /// Lower-case names of the fields that carry tokens on either side.
    pub credential_headers: &'a [String],
    /// The field that says by which approximations an answer was made.
    pub approximate_header: Option<&'a str>,
}

/// A route in one direction, lowered, before it has its number.
struct Served {
    operation: plan::Operation,
    kind: RouteKind,
    verdict: Verdict,
    notes: Vec<Note>,
    losses: Vec<Loss>,
    calls_min: u32,
    calls_max: u32,
    business_errors: Vec<u16>,
    origin: Origin,
}

/// The routes of both directions, in the order of the contracts. Some are missing when `findings` gain errors.
pub(super) fn compile(
    ground: &Ground<'_>,
    program: &Program,
    findings: &mut Findings,
) -> [Vec<plan::Route>; 2] {
    let assigned = totality::assign(program, ground.contracts, findings);
    let switches: HashMap<*const Route, Option<u16>> = program
        .routes
        .iter()
        .filter_map(|route| Some((std::ptr::from_ref(route), ground.switch(route.only_if()?, findings))))
        .collect();
    for route in &program.routes {
        check_once(ground, route, &assigned, findings);
    }
    let mut routes = assigned.map(|assigned| {
        let mut routes = Vec::new();
        for (one, others) in assigned {
            let id = RouteId(routes.len() as u16);
            let usual = lower(ground, &one, id, findings);
            let mut instead = Vec::new();
            for other in others {
                let setting = switches.get(&std::ptr::from_ref(other.route)).copied().flatten();
                let route = lower(ground, &other, id, findings);
                instead.extend(setting.zip(route).map(|(setting, route)| plan::Instead { setting, route }));
            }
            routes.extend(usual.map(|usual| plan::Route { instead, ..usual }));
        }
        routes
    });
    read_back::declare(ground, program, &mut routes, findings);
    routes
}

fn lower(
    ground: &Ground<'_>,
    one: &Assigned<'_>,
    id: RouteId,
    findings: &mut Findings,
) -> Option<plan::Route> {
    let compare = ground.comparisons.of_operation(usize::from(one.serves.0), one.operation);
    let check = RouteCheck::new(ground, one.serves, one.operation, findings);
    let served = match (one.route, one.operations) {
        (Route::Pair(pair), Some(operations)) => check.pair(pair, operations),
        (Route::Pair(_), None) => None,
        (Route::Serve(serve), _) => check.serve(serve),
    };
    served.map(|served| plan::Route { compare, ..served.with_id(id) })
}

/// What is the same in both directions of a route is said once.
fn check_once(
    ground: &Ground<'_>,
    route: &Route,
    assigned: &[Vec<Answered<'_>>; 2],
    findings: &mut Findings,
) {
    let of_route = |one: &&Assigned<'_>| std::ptr::eq(one.route, route);
    let all = assigned.iter().flatten().flat_map(|(one, others)| std::iter::once(one).chain(others));
    let served: Vec<&Assigned<'_>> = all.filter(of_route).collect();
    let (notes, own) = match route {
        Route::Pair(pair) => (&pair.notes, pair.front.map(|front| front.side)),
        Route::Serve(serve) => (&serve.notes, Some(serve.side.side)),
    };
    for (side, _) in &notes.verdict {
        if let (Some(side), Some(own)) = (side, own)
            && side.side != own
        {
            findings.push(faults::verdict_side(side.span));
        }
    }
    let Route::Pair(pair) = route else { return };
    let Some(operations) = served.iter().find_map(|one| one.operations) else { return };
    let sides: Vec<SideId> = served.iter().map(|one| one.serves).collect();
    let Some(first) = served.first() else { return };
    let mut check = RouteCheck::new(ground, first.serves, first.operation, findings);
    check.unknown_parameters(pair, operations);
    check.pair_business_errors(pair, operations, &sides);
    check_variables(pair, operations, findings);
    check_error_types(ground, pair, operations, &sides, findings);
}

/// Names in `path:` are variables of the operations.
fn check_variables(pair: &Pair, operations: [&crate::contract::Operation; 2], findings: &mut Findings) {
    for (old, new) in &pair.path {
        for (name, operation) in [(old, operations[0]), (new, operations[1])] {
            if !operation.key.path.variables().any(|variable| variable == name.value) {
                findings.push(faults::unknown_pair_variable(name, &operation.key));
            }
        }
    }
}

/// Errors of the called operation are of its side's error type, since that is how they are translated.
fn check_error_types(
    ground: &Ground<'_>,
    pair: &Pair,
    operations: [&crate::contract::Operation; 2],
    serves: &[SideId],
    findings: &mut Findings,
) {
    for side in serves {
        let called = side.other();
        let at = usize::from(called.0);
        let Some(wanted) = ground.error_types[at] else { continue };
        let types = ground.types(called);
        for response in &operations[at].responses {
            let error = match response.status {
                crate::contract::StatusPattern::Exact(status) => status >= 400,
                crate::contract::StatusPattern::Class(class) => class >= 4,
                crate::contract::StatusPattern::Default => false,
            };
            let Some(body) = response.body.as_ref().filter(|_| error) else { continue };
            if let Err(why) = assignable(types.at(body), types.at(wanted)) {
                let status = response.status.to_string();
                let span = pair.operations[at].span;
                findings.push(faults::error_type(span, &operations[at].key, &status, &why.to_string()));
            }
        }
    }
}

impl Served {
    fn with_id(self, id: RouteId) -> plan::Route {
        plan::Route {
            id,
            operation: self.operation,
            kind: self.kind,
            verdict: self.verdict,
            notes: self.notes,
            losses: self.losses,
            calls_min: self.calls_min,
            calls_max: self.calls_max,
            business_errors: self.business_errors,
            compare: Vec::new(),
            read_back: None,
            instead: Vec::new(),
            origin: self.origin,
        }
    }
}

impl<'a> Ground<'a> {
    fn contract(&self, side: SideId) -> &'a Contract {
        &self.contracts[usize::from(side.0)]
    }

    fn types(&self, side: SideId) -> &'a Types {
        &self.contract(side).types
    }

    fn side_name(&self, side: SideId) -> &'a str {
        &self.contract(side).name
    }

    fn origin(&self, span: Span) -> Origin {
        super::origin(self.sources, span)
    }

    /// A setting that has a type; `None` after a finding.
    fn setting(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<SettingRef> {
        self.names.setting(name, findings).filter(|setting| setting.kind.is_some())
    }

    /// The boolean setting that a route answers with, written `$.config.name`. `None` after a finding.
    fn switch(&self, path: &Spanned<String>, findings: &mut Findings) -> Option<u16> {
        let Some(name) = path.value.strip_prefix("$.config.") else {
            findings.push(faults::route_without_setting(path));
            return None;
        };
        let name = Spanned { value: name.to_owned(), span: path.span };
        let setting = self.setting(&name, findings)?;
        if setting.kind != Some(SettingKind::Boolean) || setting.optional {
            findings.push(faults::setting_switches_nothing(&name));
            return None;
        }
        Some(setting.index)
    }

    /// A reason by name, whose placeholders are the ones given. `None` after a finding.
    fn reason(
        &self,
        name: &Spanned<String>,
        given: &[&Spanned<String>],
        findings: &mut Findings,
    ) -> Option<ReasonId> {
        let id = self.names.reason(name, findings)?;
        let wanted = &self.placeholders[usize::from(id.0)];
        let mut right = true;
        for missing in wanted.iter().filter(|wanted| !given.iter().any(|given| given.value == **wanted)) {
            findings.push(faults::placeholder_not_given(name, missing));
            right = false;
        }
        for surplus in given.iter().filter(|given| !wanted.contains(&given.value)) {
            findings.push(faults::unknown_placeholder(surplus, name, wanted));
            right = false;
        }
        right.then_some(id)
    }

    /// The reason of a check, which may name the parameter that keeps it from holding.
    fn reason_of_check(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<ReasonId> {
        let id = self.names.reason(name, findings)?;
        let parameter = Spanned { value: plan::PARAMETER.to_owned(), span: name.span };
        let named = self.placeholders[usize::from(id.0)].contains(plan::PARAMETER);
        let given = [&parameter];
        self.reason(name, if named { &given } else { &[] }, findings)
    }

    fn conversion(&self, written: &ConversionUse, findings: &mut Findings) -> Option<ReadConversion> {
        read_conversion(written, [None, None], &self.world, findings)
    }
}
