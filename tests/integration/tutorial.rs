//! The tutorial from a reader's view: its files are written, its commands run with the real binary,
//! and the quoted output must be a part of the actual one.

use crate::support::program::Program;
use crate::support::raw::{Act, Upstream, answer, exchange};
use std::path::Path;
use std::process::Command;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

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

/// Whether a page's lines are the output, where `…` stands for any lines.
fn are_lines(wanted: &[&str], output: &[&str]) -> bool {
    match wanted {
        [] => output.is_empty(),
        ["…", rest @ ..] => (0..=output.len()).any(|at| are_lines(rest, &output[at..])),
        [first, rest @ ..] => match output.split_first() {
            Some((line, others)) => is_line(first, line) && are_lines(rest, others),
            None => false,
        },
    }
}

/// Whether a line of a page is one of the output, where `…` stands for any text.
fn is_line(wanted: &str, line: &str) -> bool {
    match wanted.split_once('…') {
        Some((start, end)) => line.starts_with(start) && line.ends_with(end),
        None => wanted == line,
    }
}

/// The folder of a reader, and what runs in it.
struct Reader {
    folder: TempDir,
    /// Ports of the page, and those of this test in their place.
    ports: Vec<(String, String)>,
    service: Option<Upstream>,
    gateway: Option<Program>,
    commands: usize,
}

impl Reader {
    fn new() -> Reader {
        let free = |port: &str| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            (format!("127.0.0.1:{port}"), listener.local_addr().expect("an address").to_string())
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ports = vec![free("8080"), free("9090")];
        Reader { folder, ports, service: None, gateway: None, commands: 0 }
    }

    fn write(&self, name: &str, lines: &[&str]) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        let text =
            self.ports.iter().fold(lines.join("\n") + "\n", |text, (page, own)| text.replace(page, own));
        std::fs::write(path, text).expect("it is written");
    }

    /// Runs a command of the page, and returns its output. The test itself stands for Python and for
    /// curl, which may not be there.
    async fn run(&mut self, command: &str) -> String {
        self.commands += 1;
        if let Some(rest) = command.strip_prefix("python3 -m http.server 9000") {
            assert!(rest.ends_with("--directory service &"), "{command}");
            let folder = self.folder.path().join("service");
            let answering = Upstream::answering(move |_, seen| {
                let path =
                    seen.line().split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
                match std::fs::read_to_string(folder.join(path)) {
                    Ok(text) => Act::Reply(answer(200, "content-type: application/octet-stream\r\n", &text)),
                    Err(_) => Act::Reply(answer(404, "content-type: text/html\r\n", "<html>")),
                }
            });
            let service = answering.await;
            self.ports.push(("127.0.0.1:9000".to_owned(), service.address.to_string()));
            self.service = Some(service);
            // The configuration was written before the port was known.
            let file = self.folder.path().join("switchback.yaml");
            let text = std::fs::read_to_string(&file).expect("the page has written it");
            self.write("switchback.yaml", &text.lines().collect::<Vec<_>>());
            return String::new();
        }
        if command == "export SWITCHBACK_KEY=$(switchback key generate)" {
            return String::new();
        }
        if let Some(rest) = command.strip_prefix("switchback serve --config ") {
            let folder = self.folder.path().to_owned();
            let file = rest.strip_suffix(" &").expect("it runs beside the rest").to_owned();
            let starting = tokio::task::spawn_blocking(move || {
                let key = SealingKey::generate();
                let file = folder.join(file);
                let text = std::fs::read_to_string(&file).expect("the page has written it");
                // Paths are relative to where the reader is.
                let folder = folder.display();
                let text = text.replace("sqlite:", &format!("sqlite:{folder}/"));
                let text = text.replace("mapping: ", &format!("mapping: {folder}/"));
                std::fs::write(&file, text).expect("it is written");
                let file = file.to_str().expect("a plain path");
                let program =
                    Program::start(&["serve", "--config", file], &[("SWITCHBACK_KEY", key.expose())]);
                program.stderr_until("serving");
                program
            });
            self.gateway = Some(starting.await.expect("it serves"));
            return String::new();
        }
        if let Some(rest) = command.strip_prefix("curl -H '") {
            let (field, url) = rest.split_once("' http://").expect("a field and an address");
            let (address, path) = url.split_once('/').expect("a path");
            let own = self.ports.iter().find(|(page, _)| page == address).expect("a port of the page");
            let request = format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\n{field}\r\n\r\n");
            let got = exchange(own.1.parse().expect("an address"), request).await.expect("an answer");
            return got.text();
        }
        let (command, folder) = (command.to_owned(), self.folder.path().to_owned());
        tokio::task::spawn_blocking(move || run(&command, &folder)).await.expect("it runs")
    }
}

#[tokio::test]
async fn the_tutorial_does_what_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/TUTORIAL.md");
    let page = std::fs::read_to_string(page).expect("the tutorial lies in the sources");
    let mut reader = Reader::new();
    for (language, lines) in blocks(&page) {
        match (language, lines.split_first()) {
            ("yaml" | "json", Some((first, rest))) => {
                let name = first.trim_start_matches(['#', '/', ' ']).strip_prefix("file: ");
                reader.write(name.expect("a file has a name"), rest);
            }
            ("console", _) => {
                let mut lines = lines.as_slice();
                while let Some((command, rest)) = lines.split_first() {
                    let command = command.strip_prefix("$ ").expect("a command");
                    let end = rest.iter().position(|line| line.starts_with("$ ")).unwrap_or(rest.len());
                    let said = reader.run(command).await;
                    let output: Vec<&str> = said.lines().collect();
                    assert!(are_lines(&rest[..end], &output), "`{command}` says\n{said}");
                    lines = &rest[end..];
                }
            }
            ("text", _) => {
                let list = reader.folder.path().join("shop/DECISIONS.md");
                let list = std::fs::read_to_string(list).expect("a list");
                assert!(list.contains(&lines.join("\n")), "{}\nis not in\n{list}", lines.join("\n"));
            }
            _ => {}
        }
    }
    assert!(reader.commands >= 9 && reader.gateway.is_some());
    assert_eq!(reader.service.expect("it was called").seen().len(), 1);
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
