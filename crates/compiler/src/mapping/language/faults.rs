//! Findings about the form of a pack.

use super::Spanned;
use crate::diagnostic::{Code, Finding, Span, did_you_mean};

pub(super) fn version(span: Span) -> Finding {
    Finding::error(Code::MappingVersion, span, "this version of the mapping language is not known")
        .help("write `mapping: 1`")
}

pub(super) fn status(text: &str, span: Span) -> Finding {
    Finding::error(Code::StatusWord, span, format!("`{text}` is not a status"))
        .help("a status is a number from 200 to 599; on the new side also a class such as `2xx`")
}

pub(super) fn unknown_side(name: &str, span: Span, sides: &[Spanned<String>; 2]) -> Finding {
    let names = sides.iter().map(|side| side.value.as_str()).collect::<Vec<_>>();
    let all = format!("the sides of this pack are `{}` and `{}`", names[0], names[1]);
    Finding::error(Code::UnknownSide, span, format!("`{name}` is not a side of this pack"))
        .help(all)
        .did_you_mean(name, names)
}

pub(super) fn missing_side(what: &str, side: &str, span: Span) -> Finding {
    Finding::error(Code::MissingSide, span, format!("{what} needs a line for `{side}`"))
}

pub(super) fn place(text: &str, span: Span) -> Finding {
    Finding::error(Code::PlaceForm, span, format!("`{text}` is not a place"))
        .help("a place is a member name, or a JSONPath of names such as `$.body.text`")
}

pub(super) fn no_end(span: Span, what: &str) -> Finding {
    Finding::error(Code::BlockEnd, span, format!("{what} has no end"))
        .help("end it with `answer:`, `refuse:` or `decide:` and `outcomes:`")
}

pub(super) fn two_ends(first: Span, second: Span) -> Finding {
    Finding::error(Code::BlockEnd, second, "this is a second end")
        .help("keep one of `answer:`, `refuse:` and `decide:`")
        .with_related(first, "the first one")
}

pub(super) fn one_of_keys(span: Span, what: &str, keys: &[&str]) -> Finding {
    let list = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    Finding::error(Code::OneOfKeys, span, format!("{what} needs exactly one of {list}"))
}

pub(super) fn unknown_form(name: &str, span: Span, known: &[&str]) -> Finding {
    let list = known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    Finding::error(Code::ExprForm, span, format!("there is no form `{name}`"))
        .help(format!("the forms are {list}"))
        .did_you_mean(name, known)
}

pub(super) fn shape_use(span: Span) -> Finding {
    Finding::error(
        Code::ShapeUse,
        span,
        "a shape is used by its name, or as `[Name]` for each element of a list",
    )
}

pub(super) fn else_of_map(span: Span) -> Finding {
    Finding::error(Code::ShapeElse, span, "`else` is not for the values of a map")
        .help("give the conversions within the shape an `else:` of their own")
}

pub(super) fn else_of_body(span: Span) -> Finding {
    Finding::error(Code::ShapeElse, span, "`else` is for the elements of a list, and this is a whole body")
        .help("write `{shape: [Name], else: drop}` where the body is a list")
}

pub(super) fn else_over(span: Span) -> Finding {
    Finding::error(Code::ShapeElse, span, "`else` is not for a shape that is laid over an old value")
        .help("give the conversions within the shape an `else:` of their own")
}

pub(super) fn one_shape(span: Span) -> Finding {
    Finding::error(Code::ShapeUse, span, "`shape` and `each_value` say two things of one value")
        .help("`shape` is for the value itself, `each_value` for the values of a map")
}

pub(super) fn too_few_conditions(span: Span) -> Finding {
    Finding::error(Code::OneOfKeys, span, "`all` and `any` are lists of at least two conditions")
        .help("write one condition without them")
}

pub(super) fn row_length(span: Span, cells: usize, columns: usize) -> Finding {
    Finding::error(
        Code::RowLength,
        span,
        format!("this row has {cells} cells and an outcome, and the table has {columns} columns"),
    )
    .help("a row has one cell for each column of `on:`, and the name of an outcome at its end")
}

pub(super) fn fill(span: Span) -> Finding {
    Finding::error(Code::FillForm, span, "this cannot fill a field")
        .help("write a literal, `absent`, `none`, `$.config.<setting>`, `{value: x, despite: type}` or `{refuse: reason}`")
}

pub(super) fn one_element_name(span: Span) -> Finding {
    Finding::error(Code::OneOfKeys, span, "one name for the elements of one list is expected")
        .help("write `{name: $.step.body}`")
}

pub(super) fn each_without_bound(span: Span) -> Finding {
    Finding::error(Code::FanOut, span, "the number of elements that are asked for has no bound")
        .help("add `upto: 20`")
}

pub(super) fn poll_without(span: Span, missing: &[&str]) -> Finding {
    let named: Vec<String> = missing.iter().map(|word| format!("`{word}`")).collect();
    let message = format!("a call that is made again until something holds has no {}", named.join(" and "));
    Finding::error(Code::PollForm, span, message).help(
        "write all three: `until: {one_of: {$.job.body.status: [done, failed]}}, every: 1s, within: 20s`",
    )
}

pub(super) fn rest_fill(span: Span) -> Finding {
    Finding::error(Code::FillForm, span, "this cannot stand for all fields that no line names")
        .help("write `lost`, a literal such as `null`, or `{value: null, despite: type}`")
}

pub(super) fn fill_word(word: &str, span: Span) -> Finding {
    Finding::error(Code::FillForm, span, format!("`{word}` is neither `absent` nor `none`"))
        .help(format!("quote it if the text is meant: '{word}'"))
        .did_you_mean(word, ["absent", "none"])
}

pub(super) fn quoted_word(word: &str, meant: &str, span: Span) -> Finding {
    Finding::warning(
        Code::QuotedWord,
        span,
        format!("`{word}` in quotes is a text, and not the word `{word}`"),
    )
    .help(format!("write it without quotes, or `{{word: {word}}}` where every text has quotes; {meant}"))
}

pub(super) fn nearly_otherwise(word: &str, near: &str, span: Span) -> Finding {
    Finding::error(Code::FillForm, span, format!("`{word}` is nearly `{near}`"))
        .help(format!("write `{near}`, or quote it if the text is meant: '{word}'"))
}

pub(super) fn nearly_a_filling(word: &str, known: &[&str], span: Span) -> Finding {
    let near = did_you_mean(word, known.to_vec()).unwrap_or_default();
    Finding::error(Code::FillForm, span, format!("`{word}` is nearly a word that fills a field"))
        .help(format!("{near} If the text is meant, quote it"))
}

pub(super) fn example_address(span: Span) -> Finding {
    Finding::error(Code::ExampleForm, span, "an example is at a side, a method and an address")
        .help("such as `v1 GET /things/7?page=2`")
}

pub(super) fn example_end(span: Span) -> Finding {
    Finding::error(Code::ExampleForm, span, "an example needs exactly one of `answer` and `refused`")
}

pub(super) fn example_reply(span: Span) -> Finding {
    Finding::error(Code::ExampleForm, span, "a reply is one status and its body")
        .help("such as `reply: {200: {id: 7}}`, or `{200: empty}`")
}

pub(super) fn config_path(text: &str, span: Span) -> Finding {
    Finding::error(Code::ConfigPath, span, format!("`{text}` is not a setting"))
        .help("write `$.config.<name>`")
}

pub(super) fn unknown_line(name: &str, span: Span, what: &str, known: &[&str]) -> Finding {
    let list = known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    Finding::error(Code::UnknownKey, span, format!("{what} has no key `{name}`"))
        .help(format!("possible here: {list}"))
        .did_you_mean(name, known)
}

pub(super) fn key_without(key: &crate::yaml::Key, needed: &str) -> Finding {
    Finding::error(
        Code::BlockEnd,
        key.span,
        format!("`{}` belongs to `{needed}`, which is not here", key.name),
    )
}

pub(super) fn no_outcomes(span: Span) -> Finding {
    Finding::error(Code::BlockEnd, span, "a decision needs `outcomes` beside it").help(
        "add `outcomes: {name: {answer: {status: …}}}` with one entry for each name at the end of a row",
    )
}

pub(super) fn check_without_else(span: Span) -> Finding {
    Finding::error(Code::MissingKey, span, "a check needs the key `else`")
        .help("add `else: {status: 400, reason: <name>}`")
}

pub(super) fn one_member(span: Span) -> Finding {
    Finding::error(Code::WrongKind, span, "one place and its values are needed here")
        .help("such as `one_of: {state: [open, closed]}`")
}

pub(super) fn two_places(span: Span) -> Finding {
    Finding::error(Code::WrongKind, span, "two places are needed here")
        .help("such as `equal: [$.a.body.x, $.b.body.x]`")
}

pub(super) fn constant_parameter(span: Span) -> Finding {
    Finding::error(
        Code::ConstantParameter,
        span,
        "a constant parameter is a text, a number, a boolean, or a list of these",
    )
    .help("write `{constant: {<side>: value}}`")
}

pub(super) fn parameter_name(name: &Spanned<String>) -> Finding {
    Finding::error(
        Code::FragmentArguments,
        name.span,
        format!("`{}` cannot be an argument's name", name.value),
    )
    .help("a name is made of letters, digits and `_`, and begins with a letter")
}
