//! Findings about archives, the steps that use them, and harvests.

use super::list;
use crate::contract::{OpKey, Type};
use crate::diagnostic::{Code, Finding, NameKind, Span};
use crate::mapping::ast::Spanned;

pub(crate) fn archive_twice(what: &str, name: &Spanned<String>, first: Span) -> Finding {
    let message = format!("the {what} `{}` is declared twice", name.value);
    Finding::error(Code::DeclaredTwice, name.span, message).with_related(first, "first declared here")
}

pub(crate) fn unknown_archive(name: &Spanned<String>, known: &[&str]) -> Finding {
    let all = match known.is_empty() {
        true => "declare it under `archives:`, with a sentence `about` it".to_owned(),
        false => format!("there are {}", list(known)),
    };
    Finding::error(Code::Archive, name.span, format!("there is no archive `{}`", name.value))
        .help(all)
        .did_you_mean(&name.value, known)
        .with_declarations(NameKind::Archive, &name.value)
}

pub(crate) fn unknown_value_type(name: &Spanned<String>, side: &str, known: Vec<&str>) -> Finding {
    let message = format!("the contract of `{side}` has no type `{}`", name.value);
    Finding::error(Code::UnknownType, name.span, message)
        .help("name a schema of its `components`")
        .did_you_mean(&name.value, known)
}

pub(crate) fn archive_of_nobody(name: &Spanned<String>) -> Finding {
    let message = format!("nothing is kept in the archive `{}`, and nothing looks into it", name.value);
    Finding::error(Code::Archive, name.span, message)
        .help("put entries in with `keep:` and look them up with `recall:`, or remove it")
        .with_uses(NameKind::Archive, &name.value)
}

pub(crate) fn unused_archive(name: &Spanned<String>, is_kept: bool) -> Finding {
    let (message, help) = match is_kept {
        true => ("nothing looks into", "look entries up with `recall:`, or remove it"),
        false => ("nothing is kept in", "put entries in with `keep:`, or remove it"),
    };
    Finding::error(Code::Archive, name.span, format!("{message} the archive `{}`", name.value)).help(help)
}

pub(crate) fn recall_without_name(span: Span) -> Finding {
    Finding::error(Code::Archive, span, "nothing can read what is looked up here")
        .help("give the step a name: `- entry: {recall: …, key: …}`")
}

pub(crate) fn recall_across(span: Span, element: &Type) -> Finding {
    let message = format!("the values of this archive are of the other side than the elements ({element})");
    Finding::error(Code::Archive, span, message).help("look one entry up at a time, without `each`")
}

pub(crate) fn keep_with_name(name: &Spanned<String>) -> Finding {
    Finding::error(Code::StepName, name.span, "a step that keeps has no result")
        .help("leave its name out: `- {keep: …, key: …}`")
}

pub(crate) fn keep_without_value(archive: &Spanned<String>) -> Finding {
    Finding::error(Code::Archive, archive.span, format!("`{}` has values, and none is given", archive.value))
        .help("add `value: …`")
}

pub(crate) fn keep_with_value(archive: &Spanned<String>, span: Span) -> Finding {
    Finding::error(Code::Archive, span, format!("entries of `{}` are their keys alone", archive.value))
        .help("leave `value` out, or declare its type: `archives: {…: {value: {side: Type}}}`")
}

pub(crate) fn keep_in_reading(span: Span) -> Finding {
    Finding::error(Code::KeepLate, span, "an operation that only reads keeps nothing")
        .help("keep it where the operation writes, or in a harvest")
}

pub(crate) fn keep_after(span: Span, write: &str) -> Finding {
    Finding::error(Code::KeepLate, span, format!("`{write}` has written already, and keeping can fail"))
        .help("keep it before that call")
}

pub(crate) fn harvest_writes(span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::Harvest, span, format!("a harvest only reads, and `{key}` writes"))
        .help("a call that reads in spite of its method says so: `effect: none`")
}

pub(crate) fn harvest_without_list(span: Span, ty: &Type) -> Finding {
    Finding::error(Code::Harvest, span, format!("`page` is the list that a page brings, and this is {ty}"))
        .help("such as `$.things.body`")
}

pub(crate) fn harvest_without_page(name: &Spanned<String>) -> Finding {
    let message = format!("`{}` reads the same page again and again", name.value);
    Finding::error(Code::Harvest, name.span, message)
        .help("pass the number of the page: `query: {page: $.request.query.page}`")
}

pub(crate) fn harvest_keeps_nothing(name: &Spanned<String>) -> Finding {
    Finding::error(Code::Harvest, name.span, format!("`{}` keeps nothing", name.value))
        .help("add a step `{keep: archive, each: {one: list}, key: …, value: …}`")
}
