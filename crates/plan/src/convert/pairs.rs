//! `pairs`: an object of key to value on the old side, an array of entries on the new one. Each
//! entry is an object with one named member for the key and one for the value. Other members of an
//! entry are lost towards the old side.

use super::{Arguments, ConversionKind, Domain, Example, Holds, Law, Spec, Yield};
use crate::Kinds;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Object, Str, Value, text};

pub(super) const SPEC: Spec = Spec {
    name: "pairs",
    about: "an object of key to value on the old side, an array of entries on the new one",
    arguments: Arguments::Pairs,
    old: Domain { kinds: Kinds::from_kinds(&[Kind::Object]), integer: false, absent: false, total: true },
    new: Domain { kinds: Kinds::from_kinds(&[Kind::Array]), integer: false, absent: false, total: false },
    null_passes: true,
    structural: true,
    law: Law::Lens,
    examples: &[
        example("{\"a\":1,\"b\":null}", "[{\"k\":\"a\",\"v\":1},{\"k\":\"b\",\"v\":null}]", Holds::Both),
        example("{}", "[]", Holds::Both),
        example("{\"a\":[1]}", "[{\"id\":4,\"v\":[1],\"k\":\"a\"}]", Holds::Backward),
    ],
};

const fn example(old: &'static str, new: &'static str, holds: Holds) -> Example {
    Example {
        written: "{pairs: {key: k, value: v}}",
        kind: || ConversionKind::ObjectToPairs { key: "k".into(), value: "v".into() },
        old: Some(old),
        new: Some(new),
        holds,
    }
}

pub(super) fn to_new(json: &[u8], key: &str, value: &str, out: &mut Vec<u8>) -> Option<Yield> {
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

pub(super) fn to_old(json: &[u8], key: &str, value: &str, out: &mut Vec<u8>) -> Option<Yield> {
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
