//! The finer borders of `src/README.md`, kept by reading the sources: which room of a crate imports which, who may touch
//! files, clocks and SQL. Cargo keeps the borders between crates. That nothing outside the sandbox knows the first pack's
//! service is next door, in `words`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its code, without comments and texts.
struct Source {
    /// The crate's folder below `crates`; `switchback` for the program's own.
    package: String,
    /// Path below that crate's `src`, with `/`.
    path: String,
    code: String,
}

impl Source {
    /// The first part of its module path within its crate.
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
        self.used_before(path, |rest| !rest.starts_with(is_of_a_word))
    }

    /// Whether it names something of a library: `library::…`.
    fn uses_of(&self, library: &str) -> bool {
        self.used_before(library, |rest| rest.starts_with("::"))
    }

    fn used_before(&self, path: &str, may_follow: impl Fn(&str) -> bool) -> bool {
        self.code.match_indices(path).any(|(at, _)| {
            let (before, after) = (&self.code[..at], &self.code[at + path.len()..]);
            !before.ends_with(is_of_a_word) && !before.ends_with("::") && may_follow(after)
        })
    }
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
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
fn take_apart(package: &str, path: String, text: &str) -> Source {
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
    Source { package: package.to_owned(), path, code }
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

/// The sources of all crates, without their tests.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let members = fs::read_dir(root.join("crates")).expect("the sources are here when tests run");
    let mut packages: Vec<PathBuf> =
        members.map(|entry| entry.expect("a folder can be listed").path()).collect();
    packages.sort();
    let name =
        |folder: &Path| folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
    let mut all: Vec<Source> =
        packages.iter().flat_map(|folder| sources_of(&name(folder), &folder.join("src"))).collect();
    all.extend(sources_of("switchback", &root.join("src")));
    all
}

fn sources_of(package: &str, root: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    collect(root, &mut files);
    files.sort();
    let below = |file: &PathBuf| {
        file.strip_prefix(root).expect("found below it").to_string_lossy().replace('\\', "/")
    };
    let is_test =
        |path: &str| path.ends_with("/tests.rs") || path.contains("/tests/") || path.starts_with("tests/");
    files
        .iter()
        .map(|file| (below(file), file))
        .filter(|(path, _)| !is_test(path))
        .map(|(path, file)| {
            take_apart(package, path, &fs::read_to_string(file).expect("a source file is text"))
        })
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

/// Crates that take values and return values. Their manifests name no library for sockets or tasks.
const PURE: [&str; 4] = ["json", "plan", "compiler", "engine"];

fn assert_none(broken: Vec<String>) {
    assert!(broken.is_empty(), "borders of src/README.md that are crossed:\n{}", broken.join("\n"));
}

#[test]
fn pure_crates_know_no_sockets_files_clocks_or_threads() {
    const IMPURE: [&str; 7] =
        ["std::net", "std::fs", "std::env", "std::process", "std::thread", "Instant", "SystemTime"];
    const LIBRARIES: [&str; 5] = ["tokio", "hyper", "reqwest", "sqlx", "notify"];
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| PURE.contains(&source.package.as_str())) {
        let may_read_files = source.package == "compiler" && source.path == "mapping/load.rs";
        for impure in IMPURE.iter().filter(|impure| !(may_read_files && **impure == "std::fs")) {
            if source.uses(impure) {
                broken.push(format!("{}: {} uses {impure}", source.package, source.path));
            }
        }
    }
    for package in PURE {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(package).join("Cargo.toml");
        let text = fs::read_to_string(manifest).expect("each crate has a manifest");
        let named = LIBRARIES.iter().filter(|library| text.lines().any(|line| line.starts_with(**library)));
        broken.extend(named.map(|library| format!("{package} depends on {library}")));
    }
    assert_none(broken);
}

#[test]
fn rooms_do_not_see_what_they_must_not_see() {
    const FORBIDDEN: [(&str, &str, &[&str]); 13] = [
        ("compiler", "diagnostic", &["yaml", "contract", "mapping"]),
        ("compiler", "yaml", &["contract", "mapping"]),
        ("compiler", "contract", &["mapping"]),
        ("engine", "translate", &["diff", "redact", "evidence", "har"]),
        ("engine", "diff", &["translate", "har"]),
        ("engine", "evidence", &["translate", "diff", "redact", "har"]),
        ("engine", "redact", &["translate", "diff", "evidence", "har"]),
        ("engine", "har", &["translate", "diff", "evidence", "redact"]),
        ("gateway", "capture", &["token", "proxy", "store"]),
        ("gateway", "shadow", &["token", "proxy"]),
        ("gateway", "token", &["body", "proxy"]),
        ("gateway", "store", &["token", "proxy", "shadow"]),
        ("switchback", "replay", &["admin", "config"]),
    ];
    let mut broken = Vec::new();
    for source in sources() {
        let used = source.rooms_used();
        let rules = FORBIDDEN
            .iter()
            .filter(|(package, room, _)| (*package, *room) == (source.package.as_str(), source.room()));
        for (_, _, forbidden) in rules {
            let crossed = forbidden.iter().filter(|room| used.contains(**room));
            broken.extend(
                crossed.map(|room| format!("{}: {} uses the room {room}", source.package, source.path)),
            );
        }
        if source.package == "switchback" && !["app", "cli", "main", "lib"].contains(&source.room()) {
            let crossed = ["app", "cli"].into_iter().filter(|room| used.contains(*room));
            broken.extend(crossed.map(|room| format!("{} uses the room {room}", source.path)));
        }
    }
    assert_none(broken);
}

/// The files of the data path, each with those that it names. A room's `mod.rs` speaks for the room; what names a room as a
/// whole names that.
fn imports_of_the_data_path() -> BTreeMap<String, BTreeSet<String>> {
    let sources: Vec<Source> = sources()
        .into_iter()
        .filter(|source| source.package == "gateway" && source.path.starts_with("proxy/"))
        .collect();
    let name = |path: &str| path.trim_start_matches("proxy/").trim_end_matches(".rs").to_owned();
    let known: BTreeSet<String> = sources.iter().map(|source| name(&source.path)).collect();
    let named = |source: &Source| {
        let own = name(&source.path);
        let room = own.rsplit_once('/').map_or("", |(room, _)| room);
        let code: String = source.code.split_whitespace().collect::<Vec<_>>().join(" ").replace(":: ", "::");
        let roots = [
            ("crate::proxy::", ""),
            ("super::", if own.ends_with("/mod") { "" } else { room }),
            ("self::", if own.ends_with("/mod") { room } else { "-" }),
        ];
        let mut named = BTreeSet::new();
        for (root, base) in roots {
            for (at, _) in code.match_indices(root).filter(|(at, _)| !code[..*at].ends_with("::")) {
                let tree = &code[at + root.len()..];
                for head in heads(tree) {
                    let below =
                        |head: &str| if base.is_empty() { head.to_owned() } else { format!("{base}/{head}") };
                    let first = below(&head);
                    let rest = tree.strip_prefix(&head).and_then(|rest| rest.strip_prefix("::"));
                    let inner = rest.map(heads).unwrap_or_default();
                    let inner: Vec<String> = inner.iter().map(|inner| format!("{first}/{inner}")).collect();
                    let (files, others): (Vec<_>, Vec<_>) =
                        inner.into_iter().partition(|file| known.contains(file));
                    named.extend(files);
                    let whole =
                        [first.clone(), format!("{first}/mod")].into_iter().find(|file| known.contains(file));
                    if rest.is_none() || !others.is_empty() {
                        named.extend(whole);
                    }
                }
            }
        }
        named.remove(&own);
        (own, named)
    };
    sources.iter().map(named).collect()
}

#[test]
fn the_files_of_the_data_path_import_one_another_without_circles() {
    let mut imports = imports_of_the_data_path();
    assert!(imports["compose/pair"].contains("compose/exchange"), "{imports:?}");
    assert!(imports["stack"].contains("layers/rescue"), "{imports:?}");
    // What all files share is no more than two types.
    imports.remove("mod");
    // Takes away what imports nothing that is left, until only circles are.
    while let Some(done) =
        imports.iter().find(|(_, named)| named.iter().all(|one| !imports.contains_key(one)))
    {
        let done = done.0.clone();
        imports.remove(&done);
    }
    let left = imports.iter().map(|(file, named)| format!("{file} -> {named:?}")).collect();
    assert_none(left);
}

#[test]
fn rooms_of_the_data_path_build_on_one_another_as_listed() {
    const MAY: [(&str, &[&str]); 5] = [
        ("upstream", &[]),
        ("layers", &[]),
        ("calls", &["upstream"]),
        ("compose", &["calls", "upstream"]),
        ("dual", &["calls", "compose", "layers", "upstream"]),
    ];
    let room = |file: &str| file.split_once('/').map(|(room, _)| room.to_owned());
    let mut broken = Vec::new();
    for (file, named) in imports_of_the_data_path() {
        let Some((own, may)) = MAY.iter().find(|(own, _)| room(&file).as_deref() == Some(*own)) else {
            continue;
        };
        let crossed = named
            .iter()
            .filter(|named| room(named).is_some_and(|other| other != *own && !may.contains(&other.as_str())));
        broken.extend(crossed.map(|named| format!("{file} uses {named}")));
    }
    assert_none(broken);
}

#[test]
fn each_outside_thing_has_one_place() {
    const OWNERS: [(&str, &[&str]); 6] = [
        ("sqlx", &["store"]),
        ("saphyr_parser", &["yaml"]),
        ("notify", &["app"]),
        // Calls of our own; what is carried for a client goes through `proxy`.
        ("reqwest", &["app", "cli", "events", "http_client", "replay", "telemetry", "token"]),
        ("annotate_snippets", &["diagnostic"]),
        ("metrics_exporter_prometheus", &["telemetry"]),
    ];
    let mut broken = Vec::new();
    for source in sources() {
        for (library, owners) in OWNERS {
            // Who answers for the service stands alone, and is free in what it builds on.
            if source.package != "sandbox" && !owners.contains(&source.room()) && source.uses_of(library) {
                broken.push(format!("{} uses {library}", source.path));
            }
        }
        let counts = ["counter!(", "gauge!(", "histogram!("].iter().any(|made| source.code.contains(made));
        if source.package != "sandbox" && !source.path.starts_with("telemetry/metrics") && counts {
            broken.push(format!("{} names a metric; `telemetry/metrics.rs` does", source.path));
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
fn the_judge_of_drawn_exchanges_shares_no_code_with_the_compiler() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/exchange_laws");
    let mut broken = Vec::new();
    for file in ["draw.rs", "edits.rs", "judge.rs", "values.rs"] {
        let text = fs::read_to_string(folder.join(file)).expect("the tests are here when they run");
        let source = take_apart("tests", file.to_owned(), &text);
        let libraries =
            ["compiler", "engine", "gateway", "json", "plan"].map(|name| format!("switchback_{name}"));
        let used = libraries.iter().filter(|library| source.uses_of(library));
        broken.extend(used.map(|library| format!("{file} uses {library}")));
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
    let source = take_apart("gateway", "room/inner.rs".to_owned(), text);
    assert_eq!(source.rooms_used().into_iter().collect::<Vec<_>>(), ["alpha", "beta", "delta", "gamma"]);
    assert!(!source.code.contains("raw") && !source.code.contains("text \\"), "{}", source.code);
    assert!(take_apart("gateway", "a.rs".to_owned(), "use tokio::sync;").uses("tokio"));
    assert!(!take_apart("gateway", "a.rs".to_owned(), "let mytokio = 1;").uses("tokio"));
    assert!(take_apart("gateway", "a.rs".to_owned(), "use tokio::sync;").uses_of("tokio"));
    assert!(!take_apart("gateway", "a.rs".to_owned(), "crate::tokio::x(); tokio.y()").uses_of("tokio"));
}
