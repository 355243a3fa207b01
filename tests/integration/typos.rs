//! Typing mistakes in the messaging pack, one at a time: every one is refused, with a finding on its line.
//!
//! A thousand of them are made: neighbouring letters of a name swapped, or digits of a number. By default every twentieth is
//! tried; `TYPOS=all` tries them all.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use switchback::mapping::compile;
use switchback::mapping::load::PackSource;

const TYPOS: usize = 1_000;

/// Lines whose words are for people, not for the compiler.
const FOR_PEOPLE: &[&str] = &["differs:", "about:", "approximate:", " en: ", " pt-br: ", " es: ", "{en: "];

/// Names that are the pack's own choice and stand nowhere else, and numbers that may as well be others.
const FREE: &[&str] = &[
    // The name of the pack, of a step that only writes, and of the variable of a scope.
    "pack: messaging",
    "- set:",
    "scope: ",
    // Headers, schemes and statuses that an operator chooses.
    "credentials",
    "v2: {read: ",
    "v3: {read: ",
    "paging: ",
    "refuse: {legacy",
    "status: {wrong_method: 501}",
    // A file's own header on an answer.
    "x-created-id",
];

/// One typing mistake.
struct Typo {
    file: String,
    line: usize,
    word: String,
    text: String,
}

fn pack() -> PackSource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
    PackSource::from_dir(&folder).expect("the pack lies in the sources")
}

/// Every word of the pack's mapping files that means something to the compiler, mistyped.
fn typos(source: &PackSource) -> Vec<Typo> {
    let mut typos = Vec::new();
    for (file, bytes) in source.files() {
        if file.contains('/') || file.ends_with(".examples.map.yaml") {
            continue;
        }
        let text = std::str::from_utf8(bytes).expect("the pack is UTF-8");
        let mut start = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let meant = line.split(" #").next().unwrap_or(line);
            let people = FOR_PEOPLE.iter().chain(FREE).any(|word| line.contains(word));
            if !people && !line.trim_start().starts_with('#') {
                for (at, word) in words(meant) {
                    let Some(mistyped) = mistype(word) else { continue };
                    let at = start + at;
                    let text = format!("{}{mistyped}{}", &text[..at], &text[at + word.len()..]);
                    typos.push(Typo { file: file.clone(), line: number + 1, word: word.to_owned(), text });
                }
            }
            start += line.len();
        }
    }
    typos
}

/// Words of at least three letters or digits, with their places.
fn words(line: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut at = 0;
    for word in line.split(|c| !is_word(c)) {
        if word.len() >= 3 {
            words.push((at, word));
        }
        at += word.len() + 1;
    }
    words
}

/// The first two different neighbours after the first letter, swapped.
fn mistype(word: &str) -> Option<String> {
    let mut letters: Vec<char> = word.chars().collect();
    let at = (1..letters.len() - 1).find(|at| letters[*at] != letters[*at + 1])?;
    letters.swap(at, at + 1);
    Some(letters.into_iter().collect())
}

/// Whether a finding stands on the line of the mistake.
fn is_found(source: &PackSource, typo: &Typo) -> bool {
    let files = source.files().iter().map(|(name, bytes)| {
        let bytes = if *name == typo.file { typo.text.clone().into_bytes() } else { bytes.clone() };
        (name.clone(), bytes)
    });
    let compiled = compile(&PackSource::from_files(files.collect()));
    let lines: BTreeSet<(String, u32)> = compiled
        .findings
        .sorted()
        .iter()
        .flat_map(|finding| [finding.span].into_iter().chain(finding.related.iter().map(|(span, _)| *span)))
        .map(|span| (compiled.sources.name(span.file).to_owned(), compiled.sources.start(span).line))
        .collect();
    compiled.pack.is_none() && lines.contains(&(typo.file.clone(), typo.line as u32))
}

#[test]
fn every_obvious_typo_is_refused_on_its_line() {
    let source = pack();
    let typos = typos(&source);
    assert!(typos.len() >= TYPOS, "only {} typos can be made", typos.len());
    let every = if std::env::var_os("TYPOS").is_some() { 1 } else { 20 };
    // Spread over all files.
    let chosen: Vec<&Typo> = (0..TYPOS).step_by(every).map(|n| &typos[n * typos.len() / TYPOS]).collect();
    let missed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (chosen, missed, source) = (&chosen, &missed, &source);
            scope.spawn(move || {
                for typo in chosen.iter().skip(worker).step_by(workers) {
                    if !is_found(source, typo) {
                        let said = format!("{}:{}: `{}` mistyped", typo.file, typo.line, typo.word);
                        missed.lock().expect("no worker panics").push(said);
                    }
                }
            });
        }
    });
    let mut missed = missed.into_inner().expect("no worker panics");
    missed.sort();
    assert!(missed.is_empty(), "{} of {} typos pass:\n{}", missed.len(), chosen.len(), missed.join("\n"));
}
