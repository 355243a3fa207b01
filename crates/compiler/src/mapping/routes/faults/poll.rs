//! Findings about polling calls.

use crate::contract::OpKey;
use crate::diagnostic::{Code, Finding, Span};
use crate::mapping::ast::Spanned;

pub(crate) fn poll_unnamed(span: Span) -> Finding {
    Finding::error(Code::PollForm, span, "the reply that is waited for has no name to be looked at by")
        .help("name the step: `job: {call: …, until: {one_of: {$.job.body.status: [done, failed]}}, …}`")
}

pub(crate) fn poll_beside(span: Span, other: &str) -> Finding {
    Finding::error(Code::PollForm, span, format!("one call cannot have `until` and `{other}`"))
        .help("wait in a step of its own")
}

pub(crate) fn poll_of_write(span: Span, key: &OpKey) -> Finding {
    Finding::error(Code::PollWrite, span, format!("`{key}` writes, and would do so each time"))
        .help("write once, and wait in a step that reads; a call that only reads says so: `effect: none`")
}

pub(crate) fn poll_time(time: &Spanned<String>, what: &str) -> Finding {
    let message = format!("`{}` is no time {what}", time.value);
    let help = match what {
        super::super::poll::EVERY => "such as `500ms`, `1s` or `5s`, from 100 ms to a minute",
        _ => "such as `20s` or `1m`, up to 5 minutes",
    };
    Finding::error(Code::PollTime, time.span, message).help(help)
}

pub(crate) fn poll_never_again(within: &Spanned<String>, every: &str) -> Finding {
    let message = format!("within `{}` there is no second call after `{every}`", within.value);
    Finding::error(Code::PollTime, within.span, message).help("give `within` several times `every`")
}

pub(crate) fn poll_calls(every: &Spanned<String>, found: u32, max: u32) -> Finding {
    let message = format!("one request may make {found} calls here, and {max} are allowed");
    Finding::error(Code::PollTime, every.span, message).help("a longer `every`, or a shorter `within`")
}

pub(crate) fn poll_blind(span: Span, name: &str) -> Finding {
    Finding::error(Code::PollBlind, span, "nothing that is asked again decides this")
        .help(format!("look at the reply of the call: `$.{name}.body.…` or `$.{name}.status`"))
}

pub(crate) fn poll_never(span: Span) -> Finding {
    Finding::error(Code::PollSettled, span, "by the contract this never holds, so that time always runs out")
        .help("wait for a value or a member that the contract has")
}

pub(crate) fn poll_at_once(span: Span) -> Finding {
    Finding::error(
        Code::PollSettled,
        span,
        "by the contract this always holds, so that nothing is waited for",
    )
    .help("leave out the values that do not end it, or `until`, `every` and `within`")
}

pub(crate) fn poll_forgotten(span: Span, write: &str) -> Finding {
    let message = format!("when time is up a client tries again, and `{write}` would be done twice");
    Finding::error(Code::PollForgotten, span, message).help(
        "remember its reply: `resume: [$.request.body.…]`; or say that a repeat is harmless: `retry: safe`",
    )
}
