//! `null_is_absent`: a member that the old side omits if it has no value, and the new side writes
//! as null. The null for an absent source is written when the enclosing object closes; see
//! [`super::Conversion::absent`].

use super::{Arguments, ConversionKind, Domain, Example, Holds, Law, Spec, Yield};
use crate::Kinds;
use switchback_json::raw::{self, Kind};

const SOMETHING: &[Kind] = &[Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
const ANYTHING: &[Kind] = &[Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];

pub(super) const SPEC: Spec = Spec {
    name: "null_is_absent",
    about: "absent on the old side, null on the new one; any other value is the same",
    arguments: Arguments::None,
    old: Domain { kinds: Kinds::from_kinds(SOMETHING), integer: false, absent: true, total: true },
    new: Domain { kinds: Kinds::from_kinds(ANYTHING), integer: false, absent: false, total: true },
    null_passes: false,
    structural: false,
    law: Law::Iso,
    examples: &[
        example(None, Some("null"), Holds::Both),
        example(Some("\"x\""), Some("\"x\""), Holds::Both),
        example(Some("null"), Some("null"), Holds::Forward),
    ],
};

const fn example(old: Option<&'static str>, new: Option<&'static str>, holds: Holds) -> Example {
    Example { written: "null_is_absent", kind: || ConversionKind::AbsentToNull, old, new, holds }
}

pub(super) fn to_new(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    out.extend_from_slice(json);
    Some(Yield::Written)
}

pub(super) fn to_old(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    if raw::kind(json) == Some(Kind::Null) {
        return Some(Yield::Nothing);
    }
    to_new(json, out)
}
