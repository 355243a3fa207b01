//! Reads expressions: literals, paths, objects, arrays, and the `$` forms.

use super::{SyntaxReader, faults, keys};
use crate::mapping::ast::{ExprDecl, ExprKind, ShapeExpr};
use crate::yaml::{Keys, Kind, Node};
use switchback_plan::Aggregate;

impl SyntaxReader<'_> {
    pub(super) fn expr(&mut self, node: &Node) -> Option<ExprDecl> {
        let kind = match &node.kind {
            Kind::String(text, _) if text.starts_with('$') => ExprKind::Path(text.clone()),
            Kind::Seq(items) => ExprKind::Array(items.iter().filter_map(|n| self.expr(n)).collect()),
            // Any key with `$` marks a special form. A literal with such a key needs `$value`.
            Kind::Map(entries) => match entries.iter().find(|(key, _)| key.name.starts_with('$')) {
                Some((key, _)) if keys::FORMS.contains(&key.name.as_str()) => self.form(&key.name, node)?,
                Some((key, _)) => {
                    self.findings.push(faults::unknown_form(&key.name, key.span, keys::FORMS));
                    return None;
                }
                None => ExprKind::Object(self.exprs(Some(node))),
            },
            _ => ExprKind::Literal(node.clone()),
        };
        Some(ExprDecl { kind, span: node.span })
    }

    fn form(&mut self, name: &str, node: &Node) -> Option<ExprKind> {
        match name {
            "$from" => self.convert(node),
            "$text" => self.localized_expr(node),
            "$shape" => self.shape_expr(node),
            "$first" => {
                let fields = self.fields(node, &keys::FIRST_OF)?;
                Some(ExprKind::FirstOf(self.values(fields.get("$first"))))
            }
            "$present" => {
                let fields = self.fields(node, &keys::PRESENT)?;
                Some(ExprKind::Present(self.values(fields.get("$present"))))
            }
            "$count" => self.aggregate(node, &keys::COUNT, Aggregate::Count),
            "$sum" => self.aggregate(node, &keys::SUM, Aggregate::Sum),
            "$each" => self.each_value(node),
            "$lookup" => {
                let fields = self.fields(node, &keys::LOOKUP)?;
                let value = fields.get("$lookup").and_then(|n| self.expr(n));
                let (list, by) = (self.text_of(fields.get("in")), self.text_of(fields.get("by")));
                let field = self.text_of(fields.get("field"));
                Some(ExprKind::Lookup { value: Box::new(value?), list: list?, by: by?, field })
            }
            "$if" => self.conditional(node),
            "$lines" => {
                let fields = self.fields(node, &keys::NUMBERED)?;
                let (plain, numbered) = (fields.get("$lines"), fields.get("numbered"));
                Some(ExprKind::Lines { plain: self.values(plain), numbered: self.values(numbered) })
            }
            _ => {
                let fields = self.fields(node, &keys::VALUE)?;
                let despite = fields.get("despite");
                if let Some(despite) = despite {
                    despite.word(&["type"], self.findings);
                }
                let value = fields.get("$value")?.clone();
                Some(ExprKind::Value { value, despite_type: despite.map(|d| d.span) })
            }
        }
    }

    /// Reads a list of expressions.
    fn values(&mut self, node: Option<&Node>) -> Vec<ExprDecl> {
        self.list_of(node).iter().filter_map(|n| self.expr(n)).collect()
    }

    /// Reads `{$count: list}` or `{$sum: list}`.
    fn aggregate(&mut self, node: &Node, keys: &Keys, what: Aggregate) -> Option<ExprKind> {
        let fields = self.fields(node, keys)?;
        let list = self.expr(fields.get(keys.required[0])?)?;
        Some(ExprKind::Aggregate { what, list: Box::new(list) })
    }

    /// Reads `{$each: {name: list}, give: value}`.
    fn each_value(&mut self, node: &Node) -> Option<ExprKind> {
        let fields = self.fields(node, &keys::EACH)?;
        let give = fields.get("give").and_then(|n| self.expr(n));
        let each = fields.get("$each")?;
        let [(key, list)] = each.map(self.findings)? else {
            self.findings.push(faults::one_element_name(each.span));
            return None;
        };
        let list = self.expr(list);
        Some(ExprKind::Each { name: Self::key(key), list: Box::new(list?), give: Box::new(give?) })
    }

    /// Reads `{$if: predicate, then: value, else: value}`.
    fn conditional(&mut self, node: &Node) -> Option<ExprKind> {
        let fields = self.fields(node, &keys::IF)?;
        let predicate = fields.get("$if").and_then(|n| self.predicate(n, &[]));
        let then = fields.get("then").and_then(|n| self.expr(n));
        let otherwise = fields.get("else").and_then(|n| self.expr(n)).map(Box::new);
        Some(ExprKind::If { predicate: predicate?, then: Box::new(then?), otherwise })
    }

    fn convert(&mut self, node: &Node) -> Option<ExprKind> {
        let fields = self.fields(node, &keys::FROM)?;
        let from = fields.get("$from").and_then(|n| self.expr(n));
        let conversion = self.conversion(fields.get("as"), fields.get("else"));
        Some(ExprKind::Convert { from: Box::new(from?), conversion: conversion? })
    }

    fn localized_expr(&mut self, node: &Node) -> Option<ExprKind> {
        let fields = self.fields(node, &keys::TEXT)?;
        let reason = self.text_of(fields.get("$text"));
        Some(ExprKind::Text { reason: reason?, with: self.exprs(fields.get("with")) })
    }

    fn shape_expr(&mut self, node: &Node) -> Option<ExprKind> {
        let fields = self.fields(node, &keys::SHAPED)?;
        let mut shape = fields.get("$shape").and_then(|n| self.shape_use(n));
        match (&mut shape, fields.get("else"), fields.get("over")) {
            (_, Some(otherwise), Some(_)) => self.findings.push(faults::else_over(otherwise.span)),
            (Some(shape), Some(otherwise), None) => self.shape_else(shape, otherwise),
            _ => {}
        }
        let from = fields.get("from").and_then(|n| self.expr(n));
        let null_as = self.map_of(fields.get("null_as")).iter();
        let null_as = null_as.map(|(key, value)| (Self::key(key), value.clone())).collect();
        Some(ExprKind::Shape(Box::new(ShapeExpr {
            over: fields.get("over").and_then(|n| self.expr(n)),
            with: self.exprs(fields.get("with")),
            null_as,
            null_else_absent: self.flag(fields.get("null_else"), "absent", "keep"),
            despite_type: fields
                .get("despite")
                .and_then(|n| n.word(&["type"], self.findings).map(|_| n.span)),
            shape: shape?,
            from: from?,
        })))
    }
}
