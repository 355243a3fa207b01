//! `switchback init` on the command line: names of sides, documents of other kinds, findings.

use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const DOCUMENT: &str = "openapi: 3.0.3
info: {title: t, version: '1'}
paths:
  /notes: {get: {responses: {'200': {description: all, content: {application/json: {schema: {type: array, items: {type: string}}}}}}}}
";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("it is written");
    }
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn sides_have_the_names_that_are_given() {
    let folder = folder(&[("a.yaml", DOCUMENT), ("b.yaml", DOCUMENT)]);
    let drafted = run(folder.path(), &["init", "a.yaml", "b.yaml", "pack", "--sides", "first,second"]);
    assert!(drafted.status.success(), "{}", errors(&drafted));
    let manifest = std::fs::read_to_string(folder.path().join("pack/pack.yaml")).expect("a manifest");
    assert!(manifest.contains("sides: {old: first, new: second}\n"), "{manifest}");
    assert!(run(folder.path(), &["check", "pack"]).status.success());
    for names in ["one", "one,one", "one,two,three", "a b,c", ",b"] {
        let refused = run(folder.path(), &["init", "a.yaml", "b.yaml", "other", "--sides", names]);
        assert!(!refused.status.success(), "{names}");
        assert!(errors(&refused).contains("two different names, such as `v1,v2`"), "{}", errors(&refused));
    }
}

#[test]
fn descriptions_of_other_kinds_are_named() {
    for (name, text, kind) in [
        ("a.yaml", "asyncapi: 2.6.0\ninfo: {title: t, version: '1'}\nchannels: {}\n", "an AsyncAPI document"),
        (
            "a.json",
            r#"{"info": {"name": "t", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"}, "item": []}"#,
            "a Postman collection",
        ),
        (
            "a.wsdl",
            "<?xml version=\"1.0\"?>\n<wsdl:definitions xmlns:wsdl=\"http://schemas.xmlsoap.org/wsdl/\"/>\n",
            "a WSDL document",
        ),
        ("a.html", "<!DOCTYPE html><html></html>", "an HTML page"),
        ("a.yml", "just: text\n", "neither `openapi` nor `swagger`"),
    ] {
        let folder = folder(&[(name, text), ("b.yaml", DOCUMENT)]);
        let refused = run(folder.path(), &["init", name, "b.yaml", "pack"]);
        assert!(!refused.status.success(), "{name}");
        assert!(errors(&refused).contains(kind), "{name}: {}", errors(&refused));
    }
}

/// What the reader passes over of a document is said when a draft is made of it.
#[test]
fn findings_of_documents_are_shown() {
    let odd = DOCUMENT.replace("type: string", "type: text");
    let folder = folder(&[("a.yaml", &odd), ("b.yaml", DOCUMENT)]);
    let drafted = run(folder.path(), &["init", "a.yaml", "b.yaml", "pack"]);
    assert!(drafted.status.success(), "{}", errors(&drafted));
    assert!(errors(&drafted).contains("contracts/old/a.yaml:4:"), "{}", errors(&drafted));
}

/// A draft without a single answer cannot be served, and the program says what is missing.
#[test]
fn a_draft_that_refuses_everything_says_why_it_does_not_start() {
    let other = DOCUMENT.replace("/notes", "/boxes/all/there");
    let folder = folder(&[("a.yaml", DOCUMENT), ("b.yaml", &other)]);
    let drafted = run(folder.path(), &["init", "a.yaml", "b.yaml", "pack"]);
    assert!(drafted.status.success(), "{}", errors(&drafted));
    let text = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: 127.0.0.1:0}}\nstore: sqlite:{0}/store.db\nkey: ${{TEST_KEY}}\nmapping: {0}/pack\n\
         fronts: {{/v1: {{speaks: old}}}}\nupstreams: {{new: {{url: 'http://127.0.0.1:9'}}}}\n\
         clients: [{{name: app, old_token: token-of-a-client, credentials: {{new: token-of-the-service}}}}]\n",
        folder.path().display()
    );
    std::fs::write(folder.path().join("switchback.yaml"), text).expect("it is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchback"));
    let key = switchback_gateway::store::seal::SealingKey::generate();
    command.args(["serve", "--check", "--config", "switchback.yaml"]).env("TEST_KEY", key.expose());
    let checked = command.current_dir(folder.path()).output().expect("the program runs");
    assert!(!checked.status.success());
    let said = errors(&checked) + &String::from_utf8_lossy(&checked.stdout);
    assert!(said.contains("every operation of `old` is refused"), "{said}");
}
