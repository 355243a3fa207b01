//! The README and the other pages for readers: their examples run, and their links lead to a file.

use crate::support::packs;
use crate::support::program::Program;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The fenced blocks of `page` in `language`.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let open = format!("```{language}\n");
    page.split(&open)
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .map(|block| block.replace("\n```", ""))
        .collect()
}

#[test]
fn the_mapping_lines_are_lines_of_the_pack() {
    let mapping = page("mappings/messaging/messages.map.yaml");
    let mut mapping = mapping.lines().map(|line| line.split("   #").next().unwrap_or(line).trim_end());
    let readme = page("README.md");
    let [yaml] = &blocks(&readme, "yaml")[..] else { panic!("one block of mapping lines") };
    for line in yaml.lines() {
        assert!(mapping.any(|of_pack| of_pack == line), "not in the pack, or in another order: {line}");
    }
}

/// The two documents of the README are a response of v3 and what the client receives.
#[test]
fn the_documents_are_translated_as_shown() {
    let readme = page("README.md");
    let [from, to] = &blocks(&readme, "json")[..] else { panic!("a document before and one after") };
    let (from, to) = (from.replace('\n', " "), to.replace('\n', " "));
    let folder = tempfile::tempdir().expect("a temporary folder");
    copy(&packs::messaging_folder(), folder.path());
    let example = format!(
        "mapping: 1\nexamples:\n  - at: v2 GET /chats/7/messages\n    calls: [{{expect: GET /chats/7/messages, reply: {{200: {from}}}}}]\n    answer: {{status: 200, body: {to}}}\n"
    );
    std::fs::write(folder.path().join("readme.examples.map.yaml"), &example).expect("a file");
    let folder = folder.path().to_str().expect("a path in UTF-8");
    let (status, output, errors) = Program::start(&["test", folder], &[]).all();
    assert!(status.success(), "{output}{errors}");

    // The example is read and judged: with another value the test fails.
    let example = example.replace("\"read_at\": null", "\"read_at\": \"2025-11-26 23:23:05\"");
    std::fs::write(Path::new(folder).join("readme.examples.map.yaml"), example).expect("a file");
    let (status, output, errors) = Program::start(&["test", folder], &[]).all();
    assert!(!status.success() && (output + &errors).contains("readme.examples.map.yaml"), "{status}");
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            std::fs::create_dir(&target).expect("a folder");
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// All Markdown files of the project.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            let foreign = ["target", ".git", "node_modules", "findings"];
            if !foreign.iter().any(|foreign| name == *foreign) {
                pages(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The anchor of a heading, as GitHub makes it: lower case, spaces as hyphens, no punctuation.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_leads_to_a_file_and_to_a_heading_of_it() {
    let mut found = Vec::new();
    pages(root(), &mut found);
    assert!(found.len() > 10, "{found:?}");
    let mut broken = Vec::new();
    for path in &found {
        let text = std::fs::read_to_string(path).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.contains(char::is_whitespace) || link.is_empty() {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { path.clone() } else { path.parent().expect("a folder").join(file) };
            let leads = target.exists()
                && (heading.is_empty()
                    || std::fs::read_to_string(&target).is_ok_and(|text| {
                        text.lines().any(|line| line.starts_with('#') && anchor(line) == heading)
                    }));
            if !leads {
                broken.push(format!("{}: {link}", path.strip_prefix(root()).unwrap_or(path).display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}
