//! Folds: texts that count as equal become the same text. `lower_case` folds the case of letters;
//! `digits` removes all characters but digits, as for telephone numbers. Both directions fold: a
//! folded text is its own inverse, and the original spelling is lost.

use super::{Arguments, ConversionKind, Domain, Example, Holds, Law, Spec, Yield};
use crate::Kinds;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Value, text};

const fn texts(total: bool) -> Domain {
    Domain { kinds: Kinds::from_kinds(&[Kind::String]), integer: false, absent: false, total }
}

pub(super) const LOWER_CASE: Spec = Spec {
    name: "lower_case",
    about: "a text; its letters in lower case on either side",
    arguments: Arguments::None,
    old: texts(true),
    new: texts(true),
    null_passes: true,
    structural: false,
    law: Law::Fold,
    examples: &[
        lower_case("\"ana@example.com\"", "\"ana@example.com\"", Holds::Both),
        lower_case("\"Ana@Example.COM\"", "\"ana@example.com\"", Holds::Forward),
        lower_case("\"joão\"", "\"JOÃO\"", Holds::Backward),
    ],
};

pub(super) const DIGITS: Spec = Spec {
    name: "digits",
    about: "a text with a digit in it; nothing but its digits on either side",
    arguments: Arguments::None,
    old: texts(false),
    new: texts(false),
    null_passes: true,
    structural: false,
    law: Law::Fold,
    examples: &[
        digits("\"5511987654321\"", "\"5511987654321\"", Holds::Both),
        digits("\"+55 (11) 98765-4321\"", "\"5511987654321\"", Holds::Forward),
        digits("\"5511987654321\"", "\"+55 11 98765 4321\"", Holds::Backward),
    ],
};

const fn lower_case(old: &'static str, new: &'static str, holds: Holds) -> Example {
    let kind = || ConversionKind::LowerCase;
    Example { written: "lower_case", kind, old: Some(old), new: Some(new), holds }
}

const fn digits(old: &'static str, new: &'static str, holds: Holds) -> Example {
    Example { written: "digits", kind: || ConversionKind::Digits, old: Some(old), new: Some(new), holds }
}

pub(super) fn to_lower_case(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    let value = Value::parse(json, &Limits::UNLIMITED).ok()?;
    write(&value.as_str()?.chars().flat_map(char::to_lowercase).collect::<String>(), out)
}

pub(super) fn to_digits(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    let value = Value::parse(json, &Limits::UNLIMITED).ok()?;
    let digits: String = value.as_str()?.chars().filter(char::is_ascii_digit).collect();
    // A text without a digit, such as `unknown`, would become empty, and different texts would be equal.
    if digits.is_empty() { None } else { write(&digits, out) }
}

fn write(folded: &str, out: &mut Vec<u8>) -> Option<Yield> {
    out.push(b'"');
    out.extend_from_slice(text::escape(folded).as_bytes());
    out.push(b'"');
    Some(Yield::Written)
}
