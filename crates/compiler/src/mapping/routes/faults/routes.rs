//! Findings about pairs, about routes in general, and about the operations that they serve.

use super::{list, same_path};
use crate::contract::{Contract, OpKey, OpKeyFault, Operation, Type};
use crate::diagnostic::{Code, Finding, Span, suggest};
use crate::mapping::ast::Spanned;
use std::sync::Arc;
use switchback_plan::ParameterShape;

/// HTTP methods of operations.
const METHODS: &[&str] = &["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"];

pub(crate) fn operation_form(text: &str, span: Span, fault: &OpKeyFault) -> Finding {
    let meant = text.split_once(' ').filter(|_| matches!(fault, OpKeyFault::Method(_)));
    let meant = meant.and_then(|(method, path)| Some(format!("{} {path}", suggest(method, METHODS)?)));
    let finding = Finding::error(Code::OperationForm, span, format!("`{text}` is not an operation: {fault}"));
    match meant {
        Some(meant) => finding.suggest(meant),
        None => finding,
    }
}

pub(crate) fn unknown_operation(key: &OpKey, span: Span, contract: &Contract) -> Finding {
    let written = key.to_string();
    let known: Vec<String> = contract.operations.iter().map(|operation| operation.key.to_string()).collect();
    // If only the names of variables differ, the method is correct.
    let meant = contract.find_shape(&key.method, &key.path.shape());
    let same = match meant {
        Some(operation) => Some(format!("the contract has it as `{}`", operation.key)),
        None => same_path(key, contract),
    };
    let is_of_method = meant.is_none() && same.is_some();
    Finding::error(
        Code::UnknownOperation,
        span,
        format!("`{written}` is not an operation of `{}`", contract.name),
    )
    .maybe_help(same)
    .did_you_mean(&written, &known)
    .of_method(is_of_method)
}

pub(crate) fn unanswered_operation(
    operation: &Operation,
    side: &str,
    sometimes: bool,
    why: Option<String>,
) -> Finding {
    let when = if sometimes { " while no setting is on" } else { "" };
    let not_kept = why.map(|why| format!(", and it cannot be kept as it is: {why}")).unwrap_or_default();
    let message = format!("no route answers `{}` of `{side}`{when}{not_kept}", operation.key);
    Finding::error(Code::Unanswered, operation.span, message).help(format!(
        "add a pair or a `serve` route, or `{{serve: {side}, at: {}, refuse: <reason>}}`",
        operation.key
    ))
}

pub(crate) fn answered_twice(key: &OpKey, span: Span, first: Span) -> Finding {
    Finding::error(Code::AnsweredTwice, span, format!("`{key}` is answered twice"))
        .help("keep one route; a pair serves both sides unless it says `front:`")
        .with_related(first, "answered here first")
}

pub(crate) fn unknown_slash(name: &Spanned<String>, known: &[&str]) -> Finding {
    let message = format!("`{}` is not a variable of the path", name.value);
    Finding::error(Code::PathVariables, name.span, message).did_you_mean(&name.value, known)
}

pub(crate) fn unbound_variable(name: &str, span: Span, served: &OpKey) -> Finding {
    let known: Vec<&str> = served.path.variables().collect();
    let all = match known.is_empty() {
        true => "a pair cannot make it up; write a `serve` route".to_owned(),
        false => format!(
            "name the variable of `{served}` it is filled from: `path: {{old: new}}`; there are {}",
            list(&known)
        ),
    };
    Finding::error(Code::PathVariables, span, format!("nothing fills the path variable `{name}`")).help(all)
}

pub(crate) fn unknown_pair_variable(name: &Spanned<String>, key: &OpKey) -> Finding {
    let known: Vec<&str> = key.path.variables().collect();
    Finding::error(
        Code::PathVariables,
        name.span,
        format!("`{}` is not a path variable of `{key}`", name.value),
    )
    .did_you_mean(&name.value, known)
}

pub(crate) fn parameter_goes_nowhere(name: &str, span: Span, side: &str) -> Finding {
    Finding::error(
        Code::QueryParameter,
        span,
        format!("the query parameter `{name}` of `{side}` goes nowhere"),
    )
    .help(format!("pass it: `query: [{name}]`, or say that it is dropped: `query: {{{name}: drop}}`"))
    .of_whole()
}

pub(crate) fn parameter_missing(name: &str, span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::QueryParameter, span, format!("`{key}` requires the query parameter `{name}`"))
        .help(format!("add it under `query:`: `{name}: …`"))
}

pub(crate) fn verdict_by_itself(span: Span, declared: &str) -> Finding {
    let message = format!(
        "the route is different only by fields without a source or a target and by lists that are cut, and `{declared}` is declared"
    );
    Finding::error(Code::VerdictSaid, span, message)
        .help("leave `verdict` out, since these lines say it; or say in `differs:` what else is different")
}

pub(crate) fn header_missing(name: &str, span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::HeaderName, span, format!("`{key}` requires the header field `{name}`, and nobody fills it"))
        .help(format!("pass the client's under `headers:`, or give it a value; for all calls of the side, add it to `headers` of its `credentials`: `{{{name}: …}}`"))
}

pub(crate) fn no_form_for_token(span: Span, key: &OpKey, side: &str) -> Finding {
    let what = format!("`{key}` has no form that the token of `{side}` could be sent in");
    Finding::error(Code::PackForm, span, what)
        .help("send it in a header field or in a query parameter, or refuse this operation")
}

pub(crate) fn unknown_parameter(name: &Spanned<String>, key: &OpKey, known: &[&str]) -> Finding {
    // `drop` is valid in place of the parameter's new name.
    let words = known.iter().copied().chain(["drop"]);
    let all = if known.is_empty() { "it has none".to_owned() } else { format!("there are {}", list(known)) };
    Finding::error(
        Code::QueryParameter,
        name.span,
        format!("`{key}` has no query parameter `{}`", name.value),
    )
    .help(all)
    .did_you_mean(&name.value, words)
}

pub(crate) fn parameter_style(
    span: Span,
    names: [&str; 2],
    sides: [&str; 2],
    shapes: &[ParameterShape; 2],
) -> Finding {
    let word = |shape: &ParameterShape| match shape {
        ParameterShape::Single => "one value",
        ParameterShape::List(_) => "a list",
        ParameterShape::Fields(_) => "an object with fields",
    };
    let message = format!(
        "the query parameter `{}` of `{}` is {}, and `{}` of `{}` is {}",
        names[0],
        sides[0],
        word(&shapes[0]),
        names[1],
        sides[1],
        word(&shapes[1])
    );
    let help = match shapes {
        [ParameterShape::List(_), ParameterShape::Single] => {
            "a list in one text is `as: csv`, on the side that has the text; else write a `serve` route"
        }
        _ => "write a `serve` route that makes the one of the other",
    };
    Finding::error(Code::ParameterStyle, span, message).help(help)
}

pub(crate) fn parameter_single(name: &Spanned<String>) -> Finding {
    Finding::error(Code::ParameterStyle, name.span, "`single_in_array` is for bodies")
        .help("one value goes to a list of a query without a conversion")
}

pub(crate) fn parameter_conversion(name: &Spanned<String>, parameter: &str, why: &str) -> Finding {
    Finding::error(
        Code::ConversionTypes,
        name.span,
        format!("`{}` does not fit `{parameter}`: {why}", name.value),
    )
    .help("the conversion must take what the client sends and give what the other side takes")
}

pub(crate) fn constant_parameter(misfit: &crate::mapping::literal::Misfit<'_>) -> Finding {
    Finding::error(Code::ConstantParameter, misfit.node.span, format!("this value {}", misfit.why))
        .help("write a value that the contract lists")
}

pub(crate) fn header_form(name: &Spanned<String>) -> Finding {
    Finding::error(Code::HeaderName, name.span, format!("`{}` is not the name of a header field", name.value))
}

pub(crate) fn own_header(name: &Spanned<String>, credential: bool) -> Finding {
    let why = match credential {
        true => "carries credentials",
        false => "belongs to the connection or is made by the gateway",
    };
    Finding::error(Code::HeaderName, name.span, format!("`{}` {why} and cannot be mapped", name.value))
        .help("leave it out")
}

pub(crate) fn body_line_missing(span: Span, what: &str, from: Option<&Type>, to: Option<&Type>) -> Finding {
    let message = match (from, to) {
        (_, Some(to)) => format!("the {what} needs a body, {to}, and the pair has no `{what}:`"),
        (Some(from), None) => format!("the {what} has a body, {from}, and the pair has no `{what}:`"),
        (None, None) => format!("the pair has no `{what}:`"),
    };
    Finding::error(Code::BodyMissing, span, message)
        .help(format!("add `{what}: <Shape>`, or `{what}: empty` where the other side has none"))
}

pub(crate) fn empty_body(span: Span, what: &str, to: Option<&Type>) -> Finding {
    let wanted = to.map(ToString::to_string).unwrap_or_default();
    Finding::error(Code::BodyMissing, span, format!("the {what} needs a body: {wanted}"))
        .help("name the shape that makes it")
}

pub(crate) fn keep_without_body(span: Span, what: &str) -> Finding {
    Finding::error(Code::BodyUnexpected, span, format!("the {what} has no body on one of the sides"))
        .help("write `empty`")
}

pub(crate) fn shape_without_body(span: Span, what: &str, source: bool) -> Finding {
    let which = if source { "comes without a body" } else { "goes out without a body" };
    Finding::error(Code::BodyUnexpected, span, format!("the {what} {which}, so there is nothing to shape"))
        .help("write `empty`, or serve only the side that has one: `front:`")
}

pub(crate) fn status_uncovered(status: u16, span: Span, called: &str, served: &str) -> Finding {
    let message = format!("`{called}` may answer {status}, and nothing says what that is in `{served}`");
    Finding::error(Code::StatusUncovered, span, message)
        .help("add it to `status:`, as `{<old status>: [<new statuses>]}`")
}

pub(crate) fn redirect_answered(span: Span, to: u16) -> Finding {
    Finding::error(
        Code::StatusUncovered,
        span,
        format!("a redirect has no body that {to} could be answered with"),
    )
    .help("map it to a redirect, or leave the line out: it is answered 502")
}

pub(crate) fn status_twice(span: Span, first: Span) -> Finding {
    Finding::error(Code::StatusUncovered, span, "this status is mapped already")
        .help("statuses are tried in the order they are written: the more exact one first")
        .with_related(first, "mapped here")
}

pub(crate) fn class_cannot_be_sent(span: Span) -> Finding {
    Finding::error(
        Code::StatusUncovered,
        span,
        "the first status is sent in the other direction, so it must be exact",
    )
    .help("write one before it, such as `[200, 2xx]`")
}

pub(crate) fn business_error(status: u16, span: Span, side: &str, key: &OpKey) -> Finding {
    let message =
        format!("`{key}` of `{side}` lists {status} for itself, so it is an answer and not a failure");
    let help =
        format!("add `business_errors: [{status}]`: then it is never retried, and no breaker counts it");
    Finding::error(Code::BusinessError, span, message).help(help).of_whole()
}

pub(crate) fn no_business_error(status: &Spanned<i64>) -> Finding {
    let message = format!("no operation that is called here lists {}", status.value);
    Finding::error(Code::BusinessError, status.span, message).help("take it out of `business_errors`")
}

pub(crate) fn verdict(span: Span, said: &str, found: &str, why: &str, side: &str, written: bool) -> Finding {
    let said = if written { said.to_owned() } else { format!("{said}, because it says no other") };
    let message = format!("the route says that `{side}` is served {said}, and it is {found}: {why}");
    let help = match found {
        "exact" => "leave `verdict` out, or say what differs: `differs: …`".to_owned(),
        _ => format!("write `verdict: {found}`, or `verdict: {{{side}: {found}}}` for one direction"),
    };
    Finding::error(Code::VerdictSaid, span, message).help(help)
}

pub(crate) fn verdict_of_refused(span: Span) -> Finding {
    Finding::error(Code::VerdictSaid, span, "a refused operation has no verdict").help("leave it out")
}

pub(crate) fn verdict_side(span: Span) -> Finding {
    Finding::error(Code::VerdictSaid, span, "this route does not serve this side").help("leave the line out")
}

pub(crate) fn refusal_status(status: &Spanned<i64>) -> Finding {
    let message = format!("a refusal is an error, and {} is not the status of one", status.value);
    Finding::error(Code::RefusalPolicy, status.span, message).help("such as 501, or 410 after the end")
}

pub(crate) fn refusal_date(text: &str, span: Span) -> Finding {
    Finding::error(Code::RefusalPolicy, span, format!("`{text}` is not a date")).help("such as 2027-01-31")
}

pub(crate) fn route_without_setting(path: &Spanned<String>) -> Finding {
    Finding::error(Code::ConfigPath, path.span, format!("`{}` is not a setting", path.value))
        .help("a route is switched by one setting: `if: $.config.<name>`")
}

pub(crate) fn setting_switches_nothing(name: &Spanned<String>) -> Finding {
    Finding::error(
        Code::SettingType,
        name.span,
        format!("the setting `{}` cannot switch a route", name.value),
    )
    .help("declare it with `type: boolean` and a default")
}

pub(crate) fn approximation_without_name(text: &Spanned<String>) -> Finding {
    Finding::error(Code::ApproximationName, text.span, "this approximation has no name for the header field")
        .help("give it one: `approximate: {name: sentence}`")
}

pub(crate) fn approximation_name(name: &Spanned<String>) -> Finding {
    let message = format!("`{}` is not a name for an approximation", name.value);
    Finding::error(Code::ApproximationName, name.span, message).help("small letters, digits and `_`")
}

pub(crate) fn refusal_setting(name: &Spanned<String>) -> Finding {
    Finding::error(Code::RefusalPolicy, name.span, format!("the setting `{}` is not a date", name.value))
        .help("declare it with `type: date`")
}

pub(crate) fn unserved_side(span: Span, side: &str) -> Finding {
    Finding::error(Code::PackForm, span, format!("this pack does not serve `{side}`"))
        .help("leave the route out, or name the side under `serves:` in `pack.yaml`")
}

pub(crate) fn opaque_body(span: Span, media: &str) -> Finding {
    Finding::error(Code::OpaqueBody, span, format!("a body of `{media}` is not mapped"))
        .help("write `keep` where no body of it is JSON on either side; else refuse the operation")
}

pub(crate) fn opaque_reply(span: Span, media: &str) -> Finding {
    let message =
        format!("the reply to this call may be `{media}`, whose body is not read, and something reads it");
    Finding::error(Code::OpaqueBody, span, message).help(
        "read its status or header fields only; a body of bytes passes through a pair, with `response: keep`",
    )
}

/// The text does not depend on the direction, so duplicates of both directions are removed.
pub(crate) fn file_alone(span: Span, side: &str, name: &str) -> Finding {
    Finding::error(Code::FilePart, span, format!("`{name}` of `{side}` is a file, and what stands for it is none"))
        .help(format!(
            "files stream through: rename a file of the other side to it, or leave it out, `only: {{{side}: {{{name}: none}}}}`"
        ))
}

pub(crate) fn parts_of_no_object(span: Span) -> Finding {
    Finding::error(Code::PartsObject, span, "a body of parts is one of several objects here")
        .help("map it with a shape over one object, `keep` it, or refuse the operation")
}

pub(crate) fn media_apart(
    span: Span,
    what: &str,
    [(old, has), (new, wants)]: [(&str, &[Arc<str>]); 2],
) -> Finding {
    let all = |ranges: &[Arc<str>]| list(&ranges.iter().map(|range| &**range).collect::<Vec<_>>());
    let message = format!(
        "the {what} has no media type that both sides know: `{old}` has {}, `{new}` has {}",
        all(has),
        all(wants)
    );
    let line = match (has.first(), wants.first()) {
        (Some(old), Some(new)) if !old.contains('*') && !new.contains('*') => format!("{old}: {new}"),
        _ => "old: new".to_owned(),
    };
    let help = format!(
        "where one is the other under another name, say so: `media: {{{what}: {{{line}}}}}`; else refuse the operation"
    );
    Finding::error(Code::MediaApart, span, message).help(help)
}

pub(crate) fn media_in_part(span: Span, what: &str, [from, to]: [&str; 2], stays: &[&str]) -> Finding {
    let stays = list(stays);
    let (message, help) = match what {
        "request" => (
            format!("`{to}` takes no {stays}: a client of `{from}` that sends it is answered 415"),
            "say what it is called there, `media: {request: {old: new}}`, if it is taken under another name",
        ),
        _ => (
            format!(
                "an answer of `{from}` may be {stays}, which clients of `{to}` do not know: it passes as it is"
            ),
            "say what it is called there, `media: {response: {old: new}}`, if they know it under another name",
        ),
    };
    Finding::warning(Code::MediaApart, span, message).help(help)
}

pub(crate) fn unknown_media(named: &Spanned<String>, side: &str, what: &str, known: &[&str]) -> Finding {
    let message = format!("the {what} of `{side}` has no media type `{}`", named.value);
    Finding::error(Code::MediaLine, named.span, message)
        .help(format!("it has {}", list(known)))
        .did_you_mean(&named.value, known)
}

pub(crate) fn media_of_no_passed(span: Span, what: &str) -> Finding {
    let message = format!("the {what} is not passed as it comes, so its media type is not for a line to say");
    Finding::error(Code::MediaLine, span, message).help(format!(
        "take the line out, or write `{what}: keep` where no body of it is JSON on either side"
    ))
}

pub(crate) fn nothing_to_read_back(span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::ReadBack, span, format!("`{key}` changes nothing, so there is nothing to read back"))
        .help("name an operation that writes")
}

pub(crate) fn read_back_writes(span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::ReadBack, span, format!("`{key}` is no `GET` that only reads"))
        .help("what was written is looked at, never written again: name a `GET`")
}

pub(crate) fn read_back_refused(span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::ReadBack, span, format!("`{key}` is refused, so there is nothing to compare"))
        .help("take the line out")
}

pub(crate) fn shows_without_reading(span: Span, write: &str) -> Finding {
    Finding::error(
        Code::ReadBack,
        span,
        format!("`{write}` has no line in `read_back`, so no reading shows its members"),
    )
    .help("add its reading to `read_back`, or take the line out")
}

pub(crate) fn shows_no_member(span: Span, member: &str, key: &str) -> Finding {
    let message = format!("the body of `{key}` has no member `{member}`");
    Finding::error(Code::ReadBack, span, message)
        .help("name members that the write's request and the reading's answer both have")
}

pub(crate) fn read_back_parameter(span: Span, key: &OpKey, name: &str) -> Finding {
    let message = format!("`{key}` requires the query parameter `{name}`, and a reading back sends none");
    Finding::error(Code::ReadBack, span, message).help("name a reading that needs its address only")
}
