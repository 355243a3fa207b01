//! The mapping editor of the studio, through the real binary: from a wrong line over recorded traffic
//! to a patch that `git apply` takes, or to a saved file; and everything that it refuses.

use crate::support::dual::{ADMIN_TOKEN, Dual, Running, Upstreams, ask, eventually};
use crate::support::editor::copy;
use crate::support::raw::Client;
use crate::support::studio::{FORM, Session, send, text};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use switchback_sandbox::{Options, Sandbox};

const READ_TOKEN: &str = "read-token-of-the-mapping-editor";
const FILE: &str = "contacts.map.yaml";
const RIGHT: &str = "    same: [id, name, email, mobile, phone]\n    rename:\n";
/// Both are texts of a contact.
const WRONG: &str =
    "    same: [id, name, email]\n    rename:\n      mobile: {v3: phone}\n      phone: {v3: mobile}\n";

/// A gateway with a pack of its own.
struct World {
    service: Sandbox,
    dual: Dual,
    gateway: Running,
}

impl World {
    /// `change` edits the pack before it is served; `is_writable`: whether the studio may save.
    async fn open(change: impl FnOnce(&Path), is_writable: bool) -> World {
        let service = Sandbox::start(Options::default()).await.expect("a loopback address");
        let dual = Dual::new();
        let pack = dual.folder.path().join("pack");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging"), &pack);
        change(&pack);
        let more = format!(
            "mapping: {{ folder: '{}', writable: {is_writable} }}\nreload: {{ watch: false }}\n\
             phases: {{ default: translated, 'GET /contacts/{{id}}': shadow }}\n\
             shadow: {{ noise: 0, sample: 1 }}\n",
            pack.display()
        );
        dual.configure(&service, Upstreams::of(&service), &["administrator"], &more);
        let config = fs::read_to_string(dual.file()).expect("it was written");
        let tokens = format!("token: {ADMIN_TOKEN}, read_token: {READ_TOKEN} }}");
        let config = config.replace(&format!("token: {ADMIN_TOKEN} }}"), &tokens);
        fs::write(dual.file(), config).expect("it is written");
        let gateway = dual.started().await;
        World { service, dual, gateway }
    }

    fn pack(&self) -> PathBuf {
        self.dual.folder.path().join("pack")
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.pack().join(file)).expect("a file of the pack")
    }

    /// The digest of a file, as the page of the editor has it.
    async fn opened(&self, session: &Session, file: &str) -> String {
        let page = session.page(&self.gateway, &format!("/editor?file={file}")).await;
        let mark = format!("name=\"opened:{file}\" value=\"");
        let (_, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("{file} is not open: {page}"));
        rest.split('"').next().expect("a digest").to_owned()
    }

    /// The sentence about the effect of a text of [`FILE`].
    async fn effect(&self, session: &Session, edited: &str) -> String {
        let opened = self.opened(session, FILE).await;
        let fields = [
            ("file", FILE),
            ("opened:contacts.map.yaml", opened.as_str()),
            ("text:contacts.map.yaml", edited),
        ];
        let answer = session.submit(&self.gateway, "/editor/what-if", &fields).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page = answer.text();
        let (_, rest) =
            page.split_once("<p id=\"effect-sum\">").unwrap_or_else(|| panic!("no effect: {page}"));
        text(rest.split("</p>").next().unwrap_or_default())
    }
}

fn plant(pack: &Path) {
    // The examples would state that the line is wrong, and the pack would not be served.
    fs::remove_file(pack.join("contacts.examples.map.yaml")).expect("it is there");
    let file = pack.join(FILE);
    let text = fs::read_to_string(&file).expect("a mapping file");
    assert!(text.contains(RIGHT));
    fs::write(file, text.replace(RIGHT, WRONG)).expect("it is written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_line_is_corrected_and_the_patch_and_the_saved_file_are_the_correction() {
    let world = World::open(plant, true).await;
    let (gateway, session) = (&world.gateway, Session::open(&world.gateway).await);
    let begun = gateway.admin("POST /api/playground/record", &json!({"exchanges": 4})).await;
    assert_eq!(begun.0, 202, "{}", begun.1);
    for line in [
        "GET /v2/contacts/1001",
        "GET /v2/contacts/1001",
        "GET /v2/contacts/1001",
        "GET /v2/chats/7/feedback",
    ] {
        ask(gateway, &world.service, line, "").await;
    }
    eventually("the exchanges are recorded", async || {
        let (_, recorded) = gateway.admin("GET /api/playground/recorded", &Value::Null).await;
        recorded["exchanges"].as_array().is_some_and(|all| all.len() == 4)
    })
    .await;
    let served = world.read(FILE);
    let edited = served.replace(WRONG, RIGHT);
    // The old service answered what the pack refuses: that exchange is unknown, and not equal.
    let before = world.effect(&session, &served).await;
    assert!(
        before.starts_with("3 of 3 recorded exchanges differ; 1 further exchange unknown. 0 of "),
        "{before}"
    );
    let after = world.effect(&session, &edited).await;
    assert!(
        after.starts_with("0 of 3 recorded exchanges differ; 1 further exchange unknown. 0 of "),
        "{after}"
    );

    let opened = world.opened(&session, FILE).await;
    let browser = edited.replace('\n', "\r\n");
    let fields = [
        ("file", FILE),
        ("opened:contacts.map.yaml", opened.as_str()),
        ("text:contacts.map.yaml", browser.as_str()),
    ];
    let patch = session.submit(gateway, "/editor/patch", &fields).await;
    assert_eq!((patch.status, patch.value("content-type")), (200, "text/x-patch; charset=utf-8"));
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    copy(&world.pack(), elsewhere.path());
    fs::write(elsewhere.path().join("x.patch"), &patch.body).expect("it is written");
    let mut git = Command::new("git");
    git.args(["apply", "x.patch"]).current_dir(elsewhere.path());
    git.env("GIT_CEILING_DIRECTORIES", elsewhere.path());
    let applied = git.output().expect("git is installed");
    assert!(applied.status.success(), "{}\n{}", String::from_utf8_lossy(&applied.stderr), patch.text());
    assert_eq!(fs::read_to_string(elsewhere.path().join(FILE)).expect("it is there"), edited);

    let saved = session.submit(gateway, "/editor/save", &fields).await;
    assert_eq!((saved.status, saved.value("location")), (303, "/pack?show=reload"), "{}", saved.text());
    assert_eq!(world.read(FILE), edited);
    let names = fs::read_dir(world.pack()).expect("the folder is there");
    let names = names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| name.ends_with(".tmp")).collect::<Vec<_>>(), Vec::<String>::new());
    eventually("the history has it", async || {
        let (_, all) = gateway.admin("GET /history/export.json", &Value::Null).await;
        let all = all.as_array().cloned().unwrap_or_default();
        all.iter().any(|one| one["kind"] == "mapping saved" && one["by"] == "Ada" && one["why"] == FILE)
    })
    .await;
    // The opened text is no longer the one on disk.
    let again = session.submit(gateway, "/editor/save", &fields).await;
    assert_eq!(again.status, 409, "{}", again.text());
    assert_eq!(gateway.admin("POST /api/reload", &json!({})).await.0, 202);
    eventually("the saved text serves", async || {
        gateway.admin("GET /api/pack", &Value::Null).await.1["generation"] == 2
    })
    .await;
    let now = world.effect(&session, &edited).await;
    assert!(now.starts_with("0 of 3 recorded exchanges differ"), "{now}");
    let stale = session
        .submit(gateway, "/editor/patch", &[fields[0], fields[1], (fields[2].0, served.as_str())])
        .await;
    assert_eq!(stale.status, 409, "{}", stale.text());
    world.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn findings_and_names_are_at_their_places_in_the_edited_text() {
    let world = World::open(|_| (), false).await;
    let (gateway, session) = (&world.gateway, Session::open(&world.gateway).await);
    let (served, opened) = (world.read(FILE), world.opened(&session, FILE).await);
    let edited = served.replacen("same: [id, name, email", "same: [id, nane, email", 1);
    let row = edited.lines().position(|line| line.contains("nane")).expect("the edited line");
    let column = edited.lines().nth(row).and_then(|line| line.find("nane")).expect("the word");
    let (row_text, column_text) = (row.to_string(), (column + 2).to_string());
    let fields = [
        ("file", FILE),
        ("opened:contacts.map.yaml", opened.as_str()),
        ("text:contacts.map.yaml", edited.as_str()),
        ("row", row_text.as_str()),
        ("column", column_text.as_str()),
    ];
    let answer = session.submit(gateway, "/editor/check", &fields).await;
    let found: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let first = &found["findings"][FILE][0];
    assert_eq!(first["range"]["start"], json!({"line": row, "character": column}), "{found}");
    assert_eq!(first["severity"], 1, "{found}");
    let answer = session.submit(gateway, "/editor/complete", &fields).await;
    let items: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let items = items["items"].as_array().expect("a list");
    assert!(
        items.iter().any(|item| item["label"] == "name" && item["textEdit"]["newText"] == "name"),
        "{items:?}"
    );
    // Without the script, the findings are on the page that follows, and the text stays.
    let answer = session.submit(gateway, "/editor/what-if", &fields).await;
    let page = answer.text();
    assert_eq!(answer.status, 422);
    assert!(page.contains(&format!("{FILE}:{}:", row + 1)) && page.contains("nane, email"), "{page}");
    world.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_saved_but_by_an_operator_what_compiles_and_what_was_opened() {
    let world = World::open(|_| (), true).await;
    let (gateway, session) = (&world.gateway, Session::open(&world.gateway).await);
    let (served, opened) = (world.read(FILE), world.opened(&session, FILE).await);
    let commented = format!("{served}# a comment\n");
    let anonymous = send(gateway, "POST /editor/save", FORM, "text%3Acontacts.map.yaml=x").await;
    assert_eq!(anonymous.status, 401);
    let reader = Session::open_with(gateway, READ_TOKEN).await;
    let page = reader.page(gateway, "/editor?file=contacts.map.yaml").await;
    assert!(page.contains("readonly") && !page.contains("formaction"), "a reader has no controls: {page}");
    let own = [("opened:contacts.map.yaml", opened.as_str()), ("text:contacts.map.yaml", commented.as_str())];
    for path in ["/editor/save", "/editor/check", "/editor/complete", "/editor/what-if", "/editor/patch"] {
        assert_eq!(reader.submit(gateway, path, &own).await.status, 403, "{path}");
    }
    for path in ["/editor/save", "/editor/check", "/editor/patch"] {
        let mut client = Client::connect(gateway.admin).await;
        let length = (2 << 20) + 1;
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{FORM}content-length: {length}\r\n\r\n");
        client.send(head).await;
        assert_eq!(client.answer().await.expect("the admin port answers").status, 413, "{path}");
    }
    let swapped = served.replace(RIGHT, WRONG);
    let broken = served.replacen("same: [id, name", "same: [id, nane", 1);
    let outside = world.dual.folder.path().join("outside.map.yaml");
    fs::write(&outside, "mapping: 1\n").expect("it is written");
    for (file, opened, text, status) in [
        ("../outside.map.yaml", &opened, &commented, 404),
        ("contracts/../contacts.map.yaml", &opened, &commented, 404),
        ("contracts/v2.openapi.yaml", &opened, &commented, 404),
        ("none.map.yaml", &opened, &commented, 404),
        (FILE, &"0".repeat(64), &commented, 409),
        (FILE, &String::new(), &commented, 409),
        (FILE, &opened, &broken, 422),
        // It compiles, and an example does not hold, so a reload would refuse it.
        (FILE, &opened, &swapped, 422),
        (FILE, &opened, &served, 400),
    ] {
        let (opened_field, text_field) = (format!("opened:{file}"), format!("text:{file}"));
        let fields = [(opened_field.as_str(), opened.as_str()), (text_field.as_str(), text.as_str())];
        let answer = session.submit(gateway, "/editor/save", &fields).await;
        assert_eq!(answer.status, status, "{file}: {}", answer.text());
    }
    assert_eq!(world.read(FILE), served);
    assert_eq!(fs::read_to_string(&outside).expect("it is there"), "mapping: 1\n");

    // A change of the file since it was opened, also one that was not reloaded.
    fs::write(world.pack().join(FILE), format!("{served}# by another editor\n")).expect("it is written");
    assert_eq!(session.submit(gateway, "/editor/save", &own).await.status, 409);
    assert!(world.read(FILE).ends_with("# by another editor\n"));

    // A link leads out of the folder.
    let target = world.dual.folder.path().join("elsewhere.yaml");
    fs::write(&target, &served).expect("it is written");
    fs::remove_file(world.pack().join(FILE)).expect("it is there");
    std::os::unix::fs::symlink(&target, world.pack().join(FILE)).expect("a link");
    assert_eq!(session.submit(gateway, "/editor/save", &own).await.status, 409);
    assert_eq!(fs::read_to_string(&target).expect("it is there"), served);
    world.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pack_that_is_not_writable_is_not_saved() {
    let world = World::open(|_| (), false).await;
    let (gateway, session) = (&world.gateway, Session::open(&world.gateway).await);
    let (served, opened) = (world.read(FILE), world.opened(&session, FILE).await);
    let page = session.page(gateway, "/editor?file=contacts.map.yaml").await;
    assert!(page.contains("/editor/patch") && !page.contains("/editor/save"), "{page}");
    let commented = format!("{served}# a comment\n");
    let fields =
        [("opened:contacts.map.yaml", opened.as_str()), ("text:contacts.map.yaml", commented.as_str())];
    let answer = session.submit(gateway, "/editor/save", &fields).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(answer.text().contains("mapping.writable"));
    assert_eq!(world.read(FILE), served);
    world.gateway.stop().await;
}
