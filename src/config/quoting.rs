//! What findings may repeat of a configuration file. They show lines of it, and the lines hold secrets: under the keys that
//! are for them, under keys that somebody mistyped, twice, in a place where YAML reads something else. So nothing is shown
//! but keys and the values of keys that are known to be harmless; all else is starred, character by character, so that
//! places stay.

use super::references::References;
use std::ops::Range;
use switchback_compiler::diagnostic::{Code, Finding, Span};
use switchback_compiler::yaml::{Key, Kind, Node};
use switchback_engine::redact::{MASK, looks_secret};

/// Longest key that is shown whole.
const KEY_CHARS_MAX: usize = 64;

/// Values from this length on are taken out of sentences wherever they stand, shorter ones only where they are quoted: they
/// would be found in words.
const VALUE_CHARS_MIN: usize = 6;

/// Most of a finding's place that is taken for one value.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// What of a text that could be read may be shown.
pub(super) struct Shown {
    places: Vec<Range<usize>>,
    /// Scalars as they stand in the file, of which only what is in `places` is shown.
    scalars: Vec<Range<usize>>,
    /// Values that sentences must not repeat, and what stands for each.
    values: Vec<(String, String)>,
}

impl Shown {
    /// `quotable` are the places of harmless values.
    pub(super) fn of(tree: &Node, quotable: Vec<Span>, references: &References) -> Shown {
        let mut shown = Shown {
            places: quotable.into_iter().map(range).chain(references.names()).collect(),
            scalars: Vec::new(),
            values: Vec::new(),
        };
        shown.node(tree);
        shown
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            Kind::Map(entries) => {
                for (key, value) in entries {
                    self.key(key);
                    self.node(value);
                }
            }
            Kind::Seq(items) => items.iter().for_each(|item| self.node(item)),
            Kind::String(text, _) | Kind::Number(text) => self.scalar(node.span, text),
            Kind::Null | Kind::Bool(_) => self.scalars.push(range(node.span)),
        }
    }

    /// A key is shown up to where it stops looking like one: `client_secret:abc` is a key for YAML.
    fn key(&mut self, key: &Key) {
        let plain = plain_part(&key.name);
        let start = key.span.start as usize;
        if plain.len() == key.name.len() {
            self.places.push(range(key.span));
        } else {
            self.places.push(start..start + plain.len());
            self.values.push((key.name.clone(), format!("{plain}…")));
        }
    }

    fn scalar(&mut self, span: Span, text: &str) {
        let place = range(span);
        if !self.places.iter().any(|shown| shown.start <= place.start && place.end <= shown.end) {
            self.values.push((text.to_owned(), MASK.to_owned()));
        }
        self.scalars.push(place);
    }

    /// The text as findings may quote it.
    pub(super) fn quotable(&self, text: &str) -> String {
        let within = |ranges: &[Range<usize>], at: usize| ranges.iter().any(|range| range.contains(&at));
        starred(text, |at, c| {
            // Beside values and keys there are only comments and marks.
            within(&self.places, at) || (!c.is_alphanumeric() && !within(&self.scalars, at))
        })
    }
}

/// The text as findings may quote it where it could not be read, so that it is not known what is a key: only words before
/// a colon are shown that are keys of the configuration.
pub(super) fn unread(text: &str, references: &References) -> String {
    let keys = known_keys();
    let mut places: Vec<Range<usize>> = references.names().collect();
    for (colon, _) in text.match_indices(':') {
        let is_end = text[colon + 1..].chars().next().is_none_or(char::is_whitespace);
        let before = &text[..colon];
        let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        let word = &before[start..];
        let line = before[before.rfind('\n').map_or(0, |at| at + 1)..start].trim_start();
        // A key stands at the start of a line, or after what opens or parts a map.
        let is_place =
            line.is_empty() || line.ends_with(['{', ',', ' ', '-']) && !line.contains(['"', '\'', '#']);
        if is_end && is_place && (keys.contains(word) || word.ends_with("_token")) {
            places.push(start..colon);
        }
    }
    starred(text, |at, c| !c.is_alphanumeric() || places.iter().any(|place| place.contains(&at)))
}

/// All keys of the configuration's schema.
fn known_keys() -> std::collections::BTreeSet<String> {
    fn gather(schema: &serde_json::Value, keys: &mut std::collections::BTreeSet<String>) {
        match schema {
            serde_json::Value::Object(members) => {
                if let Some(properties) = members.get("properties").and_then(|value| value.as_object()) {
                    keys.extend(properties.keys().cloned());
                }
                members.values().for_each(|value| gather(value, keys));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| gather(item, keys)),
            _ => {}
        }
    }
    let mut keys = std::collections::BTreeSet::new();
    gather(&super::schema(), &mut keys);
    keys
}

/// The text with a star for each byte of a character that is not to be shown. Line breaks stay.
fn starred(text: &str, is_shown: impl Fn(usize, char) -> bool) -> String {
    let mut starred = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c.is_whitespace() || is_shown(at, c) {
            true => starred.push(c),
            false => starred.extend(std::iter::repeat_n('*', c.len_utf8())),
        }
    }
    starred
}

/// Takes values of the file out of the sentences of a finding.
pub(super) fn without_values(finding: &mut Finding, text: &str, shown: Option<&Shown>) {
    if finding.code == Code::Tag {
        // A tag is what follows an exclamation mark, with which passwords like to begin.
        "tags (`!…`) are not read".clone_into(&mut finding.message);
    }
    let mut values: Vec<(String, String)> = shown.map(|shown| shown.values.clone()).unwrap_or_default();
    // What is no scalar of the tree was dropped on the way: a second value of a key, a syntax error.
    let place = range(finding.span);
    let is_shown = shown.is_some_and(|shown| {
        shown.places.iter().any(|shown| shown.start <= place.start && place.end <= shown.end)
    });
    let typed = text.get(place).unwrap_or_default().trim_matches(['\'', '"', ' ', '\n']);
    if !is_shown && !typed.is_empty() && typed.len() <= VALUE_BYTES_MAX && plain_part(typed) != typed {
        values.push((typed.to_owned(), MASK.to_owned()));
    }
    values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    let sentences = [Some(&mut finding.message), finding.label.as_mut(), finding.help.as_mut()];
    let related = finding.related.iter_mut().map(|(_, words)| words);
    for sentence in sentences.into_iter().flatten().chain(related) {
        for (value, mask) in values.iter().filter(|(value, _)| !value.is_empty()) {
            for (open, close) in [('`', '`'), ('\'', '\'')] {
                let quoted = format!("{open}{value}{close}");
                *sentence = sentence.replace(&quoted, &format!("{open}{mask}{close}"));
            }
            if value.chars().count() >= VALUE_CHARS_MIN {
                *sentence = sentence.replace(value.as_str(), mask);
            }
        }
    }
}

/// The beginning of a key that looks like one: a word, a path, a method and a path.
fn plain_part(key: &str) -> &str {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '{' | '}' | ' ');
    let end = key.find(|c| !is_plain(c)).unwrap_or(key.len()).min(KEY_CHARS_MAX);
    let plain = key.get(..end).unwrap_or_default();
    if looks_secret(plain) { "" } else { plain }
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}
