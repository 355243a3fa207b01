//! Compiles `{$from: value, to: function}`: checks each function against the type of its value.

use super::context::{ContextValue, list, scalar};
use super::expr::{ExprScope, NUMBER, TypedExpr, is_subset, type_of_kinds};
use super::faults;
use super::flow::Flow;
use super::route::RouteCheck;
use crate::contract::{Additional, ScalarKind, Type, TypeIn, TypeKind};
use crate::diagnostic::Span;
use crate::mapping::ast::{ApplyDecl, ConversionUse, ExprDecl, ExprKind, FunctionUse, Spanned};
use crate::mapping::faults::wrong_arguments;
use crate::mapping::lens::{Partial, build_conversion, facts_of, otherwise};
use crate::mapping::literal;
use crate::yaml::Node;
use std::sync::Arc;
use switchback_json::Limits;
use switchback_json::raw::Kind;
use switchback_plan::convert::{Facts, Given, Otherwise};
use switchback_plan::function::{ApplyElse, FUNCTIONS, Function, FunctionSpec, Gives, converted, converting};
use switchback_plan::{self as plan, Kinds, SideId};

/// The value that functions are applied to.
struct Operand {
    made: TypedExpr,
    facts: Facts,
}

impl RouteCheck<'_, '_> {
    /// Compiles functions over a value.
    pub(super) fn apply(
        &mut self,
        apply: &ApplyDecl,
        span: Span,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        // Compile value, functions and fallback before returning, to report errors in each.
        let operand = self.operand(&apply.from, scope);
        let functions: Vec<_> = apply.functions.iter().map(|used| self.function(used)).collect();
        let otherwise = self.apply_else(apply.otherwise.as_ref(), scope);
        let Operand { made, mut facts } = operand?;
        let functions: Vec<Arc<dyn Function>> = functions.into_iter().collect::<Option<_>>()?;
        let otherwise = otherwise?;
        let (side, mut ty) = (made.held.side, made.held.ty.clone());
        // A null passes all functions.
        let is_nullable = facts.kinds.null && !facts.any;
        let mut is_partial = false;
        for (used, function) in apply.functions.iter().zip(&functions) {
            self.takes(used, &**function, &facts, TypeIn { types: self.env.types(side), ty: &ty })?;
            if !function.takes_all(&facts) && !is_partial {
                is_partial = true;
                if apply.otherwise.is_none() {
                    self.partial_function(&used.name, [side, scope.target_side()], &ty, scope.flow);
                }
            }
            ty = result(&**function, &facts, &ty, span);
            facts = facts_of(TypeIn { types: self.env.types(side), ty: &ty });
        }
        // Only types that a contract names belong to its side.
        let side = if is_unnamed(&ty) { scope.target_side() } else { side };
        let absent = made.held.absent || (is_partial && otherwise == ApplyElse::Absent);
        let held = ContextValue { ty: Type { nullable: is_nullable, ..ty }, side, absent };
        self.fits(&held, scope.wanted, None, span)?;
        // The literal was checked against the target; without one, it may be of any type.
        let held = match (&otherwise, scope.wanted) {
            (ApplyElse::Value(_), None) if is_partial => {
                ContextValue { absent, ..ContextValue::any(side, span) }
            }
            _ => held,
        };
        Some(TypedExpr { expr: plan::Expr::Apply { from: Box::new(made.expr), functions, otherwise }, held })
    }

    /// Compiles the value. The elements of a list in place keep their positions: an absent one is
    /// null, which the function handles.
    fn operand(&mut self, from: &ExprDecl, scope: &ExprScope<'_>) -> Option<Operand> {
        // A literal operand is no value of the response.
        let source = ExprScope { answer: None, ..scope.source() };
        let ExprKind::Array(items) = &from.kind else {
            let made = self.value(from, &source)?;
            let facts = facts_of(made.held.in_types(self.env.world.contracts));
            return Some(Operand { made, facts });
        };
        let made = self.all_values(items, &source)?;
        let side = made.iter().map(|made| made.held.side).next().unwrap_or(scope.target_side());
        let elements: Vec<Facts> =
            made.iter().map(|made| facts_of(made.held.in_types(self.env.world.contracts))).collect();
        let count = made.len() as u64;
        let has_absent = made.iter().any(|made| made.held.absent);
        let exprs = made.into_iter().map(|made| match made.held.absent {
            true => plan::Expr::FirstOf(vec![made.expr, plan::Expr::Constant(plan::Raw::from(&b"null"[..]))]),
            false => made.expr,
        });
        let expr = plan::Expr::Array(exprs.collect());
        let mut all = merged(&elements);
        all.kinds.null |= has_absent;
        let element = Type { nullable: all.kinds.null, ..type_of(&all, from.span) };
        let facts = Facts {
            kinds: Kinds::from_kinds(&[Kind::Array]),
            items: Some(Box::new(all)),
            items_least: count,
            items_most: Some(count),
            ..Facts::default()
        };
        let held = ContextValue::present(list(element, from.span), side);
        Some(Operand { made: TypedExpr { expr, held }, facts })
    }

    /// Builds a function from its name and arguments.
    fn function(&mut self, used: &FunctionUse) -> Option<Arc<dyn Function>> {
        let Some(spec) = FunctionSpec::by_name(&used.name.value) else {
            if converting().any(|spec| spec.name == used.name.value) {
                let (name, arguments) = (used.name.clone(), used.arguments.clone());
                let used = ConversionUse { name, arguments, otherwise: None, each: None, or: Vec::new() };
                let kind = build_conversion(&used, [None, None], &self.env.world, self.findings)?;
                return Some(converted(kind));
            }
            let known = FUNCTIONS.iter().map(|spec| spec.name).chain(converting().map(|spec| spec.name));
            self.findings.push(faults::unknown_function(&used.name, known.collect()));
            return None;
        };
        let such_as = spec.arguments.map(|arguments| arguments.such_as);
        let arguments = match (&used.arguments, such_as) {
            (None, None) => None,
            (Some(arguments), Some(_)) => Some(arguments),
            (arguments, such_as) => {
                let span = arguments.as_ref().map_or(used.name.span, |node| node.span);
                self.findings.push(faults::function_arguments(&used.name, span, such_as));
                return None;
            }
        };
        let value = match arguments {
            None => switchback_json::Value::Null,
            Some(node) => switchback_json::Value::parse(&literal::json(node), &Limits::DOCUMENT).ok()?,
        };
        let given = Given { arguments: &value, sides: self.env.world.sides(), facts: [None, None] };
        match ((spec.build)(&given), arguments) {
            (Ok(function), _) => Some(function),
            (Err(why), Some(node)) => {
                let help = such_as.map(|form| format!("write `to: {form}`"));
                self.findings.push(wrong_arguments(&used.name, node, &why, help));
                None
            }
            (Err(_), None) => None,
        }
    }

    /// Checks that a function accepts the kinds of a value, and finds the members that it reads.
    fn takes(
        &mut self,
        used: &FunctionUse,
        function: &dyn Function,
        facts: &Facts,
        ty: TypeIn<'_>,
    ) -> Option<()> {
        let takes = function.takes();
        if !facts.any && !is_subset(facts.kinds, takes.kinds) {
            self.findings.push(faults::function_source(&used.name, takes.kinds, false, ty.ty));
            return None;
        }
        if let Some(items) = facts.items.as_ref().filter(|items| !items.any)
            && takes.kinds.array
            && !is_subset(items.kinds, takes.elements)
        {
            self.findings.push(faults::function_source(&used.name, takes.elements, true, ty.ty));
            return None;
        }
        if let Some(object) = ty.items().and_then(|items| items.object())
            && object.additional == Additional::Closed
            && let Some(key) = function.members().iter().find(|key| object.field(&key.text).is_none())
        {
            let known: Vec<&str> = object.fields.iter().map(|field| field.name.as_str()).collect();
            self.findings.push(faults::function_member(&used.name, &key.text, &known));
            return None;
        }
        Some(())
    }

    /// Records a function that rejects valid values and has no fallback.
    fn partial_function(&self, name: &Spanned<String>, sides: [SideId; 2], ty: &Type, flow: &Flow) {
        let [from, to] = sides.map(|side| self.env.side_name(side).to_owned());
        let (name, span) = (name.value.clone(), name.span);
        let partial = Partial { name, span, from, to, ty: ty.to_string(), wrote: None, is_function: true };
        self.env.lenses.use_partial(&partial, flow.write_name());
    }

    /// Reads an `else:`. A literal must fit the target.
    fn apply_else(&mut self, node: Option<&Node>, scope: &ExprScope<'_>) -> Option<ApplyElse> {
        let Some(node) = node else { return Some(ApplyElse::Error) };
        Some(match otherwise(node) {
            Otherwise::Error => ApplyElse::Error,
            Otherwise::Drop => ApplyElse::Absent,
            Otherwise::Keep => {
                self.findings.push(faults::function_keeps(node.span));
                return None;
            }
            Otherwise::Value(raw) => {
                if let Some(wanted) = scope.wanted
                    && let Err(misfit) =
                        literal::check(node, TypeIn { types: self.env.types(wanted.side), ty: wanted.ty })
                {
                    self.findings.push(faults::literal(&misfit));
                    return None;
                }
                ApplyElse::Value(raw)
            }
        })
    }
}

/// Returns the type of a function's result.
fn result(function: &dyn Function, facts: &Facts, from: &Type, span: Span) -> Type {
    match function.gives(facts) {
        Gives::Kinds { kinds, integer: true } if kinds == NUMBER => scalar(ScalarKind::Integer, span),
        Gives::Kinds { kinds, .. } => type_of_kinds(kinds, span),
        Gives::Same => from.clone(),
        Gives::Chunks => list(Type { nullable: false, ..from.clone() }, span),
        Gives::Texts => list(scalar(ScalarKind::String, span), span),
    }
}

/// Returns whether a type is a scalar, or lists of scalars.
fn is_unnamed(ty: &Type) -> bool {
    match &ty.kind {
        TypeKind::Scalar(_) => true,
        TypeKind::Array(array) => is_unnamed(&array.items),
        _ => false,
    }
}

/// Returns the facts that hold for each of several values.
fn merged(all: &[Facts]) -> Facts {
    let mut merged =
        Facts { integers: all.iter().all(|facts| facts.integers || !facts.kinds.number), ..Facts::default() };
    for facts in all {
        merged.any |= facts.any;
        merged.bounds = match std::ptr::eq(facts, &all[0]) {
            true => facts.bounds,
            false => [
                merged.bounds[0].zip(facts.bounds[0]).map(|(a, b)| a.min(b)),
                merged.bounds[1].zip(facts.bounds[1]).map(|(a, b)| a.max(b)),
            ],
        };
        let (kinds, more) = (&mut merged.kinds, facts.kinds);
        kinds.null |= more.null && !facts.any;
        kinds.boolean |= more.boolean;
        kinds.number |= more.number;
        kinds.string |= more.string;
        kinds.array |= more.array;
        kinds.object |= more.object;
    }
    merged
}

fn type_of(facts: &Facts, span: Span) -> Type {
    match facts.kinds {
        _ if facts.any => Type::any(span),
        kinds if (Kinds { null: false, ..kinds }) == NUMBER && facts.integers => {
            scalar(ScalarKind::Integer, span)
        }
        kinds => type_of_kinds(kinds, span),
    }
}
