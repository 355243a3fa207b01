//! What findings may repeat of a configuration file. They show lines of it, and the lines hold secrets: under the keys that
//! are for them, under keys that somebody mistyped, twice, in a place where YAML reads something else. So nothing is shown
//! but keys and the values of keys that are known to be harmless; all else is starred, character by character, so that
//! places stay.

use super::references::References;
use aho_corasick::{AhoCorasick, MatchKind};
use std::cell::OnceCell;
use std::ops::Range;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span};
use switchback_compiler::yaml::{Key, Kind, Node};
use switchback_engine::redact::{MASK, looks_secret};

/// Longest key that is shown whole.
const KEY_CHARS_MAX: usize = 64;

/// Values from this length on are taken out of sentences wherever they stand, shorter ones only where they are quoted: they
/// would be found in words.
const VALUE_CHARS_MIN: usize = 6;

/// Most of a finding's place that is taken for one value.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// Places in a text, in order and apart. A file may name many thousands of clients, so that none is looked for one by one.
#[derive(Default)]
struct Places(Vec<Range<usize>>);

impl Places {
    fn new(mut places: Vec<Range<usize>>) -> Places {
        places.sort_unstable_by_key(|place| (place.start, place.end));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match apart.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => apart.push(place),
            }
        }
        Places(apart)
    }

    /// Whether all of `place` lies in one of them.
    fn hold(&self, place: &Range<usize>) -> bool {
        let after = self.0.partition_point(|one| one.start <= place.start);
        after > 0 && place.end <= self.0[after - 1].end
    }

    fn contain(&self, at: usize) -> bool {
        let after = self.0.partition_point(|one| one.start <= at);
        after > 0 && at < self.0[after - 1].end
    }
}

/// What of a text that could be read may be shown.
pub(super) struct Shown {
    places: Places,
    /// Scalars as they stand in the file, of which only what is in `places` is shown.
    scalars: Places,
    /// Values that sentences must not repeat, and what stands for each.
    values: Vec<(String, String)>,
    /// Finds the values in a sentence; made for the first finding.
    finder: OnceCell<Finder>,
}

impl Shown {
    /// `quotable` are the places of harmless values.
    pub(super) fn of(tree: &Node, quotable: Vec<Span>, references: &References) -> Shown {
        let mut found = Found {
            places: quotable.into_iter().map(range).chain(references.names()).collect(),
            ..Found::default()
        };
        found.node(tree);
        let places = Places::new(found.places);
        let hidden = found.scalars.iter().filter(|(place, _)| !places.hold(place));
        let mut values = found.values;
        values.extend(hidden.filter_map(|(_, text)| Some(((*text)?.to_owned(), MASK.to_owned()))));
        let scalars = Places::new(found.scalars.into_iter().map(|(place, _)| place).collect());
        Shown { places, scalars, values, finder: OnceCell::new() }
    }

    /// The text as findings may quote it.
    pub(super) fn quotable(&self, text: &str) -> String {
        // Beside values and keys there are only comments and marks.
        starred(text, |at, c| self.places.contain(at) || (!c.is_alphanumeric() && !self.scalars.contain(at)))
    }

    fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| Finder::new(&self.values))
    }
}

/// What is found on the way through a tree.
#[derive(Default)]
struct Found<'a> {
    places: Vec<Range<usize>>,
    /// Each with its value, where that can be a secret.
    scalars: Vec<(Range<usize>, Option<&'a str>)>,
    values: Vec<(String, String)>,
}

impl<'a> Found<'a> {
    fn node(&mut self, node: &'a Node) {
        match &node.kind {
            Kind::Map(entries) => {
                for (key, value) in entries {
                    self.key(key);
                    self.node(value);
                }
            }
            Kind::Seq(items) => items.iter().for_each(|item| self.node(item)),
            Kind::String(text, _) | Kind::Number(text) => self.scalars.push((range(node.span), Some(text))),
            Kind::Null | Kind::Bool(_) => self.scalars.push((range(node.span), None)),
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
}

/// Finds values in sentences, all of them in one pass.
struct Finder {
    /// `None`: there are too many to be looked for, and no sentence is shown.
    automaton: Option<AhoCorasick>,
    /// What stands for each pattern.
    masks: Vec<String>,
}

impl Finder {
    fn new(values: &[(String, String)]) -> Finder {
        let mut patterns = Vec::new();
        let mut masks = Vec::new();
        for (value, mask) in values.iter().filter(|(value, _)| !value.is_empty()) {
            for quote in ['`', '\''] {
                patterns.push(format!("{quote}{value}{quote}"));
                masks.push(format!("{quote}{mask}{quote}"));
            }
            if value.chars().count() >= VALUE_CHARS_MIN {
                patterns.push(value.clone());
                masks.push(mask.clone());
            }
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok();
        Finder { automaton, masks }
    }

    /// The sentence without the values.
    fn masked(&self, sentence: &str) -> String {
        match &self.automaton {
            Some(automaton) => automaton.replace_all(sentence, &self.masks),
            None => MASK.to_owned(),
        }
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
    let places = Places::new(places);
    starred(text, |at, c| !c.is_alphanumeric() || places.contain(at))
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
    // What is no scalar of the tree was dropped on the way: a second value of a key, a syntax error.
    let place = range(finding.span);
    let is_shown = shown.is_some_and(|shown| shown.places.hold(&place));
    let typed = text.get(place).unwrap_or_default().trim_matches(['\'', '"', ' ', '\n']);
    let is_known = || shown.is_some_and(|shown| shown.values.iter().any(|(value, _)| value == typed));
    let is_dropped = !is_shown
        && !typed.is_empty()
        && typed.len() <= VALUE_BYTES_MAX
        && plain_part(typed) != typed
        && !is_known();
    let dropped = is_dropped.then(|| Finder::new(&[(typed.to_owned(), MASK.to_owned())]));
    for sentence in sentences(finding) {
        for finder in dropped.iter().chain(shown.map(Shown::finder)) {
            *sentence = finder.masked(sentence);
        }
    }
}

fn sentences(finding: &mut Finding) -> impl Iterator<Item = &mut String> {
    let own = [Some(&mut finding.message), finding.label.as_mut(), finding.help.as_mut()];
    own.into_iter().flatten().chain(finding.related.iter_mut().map(|(_, words)| words))
}

/// Takes words that look secret out of findings about values that could be read: a name, or the path of a file.
pub(super) fn without_secret_words(findings: &mut Findings) {
    findings.for_each(|finding| {
        for sentence in sentences(finding) {
            *sentence = without_secrets(sentence);
        }
    });
}

/// A sentence with a mask for each word that looks like a secret.
pub fn without_secrets(sentence: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '`' | '\'' | '"');
    let words = sentence.split_inclusive(is_end).map(|word| match word.trim_end_matches(is_end) {
        plain if looks_secret(plain) => format!("{MASK}{}", &word[plain.len()..]),
        _ => word.to_owned(),
    });
    words.collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_are_found_as_by_looking_at_each(
            ends in prop::collection::vec((0_usize..40, 1_usize..6), 0..12),
            looked_for in (0_usize..50, 1_usize..4),
        ) {
            let all: Vec<_> = ends.iter().map(|(start, length)| *start..start + length).collect();
            let places = Places::new(all.clone());
            let (start, length) = looked_for;
            let is_within = |at: usize| all.iter().any(|one| one.contains(&at));
            prop_assert_eq!(places.contain(start), is_within(start));
            if all.iter().any(|one| one.start <= start && start + length <= one.end) {
                prop_assert!(places.hold(&(start..start + length)));
            }
            if places.hold(&(start..start + length)) {
                prop_assert!((start..start + length).all(is_within));
            }
        }
    }

    #[test]
    fn values_are_masked_in_one_pass_the_longer_first() {
        let value = |text: &str| (text.to_owned(), MASK.to_owned());
        let finder = Finder::new(&[value("secret-1"), value("secret-12"), value("ab"), value("")]);
        let masked = finder.masked("`ab` is not secret-12, nor secret-1; about");
        assert_eq!(masked, format!("`{MASK}` is not {MASK}, nor {MASK}; about"));
    }
}
