//! `split`: one text on the old side, the list of its parts between separators on the new one;
//! `join` is its mirror. The empty text is the empty list, so a list of one empty text, and texts
//! that contain the separator, are outside the domain. With the empty separator, the parts are the
//! characters. `csv` is the special case of a comma.

use super::{
    ArgumentError, Arguments, ConversionKind, Convert, Domain, Example, Facts, Given, Holds, Law, Spec, Yield,
};
use crate::{Kinds, SideId};
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Value, text};

const TEXT: Domain =
    Domain { kinds: Kinds::from_kinds(&[Kind::String]), integer: false, absent: false, total: true };
const LIST: Domain =
    Domain { kinds: Kinds::from_kinds(&[Kind::Array]), integer: false, absent: false, total: false };

pub(super) const SPLIT: Spec = Spec {
    name: "split",
    about: "one text on the old side, the texts between a separator on the new one",
    arguments: Arguments::Own {
        such_as: "{split: ' '}",
        schema: r#"{"type": "string"}"#,
        read: |given| parse(given, SideId::NEW),
    },
    old: TEXT,
    new: LIST,
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

pub(super) const JOIN: Spec = Spec {
    name: "join",
    about: "a list of texts on the old side, one text with a separator between them on the new one",
    arguments: Arguments::Own {
        such_as: "{join: ', '}",
        schema: r#"{"type": "string"}"#,
        read: |given| parse(given, SideId::OLD),
    },
    old: LIST,
    new: TEXT,
    null_passes: true,
    structural: true,
    law: Law::Iso,
    examples: &[
        Example {
            written: "{join: ', '}",
            kind: || kind(", ", SideId::OLD),
            old: Some("[\"tea\",\"milk\"]"),
            new: Some("\"tea, milk\""),
            holds: Holds::Both,
        },
        Example {
            written: "{join: ''}",
            kind: || kind("", SideId::OLD),
            old: Some("[\"a\",\"é\"]"),
            new: Some("\"aé\""),
            holds: Holds::Both,
        },
    ],
};

const fn example(old: &'static str, new: &'static str) -> Example {
    let kind = || kind(" ", SideId::NEW);
    Example { written: "{split: ' '}", kind, old: Some(old), new: Some(new), holds: Holds::Both }
}

fn kind(separator: &str, list: SideId) -> ConversionKind {
    ConversionKind::Own(Arc::new(Split { separator: separator.to_owned(), list }))
}

#[derive(Debug)]
struct Split {
    separator: String,
    /// The side of the list.
    list: SideId,
}

fn parse(given: &Given<'_>, list: SideId) -> Result<ConversionKind, ArgumentError> {
    let separator =
        given.arguments.as_str().ok_or("it takes the text between the parts, which may be empty")?;
    Ok(kind(&separator, list))
}

impl Split {
    /// Returns the parts of a text.
    fn parts<'t>(&self, whole: &'t str) -> Vec<&'t str> {
        match self.separator.as_str() {
            // As in `csv`, the empty text is the empty list.
            _ if whole.is_empty() => Vec::new(),
            // Rust's `split` with an empty separator would yield an empty text at both ends.
            "" => whole.split_inclusive(|_| true).collect(),
            separator => whole.split(separator).collect(),
        }
    }
}

impl Convert for Split {
    fn spec(&self) -> &'static Spec {
        if self.list == SideId::NEW { &SPLIT } else { &JOIN }
    }

    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        let value = Value::parse(json, &Limits::UNLIMITED).ok()?;
        let builds_list = forward == (self.list == SideId::NEW);
        if builds_list {
            let whole = value.as_str()?;
            let parts = self.parts(&whole);
            let parts: Vec<String> = parts.iter().map(|part| format!("\"{}\"", text::escape(part))).collect();
            out.extend_from_slice(format!("[{}]", parts.join(",")).as_bytes());
            return Some(Yield::Written);
        }
        let parts = value.as_array()?.iter().map(|part| Some(part.as_str()?.into_owned()));
        let parts = parts.collect::<Option<Vec<String>>>()?;
        let whole = parts.join(&self.separator);
        // Check the round trip: the separator may also occur across the border of two parts, such
        // as `aa` in `xa` + `aa` + `y`.
        if self.parts(&whole) != parts {
            return None;
        }
        out.extend_from_slice(format!("\"{}\"", text::escape(&whole)).as_bytes());
        Some(Yield::Written)
    }

    fn domain_text(&self, from: SideId) -> &'static str {
        match (from == self.list, self.separator.is_empty()) {
            (false, _) => "a text",
            (true, false) => "a list of texts without the separator",
            (true, true) => "a list of texts of one character",
        }
    }

    fn takes_all(&self, from: SideId, _facts: &Facts) -> bool {
        from != self.list
    }

    fn sample(&self, side: SideId, seed: u64) -> String {
        // Samples are digits, which must not contain the separator. Without one, each is a character.
        let has_digit = self.separator.bytes().any(|byte| byte.is_ascii_digit());
        let count = if has_digit { 0 } else { seed % 4 };
        let part = |at: u64| if self.separator.is_empty() { (seed + at) % 10 } else { seed / 4 + at };
        let parts: Vec<String> = (0..count).map(|at| part(at).to_string()).collect();
        match side == self.list {
            false => format!("\"{}\"", text::escape(&parts.join(&self.separator))),
            true => {
                format!("[{}]", parts.iter().map(|part| format!("\"{part}\"")).collect::<Vec<_>>().join(","))
            }
        }
    }
}
