//! Findings about expressions.

use super::list;
use crate::contract::Type;
use crate::diagnostic::{Code, Finding, Span};
use crate::mapping::ast::Spanned;
use crate::mapping::literal::Misfit;
use std::collections::BTreeSet;
use switchback_plan::Kinds;

pub(crate) fn literal(misfit: &Misfit<'_>) -> Finding {
    Finding::error(Code::LiteralType, misfit.node.span, format!("this value {}", misfit.why)).help(
        "write a value of that type, or `{$value: x, despite: type}` where the contract is broken on purpose",
    )
}

pub(crate) fn despite_needless(span: Span) -> Finding {
    Finding::error(Code::LiteralType, span, "the value is of the contract's type").help("leave `despite` out")
}

pub(crate) fn not_scalar(what: &str, span: Span, ty: &Type) -> Finding {
    Finding::error(
        Code::ScalarNeeded,
        span,
        format!("{what} is a text, a number or a boolean, and this is {ty}"),
    )
    .help("lead the path to one of its fields")
}

pub(crate) fn empty_part(text: &str, span: Span) -> Finding {
    Finding::error(
        Code::MayBeAbsent,
        span,
        format!("`{text}` may be absent or null, and an address needs it"),
    )
    .help("decide about its absence first, with an `absent` row, or take a place that is always there")
}

pub(crate) fn may_be_absent(span: Span) -> Finding {
    Finding::error(Code::MayBeAbsent, span, "this may be absent, and it is required here").help(
        "make sure of it with `check: all_present`, `fill`, an `absent` row, or `{$first: [path, literal]}`",
    )
}

pub(crate) fn does_not_fit(span: Span, from: &Type, to: &Type, why: &str, null: bool) -> Finding {
    let help = match null {
        true => {
            "make sure of it with `check: all_present` or `not_null`, or give `{$first: [path, literal]}`"
        }
        false => {
            "take another place, or convert: `{$from: path, as: conversion}`, `{$shape: Name, from: path}`"
        }
    };
    // A reason about the value itself names both types already; one about a part of it does not.
    let message = match why.starts_with('`') {
        true => format!("{from} does not go into {to}: {why}"),
        false => why.to_owned(),
    };
    let finding = Finding::error(Code::ValueType, span, message).help(help);
    if null { finding.of_whole() } else { finding }
}

pub(crate) fn wrong_form(span: Span, found: &str, wanted: &Type) -> Finding {
    Finding::error(Code::ValueType, span, format!("this is {found}, and the contract has {wanted} here"))
}

pub(crate) fn unknown_field(name: &str, span: Span, known: &[&str]) -> Finding {
    Finding::error(Code::UnknownField, span, format!("the contract has no field `{name}` here"))
        .help(format!("there are {}", list(known)))
        .did_you_mean(name, known)
}

pub(crate) fn missing_field(name: &str, span: Span) -> Finding {
    Finding::error(Code::MissingField, span, format!("`{name}` is required here and has no value"))
        .help(format!("add `{name}: …`"))
}

pub(crate) fn sum_of_no_numbers(span: Span, ty: &Type) -> Finding {
    Finding::error(Code::ValueType, span, format!("`$sum` adds numbers, and this is {ty}"))
        .help("lead the path to numbers: `$.step.body[*].price`")
}

pub(crate) fn conversion_of_each(span: Span) -> Finding {
    Finding::error(Code::ConversionArguments, span, "`each` is for the lists of shapes")
        .help("write `{$each: {one: list}, give: {$from: $.one, as: conversion}}`")
}

/// A conversion at its place.
pub(crate) struct ConversionSite<'r> {
    pub name: &'r Spanned<String>,
    /// The source and the target side.
    pub sides: [&'r str; 2],
    /// The kinds that it accepts, and those that it yields.
    pub kinds: [Kinds; 2],
}

impl ConversionSite<'_> {
    fn sentence(&self) -> String {
        let [from, to] = self.sides;
        let [takes, gives] = self.kinds.map(kinds_in_words);
        format!("`{}` makes {gives} for `{to}` of {takes} of `{from}`", self.name.value)
    }
}

pub(super) fn kinds_in_words(kinds: Kinds) -> String {
    let known = [
        (kinds.boolean, "a boolean"),
        (kinds.number, "a number"),
        (kinds.string, "a text"),
        (kinds.array, "a list"),
        (kinds.object, "an object"),
    ];
    let words: Vec<&str> = known.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    match words.len() {
        0 => "null".to_owned(),
        5 => "any value".to_owned(),
        _ => words.join(" or "),
    }
}

pub(crate) fn conversion_source(read: &ConversionSite<'_>, ty: &Type) -> Finding {
    let message = format!("{}, and the value here is {ty}", read.sentence());
    Finding::error(Code::ValueType, read.name.span, message)
        .help("lead the path to such a value, or take a conversion that makes what is wanted of this one")
}

pub(crate) fn pair_lacks(span: Span, name: &str) -> Finding {
    Finding::error(Code::ValueType, span, format!("the objects of this list have no member `{name}`"))
        .help("name the members that the objects have as `key` and `value`")
}

pub(crate) fn conversion_target(read: &ConversionSite<'_>, ty: &Type) -> Finding {
    let message = format!("{}, and this place takes {ty}", read.sentence());
    Finding::error(Code::ValueType, read.name.span, message)
        .help("take a conversion that makes such a value, or leave it out")
}

pub(crate) fn first_of_nothing(span: Span) -> Finding {
    Finding::error(Code::ValueType, span, "`$first` needs at least one value")
}

pub(crate) fn shape_of_nothing(span: Span) -> Finding {
    Finding::error(Code::ShapePlace, span, "a shape makes bodies and fields whose type the contract knows")
        .of_whole()
}

pub(crate) fn shape_from_same_side(span: Span, side: &str) -> Finding {
    Finding::error(Code::ShapePlace, span, format!("this value is one of `{side}` already"))
        .help("a shape makes a value of one side out of a value of the other; give the place itself")
}

pub(crate) fn computed_from_no_place(span: Span, shape: &str) -> Finding {
    let message = format!("`{shape}` computes members of the value that it reads, and this is no path");
    Finding::error(Code::ShapePlace, span, message)
        .help("give the value a name in a step before: `{make: …}`")
}

pub(crate) fn base_of_other_side(span: Span) -> Finding {
    Finding::error(Code::ShapePlace, span, "a shape is laid over an old value of the side that it makes")
        .help("take it from a call before: `over: $.<step>.body`")
}

pub(crate) fn base_field(span: Span, field: &str, why: &str, null: bool) -> Finding {
    let help =
        null.then(|| format!("say what null becomes: `null_as: {{{field}: …}}` or `null_else: absent`"));
    let finding =
        Finding::error(Code::ValueType, span, format!("`{field}` of the old value cannot be kept: {why}"))
            .maybe_help(help);
    if null { finding.of_whole() } else { finding }
}

pub(crate) fn placeholder_not_given(reason: &Spanned<String>, name: &str) -> Finding {
    let message = format!("`{}` has the placeholder `{{{name}}}`, and nothing is given for it", reason.value);
    Finding::error(Code::Placeholder, reason.span, message)
        .help(format!("give it where a text is made: `{{$text: {}, with: {{{name}: …}}}}`", reason.value))
}

pub(crate) fn unknown_placeholder(
    name: &Spanned<String>,
    reason: &Spanned<String>,
    known: &BTreeSet<String>,
) -> Finding {
    Finding::error(
        Code::Placeholder,
        name.span,
        format!("`{}` has no placeholder `{}`", reason.value, name.value),
    )
    .did_you_mean(&name.value, known)
}

pub(crate) fn single_backwards(span: Span) -> Finding {
    Finding::error(Code::ValueType, span, "a list of one is taken apart by a path")
        .help("end the path with `[0]`")
}
