//! The findings about YAML text and about the structure of any file.

use super::bounds::YamlLimits;
use crate::diagnostic::{Code, Finding, Span};

pub(super) fn syntax(span: Span, what: &str, tab: bool) -> Finding {
    let help = tab.then(|| "indent with spaces: YAML allows no tabs there".to_owned());
    Finding::error(Code::YamlSyntax, span, format!("this is not YAML: {what}")).maybe_help(help)
}

/// Adds the place of an unclosed bracket or quote to a syntax error.
pub(super) fn with_unclosed(fault: Finding, open: Span) -> Finding {
    fault.with_related(open, "opened here, and not closed")
}

pub(super) fn not_utf8(span: Span, byte: u8) -> Finding {
    Finding::error(Code::NotUtf8, span, format!("the byte 0x{byte:02x} here is not UTF-8"))
        .help("save the file as UTF-8")
}

pub(super) fn empty_file(span: Span) -> Finding {
    Finding::error(Code::EmptyFile, span, "the file is empty")
}

pub(super) fn too_many_bytes(span: Span, bytes: usize, bounds: &YamlLimits) -> Finding {
    let most = bounds.bytes;
    Finding::error(Code::TooLarge, span, format!("the file has {bytes} bytes, and at most {most} are read"))
}

pub(super) fn too_deep(span: Span, bounds: &YamlLimits) -> Finding {
    let most = bounds.depth;
    Finding::error(Code::TooLarge, span, format!("more than {most} lists and maps inside one another"))
}

pub(super) fn too_many_nodes(span: Span, bounds: &YamlLimits) -> Finding {
    Finding::error(Code::TooLarge, span, format!("the file has more than {} values", bounds.nodes))
}

pub(super) fn duplicate_key(name: &str, again: Span, first: Span, lenient: bool) -> Finding {
    let message = format!("the key `{name}` is given twice");
    let finding = match lenient {
        true => Finding::warning(Code::DuplicateKey, again, message).help("the last one counts"),
        false => Finding::error(Code::DuplicateKey, again, message),
    };
    finding.label("given again here").with_related(first, "first given here")
}

pub(super) fn unknown_alias(span: Span, lenient: bool) -> Finding {
    let finding = if lenient { Finding::warning } else { Finding::error };
    finding(Code::Anchor, span, "this alias stands for nothing: there is no such anchor before it".to_owned())
}

pub(super) fn merge_key(span: Span) -> Finding {
    Finding::error(Code::Anchor, span, "merge keys (`<<`) are not read")
        .help("write the keys out, or use a fragment: `$use: name`")
}

pub(super) fn tag(span: Span, tag: &str) -> Finding {
    Finding::error(Code::Tag, span, format!("tags (`{tag}`) are not read"))
        .help("leave it out, or put the value in quotes if the exclamation mark is meant")
}

pub(super) fn second_document(span: Span) -> Finding {
    Finding::error(Code::SeveralDocuments, span, "a second document starts here")
        .help("put it in a file of its own")
}

pub(super) fn ambiguous_boolean(span: Span, text: &str) -> Finding {
    Finding::error(Code::AmbiguousBoolean, span, format!("`{text}` is a boolean for some readers of YAML"))
        .help(format!("quote it ('{text}') if the text is meant, else write `true` or `false`"))
}

pub(super) fn ambiguous_number(span: Span, text: &str) -> Finding {
    Finding::error(Code::AmbiguousNumber, span, format!("`{text}` is a number for YAML, but not for JSON"))
        .help(format!("quote it ('{text}') if the text is meant, else write the number as in JSON"))
}

pub(super) fn key_kind(span: Span) -> Finding {
    Finding::error(Code::KeyKind, span, "a key must be a text")
}

pub(super) fn unknown_key<'a>(
    name: &str,
    span: Span,
    what: &str,
    allowed: impl Iterator<Item = &'a str> + Clone,
) -> Finding {
    Finding::error(Code::UnknownKey, span, format!("{what} has no key `{name}`"))
        .maybe_help(list_of(allowed.clone()).map(|keys| format!("possible here: {keys}")))
        .did_you_mean(name, allowed)
}

pub(super) fn missing_key(name: &str, span: Span, what: &str) -> Finding {
    Finding::error(Code::MissingKey, span, format!("{what} needs the key `{name}`"))
}

pub(super) fn wrong_kind(span: Span, wanted: &str, found: &str, help: Option<String>) -> Finding {
    Finding::error(Code::WrongKind, span, format!("{wanted} is needed here, and this is {found}"))
        .maybe_help(help)
}

pub(super) fn unknown_word<'a>(
    word: &str,
    span: Span,
    allowed: impl Iterator<Item = &'a str> + Clone,
) -> Finding {
    Finding::error(Code::UnknownWord, span, format!("`{word}` is not one of the words possible here"))
        .maybe_help(list_of(allowed.clone()).map(|words| format!("possible here: {words}")))
        .did_you_mean(word, allowed)
}

pub(super) fn out_of_range(span: Span, min: u64, max: u64) -> Finding {
    Finding::error(Code::OutOfRange, span, format!("a whole number from {min} to {max} is needed here"))
}

/// Maximum number of words in a suggestion.
const LISTED_MAX: usize = 24;

fn list_of<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let words: Vec<String> = words.take(LISTED_MAX + 1).map(|word| format!("`{word}`")).collect();
    (!words.is_empty() && words.len() <= LISTED_MAX).then(|| words.join(", "))
}
