//! Conversions of a value between two types.

use super::sort;
use super::spelled::quote;
use crate::contract::{
    Additional, Choice, Literal, Object, Reference, Scalar, ScalarKind, Test, TypeIn, TypeKind, assignable,
};
use switchback_plan::Message;

pub(super) fn fits(types: [TypeIn<'_>; 2], way: Message) -> bool {
    let (from, to) = sort(way, types);
    assignable(from, to, Some(way)).is_ok()
}

/// Returns the name and kind of a named type that can have a shape.
pub(super) fn named_type<'t>(ty: TypeIn<'t>) -> Option<(&'t Reference, &'t TypeKind)> {
    let TypeKind::Named(reference) = &ty.ty.kind else { return None };
    let kind = ty.kind();
    matches!(kind, TypeKind::Object(_) | TypeKind::Choice(_)).then_some((reference, kind))
}

/// Returns two objects of which at least one has no name. Neither may be null.
pub(super) fn anonymous_objects<'t>(types: [TypeIn<'t>; 2]) -> Option<[&'t Object; 2]> {
    let object = |ty: TypeIn<'t>| ty.object().filter(|object| !object.fields.is_empty() && !ty.is_nullable());
    let [Some(old), Some(new)] = types.map(object) else { return None };
    types.into_iter().any(|ty| named_type(ty).is_none()).then_some([old, new])
}

/// Returns the value types of two maps without declared members.
pub(super) fn map_values<'t>(types: [TypeIn<'t>; 2]) -> Option<[TypeIn<'t>; 2]> {
    let of = |ty: TypeIn<'t>| match ty.object()? {
        Object { fields, additional: Additional::Of(value), .. } if fields.is_empty() => {
            Some(ty.types.at(value))
        }
        _ => None,
    };
    let [old, new] = types.map(of);
    Some([old?, new?])
}

/// Returns the alternative of the other side with the same constant, the same own field, or the
/// same name.
pub(super) fn counterpart<'t>(
    one: TypeIn<'_>,
    at: usize,
    read: &Choice,
    to: TypeIn<'t>,
    built: &'t Choice,
) -> Option<TypeIn<'t>> {
    let by_test = match (&read.test, &built.test) {
        (Test::Constant { values, .. }, Test::Constant { values: known, .. }) => {
            let meant = values.iter().filter(|(_, of)| *of == at).map(|(value, _)| value);
            let mut targets = meant.map(|value| known.iter().find(|(known, _)| known == value));
            targets.next().flatten().map(|(_, target)| *target)
        }
        (Test::OwnField(fields), Test::OwnField(known)) => {
            known.iter().position(|known| *known == fields[at])
        }
        _ => None,
    };
    let name = |ty: TypeIn<'_>| named_type(ty).map(|(reference, _)| reference.name.to_string());
    let by_name = || built.alternatives.iter().position(|other| name(to.types.at(other)) == name(one));
    by_test.or_else(by_name).map(|target| to.types.at(&built.alternatives[target]))
}

/// Formats of integers that count the seconds since 1970.
const EPOCHS: &[&str] = &["unix-time", "unixtime", "unix-timestamp", "unix_timestamp", "epoch"];

/// Returns a conversion that accepts every value of its source, in the form of a line.
pub(super) fn conversion(
    types: [TypeIn<'_>; 2],
    required: [bool; 2],
    way: Message,
    names: [&str; 2],
) -> Option<String> {
    let scalar = |ty: TypeIn<'_>| match ty.kind() {
        TypeKind::Scalar(scalar) if scalar.values.is_none() => Some(scalar.clone()),
        _ => None,
    };
    let nullable = types.map(|ty| ty.is_nullable());
    let (from_null, to_null) = sort(way, nullable);
    let takes_null = !from_null || to_null;
    if let (Some(old), Some(new), true) = (scalar(types[0]), scalar(types[1]), takes_null) {
        // A text has to be digits on the side that is read; the other direction accepts all values.
        let is_read = |side: usize| (way == Message::Request) == (side == 0);
        match (old.kind, new.kind) {
            (ScalarKind::Integer, ScalarKind::String) if is_epoch(&old) && is_instant(&new) => {
                return Some(date_forms(names, ["epoch_second", "rfc3339"]));
            }
            (ScalarKind::String, ScalarKind::Integer) if is_instant(&old) && is_epoch(&new) => {
                return Some(date_forms(names, ["rfc3339", "epoch_second"]));
            }
            (ScalarKind::Integer, ScalarKind::String) if !is_read(1) || is_digits(&new) => {
                return Some("as: integer_to_string".to_owned());
            }
            (ScalarKind::String, ScalarKind::Integer) if !is_read(0) || is_digits(&old) => {
                return Some("as: string_to_integer".to_owned());
            }
            _ => {}
        }
    }
    // Absent on the old side, null on the new one.
    if way == Message::Answer && nullable[1] && !nullable[0] && !required[0] {
        let from = types[1].types.resolve(types[1].ty);
        let bare = crate::contract::Type { kind: from.kind.clone(), nullable: false, span: from.span };
        let fits = assignable(types[1].types.at(&bare), types[0], Some(way)).is_ok();
        return fits.then(|| "as: null_is_absent".to_owned());
    }
    None
}

/// Returns the conversion of an instant. Numbers beyond the calendar have no text.
fn date_forms(names: [&str; 2], forms: [&str; 2]) -> String {
    let [old, new] = names.map(quote);
    format!("as: {{date: {{{old}: {}, {new}: {}}}}}, else: error", forms[0], forms[1])
}

fn is_epoch(scalar: &Scalar) -> bool {
    scalar.format.as_deref().is_some_and(|format| EPOCHS.contains(&format))
}

fn is_instant(scalar: &Scalar) -> bool {
    scalar.format.as_deref() == Some("date-time")
}

/// Returns whether every text is the notation of an integer.
fn is_digits(scalar: &Scalar) -> bool {
    const DIGITS: &[&str] = &["^(0|[1-9][0-9]*)$", "^[1-9][0-9]*$", "^(0|[1-9]\\d*)$", "^[1-9]\\d*$"];
    scalar.limits.patterns.iter().any(|pattern| DIGITS.contains(&pattern.as_str()))
}

/// Returns the texts of a closed enumeration.
fn listed<'t>(ty: TypeIn<'t>) -> Option<Vec<&'t str>> {
    let TypeKind::Scalar(Scalar { kind: ScalarKind::String, values: Some(values), .. }) = ty.kind() else {
        return None;
    };
    let text = |value: &'t Literal| match value {
        Literal::String(text) => Some(text.as_str()),
        _ => None,
    };
    (!values.open).then(|| values.values.iter().map(text).collect())?
}

/// Returns a value without case and separators.
fn letters(value: &str) -> String {
    value.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns a table for two enumerations, or lists of them, whose values differ only in case and
/// separators. Every value that is read has a counterpart, so nothing is lost.
pub(super) fn spelled_values(types: [TypeIn<'_>; 2], way: Message) -> Option<String> {
    if let [Some(old), Some(new)] = types.map(TypeIn::items) {
        let table = spelled_values([old, new], way)?;
        return Some(format!("as: {{each: {{{}}}}}", table.strip_prefix("as: {")?.strip_suffix('}')?));
    }
    let (from, to) = sort(way, types);
    if from.is_nullable() && !to.is_nullable() {
        return None;
    }
    let (source, target) = (listed(from)?, listed(to)?);
    let mut pairs = Vec::new();
    for value in &source {
        // Two values of one side may be spelled alike.
        let is_like = |other: &&&str| letters(other) == letters(value);
        let (own, other) = (source.iter().filter(is_like).count(), target.iter().filter(is_like));
        match (own, other.collect::<Vec<_>>().as_slice()) {
            (1, [other]) if !letters(value).is_empty() => pairs.push([*value, **other]),
            _ => return None,
        }
    }
    Some(format!("as: {{table: {{{}}}}}", table_lines(pairs, way)))
}

/// Writes pairs of a read and a built value as `old: new`.
fn table_lines(pairs: Vec<[&str; 2]>, way: Message) -> String {
    let lines = pairs.into_iter().map(|[read, built]| {
        let [old, new] = if way == Message::Request { [read, built] } else { [built, read] };
        format!("{}: {}", quote(old), quote(new))
    });
    lines.collect::<Vec<_>>().join(", ")
}

/// Returns a conversion of a day to an instant, or back, by midnight UTC, with its effect: a choice for a
/// person, because only the service knows the time that it means.
pub(super) fn midnight(types: [TypeIn<'_>; 2], way: Message, names: [&str; 2]) -> Option<[String; 2]> {
    let format = |ty: TypeIn<'_>| match ty.kind() {
        TypeKind::Scalar(scalar) if scalar.values.is_none() => scalar.format.clone(),
        _ => None,
    };
    let (from, to) = sort(way, types);
    if from.is_nullable() && !to.is_nullable() {
        return None;
    }
    let pattern = |format: &str| match format {
        "date" => Some("'%Y-%m-%d'"),
        "date-time" => Some("'%Y-%m-%dT00:00:00Z'"),
        _ => None,
    };
    let formats = [format(types[0])?, format(types[1])?];
    let [Some(old), Some(new)] = formats.each_ref().map(|format| pattern(format)) else { return None };
    let [a, b] = names.map(quote);
    let how = format!("as: {{date: {{{a}: {old}, {b}: {new}}}}}");
    Some(match format(from).as_deref() {
        Some("date") => ["the day begins at midnight UTC".to_owned(), how],
        _ => {
            ["the day of midnight UTC; any other time is an error".to_owned(), format!("{how}, else: error")]
        }
    })
    .filter(|_| old != new)
}

/// Returns a table of two enumerations that pairs the most similar values, with its effect: a guess for a
/// person to edit. A null that the old side does not have becomes its last value.
pub(super) fn nearest_values(types: [TypeIn<'_>; 2], way: Message, names: [&str; 2]) -> Option<[String; 2]> {
    let nulls = way == Message::Answer && types[1].is_nullable() && !types[0].is_nullable();
    let [old, new] = types.map(listed);
    let (old, new) = (old?, new?);
    let score = |a: usize, b: usize| strsim::jaro_winkler(&letters(old[a]), &letters(new[b]));
    let mut pairs: Vec<(usize, usize, f64)> = (0..old.len())
        .flat_map(|a| (0..new.len()).map(move |b| (a, b)))
        .map(|(a, b)| (a, b, score(a, b)))
        .collect();
    pairs.sort_by(|one, other| other.2.total_cmp(&one.2));
    // A value of the new side stands in one row only, or there would be no way back.
    let mut rows: Vec<Vec<String>> = vec![Vec::new(); old.len()];
    let mut has_row = vec![false; new.len()];
    for &(a, b, _) in &pairs {
        if rows[a].is_empty() && !has_row[b] {
            rows[a].push(quote(new[b]));
            has_row[b] = true;
        }
    }
    // Every value that is read needs a row. A row may have several values of the new side.
    for &(a, b, _) in pairs.iter().filter(|_| way == Message::Answer) {
        if !rows[a].is_empty() && !has_row[b] {
            rows[a].push(quote(new[b]));
            has_row[b] = true;
        }
    }
    if nulls {
        rows.iter_mut().rfind(|row| !row.is_empty())?.push("null".to_owned());
    }
    // The value of the new side that is most like the first value without a row.
    let left = rows.iter().position(|row| row.is_empty() && way == Message::Request);
    let other = left.and_then(|left| pairs.iter().find(|(a, ..)| *a == left)).map(|(_, b, _)| quote(new[*b]));
    let row = |(value, row): (&&str, &Vec<String>)| match row.as_slice() {
        [] => None,
        [one] => Some(format!("{}: {one}", quote(value))),
        several => Some(format!("{}: [{}]", quote(value), several.join(", "))),
    };
    let rows: Vec<String> = old.iter().zip(&rows).filter_map(row).collect();
    let table = format!("as: {{table: {{{}}}}}", rows.join(", "));
    let pair = match other {
        None => ["these values correspond".to_owned(), table],
        Some(other) => [
            format!("these values correspond, and any other becomes `{other}`"),
            format!("{table}, else: {{{}: {other}}}", quote(names[1])),
        ],
    };
    (!rows.is_empty()).then_some(pair)
}

/// Returns a table of the common values for an enumeration of which the target lacks some values.
/// The other values are copied. The second result lists them.
pub(super) fn unknown_values(from: TypeIn<'_>, to: TypeIn<'_>, way: Message) -> Option<(String, String)> {
    // The new side would reject an unknown value in a request.
    if from.is_nullable() && !to.is_nullable() || way == Message::Request {
        return None;
    }
    let (source, target) = (listed(from)?, listed(to)?);
    let unknown: Vec<&str> = source.iter().filter(|value| !target.contains(value)).copied().collect();
    let both: Vec<String> = source
        .iter()
        .filter(|value| target.contains(value))
        .map(|value| format!("{0}: {0}", quote(value)))
        .collect();
    if both.is_empty() {
        return None;
    }
    Some((format!("as: {{table: {{{}}}}}, else: keep", both.join(", ")), unknown.join(", ")))
}
