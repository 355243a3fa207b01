//! The verbs for authors of packs: `check --fix` and `--watch`, `fmt`, `new`, and the schema of a pack.

use crate::support::editor::copy;
use crate::support::packs;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use switchback_compiler::mapping::load::{MANIFEST, MAPPING_SUFFIX};
use tempfile::TempDir;

const FILE: &str = "messages.map.yaml";

fn switchback(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    command.args(arguments).arg(folder).output().expect("the program can be run")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Copies the first pack and replaces texts in one of its files.
fn pack(changes: &[(&str, &str)]) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    copy(&packs::messaging_folder(), folder.path());
    let mut text = read(folder.path(), FILE);
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    std::fs::write(folder.path().join(FILE), &text).expect("it is written");
    (folder, text)
}

fn read(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).expect("it can be read")
}

#[test]
fn check_fix_applies_sure_suggestions_and_prints_them() {
    let (folder, wrong) = pack(&[
        ("is_email: isEmail", "is_email: isEmial"),
        ("response: [Message]", "resposne: [Message]"),
        ("refuse: no_template", "refuse: no_templtae"),
        ("call: 'GET /chats/{id}/messages', pages", "call: 'GET /chats/{id}/mesages', pages"),
    ]);
    let right = wrong
        .replace("isEmial", "isEmail")
        .replace("resposne", "response")
        .replace("no_templtae", "no_template")
        .replace("mesages'", "messages'");
    let output = switchback(&["check", "--fix"], folder.path());
    let said = stdout(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("messages.map.yaml:10:17: isEmial → isEmail"), "{said}");
    assert!(said.contains("4 errors corrected") && said.contains("0 errors, 0 warnings"), "{said}");
    assert_eq!(read(folder.path(), FILE), right);
    let again = stdout(&switchback(&["check", "--fix"], folder.path()));
    assert!(again.starts_with("0 errors corrected"), "{again}");
}

/// A correction needs a suggestion, and one that is not ambiguous and leads to no other error.
#[test]
fn check_fix_leaves_what_is_not_sure() {
    let (folder, wrong) = pack(&[("is_email: isEmail", "is_email: nothingLikeIt")]);
    let output = switchback(&["check", "--fix"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("0 errors corrected"));
    assert_eq!(read(folder.path(), FILE), wrong);
    // Both of the nearest names have a line already, so each correction would lead to another error.
    let (folder, wrong) = pack(&[("send_at: sendAt", "send_at: redAt")]);
    let output = switchback(&["check", "--fix"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(read(folder.path(), FILE), wrong);
}

#[test]
fn check_watch_checks_again_after_a_change() {
    let (folder, text) = pack(&[]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_switchback"))
        .args(["check", "--watch"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut wait_for = |text: &str| {
        let mut lines = lines.by_ref().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(text)), "{text}");
    };
    wait_for("0 errors, 0 warnings");
    let wrong = text.replace("is_email: isEmail", "is_email: isEmial");
    std::fs::write(folder.path().join(FILE), wrong).expect("it is written");
    wait_for("1 error, 0 warnings");
    std::fs::write(folder.path().join(FILE), text).expect("it is written");
    wait_for("0 errors, 0 warnings");
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
}

#[test]
fn the_packs_are_formatted() {
    for name in ["messaging", "sendgrid", "tickets", "tweets", "ingress", "payments", "issues", "parcels"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings").join(name);
        let output = switchback(&["fmt", "--check"], &folder);
        assert!(output.status.success(), "{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
    }
}

/// Wider and narrower indentation, blanks and blank lines do not change the result.
#[test]
fn fmt_restores_the_layout_of_each_pack() {
    for source in packs::all() {
        for (name, bytes) in source.files() {
            if name != MANIFEST && !name.ends_with(MAPPING_SUFFIX) {
                continue;
            }
            let text = str::from_utf8(bytes).expect("a pack is text");
            let once =
                switchback_compiler::yaml::format(text).unwrap_or_else(|| panic!("{name} has a layout"));
            let again = switchback_compiler::yaml::format(&once);
            assert_eq!(again.as_deref(), Some(once.as_str()), "{name}");
            // A text of several lines has blanks of its own.
            let gap = if once.contains(['|', '>']) { "\n" } else { "  \n\n\n" };
            let wide = |line: &str| {
                if line.starts_with(' ') { format!("   {line}{gap}") } else { format!("{line}{gap}") }
            };
            let wide: String = once.lines().map(wide).collect();
            let restored = switchback_compiler::yaml::format(&wide).unwrap_or_else(|| panic!("{name}"));
            let lines = |text: &str| -> Vec<String> {
                text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
            };
            assert_eq!(lines(&restored), lines(&once), "{name}");
        }
    }
}

#[test]
fn fmt_writes_what_it_says_and_leaves_a_broken_file() {
    let (folder, text) = pack(&[("  Message:\n    of:", "  Message:   \n    of:")]);
    let broken = folder.path().join("broken.map.yaml");
    std::fs::write(&broken, "mapping: [\n").expect("it is written");
    let output = switchback(&["fmt", "--check"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(said.contains(FILE) && said.contains("1 file with another layout"), "{said}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("broken.map.yaml: not formatted"));
    assert_eq!(read(folder.path(), FILE), text, "`--check` writes nothing");
    assert_eq!(switchback(&["fmt"], folder.path()).status.code(), Some(1));
    assert_eq!(read(folder.path(), FILE), read(&packs::messaging_folder(), FILE));
    assert_eq!(read(folder.path(), "broken.map.yaml"), "mapping: [\n");
}

#[test]
fn a_new_pack_passes_check_test_and_fmt_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pack = folder.path().join("notes");
    assert!(switchback(&["new"], &pack).status.success());
    for arguments in [&["check", "--deny-warnings"][..], &["test"], &["fmt", "--check"], &["report"]] {
        let output = switchback(arguments, &pack);
        let said = format!("{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
    let again = switchback(&["new"], &pack);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"));
}

fn schema(folder: &Path) -> Value {
    let output = switchback(&["schema", "--pack"], folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a schema is JSON")
}

#[test]
fn the_schema_of_a_pack_knows_the_names_of_both_contracts() {
    let schema = schema(&packs::messaging_folder());
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let schema = jsonschema::draft202012::new(&schema).expect("it is one");
    let shape = |lines: Value| {
        let mut shape = json!({"of": {"v2": "Message", "v3": "Message"}});
        shape.as_object_mut().expect("a map").extend(lines.as_object().expect("a map").clone());
        json!({"mapping": 1, "shapes": {"Message": shape}})
    };
    let route = |route: Value| json!({"mapping": 1, "routes": [route]});
    let get = "GET /chats/{id}/messages";
    for (file, is_valid) in [
        (shape(json!({"rename": {"is_email": "isEmail"}})), true),
        (shape(json!({"rename": {"is_email": "isEmial"}})), false),
        (shape(json!({"rename": {"is_emial": "isEmail"}})), false),
        (shape(json!({"rename": {"chat": {"v3": "chat", "shape": "MessageChat"}}})), true),
        (shape(json!({"rename": {"chat": {"v3": "chta", "shape": "MessageChat"}}})), false),
        (shape(json!({"rename": {"chat": {"v3": "chat", "shape": "MesageChat"}}})), false),
        (shape(json!({"same": ["id"]})), true),
        (shape(json!({"same": ["is_email"]})), false),
        (shape(json!({"copy": {"v2": {"channel": "$.chat.channel"}}})), true),
        (shape(json!({"copy": {"v2": {"channel": "$.chat.chanel"}}})), false),
        (shape(json!({"only": {"v2": {"eventType": null}}})), true),
        (shape(json!({"only": {"v3": {"eventType": null}}})), false),
        (json!({"mapping": 1, "shapes": {"Other": {"of": {"v2": "Message", "v3": "Mesage"}}}}), false),
        (json!({"mapping": 1, "shapes": {"Other": {"of": {"v2": "Message", "v3": "Message"}}}}), true),
        (route(json!({"pair": {"v2": get, "v3": get}, "response": ["Message"]})), true),
        (route(json!({"pair": {"v2": get, "v3": "GET /chat"}, "response": ["Message"]})), false),
        (route(json!({"pair": {"v2": get, "v3": get}, "response": ["Mesage"]})), false),
    ] {
        assert_eq!(schema.is_valid(&file), is_valid, "{file}");
    }
}

#[test]
fn the_editor_extension_starts_the_server() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/editors");
    let json = |file: &str| -> Value { serde_json::from_str(&read(&folder, file)).expect("it is JSON") };
    let settings = json(".vscode/settings.json");
    assert!(settings["yaml.schemas"].as_object().is_some_and(|schemas| !schemas.is_empty()));
    let package = json("vscode/package.json");
    assert_eq!(package["main"], "./extension.js");
    let Ok(node) = Command::new("node").arg("--version").output() else {
        eprintln!("SKIPPED: node is not installed");
        return;
    };
    assert!(node.status.success());
    let output = Command::new("node").arg("test.js").current_dir(folder.join("vscode")).output();
    let output = output.expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let command: Vec<String> = serde_json::from_slice(&output.stdout).expect("the command is JSON");
    assert_eq!(command, ["switchback", "lsp", "--stdio"]);
    // The command of the extension is one that the program has.
    let output = Command::new(env!("CARGO_BIN_EXE_switchback")).args(&command[1..]).arg("--help").output();
    assert!(output.expect("the program runs").status.success());
}
