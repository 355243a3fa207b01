//! `split`: one text on the old side, the list of its parts between separators on the new one. The
//! empty text is the empty list, so a list of one empty text, and texts that contain the separator,
//! are outside the domain. `csv` is the special case of a comma.

use super::{
    ArgumentError, Arguments, ConversionKind, Convert, Domain, Example, Facts, Given, Holds, Law, Spec, Yield,
};
use crate::{Kinds, SideId};
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Value, text};

pub(super) const SPEC: Spec = Spec {
    name: "split",
    about: "one text on the old side, the texts between a separator on the new one",
    arguments: Arguments::Own {
        such_as: "{split: ' '}",
        schema: r#"{"type": "string", "minLength": 1}"#,
        read: parse,
    },
    old: Domain { kinds: Kinds::from_kinds(&[Kind::String]), integer: false, absent: false, total: true },
    new: Domain { kinds: Kinds::from_kinds(&[Kind::Array]), integer: false, absent: false, total: false },
    null_passes: true,
    structural: true,
    law: Law::Iso,
    examples: &[
        example("\"Ada Lovelace\"", "[\"Ada\",\"Lovelace\"]"),
        example("\"Ada\"", "[\"Ada\"]"),
        example("\"\"", "[]"),
        example("null", "null"),
    ],
};

const fn example(old: &'static str, new: &'static str) -> Example {
    let kind = || ConversionKind::Own(Arc::new(Split { separator: " ".into() }));
    Example { written: "{split: ' '}", kind, old: Some(old), new: Some(new), holds: Holds::Both }
}

#[derive(Debug)]
struct Split {
    separator: String,
}

fn parse(given: &Given<'_>) -> Result<ConversionKind, ArgumentError> {
    match given.arguments.as_str() {
        // Rust's `split` with an empty separator would yield every character, with an empty text at both
        // ends.
        Some(separator) if !separator.is_empty() => {
            Ok(ConversionKind::Own(Arc::new(Split { separator: separator.into_owned() })))
        }
        _ => Err("it takes the text that stands between".into()),
    }
}

impl Convert for Split {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        let value = Value::parse(json, &Limits::UNLIMITED).ok()?;
        if forward {
            let whole = value.as_str()?;
            // As in `csv`, the empty text is the empty list.
            let parts = whole.split(self.separator.as_str()).filter(|_| !whole.is_empty());
            let parts: Vec<String> = parts.map(|part| format!("\"{}\"", text::escape(part))).collect();
            out.extend_from_slice(format!("[{}]", parts.join(",")).as_bytes());
            return Some(Yield::Written);
        }
        let parts = value.as_array()?.iter().map(|part| Some(part.as_str()?.into_owned()));
        let parts = parts.collect::<Option<Vec<String>>>()?;
        let whole = parts.join(&self.separator);
        // Check the round trip: the separator may also occur across the border of two parts, such
        // as `aa` in `xa` + `aa` + `y`.
        let comes_back =
            if whole.is_empty() { parts.is_empty() } else { whole.split(&self.separator).eq(&parts) };
        if !comes_back {
            return None;
        }
        out.extend_from_slice(format!("\"{}\"", text::escape(&whole)).as_bytes());
        Some(Yield::Written)
    }

    fn expected(&self, from: SideId) -> &'static str {
        if from == SideId::OLD { "a text" } else { "a list of texts without the separator" }
    }

    fn takes_all(&self, from: SideId, _facts: &Facts) -> bool {
        from == SideId::OLD
    }

    fn sample(&self, side: SideId, seed: u64) -> String {
        let parts: Vec<String> = (0..seed % 4).map(|at| (seed / 4 + at).to_string()).collect();
        // The digits of a sample would contain the separator.
        if self.separator.bytes().any(|byte| byte.is_ascii_digit()) {
            return if side == SideId::OLD { "\"\"".to_owned() } else { "[]".to_owned() };
        }
        match side {
            SideId::OLD => format!("\"{}\"", text::escape(&parts.join(&self.separator))),
            _ => {
                format!("[{}]", parts.iter().map(|part| format!("\"{part}\"")).collect::<Vec<_>>().join(","))
            }
        }
    }
}
