//! One typing error at a time: each is rejected, with a finding on its line.

use super::{in_parallel, messaging, with_file, written};
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::mapping::Compiled;
use switchback_compiler::yaml::{self, Kind, Node};

/// Slips tried in the suite, spread over all words of the pack; `SWITCHBACK_EVERY_LINE=1` tries
/// four times as many.
const SLIPS: usize = 100;

/// A word of the pack: its file, where it starts, and its text.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub file: String,
    pub start: usize,
    pub text: String,
}

/// Keys with descriptions for people as values, or with external names: a typing error in these
/// cannot be distinguished from a decision. The same holds for tables of values that a contract
/// does not enumerate.
const FREE: &[&str] = &[
    "about",
    "differs",
    "approximate",
    "pack",
    "credentials",
    "scope",
    "languages",
    "default",
    "headers",
    "table",
    "reading",
    "wrong_method",
];

/// Keys under these are names that the pack gives, or texts.
fn collect(node: &Node, path: &mut Vec<String>, words: &mut Vec<(usize, String)>) {
    match &node.kind {
        Kind::Map(entries) => {
            for (key, value) in entries.iter() {
                words.push((key.span.start as usize, key.name.clone()));
                if FREE.contains(&key.name.as_str()) || (path.len() == 2 && path[0] == "reasons") {
                    continue;
                }
                // At a place for any text, a misspelt `keep` is a text.
                if key.name == "else" && matches!(value.kind, Kind::String(..)) {
                    continue;
                }
                path.push(key.name.clone());
                collect(value, path, words);
                path.pop();
            }
        }
        Kind::Seq(items) => items.iter().for_each(|item| collect(item, path, words)),
        Kind::String(text, _) => words.push((node.span.start as usize, text.clone())),
        Kind::Number(text) => words.push((node.span.start as usize, text.clone())),
        Kind::Null | Kind::Bool(_) => {}
    }
}

pub(super) fn words_of(file: &str, text: &str) -> Vec<Word> {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let root = yaml::parse(&mut sources, file, text.as_bytes(), &mut findings).expect("the pack is YAML");
    let mut values = Vec::new();
    collect(&root, &mut Vec::new(), &mut values);
    let mut words = Vec::new();
    for (start, value) in values {
        // The places of the words within a text such as `PUT /things/{$.made.body.id}`; its quotes are
        // skipped.
        let quoted = usize::from(text[start..].starts_with(['\'', '"']));
        let mut at = 0;
        for part in value.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-') {
            let offset = at + value[at..].find(part).expect("a part of the value");
            at = offset + part.len();
            let start = start + quoted + offset;
            if part.len() >= 3 && text[start..].starts_with(part) {
                words.push(Word { file: file.to_owned(), start, text: part.to_owned() });
            }
        }
    }
    words
}

/// The `n`-th way to slip in a word: a letter left out, doubled, swapped with its neighbour, or another one.
pub(super) fn slip(word: &str, n: usize) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = letters.len() / 2;
    if word.chars().all(|c| c.is_ascii_digit()) {
        let other = char::from(b'0' + (letters[at] as u8 - b'0' + 7) % 10);
        letters[at] = other;
        return letters.into_iter().collect();
    }
    match n % 4 {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letters[at]),
        2 if letters[at] != letters[at - 1] => letters.swap(at, at - 1),
        _ => letters[at] = if letters[at] == 'q' { 'z' } else { 'q' },
    }
    letters.into_iter().collect()
}

/// Whether a finding, or a place related to it, is on this line.
fn is_on_line(compiled: &Compiled, file: &str, line: u32) -> bool {
    compiled.findings.in_order().iter().any(|finding| {
        let places = std::iter::once(finding.span).chain(finding.related.iter().map(|(span, _)| *span));
        places
            .into_iter()
            .any(|span| compiled.sources.name(span.file) == file && compiled.sources.start(span).line == line)
    })
}

/// Slips of a name that is given at one place and read at others, which are as near to another name
/// there: the finding is at the place that reads it.
const AT_THE_READER: &[(&str, &str, &str)] = &[("chats.map.yaml", "chat", "chaat")];

/// An argument that is such a name.
const NAME_ARGUMENT: &str = "list: ";

/// Names of members that no contract describes: the start of the text after the name, and the name.
const UNDESCRIBED: &[(&str, &str)] =
    &[("token, value: value}}], else: []}", "token"), ("value}}], else: []}", "value")];

#[test]
fn slips_are_seen_where_they_are_made() {
    let pack = messaging();
    let words: Vec<Word> = written(&pack).flat_map(|(name, text)| words_of(name, text)).collect();
    let all: Vec<(Word, String)> = (0..4)
        .flat_map(|n| {
            words.iter().enumerate().map(move |(index, word)| (word.clone(), slip(&word.text, n + index)))
        })
        .filter(|(word, slipped)| word.text != *slipped && !words.iter().any(|other| other.text == *slipped))
        .filter(|(word, _)| {
            let text = written(&pack).find(|(name, _)| *name == word.file).expect("a file of the pack").1;
            let is_here =
                |(from, name): &&(&str, &str)| word.text == *name && text[word.start..].starts_with(from);
            UNDESCRIBED.iter().find(is_here).is_none()
        })
        .collect();
    let wanted = SLIPS * if std::env::var_os("SWITCHBACK_EVERY_LINE").is_some() { 4 } else { 1 };
    let slips: Vec<(Word, String)> = all.iter().step_by(all.len() / wanted).cloned().collect();
    assert!(slips.len() >= wanted, "the pack has room for so many");
    let missed = in_parallel(&slips, |compiler, (word, slipped)| {
        let text = written(&pack).find(|(name, _)| *name == word.file).expect("a file of the pack").1;
        let line = text[..word.start].matches('\n').count() as u32 + 1;
        let (before, after) = (&text[..word.start], &text[word.start + word.text.len()..]);
        let compiled = compiler.compile(&with_file(&pack, &word.file, format!("{before}{slipped}{after}")));
        let is_at_reader =
            AT_THE_READER.contains(&(word.file.as_str(), word.text.as_str(), slipped.as_str()))
                || before.ends_with(NAME_ARGUMENT);
        let seen = match is_at_reader {
            true => compiled.findings.has_errors(),
            false => is_on_line(&compiled, &word.file, line),
        };
        (!seen).then(|| format!("{}:{line}: {} -> {slipped}", word.file, word.text))
    });
    let missed: Vec<String> = missed.into_iter().flatten().collect();
    println!("{} slips of {}, {} not seen on their line", slips.len(), all.len(), missed.len());
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
