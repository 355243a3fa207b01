//! Findings about a pack as a unit: manifest, languages, reasons, errors, comparisons, events and
//! hosts.

use super::ast::{FieldPlace, Spanned};
use super::message_place::Missed;
use crate::diagnostic::{Code, Finding, NameKind, Span, did_you_mean, suggest};
use crate::yaml::{Key, Kind, Node};
use std::collections::BTreeSet;
use switchback_plan::convert::ArgumentError;

/// Returns the words in backticks, separated by commas.
pub(super) fn list<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    words.into_iter().map(|word| format!("`{}`", word.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Returns the finding for arguments that make no conversion or function, at the word that is the
/// cause if there is one. A suggestion for this word takes precedence over the help.
pub(super) fn wrong_arguments(
    name: &Spanned<String>,
    arguments: &Node,
    why: &ArgumentError,
    help: Option<String>,
) -> Finding {
    let message = format!("these arguments make no `{}`: {why}", name.value);
    let unknown = why.unknown_word();
    let place = unknown.and_then(|unknown| place_of(arguments, &unknown.word));
    let span = place.unwrap_or(arguments.span);
    let finding = Finding::error(Code::ConversionArguments, span, message).maybe_help(help);
    match (unknown, place) {
        (Some(unknown), Some(_)) => finding.did_you_mean(&unknown.word, &unknown.known),
        _ => finding,
    }
}

/// Returns the place of the first key or text that is this word.
fn place_of(node: &Node, word: &str) -> Option<Span> {
    match &node.kind {
        Kind::String(text, _) => (text == word).then_some(node.span),
        Kind::Seq(items) => items.iter().find_map(|item| place_of(item, word)),
        Kind::Map(entries) => entries.iter().find_map(|(key, value)| match key.name == word {
            true => Some(key.span),
            false => place_of(value, word),
        }),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => None,
    }
}

pub(super) fn same_sides(name: &Spanned<String>) -> Finding {
    Finding::error(Code::PackForm, name.span, format!("both sides are called `{}`", name.value))
        .help("give them different names")
}

pub(super) fn no_credential(span: Span, is_read: bool) -> Finding {
    let (what, key) = if is_read { ("read a token from", "read") } else { ("send a token in", "send") };
    Finding::error(Code::PackForm, span, format!("there is no header to {what}"))
        .help(format!("add one to `{key}`"))
}

pub(super) fn side_header(name: &Spanned<String>) -> Finding {
    let what = format!("`{}` is made by the gateway for each call", name.value);
    Finding::error(Code::HeaderName, name.span, what).help("leave it out of `headers`")
}

pub(super) fn header_value(value: &Spanned<String>) -> Finding {
    Finding::error(Code::PackForm, value.span, "this is not the value of a header field")
}

pub(super) fn scheme(scheme: &Spanned<String>) -> Finding {
    Finding::error(Code::PackForm, scheme.span, format!("`{}` is not an authentication scheme", scheme.value))
        .help("such as `Bearer`; or `none`, where the token stands alone")
}

pub(super) fn carrier(span: Span) -> Finding {
    let what = "a place of a token is one of: a `header` with its `scheme`, `basic` with the part that is the token, `query`, `form`";
    Finding::error(Code::PackForm, span, what).help(
        "for example `{header: authorization, scheme: Token}`, `{basic: user}`, `{query: api_key}` or `{form: token}`",
    )
}

/// The scheme is declared once for the side, or by each carrier.
pub(super) fn no_scheme(header: &Spanned<String>) -> Finding {
    let what = format!("how the token stands in `{}` is not said", header.value);
    Finding::error(Code::PackForm, header.span, what)
        .help("add `scheme: Bearer`, or another word, or `none` where the token stands alone")
}

pub(super) fn two_ways(carrier: &Spanned<String>, first: &Spanned<String>) -> Finding {
    let what = format!("a side is sent its token in one way, and `{}` is a second one", carrier.value);
    Finding::error(Code::PackForm, carrier.span, what)
        .with_related(first.span, "the first one")
        .help("leave one of them out; several header fields may carry it after the same scheme")
}

pub(super) fn no_forms(carrier: &Spanned<String>, side: &str) -> Finding {
    let what = format!("no operation of `{side}` takes a form, so `{}` is never read", carrier.value);
    Finding::error(Code::PackForm, carrier.span, what)
        .help("read it from a header field or from a query parameter")
}

pub(super) fn header_name(name: &Spanned<String>) -> Finding {
    Finding::error(Code::HeaderName, name.span, format!("`{}` is not the name of a header field", name.value))
}

pub(super) fn scope(scope: &Spanned<String>) -> Finding {
    Finding::error(Code::PackForm, scope.span, format!("`{}` is not a path with one variable", scope.value))
        .help("such as `/accounts/{account}`")
}

pub(super) fn setting_inside(name: &Spanned<String>, other: Span) -> Finding {
    Finding::error(Code::SettingForm, name.span, format!("`{}` lies inside another setting", name.value))
        .help("a setting is a boolean, an integer, a text or a date, and holds no others")
        .with_related(other, "which is this one")
}

pub(super) fn setting_name(name: &Spanned<String>) -> Finding {
    Finding::error(Code::SettingForm, name.span, format!("`{}` is not a name for a setting", name.value))
        .help("letters, digits and `_`, with dots between the parts, such as `things.max`")
}

pub(super) fn setting_default(span: Span, kind: &str) -> Finding {
    Finding::error(Code::SettingForm, span, format!("the default is not of the type `{kind}`"))
}

pub(super) fn setting_values(span: Span, kind: &str) -> Finding {
    Finding::error(Code::SettingForm, span, format!("a setting of the type `{kind}` has no list of values"))
        .help("leave `values` out, or make it a `string`")
}

pub(super) fn setting_default_unlisted(span: Span, values: &[String]) -> Finding {
    Finding::error(Code::SettingForm, span, "the default is not among `values`")
        .help(format!("it is one of {}", list(values)))
}

pub(super) fn error_type(name: &Spanned<String>, side: &str, known: &[&str]) -> Finding {
    let message = format!("the contract of `{side}` has no type `{}`", name.value);
    Finding::error(Code::ErrorForm, name.span, message).did_you_mean(&name.value, known)
}

pub(super) fn errors_differ(span: Span, why: &str) -> Finding {
    Finding::error(Code::ErrorForm, span, format!("the other side's errors are not of this type: {why}"))
        .help("name a shape that turns one into the other: `errors: {shape: …}`")
}

/// `operations` belong to the side that returns the errors; there is at least one.
pub(super) fn errors_reworded(declared: &Spanned<String>, side: &str, operations: &[String]) -> Finding {
    let count = operations.len();
    let first: Vec<String> = operations.iter().take(3).map(|one| format!("`{one}`")).collect();
    let more =
        if count > first.len() { format!(", and {} more", count - first.len()) } else { String::new() };
    let operations = if count == 1 { "operation" } else { "operations" };
    let message = format!(
        "errors of {count} {operations} of `{side}` are not of the type `{}`, and reach clients in the gateway's words: {}{more}",
        declared.value,
        first.join(", ")
    );
    Finding::warning(Code::ErrorsReworded, declared.span, message).help(
        "leave `types` out where the service has no one type of errors: then every error in JSON passes as it comes",
    )
}

/// `sides` lists every side with an error type that rejects the value.
pub(super) fn error_body(span: Span, sides: &[String], why: &str) -> Finding {
    let sides = sides.iter().map(|side| format!("`{side}`")).collect::<Vec<_>>().join(" or ");
    Finding::error(Code::ErrorForm, span, format!("this is not an error of {sides}: the value {why}"))
}

pub(super) fn error_text(span: Span, found: usize) -> Finding {
    Finding::error(Code::ErrorForm, span, format!("`$text` stands {found} times in the body of errors"))
        .help("it stands for the message, once: `body: {message: $text}`; or not at all, where `$kind` tells the errors apart")
}

pub(super) fn error_words(span: Span) -> Finding {
    Finding::error(Code::ErrorForm, span, "these words stand nowhere: the body of errors has no `$kind`")
        .help("write `$kind` where the word for the kind of error stands, or leave `kind` out")
}

pub(super) fn error_kind(kind: &Spanned<String>, known: &[&str]) -> Finding {
    Finding::error(Code::ErrorForm, kind.span, format!("the gateway makes no error `{}`", kind.value))
        .help(format!("there are {}", list(known)))
        .did_you_mean(&kind.value, known)
}

pub(super) fn error_status(status: &Spanned<i64>) -> Finding {
    Finding::error(Code::ErrorForm, status.span, format!("{} is not the status of an error", status.value))
        .help("a number from 400 to 599")
}

pub(super) fn error_status_of_all(status: &Spanned<i64>) -> Finding {
    let message = format!("an answer {} tells no error", status.value);
    Finding::error(Code::ErrorForm, status.span, message)
        .help("a success that has a body, such as 200, or a number from 400 to 599")
}

pub(super) fn failure_place(place: &Spanned<String>) -> Finding {
    let message = format!("`{}` is no place of an answer", place.value);
    Finding::error(Code::FailureForm, place.span, message)
        .help("such as `$.body.ok` or `$.headers.x-state`: names alone, without lists")
}

pub(super) fn failure_unknown(place: &Spanned<String>, side: &str, missed: &Missed) -> Finding {
    let message = format!("no success of `{side}` has a `{}`", place.value);
    let known: Vec<&str> = missed.known.iter().map(String::as_str).collect();
    Finding::error(Code::FailureForm, place.span, message).maybe_help(did_you_mean(&missed.name, known))
}

pub(super) fn failure_value(span: Span) -> Finding {
    Finding::error(Code::FailureForm, span, "an answer is told apart by a text, a number, a boolean or null")
        .help("write the value that the place has, or a list of such values")
}

pub(super) fn failure_empty(span: Span) -> Finding {
    Finding::error(Code::FailureForm, span, "nothing says which answers are meant")
        .help("such as `when: {$.body.ok: false}`")
}

pub(super) fn failure_status(status: &Spanned<i64>) -> Finding {
    let message = format!("{} is not the status of a failure", status.value);
    Finding::error(Code::FailureForm, status.span, message)
        .help("a number from 400 to 599, such as 401 for a token that has ended")
}

pub(super) fn compared_type(name: &Spanned<String>, side: &str, known: Vec<&str>) -> Finding {
    let message = format!("the contract of `{side}` has no type `{}`", name.value);
    Finding::error(Code::Comparison, name.span, message).did_you_mean(&name.value, known)
}

pub(super) fn compared_member(
    place: &Spanned<FieldPlace>,
    member: &str,
    ty: &str,
    known: Vec<&str>,
) -> Finding {
    let message = format!("`{ty}` has no member `{member}`");
    let finding = Finding::error(Code::Comparison, place.span, message);
    match place.value.0.as_slice() {
        [_] => finding.did_you_mean(member, known),
        // The name is only a part of the place.
        _ => finding.did_you_mean_within(member, known),
    }
}

pub(super) fn compared_key(key: Span, found: &str) -> Finding {
    Finding::error(Code::Comparison, key, format!("a key is one scalar member, and this is {found}"))
        .help("name the member that is the same whenever the thing is, such as `id`")
}

pub(super) fn compared_order(at: Span, found: &str) -> Finding {
    Finding::error(Code::Comparison, at, format!("only a list has an order, and this is {found}"))
}

pub(super) fn compared_unused(name: &Spanned<String>) -> Finding {
    let message = format!("no message of an operation has a `{}` in it", name.value);
    Finding::warning(Code::Unused, name.span, message).help("take the line out")
}

pub(super) fn compared_unanswered(at: Span, name: &str) -> Finding {
    let message = format!("no answer of an operation has a `{name}` in it, and only answers are compared");
    Finding::warning(Code::Unused, at, message)
        .help("take it out; `secret` and `harmless` hold for requests as well")
}

pub(super) fn harmless_secret(at: Span, secret: Span) -> Finding {
    Finding::error(Code::Comparison, at, "what is in a secret is secret")
        .with_related(secret, "declared secret here")
}

pub(super) fn compared_credential(name: &Spanned<String>) -> Finding {
    let message = format!("`{}` carries a token, and tokens are not compared", name.value);
    Finding::error(Code::Comparison, name.span, message).help("take it out")
}

pub(super) fn no_language(span: Span) -> Finding {
    Finding::error(Code::Language, span, "the pack has no language").help("add `languages: [en]`")
}

pub(super) fn language_tag(language: &Spanned<String>) -> Finding {
    Finding::error(Code::Language, language.span, format!("`{}` is not a language tag", language.value))
        .help("tags are written in lower case, such as `en` or `pt-br`")
}

pub(super) fn language_twice(language: &Spanned<String>) -> Finding {
    Finding::error(Code::Language, language.span, format!("`{}` is listed twice", language.value))
}

pub(super) fn unknown_language(language: &Spanned<String>, known: &[String]) -> Finding {
    let message = format!("`{}` is not a language of this pack", language.value);
    Finding::error(Code::Language, language.span, message)
        .help(format!("its languages are {}", list(known)))
        .did_you_mean(&language.value, known)
}

pub(super) fn missing_language(reason: &Spanned<String>, language: &str, default: bool) -> Finding {
    let message = format!("`{}` has no text in `{language}`", reason.value);
    // Clients fall back to the default language, so only its text is mandatory.
    match default {
        true => Finding::error(Code::MissingText, reason.span, message)
            .help("this is the default language: every reason needs it"),
        false => Finding::warning(Code::MissingText, reason.span, message)
            .help("clients that ask for it get the default language"),
    }
}

pub(super) fn placeholder_form(span: Span) -> Finding {
    Finding::error(Code::Placeholder, span, "the braces in this text hold no name")
        .help("a placeholder is written `{name}`")
}

pub(super) fn other_placeholders(span: Span, first: Span, wanted: &BTreeSet<String>) -> Finding {
    let help = match wanted.is_empty() {
        true => "the first text has none".to_owned(),
        false => format!("the first text has {}", list(wanted)),
    };
    Finding::error(Code::Placeholder, span, "the texts of a reason must have the same placeholders")
        .help(help)
        .with_related(first, "the first text")
}

pub(super) fn nothing_given(reason: &Spanned<String>) -> Finding {
    let message = format!("`{}` has placeholders, and nothing is given for them here", reason.value);
    Finding::error(Code::Placeholder, reason.span, message).help("use another reason, without placeholders")
}

pub(super) fn events_undeclared(span: Span) -> Finding {
    Finding::error(Code::EventForm, span, "the pack does not say which side sends events")
        .help("add `events: {from: v2, name: {v2: $.body.type}}` to `pack.yaml`")
}

pub(super) fn no_webhooks(span: Span, side: &str) -> Finding {
    Finding::error(Code::EventForm, span, format!("the contract of `{side}` has no `webhooks`"))
        .help("name the side that sends events, and describe them in its contract")
}

pub(super) fn event_place(place: &Spanned<String>) -> Finding {
    Finding::error(Code::EventForm, place.span, format!("`{}` is no place of an event", place.value))
        .help("such as `$.body.type` or `$.headers.x-event`: names alone, without lists")
}

pub(super) fn event_place_unknown(place: &Spanned<String>, event: &str, missed: &Missed) -> Finding {
    let message = format!("the event `{event}` has no scalar at `{}`", place.value);
    let known: Vec<&str> = missed.known.iter().map(String::as_str).collect();
    Finding::error(Code::EventForm, place.span, message).maybe_help(did_you_mean(&missed.name, known))
}

pub(super) fn event_key(place: &Spanned<String>) -> Finding {
    let message = format!("`{}` is no place in the body of an event", place.value);
    Finding::error(Code::EventForm, place.span, message)
        .help("events of one key stay in order: name what they are about, such as `$.body.data.id`")
}

pub(super) fn correlated_place(place: &Spanned<String>) -> Finding {
    let message = format!("`{}` is no place in the body of an event", place.value);
    Finding::error(Code::EventCorrelation, place.span, message)
        .help("name a value that both events have, in the form that receivers know: `$.body.note.id`")
}

pub(super) fn correlated_by_nothing(span: Span) -> Finding {
    Finding::error(Code::EventCorrelation, span, "nothing says by what two events are the same one").help(
        "name values that both have, in the form that receivers know: `by: [$.body.note.id, $.body.at]`",
    )
}

pub(super) fn correlated_within(within: &Spanned<String>, seconds_max: u64) -> Finding {
    let message = format!("`{}` is no time that an event may wait", within.value);
    let help = format!("such as `90s`, `2m` or `1h`, up to {} h", seconds_max / 3_600);
    Finding::error(Code::EventCorrelation, within.span, message).help(help)
}

pub(super) fn correlated_dropped(span: Span) -> Finding {
    Finding::error(Code::EventCorrelation, span, "an event that nobody is told of is compared with none")
        .help("leave `correlate` out, or say what the event becomes")
}

pub(super) fn correlated_otherwise(span: Span, name: &str) -> Finding {
    let message = format!("another event that becomes `{name}` is found again by something else");
    Finding::error(Code::EventCorrelation, span, message)
        .help("give both the same `correlate`: the event that comes from the other side is one for both")
}

pub(super) fn correlated_unnamed(span: Span, side: &str) -> Finding {
    let message = format!("nothing says where `{side}` names the events that it sends itself");
    Finding::error(Code::EventCorrelation, span, message)
        .help(format!("add it to `name`: `{side}: $.headers.x-event`, or `{side}: $.body.type`"))
}

pub(super) fn event_or_drop(span: Span) -> Finding {
    let message = "an event of the side that sends becomes one of the other's, or is dropped";
    Finding::error(Code::EventForm, span, message)
        .help("`{event: {v2: a, v1: b}, body: Shape}`, or `{event: {v2: a}, drop: 'why'}`")
}

pub(super) fn event_body_missing(span: Span) -> Finding {
    Finding::error(Code::EventForm, span, "nothing says what the body becomes")
        .help("`body:` takes a shape, or `keep` where it is the same on both sides")
}

pub(super) fn event_without_body(span: Span) -> Finding {
    Finding::error(Code::EventForm, span, "one of the two events has no body in its contract")
        .help("describe it there, or drop the event: `drop: 'why'`")
}

pub(super) fn event_keep(span: Span, why: &str) -> Finding {
    Finding::error(Code::EventForm, span, format!("the body cannot be kept: {why}"))
        .help("name a shape: `body: Name`")
}

pub(super) fn event_inline(span: Span) -> Finding {
    Finding::error(Code::EventForm, span, "the body of an event has a shape with a name")
        .help("declare it under `shapes`, where an example can test it")
}

pub(super) fn event_unanswered(span: Span, event: &str, side: &str) -> Finding {
    let message = format!("nothing says what becomes of the event `{event}` of `{side}`");
    Finding::error(Code::EventUnanswered, span, message)
        .help(format!("add `{{event: {{{side}: {event}, …}}, body: …}}` or `drop: 'why'` under `events:`"))
}

pub(super) fn event_twice(span: Span, event: &str) -> Finding {
    Finding::error(Code::EventUnanswered, span, format!("what becomes of `{event}` was said before"))
        .help("take one of the two out")
}

pub(super) fn unknown_event(name: &Spanned<String>, side: &str, known: Vec<&str>) -> Finding {
    let message = format!("the contract of `{side}` has no webhook `{}`", name.value);
    Finding::error(Code::UnknownEvent, name.span, message).did_you_mean(&name.value, known)
}

pub(super) fn media_format_of_range(name: &Spanned<String>) -> Finding {
    let what = format!("`{}` is not one media type", name.value);
    Finding::error(Code::MediaFormat, name.span, what)
        .help("write a type and a subtype without parameters, such as `application/x-amz-json-1.1`")
}

pub(super) fn media_format_known(name: &Spanned<String>) -> Finding {
    let what = format!("the format of `{}` follows from its name", name.value);
    Finding::error(Code::MediaFormat, name.span, what).help("take the line out")
}

pub(super) fn media_format_unused(name: &Spanned<String>, unknown: &[&str]) -> Finding {
    let what = format!("no contract of this pack has the media type `{}`", name.value);
    let help = match unknown {
        [] => "take the line out: the formats of all their types follow from the names".to_owned(),
        unknown => format!("they have {}", list(unknown)),
    };
    Finding::error(Code::MediaFormat, name.span, what).help(help).did_you_mean(&name.value, unknown)
}

pub(super) fn host_name(name: &Spanned<String>) -> Finding {
    let what = format!("`{}` is not the name of a host", name.value);
    Finding::error(Code::HostName, name.span, what).help(
        "begin with a small letter, and use these, digits and dashes alone, 32 at most: such as `files`",
    )
}

pub(super) fn idle_host(name: &Spanned<String>) -> Finding {
    let what = format!("the host `{}` answers no operation", name.value);
    Finding::error(Code::HostName, name.span, what)
        .help("list operations, such as `GET /files/{id}`, or servers of the contract; or leave it out")
}

pub(super) fn too_many_hosts(name: &Spanned<String>, most: usize) -> Finding {
    let what = format!("a side has {most} hosts at most, and `{}` is one more", name.value);
    Finding::error(Code::HostName, name.span, what).help("join hosts that one address can stand for")
}

pub(super) fn unknown_server(server: &Spanned<String>, known: &[&str]) -> Finding {
    let what = format!("the contract gives `{}` to no operation", server.value);
    let help = match known {
        [] => "its operations have no `servers` of their own: list them here by method and path".to_owned(),
        known => format!("operations have {}", list(known)),
    };
    Finding::error(Code::HostServer, server.span, what).help(help).did_you_mean(&server.value, known)
}

pub(super) fn host_twice(answered: &Spanned<String>, operation: &str, first: &Spanned<String>) -> Finding {
    let what = format!("`{operation}` is answered by the host `{}` already", first.value);
    Finding::error(Code::HostTwice, answered.span, what)
        .with_related(first.span, "the other host")
        .help("leave one of the two out")
}

pub(super) fn fragment_twice(name: &Spanned<String>, first: Span) -> Finding {
    Finding::error(Code::DeclaredTwice, name.span, format!("the fragment `{}` is declared twice", name.value))
        .with_related(first, "first declared here")
}

pub(super) fn unknown_placeholder(name: &str, text: &str, span: Span, known: &[&str]) -> Finding {
    let finding = Finding::error(Code::FragmentArguments, span, format!("the fragment takes no `{name}`"))
        .help(format!("add it to `takes:`; a text that holds `<{name}>` itself is passed as an argument"));
    match suggest(name, known) {
        Some(near) => finding.suggest(text.replace(&format!("<{name}>"), &format!("<{near}>"))),
        None => finding,
    }
}

/// `near` is a placeholder without an argument that has nearly this name.
pub(super) fn unused_parameter(name: &str, span: Span) -> Finding {
    let message = format!("nothing in the fragment is `<{name}>`");
    Finding::warning(Code::Unused, span, message).help("remove it, or use it")
}
pub(super) fn misspelt_parameter(name: &str, span: Span, near: &str) -> Finding {
    let message = format!("nothing in the fragment is `<{name}>`");
    Finding::error(Code::FragmentArguments, span, message).suggest(near)
}

pub(super) fn misspelt_use(key: &Key) -> Finding {
    Finding::error(Code::FragmentUse, key.span, format!("there is no form `{}`", key.name)).suggest("$use")
}

pub(super) fn unknown_fragment(name: &Spanned<String>, known: &[(&str, Span)]) -> Finding {
    Finding::error(Code::UnknownFragment, name.span, format!("there is no fragment `{}`", name.value))
        .help("declare it under `fragments:`")
        .did_you_mean_declared(&name.value, known)
        .with_declarations(NameKind::Fragment, &name.value)
}

pub(super) fn fragment_use(span: Span) -> Finding {
    Finding::error(Code::FragmentUse, span, "this is not the use of a fragment")
        .help("write its name, or `{name: {argument: value}}`")
}

pub(super) fn fragment_of_no_keys(span: Span, block: Span) -> Finding {
    Finding::error(Code::FragmentUse, span, "beside other keys a fragment gives keys, and this one does not")
        .with_related(block, "the block")
        .help("use it as a value of its own")
}

pub(super) fn fragment_circle(name: &Spanned<String>, chain: &[&str]) -> Finding {
    let message = format!("the fragment `{}` leads to itself", name.value);
    Finding::error(Code::LeadsToItself, name.span, message).label(chain.join(" → "))
}

pub(super) fn fragments_too_deep(span: Span, most: usize) -> Finding {
    Finding::error(
        Code::TooLarge,
        span,
        format!("with its fragments, more than {most} blocks inside one another"),
    )
}

pub(super) fn fragments_too_large(span: Span, most: usize) -> Finding {
    Finding::error(Code::TooLarge, span, format!("the uses of fragments make more than {most} values"))
}

pub(super) fn unknown_argument(key: &Key, fragment: &str, known: Vec<&str>) -> Finding {
    let finding =
        Finding::error(Code::FragmentArguments, key.span, format!("`{fragment}` takes no `{}`", key.name));
    match known.as_slice() {
        [] => finding.help("leave it out"),
        _ => finding.help(format!("it takes {}", list(&known))).did_you_mean(&key.name, known),
    }
}

pub(super) fn missing_argument(fragment: &Spanned<String>, parameter: &Spanned<String>) -> Finding {
    let message = format!("`{}` needs the argument `{}`", fragment.value, parameter.value);
    Finding::error(Code::FragmentArguments, fragment.span, message)
        .with_related(parameter.span, "it is taken here")
}

pub(super) fn argument_in_text(name: &str, argument: &Node, span: Span) -> Finding {
    let message = format!("`<{name}>` is part of a text, and the argument is {}", argument.kind_word());
    Finding::error(Code::FragmentArguments, argument.span, message).with_related(span, "the text")
}
