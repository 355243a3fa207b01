//! `empty_is_array`: an object that the old side writes as `[]` if it has no members, and the new
//! side as null. `{}` (either side) and `[]` (new side) are also read as empty.

use super::{Arguments, ConversionKind, Domain, Example, Holds, Law, Spec, Yield};
use crate::Kinds;
use switchback_json::raw::{self, Kind};

pub(super) const SPEC: Spec = Spec {
    name: "empty_is_array",
    about: "`[]` for none on the old side, null for none on the new one; else an object",
    arguments: Arguments::None,
    old: Domain {
        kinds: Kinds::from_kinds(&[Kind::Array, Kind::Object]),
        integer: false,
        absent: false,
        total: false,
    },
    new: Domain {
        kinds: Kinds::from_kinds(&[Kind::Null, Kind::Object]),
        integer: false,
        absent: false,
        total: true,
    },
    null_passes: false,
    structural: true,
    law: Law::Iso,
    examples: &[
        example("[]", "null", Holds::Both),
        example("{\"a\": 1}", "{\"a\": 1}", Holds::Both),
        example("[]", "[]", Holds::Backward),
        example("[]", "{}", Holds::Backward),
        example("{}", "null", Holds::Forward),
    ],
};

const fn example(old: &'static str, new: &'static str, holds: Holds) -> Example {
    let kind = || ConversionKind::EmptyArrayToNull;
    Example { written: "empty_is_array", kind, old: Some(old), new: Some(new), holds }
}

pub(super) fn to_new(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    convert(json, b"null", out)
}

pub(super) fn to_old(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    if raw::kind(json) == Some(Kind::Null) {
        out.extend_from_slice(b"[]");
        return Some(Yield::Written);
    }
    convert(json, b"[]", out)
}

fn convert(json: &[u8], none: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    // The first character inside the brackets decides, so the value need not be parsed.
    let is_empty = matches!(json.get(raw::skip_blank(json, 1)), Some(b']' | b'}'));
    match (raw::kind(json), is_empty) {
        (Some(Kind::Array | Kind::Object), true) => out.extend_from_slice(none),
        (Some(Kind::Object), false) => out.extend_from_slice(json),
        _ => return None,
    }
    Some(Yield::Written)
}
