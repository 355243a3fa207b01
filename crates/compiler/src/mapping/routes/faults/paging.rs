//! Findings about paging.

use super::list;
use crate::contract::{OpKey, Type};
use crate::diagnostic::{Code, Finding, Span};
use crate::mapping::ast::Spanned;

pub(crate) fn paged_parameter(name: &Spanned<String>, key: &OpKey, known: &[&str]) -> Finding {
    let all = match known.is_empty() {
        true => "it has none: add it to the contract".to_owned(),
        false => format!("there are {}", list(known)),
    };
    Finding::error(
        Code::PagedParameter,
        name.span,
        format!("`{}` is no query parameter of `{key}`", name.value),
    )
    .help(all)
    .did_you_mean(&name.value, known)
}

pub(crate) fn kept_link(span: Span, link: &str, next: &str) -> Finding {
    let message = format!(
        "the kept `{link}` leads clients past the gateway: of the links beside it, only `{next}` is written anew"
    );
    Finding::warning(Code::KeptLink, span, message)
        .help("give the answer a shape that leaves it out or says what stands there: `response: {only: {v1: {prev: absent}, v2: {prev: absent}}}`")
}

pub(crate) fn paged_member(span: Span, place: &str, wanted: &str, found: Option<&Type>) -> Finding {
    let message = match found {
        Some(ty) => format!("`{place}` is {ty}, and not {wanted}"),
        None => format!("the answer has no `{place}`"),
    };
    Finding::error(Code::PagedMember, span, message)
        .help("name a place of the successful answer as its contract has it; `$` is the answer itself")
}

pub(crate) fn paged_kind(span: Span, given: &[&str]) -> Finding {
    let message = match given {
        [] => "nothing says what pages are asked for by".to_owned(),
        given => format!("pages are asked for by {} at once", list(given)),
    };
    Finding::error(Code::PagedKind, span, message)
        .help("give one of `page`, `offset` and `cursor`, with the name of the query parameter; none where `next` is a link")
}

pub(crate) fn paged_key(span: Span, key: &str, needs: &str) -> Finding {
    Finding::error(Code::PagedKind, span, format!("`{key}` means something beside `{needs}` only"))
        .help(format!("leave it out, or say `{needs}: parameter`"))
}

pub(crate) fn paged_untold(span: Span, what: String, help: &str) -> Finding {
    Finding::error(Code::PagedTold, span, what).help(help)
}

pub(crate) fn page_size(span: Span, what: String, help: &str) -> Finding {
    Finding::error(Code::PageSize, span, what).help(help)
}

pub(crate) fn last_page(span: Span, place: &str, ty: &Type) -> Finding {
    let message = format!("`{place}` is always there and never null ({ty}), also after the last page");
    Finding::error(Code::LastPage, span, message)
        .help("say which text stands for no further page: `end: '0'`; or let the contract say that it may be missing")
}

pub(crate) fn paged_twice(name: &Spanned<String>) -> Finding {
    Finding::error(
        Code::PagedTwice,
        name.span,
        format!("`paging` says what becomes of `{}` already", name.value),
    )
    .help("leave the line out")
}

pub(crate) fn paged_call(span: Span, message: String, called: &[&str]) -> Finding {
    let help = match called {
        [] => "pages are read by a call".to_owned(),
        called => format!("say which call reads a page: `call: {}`", called[0]),
    };
    Finding::error(Code::PagedCall, span, message).help(help)
}

pub(crate) fn paged_call_of_pair(call: &Spanned<String>) -> Finding {
    Finding::error(Code::PagedCall, call.span, "a pair makes one call, and that one reads the page")
        .help("leave `call` out")
}

pub(crate) fn page_bound(span: Span) -> Finding {
    Finding::error(Code::PageBound, span, "no page is found by reading the ones before it here")
        .help("leave `upto` out: each page can be asked for by itself")
}
