//! `string_to_integer`: a string of digits on the old side, an integer on the new one.
//! [`super::integer_to_string`] implements it in the opposite direction.

use super::integer_to_string::{DIGITS, INTEGER};
use super::{Arguments, ConversionKind, Example, Holds, Law, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "string_to_integer",
    about: "a string of digits on the old side, an integer on the new one",
    arguments: Arguments::None,
    old: DIGITS,
    new: INTEGER,
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[example("\"7\"", "7"), example("\"0\"", "0"), example("null", "null")],
};

const fn example(old: &'static str, new: &'static str) -> Example {
    Example {
        written: "string_to_integer",
        kind: || ConversionKind::StringToInteger,
        old: Some(old),
        new: Some(new),
        holds: Holds::Both,
    }
}
