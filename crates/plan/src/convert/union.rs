//! Several conversions for one place, written as a list: the first that takes a value converts it. For places where a side
//! shows one thing in several forms.

use super::{Arguments, ConversionKind, Domain, Law, Spec, Yield};
use crate::{Kinds, SideId};
use switchback_json::raw::{self, Kind};

/// What stands in messages. The kinds are those of its conversions, so none are here.
pub(super) const SPEC: Spec = Spec {
    name: "a list of conversions",
    about: "the first of several conversions that takes the value",
    arguments: Arguments::None,
    old: Domain { kinds: Kinds::of(&[]), integer: false, absent: false, total: false },
    new: Domain { kinds: Kinds::of(&[]), integer: false, absent: false, total: false },
    null_passes: false,
    law: Law::Lens,
    examples: &[],
};

pub(super) fn kinds(of: &[ConversionKind], side: SideId) -> Kinds {
    let mut all = Kinds::default();
    for kind in of {
        let kinds = kind.kinds(side);
        all = Kinds {
            null: all.null || kinds.null,
            boolean: all.boolean || kinds.boolean,
            number: all.number || kinds.number,
            string: all.string || kinds.string,
            array: all.array || kinds.array,
            object: all.object || kinds.object,
        };
    }
    all
}

pub(super) fn convert(of: &[ConversionKind], json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
    let start = out.len();
    for kind in of {
        if let Some(done) = kind.convert(json, forward, out) {
            return Some(done);
        }
        out.truncate(start);
    }
    // Null passes through what lets it pass, when nothing else takes it.
    if raw::kind(json) == Some(Kind::Null) && of.iter().any(|kind| kind.spec().null_passes) {
        out.extend_from_slice(json);
        return Some(Yield::Written);
    }
    None
}
