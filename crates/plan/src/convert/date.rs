//! `date`: a date or time as text in one pattern on the old side, in another on the new one. Both patterns have the same
//! parts, so nothing is made up and nothing is lost; a text that is no date of the calendar is outside the domain.

use super::{Arguments, ConversionKind, Domain, Example, Holds, Law, Spec, Yield};
use crate::Kinds;
use switchback_json::raw::Kind;
use switchback_json::text;

const TEXT: Domain =
    Domain { kinds: Kinds::of(&[Kind::String]), integer: false, absent: false, total: false };

pub(super) const SPEC: Spec = Spec {
    name: "date",
    about: "a date in one pattern of `%Y %m %d %H %M %S` on the old side, in another on the new one",
    arguments: Arguments::Patterns,
    old: TEXT,
    new: TEXT,
    null_passes: true,
    law: Law::Iso,
    examples: &[
        example("\"09/03/2024\"", "\"2024-03-09\""),
        example("\"29/02/2024\"", "\"2024-02-29\""),
        example("null", "null"),
    ],
};

const fn example(old: &'static str, new: &'static str) -> Example {
    Example {
        written: "{date: {v1: '%d/%m/%Y', v2: '%Y-%m-%d'}}",
        kind: || ConversionKind::Date { old: "%d/%m/%Y".into(), new: "%Y-%m-%d".into() },
        old: Some(old),
        new: Some(new),
        holds: Holds::Both,
    }
}

/// The parts of a pattern and their widths in digits; their order is that of [`Parts`].
const PARTS: [(char, usize); 6] = [('Y', 4), ('m', 2), ('d', 2), ('H', 2), ('M', 2), ('S', 2)];

/// The value of each part that a text has.
type Parts = [Option<u16>; 6];

/// One piece of a pattern.
enum Piece {
    Literal(char),
    /// Index into [`PARTS`].
    Part(usize),
}

/// Whether two patterns make a conversion: known parts only, each once, the same on both sides. The error says what is
/// wrong, as part of a sentence.
pub fn check_patterns(old: &str, new: &str) -> Result<(), String> {
    let parts_of = |pattern: &str| {
        let mut seen = [false; 6];
        for piece in pieces(pattern) {
            let piece = piece.map_err(|unknown| format!("`%{unknown}` is not a part of a date"))?;
            if let Piece::Part(part) = piece
                && std::mem::replace(&mut seen[part], true)
            {
                return Err(format!("`%{}` occurs twice in `{pattern}`", PARTS[part].0));
            }
        }
        Ok(seen)
    };
    let (old_parts, new_parts) = (parts_of(old)?, parts_of(new)?);
    match (0..PARTS.len()).find(|&part| old_parts[part] != new_parts[part]) {
        Some(part) => Err(format!("`%{}` is in one of the patterns only", PARTS[part].0)),
        None if old_parts.contains(&true) => Ok(()),
        None => Err(format!("`{old}` has no part of a date")),
    }
}

/// The pieces of a pattern; `Err` is the letter of an unknown part.
fn pieces(pattern: &str) -> impl Iterator<Item = Result<Piece, char>> {
    let mut letters = pattern.chars();
    std::iter::from_fn(move || {
        let letter = letters.next()?;
        if letter != '%' {
            return Some(Ok(Piece::Literal(letter)));
        }
        Some(match letters.next() {
            Some('%') => Ok(Piece::Literal('%')),
            Some(part) => PARTS.iter().position(|(known, _)| *known == part).map(Piece::Part).ok_or(part),
            None => Err(' '),
        })
    })
}

pub(super) fn convert(json: &[u8], from: &str, to: &str, out: &mut Vec<u8>) -> Option<Yield> {
    let raw = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let parts = read(&text::decode(std::str::from_utf8(raw).ok()?), from)?;
    let written = write(&parts, to)?;
    out.push(b'"');
    out.extend_from_slice(text::escape(&written).as_bytes());
    out.push(b'"');
    Some(Yield::Written)
}

fn read(date: &str, pattern: &str) -> Option<Parts> {
    let mut parts = Parts::default();
    let mut rest = date;
    for piece in pieces(pattern) {
        match piece.ok()? {
            Piece::Literal(letter) => rest = rest.strip_prefix(letter)?,
            Piece::Part(part) => {
                let digits = rest.get(..PARTS[part].1)?;
                if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                    return None;
                }
                parts[part] = Some(digits.parse().ok()?);
                rest = &rest[digits.len()..];
            }
        }
    }
    (rest.is_empty() && is_possible(&parts)).then_some(parts)
}

fn write(parts: &Parts, pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 4);
    for piece in pieces(pattern) {
        match piece.ok()? {
            Piece::Literal(letter) => out.push(letter),
            Piece::Part(part) => out.push_str(&format!("{:0width$}", parts[part]?, width = PARTS[part].1)),
        }
    }
    Some(out)
}

/// Whether the parts that are there can stand together in a calendar; 60 is a leap second.
fn is_possible([year, month, day, hour, minute, second]: &Parts) -> bool {
    let within = |part: &Option<u16>, least, most| part.is_none_or(|value| (least..=most).contains(&value));
    let leap = year.is_none_or(|y| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0);
    let days = match month {
        Some(2) => 28 + u16::from(leap),
        Some(4 | 6 | 9 | 11) => 30,
        _ => 31,
    };
    within(month, 1, 12)
        && within(day, 1, days)
        && within(hour, 0, 23)
        && within(minute, 0, 59)
        && within(second, 0, 60)
}
