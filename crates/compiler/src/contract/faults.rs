//! The findings about contracts. Others wrote the documents, so an unsupported construct is at most
//! a warning; errors are reserved for files that are not contracts.

use super::path::{OpKey, PathFault};
use crate::diagnostic::{Code, Finding, Span, did_you_mean};
use crate::yaml::Node;

/// Reports a document of another kind, by its name if it has one.
pub(super) fn no_openapi(span: Span, kind: Option<&str>) -> Finding {
    let message = match kind {
        Some(kind) => format!("this is {kind}, and no OpenAPI document"),
        None => "this is no OpenAPI document: it has neither `openapi` nor `swagger`".to_owned(),
    };
    Finding::error(Code::OpenApiVersion, span, message)
        .help("a contract begins with `openapi: 3.1.0`, or `swagger: '2.0'`")
}

pub(super) fn openapi_version(span: Span, found: &str) -> Finding {
    Finding::error(Code::OpenApiVersion, span, format!("OpenAPI {found} is not read"))
        .help("contracts are documents of OpenAPI 3.0, 3.1 or 3.2, or of Swagger 2.0")
}

pub(super) fn more_findings(span: Span, more: usize) -> Finding {
    let message = format!("{more} more kinds of findings about this document are not shown");
    Finding::note(Code::OutsideSubset, span, message)
}

pub(super) fn not_a(what: &str, wanted: &str, node: &Node) -> Finding {
    let found = node.kind_word();
    let message = format!("{what} must be {wanted}, and this is {found}: it is passed over");
    Finding::warning(Code::WrongKind, node.span, message)
}

pub(super) fn unknown_reference(span: Span, text: &str, known: &[&str]) -> Finding {
    let name = text.rsplit('/').next().unwrap_or(text);
    Finding::warning(Code::UnknownReference, span, format!("`{text}` leads nowhere: it stands for any value"))
        .maybe_help(did_you_mean(name, known))
}

pub(super) fn reference_away(span: Span, text: &str) -> Finding {
    let message = format!("`{text}` leads out to the net: it stands for any value");
    Finding::warning(Code::ReferenceForm, span, message)
        .help("save the document beside this one, and refer to it by its path")
}

pub(super) fn reference_cycle(span: Span, name: &str) -> Finding {
    let message = format!("`{name}` leads only back to itself: it stands for any value");
    Finding::warning(Code::ReferenceCycle, span, message)
}

pub(super) fn wider(span: Span, keyword: &str) -> Finding {
    let message = format!("`{keyword}` is not read: the type takes more values than the document allows");
    Finding::note(Code::OutsideSubset, span, message)
}

pub(super) fn near_key(span: Span, found: &str, near: &str) -> Finding {
    Finding::warning(Code::UnknownKey, span, format!("`{found}` says nothing in a schema")).suggest(near)
}

pub(super) fn tuple(span: Span) -> Finding {
    Finding::note(Code::OutsideSubset, span, "a list whose items have a type each is a list of any values")
}

pub(super) fn too_many_layers(span: Span, most: usize) -> Finding {
    let message =
        format!("this schema is put together from more than {most} others: it stands for any value");
    Finding::warning(Code::TooLarge, span, message)
}

pub(super) fn too_many_merged(span: Span) -> Finding {
    let message =
        "too many schemas of the document are put together from others: this one stands for any value";
    Finding::warning(Code::TooLarge, span, message)
}

pub(super) fn too_much_work(span: Span, most: usize) -> Finding {
    let message = format!(
        "more than {most} schemas, inherited ones counted each time: from here on they stand for any value"
    );
    Finding::warning(Code::TooLarge, span, message)
}

pub(super) fn too_many_alternatives(span: Span, most: usize) -> Finding {
    let message = format!("more than {most} alternatives: together they are any value");
    Finding::warning(Code::TooLarge, span, message)
}

pub(super) fn two_choices(span: Span) -> Finding {
    let message = "a second choice (`oneOf` beside `anyOf`, or in another part of `allOf`) is not read: the type takes more values";
    Finding::note(Code::Alternatives, span, message)
}

pub(super) fn objects_overlap(span: Span) -> Finding {
    let message = "nothing tells these alternatives apart: together they are any value";
    Finding::note(Code::Alternatives, span, message)
        .help("a `discriminator`, a required constant, or a required field of its own in each would")
}

pub(super) fn lists_overlap(span: Span) -> Finding {
    let message = "these alternatives are lists of different items: a list of any values";
    Finding::note(Code::Alternatives, span, message)
}

pub(super) fn recursive_alternatives(span: Span) -> Finding {
    let message = "this alternative leads to itself, or to too many others: within them it is any value";
    Finding::note(Code::Alternatives, span, message).help("a named type of its own would describe it")
}

pub(super) fn no_common_type(span: Span) -> Finding {
    let message = "no value is of all types that `allOf` asks for: it stands for any value";
    Finding::warning(Code::Alternatives, span, message)
}

pub(super) fn unknown_type_word(span: Span, found: &str, known: &[&str]) -> Finding {
    Finding::warning(Code::UnknownWord, span, format!("`{found}` is no type: it stands for any value"))
        .did_you_mean(found, known.iter().copied())
}

pub(super) fn path_form(span: Span, path: &str, fault: &PathFault) -> Finding {
    let message =
        format!("`{path}` is not a path that requests could have ({fault}): its operations are left out");
    Finding::warning(Code::PathForm, span, message)
}

pub(super) fn other_method(span: Span, word: &str) -> Finding {
    let message = format!("`{word}` is passed over: only the methods of HTTP are served");
    Finding::note(Code::OutsideSubset, span, message)
}

pub(super) fn variable_without_parameter(span: Span, key: &OpKey, variable: &str) -> Finding {
    let message = format!("`{variable}` of {key} is not among its parameters: it is any text");
    Finding::warning(Code::PathVariable, span, message)
}

pub(super) fn parameter_without_variable<'a>(
    span: Span,
    key: &OpKey,
    name: &str,
    variables: impl Iterator<Item = &'a str>,
) -> Finding {
    let variables: Vec<&str> = variables.collect();
    Finding::warning(Code::PathVariable, span, format!("the path of {key} has no variable `{name}`"))
        .maybe_help(did_you_mean(name, variables))
}

pub(super) fn status_form(span: Span, text: &str) -> Finding {
    Finding::warning(Code::StatusForm, span, format!("`{text}` is not a status: the answer is passed over"))
        .help("write a status such as 200, a class such as 2XX, or default")
}

pub(super) fn no_responses(span: Span, key: &OpKey) -> Finding {
    Finding::warning(Code::StatusForm, span, format!("{key} promises no response"))
}

pub(super) fn parameter_form(span: Span) -> Finding {
    let message = "a parameter has a `name` and says where it is (`in`): this one is passed over";
    Finding::warning(Code::ParameterForm, span, message)
}

pub(super) fn parameter_place(span: Span, found: &str) -> Finding {
    Finding::note(Code::ParameterForm, span, format!("parameters in `{found}` are passed over"))
}

pub(super) fn same_parameter(span: Span, name: &str, earlier: Span) -> Finding {
    let message = format!("the parameter `{name}` is given twice: the first counts");
    Finding::warning(Code::SameParameter, span, message).with_related(earlier, "first given here")
}

pub(super) fn enum_of_values(span: Span) -> Finding {
    Finding::note(Code::EnumValue, span, "a list of values that are lists or objects is not read")
}

pub(super) fn enum_value_kind(span: Span, found: &str, wanted: &str) -> Finding {
    Finding::warning(Code::EnumValue, span, format!("{found} is not a value of the type {wanted}"))
}

pub(super) fn enum_without_null(span: Span) -> Finding {
    Finding::warning(Code::EnumValue, span, "the type allows null, and the enumeration leaves it out")
        .help("list `null` as well, or take 'null' out of `type`: as it stands null is not allowed")
}

pub(super) fn enum_open_and_closed(span: Span) -> Finding {
    Finding::warning(Code::EnumValue, span, "an enumeration is either closed or open")
        .help("keep `enum`, or keep `x-values-seen` for one that may grow")
}

pub(super) fn same_operation(span: Span, key: &OpKey, earlier: &OpKey, place: Span) -> Finding {
    let message = format!("{key} matches the same requests as {earlier}: it is left out");
    Finding::warning(Code::SameOperation, span, message).with_related(place, "the other one")
}
