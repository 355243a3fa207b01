//! `pairs`: an object of key to value on the old side, an array of entries on the new one;
//! `pairs_to_object` is its mirror. Each entry is an object with one named member for the key and
//! one for the value. Other members of an entry are lost towards the side of the object.

use super::{Arguments, ConversionKind, Domain, Example, Holds, Law, Spec, Yield};
use crate::{Kinds, SideId};
use switchback_json::raw::Kind;
use switchback_json::{Limits, Object, Str, Value, text};

const OBJECT: Domain =
    Domain { kinds: Kinds::from_kinds(&[Kind::Object]), integer: false, absent: false, total: true };
const LIST: Domain =
    Domain { kinds: Kinds::from_kinds(&[Kind::Array]), integer: false, absent: false, total: false };

pub(super) const FROM_OBJECT: Spec = Spec {
    name: "pairs",
    about: "an object of key to value on the old side, an array of entries on the new one",
    arguments: Arguments::Pairs,
    old: OBJECT,
    new: LIST,
    null_passes: true,
    structural: true,
    law: Law::Lens,
    examples: &[
        example("{\"a\":1,\"b\":null}", "[{\"k\":\"a\",\"v\":1},{\"k\":\"b\",\"v\":null}]", Holds::Both),
        example("{}", "[]", Holds::Both),
        example("{\"a\":[1]}", "[{\"id\":4,\"v\":[1],\"k\":\"a\"}]", Holds::Backward),
    ],
};

pub(super) const TO_OBJECT: Spec = Spec {
    name: "pairs_to_object",
    about: "an array of entries on the old side, an object of key to value on the new one",
    arguments: Arguments::Pairs,
    old: LIST,
    new: OBJECT,
    null_passes: true,
    structural: true,
    law: Law::OldLens,
    examples: &[
        mirrored("[{\"k\":\"a\",\"v\":1},{\"k\":\"b\",\"v\":null}]", "{\"a\":1,\"b\":null}", Holds::Both),
        mirrored("[]", "{}", Holds::Both),
        mirrored("[{\"id\":4,\"v\":[1],\"k\":\"a\"}]", "{\"a\":[1]}", Holds::Forward),
    ],
};

const fn example(old: &'static str, new: &'static str, holds: Holds) -> Example {
    let kind = || kind("k", "v", SideId::NEW);
    Example { written: "{pairs: {key: k, value: v}}", kind, old: Some(old), new: Some(new), holds }
}

const fn mirrored(old: &'static str, new: &'static str, holds: Holds) -> Example {
    let kind = || kind("k", "v", SideId::OLD);
    Example { written: "{pairs_to_object: {key: k, value: v}}", kind, old: Some(old), new: Some(new), holds }
}

fn kind(key: &str, value: &str, list: SideId) -> ConversionKind {
    ConversionKind::Pairs { key: key.into(), value: value.into(), list }
}

/// Returns the description of the conversion with the array on this side.
pub(super) fn spec(list: SideId) -> &'static Spec {
    if list == SideId::NEW { &FROM_OBJECT } else { &TO_OBJECT }
}

/// Writes the members of an object as an array of entries.
pub(super) fn to_list(json: &[u8], key: &str, value: &str, out: &mut Vec<u8>) -> Option<Yield> {
    let object = Value::parse(json, &Limits::UNLIMITED).ok()?;
    let (key, value) = (text::escape(key), text::escape(value));
    out.push(b'[');
    for (at, (name, content)) in object.as_object()?.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        // The raw text of the name is escaped already.
        out.extend_from_slice(format!("{{\"{key}\":\"{}\",\"{value}\":", name.raw()).as_bytes());
        content.write(out);
        out.push(b'}');
    }
    out.push(b']');
    Some(Yield::Written)
}

/// Writes an array of entries as the members of an object.
pub(super) fn to_object(json: &[u8], key: &str, value: &str, out: &mut Vec<u8>) -> Option<Yield> {
    let entries = Value::parse(json, &Limits::UNLIMITED).ok()?;
    let mut object = Object::new();
    for entry in entries.as_array()?.iter() {
        let Value::String(name) = entry.get(key)? else { return None };
        let name: Str = name.clone();
        // An object cannot represent a repeated key.
        // A second value for a key would silently replace the first one (RFC 8259, section 4, leaves the
        // result open).
        object.insert_new(name, entry.get(value)?.clone()).ok()?;
    }
    Value::Object(object).write(out);
    Some(Yield::Written)
}
