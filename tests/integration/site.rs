//! The documentation site (`docs`): its pages are in the book, its generated pages are those of the
//! program, its commands run, and the names in it exist.

use crate::support::dual::{Upstreams, started};
use crate::support::sources::sources;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use switchback_gateway::outcome::Outcome;
use switchback_gateway::telemetry::metrics::METRICS;
use switchback_plan::GATEWAY_ERRORS;
use switchback_sandbox::{Options, Sandbox};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the pages below a folder, as paths below `docs`.
fn pages(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).expect("the pages are here when tests run").flatten();
    let paths = entries.map(|entry| entry.path());
    let found = paths.flat_map(|path| if path.is_dir() { pages(&path) } else { BTreeSet::from([path]) });
    found.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn docs() -> PathBuf {
    root().join("docs")
}

#[test]
fn every_page_is_in_the_summary_once() {
    let summary = text(&docs().join("SUMMARY.md"));
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let listed: Vec<PathBuf> = links.map(|link| docs().join(link)).collect();
    let mut wanted = pages(&docs());
    wanted.remove(&docs().join("SUMMARY.md"));
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), wanted);
    assert_eq!(listed.len(), wanted.len());
}

#[test]
fn every_include_has_a_text() {
    let mut count = 0;
    for page in pages(&docs()) {
        let content = text(&page);
        for include in content.split("{{#include ").skip(1).filter_map(|rest| rest.split("}}").next()) {
            let (file, anchor) = include.split_once(':').map_or((include, None), |(file, a)| (file, Some(a)));
            let included = text(&page.parent().expect("a folder").join(file));
            let [begin, end] = ["ANCHOR", "ANCHOR_END"].map(|mark| {
                let mark = format!("<!-- {mark}: {} -->", anchor.unwrap_or_default());
                anchor.map_or(Some(0), |_| included.find(&mark))
            });
            let is_there = begin.zip(end).is_some_and(|(begin, end)| anchor.is_none() || begin < end);
            assert!(is_there, "{}: {include}", page.display());
            count += 1;
        }
    }
    assert!(count > 6, "{count}");
}

/// Runs the program. Returns its exit code and its output.
fn run(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_switchback")).args(args).output().expect("it runs");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn generated_pages_are_those_of_the_program() {
    for (page, of) in [("CONFIGURATION.md", "config"), ("METRICS.md", "metrics"), ("ADMIN_API.md", "api")] {
        let (code, printed) = run(&["reference", of]);
        assert_eq!(code, Some(0), "{printed}");
        let file = docs().join(page);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&file, &printed).expect("the page is written");
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(found == printed, "docs/{page} is outdated; UPDATE_EXPECT=1 writes it");
    }
}

/// Returns the spans of code in a page, without its blocks.
fn spans(page: &str) -> Vec<String> {
    let outside = page.split("\n```").step_by(2).collect::<Vec<_>>().join("\n");
    outside.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Returns the words of a command up to its first argument that is no plain word, and its options.
fn parse_command(command: &str) -> (Vec<&str>, Vec<&str>) {
    let is_word = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    let words = command.split_whitespace().skip(1);
    let verbs = words.clone().take_while(is_word).collect();
    let options = words.filter(|word| word.starts_with("--"));
    (verbs, options.map(|option| option.trim_end_matches([']', ',', '.'])).collect())
}

#[test]
fn verbs_and_options_in_the_pages_exist() {
    let mut found = pages(&docs());
    found.extend(["README.md", "deploy/README.md"].map(|page| root().join(page)));
    let commands: BTreeSet<String> = found.iter().flat_map(|page| spans(&text(page))).collect();
    let commands: Vec<&String> = commands.iter().filter(|span| span.starts_with("switchback ")).collect();
    assert!(commands.len() > 80, "{commands:?}");
    let mut wrong = Vec::new();
    for command in commands {
        let (verbs, options) = parse_command(command);
        if verbs.first() == Some(&"help") || verbs.is_empty() {
            continue;
        }
        let (code, help) = run(&[&verbs[..], &["--help"]].concat());
        let has = |option: &&&str| {
            let name = option.split('=').next().unwrap_or_default();
            help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == name)
        };
        let missing: Vec<_> = options.iter().filter(|option| !has(option)).collect();
        if code != Some(0) || !missing.is_empty() {
            wrong
                .push(format!("`{command}` has no {missing:?}: {}", help.lines().next().unwrap_or_default()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The code, the texts and the keys in which names of the page on troubleshooting are looked up.
struct Names {
    /// Code without comments, in lower case, with texts in one line.
    code: String,
    /// Keys of the configuration, alone and with their section.
    keys: BTreeSet<String>,
}

impl Names {
    fn read() -> Names {
        let is_code = |line: &&String| !line.trim_start().starts_with("//");
        let lines = sources().into_iter().filter(|source| source.package != "sandbox");
        let code: Vec<String> = lines
            .flat_map(|source| source.lines.iter().filter(is_code).cloned().collect::<Vec<_>>())
            .collect();
        let code = code.join("\n") + &text(&root().join("src/admin/schemas.json"));
        // A text over several lines.
        let mut parts = code.split("\\\n");
        let first = parts.next().unwrap_or_default().to_owned();
        let code = parts.fold(first, |code, part| code + part.trim_start());
        let mut keys = BTreeSet::new();
        let mut section = String::new();
        for line in text(&docs().join("CONFIGURATION.md")).lines() {
            if let Some(title) = line.strip_prefix("## ") {
                section = title.trim_matches('`').to_owned();
            } else if let Some(key) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) {
                keys.extend([key.to_owned(), format!("{section}.{key}")]);
            }
        }
        Names { code: code.to_lowercase(), keys }
    }

    /// Returns whether a span of code names something that exists.
    fn has(&self, span: &str) -> bool {
        if span.starts_with("switchback ") {
            return true; // See the test of verbs.
        }
        if span.starts_with("switchback_") {
            return METRICS.iter().any(|metric| metric.name == span);
        }
        if let Some((name, value)) = span.split_once('=') {
            // Quoted values are those of labels of metrics, others those of the log.
            return match name {
                "outcome" if !value.starts_with('"') => Outcome::parse(value).is_some(),
                _ => self.quotes(name) && self.quotes(value.trim_matches('"')),
            };
        }
        let is_label = || METRICS.iter().any(|metric| metric.labels.contains(&span));
        let is_kind = || GATEWAY_ERRORS.iter().any(|(kind, ..)| *kind == span);
        if self.keys.contains(span) || is_label() || is_kind() {
            return true;
        }
        // A single word must be a text of its own, a sentence a part of one.
        match span.contains([' ', '…']) {
            false => self.quotes(span),
            true => span.split('…').map(str::trim).all(|part| self.code.contains(&part.to_lowercase())),
        }
    }

    fn quotes(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        self.code.contains(&format!("\"{word}\""))
    }
}

#[test]
fn what_troubleshooting_names_exists() {
    let names = Names::read();
    let page = text(&docs().join("TROUBLESHOOTING.md"));
    let spans = spans(&page);
    assert!(spans.len() > 150, "{}", spans.len());
    let missing: BTreeSet<&String> = spans.iter().filter(|span| !names.has(span)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    for wrong in [
        "switchback_limited",
        "outcome=refuse",
        "limits.body_byte",
        "bad_bodies",
        "a response was shortened",
        "the limit … is exceeded",
        "/api/packets",
    ] {
        assert!(!names.has(wrong), "{wrong}");
    }
}

#[test]
fn the_security_model_names_tests_that_exist() {
    let page = text(&docs().join("SECURITY_MODEL.md"));
    let section = page.split("## Threats").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = section.expect("a section").lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut count = 0;
    for row in rows {
        let held = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        for place in held.split('`').skip(1).step_by(2) {
            let (file, test) = place.split_once("::").unwrap_or((place, ""));
            let content = text(&root().join(file));
            assert!(test.is_empty() || content.contains(&format!("fn {test}(")), "{place}");
            count += 1;
        }
        assert!(held.contains('`'), "no test: {row}");
    }
    assert!(count > 25, "{count}");
}

/// Returns the commands of the blocks `console` of a page.
fn console(page: &str) -> Vec<String> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}

/// The exit codes of a usage error and of a verb that could not run.
const FAILURES: [Option<i32>; 3] = [Some(2), Some(3), None];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_of_the_pages_run_next_to_a_gateway() {
    let sandbox = Sandbox::start(Options::default()).await.expect("it starts");
    let (dual, gateway) = started(&sandbox, Upstreams::of(&sandbox), "").await;
    // The commands find the gateway by the address in its configuration.
    let file = dual.file();
    let configured = text(&file)
        .replace("admin: { listen: 127.0.0.1:0", &format!("admin: {{ listen: '{}'", gateway.admin));
    fs::write(&file, configured).expect("it is written");
    let mut count = 0;
    for page in pages(&docs()) {
        for command in console(&text(&page)) {
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            let (code, out, err) = dual.run(&words).await;
            assert!(!FAILURES.contains(&code), "`{command}`: {code:?} {out}{err}");
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}

/// Runs the preprocessor of the book over these chapters. `None`: Python is absent.
fn preprocess(chapters: &[(String, String)]) -> Option<(bool, String, String)> {
    let chapter = |(path, content): &(String, String)| json!({"Chapter": {"name": path, "path": path, "content": content, "sub_items": []}});
    let chapters: Vec<Value> = chapters.iter().map(chapter).collect();
    let context = json!({"root": docs(), "config": {"preprocessor": {"sources": {}}}});
    let mut command = Command::new("python3");
    command.arg(root().join(".ci/book_sources.py"));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("SKIPPED: python3 is not installed");
        return None;
    };
    let input = json!([context, {"items": chapters}]).to_string();
    // The script reads everything before it writes.
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some((output.status.success(), text(output.stdout), text(output.stderr)))
}

#[test]
fn links_of_the_book_lead_to_its_pages_or_to_files() {
    let of_book = |page: PathBuf| {
        let path = page.strip_prefix(docs()).expect("below docs").to_str().expect("a plain name").to_owned();
        (path != "SUMMARY.md").then(|| (path, text(&page)))
    };
    let mut chapters: Vec<(String, String)> = pages(&docs()).into_iter().filter_map(of_book).collect();
    let Some((is_good, book, said)) = preprocess(&chapters) else { return };
    assert!(is_good, "{said}");
    assert!(!book.contains("{{#include") && !book.contains("ANCHOR"), "an include is left");
    for part in [
        "Switchback is a gateway that keeps",
        "](TUTORIAL.html)",
        "](../MIGRATION.html#trying-a-request-or-a-mapping)",
        "The sample (`deploy/switchback.sample.yaml`)",
    ] {
        assert!(book.contains(part), "{part}");
    }
    chapters.push(("BROKEN.md".to_owned(), "[a page](NOWHERE.md)\n".to_owned()));
    let (is_good, _, said) = preprocess(&chapters).expect("it ran a moment ago");
    assert!(!is_good && said.contains("BROKEN.md: NOWHERE.md"), "{said}");
}
