//! `text_to_base64` and its mirror `base64_to_text`: a text, and its UTF-8 bytes in base64 with
//! padding (RFC 4648, section 4). Other alphabets, missing padding, and bytes that are no UTF-8 are
//! outside the domain.

use super::{Arguments, ConversionKind, Convert, Domain, Example, Facts, Holds, Law, Spec, Yield};
use crate::{Kinds, SideId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Value, text};

const fn texts(total: bool) -> Domain {
    Domain { kinds: Kinds::from_kinds(&[Kind::String]), integer: false, absent: false, total }
}

pub(super) const ENCODE: Spec = Spec {
    name: "text_to_base64",
    about: "a text on the old side, its base64 on the new one",
    arguments: Arguments::None,
    old: texts(true),
    new: texts(false),
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[
        example(SideId::NEW, "\"Tea & Milk\"", "\"VGVhICYgTWlsaw==\""),
        example(SideId::NEW, "\"é\"", "\"w6k=\""),
        example(SideId::NEW, "null", "null"),
    ],
};

pub(super) const DECODE: Spec = Spec {
    name: "base64_to_text",
    about: "base64 on the old side, the text that it encodes on the new one",
    arguments: Arguments::None,
    old: texts(false),
    new: texts(true),
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[
        example(SideId::OLD, "\"VGVhICYgTWlsaw==\"", "\"Tea & Milk\""),
        example(SideId::OLD, "\"\"", "\"\""),
    ],
};

const fn example(coded: SideId, old: &'static str, new: &'static str) -> Example {
    let (written, kind): (_, fn() -> ConversionKind) = match coded.0 {
        1 => (ENCODE_NAME, || ConversionKind::Own(Arc::new(Base64 { coded: SideId::NEW }))),
        _ => (DECODE_NAME, || ConversionKind::Own(Arc::new(Base64 { coded: SideId::OLD }))),
    };
    Example { written, kind, old: Some(old), new: Some(new), holds: Holds::Both }
}

const ENCODE_NAME: &str = "text_to_base64";
const DECODE_NAME: &str = "base64_to_text";

#[derive(Debug)]
struct Base64 {
    /// The side with base64.
    coded: SideId,
}

impl Convert for Base64 {
    fn spec(&self) -> &'static Spec {
        if self.coded == SideId::NEW { &ENCODE } else { &DECODE }
    }

    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        let value = Value::parse(json, &Limits::UNLIMITED).ok()?;
        let from = value.as_str()?;
        let encodes = forward == (self.coded == SideId::NEW);
        let to = match encodes {
            true => STANDARD.encode(from.as_bytes()),
            false => String::from_utf8(STANDARD.decode(from.as_bytes()).ok()?).ok()?,
        };
        out.push(b'"');
        out.extend_from_slice(text::escape(&to).as_bytes());
        out.push(b'"');
        Some(Yield::Written)
    }

    fn domain_text(&self, from: SideId) -> &'static str {
        if from == self.coded { "the base64 of a text" } else { "a text" }
    }

    fn takes_all(&self, from: SideId, _facts: &Facts) -> bool {
        from != self.coded
    }

    fn sample(&self, side: SideId, seed: u64) -> String {
        let text = format!("sample {seed}");
        if side == self.coded { format!("\"{}\"", STANDARD.encode(text)) } else { format!("\"{text}\"") }
    }
}
