//! `integer_to_string`: an integer on the old side, the same digits as a string on the new one.
//! Digits are copied, so integers of any length survive. `string_to_integer` is the same with the
//! sides exchanged.

use super::{Arguments, ConversionKind, Domain, Example, Facts, Holds, Law, Spec, Yield};
use crate::Kinds;
use switchback_json::raw::Kind;
use switchback_json::text;

pub(super) const INTEGER: Domain =
    Domain { kinds: Kinds::from_kinds(&[Kind::Number]), integer: true, absent: false, total: true };
pub(super) const DIGITS: Domain =
    Domain { kinds: Kinds::from_kinds(&[Kind::String]), integer: false, absent: false, total: false };

pub(super) const SPEC: Spec = Spec {
    name: "integer_to_string",
    about: "an integer on the old side, the same digits as a string on the new one",
    arguments: Arguments::None,
    old: INTEGER,
    new: DIGITS,
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[
        example("7", "\"7\"", Holds::Both),
        example("17", "\"1\\u0037\"", Holds::Backward),
        example("-12", "\"-12\"", Holds::Both),
        example("900719925474099312345", "\"900719925474099312345\"", Holds::Both),
        example("null", "null", Holds::Both),
    ],
};

const fn example(old: &'static str, new: &'static str, holds: Holds) -> Example {
    Example {
        written: "integer_to_string",
        kind: || ConversionKind::IntegerToString,
        old: Some(old),
        new: Some(new),
        holds,
    }
}

pub(super) fn to_string(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    is_integer(json).then(|| {
        out.push(b'"');
        out.extend_from_slice(json);
        out.push(b'"');
        Yield::Written
    })
}

pub(super) fn to_integer(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    let raw = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    // Digits may be written as escapes, such as `\u0037`.
    let digits = text::decode(std::str::from_utf8(raw).ok()?);
    is_integer(digits.as_bytes()).then(|| {
        out.extend_from_slice(digits.as_bytes());
        Yield::Written
    })
}

/// Returns whether the text is an integer in JSON notation: no fraction, no exponent, no leading
/// zeros.
pub(super) fn is_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Returns whether all texts of a place are integers in JSON notation.
pub(super) fn all_digits(facts: &Facts) -> bool {
    // A value that is not a string does not matter here.
    let in_quotes = |text: &[u8]| {
        text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).is_none_or(is_integer)
    };
    !facts.any && (!facts.kinds.string || facts.digits || facts.all_listed(in_quotes))
}
