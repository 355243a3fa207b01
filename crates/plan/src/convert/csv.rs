//! `csv`: comma-separated text on the old side, an array of strings on the new one. Spaces are
//! preserved. The empty text is the empty array, so an array of one empty text, and texts that
//! contain commas, are outside the domain.

use super::{Arguments, ConversionKind, Domain, Example, Facts, Holds, Law, Spec, Yield};
use crate::Kinds;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Value, text};

pub(super) const SPEC: Spec = Spec {
    name: "csv",
    about: "`a,b,c` on the old side, an array of texts on the new one",
    arguments: Arguments::None,
    old: Domain { kinds: Kinds::from_kinds(&[Kind::String]), integer: false, absent: false, total: true },
    new: Domain { kinds: Kinds::from_kinds(&[Kind::Array]), integer: false, absent: false, total: false },
    null_passes: true,
    structural: true,
    law: Law::Iso,
    examples: &[
        example("\"a,b,c\"", "[\"a\",\"b\",\"c\"]"),
        example("\"one\"", "[\"one\"]"),
        example("\"\"", "[]"),
        example("\"a, b\"", "[\"a\",\" b\"]"),
        example("\"a,\"", "[\"a\",\"\"]"),
    ],
};

const fn example(old: &'static str, new: &'static str) -> Example {
    let kind = || ConversionKind::CsvToArray;
    Example { written: "csv", kind, old: Some(old), new: Some(new), holds: Holds::Both }
}

pub(super) fn to_new(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    let value = Value::parse(json, &Limits::UNLIMITED).ok()?;
    let list = value.as_str()?;
    out.push(b'[');
    // `split` would yield one empty item for the empty text.
    if !list.is_empty() {
        for (at, item) in list.split(',').enumerate() {
            out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
            out.extend_from_slice(text::escape(item).as_bytes());
            out.push(b'"');
        }
    }
    out.push(b']');
    Some(Yield::Written)
}

pub(super) fn to_old(json: &[u8], out: &mut Vec<u8>) -> Option<Yield> {
    let value = Value::parse(json, &Limits::UNLIMITED).ok()?;
    let items = value.as_array()?;
    out.push(b'"');
    for (at, item) in items.iter().enumerate() {
        let item = item.as_str()?;
        // A comma would split the item, and a single empty item would read back as an empty array.
        let ambiguous = item.contains(',') || (item.is_empty() && items.len() == 1);
        if ambiguous {
            return None;
        }
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(text::escape(&item).as_bytes());
    }
    out.push(b'"');
    Some(Yield::Written)
}

/// Returns whether all lists of a place can be joined: the contract lists their elements, and none
/// is empty or contains a comma.
pub(super) fn all_join(facts: &Facts) -> bool {
    let joins = |item: &[u8]| item != b"\"\"" && !item.contains(&b',');
    facts.items.as_ref().is_some_and(|items| items.digits || items.all_listed(joins))
}
