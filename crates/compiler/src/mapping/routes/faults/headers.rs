//! Findings about headers that the contracts declare.

use super::super::headers::{key, word};
use crate::contract::OpKey;
use crate::diagnostic::{Code, Finding, Span};
use switchback_plan::Message;

pub(crate) fn header_differs(message: Message, name: &str, span: Span, why: &str) -> Finding {
    let code = match message {
        Message::Request => Code::RequestHeader,
        Message::Answer => Code::AnswerHeader,
    };
    let (word, key) = (word(message), key(message));
    let text = format!("both sides declare the header field `{name}` of the {word}, and not alike: {why}");
    Finding::error(code, span, text).help(format!(
        "pass it as it comes: `headers: {{{key}: {{{name}: {name}}}}}`, convert it with `as:`, or leave it out: `headers: {{{key}: {{{name}: drop}}}}`"
    ))
}

pub(crate) fn request_header_unread(name: &str, span: Span, called: &OpKey) -> Finding {
    let text = format!(
        "nothing reads the header field `{name}` of the request, and `{called}` takes one of that name"
    );
    Finding::error(Code::RequestHeader, span, text).help(format!(
        "pass it with the call: `headers: {{{name}: $.request.headers{place}}}`, or leave it out: `headers: {{{name}: drop}}` on the route",
        place = below(name)
    ))
}

pub(crate) fn answer_header_unmade(name: &str, span: Span, called: &OpKey) -> Finding {
    let text = format!("the answer has no header field `{name}`, and the reply of `{called}` has one");
    Finding::error(Code::AnswerHeader, span, text).help(format!(
        "pass it in the answer: `headers: {{{name}: $.<step>.headers{place}}}`, or leave it out: `headers: {{{name}: drop}}` on the route",
        place = below(name)
    ))
}

pub(crate) fn cookie_missing(name: &str, span: Span, called: &OpKey) -> Finding {
    let text = format!("`{called}` requires the cookie `{name}`, and nothing sends it");
    Finding::error(Code::Cookie, span, text).help(format!(
        "the gateway passes no cookie of a client: send a fixed one, with this call (`headers: {{request: {{cookie: {{constant: {{<side>: {name}=…}}}}}}}}` in a pair) or with every call (`send: {{<side>: {{headers: {{cookie: {name}=…}}}}}}`), or refuse the operation"
    ))
}

pub(crate) fn cookie_read(name: &str, span: Span) -> Finding {
    let text = format!("`{name}` cannot be read: the gateway passes no cookie from one side to the other");
    Finding::error(Code::Cookie, span, text).help(
        "leave it out; the report lists declared cookies as lost. A fixed cookie is a constant header field",
    )
}

/// Returns the path step that leads to a header.
fn below(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if lower.contains('-') { format!("['{lower}']") } else { format!(".{lower}") }
}
