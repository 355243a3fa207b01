//! Decides which parts of a configuration file findings may quote. Findings print lines of the
//! file, and lines contain secrets: under their own keys, under misspelt keys, twice, or where YAML
//! reads something else. Only keys and harmless values of known keys are quoted; all other
//! characters are replaced one by one with stars, so that columns stay correct.

use super::references::References;
use aho_corasick::{AhoCorasick, MatchKind};
use std::cell::OnceCell;
use std::ops::Range;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Help, Span};
use switchback_compiler::yaml::{Key, Kind, Node};
use switchback_engine::redact::{MASK, looks_secret};

/// Longest key that is quoted in full.
const KEY_CHARS_MAX: usize = 64;

/// Values of at least this length are masked anywhere in a sentence; shorter ones only within
/// quotes, since they also occur inside words.
const VALUE_CHARS_MIN: usize = 6;

/// Longest finding place that is treated as one value.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// Disjoint ranges of a text, sorted for binary search: a file may name thousands of clients.
#[derive(Default)]
struct TextRanges(Vec<Range<usize>>);

impl TextRanges {
    fn new(mut places: Vec<Range<usize>>) -> TextRanges {
        places.sort_unstable_by_key(|place| (place.start, place.end));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match apart.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => apart.push(place),
            }
        }
        TextRanges(apart)
    }

    /// Returns whether one range contains all of `place`.
    fn hold(&self, place: &Range<usize>) -> bool {
        let after = self.0.partition_point(|one| one.start <= place.start);
        after > 0 && place.end <= self.0[after - 1].end
    }

    fn contain(&self, at: usize) -> bool {
        let after = self.0.partition_point(|one| one.start <= at);
        after > 0 && at < self.0[after - 1].end
    }
}

/// The parts of a parsed text that may be quoted.
pub(super) struct QuotableText {
    places: TextRanges,
    /// All scalars of the file. Only those within `places` are quoted.
    scalars: TextRanges,
    /// Values to mask in sentences, with their replacements.
    values: Vec<(String, String)>,
    /// Finds the values in a sentence; built for the first finding.
    finder: OnceCell<Finder>,
}

impl QuotableText {
    /// Collects the quotable parts of a tree. `quotable` are the places of harmless values.
    pub(super) fn new(tree: &Node, quotable: Vec<Span>, references: &References) -> QuotableText {
        let mut found = QuotedValues {
            places: quotable.into_iter().map(range).chain(references.names()).collect(),
            ..QuotedValues::default()
        };
        found.node(tree);
        let places = TextRanges::new(found.places);
        let hidden = found.scalars.iter().filter(|(place, _)| !places.hold(place));
        let mut values = found.values;
        values.extend(hidden.filter_map(|(_, text)| Some(((*text)?.to_owned(), MASK.to_owned()))));
        let scalars = TextRanges::new(found.scalars.into_iter().map(|(place, _)| place).collect());
        QuotableText { places, scalars, values, finder: OnceCell::new() }
    }

    /// Returns the text with the rest masked.
    pub(super) fn quotable(&self, text: &str) -> String {
        // Outside keys and values there is only punctuation and comments; mask the words of
        // comments.
        mask_characters(text, |at, c| {
            self.places.contain(at) || (!c.is_alphanumeric() && !self.scalars.contain(at))
        })
    }

    fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| Finder::new(&self.values))
    }
}

/// Ranges and values collected from a tree.
#[derive(Default)]
struct QuotedValues<'a> {
    places: Vec<Range<usize>>,
    /// Each with its value, if that can be a secret.
    scalars: Vec<(Range<usize>, Option<&'a str>)>,
    values: Vec<(String, String)>,
}

impl<'a> QuotedValues<'a> {
    fn node(&mut self, node: &'a Node) {
        match &node.kind {
            Kind::Map(entries) => {
                for (key, value) in entries.iter() {
                    self.key(key);
                    self.node(value);
                }
            }
            Kind::Seq(items) => items.iter().for_each(|item| self.node(item)),
            Kind::String(text, _) | Kind::Number(text) => self.scalars.push((range(node.span), Some(text))),
            Kind::Null | Kind::Bool(_) => self.scalars.push((range(node.span), None)),
        }
    }

    /// Records a key up to the first character that a key does not have: YAML reads
    /// `client_secret:abc` as a key.
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

/// Masks values in sentences, all in one pass.
struct Finder {
    /// `None`: too many values for an automaton; every sentence is masked completely.
    automaton: Option<AhoCorasick>,
    /// The replacement of each pattern.
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
        // Prefer the longest match: one value may be a prefix of another.
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok();
        Finder { automaton, masks }
    }

    /// Returns the sentence with the values masked.
    fn mask(&self, sentence: &str) -> String {
        match &self.automaton {
            Some(automaton) => automaton.replace_all(sentence, &self.masks),
            None => MASK.to_owned(),
        }
    }
}

/// Returns the masked text of a file that could not be parsed. Since its keys are unknown, only
/// words before a colon that are keys of the schema are quoted.
pub(super) fn unread(text: &str, references: &References) -> String {
    let keys = known_keys();
    let mut places: Vec<Range<usize>> = references.names().collect();
    for (colon, _) in text.match_indices(':') {
        let is_end = text[colon + 1..].chars().next().is_none_or(char::is_whitespace);
        let before = &text[..colon];
        let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        let word = &before[start..];
        let line = before[before.rfind('\n').map_or(0, |at| at + 1)..start].trim_start();
        // A key starts a line, or follows a character that opens or separates the entries of a map.
        let is_place =
            line.is_empty() || line.ends_with(['{', ',', ' ', '-']) && !line.contains(['"', '\'', '#']);
        if is_end && is_place && (keys.contains(word) || word.ends_with("_token")) {
            places.push(start..colon);
        }
    }
    let places = TextRanges::new(places);
    mask_characters(text, |at, c| !c.is_alphanumeric() || places.contain(at))
}

/// Returns all keys of the configuration's schema.
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

/// Replaces each byte of a hidden character with a star. Whitespace stays.
fn mask_characters(text: &str, is_shown: impl Fn(usize, char) -> bool) -> String {
    let mut starred = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c.is_whitespace() || is_shown(at, c) {
            true => starred.push(c),
            false => starred.extend(std::iter::repeat_n('*', c.len_utf8())),
        }
    }
    starred
}

/// Masks values of the file in the texts of a finding.
pub(super) fn without_values(finding: &mut Finding, text: &str, shown: Option<&QuotableText>) {
    if finding.code == Code::Tag {
        // A tag is any text after `!`, which passwords often start with.
        "tags (`!…`) are not read".clone_into(&mut finding.message);
    }
    // A place that is no scalar of the tree was dropped during parsing: a duplicate key's value, a
    // syntax error.
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
        for finder in dropped.iter().chain(shown.map(QuotableText::finder)) {
            *sentence = finder.mask(sentence);
        }
    }
}

fn sentences(finding: &mut Finding) -> impl Iterator<Item = &mut String> {
    let own = [Some(&mut finding.message), finding.label.as_mut(), finding.help.as_mut().map(Help::text_mut)];
    own.into_iter().flatten().chain(finding.related.iter_mut().map(|(_, words)| words))
}

/// Masks words that look like secrets in findings about parsed values, such as names and paths.
pub(super) fn without_secret_words(findings: &mut Findings) {
    findings.for_each(|finding| {
        for sentence in sentences(finding) {
            *sentence = without_secrets(sentence);
        }
    });
}

/// Masks each word of a sentence that looks like a secret.
pub fn without_secrets(sentence: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '`' | '\'' | '"');
    let words = sentence.split_inclusive(is_end).map(|word| match word.trim_end_matches(is_end) {
        plain if looks_secret(plain) => format!("{MASK}{}", &word[plain.len()..]),
        _ => word.to_owned(),
    });
    words.collect()
}

/// Returns the prefix of a key that looks like a key: a word, a path, or a method and a path.
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
            let places = TextRanges::new(all.clone());
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
        let masked = finder.mask("`ab` is not secret-12, nor secret-1; about");
        assert_eq!(masked, format!("`{MASK}` is not {MASK}, nor {MASK}; about"));
    }
}
