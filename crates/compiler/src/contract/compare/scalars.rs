//! The comparison of booleans, numbers and texts: kinds, enumerated values, formats and bounds.
//!
//! Enumerated values are tested one by one. Two disjoint formats, such as `date` and `date-time`,
//! are incompatible. Any other difference of formats narrows, as does every bound that only the
//! target has.

use super::Mismatch;
use crate::contract::numbers::{is_multiple, order, shortest};
use crate::contract::types::{Enum, Keyword, Limits, Literal, Scalar, ScalarKind, TypeKind};
use regex::{Regex, RegexBuilder};
use std::cmp::Ordering;
use std::collections::HashSet;
use switchback_plan::convert::instant;

/// Text formats that are pairwise disjoint, except for those in [`WITHIN`].
const DISJOINT: &[&str] =
    &["date", "date-time", "time", "duration", "uuid", "email", "idn-email", "ipv4", "ipv6", "uri", "iri"];

/// Pairs of a format and a wider format.
const WITHIN: &[(&str, &str)] = &[
    ("email", "idn-email"),
    ("hostname", "idn-hostname"),
    ("uri", "iri"),
    ("uri", "uri-reference"),
    ("uri", "iri-reference"),
    ("iri", "iri-reference"),
    ("uri-reference", "iri-reference"),
];

/// Formats that describe the display of a text and do not restrict its values.
const OF_DISPLAY: &[&str] = &["password", "multiline", "textarea", "markdown", "html"];

/// Formats of numbers with a known range or precision.
const OF_NUMBERS: &[&str] = &["int32", "int64", "uint32", "uint64", "float", "double"];

/// Returns descriptions of the values of one scalar that another excludes. The error is the reason
/// why no value of one belongs to the other.
pub(super) fn compare(from: &Scalar, to: &Scalar) -> Result<Vec<String>, Mismatch> {
    let is_same = from.kind == to.kind || (from.kind == ScalarKind::Integer && to.kind == ScalarKind::Number);
    if !is_same {
        return Err(Mismatch::Kind { from: show(from), to: show(to) });
    }
    // An open enumeration does not restrict values.
    let source = from.values.as_deref().filter(|values| !values.open);
    if let Some(target) = to.values.as_deref().filter(|values| !values.open) {
        // The enumeration decides: a document does not enumerate values that its own bounds
        // exclude.
        return match source {
            Some(source) => compare_enums(source, target),
            None => Err(Mismatch::Unbounded { from: show(from), to: show(to) }),
        };
    }
    let mut values = match (source, from.kind) {
        (Some(source), _) => listed_within(source, from, to),
        (None, ScalarKind::Boolean) => Vec::new(),
        (None, ScalarKind::String) => texts(from, to)?,
        (None, ScalarKind::Integer | ScalarKind::Number) => numbers(from, to),
    };
    values.extend(unread(&from.limits.unread, &to.limits.unread));
    Ok(values)
}

/// Returns descriptions of the values that the target's unsupported keywords exclude. A keyword
/// that the source has too excludes no value, nor does a bound on the number of members if the
/// source's is stricter.
pub(crate) fn unread(from: &[Keyword], to: &[Keyword]) -> Vec<String> {
    let is_within = |own: &Keyword, wanted: &Keyword| match &*wanted.name {
        name if *own.name != *name => false,
        "minProperties" => order(&own.value, &wanted.value).is_some_and(Ordering::is_ge),
        "maxProperties" => order(&own.value, &wanted.value).is_some_and(Ordering::is_le),
        _ => own.value == wanted.value,
    };
    let excluded = to.iter().filter(|wanted| !from.iter().any(|own| is_within(own, wanted)));
    excluded
        .map(|Keyword { name, value }| match value.chars().count() > VALUE_SHOWN {
            true => format!("values that `{name}` excludes"),
            false => format!("values that `{name}: {value}` excludes"),
        })
        .collect()
}

/// Maximum length in characters of a keyword's value in a message.
const VALUE_SHOWN: usize = 40;

fn compare_enums(source: &Enum, target: &Enum) -> Result<Vec<String>, Mismatch> {
    // Compare by value: `1.0` equals `1`.
    let by_value = |value: &Literal| match value {
        Literal::Number(text) => Literal::Number(shortest(text)),
        other => other.clone(),
    };
    let known: HashSet<Literal> = target.values.iter().map(by_value).collect();
    let unknown: Vec<String> = source
        .values
        .iter()
        .filter(|value| !known.contains(&by_value(value)))
        .map(ToString::to_string)
        .collect();
    if unknown.is_empty() { Ok(Vec::new()) } else { Err(Mismatch::Values(unknown)) }
}

fn show(scalar: &Scalar) -> String {
    TypeKind::Scalar(scalar.clone()).to_string()
}

/// Describes enumerated values that the bounds of the target exclude. Bounds that the source has
/// too exclude no value.
fn listed_within(source: &Enum, from: &Scalar, to: &Scalar) -> Vec<String> {
    let judge = ScalarBounds::new(to, Some(from));
    let mut values: Vec<String> = Vec::new();
    for value in &source.values {
        let why = match judge.exclusion(value) {
            None => continue,
            Some(Exclusion::Certain) => format!("the value {value}"),
            Some(Exclusion::Unknown(why)) => why,
        };
        if !values.contains(&why) {
            values.push(why);
        }
    }
    values
}

/// Returns whether a value is certain to violate the bounds, patterns or format of a scalar of its
/// kind.
pub(crate) fn is_out_of_bounds(scalar: &Scalar, value: &Literal) -> bool {
    matches!(ScalarBounds::new(scalar, None).exclusion(value), Some(Exclusion::Certain))
}

/// Describes the values of its kind that a scalar excludes.
pub(crate) fn exclusions(scalar: &Scalar) -> Vec<String> {
    let all = Scalar { kind: scalar.kind, values: None, format: None, limits: Limits::default() };
    compare(&all, scalar).unwrap_or_default()
}

/// The bounds of a scalar, prepared for tests of values.
struct ScalarBounds<'t> {
    scalar: &'t Scalar,
    range: [Option<RangeEnd>; 2],
    /// Patterns, compiled if the `regex` crate supports them.
    patterns: Vec<(&'t str, Option<Regex>)>,
    format: Option<&'t str>,
}

/// Compiles a pattern. Returns `None` if its syntax is not supported, or if it exceeds the size
/// limit.
fn compile_pattern(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().ok()
}

/// Memory limit of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The certainty of an exclusion.
enum Exclusion {
    Certain,
    /// Possible. Describes the class of values, for messages.
    Unknown(String),
}

impl<'t> ScalarBounds<'t> {
    /// Prepares a scalar. `known` is a type that the values belong to; its patterns and format are
    /// not tested again.
    fn new(scalar: &'t Scalar, known: Option<&Scalar>) -> ScalarBounds<'t> {
        let is_new =
            |pattern: &&'t String| known.is_none_or(|known| !known.limits.patterns.contains(pattern));
        let patterns = scalar.limits.patterns.iter().filter(is_new);
        let format = scalar.format.as_deref().filter(|format| !OF_DISPLAY.contains(format));
        ScalarBounds {
            scalar,
            range: range(scalar),
            patterns: patterns.map(|pattern| (pattern.as_str(), compile_pattern(pattern))).collect(),
            format: format
                .filter(|format| known.is_none_or(|known| known.format.as_deref() != Some(*format))),
        }
    }

    fn exclusion(&self, value: &Literal) -> Option<Exclusion> {
        match value {
            Literal::Boolean(_) => None,
            Literal::Number(text) => self.of_number(text),
            Literal::String(text) => self.of_text(text),
        }
    }

    fn of_number(&self, text: &str) -> Option<Exclusion> {
        let [least, greatest] = &self.range;
        if least.as_ref().is_some_and(|least| least.excludes(text, Ordering::Less))
            || greatest.as_ref().is_some_and(|greatest| greatest.excludes(text, Ordering::Greater))
        {
            return Some(Exclusion::Certain);
        }
        let unknown =
            |factor: &String| Exclusion::Unknown(format!("values that are no multiple of {factor}"));
        self.scalar.limits.multiples_of.iter().find_map(|factor| match is_multiple(text, factor) {
            Some(true) => None,
            Some(false) => Some(Exclusion::Certain),
            None => Some(unknown(factor)),
        })
    }

    fn of_text(&self, text: &str) -> Option<Exclusion> {
        let limits = &self.scalar.limits;
        let length = text.chars().count() as u64;
        if limits.min_length.is_some_and(|least| length < least)
            || limits.max_length.is_some_and(|most| length > most)
            || self
                .patterns
                .iter()
                .any(|(_, regex)| regex.as_ref().is_some_and(|regex| !regex.is_match(text)))
        {
            return Some(Exclusion::Certain);
        }
        // A certain exclusion takes precedence over an unknown one.
        let is_of_format = self.format.map(|format| (format, is_of_format(text, format)));
        if let Some((_, Some(false))) = is_of_format {
            return Some(Exclusion::Certain);
        }
        if let Some((pattern, _)) = self.patterns.iter().find(|(_, regex)| regex.is_none()) {
            return Some(Exclusion::Unknown(format!("texts that do not match `{pattern}`")));
        }
        let (format, _) = is_of_format.filter(|(_, known)| known.is_none())?;
        Some(Exclusion::Unknown(format!("texts that are no `{format}`")))
    }
}

/// Returns whether a text has a format, or `None` if the format's grammar is not implemented.
fn is_of_format(text: &str, format: &str) -> Option<bool> {
    Some(match format {
        // Complete the date to a timestamp, so that its parser checks the calendar.
        "date" => text.len() == 10 && instant(&format!("{text}T00:00:00Z")).is_some(),
        "date-time" => instant(text).is_some(),
        "ipv4" => {
            // Leading zeros are ambiguous: some parsers read them as octal.
            let is_octet = |octet: &str| octet.parse::<u8>().is_ok_and(|number| number.to_string() == octet);
            text.split('.').count() == 4 && text.split('.').all(is_octet)
        }
        "uuid" => {
            let mut parts = text.split('-');
            let of_length = |length: usize, part: Option<&str>| {
                part.is_some_and(|part| {
                    part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
                })
            };
            [8, 4, 4, 4, 12].into_iter().all(|length| of_length(length, parts.next()))
                && parts.next().is_none()
        }
        _ => return None,
    })
}

fn texts(from: &Scalar, to: &Scalar) -> Result<Vec<String>, Mismatch> {
    let mut values = Vec::new();
    let format = |scalar: &Scalar| {
        scalar.format.as_deref().filter(|format| !OF_DISPLAY.contains(format)).map(str::to_owned)
    };
    match (format(from), format(to)) {
        (Some(a), Some(b)) if a != b && !WITHIN.contains(&(a.as_str(), b.as_str())) => {
            let is_wider = WITHIN.contains(&(b.as_str(), a.as_str()));
            if !is_wider && [&a, &b].iter().all(|format| DISJOINT.contains(&format.as_str())) {
                return Err(Mismatch::Format { from: a, to: b });
            }
            values.push(format!("texts that are no `{b}`"));
        }
        (None, Some(b)) => values.push(format!("texts that are no `{b}`")),
        _ => {}
    }
    let characters =
        |count: u64| if count == 1 { "1 character".to_owned() } else { format!("{count} characters") };
    if let Some(most) =
        to.limits.max_length.filter(|most| from.limits.max_length.is_none_or(|own| own > *most))
    {
        values.push(format!("texts longer than {}", characters(most)));
    }
    if let Some(least) = to.limits.min_length.filter(|least| from.limits.min_length.unwrap_or(0) < *least) {
        values.push(format!("texts shorter than {}", characters(least)));
    }
    // Patterns are compared as text; a different pattern is assumed to exclude values.
    let unknown = to.limits.patterns.iter().filter(|pattern| !from.limits.patterns.contains(pattern));
    values.extend(unknown.map(|pattern| format!("texts that do not match `{pattern}`")));
    Ok(values)
}

fn numbers(from: &Scalar, to: &Scalar) -> Vec<String> {
    let mut values = Vec::new();
    let ([own_least, own_greatest], [least, greatest]) = (range(from), range(to));
    let reaches_beyond = |own: Option<RangeEnd>, other: &RangeEnd, direction: Ordering| match from.kind {
        ScalarKind::Integer => own.is_none_or(|own| {
            own.of_integers(direction).reaches_beyond(&other.of_integers(direction), direction)
        }),
        _ => own.is_none_or(|own| own.reaches_beyond(other, direction)),
    };
    if let Some(greatest) = greatest
        && reaches_beyond(own_greatest, &greatest, Ordering::Greater)
    {
        let word = if greatest.is_excluded { "from" } else { "above" };
        values.push(format!(
            "values {word} {}{}",
            greatest.text,
            if greatest.is_excluded { " on" } else { "" }
        ));
    }
    if let Some(least) = least
        && reaches_beyond(own_least, &least, Ordering::Less)
    {
        let word = if least.is_excluded { "up to" } else { "below" };
        values.push(format!("values {word} {}", least.text));
    }
    let is_within = |factor: &&String| {
        from.limits.multiples_of.iter().any(|own| own == *factor || is_multiple(own, factor) == Some(true))
            // Every integer is a multiple of one.
            || (from.kind == ScalarKind::Integer && is_multiple("1", factor) == Some(true))
    };
    let unknown = to.limits.multiples_of.iter().filter(|factor| !is_within(factor));
    values.extend(unknown.map(|factor| format!("values that are no multiple of {factor}")));
    let is_unknown = |format: &&str| !OF_NUMBERS.contains(format) && from.format.as_deref() != Some(*format);
    values.extend(
        to.format.as_deref().filter(is_unknown).map(|format| format!("values that are no `{format}`")),
    );
    // A `float` has 24 bits of precision, fewer than other JSON numbers.
    let is_single = |scalar: &Scalar| scalar.format.as_deref() == Some("float");
    if to.kind == ScalarKind::Number && is_single(to) && !is_single(from) {
        values.push("values that `float` rounds".to_owned());
    }
    values
}

/// An end of a range of numbers.
#[derive(Clone)]
struct RangeEnd {
    text: String,
    is_excluded: bool,
}

impl RangeEnd {
    /// Returns the outermost integer of a range with this end: "above 0" starts at 1.
    fn of_integers(&self, direction: Ordering) -> RangeEnd {
        let inward = if direction == Ordering::Less { 1 } else { -1 };
        match self.text.parse::<i128>().ok().and_then(|end| end.checked_add(inward)) {
            Some(end) if self.is_excluded => RangeEnd { text: end.to_string(), is_excluded: false },
            _ => self.clone(),
        }
    }

    /// Returns whether a range with this end contains values beyond `other` in this direction.
    fn reaches_beyond(&self, other: &RangeEnd, direction: Ordering) -> bool {
        match order(&self.text, &other.text) {
            Some(Ordering::Equal) => other.is_excluded && !self.is_excluded,
            Some(found) => found == direction,
            // Numbers that cannot be compared count as different.
            None => self.text != other.text,
        }
    }

    /// Returns whether a value is beyond this end in this direction.
    fn excludes(&self, value: &str, direction: Ordering) -> bool {
        match order(value, &self.text) {
            Some(Ordering::Equal) => self.is_excluded,
            Some(found) => found == direction,
            None => true,
        }
    }
}

/// Returns the smallest and the largest value of a number, from its bounds and its format.
fn range(scalar: &Scalar) -> [Option<RangeEnd>; 2] {
    let of_format: Option<[i128; 2]> = match (scalar.kind, scalar.format.as_deref()) {
        (ScalarKind::Integer, Some("int32")) => Some([i32::MIN.into(), i32::MAX.into()]),
        (ScalarKind::Integer, Some("int64")) => Some([i64::MIN.into(), i64::MAX.into()]),
        (ScalarKind::Integer, Some("uint32")) => Some([0, u32::MAX.into()]),
        (ScalarKind::Integer, Some("uint64")) => Some([0, i128::from(u64::MAX)]),
        _ => None,
    };
    let limits = &scalar.limits;
    let end = |text: &Option<String>, is_excluded: bool| {
        text.as_ref().map(|text| RangeEnd { text: text.clone(), is_excluded })
    };
    let said = [
        [end(&limits.minimum, false), end(&limits.above, true)],
        [end(&limits.maximum, false), end(&limits.below, true)],
    ];
    let mut ends = [None, None];
    for (at, said) in said.into_iter().enumerate() {
        let by_format = of_format.map(|both| RangeEnd { text: both[at].to_string(), is_excluded: false });
        // The strictest bound applies.
        let outwards = if at == 0 { Ordering::Less } else { Ordering::Greater };
        ends[at] = said
            .into_iter()
            .flatten()
            .chain(by_format)
            .reduce(|a, b| if a.reaches_beyond(&b, outwards) { b } else { a });
    }
    ends
}
