//! Lines and guesses of drafts, and the labels that people assigned to them.

use super::sides;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::init::{self, Draft, Weight};
use switchback_compiler::yaml::{self, Kind, Node};

/// Runs `--lines COUNT --seed SEED OLD NEW…` or `--judge LABELS OLD NEW…`.
pub fn run(arguments: &[String]) -> ExitCode {
    match arguments {
        [first, count, seed_word, seed, pairs @ ..] if first == "--lines" && seed_word == "--seed" => {
            let (Ok(count), Ok(seed)) = (count.parse(), seed.parse()) else { return ExitCode::from(2) };
            show(count, seed, &drafts(pairs));
            ExitCode::SUCCESS
        }
        [first, labels, pairs @ ..] if first == "--judge" => match std::fs::read_to_string(labels) {
            Ok(labels) => judge(&labels, &drafts(pairs)),
            Err(error) => {
                eprintln!("{labels}: {error}");
                ExitCode::from(2)
            }
        },
        _ => {
            eprintln!("--lines COUNT --seed SEED OLD NEW…, or --judge LABELS OLD NEW…");
            ExitCode::from(2)
        }
    }
}

/// Lines and guesses by pair.
type Drafts = BTreeMap<String, [BTreeSet<String>; 2]>;

const KINDS: [&str; 2] = ["line", "guess"];

fn drafts(paths: &[String]) -> Drafts {
    let mut drafts = Drafts::new();
    for pair in paths.chunks_exact(2) {
        let (name, sides) = sides(pair);
        if let Ok(draft) = init::draft("pack", &sides, &[], &BTreeSet::new(), &mut |_| ()) {
            drafts.insert(name, [lines(&draft), guesses(&draft)]);
        }
    }
    drafts
}

fn guesses(draft: &Draft) -> BTreeSet<String> {
    let all = draft.decisions.iter().filter(|decision| decision.weight == Weight::Proposal);
    // Drop the score: a change of the score does not make it another guess.
    all.map(|decision| format!("{} {}", decision.operation, decision.text.split(" (").next().unwrap_or("")))
        .collect()
}

/// Returns every line of a draft about a field, a parameter or an operation.
fn lines(draft: &Draft) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (name, text) in draft.files.iter().filter(|(name, _)| name.ends_with(".map.yaml")) {
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let Some(root) = yaml::parse(&mut sources, name, text.as_bytes(), &mut findings) else { continue };
        for (shape, lines) in root.get("shapes").and_then(Node::as_map).unwrap_or_default() {
            of_shape(&shape.name, lines, &mut all);
        }
        for route in root.get("routes").and_then(Node::as_seq).unwrap_or_default() {
            let pair = route.get("pair").and_then(Node::as_map).unwrap_or_default();
            let operation = pair.first().and_then(|(_, key)| key.as_str()).unwrap_or("?");
            for (key, value) in route.as_map().unwrap_or_default() {
                match (key.name.as_str(), &value.kind) {
                    ("request" | "response", Kind::Map(_)) => {
                        of_shape(&format!("{operation} {}", key.name), value, &mut all);
                    }
                    ("query" | "path" | "headers", Kind::Map(entries)) => {
                        for (name, value) in entries.iter() {
                            all.insert(format!("{operation} {} {}: {}", key.name, name.name, flow(value)));
                        }
                    }
                    _ => {
                        all.insert(format!("{operation} {}: {}", key.name, flow(value)));
                    }
                }
            }
        }
    }
    all
}

fn of_shape(shape: &str, lines: &Node, all: &mut BTreeSet<String>) {
    for (key, value) in lines.as_map().unwrap_or_default() {
        match (key.name.as_str(), &value.kind) {
            ("of", _) => {}
            (_, Kind::Seq(items)) => {
                all.extend(items.iter().map(|item| format!("{shape} {}: {}", key.name, flow(item))));
            }
            ("only", Kind::Map(sides)) => {
                for (side, fields) in sides.iter() {
                    for (field, fill) in fields.as_map().unwrap_or_default() {
                        let fill = flow(fill);
                        all.insert(format!("{shape} only {}: {}: {fill}", side.name, field.name));
                    }
                }
            }
            (_, Kind::Map(entries)) => {
                all.extend(
                    entries
                        .iter()
                        .map(|(name, value)| format!("{shape} {} {}: {}", key.name, name.name, flow(value))),
                );
            }
            _ => {
                all.insert(format!("{shape} {}: {}", key.name, flow(value)));
            }
        }
    }
}

/// Renders a value on one line.
fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "null".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Number(text) | Kind::String(text, _) => text.clone(),
        Kind::Seq(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Kind::Map(entries) => {
            let all = entries.iter().map(|(key, value)| format!("{}: {}", key.name, flow(value)));
            format!("{{{}}}", all.collect::<Vec<_>>().join(", "))
        }
    }
}

fn show(count: usize, seed: u64, drafts: &Drafts) {
    let mut drawn: Vec<(u64, &str, &str)> = Vec::new();
    for (pair, [lines, _]) in drafts {
        drawn.extend(lines.iter().map(|line| (hash(seed, pair, line), pair.as_str(), line.as_str())));
    }
    eprintln!("{} lines", drawn.len());
    drawn.sort_unstable();
    drawn.truncate(count);
    drawn.sort_unstable_by_key(|(_, pair, line)| (*pair, *line));
    for (_, pair, line) in drawn {
        println!("?\tline\t{pair}\t{line}");
    }
    for (pair, [_, guesses]) in drafts {
        guesses.iter().for_each(|guess| println!("?\tguess\t{pair}\t{guess}"));
    }
}

/// FNV-1a, so that the sample is the same on every machine.
fn hash(seed: u64, pair: &str, line: &str) -> u64 {
    let bytes = seed.to_le_bytes();
    let all = bytes.iter().chain(pair.as_bytes()).chain(line.as_bytes());
    all.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

fn judge(labels: &str, drafts: &Drafts) -> ExitCode {
    // Per kind: entries labelled right, entries labelled wrong, labels without an entry.
    let mut counts = [[0_usize; 3]; 2];
    let mut known = BTreeSet::new();
    let mut wrong = 0;
    for row in labels.lines().filter(|row| !row.starts_with('#')) {
        let [label, kind, pair, text] = row.splitn(4, '\t').collect::<Vec<_>>()[..] else { continue };
        let Some(kind) = KINDS.iter().position(|known| *known == kind) else { continue };
        known.insert((kind, pair, text));
        let is_there = drafts.get(pair).is_some_and(|draft| draft[kind].contains(text));
        match (is_there, label) {
            (false, _) => counts[kind][2] += 1,
            (true, "right") => counts[kind][0] += 1,
            (true, _) => {
                counts[kind][1] += 1;
                wrong += usize::from(kind == 0);
                println!("wrong {}: {pair}: {text}", KINDS[kind]);
            }
        }
    }
    for (kind, [right, wrong, gone]) in counts.into_iter().enumerate() {
        let share = if right + wrong == 0 { 0.0 } else { 100.0 * right as f64 / (right + wrong) as f64 };
        println!(
            "{}: {right} right, {wrong} wrong ({share:.1} % right), {gone} no longer there",
            KINDS[kind]
        );
    }
    for (pair, [_, guesses]) in drafts {
        for guess in guesses.iter().filter(|guess| !known.contains(&(1, pair.as_str(), guess.as_str()))) {
            println!("without a label: {pair}: {guess}");
        }
    }
    if wrong > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
