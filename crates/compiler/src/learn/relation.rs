//! The relation between the values of two members: equal, converted, or one to one by a table. The
//! conversions are those of the mapping language.

use super::records::{canonical, is_opaque, quote};
use std::collections::BTreeMap;
use switchback_json::raw;
use switchback_json::{Limits, Value};
use switchback_plan::SideId;
use switchback_plan::convert::{Arguments, Conversion, ConversionKind, Given, Law, SPECS, Spec, Yield};

/// Maximum number of rows of a table.
const ROWS_MAX: usize = 12;
/// Minimum number of observations per row of a table, on average.
const PER_ROW: usize = 3;
/// Values on which a conversion is tried before all others are.
const TRIED: usize = 8;
/// Forms of dates to try on either side.
const DATES: &[&str] = &[
    "epoch_second",
    "epoch_millis",
    "%s",
    "rfc3339",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S GMT",
    "%a %b %d %H:%M:%S %z %Y",
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%Y%m%d",
];
const SCALES: &[&str] = &["10", "100", "1000", "1000000", "0.1", "0.01", "0.001", "0.000001", "60", "3600"];
const SEPARATORS: &[&str] = &[" ", "|", ";", ", ", "/"];

/// A conversion to try, in the notation of mappings.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// As written after `as:`.
    pub written: String,
    kind: ConversionKind,
    each: bool,
    /// Whether its arguments were derived from the values that it explains.
    is_derived: bool,
}

/// The relation that explains the most observations.
#[derive(Debug, Clone)]
pub(super) enum Relation {
    Equal,
    /// The conversion, and others that explain the observations as well.
    Convert(Candidate, Vec<String>),
    /// Rows from old to new.
    Table(Vec<(String, String)>),
}

impl Relation {
    /// Returns the place in the order of preference. The fewer parameters fit the values, the better.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Relation::Equal => 0,
            Relation::Convert(candidate, _) => 1 + u8::from(candidate.is_derived),
            Relation::Table(_) => 3,
        }
    }

    /// Returns the text after `as:`, if there is one.
    pub(super) fn written(&self) -> Option<String> {
        match self {
            Relation::Equal => None,
            Relation::Convert(candidate, _) => Some(candidate.written.clone()),
            Relation::Table(rows) => {
                // A key is a text; the type of the old member determines its kind.
                let key = |old: &str| if old.starts_with('"') { old.to_owned() } else { quote(old) };
                let rows: Vec<String> =
                    rows.iter().map(|(old, new)| format!("{}: {new}", key(old))).collect();
                Some(format!("{{table: {{{}}}}}", rows.join(", ")))
            }
        }
    }

    /// Returns whether the relation holds for two values.
    pub(super) fn holds(&self, old: &str, new: &str) -> bool {
        match self {
            Relation::Equal => same(old, new),
            Relation::Convert(candidate, _) => candidate.holds(old, new),
            Relation::Table(rows) => rows.iter().any(|(a, b)| a == old && b == new),
        }
    }
}

/// Returns the conversions to try that do not depend on the values.
pub(super) fn candidates(sides: [&str; 2]) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for spec in SPECS {
        if let (Arguments::None, Some(example)) = (spec.arguments, spec.examples.first()) {
            // Without arguments, all examples have the same conversion.
            all.push(Candidate {
                written: spec.name.to_owned(),
                kind: (example.kind)(),
                each: false,
                is_derived: false,
            });
        }
    }
    let arguments = DATES.iter().flat_map(|old| DATES.iter().map(move |new| (old, new)));
    for (old, new) in arguments.filter(|(old, new)| old != new) {
        let forms = format!("{}: {}, {}: {}", quote(sides[0]), quote(old), quote(sides[1]), quote(new));
        // Where both forms have a zone, or none has, a zone is an error.
        let plain = own("date", format!("{{{forms}}}"), sides);
        all.extend(plain.or_else(|| own("date", format!("{{{forms}, \"zone\": \"Z\"}}"), sides)));
    }
    all.extend(SCALES.iter().filter_map(|factor| own("scale", (*factor).to_owned(), sides)));
    all.extend(SEPARATORS.iter().filter_map(|separator| own("split", quote(separator), sides)));
    let elements: Vec<Candidate> = all.iter().filter(|one| !one.kind.is_structural()).cloned().collect();
    all.extend(elements.into_iter().map(|one| Candidate {
        written: format!("{{each: {}}}", one.written),
        each: true,
        ..one
    }));
    all
}

/// Builds a conversion that parses its own arguments.
fn own(name: &str, arguments: String, sides: [&str; 2]) -> Option<Candidate> {
    let Arguments::Own { read, .. } = Spec::by_name(name)?.arguments else { return None };
    let value = Value::parse(arguments.as_bytes(), &Limits::DOCUMENT).ok()?;
    let kind = read(&Given { arguments: &value, sides, facts: [None, None] }).ok()?;
    Some(Candidate { written: format!("{{{name}: {arguments}}}"), kind, each: false, is_derived: false })
}

/// Returns conversions whose arguments follow from one pair of values.
fn derived(old: &str, new: &str, sides: [&str; 2]) -> Vec<Candidate> {
    let mut found = Vec::new();
    let [a, b] = [old, new].map(|text| text.trim_matches('"'));
    if a.is_empty() || b.is_empty() || is_opaque(old) || is_opaque(new) {
        return found;
    }
    let around = |whole: &str, part: &str| {
        let at = whole.find(part)?;
        let template = format!("{}{{}}{}", &whole[..at], &whole[at + part.len()..]);
        let is_usual = !template.trim_matches(['{', '}']).contains(['{', '}', '"', '\\']);
        is_usual.then_some(template)
    };
    if let Some(template) = around(b, a).filter(|_| new.starts_with('"')) {
        found.extend(own("template", quote(&template), sides));
    }
    if let Some(template) = around(a, b).filter(|_| old.starts_with('"')) {
        let forms = format!("{{{}: {}, {}: \"{{}}\"}}", quote(sides[0]), quote(&template), quote(sides[1]));
        found.extend(own("template", forms, sides));
    }
    let is_object = |text: &str| text.starts_with('{');
    let entries = match (is_object(old), is_object(new)) {
        (true, false) => Some(new),
        (false, true) => Some(old),
        _ => None,
    };
    if let Some(Ok(Value::Array(items))) =
        entries.map(|entries| Value::parse(entries.as_bytes(), &Limits::DOCUMENT))
        && let Some(names) = items.first().and_then(Value::as_object)
    {
        let names: Vec<String> = names.keys().map(|name| name.decode().into_owned()).collect();
        for [key, value] in [[0, 1], [1, 0]] {
            if let (2, Some(key), Some(value)) = (names.len(), names.get(key), names.get(value)) {
                let list = if is_object(old) { SideId::NEW } else { SideId::OLD };
                let kind =
                    ConversionKind::Pairs { key: key.as_str().into(), value: value.as_str().into(), list };
                let name = kind.spec().name;
                let written = format!("{{{name}: {{key: {}, value: {}}}}}", quote(key), quote(value));
                found.push(Candidate { written, kind, each: false, is_derived: false });
            }
        }
    }
    found.iter_mut().for_each(|candidate| candidate.is_derived = true);
    found
}

impl Candidate {
    /// Returns whether the values are counterparts. A conversion may lose details of one side, but one
    /// that only normalizes must reproduce the value that clients of the old side know.
    fn holds(&self, old: &str, new: &str) -> bool {
        if !self.each {
            return self.converts(old, new);
        }
        let list = |text: &str| match Value::parse(text.as_bytes(), &Limits::DOCUMENT) {
            Ok(Value::Array(items)) => Some(items.iter().map(canonical).collect::<Vec<_>>()),
            _ => None,
        };
        let (Some(old), Some(new)) = (list(old), list(new)) else { return false };
        old.len() == new.len()
            && !old.is_empty()
            && old.iter().zip(&new).all(|(old, new)| self.converts(old, new))
    }

    fn converts(&self, old: &str, new: &str) -> bool {
        let leads = |forward: bool, from: &str, to: &str| {
            let mut out = Vec::new();
            let done = Conversion::new(self.kind.clone(), forward).apply(from.as_bytes(), &mut out);
            matches!(done, Ok(Yield::Written))
                && std::str::from_utf8(&out).is_ok_and(|text| text == to || same_value(text, to))
        };
        let kinds = [(SideId::OLD, old), (SideId::NEW, new)];
        let is_kind = |(side, text): (SideId, &str)| {
            raw::kind(text.as_bytes()).is_some_and(|kind| self.kind.kinds(side).contains(kind))
        };
        if !kinds.into_iter().all(is_kind) {
            return false;
        }
        let back = leads(false, new, old);
        match self.kind.law() {
            Law::Iso => back && leads(true, old, new),
            Law::Fold => back,
            Law::Lens | Law::OldLens => back || leads(true, old, new),
        }
    }
}

/// Returns whether two canonical texts are equal, numbers by value.
pub(super) fn same(old: &str, new: &str) -> bool {
    let number = |text: &str| {
        text.starts_with(|c: char| c == '-' || c.is_ascii_digit()).then(|| text.parse::<f64>().ok()).flatten()
    };
    old == new || number(old).is_some_and(|old| number(new) == Some(old))
}

fn same_value(a: &str, b: &str) -> bool {
    if !a.starts_with(['{', '[', '"']) {
        return same(a, b);
    }
    Value::parse(a.as_bytes(), &Limits::DOCUMENT).is_ok_and(|a| canonical(&a) == b)
}

/// Returns the relation that explains most of the pairs of values, at least nine of ten. `pairs`
/// have no null.
pub(super) fn relate(pairs: &[(&str, &str)], candidates: &[Candidate], sides: [&str; 2]) -> Option<Relation> {
    let is_enough = |count: usize, of: usize| count > 0 && count * 10 >= of * 9;
    let count = |relation: &dyn Fn(&str, &str) -> bool, pairs: &[(&str, &str)]| {
        pairs.iter().filter(|(old, new)| relation(old, new)).count()
    };
    if is_enough(count(&|old, new| same(old, new), pairs), pairs.len()) {
        return Some(Relation::Equal);
    }
    let (old, new) = pairs.first()?;
    let first = &pairs[..pairs.len().min(TRIED)];
    let given = derived(old, new, sides);
    let mut best: Vec<(usize, &Candidate)> = Vec::new();
    for candidate in candidates.iter().chain(&given) {
        let holds = |old: &str, new: &str| candidate.holds(old, new);
        // Most conversions fail at once. One of the first values may be an exception.
        if count(&holds, &first[..first.len().min(2)]) == 0 || count(&holds, first) + 1 < first.len() {
            continue;
        }
        let explained = count(&holds, pairs);
        if is_enough(explained, pairs.len()) {
            best.push((explained, candidate));
        }
    }
    // The order of the language decides between conversions that explain the same.
    if let Some((most, chosen)) = best.iter().rev().max_by_key(|(explained, _)| *explained) {
        let name = chosen.kind.spec().name;
        let is_rival = |(explained, other): &&(usize, &Candidate)| {
            explained == most && other.kind.spec().name == name && other.written != chosen.written
        };
        let rivals = best.iter().filter(is_rival).map(|(_, other)| other.written.clone()).collect();
        return Some(Relation::Convert((*chosen).clone(), rivals));
    }
    table(pairs)
}

/// Returns the table of one-to-one scalars.
fn table(pairs: &[(&str, &str)]) -> Option<Relation> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (old, new) in pairs {
        *counts.entry((old, new)).or_default() += 1;
    }
    let is_scalar = |text: &str| !text.starts_with(['{', '[']) && !is_opaque(text);
    let [old, new]: [std::collections::BTreeSet<&str>; 2] =
        [counts.keys().map(|row| row.0).collect(), counts.keys().map(|row| row.1).collect()];
    let rows = counts.len();
    let is_one_to_one = old.len() == rows && new.len() == rows;
    let is_few = (2..=ROWS_MAX).contains(&rows) && pairs.len() >= rows * PER_ROW;
    if !is_one_to_one || !is_few || !counts.keys().all(|(old, new)| is_scalar(old) && is_scalar(new)) {
        return None;
    }
    let rows = counts.into_keys().map(|(old, new)| (old.to_owned(), new.to_owned())).collect();
    Some(Relation::Table(rows))
}
