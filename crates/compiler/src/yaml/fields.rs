//! Taking a tree apart: known keys of a map, and values of a wanted kind.

use super::{Key, Kind, Node, Style, faults};
use crate::diagnostic::{Findings, suggest};

/// The keys that one kind of map may have.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    /// The map in messages, with its article: `a shape`.
    pub what: &'static str,
    /// Keys that must be there.
    pub required: &'static [&'static str],
    /// Keys that may be there.
    pub optional: &'static [&'static str],
    /// Whether keys that start with `x-` are left alone.
    pub extensions: bool,
    /// Keys that the reader speaks about itself, so that they are not called unknown.
    pub elsewhere: fn(&str) -> bool,
}

impl Keys {
    /// Keys of a map without extensions.
    pub const fn new(
        what: &'static str,
        required: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Keys {
        Keys { what, required, optional, extensions: false, elsewhere: |_| false }
    }

    fn all(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.required.iter().chain(self.optional).copied()
    }

    fn knows(&self, name: &str) -> bool {
        self.all().any(|known| known == name)
            || (self.extensions && name.starts_with("x-"))
            || (self.elsewhere)(name)
    }
}

/// A map whose keys have been checked against [`Keys`].
#[derive(Debug, Clone, Copy)]
pub struct Fields<'n> {
    /// The map itself, for its place.
    pub node: &'n Node,
    entries: &'n [(Key, Node)],
}

impl<'n> Fields<'n> {
    /// Checks `node` to be a map of these keys; reports unknown keys (with the nearest known one) and missing
    /// ones. `None` only when it is no map at all: with wrong keys the right ones can still be read.
    pub fn read(node: &'n Node, keys: &Keys, findings: &mut Findings) -> Option<Fields<'n>> {
        let entries = node.map(findings)?;
        // A key that is misspelt is not missing as well.
        let mut meant = Vec::new();
        for (key, _) in entries.iter().filter(|(key, _)| !keys.knows(&key.name)) {
            let free = keys.all().filter(|known| !entries.iter().any(|(key, _)| key.name == *known));
            meant.extend(suggest(&key.name, free.clone().collect::<Vec<_>>()));
            findings.push(faults::unknown_key(&key.name, key.span, keys.what, free));
        }
        let is_there = |name: &str| entries.iter().any(|(key, _)| key.name == name) || meant.contains(&name);
        for name in keys.required.iter().filter(|name| !is_there(name)) {
            findings.push(faults::missing_key(name, node.span, keys.what));
        }
        Some(Fields { node, entries })
    }

    /// The value of a key, if the key is there. A missing required key was reported by [`Fields::read`].
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.entry(name).map(|(_, value)| value)
    }

    /// Key and value, if the key is there.
    pub fn entry(&self, name: &str) -> Option<(&'n Key, &'n Node)> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(key, value)| (key, value))
    }

    /// All entries, in the order of the text, also those of unknown keys.
    pub fn entries(&self) -> &'n [(Key, Node)] {
        self.entries
    }
}

/// Values of a wanted kind: each reports a value of another kind and is then `None`.
impl Node {
    /// A text.
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

    /// `true` or `false`.
    pub fn boolean(&self, findings: &mut Findings) -> Option<bool> {
        match &self.kind {
            Kind::Bool(value) => Some(*value),
            Kind::String(text, Style::Quoted) if matches!(text.as_str(), "true" | "false") => {
                self.wrong_kind("`true` or `false`", Some("leave the quotes out".to_owned()), findings)
            }
            _ => self.wrong_kind("`true` or `false`", None, findings),
        }
    }

    /// A whole number of the range.
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

    /// A list.
    pub fn list(&self, findings: &mut Findings) -> Option<&[Node]> {
        self.as_seq().or_else(|| self.wrong_kind("a list", None, findings))
    }

    /// A map, of any keys.
    pub fn map(&self, findings: &mut Findings) -> Option<&[(Key, Node)]> {
        self.as_map().or_else(|| self.wrong_kind("a map", None, findings))
    }

    /// One of a few words.
    pub fn word<'w>(&self, words: &[&'w str], findings: &mut Findings) -> Option<&'w str> {
        let text = self.text(findings)?;
        let word = words.iter().copied().find(|word| *word == text);
        if word.is_none() {
            findings.push(faults::unknown_word(text, self.span, words.iter().copied()));
        }
        word
    }

    /// Reports that `wanted` (with its article) is needed where this value stands.
    pub fn wrong_kind<T>(&self, wanted: &str, help: Option<String>, findings: &mut Findings) -> Option<T> {
        findings.push(faults::wrong_kind(self.span, wanted, self.kind_word(), help));
        None
    }
}
