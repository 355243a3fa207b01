//! Readers for trees: the known keys of a map, and values of an expected kind.

use super::{Key, Kind, Node, TextStyle, faults};
use crate::diagnostic::{Findings, suggest};
use std::cell::LazyCell;

/// The keys of one kind of map.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    /// Name of the map in messages, with its article: `a shape`.
    pub what: &'static str,
    /// The keys, in the order in which messages list them.
    pub entries: &'static [KeyEntry],
}

/// A key of a map, or several.
#[derive(Debug, Clone, Copy)]
pub enum KeyEntry {
    /// One key.
    Key {
        /// Its name.
        name: &'static str,
        /// Whether the map must have it.
        required: bool,
    },
    /// Keys that several kinds of maps share.
    Part(&'static [KeyEntry]),
}

impl KeyEntry {
    /// Returns a key that the map must have.
    pub const fn required(name: &'static str) -> KeyEntry {
        KeyEntry::Key { name, required: true }
    }

    /// Returns a key that the map may lack.
    pub const fn optional(name: &'static str) -> KeyEntry {
        KeyEntry::Key { name, required: false }
    }
}

impl Keys {
    /// Returns all keys, each with whether the map must have it.
    pub fn all(&self) -> Vec<(&'static str, bool)> {
        fn collect(entries: &[KeyEntry], keys: &mut Vec<(&'static str, bool)>) {
            for entry in entries {
                match entry {
                    KeyEntry::Key { name, required } => keys.push((name, *required)),
                    KeyEntry::Part(entries) => collect(entries, keys),
                }
            }
        }
        let mut keys = Vec::new();
        collect(self.entries, &mut keys);
        keys
    }
}

/// A map with keys that were checked against [`Keys`].
#[derive(Debug, Clone, Copy)]
pub struct Fields<'n> {
    /// The map itself, for its place.
    pub node: &'n Node,
    entries: &'n [(Key, Node)],
}

impl<'n> Fields<'n> {
    /// Checks that `node` is a map with these keys. Unknown keys are reported with the nearest
    /// known one, and missing keys are reported. Returns `None` only if the node is not a map: with
    /// wrong keys, the others can still be read.
    pub fn parse(node: &'n Node, keys: &Keys, findings: &mut Findings) -> Option<Fields<'n>> {
        let entries = node.map(findings)?;
        let known = keys.all();
        let is_given = |name: &str| entries.iter().any(|(key, _)| key.name == name);
        // Suggest only keys that are not present yet.
        let free = LazyCell::new(|| {
            known.iter().map(|(name, _)| *name).filter(|name| !is_given(name)).collect::<Vec<_>>()
        });
        // A misspelt key is not also reported as missing.
        let mut meant = Vec::new();
        for (key, _) in entries.iter().filter(|(key, _)| !known.iter().any(|(name, _)| *name == key.name)) {
            meant.extend(suggest(&key.name, free.iter().copied()));
            findings.push(faults::unknown_key(&key.name, key.span, keys.what, free.iter().copied()));
        }
        for (name, _) in known.iter().filter(|(_, required)| *required) {
            if !is_given(name) && !meant.contains(name) {
                findings.push(faults::missing_key(name, node.span, keys.what));
            }
        }
        Some(Fields { node, entries })
    }

    /// Returns a map for which the caller checks the keys, or `None` if the node is not a map.
    pub fn unchecked(node: &'n Node) -> Option<Fields<'n>> {
        node.as_map().map(|entries| Fields { node, entries })
    }

    /// Returns the value of a key, if present. [`Fields::parse`] reported a missing required key.
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.entry(name).map(|(_, value)| value)
    }

    /// Returns a key with its value, if present.
    pub fn entry(&self, name: &str) -> Option<(&'n Key, &'n Node)> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(key, value)| (key, value))
    }
}

/// Values of an expected kind. Each function reports a value of another kind and returns `None`.
impl Node {
    /// Returns a text.
    pub fn text(&self, findings: &mut Findings) -> Option<&str> {
        self.as_str().or_else(|| {
            let help = match &self.kind {
                Kind::Number(text) => Some(format!("quote it: '{text}'")),
                Kind::Bool(value) => Some(format!("quote it: '{value}'")),
                _ => None,
            };
            self.wrong_kind("a text", help, findings)
        })
    }

    /// Returns a boolean.
    pub fn boolean(&self, findings: &mut Findings) -> Option<bool> {
        match &self.kind {
            Kind::Bool(value) => Some(*value),
            Kind::String(text, TextStyle::Quoted) if matches!(text.as_str(), "true" | "false") => {
                self.wrong_kind("`true` or `false`", Some("leave the quotes out".to_owned()), findings)
            }
            _ => self.wrong_kind("`true` or `false`", None, findings),
        }
    }

    /// Returns a non-negative integer within the range.
    pub fn whole(&self, range: std::ops::RangeInclusive<u64>, findings: &mut Findings) -> Option<u64> {
        let Kind::Number(text) = &self.kind else {
            return self.wrong_kind("a whole number", None, findings);
        };
        let value = text.parse().ok().filter(|value| range.contains(value));
        if value.is_none() {
            findings.push(faults::out_of_range(self.span, *range.start(), *range.end()));
        }
        value
    }

    /// Returns the items of a list.
    pub fn list(&self, findings: &mut Findings) -> Option<&[Node]> {
        self.as_seq().or_else(|| self.wrong_kind("a list", None, findings))
    }

    /// Returns the entries of a map with any keys.
    pub fn map(&self, findings: &mut Findings) -> Option<&[(Key, Node)]> {
        self.as_map().or_else(|| self.wrong_kind("a map", None, findings))
    }

    /// Returns one of several words.
    pub fn word<'w>(&self, words: &[&'w str], findings: &mut Findings) -> Option<&'w str> {
        let text = self.text(findings)?;
        let word = words.iter().copied().find(|word| *word == text);
        if word.is_none() {
            findings.push(faults::unknown_word(text, self.span, words.iter().copied()));
        }
        word
    }

    /// Reports that `wanted` (with its article) is expected in place of this value.
    pub fn wrong_kind<T>(&self, wanted: &str, help: Option<String>, findings: &mut Findings) -> Option<T> {
        findings.push(faults::wrong_kind(self.span, wanted, self.kind_word(), help));
        None
    }
}
