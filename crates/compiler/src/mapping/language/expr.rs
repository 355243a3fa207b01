//! Expressions: literals, paths, objects, arrays, and the `$` forms.

use super::function::{FunctionUse, FunctionUses};
use super::kinds::{Anything, DespiteType, Element, ListOf, MapOf, Text, kinds};
use super::section::{Read, section};
use super::shape::{conversion, otherwise};
use super::{ConversionUse, PredicateDecl, ShapeUse, Spanned, SyntaxReader, faults};
use crate::diagnostic::Span;
use crate::mapping::schema::{Sides, list_of, reference, words};
use crate::yaml::{Key, Kind, Node};
use serde_json::{Value, json};
use switchback_plan::Aggregate;

/// An expression that produces a value.
#[derive(Clone, Debug)]
pub(crate) struct ExprDecl {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// A literal.
    Literal(Node),
    /// A text starting with `$`.
    Path(String),
    Object(Vec<(Spanned<String>, ExprDecl)>),
    Array(Vec<ExprDecl>),
    /// `{$from: path, as: conversion, else: …}`
    Convert {
        from: Box<ExprDecl>,
        conversion: ConversionUse,
    },
    /// `{$from: path, to: function, else: …}`
    Apply(Box<ApplyDecl>),
    /// `{$text: reason, with: {name: expr}}`
    Text {
        reason: Spanned<String>,
        with: Vec<(Spanned<String>, ExprDecl)>,
    },
    /// `{$shape: S | [S], from: expr, over: expr, with: {field: expr}, null_as: {field: literal},
    /// null_else: keep | absent}`
    Shape(Box<ShapeExpr>),
    /// `{$value: literal}`, optionally with `despite: type`: a literal that may start with `$` or
    /// violate its type.
    Value {
        value: Node,
        despite_type: Option<Span>,
    },
    /// `{$count: list}`, `{$sum: list}`
    Aggregate {
        what: Aggregate,
        list: Box<ExprDecl>,
    },
    /// `{$first: [expr, …]}`: the first value that is present and not null.
    FirstOf(Vec<ExprDecl>),
    /// `{$present: [expr, …]}`: a list of the values that are present and not null.
    Present(Vec<ExprDecl>),
    /// `{$lookup: value, in: list, by: member, field: member}`
    Lookup {
        value: Box<ExprDecl>,
        list: Spanned<String>,
        by: Spanned<String>,
        field: Option<Spanned<String>>,
    },
    /// `{$each: {name: list}, give: expr}`: a list with the value of `give` for each element.
    Each {
        name: Spanned<String>,
        list: Box<ExprDecl>,
        give: Box<ExprDecl>,
    },
    /// `{$if: predicate, then: expr, else: expr}`; absent without `else`.
    If {
        predicate: PredicateDecl,
        then: Box<ExprDecl>,
        otherwise: Option<Box<ExprDecl>>,
    },
    /// `{$lines: [expr, …], numbered: [expr, …]}`: a multi-line text.
    Lines {
        plain: Vec<ExprDecl>,
        numbered: Vec<ExprDecl>,
    },
}

/// `{$from: path, to: [function, …], else: …}`
#[derive(Clone, Debug)]
pub(crate) struct ApplyDecl {
    pub from: ExprDecl,
    /// The functions in order; at least one.
    pub functions: Vec<FunctionUse>,
    /// `else: error | drop | <literal>`
    pub otherwise: Option<Node>,
}

#[derive(Clone, Debug)]
pub(crate) struct ShapeExpr {
    pub shape: ShapeUse,
    pub from: ExprDecl,
    pub over: Option<ExprDecl>,
    pub with: Vec<(Spanned<String>, ExprDecl)>,
    pub null_as: Vec<(Spanned<String>, Node)>,
    pub null_else_absent: Option<Spanned<bool>>,
    /// `despite: type`: permits `null_else: absent` to omit required members.
    pub despite_type: Option<Span>,
}

/// A `$` form: the key that marks it, its reader, and its schema.
type Form =
    (&'static str, fn(&Key, &Node, &mut SyntaxReader<'_>) -> Option<ExprKind>, fn(Sides<'_>) -> Value);

/// The `$` forms, in the order in which messages list them.
const FORMS: &[Form] = &[
    ("$from", ConvertForm::read, ConvertForm::definition),
    ("$text", TextForm::read, TextForm::definition),
    ("$shape", ShapeForm::read, ShapeForm::definition),
    ("$value", ValueForm::read, ValueForm::definition),
    ("$first", FirstForm::read, FirstForm::definition),
    ("$present", PresentForm::read, PresentForm::definition),
    ("$each", EachForm::read, EachForm::definition),
    ("$lookup", LookupForm::read, LookupForm::definition),
    ("$if", IfForm::read, IfForm::definition),
    ("$lines", LinesForm::read, LinesForm::definition),
    ("$count", CountForm::read, CountForm::definition),
    ("$sum", SumForm::read, SumForm::definition),
];

/// Returns whether a key marks a `$` form.
pub(crate) fn is_form(key: &str) -> bool {
    FORMS.iter().any(|(name, ..)| *name == key)
}

impl Read for ExprDecl {
    type Output = ExprDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ExprDecl> {
        let kind = match &node.kind {
            Kind::String(text, _) if text.starts_with('$') => ExprKind::Path(text.clone()),
            Kind::Seq(_) => ExprKind::Array(ListOf::<ExprDecl>::read(key, node, reader)?),
            // Any key with `$` marks a special form. A literal with such a key needs `$value`.
            Kind::Map(entries) => match entries.iter().find(|(key, _)| key.name.starts_with('$')) {
                Some((mark, _)) => match FORMS.iter().find(|(name, ..)| *name == mark.name) {
                    Some((_, read, _)) => read(key, node, reader)?,
                    None => {
                        let known: Vec<&str> = FORMS.iter().map(|(name, ..)| *name).collect();
                        reader.findings.push(faults::unknown_form(&mark.name, mark.span, &known));
                        return None;
                    }
                },
                None => ExprKind::Object(MapOf::<ExprDecl>::read(key, node, reader)?),
            },
            _ => ExprKind::Literal(node.clone()),
        };
        Some(ExprDecl { kind, span: node.span })
    }

    fn schema(_: Sides<'_>) -> Value {
        reference("value")
    }
}

impl ExprDecl {
    pub(in crate::mapping) fn definition(sides: Sides<'_>) -> Value {
        let plain = json!({
            "type": "object", "propertyNames": {"not": {"pattern": "^\\$"}}, "additionalProperties": reference("value"),
        });
        let scalar = json!({"type": ["null", "boolean", "number", "string"]});
        let mut forms = vec![scalar, list_of(&reference("value")), plain];
        forms.extend(FORMS.iter().map(|(_, _, definition)| definition(sides)));
        json!({"anyOf": forms})
    }
}

section! {
    /// `{$from: path, as: conversion, else: …}`, `{$from: path, to: function, else: …}`
    ConvertForm is "`$from`", with either_way {
        /// The value that is converted.
        lenient from("$from"): ExprDecl,
        /// A conversion between the sides.
        optional conversion("as"): UnreadConversion,
        /// A function, or several in order.
        optional functions("to"): FunctionUses,
        /// Fallback for a value outside the domain: `error`, `drop` or a literal; for a conversion also
        /// `keep`.
        optional otherwise("else"): Anything,
        at span: Span,
    }
    into ExprKind: |form, fields, reader| match (fields.get("as"), fields.get("to")) {
        (Some(_), None) => {
            let conversion = conversion(form.conversion.as_ref(), form.otherwise.as_ref(), reader);
            Some(ExprKind::Convert { from: Box::new(form.from?), conversion: conversion? })
        }
        (None, Some(_)) => {
            let meant = "a literal of another spelling is needed here";
            let otherwise = form.otherwise.and_then(|node| otherwise(&node, FUNCTION_ELSE, Some(meant), reader));
            Some(ExprKind::Apply(Box::new(ApplyDecl { from: form.from?, functions: form.functions?, otherwise })))
        }
        _ => {
            reader.findings.push(faults::one_of_keys(form.span, "`$from`", &["as", "to"]));
            None
        }
    }
}

/// The words of an `else:` of functions.
const FUNCTION_ELSE: &[&str] = &["error", "drop"];

/// Adds to the schema that a value is converted in one way.
fn either_way(schema: &mut Value) {
    schema["oneOf"] = json!([{"required": ["as"]}, {"required": ["to"]}]);
}

kinds! {
    /// A conversion that is read with its `else:`.
    UnreadConversion -> Node, Anything::read, |_| reference("conversion");
    /// Treatment of other nulls. True is `absent`.
    NullElse -> Spanned<bool>, |_, node, reader| {
        let word = node.word(&["absent", "keep"], reader.findings)?;
        Some(Spanned { value: word == "absent", span: node.span })
    }, |_| words(&["keep", "absent"]);
}

section! {
    /// `{$text: reason, with: {name: expr}}`
    TextForm is "`$text`" {
        /// A reason in the client's language.
        required reason("$text"): Text,
        /// Values of its placeholders.
        default with: MapOf<ExprDecl>,
    }
    into ExprKind: |TextForm { reason, with }, _, _| Some(ExprKind::Text { reason, with })
}

section! {
    /// `{$shape: S, from: expr, …}`
    ShapeForm is "`$shape`" {
        /// A shape run over a value; `[Name]` for each element.
        required shape("$shape"): ShapeUse,
        /// The value that is read.
        required from: ExprDecl,
        /// The old value that the result is laid over.
        optional over: ExprDecl,
        /// Fields that the shape cannot make up.
        default with: MapOf<ExprDecl>,
        /// Fallback for a value that the shape does not accept: `drop`, `error` or a literal, or
        /// one of these for each side.
        optional otherwise("else"): Anything,
        /// Literals instead of null, by member.
        default null_as: MapOf<Anything>,
        /// Treatment of other nulls: `keep` or `absent`.
        optional null_else: NullElse,
        /// Members that are left out may be required.
        optional despite: DespiteType,
    }
    into ExprKind: |form, fields, reader| {
        let mut shape = form.shape;
        match form.otherwise {
            Some(otherwise) if fields.get("over").is_some() => {
                reader.findings.push(faults::else_over(otherwise.span));
            }
            Some(otherwise) => shape.read_else(&otherwise, reader),
            None => {}
        }
        Some(ExprKind::Shape(Box::new(ShapeExpr {
            shape,
            from: form.from,
            over: form.over,
            with: form.with,
            null_as: form.null_as,
            null_else_absent: form.null_else,
            despite_type: form.despite,
        })))
    }
}

section! {
    /// `{$value: literal, despite: type}`
    ValueForm is "`$value`" {
        /// A literal, also one that looks like a path or a form.
        required value("$value"): Anything,
        /// It breaks the contract's type, and is listed in the report.
        optional despite: DespiteType,
    }
    into ExprKind: |form, _, _| Some(ExprKind::Value { value: form.value, despite_type: form.despite })
}

section! {
    /// `{$first: [expr, …]}`
    FirstForm is "`$first`" {
        /// The first that is there and not null.
        filled values("$first"): ListOf<ExprDecl>,
    }
    into ExprKind: |form, _, _| Some(ExprKind::FirstOf(form.values))
}

section! {
    /// `{$present: [expr, …]}`
    PresentForm is "`$present`" {
        /// A list of those that are there and not null.
        filled values("$present"): ListOf<ExprDecl>,
    }
    into ExprKind: |form, _, _| Some(ExprKind::Present(form.values))
}

section! {
    /// `{$each: {name: list}, give: expr}`
    EachForm is "`$each`" {
        /// For each element of a list: `{name: list}`.
        required each("$each"): Element<ExprDecl>,
        /// Value for each element.
        required give: ExprDecl,
    }
    into ExprKind: |EachForm { each: (name, list), give }, _, _| {
        Some(ExprKind::Each { name, list: Box::new(list), give: Box::new(give) })
    }
}

section! {
    /// `{$lookup: value, in: list, by: member, field: member}`
    LookupForm is "`$lookup`" {
        /// The value that is looked up; of a list, each.
        required value("$lookup"): ExprDecl,
        /// The path of a list of objects.
        required list("in"): Text,
        /// The member that is the value.
        required by: Text,
        /// The member that is given; the object itself without it.
        optional field: Text,
    }
    into ExprKind: |LookupForm { value, list, by, field }, _, _| {
        Some(ExprKind::Lookup { value: Box::new(value), list, by, field })
    }
}

section! {
    /// `{$if: predicate, then: expr, else: expr}`
    IfForm is "`$if`" {
        /// A condition.
        required predicate("$if"): PredicateDecl,
        /// The value while it holds.
        required then: ExprDecl,
        /// The value otherwise; absent without `else`.
        optional otherwise("else"): ExprDecl,
    }
    into ExprKind: |IfForm { predicate, then, otherwise }, _, _| {
        Some(ExprKind::If { predicate, then: Box::new(then), otherwise: otherwise.map(Box::new) })
    }
}

section! {
    /// `{$lines: [expr, …], numbered: [expr, …]}`
    LinesForm is "`$lines`" {
        /// Texts, each on a line of its own.
        filled plain("$lines"): ListOf<ExprDecl>,
        /// Texts on further lines, numbered from one.
        default numbered: ListOf<ExprDecl>,
    }
    into ExprKind: |LinesForm { plain, numbered }, _, _| Some(ExprKind::Lines { plain, numbered })
}

section! {
    /// `{$count: list}`
    CountForm is "`$count`" {
        /// A list: how many elements it has.
        required list("$count"): ExprDecl,
    }
    into ExprKind: |form, _, _| Some(ExprKind::Aggregate { what: Aggregate::Count, list: Box::new(form.list) })
}

section! {
    /// `{$sum: list}`
    SumForm is "`$sum`" {
        /// A list of numbers: their exact sum.
        required list("$sum"): ExprDecl,
    }
    into ExprKind: |form, _, _| Some(ExprKind::Aggregate { what: Aggregate::Sum, list: Box::new(form.list) })
}
