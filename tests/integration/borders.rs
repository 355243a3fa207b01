//! The borders of `src/README.md`, kept by reading the sources: which room imports which, who may touch sockets, files,
//! clocks and SQL. That nothing outside the sandbox knows the first pack's service is next door, in `words`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its code, without comments and texts.
struct Source {
    /// Path below `src`, with `/`.
    path: String,
    code: String,
}

impl Source {
    /// The first part of its module path.
    fn room(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// The rooms that it names, by `crate::…` or by climbing up with `super::`.
    fn rooms_used(&self) -> BTreeSet<String> {
        let code: String = self.code.split_whitespace().collect::<Vec<_>>().join(" ").replace(":: ", "::");
        let is_module_root = self.path.ends_with("/mod.rs");
        let depth = self.path.split('/').count() - usize::from(is_module_root);
        let mut used = BTreeSet::new();
        for root in ["crate::".to_owned(), "super::".repeat(depth)] {
            for (at, _) in code.match_indices(&root) {
                let follows_path =
                    code[..at].ends_with("::") || code[..at].ends_with(|c: char| c.is_alphanumeric());
                if !follows_path {
                    used.extend(heads(&code[at + root.len()..]));
                }
            }
        }
        used.remove(self.room());
        used
    }

    fn uses(&self, path: &str) -> bool {
        self.code.match_indices(path).any(|(at, _)| {
            let before = self.code[..at].chars().next_back();
            let after = self.code[at + path.len()..].chars().next();
            let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !is_word(before) && !is_word(after) && !self.code[..at].ends_with("crate::")
        })
    }
}

/// The first identifiers of a use tree: `a::b` → a; `{a, b::{c, d}}` → a, b.
fn heads(tree: &str) -> Vec<String> {
    let Some(group) = tree.strip_prefix('{') else {
        return vec![tree.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()];
    };
    let (mut depth, mut heads, mut is_at_head) = (0, vec![String::new()], true);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                heads.push(String::new());
                is_at_head = true;
            }
            c if depth == 0 && is_at_head && (c.is_alphanumeric() || c == '_') => {
                heads.last_mut().expect("there is always one").push(c);
            }
            ' ' => {}
            _ => is_at_head = false,
        }
    }
    heads
}

/// Takes Rust text apart. Tests inside a file come last and are left out: they may import what they like.
fn take_apart(path: String, text: &str) -> Source {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut at) = (String::new(), 0);
    while at < chars.len() {
        let rest = &chars[at..];
        match rest {
            ['/', '/', ..] => at += rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => {
                let end = rest.windows(2).skip(2).position(|pair| pair == ['*', '/']);
                at += end.map_or(rest.len(), |end| end + 4);
            }
            ['r', '#' | '"', ..] if is_raw_text(rest) && !ends_in_word(&code) => {
                at += 1 + raw_text_length(&rest[1..]);
            }
            ['"', ..] => {
                code.push_str(" \"\" ");
                at += plain_text_length(rest);
            }
            ['\'', '\\', ..] => at += 3 + rest[3..].iter().position(|c| *c == '\'').map_or(0, |end| end + 1),
            ['\'', _, '\'', ..] => at += 3,
            [c, ..] => {
                code.push(*c);
                at += 1;
            }
            [] => break,
        }
    }
    Source { path, code }
}

fn ends_in_word(code: &str) -> bool {
    code.ends_with(|c: char| c.is_alphanumeric() && c != 'b')
}

fn is_raw_text(rest: &[char]) -> bool {
    rest[1..].iter().find(|c| **c != '#') == Some(&'"')
}

fn raw_text_length(rest: &[char]) -> usize {
    let hashes = rest.iter().take_while(|c| **c == '#').count();
    let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = &rest[hashes + 1..];
    let end = body.windows(closing.len()).position(|window| window == closing).unwrap_or(body.len());
    hashes + 1 + end + closing.len()
}

fn plain_text_length(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let below = |file: &PathBuf| {
        file.strip_prefix(&root).expect("found below it").to_string_lossy().replace('\\', "/")
    };
    let is_test = |path: &str| path.ends_with("/tests.rs") || path.contains("/tests/");
    files
        .iter()
        .map(|file| (below(file), file))
        .filter(|(path, _)| !is_test(path))
        .map(|(path, file)| take_apart(path, &fs::read_to_string(file).expect("a source file is text")))
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are here when tests run") {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Rooms that take values and return values.
const PURE: [&str; 12] = [
    "contract",
    "json",
    "plan",
    "mapping",
    "translate",
    "route",
    "diff",
    "evidence",
    "har",
    "redact",
    "diagnostic",
    "yaml",
];

fn assert_none(broken: Vec<String>) {
    assert!(broken.is_empty(), "borders of src/README.md that are crossed:\n{}", broken.join("\n"));
}

#[test]
fn pure_rooms_know_no_sockets_files_clocks_or_tasks() {
    const IMPURE: [&str; 12] = [
        "tokio",
        "hyper",
        "reqwest",
        "sqlx",
        "notify",
        "std::net",
        "std::fs",
        "std::env",
        "std::process",
        "std::thread",
        "Instant",
        "SystemTime",
    ];
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| PURE.contains(&source.room())) {
        let may_read_files = source.path == "mapping/load.rs";
        for impure in IMPURE.iter().filter(|impure| !(may_read_files && **impure == "std::fs")) {
            if source.uses(impure) {
                broken.push(format!("{} uses {impure}", source.path));
            }
        }
        for room in source.rooms_used().iter().filter(|room| !PURE.contains(&room.as_str())) {
            broken.push(format!("{} uses the room {room}", source.path));
        }
    }
    assert_none(broken);
}

#[test]
fn rooms_do_not_see_what_they_must_not_see() {
    const FORBIDDEN: [(&str, &[&str]); 16] = [
        ("mapping", &["translate", "route"]),
        ("translate", &["mapping", "contract", "yaml", "diagnostic"]),
        ("route", &["mapping", "contract", "yaml", "translate"]),
        ("plan", &["mapping", "translate", "yaml", "contract", "diagnostic"]),
        ("diff", &["mapping", "translate", "route", "contract", "yaml", "diagnostic"]),
        (
            "evidence",
            &[
                "mapping",
                "translate",
                "route",
                "contract",
                "yaml",
                "diagnostic",
                "plan",
                "json",
                "redact",
                "diff",
            ],
        ),
        (
            "redact",
            &["mapping", "translate", "plan", "contract", "yaml", "diagnostic", "route", "diff", "evidence"],
        ),
        ("har", &["mapping", "translate", "plan", "contract", "yaml", "diagnostic", "route", "diff", "json"]),
        ("capture", &["token", "proxy", "store", "mapping", "config", "admin", "translate"]),
        ("replay", &["token", "proxy", "store", "mapping", "config", "admin", "capture"]),
        ("json", &["mapping", "translate", "plan", "contract", "yaml", "diagnostic", "route"]),
        (
            "sandbox",
            &["plan", "mapping", "translate", "proxy", "contract", "json", "route", "store", "token"],
        ),
        ("proxy", &["mapping", "sandbox", "contract", "yaml", "config", "admin"]),
        ("shadow", &["token", "proxy", "mapping", "sandbox", "config", "admin", "yaml"]),
        ("token", &["body", "translate", "plan", "json", "proxy", "mapping"]),
        ("store", &["token", "proxy", "plan", "config"]),
    ];
    let mut broken = Vec::new();
    for source in sources() {
        let used = source.rooms_used();
        for (_, forbidden) in FORBIDDEN.iter().filter(|(room, _)| *room == source.room()) {
            let crossed = forbidden.iter().filter(|room| used.contains(**room));
            broken.extend(crossed.map(|room| format!("{} uses the room {room}", source.path)));
        }
        for room in ["app", "cli"] {
            if used.contains(room) && !["app", "cli", "main", "lib"].contains(&source.room()) {
                broken.push(format!("{} uses the room {room}", source.path));
            }
        }
    }
    assert_none(broken);
}

#[test]
fn each_outside_thing_has_one_place() {
    const OWNERS: [(&str, &[&str]); 6] = [
        ("sqlx", &["store"]),
        ("saphyr_parser", &["yaml"]),
        ("notify", &["app"]),
        ("reqwest", &["token", "cli", "replay"]),
        ("annotate_snippets", &["diagnostic"]),
        ("metrics_exporter_prometheus", &["telemetry"]),
    ];
    let mut broken = Vec::new();
    for source in sources() {
        for (library, owners) in OWNERS {
            if !owners.contains(&source.room()) && source.uses(&format!("{library}::")) {
                broken.push(format!("{} uses {library}", source.path));
            }
        }
        let reads_configuration =
            source.code.contains("config::load") || source.code.contains("config::parse");
        if reads_configuration && !["config", "app", "cli"].contains(&source.room()) {
            broken.push(format!("{} reads configuration files", source.path));
        }
    }
    assert_none(broken);
}

#[test]
fn sources_are_taken_apart_as_the_other_tests_assume() {
    let text = r##"
        use crate::{alpha::{a, b}, beta}; // use crate::comment;
        /* crate::block */ fn f<'a>(x: &'a str) -> char { crate::gamma::g("crate::text \" /chats", r#"raw "x""#); '"' }
        use super::super::delta;
    "##;
    let source = take_apart("room/inner.rs".to_owned(), text);
    assert_eq!(source.rooms_used().into_iter().collect::<Vec<_>>(), ["alpha", "beta", "delta", "gamma"]);
    assert!(!source.code.contains("raw") && !source.code.contains("text \\"), "{}", source.code);
    assert!(take_apart("a.rs".to_owned(), "use tokio::sync;").uses("tokio"));
    assert!(!take_apart("a.rs".to_owned(), "let mytokio = 1;").uses("tokio"));
}
