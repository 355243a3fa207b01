//! The findings about contracts, each worded once.

use super::path::{OpKey, PathFault};
use super::types::JsonKind;
use crate::diagnostic::{Code, Finding, Span, did_you_mean};

pub(super) fn openapi_version(span: Span, found: &str) -> Finding {
    Finding::error(Code::OpenApiVersion, span, format!("OpenAPI {found} is not read"))
        .help("contracts are OpenAPI 3.1 documents: `openapi: 3.1.0`")
}

pub(super) fn unknown_reference<'a>(
    span: Span,
    kind: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Finding {
    let known: Vec<&str> = known.collect();
    Finding::error(Code::UnknownReference, span, format!("there is no `{name}` under `components/{kind}`"))
        .maybe_help(did_you_mean(name, known))
}

pub(super) fn reference_form(span: Span, kind: &str) -> Finding {
    Finding::error(Code::ReferenceForm, span, "this reference leads out of what is read")
        .help(format!("a reference here is written '#/components/{kind}/<name>'"))
}

pub(super) fn beside_reference(span: Span, key: &str) -> Finding {
    Finding::error(Code::ReferenceForm, span, format!("`{key}` beside `$ref` would change the type"))
        .help("write it in the type that the reference leads to, or write the type out here")
}

pub(super) fn reference_cycle(span: Span, name: &str) -> Finding {
    Finding::error(Code::ReferenceCycle, span, format!("`{name}` leads only back to itself"))
}

pub(super) fn outside_subset(span: Span, keyword: &str, help: &str) -> Finding {
    Finding::error(Code::OutsideSubset, span, format!("`{keyword}` is not part of OpenAPI that is read here"))
        .help(help)
}

pub(super) fn beside_alternatives(span: Span, key: &str, alternatives: &str) -> Finding {
    Finding::error(Code::OutsideSubset, span, format!("`{key}` beside `{alternatives}` is not read"))
        .help("write it in each alternative that it is about")
}

pub(super) fn alternatives_overlap(span: Span, kind: JsonKind, earlier: Span) -> Finding {
    let kind = kind.word();
    Finding::error(Code::Alternatives, span, format!("two alternatives hold values of the JSON type {kind}"))
        .label("this one")
        .help("alternatives must differ by their JSON type; write one type that covers both")
        .related(earlier, "and this one")
}

pub(super) fn no_alternatives(span: Span) -> Finding {
    Finding::error(Code::Alternatives, span, "there is no alternative here")
}

pub(super) fn path_form(span: Span, path: &str, fault: &PathFault) -> Finding {
    Finding::error(Code::PathForm, span, format!("`{path}` is not a path: {fault}"))
}

pub(super) fn variable_without_parameter(span: Span, key: &OpKey, variable: &str) -> Finding {
    Finding::error(Code::PathVariable, span, format!("`{variable}` of {key} is not among its parameters"))
        .help(format!("add {{name: {variable}, in: path, required: true, schema: …}}"))
}

pub(super) fn parameter_without_variable<'a>(
    span: Span,
    key: &OpKey,
    name: &str,
    variables: impl Iterator<Item = &'a str>,
) -> Finding {
    let variables: Vec<&str> = variables.collect();
    Finding::error(Code::PathVariable, span, format!("the path of {key} has no variable `{name}`"))
        .maybe_help(did_you_mean(name, variables))
}

pub(super) fn status_form(span: Span, text: &str) -> Finding {
    Finding::error(Code::StatusForm, span, format!("`{text}` is not a status"))
        .help("write a status such as 200, a class such as 2XX, or default")
}

pub(super) fn no_responses(span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::StatusForm, span, format!("{key} promises no response"))
}

pub(super) fn parameter_place(span: Span, found: &str) -> Finding {
    Finding::error(Code::ParameterForm, span, format!("parameters in `{found}` are not read"))
        .help("possible here: `path`, `query`, `header`")
}

pub(super) fn optional_path_parameter(span: Span, name: &str) -> Finding {
    Finding::error(Code::ParameterForm, span, format!("the path parameter `{name}` must be required"))
        .help("add `required: true`")
}

pub(super) fn media_type(span: Span, found: &str) -> Finding {
    Finding::error(Code::MediaType, span, format!("bodies of type `{found}` are not read"))
        .help("bodies are application/json")
}

pub(super) fn required_without_property<'a>(
    span: Span,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Finding {
    let known: Vec<&str> = known.collect();
    Finding::error(Code::RequiredField, span, format!("`{name}` is required and not among the properties"))
        .maybe_help(did_you_mean(name, known))
}

pub(super) fn enum_value_kind(span: Span, found: &str, wanted: &str) -> Finding {
    Finding::error(Code::EnumValue, span, format!("{found} is not a value of the type {wanted}"))
}

pub(super) fn enum_value_twice(span: Span, value: &str) -> Finding {
    Finding::error(Code::EnumValue, span, format!("the value `{value}` is listed twice"))
}

pub(super) fn enum_empty(span: Span) -> Finding {
    Finding::error(Code::EnumValue, span, "an enumeration lists at least one value")
}

pub(super) fn enum_without_null(span: Span) -> Finding {
    Finding::warning(Code::EnumValue, span, "the type allows null, and the enumeration leaves it out")
        .help("list `null` as well, or take 'null' out of `type`: as it stands null is not allowed")
}

pub(super) fn enum_open_and_closed(span: Span) -> Finding {
    Finding::error(Code::EnumValue, span, "an enumeration is either closed or open")
        .help("keep `enum`, or keep `x-values-seen` for one that may grow")
}

pub(super) fn same_operation(span: Span, key: &OpKey, earlier: &OpKey, place: Span) -> Finding {
    Finding::error(Code::SameOperation, span, format!("{key} matches the same requests as {earlier}"))
        .related(place, "the other one")
}

pub(super) fn same_parameter(span: Span, name: &str, earlier: Span) -> Finding {
    Finding::error(Code::SameParameter, span, format!("the parameter `{name}` is given twice"))
        .related(earlier, "first given here")
}

pub(super) fn keyword_kind(span: Span, keyword: &str, kinds: &[&str], found: &str) -> Finding {
    let wanted = kinds.join(" or ");
    Finding::error(Code::KeywordKind, span, format!("`{keyword}` speaks about {wanted}, and this is {found}"))
}

pub(super) fn keyword_without_type(span: Span, keyword: &str, kind: &str) -> Finding {
    Finding::error(
        Code::KeywordKind,
        span,
        format!("`{keyword}` without a type says nothing of other values"),
    )
    .help(format!("add `type: {kind}`"))
}
