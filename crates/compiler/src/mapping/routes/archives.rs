//! Compiles archives, the steps that look up and store entries, and harvests. A harvest is checked
//! as a route of a synthetic operation with a page number as its only input.

use super::context::{ContextValue, fan_out, field, object, scalar};
use super::expr::ExprTarget;
use super::flow::{Flow, Write};
use super::operations::operation;
use super::route::RouteCheck;
use super::{RouteEnv, calls, faults, route_of};
use crate::contract::{
    Additional, Contracts, Media, OpKey, Operation, Parameter, ParameterForm, Reference, Response,
    ScalarKind, StatusPattern, Type, TypeKind,
};
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::{self, ProgramDecl, Spanned, StepDecl};
use std::cell::Cell;
use switchback_plan::{self as plan, ArchiveId, Effect, HostId, Key, RouteKind, SideId, Verdict};

/// Query parameter of the synthetic operation: the number of the page.
const PAGE: &str = "page";

/// The archives of a program. Each lookup marks how the archive is used.
pub(in crate::mapping) struct Archives {
    all: Vec<DeclaredArchive>,
    /// By harvest: its synthetic operation.
    operations: Vec<Operation>,
}

struct DeclaredArchive {
    name: Spanned<String>,
    about: String,
    /// Type of the values: `None` for an archive of keys, `Some(None)` if the type has an error.
    value: Option<Option<ContextValue>>,
    is_kept: Cell<bool>,
    is_recalled: Cell<bool>,
}

impl Archives {
    /// Collects the declarations of a program in order.
    pub(crate) fn collect(program: &ProgramDecl, contracts: &Contracts, findings: &mut Findings) -> Archives {
        let mut all: Vec<DeclaredArchive> = Vec::new();
        for archive in &program.archives {
            if let Some(first) = all.iter().find(|known| known.name.value == archive.name.value) {
                findings.push(faults::archive_twice("archive", &archive.name, first.name.span));
            }
            all.push(DeclaredArchive {
                name: archive.name.clone(),
                about: archive.about.value.clone(),
                value: archive.value.as_ref().map(|value| value_of(value, contracts, findings)),
                is_kept: Cell::new(false),
                is_recalled: Cell::new(false),
            });
        }
        for (at, harvest) in program.harvests.iter().enumerate() {
            let same = |known: &&ast::HarvestDecl| known.name.value == harvest.name.value;
            if let Some(first) = program.harvests[..at].iter().find(same) {
                findings.push(faults::archive_twice("harvest", &harvest.name, first.name.span));
            }
        }
        let operations = program.harvests.iter().map(|harvest| operation_of(harvest.span)).collect();
        Archives { all, operations }
    }

    /// Lowers the archives. Reports those that are never written or never read.
    pub(crate) fn lower(&self, env: &RouteEnv<'_>, findings: &mut Findings) -> Vec<plan::Archive> {
        for archive in &self.all {
            if !archive.is_kept.get() && !archive.is_recalled.get() {
                findings.push(faults::archive_of_nobody(&archive.name));
            }
        }
        // A line with an error may contain the missing use.
        for archive in self.all.iter().filter(|_| !findings.has_errors()).collect::<Vec<_>>() {
            if archive.is_kept.get() != archive.is_recalled.get() {
                findings.push(faults::unused_archive(&archive.name, archive.is_kept.get()));
            }
        }
        let lowered = self.all.iter().map(|archive| plan::Archive {
            name: archive.name.value.clone(),
            about: archive.about.clone(),
            side: archive.value.as_ref().and_then(|held| held.as_ref().map(|held| held.side)),
            origin: env.origin(archive.name.span),
        });
        lowered.collect()
    }

    fn find(&self, name: &Spanned<String>, findings: &mut Findings) -> Option<(ArchiveId, &DeclaredArchive)> {
        let found = self.all.iter().zip(0..).find(|(archive, _)| archive.name.value == name.value);
        if found.is_none() {
            let known: Vec<&str> = self.all.iter().map(|archive| archive.name.value.as_str()).collect();
            findings.push(faults::unknown_archive(name, &known));
        }
        found.map(|(archive, at)| (ArchiveId(at), archive))
    }
}

/// Resolves the declared type, or the type of one of its fields.
fn value_of(
    value: &ast::ArchiveValue,
    contracts: &Contracts,
    findings: &mut Findings,
) -> Option<ContextValue> {
    let (at, span) = (value.side.side, value.ty.span);
    let contract = &contracts[at];
    let types = &contract.types;
    let Some(id) = types.id(&value.ty.value) else {
        let known: Vec<&str> = types.iter().map(|named| &*named.name).collect();
        findings.push(faults::unknown_value_type(&value.ty, &contract.name, known));
        return None;
    };
    let whole = Type {
        kind: TypeKind::Named(Reference { id, name: value.ty.value.as_str().into() }),
        nullable: false,
        span,
    };
    let ty = match &value.field {
        None => whole,
        Some(field) => {
            let fields = match types.resolve(&whole).kind {
                TypeKind::Object(object) => object.fields.as_slice(),
                _ => &[],
            };
            let Some(known) = fields.iter().find(|known| known.name == field.value) else {
                let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                findings.push(faults::unknown_field(&field.value, field.span, &known));
                return None;
            };
            known.ty.clone()
        }
    };
    Some(ContextValue::present(ty, SideId(u8::from(at == 1))))
}

/// Returns the synthetic operation of a harvest.
fn operation_of(span: Span) -> Operation {
    let page = Parameter {
        name: PAGE.to_owned(),
        ty: scalar(ScalarKind::Integer, span),
        required: true,
        form: ParameterForm::Plain,
        default: None,
        span,
    };
    let page_read = Response {
        status: StatusPattern::Exact(200),
        body: Some(Type::any(span)),
        media: Media::Json,
        unread: Vec::new(),
        headers: Vec::new(),
        span,
    };
    Operation {
        servers: Vec::new(),
        host: HostId::MAIN,
        key: OpKey::parse("GET /").expect("this is an operation"),
        path_params: Vec::new(),
        query: vec![page],
        headers: Vec::new(),
        cookies: Vec::new(),
        body: None,
        responses: vec![page_read],
        id: None,
        summary: None,
        span,
    }
}

/// Lowers the harvests of a program. Harvests with errors are missing.
pub(in crate::mapping) fn harvests(
    env: &RouteEnv<'_>,
    program: &ProgramDecl,
    findings: &mut Findings,
) -> Vec<plan::Harvest> {
    let both = program.harvests.iter().zip(&env.archives.operations);
    both.filter_map(|(harvest, of)| lower(env, harvest, of, findings)).collect()
}

fn lower<'a>(
    env: &RouteEnv<'a>,
    harvest: &'a ast::HarvestDecl,
    of: &'a Operation,
    findings: &mut Findings,
) -> Option<plan::Harvest> {
    let from = SideId(u8::from(harvest.from.side == 1));
    let mark = findings.len();
    // A harvest calls `from`, as a route that serves the other side does.
    let mut check = RouteCheck::new(env, from.other(), of, findings);
    // `keep` steps are otherwise restricted to routes that write.
    check.is_harvest = true;
    let (block, flow) = check.block(&harvest.block, Flow::of_request(of, from.other()));
    check.unread_results();
    let is_page_read = check.summary.reads.has(&format!("request.query.{PAGE}"));
    let list = check.reading(&flow).find(&harvest.page.value, harvest.page.span);
    let block = block?;
    let list = list?;
    let types = env.types(list.held.side);
    if !matches!(types.resolve(&list.held.ty).kind, TypeKind::Array(_) | TypeKind::Any) {
        findings.push(faults::harvest_without_list(harvest.page.span, &list.held.ty));
    }
    // A call with an error may be the one that passes the page.
    if !is_page_read && !findings.errors_since(mark) {
        findings.push(faults::harvest_without_page(&harvest.name));
    }
    if !block.steps.iter().any(|step| matches!(step.action, plan::StepAction::Keep(_))) {
        findings.push(faults::harvest_keeps_nothing(&harvest.name));
    }
    let Some(paging) = &env.manifest().paging else {
        findings.push(faults::no_paging(harvest.name.span));
        return None;
    };
    let (calls_min, calls_max) = calls::count(&block);
    let name = format!("harvest {}", harvest.name.value);
    let served = plan::Operation { key: name.into(), ..operation(of, env.types(from), Effect::None) };
    let serve = plan::Serve { checks: Vec::new(), fill: Vec::new(), block, reads_arrival: false };
    let kind = RouteKind::Serve(Box::new(serve));
    let route = route_of(served, kind, Verdict::Exact, env.origin(harvest.span));
    Some(plan::Harvest {
        name: harvest.name.value.clone(),
        about: harvest.about.value.clone(),
        from,
        route: plan::Route { calls_min, calls_max, ..route },
        first: paging.first.value,
        page_size: paging.size.value as u32,
    })
}

impl RouteCheck<'_, '_> {
    /// Compiles a lookup. The result is `{age, value}` or absent; with `each`, a list of the
    /// elements with their entries.
    pub(super) fn recall(
        &mut self,
        recall: &ast::RecallDecl,
        step: &StepDecl,
        flow: &Flow,
    ) -> Option<(plan::StepAction, ContextValue)> {
        let (span, env) = (recall.archive.span, self.env);
        let archive = env.archives.find(&recall.archive, self.findings);
        if step.name.is_none() {
            self.findings.push(faults::recall_without_name(span));
        }
        let ((key, when), each) = self.of_each(recall.each.as_ref(), step, flow, |check, flow| {
            let when = check.archive_condition(recall.when.as_ref(), flow)?;
            let key = check.scalar_value(&recall.key, "the key of an entry", &check.scope(flow, None))?;
            Some((key.expr, when))
        })?;
        let (id, archive) = archive?;
        archive.is_recalled.set(true);
        let mut fields = vec![field("age", scalar(ScalarKind::Integer, span), true, span)];
        let mut side = self.serves.other();
        if let Some(value) = &archive.value {
            let value = value.as_ref()?;
            let mut ty = value.ty.clone();
            match &each {
                None => side = value.side,
                // Scalars have the same representation on both sides. Named types belong to one
                // contract.
                Some((_, element)) if value.side != side => {
                    let resolved = env.types(value.side).resolve(&value.ty);
                    if !matches!(resolved.kind, TypeKind::Scalar(_) | TypeKind::Any) {
                        self.findings.push(faults::recall_across(span, &element.ty));
                        return None;
                    }
                    ty = Type { kind: resolved.kind.clone(), nullable: resolved.nullable, span };
                }
                Some(_) => {}
            }
            fields.push(field("value", ty, true, span));
        }
        let entry = object(fields, Additional::Closed, span);
        let (held, each) = match each {
            None => (ContextValue { ty: entry, side, absent: true }, None),
            Some((each, element)) => (fan_out(&each.name.text, element, entry, span), Some(each)),
        };
        Some((plan::StepAction::Recall(Box::new(plan::Recall { archive: id, key, each, when })), held))
    }

    /// Compiles a step that stores an entry. It has no result.
    pub(super) fn keep(
        &mut self,
        keep: &ast::KeepDecl,
        step: &StepDecl,
        flow: &mut Flow,
    ) -> Option<(plan::StepAction, ContextValue)> {
        let (span, env) = (keep.archive.span, self.env);
        let archive = env.archives.find(&keep.archive, self.findings);
        if let Some(name) = &step.name {
            self.findings.push(faults::keep_with_name(name));
        }
        // A read must not change state, not even the gateway's own.
        let writes = super::operations::effect(&self.operation.key.method, None) == Effect::Write;
        if !self.is_harvest && !writes {
            self.findings.push(faults::keep_in_reading(span));
        }
        // Storing can fail. It must precede the first write, so that a failed request has no
        // effect.
        if let Some(write) = flow.wrote.as_ref().filter(|write| !write.is_keep) {
            self.findings.push(faults::keep_after(span, &write.name));
        }
        let wanted = archive.as_ref().map(|(_, archive)| archive.value.as_ref());
        match (wanted, &keep.value) {
            (Some(Some(_)), None) => self.findings.push(faults::keep_without_value(&keep.archive)),
            (Some(None), Some(value)) => {
                self.findings.push(faults::keep_with_value(&keep.archive, value.span))
            }
            _ => {}
        }
        let wanted = wanted.flatten().and_then(Option::as_ref);
        let ((key, value, when), each) = self.of_each(keep.each.as_ref(), step, flow, |check, flow| {
            let when = check.archive_condition(keep.when.as_ref(), flow)?;
            let key = check.scalar_value(&keep.key, "the key of an entry", &check.scope(flow, None));
            let value = keep.value.as_ref().map(|value| {
                let of_type =
                    wanted.map(|held| ExprTarget { ty: &held.ty, side: held.side, required: false });
                check.value(value, &check.scope(flow, of_type))
            });
            let value = match value {
                None => None,
                Some(made) => Some(made?.expr),
            };
            Some((key?.expr, value, when))
        })?;
        // A stored entry counts as the first write, because a later refusal would not undo it.
        if flow.wrote.is_none() && !self.is_harvest {
            let name = format!("keep: {}", keep.archive.value).into();
            flow.wrote = Some(Write { name, is_keep: true, is_judged: false });
        }
        let (archive, declared) = archive?;
        declared.is_kept.set(true);
        let each = each.map(|(each, _)| each);
        let made = plan::Keep { archive, key, value, each, when };
        // A placeholder: without a name, the step has no readers.
        let nothing = ContextValue::any(self.serves.other(), span);
        Some((plan::StepAction::Keep(Box::new(made)), nothing))
    }

    /// Compiles `when:`. Its facts hold for the rest of the step. An outer `None` is an error.
    fn archive_condition(
        &mut self,
        when: Option<&ast::PredicateDecl>,
        flow: &mut Flow,
    ) -> Option<Option<plan::Predicate>> {
        let Some(when) = when else { return Some(None) };
        let condition = self.condition(when, flow)?;
        flow.learn_all(&condition.facts, self.env.world.contracts);
        Some(Some(condition.predicate))
    }

    /// Calls `work` with a flow that contains the current element of `each`, if given.
    fn of_each<T>(
        &mut self,
        each: Option<&ast::EachOfDecl>,
        step: &StepDecl,
        flow: &Flow,
        work: impl FnOnce(&mut Self, &mut Flow) -> Option<T>,
    ) -> Option<(T, Option<(plan::EachOf, ContextValue)>)> {
        let mut flow = flow.clone();
        let found = match each {
            None => None,
            Some(each) => {
                self.check_name(&each.name, &flow);
                let (list, element, _) = self.elements(&each.name, &each.list, step, &mut flow)?;
                Some((plan::EachOf { name: Key::new(&each.name.value), list }, element))
            }
        };
        let made = work(self, &mut flow);
        if let Some(each) = each
            && !self.summary.reads.has_root(&each.name.value)
        {
            self.findings.push(faults::unread_element(&each.name));
        }
        made.map(|made| (made, found))
    }
}
