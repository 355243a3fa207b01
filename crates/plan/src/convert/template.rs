//! `template`: on each side, a text with one hole, `{}`; the content of the hole is the same on
//! both. `prefix` is a template with an empty suffix. If a template consists of the hole alone and
//! its place holds integers, the digits are written as a number. A text without the prefix and
//! suffix of its template is outside the domain.

use super::integer_to_string::is_integer;
use super::{
    ArgumentError, Arguments, ConversionKind, Convert, Domain, Example, Facts, Given, Holds, Law, Spec, Yield,
};
use crate::{Kinds, SideId};
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Value, text};

const TEXT: Domain = Domain {
    kinds: Kinds::from_kinds(&[Kind::String, Kind::Number]),
    integer: false,
    absent: false,
    total: false,
};

pub(super) const TEMPLATE: Spec = Spec {
    name: "template",
    about: "a text around `{}` on the new side, or on each; what stands there is the same on both",
    arguments: Arguments::Own {
        such_as: "{template: 'https://api.example.com/notes/{}'}",
        schema: r#"{"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 2, "maxProperties": 2}]}"#,
        read: |given| {
            with_parse(given, &TEMPLATE, |text| {
                let (before, after) = text.split_once("{}").ok_or("it has no `{}`")?;
                // With two holes, the same text could be split in several ways.
                if after.contains("{}") {
                    return Err("it has more than one `{}`".into());
                }
                Ok((before.to_owned(), after.to_owned()))
            })
        },
    },
    old: TEXT,
    new: TEXT,
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[Example {
        written: "{template: 'https://x.org/notes/{}.json'}",
        kind: || sample(&TEMPLATE, "https://x.org/notes/", ".json"),
        old: Some("\"7\""),
        new: Some("\"https://x.org/notes/7.json\""),
        holds: Holds::Both,
    }],
};

pub(super) const PREFIX: Spec = Spec {
    name: "prefix",
    about: "a text that on the new side, or on each, stands behind a prefix",
    arguments: Arguments::Own {
        such_as: "{prefix: '#'}",
        schema: r#"{"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 2, "maxProperties": 2}]}"#,
        read: |given| with_parse(given, &PREFIX, |text| Ok((text.to_owned(), String::new()))),
    },
    old: TEXT,
    new: TEXT,
    null_passes: true,
    structural: false,
    law: Law::Iso,
    examples: &[prefix("\"general\"", "\"#general\""), prefix("\"\"", "\"#\""), prefix("null", "null")],
};

const fn prefix(old: &'static str, new: &'static str) -> Example {
    Example {
        written: "{prefix: '#'}",
        kind: || sample(&PREFIX, "#", ""),
        old: Some(old),
        new: Some(new),
        holds: Holds::Both,
    }
}

fn sample(spec: &'static Spec, before: &str, after: &str) -> ConversionKind {
    let sides = [Around::default(), Around { before: before.into(), after: after.into(), number: false }];
    ConversionKind::Own(Arc::new(Template { spec, sides }))
}

/// The text around the hole.
#[derive(Debug, Default)]
struct Around {
    before: String,
    after: String,
    /// Whether the template consists of the hole alone and its place holds integers.
    number: bool,
}

#[derive(Debug)]
struct Template {
    spec: &'static Spec,
    sides: [Around; 2],
}

type Parse = fn(&str) -> Result<(String, String), ArgumentError>;

fn with_parse(given: &Given<'_>, spec: &'static Spec, parse: Parse) -> Result<ConversionKind, ArgumentError> {
    let own = |value: &Value| match value.as_str() {
        Some(text) => parse(&text),
        None => Err("it takes a text, or one for each side".into()),
    };
    let sides = match given.by_side(&[])? {
        Some([old, new]) => [own(old)?, own(new)?],
        None => [(String::new(), String::new()), own(given.arguments)?],
    };
    if sides[0] == sides[1] {
        return Err("both sides have the same text, so that nothing is converted".into());
    }
    let mut at = 0;
    let sides = sides.map(|(before, after)| {
        let alone = before.is_empty() && after.is_empty();
        // The digits are a number only if the place cannot hold a text.
        let number = alone
            && given.facts[at].is_some_and(|facts| !facts.any && facts.kinds.number && !facts.kinds.string);
        at += 1;
        Around { before, after, number }
    });
    Ok(ConversionKind::Own(Arc::new(Template { spec, sides })))
}

impl Template {
    fn side(&self, side: SideId) -> &Around {
        &self.sides[usize::from(side.0)]
    }
}

impl Convert for Template {
    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn convert(&self, json: &[u8], forward: bool, out: &mut Vec<u8>) -> Option<Yield> {
        let [from, to] = if forward { [0, 1] } else { [1, 0] }.map(|at: usize| &self.sides[at]);
        let hole = if from.number {
            is_integer(json).then(|| String::from_utf8_lossy(json).into_owned())?
        } else {
            let value = Value::parse(json, &Limits::UNLIMITED).ok()?;
            // Prefix first: on the remaining text, the suffix cannot overlap with the prefix.
            let whole = value.as_str()?;
            whole.strip_prefix(from.before.as_str())?.strip_suffix(from.after.as_str())?.to_owned()
        };
        match to.number {
            true if is_integer(hole.as_bytes()) => out.extend_from_slice(hole.as_bytes()),
            true => return None,
            false => {
                let whole = format!("{}{hole}{}", to.before, to.after);
                out.extend_from_slice(format!("\"{}\"", text::escape(&whole)).as_bytes());
            }
        }
        Some(Yield::Written)
    }

    fn domain_text(&self, from: SideId) -> &'static str {
        match self.side(from) {
            Around { number: true, .. } => "an integer",
            _ if self.side(from.other()).number => "a text of its template, with digits in it",
            _ => "a text of its template",
        }
    }

    fn kinds(&self, side: SideId) -> Kinds {
        Kinds::from_kinds(if self.side(side).number { &[Kind::Number] } else { &[Kind::String] })
    }

    fn is_integer(&self, side: SideId) -> bool {
        self.side(side).number
    }

    fn takes_all(&self, from: SideId, facts: &Facts) -> bool {
        let (own, other) = (self.side(from), self.side(from.other()));
        match own.number {
            true => true,
            // A bare hole accepts any text. If the other side needs digits, the contract must
            // guarantee them.
            false if own.before.is_empty() && own.after.is_empty() => {
                !other.number || super::integer_to_string::all_digits(facts)
            }
            false => false,
        }
    }

    fn sample(&self, side: SideId, seed: u64) -> String {
        match self.side(side) {
            Around { number: true, .. } => seed.to_string(),
            Around { before, after, .. } => {
                format!("\"{}\"", text::escape(&format!("{before}{seed}{after}")))
            }
        }
    }
}
