//! Findings about functions.

use super::list;
use super::values::kinds_in_words;
use crate::contract::Type;
use crate::diagnostic::{Code, Finding, Span};
use crate::mapping::ast::Spanned;
use switchback_plan::Kinds;

pub(crate) fn unknown_function(name: &Spanned<String>, known: Vec<&str>) -> Finding {
    Finding::error(Code::UnknownConversion, name.span, format!("there is no function `{}`", name.value))
        .help(format!("the functions are {}", list(&known)))
        .did_you_mean(&name.value, known)
}

/// The arguments are missing or needless.
pub(crate) fn function_arguments(name: &Spanned<String>, span: Span, such_as: Option<&str>) -> Finding {
    let message = match such_as {
        Some(_) => format!("`{}` needs arguments", name.value),
        None => format!("`{}` takes no arguments", name.value),
    };
    let form = such_as.unwrap_or(&name.value);
    Finding::error(Code::ConversionArguments, span, message).help(format!("write `to: {form}`"))
}

/// A function does not accept a value, or the elements of a list.
pub(crate) fn function_source(name: &Spanned<String>, takes: Kinds, is_element: bool, ty: &Type) -> Finding {
    let (takes, name_of) = (kinds_in_words(takes), &name.value);
    let message = match is_element {
        true => format!("`{name_of}` is for lists of which each element is {takes}, and this is {ty}"),
        false => format!("`{name_of}` is for {takes}, and the value here is {ty}"),
    };
    Finding::error(Code::ValueType, name.span, message)
        .help("lead the path to such a value, or apply another function before: `to: [first, second]`")
}

pub(crate) fn function_member(name: &Spanned<String>, member: &str, known: &[&str]) -> Finding {
    let message = format!("the objects of this list have no member `{member}`");
    Finding::error(Code::UnknownField, name.span, message)
        .help(format!("there are {}", list(known)))
        .did_you_mean(member, known)
}

pub(crate) fn function_keeps(span: Span) -> Finding {
    Finding::error(Code::ConversionArguments, span, "`else: keep` is for conversions, which have `as:`")
        .help("write a literal, `drop` or `error`")
}
