//! One cause, one finding: two typing errors on a line of a pack lead to two findings on that line.
//! Each is tried alone too: a finding for one of them remains next to the other, unless the latter
//! prevents the rest from being read.

use super::typos::{Word, slip, words_of};
use super::{in_parallel, with_file, written};
use crate::support::packs;
use std::collections::BTreeSet;
use switchback_compiler::diagnostic::Finding;
use switchback_compiler::mapping::Compiler;
use switchback_compiler::mapping::load::PackSource;

/// Lines tried in the suite, spread over all packs. `SWITCHBACK_TWO_SLIPS=10000 cargo test --test
/// integration two_slips` tries all of them.
const SAMPLE: usize = 24;

/// A line with two words misspelt.
struct Slips {
    pack: usize,
    file: String,
    line: u32,
    /// The file with the first, with the second, and with both of them.
    texts: [String; 3],
    /// Whether both are in one text, which may not be read behind the first.
    in_one_text: bool,
    about: String,
}

/// Every line of the packs with two words in which a typing error can be distinguished from a
/// decision.
fn slips(packs: &[PackSource]) -> Vec<Slips> {
    let mut all = Vec::new();
    for (pack, source) in packs.iter().enumerate() {
        let words: Vec<Word> = written(source).flat_map(|(name, text)| words_of(name, text)).collect();
        let known: BTreeSet<&str> = words.iter().map(|word| word.text.as_str()).collect();
        for (name, text) in written(source) {
            // An example has values, which are anything.
            let examples = text.find("\nexamples:").map_or(text.len(), |at| at + 1);
            let mut start = 0;
            for (at, line) in text.split_inclusive('\n').enumerate() {
                let (from, end) = (start, start + line.len());
                start = end;
                if from >= examples {
                    break;
                }
                let on_line =
                    words.iter().filter(|word| word.file == name && (from..end).contains(&word.start));
                let slipped = |word: &Word| {
                    let ways = (at..at + 4).map(|n| slip(&word.text, n));
                    ways.into_iter().find(|slipped| !known.contains(slipped.as_str()))
                };
                let on_line: Vec<(&Word, String)> =
                    on_line.filter_map(|word| Some((word, slipped(word)?))).collect();
                let [first, .., last] = on_line.as_slice() else { continue };
                let spoilt = |first_too: bool, last_too: bool| {
                    let mut text = text.to_owned();
                    for ((word, slipped), is_wanted) in [(last, last_too), (first, first_too)] {
                        if is_wanted {
                            text.replace_range(word.start..word.start + word.text.len(), slipped);
                        }
                    }
                    text
                };
                all.push(Slips {
                    pack,
                    file: name.to_owned(),
                    line: at as u32 + 1,
                    texts: [spoilt(true, false), spoilt(false, true), spoilt(true, true)],
                    in_one_text: !text[first.0.start..last.0.start].contains([',', '{', '[', ':']),
                    about: format!("{} -> {}, {} -> {}", first.0.text, first.1, last.0.text, last.1),
                });
            }
        }
    }
    all
}

/// The findings in a file: the number of each, and whether it has a place on the line.
fn said(compiler: &mut Compiler, pack: &PackSource, slips: &Slips, text: &str) -> Vec<(String, bool)> {
    let compiled = compiler.compile(&with_file(pack, &slips.file, text.to_owned()));
    let is_here = |finding: &Finding| {
        let places = std::iter::once(finding.span).chain(finding.related.iter().map(|(span, _)| *span));
        places.into_iter().any(|span| {
            compiled.sources.name(span.file) == slips.file && compiled.sources.start(span).line == slips.line
        })
    };
    compiled
        .findings
        .in_order()
        .into_iter()
        .map(|finding| (finding.code.number().to_owned(), is_here(finding)))
        .collect()
}

/// Returns the faults of the findings for two typing errors, if any.
fn wrong(compiler: &mut Compiler, packs: &[PackSource], slips: &Slips) -> Option<String> {
    let [first, last, both] =
        slips.texts.each_ref().map(|text| said(compiler, &packs[slips.pack], slips, text));
    let codes = |said: &[(String, bool)]| {
        let codes =
            said.iter().map(|(code, here)| format!("{code}{}", if *here { "" } else { " elsewhere" }));
        codes.collect::<Vec<_>>().join(", ")
    };
    let fault = if first.len() > 1 || last.len() > 1 || both.len() > 2 {
        "doubled"
    } else if [&first, &last, &both].into_iter().flatten().any(|(_, here)| !here) {
        "misplaced"
    } else if both.is_empty() {
        "unseen"
    } else if both.len() < first.len() + last.len() && !slips.in_one_text {
        "hidden"
    } else {
        return None;
    };
    Some(format!(
        "{fault}: {}:{}: {}: [{}] and [{}] give [{}]",
        slips.file,
        slips.line,
        slips.about,
        codes(&first),
        codes(&last),
        codes(&both)
    ))
}

#[test]
fn two_slips_on_a_line_earn_two_findings() {
    let sample = std::env::var("SWITCHBACK_TWO_SLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(SAMPLE);
    let packs = packs::all();
    let all = slips(&packs);
    let step = all.len().div_ceil(sample).max(1);
    let chosen: Vec<&Slips> = all.iter().step_by(step).collect();
    let wrong: Vec<String> = in_parallel(&chosen, |compiler, slips| wrong(compiler, &packs, slips))
        .into_iter()
        .flatten()
        .collect();
    println!("{} of {} lines with two slips each", chosen.len(), all.len());
    assert!(wrong.is_empty(), "{} of {} lines:\n{}", wrong.len(), chosen.len(), wrong.join("\n"));
}
