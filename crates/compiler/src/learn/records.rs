//! Objects of recorded bodies as rows of cells, in bounded memory.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use switchback_json::Value;

/// Maximum number of objects kept of one operation and place. The first ones are kept.
pub(super) const RECORDS_MAX: usize = 500;
/// Maximum number of places kept of one object.
const CELLS_MAX: usize = 300;
/// Maximum depth of places.
const DEPTH_MAX: usize = 5;
/// Maximum number of elements kept of a list of objects.
const ELEMENTS_MAX: usize = 100;
/// Longer texts are replaced by their hash, which still allows them to be compared.
const TEXT_MAX: usize = 512;

/// The start of a text that stands for a longer one.
const HASHED: &str = "\"#";
/// A part of a text or name that a recording masks.
const MASK: &str = "***";

/// Returns whether a text replaces another one: equal texts are equal, and no more is known of them.
pub(super) fn is_opaque(text: &str) -> bool {
    text.contains(MASK) || (text.starts_with(HASHED) && text.len() == HASHED.len() + 17)
}

/// An object of a message.
#[derive(Debug)]
pub(super) struct Record {
    /// By place: names joined by `.`, with `[*]` after the name of a list of objects.
    pub cells: BTreeMap<Arc<str>, Cell>,
    /// Values of the variables of the path.
    pub variables: Vec<String>,
    /// The place in the exchange that contains it.
    pub pair: Option<PairedPlace>,
}

/// A position in a message of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PairedPlace {
    pub exchange: u64,
    pub position: usize,
    /// Number of objects in the list.
    pub length: usize,
}

/// The value at one place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Cell {
    /// Canonical JSON text.
    One(Box<str>),
    /// Texts of the elements of a list; `None` if an element lacks the member.
    Many(Vec<Option<Box<str>>>),
}

impl Record {
    /// Returns a hash of the object, regardless of the answer that contains it. An element of a list
    /// is the same in the lists of several resources.
    pub(super) fn hash(&self, is_element: bool) -> u64 {
        hash(&(&self.cells, (!is_element).then_some(&self.variables)))
    }

    /// Returns the scalar at a place as a text without quotes, so that `7` and `"7"` are equal.
    pub(super) fn bare(&self, place: &str) -> Option<&str> {
        match self.cells.get(place)? {
            Cell::One(text) if !text.starts_with(['{', '[']) && &**text != "null" => {
                Some(text.trim_matches('"'))
            }
            _ => None,
        }
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the objects of a body by their place in it: `$` for the body itself, `$[*]`, `$.data`,
/// `$.data[*]`, down to two objects deep, outside of lists.
pub(super) fn objects(body: &Value) -> Vec<(String, Vec<&Value>)> {
    let mut found = Vec::new();
    collect("$", body, 0, &mut found);
    found
}

fn collect<'v>(place: &str, value: &'v Value, depth: usize, found: &mut Vec<(String, Vec<&'v Value>)>) {
    match value {
        Value::Object(members) => {
            found.push((place.to_owned(), vec![value]));
            for (name, member) in members.iter().filter(|_| depth < 2) {
                collect(&format!("{place}.{}", name.decode()), member, depth + 1, found);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.as_object().is_some()) => {
            found.push((format!("{place}[*]"), items.iter().collect()));
        }
        _ => {}
    }
}

/// Returns the cells of an object. `names` holds the places that are known, to share their texts.
pub(super) fn cells(value: &Value, names: &mut BTreeMap<String, Arc<str>>) -> BTreeMap<Arc<str>, Cell> {
    let mut found = BTreeMap::new();
    visit("", value, 0, &mut found);
    let shared = found.into_iter().take(CELLS_MAX).map(|(place, cell)| {
        let name = names.entry(place).or_insert_with_key(|place| place.as_str().into());
        (Arc::clone(name), cell)
    });
    shared.collect()
}

fn visit(place: &str, value: &Value, depth: usize, found: &mut BTreeMap<String, Cell>) {
    if !place.is_empty() {
        let text = canonical(value);
        let text = if text.len() > TEXT_MAX { format!("{HASHED}{:016x}\"", hash(&text)) } else { text };
        found.insert(place.to_owned(), Cell::One(text.into()));
    }
    match value {
        _ if depth == DEPTH_MAX => {}
        Value::Object(members) => {
            for (name, member) in members.iter() {
                let name = name.decode();
                // A name that contains a separator has no place in this notation, and a masked one none
                // in a contract.
                if !name.contains(['.', '[']) && !name.contains(MASK) {
                    let inner = if place.is_empty() { name.into_owned() } else { format!("{place}.{name}") };
                    visit(&inner, member, depth + 1, found);
                }
            }
        }
        Value::Array(items) => {
            let items = &items[..items.len().min(ELEMENTS_MAX)];
            for (at, item) in items.iter().enumerate().filter(|(_, item)| item.as_object().is_some()) {
                let mut inner = BTreeMap::new();
                visit("", item, depth + 1, &mut inner);
                for (name, cell) in inner {
                    let Cell::One(text) = cell else { continue };
                    let column = found.entry(format!("{place}[*].{name}"));
                    if let Cell::Many(texts) = column.or_insert_with(|| Cell::Many(vec![None; items.len()])) {
                        texts[at] = Some(text);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Returns the JSON text with sorted members and uniform escapes.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<String, String> =
                members.iter().map(|(name, value)| (quote(&name.decode()), canonical(value))).collect();
            let all: Vec<String> =
                sorted.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
            format!("{{{}}}", all.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::String(text) => quote(&text.decode()),
        other => other.to_string(),
    }
}

/// Returns a text as JSON.
pub(super) fn quote(text: &str) -> String {
    Value::string(text).to_string()
}
