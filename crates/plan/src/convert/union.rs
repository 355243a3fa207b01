//! A choice of conversions for one place, written as a list: the first one that accepts the value
//! converts it. For places where a side has several forms of the same value.

use super::{Arguments, ConversionKind, Domain, Facts, Law, Spec, Yield};
use crate::{Kinds, SideId};
use switchback_json::raw::{self, Kind};

/// Texts for messages. The kinds are empty here because the alternatives determine them.
pub(super) const SPEC: Spec = Spec {
    name: "a list of conversions",
    about: "the first of several conversions that takes the value",
    arguments: Arguments::None,
    old: Domain { kinds: Kinds::from_kinds(&[]), integer: false, absent: false, total: false },
    new: Domain { kinds: Kinds::from_kinds(&[]), integer: false, absent: false, total: false },
    null_passes: false,
    structural: false,
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

/// Returns whether for each possible kind of value, one alternative accepts all values of that
/// kind.
pub(super) fn takes_all(of: &[ConversionKind], from: SideId, facts: &Facts) -> bool {
    const KINDS: [Kind; 6] = [Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
    // An alternative must accept all values of one kind, but need not accept all kinds.
    let taken = |kind: Kind| {
        let facts = facts.only(kind);
        of.iter().any(|one| one.kinds(from).contains(kind) && one.takes_all(from, &facts))
    };
    let null = of.iter().any(|one| one.spec().null_passes);
    let comes = |kind: &Kind| facts.kinds.contains(*kind) && !(*kind == Kind::Null && null);
    !facts.any && KINDS.into_iter().filter(comes).all(taken)
}

pub(super) fn convert(of: &[ConversionKind], json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
    let start = out.len();
    for kind in of {
        if let Some(done) = kind.convert(json, forward, out) {
            return Some(done);
        }
        // An alternative that failed may have written a part of its result, which the next one must not
        // extend.
        out.truncate(start);
    }
    // Null passes if an alternative passes it, but only after all alternatives rejected it.
    if raw::kind(json) == Some(Kind::Null) && of.iter().any(|kind| kind.spec().null_passes) {
        out.extend_from_slice(json);
        return Some(Yield::Written);
    }
    None
}
