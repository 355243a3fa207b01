//! Findings about conditions and decision tables.

use super::list;
use crate::contract::{Enum, Literal, Type};
use crate::diagnostic::{Code, Finding, NameKind, Span};
use crate::mapping::ast::Spanned;

pub(crate) fn condition_without_place(span: Span) -> Finding {
    Finding::error(Code::ConditionForm, span, "this condition looks at nothing")
        .help("name at least one place")
}

pub(crate) fn conforms_to_nothing(place: &Spanned<String>) -> Finding {
    Finding::error(
        Code::ConditionForm,
        place.span,
        format!("`{}` is not a field that the contract has in the request's body", place.value),
    )
    .help("`conforms` takes fields of the body, or the body: `$.request.body`")
}

pub(crate) fn not_a_scalar(span: Span) -> Finding {
    Finding::error(Code::CellValue, span, "a text, a number or a boolean is needed here")
        .help("null is written `absent`, in a cell of its own")
}

pub(crate) fn impossible_value(value: &Literal, span: Span, ty: &Type, listed: Option<&Enum>) -> Finding {
    let values: Vec<String> = listed.into_iter().flat_map(|e| &e.values).map(ToString::to_string).collect();
    let open = match listed {
        Some(listed) if listed.open => {
            "; where others can come, list it in the contract under `x-values-seen`"
        }
        _ => "",
    };
    let all = match values.is_empty() {
        true => format!("write a value of the type {ty}"),
        false => format!("the contract lists {}{open}", list(&values)),
    };
    Finding::error(Code::CellValue, span, format!("`{value}` is not a value that can be here"))
        .help(all)
        .did_you_mean(&value.to_string(), &values)
}

pub(crate) fn condition_cell(span: Span) -> Finding {
    Finding::error(Code::CellValue, span, "a condition is `true` or `false`")
}

pub(crate) fn not_boolean(span: Span, ty: &Type) -> Finding {
    Finding::error(Code::ConditionForm, span, format!("`if` needs a boolean, and this is {ty}"))
}

pub(crate) fn too_many_columns(span: Span, found: usize, max: usize) -> Finding {
    Finding::error(Code::TableSize, span, format!("the table has {found} columns, and people can read {max}"))
        .help("decide in two tables: an outcome may have `decide:` again")
}

pub(crate) fn too_many_combinations(span: Span, found: usize, max: usize) -> Finding {
    Finding::error(
        Code::TableSize,
        span,
        format!("the columns have {found} combinations, and {max} are looked at"),
    )
    .help("decide in two tables: an outcome may have `decide:` again")
}

pub(crate) fn table_gap(span: Span, shown: &[String], all: usize) -> Finding {
    let more = if all > shown.len() { format!(" (and {} more)", all - shown.len()) } else { String::new() };
    Finding::error(Code::TableGap, span, format!("no row decides when {}{more}", shown.join("; or when ")))
        .help("add a row for it; `_` in a cell stands for every value")
}

pub(crate) fn row_unreachable(span: Span, before: Option<Span>) -> Finding {
    let finding = Finding::error(Code::RowUnreachable, span, "this row never decides");
    match before {
        Some(before) => finding
            .help("the rows before it take all of its combinations: move it up, or take it out")
            .with_related(before, "this row, for one, takes some of them"),
        None => finding.help("no combination of values is like it"),
    }
}

pub(crate) fn never_absent(span: Span, column: &str) -> Finding {
    Finding::error(Code::CellValue, span, format!("{column} is never absent or null"))
        .help("take the row out, or write `_`")
}

pub(crate) fn empty_column(span: Span) -> Finding {
    Finding::error(Code::CellValue, span, "there is nothing to decide by here: the place holds no value")
}

pub(crate) fn unknown_outcome(name: &Spanned<String>, known: &[&str]) -> Finding {
    Finding::error(Code::Outcome, name.span, format!("there is no outcome `{}`", name.value))
        .help(format!("there are {}", list(known)))
        .did_you_mean(&name.value, known)
        .with_declarations(NameKind::Outcome, &name.value)
}

pub(crate) fn unused_outcome(name: &Spanned<String>) -> Finding {
    Finding::error(Code::Outcome, name.span, format!("no row leads to the outcome `{}`", name.value))
        .help("name it at the end of a row, or take it out")
        .of_whole()
        .with_uses(NameKind::Outcome, &name.value)
}
