//! Checks routes against both contracts, and lowers them to plans, each in the direction that it
//! serves.
//!
//! There is one file per concept:
//! - [`totality`] assigns operations to routes;
//! - [`pair`], [`status`], [`rules`] and [`headers`] compile pairs;
//! - [`serve`], [`steps`], [`calls`], [`table`] and [`conditions`] compile routes with several calls;
//! - [`flow`] is the state that passes from step to step: what is in scope and of which type
//!   ([`context`]), what has been checked ([`proof`]), where it comes from ([`provenance`]) and what
//!   has been written;
//! - [`expr`] and [`forms`] compile expressions, [`paths`] and [`filter`] their paths;
//! - [`unchecked`] reports parts of a request that are used without a check;
//! - [`archives`] compiles archives and harvests;
//! - [`read_back`] compiles the reads after a write in a dual run.
//!
//! `lens` compiles shapes.

mod apply;
mod archives;
mod calls;
mod conditions;
mod context;
mod expr;
mod faults;
mod filter;
mod flow;
mod forms;
mod headers;
mod media;
mod multipart;
mod operations;
mod paging;
mod pair;
mod paths;
mod policy;
mod poll;
mod proof;
mod provenance;
mod read_back;
mod required;
mod route;
mod rules;
mod serve;
mod status;
mod steps;
mod table;
mod target;
mod totality;
mod unchecked;
mod verdict;

pub(super) use archives::{Archives, harvests};
pub(super) use operations::find as find_operation;
pub(super) use policy::of_pack as refuse_policy;
pub(super) use rules::OWN_HEADERS;

use super::ast::{Manifest, PairDecl, ProgramDecl, RestWord, RouteDecl, Spanned};
use super::compare::Comparisons;
use super::lens::{LensEnv, Lenses};
use super::names::SettingRef;
use super::references::ResolvedKind;
use crate::contract::{Contract, Operation, Proven, Type, Types};
use crate::diagnostic::{Findings, Span};
use route::RouteCheck;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use switchback_plan::{
    self as plan, BodyPlan, Loss, Origin, ReasonId, RefusePolicy, RouteId, RouteKind, SettingKind, SideId,
    Verdict,
};
use totality::Assigned;

/// Context shared by all routes.
pub(super) struct RouteEnv<'a> {
    pub world: LensEnv<'a>,
    /// Placeholders of each reason, by index.
    pub placeholders: &'a [BTreeSet<String>],
    pub lenses: &'a Lenses<'a>,
    pub refuse: &'a RefusePolicy,
    /// By called side: types of bodies that pass unchanged. Large contracts use the same types in
    /// every response.
    pub proven: &'a [RefCell<Proven>; 2],
    pub comparisons: &'a Comparisons<'a>,
    pub errors: ErrorTranslation<'a>,
    /// Lower-case names of the headers that carry tokens on either side.
    pub credential_headers: &'a [String],
    /// The response header that lists approximations.
    pub approximate_header: Option<&'a str>,
    pub archives: &'a Archives,
}

/// How error bodies are translated.
pub(super) struct ErrorTranslation<'a> {
    /// By served side: the translation of the other side's errors.
    pub plans: &'a [BodyPlan; 2],
    /// By served side: values of errors that its contract does not accept.
    pub losses: &'a [Vec<Loss>; 2],
    /// The error type of each side.
    pub types: [Option<&'a Type>; 2],
}

/// Returns a route that makes no calls, without its id.
fn route_of(operation: plan::Operation, kind: RouteKind, verdict: Verdict, origin: Origin) -> plan::Route {
    plan::Route {
        id: RouteId(0),
        operation,
        kind,
        verdict,
        notes: Vec::new(),
        losses: Vec::new(),
        calls_min: 0,
        calls_max: 0,
        business_errors: Vec::new(),
        compare: Vec::new(),
        paging: None,
        read_back: None,
        instead: Vec::new(),
        origin,
    }
}

/// Returns the routes of both directions, in the order of the contracts. Routes with errors are
/// missing.
pub(super) fn compile(
    env: &RouteEnv<'_>,
    program: &ProgramDecl,
    findings: &mut Findings,
) -> [Vec<plan::Route>; 2] {
    let assigned = totality::assign(program, env.world.contracts, env.world.is_stopped, findings);
    let switches: HashMap<*const RouteDecl, Option<u16>> = program
        .routes
        .iter()
        .filter_map(|route| Some((std::ptr::from_ref(route), env.switch(route.only_if()?, findings))))
        .collect();
    // Skip generated pairs: an error in one of them only means that the operations are not equal.
    let written =
        program.routes.iter().filter(|route| !matches!(route, RouteDecl::Pair(pair) if pair.sides.made));
    let mut served: HashMap<*const RouteDecl, Vec<&Assigned<'_>>> = HashMap::new();
    for (one, others) in assigned.iter().flatten() {
        for one in std::iter::once(one).chain(others) {
            if let Some(route) = one.route {
                served.entry(std::ptr::from_ref(route)).or_default().push(one);
            }
        }
    }
    let is_needed = || !(env.world.is_stopped)();
    for route in written.take_while(|_| is_needed()) {
        let served = served.get(&std::ptr::from_ref(route)).map_or(&[][..], Vec::as_slice);
        check_once(env, route, served, findings);
    }
    drop(served);
    let mut routes = assigned.map(|assigned| {
        let mut routes = Vec::new();
        for (one, others) in assigned.into_iter().take_while(|_| is_needed()) {
            let id = RouteId(routes.len() as u16);
            let usual = lower(env, &one, id, findings);
            let mut instead = Vec::new();
            for other in others {
                let setting =
                    other.route.and_then(|route| switches.get(&std::ptr::from_ref(route)).copied().flatten());
                let route = lower(env, &other, id, findings);
                instead.extend(setting.zip(route).map(|(setting, route)| plan::Instead { setting, route }));
            }
            routes.extend(usual.map(|usual| plan::Route { instead, ..usual }));
        }
        routes
    });
    read_back::declare(env, program, &mut routes, findings);
    routes
}

fn lower(
    env: &RouteEnv<'_>,
    one: &Assigned<'_>,
    id: RouteId,
    findings: &mut Findings,
) -> Option<plan::Route> {
    let mut compare = env.comparisons.of_operation(one.serves.place(), one.operation);
    let served = match (one.route, one.operations) {
        (None, _) => serve_unnamed(env, one, Findings::new(), findings),
        (Some(RouteDecl::Pair(pair)), Some(operations)) if pair.sides.made => {
            keep_pair(env, one, pair, operations, findings)
        }
        (Some(RouteDecl::Pair(pair)), Some(operations)) => {
            RouteCheck::new(env, one.serves, one.operation, findings).pair(pair, operations)
        }
        (Some(RouteDecl::Pair(_)), None) => None,
        (Some(RouteDecl::Serve(serve)), _) => {
            RouteCheck::new(env, one.serves, one.operation, findings).serve(serve)
        }
    };
    let served = served?;
    compare.extend(paging::noise(served.paging.as_deref()));
    Some(plan::Route { id, compare, ..served })
}

/// Compiles a generated pair. If the operations are not equal, treats the served one as an
/// operation without a route.
fn keep_pair(
    env: &RouteEnv<'_>,
    one: &Assigned<'_>,
    pair: &PairDecl,
    operations: [&crate::contract::Operation; 2],
    findings: &mut Findings,
) -> Option<plan::Route> {
    let mut why = Findings::new();
    let served = RouteCheck::new(env, one.serves, one.operation, &mut why).pair(pair, operations);
    match served.filter(|_| !why.has_errors()) {
        Some(served) => Some(served),
        None => serve_unnamed(env, one, why, findings),
    }
}

/// Applies the pack's policy for operations without a route. `why` contains the differences from
/// the operation of the other side.
fn serve_unnamed(
    env: &RouteEnv<'_>,
    one: &Assigned<'_>,
    why: Findings,
    findings: &mut Findings,
) -> Option<plan::Route> {
    let word = env.manifest().rest[one.serves].as_ref();
    let Some(word) = word.filter(|word| word.value != RestWord::Keep) else {
        let first = why.in_order().first().map(|finding| finding.message.clone());
        findings.push(faults::unanswered_operation(one.operation, env.side_name(one.serves), false, first));
        return None;
    };
    let reason = Spanned { value: super::made::REST_REASON.to_owned(), span: word.span };
    let mut policy = super::ast::RefusePolicyDecl::default();
    if word.value == RestWord::Forward {
        policy.legacy_forward = [Some(true); 2];
    }
    let refuse = super::ast::Refuse { reason, policy };
    let refusal = RouteCheck::new(env, one.serves, one.operation, findings).refusal(&refuse)?;
    let effect = operations::effect(&one.operation.key.method, None);
    let operation = operations::operation(one.operation, env.types(one.serves), effect);
    Some(route_of(operation, RouteKind::Refuse(refusal), Verdict::Not, env.origin(word.span)))
}

/// Reports errors that concern both directions of a route, so that they are reported once. `served`
/// are the directions that it serves.
fn check_once(env: &RouteEnv<'_>, route: &RouteDecl, served: &[&Assigned<'_>], findings: &mut Findings) {
    let (notes, own) = match route {
        RouteDecl::Pair(pair) => (&pair.notes, pair.sides.front.map(|front| front.side)),
        RouteDecl::Serve(serve) => (&serve.notes, Some(serve.side.side)),
    };
    for (side, _) in &notes.verdict {
        if let (Some(side), Some(own)) = (side, own)
            && side.side != own
        {
            findings.push(faults::verdict_side(side.span));
        }
    }
    let pair = match route {
        RouteDecl::Pair(pair) => pair,
        RouteDecl::Serve(serve) => {
            served.iter().for_each(|one| env.record_operation(serve.at.span, one.operation, one.serves));
            return;
        }
    };
    let Some(operations) = served.iter().find_map(|one| one.operations) else { return };
    for (side, operation) in [SideId::OLD, SideId::NEW].into_iter().zip(operations) {
        env.record_operation(pair.sides.operations[side].span, operation, side);
    }
    let sides: Vec<SideId> = served.iter().map(|one| one.serves).collect();
    let Some(first) = served.first() else { return };
    let mut check = RouteCheck::new(env, first.serves, first.operation, findings);
    check.unknown_parameters(pair, operations);
    check.paged_twice(pair);
    check.pair_business_errors(pair, operations, &sides);
    check_variables(pair, operations, findings);
}

/// Checks that the names in `path:` are variables of the operations.
fn check_variables(pair: &PairDecl, operations: [&crate::contract::Operation; 2], findings: &mut Findings) {
    for (old, new) in &pair.path {
        for (name, operation) in [(old, operations[0]), (new, operations[1])] {
            if !operation.key.path.variables().any(|variable| variable == name.value) {
                findings.push(faults::unknown_pair_variable(name, &operation.key));
            }
        }
    }
}

impl<'a> RouteEnv<'a> {
    fn manifest(&self) -> &'a Manifest {
        &self.world.program.manifest
    }

    fn contract(&self, side: SideId) -> &'a Contract {
        &self.world.contracts[side]
    }

    fn types(&self, side: SideId) -> &'a Types {
        &self.contract(side).types
    }

    fn side_name(&self, side: SideId) -> &'a str {
        &self.contract(side).name
    }

    /// Records the name of an operation.
    fn record_operation(&self, span: Span, operation: &Operation, side: SideId) {
        self.world.names.references.add(span, ResolvedKind::Operation, operation.span, || {
            let summary = operation.summary.as_deref().unwrap_or_default();
            format!("`{}` of `{}`\n\n{summary}", operation.key, self.side_name(side))
        });
    }

    fn origin(&self, span: Span) -> Origin {
        super::origin(self.world.sources, span)
    }

    /// Resolves a setting with a valid type. Returns `None` if it reports an error.
    fn setting(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<SettingRef> {
        self.world.names.setting(name, findings).filter(|setting| setting.kind.is_some())
    }

    /// Resolves the boolean setting of a route's `if: $.config.name`. Returns `None` if it reports
    /// an error.
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

    /// Resolves a reason, and checks that `given` are its placeholders. Returns `None` if it
    /// reports an error.
    fn reason(
        &self,
        name: &Spanned<String>,
        given: &[&Spanned<String>],
        findings: &mut Findings,
    ) -> Option<ReasonId> {
        let id = self.world.names.reason(name, findings)?;
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

    /// Resolves the reason of a check. It may refer to the parameter that failed the check.
    fn reason_of_check(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<ReasonId> {
        let id = self.world.names.reason(name, findings)?;
        let parameter = Spanned { value: plan::PARAMETER.to_owned(), span: name.span };
        let named = self.placeholders[usize::from(id.0)].contains(plan::PARAMETER);
        let given = [&parameter];
        self.reason(name, if named { &given } else { &[] }, findings)
    }
}
