//! Findings about steps of `serve` routes.

use super::super::proof::PlaceUse;
use super::list;
use crate::contract::{Contract, OpKey, Operation, Type};
use crate::diagnostic::{Code, Finding, NameKind, Span, UNFINISHED, suggest};
use crate::mapping::ast::Spanned;

pub(crate) fn name_taken(name: &Spanned<String>) -> Finding {
    Finding::error(Code::StepName, name.span, format!("`{}` is in the context already", name.value))
        .help("give the step another name")
}

pub(crate) fn unread_result(name: &Spanned<String>) -> Finding {
    Finding::error(Code::Unread, name.span, format!("nothing reads `{}`", name.value))
        .help("read it, take the step out, or leave its name out if it is made for its failure")
        .with_uses(NameKind::Result, &name.value)
}

pub(crate) fn unread_element(name: &Spanned<String>) -> Finding {
    Finding::error(Code::Unread, name.span, format!("nothing is made of `{}`", name.value))
        .help(format!("read it: `$.{}`", name.value))
        .with_uses(NameKind::Result, &name.value)
}

pub(crate) fn unread_variable(name: &str, span: Span) -> Finding {
    Finding::error(Code::Unread, span, format!("the path variable `{name}` goes nowhere"))
        .help(format!("pass it: `{{{name}}}` in the address of a call, or `path:` in a pair"))
}

/// Compares targets such as `PUT /things/{$.made.body.id}` by their shape.
pub(crate) fn unknown_call(written: &str, key: &OpKey, span: Span, contract: &Contract) -> Finding {
    let form = |key: &OpKey| format!("{} {}", key.method, key.path.shape());
    let known: Vec<(String, String)> =
        contract.operations.iter().map(|op| (form(&op.key), op.key.to_string())).collect();
    let shown = form(key);
    let same = same_path(key, contract);
    let is_of_method = same.is_some();
    let near = suggest(&shown, known.iter().map(|(form, _)| form));
    let near = near.and_then(|near| known.iter().find(|(form, _)| form == near)).map(|(_, name)| name);
    let message = format!("`{written}` is not an operation of `{}`", contract.name);
    let finding =
        Finding::error(Code::UnknownOperation, span, message).maybe_help(same).of_method(is_of_method);
    match near {
        Some(name) => finding.suggest(name),
        None if written.contains(UNFINISHED) => {
            finding.did_you_mean(written, known.iter().map(|(_, name)| name))
        }
        None => finding,
    }
}

/// Returns a hint with the methods of an existing path.
pub(super) fn same_path(key: &OpKey, contract: &Contract) -> Option<String> {
    let same = contract.operations.iter().filter(|op| op.key.path.shape() == key.path.shape());
    let methods: Vec<&str> = same.map(|op| op.key.method.as_str()).collect();
    (!methods.is_empty()).then(|| format!("this path has {}", list(&methods)))
}

pub(crate) fn unknown_variable(text: &str, span: Span, key: &OpKey, known: &[&str]) -> Finding {
    let all = match known.is_empty() {
        true => "it has none; another place is written `{$.step.body.field}`".to_owned(),
        false => format!("there are {}; another place is written `{{$.step.body.field}}`", list(known)),
    };
    Finding::error(Code::PathVariables, span, format!("`{text}` is not a path variable of `{key}`"))
        .help(all)
        .did_you_mean(text, known)
}

pub(crate) fn body_not_taken(span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::BodyUnexpected, span, format!("`{key}` takes no body")).help("leave `body` out")
}

pub(crate) fn body_needed(span: Span, key: &OpKey, ty: &Type) -> Finding {
    Finding::error(Code::BodyMissing, span, format!("`{key}` needs a body: {ty}")).help("add `body: …`")
}

pub(crate) fn key_of_arrival(path: &Spanned<String>) -> Finding {
    let message = format!(
        "`{}` differs for each attempt of a client, so none would find the reply of an earlier one",
        path.value
    );
    Finding::error(Code::ResumeKey, path.span, message)
        .help("name members of the request that are the same in each attempt, such as an idempotency key")
}

pub(crate) fn resume_of_reading(span: Span) -> Finding {
    Finding::error(Code::Resume, span, "the reply of a call that only reads need not be remembered")
        .help("`resume` belongs to a write that must not happen twice")
}

pub(crate) fn no_paging(span: Span) -> Finding {
    Finding::error(Code::Paging, span, "the pack does not say how lists are paged")
        .help("add `paging: {query: page, first: 0, size: 20}` to `pack.yaml`")
}

pub(crate) fn not_paged(span: Span, key: &OpKey, parameter: &str) -> Finding {
    Finding::error(Code::Paging, span, format!("`{key}` is not a list read page by page"))
        .help(format!("it would need the query parameter `{parameter}`, and answer with a list"))
}

pub(crate) fn page_set_twice(name: &Spanned<String>) -> Finding {
    Finding::error(Code::Paging, name.span, format!("`pages` gives `{}` already", name.value))
        .help("leave it out here")
}

pub(crate) fn on_fail_needed(span: Span) -> Finding {
    Finding::error(
        Code::OnFail,
        span,
        "this call comes after a write and does not say what happens when it fails",
    )
    .help("add `on_fail: pass`, `{pass: {headers: …}}`, `{answer: …}`, `{use: value}` or `{refuse: reason}`")
}

/// `places` are unvalidated places of the request's body, such as `request.body.name`.
pub(crate) fn unchecked_places(places: &[&str], need: PlaceUse<'_>, span: Span) -> Finding {
    let names: Vec<String> = places.iter().map(|place| own_name(place)).collect();
    let shown: Vec<&str> = names.iter().map(String::as_str).collect();
    let (what, be) = (list(&shown), if names.len() == 1 { "is" } else { "are" });
    let message = match need {
        PlaceUse::After(write) => format!(
            "{what} of the request {be} read after `{write}` has written, and nothing has checked {it} before",
            it = if names.len() == 1 { "it" } else { "them" },
        ),
        PlaceUse::Text(text) => {
            format!("{what} of the request becomes {text}, and a client may send anything there")
        }
        PlaceUse::Decides => {
            format!("{what} of the request decides here, and a client may send anything there")
        }
    };
    let missing = format!("- {{conforms: [{}], else: {{status: 400, reason: …}}}}", names.join(", "));
    Finding::error(Code::Unchecked, span, message).help(format!("add to `check:` of the route: `{missing}`"))
}

/// Returns a place of the request's body in the notation of mappings.
fn own_name(place: &str) -> String {
    match place.strip_prefix("request.body.") {
        Some(name) if !name.contains('.') => name.to_owned(),
        _ => format!("$.{place}"),
    }
}

/// `names` are members that a shape reads and the contract of the request does not declare.
pub(crate) fn undeclared_late(names: &[String], write: &str, span: Span) -> Finding {
    let names: Vec<String> = names.iter().map(|place| own_name(place)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let message = format!(
        "the shape takes {} of the request after `{write}` has written, and the contract does not have {} there",
        list(&names),
        if names.len() == 1 { "it" } else { "them" },
    );
    Finding::error(Code::Unchecked, span, message)
        .help("what nobody declares can be anything: take a shape of the type that the client sends")
}

pub(crate) fn refused_late(write: &str, span: Span) -> Finding {
    let message = format!("the client is turned away here, and `{write}` has written already");
    Finding::error(Code::RefusedLate, span, message)
        .help("decide it in `check:` or in a table before that call, or by what the call has answered")
}

pub(crate) fn nothing_to_use(span: Span, key: &OpKey) -> Finding {
    Finding::error(
        Code::OnFail,
        span,
        format!("`{key}` answers without a body, so nothing can be used for it"),
    )
    .help("write `on_fail: pass` or `{answer: …}`")
}

pub(crate) fn no_choice(span: Span) -> Finding {
    Finding::error(Code::ConditionForm, span, "`first` needs at least one choice")
}

pub(crate) fn newest_by(span: Span, ty: &Type) -> Finding {
    Finding::error(
        Code::ValueType,
        span,
        format!("the newest is found by a text or a number, and this is {ty}"),
    )
}

pub(crate) fn fill_needless(name: &Spanned<String>) -> Finding {
    Finding::error(Code::Unread, name.span, format!("`{}` is always there", name.value))
        .help("leave it out of `fill`")
}

pub(crate) fn too_many_calls(span: Span, found: u32, max: u32) -> Finding {
    Finding::error(
        Code::CallBound,
        span,
        format!("one request may make {found} calls, and {max} are allowed"),
    )
    .help("read fewer pages, or wait with fewer calls")
}

pub(crate) fn answer_without_body(span: Span, key: &OpKey, status: &Spanned<i64>) -> Finding {
    let message = format!("`{key}` answers {} without a body", status.value);
    Finding::error(Code::BodyUnexpected, span, message).help("leave `body` out")
}

pub(crate) fn answer_needs_body(status: &Spanned<i64>, key: &OpKey, ty: &Type) -> Finding {
    let message = format!("`{key}` answers {} with a body: {ty}", status.value);
    Finding::error(Code::BodyMissing, status.span, message).help("add `body: …`")
}

pub(crate) fn unknown_status(status: u16, span: Span, side: &str, operation: &Operation) -> Finding {
    let known: Vec<String> = operation.responses.iter().map(|response| response.status.to_string()).collect();
    let message = format!("`{}` of `{side}` does not answer {status}", operation.key);
    Finding::error(Code::UnknownStatus, span, message)
        .help(format!("its contract lists {}", known.join(", ")))
}

pub(crate) fn unknown_class(span: Span, side: &str, operation: &Operation) -> Finding {
    let message = format!("`{}` of `{side}` has no status of this class", operation.key);
    Finding::error(Code::UnknownStatus, span, message)
}

pub(crate) fn each_of_no_list(span: Span, ty: &Type) -> Finding {
    Finding::error(Code::FanOut, span, format!("there are no elements here: this is {ty}"))
        .help("lead the path to a list, or to the elements of one: `$.step.body[*]`")
}

pub(crate) fn lookup_in_no_list(span: Span, ty: &Type) -> Finding {
    Finding::error(Code::Lookup, span, format!("nothing can be looked up here: this is {ty}"))
        .help("lead the path to a list of objects: `$.step.body.users`")
}

pub(crate) fn lookup_never_found(span: Span, key: &Type, by: &str, ty: &Type) -> Finding {
    Finding::error(
        Code::Lookup,
        span,
        format!("nothing is ever found: {key} is looked up by `{by}`, which is {ty}"),
    )
    .help("convert the value: `{$from: path, as: conversion}`")
}

pub(crate) fn each_of_request(span: Span) -> Finding {
    Finding::error(
        Code::FanOut,
        span,
        "a call is made for each element of a reply, or of a list that a step has made; this is what the client sends",
    )
    .help("make a list of it first: `- ids: {make: {$each: {one: $.request.body.ids}, give: $.one}}`, then `each: {id: $.ids}`")
}

pub(crate) fn each_without_name(span: Span) -> Finding {
    Finding::error(Code::FanOut, span, "nothing can read what these calls are made for")
        .help("give the step a name: `name: {each: …, call: …}`")
}

/// `missing` are places of the request that lead to a write and that its key lacks.
pub(crate) fn key_lacks(span: Span, operation: &str, missing: &[String], complete: &[String]) -> Finding {
    let message = format!(
        "`{operation}` is made of {} as well: a request that differs there alone would get the reply of another one",
        list(missing)
    );
    Finding::error(Code::ResumeKey, span, message).help(format!("write `resume: [{}]`", complete.join(", ")))
}

/// A bound without `beyond:`. `helps` lists the possible lines.
pub(crate) fn bound_unsaid(span: Span, what: &str, helps: &str) -> Finding {
    let message = format!("{what} have a bound, and nothing says what follows beyond it");
    Finding::error(Code::BoundUnsaid, span, message).help(helps)
}

pub(crate) fn write_beyond(span: Span) -> Finding {
    Finding::error(Code::WriteBeyond, span, "elements beyond the bound would never be written")
        .help("refuse such a request before the first write: `beyond: {refuse: reason}`")
}

pub(crate) fn each_with(span: Span, key: &str) -> Finding {
    Finding::error(Code::FanOut, span, format!("`{key}` does not go with `each`"))
        .help("read the list in a step of its own, and go through it in the next")
}
