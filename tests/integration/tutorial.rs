//! The tutorial from a reader's view: its files are written, its commands run with the real binary,
//! and the quoted output must be a part of the actual one.

use std::path::Path;
use std::process::Command;

/// A block of the page: its language, and its lines.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```").filter(|language| !language.is_empty()) else {
            continue;
        };
        blocks.push((language, lines.by_ref().take_while(|line| *line != "```").collect()));
    }
    blocks
}

fn run(command: &str, folder: &Path) -> String {
    let mut words: Vec<String> = Vec::new();
    // Words of a shell, as far as the page needs one: quotes around a word.
    for (at, part) in command.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    assert_eq!(words[0], "switchback", "{command}");
    let output = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .args(&words[1..])
        .current_dir(folder)
        .output()
        .expect("the program starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "`{command}`: {}\n{text}", output.status);
    text
}

#[test]
fn the_tutorial_does_what_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/TUTORIAL.md");
    let page = std::fs::read_to_string(page).expect("the tutorial lies in the sources");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut commands = 0;
    for (language, lines) in blocks(&page) {
        match (language, lines.split_first()) {
            ("yaml", Some((first, rest))) => {
                let name = first.strip_prefix("# file: ").expect("a file has a name");
                std::fs::write(folder.path().join(name), rest.join("\n") + "\n").expect("it is written");
            }
            ("console", _) => {
                let mut said = String::new();
                for line in lines {
                    match line.strip_prefix("$ ") {
                        Some(command) => {
                            said = run(command, folder.path());
                            commands += 1;
                        }
                        None => assert!(said.contains(line), "{line}\nis not in\n{said}"),
                    }
                }
            }
            ("text", _) => {
                let list = std::fs::read_to_string(folder.path().join("shop/DECISIONS.md")).expect("a list");
                for line in lines {
                    assert!(list.contains(line), "{line}\nis not in\n{list}");
                }
            }
            _ => {}
        }
    }
    assert!(commands >= 5);
}

#[test]
fn a_draft_keeps_what_a_person_wrote_and_takes_what_is_new() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/TUTORIAL.md");
    let page = std::fs::read_to_string(page).expect("the tutorial lies in the sources");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (language, lines) in blocks(&page) {
        if language == "yaml" && !lines[0].contains('/') {
            let name = lines[0].strip_prefix("# file: ").expect("a file has a name");
            std::fs::write(folder.path().join(name), lines[1..].join("\n") + "\n").expect("it is written");
        }
    }
    run("switchback init shop-v1.yaml shop-v2.yaml shop", folder.path());
    let manifest = folder.path().join("shop/pack.yaml");
    let written = std::fs::read_to_string(&manifest).expect("a manifest");
    std::fs::write(&manifest, written.replace("status: 501", "status: 503")).expect("it is written");
    // The new side gets the missing parts: drafted lines change, lines of a person remain.
    let document = folder.path().join("shop-v2.yaml");
    let newer = std::fs::read_to_string(&document).expect("a document").replace(
        "        id: {type: string}\n",
        "        id: {type: string}\n        total: {type: integer}\n",
    );
    let newer = newer.replace("required: [id, price]", "required: [id, total]");
    std::fs::write(&document, newer).expect("it is written");
    let said = run("switchback init shop-v1.yaml shop-v2.yaml shop", folder.path());
    assert!(said.contains("2 served untouched, 2 by sure lines"), "{said}");
    let kept = std::fs::read_to_string(&manifest).expect("a manifest");
    assert!(kept.contains("status: 503"), "{kept}");
    let shapes = std::fs::read_to_string(folder.path().join("shop/shapes.map.yaml")).expect("shapes");
    assert!(shapes.contains("same: [id, total]") && shapes.contains("is_paid: isPaid"), "{shapes}");
    run("switchback check shop", folder.path());
}
