//! Measures the OpenAPI reader on real documents. It prints one line per document of a folder.
//!
//! `cargo run --release -p switchback-compiler --example survey -- FOLDER…`
//!
//! Columns: milliseconds; operations: all, fully typed ones, ones with a form as the request, ones
//! with an opaque part; errors, warnings and notes; lines of the rendered findings. With `-v` the
//! findings follow each line.
//!
//! `… --example survey -- --init OLD NEW [OLD NEW…]` prints the drafts of `init` for pairs of
//! versions: milliseconds; operations that are untouched, mapped by certain lines, to be reviewed,
//! refused; decisions; lines of the mapping. With `-v` the decisions follow.
//!
//! `… --example survey -- --lines 200 --seed 16 OLD NEW…` prints lines and guesses of these drafts,
//! one per row, for manual labels: a random sample of the lines, and all guesses.
//! `--judge LABELS OLD NEW…` compares the current drafts with such a list, whose first column is
//! `right` or `wrong`. It fails if a draft contains a line labelled wrong.
//! `tests/survey/labels.tsv` contains the labels of the pairs in the published measurement.
//!
//! `… --example survey -- --hostile [WORD] 125 250 500 1000` prints the time in seconds that
//! generated, adversarial documents take, by size. It fails if the time grows much faster than the
//! size.

#[path = "survey/hostile.rs"]
mod hostile;
#[path = "survey/labels.rs"]
mod labels;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use switchback_compiler::contract::{self, Documents, Media, Operation};
use switchback_compiler::diagnostic::{Colour, Findings, Severity, Sources, to_text};
use switchback_compiler::init::{self, SideDocument};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let verbose = arguments.iter().position(|one| one == "-v").map(|at| arguments.remove(at)).is_some();
    if arguments.first().is_some_and(|first| first == "--init") {
        return init_all(&arguments[1..], verbose);
    }
    if arguments.first().is_some_and(|first| first == "--hostile") {
        return hostile::run(&arguments[1..]);
    }
    if let Some(first) = arguments.first()
        && ["--lines", "--judge"].contains(&first.as_str())
    {
        return labels::run(&arguments);
    }
    if arguments.is_empty() {
        eprintln!("survey [-v] FOLDER…");
        return ExitCode::from(2);
    }
    let mut sum = Row::default();
    println!("{}", Row::HEAD);
    let mut count = 0;
    for folder in arguments.iter().map(PathBuf::from) {
        for path in documents(&folder) {
            let (row, text) = survey(&path);
            println!("{row}");
            if verbose {
                print!("{text}");
            }
            sum.add(&row);
            count += 1;
        }
    }
    println!("{sum}");
    println!("{count} documents, {} of them without an error", count - sum.refused);
    if sum.refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn init_all(paths: &[String], verbose: bool) -> ExitCode {
    println!("{:<52}    ms   ops untouched sure look refused  decisions lines", "pair");
    let mut failed = 0;
    let (mut operations, mut untouched, mut written, mut marked, mut refused) = (0, 0, 0, 0, 0);
    for pair in paths.chunks_exact(2) {
        let (name, sides) = sides(pair);
        let start = Instant::now();
        let drafted = init::draft("pack", &sides, &[], &BTreeSet::new(), &mut |_| ());
        let took = start.elapsed().as_millis();
        let Ok(draft) = drafted else {
            println!("{name:<52} failed");
            failed += 1;
            continue;
        };
        let counts = draft.counts;
        let lines: usize = draft
            .files
            .iter()
            .filter(|(name, _)| name.ends_with(".yaml"))
            .map(|(_, text)| text.lines().count())
            .sum();
        // A draft that does not compile is a defect of `init`.
        let checks = if draft.compiled.pack.is_some() { "" } else { "  DOES NOT CHECK" };
        failed += usize::from(draft.compiled.pack.is_none());
        println!(
            "{name:<52} {took:>5} {:>5} {:>9} {:>4} {:>4} {:>7} {:>10} {lines:>5}{checks}",
            counts.operations,
            counts.untouched,
            counts.written,
            counts.marked,
            counts.refused,
            draft.decisions.len()
        );
        if verbose {
            draft
                .decisions
                .iter()
                .for_each(|one| println!("    {:?} {}: {}", one.weight, one.operation, one.text));
        }
        if !checks.is_empty() {
            print!("{}", to_text(&draft.compiled.sources, &draft.compiled.findings, Colour::Never));
        }
        operations += counts.operations;
        untouched += counts.untouched;
        written += counts.written;
        marked += counts.marked;
        refused += counts.refused;
    }
    let share = |count: usize| if operations == 0 { 0.0 } else { 100.0 * count as f64 / operations as f64 };
    println!(
        "all: {operations} operations; untouched {:.1} %, sure {:.1} %, look {:.1} %, refused {:.1} %",
        share(untouched),
        share(written),
        share(marked),
        share(refused)
    );
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns a pair of documents with its name.
fn sides(pair: &[String]) -> (String, [SideDocument; 2]) {
    let side = |path: &String, name: &str| {
        let path = Path::new(path);
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let document = format!("contracts/{name}/{file}");
        SideDocument {
            name: name.to_owned(),
            files: vec![(document.clone(), std::fs::read(path).unwrap_or_default().into())],
            document,
        }
    };
    let stem = |path: &String| Path::new(path).file_stem().map(|s| s.to_string_lossy().into_owned());
    let name = format!("{} {}", stem(&pair[0]).unwrap_or_default(), stem(&pair[1]).unwrap_or_default());
    (name, [side(&pair[0], "old"), side(&pair[1], "new")])
}

/// Returns the documents in a folder and in its immediate subfolders: files with `openapi` or
/// `swagger` at the top.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|dir| dir.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            let inner = std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
            found.extend(inner.filter(|path| is_document(path)));
        } else if is_document(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn is_document(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    if !path.is_file() || !["json", "yaml", "yml"].contains(&ending) {
        return false;
    }
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    // A cheap test on the text, because parsing every file of a folder would be slow.
    let says = |word: &str| {
        text.lines().any(|line| line.starts_with(word) && line[word.len()..].starts_with(':'))
            || (text.trim_start().starts_with('{') && text.contains(&format!("\"{word}\"")))
    };
    says("openapi") || says("swagger")
}

/// Collects all files in the document's folder, by relative path, that a reference may lead to.
fn files(folder: &Path, prefix: &str, all: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            files(&path, &format!("{prefix}{name}/"), all);
        } else if let Ok(bytes) = std::fs::read(&path) {
            all.push((format!("{prefix}{name}"), bytes));
        }
    }
}

fn survey(path: &Path) -> (Row, String) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = std::fs::read(path).unwrap_or_default();
    let mut around = Vec::new();
    if memchr::memmem::find(&bytes, b"$ref: ").is_some() || bytes.len() < 100_000 {
        files(path.parent().unwrap_or(Path::new(".")), "", &mut around);
        // Files of the folder itself are other documents.
        around.retain(|(name, _)| name.contains('/'));
    }
    let fetch = |wanted: &str| {
        if wanted == name {
            return Some(bytes.as_slice());
        }
        around.iter().find(|(known, _)| known == wanted).map(|(_, bytes)| bytes.as_slice())
    };
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let start = Instant::now();
    let documents = Documents::load(&mut sources, &name, &fetch, &mut findings);
    let contract =
        documents.as_ref().map(|documents| contract::parse_contract("side", documents, &mut findings));
    let took = start.elapsed();
    let text = to_text(&sources, &findings, Colour::Never);
    let operations = contract.map(|contract| contract.operations).unwrap_or_default();
    let typed = operations.iter().filter(|operation| operation.is_typed()).count();
    let forms = operations.iter().filter(|operation| is_form(operation)).count();
    let row = Row {
        name,
        milliseconds: took.as_millis(),
        operations: operations.len(),
        typed,
        forms,
        errors: findings.count(Severity::Error),
        warnings: findings.count(Severity::Warning),
        notes: findings.count(Severity::Note),
        lines: text.lines().count(),
        refused: usize::from(findings.has_errors()),
    };
    (row, text)
}

/// Returns whether the request is a form and the rest is typed. The type of a form is known; its
/// text is forwarded unchanged.
fn is_form(operation: &Operation) -> bool {
    let form = operation.body.as_ref().is_some_and(|body| matches!(body.media, Media::Form(..)));
    form && operation.responses.iter().all(|answer| answer.body.is_none() || answer.media.is_json())
}

#[derive(Default)]
struct Row {
    name: String,
    milliseconds: u128,
    operations: usize,
    typed: usize,
    forms: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
    lines: usize,
    refused: usize,
}

impl Row {
    const HEAD: &str =
        "document                                  ms   ops typed forms opaque  err warn note lines";

    fn add(&mut self, other: &Row) {
        self.milliseconds += other.milliseconds;
        self.operations += other.operations;
        self.typed += other.typed;
        self.forms += other.forms;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
        self.lines = self.lines.max(other.lines);
        self.refused += other.refused;
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let opaque = self.operations - self.typed - self.forms;
        let name = if self.name.is_empty() { "all (most lines)" } else { &self.name };
        write!(
            f,
            "{name:<38} {:>5} {:>5} {:>5} {:>5} {opaque:>6} {:>4} {:>4} {:>4} {:>5}",
            self.milliseconds,
            self.operations,
            self.typed,
            self.forms,
            self.errors,
            self.warnings,
            self.notes,
            self.lines
        )
    }
}
