//! `integer`: an integer on the old side; an integer or the same digits as a string on the new one.
//! Towards the old side the distinction is lost; towards the new side an integer remains an
//! integer. Digits are copied, so integers of any length survive.

use super::integer_to_string::{INTEGER, is_integer, to_integer};
use super::{Arguments, ConversionKind, Domain, Example, Holds, Law, Spec, Yield};
use crate::Kinds;
use switchback_json::raw::Kind;

pub(super) const SPEC: Spec = Spec {
    name: "integer",
    about: "an integer on the old side, an integer or the same digits as a string on the new one",
    arguments: Arguments::None,
    old: INTEGER,
    new: Domain {
        kinds: Kinds::from_kinds(&[Kind::Number, Kind::String]),
        integer: true,
        absent: false,
        total: false,
    },
    null_passes: true,
    structural: false,
    law: Law::Lens,
    examples: &[
        example("7", "7", Holds::Both),
        example("7", "\"7\"", Holds::Backward),
        example("900719925474099312345", "\"900719925474099312345\"", Holds::Backward),
        example("null", "null", Holds::Both),
    ],
};

const fn example(old: &'static str, new: &'static str, holds: Holds) -> Example {
    Example { written: "integer", kind: || ConversionKind::Integer, old: Some(old), new: Some(new), holds }
}

pub(super) fn to_new(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    is_integer(json).then(|| {
        out.extend_from_slice(json);
        Yield::Written
    })
}

pub(super) fn to_old(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    // Some services write an id as a string in one answer and as a number in another.
    to_new(json, out).or_else(|| to_integer(json, out))
}
