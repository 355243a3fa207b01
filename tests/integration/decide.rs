//! `switchback decide`: from a draft with blockers to operations that are served, by a file of
//! answers and on a terminal.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

const OLD: &str = "openapi: 3.0.3
info: {title: t, version: '1'}
paths:
  /orders/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {responses: {'200': {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}}}
  /orders:
    get: {responses: {'200': {description: all, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Order'}}}}}}}
    post:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/NewOrder'}}}}
      responses: {'204': {description: made}}
  /coupons: {get: {responses: {'204': {description: all}}}}
components:
  schemas:
    Order:
      type: object
      required: [id, total]
      properties:
        id: {type: string}
        total: {type: integer}
    NewOrder: {type: object, required: [colour], properties: {title: {type: string}, colour: {type: string}}}
";

/// Returns the folder with a drafted pack, whose new side has no coupons, calls the total a sum, and
/// takes no colour.
fn drafted() -> TempDir {
    let new = OLD.replace("  /coupons: {get: {responses: {'204': {description: all}}}}\n", "");
    let new = new.replace("total", "sum").replace("required: [colour]", "required: [title]");
    let new = new.replace(", colour: {type: string}", "");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("shop-v1.yaml"), OLD).expect("it is written");
    std::fs::write(folder.path().join("shop-v2.yaml"), new).expect("it is written");
    output(folder.path(), &["init", "shop-v1.yaml", "shop-v2.yaml", "shop"], 0);
    folder
}

fn output(folder: &Path, arguments: &[&str], code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    let command = command.args(arguments).current_dir(folder).stdin(Stdio::null());
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    let text = String::from_utf8([stdout, stderr].concat()).expect("text");
    assert_eq!(status.code(), Some(code), "{arguments:?}\n{text}");
    text
}

fn answer(folder: &Path, answers: &str, code: i32) -> String {
    std::fs::write(folder.join("answers"), answers).expect("it is written");
    output(folder, &["decide", "shop", "--answers", "answers"], code)
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join("shop").join(name)).unwrap_or_default()
}

/// Returns the verdict of an operation in the report of the pack.
fn verdict(folder: &Path, operation: &str) -> String {
    let report = output(folder, &["report", "shop"], 0);
    let line = report.lines().find_map(|line| line.trim().strip_prefix(operation)).expect("the operation");
    line.trim().to_owned()
}

#[test]
fn answers_of_a_file_lead_from_blockers_to_served_operations() {
    let folder = drafted();
    let folder = folder.path();
    let list = output(folder, &["decide", "shop", "--list"], 0);
    for part in [
        "order-total   blocker\n  GET /orders\n  GET /orders/{id}\n",
        "contracts/v1/shop-v1.yaml:20\n      20 |         total: {type: integer}\n",
        "  [2] it is `sum` on the other side: rename: {total: sum}\n",
        "4 decisions open: 4 blockers, 0 proposals\n",
    ] {
        assert!(list.contains(part), "{part}\n{list}");
    }
    assert_eq!(verdict(folder, "GET /orders/{id}"), "not possible");
    let all = "# all of them\norder-total: 2\n\nneworder-sent-colour: only: {v1: {colour: none}}\n\
               neworder-sent-title: 1\nget-coupons: refuse Coupons have ended.\n";
    let said = answer(folder, all, 0);
    assert!(said.ends_with("0 decisions open: 0 blockers, 0 proposals\n"), "{said}");
    output(folder, &["check", "shop"], 0);
    for operation in ["GET /orders/{id}", "POST /orders"] {
        assert_ne!(verdict(folder, operation), "not possible", "{operation}");
    }
    assert!(read(folder, "shapes.map.yaml").contains("      total: sum\n"));
    let calls = output(folder, &["explain", "GET /v1/orders/7", "shop"], 0);
    assert!(calls.contains("$.total ← $.sum"), "{calls}");
    let refused = output(folder, &["report", "shop"], 0);
    assert!(refused.contains("refused: Coupons have ended."), "{refused}");
    // Nothing waits for a decision any more.
    let decisions = read(folder, "DECISIONS.md");
    for row in ["| refused until decided | 0 | 0 % |", "| refused for good | 1 | "] {
        assert!(decisions.contains(row), "{row}\n{decisions}");
    }
    // The same answers again, and the same draft again, change nothing.
    let before = read(folder, "shapes.map.yaml");
    let said = answer(folder, all, 0);
    for id in ["order-total", "neworder-sent-colour", "neworder-sent-title", "get-coupons"] {
        assert!(said.contains(&format!("{id}: decided before\n")), "{said}");
    }
    let said = output(folder, &["init", "shop-v1.yaml", "shop-v2.yaml", "shop"], 0);
    assert!(said.contains(" 0 blockers, 0 proposals"), "{said}");
    assert_eq!(read(folder, "shapes.map.yaml"), before);
}

/// The findings of `learn` in the folder rank the decisions, whoever lists them.
#[test]
fn decisions_that_most_calls_wait_for_come_first() {
    let folder = drafted();
    let folder = folder.path();
    let first = |list: &str| list.lines().next().unwrap_or_default().to_owned();
    assert_eq!(first(&output(folder, &["decide", "shop", "--list"], 0)), "order-total   blocker");
    let learned = r#"{"operations": [
        {"operation": "GET /orders", "calls": 2, "clients": 1, "client_numbers": [0]},
        {"operation": "GET /coupons", "calls": 40, "clients": 3, "client_numbers": [0, 1, 2]},
        {"operation": "POST /orders", "calls": 0, "clients": 0, "client_numbers": []}]}"#;
    std::fs::write(folder.join("shop/LEARNED.json"), learned).expect("it is written");
    let list = output(folder, &["decide", "shop", "--list"], 0);
    assert_eq!(first(&list), "get-coupons   blocker, 40 calls, 3 clients");
    assert!(list.contains("\norder-total   blocker, 2 calls, 1 client\n"), "{list}");
    assert!(list.contains("\nneworder-sent-colour   blocker, 0 calls, 0 clients\n"), "{list}");
    output(folder, &["init", "shop-v1.yaml", "shop-v2.yaml", "shop"], 0);
    let [list, json] = ["DECISIONS.md", "DECISIONS.json"].map(|name| read(folder, name));
    let of = |text: &str, part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(of(&list, " 40 calls, 3 clients.") < of(&list, " 2 calls, 1 client."), "{list}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["decisions"][0]["traffic"], serde_json::json!({"calls": 40, "clients": 3}));
}

#[test]
fn a_run_continues_where_the_last_one_ended_and_takes_decisions_back() {
    let folder = drafted();
    let folder = folder.path();
    answer(folder, "order-total: 2\nget-coupons: skip\n", 0);
    let said = answer(folder, "get-coupons: refuse Coupons have ended.\n", 0);
    assert!(said.contains("2 decisions open"), "{said}");
    assert_eq!(
        read(folder, ".init/accepted"),
        "order-total: rename: {total: sum}\nget-coupons: refuse GET /coupons: Coupons have ended.\n"
    );
    for (undone, open) in [
        ("get-coupons: refuse GET /coupons: Coupons have ended.", 3),
        ("order-total: rename: {total: sum}", 4),
    ] {
        let said = output(folder, &["decide", "shop", "--undo"], 0);
        assert!(said.contains(&format!("taken back: {undone}\n{open} decisions open")), "{said}");
        output(folder, &["check", "shop"], 0);
    }
    assert_eq!((read(folder, "shapes.map.yaml"), read(folder, "refused.map.yaml")), Default::default());
    assert!(output(folder, &["decide", "shop", "--undo"], 2).contains("no decision to take back"));
}

#[test]
fn a_wrong_answer_changes_nothing_and_says_why() {
    let folder = drafted();
    let folder = folder.path();
    for (answers, code, why) in [
        ("order-totl: 2", 2, "answers:1: `order-totl` is no open decision: did you mean `order-total`?"),
        (
            "# one\norder-total: 7",
            2,
            "answers:2: `7` is no answer to `order-total`: answer 1, 2, LINE, refuse TEXT, skip",
        ),
        ("order-total: accept", 2, "`accept` is no answer"),
        ("order-total", 2, "is not `ID: ANSWER`"),
        (
            "order-total: rename: {total: nowhere}",
            1,
            "does not compile and is taken back: `GET /orders`: `nowhere` is not a field",
        ),
        ("order-total: rename: {total: a: b}", 1, "this is not YAML"),
    ] {
        let said = answer(folder, answers, code);
        assert!(said.contains(why), "{answers}\n{said}");
        assert_eq!(read(folder, ".init/accepted"), "");
        output(folder, &["check", "shop"], 0);
    }
    let said = output(folder, &["decide", "shop"], 2);
    assert!(said.contains("this is no terminal to ask on; answer with `--answers FILE`"), "{said}");
    assert!(
        output(folder, &["decide", ".", "--list"], 2).contains("draft one with `switchback init OLD NEW .`")
    );
}

/// An edit of a drafted file stays when a decision changes the file.
#[test]
fn edits_of_drafted_files_stay() {
    let folder = drafted();
    let folder = folder.path();
    answer(folder, "order-total: 2\n", 0);
    let manifest = folder.join("shop/pack.yaml");
    let edited = read(folder, "pack.yaml").replace("status: 501", "status: 503");
    std::fs::write(&manifest, &edited).expect("it is written");
    answer(folder, "neworder-sent-colour: 2\nneworder-sent-title: 1\n", 0);
    assert_eq!(read(folder, "pack.yaml"), edited);
    let shapes = folder.join("shop/shapes.map.yaml");
    let edited = read(folder, "shapes.map.yaml").replace("      total: sum", "      total: {v2: sum}");
    std::fs::write(&shapes, &edited).expect("it is written");
    let said = output(folder, &["decide", "shop", "--undo"], 0);
    assert!(said.contains("taken back: neworder-sent-title"), "{said}");
    assert!(read(folder, "shapes.map.yaml").contains("total: {v2: sum}"));
}

#[test]
fn decisions_are_data_for_other_programs() {
    let folder = drafted();
    let text = output(folder.path(), &["decide", "shop", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let first = &json["open"][0];
    assert_eq!(first["ids"][0], "order-total");
    assert_eq!(first["decision"]["places"][0]["line"], 20);
    assert_eq!(first["answers"][1]["answer"], "2");
    assert_eq!(first["answers"][1]["line"], "rename: {total: sum}");
}

/// The program on a terminal of its own.
struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    /// Output that was not matched yet.
    seen: String,
}

const UP: &str = "\u{1b}[A";
const DOWN: &str = "\u{1b}[B";
const ENTER: &str = "\r";

impl Terminal {
    fn start(folder: &Path, arguments: &[&str]) -> Terminal {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal is free");
        grantpt(&keys).expect("it is ours");
        unlockpt(&keys).expect("it is ours");
        let name = ptsname(&keys, Vec::new()).expect("it has a name");
        let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
        let end = || File::options().read(true).write(true).open(path).expect("it opens");
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
        command.args(arguments).current_dir(folder).env("NO_COLOR", "1");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("the program starts");
        let keys = File::from(keys);
        let mut output = keys.try_clone().expect("a descriptor is free");
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The last program that leaves a terminal causes an error here.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keys, screen, seen: String::new() }
    }

    /// Waits for a text, and forgets the output up to it. Returns that output.
    fn wait(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let more = self.screen.recv_timeout(Duration::from_secs(60));
            let more = more.unwrap_or_else(|_| panic!("no `{text}` in\n{}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
    }

    fn press(&mut self, keys: &[&str]) {
        for key in keys {
            self.keys.write_all(key.as_bytes()).expect("the terminal is open");
        }
    }

    fn ended(mut self) -> ExitStatus {
        self.child.wait().expect("it is our child")
    }
}

#[test]
fn a_person_decides_on_a_terminal() {
    let folder = drafted();
    let mut terminal = Terminal::start(folder.path(), &["decide", "shop"]);
    terminal.wait("order-total   blocker");
    terminal.wait("Quit");
    // A line that does not compile is taken back, and the decision stays.
    terminal.press(&[DOWN, DOWN, ENTER]);
    terminal.wait("line, such as");
    terminal.press(&["rename: {total: nowhere}", ENTER]);
    terminal.wait("does not compile and is taken back");
    terminal.wait("order-total   blocker");
    terminal.wait("Quit");
    terminal.press(&[DOWN, ENTER]);
    let preview = terminal.wait("Write it?");
    assert!(preview.contains("+++ shapes.map.yaml") && preview.contains("+      total: sum"), "{preview}");
    assert!(!preview.contains("[32m"), "colours: {preview:?}");
    assert_eq!(read(folder.path(), "shapes.map.yaml"), "", "a preview writes nothing");
    terminal.press(&["y"]);
    terminal.wait("get-coupons   blocker");
    terminal.wait("Quit");
    assert!(read(folder.path(), "shapes.map.yaml").contains("total: sum"));
    terminal.press(&[UP, UP, ENTER]);
    terminal.wait("taken back: order-total: rename: {total: sum}");
    terminal.wait("Quit");
    assert_eq!(read(folder.path(), "shapes.map.yaml"), "");
    terminal.press(&[DOWN, ENTER]);
    terminal.wait("Write it?");
    terminal.press(&["y"]);
    terminal.wait("get-coupons   blocker");
    terminal.wait("Quit");
    // Refused with a text, and quit at the next question.
    terminal.press(&[ENTER]);
    terminal.wait("text for clients");
    terminal.press(&["Coupons have ended.", ENTER]);
    terminal.wait("Write it?");
    terminal.press(&["y"]);
    terminal.wait("2 decisions open");
    terminal.wait("Quit");
    terminal.press(&[UP, ENTER]);
    terminal.wait("2 decisions open: 2 blockers");
    assert!(terminal.ended().success());
    output(folder.path(), &["check", "shop"], 0);
    let state = read(folder.path(), ".init/accepted");
    assert_eq!(
        state,
        "order-total: rename: {total: sum}\nget-coupons: refuse GET /coupons: Coupons have ended.\n"
    );
}
