//! Compiles expressions for bodies, headers and parameters: checks them against the type of their
//! target, and lowers them.
//!
//! A field of the request body has its type in the served contract, narrowed by `fill` and by the
//! preceding checks. For example, `{name: $.request.body.name}` can only fill a required field if
//! the contract requires `name` or a check ensures it.

use super::context::{self, ContextValue, field, kinds_of, list, scalar};
use super::faults;
use super::flow::Flow;
use super::paths::FoundPath;
use super::route::{AnswerPlace, RouteCheck};
use crate::contract::{
    Additional, Field, JsonKind, Mismatch, Object, ScalarKind, Type, TypeIn, TypeKind, assignable, compare,
};
use crate::diagnostic::Span;
use crate::mapping::ast::{ConversionUse, ExprDecl, ExprKind, ShapeExpr, ShapeUse, Spanned};
use crate::mapping::lens::{ReadConversion, ReadyConversion, Supply, facts_of, is_partial, read_conversion};
use crate::mapping::literal;
use crate::mapping::references::ResolvedKind;
use crate::yaml::Node;
use switchback_json::raw::Kind;
use switchback_plan::convert::{Conversion, ConversionKind, Otherwise};
use switchback_plan::{self as plan, Key, Kinds, Loss, NoteKind, NullElse, Overlay, SideId};

/// The name of the value that a shape reads, in the members that the shape computes.
const FROM: &str = "from";

/// The target of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExprTarget<'w> {
    pub ty: &'w Type,
    pub side: SideId,
    /// Whether a value is mandatory.
    pub required: bool,
}

/// The context of a value: the flow at its point of the route, and its target.
#[derive(Clone)]
pub(super) struct ExprScope<'f> {
    pub flow: &'f Flow,
    /// `None` if the value has no constraints.
    pub wanted: Option<ExprTarget<'f>>,
    /// The side that values without a target are built for.
    pub side: SideId,
    /// Whether the value belongs to a `make` step.
    pub makes: bool,
    /// The target within the response; `None` outside of responses.
    pub answer: Option<AnswerPlace>,
}

impl<'f> ExprScope<'f> {
    /// Returns the side that the value is built for.
    pub(super) fn target_side(&self) -> SideId {
        self.wanted.map_or(self.side, |wanted| wanted.side)
    }

    pub(super) fn with_flow<'x>(&self, flow: &'x Flow) -> ExprScope<'x>
    where
        'f: 'x,
    {
        ExprScope { flow, ..self.clone() }
    }

    pub(super) fn with_target<'x>(&self, wanted: Option<ExprTarget<'x>>) -> ExprScope<'x>
    where
        'f: 'x,
    {
        ExprScope { wanted, ..self.clone() }
    }

    /// Returns the scope of a value that is a source of this one.
    pub(super) fn source(&self) -> ExprScope<'f> {
        self.with_target(None)
    }

    /// Returns the scope of a member or an element of the value.
    pub(super) fn below(&self, step: &str) -> ExprScope<'f> {
        let mut scope = self.clone();
        if let Some(at) = &mut scope.answer {
            at.place.push_str(step);
        }
        scope
    }

    /// Returns the scope of a value that is only built if another one is absent.
    pub(super) fn unless_found(&self, unless: bool) -> ExprScope<'f> {
        let mut scope = self.clone();
        if let Some(at) = &mut scope.answer {
            at.unless_found |= unless;
        }
        scope
    }
}

/// A lowered expression and its type.
pub(super) struct TypedExpr {
    pub expr: plan::Expr,
    pub held: ContextValue,
}

impl RouteCheck<'_, '_> {
    /// Returns the scope of a value outside of responses.
    pub(super) fn scope<'f>(&self, flow: &'f Flow, wanted: Option<ExprTarget<'f>>) -> ExprScope<'f> {
        ExprScope { flow, wanted, side: self.serves, makes: false, answer: None }
    }

    /// Compiles an expression. Returns `None` if it reports an error.
    pub(super) fn value(&mut self, expr: &ExprDecl, scope: &ExprScope<'_>) -> Option<TypedExpr> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Literal(node) => self.literal(node, false, scope),
            ExprKind::Value { value, despite_type } => {
                if let Some(span) = despite_type {
                    self.despite(value, *span, scope);
                }
                self.literal(value, despite_type.is_some(), scope)
            }
            ExprKind::Path(path) => {
                if let Some((expr, flow)) = scope.flow.named_value(path) {
                    return self.value(&expr, &scope.with_flow(&flow));
                }
                let found = self.reading(scope.flow).find(path, span)?;
                self.read_late(&found.location, scope.flow, span);
                self.fits(&found.held, scope.wanted, Some(&found.location.text), span)?;
                Some(TypedExpr { expr: plan::Expr::At(found.location), held: found.held })
            }
            ExprKind::Object(entries) => self.object(entries, span, scope),
            ExprKind::Array(items) => self.array(items, span, scope),
            ExprKind::Convert { from, conversion } => self.convert(from, conversion, span, scope),
            ExprKind::Apply(apply) => self.apply(apply, span, scope),
            ExprKind::Text { reason, with } => self.text(reason, with, span, scope),
            ExprKind::Shape(shape) => self.shape(shape, false, scope),
            ExprKind::Aggregate { what, list } => self.aggregate(*what, list, scope),
            ExprKind::FirstOf(items) => self.first_of(items, span, scope),
            ExprKind::Present(items) => self.present(items, span, scope),
            ExprKind::Lookup { value, list, by, field } => {
                self.lookup(value, list, [Some(by), field.as_ref()], span, scope)
            }
            ExprKind::Each { name, list, give } => self.each_value(name, list, give, scope),
            ExprKind::If { predicate, then, otherwise } => {
                self.conditional(predicate, then, otherwise.as_deref(), span, scope)
            }
            ExprKind::Lines { plain, numbered } => self.lines(plain, numbered, span, scope),
        }
    }

    /// Compiles all expressions of a list, to report errors in each of them.
    pub(super) fn all_values(&mut self, items: &[ExprDecl], scope: &ExprScope<'_>) -> Option<Vec<TypedExpr>> {
        let made: Vec<_> = items.iter().map(|item| self.value(item, scope)).collect();
        made.into_iter().collect()
    }

    /// Compiles an expression that becomes text: a header, a query parameter or a part of a path.
    pub(super) fn scalar_value(
        &mut self,
        expr: &ExprDecl,
        what: &str,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let made = self.value(expr, &scope.source())?;
        self.is_scalar(&made.held, what, expr.span)?;
        self.becomes_text(&made.expr, what, scope.flow, expr.span);
        Some(made)
    }

    pub(super) fn is_scalar(&mut self, held: &ContextValue, what: &str, span: Span) -> Option<()> {
        let kinds = self.env.types(held.side).json_kinds(&held.ty);
        let whole = |kind: &JsonKind| matches!(kind, JsonKind::Array | JsonKind::Object);
        // An untyped value may be of any kind. Assume the kind that its use requires.
        let shown = !matches!(self.env.types(held.side).resolve(&held.ty).kind, TypeKind::Any);
        if shown && (kinds.is_empty() || kinds.iter().any(whole)) {
            self.findings.push(faults::not_scalar(what, span, &held.ty));
            return None;
        }
        Some(())
    }

    fn literal(&mut self, node: &Node, despite: bool, scope: &ExprScope<'_>) -> Option<TypedExpr> {
        if let (Some(wanted), false) = (scope.wanted, despite) {
            let ty = TypeIn { types: self.env.types(wanted.side), ty: wanted.ty };
            if let Err(misfit) = literal::check(node, ty) {
                self.findings.push(faults::literal(&misfit));
                return None;
            }
        }
        // In a response, it replaces a value that is missing on the other side.
        if let Some(at) = &scope.answer {
            self.lose(Loss {
                side: self.env.side_name(self.serves).to_owned(),
                place: at.place.clone(),
                instead: Some(String::from_utf8_lossy(&literal::json(node)).into_owned()),
                unless_found: at.unless_found,
                partly: false,
                narrow: None,
                origin: self.env.origin(node.span),
            });
        }
        let held = ContextValue::present(type_of(node), scope.target_side());
        Some(TypedExpr { expr: plan::Expr::Constant(literal::json(node)), held })
    }

    /// Lists a `despite: type` in the report. Reports one that is unnecessary.
    fn despite(&mut self, node: &Node, span: Span, scope: &ExprScope<'_>) {
        let misfit = scope.wanted.and_then(|wanted| {
            let ty = TypeIn { types: self.env.types(wanted.side), ty: wanted.ty };
            literal::check(node, ty).err()
        });
        match misfit {
            None => self.findings.push(faults::despite_needless(span)),
            Some(misfit) => {
                let place = scope.answer.as_ref().map_or("A literal", |at| at.place.as_str());
                let text = format!("`{place}` {}", misfit.why);
                self.note(NoteKind::Despite, text, span);
            }
        }
    }

    /// Checks that a value fits its target. `read` is the path of a value that is read.
    pub(super) fn fits(
        &mut self,
        held: &ContextValue,
        wanted: Option<ExprTarget<'_>>,
        read: Option<&str>,
        span: Span,
    ) -> Option<()> {
        let Some(wanted) = wanted else { return Some(()) };
        if held.absent && wanted.required {
            self.findings.push(faults::may_be_absent(span));
            return None;
        }
        let to = TypeIn { types: self.env.types(wanted.side), ty: wanted.ty };
        // The rules for requests and responses only apply across sides.
        let message = (held.side != wanted.side).then(|| self.message(wanted.side));
        match compare(held.in_types(self.env.world.contracts), to, message) {
            Ok(narrowings) => {
                // The parts of a composite expression are compared one by one.
                if let (Some(read), true) = (read, held.side != wanted.side) {
                    self.lose_narrower(&narrowings, wanted.side, read, span);
                }
                Some(())
            }
            Err(why) => {
                let null = matches!(why.mismatch, Mismatch::Null { .. });
                self.findings.push(faults::does_not_fit(span, &held.ty, wanted.ty, &why.to_string(), null));
                None
            }
        }
    }

    fn object(
        &mut self,
        entries: &[(Spanned<String>, ExprDecl)],
        span: Span,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let (env, wanted, to) = (self.env, scope.wanted, scope.target_side());
        let object = match wanted {
            None => None,
            Some(wanted) => match object_of(TypeIn { types: env.types(wanted.side), ty: wanted.ty }) {
                Ok(object) => object,
                Err(()) => {
                    self.findings.push(faults::wrong_form(span, "an object", wanted.ty));
                    return None;
                }
            },
        };
        let mut members = Vec::new();
        let mut fields = Vec::new();
        let mut complete = true;
        for (name, value) in entries {
            let member = scope.below(&format!(".{}", name.value));
            if let Some(field) = object.and_then(|object| object.field(&name.value)) {
                env.world.names.references.add(name.span, ResolvedKind::Field, field.span, || {
                    let presence = if field.required { "required" } else { "optional" };
                    format!("`{}` {}: `{}`, {presence}", env.side_name(to), name.value, field.ty)
                });
            }
            let made = match object.map(|object| field_of(object, &name.value)) {
                None | Some(FieldOf::Any) => self.value(value, &member.source()),
                Some(FieldOf::Known(ty, required)) => {
                    self.value(value, &member.with_target(Some(ExprTarget { ty, side: to, required })))
                }
                Some(FieldOf::Unknown) => {
                    let known = object.map(|object| object.fields.as_slice()).unwrap_or_default();
                    // Suggest only names that are still free, unless all are taken.
                    let is_free = |field: &&Field| entries.iter().all(|(name, _)| name.value != field.name);
                    let free: Vec<&Field> = known.iter().filter(is_free).collect();
                    let known = if free.is_empty() { known.iter().collect() } else { free };
                    let known: Vec<&str> = known.iter().map(|field| field.name.as_str()).collect();
                    self.findings.push(faults::unknown_field(&name.value, name.span, &known));
                    None
                }
            };
            let Some(made) = made else {
                // Define the member anyway, with an unknown type, so that later reads of it report
                // no further error.
                let unknown = ContextValue { absent: false, ..ContextValue::any(to, name.span) };
                fields.push(self.field_made(name, &unknown, to));
                complete = false;
                continue;
            };
            fields.push(self.field_made(name, &made.held, to));
            members.push((Key::new(&name.value), made.expr));
        }
        for field in object.map(|object| object.fields.as_slice()).unwrap_or_default() {
            let is_missing = field.required && !entries.iter().any(|(name, _)| name.value == field.name);
            if is_missing && !self.is_paged(&field.name, scope) {
                self.findings.push(faults::missing_field(&field.name, span));
                complete = false;
            }
        }
        let ty = match wanted {
            Some(wanted) => wanted.ty.clone(),
            None => context::object(fields, Additional::Closed, span),
        };
        // Without a target type, later steps read the members. Return the type even after an error,
        // so that they report no further one.
        (complete || wanted.is_none())
            .then(|| TypedExpr { expr: plan::Expr::Object(members), held: ContextValue::present(ty, to) })
    }

    /// Returns whether the gateway writes this member of the response, because it describes other
    /// pages.
    fn is_paged(&self, name: &str, scope: &ExprScope<'_>) -> bool {
        let Some(at) = scope.answer.as_ref().filter(|_| scope.target_side() == self.serves) else {
            return false;
        };
        let place = format!("{}.{name}", at.place);
        self.paged.members[self.serves].iter().any(|names| format!("$.{}", names.join(".")) == place)
    }

    /// Returns a member of an object without a target type. Named types of the other side are
    /// replaced by an untyped value, because they have no meaning on this side.
    fn field_made(&self, name: &Spanned<String>, held: &ContextValue, to: SideId) -> Field {
        let plain = matches!(self.env.types(held.side).resolve(&held.ty).kind, TypeKind::Scalar(_));
        let ty = match &held.ty.kind {
            kind if held.side == to || matches!(kind, TypeKind::Scalar(_)) => held.ty.clone(),
            TypeKind::Named(_) if plain => {
                let resolved = self.env.types(held.side).resolve(&held.ty);
                Type { kind: resolved.kind.clone(), nullable: resolved.nullable, span: resolved.span }
            }
            _ => Type::any(name.span),
        };
        field(&name.value, ty, !held.absent, name.span)
    }

    fn array(&mut self, items: &[ExprDecl], span: Span, scope: &ExprScope<'_>) -> Option<TypedExpr> {
        let (env, to) = (self.env, scope.target_side());
        let item = match scope.wanted.map(|wanted| (wanted, env.types(wanted.side).resolve(wanted.ty).kind)) {
            None | Some((_, TypeKind::Any)) => None,
            Some((_, TypeKind::Array(array))) => Some(array.items.as_ref()),
            Some((wanted, _)) => {
                self.findings.push(faults::wrong_form(span, "a list", wanted.ty));
                return None;
            }
        };
        // An absent element would shift the ones after it, so each needs a value.
        let wanted = item.map(|ty| ExprTarget { ty, side: to, required: true });
        let made = self.all_values(items, &scope.below("[*]").with_target(wanted))?;
        let exprs = made.into_iter().map(|made| made.expr).collect();
        let ty = list(item.cloned().unwrap_or_else(|| Type::any(span)), span);
        Some(TypedExpr { expr: plan::Expr::Array(exprs), held: ContextValue::present(ty, to) })
    }

    fn convert(
        &mut self,
        from: &ExprDecl,
        written: &ConversionUse,
        span: Span,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        // Compile source and conversion before returning, to report errors in either.
        let made = self.value(from, &scope.source());
        let read = read_conversion(written, [None, None], &self.env.world, self.findings);
        let (made, read) = (made?, read?);
        // In a `make` step the direction follows from the source: a value leaves the side that it
        // was read from. Nested conversions continue in the same direction.
        let wanted = scope.wanted;
        let to = match (&from.kind, scope.makes) {
            (_, false) => scope.target_side(),
            (ExprKind::Convert { .. } | ExprKind::Apply(_), true) => made.held.side,
            (_, true) => made.held.side.other(),
        };
        let ReadyConversion { kind, elses, each } = match read {
            ReadConversion::Convert(ready) => ready,
            ReadConversion::SingleInArray(_) => return self.single(made, from.span, wanted, to),
        };
        if let Some(span) = each {
            self.findings.push(faults::conversion_of_each(span));
            return None;
        }
        let said = &elses.0[to];
        let otherwise = said.otherwise.clone();
        let partial = is_partial(&kind, to.other(), made.held.in_types(self.env.world.contracts));
        if partial && !said.is_said {
            self.use_partial(&written.name, to, &made.held.ty, scope.flow.write_name());
        }
        let held_kinds = kinds_of(&self.env.types(made.held.side).json_kinds(&made.held.ty));
        let gives = kind.kinds(to);
        // Null passes a conversion that does not read it. Of a value of any type it is unknown.
        let facts = facts_of(made.held.in_types(self.env.world.contracts));
        let alternatives = kind.alternatives();
        let passes_null = facts.kinds.null
            && !facts.any
            && alternatives.iter().any(|kind| kind.spec().null_passes)
            && !alternatives.iter().any(|kind| kind.kinds(to.other()).null);
        let is_strict = matches!(otherwise, Otherwise::Error);
        let reading = faults::ConversionSite {
            name: &written.name,
            sides: [self.env.side_name(to.other()), self.env.side_name(to)],
            kinds: [kind.kinds(to.other()), gives],
        };
        if !is_subset(held_kinds, kind.kinds(to.other())) {
            self.findings.push(faults::conversion_source(&reading, &made.held.ty));
            return None;
        }
        if let ConversionKind::Pairs { key, value, list } = &kind
            && to != *list
            && let Some(name) = lacking(made.held.in_types(self.env.world.contracts), [key, value])
        {
            self.findings.push(faults::pair_lacks(written.name.span, name));
            return None;
        }
        if let Some(wanted) = wanted {
            let takes = kinds_of(&self.env.types(wanted.side).json_kinds(wanted.ty));
            if !is_subset(gives, takes) {
                self.findings.push(faults::conversion_target(&reading, wanted.ty));
                return None;
            }
            if passes_null {
                let nullable = Type { nullable: true, ..wanted.ty.clone() };
                self.fits(&ContextValue::present(nullable, wanted.side), Some(wanted), None, from.span)?;
            }
            let drops = partial && matches!(otherwise, Otherwise::Drop);
            // Some conversions accept an absent source and yield a value for it.
            let absent = made.held.absent && !kind.spec().domain(to.other()).absent;
            if (absent || drops) && wanted.required {
                self.findings.push(faults::may_be_absent(from.span));
                return None;
            }
        }
        let ty = match (wanted, &kind) {
            (Some(wanted), _) => wanted.ty.clone(),
            (None, ConversionKind::Pairs { key, value, list: side }) if to == *side => {
                let ty = list(entry(key, value, written, span), span);
                Type { nullable: passes_null, ..ty }
            }
            // Only a strict conversion guarantees integers. A fallback may yield any number.
            (None, kind) if is_strict && kind.is_integer(to) && gives == NUMBER => {
                Type { nullable: passes_null, ..scalar(ScalarKind::Integer, span) }
            }
            (None, _) => {
                let ty = type_of_kinds(gives, span);
                Type { nullable: ty.nullable || passes_null, ..ty }
            }
        };
        let conversion = Conversion { kind, forward: to == SideId::NEW, otherwise };
        let absent = made.held.absent || (partial && matches!(conversion.otherwise, Otherwise::Drop));
        let held = ContextValue { ty, side: to, absent };
        Some(TypedExpr { expr: plan::Expr::Convert { from: Box::new(made.expr), conversion }, held })
    }

    /// Compiles `single_in_array`, which is only possible towards the new side.
    fn single(
        &mut self,
        made: TypedExpr,
        span: Span,
        wanted: Option<ExprTarget<'_>>,
        to: SideId,
    ) -> Option<TypedExpr> {
        if to == SideId::OLD {
            self.findings.push(faults::single_backwards(span));
            return None;
        }
        let held = ContextValue { ty: list(made.held.ty, span), side: to, absent: made.held.absent };
        self.fits(&held, wanted, None, span)?;
        Some(TypedExpr { expr: plan::Expr::Array(vec![made.expr]), held })
    }

    fn text(
        &mut self,
        reason: &Spanned<String>,
        with: &[(Spanned<String>, ExprDecl)],
        span: Span,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let given: Vec<&Spanned<String>> = with.iter().map(|(name, _)| name).collect();
        let id = self.env.reason(reason, &given, self.findings);
        let mut values = Vec::new();
        for (name, value) in with {
            let made = self.scalar_value(value, "a text's placeholder", scope);
            values.extend(made.map(|made| (name.value.clone(), made.expr)));
        }
        let held = ContextValue::present(scalar(ScalarKind::String, span), scope.target_side());
        self.fits(&held, scope.wanted, None, span)?;
        (values.len() == with.len())
            .then_some(id?)
            .map(|reason| TypedExpr { expr: plan::Expr::Text { reason, with: values }, held })
    }

    fn first_of(&mut self, items: &[ExprDecl], span: Span, scope: &ExprScope<'_>) -> Option<TypedExpr> {
        let Some((last, others)) = items.split_last() else {
            self.findings.push(faults::first_of_nothing(span));
            return None;
        };
        // Null and absent values are skipped, so only the last expression must satisfy the target
        // completely.
        let lenient = scope.wanted.map(|wanted| Type { nullable: true, ..wanted.ty.clone() });
        let wanted = lenient.as_ref().map(|ty| ExprTarget { ty, side: scope.target_side(), required: false });
        let others_made = self.all_values(others, &scope.with_target(wanted));
        let made = self.value(last, &scope.unless_found(!others.is_empty()))?;
        let mut exprs: Vec<_> = others_made?.into_iter().map(|made| made.expr).collect();
        exprs.push(made.expr);
        let ty = scope.wanted.map_or(made.held.ty, |wanted| wanted.ty.clone());
        let held = ContextValue { ty, ..made.held };
        Some(TypedExpr { expr: plan::Expr::FirstOf(exprs), held })
    }

    /// Compiles the application of a shape. An element of a list may be omitted even if the target
    /// requires elements.
    pub(super) fn shape(
        &mut self,
        shape: &ShapeExpr,
        is_element: bool,
        scope: &ExprScope<'_>,
    ) -> Option<TypedExpr> {
        let Some(wanted) = scope.wanted else {
            self.findings.push(faults::shape_of_nothing(shape.shape.name.span));
            return None;
        };
        let to = wanted.side;
        let computed = self.env.lenses.computed(&shape.shape.name.value, to);
        if shape.shape.each && shape.over.is_none() && !computed.members.is_empty() {
            return self.computed_elements(shape, scope);
        }
        let mark = self.findings.len();
        let from = self.shape_input(&shape.from, scope)?;
        // After an error the source is a guess, of which every computed member would report errors.
        let is_guess = self.findings.errors_since(mark);
        if from.held.side == to {
            self.findings.push(faults::shape_from_same_side(shape.from.span, self.env.side_name(to)));
            return None;
        }
        if from.held.absent && wanted.required {
            self.findings.push(faults::may_be_absent(shape.from.span));
            return None;
        }
        let env = self.env;
        let nullable = |side: SideId, ty: &Type| {
            let resolved = env.types(side).resolve(ty);
            resolved.nullable && !matches!(resolved.kind, TypeKind::Any)
        };
        if nullable(from.held.side, &from.held.ty) && !env.types(to).resolve(wanted.ty).nullable {
            self.findings.push(faults::may_be_absent(shape.from.span));
            return None;
        }
        let source = from.held.in_types(env.world.contracts);
        let target = TypeIn { types: env.types(to), ty: wanted.ty };
        let types = if to == SideId::OLD { [target, source] } else { [source, target] };
        let is_given = |name: &str| shape.with.iter().any(|(given, _)| given.value == name);
        let members = computed.members.iter().filter(|(name, _)| !is_given(&name.value));
        let members: Vec<&(Spanned<String>, ExprDecl)> = members.copied().collect();
        let named = shape.with.iter().chain(members.iter().copied());
        let with: Vec<_> = named.map(|(name, _)| name.clone()).collect();
        // Paging members belong to the outermost object of a response.
        let is_answer = to == self.serves && scope.answer.as_ref().is_some_and(|at| at.place == "$");
        let paged = if is_answer { self.paged.members.clone() } else { Default::default() };
        let supply = Supply { with, over: shape.over.is_some(), paged };
        let lens = env.lenses.body(&shape.shape, types, to, &supply, self.findings);
        // Compile `with:` even if the shape has an error, to report its own errors.
        let supplied = lens.as_ref().map(|lens| lens.supplied.as_slice());
        let mut with = self.shape_arguments(shape, &shape.with, target, scope);
        if !members.is_empty() && !is_guess {
            let made = self.computed_members(shape, &computed.named, &members, (&from, target), scope);
            with = with.zip(made).map(|(with, made)| with.into_iter().chain(made).collect());
        }
        let with = supplied.and_then(|order| in_order(order, with?));
        let over = match &shape.over {
            None => None,
            Some(over) => {
                let base = self.base(over, shape, target, scope)?;
                // An overlay copies declared members only. If the type is open, note that others
                // are lost.
                if let TypeKind::Object(Object { additional: Additional::Open, .. }) =
                    target.types.resolve(target.ty).kind
                {
                    let text = "Members of the old value that the contract does not declare are left out.";
                    self.limit(text.to_owned(), over.span);
                }
                Some(base)
            }
        };
        let null_as = self.null_as(shape, target);
        let lens = lens?;
        if let plan::Expr::At(location) = &from.expr {
            self.shaped_late(location, &lens.op, scope.flow, shape.from.span);
        }
        let left_out = matches!(&lens.op, plan::ValueOp::Attempt(attempt) if attempt.instead.is_none());
        if left_out && wanted.required && !is_element {
            self.findings.push(faults::may_be_absent(shape.shape.name.span));
            return None;
        }
        let read = match &shape.from.kind {
            ExprKind::Path(path) => Some(path.as_str()),
            _ => None,
        };
        self.take_over(&lens, to, read, scope.answer.as_ref(), scope.flow.write_name());
        let expr = plan::Expr::Shape {
            op: lens.op,
            from: Box::new(from.expr),
            with: with?,
            over: over.map(|base| Box::new(Overlay { base, fields: lens.fields })),
            null_as: null_as?,
            null_else: match &shape.null_else_absent {
                Some(flag) if flag.value => NullElse::Absent,
                _ => NullElse::Keep,
            },
        };
        let held = ContextValue { ty: wanted.ty.clone(), side: to, absent: from.held.absent || left_out };
        Some(TypedExpr { expr, held })
    }

    /// Compiles the source of a shape. A path is not recorded as an unrestricted read: the shape
    /// only reads the members that it accepts.
    fn shape_input(&mut self, from: &ExprDecl, scope: &ExprScope<'_>) -> Option<TypedExpr> {
        let ExprKind::Path(path) = &from.kind else { return self.value(from, &scope.source()) };
        let found = self.reading(scope.flow).find(path, from.span)?;
        Some(TypedExpr { expr: plan::Expr::At(found.location), held: found.held })
    }

    /// Compiles a shape with computed members for each element of a list.
    fn computed_elements(&mut self, shape: &ShapeExpr, scope: &ExprScope<'_>) -> Option<TypedExpr> {
        let span = shape.shape.name.span;
        // A computed member may use such a shape, too.
        let mut name = "element".to_owned();
        while scope.flow.get(&name).is_some() {
            name.push('_');
        }
        let path = ExprDecl { kind: ExprKind::Path(format!("$.{name}")), span: shape.from.span };
        let used = ShapeUse { each: false, ..shape.shape.clone() };
        let element = ShapeExpr { shape: used, from: path, ..shape.clone() };
        let give = ExprDecl { kind: ExprKind::Shape(Box::new(element)), span };
        self.each_value(&Spanned { value: name, span }, &shape.from, &give, scope)
    }

    /// Compiles the members that a shape computes. Findings lead to the use of the shape as well.
    fn computed_members(
        &mut self,
        shape: &ShapeExpr,
        named: &[&(Spanned<String>, ExprDecl)],
        members: &[&(Spanned<String>, ExprDecl)],
        (from, target): (&TypedExpr, TypeIn<'_>),
        scope: &ExprScope<'_>,
    ) -> Option<Vec<(String, plan::Expr)>> {
        let plan::Expr::At(location) = &from.expr else {
            self.findings.push(faults::computed_from_no_place(shape.from.span, &shape.shape.name.value));
            return None;
        };
        let mark = self.findings.len();
        let mut flow = scope.flow.clone();
        flow.stand_for(FROM, &location.text);
        for (name, value) in named {
            flow.name_value(&name.value, value);
        }
        let members: Vec<_> = members.iter().map(|member| (*member).clone()).collect();
        let made = self.shape_arguments(shape, &members, target, &scope.with_flow(&flow));
        self.findings.since_mut(mark).iter_mut().for_each(|finding| finding.add_use(shape.shape.name.span));
        made
    }

    /// Compiles values of members that a shape does not build itself.
    fn shape_arguments(
        &mut self,
        shape: &ShapeExpr,
        members: &[(Spanned<String>, ExprDecl)],
        target: TypeIn<'_>,
        scope: &ExprScope<'_>,
    ) -> Option<Vec<(String, plan::Expr)>> {
        let element = match (shape.shape.each, target.types.resolve(target.ty).kind) {
            (true, TypeKind::Array(array)) => target.types.at(&array.items),
            _ => target,
        };
        let object = object_of(element).ok().flatten();
        let mut made = Vec::new();
        let mut complete = true;
        for (name, value) in members {
            let wanted = object.and_then(|object| object.field(&name.value));
            let wanted = wanted.map(|field| ExprTarget {
                ty: &field.ty,
                side: scope.target_side(),
                required: field.required,
            });
            let element = if shape.shape.each { "[*]" } else { "" };
            let place = format!("{element}.{}", name.value);
            let value = self.value(value, &scope.below(&place).with_target(wanted));
            // Continue after an error, to report those of the other fields.
            complete &= value.is_some();
            made.extend(value.map(|value| (name.value.clone(), value.expr)));
        }
        complete.then_some(made)
    }

    /// Compiles the old value under `over:`: an object of the target's side with fields that fit,
    /// except for nulls that the shape removes.
    fn base(
        &mut self,
        over: &ExprDecl,
        shape: &ShapeExpr,
        target: TypeIn<'_>,
        scope: &ExprScope<'_>,
    ) -> Option<plan::Expr> {
        let made = self.value(over, &scope.source())?;
        let old = made.held.in_types(self.env.world.contracts);
        let (Ok(Some(old_fields)), Ok(Some(fields))) = (object_of(old), object_of(target)) else {
            let any = matches!(old.types.resolve(old.ty).kind, TypeKind::Any)
                || matches!(target.types.resolve(target.ty).kind, TypeKind::Any);
            if !any {
                self.findings.push(faults::wrong_form(over.span, "an object", old.ty));
            }
            return any.then_some(made.expr);
        };
        if !std::ptr::eq(old.types, target.types) {
            self.findings.push(faults::base_of_other_side(over.span));
            return None;
        }
        let mut fits = true;
        let mut left_out = Vec::new();
        for field in &fields.fields {
            let Some(source) = old_fields.field(&field.name) else { continue };
            let is_left_out = shape.null_else_absent.as_ref().is_some_and(|flag| flag.value);
            let named = shape.null_as.iter().any(|(name, _)| name.value == field.name);
            // A null that the shape replaces or removes need not fit the target.
            let cleaned = named || is_left_out && (!field.required || shape.despite_type.is_some());
            if is_left_out && !named && field.required && old.types.resolve(&source.ty).nullable {
                left_out.push(format!("`{}`", field.name));
            }
            let wanted = Type { nullable: cleaned || field.ty.nullable, ..field.ty.clone() };
            if let Err(why) = assignable(old.types.at(&source.ty), target.types.at(&wanted), None) {
                let null = matches!(why.mismatch, Mismatch::Null { .. });
                self.findings.push(faults::base_field(over.span, &field.name, &why.to_string(), null));
                fits = false;
            }
        }
        match (shape.despite_type, left_out.is_empty()) {
            (Some(span), true) => self.findings.push(faults::despite_needless(span)),
            (Some(span), false) => {
                let text = format!("{} may be left out where the contract requires it", left_out.join(", "));
                self.note(NoteKind::Despite, text, span);
            }
            (None, _) => {}
        }
        fits.then_some(made.expr)
    }

    fn null_as(&mut self, shape: &ShapeExpr, target: TypeIn<'_>) -> Option<Vec<(Key, plan::Raw)>> {
        let object = object_of(target).ok().flatten();
        let mut lines = Vec::new();
        for (name, value) in &shape.null_as {
            match object.map(|object| field_of(object, &name.value)) {
                None | Some(FieldOf::Any) => {}
                Some(FieldOf::Known(ty, _)) => {
                    if let Err(misfit) = literal::check(value, target.types.at(ty)) {
                        self.findings.push(faults::literal(&misfit));
                        continue;
                    }
                }
                Some(FieldOf::Unknown) => {
                    let known = object.map(|object| object.fields.as_slice()).unwrap_or_default();
                    let known: Vec<&str> = known.iter().map(|field| field.name.as_str()).collect();
                    self.findings.push(faults::unknown_field(&name.value, name.span, &known));
                    continue;
                }
            }
            lines.push((Key::new(&name.value), literal::json(value)));
        }
        (lines.len() == shape.null_as.len()).then_some(lines)
    }
}

/// Returns values in the order of the supplied fields of a shape.
fn in_order(order: &[Key], values: Vec<(String, plan::Expr)>) -> Option<Vec<plan::Expr>> {
    let value =
        |key: &Key| values.iter().find(|(name, _)| *name == *key.text).map(|(_, value)| value.clone());
    order.iter().map(value).collect()
}

/// Result of looking up a name in an object.
enum FieldOf<'t> {
    Known(&'t Type, bool),
    /// Any name is accepted.
    Any,
    Unknown,
}

fn field_of<'t>(object: &'t Object, name: &str) -> FieldOf<'t> {
    match (object.field(name), &object.additional) {
        (Some(field), _) => FieldOf::Known(&field.ty, field.required),
        (None, Additional::Of(ty)) => FieldOf::Known(ty, false),
        (None, Additional::Open) if object.fields.is_empty() => FieldOf::Any,
        (None, _) => FieldOf::Unknown,
    }
}

/// Returns the object that a type is, `None` for an untyped value, or an error for any other type.
fn object_of(ty: TypeIn<'_>) -> Result<Option<&Object>, ()> {
    match ty.types.resolve(ty.ty).kind {
        TypeKind::Any => Ok(None),
        _ => super::proof::object_of(ty.ty, ty.types).map(Some).ok_or(()),
    }
}

/// Returns whether each kind in `these` is in `those`. Null and untyped values (all kinds) are
/// always accepted.
pub(super) fn is_subset(these: Kinds, those: Kinds) -> bool {
    let all = kinds_of(&JsonKind::ALL);
    let kinds = [Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
    Kinds { null: false, ..these } == all
        || kinds.into_iter().all(|kind| !these.contains(kind) || those.contains(kind))
}

/// Returns the type of a literal without a target type.
fn type_of(node: &Node) -> Type {
    use crate::yaml::Kind;
    let span = node.span;
    match &node.kind {
        Kind::Null => Type { kind: TypeKind::Null, nullable: true, span },
        Kind::Bool(_) => scalar(ScalarKind::Boolean, span),
        Kind::Number(text) if text.contains(['.', 'e', 'E']) => scalar(ScalarKind::Number, span),
        Kind::Number(_) => scalar(ScalarKind::Integer, span),
        Kind::String(..) => scalar(ScalarKind::String, span),
        Kind::Seq(_) => list(Type::any(span), span),
        Kind::Map(_) => context::object(Vec::new(), Additional::Open, span),
    }
}

/// Returns the first of the names that the objects of a list cannot have.
fn lacking<'n>(list: TypeIn<'_>, names: [&'n str; 2]) -> Option<&'n str> {
    let TypeKind::Array(array) = list.types.resolve(list.ty).kind else { return None };
    let TypeKind::Object(object) = list.types.resolve(&array.items).kind else { return None };
    let is_closed = object.additional == Additional::Closed;
    names.into_iter().find(|name| is_closed && object.field(name).is_none())
}

/// Returns the type of the entries that `pairs` creates.
fn entry(key: &str, value: &str, written: &ConversionUse, span: Span) -> Type {
    let arguments = written.arguments.as_ref().and_then(|node| node.as_map()).unwrap_or_default();
    let of = |name: &str, ty| {
        let named = arguments.iter().find(|(_, node)| node.as_str() == Some(name));
        field(name, ty, true, named.map_or(span, |(_, node)| node.span))
    };
    let fields = vec![of(key, scalar(ScalarKind::String, span)), of(value, Type::any(span))];
    context::object(fields, Additional::Closed, span)
}

pub(super) const NUMBER: Kinds = Kinds::from_kinds(&[Kind::Number]);

pub(super) fn type_of_kinds(kinds: Kinds, span: Span) -> Type {
    match (kinds.string, kinds.number, kinds.boolean, kinds.array || kinds.object) {
        (true, false, false, false) => scalar(ScalarKind::String, span),
        (false, true, false, false) => scalar(ScalarKind::Number, span),
        (false, false, true, false) => scalar(ScalarKind::Boolean, span),
        _ => Type::any(span),
    }
}

/// Drops the type of a place.
impl From<FoundPath> for plan::Expr {
    fn from(found: FoundPath) -> plan::Expr {
        plan::Expr::At(found.location)
    }
}
