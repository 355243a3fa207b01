//! Reads the sources of the project for the tests that check their structure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its code, without comments and texts.
pub struct Source {
    /// The crate's folder below `crates`; `switchback` for the program itself.
    pub package: String,
    /// Path below that crate's `src`, with `/`.
    pub path: String,
    pub code: String,
    /// The lines of the file before its inline tests.
    pub lines: Vec<String>,
}

impl Source {
    /// Returns the first part of its module path within its crate.
    pub fn room(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Returns its module path within its crate, without `crate`.
    pub fn module(&self) -> Vec<String> {
        let path = self.path.trim_end_matches(".rs");
        let path = path.strip_suffix("mod").map_or(path, |folder| folder.trim_end_matches('/'));
        path.split('/').filter(|part| !["", "lib", "main"].contains(part)).map(str::to_owned).collect()
    }

    /// Returns the top-level modules that it names.
    pub fn rooms_used(&self) -> BTreeSet<String> {
        let mut used: BTreeSet<String> =
            self.paths().into_iter().filter_map(|path| path.into_iter().next()).collect();
        used.remove(self.room());
        used
    }

    /// Returns all paths of its code that start with `crate`, `self` or `super`, resolved to paths
    /// within the crate.
    fn paths(&self) -> Vec<Vec<String>> {
        let tokens = tokens(&self.code);
        let mut paths = Vec::new();
        for (at, root) in tokens.iter().enumerate() {
            let is_root = ["crate", "self", "super"].contains(root) && tokens.get(at + 1) == Some(&"::");
            if is_root && (at == 0 || tokens[at - 1] != "::") {
                let mut named = Vec::new();
                use_tree(&tokens, at, &mut Vec::new(), &mut named);
                paths.extend(named.into_iter().map(|path| self.resolve(&path)));
            }
        }
        paths
    }

    fn resolve(&self, path: &[&str]) -> Vec<String> {
        let mut full = if path[0] == "crate" { Vec::new() } else { self.module() };
        for part in path {
            match *part {
                "crate" | "self" => {}
                "super" => drop(full.pop()),
                name => full.push(name.to_owned()),
            }
        }
        full
    }

    pub fn uses(&self, path: &str) -> bool {
        self.used_before(path, |rest| !rest.starts_with(is_of_a_word))
    }

    /// Returns whether it names an item of a library: `library::…`.
    pub fn uses_of(&self, library: &str) -> bool {
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

/// Splits code into identifiers, `::` and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("::") {
            2
        } else if is_of_a_word(first) {
            rest.find(|c| !is_of_a_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Reads a path or use tree that starts at token `at`: adds all its paths to `paths`, and returns
/// the position after it.
fn use_tree<'a>(
    tokens: &[&'a str],
    mut at: usize,
    prefix: &mut Vec<&'a str>,
    paths: &mut Vec<Vec<&'a str>>,
) -> usize {
    let outer = prefix.len();
    loop {
        match tokens.get(at) {
            Some(&"{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = use_tree(tokens, at, prefix, paths);
                    // Skips `as name`, `,` and anything else until the next path.
                    while tokens.get(at).is_some_and(|token| !["}", ","].contains(token)) {
                        at += 1;
                    }
                    at += usize::from(tokens.get(at) == Some(&","));
                }
                at += 1;
                break;
            }
            Some(name) if name.starts_with(is_of_a_word) => prefix.push(name),
            _ => {
                paths.push(prefix.clone());
                break;
            }
        }
        at += 1;
        if tokens.get(at) != Some(&"::") {
            paths.push(prefix.clone());
            break;
        }
        at += 1;
    }
    prefix.truncate(outer);
    at
}

/// Separates the code of Rust text from comments and literals. Inline tests at the end of a file
/// are left out: they may import anything.
pub fn take_apart(package: &str, path: String, text: &str) -> Source {
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
    let lines = text.lines().map(str::to_owned).collect();
    Source { package: package.to_owned(), path, code, lines }
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

/// Returns the sources of all crates, without their tests.
pub fn sources() -> Vec<Source> {
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

/// Returns the modules of a crate, each with the modules of the same crate that its code names. A
/// module and the modules inside it are one unit to each other: they are left out.
pub fn imports(package: &str) -> BTreeMap<String, BTreeSet<String>> {
    let sources: Vec<Source> = sources().into_iter().filter(|source| source.package == package).collect();
    let modules: BTreeSet<Vec<String>> = sources.iter().map(Source::module).collect();
    let imports = |source: &Source| {
        let own = source.module();
        let named = source.paths().into_iter().filter_map(|path| {
            let module =
                (0..=path.len()).rev().map(|end| &path[..end]).find(|part| modules.contains(*part))?;
            (!module.starts_with(&own) && !own.starts_with(module)).then(|| module.join("::"))
        });
        (own.join("::"), named.collect())
    };
    sources.iter().map(imports).collect()
}
