//! Booleans, numbers and texts: kinds, listed values, formats and bounds.
//!
//! Two formats without a common value, such as `date` and `date-time`, are two types. Any other difference of formats, and every
//! bound that the target sets and the source does not, leaves values that the target does not take.

use super::{Mismatch, Narrowing};
use crate::contract::types::{Enum, Literal, Scalar, ScalarKind, TypeKind};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Formats of texts with a grammar of their own: no text is of two of them.
const DISJOINT: &[&str] =
    &["date", "date-time", "time", "duration", "uuid", "email", "idn-email", "ipv4", "ipv6", "uri", "iri"];

/// Formats whose texts are all of another format.
const WITHIN: &[(&str, &str)] = &[
    ("email", "idn-email"),
    ("hostname", "idn-hostname"),
    ("uri", "iri"),
    ("uri", "uri-reference"),
    ("uri", "iri-reference"),
    ("iri", "iri-reference"),
    ("uri-reference", "iri-reference"),
];

/// Formats that say how a text is displayed, and nothing of its values.
const OF_DISPLAY: &[&str] = &["password", "multiline", "textarea", "markdown", "html"];

/// The reason why no value of one scalar may be one of another, or what narrows it.
pub(super) fn compare(from: &Scalar, to: &Scalar) -> Result<Vec<Narrowing>, Mismatch> {
    let is_same = from.kind == to.kind || (from.kind == ScalarKind::Integer && to.kind == ScalarKind::Number);
    if !is_same {
        return Err(Mismatch::Kind { from: show(from), to: show(to) });
    }
    let source = from.values.as_deref().filter(|values| !values.open);
    if let Some(target) = to.values.as_deref().filter(|values| !values.open) {
        // Listed values decide: the document lists none that its own bounds forbid.
        return match source {
            Some(source) => listed(source, target),
            None => Err(Mismatch::Unbounded { from: show(from), to: show(to) }),
        };
    }
    let values = match (source, from.kind) {
        (Some(source), _) => listed_within(source, to),
        (None, ScalarKind::Boolean) => Vec::new(),
        (None, ScalarKind::String) => texts(from, to)?,
        (None, ScalarKind::Integer | ScalarKind::Number) => numbers(from, to),
    };
    Ok(values.into_iter().map(Narrowing::of).collect())
}

fn listed(source: &Enum, target: &Enum) -> Result<Vec<Narrowing>, Mismatch> {
    let known: HashSet<_> = target.values.iter().collect();
    let unknown: Vec<String> =
        source.values.iter().filter(|value| !known.contains(value)).map(ToString::to_string).collect();
    if unknown.is_empty() { Ok(Vec::new()) } else { Err(Mismatch::Values(unknown)) }
}

fn show(scalar: &Scalar) -> String {
    TypeKind::Scalar(scalar.clone()).to_string()
}

/// Listed values that the bounds of the target exclude.
fn listed_within(source: &Enum, to: &Scalar) -> Vec<String> {
    let [least, greatest] = range(to);
    let is_outside = |value: &&Literal| match value {
        Literal::Number(text) => {
            least.as_ref().is_some_and(|least| least.excludes(text, Ordering::Less))
                || greatest.as_ref().is_some_and(|greatest| greatest.excludes(text, Ordering::Greater))
        }
        Literal::String(text) => {
            let length = text.chars().count() as u64;
            to.limits.min_length.is_some_and(|least| length < least)
                || to.limits.max_length.is_some_and(|most| length > most)
        }
        Literal::Boolean(_) => false,
    };
    source.values.iter().filter(is_outside).map(|value| format!("the value {value}")).collect()
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
    if let Some(pattern) = to.limits.pattern.as_ref().filter(|one| from.limits.pattern.as_ref() != Some(one))
    {
        values.push(format!("texts that do not match `{pattern}`"));
    }
    Ok(values)
}

fn numbers(from: &Scalar, to: &Scalar) -> Vec<String> {
    let mut values = Vec::new();
    let ([own_least, own_greatest], [least, greatest]) = (range(from), range(to));
    if let Some(greatest) = greatest
        && own_greatest.is_none_or(|own| own.reaches_beyond(&greatest, Ordering::Greater))
    {
        let word = if greatest.is_excluded { "from" } else { "above" };
        values.push(format!(
            "values {word} {}{}",
            greatest.text,
            if greatest.is_excluded { " on" } else { "" }
        ));
    }
    if let Some(least) = least
        && own_least.is_none_or(|own| own.reaches_beyond(&least, Ordering::Less))
    {
        let word = if least.is_excluded { "up to" } else { "below" };
        values.push(format!("values {word} {}", least.text));
    }
    let is_multiple = |factor: &&String| {
        let whole = |text: &str| text.parse::<i128>().ok().filter(|number| *number != 0);
        let own = from.limits.multiple_of.as_deref();
        own == Some(factor.as_str())
            || own.and_then(whole).zip(whole(factor)).is_some_and(|(own, factor)| own % factor == 0)
    };
    if let Some(factor) = to.limits.multiple_of.as_ref().filter(|factor| !is_multiple(factor)) {
        values.push(format!("values that are no multiple of {factor}"));
    }
    let is_single = |scalar: &Scalar| scalar.format.as_deref() == Some("float");
    if to.kind == ScalarKind::Number && is_single(to) && !is_single(from) {
        values.push("values that `float` rounds".to_owned());
    }
    values
}

/// An end of a range of numbers.
struct End {
    text: String,
    is_excluded: bool,
}

impl End {
    /// Whether a range that ends here has values beyond `other` in this direction.
    fn reaches_beyond(&self, other: &End, direction: Ordering) -> bool {
        match order(&self.text, &other.text) {
            Some(Ordering::Equal) => other.is_excluded && !self.is_excluded,
            Some(found) => found == direction,
            // Numbers that cannot be compared prove nothing.
            None => self.text != other.text,
        }
    }

    /// Whether a value lies beyond this end in this direction.
    fn excludes(&self, value: &str, direction: Ordering) -> bool {
        match order(value, &self.text) {
            Some(Ordering::Equal) => self.is_excluded,
            Some(found) => found == direction,
            None => true,
        }
    }
}

/// The least and the greatest value of a number, by its bounds and its format.
fn range(scalar: &Scalar) -> [Option<End>; 2] {
    let of_format = match (scalar.kind, scalar.format.as_deref()) {
        (ScalarKind::Integer, Some("int32")) => Some([i64::from(i32::MIN), i64::from(i32::MAX)]),
        (ScalarKind::Integer, Some("int64")) => Some([i64::MIN, i64::MAX]),
        _ => None,
    };
    let limits = &scalar.limits;
    let end = |text: &Option<String>, is_excluded: bool| {
        text.as_ref().map(|text| End { text: text.clone(), is_excluded })
    };
    let said = [
        [end(&limits.minimum, false), end(&limits.above, true)],
        [end(&limits.maximum, false), end(&limits.below, true)],
    ];
    let mut ends = [None, None];
    for (at, said) in said.into_iter().enumerate() {
        let by_format = of_format.map(|both| End { text: both[at].to_string(), is_excluded: false });
        // The narrowest of several counts.
        let outwards = if at == 0 { Ordering::Less } else { Ordering::Greater };
        ends[at] = said
            .into_iter()
            .flatten()
            .chain(by_format)
            .reduce(|a, b| if a.reaches_beyond(&b, outwards) { b } else { a });
    }
    ends
}

/// The order of two numbers as documents write them; none where one of them is no number.
fn order(a: &str, b: &str) -> Option<Ordering> {
    match (a.parse::<i128>(), b.parse::<i128>()) {
        (Ok(a), Ok(b)) => Some(a.cmp(&b)),
        _ => a.parse::<f64>().ok()?.partial_cmp(&b.parse::<f64>().ok()?),
    }
}
