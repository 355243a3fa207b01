//! The sandbox alone knows the first pack's service: no field name, parameter name or path segment
//! of its two contracts occurs under `src` or `crates` as a separate word, in code, texts, comments
//! or tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::yaml::{self, Kind, Node};

/// Names of the contracts that are words of English, of HTTP, of JSON or of this program's own
/// domain. Each of them may denote something else in the engine. Compound names do not belong here,
/// because they are specific to the service.
const ORDINARY: &[&str] = &[
    // English, as sentences and identifiers have it.
    "active",
    "available",
    "city",
    "comment",
    "deleted",
    "description",
    "domains",
    "duration",
    "file",
    "flow",
    "id",
    "name",
    "number",
    "parent",
    "queue",
    "read",
    "reason",
    "score",
    "state",
    "subject",
    "time",
    "title",
    "transfer",
    "type",
    "unread",
    "value",
    // HTTP, its messages, and the records of tools about them.
    "address",
    "body",
    "close",
    "filename",
    "header",
    "link",
    "message",
    "messages",
    "page",
    "params",
    "payload",
    "receiver",
    "status",
    "token",
    "tokens",
    // Programs, and the formats they read.
    "channel",
    "document",
    "email",
    "links",
    "options",
    "sender",
    "tags",
    "text",
    "uuid",
    "variables",
    // Of web pages and their addresses, as the studio has them.
    "icon",
    "image",
    "login",
];

/// Names that must be in the search; without them the test would verify nothing.
const TELLING: &[&str] = &[
    "isInternal",
    "is_internal",
    "send_at",
    "contactId",
    "channelsSituation",
    "flowId",
    "chats",
    "contacts",
];

/// Tests that replay recordings of the first pack's service, and so must name it.
const OF_THE_FIRST_PACK: &[&str] = &["src/replay/tests.rs"];

/// Files of other authors.
const OF_OTHERS: &[&str] = &["src/studio/assets/editor.js"];

#[test]
fn no_word_of_the_first_packs_service_stands_in_the_engine() {
    let of_service = words_of_the_service();
    for ordinary in ORDINARY {
        assert!(of_service.contains(*ordinary), "`{ordinary}` is in no contract, so it need not be listed");
        let is_one_word = ordinary.chars().all(|c| c.is_ascii_lowercase());
        assert!(is_one_word, "`{ordinary}` is no word of English");
    }
    let searched: BTreeSet<String> =
        of_service.into_iter().filter(|word| !ORDINARY.contains(&word.as_str())).collect();
    for telling in TELLING {
        assert!(searched.contains(*telling), "`{telling}` should be among the words looked for");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    collect(&root.join("crates"), &mut files);
    assert!(files.len() > 200, "the sources are here: {}", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("sources are text");
        let shown = file.strip_prefix(root).expect("found below it").display().to_string();
        if [OF_THE_FIRST_PACK, OF_OTHERS].concat().contains(&shown.as_str()) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let of_service = words(line).filter(|word| searched.contains(*word));
            found.extend(of_service.map(|word| format!("{shown}:{}: `{word}` in {}", at + 1, line.trim())));
        }
    }
    assert!(found.is_empty(), "words of the service outside the sandbox:\n{}", found.join("\n"));
}

/// Returns the words of a line, as identifiers. The names of the pack's files are excluded, because
/// the program includes them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_name_of_file =
        |rest: &str| rest.starts_with(".map.yaml") || rest.starts_with(".examples.map.yaml");
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.split(move |c| !is_part(c)).filter(move |word| {
        // The word is a slice of the line, so its place there is known.
        let end = word.as_ptr() as usize - line.as_ptr() as usize + word.len();
        !word.is_empty() && !is_name_of_file(&line[end..])
    })
}

/// All text below a folder, without the sandbox, which is the service.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are here when tests run") {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            if !path.ends_with("crates/sandbox") {
                collect(&path, files);
            }
        } else {
            files.push(path);
        }
    }
}

/// Names of fields and parameters and fixed parts of paths, of both contracts.
fn words_of_the_service() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging/contracts");
    let mut words = BTreeSet::new();
    for name in ["v2.openapi.yaml", "v3.openapi.yaml"] {
        let bytes = fs::read(folder.join(name)).expect("the contract is part of the sources");
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let tree = yaml::parse(&mut sources, name, &bytes, &mut findings).expect("the contract is YAML");
        collect_words(&tree, &mut words);
    }
    words
}

fn collect_words(node: &Node, words: &mut BTreeSet<String>) {
    match &node.kind {
        Kind::Seq(items) => items.iter().for_each(|item| collect_words(item, words)),
        Kind::Map(entries) => {
            // An object with a place is a parameter. Parameters in headers are HTTP's.
            let place = node.get("in").and_then(Node::as_str);
            for (key, value) in entries.iter() {
                match (key.name.as_str(), value.as_map()) {
                    ("properties", Some(properties)) => {
                        words.extend(properties.iter().map(|(key, _)| key.name.clone()));
                    }
                    ("paths", Some(paths)) => {
                        words.extend(paths.iter().flat_map(|(path, _)| segments(&path.name)));
                    }
                    ("name", None) if matches!(place, Some("query" | "path")) => {
                        words.extend(value.as_str().map(str::to_owned));
                    }
                    _ => {}
                }
                collect_words(value, words);
            }
        }
        _ => {}
    }
}

fn segments(path: &str) -> Vec<String> {
    let is_fixed = |segment: &&str| !segment.is_empty() && !segment.starts_with('{');
    path.split('/').filter(is_fixed).map(str::to_owned).collect()
}

#[test]
fn words_are_found_where_they_stand() {
    let line = r#"    "chats.map.yaml", x.chatId, "GET /v2/chats/7", // chats_of"#;
    assert_eq!(
        words(line).collect::<Vec<_>>(),
        ["map", "yaml", "x", "chatId", "GET", "v2", "chats", "7", "chats_of"]
    );
}
