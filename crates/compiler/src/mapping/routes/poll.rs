//! Compiles polling calls: `until`, `every` and `within`.
//!
//! Only reads are repeated. The condition must depend on the call's own reply, and according to the
//! contract it must be able to both hold and fail. An earlier write must be remembered or safe to
//! repeat, because a client that repeats the request after a timeout would write again. The
//! condition's facts hold for the result of the step.

use super::context::ContextValue;
use super::faults;
use super::flow::Flow;
use super::operations::effect;
use super::route::RouteCheck;
use super::serve::CALLS_MAX;
use crate::contract::{Operation, ScalarKind, TypeKind};
use crate::mapping::ast::{self, CallDecl, PredicateDecl, PredicateWord, Spanned, StepDecl};
use crate::mapping::literal;
use std::collections::BTreeMap;
use std::time::Duration;
use switchback_plan::{self as plan, Effect, Raw};

/// Descriptions of the times in findings.
pub(super) const EVERY: &str = "from one call to the next";
const WITHIN: &str = "to wait for";

const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(60);
const WITHIN_MAX: Duration = Duration::from_secs(300);

/// Whether a condition can hold and can fail, according to the contract.
#[derive(Clone, Copy)]
struct ConditionRange {
    holds: bool,
    fails: bool,
}

impl RouteCheck<'_, '_> {
    /// Compiles the polling of a call, and returns the narrowed type of its result.
    pub(super) fn poll(
        &mut self,
        poll: &ast::PollDecl,
        call: &CallDecl,
        step: &StepDecl,
        operation: &Operation,
        held: ContextValue,
        flow: &Flow,
    ) -> Option<(plan::Poll, ContextValue)> {
        let mark = self.findings.len();
        for (other, is_there) in [("pages", call.pages.is_some()), ("each", call.each.is_some())] {
            if is_there {
                self.findings.push(faults::poll_beside(poll.span, other));
            }
        }
        if effect(&operation.key.method, call.effect.as_ref()) == Effect::Write {
            self.findings.push(faults::poll_of_write(call.operation.span, &operation.key));
        } else if let Some(write) = &flow.unremembered {
            self.findings.push(faults::poll_forgotten(poll.span, write));
        }
        let times = self.times(poll);
        let Some(name) = &step.name else {
            self.findings.push(faults::poll_unnamed(poll.span));
            return None;
        };
        if self.findings.errors_since(mark) {
            return None;
        }
        // The condition reads the reply by the name of the step, which is otherwise defined after
        // it.
        let flow = flow.with(&name.value, held.clone());
        let until = strict(&poll.until, true);
        let condition = self.condition(&until, &flow);
        let open = condition.as_ref().map(|_| self.open(&until, &flow));
        let (condition, (every, time)) = (condition?, times?);
        if !poll.until.all_places().iter().any(|place| is_below(&place.value, &name.value)) {
            self.findings.push(faults::poll_blind(poll.span, &name.value));
            return None;
        }
        match open? {
            ConditionRange { holds: false, .. } => {
                self.findings.push(faults::poll_never(poll.span));
                return None;
            }
            ConditionRange { fails: false, .. } => {
                self.findings.push(faults::poll_at_once(poll.span));
                return None;
            }
            ConditionRange { .. } => {}
        }
        let finished = flow.where_holds(&condition.facts, self.env.world.contracts);
        let made = plan::Poll { until: condition.predicate, every, within: time };
        // After a failure the step may continue with a different reply, so the facts do not apply.
        let goes_on = matches!(call.on_fail, Some(ast::OnFailDecl::Absent(_) | ast::OnFailDecl::Use(_)));
        Some((made, if goes_on { held } else { finished.get(&name.value).cloned().unwrap_or(held) }))
    }

    fn times(&mut self, poll: &ast::PollDecl) -> Option<(Duration, Duration)> {
        let mut time = |written: &Spanned<String>, what, least, most| {
            let found = literal::duration(&written.value).filter(|time| (least..=most).contains(time));
            if found.is_none() {
                self.findings.push(faults::poll_time(written, what));
            }
            found
        };
        let every = time(&poll.every, EVERY, EVERY_MIN, EVERY_MAX);
        let within = time(&poll.within, WITHIN, Duration::from_millis(1), WITHIN_MAX);
        let (every, within) = (every?, within?);
        if within < every {
            self.findings.push(faults::poll_never_again(&poll.within, &poll.every.value));
            return None;
        }
        // A placeholder: the number of calls depends on the times only.
        let until = plan::Predicate::All(Vec::new());
        let most = plan::Poll { until, every, within }.most();
        if most > CALLS_MAX {
            self.findings.push(faults::poll_calls(&poll.every, most, CALLS_MAX));
            return None;
        }
        Some((every, within))
    }

    /// Determines whether a valid condition can hold and can fail.
    fn open(&mut self, written: &PredicateDecl, flow: &Flow) -> ConditionRange {
        let any = ConditionRange { holds: true, fails: true };
        match written.word.value {
            PredicateWord::Not => {
                let ConditionRange { holds, fails } = self.open(&written.of[0], flow);
                ConditionRange { holds: fails, fails: holds }
            }
            PredicateWord::All => {
                let of: Vec<ConditionRange> = written.of.iter().map(|one| self.open(one, flow)).collect();
                let holds = of.iter().all(|one| one.holds) && are_joinable(written);
                // A condition that cannot hold always fails.
                ConditionRange { holds, fails: of.iter().any(|one| one.fails) || !holds }
            }
            PredicateWord::Any => {
                let of: Vec<ConditionRange> = written.of.iter().map(|one| self.open(one, flow)).collect();
                ConditionRange {
                    holds: of.iter().any(|one| one.holds),
                    fails: of.iter().all(|one| one.fails),
                }
            }
            PredicateWord::Present | PredicateWord::Missing | PredicateWord::OneOf => {
                let Some(found) = self.reading(flow).find_spanned(&written.places[0]) else { return any };
                let ty = self.env.types(found.held.side).resolve(&found.held.ty);
                let (may_be_absent, may_be_null) = (found.held.absent, found.held.ty.nullable || ty.nullable);
                let is_known = !matches!(ty.kind, TypeKind::Any | TypeKind::OneOf(_));
                match written.word.value {
                    PredicateWord::Present => {
                        ConditionRange { holds: true, fails: may_be_absent || may_be_null || !is_known }
                    }
                    // A null value is present.
                    PredicateWord::Missing => {
                        ConditionRange { holds: may_be_absent || !is_known, fails: true }
                    }
                    _ => ConditionRange { holds: true, fails: !lists_all(ty.kind, &written.values) },
                }
            }
            _ => any,
        }
    }
}

/// Adds presence to conditions about values and kinds, so that an absent value does not finish the
/// polling.
fn strict(written: &PredicateDecl, positive: bool) -> PredicateDecl {
    let of = |positive| written.of.iter().map(|one| strict(one, positive)).collect();
    match written.word.value {
        PredicateWord::All | PredicateWord::Any => PredicateDecl { of: of(positive), ..written.clone() },
        PredicateWord::Not => PredicateDecl { of: of(!positive), ..written.clone() },
        PredicateWord::OneOf | PredicateWord::Kind | PredicateWord::AbsentOrEqual if positive => {
            let word = |value| Spanned { value, span: written.word.span };
            let present = PredicateDecl {
                word: word(PredicateWord::Present),
                places: written.places[..1].to_vec(),
                values: Vec::new(),
                of: Vec::new(),
            };
            let of = vec![present, written.clone()];
            PredicateDecl { word: word(PredicateWord::All), places: Vec::new(), values: Vec::new(), of }
        }
        _ => written.clone(),
    }
}

/// Returns whether `values` include all values of a type, except null.
fn lists_all(kind: &TypeKind, values: &[crate::yaml::Node]) -> bool {
    let TypeKind::Scalar(scalar) = kind else { return false };
    let listed: Vec<_> = values.iter().filter_map(literal::scalar).collect();
    match &scalar.values {
        Some(known) => !known.open && known.values.iter().all(|value| listed.contains(value)),
        None => scalar.kind == ScalarKind::Boolean && listed.len() > 1,
    }
}

/// Returns whether a conjunction leaves at least one value for each place.
fn are_joinable(all: &PredicateDecl) -> bool {
    fn collect<'p>(of: &'p PredicateDecl, known: &mut BTreeMap<&'p str, Vec<Raw>>) {
        match of.word.value {
            PredicateWord::All => of.of.iter().for_each(|one| collect(one, known)),
            PredicateWord::OneOf => {
                let values: Vec<Raw> = of.values.iter().map(literal::json).collect();
                let place = known.entry(&of.places[0].value).or_insert_with(|| values.clone());
                place.retain(|value| values.contains(value));
            }
            _ => {}
        }
    }
    let mut known = BTreeMap::new();
    collect(all, &mut known);
    known.values().all(|values| !values.is_empty())
}

/// Returns whether a path leads to this member of the context or below it.
fn is_below(path: &str, name: &str) -> bool {
    let rest = path.strip_prefix("$.").and_then(|path| path.strip_prefix(name));
    rest.is_some_and(|rest| rest.starts_with(['.', '[']))
}
