//! Findings about paths into the context.

use super::list;
use crate::contract::Type;
use crate::diagnostic::{Code, Finding, NameKind, Span, suggest};
use jsonpath_rust::parser::errors::JsonPathError;

pub(crate) fn path_form(text: &str, span: Span, error: &JsonPathError) -> Finding {
    // The parser's message spans several lines with a drawing. Only its position is usable here.
    let told = error.to_string();
    let column = told.split("--> 1:").nth(1).and_then(|rest| rest.split_whitespace().next());
    let place = column.map(|column| format!(": it breaks off at character {column}")).unwrap_or_default();
    Finding::error(Code::PathSyntax, span, format!("`{text}` is not a JSONPath{place}")).help(
        "paths are written as RFC 9535 has them, such as `$.request.body.name` or `$.list.body[?@.id == 7]`",
    )
}

pub(crate) fn path_root(span: Span, roots: &[String]) -> Finding {
    Finding::error(Code::PathUnknown, span, "a path starts with a member of the context")
        .help(format!("there are {}", list(roots)))
}

pub(crate) fn unknown_root(name: &str, span: Span, roots: &[String]) -> Finding {
    Finding::error(Code::PathUnknown, span, format!("there is no `{name}` in the context"))
        .help(format!("there are {}", list(roots)))
        .did_you_mean(name, roots)
        .with_declarations(NameKind::Result, name)
}

pub(crate) fn computed_value(name: &str, span: Span) -> Finding {
    let message = format!("`{name}` is computed, and a part of it or a condition needs a place");
    Finding::error(Code::PathUnknown, span, message).help("name a path under `let:`")
}

pub(crate) fn used_before(name: &str, span: Span, later: Span) -> Finding {
    Finding::error(Code::UsedBefore, span, format!("`{name}` is not there yet"))
        .help("move the step that makes it up")
        .with_related(later, "made here")
}

/// `made` returns the span where the mapping itself defines a field; `None` for fields of a
/// contract.
pub(crate) fn unknown_member(
    name: &str,
    span: Span,
    ty: &Type,
    known: &[&str],
    made: impl Fn(&str) -> Option<Span>,
) -> Finding {
    let near = suggest(name, known);
    let made = near.and_then(|near| Some((made(near)?, format!("`{near}` is made here"))));
    let all =
        if known.is_empty() { "it has no fields".to_owned() } else { format!("there are {}", list(known)) };
    let finding = Finding::error(Code::PathUnknown, span, format!("`{name}` is not a field of {ty}"))
        .help(all)
        .did_you_mean(name, known);
    Finding { related: made.into_iter().collect(), ..finding }
}

pub(crate) fn no_members(name: &str, span: Span, ty: &Type) -> Finding {
    Finding::error(Code::PathUnknown, span, format!("there is no `{name}` here: the value is {ty}"))
        .help("end the path before it; of a list, select with `[0]`, `[*]` or `[?…]`")
        .with_declarations(NameKind::Result, name)
}

pub(crate) fn no_items(span: Span, ty: &Type) -> Finding {
    Finding::error(Code::PathUnknown, span, format!("this selects from a list, and the value is {ty}"))
        .help("select members by `.name`")
}

pub(crate) fn path_singular(text: &str, span: Span) -> Finding {
    Finding::error(
        Code::PathSingular,
        span,
        format!("`{text}` may lead to several values, and one is needed"),
    )
    .help("select it in a step before: `steps: [name: {pick: path, take: first}]`")
}

pub(crate) fn path_subset(span: Span) -> Finding {
    Finding::error(Code::PathSyntax, span, "`..` and several selectors in one bracket are not read")
        .help("write the way out, so that it can be checked against the contract")
}

pub(crate) fn path_function(name: &str, span: Span) -> Finding {
    let known = ["length", "count", "value", "match", "search"];
    Finding::error(Code::PathSyntax, span, format!("JSONPath has no function `{name}`"))
        .help(format!("there are {}", list(&known)))
        .did_you_mean(name, known)
}

pub(crate) fn setting_path(span: Span) -> Finding {
    Finding::error(Code::PathUnknown, span, "a setting is read by its name").help("write `$.config.<name>`")
}

pub(crate) fn never_equal(span: Span, ty: &Type) -> Finding {
    Finding::error(Code::NeverEqual, span, format!("a value of the type {ty} is never equal to this"))
        .help("compare with a value of that type; `null` only where the contract allows it")
}

pub(crate) fn never_equal_places(span: Span, left: &Type, right: &Type) -> Finding {
    Finding::error(
        Code::NeverEqual,
        span,
        format!("a value of the type {left} is never equal to one of {right}"),
    )
}
