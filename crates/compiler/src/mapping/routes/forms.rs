//! Compiles composite expressions: conditionals, lists from elements, present values, and
//! multi-line texts. `expr` compiles literals, paths and the forms with a single value.

use super::context::{ContextValue, list, scalar};
use super::expr::{ExprScope, ExprTarget, TypedExpr};
use super::faults;
use super::route::RouteCheck;
use crate::contract::{JsonKind, ScalarKind, Type, TypeKind};
use crate::diagnostic::Span;
use crate::mapping::ast::{ExprDecl, ExprKind, PredicateDecl, Spanned};
use switchback_plan::{self as plan, Aggregate, Key};

impl RouteCheck<'_, '_> {
    /// Compiles `{$present: [value, …]}`.
    pub(super) fn present(
        &mut self,
        items: &[ExprDecl],
        span: Span,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let (wanted, to) = (scope.wanted, scope.target_side());
        // Null and absent values are omitted, so each expression may yield either.
        let item = self.wanted_items(wanted, span)?.map(|item| Type { nullable: true, ..item.clone() });
        let wanted_item = item.as_ref().map(|ty| ExprTarget { ty, side: to, required: false });
        let made = self.all_values(items, &scope.below("[*]").with_target(wanted_item))?;
        // Without a target type, infer the element type if all expressions have the same one.
        let first =
            made.first().map(|made| (made.held.side, Type { nullable: false, ..made.held.ty.clone() }));
        let same = |ty: &Type| made.iter().all(|made| like(&made.held.ty, ty));
        let shown = first.filter(|(side, ty)| *side == to && same(ty)).map(|(_, ty)| ty);
        let exprs = made.into_iter().map(|made| made.expr).collect();
        let ty = match (wanted, &shown) {
            (Some(wanted), _) => wanted.ty.clone(),
            (None, Some(item)) => list(item.clone(), span),
            (None, None) => list(Type::any(span), span),
        };
        Some(TypedExpr { expr: plan::Expr::Present(exprs), held: ContextValue::present(ty, to) })
    }

    /// Compiles `{$lookup: value, in: list, by: member, field: member}`: one element of a list, or
    /// one for each of several values.
    pub(super) fn lookup(
        &mut self,
        value: &ExprDecl,
        written: &Spanned<String>,
        [by, field]: [Option<&Spanned<String>>; 2],
        span: Span,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let key = self.value(value, &scope.source());
        let found = self.reading(scope.flow).find_one(&written.value, written.span);
        let (key, found, by) = (key?, found?, by?);
        let types = self.env.types(found.held.side);
        let TypeKind::Array(array) = types.resolve(&found.held.ty).kind else {
            self.findings.push(faults::lookup_in_no_list(written.span, &found.held.ty));
            return None;
        };
        let items = &*array.items;
        let TypeKind::Object(object) = types.resolve(items).kind else {
            self.findings.push(faults::lookup_in_no_list(written.span, &found.held.ty));
            return None;
        };
        let known: Vec<&str> = object.fields.iter().map(|field| field.name.as_str()).collect();
        for name in [Some(by), field].into_iter().flatten() {
            if object.field(&name.value).is_none() {
                self.findings.push(faults::unknown_field(&name.value, name.span, &known));
                return None;
            }
        }
        let element = match field.and_then(|field| object.field(&field.value)) {
            Some(field) => field.ty.clone(),
            None => items.clone(),
        };
        let key_types = self.env.types(key.held.side);
        let (many, key_ty) = match key_types.resolve(&key.held.ty).kind {
            TypeKind::Array(array) => (true, (*array.items).clone()),
            _ => (false, key.held.ty.clone()),
        };
        let by_ty = object.field(&by.value).map(|field| field.ty.clone())?;
        let (wants, has) = (key_types.json_kinds(&key_ty), types.json_kinds(&by_ty));
        // Values of different kinds are never equal.
        if !wants.iter().any(|kind| has.contains(kind)) {
            self.findings.push(faults::lookup_never_found(span, &key_ty, &by.value, &by_ty));
            return None;
        }
        // A single lookup may find no element. A list of values yields those that were found.
        let absent = if many { key.held.absent } else { true };
        let ty = if many { list(element, span) } else { element };
        let held = ContextValue { ty, side: found.held.side, absent };
        self.fits(&held, scope.wanted, None, span)?;
        let expr = plan::Expr::Lookup {
            value: Box::new(key.expr),
            list: found.location,
            by: Key::new(&by.value),
            field: field.map(|field| Key::new(&field.value)),
        };
        Some(TypedExpr { expr, held })
    }

    pub(super) fn each_value(
        &mut self,
        name: &Spanned<String>,
        elements: &ExprDecl,
        give: &ExprDecl,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        self.check_name(name, scope.flow);
        let (wanted, to) = (scope.wanted, scope.target_side());
        let item = self.wanted_items(wanted, elements.span)?;
        let faulty = self.summary.reads.faulty;
        // As in a `make` step, the elements leave the side that the list was read from.
        let over = self.value(elements, &ExprScope { makes: true, ..scope.source() })?;
        let types = self.env.types(over.held.side);
        let resolved = types.resolve(&over.held.ty);
        // Assume that an untyped value has the type that its use requires.
        let shown = !matches!(resolved.kind, TypeKind::Any);
        let absent = over.held.absent || resolved.nullable && shown;
        let element = match resolved.kind {
            TypeKind::Array(array) => ContextValue::present((*array.items).clone(), over.held.side),
            TypeKind::Any => ContextValue::any(over.held.side, elements.span),
            _ => {
                self.findings.push(faults::each_of_no_list(elements.span, &over.held.ty));
                return None;
            }
        };
        if absent && wanted.is_some_and(|wanted| wanted.required) {
            self.findings.push(faults::may_be_absent(elements.span));
            return None;
        }
        let mut flow = scope.flow.with(&name.value, element);
        flow.proofs.derive_value(&name.value, &over.expr);
        if self.summary.reads.faulty > faulty {
            flow.faulty.insert(name.value.clone());
        }
        let wanted_item = item.map(|ty| ExprTarget { ty, side: to, required: true });
        let scope = scope.with_flow(&flow).below("[*]").with_target(wanted_item);
        let made = match &give.kind {
            ExprKind::Shape(shape) => self.shape(shape, true, &scope),
            _ => self.value(give, &scope),
        };
        if !self.summary.reads.has_root(&name.value) {
            self.findings.push(faults::unread_element(name));
        }
        let given = made?;
        let ty = wanted.map_or_else(|| list(given.held.ty, give.span), |wanted| wanted.ty.clone());
        let expr = plan::Expr::Each {
            name: Key::new(&name.value),
            list: Box::new(over.expr),
            give: Box::new(given.expr),
        };
        Some(TypedExpr { expr, held: ContextValue { ty, side: to, absent } })
    }

    /// Compiles `{$count: list}` and `{$sum: list}`. A sum is an integer if all elements are.
    pub(super) fn aggregate(
        &mut self,
        what: Aggregate,
        elements: &ExprDecl,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let over = self.value(elements, &scope.source())?;
        let types = self.env.types(over.held.side);
        let resolved = types.resolve(&over.held.ty);
        let shown = !matches!(resolved.kind, TypeKind::Any);
        let item = match resolved.kind {
            TypeKind::Array(array) => Some(types.resolve(&array.items).kind),
            TypeKind::Any => None,
            _ => {
                self.findings.push(faults::each_of_no_list(elements.span, &over.held.ty));
                return None;
            }
        };
        let kind = match (what, item) {
            (Aggregate::Count, _) => ScalarKind::Integer,
            (Aggregate::Sum, None | Some(TypeKind::Any)) => ScalarKind::Number,
            (Aggregate::Sum, Some(TypeKind::Scalar(scalar)))
                if matches!(scalar.kind, ScalarKind::Integer | ScalarKind::Number) =>
            {
                scalar.kind
            }
            (Aggregate::Sum, Some(_)) => {
                self.findings.push(faults::sum_of_no_numbers(elements.span, &over.held.ty));
                return None;
            }
        };
        let absent = over.held.absent || (resolved.nullable && shown);
        let held = ContextValue {
            absent,
            ..ContextValue::present(scalar(kind, elements.span), scope.target_side())
        };
        self.fits(&held, scope.wanted, None, elements.span)?;
        Some(TypedExpr { expr: plan::Expr::Aggregate { what, list: Box::new(over.expr) }, held })
    }

    /// Compiles `{$if: predicate, then: value, else: value}`. The facts of the condition hold in
    /// `then`.
    pub(super) fn conditional(
        &mut self,
        predicate: &PredicateDecl,
        then: &ExprDecl,
        otherwise: Option<&ExprDecl>,
        span: Span,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let wanted = scope.wanted;
        let condition = self.condition(predicate, scope.flow);
        let faulty = self.summary.reads.faulty;
        let facts = condition.as_ref().map_or(&[][..], |condition| &condition.facts);
        let made =
            self.value(then, &scope.with_flow(&scope.flow.where_holds(facts, self.env.world.contracts)));
        // Reads of unknown values in a branch do not make the result unknown.
        self.summary.reads.faulty = faulty;
        if otherwise.is_none() && wanted.is_some_and(|wanted| wanted.required) {
            self.findings.push(faults::may_be_absent(span));
            return None;
        }
        let other = match otherwise {
            None => None,
            Some(expr) => Some(self.value(expr, &scope.unless_found(true))?),
        };
        let (condition, made) = (condition?, made?);
        let absent = made.held.absent || other.as_ref().is_none_or(|other| other.held.absent);
        // Without a target the two branches need not agree. An untyped result covers both.
        let held = match &other {
            Some(other) if other.held.ty.kind != made.held.ty.kind && wanted.is_none() => {
                ContextValue { absent, ..ContextValue::any(made.held.side, span) }
            }
            _ => ContextValue { absent, ..made.held },
        };
        let expr = plan::Expr::If {
            predicate: condition.predicate,
            then: Box::new(made.expr),
            otherwise: other.map(|other| Box::new(other.expr)),
        };
        Some(TypedExpr { expr, held })
    }

    /// Compiles `{$lines: [value, …], numbered: [value, …]}`.
    pub(super) fn lines(
        &mut self,
        plain: &[ExprDecl],
        numbered: &[ExprDecl],
        span: Span,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let plain: Vec<_> = plain.iter().map(|line| self.line(line, scope)).collect();
        let numbered: Vec<_> = numbered.iter().map(|line| self.line(line, scope)).collect();
        let held = ContextValue::present(scalar(ScalarKind::String, span), scope.target_side());
        self.fits(&held, scope.wanted, None, span)?;
        let all = |lines: Vec<Option<plan::Expr>>| lines.into_iter().collect::<Option<Vec<_>>>();
        Some(TypedExpr { expr: plan::Expr::Lines { plain: all(plain)?, numbered: all(numbered)? }, held })
    }

    /// Compiles a line: a scalar, or a list of scalars.
    fn line(&mut self, expr: &ExprDecl, scope: &ExprScope<'_>) -> Option<plan::Expr> {
        let made = self.value(expr, &scope.source())?;
        let types = self.env.types(made.held.side);
        let scalars = match types.resolve(&made.held.ty).kind {
            TypeKind::Array(array) => ContextValue::present((*array.items).clone(), made.held.side),
            _ => made.held,
        };
        self.is_scalar(&scalars, "a line of a text", expr.span)?;
        self.becomes_text(&made.expr, "a line of a text", scope.flow, expr.span);
        Some(made.expr)
    }

    /// Returns the element type of the target list. An outer `None` is an error.
    fn wanted_items<'w>(&mut self, wanted: Option<ExprTarget<'w>>, span: Span) -> Option<Option<&'w Type>>
    where
        Self: 'w,
    {
        let Some(wanted) = wanted else { return Some(None) };
        let types = self.env.types(wanted.side);
        match types.resolve(wanted.ty).kind {
            TypeKind::Array(array) => Some(Some(&array.items)),
            TypeKind::Any => Some(None),
            _ if types.json_kinds(wanted.ty).contains(&JsonKind::Array) => Some(None),
            _ => {
                self.findings.push(faults::wrong_form(span, "a list", wanted.ty));
                None
            }
        }
    }
}

/// Returns whether two types are equal, regardless of their spans.
fn like(a: &Type, b: &Type) -> bool {
    match (&a.kind, &b.kind) {
        (TypeKind::Object(a), TypeKind::Object(b)) => {
            a.fields.len() == b.fields.len()
                && a.fields
                    .iter()
                    .zip(&b.fields)
                    .all(|(a, b)| a.name == b.name && a.required == b.required && like(&a.ty, &b.ty))
        }
        (a, b) => a == b,
    }
}
